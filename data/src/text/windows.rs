//! [`Windows`]: parts of a long sequence, all of the same length.

use crate::dataset::{Dataset, no_sample};
use namegrad_autograd::Tensor;
use namegrad_core::{Error, ErrorKind, Name, Result};
use namegrad_io::text::shapes;
use std::panic::Location;

const OP: &str = "Windows";

/// The windows of `size` elements of a tensor along a dim, which overlap: one starts at each element, or at
/// each [`stride`](Self::stride). They share the tensor's memory.
///
/// # Examples
/// Windows of a text, each with the same window one token later, for a language model:
/// ```
/// use namegrad::data::sampler::Random;
/// use namegrad::data::{Loader, Vocabulary, Windows};
/// let text = "to be or not to be";
/// let vocabulary = Vocabulary::chars(text);
/// let data = Windows::new(vocabulary.encode(text)?, "seq", 8)?.shifted()?;
/// // 100 random windows are an epoch.
/// let sampler = Random::new().replacement(true).num_samples(100);
/// let loader = Loader::builder(data).batch_size(10).sampler(sampler).build()?;
/// for batch in loader.iter() {
///     let (x, y) = batch?; // [N, seq], [N, seq]
///     assert_eq!(x.narrow("seq", 1, 7)?, y.narrow("seq", 0, 7)?);
/// }
/// # Ok::<(), namegrad::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Windows {
    tensor: Tensor,
    dim: usize,
    size: usize,
    stride: usize,
    /// The number of elements from which windows are cut.
    length: usize,
}

impl Windows {
    /// The windows of `size` elements along `dim`, which is "seq" for a text of
    /// [`Vocabulary::encode`](crate::Vocabulary::encode).
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if the tensor has no such dim; [`ErrorKind::Value`] if `size` is 0 or more
    /// than the size of the dim.
    #[track_caller]
    pub fn new(tensor: Tensor, dim: &str, size: usize) -> Result<Windows> {
        let caller = Location::caller();
        let length = tensor.size(dim).map_err(|error| no_dim(error, &tensor, size).at(caller))?;
        let position = Name::lookup(dim).and_then(|name| tensor.names().position(name));
        let dim = position.expect("the dim has a size, so it is there");
        if size == 0 || size > length {
            let message = format!("expected windows of 1 to {length} elements, got {size}");
            return Err(Error::new(ErrorKind::Value, OP, message).with_operands(shapes(&[tensor.value()])));
        }
        Ok(Windows { tensor: tensor.detach(), dim, size, stride: 1, length })
    }

    /// Sets how many elements after one window the next one starts; 1 by default.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if it is 0.
    #[track_caller]
    pub fn stride(mut self, stride: usize) -> Result<Windows> {
        Error::ensure(stride > 0, ErrorKind::Value, OP, || "stride is at least 1, got 0")?;
        self.stride = stride;
        Ok(self)
    }

    /// Pairs of a window and the window one element later.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the tensor has no element after its first window.
    #[track_caller]
    pub fn shifted(mut self) -> Result<Shifted> {
        Error::ensure(self.size < self.length, ErrorKind::Value, OP, || {
            format!("there is no element after a window of {} of {}", self.size, self.length)
        })?;
        self.length -= 1;
        Ok(Shifted { later: 1, size: self.size, windows: self })
    }

    /// Pairs of a window and the `horizon` elements that come next, for a forecast.
    ///
    /// ```
    /// use namegrad::data::{Dataset, Windows};
    /// use namegrad::prelude::*;
    /// let series = Tensor::arange(0.0, 100.0, 1.0)?.refine_names(["hour"])?;
    /// let data = Windows::new(series, "hour", 24)?.horizon(6)?; // 24 in, 6 ahead
    /// let (past, future) = data.get(1)?;
    /// assert_eq!(past, Tensor::arange(1.0, 25.0, 1.0)?.refine_names(["hour"])?);
    /// assert_eq!(future, Tensor::arange(25.0, 31.0, 1.0)?.refine_names(["hour"])?);
    /// assert_eq!(data.len(), 100 - 24 - 6 + 1);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if `horizon` is 0, or the tensor has fewer elements after its first window.
    #[track_caller]
    pub fn horizon(mut self, horizon: usize) -> Result<Shifted> {
        let most = self.length - self.size;
        Error::ensure((1..=most).contains(&horizon), ErrorKind::Value, OP, || {
            let Windows { size, length, .. } = self;
            format!("{most} elements come after a window of {size} of {length}, but the horizon is {horizon}")
        })?;
        self.length -= horizon;
        Ok(Shifted { later: self.size, size: horizon, windows: self })
    }

    /// The `size` elements that start `later` elements after the window of a sample.
    #[track_caller]
    fn window(&self, index: usize, later: usize, size: usize) -> Result<Tensor> {
        match index < self.len() {
            true => self.tensor.narrow(self.dim, (index * self.stride + later) as isize, size),
            false => Err(no_sample(OP, index, self.len())),
        }
    }
}

/// The error of a dim that a tensor does not have. A tensor of one dim, such as `vocabulary.encode(text)?`, can
/// only mean that one.
#[cold]
fn no_dim(error: Error, tensor: &Tensor, size: usize) -> Error {
    let error = error.of(OP).with_operands(shapes(&[tensor.value()]));
    match tensor.name(0).filter(|_| tensor.ndim() == 1) {
        Some(name) => error.with_repair(format!("Windows::new(x, \"{name}\", {size})?")),
        None => error,
    }
}

impl Dataset for Windows {
    type Sample = Tensor;

    fn len(&self) -> usize {
        (self.length - self.size) / self.stride + 1
    }

    #[track_caller]
    fn get(&self, index: usize) -> Result<Tensor> {
        self.window(index, 0, self.size)
    }
}

/// The result of [`Windows::shifted`] and [`Windows::horizon`]: samples are pairs of windows.
#[derive(Clone, Debug)]
pub struct Shifted {
    windows: Windows,
    /// How many elements after the first window of a pair the second one starts, and its size.
    later: usize,
    size: usize,
}

impl Dataset for Shifted {
    type Sample = (Tensor, Tensor);

    fn len(&self) -> usize {
        self.windows.len()
    }

    #[track_caller]
    fn get(&self, index: usize) -> Result<(Tensor, Tensor)> {
        Ok((self.windows.get(index)?, self.windows.window(index, self.later, self.size)?))
    }
}
