//! Scaled dot-product attention, forward and backward, by blocks of queries and keys.
//!
//! The scores of a block exist only while it is worked on, so the memory grows with the length and not with
//! its square. The forward pass keeps the largest score and the sum of exponentials of each query so far and
//! scales its result when they change; the backward pass computes the scores again. The order of every sum
//! depends only on the sizes.
//!
//! # Source
//! Milakov, Gimelshein, *Online normalizer calculation for softmax* (2018); Dao, Fu, Ermon, Rudra, Ré,
//! *FlashAttention* (2022), algorithms 1 and 4.

use super::exps::exp_in_place;
use super::math::Real;
use super::matmul::{Mat, MatmulElement, gemm_serial};
use super::room::{Room, fill, written};
use super::row::{self, LANES, largest};
use super::simd::{Simd, UpTo, Vectorized, vectorize};
use super::threads::{DisjointParts, each};
use crate::cpu::random::{Generator, fill_bernoulli};
use std::marker::PhantomData;
use std::ops::Range;

/// The queries of a block. The keys of a block are packed once for all of them.
const ROWS: usize = 128;
/// The keys of a block.
const COLS: usize = 128;

/// Matrices of one operand: the first, and where each begins, in elements from the first.
pub(crate) struct MatrixStack<T> {
    pub(crate) first: Mat<*const T>,
    pub(crate) starts: Vec<isize>,
}

// SAFETY: the matrices are only read.
unsafe impl<T: Sync> Send for MatrixStack<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for MatrixStack<T> {}

impl<T> MatrixStack<T> {
    fn get(&self, number: usize) -> Mat<*const T> {
        Mat { ptr: self.first.ptr.wrapping_offset(self.starts[number]), ..self.first }
    }
}

/// The operands of an attention: `heads` of queries, and a head of keys and values for each `group` of them.
pub(crate) struct Attention<T> {
    pub(crate) heads: usize,
    pub(crate) group: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    /// The length of a query and of a key.
    pub(crate) width: usize,
    /// The length of a value.
    pub(crate) depth: usize,
    /// A matrix for each head, as in the mask; keys and values are repeated for the heads of a group.
    pub(crate) q: MatrixStack<T>,
    pub(crate) k: MatrixStack<T>,
    pub(crate) v: MatrixStack<T>,
    /// Numbers that are added to the scores.
    pub(crate) mask: Option<MatrixStack<T>>,
    /// Whether a query sees only the keys up to its own position.
    pub(crate) causal: bool,
    /// The most positions between a query and a key that it sees.
    pub(crate) window: Option<usize>,
    pub(crate) scale: T,
    /// The probability to drop a weight, and the random numbers that decide.
    pub(crate) dropout: Option<(f64, Generator)>,
}

/// The gradients to which the backward pass adds; dense, a matrix for each head of its operand.
pub(crate) struct AttentionGradients<'a, T> {
    pub(crate) q: &'a mut [T],
    pub(crate) k: &'a mut [T],
    pub(crate) v: &'a mut [T],
    pub(crate) mask: Option<&'a mut [T]>,
}

/// The queries and keys of a block of one head.
#[derive(Clone)]
struct KeyBlock {
    head: usize,
    i: Range<usize>,
    j: Range<usize>,
}

/// Splits `0..n` into ranges of `len`.
fn ranges(n: usize, len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(len).map(move |start| start..(start + len).min(n))
}

impl<T: Real + MatmulElement<Acc = T>> Attention<T> {
    /// `y = softmax(scale q kᵀ + mask) v` for each head, and the logarithm of the sum of exponentials of each
    /// query, which [`backward`](Self::backward) takes. A query that sees no key has the result 0.
    ///
    /// # Safety
    /// The matrices are valid for reads, with the sizes given here.
    pub(crate) unsafe fn forward<'a>(&self, [y, lse]: [&'a mut Room<T>; 2]) -> [&'a mut [T]; 2] {
        assert_eq!((y.len(), lse.len()), (self.heads * self.queries * self.depth, self.heads * self.queries));
        let y = fill(y, T::ZERO);
        let (y_parts, lse_parts) = (DisjointParts::new(y), DisjointParts::new(lse));
        let blocks = self.queries.div_ceil(ROWS);
        each(self.heads * blocks, &|task| {
            let (head, start) = (task / blocks, task % blocks * ROWS);
            let i = start..(start + ROWS).min(self.queries);
            let rows = head * self.queries + i.start..head * self.queries + i.end;
            // SAFETY: the blocks of different tasks do not overlap.
            let (y, lse) = unsafe {
                (y_parts.part(rows.start * self.depth..rows.end * self.depth), lse_parts.part(rows))
            };
            // SAFETY: the caller guarantees that the matrices are valid.
            unsafe { self.forward_block(head, i, y, lse) };
        });
        // SAFETY: the tasks write all rows.
        [y, unsafe { written(lse) }]
    }

    /// The result for some queries of a head; `y` is 0.
    ///
    /// # Safety
    /// As for [`forward`](Self::forward).
    unsafe fn forward_block(&self, head: usize, i: Range<usize>, y: &mut [T], lse: &mut Room<T>) {
        let mut scratch = AttentionScratch::new(i.len() * COLS.min(self.keys), self.dropout.is_some());
        let mut max = vec![T::NEG_INFINITY; i.len()];
        let mut sum = vec![T::ZERO; i.len()];
        for j in self.seen_by(&i) {
            let block = KeyBlock { head, i: i.clone(), j };
            let n = block.j.len();
            let AttentionScratch { scores, kept, .. } = &mut scratch;
            let scores = &mut scores[..i.len() * n];
            // SAFETY: the caller guarantees that the matrices are valid.
            unsafe { self.scores(&block, scores) };
            let rows = QueryRows { max: &mut max, sum: &mut sum, y: &mut *y, depth: self.depth };
            vectorize(Soften { seen: self.seen(&block), of: PhantomData }, (&mut *scores, rows));
            self.drop_weights(&block, scores, kept);
            let c = Mat { ptr: y.as_mut_ptr(), row_stride: self.depth as isize, col_stride: 1 };
            let weights = Mat { ptr: scores.as_ptr(), row_stride: n as isize, col_stride: 1 };
            let v = self.v.get(head).at(block.j.start, 0);
            // SAFETY: `y` has a row for each query, and the caller guarantees that `v` is valid.
            unsafe { gemm_serial([i.len(), n, self.depth], T::ONE, weights, v, T::ONE, c) };
        }
        for (at, lse) in lse.iter_mut().enumerate() {
            let y = &mut y[at * self.depth..][..self.depth];
            let scale = if sum[at] == T::ZERO { T::ZERO } else { T::ONE / sum[at] };
            y.iter_mut().for_each(|y| *y *= scale);
            lse.write(shift(max[at]) + sum[at].ln());
        }
    }

    /// The keys that some of these queries see.
    fn keys_of(&self, i: &Range<usize>) -> Range<usize> {
        let visible = self.visible(i.start, 0);
        visible.of_row(0).start..visible.of_row(i.len() - 1).end
    }

    /// The blocks of keys that some of these queries see.
    fn seen_by(&self, i: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<T> {
        let keys = self.keys_of(i);
        (keys.start / COLS * COLS..keys.end)
            .step_by(COLS)
            .map(move |start| start..(start + COLS).min(keys.end))
    }

    /// What queries from `query` on see of the keys from `key` on.
    fn visible(&self, query: usize, key: usize) -> VisibleKeys {
        VisibleKeys { n: self.keys - key, query, key, causal: self.causal, window: self.window }
    }

    /// The scores of a block, with the mask.
    ///
    /// # Safety
    /// As for [`forward`](Self::forward).
    unsafe fn scores(&self, KeyBlock { head, i, j }: &KeyBlock, scores: &mut [T]) {
        let n = j.len();
        assert_eq!(scores.len(), i.len() * n);
        let (q, k) = (self.q.get(*head).at(i.start, 0), self.k.get(*head).at(j.start, 0));
        let c = Mat { ptr: scores.as_mut_ptr(), row_stride: n as isize, col_stride: 1 };
        // SAFETY: there is room for all scores; the caller guarantees that `q` and `k` are valid.
        unsafe { gemm_serial([i.len(), self.width, n], self.scale, q, k.t(), T::ZERO, c) };
        if let Some(mask) = &self.mask {
            let mask = mask.get(*head).at(i.start, j.start);
            for (row, scores) in scores.chunks_exact_mut(n).enumerate() {
                for (col, score) in scores.iter_mut().enumerate() {
                    // SAFETY: the mask has an element for each score.
                    *score += unsafe { *mask.at(row, col).ptr };
                }
            }
        }
    }

    /// The keys of a block that its queries see.
    fn seen(&self, block: &KeyBlock) -> VisibleKeys {
        VisibleKeys { n: block.j.len(), ..self.visible(block.i.start, block.j.start) }
    }

    /// Sets some weights of a block to 0 and divides the others by the probability to be kept. `kept` becomes
    /// the factors.
    fn drop_weights(&self, KeyBlock { head, i, j }: &KeyBlock, weights: &mut [T], kept: &mut [T]) {
        let Some((p, generator)) = &self.dropout else { return };
        let factor = if *p < 1.0 { T::from_f64(1.0 / (1.0 - p)) } else { T::ZERO };
        let rows = weights.chunks_exact_mut(j.len()).zip(kept.chunks_exact_mut(j.len()));
        for (at, (weights, kept)) in i.clone().zip(rows) {
            // A weight has its own random number, whichever block it is computed in.
            let number = (head * self.queries + at) * self.keys + j.start;
            let mut generator = generator.clone();
            generator.split_off(number);
            fill_bernoulli(kept, 1.0 - p, [T::ZERO, factor], &mut generator);
            weights.iter_mut().zip(kept).for_each(|(weight, kept)| *weight *= *kept);
        }
    }

    /// The gradients, for the gradient `g` of the result `y`; both are dense.
    ///
    /// # Safety
    /// As for [`forward`](Self::forward).
    pub(crate) unsafe fn backward(&self, g: &[T], y: &[T], lse: &[T], out: AttentionGradients<'_, T>) {
        let pass = BlockPass { of: self, g, lse, along: self.along(g, y), of_mask: out.mask.is_some() };
        let key_heads = self.heads / self.group;
        let parts = [out.q, out.k, out.v, out.mask.unwrap_or_default()].map(DisjointParts::new);
        // With few heads, all threads have work only if keys and queries are divided as well. Then all scores
        // are computed twice. The sums have the same order.
        if key_heads >= rayon::current_num_threads() || self.queries.max(self.keys) <= COLS {
            each(key_heads, &|key_head| {
                for head in key_head * self.group..(key_head + 1) * self.group {
                    for i in ranges(self.queries, ROWS) {
                        for j in self.seen_by(&i) {
                            let block = KeyBlock { head, i: i.clone(), j };
                            // SAFETY: the caller guarantees that the matrices are valid; a head of keys is
                            // one task.
                            unsafe { pass.add(&block, &parts, [true, true]) };
                        }
                    }
                }
            });
            return;
        }
        let key_blocks = self.keys.div_ceil(COLS);
        each(key_heads * key_blocks, &|task| {
            let (key_head, start) = (task / key_blocks, task % key_blocks * COLS);
            let j = start..(start + COLS).min(self.keys);
            for head in key_head * self.group..(key_head + 1) * self.group {
                for i in ranges(self.queries, ROWS) {
                    // The same block as above, which ends where the last query sees no more.
                    let keys = self.keys_of(&i);
                    if j.start >= keys.end || j.end <= keys.start {
                        continue;
                    }
                    let block = KeyBlock { head, i, j: j.start..j.end.min(keys.end) };
                    // SAFETY: as above; a block of keys is one task.
                    unsafe { pass.add(&block, &parts, [false, true]) };
                }
            }
        });
        let query_blocks = self.queries.div_ceil(ROWS);
        each(self.heads * query_blocks, &|task| {
            let (head, start) = (task / query_blocks, task % query_blocks * ROWS);
            let i = start..(start + ROWS).min(self.queries);
            for j in self.seen_by(&i) {
                let block = KeyBlock { head, i: i.clone(), j };
                // SAFETY: as above; a block of queries is one task.
                unsafe { pass.add(&block, &parts, [true, false]) };
            }
        });
    }

    /// `Σ g y` for each query.
    fn along(&self, g: &[T], y: &[T]) -> Vec<T> {
        let mut sums = vec![T::ZERO; self.heads * self.queries];
        if self.depth > 0 {
            vectorize(RowDots { n: self.depth, a: g, b: y }, &mut sums[..]);
        }
        sums
    }
}

/// The largest score as what is subtracted from all; 0 if all scores are `-∞`, so that none becomes NaN.
#[inline(always)]
fn shift<T: Real>(max: T) -> T {
    if max == T::NEG_INFINITY { T::ZERO } else { max }
}

/// The memory of a block.
struct AttentionScratch<T> {
    scores: Vec<T>,
    gradients: Vec<T>,
    kept: Vec<T>,
}

impl<T: Real> AttentionScratch<T> {
    fn new(len: usize, drops: bool) -> AttentionScratch<T> {
        AttentionScratch {
            scores: vec![T::ZERO; len],
            gradients: Vec::new(),
            kept: vec![T::ZERO; if drops { len } else { 0 }],
        }
    }
}

/// The backward pass of an attention.
struct BlockPass<'a, T> {
    of: &'a Attention<T>,
    g: &'a [T],
    lse: &'a [T],
    /// `Σ g y` for each query.
    along: Vec<T>,
    of_mask: bool,
}

impl<T: Real + MatmulElement<Acc = T>> BlockPass<'_, T> {
    /// Adds what a block contributes to the gradients of queries and mask, and to those of keys and values.
    ///
    /// # Safety
    /// The matrices are valid; no other thread writes to the rows of this block in `parts`.
    unsafe fn add(
        &self,
        block: &KeyBlock,
        parts: &[DisjointParts<'_, T>; 4],
        [of_queries, of_keys]: [bool; 2],
    ) {
        let (p, KeyBlock { head, i, j }) = (self.of, block);
        let (m, n) = (i.len(), j.len());
        let mut scratch = AttentionScratch::new(m * n, p.dropout.is_some());
        scratch.gradients.resize(m * n, T::ZERO);
        let AttentionScratch { scores, gradients, kept } = &mut scratch;
        let rows = head * p.queries + i.start..head * p.queries + i.end;
        // SAFETY: the caller guarantees that the matrices are valid.
        unsafe { p.scores(block, scores) };
        vectorize(ScoreWeights { seen: p.seen(block), lse: &self.lse[rows.clone()] }, &mut scores[..]);
        let g =
            Mat { ptr: self.g[rows.start * p.depth..].as_ptr(), row_stride: p.depth as isize, col_stride: 1 };
        let of_weights = Mat { ptr: gradients.as_mut_ptr(), row_stride: n as isize, col_stride: 1 };
        let v = p.v.get(*head).at(j.start, 0);
        // SAFETY: as above, and there is room for the block.
        unsafe { gemm_serial([m, p.depth, n], T::ONE, g, v.t(), T::ZERO, of_weights) };
        let mut dropped = Vec::new();
        if p.dropout.is_some() {
            dropped.extend_from_slice(scores);
            p.drop_weights(block, &mut dropped, kept);
            gradients.iter_mut().zip(kept.iter()).for_each(|(gradient, kept)| *gradient *= *kept);
        }
        let weights = if p.dropout.is_some() { &dropped } else { &*scores };
        let key_head = head / p.group;
        let matrix = |elements: &[T]| Mat { ptr: elements.as_ptr(), row_stride: n as isize, col_stride: 1 };
        if of_keys {
            let rows = key_head * p.keys + j.start..key_head * p.keys + j.end;
            // SAFETY: the caller guarantees that only this thread writes to these keys.
            let dv = unsafe { parts[2].part(rows.start * p.depth..rows.end * p.depth) };
            let c = Mat { ptr: dv.as_mut_ptr(), row_stride: p.depth as isize, col_stride: 1 };
            // SAFETY: the matrices have these sizes.
            unsafe { gemm_serial([n, m, p.depth], T::ONE, matrix(weights).t(), g, T::ONE, c) };
        }
        vectorize(OfScores { n, weights: scores, along: &self.along[rows.clone()] }, &mut gradients[..]);
        let of_scores = matrix(gradients);
        if of_keys {
            let rows = key_head * p.keys + j.start..key_head * p.keys + j.end;
            // SAFETY: as above.
            let dk = unsafe { parts[1].part(rows.start * p.width..rows.end * p.width) };
            let c = Mat { ptr: dk.as_mut_ptr(), row_stride: p.width as isize, col_stride: 1 };
            let q = p.q.get(*head).at(i.start, 0);
            // SAFETY: as above.
            unsafe { gemm_serial([n, m, p.width], p.scale, of_scores.t(), q, T::ONE, c) };
        }
        if of_queries {
            // SAFETY: the caller guarantees that only this thread writes to these queries.
            let dq = unsafe { parts[0].part(rows.start * p.width..rows.end * p.width) };
            let c = Mat { ptr: dq.as_mut_ptr(), row_stride: p.width as isize, col_stride: 1 };
            let k = p.k.get(*head).at(j.start, 0);
            // SAFETY: as above.
            unsafe { gemm_serial([m, n, p.width], p.scale, of_scores, k, T::ONE, c) };
            if self.of_mask {
                for (row, gradients) in rows.zip(gradients.chunks_exact(n)) {
                    // SAFETY: as above.
                    let mask = unsafe { parts[3].part(row * p.keys + j.start..row * p.keys + j.end) };
                    mask.copy_from_slice(gradients);
                }
            }
        }
    }
}

/// The keys of a block, among `n`, that its queries see.
#[derive(Clone, Copy)]
struct VisibleKeys {
    n: usize,
    /// The positions of the first query and of the first key.
    query: usize,
    key: usize,
    /// Whether a query sees only the keys up to its own position.
    causal: bool,
    /// The most positions between a query and a key that it sees.
    window: Option<usize>,
}

impl VisibleKeys {
    /// The keys that the query of a row sees, counted from the first key of the block.
    #[inline(always)]
    fn of_row(self, row: usize) -> Range<usize> {
        let (query, mut start, mut end) = (self.query + row, 0, usize::MAX);
        if let Some(window) = self.window {
            (start, end) = (query.saturating_sub(window), query.saturating_add(window).saturating_add(1));
        }
        if self.causal {
            end = end.min(query + 1);
        }
        let [start, end] = [start, end].map(|at| at.saturating_sub(self.key).min(self.n));
        start..end
    }

    /// The scores of a row that become weights. The others become 0, except for a few, which become `-∞`, so
    /// that those returned fill whole lanes.
    #[inline(always)]
    fn hide<T: Real>(self, row: usize, scores: &mut [T]) -> &mut [T] {
        if !self.causal && self.window.is_none() {
            return scores;
        }
        let seen = self.of_row(row);
        let first = if seen.is_empty() { seen.end } else { seen.start / LANES * LANES };
        let last = if seen.is_empty() { seen.end } else { seen.end.next_multiple_of(LANES).min(self.n) };
        scores[..first].fill(T::ZERO);
        scores[last..].fill(T::ZERO);
        scores[first..seen.start.max(first)].fill(T::NEG_INFINITY);
        scores[seen.end..last].fill(T::NEG_INFINITY);
        &mut scores[first..last]
    }
}

/// The sums of each query so far, and its result, not yet divided by the sum.
struct QueryRows<'a, T> {
    max: &'a mut [T],
    sum: &'a mut [T],
    y: &'a mut [T],
    depth: usize,
}

/// Replaces the scores of a block, in rows of `n`, by `exp(score - max)` and updates what is known of the
/// queries.
struct Soften<T> {
    seen: VisibleKeys,
    of: PhantomData<T>,
}

impl<T: Real> Vectorized for Soften<T> {
    type Out<'a> = (&'a mut [T], QueryRows<'a, T>);
    const UP_TO: UpTo = UpTo::for_math::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, (scores, rows): (&mut [T], QueryRows<'_, T>)) {
        let depth = rows.depth;
        let (max, sum, y) =
            (simd.numbers_mut(rows.max), simd.numbers_mut(rows.sum), simd.numbers_mut(rows.y));
        soften(simd, self.seen, simd.numbers_mut(scores), QueryRows { max, sum, y, depth });
    }
}

#[inline(always)]
fn soften<S: Simd, T: Real>(simd: S, seen: VisibleKeys, scores: &mut [T], rows: QueryRows<'_, T>) {
    let QueryRows { max, sum, y, depth } = rows;
    for row in 0..max.len() {
        let scores = seen.hide(row, &mut scores[row * seen.n..][..seen.n]);
        let old = max[row];
        max[row] = largest(scores, old);
        let shift = shift(max[row]);
        let total = exp_in_place(simd, scores, shift);
        if old == max[row] || old == T::NEG_INFINITY {
            sum[row] += total; // what was summed so far has the same maximum, or is 0
        } else {
            let factor = (old - shift).exp();
            sum[row] = sum[row] * factor + total;
            for y in &mut y[row * depth..][..depth] {
                *y *= factor;
            }
        }
    }
}

/// Replaces the scores of a block by the weights `exp(score - lse)`.
struct ScoreWeights<'a, T> {
    seen: VisibleKeys,
    lse: &'a [T],
}

impl<T: Real> Vectorized for ScoreWeights<'_, T> {
    type Out<'a> = &'a mut [T];
    const UP_TO: UpTo = UpTo::for_math::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, scores: &mut [T]) {
        weights(simd, self.seen, simd.numbers(self.lse), simd.numbers_mut(scores));
    }
}

#[inline(always)]
fn weights<S: Simd, T: Real>(simd: S, seen: VisibleKeys, lse: &[T], scores: &mut [T]) {
    for row in 0..lse.len() {
        exp_in_place(simd, seen.hide(row, &mut scores[row * seen.n..][..seen.n]), shift(lse[row]));
    }
}

/// Replaces the gradients of the weights by those of the scores: `weight (gradient - along)`.
struct OfScores<'a, T> {
    n: usize,
    weights: &'a [T],
    along: &'a [T],
}

impl<T: Real> Vectorized for OfScores<'_, T> {
    type Out<'a> = &'a mut [T];
    const UP_TO: UpTo = UpTo::for_memory::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, gradients: &mut [T]) {
        let (weights, along) = (simd.numbers(self.weights), simd.numbers(self.along));
        gradients_of_scores(self.n, weights, along, simd.numbers_mut(gradients));
    }
}

#[inline(always)]
fn gradients_of_scores<T: Real>(n: usize, weights: &[T], along: &[T], gradients: &mut [T]) {
    for row in 0..along.len() {
        let (weights, gradients) = (&weights[row * n..][..n], &mut gradients[row * n..][..n]);
        for j in 0..n {
            gradients[j] = weights[j] * (gradients[j] - along[row]);
        }
    }
}

/// `Σ a b` of each row of `n` elements.
struct RowDots<'a, T> {
    n: usize,
    a: &'a [T],
    b: &'a [T],
}

impl<T: Real> Vectorized for RowDots<'_, T> {
    type Out<'a> = &'a mut [T];
    const UP_TO: UpTo = UpTo::for_memory::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, sums: &mut [T]) {
        let (n, a, b, sums) = (self.n, simd.numbers(self.a), simd.numbers(self.b), simd.numbers_mut(sums));
        for (row, sum) in sums.iter_mut().enumerate() {
            *sum = row::dot(&a[row * n..][..n], &b[row * n..][..n]);
        }
    }
}
