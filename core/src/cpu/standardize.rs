//! Normalization of a tensor `[outer, channels, inner]` with statistics over groups of its runs, forward and
//! backward: the loops of batch, group and instance normalization.
//!
//! A run is the `inner` elements of one channel. The loops here sum over each run and map its elements with
//! numbers of the run, and know nothing of groups. What happens between the loops is arithmetic on a few
//! numbers, which `crate::ops::standardize` does in `f64`.

use super::math::Real;
use super::room::{Room, written};
use super::row::{sum, sum_products};
use super::simd::{Simd, UpTo, Vectorized, vectorize};
use super::threads::{DisjointParts, parallel};

/// The elements that a thread takes at a time. Neither this nor the order of the sums depends on the number
/// of threads.
const TASK: usize = 1 << 14;

/// A tensor as runs: `x[outer, channels, inner]`, dense.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunLayout {
    pub(crate) channels: usize,
    pub(crate) inner: usize,
}

/// Numbers for runs: one for each run, or one for each channel, the same for all `outer`.
type OfRuns<'a, T> = &'a [T];

/// What [`sums`] adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terms {
    /// `Σ x` and `Σ (x - own)²`, where `own` is the mean of the run.
    Moments,
    /// `Σ x`.
    Values,
    /// `Σ (x - mean)²`.
    Squares,
    /// `Σ g` and `Σ g (x - mean)`.
    Products,
}

/// The sums over each run; with one element in a run, over each channel. The second is 0 unless there are
/// two terms. There are no [`Terms::Moments`] of a channel.
pub(crate) fn sums<T: Real>(
    terms: Terms,
    x: &[T],
    g: &[T],
    layout: RunLayout,
    mean: OfRuns<'_, T>,
    by_channel: bool,
) -> [Vec<f64>; 2] {
    let RunLayout { channels, inner } = layout;
    if x.is_empty() {
        return [Vec::new(), Vec::new()];
    }
    let runs = x.len() / inner;
    if inner > 1 || !by_channel {
        let mut out = [vec![0.0; runs], vec![0.0; runs]];
        let [first, second] = &mut out;
        let parts = (DisjointParts::new(first), DisjointParts::new(second));
        parallel(runs, (TASK / inner).max(1), |range| {
            let elements = range.start * inner..range.end * inner;
            // SAFETY: ranges of different threads do not overlap.
            let out = unsafe { (parts.0.part(range.clone()), parts.1.part(range.clone())) };
            let (x, g) = (&x[elements.clone()], &g[elements]);
            vectorize(RunSums { terms, x, g, inner, mean, from: range.start }, out);
        });
        return out;
    }
    // Each task adds up some rows of all channels.
    let rows = (TASK / channels).max(1);
    let tasks = (runs / channels).div_ceil(rows);
    let mut partial = vec![T::ZERO; tasks * 2 * channels];
    let parts = DisjointParts::new(&mut partial);
    parallel(tasks, 1, |range| {
        for task in range {
            let elements = task * rows * channels..((task + 1) * rows * channels).min(x.len());
            // SAFETY: each task has its own part.
            let out = unsafe { parts.part(2 * task * channels..2 * (task + 1) * channels) };
            let (x, g) = (&x[elements.clone()], &g[elements]);
            vectorize(ColumnSums { terms, x, g, mean }, out.split_at_mut(channels));
        }
    });
    let mut out = [vec![0.0; channels], vec![0.0; channels]];
    for (at, part) in partial.iter().enumerate() {
        out[at / channels % 2][at % channels] += part.to_f64();
    }
    out
}

struct RunSums<'a, T> {
    terms: Terms,
    x: &'a [T],
    g: &'a [T],
    inner: usize,
    mean: OfRuns<'a, T>,
    from: usize,
}

impl<T: Real> Vectorized for RunSums<'_, T> {
    type Out<'a> = (&'a mut [f64], &'a mut [f64]);
    const UP_TO: UpTo = UpTo::for_memory::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, (first, second): (&mut [f64], &mut [f64])) {
        let (x, g, mean) = (simd.numbers(self.x), simd.numbers(self.g), simd.numbers(self.mean));
        for run in 0..first.len() {
            let range = run * self.inner..(run + 1) * self.inner;
            let center = match mean.len() {
                0 => S::Number::<T>::ZERO,
                len => mean[(self.from + run) % len],
            };
            (first[run], second[run]) = sums_of_run(self.terms, &x[range.clone()], &g[range], center);
        }
    }
}

#[inline(always)]
fn sums_of_run<T: Real>(terms: Terms, x: &[T], g: &[T], mean: T) -> (f64, f64) {
    let of = if terms == Terms::Products { g } else { x };
    let total = if terms == Terms::Squares { T::ZERO } else { sum(of) };
    let centers = match terms {
        Terms::Moments => [total / T::from_f64(x.len() as f64); 2],
        Terms::Values => return (total.to_f64(), 0.0),
        Terms::Squares => [mean; 2],
        Terms::Products => [T::ZERO, mean],
    };
    let products = sum_products(of, x, centers).to_f64();
    if terms == Terms::Squares { (products, 0.0) } else { (total.to_f64(), products) }
}

/// The same for runs of one element, added up over the rows.
struct ColumnSums<'a, T> {
    terms: Terms,
    x: &'a [T],
    g: &'a [T],
    mean: OfRuns<'a, T>,
}

impl<T: Real> Vectorized for ColumnSums<'_, T> {
    type Out<'a> = (&'a mut [T], &'a mut [T]);
    const UP_TO: UpTo = UpTo::for_memory::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, (first, second): (&mut [T], &mut [T])) {
        let (x, g, mean) = (simd.numbers(self.x), simd.numbers(self.g), simd.numbers(self.mean));
        sums_of_columns(self.terms, x, g, mean, simd.numbers_mut(first), simd.numbers_mut(second));
    }
}

#[inline(always)]
fn sums_of_columns<T: Real>(terms: Terms, x: &[T], g: &[T], mean: &[T], first: &mut [T], second: &mut [T]) {
    let n = first.len();
    let second = &mut second[..n];
    for row in 0..x.len() / n {
        let (x, g) = (&x[row * n..][..n], &g[row * n..][..n]);
        match terms {
            Terms::Moments => unreachable!("a run of one element has no deviation"),
            Terms::Values => {
                for j in 0..n {
                    first[j] += x[j];
                }
            }
            Terms::Squares => {
                let mean = &mean[..n];
                for j in 0..n {
                    first[j] += (x[j] - mean[j]) * (x[j] - mean[j]);
                }
            }
            Terms::Products => {
                let mean = &mean[..n];
                for j in 0..n {
                    first[j] += g[j];
                    second[j] += g[j] * (x[j] - mean[j]);
                }
            }
        }
    }
}

/// `y = (x - mean) across + shift`, or with `g` and `along`, `y = g along + (x - mean) across + shift`.
#[derive(Clone, Copy)]
pub(crate) struct AffineMap<'a, T> {
    pub(crate) x: &'a [T],
    pub(crate) g: Option<(&'a [T], OfRuns<'a, T>)>,
    pub(crate) mean: OfRuns<'a, T>,
    pub(crate) across: OfRuns<'a, T>,
    pub(crate) shift: OfRuns<'a, T>,
}

impl<T: Real> AffineMap<'_, T> {
    pub(crate) fn write(self, layout: RunLayout, y: &mut Room<T>) -> &mut [T] {
        let RunLayout { channels, inner } = layout;
        assert_eq!(y.len(), self.x.len());
        let parts = DisjointParts::new(y);
        // With one element in a run, a task takes whole rows of channels.
        let unit = if inner == 1 { channels } else { inner };
        let units = self.x.len().checked_div(unit).unwrap_or(0);
        parallel(units, (TASK / unit.max(1)).max(1), |range| {
            let elements = range.start * unit..range.end * unit;
            // SAFETY: ranges of different threads do not overlap.
            let y = unsafe { parts.part(elements.clone()) };
            let from = elements.start.checked_div(inner).unwrap_or(0);
            let map = AffineMap {
                x: &self.x[elements.clone()],
                g: self.g.map(|(g, along)| (&g[elements], along)),
                ..self
            };
            vectorize(Runs { map, layout, from }, y);
        });
        // SAFETY: the loop writes all elements of a range, and the ranges make up all units.
        unsafe { written(y) }
    }
}

/// A part of the runs, from number `from`.
struct Runs<'a, T> {
    map: AffineMap<'a, T>,
    layout: RunLayout,
    from: usize,
}

impl<T: Real> Vectorized for Runs<'_, T> {
    type Out<'a> = &'a mut Room<T>;
    const UP_TO: UpTo = UpTo::for_memory::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, y: &mut Room<T>) {
        let AffineMap { x, g, mean, across, shift } = self.map;
        let (x, mean, across, shift) =
            (simd.numbers(x), simd.numbers(mean), simd.numbers(across), simd.numbers(shift));
        let g = g.map(|(g, along)| (simd.numbers(g), simd.numbers(along)));
        let map = AffineMap { x, g, mean, across, shift };
        let (inner, y) = (self.layout.inner, simd.room(y));
        if inner == 1 {
            map_rows(map, self.layout.channels, self.from, y);
        } else {
            map_runs(map, inner, self.from, y);
        }
    }
}

/// The map for runs of one element: rows of channels, each with its own numbers.
#[inline(always)]
fn map_rows<T: Real>(map: AffineMap<'_, T>, channels: usize, from: usize, y: &mut Room<T>) {
    for (row, y) in y.chunks_exact_mut(channels).enumerate() {
        let at = (from + row * channels) % map.mean.len();
        let (mean, across) = (&map.mean[at..][..channels], &map.across[at..][..channels]);
        let shift = &map.shift[at..][..channels];
        let x = &map.x[row * channels..][..channels];
        if let Some((g, along)) = map.g {
            let (g, along) = (&g[row * channels..][..channels], &along[at..][..channels]);
            for j in 0..channels {
                y[j].write(g[j] * along[j] + ((x[j] - mean[j]) * across[j] + shift[j]));
            }
        } else {
            for j in 0..channels {
                y[j].write((x[j] - mean[j]) * across[j] + shift[j]);
            }
        }
    }
}

/// The map for longer runs.
#[inline(always)]
fn map_runs<T: Real>(map: AffineMap<'_, T>, inner: usize, from: usize, y: &mut Room<T>) {
    for (run, y) in y.chunks_exact_mut(inner).enumerate() {
        let at = (from + run) % map.mean.len();
        let (mean, across, shift) = (map.mean[at], map.across[at], map.shift[at]);
        let x = &map.x[run * inner..][..inner];
        if let Some((g, along)) = map.g {
            let (g, along) = (&g[run * inner..][..inner], along[at]);
            for j in 0..inner {
                y[j].write(g[j] * along + ((x[j] - mean) * across + shift));
            }
        } else {
            for j in 0..inner {
                y[j].write((x[j] - mean) * across + shift);
            }
        }
    }
}
