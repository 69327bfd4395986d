//! The number types of a product: those that are stored and those that are computed with.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::foreign::Gemm;
use super::kernel::{Kernels, Layout, compiled, kernels};
#[cfg(target_arch = "x86_64")]
use super::lanes::x86;
use super::lanes::{Lanes, Portable};
use super::rounded::Rows;
#[cfg(target_arch = "x86_64")]
use super::{amx, pairs};
use crate::cpu::math::Real;
#[cfg(target_arch = "x86_64")]
use crate::cpu::simd::{Avx2, Avx512};
use crate::cpu::simd::{Baseline, Simd, Vectorized, vectorize, vectorize_wide};

/// A number that operands are made of.
///
/// Sums are formed in [`Acc`](Self::Acc). For the half types it is `f32`, since a long sum of halves would
/// lose its digits. Of the integers only `i64` has products: it has the low bits of the others.
pub(crate) trait MatmulElement: Copy + Send + Sync + 'static {
    /// The type that products are computed and summed in.
    type Acc: Accumulator;
    /// Whether [`Acc`](Self::Acc) is this type, so that the kernels can read and write operands in place.
    const IS_ACC: bool;

    /// The kernels for this CPU, if there are any.
    #[inline]
    fn kernels() -> Option<&'static Kernels<Self::Acc>> {
        Kernels::get()
    }
    /// The same number as an accumulator.
    fn widen(self) -> Self::Acc;
    /// The nearest number of this type.
    fn narrow(acc: Self::Acc) -> Self;
    /// [`rounded::write`](super::rounded::write).
    ///
    /// # Safety
    /// The contract of that function.
    #[inline]
    unsafe fn round(rows: Rows<Self>) {
        Self::Acc::run(rows, ());
    }
    /// [`narrow`](Self::narrow) for each number. Both slices have the same length.
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
    /// The vectors of a CPU with AVX-512.
    #[cfg(target_arch = "x86_64")]
    type Avx512: Lanes<Elem = Self>;
    /// The vectors of a CPU with AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    type Avx2: Lanes<Elem = Self>;
    /// The vectors of any CPU of the build target.
    type Baseline: Lanes<Elem = Self>;
    /// The kernels for each [`Isa`](crate::cpu::simd::Isa), in its order; `None` where
    /// [`GEMM`](Self::GEMM) is used.
    const KERNELS: &'static [Option<Kernels<Self>>];
    /// The product of another library, if there are instructions without [`KERNELS`](Self::KERNELS).
    const GEMM: Option<Gemm<Self>>;

    /// Runs a loop with the widest vectors that loops over this type are compiled for.
    #[inline]
    fn run<V: Vectorized>(job: V, out: V::Out<'_>) {
        vectorize(job, out);
    }

    /// Like [`run`](Self::run), for a part of a product on a CPU with [`KERNELS`](Self::KERNELS).
    #[inline]
    fn run_product<V: Vectorized>(job: V, out: V::Out<'_>) {
        vectorize_wide(job, out);
    }

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

/// Implements both traits for floats. A row has the type, its vectors for AVX-512 and AVX2, the lanes of the
/// baseline's vectors, and the product of `matrixmultiply`. The row of `f32` becomes
///
/// ```ignore
/// impl MatmulElement for f32 {
///     type Acc = f32;
///     const IS_ACC: bool = true;
///     ...
/// }
///
/// impl Accumulator for f32 {
///     const ZERO: f32 = 0.0;
///     ...
///     type Avx512 = x86::F32x16;
///     type Avx2 = x86::F32x8;
///     type Baseline = Portable<f32, 4>;
///     const KERNELS: &'static [Option<Kernels<f32>>] = &[None, Some(kernels!(Avx2, f32, [1 2 ...])), ...];
///     const GEMM: Option<Gemm<f32>> = Some(matrixmultiply::sgemm);
///     ...
/// }
/// ```
macro_rules! float {
    ($($T:ident: $avx512:ty, $avx2:ty, $lanes:literal, $gemm:ident;)*) => {$(
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
            #[cfg(target_arch = "x86_64")]
            type Avx512 = $avx512;
            #[cfg(target_arch = "x86_64")]
            type Avx2 = $avx2;
            type Baseline = Portable<$T, $lanes>;
            /// 14 rows need 32 registers, which only AVX-512 has.
            const KERNELS: &'static [Option<Kernels<$T>>] = &[
                None,
                #[cfg(target_arch = "x86_64")]
                Some(kernels!(Avx2, $T, [1 2 3 4 5 6])),
                #[cfg(target_arch = "x86_64")]
                Some(kernels!(Avx512, $T, [1 2 3 4 5 6 7 8 9 10 11 12 13 14])),
            ];
            const GEMM: Option<Gemm<$T>> = Some(matrixmultiply::$gemm);
            #[inline(always)]
            fn mul_add(self, x: $T, y: $T) -> $T {
                mul_add(self, x, y)
            }
            #[inline(always)]
            fn add(self, x: $T) -> $T {
                self + x
            }
        }
    )*};
}
float! {
    f32: x86::F32x16, x86::F32x8, 4, sgemm;
    f64: x86::F64x8, x86::F64x4, 2, dgemm;
}

/// Sums wrap.
impl MatmulElement for i64 {
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
    #[cfg(target_arch = "x86_64")]
    type Avx512 = Portable<i64, 2>;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = Portable<i64, 2>;
    type Baseline = Portable<i64, 2>;
    /// Products of integers are rarely hot. They are compiled only for the baseline, since each copy costs
    /// build time.
    const KERNELS: &'static [Option<Kernels<i64>>] = &[
        Some(kernels!(Baseline, i64, [1 2 3 4])),
        #[cfg(target_arch = "x86_64")]
        Some(kernels!(Baseline, i64, [1 2 3 4])),
        #[cfg(target_arch = "x86_64")]
        Some(kernels!(Baseline, i64, [1 2 3 4])),
    ];
    const GEMM: Option<Gemm<i64>> = None;

    #[inline]
    fn run<V: Vectorized>(job: V, out: V::Out<'_>) {
        Baseline.run(job, out);
    }

    #[inline]
    fn run_product<V: Vectorized>(job: V, out: V::Out<'_>) {
        Baseline.run(job, out);
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
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn kernels() -> Option<&'static Kernels<f32>> {
        amx::found().or_else(pairs::found).or_else(Kernels::get)
    }
    #[cfg(target_arch = "x86_64")]
    #[inline]
    unsafe fn round(rows: Rows<bf16>) {
        if rows.c.col_stride == 1 && pairs::found().is_some() {
            // SAFETY: the contract is the same, and there are kernels.
            unsafe { pairs::round(rows) }
        } else {
            f32::run(rows, ());
        }
    }
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

impl MatmulElement for f16 {
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
    #[inline(always)]
    fn narrow(acc: f32) -> f16 {
        f16::from_f32(acc)
    }
    #[inline(always)]
    fn narrow_slice(from: &[f32], to: &mut [f16]) {
        to.convert_from_f32_slice(from);
    }
}
