//! Adafactor, whose average of the square of a matrix is a product of rows and columns.

use crate::direction::Direction;
use crate::method::ParameterStep;
use crate::rows::optimizer;
use crate::sums::{WIDTH, total};
use crate::update::sweep_tensors;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::Sweep;
use namegrad_core::{DType, NamedTensor, Result, keep};

optimizer! {
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
            let precision = if param.dtype() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
            let scales = Scales {
                options: self,
                t: t as f64,
                take: (t as f64).powf(self.beta2_decay),
                floor: self.eps.0.unwrap_or(precision),
            };
            if param.ndim() > 1 {
                let [row_var, col_var] = slots.take()?;
                scales.matrix(param, grad, row_var, col_var)
            } else {
                let [variance] = slots.take()?;
                let sums = sweep_tensors(&Averaged { scales: &scales }, param, grad, [&mut *variance])?;
                let along = Along { v: Own, ends: scales.ends(param.numel(), sums) };
                sweep_tensors(&along, param, grad, [variance]).map(drop)
            }
        }
    }
}

/// The numbers of a step that are the same for all elements.
struct Scales<'a> {
    options: &'a AdafactorOptions,
    t: f64,
    /// The share of the new squares in the averages.
    take: f64,
    /// The smallest root.
    floor: f64,
}

/// The numbers that the size of the step depends on.
#[derive(Clone, Copy)]
struct Ends {
    direction: Direction<f64>,
    /// The smallest square.
    floor_sq: f64,
    /// By what `u` is multiplied.
    size: f64,
}

impl Scales<'_> {
    /// The ends for a parameter of `n` elements, from the sums of the squares of `u` and of the parameter.
    fn ends(&self, n: usize, [steps, params]: [f64; 2]) -> Ends {
        let rms = |squares: f64| squares.sqrt() / (n as f64).sqrt();
        let AdafactorOptions { lr, eps, d, weight_decay, maximize, .. } = *self.options;
        let alpha = f64::max(eps.1, rms(params)) * f64::min(lr, 1.0 / self.t.sqrt());
        let size = alpha / f64::max(1.0, rms(steps) / d);
        let direction = Direction::decoupled(maximize, lr, weight_decay);
        Ends { direction, floor_sq: self.floor * self.floor, size }
    }

    fn matrix(
        &self,
        param: &mut NamedTensor,
        grad: &NamedTensor,
        row_var: &mut NamedTensor,
        col_var: &mut NamedTensor,
    ) -> Result<()> {
        let sizes = grad.sizes();
        let (rows, cols) = (sizes[sizes.len() - 2], sizes[sizes.len() - 1]);
        let average = |var: &mut NamedTensor, dim: isize, count: usize| {
            let mean = grad.vector_norm(keep(dim))?.square()?.div(count as f64)?;
            let names = var.names().clone();
            *var = var.unnamed().lerp(&mean, self.take)?.with_names(names);
            var.to_vec::<f64>()
        };
        let mut row_means = average(row_var, -1, cols)?;
        let col_means = average(col_var, -2, rows)?;
        for rows in row_means.chunks_mut(rows) {
            let mean = rows.iter().sum::<f64>() / rows.len() as f64;
            rows.iter_mut().for_each(|row| *row /= f64::max(mean, self.floor));
        }
        let v = Product { row_means: &row_means, col_means: &col_means, rows, cols };
        let floor_sq = self.floor * self.floor;
        let sums = sweep_tensors(&Measured { v: &v, floor_sq }, param, grad, [])?;
        sweep_tensors(&Along { v: &v, ends: self.ends(param.numel(), sums) }, param, grad, []).map(drop)
    }
}

/// The average of the square of a matrix: the product of a number of its row and one of its column.
struct Product<'a> {
    row_means: &'a [f64],
    col_means: &'a [f64],
    rows: usize,
    cols: usize,
}

impl Product<'_> {
    /// The next elements from position `at` that are in one row, at most `length`: their number, the number
    /// of their row and those of their columns.
    #[inline(always)]
    fn segment(&self, at: usize, length: usize) -> (f64, &[f64]) {
        let (row, col) = (at / self.cols, at % self.cols);
        let cols = &self.col_means[row / self.rows * self.cols..][col..self.cols];
        (self.row_means[row], &cols[..cols.len().min(length)])
    }
}

/// Adds the squares of `u` and of the parameter, element `i` to the lanes `i`.
#[inline(always)]
fn add_squares<T: Real>(u: T, param: T, i: usize, lanes: &mut [[T; WIDTH]; 2]) {
    lanes[0][i] += u * u;
    lanes[1][i] += param * param;
}

/// The sums of the squares of `u` and of the parameter, for a matrix.
struct Measured<'a> {
    v: &'a Product<'a>,
    floor_sq: f64,
}

impl Measured<'_> {
    /// A part of a row.
    #[inline(always)]
    fn part<T: Real>(&self, row: f64, cols: &[f64], param: &[T], grad: &[T], lanes: &mut [[T; WIDTH]; 2]) {
        let (row, floor_sq) = (T::from_f64(row), T::from_f64(self.floor_sq));
        for i in 0..WIDTH.min(cols.len()).min(param.len()).min(grad.len()) {
            let v = (row * T::from_f64(cols[i])).maximum(floor_sq);
            add_squares(grad[i] / v.sqrt(), param[i], i, lanes);
        }
    }
}

impl Sweep<0, 2> for Measured<'_> {
    #[inline(always)]
    fn run<T: Real>(&self, start: usize, param: &mut [T], grad: &[T], []: [&mut [T]; 0]) -> [f64; 2] {
        let (mut lanes, mut done) = ([[T::ZERO; WIDTH]; 2], 0);
        while done < param.len() {
            let (row, cols) = self.v.segment(start + done, param.len() - done);
            let (params, grads) = (&param[done..][..cols.len()], &grad[done..][..cols.len()]);
            let (whole, rest) = cols.as_chunks::<WIDTH>();
            let ((params, p), (grads, g)) = (params.as_chunks::<WIDTH>(), grads.as_chunks::<WIDTH>());
            for ((cols, p), g) in whole.iter().zip(params).zip(grads) {
                self.part(row, cols, p, g, &mut lanes);
            }
            self.part(row, rest, p, g, &mut lanes);
            done += cols.len();
        }
        [total(&lanes[0]), total(&lanes[1])]
    }
}

/// A step along `u`.
struct Along<V> {
    v: V,
    ends: Ends,
}

impl Along<&Product<'_>> {
    /// A part of a row.
    #[inline(always)]
    fn part<T: Real>(&self, row: f64, cols: &[f64], param: &mut [T], grad: &[T]) {
        let direction = self.ends.direction.to::<T>();
        let [row, floor_sq, size] = [row, self.ends.floor_sq, self.ends.size].map(T::from_f64);
        for ((p, g), col) in param.iter_mut().zip(grad).zip(cols) {
            let v = (row * T::from_f64(*col)).maximum(floor_sq);
            *p = direction.shrunk(*p) - size * direction.of(*p, *g) / v.sqrt();
        }
    }
}

impl Sweep<0, 0> for Along<&Product<'_>> {
    #[inline(always)]
    fn run<T: Real>(&self, start: usize, param: &mut [T], grad: &[T], []: [&mut [T]; 0]) -> [f64; 0] {
        let mut done = 0;
        while done < param.len() {
            let (row, cols) = self.v.segment(start + done, param.len() - done);
            self.part(row, cols, &mut param[done..][..cols.len()], &grad[done..][..cols.len()]);
            done += cols.len();
        }
        []
    }
}

/// Updates the average of the square of a vector. The sums are those of the squares of `u` and of the
/// parameter.
struct Averaged<'a> {
    scales: &'a Scales<'a>,
}

impl Averaged<'_> {
    /// A part of at most [`WIDTH`] elements.
    #[inline(always)]
    fn part<T: Real>(&self, param: &[T], grad: &[T], variance: &mut [T], lanes: &mut [[T; WIDTH]; 2]) {
        let Scales { take, floor, .. } = *self.scales;
        let [keep, take, floor] = [1.0 - take, take, floor].map(T::from_f64);
        for i in 0..WIDTH.min(param.len()).min(grad.len()).min(variance.len()) {
            let g = grad[i];
            variance[i] = variance[i] * keep + g * g * take;
            let v = variance[i].maximum(floor * floor);
            add_squares(g / v.sqrt(), param[i], i, lanes);
        }
    }
}

impl Sweep<1, 2> for Averaged<'_> {
    #[inline(always)]
    fn run<T: Real>(&self, _: usize, param: &mut [T], grad: &[T], [variance]: [&mut [T]; 1]) -> [f64; 2] {
        let mut lanes = [[T::ZERO; WIDTH]; 2];
        let ((params, p), (grads, g)) = (param.as_chunks::<WIDTH>(), grad.as_chunks::<WIDTH>());
        let (variances, v) = variance.as_chunks_mut::<WIDTH>();
        for ((p, g), v) in params.iter().zip(grads).zip(variances) {
            self.part(p, g, v, &mut lanes);
        }
        self.part(p, g, v, &mut lanes);
        [total(&lanes[0]), total(&lanes[1])]
    }
}

/// The average of the square of a vector, which is a slot.
struct Own;

impl Sweep<1, 0> for Along<Own> {
    #[inline(always)]
    fn run<T: Real>(&self, _: usize, param: &mut [T], grad: &[T], [variance]: [&mut [T]; 1]) -> [f64; 0] {
        let Own = self.v;
        let direction = self.ends.direction.to::<T>();
        let [floor_sq, size] = [self.ends.floor_sq, self.ends.size].map(T::from_f64);
        for ((p, g), v) in param.iter_mut().zip(grad).zip(variance) {
            *p = direction.shrunk(*p) - size * direction.of(*p, *g) / v.maximum(floor_sq).sqrt();
        }
        []
    }
}
