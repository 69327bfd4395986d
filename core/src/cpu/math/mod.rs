//! The functions of one real variable (and a few of two) that kernels use, for `f32` and `f64`.
//!
//! [`Real`] lists them. Those in hot loops have no branches and no calls, so that a plain loop over a slice
//! becomes vector code, and are faster on [`Fused`] numbers (`fused.rs`). They are in `elementary.rs` (`exp`,
//! `ln`, `tanh` and the like) and `erf.rs`, on top of coefficients in `lane.rs` and the handling of bits in
//! `plain.rs`. Rare functions are scalar: computed in `f64`, by `libm` or in `special.rs`, `gamma.rs`,
//! `bessel.rs`, `airy.rs`, `incomplete.rs` and `polynomial.rs`.

mod airy;
mod bessel;
mod elementary;
mod erf;
mod fused;
mod gamma;
#[doc(hidden)]
pub mod incomplete;
pub(crate) mod lane;
mod plain;
pub(crate) mod polynomial;
mod special;

use std::fmt::{Debug, Display};

/// Functions of `f64` for rows that few programs call.
pub(crate) mod rare {
    pub(crate) use super::airy::airy_ai;
    pub(crate) use super::bessel::{k0, k0e, k1, k1e, spherical_j0};
    pub(crate) use super::gamma::zeta;
    pub(crate) use super::incomplete::gamma_p_q;
    pub(crate) use super::polynomial::{Family, polynomial, shifted};
    pub(crate) use libm::{j0, j1, y0, y1};
}

pub use fused::{Alone, Fused, Variant};
use lane::Lane;

/// A floating-point type that kernels compute in: `f32` or `f64`.
///
/// Methods are named as in `std`, or as in PyTorch if `std` does not have them. On a concrete `f32` or `f64`
/// the methods of `std` take precedence, so write kernels generic over `T: Real` or call `Real::exp(x)`.
///
/// Results are within 2 units in the last place, and usually within 1. Exceptions are `sigmoid` (2.2), the
/// tails of `erfc` and `ndtr` (3.5), the Bessel functions (4.5), and sums of two functions that nearly
/// cancel. NaN gives NaN.
pub trait Real: Lane + Default + Debug + Display + Send + Sync + 'static {
    /// This type with fused multiply-add, for loops on CPUs that have it. It has the same layout.
    type Fused: Real;
    /// This type for loops that are not to become vectors. It has the same layout.
    #[doc(hidden)]
    type Alone: Real;

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
    /// The distance from 1 to the next larger number.
    const EPSILON: Self;
    /// The largest finite number.
    const MAX: Self;
    /// Whether few CPUs run a loop over these numbers, since most run the one over [`Fused`], so that small
    /// code counts more than fast code.
    #[doc(hidden)]
    const IS_RARE: bool = false;

    /// `√x`.
    fn sqrt(self) -> Self;
    /// The largest integer that is at most `x`.
    fn floor(self) -> Self;
    /// The smallest integer that is at least `x`.
    fn ceil(self) -> Self;
    /// The nearest integer; of two, the even one. PyTorch does the same; `f32::round` rounds away from 0.
    fn round(self) -> Self;
    /// `f(x)`, where `f` is long. x86-64 without AVX2 is rare, so that the plain types call `f` there: a copy
    /// of it in each loop would cost build time.
    fn call(self, f: impl Fn(Self) -> Self) -> Self;
    /// `eˣ`.
    #[inline(always)]
    fn exp(self) -> Self {
        self.call(elementary::exp)
    }

    /// `2ˣ`.
    #[inline(always)]
    fn exp2(self) -> Self {
        self.call(elementary::exp2)
    }

    /// `exp(x) - 1`, accurate near 0.
    #[inline(always)]
    fn exp_m1(self) -> Self {
        self.call(elementary::exp_m1)
    }

    /// The natural logarithm.
    #[inline(always)]
    fn ln(self) -> Self {
        self.call(elementary::ln)
    }

    /// `ln(1 + x)`, accurate near 0.
    #[inline(always)]
    fn ln_1p(self) -> Self {
        self.call(elementary::ln_1p)
    }

    /// The logarithm to base 2.
    #[inline(always)]
    fn log2(self) -> Self {
        self.call(elementary::log2)
    }

    /// The logarithm to base 10.
    #[inline(always)]
    fn log10(self) -> Self {
        self.call(elementary::log10)
    }

    /// The hyperbolic tangent.
    #[inline(always)]
    fn tanh(self) -> Self {
        self.call(elementary::tanh)
    }

    /// `1 / (1 + exp(-x))`, accurate in the left tail too.
    #[inline(always)]
    fn sigmoid(self) -> Self {
        self.call(elementary::sigmoid)
    }

    /// `2/√π ∫₀ˣ exp(-t²) dt`.
    #[inline(always)]
    fn erf(self) -> Self {
        self.call(erf::erf)
    }

    /// `1 - erf(x)`, accurate in the right tail.
    #[inline(always)]
    fn erfc(self) -> Self {
        self.call(erf::erfc)
    }

    /// `exp(x²) erfc(x)`.
    fn erfcx(self) -> Self {
        Self::from_f64(special::erfcx(self.to_f64()))
    }

    /// `x` to the power of `exponent`, with the exceptions of IEEE 754.
    fn powf(self, exponent: Self) -> Self;

    /// Whether it is NaN.
    #[inline(always)]
    fn is_nan(self) -> bool {
        #[allow(clippy::eq_op)]
        let unordered = self != self;
        unordered
    }

    /// Whether it is neither infinite nor NaN.
    #[inline(always)]
    fn is_finite(self) -> bool {
        self.abs() < Self::INFINITY
    }

    /// Whether it is `∞` or `-∞`.
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

    /// `x - trunc(x)`, with the sign of `x`.
    #[inline(always)]
    fn frac(self) -> Self {
        self - self.trunc()
    }

    /// The larger number, or NaN if either is NaN.
    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        // `other` as well if the comparison is false because `other` is NaN
        let larger = if self > other { self } else { other };
        if self.is_nan() { self } else { larger }
    }

    /// The smaller number, or NaN if either is NaN.
    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        let smaller = if self < other { self } else { other };
        if self.is_nan() { self } else { smaller }
    }

    /// The larger number, or the other one if one is NaN.
    #[inline(always)]
    fn fmax(self, other: Self) -> Self {
        let larger = if self > other { self } else { other };
        if other.is_nan() { self } else { larger }
    }

    /// The smaller number, or the other one if one is NaN.
    #[inline(always)]
    fn fmin(self, other: Self) -> Self {
        let smaller = if self < other { self } else { other };
        if other.is_nan() { self } else { smaller }
    }

    /// `min(max(x, low), high)`, or NaN if `x` is NaN.
    #[inline(always)]
    fn clamp(self, low: Self, high: Self) -> Self {
        let x = if self < low { low } else { self };
        if x > high { high } else { x }
    }

    /// The remainder of division with the sign of the divisor, like Python's `%` and `torch.remainder`.
    #[inline(always)]
    fn remainder(self, divisor: Self) -> Self {
        let r = self % divisor;
        if r != Self::ZERO && (r < Self::ZERO) != (divisor < Self::ZERO) { r + divisor } else { r }
    }

    /// `floor(x / divisor)` of the exact quotient, like Python's `//` and `torch.floor_divide`.
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
        // rounding may have moved the quotient above away from its integer
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
        // Around ½ the quotient would lose the digits that determine its logarithm. This difference is exact.
        let middle = ((self - other) / other).ln_1p();
        let edge = (self / other).ln();
        if (self - Self::HALF).abs() < Self::from_f64(0.25) { middle } else { edge }
    }

    /// `x sigmoid(x)`.
    #[inline(always)]
    fn silu(self) -> Self {
        self * self.sigmoid()
    }

    /// `x Φ(x)`, with `Φ` as in [`ndtr`](Real::ndtr): PyTorch's `gelu(x, approximate="none")`.
    #[inline(always)]
    fn gelu(self) -> Self {
        self * erf::ndtr_of_product(self)[0]
    }

    /// The derivative of [`gelu`](Real::gelu): `Φ(x) + x exp(-x²/2) / √(2π)`.
    #[inline(always)]
    fn gelu_slope(self) -> Self {
        let [below, bell] = erf::ndtr_of_product(self);
        below + self * bell * Self::from_f64(1.0 / std::f64::consts::TAU.sqrt())
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

    /// `ln(exp(x) + exp(y))`.
    #[inline(always)]
    fn logaddexp(self, y: Self) -> Self {
        // the difference of two equal infinities is NaN
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
        let x = self.to_f64();
        Self::from_f64(if x < 1.0 { f64::NAN } else { libm::acosh(x) })
    }

    /// The inverse hyperbolic tangent.
    fn atanh(self) -> Self {
        Self::from_f64(libm::atanh(self.to_f64()))
    }

    /// `√(x² + y²)`, without overflow in the squares.
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

#[cfg(test)]
mod tests;
