//! [`Direction`], the gradient that a step follows, with its sign and the weight decay.

use namegrad_core::cpu::math::Real;

/// The map from a gradient to the direction of a step, with the decay of the parameter.
#[derive(Clone, Copy)]
pub(crate) struct Direction<T> {
    /// -1 to ascend.
    sign: T,
    /// Added to the gradient, times the parameter: 0 if the decay is decoupled.
    weight_decay: T,
    /// The parameter is multiplied by this: 1 unless the decay is decoupled.
    shrink: T,
}

impl Direction<f64> {
    /// `weight_decay` is an L2 penalty: `d = g + weight_decay · param`.
    pub(crate) fn coupled(maximize: bool, weight_decay: f64) -> Direction<f64> {
        Direction { sign: if maximize { -1.0 } else { 1.0 }, weight_decay, shrink: 1.0 }
    }

    /// The parameter shrinks: `d = g`, `param *= 1 - lr · weight_decay`.
    pub(crate) fn decoupled(maximize: bool, lr: f64, weight_decay: f64) -> Direction<f64> {
        Direction { shrink: 1.0 - lr * weight_decay, ..Direction::coupled(maximize, 0.0) }
    }

    /// The same numbers in the type of the computation.
    #[inline(always)]
    pub(crate) fn to<T: Real>(self) -> Direction<T> {
        let [sign, weight_decay, shrink] = [self.sign, self.weight_decay, self.shrink].map(T::from_f64);
        Direction { sign, weight_decay, shrink }
    }
}

impl<T: Real> Direction<T> {
    /// The direction at `param`.
    #[inline(always)]
    pub(crate) fn of(self, param: T, grad: T) -> T {
        param * self.weight_decay + grad * self.sign
    }

    /// The parameter after a decoupled decay.
    #[inline(always)]
    pub(crate) fn shrunk(self, param: T) -> T {
        param * self.shrink
    }
}
