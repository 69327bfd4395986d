//! One step of an optimizer over a parameter, in one pass over its slices.
//!
//! The formulas are those of PyTorch's `torch.optim` (the loops for a single tensor), in the same order of operations. All slices of
//! a step have the length of the parameter.

use super::math::{Real, simd_real};
use super::threads::{Parts, parallel};
use std::ops::Range;

/// Below this many elements one thread is faster than two.
const PARALLEL: usize = 1 << 16;
/// Elements that a thread takes in one go.
const TASK: usize = 1 << 14;

/// What [`sgd`] takes besides slices; see `torch.optim.SGD`.
#[derive(Clone, Copy, Debug)]
pub struct Sgd {
    /// The learning rate, per step.
    pub lr: f64,
    /// How much of the momentum is kept from step to step.
    pub momentum: f64,
    /// How much of the gradient does not enter the momentum.
    pub dampening: f64,
    /// Added to the gradient, times the parameter.
    pub weight_decay: f64,
    /// Whether to look ahead along the momentum.
    pub nesterov: bool,
    /// Whether to ascend.
    pub maximize: bool,
    /// Whether this is the first step: then the momentum is the gradient itself, undampened.
    pub first: bool,
}

/// What [`adam`] takes besides slices; see `torch.optim.Adam` and `torch.optim.AdamW`.
#[derive(Clone, Copy, Debug)]
pub struct Adam {
    /// The learning rate, per step.
    pub lr: f64,
    /// How much of the averages of the gradient and of its square is kept from step to step.
    pub betas: (f64, f64),
    /// Added to the denominator.
    pub eps: f64,
    /// Added to the gradient, times the parameter; or, if `decoupled`, what the parameter shrinks by, times `lr`.
    pub weight_decay: f64,
    /// Whether the decay is AdamW's.
    pub decoupled: bool,
    /// Whether to ascend.
    pub maximize: bool,
    /// `1 - beta^t` for both betas, `t` the number of this step from 1.
    pub bias_corrections: (f64, f64),
}

/// One step of stochastic gradient descent; `momentum_buffer` is needed if `step.momentum` is not 0, and is written at the first step.
///
/// With `d = ±grad + weight_decay param`: `buffer = momentum buffer + (1 - dampening) d`; then `d` becomes `buffer`, or with `nesterov`
/// `d + momentum buffer`; `param -= lr d`.
///
/// # Panics
/// If the slices differ in length.
pub fn sgd<T: Real>(step: &Sgd, param: &mut [T], grad: &[T], momentum_buffer: Option<&mut [T]>) {
    let c = T::from_f64;
    let sign = c(if step.maximize { -1.0 } else { 1.0 });
    let Some(buffer) = momentum_buffer.filter(|_| step.momentum != 0.0) else {
        assert_eq!(param.len(), grad.len(), "one gradient for each parameter");
        let scalars = [c(step.lr), sign, c(step.weight_decay)];
        return in_parts([param], |at, [p]| sgd_plain(p, &grad[at], &scalars));
    };
    assert_eq!(
        [param.len(); 2],
        [grad.len(), buffer.len()],
        "one gradient and one momentum for each parameter"
    );
    let (keep, take) = if step.first { (0.0, 1.0) } else { (step.momentum, 1.0 - step.dampening) };
    let scalars = [c(step.lr), sign, c(step.weight_decay), c(keep), c(take), c(step.momentum)];
    if step.first {
        buffer.fill(T::ZERO);
    }
    in_parts([param, buffer], |at, [p, b]| sgd_momentum(p, &grad[at], b, &scalars, step.nesterov));
}

/// One step of Adam or AdamW; with `max_exp_avg_sq` its AMSGrad form.
///
/// `exp_avg = beta1 exp_avg + (1 - beta1) d`, `exp_avg_sq = beta2 exp_avg_sq + (1 - beta2) d²`,
/// `param -= lr / c1 · exp_avg / (√exp_avg_sq / √c2 + eps)` with the bias corrections `c1`, `c2`. AMSGrad takes the largest
/// `exp_avg_sq` so far in the denominator.
///
/// # Panics
/// If the slices differ in length.
pub fn adam<T: Real>(
    step: &Adam,
    param: &mut [T],
    grad: &[T],
    exp_avg: &mut [T],
    exp_avg_sq: &mut [T],
    max_exp_avg_sq: Option<&mut [T]>,
) {
    let c = T::from_f64;
    let n = param.len();
    assert_eq!(
        [n; 3],
        [grad.len(), exp_avg.len(), exp_avg_sq.len()],
        "two averages and one gradient for each parameter"
    );
    let (coupled, shrink) =
        if step.decoupled { (0.0, 1.0 - step.lr * step.weight_decay) } else { (step.weight_decay, 1.0) };
    let scalars = [
        if step.maximize { -1.0 } else { 1.0 },
        coupled,
        shrink,
        1.0 - step.betas.0,
        step.betas.1,
        1.0 - step.betas.1,
        step.lr / step.bias_corrections.0,
        step.bias_corrections.1.sqrt().recip(),
        step.eps,
    ]
    .map(c);
    let Some(max) = max_exp_avg_sq else {
        return in_parts([param, exp_avg, exp_avg_sq], |at, [p, m, v]| {
            adam_slice(p, &grad[at], m, v, &scalars)
        });
    };
    assert_eq!(n, max.len(), "one maximum for each parameter");
    in_parts([param, exp_avg, exp_avg_sq, max], |at, [p, m, v, max]| {
        amsgrad_slice(p, &grad[at], m, v, max, &scalars);
    });
}

/// `f` on the same range of each slice, in threads if it is worth it.
fn in_parts<T: Real, const N: usize>(slices: [&mut [T]; N], f: impl Fn(Range<usize>, [&mut [T]; N]) + Sync) {
    let n = slices[0].len();
    if n < PARALLEL {
        return f(0..n, slices);
    }
    let slices = slices.map(Parts::new);
    parallel(n, TASK, |range| {
        // SAFETY: ranges do not overlap.
        let parts = slices.each_ref().map(|slice| unsafe { slice.part(range.clone()) });
        f(range, parts);
    });
}

simd_real! {
    fn sgd_plain[T: Real](param: &mut [T], grad: &[T], scalars: &[T]) {
        let &[lr, sign, weight_decay] = scalars else { unreachable!() };
        for (p, g) in param.iter_mut().zip(grad) {
            let d = *p * weight_decay + *g * sign;
            *p -= lr * d;
        }
    }
}

simd_real! {
    fn sgd_momentum[T: Real](param: &mut [T], grad: &[T], buffer: &mut [T], scalars: &[T], nesterov: bool) {
        let &[lr, sign, weight_decay, keep, take, momentum] = scalars else { unreachable!() };
        for ((p, g), b) in param.iter_mut().zip(grad).zip(buffer) {
            let d = *p * weight_decay + *g * sign;
            *b = *b * keep + d * take;
            let ahead = d + *b * momentum;
            *p -= lr * if nesterov { ahead } else { *b };
        }
    }
}

/// The new averages and the gradient's part of the step: `(param without step, exp_avg, exp_avg_sq)`.
#[inline(always)]
fn adam_averages<T: Real>(p: T, g: T, m: T, v: T, scalars: &[T; 9]) -> (T, T, T) {
    let &[sign, coupled, shrink, one_minus_beta1, beta2, one_minus_beta2, ..] = scalars;
    let p = p * shrink;
    let d = p * coupled + g * sign;
    (p, m + (d - m) * one_minus_beta1, v * beta2 + d * d * one_minus_beta2)
}

simd_real! {
    fn adam_slice[T: Real](param: &mut [T], grad: &[T], exp_avg: &mut [T], exp_avg_sq: &mut [T], scalars: &[T]) {
        let scalars: &[T; 9] = scalars.try_into().expect("nine numbers");
        let &[.., step_size, root_scale, eps] = scalars;
        for (((p, g), m), v) in param.iter_mut().zip(grad).zip(exp_avg).zip(exp_avg_sq) {
            let q;
            (q, *m, *v) = adam_averages(*p, *g, *m, *v, scalars);
            *p = q - step_size * *m / (v.sqrt() * root_scale + eps);
        }
    }
}

simd_real! {
    fn amsgrad_slice[T: Real](
        param: &mut [T], grad: &[T], exp_avg: &mut [T], exp_avg_sq: &mut [T], max: &mut [T], scalars: &[T],
    ) {
        let scalars: &[T; 9] = scalars.try_into().expect("nine numbers");
        let &[.., step_size, root_scale, eps] = scalars;
        for ((((p, g), m), v), max) in param.iter_mut().zip(grad).zip(exp_avg).zip(exp_avg_sq).zip(max) {
            let q;
            (q, *m, *v) = adam_averages(*p, *g, *m, *v, scalars);
            *max = max.maximum(*v);
            *p = q - step_size * *m / (max.sqrt() * root_scale + eps);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `torch.optim`'s loop for one number, in `f64`.
    fn adam_by_hand(s: &Adam, amsgrad: bool, [p, m, v, max]: [f64; 4], g: f64) -> [f64; 4] {
        let mut p = p;
        let mut g = if s.maximize { -g } else { g };
        if s.decoupled {
            p *= 1.0 - s.lr * s.weight_decay;
        } else {
            g += s.weight_decay * p;
        }
        let m = s.betas.0 * m + (1.0 - s.betas.0) * g;
        let v = s.betas.1 * v + (1.0 - s.betas.1) * g * g;
        let max = if amsgrad { f64::max(max, v) } else { v };
        let denom = max.sqrt() / s.bias_corrections.1.sqrt() + s.eps;
        [p - s.lr / s.bias_corrections.0 * m / denom, m, v, max]
    }

    fn sgd_by_hand(s: &Sgd, [p, b]: [f64; 2], g: f64) -> [f64; 2] {
        let g = if s.maximize { -g } else { g } + s.weight_decay * p;
        if s.momentum == 0.0 {
            return [p - s.lr * g, b];
        }
        let b = if s.first { g } else { s.momentum * b + (1.0 - s.dampening) * g };
        let d = if s.nesterov { g + s.momentum * b } else { b };
        [p - s.lr * d, b]
    }

    fn gradient(n: usize, t: usize) -> Vec<f64> {
        (0..n).map(|i| ((i * 7 + t * 13) as f64 * 0.37).sin()).collect()
    }

    fn close<T: Real>(a: &[T], b: impl Iterator<Item = f64>, what: &str) {
        let tolerance = 16.0 * T::EPSILON.to_f64();
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            assert!((a.to_f64() - b).abs() <= tolerance * (1.0 + b.abs()), "{what}: {a} is not {b} at {i}");
        }
    }

    /// One length without threads and one with.
    const LENGTHS: [usize; 2] = [37, PARALLEL + 5];

    fn check_adam<T: Real>(n: usize, decoupled: bool, amsgrad: bool, maximize: bool) {
        let mut state: Vec<[f64; 4]> = (0..n).map(|i| [(i as f64 * 0.1).cos(), 0.0, 0.0, 0.0]).collect();
        let mut slices: [Vec<T>; 4] =
            std::array::from_fn(|k| state.iter().map(|s| T::from_f64(s[k])).collect());
        for t in 1..=3 {
            let bias_corrections = (1.0 - 0.9_f64.powi(t), 1.0 - 0.99_f64.powi(t));
            let step = Adam {
                lr: 0.1,
                betas: (0.9, 0.99),
                eps: 1e-8,
                weight_decay: 0.01,
                decoupled,
                maximize,
                bias_corrections,
            };
            let g = gradient(n, t as usize);
            let [p, m, v, max] = &mut slices;
            let g_t: Vec<T> = g.iter().map(|g| T::from_f64(*g)).collect();
            adam(&step, p, &g_t, m, v, amsgrad.then_some(max));
            for (s, g) in state.iter_mut().zip(&g) {
                *s = adam_by_hand(&step, amsgrad, *s, *g);
            }
            close(&slices[0], state.iter().map(|s| s[0]), "param");
            close(&slices[1], state.iter().map(|s| s[1]), "exp_avg");
            close(&slices[2], state.iter().map(|s| s[2]), "exp_avg_sq");
        }
    }

    #[test]
    fn adam_follows_its_formula() {
        for n in LENGTHS {
            for (decoupled, amsgrad) in [(false, false), (true, false), (false, true), (true, true)] {
                check_adam::<f32>(n, decoupled, amsgrad, amsgrad);
                check_adam::<f64>(n, decoupled, amsgrad, !amsgrad);
            }
        }
    }

    fn check_sgd<T: Real>(n: usize, momentum: f64, dampening: f64, nesterov: bool, maximize: bool) {
        let mut state: Vec<[f64; 2]> = (0..n).map(|i| [(i as f64 * 0.1).cos(), 0.0]).collect();
        let mut p: Vec<T> = state.iter().map(|s| T::from_f64(s[0])).collect();
        let mut b = vec![T::NAN; n];
        for t in 1..=3 {
            let step =
                Sgd { lr: 0.1, momentum, dampening, weight_decay: 0.01, nesterov, maximize, first: t == 1 };
            let g = gradient(n, t);
            let g_t: Vec<T> = g.iter().map(|g| T::from_f64(*g)).collect();
            sgd(&step, &mut p, &g_t, (momentum != 0.0).then_some(&mut b));
            for (s, g) in state.iter_mut().zip(&g) {
                *s = sgd_by_hand(&step, *s, *g);
            }
            close(&p, state.iter().map(|s| s[0]), "param");
        }
    }

    #[test]
    fn sgd_follows_its_formula() {
        for n in LENGTHS {
            for (momentum, dampening, nesterov) in
                [(0.0, 0.0, false), (0.9, 0.0, false), (0.9, 0.1, false), (0.9, 0.0, true)]
            {
                check_sgd::<f32>(n, momentum, dampening, nesterov, false);
                check_sgd::<f64>(n, momentum, dampening, nesterov, true);
            }
        }
    }
}
