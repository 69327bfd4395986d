//! Casts between dtypes.

use crate::dtype::{DType, Element, dispatch};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

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

/// How many numbers of a half type are converted at a time.
const PIECE: usize = 1 << 10;

/// The half types, converted by the `half` crate with the CPU's instructions if it has any.
trait Half: Element {
    fn widen(from: &[Self], to: &mut [f32]);
    fn narrow(from: &[f32], to: &mut [Self]);
}

impl Half for f16 {
    fn widen(from: &[f16], to: &mut [f32]) {
        from.convert_to_f32_slice(to);
    }

    fn narrow(from: &[f32], to: &mut [f16]) {
        to.convert_from_f32_slice(from);
    }
}

impl Half for bf16 {
    fn widen(from: &[bf16], to: &mut [f32]) {
        from.convert_to_f32_slice(to);
    }

    fn narrow(from: &[f32], to: &mut [bf16]) {
        to.convert_from_f32_slice(from);
    }
}

unsafe fn half_to_f32<H: Half>(n: usize, src: *const u8, stride: isize, dst: *mut u8) {
    if stride != 1 {
        // SAFETY: the same contract.
        return unsafe { run::<H, f32>(n, src, stride, dst) };
    }
    // SAFETY: the same contract.
    unsafe { in_pieces::<H, f32>(n, src, dst, H::widen) }
}

unsafe fn f32_to_half<H: Half>(n: usize, src: *const u8, stride: isize, dst: *mut u8) {
    if stride != 1 {
        // SAFETY: the same contract.
        return unsafe { run::<f32, H>(n, src, stride, dst) };
    }
    // SAFETY: the same contract.
    unsafe { in_pieces::<f32, H>(n, src, dst, H::narrow) }
}

/// Converts slices of at most [`PIECE`] numbers. The half crate takes only numbers as its output, so that
/// zeros are written first, to memory that is in the cache when it is written again.
///
/// # Safety
/// As [`Convert`], for a stride of 1. All zeros are a `T`.
unsafe fn in_pieces<S: Element, T: Element>(
    n: usize,
    src: *const u8,
    dst: *mut u8,
    convert: fn(&[S], &mut [T]),
) {
    let (src, dst) = (src.cast::<S>(), dst.cast::<T>());
    for start in (0..n).step_by(PIECE) {
        let len = PIECE.min(n - start);
        // SAFETY: the caller's contract; the memory is written before it is a slice.
        unsafe {
            let to = dst.add(start);
            to.write_bytes(0, len);
            convert(std::slice::from_raw_parts(src.add(start), len), std::slice::from_raw_parts_mut(to, len));
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
