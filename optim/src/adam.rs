//! Adam, and AdamW, which has decoupled weight decay.

use crate::hyperparameters::optimizer;
use crate::method::{Checks, Turn};
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
        lr: f64 = 1e-3,
        /// How much of the averages of the gradient and of its square is kept from step to step.
        betas: (f64, f64) = (0.9, 0.999),
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-8,
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0,
        /// Whether the denominator never shrinks.
        amsgrad: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
        /// Whether `weight_decay` is that of [`AdamW`].
        decoupled_weight_decay: bool = false,
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
        lr: f64 = 1e-3,
        /// How much of the averages of the gradient and of its square is kept from step to step.
        betas: (f64, f64) = (0.9, 0.999),
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-8,
        /// How much the parameter shrinks in each step, times `lr`.
        weight_decay: f64 = 1e-2,
        /// Whether the denominator never shrinks.
        amsgrad: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
    }
}

/// The tensors that both optimizers keep for each parameter. The last one is only for `amsgrad`.
const SLOTS: [&str; 3] = ["exp_avg", "exp_avg_sq", "max_exp_avg_sq"];

impl AdamOptions {
    fn formula(&self) -> &AdamOptions {
        self
    }

    #[track_caller]
    fn check_as(&self, name: &'static str) -> Result<()> {
        let checks = Checks(name);
        checks.not_negative("learning rate", self.lr)?;
        checks.not_negative("epsilon value", self.eps)?;
        checks.betas(self.betas)?;
        checks.not_negative("weight_decay value", self.weight_decay)
    }

    fn tensors(&self) -> &'static [&'static str] {
        if self.amsgrad { &SLOTS } else { &SLOTS[..2] }
    }

    fn advance(&self, turn: Turn<'_>) -> Result<()> {
        let step = Step::new(self, turn.number);
        if self.amsgrad { turn.run::<3>(&step) } else { turn.run::<2>(&step) }
    }
}

impl AdamWOptions {
    /// The options of an [`Adam`] that takes the same steps.
    fn formula(&self) -> AdamOptions {
        let AdamWOptions { lr, betas, eps, weight_decay, amsgrad, maximize } = *self;
        AdamOptions { lr, betas, eps, weight_decay, amsgrad, maximize, decoupled_weight_decay: true }
    }
}

/// The numbers of a step that are the same for all elements.
#[derive(Clone, Copy)]
struct Step<T> {
    /// -1 to ascend.
    sign: T,
    /// Added to the gradient, times the parameter: 0 if the decay is decoupled.
    weight_decay: T,
    /// The parameter is multiplied by this: 1 unless the decay is decoupled.
    shrink: T,
    /// `1 - β₁`.
    take: T,
    /// `β₂`.
    keep_sq: T,
    /// `1 - β₂`.
    take_sq: T,
    /// `lr / (1 - β₁ᵗ)`.
    size: T,
    /// `1 / √(1 - β₂ᵗ)`.
    root_scale: T,
    eps: T,
}

impl Step<f64> {
    /// Step number `t`, from 1.
    fn new(options: &AdamOptions, t: u64) -> Step<f64> {
        let AdamOptions { lr, betas, eps, weight_decay, decoupled_weight_decay: decoupled, maximize, .. } =
            *options;
        let t = t as f64;
        Step {
            sign: if maximize { -1.0 } else { 1.0 },
            weight_decay: if decoupled { 0.0 } else { weight_decay },
            shrink: if decoupled { 1.0 - lr * weight_decay } else { 1.0 },
            take: 1.0 - betas.0,
            keep_sq: betas.1,
            take_sq: 1.0 - betas.1,
            size: lr / (1.0 - betas.0.powf(t)),
            root_scale: (1.0 - betas.1.powf(t)).sqrt().recip(),
            eps,
        }
    }

    /// The same numbers in the type of the computation.
    #[inline(always)]
    fn to<T: Real>(self) -> Step<T> {
        Step {
            sign: T::from_f64(self.sign),
            weight_decay: T::from_f64(self.weight_decay),
            shrink: T::from_f64(self.shrink),
            take: T::from_f64(self.take),
            keep_sq: T::from_f64(self.keep_sq),
            take_sq: T::from_f64(self.take_sq),
            size: T::from_f64(self.size),
            root_scale: T::from_f64(self.root_scale),
            eps: T::from_f64(self.eps),
        }
    }
}

impl<T: Real> Step<T> {
    /// Updates the averages of one element. Returns the parameter after a decoupled decay.
    #[inline(always)]
    fn average(self, param: T, grad: T, exp_avg: &mut T, exp_avg_sq: &mut T) -> T {
        let param = param * self.shrink;
        let d = param * self.weight_decay + grad * self.sign;
        *exp_avg += (d - *exp_avg) * self.take;
        *exp_avg_sq = *exp_avg_sq * self.keep_sq + d * d * self.take_sq;
        param
    }

    /// The parameter after a step along `exp_avg`.
    #[inline(always)]
    fn descend(self, param: T, exp_avg: T, exp_avg_sq: T) -> T {
        param - self.size * exp_avg / (exp_avg_sq.sqrt() * self.root_scale + self.eps)
    }
}

/// Adam.
impl Update<2> for Step<f64> {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [exp_avg, exp_avg_sq]: [&mut [T]; 2]) {
        let step = self.to::<T>();
        for (((p, g), m), v) in param.iter_mut().zip(grad).zip(exp_avg).zip(exp_avg_sq) {
            let decayed = step.average(*p, *g, m, v);
            *p = step.descend(decayed, *m, *v);
        }
    }
}

/// AMSGrad, with the largest `exp_avg_sq` so far.
impl Update<3> for Step<f64> {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [exp_avg, exp_avg_sq, max]: [&mut [T]; 3]) {
        let step = self.to::<T>();
        for ((((p, g), m), v), max) in param.iter_mut().zip(grad).zip(exp_avg).zip(exp_avg_sq).zip(max) {
            let decayed = step.average(*p, *g, m, v);
            *max = max.maximum(*v);
            *p = step.descend(decayed, *m, *max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::testing::{LENGTHS, check_steps};

    /// `[param, exp_avg, exp_avg_sq, max_exp_avg_sq]` of one element after step `t`, by `torch.optim`'s loop
    /// in `f64`.
    fn by_hand(method: &AdamOptions, t: u64, [mut p, m, v, max]: [f64; 4], g: f64) -> [f64; 4] {
        let mut g = if method.maximize { -g } else { g };
        if method.decoupled_weight_decay {
            p *= 1.0 - method.lr * method.weight_decay;
        } else {
            g += method.weight_decay * p;
        }
        let m = method.betas.0 * m + (1.0 - method.betas.0) * g;
        let v = method.betas.1 * v + (1.0 - method.betas.1) * g * g;
        let max = if method.amsgrad { f64::max(max, v) } else { v };
        let corrections = [method.betas.0, method.betas.1].map(|beta| 1.0 - beta.powf(t as f64));
        let denom = max.sqrt() / corrections[1].sqrt() + method.eps;
        [p - method.lr / corrections[0] * m / denom, m, v, max]
    }

    #[test]
    fn steps_follow_the_formula() {
        for n in LENGTHS {
            for (decoupled_weight_decay, amsgrad) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                for maximize in [false, true] {
                    let (lr, betas, eps, weight_decay) = (0.1, (0.9, 0.99), 1e-8, 0.01);
                    let method = AdamOptions {
                        lr,
                        betas,
                        eps,
                        weight_decay,
                        amsgrad,
                        maximize,
                        decoupled_weight_decay,
                    };
                    let after = |t, state, g| by_hand(&method, t, state, g);
                    check_steps::<f32, _, _>(n, &method, after);
                    check_steps::<f64, _, _>(n, &method, after);
                }
            }
        }
    }
}
