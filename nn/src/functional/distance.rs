//! Similarities and distances of vectors.

use super::*;
use namegrad_autograd::checkpoint;

functional! { distance;
    /// The cosine of the angle between vectors along `dim`: `Σ x1 x2 / (|x1| |x2|)`, where each length is at
    /// least `eps`. The tensors broadcast.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let a = Tensor::new([[3.0, 4.0], [1.0, 0.0]])?.refine_names(["N", "embed"])?;
    /// let b = Tensor::new([3.0, 4.0])?.refine_names(["embed"])?;
    /// let cosine = F::cosine_similarity(&a, &b, "embed")?;
    /// assert_eq!(cosine.shape().to_string(), "[N=2]");
    /// assert!(cosine.allclose(&Tensor::new([1.0, 0.6])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes do not broadcast, [`ErrorKind::DType`] unless floating-point, and
    /// the errors of the name rule.
    cosine_similarity (x1, x2; dim: Dim of x1, x2 or 1, eps: f64 = 1e-8) on floats names removes, x2: unified
        layer CosineSimilarity => {
        x1.value().check_float(op)?;
        x2.value().check_float(op)?;
        let [x1, x2] = broadcast(x1, x2)?;
        if x1.ndim() == 0 {
            return unit(&x1, &x1.abs()?, eps).mul(unit(&x2, &x2.abs()?, eps)?);
        }
        let unit = |x: &Tensor| unit(x, &x.norm(keep(dim))?, eps);
        unit(&x1).mul(unit(&x2)?).sum(dim)
    }
    /// The distance `(Σ |x1 - x2 + eps|^p)^(1/p)` of vectors along `dim`. `keep("embed")` keeps the dim with
    /// size 1. The tensors broadcast.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let a = Tensor::new([[3.0, 4.0], [1.0, 0.0]])?.refine_names(["N", "embed"])?;
    /// let distance = F::pairwise_distance(&a, &a.zeros_like()?, "embed")?;
    /// assert!(distance.allclose_with(&Tensor::new([5.0, 1.0])?, IscloseOptions::new().atol(1e-5))?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`cosine_similarity`], but integers are taken too.
    pairwise_distance (x1, x2; dim: Reduced of x1, x2 or -1, p: f64 = 2.0, eps: f64 = 1e-6) on floats integers
        names removes, x2: unified layer PairwiseDistance => {
        for x in [x1, x2] {
            ensure_dtype(x.dtype() != DType::Bool, NOT_BOOL, ("x", DType::F32))?;
        }
        let [x1, x2] = broadcast(x1, x2)?;
        x1.sub(&x2).add(eps).vector_norm_with(dim, VectorNormOptions::new().ord(p))
    }
    /// The distances `(Σ |a - b|^p)^(1/p)` of all pairs of the vectors in a matrix, which are along `dim`, in
    /// the order 0 and 1, 0 and 2, ..., 1 and 2, .... The result is a vector whose dim is called `name` or
    /// unnamed.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]])?.refine_names(["N", "embed"])?;
    /// let distances = F::pdist_with(&x, "embed", PdistOptions::new().name("pair"))?;
    /// assert_eq!(distances.shape().to_string(), "[pair=3]");
    /// assert!(distances.allclose(&Tensor::new([5.0, 3.0, 4.0])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] unless `x` is a matrix, [`ErrorKind::DType`] unless floating-point,
    /// [`ErrorKind::Value`] for a negative `p`.
    pdist (x; dim: Dim or -1, p: f64 = 2.0, name: NewName = None) on floats
        names called name => {
        x.value().check_float(op)?;
        (x.ndim() == 2).or_shape(format_args!("x must be a matrix, got {} dims", x.ndim()))?;
        (p >= 0.0).or_value(format_args!("p cannot be negative, got {p}"))?;
        let x = x.rename(None).movedim(dim, 1)?;
        let n = x.sizes()[0];
        let pairs = n.saturating_mul(n.saturating_sub(1)) / 2;
        NamedTensor::check_room(op, pairs, 4 * x.dtype().itemsize())?;
        let mut parts = vec![x.narrow(0, 0, 0).sum(1)?]; // of `x`, even if there are no pairs
        if x.numel() == 0 {
            return x.sum(..).expand([pairs])?.rename([name]);
        }
        for first in 0..n.saturating_sub(1) {
            // Each part keeps only `x` for its gradient: the differences of all pairs are far more than `x`.
            parts.push(checkpoint(
                move |x| {
                    let others = x[0].narrow(0, first as isize + 1, n - first - 1)?;
                    x[0].narrow(0, first as isize, 1).sub(&others).vector_norm_with(1, VectorNormOptions::new().ord(p))
                },
                &[&x],
            )?);
        }
        Tensor::cat(&parts, 0).rename([name])
    }
}

/// Both tensors with the sizes and names of their pairs.
fn broadcast(x1: &Tensor, x2: &Tensor) -> Result<[Tensor; 2]> {
    let mut both = Tensor::broadcast_tensors(&[x1, x2])?;
    let x2 = both.remove(1);
    Ok([both.remove(0), x2])
}

/// `x / length`, where the length is at least `eps`. The gradient is that without the limit, as in PyTorch.
fn unit(x: &Tensor, length: &Tensor, eps: f64) -> Result<Tensor> {
    let small = length.detach().lt(eps)?;
    x.div(small.choose(length.sub(length.detach()).add(eps)?, length)?)
}
