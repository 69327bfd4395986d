//! Exponentials, logarithms and the functions of gates, of whole rows. The loops of softmax, attention and
//! recurrent layers call them, so that each is compiled once for each set of instructions.
//!
//! The numbers are those of a loop that is already compiled for instructions, whose token is `simd`.

use super::math::Real;
use super::room::{Room, written};
use super::row::{LANES, lane, steps, sum_lanes};
use super::simd::{Simd, UpTo, Vectorized, is_short, vectorize};
use std::hint::black_box;

/// Writes `y = exp(x - shift)`, which is as long as `x`, and returns it with `Σ y`. The order of the sum
/// depends only on the length. NaN reaches the sum.
#[inline(always)]
pub(super) fn exp_into<'y, S: Simd, T: Real>(
    simd: S,
    x: &[T],
    shift: T,
    y: &'y mut Room<T>,
) -> (&'y mut [T], T) {
    assert_eq!(x.len(), y.len());
    let mut sum = T::ZERO;
    simd.run(Exps { x: x.as_ptr(), shift, n: x.len(), y: y.as_mut_ptr().cast(), step: LANES }, &mut sum);
    // SAFETY: the loop writes as many elements as `x` has.
    (unsafe { written(y) }, sum)
}

/// Whether the exponentials of a row are a call: where small code counts more than the time of a call.
#[inline(always)]
fn are_called<S: Simd, T: Real>() -> bool {
    S::IS_RARE || !is_short::<T>()
}

/// `x = exp(x - shift)`; returns `Σ x`. For `f32` it is a part of the loop that calls it, as [`sum_exp`] is.
#[inline(always)]
pub(super) fn exp_in_place<S: Simd, T: Real>(simd: S, x: &mut [T], shift: T) -> T {
    let (mut sum, n, x) = (T::ZERO, x.len(), x.as_mut_ptr());
    if !are_called::<S, T>() {
        // SAFETY: each lane is read before it is written.
        return unsafe { exps::<T, true>(x, shift, n, x, LANES) };
    }
    simd.run(Exps { x, shift, n, y: x, step: LANES }, &mut sum);
    sum
}

/// `Σ exp(x - shift)`; also writes `y = exp(x - shift)`, if there is a `y`, which is as long. For `f32`, and
/// without a `y`, it is a part of the loop that calls it, for loops that spend their time here.
#[inline(always)]
pub(super) fn sum_exp<S: Simd, T: Real>(simd: S, x: &[T], shift: T, y: Option<&mut Room<T>>) -> T {
    let (n, x) = (x.len(), x.as_ptr());
    let Some(y) = y else {
        let mut dropped = [T::ZERO; LANES];
        if S::IS_RARE {
            let mut sum = T::ZERO;
            simd.run(Exps { x, shift, n, y: dropped.as_mut_ptr(), step: 0 }, &mut sum);
            return sum;
        }
        // SAFETY: nothing is written.
        return unsafe { exps::<T, false>(x, shift, n, dropped.as_mut_ptr(), 0) };
    };
    assert_eq!(n, y.len());
    let y = y.as_mut_ptr().cast();
    if are_called::<S, T>() {
        let mut sum = T::ZERO;
        simd.run(Exps { x, shift, n, y, step: LANES }, &mut sum);
        return sum;
    }
    // SAFETY: `y` is as long as `x`.
    unsafe { exps::<T, true>(x, shift, n, y, LANES) }
}

/// `y = exp(x - shift)` for `n` elements from `x`, and their sum. The lanes with number `i` are written from
/// `i * step` on.
///
/// There are `n` elements at `x`, and room for the lanes at `y`, which is the same place or another.
struct Exps<T> {
    x: *const T,
    shift: T,
    n: usize,
    y: *mut T,
    step: usize,
}

impl<T: Real> Vectorized for Exps<T> {
    type Out<'a> = &'a mut T;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, sum: &mut T) {
        let shift = simd.numbers(std::slice::from_ref(&self.shift))[0];
        let (x, y) = (self.x.cast(), self.y.cast());
        // SAFETY: the numbers have the layout of `T`, and the places are as the type says.
        let total = unsafe { exps::<_, true>(x, shift, self.n, y, self.step) };
        simd.numbers_mut(std::slice::from_mut(sum))[0] = total;
    }
}

/// The loop of [`Exps`]. The rest of a row is padded to whole lanes with numbers whose exponentials are 0.
///
/// # Safety
/// The places are as for [`Exps`]. Nothing is written unless `WRITES`.
#[inline(always)]
unsafe fn exps<T: Real, const WRITES: bool>(x: *const T, shift: T, n: usize, y: *mut T, step: usize) -> T {
    let (whole, rest) = (n / LANES, n % LANES);
    let (mut sums, mut last) = ([T::ZERO; LANES], [T::NEG_INFINITY; LANES]);
    // SAFETY: the rest lies in `x`, and is shorter than the lanes.
    unsafe { last.as_mut_ptr().copy_from_nonoverlapping(x.add(whole * LANES), rest) };
    for i in 0..n.div_ceil(LANES) {
        // SAFETY: the lanes are whole.
        let (from, to) = unsafe {
            match i < whole {
                true => (x.add(i * LANES), y.add(i * step)),
                false => (last.as_ptr(), last.as_mut_ptr()),
            }
        };
        // SAFETY: as above.
        let mut lanes = unsafe { from.cast::<[T; LANES]>().read() };
        for j in 0..steps::<T>(LANES) {
            let j = lane::<T>(j);
            lanes[j] = (lanes[j] - shift).exp();
            sums[j] += lanes[j];
        }
        if WRITES {
            // SAFETY: as above.
            unsafe { to.cast::<[T; LANES]>().write(lanes) };
        }
    }
    if WRITES && step > 0 {
        // SAFETY: there is room for the rest of `x`.
        unsafe { y.add(whole * step).copy_from_nonoverlapping(last.as_ptr(), rest) };
    }
    sum_lanes(sums)
}

/// `x = exp(x)`.
#[inline(always)]
pub(super) fn exp_all<S: Simd, T: Real>(simd: S, x: &mut [T]) {
    simd.run(Mapped { x, f: Function::Exp }, ());
}

/// `x = ln(x)`.
#[inline(always)]
pub(super) fn ln_all<S: Simd, T: Real>(simd: S, x: &mut [T]) {
    simd.run(Mapped { x, f: Function::Ln }, ());
}

/// `x = tanh(x)`, with the widest vectors of the CPU, whatever the caller is compiled for.
pub(super) fn tanh_all<T: Real>(x: &mut [T]) {
    vectorize(OnPlain { x, f: Function::Tanh }, ());
}

/// `x = sigmoid(x)`, with the widest vectors of the CPU, whatever the caller is compiled for.
pub(super) fn sigmoid_all<T: Real>(x: &mut [T]) {
    vectorize(OnPlain { x, f: Function::Sigmoid }, ());
}

/// A function of one number.
#[derive(Clone, Copy)]
enum Function {
    Exp,
    Ln,
    Tanh,
    Sigmoid,
}

/// `x = f(x)`.
struct Mapped<'a, T> {
    x: &'a mut [T],
    f: Function,
}

impl<T: Real> Vectorized for Mapped<'_, T> {
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, _: ()) {
        let x = simd.numbers_mut(self.x);
        if S::IS_RARE {
            map::<_, 1>(self.f, x);
        } else {
            map::<_, LANES>(self.f, x);
        }
    }
}

/// [`Mapped`] of the numbers of any instructions.
struct OnPlain<'a, T> {
    x: &'a mut [T],
    f: Function,
}

impl<T: Real> Vectorized for OnPlain<'_, T> {
    type Out<'a> = ();
    const UP_TO: UpTo = UpTo::for_math::<T>();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, _: ()) {
        simd.run(Mapped { x: simd.numbers_mut(self.x), f: self.f }, ());
    }
}

/// The loop of [`Mapped`]. It takes blocks of `L`, and a rest with others, so that the compiler makes one loop
/// of each function, without a second one for a rest.
#[inline(always)]
fn map<T: Real, const L: usize>(f: Function, x: &mut [T]) {
    let (whole, rest) = x.split_at_mut(x.len() / L * L);
    let mut last = [T::ONE; L];
    last[..rest.len()].copy_from_slice(rest);
    let blocks = if rest.is_empty() { 0 } else { L };
    // Opaque, since the compiler would make a loop for each part.
    for part in black_box([whole, &mut last[..blocks]]) {
        let n = part.len() / L * L;
        if n == 0 {
            continue;
        }
        // SAFETY: a multiple of `L` that is not 0.
        unsafe { std::hint::assert_unchecked(n >= L) };
        let whole = &mut part[..n];
        match f {
            Function::Exp => {
                for value in whole.iter_mut() {
                    *value = value.exp();
                }
            }
            Function::Ln => {
                for value in whole.iter_mut() {
                    *value = value.ln();
                }
            }
            Function::Tanh => {
                for value in whole.iter_mut() {
                    *value = value.tanh();
                }
            }
            Function::Sigmoid => {
                for value in whole.iter_mut() {
                    *value = value.sigmoid();
                }
            }
        }
    }
    rest.copy_from_slice(&last[..rest.len()]);
}
