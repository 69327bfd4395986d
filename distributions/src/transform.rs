//! [`Transform`], functions of draws with their inverse and the logarithm of their slope.

use crate::common::*;
use crate::frame::is_checked;
use crate::odds::step_of;
use crate::parameters::operands;
use crate::support::{numbers, place};

/// A differentiable function of tensors with an inverse, of which a [`Transformed`](crate::Transformed)
/// distribution is made.
///
/// Most are functions of one element. Others are functions of vectors or matrices, whose dims they know by
/// name.
pub trait Transform: Any + fmt::Debug + Send + Sync {
    /// `y`, the function of `x`.
    ///
    /// # Errors
    /// Those of its ops.
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor>;

    /// An `x` whose [`forward`](Self::forward) is `y`.
    ///
    /// # Errors
    /// Those of its ops.
    #[track_caller]
    fn inverse(&self, y: &Tensor) -> Result<Tensor>;

    /// `log |det dy/dx|`, without the [event dims](Self::event_dims).
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if there is none, as for a function without a unique inverse.
    #[track_caller]
    fn log_abs_det_jacobian(&self, x: &Tensor, y: &Tensor) -> Result<Tensor>;

    /// The dims of `x` that the function is one of: none for a function of elements.
    fn event_dims(&self) -> Vec<Dim> {
        Vec::new()
    }

    /// How many more event dims `y` has than `x`.
    fn new_event_dims(&self) -> isize {
        0
    }

    /// The dims of `y` that `x` does not have, of a function that makes dims.
    fn made_dims(&self) -> Vec<Dim> {
        Vec::new()
    }

    /// The shape of `y` for an `x` of this shape.
    ///
    /// # Errors
    /// Those of [`forward`](Self::forward).
    #[track_caller]
    fn forward_shape(&self, x: &Shape) -> Result<Shape> {
        let stand_in = no_grad(|| self.forward(&expanded(&Tensor::zeros(())?, x)?))?;
        Ok(stand_in.shape())
    }

    /// 1 if the function increases, -1 if it decreases.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for functions of vectors.
    #[track_caller]
    fn sign(&self) -> Result<Tensor> {
        match self.event_dims().is_empty() {
            true => Tensor::ones(()),
            false => Err(missing("sign", self)),
        }
    }

    /// The values of `y`.
    fn codomain(&self) -> Support {
        Support::Real
    }

    /// Whether the other transform is the same function.
    fn is_same(&self, other: &dyn Transform) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

/// Checks that a parameter is not 0 anywhere, unless checks are off.
#[track_caller]
fn check_not_zero(name: &'static str, parameter: &str, x: &Tensor) -> Result<()> {
    let zero = if is_checked() { numbers(x)?.iter().position(|x| *x == 0.0) } else { None };
    let Some(zero) = zero else { return Ok(()) };
    let message = format!("{parameter} must not be 0, but {parameter}{} is 0", place(&x.shape(), zero));
    Err(Error::new(ErrorKind::Value, name, message))
}

/// The error of something that a transform does not have.
#[cold]
#[track_caller]
fn missing<T: Transform + ?Sized>(op: &'static str, of: &T) -> Error {
    Error::new(ErrorKind::Unsupported, op, format!("{of:?} has no {op}"))
}

/// Whether two tensors have the same sizes and elements.
fn are_equal(x: &Tensor, y: &Tensor) -> bool {
    x.sizes() == y.sizes()
        && matches!((x.value().to(DType::F64), y.value().to(DType::F64)), (Ok(x), Ok(y)) if x.to_vec::<f64>().ok() == y.to_vec::<f64>().ok())
}

/// `log(1 + e^x)`, accurate for every `x`.
#[track_caller]
fn softplus(x: &Tensor) -> Result<Tensor> {
    x.neg().logsigmoid().neg()
}

/// The smallest positive number that is not denormal, and the largest below one.
pub(crate) fn open_unit(dtype: DType) -> (f64, f64) {
    let tiny = match dtype {
        DType::F64 => f64::MIN_POSITIVE,
        DType::F16 => 6.1035e-5,
        _ => f32::MIN_POSITIVE.into(),
    };
    (tiny, 1.0 - step_of(dtype))
}

/// `y = loc + scale x`.
///
/// ```
/// use namegrad::distributions::{AffineTransform, Transform};
/// use namegrad::prelude::*;
/// let affine = AffineTransform::new(1.0, 2.0)?;
/// assert_eq!(affine.inverse(&affine.forward(&Tensor::new(3.0)?)?)?.item::<f64>()?, 3.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AffineTransform {
    /// What is added.
    pub loc: Tensor,
    /// The factor, not 0.
    pub scale: Tensor,
}

impl AffineTransform {
    /// `x ↦ loc + scale x`.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] unless floating-point, [`ErrorKind::Value`] for a `scale` of 0.
    #[track_caller]
    pub fn new(loc: impl Operand, scale: impl Operand) -> Result<AffineTransform> {
        let mut both = operands("AffineTransform", &[("loc", &loc), ("scale", &scale)])?.into_iter();
        let mut next = || both.next().expect("two were given");
        let (loc, scale) = (next(), next());
        check_not_zero("AffineTransform", "scale", &scale)?;
        Ok(AffineTransform { loc, scale })
    }
}

impl Transform for AffineTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.mul(&self.scale).add(&self.loc)
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        y.sub(&self.loc).div(&self.scale)
    }
    fn log_abs_det_jacobian(&self, x: &Tensor, _y: &Tensor) -> Result<Tensor> {
        let log = self.scale.abs().log()?;
        log.add(x.detach().zeros_like()?) // for each element of x
    }
    fn sign(&self) -> Result<Tensor> {
        self.scale.detach().sign()
    }
    fn is_same(&self, other: &dyn Transform) -> bool {
        let other: &dyn Any = other;
        let same = |other: &AffineTransform| {
            are_equal(&self.loc, &other.loc) && are_equal(&self.scale, &other.scale)
        };
        other.downcast_ref().is_some_and(same)
    }
}

/// `y = e^x`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExpTransform;

impl Transform for ExpTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.exp()
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        y.log()
    }
    fn log_abs_det_jacobian(&self, x: &Tensor, _y: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
    fn codomain(&self) -> Support {
        Support::Positive
    }
}

/// `y = x^exponent` for positive `x`.
#[derive(Clone, Debug)]
pub struct PowerTransform {
    /// The exponent, not 0.
    pub exponent: Tensor,
}

impl PowerTransform {
    /// `x ↦ x^exponent`.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] unless floating-point, [`ErrorKind::Value`] for an exponent of 0.
    #[track_caller]
    pub fn new(exponent: impl Operand) -> Result<PowerTransform> {
        let exponent = operands("PowerTransform", &[("exponent", &exponent)])?.remove(0);
        check_not_zero("PowerTransform", "exponent", &exponent)?;
        Ok(PowerTransform { exponent })
    }
}

impl Transform for PowerTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.pow(&self.exponent)
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        y.pow(self.exponent.reciprocal()?)
    }
    fn log_abs_det_jacobian(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        y.mul(&self.exponent).div(x).abs().log()
    }
    fn sign(&self) -> Result<Tensor> {
        self.exponent.detach().sign()
    }
    fn codomain(&self) -> Support {
        Support::Positive
    }
    fn is_same(&self, other: &dyn Transform) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref::<PowerTransform>().is_some_and(|other| are_equal(&self.exponent, &other.exponent))
    }
}

/// `y = 1 / (1 + e^-x)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SigmoidTransform;

impl Transform for SigmoidTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (low, high) = open_unit(x.dtype());
        x.sigmoid().clamp(low, high)
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        let (low, high) = open_unit(y.dtype());
        let y = y.clamp(low, high)?;
        y.log().sub(y.neg().log1p()?)
    }
    fn log_abs_det_jacobian(&self, x: &Tensor, _y: &Tensor) -> Result<Tensor> {
        x.logsigmoid().add(x.neg().logsigmoid()?)
    }
    fn codomain(&self) -> Support {
        Support::UnitInterval
    }
}

/// `y = tanh x`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TanhTransform;

impl Transform for TanhTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.tanh()
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        y.atanh()
    }
    fn log_abs_det_jacobian(&self, x: &Tensor, _y: &Tensor) -> Result<Tensor> {
        // log(1 - tanh² x), where tanh x rounds to 1
        softplus(&x.mul(-2.0)?)?.add(x).sub(LN_2).mul(-2.0)
    }
    fn codomain(&self) -> Support {
        Support::between(-1.0, 1.0)
    }
}

/// `y = log(1 + e^x)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SoftplusTransform;

impl Transform for SoftplusTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        softplus(x)
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        special::log1m_exp(y)?.add(y)
    }
    fn log_abs_det_jacobian(&self, x: &Tensor, _y: &Tensor) -> Result<Tensor> {
        x.logsigmoid()
    }
    fn codomain(&self) -> Support {
        Support::Positive
    }
}

/// `y = |x|`, whose inverse is `y` itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct AbsTransform;

impl Transform for AbsTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.abs()
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        Ok(y.clone())
    }
    fn log_abs_det_jacobian(&self, _x: &Tensor, _y: &Tensor) -> Result<Tensor> {
        Err(missing("log_abs_det_jacobian", self))
    }
    fn sign(&self) -> Result<Tensor> {
        Err(missing("sign", self))
    }
    fn codomain(&self) -> Support {
        Support::NonNegative
    }
}

/// The uniform variable of a draw, `y = cdf(x)` of a distribution.
///
/// ```
/// use namegrad::distributions::{CumulativeDistributionTransform, Normal, Transform};
/// use namegrad::prelude::*;
/// let rank = CumulativeDistributionTransform::new(Normal::new(0.0, 1.0)?);
/// assert_eq!(rank.forward(&Tensor::new(0.0)?)?.item::<f64>()?, 0.5);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CumulativeDistributionTransform {
    of: Arc<dyn Distribution>,
}

impl CumulativeDistributionTransform {
    /// The function `cdf` of a distribution.
    pub fn new(of: impl crate::IntoDistribution) -> CumulativeDistributionTransform {
        CumulativeDistributionTransform { of: of.shared() }
    }
}

impl Transform for CumulativeDistributionTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.of.cdf(x)
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        self.of.icdf(y)
    }
    fn log_abs_det_jacobian(&self, x: &Tensor, _y: &Tensor) -> Result<Tensor> {
        self.of.log_prob(x)
    }
    fn codomain(&self) -> Support {
        Support::UnitInterval
    }
}
