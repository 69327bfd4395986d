//! Ops by element or along a dim, dropout, and the affine map.

use namegrad_autograd::Tensor;
use namegrad_core::{Dim, Error, ErrorKind, NamedTensor, Names, Result};

/// [`Tensor::relu`] as a function.
///
/// # Errors
/// [`ErrorKind::DType`] on `bool`.
#[track_caller]
pub fn relu(x: &Tensor) -> Result<Tensor> {
    x.relu()
}

/// [`Tensor::sigmoid`] as a function.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[track_caller]
pub fn sigmoid(x: &Tensor) -> Result<Tensor> {
    x.sigmoid()
}

/// [`Tensor::tanh`] as a function.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[track_caller]
pub fn tanh(x: &Tensor) -> Result<Tensor> {
    x.tanh()
}

/// [`Tensor::gelu`] as a function: `x Φ(x)`, with the normal distribution `Φ`.
///
/// # Errors
/// [`ErrorKind::DType`] on integers and `bool`.
#[track_caller]
pub fn gelu(x: &Tensor) -> Result<Tensor> {
    x.gelu()
}

/// [`gelu`] with `½ (1 + tanh(√(2/π) (x + 0.044715 x³)))` in the place of `Φ`: PyTorch's `approximate='tanh'`.
///
/// # Source
/// Hendrycks, Gimpel, *Gaussian Error Linear Units (GELUs)* (2016), section 2.
///
/// # Errors
/// [`ErrorKind::DType`] on integers and `bool`.
#[track_caller]
pub fn gelu_tanh(x: &Tensor) -> Result<Tensor> {
    let inner = x.pow(3)?.mul(0.044715)?.add(x)?.mul((2.0 / std::f64::consts::PI).sqrt())?;
    x.mul(0.5)?.mul(inner.tanh()?.add(1.0)?)
}

/// [`Tensor::silu`] as a function: `x / (1 + e^-x)`.
///
/// # Errors
/// [`ErrorKind::DType`] on integers and `bool`.
#[track_caller]
pub fn silu(x: &Tensor) -> Result<Tensor> {
    x.silu()
}

/// [`Tensor::softmax`] as a function.
///
/// # Errors
/// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`], [`ErrorKind::DType`] unless floating-point.
#[track_caller]
pub fn softmax(x: &Tensor, dim: impl Into<Dim>) -> Result<Tensor> {
    x.softmax(dim)
}

/// [`Tensor::log_softmax`] as a function.
///
/// # Errors
/// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`], [`ErrorKind::DType`] unless floating-point.
#[track_caller]
pub fn log_softmax(x: &Tensor, dim: impl Into<Dim>) -> Result<Tensor> {
    x.log_softmax(dim)
}

/// In training, each element is 0 with probability `p` and divided by `1 - p` otherwise; else `x` itself.
///
/// # Source
/// Srivastava et al., *Dropout: A Simple Way to Prevent Neural Networks from Overfitting*, JMLR 15 (2014).
///
/// # Errors
/// [`ErrorKind::Value`] unless `p` is in [0, 1], [`ErrorKind::DType`] unless `x` is floating-point.
#[track_caller]
pub fn dropout(x: &Tensor, p: f64, training: bool) -> Result<Tensor> {
    if !(0.0..=1.0).contains(&p) {
        let message = format!("dropout probability has to be between 0 and 1, but got {p}");
        return Err(Error::new(ErrorKind::Value, "dropout", message));
    }
    if !training || p == 0.0 {
        return Ok(x.clone());
    }
    let kept = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
    let mask = NamedTensor::choice("dropout", x.shape(), 1.0 - p, [0.0, kept], x.dtype())?;
    x.mul(Tensor::constant(mask))
}

/// `x weightᵀ + bias` over the last dim of `x`.
///
/// # Shapes
/// - `x`: `[.., in]`
/// - `weight`: `[out, in]`, or `[in]` for one output without a dim
/// - `bias`: `[out]`, or one number
/// - result: `[.., out]`, with the names of `x` and the first name of the weight; or `[..]`
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// use namegrad::nn::functional as F;
/// let x = Tensor::rand([("N", 2), ("in", 3)])?;
/// let weight = Tensor::rand([("out", 4), ("in", 3)])?;
/// assert_eq!(F::linear(&x, &weight, None)?.extents().to_string(), "[N=2, out=4]");
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`], [`ErrorKind::DType`], [`ErrorKind::DuplicateName`] if `x` has the name of the output; in strict mode [`ErrorKind::NameMismatch`].
#[track_caller]
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    if weight.ndim() == 1 {
        let y = x.matmul(weight)?;
        return match bias {
            Some(bias) => y.add(bias),
            None => Ok(y),
        };
    }
    if weight.ndim() != 2 {
        let message = format!("linear expects a weight [out, in] or [in], got {} dims", weight.ndim());
        return Err(
            Error::new(ErrorKind::Shape, "linear", message).with_operands([x.extents(), weight.extents()])
        );
    }
    let across = weight.t()?;
    if x.ndim() == 2 {
        return match bias {
            Some(bias) => bias.addmm(x, &across, 1, 1),
            None => x.mm(&across),
        };
    }
    if x.ndim() < 2 {
        let y = x.matmul(&across)?;
        return match bias {
            Some(bias) => y.add(bias),
            None => Ok(y),
        };
    }
    // One product of a matrix of all rows, not one for each batch; the names of the batch dims come back at the end.
    let last = x.ndim() - 1;
    if namegrad_core::names::is_strict() && x.name(last) != weight.name(1) {
        return x.matmul(&across); // for its error
    }
    let names = Names::new("linear", x.names().iter(last + 1).take(last).chain([weight.name(0)]))
        .map_err(|error| error.with_operands([x.extents(), weight.extents()]))?;
    let rows = x.rename(None)?.reshape([-1, x.sizes()[last] as isize])?;
    let mut sizes = x.shape().sizes;
    sizes[last] = weight.sizes()[0];
    linear(&rows, &weight.rename(None)?, bias.map(|bias| bias.rename(None)).transpose()?.as_ref())?
        .reshape(sizes)?
        .rename(Some(names))
}
