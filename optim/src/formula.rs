//! Elementwise formulas of optimizers, and the numbers and functions that several of them share. The last ones
//! are those of the moving averages of Adam and similar optimizers.

use super::*;
use namegrad_core::cpu::formula::FormulaLoops;
pub(crate) use namegrad_core::cpu::formula::{Formula, FormulaStep};

/// A formula with its numbers, as a loop. Its last `S` states are sums over all elements.
pub(crate) fn with<'n, F: Formula<K, N>, const K: usize, const N: usize, const S: usize>(
    _formula: &F,
    numbers: &'n [f64; K],
) -> FormulaStep<'n> {
    FormulaStep { loops: const { &FormulaLoops::of::<F, K, N, S>() }, numbers }
}

impl ParameterStep<'_> {
    /// Updates the parameter and all slots with a formula.
    pub(crate) fn apply<F: Formula<K, N>, const K: usize, const N: usize>(
        self,
        formula: &F,
        numbers: [f64; K],
    ) -> Result<()> {
        self.run_loops(N, &with::<F, K, N, 0>(formula, &numbers))
    }
}

/// Updates a tensor, and slots of the same sizes, with a formula.
pub(crate) fn apply<F: Formula<K, N>, const K: usize, const N: usize>(
    formula: &F,
    numbers: [f64; K],
    param: &mut NamedTensor,
    grad: &NamedTensor,
    slots: [&mut NamedTensor; N],
) -> Result<()> {
    update::run(&with::<F, K, N, 0>(formula, &numbers), param, grad, &mut slots.into_iter(), &mut [])
}

/// The factor of a gradient: -1 to ascend.
pub(crate) fn sign_of(maximize: bool) -> f64 {
    if maximize { -1.0 } else { 1.0 }
}

/// -1, 0 or 1; NaN of NaN.
#[inline(always)]
pub(crate) fn sign<T: Real>(x: T) -> T {
    let negative = if x < T::ZERO { -T::ONE } else { x };
    if x > T::ZERO { T::ONE } else { negative }
}

/// `x = keep · x + add · y`.
pub(crate) struct MixFormula;

impl Formula<2, 0> for MixFormula {
    #[inline(always)]
    fn apply<T: Real>([keep, add]: [T; 2], x: T, y: T, []: [T; 0]) -> (T, [T; 0]) {
        (x * keep + y * add, [])
    }
}

/// The tensors in which the averages are kept.
pub(crate) const MOMENTS: [&str; 2] = ["exp_avg", "exp_avg_sq"];

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

/// The parameter after its weight decay, the direction and the averages, for numbers of [`moments`].
#[inline(always)]
pub(crate) fn decayed_and_averaged<T: Real>(
    [shrink, sign, decay, keep, take, keep_sq, take_sq]: [T; 7],
    p: T,
    g: T,
    averages: [T; 2],
) -> (T, T, [T; 2]) {
    let p = p * shrink;
    let d = p * decay + g * sign;
    (p, d, averaged([keep, take, keep_sq, take_sq], d, averages))
}

/// The numbers of [`moments`], followed by others.
pub(crate) fn joined<const N: usize, const K: usize>(moments: [f64; 7], others: [f64; N]) -> [f64; K] {
    let mut all = [0.0; K];
    all[..7].copy_from_slice(&moments);
    all[7..].copy_from_slice(&others);
    all
}

/// `1 - βᵗ`, which corrects the bias of an average that starts at 0.
pub(crate) fn correction(beta: f64, t: u64) -> f64 {
    1.0 - beta.powf(t as f64)
}
