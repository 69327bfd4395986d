//! [`Moments`], the moving averages of Adam and similar methods.

use crate::direction::Direction;
use namegrad_core::cpu::math::Real;

/// The tensors in which the averages are kept.
pub(crate) const SLOTS: [&str; 2] = ["exp_avg", "exp_avg_sq"];

/// Moving averages of the direction and of its square.
#[derive(Clone, Copy)]
pub(crate) struct Moments<T> {
    direction: Direction<T>,
    /// `β₁`.
    keep: T,
    /// `1 - β₁`.
    take: T,
    /// `β₂`.
    keep_sq: T,
    /// `1 - β₂`.
    take_sq: T,
}

impl Moments<f64> {
    pub(crate) fn new(direction: Direction<f64>, betas: (f64, f64)) -> Moments<f64> {
        let (keep, keep_sq) = betas;
        Moments { direction, keep, take: 1.0 - keep, keep_sq, take_sq: 1.0 - keep_sq }
    }

    /// The same numbers in the type of the computation.
    #[inline(always)]
    pub(crate) fn to<T: Real>(self) -> Moments<T> {
        let [keep, take, keep_sq, take_sq] =
            [self.keep, self.take, self.keep_sq, self.take_sq].map(T::from_f64);
        Moments { direction: self.direction.to(), keep, take, keep_sq, take_sq }
    }
}

impl<T: Real> Moments<T> {
    /// Updates the averages of one element. Returns the parameter after a decoupled decay, and the direction.
    #[inline(always)]
    pub(crate) fn average(self, param: T, grad: T, exp_avg: &mut T, exp_avg_sq: &mut T) -> (T, T) {
        let param = self.direction.shrunk(param);
        let d = self.direction.of(param, grad);
        *exp_avg = *exp_avg * self.keep + d * self.take;
        *exp_avg_sq = *exp_avg_sq * self.keep_sq + d * d * self.take_sq;
        (param, d)
    }
}

/// `1 - βᵗ`, which corrects the bias of an average that starts at 0.
pub(crate) fn correction(beta: f64, t: u64) -> f64 {
    1.0 - beta.powf(t as f64)
}
