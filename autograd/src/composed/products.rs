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
    /// The sum along `dim` of the products of elements, `Σ x other`; the other dims broadcast.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.refine_names(["N", "coord"])?;
    /// assert_eq!(x.vecdot(&x, "coord")?.to_vec::<f32>()?, [5.0, 25.0]);
    /// # Ok::<(), Error>(())
    /// ```
    vecdot (x, other; dim: Dim of x, other or -1) names unifies;
    /// The product of a list of matrices, multiplied in the order that takes the fewest operations. The first
    /// and the last of them can be vectors.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let a = Tensor::ones([("N", 2), ("k", 10)])?;
    /// let b = Tensor::ones([("k", 10), ("out", 3)])?;
    /// let y = Tensor::multi_dot([&a, &b, &Tensor::ones([("out", 3)])?])?;
    /// assert_eq!(y.shape().to_string(), "[N=2]");
    /// assert_eq!(y.to_vec::<f32>()?, [30.0, 30.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Source
    /// Cormen, Leiserson, Rivest, Stein, *Introduction to Algorithms* (3rd edition, 2009), section 15.2.
    multi_dot ([tensors]) on floats integers names contracts;
    /// The cross product of vectors of three elements along `dim`; the other dims broadcast. Tensors without
    /// names need as many dims, as in PyTorch.
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
    pub(super) fn vecdot(x: &Tensor, other: &Tensor, dim: usize) -> Result<Tensor> {
        let from_right = dim as isize - x.ndim().max(other.ndim()) as isize;
        let size = |x: &Tensor| {
            (x.ndim() as isize + from_right).try_into().ok().and_then(|at: usize| x.sizes().get(at).copied())
        };
        Error::ensure(size(x) == size(other), ErrorKind::Shape, "vecdot", || {
            format!("the vectors of {:?} and {:?} need to be of one size", x.sizes(), other.sizes())
        })?;
        x.mul(other)?.sum(from_right)
    }

    /// `costs[i][j]` is that of the product of the matrices `i..=j`, whose sizes are `sizes[i]` by `sizes[j +
    /// 1]`.
    #[track_caller]
    pub(super) fn multi_dot(tensors: &[&Tensor]) -> Result<Tensor> {
        const OP: &str = "multi_dot";
        let count = tensors.len();
        Error::ensure(count >= 2, ErrorKind::Value, OP, || {
            format!("expected at least 2 tensors, got {count}")
        })?;
        let ends = [0, count - 1];
        for (at, x) in tensors.iter().enumerate() {
            let fits = x.ndim() == 2 || x.ndim() == 1 && ends.contains(&at);
            Error::ensure(fits, ErrorKind::Shape, OP, || {
                let or = if ends.contains(&at) { " or a vector" } else { "" };
                format!("tensor {at} must be a matrix{or}, got {} dims", x.ndim())
            })?;
        }
        let mut sizes = vec![if tensors[0].ndim() == 1 { 1 } else { tensors[0].sizes()[0] }];
        for (at, x) in tensors.iter().enumerate() {
            let [rows, columns] = match *x.sizes() {
                [rows, columns] => [rows, columns],
                [size] if at == 0 => [1, size],
                _ => [x.numel(), 1],
            };
            Error::ensure(at == 0 || rows == sizes[at], ErrorKind::Shape, OP, || {
                format!(
                    "tensors {} and {at} of sizes {:?} and {:?} do not multiply",
                    at - 1,
                    tensors[at - 1].sizes(),
                    x.sizes()
                )
            })?;
            sizes.push(columns);
        }
        let (mut costs, mut splits) = (vec![vec![0.0; count]; count], vec![vec![0; count]; count]);
        for length in 1..count {
            for i in 0..count - length {
                let j = i + length;
                let cost = |k: usize| {
                    costs[i][k]
                        + costs[k + 1][j]
                        + [i, k + 1, j + 1].map(|at| sizes[at] as f64).iter().product::<f64>()
                };
                let best = (i..j).min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(i);
                (costs[i][j], splits[i][j]) = (cost(best), best);
            }
        }
        // What is left to do, the last first: products of two results, and ranges to be split.
        let (mut todo, mut made): (Vec<Option<(usize, usize)>>, Vec<Tensor>) =
            (vec![Some((0, count - 1))], Vec::new());
        while let Some(next) = todo.pop() {
            match next {
                Some((i, j)) if i == j => made.push(tensors[i].clone()),
                Some((i, j)) => todo.extend([None, Some((splits[i][j] + 1, j)), Some((i, splits[i][j]))]),
                None => {
                    let (Some(right), Some(left)) = (made.pop(), made.pop()) else {
                        unreachable!("two results")
                    };
                    made.push(left.matmul(&right)?);
                }
            }
        }
        Ok(made.swap_remove(0))
    }

    #[track_caller]
    pub(super) fn cross(x: &Tensor, other: &Tensor, dim: usize) -> Result<Tensor> {
        let fits = x.ndim() == other.ndim() || x.has_names() && other.has_names();
        Error::ensure(fits, ErrorKind::Shape, "cross", || {
            format!("expected as many dims in both, got {} and {}", x.ndim(), other.ndim())
        })?;
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
