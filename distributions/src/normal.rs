//! The normal distribution and those of functions of a normal variable.

use crate::common::*;

/// The normal distribution, with density `exp(-(x - μ)² / (2 σ²)) / (σ √(2π))`.
///
/// ```
/// use namegrad::distributions::Normal;
/// use namegrad::prelude::*;
/// let loc = Tensor::new([0.0, 1.0])?.refine_names(["N"])?;
/// let normal = Normal::new(&loc, 1.0)?;
/// assert_eq!(normal.log_prob(&loc)?.shape().to_string(), "[N=2]");
/// assert!((normal.cdf(&Tensor::new([0.0, 1.0])?)?.item_at::<f64>([1])? - 0.5).abs() < 1e-7);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Normal {
    /// The mean `μ`.
    pub loc: Tensor,
    /// The standard deviation `σ`, positive.
    pub scale: Tensor,
    frame: Frame,
}

impl Normal {
    /// The distribution with mean `loc` and standard deviation `scale`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `scale` is positive and `loc` a number, [`ErrorKind::DType`] unless
    /// floating-point, the errors of broadcasting.
    #[track_caller]
    pub fn new(loc: impl Operand, scale: impl Operand) -> Result<Normal> {
        let ([loc, scale], frame) =
            parameters("Normal", [("loc", &loc, Support::Real), ("scale", &scale, Support::Positive)])?;
        Ok(Normal { loc, scale, frame })
    }

    /// The distance from the mean in standard deviations.
    #[track_caller]
    fn standard(&self, x: &Tensor) -> Result<Tensor> {
        x.sub(&self.loc).div(&self.scale)
    }
}

impl Distribution for Normal {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Real
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        self.standard(x).square().mul(-0.5).sub(self.scale.log()?).sub(0.5 * TAU.ln())
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        random::normal(shape, self.loc.dtype())?.mul(&self.scale).add(&self.loc)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        self.standard(x)?.ndtr()
    }
    fn quantile(&self, p: &Tensor) -> Result<Tensor> {
        p.ndtri().mul(&self.scale).add(&self.loc)
    }
    fn mean(&self) -> Result<Tensor> {
        Ok(self.loc.clone())
    }
    fn mode(&self) -> Result<Tensor> {
        Ok(self.loc.clone())
    }
    fn variance(&self) -> Result<Tensor> {
        self.scale.square()
    }
    fn stddev(&self) -> Result<Tensor> {
        Ok(self.scale.clone())
    }
    fn entropy(&self) -> Result<Tensor> {
        self.scale.log().add(0.5 + 0.5 * TAU.ln())
    }
}

/// The distribution of `e^z` for a normal `z`, with density
/// `exp(-(log x - μ)² / (2 σ²)) / (x σ √(2π))` for positive `x`.
///
/// ```
/// use namegrad::distributions::LogNormal;
/// use namegrad::prelude::*;
/// let x = LogNormal::new(0.0, &Tensor::ones([("N", 3)])?)?;
/// assert!((x.mean()?.item_at::<f64>([0])? - 0.5f64.exp()).abs() < 1e-6);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LogNormal {
    pub(crate) normal: Normal,
    frame: Frame,
}

impl LogNormal {
    /// The distribution whose logarithm has mean `loc` and standard deviation `scale`.
    ///
    /// # Errors
    /// As [`Normal::new`].
    #[track_caller]
    pub fn new(loc: impl Operand, scale: impl Operand) -> Result<LogNormal> {
        let ([loc, scale], frame) =
            parameters("LogNormal", [("loc", &loc, Support::Real), ("scale", &scale, Support::Positive)])?;
        Ok(LogNormal { normal: Normal { loc, scale, frame: frame.called("Normal") }, frame })
    }

    /// The mean of the logarithm.
    pub fn loc(&self) -> &Tensor {
        &self.normal.loc
    }

    /// The standard deviation of the logarithm.
    pub fn scale(&self) -> &Tensor {
        &self.normal.scale
    }
}

impl Distribution for LogNormal {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Positive
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let log = x.log()?;
        self.normal.log_density(&log)?.sub(&log)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        self.normal.draw(shape)?.exp()
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        self.normal.cumulative(&x.log()?)
    }
    fn quantile(&self, p: &Tensor) -> Result<Tensor> {
        self.normal.quantile(p)?.exp()
    }
    fn mean(&self) -> Result<Tensor> {
        self.scale().square().mul(0.5).add(self.loc()).exp()
    }
    fn mode(&self) -> Result<Tensor> {
        self.loc().sub(self.scale().square()?).exp()
    }
    fn variance(&self) -> Result<Tensor> {
        let square = self.scale().square()?;
        square.expm1().mul(self.loc().mul(2.0).add(&square).exp()?)
    }
    fn entropy(&self) -> Result<Tensor> {
        self.normal.entropy()?.add(self.loc())
    }
}

/// The distribution of `|z|` for a normal `z` with mean 0, with density `√(2/π) exp(-x² / (2 σ²)) / σ`
/// for `x >= 0`.
///
/// ```
/// use namegrad::distributions::HalfNormal;
/// use namegrad::prelude::*;
/// let x = HalfNormal::new(&Tensor::ones([("N", 3)])?)?;
/// assert!((x.mean()?.item_at::<f64>([0])? - (2.0 / std::f64::consts::PI).sqrt()).abs() < 1e-6);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct HalfNormal {
    pub(crate) normal: Normal,
    frame: Frame,
}

impl HalfNormal {
    /// The distribution of the absolute value of a normal variable with standard deviation `scale`, positive.
    ///
    /// # Errors
    /// As [`Normal::new`].
    #[track_caller]
    pub fn new(scale: impl Operand) -> Result<HalfNormal> {
        let ([scale], frame) = parameters("HalfNormal", [("scale", &scale, Support::Positive)])?;
        let loc = scale.detach().zeros_like()?;
        Ok(HalfNormal { normal: Normal { loc, scale, frame: frame.called("Normal") }, frame })
    }

    /// The standard deviation `σ` of the normal variable.
    pub fn scale(&self) -> &Tensor {
        &self.normal.scale
    }
}

impl Distribution for HalfNormal {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::NonNegative
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let log = self.normal.log_density(x)?.add(LN_2)?;
        log.masked_fill(&x.lt(0.0)?, f64::NEG_INFINITY)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        self.normal.draw(shape)?.abs()
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        x.div(self.scale()).mul(FRAC_1_SQRT_2).erf()
    }
    fn quantile(&self, p: &Tensor) -> Result<Tensor> {
        p.erfinv().mul(SQRT_2).mul(self.scale())
    }
    fn mean(&self) -> Result<Tensor> {
        self.scale().mul((2.0 / PI).sqrt())
    }
    fn mode(&self) -> Result<Tensor> {
        self.scale().zeros_like()
    }
    fn variance(&self) -> Result<Tensor> {
        self.scale().square().mul(1.0 - 2.0 / PI)
    }
    fn entropy(&self) -> Result<Tensor> {
        self.normal.entropy()?.sub(LN_2)
    }
}
