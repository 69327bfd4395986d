//! The gamma distribution and those that are made of it: χ², inverse gamma, Student's t, Fisher and
//! Snedecor's F.

use crate::common::*;
use crate::special::incomplete::gamma_cdf;

/// The gamma distribution, with density `β^α x^(α - 1) e^(-β x) / Γ(α)` for `x >= 0`.
///
/// Gradients flow through its draws to both parameters (implicit reparametrization).
///
/// ```
/// use namegrad::distributions::Gamma;
/// use namegrad::prelude::*;
/// let x = Gamma::new(&Tensor::new([1.0, 4.0])?.refine_names(["N"])?, 2.0)?;
/// assert_eq!(x.mean()?.to_vec::<f32>()?, [0.5, 2.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Marsaglia, Tsang, *A simple method for generating gamma variables* (2000); the gradient of draws:
/// Figurnov, Mohamed, Mnih, *Implicit Reparameterization Gradients* (2018).
#[derive(Clone, Debug)]
pub struct Gamma {
    /// The shape `α`, positive.
    pub concentration: Tensor,
    /// The rate `β`, positive.
    pub rate: Tensor,
    frame: Frame,
}

impl Gamma {
    /// The distribution with this shape and rate.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new).
    #[track_caller]
    pub fn new(concentration: impl Operand, rate: impl Operand) -> Result<Gamma> {
        Gamma::called("Gamma", &concentration, &rate)
    }

    #[track_caller]
    fn called(name: &'static str, concentration: &dyn Operand, rate: &dyn Operand) -> Result<Gamma> {
        let given = [("concentration", concentration, Support::Positive), ("rate", rate, Support::Positive)];
        let ([concentration, rate], frame) = parameters(name, given)?;
        Ok(Gamma { concentration, rate, frame })
    }
}

impl Distribution for Gamma {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::NonNegative
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        special::log_gamma_density(&self.concentration, &self.rate, x)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        random::gamma(shape, &self.concentration)?.div(&self.rate)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        gamma_cdf(&self.concentration, &self.rate.mul(x)?, false)
    }
    fn mean(&self) -> Result<Tensor> {
        self.concentration.div(&self.rate)
    }
    fn mode(&self) -> Result<Tensor> {
        self.concentration.sub(1.0).div(&self.rate).clamp_min(0.0)
    }
    fn variance(&self) -> Result<Tensor> {
        self.concentration.div(self.rate.square()?)
    }
    fn entropy(&self) -> Result<Tensor> {
        let a = &self.concentration;
        let of_shape = a.lgamma().add(a.neg().add(1.0).mul(a.digamma()?)?)?;
        a.sub(self.rate.log()?).add(of_shape)
    }
}

/// The χ² distribution of the sum of squares of `df` standard normal variables: a gamma distribution of
/// shape `df / 2` and rate ½.
///
/// ```
/// use namegrad::distributions::Chi2;
/// use namegrad::prelude::*;
/// let x = Chi2::new(&Tensor::new([1.0, 4.0])?.refine_names(["N"])?)?;
/// assert_eq!(x.variance()?.to_vec::<f32>()?, [2.0, 8.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Chi2 {
    /// The degrees of freedom, positive.
    pub df: Tensor,
    pub(crate) gamma: Gamma,
}

impl Chi2 {
    /// The distribution with `df` degrees of freedom.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new).
    #[track_caller]
    pub fn new(df: impl Operand) -> Result<Chi2> {
        let ([df], _) = parameters("Chi2", [("df", &df, Support::Positive)])?;
        let gamma = Gamma::called("Chi2", &df.mul(0.5)?, &0.5)?;
        Ok(Chi2 { df, gamma })
    }
}

impl Distribution for Chi2 {
    fn frame(&self) -> &Frame {
        &self.gamma.frame
    }
    fn support(&self) -> Support {
        self.gamma.support()
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        self.gamma.log_density(x)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        self.gamma.draw(shape)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        self.gamma.cumulative(x)
    }
    fn mean(&self) -> Result<Tensor> {
        self.gamma.mean()
    }
    fn mode(&self) -> Result<Tensor> {
        self.gamma.mode()
    }
    fn variance(&self) -> Result<Tensor> {
        self.gamma.variance()
    }
    fn entropy(&self) -> Result<Tensor> {
        self.gamma.entropy()
    }
}

/// The distribution of `1 / x` for an `x` of a gamma distribution, with density
/// `β^α x^(-α - 1) e^(-β / x) / Γ(α)` for positive `x`.
///
/// ```
/// use namegrad::distributions::InverseGamma;
/// use namegrad::prelude::*;
/// let x = InverseGamma::new(&Tensor::new([2.0, 3.0])?.refine_names(["N"])?, 1.0)?;
/// assert_eq!(x.mean()?.to_vec::<f32>()?, [1.0, 0.5]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct InverseGamma {
    pub(crate) gamma: Gamma,
    frame: Frame,
}

impl InverseGamma {
    /// The distribution of the inverse of a variable of [`Gamma`] with this shape and rate.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new).
    #[track_caller]
    pub fn new(concentration: impl Operand, rate: impl Operand) -> Result<InverseGamma> {
        let gamma = Gamma::called("InverseGamma", &concentration, &rate)?;
        Ok(InverseGamma { frame: gamma.frame.clone(), gamma })
    }

    /// The shape `α`.
    pub fn concentration(&self) -> &Tensor {
        &self.gamma.concentration
    }

    /// The scale `β`, which is the rate of the gamma distribution.
    pub fn rate(&self) -> &Tensor {
        &self.gamma.rate
    }
}

impl Distribution for InverseGamma {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Positive
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        self.gamma.log_density(&x.reciprocal()?)?.sub(x.log().mul(2.0)?)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        self.gamma.draw(shape)?.reciprocal()
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        gamma_cdf(self.concentration(), &self.rate().div(x)?, true)
    }
    fn mean(&self) -> Result<Tensor> {
        let mean = self.rate().div(self.concentration().sub(1.0)?)?;
        mean.masked_fill(&self.concentration().le(1.0)?, f64::INFINITY)
    }
    fn mode(&self) -> Result<Tensor> {
        self.rate().div(self.concentration().add(1.0)?)
    }
    fn variance(&self) -> Result<Tensor> {
        let a = self.concentration();
        let variance = self.rate().square().div(a.sub(1.0).square().mul(a.sub(2.0)?)?)?;
        variance.masked_fill(&a.le(2.0)?, f64::INFINITY)
    }
    fn entropy(&self) -> Result<Tensor> {
        let a = self.concentration();
        let of_shape = a.lgamma().sub(a.add(1.0).mul(a.digamma()?)?)?;
        a.add(self.rate().log()?).add(of_shape)
    }
}

/// Student's t distribution, with density
/// `Γ((ν + 1) / 2) / (Γ(ν / 2) √(π ν) σ) (1 + z² / ν)^(-(ν + 1) / 2)` for `z = (x - μ) / σ`.
///
/// ```
/// use namegrad::distributions::StudentT;
/// use namegrad::prelude::*;
/// let x = StudentT::new(&Tensor::new([3.0, 4.0])?.refine_names(["N"])?, 0.0, 1.0)?;
/// assert_eq!(x.variance()?.to_vec::<f32>()?, [3.0, 2.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StudentT {
    /// The degrees of freedom `ν`, positive.
    pub df: Tensor,
    /// The center `μ`.
    pub loc: Tensor,
    /// The scale `σ`, positive.
    pub scale: Tensor,
    frame: Frame,
}

impl StudentT {
    /// The distribution with `df` degrees of freedom around `loc`. PyTorch's defaults are 0 for `loc` and 1
    /// for `scale`.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new).
    #[track_caller]
    pub fn new(df: impl Operand, loc: impl Operand, scale: impl Operand) -> Result<StudentT> {
        let given = [
            ("df", &df as &dyn Operand, Support::Positive),
            ("loc", &loc, Support::Real),
            ("scale", &scale, Support::Positive),
        ];
        let ([df, loc, scale], frame) = parameters("StudentT", given)?;
        Ok(StudentT { df, loc, scale, frame })
    }
}

impl Distribution for StudentT {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Real
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let z = x.sub(&self.loc).div(&self.scale).div(self.df.sqrt()?)?;
        let tail = special::log1p_square(&z)?.mul(self.df.add(1.0).mul(0.5)?)?;
        let height = special::log_gamma_half_step(&self.df.mul(0.5)?)?;
        height.sub(self.df.mul(PI).log().mul(0.5)?).sub(self.scale.log()?).sub(tail)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let chi2 = random::gamma(shape, &self.df.mul(0.5)?)?.mul(2.0)?;
        let z = random::normal(shape, self.df.dtype())?.mul(chi2.div(&self.df).rsqrt()?)?;
        z.mul(&self.scale).add(&self.loc)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn mean(&self) -> Result<Tensor> {
        self.loc.masked_fill(&self.df.le(1.0)?, f64::NAN)
    }
    fn mode(&self) -> Result<Tensor> {
        Ok(self.loc.clone())
    }
    fn variance(&self) -> Result<Tensor> {
        let finite = self.scale.square().mul(&self.df).div(self.df.sub(2.0)?)?;
        let infinite = finite.masked_fill(&self.df.le(2.0)?, f64::INFINITY)?;
        infinite.masked_fill(&self.df.le(1.0)?, f64::NAN)
    }
    fn entropy(&self) -> Result<Tensor> {
        let half = self.df.mul(0.5)?;
        let step = half.add(0.5).digamma().sub(half.digamma()?)?;
        let height = special::log_gamma_half_step(&half)?.sub(self.df.mul(PI).log().mul(0.5)?)?;
        self.df.add(1.0).mul(0.5).mul(step).add(self.scale.log()?).sub(height)
    }
}

/// The F distribution of the ratio of two means of squares of normal variables, with density
/// `(d₁/d₂)^(d₁/2) x^(d₁/2 - 1) (1 + d₁ x / d₂)^(-(d₁ + d₂)/2) / B(d₁/2, d₂/2)` for
/// positive `x`.
///
/// ```
/// use namegrad::distributions::FisherSnedecor;
/// use namegrad::prelude::*;
/// let x = FisherSnedecor::new(3.0, &Tensor::new([3.0, 4.0])?.refine_names(["N"])?)?;
/// assert_eq!(x.mean()?.to_vec::<f32>()?, [3.0, 2.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FisherSnedecor {
    /// The degrees of freedom of the numerator, `d₁`, positive.
    pub df1: Tensor,
    /// The degrees of freedom of the denominator, `d₂`, positive.
    pub df2: Tensor,
    frame: Frame,
}

impl FisherSnedecor {
    /// The distribution with these degrees of freedom.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new).
    #[track_caller]
    pub fn new(df1: impl Operand, df2: impl Operand) -> Result<FisherSnedecor> {
        let ([df1, df2], frame) = parameters(
            "FisherSnedecor",
            [("df1", &df1, Support::Positive), ("df2", &df2, Support::Positive)],
        )?;
        Ok(FisherSnedecor { df1, df2, frame })
    }
}

impl Distribution for FisherSnedecor {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Positive
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let (a, b) = (self.df1.mul(0.5)?, self.df2.mul(0.5)?);
        let ratio = self.df1.div(&self.df2)?;
        let power = a.mul(ratio.log()?).add(a.sub(1.0).mul(x.log()?)?)?;
        let fall = a.add(&b).mul(ratio.mul(x).log1p()?)?;
        power.sub(special::log_beta(&a, &b)?).sub(fall)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let mean = |df: &Tensor| random::gamma(shape, &df.mul(0.5)?)?.div(df);
        mean(&self.df1)?.div(mean(&self.df2)?)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn mean(&self) -> Result<Tensor> {
        self.df2.div(self.df2.sub(2.0)?)?.masked_fill(&self.df2.le(2.0)?, f64::NAN)
    }
    fn mode(&self) -> Result<Tensor> {
        let mode = self.df1.sub(2.0).div(&self.df1).mul(self.df2.div(self.df2.add(2.0)?)?)?;
        mode.masked_fill(&self.df1.le(2.0)?, f64::NAN)
    }
    fn variance(&self) -> Result<Tensor> {
        let (a, b) = (&self.df1, &self.df2);
        let above = b.square().mul(2.0).mul(a.add(b).sub(2.0)?)?;
        let variance = above.div(b.sub(2.0).square().mul(b.sub(4.0)?).mul(a)?)?;
        variance.masked_fill(&b.le(4.0)?, f64::NAN)
    }
}
