//! [`Parameter`]: a tensor that is shared by a layer and an optimizer, or computed from others
//! ([`Computed`]).

use crate::observe::{Held, holding};
use crate::places;
use crate::tensor::Tensor;
use namegrad_core::names::signature::{HasDims, Met, Signature};
use namegrad_core::recycled::DropByCall;
use namegrad_core::{DType, Device, Error, ErrorKind, Name, NamedTensor, Result, Shape};
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{self, ThreadId};

/// A shared leaf tensor. Clones are the same parameter, so two layers can share one.
///
/// ```
/// use namegrad::prelude::*;
/// let weight = Parameter::new(Tensor::ones([("in", 3)])?)?;
/// let tied = weight.clone();
/// weight.tensor().sum(..)?.backward()?;
/// assert_eq!(tied.grad().unwrap().to_vec::<f32>()?, [1.0, 1.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
pub struct Parameter(DropByCall<Arc<ParameterCell>>);

/// A computation of a [`Parameter`] from other parameters, such as of a weight from its direction and length.
/// `namegrad::nn::parametrize` is made of this.
pub trait Computed: Any + Send + Sync {
    /// The current tensor of the parameter.
    ///
    /// # Errors
    /// Those of the computation.
    fn tensor(&self) -> Result<Tensor>;

    /// The same computation from copies of the other parameters, for a deep copy of a model.
    fn copied(&self) -> Arc<dyn Computed>;
}

struct ParameterCell {
    tensor: RwLock<Tensor>,
    /// Whether `computed` is `Some`: all that a parameter that is not computed looks at.
    is_computed: AtomicBool,
    computed: RwLock<Option<Arc<dyn Computed>>>,
    /// The thread that is updating the parameter.
    updating: Mutex<Option<ThreadId>>,
    updated: Condvar,
    blocks: OnceLock<Blocks>,
    part: OnceLock<Arc<dyn PartOf>>,
}

/// Consecutive blocks along a dim of a parameter, each of which consists of as many equal parts as another dim
/// has elements: queries, keys and values, which consist of heads. A model whose heads are on several processes
/// divides each block.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Blocks {
    /// The dim of the parameter.
    pub dim: usize,
    /// The sizes of the blocks.
    pub sizes: Vec<usize>,
    /// The other dim.
    pub of: (Name, usize),
}

/// What a parameter is a part of, if other processes have the other parts.
#[doc(hidden)]
pub trait PartOf: Send + Sync {
    /// The whole of a tensor that is in parts as the parameter is.
    ///
    /// # Errors
    /// Those of the messages between processes.
    fn whole(&self, part: &NamedTensor) -> Result<NamedTensor>;

    /// A tensor with the dims of the whole, without its numbers.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    fn dims(&self, part: &NamedTensor) -> Result<NamedTensor>;

    /// The part of this process, in memory of its own.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    fn mine(&self, whole: &NamedTensor) -> Result<NamedTensor>;

    /// The sum of the numbers that the processes with the other parts give.
    ///
    /// # Errors
    /// Those of the messages between processes.
    fn sum(&self, number: f64) -> Result<f64>;
}

/// Where the value of a parameter is: in its own place, or in a plan, in that of a stand-in without elements.
enum Place<'p> {
    Own(&'p ParameterCell),
    StandIn(Arc<ParameterCell>),
}

impl Deref for Place<'_> {
    type Target = ParameterCell;

    fn deref(&self) -> &ParameterCell {
        match self {
            Place::Own(own) => own,
            Place::StandIn(other) => other,
        }
    }
}

/// The exclusive right to update a parameter, until it is dropped.
struct UpdateGuard<'a>(&'a ParameterCell);

impl Drop for UpdateGuard<'_> {
    fn drop(&mut self) {
        *self.0.updating.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.updated.notify_one();
    }
}

impl ParameterCell {
    fn read(&self) -> RwLockReadGuard<'_, Tensor> {
        self.tensor.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tensor> {
        self.tensor.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other thread is updating the parameter.
    #[track_caller]
    fn begin_update(&self) -> Result<UpdateGuard<'_>> {
        self.check_own("Parameter::update")?;
        self.read().value().check_kept("Parameter::update")?;
        let own = thread::current().id();
        let mut updating = self.updating.lock().unwrap_or_else(PoisonError::into_inner);
        if *updating == Some(own) {
            let message = "the parameter is being updated by the closure that updates it again; change the value that the closure is given";
            return Err(Error::new(ErrorKind::Autograd, "Parameter::update", message)
                .with_operands([self.read().shape()]));
        }
        while updating.is_some() {
            updating = self.updated.wait(updating).unwrap_or_else(PoisonError::into_inner);
        }
        *updating = Some(own);
        Ok(UpdateGuard(self))
    }

    fn computed(&self) -> Option<Arc<dyn Computed>> {
        if !self.is_computed.load(Ordering::Acquire) {
            return None;
        }
        self.computed.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An error if the value is computed from other parameters.
    #[track_caller]
    fn check_own(&self, op: &'static str) -> Result<()> {
        if !self.is_computed.load(Ordering::Acquire) {
            return Ok(());
        }
        let message = "the parameter is computed from others; change those instead";
        Err(Error::new(ErrorKind::Autograd, op, message)
            .with_operands([self.read().shape()])
            .with_repair("model.named_parameters(), which has the others"))
    }
}

/// The value that takes the place of `own` in a `what`, with its dtype and names.
///
/// # Errors
/// [`ErrorKind::Shape`], [`ErrorKind::NameMismatch`] and [`ErrorKind::DType`] if it does not fit;
/// [`ErrorKind::Device`] if it has no elements, and `own` has.
#[doc(hidden)]
#[track_caller]
pub fn taken(op: &'static str, what: &str, own: &NamedTensor, value: &NamedTensor) -> Result<NamedTensor> {
    let (sizes, given) = (own.sizes(), value.sizes());
    if sizes != given {
        let message = format!("a {what} of sizes {sizes:?} cannot take a value of {given:?}");
        return Err(Error::new(ErrorKind::Shape, op, message).with_operands([own.shape(), value.shape()]));
    }
    own.check_names_of(op, value)?;
    own.check_keeps_elements(op, value)?;
    let (to, from) = (own.dtype(), value.dtype());
    if from.is_floating_point() && !to.is_floating_point() {
        let message = format!("a {what} of dtype {to} cannot take a value of {from}");
        return Err(Error::new(ErrorKind::DType, op, message)
            .with_operands([own.shape(), value.shape()])
            .with_repair(format!("value.to(DType::{to:?})?")));
    }
    Ok(value.to(to)?.with_names(own.names().clone()))
}

impl HasDims for Parameter {
    #[track_caller]
    fn check_dims(&self, signature: &'static Signature, part: usize, met: &mut [Met]) -> Result<()> {
        self.try_tensor()?.check_dims(signature, part, met)
    }
}

impl Clone for Parameter {
    /// The same parameter.
    fn clone(&self) -> Parameter {
        places::copy_of(self.id(), || self.copied()).unwrap_or_else(|| Parameter(self.0.clone()))
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
        Ok(Parameter::of(value.detach().requiring_grad()?))
    }

    fn of(tensor: Tensor) -> Parameter {
        Parameter(DropByCall::new(Arc::new(ParameterCell {
            tensor: RwLock::new(tensor),
            is_computed: AtomicBool::new(false),
            computed: RwLock::new(None),
            updating: Mutex::new(None),
            updated: Condvar::new(),
            blocks: OnceLock::new(),
            part: OnceLock::new(),
        })))
    }

    /// The place of the value.
    fn place(&self) -> Place<'_> {
        let stand_in = places::stand_in(self.id(), || self.stand_in());
        stand_in.map_or(Place::Own(&self.0), Place::StandIn)
    }

    /// A parameter without elements for a plan, if this one has elements.
    #[cold]
    fn stand_in(&self) -> Option<Arc<ParameterCell>> {
        let own = self.0.read();
        let without = |x: &Tensor| x.to_device(Device::Meta).ok();
        if own.device() == Device::Meta {
            return None;
        }
        let mut tensor = without(&own.detach())?;
        if let Some(meta) = own.meta() {
            tensor = tensor.requiring_grad().ok()?;
            tensor.set_grad(own.grad().and_then(|grad| without(&grad))).ok()?;
            if let Some(copy) = tensor.meta() {
                copy.state().hooks = meta.state().hooks.clone();
            }
        }
        drop(own);
        Some(Arc::clone(&Parameter::of(tensor).0))
    }

    /// Another parameter with the same value, without its gradient.
    fn copied(&self) -> Parameter {
        let place = self.place();
        let own = place.read();
        let mut tensor = Tensor::constant(own.value().clone());
        if own.requires_grad() {
            tensor.requires_grad_(true).expect("the value of a parameter is of floats");
        }
        drop(own);
        let copy = Parameter::of(tensor);
        if let Some(blocks) = self.blocks() {
            copy.set_blocks(blocks.clone());
        }
        if let Some(part) = self.0.part.get() {
            copy.set_part(part.clone());
        }
        if let Some(computed) = self.0.computed() {
            copy.set_computed(Some(computed.copied()));
        }
        copy
    }

    /// The current tensor, which is a leaf. Later updates do not change it.
    ///
    /// A parameter that is [computed](Computed) from others gives the result, which is not a leaf. In a
    /// functional call, the tensor is the one given for the parameter.
    ///
    /// # Panics
    /// If the parameter is computed from others, and that fails. It was computed once when that was set up,
    /// so this takes other dtypes or an error of your own parametrization.
    ///
    /// In a layer, [`try_tensor`](Self::try_tensor) makes that an error of the layer.
    #[track_caller]
    pub fn tensor(&self) -> Tensor {
        self.try_tensor().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The current [`tensor`](Self::tensor), or the error of the computation that gives it: what layers read.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let weight = Parameter::new(Tensor::ones([("in", 3)])?)?;
    /// assert_eq!(weight.try_tensor()?, weight.tensor());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the computation, if the parameter is [computed](Computed) from others.
    #[track_caller]
    pub fn try_tensor(&self) -> Result<Tensor> {
        if let Some(substitute) = places::substitute(self.id()) {
            return Ok(substitute);
        }
        let caller = Location::caller();
        match self.0.computed() {
            Some(computed) => computed
                .tensor()
                .map_err(|error| error.context("a parameter that is computed from others: ").at(caller)),
            None => {
                let tensor = self.place().read().clone();
                holding(Held::Parameter, tensor.value());
                Ok(tensor)
            }
        }
    }

    /// [`try_tensor`](Self::try_tensor), put in `place`.
    #[inline(never)]
    #[track_caller]
    pub(crate) fn tensor_in<'p>(&self, place: &'p mut Option<Tensor>) -> Result<&'p Tensor> {
        Ok(place.insert(self.try_tensor()?))
    }

    /// The computation of the parameter from others, if there is one.
    pub fn computed(&self) -> Option<Arc<dyn Computed>> {
        self.0.computed()
    }

    /// Lets the parameter be computed from others from now on. Its own value and gradient are dropped.
    ///
    /// # Errors
    /// The error of the computation, and [`ErrorKind::Shape`] if it does not give the sizes of the parameter.
    /// Then nothing changes.
    #[track_caller]
    pub fn compute_by(&self, computed: Arc<dyn Computed>) -> Result<()> {
        const OP: &str = "Parameter::compute_by";
        let (value, own) = (computed.tensor()?, self.shape());
        if value.shape().sizes != own.sizes {
            let message =
                format!("a parameter of sizes {:?} cannot be computed as {}", own.sizes, value.shape());
            return Err(Error::new(ErrorKind::Shape, OP, message).with_operands([own, value.shape()]));
        }
        // Only the dims of the own tensor are kept, which take no memory.
        let nothing = NamedTensor::zeros(())?.to(value.dtype())?.expand(own.sizes.as_slice())?;
        self.set_computed(Some(computed));
        *self.0.write() = Tensor::constant(nothing.with_names(own.names));
        Ok(())
    }

    /// Makes the parameter hold a value again: the one that was computed last.
    ///
    /// # Errors
    /// The error of the computation, after which nothing changes.
    #[track_caller]
    pub fn stop_computing(&self) -> Result<()> {
        let Some(computed) = self.0.computed() else { return Ok(()) };
        let value = computed.tensor()?.detach().into_value().with_names(self.shape().names);
        let value = Tensor::constant(value).requiring_grad()?;
        *self.0.write() = value;
        self.set_computed(None);
        Ok(())
    }

    fn set_computed(&self, computed: Option<Arc<dyn Computed>>) {
        let mut own = self.0.computed.write().unwrap_or_else(PoisonError::into_inner);
        *own = computed;
        self.0.is_computed.store(own.is_some(), Ordering::Release);
    }

    /// The accumulated gradient.
    pub fn grad(&self) -> Option<Tensor> {
        self.place().read().grad()
    }

    /// Sets the gradient, or removes it.
    ///
    /// # Errors
    /// Same as [`Tensor::set_grad`].
    #[track_caller]
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        self.0.check_own("Parameter::set_grad")?;
        self.place().read().set_grad(grad)
    }

    /// Changes the gradient outside of the tape, in its buffer if that is not shared, and gives what `f`
    /// gives; `None` if there is no gradient.
    ///
    /// # Errors
    /// The errors of `f`, after which the gradient may have changed.
    #[doc(hidden)]
    #[track_caller]
    pub fn update_grad<R>(&self, f: impl FnOnce(&mut NamedTensor) -> Result<R>) -> Result<Option<R>> {
        self.place().read().update_grad(f)
    }

    /// Whether a computation that was recorded with the current value still exists.
    #[doc(hidden)]
    pub fn is_recorded(&self) -> bool {
        self.place().read().meta().is_some_and(|meta| Arc::strong_count(meta) > 1)
    }

    /// Sizes and names.
    pub fn shape(&self) -> Shape {
        self.0.read().shape()
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        match self.0.is_computed.load(Ordering::Acquire) {
            true => self.try_tensor().map_or(self.0.read().dtype(), |computed| computed.dtype()),
            false => self.place().read().dtype(),
        }
    }

    /// The number of dims.
    pub fn ndim(&self) -> usize {
        self.0.read().ndim()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.0.read().numel()
    }

    /// Removes the accumulated gradient.
    pub fn zero_grad(&self) {
        self.place().read().zero_grad();
    }

    /// Whether a gradient is computed for the parameter. It is false if the parameter is frozen.
    pub fn requires_grad(&self) -> bool {
        match self.0.is_computed.load(Ordering::Acquire) {
            true => self.try_tensor().is_ok_and(|computed| computed.requires_grad()),
            false => self.place().read().requires_grad(),
        }
    }

    /// Freezes the parameter (`false`) or unfreezes it (`true`).
    ///
    /// # Errors
    /// Same as [`Tensor::requires_grad_`].
    #[track_caller]
    pub fn set_requires_grad(&self, requires_grad: bool) -> Result<()> {
        self.0.check_own("Parameter::set_requires_grad")?;
        self.place().write().requires_grad_(requires_grad).map(drop)
    }

    /// Changes the value outside of the tape. If `f` fails, nothing changes.
    ///
    /// While `f` runs, the parameter can be read, even by `f` itself, and has its old value. Other threads
    /// that want to update it wait.
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
    /// The errors of `f`; [`ErrorKind::Autograd`] if `f` itself updates this parameter.
    #[track_caller]
    pub fn update<R>(&self, f: impl FnOnce(&mut NamedTensor) -> Result<R>) -> Result<R> {
        let place = self.place();
        let _turn = place.begin_update()?;
        let mut value = place.read().value().clone();
        let result = f(&mut value)?;
        place.write().update(|own| {
            *own = value;
            Ok(())
        })?;
        Ok(result)
    }

    /// Like [`update`](Self::update), but in the buffer of the parameter if that is not shared. `f` must not
    /// use the parameter, which is locked.
    ///
    /// # Errors
    /// The errors of `f`, after which the value may have changed.
    #[doc(hidden)]
    #[track_caller]
    pub fn update_in_buffer<R>(&self, f: impl FnOnce(&mut NamedTensor) -> Result<R>) -> Result<R> {
        let place = self.place();
        let _turn = place.begin_update()?;
        place.write().update(f)
    }

    /// Sets another value with the same sizes, cast to the dtype of the parameter. The parameter keeps its
    /// names. If a value takes the place of none, on the meta device, the accumulated gradient is removed.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes differ, [`ErrorKind::NameMismatch`] if a dim of the value has
    /// another name, [`ErrorKind::Device`] for a value on the meta device in place of elements.
    #[track_caller]
    pub fn set(&self, value: impl AsRef<NamedTensor>) -> Result<()> {
        let value = value.as_ref();
        let (caller, before) = (Location::caller(), self.device());
        self.update(|own| {
            *own = taken("Parameter::set", "parameter", own, value).map_err(|error| error.at(caller))?;
            Ok(())
        })?;
        if self.device() != before {
            self.zero_grad();
        }
        Ok(())
    }

    /// Casts the value to `dtype`. If that changes the dtype, the accumulated gradient is removed.
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

    /// The blocks that a dim consists of, if a layer has said so.
    #[doc(hidden)]
    pub fn blocks(&self) -> Option<&Blocks> {
        self.0.blocks.get()
    }

    /// Says which blocks a dim consists of, once.
    #[doc(hidden)]
    pub fn set_blocks(&self, blocks: Blocks) {
        let _ = self.0.blocks.set(blocks);
    }

    /// What the parameter is a part of.
    #[doc(hidden)]
    pub fn part(&self) -> Option<&dyn PartOf> {
        self.0.part.get().map(|part| &**part)
    }

    /// Says what the parameter is a part of, once. Gives false if that was said before.
    #[doc(hidden)]
    pub fn set_part(&self, part: Arc<dyn PartOf>) -> bool {
        self.0.part.set(part).is_ok()
    }

    /// The device of the value.
    pub fn device(&self) -> Device {
        self.place().read().device()
    }

    /// Moves the value to a device, see [`Tensor::to_device`]. If it is there already, nothing changes;
    /// otherwise the accumulated gradient is removed.
    ///
    /// # Errors
    /// Same as there.
    #[track_caller]
    pub fn to_device(&self, device: Device) -> Result<()> {
        if self.device() == device {
            return Ok(());
        }
        self.zero_grad();
        let caller = Location::caller();
        self.update(|own| {
            *own = own.to_device(device).map_err(|error| error.at(caller))?;
            Ok(())
        })
    }

    /// Whether both are the same parameter.
    pub fn is(&self, other: &Parameter) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// An identifier of the parameter, by which an optimizer tells parameters apart.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_tensor() {
            Ok(tensor) => write!(f, "Parameter {:?}", tensor.value()),
            Err(error) => write!(f, "Parameter {error}"),
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_tensor() {
            Ok(tensor) => write!(f, "Parameter containing:\n{tensor}"),
            Err(error) => write!(f, "Parameter containing:\n{error}"),
        }
    }
}
