//! Pooling: maxima and means of the windows over the last dims.

use crate::args::{Extents, SPATIAL, Windows};
use crate::cpu::pool::{self, Plane, Planes};
use crate::cpu::pool::{DimWindows, WindowPositions};
use crate::device::is_on_meta;
use crate::dtype::{Category, DType, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{Sizes, has, product};
use crate::names::Names;
use crate::shape::Shape;
use crate::tensor::{NamedTensor, Unwritten};
use namegrad_macros::ops;

ops! { pool;
    //! # Pooling
    /// The largest element of each of the [`Windows`] over the last dims, and its position in row-major order
    /// among the elements of these dims; the first of equal elements. NaN counts as the largest.
    ///
    /// # Shapes
    /// - `x`: any dims before those of the windows
    /// - `values`, `indices`: the dims of `x`, with the number of windows in the last ones
    ///
    /// # Examples
    /// ```
    /// use namegrad::core::args::Windows;
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 7.0, 3.0, 2.0], [5.0, 6.0, 4.0, 8.0]])?.refine_names(["H", "W"])?;
    /// let largest = x.max_pool(Windows::sliding([2, 2]))?;
    /// assert_eq!(largest.values.to_vec::<f32>()?, [7.0, 8.0]);
    /// assert_eq!(largest.indices.to_vec::<i64>()?, [1, 7]);
    /// assert_eq!(largest.values.shape().to_string(), "[H=1, W=2]");
    /// # Ok::<(), Error>(())
    /// ```
    max_pool (x; windows: Windows) -> Picked { values, indices } on floats integers;
    /// [`max_pool`](Self::max_pool) of windows of one size at random places, as many as make a result of
    /// `sizes`. `samples` are numbers in [0, 1) that choose the places in the last one, two or three dims,
    /// for each batch and channel.
    ///
    /// # Shapes
    /// - `x`: `[N, C, H, W]`, or `[C, H, W]` without a batch
    /// - `samples`: `[N, C, 2]`, of which the last dim has the numbers for `W` and `H`; for three dims,
    ///   those for `D`, `H` and `W`
    ///
    /// # Source
    /// Graham, *Fractional Max-Pooling* (2014), section 2, "pseudorandom" with overlapping regions.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0, 3.0, 4.0, 5.0]])?;
    /// let samples = Tensor::new([[[0.5]]])?;
    /// let y = x.fractional_max_pool(&samples, 2, 3)?;
    /// assert_eq!(y.values.to_vec::<f32>()?, [2.0, 4.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    fractional_max_pool (x, samples; kernel: Extents, sizes: Extents) -> Picked { values, indices }
        on floats names keeps, samples: free;
    /// The mean of each of the [`Windows`] over the last dims; means of integers are rounded toward zero.
    ///
    /// # Shapes
    /// - `x`: any dims before those of the windows
    /// - result: the dims of `x`, with the number of windows in the last ones
    ///
    /// # Examples
    /// ```
    /// use namegrad::core::args::Windows;
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1.0, 3.0, 5.0, 7.0])?;
    /// assert_eq!(x.avg_pool(Windows::sliding(2))?.to_vec::<f32>()?, [2.0, 6.0]);
    /// assert_eq!(x.avg_pool(Windows::sliding(2).stride(1))?.to_vec::<f32>()?, [2.0, 4.0, 6.0]);
    /// # Ok::<(), Error>(())
    /// ```
    avg_pool (x; windows: Windows) on floats integers;
    /// The gradient of the input of an [`avg_pool`](Self::avg_pool), from the gradient of its output: each
    /// element, divided by the size of its window, added to all elements of the window. `sizes` are those of
    /// the input in the dims of the windows.
    ///
    /// # Examples
    /// ```
    /// use namegrad::core::args::Windows;
    /// use namegrad::prelude::*;
    /// let g = Tensor::new([2.0, 4.0])?;
    /// let spread = g.avg_pool_input(Windows::sliding(2).stride(1), 3)?;
    /// assert_eq!(spread.to_vec::<f32>()?, [1.0, 3.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    avg_pool_input (x; windows: Windows, sizes: Extents) on floats;
}

/// The windows of all planes, from those along each dim.
#[track_caller]
fn plane(op: &'static str, lines: &[WindowPositions]) -> Result<[Plane; 1]> {
    let places = lines.iter().fold(0, |sum: usize, line| sum.saturating_add(line.count));
    NamedTensor::check_room(op, places, 3 * size_of::<usize>())?;
    Ok([Plane::new(crate::list(lines.iter().map(|line| line.along())))])
}

/// The planes of `x` before the last `dims` dims.
fn planes_of(x: &NamedTensor, dims: usize) -> usize {
    product(&x.sizes()[..x.ndim() - dims])
}

/// The shape of `x` with other sizes of the last dims.
fn with_last(x: &NamedTensor, last: impl ExactSizeIterator<Item = usize>) -> Shape {
    let mut sizes = Sizes::from_slice(x.sizes());
    let first = sizes.len() - last.len();
    sizes[first..].iter_mut().zip(last).for_each(|(to, size)| *to = size);
    Shape { sizes, names: x.names().clone() }
}

/// The kernels of the methods, and functions that the derivatives need.
#[doc(hidden)]
pub mod kernels {
    use super::*;

    #[track_caller]
    pub(crate) fn max_pool(x: &NamedTensor, windows: Windows) -> Result<(NamedTensor, NamedTensor)> {
        const OP: &str = "max_pool";
        x.check_not_bool(OP)?;
        let lines = windows.lines(OP, x)?;
        let shape = with_last(x, lines.iter().map(|line| line.count));
        largest(OP, x, shape, lines.len(), || Ok(plane(OP, &lines)?.into()))
    }

    /// The maxima of windows, which are made after the memory of the result.
    #[track_caller]
    fn largest(
        op: &'static str,
        x: &NamedTensor,
        shape: Shape,
        dims: usize,
        windows: impl FnOnce() -> Result<Vec<Plane>>,
    ) -> Result<(NamedTensor, NamedTensor)> {
        let wide = match x.dtype().category() {
            Category::Float => x.dtype().compute(),
            _ => DType::I64,
        };
        if has(&shape.sizes, 0) {
            let empty = |dtype| NamedTensor::full_as(op, shape.clone(), 0.into(), dtype);
            return Ok((empty(x.dtype())?, empty(DType::I64)?));
        }
        let out = [Unwritten::new(op, shape.clone(), wide)?, Unwritten::new(op, shape, DType::I64)?];
        let dense = x.cast(wide)?.contiguous()?;
        let windows = if is_on_meta() { Vec::new() } else { windows()? };
        let planes = Planes { count: planes_of(x, dims), each: &windows };
        let (values, indices) = dispatch!(wide, float T => maxima::<T>(&dense, planes, out)?, else maxima::<i64>(&dense, planes, out)?);
        Ok((values.into_dtype(x.dtype())?, indices))
    }

    #[track_caller]
    fn maxima<T: crate::dtype::Element + pool::Ordered>(
        x: &NamedTensor,
        planes: Planes<'_>,
        [values, indices]: [Unwritten; 2],
    ) -> Result<(NamedTensor, NamedTensor)> {
        if values.is_meta() {
            return Ok((values.without_elements(), indices.without_elements()));
        }
        let (x, mut made) = (x.elements::<T>()?, None);
        let indices = indices.write::<i64>(|indices| {
            let mut done: &mut [i64] = &mut [];
            made = Some(values.write::<T>(|values| {
                let (values, indices) = pool::max(x, planes, values, indices);
                done = indices;
                values
            }));
            done
        });
        Ok((made.expect("written above"), indices))
    }

    /// The gradient of a maximum of windows over `dims` dims: `g` is added at the indices, to zeros with the
    /// sizes of the input.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn max_pool_backward(
        g: &NamedTensor,
        indices: &NamedTensor,
        sizes: &[usize],
        dims: usize,
    ) -> Result<NamedTensor> {
        const OP: &str = "max_pool_backward";
        let wide = g.dtype().compute();
        let count: usize = product(&sizes[..sizes.len() - dims]);
        let of = |sizes: &[usize]| product(&sizes[sizes.len() - dims..]);
        let volumes = [count, of(g.sizes()), of(sizes)];
        let (dense, indices) = (g.cast(wide)?.contiguous()?, indices.contiguous()?);
        let out = Unwritten::of(OP, sizes, Names::none(), wide)?;
        let dx = dispatch!(wide, float T => {
            let (g, indices) = (dense.elements::<T>()?, indices.elements::<i64>()?);
            out.write(|dx| pool::max_backward(g, indices, volumes, dx))
        }, else unreachable!("only floats have gradients"));
        dx.into_dtype(g.dtype())
    }

    #[track_caller]
    pub(crate) fn fractional_max_pool(
        x: &NamedTensor,
        samples: &NamedTensor,
        kernel: Extents,
        sizes: Extents,
    ) -> Result<(NamedTensor, NamedTensor)> {
        const OP: &str = "fractional_max_pool";
        let inputs = [x, samples];
        x.check_float(OP)?;
        let dims = samples.sizes().last().copied().unwrap_or(0);
        if !(1..=SPATIAL).contains(&dims) || x.ndim() < dims + 1 || samples.ndim() != 3 {
            let message = format!(
                "expected samples [N, channels, dims] for one to three dims after the channels, got {} and an input of {} dims",
                samples.shape(),
                x.ndim()
            );
            return Err(Error::about(&inputs, ErrorKind::Shape, OP, message));
        }
        let count = planes_of(x, dims);
        if samples.numel() != count * dims {
            let message =
                format!("expected {dims} samples for each of {count} channels, got {}", samples.numel());
            return Err(Error::about(&inputs, ErrorKind::Shape, OP, message));
        }
        let of_x = |error: Error| error.with_inputs(&inputs);
        let kernel = kernel.over(OP, "kernel_size", dims).map_err(of_x)?;
        let sizes = sizes.over(OP, "output_size", dims).map_err(of_x)?;
        let lengths = x.sizes()[x.ndim() - dims..].to_vec();
        for (dim, length) in lengths.iter().enumerate() {
            let [size, windows] = [&kernel, &sizes].map(|numbers| numbers.get(dim).copied().unwrap_or(0));
            if size == 0 || windows == 0 || (size - 1).saturating_add(windows) > *length {
                let message = format!(
                    "{windows} windows of {size} elements at different places do not fit into a length of {length}"
                );
                return Err(Error::about(&inputs, ErrorKind::Shape, OP, message));
            }
        }
        let samples = samples.to(DType::F64)?.contiguous()?;
        let samples = samples.elements::<f64>()?;
        let shape = with_last(x, sizes.iter().copied());
        largest(OP, x, shape, dims, || {
            let along = |plane: usize, dim: usize| {
                // As in PyTorch, the numbers for two dims are in the opposite order.
                let at = if dims == 2 { 1 - dim } else { dim };
                let (sample, room) = (samples[plane * dims + at], lengths[dim] - kernel[dim]);
                DimWindows::at(lengths[dim], kernel[dim], starts(sample, room, sizes[dim]))
            };
            Ok(crate::list(
                (0..count).map(|plane| Plane::new(crate::list((0..dims).map(|dim| along(plane, dim))))),
            ))
        })
    }

    /// The starts of windows: 0 for the first, `room` for the last, and random steps between the others.
    fn starts(sample: f64, room: usize, count: usize) -> Vec<usize> {
        let step = room as f64 / (count.max(2) - 1) as f64;
        // Rounded toward zero, as in PyTorch, also for samples outside of [0, 1).
        let start = |i: usize| ((i as f64 + sample) * step) as i64 - (sample * step) as i64;
        crate::list(
            (0..count).map(|i| if i + 1 == count { room } else { start(i).clamp(0, room as i64) as usize }),
        )
    }

    #[track_caller]
    pub(crate) fn avg_pool(x: &NamedTensor, windows: Windows) -> Result<NamedTensor> {
        const OP: &str = "avg_pool";
        x.check_not_bool(OP)?;
        if x.dtype().category() != Category::Float {
            return avg_pool(&*x.cast(DType::F64)?, windows)?.into_dtype(x.dtype());
        }
        let lines = windows.lines(OP, x)?;
        let (wide, shape) = (x.dtype().compute(), with_last(x, lines.iter().map(|line| line.count)));
        if has(&shape.sizes, 0) {
            return NamedTensor::full_as(OP, shape, 0.into(), x.dtype());
        }
        let out = Unwritten::new(OP, shape, wide)?;
        let (dense, plane) = (x.cast(wide)?.contiguous()?, plane(OP, &lines)?);
        let planes = Planes { count: planes_of(x, lines.len()), each: &plane };
        let y = dispatch!(wide, float T => {
            let x = dense.elements::<T>()?;
            out.write(|y| pool::mean(x, planes, windows.divisor(), y))
        }, else unreachable!("checked to be a float"));
        y.into_dtype(x.dtype())
    }

    #[track_caller]
    pub(crate) fn avg_pool_input(x: &NamedTensor, windows: Windows, sizes: Extents) -> Result<NamedTensor> {
        const OP: &str = "avg_pool_input";
        x.check_float(OP)?;
        let dims = windows.dims();
        let given = sizes.over(OP, "sizes", dims).map_err(|error| error.with_inputs(&[x]))?;
        if given.len() != dims || x.ndim() < dims {
            let message = format!("expected the sizes of the {dims} dims of the windows, got {sizes}");
            return Err(Error::about(&[x], ErrorKind::Shape, OP, message));
        }
        let shape = with_last(x, given.iter().copied());
        let wide = x.dtype().compute();
        let lines = windows.lines_of(OP, x, &given)?;
        let counts: Vec<usize> = crate::list(lines.iter().map(|line| line.count));
        if x.sizes()[x.ndim() - dims..] != counts {
            let message = format!("the result of such a pooling has sizes {counts:?} in the last dims");
            return Err(Error::about(&[x], ErrorKind::Shape, OP, message));
        }
        if x.numel() == 0 {
            return NamedTensor::full_as(OP, shape, 0.into(), x.dtype());
        }
        let out = Unwritten::new(OP, shape, wide)?;
        let (dense, plane) = (x.cast(wide)?.contiguous()?, plane(OP, &lines)?);
        let planes = Planes { count: planes_of(x, dims), each: &plane };
        let dx = dispatch!(wide, float T => {
            let g = dense.elements::<T>()?;
            out.write(|dx| pool::mean_backward(g, planes, windows.divisor(), dx))
        }, else unreachable!("checked to be a float"));
        dx.into_dtype(x.dtype())
    }
}
