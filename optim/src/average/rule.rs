//! [`Rule`], the formula of an average.

use super::state::Averaged;
use crate::formula::{Formula, apply};
use namegrad_core::cpu::math::Real;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result};

type Weight = Box<dyn Fn(u64) -> f64 + Send + Sync>;
type AverageFn = Box<dyn Fn(&NamedTensor, &NamedTensor, u64) -> Result<NamedTensor> + Send + Sync>;

/// The rule by which a value is included in an average of `n` others.
pub(super) enum Rule {
    /// All have the same weight.
    Equal,
    /// The average keeps this part of itself.
    Ema(f64),
    /// The value has this weight.
    Weight(Weight),
    Custom(AverageFn),
}

impl Rule {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Rule::Equal => "equal",
            Rule::Ema(_) => "ema",
            Rule::Weight(_) => "weight",
            Rule::Custom(_) => "avg_fn",
        }
    }

    pub(super) fn decay(&self) -> Option<f64> {
        match self {
            Rule::Ema(decay) => Some(*decay),
            _ => None,
        }
    }

    #[track_caller]
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Rule::Ema(decay) => check_decay(*decay),
            _ => Ok(()),
        }
    }
}

#[track_caller]
pub(super) fn check_decay(decay: f64) -> Result<()> {
    if (0.0..=1.0).contains(&decay) {
        return Ok(());
    }
    let message = format!("Invalid decay value {decay:?} provided. Please provide a value in [0,1] range.");
    Err(Error::new(ErrorKind::Value, "AveragedModel", message)
        .with_repair("AveragedModel::ema(&model, 0.999)?"))
}

/// The weight of an update. Any finite number will do: one above 1 goes beyond the parameters.
fn weight_at(weight: &Weight, n: u64) -> Result<f64> {
    let found = weight(n);
    match found.is_finite() {
        true => Ok(found),
        false => {
            let message = format!("the weight of update {n} must be finite, but is {found:?}");
            Err(Error::new(ErrorKind::Value, "update_parameters", message))
        }
    }
}

impl Averaged {
    /// Includes a value of the same sizes.
    pub(super) fn include(&mut self, rule: &Rule, value: &NamedTensor) -> Result<()> {
        let (n, dtype, names) = (self.count, self.value.dtype(), self.value.names().clone());
        let weight = match rule {
            Rule::Equal => 1.0 / (n as f64 + 1.0),
            Rule::Ema(decay) => 1.0 - decay,
            Rule::Weight(weight) if n > 0 => weight_at(weight, n)?,
            Rule::Weight(_) | Rule::Custom(_) => 1.0,
        };
        let value = value.unnamed();
        if n == 0 {
            self.value = value.to(dtype)?.with_names(names);
        } else if let Rule::Custom(formula) = rule {
            let wide = |x: &NamedTensor| x.to(if dtype.is_floating_point() { dtype } else { DType::F32 });
            let (own, value) = (wide(&self.value)?, wide(&value)?.with_names(names.clone()));
            let average = formula(&own, &value, n)?;
            if average.sizes() != own.sizes() {
                let message = format!("avg_fn gave {} for a parameter of {}", average.shape(), own.shape());
                return Err(Error::new(ErrorKind::Shape, "avg_fn", message));
            }
            self.value = average.to(dtype)?.with_names(names);
        } else if dtype.is_floating_point() {
            let is_far = weight.abs() >= 0.5;
            let numbers = if is_far { [1.0, weight - 1.0] } else { [0.0, weight] };
            let value = value.to(dtype)?.contiguous()?;
            apply(&LerpFormula, numbers, &mut self.value, &value, [])?;
        } else {
            self.value = self.of_integers(rule, &value, weight)?.to(dtype)?.with_names(names);
        }
        self.count += 1;
        Ok(())
    }

    /// The average of integers, such as a number of batches, before it is rounded towards 0.
    fn of_integers(&self, rule: &Rule, value: &NamedTensor, weight: f64) -> Result<NamedTensor> {
        let [own, value] = [self.value.unnamed().to(DType::F32)?, value.to(DType::F32)?];
        match rule {
            Rule::Ema(decay) => own.mul(*decay)?.add(&value.mul(weight)?),
            Rule::Equal => value.sub(&own)?.div(self.count as f64 + 1.0)?.add(&own),
            _ => value.sub(&own)?.mul(weight)?.add(&own),
        }
    }
}

/// `x + w (g - x)`, or `g + (w - 1) (g - x)` for a large `w`: the form of PyTorch's `lerp`, which is exact at
/// both ends.
struct LerpFormula;

impl Formula<2, 0> for LerpFormula {
    #[inline(always)]
    fn apply<T: Real>([is_far, part]: [T; 2], x: T, g: T, []: [T; 0]) -> (T, [T; 0]) {
        let start = if is_far == T::ZERO { x } else { g };
        (start + part * (g - x), [])
    }
}
