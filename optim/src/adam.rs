//! Adam, and AdamW, which has decoupled weight decay.

use crate::direction::Direction;
use crate::method::ParameterStep;
use crate::moments::{self, Moments, correction};
use crate::rows::optimizer;
use namegrad_core::Result;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::Update;

optimizer! {
    /// Adam: steps along a moving average of the gradient, divided by the square root of a moving average of
    /// its square. The size of a step is about `lr`.
    ///
    /// `g` is the gradient, negated if `maximize`, and `t` is the number of the step, from 1:
    ///
    /// ```text
    /// d          = g + weight_decay · param
    /// exp_avg    = β₁ · exp_avg    + (1 - β₁) · d
    /// exp_avg_sq = β₂ · exp_avg_sq + (1 - β₂) · d²
    /// param     -= lr · (exp_avg / (1 - β₁ᵗ)) / (√(exp_avg_sq / (1 - β₂ᵗ)) + eps)
    /// ```
    ///
    /// With `amsgrad`, the last line uses the largest `exp_avg_sq` so far instead of the current one.
    ///
    /// # Source
    /// Kingma, Ba, *Adam: A Method for Stochastic Optimization* (arXiv:1412.6980), algorithm 1, and for
    /// `amsgrad` Reddi, Kale, Kumar, *On the Convergence of Adam and Beyond* (arXiv:1904.09237), both in the
    /// form of `torch.optim.Adam`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Adam, Optimizer};
    /// let weight = Parameter::new(Tensor::new(1.0)?)?;
    /// let mut optimizer = Adam::builder([weight.clone()]).lr(0.25).eps(0.0).build()?;
    /// weight.tensor().mul(100.0)?.backward()?;
    /// optimizer.step()?;
    /// // The first step has length `lr` for any gradient.
    /// assert_eq!(weight.tensor().item::<f64>()?, 0.75);
    /// # Ok::<(), Error>(())
    /// ```
    Adam(betas.0)
    AdamOptions {
        /// The learning rate, per step.
        lr: f64 = 1e-3 in 0.0.. => "learning rate",
        /// How much of the averages of the gradient and of its square is kept from step to step.
        betas: (f64, f64) = (0.9, 0.999) in 0.0..1.0 => "beta parameter at index {index}",
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-8 in 0.0.. => "epsilon value",
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0 in 0.0..,
        /// Whether the denominator never shrinks.
        amsgrad: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
        /// Whether `weight_decay` is that of [`AdamW`].
        decoupled_weight_decay: bool = false,
    }

    impl Method {
        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
            if self.amsgrad { &SLOTS } else { &SLOTS[..2] }
        }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let update = AdamUpdate::new(self, step.number);
            if self.amsgrad { step.run::<3>(&update) } else { step.run::<2>(&update) }
        }
    }
}

optimizer! {
    /// AdamW: [`Adam`] with a weight decay that does not enter the averages.
    ///
    /// A step first shrinks the parameter,
    ///
    /// ```text
    /// param *= 1 - lr · weight_decay
    /// ```
    ///
    /// and then takes the step of [`Adam`] with `d = g`.
    ///
    /// # Source
    /// Loshchilov, Hutter, *Decoupled Weight Decay Regularization* (arXiv:1711.05101), algorithm 2, in the
    /// form of `torch.optim.AdamW`.
    ///
    /// # Examples
    /// Biases with their own learning rate and without weight decay:
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{AdamW, Optimizer};
    /// # let weight = Parameter::new(Tensor::ones([("out", 2), ("in", 3)])?)?;
    /// # let bias = Parameter::new(Tensor::ones([("out", 2)])?)?;
    /// let mut optimizer = AdamW::builder([weight])
    ///     .lr(1e-3)
    ///     .group([bias], |group| {
    ///         group.lr = 1e-4;
    ///         group.weight_decay = 0.0;
    ///     })
    ///     .build()?;
    /// assert_eq!(optimizer.lrs(), [1e-3, 1e-4]);
    /// optimizer.groups_mut()[0].lr = 5e-4;
    /// # Ok::<(), Error>(())
    /// ```
    AdamW(betas.0)
    AdamWOptions {
        /// The learning rate, per step.
        lr: f64 = 1e-3 in 0.0.. => "learning rate",
        /// How much of the averages of the gradient and of its square is kept from step to step.
        betas: (f64, f64) = (0.9, 0.999) in 0.0..1.0 => "beta parameter at index {index}",
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-8 in 0.0.. => "epsilon value",
        /// How much the parameter shrinks in each step, times `lr`.
        weight_decay: f64 = 1e-2 in 0.0..,
        /// Whether the denominator never shrinks.
        amsgrad: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn slots(&self, sizes: &[usize]) -> &'static [&'static str] {
            self.adam().slots(sizes)
        }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            self.adam().update(step)
        }
    }
}

/// The tensors that both optimizers keep for each parameter. The last one is only for `amsgrad`.
const SLOTS: [&str; 3] = [moments::SLOTS[0], moments::SLOTS[1], "max_exp_avg_sq"];

impl AdamWOptions {
    /// The options of an [`Adam`] that takes the same steps.
    fn adam(&self) -> AdamOptions {
        let AdamWOptions { lr, betas, eps, weight_decay, amsgrad, maximize } = *self;
        AdamOptions { lr, betas, eps, weight_decay, amsgrad, maximize, decoupled_weight_decay: true }
    }
}

/// The numbers of a step that are the same for all elements.
struct AdamUpdate {
    moments: Moments<f64>,
    /// `lr / (1 - β₁ᵗ)`.
    size: f64,
    /// `1 / √(1 - β₂ᵗ)`.
    root_scale: f64,
    eps: f64,
}

impl AdamUpdate {
    /// AdamUpdate number `t`, from 1.
    fn new(options: &AdamOptions, t: u64) -> AdamUpdate {
        let AdamOptions { lr, betas, eps, weight_decay, decoupled_weight_decay, maximize, .. } = *options;
        let direction = match decoupled_weight_decay {
            true => Direction::decoupled(maximize, lr, weight_decay),
            false => Direction::coupled(maximize, weight_decay),
        };
        AdamUpdate {
            moments: Moments::new(direction, betas),
            size: lr / correction(betas.0, t),
            root_scale: correction(betas.1, t).sqrt().recip(),
            eps,
        }
    }

    /// The size, the scale of the root and eps in the type of the computation.
    #[inline(always)]
    fn scales<T: Real>(&self) -> [T; 3] {
        [self.size, self.root_scale, self.eps].map(T::from_f64)
    }
}

/// Adam.
impl Update<2> for AdamUpdate {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [exp_avg, exp_avg_sq]: [&mut [T]; 2]) {
        let (moments, [size, root_scale, eps]) = (self.moments.to::<T>(), self.scales());
        for (((p, g), m), v) in param.iter_mut().zip(grad).zip(exp_avg).zip(exp_avg_sq) {
            let (decayed, _) = moments.average(*p, *g, m, v);
            *p = decayed - size * *m / (v.sqrt() * root_scale + eps);
        }
    }
}

/// AMSGrad, with the largest `exp_avg_sq` so far.
impl Update<3> for AdamUpdate {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [exp_avg, exp_avg_sq, max]: [&mut [T]; 3]) {
        let (moments, [size, root_scale, eps]) = (self.moments.to::<T>(), self.scales());
        for ((((p, g), m), v), max) in param.iter_mut().zip(grad).zip(exp_avg).zip(exp_avg_sq).zip(max) {
            let (decayed, _) = moments.average(*p, *g, m, v);
            *max = max.maximum(*v);
            *p = decayed - size * *m / (max.sqrt() * root_scale + eps);
        }
    }
}
