//! The windows of a pooling.

use super::{Argument, Extents, SPATIAL, Value};
use crate::cpu::pool::{Sliding, WindowPositions};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::has;
use crate::names::Name;
use crate::tensor::NamedTensor;
use std::panic::Location;

/// The windows of a pooling over the last dims of a tensor: of one size, at regular steps, or as many as the
/// result has elements.
///
/// The number of dims is the number of sizes; a single number is for one dim.
///
/// ```
/// use namegrad_core::{NamedTensor, args::Windows};
/// let numbers: Vec<f32> = (0..16_u8).map(f32::from).collect();
/// let x = NamedTensor::from_slice(&numbers, [4, 4])?;
/// let largest = x.max_pool(Windows::sliding([2, 2]))?;
/// assert_eq!(largest.values.to_vec::<f32>()?, [5.0, 7.0, 13.0, 15.0]);
/// assert_eq!(largest.indices.to_vec::<i64>()?, [5, 7, 13, 15]);
/// let overlapping = x.avg_pool(Windows::sliding([4, 2]).stride(1))?;
/// assert_eq!(overlapping.to_vec::<f32>()?, [6.5, 7.5, 8.5]);
/// assert_eq!(x.avg_pool(Windows::adaptive([1, 2]))?.to_vec::<f32>()?, [6.5, 8.5]);
/// # Ok::<(), namegrad_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Windows {
    /// The sizes of the windows, or those of the result.
    sizes: Extents,
    adaptive: bool,
    stride: Extents,
    padding: Extents,
    dilation: Extents,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: Option<isize>,
}

impl Windows {
    /// Windows of these sizes. They touch each other, unless there is a [`stride`](Self::stride).
    pub fn sliding(sizes: impl Into<Extents>) -> Windows {
        Windows {
            sizes: sizes.into(),
            adaptive: false,
            stride: Extents::default(),
            padding: Extents::from(0),
            dilation: Extents::from(1),
            ceil_mode: false,
            count_include_pad: true,
            divisor: None,
        }
    }

    /// Windows that give a result of these sizes. Window `i` of `n` is from `⌊i L / n⌋` to
    /// `⌈(i + 1) L / n⌉` of the `L` elements.
    pub fn adaptive(sizes: impl Into<Extents>) -> Windows {
        Windows { adaptive: true, ..Windows::sliding(sizes) }
    }

    /// The steps from one window to the next; the sizes of the windows if no number is given. One number for
    /// all dims, a list of one for each, or pairs such as `[("H", 2), ("W", 1)]`, as for all such options.
    pub fn stride(self, stride: impl Into<Extents>) -> Windows {
        Windows { stride: stride.into(), ..self }
    }

    /// Sets the number of places before and after the elements that belong to windows: at most half of a
    /// window. They have no part in a maximum, and count as zeros in a mean.
    pub fn padding(self, padding: impl Into<Extents>) -> Windows {
        Windows { padding: padding.into(), ..self }
    }

    /// The distance between the elements of a window.
    pub fn dilation(self, dilation: impl Into<Extents>) -> Windows {
        Windows { dilation: dilation.into(), ..self }
    }

    /// Whether a last window that is not complete counts; by default it does not.
    pub fn ceil_mode(self, ceil_mode: bool) -> Windows {
        Windows { ceil_mode, ..self }
    }

    /// Whether a mean divides by the size of the window with its padding, which is the default, or by the
    /// number of elements.
    pub fn count_include_pad(self, count_include_pad: bool) -> Windows {
        Windows { count_include_pad, ..self }
    }

    /// Sets the number by which a mean divides, instead of the size of the window; `None` is the size.
    pub fn divisor_override(self, divisor: impl Into<Option<isize>>) -> Windows {
        Windows { divisor: divisor.into(), ..self }
    }

    /// The windows with all numbers in the order of dims with these names, if they are given by name. The
    /// steps of a dim that is left out are the size of the window.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] for a name that is not among the dims, [`ErrorKind::DuplicateName`] for one
    /// that is given twice, [`ErrorKind::Value`] for a dim without a size.
    #[doc(hidden)]
    #[track_caller]
    pub fn in_order(self, op: &'static str, dims: &[Option<Name>]) -> Result<Windows> {
        let name = if self.adaptive { "output_size" } else { "kernel_size" };
        let sizes = self.sizes.in_order(op, name, dims, None)?;
        Ok(Windows {
            sizes,
            stride: self.stride.in_order(op, "stride", dims, Some(sizes))?,
            padding: self.padding.in_order(op, "padding", dims, Some(0.into()))?,
            dilation: self.dilation.in_order(op, "dilation", dims, Some(1.into()))?,
            ..self
        })
    }

    /// The number of dims.
    pub fn dims(&self) -> usize {
        self.sizes.list_len().unwrap_or(1)
    }

    /// The sizes, the steps and the padding, as they were given.
    pub fn sizes(&self) -> (Extents, Extents, Extents) {
        (self.sizes, self.stride, self.padding)
    }

    /// The divisor of all means, if it was given.
    pub(crate) fn divisor(&self) -> Option<isize> {
        self.divisor
    }

    /// The positions of the windows along each of the last dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if `x` has fewer dims or no window fits, [`ErrorKind::Value`] for a number that
    /// makes no sense.
    #[track_caller]
    pub(crate) fn lines(&self, op: &'static str, x: &NamedTensor) -> Result<Vec<WindowPositions>> {
        let dims = self.dims();
        match x.ndim().checked_sub(dims) {
            Some(first) => self.lines_of(op, x, &x.sizes()[first..]),
            None => {
                let message = format!("windows over {dims} dims do not fit into {} dims", x.ndim());
                Err(Error::about(&[x], ErrorKind::Shape, op, message))
            }
        }
    }

    /// [`lines`](Self::lines) for dims of these lengths.
    #[track_caller]
    pub(crate) fn lines_of(
        &self,
        op: &'static str,
        x: &NamedTensor,
        lengths: &[usize],
    ) -> Result<Vec<WindowPositions>> {
        let (dims, caller) = (self.dims(), Location::caller());
        let fail = |kind, message: String| Error::about(&[x], kind, op, message).at(caller);
        if !(1..=SPATIAL).contains(&dims) {
            return Err(fail(ErrorKind::Value, format!("windows have one to three dims, got {dims}")));
        }
        let numbers = |name, extents: Extents| {
            extents.over(op, name, dims).map_err(|error| error.with_inputs(&[x]).at(caller))
        };
        let sizes = numbers(if self.adaptive { "output_size" } else { "kernel_size" }, self.sizes)?;
        if sizes.len() != dims {
            return Err(fail(ErrorKind::Value, "the sizes of the windows are missing".into()));
        }
        if self.adaptive {
            if has(lengths, 0) && !has(&sizes, 0) {
                return Err(fail(ErrorKind::Shape, "the windows of a dim without elements are empty".into()));
            }
            let line =
                |(length, count): (&usize, usize)| WindowPositions { length: *length, count, sliding: None };
            return Ok(crate::list(lengths.iter().zip(sizes).map(line)));
        }
        let stride = if self.stride.is_none() { sizes.clone() } else { numbers("stride", self.stride)? };
        let (padding, dilation) = (numbers("padding", self.padding)?, numbers("dilation", self.dilation)?);
        for (name, numbers) in [("kernel_size", &sizes), ("stride", &stride), ("dilation", &dilation)] {
            if numbers.len() != dims || has(numbers, 0) {
                return Err(fail(ErrorKind::Value, format!("`{name}` must be at least 1, got {numbers:?}")));
            }
        }
        if self.divisor == Some(0) {
            return Err(fail(ErrorKind::Value, "`divisor_override` must not be 0".into()));
        }
        let mut all = Vec::with_capacity(dims);
        for dim in 0..dims {
            let (length, size, pad) = (lengths[dim], sizes[dim], padding.get(dim).copied().unwrap_or(0));
            let span = dilation[dim].saturating_mul(size - 1).saturating_add(1);
            if pad > span / 2 {
                let message = format!("the padding must be at most half of the window of {span}, got {pad}");
                return Err(fail(ErrorKind::Shape, message).with_repair(format!(".padding({})", span / 2)));
            }
            // At most twice the length and a window, if the window is not too large for a number.
            let room = length.checked_add(2 * pad).and_then(|room| room.checked_sub(span));
            let Some(room) = room else {
                let message = format!(
                    "a window over {span} elements does not fit into a length of {length} and padding {pad}"
                );
                return Err(fail(ErrorKind::Shape, message));
            };
            let step = stride[dim];
            let mut count = if self.ceil_mode { room.div_ceil(step) } else { room / step } + 1;
            if self.ceil_mode && (count - 1).saturating_mul(step) >= length + pad {
                count -= 1; // the last window would be all padding
            }
            let padding_counts = self.count_include_pad;
            let sliding =
                Sliding { size, stride: step, padding: pad, dilation: dilation[dim], padding_counts };
            all.push(WindowPositions { length, count, sliding: Some(sliding) });
        }
        Ok(all)
    }
}

impl Argument for Windows {
    type Resolved = Windows;
    type View<'a> = Windows;
    /// The windows of the last dims of the first tensor.
    #[track_caller]
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<Windows> {
        let Some(x) = of.first() else { return Ok(*self) };
        let first = x.ndim().saturating_sub(self.dims());
        let names: Vec<Option<Name>> = crate::list(x.names().iter(x.ndim()).skip(first));
        self.in_order(op, &names)
    }
    fn view(resolved: &Windows) -> Windows {
        *resolved
    }
    fn from_value(value: &Value) -> Option<Windows> {
        match value {
            Value::None => None,
            sizes => Extents::from_value(sizes).map(Windows::sliding),
        }
    }
    fn accepted() -> String {
        "the size of the windows, a list of sizes, or a list of pairs of a dim and its size".into()
    }
}
