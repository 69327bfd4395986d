//! Rearrangements of channels and pixels.

use namegrad_autograd::Tensor;
use namegrad_core::args::Positions;
use namegrad_core::{Error, ErrorKind, Names, Result};
use namegrad_macros::functional;
use std::panic::Location;

functional! { shuffle;
    /// Moves channels into space: `upscale_factor²` channels along `dim` become a square of that many pixels
    /// along the two dims `dims`.
    ///
    /// # Shapes
    /// - `x`: `[.., C r², H, W]` with `r` the factor; `dim` and `dims` can be anywhere
    /// - result: `[.., C, H r, W r]`
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[[1.0]], [[2.0]], [[3.0]], [[4.0]]])?.refine_names(["C", "H", "W"])?;
    /// let y = F::pixel_shuffle(&x, 2, "C", ["H", "W"])?;
    /// assert_eq!(y.shape().to_string(), "[C=1, H=2, W=2]");
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Source
    /// Shi et al., *Real-Time Single Image and Video Super-Resolution Using an Efficient Sub-Pixel
    /// Convolutional Neural Network* (2016), equation 4.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the number of channels is not divisible by `upscale_factor²`,
    /// [`ErrorKind::Value`] for a factor of 0.
    pixel_shuffle (x; upscale_factor: usize, dim: Dim or -3, dims: Dims or [-2, -1]) names "keeps input names"
        layer PixelShuffle (upscale_factor if at_least_one);
    /// The reverse of [`pixel_shuffle`]: moves squares of `downscale_factor²` pixels into channels.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::rand([("C", 2), ("H", 4), ("W", 6)])?;
    /// let y = F::pixel_unshuffle(&x, 2, "C", ["H", "W"])?;
    /// assert_eq!(y.shape().to_string(), "[C=8, H=2, W=3]");
    /// assert!(F::pixel_shuffle(&y, 2, "C", ["H", "W"])?.equal(&x)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if a size is not divisible by the factor, [`ErrorKind::Value`] for a factor of 0.
    pixel_unshuffle (x; downscale_factor: usize, dim: Dim or -3, dims: Dims or [-2, -1]) names "keeps input names"
        layer PixelUnshuffle (downscale_factor if at_least_one);
    /// Splits the channels along `dim` into `groups` and interleaves them: the first channel of each group,
    /// then the second of each, and so on.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1, 2, 3, 4])?.refine_names(["C"])?;
    /// assert_eq!(F::channel_shuffle(&x, 2, "C")?.to_vec::<i64>()?, [1, 3, 2, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Source
    /// Zhang et al., *ShuffleNet* (2018), section 3.1.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the groups do not divide the channels.
    channel_shuffle (x; groups: usize, dim: Dim or 1) names "keeps input names"
        layer ChannelShuffle (groups if at_least_one);
}

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn pixel_shuffle(
        x: &Tensor,
        upscale_factor: usize,
        dim: usize,
        dims: Positions,
    ) -> Result<Tensor> {
        const OP: &str = "pixel_shuffle";
        let [channel, high, wide] = places(OP, x, dim, &dims, upscale_factor)?;
        let (r, sizes) = (upscale_factor, x.sizes());
        if r.checked_mul(r).is_none_or(|square| !sizes[channel].is_multiple_of(square)) {
            let message = format!(
                "the number of channels must be divisible by the square of upscale_factor, got {} channels and factor {r}",
                sizes[channel]
            );
            return Err(Error::new(ErrorKind::Shape, OP, message).with_operands([x.shape()]));
        }
        let (mut split, mut order, mut made) = (Vec::new(), Vec::new(), Vec::new());
        // Each dim as its parts; the two factors of the channels go behind the pixels.
        for (d, size) in sizes.iter().enumerate() {
            if d == channel {
                split.extend([size / (r * r), r, r]);
            } else {
                split.push(*size);
            }
        }
        let at = |d: usize| if d > channel { d + 2 } else { d };
        for (d, size) in sizes.iter().enumerate() {
            order.push(at(d));
            if d == high {
                order.push(channel + 1);
            } else if d == wide {
                order.push(channel + 2);
            }
            made.push(match d {
                _ if d == channel => size / (r * r),
                _ if d == high || d == wide => size * r,
                _ => *size,
            });
        }
        named_as(x, x.rename(None)?.reshape(split)?.permute(order)?.reshape(made)?)
    }

    #[track_caller]
    pub(super) fn pixel_unshuffle(
        x: &Tensor,
        downscale_factor: usize,
        dim: usize,
        dims: Positions,
    ) -> Result<Tensor> {
        const OP: &str = "pixel_unshuffle";
        let [channel, high, wide] = places(OP, x, dim, &dims, downscale_factor)?;
        let (r, sizes) = (downscale_factor, x.sizes());
        if [high, wide].iter().any(|d| !sizes[*d].is_multiple_of(r)) {
            let message = format!(
                "height and width must be divisible by downscale_factor, got {} and {} and factor {r}",
                sizes[high], sizes[wide]
            );
            return Err(Error::new(ErrorKind::Shape, OP, message).with_operands([x.shape()]));
        }
        let (mut split, mut start, mut made) = (Vec::new(), Vec::new(), Vec::new());
        for (d, size) in sizes.iter().enumerate() {
            start.push(split.len());
            if d == high || d == wide {
                split.extend([size / r, r]);
                made.push(size / r);
            } else {
                split.push(*size);
                made.push(if d == channel { size * r * r } else { *size });
            }
        }
        let mut order = Vec::new();
        for (d, at) in start.iter().enumerate() {
            order.push(*at);
            if d == channel {
                order.extend([start[high] + 1, start[wide] + 1]);
            }
        }
        named_as(x, x.rename(None)?.reshape(split)?.permute(order)?.reshape(made)?)
    }

    #[track_caller]
    pub(super) fn channel_shuffle(x: &Tensor, groups: usize, dim: usize) -> Result<Tensor> {
        let Some(&channels) = x.sizes().get(dim).filter(|size| groups > 0 && size.is_multiple_of(groups))
        else {
            let message = format!(
                "the number of channels must be divisible by groups, got {} channels and {groups} groups",
                x.sizes().get(dim).copied().unwrap_or(1)
            );
            return Err(Error::new(ErrorKind::Shape, "channel_shuffle", message).with_operands([x.shape()]));
        };
        let sizes = x.sizes();
        let split = [&sizes[..dim], &[groups, channels / groups], &sizes[dim + 1..]].concat();
        named_as(x, x.rename(None)?.reshape(split)?.transpose(dim, dim + 1)?.reshape(sizes)?)
    }
}

/// Checks a factor or a number of groups of a layer.
#[track_caller]
fn at_least_one(layer: &'static str, name: &str, number: usize) -> Result<()> {
    Error::ensure(number > 0, ErrorKind::Value, layer, || format!("{name} must be at least 1, got 0"))
}

/// The positions of the channels and of the two dims of pixels.
#[track_caller]
fn places(op: &'static str, x: &Tensor, dim: usize, dims: &Positions, factor: usize) -> Result<[usize; 3]> {
    let caller = Location::caller();
    let fail = |kind, message: String| Error::new(kind, op, message).with_operands([x.shape()]).at(caller);
    match dims[..] {
        _ if factor == 0 => Err(fail(ErrorKind::Value, "the factor must be at least 1, got 0".into())),
        [high, wide] if ![high, wide].contains(&dim) => Ok([dim, high, wide]),
        _ => {
            let message = format!(
                "expected a dim of channels and two other dims, got {dim} and {:?} of {} dims",
                &dims[..],
                x.ndim()
            );
            Err(fail(ErrorKind::Shape, message))
        }
    }
}

/// `y` with the names of `x`.
#[track_caller]
fn named_as(x: &Tensor, y: Tensor) -> Result<Tensor> {
    y.rename(Some(x.names().clone()).filter(Names::is_named))
}
