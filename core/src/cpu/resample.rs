//! Linear maps along dims, of which each output has few inputs: resizing by interpolation, and its transpose.

use super::math::Real;
use super::room::{Room, written};
use super::threads::{DisjointParts, parallel};

/// The interpolation between elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// The element at the rounded-down position: the one that older programs take for the nearest.
    Nearest,
    /// The nearest element.
    NearestExact,
    /// The two elements beside it, by their distances.
    #[default]
    Linear,
    /// The four elements around it, with the cubic polynomials of Keys for `a = -3/4`.
    Cubic,
}

/// The resizing of a dim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ResizedDim {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) mode: Interpolation,
    pub(crate) align_corners: bool,
    pub(crate) antialias: bool,
    /// The factor, if it is not the quotient of the sizes.
    pub(crate) factor: Option<f64>,
}

/// The elements that a thread takes at a time.
const TASK: usize = 1 << 14;

/// The map `y[i] = Σ weight[t] x[index[t]]`, over the `t` from `ends[i - 1]` to `ends[i]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Taps<T> {
    /// The number of inputs.
    inputs: usize,
    ends: Vec<usize>,
    index: Vec<usize>,
    weight: Vec<T>,
}

impl<T: Real> Taps<T> {
    /// The map that resizes a dim.
    ///
    /// Positions and weights are computed in the numbers of the loop, as PyTorch does, and rounded to `f32`
    /// before `floor`: in exact arithmetic, other elements would be the nearest ones of some.
    pub(crate) fn resizing(dim: ResizedDim) -> Taps<T> {
        let mut taps = Taps {
            inputs: dim.from,
            ends: Vec::with_capacity(dim.to),
            index: Vec::with_capacity(2 * dim.to),
            weight: Vec::with_capacity(2 * dim.to),
        };
        let step = step(dim);
        for i in 0..dim.to {
            match dim.mode {
                _ if dim.antialias => taps.smooth(dim, step, i),
                Interpolation::Nearest => {
                    let at = floor(step * T::from_f64(i as f64));
                    taps.push(at, T::ONE);
                }
                Interpolation::NearestExact => {
                    let at = floor(position(dim, step, i).max_zero() + T::HALF);
                    taps.push(at, T::ONE);
                }
                Interpolation::Linear if dim.from == dim.to => taps.push(i as i64, T::ONE),
                Interpolation::Linear => {
                    let at = position(dim, step, i).max_zero();
                    let (first, share) = split(at, dim.from);
                    taps.push(first, T::ONE - share);
                    taps.push(first + 1, share);
                }
                Interpolation::Cubic => {
                    let (first, share) = split(position(dim, step, i), dim.from);
                    for (k, weight) in cubic(share, 0).into_iter().enumerate() {
                        taps.push(first + k as i64 - 1, weight);
                    }
                }
            }
            taps.ends.push(taps.index.len());
        }
        taps
    }

    /// An input of the next output; those outside are the ones at the edges.
    fn push(&mut self, at: i64, weight: T) {
        self.index.push(at.clamp(0, self.inputs as i64 - 1) as usize);
        self.weight.push(weight);
    }

    /// The inputs under a filter that is as wide as the outputs are apart.
    fn smooth(&mut self, dim: ResizedDim, step: T, i: usize) {
        let (step, radius) = (step.to_f64(), if dim.mode == Interpolation::Cubic { 2.0 } else { 1.0 });
        let wide = step.max(1.0);
        let (support, center) = (radius * wide, step * (i as f64 + 0.5));
        let first = ((center - support + 0.5) as i64).max(0) as usize;
        let last = ((center + support + 0.5) as i64).clamp(0, dim.from as i64) as usize;
        let weights: Vec<f64> = (first..last)
            .map(|at| filter((at as f64 - center + 0.5) / wide, dim.mode == Interpolation::Cubic))
            .collect();
        let total: f64 = weights.iter().sum();
        for (at, weight) in (first..last).zip(weights) {
            self.push(at as i64, T::from_f64(if total == 0.0 { weight } else { weight / total }));
        }
    }

    /// The map in the other direction: `x[j] = Σ weight[t] y[i]`, over the `t` of `i` with `index[t] = j`.
    pub(crate) fn transposed(&self) -> Taps<T> {
        let mut ends = vec![0; self.inputs + 1];
        self.index.iter().for_each(|at| ends[at + 1] += 1);
        for at in 0..self.inputs {
            ends[at + 1] += ends[at];
        }
        let (mut next, mut start) = (ends.clone(), 0);
        let (mut index, mut weight) = (vec![0; self.index.len()], vec![T::ZERO; self.index.len()]);
        for (i, end) in self.ends.iter().enumerate() {
            for t in start..*end {
                let place = &mut next[self.index[t]];
                (index[*place], weight[*place]) = (i, self.weight[t]);
                *place += 1;
            }
            start = *end;
        }
        Taps { inputs: self.ends.len(), ends: ends.split_off(1), index, weight }
    }

    /// The number of outputs.
    pub(crate) fn outputs(&self) -> usize {
        self.ends.len()
    }

    /// The inputs of output `i` and their weights.
    #[inline(always)]
    fn of(&self, i: usize) -> (&[usize], &[T]) {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        (&self.index[start..self.ends[i]], &self.weight[start..self.ends[i]])
    }
}

/// The distance between the positions of two outputs in the input.
fn step<T: Real>(dim: ResizedDim) -> T {
    let number = |n: usize| T::from_f64(n as f64);
    match dim.align_corners && dim.mode != Interpolation::Nearest && dim.mode != Interpolation::NearestExact {
        true if dim.to > 1 => number(dim.from - 1) / number(dim.to - 1),
        true => T::ZERO,
        false => {
            dim.factor.map_or_else(|| number(dim.from) / number(dim.to), |factor| T::from_f64(1.0 / factor))
        }
    }
}

/// The position of output `i` in the input.
fn position<T: Real>(dim: ResizedDim, step: T, i: usize) -> T {
    let aligned = dim.align_corners && dim.mode != Interpolation::NearestExact;
    let i = T::from_f64(i as f64);
    if aligned { step * i } else { step * (i + T::HALF) - T::HALF }
}

fn floor<T: Real>(at: T) -> i64 {
    (at.to_f64() as f32).floor() as i64
}

/// The element before a position, and how far the position is after it.
fn split<T: Real>(at: T, inputs: usize) -> (i64, T) {
    let first = floor(at).min(inputs as i64 - 1);
    let share = at.to_f64() - first as f64;
    (first, T::from_f64(share.clamp(0.0, 1.0)))
}

/// The operations that the two loops of images need of a number beside [`Real`].
trait Positive {
    fn max_zero(self) -> Self;
}
impl<T: Real> Positive for T {
    fn max_zero(self) -> T {
        if self < T::ZERO { T::ZERO } else { self }
    }
}

/// The weights of the four elements around a position that is `share` after the second, or their derivatives
/// by it of this order: Keys, *Cubic convolution interpolation for digital image processing* (1981), with
/// `a = -3/4`.
pub(crate) fn cubic<T: Real>(share: T, order: u8) -> [T; 4] {
    const A: f64 = -0.75;
    const NEAR: [f64; 4] = [1.0, 0.0, -(A + 3.0), A + 2.0];
    const FAR: [f64; 4] = [-4.0 * A, 8.0 * A, -5.0 * A, A];
    let odd = order % 2 == 1;
    let value = |polynomial: [f64; 4], at: T, mirrored: bool| {
        let mut y = T::ZERO;
        for power in (usize::from(order)..4).rev() {
            let factor: usize = (0..usize::from(order)).map(|k| power - k).product();
            y = y * at + T::from_f64(polynomial[power] * factor as f64);
        }
        if mirrored && odd { -y } else { y }
    };
    let rest = T::ONE - share;
    [
        value(FAR, share + T::ONE, false),
        value(NEAR, share, false),
        value(NEAR, rest, true),
        value(FAR, rest + T::ONE, true),
    ]
}

/// The filter for antialiasing: a triangle, or the cubic polynomials with `a = -1/2`.
fn filter(at: f64, cubic: bool) -> f64 {
    const A: f64 = -0.5;
    let at = at.abs();
    match cubic {
        false => (1.0 - at).max(0.0),
        true if at < 1.0 => ((A + 2.0) * at - (A + 3.0)) * at * at + 1.0,
        true if at < 2.0 => (((at - 5.0) * at + 8.0) * at - 4.0) * A,
        true => 0.0,
    }
}

/// `y[o, i, k] = Σ weight[t] x[o, index[t], k]`.
pub(crate) fn apply<'y, T: Real>(
    x: &[T],
    [outer, inner]: [usize; 2],
    taps: &Taps<T>,
    y: &'y mut Room<T>,
) -> &'y mut [T] {
    let (inputs, outputs) = (taps.inputs, taps.outputs());
    assert!(x.len() == outer * inputs * inner && y.len() == outer * outputs * inner);
    let parts = DisjointParts::new(y);
    // A row is `inner` elements of the result, or without an inner dim all its outputs.
    let (rows, row) = if inner == 1 { (outer, outputs) } else { (outer * outputs, inner) };
    parallel(if row == 0 { 0 } else { rows }, TASK / row.max(1) + 1, |range| {
        for at in range {
            // SAFETY: rows do not overlap, and each is run by one thread.
            let y = unsafe { parts.part(at * row..(at + 1) * row) };
            if inner == 1 {
                let x = &x[at * inputs..(at + 1) * inputs];
                for (i, y) in y.iter_mut().enumerate() {
                    let (index, weight) = taps.of(i);
                    let mut sum = T::ZERO;
                    for (index, weight) in index.iter().zip(weight) {
                        sum += x[*index] * *weight;
                    }
                    y.write(sum);
                }
                continue;
            }
            let (index, weight) = taps.of(at % outputs);
            let x = &x[at / outputs * inputs * inner..][..inputs * inner];
            sum_rows(index, weight, x, y);
        }
    });
    // SAFETY: each row was written.
    unsafe { written(y) }
}

/// The sum of rows of `x`, which are as long as `y`, with weights.
fn sum_rows<T: Real>(index: &[usize], weight: &[T], x: &[T], y: &mut Room<T>) {
    let n = y.len();
    let row = |at: usize| &x[at * n..(at + 1) * n];
    let (first, rest) = match (index, weight) {
        ([], _) | (_, []) => {
            y.iter_mut().for_each(|y| {
                y.write(T::ZERO);
            });
            return;
        }
        ([a, b, ..], [u, v, ..]) => {
            for ((y, a), b) in y.iter_mut().zip(row(*a)).zip(row(*b)) {
                y.write(*a * *u + *b * *v);
            }
            (2, index.len())
        }
        ([a], [u, ..]) | ([a, ..], [u]) => {
            for (y, a) in y.iter_mut().zip(row(*a)) {
                y.write(*a * *u);
            }
            (1, 1)
        }
    };
    // SAFETY: the loops above wrote each element.
    let y = unsafe { written(y) };
    for t in first..rest {
        let weight = weight[t];
        for (y, x) in y.iter_mut().zip(row(index[t])) {
            *y += *x * weight;
        }
    }
}
