//! Adafactor, whose average of the square of a matrix is a product of rows and columns.

use super::*;
use namegrad_core::keep;

options! {
    /// Adafactor: divides the gradient by the root of an average of its square, of which a matrix keeps only
    /// the means over rows and columns. The length of a step is relative to that of the parameter.
    ///
    /// `g` is the gradient, negated if `maximize`, `t` is the number of the step, from 1, `rms` the root of
    /// the mean square, and `w = t^beta2_decay`:
    ///
    /// ```text
    /// alpha   = max(eps.1, rms(param)) · min(lr, 1/√t)
    /// row_var = (1 - w) · row_var + w · mean of g² over the last dim
    /// col_var = (1 - w) · col_var + w · mean of g² over the dim before it
    /// v       = row_var · col_var / max(mean(row_var), eps.0)
    /// u       = g / max(√v, eps.0)
    /// param   = param · (1 - lr · weight_decay) - alpha · u / max(1, rms(u) / d)
    /// ```
    ///
    /// A parameter with at most one dim has the average `variance` of `g²` in place of `v`; further dims of a
    /// parameter with more than two are a batch of matrices.
    ///
    /// # Source
    /// Shazeer, Stern, *Adafactor: Adaptive Learning Rates with Sublinear Memory Cost* (arXiv:1804.04235),
    /// algorithms 4 and 5, in the form of `torch.optim.Adafactor`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Adafactor, Optimizer};
    /// let weight = Parameter::new(Tensor::ones([("out", 30), ("in", 20)])?)?;
    /// let mut optimizer = Adafactor::builder([weight.clone()]).lr(0.1).build()?;
    /// for _ in 0..50 {
    ///     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// }
    /// assert!(weight.tensor().abs()?.amax(..)?.item::<f64>()? < 0.1);
    /// // 50 numbers for 600 elements
    /// assert_eq!(optimizer.state_dict().groups[0].parameters[0].slots["row_var"].sizes(), [30, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    Adafactor
    AdafactorOptions {
        /// The largest relative step size.
        lr: f64 = 1e-2 in 0.0.. => "Learning rate should be >= 0 but is: {}",
        /// The power of the step with which new gradients enter the averages.
        beta2_decay: f64 = (-0.8) in ..=0.0 => "beta2_decay should be <= 0 but is: {}",
        /// The smallest root in the denominator, `None` for the precision of the dtype, and the smallest
        /// `rms` of a parameter.
        eps: (Option<f64>, f64) = (None, 1e-3) in 0.0.. => "epsilon1 should be >= 0 but is: {}|epsilon2 should be >= 0 but is: {}",
        /// The `rms` from which `u` is scaled down.
        d: f64 = 1.0 in 1.0.. => "Clipping threshold d should be >= 1 but is: {}",
        /// The share by which the parameter shrinks in each step, times `lr`.
        weight_decay: f64 = 0.0 in 0.0.. => "weight_decay should be >= 0 but is: {}",
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn needs_whole() -> bool { true }

        fn slots(&self, sizes: &[usize]) -> &'static [&'static str] {
            if sizes.len() > 1 { &["row_var", "col_var"] } else { &["variance"] }
        }

        fn slot_sizes(&self, slot: &str, sizes: &[usize]) -> Vec<usize> {
            let mut sizes = sizes.to_vec();
            let dims = sizes.len();
            match slot {
                "row_var" if dims > 1 => sizes[dims - 1] = 1,
                "col_var" if dims > 1 => sizes[dims - 2] = 1,
                _ => {}
            }
            sizes
        }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let ParameterStep { number: t, param, grad, slots, .. } = step;
            if param.numel() == 0 {
                return Ok(());
            }
            // `w` is the share of the new squares in an average over a dim, or of all elements.
            let w = (t as f64).powf(self.beta2_decay);
            let average = |var: &mut NamedTensor, dim: Option<usize>| -> Result<NamedTensor> {
                let mean = match dim {
                    Some(dim) => grad.vector_norm(keep(dim as isize))?.square()?.div(grad.sizes()[dim] as f64)?,
                    None => grad.square()?,
                };
                let mean = var.unnamed().lerp(&mean, w)?;
                *var = mean.clone().with_names(var.names().clone());
                Ok(mean)
            };
            let precision = if param.dtype() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
            let floor = self.eps.0.unwrap_or(precision);
            let mut v = match param.ndim() {
                0 | 1 => {
                    let [variance] = slots.take()?;
                    average(variance, None)?
                }
                dims => {
                    let [row_var, col_var] = slots.take()?;
                    let (rows, cols) = (average(row_var, Some(dims - 1))?, average(col_var, Some(dims - 2))?);
                    rows.div(&rows.mean(keep(-2))?.clamp_min(floor)?)?.mul(&cols)?
                }
            };
            // `v` becomes `u`.
            let (numbers, mut squares) = ([floor * floor], [0.0; 2]);
            let divided = with::<_, 1, 3, 2>(&DividedFormula, &numbers);
            update::run(&divided, param, grad, &mut [&mut v].into_iter(), &mut squares)?;
            let [steps, params] = squares.map(|sum| (sum / param.numel() as f64).sqrt());
            let alpha = f64::max(self.eps.1, params) * f64::min(self.lr, 1.0 / (t as f64).sqrt());
            let size = alpha / f64::max(1.0, steps / self.d);
            let numbers = [1.0 - self.lr * self.weight_decay, -size * sign_of(self.maximize)];
            apply(&MixFormula, numbers, param, &v, [])
        }
    }
}

/// The gradient divided by the root of its average square, and the sums of the squares of that and of the
/// parameter.
struct DividedFormula;

impl Formula<1, 3> for DividedFormula {
    #[inline(always)]
    fn apply<T: Real>([floor_sq]: [T; 1], p: T, g: T, [v, steps, params]: [T; 3]) -> (T, [T; 3]) {
        let u = g / v.maximum(floor_sq).sqrt();
        (p, [u, steps + u * u, params + p * p])
    }
}
