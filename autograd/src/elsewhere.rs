//! Tensors whose numbers are elsewhere: in parts, on several processes.
//!
//! Such a tensor stands for its parts, as a tensor inside of `vmap` stands for a batch: it has the sizes, names
//! and dtype of the whole. Only another crate knows where the parts are and how an op runs on them
//! ([`Elsewhere`]); this module has the places where it is asked. Names, the tape and everything above see a
//! tensor like any other.

use crate::plain::Input;
use crate::tape::{Level, is_forward};
use crate::tensor::Tensor;
use crate::vmap;
pub use crate::vmap::Call;
use namegrad_core::tensor::{Behind, looked_behind};
use namegrad_core::{DType, NamedTensor, Result, Shape};
use std::any::Any;
use std::borrow::Cow;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// What a tensor stands for whose numbers are elsewhere.
pub trait Elsewhere: Any + Send + Sync + UnwindSafe + RefUnwindSafe {
    /// The outputs of an op, of whose inputs one stands for this.
    ///
    /// # Errors
    /// Those of the op, and of the messages between processes.
    fn outputs(&self, call: &Call<'_>) -> Result<Vec<NamedTensor>>;

    /// Random numbers for a tensor that stands for this, which do not depend on each other: `draw` makes those
    /// of a shape, such as `shape`, which has the dims of the tensor, or size 1 for some of them.
    ///
    /// # Errors
    /// Those of the draw.
    fn drawn(&self, shape: Shape, draw: &dyn Fn(Shape) -> Result<NamedTensor>) -> Result<NamedTensor>;

    /// All numbers of a tensor that stands for this, with its names.
    ///
    /// # Errors
    /// Those of the messages between processes.
    fn numbers(&self, x: &NamedTensor) -> Result<NamedTensor>;
}

/// A tensor of these dims that stands for `what`.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`](namegrad_core::ErrorKind::OutOfMemory).
pub fn standing_for(shape: Shape, dtype: DType, what: Box<dyn Elsewhere>) -> Result<NamedTensor> {
    NamedTensor::standing_for("Mesh", shape, dtype, Behind(Box::new(what)))
}

/// What a tensor stands for, if its numbers are elsewhere.
pub fn behind(x: &NamedTensor) -> Option<&dyn Elsewhere> {
    let what: &dyn Any = &*x.behind()?.0;
    what.downcast_ref::<Box<dyn Elsewhere>>().map(|what| &**what)
}

/// Runs `f`, in which ops ask what their inputs stand for. Also says whether something else has read a tensor
/// that stands for another, and so got no numbers.
pub fn asking<R>(f: impl FnOnce() -> R) -> (R, bool) {
    let _level = Level::enter();
    looked_behind(f)
}

/// The values of an op whose function records it: those of its kernel, or of the op on other tensors where an
/// input stands for others.
///
/// # Errors
/// Those of the op.
pub fn values(
    op: &'static str,
    inputs: &[Input<'_>],
    kernel: &dyn Fn() -> Result<Vec<NamedTensor>>,
    run: &dyn Fn(&[Input<'_>]) -> Result<Vec<Tensor>>,
) -> Result<Vec<NamedTensor>> {
    if is_forward() { vmap::values(op, inputs, kernel, run) } else { kernel() }
}

/// The outputs of an op, if the numbers of an input are elsewhere.
pub(crate) fn outputs(call: &Call<'_>) -> Result<Option<Vec<NamedTensor>>> {
    let mut all = call.inputs.iter().flat_map(Input::tensors);
    all.find_map(|x| behind(x.value())).map(|what| what.outputs(call)).transpose()
}

/// The tensor with its numbers.
pub(crate) fn numbers(x: &NamedTensor) -> Result<Cow<'_, NamedTensor>> {
    match behind(x) {
        Some(what) => what.numbers(x).map(Cow::Owned),
        None => Ok(Cow::Borrowed(x)),
    }
}

impl Tensor {
    /// The value with its numbers, for checks of them.
    ///
    /// # Errors
    /// Those of the messages between processes, if the numbers are elsewhere.
    #[doc(hidden)]
    pub fn numbers(&self) -> Result<Cow<'_, NamedTensor>> {
        numbers(self.value())
    }
}
