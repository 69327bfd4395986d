//! Cumulative sums and products along the middle of `[outer, n, inner]`.

use super::math::Real;
use super::room::{Room, check_is, copy, write_each, written};
use super::threads::{DisjointParts, parallel};
use crate::dtype::Element;
use std::mem::MaybeUninit;

/// The elements that a thread takes at a time.
const TASK: usize = 1 << 14;

/// The lanes beside each other that are scanned together: each addition waits for the one before in its lane.
pub(crate) const LANES: usize = 16;

/// A scan: `scan(x, y)` writes each element of `y`, which is as long as `x`, from the elements of `x` up to it.
pub(crate) type Scan<T> = for<'a> fn(&[T], &'a mut Room<T>) -> &'a mut [T];

/// The loops of a scan.
#[derive(Clone, Copy)]
pub(crate) struct Scans<T> {
    /// Over one lane.
    pub(crate) lane: Scan<T>,
    /// Over [`LANES`] lanes whose elements alternate, if there is such a loop.
    pub(crate) beside: Option<Scan<T>>,
}

/// Scans each lane of `x` to that of `y`.
pub(crate) fn each_lane<'a, T: Element>(
    x: &[T],
    y: &'a mut Room<T>,
    [outer, n, inner]: [usize; 3],
    scans: Scans<T>,
) -> &'a mut [T] {
    assert!(x.len() == y.len() && y.len() == outer * n * inner, "lanes of {n} elements");
    let parts = DisjointParts::new(y);
    let most = if scans.beside.is_some() && inner >= LANES && n <= TASK { LANES } else { 1 };
    let grain = (TASK / n.max(1) + 1).next_multiple_of(most);
    parallel(if n == 0 { 0 } else { outer * inner }, grain, |lanes| {
        if inner == 1 {
            for lane in lanes {
                // SAFETY: lanes do not overlap, and each is run by one thread.
                let y = unsafe { parts.part(lane * n..(lane + 1) * n) };
                let place = (y.as_ptr(), y.len());
                check_is(place, (scans.lane)(&x[lane * n..(lane + 1) * n], y));
            }
            return;
        }
        let (mut from, mut made) = (vec![T::default(); most * n], vec![MaybeUninit::uninit(); most * n]);
        let mut lane = lanes.start;
        while lane < lanes.end {
            let count = most.min(lanes.end - lane).min(inner - lane % inner);
            let (count, scan) = match scans.beside {
                Some(beside) if count == LANES => (LANES, beside),
                _ => (1, scans.lane),
            };
            let start = lane / inner * n * inner + lane % inner;
            for (j, from) in from.chunks_exact_mut(count).take(n).enumerate() {
                from.copy_from_slice(&x[start + j * inner..][..count]);
            }
            let made = scan(&from[..n * count], &mut made[..n * count]);
            for (j, made) in made.chunks_exact(count).enumerate() {
                let at = start + j * inner;
                // SAFETY: as above.
                copy(unsafe { parts.part(at..at + count) }, made);
            }
            lane += count;
        }
    });
    // SAFETY: each element is in one lane, all elements of which are written.
    unsafe { written(y) }
}

/// `y = x[0], x[0] ∘ x[1]...` in each of `L` lanes, computed in `A`: in `f64` for `f32`, since over
/// millions of elements its rounding errors would add up.
#[inline]
pub(crate) fn running<'a, T: Copy, A: Copy, const L: usize>(
    x: &[T],
    y: &'a mut Room<T>,
    start: A,
    join: impl Fn(A, T) -> A,
    narrow: impl Fn(A) -> T,
) -> &'a mut [T] {
    let mut totals = [start; L];
    for (x, y) in x.as_chunks::<L>().0.iter().zip(y.as_chunks_mut::<L>().0) {
        for k in 0..L {
            totals[k] = join(totals[k], x[k]);
            y[k].write(narrow(totals[k]));
        }
    }
    assert!(x.len() == y.len() && y.len().is_multiple_of(L), "whole groups of lanes");
    // SAFETY: the loop writes each element.
    unsafe { written(y) }
}

/// `y = max x + ln Σ exp(x - max x)` of the elements so far; when the maximum grows, the sum is scaled down.
pub(crate) fn running_logsumexp<'a, T: Real>(x: &[T], y: &'a mut Room<T>) -> &'a mut [T] {
    let (mut max, mut sum) = (T::NEG_INFINITY, T::ZERO);
    let x = &x[..y.len()];
    write_each(y, |i| {
        let x = x[i];
        if x > max {
            sum = sum * (max - x).exp() + T::ONE;
            max = x;
        } else if x == max {
            sum += T::ONE; // the difference of two infinities is NaN
        } else {
            sum += (x - max).exp();
        }
        max + sum.ln()
    })
}

/// `Σ g[j] exp(x[i] - y[j])` over `j ≥ i` in each lane of `n` elements, where `y` is the
/// [`running_logsumexp`]. With its maxima `m` and sums `s`, that is `exp(x[i] - m[i]) r[i]`, where `r[i]` is
/// the sum of `g[i] / s[i]` and `r[i + 1] exp(m[i] - m[i + 1])`: no factor is greater than one, and no digits
/// are lost in a rounded logarithm.
pub(crate) fn logcumsumexp_backward<'a>(
    [x, g]: [&[f64]; 2],
    n: usize,
    dx: &'a mut Room<f64>,
) -> &'a mut [f64] {
    assert!(x.len() == dx.len() && g.len() == dx.len());
    let lanes = x.len().checked_div(n).unwrap_or(0);
    assert_eq!(lanes * n, x.len());
    let parts = DisjointParts::new(dx);
    parallel(lanes, TASK / n.max(1) + 1, |lanes| {
        let mut so_far = vec![(0.0, 0.0); n];
        for lane in lanes.map(|lane| lane * n..(lane + 1) * n) {
            let (x, g) = (&x[lane.clone()], &g[lane.clone()]);
            // SAFETY: lanes do not overlap, and each is run by one thread.
            let dx = unsafe { parts.part(lane) };
            let (mut max, mut sum) = (f64::NEG_INFINITY, 0.0);
            for (x, so_far) in x.iter().zip(&mut so_far) {
                let larger = if *x > max || x.is_nan() { *x } else { max };
                sum = match larger {
                    f64::INFINITY => 1.0,
                    _ => sum * weight(max, larger) + weight(*x, larger),
                };
                max = larger;
                *so_far = (max, sum);
            }
            let (mut r, mut later) = (0.0, max);
            for i in (0..n).rev() {
                let (max, sum) = so_far[i];
                r = r * if max == later { 1.0 } else { weight(max, later) }
                    + if sum > 0.0 { g[i] / sum } else { sum };
                later = max;
                dx[i].write(weight(x[i], max) * r);
            }
        }
    });
    // SAFETY: each element is in one lane, all elements of which are written.
    unsafe { written(dx) }
}

/// `exp(x - max)` for `x` up to `max`: 0 for negative infinity, NaN for infinity.
fn weight(x: f64, max: f64) -> f64 {
    if x == f64::NEG_INFINITY { 0.0 } else { (x - max).exp() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::room::vec_of;

    #[test]
    fn lanes_of_any_length() {
        let sizes = [
            [2, 3, 4],
            [1, 5, 1],
            [2, 9, 39],
            [0, 3, 2],
            [2, 0, 3],
            [2, 3, 0],
            [3, 20_000, 2],
            [1, 1000, 100],
        ];
        for [outer, n, inner] in sizes {
            let x: Vec<i64> = (0..outer * n * inner).map(|k| k as i64 % 7).collect();
            let sums = Scans {
                lane: |x, y| running::<i64, i64, 1>(x, y, 0, |a, b| a + b, |a| a),
                beside: Some(|x, y| running::<i64, i64, LANES>(x, y, 0, |a, b| a + b, |a| a)),
            };
            let y = vec_of(x.len(), |y| each_lane(&x, y, [outer, n, inner], sums));
            for (k, sum) in y.iter().enumerate() {
                let before = if k / inner % n == 0 { 0 } else { y[k - inner] };
                assert_eq!(*sum, before + x[k]);
            }
        }
    }
}
