//! The arithmetic of integer kernels. It wraps, as PyTorch's does.

use crate::dtype::Element;
use std::ops::{BitAnd, BitOr, BitXor, Not};

/// An integer that kernels compute in.
pub(crate) trait Integer:
    Element + Ord + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    const BITS: u32;

    fn wrapping_add(self, other: Self) -> Self;
    fn wrapping_sub(self, other: Self) -> Self;
    fn wrapping_mul(self, other: Self) -> Self;
    /// The quotient rounded toward zero; the divisor is not zero.
    fn div_trunc(self, divisor: Self) -> Self;
    /// The remainder with the sign of `self`; the divisor is not zero.
    fn rem_trunc(self, divisor: Self) -> Self;
    /// The bits shifted to the left. `by` is less than the number of bits.
    fn shl(self, by: u32) -> Self;
    /// The bits shifted to the right, filled with copies of the sign. `by` is less than the number of bits.
    fn shr(self, by: u32) -> Self;
    /// The same number.
    fn to_i64(self) -> i64;

    #[inline(always)]
    fn wrapping_neg(self) -> Self {
        Self::ZERO.wrapping_sub(self)
    }

    #[inline(always)]
    fn wrapping_abs(self) -> Self {
        if self < Self::ZERO { self.wrapping_neg() } else { self }
    }

    /// -1, 0 or 1.
    #[inline(always)]
    fn sign(self) -> Self {
        let positive = if self > Self::ZERO { Self::ONE } else { Self::ZERO };
        if self < Self::ZERO { Self::ONE.wrapping_neg() } else { positive }
    }

    /// The quotient rounded down; the divisor is not zero.
    #[inline(always)]
    fn div_floor(self, divisor: Self) -> Self {
        let quotient = self.div_trunc(divisor);
        let inexact = self.rem_trunc(divisor) != Self::ZERO;
        if inexact && (self < Self::ZERO) != (divisor < Self::ZERO) {
            quotient.wrapping_sub(Self::ONE)
        } else {
            quotient
        }
    }

    /// The remainder with the sign of the divisor, which is not zero.
    #[inline(always)]
    fn rem_floor(self, divisor: Self) -> Self {
        let rest = self.rem_trunc(divisor);
        let inexact = rest != Self::ZERO;
        if inexact && (rest < Self::ZERO) != (divisor < Self::ZERO) {
            rest.wrapping_add(divisor)
        } else {
            rest
        }
    }

    /// `self` to a power. A negative exponent gives 0, except for the bases 1 and -1.
    #[inline(always)]
    fn power(self, exponent: Self) -> Self {
        let minus_one = Self::ONE.wrapping_neg();
        if exponent < Self::ZERO && self != Self::ONE && self != minus_one {
            return Self::ZERO;
        }
        // For 1 and -1 only the last bit matters.
        let mut left = if exponent < Self::ZERO { exponent & Self::ONE } else { exponent };
        let (mut base, mut product) = (self, Self::ONE);
        while left > Self::ZERO {
            if left & Self::ONE == Self::ONE {
                product = product.wrapping_mul(base);
            }
            base = base.wrapping_mul(base);
            left = left.shr(1);
        }
        product
    }

    /// The bits shifted to the left; 0 unless `0 <= by` is less than the number of bits.
    #[inline(always)]
    fn shift_left(self, by: Self) -> Self {
        let by = by.to_i64();
        if (0..i64::from(Self::BITS)).contains(&by) { self.shl(by as u32) } else { Self::ZERO }
    }

    /// The bits shifted to the right, filled with copies of the sign; only the sign unless `0 <= by` is less
    /// than the number of bits.
    #[inline(always)]
    fn shift_right(self, by: Self) -> Self {
        let by = by.to_i64();
        let sign = if self < Self::ZERO { Self::ONE.wrapping_neg() } else { Self::ZERO };
        if (0..i64::from(Self::BITS)).contains(&by) { self.shr(by as u32) } else { sign }
    }

    /// The greatest common divisor, by Euclid's algorithm.
    #[inline(always)]
    fn gcd(self, other: Self) -> Self {
        let (mut a, mut b) = (self.wrapping_abs(), other.wrapping_abs());
        while b != Self::ZERO {
            (a, b) = (b, a.rem_trunc(b));
        }
        // The absolute value of the smallest number wraps to itself, so a remainder may be negative.
        a.wrapping_abs()
    }

    /// The least common multiple.
    #[inline(always)]
    fn lcm(self, other: Self) -> Self {
        let divisor = self.gcd(other);
        if divisor == Self::ZERO {
            return Self::ZERO;
        }
        self.div_trunc(divisor).wrapping_mul(other).wrapping_abs()
    }
}

/// Implements the primitives with those of `std`. `integers!(u8)` becomes
///
/// ```ignore
/// impl Integer for u8 {
///     const ZERO: Self = 0;
///     ...
///     fn wrapping_add(self, other: Self) -> Self {
///         u8::wrapping_add(self, other)
///     }
///     ...
/// }
/// ```
macro_rules! integers {
    ($($ty:ident)*) => {$(
        impl Integer for $ty {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const BITS: u32 = $ty::BITS;

            #[inline(always)]
            fn wrapping_add(self, other: Self) -> Self {
                $ty::wrapping_add(self, other)
            }

            #[inline(always)]
            fn wrapping_sub(self, other: Self) -> Self {
                $ty::wrapping_sub(self, other)
            }

            #[inline(always)]
            fn wrapping_mul(self, other: Self) -> Self {
                $ty::wrapping_mul(self, other)
            }

            #[inline(always)]
            fn div_trunc(self, divisor: Self) -> Self {
                $ty::wrapping_div(self, divisor)
            }

            #[inline(always)]
            fn rem_trunc(self, divisor: Self) -> Self {
                $ty::wrapping_rem(self, divisor)
            }

            #[inline(always)]
            fn shl(self, by: u32) -> Self {
                self << by
            }

            #[inline(always)]
            fn shr(self, by: u32) -> Self {
                self >> by
            }

            #[inline(always)]
            fn to_i64(self) -> i64 {
                self as i64
            }
        }
    )*};
}
integers!(u8 i8 i16 i32 i64);

#[cfg(test)]
mod tests {
    use super::Integer;
    use crate::dtype::Scalar;

    #[test]
    fn division_rounds_as_named() {
        for a in -7i64..=7 {
            for b in (-3i64..=3).filter(|b| *b != 0) {
                assert_eq!(Integer::div_floor(a, b), (a as f64 / b as f64).floor() as i64);
                assert_eq!(a.div_trunc(b), (a as f64 / b as f64).trunc() as i64);
                assert_eq!(Integer::div_floor(a, b) * b + a.rem_floor(b), a);
                assert_eq!(a.div_trunc(b) * b + a.rem_trunc(b), a);
            }
        }
        assert_eq!(i8::MIN.div_trunc(-1), i8::MIN);
    }

    /// Every pair of `u8` and of `i8`, against arithmetic with room for the result.
    #[test]
    fn bytes_wrap_as_wider_integers_do() {
        fn check<T: Integer>(all: impl Iterator<Item = T> + Clone) {
            for (a, b) in all.clone().flat_map(|a| all.clone().map(move |b| (a, b))) {
                let (wide_a, wide_b) = (a.to_i64(), b.to_i64());
                let low = |wide: i64| T::from_scalar(Scalar::Int(wide));
                assert_eq!(a.wrapping_add(b), low(wide_a + wide_b));
                assert_eq!(a.wrapping_sub(b), low(wide_a - wide_b));
                assert_eq!(a.wrapping_mul(b), low(wide_a * wide_b));
                assert_eq!((a.wrapping_neg(), a.wrapping_abs()), (low(-wide_a), low(wide_a.abs())));
                assert_eq!(a.sign(), low(wide_a.signum()));
                let inside = (0..8).contains(&wide_b);
                assert_eq!(a.shift_left(b), low(if inside { wide_a << wide_b } else { 0 }));
                let lost = if wide_a < 0 { -1 } else { 0 };
                assert_eq!(a.shift_right(b), low(if inside { wide_a >> wide_b } else { lost }));
                if wide_b != 0 {
                    assert_eq!(a.div_trunc(b), low(wide_a / wide_b));
                    assert_eq!(a.rem_trunc(b), low(wide_a % wide_b));
                    assert_eq!(a.div_floor(b), low((wide_a as f64 / wide_b as f64).floor() as i64));
                    let rest = wide_a.rem_euclid(wide_b);
                    assert_eq!(
                        a.rem_floor(b),
                        low(if rest != 0 && wide_b < 0 { rest + wide_b } else { rest })
                    );
                }
                let divides = |d: &i64| wide_a % d == 0 && wide_b % d == 0;
                let largest = wide_a.abs().max(wide_b.abs());
                let divisor = (1..=largest).rev().find(divides).unwrap_or(0);
                assert_eq!(a.gcd(b), low(divisor), "{a:?} {b:?}");
                let multiple = if divisor == 0 { 0 } else { wide_a / divisor * wide_b };
                assert_eq!(a.lcm(b), low(multiple).wrapping_abs(), "{a:?} {b:?}");
            }
        }
        check(0..=u8::MAX);
        check(i8::MIN..=i8::MAX);
    }

    #[test]
    fn powers() {
        assert_eq!(3i32.power(4), 81);
        assert_eq!(2i8.power(7), -128);
        assert_eq!([2i64.power(-1), 1i64.power(-5), (-1i64).power(-3), (-1i64).power(-2)], [0, 1, -1, 1]);
    }
}
