//! Padding, resizing and sampling of images.

use super::layout::{about, fail};
use super::pool::{SlidingDims, avg_over};
use namegrad_autograd::{Tensor, TensorOptions};
use namegrad_core::args::{
    Factors, Interpolation, OfDims, OpenShape, Outside, Pads, Positions, Resize, Sampling, SizesByDim,
    Windows,
};
use namegrad_core::names::{Name, Names};
use namegrad_core::{Category, DType, ErrorKind, Result, Scalar, plain};
use namegrad_macros::functional;
use std::panic::Location;

/// What [`pad`] puts outside of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PadMode {
    /// A number.
    #[default]
    Constant,
    /// The elements in reverse, without the one at the edge.
    Reflect,
    /// The element at the edge.
    Replicate,
    /// The elements from the other end.
    Circular,
}
plain! {
    PadMode: [
        "constant" = PadMode::Constant, "reflect" = PadMode::Reflect, "replicate" = PadMode::Replicate,
        "circular" = PadMode::Circular,
    ]
}

/// How [`interpolate`] makes the elements of a larger or smaller image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterpolateMode {
    /// Of the element at the rounded-down position.
    #[default]
    Nearest,
    /// Of the nearest element.
    NearestExact,
    /// Linearly, over one dim.
    Linear,
    /// Linearly, over two dims.
    Bilinear,
    /// With cubic polynomials, over two dims.
    Bicubic,
    /// Linearly, over three dims.
    Trilinear,
    /// As the mean of an area.
    Area,
}
plain! {
    InterpolateMode: [
        "nearest" = InterpolateMode::Nearest, "nearest-exact" = InterpolateMode::NearestExact,
        "linear" = InterpolateMode::Linear, "bilinear" = InterpolateMode::Bilinear,
        "bicubic" = InterpolateMode::Bicubic, "trilinear" = InterpolateMode::Trilinear, "area" = InterpolateMode::Area,
    ]
}

/// How [`grid_sample`] makes an element between elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleMode {
    /// Linearly of those beside it, over two dims or three.
    #[default]
    Bilinear,
    /// Of the nearest one.
    Nearest,
    /// With cubic polynomials, over two dims.
    Bicubic,
}
plain! {
    SampleMode: [
        "bilinear" = SampleMode::Bilinear, "nearest" = SampleMode::Nearest, "bicubic" = SampleMode::Bicubic,
    ]
}

functional! { image;
    /// Adds elements before and after dims, or removes them if their number is negative.
    ///
    /// The numbers are pairs of a dim and what is added before and after it, or PyTorch's list: the two
    /// numbers for the last dim, those for the dim before it, and so on. `mode` says what is added, by
    /// default `value`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0, 3.0]])?.refine_names(["H", "W"])?;
    /// let y = F::pad(&x, [("H", (0, 1)), ("W", (1, 0))])?;
    /// assert_eq!(y.shape().to_string(), "[H=2, W=4]");
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0]);
    /// assert!(y.equal(&F::pad(&x, [1, 0, 0, 1])?)?);
    /// let mirrored = F::pad_with(&x, [("W", 2)], PadOptions::new().mode(F::PadMode::Reflect))?;
    /// assert_eq!(mirrored.to_vec::<f32>()?, [3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for an odd number of numbers, if more elements are removed than there are, if
    /// there are not as many elements as are repeated, and for a `value` of another mode than
    /// [`PadMode::Constant`].
    pad (x; pad: Pads, mode: PadMode = PadMode::Constant, value: Scalar = 0) names "keeps input names";
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
    /// options that do not fit the mode; [`ErrorKind::Shape`] if the mode is for another number of dims.
    interpolate (
        x; size: SizesByDim or SizesByDim::NONE, scale_factor: Factors = Factors::NONE,
        mode: InterpolateMode = InterpolateMode::Nearest, align_corners: Option<bool> = None,
        recompute_scale_factor: Option<bool> = None, antialias: bool = false, dims: SlidingDims = SlidingDims::LAST
    ) on floats integers names "keeps input names";
    /// The elements of images at the positions of a grid, which are from -1 to 1 inside of an image. The
    /// first coordinate is that of the last dim.
    ///
    /// `dims` are the spatial dims of `x`, by default the last ones, as many as the grid has coordinates. The
    /// grid has dims with these names, or its last dims before the coordinates are for them. Its other dims
    /// are batch dims, which `x` has as well, found by name or by position. All other dims of `x` are
    /// channels, for which the positions are the same.
    ///
    /// # Shapes
    /// - `x`: `[N, C, H, W]`, or `[N, C, D, H, W]`; any order of dims if the grid has names
    /// - `grid`: `[N, H', W', 2]`, or `[N, D', H', W', 3]`
    /// - result: the dims of `x`, with the sizes of the grid
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let image = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.refine_names(["H", "W"])?;
    /// let points = Tensor::new([[[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]]])?;
    /// let y = F::grid_sample_with(&image, &points, GridSampleOptions::new().align_corners(true))?;
    /// assert_eq!(y.shape().to_string(), "[H=1, W=3]");
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.5, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes do not fit, [`ErrorKind::DType`] if the dtypes differ,
    /// [`ErrorKind::NameMismatch`] if `x` lacks a batch dim of the grid.
    grid_sample (
        x, grid; mode: SampleMode = SampleMode::Bilinear, padding_mode: Outside = Outside::Zeros,
        align_corners: bool = false, dims: SlidingDims = SlidingDims::LAST
    ) on floats names "keeps input names";
    /// The positions of [`grid_sample`] for affine maps of images of `size`: for each element of the result,
    /// the place `theta · (x, y, 1)` in the input.
    ///
    /// # Shapes
    /// - `theta`: `[N, 2, 3]`, or `[N, 3, 4]` for three dims
    /// - `size`: `[N, C, H, W]`, or `[N, C, D, H, W]`, with or without names
    /// - result: `[N, H, W, 2]`, or `[N, D, H, W, 3]`, with the names of `size`
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let mirror = Tensor::new([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])?;
    /// let x = Tensor::new([[[[1.0, 2.0, 3.0]]]])?.refine_names(["N", "C", "H", "W"])?;
    /// let grid = F::affine_grid(&mirror, [("N", 1), ("C", 1), ("H", 1), ("W", 3)])?;
    /// assert_eq!(grid.shape().to_string(), "[N=1, H=1, W=3, ?=2]");
    /// assert!(F::grid_sample(&x, &grid)?.allclose(&x.flip("W")?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes do not fit, [`ErrorKind::Value`] for a size of 0,
    /// [`ErrorKind::DType`] unless `theta` is floating-point.
    affine_grid (theta; size: Shape, align_corners: bool = false) on floats
        names "gives the names of `size` without the second, and an unnamed dim";
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

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn pad(
        x: &Tensor,
        pad: Vec<(usize, [isize; 2])>,
        mode: PadMode,
        value: Scalar,
    ) -> Result<Tensor> {
        const OP: &str = "pad";
        if mode == PadMode::Constant {
            return with_constant(OP, x, &pad, value);
        }
        if value.to_f64() != 0.0 {
            let message = format!("`value` is for constant padding, and the mode is {mode:?}").to_lowercase();
            return Err(fail(OP, ErrorKind::Value, message, &[x]));
        }
        repeated(OP, x, &pad, mode)
    }

    #[track_caller]
    pub(super) fn interpolate(
        x: &Tensor,
        size: OfDims<isize>,
        scale_factor: OfDims<f64>,
        mode: InterpolateMode,
        align_corners: Option<bool>,
        recompute_scale_factor: Option<bool>,
        antialias: bool,
        dims: Option<Positions>,
    ) -> Result<Tensor> {
        let how = Interpolate { mode, align_corners, recompute_scale_factor, antialias };
        resized("interpolate", x, &size, &scale_factor, how, dims)
    }

    #[track_caller]
    pub(super) fn grid_sample(
        x: &Tensor,
        grid: &Tensor,
        mode: SampleMode,
        padding_mode: Outside,
        align_corners: bool,
        dims: Option<Positions>,
    ) -> Result<Tensor> {
        const OP: &str = "grid_sample";
        let mode = match mode {
            SampleMode::Bilinear => Interpolation::Linear,
            SampleMode::Nearest => Interpolation::NearestExact,
            SampleMode::Bicubic => Interpolation::Cubic,
        };
        let sampling = Sampling::new(mode).outside(padding_mode).align_corners(align_corners);
        let places = Places::find(OP, x, grid, dims)?;
        let [images, positions] = places.apply(x, grid)?;
        let y = images.sample_at(&positions, sampling).map_err(|error| about(error, OP, &[x, grid]))?;
        places.restore(y, x, grid)
    }

    #[track_caller]
    pub(super) fn affine_grid(theta: &Tensor, size: OpenShape, align_corners: bool) -> Result<Tensor> {
        const OP: &str = "affine_grid";
        let caller = Location::caller();
        let fail = |kind, message: String| fail(OP, kind, message, &[theta]).at(caller);
        theta.value().check_float(OP)?;
        let sizes: Option<Vec<usize>> = size.iter().map(|dim| dim.size).collect();
        let sizes = sizes.filter(|sizes| sizes.len() < 3 || !sizes.contains(&0));
        let Some(sizes) = sizes else {
            return Err(fail(ErrorKind::Value, "the sizes of the images must be at least 1".into()));
        };
        let dims = sizes.len().saturating_sub(2);
        if !(2..=3).contains(&dims) {
            let message = format!("expected the sizes [N, C, H, W] or [N, C, D, H, W], got {sizes:?}");
            return Err(fail(ErrorKind::Shape, message));
        }
        if *theta.sizes() != [sizes[0], dims, dims + 1] {
            let message = format!(
                "maps of {} images with {dims} dims have sizes [{}, {dims}, {}], got {:?}",
                sizes[0],
                sizes[0],
                dims + 1,
                theta.sizes()
            );
            return Err(fail(ErrorKind::Shape, message));
        }
        let grid = positions(&sizes[2..], align_corners, theta.dtype())?
            .matmul(&theta.rename(None)?.contiguous()?.transpose(1, 2)?)
            .map_err(|error| about(error, OP, &[theta]))?;
        let shape: Vec<usize> = [&sizes[..1], &sizes[2..], &[dims]].concat();
        let mut names: Vec<Option<Name>> = size.iter().map(|dim| dim.name).collect();
        names.remove(1);
        names[0] = names[0].or(theta.name(0));
        names.push(None);
        let (grid, names) = (grid.reshape(shape)?, Names::new(OP, names)?);
        if names.is_named() { grid.rename(Some(names)) } else { Ok(grid) }
    }
}

/// The centers of the elements of an image in its own coordinates, each with a 1: `[elements, dims + 1]`.
#[track_caller]
fn positions(sizes: &[usize], align_corners: bool, dtype: DType) -> Result<Tensor> {
    let place = |at: usize, n: usize| match align_corners {
        _ if n == 1 => 0.0,
        true => 2.0 * at as f64 / (n - 1) as f64 - 1.0,
        false => (2 * at + 1) as f64 / n as f64 - 1.0,
    };
    let last = sizes.len();
    // Sizes whose product is too large for memory are refused here.
    let mut x = TensorOptions::new().dtype(DType::F64).ones([sizes, &[last + 1]].concat())?;
    let count: usize = sizes.iter().product();
    let mut numbers = Vec::with_capacity(count * (last + 1));
    for mut at in 0..count {
        for n in sizes.iter().rev() {
            numbers.push(place(at % n, *n));
            at /= n;
        }
        numbers.push(1.0);
    }
    x = Tensor::from_slice(&numbers, [count, last + 1]).inspect(|_| drop(x))?;
    x.to(dtype)
}

/// Checks what is added to a dim, and returns its new length.
#[track_caller]
fn padded_length(op: &'static str, x: &Tensor, dim: usize, [before, after]: [isize; 2]) -> Result<usize> {
    let length = x.sizes()[dim];
    let made = (length as isize).checked_add(before).and_then(|made| made.checked_add(after));
    let fewer = before.min(0).saturating_add(after.min(0)).unsigned_abs();
    match made {
        Some(made) if fewer <= length => Ok(made as usize),
        Some(_) => {
            let message = format!("{fewer} elements cannot be removed from a length of {length}");
            Err(fail(op, ErrorKind::Value, message, &[x]))
        }
        None => {
            let message = format!("out of memory: {before} and {after} elements more than {length}");
            Err(fail(op, ErrorKind::OutOfMemory, message, &[x]))
        }
    }
}

/// `x` without the elements that negative numbers remove.
#[track_caller]
fn cropped(x: &Tensor, dim: usize, [before, after]: [isize; 2]) -> Result<Tensor> {
    let [start, end] = [before, after].map(|pad| pad.min(0).unsigned_abs());
    match start + end {
        0 => Ok(x.clone()),
        fewer => x.narrow(dim, start, x.sizes()[dim].saturating_sub(fewer)),
    }
}

#[track_caller]
fn with_constant(
    op: &'static str,
    x: &Tensor,
    pads: &[(usize, [isize; 2])],
    value: Scalar,
) -> Result<Tensor> {
    let (mut y, caller) = (x.clone(), Location::caller());
    for (dim, pad) in pads.iter().filter(|(_, pad)| *pad != [0, 0]) {
        padded_length(op, x, *dim, *pad)?;
        let kept = cropped(&y, *dim, *pad)?;
        let side = |count: isize| -> Result<Option<Tensor>> {
            if count <= 0 {
                return Ok(None);
            }
            let mut sizes = y.sizes().to_vec();
            sizes[*dim] = count.unsigned_abs();
            y.new_full(sizes, value).map(Some).map_err(|error| about(error, op, &[x]).at(caller))
        };
        let (before, after) = (side(pad[0])?, side(pad[1])?);
        let parts: Vec<&Tensor> = before.iter().chain([&kept]).chain(&after).collect();
        y = if parts.len() > 1 {
            Tensor::cat(&parts, *dim).map_err(|error| about(error, op, &[x]))?
        } else {
            kept
        };
    }
    Ok(y)
}

/// `x` with copies of its own elements before and after dims, for the function or layer `op`.
#[track_caller]
pub(crate) fn repeated(
    op: &'static str,
    x: &Tensor,
    pads: &[(usize, [isize; 2])],
    mode: PadMode,
) -> Result<Tensor> {
    let mut y = x.clone();
    for (dim, pad) in pads.iter().filter(|(_, pad)| *pad != [0, 0]) {
        let length = x.sizes()[*dim];
        let most = match mode {
            PadMode::Reflect => length.saturating_sub(1),
            PadMode::Circular => length,
            _ if length == 0 => 0,
            _ => isize::MAX as usize,
        };
        let more = pad[0].max(pad[1]);
        let mut made = padded_length(op, x, *dim, *pad)?;
        let fewer: usize = pad.iter().map(|pad| pad.min(&0).unsigned_abs()).sum();
        if mode == PadMode::Circular && fewer == length {
            made = 0; // nothing is left to repeat
        }
        if more > 0 && more.unsigned_abs() > most || made == 0 {
            let mode = format!("{mode:?}").to_lowercase();
            let message = match made {
                0 => format!(
                    "{mode} padding by {} and {} leaves nothing of a length of {length}",
                    pad[0], pad[1]
                ),
                _ => format!("{mode} padding of a length of {length} can be at most {most}, got {more}"),
            };
            return Err(fail(op, ErrorKind::Value, message, &[x]));
        }
        let mut places: Vec<i64> = Vec::new();
        if places.try_reserve_exact(made).is_err() {
            let message = format!("out of memory: a length of {made}");
            return Err(fail(op, ErrorKind::OutOfMemory, message, &[x]));
        }
        // The elements of the other end are those that are left; reflected are those that there were.
        let (first, last) = match mode {
            PadMode::Circular => (-pad[0].min(0) as i64, length as i64 - 1 + pad[1].min(0) as i64),
            _ => (0, length as i64 - 1),
        };
        let start = -(pad[0] as i64);
        places.extend((start..start + made as i64).map(|at| match mode {
            PadMode::Circular => first + (at - first).rem_euclid(last - first + 1),
            PadMode::Reflect if at < 0 => -at,
            PadMode::Reflect if at > last => 2 * last - at,
            _ => at.clamp(0, last),
        }));
        let index = Tensor::from_slice(&places, [made])?;
        y = y.index_select(index, *dim).map_err(|error| about(error, op, &[x]))?;
    }
    Ok(y)
}

/// The options of [`interpolate`].
#[derive(Clone, Copy, Debug)]
struct Interpolate {
    mode: InterpolateMode,
    align_corners: Option<bool>,
    recompute_scale_factor: Option<bool>,
    antialias: bool,
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
fn resized(
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
        (DType::U8, _) => in_floats(&x.to(DType::F32)?)?.round()?.clamp(0.0, 255.0)?.to(DType::U8),
        _ => in_floats(x),
    }
}

/// The positions of the nearest elements along a dim.
#[track_caller]
fn nearest(op: &'static str, x: &Tensor, length: usize, resize: Resize) -> Result<Tensor> {
    // `f32`, in which PyTorch computes them too, has all positions up to 2^24.
    let dtype = if length < 1 << 24 { DType::F32 } else { DType::F64 };
    let places = TensorOptions::new().dtype(dtype).arange(0, length as i64, 1)?;
    places.resample(0, resize).map_err(|error| about(error, op, &[x]))?.to(DType::I64)
}

/// Where the dims of images and of a grid are.
struct Places {
    /// The batch dims of the images, and the same ones of the grid.
    batch: Vec<(usize, usize)>,
    channels: Vec<usize>,
    /// The spatial dims of the images, and the same ones of the grid.
    spatial: Vec<(usize, usize)>,
}

impl Places {
    #[track_caller]
    fn find(op: &'static str, x: &Tensor, grid: &Tensor, dims: Option<Positions>) -> Result<Places> {
        let caller = Location::caller();
        let fail = |kind, message: String| fail(op, kind, message, &[x, grid]).at(caller);
        let coordinates = grid.sizes().last().copied().unwrap_or(0);
        let by_dims = dims.is_some();
        let spatial: Positions = match dims {
            Some(dims) => dims,
            None => (x.ndim().saturating_sub(coordinates)..x.ndim()).collect(),
        };
        // Without names, the dims are PyTorch's.
        let layout = x.has_names() || by_dims || x.ndim() == coordinates + 2 && grid.ndim() == x.ndim();
        if !layout {
            let message = format!(
                "expected images [N, C, H, W] and a grid [N, H', W', 2], or [N, C, D, H, W] and [N, D', H', W', 3], got {:?} and {:?}",
                x.sizes(),
                grid.sizes()
            );
            return Err(fail(ErrorKind::Shape, message));
        }
        if !(1..=3).contains(&coordinates) || spatial.len() != coordinates || grid.ndim() < coordinates + 1 {
            let message = format!(
                "a grid has as many coordinates in its last dim as the images have spatial dims, and as many dims before it; this one has {coordinates} for {}",
                spatial.len()
            );
            return Err(fail(ErrorKind::Shape, message));
        }
        let last = grid.ndim() - 1;
        let by_name: Option<Vec<usize>> =
            spatial.iter().map(|dim| grid.names().position(x.name(*dim)?).filter(|at| *at < last)).collect();
        let made = by_name.unwrap_or_else(|| (last - coordinates..last).collect());
        let mut left: Vec<usize> = (0..x.ndim()).filter(|dim| !spatial.contains(dim)).collect();
        let mut batch = Vec::new();
        let of_grid: Vec<usize> = (0..last).filter(|dim| !made.contains(dim)).collect();
        // Those with names first, so that the others do not take their dims.
        for at in of_grid.iter().copied().filter(|at| grid.name(*at).is_some()) {
            let found = grid.name(at).and_then(|name| x.names().position(name));
            if let Some(dim) = found.filter(|dim| left.contains(dim)) {
                left.retain(|other| *other != dim);
                batch.push((dim, at));
            }
        }
        for at in of_grid {
            if batch.iter().any(|(_, found)| *found == at) {
                continue;
            }
            let fits = |dim: &usize| x.name(*dim).is_none() || grid.name(at).is_none();
            let Some(dim) = left.first().copied().filter(fits) else {
                let name = grid.name(at).map_or(format!("dim {at}"), |name| format!("the dim '{name}'"));
                return Err(fail(ErrorKind::NameMismatch, format!("the images lack {name} of the grid")));
            };
            left.remove(0);
            batch.push((dim, at));
        }
        for (dim, at) in &batch {
            let (images, grids) = (x.sizes()[*dim], grid.sizes()[*at]);
            if images != grids {
                let error = fail(ErrorKind::Shape, format!("there are {images} images and {grids} grids"));
                return Err(error.with_repair("a grid without a batch dim is for all images"));
            }
        }
        Ok(Places { batch, channels: left, spatial: spatial.into_iter().zip(made).collect() })
    }

    /// The images `[batch, channels, spatial..]` and the grid `[batch, positions.., coordinates]`.
    #[track_caller]
    fn apply(&self, x: &Tensor, grid: &Tensor) -> Result<[Tensor; 2]> {
        let count = |x: &Tensor, dims: &[usize]| dims.iter().map(|dim| x.sizes()[*dim]).product::<usize>();
        let (batch, of_grid): (Vec<usize>, Vec<usize>) = self.batch.iter().copied().unzip();
        let (spatial, made): (Vec<usize>, Vec<usize>) = self.spatial.iter().copied().unzip();
        let mut sizes = vec![count(x, &batch), count(x, &self.channels)];
        sizes.extend(spatial.iter().map(|dim| x.sizes()[*dim]));
        let images = x.rename(None)?.permute(self.order())?.reshape(sizes)?;
        let mut sizes = vec![count(grid, &of_grid)];
        sizes.extend(made.iter().map(|dim| grid.sizes()[*dim]));
        sizes.push(made.len());
        let order = [&of_grid[..], &made, &[grid.ndim() - 1]].concat();
        Ok([images, grid.rename(None)?.permute(order)?.reshape(sizes)?])
    }

    /// The dims of the images in the order of the op.
    fn order(&self) -> Vec<usize> {
        let batch = self.batch.iter().map(|(dim, _)| *dim);
        batch.chain(self.channels.iter().copied()).chain(self.spatial.iter().map(|(dim, _)| *dim)).collect()
    }

    /// The result with the dims of the images, and their names or those of the grid.
    #[track_caller]
    fn restore(&self, y: Tensor, x: &Tensor, grid: &Tensor) -> Result<Tensor> {
        let order = self.order();
        let mut names: Vec<Option<Name>> = (0..x.ndim()).map(|dim| x.name(dim)).collect();
        for (dim, at) in self.spatial.iter().chain(&self.batch) {
            names[*dim] = names[*dim].or(grid.name(*at));
        }
        let others = order.iter().take(order.len() - self.spatial.len()).map(|dim| x.sizes()[*dim]);
        let sizes: Vec<usize> = others.chain(self.spatial.iter().map(|(_, at)| grid.sizes()[*at])).collect();
        let mut inverse = order.clone();
        order.iter().enumerate().for_each(|(at, dim)| inverse[*dim] = at);
        let y = y.reshape(sizes)?.permute(inverse)?;
        let names = Names::new("grid_sample", names)
            .map_err(|error| error.with_operands([x.shape(), grid.shape()]))?;
        if names.is_named() { y.rename(Some(names)) } else { Ok(y) }
    }
}
