//! Normal distributions of vectors, and Wishart's distribution of their covariances.

use crate::common::*;
use crate::frame::concatenated;
use crate::matrix::{
    cholesky, factor_of_inverse, half_log_det, identity_for, inverse_of_factor, mahalanobis, solve_lower,
    square_norm, times_vector,
};
use crate::parameters::event_dim;

/// The normal distribution of vectors, with density
/// `exp(-½ (x - μ)ᵀ Σ⁻¹ (x - μ)) / √((2π)^n det Σ)`.
///
/// The covariance `Σ` is given as such, as its inverse, or as its lower triangular factor `L`,
/// `Σ = L Lᵀ`, which is the fastest. A matrix has two dims: its rows are the event dim, by the same name
/// as in `loc`, and its columns have another name.
///
/// ```
/// use namegrad::distributions::MultivariateNormal;
/// use namegrad::prelude::*;
/// let loc = Tensor::zeros([("N", 5), ("coord", 2)])?;
/// let covariance = Tensor::new([[2.0, 1.0], [1.0, 2.0]])?.refine_names(["coord", "other"])?;
/// let x = MultivariateNormal::new(&loc, &covariance, ["coord", "other"])?;
/// assert_eq!(x.batch_shape().to_string(), "[N=5]");
/// assert_eq!(x.event_shape().to_string(), "[coord=2]");
/// assert_eq!(x.log_prob(&x.sample([("draw", 3)])?)?.shape().to_string(), "[draw=3, N=5]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MultivariateNormal {
    /// The mean `μ`, with the event dim at the end.
    pub loc: Tensor,
    /// The factor `L`, without names.
    pub(crate) factor: Tensor,
    /// What was given, without names, if it is not the factor.
    given: Option<(Form, Tensor)>,
    columns: Option<Name>,
    frame: Frame,
}

/// What a matrix says of the covariance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Covariance,
    Precision,
    ScaleTril,
}

impl Form {
    fn parameter(self) -> &'static str {
        match self {
            Form::Covariance => "covariance_matrix",
            Form::Precision => "precision_matrix",
            Form::ScaleTril => "scale_tril",
        }
    }

    /// The factor of the covariance.
    #[track_caller]
    fn factor(self, x: &Tensor) -> Result<Tensor> {
        match self {
            Form::Covariance => cholesky(x),
            Form::Precision => factor_of_inverse(x),
            Form::ScaleTril => Ok(x.clone()),
        }
    }

    fn support(self) -> Support {
        if self == Form::ScaleTril { Support::LowerCholesky } else { Support::PositiveDefinite }
    }
}

/// A matrix with its rows and columns at the end.
#[track_caller]
fn matrix_of(name: &'static str, parameter: &str, x: &Tensor, dims: &[Dim; 2]) -> Result<Tensor> {
    if x.ndim() < 2 {
        let message =
            format!("{parameter} must be a matrix or a batch of them, but it has {} dims", x.ndim());
        return Err(Error::new(ErrorKind::Shape, name, message).with_operands([x.shape()]));
    }
    let (rows, columns) =
        (event_dim(name, parameter, x, &dims[0])?, event_dim(name, parameter, x, &dims[1])?);
    if rows == columns {
        let message = format!("the rows and the columns of {parameter} must be two dims");
        return Err(Error::new(ErrorKind::DimRange, name, message).with_operands([x.shape()]));
    }
    moved_last(x, &[rows, columns])
}

/// The dim of `loc` that is the event: of the name of the rows, or the last.
fn of_loc(rows: &Dim) -> Dim {
    if matches!(rows, Dim::Index(_)) { Dim::Index(-1) } else { rows.clone() }
}

/// An error for vectors without coordinates.
#[track_caller]
fn check_coordinates(name: &'static str, parameter: &str, n: usize) -> Result<()> {
    if n > 0 {
        return Ok(());
    }
    let message = format!("there are no coordinates: {parameter} has no elements along their dim");
    Err(Error::new(ErrorKind::Value, name, message))
}

/// An error unless the matrix has as many rows as `loc` has coordinates.
#[track_caller]
fn check_rows(
    name: &'static str,
    parameter: &str,
    loc: &Tensor,
    matrix: &Tensor,
    is_square: bool,
) -> Result<()> {
    let (n, rows) = (loc.sizes()[loc.ndim() - 1], matrix.sizes()[matrix.ndim() - 2]);
    let columns = matrix.sizes()[matrix.ndim() - 1];
    check_coordinates(name, "loc", n)?;
    if rows == n && (columns == n || !is_square) {
        return Ok(());
    }
    let wanted = if is_square { format!("{n} by {n}") } else { format!("of {n} rows") };
    let message = format!(
        "{parameter} must be a matrix {wanted}, as loc has {n} elements, but it is {rows} by {columns}"
    );
    Err(Error::new(ErrorKind::Shape, name, message).with_operands([loc.shape(), matrix.shape()]))
}

impl MultivariateNormal {
    /// The distribution with mean `loc` and covariance `covariance_matrix`, whose rows and columns are
    /// `dims`: two names, of which the first is that of the event dim in `loc`, or for dims without names
    /// `[-2, -1]`, where the event dim of `loc` is the last.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless the matrix is symmetric and positive definite, [`ErrorKind::Shape`] unless
    /// it has the size of `loc`, [`ErrorKind::NameNotFound`] and [`ErrorKind::DimRange`] if a dim is missing,
    /// [`ErrorKind::DType`] unless floating-point, the errors of broadcasting.
    #[track_caller]
    pub fn new(
        loc: impl Operand,
        covariance_matrix: impl Operand,
        dims: [impl Into<Dim>; 2],
    ) -> Result<MultivariateNormal> {
        MultivariateNormal::of(&loc, &covariance_matrix, &dims.map(Into::into), Form::Covariance)
    }

    /// The distribution with mean `loc`, whose covariance is the inverse of `precision_matrix`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[track_caller]
    pub fn from_precision(
        loc: impl Operand,
        precision_matrix: impl Operand,
        dims: [impl Into<Dim>; 2],
    ) -> Result<MultivariateNormal> {
        MultivariateNormal::of(&loc, &precision_matrix, &dims.map(Into::into), Form::Precision)
    }

    /// The distribution with mean `loc` and covariance `L Lᵀ`, where `L` is `scale_tril`.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`ErrorKind::Value`] unless the matrix is lower triangular with a positive
    /// diagonal.
    #[track_caller]
    pub fn from_scale_tril(
        loc: impl Operand,
        scale_tril: impl Operand,
        dims: [impl Into<Dim>; 2],
    ) -> Result<MultivariateNormal> {
        MultivariateNormal::of(&loc, &scale_tril, &dims.map(Into::into), Form::ScaleTril)
    }

    #[track_caller]
    fn of(
        loc: &dyn Operand,
        matrix: &dyn Operand,
        dims: &[Dim; 2],
        form: Form,
    ) -> Result<MultivariateNormal> {
        const NAME: &str = "MultivariateNormal";
        let parameter = form.parameter();
        let mut given = floats(NAME, &[("loc", loc), (parameter, matrix)])?;
        let matrix = matrix_of(NAME, parameter, &given.remove(1), dims)?;
        let loc = with_events(NAME, "loc", &given[0], &of_loc(&dims[0]))?;
        check(NAME, "loc", &Support::Real, &loc)?;
        check_rows(NAME, parameter, &loc, &matrix, true)?;
        check(NAME, parameter, &form.support(), &matrix)?;
        // the batch dims of both, found by the rule of elementwise ops
        let rows = matrix.select(-1, 0)?;
        let spread = unified(NAME, &["loc", parameter], &[&loc, &rows])?;
        let loc = spread.into_iter().next().expect("two tensors were given");
        let mut sizes = loc.sizes().to_vec();
        sizes.push(*sizes.last().expect("an event dim"));
        let columns = matrix.name(matrix.ndim() - 1);
        let matrix = matrix.rename(None)?.expand(sizes)?;
        let factor = form.factor(&matrix)?;
        let given = (form != Form::ScaleTril).then_some((form, matrix));
        Ok(MultivariateNormal { frame: Frame::of_events(NAME, &loc, 1), loc, factor, given, columns })
    }

    /// A matrix with the names of the batch, the event dim and the columns.
    #[track_caller]
    fn named(&self, x: &Tensor) -> Result<Tensor> {
        named_matrix(x, &self.loc, self.columns)
    }

    /// The covariance `Σ`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn covariance_matrix(&self) -> Result<Tensor> {
        match &self.given {
            Some((Form::Covariance, x)) => self.named(x),
            _ => self.named(&self.factor.matmul(&self.factor.mt()?)?),
        }
    }

    /// The inverse of the covariance.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn precision_matrix(&self) -> Result<Tensor> {
        match &self.given {
            Some((Form::Precision, x)) => self.named(x),
            _ => self.named(&inverse_of_factor(&self.factor)?),
        }
    }

    /// The lower triangular factor `L` of the covariance.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn scale_tril(&self) -> Result<Tensor> {
        self.named(&self.factor)
    }

    /// The mean without names.
    #[track_caller]
    pub(crate) fn bare_loc(&self) -> Result<Tensor> {
        self.loc.rename(None)
    }
}

/// A matrix without names as one over the dims of `loc` and columns.
#[track_caller]
fn named_matrix(x: &Tensor, loc: &Tensor, columns: Option<Name>) -> Result<Tensor> {
    let names = loc.names().iter(loc.ndim()).chain([columns]);
    renamed(x, &Names::new("matrix", names)?)
}

/// `x - loc` without names, and the names of its dims beside the event dim.
#[track_caller]
fn difference(x: &Tensor, loc: &Tensor) -> Result<(Tensor, Names)> {
    let d = x.sub(loc)?;
    let names = Names::new("log_prob", (0..d.ndim() - 1).map(|dim| d.name(dim)))?;
    Ok((d.rename(None)?, names))
}

impl Distribution for MultivariateNormal {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Real
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let (d, names) = difference(x, &self.loc)?;
        let n = d.sizes()[d.ndim() - 1] as f64;
        let square = mahalanobis(&self.factor, &d)?.add(n * TAU.ln()).mul(-0.5)?;
        renamed(&square.sub(half_log_det(&self.factor)?)?, &names)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let z = random::normal(shape, self.frame.dtype())?.rename(None)?;
        let drawn = times_vector(&self.factor, &z)?.add(self.bare_loc()?)?;
        renamed(&drawn, &shape.names)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn mean(&self) -> Result<Tensor> {
        Ok(self.loc.clone())
    }
    fn mode(&self) -> Result<Tensor> {
        Ok(self.loc.clone())
    }
    fn variance(&self) -> Result<Tensor> {
        renamed(&self.factor.square().sum(-1)?, self.loc.names())
    }
    fn entropy(&self) -> Result<Tensor> {
        let n = self.loc.sizes()[self.loc.ndim() - 1] as f64;
        let entropy = half_log_det(&self.factor)?.add(0.5 * n * (1.0 + TAU.ln()))?;
        renamed(&entropy, &self.frame.batch().names)
    }
}

/// The normal distribution of vectors whose covariance is `W Wᵀ + D`, with a matrix `W` of few columns and
/// a diagonal `D`. Its density takes the time of the few columns.
///
/// ```
/// use namegrad::distributions::LowRankMultivariateNormal;
/// use namegrad::prelude::*;
/// let loc = Tensor::zeros([("coord", 3)])?;
/// let (factor, diag) = (Tensor::ones([("coord", 3), ("rank", 1)])?, Tensor::ones([("coord", 3)])?);
/// let x = LowRankMultivariateNormal::new(&loc, &factor, &diag, ["coord", "rank"])?;
/// assert_eq!(x.variance()?.to_vec::<f32>()?, [2.0, 2.0, 2.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// The identities of Woodbury and of Sylvester: Petersen, Pedersen, *The Matrix Cookbook* (2012), equations
/// 156 and 24.
#[derive(Clone, Debug)]
pub struct LowRankMultivariateNormal {
    /// The mean, with the event dim at the end.
    pub loc: Tensor,
    /// `W`, without names.
    pub(crate) factor: Tensor,
    /// `D`, without names.
    pub(crate) diag: Tensor,
    /// The factor of `I + Wᵀ D⁻¹ W`.
    pub(crate) capacitance: Tensor,
    rank: Option<Name>,
    frame: Frame,
}

impl LowRankMultivariateNormal {
    /// The distribution with mean `loc`, `W = cov_factor` and `D = cov_diag`. `dims` are the rows and the
    /// columns of `cov_factor`: two names, of which the first is that of the event dim in the other two, or
    /// `[-2, -1]` for dims without names.
    ///
    /// # Errors
    /// As [`MultivariateNormal::new`]; [`ErrorKind::Value`] unless `cov_diag` is positive.
    #[track_caller]
    pub fn new(
        loc: impl Operand,
        cov_factor: impl Operand,
        cov_diag: impl Operand,
        dims: [impl Into<Dim>; 2],
    ) -> Result<LowRankMultivariateNormal> {
        LowRankMultivariateNormal::of(&loc, &cov_factor, &cov_diag, &dims.map(Into::into))
    }

    #[track_caller]
    fn of(
        loc: &dyn Operand,
        factor: &dyn Operand,
        diag: &dyn Operand,
        dims: &[Dim; 2],
    ) -> Result<LowRankMultivariateNormal> {
        const NAME: &str = "LowRankMultivariateNormal";
        let given = floats(NAME, &[("loc", loc), ("cov_factor", factor), ("cov_diag", diag)])?;
        let factor = matrix_of(NAME, "cov_factor", &given[1], dims)?;
        let loc = with_events(NAME, "loc", &given[0], &of_loc(&dims[0]))?;
        let diag = with_events(NAME, "cov_diag", &given[2], &of_loc(&dims[0]))?;
        check(NAME, "loc", &Support::Real, &loc)?;
        check(NAME, "cov_factor", &Support::Real, &factor)?;
        check(NAME, "cov_diag", &Support::Positive, &diag)?;
        check_rows(NAME, "cov_factor", &loc, &factor, false)?;
        let rank = factor.name(factor.ndim() - 1);
        let columns = factor.sizes()[factor.ndim() - 1];
        let parts = [&loc, &factor.sum(-1)?, &diag];
        let spread = unified(NAME, &["loc", "cov_factor", "cov_diag"], &parts)?;
        let (loc, diag) = (spread[0].clone(), spread[2].rename(None)?);
        let mut sizes = loc.sizes().to_vec();
        sizes.push(columns);
        let factor = factor.rename(None)?.expand(sizes)?;
        let inner = factor.mt()?.matmul(&factor.div(diag.unsqueeze(-1)?)?)?;
        let capacitance = cholesky(&inner.add(identity_for(&inner)?)?)?;
        Ok(LowRankMultivariateNormal {
            frame: Frame::of_events(NAME, &loc, 1),
            loc,
            factor,
            diag,
            capacitance,
            rank,
        })
    }

    /// `W`, the factor of the covariance.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn cov_factor(&self) -> Result<Tensor> {
        named_matrix(&self.factor, &self.loc, self.rank)
    }

    /// `D`, the diagonal that is added to the covariance.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn cov_diag(&self) -> Result<Tensor> {
        renamed(&self.diag, self.loc.names())
    }

    /// A square matrix over the event dim, with columns that have no name.
    #[track_caller]
    fn named(&self, x: &Tensor) -> Result<Tensor> {
        named_matrix(x, &self.loc, None)
    }

    /// The covariance `W Wᵀ + D`, without names.
    #[track_caller]
    pub(crate) fn covariance(&self) -> Result<Tensor> {
        self.factor.matmul(&self.factor.mt()?)?.add(self.diag.diag_embed()?)
    }

    /// The covariance `W Wᵀ + D`. Its columns have no name.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn covariance_matrix(&self) -> Result<Tensor> {
        self.named(&self.covariance()?)
    }

    /// The inverse of the covariance. Its columns have no name.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn precision_matrix(&self) -> Result<Tensor> {
        let scaled = self.factor.div(self.diag.unsqueeze(-1)?)?; // D⁻¹ W
        let inner = solve_lower(&self.capacitance, &scaled.mt()?)?;
        self.named(&self.diag.reciprocal().diag_embed().sub(inner.mt()?.matmul(&inner)?)?)
    }

    /// The lower triangular factor of the covariance. Its columns have no name.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn scale_tril(&self) -> Result<Tensor> {
        let roots = self.diag.rsqrt().unsqueeze(-1)?;
        let scaled = self.factor.mul(roots)?; // D^-½ W
        let inner = scaled.matmul(&scaled.mt()?)?;
        let root = cholesky(&inner.add(identity_for(&inner)?)?)?;
        self.named(&root.mul(self.diag.sqrt().unsqueeze(-1)?)?)
    }

    /// `log det (W Wᵀ + D)`.
    #[track_caller]
    pub(crate) fn log_det(&self) -> Result<Tensor> {
        half_log_det(&self.capacitance)?.mul(2.0).add(self.diag.log().sum(-1)?)
    }

    /// `dᵀ (W Wᵀ + D)⁻¹ d` for vectors in the last dim.
    #[track_caller]
    pub(crate) fn square_distance(&self, d: &Tensor) -> Result<Tensor> {
        let scaled = d.div(&self.diag)?;
        let inner = times_vector(&self.factor.mt()?, &scaled)?;
        d.mul(scaled).sum(-1).sub(mahalanobis(&self.capacitance, &inner)?)
    }

    /// The mean without names.
    #[track_caller]
    pub(crate) fn bare_loc(&self) -> Result<Tensor> {
        self.loc.rename(None)
    }
}

impl Distribution for LowRankMultivariateNormal {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Real
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let (d, names) = difference(x, &self.loc)?;
        let n = d.sizes()[d.ndim() - 1] as f64;
        let log = self.square_distance(&d)?.add(self.log_det()?).add(n * TAU.ln()).mul(-0.5)?;
        renamed(&log, &names)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let (mut sizes, last) = (shape.sizes.clone(), shape.sizes.len() - 1);
        let z = random::normal(shape, self.frame.dtype())?.rename(None)?;
        sizes[last] = self.factor.sizes()[self.factor.ndim() - 1];
        let few = TensorOptions::new().dtype(self.frame.dtype()).randn(sizes)?;
        let drawn = times_vector(&self.factor, &few)?.add(z.mul(self.diag.sqrt()?)?).add(self.bare_loc()?)?;
        renamed(&drawn, &shape.names)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn mean(&self) -> Result<Tensor> {
        Ok(self.loc.clone())
    }
    fn mode(&self) -> Result<Tensor> {
        Ok(self.loc.clone())
    }
    fn variance(&self) -> Result<Tensor> {
        renamed(&self.factor.square().sum(-1)?.add(&self.diag)?, self.loc.names())
    }
    fn entropy(&self) -> Result<Tensor> {
        let n = self.loc.sizes()[self.loc.ndim() - 1] as f64;
        renamed(&self.log_det()?.add(n * (1.0 + TAU.ln())).mul(0.5)?, &self.frame.batch().names)
    }
}

/// Wishart's distribution of positive definite matrices `X`, the sum of `ν` squares `z zᵀ` of normal
/// vectors of covariance `V`, with density
/// `det X^((ν - n - 1) / 2) exp(-½ tr(V⁻¹ X)) / (2^(ν n / 2) det V^(ν / 2) Γₙ(ν / 2))`.
///
/// ```
/// use namegrad::distributions::Wishart;
/// use namegrad::prelude::*;
/// let eye = Tensor::eye(2, 2)?.refine_names(["row", "col"])?;
/// let x = Wishart::new(3.0, &eye, ["row", "col"])?;
/// assert_eq!(x.mean()?.to_vec::<f32>()?, [3.0, 0.0, 0.0, 3.0]);
/// assert_eq!(x.sample([("draw", 5)])?.shape().to_string(), "[draw=5, row=2, col=2]");
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Draws: Smith, Hocking, *Algorithm AS 53: Wishart variate generator* (1972), Bartlett's decomposition.
#[derive(Clone, Debug)]
pub struct Wishart {
    /// The degrees of freedom `ν`, above `n - 1`.
    pub df: Tensor,
    /// The factor of `V`, without names.
    pub(crate) factor: Tensor,
    given: Option<(Form, Tensor)>,
    frame: Frame,
}

impl Wishart {
    /// The distribution with `df` degrees of freedom and `V = covariance_matrix`, whose rows and columns are
    /// `dims`, which are the event dims: two names, or `[-2, -1]` for dims without names.
    ///
    /// # Errors
    /// As [`MultivariateNormal::new`]; [`ErrorKind::Value`] unless `df` is above `n - 1`.
    #[track_caller]
    pub fn new(
        df: impl Operand,
        covariance_matrix: impl Operand,
        dims: [impl Into<Dim>; 2],
    ) -> Result<Wishart> {
        Wishart::of(&df, &covariance_matrix, &dims.map(Into::into), Form::Covariance)
    }

    /// The distribution in which `V` is the inverse of `precision_matrix`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[track_caller]
    pub fn from_precision(
        df: impl Operand,
        precision_matrix: impl Operand,
        dims: [impl Into<Dim>; 2],
    ) -> Result<Wishart> {
        Wishart::of(&df, &precision_matrix, &dims.map(Into::into), Form::Precision)
    }

    /// The distribution in which `V = L Lᵀ` for `L = scale_tril`.
    ///
    /// # Errors
    /// As [`MultivariateNormal::from_scale_tril`].
    #[track_caller]
    pub fn from_scale_tril(
        df: impl Operand,
        scale_tril: impl Operand,
        dims: [impl Into<Dim>; 2],
    ) -> Result<Wishart> {
        Wishart::of(&df, &scale_tril, &dims.map(Into::into), Form::ScaleTril)
    }

    #[track_caller]
    fn of(df: &dyn Operand, matrix: &dyn Operand, dims: &[Dim; 2], form: Form) -> Result<Wishart> {
        const NAME: &str = "Wishart";
        let parameter = form.parameter();
        let given = floats(NAME, &[("df", df), (parameter, matrix)])?;
        let matrix = matrix_of(NAME, parameter, &given[1], dims)?;
        let n = matrix.sizes()[matrix.ndim() - 1];
        check_coordinates(NAME, parameter, n)?;
        check(NAME, parameter, &form.support(), &matrix)?;
        let least = Tensor::full((), n as f64 - 1.0)?;
        check(NAME, "df", &Support::Above(least), &given[0])?;
        let spread = unified(NAME, &["df", parameter], &[&given[0], &matrix.select(-1, 0)?.select(-1, 0)?])?;
        let events = crate::frame::split(&matrix.shape(), 2).1;
        let shape = concatenated(&spread[0].shape(), &events)?;
        let frame = Frame::new(NAME, spread[0].shape(), events, matrix.dtype());
        let matrix = matrix.rename(None)?.expand(&shape.sizes)?;
        let factor = form.factor(&matrix)?;
        let given = (form != Form::ScaleTril).then_some((form, matrix));
        Ok(Wishart { df: spread[0].clone(), factor, given, frame })
    }

    /// The names of the batch and event dims, for a matrix without names.
    #[track_caller]
    fn named(&self, x: &Tensor) -> Result<Tensor> {
        renamed(x, &concatenated(self.frame.batch(), self.frame.event())?.names)
    }

    /// `V`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn covariance_matrix(&self) -> Result<Tensor> {
        self.named(&self.covariance()?)
    }

    #[track_caller]
    pub(crate) fn covariance(&self) -> Result<Tensor> {
        match &self.given {
            Some((Form::Covariance, x)) => Ok(x.clone()),
            _ => self.factor.matmul(&self.factor.mt()?),
        }
    }

    /// The inverse of `V`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn precision_matrix(&self) -> Result<Tensor> {
        match &self.given {
            Some((Form::Precision, x)) => self.named(x),
            _ => self.named(&inverse_of_factor(&self.factor)?),
        }
    }

    /// The lower triangular factor of `V`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn scale_tril(&self) -> Result<Tensor> {
        self.named(&self.factor)
    }

    /// The number of rows `n`.
    pub(crate) fn rows(&self) -> usize {
        self.frame.event().sizes[0]
    }

    /// `ν` without names.
    #[track_caller]
    pub(crate) fn bare_df(&self) -> Result<Tensor> {
        self.df.rename(None)
    }

    /// The sum over rows of a function of `(ν - i) / 2`.
    #[track_caller]
    fn over_rows(&self, f: fn(Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let half = self.bare_df()?.mul(0.5)?;
        let mut sum = half.zeros_like()?;
        for row in 0..self.rows() {
            sum = sum.add(f(half.sub(0.5 * row as f64)?)?)?;
        }
        Ok(sum)
    }

    /// The logarithm of the multivariate gamma function, `log Γₙ(ν / 2)`.
    #[track_caller]
    pub(crate) fn log_multigamma(&self) -> Result<Tensor> {
        let n = self.rows() as f64;
        self.over_rows(|x| x.lgamma())?.add(0.25 * n * (n - 1.0) * PI.ln())
    }

    /// The derivative of [`log_multigamma`](Self::log_multigamma) by `ν / 2`.
    #[track_caller]
    pub(crate) fn multidigamma(&self) -> Result<Tensor> {
        self.over_rows(|x| x.digamma())
    }
}

impl Distribution for Wishart {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::PositiveDefinite
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let names = x.select(-1, 0)?.select(-1, 0)?.add(self.df.detach())?.names().clone();
        let (x, df, n) = (x.rename(None)?, self.bare_df()?, self.rows() as f64);
        let root = cholesky(&x)?;
        let trace = square_norm(&solve_lower(&self.factor, &root)?)?; // tr(V⁻¹ X)
        let determinants =
            half_log_det(&root)?.mul(df.sub(n + 1.0)?).sub(half_log_det(&self.factor)?.mul(&df)?)?;
        let constant = df.mul(0.5 * n * LN_2).add(self.log_multigamma()?)?;
        renamed(&determinants.sub(trace.mul(0.5)?).sub(constant)?, &names)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let n = self.rows();
        let bare = Shape { sizes: shape.sizes.clone(), names: Names::none() };
        let below = random::normal(&bare, self.frame.dtype())?.tril_with(TrilOptions::new().diagonal(-1))?;
        // the diagonal: roots of χ² with ν - i degrees of freedom
        let rows = TensorOptions::new().dtype(self.frame.dtype()).arange(0.0, n as f64, 1.0)?;
        let halves = self.bare_df()?.unsqueeze(-1)?.sub(rows).mul(0.5)?;
        let diagonal =
            Shape { sizes: Sizes::from_slice(&shape.sizes[..shape.sizes.len() - 1]), names: Names::none() };
        let chi = random::gamma(&diagonal, &halves)?.mul(2.0).sqrt()?;
        let root = self.factor.matmul(&below.add(chi.diag_embed()?)?)?;
        renamed(&root.matmul(&root.mt()?)?, &shape.names)
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn mean(&self) -> Result<Tensor> {
        self.named(&self.covariance()?.mul(self.matrix_df()?)?)
    }
    fn mode(&self) -> Result<Tensor> {
        let factor = self.matrix_df()?.sub(self.rows() as f64 + 1.0)?;
        let mode = self.covariance()?.mul(factor.masked_fill(&factor.le(0.0)?, f64::NAN)?)?;
        self.named(&mode)
    }
    fn variance(&self) -> Result<Tensor> {
        let v = self.covariance()?;
        let diagonal = v.diagonal(-2, -1)?;
        let products = diagonal.unsqueeze(-1).mul(diagonal.unsqueeze(-2)?)?;
        self.named(&v.square().add(products).mul(self.matrix_df()?)?)
    }
    fn entropy(&self) -> Result<Tensor> {
        let (df, n) = (self.bare_df()?, self.rows() as f64);
        let determinant = half_log_det(&self.factor)?.mul(n + 1.0).add(0.5 * n * (n + 1.0) * LN_2)?;
        let of_shape = df.sub(n + 1.0).mul(0.5).mul(self.multidigamma()?)?;
        let entropy = determinant.add(self.log_multigamma()?).sub(of_shape).add(df.mul(0.5 * n)?)?;
        renamed(&entropy, &self.frame.batch().names)
    }
}

impl Wishart {
    /// `ν` with two dims for a matrix.
    #[track_caller]
    fn matrix_df(&self) -> Result<Tensor> {
        self.bare_df()?.unsqueeze(-1)?.unsqueeze(-1)
    }
}
