//! Rearrangements of channels and pixels.

use super::*;

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
    pixel_shuffle (x; upscale_factor: usize, dim: Dim or -3, dims: Dims or [-2, -1])
        layer PixelShuffle (upscale_factor if at_least_one) => {
        let at = places(x, dim, &dims, upscale_factor)?;
        let (r, channels, mut made) = (upscale_factor, x.sizes()[dim], copied(x.sizes()));
        r.checked_mul(r).is_some_and(|square| channels.is_multiple_of(square))
            .or_shape(format_args!("the number of channels must be divisible by the square of upscale_factor, got {channels} channels and factor {r}"))?;
        let (split, order) = parts(x.sizes(), at, r);
        (made[at[0]], made[at[1]], made[at[2]]) = (made[at[0]] / (r * r), made[at[1]] * r, made[at[2]] * r);
        with_names(x.rename(None).reshape(split).permute(order).reshape(made)?, x.names())
    }
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
    pixel_unshuffle (x; downscale_factor: usize, dim: Dim or -3, dims: Dims or [-2, -1])
        layer PixelUnshuffle (downscale_factor if at_least_one) => {
        let at = places(x, dim, &dims, downscale_factor)?;
        let (r, mut made) = (downscale_factor, copied(x.sizes()));
        let (high, wide) = (made[at[1]], made[at[2]]);
        (high.is_multiple_of(r) && wide.is_multiple_of(r))
            .or_shape(format_args!("height and width must be divisible by downscale_factor, got {high} and {wide} and factor {r}"))?;
        (made[at[0]], made[at[1]], made[at[2]]) = (made[at[0]] * r * r, high / r, wide / r);
        let (split, order) = parts(&made, at, r);
        let apart: Vec<usize> = crate::list(order.iter().map(|part| split[*part]));
        with_names(moved_back(x.rename(None).reshape(apart)?, &order).reshape(made)?, x.names())
    }
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
    channel_shuffle (x; groups: usize, dim: Dim or 1)
        layer ChannelShuffle (groups if at_least_one) => {
        let sizes = x.sizes();
        let channels = sizes.get(dim).copied().unwrap_or(1);
        (x.ndim() > 0 && groups > 0 && channels.is_multiple_of(groups))
            .or_shape(format_args!("the number of channels must be divisible by groups, got {channels} channels and {groups} groups"))?;
        let split = [&sizes[..dim], &[groups, sizes[dim] / groups], &sizes[dim + 1..]].concat();
        with_names(x.rename(None).reshape(split).transpose(dim, dim + 1).reshape(sizes)?, x.names())
    }
}

/// Checks a factor or a number of groups of a layer.
#[track_caller]
fn at_least_one(layer: &'static str, name: &str, number: usize) -> Result<()> {
    Error::ensure(number > 0, ErrorKind::Value, layer, || format!("{name} must be at least 1, got 0"))
}

/// The positions of the channels and of the two dims of pixels.
fn places(x: &Tensor, dim: usize, dims: &[usize], factor: usize) -> Result<[usize; 3]> {
    match *dims {
        _ if factor == 0 => Err(value_error("the factor must be at least 1, got 0")),
        [high, wide] if ![high, wide].contains(&dim) => Ok([dim, high, wide]),
        _ => Err(shape_error(format_args!(
            "expected a dim of channels and two other dims, got {dim} and {dims:?} of {} dims",
            x.ndim()
        ))),
    }
}

/// The sizes of channels in which there are pixels, with the two factors as dims behind that of the channels;
/// and the order of these dims that moves each factor behind its dim of pixels.
fn parts(sizes: &[usize], [channel, high, wide]: [usize; 3], factor: usize) -> (Vec<usize>, Vec<usize>) {
    let (mut split, mut order) = (Vec::new(), Vec::new());
    for (dim, size) in sizes.iter().enumerate() {
        match dim == channel {
            true => split.extend([size / (factor * factor), factor, factor]),
            false => split.push(*size),
        }
        order.push(if dim > channel { dim + 2 } else { dim });
        order.extend((dim == high).then_some(channel + 1));
        order.extend((dim == wide).then_some(channel + 2));
    }
    (split, order)
}
