//! Adam, and AdamW, which has decoupled weight decay.

use super::*;

options! {
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
        /// The shares of the averages of the gradient and of its square that are kept from step to step.
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
            if self.amsgrad { &[MOMENTS[0], MOMENTS[1], "max_exp_avg_sq"] } else { &MOMENTS }
        }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let (lr, betas, eps, t) = (self.lr, self.betas, self.eps, step.number);
            let decay = decays(lr, self.weight_decay, self.decoupled_weight_decay);
            let size = lr / correction(betas.0, t);
            let root_scale = correction(betas.1, t).sqrt().recip();
            let numbers = joined(moments(self.maximize, decay, betas), [size, root_scale, eps]);
            match self.amsgrad {
                true => step.apply::<_, 10, 3>(self, numbers),
                false => step.apply::<_, 10, 2>(self, numbers),
            }
        }
    }
}

options! {
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
        /// The shares of the averages of the gradient and of its square that are kept from step to step.
        betas: (f64, f64) = (0.9, 0.999) in 0.0..1.0 => "beta parameter at index {index}",
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-8 in 0.0.. => "epsilon value",
        /// The share by which the parameter shrinks in each step, times `lr`.
        weight_decay: f64 = 1e-2 in 0.0..,
        /// Whether the denominator never shrinks.
        amsgrad: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn slots(&self, sizes: &[usize]) -> &'static [&'static str] { self.adam().slots(sizes) }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> { self.adam().update(step) }
    }
}

impl AdamWOptions {
    /// The options of an [`Adam`] that takes the same steps.
    fn adam(&self) -> AdamOptions {
        let AdamWOptions { lr, betas, eps, weight_decay, amsgrad, maximize } = *self;
        AdamOptions { lr, betas, eps, weight_decay, amsgrad, maximize, decoupled_weight_decay: true }
    }
}

/// Adam's step. With a third state, that is the largest average of the square so far.
impl<const N: usize> Formula<10, N> for AdamOptions {
    #[inline(always)]
    fn apply<T: Real>(numbers: [T; 10], p: T, g: T, mut states: [T; N]) -> (T, [T; N]) {
        let [moments @ .., size, root_scale, eps] = numbers;
        let (p, _, [m, v]) = decayed_and_averaged(moments, p, g, [states[0], states[1]]);
        [states[0], states[1]] = [m, v];
        if N == 3 {
            states[2] = states[2].maximum(v);
        }
        (p - size * m / (states[N - 1].sqrt() * root_scale + eps), states)
    }
}
