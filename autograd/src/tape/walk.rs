//! The backward pass: the walk from outputs to leaves. `pending` has the gradients that wait for their turn,
//! `gradient` what happens to one on its way, and `search` looks at the graph before and after.

mod gradient;
mod pending;
mod search;

pub(super) use search::Useful;
pub(crate) use search::history;

use super::cx::NodeInputs;
use super::modes::{enable_grad, is_anomaly_enabled, is_observed, set_grad_enabled};
use super::nan::{self, Anomaly};
use super::{
    Cx, Edge, Joint, Meta, Origin, OutputGradients, Route, State, is_anomalous, is_infinite_checked,
};
use crate::hooks::end_hooks;
use crate::line::line_of;
use crate::observe::{Section, SectionKind, section, section_of};
use crate::tensor::Tensor;
pub(super) use gradient::fit;
use gradient::{accumulate, run_hooks, run_hooks_after};
use namegrad_core::{Error, ErrorKind, OnDevice, Result};
use namegrad_macros::Setters;
use pending::{Arrived, Pending};
use search::{first_nan, last_uses, leading_to, leaves_of};
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::Location;
use std::sync::Arc;

/// The options of a backward pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Setters)]
pub struct BackwardOptions {
    /// Keep the saved values of the ops, so that the graph can be walked again. A graph without saved values
    /// can always be walked again. `create_graph` implies this option.
    pub retain_graph: bool,
    /// Record the backward pass, so that gradients can be differentiated.
    ///
    /// With [`backward_with`](crate::Tensor::backward_with), the `grad` of a leaf then owns the graph, and
    /// the graph owns the leaf. As in PyTorch, this memory is freed only if you call
    /// [`zero_grad`](crate::Tensor::zero_grad) before you drop the leaf. [`grad`](crate::grad) returns the
    /// gradients and has no such cycle.
    pub create_graph: bool,
    /// In [`grad`](crate::grad), an input that no output depends on has no gradient. By default, that is an
    /// error.
    pub allow_unused: bool,
    /// Gradients carry the names of their tensors, and given gradients must have the names of their outputs.
    /// By default, names are ignored, as in PyTorch's specification, except that in strict mode those of the
    /// output in another order are an error.
    pub named: bool,
    /// Add each gradient to the `grad` of its leaf, and call its hooks, as soon as it is complete. By default,
    /// this happens at the end, so that nothing has changed if the pass fails.
    ///
    /// A hook can then apply the gradient and drop it while the pass goes on, so that the gradients of a model
    /// are never all in memory. The parameter changes in place once no op that still waits has saved it. Under
    /// [`detect_anomaly`](crate::detect_anomaly()), gradients are added at the end.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::autograd::BackwardOptions;
    /// use std::sync::Mutex;
    /// let model = Sequential::new().then(Linear::new(4, 8)?).then(Tanh).then(Linear::new(8, 1)?);
    /// for parameter in model.parameters() {
    ///     let optimizer = Mutex::new(Sgd::builder([&parameter]).lr(0.1).build()?);
    ///     parameter.tensor().register_post_accumulate_grad_hook(move |_| {
    ///         let mut optimizer = optimizer.lock().unwrap();
    ///         optimizer.step()?;
    ///         optimizer.zero_grad();
    ///         Ok(None)
    ///     })?;
    /// }
    /// let loss = || model.forward(&Tensor::ones([16, 4])?)?.square()?.mean(..);
    /// let before = loss()?;
    /// before.backward_with(None, BackwardOptions::new().early(true))?;
    /// assert!(loss()?.item::<f64>()? < before.item()?);
    /// assert!(model.parameters().iter().all(|parameter| parameter.grad().is_none()));
    /// # Ok::<(), Error>(())
    /// ```
    pub early: bool,
}

/// Ids are distinct, so they need no mixing.
#[derive(Default)]
pub(crate) struct IdHasher(u64);
impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }
    fn write_u64(&mut self, id: u64) {
        // hashbrown distinguishes entries by their high bits.
        self.0 = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
/// A map by the ids of metas.
pub(crate) type ById<T> = HashMap<u64, T, BuildHasherDefault<IdHasher>>;

/// The goal of a walk: the `grad` of the leaves, or the gradients of chosen tensors.
pub(crate) enum Goal<'a> {
    Leaves,
    Inputs(&'a [Arc<Meta>]),
}

/// The start of a walk: the record of an output, its gradient, and whether the output has a NaN, which only
/// anomaly mode checks.
pub(crate) type Root = (Arc<Meta>, Tensor, bool);

thread_local! {
    /// The number of backward passes to leaves, and the id of the output from which the last one began.
    static PASSES: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// The number of backward passes to leaves on this thread, by which an optimizer knows whether one was made
/// since its last step.
#[doc(hidden)]
pub fn backward_passes() -> u64 {
    PASSES.get().0
}

/// Sets that number back, after a plan.
pub(crate) fn set_backward_passes(passes: u64) {
    PASSES.set((passes, 0));
}

/// Whether the last of these passes began at this tensor.
#[doc(hidden)]
pub fn began_last_backward(output: &Tensor) -> bool {
    output.meta().is_some_and(|meta| PASSES.get().1 == meta.id)
}

/// Walks from `roots` with the given gradients and returns the gradients of the inputs of the goal. The
/// gradients of leaves are added to their `grad` after the whole walk has succeeded, unless they are to be
/// early.
#[track_caller]
pub(crate) fn walk(
    op: &'static str,
    roots: Vec<Root>,
    goal: Goal<'_>,
    options: BackwardOptions,
) -> Result<Vec<Option<Tensor>>> {
    let at = Location::caller();
    if matches!(goal, Goal::Leaves) {
        PASSES.set((PASSES.get().0 + 1, roots.first().map_or(0, |root| root.0.id)));
    }
    match is_observed() {
        true => {
            let backward = Section { kind: SectionKind::Backward, name: op, at: line_of(at) };
            section(backward, || walk_from(op, at, roots, goal, options))
        }
        false => walk_from(op, at, roots, goal, options),
    }
}

fn walk_from(
    op: &'static str,
    at: &'static Location<'static>,
    roots: Vec<Root>,
    goal: Goal<'_>,
    options: BackwardOptions,
) -> Result<Vec<Option<Tensor>>> {
    // New tensors in formulas are where the gradients are.
    let _device = roots.first().map(|(_, grad, _)| OnDevice::of(grad.value()));
    // Gradients have the dtypes of the forward pass.
    let _off = crate::autocast::Off::enter();
    let anomaly = is_anomaly_enabled();
    let starts: Vec<Arc<Meta>> = roots.iter().map(|root| root.0.clone()).collect();
    let born = match is_infinite_checked() {
        _ if !anomaly => None,
        // Infinite values are common in masks; only those matter that reach the end.
        true => starts.iter().find(|start| start.is_nan).cloned(),
        false => first_nan(&starts),
    };
    if let Some(born) = born {
        return Err(nan::in_forward(op, born.id, born.origin).at(at));
    }
    let nan_before = anomaly && roots.iter().any(|root| root.2);
    let ends = if matches!(goal, Goal::Leaves) { end_hooks() } else { Vec::new() };
    let early = (options.early || !ends.is_empty()) && !anomaly;
    let useful = match goal {
        Goal::Leaves => None,
        Goal::Inputs(inputs) => Some(leading_to(&starts, inputs)),
    };
    let found = match goal {
        Goal::Leaves => Vec::new(),
        Goal::Inputs(inputs) => vec![None; inputs.len()],
    };
    let mut walk = Walk {
        op,
        at,
        retain: options.retain_graph || options.create_graph,
        anomaly,
        observed: is_observed(),
        nan_before,
        pending: Pending::default(),
        useful,
        goal,
        found,
        leaves: Vec::new(),
        early: if early { last_uses(&starts) } else { Vec::new() },
    };
    let is_early = !walk.early.is_empty();
    set_grad_enabled(options.create_graph, || {
        for (meta, grad, _) in roots {
            walk.pending.add(meta, grad)?;
        }
        while let Some((meta, arrived)) = walk.next() {
            walk.pass(meta, arrived)?;
            if is_early {
                walk.store(options.named)?;
            }
        }
        if nan_before {
            let message = format!("the output is {} before the backward pass", nan::what());
            return Err(Error::new(ErrorKind::Autograd, op, message).at(at).with_repair(FORWARD_TOO));
        }
        walk.store(options.named)?;
        for end in ends {
            end()?;
        }
        Ok(walk.found)
    })
}

/// A walk in progress.
struct Walk<'a> {
    /// The function that was called, and from where.
    op: &'static str,
    at: &'static Location<'static>,
    /// Whether the saved values of ops are kept for another walk.
    retain: bool,
    /// Whether gradients are checked for NaN.
    anomaly: bool,
    /// Whether an observer sees the derivatives of ops.
    observed: bool,
    /// Whether an output was NaN when the walk began.
    nan_before: bool,
    pending: Pending,
    /// The metas that lead to the inputs of the goal, if the walk only goes to these.
    useful: Option<Useful>,
    goal: Goal<'a>,
    found: Vec<Option<Tensor>>,
    leaves: Vec<(Arc<Meta>, Tensor)>,
    /// The leaves whose gradients are added early, each behind the oldest value whose op uses it; the next one
    /// last.
    early: Vec<(u64, u64)>,
}

impl Walk<'_> {
    /// The next meta with its gradient: a leaf as soon as all values that still wait are older than its uses.
    #[inline]
    fn next(&mut self) -> Option<(Arc<Meta>, Arrived)> {
        while let Some((_, leaf)) = self.early.pop_if(|(used, _)| self.pending.latest() < Some(*used)) {
            if let Some(found) = self.pending.take_out(leaf) {
                return Some(found);
            }
        }
        self.pending.take()
    }

    /// Adds the gradients of leaves that the walk has reached to their `grad`. The hooks come last, so that
    /// every gradient is complete if a hook fails.
    fn store(&mut self, named: bool) -> Result<()> {
        let mut reached = Vec::with_capacity(self.leaves.len());
        for (meta, grad) in std::mem::take(&mut self.leaves) {
            accumulate(&meta, grad, named)?;
            reached.push(meta);
        }
        for meta in reached {
            run_hooks_after(&meta, self.at)?;
        }
        Ok(())
    }

    /// Goes on from a meta, at which all gradients have arrived, to the inputs of its op.
    fn pass(&mut self, meta: Arc<Meta>, arrived: Arrived) -> Result<()> {
        let mut grad = match arrived {
            Arrived::Gradient(grad) => grad,
            Arrived::Parts(parts) => return self.pass_parts(&meta, &parts),
        };
        let goes_on = meta.origin.is_some() && self.goes_on(&meta);
        let (hooks, retain_grad, route) = {
            let mut state = meta.state();
            let hooks = state.hooks.as_ref().map(|hooks| hooks.list(false));
            (hooks, state.retain_grad, if goes_on { self.take_route(&mut state) } else { None })
        };
        if let Some(hooks) = hooks {
            grad = run_hooks(hooks, grad, self.at)?;
        }
        match self.goal {
            Goal::Inputs(inputs) => {
                for (slot, _) in self.found.iter_mut().zip(inputs).filter(|(_, input)| input.id == meta.id) {
                    *slot = Some(grad.clone());
                }
            }
            Goal::Leaves if retain_grad && goes_on => self.leaves.push((meta.clone(), grad.clone())),
            Goal::Leaves => {}
        }
        let Some(origin) = meta.origin else {
            if matches!(self.goal, Goal::Leaves) {
                self.leaves.push((meta, grad));
            }
            return Ok(());
        };
        if !goes_on {
            return Ok(());
        }
        let route = route.ok_or_else(|| self.used_up())?;
        match self.observed {
            false => self.pass_route(route, grad, &meta, origin),
            true => self.pass_observed(route, grad, &meta, origin),
        }
    }

    /// Goes on to the inputs of an op, as a section that the observer sees.
    #[cold]
    fn pass_observed(&mut self, route: Route, grad: Tensor, meta: &Arc<Meta>, origin: Origin) -> Result<()> {
        let kind = match route {
            // The derivative comes when the gradients of all outputs are there.
            Route::Part { .. } => return self.pass_route(route, grad, meta, origin),
            // The ops of a checkpoint run again.
            Route::Again(_) => SectionKind::Span,
            Route::Edges(_) | Route::Joint(_) => SectionKind::Derivative,
        };
        section_of(meta.id, Section { kind, name: origin.op, at: origin.at }, || {
            self.pass_route(route, grad, meta, origin)
        })
    }

    /// Goes on to the inputs of an op. Inlined, since most walks spend their time here.
    #[inline(always)]
    fn pass_route(&mut self, route: Route, grad: Tensor, meta: &Arc<Meta>, origin: Origin) -> Result<()> {
        match route {
            Route::Edges(edges) => {
                for (number, edge) in edges.into_iter().enumerate() {
                    self.pass_edge(edge, number, &grad, meta, origin)?;
                }
            }
            Route::Joint(joint) => self.pass_joint(&joint, OutputGradients::One(&grad), meta, origin)?,
            Route::Part { of, number, outputs } => {
                if self.is_useful(&of) {
                    self.pending.add_part(of, number, outputs, grad)?;
                }
            }
            Route::Again(again) => {
                let y = enable_grad(|| (again.compute)()).map_err(|error| in_backward(error, origin))?;
                self.enter(meta, y, grad)?;
            }
        }
        Ok(())
    }

    /// Goes on to an input that has its own derivative. Inlined, since most walks spend their time here.
    #[inline(always)]
    fn pass_edge(
        &mut self,
        edge: Edge,
        number: usize,
        grad: &Tensor,
        output: &Arc<Meta>,
        origin: Origin,
    ) -> Result<()> {
        if !self.is_useful(&edge.into) {
            return Ok(());
        }
        let of_input = self.of_input(&edge, number, grad, output, origin)?;
        self.pending.add(edge.into, of_input)
    }

    /// The gradient of an input that has its own derivative.
    #[inline]
    fn of_input(
        &self,
        edge: &Edge,
        number: usize,
        grad: &Tensor,
        output: &Arc<Meta>,
        origin: Origin,
    ) -> Result<Tensor> {
        let (inputs, outputs) = (NodeInputs::One(&edge.into), OutputGradients::One(grad));
        let cx = Cx { inputs, outputs, node: output, origin, useful: None };
        match edge.gradient.apply(grad, &cx) {
            Ok(gradient) => self.fitted(gradient, &edge.into, number, origin),
            Err(error) => Err(in_backward(error, origin)),
        }
    }

    /// A gradient with the sizes and the dtype of its input, checked for NaN in anomaly mode.
    #[inline]
    fn fitted(&self, gradient: Tensor, into: &Arc<Meta>, number: usize, origin: Origin) -> Result<Tensor> {
        if gradient.sizes() == &into.sizes[..] && gradient.dtype() == into.dtype && !self.anomaly {
            return Ok(gradient);
        }
        fit(gradient, into, number, origin)
            .and_then(|gradient| self.look_at(gradient, into, origin))
            .map_err(|error| in_backward(error, origin))
    }

    /// Goes on from the place where the gradients of several outputs meet.
    fn pass_parts(&mut self, meta: &Arc<Meta>, gradients: &[Option<Tensor>]) -> Result<()> {
        let route = self.take_route(&mut meta.state());
        let (Some(Route::Joint(joint)), Some(origin)) = (route, meta.origin) else {
            return Err(self.used_up());
        };
        let outputs = OutputGradients::Several { gradients, outputs: &joint.outputs };
        if !self.observed {
            return self.pass_joint(&joint, outputs, meta, origin);
        }
        let derivative = Section { kind: SectionKind::Derivative, name: origin.op, at: origin.at };
        section_of(meta.id, derivative, || self.pass_joint(&joint, outputs, meta, origin))
    }

    /// Goes on to inputs that share one derivative.
    #[inline(never)]
    fn pass_joint(
        &mut self,
        joint: &Joint,
        outputs: OutputGradients<'_>,
        node: &Arc<Meta>,
        origin: Origin,
    ) -> Result<()> {
        if let OutputGradients::One(grad) = outputs {
            for (number, edge) in joint.edges.iter().enumerate() {
                self.pass_edge(edge.clone(), number, grad, node, origin)?;
            }
        }
        let cx = Cx {
            inputs: NodeInputs::Joint(&joint.inputs),
            outputs,
            node,
            origin,
            useful: self.useful.as_ref(),
        };
        if !(0..joint.inputs.len()).any(|number| cx.wants(number)) {
            return Ok(()); // only an input with its own derivative is needed
        }
        let gradients = joint_gradients(joint, &cx).map_err(|error| in_backward(error, origin))?;
        for (number, (input, gradient)) in joint.inputs.iter().zip(gradients).enumerate() {
            if let (Some(into), Some(gradient)) = (input.tracked(), gradient)
                && self.is_useful(into)
            {
                let of_input = self.fitted(gradient, into, number, origin)?;
                self.pending.add(into.clone(), of_input)?;
            }
        }
        Ok(())
    }

    fn is_useful(&self, meta: &Meta) -> bool {
        match &self.useful {
            Some(useful) => useful.contains_key(&meta.id),
            None => meta.is_recorded(),
        }
    }

    /// Whether the walk continues past a meta. If an input of the goal is the end of the walk, the route from
    /// it is neither needed nor used up.
    fn goes_on(&self, meta: &Meta) -> bool {
        self.useful.as_ref().is_none_or(|useful| useful.get(&meta.id) == Some(&true))
    }

    /// The route from a value to its inputs. The saved values are taken with it, unless the graph is
    /// retained.
    fn take_route(&self, state: &mut State) -> Option<Route> {
        let keeps = state.route.as_ref().is_some_and(Route::keeps);
        if self.retain || !keeps { state.route.clone() } else { state.route.take() }
    }

    #[cold]
    fn used_up(&self) -> Error {
        let message = "Trying to backward through the graph a second time (or directly access saved tensors after they have \
                       already been freed). Saved intermediate values of the graph are freed when you call .backward() or \
                       autograd.grad(). Specify retain_graph if you need to backward through the graph a second time.";
        let first = match self.op {
            "grad" => "grad_with(&[&y], &[&x], &[], BackwardOptions::new().retain_graph(true))?",
            _ => "loss.backward_with(None, BackwardOptions::new().retain_graph(true))?",
        };
        Error::new(ErrorKind::Autograd, self.op, message)
            .at(self.at)
            .with_repair(format!("{first} in every pass but the last"))
    }

    /// Goes on through `y`, the recomputed value of `meta`. Its ops are later on the tape than everything in
    /// the heap, so they are processed first.
    fn enter(&mut self, meta: &Meta, y: Tensor, grad: Tensor) -> Result<()> {
        if y.sizes() != &meta.sizes[..] || y.dtype() != meta.dtype {
            let (dtype, sizes) = (y.dtype(), y.sizes());
            let message = format!(
                "computed again it is of {dtype} {sizes:?}, and was of {} {:?}",
                meta.dtype, meta.sizes
            );
            let at = meta.origin.map_or(self.at, |origin| origin.at);
            return Err(Error::new(ErrorKind::Autograd, "checkpoint", message).at(at));
        }
        let Some(root) = y.meta().cloned() else { return Ok(()) };
        if let (Some(useful), Goal::Inputs(inputs)) = (&mut self.useful, &self.goal) {
            for (id, is_beyond) in leading_to(std::slice::from_ref(&root), inputs) {
                *useful.entry(id).or_default() |= is_beyond;
            }
        }
        self.pending.add(root, grad)
    }

    /// Checks a gradient in anomaly mode, where NaN is an error.
    fn look_at(&self, gradient: Tensor, into: &Arc<Meta>, origin: Origin) -> Result<Tensor> {
        if self.anomaly && is_anomalous(gradient.value()) {
            let (op, nan) = (origin.op, nan::what());
            let leaves = leaves_of(into);
            nan::keep(Anomaly { op, at: origin.at, leaves, inputs: Vec::new() });
            let message = format!("Function '{op}' returned {nan} values in the gradient of an input");
            let error = Error::new(ErrorKind::Autograd, self.op, message)
                .at(self.at)
                .with_operands([gradient.shape()]);
            return Err(match self.nan_before {
                true => {
                    let context = format!("the output is {nan} before the backward pass; ");
                    error.context(context).with_repair(FORWARD_TOO)
                }
                false => match kink_of(op) {
                    Some(repair) => error.with_repair(repair),
                    None => error,
                },
            });
        }
        Ok(gradient)
    }
}

/// A hint for ops whose value is finite at the edge of their range, but whose derivative there is infinite.
fn kink_of(op: &str) -> Option<&'static str> {
    match op {
        "sqrt" => Some("x.add(1e-12)?.sqrt()?, as the derivative of sqrt at 0 is infinite"),
        "pow" => Some("x.add(1e-12)?.pow(p)?, as the derivative at 0 is infinite for exponents below 1"),
        "hypot" => Some(
            "x.square()?.add(y.square()?)?.add(1e-12)?.sqrt()?, as hypot has no derivative where both are 0",
        ),
        "acos" | "asin" => {
            Some("x.clamp(-1.0 + 1e-6, 1.0 - 1e-6)? before it, as the derivative at -1 and 1 is infinite")
        }
        _ => None,
    }
}

/// A hint for errors: how anomaly mode also checks forward values.
const FORWARD_TOO: &str =
    "detect_anomaly(|| ..), with the forward pass inside of it too, which then says where the nan was made";

fn in_backward(error: Error, origin: Origin) -> Error {
    error.context(format_args!("in the backward of {}, called at {}: ", origin.op, origin.at))
}

/// The gradients from a joint derivative, one for each input.
pub(super) fn joint_gradients(joint: &Joint, cx: &Cx<'_>) -> Result<Vec<Option<Tensor>>> {
    let gradients = joint.gradients.call_with((cx,))?;
    if gradients.len() != joint.inputs.len() {
        let message = format!("gave {} gradients for {} inputs", gradients.len(), joint.inputs.len());
        return Err(Error::new(ErrorKind::Autograd, cx.origin.op, message).at(cx.origin.at));
    }
    Ok(gradients)
}
