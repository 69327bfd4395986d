//! Von Mises' distribution of angles.

use crate::common::*;

/// Von Mises' distribution of angles in radians, with density `e^(κ cos(x - μ)) / (2π I₀(κ))` on
/// `[-π, π)`. A value can be any number; it counts as its angle.
///
/// Unlike PyTorch's, its draws have gradients (implicit reparametrization).
///
/// ```
/// use namegrad::distributions::VonMises;
/// use namegrad::prelude::*;
/// let x = VonMises::new(0.0, &Tensor::new([1.0, 100.0])?.refine_names(["N"])?)?;
/// assert!(x.variance()?.item_at::<f64>([1])? < 0.01);
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Best, Fisher, *Efficient simulation of the von Mises distribution* (1979); the gradient of draws:
/// Figurnov, Mohamed, Mnih, *Implicit Reparameterization Gradients* (2018).
#[derive(Clone, Debug)]
pub struct VonMises {
    /// The mean angle `μ`.
    pub loc: Tensor,
    /// The concentration `κ`, positive: about `1 / variance` where it is large.
    pub concentration: Tensor,
    frame: Frame,
}

impl VonMises {
    /// The distribution around the angle `loc`.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new).
    #[track_caller]
    pub fn new(loc: impl Operand, concentration: impl Operand) -> Result<VonMises> {
        let given = [
            ("loc", &loc as &dyn Operand, Support::Real),
            ("concentration", &concentration, Support::Positive),
        ];
        let ([loc, concentration], frame) = parameters("VonMises", given)?;
        Ok(VonMises { loc, concentration, frame })
    }

    /// `log(2π I₀(κ)) - κ`.
    #[track_caller]
    fn log_height(&self) -> Result<Tensor> {
        self.concentration.i0e().log().add(TAU.ln())
    }
}

/// The coefficients of `1 - I₁(κ) / I₀(κ)` by powers of `1 / κ`, from the eighth to the first: the
/// quotient of the series of NIST, *Digital Library of Mathematical Functions*, 10.40.1.
const SERIES: [f64; 8] = [
    375733.0 / 32768.0,
    103.0 / 32.0,
    1073.0 / 1024.0,
    13.0 / 32.0,
    25.0 / 128.0,
    1.0 / 8.0,
    1.0 / 8.0,
    1.0 / 2.0,
];

impl Distribution for VonMises {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Real
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        // cos d - 1 is -2 sin²(d / 2)
        let below = x.sub(&self.loc).mul(0.5).sin().square().mul(-2.0).mul(&self.concentration)?;
        below.sub(self.log_height()?)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let angle = random::von_mises(shape, &self.concentration)?.add(&self.loc)?;
        angle.add(PI).remainder(TAU).sub(PI)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn mean(&self) -> Result<Tensor> {
        Ok(self.loc.clone())
    }
    fn mode(&self) -> Result<Tensor> {
        Ok(self.loc.clone())
    }
    /// The circular variance, `1 - I₁(κ) / I₀(κ)`, in `f64`. Where `κ` is large, the difference would
    /// cancel, and its asymptotic series is exact.
    fn variance(&self) -> Result<Tensor> {
        let k = self.concentration.to(DType::F64)?;
        let inverse = k.reciprocal()?;
        let mut series = inverse.full_like(SERIES[0])?;
        for coefficient in &SERIES[1..] {
            series = series.mul(&inverse).add(*coefficient)?;
        }
        let direct = k.i1e()?.div(k.i0e()?)?.neg().add(1.0)?;
        k.gt(200.0)?.choose(series.mul(&inverse)?, direct)?.to(self.frame.dtype())
    }
    fn entropy(&self) -> Result<Tensor> {
        // log(2π I₀) - κ I₁ / I₀
        self.variance()?.mul(&self.concentration).add(self.log_height()?)
    }
}
