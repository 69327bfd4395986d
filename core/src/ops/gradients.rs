//! Gradients as single kernels, which follow `=>` in the derivative rows. Each computes the same as the
//! formula before the `=>`, but in one pass over memory.

use crate::cpu::room::Room;
use crate::cpu::scan;
use crate::cpu::softmax as kernels;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::along::kernels::split;
use crate::ops::unary::{SELU_ALPHA, SELU_SCALE};
use crate::tensor::{NamedTensor, Unwritten};

namegrad_macros::kernels! {
    /// `g` where `y > 0`, else 0.
    relu (y, g) halves { float: if y <= T::ZERO { T::ZERO } else { g } }
    /// `g (1 - y²)`.
    tanh (y, g) { float: g * (T::ONE - y * y) }
    /// `g y (1 - y)`.
    sigmoid (y, g) { float: g * (T::ONE - y) * y }
    /// `g / (2 y)`.
    sqrt (y, g) { float: g / (y + y) }
    /// `g (Φ(x) + x φ(x))`, with the distribution function `Φ` and the density `φ` of the normal
    /// distribution.
    gelu (x, g) long { float: g * x.gelu_slope() }
    /// `g s (1 + x (1 - s))`, where `s` is the sigmoid of `x`.
    silu (x, g) long { float: { let s = x.sigmoid(); g * (s * (T::ONE + x * (T::ONE - s))) } }
    /// `g alpha e^x` for `x <= 0`, else `g`.
    elu (x, g; alpha: f64) long { float: { let low = g * alpha * x.exp(); if x <= T::ZERO { low } else { g } } }
    /// `g` for `x > 0`, else `g negative_slope`.
    leaky_relu (x, g; negative_slope: f64) { float: if x > T::ZERO { g } else { g * negative_slope } }
    /// `g` where `beta x > threshold`, else `g / (1 + e^(-beta x))`.
    softplus (x, g; beta: f64, threshold: f64) long { float: { let low = g * (x * beta).sigmoid(); if x * beta > threshold { g } else { low } } }
    /// `g` between `min_val` and `max_val`, else 0.
    hardtanh (x, g; min_val: f64, max_val: f64) { float: if (x <= min_val) | (x >= max_val) { T::ZERO } else { g } }
    /// `g scale alpha e^x` for `x <= 0`, else `g scale`.
    selu (x, g) long { float: { let low = g * (T::from_f64(SELU_ALPHA * SELU_SCALE) * x.exp()); if x <= T::ZERO { low } else { g * T::from_f64(SELU_SCALE) } } }
    /// `g (t + x s (1 - t²))`, where `t` is `tanh(softplus(x))` and `s` the sigmoid of `x`. With `n` as in
    /// the op, `1 - t²` is `4 (n + 1) / (n + 2)²`.
    mish (x, g) long {
        // `0 x` is NaN at infinity, as in the formula.
        float: {
            let e = x.exp();
            let n = e * (e + T::from_f64(2.0));
            let m = n + T::from_f64(2.0);
            let low = n / m + x * (e / (e + T::ONE)) * (T::from_f64(4.0) * (n + T::ONE) / (m * m));
            g * if x > T::from_f64(20.0) { T::ONE + x * T::ZERO } else { low }
        }
    }
    /// 0 up to -3, `g` from 3, and `g (x/3 + 1/2)` between them.
    hardswish (x, g) {
        float: if x <= T::from_f64(-3.0) { T::ZERO } else if x < T::from_f64(3.0) { g * (x / T::from_f64(3.0) + T::HALF) } else { g }
    }
    /// `g / (1 + e^x)`.
    logsigmoid (x, g) long { float: g * (-x).sigmoid() }
    /// `g e^(x / alpha)` for `x <= 0`, else `g`.
    celu (x, g; alpha: f64) scalar { float: if x <= T::ZERO { g * (x / alpha).exp() } else { g } }
}

/// The gradient along the middle dim of `[outer, n, inner]`, computed from the result and its gradient.
type MiddleGradient<T> = for<'a> fn(&[T], &[T], [usize; 3], &'a mut Room<T>) -> &'a mut [T];

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

/// `Σ g[j] exp(x[i] - y[j])` over `j ≥ i` along `dim`, where `y` is the `logcumsumexp` of `x`.
///
/// # Errors
/// Same as [`softmax`].
#[track_caller]
pub fn logcumsumexp(x: &NamedTensor, g: &NamedTensor, dim: usize) -> Result<NamedTensor> {
    const OP: &str = "logcumsumexp_backward";
    let (x, dtype) = (&x.cast(DType::F64)?, x.dtype());
    let last = x.ndim().saturating_sub(1);
    let dense = |x: &NamedTensor| x.movedim(dim, last)?.contiguous();
    let (x, g) = (dense(x)?, dense(&*g.cast(DType::F64)?)?);
    let n = x.length_of(last);
    let dx = Unwritten::like(OP, &x, DType::F64)?;
    let (x, g) = (x.elements()?, g.elements()?);
    let dx = dx.write(|dx| scan::logcumsumexp_backward([x, g], n, dx));
    dx.movedim(last, dim)?.into_dtype(dtype)
}

/// Runs a loop on dense data in the dtype that kernels compute in.
#[track_caller]
fn along(
    op: &'static str,
    [y, g]: [&NamedTensor; 2],
    dim: usize,
    narrow: MiddleGradient<f32>,
    wide: MiddleGradient<f64>,
) -> Result<NamedTensor> {
    let dtype = y.dtype();
    let (y, sizes) = split(&*y.widened()?, dim)?;
    let g = g.cast(y.dtype())?.contiguous()?;
    let dx = Unwritten::like(op, &y, y.dtype())?;
    let dx = match y.dtype() {
        DType::F64 => {
            let (y, g) = (y.elements()?, g.elements()?);
            dx.write(|dx| wide(y, g, sizes, dx))
        }
        _ => {
            let (y, g) = (y.elements()?, g.elements()?);
            dx.write(|dx| narrow(y, g, sizes, dx))
        }
    };
    dx.into_dtype(dtype)
}
