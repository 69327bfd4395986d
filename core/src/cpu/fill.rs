//! Elements that depend only on their position.

use super::room::{Room, fill, write_each};
use super::threads::write_parts;
use crate::dtype::{Element, Scalar};

/// The elements that a thread writes at a time.
const TASK: usize = 1 << 17;

/// `start, start + step...` in integers, which the dtype has.
pub(crate) fn count<T: Element>(start: i64, step: i64, y: &mut Room<T>) -> &mut [T] {
    write_each(y, |i| T::from_scalar(Scalar::Int(start.wrapping_add((i as i64).wrapping_mul(step)))))
}

/// `start, start + step...`, each computed from its position, so that errors do not add up.
pub(crate) fn steps<T: Element>(start: f64, step: f64, y: &mut Room<T>) -> &mut [T] {
    write_each(y, |i| T::from_scalar(Scalar::Float(start + i as f64 * step)))
}

/// Numbers evenly spaced from `start` to `end`, both included.
pub(crate) fn between<T: Element>(start: f64, end: f64, y: &mut Room<T>) -> &mut [T] {
    let last = y.len().max(2) - 1;
    let by = (end - start) / last as f64;
    let half = if y.len() == 1 { 1 } else { y.len() / 2 };
    write_each(y, |i| {
        // From the nearer end, so that both ends are exact.
        let value = if i < half { start + by * i as f64 } else { end - by * (last - i) as f64 };
        T::from_scalar(Scalar::Float(value))
    })
}

/// `y = value` everywhere, on all threads.
pub(crate) fn all<T: Copy + Send + Sync>(value: T, y: &mut Room<T>) -> &mut [T] {
    write_parts(y, TASK, &|_, y| fill(y, value))
}

/// Ones on the diagonal of a matrix of zeros.
pub(crate) fn unit<T: Copy>(one: T, [rows, cols]: [usize; 2], y: &mut [T]) {
    y.iter_mut().step_by(cols + 1).take(rows.min(cols)).for_each(|y| *y = one);
}

/// Writes the numbers, cast.
pub(crate) fn cast<'a, T: Element>(numbers: &[Scalar], y: &'a mut Room<T>) -> &'a mut [T] {
    let numbers = &numbers[..y.len()];
    write_each(y, |i| T::from_scalar(numbers[i]))
}

/// Zeros above the diagonal `diagonal` of each matrix, or below it if `upper`.
pub(crate) fn triangle<T: Copy>(
    zero: T,
    [rows, cols]: [usize; 2],
    diagonal: isize,
    upper: bool,
    y: &mut [T],
) {
    if y.is_empty() {
        return;
    }
    for (row, y) in y.chunks_exact_mut(cols).enumerate() {
        // The column on the diagonal, which is kept.
        let on = ((row % rows) as isize).saturating_add(diagonal);
        let zeros = match upper {
            true => 0..on.clamp(0, cols as isize) as usize,
            false => on.saturating_add(1).clamp(0, cols as isize) as usize..cols,
        };
        y[zeros].fill(zero);
    }
}

/// The next number after each `x` toward its `y`; `up` and `down` return the adjacent numbers.
pub(crate) fn next_after<'a, T: Element + PartialOrd>(
    [x, y]: [&[T]; 2],
    [up, down]: [fn(T) -> T; 2],
    nan: T,
    next: &'a mut Room<T>,
) -> &'a mut [T] {
    let (x, y) = (&x[..next.len()], &y[..next.len()]);
    write_each(next, |i| match x[i].partial_cmp(&y[i]) {
        Some(std::cmp::Ordering::Less) => up(x[i]),
        Some(std::cmp::Ordering::Greater) => down(x[i]),
        Some(std::cmp::Ordering::Equal) => y[i],
        None => nan,
    })
}

/// The bits of the number of a half type above the one with these bits, which is neither `∞` nor NaN. In both
/// half types the bits after the sign count up through all magnitudes.
pub(crate) fn half_up(bits: u16) -> u16 {
    const SIGN: u16 = 1 << 15;
    match bits {
        0 | SIGN => 1,
        _ if bits & SIGN == 0 => bits + 1,
        _ => bits - 1,
    }
}

/// The bits of the number below, which is not `-∞` or NaN; see [`half_up`].
pub(crate) fn half_down(bits: u16) -> u16 {
    half_up(bits ^ (1 << 15)) ^ (1 << 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triangles() {
        for diagonal in [-9, -1, 0, 1, 2, 9] {
            for upper in [false, true] {
                let mut y = [1; 2 * 3 * 4];
                triangle(0, [3, 4], diagonal, upper, &mut y);
                for (at, y) in y.iter().enumerate() {
                    let (row, col) = ((at / 4 % 3) as isize, (at % 4) as isize);
                    let kept = if upper { col - row >= diagonal } else { col - row <= diagonal };
                    assert_eq!(*y, i32::from(kept), "{row} {col} {diagonal} {upper}");
                }
            }
        }
    }
}
