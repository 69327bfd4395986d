//! Covariances, distances and histograms.

use crate::chain::*;
use crate::composed::numbers::Numbers;
use crate::op::{Kept, Op};
use crate::{Tensor, TensorOptions};
use namegrad_core::args::Immediate;
use namegrad_core::options::{BincountOptions, BucketizeOptions, VectorNormOptions};
use namegrad_core::{DType, Error, ErrorKind, Name, NamedTensor, Names, Result, called, keep};
use namegrad_macros::composed;

/// How [`Tensor::cdist`] computes Euclidean distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EuclidMode {
    /// By a matrix product if there are more than 25 vectors on a side, otherwise from the differences.
    #[default]
    MmIfNecessary,
    /// By a matrix product, which is fast, but inaccurate for vectors that are close to each other.
    Mm,
    /// From the differences of all pairs.
    Donot,
}
impl Immediate for EuclidMode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("use_mm_for_euclid_dist_if_necessary", Self::MmIfNecessary),
        ("use_mm_for_euclid_dist", Self::Mm),
        ("donot_use_mm_for_euclid_dist", Self::Donot),
    ];
}

composed! { statistics;
    //! # Statistics and distances
    /// The covariances of the variables of a matrix, whose observations are along `dim`: a matrix
    /// `Σ w (x - mean)(x - mean)ᵀ / (Σ w - correction)`. Its first dim is that of the variables, and its
    /// second one is called `name` or unnamed. The weight `w` of an observation is `fweights`, the number of
    /// times that it occurred, times `aweights`; with the latter, the correction is multiplied by
    /// `Σ w aweights / Σ w`. A vector is a single variable: the result is its variance.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]])?.refine_names(["N", "feature"])?;
    /// let c = x.cov_with("N", CovOptions::new().name("other"))?;
    /// assert_eq!(c.shape().to_string(), "[feature=2, other=2]");
    /// assert_eq!(c.to_vec::<f32>()?, [1.0, -1.0, -1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Shape` for more than two dims or weights that are not one for each observation, `DType` for `bool`,
    /// and for `fweights` that are not integers; `Value` for a negative weight.
    cov (x, fweights?, aweights?; dim: Dim = -1, correction: isize = 1, name: NewName = None) on floats integers
        names removes, fweights: along dim, aweights: along dim;
    /// Pearson's correlation coefficients of the variables of a matrix, whose observations are along `dim`:
    /// [`cov`](Self::cov) divided by the standard deviations of both variables, between -1 and 1.
    corrcoef (x; dim: Dim = -1, name: NewName = None) on floats integers names removes;
    /// The distances `(Σ |x - other|^p)^(1/p)` between each vector of `x` and each of `other`, which are
    /// along the last dims of both. The dims before the second to last broadcast. `p` can be 0, the number of
    /// elements that differ, and infinite, the largest difference. The gradient at a distance of 0 is 0.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[0.0, 0.0], [3.0, 0.0]])?.refine_names(["point", "axis"])?;
    /// let y = Tensor::new([[3.0, 4.0]])?.refine_names(["center", "axis"])?;
    /// let d = x.cdist(&y)?;
    /// assert_eq!(d.shape().to_string(), "[point=2, center=1]");
    /// assert_eq!(d.to_vec::<f32>()?, [5.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `DType` unless floating-point, `Shape` for fewer than two dims or vectors of different sizes, `Value`
    /// for a negative `p`, and the errors of the name rule.
    cdist (x, other; p: f64 = 2.0, compute_mode: EuclidMode = EuclidMode::MmIfNecessary) on floats
        names contracts;
    /// The slices of `x` along `dim`, scaled down to a `p`-norm of `maxnorm` where theirs is larger.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[3.0, 4.0], [0.3, 0.4]])?.refine_names(["row", "C"])?;
    /// let y = x.renorm(2.0, "row", 1.0)?;
    /// assert!(y.allclose(&Tensor::new([[0.6, 0.8], [0.3, 0.4]])?.refine_names(["row", "C"])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `DType` unless floating-point, `Shape` for fewer than two dims, `Value` unless `p` is positive and
    /// `maxnorm` not negative.
    renorm renorm_ (x; p: f64, dim: Dim, maxnorm: f64) on floats => {
        x.value().check_float(op)?;
        Error::ensure(x.ndim() > 1, ErrorKind::Shape, op, || format!("input needs at least 2 dims, got {}", x.ndim()))?;
        Error::ensure(p > 0.0 && maxnorm >= 0.0, ErrorKind::Value, op, || {
            format!("p must be positive and maxnorm not negative, got {p} and {maxnorm}")
        })?;
        let others = crate::lists::others(x.ndim(), &[dim]);
        let norm = x.vector_norm_with(keep(others), VectorNormOptions::new().ord(p))?;
        // A small number keeps the quotient of a norm that is just above the largest below it.
        x.mul(norm.gt(maxnorm).choose(norm.add(1e-7).reciprocal().mul(maxnorm)?, 1.0)?)
    }
    /// The elements of `x` in each of the intervals between ascending `bin_edges`, of which the last includes
    /// both of its ends, counted or added up by their `weight`. `bins` is the number of intervals of equal
    /// length over `range`, by default from the smallest to the largest element, or a vector of edges. With
    /// `density`, the result is divided by the lengths of the intervals and its sum, so that it integrates to
    /// one. The dim of the intervals is called `name` or unnamed.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1.0, 2.0, 1.0])?;
    /// let (hist, edges) = x.histogram_with(HistogramOptions::new().bins(4).range([0.0, 3.0]).name("bin"))?;
    /// assert_eq!(hist.shape().to_string(), "[bin=4]");
    /// assert_eq!(hist.to_vec::<f32>()?, [0.0, 2.0, 1.0, 0.0]);
    /// assert_eq!(edges.to_vec::<f32>()?, [0.0, 0.75, 1.5, 2.25, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `DType` unless floating-point, `Value` without bins, for edges that descend or for a range that is not
    /// finite, `Shape` unless `weight` has the sizes of `x`.
    histogram (x, weight?; bins: Numbers = Numbers::One(100.0), range: Numbers = Numbers::default(), density: bool = false, name: NewName = None)
        -> (hist, bin_edges) on floats names called name, bin_edges: unnamed, weight: matched refused;
    /// The histogram of points whose coordinates are along the last dim: a tensor with a dim for each
    /// coordinate, and then the edges of the intervals of each. The arguments are those of
    /// [`histogram`](Self::histogram): `bins` is one number, one for each coordinate, or a vector of edges for
    /// each; `range` has the two ends for each coordinate in turn.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let points = Tensor::new([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0]])?;
    /// let parts = points.histogramdd_with(HistogramddOptions::new().bins([2, 2]).names(["x", "y"]))?;
    /// assert_eq!(parts[0].shape().to_string(), "[x=2, y=2]");
    /// assert_eq!(parts[0].to_vec::<f32>()?, [0.0, 1.0, 2.0, 0.0]);
    /// assert_eq!(parts[1].to_vec::<f32>()?, [0.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`histogram`](Self::histogram), and `Shape` unless there are bins for each coordinate.
    histogramdd (x, weight?; bins: Numbers = Numbers::One(10.0), range: Numbers = Numbers::default(), density: bool = false, names: NewNames = None)
        -> [histogram] on floats names called names, weight: without last refused;
}

mod kernels {
    use super::*;

    /// The weights of observations along `dim`, as a vector.
    fn weights<'w>(op: &'static str, x: &Tensor, dim: usize, weights: &'w Tensor) -> Result<&'w Tensor> {
        let n = x.sizes().get(dim).copied().unwrap_or(1);
        Error::ensure(weights.ndim() < 2 && weights.numel() == n, ErrorKind::Shape, op, || {
            format!("expected a weight for each of the {n} observations of {}", called(x.value(), dim))
        })
        .map_err(|error| error.with_operands([x.shape(), weights.shape()]))?;
        let negative = !weights.lt(0).logical_not()?.numbers()?.is_true_everywhere()?;
        Error::ensure(!negative, ErrorKind::Value, op, || "weights cannot be negative")?;
        Ok(weights)
    }

    pub(super) fn cov(
        x: &Tensor,
        fweights: Option<&Tensor>,
        aweights: Option<&Tensor>,
        dim: usize,
        correction: isize,
        name: Option<Name>,
    ) -> Result<Tensor> {
        const OP: &str = "cov";
        let is_number = x.dtype() != DType::Bool;
        Error::ensure(is_number, ErrorKind::DType, OP, || "bool dtype is not supported for input")
            .map_err(|error| error.with_repair("x.to(DType::F32)?"))?;
        Error::ensure(x.ndim() < 3, ErrorKind::Shape, OP, || {
            format!("expected input to have two or fewer dimensions, got {}", x.ndim())
        })?;
        let mut w: Option<Tensor> = None;
        if let Some(counts) = fweights {
            let whole = !counts.dtype().is_floating_point() && counts.dtype() != DType::Bool;
            Error::ensure(whole, ErrorKind::DType, OP, || {
                format!("expected fweights to have an integral dtype, got {}", counts.dtype())
            })
            .map_err(|error| error.with_repair("fweights.to(DType::I64)?"))?;
            w = Some(weights(OP, x, dim, counts)?.clone());
        }
        if let Some(given) = aweights {
            Error::ensure(given.dtype().is_floating_point(), ErrorKind::DType, OP, || {
                format!("expected aweights to have a floating-point dtype, got {}", given.dtype())
            })
            .map_err(|error| error.with_repair("aweights.to(DType::F32)?"))?;
            let given = weights(OP, x, dim, given)?;
            w = Some(w.map_or(Ok(given.clone()), |w| w.mul(given))?);
        }
        let n = x.sizes().get(dim).copied().unwrap_or(1);
        let x = match x.ndim() {
            0 => x.reshape([1, 1])?,
            1 => x.unsqueeze(0)?,
            _ => x.movedim(dim, -1)?, // [variable, observation]
        };
        let weighted = |x: &Tensor| w.as_ref().map_or(Ok(x.clone()), |w| x.mul(w));
        let total = w.as_ref().map(|w| w.sum(..)).transpose()?;
        let sum = weighted(&x).sum(keep(-1))?;
        let mean = total.as_ref().map_or_else(|| sum.div(n as f64), |total| sum.div(total))?;
        let centered = x.sub(&mean)?;
        let products = centered.unnamed().matmul(weighted(&centered)?.unnamed().t()?)?;
        let covariance = match &total {
            None => products.div((n as f64 - correction as f64).max(0.0))?,
            Some(total) => {
                let norm = match aweights.filter(|_| correction != 0) {
                    Some(given) => {
                        let share = weighted(given).sum(..).div(total)?;
                        total.sub(share.mul(correction as f64)?)?
                    }
                    None => total.sub(correction as f64)?,
                };
                products.div(&norm.clamp_min(0)?)?
            }
        };
        match x.sizes()[0] {
            1 => covariance.sum(..),
            _ => covariance.rename([x.name(0), name]),
        }
    }
    pub(super) fn corrcoef(x: &Tensor, dim: usize, name: Option<Name>) -> Result<Tensor> {
        let c = cov(x, None, None, dim, 1, name)?;
        if c.ndim() == 0 {
            return c.div(&c);
        }
        let deviation = c.unnamed().diagonal(0, 1).sqrt()?;
        c.div(deviation.unsqueeze(1)?).div(&deviation).clamp(-1.0, 1.0)
    }

    pub(super) fn cdist(x: &Tensor, other: &Tensor, p: f64, compute_mode: EuclidMode) -> Result<Tensor> {
        const OP: &str = "cdist";
        for (x, what) in [(x, "x"), (other, "other")] {
            x.value().check_float(OP)?;
            let has_dims = x.ndim() > 1;
            Error::ensure(has_dims, ErrorKind::Shape, OP, || {
                format!("{what} must have at least two dims, got {}", x.ndim())
            })?;
        }
        Error::ensure(p >= 0.0, ErrorKind::Value, OP, || format!("p cannot be negative, got {p}"))?;
        let last = |x: &Tensor| x.sizes()[x.ndim() - 1];
        Error::ensure(last(x) == last(other), ErrorKind::Shape, OP, || {
            format!("vectors of {} and of {} elements have no distance", last(x), last(other))
        })
        .map_err(|error| error.with_operands([x.shape(), other.shape()]))?;
        // All dims unify but those of the vectors, which follow each other in the result.
        let row = |x: &Tensor| x.name(x.ndim() - 2);
        let mut own: Vec<Option<Name>> = crate::list(x.names().iter(x.ndim()));
        own[x.ndim() - 2] = row(other);
        let unified = x.value().unnamed().with_names(Names::new(OP, own)?);
        let (unified, ndim) =
            (unified.unified_names(OP, "broadcast", other.value())?, x.ndim().max(other.ndim()));
        let names = unified.iter(ndim).take(ndim - 2).chain([row(x), row(other)]);
        let names = Names::new(OP, names).map_err(|error| error.with_operands([x.shape(), other.shape()]))?;
        let (a, b) = (x.value().unnamed(), other.value().unnamed());
        let rows = [a.sizes()[a.ndim() - 2], b.sizes()[b.ndim() - 2]];
        let by_product = match compute_mode {
            EuclidMode::MmIfNecessary => rows[0] > 25 || rows[1] > 25,
            mode => mode == EuclidMode::Mm,
        };
        let value = if p == 2.0 && by_product { by_products(&a, &b)? } else { by_pairs(&a, &b, p, rows)? };
        let kept = [Kept::input(x), Kept::input(other)];
        let y = Kept::output(&value);
        let op = Op::new(OP, value.with_names(names)).inputs(&[Some(x), Some(other)], move |g, cx| {
            let ([a, b], y) = (kept.each_ref().map(|kept| kept.get(cx)), y.get(cx));
            if p == 2.0 {
                let ratio = g.div(&y).masked_fill(&y.eq(0)?, 0)?;
                let part = |a: &Tensor, b: &Tensor, ratio: &Tensor| {
                    a.mul(ratio.sum(keep(-1))?).sub(ratio.matmul(b)?)
                };
                return Ok(vec![Some(part(&a, &b, &ratio)?), Some(part(&b, &a, &ratio.transpose(-2, -1)?)?)]);
            }
            let apart = a.unsqueeze(-2).sub(b.unsqueeze(-3)?)?;
            let by_pair = slopes(&apart, &y.unsqueeze(-1)?, p).mul(g.unsqueeze(-1)?)?;
            Ok(vec![Some(by_pair.sum(-2)?), Some(by_pair.sum(-3).neg()?)])
        });
        Ok(op.output())
    }

    /// Euclidean distances by a product: `√(a² - 2 a b + b²)`.
    fn by_products(a: &NamedTensor, b: &NamedTensor) -> Result<NamedTensor> {
        let square = |x: &NamedTensor| x.mul(x)?.sum(keep(-1));
        let products = a.matmul(&b.transpose(-2, -1)?)?.mul(-2)?;
        products.add(square(a)?)?.add(square(b)?.transpose(-2, -1)?)?.clamp_min(0)?.sqrt()
    }

    /// Distances from differences, of as many rows at a time as fit in the cache.
    fn by_pairs(a: &NamedTensor, b: &NamedTensor, p: f64, rows: [usize; 2]) -> Result<NamedTensor> {
        const CHUNK: usize = 1 << 15;
        let row = rows[1].saturating_mul(a.sizes()[a.ndim() - 1]).max(1);
        let count = (CHUNK / row).max(1);
        let b = b.unsqueeze(-3)?;
        let mut parts = Vec::new();
        for start in (0..rows[0].max(1)).step_by(count) {
            let rows = a.narrow(-2, start, count.min(rows[0] - start))?;
            let apart = rows.unsqueeze(-2)?.sub(&b)?;
            parts.push(apart.vector_norm_with(-1, VectorNormOptions::new().ord(p))?);
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        NamedTensor::cat(&parts, -2)
    }

    /// The derivatives of distances by differences.
    fn slopes(apart: &Tensor, distance: &Tensor, p: f64) -> Result<Tensor> {
        if p == 0.0 {
            return apart.zeros_like();
        }
        if p == 1.0 {
            return apart.sign();
        }
        if p.is_infinite() {
            return apart.sign().masked_fill(&apart.abs().ne(distance)?, 0);
        }
        let same = distance.eq(0).logical_or(apart.eq(0)?)?;
        let ratio = apart.abs().div(distance).masked_fill(&same, 1)?;
        apart.sign().mul(ratio.pow(p - 1.0)?).masked_fill(&same, 0)
    }

    /// The edges of `bins` intervals: `count` of equal length, or those given.
    fn edges(op: &'static str, x: &Tensor, bins: &Numbers, range: Option<[f64; 2]>) -> Result<Tensor> {
        if let Numbers::Tensors(tensors) = bins
            && let [edges] = &tensors[..]
            && edges.ndim() == 1
        {
            let edges = edges.detach().unnamed().to(x.dtype())?;
            Error::ensure(
                edges.numel() > 0,
                ErrorKind::Value,
                op,
                || "bins tensor should have one or more edges",
            )?;
            let ascend = edges.diff(0).lt(0).logical_not()?.numbers()?.is_true_everywhere()?;
            Error::ensure(ascend, ErrorKind::Value, op, || "the edges of the bins must ascend")?;
            return Ok(edges);
        }
        let counts = bins.flat(op, "bins")?.0;
        let count = counts.first().copied().filter(|count| *count >= 1.0 && count.fract() == 0.0);
        let Some(count) = count.filter(|_| counts.len() == 1) else {
            let message = format!("bins must be a number that is at least 1, or edges, got {counts:?}");
            return Err(Error::new(ErrorKind::Value, op, message));
        };
        let [mut low, mut high] = match range {
            Some(range) => range,
            None if x.numel() == 0 => [0.0, 1.0],
            None => [x.amin(..)?.item::<f64>()?, x.amax(..)?.item::<f64>()?],
        };
        let finite = low.is_finite() && high.is_finite() && low <= high;
        Error::ensure(finite, ErrorKind::Value, op, || {
            format!("the range must be finite and not empty, got [{low}, {high}]")
        })?;
        if low == high {
            (low, high) = (low - 0.5, high + 0.5);
        }
        TensorOptions::new().dtype(x.dtype()).linspace(low, high, count as usize + 1)
    }

    /// The range of the coordinate `k` of `count`.
    fn range_of(op: &'static str, range: &Numbers, k: usize, count: usize) -> Result<Option<[f64; 2]>> {
        if range.is_none() {
            return Ok(None);
        }
        let ends = range.flat(op, "range")?.0;
        Error::ensure(ends.len() == 2 * count, ErrorKind::Value, op, || {
            format!("range must have {} ends, got {}", 2 * count, ends.len())
        })?;
        Ok(Some([ends[2 * k], ends[2 * k + 1]]))
    }

    /// For each element the number of its interval, and whether it is in one.
    fn places(x: &Tensor, edges: &Tensor) -> Result<(Tensor, Tensor)> {
        let bins = edges.numel() - 1;
        let inside = x.ge(edges.select(0, 0)?).logical_and(x.le(edges.select(0, -1)?)?)?;
        let place = x.bucketize_with(edges, BucketizeOptions::new().right(true))?;
        Ok((place.sub(1).clamp_max(bins.max(1) as i64 - 1)?, inside))
    }

    /// The sums of weights at places, divided by the volumes for a density.
    fn sums(
        [places, inside]: [&Tensor; 2],
        weight: Option<&Tensor>,
        dtype: DType,
        volumes: &Tensor,
        density: bool,
    ) -> Result<Tensor> {
        let picked = places.masked_select(inside)?;
        let mut options = BincountOptions::new().minlength(volumes.numel());
        if let Some(weight) = weight {
            options = options.weights(weight.unnamed().reshape([-1]).masked_select(inside).to(DType::F64)?);
        }
        let counts = picked.bincount_with(options).to(DType::F64)?;
        match density {
            true => counts.div(counts.sum(..)?).div(volumes.to(DType::F64)?).to(dtype),
            false => counts.to(dtype),
        }
    }

    /// Checks the weights of elements with these sizes.
    fn weighs(op: &'static str, x: &Tensor, weight: Option<&Tensor>, sizes: &[usize]) -> Result<()> {
        x.value().check_float(op)?;
        let Some(weight) = weight else { return Ok(()) };
        Error::ensure(weight.sizes() == sizes, ErrorKind::Shape, op, || {
            format!("expected weights of sizes {sizes:?}, one for each element, got {:?}", weight.sizes())
        })?;
        Error::ensure(weight.dtype() == x.dtype(), ErrorKind::DType, op, || {
            format!("x is {}, and the weights are {}", x.dtype(), weight.dtype())
        })
        .map_err(|error| error.with_repair(format!("weight.to(DType::{:?})?", x.dtype())))
    }

    pub(super) fn histogram(
        x: &Tensor,
        weight: Option<&Tensor>,
        bins: Numbers,
        range: Numbers,
        density: bool,
        name: Option<Name>,
    ) -> Result<(Tensor, Tensor)> {
        const OP: &str = "histogram";
        weighs(OP, x, weight, x.sizes())?;
        if let Some(weight) = weight {
            x.value().check_alike(OP, ["x", "weight"], weight.value())?;
        }
        let flat = x.detach().unnamed().reshape([-1])?;
        let edges = edges(OP, &flat, &bins, range_of(OP, &range, 0, 1)?)?;
        let (places, inside) = places(&flat, &edges)?;
        let counts = sums([&places, &inside], weight, x.dtype(), &edges.diff(0)?, density)?;
        Ok((counts.rename([name])?, edges))
    }

    pub(super) fn histogramdd(
        x: &Tensor,
        weight: Option<&Tensor>,
        bins: Numbers,
        range: Numbers,
        density: bool,
        names: Vec<Option<Name>>,
    ) -> Result<Vec<Tensor>> {
        const OP: &str = "histogramdd";
        Error::ensure(x.ndim() > 1, ErrorKind::Shape, OP, || {
            format!("expected points along the last of at least two dims, got {}", x.ndim())
        })?;
        let (count, outer) = (x.sizes()[x.ndim() - 1], &x.sizes()[..x.ndim() - 1]);
        weighs(OP, x, weight, outer)?;
        if let Some(weight) = weight.filter(|_| x.has_names()) {
            x.select(-1, 0)?.value().check_alike(OP, ["x", "weight"], weight.value())?;
        }
        let given = match &bins {
            Numbers::One(_) => count,
            Numbers::List(list) => list.len(),
            Numbers::Tensors(tensors) => tensors.len(),
        };
        Error::ensure(given == count && count > 0, ErrorKind::Shape, OP, || {
            format!("there are bins for {given} coordinates, and points of {count}")
        })?;
        let names = Names::given(OP, &names, &vec![None; count])?;
        let points = x.detach().unnamed().reshape([-1, count as isize])?;
        let mut all = vec![points.select(-1, 0)?]; // the place of the histogram
        let (mut flat, mut inside, mut volumes): (Option<Tensor>, Option<Tensor>, Option<Tensor>) =
            (None, None, None);
        let mut sizes = Vec::with_capacity(count);
        for k in 0..count {
            let own = match &bins {
                Numbers::One(_) => bins.clone(),
                Numbers::List(list) => Numbers::One(list[k]),
                Numbers::Tensors(tensors) => Numbers::Tensors(vec![tensors[k].clone()]),
            };
            let x = points.select(-1, k as isize)?;
            let edges = edges(OP, &x, &own, range_of(OP, &range, k, count)?)?;
            let (place, within) = places(&x, &edges)?;
            let (size, lengths) = (edges.numel() - 1, edges.diff(0)?);
            flat = Some(flat.map_or(Ok(place.clone()), |flat| flat.mul(size).add(&place))?);
            inside = Some(inside.map_or(Ok(within.clone()), |inside| inside.logical_and(&within))?);
            volumes = Some(match volumes {
                Some(volumes) => volumes.unsqueeze(-1).mul(&lengths).reshape([-1])?,
                None => lengths,
            });
            sizes.push(size);
            all.push(edges);
        }
        if let (Some(flat), Some(inside), Some(volumes)) = (flat, inside, volumes) {
            let counts = sums([&flat, &inside], weight, x.dtype(), &volumes, density)?;
            all[0] = counts.reshape(sizes)?.named(names);
        }
        Ok(all)
    }
}
