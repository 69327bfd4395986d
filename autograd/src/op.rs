//! The one door by which an op enters the tape, a user's as well as the built-in ones.

use crate::tape::{Cx, Edge, Edges, Joint, Meta, Origin, Way, is_forgetting, is_grad_enabled};
use crate::tensor::Tensor;
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
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

    /// As [`input`](Self::input), with a gradient that is computed outside of the tape, on plain values. It cannot be differentiated again: to ask for that is
    /// an error that names the op.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::autograd::Op;
    /// /// `2 x`, with a gradient that the tape does not see.
    /// fn twice(x: &Tensor) -> Result<Tensor> {
    ///     Ok(Op::new("twice", x.value().mul(2.0)?).input_once(x, |g, _| g.mul(2.0)).output())
    /// }
    /// let x = Tensor::new([1.0, 2.0])?.requires_grad_(true)?;
    /// twice(&x)?.sum(..)?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn input_once(
        self,
        x: &Tensor,
        gradient: impl Fn(&NamedTensor, &Cx<'_>) -> Result<NamedTensor> + Send + Sync + 'static,
    ) -> Op {
        let Some(into) = x.tracked().cloned() else { return self };
        let origin = self.origin;
        self.input(x, move |g, cx| {
            let value = gradient(g.value(), cx)?;
            if !is_grad_enabled() {
                return Ok(Tensor::constant(value));
            }
            let refused = move |_: &Tensor, _: &Cx<'_>| {
                let message = "the gradient of this op cannot be differentiated again";
                Err(Error::new(ErrorKind::Autograd, origin.op, message).at(origin.at))
            };
            let mut edges = Edges::new();
            edges.push(Edge::new(&into, refused));
            edges.extend(g.tracked().map(|g| Edge::new(g, refused)));
            Ok(Op { value, origin, edges }.output())
        })
    }

    /// An op of several outputs, with their values.
    #[track_caller]
    pub fn with_outputs(op: &'static str, values: Vec<NamedTensor>) -> Outputs {
        Outputs { values, origin: Origin { op, at: Location::caller() } }
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
        let Op { value, origin, mut edges } = self;
        if edges.is_empty() || !value.dtype().is_floating_point() {
            return Tensor::constant(value);
        }
        if is_forgetting() {
            edges.iter_mut().for_each(Edge::forget);
        }
        let meta = Meta::new(&value, Some(origin), Some(Way::Edges(edges)));
        Tensor::from_parts(value, Some(meta))
    }
}

/// An op of several outputs in the making.
pub struct Outputs {
    values: Vec<NamedTensor>,
    origin: Origin,
}

impl Outputs {
    /// The results, recorded if one of `inputs` requires a gradient. `gradients` gives those of the inputs, in their order and `None` for an input that has none,
    /// from those of the outputs, `None` for an output that nothing was made of. It is called once for all of them.
    ///
    /// What it needs of the inputs it keeps as clones; an output must not be kept, for the op would own itself.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::autograd::Op;
    /// /// The sum and the difference, with one backward for both.
    /// fn sum_and_difference(x: &Tensor, y: &Tensor) -> Result<Vec<Tensor>> {
    ///     let values = vec![x.value().add(y.value())?, x.value().sub(y.value())?];
    ///     let zero = x.zeros_like()?;
    ///     Ok(Op::with_outputs("sum_and_difference", values).inputs(&[x, y], move |g| {
    ///         let [sum, difference] = [0, 1].map(|k| g[k].as_ref().unwrap_or(&zero));
    ///         Ok(vec![Some(sum.add(difference)?), Some(sum.sub(difference)?)])
    ///     }))
    /// }
    /// let x = Tensor::new([3.0])?.requires_grad_(true)?;
    /// let y = Tensor::new([2.0])?.requires_grad_(true)?;
    /// let both = sum_and_difference(&x, &y)?;
    /// both[0].mul(&both[1])?.backward()?; // x² - y²
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [6.0]);
    /// assert_eq!(y.grad().unwrap().to_vec::<f32>()?, [-4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn inputs(
        self,
        inputs: &[&Tensor],
        gradients: impl Fn(&[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
    ) -> Vec<Tensor> {
        let Outputs { values, origin } = self;
        let inputs: Vec<_> = inputs.iter().map(|x| x.tracked().cloned()).collect();
        if inputs.iter().all(Option::is_none) {
            return values.into_iter().map(Tensor::constant).collect();
        }
        let gradients: crate::tape::JointGradients =
            if is_forgetting() { Box::new(|_| Ok(Vec::new())) } else { Box::new(gradients) };
        let joint = Meta::joint(origin, Joint { outputs: values.len(), inputs, gradients });
        let part = |(number, value): (usize, NamedTensor)| {
            if !value.dtype().is_floating_point() {
                return Tensor::constant(value);
            }
            let way = Way::Part { of: joint.clone(), number };
            let meta = Meta::new(&value, Some(origin), Some(way));
            Tensor::from_parts(value, Some(meta))
        };
        values.into_iter().enumerate().map(part).collect()
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
