//! [`Buffer`]: a tensor that a layer stores and saves but does not learn.

use crate::field::{Entry, Field, Visitor};
use namegrad_autograd::{Tensor, places, taken};
#[cfg(doc)]
use namegrad_core::ErrorKind;
use namegrad_core::recycled::DropByCall;
use namegrad_core::{DType, Device, NamedTensor, Result};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// A tensor that a layer stores and saves but does not learn, such as a running mean. Clones share the same
/// value.
///
/// # Examples
/// A layer that subtracts the mean of all batches so far:
/// ```
/// use namegrad::nn::{Buffer, Training};
/// use namegrad::prelude::*;
///
/// #[derive(Module)]
/// struct Center {
///     mean: Buffer,
///     training: Training,
/// }
///
/// impl Center {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         if self.training.get() {
///             let batch = x.detach().mean("N")?;
///             self.mean.set(self.mean.tensor() * 0.9 + batch * 0.1)?;
///         }
///         x.sub(&self.mean.tensor())
///     }
/// }
///
/// let layer = Center { mean: Buffer::new(Tensor::zeros([("C", 2)])?), training: Training::new() };
/// layer.forward(&Tensor::ones([("N", 8), ("C", 2)])?)?;
/// assert_eq!(layer.mean.tensor().to_vec::<f32>()?, [0.1, 0.1]);
/// assert_eq!(layer.named_buffers()[0].0, "mean");
/// assert_eq!(layer.state_dict().len(), 1); // it is saved with the parameters
/// # Ok::<(), Error>(())
/// ```
pub struct Buffer(DropByCall<Arc<RwLock<NamedTensor>>>);

fn read(place: &RwLock<NamedTensor>) -> NamedTensor {
    place.read().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Clone for Buffer {
    /// The same buffer.
    fn clone(&self) -> Buffer {
        places::copy_of(self.id(), || Buffer(DropByCall::new(Arc::new(RwLock::new(self.value())))))
            .unwrap_or_else(|| Buffer(self.0.clone()))
    }
}

impl Buffer {
    /// A buffer with this value, detached from the tape.
    pub fn new(value: Tensor) -> Buffer {
        Buffer(DropByCall::new(Arc::new(RwLock::new(value.into_value()))))
    }

    /// The identity of the buffer, which its clones share.
    #[doc(hidden)]
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// The current value. In a functional call, the value given for the buffer.
    pub fn value(&self) -> NamedTensor {
        let own = || read(self.stand_in().as_deref().unwrap_or(&self.0));
        places::substitute(self.id()).map_or_else(own, Tensor::into_value)
    }

    /// In a plan, the place of a value without elements that is used instead, if this one has elements.
    fn stand_in(&self) -> Option<Arc<RwLock<NamedTensor>>> {
        let without = || match read(&self.0) {
            own if own.device() == Device::Meta => None,
            own => Some(Arc::new(RwLock::new(own.to_device(Device::Meta).ok()?))),
        };
        places::stand_in(self.id(), without)
    }

    /// The current value as a tensor that requires no gradient.
    ///
    /// In a functional call, the tensor given for the buffer, as it is.
    pub fn tensor(&self) -> Tensor {
        places::substitute(self.id()).unwrap_or_else(|| Tensor::constant(self.value()))
    }

    /// Sets another value with the same sizes, cast to the dtype of the buffer. The buffer keeps its names,
    /// like [`Parameter::set`](namegrad_autograd::Parameter::set).
    ///
    /// ```
    /// use namegrad::nn::Buffer;
    /// use namegrad::prelude::*;
    /// let mean = Buffer::new(Tensor::zeros([("C", 2)])?);
    /// mean.set(Tensor::new([0.5, 1.5])?)?;
    /// assert_eq!(mean.value().shape().to_string(), "[C=2]");
    /// let error = mean.set(Tensor::new([1.0, 2.0, 3.0])?).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Shape);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes differ, [`ErrorKind::NameMismatch`] if a dim of the value has
    /// another name, [`ErrorKind::DType`] if floating-point values are set in an integer buffer.
    #[track_caller]
    pub fn set(&self, value: impl AsRef<NamedTensor>) -> Result<()> {
        self.replace(taken("Buffer::set", "buffer", &self.value(), value.as_ref())?);
        Ok(())
    }

    /// Casts the value.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn to_dtype(&self, dtype: DType) -> Result<()> {
        self.replace(self.value().to(dtype)?);
        Ok(())
    }

    /// Moves the value to a device, see [`Tensor::to_device`].
    ///
    /// # Errors
    /// Same as there.
    #[track_caller]
    pub fn to_device(&self, device: Device) -> Result<()> {
        self.replace(self.value().to_device(device)?);
        Ok(())
    }

    fn replace(&self, value: NamedTensor) {
        if let Some(value) = places::set_substitute(self.id(), Tensor::constant(value)) {
            let stand_in = self.stand_in();
            let place = stand_in.as_deref().unwrap_or(&self.0);
            *place.write().unwrap_or_else(PoisonError::into_inner) = value.into_value();
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer {:?}", self.value())
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer containing:\n{}", self.tensor())
    }
}

impl Field for Buffer {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.entry(Entry::Buffer(self));
    }
}
