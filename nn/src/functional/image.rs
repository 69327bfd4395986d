//! Padding and sampling of images, and affine grids. `resize` has the function that resizes; `padding` and
//! `grid` have the work behind the functions here.

mod grid;
mod padding;
pub(super) mod resize;

pub(crate) use padding::{repeated, with_constant};

use super::*;
use grid::{GridDims, positions};
use namegrad_core::args::{Interpolation, Outside, Pads, Sampling};

/// The values that [`pad`] puts around a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
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

/// The method by which [`grid_sample`] interpolates between elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub enum SampleMode {
    /// Linearly of those beside it, over two dims or three.
    #[default]
    Bilinear,
    /// The value of the nearest element.
    Nearest,
    /// With cubic polynomials, over two dims.
    Bicubic,
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
    pad (x; pad: Pads, mode: PadMode = PadMode::Constant, value: Scalar = 0)
        layer ConstantPad (mode = PadMode::Constant, value)
        layer ZeroPad (mode = PadMode::Constant, value = 0)
        layer ReflectionPad (mode = PadMode::Reflect, value = 0)
        layer ReplicationPad (mode = PadMode::Replicate, value = 0)
        layer CircularPad (mode = PadMode::Circular, value = 0) => {
        if mode == PadMode::Constant {
            return with_constant(x, &pad, value);
        }
        if value.to_f64() != 0.0 {
            let message = format!("`value` is for constant padding, and the mode is {mode:?}");
            return Err(value_error(message.to_lowercase()));
        }
        repeated(x, &pad, mode)
    }
    /// The elements of images at the positions of a grid, which are from -1 to 1 inside of an image. The
    /// first coordinate is that of the last dim.
    ///
    /// `dims` are the spatial dims of `x`. By default, these are the dims with the names of the last dims of
    /// the grid before the coordinates, or the last dims of `x`, as many as there are coordinates. If both
    /// tensors have all of these dims, they must be the same in the same order, after the batch dims; only a
    /// batch dim called `N`, `B` or `batch` can be anywhere in `x`. Otherwise `dims` is needed.
    /// The grid has dims with these names, or its last dims before the coordinates are for them. Its other
    /// dims are batch dims, which `x` has as well, found by name or by position. All other dims of `x` are
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
    /// [`ErrorKind::NameMismatch`] if `x` lacks a batch dim of the grid, [`ErrorKind::Misaligned`] without
    /// `dims` if the last dims of `x` and of the grid are not the same in one order, or if the grid does not
    /// name the spatial dims and one of the last dims has a name of channels; also if an unnamed dim of the
    /// grid would be for channels.
    grid_sample (
        x, grid; mode: SampleMode = SampleMode::Bilinear, padding_mode: Outside = Outside::Zeros,
        align_corners: bool = false, dims: SlidingDims = SlidingDims::NONE
    ) on floats names keeps, grid: picks dims => {
        let mode = match mode {
            SampleMode::Bilinear => Interpolation::Linear,
            SampleMode::Nearest => Interpolation::NearestExact,
            SampleMode::Bicubic => Interpolation::Cubic,
        };
        let sampling = Sampling::new(mode).outside(padding_mode).align_corners(align_corners);
        let places = GridDims::find(x, grid, dims)?;
        let [images, positions] = places.apply(x, grid)?;
        let y = images.sample_at(&positions, sampling)?;
        places.restore(y, x)
    }
    /// The positions of [`grid_sample`] for affine maps of images of `size`: for each element of the result,
    /// the place `theta · (x, y, 1)` in the input.
    ///
    /// # Shapes
    /// - `theta`: `[N, 2, 3]`, or `[N, 3, 4]` for three dims
    /// - `size`: `[N, C, H, W]`, or `[N, C, D, H, W]`, with or without names, in this order
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
    /// [`ErrorKind::Misaligned`] if a dim other than the first of `size` is called as a batch is, or one other
    /// than the second as channels are, [`ErrorKind::DType`] unless `theta` is floating-point.
    affine_grid (theta; size: Shape, align_corners: bool = false) on floats
        names removes, size: matched => {
        theta.value().check_float(op)?;
        let sizes: Vec<usize> = crate::list(size.iter().map(|dim| dim.size.unwrap_or(0)));
        let dims = sizes.len().saturating_sub(2);
        let wanted = [sizes.first().copied().unwrap_or(0), dims, dims + 1];
        (sizes.len() < 3 || !is_in(&sizes, 0))
            .or_value("the sizes of the images must be at least 1")?;
        (2..=3).contains(&dims)
            .or_shape(format_args!("expected the sizes [N, C, H, W] or [N, C, D, H, W], got {sizes:?}"))?;
        (*theta.sizes() == wanted)
            .or_shape(format_args!("maps of {} images with {dims} dims have sizes {wanted:?}, got {:?}", wanted[0], theta.sizes()))?;
        let mut names: Vec<Option<Name>> = crate::list(size.iter().map(|dim| dim.name));
        check_maps(theta, &names)?;
        let maps = theta.rename(None).contiguous().transpose(1, 2)?;
        let grid = positions(&sizes[2..], align_corners, theta.dtype()).matmul(&maps)?;
        let shape: Vec<usize> = [&sizes[..1], &sizes[2..], &[dims]].concat();
        names.remove(1);
        names[0] = names[0].or(theta.name(0));
        names.push(None);
        with_names(grid.reshape(shape)?, &Names::new("", names)?)
    }
}

/// Checks the names of affine maps of images with these names: the first dim is the batch, and the others are
/// none of theirs. The images have their batch and channels first, as far as the names tell.
fn check_maps(theta: &Tensor, images: &[Option<Name>]) -> Result<()> {
    for (dim, name) in images.iter().enumerate() {
        let Some(name) = *name else { continue };
        if is_batch(name) && dim != 0 || is_channel(name) && dim != 1 {
            let message = format_args!(
                "expected the sizes in the order [N, C, H, W] or [N, C, D, H, W], but dim {dim} is '{name}'"
            );
            return Err(fault(ErrorKind::Misaligned, message));
        }
    }
    let batch = images[0];
    for dim in 0..theta.ndim() {
        let Some(own) = theta.name(dim) else { continue };
        let is_right = match (dim, batch) {
            (0, Some(batch)) => own == batch,
            _ => !images.contains(&Some(own)),
        };
        if is_right {
            continue;
        }
        let (first, rows, columns) = (batch.map_or("N", Name::as_str), theta.sizes()[1], theta.sizes()[2]);
        let message =
            format_args!("expected maps [{first}, {rows}, {columns}], but dim {dim} of theta is '{own}'");
        let repair = batch.and_then(|batch| match theta.names().position(batch) {
            Some(1..) => Some(format!("theta.movedim(\"{batch}\", 0)?")),
            None if dim == 0 => Some(renaming("theta", own, &batch)),
            _ => None,
        });
        return Err(repaired(fault(ErrorKind::Misaligned, message), repair));
    }
    check_meeting(("theta", theta, 0), ("`size`", batch))
}
