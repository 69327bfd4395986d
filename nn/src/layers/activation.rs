//! Activations as layers for [`Sequential`](super::Sequential).

use super::Layer;
use crate::module::{Module, Visitor};
use namegrad_autograd::Tensor;
use namegrad_core::Result;

/// An op by element as a layer.
macro_rules! activations {
    ($($layer:ident $op:ident;)*) => {$(
        #[doc = concat!("[`Tensor::", stringify!($op), "`] as a layer.")]
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $layer;

        impl $layer {
            /// The output for `x`.
            ///
            /// # Errors
            /// [`ErrorKind::DType`](namegrad_core::ErrorKind::DType) on `bool`.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
                x.$op()
            }
        }

        impl Module for $layer {
            fn visit(&self, _: &mut Visitor<'_>) {}
            fn describe(&self) -> String {
                stringify!($layer).into()
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
    Relu relu;
    Sigmoid sigmoid;
    Tanh tanh;
}
