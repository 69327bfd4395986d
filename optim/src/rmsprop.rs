//! RMSprop, optionally centered and with momentum.

use crate::direction::Direction;
use crate::method::ParameterStep;
use crate::rows::optimizer;
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
        lr: f64 = 1e-2 in 0.0.. => "learning rate",
        /// How much of the averages is kept from step to step.
        alpha: f64 = 0.99 in 0.0..,
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-8 in 0.0.. => "epsilon value",
        /// Added to the gradient, times the parameter: an L2 penalty.
        weight_decay: f64 = 0.0 in 0.0..,
        /// How much of the momentum buffer is kept from step to step; 0 for no momentum.
        momentum: f64 = 0.0 in 0.0..,
        /// Whether to divide by the standard deviation of the gradient.
        centered: bool = false,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
            match (self.momentum > 0.0, self.centered) {
                (false, false) => &["square_avg"],
                (true, false) => &["square_avg", "momentum_buffer"],
                (false, true) => &["square_avg", "grad_avg"],
                (true, true) => &["square_avg", "grad_avg", "momentum_buffer"],
            }
        }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let RmsPropOptions { lr, alpha, eps, weight_decay, momentum, centered, maximize } = *self;
            let direction = Direction::coupled(maximize, weight_decay);
            let update = RmsPropUpdate { direction, lr, alpha, eps, momentum, centered };
            match (momentum > 0.0, centered) {
                (false, false) => step.run::<1>(&update),
                (true, true) => step.run::<3>(&update),
                _ => step.run::<2>(&update),
            }
        }
    }
}

/// The numbers of a step that are the same for all elements.
struct RmsPropUpdate {
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

impl RmsPropUpdate {
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
impl Update<1> for RmsPropUpdate {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [square_avg]: [&mut [T]; 1]) {
        let numbers = self.numbers::<T>();
        for ((p, g), square) in param.iter_mut().zip(grad).zip(square_avg) {
            *p -= numbers.lr * numbers.scaled(*p, *g, square);
        }
    }
}

/// With momentum, or centered.
impl Update<2> for RmsPropUpdate {
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
impl Update<3> for RmsPropUpdate {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [square_avg, grad_avg, buffer]: [&mut [T]; 3]) {
        let numbers = self.numbers::<T>();
        let averages = square_avg.iter_mut().zip(grad_avg);
        for (((p, g), (square, mean)), b) in param.iter_mut().zip(grad).zip(averages).zip(buffer) {
            *p = numbers.along(*p, numbers.standardized(*p, *g, square, mean), b);
        }
    }
}
