//! The rules of names for two tensors, for the crates above.

#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::Result;
use crate::names::{Meets, Names, of_call, rules};
use crate::tensor::NamedTensor;

impl NamedTensor {
    /// The unified names of this tensor and `other`; see `rules::unify`.
    ///
    /// # Errors
    /// Same as `rules::unify`.
    #[doc(hidden)]
    #[track_caller]
    pub fn unified_names(&self, op: &'static str, doing: &str, other: &NamedTensor) -> Result<Names> {
        rules::unify(op, doing, self.input(), other.input())
    }

    /// Checks the names of two dims whose products are summed; see `rules::contracted`.
    ///
    /// # Errors
    /// Same as `rules::contracted`.
    #[doc(hidden)]
    #[track_caller]
    pub fn check_contracted(
        &self,
        op: &'static str,
        what: [&str; 2],
        other: &NamedTensor,
        dims: [usize; 2],
    ) -> Result<()> {
        rules::contracted(op, what, [self.input(), other.input()], dims)
    }

    /// Checks the names of two dims that mean the same; see `rules::matched`.
    ///
    /// # Errors
    /// Same as `rules::matched`.
    #[doc(hidden)]
    #[track_caller]
    pub fn check_matched(
        &self,
        op: &'static str,
        what: [&str; 2],
        other: &NamedTensor,
        dims: [usize; 2],
    ) -> Result<()> {
        rules::matched(op, what, [self.input(), other.input()], dims).map(drop)
    }

    /// Checks that the names of two inputs of a call unify. `what` is how repairs call them.
    ///
    /// # Errors
    /// Same as `rules::unify`, with the repair of dims in another order.
    #[doc(hidden)]
    #[track_caller]
    pub fn check_alike(&self, op: &'static str, what: [&'static str; 2], other: &NamedTensor) -> Result<()> {
        let unified = rules::unify(op, "match", self.input(), other.input()).map(drop);
        let inputs = [(what[0], Meets::First, self), (what[1], Meets::Matched, other)];
        unified.map_err(|error| of_call(error, op, &inputs))
    }

    /// The names that this tensor gets as an output tensor when `computed` names were inferred; see
    /// `rules::out`.
    ///
    /// # Errors
    /// [`ErrorKind::OutNames`].
    #[doc(hidden)]
    #[track_caller]
    pub fn out_names(&self, op: &'static str, computed: &Names) -> Result<Names> {
        rules::out(op, computed, self.input())
    }
}
