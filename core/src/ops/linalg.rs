//! Matrix decompositions and systems of linear equations. The last two dims are the matrices; all dims before
//! them are batch dims.

use crate::args::{MatrixDims, Value};
use crate::cpu::linalg;
use crate::device::{compute, compute_in};
use crate::dtype::{DType, Element, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Sizes;
use crate::names::{Name, Names, rules};
use crate::shape::Shape;
use crate::sizes::broadcast;
use crate::tensor::NamedTensor;
use namegrad_macros::ops;

ops! { linalg;
    //! # Linear algebra
    /// The QR decomposition `x = q r` of matrices with `m` rows and `n` columns. `q` has `k = min(m, n)`
    /// orthonormal columns, and `r` is upper triangular with `k` rows. The signs are as in LAPACK. For the
    /// gradient, the first `k` columns of `x` must be linearly independent.
    ///
    /// `dim` is the dims of the rows and of the columns; `..` means the last two. With [`QrMode::Complete`],
    /// `q` is square; if it has more columns than `k`, they are not determined by `x`, and the gradient is an
    /// error. With [`QrMode::R`], `q` is empty.
    ///
    /// # Shapes
    /// - `x`: `[.., m, n]`
    /// - `q`: `[.., m, k]`, with the names of `x` except that of the columns; `r`: `[.., k, n]`, with the
    ///   names of `x` except that of the rows. The dim between them is called `name`.
    ///
    /// # Source
    /// Golub, Van Loan, *Matrix Computations* (4th edition, 2013), section 5.2; the gradient: Walter,
    /// Lehmann, *On Evaluating Higher-Order Derivatives of the QR Decomposition* (2010).
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[3.0, 1.0], [4.0, 2.0]])?.refine_names(["row", "col"])?;
    /// let (q, r) = x.qr(["row", "col"])?;
    /// assert_eq!(q.shape().to_string(), "[row=2, ?=2]");
    /// assert_eq!(r.shape().to_string(), "[?=2, col=2]");
    /// assert!(q.matmul(&r)?.allclose(&x)?);
    /// # Ok::<(), Error>(())
    /// ```
    qr (x; dim: Matrix or .., mode: QrMode = QrMode::Reduced, name: NewName = None) -> (q, r) on floats names removes;
    /// The solution `y` of `x y = other` for a triangular `x`, of which only the upper or lower triangle is
    /// read; if `left` is false, the solution of `y x = other`. With `unitriangular`, the diagonal of `x` is
    /// assumed to be 1. Batch dims broadcast.
    ///
    /// # Shapes
    /// - `x`: `[.., n, n]`
    /// - `other`: `[.., n, m]`, or `[.., m, n]` with `left` false
    /// - `dim`: the rows and the columns of `x`, by default the last two dims
    /// - result: like `other`, but the rows have the name of the columns of `x`, with which they are summed, or
    ///   with `left` false the columns that of the rows of `x`. If neither rows nor columns of `x` have a name,
    ///   the names are those of `other`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::core::Triangle;
    /// let x = Tensor::new([[2.0, 1.0], [0.0, 4.0]])?;
    /// let y = x.solve_triangular(&Tensor::new([[4.0], [8.0]])?, Triangle::Upper)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    solve_triangular (x, other; upper: Triangle, left: bool = true, unitriangular: bool = false, dim: MatrixDims = MatrixDims::LAST)
        on floats names contracts;
}

/// The parts of a QR decomposition that are computed. In a call by name it is PyTorch's word: `"reduced"`,
/// `"complete"` or `"r"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QrMode {
    /// As many columns of `q` as rows or columns of the matrix, whichever are fewer.
    Reduced,
    /// A square `q`, and an `r` of the sizes of the matrix.
    Complete,
    /// Only `r`, of which no gradient can be taken.
    R,
}

impl crate::args::Immediate for QrMode {
    fn of_value(value: &Value) -> Option<QrMode> {
        match value {
            Value::Text(mode) if mode == "reduced" => Some(QrMode::Reduced),
            Value::Text(mode) if mode == "complete" => Some(QrMode::Complete),
            Value::Text(mode) if mode == "r" => Some(QrMode::R),
            _ => None,
        }
    }
    fn accepts() -> String {
        "\"reduced\", \"complete\" or \"r\"".into()
    }
}

/// The triangle of a matrix that is read. In a call by name it is PyTorch's argument `upper`, true or false, or
/// `UPLO`, `"U"` or `"L"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// The diagonal and everything above it.
    Upper,
    /// The diagonal and everything below it.
    Lower,
}

impl Triangle {
    /// The same triangle of the transposed matrix.
    pub fn transposed(self) -> Triangle {
        match self {
            Triangle::Upper => Triangle::Lower,
            Triangle::Lower => Triangle::Upper,
        }
    }
}

impl crate::args::Immediate for Triangle {
    fn of_value(value: &Value) -> Option<Triangle> {
        match value {
            Value::Bool(upper) => Some(if *upper { Triangle::Upper } else { Triangle::Lower }),
            Value::Text(letter) if letter.eq_ignore_ascii_case("u") => Some(Triangle::Upper),
            Value::Text(letter) if letter.eq_ignore_ascii_case("l") => Some(Triangle::Lower),
            _ => None,
        }
    }
    fn accepts() -> String {
        "true or false".into()
    }
}

pub(crate) mod kernels {
    use super::*;

    #[track_caller]
    fn matrix(op: &'static str, x: &NamedTensor) -> Result<[usize; 2]> {
        x.check_float(op)?;
        match *x.sizes() {
            [.., rows, cols] => Ok([rows, cols]),
            _ => {
                let message = format!("expected a matrix or a batch of them, got {} dims", x.ndim());
                Err(Error::about(&[x], ErrorKind::Shape, op, message))
            }
        }
    }

    #[track_caller]
    pub(crate) fn qr(
        x: &NamedTensor,
        dims: [usize; 2],
        mode: QrMode,
        name: Option<Name>,
    ) -> Result<(NamedTensor, NamedTensor)> {
        const OP: &str = "qr";
        x.check_float(OP)?;
        let last = [x.ndim() - 2, x.ndim() - 1];
        if dims != last {
            let moved = x.movedim(dims.to_vec(), last.to_vec())?;
            let (q, r) = qr(&moved, last, mode, name)?;
            let back = |y: NamedTensor| y.movedim(last.to_vec(), dims.to_vec());
            return Ok((if mode == QrMode::R { q } else { back(q)? }, back(r)?));
        }
        let [m, n] = matrix(OP, x)?;
        let (k, batch) = (m.min(n), x.ndim() - 2);
        let columns = if mode == QrMode::Complete { m } else { k };
        let shape = |rows: usize, cols: usize, names: [Option<_>; 2]| {
            let outer = (0..batch).map(|dim| (x.sizes()[dim], x.name(dim)));
            let (sizes, names): (Sizes, Vec<_>) = outer.chain([(rows, names[0]), (cols, names[1])]).unzip();
            Names::new(OP, names).map(|names| Shape { sizes, names })
        };
        let of_q = match mode {
            QrMode::R => Shape::new([(None, 0)]),
            _ => shape(m, columns, [x.name(batch), name]),
        };
        let shapes = [of_q, shape(columns, n, [name, x.name(batch + 1)])];
        let [q_shape, r_shape] = shapes.map(|shape| shape.map_err(|error| error.with_operands([x.shape()])));
        let (q_shape, r_shape) = (q_shape?, r_shape?);
        let mut copy = x.widened()?.deep_clone()?;
        let dtype = copy.dtype();
        let mut q = NamedTensor::filled(OP, q_shape, dtype, 0.into())?;
        let mut r = NamedTensor::filled(OP, r_shape, dtype, 0.into())?;
        if copy.numel() > 0 {
            let sizes = [m, n];
            compute(|| match dtype {
                DType::F64 => decompose::<f64>(&mut copy, sizes, columns, &mut q, &mut r),
                _ => decompose::<f32>(&mut copy, sizes, columns, &mut q, &mut r),
            })?;
        } else if mode == QrMode::Complete {
            let identity = NamedTensor::eye(m, m, dtype)?.expand(q.sizes())?.contiguous()?.deep_clone()?;
            q = identity.with_names(q.names().clone());
        }
        Ok((q.into_dtype(x.dtype())?, r.into_dtype(x.dtype())?))
    }

    /// Decomposes all matrices of `x` into `q` and `r`.
    #[track_caller]
    fn decompose<T: Element + linalg::Number>(
        x: &mut NamedTensor,
        sizes: [usize; 2],
        columns: usize,
        q: &mut NamedTensor,
        r: &mut NamedTensor,
    ) -> Result<()> {
        linalg::each_qr::<T>(x.as_mut_slice()?, sizes, columns, q.as_mut_slice()?, r.as_mut_slice()?);
        Ok(())
    }

    #[track_caller]
    pub(crate) fn solve_triangular(
        x: &NamedTensor,
        other: &NamedTensor,
        upper: Triangle,
        left: bool,
        unitriangular: bool,
        dim: [usize; 2],
    ) -> Result<NamedTensor> {
        const OP: &str = "solve_triangular";
        let last = [x.ndim() - 2, x.ndim() - 1];
        if dim != last {
            let x = &x.movedim(dim.to_vec(), last.to_vec())?;
            return solve_triangular(x, other, upper, left, unitriangular, last);
        }
        let both = |error: Error| error.with_inputs(&[x, other]);
        let ([rows, n], [m, cols]) = (matrix(OP, x).map_err(both)?, matrix(OP, other).map_err(both)?);
        if x.dtype() != other.dtype() {
            let message =
                format!("expected two tensors of one dtype, got {} and {}", x.dtype(), other.dtype());
            return Err(Error::about(&[x, other], ErrorKind::DType, OP, message)
                .with_repair(format!("other.to(DType::{:?})?", x.dtype())));
        }
        if rows != n || n != if left { m } else { cols } {
            let message = match rows == n {
                true => format!("a triangle of {rows} by {n} does not fit {m} by {cols}"),
                false => format!("the triangle must be a square matrix, got {rows} by {n}"),
            };
            return Err(Error::about(&[x, other], ErrorKind::Shape, OP, message));
        }
        if !left {
            // `y x = other` is `xᵀ yᵀ = otherᵀ`.
            return solve_triangular(&x.mt()?, &other.mt()?, upper.transposed(), true, unitriangular, dim)?
                .mt();
        }
        // The rows of `other` belong to those of the triangle, and the rows of the solution to its columns.
        rules::contracted(OP, ["x", "other"], [x.input(), other.input()], [x.ndim() - 2, other.ndim() - 2])?;
        let both = [x.input(), other.input()];
        for k in 3..=x.ndim().min(other.ndim()) {
            rules::matched(OP, ["x", "other"], both, [x.ndim() - k, other.ndim() - k])?;
        }
        let batch = broadcast(OP, &x.sizes()[..x.ndim() - 2], &other.sizes()[..other.ndim() - 2])
            .map_err(|error| error.with_operands([x.shape(), other.shape()]))?;
        let sized =
            |rows: usize, cols: usize| crate::list::<_, Sizes>(batch.iter().copied().chain([rows, cols]));
        let a = x.widened()?.unnamed().expand(sized(n, n))?.contiguous()?;
        let mut spread = other.expand(sized(m, cols))?;
        let [of_rows, of_columns] = [x.ndim() - 2, x.ndim() - 1].map(|dim| x.name(dim));
        if of_rows.is_some() || of_columns.is_some() {
            let mut names = spread.names().to_vec(spread.ndim());
            names[spread.ndim() - 2] = of_columns;
            let names = Names::new(OP, names).map_err(|error| error.with_inputs(&[x, other]))?;
            spread = spread.with_names(names);
        }
        let mut y = spread.widened()?.deep_clone()?;
        if n * cols > 0 {
            let upper = upper == Triangle::Upper;
            compute_in(&mut y, |y| {
                dispatch!(a.dtype(), float T => {
                    linalg::each_solve::<T>(a.elements()?, n, upper, unitriangular, y.as_mut_slice()?, cols);
                    Ok(())
                }, else unreachable!("checked to be floats"))
            })?;
        }
        y.into_dtype(x.dtype())
    }
}
