//! LAMB, Adam whose step is as long as the parameter for large batches.

use crate::direction::Direction;
use crate::hyperparameters::{Formula, optimizer};
use crate::method::{Checks, Turn, sweep_tensors, update_tensors};
use crate::moments::{self, Moments, correction};
use crate::sums::{WIDTH, total};
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
        lr: f64 = 1e-3,
        /// How much of the averages of the gradient and of its square is kept from step to step.
        betas: (f64, f64) = (0.9, 0.999),
        /// Added to the denominator, so that it is not 0.
        eps: f64 = 1e-6,
        /// How much of the parameter is in the direction.
        weight_decay: f64 = 1e-2,
        /// Whether to ascend.
        maximize: bool = false,
    }
}

impl Formula for LambOptions {
    #[track_caller]
    fn check_as(&self, name: &'static str) -> Result<()> {
        Checks(name).moments(self.lr, self.betas, self.eps, self.weight_decay)
    }

    fn tensors(&self, _sizes: &[usize]) -> &'static [&'static str] {
        &moments::SLOTS
    }

    fn advance(&self, turn: Turn<'_>) -> Result<()> {
        let LambOptions { lr, betas, eps, weight_decay, maximize } = *self;
        let Turn { number: t, param, grad, slots, .. } = turn;
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
        update_tensors(&Step { along, size: lr * ratio }, param, grad, [exp_avg, exp_avg_sq])
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
struct Step {
    along: Along<f64>,
    size: f64,
}

impl Update<2> for Step {
    #[inline(always)]
    fn run<T: Real>(&self, param: &mut [T], _grad: &[T], [exp_avg, exp_avg_sq]: [&mut [T]; 2]) {
        let (along, size) = (self.along.to::<T>(), T::from_f64(self.size));
        for ((p, m), v) in param.iter_mut().zip(exp_avg).zip(exp_avg_sq) {
            *p -= size * along.of(*p, *m, *v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::testing::{LENGTHS, Stepped, assert_close, gradient, parameters, tensor};

    /// The parameter and the averages after step `t`, by algorithm 2 of the paper in `f64`.
    fn by_hand(method: &LambOptions, t: u64, state: &mut [[f64; 3]], grads: impl Iterator<Item = f64>) {
        let (beta1, beta2) = method.betas;
        let mut directions = Vec::new();
        for ([p, m, v], g) in state.iter_mut().zip(grads) {
            let g = if method.maximize { -g } else { g };
            *m = beta1 * *m + (1.0 - beta1) * g;
            *v = beta2 * *v + (1.0 - beta2) * g * g;
            let [m, v] = [*m / (1.0 - beta1.powf(t as f64)), *v / (1.0 - beta2.powf(t as f64))];
            directions.push(m / (v.sqrt() + method.eps) + method.weight_decay * *p);
        }
        let norm = |squares: f64| squares.sqrt();
        let params = norm(state.iter().map(|[p, ..]| p * p).sum());
        let steps = norm(directions.iter().map(|u| u * u).sum());
        for ([p, ..], u) in state.iter_mut().zip(directions) {
            *p -= method.lr * params / steps * u;
        }
    }

    #[test]
    fn steps_follow_the_formula() {
        for n in LENGTHS {
            for maximize in [false, true] {
                let method = LambOptions::new().lr(0.1).maximize(maximize);
                let mut state: Vec<[f64; 3]> = parameters(n).map(|p| [p, 0.0, 0.0]).collect();
                let mut wide = Stepped::new::<f64>(&method, tensor::<f64>(parameters(n), &[n]));
                let mut single = Stepped::new::<f32>(&method, tensor::<f32>(parameters(n), &[n]));
                for t in 1..=3 {
                    by_hand(&method, t, &mut state, gradient(n, t));
                    wide.step(&tensor::<f64>(gradient(n, t), &[n]));
                    single.step(&tensor::<f32>(gradient(n, t), &[n]));
                    let expected = || state.iter().map(|[p, ..]| *p);
                    assert_close(wide.param.as_slice::<f64>().unwrap(), expected(), "f64");
                    assert_close(single.param.as_slice::<f32>().unwrap(), expected(), "f32");
                }
            }
        }
    }

    #[test]
    fn a_parameter_of_zeros_moves() {
        let method = LambOptions::new().lr(0.5).eps(0.0);
        let mut stepped = Stepped::new::<f64>(&method, tensor::<f64>([0.0, 0.0].into_iter(), &[2]));
        stepped.step(&tensor::<f64>([1.0, -1.0].into_iter(), &[2]));
        assert!(stepped.param.as_slice::<f64>().unwrap()[0] < -0.49);
    }
}
