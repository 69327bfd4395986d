//! The number types of a product: what is stored in memory, and what is computed with.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::kernel::{self, Kernels, kernels};
#[cfg(target_arch = "x86_64")]
use super::lanes::x86;
use super::lanes::{Lanes, Portable};
use crate::cpu::simd::Isa;

/// A number that operands are made of.
///
/// Sums are formed in [`Acc`](Self::Acc): `f32` for the half types, since a long sum of halves loses its digits,
/// and `i64` for the integers, whose low bits are the same: one set of kernels serves them all.
pub(crate) trait MatmulElement: Copy + Send + Sync + 'static {
    /// The type that products are computed and summed in.
    type Acc: Accumulator;
    /// Whether [`Acc`](Self::Acc) is this very type, so that the kernels may read and write operands in place.
    const IS_ACC: bool;

    /// This number as an accumulator; exact.
    fn widen(self) -> Self::Acc;
    /// The nearest number of this type; integers keep their low bits.
    fn narrow(acc: Self::Acc) -> Self;
    /// [`narrow`](Self::narrow) of each number, both slices having one length.
    #[inline(always)]
    fn narrow_slice(from: &[Self::Acc], to: &mut [Self]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = Self::narrow(*from);
        }
    }
}

/// A number that sums are formed in.
pub(crate) trait Accumulator: MatmulElement<Acc = Self> + PartialEq {
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Whether [`vectors!`](super::lanes::vectors) compiles for the CPU's widest vectors. Products of integers are no hot path, and each copy
    /// costs build time.
    const WIDE: bool;
    /// The vectors of a CPU with AVX-512.
    #[cfg(target_arch = "x86_64")]
    type Avx512: Lanes<Elem = Self>;
    /// The vectors of a CPU with AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    type Avx2: Lanes<Elem = Self>;
    /// The vectors of any CPU of the compilation target.
    type Baseline: Lanes<Elem = Self>;

    /// The kernels for CPUs with these instructions.
    fn kernels(isa: Isa) -> &'static Kernels<Self>;
    /// `self * x + y`, rounded once where the compilation target does that in one instruction.
    fn mul_add(self, x: Self, y: Self) -> Self;
    /// `self + x`
    fn add(self, x: Self) -> Self;
}

/// Implements both traits for floats: type, vectors for AVX-512 and AVX2, lanes of the baseline's vector.
///
/// Without the instruction `mul_add` is a slow call into libm, hence the `cfg!`, which sees the features of the whole
/// build alone.
macro_rules! float {
    ($($T:ident: $avx512:ty, $avx2:ty, $lanes:literal;)*) => {$(
        impl MatmulElement for $T {
            type Acc = $T;
            const IS_ACC: bool = true;
            #[inline(always)]
            fn widen(self) -> $T {
                self
            }
            #[inline(always)]
            fn narrow(acc: $T) -> $T {
                acc
            }
        }
        impl Accumulator for $T {
            const ZERO: $T = 0.0;
            const ONE: $T = 1.0;
            const WIDE: bool = true;
            #[cfg(target_arch = "x86_64")]
            type Avx512 = $avx512;
            #[cfg(target_arch = "x86_64")]
            type Avx2 = $avx2;
            type Baseline = Portable<$T, $lanes>;
            /// 14 rows want 32 registers, which AVX-512 alone has.
            #[inline]
            fn kernels(isa: Isa) -> &'static Kernels<$T> {
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => kernels!(avx512, $avx512, [1 2 3 4 5 6 7 8 9 10 11 12 13 14]),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => kernels!(avx2, $avx2, [1 2 3 4 5 6]),
                    _ => kernels!(baseline, Portable<$T, $lanes>, [1 2 3 4]),
                }
            }
            #[inline(always)]
            fn mul_add(self, x: $T, y: $T) -> $T {
                let fused = cfg!(any(target_feature = "fma", target_arch = "aarch64"));
                if fused { $T::mul_add(self, x, y) } else { self * x + y }
            }
            #[inline(always)]
            fn add(self, x: $T) -> $T {
                self + x
            }
        }
    )*};
}
float! {
    f32: x86::F32x16, x86::F32x8, 4;
    f64: x86::F64x8, x86::F64x4, 2;
}

/// Implements [`MatmulElement`] for integers, which are summed in `i64` and wrap.
macro_rules! integer {
    ($($T:ident)*) => {$(
        impl MatmulElement for $T {
            type Acc = i64;
            const IS_ACC: bool = $T::BITS == i64::BITS;
            #[inline(always)]
            fn widen(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn narrow(acc: i64) -> $T {
                acc as $T
            }
        }
    )*};
}
integer! { u8 i8 i16 i32 i64 }

impl Accumulator for i64 {
    const ZERO: i64 = 0;
    const ONE: i64 = 1;
    const WIDE: bool = false;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = x86::I64x8;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = Portable<i64, 2>;
    type Baseline = Portable<i64, 2>;

    /// Integers are no hot path: few rows, and nothing between AVX-512, which multiplies them, and plain code.
    #[inline]
    fn kernels(isa: Isa) -> &'static Kernels<i64> {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => kernels!(avx512, x86::I64x8, [1 2 3 4]),
            _ => kernels!(baseline, Portable<i64, 2>, [1 2 3 4]),
        }
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

impl MatmulElement for bf16 {
    type Acc = f32;
    const IS_ACC: bool = false;
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
    #[inline(always)]
    fn narrow(acc: f32) -> bf16 {
        bf16::from_f32(acc)
    }
    #[inline(always)]
    fn narrow_slice(from: &[f32], to: &mut [bf16]) {
        to.convert_from_f32_slice(from);
    }
}

impl MatmulElement for f16 {
    type Acc = f32;
    const IS_ACC: bool = false;
    /// Written without branches, so that loops over it become vector code; `f16::to_f32` asks for the CPU each time.
    ///
    /// The bits of exponent and fraction, moved to where `f32` has them, are a number `2^112` times too small, the
    /// biases being 15 and 127; the product sets that right for denormals as well. Infinity and NaN have the greatest
    /// exponent, which is put in by hand.
    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let small = f32::from_bits((bits & 0x7fff) << 13);
        let special = if bits & 0x7c00 == 0x7c00 { 0xff << 23 } else { 0 };
        let scale = f32::from_bits((127 + 112) << 23);
        f32::from_bits((small * scale).to_bits() | special | (bits & 0x8000) << 16)
    }
    #[inline(always)]
    fn narrow(acc: f32) -> f16 {
        f16::from_f32(acc)
    }
    #[inline(always)]
    fn narrow_slice(from: &[f32], to: &mut [f16]) {
        to.convert_from_f32_slice(from);
    }
}
