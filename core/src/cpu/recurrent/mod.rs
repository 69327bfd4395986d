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

mod step;
#[cfg(test)]
mod tests;

use super::math::Real;
use super::matmul::{Mat, MatmulElement, gemm};
use super::row::add_to;
use super::simd::vectorize;
use crate::cell::Cell;
use std::marker::PhantomData;
use step::{BackwardStep, ForwardStep};

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
                let gates = &mut gates[n * width..(n + 1) * width];
                let step = ForwardStep { cell: self.cell, hidden, of: PhantomData };
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

/// The elements of the vectors of [`RecurrentLayer::backward`] that grow with the steps.
pub(crate) fn backward_room(cell: Cell, y: usize, gates: usize, inner: usize) -> usize {
    let hidden = gates / cell.gates();
    let projected = if y == hidden { 0 } else { y + hidden };
    gates + y + projected + inner
}

/// Adds the rows of a matrix.
fn add_rows<T: Real>(sums: &mut [T], x: &[T]) {
    for row in x.chunks_exact(sums.len().max(1)) {
        add_to(sums, row);
    }
}
