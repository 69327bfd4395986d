//! Casts between dtypes.

use super::matmul::MatmulNumber;
use super::room::Room;
use super::simd::{Simd, UpTo, Vectorized, vectorize};
use crate::dtype::{DType, Element, Scalar, dispatch};
use half::{bf16, f16};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// The cast of a run of elements from one dtype to another.
#[derive(Clone, Copy)]
pub(crate) struct Convert {
    first: ConvertLoop,
    /// The second step of a cast through `i64` or `f64`.
    second: Option<ConvertLoop>,
    /// The sizes of an element of the source and of the result.
    itemsizes: [usize; 2],
    /// Whether the dtypes are the same.
    is_copy: bool,
}

/// A loop over `n` contiguous elements.
///
/// # Safety
/// The elements exist, `dst` has room for `n`, and the two do not overlap.
type ConvertLoop = unsafe fn(n: usize, src: *const u8, dst: *mut u8);

/// The cast from one dtype to another. Frequent ones have a loop of their own; others go through `i64` or
/// `f64`, which have all numbers of a source, and from which a cast is that of the number itself.
pub(crate) fn converter(from: DType, to: DType) -> Convert {
    use DType::*;
    let direct: Option<ConvertLoop> = match (from, to) {
        _ if from == to => Some(dispatch!(from, width U => copy::<U>)),
        (F16, F32) => Some(half_to_f32::<f16>),
        (BF16, F32) => Some(half_to_f32::<bf16>),
        (F32, F16) => Some(f32_to_half::<f16>),
        (F32, BF16) => Some(f32_to_half::<bf16>),
        (Bool, F32) => Some(run::<bool, f32>),
        (U8, F32) => Some(run::<u8, f32>),
        (F64, I64) => Some(truncate),
        (I64, _) => Some(dispatch!(to, T => run::<i64, T>)),
        (F64, _) => Some(dispatch!(to, T => run::<f64, T>)),
        (_, I64) if !from.is_floating_point() => Some(to_wide(from)),
        (_, F64) if from.is_floating_point() => Some(to_wide(from)),
        _ => None,
    };
    let (itemsizes, is_copy) = ([from.itemsize(), to.itemsize()], from == to);
    match direct {
        Some(first) => Convert { first, second: None, itemsizes, is_copy },
        None => {
            let wide = if from.is_floating_point() { F64 } else { I64 };
            Convert { first: to_wide(from), second: Some(converter(wide, to).first), itemsizes, is_copy }
        }
    }
}

/// The cast to `f64` or, from an integer or `bool`, to `i64`.
fn to_wide(from: DType) -> ConvertLoop {
    match from {
        DType::F16 => run::<f16, f64>,
        DType::BF16 => run::<bf16, f64>,
        DType::F32 => run::<f32, f64>,
        DType::F64 => copy::<u64>,
        DType::Bool => run::<bool, i64>,
        DType::U8 => run::<u8, i64>,
        DType::I8 => run::<i8, i64>,
        DType::I16 => run::<i16, i64>,
        DType::I32 => run::<i32, i64>,
        DType::I64 => copy::<u64>,
    }
}

impl Convert {
    /// Reads `n` elements of `src` that are `stride` elements apart, casts them and writes them contiguously to
    /// `dst`.
    ///
    /// # Safety
    /// The elements exist, `dst` has room for `n`, and the two do not overlap.
    #[inline]
    pub(crate) unsafe fn run(self, n: usize, src: *const u8, stride: isize, dst: *mut u8) {
        // SAFETY: the same contract.
        unsafe {
            match stride {
                _ if n <= 1 => self.run_dense(n, src, dst),
                1 => self.run_dense(n, src, dst),
                0 => self.repeat(n, src, dst),
                _ if self.is_copy => gather(self.itemsizes[0], n, src, stride, dst),
                _ => self.run_gathered(n, src, stride, dst),
            }
        }
    }

    /// [`run`](Self::run) of contiguous elements.
    #[inline]
    unsafe fn run_dense(self, n: usize, src: *const u8, dst: *mut u8) {
        // SAFETY: the same contract.
        unsafe {
            match self.second {
                None => (self.first)(n, src, dst),
                Some(second) => self.in_two_steps(second, n, src, dst),
            }
        }
    }

    /// [`run`](Self::run) of elements that are gathered in the cache first, so that loops are over contiguous
    /// ones.
    #[inline(never)]
    unsafe fn run_gathered(self, n: usize, src: *const u8, stride: isize, dst: *mut u8) {
        let mut dense = [MaybeUninit::<u64>::uninit(); PART];
        let dense = dense.as_mut_ptr().cast::<u8>();
        let mut done = 0;
        while done < n {
            let count = (n - done).min(PART);
            // SAFETY: these are elements `done..done + count` of both, and there is room for them.
            unsafe {
                let from = src.offset(done as isize * stride * self.itemsizes[0] as isize);
                gather(self.itemsizes[0], count, from, stride, dense);
                self.run_dense(count, dense, dst.add(done * self.itemsizes[1]));
            }
            done += count;
        }
    }

    /// [`run`](Self::run) of one element, which is cast once. Gradients of sums are one number, expanded.
    #[inline(never)]
    unsafe fn repeat(self, n: usize, src: *const u8, dst: *mut u8) {
        // SAFETY: the same contract. The first element is written before it is read.
        unsafe {
            self.run_dense(1, src, dst);
            match self.itemsizes[1] {
                1 => fill_with_first::<u8>(n, dst),
                2 => fill_with_first::<u16>(n, dst),
                4 => fill_with_first::<u32>(n, dst),
                _ => fill_with_first::<u64>(n, dst),
            }
        }
    }

    /// [`run_dense`](Self::run_dense) through wide numbers in the cache.
    #[inline(never)]
    unsafe fn in_two_steps(self, second: ConvertLoop, n: usize, src: *const u8, dst: *mut u8) {
        let mut wide = [MaybeUninit::<u64>::uninit(); PART];
        let wide = wide.as_mut_ptr().cast::<u8>();
        let mut done = 0;
        while done < n {
            let count = (n - done).min(PART);
            // SAFETY: these are elements `done..done + count` of both, and the wide numbers have room.
            unsafe {
                (self.first)(count, src.add(done * self.itemsizes[0]), wide);
                second(count, wide, dst.add(done * self.itemsizes[1]));
            }
            done += count;
        }
    }
}

/// The elements that stay in the cache between two loops.
const PART: usize = 512;

/// Copies elements of some width that are `stride` elements apart.
///
/// # Safety
/// As for [`Convert::run`].
#[inline(never)]
unsafe fn gather(itemsize: usize, n: usize, src: *const u8, stride: isize, dst: *mut u8) {
    // SAFETY: the same contract.
    unsafe {
        match itemsize {
            1 => gather_as::<u8>(n, src, stride, dst),
            2 => gather_as::<u16>(n, src, stride, dst),
            4 => gather_as::<u32>(n, src, stride, dst),
            _ => gather_as::<u64>(n, src, stride, dst),
        }
    }
}

unsafe fn gather_as<U: Copy>(n: usize, src: *const u8, stride: isize, dst: *mut u8) {
    let (src, dst) = (src.cast::<U>(), dst.cast::<U>());
    for i in 0..n {
        // SAFETY: the caller's contract.
        unsafe { *dst.add(i) = *src.offset(i as isize * stride) };
    }
}

/// Writes the first of `n` elements of the width of `U` to the others.
///
/// # Safety
/// There is room for them, and the first is written.
unsafe fn fill_with_first<U: Copy>(n: usize, dst: *mut u8) {
    let dst = dst.cast::<U>();
    // SAFETY: the caller's contract.
    unsafe {
        let first = *dst;
        for i in 1..n {
            *dst.add(i) = first;
        }
    }
}

unsafe fn copy<U: Copy>(n: usize, src: *const u8, dst: *mut u8) {
    // SAFETY: the caller's contract.
    unsafe { dst.cast::<U>().copy_from_nonoverlapping(src.cast(), n) }
}

unsafe fn run<S: Element, T: Element>(n: usize, src: *const u8, dst: *mut u8) {
    let (src, dst) = (src.cast::<S>(), dst.cast::<T>());
    let mut i = 0;
    while i < n {
        // SAFETY: the caller's contract.
        unsafe { *dst.add(i) = T::from_scalar((*src.add(i)).to_scalar()) };
        i += 1;
    }
}

/// Numbers of `f64`, without fractions. What does not fit in `i64` becomes its smallest number, as for the CPU.
struct Truncated<'a>(&'a [f64]);

impl Vectorized for Truncated<'_> {
    type Out<'a> = &'a mut Room<i64>;
    const UP_TO: UpTo = UpTo::Avx2;

    /// In blocks of numbers that fit in 51 bits: after the addition of `1.5 * 2^52`, the bits of a number
    /// are those of an integer. There is no instruction for this before AVX-512.
    #[inline(always)]
    fn run<S: Simd>(self, _: S, to: &mut Room<i64>) {
        const SHIFT: f64 = 1.5 * (1_u64 << 52) as f64;
        const LIMIT: f64 = (1_u64 << 51) as f64;
        for (from, to) in self.0.chunks(BLOCK).zip(to.chunks_mut(BLOCK)) {
            let mut fit = true;
            for x in from {
                fit &= x.abs() < LIMIT;
            }
            for (from, to) in from.iter().zip(to) {
                to.write(match fit && !S::IS_RARE {
                    true => (from.trunc() + SHIFT).to_bits() as i64 - SHIFT.to_bits() as i64,
                    false => i64::from_scalar(Scalar::Float(*from)),
                });
            }
        }
    }
}

/// The numbers whose sizes are looked at before they are truncated.
const BLOCK: usize = 64;

unsafe fn truncate(n: usize, src: *const u8, dst: *mut u8) {
    // SAFETY: the caller's contract.
    unsafe { vectorize(Truncated(from_raw_parts(src.cast(), n)), from_raw_parts_mut(dst.cast(), n)) }
}

/// The numbers of a half type as `f32`.
struct Widened<'a, H>(&'a [H]);

impl<H: MatmulNumber<Acc = f32>> Vectorized for Widened<'_, H> {
    type Out<'a> = &'a mut Room<f32>;
    const UP_TO: UpTo = UpTo::Avx2;

    #[inline(always)]
    fn run<S: Simd>(self, _: S, to: &mut Room<f32>) {
        H::widen_slice::<S>(self.0, to);
    }
}

/// Numbers of `f32`, rounded to a half type.
struct Narrowed<'a, H>(&'a [f32], PhantomData<H>);

impl<H: MatmulNumber<Acc = f32>> Vectorized for Narrowed<'_, H> {
    type Out<'a> = &'a mut Room<H>;
    const UP_TO: UpTo = UpTo::Avx512;

    #[inline(always)]
    fn run<S: Simd>(self, _: S, to: &mut Room<H>) {
        H::narrow_slice::<S>(self.0, to);
    }
}

unsafe fn half_to_f32<H: MatmulNumber<Acc = f32>>(n: usize, src: *const u8, dst: *mut u8) {
    // SAFETY: the caller's contract.
    unsafe { vectorize(Widened::<H>(from_raw_parts(src.cast(), n)), from_raw_parts_mut(dst.cast(), n)) }
}

unsafe fn f32_to_half<H: MatmulNumber<Acc = f32>>(n: usize, src: *const u8, dst: *mut u8) {
    // SAFETY: the caller's contract.
    unsafe {
        let rounded = Narrowed::<H>(from_raw_parts(src.cast(), n), PhantomData);
        vectorize(rounded, from_raw_parts_mut(dst.cast(), n));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_agrees_with_the_cast_of_one_number() {
        let values = [0.0, 1.0, 2.5, -1.5, 100.0, 1e9, f64::NAN, f64::INFINITY, -1e30];
        for from in DType::ALL {
            for to in DType::ALL {
                dispatch!(from, S => dispatch!(to, T => {
                    let src: Vec<S> = values.iter().flat_map(|v| [S::from_scalar(Scalar::Float(*v)); 2]).collect();
                    for stride in [1isize, 2, 0] {
                        let n = values.len();
                        let mut dst = vec![T::default(); n];
                        // SAFETY: `src` has 2n elements, `dst` n.
                        unsafe { converter(from, to).run(n, src.as_ptr().cast(), stride, dst.as_mut_ptr().cast()) };
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
