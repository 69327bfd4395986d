//! [`Odds`], a probability as such or as a logit.

use crate::common::*;
use crate::parameters::Given;

/// The probability of a success, given as such or as its logit `log(p / (1 - p))`.
#[derive(Clone, Debug)]
pub(crate) struct Odds {
    given: Tensor,
    is_logits: bool,
}

impl Odds {
    pub(crate) fn of(given: Tensor, is_logits: bool) -> Odds {
        Odds { given, is_logits }
    }

    /// The parameter with its name and the values that it can have, which are `probs` for a probability.
    pub(crate) fn parameter(given: &dyn Operand, is_logits: bool, probs: Support) -> Given<'_> {
        if is_logits { ("logits", given, Support::Real) } else { ("probs", given, probs) }
    }

    pub(crate) fn given(&self) -> &Tensor {
        &self.given
    }

    pub(crate) fn is_logits(&self) -> bool {
        self.is_logits
    }

    /// `p`.
    #[track_caller]
    pub(crate) fn probs(&self) -> Result<Tensor> {
        if self.is_logits { self.given.sigmoid() } else { Ok(self.given.clone()) }
    }

    /// `1 - p`.
    #[track_caller]
    pub(crate) fn failure(&self) -> Result<Tensor> {
        if self.is_logits { self.given.neg().sigmoid() } else { self.given.neg().add(1.0) }
    }

    /// `log(p / (1 - p))`, finite for given probabilities: like PyTorch's, they are moved away from 0 and 1
    /// by the distance from 1 to the next larger number.
    #[track_caller]
    pub(crate) fn logits(&self) -> Result<Tensor> {
        if self.is_logits {
            return Ok(self.given.clone());
        }
        let p = clamped(&self.given)?;
        p.log().sub(p.neg().log1p()?)
    }
}

/// Probabilities that are neither 0 nor 1.
#[track_caller]
pub(crate) fn clamped(probs: &Tensor) -> Result<Tensor> {
    let step = step_of(probs.dtype());
    probs.clamp(step, 1.0 - step)
}

/// The distance from 1 to the next larger number.
pub(crate) fn step_of(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        _ => f32::EPSILON.into(),
    }
}

/// A tensor of ones and zeros in `shape`, one with the probability `probs`, which broadcasts to it.
#[track_caller]
pub(crate) fn successes(shape: &Shape, probs: &Tensor) -> Result<Tensor> {
    let uniform = TensorOptions::new().dtype(probs.dtype()).rand(shape)?;
    uniform.lt(probs)?.to(probs.dtype())
}
