//! Sums of products.

use crate::Tensor;
use namegrad_core::{Argument, Dim, Error, ErrorKind, Result, Scalar};

impl Tensor {
    /// `beta x + alpha (a bᵀ)` of two vectors, to whose products `x` broadcasts. With `beta` 0 the values of `x` do not matter, not even NaN.
    ///
    /// Names: those of the vectors, unified with those of `x`.
    ///
    /// # Errors
    /// Those of [`addmm`](Self::addmm).
    #[track_caller]
    pub fn addr(
        &self,
        a: &Tensor,
        b: &Tensor,
        beta: impl Into<Scalar>,
        alpha: impl Into<Scalar>,
    ) -> Result<Tensor> {
        let message = format!("addr: expected two vectors, but got {} and {} dims", a.ndim(), b.ndim());
        Tensor::ensure(a.ndim() == 1 && b.ndim() == 1, ErrorKind::Shape, "addr", message)?;
        self.addmm(&a.unsqueeze(1)?, &b.unsqueeze(0)?, beta, alpha)
    }

    /// `beta x + alpha Σ (a b)`, summed over the products of batches of matrices, `[b, n, k]` and `[b, k, m]`: `x` broadcasts to `[n, m]`.
    ///
    /// # Errors
    /// Those of [`addmm`](Self::addmm).
    #[track_caller]
    pub fn addbmm(
        &self,
        a: &Tensor,
        b: &Tensor,
        beta: impl Into<Scalar>,
        alpha: impl Into<Scalar>,
    ) -> Result<Tensor> {
        const OP: &str = "addbmm";
        let ([batch, _, k], [same, k_too, _]) = (a.sizes(), b.sizes()) else {
            let message = format!("expected batches of matrices, but got {} and {} dims", a.ndim(), b.ndim());
            return Err(Error::new(ErrorKind::Shape, OP, message).with_operands([a.extents(), b.extents()]));
        };
        let message = format!("the sizes {:?} and {:?} do not multiply", a.sizes(), b.sizes());
        Tensor::ensure(batch == same && k == k_too, ErrorKind::Shape, OP, message)?;
        // The sum over the batch and that over `k` are one.
        let (left, right) = (a.transpose(0, 1)?.flatten([1, 2], None)?, b.flatten([0, 1], None)?);
        self.addmm(&left, &right, beta, alpha)
    }

    /// The sum of the products of two vectors, as [`dot`](Self::dot): the two differ for complex numbers only.
    ///
    /// # Errors
    /// Those of `dot`.
    #[track_caller]
    pub fn vdot(&self, other: &Tensor) -> Result<Tensor> {
        self.dot(other)
    }

    /// The sums of the products over the last dims: the other dims of this tensor come first, then those of the other. Beside a 0-d tensor the product.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the last dims differ in size.
    #[track_caller]
    pub fn inner(&self, other: &Tensor) -> Result<Tensor> {
        if self.ndim() == 0 || other.ndim() == 0 {
            return self.mul(other);
        }
        self.tensordot(other, -1, -1)
    }

    /// The cross product of vectors of three elements along `dim`; the other dims broadcast. Names unify.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let (x, y) = (Tensor::new([1.0, 0.0, 0.0])?, Tensor::new([0.0, 1.0, 0.0])?);
    /// assert_eq!(x.cross(&y, 0)?.to_vec::<f32>()?, [0.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if `dim` has not three elements, those of the name rule, [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`].
    #[track_caller]
    pub fn cross(&self, other: &Tensor, dim: impl Into<Dim>) -> Result<Tensor> {
        const OP: &str = "cross";
        let dim = dim.into().resolve(OP, self.value())?;
        let from_right = dim as isize - self.ndim() as isize;
        let at =
            (other.ndim() as isize + from_right).try_into().ok().and_then(|at: usize| other.sizes().get(at));
        if self.sizes().get(dim) != Some(&3) || at != Some(&3) {
            let message = format!("inputs dimension {dim} must have length 3");
            return Err(
                Error::new(ErrorKind::Shape, OP, message).with_operands([self.extents(), other.extents()])
            );
        }
        let ahead = self.roll(-1, from_right)?.mul(other.roll(-2, from_right)?)?;
        ahead.sub(self.roll(-2, from_right)?.mul(other.roll(-1, from_right)?)?)
    }

    /// The `p`-norm of the difference, `(Σ |x - y|^p)^(1/p)`: 2 is the Euclidean one, infinity the largest difference, 0 the number of those that are not zero.
    ///
    /// # Errors
    /// Those of the name rule, [`ErrorKind::Shape`], [`ErrorKind::DType`] on other than floats, [`ErrorKind::Value`] for a negative `p`.
    #[track_caller]
    pub fn dist(&self, other: &Tensor, p: f64) -> Result<Tensor> {
        const OP: &str = "dist";
        Tensor::ensure(p >= 0.0, ErrorKind::Value, OP, format!("dist expects p >= 0, but got {p}"))?;
        let apart = self.sub(other)?;
        apart.value().check_float(OP)?;
        match p {
            0.0 => apart.ne(0)?.to(apart.dtype())?.sum(..),
            1.0 => apart.abs()?.sum(..),
            2.0 => apart.norm(..),
            f64::INFINITY => apart.abs()?.amax(..),
            p => apart.abs()?.pow(p)?.sum(..)?.pow(1.0 / p),
        }
    }
}
