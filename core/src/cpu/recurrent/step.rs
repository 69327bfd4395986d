//! One step of one sequence, forward and backward. All but its exponentials takes little time beside the
//! products, so there is no copy for the widest vectors.

use super::super::exps::{sigmoid_all, tanh_all};
use super::super::math::Real;
use super::super::simd::{Simd, UpTo, Vectorized};
use crate::cell::Cell;
use std::marker::PhantomData;

/// Gates, what is kept for the backward pass, cells, and state.
pub(super) type StepOut<'a, T> = (&'a mut [T], &'a mut [T], &'a mut [T], &'a mut [T]);

/// A step of one sequence: the gates become their activations, and the cells and the state those after the
/// step.
pub(super) struct ForwardStep<T> {
    pub(super) cell: Cell,
    pub(super) hidden: usize,
    pub(super) of: PhantomData<T>,
}

impl<T: Real> Vectorized for ForwardStep<T> {
    type Out<'a> = StepOut<'a, T>;
    const UP_TO: UpTo = UpTo::Avx2;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, (gates, inner, c, h): StepOut<'_, T>) {
        let (gates, inner) = (simd.numbers_mut(gates), simd.numbers_mut(inner));
        step::<S, T>(simd, self.cell, self.hidden, (gates, inner, simd.numbers_mut(c), simd.numbers_mut(h)));
    }
}

#[inline(always)]
fn step<S: Simd, T: Real>(simd: S, cell: Cell, n: usize, (gates, inner, c, h): StepOut<'_, S::Number<T>>) {
    let h = &mut h[..n];
    match cell {
        Cell::Tanh => {
            let gates = &mut gates[..n];
            tanh_all(simd.plain_mut::<T>(gates));
            h.copy_from_slice(gates);
        }
        Cell::Relu => {
            for k in 0..n {
                gates[k] = gates[k].maximum(Real::ZERO);
                h[k] = gates[k];
            }
        }
        Cell::Lstm => {
            let (sigmoids, rest) = gates.split_at_mut(2 * n);
            let (g, o) = rest.split_at_mut(n);
            sigmoid_all(simd.plain_mut::<T>(sigmoids));
            tanh_all(simd.plain_mut::<T>(g));
            sigmoid_all(simd.plain_mut::<T>(o));
            let (i, f) = sigmoids.split_at(n);
            let (inner, c) = (&mut inner[..n], &mut c[..n]);
            for k in 0..n {
                c[k] = f[k] * c[k] + i[k] * g[k];
                inner[k] = c[k];
                h[k] = c[k];
            }
            tanh_all(simd.plain_mut::<T>(h));
            for k in 0..n {
                h[k] *= o[k];
            }
        }
        Cell::Gru => {
            let (rz, new) = gates.split_at_mut(2 * n);
            sigmoid_all(simd.plain_mut::<T>(rz));
            let ((r, z), inner) = (rz.split_at(n), &inner[..n]);
            let new = &mut new[..n];
            for k in 0..n {
                new[k] += r[k] * inner[k];
            }
            tanh_all(simd.plain_mut::<T>(new));
            for k in 0..n {
                h[k] = (h[k] - new[k]) * z[k] + new[k];
            }
        }
    }
}

/// The backward pass of [`ForwardStep`]: the gradients of the gates before their activations.
#[derive(Clone, Copy)]
pub(super) struct BackwardStep<'a, T> {
    pub(super) cell: Cell,
    pub(super) hidden: usize,
    pub(super) gates: &'a [T],
    pub(super) inner: &'a [T],
    /// The cells of an LSTM or the state of a GRU before the step.
    pub(super) before: &'a [T],
    pub(super) dh: &'a [T],
}

impl<T: Real> Vectorized for BackwardStep<'_, T> {
    /// The gradients of the gates, of what enters the last gate of a GRU, of the cells, and the state before
    /// its projection.
    type Out<'a> = StepOut<'a, T>;
    const UP_TO: UpTo = UpTo::Avx2;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, (dgates, dinner, dc, full): StepOut<'_, T>) {
        let (gates, inner) = (simd.numbers(self.gates), simd.numbers(self.inner));
        let (before, dh) = (simd.numbers(self.before), simd.numbers(self.dh));
        let (dgates, dinner) = (simd.numbers_mut(dgates), simd.numbers_mut(dinner));
        let out = (dgates, dinner, simd.numbers_mut(dc), simd.numbers_mut(full));
        step_back::<S, T>(
            simd,
            BackwardStep { cell: self.cell, hidden: self.hidden, gates, inner, before, dh },
            out,
        );
    }
}

#[inline(always)]
fn step_back<S: Simd, T: Real>(
    simd: S,
    back: BackwardStep<'_, S::Number<T>>,
    (dgates, dinner, dc, full): StepOut<'_, S::Number<T>>,
) {
    let BackwardStep { cell, hidden: n, gates, inner, before, dh } = back;
    let (zero, one, dh) = (S::Number::<T>::ZERO, S::Number::<T>::ONE, &dh[..n]);
    match cell {
        Cell::Tanh => {
            for k in 0..n {
                dgates[k] = dh[k] * (one - gates[k] * gates[k]);
            }
        }
        Cell::Relu => {
            for k in 0..n {
                dgates[k] = if gates[k] > zero { dh[k] } else { zero };
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
            tanh_all(simd.plain_mut::<T>(d_o));
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
