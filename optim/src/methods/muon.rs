//! Muon, momentum whose direction is an orthogonal matrix.

use super::*;
use namegrad_core::options::AddmmOptions;

options! {
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
        lr: f64 = 1e-3 in 0.0.. => "Learning rate should be >= 0 but is: {}",
        /// The share by which the parameter shrinks in each step, times `lr`.
        weight_decay: f64 = 0.1 in 0.0.. => "weight decay should be >= 0 but is: {}",
        /// The share of the momentum buffer that is kept from step to step.
        momentum: f64 = 0.95 in 0.0.. => "momentum should be >= 0 but is: {}",
        /// Whether to use Nesterov's form, which looks ahead along the momentum.
        nesterov: bool = true,
        /// The coefficients of the iteration.
        ns_coefficients: (f64, f64, f64) = (3.4445, -4.775, 2.0315),
        /// The smallest norm that a matrix is divided by.
        eps: f64 = 1e-7 in .. => "epsilon value",
        /// The number of iterations, less than 100.
        ns_steps: usize = 5 in ..100 => "Number of steps must be less than 100 for computational efficiency, not {}",
        /// The adjustment of the learning rate to the sizes of a parameter. `None` is [`AdjustLr::Original`].
        adjust_lr_fn: Option<AdjustLr> = None,
    }

    impl Method {
        fn needs_whole() -> bool { true }

        fn check_parameter(&self, shape: &Shape) -> Result<()> {
            if shape.sizes.len() == 2 {
                return Ok(());
            }
            let sizes = &shape.sizes;
            let message =
                format!("Muon only supports 2D parameters whereas we found a parameter with size: {sizes:?}");
            Err(Error::new(ErrorKind::Shape, "Muon", message)
                .with_operands([shape.clone()])
                .with_repair("AdamW::builder([parameter]) for parameters that are not matrices"))
        }

        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] { &["momentum_buffer"] }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let ParameterStep { param, grad, slots, .. } = step;
            let [buffer] = slots.take()?;
            if param.numel() == 0 {
                return Ok(());
            }
            apply(&MixFormula, [self.momentum, 1.0 - self.momentum], buffer, grad, [])?;
            let along = buffer.unnamed();
            let along = if self.nesterov { grad.lerp(&along, self.momentum)? } else { along };
            let along = self.orthogonal(along)?.to(param.dtype())?.contiguous()?;
            let scale = self.adjust_lr_fn.unwrap_or(AdjustLr::Original).scale(param.sizes());
            let numbers = [1.0 - self.lr * self.weight_decay, -self.lr * scale];
            apply(&MixFormula, numbers, param, &along, [])
        }

        /// Steps one matrix after the other, since products use all threads.
        fn step(groups: &[MuonOptions], step: &mut OptimizerStep<'_>) -> Result<()> {
            step.each(|group, own| groups[group].update(own))
        }
    }
}

/// The scale of a step of [`Muon`] for a parameter of `A` by `B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Words)]
#[serde(rename_all = "snake_case")]
pub enum AdjustLr {
    /// `√max(1, A / B)`
    Original,
    /// `0.2 √max(A, B)`, which makes a step as long as one of [`AdamW`](crate::AdamW).
    #[word = "match_rms_adamw"]
    MatchRmsAdamw,
    /// `√(A / B)`
    #[word = "spectral_unclamped"]
    SpectralUnclamped,
}

impl Choice for AdjustLr {}

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

impl MuonOptions {
    /// A matrix with the singular vectors of `x`, whose singular values are about 1.
    fn orthogonal(&self, x: NamedTensor) -> Result<NamedTensor> {
        let tall = x.sizes()[0] > x.sizes()[1];
        let x = x.to(DType::BF16)?;
        let mut x = if tall { x.t()?.contiguous()? } else { x };
        let norm = number(&x.norm(..)?)?;
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
