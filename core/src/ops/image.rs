//! Resizing of dims by interpolation, sampling of images at positions, and the gradients of both, which are
//! ops as well, so that they can be differentiated again.

use crate::args::{Extents, Resize, SPATIAL, Sampling};
use crate::cpu::math::Real;
use crate::cpu::resample::ResizedDim;
use crate::cpu::resample::{Taps, apply};
use crate::cpu::room::{Room, vec_of, write_in_turn};
use crate::cpu::sample::{self, Points};
use crate::dim::{Positions, others, sort_dims};
use crate::dtype::{Element, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{Sizes, around, has, product};
use crate::names::{Names, rules};
use crate::shape::Shape;
use crate::tensor::{NamedTensor, Unwritten};
use namegrad_macros::ops;
use std::panic::Location;

ops! { image;
    //! # Images
    /// Resizes dims by interpolation: each element of the result is made of those around the same place in
    /// this tensor. `Resize` has the new sizes and the method; `F::interpolate` has PyTorch's options.
    ///
    /// # Shapes
    /// - `x`: any dims that include `dims`, at most three
    /// - result: the dims of `x`, with the new sizes of `dims`
    ///
    /// # Source
    /// Keys, *Cubic convolution interpolation for digital image processing* (1981), for cubic interpolation.
    ///
    /// # Examples
    /// ```
    /// use namegrad::core::args::Resize;
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[0.0, 4.0], [8.0, 0.0]])?.refine_names(["H", "W"])?;
    /// let wide = x.resample("W", Resize::to(3))?;
    /// assert_eq!(wide.shape().to_string(), "[H=2, W=3]");
    /// assert_eq!(wide.to_vec::<f32>()?, [0.0, 2.0, 4.0, 8.0, 4.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    resample (x; dims: Dims, resize: Resize) on floats;
    /// The gradient of the input of a [`resample`](Self::resample), from the gradient of its output. `sizes`
    /// are those of the input in `dims`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::core::args::Resize;
    /// use namegrad::prelude::*;
    /// let g = Tensor::new([1.0, 2.0, 4.0])?;
    /// assert_eq!(g.resample_input(0, Resize::to(3).align_corners(true), 2)?.to_vec::<f32>()?, [2.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    resample_input (x; dims: Dims, resize: Resize, sizes: Extents) on floats;
    /// The elements of images at the positions of a grid: between -1 and 1 in the image, elsewhere outside of
    /// it. [`Sampling`] says how elements are made of those around a position; `F::grid_sample` has PyTorch's
    /// options and finds dims by name.
    ///
    /// # Shapes
    /// - `x`: `[N, C, H, W]`; one, two or three dims after `C`
    /// - `grid`: `[N, H', W', 2]`; the coordinates are those of `W` and `H`, the last dim first
    /// - result: `[N, C, H', W']`, without names
    ///
    /// # Source
    /// Jaderberg et al., *Spatial Transformer Networks* (2015), section 3.3.
    ///
    /// # Examples
    /// ```
    /// use namegrad::core::args::Sampling;
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[[[1.0, 3.0], [5.0, 7.0]]]])?;
    /// let center = Tensor::zeros([1, 1, 1, 2])?;
    /// assert_eq!(x.sample_at(&center, Sampling::default())?.to_vec::<f32>()?, [4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    sample_at (x, grid; sampling: Sampling) on floats names unnamed, grid: picks last;
    /// The gradient of the images of a [`sample_at`](Self::sample_at), from the gradient of its output:
    /// each element, spread to those around its position. `sizes` are the spatial ones of the images.
    ///
    /// # Shapes
    /// - this tensor: `[N, C, H', W']`
    /// - `grid`: `[N, H', W', 2]`
    /// - result: `[N, C, H, W]`, without names
    ///
    /// # Examples
    /// ```
    /// use namegrad::core::args::Sampling;
    /// use namegrad::prelude::*;
    /// let g = Tensor::full([1, 1, 1, 1], 8.0)?;
    /// let center = Tensor::zeros([1, 1, 1, 2])?;
    /// let spread = g.sample_at_input(&center, Sampling::default(), 2)?;
    /// assert_eq!(spread.to_vec::<f32>()?, [2.0; 4]);
    /// # Ok::<(), Error>(())
    /// ```
    sample_at_input (x, grid; sampling: Sampling, sizes: Extents) on floats names unnamed, grid: picks last;
}

/// `x` with dims that are resized one after another; backward with the transposed maps.
#[track_caller]
fn resized(
    op: &'static str,
    x: &NamedTensor,
    dims: &[usize],
    how: &[ResizedDim],
    transposed: bool,
) -> Result<NamedTensor> {
    let mut sizes = Sizes::from_slice(x.sizes());
    for (dim, how) in dims.iter().zip(how) {
        sizes[*dim] = if transposed { how.from } else { how.to };
    }
    let (wide, shape) = (x.dtype().compute(), Shape { sizes: sizes.clone(), names: x.names().clone() });
    if has(&sizes, 0) {
        return NamedTensor::full_as(op, shape, 0.into(), x.dtype());
    }
    for how in how {
        NamedTensor::check_room(op, how.to, 64)?;
    }
    let out = Unwritten::new(op, shape, wide)?;
    let dense = x.cast(wide)?.contiguous()?;
    // The dims that become the most smaller first, so that the least is left for the others.
    let mut order = others(dims.len(), &[]);
    let ratio = |k: usize| sizes[dims[k]] as f64 / x.sizes()[dims[k]].max(1) as f64;
    sort_dims(&mut order, &|a, b| ratio(a) < ratio(b));
    let y = dispatch!(wide, float T => {
        out.write_from(&dense, |x: &[T], y| {
            let mut now = dense.sizes().to_vec();
            let mut made: Vec<T> = Vec::new();
            let last = order.len() - 1;
            for at in &order[..last] {
                let (taps, [outer, _, inner]) = (taps::<T>(how[*at], transposed), around(&now, dims[*at]));
                now[dims[*at]] = taps.outputs();
                let from = if made.is_empty() { x } else { &made[..] };
                made = vec_of(outer * taps.outputs() * inner, |y| apply(from, [outer, inner], &taps, y));
            }
            let (taps, [outer, _, inner]) = (taps::<T>(how[order[last]], transposed), around(&now, dims[order[last]]));
            let from = if made.is_empty() { x } else { &made[..] };
            apply(from, [outer, inner], &taps, y)
        })?
    }, else unreachable!("checked to be a float"));
    y.into_dtype(x.dtype())
}

fn taps<T: Real>(how: ResizedDim, transposed: bool) -> Taps<T> {
    let taps = Taps::resizing(how);
    if transposed { taps.transposed() } else { taps }
}

/// The sizes of images and grids: `[N, C, spatial..]`, `[N, positions.., spatial]`.
struct GridSizes {
    batch: usize,
    channels: usize,
    spatial: Vec<usize>,
    positions: Vec<usize>,
}

impl GridSizes {
    /// Checks the tensor and the grid. `sizes` are the spatial ones of the images if `x` is not the images
    /// but what was sampled.
    #[track_caller]
    fn new(
        op: &'static str,
        x: &NamedTensor,
        grid: &NamedTensor,
        sizes: Option<Extents>,
    ) -> Result<GridSizes> {
        let inputs = [x, grid];
        x.check_float(op)?;
        let caller = Location::caller();
        let fail = |kind, message: String| Error::about(&inputs, kind, op, message).at(caller);
        if grid.dtype() != x.dtype() {
            let message = format!("the images are {}, and the grid is {}", x.dtype(), grid.dtype());
            return Err(
                fail(ErrorKind::DType, message).with_repair(format!("grid.to(DType::{:?})?", x.dtype()))
            );
        }
        let dims = x.ndim().saturating_sub(2);
        if !(1..=SPATIAL).contains(&dims) || grid.ndim() != x.ndim() {
            let message = format!(
                "expected images [N, C, H, W] and a grid [N, H', W', 2], or the like for one or three dims, got {} and {} dims",
                x.ndim(),
                grid.ndim()
            );
            return Err(fail(ErrorKind::Shape, message));
        }
        let (own, [batch, positions @ .., coordinates]) = (x.sizes(), grid.sizes()) else {
            return Err(fail(ErrorKind::Shape, "a grid has at least two dims".into()));
        };
        if *coordinates != dims {
            let message =
                format!("a grid for {dims} dims has {dims} coordinates in its last dim, got {coordinates}");
            return Err(fail(ErrorKind::Shape, message));
        }
        let last = grid.ndim() - 1;
        rules::in_place(op, "grid", [x.input(), grid.input()], |dim| match dim {
            0 => Some(0),
            dim => Some(dim + 1).filter(|_| dim < last),
        })?;
        rules::agree(op, ["x", "grid"], [x.input(), grid.input()], [0, 0])?;
        if *batch != own[0] {
            let message = format!("there are {} images and {batch} grids", own[0]);
            let error = fail(ErrorKind::Shape, message);
            return Err(match *batch {
                1 => error.with_repair(format!("grid.expand([{}{}])?", own[0], ", -1".repeat(dims + 1))),
                _ => error,
            });
        }
        let spatial = match sizes {
            Some(sizes) => {
                if own[2..] != *positions {
                    let message =
                        format!("a grid of {positions:?} positions makes no {:?} elements", &own[2..]);
                    return Err(fail(ErrorKind::Shape, message));
                }
                sizes.over(op, "sizes", dims).map_err(|error| error.with_inputs(&inputs))?
            }
            None => own[2..].to_vec(),
        };
        if spatial.len() != dims || has(&spatial, 0) {
            let message = format!("an image without elements cannot be sampled, and this one is {spatial:?}");
            return Err(fail(ErrorKind::Shape, message));
        }
        Ok(GridSizes { batch: *batch, channels: own[1], spatial, positions: positions.to_vec() })
    }

    fn sizes(&self, last: &[usize]) -> Sizes {
        crate::list([self.batch, self.channels].iter().chain(last).copied())
    }

    /// The elements of an image, and its positions.
    fn volumes(&self) -> [usize; 2] {
        [&self.spatial, &self.positions].map(|sizes| product(sizes))
    }

    /// Runs `f` for each image of `a` with its grid, and joins what it writes.
    #[track_caller]
    fn each<T: Element + Real>(
        &self,
        op: &'static str,
        a: &NamedTensor,
        grid: &NamedTensor,
        sampling: Sampling,
        last: &[usize],
        f: impl for<'y> Fn(&[T], usize, &Points<T>, &'y mut Room<T>) -> &'y mut [T],
    ) -> Result<NamedTensor> {
        let out = Unwritten::of(op, &self.sizes(last), Names::none(), T::DTYPE)?;
        let (from, to) = (a.numel() / self.batch.max(1), product(last) * self.channels);
        let (a, grid) = (a.elements::<T>()?, grid.elements::<T>()?);
        let of_grid = grid.len() / self.batch.max(1);
        Ok(out.write(|y| {
            write_in_turn(y, self.batch, to, |at, y| {
                let points = Points::new(&grid[at * of_grid..][..of_grid], &self.spatial, sampling);
                f(&a[at * from..][..from], self.channels, &points, y)
            })
        }))
    }
}

/// The gradients of the images and of the grid, those that are wanted, as one pass over the positions each.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[doc(hidden)]
#[track_caller]
pub fn sample_at_backward(
    g: &NamedTensor,
    x: &NamedTensor,
    grid: &NamedTensor,
    sampling: Sampling,
    wants: [bool; 2],
) -> Result<[Option<NamedTensor>; 2]> {
    const OP: &str = "sample_at_backward";
    let of = GridSizes::new(OP, x, grid, None)?;
    let of_x = match wants[0] {
        true => Some(kernels::sample_at_input(g, grid, sampling, Extents::from(&of.spatial[..]))?),
        false => None,
    };
    let of_grid = match wants[1] {
        true => {
            let wide = x.dtype().compute();
            let [g, images, dense] = [g, x, grid].map(|x| x.cast(wide)?.contiguous());
            let (g, images, dense) = (g?, images?, dense?);
            let out = Unwritten::of(OP, grid.sizes(), Names::none(), wide)?;
            let [volume, positions] = of.volumes();
            let dims = of.spatial.len();
            let made = dispatch!(wide, float T => {
                let (g, images, dense) = (g.elements::<T>()?, images.elements::<T>()?, dense.elements::<T>()?);
                out.write(|y| write_in_turn(y, of.batch, positions * dims, |at, y| {
                    let coordinates = &dense[at * positions * dims..][..positions * dims];
                    let slopes: Vec<Points<T>> =
                        crate::list((0..dims).map(|dim| Points::new(coordinates, &of.spatial, sampling.slope(dim))));
                    let (from, to) = (of.channels * volume, of.channels * positions);
                    sample::slopes(&g[at * to..][..to], &images[at * from..][..from], of.channels, &slopes, y)
                }))
            }, else unreachable!("checked to be a float"));
            Some(made.into_dtype(grid.dtype())?)
        }
        false => None,
    };
    Ok([of_x, of_grid])
}

pub(crate) mod kernels {
    use super::*;

    #[track_caller]
    pub(crate) fn resample(x: &NamedTensor, dims: Positions, resize: Resize) -> Result<NamedTensor> {
        const OP: &str = "resample";
        x.check_float(OP)?;
        let lengths: Vec<usize> = crate::list(dims.iter().map(|dim| x.length_of(*dim)));
        let how = resize.dims(OP, x, &lengths)?;
        if x.ndim() == 0 {
            return Err(Error::about(&[x], ErrorKind::Shape, OP, "a 0-d tensor has no dims"));
        }
        resized(OP, x, &dims, &how, false)
    }

    #[track_caller]
    pub(crate) fn resample_input(
        x: &NamedTensor,
        dims: Positions,
        resize: Resize,
        sizes: Extents,
    ) -> Result<NamedTensor> {
        const OP: &str = "resample_input";
        x.check_float(OP)?;
        let from = sizes.over(OP, "sizes", dims.len()).map_err(|error| error.with_inputs(&[x]))?;
        if from.len() != dims.len() || x.ndim() == 0 {
            let message = format!("expected the sizes of {} dims, got {sizes}", dims.len());
            return Err(Error::about(&[x], ErrorKind::Shape, OP, message));
        }
        let how = resize.dims(OP, x, &from)?;
        if dims.iter().zip(&how).any(|(dim, how)| x.sizes()[*dim] != how.to) {
            let made: Vec<usize> = crate::list(how.iter().map(|how| how.to));
            let message = format!("the result of such a resizing has sizes {made:?} in these dims");
            return Err(Error::about(&[x], ErrorKind::Shape, OP, message));
        }
        resized(OP, x, &dims, &how, true)
    }

    #[track_caller]
    pub(crate) fn sample_at(x: &NamedTensor, grid: &NamedTensor, sampling: Sampling) -> Result<NamedTensor> {
        const OP: &str = "sample_at";
        let of = GridSizes::new(OP, x, grid, None)?;
        let wide = x.dtype().compute();
        let (images, dense) = (x.cast(wide)?.contiguous()?, grid.cast(wide)?.contiguous()?);
        let y = dispatch!(wide, float T => {
            of.each::<T>(OP, &images, &dense, sampling, &of.positions, sample::gather)?
        }, else unreachable!("checked to be a float"));
        y.into_dtype(x.dtype())
    }

    #[track_caller]
    pub(crate) fn sample_at_input(
        g: &NamedTensor,
        grid: &NamedTensor,
        sampling: Sampling,
        sizes: Extents,
    ) -> Result<NamedTensor> {
        const OP: &str = "sample_at_input";
        let of = GridSizes::new(OP, g, grid, Some(sizes))?;
        let wide = g.dtype().compute();
        let (dense, coordinates) = (g.cast(wide)?.contiguous()?, grid.cast(wide)?.contiguous()?);
        let dx = dispatch!(wide, float T => {
            of.each::<T>(OP, &dense, &coordinates, sampling, &of.spatial, sample::scatter)?
        }, else unreachable!("checked to be a float"));
        dx.into_dtype(g.dtype())
    }
}
