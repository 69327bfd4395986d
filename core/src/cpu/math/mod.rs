//! The functions of one real variable (and a few of two) that kernels are made of, for `f32` and `f64`.
//!
//! [`Real`] lists them. What is hot is written without branches or calls in `elementary.rs` (`exp`, `ln`, `tanh` and their
//! kin) and `erf.rs`, so that a plain loop over a slice becomes vector code inside a [`simd!`](crate::cpu::simd) body, and
//! faster code inside a `simd_real!` body (`fused.rs`). Coefficients and the handling of bits are in `lane.rs`. What is rare
//! is scalar: computed in `f64`, by `libm` or in `special.rs`, `gamma.rs` and `bessel.rs`.

mod bessel;
mod elementary;
mod erf;
mod fused;
mod gamma;
mod lane;
mod special;

use std::fmt::{Debug, Display};

pub(crate) use fused::simd_real;
pub use fused::{Fuse, Fused};
use lane::Lane;

/// A floating-point type that kernels compute in: `f32` or `f64`.
///
/// Methods are named as in `std` where `std` has them and else as in PyTorch. On a concrete `f32` or `f64` the
/// methods of `std` win over these, so write kernels generic over `T: Real` (or call `Real::exp(x)`).
///
/// Results are within 2 units in the last place (usually 1), but for `sigmoid` (2.2), the tails of `erfc` and `ndtr` (3.5) and
/// the Bessel functions (4.5), and for what is a sum of two of them that nearly cancel. NaN gives NaN.
pub trait Real: Lane + Default + Debug + Display + Send + Sync + 'static {
    /// This type with fused multiply-add, for loops that run where the CPU has it.
    type Fused: Real;

    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// ½.
    const HALF: Self;
    /// `∞`.
    const INFINITY: Self;
    /// `-∞`.
    const NEG_INFINITY: Self;
    /// Not a number.
    const NAN: Self;
    /// The distance from one to the next larger number.
    const EPSILON: Self;
    /// The largest finite number.
    const MAX: Self;
    /// The smallest finite number, `-MAX`.
    const MIN: Self;
    /// The smallest positive number that is not subnormal.
    const MIN_POSITIVE: Self;

    /// The same number.
    fn fused(self) -> Self::Fused;
    /// The same numbers.
    fn fused_slice(x: &[Self]) -> &[Self::Fused];
    /// The same numbers.
    fn fused_slice_mut(x: &mut [Self]) -> &mut [Self::Fused];

    /// `√x`.
    fn sqrt(self) -> Self;
    /// The largest integer that is not above `x`.
    fn floor(self) -> Self;
    /// The smallest integer that is not below `x`.
    fn ceil(self) -> Self;
    /// To the nearest integer, and half-way cases to the even one (as PyTorch; `f32::round` rounds them away from 0).
    fn round(self) -> Self;
    /// `eˣ`.
    #[inline(always)]
    fn exp(self) -> Self {
        elementary::exp(self)
    }

    /// `2ˣ`.
    #[inline(always)]
    fn exp2(self) -> Self {
        elementary::exp2(self)
    }

    /// `exp(x) - 1`, accurate near 0.
    #[inline(always)]
    fn exp_m1(self) -> Self {
        elementary::exp_m1(self)
    }

    /// The natural logarithm.
    #[inline(always)]
    fn ln(self) -> Self {
        elementary::ln(self)
    }

    /// `ln(1 + x)`, accurate near 0.
    #[inline(always)]
    fn ln_1p(self) -> Self {
        elementary::ln_1p(self)
    }

    /// The logarithm to base 2.
    #[inline(always)]
    fn log2(self) -> Self {
        elementary::log2(self)
    }

    /// The logarithm to base 10.
    #[inline(always)]
    fn log10(self) -> Self {
        elementary::log10(self)
    }

    /// The hyperbolic tangent.
    #[inline(always)]
    fn tanh(self) -> Self {
        elementary::tanh(self)
    }

    /// `1 / (1 + exp(-x))`, accurate in the left tail as well.
    #[inline(always)]
    fn sigmoid(self) -> Self {
        elementary::sigmoid(self)
    }

    /// `2/√π ∫₀ˣ exp(-t²) dt`.
    #[inline(always)]
    fn erf(self) -> Self {
        erf::erf(self)
    }

    /// `1 - erf(x)`, accurate in the right tail.
    #[inline(always)]
    fn erfc(self) -> Self {
        erf::erfc(self)
    }

    /// `exp(x²) erfc(x)`.
    fn erfcx(self) -> Self {
        Self::from_f64(special::erfcx(self.to_f64()))
    }

    /// `x` to the power of `exponent`, with the exceptions of IEEE 754.
    fn powf(self, exponent: Self) -> Self;

    /// Is it NaN?
    #[inline(always)]
    fn is_nan(self) -> bool {
        #[allow(clippy::eq_op)]
        let unordered = self != self;
        unordered
    }

    /// Is it neither infinite nor NaN?
    #[inline(always)]
    fn is_finite(self) -> bool {
        self.abs() < Self::INFINITY
    }

    /// Is it `∞` or `-∞`?
    #[inline(always)]
    fn is_infinite(self) -> bool {
        self.abs() == Self::INFINITY
    }

    /// `1 / x`.
    #[inline(always)]
    fn recip(self) -> Self {
        Self::ONE / self
    }

    /// `1 / √x`.
    #[inline(always)]
    fn rsqrt(self) -> Self {
        Self::ONE / self.sqrt()
    }

    /// `x²`.
    #[inline(always)]
    fn square(self) -> Self {
        self * self
    }

    /// `x - trunc(x)`, with the sign of `x`.
    #[inline(always)]
    fn frac(self) -> Self {
        self - self.trunc()
    }

    /// -1, 0 or 1. Of NaN it is 0, as in PyTorch.
    #[inline(always)]
    fn sgn(self) -> Self {
        let positive = if self > Self::ZERO { Self::ONE } else { Self::ZERO };
        if self < Self::ZERO { -Self::ONE } else { positive }
    }

    /// The larger one, and NaN if either is NaN.
    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        // `other` also where the comparison fails because `other` is NaN
        let larger = if self > other { self } else { other };
        if self.is_nan() { self } else { larger }
    }

    /// The smaller one, and NaN if either is NaN.
    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        let smaller = if self < other { self } else { other };
        if self.is_nan() { self } else { smaller }
    }

    /// The larger one; where one is NaN, the other.
    #[inline(always)]
    fn fmax(self, other: Self) -> Self {
        let larger = if self > other { self } else { other };
        if other.is_nan() { self } else { larger }
    }

    /// The smaller one; where one is NaN, the other.
    #[inline(always)]
    fn fmin(self, other: Self) -> Self {
        let smaller = if self < other { self } else { other };
        if other.is_nan() { self } else { smaller }
    }

    /// `min(max(x, low), high)`; NaN in `x` stays.
    #[inline(always)]
    fn clamp(self, low: Self, high: Self) -> Self {
        let x = if self < low { low } else { self };
        if x > high { high } else { x }
    }

    /// The remainder of division with the sign of the divisor, as Python's `%` and `torch.remainder`.
    #[inline(always)]
    fn remainder(self, divisor: Self) -> Self {
        let r = self % divisor;
        if r != Self::ZERO && (r < Self::ZERO) != (divisor < Self::ZERO) { r + divisor } else { r }
    }

    /// `floor(x / divisor)` of the exact quotient, as Python's `//` and `torch.floor_divide`.
    fn div_floor(self, divisor: Self) -> Self {
        if divisor == Self::ZERO {
            return self / divisor;
        }
        let r = self % divisor;
        let mut quotient = (self - r) / divisor;
        if r != Self::ZERO && (r < Self::ZERO) != (divisor < Self::ZERO) {
            quotient -= Self::ONE;
        }
        if quotient == Self::ZERO {
            return Self::ZERO.copysign(self / divisor);
        }
        // the division above may have been rounded away from its integer
        let floor = quotient.floor();
        if quotient - floor > Self::HALF { floor + Self::ONE } else { floor }
    }

    /// Degrees to radians.
    #[inline(always)]
    fn deg2rad(self) -> Self {
        self * Self::from_f64(std::f64::consts::PI / 180.0)
    }

    /// Radians to degrees.
    #[inline(always)]
    fn rad2deg(self) -> Self {
        self * Self::from_f64(180.0 / std::f64::consts::PI)
    }

    /// `ln(x / (1 - x))`.
    #[inline(always)]
    fn logit(self) -> Self {
        let other = Self::ONE - self;
        // around one half the quotient would lose the digits that its logarithm is made of; this difference is exact
        let middle = ((self - other) / other).ln_1p();
        let edge = (self / other).ln();
        if (self - Self::HALF).abs() < Self::from_f64(0.25) { middle } else { edge }
    }

    /// `ln(sigmoid(x)) = -ln(1 + exp(-x))`.
    #[inline(always)]
    fn log_sigmoid(self) -> Self {
        let negative_part = if self > Self::ZERO { Self::ZERO } else { self };
        negative_part - (-self.abs()).exp().ln_1p()
    }

    /// `x sigmoid(x)`.
    #[inline(always)]
    fn silu(self) -> Self {
        self * self.sigmoid()
    }

    /// `ln(1 + exp(beta x)) / beta`, and `x` itself where `beta x > threshold`.
    #[inline(always)]
    fn softplus(self, beta: Self, threshold: Self) -> Self {
        let x = self * beta;
        let smooth = x.exp().ln_1p() / beta;
        if x > threshold { self } else { smooth }
    }

    /// `x Φ(x)`, with `Φ` as in [`ndtr`](Real::ndtr): what PyTorch calls `gelu(x, approximate="none")`.
    #[inline(always)]
    fn gelu(self) -> Self {
        self * erf::ndtr_of_product(self)
    }

    /// `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`: what PyTorch calls `gelu(x, approximate="tanh")`.
    #[inline(always)]
    fn gelu_tanh(self) -> Self {
        // 1 + tanh(u) = 2 sigmoid(2u): no cancellation in the left tail
        let scale = 2.0 * (2.0 / std::f64::consts::PI).sqrt();
        let cubic = Self::ONE + Self::from_f64(0.044715) * self * self;
        self * (Self::from_f64(scale) * self * cubic).sigmoid()
    }

    /// The probability that a standard normal variable is below `x`: `erfc(-x/√2) / 2`.
    #[inline(always)]
    fn ndtr(self) -> Self {
        erf::ndtr(self)
    }

    /// `-x ln(x)`, 0 at 0 and `-∞` below.
    #[inline(always)]
    fn entr(self) -> Self {
        let positive = -self * self.ln();
        let not_positive = if self == Self::ZERO { Self::ZERO } else { Self::NEG_INFINITY };
        if self <= Self::ZERO { not_positive } else { positive }
    }

    /// `x ln(y)`, 0 where `x` is 0 and `y` is not NaN.
    #[inline(always)]
    fn xlogy(self, y: Self) -> Self {
        let product = self * y.ln();
        let zero = if y.is_nan() { y } else { Self::ZERO };
        if self == Self::ZERO { zero } else { product }
    }

    /// `x ln(1 + y)`, 0 where `x` is 0 and `y` is not NaN.
    #[inline(always)]
    fn xlog1py(self, y: Self) -> Self {
        let product = self * y.ln_1p();
        let zero = if y.is_nan() { y } else { Self::ZERO };
        if self == Self::ZERO { zero } else { product }
    }

    /// `ln(exp(x) + exp(y))`.
    #[inline(always)]
    fn logaddexp(self, y: Self) -> Self {
        // of two equal infinities the difference is NaN
        let smooth = self.maximum(y) + (-(self - y).abs()).exp().ln_1p();
        if self == y && self.is_infinite() { self } else { smooth }
    }

    /// `log2(2ˣ + 2ʸ)`.
    #[inline(always)]
    fn logaddexp2(self, y: Self) -> Self {
        let log2_e = Self::from_f64(std::f64::consts::LOG2_E);
        let smooth = self.maximum(y) + (-(self - y).abs()).exp2().ln_1p() * log2_e;
        if self == y && self.is_infinite() { self } else { smooth }
    }

    /// The sine, in radians.
    fn sin(self) -> Self {
        Self::from_f64(libm::sin(self.to_f64()))
    }

    /// The cosine, in radians.
    fn cos(self) -> Self {
        Self::from_f64(libm::cos(self.to_f64()))
    }

    /// The tangent, in radians.
    fn tan(self) -> Self {
        Self::from_f64(libm::tan(self.to_f64()))
    }

    /// The arc sine, in radians.
    fn asin(self) -> Self {
        Self::from_f64(libm::asin(self.to_f64()))
    }

    /// The arc cosine, in radians.
    fn acos(self) -> Self {
        Self::from_f64(libm::acos(self.to_f64()))
    }

    /// The arc tangent, in radians.
    fn atan(self) -> Self {
        Self::from_f64(libm::atan(self.to_f64()))
    }

    /// The angle of the point `(x, self)`, from `-π` to `π`.
    fn atan2(self, x: Self) -> Self {
        Self::from_f64(libm::atan2(self.to_f64(), x.to_f64()))
    }

    /// The hyperbolic sine.
    fn sinh(self) -> Self {
        Self::from_f64(libm::sinh(self.to_f64()))
    }

    /// The hyperbolic cosine.
    fn cosh(self) -> Self {
        Self::from_f64(libm::cosh(self.to_f64()))
    }

    /// The inverse hyperbolic sine.
    fn asinh(self) -> Self {
        Self::from_f64(libm::asinh(self.to_f64()))
    }

    /// The inverse hyperbolic cosine.
    fn acosh(self) -> Self {
        Self::from_f64(libm::acosh(self.to_f64()))
    }

    /// The inverse hyperbolic tangent.
    fn atanh(self) -> Self {
        Self::from_f64(libm::atanh(self.to_f64()))
    }

    /// `√(x² + y²)` without overflow on the way.
    fn hypot(self, y: Self) -> Self {
        Self::from_f64(libm::hypot(self.to_f64(), y.to_f64()))
    }

    /// `sin(πx) / (πx)`, 1 at 0.
    fn sinc(self) -> Self {
        Self::from_f64(special::sinc(self.to_f64()))
    }

    /// The inverse of [`erf`](Real::erf); `±∞` at `±1`, NaN beyond.
    fn erfinv(self) -> Self {
        Self::from_f64(special::erfinv(self.to_f64()))
    }

    /// The inverse of [`ndtr`](Real::ndtr).
    fn ndtri(self) -> Self {
        Self::from_f64(special::ndtri(self.to_f64()))
    }

    /// `ln(ndtr(x))`, accurate in both tails.
    fn log_ndtr(self) -> Self {
        Self::from_f64(special::log_ndtr(self.to_f64()))
    }

    /// `ln|Γ(x)|`.
    fn lgamma(self) -> Self {
        Self::from_f64(gamma::lgamma(self.to_f64()))
    }

    /// `ψ(x) = Γ'(x) / Γ(x)`.
    fn digamma(self) -> Self {
        Self::from_f64(gamma::digamma(self.to_f64()))
    }

    /// The `n`-th derivative of [`digamma`](Real::digamma).
    fn polygamma(self, n: u32) -> Self {
        Self::from_f64(gamma::polygamma(n, self.to_f64()))
    }

    /// Hurwitz's zeta function `Σₖ (q + k)⁻ˢ` over `k ≥ 0`, with `self` for `s`.
    fn zeta(self, q: Self) -> Self {
        Self::from_f64(gamma::zeta(self.to_f64(), q.to_f64()))
    }

    /// The modified Bessel function of the first kind, order 0.
    fn i0(self) -> Self {
        Self::from_f64(bessel::i0(self.to_f64()))
    }

    /// `exp(-|x|) i0(x)`.
    fn i0e(self) -> Self {
        Self::from_f64(bessel::i0e(self.to_f64()))
    }

    /// The modified Bessel function of the first kind, order 1.
    fn i1(self) -> Self {
        Self::from_f64(bessel::i1(self.to_f64()))
    }

    /// `exp(-|x|) i1(x)`.
    fn i1e(self) -> Self {
        Self::from_f64(bessel::i1e(self.to_f64()))
    }
}

macro_rules! real {
    ($float:ident, $powf:expr) => {
        impl Real for $float {
            type Fused = Fused<Self>;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const HALF: Self = 0.5;
            const INFINITY: Self = $float::INFINITY;
            const NEG_INFINITY: Self = $float::NEG_INFINITY;
            const NAN: Self = $float::NAN;
            const EPSILON: Self = $float::EPSILON;
            const MAX: Self = $float::MAX;
            const MIN: Self = $float::MIN;
            const MIN_POSITIVE: Self = $float::MIN_POSITIVE;

            #[inline(always)]
            fn fused(self) -> Fused<Self> {
                Fused(self)
            }

            #[inline(always)]
            fn fused_slice(x: &[Self]) -> &[Fused<Self>] {
                // SAFETY: `Fused` is a transparent wrapper.
                unsafe { &*(std::ptr::from_ref(x) as *const [Fused<Self>]) }
            }

            #[inline(always)]
            fn fused_slice_mut(x: &mut [Self]) -> &mut [Fused<Self>] {
                // SAFETY: `Fused` is a transparent wrapper.
                unsafe { &mut *(std::ptr::from_mut(x) as *mut [Fused<Self>]) }
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
                let powf: fn(Self, Self) -> Self = $powf;
                powf(self, exponent)
            }
        }
    };
}
real!(f32, elementary::powf::<f32, f64>);
real!(f64, libm::pow);

#[cfg(test)]
mod tests;
