//! Draws for which tensors have no op: angles, and gamma with gradients.

use crate::common::*;
use crate::special::each;
use crate::special::incomplete::{log_gamma_slope, von_mises_slope};
use crate::support::columns;
use namegrad_core::random::Source;
use std::f64::consts::PI;

/// An angle of von Mises' distribution around 0.
///
/// # Source
/// Best, Fisher, *Efficient simulation of the von Mises distribution* (1979).
fn angle(source: &mut Source, k: f64) -> f64 {
    if k < 1e-8 {
        return (2.0 * source.uniform() - 1.0) * PI;
    }
    if k.is_nan() || k > 1e12 {
        return source.normal() / k.sqrt();
    }
    // r - 1, where r is (1 + √(1 + 4 k²)) / (2 k); k (r² - 1) is r
    let above = (1.0 + 1.0 / ((1.0 + 4.0 * k * k).sqrt() + 2.0 * k)) / (2.0 * k);
    loop {
        let (sin, cos) = (0.5 * PI * source.uniform()).sin_cos();
        let rest = above + 2.0 * cos * cos; // r + z, where z is the cosine of the whole angle
        let c = (1.0 + above) / rest;
        let u = source.uniform();
        if c * (2.0 - c) > u || (c / u).ln() + 1.0 >= c {
            let sign = if source.uniform() < 0.5 { -1.0 } else { 1.0 };
            return sign * 2.0 * (sin * (above / rest).sqrt()).min(1.0).asin();
        }
    }
}

/// Draws a tensor of `shape`, each element from its parameters, which broadcast to it.
#[track_caller]
pub(crate) fn draw(
    shape: &Shape,
    parameters: &[&Tensor],
    f: fn(&mut Source, &[f64]) -> f64,
) -> Result<Tensor> {
    let parameters: Vec<&NamedTensor> = parameters.iter().map(|x| x.value()).collect();
    Source::draw(shape, &parameters, f).map(Tensor::constant)
}

/// The elements of parameters that are broadcast to `shape`.
#[track_caller]
fn spread(shape: &Shape, parameters: &[&Tensor]) -> Result<Vec<Vec<f64>>> {
    let mut all = Vec::with_capacity(parameters.len());
    for x in parameters {
        let x = x.detach().rename(None).expand(&shape.sizes)?;
        all.append(&mut columns(&[&x])?.0);
    }
    Ok(all)
}

/// Counts of `total` draws over the last dim of `probs`, whose sum is 1, in a tensor of `shape`.
#[track_caller]
pub(crate) fn multinomial(shape: &Shape, probs: &Tensor, total: f64) -> Result<Tensor> {
    let probs_of = spread(shape, &[probs])?.remove(0);
    let classes = *shape.sizes.last().expect("an event dim");
    let mut counts = vec![0.0; probs_of.len()];
    let sources = Source::all(&crate::frame::part(shape, 0..shape.sizes.len() - 1))?;
    for (draw, mut source) in sources.into_iter().enumerate() {
        let (mut left, mut rest) = (total, 1.0);
        let place = draw * classes..(draw + 1) * classes;
        let last = probs_of[place.clone()].iter().rposition(|p| *p > 0.0).unwrap_or(0);
        for (class, (count, p)) in counts[place.clone()].iter_mut().zip(&probs_of[place]).enumerate() {
            *count = if class == last { left } else { source.binomial(left, (p / rest).min(1.0)) };
            left -= *count;
            rest -= p;
        }
    }
    Tensor::constant(NamedTensor::from_slice(&counts, shape)?).to(probs.dtype())
}

/// Logarithms of draws of the gamma distribution with rate 1. Gradients flow to the shape.
#[track_caller]
pub(crate) fn log_gamma(shape: &Shape, concentration: &Tensor) -> Result<Tensor> {
    let wide = concentration.to(DType::F64)?; // small shapes need the range
    let drawn = draw(shape, &[&wide], |source, x| source.log_gamma(x[0]))?.into_value();
    let (a, y) = (Kept::input(&wide), Kept::output(&drawn));
    let op = Op::new("log_gamma_draw", drawn).input_once(&wide, move |g, cx| {
        each(&[&a.get(cx), &y.get(cx).detach()], |x| log_gamma_slope(x[0], x[1]))?.mul(g)
    });
    Ok(op.by_element().output())
}

/// Draws of the gamma distribution with rate 1. Gradients flow to the shape.
#[track_caller]
pub(crate) fn gamma(shape: &Shape, concentration: &Tensor) -> Result<Tensor> {
    // as in PyTorch, never 0
    let tiny = if concentration.dtype() == DType::F64 { f64::MIN_POSITIVE } else { f32::MIN_POSITIVE.into() };
    log_gamma(shape, concentration)?.exp().clamp_min(tiny).to(concentration.dtype())
}

/// Angles of von Mises' distribution around 0. Gradients flow to the concentration.
#[track_caller]
pub(crate) fn von_mises(shape: &Shape, concentration: &Tensor) -> Result<Tensor> {
    let drawn = draw(shape, &[concentration], |source, x| angle(source, x[0]))?.into_value();
    let (k, y) = (Kept::input(concentration), Kept::output(&drawn));
    let op = Op::new("von_mises_draw", drawn).input_once(concentration, move |g, cx| {
        each(&[&k.get(cx), &y.get(cx).detach()], |x| von_mises_slope(x[0], x[1]))?.mul(g)
    });
    Ok(op.by_element().output())
}

/// Uniform numbers in `[0, 1)` in a dtype, away from 0.
#[track_caller]
pub(crate) fn uniform(shape: &Shape, dtype: DType) -> Result<Tensor> {
    let tiny = match dtype {
        DType::F64 => f64::MIN_POSITIVE,
        DType::F16 => 6.1035e-5,
        _ => f32::MIN_POSITIVE.into(),
    };
    TensorOptions::new().dtype(dtype).rand(shape)?.clamp_min(tiny)
}

/// Standard normal numbers in a dtype.
#[track_caller]
pub(crate) fn normal(shape: &Shape, dtype: DType) -> Result<Tensor> {
    TensorOptions::new().dtype(dtype).randn(shape)
}

/// Exponential numbers of rate 1 in a dtype.
#[track_caller]
pub(crate) fn exponential(shape: &Shape, dtype: DType) -> Result<Tensor> {
    let mut drawn = TensorOptions::new().dtype(dtype).zeros(shape)?;
    drawn.exponential_(1.0)?;
    Ok(drawn)
}
