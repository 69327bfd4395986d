//! Renaming the dims of a [`Tensor`]. The value is a view, and the record on the tape is the same.

use crate::line::line_of;
use crate::observe;
use crate::tape::is_observed;
use crate::tensor::Tensor;
use namegrad_core::{NameList, NamedTensor, RenameArg, Result};
use std::panic::Location;

/// # Names
impl Tensor {
    /// The tensor with other names: `None` drops them, a list renames by position (with at most one `"..."`),
    /// pairs rename by name. A view.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let images = Tensor::rand([("N", 2), ("C", 3), ("H", 5), ("W", 7)])?;
    /// let renamed = images.rename([("N", "batch"), ("C", "channels")])?;
    /// assert_eq!(renamed.shape().to_string(), "[batch=2, channels=3, H=5, W=7]");
    /// assert_eq!(images.rename(["a", "..."])?.shape().to_string(), "[a=2, C=3, H=5, W=7]");
    /// assert!(!images.rename(None)?.has_names());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `NameCount`, `NameNotFound`, `DuplicateName`, `InvalidName`, `Ellipsis`.
    #[track_caller]
    pub fn rename(&self, names: impl RenameArg) -> Result<Tensor> {
        let value = self.value().rename(names)?;
        Ok(self.with_value(value))
    }

    /// [`rename`](Self::rename) in place.
    ///
    /// # Errors
    /// Same as [`rename`](Self::rename).
    #[track_caller]
    pub fn rename_(&mut self, names: impl RenameArg) -> Result<&mut Tensor> {
        let renamed = self.value().rename(names).map_err(|error| error.of("rename_"))?;
        *self = self.with_value(renamed);
        Ok(self)
    }

    /// The tensor with names for its unnamed dims; a named dim keeps its name. One `"..."` means dims
    /// that do not change. A view.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::randn([2, 3, 5, 7, 11])?.refine_names(["A", "...", "B", "C"])?;
    /// assert_eq!(x.shape().to_string(), "[A=2, ?=3, ?=5, B=7, C=11]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `RefineConflict`, `DuplicateName`, `InvalidName`, `Ellipsis`.
    #[track_caller]
    pub fn refine_names(&self, names: impl NameList) -> Result<Tensor> {
        let value = self.value().refine_names(names)?;
        Ok(self.with_value(value))
    }

    /// Another value with the same record on the tape; names do not matter to a gradient.
    #[track_caller]
    fn with_value(&self, value: NamedTensor) -> Tensor {
        if is_observed() {
            observe::starting(); // it takes no time
            observe::tell("rename", line_of(Location::caller()), &[self.value()], &[&value]);
        }
        Tensor::from_parts(value, self.meta_and_carried().cloned())
    }
}
