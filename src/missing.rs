//! Methods behind a feature that is not enabled, so that the compiler says which line of `Cargo.toml` enables
//! it.
//!
//! A trait is implemented for a type on the condition that the type implements a second trait, which none
//! does: see `namegrad_nn::misused`.

use namegrad_autograd::Tensor;
use namegrad_core::Result;

/// Implemented by nothing.
#[diagnostic::on_unimplemented(
    message = "linear algebra needs the feature `linalg` of `namegrad`",
    label = "the feature `linalg` is not enabled",
    note = "add it to the line in your `Cargo.toml`: `namegrad = {{ version = \"0.1\", features = [\"linalg\"] }}`"
)]
pub trait HasLinalg {}

/// The methods of `linalg`, whose arguments the compiler does not come to.
#[allow(missing_docs)]
pub trait Linalg: Sized {
    fn solve(&self) {}
    fn solve_ex(&self) {}
    fn inv(&self) {}
    fn inv_ex(&self) {}
    fn det(&self) {}
    fn slogdet(&self) {}
    fn logdet(&self) {}
    fn tensorsolve(&self) {}
    fn tensorinv(&self) {}
    fn cholesky(&self) {}
    fn cholesky_ex(&self) {}
    fn cholesky_solve(&self) {}
    fn cholesky_inverse(&self) {}
    fn lu(&self) {}
    fn lu_factor(&self) {}
    fn lu_factor_ex(&self) {}
    fn lu_solve(&self) {}
    fn householder_product(&self) {}
    fn eigh(&self) {}
    fn eigvalsh(&self) {}
    fn eig(&self) {}
    fn eigvals(&self) {}
    fn svd(&self) {}
    fn svdvals(&self) {}
    fn pinv(&self) {}
    fn lstsq(&self) {}
    fn matrix_rank(&self) {}
    fn cond(&self) {}
    fn matrix_norm(&self) {}
    fn matrix_power(&self) {}
    fn matrix_exp(&self) {}
    fn vander(&self) {}
}

impl Linalg for Tensor where for<'never> Tensor: HasLinalg {}
impl Linalg for Result<Tensor> where for<'never> Result<Tensor>: HasLinalg {}
