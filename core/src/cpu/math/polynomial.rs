//! Orthogonal polynomials, in `f64`, one number at a time.

/// A family of polynomials, which a recurrence of three terms defines (*NIST Handbook of Mathematical
/// Functions*, 18.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    ChebyshevT,
    ChebyshevU,
    ChebyshevV,
    ChebyshevW,
    HermiteH,
    HermiteHe,
    LaguerreL,
    LegendreP,
}

use Family::{ChebyshevT, ChebyshevU, ChebyshevV, ChebyshevW, HermiteH, HermiteHe, LaguerreL, LegendreP};

/// The recurrences of greater degree take too long.
const MOST: f64 = 1e6;

/// The polynomial of degree `n` at `x`; 0 for a negative degree. The recurrence runs with twice the digits, so
/// that the result is right close to its zeros as well.
pub(crate) fn polynomial(family: Family, x: f64, n: f64) -> f64 {
    at(family, [x, 0.0], n.trunc())
}

/// [`polynomial`] of `2 x - 1`.
pub(crate) fn shifted(family: Family, x: f64, n: f64) -> f64 {
    let double = 2.0 * x;
    let (sum, rest) = two_sum(double, -1.0);
    at(family, [sum, rest], n.trunc())
}

fn at(family: Family, x: [f64; 2], n: f64) -> f64 {
    if n < 0.0 {
        return 0.0;
    }
    if n == 0.0 {
        return 1.0;
    }
    if x[0].is_nan() || n.is_nan() {
        return f64::NAN;
    }
    if n > MOST {
        return far(family, x[0], n);
    }
    let double = [2.0 * x[0], 2.0 * x[1]];
    let (mut before, mut this) = (
        [1.0, 0.0],
        match family {
            ChebyshevT | HermiteHe | LegendreP => x,
            ChebyshevU | HermiteH => double,
            ChebyshevV => add(double, [-1.0, 0.0]),
            ChebyshevW => add(double, [1.0, 0.0]),
            LaguerreL => add([1.0, 0.0], [-x[0], -x[1]]),
        },
    );
    let mut k = 1.0;
    while k < n {
        let next = match family {
            ChebyshevT | ChebyshevU | ChebyshevV | ChebyshevW => add(mul(double, this), minus(before)),
            HermiteH => add(mul(double, this), scaled(before, -2.0 * k)),
            HermiteHe => add(mul(x, this), scaled(before, -k)),
            LaguerreL => {
                let factor = add([2.0 * k + 1.0, 0.0], minus(x));
                quotient(add(mul(factor, this), scaled(before, -k)), k + 1.0)
            }
            LegendreP => quotient(add(scaled(mul(x, this), 2.0 * k + 1.0), scaled(before, -k)), k + 1.0),
        };
        if !next[0].is_finite() {
            // Only far from the zeros, where the sign is that of the first term.
            let sign = if family == LaguerreL { -x[0] } else { x[0] };
            return if sign > 0.0 || n % 2.0 == 0.0 { f64::INFINITY } else { f64::NEG_INFINITY };
        }
        (before, this) = (this, next);
        k += 1.0;
    }
    this[0] + this[1]
}

/// Chebyshev polynomials of very great degrees by trigonometric functions, in which a rounded angle counts.
fn far(family: Family, x: f64, n: f64) -> f64 {
    let angle = libm::acos(x);
    match family {
        ChebyshevT => libm::cos(n * angle),
        ChebyshevU => libm::sin((n + 1.0) * angle) / libm::sin(angle),
        ChebyshevV => libm::cos((n + 0.5) * angle) / libm::cos(0.5 * angle),
        ChebyshevW => libm::sin((n + 0.5) * angle) / libm::sin(0.5 * angle),
        _ => f64::NAN,
    }
}

/// The sum and its rounding error (Knuth, *The Art of Computer Programming*, volume 2, section 4.2.2).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

fn add(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    let (sum, rest) = two_sum(a[0], b[0]);
    let rest = rest + a[1] + b[1];
    [sum + rest, rest - ((sum + rest) - sum)]
}

fn minus(a: [f64; 2]) -> [f64; 2] {
    [-a[0], -a[1]]
}

fn mul(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    let product = a[0] * b[0];
    let rest = a[0].mul_add(b[0], -product) + (a[0] * b[1] + a[1] * b[0]);
    [product + rest, rest - ((product + rest) - product)]
}

fn scaled(a: [f64; 2], factor: f64) -> [f64; 2] {
    mul(a, [factor, 0.0])
}

fn quotient(a: [f64; 2], divisor: f64) -> [f64; 2] {
    let quotient = a[0] / divisor;
    let rest = ((-quotient).mul_add(divisor, a[0]) + a[1]) / divisor;
    [quotient + rest, rest - ((quotient + rest) - quotient)]
}
