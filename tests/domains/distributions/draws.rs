//! Draws: their moments, and that they follow the density. All are seeded.

use super::table::{Kind, kinds, seeded};
use namegrad::distributions::*;
use namegrad::prelude::*;

const DRAWS: usize = 8_000;

/// Kinds without a variance.
const WILD: [&str; 2] = ["Cauchy", "HalfCauchy"];

fn drawn(kind: &Kind) -> Tensor {
    let x = seeded(17, || kind.made().sample([("draw", DRAWS)]));
    let x = x.unwrap_or_else(|error| panic!("{}: {error}", kind.name));
    x.to(DType::F64).unwrap()
}

/// Whether the mean over the draws is as far from `want` as 5 of its standard deviations, in any element.
fn assert_mean(what: &str, x: &Tensor, want: &Tensor) {
    let mean = x.mean("draw").unwrap();
    let error =
        x.std("draw").unwrap().div((DRAWS as f64).sqrt()).unwrap().mul(5.0).unwrap().add(1e-12).unwrap();
    let off = mean.sub(want).unwrap().abs().unwrap();
    assert!(
        off.le(&error).unwrap().all(..).unwrap().item::<bool>().unwrap(),
        "{what}: {mean}, expected {want}"
    );
}

#[test]
fn moments() {
    for kind in kinds() {
        let of = kind.made();
        let (Ok(mean), Ok(variance)) = (of.mean(), of.variance()) else { continue };
        if WILD.contains(&kind.name) || kind.name == "Categorical" {
            continue;
        }
        let x = drawn(&kind);
        if kind.name == "VonMises" {
            // the variance is circular: 1 - E[cos(x - loc)]
            let cos = x.sub(&mean).unwrap().cos().unwrap();
            assert_mean(kind.name, &cos.neg().unwrap().add(1.0).unwrap(), &variance);
            continue;
        }
        assert_mean(kind.name, &x, &mean);
        assert_mean(kind.name, &x.sub(&mean).unwrap().square().unwrap(), &variance);
        assert!(of.stddev().unwrap().square().unwrap().allclose(&variance).unwrap(), "{}", kind.name);
    }
}

/// The mean of `-log p` of draws is the entropy.
#[test]
fn entropies() {
    for kind in kinds() {
        let of = kind.made();
        let Ok(entropy) = of.entropy() else { continue };
        let log = of.log_prob(&drawn(&kind)).unwrap();
        assert_mean(kind.name, &log.neg().unwrap(), &entropy);
        assert!(of.perplexity().unwrap().log().unwrap().allclose(&entropy).unwrap(), "{}", kind.name);
    }
}

/// The largest distance of the share of draws below a value from `cdf`, times `√n`: above 1.95 in one of a
/// thousand draws from the right distribution.
#[test]
fn draws_follow_the_cdf() {
    for kind in kinds() {
        let of = kind.made();
        let x = drawn(&kind);
        let Ok(cdf) = of.cdf(&x) else { continue };
        let ranks = cdf.sort("draw").unwrap().values;
        let steps =
            TensorOptions::new().dtype(DType::F64).names(["draw"]).arange(0, DRAWS as i64, 1).unwrap();
        let even = steps.add(0.5).unwrap().div(DRAWS as f64).unwrap().align_as(&ranks).unwrap();
        let distance = ranks.sub(&even).unwrap().abs().unwrap().amax(..).unwrap().item::<f64>().unwrap();
        assert!(distance * (DRAWS as f64).sqrt() < 1.95, "{}: {distance}", kind.name);
    }
}

/// `icdf` is the inverse of `cdf`.
#[test]
fn quantiles() {
    let p =
        Tensor::new([0.001, 0.2, 0.5, 0.7, 0.999]).unwrap().to(DType::F64).unwrap().rename(["draw"]).unwrap();
    for kind in kinds() {
        let of = kind.made();
        let p = p.align_to(["draw", "N"]).unwrap();
        let Ok(x) = of.icdf(&p) else { continue };
        let back = of.cdf(&x).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        let close = IscloseOptions::new().rtol(1e-9);
        assert!(back.allclose_with(p.expand_as(&back).unwrap(), close).unwrap(), "{}: {back}", kind.name);
    }
}

/// The probabilities of all values add up to 1, and the densities over a fine grid.
#[test]
fn densities_add_up() {
    for kind in kinds() {
        let of = kind.made();
        let probability = match of.enumerate_support(Some("value")) {
            Ok(values) => of.log_prob(&values).unwrap().exp().unwrap().sum("value").unwrap(),
            Err(_) if of.event_shape().sizes.is_empty() && of.icdf(&Tensor::new(0.5).unwrap()).is_ok() => {
                // the midpoints of even ranks: the mean of p(x) / p(x) is no test, that of the width is
                let count = 4001;
                let p = TensorOptions::new().dtype(DType::F64).linspace(1e-4, 1.0 - 1e-4, count).unwrap();
                let x = of.icdf(&p.rename(["draw"]).unwrap().align_to(["draw", "N"]).unwrap()).unwrap();
                let density = of.log_prob(&x).unwrap().exp().unwrap();
                let width = x.diff("draw").unwrap();
                let ends = (density.narrow("draw", 0, count - 1), density.narrow("draw", 1, count - 1));
                ends.0
                    .unwrap()
                    .add(ends.1.unwrap())
                    .unwrap()
                    .mul(0.5)
                    .unwrap()
                    .mul(width)
                    .unwrap()
                    .sum("draw")
                    .unwrap()
            }
            Err(_) => continue,
        };
        let off = probability.sub(1.0).unwrap().abs().unwrap().amax(..).unwrap().item::<f64>().unwrap();
        assert!(off < 2e-3, "{}: {probability}", kind.name);
    }
}

/// Categorical draws have the shares of their probabilities.
#[test]
fn shares_of_classes() -> Result<()> {
    let probs = Tensor::new([[0.2, 0.0, 0.8], [0.5, 0.25, 0.25]])?.rename(["N", "class"])?;
    let classes = seeded(3, || Categorical::new(&probs, "class")?.sample([("draw", DRAWS)]))?;
    let shares = classes.one_hot_with(OneHotOptions::new().num_classes(3))?.to(DType::F32)?.mean("draw")?;
    assert!(shares.sub(probs.rename(None)?)?.abs()?.amax(..)?.item::<f64>()? < 0.02, "{shares:?}");
    assert_eq!(shares.to_vec::<f32>()?[1], 0.0);
    Ok(())
}

/// Large counts are drawn without counting them.
#[test]
fn large_counts() -> Result<()> {
    let options = TensorOptions::new().dtype(DType::F64);
    let rate = options.full((), 1e12)?;
    let of: [Box<dyn Distribution>; 3] = [
        Box::new(Poisson::new(&rate)?),
        Box::new(Binomial::new(&rate, 0.25)?),
        Box::new(NegativeBinomial::new(&rate, 0.5)?),
    ];
    for of in of {
        let z = seeded(5, || of.sample([("draw", 2000)]))?.sub(of.mean()?)?.div(of.stddev()?)?;
        assert!(z.mean("draw")?.item::<f64>()?.abs() < 0.1, "{of:?}");
        assert!((z.std("draw")?.item::<f64>()? - 1.0).abs() < 0.1, "{of:?}");
    }
    let counts = Multinomial::new(1_000_000_000, Tensor::new([0.5, 0.5])?, -1)?.sample(())?;
    assert_eq!(counts.to(DType::F64)?.sum(..)?.item::<f64>()?, 1e9);
    Ok(())
}

#[test]
fn a_seed_fixes_draws() {
    for kind in kinds() {
        let of = kind.made();
        let twice = [1, 1, 2].map(|seed| seeded(seed, || of.sample([("draw", 5)])).unwrap());
        assert!(twice[0].equal(&twice[1]).unwrap(), "{}", kind.name);
        assert!(!twice[0].equal(&twice[2]).unwrap(), "{}", kind.name);
        if let Ok(drawn) = seeded(1, || of.rsample([("draw", 5)])) {
            assert!(drawn.equal(&twice[0]).unwrap(), "{}", kind.name);
        }
        // no draws, and one
        assert_eq!(of.sample([("draw", 0)]).unwrap().numel(), 0, "{}", kind.name);
        assert_eq!(of.sample(()).unwrap().sizes(), &twice[0].sizes()[1..], "{}", kind.name);
    }
}

/// Angles of every concentration, whose gradients are those of a normal variable where it is large, and
/// those of `p(t) = (1 + κ cos t) / 2π` where it is small.
#[test]
fn angles_of_extreme_concentrations() -> Result<()> {
    let k = Tensor::from_slice(&[1e-300, 1e-8, 1e-7, 1e-5, 0.1, 1e7, 1e11, 1e13], [8])?.requiring_grad()?;
    let of = VonMises::new(0.0, &k)?;
    let x = seeded(0, || of.rsample([500]))?;
    assert!(x.abs()?.le(std::f64::consts::PI)?.all(..)?.item::<bool>()?);
    let squares = x.detach().square().mean(0)?.to_vec::<f64>()?;
    for (square, k) in squares.iter().zip(k.to_vec::<f64>()?) {
        let variance = if k < 1.0 { std::f64::consts::PI.powi(2) / 3.0 } else { 1.0 / k };
        assert!((square / variance - 1.0).abs() < 0.25, "{k}: {square}, expected {variance}");
    }
    x.select(0, 0)?.sum(..)?.backward()?;
    let (x, slopes) = (x.detach().select(0, 0)?.to_vec::<f64>()?, k.grad().unwrap().to_vec::<f64>()?);
    for ((x, slope), k) in x.iter().zip(slopes).zip(k.to_vec::<f64>()?) {
        let (want, relative) = match k {
            k if k > 1.0 => (-0.5 * x / k, 100.0 / k + 1e-12),
            k => (-x.sin(), k + 1e-12),
        };
        // large concentrations: the angle was rounded as it was moved around the circle
        let rounding = 1e-15 / k.max(1.0);
        assert!((slope - want).abs() <= relative * want.abs() + rounding, "{k}: {slope}, expected {want}");
    }
    Ok(())
}

/// Draws of shares are in the support in every dtype, and have a density.
#[test]
fn shares_in_their_support() -> Result<()> {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let options = TensorOptions::new().dtype(dtype);
        let of = Dirichlet::new(options.ones([50])?, -1)?;
        let x = seeded(1, || of.sample([200]))?;
        assert!(of.log_prob(&x)?.isfinite()?.all(..)?.item::<bool>()?, "{dtype}");
        let probs = Tensor::new([0.2, 0.8])?.to(dtype)?;
        let of = RelaxedOneHotCategorical::new(1e-3, probs, -1)?;
        let x = seeded(1, || of.sample([200]))?;
        assert!(of.log_prob(&x)?.isfinite()?.all(..)?.item::<bool>()?, "{dtype}");
    }
    let normal = Normal::new(Tensor::zeros([50])?, 1.0)?;
    let sticks: Box<dyn Transform> = Box::new(StickBreakingTransform::new(-1));
    let of = Transformed::new(normal, [sticks])?;
    let x = seeded(1, || of.sample([200]))?;
    assert_eq!(of.log_prob(&x)?.sizes(), [200]);
    Ok(())
}
