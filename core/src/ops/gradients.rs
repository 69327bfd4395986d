//! Gradients as one kernel: what stands behind `=>` in the derivative rows. Each is what the formula in front of the `=>` gives, in one pass over memory.

use crate::cpu::rows;
use crate::dtype::dispatch;
use crate::error::Result;
use crate::ops::along::kernels::split;
use crate::tensor::NamedTensor;

/// Rows of gradients by element, of the input `x` or the result `y` of an op and the gradient `g` of that result.
macro_rules! gradients {
    ($($(#[$doc:meta])* $name:ident ($x:ident $g:ident) { $($class:ident: $formula:expr),* };)*) => {
        pointwise_kernels! { 2 $($name ($x $g) [] [] { $($class: $formula),* })* }
        $(
            $(#[$doc])*
            #[track_caller]
            pub fn $name($x: &NamedTensor, $g: &NamedTensor) -> Result<NamedTensor> {
                kernels::$name.apply([$x, $g])
            }
        )*
    };
}
gradients! {
    /// `g` where `y > 0`, else 0.
    relu (y g) { float: if y <= T::ZERO { T::ZERO } else { g } };
    /// `g (1 - y²)`.
    tanh (y g) { float: g * (T::ONE - y * y) };
    /// `g y (1 - y)`.
    sigmoid (y g) { float: g * (T::ONE - y) * y };
    /// `g / (2 y)`.
    sqrt (y g) { float: g / (y + y) };
    /// `g (Φ(x) + x φ(x))`, with the distribution function and the density of the normal distribution.
    gelu (x g) { float: g * (x.ndtr() + x * (x * x * -T::HALF).exp() * T::from_f64(1.0 / std::f64::consts::TAU.sqrt())) };
    /// `g s (1 + x (1 - s))`, `s` being the sigmoid of `x`.
    silu (x g) { float: { let s = x.sigmoid(); g * (s * (T::ONE + x * (T::ONE - s))) } };
}

/// A gradient along one dim, run on dense data of the dtype that is computed in.
macro_rules! along {
    ($($(#[$doc:meta])* $name:ident = $kernel:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(y: &NamedTensor, g: &NamedTensor, dim: usize) -> Result<NamedTensor> {
            let (wide, sizes) = split(&*y.widened()?, dim)?;
            let g = g.cast(wide.dtype())?.contiguous()?;
            let mut dx = wide.unwritten_like(concat!(stringify!($name), "_backward"), wide.dtype())?;
            dispatch!(wide.dtype(), float T => {
                // SAFETY: fresh, of dtype T; the kernel writes each element before it reads it.
                rows::$kernel(wide.as_slice::<T>()?, g.as_slice::<T>()?, sizes, unsafe { dx.unwritten_mut::<T>() })
            }, else unreachable!("only floats have gradients"));
            dx.into_dtype(y.dtype())
        }
    )*};
}
along! {
    /// `(g - Σ g y) y` along `dim`.
    softmax = softmax_backward;
    /// `g - e^y Σ g` along `dim`.
    log_softmax = log_softmax_backward;
}
