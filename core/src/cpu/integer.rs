//! The arithmetic of integer formulas beyond that of `std`, in `i64`. It wraps, as PyTorch's does, so that the
//! low bits are those of the same arithmetic in a narrower type.

/// Functions of integers that kernels compute with.
pub(crate) trait Integer: Sized {
    /// The quotient rounded down; the divisor is not zero.
    fn floor_div(self, divisor: Self) -> Self;
    /// The remainder with the sign of the divisor, which is not zero.
    fn floor_rem(self, divisor: Self) -> Self;
    /// `self` to a power. A negative exponent gives 0, except for the bases 1 and -1.
    fn power(self, exponent: Self) -> Self;
    /// The bits shifted to the left; 0 unless `0 <= by` is less than the number of bits.
    fn shift_left(self, by: Self) -> Self;
    /// The bits shifted to the right, filled with copies of the sign; only the sign unless `0 <= by` is less
    /// than the number of bits.
    fn shift_right(self, by: Self) -> Self;
    /// The greatest common divisor, by Euclid's algorithm.
    fn gcd(self, other: Self) -> Self;
    /// The least common multiple.
    fn lcm(self, other: Self) -> Self;
}

impl Integer for i64 {
    #[inline(always)]
    fn floor_div(self, divisor: i64) -> i64 {
        let quotient = self.wrapping_div(divisor);
        let inexact = self.wrapping_rem(divisor) != 0;
        if inexact && (self < 0) != (divisor < 0) { quotient - 1 } else { quotient }
    }

    #[inline(always)]
    fn floor_rem(self, divisor: i64) -> i64 {
        let rest = self.wrapping_rem(divisor);
        if rest != 0 && (rest < 0) != (divisor < 0) { rest + divisor } else { rest }
    }

    #[inline(always)]
    fn power(self, exponent: i64) -> i64 {
        if exponent < 0 && self != 1 && self != -1 {
            return 0;
        }
        // For 1 and -1 only the last bit matters.
        let mut left = if exponent < 0 { exponent & 1 } else { exponent };
        let (mut base, mut product) = (self, 1_i64);
        while left > 0 {
            if left & 1 == 1 {
                product = product.wrapping_mul(base);
            }
            base = base.wrapping_mul(base);
            left >>= 1;
        }
        product
    }

    #[inline(always)]
    fn shift_left(self, by: i64) -> i64 {
        if (0..64).contains(&by) { self << by } else { 0 }
    }

    #[inline(always)]
    fn shift_right(self, by: i64) -> i64 {
        if (0..64).contains(&by) { self >> by } else { self >> 63 }
    }

    #[inline(always)]
    fn gcd(self, other: i64) -> i64 {
        let (mut a, mut b) = (self.wrapping_abs(), other.wrapping_abs());
        while b != 0 {
            (a, b) = (b, a.wrapping_rem(b));
        }
        // The absolute value of the smallest number wraps to itself, so a remainder may be negative.
        a.wrapping_abs()
    }

    #[inline(always)]
    fn lcm(self, other: i64) -> i64 {
        match self.gcd(other) {
            0 => 0,
            divisor => self.wrapping_div(divisor).wrapping_mul(other).wrapping_abs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Integer;

    #[test]
    fn division_rounds_down() {
        for a in -7i64..=7 {
            for b in (-3i64..=3).filter(|b| *b != 0) {
                assert_eq!(a.floor_div(b), (a as f64 / b as f64).floor() as i64);
                assert_eq!(a.floor_div(b) * b + a.floor_rem(b), a);
            }
        }
        assert_eq!((i64::MIN.floor_div(-1), i64::MIN.floor_rem(-1)), (i64::MIN, 0));
    }

    /// For every pair of `u8` and of `i8`, the low bits are those of the arithmetic of bytes.
    #[test]
    fn the_low_bits_are_those_of_bytes() {
        for (a, b) in (-128..=255).flat_map(|a: i64| (-128..=255).map(move |b: i64| (a, b))) {
            if (a < 0 || b < 0) && (a > 127 || b > 127) {
                continue;
            }
            let signed = a < 128 && b < 128;
            let inside = (0..8).contains(&b);
            if signed {
                let (a8, b8) = (a as i8, b as i8);
                assert_eq!(a.shift_left(b) as i8, if inside { a8 << b8 } else { 0 });
                assert_eq!(a.shift_right(b) as i8, if inside { a8 >> b8 } else { a8 >> 7 });
                if b != 0 {
                    assert_eq!(
                        a.floor_rem(b) as i8,
                        (a8 as f64 - (a8 as f64 / b8 as f64).floor() * b8 as f64) as i8
                    );
                }
                if b >= 0 {
                    assert_eq!(a.power(b) as i8, a8.wrapping_pow(b as u32));
                }
            }
            if a >= 0 && b >= 0 {
                assert_eq!(a.shift_left(b) as u8, if inside { (a as u8) << b } else { 0 });
                assert_eq!(a.shift_right(b) as u8, if inside { (a as u8) >> b } else { 0 });
                assert_eq!(a.power(b) as u8, (a as u8).wrapping_pow(b as u32));
            }
            let divides = |d: &i64| a % d == 0 && b % d == 0;
            let divisor = (1..=a.abs().max(b.abs())).rev().find(divides).unwrap_or(0);
            assert_eq!(a.gcd(b), divisor);
            assert_eq!(a.lcm(b), if divisor == 0 { 0 } else { (a / divisor * b).abs() });
        }
    }

    #[test]
    fn powers() {
        assert_eq!(3i64.power(4), 81);
        assert_eq!([2i64.power(-1), 1i64.power(-5), (-1i64).power(-3), (-1i64).power(-2)], [0, 1, -1, 1]);
    }
}
