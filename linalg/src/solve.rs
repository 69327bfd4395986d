//! Systems of equations, inverses and determinants.

use crate::common::*;
use crate::system::System;
use crate::values::Lu;
use namegrad_core::args::OptionalDims;

methods! { solve;
    //! Systems of equations, inverses and determinants.
    //!
    //! `dim` is the dims of the rows and of the columns, such as `["out", "in"]`; `..` means the last two.
    //! All other dims are batch dims.

    /// The solution `y` of `x y = other` for square matrices `x`, or with `left` false of `y x = other`. If
    /// `other` has one dim, or the batch dims of `x` and one more, it has vectors, and so has the solution.
    ///
    /// The rows of `other` are those of `x`, found by their name; in the solution they are the columns of `x`.
    ///
    /// # Shapes
    /// - `x`: `[.., n, n]`
    /// - `other`: `[.., n, k]` or `[.., n]`; with `left` false `[.., k, n]`
    /// - result: like `other`, with the name of the columns of `x` in place of that of its rows. Batch dims
    ///   broadcast.
    ///
    /// # Errors
    /// [`Value`](namegrad_core::ErrorKind::Value) for a singular matrix; the error says which of the batch.
    /// [`Shape`](namegrad_core::ErrorKind::Shape), [`NameMismatch`](namegrad_core::ErrorKind::NameMismatch) and
    /// [`Misaligned`](namegrad_core::ErrorKind::Misaligned) for tensors that do not fit.
    ///
    /// # Source
    /// Golub, Van Loan, *Matrix Computations* (4th edition, 2013), section 3.4.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let a = Tensor::new([[2.0, 1.0], [1.0, 3.0]])?.refine_names(["out", "in"])?;
    /// let y = Tensor::new([3.0, 5.0])?.refine_names(["out"])?;
    /// let x = a.solve(&y, ["out", "in"])?;
    /// assert_eq!(x.shape().to_string(), "[in=2]");
    /// assert!(a.matmul(&x)?.allclose(&y)?);
    /// # Ok::<(), Error>(())
    /// ```
    solve (x, other; dim: Matrix or .., left: bool = true) on floats names contracts
        => solved(x, other, dim, left, true).map(|(solution, _)| solution);
    /// Like [`solve`](Self::solve), but instead of an error for a singular matrix there is `info`: 0, or the
    /// number of the first pivot that is 0, counted from 1. The solution has infinite elements or NaN then.
    solve_ex (x, other; dim: Matrix or .., left: bool = true) -> (solution, info) on floats names contracts
        => solved(x, other, dim, left, false);
    /// The inverse of square matrices: `x inv(x) = 1`. To multiply by it, [`solve`](Self::solve) is faster
    /// and more accurate.
    ///
    /// # Shapes
    /// - `x`: `[.., n, n]`
    /// - result: what `x` maps from and to is swapped: the inverse of `[out, in]` is `[in, out]`.
    ///
    /// # Errors
    /// [`Value`](namegrad_core::ErrorKind::Value) for a singular matrix; the error says which of the batch.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let a = Tensor::new([[2.0, 0.0], [0.0, 4.0]])?.refine_names(["out", "in"])?;
    /// let inverse = a.inv(["out", "in"])?;
    /// assert_eq!(inverse.shape().to_string(), "[in=2, out=2]");
    /// assert_eq!(inverse.to_vec::<f32>()?, [0.5, 0.0, 0.0, 0.25]);
    /// # Ok::<(), Error>(())
    /// ```
    inv (x; dim: Matrix or ..) on floats names permutes
        => inverted(x, dim, true).map(|(inverse, _)| inverse);
    /// Like [`inv`](Self::inv), but instead of an error for a singular matrix there is `info`: 0, or the
    /// number of the first pivot that is 0, counted from 1.
    inv_ex (x; dim: Matrix or ..) -> (inverse, info) on floats names permutes, info: removes
        => inverted(x, dim, false);
    /// The determinant of square matrices. That of a matrix without elements is 1.
    ///
    /// The gradient is that of the polynomial, also for singular matrices: the cofactors.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let a = Tensor::new([[[2.0, 1.0], [1.0, 3.0]]])?.refine_names(["N", "row", "col"])?;
    /// let det = a.det(["row", "col"])?;
    /// assert_eq!(det.shape().to_string(), "[N=1]");
    /// assert!((det.item::<f64>()? - 5.0).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    det (x; dim: Matrix or ..) on floats names removes => {
        let of = Matrices::square(x, dim)?;
        of.numbers(determinant(&of.x)?)
    }
    /// The sign of the determinant, and the logarithm of its absolute value: 0 and `-inf` for a singular
    /// matrix.
    ///
    /// The gradient is that of the logarithm, the transposed inverse; it exists if no matrix is singular.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let (sign, logabsdet) = Tensor::new([[0.0, 2.0], [4.0, 0.0]])?.slogdet(..)?;
    /// assert_eq!(sign.item::<f32>()?, -1.0);
    /// assert!((logabsdet.item::<f64>()? - 8f64.ln()).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    slogdet (x; dim: Matrix or ..) -> (sign, logabsdet) on floats names removes => {
        let of = Matrices::square(x, dim)?;
        let [sign, logabsdet] = logarithm(&of.x)?;
        Ok((of.numbers(sign)?, of.numbers(logabsdet)?))
    }
    /// The logarithm of the determinant: `-inf` if it is 0, NaN if it is negative.
    logdet (x; dim: Matrix or ..) on floats names removes => {
        let of = Matrices::square(x, dim)?;
        let [sign, logabsdet] = logarithm(&of.x)?;
        // 0, `-inf` and NaN for the signs 1, 0 and -1
        of.numbers(logabsdet.add(sign.log()?)?)
    }
    /// The tensor `y` with `tensordot(x, y, y.ndim()) = other`: [`solve`](Self::solve) for the matrix whose
    /// rows are the dims of `other` and whose columns are the other dims of `x`.
    ///
    /// # Shapes
    /// - `x`: the dims of `other`, then dims with as many elements in all
    /// - `dims`: dims of `x` that are moved to its end first, by default none
    /// - result: the other dims of `x`
    tensorsolve (x, other; dims: OptionalDims = OptionalDims::NONE) on floats names removes, other: matched => {
        match dims {
            Some(dims) => {
                let last: Vec<isize> = (0..dims.len()).map(|k| k as isize - dims.len() as isize).collect();
                tensors_solved(&x.movedim(dims.to_vec(), last)?, other)
            }
            None => tensors_solved(x, other),
        }
    }
    /// The tensor whose [`tensordot`](namegrad_autograd::Tensor::tensordot) with `x` over `ind` dims is the
    /// identity: [`inv`](Self::inv) for the matrix whose rows are the first `ind` dims of `x` and whose
    /// columns are the others.
    ///
    /// # Shapes
    /// - `x`: its first `ind` dims have as many elements as the others
    /// - result: the other dims, then the first ones
    tensorinv (x; ind: usize = 2) on floats names permutes => tensors_inverted(x, ind);
}

/// The solution, and the info, which is checked or not.
fn solved(
    x: &Tensor,
    other: &Tensor,
    dims: [usize; 2],
    left: bool,
    checked: bool,
) -> Result<(Tensor, Tensor)> {
    let of = Matrices::square(x, dims)?;
    let [rows, columns] = of.names;
    let system = System::of(&of, other, if left { [rows, columns] } else { [columns, rows] }, !left)?;
    system.check_rows(of.sizes[0])?;
    let a = if left { of.x.clone() } else { of.x.mt()? };
    let (y, infos) = solution(&a, &system.b)?;
    if checked {
        of.check(&infos, singular)?;
    }
    Ok((system.solution(y)?, of.infos(&infos)?))
}

fn singular(pivot: i32) -> String {
    format!("is singular: pivot {pivot} is 0")
}

/// The solution of `a x = b` for tensors without names.
pub(crate) fn solution(a: &Tensor, b: &Tensor) -> Result<(Tensor, Vec<i32>)> {
    let Lu { factors, pivots, infos } = values::lu(a.value())?;
    let x = values::lu_solve(&factors, &pivots, b.value(), false)?;
    let (a_kept, x_kept) = (Kept::input(a), Kept::output(&x));
    let op = Op::new("solve", x).inputs(&[Some(a), Some(b)], move |g, cx| {
        // Where the derivative is differentiated itself, the factors would be constants.
        let a = a_kept.get(cx);
        let of_b = match a.is_followed() || g.is_followed() {
            true => solution(&a.mt()?, g)?.0,
            false => Tensor::constant(values::lu_solve(&factors, &pivots, g.value(), true)?),
        };
        let of_a = if cx.wants(0) { Some(of_b.matmul(&x_kept.get(cx).mt()?)?.neg()?) } else { None };
        Ok(vec![of_a, Some(of_b)])
    });
    Ok((op.output(), infos))
}

/// The inverse, and the info, which is checked or not.
fn inverted(x: &Tensor, dims: [usize; 2], checked: bool) -> Result<(Tensor, Tensor)> {
    let of = Matrices::square(x, dims)?;
    let (y, infos) = inverse(&of.x)?;
    if checked {
        of.check(&infos, singular)?;
    }
    let [rows, columns] = of.names;
    Ok((of.matrices(y, [columns, rows])?, of.infos(&infos)?))
}

/// The inverse of a tensor without names.
pub(crate) fn inverse(x: &Tensor) -> Result<(Tensor, Vec<i32>)> {
    let (y, infos) = values::inverse(x.value())?;
    let kept = Kept::output(&y);
    let op = Op::new("inv", y).input(x, move |g, cx| {
        let y = kept.get(cx).mt()?;
        y.matmul(g).matmul(&y).neg()
    });
    Ok((op.output(), infos))
}

/// The elements of the diagonals of the factors.
fn diagonals(lu: &Lu) -> Result<Vec<f64>> {
    values::numbers_or(&lu.factors.diagonal(-2, -1)?.to(DType::F64)?, 1.0)
}

/// Numbers for the matrices of `x`.
fn of_each(x: &Tensor, numbers: &[f64]) -> Result<NamedTensor> {
    NamedTensor::from_slice(numbers, &x.sizes()[..x.ndim() - 2])?.to(x.dtype())
}

fn determinant(x: &Tensor) -> Result<Tensor> {
    let lu = values::lu(x.value())?;
    let n = x.sizes()[x.ndim() - 1];
    let (diagonals, signs) = (diagonals(&lu)?, values::signs(&lu)?);
    let of = |k: usize| signs[k] * diagonals[k * n..(k + 1) * n].iter().product::<f64>();
    let numbers: Vec<f64> = (0..signs.len()).map(of).collect();
    let is_singular = lu.infos.iter().any(|info| *info != 0);
    let y = of_each(x, &numbers)?;
    let (x_kept, y_kept) = (Kept::input(x), Kept::output(&y));
    let op = Op::new("det", y).input(x, move |g, cx| {
        let (x, g) = (x_kept.get(cx), g.unsqueeze(-1).unsqueeze(-1)?);
        match is_singular {
            true => cofactors(&x)?.mul(&g),
            false => inverse(&x)?.0.mt().mul(y_kept.get(cx).unsqueeze(-1).unsqueeze(-1).mul(&g)?),
        }
    });
    Ok(op.output())
}

/// The derivative of the determinant: `det u det v` times `u diag(d) vᵀ`, where `d` has the products of the
/// other singular values.
///
/// # Source
/// Higham, *What Is the Adjugate of a Matrix?* (2020).
fn cofactors(x: &Tensor) -> Result<Tensor> {
    let [u, s, vt] = crate::svd::decomposition(x, false)?;
    let n = x.sizes()[x.ndim() - 1];
    let signs = determinant(&u)?.mul(determinant(&vt)?)?;
    // Row `i` has the singular values without the `i`-th, for which it has 1.
    let one = TensorOptions::new().dtype(x.dtype()).eye(n, n)?;
    let others = s.unsqueeze(-2).mul(one.neg().add(1.0)?).add(&one)?;
    let products = others.prod(-1).mul(signs.unsqueeze(-1)?)?;
    u.mul(products.unsqueeze(-2)?).matmul(&vt)
}

/// The signs of the determinants and the logarithms of their absolute values.
fn logarithm(x: &Tensor) -> Result<[Tensor; 2]> {
    let lu = values::lu(x.value())?;
    let n = x.sizes()[x.ndim() - 1];
    let (diagonals, signs) = (diagonals(&lu)?, values::signs(&lu)?);
    let (mut all, mut logs) = (Vec::new(), Vec::new());
    for (k, sign) in signs.iter().enumerate() {
        let own = &diagonals[k * n..(k + 1) * n];
        let sign_of = |x: &f64| if *x == 0.0 || x.is_nan() { *x } else { x.signum() };
        all.push(sign * own.iter().map(sign_of).product::<f64>());
        logs.push(own.iter().map(|x| x.abs().ln()).sum::<f64>());
    }
    let kept = Kept::input(x);
    let values = vec![of_each(x, &all)?, of_each(x, &logs)?];
    let made = Op::with_outputs("slogdet", values).inputs(&[Some(x)], move |gs, cx| {
        let Some(g) = &gs[1] else { return Ok(vec![None]) }; // the sign is constant
        Ok(vec![Some(inverse(&kept.get(cx))?.0.mt().mul(g.unsqueeze(-1).unsqueeze(-1)?)?)])
    });
    let Ok(made) = <[Tensor; 2]>::try_from(made) else { unreachable!("two outputs") };
    Ok(made)
}

fn names_of(x: &Tensor) -> Vec<Option<Name>> {
    (0..x.ndim()).map(|dim| x.name(dim)).collect()
}

/// Checks that tensors are floats of one kind.
fn checked(x: &Tensor) -> Result<()> {
    // As a matrix of one column: only the dtype matters.
    Matrices::of(&x.rename(None)?.reshape([-1, 1])?, [0, 1]).map(drop)
}

fn tensors_solved(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    checked(x)?;
    let count = other.ndim();
    // Without names, the dims of the right side may be other ones with as many elements, as in PyTorch.
    let unnamed = !x.has_names() && !other.has_names();
    let fits = x.ndim() >= count && (unnamed || x.sizes()[..count] == *other.sizes());
    let own: Vec<usize> = x.sizes().get(count..).unwrap_or_default().to_vec();
    if !fits || own.iter().product::<usize>() != other.numel() {
        let message = format!(
            "the first dims of {:?} need to be {:?}, and the others to have as many elements",
            x.sizes(),
            other.sizes()
        );
        return Err(fault(ErrorKind::Shape, message));
    }
    let (names, others) = (names_of(x), names_of(other));
    for (own, name) in names.iter().zip(&others) {
        if let (Some(own), Some(name)) = (own, name)
            && own != name
        {
            return Err(fault(ErrorKind::NameMismatch, format!("the dims '{own}' and '{name}' meet")));
        }
    }
    let matrix = x.rename(None)?.reshape([other.numel(), other.numel()])?;
    let of = Matrices::square(&matrix, [0, 1])?;
    let system = System::of(&of, &other.rename(None)?.reshape([-1])?, [None, None], false)?;
    let (y, infos) = solution(&of.x, &system.b)?;
    of.check(&infos, singular)?;
    named(y.reshape(own)?, names[count..].to_vec())
}

fn tensors_inverted(x: &Tensor, ind: usize) -> Result<Tensor> {
    checked(x)?;
    if ind == 0 {
        return Err(fault(ErrorKind::Value, "ind must be at least 1, got 0"));
    }
    let (first, others) = x.sizes().split_at(ind.min(x.ndim()));
    let [rows, columns] = [first, others].map(|sizes| sizes.iter().product::<usize>());
    if rows != columns {
        let message = format!("the first {ind} dims have {rows} elements and the others {columns}");
        return Err(fault(ErrorKind::Shape, message));
    }
    let matrix = x.rename(None)?.reshape([rows, columns])?;
    let (y, infos) = inverse(&matrix)?;
    Matrices::square(&matrix, [0, 1])?.check(&infos, singular)?;
    let sizes: Vec<usize> = others.iter().chain(first).copied().collect();
    let mut names = names_of(x);
    names.rotate_left(first.len());
    named(y.reshape(sizes)?, names)
}
