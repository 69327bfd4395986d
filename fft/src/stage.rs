//! Transforms of tensors on the tape: which stages a transform has, its names, and its gradient.

use crate::common::*;
use crate::engine::{Kind, Stage};
use crate::pair::COMPLEX;

/// The factor of a transform of `n` points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub enum Norm {
    /// The inverse is divided by `n`.
    #[default]
    Backward,
    /// Both directions are divided by `√n`.
    Ortho,
    /// The forward transform is divided by `n`.
    Forward,
}

impl Norm {
    fn factor(self, n: f64, direction: Direction) -> f64 {
        match (self, direction) {
            (Norm::Ortho, _) => 1.0 / n.sqrt(),
            (Norm::Backward, Direction::Inverse) | (Norm::Forward, Direction::Forward) => 1.0 / n,
            _ => 1.0,
        }
    }
}

/// The sign of the exponent, on which the factor depends as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Inverse,
}

/// The numbers of points that a caller asks for.
pub(crate) type Points = OfDims<isize>;

/// What a transform maps to what, beside its dims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transformed {
    pub(crate) kind: Kind,
    pub(crate) direction: Direction,
    pub(crate) norm: Norm,
}

/// The tensor in a dtype that can be transformed: integers and `bool` become the default float.
#[track_caller]
pub(crate) fn floats(op: &'static str, x: &Tensor) -> Result<Tensor> {
    let dtype = if x.dtype().is_floating_point() { x.dtype() } else { default_dtype() };
    if !matches!(dtype, DType::F32 | DType::F64) {
        let message = format!("transforms are computed in float32 and float64, not in {dtype}");
        let error = Error::about(&[x.value()], ErrorKind::DType, op, message);
        return Err(error.with_repair("x.to(DType::F32)?"));
    }
    if x.dtype() == dtype { Ok(x.clone()) } else { x.to(dtype) }
}

#[track_caller]
fn check_points(op: &'static str, n: isize) -> Result<usize> {
    match usize::try_from(n) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(Error::new(ErrorKind::Value, op, format!("Invalid number of data points ({n}) specified"))),
    }
}

/// The transform of `x` over dims. `names` are the new names of the dims, in their order, or none.
#[track_caller]
pub(crate) fn transformed(
    op: &'static str,
    x: &Tensor,
    mut found: Found,
    points: &Points,
    names: &[Option<Name>],
    how: Transformed,
) -> Result<Tensor> {
    let x = floats(op, x)?;
    let points = points_of(op, &x, &mut found, points)?;
    let Found { pair, dims, .. } = &found;
    if !names.is_empty() && names.len() != dims.len() {
        let message = format!("expected {} names, one for each dim, got {}", dims.len(), names.len());
        return Err(Error::new(ErrorKind::Value, op, message));
    }
    let Some(last) = dims.len().checked_sub(1) else {
        if how.kind == Kind::Complex {
            return Ok(x);
        }
        return Err(Error::about(&[x.value()], ErrorKind::Value, op, "must transform at least one dim"));
    };
    let mut sizes = x.sizes().to_vec();
    pair.map(|pair| sizes.remove(pair));
    let (mut stages, mut total) = (Vec::with_capacity(dims.len()), 1.0);
    let order: Vec<usize> = match how.kind {
        Kind::ToHalf => (0..=last).rev().collect(),
        _ => (0..=last).collect(),
    };
    for at in order {
        let kind = if at == last { how.kind } else { Kind::Complex };
        let from = sizes[dims[at]];
        let n = match points[at] {
            None if kind == Kind::FromHalf => check_points(op, 2 * (from as isize - 1))?,
            None => check_points(op, from as isize)?,
            Some(n) => check_points(op, n)?,
        };
        total *= n as f64;
        let to = if kind == Kind::ToHalf { n / 2 + 1 } else { n };
        let inner = if kind == Kind::FromHalf { 2.0 } else { 1.0 };
        let inverse = how.direction == Direction::Inverse;
        stages.push(Stage { kind, dim: dims[at], n, from, to, inverse, scale: 1.0, inner });
    }
    stages[last].scale = how.norm.factor(total, how.direction);
    let x = match pair {
        Some(pair) if pair + 1 < x.ndim() => x.movedim(*pair, -1)?,
        _ => x,
    };
    let named = names_of(op, &x, dims, names, how.kind)?;
    let y = applied(op, &x, stages, Some(named))?;
    match pair {
        Some(pair) if pair + 1 < y.ndim() && how.kind == Kind::Complex => y.movedim(-1, *pair),
        _ => Ok(y),
    }
}

/// The numbers of points for each dim. If fewer are given than there are dims, and all dims are meant, they are
/// for the last ones.
#[track_caller]
fn points_of(op: &'static str, x: &Tensor, found: &mut Found, points: &Points) -> Result<Vec<Option<isize>>> {
    let shape = |message: String| Err(Error::about(&[x.value()], ErrorKind::Shape, op, message));
    let own = |n: isize| Some(n).filter(|n| *n != -1);
    if points.is_none() {
        return Ok(vec![None; found.dims.len()]);
    }
    if let Some(dims) = &points.dims {
        let mut all = vec![None; found.dims.len()];
        for (dim, n) in dims.iter().zip(&points.numbers) {
            let at = match found.pair {
                Some(pair) if *dim == pair => None,
                Some(pair) => Some(dim - usize::from(*dim > pair)),
                None => Some(*dim),
            };
            let Some(at) = at.and_then(|dim| found.dims.iter().position(|own| *own == dim)) else {
                return shape(format!(
                    "a number of points is given for {}, which is not transformed",
                    namegrad_core::called(x.value(), *dim)
                ));
            };
            all[at] = own(*n);
        }
        return Ok(all);
    }
    let count = points.numbers.len();
    if found.is_all && !points.all {
        let Some(skipped) = found.dims.len().checked_sub(count) else {
            let ndim = found.dims.len();
            return shape(format!("got sizes for {count} dims, but the tensor only has {ndim} dimensions"));
        };
        found.dims.drain(..skipped);
    }
    match points.over(found.dims.len()) {
        Some(numbers) => Ok(numbers.into_iter().map(own).collect()),
        None => shape(format!("got {count} sizes for {} dims", found.dims.len())),
    }
}

/// The names of the result, whose dim of (re, im) is the last. `x` has that dim there too.
#[track_caller]
fn names_of(op: &'static str, x: &Tensor, dims: &[usize], new: &[Option<Name>], kind: Kind) -> Result<Names> {
    let mut names: Vec<Option<Name>> = x.names().iter(x.ndim()).collect();
    for (dim, name) in dims.iter().zip(new) {
        names[*dim] = name.or(names[*dim]);
    }
    match kind {
        Kind::Complex => {}
        Kind::FromHalf => drop(names.pop()),
        Kind::ToHalf if x.has_names() || new.iter().any(Option::is_some) => {
            names.push(Some(Name::new(COMPLEX)?))
        }
        Kind::ToHalf => names.push(None),
    }
    Names::new(op, names)
}

/// `x` through all stages. The dim of (re, im) is the last, if it has one.
#[track_caller]
fn applied(op: &'static str, x: &Tensor, stages: Vec<Stage>, names: Option<Names>) -> Result<Tensor> {
    let mut value = x.value().rename(None)?;
    for (at, stage) in stages.iter().enumerate() {
        value = stage.run(op, value, at > 0)?;
    }
    if names.is_some() {
        value = value.rename(names)?;
    }
    let back: Vec<Stage> = stages.into_iter().rev().map(Stage::adjoint).collect();
    let op = Op::new(op, value).input(x, move |g, _| applied(op, g, back.clone(), None));
    Ok(op.output())
}
