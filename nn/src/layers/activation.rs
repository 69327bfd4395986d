//! Activations as layers for [`Sequential`](super::Sequential).

use super::Layer;
use crate::Module;
use namegrad_autograd::Tensor;
use namegrad_core::Result;

/// An elementwise op as a layer. A row has the name of the layer, the method, and the output for
/// `[-1.0, 2.0]`, for the example. `Relu relu "[0.0, 2.0]";` becomes
///
/// ```ignore
/// #[derive(Clone, Copy, Debug, Default, Module)]
/// pub struct Relu;
///
/// impl Relu {
///     pub fn forward(&self, x: &Tensor) -> Result<Tensor> { x.relu() }
/// }
///
/// impl Layer for Relu {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> { Relu::forward(self, x) }
/// }
/// ```
macro_rules! activations {
    ($($(#[$doc:meta])* $layer:ident $op:ident $example:literal;)*) => {$(
        $(#[$doc])*
        #[doc = concat!("[`Tensor::", stringify!($op), "`] as a layer.")]
        ///
        /// # Examples
        /// ```
        /// use namegrad::prelude::*;
        #[doc = concat!("let y = ", stringify!($layer), ".forward(&Tensor::new([-1.0, 2.0])?)?;")]
        #[doc = concat!("assert!(y.allclose(&Tensor::new(", $example, ")?)?);")]
        /// # Ok::<(), Error>(())
        /// ```
        #[derive(Clone, Copy, Debug, Default, Module)]
        #[module(crate = crate)]
        pub struct $layer;

        impl $layer {
            /// The output for `x`, with the dims of `x`.
            ///
            /// # Errors
            /// [`ErrorKind::DType`](namegrad_core::ErrorKind::DType) for `bool`.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
                x.$op().map_err(|error| error.of(stringify!($layer)))
            }
        }

        impl Layer for $layer {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                $layer::forward(self, x)
            }
        }
    )*};
}
activations! {
    /// `max(x, 0)` of each element:
    Relu relu "[0.0, 2.0]";
    /// `1 / (1 + e^-x)` of each element:
    Sigmoid sigmoid "[1.0 / (1.0 + 1f64.exp()), 1.0 / (1.0 + (-2f64).exp())]";
    /// `tanh x` of each element:
    Tanh tanh "[(-1f64).tanh(), 2f64.tanh()]";
}
