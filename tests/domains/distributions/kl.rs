//! Divergences against their estimates from draws, and their limits.

use super::table::{batch, f64s, kinds, seeded};
use namegrad::autograd::{GradCheckOptions, gradcheck_with};
use namegrad::distributions::{Exponential, *};
use namegrad::prelude::*;

const DRAWS: usize = 3_000;

/// All kinds of the table as `p` and as `q`, whether there is a formula, and if so, whether it is the mean of
/// `log p - log q` of draws.
#[test]
fn divergences_are_means_of_draws() {
    let mut pairs = 0;
    for p in kinds() {
        for q in kinds() {
            let (of_p, of_q) = (p.made(), q.made());
            let Ok(kl) = kl_divergence(&*of_p, &*of_q) else { continue };
            pairs += 1;
            assert!(
                kl.ge(-1e-12).unwrap().all(..).unwrap().item::<bool>().unwrap(),
                "{} {}: {kl}",
                p.name,
                q.name
            );
            assert_eq!(kl.shape().to_string(), "[N=3]", "{} {}", p.name, q.name);
            if p.name == q.name {
                assert!(
                    kl.abs().unwrap().amax(..).unwrap().item::<f64>().unwrap() < 1e-9,
                    "{}: {kl}",
                    p.name
                );
            }
            let finite = kl.isfinite().unwrap();
            if !finite.any(..).unwrap().item::<bool>().unwrap() || p.name.contains("Cauchy") {
                continue;
            }
            let x = seeded(41, || of_p.sample([("draw", DRAWS)])).unwrap();
            let Ok(log_q) = unchecked(|| (q.make)(&q.parameters)).unwrap().log_prob(&x) else { continue };
            let each = of_p.log_prob(&x).unwrap().sub(&log_q).unwrap().to(DType::F64).unwrap();
            let each = finite.choose(&each, 0.0).unwrap();
            let want = finite.choose(&kl, 0.0).unwrap();
            let error =
                each.std("draw").unwrap().mul(6.0 / (DRAWS as f64).sqrt()).unwrap().add(1e-9).unwrap();
            let off = each.mean("draw").unwrap().sub(&want).unwrap().abs().unwrap();
            // a normal variable in an exponent has no mean of its square that draws show
            let is_heavy = q.name == "Gumbel" || q.name == "Weibull";
            let within = off.le(&error).unwrap().all(..).unwrap().item::<bool>().unwrap();
            assert!(
                within || is_heavy,
                "{} {}: {}, expected {kl}",
                p.name,
                q.name,
                each.mean("draw").unwrap()
            );
        }
    }
    assert!(pairs > 100, "{pairs} pairs");
}

#[test]
fn gradients() {
    for p in kinds() {
        for q in kinds() {
            let split = p.parameters.len();
            let both: Vec<Tensor> = p.parameters.iter().chain(&q.parameters).cloned().collect();
            let kl = |given: &[Tensor]| {
                let made = || Ok::<_, Error>(((p.make)(&given[..split])?, (q.make)(&given[split..])?));
                let (p, q) = unchecked(made)?;
                kl_divergence(&*p, &*q)
            };
            let is_counted = [p.name, q.name].iter().any(|name| name.starts_with("Binomial"));
            let Ok(value) = kl(&both) else { continue };
            let is_finite = value.isfinite().unwrap().all(..).unwrap().item::<bool>().unwrap();
            if !is_finite || is_counted || p.name == "Transformed" {
                continue;
            }
            let options = GradCheckOptions { eps: 1e-6, rtol: 1e-4, atol: 1e-5 };
            gradcheck_with(kl, &both, options)
                .unwrap_or_else(|error| panic!("{} {}: {error}", p.name, q.name));
        }
    }
}

/// Infinite where `q` does not cover `p`, over the batch dims of both.
#[test]
fn infinite() -> Result<()> {
    let p = Normal::new(batch([0.0, 1.0, 2.0]), 1.0)?;
    let q = Exponential::new(f64s([[1.0], [2.0]]).refine_names(["M", "N"])?)?;
    let kl = kl_divergence(&p, &q)?;
    assert_eq!(kl.shape().to_string(), "[M=2, N=3]");
    assert!(kl.isposinf()?.all(..)?.item::<bool>()?);
    let inside = Uniform::new(f64s([0.25, -0.5]), f64s([0.75, 0.5]))?;
    let kl = kl_divergence(&inside, &Uniform::new(0.0, f64s(1.0))?)?;
    assert_eq!(kl.to_vec::<f64>()?, [2f64.ln(), f64::INFINITY]);
    let kl = kl_divergence(&Bernoulli::new(f64s([0.0, 0.5]))?, &Bernoulli::new(f64s(0.0))?)?;
    assert_eq!(kl.to_vec::<f64>()?, [0.0, f64::INFINITY]);
    Ok(())
}

#[test]
fn without_a_formula() -> Result<()> {
    let (p, q) = (StudentT::new(3.0, 0.0, 1.0)?, Normal::new(0.0, 1.0)?);
    let error = kl_divergence(&p, &q).unwrap_err();
    assert_eq!((error.kind(), error.location().line()), (ErrorKind::Unsupported, line!() - 1));
    assert!(error.message().contains("no formula for StudentT and Normal"), "{error}");
    let (p, q) =
        (Normal::new(Tensor::zeros([("N", 2)])?, 1.0)?, Normal::new(Tensor::zeros([("M", 2)])?, 1.0)?);
    let error = kl_divergence(&p, &q).unwrap_err();
    assert_eq!((error.kind(), error.location().line()), (ErrorKind::NameMismatch, line!() - 1));
    assert!(
        error.message().contains("Normal (batch [N=2], event []) from Normal (batch [M=2], event [])"),
        "{error}"
    );
    let gaussian = |n: usize| MultivariateNormal::new(Tensor::zeros([n])?, Tensor::eye(n, n)?, [-2, -1]);
    assert_eq!(kl_divergence(&gaussian(2)?, &gaussian(3)?).unwrap_err().kind(), ErrorKind::Shape);
    let exp = || -> Result<Transformed> {
        Transformed::new(Normal::new(0.0, 1.0)?, [Box::new(ExpTransform) as Box<dyn Transform>])
    };
    let tanh = Transformed::new(Normal::new(0.0, 1.0)?, [Box::new(TanhTransform) as Box<dyn Transform>])?;
    assert_eq!(kl_divergence(&exp()?, &exp()?)?.item::<f64>()?, 0.0);
    assert_eq!(kl_divergence(&exp()?, &tanh).unwrap_err().kind(), ErrorKind::Unsupported);
    Ok(())
}

/// A distribution of a program brings its own divergence.
#[test]
fn a_divergence_of_your_own() -> Result<()> {
    #[derive(Debug)]
    struct Point(Frame);
    impl Distribution for Point {
        fn frame(&self) -> &Frame {
            &self.0
        }
        fn support(&self) -> Support {
            Support::Real
        }
        fn log_density(&self, x: &Tensor) -> Result<Tensor> {
            x.eq(0.0)?.to(DType::F32)?.log()
        }
        fn draw(&self, shape: &namegrad::core::Shape) -> Result<Tensor> {
            Tensor::zeros(shape)
        }
        fn kl(&self, q: &dyn Distribution) -> Option<Result<Tensor>> {
            Some(q.log_prob(&Tensor::zeros(()).ok()?).neg())
        }
    }
    let point = Point(Frame::of("Point", &Tensor::zeros(())?));
    let kl = kl_divergence(&point, &Bernoulli::new(0.25)?)?;
    assert!((kl.item::<f64>()? + 0.75f64.ln()).abs() < 1e-6);
    Ok(())
}

/// Divergences of neighbors among large parameters, where the terms of the formula are 1e16 times as large.
/// References: `(q - p)² / 2p` and its kin, of which the next terms are known.
#[test]
fn neighbors_of_large_parameters() -> Result<()> {
    let close = |got: Tensor, want: f64| {
        let got = got.item::<f64>().unwrap();
        assert!((got - want).abs() < 1e-6 * want, "{got}, expected {want}");
    };
    for (large, step) in [(1e10, 1e4), (1e15, 1e7)] {
        let (p, q) = (f64s(large), f64s(large + step));
        let square = step * step / (2.0 * large);
        close(
            kl_divergence(&Poisson::new(&p)?, &Poisson::new(&q)?)?,
            square * (1.0 - 2.0 / 3.0 * step / large),
        );
        let of = |a: &Tensor| Gamma::new(a, 1.0);
        close(kl_divergence(&of(&p)?, &of(&q)?)?, square * (1.0 - step / (3.0 * large)));
        let of = |rate: &Tensor| Gamma::new(f64s(large), rate);
        let relative = step / large;
        close(
            kl_divergence(&of(&p)?, &of(&q)?)?,
            large * relative.powi(2) / 2.0 * (1.0 - 2.0 / 3.0 * relative),
        );
        // α moves, and β does not: half of it is a change of the mean
        let of = |a: &Tensor| Beta::new(a, f64s(large));
        close(kl_divergence(&of(&p)?, &of(&q)?)?, square / 2.0 * (1.0 - 0.5 * relative));
        let of = |a: &Tensor| Dirichlet::new(Tensor::stack(&[a, &p], 0)?, 0);
        close(kl_divergence(&of(&p)?, &of(&q)?)?, square / 2.0 * (1.0 - 0.5 * relative));
        assert_eq!(kl_divergence(&of(&p)?, &of(&p)?)?.item::<f64>()?, 0.0);
    }
    Ok(())
}

/// Event dims are found by name, wherever they are in the batch of the other distribution.
#[test]
fn independent_dims_by_name() -> Result<()> {
    let (loc, scale) = seeded(5, || -> Result<_> {
        Ok((Tensor::randn([("z", 3), ("N", 2)])?, Tensor::rand([("z", 3), ("N", 2)])?.add(0.5)?))
    })?;
    let q = Independent::new(Normal::new(&loc, &scale)?, "z")?;
    let prior = Independent::new(Normal::new(Tensor::zeros([("z", 3)])?, 1.0)?, "z")?;
    let want = kl_divergence(&Normal::new(&loc, &scale)?, &Normal::new(0.0, 1.0)?)?.sum("z")?;
    let kl = kl_divergence(&q, &prior)?;
    assert_eq!(kl.shape().to_string(), "[N=2]");
    assert!(kl.allclose(&want)?);
    let other = Independent::new(Normal::new(loc.mt()?, scale.mt()?)?, "z")?;
    assert!(kl_divergence(&q, &other)?.abs()?.le(1e-6)?.all(..)?.item::<bool>()?);
    let both = |names: [&str; 2]| Independent::new(Normal::new(&loc, &scale)?, names);
    assert!(kl_divergence(&both(["z", "N"])?, &both(["N", "z"])?)?.item::<f64>()?.abs() < 1e-6);
    let error = kl_divergence(&q, &Independent::new(Normal::new(&loc, &scale)?, "N")?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    Ok(())
}
