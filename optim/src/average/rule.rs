//! [`Rule`], the formula of an average.

use super::state::Averaged;
use crate::formula::{Elementwise, Formula};
use crate::update::update_tensors;
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
        let n = self.count;
        let dtype = self.value.dtype();
        if n == 0 {
            self.value = value.to(dtype)?.with_names(self.value.names().clone());
        } else if !dtype.is_floating_point() {
            self.value = self.of_integers(rule, value)?.to(dtype)?.with_names(self.value.names().clone());
        } else {
            let value = value.to(dtype)?.contiguous()?;
            match rule {
                Rule::Equal => self.update(MeanFormula, [n as f64 + 1.0], &value)?,
                Rule::Ema(decay) => self.lerp(1.0 - decay, &value)?,
                Rule::Weight(weight) => self.lerp(weight_at(weight, n)?, &value)?,
                Rule::Custom(_) => self.value = self.by_formula(rule, &value)?,
            }
        }
        self.count += 1;
        Ok(())
    }

    fn update<F: Formula<1, 0>>(&mut self, formula: F, numbers: [f64; 1], value: &NamedTensor) -> Result<()> {
        update_tensors(&Elementwise::new(formula, numbers), &mut self.value, value, [])
    }

    fn lerp(&mut self, weight: f64, value: &NamedTensor) -> Result<()> {
        match weight.abs() < 0.5 {
            true => self.update(NearFormula, [weight], value),
            false => self.update(FarFormula, [weight], value),
        }
    }

    /// The average of integers, such as a number of batches, before it is rounded towards 0.
    fn of_integers(&self, rule: &Rule, value: &NamedTensor) -> Result<NamedTensor> {
        let n = self.count;
        let [own, value] = [self.value.to(DType::F32)?, value.to(DType::F32)?];
        match rule {
            Rule::Ema(decay) => own.mul(*decay)?.add(&value.mul(1.0 - decay)?),
            Rule::Equal => value.sub(&own)?.div(n as f64 + 1.0)?.add(&own),
            Rule::Weight(weight) => value.sub(&own)?.mul(weight_at(weight, n)?)?.add(&own),
            Rule::Custom(_) => self.by_formula(rule, &value),
        }
    }

    fn by_formula(&self, rule: &Rule, value: &NamedTensor) -> Result<NamedTensor> {
        let Rule::Custom(formula) = rule else { return Ok(value.clone()) };
        let average = formula(&self.value, value, self.count)?;
        if average.sizes() != self.value.sizes() {
            let message =
                format!("avg_fn gave {} for a parameter of {}", average.shape(), self.value.shape());
            return Err(Error::new(ErrorKind::Shape, "avg_fn", message));
        }
        average.to(self.value.dtype()).map(|average| average.with_names(self.value.names().clone()))
    }
}

/// `x += (g - x) / n`, in the form of PyTorch.
struct MeanFormula;

impl Formula<1, 0> for MeanFormula {
    #[inline(always)]
    fn apply<T: Real>([n]: [T; 1], x: T, g: T, []: [T; 0]) -> (T, [T; 0]) {
        (x + (g - x) / n, [])
    }
}

/// `x += w (g - x)`, in the form of PyTorch, which is exact at both ends: this one for a small `w`.
struct NearFormula;

impl Formula<1, 0> for NearFormula {
    #[inline(always)]
    fn apply<T: Real>([w]: [T; 1], x: T, g: T, []: [T; 0]) -> (T, [T; 0]) {
        (x + w * (g - x), [])
    }
}

/// [`NearFormula`] for a large `w`.
struct FarFormula;

impl Formula<1, 0> for FarFormula {
    #[inline(always)]
    fn apply<T: Real>([w]: [T; 1], x: T, g: T, []: [T; 0]) -> (T, [T; 0]) {
        (g - (g - x) * (T::ONE - w), [])
    }
}
