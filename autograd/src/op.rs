//! Recording ops on the tape, both built-in ops and your own. Derivatives with names are in `named`.

mod named;

use crate::observe;
use crate::tape::{
    Cx, Edge, Edges, Gradient, Joint, JointInput, JointInputs, JointOutput, Meta, Origin, OutputGradients,
    Route, forward, forward_all, fuses, is_anomaly_enabled, is_forgetting, is_forward, is_looking,
    is_observed, nan,
};
use crate::tensor::Tensor;
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use std::sync::Arc;

/// A builder for an op that is recorded on the tape. Its value is already computed; its derivatives are
/// added.
///
/// - [`input`](Self::input) adds one input with its own derivative.
/// - [`inputs`](Self::inputs) adds several inputs with one derivative for all of them.
/// - [`with_outputs`](Self::with_outputs) starts an op with several outputs.
///
/// A derivative saves an input with [`Kept::input`] and an output with [`Kept::output`]. Later in-place
/// changes of a handle do not affect the saved value. A derivative that consists of tensor ops can be
/// differentiated again. The backward pass has no names: `g`, saved tensors and gradients are unnamed, so a
/// derivative refers to dims by position, and names of a gradient that it returns are ignored. In a derivative
/// that is added with [`input_named`](Self::input_named) they have names, which are checked.
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
/// let x = Tensor::new([1.0, 2.0])?.requiring_grad()?;
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
    /// An op with its name and value. Anomalies and errors in the backward pass point to the caller's line.
    #[inline]
    #[track_caller]
    pub fn new(op: &'static str, value: NamedTensor) -> Op {
        Op { value, origin: Origin::here(op), edges: Edges::new() }
    }

    /// Adds the derivative by input `x`: a function from `g`, the gradient of the output, to the gradient of
    /// `x`. If `x` was broadcast or promoted, the gradient can have the sizes and the dtype of the output; it
    /// is summed and cast to fit. Nothing is saved if `x` requires no gradient or recording is off.
    #[inline]
    pub fn input(
        mut self,
        x: &Tensor,
        gradient: impl Fn(&Tensor, &Cx<'_>) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Op {
        let owns = may_own(&gradient);
        let gradient = x.tracked().map(|_| Gradient::With(Arc::new(gradient)));
        self.add(x, gradient, owns);
        self
    }

    /// Adds an input, with its derivative if it requires a gradient.
    fn add(&mut self, x: &Tensor, gradient: Option<Gradient>, owns: bool) {
        if let (Some(into), Some(gradient)) = (x.tracked(), gradient) {
            self.edges.push(Edge { into: into.clone(), gradient, keeps: owns, by_element: false });
        }
        if is_anomaly_enabled() {
            nan::carry(x.value(), &self.value);
        }
    }

    /// Like [`input`](Self::input), but the gradient is computed outside of the tape, on plain values. It
    /// cannot be differentiated again; trying to is an error that names the op.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::autograd::Op;
    /// /// `2 x`, with a gradient that the tape does not see.
    /// fn twice(x: &Tensor) -> Result<Tensor> {
    ///     Ok(Op::new("twice", x.value().mul(2.0)?).input_once(x, |g, _| g.mul(2.0)).output())
    /// }
    /// let x = Tensor::new([1.0, 2.0])?.requiring_grad()?;
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
            if fuses() {
                return Ok(Tensor::constant(value));
            }
            let refused = move |_: &Tensor, _: &Cx<'_>| {
                let message = "the gradient of this op cannot be differentiated again";
                Err(Error::new(ErrorKind::Autograd, origin.op, message).at(origin.at))
            };
            let mut edges = Edges::new();
            for into in [Some(&into), g.tracked()].into_iter().flatten() {
                let (into, gradient) = (into.clone(), Gradient::With(Arc::new(refused)));
                edges.push(Edge { into, gradient, keeps: false, by_element: false });
            }
            Ok(Op { value, origin, edges }.output())
        })
    }

    /// Says that the derivatives added so far are elementwise: an element of the gradient depends on the
    /// element of `g` at its place alone. Forward mode then calls them with tangents, which takes one call in
    /// place of a derivative of the derivative.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::autograd::{Kept, Op, functional};
    /// /// `x²`, with its own derivative.
    /// fn squared(x: &Tensor) -> Result<Tensor> {
    ///     let (y, kept) = (x.value().mul(x.value())?, Kept::input(x));
    ///     let op = Op::new("squared", y).input(x, move |g, cx| g.mul(kept.get(cx))?.mul(2.0));
    ///     Ok(op.by_element().output())
    /// }
    /// let (x, v) = (Tensor::new([1.0, 3.0])?, Tensor::new([1.0, 0.5])?);
    /// let (_, along) = functional::jvp(|x| squared(&x[0]), &[&x], &[&v])?;
    /// assert_eq!(along.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn by_element(mut self) -> Op {
        for edge in &mut self.edges {
            edge.by_element = true;
        }
        self
    }

    /// Adds one derivative for several inputs, which is useful if their gradients share work: a function from
    /// `g`, the gradient of the output, to the gradients of the inputs. An optional input that is missing is
    /// `None`.
    ///
    /// `gradients` returns one gradient for each of `inputs`, in the same order. `None` means zero, and is
    /// also the gradient of an input that is `None`. As with [`input`](Self::input), a gradient can have the
    /// sizes and the dtype of the output. The same input can be in the list more than once.
    ///
    /// `gradients` is called once in a backward pass that needs the gradient of any of the inputs;
    /// [`Cx::wants`] says of which. Nothing is saved if no input requires a gradient or recording is off.
    /// Inputs that were added with `input` keep their own derivatives.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::autograd::{Kept, Op};
    ///
    /// /// The length of the vectors `(x, y)`. Its derivative by a coordinate is that coordinate divided by
    /// /// the length.
    /// fn hypot(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    ///     let r = x.value().square()?.add(&y.value().square()?)?.sqrt()?;
    ///     let (x_kept, y_kept, r_kept) = (Kept::input(x), Kept::input(y), Kept::output(&r));
    ///     let op = Op::new("hypot", r).inputs(&[Some(x), Some(y)], move |g, cx| {
    ///         let g = g.div(r_kept.get(cx))?; // computed once for both
    ///         Ok(vec![Some(g.mul(x_kept.get(cx))?), Some(g.mul(y_kept.get(cx))?)])
    ///     });
    ///     Ok(op.output())
    /// }
    ///
    /// let x = Tensor::new([3.0, 5.0])?.requiring_grad()?;
    /// let y = Tensor::new([4.0, 12.0])?.requiring_grad()?;
    /// hypot(&x, &y)?.mul(Tensor::new([5.0, 13.0])?)?.sum(..)?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [3.0, 5.0]);
    /// assert_eq!(y.grad().unwrap().to_vec::<f32>()?, [4.0, 12.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// In the backward pass, [`ErrorKind::Autograd`] if there is not one gradient for each input, or if one
    /// does not fit its input. The error names the op and the line that called [`new`](Self::new).
    pub fn inputs(
        mut self,
        inputs: &[Option<&Tensor>],
        gradients: impl Fn(&Tensor, &Cx<'_>) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
    ) -> Joined {
        let Some(inputs) = self.tracked(inputs) else { return Joined { op: self, joint: None } };
        let edges = std::mem::take(&mut self.edges).into_vec();
        let owns = may_own(&gradients);
        let of_output = move |cx: &Cx<'_>| match cx.outputs {
            OutputGradients::One(g) => gradients(g, cx),
            OutputGradients::Several { .. } => Ok(Vec::new()),
        };
        let joint = Joint::new(inputs, edges, Vec::new(), Arc::new(of_output), owns);
        Joined { op: self, joint: Some(joint) }
    }

    /// The facts about the inputs for a joint derivative, if one requires a gradient.
    fn tracked(&self, inputs: &[Option<&Tensor>]) -> Option<JointInputs> {
        if is_anomaly_enabled() {
            inputs.iter().flatten().for_each(|x| nan::carry(x.value(), &self.value));
            nan::settle(self.origin, &self.value);
        }
        if is_observed() {
            observe::tell(self.origin.op, self.origin.at, &[], &[&self.value]);
        }
        let inputs = joint_inputs(inputs);
        (is_tracked(&inputs) && self.value.dtype().is_floating_point()).then_some(inputs)
    }

    /// An op with several outputs, given by their values. Anomalies and errors in the backward pass point to
    /// the caller's line. Outputs that are not floating-point, such as indices, have no gradient.
    #[track_caller]
    pub fn with_outputs(op: &'static str, values: Vec<NamedTensor>) -> Outputs {
        Outputs { values, origin: Origin::here(op) }
    }

    /// The result, recorded if an input requires a gradient.
    #[inline]
    pub fn output(self) -> Tensor {
        if is_looking() {
            look(self.origin, &self.value);
        }
        self.finished()
    }

    fn finished(self) -> Tensor {
        finished(self.value, self.origin, self.edges)
    }
}

/// The result of an op with these edges.
#[inline]
pub(crate) fn finished(value: NamedTensor, origin: Origin, mut edges: Edges) -> Tensor {
    if edges.is_empty() || !value.dtype().is_floating_point() {
        return Tensor::constant(value);
    }
    if is_forgetting() {
        edges.iter_mut().for_each(Edge::forget);
    }
    if is_forward() && edges.iter().any(|edge| edge.into.carried.is_some()) {
        return forward(value, origin, Route::Edges(edges));
    }
    let meta = Meta::new(&value, Some(origin), Some(Route::Edges(edges)));
    Tensor::from_parts_at_once(value, Some(meta))
}

/// Whether a closure may hold a tensor; it does not if it owns nothing.
fn may_own<F>(_: &F) -> bool {
    std::mem::needs_drop::<F>()
}

/// The facts about the inputs for a joint derivative.
fn joint_inputs(inputs: &[Option<&Tensor>]) -> JointInputs {
    crate::list(inputs.iter().map(|x| JointInput::new(*x)))
}

fn is_tracked(inputs: &JointInputs) -> bool {
    inputs.iter().any(|input| input.tracked().is_some())
}

/// An op with one output and a joint derivative. See [`Op::inputs`].
#[must_use = "the op has no effect until `output` is called"]
pub struct Joined {
    op: Op,
    joint: Option<Arc<Joint>>,
}

impl Joined {
    /// The result, recorded if an input requires a gradient.
    #[inline]
    pub fn output(self) -> Tensor {
        let Some(joint) = self.joint else { return self.op.output() };
        let Op { value, origin, .. } = self.op;
        if is_forward() && joint.carries() {
            return forward(value, origin, Route::Joint(joint));
        }
        let meta = Meta::new(&value, Some(origin), Some(Route::Joint(joint)));
        Tensor::from_parts(value, Some(meta))
    }
}

/// A builder for an op with several outputs. See [`Op::with_outputs`].
#[must_use = "the op has no effect until `inputs` is called"]
pub struct Outputs {
    values: Vec<NamedTensor>,
    origin: Origin,
}

impl Outputs {
    /// The results, recorded if one of `inputs` requires a gradient.
    ///
    /// `gradients` gets the gradients of the outputs and returns one gradient for each of `inputs`, as in
    /// [`Op::inputs`]. It is called once, when the gradients of all outputs are complete. The gradient of an
    /// unused output is `None`; [`Cx::output_gradient`] returns it as zeros.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::autograd::{Kept, Op};
    ///
    /// /// The radius and the angle of the point `(x, y)`.
    /// fn polar(x: &Tensor, y: &Tensor) -> Result<Vec<Tensor>> {
    ///     let r = x.value().square()?.add(&y.value().square()?)?.sqrt()?;
    ///     let angle = y.value().atan2(x.value())?;
    ///     let kept = [Kept::output_at(0, &r), Kept::output_at(1, &angle)];
    ///     Ok(Op::with_outputs("polar", vec![r, angle]).inputs(&[Some(x), Some(y)], move |_, cx| {
    ///         let [r, angle] = [kept[0].get(cx), kept[1].get(cx)];
    ///         let [along, across] = [cx.output_gradient(0)?, cx.output_gradient(1)?.div(&r)?];
    ///         let (sin, cos) = (angle.sin()?, angle.cos()?);
    ///         let of_x = along.mul(&cos)?.sub(across.mul(&sin)?)?;
    ///         let of_y = along.mul(&sin)?.add(across.mul(&cos)?)?;
    ///         Ok(vec![Some(of_x), Some(of_y)])
    ///     }))
    /// }
    ///
    /// let x = Tensor::new([3.0])?.requiring_grad()?;
    /// let y = Tensor::new([4.0])?.requiring_grad()?;
    /// let r = &polar(&x, &y)?[0];
    /// r.mul(5.0)?.backward()?; // the angle is not used
    /// assert!((x.grad().unwrap().item::<f64>()? - 3.0).abs() < 1e-6);
    /// assert!((y.grad().unwrap().item::<f64>()? - 4.0).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// In the backward pass, the errors of [`Op::inputs`], with the line that called [`Op::with_outputs`].
    pub fn inputs(
        self,
        inputs: &[Option<&Tensor>],
        gradients: impl Fn(&[Option<Tensor>], &Cx<'_>) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
    ) -> Vec<Tensor> {
        let (outputs, open) = self.placed(inputs);
        if let Some((meeting, inputs, places)) = open {
            let owns = may_own(&gradients);
            let of_outputs = move |cx: &Cx<'_>| match cx.outputs {
                OutputGradients::Several { gradients: gs, .. } => gradients(gs, cx),
                OutputGradients::One(_) => Ok(Vec::new()),
            };
            let joint = Joint::new(inputs, Vec::new(), places, Arc::new(of_outputs), owns);
            return met(outputs, &meeting, joint);
        }
        outputs
    }

    /// The outputs; if an input requires a gradient, also the meta where their gradients meet, whose route is
    /// still open, with what the route needs. It does not depend on the type of the derivative.
    fn placed(self, inputs: &[Option<&Tensor>]) -> (Vec<Tensor>, Option<Meeting>) {
        let Outputs { values, origin } = self;
        if is_anomaly_enabled() {
            for value in &values {
                inputs.iter().flatten().for_each(|x| nan::carry(x.value(), value));
                nan::settle(origin, value);
            }
        }
        if is_observed() {
            observe::tell(origin.op, origin.at, &[], &crate::list::<_, Vec<_>>(values.iter()));
        }
        let inputs = joint_inputs(inputs);
        if !is_tracked(&inputs) {
            return (crate::list(values.into_iter().map(Tensor::constant)), None);
        }
        // Created before the outputs, so that the backward pass reaches it after them.
        let meeting = Meta::meeting(origin);
        let (mut results, mut places) = (Vec::with_capacity(values.len()), Vec::with_capacity(values.len()));
        let outputs = values.len();
        for (number, value) in values.into_iter().enumerate() {
            let route = || Route::Part { of: meeting.clone(), number, outputs };
            let is_float = value.dtype().is_floating_point();
            let meta = is_float.then(|| Meta::new(&value, Some(origin), Some(route())));
            places.push(JointOutput::new(&value, meta.as_ref()));
            results.push(Tensor::from_parts(value, meta));
        }
        (results, Some((meeting, inputs, places)))
    }
}

/// The outputs of an op with several, whose derivative is now known.
fn met(outputs: Vec<Tensor>, meeting: &Arc<Meta>, joint: Arc<Joint>) -> Vec<Tensor> {
    let carries = is_forward() && joint.carries();
    meeting.set_route(Route::Joint(joint.clone()));
    if carries { forward_all(outputs, meeting, &joint) } else { outputs }
}

/// Looks at the output of an op of a user.
#[cold]
fn look(origin: Origin, output: &NamedTensor) {
    if is_anomaly_enabled() {
        nan::settle(origin, output);
    }
    if is_observed() {
        observe::tell(origin.op, origin.at, &[], &[output]);
    }
}

/// The record at which the gradients of several outputs meet, with the inputs and outputs of their
/// derivative.
type Meeting = (Arc<Meta>, JointInputs, Vec<JointOutput>);

/// A tensor saved for the backward pass, without names unless a function with `named` saved it.
///
/// Save an output with [`output`](Self::output) or [`output_at`](Self::output_at), which store only its
/// value, because an op that owned its own record on the tape would never be freed. [`get`](Self::get)
/// returns the value as a tensor with that record, so that its gradient reaches the op and the hooks of the
/// output see the whole gradient.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::{BackwardOptions, Kept, Op, grad_with};
///
/// /// `1 / x`, whose derivative is `-y²`.
/// fn inverse(x: &Tensor) -> Result<Tensor> {
///     let y = x.value().reciprocal()?;
///     let kept = Kept::output(&y);
///     Ok(Op::new("inverse", y).input(x, move |g, cx| g.mul(kept.get(cx).square()?)?.neg()).output())
/// }
///
/// let x = Tensor::new(2.0)?.requiring_grad()?;
/// let create = BackwardOptions { create_graph: true, ..Default::default() };
/// let first = grad_with(&[&inverse(&x)?], &[&x], &[], create)?[0].clone().unwrap();
/// let second = grad_with(&[&first], &[&x], &[], create)?[0].clone().unwrap();
/// assert_eq!([first.item::<f64>()?, second.item::<f64>()?], [-0.25, 0.25]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Kept(Which);

#[derive(Clone)]
enum Which {
    Input(Tensor),
    /// Without its record on the tape, because an op that owned its own output would never be freed.
    Output {
        number: usize,
        value: NamedTensor,
    },
    /// An output that the op does not return.
    Constant(NamedTensor),
}

impl Kept {
    /// Saves an input, or any tensor that is not an output of the op.
    #[inline]
    pub fn input(x: &Tensor) -> Kept {
        Kept(Which::Input(x.unnamed()))
    }

    /// Saves the output of the op, or the first output if there are several.
    #[inline]
    pub fn output(y: &NamedTensor) -> Kept {
        Kept::output_at(0, y)
    }

    /// Saves output `number`, counted from 0, of an op with several outputs; `y` is its value.
    ///
    /// A wrong number is detected only when the gradient is differentiated again: then it is an error if the
    /// op does not have that output, or if its sizes differ.
    #[inline]
    pub fn output_at(number: usize, y: &NamedTensor) -> Kept {
        Kept(Which::Output { number, value: y.unnamed() })
    }

    /// Saves an input with its names, for [`Op::input_named`].
    pub fn named_input(x: &Tensor) -> Kept {
        Kept(Which::Input(x.clone()))
    }

    /// Saves the output of the op with its names, for [`Op::input_named`]; of several outputs, the first.
    pub fn named_output(y: &NamedTensor) -> Kept {
        Kept::named_output_at(0, y)
    }

    /// Saves output `number` with its names; see [`output_at`](Self::output_at).
    pub fn named_output_at(number: usize, y: &NamedTensor) -> Kept {
        Kept(Which::Output { number, value: y.clone() })
    }

    /// Saves an output that the op does not return.
    pub(crate) fn constant(value: &NamedTensor) -> Kept {
        Kept(Which::Constant(value.clone()))
    }

    /// The saved tensor, which can be differentiated again.
    pub fn get(&self, cx: &Cx<'_>) -> Tensor {
        match &self.0 {
            Which::Input(x) => x.clone(),
            Which::Output { number, value } => cx.output(*number, value),
            Which::Constant(value) => Tensor::constant(value.clone()),
        }
    }
}
