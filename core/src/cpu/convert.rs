//! Casts between dtypes.

use super::matmul::MatmulElement;
use super::room::{self, Room};
use super::simd::{Simd, Vectorized, vectorize};
use crate::dtype::{DType, Element, dispatch};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Reads `n` elements of `src` that are `stride` elements apart, casts them and writes them contiguously to
/// `dst`.
///
/// # Safety
/// The elements exist, `dst` has room for `n`, and the two do not overlap.
pub(crate) type Convert = unsafe fn(n: usize, src: *const u8, stride: isize, dst: *mut u8);

/// The cast from one dtype to another.
pub(crate) fn converter(from: DType, to: DType) -> Convert {
    use DType::*;
    match (from, to) {
        (F16, F32) => half_to_f32::<f16>,
        (BF16, F32) => half_to_f32::<bf16>,
        (F32, F16) => f32_to_half::<f16>,
        (F32, BF16) => f32_to_half::<bf16>,
        _ => dispatch!(from, S => dispatch!(to, T => run::<S, T>)),
    }
}

unsafe fn run<S: Element, T: Element>(n: usize, src: *const u8, stride: isize, dst: *mut u8) {
    let (src, dst) = (src.cast::<S>(), dst.cast::<T>());
    // SAFETY: the caller's contract.
    unsafe {
        match stride {
            1 if S::DTYPE == T::DTYPE => dst.cast::<S>().copy_from_nonoverlapping(src, n),
            1 => cast_run(n, src, dst),
            0 => {
                let value = T::from_scalar(src.read().to_scalar());
                (0..n).for_each(|i| dst.add(i).write(value));
            }
            _ => (0..n).for_each(|i| {
                dst.add(i).write(T::from_scalar(src.offset(i as isize * stride).read().to_scalar()))
            }),
        }
    }
}

unsafe fn cast_run<S: Element, T: Element>(n: usize, src: *const S, dst: *mut T) {
    for i in 0..n {
        // SAFETY: the caller's contract.
        unsafe { dst.add(i).write(T::from_scalar(src.add(i).read().to_scalar())) };
    }
}

/// The half types. The conversions write all of `to`, which has the length of `from`.
trait Half: Element {
    fn widen(from: &[Self], to: &mut Room<f32>);
    fn narrow(from: &[f32], to: &mut Room<Self>);
}

/// How many numbers the `half` crate converts at a time. It takes only numbers as its output, so zeros are
/// written first, to memory that is in the cache when it is written again.
const PIECE: usize = 1 << 10;

/// With the instructions of the CPU for `f16`.
impl Half for f16 {
    fn widen(from: &[f16], to: &mut Room<f32>) {
        for (from, to) in from.chunks(PIECE).zip(to.chunks_mut(PIECE)) {
            from.convert_to_f32_slice(room::fill(to, 0.0));
        }
    }

    fn narrow(from: &[f32], to: &mut Room<f16>) {
        for (from, to) in from.chunks(PIECE).zip(to.chunks_mut(PIECE)) {
            room::fill(to, f16::ZERO).convert_from_f32_slice(from);
        }
    }
}

impl Half for bf16 {
    fn widen(from: &[bf16], to: &mut Room<f32>) {
        vectorize(Widened(from), to);
    }

    fn narrow(from: &[f32], to: &mut Room<bf16>) {
        vectorize(Narrowed(from), to);
    }
}

/// Numbers of `bf16`, as `f32`.
struct Widened<'a>(&'a [bf16]);

impl Vectorized for Widened<'_> {
    type Out<'a> = &'a mut Room<f32>;

    #[inline(always)]
    fn run<S: Simd>(self, _: S, to: &mut Room<f32>) {
        for (to, from) in to.iter_mut().zip(self.0) {
            to.write(MatmulElement::widen(*from));
        }
    }
}

/// Numbers of `f32`, rounded to `bf16`.
struct Narrowed<'a>(&'a [f32]);

impl Vectorized for Narrowed<'_> {
    type Out<'a> = &'a mut Room<bf16>;

    #[inline(always)]
    fn run<S: Simd>(self, _: S, to: &mut Room<bf16>) {
        for (to, from) in to.iter_mut().zip(self.0) {
            to.write(MatmulElement::narrow(*from));
        }
    }
}

unsafe fn half_to_f32<H: Half>(n: usize, src: *const u8, stride: isize, dst: *mut u8) {
    // SAFETY: the same contract.
    unsafe {
        match stride {
            1 => H::widen(from_raw_parts(src.cast(), n), from_raw_parts_mut(dst.cast(), n)),
            _ => run::<H, f32>(n, src, stride, dst),
        }
    }
}

unsafe fn f32_to_half<H: Half>(n: usize, src: *const u8, stride: isize, dst: *mut u8) {
    // SAFETY: the same contract.
    unsafe {
        match stride {
            1 => H::narrow(from_raw_parts(src.cast(), n), from_raw_parts_mut(dst.cast(), n)),
            _ => run::<f32, H>(n, src, stride, dst),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Scalar;

    #[test]
    fn every_pair_agrees_with_the_cast_of_one_number() {
        let values = [0.0, 1.0, 2.5, -1.5, 100.0, 1e9, f64::NAN, f64::INFINITY, -1e30];
        for from in DType::ALL {
            for to in DType::ALL {
                dispatch!(from, S => dispatch!(to, T => {
                    let src: Vec<S> = values.iter().flat_map(|v| [S::from_scalar(Scalar::Float(*v)); 2]).collect();
                    for stride in [1isize, 2] {
                        let n = values.len();
                        let mut dst = vec![T::default(); n];
                        // SAFETY: `src` has 2n elements, `dst` n.
                        unsafe { converter(from, to)(n, src.as_ptr().cast(), stride, dst.as_mut_ptr().cast()) };
                        for i in 0..n {
                            let want = T::from_scalar(src[i * stride as usize].to_scalar());
                            let same = dst[i] == want || (dst[i] != dst[i] && want != want);
                            assert!(same, "{from} to {to}: {:?} gave {:?}, not {want:?}", src[i * stride as usize], dst[i]);
                        }
                    }
                }));
            }
        }
    }
}
