//! Fills slices with samples of continuous distributions, from a table of formulas on random words.
//!
//! Every function uses the next `out.len()` elements of the generator. The caller checks the parameters.
//! Samples are `f32` or `f64`; the caller rounds them to a half type.

use std::marker::PhantomData;

use half::{bf16, f16};

use super::fill::{Group, fill};
use super::generator::Generator;
use super::philox::GROUP;
use super::real::SampleReal;
use crate::cpu::fill::half_down;
use crate::cpu::simd::is_short;
use crate::dtype::DType;

/// Two samples from two words.
trait SampleFormula<R: SampleReal>: Copy + Sync {
    /// Whether programs wait for draws of it; see [`Group::IS_FREQUENT`].
    const IS_FREQUENT: bool = false;

    fn pair(self, a: R::Word, b: R::Word) -> (R, R);
}

/// A distribution that needs one word for each sample.
trait Single<R: SampleReal>: Copy + Sync {
    fn sample(self, word: R::Word) -> R;
}

/// Samples of a [`Single`] distribution.
#[derive(Clone, Copy)]
struct Each<D>(D);

impl<R: SampleReal, D: Single<R>> SampleFormula<R> for Each<D> {
    #[inline(always)]
    fn pair(self, a: R::Word, b: R::Word) -> (R, R) {
        (self.0.sample(a), self.0.sample(b))
    }
}

#[derive(Clone, Copy)]
struct Exponential<R> {
    mean: R,
}

impl<R: SampleReal> Single<R> for Exponential<R> {
    #[inline(always)]
    fn sample(self, word: R::Word) -> R {
        -R::open_fraction(word).ln() * self.mean
    }
}

#[derive(Clone, Copy)]
struct Cauchy<R> {
    median: R,
    sigma: R,
}

impl<R: SampleReal> Single<R> for Cauchy<R> {
    #[inline(always)]
    fn sample(self, word: R::Word) -> R {
        R::tan_half_turn(word) * self.sigma + self.median
    }
}

#[derive(Clone, Copy)]
struct Geometric<R> {
    mean: R,
}

impl<R: SampleReal> Single<R> for Geometric<R> {
    #[inline(always)]
    fn sample(self, word: R::Word) -> R {
        (-R::open_fraction(word).ln() * self.mean).ceil().max(R::of(1.0))
    }
}

#[derive(Clone, Copy)]
struct Uniform<R> {
    low: R,
    width: R,
    highest: R,
    digits: u32,
}

impl<R: SampleReal> SampleFormula<R> for Uniform<R> {
    const IS_FREQUENT: bool = is_short::<R>();

    #[inline(always)]
    fn pair(self, a: R::Word, b: R::Word) -> (R, R) {
        let sample = |word| (R::fraction(word, self.digits) * self.width + self.low).min(self.highest);
        (sample(a), sample(b))
    }
}

/// Uniform between two numbers whose difference overflows `R`.
#[derive(Clone, Copy)]
struct Overflowing<R> {
    high: R,
    uniform: Uniform<R>,
}

impl<R: SampleReal> SampleFormula<R> for Overflowing<R> {
    #[inline(always)]
    fn pair(self, a: R::Word, b: R::Word) -> (R, R) {
        let Uniform { low, highest, digits, .. } = self.uniform;
        let sample = |word| {
            let share = R::fraction(word, digits);
            (share * self.high + (R::of(1.0) - share) * low).min(highest)
        };
        (sample(a), sample(b))
    }
}

#[derive(Clone, Copy)]
struct Normal<R> {
    mean: R,
    std: R,
}

impl<R: SampleReal> SampleFormula<R> for Normal<R> {
    const IS_FREQUENT: bool = is_short::<R>();

    /// Box, Muller, *A note on the generation of random normal deviates* (1958): a point at distance
    /// `√(-2 ln u)` from the origin, in a uniformly distributed direction, has two normal coordinates.
    #[inline(always)]
    fn pair(self, a: R::Word, b: R::Word) -> (R, R) {
        let radius = (R::of(-2.0) * R::open_fraction(a).ln()).sqrt();
        let (sin, cos) = R::sin_cos_turn(b);
        (radius * cos * self.std + self.mean, radius * sin * self.std + self.mean)
    }
}

#[derive(Clone, Copy)]
struct LogNormal<R>(Normal<R>);

impl<R: SampleReal> SampleFormula<R> for LogNormal<R> {
    #[inline(always)]
    fn pair(self, a: R::Word, b: R::Word) -> (R, R) {
        let (x, y) = self.0.pair(a, b);
        (x.exp(), y.exp())
    }
}

/// The samples of a formula in `R`.
struct FormulaSamples<R, F>(F, PhantomData<fn() -> R>);

impl<R, F: Copy> Copy for FormulaSamples<R, F> {}

impl<R, F: Copy> Clone for FormulaSamples<R, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: SampleReal, F: SampleFormula<R>> Group for FormulaSamples<R, F> {
    type Word = R::Word;
    type Out = R;
    const IS_FREQUENT: bool = F::IS_FREQUENT;

    #[inline(always)]
    fn elements(self, words: [R::Word; GROUP]) -> [R; GROUP] {
        const HALF: usize = GROUP / 2;
        let mut samples = [R::of(0.0); GROUP];
        for i in 0..HALF {
            (samples[i], samples[HALF + i]) = self.0.pair(words[i], words[HALF + i]);
        }
        samples
    }
}

fn fill_real<R: SampleReal>(out: &mut [R], formula: impl SampleFormula<R>, generator: &mut Generator) {
    fill(out, FormulaSamples(formula, PhantomData), generator);
}

/// The number of binary digits of the numbers of a float dtype just below one.
fn digits(dtype: DType) -> u32 {
    match dtype {
        DType::F16 => f16::MANTISSA_DIGITS,
        DType::BF16 => bf16::MANTISSA_DIGITS,
        DType::F64 => f64::MANTISSA_DIGITS,
        _ => f32::MANTISSA_DIGITS,
    }
}

/// The largest number of a float dtype below `x`.
fn below(dtype: DType, x: f64) -> f64 {
    match dtype {
        DType::F16 => f16::from_bits(half_down(f16::from_f64(x).to_bits())).into(),
        DType::BF16 => bf16::from_bits(half_down(bf16::from_f64(x).to_bits())).into(),
        DType::F64 => x.next_down(),
        _ => (x as f32).next_down().into(),
    }
}

/// Uniform on `[low, high)`: each of the numbers `low + k (high - low) 2^-d`, where `d` is the number of
/// binary digits of `dtype`, to which the samples will be rounded.
///
/// If rounding would give `high`, the result is the next number below it. If `low == high`, the result is
/// `low`.
pub(crate) fn fill_uniform<R: SampleReal>(
    out: &mut [R],
    low: f64,
    high: f64,
    dtype: DType,
    generator: &mut Generator,
) {
    let lowest = R::of(low);
    let formula = Uniform {
        low: lowest,
        width: R::of(high - low),
        highest: R::of(below(dtype, high)).max(lowest),
        digits: digits(dtype),
    };
    if dtype != DType::F64 && high - low > f32::MAX.into() {
        fill_real(out, Overflowing { high: R::of(high), uniform: formula }, generator);
    } else {
        fill_real(out, formula, generator);
    }
}

/// Normal with the given mean and standard deviation; at most 6.8 standard deviations from the mean in `f32`,
/// 9.5 in `f64`.
pub(crate) fn fill_normal<R: SampleReal>(out: &mut [R], mean: f64, std: f64, generator: &mut Generator) {
    fill_real(out, Normal { mean: R::of(mean), std: R::of(std) }, generator);
}

/// `exp` of a normal sample with the given mean and standard deviation.
pub(crate) fn fill_log_normal<R: SampleReal>(out: &mut [R], mean: f64, std: f64, generator: &mut Generator) {
    fill_real(out, LogNormal(Normal { mean: R::of(mean), std: R::of(std) }), generator);
}

/// Exponential with density `rate · exp(-rate · x)`; never zero, as in PyTorch.
pub(crate) fn fill_exponential<R: SampleReal>(out: &mut [R], rate: f64, generator: &mut Generator) {
    fill_real(out, Each(Exponential { mean: R::of(1.0 / rate) }), generator);
}

/// Cauchy with density `σ / (π (σ² + (x - median)²))`.
pub(crate) fn fill_cauchy<R: SampleReal>(out: &mut [R], median: f64, sigma: f64, generator: &mut Generator) {
    fill_real(out, Each(Cauchy { median: R::of(median), sigma: R::of(sigma) }), generator);
}

/// The number of trials with probability `p` up to the first success: `k ≥ 1` with probability
/// `(1 - p)^(k-1) p`.
///
/// This is an exponential sample with rate `-ln(1 - p)`, rounded up, in `f64`, because a small `p` needs more
/// digits than `f32` has.
pub(crate) fn fill_geometric(out: &mut [f64], p: f64, generator: &mut Generator) {
    let rate = if p < 1.0 { -ln_1p(-p) } else { f64::INFINITY };
    fill_real(out, Each(Geometric { mean: 1.0 / rate }), generator);
}

/// `ln(1 + x)` for `x > -1`, accurate even if the sum would lose digits of `x`.
///
/// With `u = 1 + x` rounded, `ln(1 + x) = ln u · x / (u - 1)` up to rounding (Kahan; Goldberg, *What every
/// computer scientist should know about floating-point arithmetic*, 1991, theorem 4).
fn ln_1p(x: f64) -> f64 {
    let u = 1.0 + x;
    if u == 1.0 { x } else { SampleReal::ln(u) * (x / (u - 1.0)) }
}

#[cfg(test)]
pub(super) mod tests {
    use std::f64::consts::PI;
    use std::fmt::Debug;

    use super::*;
    use crate::cpu::random::fill::fill_piece;
    use crate::cpu::random::philox::Word;

    pub(in crate::cpu::random) const N: usize = 100_000;

    pub(in crate::cpu::random) fn draw<T: Copy>(
        zero: T,
        fill: impl FnOnce(&mut [T], &mut Generator),
    ) -> Vec<T> {
        let mut out = vec![zero; N];
        fill(&mut out, &mut Generator::from_seed(2024));
        out
    }

    /// The Kolmogorov-Smirnov test: the largest distance of the empirical distribution from `cdf`, times
    /// `√n`. It is above 1.95 in one of a thousand draws from the right distribution; the seed is fixed.
    fn assert_follows<T: Into<f64>>(samples: Vec<T>, cdf: impl Fn(f64) -> f64) {
        let mut x: Vec<f64> = samples.into_iter().map(Into::into).collect();
        x.sort_by(f64::total_cmp);
        let n = x.len() as f64;
        let distance = |(i, &x): (usize, &f64)| (cdf(x) - i as f64 / n).max((i + 1) as f64 / n - cdf(x));
        let statistic = x.iter().enumerate().map(distance).fold(0.0, f64::max) * n.sqrt();
        assert!(statistic < 1.95, "Kolmogorov-Smirnov statistic {statistic}");
    }

    /// `1/2 + φ(x) (x + x³/3 + x⁵/(3·5) + …)`
    fn normal_cdf(x: f64) -> f64 {
        let (mut term, mut sum, mut k) = (x, x, 1.0);
        while sum + term != sum {
            k += 2.0;
            term *= x * x / k;
            sum += term;
        }
        0.5 + sum * (-x * x / 2.0).exp() / (2.0 * PI).sqrt()
    }

    pub(in crate::cpu::random) fn mean_and_std<T: Copy + Into<f64>>(x: &[T]) -> (f64, f64) {
        let mean = x.iter().map(|&x| x.into()).sum::<f64>() / x.len() as f64;
        let square = |&x: &T| (x.into() - mean).powi(2);
        (mean, (x.iter().map(square).sum::<f64>() / x.len() as f64).sqrt())
    }

    #[test]
    fn uniform_is_uniform() {
        assert_follows(draw(0f32, |out, g| fill_uniform(out, -2.0, 6.0, DType::F32, g)), |x| (x + 2.0) / 8.0);
        assert_follows(draw(0f64, |out, g| fill_uniform(out, -2.0, 6.0, DType::F64, g)), |x| (x + 2.0) / 8.0);
    }

    #[test]
    fn uniform_stays_below_its_end() {
        for (low, high) in [(0.0, 1.0), (1.0, 1.5), (-2.0, 0.0), (-3.0, -2.0)] {
            let inside = |x: f64| (low..high).contains(&x);
            let narrow = |dtype| draw(0f32, |out, g| fill_uniform(out, low, high, dtype, g));
            assert!(narrow(DType::F32).into_iter().all(|x| inside(x.into())), "[{low}, {high})");
            assert!(
                narrow(DType::F16).into_iter().all(|x| inside(f16::from_f32(x).into())),
                "[{low}, {high})"
            );
            assert!(
                narrow(DType::BF16).into_iter().all(|x| inside(bf16::from_f32(x).into())),
                "[{low}, {high})"
            );
            let wide = draw(0f64, |out, g| fill_uniform(out, low, high, DType::F64, g));
            assert!(wide.into_iter().all(inside), "[{low}, {high})");
        }
        assert!(draw(0f32, |out, g| fill_uniform(out, 3.0, 3.0, DType::F32, g)).iter().all(|&x| x == 3.0));
    }

    #[test]
    fn normal_is_normal() {
        assert_follows(draw(0f32, |out, g| fill_normal(out, 3.0, 2.0, g)), |x| normal_cdf((x - 3.0) / 2.0));
        assert_follows(draw(0f64, |out, g| fill_normal(out, 3.0, 2.0, g)), |x| normal_cdf((x - 3.0) / 2.0));
        let (mean, std) = mean_and_std(&draw(0f32, |out, g| fill_normal(out, 3.0, 2.0, g)));
        assert!((mean - 3.0).abs() < 0.03 && (std - 2.0).abs() < 0.03, "{mean} {std}");
    }

    #[test]
    fn the_two_of_a_normal_pair_are_independent() {
        let x = draw(0f64, |out, g| fill_normal(out, 0.0, 1.0, g));
        for lag in [1, GROUP / 4, GROUP / 2, GROUP] {
            let correlation = (0..N - lag).map(|i| x[i] * x[i + lag]).sum::<f64>() / N as f64;
            let of_squares =
                (0..N - lag).map(|i| (x[i].powi(2) - 1.0) * (x[i + lag].powi(2) - 1.0)).sum::<f64>();
            assert!(correlation.abs() < 0.015 && (of_squares / N as f64).abs() < 0.03, "lag {lag}");
        }
    }

    #[test]
    fn log_normal_is_log_normal() {
        let cdf = |x: f64| normal_cdf((x.ln() - 0.5) / 1.5);
        assert_follows(draw(0f32, |out, g| fill_log_normal(out, 0.5, 1.5, g)), cdf);
        assert_follows(draw(0f64, |out, g| fill_log_normal(out, 0.5, 1.5, g)), cdf);
    }

    #[test]
    fn exponential_is_exponential_and_positive() {
        let x = draw(0f32, |out, g| fill_exponential(out, 2.5, g));
        assert!(x.iter().all(|&x| x > 0.0));
        assert_follows(x, |x| 1.0 - (-2.5 * x).exp());
        assert_follows(draw(0f64, |out, g| fill_exponential(out, 2.5, g)), |x| 1.0 - (-2.5 * x).exp());
    }

    #[test]
    fn cauchy_is_cauchy() {
        let cdf = |x: f64| 0.5 + ((x - 1.0) / 0.5).atan() / PI;
        assert_follows(draw(0f32, |out, g| fill_cauchy(out, 1.0, 0.5, g)), cdf);
        assert_follows(draw(0f64, |out, g| fill_cauchy(out, 1.0, 0.5, g)), cdf);
    }

    #[test]
    fn geometric_counts_trials() {
        for p in [0.9, 0.3, 1e-3] {
            let x = draw(0f64, |out, g| fill_geometric(out, p, g));
            assert!(x.iter().all(|&x| x >= 1.0 && x.fract() == 0.0));
            for k in 1..5 {
                let share = x.iter().filter(|&&x| x == f64::from(k)).count() as f64 / N as f64;
                let expected = (1.0 - p).powi(k - 1) * p;
                assert!(
                    (share - expected).abs() < 5.0 * (expected / N as f64).sqrt(),
                    "p {p}, k {k}: {share}"
                );
            }
            let (mean, _) = mean_and_std(&x);
            assert!((mean * p - 1.0).abs() < 0.02, "p {p}: mean {mean}");
        }
        assert!(draw(0.0, |out, g| fill_geometric(out, 1.0, g)).iter().all(|&x| x == 1.0));
        assert!(ln_1p(-1e-12).to_bits().abs_diff((-1e-12f64).ln_1p().to_bits()) < 3);
    }

    #[test]
    fn wider_vectors_do_not_change_a_bit() {
        fn check<G: Group>(kind: G)
        where
            G::Out: PartialEq + Debug,
        {
            let words = |group| <G::Word as Word>::group(77, group);
            for group in 0..200 {
                let baseline = kind.elements(words(group));
                let mut widest = baseline;
                widest.rotate_left(1);
                fill_piece(&mut widest, kind, 77, group * GROUP as u64);
                assert_eq!(widest, baseline);
            }
        }
        check(FormulaSamples::<f32, _>(Normal { mean: 0.5, std: 3.0 }, PhantomData));
        check(FormulaSamples::<f64, _>(Normal { mean: 0.5, std: 3.0 }, PhantomData));
        check(FormulaSamples::<f32, _>(LogNormal(Normal { mean: 0.5, std: 3.0 }), PhantomData));
        check(FormulaSamples::<f64, _>(LogNormal(Normal { mean: 0.5, std: 3.0 }), PhantomData));
        check(FormulaSamples::<f32, _>(Each(Exponential { mean: 0.5 }), PhantomData));
        check(FormulaSamples::<f64, _>(Each(Cauchy { median: 0.5, sigma: 3.0 }), PhantomData));
        check(FormulaSamples::<f64, _>(Each(Geometric { mean: 3.5 }), PhantomData));
    }
}
