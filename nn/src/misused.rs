//! Methods that no type has, so that the compiler says what to write in place of a common mistake: a setter
//! that is called on what is built already, or a method of what has still to be built.
//!
//! A trait is implemented for all types that implement a second one, which none does. For a call of its
//! method, the compiler prints the message of the second trait.

/// Implemented by nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is made already, and options are set before that",
    label = "not an option of this type",
    note = "start with `builder` in place of `new`, and end with `build`: `BatchNorm::builder((\"C\", 3)).eps(1e-3).build()?`"
)]
pub trait TakesOptions {}

/// Implemented by nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not built yet",
    label = "build it first",
    note = "end the builder with `.build()?`"
)]
pub trait IsBuilt {}

/// Setters of builders, which no type has by this trait.
#[allow(missing_docs)]
pub trait Options: Sized {
    fn affine<T>(self, _: T) -> Self {
        self
    }
    fn batch_first<T>(self, _: T) -> Self {
        self
    }
    fn betas<T>(self, _: T) -> Self {
        self
    }
    fn bidirectional<T>(self, _: T) -> Self {
        self
    }
    fn dilation<T>(self, _: T) -> Self {
        self
    }
    fn eps<T>(self, _: T) -> Self {
        self
    }
    fn groups<T>(self, _: T) -> Self {
        self
    }
    fn ignore_index<T>(self, _: T) -> Self {
        self
    }
    fn label_smoothing<T>(self, _: T) -> Self {
        self
    }
    fn lr<T>(self, _: T) -> Self {
        self
    }
    fn momentum<T>(self, _: T) -> Self {
        self
    }
    fn num_layers<T>(self, _: T) -> Self {
        self
    }
    fn padding_idx<T>(self, _: T) -> Self {
        self
    }
    fn reduction<T>(self, _: T) -> Self {
        self
    }
    fn stride<T>(self, _: T) -> Self {
        self
    }
    fn track_running_stats<T>(self, _: T) -> Self {
        self
    }
    fn weight_decay<T>(self, _: T) -> Self {
        self
    }
}

impl<M: TakesOptions> Options for M {}

/// Methods of what builders make, which no type has by this trait.
#[allow(missing_docs)]
pub trait Built: Sized {
    fn forward<T>(&self, _: T) {}
    fn step(&mut self) {}
    fn zero_grad(&mut self) {}
}

impl<M: IsBuilt> Built for M {}
