//! Singular values, and what is computed from them.

use crate::common::*;
use crate::system::System;

methods! { svd;
    //! Singular values: decompositions, least squares, norms of matrices, ranks.
    //!
    //! `dim` is the dims of the rows and of the columns, such as `["row", "col"]`; `..` means the last two.
    //! All other dims are batch dims.

    /// The singular value decomposition `x = u diag(s) vᵀ`, with the singular values from the largest. `u`
    /// and `v` have orthonormal columns: as many as rows, as in PyTorch, or without `full_matrices` `k =
    /// min(m, n)`.
    ///
    /// The gradient of `u` and `vt` divides by the differences of the squares of the singular values: where
    /// two are equal, it is infinite or NaN. That of `s` alone is finite. The columns that only
    /// `full_matrices` adds have no gradient.
    ///
    /// # Shapes
    /// - `x`: `[.., m, n]`
    /// - `u`: `[.., m, m]`, with the name of the rows of `x`; `s`: `[.., k]`; `vt`: `[.., n, n]`, with the
    ///   name of the columns of `x`. The singular dims are called `name`. Without `full_matrices`, `u` is
    ///   `[.., m, k]` and `vt` is `[.., k, n]`.
    ///
    /// # Errors
    /// [`Value`](namegrad_core::ErrorKind::Value) for elements that are infinite or NaN.
    ///
    /// # Source
    /// Golub, Van Loan, *Matrix Computations* (4th edition, 2013), section 8.6; the gradient: Townsend,
    /// *Differentiating the Singular Value Decomposition* (2016).
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0]])?.refine_names(["row", "col"])?;
    /// let (u, s, vt) = x.svd_with(["row", "col"], SvdOptions::new().full_matrices(false).name("rank"))?;
    /// assert_eq!(u.shape().to_string(), "[row=2, rank=2]");
    /// assert_eq!(vt.shape().to_string(), "[rank=2, col=3]");
    /// assert!(u.mul(&s)?.matmul(&vt)?.allclose(&x)?);
    /// # Ok::<(), Error>(())
    /// ```
    svd (x; dim: Matrix or .., full_matrices: bool = true, name: NewName = None) -> (u, s, vt) on floats names removes
        => {
        let of = Matrices::of(x, dim)?;
        let [u, s, vt] = of.decomposed(full_matrices)?;
        let [rows, columns] = of.names;
        Ok((of.matrices(u, [rows, name])?, of.vectors(s, name)?, of.matrices(vt, [name, columns])?))
    }
    /// The singular values of [`svd`](Self::svd), without the vectors.
    svdvals (x; dim: Matrix or .., name: NewName = None) on floats names removes => {
        let of = Matrices::of(x, dim)?;
        of.vectors(of.singular_values()?, name)
    }
    /// The pseudoinverse, or Moore-Penrose inverse: the inverse of what `x` does beside the singular values
    /// that are at most `max(atol, rtol s)`, which count as 0; `s` is the largest one. Both are a number, or a
    /// tensor that broadcasts to the batch dims. `atol` is 0 if it is not given, and `rtol` is `max(m, n)`
    /// times the distance from 1 to the next number of the dtype, or 0 beside an `atol`. With `hermitian`,
    /// `x` is symmetric, and only its lower triangle is read.
    ///
    /// # Shapes
    /// - `x`: `[.., m, n]`
    /// - result: `[.., n, m]`. What `x` maps from and to is swapped: that of `[out, in]` is `[in, out]`.
    ///
    /// # Source
    /// The gradient: Golub, Pereyra, *The Differentiation of Pseudo-Inverses and Nonlinear Least Squares
    /// Problems Whose Variables Separate* (1973), for matrices whose rank does not change.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])?.refine_names(["out", "in"])?;
    /// let inverse = x.pinv(["out", "in"])?;
    /// assert_eq!(inverse.shape().to_string(), "[in=3, out=2]");
    /// assert_eq!(inverse.to_vec::<f32>()?, [1.0, 0.0, 0.0, 0.5, 0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pinv (x; dim: Matrix or .., atol: Numbers = Numbers::default(), rtol: Numbers = Numbers::default(), hermitian: bool = false)
        on floats names permutes => {
        let of = Matrices::of(x, dim)?.symmetric_if(hermitian)?;
        let y = of.pseudoinverse(&of.decomposed(false)?, Tolerance { atol: &atol, rtol: &rtol })?;
        let [rows, columns] = of.names;
        of.matrices(y, [columns, rows])
    }
    /// The solution `y` of the least squares problem `|x y - other|²`: the smallest one if there are
    /// several, as for matrices whose columns depend on each other. Singular values that are at most `rcond`
    /// times the largest count as 0; it is `max(m, n)` times the distance from 1 to the next number of the
    /// dtype if it is not given.
    ///
    /// The gradient is that of the solution. It is right for matrices whose rank does not change.
    ///
    /// # Shapes
    /// - `x`: `[.., m, n]`
    /// - `other`: `[.., m, k]` or `[.., m]`. Its rows are those of `x`, found by their name.
    /// - `solution`: like `other`, with the columns of `x` in place of its rows
    /// - `residuals`: the sums of squares, `[.., k]`, if `m > n` and each matrix has rank `n`; else empty
    /// - `rank`: `[..]`, of `i64`; `singular_values`: `[.., min(m, n)]`
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// // A line through the points (0, 1), (1, 3) and (2, 5).
    /// let x = Tensor::new([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])?.refine_names(["point", "coef"])?;
    /// let y = Tensor::new([1.0, 3.0, 5.0])?.refine_names(["point"])?;
    /// let (line, ..) = x.lstsq(&y, ["point", "coef"])?;
    /// assert!(line.allclose(&Tensor::new([2.0, 1.0])?.refine_names(["coef"])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    lstsq (x, other; dim: Matrix or .., rcond: Option<f64> = None) -> (solution, residuals, rank, singular_values)
        on floats names contracts => least_squares(x, other, dim, rcond);
    /// The number of singular values that are greater than `max(atol, rtol s)`, as for [`pinv`](Self::pinv):
    /// `i64`. With `hermitian`, `x` is symmetric, and only its lower triangle is read.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0], [2.0, 4.0]])?;
    /// assert_eq!(x.matrix_rank(..)?.item::<i64>()?, 1);
    /// # Ok::<(), Error>(())
    /// ```
    matrix_rank (x; dim: Matrix or .., atol: Numbers = Numbers::default(), rtol: Numbers = Numbers::default(), hermitian: bool = false)
        on floats names removes constant => {
        let of = Matrices::of(x, dim)?.symmetric_if(hermitian)?;
        of.numbers(of.ranks(&of.singular_values()?, Tolerance { atol: &atol, rtol: &rtol })?)
    }
    /// The condition number `|x| |x⁻¹|` in a norm of matrices. For the norms 2 and -2, `x` need not be
    /// square; for the others, that of a singular matrix is infinite.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 0.0], [0.0, 4.0]])?;
    /// assert!((x.cond(..)?.item::<f64>()? - 4.0).abs() < 1e-5);
    /// # Ok::<(), Error>(())
    /// ```
    cond (x; dim: Matrix or .., p: MatrixNorm = MatrixNorm::Of(2.0)) on floats names removes => {
        let of = Matrices::of(x, dim)?;
        of.numbers(condition(&of, p)?)
    }
    /// A norm of matrices; see [`MatrixNorm`]. [`keep`](namegrad_core::keep) keeps the dims; `..` means the
    /// last two.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[3.0, 0.0], [0.0, -4.0]])?.refine_names(["row", "col"])?;
    /// assert_eq!(x.matrix_norm(["row", "col"])?.item::<f32>()?, 5.0);
    /// let nuclear = x.matrix_norm_with(["row", "col"], MatrixNormOptions::new().ord(MatrixNorm::Nuclear))?;
    /// assert!((nuclear.item::<f64>()? - 7.0).abs() < 1e-5);
    /// # Ok::<(), Error>(())
    /// ```
    matrix_norm (x; dim: Reduced or .., ord: MatrixNorm = MatrixNorm::Frobenius, dtype: Cast) on floats
        names removes => {
        let dims = match dim[..] {
            _ if dim.is_all() && x.ndim() >= 2 => [x.ndim() - 2, x.ndim() - 1],
            [rows, columns] => [rows, columns],
            ref dims => {
                let message = format!("expected the dims of the rows and of the columns, got {} dims", dims.len());
                return Err(fault(ErrorKind::Shape, message));
            }
        };
        let of = Matrices::of(x, dims)?;
        let y = of.numbers(norm(&of, ord)?)?;
        if !dim.keep {
            return Ok(y);
        }
        let [first, second] = [dims[0].min(dims[1]), dims[0].max(dims[1])];
        let y = y.unsqueeze(first as isize).unsqueeze(second as isize)?;
        named(y.rename(None)?, (0..x.ndim()).map(|dim| x.name(dim)).collect())
    }
}

/// A norm of matrices.
///
/// In calls by name, and as PyTorch's argument `ord`, they are `"fro"`, `"nuc"` and numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MatrixNorm {
    /// The root of the sum of the squares of all elements.
    Frobenius,
    /// The sum of the singular values.
    Nuclear,
    /// 2 and -2: the largest and the smallest singular value. 1 and -1: the largest and the smallest sum of the
    /// absolute values of a column. Infinity and its negative: those of a row. There is none for other numbers.
    Of(f64),
}

impl From<f64> for MatrixNorm {
    fn from(order: f64) -> MatrixNorm {
        MatrixNorm::Of(order)
    }
}

impl From<i32> for MatrixNorm {
    fn from(order: i32) -> MatrixNorm {
        MatrixNorm::Of(order.into())
    }
}

impl namegrad_core::args::Immediate for MatrixNorm {
    fn of_value(value: &Value) -> Option<MatrixNorm> {
        match value {
            Value::Text(text) if text == "fro" => Some(MatrixNorm::Frobenius),
            Value::Text(text) if text == "nuc" => Some(MatrixNorm::Nuclear),
            Value::Text(text) if text == "inf" => Some(MatrixNorm::Of(f64::INFINITY)),
            Value::Text(text) if text == "-inf" => Some(MatrixNorm::Of(f64::NEG_INFINITY)),
            Value::Int(order) => Some(MatrixNorm::Of(*order as f64)),
            Value::Float(order) => Some(MatrixNorm::Of(*order)),
            _ => None,
        }
    }
    fn accepts() -> String {
        "\"fro\", \"nuc\" or a number".into()
    }
}

/// Which singular values count as 0.
#[derive(Clone, Copy)]
struct Tolerance<'a> {
    atol: &'a Numbers,
    rtol: &'a Numbers,
}

impl Tolerance<'_> {
    /// The bounds for singular values `s`, of which there is at least one: `[.., 1]`.
    fn of(self, of: &Matrices, s: &Tensor) -> Result<Tensor> {
        let epsilon = if s.dtype() == DType::F64 { f64::EPSILON } else { f32::EPSILON.into() };
        let own = epsilon * of.sizes[0].max(of.sizes[1]) as f64;
        let atol = of.bounds("atol", self.atol, s)?;
        let rtol = match (of.bounds("rtol", self.rtol, s)?, &atol) {
            (Some(rtol), _) => rtol,
            (None, Some(atol)) => atol.gt(0)?.choose(atol.zeros_like()?, atol.full_like(own)?)?,
            (None, None) => s.new_full((), own)?,
        };
        let relative = s.amax(keep(-1)).mul(&rtol)?;
        atol.map_or(Ok(relative.clone()), |atol| relative.maximum(&atol))
    }
}

impl Matrices {
    /// The singular value decomposition.
    fn decomposed(&self, full: bool) -> Result<[Tensor; 3]> {
        self.check_finite()?;
        let (made, infos) = decomposition_with(&self.x, full)?;
        self.check(&infos, |_| "has singular values that the algorithm did not find".into())?;
        Ok(made)
    }

    fn singular_values(&self) -> Result<Tensor> {
        if self.x.is_followed() {
            let [_, s, _] = self.decomposed(false)?;
            return Ok(s);
        }
        self.check_finite()?;
        let (s, _, infos) = values::svd(self.x.value(), false, false)?;
        self.check(&infos, |_| "has singular values that the algorithm did not find".into())?;
        Ok(Tensor::constant(s))
    }

    /// The numbers of singular values `s` that do not count as 0.
    fn ranks(&self, s: &Tensor, tolerance: Tolerance<'_>) -> Result<Tensor> {
        match s.numel() {
            0 => TensorOptions::new().dtype(DType::I64).zeros(self.batch_sizes()),
            _ => s.gt(tolerance.of(self, s)?)?.sum(-1),
        }
    }

    /// A tolerance for each matrix, as a number or as `[.., 1]`, if there is one.
    fn bounds(&self, which: &str, given: &Numbers, s: &Tensor) -> Result<Option<Tensor>> {
        let batch = self.batch_sizes();
        Ok(match given {
            Numbers::One(number) => Some(s.new_full((), *number)?),
            Numbers::List(list) if list.is_empty() => None,
            Numbers::Tensors(tensors)
                if tensors.len() == 1 && Tensor::broadcast_shapes(&[tensors[0].sizes(), batch])? == batch =>
            {
                let x = tensors[0].detach().to(s.dtype())?;
                // The names must be those of the batch dims.
                x.add(self.numbers(s.new_zeros(batch)?)?)?;
                Some(x.rename(None)?.unsqueeze(-1)?)
            }
            _ => {
                let message = format!("`{which}` must be a number or a tensor that broadcasts to {batch:?}");
                return Err(fault(ErrorKind::Shape, message));
            }
        })
    }

    /// The symmetric matrices with these lower triangles, or the matrices as they are.
    fn symmetric_if(mut self, hermitian: bool) -> Result<Matrices> {
        if hermitian {
            let [m, n] = self.sizes;
            if m != n {
                let message = format!("expected square matrices, got {m} rows and {n} columns");
                return Err(fault(ErrorKind::Shape, message));
            }
            let lower = self.x.tril()?;
            let below = self.x.tril_with(TrilOptions::new().diagonal(-1))?;
            self.x = lower.add(below.mt()?)?;
        }
        Ok(self)
    }

    /// The pseudoinverse, from the decomposition.
    fn pseudoinverse(&self, parts: &[Tensor; 3], tolerance: Tolerance<'_>) -> Result<Tensor> {
        let x = &self.x;
        if x.numel() == 0 {
            return x.mt(); // without elements
        }
        let [u, s, vt] = parts.each_ref().map(Tensor::detach);
        let inverses = s.gt(tolerance.of(self, &s)?)?.choose(s.reciprocal()?, 0.0)?;
        let y = vt.mt().mul(inverses.unsqueeze(-2)?).matmul(u.mt()?)?.into_value();
        let (x_kept, y_kept) = (Kept::input(x), Kept::output(&y));
        let op = Op::new("pinv", y).input(x, move |g, cx| {
            let (x, y) = (x_kept.get(cx), y_kept.get(cx));
            let beside = |product: Tensor| {
                let n = product.sizes()[product.ndim() - 1];
                TensorOptions::new().dtype(product.dtype()).eye(n, n)?.sub(product)
            };
            let through = y.mt().matmul(g).matmul(y.mt()?)?;
            let left = beside(x.matmul(&y)?)?.matmul(&g.mt()?)?.matmul(&y)?.matmul(&y.mt()?)?;
            let right = y.mt().matmul(&y).matmul(g.mt()?).matmul(beside(y.matmul(&x)?)?)?;
            left.add(right)?.sub(through)
        });
        Ok(op.output())
    }
}

/// The decomposition of a tensor without names.
pub(crate) fn decomposition(x: &Tensor, full: bool) -> Result<[Tensor; 3]> {
    decomposition_with(x, full).map(|(made, _)| made)
}

fn decomposition_with(x: &Tensor, full: bool) -> Result<([Tensor; 3], Vec<i32>)> {
    let (s, vectors, infos) = values::svd(x.value(), true, full)?;
    let Some([u, vt]) = vectors else { unreachable!("they were wanted") };
    let kept = [Kept::output_at(0, &u), Kept::output_at(1, &s), Kept::output_at(2, &vt)];
    let made = Op::with_outputs("svd", vec![u, s, vt]).inputs(&[Some(x)], move |gs, cx| {
        let [u, s, vt] = [kept[0].get(cx), kept[1].get(cx), kept[2].get(cx)];
        let k = s.sizes()[s.ndim() - 1];
        let (u, vt) = (u.narrow(-1, 0, k)?, vt.narrow(-2, 0, k)?);
        let g_s = cx.output_gradient(1)?;
        if gs[0].is_none() && gs[2].is_none() {
            return Ok(vec![Some(u.mul(g_s.unsqueeze(-2)?).matmul(&vt)?)]);
        }
        let (g_u, g_vt) =
            (cx.output_gradient(0)?.narrow(-1, 0, k)?, cx.output_gradient(2)?.narrow(-2, 0, k)?);
        Ok(vec![Some(svd_gradient([&u, &s, &vt], [&g_u, &g_s, &g_vt])?)])
    });
    let Ok(made) = <[Tensor; 3]>::try_from(made) else { unreachable!("three outputs") };
    Ok((made, infos))
}

/// `u (skew(uᵀ g_u) / e s + s skew(vᵀ g_v) / e + diag(g_s)) vᵀ`, where `e` has the differences of the
/// squares of the singular values, and what `g_u` and `g_v` have beside the spaces of `u` and `v`, divided by
/// `s`.
fn svd_gradient([u, s, vt]: [&Tensor; 3], [g_u, g_s, g_vt]: [&Tensor; 3]) -> Result<Tensor> {
    let k = s.sizes()[s.ndim() - 1];
    let one = TensorOptions::new().dtype(s.dtype()).eye(k, k)?;
    let is_diagonal = one.eq(1.0)?;
    let squares = s.square()?;
    let gaps = squares.unsqueeze(-2).sub(squares.unsqueeze(-1)?).masked_fill(&is_diagonal, 1.0)?;
    let skew = |x: Tensor| x.sub(x.mt()?).div(&gaps);
    let (of_u, of_v) = (u.mt().matmul(g_u)?, vt.matmul(&g_vt.mt()?)?);
    let inner = skew(of_u.clone())?
        .mul(s.unsqueeze(-2)?)?
        .add(skew(of_v.clone())?.mul(s.unsqueeze(-1)?)?)?
        .add(one.mul(g_s.unsqueeze(-1)?)?)?;
    let mut y = u.matmul(&inner).matmul(vt)?;
    if u.sizes()[u.ndim() - 2] > k {
        let beside = g_u.sub(u.matmul(&of_u)?)?.div(s.unsqueeze(-2)?)?;
        y = y.add(beside.matmul(vt)?)?;
    }
    if vt.sizes()[vt.ndim() - 1] > k {
        let beside = g_vt.sub(of_v.mt().matmul(vt)?)?.div(s.unsqueeze(-1)?)?;
        y = y.add(u.matmul(&beside)?)?;
    }
    Ok(y)
}

fn least_squares(
    x: &Tensor,
    other: &Tensor,
    dims: [usize; 2],
    rcond: Option<f64>,
) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
    let of = Matrices::of(x, dims)?;
    let system = System::of(&of, other, of.names, false)?;
    system.check_rows(of.sizes[0])?;
    let rtol = rcond.map_or_else(Numbers::default, Numbers::One);
    let tolerance = Tolerance { atol: &Numbers::default(), rtol: &rtol };
    let parts = of.decomposed(false)?;
    let y = of.pseudoinverse(&parts, tolerance)?.matmul(&system.b)?;
    let [_, s, _] = parts;
    let rank = of.ranks(&s, tolerance)?;
    let [m, n] = of.sizes;
    let is_whole = m > n && values::numbers_or(rank.eq(n as i64)?.all(..)?.value(), true)?[0];
    let residuals = match is_whole {
        true => of.x.matmul(&y).sub(&system.b).square().sum(-2)?,
        false => y.reshape([-1]).narrow(0, 0, 0)?,
    };
    Ok((system.solution(y)?, residuals, of.numbers(rank)?, of.vectors(s, None)?))
}

fn norm(of: &Matrices, order: MatrixNorm) -> Result<Tensor> {
    let x = &of.x;
    // The largest of no numbers is 0, as norms are not negative.
    let extreme = |x: Tensor, largest: bool| match largest {
        true if x.sizes()[x.ndim() - 1] == 0 => x.sum(-1),
        true => x.amax(-1),
        false => x.amin(-1),
    };
    match order {
        MatrixNorm::Frobenius => x.norm([-2, -1]),
        MatrixNorm::Nuclear => of.singular_values()?.sum(-1),
        MatrixNorm::Of(order) => match order.abs() {
            2.0 => extreme(of.singular_values()?, order > 0.0),
            1.0 => extreme(x.abs().sum(-2)?, order > 0.0),
            f64::INFINITY => extreme(x.abs().sum(-1)?, order > 0.0),
            _ => {
                let message = format!(
                    "there is no matrix norm of order {order}: it is 1, 2, infinity, or one of their negatives"
                );
                Err(fault(ErrorKind::Value, message))
            }
        },
    }
}

fn condition(of: &Matrices, p: MatrixNorm) -> Result<Tensor> {
    let zeros = || TensorOptions::new().dtype(of.x.dtype()).zeros(of.batch_sizes());
    if let MatrixNorm::Of(order) = p
        && order.abs() == 2.0
    {
        let s = of.singular_values()?;
        if s.sizes()[s.ndim() - 1] == 0 {
            return zeros();
        }
        let (largest, smallest) = (s.amax(-1)?, s.amin(-1)?);
        return if order > 0.0 { largest.div(smallest) } else { smallest.div(largest) };
    }
    let [m, n] = of.sizes;
    if m != n {
        let message = format!("expected square matrices, got {m} rows and {n} columns");
        return Err(fault(ErrorKind::Shape, message));
    }
    if n == 0 {
        norm(&Matrices::of(&TensorOptions::new().dtype(of.x.dtype()).ones([1, 1])?, [0, 1])?, p)?;
        return zeros();
    }
    let (inverse, infos) = crate::solve::inverse(&of.x)?;
    let own = norm(of, p)?;
    let is_singular: Vec<bool> = infos.iter().map(|info| *info != 0).collect();
    let mask = Tensor::constant(NamedTensor::from_slice(&is_singular, of.batch_sizes())?);
    // What an elimination leaves of a singular matrix may be infinite.
    let inverse = inverse.masked_fill(&mask.unsqueeze(-1).unsqueeze(-1)?, 0.0)?;
    let last = inverse.ndim();
    let of_inverse = norm(&Matrices::of(&inverse, [last - 2, last - 1])?, p)?;
    own.mul(of_inverse)?.masked_fill(&mask, f64::INFINITY)
}
