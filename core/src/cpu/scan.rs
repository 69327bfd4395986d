//! Cumulative sums and products along the middle of `[outer, n, inner]`.

use super::math::Real;
use super::threads::{Parts, parallel};
use crate::dtype::Element;

/// The elements that a thread takes at a time.
const TASK: usize = 1 << 14;

/// A scan of one lane: `scan(x, y)` writes each element of `y` from the elements of `x` up to it.
pub(crate) type Scan<T> = fn(&[T], &mut [T]);

/// Runs `scan` from each lane of `x` to that of `y`.
pub(crate) fn each_lane<T: Element>(x: &[T], y: &mut [T], [outer, n, inner]: [usize; 3], scan: Scan<T>) {
    if y.is_empty() {
        return;
    }
    let y = Parts::new(y);
    parallel(outer * inner, TASK / n.max(1) + 1, |lanes| {
        if inner == 1 {
            for lane in lanes {
                // SAFETY: lanes do not overlap, and each is run by one thread.
                scan(&x[lane * n..(lane + 1) * n], unsafe { y.part(lane * n..(lane + 1) * n) });
            }
            return;
        }
        let (mut from, mut made) = (vec![T::default(); n], vec![T::default(); n]);
        for lane in lanes {
            let start = lane / inner * n * inner + lane % inner;
            from.iter_mut().zip(x[start..].iter().step_by(inner)).for_each(|(from, x)| *from = *x);
            scan(&from, &mut made);
            for (j, made) in made.iter().enumerate() {
                let at = start + j * inner;
                // SAFETY: as above.
                let place = unsafe { y.part(at..at + 1) };
                place[0] = *made;
            }
        }
    });
}

/// `y = x[0], x[0] ∘ x[1]...`
#[inline]
pub(crate) fn running<T: Copy>(x: &[T], y: &mut [T], start: T, join: impl Fn(T, T) -> T) {
    let mut total = start;
    for (y, x) in y.iter_mut().zip(x) {
        total = join(total, *x);
        *y = total;
    }
}

/// Like [`running`], but in `f64`: over millions of elements, the rounding errors of `f32` would add up.
#[inline]
pub(crate) fn running_wide(x: &[f32], y: &mut [f32], start: f64, join: impl Fn(f64, f64) -> f64) {
    let mut total = start;
    for (y, x) in y.iter_mut().zip(x) {
        total = join(total, f64::from(*x));
        *y = total as f32;
    }
}

/// `y = max x + ln Σ exp(x - max x)` of the elements so far; when the maximum grows, the sum is scaled down.
pub(crate) fn running_logsumexp<T: Real>(x: &[T], y: &mut [T]) {
    let (mut max, mut sum) = (T::NEG_INFINITY, T::ZERO);
    for (y, x) in y.iter_mut().zip(x) {
        if *x > max {
            sum = sum * (max - *x).exp() + T::ONE;
            max = *x;
        } else if *x == max {
            sum += T::ONE; // the difference of two infinities is NaN
        } else {
            sum += (*x - max).exp();
        }
        *y = max + sum.ln();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_of_any_length() {
        for [outer, n, inner] in [[2, 3, 4], [1, 5, 1], [0, 3, 2], [2, 0, 3], [2, 3, 0], [3, 20_000, 2]] {
            let x: Vec<i64> = (0..outer * n * inner).map(|k| k as i64 % 7).collect();
            let mut y = vec![0; x.len()];
            each_lane(&x, &mut y, [outer, n, inner], |x, y| running(x, y, 0, |a, b| a + b));
            for (k, sum) in y.iter().enumerate() {
                let before = if k / inner % n == 0 { 0 } else { y[k - inner] };
                assert_eq!(*sum, before + x[k]);
            }
        }
    }
}
