//! Tensors that stand for others: with the sizes, names and dtype of one slice of a batch, and the batch
//! behind it.

use super::NamedTensor;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::shape::Shape;
use std::any::Any;
use std::cell::Cell;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

thread_local! {
    /// Whether a kernel of this thread has read a tensor that stands for another, or made a view of it.
    static LOOKED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f`, and says whether it has read a tensor that stands for another.
#[doc(hidden)]
pub fn looked_behind<R>(f: impl FnOnce() -> R) -> (R, bool) {
    let before = LOOKED.replace(false);
    let result = f();
    (result, LOOKED.replace(before))
}

/// What a tensor stands for. Nothing here knows its type.
#[doc(hidden)]
pub struct Behind(pub Box<dyn Any + Send + Sync + UnwindSafe + RefUnwindSafe>);

impl NamedTensor {
    /// A tensor of these dims without numbers of its own: floats are NaN, so that a result that was computed
    /// from them by mistake shows it. Copies, also with other names, stand for the same; results do not.
    ///
    /// # Errors
    /// `OutOfMemory`.
    #[doc(hidden)]
    #[track_caller]
    pub fn standing_for(op: &'static str, shape: Shape, dtype: DType, behind: Behind) -> Result<NamedTensor> {
        const NUMBER: &[usize] = &[];
        let number = if dtype.is_floating_point() { Scalar::Float(f64::NAN) } else { Scalar::Int(0) };
        let mut stand = NamedTensor::full_as(op, NUMBER, number, dtype)?.expand(&shape.sizes[..])?;
        stand.parts.names = shape.names;
        stand.parts.behind = Some(Arc::new(behind));
        Ok(stand)
    }

    /// Notes that the numbers of the tensor are read.
    #[inline]
    pub(super) fn look_behind(&self) {
        if self.parts.behind.is_some() {
            LOOKED.set(true);
        }
    }

    /// What the tensor stands for, if it does.
    #[doc(hidden)]
    #[inline]
    pub fn behind(&self) -> Option<&Behind> {
        self.parts.behind.as_deref()
    }
}
