//! Reductions of contiguous data: all of a slice, its rows, or a dim in the middle.
//!
//! A reduction of floats is a [`FoldKernel`]; the loops that it shares with the others are here. Those of
//! integers are in [`plain`]. Partial results are combined in an order that depends only on the sizes, so
//! that the result is the same for any number of threads. The order is a tree, so that a sum of `n` numbers
//! has an error of at most 64 + log₂ n roundings, and usually of one or two.

pub(crate) mod cast;
pub(crate) mod plain;

use super::math::Real;
use super::room::{Room, check_is, copy, fill, vec_of, write_each, written};
use super::row::{apart, lane, steps};
use super::simd::{Simd, UpTo, Vectorized, vectorize};
use super::threads::{WritePart, write_parts_of};
use std::mem::MaybeUninit;

/// A reduction of floats to one, whose loops run in lanes and as trees. They are compiled for the CPU's
/// widest vectors.
///
/// Partial results can be of another form than the result, see [`finish`](Self::finish).
pub(crate) trait FoldKernel: Copy + Send + Sync {
    /// Whether the result is the same in any order, and if elements are added twice. Adding one takes more
    /// than one instruction then, so that loops do not wait for memory.
    const IS_EXACT: bool = false;
    /// The partial result for no elements.
    fn start<T: Real>(self) -> T;
    /// Adds an element to a partial result.
    fn add<T: Real>(self, acc: T, x: T) -> T;
    /// Combines two partial results.
    fn join<T: Real>(self, a: T, b: T) -> T;
    /// The result with this partial result, and the other way around.
    #[inline(always)]
    fn finish<T: Real>(self, acc: T) -> T {
        acc
    }
}

/// `Σ x`.
#[derive(Clone, Copy)]
pub(crate) struct Sum;
/// `Σ x²`.
#[derive(Clone, Copy)]
pub(crate) struct SumSquares;
/// The largest element or the smallest, or NaN if there is one.
#[derive(Clone, Copy)]
pub(crate) struct Extreme {
    /// 1 for the largest, -1 for the smallest. The loops look for the largest product with it.
    sign: f64,
}

/// The largest element. For no elements it is `-∞`.
pub(crate) const MAX: Extreme = Extreme { sign: 1.0 };
/// The smallest element. For no elements it is `∞`.
pub(crate) const MIN: Extreme = Extreme { sign: -1.0 };

impl FoldKernel for Sum {
    #[inline(always)]
    fn start<T: Real>(self) -> T {
        T::ZERO
    }

    #[inline(always)]
    fn add<T: Real>(self, acc: T, x: T) -> T {
        acc + x
    }

    #[inline(always)]
    fn join<T: Real>(self, a: T, b: T) -> T {
        a + b
    }
}

impl FoldKernel for SumSquares {
    #[inline(always)]
    fn start<T: Real>(self) -> T {
        T::ZERO
    }

    #[inline(always)]
    fn add<T: Real>(self, acc: T, x: T) -> T {
        acc + x * x
    }

    #[inline(always)]
    fn join<T: Real>(self, a: T, b: T) -> T {
        a + b
    }
}

impl FoldKernel for Extreme {
    const IS_EXACT: bool = true;

    #[inline(always)]
    fn start<T: Real>(self) -> T {
        T::NEG_INFINITY
    }

    #[inline(always)]
    fn add<T: Real>(self, acc: T, x: T) -> T {
        self.join(acc, self.finish(x))
    }

    /// A comparison with NaN is false, so that one of the two numbers is NaN if `a` or `b` is. Otherwise they
    /// are equal.
    #[inline(always)]
    fn join<T: Real>(self, a: T, b: T) -> T {
        let larger = if a > b { a } else { b };
        larger.or(if b > a { b } else { a })
    }

    #[inline(always)]
    fn finish<T: Real>(self, acc: T) -> T {
        acc * T::from_f64(self.sign)
    }
}

/// Below this many elements one thread is faster than two. On two cores of a Zen 4, both take the same time
/// for a sum of 150,000.
const PARALLEL: usize = 1 << 18;
/// The number of accumulators: enough to hide the latency of an addition, few enough for the registers.
const LANES: usize = 64;
/// The elements that one set of accumulators takes.
const BLOCK: usize = 4096;
/// The elements that a thread takes at a time.
pub(super) const TASK: usize = 16 * BLOCK;
/// The columns whose accumulators stay in the L1 cache while the rows pass.
const COLUMNS: usize = 1024;
/// The rows that are combined before they join those above: the first level of the tree over rows.
const ROWS: usize = 64;

/// The loops of a [`FoldKernel`]. What calls them is compiled once for all folds of a type.
pub(crate) trait Fold<T>: Sync {
    /// The result for no elements.
    fn empty(&self) -> T;
    /// Reduces rows of at most [`TASK`] elements.
    fn rows<'a>(&self, x: &[T], y: &'a mut Room<T>) -> &'a mut [T];
    /// Reduces the columns of rows of `inner` elements that start at `from`.
    fn columns<'a>(&self, x: &[T], inner: usize, from: usize, y: &'a mut Room<T>) -> &'a mut [T];
    /// Combines results with others, which are as many.
    fn join_all(&self, to: &mut [T], from: &[T]);
}

impl<T: Real, F: FoldKernel> Fold<T> for F {
    fn empty(&self) -> T {
        self.finish(self.start())
    }

    fn rows<'a>(&self, x: &[T], y: &'a mut Room<T>) -> &'a mut [T] {
        vectorize(ShortRows { fold: *self, x }, y);
        // SAFETY: the loop writes each element.
        unsafe { written(y) }
    }

    fn columns<'a>(&self, x: &[T], inner: usize, from: usize, y: &'a mut Room<T>) -> &'a mut [T] {
        assert!(!x.is_empty());
        vectorize(FoldColumns { fold: *self, x, inner, from }, y);
        // SAFETY: the loop starts with a value for each element.
        unsafe { written(y) }
    }

    fn join_all(&self, to: &mut [T], from: &[T]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = self.finish(self.join(self.finish(*to), self.finish(*from)));
        }
    }
}

/// `[outer, n] -> [outer]`, with `n = x.len() / y.len()`.
fn fold_rows<'a, T: Real>(fold: &dyn Fold<T>, x: &[T], y: &'a mut Room<T>) -> &'a mut [T] {
    let n = x.len() / y.len();
    if n > TASK {
        let tasks = n.div_ceil(TASK);
        let parts = vec_of(y.len() * tasks, |parts| {
            write_each_part(x.len(), parts, 1, &|i, part| {
                let (row, from) = (&x[i / tasks * n..][..n], i % tasks * TASK);
                fold.rows(&row[from..n.min(from + TASK)], part)
            })
        });
        write_each(y, |i| join_parts(fold, parts[i * tasks..][..tasks].to_vec()))
    } else if x.len() < PARALLEL {
        fold.rows(x, y)
    } else {
        let rows = TASK / n;
        write_each_part(x.len(), y, rows, &|i, y| fold.rows(&x[i * rows * n..][..y.len() * n], y))
    }
}

/// `[outer, n, inner] -> [outer, inner]`.
pub(crate) fn fold_middle<'a, T: Real>(
    fold: &dyn Fold<T>,
    x: &[T],
    [outer, n, inner]: [usize; 3],
    y: &'a mut Room<T>,
) -> &'a mut [T] {
    assert_eq!((x.len(), y.len()), (outer * n * inner, outer * inner));
    if y.is_empty() || n == 0 {
        return fill(y, fold.empty());
    }
    if inner == 1 {
        return fold_rows(fold, x, y);
    }
    let (rows, slabs) = slabs_of(n, inner);
    if slabs == 1 {
        return fold_columns_of_all(fold, x, [n, inner], y);
    }
    // [outer, slabs, inner]: each slab is reduced to a row, then these rows are reduced
    let mut parts = vec_of(outer * slabs * inner, |parts| {
        write_each_part(x.len(), parts, inner, &|i, part| {
            let (o, slab) = (i / slabs, i % slabs);
            let from = slab * rows;
            let x = &x[(o * n + from) * inner..][..(n - from).min(rows) * inner];
            fold.columns(x, inner, 0, part)
        })
    });
    for o in 0..outer {
        let parts = &mut parts[o * slabs * inner..][..slabs * inner];
        join_rows(fold, parts, &mut y[o * inner..][..inner]);
    }
    // SAFETY: `y` is made up of `outer` rows, each of which is written.
    unsafe { written(y) }
}

/// The rows of a slab, and the number of slabs: as many rows as a task takes, in whole groups, and no more
/// groups than a group has rows.
fn slabs_of(n: usize, inner: usize) -> (usize, usize) {
    let rows = (TASK / inner).clamp(1, ROWS * ROWS).next_multiple_of(ROWS);
    (rows, n.div_ceil(rows))
}

/// `[outer, n, inner] -> [outer, inner]` for few rows, in pieces of columns.
fn fold_columns_of_all<'a, T: Real>(
    fold: &dyn Fold<T>,
    x: &[T],
    [n, inner]: [usize; 2],
    y: &'a mut Room<T>,
) -> &'a mut [T] {
    if y.len() == inner && x.len() >= PARALLEL {
        return write_each_part(x.len(), y, COLUMNS, &|i, y| fold.columns(x, inner, i * COLUMNS, y));
    }
    let group = (TASK / (n * inner)).max(1);
    write_each_part(x.len(), y, group * inner, &|i, y| {
        let x = &x[i * group * n * inner..][..y.len() * n];
        for o in 0..y.len() / inner {
            let (x, y) = (&x[o * n * inner..][..n * inner], &mut y[o * inner..][..inner]);
            for (i, y) in y.chunks_mut(COLUMNS).enumerate() {
                fold.columns(x, inner, i * COLUMNS, y);
            }
        }
        // SAFETY: a part is made up of whole groups of `inner` columns, and each column is written.
        unsafe { written(y) }
    })
}

/// Writes each part of `len` elements of `y` by `f`, on all threads if the input has enough elements, `size`.
#[inline(always)]
pub(super) fn write_each_part<'a, A: Send>(
    size: usize,
    y: &'a mut Room<A>,
    len: usize,
    f: &(impl for<'p> Fn(usize, &'p mut Room<A>) -> &'p mut [A] + Sync),
) -> &'a mut [A] {
    write_each_part_of(size, y, len, f)
}

/// [`write_each_part`], which is compiled once for a type.
fn write_each_part_of<'a, A: Send>(
    size: usize,
    y: &'a mut Room<A>,
    len: usize,
    f: &WritePart<'_, A>,
) -> &'a mut [A] {
    if size >= PARALLEL {
        return write_parts_of(y, len, f);
    }
    for (i, part) in y.chunks_mut(len).enumerate() {
        let place = (part.as_ptr(), part.len());
        check_is(place, f.call_with((i, part)));
    }
    // SAFETY: the parts make up `y`, and each was returned as elements.
    unsafe { written(y) }
}

/// Combines neighbors until one result is left.
fn join_parts<T: Real>(fold: &dyn Fold<T>, mut parts: Vec<T>) -> T {
    while parts.len() > 1 {
        let pairs = parts.len() / 2;
        for i in 0..pairs {
            let other = parts[2 * i + 1];
            parts[i] = parts[2 * i];
            fold.join_all(&mut parts[i..=i], &[other]);
        }
        // The last of an odd number joins nothing in this round.
        if parts.len() % 2 == 1 {
            parts[pairs] = parts[2 * pairs];
        }
        parts.truncate(parts.len() - pairs);
    }
    parts.pop().unwrap_or(fold.empty())
}

/// [`join_parts`] for rows of the length of `y`, in place.
fn join_rows<T: Real>(fold: &dyn Fold<T>, parts: &mut [T], y: &mut Room<T>) {
    let inner = y.len();
    let slabs = parts.len() / inner;
    let mut distance = 1;
    while distance < slabs {
        for pair in (0..slabs - distance).step_by(2 * distance) {
            let (a, b) = parts[pair * inner..].split_at_mut(distance * inner);
            fold.join_all(&mut a[..inner], b);
        }
        distance *= 2;
    }
    copy(y, &parts[..inner]);
}

/// Reduces a block in `L` lanes: lane `j` takes the elements `j`, `j + L`, ...
#[inline(always)]
fn fold_lanes<const L: usize, T: Real, F: FoldKernel>(fold: F, x: &[T]) -> T {
    let mut acc = [fold.start(); L];
    let (whole, rest) = x.as_chunks::<L>();
    for x in whole {
        let x = *x; // a copy, which does not overlap the results
        for j in 0..steps::<T>(L) {
            let j = lane::<T>(j);
            acc[j] = fold.add(acc[j], x[j]);
        }
    }
    for j in 0..rest.len() {
        let j = lane::<T>(j);
        acc[j] = fold.add(acc[j], rest[j]);
    }
    join_lanes(fold, acc)
}

/// [`fold_lanes`] for at least `L` elements, some of which are added twice: faster where adding an element
/// takes several instructions.
#[inline(always)]
fn fold_overlapping<const L: usize, T: Real, F: FoldKernel>(fold: F, x: &[T]) -> T {
    let mut acc = [fold.start(); L];
    let whole = x.as_chunks::<L>().0;
    let last = x.last_chunk::<L>().expect("at least as many elements");
    for i in 0..x.len().div_ceil(L) {
        let x = *if i < whole.len() { &whole[i] } else { last };
        for j in 0..steps::<T>(L) {
            let j = lane::<T>(j);
            acc[j] = fold.add(acc[j], x[j]);
        }
    }
    join_lanes(fold, apart(acc))
}

/// Combines lanes as a tree.
#[inline(always)]
fn join_lanes<const L: usize, T: Real, F: FoldKernel>(fold: F, mut lanes: [T; L]) -> T {
    let mut width = steps::<T>(L / 2);
    while width > 0 {
        for j in 0..width {
            let j = lane::<T>(j);
            lanes[j] = fold.join(lanes[j], lanes[j + width]);
        }
        width /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn fold_block<T: Real, F: FoldKernel>(fold: F, x: &[T]) -> T {
    match x.len() {
        0..32 => fold_short(fold, x),
        _ if T::IS_RARE => fold_lanes::<LANES, T, F>(fold, x),
        _ if F::IS_EXACT => fold_overlapping::<32, T, F>(fold, x),
        32..512 => fold_lanes::<16, T, F>(fold, x),
        _ => fold_lanes::<LANES, T, F>(fold, x),
    }
}

/// Reduces fewer elements than lanes.
#[inline(always)]
fn fold_short<T: Real, F: FoldKernel>(fold: F, x: &[T]) -> T {
    let mut acc = fold.start();
    for x in x {
        acc = fold.add(acc, *x);
    }
    acc
}

/// Reduces at most [`TASK`] elements in blocks, which are combined as a tree.
#[inline(always)]
fn fold_blocks<T: Real, F: FoldKernel>(fold: F, x: &[T]) -> T {
    let mut parts = [const { MaybeUninit::uninit() }; TASK / BLOCK];
    for (at, place) in parts.iter_mut().enumerate() {
        let from = (at * BLOCK).min(x.len());
        let part = fold_block(fold, &x[from..x.len().min(from + BLOCK)]);
        if x.len() <= BLOCK {
            return part;
        }
        place.write(part);
    }
    // SAFETY: the loop writes each.
    let parts = unsafe { written(&mut parts) };
    let mut width = steps::<T>(parts.len() / 2);
    while width > 0 {
        for j in 0..width {
            parts[j] = fold.join(parts[2 * j], parts[2 * j + 1]);
        }
        width /= 2;
    }
    parts[0]
}

struct ShortRows<'a, T, F> {
    fold: F,
    x: &'a [T],
}

impl<T: Real, F: FoldKernel> Vectorized for ShortRows<'_, T, F> {
    type Out<'a> = &'a mut Room<T>;
    const UP_TO: UpTo = if F::IS_EXACT { UpTo::for_math::<T>() } else { UpTo::Avx2 };

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, y: &mut Room<T>) {
        let (x, n) = (simd.numbers(self.x), self.x.len() / y.len());
        let y = simd.room(y);
        if n < 32 {
            // the CPU runs several short rows at once
            for (i, y) in y.iter_mut().enumerate() {
                y.write(self.fold.finish(fold_short(self.fold, &x[i * n..][..n])));
            }
            return;
        }
        for (i, y) in y.iter_mut().enumerate() {
            y.write(self.fold.finish(fold_blocks(self.fold, &x[i * n..][..n])));
        }
    }
}

/// `acc[j] = add(acc[j], x[row, j])` for all rows, four at a time, so that each accumulator is read and
/// written once for four rows.
#[inline(always)]
fn add_rows<T: Real, F: FoldKernel>(fold: F, x: &[T], inner: usize, from: usize, acc: &mut [T]) {
    let columns = acc.len();
    let groups = x.chunks_exact(4 * inner);
    for row in groups.remainder().chunks_exact(inner) {
        let row = &row[from..][..columns];
        for j in 0..columns {
            acc[j] = fold.add(acc[j], row[j]);
        }
    }
    for rows in groups {
        let row = |i: usize| &rows[i * inner + from..][..columns];
        let (a, b, c, d) = (row(0), row(1), row(2), row(3));
        for j in 0..columns {
            let ab = fold.add(fold.add(fold.start(), a[j]), b[j]);
            let cd = fold.add(fold.add(fold.start(), c[j]), d[j]);
            acc[j] = fold.join(acc[j], fold.join(ab, cd));
        }
    }
}

struct FoldColumns<'a, T, F> {
    fold: F,
    x: &'a [T],
    inner: usize,
    from: usize,
}

impl<T: Real, F: FoldKernel> Vectorized for FoldColumns<'_, T, F> {
    type Out<'a> = &'a mut Room<T>;
    const UP_TO: UpTo = if F::IS_EXACT { UpTo::for_math::<T>() } else { UpTo::Avx2 };

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, y: &mut Room<T>) {
        let FoldColumns { fold, x, inner, from } = self;
        let (x, y) = (simd.numbers(x), simd.room(y));
        for (i, y) in y.chunks_mut(COLUMNS).enumerate() {
            let from = from + i * COLUMNS;
            let mut group = [const { MaybeUninit::uninit() }; COLUMNS];
            let group = &mut group[..y.len()];
            for (at, x) in x.chunks(ROWS * inner).enumerate() {
                add_rows(
                    fold,
                    x,
                    inner,
                    from,
                    fill(if at == 0 { &mut *y } else { &mut *group }, fold.start()),
                );
                if at > 0 {
                    // SAFETY: the first rows have written `y`, and these have written `group`.
                    let (y, group) = unsafe { (written(&mut *y), written(&mut *group)) };
                    let y = &mut y[..group.len()];
                    for j in 0..group.len() {
                        y[j] = fold.join(y[j], group[j]);
                    }
                }
            }
            // SAFETY: as above; `x` is not empty.
            for y in unsafe { written(y) } {
                *y = fold.finish(*y);
            }
        }
    }
}

#[cfg(test)]
mod tests;
