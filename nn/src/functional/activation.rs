//! Activations: elementwise ops and ops along a dim.

use namegrad_autograd::Tensor;
use namegrad_core::{Result, default_dtype, plain};
use namegrad_macros::{functional, functions};

functions! {
    unary: relu, sigmoid, tanh, silu, elu, leaky_relu, softplus, hardtanh, threshold, celu;
    along: softmax, log_softmax;
}

/// How [`gelu`] computes the distribution function of the normal distribution. [`gelu`] has an example.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approximate {
    /// With the error function, exactly.
    #[default]
    None,
    /// With an approximation by `tanh`.
    Tanh,
}
plain! { Approximate: ["none" = Approximate::None, "tanh" = Approximate::Tanh] }

functional! { activation;
    /// `x Φ(x)`, with the distribution function `Φ` of the normal distribution, like [`Tensor::gelu`]; or the
    /// approximation `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([-1.0, 0.0, 2.0])?;
    /// let exact = F::gelu(&x)?;
    /// assert!(exact.allclose(&x.gelu()?)?);
    /// let tanh = F::gelu_with(&x, GeluOptions::new().approximate(F::Approximate::Tanh))?;
    /// assert!(tanh.sub(&exact)?.abs()?.amax(..)?.item::<f64>()? < 1e-3);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Source
    /// Hendrycks, Gimpel, *Gaussian Error Linear Units (GELUs)* (2016), section 2.
    gelu (x; approximate: Approximate = Approximate::None) names "keeps input names";
}

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn gelu(x: &Tensor, approximate: Approximate) -> Result<Tensor> {
        if approximate == Approximate::None {
            return x.gelu();
        }
        // Integers and `bool` become floats, as in the exact form.
        let x = &if x.dtype().is_floating_point() { x.clone() } else { x.to(default_dtype())? };
        let inner = x.pow(3)?.mul(0.044715)?.add(x)?.mul((2.0 / std::f64::consts::PI).sqrt())?;
        x.mul(0.5)?.mul(inner.tanh()?.add(1.0)?)
    }
}
