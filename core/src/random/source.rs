//! Draws for which there is no loop: gamma and counts. Each element has its own sequence of random words, which
//! starts at a word of the default generator.

use super::Generator;
use crate::device::{OnDevice, compute};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::NamedTensor;
use rand::Rng;
use std::f64::consts::TAU;

/// The random numbers of one element.
pub struct Source(Generator);

impl Source {
    /// Uniform on the open interval from 0 to 1.
    pub fn uniform(&mut self) -> f64 {
        let step = 1.0 / (1u64 << 53) as f64;
        ((self.0.next_u64() >> 11) as f64 + 0.5) * step
    }

    /// Box, Muller, *A note on the generation of random normal deviates* (1958).
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos()
    }

    /// The logarithm of a draw from the gamma distribution of shape `a` and rate 1. Draws of small shapes are
    /// below the range of `f64`.
    ///
    /// # Source
    /// Marsaglia, Tsang, *A simple method for generating gamma variables* (2000).
    pub fn log_gamma(&mut self, a: f64) -> f64 {
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
    pub fn binomial(&mut self, n: f64, p: f64) -> f64 {
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
    pub fn poisson(&mut self, rate: f64) -> f64 {
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
}

impl Source {
    /// The sources of the elements of a tensor of `shape`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[track_caller]
    pub fn all(shape: &Shape) -> Result<Vec<Source>> {
        let words = NamedTensor::randint(i64::MIN, i64::MAX, shape)?.to_vec::<i64>()?;
        Ok(crate::list(words.into_iter().map(|word| Source(Generator::from_seed(word as u64)))))
    }

    /// A tensor of `shape`, each element drawn from its parameters, which broadcast to it.
    ///
    /// # Errors
    /// Those of `expand` for a parameter that does not broadcast, and those of [`all`](Self::all).
    #[track_caller]
    pub fn draw(
        shape: &Shape,
        parameters: &[&NamedTensor],
        f: fn(&mut Source, &[f64]) -> f64,
    ) -> Result<NamedTensor> {
        let _device = OnDevice::of_inputs("draw", &[parameters])?;
        let mut dtype = parameters[0].dtype();
        let mut spread = Vec::with_capacity(parameters.len());
        for x in parameters {
            dtype = DType::promote(dtype, x.dtype());
            spread.push(x.unnamed().expand(&shape.sizes[..])?);
        }
        let mut drawn = NamedTensor::full_as("draw", shape, Scalar::Float(0.0), DType::F64)?;
        compute(|| {
            let mut columns = Vec::with_capacity(spread.len());
            for x in &spread {
                columns.push(x.to_vec::<f64>()?);
            }
            let (mut row, drawn) = (vec![0.0; columns.len()], drawn.as_mut_slice::<f64>()?);
            for (index, (mut source, drawn)) in Source::all(shape)?.into_iter().zip(drawn).enumerate() {
                for (number, column) in row.iter_mut().zip(&columns) {
                    *number = column[index];
                }
                *drawn = f(&mut source, &row);
            }
            Ok(())
        })?;
        drawn.to(dtype)
    }
}
