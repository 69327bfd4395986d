//! Transforms of vectors and matrices, and transforms that are made of others.

use crate::common::*;
use crate::transform::Transform;

/// The position of a dim of a tensor.
#[track_caller]
fn place_of(op: &'static str, x: &Tensor, dim: &Dim) -> Result<usize> {
    dim.look_up(op, &[x.value()])
}

/// Shares along a dim, `y = softmax(x)`; the inverse is `log y`, one of many.
///
/// ```
/// use namegrad::distributions::{SoftmaxTransform, Transform};
/// use namegrad::prelude::*;
/// let x = Tensor::zeros([("class", 2), ("N", 3)])?;
/// let y = SoftmaxTransform::new("class").forward(&x)?;
/// assert_eq!(y.sum("class")?.to_vec::<f32>()?, [1.0; 3]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SoftmaxTransform {
    dim: Dim,
}

impl SoftmaxTransform {
    /// Shares along `dim`.
    pub fn new(dim: impl Into<Dim>) -> SoftmaxTransform {
        SoftmaxTransform { dim: dim.into() }
    }
}

impl Transform for SoftmaxTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.softmax(self.dim.clone())
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        y.log()
    }
    fn log_abs_det_jacobian(&self, _x: &Tensor, _y: &Tensor) -> Result<Tensor> {
        let message = "many vectors have the same softmax, so that it has no Jacobian with an inverse";
        Err(Error::new(ErrorKind::Unsupported, "log_abs_det_jacobian", message)
            .with_repair("StickBreakingTransform, for shares that have one"))
    }
    fn event_dims(&self) -> Vec<Dim> {
        vec![self.dim.clone()]
    }
    fn codomain(&self) -> Support {
        Support::Simplex
    }
}

/// Shares along a dim that are broken off a stick, one after the other: one share more than numbers.
///
/// ```
/// use namegrad::distributions::{StickBreakingTransform, Transform};
/// use namegrad::prelude::*;
/// let x = Tensor::zeros([("N", 3), ("class", 2)])?;
/// let stick = StickBreakingTransform::new("class");
/// let y = stick.forward(&x)?;
/// assert_eq!(y.shape().to_string(), "[N=3, class=3]");
/// assert!(stick.inverse(&y)?.allclose_with(&x, IscloseOptions::new().atol(1e-6))?);
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Stan Development Team, *Stan Reference Manual* (2024), section 10.7.
#[derive(Clone, Debug)]
pub struct StickBreakingTransform {
    dim: Dim,
}

impl StickBreakingTransform {
    /// Shares along `dim`.
    pub fn new(dim: impl Into<Dim>) -> StickBreakingTransform {
        StickBreakingTransform { dim: dim.into() }
    }

    /// `log k` for the `k` pieces that are left before each piece is broken off, over `n` pieces along the
    /// last dim.
    #[track_caller]
    fn offsets(n: usize, x: &Tensor) -> Result<Tensor> {
        TensorOptions::new().dtype(x.dtype()).arange(n as f64, 0.0, -1.0)?.log()
    }

    /// The dim at the end, and where it was.
    #[track_caller]
    fn last(&self, op: &'static str, x: &Tensor) -> Result<(Tensor, usize)> {
        let place = place_of(op, x, &self.dim)?;
        Ok((moved_last(x, &[place])?, place))
    }

    /// What is left of the stick, in logarithms: 0 before the first piece.
    #[track_caller]
    fn left(z: &Tensor) -> Result<Tensor> {
        // log(1 - σ(z)) of all pieces before
        let each = z.neg().logsigmoid()?;
        each.cumsum(-1)?.sub(&each)
    }
}

impl Transform for StickBreakingTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (x, place) = self.last("StickBreakingTransform", x)?;
        let n = x.sizes()[x.ndim() - 1];
        let z = x.sub(StickBreakingTransform::offsets(n, &x)?)?;
        let pieces = z.logsigmoid()?.add(StickBreakingTransform::left(&z)?)?;
        let rest = z.neg().logsigmoid()?.sum(keep(-1))?;
        Tensor::cat(&[&pieces, &rest], -1)?.exp().movedim(-1, place)
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        let (y, place) = self.last("StickBreakingTransform", y)?;
        let n = y.sizes()[y.ndim() - 1] - 1;
        let pieces = y.narrow(-1, 0, n)?;
        // what is left after each piece, as the sum of the pieces behind it
        let left = y.flip(-1)?.cumsum(-1)?.narrow(-1, 0, n)?.flip(-1)?;
        pieces.log()?.sub(left.log()?)?.add(StickBreakingTransform::offsets(n, &y)?)?.movedim(-1, place)
    }
    fn log_abs_det_jacobian(&self, x: &Tensor, _y: &Tensor) -> Result<Tensor> {
        let (x, _) = self.last("StickBreakingTransform", x)?;
        let n = x.sizes()[x.ndim() - 1];
        let z = x.sub(StickBreakingTransform::offsets(n, &x)?)?;
        z.logsigmoid()?.add(z.neg().logsigmoid()?)?.add(StickBreakingTransform::left(&z)?)?.sum(-1)
    }
    fn event_dims(&self) -> Vec<Dim> {
        vec![self.dim.clone()]
    }
    fn codomain(&self) -> Support {
        Support::Simplex
    }
}

/// A lower triangular matrix with a positive diagonal: the triangle below the diagonal of `x`, and `e` to its
/// diagonal.
///
/// ```
/// use namegrad::distributions::{LowerCholeskyTransform, Transform};
/// use namegrad::prelude::*;
/// let y = LowerCholeskyTransform::new(["row", "col"]).forward(&Tensor::zeros([("row", 2), ("col", 2)])?)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LowerCholeskyTransform {
    dims: [Dim; 2],
}

impl LowerCholeskyTransform {
    /// Matrices whose rows and columns are `dims`.
    pub fn new(dims: [impl Into<Dim>; 2]) -> LowerCholeskyTransform {
        LowerCholeskyTransform { dims: dims.map(Into::into) }
    }

    /// The matrices at the end.
    #[track_caller]
    fn last(&self, x: &Tensor) -> Result<Tensor> {
        let [rows, columns] = &self.dims;
        let op = "LowerCholeskyTransform";
        moved_last(x, &[place_of(op, x, rows)?, place_of(op, x, columns)?])
    }

    /// The matrix with a function of its diagonal, with matrices at the end.
    #[track_caller]
    fn with_diagonal(&self, x: &Tensor, f: fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let x = self.last(x)?;
        let (bare, names) = (x.rename(None)?, x.names().clone());
        let diagonal = f(&bare.diagonal(-2, -1)?)?.diag_embed()?;
        renamed(&bare.tril_with(TrilOptions::new().diagonal(-1))?.add(diagonal)?, &names)
    }
}

impl Transform for LowerCholeskyTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.with_diagonal(x, |diagonal| diagonal.exp())
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        self.with_diagonal(y, |diagonal| diagonal.log())
    }
    fn log_abs_det_jacobian(&self, x: &Tensor, _y: &Tensor) -> Result<Tensor> {
        self.last(x)?.diagonal(-2, -1).sum(-1)
    }
    fn event_dims(&self) -> Vec<Dim> {
        self.dims.to_vec()
    }
    fn codomain(&self) -> Support {
        Support::LowerCholesky
    }
}

/// The factor of a correlation matrix, a lower triangular matrix with rows of length 1, of a vector of its
/// `n (n - 1) / 2` partial correlations in `tanh⁻¹`.
///
/// ```
/// use namegrad::distributions::{CorrCholeskyTransform, Transform};
/// use namegrad::prelude::*;
/// let factor = CorrCholeskyTransform::new("pair", ["row", "col"]);
/// let y = factor.forward(&Tensor::zeros([("pair", 3)])?)?;
/// assert_eq!(y.shape().to_string(), "[row=3, col=3]");
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Stan Development Team, *Stan Reference Manual* (2024), section 10.12.
#[derive(Clone, Debug)]
pub struct CorrCholeskyTransform {
    dim: Dim,
    dims: [Dim; 2],
}

impl CorrCholeskyTransform {
    /// The factors of the vectors along `dim`, as matrices over two new dims `dims`: names, or `[-2, -1]`.
    pub fn new(dim: impl Into<Dim>, dims: [impl Into<Dim>; 2]) -> CorrCholeskyTransform {
        CorrCholeskyTransform { dim: dim.into(), dims: dims.map(Into::into) }
    }

    fn names(&self) -> [Option<Name>; 2] {
        self.dims.clone().map(|dim| match dim {
            Dim::Name(name) => Some(name),
            Dim::Unknown(text) => Name::new(&text).ok(),
            Dim::Index(_) => None,
        })
    }

    /// The vectors at the end, without names, and the names of the other dims.
    #[track_caller]
    fn vectors(&self, x: &Tensor) -> Result<(Tensor, Vec<Option<Name>>)> {
        let x = moved_last(x, &[place_of("CorrCholeskyTransform", x, &self.dim)?])?;
        let names = (0..x.ndim() - 1).map(|dim| x.name(dim)).collect();
        Ok((x.rename(None)?, names))
    }

    /// The flat positions below the diagonal of a matrix of `n` rows.
    #[track_caller]
    fn below(n: usize) -> Result<Tensor> {
        let places: Vec<i64> = (0..n).flat_map(|i| (0..i).map(move |j| (i * n + j) as i64)).collect();
        Tensor::from_slice(&places, [places.len()])
    }
}

impl Transform for CorrCholeskyTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (x, mut names) = self.vectors(x)?;
        let pairs = x.sizes()[x.ndim() - 1];
        let n = (0.5 + (0.25 + 2.0 * pairs as f64).sqrt()).round() as usize;
        if n * (n - 1) / 2 != pairs {
            let message = format!("{pairs} is not the number of pairs of anything: 1, 3, 6, 10, ..");
            return Err(Error::new(ErrorKind::Shape, "CorrCholeskyTransform", message));
        }
        let mut sizes = x.sizes().to_vec();
        *sizes.last_mut().expect("a dim of pairs") = n * n;
        let flat = TensorOptions::new().dtype(x.dtype()).zeros(&sizes)?;
        let flat = flat.index_copy(&CorrCholeskyTransform::below(n)?, &x.tanh()?, -1)?;
        sizes.pop();
        sizes.extend([n, n]);
        let partial = flat.reshape(sizes)?; // zeros on the diagonal
        // what is left of the length of a row before each column: √(1 - r²) of all columns before
        let logs = partial.square().neg().log1p().mul(0.5)?;
        let left = logs.cumsum(-1)?.sub(&logs)?.exp()?;
        let eye = TensorOptions::new().dtype(partial.dtype()).eye(n, n)?;
        let y = partial.add(eye)?.mul(left)?.tril()?;
        names.extend(self.names());
        renamed(&y, &Names::new("CorrCholeskyTransform", names)?)
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        let op = "CorrCholeskyTransform";
        let places = [place_of(op, y, &self.dims[0])?, place_of(op, y, &self.dims[1])?];
        let y = moved_last(y, &places)?;
        let mut names: Vec<Option<Name>> = (0..y.ndim() - 2).map(|dim| y.name(dim)).collect();
        let y = y.rename(None)?;
        let n = y.sizes()[y.ndim() - 1];
        // the square of the length that is left before each column
        let squares = y.square()?;
        let left = squares.cumsum(-1)?.sub(&squares)?.neg().add(1.0)?;
        let mut sizes = y.sizes().to_vec();
        sizes.truncate(sizes.len() - 2);
        sizes.push(n * n);
        let partial = y.reshape(&sizes)?.index_select(&CorrCholeskyTransform::below(n)?, -1)?;
        let left = left.reshape(&sizes)?.index_select(&CorrCholeskyTransform::below(n)?, -1)?;
        names.push(if let Dim::Name(name) = self.dim { Some(name) } else { None });
        renamed(&partial.div(left.sqrt()?).atanh()?, &Names::new(op, names)?)
    }
    fn log_abs_det_jacobian(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let (x, names) = self.vectors(x)?;
        let y = y.rename(None)?;
        // how much length is left after each column below the diagonal, but the last of a row
        let squares = y.square()?;
        let left = squares.cumsum(-1)?.neg().add(1.0)?;
        let n = y.sizes()[y.ndim() - 1];
        let mut sizes = y.sizes().to_vec();
        sizes.truncate(sizes.len() - 2);
        sizes.push(n * n);
        let places: Vec<i64> =
            (0..n).flat_map(|i| (0..i.saturating_sub(1)).map(move |j| (i * n + j) as i64)).collect();
        let inner = left.reshape(&sizes)?.index_select(&Tensor::from_slice(&places, [places.len()])?, -1)?;
        let of_lengths = inner.log().mul(0.5).sum(-1)?;
        let of_tanh = x.mul(-2.0)?.neg().logsigmoid().neg().add(&x).sub(LN_2).mul(-2.0).sum(-1)?;
        renamed(&of_lengths.add(of_tanh)?, &Names::new("log_abs_det_jacobian", names)?)
    }
    fn event_dims(&self) -> Vec<Dim> {
        vec![self.dim.clone()]
    }
    fn new_event_dims(&self) -> isize {
        1
    }
    fn made_dims(&self) -> Vec<Dim> {
        self.dims.to_vec()
    }
    fn codomain(&self) -> Support {
        Support::CorrCholesky
    }
}
