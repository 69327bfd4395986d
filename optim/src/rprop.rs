//! Rprop, which looks at the signs of gradients alone.

use crate::direction::Direction;
use crate::hyperparameters::{Formula, optimizer};
use crate::method::{Checks, Turn};
use namegrad_core::Result;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::Update;

optimizer! {
    /// Rprop, resilient backpropagation: each element has its own step size, which grows while the gradient
    /// keeps its sign and shrinks when it changes. It is for gradients of a whole data set, not of batches.
    ///
    /// `g` is the gradient, negated if `maximize`. `prev` is the gradient of the step before, and `step_size`
    /// starts with `lr`:
    ///
    /// ```text
    /// step_size *= η₊ if g · prev > 0,  η₋ if g · prev < 0
    /// step_size  = clamp(step_size, step_sizes.0, step_sizes.1)
    /// g          = 0 if g · prev < 0
    /// param     -= sign(g) · step_size
    /// prev       = g
    /// ```
    ///
    /// # Source
    /// Riedmiller, Braun, *A Direct Adaptive Method for Faster Backpropagation Learning: The RPROP Algorithm*
    /// (ICNN 1993), in the form of `torch.optim.Rprop`, which does not take a step back.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Optimizer, Rprop};
    /// let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
    /// let mut optimizer = Rprop::builder([weight.clone()]).lr(0.1).build()?;
    /// for _ in 0..50 {
    ///     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// }
    /// assert!(weight.tensor().to_vec::<f32>()?.iter().all(|w| w.abs() < 1e-3));
    /// # Ok::<(), Error>(())
    /// ```
    Rprop
    RpropOptions {
        /// The first step size.
        lr: f64 = 1e-2,
        /// By how much a step size shrinks, `η₋`, and grows, `η₊`.
        etas: (f64, f64) = (0.5, 1.2),
        /// The smallest and the largest step size.
        step_sizes: (f64, f64) = (1e-6, 50.0),
        /// Whether to ascend.
        maximize: bool = false,
    }
}

impl Formula for RpropOptions {
    #[track_caller]
    fn check_as(&self, name: &'static str) -> Result<()> {
        let checks = Checks(name);
        checks.not_negative("learning rate", self.lr)?;
        let (shrink, grow) = self.etas;
        checks.require(0.0 < shrink && shrink < 1.0 && 1.0 < grow && grow.is_finite(), || {
            format!("Invalid eta values: {shrink:?}, {grow:?}; it must be that 0 < η₋ < 1 < η₊")
        })?;
        checks.not_nan("smallest step size", self.step_sizes.0)?;
        checks.not_nan("largest step size", self.step_sizes.1)
    }

    fn tensors(&self, _sizes: &[usize]) -> &'static [&'static str] {
        &["prev", "step_size"]
    }

    fn tensor_start(&self, slot: &str) -> f64 {
        if slot == "step_size" { self.lr } else { 0.0 }
    }

    fn advance(&self, turn: Turn<'_>) -> Result<()> {
        let direction = Direction::coupled(self.maximize, 0.0);
        turn.run(&Step { direction, etas: self.etas, step_sizes: self.step_sizes })
    }
}

/// The numbers of a step that are the same for all elements.
struct Step {
    direction: Direction<f64>,
    etas: (f64, f64),
    step_sizes: (f64, f64),
}

impl Update<2> for Step {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], grad: &[T], [prev, step_size]: [&mut [T]; 2]) {
        let direction = self.direction.to::<T>();
        let [shrink, grow, low, high] =
            [self.etas.0, self.etas.1, self.step_sizes.0, self.step_sizes.1].map(T::from_f64);
        for (((p, g), prev), size) in param.iter_mut().zip(grad).zip(prev).zip(step_size) {
            let d = direction.of(*p, *g);
            let same = d * *prev;
            let factor = if same < T::ZERO { shrink } else { T::ONE };
            let factor = if same > T::ZERO { grow } else { factor };
            *size = (*size * factor).clamp(low, high);
            let d = if same < T::ZERO { T::ZERO } else { d };
            *p -= sign(d) * *size;
            *prev = d;
        }
    }
}

/// -1, 0 or 1; NaN of NaN.
#[inline(always)]
pub(crate) fn sign<T: Real>(x: T) -> T {
    let negative = if x < T::ZERO { -T::ONE } else { x };
    if x > T::ZERO { T::ONE } else { negative }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::testing::{LENGTHS, check_steps};

    /// `[param, prev, step_size]` of one element after a step, by `torch.optim`'s loop in `f64`.
    fn by_hand(method: &RpropOptions, [p, prev, size]: [f64; 3], g: f64) -> [f64; 3] {
        let mut g = if method.maximize { -g } else { g };
        let factor = match g * prev {
            same if same > 0.0 => method.etas.1,
            same if same < 0.0 => method.etas.0,
            _ => 1.0,
        };
        let size = f64::clamp(size * factor, method.step_sizes.0, method.step_sizes.1);
        if factor < 1.0 {
            g = 0.0;
        }
        let sign = if g == 0.0 { 0.0 } else { g.signum() };
        [p - sign * size, g, size]
    }

    #[test]
    fn steps_follow_the_formula() {
        for n in LENGTHS {
            for (step_sizes, maximize) in [((1e-6, 50.0), false), ((0.06, 0.11), true)] {
                let method = RpropOptions::new().lr(0.1).step_sizes(step_sizes).maximize(maximize);
                let after = |_, state, g| by_hand(&method, state, g);
                check_steps::<f32, _, _>(n, &method, after);
                check_steps::<f64, _, _>(n, &method, after);
            }
        }
        for (x, want) in [(-2.0, -1.0), (0.0, 0.0), (3.0, 1.0)] {
            assert_eq!(sign(x), want);
        }
        assert!(sign(f32::NAN).is_nan());
    }
}
