//! Functions of one or two complex numbers in `f64`.

use num_complex::Complex;
use std::f64::consts::PI;

type C = Complex<f64>;

/// `a / b`, scaled so that no square overflows.
pub(crate) fn quotient(a: C, b: C) -> C {
    let size = b.re.abs().max(b.im.abs());
    if size == 0.0 || !size.is_finite() {
        if size == 0.0 {
            return C::new(a.re / size, a.im / size);
        }
        if size.is_infinite() && a.re.is_finite() && a.im.is_finite() {
            return C::new(0.0, 0.0);
        }
    }
    // Powers of two scale without rounding.
    let scale = 2f64.powi(-(size.log2().floor().clamp(-1021.0, 1021.0) as i32));
    let (c, d) = (b.re * scale, b.im * scale);
    let den = c * c + d * d;
    C::new((a.re * c + a.im * d) / den * scale, (a.im * c - a.re * d) / den * scale)
}

/// `a^b` on the principal branch.
pub(crate) fn power(a: C, b: C) -> C {
    if b == C::new(0.0, 0.0) {
        return C::new(1.0, 0.0);
    }
    if a == C::new(0.0, 0.0) {
        return match b.re {
            re if re > 0.0 => C::new(0.0, 0.0),
            re if re < 0.0 && b.im == 0.0 => C::new(f64::INFINITY, f64::NAN),
            _ => C::new(f64::NAN, f64::NAN),
        };
    }
    if b.im == 0.0 && b.re.fract() == 0.0 && b.re.abs() <= 64.0 {
        let power = whole_power(a, b.re.abs() as u32);
        return if b.re < 0.0 { quotient(C::new(1.0, 0.0), power) } else { power };
    }
    exp(b * log(a))
}

/// `a^n` by squaring, exact for small whole numbers.
fn whole_power(a: C, n: u32) -> C {
    let (mut power, mut square, mut n) = (C::new(1.0, 0.0), a, n);
    while n > 0 {
        if n % 2 == 1 {
            power *= square;
        }
        square *= square;
        n /= 2;
    }
    power
}

pub(crate) fn exp(z: C) -> C {
    let size = z.re.exp();
    match z.im {
        0.0 => C::new(size, z.im),
        _ if size == 0.0 && !z.im.is_finite() => C::new(0.0, 0.0),
        // The product can be in range where the exponential is not.
        im if size.is_infinite() => {
            let root = (z.re / 2.0).exp();
            C::new(root * (root * im.cos()), root * (root * im.sin()))
        }
        im => C::new(size * im.cos(), size * im.sin()),
    }
}

pub(crate) fn log(z: C) -> C {
    let (large, small) = (z.re.abs().max(z.im.abs()), z.re.abs().min(z.im.abs()));
    let size = match large {
        // Beside the unit circle the logarithm of the absolute value is small.
        large if large > 0.5 && large < 1.5 && small < 1.5 => {
            0.5 * ((large - 1.0) * (large + 1.0) + small * small).ln_1p()
        }
        large if !(1e-150..=1e150).contains(&large) => large.ln() + 0.5 * (small / large).powi(2).ln_1p(),
        _ => z.re.hypot(z.im).ln(),
    };
    let size = if large == 0.0 { f64::NEG_INFINITY } else { size };
    let size = if large.is_infinite() { f64::INFINITY } else { size };
    C::new(size, z.im.atan2(z.re))
}

/// Kahan, *Branch Cuts for Complex Elementary Functions* (1987).
pub(crate) fn sqrt(z: C) -> C {
    if z.re == 0.0 && z.im == 0.0 {
        return C::new(0.0, z.im);
    }
    if z.im.is_infinite() {
        return C::new(f64::INFINITY, z.im);
    }
    // Halves and quarters do not overflow.
    let large = z.re.abs().max(z.im.abs());
    let (scale, root) = match large {
        large if large > 1e300 => (0.25, 2.0),
        large if large < 1e-290 => (2f64.powi(108), 2f64.powi(-54)),
        _ => (1.0, 1.0),
    };
    let (re, im) = (z.re * scale, z.im * scale);
    let half = (0.5 * (re.abs() + re.hypot(im))).sqrt();
    match re >= 0.0 {
        true => C::new(half * root, 0.5 * im / half * root),
        false => C::new(0.5 * im.abs() / half * root, half.copysign(im) * root),
    }
}

pub(crate) fn sin(z: C) -> C {
    C::new(z.re.sin() * z.im.cosh(), z.re.cos() * z.im.sinh())
}

pub(crate) fn cos(z: C) -> C {
    C::new(z.re.cos() * z.im.cosh(), -z.re.sin() * z.im.sinh())
}

pub(crate) fn tan(z: C) -> C {
    let (sin, cos) = z.re.sin_cos();
    if z.im.abs() > 20.0 {
        // cosh² z.im is e^(2 |z.im|) / 4, up to rounding.
        return C::new(4.0 * sin * cos * (-2.0 * z.im.abs()).exp(), z.im.signum());
    }
    let (sinh, cosh) = (z.im.sinh(), z.im.cosh());
    let den = cos * cos + sinh * sinh;
    C::new(sin * cos / den, sinh * cosh / den)
}

/// `i z`, with which hyperbolic functions are those of angles.
fn turned(z: C) -> C {
    C::new(-z.im, z.re)
}

fn turned_back(z: C) -> C {
    C::new(z.im, -z.re)
}

pub(crate) fn sinh(z: C) -> C {
    turned_back(sin(turned(z)))
}

pub(crate) fn cosh(z: C) -> C {
    cos(turned(z))
}

pub(crate) fn tanh(z: C) -> C {
    turned_back(tan(turned(z)))
}

/// The square roots of `1 - z` and `1 + z`.
fn roots(z: C) -> [C; 2] {
    [sqrt(C::new(1.0 - z.re, -z.im)), sqrt(C::new(1.0 + z.re, z.im))]
}

pub(crate) fn asin(z: C) -> C {
    let [less, more] = roots(z);
    C::new(z.re.atan2((less * more).re), (less.conj() * more).im.asinh())
}

pub(crate) fn acos(z: C) -> C {
    let [less, more] = roots(z);
    C::new(2.0 * less.re.atan2(more.re), (more.conj() * less).im.asinh())
}

pub(crate) fn acosh(z: C) -> C {
    let (less, more) = (sqrt(C::new(z.re - 1.0, z.im)), sqrt(C::new(z.re + 1.0, z.im)));
    C::new((less.conj() * more).re.asinh(), 2.0 * less.im.atan2(more.re))
}

pub(crate) fn atanh(z: C) -> C {
    let (less, more) = (1.0 - z.re, 1.0 + z.re);
    let size = z.re.abs().max(z.im.abs());
    if size > 1e150 {
        // 1 / z, which is small beside the angle.
        return C::new(quotient(C::new(1.0, 0.0), z).re, (0.5 * PI).copysign(z.im));
    }
    // Beside 1 and -1 the quotient of the distances is extreme.
    let (near, sign) = if z.re < 0.0 { (more, -1.0) } else { (less, 1.0) };
    let re = 0.25 * (4.0 * z.re.abs() / (near * near + z.im * z.im)).ln_1p() * sign;
    C::new(re, 0.5 * (2.0 * z.im).atan2(less * more - z.im * z.im))
}

pub(crate) fn asinh(z: C) -> C {
    turned_back(asin(turned(z)))
}

pub(crate) fn atan(z: C) -> C {
    turned_back(atanh(turned(z)))
}
