//! RMSprop, optionally centered and with momentum.

use crate::direction::Direction;
use crate::hyperparameters::{Formula, optimizer};
use crate::method::{Checks, Turn};
use namegrad_core::Result;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::Update;

optimizer! {
    /// RMSprop: divides the gradient by the root of a moving average of its square.
    ///
    /// `g` is the gradient, negated if `maximize`:
    ///
    /// ```text
    /// d          = g + weight_decay · param
    /// square_avg = alpha · square_avg + (1 - alpha) · d²
    /// step       = d / (√square_avg + eps)
    /// param     -= lr · step
    /// ```
    ///
    /// If `centered`, the root is `√(square_avg - grad_avg²)`, a standard deviation, where `grad_avg` is the
    /// moving average of `d`. With a momentum, the last line is
    ///
    /// ```text
    /// momentum_buffer = momentum · momentum_buffer + step
    /// param          -= lr · momentum_buffer
    /// ```
    ///
    /// # Source
    /// Tieleman, Hinton, *Neural Networks for Machine Learning* (2012), lecture 6.5, and for `centered`
    /// Graves, *Generating Sequences With Recurrent Neural Networks* (arXiv:1308.0850), equations 38 to 40,
    /// both in the form of `torch.optim.RMSprop`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Optimizer, RmsProp};
    /// let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
    /// let mut optimizer = RmsProp::builder([weight.clone()]).lr(0.02).momentum(0.5).build()?;
    /// for _ in 0..300 {
    ///     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// }
    /// assert!(weight.tensor().to_vec::<f32>()?.iter().all(|w| w.abs() < 0.1));
    /// # Ok::<(), Error>(())
    /// ```
    RmsProp(momentum)
    RmsPropOptions {
        /// The learning rate, per step.
        lr: f64 = 1e-2,
        /// How much of the averages is kept from step to step.
        alpha: f64 = 0.99,
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-8,
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0,
        /// How much of the momentum buffer is kept from step to step; 0 for no momentum.
        momentum: f64 = 0.0,
        /// Whether to divide by the standard deviation of the gradient.
        centered: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
    }
}

impl Formula for RmsPropOptions {
    #[track_caller]
    fn check_as(&self, name: &'static str) -> Result<()> {
        let checks = Checks(name);
        checks.none_negative(&[
            ("learning rate", self.lr),
            ("epsilon value", self.eps),
            ("momentum value", self.momentum),
            ("weight_decay value", self.weight_decay),
            ("alpha value", self.alpha),
        ])
    }

    fn tensors(&self, _sizes: &[usize]) -> &'static [&'static str] {
        match (self.momentum > 0.0, self.centered) {
            (false, false) => &["square_avg"],
            (true, false) => &["square_avg", "momentum_buffer"],
            (false, true) => &["square_avg", "grad_avg"],
            (true, true) => &["square_avg", "grad_avg", "momentum_buffer"],
        }
    }

    fn advance(&self, turn: Turn<'_>) -> Result<()> {
        let RmsPropOptions { lr, alpha, eps, weight_decay, momentum, centered, maximize } = *self;
        let direction = Direction::coupled(maximize, weight_decay);
        let step = Step { direction, lr, alpha, eps, momentum, centered };
        match (momentum > 0.0, centered) {
            (false, false) => turn.run::<1>(&step),
            (true, true) => turn.run::<3>(&step),
            _ => turn.run::<2>(&step),
        }
    }
}

/// The numbers of a step that are the same for all elements.
struct Step {
    direction: Direction<f64>,
    lr: f64,
    alpha: f64,
    eps: f64,
    momentum: f64,
    centered: bool,
}

/// The same numbers in the type of the computation.
#[derive(Clone, Copy)]
struct Numbers<T> {
    direction: Direction<T>,
    lr: T,
    keep: T,
    take: T,
    eps: T,
    momentum: T,
}

impl Step {
    #[inline(always)]
    fn numbers<T: Real>(&self) -> Numbers<T> {
        let [lr, keep, take, eps, momentum] =
            [self.lr, self.alpha, 1.0 - self.alpha, self.eps, self.momentum].map(T::from_f64);
        Numbers { direction: self.direction.to(), lr, keep, take, eps, momentum }
    }
}

impl<T: Real> Numbers<T> {
    /// Updates the average of the square, and returns the direction.
    #[inline(always)]
    fn square(self, param: T, grad: T, square: &mut T) -> T {
        let d = self.direction.of(param, grad);
        *square = *square * self.keep + d * d * self.take;
        d
    }

    /// The gradient divided by the root of the average of its square.
    #[inline(always)]
    fn scaled(self, param: T, grad: T, square: &mut T) -> T {
        let d = self.square(param, grad, square);
        d / (square.sqrt() + self.eps)
    }

    /// The gradient divided by its standard deviation. Rounding does not make the variance negative.
    #[inline(always)]
    fn standardized(self, param: T, grad: T, square: &mut T, mean: &mut T) -> T {
        let d = self.square(param, grad, square);
        *mean = *mean * self.keep + d * self.take;
        d / ((*square - *mean * *mean).maximum(T::ZERO).sqrt() + self.eps)
    }

    /// Updates the momentum buffer. Returns the parameter after a step along it.
    #[inline(always)]
    fn along(self, param: T, step: T, buffer: &mut T) -> T {
        *buffer = *buffer * self.momentum + step;
        param - self.lr * *buffer
    }
}

/// Without momentum, not centered.
impl Update<1> for Step {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [square_avg]: [&mut [T]; 1]) {
        let numbers = self.numbers::<T>();
        for ((p, g), square) in param.iter_mut().zip(grad).zip(square_avg) {
            *p -= numbers.lr * numbers.scaled(*p, *g, square);
        }
    }
}

/// With momentum, or centered.
impl Update<2> for Step {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [square_avg, other]: [&mut [T]; 2]) {
        let numbers = self.numbers::<T>();
        if self.centered {
            for (((p, g), square), mean) in param.iter_mut().zip(grad).zip(square_avg).zip(other) {
                *p -= numbers.lr * numbers.standardized(*p, *g, square, mean);
            }
        } else {
            for (((p, g), square), buffer) in param.iter_mut().zip(grad).zip(square_avg).zip(other) {
                *p = numbers.along(*p, numbers.scaled(*p, *g, square), buffer);
            }
        }
    }
}

/// With momentum, centered.
impl Update<3> for Step {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [square_avg, grad_avg, buffer]: [&mut [T]; 3]) {
        let numbers = self.numbers::<T>();
        let averages = square_avg.iter_mut().zip(grad_avg);
        for (((p, g), (square, mean)), b) in param.iter_mut().zip(grad).zip(averages).zip(buffer) {
            *p = numbers.along(*p, numbers.standardized(*p, *g, square, mean), b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::testing::{LENGTHS, check_steps};

    /// `[param, square_avg, grad_avg, momentum_buffer]` of one element after a step, by `torch.optim`'s loop
    /// in `f64`.
    fn by_hand(method: &RmsPropOptions, [p, square, mean, buffer]: [f64; 4], g: f64) -> [f64; 4] {
        let alpha = method.alpha;
        let g = if method.maximize { -g } else { g } + method.weight_decay * p;
        let square = alpha * square + (1.0 - alpha) * g * g;
        let mean = alpha * mean + (1.0 - alpha) * g;
        let variance = if method.centered { square - mean * mean } else { square };
        let step = g / (variance.sqrt() + method.eps);
        let buffer = method.momentum * buffer + step;
        [p - method.lr * if method.momentum > 0.0 { buffer } else { step }, square, mean, buffer]
    }

    /// The numbers of [`by_hand`] that there are with these hyperparameters, in the order of the slots.
    fn kept(method: &RmsPropOptions, [p, square, mean, buffer]: [f64; 4]) -> [f64; 4] {
        if method.centered { [p, square, mean, buffer] } else { [p, square, buffer, mean] }
    }

    #[test]
    fn steps_follow_the_formula() {
        for n in LENGTHS {
            for (momentum, centered) in [(0.0, false), (0.9, false), (0.0, true), (0.9, true)] {
                for maximize in [false, true] {
                    let method = RmsPropOptions::new().lr(0.01).alpha(0.9).eps(1e-2).weight_decay(0.01);
                    let method = method.momentum(momentum).centered(centered).maximize(maximize);
                    let after = |_, state, g| kept(&method, by_hand(&method, kept(&method, state), g));
                    check_steps::<f32, _, _>(n, &method, after);
                    check_steps::<f64, _, _>(n, &method, after);
                }
            }
        }
    }
}
