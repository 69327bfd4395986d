//! [`Cx`]: what a derivative can ask for besides its saved values.

use super::joint::{JointInput, JointOutput};
use super::walk::Useful;
use super::{Edge, Edges, Gradient, Meta, Origin, Route, is_grad_enabled};
use crate::tensor::Tensor;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result, Scalar};
use std::sync::Arc;

/// The facts that a derivative can ask for besides its saved values: the sizes and dtypes of the inputs,
/// which of them need a gradient, and the gradients of the outputs.
///
/// The derivative of one input, given to [`Op::input`](crate::Op::input), uses [`sizes`](Self::sizes) and
/// [`dtype`](Self::dtype). A joint derivative, given to [`Op::inputs`](crate::Op::inputs) or
/// [`Outputs::inputs`](crate::Outputs::inputs), passes the number of an input in its list to
/// [`sizes_of`](Self::sizes_of), [`dtype_of`](Self::dtype_of) and [`wants`](Self::wants).
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::{Cx, Kept, Op};
///
/// /// `x` times a factor, which may be missing.
/// fn scaled(x: &Tensor, factor: Option<&Tensor>) -> Result<Tensor> {
///     let value = match factor {
///         Some(factor) => x.value().mul(factor.value())?,
///         None => x.value().clone(),
///     };
///     let (x_kept, factor_kept) = (Kept::input(x), factor.map(Kept::input));
///     let gradients = move |g: &Tensor, cx: &Cx<'_>| {
///         let of_x = match &factor_kept {
///             Some(factor) => g.mul(factor.get(cx))?,
///             None => g.clone(),
///         };
///         // Only computed if it is needed.
///         let of_factor = match cx.wants(1) {
///             true => Some(g.mul(x_kept.get(cx))?.sum_to(cx.sizes_of(1))?),
///             false => None,
///         };
///         Ok(vec![Some(of_x), of_factor])
///     };
///     Ok(Op::new("scaled", value).inputs(&[Some(x), factor], gradients).output())
/// }
///
/// let x = Tensor::new([1.0, 2.0])?.requiring_grad()?;
/// let factor = Tensor::new(3.0)?.requiring_grad()?;
/// scaled(&x, Some(&factor))?.sum(..)?.backward()?;
/// scaled(&x, None)?.sum(..)?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [4.0, 4.0]);
/// assert_eq!(factor.grad().unwrap().item::<f64>()?, 3.0);
/// # Ok::<(), Error>(())
/// ```
pub struct Cx<'a> {
    pub(super) inputs: NodeInputs<'a>,
    pub(crate) outputs: OutputGradients<'a>,
    /// The record at which the gradients of the outputs arrive; for a single output, its own.
    pub(super) node: &'a Arc<Meta>,
    pub(super) origin: Origin,
    /// The metas on the route to the inputs of [`grad`](crate::grad); `None` if the walk goes to all leaves.
    pub(super) useful: Option<&'a Useful>,
}

/// The inputs that a derivative is for.
#[derive(Clone, Copy)]
pub(super) enum NodeInputs<'a> {
    One(&'a Meta),
    Joint(&'a [JointInput]),
}

/// The gradients of the outputs.
pub(crate) enum OutputGradients<'a> {
    One(&'a Tensor),
    Several { gradients: &'a [Option<Tensor>], outputs: &'a [JointOutput] },
}

impl Cx<'_> {
    /// The sizes of the input that the gradient is for; in a joint derivative, of the first input.
    #[inline]
    pub fn sizes(&self) -> &[usize] {
        self.sizes_of(0)
    }

    /// The dtype of the input that the gradient is for; in a joint derivative, of the first input.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype_of(0)
    }

    /// The sizes of input `number` of the list, whether or not it requires a gradient. They are empty for an
    /// input that is `None` or that the list does not have.
    #[inline]
    pub fn sizes_of(&self, number: usize) -> &[usize] {
        match self.inputs {
            NodeInputs::One(input) if number == 0 => &input.sizes,
            NodeInputs::One(_) => &[],
            NodeInputs::Joint(inputs) => inputs.get(number).map_or(&[], JointInput::sizes),
        }
    }

    /// The dtype of input `number` of the list, whether or not it requires a gradient. It is `f32` for an
    /// input that is `None` or that the list does not have.
    #[inline]
    pub fn dtype_of(&self, number: usize) -> DType {
        match self.inputs {
            NodeInputs::One(input) if number == 0 => input.dtype,
            NodeInputs::One(_) => DType::F32,
            NodeInputs::Joint(inputs) => inputs.get(number).map_or(DType::F32, JointInput::dtype),
        }
    }

    /// Whether this backward pass needs the gradient of input `number` of the list.
    ///
    /// It does if the input requires a gradient and, in [`grad`](crate::grad), is one of the tensors asked
    /// for or depends on one. A gradient that is not needed can be `None`; if it is computed anyway, it is
    /// dropped.
    #[inline]
    pub fn wants(&self, number: usize) -> bool {
        let tracked = match self.inputs {
            NodeInputs::One(input) => (number == 0).then_some(input),
            NodeInputs::Joint(inputs) => inputs.get(number).and_then(JointInput::tracked).map(|meta| &**meta),
        };
        tracked.is_some_and(|meta| match self.useful {
            Some(useful) => useful.contains_key(&meta.id),
            None => meta.is_recorded(),
        })
    }

    /// The number of inputs.
    pub(super) fn count(&self) -> usize {
        match self.inputs {
            NodeInputs::One(_) => 1,
            NodeInputs::Joint(inputs) => inputs.len(),
        }
    }

    /// The gradient of output `number`, counted from 0. If nothing depends on the output, it is zeros of the
    /// sizes and the dtype of the output, as a view of a single zero, which takes almost no memory.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if the op does not have that output.
    pub fn output_gradient(&self, number: usize) -> Result<Tensor> {
        match self.outputs {
            OutputGradients::One(gradient) if number == 0 => Ok(gradient.clone()),
            OutputGradients::One(_) => Err(self.no_output(number, 1)),
            OutputGradients::Several { gradients, outputs } => {
                match (gradients.get(number), outputs.get(number)) {
                    (Some(Some(gradient)), _) => Ok(gradient.clone()),
                    (_, Some(output)) => self.zeros(output, output.dtype),
                    (_, None) => Err(self.no_output(number, outputs.len())),
                }
            }
        }
    }

    /// Calls `f` with the gradients of the outputs in the dtypes that kernels compute in.
    pub(crate) fn with_wide_gradients<R>(&self, f: impl FnOnce(&Cx<'_>) -> Result<R>) -> Result<R> {
        let wide = |g: &Tensor| g.to(g.dtype().compute());
        let (one, several);
        let outputs = match self.outputs {
            OutputGradients::One(g) => {
                one = wide(g)?;
                OutputGradients::One(&one)
            }
            OutputGradients::Several { gradients, outputs } => {
                let mut all = Vec::with_capacity(outputs.len());
                for (g, output) in gradients.iter().zip(outputs) {
                    all.push(Some(match g {
                        Some(g) => wide(g)?,
                        None => self.zeros(output, output.dtype.compute())?,
                    }));
                }
                several = all;
                OutputGradients::Several { gradients: &several, outputs }
            }
        };
        f(&Cx { outputs, ..*self })
    }

    /// The gradient of the output of an op that has one.
    pub(crate) fn gradient(&self) -> &Tensor {
        match self.outputs {
            OutputGradients::One(gradient) => gradient,
            OutputGradients::Several { .. } => unreachable!("a formula of an op with one output"),
        }
    }

    /// Zeros like an output: one number, repeated along every dim.
    fn zeros(&self, output: &JointOutput, dtype: DType) -> Result<Tensor> {
        const SCALAR: &[usize] = &[];
        let zero = NamedTensor::full_as(self.origin.op, SCALAR, Scalar::Int(0), dtype)?;
        Ok(Tensor::constant(zero.expand(&output.sizes[..])?))
    }

    /// Whether the input is a column-major matrix. A gradient in the same order needs no copy on its way
    /// back.
    pub(crate) fn is_column_major(&self) -> bool {
        matches!(self.inputs, NodeInputs::One(input) if input.column_major)
    }

    /// Output `number`, whose `value` was saved, as a tensor on the tape.
    ///
    /// If the output still has a record on the tape, it is used, so that its hooks see the whole gradient.
    /// Otherwise there is a new record that leads back to the same op.
    #[inline]
    pub(crate) fn output(&self, number: usize, value: &NamedTensor) -> Tensor {
        match self.outputs {
            OutputGradients::One(_) if number == 0 && is_same(self.node, value) => {
                Tensor::from_parts(value.clone(), Some(self.node.clone()))
            }
            OutputGradients::One(_) => self.misplaced(number, value),
            OutputGradients::Several { outputs, .. } => self.one_of(outputs, number, value),
        }
    }

    fn one_of(&self, outputs: &[JointOutput], number: usize, value: &NamedTensor) -> Tensor {
        let Some(output) = outputs.get(number).filter(|output| output.sizes[..] == *value.sizes()) else {
            return self.misplaced(number, value);
        };
        let is_recorded = is_grad_enabled() && output.dtype.is_floating_point();
        let meta = output.meta.upgrade().or_else(|| {
            let route = || Route::Part { of: self.node.clone(), number, outputs: outputs.len() };
            let route = is_recorded.then(route);
            match &output.carried {
                Some(carried) => {
                    let origin = route.is_some().then_some(self.origin);
                    Some(Meta::carrying(value, origin, route, carried.clone().recorded(is_recorded)))
                }
                None => route.map(|route| Meta::new(value, Some(self.origin), Some(route))),
            }
        });
        Tensor::from_parts(value.clone(), meta)
    }

    /// A value that was saved as an output that the op does not have. Differentiating it is an error;
    /// otherwise its gradient would be lost or misdirected.
    #[cold]
    fn misplaced(&self, number: usize, value: &NamedTensor) -> Tensor {
        let Origin { op, at } = self.origin;
        let sizes = value.sizes().to_vec();
        let refused = move |_: &Tensor, _: &Cx<'_>| {
            let message =
                format!("a value of sizes {sizes:?} was kept as output {number} and is not that output");
            Err(Error::new(ErrorKind::Autograd, op, message).at(at))
        };
        let mut edges = Edges::new();
        let (into, gradient) = (self.node.clone(), Gradient::With(Arc::new(refused)));
        edges.push(Edge { into, gradient, keeps: false, by_element: false });
        let meta = Meta::new(value, Some(self.origin), Some(Route::Edges(edges)));
        Tensor::from_parts(value.clone(), Some(meta))
    }

    #[cold]
    fn no_output(&self, number: usize, outputs: usize) -> Error {
        let message = format!("the derivative asks for the gradient of output {number} of {outputs}");
        Error::new(ErrorKind::Autograd, self.origin.op, message).at(self.origin.at)
    }
}

/// Whether `value` can be the output at `meta`. It only matters for a value that is differentiated again.
#[inline]
fn is_same(meta: &Meta, value: &NamedTensor) -> bool {
    !is_grad_enabled() || meta.sizes[..] == *value.sizes()
}
