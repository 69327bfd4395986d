//! Methods that no type has, so that the compiler says what to write in place of a common mistake: a setter
//! that is called on what is built already, or a method of what has still to be built.
//!
//! A trait is implemented for a type on the condition that the type implements a second trait, which none does.
//! For a call of its method, the compiler prints the message of the second trait. Only builders and what
//! they build have it, most of them by their rows or by `Setters`, so that the compiler says its own message of
//! any other type. The lifetime makes the compiler accept a condition that never holds.

use crate::*;
use namegrad_core::Result;

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

impl Options for Embedding where for<'never> Embedding: TakesOptions {}
impl Options for Result<Embedding> where for<'never> Result<Embedding>: TakesOptions {}
impl Options for Fold where for<'never> Fold: TakesOptions {}
impl Options for Result<Fold> where for<'never> Result<Fold>: TakesOptions {}
impl Options for Transformer where for<'never> Transformer: TakesOptions {}
impl Options for Result<Transformer> where for<'never> Result<Transformer>: TakesOptions {}
impl Options for TransformerDecoderLayer where for<'never> TransformerDecoderLayer: TakesOptions {}
impl Options for Result<TransformerDecoderLayer> where
    for<'never> Result<TransformerDecoderLayer>: TakesOptions
{
}
impl Options for TransformerEncoderLayer where for<'never> TransformerEncoderLayer: TakesOptions {}
impl Options for Result<TransformerEncoderLayer> where
    for<'never> Result<TransformerEncoderLayer>: TakesOptions
{
}
impl Options for TripletMarginWithDistanceLoss where for<'never> TripletMarginWithDistanceLoss: TakesOptions {}

/// Methods of what builders make, which builders do not have.
#[allow(missing_docs)]
pub trait Built: Sized {
    fn forward<T>(&self, _: T) {}
    fn step(&mut self) {}
    fn zero_grad(&mut self) {}
}

impl Built for EmbeddingBuilder where for<'never> EmbeddingBuilder: IsBuilt {}
impl Built for FoldBuilder where for<'never> FoldBuilder: IsBuilt {}
impl Built for TransformerBuilder where for<'never> TransformerBuilder: IsBuilt {}
impl Built for TransformerDecoderLayerBuilder where for<'never> TransformerDecoderLayerBuilder: IsBuilt {}
impl Built for TransformerEncoderLayerBuilder where for<'never> TransformerEncoderLayerBuilder: IsBuilt {}
impl Built for TripletMarginWithDistanceLossBuilder where
    for<'never> TripletMarginWithDistanceLossBuilder: IsBuilt
{
}
