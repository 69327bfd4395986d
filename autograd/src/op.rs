//! The one door by which an op enters the tape, a user's as well as the built-in ones.

use crate::tape::{Cx, Edge, Edges, Meta, Origin};
use crate::tensor::Tensor;
use namegrad_core::{NamedTensor, Result};
use std::panic::Location;

/// An op in the making: its value is computed, its derivatives are being told.
///
/// What a derivative needs of an input it keeps through [`Kept::input`], of the output through [`Kept::output`]; both are taken as they are now, so that
/// a later in-place change of a handle does not reach them.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::{Kept, Op};
///
/// /// `x³`, with its own derivative.
/// fn cube(x: &Tensor) -> Result<Tensor> {
///     let y = x.value().mul(x.value())?.mul(x.value())?;
///     let kept = Kept::input(x);
///     Ok(Op::new("cube", y).input(x, move |g, cx| g.mul(kept.get(cx).square()?.mul(3.0)?)).output())
/// }
///
/// let x = Tensor::new([1.0, 2.0])?.requires_grad_(true)?;
/// cube(&x)?.sum(..)?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [3.0, 12.0]);
/// # Ok::<(), Error>(())
/// ```
pub struct Op {
    value: NamedTensor,
    origin: Origin,
    edges: Edges,
}

impl Op {
    /// An op of that name with its value. The caller's line is where anomalies and errors of the backward pass point to.
    #[inline]
    #[track_caller]
    pub fn new(op: &'static str, value: NamedTensor) -> Op {
        Op { value, origin: Origin { op, at: Location::caller() }, edges: Edges::new() }
    }

    /// Says how the gradient of input `x` follows from that of the output, `g`. The gradient may have the sizes of the output where `x` was broadcast, or the
    /// wider dtype: it is summed and cast to fit. Nothing is kept if `x` requires no gradient or recording is off.
    #[inline]
    pub fn input(
        mut self,
        x: &Tensor,
        gradient: impl Fn(&Tensor, &Cx<'_>) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Op {
        if let Some(into) = x.tracked() {
            self.edges.push(Edge::new(into, gradient));
        }
        self
    }

    /// An op whose edges are known.
    #[inline]
    #[track_caller]
    pub(crate) fn with_edges(op: &'static str, value: NamedTensor, edges: Edges) -> Op {
        Op { value, origin: Origin { op, at: Location::caller() }, edges }
    }

    /// The result, recorded if an input requires a gradient.
    #[inline]
    pub fn output(self) -> Tensor {
        let Op { value, origin, edges } = self;
        if edges.is_empty() || !value.dtype().is_floating_point() {
            return Tensor::constant(value);
        }
        let meta = Meta::new(&value, Some(origin), Some(edges));
        Tensor::from_parts(value, Some(meta))
    }
}

/// A tensor kept for the backward pass, without names.
#[derive(Clone)]
pub struct Kept(Which);

#[derive(Clone)]
enum Which {
    Input(Tensor),
    /// Without its place on the tape: an op that owned its own output would never be freed.
    Output(NamedTensor),
}

impl Kept {
    /// Keeps an input, or any tensor that the output does not depend on.
    #[inline]
    pub fn input(x: &Tensor) -> Kept {
        Kept(Which::Input(x.unnamed()))
    }

    /// Keeps the output of the op.
    #[inline]
    pub fn output(y: &NamedTensor) -> Kept {
        Kept(Which::Output(y.unnamed()))
    }

    /// What was kept, as a tensor that can be differentiated again.
    #[inline]
    pub fn get(&self, cx: &Cx<'_>) -> Tensor {
        match &self.0 {
            Which::Input(x) => x.clone(),
            Which::Output(y) => Tensor::from_parts(y.clone(), Some(cx.output.clone())),
        }
    }
}

/// What a bracket of a derivative row can name.
pub(crate) trait Keep {
    fn keep(&self) -> Kept;
}

impl Keep for Tensor {
    #[inline]
    fn keep(&self) -> Kept {
        Kept::input(self)
    }
}

impl Keep for NamedTensor {
    #[inline]
    fn keep(&self) -> Kept {
        Kept::output(self)
    }
}
