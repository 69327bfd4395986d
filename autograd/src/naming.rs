//! Other names for the dims of a [`Tensor`]: the value is a view, the place on the tape stays.

use crate::tensor::Tensor;
use namegrad_core::{NameList, NamedTensor, Names, RenameArg, Result};

/// # Names
impl Tensor {
    /// The tensor with other names: `None` drops them, a list renames by position (with at most one `"..."`),
    /// pairs rename by name. A view.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let images = Tensor::rand([("N", 2), ("C", 3), ("H", 5), ("W", 7)])?;
    /// assert_eq!(images.rename([("N", "batch"), ("C", "channels")])?.shape().to_string(), "[batch=2, channels=3, H=5, W=7]");
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

    /// In place: [`rename`](Self::rename).
    ///
    /// # Errors
    /// Those of `rename`.
    #[track_caller]
    pub fn rename_(&mut self, names: impl RenameArg) -> Result<&mut Tensor> {
        let renamed = self.value().rename(names).map_err(|error| error.of("rename_"))?;
        *self = self.with_value(renamed);
        Ok(self)
    }

    /// The tensor with unnamed dims named; a named dim keeps its name. One `"..."` stands for the dims that
    /// stay as they are. A view.
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

    /// The same place on the tape under other names: names mean nothing to a gradient.
    fn with_value(&self, value: NamedTensor) -> Tensor {
        Tensor::from_parts(value, self.meta().cloned())
    }

    /// The same tensor with these names: as many as dims, or none.
    pub(crate) fn named(self, names: Names) -> Tensor {
        let meta = self.meta().cloned();
        Tensor::from_parts(self.into_value().with_names(names), meta)
    }
}
