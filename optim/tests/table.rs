//! The table of optimizers for all tests: the forms in which each is tried, how it finds a minimum, and its
//! formula by hand.

use namegrad_optim::{
    AdadeltaOptions, AdafactorOptions, AdagradOptions, AdamOptions, AdamWOptions, AdamaxOptions, AdjustLr,
    AsgdOptions, LambOptions, LionOptions, MuonOptions, NAdamOptions, RAdamOptions, RmsPropOptions,
    RpropOptions, SgdOptions,
};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

/// A row of the table.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Options with a step of about 0.05. The forms of an optimizer keep different tensors.
    pub(crate) forms: Vec<Json>,
    /// Options with which it minimizes `Σ cᵢ (xᵢ - 1)² / 2`, with `c` from 1 to 1000, the number of
    /// steps, and the largest loss after them. The first steps of RAdam are too long for this.
    pub(crate) minimizes: Option<(Json, usize, f64)>,
    /// Its formula by hand; L-BFGS is compared with PyTorch alone.
    pub(crate) formula: Option<Formula>,
}

/// A formula by hand, in `f64`.
pub(crate) struct Formula {
    /// The slots that it computes.
    pub(crate) slots: &'static [&'static str],
    /// The sizes of parameters to try.
    pub(crate) sizes: &'static [&'static [usize]],
    /// How far numbers may be from those of an optimizer in `f32`, as a part of the largest.
    pub(crate) tolerance: Option<f64>,
    /// The steps of the formula with these options, for a parameter of these sizes.
    pub(crate) steps: Box<StepsOf>,
}

/// Makes the steps from the options and the sizes of a parameter.
type StepsOf = dyn Fn(&Json, &'static [usize]) -> Steps;

/// Changes the parameter and its slots in step `t`, from 1, with a gradient.
pub(crate) type Steps = Box<dyn FnMut(u64, &[f64], &mut [Vec<f64>])>;

/// A length that one thread updates and one that several do.
const LENGTHS: &[&[usize]] = &[&[37], &[(1 << 16) + 5]];
const MATRICES: &[&[usize]] = &[&[3, 5], &[5, 3], &[4, 4], &[1, 6]];
const VECTORS_AND_MATRICES: &[&[usize]] = &[&[37], &[(1 << 16) + 5], &[1, 3, 5], &[2, 5, 37], &[1, 300, 257]];

/// A formula for each element: the options, the step, the gradient, and the parameter with its slots.
fn elementwise<M: DeserializeOwned + 'static>(
    slots: &'static [&'static str],
    formula: fn(&M, u64, f64, &mut [f64]),
) -> Option<Formula> {
    let steps = move |options: &Json, _: &'static [usize]| {
        let options: M = serde_json::from_value(options.clone()).unwrap();
        let mut element = vec![0.0; slots.len() + 1];
        let steps = move |t, grads: &[f64], state: &mut [Vec<f64>]| {
            for (i, g) in grads.iter().enumerate() {
                element.iter_mut().zip(&*state).for_each(|(number, slot)| *number = slot[i]);
                formula(&options, t, *g, &mut element);
                state.iter_mut().zip(&element).for_each(|(slot, number)| slot[i] = *number);
            }
        };
        Box::new(steps) as Steps
    };
    Some(Formula { slots, sizes: LENGTHS, tolerance: None, steps: Box::new(steps) })
}

/// The formula of a whole parameter: of the options, the sizes, the step, the gradient, and the parameter with
/// its slots.
type ByHand<M> = fn(&M, &[usize], u64, &[f64], &mut [Vec<f64>]);

/// A formula for a whole parameter.
fn whole<M: DeserializeOwned + 'static>(
    slots: &'static [&'static str],
    sizes: &'static [&'static [usize]],
    tolerance: Option<f64>,
    formula: ByHand<M>,
) -> Option<Formula> {
    let steps = move |options: &Json, sizes: &'static [usize]| {
        let options: M = serde_json::from_value(options.clone()).unwrap();
        let steps = move |t, grads: &[f64], state: &mut [Vec<f64>]| formula(&options, sizes, t, grads, state);
        Box::new(steps) as Steps
    };
    Some(Formula { slots, sizes, tolerance, steps: Box::new(steps) })
}

fn signed(g: f64, maximize: bool) -> f64 {
    if maximize { -g } else { g }
}

/// -1, 0 or 1.
fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

/// `1 - βᵗ`.
fn bias(beta: f64, t: u64) -> f64 {
    1.0 - beta.powf(t as f64)
}

/// The row of an optimizer.
fn row(
    name: &'static str,
    forms: impl IntoIterator<Item = Json>,
    minimizes: Option<(Json, usize, f64)>,
    formula: Option<Formula>,
) -> Row {
    Row { name, forms: forms.into_iter().collect(), minimizes, formula }
}

/// The table.
pub(crate) fn table() -> Vec<Row> {
    vec![
        row(
            "Sgd",
            [
                json!({"lr": 0.05}),
                json!({"lr": 0.05, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
                json!({"lr": 0.02, "momentum": 0.8, "nesterov": true}),
            ],
            Some((json!({"lr": 1e-3, "momentum": 0.9}), 1000, 1e-3)),
            elementwise(&["momentum_buffer"], |o: &SgdOptions, t, g, s| {
                let g = signed(g, o.maximize) + o.weight_decay * s[0];
                let mut d = g;
                if o.momentum != 0.0 {
                    s[1] = if t == 1 { g } else { o.momentum * s[1] + (1.0 - o.dampening) * g };
                    d = if o.nesterov { g + o.momentum * s[1] } else { s[1] };
                }
                s[0] -= o.lr * d;
            }),
        ),
        row(
            "Asgd",
            [json!({"lr": 0.05, "lambd": 0.1, "t0": 3.0}), json!({"lr": 0.05, "lambd": 0.1, "t0": 0.0})],
            Some((json!({"lr": 1e-3}), 3000, 0.3)),
            elementwise(&["ax"], |o: &AsgdOptions, t, g, s| {
                let before = t as f64 - 1.0;
                let eta = o.lr / (1.0 + o.lambd * o.lr * before).powf(o.alpha);
                let mu = 1.0 / f64::max(1.0, before - o.t0);
                let [eta, mu] = [eta, mu].map(|number| f64::from(number as f32));
                let g = signed(g, o.maximize) + o.weight_decay * s[0];
                s[0] = s[0] * (1.0 - o.lambd * eta) - eta * g;
                s[1] += (s[0] - s[1]) * mu;
            }),
        ),
        row(
            "Adam",
            [
                json!({"lr": 0.05, "weight_decay": 0.01}),
                json!({"lr": 0.05, "amsgrad": true}),
                json!({"lr": 0.05, "betas": [0.8, 0.95], "decoupled_weight_decay": true}),
            ],
            Some((json!({"lr": 0.05}), 1000, 1e-3)),
            elementwise(&["exp_avg", "exp_avg_sq", "max_exp_avg_sq"], adam),
        ),
        row(
            "AdamW",
            [json!({"lr": 0.05}), json!({"lr": 0.05, "amsgrad": true})],
            Some((json!({"lr": 0.05, "weight_decay": 0.0}), 1000, 1e-3)),
            elementwise(&["exp_avg", "exp_avg_sq", "max_exp_avg_sq"], |o: &AdamWOptions, t, g, s| {
                let adam_form = AdamOptions::new().lr(o.lr).betas(o.betas).eps(o.eps).amsgrad(o.amsgrad);
                let adam_form = adam_form.weight_decay(o.weight_decay).maximize(o.maximize);
                adam(&adam_form.decoupled_weight_decay(true), t, g, s);
            }),
        ),
        row(
            "NAdam",
            [json!({"lr": 0.05}), json!({"lr": 0.05, "momentum_decay": 0.1, "decoupled_weight_decay": true})],
            Some((json!({"lr": 0.05}), 1000, 1e-3)),
            elementwise(&["exp_avg", "exp_avg_sq"], |o: &NAdamOptions, t, g, s| {
                let mut g = signed(g, o.maximize);
                decay(o.lr, o.weight_decay, o.decoupled_weight_decay, &mut g, &mut s[0]);
                let mu = |t: u64| o.betas.0 * (1.0 - 0.5 * 0.96_f64.powf(t as f64 * o.momentum_decay));
                let product = f64::from((1..=t).map(|t| mu(t) as f32).product::<f32>());
                s[1] += (g - s[1]) * (1.0 - o.betas.0);
                s[2] = s[2] * o.betas.1 + (1.0 - o.betas.1) * g * g;
                let denom = (s[2] / bias(o.betas.1, t)).sqrt() + o.eps;
                s[0] -= o.lr * (1.0 - mu(t)) / (1.0 - product) * g / denom;
                s[0] -= o.lr * mu(t + 1) / (1.0 - product * mu(t + 1)) * s[1] / denom;
            }),
        ),
        row(
            "RAdam",
            [json!({"lr": 0.05, "betas": [0.8, 0.9]}), json!({"lr": 0.05, "decoupled_weight_decay": true})],
            None,
            elementwise(&["exp_avg", "exp_avg_sq"], |o: &RAdamOptions, t, g, s| {
                let (beta1, beta2) = o.betas;
                let mut g = signed(g, o.maximize);
                decay(o.lr, o.weight_decay, o.decoupled_weight_decay, &mut g, &mut s[0]);
                s[1] += (g - s[1]) * (1.0 - beta1);
                s[2] = s[2] * beta2 + (1.0 - beta2) * g * g;
                let infinite = 2.0 / (1.0 - beta2) - 1.0;
                let rho = infinite - 2.0 * t as f64 * beta2.powf(t as f64) / bias(beta2, t);
                let mut step = s[1] / bias(beta1, t) * o.lr;
                if rho > 5.0 {
                    let length = (rho - 4.0) * (rho - 2.0) * infinite;
                    step *= bias(beta2, t).sqrt() / (s[2].sqrt() + o.eps);
                    step *= (length / ((infinite - 4.0) * (infinite - 2.0) * rho)).sqrt();
                }
                s[0] -= step;
            }),
        ),
        row(
            "Adamax",
            [json!({"lr": 0.05}), json!({"lr": 0.05, "betas": [0.8, 0.9], "eps": 1e-4})],
            Some((json!({"lr": 0.05}), 1000, 1e-3)),
            elementwise(&["exp_avg", "exp_inf"], |o: &AdamaxOptions, t, g, s| {
                let g = signed(g, o.maximize) + o.weight_decay * s[0];
                s[1] = o.betas.0 * s[1] + (1.0 - o.betas.0) * g;
                s[2] = f64::max(o.betas.1 * s[2], g.abs() + o.eps);
                s[0] -= o.lr / bias(o.betas.0, t) * s[1] / s[2];
            }),
        ),
        row(
            "Adagrad",
            [json!({"lr": 0.1, "lr_decay": 0.01, "initial_accumulator_value": 0.1})],
            Some((json!({"lr": 0.5}), 1000, 1e-3)),
            elementwise(&["sum"], |o: &AdagradOptions, t, g, s| {
                if t == 1 {
                    s[1] = o.initial_accumulator_value;
                }
                let g = signed(g, o.maximize) + o.weight_decay * s[0];
                let lr = o.lr / (1.0 + (t as f64 - 1.0) * o.lr_decay);
                s[1] += g * g;
                s[0] -= lr * g / (s[1].sqrt() + o.eps);
            }),
        ),
        row(
            "Adadelta",
            [json!({"lr": 5.0}), json!({"lr": 1.0, "rho": 0.8, "eps": 1e-4})],
            Some((json!({"lr": 5.0}), 3000, 1e-2)),
            elementwise(&["square_avg", "acc_delta"], |o: &AdadeltaOptions, _, g, s| {
                let (rho, eps) = (o.rho, o.eps);
                let g = signed(g, o.maximize) + o.weight_decay * s[0];
                s[1] = rho * s[1] + (1.0 - rho) * g * g;
                let step = (s[2] + eps).sqrt() / (s[1] + eps).sqrt() * g;
                s[2] = rho * s[2] + (1.0 - rho) * step * step;
                s[0] -= o.lr * step;
            }),
        ),
        row(
            "RmsProp",
            [
                json!({"lr": 0.02, "eps": 1e-2}),
                json!({"lr": 0.01, "momentum": 0.5, "eps": 1e-2}),
                json!({"lr": 0.02, "centered": true, "alpha": 0.9, "eps": 1e-2}),
                json!({"lr": 0.01, "centered": true, "momentum": 0.5, "eps": 1e-2}),
            ],
            Some((json!({"lr": 0.02}), 1000, 1e-2)),
            elementwise(&["square_avg", "grad_avg", "momentum_buffer"], |o: &RmsPropOptions, _, g, s| {
                let g = signed(g, o.maximize) + o.weight_decay * s[0];
                s[1] = o.alpha * s[1] + (1.0 - o.alpha) * g * g;
                s[2] = o.alpha * s[2] + (1.0 - o.alpha) * g;
                let variance = if o.centered { s[1] - s[2] * s[2] } else { s[1] };
                let step = g / (variance.sqrt() + o.eps);
                s[3] = o.momentum * s[3] + step;
                s[0] -= o.lr * if o.momentum > 0.0 { s[3] } else { step };
            }),
        ),
        row(
            "Rprop",
            [json!({"lr": 0.05}), json!({"lr": 0.05, "step_sizes": [0.04, 0.06]})],
            Some((json!({"lr": 0.01}), 300, 1e-3)),
            elementwise(&["prev", "step_size"], |o: &RpropOptions, t, g, s| {
                if t == 1 {
                    s[2] = o.lr;
                }
                let mut g = signed(g, o.maximize);
                let factor = match g * s[1] {
                    same if same > 0.0 => o.etas.1,
                    same if same < 0.0 => o.etas.0,
                    _ => 1.0,
                };
                s[2] = f64::clamp(s[2] * factor, o.step_sizes.0, o.step_sizes.1);
                if factor < 1.0 {
                    g = 0.0;
                }
                s[0] -= sign(g) * s[2];
                s[1] = g;
            }),
        ),
        row(
            "Adafactor",
            [json!({"lr": 0.05, "eps": [1e-3, 1e-3]}), json!({"lr": 0.05, "eps": [1e-3, 1e-3], "d": 2.0})],
            Some((json!({"lr": 0.05}), 1000, 1e-2)),
            whole(&["variance", "row_var", "col_var"], VECTORS_AND_MATRICES, None, adafactor),
        ),
        row(
            "Lion",
            [json!({"lr": 0.02, "weight_decay": 0.01})],
            Some((json!({"lr": 0.02}), 1000, 1e-2)),
            elementwise(&["exp_avg"], |o: &LionOptions, _, g, s| {
                let (beta1, beta2) = o.betas;
                let g = signed(g, o.maximize);
                let c = beta1 * s[1] + (1.0 - beta1) * g;
                s[0] -= o.lr * (sign(c) + o.weight_decay * s[0]);
                s[1] = beta2 * s[1] + (1.0 - beta2) * g;
            }),
        ),
        row(
            "Lamb",
            [json!({"lr": 0.05})],
            Some((json!({"lr": 0.05, "weight_decay": 0.0}), 1000, 1e-2)),
            whole(&["exp_avg", "exp_avg_sq"], LENGTHS, None, lamb),
        ),
        row(
            "Muon",
            [
                json!({"lr": 0.05, "weight_decay": 0.01}),
                json!({"lr": 0.05, "nesterov": false, "momentum": 0.8}),
                json!({"lr": 0.05, "adjust_lr_fn": "match_rms_adamw"}),
                json!({"lr": 0.05, "adjust_lr_fn": "spectral_unclamped"}),
            ],
            Some((json!({"lr": 0.02, "weight_decay": 0.0}), 1000, 1e-1)),
            // A sum that is rounded to the other side differs by 2^-8 of itself, and each step enlarges this.
            whole(&["momentum_buffer"], MATRICES, Some(0.01), muon),
        ),
        row(
            "Lbfgs",
            [
                json!({"lr": 0.1, "max_iter": 2, "history_size": 3}),
                json!({"max_iter": 3, "history_size": 2, "line_search_fn": "strong_wolfe"}),
                json!({"lr": 0.1, "max_iter": 2, "history_size": 0}),
            ],
            Some((json!({"line_search_fn": "strong_wolfe", "max_iter": 40}), 4, 1e-6)),
            None,
        ),
    ]
}

/// A weight decay that is decoupled or enters the gradient.
fn decay(lr: f64, weight_decay: f64, decoupled: bool, g: &mut f64, p: &mut f64) {
    match decoupled {
        true => *p *= 1.0 - lr * weight_decay,
        false => *g += weight_decay * *p,
    }
}

fn adam(o: &AdamOptions, t: u64, g: f64, s: &mut [f64]) {
    let mut g = signed(g, o.maximize);
    decay(o.lr, o.weight_decay, o.decoupled_weight_decay, &mut g, &mut s[0]);
    s[1] = o.betas.0 * s[1] + (1.0 - o.betas.0) * g;
    s[2] = o.betas.1 * s[2] + (1.0 - o.betas.1) * g * g;
    s[3] = if o.amsgrad { f64::max(s[3], s[2]) } else { s[2] };
    let denom = s[3].sqrt() / bias(o.betas.1, t).sqrt() + o.eps;
    s[0] -= o.lr / bias(o.betas.0, t) * s[1] / denom;
}

/// Algorithm 2 of the paper.
fn lamb(o: &LambOptions, _: &[usize], t: u64, grads: &[f64], state: &mut [Vec<f64>]) {
    let [params, averages, squares] = state else { unreachable!() };
    let mut directions = Vec::new();
    for (i, g) in grads.iter().enumerate() {
        let g = signed(*g, o.maximize);
        averages[i] = o.betas.0 * averages[i] + (1.0 - o.betas.0) * g;
        squares[i] = o.betas.1 * squares[i] + (1.0 - o.betas.1) * g * g;
        let [m, v] = [averages[i] / bias(o.betas.0, t), squares[i] / bias(o.betas.1, t)];
        directions.push(m / (v.sqrt() + o.eps) + o.weight_decay * params[i]);
    }
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let ratio = norm(params) / norm(&directions);
    params.iter_mut().zip(directions).for_each(|(p, u)| *p -= o.lr * ratio * u);
}

fn adafactor(o: &AdafactorOptions, sizes: &[usize], t: u64, grads: &[f64], state: &mut [Vec<f64>]) {
    let [params, variance, row_var, col_var] = state else { unreachable!() };
    let (take, floor) = ((t as f64).powf(o.beta2_decay), o.eps.0.unwrap());
    let v: Vec<f64> = match *sizes {
        [batch, rows, cols] => {
            row_var.resize(batch * rows, 0.0);
            col_var.resize(batch * cols, 0.0);
            let square = |b: usize, r: usize, c: usize| grads[(b * rows + r) * cols + c].powi(2);
            for b in 0..batch {
                for r in 0..rows {
                    let mean = (0..cols).map(|c| square(b, r, c)).sum::<f64>() / cols as f64;
                    row_var[b * rows + r] += (mean - row_var[b * rows + r]) * take;
                }
                for c in 0..cols {
                    let mean = (0..rows).map(|r| square(b, r, c)).sum::<f64>() / rows as f64;
                    col_var[b * cols + c] += (mean - col_var[b * cols + c]) * take;
                }
            }
            let means: Vec<f64> =
                row_var.chunks(rows).map(|own| own.iter().sum::<f64>() / rows as f64).collect();
            let product = |i: usize| {
                let (b, r, c) = (i / cols / rows, i / cols, i % cols);
                row_var[r] * col_var[b * cols + c] / means[b].max(floor)
            };
            (0..grads.len()).map(product).collect()
        }
        _ => {
            variance.iter_mut().zip(grads).for_each(|(v, g)| *v += (g * g - *v) * take);
            variance.clone()
        }
    };
    let rms = |x: &[f64]| (x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64).sqrt();
    let alpha = o.eps.1.max(rms(params)) * o.lr.min(1.0 / (t as f64).sqrt());
    let along = grads.iter().zip(v).map(|(g, v)| signed(*g, o.maximize) / v.max(floor * floor).sqrt());
    let along: Vec<f64> = along.collect();
    let scale = alpha / f64::max(1.0, rms(&along) / o.d);
    for (p, u) in params.iter_mut().zip(along) {
        *p = *p * (1.0 - o.lr * o.weight_decay) - scale * u;
    }
}

fn muon(o: &MuonOptions, sizes: &[usize], _: u64, grads: &[f64], state: &mut [Vec<f64>]) {
    let [params, buffer] = state else { unreachable!() };
    let (rows, cols) = (sizes[0], sizes[1]);
    buffer.iter_mut().zip(grads).for_each(|(b, g)| *b = o.momentum * *b + (1.0 - o.momentum) * g);
    let ahead = |(b, g): (&f64, &f64)| o.momentum * b + (1.0 - o.momentum) * g;
    let along: Vec<f64> = match o.nesterov {
        true => buffer.iter().zip(grads).map(ahead).collect(),
        false => buffer.clone(),
    };
    let along = match rows > cols {
        true => transposed(&orthogonal(o, &transposed(&along, cols), [cols, rows]), rows),
        false => orthogonal(o, &along, [rows, cols]),
    };
    let (a, b) = (rows as f64, cols as f64);
    let scale = match o.adjust_lr_fn {
        None | Some(AdjustLr::Original) => f64::max(1.0, a / b).sqrt(),
        Some(AdjustLr::MatchRmsAdamw) => 0.2 * f64::max(a, b).sqrt(),
        Some(AdjustLr::SpectralUnclamped) => (a / b).sqrt(),
    };
    for (p, u) in params.iter_mut().zip(along) {
        *p = *p * (1.0 - o.lr * o.weight_decay) - o.lr * scale * u;
    }
}

/// The iteration of Muon's doc with sums in `f64`, for a matrix that is not tall.
fn orthogonal(o: &MuonOptions, x: &[f64], [m, n]: [usize; 2]) -> Vec<f64> {
    let rounded = |x: f64| half::bf16::from_f64(x).to_f64();
    let mut x: Vec<f64> = x.iter().copied().map(rounded).collect();
    let norm = rounded(x.iter().map(|x| x * x).sum::<f64>().sqrt());
    x.iter_mut().for_each(|x| *x = rounded(*x / norm));
    let (a, b, c) = o.ns_coefficients;
    for _ in 0..o.ns_steps {
        let gram: Vec<f64> = mm(&x, &transposed(&x, n), [m, n, m]).into_iter().map(rounded).collect();
        let square = mm(&gram, &gram, [m; 3]);
        let polynomial: Vec<f64> = gram.iter().zip(square).map(|(g, s)| rounded(b * g + c * s)).collect();
        let product = mm(&polynomial, &x, [m, m, n]);
        x = x.iter().zip(product).map(|(x, y)| rounded(a * x + y)).collect();
    }
    x
}

/// The product of two matrices, plainly.
fn mm(x: &[f64], y: &[f64], [m, k, n]: [usize; 3]) -> Vec<f64> {
    let element = |i: usize| (0..k).map(|l| x[i / n * k + l] * y[l * n + i % n]).sum();
    (0..m * n).map(element).collect()
}

fn transposed(x: &[f64], cols: usize) -> Vec<f64> {
    let rows = x.len() / cols;
    (0..x.len()).map(|i| x[i % rows * cols + i / rows]).collect()
}
