//! Elementwise formulas of optimizers, and the numbers and functions that several of them share.

use crate::method::ParameterStep;
use crate::update;
use namegrad_core::cpu::formula::FormulaLoops;
pub(crate) use namegrad_core::cpu::formula::{Formula, FormulaStep};
use namegrad_core::cpu::math::Real;
use namegrad_core::{NamedTensor, Result};

/// A formula with its numbers, as a loop.
pub(crate) fn with<F: Formula<K, N>, const K: usize, const N: usize>(
    _formula: F,
    numbers: &[f64; K],
) -> FormulaStep<'_> {
    FormulaStep { loops: const { &FormulaLoops::of::<F, K, N, 0>() }, numbers }
}

/// A formula whose last `S` states are sums over all elements, with its numbers.
pub(crate) fn with_sums<F: Formula<K, N>, const K: usize, const N: usize, const S: usize>(
    _formula: F,
    numbers: &[f64; K],
) -> FormulaStep<'_> {
    FormulaStep { loops: const { &FormulaLoops::of::<F, K, N, S>() }, numbers }
}

impl ParameterStep<'_> {
    /// Updates the parameter and all slots with a formula.
    pub(crate) fn apply<F: Formula<K, N>, const K: usize, const N: usize>(
        self,
        formula: F,
        numbers: [f64; K],
    ) -> Result<()> {
        self.run_loops(N, &with(formula, &numbers))
    }
}

/// Updates a tensor, and slots of the same sizes, with a formula.
pub(crate) fn apply<F: Formula<K, N>, const K: usize, const N: usize>(
    formula: F,
    numbers: [f64; K],
    param: &mut NamedTensor,
    grad: &NamedTensor,
    slots: [&mut NamedTensor; N],
) -> Result<()> {
    update::run(&with(formula, &numbers), param, grad, &mut slots.into_iter(), &mut [])
}

/// Numbers in the type of the computation.
#[inline(always)]
pub(crate) fn rounded<T: Real, const K: usize>(numbers: &[f64; K]) -> [T; K] {
    let mut rounded = [T::ZERO; K];
    for k in 0..K {
        rounded[k] = T::from_f64(numbers[k]);
    }
    rounded
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
