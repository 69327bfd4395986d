//! Linear algebra on tensors whose dims have names: systems of equations, factorizations, eigenvalues, singular
//! values, norms of matrices. Programs use this crate as `namegrad::linalg`, with the feature `linalg`.
//!
//! ```
//! use namegrad::prelude::*;
//! let a = Tensor::randn([("N", 4), ("out", 3), ("in", 3)])?;
//! let y = Tensor::randn([("N", 4), ("out", 3)])?;
//! let x = a.solve(&y, ["out", "in"])?; // [N, in]
//! assert!(a.mul(&x.unsqueeze(1)?)?.sum("in")?.sub(&y)?.abs().max(..)?.values.item::<f32>()? < 1e-2);
//! # Ok::<(), Error>(())
//! ```

#![forbid(unsafe_code)]

mod common;
mod complex;
mod eigen;
mod factor;
mod functions;
mod kernels;
mod matrices;
mod solve;
mod svd;
mod system;
mod values;

pub use eigen::Methods as Eigen;
pub use factor::Methods as Factor;
pub use functions::Methods as Functions;
pub use solve::Methods as Solve;
pub use svd::{MatrixNorm, Methods as Svd};

/// The options of the methods.
pub mod options {
    pub use crate::eigen::options::*;
    pub use crate::factor::options::*;
    pub use crate::functions::options::*;
    pub use crate::solve::options::*;
    pub use crate::svd::options::*;
}

/// The ops of this crate, by table.
#[doc(hidden)]
pub static OPS: [&[&namegrad_autograd::registry::Op]; 5] =
    [solve::OPS, factor::OPS, eigen::OPS, svd::OPS, functions::OPS];
