//! Errors about tensors: an [`Error`] with the shapes and dtypes of the inputs of an op.

use super::NamedTensor;
use crate::error::{Error, ErrorKind};

impl Error {
    /// An error of `op` about its inputs, at the caller's line.
    #[doc(hidden)]
    #[cold]
    #[track_caller]
    pub fn about(
        inputs: &[&NamedTensor],
        kind: ErrorKind,
        op: &'static str,
        message: impl Into<String>,
    ) -> Error {
        Error::new(kind, op, message).with_inputs(inputs)
    }

    /// The same error with the inputs that it is about. Plain numbers among them are left out.
    #[doc(hidden)]
    #[cold]
    pub fn with_inputs(self, inputs: &[&NamedTensor]) -> Error {
        let tensors = || inputs.iter().filter(|x| !x.is_number());
        self.with_described(
            crate::list(tensors().map(|x| x.shape())),
            crate::list(tensors().map(|x| x.dtype())),
        )
    }
}
