//! Factors of matrices, and what is computed from them.

use crate::common::*;
use crate::system::System;
use crate::values::Lu;

methods! { factor;
    //! Factors of matrices, and systems of equations for factors.
    //!
    //! `dim` is the dims of the rows and of the columns, such as `["row", "col"]`; `..` means the last two.
    //! All other dims are batch dims.

    /// The Cholesky factor of symmetric positive definite matrices: the lower triangular `l` with `x = l
    /// lᵀ`. Only the lower triangle of `x` is read. With [`Upper`](namegrad_core::Triangle::Upper) it is
    /// the upper triangular `u` with `x = uᵀ u`, and the upper triangle is read.
    ///
    /// # Shapes
    /// - `x`: `[.., n, n]`
    /// - result: of the same sizes. The rows of `l` have the name of the rows of `x`, and its columns are
    ///   new: they are called `name`. In `u` it is the other way round.
    ///
    /// # Errors
    /// [`Value`](namegrad_core::ErrorKind::Value) for a matrix that is not positive definite; the error says
    /// which of the batch, and the order of its first leading minor that is not positive.
    ///
    /// # Source
    /// Golub, Van Loan, *Matrix Computations* (4th edition, 2013), section 4.2; the gradient: Murray,
    /// *Differentiation of the Cholesky decomposition* (2016), equation 10, made symmetric.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[4.0, 2.0], [2.0, 5.0]])?.refine_names(["coord", "other"])?;
    /// let l = x.cholesky(["coord", "other"])?;
    /// assert_eq!(l.shape().to_string(), "[coord=2, ?=2]");
    /// assert_eq!(l.to_vec::<f32>()?, [2.0, 0.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    cholesky (x; dim: Matrix or .., upper: Triangle = Triangle::Lower, name: NewName = None) on floats names removes
        => factored(x, dim, upper, name, true).map(|(factor, _)| factor);
    /// Like [`cholesky`](Self::cholesky), but instead of an error for a matrix that is not positive definite
    /// there is `info`: 0, or the order of its first leading minor that is not positive. The factor is not
    /// one then.
    cholesky_ex (x; dim: Matrix or .., upper: Triangle = Triangle::Lower, name: NewName = None) -> (factor, info)
        on floats names removes => factored(x, dim, upper, name, false);
    /// The solution `y` of `a y = x` for the matrix `a` with this Cholesky factor: `factor factorᵀ`, or
    /// `factorᵀ factor` with [`Upper`](namegrad_core::Triangle::Upper). `dim` are dims of the factor.
    ///
    /// # Shapes
    /// - `x`: `[.., n, k]`. Its rows are the rows of a lower factor, or the columns of an upper one, found by
    ///   their name.
    /// - `factor`: `[.., n, n]`, of which one triangle is read
    /// - result: like `x`. Batch dims broadcast.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let a = Tensor::new([[4.0, 2.0], [2.0, 5.0]])?;
    /// let b = Tensor::new([[2.0], [5.0]])?;
    /// let x = b.cholesky_solve(&a.cholesky(..)?, ..)?;
    /// assert!(a.matmul(&x)?.allclose(&b)?);
    /// # Ok::<(), Error>(())
    /// ```
    cholesky_solve (x, factor; dim: Matrix of factor or .., upper: Triangle = Triangle::Lower) on floats
        names keeps, factor: contracted => {
        let of = Matrices::square(factor, dim)?;
        if x.ndim() < 2 {
            return Err(fault(ErrorKind::Shape, format!("expected matrices on the right side, got {} dims", x.ndim())));
        }
        let own = if upper == Triangle::Lower { of.names[0] } else { of.names[1] };
        // Two dims are a matrix, also beside a batch of factors.
        let system = System::matrices(&of, x, [own, own], false)?;
        system.check_rows(of.sizes[0])?;
        system.solution(factors_solved(&of.x, &system.b, upper)?)
    }
    /// The inverse of the matrix with this Cholesky factor: `(x xᵀ)⁻¹`, or `(xᵀ x)⁻¹` with
    /// [`Upper`](namegrad_core::Triangle::Upper).
    ///
    /// # Shapes
    /// - `x`: `[.., n, n]`, of which one triangle is read
    /// - result: of the same sizes. Its columns have the name of the rows of a lower factor, its rows that of
    ///   the columns of an upper one.
    cholesky_inverse (x; dim: Matrix or .., upper: Triangle = Triangle::Lower) on floats names removes => {
        let of = Matrices::square(x, dim)?;
        let identity = TensorOptions::new().dtype(x.dtype()).eye(of.sizes[0], of.sizes[0])?;
        let [rows, columns] = of.names;
        let names = if upper == Triangle::Lower { [None, rows] } else { [columns, None] };
        of.matrices(factors_solved(&of.x, &identity, upper)?, names)
    }
    /// The factors of `x = p l u`: a permutation matrix, a lower triangular matrix whose diagonal is 1, and
    /// an upper triangular one, by elimination with partial pivoting.
    ///
    /// # Shapes
    /// With `k = min(m, n)`:
    /// - `x`: `[.., m, n]`
    /// - `p`: `[.., m, m]`, whose rows have the name of the rows of `x`
    /// - `l`: `[.., m, k]`; `u`: `[.., k, n]`, whose columns have the name of the columns of `x`. The dims
    ///   between the factors are called `name`.
    ///
    /// # Source
    /// Golub, Van Loan, *Matrix Computations* (4th edition, 2013), section 3.4.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0], [4.0, 4.0]])?.refine_names(["row", "col"])?;
    /// let (p, l, u) = x.lu(["row", "col"])?;
    /// assert!(p.matmul(&l)?.matmul(&u)?.allclose(&x)?);
    /// # Ok::<(), Error>(())
    /// ```
    lu (x; dim: Matrix or .., name: NewName = None) -> (p, l, u) on floats names removes => {
        let of = Matrices::of(x, dim)?;
        let ([m, n], [rows, columns]) = (of.sizes, of.names);
        let [factors, pivots] = lu_factors(&of.x)?.0;
        let [l, u] = unpacked(&factors, m, n)?;
        let p = Tensor::constant(values::permutations(pivots.value(), m, x.dtype())?);
        Ok((of.matrices(p, [rows, None])?, of.matrices(l, [None, name])?, of.matrices(u, [name, columns])?))
    }
    /// The factors of [`lu`](Self::lu) in one matrix: `l` below the diagonal, and `u`. Row `i` was swapped
    /// with row `pivots[i]`, counted from 1.
    ///
    /// # Shapes
    /// - `x`: `[.., m, n]`
    /// - `factors`: the sizes and names of `x`; `pivots`: `[.., min(m, n)]`, of `i32`
    ///
    /// # Errors
    /// [`Value`](namegrad_core::ErrorKind::Value) for a singular matrix; the error says which of the batch.
    lu_factor (x; dim: Matrix or ..) -> (factors, pivots) on floats names keeps, pivots: removes => {
        let (factors, pivots, of, infos) = packed(x, dim)?;
        of.check(&infos, |pivot| format!("is singular: pivot {pivot} is 0"))?;
        Ok((factors, pivots))
    }
    /// Like [`lu_factor`](Self::lu_factor), but instead of an error for a singular matrix there is `info`: 0,
    /// or the number of the first pivot that is 0, counted from 1.
    lu_factor_ex (x; dim: Matrix or ..) -> (factors, pivots, info) on floats names keeps, pivots: removes, info: removes
        => {
        let (factors, pivots, of, infos) = packed(x, dim)?;
        Ok((factors, pivots, of.infos(&infos)?))
    }
    /// The factors of [`lu`](Self::lu) from those of [`lu_factor`](Self::lu_factor). The dims between the
    /// factors are called `name`.
    lu_unpack (x, pivots; dim: Matrix or .., name: NewName = None) -> (p, l, u) on floats names removes, pivots: free => {
        let of = Matrices::of(x, dim)?;
        let ([m, n], [rows, columns]) = (of.sizes, of.names);
        let p = permutation(&of, pivots)?;
        let [l, u] = unpacked(&of.x, m, n)?;
        Ok((of.matrices(p, [rows, None])?, of.matrices(l, [None, name])?, of.matrices(u, [name, columns])?))
    }
    /// The solution `y` of `a y = other` for the matrices `a` with the factors of
    /// [`lu_factor`](Self::lu_factor), or with `adjoint` of `aᵀ y = other`, or with `left` false of `y a =
    /// other`.
    ///
    /// # Shapes
    /// - `x`: `[.., n, n]`, and `pivots`: `[.., n]`
    /// - `other`: `[.., n, k]`, or with `left` false `[.., k, n]`
    /// - result: like `other`, with the name of the columns of `x` in place of that of its rows. Batch dims
    ///   broadcast.
    lu_solve (x, pivots, other; dim: Matrix or .., left: bool = true, adjoint: bool = false) on floats
        names contracts, pivots: free => {
        let of = Matrices::square(x, dim)?;
        let names = if left == adjoint { [of.names[1], of.names[0]] } else { of.names };
        let system = System::matrices(&of, other, names, !left)?;
        system.check_rows(of.sizes[0])?;
        let p = permutation(&of, pivots)?;
        system.solution(unpacked_solved(&of.x, p, &system.b, adjoint == left)?)
    }
    /// The first columns of the product of Householder reflections `1 - tau v vᵀ`, whose vectors are the
    /// columns of `x`: the diagonal of `x` is taken to be 1, and what is above it to be 0.
    ///
    /// # Shapes
    /// - `x`: `[.., m, n]`, with `n` at most `m`
    /// - `tau`: `[.., k]`, with `k` at most `n`
    /// - result: the sizes of `x`. Its columns are called `name`.
    ///
    /// # Source
    /// Schreiber, Van Loan, *A Storage-Efficient WY Representation for Products of Householder Transformations*
    /// (1989).
    householder_product (x, tau; dim: Matrix or .., name: NewName = None) on floats names removes, tau: free
        => reflected(x, tau, dim, name);
}

/// The factor, and the info, which is checked or not.
fn factored(
    x: &Tensor,
    dims: [usize; 2],
    upper: Triangle,
    name: Option<Name>,
    checked: bool,
) -> Result<(Tensor, Tensor)> {
    let of = Matrices::square(x, dims)?;
    let is_upper = upper == Triangle::Upper;
    let (l, infos) = lower(&if is_upper { of.x.mt()? } else { of.x.clone() })?;
    if checked {
        of.check(&infos, |order| {
            format!("is not positive definite: the leading minor of order {order} is not positive")
        })?;
    }
    let [rows, columns] = of.names;
    let (y, names) = if is_upper { (l.mt()?, [name, columns]) } else { (l, [rows, name]) };
    Ok((of.matrices(y, names)?, of.infos(&infos)?))
}

/// The lower triangular factor of a tensor without names.
pub(crate) fn lower(x: &Tensor) -> Result<(Tensor, Vec<i32>)> {
    let (l, infos) = values::cholesky(x.value())?;
    let (kept, factor) = (Kept::input(x), l.clone());
    let op = Op::new("cholesky", l).input(x, move |g, cx| {
        // Where the derivative is differentiated itself, the factor is a function of `x`.
        let x = kept.get(cx);
        let l = if x.is_followed() { lower(&x)?.0 } else { Tensor::constant(factor.clone()) };
        let inner = halved(&l.mt().matmul(g.tril()?)?)?;
        let left = l.mt().solve_triangular(&inner, Triangle::Upper)?;
        let both =
            l.solve_triangular_with(&left, Triangle::Lower, SolveTriangularOptions::new().left(false))?;
        both.add(both.mt()?).mul(0.5)
    });
    Ok((op.output(), infos))
}

/// The lower triangle, with half of its diagonal.
fn halved(x: &Tensor) -> Result<Tensor> {
    let below = below(x)?;
    x.tril()?.add(&below)?.mul(0.5)
}

/// What is below the diagonal.
fn below(x: &Tensor) -> Result<Tensor> {
    x.tril_with(TrilOptions::new().diagonal(-1))
}

/// What is above the diagonal.
fn above(x: &Tensor) -> Result<Tensor> {
    x.triu_with(TriuOptions::new().diagonal(1))
}

/// The solution for the matrices with these Cholesky factors.
fn factors_solved(factor: &Tensor, b: &Tensor, upper: Triangle) -> Result<Tensor> {
    let l = if upper == Triangle::Lower { factor.clone() } else { factor.mt()? };
    let half = l.solve_triangular(b, Triangle::Lower)?;
    l.mt().solve_triangular(&half, Triangle::Upper)
}

/// `l`, with ones on its diagonal, and `u` of their common matrix.
fn unpacked(factors: &Tensor, m: usize, n: usize) -> Result<[Tensor; 2]> {
    let k = m.min(n);
    let ones = TensorOptions::new().dtype(factors.dtype()).eye(m, k)?;
    let l = below(&factors.narrow(-1, 0, k)?)?.add(ones)?;
    Ok([l, factors.narrow(-2, 0, k).triu()?])
}

/// The permutation matrices for these pivots.
fn permutation(of: &Matrices, pivots: &Tensor) -> Result<Tensor> {
    let sizes = [of.batch_sizes(), &[of.sizes[0].min(of.sizes[1])]].concat();
    if pivots.sizes() != sizes {
        let message = format!("expected pivots of sizes {sizes:?}, got {:?}", pivots.sizes());
        return Err(fault(ErrorKind::Shape, message));
    }
    if pivots.dtype().is_floating_point() {
        return Err(fault(ErrorKind::DType, format!("expected pivots of integers, got {}", pivots.dtype())));
    }
    let pivots = pivots.value().rename(None)?.to(DType::I32)?;
    values::permutations(&pivots, of.sizes[0], of.x.dtype()).map(Tensor::constant)
}

/// The solution of `p l u x = b`, or with `adjoint` of `(p l u)ᵀ x = b`.
fn unpacked_solved(factors: &Tensor, p: Tensor, b: &Tensor, adjoint: bool) -> Result<Tensor> {
    let unit = || SolveTriangularOptions::new().unitriangular(true);
    if adjoint {
        let half = factors.mt().solve_triangular(b, Triangle::Lower)?;
        return p.matmul(&factors.mt().solve_triangular_with(&half, Triangle::Upper, unit())?);
    }
    let half = factors.solve_triangular_with(&p.mt().matmul(b)?, Triangle::Lower, unit())?;
    factors.solve_triangular(&half, Triangle::Upper)
}

/// The factors and the pivots of a tensor, with its matrices and infos.
fn packed(x: &Tensor, dims: [usize; 2]) -> Result<(Tensor, Tensor, Matrices, Vec<i32>)> {
    let of = Matrices::of(x, dims)?;
    let ([factors, pivots], infos) = lu_factors(&of.x)?;
    Ok((of.matrices(factors, of.names)?, of.vectors(pivots, None)?, of, infos))
}

/// The factors and the pivots of a tensor without names.
fn lu_factors(x: &Tensor) -> Result<([Tensor; 2], Vec<i32>)> {
    let Lu { factors, pivots, infos } = values::lu(x.value())?;
    let p = values::permutations(&pivots, x.sizes()[x.ndim() - 2], x.dtype())?;
    let kept = Kept::output_at(0, &factors);
    let made = Op::with_outputs("lu_factor", vec![factors, pivots]).inputs(&[Some(x)], move |_, cx| {
        let gradient = lu_gradient(&cx.output_gradient(0)?, &kept.get(cx))?;
        Ok(vec![Some(Tensor::constant(p.clone()).matmul(&gradient)?)])
    });
    let Ok(made) = <[Tensor; 2]>::try_from(made) else { unreachable!("two outputs") };
    Ok((made, infos))
}

/// The gradient of `l u`. Of the square part, it is `l⁻ᵀ (below(lᵀ g_l) + upper(g_u uᵀ)) u⁻ᵀ`.
/// Columns beyond it are `l` times columns of `u`, and rows beyond it rows of `l` times `u`: their gradients
/// are `l⁻ᵀ g` and `g u⁻ᵀ`, and what they add to those of the square factors is the other factor
/// times them.
fn lu_gradient(g: &Tensor, factors: &Tensor) -> Result<Tensor> {
    let [m, n] = [2, 1].map(|k| factors.sizes()[factors.ndim() - k]);
    let k = m.min(n);
    let square = factors.narrow(-2, 0, k).narrow(-1, 0, k)?;
    let own = g.narrow(-2, 0, k).narrow(-1, 0, k)?;
    let unit = || SolveTriangularOptions::new().unitriangular(true);
    let by_l = |x: &Tensor| square.mt().solve_triangular_with(x, Triangle::Upper, unit());
    let by_u = |x: &Tensor| {
        square.mt().solve_triangular_with(x, Triangle::Lower, SolveTriangularOptions::new().left(false))
    };
    let ones = TensorOptions::new().dtype(g.dtype()).eye(k, k)?;
    let (l, u) = (below(&square)?.add(ones)?, square.triu()?);
    let (mut of_l, mut of_u) = (l.mt().matmul(&below(&own)?)?, own.triu().matmul(u.mt()?)?);
    let mut rest = None;
    if n > k {
        let (more, g_more) = (factors.narrow(-1, k, n - k)?, g.narrow(-1, k, n - k)?);
        of_l = of_l.sub(g_more.matmul(&more.mt()?)?)?;
        rest = Some((by_l(&g_more)?, -1));
    }
    if m > k {
        let (more, g_more) = (factors.narrow(-2, k, m - k)?, g.narrow(-2, k, m - k)?);
        of_u = of_u.sub(more.mt().matmul(&g_more)?)?;
        rest = Some((by_u(&g_more)?, -2));
    }
    let square = by_u(&by_l(&below(&of_l)?.add(of_u.triu()?)?)?)?;
    match rest {
        Some((rest, dim)) => Tensor::cat(&[&square, &rest], dim),
        None => Ok(square),
    }
}

/// `e - v t vᵀ`, where `e` and `vᵀ` have the first columns of the identity and of `vᵀ`, and
/// `t = (1 + diag(tau) above(vᵀ v))⁻¹ diag(tau)`.
fn reflected(x: &Tensor, tau: &Tensor, dims: [usize; 2], name: Option<Name>) -> Result<Tensor> {
    let of = Matrices::of(x, dims)?;
    let ([m, n], tau) = (of.sizes, &tau.rename(None)?);
    if tau.dtype() != x.dtype() {
        let message = format!("expected two tensors of one dtype, got {} and {}", x.dtype(), tau.dtype());
        return Err(fault(ErrorKind::DType, message).with_repair(format!("tau.to(DType::{:?})?", x.dtype())));
    }
    let k = tau.sizes().last().copied().unwrap_or(usize::MAX);
    let fits = k <= n && n <= m && tau.sizes()[..tau.ndim() - 1] == *of.batch_sizes();
    if !fits {
        let message = format!(
            "expected at least as many rows as columns, and at most as many reflections as columns, got matrices {:?} and reflections {:?}",
            of.x.sizes(),
            tau.sizes()
        );
        return Err(fault(ErrorKind::Shape, message));
    }
    let options = TensorOptions::new().dtype(x.dtype());
    let v = below(&of.x.narrow(-1, 0, k)?)?.add(options.eye(m, k)?)?;
    let inner = above(&v.mt().matmul(&v)?)?.mul(tau.unsqueeze(-1)?)?;
    let right = v.narrow(-2, 0, n).mt().mul(tau.unsqueeze(-1)?)?; // diag(tau) vᵀ
    let unit = SolveTriangularOptions::new().unitriangular(true);
    let right = inner.solve_triangular_with(&right, Triangle::Upper, unit)?;
    of.matrices(options.eye(m, n)?.sub(v.matmul(&right)?)?, [of.names[0], name])
}
