//! Reductions over segments: groups of the slices along a dim, such as the edges that end at one node.

use crate::Tensor;
use crate::chain::*;
use crate::op::{Kept, Op};
use namegrad_core::args::OpenShape;
use namegrad_core::options::IndexReduceOptions;
use namegrad_core::{DType, Error, ErrorKind, Names, Reduce, Result, Scalar};
use namegrad_macros::composed;

composed! { segments;
    //! # Segments
    //!
    //! `index`, a vector of integers, has the number of the segment of each slice along `dim`, in any order. In
    //! the result of a reduction, the `segments`, a size with or without a name, take the place of `dim`. A
    //! name of the index must be that of `dim`.
    /// The sum of the slices along `dim` in each segment; 0 for a segment without slices. Integers and `bool`
    /// give `i64`. Half types are summed in `f32`.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let messages = Tensor::new([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])?.refine_names(["edge", "embed"])?;
    /// let to = Tensor::new([2, 0, 2])?.refine_names(["edge"])?;
    /// let received = messages.segment_sum(&to, "edge", ("node", 3))?;
    /// assert_eq!(received.shape().to_string(), "[node=3, embed=2]");
    /// assert_eq!(received.to_vec::<f32>()?, [3.0, 4.0, 0.0, 0.0, 6.0, 8.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `DType` for an index without integers; `Shape` unless the index is a vector with a number for each
    /// slice, or if there is not exactly one size; `Index` for a number that is negative or not less than the
    /// number of segments; `NameMismatch` if the index has another name than `dim`; `DuplicateName`,
    /// `NameNotFound`, `DimRange`.
    segment_sum (x, index; dim: Dim, segments: Shape) names removes, index: along dim, segments: renames dim;
    /// The mean of the slices along `dim` in each segment; 0 for a segment without slices.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1.0, 2.0, 6.0])?.refine_names(["word"])?;
    /// let mean = x.segment_mean(&Tensor::new([0, 2, 2])?, "word", ("sentence", 3))?;
    /// assert_eq!(mean.to_vec::<f32>()?, [1.0, 0.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`segment_sum`](Self::segment_sum).
    segment_mean (x, index; dim: Dim, segments: Shape) on floats
        names removes, index: along dim, segments: renames dim;
    /// The largest element along `dim` in each segment; NaN if there is one. Equal maxima share the gradient.
    ///
    /// A segment without slices has the value `empty`. Its default is the lowest value of the dtype, -∞ for
    /// floats, as in `jax.ops.segment_max`: the maximum of no elements, which leaves every later maximum as it
    /// is. `torch_scatter` has 0 there, which looks like a maximum; `SegmentMaxOptions::new().empty(0.0)`
    /// gives it.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1.0, -2.0, -6.0])?.refine_names(["edge"])?;
    /// let to = Tensor::new([0, 2, 2])?;
    /// let largest = x.segment_max(&to, "edge", ("node", 3))?;
    /// assert_eq!(largest.to_vec::<f32>()?, [1.0, f32::NEG_INFINITY, -2.0]);
    /// let options = SegmentMaxOptions::new().empty(0.0);
    /// assert_eq!(x.segment_max_with(&to, "edge", ("node", 3), options)?.to_vec::<f32>()?, [1.0, 0.0, -2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`segment_sum`](Self::segment_sum); `Value` if the dtype does not have the number `empty`.
    segment_max (x, index; dim: Dim, segments: Shape, empty: Option<f64> = None)
        names removes, index: along dim, segments: renames dim;
    /// The smallest element along `dim` in each segment; NaN if there is one. Equal minima share the gradient.
    /// A segment without slices has the value `empty`, by default the highest value of the dtype, +∞ for
    /// floats, as in [`segment_max`](Self::segment_max).
    ///
    /// # Errors
    /// Same as [`segment_max`](Self::segment_max).
    segment_min (x, index; dim: Dim, segments: Shape, empty: Option<f64> = None)
        names removes, index: along dim, segments: renames dim;
    /// The softmax along `dim` within each segment: `e^x / Σ e^x`, where the sum is over the slices of the
    /// same segment. The result has the dims of `x`. The maximum of each segment is subtracted first, so that
    /// no finite `x` overflows. As in [`softmax`](Self::softmax), a segment whose elements are all -∞ gives
    /// NaN.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// // The attention of three edges, two of which end at node 0.
    /// let scores = Tensor::new([1.0, 1.0, 9.0])?.refine_names(["edge"])?;
    /// let weights = scores.segment_softmax(&Tensor::new([0, 0, 1])?, "edge", ("node", 2))?;
    /// assert_eq!(weights.to_vec::<f32>()?, [0.5, 0.5, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`segment_sum`](Self::segment_sum).
    ///
    /// # Source
    /// Veličković et al., *Graph Attention Networks* (2018), equation 2.
    segment_softmax (x, index; dim: Dim, segments: Shape) on floats names keeps, index: along dim;
}

/// The slices of a tensor with the numbers of their segments.
#[derive(Clone)]
struct Segmented {
    /// The tensor without names, in the dtype that sums are computed in.
    x: Tensor,
    index: Tensor,
    dim: usize,
    /// The sizes and names of a reduction.
    sizes: Vec<usize>,
    names: Names,
}

impl Segmented {
    #[track_caller]
    fn new(
        op: &'static str,
        x: &Tensor,
        index: &Tensor,
        dim: usize,
        segments: OpenShape,
    ) -> Result<Segmented> {
        let (index, shape) = x.value().segments(op, index.value(), dim, &segments)?;
        let (x, index) = (x.unnamed(), Tensor::constant(index.unnamed()));
        Ok(Segmented { x, index, dim, sizes: shape.sizes.to_vec(), names: shape.names })
    }

    /// The same segments of other elements.
    fn of(self, x: Tensor) -> Segmented {
        Segmented { x, ..self }
    }

    /// The sums, without names.
    #[track_caller]
    fn sums(&self) -> Result<Tensor> {
        self.x.new_zeros(&self.sizes[..]).index_add(&self.index, &self.x, self.dim)
    }

    /// For each slice, the slice of `y` of its segment.
    #[track_caller]
    fn spread(&self, y: &Tensor) -> Result<Tensor> {
        y.index_select(&self.index, self.dim)
    }

    /// For each slice, the sum of its segment.
    #[track_caller]
    fn totals(&self) -> Result<Tensor> {
        self.spread(&self.sums()?)
    }

    /// The number of slices in each segment, at least 1, in sizes that broadcast to those of the sums.
    #[track_caller]
    fn counts(&self) -> Result<Tensor> {
        let (count, mut sizes) = (self.sizes[self.dim], vec![1; self.sizes.len()]);
        sizes[self.dim] = count;
        let ones = self.index.ones_like()?;
        self.index.new_zeros([count]).index_add(&self.index, &ones, 0).clamp(1, i64::MAX).reshape(sizes)
    }
}

/// The largest or smallest elements of the segments. An empty one has the value that is given, or the end of
/// the range of the dtype.
#[track_caller]
fn extremes(
    op: &'static str,
    reduce: Reduce,
    [x, index]: [&Tensor; 2],
    dim: usize,
    segments: OpenShape,
    empty: Option<f64>,
) -> Result<Tensor> {
    let all = Segmented::new(op, x, index, dim, segments)?;
    let (dtype, is_max) = (x.dtype(), reduce == Reduce::Amax);
    let start = match empty {
        Some(value) => {
            x.value().check_has(op, value)?;
            Error::ensure(dtype != DType::Bool || [0.0, 1.0].contains(&value), ErrorKind::Value, op, || {
                format!("`empty` must be 0 or 1 for bool, got {value}")
            })?;
            Scalar::Float(value)
        }
        None if dtype.is_floating_point() => {
            Scalar::Float(if is_max { f64::NEG_INFINITY } else { f64::INFINITY })
        }
        None => Scalar::Int(dtype.ends()[usize::from(!is_max)]),
    };
    let options = IndexReduceOptions::new().include_self(false);
    let start = all.x.new_full(&all.sizes[..], start)?;
    let y = start.index_reduce_with(&all.index, &all.x, all.dim, reduce, options)?;
    Ok(y.named(all.names))
}

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn segment_sum(x: &Tensor, index: &Tensor, dim: usize, segments: OpenShape) -> Result<Tensor> {
        let all = Segmented::new("segment_sum", x, index, dim, segments)?;
        let (result, wide) = match x.dtype().is_floating_point() {
            true => (x.dtype(), x.dtype().compute()),
            false => (DType::I64, DType::I64),
        };
        let wide = all.x.to(wide)?;
        let all = all.of(wide);
        Ok(all.sums()?.to(result)?.named(all.names))
    }

    #[track_caller]
    pub(super) fn segment_mean(
        x: &Tensor,
        index: &Tensor,
        dim: usize,
        segments: OpenShape,
    ) -> Result<Tensor> {
        x.value().check_float("segment_mean")?;
        let all = Segmented::new("segment_mean", x, index, dim, segments)?;
        let wide = all.x.to(x.dtype().compute())?;
        let all = all.of(wide);
        Ok(all.sums()?.div(&all.counts()?).to(x.dtype())?.named(all.names))
    }

    #[track_caller]
    pub(super) fn segment_max(
        x: &Tensor,
        index: &Tensor,
        dim: usize,
        segments: OpenShape,
        empty: Option<f64>,
    ) -> Result<Tensor> {
        extremes("segment_max", Reduce::Amax, [x, index], dim, segments, empty)
    }

    #[track_caller]
    pub(super) fn segment_min(
        x: &Tensor,
        index: &Tensor,
        dim: usize,
        segments: OpenShape,
        empty: Option<f64>,
    ) -> Result<Tensor> {
        extremes("segment_min", Reduce::Amin, [x, index], dim, segments, empty)
    }

    #[track_caller]
    pub(super) fn segment_softmax(
        x: &Tensor,
        index: &Tensor,
        dim: usize,
        segments: OpenShape,
    ) -> Result<Tensor> {
        x.value().check_float("segment_softmax")?;
        let all = Segmented::new("segment_softmax", x, index, dim, segments)?;
        let wide = x.detach().unnamed().to(x.dtype().compute())?;
        let least = wide.new_full(&all.sizes[..], f64::NEG_INFINITY)?;
        let largest = least.index_reduce(&all.index, &wide, dim, Reduce::Amax)?;
        let e = wide.sub(all.spread(&largest)?).exp()?;
        let y = e.div(all.clone().of(e.clone()).totals()?)?;
        let y = y.into_value().to(x.dtype())?.with_names(x.names().clone());
        let kept = Kept::output(&y);
        let op = Op::new("segment_softmax", y).input(x, move |g, cx| {
            let y = kept.get(cx);
            let wide = y.dtype().compute();
            let (g, y) = (g.to(wide)?, y.to(wide)?);
            y.mul(g.sub(all.clone().of(g.mul(&y)?).totals()?)?)
        });
        Ok(op.output())
    }
}
