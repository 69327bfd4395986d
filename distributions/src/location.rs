//! Distributions around a location: Laplace, Cauchy, half Cauchy, Gumbel.

use crate::common::*;

/// Laplace's distribution, with density `exp(-|x - μ| / b) / (2 b)`.
///
/// ```
/// use namegrad::distributions::Laplace;
/// use namegrad::prelude::*;
/// let x = Laplace::new(&Tensor::zeros([("N", 2)])?, 1.0)?;
/// assert_eq!(x.variance()?.to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Laplace {
    /// The mean `μ`.
    pub loc: Tensor,
    /// The scale `b`, positive.
    pub scale: Tensor,
    frame: Frame,
}

impl Laplace {
    /// The distribution around `loc`.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new).
    #[track_caller]
    pub fn new(loc: impl Operand, scale: impl Operand) -> Result<Laplace> {
        let ([loc, scale], frame) =
            parameters("Laplace", [("loc", &loc, Support::Real), ("scale", &scale, Support::Positive)])?;
        Ok(Laplace { loc, scale, frame })
    }
}

impl Distribution for Laplace {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Real
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        x.sub(&self.loc).abs().div(&self.scale).add(self.scale.mul(2.0).log()?).neg()
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let sign = random::uniform(shape, self.loc.dtype())?.lt(0.5)?.choose(1.0, -1.0)?;
        random::exponential(shape, self.loc.dtype())?
            .mul(sign.to(self.loc.dtype())?)
            .mul(&self.scale)
            .add(&self.loc)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        let z = x.sub(&self.loc).div(&self.scale)?;
        let below = z.lt(0.0)?;
        let tail = below.choose(&z, z.neg()?).exp().mul(0.5)?;
        below.choose(&tail, tail.neg().add(1.0)?)
    }
    fn quantile(&self, p: &Tensor) -> Result<Tensor> {
        let upper = p.neg().add(1.0).mul(2.0).log().neg()?;
        p.lt(0.5)?.choose(p.mul(2.0).log()?, upper)?.mul(&self.scale).add(&self.loc)
    }
    fn mean(&self) -> Result<Tensor> {
        Ok(self.loc.clone())
    }
    fn mode(&self) -> Result<Tensor> {
        Ok(self.loc.clone())
    }
    fn variance(&self) -> Result<Tensor> {
        self.scale.square().mul(2.0)
    }
    fn stddev(&self) -> Result<Tensor> {
        self.scale.mul(SQRT_2)
    }
    fn entropy(&self) -> Result<Tensor> {
        self.scale.mul(2.0).log().add(1.0)
    }
}

/// Cauchy's distribution, with density `1 / (π γ (1 + ((x - x₀) / γ)²))`. It has no mean.
///
/// ```
/// use namegrad::distributions::Cauchy;
/// use namegrad::prelude::*;
/// let x = Cauchy::new(0.0, &Tensor::ones([("N", 2)])?)?;
/// assert_eq!(x.cdf(&Tensor::new([-1.0, 1.0])?)?.to_vec::<f32>()?, [0.25, 0.75]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cauchy {
    /// The median and mode `x₀`.
    pub loc: Tensor,
    /// Half of the width at half of the height, `γ`, positive.
    pub scale: Tensor,
    frame: Frame,
}

impl Cauchy {
    /// The distribution around `loc`.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new).
    #[track_caller]
    pub fn new(loc: impl Operand, scale: impl Operand) -> Result<Cauchy> {
        let ([loc, scale], frame) =
            parameters("Cauchy", [("loc", &loc, Support::Real), ("scale", &scale, Support::Positive)])?;
        Ok(Cauchy { loc, scale, frame })
    }
}

impl Distribution for Cauchy {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Real
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let z = x.sub(&self.loc).div(&self.scale)?;
        special::log1p_square(&z)?.add(self.scale.log()?).add(PI.ln()).neg()
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let mut drawn = TensorOptions::new().dtype(self.loc.dtype()).zeros(shape)?;
        drawn.cauchy_(0.0, 1.0)?;
        drawn.mul(&self.scale).add(&self.loc)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        // the angle of (-z, 1), which is accurate in both tails
        let z = x.sub(&self.loc).div(&self.scale)?;
        z.ones_like()?.atan2(z.neg()?)?.mul(1.0 / PI)
    }
    fn quantile(&self, p: &Tensor) -> Result<Tensor> {
        let lower = p.mul(PI).tan().reciprocal().neg()?;
        let upper = p.neg().add(1.0).mul(PI).tan().reciprocal()?;
        p.le(0.5)?.choose(lower, upper)?.mul(&self.scale).add(&self.loc)
    }
    fn mean(&self) -> Result<Tensor> {
        self.loc.detach().full_like(f64::NAN)
    }
    fn mode(&self) -> Result<Tensor> {
        Ok(self.loc.clone())
    }
    fn variance(&self) -> Result<Tensor> {
        self.loc.detach().full_like(f64::INFINITY)
    }
    fn entropy(&self) -> Result<Tensor> {
        self.scale.log().add((4.0 * PI).ln())
    }
}

/// The distribution of `|z|` for a `z` of Cauchy's distribution around 0, with density
/// `2 / (π γ (1 + (x / γ)²))` for `x >= 0`. Its mean is infinite.
///
/// ```
/// use namegrad::distributions::HalfCauchy;
/// use namegrad::prelude::*;
/// let x = HalfCauchy::new(&Tensor::ones([("N", 1)])?)?;
/// assert_eq!(x.cdf(&Tensor::new([1.0])?)?.to_vec::<f32>()?, [0.5]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct HalfCauchy {
    pub(crate) cauchy: Cauchy,
    frame: Frame,
}

impl HalfCauchy {
    /// The distribution of the absolute value of a variable of Cauchy's distribution with this `scale`,
    /// positive.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new).
    #[track_caller]
    pub fn new(scale: impl Operand) -> Result<HalfCauchy> {
        let ([scale], frame) = parameters("HalfCauchy", [("scale", &scale, Support::Positive)])?;
        let loc = scale.detach().zeros_like()?;
        Ok(HalfCauchy { cauchy: Cauchy { loc, scale, frame: frame.called("Cauchy") }, frame })
    }

    /// The median `γ`.
    pub fn scale(&self) -> &Tensor {
        &self.cauchy.scale
    }
}

impl Distribution for HalfCauchy {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::NonNegative
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let log = self.cauchy.log_density(x)?.add(LN_2)?;
        log.masked_fill(&x.lt(0.0)?, f64::NEG_INFINITY)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        self.cauchy.draw(shape)?.abs()
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        x.div(self.scale()).atan().mul(2.0 / PI)
    }
    fn quantile(&self, p: &Tensor) -> Result<Tensor> {
        let upper = p.neg().add(1.0).mul(0.5 * PI).tan().reciprocal()?;
        p.le(0.5)?.choose(p.mul(0.5 * PI).tan()?, upper)?.mul(self.scale())
    }
    fn mean(&self) -> Result<Tensor> {
        self.scale().detach().full_like(f64::INFINITY)
    }
    fn mode(&self) -> Result<Tensor> {
        self.scale().zeros_like()
    }
    fn variance(&self) -> Result<Tensor> {
        self.cauchy.variance()
    }
    fn entropy(&self) -> Result<Tensor> {
        self.cauchy.entropy()?.sub(LN_2)
    }
}

/// Gumbel's distribution of the largest of many values, with density `exp(-z - e^-z) / β` for
/// `z = (x - μ) / β`.
///
/// ```
/// use namegrad::distributions::Gumbel;
/// use namegrad::prelude::*;
/// let x = Gumbel::new(&Tensor::zeros([("N", 1)])?, 1.0)?;
/// assert!((x.mean()?.item::<f64>()? - 0.57721566).abs() < 1e-6);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gumbel {
    /// The mode `μ`.
    pub loc: Tensor,
    /// The scale `β`, positive.
    pub scale: Tensor,
    frame: Frame,
}

impl Gumbel {
    /// The distribution with mode `loc`.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new).
    #[track_caller]
    pub fn new(loc: impl Operand, scale: impl Operand) -> Result<Gumbel> {
        let ([loc, scale], frame) =
            parameters("Gumbel", [("loc", &loc, Support::Real), ("scale", &scale, Support::Positive)])?;
        Ok(Gumbel { loc, scale, frame })
    }
}

impl Distribution for Gumbel {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Real
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.loc.sub(x).div(&self.scale)?;
        // `y - e^y` is -inf where `y` is, not NaN
        let log = y.sub(y.exp()?).sub(self.scale.log()?)?;
        log.masked_fill(&y.isposinf()?, f64::NEG_INFINITY)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        self.loc.sub(random::exponential(shape, self.loc.dtype())?.log().mul(&self.scale)?)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        self.loc.sub(x).div(&self.scale).exp().neg().exp()
    }
    fn quantile(&self, p: &Tensor) -> Result<Tensor> {
        self.loc.sub(p.log().neg().log().mul(&self.scale)?)
    }
    fn mean(&self) -> Result<Tensor> {
        self.scale.mul(EULER).add(&self.loc)
    }
    fn mode(&self) -> Result<Tensor> {
        Ok(self.loc.clone())
    }
    fn variance(&self) -> Result<Tensor> {
        self.stddev()?.square()
    }
    fn stddev(&self) -> Result<Tensor> {
        self.scale.mul(PI / 6f64.sqrt())
    }
    fn entropy(&self) -> Result<Tensor> {
        self.scale.log().add(1.0 + EULER)
    }
}
