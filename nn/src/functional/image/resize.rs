//! Images resized by a size or by factors.

use super::*;
use namegrad_core::Category;
use namegrad_core::args::{Factors, Interpolation, Resize, SizesByDim, Windows};

/// The method by which [`interpolate`] makes the elements of a larger or smaller image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub enum InterpolateMode {
    /// The value of the element at the rounded-down position.
    #[default]
    Nearest,
    /// The value of the nearest element.
    NearestExact,
    /// Linearly, over one dim.
    Linear,
    /// Linearly, over two dims.
    Bilinear,
    /// With cubic polynomials, over two dims.
    Bicubic,
    /// Linearly, over three dims.
    Trilinear,
    /// The mean of an area.
    Area,
}

functional! { resize;
    /// Resizes images to `size`, or by `scale_factor`; one of the two is given.
    ///
    /// Pairs such as `[("H", 8), ("W", 6)]` say which dims are resized. A number for all dims or a list
    /// without names is for `dims`, by default the ones after the batch and the channels. With
    /// `align_corners`, the first and the last elements stay where they are; without, their outer edges. A
    /// scale factor is used for the positions as it is; with `recompute_scale_factor`, the quotient of the
    /// sizes is. `antialias` smooths images that become smaller.
    ///
    /// # Shapes
    /// - `x`: any dims that include those that are resized; without names, `[N, C, ..]` with one to three
    ///   dims after the channels
    /// - result: the dims of `x`, with the new sizes
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let images = Tensor::rand([("N", 2), ("H", 8), ("W", 6), ("C", 3)])?;
    /// let options = InterpolateOptions::new().mode(F::InterpolateMode::Bilinear);
    /// let y = F::interpolate_with(&images, [("H", 16), ("W", 9)], options)?;
    /// assert_eq!(y.shape().to_string(), "[N=2, H=16, W=9, C=3]");
    /// let twice = InterpolateOptions::new().scale_factor([("W", 2.0)]);
    /// assert_eq!(F::interpolate_with(&images, None, twice)?.shape().to_string(), "[N=2, H=8, W=12, C=3]");
    /// let x = Tensor::new([[[1.0, 2.0]]])?;
    /// assert_eq!(F::interpolate(&x, 4)?.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for sizes of 0, factors that are not positive, both or neither of them, or
    /// options that do not fit the mode; [`ErrorKind::Shape`] if the mode is for another number of dims;
    /// [`ErrorKind::Misaligned`] if sizes have no names, and one of the dims after the first two has a name of
    /// channels.
    interpolate (
        x; size: SizesByDim or SizesByDim::NONE, scale_factor: Factors = Factors::NONE,
        mode: InterpolateMode = InterpolateMode::Nearest, align_corners: Option<bool> = None,
        recompute_scale_factor: Option<bool> = None, antialias: bool = false, dims: SlidingDims = SlidingDims::NONE
    ) on floats integers layer Upsample => {
        use InterpolateMode::{Area, Bicubic, Bilinear, Nearest, NearestExact};
        let by_size = !size.is_none();
        let recomputed = recompute_scale_factor == Some(true);
        let cornered = align_corners.is_some() && matches!(mode, Nearest | NearestExact | Area);
        let wrong = [
            (!by_size && scale_factor.is_none(), "one of `size` and `scale_factor` must be given"),
            (by_size && !scale_factor.is_none(), "`size` and `scale_factor` say the same: give one of them"),
            (cornered, "`align_corners` is for the modes linear, bilinear, bicubic and trilinear"),
            (antialias && !matches!(mode, Bilinear | Bicubic), "`antialias` is for the modes bilinear and bicubic"),
            (by_size && recomputed, "`recompute_scale_factor` is for a scale factor, and a size is given"),
        ];
        if let Some((_, message)) = wrong.iter().find(|(is_wrong, _)| *is_wrong) {
            return Err(value_error(message));
        }
        let dims = match size.dims.clone().or(scale_factor.dims.clone()).or(dims) {
            Some(dims) => dims,
            None if (3..=5).contains(&x.ndim()) && mode.dims().is_none_or(|dims| dims + 2 == x.ndim()) => {
                check_last(x.ndim() - 2, x)?;
                range(2..x.ndim()).into()
            }
            None => {
                let (mode_name, ndim) = (format!("{mode:?}").to_lowercase(), x.ndim());
                let wanted = mode.dims().map_or("three to five".into(), |dims| (dims + 2).to_string());
                return Err(shape_error(format_args!(
                    "without names, an input of the mode {mode_name} has {wanted} dims, [N, C, ..], got {ndim}"
                )));
            }
        };
        if mode.dims().is_some_and(|wanted| wanted != dims.len()) || !(1..=3).contains(&dims.len()) {
            let message = format!("the mode {mode:?} is not for {} dims", dims.len());
            return Err(shape_error(message.to_lowercase()));
        }
        let lengths = sizes_of(x, &dims);
        let factors = if by_size { None } else { scale_factor.over(dims.len()) };
        let mut sizes = Vec::with_capacity(dims.len());
        match (&factors, size.over(dims.len())) {
            (Some(factors), _) => {
                for (length, factor) in lengths.iter().zip(factors) {
                    let made = *length as f64 * factor;
                    (factor.is_finite() && made >= 1.0 || *length == 0).or_value(format_args!(
                        "`scale_factor` must be positive and leave at least one element of {length}, got {factor}"
                    ))?;
                    ensure_memory(made < isize::MAX as f64, format_args!("{factor} times {length} elements"))?;
                    sizes.push(made as usize);
                }
            }
            (None, Some(given)) if by_size => {
                for size in given {
                    (size > 0).or_value(format_args!("the sizes must be at least 1, got {size}"))?;
                    sizes.push(size.unsigned_abs());
                }
            }
            _ => {
                let (sizes, factors) = (("size", size.numbers.len()), ("scale_factor", scale_factor.numbers.len()));
                let ((name, given), dims) = (if by_size { sizes } else { factors }, dims.len());
                return Err(value_error(format_args!("`{name}` must be one number or {dims}, one for each dim, got {given}")));
            }
        }
        if mode == Area {
            return avg_over(x, Windows::adaptive(&sizes[..]), &dims);
        }
        let mode = match mode {
            Nearest => Interpolation::Nearest,
            NearestExact => Interpolation::NearestExact,
            Bicubic => Interpolation::Cubic,
            _ => Interpolation::Linear,
        };
        let corners = align_corners == Some(true);
        let resize = Resize::to(&sizes[..]).mode(mode).align_corners(corners).antialias(antialias);
        let factors = factors.filter(|_| !recomputed);
        let resize = factors.as_ref().map_or(resize, |factors| resize.factors(factors));
        let in_floats = |x: &Tensor| x.resample(&dims, resize);
        match (x.dtype(), mode) {
            (dtype, Interpolation::Nearest | Interpolation::NearestExact)
                if dtype.category() == Category::Integer =>
            {
                let mut y = x.clone();
                for (at, dim) in dims.iter().enumerate() {
                    let one = Resize::to(sizes[at]).mode(mode);
                    let one = factors.as_ref().map_or(one, |factors| one.factors(&factors[at..=at]));
                    y = y.index_select(nearest(lengths[at], one)?, *dim)?;
                }
                Ok(y)
            }
            (DType::U8, _) => in_floats(&x.to(DType::F32)?).round().clamp(0.0, 255.0).to(DType::U8),
            _ => in_floats(x),
        }
    }
}

impl InterpolateMode {
    /// The number of dims that the mode is for, if there is only one.
    fn dims(self) -> Option<usize> {
        match self {
            InterpolateMode::Linear => Some(1),
            InterpolateMode::Bilinear | InterpolateMode::Bicubic => Some(2),
            InterpolateMode::Trilinear => Some(3),
            InterpolateMode::Nearest | InterpolateMode::NearestExact | InterpolateMode::Area => None,
        }
    }
}

/// The positions of the nearest elements along a dim.
fn nearest(length: usize, resize: Resize) -> Result<Tensor> {
    // `f32`, in which PyTorch computes them too, has all positions up to 2^24.
    let dtype = if length < 1 << 24 { DType::F32 } else { DType::F64 };
    let places = TensorOptions::new().dtype(dtype).arange(0, length as i64, 1)?;
    places.resample(0, resize).to(DType::I64)
}
