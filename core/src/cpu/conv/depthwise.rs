//! Depthwise convolutions of `f32`, for which products of matrices are too small: each row of the result is the
//! sum of rows of the source, one for each tap.

use super::gathered::Gathered;
use super::windows::{ColumnSpan, runs};
use super::{To, volume};
use crate::cpu::math::Real;
use crate::cpu::matmul::MatmulElement;
use crate::cpu::room::{Room, fill};
use crate::cpu::row::{lane, steps};
use crate::cpu::simd::{Simd, Vectorized, vectorize};
use crate::cpu::threads::parallel;
use std::mem::MaybeUninit;

/// The multiply-adds that a thread takes at a time.
const TASK: usize = 1 << 18;

impl Gathered<'_> {
    /// Whether a channel of the output depends on one channel of the source alone, and
    /// [`write_rows`](Self::write_rows) is faster than products.
    pub(super) fn is_depthwise(&self) -> bool {
        std::ptr::eq(self.kind, f32::kind()) && self.groups > 1 && [self.rows, self.channels] == [1, 1]
    }

    /// Writes the results of all places to the output, which has room for them, if this
    /// [`is_depthwise`](Self::is_depthwise).
    pub(super) fn write_rows(&self, output: To) {
        let (taps, area) = (self.taps.len(), volume(&self.input));
        let (grid, area_of_output) = (self.grid, volume(&self.output));
        if volume(&grid) == 0 {
            return;
        }
        let mut spans = Vec::new();
        let windows = self.windows(0);
        for run in runs(grid, 0, volume(&grid)) {
            spans.extend(self.taps.iter().map(|tap| windows.span(&run, *tap)));
        }
        // SAFETY: the elements are `f32`.
        let source = unsafe { self.source.by_width::<f32>() };
        let cost = (taps * volume(&grid)).max(1);
        parallel(self.batch * self.groups, TASK.div_ceil(cost), |planes| {
            let mut apart = vec![MaybeUninit::uninit(); grid[2]];
            for plane in planes {
                let group = plane % self.groups;
                let source = &source[plane * area..][..area];
                // SAFETY: the accumulators are `f32`, one for each group.
                let bias = |bias: &Vec<u64>| unsafe { *bias.as_ptr().cast::<f32>().add(group) };
                let start = self.bias.as_ref().map_or(0.0, bias);
                for line in 0..grid[0] * grid[1] {
                    let place = [line / grid[1], line % grid[1], 0];
                    let [d, h, w] =
                        std::array::from_fn(|dim| place[dim] * self.spread[dim] + self.start[dim]);
                    let to = plane * area_of_output + (d * self.output[1] + h) * self.output[2] + w;
                    // SAFETY: the factor has the taps of each group. The places of a line are in the output,
                    // and no other task has them.
                    unsafe {
                        let factor = self.factor.ptr().cast::<f32>().add(group * self.factor.group_stride);
                        let factor = std::slice::from_raw_parts(factor, taps);
                        let spans = &spans[line * taps..][..taps];
                        let sums = RowSums { source, factor, spans, step: self.step[2], start };
                        let to = output.ptr().cast::<MaybeUninit<f32>>().add(to);
                        if self.spread[2] == 1 {
                            vectorize(sums, std::slice::from_raw_parts_mut(to, grid[2]));
                        } else {
                            vectorize(sums, &mut apart);
                            for (at, sum) in apart.iter().enumerate() {
                                to.add(at * self.spread[2]).write(*sum);
                            }
                        }
                    }
                }
            }
        });
    }
}

/// A row of the result: `start` plus, for each tap, the factor times a part of a row of the source.
struct RowSums<'a> {
    source: &'a [f32],
    factor: &'a [f32],
    spans: &'a [ColumnSpan],
    step: usize,
    start: f32,
}

impl Vectorized for RowSums<'_> {
    type Out<'a> = &'a mut Room<f32>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, y: &mut Room<f32>) {
        let start = [self.start];
        let [source, factors, start] = [self.source, self.factor, &start].map(|x| simd.numbers(x));
        // The results for which all taps are inside of the source.
        let (mut from, mut to) = (0, y.len());
        for span in self.spans {
            (from, to) = (from.max(span.start), to.min(span.end));
        }
        let y = simd.numbers_mut(fill(y, self.start));
        if self.step > 1 || from + PIECE > to {
            for (factor, span) in factors.iter().zip(self.spans) {
                add_row(*factor, &source[span.from..], self.step, &mut y[span.start..span.end]);
            }
            return;
        }
        for at in (0..from).chain(to..y.len()) {
            for (factor, span) in factors.iter().zip(self.spans) {
                if (span.start..span.end).contains(&at) {
                    add_row(*factor, &source[span.from + at - span.start..], 1, &mut y[at..=at]);
                }
            }
        }
        for at in (from..to).step_by(PIECE) {
            let at = at.min(to - PIECE);
            let piece = sum_of_taps(start[0], factors, self.spans, source, at);
            y[at..at + PIECE].copy_from_slice(&piece);
        }
    }
}

/// The neighboring results that are summed at a time.
const PIECE: usize = 32;

/// The results from the one at `at` on, where all taps are inside of the source. The sums stay in registers.
#[inline(always)]
fn sum_of_taps<T: Real>(
    start: T,
    factors: &[T],
    spans: &[ColumnSpan],
    source: &[T],
    at: usize,
) -> [T; PIECE] {
    let mut sums = [start; PIECE];
    for (factor, span) in factors.iter().zip(spans) {
        let x = &source[span.from + at - span.start..][..PIECE];
        for j in 0..steps::<T>(PIECE) {
            let j = lane::<T>(j);
            sums[j] = factor.mul_add(x[j], sums[j]);
        }
    }
    sums
}

/// `y ← y + a x`, with every `step`-th element of `x`.
#[inline(always)]
fn add_row<T: Real>(a: T, x: &[T], step: usize, y: &mut [T]) {
    if step == 1 {
        for (y, x) in y.iter_mut().zip(x) {
            *y = a.mul_add(*x, *y);
        }
    } else {
        for (y, x) in y.iter_mut().zip(x.iter().step_by(step)) {
            *y = a.mul_add(*x, *y);
        }
    }
}
