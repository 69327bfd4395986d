//! [`Device`]: where the elements of a tensor are. [`on_device`] chooses it for new tensors, and an op has its
//! result where its inputs are.
//!
//! Tensors without elements take part in all ops, for which no op has code of its own: the checks and the sizes
//! are the same, storage is made without memory, and what a kernel would write is left out.

use crate::cpu::storage::{self, Storage};
use crate::dtype::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::NamedTensor;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

/// The memory that holds the elements of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Device {
    /// The memory of the CPU.
    #[default]
    Cpu,
    /// The memory of the GPU with this number.
    Cuda(usize),
    /// No memory: a tensor has sizes, strides, names and a dtype, but no elements. Ops check their inputs and
    /// infer what they return without computing it, so a model of any size takes no memory.
    Meta,
}

impl fmt::Display for Device {
    /// PyTorch's words: `cpu`, `cuda:0`, `meta`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(number) => write!(f, "cuda:{number}"),
            Device::Meta => f.write_str("meta"),
        }
    }
}

thread_local! {
    /// Whether new tensors of this thread are meta tensors.
    static ON_META: Cell<bool> = const { Cell::new(false) };
}

/// Whether new tensors of this thread are meta tensors.
#[inline]
pub(crate) fn is_on_meta() -> bool {
    ON_META.get()
}

const TWO_DEVICES: &str =
    "expected all tensors to be on the same device, but found two devices, cpu and meta";

/// The device of new tensors, until this is dropped.
#[doc(hidden)]
#[must_use = "the device is chosen until this is dropped"]
#[derive(Debug)]
pub struct OnDevice {
    before: bool,
    /// Keeps the value on its thread.
    here: PhantomData<*const ()>,
}

impl OnDevice {
    #[inline]
    fn choose(is_meta: bool) -> OnDevice {
        OnDevice { before: ON_META.replace(is_meta), here: PhantomData }
    }

    /// Whether new tensors of this thread are meta tensors.
    pub fn is_meta() -> bool {
        is_on_meta()
    }

    /// A device that was chosen.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if this build does not have it.
    #[track_caller]
    pub fn enter(device: Device) -> Result<OnDevice> {
        if let Device::Cuda(_) = device {
            let message =
                "this build has no CUDA: tensors are on the CPU, or without elements on the meta device";
            return Err(Error::new(ErrorKind::Unsupported, "on_device", message));
        }
        Ok(OnDevice::choose(device == Device::Meta))
    }

    /// The device of the results of an op: that of its inputs. A number or a 0-d tensor of the CPU can be
    /// beside meta tensors, and where new tensors are meta tensors, all tensors count as such.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] if there are a meta tensor and another tensor of the CPU.
    #[inline(never)]
    #[track_caller]
    pub fn of_inputs(op: &'static str, inputs: &[&[&NamedTensor]]) -> Result<OnDevice> {
        let is_meta = |inputs: &&[&NamedTensor]| inputs.iter().any(|x| x.is_meta());
        match is_on_meta() || !inputs.iter().any(is_meta) {
            true => Ok(OnDevice::default()),
            false => OnDevice::beside_meta(op, &inputs.concat()),
        }
    }

    #[cold]
    #[track_caller]
    fn beside_meta(op: &'static str, inputs: &[&NamedTensor]) -> Result<OnDevice> {
        if inputs.iter().all(|x| x.is_meta() || x.ndim() == 0) {
            return Ok(OnDevice::choose(true));
        }
        let moved = if inputs[0].is_meta() { "y" } else { "x" };
        let repair = format!("{moved}.to_device(Device::Meta)?");
        Err(Error::about(inputs, ErrorKind::Device, op, TWO_DEVICES).with_repair(repair))
    }

    /// Leaves the device as it is, until a call of [`restore`](Self::restore) with the result.
    #[inline]
    pub fn until(self) -> bool {
        let before = self.before;
        std::mem::forget(self);
        before
    }

    /// The end of [`until`](Self::until).
    #[inline]
    pub fn restore(before: bool) {
        ON_META.replace(before); // which is a store, while `set` calls a function
    }

    /// The device of this tensor.
    #[inline]
    pub fn of(x: &NamedTensor) -> OnDevice {
        OnDevice::choose(x.is_meta() || is_on_meta())
    }
}

impl Default for OnDevice {
    /// The device of new tensors now.
    #[inline]
    fn default() -> OnDevice {
        OnDevice::choose(is_on_meta())
    }
}

impl Drop for OnDevice {
    #[inline(always)]
    fn drop(&mut self) {
        restore(self.before);
    }
}

/// Ends the choice of a device. Functions of C do not unwind, so that callers have no code for that.
#[inline(never)]
extern "C" fn restore(before: bool) {
    OnDevice::restore(before);
}

/// Runs `f`, in which new tensors are on this device. With [`Device::Meta`], these are the results of factories
/// and of all ops, also of ops on tensors of the CPU, whose elements can still be read.
///
/// ```
/// use namegrad_core::{Device, NamedTensor, on_device};
/// let x = on_device(Device::Meta, || NamedTensor::ones([("row", 1 << 20), ("col", 1 << 20)]))?;
/// let y = x.square()?.sum("col")?;
/// assert_eq!((y.device(), y.sizes()), (Device::Meta, &[1 << 20][..]));
/// # Ok::<(), namegrad_core::Error>(())
/// ```
///
/// # Errors
/// Those of `f`; [`ErrorKind::Unsupported`] for a device that this build does not have.
#[track_caller]
pub fn on_device<R>(device: Device, f: impl FnOnce() -> Result<R>) -> Result<R> {
    let _device = OnDevice::enter(device)?;
    f()
}

/// Runs the loops of an op, unless its results have no elements.
#[inline]
pub(crate) fn compute(loops: impl FnOnce() -> Result<()>) -> Result<()> {
    if is_on_meta() { Ok(()) } else { loops() }
}

/// Counts memory that the loops of an op take for themselves, where they are left out: the bytes of a block of
/// the cache, and of other memory.
#[inline]
pub(crate) fn takes(bytes: impl FnOnce() -> [usize; 2]) {
    if is_on_meta() {
        let [block, other] = bytes();
        drop(Storage::meta(block).filter(|_| block > 0));
        storage::count_beside(other);
    }
}

/// [`compute`] for loops that write to `x` in place.
#[inline]
#[track_caller]
pub(crate) fn compute_in(
    x: &mut NamedTensor,
    loops: impl FnOnce(&mut NamedTensor) -> Result<()>,
) -> Result<()> {
    if is_on_meta() { x.make_writable() } else { loops(x) }
}

impl NamedTensor {
    /// The device that has the elements.
    #[inline]
    pub fn device(&self) -> Device {
        if self.is_meta() { Device::Meta } else { Device::Cpu }
    }

    /// A tensor on this device: this one if it is there already. On the way from the CPU to the meta device,
    /// the elements are dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] from the meta device to another one, as there are no elements, and for a
    /// device that this build does not have.
    #[track_caller]
    pub fn to_device(&self, device: Device) -> Result<NamedTensor> {
        if device == self.device() {
            return Ok(self.clone());
        }
        let _device = OnDevice::enter(device)?;
        self.check_elements("to_device")?;
        self.without_elements("to_device")
    }

    /// Returns an error of `op`, which needs the elements, on a meta tensor.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`].
    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn check_elements(&self, op: &'static str) -> Result<()> {
        if self.is_meta() { Err(self.no_elements(op)) } else { Ok(()) }
    }

    /// Returns an error of `op` if this tensor has elements and `value`, which is to take its place, has none.
    ///
    /// # Errors
    /// [`ErrorKind::Device`].
    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn check_keeps_elements(&self, op: &'static str, value: &NamedTensor) -> Result<()> {
        if value.is_meta() && !self.is_meta() { Err(self.loses_elements(op)) } else { Ok(()) }
    }

    /// Returns an error of `op`, which is about to write to this tensor, if new tensors are on the meta device
    /// and this one has elements.
    ///
    /// # Errors
    /// [`ErrorKind::Device`].
    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn check_kept(&self, op: &'static str) -> Result<()> {
        if is_on_meta() && !self.is_meta() { Err(self.loses_elements(op)) } else { Ok(()) }
    }

    /// Returns an error of `op` if the other tensor is on another device, unless all count as meta tensors.
    ///
    /// # Errors
    /// [`ErrorKind::Device`].
    #[doc(hidden)]
    #[track_caller]
    pub fn check_device_of(&self, op: &'static str, other: &NamedTensor) -> Result<()> {
        match self.is_meta() == other.is_meta() || is_on_meta() {
            true => Ok(()),
            false => Err(Error::about(&[self, other], ErrorKind::Device, op, TWO_DEVICES)),
        }
    }

    #[cold]
    #[track_caller]
    fn loses_elements(&self, op: &'static str) -> Error {
        let message = "a tensor on the CPU would get a value on the meta device, which has no elements: give it a \
                       value with elements, or move it first, by to_device(Device::Meta)";
        Error::about(&[self], ErrorKind::Device, op, message)
    }

    /// The elements for a check of values, which the meta device leaves out: there are none.
    ///
    /// # Errors
    /// Those of [`to_vec`](Self::to_vec).
    #[doc(hidden)]
    #[track_caller]
    pub fn elements_to_check<T: Element>(&self) -> Result<Vec<T>> {
        if self.is_meta() { Ok(Vec::new()) } else { self.to_vec() }
    }

    /// Whether all elements of this mask are true, as a check of values has it: there are none that are not on
    /// the meta device.
    #[doc(hidden)]
    #[track_caller]
    pub fn is_true_everywhere(&self) -> Result<bool> {
        if self.is_meta() { Ok(true) } else { self.all(..)?.item() }
    }

    #[cold]
    #[track_caller]
    fn no_elements(&self, op: &'static str) -> Error {
        let message = "needs the elements, which a tensor on the meta device does not have: call it on the CPU, \
                       outside of on_device";
        Error::about(&[self], ErrorKind::Unsupported, op, message)
    }
}
