//! Composed ops along one dim.

use crate::Tensor;
use crate::chain::*;
use crate::composed::numbers::Numbers;
use namegrad_core::args::{Immediate, Over};
use namegrad_core::{DType, Error, ErrorKind, Name, NamedTensor, Names, Result};
use namegrad_macros::composed;

/// What a quantile is that falls between two elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Between {
    /// A weighted mean of both.
    #[default]
    Linear,
    /// The lower element.
    Lower,
    /// The higher element.
    Higher,
    /// The mean of both.
    Midpoint,
    /// The nearer element; the one at an even position if both are equally near.
    Nearest,
}
impl Immediate for Between {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("linear", Self::Linear),
        ("lower", Self::Lower),
        ("higher", Self::Higher),
        ("midpoint", Self::Midpoint),
        ("nearest", Self::Nearest),
    ];
}

composed! { along;
    //! # More along a dim
    /// The elements in ascending order along the first dim: the values of [`sort`](Self::sort).
    msort (x);
    /// The differences `x[i+1] - x[i]` along `dim`, taken `n` times; each time, the dim becomes shorter by
    /// one. For `bool`, whether neighbors differ. The elements of `prepend` and `append` are joined to the
    /// tensor first, before and after it.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1, 3, 6])?.refine_names(["N"])?;
    /// assert_eq!(x.diff("N")?.to_vec::<i64>()?, [2, 3]);
    /// let whole = x.diff_with("N", DiffOptions::new().prepend(Tensor::new([0])?))?;
    /// assert_eq!(whole.to_vec::<i64>()?, [1, 2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    diff (x, prepend?, append?; dim: Dim = -1, n: usize = 1) names keeps, prepend: beside dim, append: beside dim;
    /// The `q`-quantile along `dim`, or of all elements with `..`; floats only. Between the two elements
    /// around position `q (n - 1)` in sorted order, it is what `interpolation` says. NaN if any element is
    /// NaN. With several `q`, a list or a vector, the first dim of the result has a quantile for each; it is
    /// called `name` or unnamed.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1.0, 2.0, 4.0])?.refine_names(["N"])?;
    /// assert_eq!(x.quantile(0.75, "N")?.item::<f64>()?, 3.0);
    /// let both = x.quantile_with([0.0, 1.0], "N", QuantileOptions::new().name("q"))?;
    /// assert_eq!((both.shape().to_string(), both.to_vec::<f32>()?), ("[q=2]".into(), vec![1.0, 4.0]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Value` unless every `q` is between 0 and 1, and for a tensor without elements; `DType` unless
    /// floating-point, and for a tensor of `q` of another dtype; `Shape` if it has more than one dim.
    quantile (x; q: Numbers, dim: Reduced = .., interpolation: Between = Between::Linear, name: NewName = None) on floats
        => quantiles(op, x, &q, dim, interpolation, name, false);
    /// The [`quantile`](Self::quantile) of the elements that are not NaN; NaN if there are none.
    nanquantile (x; q: Numbers, dim: Reduced = .., interpolation: Between = Between::Linear, name: NewName = None) on floats
        => quantiles(op, x, &q, dim, interpolation, name, true);
    /// The integral along `dim` by the trapezoidal rule: `Σ (y[i] + y[i+1]) / 2 (x[i+1] - x[i])`. The points
    /// `x` are a vector along `dim`, or have the dims of `y`; without them, they are `dx` apart.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let y = Tensor::new([0.0, 1.0, 4.0])?.refine_names(["time"])?;
    /// assert_eq!(y.trapezoid("time")?.item::<f64>()?, 3.0);
    /// let times = Tensor::new([0.0, 1.0, 3.0])?;
    /// assert_eq!(y.trapezoid_with("time", TrapezoidOptions::new().x(&times))?.item::<f64>()?, 5.5);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `DimRange` for a 0-d tensor, `Shape` unless there is a point for each element, and the errors of the
    /// name rule.
    trapezoid (y, x?; dim: Dim = -1, dx: f64 = 1.0) on floats integers names removes, x: along dim => {
        let n = steps(op, y, dim)?;
        if n == 0 {
            return y.sum(dim).mul(0.0);
        }
        match x {
            Some(x) => pairs(y, dim, n).mul(spacing(op, y, x, dim)?).sum(dim).div(2.0),
            None => {
                let ends = exact(y)?.select(dim, 0).add(y.select(dim, -1)?)?;
                y.sum(dim).sub(ends.mul(0.5)?).mul(dx)
            }
        }
    }
    /// The integrals along `dim` up to each element but the first by the trapezoidal rule; see
    /// [`trapezoid`](Self::trapezoid).
    cumulative_trapezoid (y, x?; dim: Dim = -1, dx: f64 = 1.0) on floats integers names keeps, x: along dim => {
        let n = steps(op, y, dim)?;
        let pairs = pairs(y, dim, n)?;
        match x {
            Some(x) => pairs.mul(spacing(op, y, x, dim)?).cumsum(dim).div(2.0),
            None => pairs.cumsum(dim).mul(dx / 2.0),
        }
    }
    /// The derivatives along each of the dims, estimated by central differences, and at the ends by
    /// differences of `edge_order` 1 or 2. The points are `spacing` apart: a number, one for each of the dims,
    /// or a vector of coordinates for each.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1.0, 4.0, 9.0, 16.0])?.refine_names(["x"])?;
    /// assert_eq!(x.gradient("x")?[0].to_vec::<f32>()?, [3.0, 4.0, 6.0, 7.0]);
    /// let fine = x.gradient_with("x", GradientOptions::new().spacing(0.5).edge_order(2))?;
    /// assert_eq!(fine[0].to_vec::<f32>()?, [4.0, 8.0, 12.0, 16.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Value` for an `edge_order` that is not 1 or 2, `Shape` for a dim with too few elements, or a spacing
    /// that does not fit the dims.
    gradient (x; dim: Dims = .., spacing: Numbers = Numbers::One(1.0), edge_order: usize = 1) -> [gradients]
        on floats integers;
}

/// An error for `bool`, whose sums are no numbers.
fn check_number(op: &'static str, x: &Tensor) -> Result<()> {
    let is_number = x.dtype() != DType::Bool;
    Error::ensure(is_number, ErrorKind::DType, op, || "expected numbers, got bool".to_string())
        .map_err(|error| error.with_repair("x.to(DType::F32)?"))
}

/// Integers in `i64`, where their sums and differences are numbers.
fn exact(x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_floating_point() { Ok(x.clone()) } else { x.to(DType::I64) }
}

/// The number of elements along a dim that is integrated over.
fn steps(op: &'static str, y: &Tensor, dim: usize) -> Result<usize> {
    check_number(op, y)?;
    y.sizes()
        .get(dim)
        .copied()
        .ok_or_else(|| Error::new(ErrorKind::DimRange, op, "a 0-d tensor has no dim to integrate over"))
}

/// The sums of neighbors along a dim of `n` elements.
fn pairs(y: &Tensor, dim: usize, n: usize) -> Result<Tensor> {
    let count = n.saturating_sub(1);
    let y = exact(y)?;
    y.narrow(dim, n - count, count).add(y.narrow(dim, 0, count)?)
}

/// The distances of the points `x` along `dim` of `y`.
fn spacing(op: &'static str, y: &Tensor, x: &Tensor, dim: usize) -> Result<Tensor> {
    let n = y.sizes()[dim];
    let own = if x.ndim() == 1 { 0 } else { dim };
    Error::ensure(x.sizes().get(own) == Some(&n), ErrorKind::Shape, op, || {
        format!("there must be one x point for each of the {n} elements, got {}", x.shape())
    })
    .map_err(|error| error.with_operands([y.shape(), x.shape()]))?;
    let mut apart = exact(x)?.diff(own)?;
    if own != dim || x.ndim() == 1 {
        for _ in dim + 1..y.ndim() {
            apart = apart.unsqueeze(-1)?;
        }
    }
    Ok(apart)
}

/// The quantiles of all elements, or of those that are not NaN.
fn quantiles(
    op: &'static str,
    x: &Tensor,
    q: &Numbers,
    dim: Over,
    interpolation: Between,
    name: Option<Name>,
    skip: bool,
) -> Result<Tensor> {
    x.value().check_float(op)?;
    if let Numbers::Tensors(tensors) = q
        && let Some(of) = tensors.first().filter(|of| of.dtype() != x.dtype())
    {
        let message = format!("q must have the dtype of x, got {} and {}", of.dtype(), x.dtype());
        return Err(Error::new(ErrorKind::DType, op, message));
    }
    let followed = match q {
        Numbers::Tensors(tensors) => tensors.first().filter(|q| q.is_followed()),
        _ => None,
    };
    let (numbers, several) = match followed {
        Some(q) => Numbers::from(&q.detach()).flat(op, "q")?,
        None => q.flat(op, "q")?,
    };
    if let Some(q) = numbers.iter().find(|q| !(0.0..=1.0).contains(*q)) {
        let error = Error::new(ErrorKind::Value, op, format!("q must be between 0 and 1, got {q}"));
        // A percentage.
        return Err(match (1.0..=100.0).contains(q) && !several {
            true => error.with_repair(format!("q = {}, if {q} % are meant", q / 100.0)),
            false => error,
        });
    }
    if x.numel() == 0 {
        let message = "a tensor without elements has no quantile";
        return Err(Error::new(ErrorKind::Value, op, message).with_repair("if x.numel() > 0 { .. }"));
    }
    let one = kernels::lane(op, x, &dim)?;
    let quantile = match numbers[..] {
        [q] if !skip && followed.is_none() => kernels::of_lane(x, q, one, interpolation).unsqueeze(0)?,
        _ => {
            let q = match followed {
                Some(q) => q.unnamed().reshape([-1])?,
                None => Tensor::constant(NamedTensor::from_slice(&numbers, [numbers.len()])?),
            };
            kernels::sorted(x, &q, one, interpolation, skip)?
        }
    };
    // [q, ..., 1, ...], or [q, 1] for all elements
    let rest = x.names().iter(x.ndim()).enumerate().filter(|(d, _)| dim.keep || !dim.contains(d));
    let names = std::iter::once(name).chain(rest.map(|(_, name)| name));
    let mut sizes = vec![numbers.len()];
    for (d, size) in x.sizes().iter().enumerate() {
        match dim.contains(&d) {
            true if dim.keep => sizes.push(1),
            true => {}
            false => sizes.push(*size),
        }
    }
    let names = if several { Names::new(op, names)? } else { Names::new(op, names.skip(1))? };
    if !several {
        sizes.remove(0);
    }
    Ok(quantile.reshape(sizes)?.named(names))
}

mod kernels {
    use super::*;
    use namegrad_core::args::Positions;
    use namegrad_core::ops::pick;
    use namegrad_core::{Dims, keep};

    #[track_caller]
    pub(super) fn msort(x: &Tensor) -> Result<Tensor> {
        Ok(x.sort(0)?.values)
    }

    #[track_caller]
    pub(super) fn diff(
        x: &Tensor,
        prepend: Option<&Tensor>,
        append: Option<&Tensor>,
        dim: usize,
        n: usize,
    ) -> Result<Tensor> {
        if x.ndim() == 0 {
            let message = "expected a tensor of at least one dim";
            return Err(Error::new(ErrorKind::Shape, "diff", message));
        }
        let mut differences = match (prepend, append) {
            (None, None) => x.clone(),
            _ => Tensor::cat(prepend.into_iter().chain([x]).chain(append), dim)?,
        };
        if n == 0 {
            return Ok(x.clone());
        }
        for _ in 0..n.min(differences.sizes()[dim]) {
            let left = differences.sizes()[dim] - 1;
            let (next, this) = (differences.narrow(dim, 1, left)?, differences.narrow(dim, 0, left)?);
            differences = match x.dtype() {
                DType::Bool => next.logical_xor(&this)?,
                _ => next.sub(&this)?,
            };
        }
        Ok(differences)
    }

    /// The dim along which quantiles are taken, or none for all elements.
    #[track_caller]
    pub(super) fn lane(op: &'static str, x: &Tensor, dim: &Over) -> Result<Option<usize>> {
        pick::kernels::one_or_all(op, x.value(), dim)
    }

    /// The position of a quantile among `n` elements, rounded as in PyTorch, which computes in the dtype.
    fn position(x: &Tensor, q: f64, n: usize) -> f64 {
        match x.dtype() {
            DType::F64 => q * (n - 1) as f64,
            _ => f64::from(q as f32 * (n - 1) as f32),
        }
    }

    /// One quantile of each lane, by selection.
    #[track_caller]
    pub(super) fn of_lane(x: &Tensor, q: f64, one: Option<usize>, between: Between) -> Result<Tensor> {
        let n = one.map_or(x.numel(), |dim| x.sizes().get(dim).copied().unwrap_or(1));
        let dims = || one.map_or(Dims::ALL, Dims::from);
        let place = position(x, q, n);
        let place = match between {
            Between::Lower => place.floor(),
            Between::Higher => place.ceil(),
            Between::Nearest => place.round_ties_even(),
            _ => place,
        };
        let (below, above) = (place.floor(), place.ceil());
        let mut quantile = x.unnamed().kthvalue(below as usize + 1, keep(dims()))?.values;
        if above > below {
            let above = x.unnamed().kthvalue(above as usize + 1, keep(dims()))?.values;
            let weight = if between == Between::Midpoint { 0.5 } else { place - below };
            quantile = quantile.lerp(&above, weight)?;
        }
        quantile.masked_fill(&x.unnamed().isnan().any(keep(dims()))?, f64::NAN)
    }

    /// Several quantiles of each lane, along a new first dim, by sorting.
    #[track_caller]
    pub(super) fn sorted(
        x: &Tensor,
        q: &Tensor,
        one: Option<usize>,
        between: Between,
        skip: bool,
    ) -> Result<Tensor> {
        let lanes = match one.filter(|_| x.ndim() > 0) {
            Some(dim) => x.unnamed().movedim(dim, -1)?,
            None => x.unnamed().reshape([-1])?,
        };
        let wide = if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
        let sorted = lanes.sort(-1)?.values; // NaN last
        let is_nan = lanes.detach().isnan()?;
        let last = match skip {
            true => is_nan.logical_not().sum(keep(-1)).sub(1).clamp_min(0)?,
            false => is_nan.sum(keep(-1)).mul(0).add(lanes.sizes()[lanes.ndim() - 1] as i64 - 1)?,
        };
        let ranks = last.to(wide).mul(q.to(wide)?)?; // [.., q]
        let at = |ranks: Tensor| sorted.gather(&ranks.to(DType::I64)?, -1);
        let quantile = match between {
            Between::Lower => at(ranks.floor()?)?,
            Between::Higher => at(ranks.ceil()?)?,
            Between::Nearest => at(ranks.round()?)?,
            Between::Linear | Between::Midpoint => {
                let below = ranks.floor()?;
                let weight = match between {
                    Between::Linear => ranks.sub(&below).to(x.dtype())?,
                    _ => ranks.full_like(0.5).to(x.dtype())?,
                };
                let (low, high) = (at(below)?, at(ranks.ceil()?)?);
                // The same element has no place between, which is NaN for infinities.
                ranks.frac().eq(0).choose(&low, low.lerp(&high, &weight)?)?
            }
        };
        let quantile = match skip {
            true => quantile,
            false => quantile.masked_fill(&is_nan.any(keep(-1))?, f64::NAN)?,
        };
        quantile.movedim(-1, 0)
    }

    #[track_caller]
    pub(super) fn gradient(
        x: &Tensor,
        dims: Positions,
        spacing: Numbers,
        edge_order: usize,
    ) -> Result<Vec<Tensor>> {
        const OP: &str = "gradient";
        Error::ensure((1..=2).contains(&edge_order), ErrorKind::Value, OP, || {
            format!("edge_order must be 1 or 2, got {edge_order}")
        })?;
        let given = match &spacing {
            Numbers::One(_) => dims.len(),
            Numbers::List(list) => list.len(),
            Numbers::Tensors(tensors) => tensors.len(),
        };
        Error::ensure(given == dims.len(), ErrorKind::Shape, OP, || {
            format!("expected a spacing for each of {} dims, got {given}", dims.len())
        })?;
        check_number(OP, x)?;
        let x = &exact(x)?;
        let mut gradients = Vec::with_capacity(dims.len());
        for (k, dim) in dims.iter().copied().enumerate() {
            let n = x.sizes().get(dim).copied().unwrap_or(1);
            Error::ensure(n > edge_order, ErrorKind::Shape, OP, || {
                format!("each dim must have at least edge_order + 1 elements, got {n}")
            })?;
            // The distances of neighbors: a number, or a tensor along the dim.
            let steps = match &spacing {
                Numbers::One(step) => Tensor::new(*step)?,
                Numbers::List(list) => Tensor::new(list[k])?,
                Numbers::Tensors(tensors) if tensors[k].ndim() == 0 => tensors[k].clone(),
                Numbers::Tensors(tensors) => {
                    let points = &tensors[k];
                    if points.ndim() != 1 || points.numel() != n {
                        let message =
                            format!("expected coordinates of the {n} elements, got {}", points.shape());
                        return Err(Error::new(ErrorKind::Shape, OP, message).with_operands([x.shape()]));
                    }
                    super::spacing(OP, x, &points.unnamed(), dim)?
                }
            };
            gradients.push(slopes(x, dim, n, &steps, edge_order)?);
        }
        Ok(gradients)
    }

    /// The derivatives along a dim of `n` elements, whose neighbors are `steps` apart.
    fn slopes(x: &Tensor, dim: usize, n: usize, steps: &Tensor, edge_order: usize) -> Result<Tensor> {
        let steps = if x.dtype().is_floating_point() { steps.to(x.dtype())? } else { steps.clone() };
        let rises = x.narrow(dim, 1, n - 1).sub(x.narrow(dim, 0, n - 1)?)?;
        if steps.ndim() == 0 {
            let double = steps.mul(2.0)?;
            let inner = x.narrow(dim, 2, n.max(2) - 2).sub(x.narrow(dim, 0, n.max(2) - 2)?).div(&double)?;
            let end = |first: bool| -> Result<Tensor> {
                let at = |k: isize| x.narrow(dim, if first { k } else { n as isize - 1 - k }, 1);
                let rise = match edge_order {
                    1 => at(1).sub(at(0)?).div(&steps)?,
                    _ => at(1).mul(4.0).sub(at(2)?).sub(at(0).mul(3.0)?).div(&double)?,
                };
                if first { Ok(rise) } else { rise.neg() }
            };
            return Tensor::cat(&[end(true)?, inner, end(false)?], dim);
        }
        let slopes = rises.div(&steps)?; // between neighbors
        let count = n - 2;
        let lane = dim as isize - slopes.ndim() as isize; // the dim counted from the end
        let [before, after] = [steps.narrow(lane, 0, count)?, steps.narrow(lane, 1, count)?];
        // The slope of the parabola through three points in the middle one.
        let inner = slopes
            .narrow(lane, 0, count)
            .mul(&after)
            .add(slopes.narrow(lane, 1, count).mul(&before)?)
            .div(before.add(&after)?)?;
        let end = |at: isize, next: isize| -> Result<Tensor> {
            let own = slopes.narrow(lane, at, 1)?;
            if edge_order == 1 {
                return Ok(own);
            }
            let [near, far] = [steps.narrow(lane, at, 1)?, steps.narrow(lane, next, 1)?];
            let bend = own.sub(slopes.narrow(lane, next, 1)?).div(near.add(far)?)?;
            own.add(bend.mul(near)?)
        };
        let last = n as isize - 2;
        Tensor::cat(&[end(0, 1)?, inner, end(last, last - 1)?], dim)
    }
}
