//! Rprop, which looks at the signs of gradients alone.

use super::*;

options! {
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
        lr: f64 = 1e-2 in 0.0.. => "learning rate",
        /// By how much a step size shrinks, `η₋`, and grows, `η₊`.
        etas: (f64, f64) = (0.5, 1.2),
        /// The smallest and the largest step size.
        step_sizes: (f64, f64) = (1e-6, 50.0) in .. => "smallest step size|largest step size",
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn check(&self) -> Result<()> {
            let (shrink, grow) = self.etas;
            let holds = 0.0 < shrink && shrink < 1.0 && 1.0 < grow && grow.is_finite();
            Error::ensure(holds, ErrorKind::Value, Self::NAME, || {
                format!("Invalid eta values: {shrink:?}, {grow:?}; it must be that 0 < η₋ < 1 < η₊")
            })
        }

        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] { &["prev", "step_size"] }

        fn slot_start(&self, slot: &str) -> f64 { if slot == "step_size" { self.lr } else { 0.0 } }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let ((shrink, grow), (low, high)) = (self.etas, self.step_sizes);
            step.apply(self, [sign_of(self.maximize), shrink, grow, low, high])
        }
    }

    impl Formula<5, 2> |[ascend, shrink, grow, low, high], p, g, [prev, size]| {
        let d = g * ascend;
        let same = d * prev;
        let factor = if same < T::ZERO { shrink } else { T::ONE };
        let factor = if same > T::ZERO { grow } else { factor };
        let size = (size * factor).clamp(low, high);
        let d = if same < T::ZERO { T::ZERO } else { d };
        (p - sign(d) * size, [d, size])
    }
}
