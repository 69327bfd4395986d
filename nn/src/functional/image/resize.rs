//! Images resized by a size or by factors.

use super::InterpolateMode;
use super::*;
use crate::functional::pool::avg_over;
use namegrad_core::Category;
use namegrad_core::args::{Interpolation, OfDims, Resize, Windows};

/// The options of [`interpolate`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Interpolate {
    pub(super) mode: InterpolateMode,
    pub(super) align_corners: Option<bool>,
    pub(super) recompute_scale_factor: Option<bool>,
    pub(super) antialias: bool,
}

/// Resizes images.
pub(super) fn resized(
    x: &Tensor,
    size: &OfDims<isize>,
    factor: &OfDims<f64>,
    how: Interpolate,
    dims: Option<Positions>,
) -> Result<Tensor> {
    use InterpolateMode::{Area, Bicubic, Bilinear, Nearest, NearestExact};
    let Interpolate { mode, align_corners, recompute_scale_factor, antialias } = how;
    let by_size = !size.is_none();
    let recomputed = recompute_scale_factor == Some(true);
    let cornered = align_corners.is_some() && matches!(mode, Nearest | NearestExact | Area);
    let wrong = [
        (!by_size && factor.is_none(), "one of `size` and `scale_factor` must be given"),
        (by_size && !factor.is_none(), "`size` and `scale_factor` say the same: give one of them"),
        (cornered, "`align_corners` is for the modes linear, bilinear, bicubic and trilinear"),
        (
            antialias && !matches!(mode, Bilinear | Bicubic),
            "`antialias` is for the modes bilinear and bicubic",
        ),
        (by_size && recomputed, "`recompute_scale_factor` is for a scale factor, and a size is given"),
    ];
    if let Some((_, message)) = wrong.iter().find(|(is_wrong, _)| *is_wrong) {
        return Err(value_error(message));
    }
    let dims = match size.dims.clone().or(factor.dims.clone()).or(dims) {
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
    let factors = if by_size { None } else { factor.over(dims.len()) };
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
            let (name, dims) = (if by_size { "size" } else { "scale_factor" }, dims.len());
            let given = if by_size { size.numbers.len() } else { factor.numbers.len() };
            return Err(value_error(format_args!(
                "`{name}` must be one number or {dims}, one for each dim, got {given}"
            )));
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

/// The positions of the nearest elements along a dim.
fn nearest(length: usize, resize: Resize) -> Result<Tensor> {
    // `f32`, in which PyTorch computes them too, has all positions up to 2^24.
    let dtype = if length < 1 << 24 { DType::F32 } else { DType::F64 };
    let places = TensorOptions::new().dtype(dtype).arange(0, length as i64, 1)?;
    places.resample(0, resize).to(DType::I64)
}
