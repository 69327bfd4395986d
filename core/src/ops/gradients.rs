//! Gradients as single kernels, which follow `=>` in the derivative rows. Each computes the same as the
//! formula before the `=>`, but in one pass over memory.

use crate::cpu::room::Room;
use crate::cpu::softmax as kernels;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::along::kernels::split;
use crate::tensor::{NamedTensor, Unwritten};

namegrad_macros::kernels! {
    /// `g` where `y > 0`, else 0.
    relu (y, g) { float: if y <= T::ZERO { T::ZERO } else { g } }
    /// `g (1 - y²)`.
    tanh (y, g) { float: g * (T::ONE - y * y) }
    /// `g y (1 - y)`.
    sigmoid (y, g) { float: g * (T::ONE - y) * y }
    /// `g / (2 y)`.
    sqrt (y, g) { float: g / (y + y) }
    /// `g (Φ(x) + x φ(x))`, with the distribution function `Φ` and the density `φ` of the normal
    /// distribution.
    gelu (x, g) { float: g * (x.ndtr() + x * (x * x * -T::HALF).exp() * T::from_f64(1.0 / std::f64::consts::TAU.sqrt())) }
    /// `g s (1 + x (1 - s))`, where `s` is the sigmoid of `x`.
    silu (x, g) { float: { let s = x.sigmoid(); g * (s * (T::ONE + x * (T::ONE - s))) } }
    /// `g` for `x > 0`, else `g alpha e^x`.
    elu (x, g; alpha: f64) { float: if x > T::ZERO { g } else { g * alpha * x.exp() } }
    /// `g` for `x > 0`, else `g negative_slope`.
    leaky_relu (x, g; negative_slope: f64) { float: if x > T::ZERO { g } else { g * negative_slope } }
    /// `g` where `beta x > threshold`, else `g / (1 + e^(-beta x))`.
    softplus (x, g; beta: f64, threshold: f64) { float: if x * beta > threshold { g } else { g * (x * beta).sigmoid() } }
    /// `g` for `x > 0`, else `g e^(x / alpha)`.
    celu (x, g; alpha: f64) { float: if x > T::ZERO { g } else { g * (x / alpha).exp() } }
}

/// The gradient along the middle dim of `[outer, n, inner]`, computed from the result and its gradient.
type Along<T> = for<'a> fn(&[T], &[T], [usize; 3], &'a mut Room<T>) -> &'a mut [T];

/// `(g - Σ g y) y` along `dim`.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
#[track_caller]
pub fn softmax(y: &NamedTensor, g: &NamedTensor, dim: usize) -> Result<NamedTensor> {
    along("softmax_backward", [y, g], dim, kernels::softmax_backward, kernels::softmax_backward)
}

/// `g - e^y Σ g` along `dim`.
///
/// # Errors
/// Same as [`softmax`].
#[track_caller]
pub fn log_softmax(y: &NamedTensor, g: &NamedTensor, dim: usize) -> Result<NamedTensor> {
    along("log_softmax_backward", [y, g], dim, kernels::log_softmax_backward, kernels::log_softmax_backward)
}

/// Runs a loop on dense data in the dtype that kernels compute in.
#[track_caller]
fn along(
    op: &'static str,
    [y, g]: [&NamedTensor; 2],
    dim: usize,
    narrow: Along<f32>,
    wide: Along<f64>,
) -> Result<NamedTensor> {
    let dtype = y.dtype();
    let (y, sizes) = split(&*y.widened()?, dim)?;
    let g = g.cast(y.dtype())?.contiguous()?;
    let dx = Unwritten::like(op, &y, y.dtype())?;
    let dx = match y.dtype() {
        DType::F64 => {
            let (y, g) = (y.as_slice()?, g.as_slice()?);
            dx.write(|dx| wide(y, g, sizes, dx))
        }
        _ => {
            let (y, g) = (y.as_slice()?, g.as_slice()?);
            dx.write(|dx| narrow(y, g, sizes, dx))
        }
    };
    dx.into_dtype(dtype)
}
