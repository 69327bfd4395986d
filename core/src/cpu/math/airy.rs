//! Airy's function, in `f64`, one number at a time.

use super::bessel::chebyshev;
use std::f64::consts::{FRAC_PI_4, PI};

/// `Ai(x)` and its derivative. From 1 on they are Chebyshev series in `1/ζ` times the exponential, with
/// `ζ = 2/3 |x|^(3/2)`, and below -9.5 the asymptotic series (*NIST Handbook of Mathematical Functions*, 9.7.9
/// and 9.7.10). Between them they are the Taylor series around 0 or the nearest zero, whose terms follow from
/// `y'' = x y`: close to a zero `Ai` has all its digits.
pub(crate) fn airy_ai(x: f64) -> [f64; 2] {
    if x.is_infinite() {
        return [0.0; 2];
    }
    if x >= 1.0 {
        let (zeta, rest) = zeta(x);
        let (at, width) = (4.0 / 3.0 / zeta - 1.0, x.sqrt().sqrt());
        let root = libm::exp(-0.5 * zeta);
        let of = |series: f64| series * (1.0 - rest) * root * root;
        return [of(chebyshev(at, RIGHT) / width), -of(chebyshev(at, RIGHT_SLOPE) * width)];
    }
    if x >= -1.0 {
        return taylor([0.0, x], [AT_ZERO, SLOPE_AT_ZERO]);
    }
    if x >= -9.5 {
        let near = |z: &[f64; 3]| (x - z[0]).abs();
        let [zero, rest, slope] =
            ZEROS.into_iter().min_by(|a, b| near(a).total_cmp(&near(b))).unwrap_or_default();
        return taylor([zero, (x - zero) - rest], [0.0, slope]);
    }
    oscillating(-x)
}

/// `ζ = 2/3 x^(3/2)`, in two parts.
fn zeta(x: f64) -> (f64, f64) {
    let root = x.sqrt();
    let root_rest = -root.mul_add(root, -x) / (2.0 * root);
    let product = x * root;
    let rest = x.mul_add(root, -product) + x * root_rest;
    let zeta = product * (2.0 / 3.0);
    (zeta, ((-3.0f64).mul_add(zeta, 2.0 * product) + 2.0 * rest) / 3.0)
}

/// The solution of `y'' = x y` at `center + h` with this value and slope at the center, and its slope.
fn taylor([center, h]: [f64; 2], [value, slope]: [f64; 2]) -> [f64; 2] {
    // The coefficients of `h^(k-2)` and of the two powers below, and `h^(k-1)`.
    let (mut terms, mut power) = ([0.0, value, slope], h);
    let mut sums = [value + slope * h, slope];
    for k in 2..60 {
        let [before, last, this] = terms;
        let next = (center * last + before) / f64::from(k * (k - 1));
        terms = [last, this, next];
        let of_slope = f64::from(k) * next * power;
        // Around 0 every third coefficient is 0, so three of them say how small the terms are.
        let rest = (next.abs() + this.abs() + last.abs()) * (f64::from(k) * power).abs();
        power *= h;
        sums = [sums[0] + next * power, sums[1] + of_slope];
        if rest < 1e-18 * sums[1].abs() && rest * h.abs() < 1e-18 * sums[0].abs() {
            break;
        }
    }
    sums
}

/// `Ai(-x)` for large `x`, and the derivative `Ai'(-x)`.
fn oscillating(x: f64) -> [f64; 2] {
    let (zeta, rest) = zeta(x);
    // Sums over the even and odd terms, of the function and of its derivative.
    let (mut sums, mut term) = ([[1.0, 0.0], [1.0, 0.0]], 1.0);
    for k in 1..25usize {
        let n = k as f64;
        let next =
            term * (6.0 * n - 5.0) * (6.0 * n - 3.0) * (6.0 * n - 1.0) / (216.0 * n * (2.0 * n - 1.0) * zeta);
        if next.abs() < 1e-18 || next.abs() > f64::abs(term) {
            break;
        }
        term = next;
        let signed = if k / 2 % 2 == 0 { term } else { -term };
        sums[0][k % 2] += signed;
        sums[1][k % 2] -= signed * (6.0 * n + 1.0) / (6.0 * n - 1.0);
    }
    // The phase ζ + rest - π/4, whose sine and cosine are turned by the rest.
    let (sin, cos) = libm::sincos(zeta);
    let (sin, cos) = (sin + rest * cos, cos - rest * sin);
    let [sin, cos] = [(sin - cos) * FRAC_PI_4.cos(), (cos + sin) * FRAC_PI_4.cos()];
    let [[even, odd], [even_slope, odd_slope]] = sums;
    let width = PI.sqrt().recip() / x.sqrt().sqrt();
    [(cos * even + sin * odd) * width, (sin * even_slope - cos * odd_slope) * x.sqrt() * width]
}

/// `Ai(0)` and `Ai'(0)`.
const AT_ZERO: f64 = 0.3550280538878172;
const SLOPE_AT_ZERO: f64 = -0.2588194037928068;

/// The first zeros, in two parts, and the slopes there.
const ZEROS: [[f64; 3]; 6] = [
    [-2.338107410459767, -3.912260409818305e-17, 0.7012108227206914],
    [-4.08794944413097, -3.387261694242901e-16, -0.803111369654864],
    [-5.520559828095551, -2.674142599618633e-16, 0.8652040258941519],
    [-6.786708090071759, -9.56301343655757e-17, -0.9108507370496018],
    [-7.944133587120853, 3.4021391708444276e-17, 0.9473357094415678],
    [-9.02265085334098, 2.2327602737028807e-16, -0.9779228085694986],
];

/// `Ai(x) exp(ζ) x^(1/4)` in `4/(3 ζ) - 1`.
const RIGHT: &[f64] = &[
    0.2718740351103066,
    -0.0091443848250055,
    0.0009010457337825075,
    -0.00013941841272214914,
    2.738158157852094e-05,
    -6.275042111995942e-06,
    1.606484418483152e-06,
    -4.476392158510355e-07,
    1.3346358746516685e-07,
    -4.207353342632158e-08,
    1.3902199024636421e-08,
    -4.783184806804818e-09,
    1.704789790746561e-09,
    -6.268389576018443e-10,
    2.369824276612219e-10,
    -9.18641139267555e-11,
    3.642785430376733e-11,
    -1.4747555172589307e-11,
    6.085100655664285e-12,
    -2.5552772234878823e-12,
    1.0906187250529385e-12,
    -4.725870319654403e-13,
    2.0769690647720754e-13,
    -9.249762148175747e-14,
    4.1709672345894733e-14,
    -1.902990936622559e-14,
    8.779067693061953e-15,
    -4.092755921006152e-15,
    1.927107034077519e-15,
    -9.160203395985477e-16,
    4.393575136975658e-16,
    -2.1255173528685387e-16,
    1.0367613803897425e-16,
    -5.0969087443779544e-17,
    2.524679607576122e-17,
    -1.2596345404477845e-17,
    6.328463601049447e-18,
    -3.2007533647809724e-18,
    1.6292905582676164e-18,
];

/// `-Ai'(x) exp(ζ) / x^(1/4)` in `4/(3 ζ) - 1`.
const RIGHT_SLOPE: &[f64] = &[
    0.2972032568506511,
    0.01376862394367378,
    -0.0011341483857644598,
    0.00016485003792173668,
    -3.133108717018685e-05,
    7.033925377392145e-06,
    -1.775256354578603e-06,
    4.894710878201612e-07,
    -1.447472842835699e-07,
    4.533279722053916e-08,
    -1.489874847040062e-08,
    5.102970622285492e-09,
    -1.8117778566526028e-09,
    6.639642130782005e-10,
    -2.5028833238067257e-10,
    9.677287226234283e-11,
    -3.8286571369810915e-11,
    1.5468208593185685e-11,
    -6.370611516432424e-12,
    2.670659017782548e-12,
    -1.1381092280133974e-12,
    4.924685936840061e-13,
    -2.1615275112333863e-13,
    9.614745308409737e-14,
    -4.3306998841517224e-14,
    1.9738111521522115e-14,
    -9.096928629498943e-15,
    4.237079834623312e-15,
    -1.9933580647413973e-15,
    9.467498674472081e-16,
    -4.537522795054443e-16,
    2.1935839080365288e-16,
    -1.0692367961387663e-16,
    5.2531851211824007e-17,
    -2.6005004345349892e-17,
    1.296710367825046e-17,
    -6.511131164217288e-18,
    3.291404002222337e-18,
    -1.67459057149226e-18,
    8.573083589482176e-19,
    -4.415409278880579e-19,
    2.287286729453274e-19,
];
