//! Functions of matrices in the last two dims, of tensors without names.

use crate::common::*;

/// The lower triangular factor `l` of a symmetric positive definite matrix `a = l lᵀ` of `n` rows, or
/// `None` if it is not positive definite.
///
/// # Source
/// Golub, Van Loan, *Matrix Computations* (4th edition, 2013), section 4.2.
pub(crate) fn factor(a: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut l = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
            let rest = a[i * n + j] - dot;
            if i > j {
                l[i * n + j] = rest / l[j * n + j];
            } else if rest > 0.0 {
                l[i * n + i] = rest.sqrt();
            } else {
                return None; // also for NaN
            }
        }
    }
    Some(l)
}

/// The lower triangular factors of symmetric positive definite matrices.
///
/// # Errors
/// [`ErrorKind::Value`] if a matrix is not positive definite.
///
/// # Source
/// The gradient: Murray, *Differentiation of the Cholesky decomposition* (2016), equation 10, made symmetric.
#[track_caller]
pub(crate) fn cholesky(x: &Tensor) -> Result<Tensor> {
    let n = x.sizes()[x.ndim() - 1];
    let numbers = crate::support::numbers(x)?;
    let mut factors = Vec::with_capacity(numbers.len());
    for matrix in numbers.chunks((n * n).max(1)) {
        let Some(mut own) = factor(matrix, n) else {
            return Err(Error::new(ErrorKind::Value, "cholesky", "the matrix is not positive definite"));
        };
        factors.append(&mut own);
    }
    let l = NamedTensor::from_slice(&factors, x.shape())?.to(x.dtype())?;
    let kept = Kept::output(&l);
    let op = Op::new("cholesky", l).input(x, move |g, cx| {
        let l = kept.get(cx);
        let (lower, half) = (TrilOptions::new(), l.mt().matmul(g.tril()?)?);
        // the lower triangle, with half of its diagonal
        let inner = half
            .tril_with(lower.diagonal(-1))?
            .add(half.tril().sub(half.tril_with(TrilOptions::new().diagonal(-1))?).mul(0.5)?)?;
        let left = l.mt().solve_triangular(&inner, Triangle::Upper)?;
        let both =
            l.solve_triangular_with(&left, Triangle::Lower, SolveTriangularOptions::new().left(false))?;
        both.add(both.mt()?).mul(0.5)
    });
    Ok(op.output())
}

/// `a⁻¹ b` for a lower triangular `a`.
#[track_caller]
pub(crate) fn solve_lower(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    a.solve_triangular(b, Triangle::Lower)
}

/// A matrix of ones on the diagonal for the matrices of `x`.
#[track_caller]
pub(crate) fn identity_for(x: &Tensor) -> Result<Tensor> {
    let n = x.sizes()[x.ndim() - 1];
    TensorOptions::new().dtype(x.dtype()).eye(n, n)
}

/// The inverse of the matrix whose factor is `l`: `(l lᵀ)⁻¹`.
#[track_caller]
pub(crate) fn inverse_of_factor(l: &Tensor) -> Result<Tensor> {
    let inverse = solve_lower(l, &identity_for(l)?)?;
    inverse.mt().matmul(&inverse)
}

/// The factor of the covariance whose inverse is `precision`, without an inverse of it: the factor of the
/// precision with its rows and columns in reverse order, inverted.
#[track_caller]
pub(crate) fn factor_of_inverse(precision: &Tensor) -> Result<Tensor> {
    let upside_down = cholesky(&precision.flip([-2, -1])?)?;
    let upper = upside_down.flip([-2, -1])?.mt()?; // lower triangular, its transpose times it is the precision
    solve_lower(&upper, &identity_for(&upper)?)
}

/// `log det (l lᵀ) / 2`, the sum of the logarithms of the diagonal.
#[track_caller]
pub(crate) fn half_log_det(l: &Tensor) -> Result<Tensor> {
    l.diagonal(-2, -1).log().sum(-1)
}

/// `|l⁻¹ d|²` for vectors `d` in the last dim, with batch dims that broadcast. Dims that only `d` has are
/// columns of one system, so that `l` is not copied for each.
#[track_caller]
pub(crate) fn mahalanobis(l: &Tensor, d: &Tensor) -> Result<Tensor> {
    let drawn = (d.ndim() + 1).saturating_sub(l.ndim());
    let sizes = d.sizes().to_vec();
    let count: usize = sizes[..drawn].iter().product();
    let rest: Vec<usize> = [count].into_iter().chain(sizes[drawn..].iter().copied()).collect();
    let columns = d.reshape(rest)?.movedim(0, -1)?; // [batch, n, drawn]
    let squares = solve_lower(l, &columns)?.square().sum(-2).movedim(-1, 0)?; // [drawn, batch]
    let all: Vec<usize> = sizes[..drawn].iter().chain(&squares.sizes()[1..]).copied().collect();
    squares.reshape(all)
}

/// `a x` for vectors in the last dim of `x`.
#[track_caller]
pub(crate) fn times_vector(a: &Tensor, x: &Tensor) -> Result<Tensor> {
    a.matmul(&x.unsqueeze(-1)?)?.squeeze(-1)
}

/// The sum of squares of all elements of matrices.
#[track_caller]
pub(crate) fn square_norm(x: &Tensor) -> Result<Tensor> {
    x.square().sum([-2, -1])
}
