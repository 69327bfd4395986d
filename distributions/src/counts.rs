//! Counts: geometric, binomial, negative binomial, Poisson.

use crate::common::*;
use crate::odds::Odds;
use crate::special::counted;
use crate::support::numbers;

/// The number of failures before the first success, of trials with probability `p`: `k` with probability
/// `(1 - p)^k p`.
///
/// ```
/// use namegrad::distributions::Geometric;
/// use namegrad::prelude::*;
/// let x = Geometric::new(&Tensor::new([0.5, 0.25])?.refine_names(["N"])?)?;
/// assert_eq!(x.mean()?.to_vec::<f32>()?, [1.0, 3.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Geometric {
    odds: Odds,
    frame: Frame,
}

impl Geometric {
    /// The distribution with probability `probs`, above 0.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `probs` is above 0 and at most 1, [`ErrorKind::DType`] unless
    /// floating-point.
    #[track_caller]
    pub fn new(probs: impl Operand) -> Result<Geometric> {
        Geometric::of(&probs, false)
    }

    /// The distribution with probability `σ(logits)`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for NaN, [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn from_logits(logits: impl Operand) -> Result<Geometric> {
        Geometric::of(&logits, true)
    }

    #[track_caller]
    fn of(given: &dyn Operand, is_logits: bool) -> Result<Geometric> {
        let given = Odds::parameter(given, is_logits, Support::PositiveUnitInterval);
        let ([given], frame) = parameters("Geometric", [given])?;
        Ok(Geometric { odds: Odds::of(given, is_logits), frame })
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

    /// `(1 - p) / p`.
    #[track_caller]
    fn failures(&self) -> Result<Tensor> {
        if self.odds.is_logits() {
            self.odds.given().neg().exp()
        } else {
            self.odds.given().reciprocal().sub(1.0)
        }
    }
}

impl Distribution for Geometric {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::NonNegativeInteger
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let given = self.odds.given();
        if self.odds.is_logits() {
            return counted(x, &given.neg().logsigmoid()?)?.add(given.logsigmoid()?);
        }
        // where no trial fails, failures are not looked at, so that their gradient is 0
        let unused = x.eq(0.0)?.logical_and(given.eq(1.0)?)?;
        x.mul(unused.choose(0.0, given).neg().log1p()?)?.add(given.log()?)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let rate = match self.odds.is_logits() {
            true => self.odds.given().neg().logsigmoid().neg()?,
            false => self.odds.given().neg().log1p().neg()?,
        };
        random::exponential(shape, self.frame.dtype())?.div(rate).floor()
    }
    fn mean(&self) -> Result<Tensor> {
        self.failures()
    }
    fn mode(&self) -> Result<Tensor> {
        self.odds.given().detach().zeros_like()
    }
    fn variance(&self) -> Result<Tensor> {
        self.failures()?.div(self.probs()?)
    }
    fn entropy(&self) -> Result<Tensor> {
        crate::bernoulli::log_likelihood(&self.probs()?, &self.logits()?)?.neg().div(self.probs()?)
    }
}

/// The binomial distribution of the number of successes in `n` trials with probability `p`: `k` with
/// probability `n! / (k! (n - k)!) p^k (1 - p)^(n - k)`.
///
/// ```
/// use namegrad::distributions::Binomial;
/// use namegrad::prelude::*;
/// let x = Binomial::new(10, &Tensor::new([0.5, 0.25])?.refine_names(["N"])?)?;
/// assert_eq!(x.mean()?.to_vec::<f32>()?, [5.0, 2.5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Probabilities of large counts: Loader, *Fast and Accurate Computation of Binomial Probabilities* (2000).
#[derive(Clone, Debug)]
pub struct Binomial {
    /// The number of trials `n`.
    pub total_count: Tensor,
    odds: Odds,
    frame: Frame,
}

impl Binomial {
    /// The distribution of `total_count` trials with probability `probs`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `total_count` is a whole number that is not negative and `probs` between 0
    /// and 1, [`ErrorKind::DType`] unless floating-point, the errors of broadcasting.
    #[track_caller]
    pub fn new(total_count: impl Operand, probs: impl Operand) -> Result<Binomial> {
        Binomial::of(&total_count, &probs, false)
    }

    /// The distribution of `total_count` trials with probability `σ(logits)`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[track_caller]
    pub fn from_logits(total_count: impl Operand, logits: impl Operand) -> Result<Binomial> {
        Binomial::of(&total_count, &logits, true)
    }

    #[track_caller]
    fn of(total_count: &dyn Operand, given: &dyn Operand, is_logits: bool) -> Result<Binomial> {
        let given = Odds::parameter(given, is_logits, Support::UnitInterval);
        let both = [("total_count", total_count, Support::NonNegativeInteger), given];
        let ([total_count, given], frame) = parameters("Binomial", both)?;
        Ok(Binomial { total_count, odds: Odds::of(given, is_logits), frame })
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

impl Distribution for Binomial {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::IntegerUpTo(self.total_count.clone())
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        special::log_binomial(x, &self.total_count, &self.logits()?)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        random::draw(shape, &[&self.total_count, &self.probs()?], |source, x| source.binomial(x[0], x[1]))
    }
    fn values(&self) -> Result<Tensor> {
        let counts = numbers(&self.total_count)?;
        let largest = counts.iter().copied().fold(0.0, f64::max);
        if counts.iter().any(|count| *count != largest) {
            let message = "the values of Binomial can be listed only if all have the same total_count";
            return Err(Error::new(ErrorKind::Unsupported, "enumerate_support", message));
        }
        TensorOptions::new().dtype(self.frame.dtype()).arange(0.0, largest + 1.0, 1.0)
    }
    fn mean(&self) -> Result<Tensor> {
        self.total_count.mul(self.probs()?)
    }
    fn mode(&self) -> Result<Tensor> {
        self.total_count.add(1.0).mul(self.probs()?).floor().minimum(&self.total_count)
    }
    fn variance(&self) -> Result<Tensor> {
        self.total_count.mul(self.probs()?).mul(self.odds.failure()?)
    }
    fn entropy(&self) -> Result<Tensor> {
        let log = self.log_density(&self.listed()?)?; // [values, batch]
        log.exp().mul(&log).sum(0).neg()
    }
}

impl Binomial {
    /// All values along a new first dim.
    #[track_caller]
    pub(crate) fn listed(&self) -> Result<Tensor> {
        let values = self.values()?;
        let mut sizes = vec![1; self.frame.batch().sizes.len() + 1];
        sizes[0] = values.numel();
        values.reshape(sizes)
    }
}

/// The number of successes before `r` failures, of trials with probability `p`: `k` with probability
/// `Γ(r + k) / (k! Γ(r)) p^k (1 - p)^r`.
///
/// ```
/// use namegrad::distributions::NegativeBinomial;
/// use namegrad::prelude::*;
/// let x = NegativeBinomial::new(10, &Tensor::new([0.5, 0.75])?.refine_names(["N"])?)?;
/// assert!(x.mean()?.allclose(&Tensor::new([10.0, 30.0])?)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct NegativeBinomial {
    /// The number of failures `r`, which need not be whole.
    pub total_count: Tensor,
    odds: Odds,
    frame: Frame,
}

impl NegativeBinomial {
    /// The distribution of the successes before `total_count` failures, with the probability `probs` of a
    /// success.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `total_count` is at least 0 and `probs` at least 0 and less than 1,
    /// [`ErrorKind::DType`] unless floating-point, the errors of broadcasting.
    #[track_caller]
    pub fn new(total_count: impl Operand, probs: impl Operand) -> Result<NegativeBinomial> {
        NegativeBinomial::of(&total_count, &probs, false)
    }

    /// The distribution with probability `σ(logits)` of a success.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[track_caller]
    pub fn from_logits(total_count: impl Operand, logits: impl Operand) -> Result<NegativeBinomial> {
        NegativeBinomial::of(&total_count, &logits, true)
    }

    #[track_caller]
    fn of(total_count: &dyn Operand, given: &dyn Operand, is_logits: bool) -> Result<NegativeBinomial> {
        let given = Odds::parameter(given, is_logits, Support::BelowOne);
        let both = [("total_count", total_count, Support::NonNegative), given];
        let ([total_count, given], frame) = parameters("NegativeBinomial", both)?;
        Ok(NegativeBinomial { total_count, odds: Odds::of(given, is_logits), frame })
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

impl Distribution for NegativeBinomial {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::NonNegativeInteger
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        // r / (r + k) times the probability of k successes in r + k trials
        let trials = self.total_count.add(x)?;
        let none = trials.eq(0.0)?;
        let log = special::log_binomial(x, &trials, &self.logits()?)?;
        let safe = none.choose(1.0, &trials)?;
        log.add(none.choose(1.0, &self.total_count)?.div(safe).log()?)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        random::draw(shape, &[&self.total_count, &self.logits()?], |source, x| match x[0] {
            0.0 => 0.0,
            count => {
                let rate = (source.log_gamma(count) + x[1]).exp();
                source.poisson(rate)
            }
        })
    }
    fn mean(&self) -> Result<Tensor> {
        self.total_count.mul(self.logits()?.exp()?)
    }
    fn mode(&self) -> Result<Tensor> {
        self.total_count.sub(1.0).mul(self.logits()?.exp()?).floor().clamp_min(0.0)
    }
    fn variance(&self) -> Result<Tensor> {
        self.mean()?.div(self.logits()?.neg().sigmoid()?)
    }
}

/// Poisson's distribution of the number of arrivals: `k` with probability `λ^k e^-λ / k!`.
///
/// ```
/// use namegrad::distributions::Poisson;
/// use namegrad::prelude::*;
/// let x = Poisson::new(&Tensor::new([0.5, 1e6])?.refine_names(["N"])?)?;
/// assert_eq!(x.variance()?.to_vec::<f32>()?, [0.5, 1e6]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Probabilities of large counts: Loader, *Fast and Accurate Computation of Binomial Probabilities* (2000).
#[derive(Clone, Debug)]
pub struct Poisson {
    /// The mean `λ`, at least 0.
    pub rate: Tensor,
    frame: Frame,
}

impl Poisson {
    /// The distribution with mean `rate`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a negative `rate` and NaN, [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn new(rate: impl Operand) -> Result<Poisson> {
        let ([rate], frame) = parameters("Poisson", [("rate", &rate, Support::NonNegative)])?;
        Ok(Poisson { rate, frame })
    }
}

impl Distribution for Poisson {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::NonNegativeInteger
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        special::log_poisson(x, &self.rate)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        random::draw(shape, &[&self.rate], |source, x| source.poisson(x[0]))
    }
    fn mean(&self) -> Result<Tensor> {
        Ok(self.rate.clone())
    }
    fn mode(&self) -> Result<Tensor> {
        self.rate.floor()
    }
    fn variance(&self) -> Result<Tensor> {
        Ok(self.rate.clone())
    }
}
