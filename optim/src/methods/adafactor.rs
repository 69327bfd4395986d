//! Adafactor, whose average of the square of a matrix is a product of rows and columns.

use super::*;
use crate::norm::{WIDTH, rare, total};
use crate::update::sweep_tensors;
use namegrad_core::cpu::update::Sweep;
use namegrad_core::{DType, keep};

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
            let dims = param.ndim();
            let (rows, cols) = match param.sizes() {
                [.., rows, cols] => (*rows, *cols),
                _ => (1, param.numel()),
            };
            // `w` is the share of the new squares in an average over a dim, or of all elements.
            let w = (t as f64).powf(self.beta2_decay);
            let average = |var: &mut NamedTensor, dim: Option<isize>| {
                let mean = match dim {
                    Some(dim) => grad.vector_norm(keep(dim))?.square()?.div(if dim == -1 { cols } else { rows } as f64)?,
                    None => grad.square()?,
                };
                let names = var.names().clone();
                *var = var.unnamed().lerp(&mean, w)?.with_names(names);
                var.to_vec::<f64>()
            };
            let precision = if param.dtype() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
            let floor = self.eps.0.unwrap_or(precision);
            let (mut row_means, col_means) = if dims > 1 {
                let [row_var, col_var] = slots.take()?;
                (average(row_var, Some(-1))?, average(col_var, Some(-2))?)
            } else {
                let [variance] = slots.take()?;
                (vec![1.0], average(variance, None)?)
            };
            if dims > 1 {
                for rows in row_means.chunks_mut(rows) {
                    let mean = rows.iter().sum::<f64>() / rows.len() as f64;
                    rows.iter_mut().for_each(|row| *row /= f64::max(mean, floor));
                }
            }
            let v = OuterAverage { row_means: &row_means, col_means: &col_means, rows, cols, floor_sq: floor * floor };
            let [steps, params] = sweep_tensors(&Measured(&v), param, grad, [])?.map(|squares| {
                squares.sqrt() / (param.numel() as f64).sqrt() // the root of the mean square
            });
            let alpha = f64::max(self.eps.1, params) * f64::min(self.lr, 1.0 / (t as f64).sqrt());
            let size = alpha / f64::max(1.0, steps / self.d);
            let numbers = [1.0 - self.lr * self.weight_decay, size * sign_of(self.maximize)];
            sweep_tensors(&AlongDirection { v: &v, numbers }, param, grad, []).map(drop)
        }
    }
}

/// The average of the square of a matrix: the product of a number of its row and one of its column. A vector
/// is one row.
struct OuterAverage<'a> {
    row_means: &'a [f64],
    col_means: &'a [f64],
    rows: usize,
    cols: usize,
    /// The smallest square.
    floor_sq: f64,
}

impl OuterAverage<'_> {
    /// The next elements from position `at` that are in one row, at most `length`: their number, the number
    /// of their row and those of their columns.
    #[inline(always)]
    fn segment(&self, at: usize, length: usize) -> (f64, &[f64]) {
        let (row, col) = (at / self.cols, at % self.cols);
        let cols = &self.col_means[row / self.rows * self.cols..][col..self.cols];
        (self.row_means[row], &cols[..cols.len().min(length)])
    }
}

/// The sums of the squares of `u` and of the parameter.
struct Measured<'a>(&'a OuterAverage<'a>);

impl Measured<'_> {
    /// A part of a row. Element `i` is added to the lanes `i`.
    #[inline(always)]
    fn part<T: Real>(&self, row: f64, cols: &[f64], param: &[T], grad: &[T], lanes: &mut [[T; WIDTH]; 2]) {
        let (row, floor_sq) = (T::from_f64(row), T::from_f64(self.0.floor_sq));
        for i in 0..WIDTH.min(cols.len()).min(param.len()).min(grad.len()) {
            let i = rare::<T>(i);
            let u = grad[i] / (row * T::from_f64(cols[i])).maximum(floor_sq).sqrt();
            lanes[0][i] += u * u;
            lanes[1][i] += param[i] * param[i];
        }
    }
}

impl Sweep<0, 2> for Measured<'_> {
    #[inline(always)]
    fn run<T: Real>(&self, start: usize, param: &mut [T], grad: &[T], []: [&mut [T]; 0]) -> [f64; 2] {
        let (mut lanes, mut done) = ([[T::ZERO; WIDTH]; 2], 0);
        while done < param.len() {
            let (row, cols) = self.0.segment(start + done, param.len() - done);
            let (params, grads) = (&param[done..][..cols.len()], &grad[done..][..cols.len()]);
            let (whole, rest) = cols.as_chunks::<WIDTH>();
            let ((params, p), (grads, g)) = (params.as_chunks::<WIDTH>(), grads.as_chunks::<WIDTH>());
            for i in 0..whole.len() {
                self.part(row, &whole[i], &params[i], &grads[i], &mut lanes);
            }
            self.part(row, rest, p, g, &mut lanes);
            done += cols.len();
        }
        [total(&lanes[0]), total(&lanes[1])]
    }
}

/// A step along `u`: `param = shrink · param - size · u`.
struct AlongDirection<'a> {
    v: &'a OuterAverage<'a>,
    numbers: [f64; 2],
}

impl Sweep<0, 0> for AlongDirection<'_> {
    #[inline(always)]
    fn run<T: Real>(&self, start: usize, param: &mut [T], grad: &[T], []: [&mut [T]; 0]) -> [f64; 0] {
        let ([shrink, size], mut done) = (rounded(&self.numbers), 0);
        while done < param.len() {
            let (row, cols) = self.v.segment(start + done, param.len() - done);
            let (row, floor_sq) = (T::from_f64(row), T::from_f64(self.v.floor_sq));
            let (params, grads) = (&mut param[done..][..cols.len()], &grad[done..][..cols.len()]);
            for i in 0..cols.len() {
                let i = rare::<T>(i);
                let v = (row * T::from_f64(cols[i])).maximum(floor_sq);
                params[i] = params[i] * shrink - size * grads[i] / v.sqrt();
            }
            done += cols.len();
        }
        []
    }
}
