//! Moves elements by index, along the middle of `[outer, n, inner]`, or by mask.
//!
//! A position counts along the dim of `n`. Callers check for [`strays`](stray) first, because the loops rely
//! on every position being in range.

use super::room::{self, Room};
use super::threads::{DisjointParts, each, each_part, parallel, write_parts};
use crate::dtype::{Element, Scalar};
use std::hint::black_box;
use std::ops::Range;

/// The elements that a thread moves at a time.
const TASK: usize = 1 << 14;
/// The fewest columns that a thread takes, so that no two threads write to one cache line.
const COLUMNS: usize = 32;

/// With so many terms for an element of the result, sums are taken in `f64`: half types and then `f32` lose
/// digits, and a wider copy of the result costs next to nothing.
const MANY: usize = 32;

/// The combination of a new element with the existing one.
#[derive(Clone, Copy)]
pub(crate) enum Combine {
    Set,
    Add,
    Mul,
    /// The larger one; NaN if there is one.
    Max,
    /// The smaller one; NaN if there is one.
    Min,
}

/// The first position that is outside of a dim of `n` and is not `skip`.
pub(crate) fn stray(positions: &[i64], n: usize, skip: Option<i64>) -> Option<i64> {
    positions.iter().copied().find(|at| *at as u64 >= n as u64 && Some(*at) != skip)
}

/// `y[o, j, i] = x[o, positions[j], i]`.
pub(crate) fn select<'a, T: Copy + Send + Sync>(
    x: &[T],
    [_, n, inner]: [usize; 3],
    positions: &[i64],
    y: &'a mut Room<T>,
) -> &'a mut [T] {
    assert!(y.len().is_multiple_of(inner.max(1)), "whole rows of {inner}");
    let rows = (TASK / inner.max(1)).max(1);
    write_parts(y, (rows * inner).max(1), &|task, y| {
        let first = task * rows;
        let (mut o, mut j) = (first / positions.len(), first % positions.len());
        for row in y.chunks_exact_mut(inner) {
            let from = (o * n + positions[j] as usize) * inner;
            match inner {
                1 => room::fill(row, x[from]),
                _ => room::copy(row, &x[from..][..inner]),
            };
            j += 1;
            if j == positions.len() {
                (o, j) = (o + 1, 0);
            }
        }
        // SAFETY: a part is made up of rows of `inner` elements, each of which is written.
        unsafe { room::written(y) }
    })
}

/// `y[o, j, i] = x[o, positions[o, j, i], i]`.
pub(crate) fn gather<'a, T: Copy + Send + Sync>(
    x: &[T],
    [outer, n, inner]: [usize; 3],
    positions: &[i64],
    y: &'a mut Room<T>,
) -> &'a mut [T] {
    assert!(y.len().is_multiple_of((outer * inner).max(1)), "whole rows of {inner} in {outer} slabs");
    let slab = (y.len() / outer.max(1)).max(1);
    // A single slab can be cut between any two rows; several slabs are not cut.
    let part =
        if outer == 1 { (TASK / inner.max(1)).max(1) * inner.max(1) } else { (TASK / slab).max(1) * slab };
    write_parts(y, part, &|task, y| {
        let positions = &positions[task * part..][..y.len()];
        for from in (0..y.len()).step_by(slab) {
            let o = if outer == 1 { 0 } else { (task * part + from) / slab };
            let x = &x[o * n * inner..][..n * inner];
            let mut column = 0;
            for k in from..y.len().min(from + slab) {
                y[k].write(x[positions[k] as usize * inner + column]);
                column += 1;
                if column == inner {
                    column = 0;
                }
            }
        }
        // SAFETY: a part is made up of whole rows of `inner` elements with a position for each, all of which
        // are written.
        unsafe { room::written(y) }
    })
}

/// `a` combined with `b`, in the arithmetic of the dtype. If the compiler knows `how`, it removes the
/// conversions to [`Scalar`]: a sum of `f32` is one instruction.
#[inline(always)]
fn combined<T: Element>(how: Combine, a: T, b: T) -> T {
    let float = |a: f64, b: f64| match how {
        Combine::Set => b,
        Combine::Add => a + b,
        Combine::Mul => a * b,
        _ if a.is_nan() || b.is_nan() => f64::NAN,
        Combine::Max => a.max(b),
        Combine::Min => a.min(b),
    };
    let int = |a: i64, b: i64| match how {
        Combine::Set => b,
        Combine::Add => a.wrapping_add(b),
        Combine::Mul => a.wrapping_mul(b),
        Combine::Max => a.max(b),
        Combine::Min => a.min(b),
    };
    T::from_scalar(match (a.to_scalar(), b.to_scalar()) {
        (Scalar::Int(a), Scalar::Int(b)) => Scalar::Int(int(a, b)),
        (a, b) => Scalar::Float(float(a.to_f64(), b.to_f64())),
    })
}

/// The positions in `y` of the elements of `x`.
#[derive(Clone, Copy)]
pub(crate) enum TargetPositions<'a> {
    /// `x[o, j, i]` goes to `y[o, positions[o, j, i], i]`.
    OfElements(&'a [i64]),
    /// `x[o, j, i]` goes to `y[o, positions[j], i]`.
    OfRows(&'a [i64]),
}

/// Replaces the element of `y` at the position of each element of `x`, in the order of `j`.
pub(crate) fn replace<T: Copy + Send + Sync>(
    x: &[T],
    sizes: [usize; 3],
    positions: TargetPositions<'_>,
    y: &mut [T],
) {
    scatter_by(|_, b| b, x, sizes, positions, y);
}

/// Adds each element of `x` to the element of `y` at its position, in the order of `j`.
pub(crate) fn add<T: Element>(x: &[T], sizes: [usize; 3], positions: TargetPositions<'_>, y: &mut [T]) {
    scatter_by(|a, b| combined(Combine::Add, a, b), x, sizes, positions, y);
}

/// [`add`] of narrow floats. If there are many terms, sums are taken in `f64`.
pub(crate) fn add_floats<T: Element>(
    x: &[T],
    sizes: [usize; 3],
    positions: TargetPositions<'_>,
    y: &mut [T],
) {
    if x.len() / MANY < y.len() {
        return add(x, sizes, positions, y);
    }
    let mut sums = room::vec_of(y.len(), |sums| room::write_each(sums, |i| y[i].to_scalar().to_f64()));
    scatter_by(|sum, x: T| sum + x.to_scalar().to_f64(), x, sizes, positions, &mut sums);
    for (y, sum) in y.iter_mut().zip(&sums) {
        *y = T::from_scalar(Scalar::Float(*sum));
    }
}

/// Combines each element of `x` with the element of `y` at its position, in the order of `j`. One loop for
/// all ways, which are rare but for sums.
pub(crate) fn combine<T: Element>(
    how: Combine,
    x: &[T],
    sizes: [usize; 3],
    positions: TargetPositions<'_>,
    y: &mut [T],
) {
    // Otherwise the compiler makes a loop for each way.
    scatter_by(|a, b| combined(black_box(how), a, b), x, sizes, positions, y);
}

/// [`combine`] with the larger or the smaller one of two `f32`; NaN if there is one. Its own loop takes a
/// fifth of the time.
pub(crate) fn extremes(
    is_max: bool,
    x: &[f32],
    sizes: [usize; 3],
    positions: TargetPositions<'_>,
    y: &mut [f32],
) {
    match is_max {
        true => scatter_by(|a: f32, b: f32| if b > a || b.is_nan() { b } else { a }, x, sizes, positions, y),
        false => scatter_by(|a: f32, b: f32| if b < a || b.is_nan() { b } else { a }, x, sizes, positions, y),
    }
}

/// Elements to be combined with others. It has the loops; what divides them among threads is compiled once.
trait Terms: Sync {
    /// Combines the elements from `x` on with those of `y` in a range.
    ///
    /// # Safety
    /// No other thread has elements of this range.
    unsafe fn combine_row(&self, x: usize, y: Range<usize>);

    /// Combines the elements from `x` on with those at the positions in a slab of `y`, of rows of `inner`.
    ///
    /// # Safety
    /// No other thread has elements of this slab.
    unsafe fn combine_each(&self, x: usize, positions: &[i64], inner: usize, y: Range<usize>);
}

/// `y` combined with `x` by `join`.
struct Joined<'a, T, S, J> {
    join: J,
    x: &'a [T],
    y: DisjointParts<'a, S>,
}

impl<T: Copy + Sync, S: Copy + Send, J: Fn(S, T) -> S + Sync> Terms for Joined<'_, T, S, J> {
    unsafe fn combine_row(&self, x: usize, y: Range<usize>) {
        // SAFETY: the caller's contract.
        let y = unsafe { self.y.part(y) };
        let x = &self.x[x..][..y.len()];
        for i in 0..y.len() {
            y[i] = (self.join)(y[i], x[i]);
        }
    }

    unsafe fn combine_each(&self, x: usize, positions: &[i64], inner: usize, y: Range<usize>) {
        // SAFETY: the caller's contract.
        let y = unsafe { self.y.part(y) };
        let x = &self.x[x..][..positions.len()];
        let mut column = 0;
        for k in 0..x.len() {
            let there = &mut y[positions[k] as usize * inner + column];
            *there = (self.join)(*there, x[k]);
            column += 1;
            if column == inner {
                column = 0;
            }
        }
    }
}

fn scatter_by<T: Copy + Sync, S: Copy + Send>(
    join: impl Fn(S, T) -> S + Sync,
    x: &[T],
    sizes: [usize; 3],
    positions: TargetPositions<'_>,
    y: &mut [S],
) {
    let lens = [x.len(), y.len()];
    scatter(&Joined { join, x, y: DisjointParts::new(y) }, lens, sizes, positions);
}

fn scatter(terms: &dyn Terms, [x, y]: [usize; 2], sizes: [usize; 3], positions: TargetPositions<'_>) {
    if x == 0 || y == 0 {
        return;
    }
    match positions {
        TargetPositions::OfElements(positions) => scatter_elements(terms, x, sizes, positions),
        // Rows of one element.
        TargetPositions::OfRows(positions) if sizes[0] * sizes[2] == 1 => {
            scatter_elements(terms, x, sizes, positions);
        }
        TargetPositions::OfRows(positions) => scatter_rows(terms, sizes, positions),
    }
}

fn scatter_elements(terms: &dyn Terms, x: usize, [outer, n, inner]: [usize; 3], positions: &[i64]) {
    let (slab, whole) = (x / outer, n * inner);
    let slabs = (TASK / slab).max(1);
    each(outer.div_ceil(slabs), &|task| {
        for o in task * slabs..((task + 1) * slabs).min(outer) {
            let positions = &positions[o * slab..(o + 1) * slab];
            // SAFETY: each slab is taken once.
            unsafe { terms.combine_each(o * slab, positions, inner, o * whole..(o + 1) * whole) };
        }
    });
}

fn scatter_rows(terms: &dyn Terms, [outer, n, inner]: [usize; 3], positions: &[i64]) {
    let count = positions.len();
    // Several slabs are not cut. Of a single one, each thread takes some columns of all rows. The terms of a
    // sum have the same order either way.
    let is_cut = outer == 1 && count * inner > 2 * TASK && rayon::current_num_threads() > 1;
    let width = if is_cut { (TASK / count).max(COLUMNS).min(inner) } else { inner };
    let (blocks, grain) = (inner.div_ceil(width), (TASK / (count * width)).max(1));
    parallel(outer * blocks, grain, |tasks| {
        // Columns that are adjacent are taken together.
        let (slabs, columns) = match blocks {
            1 => (tasks, 0..inner),
            _ => (0..1, tasks.start * width..(tasks.end * width).min(inner)),
        };
        for o in slabs {
            for (j, at) in positions.iter().enumerate() {
                assert!((*at as usize) < n, "the caller has checked the positions");
                let (from, to) = ((o * count + j) * inner, (o * n + *at as usize) * inner);
                // SAFETY: slabs and columns of different threads do not overlap.
                unsafe { terms.combine_row(from + columns.start, to + columns.start..to + columns.end) };
            }
        }
    });
}

/// For each task of [`masked`], how many elements of the mask before it are true; the last is for all.
pub(crate) fn trues_before(mask: &[bool]) -> Vec<usize> {
    let mut before = vec![0; mask.len().div_ceil(TASK) + 1];
    each_part(&mut before[1..], 1, &|task, count| {
        let mask = &mask[task * TASK..mask.len().min((task + 1) * TASK)];
        count[0] = mask.iter().map(|keep| usize::from(*keep)).sum();
    });
    for task in 1..before.len() {
        before[task] += before[task - 1];
    }
    before
}

/// The elements of `x` where `mask` is true, of which there are so many [before each task](trues_before).
pub(crate) fn masked<'a, T: Copy + Send + Sync>(
    x: &[T],
    mask: &[bool],
    before: &[usize],
    y: &'a mut Room<T>,
) -> &'a mut [T] {
    assert_eq!((before[before.len() - 1], before.len() - 1), (y.len(), mask.len().div_ceil(TASK)));
    let parts = DisjointParts::new(&mut *y);
    each(before.len() - 1, &|task| {
        // SAFETY: each task has its own part.
        let y = unsafe { parts.part(before[task]..before[task + 1]) };
        let range = task * TASK..mask.len().min((task + 1) * TASK);
        let mut count = 0;
        for (x, keep) in x[range.clone()].iter().zip(&mask[range]) {
            // One more than there is room for is not kept, and not written.
            if let Some(y) = y.get_mut(count) {
                y.write(*x);
            }
            count += usize::from(*keep);
        }
        assert_eq!(count, y.len(), "room for the elements of the mask");
    });
    // SAFETY: each task writes the elements of its part, one after another.
    unsafe { room::written(y) }
}

/// Sets the marks at `positions`.
pub(crate) fn mark(positions: &[i64], marks: &mut [bool]) {
    for at in positions {
        marks[*at as usize] = true;
    }
}

/// The positions of the true elements in a dense tensor with `sizes`, one after another, with an index for
/// each dim.
pub(crate) fn places(truth: &[bool], sizes: &[usize]) -> Vec<i64> {
    let mut places = Vec::new();
    for (mut at, _) in truth.iter().enumerate().filter(|(_, truth)| **truth) {
        let first = places.len();
        places.resize(first + sizes.len(), 0);
        for (place, size) in places[first..].iter_mut().zip(sizes).rev() {
            *place = (at % size) as i64;
            at /= size;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_split_among_threads_gives_the_plain_sum() {
        for [outer, n, inner, count] in [[1, 7, 1, 40_000], [1, 5, 300, 200], [300, 5, 3, 40], [2, 3, 1, 0]] {
            let positions: Vec<i64> = (0..count).map(|j| (j * j % n) as i64).collect();
            let x: Vec<i64> = (0..outer * count * inner).map(|k| k as i64).collect();
            let mut want = vec![1; outer * n * inner];
            for (k, x) in x.iter().enumerate() {
                let (o, j, i) = (k / (count * inner), k / inner % count, k % inner);
                want[(o * n + positions[j] as usize) * inner + i] += x;
            }
            let mut rows = vec![1; want.len()];
            add(&x, [outer, n, inner], TargetPositions::OfRows(&positions), &mut rows);
            assert_eq!(rows, want);
            let spread: Vec<i64> = (0..x.len()).map(|k| positions[k / inner % count]).collect();
            let mut scattered = vec![1; want.len()];
            add(&x, [outer, n, inner], TargetPositions::OfElements(&spread), &mut scattered);
            assert_eq!(scattered, want);
            let selected = room::vec_of(x.len(), |y| select(&want, [outer, n, inner], &positions, y));
            let gathered = room::vec_of(x.len(), |y| gather(&want, [outer, n, inner], &spread, y));
            for (k, found) in selected.iter().enumerate() {
                let (o, i) = (k / (count * inner), k % inner);
                assert_eq!(*found, want[(o * n + spread[k] as usize) * inner + i]);
            }
            assert_eq!(selected, gathered);
        }
    }

    #[test]
    fn combinations() {
        assert_eq!(combined(Combine::Mul, i64::MAX, 2), -2);
        assert!(
            combined(Combine::Max, f32::NAN, 1.0).is_nan() && combined(Combine::Min, 1.0, f64::NAN).is_nan()
        );
        // Rounded once, as by the type itself.
        let (a, b) = (1.0f32 + f32::EPSILON, f32::EPSILON / 2.0);
        assert_eq!(combined(Combine::Add, a, b), a + b);
    }

    #[test]
    fn strays_and_places() {
        assert_eq!(stray(&[0, 4, -1], 5, None), Some(-1));
        assert_eq!(stray(&[0, 4, -1], 5, Some(-1)), None);
        assert_eq!(places(&[false, true, false, false, false, true], &[2, 3]), [0, 1, 1, 2]);
        assert_eq!(places(&[true], &[]), [0i64; 0]);
    }
}
