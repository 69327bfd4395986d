//! [`Lane`] and [`Real`] for `f32` and `f64`.

use super::fused::{Alone, Fused, Fusible};
use super::lane::{F32, F64, Lane, Tables};
use super::{Real, elementary};

/// Whether the build target promises fused multiply-add, so that the plain types may use it too.
const FUSED: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));

/// Implements the traits for a type: its name, the integer with its bits, its [`Tables`], the widths of the
/// parts of its bits, and `powf`, plain and fused.
///
/// The row of `f32` becomes
///
/// ```ignore
/// impl Lane for f32 {
///     const TABLES: &'static Tables = &F32;
///     ...
///     fn abs(self) -> Self {
///         f32::abs(self)
///     }
///
///     fn head(self) -> Self {
///         f32::from_bits(self.to_bits() & 0xffff_f000)
///     }
///     ...
/// }
///
/// impl Real for f32 {
///     type Fused = Fused<Self>;
///     ...
/// }
///
/// impl Fusible for f32 { ... }
/// ```
macro_rules! plain {
    (
        $float:ident, $bits:ident, $tables:ident,
        fraction $fraction:literal, bias $bias:literal, head $head:literal,
        powf $powf:expr, $fused_powf:expr
    ) => {
        impl Lane for $float {
            const TABLES: &'static Tables = &$tables;
            const ROUND: f64 = (3_u64 << ($fraction - 1)) as f64 + 2.0 * $bias as f64;
            const SMALLEST_NORMAL: f64 = $float::MIN_POSITIVE as f64;
            const FRACTION: i32 = $fraction;

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $float
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                if FUSED { $float::mul_add(self, a, b) } else { self * a + b }
            }

            #[inline(always)]
            fn abs(self) -> Self {
                $float::abs(self)
            }

            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                $float::copysign(self, sign)
            }

            #[inline(always)]
            fn trunc(self) -> Self {
                $float::trunc(self)
            }

            #[inline(always)]
            fn head(self) -> Self {
                $float::from_bits(self.to_bits() & $head)
            }

            #[inline(always)]
            fn or(self, other: Self) -> Self {
                $float::from_bits(self.to_bits() | other.to_bits())
            }

            #[inline(always)]
            fn powers_of_two(self) -> (Self, Self) {
                let bits = self.to_bits();
                let half = bits >> 1;
                // shifted to the left until only the exponent, biased once, remains
                ($float::from_bits(half << $fraction), $float::from_bits((bits - half) << $fraction))
            }

            #[inline(always)]
            fn second_reciprocal(self) -> Self {
                let bits = self.to_bits();
                let exponent = bits - (bits >> 1);
                $float::from_bits((2 * $bias as $bits).wrapping_sub(exponent) << $fraction)
            }

            #[inline(always)]
            fn power_of_two(self) -> Self {
                $float::from_bits(self.to_bits().wrapping_sub($bias) << $fraction)
            }

            #[inline(always)]
            fn split(self) -> (Self, Self, Self) {
                const ONE: $bits = ($bias as $bits) << $fraction;
                const SQRT_HALF: $bits = std::$float::consts::FRAC_1_SQRT_2.to_bits();
                let bits = self.to_bits().wrapping_sub(SQRT_HALF).wrapping_add(ONE);
                let exponent = bits >> $fraction; // k + bias
                // an integer below 2^fraction becomes a float if it is written into the fraction of
                // 2^fraction
                const SHIFT: $float = ((1 as $bits) << $fraction) as $float;
                let k = $float::from_bits(exponent | SHIFT.to_bits()) - (SHIFT + $bias as $float);
                let fraction = bits & (((1 as $bits) << $fraction) - 1);
                let m = $float::from_bits(fraction.wrapping_add(SQRT_HALF));
                let down = $float::from_bits((2 * $bias as $bits + 1).wrapping_sub(exponent) << $fraction);
                (k, m, down)
            }
        }

        impl Real for $float {
            type Fused = Fused<Self>;
            type Alone = Alone<Self>;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const HALF: Self = 0.5;
            const INFINITY: Self = $float::INFINITY;
            const NEG_INFINITY: Self = $float::NEG_INFINITY;
            const NAN: Self = $float::NAN;
            const EPSILON: Self = $float::EPSILON;
            const MAX: Self = $float::MAX;

            #[cfg_attr(target_arch = "x86_64", inline(never))]
            #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
            fn call(self, f: impl Fn(Self) -> Self) -> Self {
                f(self)
            }

            #[inline(always)]
            fn sqrt(self) -> Self {
                $float::sqrt(self)
            }

            #[inline(always)]
            fn floor(self) -> Self {
                $float::floor(self)
            }

            #[inline(always)]
            fn ceil(self) -> Self {
                $float::ceil(self)
            }

            #[inline(always)]
            fn round(self) -> Self {
                $float::round_ties_even(self)
            }

            #[inline(always)]
            fn powf(self, exponent: Self) -> Self {
                $powf(self, exponent)
            }
        }

        impl Fusible for $float {
            #[inline(always)]
            fn fused_mul_add(self, a: Self, b: Self) -> Self {
                $float::mul_add(self, a, b)
            }

            #[inline(always)]
            fn fused_powf(self, exponent: Self) -> Self {
                $fused_powf(self, exponent)
            }

            #[inline(always)]
            fn alone(self) -> Self {
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                {
                    let same;
                    // SAFETY: no instruction, so the register keeps its number.
                    unsafe {
                        std::arch::asm!(
                            "/* {0} */",
                            inlateout(xmm_reg) self => same,
                            options(pure, nomem, nostack, preserves_flags)
                        );
                    }
                    same
                }
                #[cfg(not(all(target_arch = "x86_64", not(miri))))]
                self
            }
        }
    };
}
plain! {
    f32, u32, F32, fraction 23, bias 127, head 0xffff_f000,
    powf elementary::powf::<f32, f64>, elementary::powf::<f32, Fused<f64>>
}
plain! {
    f64, u64, F64, fraction 52, bias 1023, head 0xffff_ffff_f800_0000,
    powf libm::pow, libm::pow
}
