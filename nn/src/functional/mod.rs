//! Layers without state, as functions: PyTorch's `torch.nn.functional`.
//!
//! Each file has a table of rows, in the grammar of all ops, and the functions that the rows call in the
//! module `kernels` below it. The options of a function are a struct in [`options`].

mod activation;
mod attention;
pub(crate) mod conv;
mod distance;
mod dropout;
pub(crate) mod embedding;
mod fold;
pub(crate) mod image;
mod linear;
mod loss;
mod norm;
pub(crate) mod pool;
mod shuffle;

/// The tables; each is a file, some in the folder `loss`. Everything public in them is public here, so a
/// function needs only its row. `tables! { loss }` becomes
///
/// ```ignore
/// pub use loss::*;
/// pub mod options { pub use super::loss::options::*; }
/// pub(crate) mod layers { pub use super::loss::layers::*; }
/// pub const OPS: &[&[&namegrad_autograd::registry::Op]] = &[loss::OPS];
/// ```
macro_rules! tables {
    ($($($table:ident)::+)*) => {
        $(pub use $($table::)+*;)*

        /// The options of functions.
        #[allow(unused_imports, unreachable_pub)] // not every table has functions with options
        pub mod options {
            $(pub use super::$($table::)+options::*;)*
        }

        /// The layers of functions.
        #[allow(unused_imports, unreachable_pub)] // not every table has functions with layers
        pub(crate) mod layers {
            $(pub use super::$($table::)+layers::*;)*
            pub use super::activation::{along_layers::*, unary_layers::*};
        }

        /// The functions by table, for `namegrad::ops`, except those that are also methods of a tensor.
        pub const OPS: &[&[&namegrad_autograd::registry::Op]] = &[$($($table::)+OPS),*];
    };
}
pub use attention::*;
pub use loss::{ClassDim, Reduction};
tables! {
    activation conv distance dropout embedding fold image linear
    loss::classes loss::ctc loss::margin loss::probability loss::regression loss::similarity
    norm pool shuffle
}
