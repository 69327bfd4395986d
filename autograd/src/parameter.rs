//! [`Parameter`]: the place of a tensor that a layer and an optimizer both hold.

use crate::tensor::Tensor;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// A leaf that is shared: clones are the same parameter. Two layers that hold one are tied.
///
/// ```
/// use namegrad::prelude::*;
/// let weight = Parameter::new(Tensor::ones([("in", 3)])?)?;
/// let tied = weight.clone();
/// weight.tensor().sum(..)?.backward()?;
/// assert_eq!(tied.grad().unwrap().to_vec::<f32>()?, [1.0, 1.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Parameter(Arc<RwLock<Tensor>>);

impl Parameter {
    /// A parameter with this value that requires a gradient.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the dtype has no gradients.
    #[track_caller]
    pub fn new(value: Tensor) -> Result<Parameter> {
        Ok(Parameter(Arc::new(RwLock::new(value.detach().requires_grad_(true)?))))
    }

    /// The tensor as it is now, a leaf of the tape; later updates do not reach it.
    pub fn tensor(&self) -> Tensor {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The accumulated gradient.
    pub fn grad(&self) -> Option<Tensor> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).grad()
    }

    /// Puts a gradient in place, or removes it.
    ///
    /// # Errors
    /// Those of [`Tensor::set_grad`].
    #[track_caller]
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).set_grad(grad)
    }

    /// Forgets the accumulated gradient.
    pub fn zero_grad(&self) {
        self.0.read().unwrap_or_else(PoisonError::into_inner).zero_grad();
    }

    /// Is a gradient computed for it? A frozen parameter has none.
    pub fn requires_grad(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).requires_grad()
    }

    /// Freezes the parameter, or thaws it.
    ///
    /// # Errors
    /// Those of [`Tensor::requires_grad_`].
    #[track_caller]
    pub fn set_requires_grad(&self, requires_grad: bool) -> Result<()> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).set_requires_grad(requires_grad)
    }

    /// Changes the value in place, without the tape noticing. Its buffer is written to if nobody else holds it.
    ///
    /// # Errors
    /// What `f` gives.
    #[track_caller]
    pub fn update<R>(&self, f: impl FnOnce(&mut NamedTensor) -> Result<R>) -> Result<R> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).update(f)
    }

    /// Another value of the same sizes, cast to the dtype of the parameter. Names of the parameter stay.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes differ.
    #[track_caller]
    pub fn set(&self, value: &NamedTensor) -> Result<()> {
        self.update(|own| {
            if own.sizes() != value.sizes() {
                let message = format!(
                    "a parameter of sizes {:?} cannot take a value of {:?}",
                    own.sizes(),
                    value.sizes()
                );
                return Err(
                    Error::new(ErrorKind::Shape, "set", message).with_operands([own.shape(), value.shape()])
                );
            }
            *own = value.to(own.dtype())?.with_names(own.names().clone());
            Ok(())
        })
    }

    /// The value cast to `dtype`; the accumulated gradient is forgotten if that changes anything.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the dtype has no gradients.
    #[track_caller]
    pub fn to_dtype(&self, dtype: DType) -> Result<()> {
        if !dtype.is_floating_point() {
            let message = format!("a parameter must be of a floating point dtype, not {dtype}");
            return Err(Error::new(ErrorKind::Autograd, "to_dtype", message));
        }
        self.update(|own| {
            *own = own.to(dtype)?;
            Ok(())
        })
    }

    /// Are these the same parameter?
    pub fn is(&self, other: &Parameter) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The place on the tape, by which an optimizer tells parameters apart.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parameter {:?}", self.tensor().value())
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parameter containing:\n{}", self.tensor())
    }
}
