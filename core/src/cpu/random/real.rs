//! `ln`, `exp`, `sin` and `cos` for the distributions, from operations that IEEE 754 rounds the same
//! everywhere.
//!
//! The functions of `std` come from the platform and differ in the last digit. These are power series on a
//! reduced argument without branches, so loops over them are vectorized. They are accurate to a few units in
//! the last place (`exp` of a large `f64` to a hundred), which is invisible in samples. Products are never
//! fused with sums, because Rust does so only on request.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::philox::Word;

/// A type that samples are computed in: `f32` or `f64`.
pub(crate) trait SampleReal:
    Copy
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// The random word of a sample.
    type Word: Word;

    /// `x`, rounded to the nearest.
    fn of(x: f64) -> Self;

    /// The word as a fraction in `[0, 1)`, truncated to `digits` binary digits.
    fn fraction(word: Self::Word, digits: u32) -> Self;

    /// The word as a fraction in `(0, 1)`, rounded, with full precision near zero, where the logarithm needs
    /// it.
    fn open_fraction(word: Self::Word) -> Self;

    /// The sine and cosine of an angle: the word as a fraction of a full turn.
    fn sin_cos_turn(word: Self::Word) -> (Self, Self);

    /// The tangent of an angle between minus and plus a quarter turn; never infinite.
    fn tan_half_turn(word: Self::Word) -> Self;

    /// The natural logarithm of a positive, normal, finite number.
    fn ln(self) -> Self;

    /// `e^self`; infinity or zero if that is too large or too small.
    fn exp(self) -> Self;

    fn sqrt(self) -> Self;
    fn ceil(self) -> Self;
    fn min(self, other: Self) -> Self;
    fn max(self, other: Self) -> Self;
}

/// `1 / k!` for the first `k`.
const fn inverse_factorials<const N: usize>() -> [f64; N] {
    let mut c = [1.0; N];
    let mut k = 1;
    while k < N {
        c[k] = c[k - 1] / k as f64;
        k += 1;
    }
    c
}

/// Implements [`SampleReal`] for a float type, given the integer types of its size, the number of binary digits
/// that it uses of a word, and the number of terms of each series that affect the rounded result. The row of
/// `f32` becomes
///
/// ```ignore
/// impl Real for f32 {
///     type Word = u32;
///     fn of(x: f64) -> Self { x as f32 }
///     fn fraction(word: u32, digits: u32) -> Self { ... } // and so on for each method
/// }
/// ```
macro_rules! real {
    (
        $float:ident, $word:ident, $signed:ident,
        digits: $digits:literal, ln: $ln:literal, trig: $trig:literal, exp: $exp:literal
    ) => {
        impl SampleReal for $float {
            type Word = $word;

            #[inline(always)]
            fn of(x: f64) -> Self {
                x as $float
            }

            #[inline(always)]
            fn fraction(word: $word, digits: u32) -> Self {
                const SCALE: $float = 1.0 / (1u64 << $digits) as $float;
                let cut = $word::MAX << ($word::BITS - digits);
                ((word & cut) >> ($word::BITS - $digits)) as $signed as $float * SCALE
            }

            #[inline(always)]
            fn open_fraction(word: $word) -> Self {
                const SCALE: $float = 0.5 / (1u64 << ($word::BITS - 1)) as $float;
                const BELOW_ONE: $float = 1.0 - $float::EPSILON / 2.0;
                ((word as $float + 0.5) * SCALE).min(BELOW_ONE)
            }

            #[inline(always)]
            fn sin_cos_turn(word: $word) -> (Self, Self) {
                const QUARTER: u32 = $word::BITS - 2;
                const UNIT: $float = (std::f64::consts::FRAC_PI_2 / (1u64 << QUARTER) as f64) as $float;
                const FACTORIALS: [f64; 2 * $trig] = inverse_factorials();
                // The nearest quarter turn, and the remainder: at most an eighth of a turn in either
                // direction.
                let quarter = word.wrapping_add(1 << (QUARTER - 1)) >> QUARTER;
                let x = word.wrapping_sub(quarter << QUARTER) as $signed as $float * UNIT;
                let z = -(x * x);
                let (mut sin, mut cos) = (0.0, 0.0);
                for k in (0..$trig).rev() {
                    sin = sin * z + FACTORIALS[2 * k + 1] as $float;
                    cos = cos * z + FACTORIALS[2 * k] as $float;
                }
                sin *= x;
                let (sin, cos) = if quarter & 1 == 1 { (cos, sin) } else { (sin, cos) };
                let negate = |x: $float, quarter: $word| {
                    $float::from_bits(x.to_bits() ^ ((quarter & 2) << ($word::BITS - 2)))
                };
                (negate(sin, quarter), negate(cos, quarter.wrapping_add(1)))
            }

            #[inline(always)]
            fn tan_half_turn(word: $word) -> Self {
                // Odd, so it is never exactly a quarter turn, where the cosine is zero.
                let turn = ((word as $signed) >> 1) | 1;
                let (sin, cos) = Self::sin_cos_turn(turn as $word);
                sin / cos
            }

            #[inline(always)]
            fn ln(self) -> Self {
                const SQRT_HALF: $word = std::$float::consts::FRAC_1_SQRT_2.to_bits();
                const MANTISSA: u32 = $float::MANTISSA_DIGITS - 1;
                // self = 2^e m with m in [√½, √2).
                let e = (self.to_bits().wrapping_sub(SQRT_HALF) as $signed) >> MANTISSA;
                let m = $float::from_bits(self.to_bits().wrapping_sub((e << MANTISSA) as $word));
                // ln m = 2 artanh s = 2 (s + s³/3 + s⁵/5 + …)
                let s = (m - 1.0) / (m + 1.0);
                let z = s * s;
                let mut series = 0.0;
                for k in (0..$ln).rev() {
                    series = series * z + 2.0 / (2 * k + 1) as $float;
                }
                s * series + e as i32 as $float * std::$float::consts::LN_2
            }

            #[inline(always)]
            fn exp(self) -> Self {
                // Beyond this, the result is infinity or zero.
                const LIMIT: $float = $float::MAX_EXP as $float;
                // Adding this leaves the nearest integer in the last digits. It is faster than a conversion,
                // which must saturate.
                const ROUND: $float = 1.5 / $float::EPSILON;
                // ln 2 in two parts, the first so short that a product with a small integer is exact.
                const SHORT: $word = $word::MAX << ($float::MANTISSA_DIGITS / 2);
                const HIGH: $float = $float::from_bits(std::$float::consts::LN_2.to_bits() & SHORT);
                const LOW: $float = (std::f64::consts::LN_2 - HIGH as f64) as $float;
                const FACTORIALS: [f64; $exp] = inverse_factorials();
                // self = k ln 2 + r
                let x = self.max(-LIMIT).min(LIMIT);
                let shifted = x * std::$float::consts::LOG2_E + ROUND;
                let k = shifted - ROUND;
                let r = (x - k * HIGH) - k * LOW;
                let mut series = 0.0;
                for i in (0..$exp).rev() {
                    series = series * r + FACTORIALS[i] as $float;
                }
                // In two steps, because a single power of two could overflow even if the product does not.
                let k = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
                let power = |k: i32| {
                    $float::from_bits(((k + $float::MAX_EXP - 1) as $word) << ($float::MANTISSA_DIGITS - 1))
                };
                series * power(k >> 1) * power(k - (k >> 1))
            }

            #[inline(always)]
            fn sqrt(self) -> Self {
                self.sqrt()
            }

            #[inline(always)]
            fn ceil(self) -> Self {
                self.ceil()
            }

            #[inline(always)]
            fn min(self, other: Self) -> Self {
                self.min(other)
            }

            #[inline(always)]
            fn max(self, other: Self) -> Self {
                self.max(other)
            }
        }
    };
}

real!(f32, u32, i32, digits: 24, ln: 5, trig: 6, exp: 8);
real!(f64, u64, i64, digits: 53, ln: 10, trig: 9, exp: 14);

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;
    use crate::cpu::random::Generator;
    use rand::RngExt;

    /// The largest relative error of `f` against `reference`, over seeded samples.
    fn worst(samples: impl Fn(&mut Generator) -> (f64, f64)) -> f64 {
        let mut generator = Generator::from_seed(17);
        let error = |(x, reference): (f64, f64)| ((x - reference) / reference).abs();
        (0..200_000).map(|_| error(samples(&mut generator))).fold(0.0, f64::max)
    }

    #[test]
    fn ln_is_accurate() {
        let f32s = worst(|g| {
            let u = f32::open_fraction(g.random());
            (SampleReal::ln(u).into(), f64::from(u).ln())
        });
        let f64s = worst(|g| {
            let u = f64::open_fraction(g.random());
            (SampleReal::ln(u), f64::ln(u))
        });
        assert!(f32s < 3.0 * f64::from(f32::EPSILON) && f64s < 3.0 * f64::EPSILON, "{f32s:e} {f64s:e}");
    }

    #[test]
    fn exp_is_accurate() {
        let f32s = worst(|g| {
            let x = g.random_range(-87.0f32..88.0);
            (SampleReal::exp(x).into(), f64::from(x).exp())
        });
        // The f64 constant ln 2 is off by 2.3e-17; a thousand times that is 100 units in the last place.
        let f64s = worst(|g| {
            let x = g.random_range(-700.0..700.0);
            (SampleReal::exp(x), f64::exp(x))
        });
        assert!(f32s < 2.0 * f64::from(f32::EPSILON) && f64s < 150.0 * f64::EPSILON, "{f32s:e} {f64s:e}");
        assert_eq!(
            (SampleReal::exp(1000f32), SampleReal::exp(-1000f32), SampleReal::exp(0f32)),
            (f32::INFINITY, 0.0, 1.0)
        );
        assert_eq!(
            (SampleReal::exp(1000f64), SampleReal::exp(-1000f64), SampleReal::exp(0f64)),
            (f64::INFINITY, 0.0, 1.0)
        );
    }

    #[test]
    fn sine_and_cosine_are_accurate() {
        for i in 0..4096u32 {
            let word = (i << 20) + 12345;
            let angle = f64::from(word) / 2f64.powi(32) * TAU;
            let (s, c) = f32::sin_cos_turn(word);
            assert!((f64::from(s) - angle.sin()).abs() < 1e-7 && (f64::from(c) - angle.cos()).abs() < 1e-7);
            let (s, c) = f64::sin_cos_turn(u64::from(word) << 32);
            assert!((s - angle.sin()).abs() < 1e-15 && (c - angle.cos()).abs() < 1e-15, "word {word}");
        }
        assert_eq!(f32::sin_cos_turn(0), (0.0, 1.0));
        assert_eq!(f32::sin_cos_turn(1 << 30), (1.0, 0.0));
    }

    #[test]
    fn tangent_is_accurate_and_finite() {
        let f32s = worst(|g| {
            let word: u32 = g.random();
            let turn = f64::from((word as i32 >> 1) | 1) / 2f64.powi(32);
            (f32::tan_half_turn(word).into(), (turn * TAU).tan())
        });
        let f64s = worst(|g| {
            let word: u64 = g.random();
            let turn = ((word as i64 >> 1) | 1) as f64 / 2f64.powi(64);
            (f64::tan_half_turn(word), (turn * TAU).tan())
        });
        // The reference takes the tangent of a rounded angle, and its error grows near a quarter turn.
        assert!(f32s < 4.0 * f64::from(f32::EPSILON) && f64s < 1e-9, "{f32s:e} {f64s:e}");
        for word in [0, 1, u32::MAX, 1 << 31, (1 << 31) - 1] {
            assert!(
                f32::tan_half_turn(word).is_finite() && f64::tan_half_turn(u64::from(word) << 32).is_finite()
            );
        }
    }

    #[test]
    fn fractions_stay_in_their_ranges() {
        assert_eq!((f32::fraction(0, 24), f32::fraction(u32::MAX, 24)), (0.0, 1.0 - f32::EPSILON / 2.0));
        assert_eq!((f64::fraction(0, 53), f64::fraction(u64::MAX, 53)), (0.0, 1.0 - f64::EPSILON / 2.0));
        assert_eq!(f32::fraction(u32::MAX, 8), 255.0 / 256.0);
        assert!(f32::open_fraction(0) > 0.0 && f32::open_fraction(u32::MAX) < 1.0);
        assert!(f64::open_fraction(0) > 0.0 && f64::open_fraction(u64::MAX) < 1.0);
    }
}
