//! One trial: Bernoulli, and its continuous and relaxed forms on `[0, 1]`.

use crate::common::*;
use crate::odds::{Odds, clamped, step_of, successes};
use crate::special::counted;

/// Bernoulli's distribution of one trial: 1 with probability `p`, else 0.
///
/// ```
/// use namegrad::distributions::Bernoulli;
/// use namegrad::prelude::*;
/// let coin = Bernoulli::new(&Tensor::new([0.5, 0.75])?.refine_names(["N"])?)?;
/// let heads = coin.log_prob(&Tensor::ones([("N", 2)])?)?;
/// assert!(heads.exp()?.allclose(&coin.mean()?)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bernoulli {
    pub(crate) odds: Odds,
    frame: Frame,
}

impl Bernoulli {
    /// The distribution with probability `probs`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `probs` is between 0 and 1, [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn new(probs: impl Operand) -> Result<Bernoulli> {
        Bernoulli::of(&probs, false)
    }

    /// The distribution with probability `σ(logits)`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for NaN, [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn from_logits(logits: impl Operand) -> Result<Bernoulli> {
        Bernoulli::of(&logits, true)
    }

    #[track_caller]
    fn of(given: &dyn Operand, is_logits: bool) -> Result<Bernoulli> {
        let given = Odds::parameter(given, is_logits, Support::UnitInterval);
        let ([given], frame) = parameters("Bernoulli", [given])?;
        Ok(Bernoulli { odds: Odds::of(given, is_logits), frame })
    }

    /// The probability `p`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn probs(&self) -> Result<Tensor> {
        self.odds.probs()
    }

    /// `log(p / (1 - p))`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn logits(&self) -> Result<Tensor> {
        self.odds.logits()
    }
}

/// `x log σ(l) + (1 - x) log σ(-l)`.
#[track_caller]
pub(crate) fn log_likelihood(x: &Tensor, logits: &Tensor) -> Result<Tensor> {
    counted(x, &logits.logsigmoid()?)?.add(counted(&x.neg().add(1.0)?, &logits.neg().logsigmoid()?)?)
}

impl Distribution for Bernoulli {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Boolean
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        log_likelihood(x, &self.logits()?)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        successes(shape, &self.probs()?)
    }
    fn values(&self) -> Result<Tensor> {
        TensorOptions::new().dtype(self.frame.dtype()).tensor([0.0, 1.0])
    }
    fn mean(&self) -> Result<Tensor> {
        self.probs()
    }
    fn mode(&self) -> Result<Tensor> {
        let probs = self.probs()?.detach();
        probs.ge(0.5)?.to(probs.dtype())?.masked_fill(&probs.eq(0.5)?, f64::NAN)
    }
    fn variance(&self) -> Result<Tensor> {
        self.probs()?.mul(self.odds.failure()?)
    }
    fn entropy(&self) -> Result<Tensor> {
        log_likelihood(&self.probs()?, &self.logits()?)?.neg()
    }
}

/// The continuous Bernoulli distribution on `[0, 1]`, with density proportional to `p^x (1 - p)^(1 - x)`.
///
/// ```
/// use namegrad::distributions::ContinuousBernoulli;
/// use namegrad::prelude::*;
/// let x = ContinuousBernoulli::new(&Tensor::new([0.5])?.refine_names(["N"])?)?; // uniform
/// assert!((x.mean()?.item::<f64>()? - 0.5).abs() < 1e-6);
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Loaiza-Ganem, Cunningham, *The continuous Bernoulli: fixing a pervasive error in variational autoencoders*
/// (2019).
#[derive(Clone, Debug)]
pub struct ContinuousBernoulli {
    odds: Odds,
    frame: Frame,
}

/// How small the logit is where ranks are taken from the first terms of their series.
const FLAT: f64 = 1e-5;

impl ContinuousBernoulli {
    /// The distribution with parameter `probs`, which is moved away from 0 and 1 as in PyTorch.
    ///
    /// # Errors
    /// As [`Bernoulli::new`].
    #[track_caller]
    pub fn new(probs: impl Operand) -> Result<ContinuousBernoulli> {
        ContinuousBernoulli::of(&probs, false)
    }

    /// The distribution with parameter `σ(logits)`.
    ///
    /// # Errors
    /// As [`Bernoulli::from_logits`].
    #[track_caller]
    pub fn from_logits(logits: impl Operand) -> Result<ContinuousBernoulli> {
        ContinuousBernoulli::of(&logits, true)
    }

    #[track_caller]
    fn of(given: &dyn Operand, is_logits: bool) -> Result<ContinuousBernoulli> {
        let given = Odds::parameter(given, is_logits, Support::UnitInterval);
        let ([given], frame) = parameters("ContinuousBernoulli", [given])?;
        let given = if is_logits { given } else { clamped(&given)? };
        Ok(ContinuousBernoulli { odds: Odds::of(given, is_logits), frame })
    }

    /// The parameter `p`, which is not the mean.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn probs(&self) -> Result<Tensor> {
        self.odds.probs()
    }

    /// `log(p / (1 - p))`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn logits(&self) -> Result<Tensor> {
        self.odds.logits()
    }

    /// Where the logits are almost 0, the logits elsewhere, and all logits.
    #[track_caller]
    fn flat(&self) -> Result<(Tensor, Tensor, Tensor)> {
        let logits = self.logits()?;
        let flat = logits.abs().lt(FLAT)?;
        Ok((flat.clone(), flat.choose(1.0, &logits)?, logits))
    }

    /// The derivatives of `log((e^l - 1) / l)` by the logit `l`: the density is `e^(l x)` divided by
    /// `(e^l - 1) / l`.
    #[track_caller]
    pub(crate) fn cumulant(&self, order: usize) -> Result<Tensor> {
        special::unit_cumulant(&self.logits()?, order)
    }
}

impl Distribution for ContinuousBernoulli {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::UnitInterval
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        self.logits()?.mul(x)?.sub(self.cumulant(0)?)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        self.quantile(&random::uniform(shape, self.frame.dtype())?)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        let (flat, logits, all) = self.flat()?;
        let x = x.clamp(0.0, 1.0)?;
        // (e^(l x) - 1) / (e^l - 1), for a positive l in terms of e^-l
        let rise = |l: &Tensor, x: &Tensor| l.mul(x).expm1().div(l.expm1()?);
        let (negative, rest) = (logits.abs().neg()?, x.neg().add(1.0)?);
        let below = rise(&negative, &x)?;
        let above = rise(&negative, &rest)?.neg().add(1.0)?;
        let series = x.sub(all.mul(0.5).mul(x.mul(rest)?)?)?;
        flat.choose(series, logits.lt(0.0)?.choose(below, above)?)
    }
    fn quantile(&self, p: &Tensor) -> Result<Tensor> {
        let (flat, logits, all) = self.flat()?;
        let quantile = |p: &Tensor, l: &Tensor| p.mul(l.expm1()?).log1p().div(l);
        let (negative, rest) = (logits.abs().neg()?, p.neg().add(1.0)?);
        let below = quantile(p, &negative)?;
        let above = quantile(&rest, &negative)?.neg().add(1.0)?;
        let series = p.add(all.mul(0.5).mul(p.mul(rest)?)?)?;
        flat.choose(series, logits.lt(0.0)?.choose(below, above)?)
    }
    fn mean(&self) -> Result<Tensor> {
        self.cumulant(1)
    }
    fn variance(&self) -> Result<Tensor> {
        self.cumulant(2)
    }
    fn entropy(&self) -> Result<Tensor> {
        self.cumulant(0)?.sub(self.logits()?.mul(self.cumulant(1)?)?)
    }
}

/// A smooth form of [`Bernoulli`] on `[0, 1]`, whose draws have gradients: the sigmoid of `(l + z) / t`, with
/// the logit `l`, the temperature `t` and a `z` of the logistic distribution.
///
/// ```
/// use namegrad::distributions::RelaxedBernoulli;
/// use namegrad::prelude::*;
/// let probs = Tensor::new([0.1, 0.9])?.refine_names(["N"])?.requiring_grad()?;
/// let x = RelaxedBernoulli::new(0.5, &probs)?.rsample(())?;
/// x.sum(..)?.backward()?;
/// assert!(probs.grad().unwrap().gt(0.0)?.all(..)?.item::<bool>()?);
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Maddison, Mnih, Teh, *The Concrete Distribution* (2017), appendix B.
#[derive(Clone, Debug)]
pub struct RelaxedBernoulli {
    /// The temperature `t`, positive: draws are near 0 or 1 where it is small.
    pub temperature: Tensor,
    odds: Odds,
    frame: Frame,
}

impl RelaxedBernoulli {
    /// The distribution with this temperature and the probability `probs`.
    ///
    /// # Errors
    /// As [`Bernoulli::new`]; [`ErrorKind::Value`] unless `temperature` is positive.
    #[track_caller]
    pub fn new(temperature: impl Operand, probs: impl Operand) -> Result<RelaxedBernoulli> {
        RelaxedBernoulli::of(&temperature, &probs, false)
    }

    /// The distribution with this temperature and the probability `σ(logits)`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[track_caller]
    pub fn from_logits(temperature: impl Operand, logits: impl Operand) -> Result<RelaxedBernoulli> {
        RelaxedBernoulli::of(&temperature, &logits, true)
    }

    #[track_caller]
    fn of(temperature: &dyn Operand, given: &dyn Operand, is_logits: bool) -> Result<RelaxedBernoulli> {
        let given = Odds::parameter(given, is_logits, Support::UnitInterval);
        let both = [("temperature", temperature, Support::Positive), given];
        let ([temperature, given], frame) = parameters("RelaxedBernoulli", both)?;
        Ok(RelaxedBernoulli { temperature, odds: Odds::of(given, is_logits), frame })
    }

    /// The probability of a draw above ½.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn probs(&self) -> Result<Tensor> {
        self.odds.probs()
    }

    /// `log(p / (1 - p))`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn logits(&self) -> Result<Tensor> {
        self.odds.logits()
    }
}

impl Distribution for RelaxedBernoulli {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::UnitInterval
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let tiny = if x.dtype() == DType::F64 { f64::MIN_POSITIVE } else { f32::MIN_POSITIVE.into() };
        let x = x.clamp(tiny, 1.0 - step_of(x.dtype()))?;
        let y = x.log().sub(x.neg().log1p()?)?;
        let distance = self.logits()?.sub(y.mul(&self.temperature)?)?;
        // log t + d - 2 log(1 + e^d), and the logarithm of the slope of the sigmoid
        let density = distance.logsigmoid().add(distance.neg().logsigmoid()?).add(self.temperature.log()?)?;
        density.sub(y.logsigmoid()?).sub(y.neg().logsigmoid()?)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let u = clamped(&random::uniform(shape, self.frame.dtype())?)?;
        let logistic = u.log().sub(u.neg().log1p()?)?;
        let y = self.logits()?.add(logistic).div(&self.temperature)?.sigmoid()?;
        let tiny = if y.dtype() == DType::F64 { f64::MIN_POSITIVE } else { f32::MIN_POSITIVE.into() };
        y.clamp(tiny, 1.0 - step_of(y.dtype()))
    }
    fn has_rsample(&self) -> bool {
        true
    }
}
