//! [`Parameter`]: the place of a tensor that a layer and an optimizer both hold.

use crate::tensor::Tensor;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result, Shape};
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{self, ThreadId};

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
pub struct Parameter(Arc<Shared>);

struct Shared {
    tensor: RwLock<Tensor>,
    /// The thread that updates the parameter. It reads it meanwhile as everyone else does.
    updating: Mutex<Option<ThreadId>>,
    updated: Condvar,
}

/// The right to update a parameter, until it is dropped.
struct Turn<'a>(&'a Shared);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.updating.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.updated.notify_one();
    }
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, Tensor> {
        self.tensor.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tensor> {
        self.tensor.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other thread updates the parameter.
    #[track_caller]
    fn turn(&self) -> Result<Turn<'_>> {
        let own = thread::current().id();
        let mut updating = self.updating.lock().unwrap_or_else(PoisonError::into_inner);
        if *updating == Some(own) {
            let message = "the parameter is being updated by the closure that updates it again";
            return Err(Error::new(ErrorKind::Autograd, "Parameter::update", message)
                .with_operands([self.read().shape()])
                .with_repair("change the value that the closure is given"));
        }
        while updating.is_some() {
            updating = self.updated.wait(updating).unwrap_or_else(PoisonError::into_inner);
        }
        *updating = Some(own);
        Ok(Turn(self))
    }
}

impl Parameter {
    /// A parameter with this value that requires a gradient.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the dtype has no gradients.
    #[track_caller]
    pub fn new(value: Tensor) -> Result<Parameter> {
        if !value.dtype().is_floating_point() {
            let message =
                format!("only Tensors of floating point dtype can require gradients, got {}", value.dtype());
            return Err(Error::new(ErrorKind::Autograd, "Parameter::new", message)
                .with_operands([value.shape()])
                .with_repair("Parameter::new(x.to(DType::F32)?)?"));
        }
        let tensor = RwLock::new(value.detach().requiring_grad()?);
        Ok(Parameter(Arc::new(Shared { tensor, updating: Mutex::new(None), updated: Condvar::new() })))
    }

    /// The tensor as it is now, a leaf of the tape; later updates do not reach it.
    pub fn tensor(&self) -> Tensor {
        self.0.read().clone()
    }

    /// The accumulated gradient.
    pub fn grad(&self) -> Option<Tensor> {
        self.0.read().grad()
    }

    /// Puts a gradient in place, or removes it.
    ///
    /// # Errors
    /// Those of [`Tensor::set_grad`].
    #[track_caller]
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        self.0.read().set_grad(grad)
    }

    /// Sizes and names.
    pub fn shape(&self) -> Shape {
        self.0.read().shape()
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.0.read().dtype()
    }

    /// The number of dims.
    pub fn ndim(&self) -> usize {
        self.0.read().ndim()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.0.read().numel()
    }

    /// Forgets the accumulated gradient.
    pub fn zero_grad(&self) {
        self.0.read().zero_grad();
    }

    /// Is a gradient computed for it? A frozen parameter has none.
    pub fn requires_grad(&self) -> bool {
        self.0.read().requires_grad()
    }

    /// Freezes the parameter, or thaws it.
    ///
    /// # Errors
    /// Those of [`Tensor::requires_grad_`].
    #[track_caller]
    pub fn set_requires_grad(&self, requires_grad: bool) -> Result<()> {
        self.0.write().requires_grad_(requires_grad).map(drop)
    }

    /// Changes the value outside of the tape. If `f` fails, nothing changes.
    ///
    /// While `f` runs, the parameter can be read, also by `f` itself, and has its old value. Other threads wait
    /// to update it.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let weight = Parameter::new(Tensor::new([1.0, -3.0])?)?;
    /// weight.update(|value| value.clamp_(-1.0, 1.0).map(drop))?;
    /// assert_eq!(weight.tensor().to_vec::<f32>()?, [1.0, -1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// What `f` returns; [`ErrorKind::Autograd`] if `f` updates this parameter itself.
    #[track_caller]
    pub fn update<R>(&self, f: impl FnOnce(&mut NamedTensor) -> Result<R>) -> Result<R> {
        let _turn = self.0.turn()?;
        let mut value = self.tensor().into_value();
        let result = f(&mut value)?;
        self.0.write().update(|own| {
            *own = value;
            Ok(())
        })?;
        Ok(result)
    }

    /// [`update`](Self::update) in the buffer of the parameter, if nobody else holds it. `f` must not touch the
    /// parameter, which is locked.
    ///
    /// # Errors
    /// What `f` returns. The value may have changed then.
    #[doc(hidden)]
    #[track_caller]
    pub fn update_in_buffer<R>(&self, f: impl FnOnce(&mut NamedTensor) -> Result<R>) -> Result<R> {
        let _turn = self.0.turn()?;
        self.0.write().update(f)
    }

    /// Another value of the same sizes, cast to the dtype of the parameter. Names of the parameter stay.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes differ.
    #[track_caller]
    pub fn set(&self, value: impl AsRef<NamedTensor>) -> Result<()> {
        let value = value.as_ref();
        let caller = Location::caller();
        self.update(|own| {
            if own.sizes() != value.sizes() {
                let message = format!(
                    "a parameter of sizes {:?} cannot take a value of {:?}",
                    own.sizes(),
                    value.sizes()
                );
                return Err(Error::new(ErrorKind::Shape, "Parameter::set", message)
                    .with_operands([own.shape(), value.shape()])
                    .at(caller));
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
            return Err(Error::new(ErrorKind::Autograd, "Parameter::to_dtype", message)
                .with_repair("parameter.to_dtype(DType::F64)?"));
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
