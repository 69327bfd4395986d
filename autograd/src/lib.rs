//! Tensors that record how they were computed, and their gradients.
//!
//! Read [`Tensor`] first, then [`Op`], through which all ops are recorded on the tape, then the derivatives
//! in `rules/`, then the backward pass in `tape/walk.rs`.

#![forbid(unsafe_code)]

// The modules with methods of `Tensor`, in the order in which rustdoc shows them. The blank lines keep
// rustfmt from sorting them.
mod tensor;

mod data;

mod create;

mod naming;

mod align;

mod flatten;

mod rules;

mod composed;

mod scan;

#[doc(hidden)]
pub mod autocast;
pub mod chain;
mod checkpoint;
#[doc(hidden)]
pub mod elsewhere;
pub mod functional;
mod fused;
mod gradcheck;
mod graph;
mod hooks;
mod line;
mod lists;
mod observe;
mod op;
mod operators;
mod parameter;
#[doc(hidden)]
pub mod places;
#[doc(hidden)]
pub mod plain;
pub mod registry;
mod tape;
mod vmap;

pub use autocast::{autocast, autocast_dtype};
pub use checkpoint::checkpoint;
pub use composed::{
    Between, EuclidMode, Index, Indexing, Indices, Numbers, Places, Sections, Strides, Text, WordSizes,
};
pub use create::TensorOptions;
pub use fused::fused;
pub use gradcheck::{
    Checked, GradCheckOptions, gradcheck, gradcheck_parameters, gradcheck_parameters_with, gradcheck_with,
    gradgradcheck, gradgradcheck_with,
};
pub use graph::{Graph, GraphNode};
pub use hooks::{HookHandle, register_backward_end_hook};
#[doc(hidden)]
pub use line::{Called, called_here};
use namegrad_core::{joined, list};
pub use observe::{
    ForThread, HandedOver, Held, Observed, Observer, Section, SectionKind, hand_over, observe, observe_by,
    running_layer, span, span_at,
};
#[doc(hidden)]
pub use observe::{InLayer, holding, in_layer, starting};
pub use op::{Joined, Kept, Op, Outputs};
pub use operators::{AsTensor, Operand};
#[doc(hidden)]
pub use parameter::{Blocks, PartOf};
pub use parameter::{Computed, Parameter};
pub use scan::{ScanOptions, Tensors, fold, fold_with, scan, scan_with};
#[doc(hidden)]
pub use tape::nan::{Anomaly, take_anomaly};
pub use tape::{
    BackwardOptions, Cx, detect_anomaly, detect_nonfinite, enable_grad, inference_mode, is_anomaly_enabled,
    is_grad_enabled, no_grad, set_grad_enabled,
};
#[doc(hidden)]
pub use tape::{backward_passes, began_last_backward, switched};
pub use tensor::{Tensor, grad, grad_with};
#[doc(hidden)]
pub use {gradcheck::place, parameter::taken};

/// The options of ops: of those in core and of composed ops.
pub mod options {
    pub use crate::composed::options::*;
    pub use namegrad_core::options::*;
}
