//! Densities far out, of large counts, and at the ends of the support.
//!
//! References are other forms of the same number that lose no digits: ratios of neighbors, expansions,
//! symmetries.

use super::table::f64s;
use namegrad::distributions::{Exponential, *};
use namegrad::prelude::*;

fn log_prob(of: &dyn Distribution, x: f64) -> f64 {
    of.log_prob(&f64s(x)).unwrap().item::<f64>().unwrap()
}

fn assert_close(got: f64, want: f64, relative: f64) {
    assert!((got - want).abs() <= relative * want.abs(), "{got}, expected {want}");
}

/// At its mean `m`, `log p(m) = -½ log(2π m) - 1 / (12 m) + 1 / (360 m³) - ...` (Stirling's series).
#[test]
fn large_counts() -> Result<()> {
    for m in [1e3, 1e6, 1e9, 1e12, 1e15] {
        let stirling = |m: f64| 1.0 / (12.0 * m) - 1.0 / (360.0 * m * m * m);
        let of_mean = -0.5 * (std::f64::consts::TAU * m).ln() - stirling(m);
        assert_close(log_prob(&Poisson::new(f64s(m))?, m), of_mean, 1e-15);
        // the density of the gamma distribution is Poisson's probability of one less, times the rate
        assert_close(log_prob(&Gamma::new(f64s(m + 1.0), 1.0)?, m), of_mean, 1e-15);
        // at the middle of 2 m fair trials: ½ log(1 / (π m)) and the rests of Stirling's series
        let middle = -0.5 * (std::f64::consts::PI * m).ln() + stirling(2.0 * m) - 2.0 * stirling(m);
        assert_close(log_prob(&Binomial::new(f64s(2.0 * m), 0.5)?, m), middle, 1e-15);
        // the density of beta(m + 1, m + 1) is that probability times 2 m + 1, and 4 of Jacobi's scale
        let beta = middle + (2.0 * m + 1.0).ln();
        assert_close(log_prob(&Beta::new(f64s(m + 1.0), m + 1.0)?, 0.5), beta, 2e-15);
        // Student's distribution is nearly normal, at 0 by -1 / (4 ν) + 1 / (24 ν³)
        let normal = log_prob(&Normal::new(f64s(0.0), 1.0)?, 0.0);
        assert_close(
            log_prob(&StudentT::new(f64s(m), 0.0, 1.0)?, 0.0),
            normal - 0.25 / m + 1.0 / (24.0 * m * m * m),
            3e-15,
        );
    }
    Ok(())
}

/// `p(k + 1) / p(k)` is `λ / (k + 1)`, `(n - k) p / ((k + 1) q)` and so on.
#[test]
fn ratios_of_neighbors() -> Result<()> {
    let step = |of: &dyn Distribution, k: f64| log_prob(of, k + 1.0) - log_prob(of, k);
    for k in [0.0, 1.0, 9.0, 10.0, 50.0] {
        let close = |got: f64, want: f64| assert!((got - want).abs() < 2e-14, "{k}: {got}, expected {want}");
        close(step(&Poisson::new(f64s(12.5))?, k), (12.5 / (k + 1.0)).ln());
        let of = Binomial::from_logits(f64s(60.0), -0.3)?;
        close(step(&of, k), ((60.0 - k) / (k + 1.0)).ln() - 0.3);
        let of = NegativeBinomial::from_logits(f64s(3.5), -0.3)?;
        close(step(&of, k), ((3.5 + k) / (k + 1.0)).ln() - (1.0 + 0.3f64.exp()).ln());
        close(step(&Geometric::new(f64s(0.25))?, k), 0.75f64.ln());
    }
    Ok(())
}

/// Tails where a sum would round to 1, and squares overflow.
#[test]
fn tails() -> Result<()> {
    let cdf = |of: &dyn Distribution, x: f64| of.cdf(&f64s(x)).unwrap().item::<f64>().unwrap();
    assert_close(cdf(&Cauchy::new(f64s(0.0), 1.0)?, -1e300), 1e-300 / std::f64::consts::PI, 1e-15);
    assert_close(cdf(&Laplace::new(f64s(0.0), 1.0)?, -700.0), 0.5 * (-700f64).exp(), 1e-12);
    assert_close(cdf(&Exponential::new(f64s(1.0))?, 1e-20), 1e-20, 1e-15);
    assert_close(cdf(&Weibull::new(f64s(1.0), 2.0)?, 1e-10), 1e-20, 1e-15);
    assert_close(cdf(&Gamma::new(f64s(2.0), 1.0)?, 1e-10), 0.5e-20, 1e-9);
    assert_close(cdf(&Gamma::new(f64s(1.0), 1.0)?, 30.0), -(-30f64).exp_m1(), 1e-15);
    let icdf = |of: &dyn Distribution, p: f64| of.icdf(&f64s(p)).unwrap().item::<f64>().unwrap();
    assert_close(icdf(&Laplace::new(f64s(0.0), 1.0)?, 1e-300), (2e-300f64).ln(), 1e-15);
    assert_close(icdf(&Cauchy::new(f64s(0.0), 1.0)?, 1e-300), -1e300 / std::f64::consts::PI, 1e-14);
    let far = 1e200f64;
    let cauchy = -std::f64::consts::PI.ln() - 2.0 * far.ln();
    assert_close(log_prob(&Cauchy::new(f64s(0.0), 1.0)?, far), cauchy, 1e-15);
    assert_close(log_prob(&StudentT::new(f64s(1.0), 0.0, 1.0)?, far), cauchy, 1e-14);
    assert_close(log_prob(&Bernoulli::from_logits(f64s(-1000.0))?, 1.0), -1000.0, 1e-15);
    assert_close(log_prob(&Bernoulli::from_logits(f64s(50.0))?, 1.0), -(-50f64).exp(), 1e-15);
    assert_close(log_prob(&Binomial::from_logits(f64s(10.0), -2000.0)?, 1.0), 10f64.ln() - 2000.0, 1e-15);
    // sharp angles: nearly normal, by 1 / (8 κ) in the height
    let sharp = 0.5 * (1e10 / std::f64::consts::TAU).ln() - 0.125e-10;
    assert_close(log_prob(&VonMises::new(f64s(0.0), 1e10)?, 0.0), sharp, 1e-14);
    // the mean of a continuous Bernoulli distribution is ½ + l / 12 near 0
    let near = ContinuousBernoulli::from_logits(f64s(1e-9))?.mean()?.item::<f64>()?;
    assert_close(near, 0.5 + 1e-9 / 12.0, 1e-16);
    Ok(())
}

/// The distribution function of gamma distributions of large shapes, near the mean and far from it.
/// References: the integral of the density, in 40 digits.
#[test]
fn gamma_of_large_shapes() -> Result<()> {
    let cases = [
        (1e3, 1e3, [0.504_205_244_180_215_5, 0.495_794_755_819_784_5], 1e-13),
        (500.0, 800.0, [1.0, 1.742_039_824_439_163e-30], 1e-13),
        (700.0, 900.0, [0.999_999_999_998_199_9, 1.800_088_524_878_870_8e-12], 1e-13),
        (650.0, 300.0, [1.586_321_675_296_392_5e-68, 1.0], 1e-13),
        (3e3, 2e3, [2.287_177_814_973_167e-96, 1.0], 1e-13),
        (3e3, 4.5e3, [1.0, 9.875_448_421_697_154e-126], 1e-13),
        (1e4, 1.2e4, [1.0, 3.327_202_492_345_161_3e-79], 3e-13),
        (2e4, 1.55e4, [2.864_822_476_127_153_4e-262, 1.0], 3e-13),
        (2e4, 2.4e4, [1.0, 3.941_916_538_645_548_3e-156], 3e-13),
        (1e5, 1.1e5, [1.0, 2.655_400_479_376_695e-206], 3e-13),
        (1e7, 10_003_162.277_660_169, [0.841_344_750_100_529_1, 0.158_655_249_899_470_83], 1e-12),
        (1e7, 9_996_837.722_339_831, [0.158_655_249_897_657_05, 0.841_344_750_102_343], 1e-12),
        (1e12, 1_000_001_000_000.0, [0.841_344_746_068_583_2, 0.158_655_253_931_416_72], 1e-13),
        (1e12, 999_999_000_000.0, [0.158_655_253_931_416_72, 0.841_344_746_068_583_2], 1e-13),
        (1e3, 1e6, [1.0, 0.0], 0.0),
        (1e12, 1.0, [0.0, 1.0], 0.0),
    ];
    for (a, x, [below, above], relative) in cases {
        let of = |y: Tensor| y.item::<f64>();
        assert_close(of(f64s(a).gammainc(f64s(x))?)?, below, relative);
        assert_close(of(f64s(a).gammaincc(f64s(x))?)?, above, relative);
        assert_close(of(Gamma::new(f64s(a), 1.0)?.cdf(&f64s(x))?)?, below, relative);
        assert_close(of(Chi2::new(f64s(2.0 * a))?.cdf(&f64s(2.0 * x))?)?, below, relative);
        assert_close(of(InverseGamma::new(f64s(a), x)?.cdf(&f64s(1.0))?)?, above, relative);
    }
    assert_close(of_inverse(1e5, 0.9)?, 2.039_740_349_383_177e-252, 2e-12);
    let of = Gamma::new(Tensor::new(1e5)?.to(DType::F32)?, 1.0)?;
    assert_eq!(of.cdf(&Tensor::new(1.1e5)?)?.item::<f32>()?, 1.0);
    Ok(())
}

fn of_inverse(a: f64, x: f64) -> Result<f64> {
    InverseGamma::new(f64s(a), a)?.cdf(&f64s(x))?.item()
}

/// At the ends of the support: infinite or finite, and never NaN.
#[test]
fn ends_of_the_support() -> Result<()> {
    let (inf, one) = (f64::INFINITY, f64s(1.0));
    let at = |of: Box<dyn Distribution>, x: f64| log_prob(&*of, x);
    assert_eq!(at(Box::new(Gamma::new(&one, 2.0)?), 0.0), 2f64.ln());
    assert_eq!(at(Box::new(Gamma::new(f64s(0.5), 2.0)?), 0.0), inf);
    assert_eq!(at(Box::new(Gamma::new(f64s(1.5), 2.0)?), 0.0), -inf);
    assert_eq!(at(Box::new(Beta::new(&one, 3.0)?), 0.0), 3f64.ln());
    assert_eq!(at(Box::new(Beta::new(&one, 3.0)?), 1.0), -inf);
    assert_eq!(at(Box::new(Beta::new(f64s(0.5), 1.0)?), 0.0), inf);
    assert_close(at(Box::new(Kumaraswamy::new(&one, 3.0)?), 0.0), 3f64.ln(), 1e-15);
    assert_close(at(Box::new(Kumaraswamy::new(f64s(2.0), 1.0)?), 1.0), 2f64.ln(), 1e-15);
    assert_eq!(at(Box::new(Poisson::new(f64s(0.0))?), 0.0), 0.0);
    assert_eq!(at(Box::new(Poisson::new(f64s(0.0))?), 1.0), -inf);
    assert_eq!(at(Box::new(NegativeBinomial::new(f64s(0.0), 0.5)?), 0.0), 0.0);
    assert_eq!(at(Box::new(Geometric::new(&one)?), 0.0), 0.0);
    assert_eq!(at(Box::new(Binomial::new(f64s(0.0), 0.5)?), 0.0), 0.0);
    assert_eq!(at(Box::new(Uniform::new(f64s(0.0), 1.0)?), 1.0), -inf);
    assert_eq!(at(Box::new(Gumbel::new(f64s(0.0), 1.0)?), -1e4), -inf);
    let logits = f64s([0.0, f64::NEG_INFINITY]);
    assert_eq!(Categorical::from_logits(&logits, -1)?.entropy()?.item::<f64>()?, 0.0);
    let counts = Multinomial::from_logits(3, &logits, -1)?;
    assert_eq!(counts.log_prob(&f64s([3.0, 0.0]))?.item::<f64>()?, 0.0);
    assert_eq!(counts.log_prob(&f64s([2.0, 1.0]))?.item::<f64>()?, -inf);
    let rate = f64s(0.0).requiring_grad()?;
    Poisson::new(&rate)?.log_prob(&f64s(0.0))?.backward()?;
    assert_eq!(rate.grad().unwrap().item::<f64>()?, -1.0);
    let rate = f64s(2.0).requiring_grad()?;
    Gamma::new(f64s(1.5), &rate)?.log_prob(&f64s(0.0))?.backward()?;
    assert_eq!(rate.grad().unwrap().item::<f64>()?, 0.75);
    Ok(())
}

/// The distribution function of the gamma distribution of shape `n` is a sum of Poisson's probabilities.
#[test]
fn gamma_is_poisson() -> Result<()> {
    for n in [1, 5, 60, 300] {
        for x in [0.2, 4.0, 55.0, 310.0] {
            let poisson = Poisson::new(f64s(x))?;
            let below: f64 = (0..n).map(|k| log_prob(&poisson, f64::from(k)).exp()).sum();
            let got = Gamma::new(f64s(f64::from(n)), 1.0)?.cdf(&f64s(x))?.item::<f64>()?;
            assert!((got - (1.0 - below)).abs() < 1e-13, "{n}, {x}: {got}");
        }
    }
    Ok(())
}

/// `1 - I₁(κ) / I₀(κ)`, which cancels for large `κ`, beside mpmath.
#[test]
fn variances_of_concentrated_angles() -> Result<()> {
    let cases = [
        (0.5, 0.757500387419198),
        (50.0, 0.010051032621502247),
        (199.0, 0.002515735287617538),
        (201.0, 0.00249067168573982),
        (10000.0, 5.000125012501954e-05),
        (100000000.0, 5.0000000125e-09),
    ];
    for (k, variance) in cases {
        assert_close(VonMises::new(0.0, f64s(k))?.variance()?.item::<f64>()?, variance, 1e-13);
        let single = VonMises::new(0.0, Tensor::new(k as f32)?)?.variance()?.item::<f64>()?;
        assert_close(single, variance, 1e-6);
    }
    Ok(())
}
