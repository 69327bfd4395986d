//! The moving averages of Adam and similar optimizers.

use crate::formula::sign_of;
use namegrad_core::cpu::math::Real;

/// The tensors in which the averages are kept.
pub(crate) const SLOTS: [&str; 2] = ["exp_avg", "exp_avg_sq"];

/// The factor of the parameter for a decoupled weight decay, and the multiple of the parameter that is added to
/// the gradient for another.
pub(crate) fn decays(lr: f64, weight_decay: f64, decoupled: bool) -> [f64; 2] {
    if decoupled { [1.0 - lr * weight_decay, 0.0] } else { [1.0, weight_decay] }
}

/// The numbers with which the direction and the averages are computed: those of the weight decay and the sign
/// of the gradient, `β₁`, `1 - β₁`, `β₂`, `1 - β₂`.
pub(crate) fn moments(maximize: bool, [shrink, decay]: [f64; 2], betas: (f64, f64)) -> [f64; 7] {
    let (keep, keep_sq) = betas;
    [shrink, sign_of(maximize), decay, keep, 1.0 - keep, keep_sq, 1.0 - keep_sq]
}

/// The averages of a direction and of its square.
#[inline(always)]
pub(crate) fn averaged<T: Real>([keep, take, keep_sq, take_sq]: [T; 4], d: T, [m, v]: [T; 2]) -> [T; 2] {
    [m * keep + d * take, v * keep_sq + d * d * take_sq]
}

/// `1 - βᵗ`, which corrects the bias of an average that starts at 0.
pub(crate) fn correction(beta: f64, t: u64) -> f64 {
    1.0 - beta.powf(t as f64)
}
