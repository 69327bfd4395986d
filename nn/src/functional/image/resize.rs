//! Images resized by a size or by factors.

use super::InterpolateMode;
use crate::dims::images::{about, fail};
use crate::functional::pool::avg_over;
use namegrad_autograd::chain::*;
use namegrad_autograd::{Tensor, TensorOptions};
use namegrad_core::args::{Interpolation, OfDims, Positions, Resize, Windows};
use namegrad_core::{Category, DType, ErrorKind, Result};
use std::panic::Location;

/// The options of [`interpolate`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Interpolate {
    pub(super) mode: InterpolateMode,
    pub(super) align_corners: Option<bool>,
    pub(super) recompute_scale_factor: Option<bool>,
    pub(super) antialias: bool,
}

impl Interpolate {
    /// Checks the options that do not depend on the input.
    fn check(self, by_size: bool) -> std::result::Result<(), &'static str> {
        use InterpolateMode::{Area, Bicubic, Bilinear, Nearest, NearestExact};
        if self.align_corners.is_some() && matches!(self.mode, Nearest | NearestExact | Area) {
            return Err("`align_corners` is for the modes linear, bilinear, bicubic and trilinear");
        }
        if self.antialias && !matches!(self.mode, Bilinear | Bicubic) {
            return Err("`antialias` is for the modes bilinear and bicubic");
        }
        if by_size && self.recompute_scale_factor == Some(true) {
            return Err("`recompute_scale_factor` is for a scale factor, and a size is given");
        }
        Ok(())
    }
}

/// Resizes images, for the function `op`.
#[track_caller]
pub(super) fn resized(
    op: &'static str,
    x: &Tensor,
    size: &OfDims<isize>,
    factor: &OfDims<f64>,
    how: Interpolate,
    dims: Option<Positions>,
) -> Result<Tensor> {
    let caller = Location::caller();
    let fail = |kind, message: String| fail(op, kind, message, &[x]).at(caller);
    if size.is_none() == factor.is_none() {
        let message = if size.is_none() {
            "one of `size` and `scale_factor` must be given"
        } else {
            "`size` and `scale_factor` say the same: give one of them"
        };
        return Err(fail(ErrorKind::Value, message.into()));
    }
    how.check(!size.is_none()).map_err(|message| fail(ErrorKind::Value, message.into()))?;
    let dims = match size.dims.clone().or(factor.dims.clone()).or(dims) {
        Some(dims) => dims,
        None if (3..=5).contains(&x.ndim()) && how.mode.dims().is_none_or(|dims| dims + 2 == x.ndim()) => {
            (2..x.ndim()).collect()
        }
        None => {
            let wanted = how.mode.dims().map_or("three to five".into(), |dims| (dims + 2).to_string());
            let message = format!(
                "without names, an input of the mode {:?} has {wanted} dims, [N, C, ..], got {}",
                how.mode,
                x.ndim()
            );
            let error = fail(ErrorKind::Shape, message.to_lowercase().replace("[n, c, ..]", "[N, C, ..]"));
            return Err(error.with_repair("say the dims, as in [(\"H\", 8), (\"W\", 8)]"));
        }
    };
    if how.mode.dims().is_some_and(|wanted| wanted != dims.len()) || !(1..=3).contains(&dims.len()) {
        let message = format!("the mode {:?} is not for {} dims", how.mode, dims.len()).to_lowercase();
        return Err(fail(ErrorKind::Shape, message));
    }
    let lengths: Vec<usize> = dims.iter().map(|dim| x.sizes()[*dim]).collect();
    let count = |name: &str, given: usize| {
        let message = format!("`{name}` must be one number or {}, one for each dim, got {given}", dims.len());
        fail(ErrorKind::Value, message)
    };
    let factors = match factor.is_none() {
        true => None,
        false => Some(factor.over(dims.len()).ok_or_else(|| count("scale_factor", factor.numbers.len()))?),
    };
    let sizes: Vec<usize> = match &factors {
        None => {
            let sizes = size.over(dims.len()).ok_or_else(|| count("size", size.numbers.len()))?;
            if let Some(size) = sizes.iter().find(|size| **size < 1) {
                return Err(fail(ErrorKind::Value, format!("the sizes must be at least 1, got {size}")));
            }
            sizes.into_iter().map(isize::unsigned_abs).collect()
        }
        Some(factors) => {
            let mut sizes = Vec::with_capacity(dims.len());
            for (length, factor) in lengths.iter().zip(factors) {
                let made = *length as f64 * factor;
                if !(factor.is_finite() && made >= 1.0) && *length > 0 {
                    let message = format!(
                        "`scale_factor` must be positive and leave at least one element of {length}, got {factor}"
                    );
                    return Err(fail(ErrorKind::Value, message));
                }
                if made >= isize::MAX as f64 {
                    let message = format!("out of memory: {factor} times {length} elements");
                    return Err(fail(ErrorKind::OutOfMemory, message));
                }
                sizes.push(made as usize);
            }
            sizes
        }
    };
    if how.mode == InterpolateMode::Area {
        return avg_over(op, x, Windows::adaptive(&sizes[..]), &dims);
    }
    let mode = match how.mode {
        InterpolateMode::Nearest => Interpolation::Nearest,
        InterpolateMode::NearestExact => Interpolation::NearestExact,
        InterpolateMode::Bicubic => Interpolation::Cubic,
        _ => Interpolation::Linear,
    };
    let mut resize = Resize::to(&sizes[..])
        .mode(mode)
        .align_corners(how.align_corners == Some(true))
        .antialias(how.antialias);
    let factors = factors.filter(|_| how.recompute_scale_factor != Some(true));
    if let Some(factors) = &factors {
        resize = resize.factors(factors);
    }
    let in_floats = |x: &Tensor| x.resample(&dims, resize).map_err(|error| about(error, op, &[x]).at(caller));
    match (x.dtype(), mode) {
        (dtype, Interpolation::Nearest | Interpolation::NearestExact)
            if dtype.category() == Category::Integer =>
        {
            let mut y = x.clone();
            for (at, dim) in dims.iter().enumerate() {
                let mut one = Resize::to(sizes[at]).mode(mode);
                if let Some(factors) = &factors {
                    one = one.factors(&factors[at..=at]);
                }
                y = y.index_select(nearest(op, x, lengths[at], one)?, *dim)?;
            }
            Ok(y)
        }
        (DType::U8, _) => in_floats(&x.to(DType::F32)?).round().clamp(0.0, 255.0).to(DType::U8),
        _ => in_floats(x),
    }
}

/// The positions of the nearest elements along a dim.
#[track_caller]
fn nearest(op: &'static str, x: &Tensor, length: usize, resize: Resize) -> Result<Tensor> {
    // `f32`, in which PyTorch computes them too, has all positions up to 2^24.
    let dtype = if length < 1 << 24 { DType::F32 } else { DType::F64 };
    let places = TensorOptions::new().dtype(dtype).arange(0, length as i64, 1)?;
    places.resample(0, resize).map_err(|error| about(error, op, &[x])).to(DType::I64)
}
