//! Methods that no type has, so that the compiler says what to write in place of a common mistake: a setter
//! that is called on what is built already, or a method of what has still to be built.
//!
//! A trait is implemented for a type on the condition that the type implements a second trait, which none does.
//! For a call of its method, the compiler prints the message of the second trait. Only builders and what
//! they build have it, most of them by their rows or by `Setters`, so that the compiler says its own message of
//! any other type. The lifetime makes the compiler accept a condition that never holds.

use crate::*;

/// Methods with these names, `fn affine<T>(self, _: T) -> Self`.
macro_rules! options {
    ($($option:ident)*) => {
        $(fn $option<T>(self, _: T) -> Self {
            self
        })*
    };
}

/// Implemented by nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is made already, and options are set before that",
    label = "not an option of this type",
    note = "start with `builder` in place of `new`, and end with `build`, as in `BatchNorm::builder((\"C\", 3)).eps(1e-3).build()?`"
)]
pub trait TakesOptions {}

/// Implemented by nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not built yet",
    label = "build it first",
    note = "end the builder with `.build()?`"
)]
pub trait IsBuilt {}

/// Setters of builders, which what is built does not have.
#[allow(missing_docs)]
pub trait Options: Sized {
    options! {
        affine batch_first betas bidirectional dilation eps groups ignore_index label_smoothing lr momentum num_layers
        padding_idx reduction stride track_running_stats weight_decay
    }
}

impl Options for TripletMarginWithDistanceLoss where for<'never> TripletMarginWithDistanceLoss: TakesOptions {}

/// Methods of what builders make, which builders do not have.
#[allow(missing_docs)]
pub trait Built: Sized {
    fn forward<T>(&self, _: T) {}
    fn step(&mut self) {}
    fn step_with<T>(&mut self, _: T) {}
    fn zero_grad(&mut self) {}
    fn lrs(&self) {}
    fn set_lr<T>(&mut self, _: T) {}
    fn check_finite(&self) {}
}

impl Built for TripletMarginWithDistanceLossBuilder where
    for<'never> TripletMarginWithDistanceLossBuilder: IsBuilt
{
}
