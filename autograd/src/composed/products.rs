//! Sums of products.

use crate::Tensor;
use crate::chain::*;
use namegrad_macros::composed;

composed! { products;
    //! # More products
    /// `beta x + alpha (a bᵀ)` for two vectors; `x` broadcasts to their outer product. If `beta` is 0, the
    /// values of `x` are ignored, even NaN.
    addr (x, a, b; beta: Scalar = 1, alpha: Scalar = 1)
        names unifies, a: along rows, b: along last;
    /// `beta x + alpha Σ (a b)`, where the sum is over the products of two batches of matrices, `[b, n, k]`
    /// and `[b, k, m]`. `x` broadcasts to `[n, m]`.
    addbmm (x, a, b; beta: Scalar = 1, alpha: Scalar = 1) on floats integers names contracts;
    /// The same as [`dot`](Self::dot); in PyTorch the two differ only for complex numbers.
    vdot (x, other) on floats integers names contracts;
    /// The sum of products over the last dims. The result has the other dims of this tensor, followed by
    /// those of `other`. If one of the tensors is 0-d, this is the elementwise product.
    inner (x, other) on floats integers names contracts;
    /// The cross product of vectors of three elements along `dim`; the other dims broadcast.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let (x, y) = (Tensor::new([1.0, 0.0, 0.0])?, Tensor::new([0.0, 1.0, 0.0])?);
    /// assert_eq!(x.cross(&y, 0)?.to_vec::<f32>()?, [0.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    cross (x, other; dim: Dim = -1) on floats integers names unifies;
    /// The `p`-norm of the difference, `(Σ |x - y|^p)^(1/p)`: the Euclidean norm for 2, the largest
    /// difference for infinity, the number of nonzero differences for 0.
    ///
    /// # Errors
    /// The errors of the name rule, `Shape`, `DType` unless floating-point, `Value` for a negative `p`.
    dist (x, other; p: f64 = 2.0) on floats names removes, other: unified;
}

mod kernels {
    use super::*;
    use namegrad_core::options::{AddmmOptions, VectorNormOptions};
    use namegrad_core::{Error, ErrorKind, Result, Scalar, called};

    #[track_caller]
    pub(super) fn addr(x: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
        Error::ensure(a.ndim() == 1 && b.ndim() == 1, ErrorKind::Shape, "addr", || {
            format!("expected two vectors, but got tensors of {} and {} dims", a.ndim(), b.ndim())
        })?;
        if [x, a, b].iter().all(|x| x.dtype() == namegrad_core::DType::Bool) {
            let product = a.unsqueeze(1).logical_and(b.unsqueeze(0)?)?.logical_and(alpha.to_f64() != 0.0)?;
            return x.logical_and(beta.to_f64() != 0.0).logical_or(&product);
        }
        x.addmm_with(&a.unsqueeze(1)?, &b.unsqueeze(0)?, AddmmOptions { beta, alpha })
    }

    #[track_caller]
    pub(super) fn addbmm(x: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
        const OP: &str = "addbmm";
        let ([batch, _, k], [same, k_too, _]) = (a.sizes(), b.sizes()) else {
            let message = format!("expected batches of matrices, but got {} and {} dims", a.ndim(), b.ndim());
            return Err(Error::new(ErrorKind::Shape, OP, message).with_operands([a.shape(), b.shape()]));
        };
        Error::ensure(batch == same && k == k_too, ErrorKind::Shape, OP, || {
            format!("the sizes {:?} and {:?} do not multiply", a.sizes(), b.sizes())
        })?;
        a.value().check_matched(OP, ["a", "b"], b.value(), [0, 0])?;
        a.value().check_contracted(OP, ["a", "b"], b.value(), [2, 1])?;
        // The sums over the batch and over `k` are done as one.
        let (left, right) = (a.transpose(0, 1)?.flatten([1, 2], None)?, b.flatten([0, 1], None)?);
        x.addmm_with(&left, &right, AddmmOptions { beta, alpha })
    }

    #[track_caller]
    pub(super) fn vdot(x: &Tensor, other: &Tensor) -> Result<Tensor> {
        x.dot(other)
    }

    #[track_caller]
    pub(super) fn inner(x: &Tensor, other: &Tensor) -> Result<Tensor> {
        if x.ndim() == 0 || other.ndim() == 0 {
            return x.mul(other);
        }
        let last = [x, other].map(|x| x.sizes().last());
        Error::ensure(last[0] == last[1], ErrorKind::Shape, "inner", || {
            format!("the last dims of {:?} and {:?} need to be of one size", x.sizes(), other.sizes())
        })?;
        x.tensordot(other, -1, -1)
    }

    #[track_caller]
    pub(super) fn cross(x: &Tensor, other: &Tensor, dim: usize) -> Result<Tensor> {
        let from_right = dim as isize - x.ndim() as isize;
        let at =
            (other.ndim() as isize + from_right).try_into().ok().and_then(|at: usize| other.sizes().get(at));
        if x.sizes().get(dim) != Some(&3) || at != Some(&3) {
            let message = format!(
                "{} must have length 3 in both, as a cross product is of vectors in space",
                called(x.value(), dim)
            );
            return Err(
                Error::new(ErrorKind::Shape, "cross", message).with_operands([x.shape(), other.shape()])
            );
        }
        let ahead = x.roll(-1, from_right).mul(other.roll(-2, from_right)?)?;
        ahead.sub(x.roll(-2, from_right).mul(other.roll(-1, from_right)?)?)
    }

    #[track_caller]
    pub(super) fn dist(x: &Tensor, other: &Tensor, p: f64) -> Result<Tensor> {
        const OP: &str = "dist";
        Error::ensure(p >= 0.0, ErrorKind::Value, OP, || format!("p must not be negative, got {p}"))?;
        let apart = x.sub(other)?;
        apart.value().check_float(OP)?;
        apart.vector_norm_with(.., VectorNormOptions::new().ord(p))
    }
}
