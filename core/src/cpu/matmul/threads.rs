//! Shares products among threads.
//!
//! C is cut into parts, each of which is a product with all of `k`. So one thread forms each sum, and it does
//! not matter where C is cut. If C is small and `k` is long, `k` is cut as well, in a way that depends only
//! on the shape.

use super::gram::gram;
use super::matvec::TOGETHER;
use super::method::{ProductMethod, scale, serial};
use super::product::{BlockResults, Product, Sums};
use crate::cpu::threads::{each, each_part, parallel};

/// The cost from which a product is worth handing to another thread, which takes several microseconds, in
/// multiply-adds of four bytes.
const HAND_OVER: usize = 1 << 20;

/// The cost of a product in multiply-adds of four bytes.
fn cost(p: &Product) -> usize {
    (p.m * p.kind.acc_size() / 4).saturating_mul(p.n).saturating_mul(p.k)
}

/// Runs a product on as many threads as it is worth.
///
/// # Safety
/// The contract of [`gemm`](super::gemm).
pub(super) unsafe fn one(p: &Product) {
    if p.m == 0 || p.n == 0 {
        return;
    }
    let p = &p.upright();
    let mut parts = cost(p) / HAND_OVER;
    // A product with a vector waits for memory, which more threads read faster.
    if parts > 1 && p.m.min(p.n) == 1 {
        parts *= 8;
    }
    // Rayon starts its threads when asked for their number.
    let parts = if parts < 2 { 1 } else { parts.min(rayon::current_num_threads()) };
    // SAFETY: the contract is the same.
    unsafe { in_parts(p, parts) }
}

/// Runs `batch` products. Number `i` is `p` moved by `offsets(i)`.
///
/// # Safety
/// The contract of [`gemm_batched`](super::gemm_batched).
pub(super) unsafe fn many(
    batch: usize,
    offsets: &(dyn Fn(usize) -> (isize, isize, isize) + Sync),
    p: &Product,
) {
    if p.m == 0 || p.n == 0 {
        return;
    }
    let cost = cost(p);
    let threads = if cost.saturating_mul(batch) < 2 * HAND_OVER { 1 } else { rayon::current_num_threads() };
    // Several tasks per thread, so that none waits long for the last one. But cutting a product makes its
    // parts less efficient.
    let parts = (4 * threads).div_ceil(batch.max(1)).min(cost / HAND_OVER).clamp(1, threads);
    // SAFETY: the contract is the same for each product, and they share no element of C. Each is moved before
    // `upright`, which may exchange A and B, to which the offsets belong.
    let product = |i| unsafe { in_parts(&p.moved(offsets(i)).upright(), parts) };
    if threads == 1 {
        return (0..batch).for_each(product);
    }
    let grain = (HAND_OVER / cost.max(1)).max(batch / (8 * threads)).max(1);
    parallel(batch, grain, |some| some.for_each(product));
}

/// Runs a product in `parts`, each on one thread.
///
/// # Safety
/// The contract of [`gemm`](super::gemm).
unsafe fn in_parts(p: &Product, parts: usize) {
    // SAFETY: the contract is the same.
    unsafe {
        if p.k == 0 {
            scale(p)
        } else if p.k >= 2 * K_PART && p.m.saturating_mul(p.n) <= SMALL {
            long(p, parts > 1)
        } else {
            let method = ProductMethod::of(p);
            if gram(p, method, parts) {
                return;
            }
            if parts == 1 {
                return serial(p, method);
            }
            // The parts of C share no element.
            each(parts, &|index| cut(p, parts, index).iter().for_each(|part| serial(part, method)));
        }
    }
}

/// C is cut after multiples of this many rows or columns, which fill whole tiles.
const UNIT: usize = 16;

/// Part `index` of a C that is repeatedly cut in two along its longer side until there are `parts`. If it
/// cannot be cut that often, the missing parts are `None`.
fn cut(p: &Product, mut parts: usize, mut index: usize) -> Option<Product> {
    let mut p = *p;
    while parts > 1 {
        // Few rows stay together, for which B is read once.
        let down = p.m > p.n && p.m > TOGETHER;
        let len = if down { p.m } else { p.n };
        let first = parts / 2;
        let at = (len / UNIT * first / parts).max(1) * UNIT;
        if at >= len {
            return (index == 0).then_some(p);
        }
        let (start, end) = if index < first { (0, at) } else { (at, len) };
        (parts, index) = if index < first { (first, index) } else { (parts - first, index - first) };
        p = if down { p.part(start, end - start, 0, p.n) } else { p.part(0, p.m, start, end - start) };
    }
    Some(p)
}

/// The largest `k` that is not cut if C is small.
const K_PART: usize = 1 << 15;
/// The most elements of a small C.
const SMALL: usize = 1 << 12;

/// The most parts of `k` whose sums exist at the same time.
const PARTS: usize = 1 << 8;

/// Runs a product with a long `k` and a C too small for many threads: the sums over equal parts of `k` are
/// formed first, on one thread or several, and then added in order.
///
/// # Safety
/// The contract of [`gemm`](super::gemm).
unsafe fn long(p: &Product, threaded: bool) {
    let (parts, method) = (p.k.div_ceil(K_PART), ProductMethod::of(p));
    let (acc, len) = ((p.kind.acc)(), p.m * p.n);
    let row = (p.n * acc.size) as isize;
    // An accumulator has at most eight bytes.
    let mut sums = vec![0_u64; parts.min(PARTS) * len];
    let part = |part: usize, sums: &mut [u64]| {
        // Exact for every `k`: with `part * k`, a huge `k` would overflow.
        let start = |part: usize| (part as u128 * p.k as u128 / parts as u128) as usize;
        let (l, k) = (start(part), start(part + 1) - start(part));
        let p = Product { k, a: p.a.at(0, l), b: p.b.at(l, 0), ..*p };
        // SAFETY: this part of `k` exists, and `sums` has room for C.
        unsafe { method.run(&p, Sums { ptr: sums.as_mut_ptr().cast(), row, beta: 0 }) };
    };
    let mut done = 0;
    while done < parts {
        // From the second round on, the first sums are the total of the rounds before.
        let free = usize::from(done > 0);
        let end = parts.min(done + PARTS - free);
        let now = &mut sums[free * len..(free + end - done) * len];
        if threaded {
            each_part(now, len, &|l, sums| part(done + l, sums));
        } else {
            now.chunks_mut(len).enumerate().for_each(|(l, sums)| part(done + l, sums));
        }
        let (total, others) = sums.split_at_mut(len);
        for others in others.chunks(len).take(free + end - done - 1) {
            // SAFETY: both are sums of C.
            unsafe { (acc.add)(others.as_ptr().cast(), len, total.as_mut_ptr().cast()) };
        }
        done = end;
    }
    let (sums, width, m, n) = (sums.as_mut_ptr().cast(), p.n, p.m, p.n);
    // SAFETY: these are the sums of C.
    unsafe { (p.kind.write)(&BlockResults { sums, width, m, n, beta: p.beta, c: p.c }) };
}
