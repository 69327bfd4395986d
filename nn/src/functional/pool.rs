//! Pooling over one, two or three dims.
//!
//! All functions move the dims of the windows to the end, where `Tensor::max_pool` and `Tensor::avg_pool`
//! expect them; `over` has what they share with the layers.

mod over;

pub(crate) use over::{avg_over, fractional_over, lp_over, max_over, unpool_over};

use super::*;
use namegrad_core::args::{Factors, OptionalDims, Windows};
use namegrad_io::sorted::retain;

/// The dims that windows slide along: the last ones, as many as the function is for, unless some are given.
pub type SlidingDims = OptionalDims;

functional! { pool;
    /// The largest element of each window over one dim. The windows have `kernel_size` elements, `dilation`
    /// apart, and start at every `stride`-th element; by default they touch. The `padding` has no part in the
    /// maximum. With `ceil_mode`, a last window that is not complete counts.
    ///
    /// `dims` are the dims that the windows slide along, by default those that `kernel_size` names, in any
    /// order, or else the last. A last dim with a name of channels, `C` or `channels`, is an error then.
    /// `Tensor::max_pool` also gives the positions of the elements.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 5.0, 2.0, 3.0, 4.0]])?.refine_names(["C", "time"])?;
    /// assert_eq!(F::max_pool1d(&x, 2)?.to_vec::<f32>()?, [5.0, 3.0]);
    /// let options = MaxPool1dOptions::new().stride(1).dims("time");
    /// assert_eq!(F::max_pool1d_with(&x.t()?, 2, options)?.to_vec::<f32>()?, [5.0, 5.0, 3.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if no window fits or the padding is more than half of a window,
    /// [`ErrorKind::Value`] for a size, stride or dilation of 0, [`ErrorKind::Misaligned`] if the last dims are
    /// meant and one has a name of channels.
    max_pool1d
    /// [`max_pool1d`] over two dims.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let images = Tensor::rand([("N", 2), ("H", 8), ("W", 6), ("C", 3)])?;
    /// let y = F::max_pool2d(&images, [("H", 2), ("W", 3)])?;
    /// assert_eq!(y.shape().to_string(), "[N=2, H=4, W=2, C=3]");
    /// let y = F::max_pool2d_with(&images, 2, MaxPool2dOptions::new().dims(["H", "W"]))?;
    /// assert_eq!(y.shape().to_string(), "[N=2, H=4, W=3, C=3]");
    /// # Ok::<(), Error>(())
    /// ```
    max_pool2d
    /// [`max_pool1d`] over three dims.
    max_pool3d (
        x; kernel_size: Extents, stride: Extents = None, padding: Extents = 0, dilation: Extents = 1,
        ceil_mode: bool = false, dims: SlidingDims = SlidingDims::NONE
    ) on floats integers => {
        // PyTorch takes images without channels, if their dims are given.
        let by_position = dims.is_none() && !x.has_names() && x.ndim() > rank;
        (!by_position || x.sizes()[x.ndim() - rank - 1] != 0)
            .or_shape(format_args!("expected at least one channel before the {rank} dims of the windows, got sizes {:?}", x.sizes()))?;
        let (windows, dims) = sliding(rank, x, [kernel_size, stride], ceil_mode, dims)?;
        Ok(max_over(x, windows.padding(padding).dilation(dilation), &dims)?.values)
    }
    /// The mean of each window over one dim. The windows are those of [`max_pool1d`]. The sum of a window is
    /// divided by its size with its padding; without `count_include_pad`, by the number of its elements; or
    /// by `divisor_override`.
    ///
    /// `dims` are the dims that the windows slide along, by default those that `kernel_size` names,
    /// or else the last.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 3.0, 5.0]])?;
    /// assert_eq!(F::avg_pool1d(&x, 2)?.to_vec::<f32>()?, [2.0]);
    /// let options = AvgPool1dOptions::new().padding(1).count_include_pad(false);
    /// assert_eq!(F::avg_pool1d_with(&x, 2, options)?.to_vec::<f32>()?, [1.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`max_pool1d`].
    avg_pool1d (
        x; kernel_size: Extents, stride: Extents = None, padding: Extents = 0, ceil_mode: bool = false,
        count_include_pad: bool = true, dims: SlidingDims = SlidingDims::NONE
    ) on floats integers => {
        let (windows, dims) = sliding(1, x, [kernel_size, stride], ceil_mode, dims)?;
        avg_over(x, windows.padding(padding).count_include_pad(count_include_pad), &dims)
    }
    /// [`avg_pool1d`] over two dims.
    avg_pool2d
    /// [`avg_pool1d`] over three dims.
    avg_pool3d (
        x; kernel_size: Extents, stride: Extents = None, padding: Extents = 0, ceil_mode: bool = false,
        count_include_pad: bool = true, divisor_override: Option<isize> = None, dims: SlidingDims = SlidingDims::NONE
    ) on floats integers => {
        let (windows, dims) = sliding(rank, x, [kernel_size, stride], ceil_mode, dims)?;
        let windows = windows.padding(padding).count_include_pad(count_include_pad);
        avg_over(x, windows.divisor_override(divisor_override), &dims)
    }
    /// The largest element of each of `output_size` windows over one dim. Window `i` of `n` is from
    /// `⌊i L / n⌋` to `⌈(i + 1) L / n⌉` of the `L` elements. In a list, `None` is the size of
    /// the dim, and so it is for a dim without a pair.
    ///
    /// `dims` are the dims that the windows slide along, by default those that `output_size` names,
    /// or else the last.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 5.0, 2.0, 3.0, 4.0]])?;
    /// assert_eq!(F::adaptive_max_pool1d(&x, 2)?.to_vec::<f32>()?, [5.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    adaptive_max_pool1d
    /// [`adaptive_max_pool1d`] over two dims.
    adaptive_max_pool2d
    /// [`adaptive_max_pool1d`] over three dims.
    adaptive_max_pool3d (x; output_size: Extents, dims: SlidingDims = SlidingDims::NONE) on floats integers => {
        let (windows, dims) = adaptive(rank, x, output_size, dims)?;
        Ok(max_over(x, windows, &dims)?.values)
    }
    /// The mean of each of `output_size` windows over one dim, which are those of [`adaptive_max_pool1d`].
    ///
    /// `dims` are the dims that the windows slide along, by default those that `output_size` names,
    /// or else the last.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 5.0, 3.0, 3.0, 6.0]])?;
    /// assert_eq!(F::adaptive_avg_pool1d(&x, 2)?.to_vec::<f32>()?, [3.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    adaptive_avg_pool1d
    /// [`adaptive_avg_pool1d`] over two dims.
    adaptive_avg_pool2d
    /// [`adaptive_avg_pool1d`] over three dims.
    adaptive_avg_pool3d (x; output_size: Extents, dims: SlidingDims = SlidingDims::NONE) on floats => {
        x.value().check_float(op)?;
        let (windows, dims) = adaptive(rank, x, output_size, dims)?;
        avg_over(x, windows, &dims)
    }
    /// The norm of each window over one dim, without absolute values: `(Σ x^norm_type)^(1 / norm_type)`. For
    /// an infinite `norm_type`, the largest or smallest `|x|`. The windows are those of [`max_pool1d`]; a
    /// last window that is not complete counts as a whole one with the same mean of the powers.
    ///
    /// `dims` are the dims that the windows slide along, by default those that `kernel_size` names,
    /// or else the last.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[3.0, 4.0, 6.0, 8.0]])?;
    /// assert_eq!(F::lp_pool1d(&x, 2.0, 2)?.to_vec::<f32>()?, [5.0, 10.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`max_pool1d`].
    lp_pool1d
    /// [`lp_pool1d`] over two dims.
    lp_pool2d
    /// [`lp_pool1d`] over three dims.
    lp_pool3d (x; norm_type: f64, kernel_size: Extents, stride: Extents = None, ceil_mode: bool = false, dims: SlidingDims = SlidingDims::NONE)
        on floats => {
        let (windows, dims) = sliding(rank, x, [kernel_size, stride], ceil_mode, dims)?;
        lp_over(x, norm_type, windows, &dims)
    }
    /// The largest element of each of `output_size` windows of `kernel_size`, at random places over the two
    /// dims that `kernel_size` or `output_size` names, or else the last. `output_ratio` gives the size of the
    /// result as a part of the input; if neither is given, it is half of the input, where PyTorch has no
    /// default. The places are drawn for each channel, or chosen
    /// by `samples`: see [`fractional_max_pool`](Tensor::fractional_max_pool), which also gives the positions
    /// of the elements.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::rand([("N", 2), ("C", 3), ("H", 9), ("W", 7)])?;
    /// let y = F::fractional_max_pool2d_with(&x, 2, FractionalMaxPool2dOptions::new().output_size([5, 4]))?;
    /// assert_eq!(y.shape().to_string(), "[N=2, C=3, H=5, W=4]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the windows do not fit, [`ErrorKind::Value`] for both a size and a ratio, or
    /// a ratio that is not between 0 and 1.
    fractional_max_pool2d
    /// [`fractional_max_pool2d`] over the last three dims.
    fractional_max_pool3d (x, samples?; kernel_size: Extents, output_size: Extents = None, output_ratio: Factors = Factors::NONE)
        on floats names keeps, samples: free => {
        let dims = or_last(rank, x, None, &[kernel_size, output_size])?;
        (output_size.is_none() || output_ratio.is_none())
            .or_value("`output_size` and `output_ratio` say the same: give one of them")?;
        Ok(fractional_over(x, samples, [kernel_size, output_size], output_ratio, &dims)?.values)
    }
    /// The opposite of a maximum over windows of the dim that `kernel_size` or `output_size` names, or else
    /// the last: zeros, with the elements of `x` at the
    /// positions `indices` that [`max_pool`](Tensor::max_pool) gave. The size of the result is `output_size`,
    /// or the smallest that has windows of `kernel_size` at every `stride`-th element.
    ///
    /// ```
    /// use namegrad::core::args::Windows;
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 5.0, 2.0, 3.0]])?;
    /// let largest = x.max_pool(Windows::sliding(2))?;
    /// let y = F::max_unpool1d(&largest.values, &largest.indices, 2)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 5.0, 0.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if `indices` has other sizes, [`ErrorKind::Index`] for an index outside of the
    /// result.
    max_unpool1d
    /// [`max_unpool1d`] over the last two dims.
    max_unpool2d
    /// [`max_unpool1d`] over the last three dims.
    max_unpool3d (x, indices; kernel_size: Extents, stride: Extents = None, padding: Extents = 0, output_size: Extents = None)
        names keeps, indices: matched => {
        let dims = or_last(rank, x, None, &[kernel_size, output_size])?;
        unpool_over([x, indices], kernel_size, stride, padding, output_size, &dims)
    }
}

/// Windows of one size for all dims, or a size for each, with their dims. Pairs are in the order of `dims`;
/// those of other options are looked up by the op.
fn sliding(
    rank: usize,
    x: &Tensor,
    [sizes, stride]: [Extents; 2],
    ceil_mode: bool,
    dims: Option<Positions>,
) -> Result<(Windows, Positions)> {
    let dims = or_last(rank, x, dims, &[sizes])?;
    let sizes = sizes.in_order("", "kernel_size", &names_at(x, &dims), None)?;
    let windows = Windows::sliding(&sizes.over("", "kernel_size", rank)?[..]);
    Ok((windows.stride(stride).ceil_mode(ceil_mode), dims))
}

/// The windows that give a result of these sizes along each of the dims, with the dims.
fn adaptive(rank: usize, x: &Tensor, made: Extents, dims: Option<Positions>) -> Result<(Windows, Positions)> {
    let dims = or_last(rank, x, dims, &[made])?;
    let lengths = sizes_of(x, &dims);
    let made = made.in_order("", "output_size", &names_at(x, &dims), Some(Extents::from(&lengths[..])))?;
    let sizes = match lengths.len() == rank {
        true => made.or_lengths("", "output_size", &lengths),
        false => made.over("", "output_size", rank), // before an error of `dims`
    };
    Ok((Windows::adaptive(&sizes?[..]), dims))
}

/// The dims, or those that sizes name, or the last ones of `x`. Without names, the channels and at most the
/// batch are before them, as in PyTorch.
fn or_last(rank: usize, x: &Tensor, dims: Option<Positions>, sizes: &[Extents]) -> Result<Positions> {
    if let Some(dims) = dims {
        return Ok(dims);
    }
    for sizes in sizes {
        let mut named = Vec::with_capacity(rank);
        for name in sizes.names(rank).into_iter().flatten() {
            named.extend(Dims::from(name).look_up("", &[x.value()])?.iter());
        }
        let mut dims = range(0..x.ndim());
        retain(&mut dims, &|dim| is_in(&named, *dim));
        if dims.len() == rank {
            return Ok(dims.into());
        }
    }
    check_last(rank, x)?;
    let count = x.ndim();
    let before = count.checked_sub(rank);
    if let Some(first) = before.filter(|first| x.has_names() || (1..=2).contains(first)) {
        return Ok(range(first..count).into());
    }
    let message = format_args!(
        "expected the channels, and at most a batch before them, before the {rank} dims of the windows, got {count} dims without names"
    );
    Err(shape_error(message).with_repair(if before == Some(0) { "x.unsqueeze(0)?" } else { "" }))
}
