//! The functions against `libm` in `f64`, at evenly spaced bit patterns and special values.

use super::{Real, Variant, gamma};
use crate::cpu::simd::{Simd, Vectorized, vectorize};

/// The distance of `y` from `exact` in units of the last place of `exact` in `T`.
fn ulps<T: Real>(y: T, exact: f64) -> f64 {
    let y = y.to_f64();
    let nearest = T::from_f64(exact).to_f64();
    if y == nearest || (y.is_nan() && nearest.is_nan()) {
        let same_zero = y != 0.0 || y.is_sign_negative() == exact.is_sign_negative();
        return if same_zero { 0.0 } else { f64::INFINITY };
    }
    if y.is_infinite() || nearest.is_infinite() {
        // infinity is one unit beyond the largest number
        let (y, nearest) =
            (y.clamp(-T::MAX.to_f64(), T::MAX.to_f64()), nearest.clamp(-T::MAX.to_f64(), T::MAX.to_f64()));
        return if y == nearest { 1.0 } else { f64::INFINITY };
    }
    let power = exact.abs().max(T::SMALLEST_NORMAL);
    let unit = f64::from_bits(power.to_bits() & (0x7ff << 52)) * T::EPSILON.to_f64();
    (y - exact).abs() / unit
}

/// A function of a table row, callable for every [`Real`].
trait Function: Copy {
    fn call<T: Real>(self, x: T) -> T;
}

fn check<T: Real, F: Function>(
    name: &str,
    f: F,
    reference: fn(f64) -> f64,
    bound: f64,
    numbers: impl Iterator<Item = T>,
) {
    for x in numbers {
        let (y, exact) = (f.call(x), reference(x.to_f64()));
        let error = ulps(y, exact);
        assert!(
            error <= bound,
            "{name}({x:e}) = {y:e}, not {exact:e}: {error} ulp, more than {bound}",
            x = x.to_f64(),
            y = y.to_f64()
        );
    }
}

/// Every 40009th `f32`, and the numbers at which something changes.
fn all_f32() -> impl Iterator<Item = f32> {
    let special =
        [0.0, 1.0, 0.5, 2.0, 0.625, f32::INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE, 1e-45, 1e-40];
    let edges = [88.72, 88.73, 103.9, 104.0, 126.0, 128.0, 149.0, 150.0, 9.0, 10.0, 14.0, 15.0];
    let special = special.into_iter().chain(edges).flat_map(|x| [x, -x]);
    (0..=u32::MAX).step_by(40_009).map(f32::from_bits).chain(special)
}

/// About as many `f64`.
fn all_f64() -> impl Iterator<Item = f64> {
    let special =
        [0.0, 1.0, 0.5, 2.0, 0.625, f64::INFINITY, f64::NAN, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1e-310];
    let edges = [709.78, 709.79, 745.1, 746.0, 1022.0, 1024.0, 1074.0, 1075.0, 19.0, 20.0, 27.0, 39.0];
    let special = special.into_iter().chain(edges).flat_map(|x| [x, -x]);
    // most bit patterns are too large or too small to be interesting
    let middle =
        (0..50_000).flat_map(|i| [f64::from(i) * 0.000_417_3, f64::from(i) * 0.017_31]).flat_map(|x| [x, -x]);
    (0..=u64::MAX).step_by(400_009 << 28).map(f64::from_bits).chain(special).chain(middle)
}

/// A row has a method, its reference, and the bounds on its error in units in the last place for `f32` and
/// `f64`. The second bound includes the error of `libm` itself, up to one unit. The row of `exp` becomes
///
/// ```ignore
/// #[test]
/// fn exp() {
///     check("exp", Row, libm::exp, 1.0, all_f32()); // `Row` calls `x.exp()`
///     check("exp", Row, libm::exp, 2.0, all_f64());
///     // and the same with fused multiply-add
/// }
/// ```
macro_rules! accuracy {
    ($($name:ident: $reference:expr, $f32:literal, $f64:literal;)*) => { $(
        #[test]
        fn $name() {
            #[derive(Clone, Copy)]
            struct Row;
            impl Function for Row {
                fn call<T: Real>(self, x: T) -> T {
                    x.$name()
                }
            }
            let name = stringify!($name);
            check(name, Row, $reference, $f32, all_f32());
            check(name, Row, $reference, $f32, all_f32().map(Variant::<_, true>));
            check(name, Row, $reference, $f64, all_f64());
            check(name, Row, $reference, $f64, all_f64().map(Variant::<_, true>));
        }
    )* };
}

accuracy! {
    exp: libm::exp, 1.0, 2.0;
    exp2: libm::exp2, 1.2, 2.0;
    exp_m1: libm::expm1, 1.5, 2.7;
    ln: libm::log, 0.8, 1.8;
    ln_1p: libm::log1p, 0.8, 1.8;
    log2: libm::log2, 0.8, 1.8;
    log10: libm::log10, 0.8, 1.8;
    tanh: libm::tanh, 1.4, 3.0;
    sigmoid: reference_sigmoid, 2.3, 4.0;
    erf: libm::erf, 1.3, 2.0;
    erfc: libm::erfc, 3.5, 4.5;
    round: libm::rint, 0.0, 0.0;
    floor: libm::floor, 0.0, 0.0;
    sqrt: libm::sqrt, 0.5, 0.5;
    sin: libm::sin, 0.6, 0.5;
    lgamma: libm::lgamma, 0.6, 0.5;
}

fn reference_sigmoid(x: f64) -> f64 {
    if x < 0.0 { libm::exp(x) / (1.0 + libm::exp(x)) } else { 1.0 / (1.0 + libm::exp(-x)) }
}

#[test]
fn powf_with_all_its_exceptions() {
    let special =
        [0.0, 0.5, 1.0, 2.0, 3.0, 2.5, 1e10, 1e-40, 1e-3, f32::MAX, f32::INFINITY, f32::NAN, 16_777_217.0];
    let numbers = || special.into_iter().chain((0..300).map(|i| i as f32 * 0.311)).flat_map(|x| [x, -x]);
    for (x, y) in numbers().flat_map(|x| numbers().map(move |y| (x, y))) {
        let exact = libm::pow(f64::from(x), f64::from(y));
        for power in [Real::powf(x, y), Variant::<_, true>(x).powf(Variant::<_, true>(y)).0] {
            let error = ulps(power, exact);
            assert!(error <= 0.6, "{x:e}^{y:e} = {power:e}, not {exact:e}");
        }
    }
}

/// `|a - b|` within `tolerance` of `b`.
fn assert_close(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * b.abs(), "{what}: {a:e} is not {b:e}");
}

#[test]
fn inverses_lead_back() {
    for i in 1..2000 {
        let x = f64::from(i) * 0.003;
        let y = if x < 1.0 { Real::erfinv(libm::erf(x)) } else { x };
        assert_close(y, x, 1e-15, "erfinv"); // erf is flat near 1: a digit is lost
        let p = Real::ndtr(-x);
        assert_close(Real::ndtri(p), -x, 4e-15 * (1.0 + 1.0 / x), "ndtri");
        assert_close(Real::log_ndtr(-x), p.ln(), 3e-15, "log_ndtr");
        assert_close(Real::erfcx(x) * libm::exp(-x * x), libm::erfc(x), 1e-14, "erfcx");
        assert_close(Real::logit(Real::sigmoid(-x)), -x, 1e-15 * (1.0 + 1.0 / x), "logit");
    }
    assert_eq!(Real::erfinv(1.0_f64), f64::INFINITY);
    assert_eq!(Real::erfinv(-1.0_f32), f32::NEG_INFINITY);
    assert!(Real::erfinv(1.5_f64).is_nan() && Real::erfinv(f64::NAN).is_nan());
    assert_eq!([0.0, 1.0].map(|p: f64| Real::ndtri(p)), [f64::NEG_INFINITY, f64::INFINITY]);
    assert!(Real::ndtri(-0.1_f64).is_nan());
}

#[test]
fn gamma_functions() {
    use std::f64::consts::PI;
    for i in 1..400 {
        let x = f64::from(i) * 0.0371;
        let scale = Real::digamma(x).abs() + 1.0 / x;
        assert!((Real::digamma(x + 1.0) - Real::digamma(x) - 1.0 / x).abs() <= 2e-15 * scale, "digamma({x})");
        for n in 1..5 {
            let step = (1..=n).map(f64::from).product::<f64>() / x.powi(n as i32 + 1);
            let step = if n % 2 == 0 { step } else { -step };
            let (a, b): (f64, f64) = (x.polygamma(n), (x + 1.0).polygamma(n));
            assert!((b - a - step).abs() <= 1e-14 * a.abs(), "polygamma({n}, {x})");
        }
    }
    let euler = 0.577_215_664_901_532_9; // NIST Handbook, 5.2.3
    assert_close(Real::digamma(1.0), -euler, 1e-15, "digamma(1)");
    assert_close(Real::digamma(-1.5), Real::digamma(0.5) + 2.0 + 2.0 / 3.0, 1e-15, "digamma(-1.5)");
    assert_close(gamma::zeta(2.0, 1.0), PI * PI / 6.0, 1e-15, "zeta(2)");
    assert_close((-0.5_f64).polygamma(1), 0.5_f64.polygamma(1) + 4.0, 1e-15, "polygamma(1, -0.5)");
    assert_eq!([0.0, -0.0].map(|x: f64| Real::digamma(x)), [f64::NEG_INFINITY, f64::INFINITY]);
    assert!(Real::digamma(-1.0_f64).is_nan());
    assert_eq!((-2.0_f64).polygamma(1), f64::INFINITY);
    assert_eq!(f64::INFINITY.polygamma(1), 0.0);
    assert!((-1e300_f64).polygamma(3).is_infinite()); // must not loop over the integers in between
}

#[test]
fn bessel_functions() {
    for i in 0..300 {
        let x = f64::from(i) * 0.1;
        let series = |order: f64| {
            let (mut term, mut sum) = (if order == 0.0 { 1.0 } else { x / 2.0 }, 0.0);
            for k in 1..200 {
                sum += term;
                term *= x * x / 4.0 / (f64::from(k) * (f64::from(k) + order));
            }
            sum
        };
        assert_close(Real::i0(x), series(0.0), 4e-15, "i0");
        assert_close(Real::i1(-x), -series(1.0), 4e-15, "i1");
        assert_close(Real::i0e(x) * libm::exp(x), series(0.0), 4e-15, "i0e");
        assert_close(Real::i1e(x) * libm::exp(x), series(1.0), 4e-15, "i1e");
    }
    assert!(Real::i0(f64::INFINITY).is_nan()); // as in PyTorch
}

#[test]
fn gelu_keeps_its_digits_in_both_tails() {
    fn check<T: Real>(low: i32) {
        for i in low..800 {
            let x = T::from_f64(f64::from(i) / 64.0); // exact in both types
            let exact = x.to_f64() * 0.5 * libm::erfc(-x.to_f64() * std::f64::consts::FRAC_1_SQRT_2);
            // The square in the exponent is rounded: x²/2 roundings in the left tail, here and in the
            // reference.
            let bound = 8.0 + 2.0 * x.to_f64().powi(2);
            let error = ulps(x.gelu(), exact);
            assert!(error <= bound, "gelu({x}): {error} units");
        }
    }
    check::<f64>(-2000);
    check::<f32>(-768);
}

#[test]
fn limits_of_composed_functions() {
    let (zero, inf, nan) = (0.0_f32, f32::INFINITY, f32::NAN);
    assert_eq!([zero.entr(), (-1.0_f32).entr()], [0.0, -inf]);
    assert_eq!([zero.xlogy(zero), zero.xlogy(inf), 2.0_f32.xlogy(zero)], [0.0, 0.0, -inf]);
    assert!(zero.xlogy(nan).is_nan());
    assert_eq!([inf.logaddexp(inf), (-inf).logaddexp(-inf), inf.logaddexp(-inf)], [inf, -inf, inf]);
    assert!(nan.logaddexp(inf).is_nan());
    assert_eq!([Real::maximum(1.0, 2.0), Real::minimum(1.0, 2.0)], [2.0, 1.0_f32]);
    for (a, b) in [(nan, 1.0), (1.0, nan)] {
        assert!(Real::maximum(a, b).is_nan() && Real::minimum(a, b).is_nan());
    }
    assert_eq!([nan.fmax(1.0), 1.0.fmax(nan), nan.fmin(1.0), 1.0.fmin(nan)], [1.0; 4]);
    assert_eq!(
        [Real::remainder(-7.0, 3.0), Real::remainder(7.0, -3.0), Real::div_floor(-7.0, 2.0)],
        [2.0, -2.0, -4.0_f32]
    );
    assert_eq!([zero.sinc(), 3.0_f32.sinc()], [1.0, 0.0]);
    assert_eq!([200.0_f32.silu(), (-200.0_f32).silu()], [200.0, 0.0]);
    assert!(Real::clamp(nan, 0.0, 1.0).is_nan());
}

/// `y = exp(x)`.
struct Exp<'a>(&'a [f32]);

impl Vectorized for Exp<'_> {
    type Out<'a> = &'a mut [f32];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, y: &mut [f32]) {
        for (y, x) in simd.numbers_mut(y).iter_mut().zip(simd.numbers(self.0)) {
            *y = x.exp();
        }
    }
}

#[test]
fn loops_compute_what_single_calls_do() {
    let x: Vec<f32> = all_f32().collect();
    let mut y = vec![0.0; x.len()];
    vectorize(Exp(&x), &mut y);
    let fused =
        y.iter().zip(&x).all(|(y, x)| y.to_bits() == Variant::<_, true>(*x).exp().0.to_bits() || y.is_nan());
    let plain = y.iter().zip(&x).all(|(y, x)| y.to_bits() == Real::exp(*x).to_bits() || y.is_nan());
    assert!(fused || plain);
}
