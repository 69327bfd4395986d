//! Recurrent layers: all steps of one layer in one direction, forward and backward.
//!
//! The products with the inputs of all steps are one product, and so are those of the gradients of the
//! weights. Only the product with the state is left for each step. Sequences of a batch can have different
//! lengths: beyond its end, a sequence keeps its state and has the result 0.
//!
//! # Source
//! Hochreiter, Schmidhuber, *Long Short-Term Memory* (1997), with the forget gate of Gers et al. (2000); Cho
//! et al. (2014) for GRU, with the reset gate after the product as in cuDNN; Sak et al. (2014) for
//! projections.

use super::exps::{sigmoid_all, tanh_all};
use super::math::Real;
use super::matmul::{Mat, MatmulElement, gemm};
use super::row::add_to;
use super::simd::{Simd, UpTo, Vectorized, vectorize};
use crate::cell::Cell;
use std::marker::PhantomData;

/// The sizes and parameters of a layer. Matrices are dense and row-major.
#[derive(Clone, Copy)]
pub(crate) struct RecurrentLayer<'a, T> {
    pub(crate) cell: Cell,
    pub(crate) steps: usize,
    pub(crate) batch: usize,
    pub(crate) input: usize,
    pub(crate) hidden: usize,
    /// The length of the state: `hidden`, unless there is a projection.
    pub(crate) state: usize,
    /// `[gates * hidden, input]`
    pub(crate) w_ih: &'a [T],
    /// `[gates * hidden, state]`
    pub(crate) w_hh: &'a [T],
    /// `[gates * hidden]`
    pub(crate) b_ih: Option<&'a [T]>,
    /// `[gates * hidden]`
    pub(crate) b_hh: Option<&'a [T]>,
    /// The projection, `[state, hidden]`.
    pub(crate) w_hr: Option<&'a [T]>,
    /// The length of each sequence; `steps` if there are none.
    pub(crate) lengths: Option<&'a [usize]>,
    /// Whether the last step comes first.
    pub(crate) reverse: bool,
}

/// The results of the forward pass. All of them are 0 before, except the states.
pub(crate) struct RecurrentOut<'a, T> {
    /// The states after each step, `[steps, batch, state]`.
    pub(crate) y: &'a mut [T],
    /// The gates after their activations, `[steps, batch, gates * hidden]`.
    pub(crate) gates: &'a mut [T],
    /// The cells of an LSTM, or the products of a GRU that enter `n`, `[steps, batch, hidden]`; else empty.
    pub(crate) inner: &'a mut [T],
    /// The first state and then the last, `[batch, state]`.
    pub(crate) h: &'a mut [T],
    /// The first cells of an LSTM and then the last, `[batch, hidden]`; else empty.
    pub(crate) c: &'a mut [T],
}

/// The values that the backward pass reads.
#[derive(Clone, Copy)]
pub(crate) struct SavedSteps<'a, T> {
    pub(crate) x: &'a [T],
    /// The first state.
    pub(crate) h: &'a [T],
    /// The first cells.
    pub(crate) c: &'a [T],
    pub(crate) y: &'a [T],
    pub(crate) gates: &'a [T],
    pub(crate) inner: &'a [T],
    /// The gradient of the states after each step.
    pub(crate) dy: &'a [T],
}

/// The gradients, each with the sizes of what it is the gradient of. All are 0 before, except those of the
/// states.
pub(crate) struct RecurrentGradients<'a, T> {
    pub(crate) x: &'a mut [T],
    /// The gradient of the last state and then of the first.
    pub(crate) h: &'a mut [T],
    /// The gradient of the last cells and then of the first.
    pub(crate) c: &'a mut [T],
    pub(crate) w_ih: &'a mut [T],
    pub(crate) w_hh: &'a mut [T],
    pub(crate) b_ih: &'a mut [T],
    pub(crate) b_hh: &'a mut [T],
    /// Empty if there is no projection.
    pub(crate) w_hr: &'a mut [T],
}

/// A dense matrix with rows of `cols` elements, of which a product may use fewer.
fn rows<T>(x: &[T], cols: usize) -> Mat<*const T> {
    Mat { ptr: x.as_ptr(), row_stride: cols as isize, col_stride: 1 }
}

fn rows_mut<T>(x: &mut [T], cols: usize) -> Mat<*mut T> {
    Mat { ptr: x.as_mut_ptr(), row_stride: cols as isize, col_stride: 1 }
}

impl<T: Real + MatmulElement<Acc = T>> RecurrentLayer<'_, T> {
    /// The steps in the order in which they run.
    fn order(&self) -> impl DoubleEndedIterator<Item = usize> + use<T> {
        let (steps, reverse) = (self.steps, self.reverse);
        (0..steps).map(move |step| if reverse { steps - 1 - step } else { step })
    }

    /// Whether sequence `n` has step `t`.
    fn has(&self, t: usize, n: usize) -> bool {
        self.lengths.is_none_or(|lengths| t < lengths[n])
    }

    fn width(&self) -> usize {
        self.cell.gates() * self.hidden
    }

    /// The gates whose products with input and state are summed before the activation. The last gate of a GRU
    /// is not among them.
    fn summed(&self) -> usize {
        if self.cell == Cell::Gru { 2 * self.hidden } else { self.width() }
    }

    fn check(&self, x: &[T], h: &[T], c: &[T]) {
        let RecurrentLayer { steps, batch, input, hidden, state, .. } = *self;
        let width = self.width();
        assert!(x.len() == steps * batch * input && h.len() == batch * state);
        assert!(self.cell != Cell::Lstm || c.len() == batch * hidden);
        assert!(self.w_ih.len() == width * input && self.w_hh.len() == width * state);
        assert!([self.b_ih, self.b_hh].into_iter().flatten().all(|b| b.len() == width));
        assert!(self.w_hr.map_or(state == hidden, |w_hr| w_hr.len() == state * hidden));
        assert!(self.lengths.is_none_or(|lengths| lengths.len() == batch));
    }

    /// Runs the layer over `x`, `[steps, batch, input]`.
    pub(crate) fn forward(&self, x: &[T], out: RecurrentOut<'_, T>) {
        let RecurrentLayer { steps, batch, input, hidden, state, .. } = *self;
        let RecurrentOut { y, gates, inner, h, c } = out;
        self.check(x, h, c);
        let (width, summed, items) = (self.width(), self.summed(), steps * batch);
        let (is_lstm, is_gru) = (self.cell == Cell::Lstm, self.cell == Cell::Gru);
        assert!(y.len() == items * state && gates.len() == items * width);
        assert!(inner.len() == if is_lstm || is_gru { items * hidden } else { 0 });
        let bias = self.biases(summed);
        gates.chunks_exact_mut(width.max(1)).for_each(|row| row.copy_from_slice(&bias));
        if let (true, Some(bias)) = (is_gru, self.b_hh) {
            inner.chunks_exact_mut(hidden.max(1)).for_each(|row| row.copy_from_slice(&bias[summed..]));
        }
        let mut full = vec![T::ZERO; if self.w_hr.is_some() { batch * hidden } else { 0 }];
        let mut projected = vec![T::ZERO; if self.w_hr.is_some() { batch * state } else { 0 }];
        let w_ih = rows(self.w_ih, input).t();
        // SAFETY: `check` and the lines above have compared the sizes, and the buffers here are made for
        // them.
        unsafe { gemm(items, input, width, T::ONE, rows(x, input), w_ih, T::ONE, rows_mut(gates, width)) };
        for t in self.order() {
            let gates = &mut gates[t * batch * width..][..batch * width];
            let w_hh = rows(self.w_hh, state).t();
            // SAFETY: as above.
            unsafe {
                gemm(batch, state, summed, T::ONE, rows(h, state), w_hh, T::ONE, rows_mut(gates, width))
            };
            if is_gru {
                let (w_hn, c) = (w_hh.at(0, summed), rows_mut(&mut inner[t * batch * hidden..], hidden));
                // SAFETY: as above.
                unsafe { gemm(batch, state, hidden, T::ONE, rows(h, state), w_hn, T::ONE, c) };
            }
            let new = if self.w_hr.is_some() { &mut full[..] } else { &mut h[..] };
            for n in (0..batch).filter(|n| self.has(t, *n)) {
                let (own, item) = (n * hidden..(n + 1) * hidden, t * batch + n);
                let kept = if is_lstm || is_gru { item * hidden..(item + 1) * hidden } else { 0..0 };
                let cells = if is_lstm { own.clone() } else { 0..0 };
                let step = ForwardStep { cell: self.cell, hidden, of: PhantomData };
                let gates = &mut gates[n * width..(n + 1) * width];
                vectorize(step, (gates, &mut inner[kept], &mut c[cells], &mut new[own]));
            }
            if let Some(w_hr) = self.w_hr {
                let (b, c) = (rows(w_hr, hidden).t(), rows_mut(&mut projected, state));
                // SAFETY: as above.
                unsafe { gemm(batch, hidden, state, T::ONE, rows(&full, hidden), b, T::ZERO, c) };
            }
            for n in (0..batch).filter(|n| self.has(t, *n)) {
                let (own, item) = (n * state..(n + 1) * state, t * batch + n);
                if self.w_hr.is_some() {
                    h[own.clone()].copy_from_slice(&projected[own.clone()]);
                }
                y[item * state..(item + 1) * state].copy_from_slice(&h[own]);
            }
        }
    }

    /// The sums of both biases that are added before the products, and the bias of the input for the others.
    fn biases(&self, summed: usize) -> Vec<T> {
        let mut bias = vec![T::ZERO; self.width()];
        for (part, end) in [(self.b_ih, self.width()), (self.b_hh, summed)] {
            if let Some(part) = part {
                add_to(&mut bias, &part[..end]);
            }
        }
        bias
    }

    /// The gradients, after [`forward`](Self::forward).
    pub(crate) fn backward(&self, kept: SavedSteps<'_, T>, of: RecurrentGradients<'_, T>) {
        let RecurrentLayer { steps, batch, input, hidden, state, .. } = *self;
        let SavedSteps { x, h, c, dy, .. } = kept;
        let RecurrentGradients { h: dh, c: dc, .. } = of;
        self.check(x, h, c);
        self.check(x, dh, dc);
        let (width, summed, items) = (self.width(), self.summed(), steps * batch);
        assert!(dy.len() == items * state && of.x.len() == x.len());
        assert!(of.w_ih.len() == self.w_ih.len() && of.w_hh.len() == self.w_hh.len());
        assert!(of.w_hr.len() == self.w_hr.map_or(0, <[T]>::len));
        // The state and the cells before each step.
        let before = self.before(h, kept.y, state);
        let cells = if self.cell == Cell::Lstm { self.before(c, kept.inner, hidden) } else { Vec::new() };
        let mut dgates = vec![T::ZERO; items * width];
        // What the last gate of a GRU passes to its product with the state.
        let mut dinner = vec![T::ZERO; if self.cell == Cell::Gru { items * hidden } else { 0 }];
        let projects = self.w_hr.is_some();
        let mut dstates = vec![T::ZERO; if projects { items * state } else { 0 }];
        let mut fulls = vec![T::ZERO; if projects { items * hidden } else { 0 }];
        let mut dfull = vec![T::ZERO; batch * hidden];
        let (is_lstm, is_gru) = (self.cell == Cell::Lstm, self.cell == Cell::Gru);
        for t in self.order().rev() {
            for n in (0..batch).filter(|n| self.has(t, *n)) {
                let (own, at) = (n * state..(n + 1) * state, (t * batch + n) * state);
                add_to(&mut dh[own], &dy[at..at + state]);
            }
            match self.w_hr {
                None => dfull.copy_from_slice(dh),
                Some(w_hr) => {
                    let (a, b, c) = (rows(dh, state), rows(w_hr, hidden), rows_mut(&mut dfull, hidden));
                    // SAFETY: `check` has compared the sizes, and the buffers here are made for them.
                    unsafe { gemm(batch, state, hidden, T::ONE, a, b, T::ZERO, c) };
                }
            }
            for n in (0..batch).filter(|n| self.has(t, *n)) {
                let (item, of_state) = (t * batch + n, n * state..(n + 1) * state);
                let (own, at) = (n * hidden..(n + 1) * hidden, item * hidden..(item + 1) * hidden);
                let if_so = |is: bool| if is { at.clone() } else { 0..0 };
                let back = BackwardStep {
                    cell: self.cell,
                    hidden,
                    gates: &kept.gates[item * width..(item + 1) * width],
                    inner: &kept.inner[if_so(is_lstm || is_gru)],
                    before: if is_lstm { &cells[at.clone()] } else { &before[if_so(is_gru)] },
                    dh: &dfull[own.clone()],
                };
                let out = (
                    &mut dgates[item * width..(item + 1) * width],
                    &mut dinner[if_so(is_gru)],
                    &mut dc[if is_lstm { own } else { 0..0 }],
                    &mut fulls[if_so(projects)],
                );
                vectorize(back, out);
                if projects {
                    dstates[item * state..(item + 1) * state].copy_from_slice(&dh[of_state.clone()]);
                }
                // What reaches the state before the step directly; the products below add the rest.
                let passed = &mut dh[of_state];
                passed.fill(T::ZERO);
                if is_gru {
                    let z = &back.gates[hidden..2 * hidden];
                    for k in 0..z.len() {
                        passed[k] = back.dh[k] * z[k];
                    }
                }
            }
            let (a, w_hh) = (rows(&dgates[t * batch * width..], width), rows(self.w_hh, state));
            // SAFETY: as above.
            unsafe { gemm(batch, summed, state, T::ONE, a, w_hh, T::ONE, rows_mut(dh, state)) };
            if is_gru {
                let (a, w_hn) = (rows(&dinner[t * batch * hidden..], hidden), w_hh.at(summed, 0));
                // SAFETY: as above.
                unsafe { gemm(batch, hidden, state, T::ONE, a, w_hn, T::ONE, rows_mut(dh, state)) };
            }
        }
        add_rows(of.b_ih, &dgates);
        of.b_hh.copy_from_slice(of.b_ih);
        let (all, before) = (rows(&dgates, width), rows(&before, state));
        let (w_ih, of_w_hh) = (rows(self.w_ih, input), rows_mut(of.w_hh, state));
        // SAFETY: as above.
        unsafe {
            gemm(items, width, input, T::ONE, all, w_ih, T::ZERO, rows_mut(of.x, input));
            gemm(width, items, input, T::ONE, all.t(), rows(x, input), T::ZERO, rows_mut(of.w_ih, input));
            gemm(summed, items, state, T::ONE, all.t(), before, T::ZERO, of_w_hh);
        }
        if is_gru {
            let last = rows(&dinner, hidden).t();
            // SAFETY: as above.
            unsafe { gemm(hidden, items, state, T::ONE, last, before, T::ZERO, of_w_hh.at(summed, 0)) };
            of.b_hh[summed..].fill(T::ZERO);
            add_rows(&mut of.b_hh[summed..], &dinner);
        }
        if projects {
            let (a, b, c) = (rows(&dstates, state).t(), rows(&fulls, hidden), rows_mut(of.w_hr, hidden));
            // SAFETY: as above.
            unsafe { gemm(state, items, hidden, T::ONE, a, b, T::ZERO, c) };
        }
    }

    /// The states before each step, from the first one and those after each step, with rows of `cols`
    /// elements.
    fn before(&self, first: &[T], after: &[T], cols: usize) -> Vec<T> {
        let mut before = vec![T::ZERO; after.len()];
        let mut previous: Vec<Option<usize>> = vec![None; self.batch];
        for t in self.order() {
            for n in (0..self.batch).filter(|n| self.has(t, *n)) {
                let from = match previous[n] {
                    Some(before) => &after[(before * self.batch + n) * cols..][..cols],
                    None => &first[n * cols..][..cols],
                };
                before[(t * self.batch + n) * cols..][..cols].copy_from_slice(from);
                previous[n] = Some(t);
            }
        }
        before
    }
}

/// Adds the rows of a matrix.
fn add_rows<T: Real>(sums: &mut [T], x: &[T]) {
    for row in x.chunks_exact(sums.len().max(1)) {
        add_to(sums, row);
    }
}

/// A step of one sequence: the gates become their activations, and the cells and the state those after the
/// step.
struct ForwardStep<T> {
    cell: Cell,
    hidden: usize,
    of: PhantomData<T>,
}

/// Gates, what is kept for the backward pass, cells, and state.
type StepOut<'a, T> = (&'a mut [T], &'a mut [T], &'a mut [T], &'a mut [T]);

impl<T: Real> Vectorized for ForwardStep<T> {
    type Out<'a> = StepOut<'a, T>;
    const UP_TO: UpTo = UpTo::for_math::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, (gates, inner, c, h): StepOut<'_, T>) {
        let (gates, inner) = (simd.numbers_mut(gates), simd.numbers_mut(inner));
        step(simd, self.cell, self.hidden, (gates, inner, simd.numbers_mut(c), simd.numbers_mut(h)));
    }
}

#[inline(always)]
fn step<S: Simd, T: Real>(simd: S, cell: Cell, n: usize, (gates, inner, c, h): StepOut<'_, T>) {
    let h = &mut h[..n];
    match cell {
        Cell::Tanh => {
            let gates = &mut gates[..n];
            tanh_all(simd, gates);
            h.copy_from_slice(gates);
        }
        Cell::Relu => {
            for k in 0..n {
                gates[k] = gates[k].maximum(T::ZERO);
                h[k] = gates[k];
            }
        }
        Cell::Lstm => {
            let (sigmoids, rest) = gates.split_at_mut(2 * n);
            let (g, o) = rest.split_at_mut(n);
            sigmoid_all(simd, sigmoids);
            tanh_all(simd, g);
            sigmoid_all(simd, o);
            let (i, f) = sigmoids.split_at(n);
            let (inner, c) = (&mut inner[..n], &mut c[..n]);
            for k in 0..n {
                c[k] = f[k] * c[k] + i[k] * g[k];
                inner[k] = c[k];
                h[k] = c[k];
            }
            tanh_all(simd, h);
            for k in 0..n {
                h[k] *= o[k];
            }
        }
        Cell::Gru => {
            let (rz, new) = gates.split_at_mut(2 * n);
            sigmoid_all(simd, rz);
            let ((r, z), inner) = (rz.split_at(n), &inner[..n]);
            let new = &mut new[..n];
            for k in 0..n {
                new[k] += r[k] * inner[k];
            }
            tanh_all(simd, new);
            for k in 0..n {
                h[k] = (h[k] - new[k]) * z[k] + new[k];
            }
        }
    }
}

/// The backward pass of [`ForwardStep`]: the gradients of the gates before their activations.
#[derive(Clone, Copy)]
struct BackwardStep<'a, T> {
    cell: Cell,
    hidden: usize,
    gates: &'a [T],
    inner: &'a [T],
    /// The cells of an LSTM or the state of a GRU before the step.
    before: &'a [T],
    dh: &'a [T],
}

impl<T: Real> Vectorized for BackwardStep<'_, T> {
    /// The gradients of the gates, of what enters the last gate of a GRU, of the cells, and the state before
    /// its projection.
    type Out<'a> = StepOut<'a, T>;
    const UP_TO: UpTo = UpTo::for_math::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, (dgates, dinner, dc, full): StepOut<'_, T>) {
        let (gates, inner) = (simd.numbers(self.gates), simd.numbers(self.inner));
        let (before, dh) = (simd.numbers(self.before), simd.numbers(self.dh));
        let (dgates, dinner) = (simd.numbers_mut(dgates), simd.numbers_mut(dinner));
        let out = (dgates, dinner, simd.numbers_mut(dc), simd.numbers_mut(full));
        step_back(simd, BackwardStep { cell: self.cell, hidden: self.hidden, gates, inner, before, dh }, out);
    }
}

#[inline(always)]
fn step_back<S: Simd, T: Real>(
    simd: S,
    back: BackwardStep<'_, T>,
    (dgates, dinner, dc, full): StepOut<'_, T>,
) {
    let BackwardStep { cell, hidden: n, gates, inner, before, dh } = back;
    let (one, dh) = (T::ONE, &dh[..n]);
    match cell {
        Cell::Tanh => {
            for k in 0..n {
                dgates[k] = dh[k] * (one - gates[k] * gates[k]);
            }
        }
        Cell::Relu => {
            for k in 0..n {
                dgates[k] = if gates[k] > T::ZERO { dh[k] } else { T::ZERO };
            }
        }
        Cell::Lstm => {
            let (i, f) = (&gates[..n], &gates[n..][..n]);
            let (g, o) = (&gates[2 * n..][..n], &gates[3 * n..][..n]);
            let (di, rest) = dgates.split_at_mut(n);
            let (df, rest) = rest.split_at_mut(n);
            let (dg, d_o) = rest.split_at_mut(n);
            let (before, dc, d_o) = (&before[..n], &mut dc[..n], &mut d_o[..n]);
            d_o.copy_from_slice(&inner[..n]);
            tanh_all(simd, d_o);
            for k in 0..full.len() {
                full[k] = o[k] * d_o[k];
            }
            for k in 0..n {
                let tanh = d_o[k];
                let all = dc[k] + dh[k] * o[k] * (one - tanh * tanh);
                di[k] = all * g[k] * i[k] * (one - i[k]);
                df[k] = all * before[k] * f[k] * (one - f[k]);
                dg[k] = all * i[k] * (one - g[k] * g[k]);
                d_o[k] = dh[k] * tanh * o[k] * (one - o[k]);
                dc[k] = all * f[k];
            }
        }
        Cell::Gru => {
            let (r, z, new) = (&gates[..n], &gates[n..][..n], &gates[2 * n..][..n]);
            let (dr, rest) = dgates.split_at_mut(n);
            let (dz, dn) = rest.split_at_mut(n);
            let (inner, before, dinner) = (&inner[..n], &before[..n], &mut dinner[..n]);
            for k in 0..n {
                let of_new = dh[k] * (one - z[k]) * (one - new[k] * new[k]);
                dn[k] = of_new;
                dinner[k] = of_new * r[k];
                dr[k] = of_new * inner[k] * r[k] * (one - r[k]);
                dz[k] = dh[k] * (before[k] - new[k]) * z[k] * (one - z[k]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::random::{Generator, fill_normal};

    /// The inputs `x h c w_ih w_hh b_ih b_hh w_hr`.
    type Inputs = [Vec<f64>; 8];

    struct Shape {
        cell: Cell,
        reverse: bool,
        lengths: Option<[usize; 3]>,
        projects: bool,
    }

    const STEPS: usize = 4;
    const BATCH: usize = 3;
    const INPUT: usize = 2;
    const HIDDEN: usize = 5;

    impl Shape {
        fn layer<'a>(&'a self, all: &'a Inputs) -> RecurrentLayer<'a, f64> {
            RecurrentLayer {
                cell: self.cell,
                steps: STEPS,
                batch: BATCH,
                input: INPUT,
                hidden: HIDDEN,
                state: self.state(),
                w_ih: &all[3],
                w_hh: &all[4],
                b_ih: Some(&all[5]),
                b_hh: Some(&all[6]),
                w_hr: self.projects.then_some(&all[7]),
                lengths: self.lengths.as_ref().map(|lengths| &lengths[..]),
                reverse: self.reverse,
            }
        }

        fn state(&self) -> usize {
            if self.projects { 2 } else { HIDDEN }
        }

        /// The states after each step, the gates, what is kept besides, the last state and the last cells.
        fn run(&self, all: &Inputs) -> [Vec<f64>; 5] {
            let has = |is: bool, len: usize| vec![0.0; if is { len } else { 0 }];
            let (is_lstm, items) = (self.cell == Cell::Lstm, STEPS * BATCH);
            let mut y = vec![0.0; items * self.state()];
            let mut gates = vec![0.0; items * self.cell.gates() * HIDDEN];
            let mut inner = has(is_lstm || self.cell == Cell::Gru, items * HIDDEN);
            let (mut h, mut c) = (all[1].clone(), if is_lstm { all[2].clone() } else { Vec::new() });
            let out = RecurrentOut { y: &mut y, gates: &mut gates, inner: &mut inner, h: &mut h, c: &mut c };
            self.layer(all).forward(&all[0], out);
            [y, gates, inner, h, c]
        }

        /// The sum of all results, weighted.
        fn total(&self, all: &Inputs, weights: &[f64]) -> f64 {
            let [y, _, _, h, c] = self.run(all);
            y.iter().chain(&h).chain(&c).zip(weights).map(|(x, weight)| x * weight).sum()
        }

        fn check(&self, draw: &mut dyn FnMut(usize) -> Vec<f64>) {
            let (state, width) = (self.state(), self.cell.gates() * HIDDEN);
            let lengths = [
                STEPS * BATCH * INPUT,
                BATCH * state,
                BATCH * HIDDEN,
                width * INPUT,
                width * state,
                width,
                width,
            ];
            let [x, h, c, w_ih, w_hh, b_ih, b_hh] = lengths.map(&mut *draw);
            let mut all = [x, h, c, w_ih, w_hh, b_ih, b_hh, draw(state * HIDDEN)];
            let weights = draw(STEPS * BATCH * state + BATCH * state + BATCH * HIDDEN);
            let (of_y, rest) = weights.split_at(STEPS * BATCH * state);
            let (of_h, of_c) = rest.split_at(BATCH * state);
            let [y, gates, inner, ..] = self.run(&all);
            let mut gradients = all.each_ref().map(|input| vec![0.0; input.len()]);
            gradients[1].copy_from_slice(of_h);
            gradients[2].copy_from_slice(of_c);
            let [dx, dh, dc, dw_ih, dw_hh, db_ih, db_hh, dw_hr] = gradients.each_mut().map(|x| &mut x[..]);
            let kept = SavedSteps {
                x: &all[0],
                h: &all[1],
                c: &all[2],
                y: &y,
                gates: &gates,
                inner: &inner,
                dy: of_y,
            };
            let w_hr = if self.projects { dw_hr } else { &mut [] };
            let of = RecurrentGradients {
                x: dx,
                h: dh,
                c: dc,
                w_ih: dw_ih,
                w_hh: dw_hh,
                b_ih: db_ih,
                b_hh: db_hh,
                w_hr,
            };
            self.layer(&all).backward(kept, of);
            for which in 0..all.len() {
                if which == 2 && self.cell != Cell::Lstm || which == 7 && !self.projects {
                    continue;
                }
                for at in 0..all[which].len() {
                    let value = all[which][at];
                    let mut side = |step: f64| {
                        all[which][at] = value + step;
                        self.total(&all, &weights)
                    };
                    let difference = (side(1e-5) - side(-1e-5)) / 2e-5;
                    all[which][at] = value;
                    let gradient = gradients[which][at];
                    assert!(
                        (difference - gradient).abs() < 1e-6 * (1.0 + gradient.abs()),
                        "{:?}, reverse {}, lengths {:?}, input {which} at {at}: {difference} and {gradient}",
                        self.cell,
                        self.reverse,
                        self.lengths,
                    );
                }
            }
        }
    }

    #[test]
    fn gradients_are_differences() {
        let mut generator = Generator::from_seed(3);
        let mut draw = |len: usize| {
            let mut x = vec![0.0; len];
            fill_normal(&mut x, 0.0, 0.7, &mut generator);
            x
        };
        for cell in [Cell::Tanh, Cell::Relu, Cell::Lstm, Cell::Gru] {
            for (reverse, lengths) in
                [(false, None), (true, None), (true, Some([4, 1, 2])), (false, Some([0, 4, 3]))]
            {
                Shape { cell, reverse, lengths, projects: false }.check(&mut draw);
            }
        }
        Shape { cell: Cell::Lstm, reverse: false, lengths: None, projects: true }.check(&mut draw);
        Shape { cell: Cell::Lstm, reverse: true, lengths: Some([2, 4, 3]), projects: true }.check(&mut draw);
    }
}
