//! Muon, momentum whose direction is an orthogonal matrix.

use crate::descent::Pass;
use crate::direction::Direction;
use crate::hyperparameters::{Formula, optimizer};
use crate::method::{Checks, Turn, update_tensors};
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::Update;
use namegrad_core::options::AddmmOptions;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result, Shape};
use serde::{Deserialize, Serialize};

optimizer! {
    /// Muon: the momentum of a matrix is made orthogonal, so that all its directions take steps of one
    /// length. It is for the weights of hidden layers, which are matrices; step biases, embeddings and the
    /// like with another optimizer, such as [`AdamW`](crate::AdamW).
    ///
    /// `g` is the gradient of a parameter of `A` by `B`, and `NS` makes a matrix orthogonal by `ns_steps` of
    /// the iteration below:
    ///
    /// ```text
    /// b      = momentum · b + (1 - momentum) · g
    /// u      = NS(b)                         or, with nesterov,  NS((1 - momentum) · g + momentum · b)
    /// param  = param · (1 - lr · weight_decay) - lr · scale · u
    /// ```
    ///
    /// ```text
    /// X = X / max(‖X‖, eps)
    /// X = c₀ · X + (c₁ · X Xᵀ + c₂ · (X Xᵀ)²) X        with c = ns_coefficients
    /// ```
    ///
    /// The scale is that of [`AdjustLr`]. The iteration runs in `bf16`, as PyTorch's does.
    ///
    /// # Source
    /// Jordan et al., *Muon: An optimizer for hidden layers in neural networks* (2024,
    /// kellerjordan.github.io), and Liu et al., *Muon is Scalable for LLM Training* (arXiv:2502.16982), in
    /// the form of `torch.optim.Muon`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{AdamW, Muon, Optimizer};
    /// let layer = Linear::new(("in", 3), ("out", 2))?;
    /// let (matrices, others) = layer.parameters().into_iter().partition::<Vec<_>, _>(|p| p.ndim() == 2);
    /// let mut muon = Muon::builder(matrices).lr(0.02).build()?;
    /// let mut adamw = AdamW::builder(others).lr(1e-3).build()?;
    /// layer.forward(&Tensor::ones([("in", 3)])?)?.sum(..)?.backward()?;
    /// muon.step()?;
    /// adamw.step()?;
    /// # Ok::<(), Error>(())
    /// ```
    Muon(momentum)
    MuonOptions {
        /// The learning rate, per step.
        lr: f64 = 1e-3,
        /// How much the parameter shrinks in each step, times `lr`.
        weight_decay: f64 = 0.1,
        /// How much of the momentum buffer is kept from step to step.
        momentum: f64 = 0.95,
        /// Whether to use Nesterov's form, which looks ahead along the momentum.
        nesterov: bool = true,
        /// The coefficients of the iteration.
        ns_coefficients: (f64, f64, f64) = (3.4445, -4.775, 2.0315),
        /// The smallest norm that a matrix is divided by.
        eps: f64 = 1e-7,
        /// The number of iterations, less than 100.
        ns_steps: usize = 5,
        /// How the sizes of a parameter change its learning rate. `None` is [`AdjustLr::Original`].
        adjust_lr_fn: Option<AdjustLr> = None,
    }
}

/// The scale of a step of [`Muon`] for a parameter of `A` by `B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdjustLr {
    /// `√max(1, A / B)`
    Original,
    /// `0.2 √max(A, B)`, which makes a step as long as one of [`AdamW`](crate::AdamW).
    MatchRmsAdamw,
    /// `√(A / B)`
    SpectralUnclamped,
}

impl AdjustLr {
    fn scale(self, sizes: &[usize]) -> f64 {
        let [a, b] = [0, 1].map(|dim| sizes[dim] as f64);
        match self {
            AdjustLr::Original => f64::max(1.0, a / b).sqrt(),
            AdjustLr::MatchRmsAdamw => 0.2 * f64::max(a, b).sqrt(),
            AdjustLr::SpectralUnclamped => (a / b).sqrt(),
        }
    }
}

impl Formula for MuonOptions {
    #[track_caller]
    fn check_as(&self, name: &'static str) -> Result<()> {
        let checks = Checks(name);
        let numbers =
            [("Learning rate", self.lr), ("momentum", self.momentum), ("weight decay", self.weight_decay)];
        for (what, value) in numbers {
            checks.at_least(what, 0.0, value)?;
        }
        checks.not_nan("epsilon value", self.eps)?;
        checks.require(self.ns_steps < 100, || {
            format!(
                "Number of steps must be less than 100 for computational efficiency, not {}",
                self.ns_steps
            )
        })
    }

    #[track_caller]
    fn check_shape(&self, shape: &Shape) -> Result<()> {
        if shape.sizes.len() == 2 {
            return Ok(());
        }
        let message = format!(
            "Muon only supports 2D parameters whereas we found a parameter with size: {:?}",
            shape.sizes
        );
        Err(Error::new(ErrorKind::Shape, "Muon", message)
            .with_operands([shape.clone()])
            .with_repair("AdamW::builder([parameter]) for parameters that are not matrices"))
    }

    fn tensors(&self, _sizes: &[usize]) -> &'static [&'static str] {
        &["momentum_buffer"]
    }

    fn advance(&self, turn: Turn<'_>) -> Result<()> {
        let Turn { param, grad, slots, .. } = turn;
        let [buffer] = slots.take()?;
        if param.numel() == 0 {
            return Ok(());
        }
        let average = Mix { keep: self.momentum, add: 1.0 - self.momentum };
        update_tensors(&average, buffer, grad, [])?;
        let along = buffer.unnamed();
        let along = if self.nesterov { grad.lerp(&along, self.momentum)? } else { along };
        let along = self.orthogonal(along)?.to(param.dtype())?.contiguous()?;
        let scale = self.adjust_lr_fn.unwrap_or(AdjustLr::Original).scale(param.sizes());
        let direction = Direction::decoupled(false, self.lr, self.weight_decay);
        update_tensors(&Step { direction, size: self.lr * scale }, param, &along, [])
    }

    /// One matrix after the other, since products use all threads.
    fn advance_all(pass: &mut Pass<'_, MuonOptions>) -> Result<()> {
        pass.each(|method, turn| method.advance(turn))
    }
}

impl MuonOptions {
    /// A matrix with the singular vectors of `x`, whose singular values are about 1.
    fn orthogonal(&self, x: NamedTensor) -> Result<NamedTensor> {
        let tall = x.sizes()[0] > x.sizes()[1];
        let mut x = x.to(DType::BF16)?;
        if tall {
            x = x.t()?.contiguous()?;
        }
        let norm = x.norm(..)?.to_vec::<f64>()?[0];
        x = x.div(norm.max(self.eps))?;
        let (a, b, c) = self.ns_coefficients;
        for _ in 0..self.ns_steps {
            // Of a matrix times itself transposed, half is computed. `gram` is symmetric.
            let gram = x.mm(&x.t()?)?;
            let plus = AddmmOptions::new().beta(b).alpha(c);
            let polynomial = gram.addmm_with(&gram, &gram.t()?, plus)?;
            x = x.addmm_with(&polynomial, &x, AddmmOptions::new().beta(a))?;
        }
        if tall { x.t() } else { Ok(x) }
    }
}

/// `b = keep · b + add · g`.
struct Mix {
    keep: f64,
    add: f64,
}

impl Update<0> for Mix {
    #[inline(always)]
    fn run<T: Real>(&self, buffer: &mut [T], grad: &[T], []: [&mut [T]; 0]) {
        let [keep, add] = [self.keep, self.add].map(T::from_f64);
        for (b, g) in buffer.iter_mut().zip(grad) {
            *b = *b * keep + *g * add;
        }
    }
}

/// A step of `size` along a direction in place of the gradient.
struct Step {
    direction: Direction<f64>,
    size: f64,
}

impl Update<0> for Step {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], along: &[T], []: [&mut [T]; 0]) {
        let (direction, size) = (self.direction.to::<T>(), T::from_f64(self.size));
        for (p, u) in param.iter_mut().zip(along) {
            *p = direction.shrunk(*p) - size * *u;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::testing::{Stepped, assert_close, parameters, tensor};
    use half::bf16;

    /// The product of two matrices, plainly.
    fn mm(x: &[f64], y: &[f64], [m, k, n]: [usize; 3]) -> Vec<f64> {
        let element = |i: usize| (0..k).map(|l| x[i / n * k + l] * y[l * n + i % n]).sum();
        (0..m * n).map(element).collect()
    }

    fn transposed(x: &[f64], cols: usize) -> Vec<f64> {
        let rows = x.len() / cols;
        (0..x.len()).map(|i| x[i % rows * cols + i / rows]).collect()
    }

    /// Gradients whose matrices have full rank. The singular vectors of others, for the values that are 0,
    /// are those of roundings.
    fn gradient(n: usize, t: u64) -> impl Iterator<Item = f64> {
        (0..n as u64).map(move |i| ((i * i * 7 + t * 13) as f64 * 0.37).sin())
    }

    fn rounded(x: f64) -> f64 {
        bf16::from_f64(x).to_f64()
    }

    /// The iteration of the doc, with sums in `f64`, for a matrix that is not tall.
    fn orthogonal(method: &MuonOptions, x: &[f64], [m, n]: [usize; 2]) -> Vec<f64> {
        let mut x: Vec<f64> = x.iter().copied().map(rounded).collect();
        let norm = rounded(x.iter().map(|x| x * x).sum::<f64>().sqrt());
        x.iter_mut().for_each(|x| *x = rounded(*x / norm));
        let (a, b, c) = method.ns_coefficients;
        for _ in 0..method.ns_steps {
            let gram: Vec<f64> = mm(&x, &transposed(&x, n), [m, n, m]).into_iter().map(rounded).collect();
            let square = mm(&gram, &gram, [m; 3]);
            let polynomial: Vec<f64> = gram.iter().zip(square).map(|(g, s)| rounded(b * g + c * s)).collect();
            let product = mm(&polynomial, &x, [m, m, n]);
            x = x.iter().zip(product).map(|(x, y)| rounded(a * x + y)).collect();
        }
        x
    }

    fn check(method: &MuonOptions, sizes: [usize; 2]) {
        let [rows, cols] = sizes;
        let n = rows * cols;
        let mut params: Vec<f64> = parameters(n).collect();
        let mut buffer = vec![0.0; n];
        let mut stepped = Stepped::new::<f32>(method, tensor::<f32>(parameters(n), &sizes));
        for t in 1..=3 {
            let grads: Vec<f64> = gradient(n, t).collect();
            let momentum = method.momentum;
            buffer.iter_mut().zip(&grads).for_each(|(b, g)| *b = momentum * *b + (1.0 - momentum) * g);
            let ahead = |(b, g): (&f64, &f64)| momentum * b + (1.0 - momentum) * g;
            let along: Vec<f64> = match method.nesterov {
                true => buffer.iter().zip(&grads).map(ahead).collect(),
                false => buffer.clone(),
            };
            let along = match rows > cols {
                true => transposed(&orthogonal(method, &transposed(&along, cols), [cols, rows]), rows),
                false => orthogonal(method, &along, sizes),
            };
            let (a, b) = (rows as f64, cols as f64);
            let scale = match method.adjust_lr_fn {
                None | Some(AdjustLr::Original) => f64::max(1.0, a / b).sqrt(),
                Some(AdjustLr::MatchRmsAdamw) => 0.2 * f64::max(a, b).sqrt(),
                Some(AdjustLr::SpectralUnclamped) => (a / b).sqrt(),
            };
            for (p, u) in params.iter_mut().zip(along) {
                *p = *p * (1.0 - method.lr * method.weight_decay) - method.lr * scale * u;
            }
            stepped.step(&tensor::<f32>(gradient(n, t), &sizes));
            // A sum that is rounded to the other side differs by 2^-8 of itself, and each step enlarges this.
            let tolerance = 0.05 * t as f64 * method.lr * scale;
            let found: Vec<f64> = stepped.param.to_vec().unwrap();
            for (found, expected) in found.iter().zip(&params) {
                assert!((found - expected).abs() < tolerance, "{found} is not {expected}");
            }
        }
        let kept = stepped.slots[0].1.as_slice::<f32>().unwrap();
        assert_close(kept, buffer.iter().copied(), "momentum_buffer");
    }

    #[test]
    fn steps_follow_the_formula() {
        let method = MuonOptions::new().lr(0.1);
        for sizes in [[3, 5], [5, 3], [4, 4], [1, 6]] {
            check(&method, sizes);
            check(&method.clone().nesterov(false).momentum(0.8), sizes);
            check(&method.clone().adjust_lr_fn(Some(AdjustLr::MatchRmsAdamw)), sizes);
            check(&method.clone().adjust_lr_fn(Some(AdjustLr::SpectralUnclamped)), sizes);
        }
    }
}
