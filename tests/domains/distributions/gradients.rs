//! Gradients of densities, moments and draws.

use super::table::{batch, kinds, seeded};
use namegrad::autograd::functional::{hessian, jvp, vjp};
use namegrad::autograd::{GradCheckOptions, gradcheck_with, gradgradcheck_with};
use namegrad::distributions::*;
use namegrad::prelude::*;

/// Densities by finite differences of the parameters, to second order.
#[test]
fn densities() {
    for kind in kinds() {
        let x = seeded(11, || kind.made().sample([("draw", 2)])).unwrap();
        let log = |p: &[Tensor]| unchecked(|| (kind.make)(p))?.log_prob(&x);
        let options = || GradCheckOptions { eps: 1e-5, rtol: 1e-4, atol: 1e-5 };
        gradcheck_with(log, &kind.parameters, options())
            .unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        let second = gradgradcheck_with(log, &kind.parameters, options());
        second.unwrap_or_else(|error| panic!("{}: {error}", kind.name));
    }
}

/// Densities by finite differences of the value.
#[test]
fn values() {
    for kind in kinds() {
        let of = kind.made();
        let is_on_a_surface = matches!(of.support(), Support::Simplex | Support::PositiveDefinite);
        if !of.has_rsample() || is_on_a_surface || kind.name == "Uniform" {
            continue;
        }
        let x = seeded(12, || of.sample([("draw", 2)])).unwrap();
        let options = GradCheckOptions { eps: 1e-6, rtol: 1e-4, atol: 1e-5 };
        gradcheck_with(|x| of.log_prob(&x[0]), &[x], options)
            .unwrap_or_else(|error| panic!("{}: {error}", kind.name));
    }
}

/// Moments, entropies and quantiles by finite differences of the parameters.
#[test]
fn moments() {
    for kind in kinds() {
        type Of = fn(&dyn Distribution, &Tensor) -> Result<Tensor>;
        let of: [(&str, Of); 5] = [
            ("mean", |of, _| of.mean()),
            ("variance", |of, _| of.variance()),
            ("entropy", |of, _| of.entropy()),
            ("cdf", |of, x| of.cdf(x)),
            ("icdf", |of, _| of.icdf(&Tensor::new([0.3])?.to(DType::F64)?)),
        ];
        let x = seeded(13, || kind.made().sample(())).unwrap();
        for (what, f) in of {
            let made = |p: &[Tensor]| f(&*unchecked(|| (kind.make)(p))?, &x);
            let has_gradient =
                made(&kind.parameters).is_ok_and(|x| x.isfinite().unwrap().all(..).unwrap().item().unwrap());
            let is_counted = what == "entropy" && ["Binomial", "Binomial of logits"].contains(&kind.name);
            if !has_gradient || is_counted {
                continue;
            }
            let options = GradCheckOptions { eps: 1e-5, rtol: 1e-4, atol: 1e-5 };
            gradcheck_with(made, &kind.parameters, options)
                .unwrap_or_else(|error| panic!("{} of {}: {error}", what, kind.name));
        }
    }
}

/// The gradient of the mean square of draws is that of `variance + mean²`, within 5 standard deviations.
#[test]
fn draws() {
    const BLOCKS: u64 = 16;
    for kind in kinds() {
        let of = kind.made();
        let is_wild = ["Cauchy", "HalfCauchy", "VonMises"].contains(&kind.name);
        if !of.has_rsample() || is_wild || of.mean().is_err() {
            continue;
        }
        let leaves = || -> Vec<Tensor> {
            kind.parameters.iter().map(|p| p.detach().requiring_grad().unwrap()).collect()
        };
        let gradients = |f: &dyn Fn(&dyn Distribution) -> Result<Tensor>| -> Vec<Tensor> {
            let p = leaves();
            f(&*(kind.make)(&p).unwrap()).unwrap().sum(..).unwrap().backward().unwrap();
            p.iter().map(|p| p.grad().unwrap_or_else(|| p.zeros_like().unwrap())).collect()
        };
        let want = gradients(&|of| of.variance()?.add(of.mean()?.square()?));
        let block = |seed| {
            let loss = |of: &dyn Distribution| of.rsample([("draw", 500)])?.square()?.mean("draw");
            seeded(seed, || gradients(&loss))
        };
        let blocks: Vec<Vec<Tensor>> = (0..BLOCKS).map(block).collect();
        for (number, want) in want.iter().enumerate() {
            let all: Vec<&Tensor> = blocks.iter().map(|block| &block[number]).collect();
            let all = Tensor::stack(&all, 0).unwrap();
            let error =
                all.std(0).unwrap().div((BLOCKS as f64).sqrt()).unwrap().mul(6.0).unwrap().add(1e-9).unwrap();
            let off = all.mean(0).unwrap().sub(want).unwrap().abs().unwrap();
            assert!(
                off.le(&error).unwrap().all(..).unwrap().item::<bool>().unwrap(),
                "{} {number}: {} within {error}, expected {want}",
                kind.name,
                all.mean(0).unwrap()
            );
        }
    }
}

/// The gradient of a gamma draw by its shape is `-∂P/∂a / p`, by differences of the distribution
/// function.
#[test]
fn gamma_draws_keep_their_rank() -> Result<()> {
    let h = 1e-4;
    for shape in [0.05, 0.7, 3.0, 40.0, 150.0, 3000.0] {
        let a = batch([shape; 3]).requiring_grad()?;
        let x = seeded(2, || Gamma::new(&a, 1.0)?.rsample([("draw", 20)]))?;
        x.sum(..)?.backward()?;
        let x = x.detach();
        let cdf = |step: f64| Gamma::new(a.detach().mul(1.0 + step)?, 1.0)?.cdf(&x);
        let step = a.detach().mul(2.0 * h)?;
        // Near 1 the differences cancel, and far out in the tails
        let rank = Gamma::new(a.detach(), 1.0)?.cdf(&x)?;
        let slope =
            cdf(h)?.sub(cdf(-h)?)?.div(step)?.neg().div(Gamma::new(a.detach(), 1.0)?.log_prob(&x)?.exp()?)?;
        let near = rank.gt(1e-3)?.logical_and(rank.lt(0.999)?)?.all(..)?.item::<bool>()?;
        let (got, want) = (a.grad().unwrap(), slope.sum("draw")?);
        let close = got.allclose_with(&want, IscloseOptions::new().rtol(1e-4))?;
        assert!(close || !near, "{shape}: {got}, expected {want}");
    }
    Ok(())
}

/// The gradient of an angle by the concentration is `-∂F/∂κ / p`, by differences of an integral of the
/// density.
#[test]
fn angles_keep_their_rank() -> Result<()> {
    let options = TensorOptions::new().dtype(DType::F64);
    for concentration in [0.05, 1.0, 9.0, 400.0] {
        let k = options.full((), concentration)?.requiring_grad()?;
        for seed in 0..10 {
            k.zero_grad();
            let x = seeded(seed, || VonMises::new(0.0, &k)?.rsample(()))?;
            x.backward()?;
            let x = x.item::<f64>()?;
            let cdf = |k: f64| -> Result<f64> {
                let grid = options.linspace(0.0, x, 4001)?; // Simpson's rule
                let density =
                    VonMises::new(0.0, options.full((), k)?)?.log_prob(&grid)?.exp()?.to_vec::<f64>()?;
                let weight = |i: usize| if i == 0 || i == 4000 { 1.0 } else { 2.0 + 2.0 * (i % 2) as f64 };
                Ok(density.iter().enumerate().map(|(i, p)| weight(i) * p).sum::<f64>() * x / 12000.0)
            };
            let h = 1e-4 * concentration;
            let density =
                VonMises::new(0.0, k.detach())?.log_prob(&options.full((), x)?)?.exp()?.item::<f64>()?;
            let want = (cdf(concentration - h)? - cdf(concentration + h)?) / (2.0 * h) / density;
            let got = k.grad().unwrap().item::<f64>()?;
            assert!(
                (got - want).abs() < 1e-4 * want.abs() + 1e-7,
                "{concentration}, {x}: {got}, expected {want}"
            );
        }
    }
    Ok(())
}

/// A class of probability 0 has the gradient of the sum that probabilities are divided by.
#[test]
fn multinomial_of_a_class_without_probability() -> Result<()> {
    let probs = Tensor::new([0.0, 1.0, 0.5])?.requiring_grad()?;
    let log = Multinomial::new(3, &probs, 0)?.log_prob(&Tensor::new([0.0, 1.0, 2.0])?)?;
    log.backward()?;
    assert!(probs.grad().unwrap().allclose(&Tensor::new([-2.0, -1.0, 2.0])?)?); // as PyTorch's
    Ok(())
}

/// Forward mode over a backward pass that frees its graph, with a factor whose derivative keeps it.
#[test]
fn hessians_by_matrices() -> Result<()> {
    let options = TensorOptions::new().dtype(DType::F64);
    let zeros = options.zeros([2])?;
    let v = Tensor::new([0.5, 0.3])?.to(DType::F64)?;
    let covariance = Tensor::new([[2.0, 0.5], [0.5, 1.0]])?.to(DType::F64)?;
    let log = |c: &Tensor| MultivariateNormal::new(&zeros, c, [-2, -1])?.log_prob(&v);
    let h = hessian(log, &covariance)?.to_vec::<f64>()?;
    let along = |step: f64| -> Result<Vec<f64>> {
        let moved = covariance.add(options.ones([2, 2])?.mul(step)?)?;
        vjp(|c| log(&c[0]), &[&moved], None)?.1[0].to_vec::<f64>()
    };
    for (row, (a, b)) in along(1e-5)?.into_iter().zip(along(-1e-5)?).enumerate() {
        let (got, want) = (h[4 * row..4 * row + 4].iter().sum::<f64>(), (a - b) / 2e-5);
        assert!((got - want).abs() < 1e-7, "{row}: {got}, expected {want}");
    }
    Ok(())
}

/// Tangents of draws are their gradients, since each draw depends on its own parameter.
#[test]
fn tangents_of_draws() -> Result<()> {
    let a = Tensor::new([0.5, 3.0])?.to(DType::F64)?;
    let one = a.ones_like()?;
    type Draws<'a> = [&'a dyn Fn(&[Tensor]) -> Result<Tensor>; 3];
    let draws: Draws<'_> = [
        &|a| seeded(3, || Gamma::new(&a[0], 2.0)?.rsample([("draw", 2)])),
        &|a| seeded(3, || Beta::new(&a[0], 2.0)?.rsample([("draw", 2)])),
        &|a| seeded(3, || VonMises::new(0.0, &a[0])?.rsample([("draw", 2)])),
    ];
    for (number, draw) in draws.into_iter().enumerate() {
        let along = jvp(draw, &[&a], &[&one])?.1.sum(0)?;
        let gradient = vjp(|a| draw(a)?.sum(..), &[&a], None)?.1.remove(0);
        assert!(along.rename(None)?.allclose(&gradient.rename(None)?)?, "{number}: {along:?}, {gradient:?}");
    }
    Ok(())
}
