//! [`Rule`], the formula of an average.

use super::*;

type Weight = Box<dyn Fn(u64) -> f64 + Send + Sync>;
type AverageFn = Box<dyn Fn(&NamedTensor, &NamedTensor, u64) -> Result<NamedTensor> + Send + Sync>;

/// The rule by which a value is included in an average of `n` others.
pub(super) enum Rule {
    /// All have the same weight.
    Equal,
    /// The average keeps a part of itself, the decay.
    Ema,
    /// The value has this weight.
    Weight(Weight),
    Custom(AverageFn),
}

impl Rule {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Rule::Equal => "equal",
            Rule::Ema => "ema",
            Rule::Weight(_) => "weight",
            Rule::Custom(_) => "avg_fn",
        }
    }
}

/// Checks the decay of an exponential average, if there is one.
#[track_caller]
pub(super) fn check_decay(decay: Option<f64>) -> Result<()> {
    let Some(decay) = decay.filter(|decay| !(0.0..=1.0).contains(decay)) else { return Ok(()) };
    let message = format!("Invalid decay value {decay:?} provided. Please provide a value in [0,1] range.");
    Err(refused(OP, message, "AveragedModel::ema(&model, 0.999)?"))
}

impl Averaged {
    /// Includes a value of the same sizes.
    pub(super) fn include(&mut self, rule: &Rule, decay: Option<f64>, value: &NamedTensor) -> Result<()> {
        let (n, dtype, names) = (self.count, self.value.dtype(), self.value.names().clone());
        let decay = decay.unwrap_or_default();
        let weight = match rule {
            Rule::Equal => 1.0 / (n as f64 + 1.0),
            Rule::Ema => 1.0 - decay,
            Rule::Weight(weight) if n > 0 => weight(n),
            Rule::Weight(_) | Rule::Custom(_) => 1.0,
        };
        // Any finite weight will do: one above 1 goes beyond the parameters.
        Error::ensure(weight.is_finite(), ErrorKind::Value, "update_parameters", || {
            format!("the weight of update {n} must be finite, but is {weight:?}")
        })?;
        let value = value.unnamed();
        if n == 0 {
            self.value = value.to(dtype)?.with_names(names);
        } else if let Rule::Custom(formula) = rule {
            let wide = |x: &NamedTensor| x.to(if dtype.is_floating_point() { dtype } else { DType::F32 });
            let (own, value) = (wide(&self.value)?, wide(&value)?.with_names(names.clone()));
            let average = formula(&own, &value, n)?;
            let message = || format!("avg_fn gave {} for a parameter of {}", average.shape(), own.shape());
            Error::ensure(average.sizes() == own.sizes(), ErrorKind::Shape, "avg_fn", message)?;
            self.value = average.to(dtype)?.with_names(names);
        } else if dtype.is_floating_point() {
            let is_far = weight.abs() >= 0.5;
            let numbers = if is_far { [1.0, weight - 1.0] } else { [0.0, weight] };
            let value = value.to(dtype)?.contiguous()?;
            apply(&LerpFormula, numbers, &mut self.value, &value, [])?;
        } else {
            // Of integers, such as a number of batches, which are rounded towards 0.
            let [own, value] = [self.value.unnamed().to(DType::F32)?, value.to(DType::F32)?];
            let average = match rule {
                Rule::Ema => own.mul(decay)?.add(&value.mul(weight)?)?,
                Rule::Equal => value.sub(&own)?.div(n as f64 + 1.0)?.add(&own)?,
                _ => value.sub(&own)?.mul(weight)?.add(&own)?,
            };
            self.value = average.to(dtype)?.with_names(names);
        }
        self.count += 1;
        Ok(())
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
