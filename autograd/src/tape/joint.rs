//! Derivatives that compute the gradients of several inputs at once, from the gradients of one or several
//! outputs.

use super::{Carried, Cx, Edge, Meta, forgotten, is_forgetting};
use crate::tensor::Tensor;
use namegrad_core::callback::Callback;
use namegrad_core::{DType, NamedTensor, Result, Sizes};
use std::sync::{Arc, Weak};

/// A derivative for several inputs.
///
/// In an op with one output, it is the route from that output to the inputs. An op with several outputs has
/// an extra meta, where their gradients meet, and this is the route from there.
pub(crate) struct Joint {
    pub(crate) inputs: JointInputs,
    /// Other inputs of the op, each with its own derivative. Only an op with one output has such inputs.
    pub(crate) edges: Vec<Edge>,
    /// The outputs of an op that has several.
    pub(crate) outputs: Vec<JointOutput>,
    /// Whether the derivative holds a tensor, which is freed after its use.
    pub(crate) keeps: bool,
    pub(crate) gradients: Arc<JointGradients>,
}

/// The gradients of all inputs, in their order.
pub(crate) type JointGradients =
    dyn for<'x, 'c> Callback<(&'x Cx<'c>,), Result<Vec<Option<Tensor>>>> + Send + Sync;

impl Joint {
    /// `owns` says whether the closure `gradients` may hold a tensor.
    pub(crate) fn new(
        inputs: JointInputs,
        mut edges: Vec<Edge>,
        outputs: Vec<JointOutput>,
        gradients: Arc<JointGradients>,
        owns: bool,
    ) -> Arc<Joint> {
        if is_forgetting() {
            edges.iter_mut().for_each(Edge::forget);
            let gradients = Arc::new(|cx: &Cx<'_>| Err(forgotten(cx)));
            return Arc::new(Joint { inputs, edges, outputs, keeps: false, gradients });
        }
        let keeps = owns || edges.iter().any(|edge| edge.keeps);
        Arc::new(Joint { inputs, edges, outputs, keeps, gradients })
    }
}

impl Joint {
    /// The same derivative of outputs with other records.
    pub(super) fn with_outputs(&self, outputs: Vec<JointOutput>) -> Joint {
        let inputs = crate::list(self.inputs.iter().map(JointInput::another));
        Joint {
            inputs,
            edges: self.edges.clone(),
            outputs,
            keeps: self.keeps,
            gradients: self.gradients.clone(),
        }
    }

    /// Whether an input carries tangents.
    pub(crate) fn carries(&self) -> bool {
        let carries = |meta: &Arc<Meta>| meta.carried.is_some();
        self.inputs.iter().any(|input| input.tracked().is_some_and(carries))
            || self.edges.iter().any(|edge| carries(&edge.into))
    }
}

pub(crate) type JointInputs = Vec<JointInput>;

/// An input of a joint derivative.
pub(crate) enum JointInput {
    /// The op was called without it.
    Absent,
    /// An input that requires no gradient. Boxed because few inputs are like this, and there are many ops.
    Constant(Box<(Sizes, DType)>),
    /// An input that requires a gradient.
    Tracked(Arc<Meta>),
}

impl JointInput {
    pub(crate) fn new(x: Option<&Tensor>) -> JointInput {
        match x {
            None => JointInput::Absent,
            Some(x) => match x.tracked() {
                Some(meta) => JointInput::Tracked(meta.clone()),
                None => JointInput::Constant(Box::new((Sizes::from_slice(x.sizes()), x.dtype()))),
            },
        }
    }

    fn another(&self) -> JointInput {
        match self {
            JointInput::Absent => JointInput::Absent,
            JointInput::Constant(known) => JointInput::Constant(known.clone()),
            JointInput::Tracked(meta) => JointInput::Tracked(meta.clone()),
        }
    }

    pub(crate) fn tracked(&self) -> Option<&Arc<Meta>> {
        match self {
            JointInput::Tracked(meta) => Some(meta),
            _ => None,
        }
    }

    pub(super) fn sizes(&self) -> &[usize] {
        match self {
            JointInput::Absent => &[],
            JointInput::Constant(known) => &known.0,
            JointInput::Tracked(meta) => &meta.sizes,
        }
    }

    pub(super) fn dtype(&self) -> DType {
        match self {
            JointInput::Absent => DType::F32,
            JointInput::Constant(known) => known.1,
            JointInput::Tracked(meta) => meta.dtype,
        }
    }
}

/// One of several outputs of a joint derivative.
pub(crate) struct JointOutput {
    pub(super) sizes: Sizes,
    pub(super) dtype: DType,
    /// The record of the output on the tape, as long as something else owns it. The output owns the joint
    /// derivative, so a strong reference back would keep both alive forever.
    pub(super) meta: Weak<Meta>,
    /// What the output carries, which does not lead back to the derivative.
    pub(super) carried: Option<Carried>,
}

impl JointOutput {
    pub(crate) fn new(value: &NamedTensor, meta: Option<&Arc<Meta>>) -> JointOutput {
        let meta = meta.map(Arc::downgrade).unwrap_or_default();
        let carried = None;
        JointOutput { sizes: Sizes::from_slice(value.sizes()), dtype: value.dtype(), meta, carried }
    }
}
