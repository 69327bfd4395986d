//! Distributions whose quantiles are functions of a uniform variable: uniform, exponential, Weibull, Pareto,
//! Kumaraswamy.

use crate::common::*;

/// The uniform distribution on `[low, high)`, with density `1 / (high - low)`.
///
/// ```
/// use namegrad::distributions::Uniform;
/// use namegrad::prelude::*;
/// let x = Uniform::new(0.0, &Tensor::new([1.0, 4.0])?.refine_names(["N"])?)?;
/// assert_eq!(x.mean()?.to_vec::<f32>()?, [0.5, 2.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Uniform {
    /// The smallest value.
    pub low: Tensor,
    /// The end of the range, above `low`.
    pub high: Tensor,
    frame: Frame,
}

impl Uniform {
    /// The distribution on `[low, high)`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `low < high`, [`ErrorKind::DType`] unless floating-point, the errors of
    /// broadcasting.
    #[track_caller]
    pub fn new(low: impl Operand, high: impl Operand) -> Result<Uniform> {
        let ([low, high], frame) =
            parameters("Uniform", [("low", &low, Support::Real), ("high", &high, Support::Real)])?;
        check("Uniform", "low", &Support::Below(high.clone()), &low)?;
        Ok(Uniform { low, high, frame })
    }

    #[track_caller]
    fn width(&self) -> Result<Tensor> {
        self.high.sub(&self.low)
    }
}

impl Distribution for Uniform {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Interval { low: self.low.clone(), high: self.high.clone() }
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let inside = x.ge(&self.low)?.logical_and(x.lt(&self.high)?)?;
        inside.to(self.low.dtype())?.log()?.sub(self.width()?.log()?)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        TensorOptions::new().dtype(self.low.dtype()).rand(shape)?.mul(self.width()?).add(&self.low)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        x.sub(&self.low).div(self.width()?).clamp(0.0, 1.0)
    }
    fn quantile(&self, p: &Tensor) -> Result<Tensor> {
        p.mul(self.width()?).add(&self.low)
    }
    fn mean(&self) -> Result<Tensor> {
        self.high.add(&self.low).mul(0.5)
    }
    fn mode(&self) -> Result<Tensor> {
        self.high.mul(f64::NAN)
    }
    fn variance(&self) -> Result<Tensor> {
        self.width()?.square().div(12.0)
    }
    fn stddev(&self) -> Result<Tensor> {
        self.width()?.div(12f64.sqrt())
    }
    fn entropy(&self) -> Result<Tensor> {
        self.width()?.log()
    }
}

/// The exponential distribution, with density `λ e^(-λ x)` for `x >= 0`.
///
/// ```
/// use namegrad::distributions::Exponential;
/// use namegrad::prelude::*;
/// let x = Exponential::new(&Tensor::new([1.0, 4.0])?.refine_names(["N"])?)?;
/// assert_eq!(x.mean()?.to_vec::<f32>()?, [1.0, 0.25]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Exponential {
    /// The rate `λ`, positive.
    pub rate: Tensor,
    frame: Frame,
}

impl Exponential {
    /// The distribution with this rate.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new).
    #[track_caller]
    pub fn new(rate: impl Operand) -> Result<Exponential> {
        let ([rate], frame) = parameters("Exponential", [("rate", &rate, Support::Positive)])?;
        Ok(Exponential { rate, frame })
    }
}

impl Distribution for Exponential {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::NonNegative
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        self.rate.log()?.sub(self.rate.mul(x)?)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        random::exponential(shape, self.rate.dtype())?.div(&self.rate)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        self.rate.mul(x).neg().expm1().neg()
    }
    fn quantile(&self, p: &Tensor) -> Result<Tensor> {
        p.neg().log1p().neg().div(&self.rate)
    }
    fn mean(&self) -> Result<Tensor> {
        self.rate.reciprocal()
    }
    fn mode(&self) -> Result<Tensor> {
        self.rate.zeros_like()
    }
    fn variance(&self) -> Result<Tensor> {
        self.rate.square().reciprocal()
    }
    fn stddev(&self) -> Result<Tensor> {
        self.rate.reciprocal()
    }
    fn entropy(&self) -> Result<Tensor> {
        self.rate.log().neg().add(1.0)
    }
}

/// Weibull's distribution, with density `(k / λ) (x / λ)^(k - 1) exp(-(x / λ)^k)` for positive `x`.
///
/// ```
/// use namegrad::distributions::Weibull;
/// use namegrad::prelude::*;
/// let x = Weibull::new(&Tensor::new([1.0, 4.0])?.refine_names(["N"])?, 1.0)?; // exponential
/// assert!(x.mean()?.allclose(&Tensor::new([1.0, 4.0])?)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Weibull {
    /// The scale `λ`, positive.
    pub scale: Tensor,
    /// The shape `k`, positive.
    pub concentration: Tensor,
    frame: Frame,
}

impl Weibull {
    /// The distribution with this scale and shape.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new).
    #[track_caller]
    pub fn new(scale: impl Operand, concentration: impl Operand) -> Result<Weibull> {
        let given = [
            ("scale", &scale as &dyn Operand, Support::Positive),
            ("concentration", &concentration, Support::Positive),
        ];
        let ([scale, concentration], frame) = parameters("Weibull", given)?;
        Ok(Weibull { scale, concentration, frame })
    }

    /// `E[(x / λ)^n]`, which is `Γ(1 + n / k)`.
    #[track_caller]
    fn moment(&self, n: f64) -> Result<Tensor> {
        self.concentration.reciprocal().mul(n).add(1.0).lgamma().exp()
    }
}

impl Distribution for Weibull {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Positive
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let log = x.div(&self.scale).log()?;
        let power = self.concentration.mul(&log).exp()?;
        self.concentration.div(&self.scale).log().add(self.concentration.sub(1.0).mul(&log)?).sub(power)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let drawn = random::exponential(shape, self.scale.dtype())?;
        drawn.log().div(&self.concentration).exp().mul(&self.scale)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        x.div(&self.scale).pow(&self.concentration).neg().expm1().neg()
    }
    fn quantile(&self, p: &Tensor) -> Result<Tensor> {
        p.neg().log1p().neg().pow(self.concentration.reciprocal()?).mul(&self.scale)
    }
    fn mean(&self) -> Result<Tensor> {
        self.moment(1.0)?.mul(&self.scale)
    }
    fn mode(&self) -> Result<Tensor> {
        let k = &self.concentration;
        k.sub(1.0).div(k).pow(k.reciprocal()?).mul(&self.scale)
    }
    fn variance(&self) -> Result<Tensor> {
        self.moment(2.0)?.sub(self.moment(1.0)?.square()?).mul(self.scale.square()?)
    }
    fn entropy(&self) -> Result<Tensor> {
        let inverse = self.concentration.reciprocal()?;
        inverse.neg().add(1.0).mul(EULER).add(self.scale.mul(&inverse).log()?).add(1.0)
    }
}

/// Pareto's distribution, with density `α m^α / x^(α + 1)` for `x >= m`.
///
/// ```
/// use namegrad::distributions::Pareto;
/// use namegrad::prelude::*;
/// let x = Pareto::new(1.0, &Tensor::new([2.0, 3.0])?.refine_names(["N"])?)?;
/// assert_eq!(x.mean()?.to_vec::<f32>()?, [2.0, 1.5]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pareto {
    /// The smallest value `m`, positive.
    pub scale: Tensor,
    /// The shape `α`, positive.
    pub alpha: Tensor,
    frame: Frame,
}

impl Pareto {
    /// The distribution of values from `scale` on.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new).
    #[track_caller]
    pub fn new(scale: impl Operand, alpha: impl Operand) -> Result<Pareto> {
        let ([scale, alpha], frame) = parameters(
            "Pareto",
            [("scale", &scale, Support::Positive), ("alpha", &alpha, Support::Positive)],
        )?;
        Ok(Pareto { scale, alpha, frame })
    }
}

impl Distribution for Pareto {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::AtLeast(self.scale.clone())
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        self.alpha.log().sub(x.log()?)?.sub(x.div(&self.scale).log().mul(&self.alpha)?)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        random::exponential(shape, self.scale.dtype())?.div(&self.alpha).exp().mul(&self.scale)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        x.div(&self.scale).log().mul(&self.alpha).neg().expm1().neg()
    }
    fn quantile(&self, p: &Tensor) -> Result<Tensor> {
        p.neg().log1p().neg().div(&self.alpha).exp().mul(&self.scale)
    }
    fn mean(&self) -> Result<Tensor> {
        let a = self.alpha.clamp_min(1.0)?;
        a.mul(&self.scale).div(a.sub(1.0)?)
    }
    fn mode(&self) -> Result<Tensor> {
        Ok(self.scale.clone())
    }
    fn variance(&self) -> Result<Tensor> {
        let a = self.alpha.clamp_min(2.0)?;
        self.scale.square().mul(&a).div(a.sub(1.0).square().mul(a.sub(2.0)?)?)
    }
    fn entropy(&self) -> Result<Tensor> {
        self.scale.div(&self.alpha).log().add(self.alpha.reciprocal()?).add(1.0)
    }
}

/// Kumaraswamy's distribution on `[0, 1]`, with density `a b x^(a - 1) (1 - x^a)^(b - 1)`: like a beta
/// distribution, with quantiles in closed form.
///
/// ```
/// use namegrad::distributions::Kumaraswamy;
/// use namegrad::prelude::*;
/// let x = Kumaraswamy::new(&Tensor::ones([("N", 2)])?, 1.0)?; // uniform
/// assert_eq!(x.icdf(&Tensor::new([0.25, 0.5])?)?.to_vec::<f32>()?, [0.25, 0.5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Kumaraswamy, *A generalized probability density function for double-bounded random processes* (1980).
#[derive(Clone, Debug)]
pub struct Kumaraswamy {
    /// The shape `a`, positive.
    pub concentration1: Tensor,
    /// The shape `b`, positive.
    pub concentration0: Tensor,
    frame: Frame,
}

impl Kumaraswamy {
    /// The distribution with the shapes `a` and `b`.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new).
    #[track_caller]
    pub fn new(concentration1: impl Operand, concentration0: impl Operand) -> Result<Kumaraswamy> {
        let given = [
            ("concentration1", &concentration1 as &dyn Operand, Support::Positive),
            ("concentration0", &concentration0, Support::Positive),
        ];
        let ([concentration1, concentration0], frame) = parameters("Kumaraswamy", given)?;
        Ok(Kumaraswamy { concentration1, concentration0, frame })
    }

    /// `E[x^n]`, which is `b B(1 + n / a, b)`.
    #[track_caller]
    fn moment(&self, n: f64) -> Result<Tensor> {
        let first = self.concentration1.reciprocal().mul(n).add(1.0)?;
        special::log_beta(&first, &self.concentration0)?.exp().mul(&self.concentration0)
    }

    /// The quantile of `e^-t`: `(1 - e^(-t / b))^(1 / a)`.
    #[track_caller]
    fn above(&self, t: &Tensor) -> Result<Tensor> {
        t.div(&self.concentration0).neg().expm1().neg().log().div(&self.concentration1).exp()
    }
}

impl Distribution for Kumaraswamy {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::UnitInterval
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let (a, b) = (&self.concentration1, &self.concentration0);
        let rest = special::log1m_exp(&x.log().mul(a).neg()?)?;
        let both = a.mul(b).log()?;
        both.add(special::counted(&a.sub(1.0)?, &x.log()?)?).add(special::counted(&b.sub(1.0)?, &rest)?)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        self.above(&random::exponential(shape, self.concentration1.dtype())?)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        let rest = special::log1m_exp(&x.log().mul(&self.concentration1).neg()?)?;
        rest.mul(&self.concentration0).expm1().neg()
    }
    fn quantile(&self, p: &Tensor) -> Result<Tensor> {
        self.above(&p.neg().log1p().neg()?)
    }
    fn mean(&self) -> Result<Tensor> {
        self.moment(1.0)
    }
    fn mode(&self) -> Result<Tensor> {
        let (a, b) = (&self.concentration1, &self.concentration0);
        let none = a.lt(1.0)?.logical_or(b.lt(1.0)?)?;
        let [a, b] = [a, b].map(|shape| none.choose(2.0, shape));
        let (a, b) = (a?, b?);
        a.sub(1.0).div(a.mul(b).sub(1.0)?).pow(a.reciprocal()?)?.masked_fill(&none, f64::NAN)
    }
    fn variance(&self) -> Result<Tensor> {
        self.moment(2.0)?.sub(self.moment(1.0)?.square()?)
    }
    fn entropy(&self) -> Result<Tensor> {
        let (a, b) = (&self.concentration1, &self.concentration0);
        let harmonic = b.add(1.0).digamma().add(EULER)?;
        let of_a = a.reciprocal().neg().add(1.0).mul(harmonic)?;
        b.reciprocal().neg().add(1.0).add(of_a).sub(a.mul(b).log()?)
    }
}
