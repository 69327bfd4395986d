//! Renaming dims: `rename` and `refine_names`. The results are views.

#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::Result;
use crate::names::{NameList, RenameArg, naming};
use crate::tensor::NamedTensor;

impl NamedTensor {
    /// The tensor with other names: `None` drops them, a list renames by position, pairs rename by name.
    ///
    /// # Errors
    /// [`ErrorKind::NameCount`], [`ErrorKind::NameNotFound`], [`ErrorKind::DuplicateName`],
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Ellipsis`].
    #[track_caller]
    pub fn rename(&self, names: impl RenameArg) -> Result<NamedTensor> {
        let names =
            naming::rename("rename", self.input(), &names.renaming().map_err(|error| error.of("rename"))?)?;
        Ok(self.clone().with_names(names))
    }

    /// [`rename`](Self::rename) in place.
    ///
    /// # Errors
    /// Same as [`rename`](Self::rename).
    #[track_caller]
    pub fn rename_(&mut self, names: impl RenameArg) -> Result<&mut NamedTensor> {
        let names =
            naming::rename("rename_", self.input(), &names.renaming().map_err(|error| error.of("rename_"))?)?;
        self.set_names(names);
        Ok(self)
    }

    /// The tensor with names for its unnamed dims; named dims keep their names. One `"..."` means dims
    /// that do not change.
    ///
    /// # Errors
    /// [`ErrorKind::RefineConflict`], [`ErrorKind::DuplicateName`], [`ErrorKind::InvalidName`],
    /// [`ErrorKind::Ellipsis`].
    #[track_caller]
    pub fn refine_names(&self, names: impl NameList) -> Result<NamedTensor> {
        let names =
            naming::refine(self.input(), &names.name_list().map_err(|error| error.of("refine_names"))?)?;
        Ok(self.clone().with_names(names))
    }
}
