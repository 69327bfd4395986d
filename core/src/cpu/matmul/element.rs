//! The number types of a product: those that operands have, and those that sums are formed in.

use half::{bf16, f16};

use crate::cpu::math::Real;
use crate::cpu::room::Room;
use crate::cpu::simd::{Isa, Simd};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps, _mm256_cvtps_ph,
    _mm256_loadu_ps, _mm256_storeu_ps,
};

/// A number that operands are made of.
///
/// Sums are formed in [`Acc`](Self::Acc). For the half types it is `f32`, since a long sum of halves would
/// lose its digits. Of the integers only `i64` has products: it has the low bits of the others.
pub(crate) trait MatmulNumber: Copy + Send + Sync + 'static {
    /// The type that products are computed and summed in.
    type Acc: Accumulator;
    /// Whether [`Acc`](Self::Acc) is this type, so that the kernels can read and write operands in place.
    const IS_ACC: bool;

    /// The same number as an accumulator.
    fn widen(self) -> Self::Acc;
    /// The nearest number of this type.
    fn narrow(acc: Self::Acc) -> Self;
    /// [`widen`](Self::widen) for each number, in a loop that is compiled for `S`. Writes all of `to`,
    /// which is as long as `from`.
    #[inline(always)]
    fn widen_slice<S: Simd>(from: &[Self], to: &mut Room<Self::Acc>) {
        for (to, from) in to.iter_mut().zip(from) {
            to.write(from.widen());
        }
    }
    /// [`narrow`](Self::narrow) for each number, in a loop that is compiled for `S`. Writes all of `to`,
    /// which is as long as `from`.
    #[inline(always)]
    fn narrow_slice<S: Simd>(from: &[Self::Acc], to: &mut Room<Self>) {
        for (to, from) in to.iter_mut().zip(from) {
            to.write(Self::narrow(*from));
        }
    }
}

/// A number that sums are formed in.
pub(crate) trait Accumulator: MatmulNumber<Acc = Self> + PartialEq {
    /// Zero, whose [`bits`](Self::bits) are 0.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The bits of one.
    const ONE_BITS: u64;

    /// The number in the low bits of 64, as products carry their scalars.
    fn bits(self) -> u64;
    /// The number with these [`bits`](Self::bits).
    fn of_bits(bits: u64) -> Self;
    /// `self * x + y`, rounded once if the build target has an instruction for it.
    fn mul_add(self, x: Self, y: Self) -> Self;
    /// `self + x`
    fn add(self, x: Self) -> Self;
}

/// `a * x + y`, rounded once if the build target has an instruction for it.
#[inline(always)]
fn mul_add<T: Real>(a: T, x: T, y: T) -> T {
    a.mul_add(x, y)
}

/// The bytes of a number, the lowest first, as an integer.
const fn word(bytes: &[u8]) -> u64 {
    let (mut word, mut at) = (0, 0);
    while at < bytes.len() {
        word |= (bytes[at] as u64) << (8 * at);
        at += 1;
    }
    word
}

crate::for_types!(f32, f64 => T {
    impl MatmulNumber for T {
        type Acc = T;
        const IS_ACC: bool = true;
        #[inline(always)]
        fn widen(self) -> T {
            self
        }
        #[inline(always)]
        fn narrow(acc: T) -> T {
            acc
        }
    }
    impl Accumulator for T {
        const ZERO: T = 0.0;
        const ONE: T = 1.0;
        const ONE_BITS: u64 = word(&T::to_le_bytes(1.0));
        #[inline(always)]
        fn bits(self) -> u64 {
            // A negative zero is 0, too.
            word(&(self + 0.0).to_le_bytes())
        }
        #[inline(always)]
        fn of_bits(bits: u64) -> T {
            T::from_bits(bits as _)
        }
        #[inline(always)]
        fn mul_add(self, x: T, y: T) -> T {
            mul_add(self, x, y)
        }
        #[inline(always)]
        fn add(self, x: T) -> T {
            self + x
        }
    }
});

/// Sums wrap.
impl MatmulNumber for i64 {
    type Acc = i64;
    const IS_ACC: bool = true;

    #[inline(always)]
    fn widen(self) -> i64 {
        self
    }

    #[inline(always)]
    fn narrow(acc: i64) -> i64 {
        acc
    }
}

impl Accumulator for i64 {
    const ZERO: i64 = 0;
    const ONE: i64 = 1;
    const ONE_BITS: u64 = 1;

    #[inline(always)]
    fn bits(self) -> u64 {
        self as u64
    }
    #[inline(always)]
    fn of_bits(bits: u64) -> i64 {
        bits as i64
    }
    #[inline(always)]
    fn mul_add(self, x: i64, y: i64) -> i64 {
        self.wrapping_mul(x).wrapping_add(y)
    }
    #[inline(always)]
    fn add(self, x: i64) -> i64 {
        self.wrapping_add(x)
    }
}

impl MatmulNumber for bf16 {
    type Acc = f32;
    const IS_ACC: bool = false;

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
    /// `bf16::from_f32` without branches, so that loops over it become vector code.
    #[inline(always)]
    fn narrow(acc: f32) -> bf16 {
        let bits = acc.to_bits();
        // Half of the last place, or just below it if the last bit is 0: ties go to the even number.
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        let quiet = bits >> 16 | 0x40; // a NaN must not become an infinity
        bf16::from_bits(if acc.is_nan() { quiet } else { rounded } as u16)
    }
}

impl MatmulNumber for f16 {
    type Acc = f32;
    const IS_ACC: bool = false;

    /// Has no branches, so that loops over it become vector code. `f16::to_f32` checks the CPU on each call.
    ///
    /// Exponent and fraction, moved to where `f32` has them, are a number that is too small by `2^112`, the
    /// difference of the biases 15 and 127. The product corrects this for subnormal numbers too. Infinity and
    /// NaN have the greatest exponent, which is set separately.
    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let small = f32::from_bits((bits & 0x7fff) << 13);
        let special = if bits & 0x7c00 == 0x7c00 { 0xff << 23 } else { 0 };
        let scale = f32::from_bits((127 + 112) << 23);
        f32::from_bits((small * scale).to_bits() | special | (bits & 0x8000) << 16)
    }
    /// A call: the code is long, and vectors of numbers have an instruction for it.
    #[inline(never)]
    fn narrow(acc: f32) -> f16 {
        f16::from_f32(acc)
    }
    #[inline(always)]
    fn widen_slice<S: Simd>(from: &[f16], to: &mut Room<f32>) {
        let whole = converted_at_once::<S>(from.len());
        #[cfg(target_arch = "x86_64")]
        for at in (0..whole).step_by(LANES) {
            // SAFETY: there are eight more numbers, and the CPU has the instruction.
            unsafe {
                let numbers = _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().add(at).cast()));
                _mm256_storeu_ps(to.as_mut_ptr().add(at).cast(), numbers);
            }
        }
        for (to, from) in to[whole..].iter_mut().zip(&from[whole..]) {
            to.write(from.widen());
        }
    }
    #[inline(always)]
    fn narrow_slice<S: Simd>(from: &[f32], to: &mut Room<f16>) {
        let whole = converted_at_once::<S>(from.len());
        #[cfg(target_arch = "x86_64")]
        for at in (0..whole).step_by(LANES) {
            // SAFETY: there are eight more numbers, and the CPU has the instruction.
            unsafe {
                let numbers = _mm256_loadu_ps(from.as_ptr().add(at));
                let rounded = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(numbers);
                _mm_storeu_si128(to.as_mut_ptr().add(at).cast(), rounded);
            }
        }
        for (to, from) in to[whole..].iter_mut().zip(&from[whole..]) {
            to.write(f16::narrow(*from));
        }
    }
}

/// The numbers of `f16` that an instruction converts.
const LANES: usize = 8;

/// How many of `n` numbers of `f16` instructions convert. All CPUs with AVX2 have them.
#[inline(always)]
fn converted_at_once<S: Simd>(n: usize) -> usize {
    if cfg!(target_arch = "x86_64") && S::ISA > Isa::Baseline { n / LANES * LANES } else { 0 }
}
