//! Draws for which tensors have no op: gamma, counts, angles. Each element has its own sequence of random
//! words, which starts at a word of the library's generator.

use crate::common::*;
use crate::special::each;
use crate::special::incomplete::{log_gamma_slope, von_mises_slope};
use crate::support::columns;
use rand::Rng;
use std::f64::consts::{PI, TAU};

/// The random numbers of one element.
pub(crate) struct Source(Generator);

impl Source {
    /// Uniform on the open interval from 0 to 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        let step = 1.0 / (1u64 << 53) as f64;
        ((self.0.next_u64() >> 11) as f64 + 0.5) * step
    }

    /// Box, Muller, *A note on the generation of random normal deviates* (1958).
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos()
    }

    /// The logarithm of a draw from the gamma distribution of shape `a` and rate 1. Draws of small shapes are
    /// below the range of `f64`.
    ///
    /// # Source
    /// Marsaglia, Tsang, *A simple method for generating gamma variables* (2000).
    pub(crate) fn log_gamma(&mut self, a: f64) -> f64 {
        if !a.is_finite() || a <= 0.0 {
            return a.ln(); // only without checks
        }
        if a < 1.0 {
            return self.log_gamma(a + 1.0) + self.uniform().ln() / a;
        }
        let d = a - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.uniform().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d.ln() + v.ln();
            }
        }
    }

    /// The number of `n` trials that succeed with probability `p`: of many trials, the middle one in the
    /// order of their uniform numbers is drawn first.
    ///
    /// # Source
    /// Ahrens, Dieter, *Computer methods for sampling from gamma, beta, Poisson and binomial distributions*
    /// (1974).
    pub(crate) fn binomial(&mut self, n: f64, p: f64) -> f64 {
        let (mut n, mut p, mut count) = (n, p, 0.0);
        while n > 20.0 && p > 0.0 && p < 1.0 {
            let middle = (0.5 * n).floor() + 1.0;
            let (a, b) = (self.log_gamma(middle), self.log_gamma(n + 1.0 - middle));
            let y = 1.0 / (1.0 + (b - a).exp());
            if y <= p {
                (count, n, p) = (count + middle, n - middle, (p - y) / (1.0 - y));
            } else {
                (n, p) = (middle - 1.0, p / y);
            }
        }
        if p <= 0.0 || p >= 1.0 {
            return if p >= 1.0 { count + n } else { count };
        }
        count + (0..n as usize).filter(|_| self.uniform() < p).count() as f64
    }

    /// A draw of Poisson's distribution: of many arrivals, the time of a late one is drawn first.
    ///
    /// # Source
    /// As [`binomial`](Self::binomial).
    pub(crate) fn poisson(&mut self, rate: f64) -> f64 {
        let (mut rate, mut count) = (rate, 0.0);
        while rate > 20.0 {
            let late = (rate * 7.0 / 8.0).floor();
            let time = self.log_gamma(late).exp();
            if time > rate {
                return count + self.binomial(late - 1.0, rate / time);
            }
            (count, rate) = (count + late, rate - time);
        }
        let (end, mut product) = ((-rate).exp(), self.uniform());
        while product > end {
            count += 1.0;
            product *= self.uniform();
        }
        count
    }

    /// An angle of von Mises' distribution around 0.
    ///
    /// # Source
    /// Best, Fisher, *Efficient simulation of the von Mises distribution* (1979).
    pub(crate) fn von_mises(&mut self, k: f64) -> f64 {
        if k > 1e12 {
            return self.normal() / k.sqrt();
        }
        if k < 1e-8 {
            return (2.0 * self.uniform() - 1.0) * PI;
        }
        let tau = 1.0 + (1.0 + 4.0 * k * k).sqrt();
        // (τ - √(2 τ)) / (2 k), and (1 + ρ²) / (2 ρ)
        let rho = (tau - (2.0 * tau).sqrt()) / (2.0 * k);
        let r = (1.0 + rho * rho) / (2.0 * rho);
        loop {
            let z = (PI * self.uniform()).cos();
            let f = (1.0 + r * z) / (r + z);
            let c = k * (r - f);
            let u = self.uniform();
            if c * (2.0 - c) > u || (c / u).ln() + 1.0 >= c {
                let sign = if self.uniform() < 0.5 { -1.0 } else { 1.0 };
                return sign * f.clamp(-1.0, 1.0).acos();
            }
        }
    }
}

/// The sources of the elements of a tensor of `shape`.
#[track_caller]
fn sources(shape: &Shape) -> Result<Vec<i64>> {
    Tensor::randint(i64::MIN, i64::MAX, shape)?.to_vec::<i64>()
}

/// Draws a tensor of `shape`, each element from its parameters, which broadcast to it.
#[track_caller]
pub(crate) fn draw(
    shape: &Shape,
    parameters: &[&Tensor],
    f: fn(&mut Source, &[f64]) -> f64,
) -> Result<Tensor> {
    let dtype = parameters.iter().map(|x| x.dtype()).fold(parameters[0].dtype(), DType::promote);
    let (columns, words) = (spread(shape, parameters)?, sources(shape)?);
    let mut row = vec![0.0; columns.len()];
    let mut drawn = Vec::with_capacity(words.len());
    for (index, word) in words.into_iter().enumerate() {
        for (number, column) in row.iter_mut().zip(&columns) {
            *number = column[index];
        }
        drawn.push(f(&mut Source(Generator::from_seed(word as u64)), &row));
    }
    Tensor::constant(NamedTensor::from_slice(&drawn, shape)?).to(dtype)
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
    let words = sources(&crate::frame::part(shape, 0..shape.sizes.len() - 1))?;
    for (draw, word) in words.into_iter().enumerate() {
        let mut source = Source(Generator::from_seed(word as u64));
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
    Ok(op.output())
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
    let drawn = draw(shape, &[concentration], |source, x| source.von_mises(x[0]))?.into_value();
    let (k, y) = (Kept::input(concentration), Kept::output(&drawn));
    let op = Op::new("von_mises_draw", drawn).input_once(concentration, move |g, cx| {
        each(&[&k.get(cx), &y.get(cx).detach()], |x| von_mises_slope(x[0], x[1]))?.mul(g)
    });
    Ok(op.output())
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
