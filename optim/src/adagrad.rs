//! Adagrad, gradient descent with a learning rate for each element that falls with the gradients seen.

use crate::direction::Direction;
use crate::hyperparameters::{Formula, optimizer};
use crate::method::{Checks, Turn};
use namegrad_core::Result;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::Update;

optimizer! {
    /// Adagrad: divides the gradient by the root of the sum of its squares so far.
    ///
    /// `g` is the gradient, negated if `maximize`, and `t` is the number of the step, from 1. `sum` starts
    /// with `initial_accumulator_value`:
    ///
    /// ```text
    /// d      = g + weight_decay · param
    /// sum   += d²
    /// param -= lr / (1 + (t - 1) · lr_decay) · d / (√sum + eps)
    /// ```
    ///
    /// # Source
    /// Duchi, Hazan, Singer, *Adaptive Subgradient Methods for Online Learning and Stochastic Optimization*
    /// (JMLR 12, 2011), in the form of `torch.optim.Adagrad`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Adagrad, Optimizer};
    /// let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
    /// let mut optimizer = Adagrad::builder([weight.clone()]).lr(1.0).build()?;
    /// for _ in 0..100 {
    ///     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// }
    /// assert!(weight.tensor().to_vec::<f32>()?.iter().all(|w| w.abs() < 0.1));
    /// # Ok::<(), Error>(())
    /// ```
    Adagrad
    AdagradOptions {
        /// The learning rate, per step.
        lr: f64 = 1e-2,
        /// How fast the learning rate falls.
        lr_decay: f64 = 0.0,
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0,
        /// What the sums start with.
        initial_accumulator_value: f64 = 0.0,
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-10,
        /// Whether to ascend.
        maximize: bool = false,
    }
}

impl Formula for AdagradOptions {
    #[track_caller]
    fn check_as(&self, name: &'static str) -> Result<()> {
        Checks(name).none_negative(&[
            ("learning rate", self.lr),
            ("lr_decay value", self.lr_decay),
            ("weight_decay value", self.weight_decay),
            ("initial_accumulator_value value", self.initial_accumulator_value),
            ("epsilon value", self.eps),
        ])
    }

    fn tensors(&self, _sizes: &[usize]) -> &'static [&'static str] {
        &["sum"]
    }

    fn tensor_start(&self, _slot: &str) -> f64 {
        self.initial_accumulator_value
    }

    fn advance(&self, turn: Turn<'_>) -> Result<()> {
        let direction = Direction::coupled(self.maximize, self.weight_decay);
        let lr = self.lr / (1.0 + (turn.number - 1) as f64 * self.lr_decay);
        turn.run(&Step { direction, lr, eps: self.eps })
    }
}

/// The numbers of a step that are the same for all elements.
struct Step {
    direction: Direction<f64>,
    lr: f64,
    eps: f64,
}

impl Update<1> for Step {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [sum]: [&mut [T]; 1]) {
        let (direction, [lr, eps]) = (self.direction.to::<T>(), [self.lr, self.eps].map(T::from_f64));
        for ((p, g), sum) in param.iter_mut().zip(grad).zip(sum) {
            let d = direction.of(*p, *g);
            *sum += d * d;
            *p -= lr * d / (sum.sqrt() + eps);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::testing::{LENGTHS, check_steps};

    /// `[param, sum]` of one element after step `t`, by `torch.optim`'s loop in `f64`.
    fn by_hand(method: &AdagradOptions, t: u64, [p, sum]: [f64; 2], g: f64) -> [f64; 2] {
        let g = if method.maximize { -g } else { g } + method.weight_decay * p;
        let lr = method.lr / (1.0 + (t as f64 - 1.0) * method.lr_decay);
        let sum = sum + g * g;
        [p - lr * g / (sum.sqrt() + method.eps), sum]
    }

    #[test]
    fn steps_follow_the_formula() {
        for n in LENGTHS {
            for (weight_decay, maximize) in [(0.0, false), (0.01, true)] {
                let method = AdagradOptions::new().lr(0.1).lr_decay(0.1).initial_accumulator_value(0.5);
                let method = method.weight_decay(weight_decay).maximize(maximize);
                let after = |t, state, g| by_hand(&method, t, state, g);
                check_steps::<f32, _, _>(n, &method, after);
                check_steps::<f64, _, _>(n, &method, after);
            }
        }
    }
}
