//! LAMB, Adam whose step is as long as the parameter for large batches.

use super::*;

options! {
    /// LAMB: the direction of [`AdamW`](crate::AdamW), with a length proportional to that of the parameter.
    /// It is for large batches.
    ///
    /// `g` is the gradient, negated if `maximize`, `t` is the number of the step, from 1, and `‖·‖` the
    /// Euclidean norm over all elements of the parameter:
    ///
    /// ```text
    /// exp_avg    = β₁ · exp_avg    + (1 - β₁) · g
    /// exp_avg_sq = β₂ · exp_avg_sq + (1 - β₂) · g²
    /// r          = (exp_avg / (1 - β₁ᵗ)) / (√(exp_avg_sq / (1 - β₂ᵗ)) + eps)
    /// u          = r + weight_decay · param
    /// param     -= lr · ‖param‖ / ‖u‖ · u
    /// ```
    ///
    /// The ratio of the norms is 1 if one of them is 0.
    ///
    /// # Source
    /// You et al., *Large Batch Optimization for Deep Learning: Training BERT in 76 minutes*
    /// (arXiv:1904.00962), algorithm 2 with `φ(z) = z`. PyTorch does not have it; `eps` and `weight_decay`
    /// are those of the paper's experiments.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Lamb, Optimizer};
    /// let weight = Parameter::new(Tensor::new([3.0, 4.0])?)?;
    /// let mut optimizer = Lamb::builder([weight.clone()]).lr(0.1).weight_decay(0.0).build()?;
    /// weight.tensor().sum(..)?.backward()?;
    /// optimizer.step()?;
    /// // The step has a tenth of the length of the parameter, 5.
    /// let step = Tensor::new([3.0, 4.0])?.sub(&weight.tensor())?.norm(..)?;
    /// assert!((step.item::<f64>()? - 0.5).abs() < 1e-5);
    /// # Ok::<(), Error>(())
    /// ```
    Lamb(betas.0)
    LambOptions {
        /// The learning rate, per step.
        lr: f64 = 1e-3 in 0.0.. => "learning rate",
        /// The shares of the averages of the gradient and of its square that are kept from step to step.
        betas: (f64, f64) = (0.9, 0.999) in 0.0..1.0 => "beta parameter at index {index}",
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-6 in 0.0.. => "epsilon value",
        /// The share of the parameter in the direction.
        weight_decay: f64 = 1e-2 in 0.0..,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn needs_whole() -> bool { true }

        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] { &MOMENTS }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let LambOptions { lr, betas, eps, weight_decay, maximize } = *self;
            let ParameterStep { number: t, param, grad, slots, .. } = step;
            let [exp_avg, exp_avg_sq] = slots.take()?;
            let [_, sign, _, keep, take, keep_sq, take_sq] = moments(maximize, [1.0, 0.0], betas);
            let (average_scale, root_scale) = (correction(betas.0, t).recip(), correction(betas.1, t).sqrt().recip());
            let numbers = [sign, keep, take, keep_sq, take_sq, average_scale, root_scale, eps, weight_decay];
            let (averages, mut squares) = (with::<_, 9, 4, 2>(&LambAverages, &numbers), [0.0; 2]);
            update::run(&averages, param, grad, &mut [&mut *exp_avg, &mut *exp_avg_sq].into_iter(), &mut squares)?;
            let [param_norm, step_norm] = squares.map(f64::sqrt);
            let ratio = if param_norm > 0.0 && step_norm > 0.0 { param_norm / step_norm } else { 1.0 };
            let numbers = [average_scale, root_scale, eps, weight_decay, lr * ratio];
            apply(self, numbers, param, grad, [exp_avg, exp_avg_sq])
        }
    }

    // A step along `u`.
    impl Formula<5, 2> |[average_scale, root_scale, eps, weight_decay, size], p, _, averages| {
        (p - size * along([average_scale, root_scale, eps, weight_decay], p, averages), averages)
    }
}

/// The direction `u`, from `1 / (1 - β₁ᵗ)`, `1 / √(1 - β₂ᵗ)`, `eps` and `weight_decay`.
#[inline(always)]
fn along<T: Real>([average_scale, root_scale, eps, weight_decay]: [T; 4], p: T, [m, v]: [T; 2]) -> T {
    m * average_scale / (v.sqrt() * root_scale + eps) + p * weight_decay
}

/// Updates the averages. The sums are `‖param‖²` and `‖u‖²`.
struct LambAverages;

impl Formula<9, 4> for LambAverages {
    #[inline(always)]
    fn apply<T: Real>(numbers: [T; 9], p: T, g: T, [m, v, params, steps]: [T; 4]) -> (T, [T; 4]) {
        let [sign, keep, take, keep_sq, take_sq, average_scale, root_scale, eps, weight_decay] = numbers;
        let [m, v] = averaged([keep, take, keep_sq, take_sq], g * sign, [m, v]);
        let u = along([average_scale, root_scale, eps, weight_decay], p, [m, v]);
        (p, [m, v, params + p * p, steps + u * u])
    }
}
