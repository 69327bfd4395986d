//! The arithmetic of integer kernels: it wraps, as PyTorch's does.

use crate::dtype::Element;
use std::ops::{BitAnd, BitOr, BitXor, Not};

/// An integer that kernels compute in.
pub(crate) trait Integer:
    Element + Ord + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    const ZERO: Self;
    fn wrapping_add(self, other: Self) -> Self;
    fn wrapping_sub(self, other: Self) -> Self;
    fn wrapping_mul(self, other: Self) -> Self;
    fn wrapping_neg(self) -> Self;
    fn wrapping_abs(self) -> Self;
    /// -1, 0 or 1.
    fn sign(self) -> Self;
    /// The quotient rounded towards zero; the divisor is not zero.
    fn div_trunc(self, divisor: Self) -> Self;
    /// The quotient rounded down; the divisor is not zero.
    fn div_floor(self, divisor: Self) -> Self;
    /// The remainder with the sign of `self`; the divisor is not zero.
    fn rem_trunc(self, divisor: Self) -> Self;
    /// The remainder with the sign of the divisor, which is not zero.
    fn rem_floor(self, divisor: Self) -> Self;
    /// `self` to a power; a negative exponent gives 0 but for the bases 1 and -1.
    fn power(self, exponent: Self) -> Self;
    /// The bits moved up; 0 unless `0 <= by` is less than the number of bits.
    fn shift_left(self, by: Self) -> Self;
    /// The bits moved down, the sign coming in; for a `by` outside the number of bits nothing but the sign is left.
    fn shift_right(self, by: Self) -> Self;
    /// The greatest common divisor, by Euclid's algorithm.
    fn gcd(self, other: Self) -> Self;
    /// The least common multiple.
    fn lcm(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($ty:ident)*) => {$(
        impl Integer for $ty {
            const ZERO: Self = 0;
            #[inline(always)] fn wrapping_add(self, other: Self) -> Self { $ty::wrapping_add(self, other) }
            #[inline(always)] fn wrapping_sub(self, other: Self) -> Self { $ty::wrapping_sub(self, other) }
            #[inline(always)] fn wrapping_mul(self, other: Self) -> Self { $ty::wrapping_mul(self, other) }
            #[inline(always)] fn wrapping_neg(self) -> Self { $ty::wrapping_neg(self) }
            #[inline(always)]
            #[allow(unused_comparisons)] // for the unsigned type
            fn wrapping_abs(self) -> Self { if self < 0 { $ty::wrapping_neg(self) } else { self } }
            #[inline(always)]
            #[allow(unused_comparisons)] // for the unsigned type
            fn sign(self) -> Self { if self < 0 { (0 as $ty).wrapping_sub(1) } else { (self > 0) as $ty } }
            #[inline(always)] fn div_trunc(self, divisor: Self) -> Self { self.wrapping_div(divisor) }
            #[inline(always)]
            #[allow(unused_comparisons)] // for the unsigned type
            fn div_floor(self, divisor: Self) -> Self {
                let quotient = self.wrapping_div(divisor);
                let inexact = self.wrapping_rem(divisor) != 0;
                if inexact && (self < 0) != (divisor < 0) { quotient.wrapping_sub(1) } else { quotient }
            }
            #[inline(always)] fn rem_trunc(self, divisor: Self) -> Self { self.wrapping_rem(divisor) }
            #[inline(always)]
            #[allow(unused_comparisons)] // for the unsigned type
            fn rem_floor(self, divisor: Self) -> Self {
                let rest = self.wrapping_rem(divisor);
                if rest != 0 && (rest < 0) != (divisor < 0) { rest.wrapping_add(divisor) } else { rest }
            }
            #[inline(always)]
            #[allow(unused_comparisons)] // for the unsigned type
            fn power(self, exponent: Self) -> Self {
                if exponent < 0 {
                    return if self == 1 {
                        1
                    } else if self.wrapping_add(1) == 0 {
                        if exponent & 1 == 0 { 1 } else { self }
                    } else {
                        0
                    };
                }
                let (mut base, mut left, mut product) = (self, exponent, 1 as $ty);
                while left > 0 {
                    if left & 1 == 1 { product = product.wrapping_mul(base); }
                    base = base.wrapping_mul(base);
                    left >>= 1;
                }
                product
            }
            #[inline(always)]
            #[allow(unused_comparisons)] // for the unsigned type
            fn shift_left(self, by: Self) -> Self {
                if by < 0 || by >= $ty::BITS as $ty { 0 } else { self << by }
            }
            #[inline(always)]
            #[allow(unused_comparisons)] // for the unsigned type
            fn shift_right(self, by: Self) -> Self {
                if by >= 0 && by < $ty::BITS as $ty { self >> by } else if self < 0 { (0 as $ty).wrapping_sub(1) } else { 0 }
            }
            #[inline(always)]
            fn gcd(self, other: Self) -> Self {
                let (mut a, mut b) = (Integer::wrapping_abs(self), Integer::wrapping_abs(other));
                while b != 0 { (a, b) = (b, a.wrapping_rem(b)); }
                Integer::wrapping_abs(a) // the rest of the smallest number is negative
            }
            #[inline(always)]
            fn lcm(self, other: Self) -> Self {
                let divisor = Integer::gcd(self, other);
                if divisor == 0 { 0 } else { Integer::wrapping_abs(self.wrapping_div(divisor).wrapping_mul(other)) }
            }
        }
    )*};
}
integers!(u8 i8 i16 i32 i64);

#[cfg(test)]
mod tests {
    use super::Integer;

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

    #[test]
    fn powers() {
        assert_eq!(3i32.power(4), 81);
        assert_eq!(2i8.power(7), -128);
        assert_eq!([2i64.power(-1), 1i64.power(-5), (-1i64).power(-3), (-1i64).power(-2)], [0, 1, -1, 1]);
    }
}
