//! LAMB, Adam whose step is as long as the parameter for large batches.

use crate::direction::Direction;
use crate::method::ParameterStep;
use crate::moments::{self, Moments, correction};
use crate::rows::optimizer;
use crate::sums::{WIDTH, total};
use crate::update::{sweep_tensors, update_tensors};
use namegrad_core::Result;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::{Sweep, Update};

optimizer! {
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
        /// How much of the averages of the gradient and of its square is kept from step to step.
        betas: (f64, f64) = (0.9, 0.999) in 0.0..1.0 => "beta parameter at index {index}",
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-6 in 0.0.. => "epsilon value",
        /// How much of the parameter is in the direction.
        weight_decay: f64 = 1e-2 in 0.0..,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
            &moments::SLOTS
        }

        fn update(&self, step: ParameterStep<'_>) -> Result<()> {
            let LambOptions { lr, betas, eps, weight_decay, maximize } = *self;
            let ParameterStep { number: t, param, grad, slots, .. } = step;
            let [exp_avg, exp_avg_sq] = slots.take()?;
            let along = Along {
                average_scale: correction(betas.0, t).recip(),
                root_scale: correction(betas.1, t).sqrt().recip(),
                eps,
                weight_decay,
            };
            let averages = Averages { moments: Moments::new(Direction::coupled(maximize, 0.0), betas), along };
            let squares = sweep_tensors(&averages, param, grad, [&mut *exp_avg, &mut *exp_avg_sq])?;
            let [param_norm, step_norm] = squares.map(f64::sqrt);
            let ratio = if param_norm > 0.0 && step_norm > 0.0 { param_norm / step_norm } else { 1.0 };
            update_tensors(&LambUpdate { along, size: lr * ratio }, param, grad, [exp_avg, exp_avg_sq])
        }
    }
}

/// The direction `u`.
#[derive(Clone, Copy)]
struct Along<T> {
    /// `1 / (1 - β₁ᵗ)`.
    average_scale: T,
    /// `1 / √(1 - β₂ᵗ)`.
    root_scale: T,
    eps: T,
    weight_decay: T,
}

impl Along<f64> {
    #[inline(always)]
    fn to<T: Real>(self) -> Along<T> {
        let [average_scale, root_scale, eps, weight_decay] =
            [self.average_scale, self.root_scale, self.eps, self.weight_decay].map(T::from_f64);
        Along { average_scale, root_scale, eps, weight_decay }
    }
}

impl<T: Real> Along<T> {
    #[inline(always)]
    fn of(self, param: T, exp_avg: T, exp_avg_sq: T) -> T {
        let r = exp_avg * self.average_scale / (exp_avg_sq.sqrt() * self.root_scale + self.eps);
        r + param * self.weight_decay
    }
}

/// Updates the averages. The sums are `‖param‖²` and `‖u‖²`.
struct Averages {
    moments: Moments<f64>,
    along: Along<f64>,
}

impl Averages {
    /// A part of at most [`WIDTH`] elements. Element `i` is added to the sums `i`.
    #[inline(always)]
    fn part<T: Real>(
        moments: Moments<T>,
        along: Along<T>,
        [params, grads]: [&[T]; 2],
        [exp_avg, exp_avg_sq]: [&mut [T]; 2],
        [params_sum, steps_sum]: &mut [[T; WIDTH]; 2],
    ) {
        let sums = params_sum.iter_mut().zip(steps_sum);
        let averages = exp_avg.iter_mut().zip(exp_avg_sq);
        for (((p, g), (m, v)), (params, steps)) in params.iter().zip(grads).zip(averages).zip(sums) {
            moments.average(*p, *g, m, v);
            let u = along.of(*p, *m, *v);
            *params += *p * *p;
            *steps += u * u;
        }
    }
}

impl Sweep<2, 2> for Averages {
    #[inline(always)]
    fn run<T: Real>(
        &self,
        _start: usize,
        param: &mut [T],
        grad: &[T],
        [exp_avg, exp_avg_sq]: [&mut [T]; 2],
    ) -> [f64; 2] {
        let (moments, along) = (self.moments.to::<T>(), self.along.to::<T>());
        let mut sums = [[T::ZERO; WIDTH]; 2];
        let ((params, p), (grads, g)) = (param.as_chunks::<WIDTH>(), grad.as_chunks::<WIDTH>());
        let (averages, m) = exp_avg.as_chunks_mut::<WIDTH>();
        let (squares, v) = exp_avg_sq.as_chunks_mut::<WIDTH>();
        for (((p, g), m), v) in params.iter().zip(grads).zip(averages).zip(squares) {
            Averages::part(moments, along, [p, g], [m, v], &mut sums);
        }
        Averages::part(moments, along, [p, g], [m, v], &mut sums);
        [total(&sums[0]), total(&sums[1])]
    }
}

/// A step of `size` along `u`.
struct LambUpdate {
    along: Along<f64>,
    size: f64,
}

impl Update<2> for LambUpdate {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], _grad: &[T], [exp_avg, exp_avg_sq]: [&mut [T]; 2]) {
        let (along, size) = (self.along.to::<T>(), T::from_f64(self.size));
        for ((p, m), v) in param.iter_mut().zip(exp_avg).zip(exp_avg_sq) {
            *p -= size * along.of(*p, *m, *v);
        }
    }
}
