//! Forward mode: a tensor carries tangents, its derivatives along directions, and each op gives its result the
//! tangents that follow from those of its inputs.
//!
//! The derivatives of rows are linear in the gradient of the output, so they serve both modes. Let `J` be the
//! derivative of an output by an input:
//!
//! * In an elementwise row, `J` is diagonal. The formula, which gives `Jᵀ g`, gives `J t` for a tangent.
//! * A row that is linear in the input is run again, with the tangent in place of the input.
//! * For any other row, `u ↦ Jᵀ u` is recorded, and its own gradient along `t` is `J t` (Townsend, *A new
//!   trick for calculating Jacobian vector products*, 2017). This only needs the record of the op, so it works
//!   for the ops of users too.
//!
//! Nothing is kept for a later pass, so memory does not grow with the number of ops.
//!
//! Each call of a function in forward mode has a level of its own, and a tangent belongs to a level. While the
//! tangents of a level are computed, that level and those inside of it are hidden: the ops see tangents of the
//! levels around it alone. This keeps nested derivatives apart (Siskind, Pearlmutter, *Perturbation confusion
//! and referential transparency*, 2005).

use super::cx::NodeInputs;
use super::modes::{enable_grad, is_forward, is_grad_enabled, set_forward, set_grad_enabled};
use super::record::Formula;
use super::walk::{Useful, fit, joint_gradients};
use super::{
    BackwardOptions, Cx, Edge, Edges, Gradient, Joint, JointOutput, Meta, Origin, OutputGradients, Route,
};
use crate::plain::Input;
use crate::tensor::{Tensor, grad_with};
use crate::vmap::{level_of, level_of_inputs};
use namegrad_core::{DType, NamedTensor, OnDevice, Result};
use std::cell::RefCell;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// What a tensor carries besides its value and its record.
#[derive(Clone)]
pub(crate) struct Carried {
    /// Whether it requires a gradient too.
    pub(crate) recorded: bool,
    /// The tangents with their levels. A tangent that could not be computed is an error when it is asked for,
    /// because recording an op cannot fail.
    tangents: Vec<(u64, Result<Tensor>)>,
}

/// Nothing changes it, so that a panic cannot leave it half written.
impl UnwindSafe for Carried {}
impl RefUnwindSafe for Carried {}

impl Carried {
    pub(crate) fn recorded(mut self, recorded: bool) -> Carried {
        self.recorded = recorded;
        self
    }

    /// Whether ops on the tensor lead back to it.
    #[cold]
    pub(crate) fn is_followed(&self) -> bool {
        self.recorded && is_grad_enabled() || self.tangents.iter().any(|(level, _)| is_visible(*level))
    }

    fn tangent(&self, level: u64) -> Option<&Result<Tensor>> {
        self.tangents.iter().find(|(at, _)| *at == level).map(|(_, tangent)| tangent)
    }
}

thread_local! {
    /// The levels that ops see, outermost first.
    static LEVELS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

fn is_visible(level: u64) -> bool {
    LEVELS.with_borrow(|levels| levels.contains(&level))
}

/// Whether a derivative may be one kernel on plain values: nothing is recorded, and there are neither tangents
/// nor batches.
#[inline]
pub(crate) fn fuses() -> bool {
    !is_grad_enabled() && !is_forward()
}

/// Levels that are put back at the end of a scope.
struct Restored(Vec<u64>);

impl Restored {
    fn replace(levels: Vec<u64>) -> Restored {
        set_forward(!levels.is_empty());
        Restored(LEVELS.replace(levels))
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        set_forward(!self.0.is_empty());
        LEVELS.set(std::mem::take(&mut self.0));
    }
}

/// Runs `f` without `level` and the levels inside of it.
fn outside<R>(level: u64, f: impl FnOnce() -> R) -> R {
    let outer =
        LEVELS.with_borrow(|levels| crate::list(levels.iter().copied().take_while(|at| *at != level)));
    let _restored = Restored::replace(outer);
    f()
}

/// Runs `f` without the levels inside of `level`.
pub(crate) fn inside<R>(level: u64, f: impl FnOnce() -> R) -> R {
    let outer =
        LEVELS.with_borrow(|levels| crate::list(levels.iter().copied().take_while(|at| *at <= level)));
    let _restored = Restored::replace(outer);
    f()
}

/// A call of a function in forward mode, or of `vmap`. Later calls have higher numbers, which are those of
/// records: a record with a lower number was there before the call.
pub(crate) struct Level {
    pub(crate) id: u64,
    _restored: Restored,
}

impl Level {
    pub(crate) fn enter() -> Level {
        let id = Meta::next_id_taken();
        let mut levels = LEVELS.with_borrow(Vec::clone);
        levels.push(id);
        Level { id, _restored: Restored::replace(levels) }
    }

    /// `x` with a tangent of this level.
    pub(crate) fn with_tangent(&self, x: &Tensor, tangent: Tensor) -> Tensor {
        let value = x.value().clone();
        let mut carried = carried_by(x);
        carried.recorded &= is_grad_enabled();
        carried.tangents.push((self.id, Ok(tangent)));
        // A new record that leads to the input.
        let route = x.meta().filter(|_| carried.recorded).map(|into| {
            let gradient = Gradient::With(Arc::new(|g: &Tensor, _: &Cx<'_>| Ok(g.clone())));
            let edge = Edge { into: into.clone(), gradient, keeps: false, by_element: true };
            Route::Edges(Edges::from_iter([edge]))
        });
        let origin = route.is_some().then(|| Origin::here("jvp"));
        let meta = Meta::carrying(&value, origin, route, carried);
        Tensor::from_parts(value, Some(meta))
    }

    /// The tangent of this level, if `x` has one.
    pub(crate) fn tangent_of(&self, x: &Tensor) -> Result<Option<Tensor>> {
        x.carried().and_then(|carried| carried.tangent(self.id)).cloned().transpose()
    }

    /// `x` without its tangent of this level.
    pub(crate) fn without_tangent(&self, x: Tensor) -> Tensor {
        let Some(carried) = x.carried().filter(|carried| carried.tangent(self.id).is_some()) else {
            return x;
        };
        let mut carried = carried.clone();
        carried.tangents.retain(|(level, _)| *level != self.id);
        carrying(&x, carried)
    }
}

/// What a tensor carries, which is no tangent for most.
fn carried_by(x: &Tensor) -> Carried {
    let none = || Carried { recorded: x.requires_grad(), tangents: Vec::new() };
    x.carried().cloned().unwrap_or_else(none)
}

/// The value of `x` with its place on the tape, if that is `recorded`, and the tangents.
fn carrying(x: &Tensor, carried: Carried) -> Tensor {
    let value = x.value().clone();
    if carried.tangents.is_empty() && !carried.recorded {
        return Tensor::constant(value);
    }
    let known = x.meta_and_carried().filter(|_| carried.recorded);
    let (origin, route) = known.map_or((None, None), |meta| (meta.origin, meta.state().route.clone()));
    let meta = match carried.tangents.is_empty() {
        true => Meta::new(&value, origin, route),
        false => Meta::carrying(&value, origin, route, carried),
    };
    Tensor::from_parts(value, Some(meta))
}

/// The visible levels of these metas, outermost first. Those outside of a call of `vmap` are not of its slices:
/// the batches have their tangents.
fn levels_of(metas: &[&Arc<Meta>], batch: u64) -> Vec<u64> {
    let has = |level: &u64| *level > batch && metas.iter().any(|meta| tangent(meta, *level).is_some());
    LEVELS.with_borrow(|levels| crate::list(levels.iter().copied().filter(has)))
}

fn tangent(meta: &Meta, level: u64) -> Option<&Result<Tensor>> {
    meta.carried.as_ref()?.tangent(level)
}

/// The inputs that a route leads to.
fn inputs_of(route: &Route) -> Vec<Arc<Meta>> {
    let mut inputs = Vec::new();
    route.visit(&mut |into| inputs.push(into.clone()));
    inputs
}

/// The result of an op of one output, of whose inputs some carry tangents.
#[cold]
pub(crate) fn forward(value: NamedTensor, origin: Origin, route: Route) -> Tensor {
    let inputs = inputs_of(&route);
    let recorded = is_grad_enabled() && inputs.iter().any(|input| input.is_recorded());
    let mut y = Tensor::from_parts(value.clone(), Some(Meta::new(&value, Some(origin), Some(route.clone()))));
    let mut carried = Carried { recorded, tangents: Vec::new() };
    for level in levels_of(&args(&inputs), level_of(&value)) {
        let made = outside(level, || pushed(&route, &y, origin, level, recorded));
        if let Some(tangent) = made.transpose() {
            carried.tangents.push((level, tangent));
            y = carrying(&y, carried.clone());
        }
    }
    match carried.tangents.is_empty() {
        true => carrying(&y, carried),
        false => y,
    }
}

fn args(metas: &[Arc<Meta>]) -> Vec<&Arc<Meta>> {
    crate::list(metas.iter())
}

/// The tangent of `y`, the only output of a route.
fn pushed(route: &Route, y: &Tensor, origin: Origin, level: u64, recorded: bool) -> Result<Option<Tensor>> {
    let Some(node) = y.meta_and_carried() else { return Ok(None) };
    let (edges, joint) = match route {
        Route::Edges(edges) => (&edges[..], None),
        Route::Joint(joint) => (&joint.edges[..], Some(joint)),
        Route::Part { .. } | Route::Again(_) => return Ok(None),
    };
    let recorded = recorded || is_grad_enabled() && inputs_of(route).iter().any(|x| is_recorded_at(x, level));
    let mut transposed = Transposed::new(recorded, std::slice::from_ref(&(node.sizes.to_vec(), node.dtype)))?;
    let mut sum = None;
    for (number, edge) in edges.iter().enumerate() {
        let Some(t) = tangent(&edge.into, level) else { continue };
        let (t, inputs) = (t.clone()?, NodeInputs::One(&edge.into));
        let of = |g: &Tensor| {
            let cx = Cx { inputs, outputs: OutputGradients::One(g), node, origin, useful: None };
            let _device = OnDevice::of(g.value());
            edge.gradient.apply(g, &cx)
        };
        if edge.by_element {
            let part = set_grad_enabled(recorded, || {
                let t = t.to(node.dtype)?;
                let t = if t.sizes() == &node.sizes[..] { t } else { t.expand(&node.sizes[..])? };
                of(&t)?.to(node.dtype)
            })?;
            add(&mut sum, part, recorded)?;
        } else {
            let gradient = enable_grad(|| fit(of(&transposed.us[0])?, &edge.into, number, origin))?;
            transposed.add(gradient, t);
        }
    }
    if let Some(joint) = joint {
        let outputs = |us: &[Tensor], f: &mut dyn FnMut(OutputGradients<'_>) -> Result<()>| {
            f(OutputGradients::One(&us[0]))
        };
        transposed.add_joint(joint, node, origin, level, &outputs)?;
    }
    if let Some(part) = transposed.pull()?.pop().flatten() {
        add(&mut sum, part, recorded)?;
    }
    Ok(sum)
}

/// Whether the tangent of a level is on the tape.
fn is_recorded_at(meta: &Meta, level: u64) -> bool {
    matches!(tangent(meta, level), Some(Ok(tangent)) if tangent.requires_grad())
}

fn add(sum: &mut Option<Tensor>, part: Tensor, recorded: bool) -> Result<()> {
    *sum = Some(match sum.take() {
        Some(sum) => set_grad_enabled(recorded, || sum.add(&part))?,
        None => part,
    });
    Ok(())
}

/// The map from gradients of outputs, `us`, to gradients of inputs, which is differentiated along tangents.
struct Transposed {
    us: Vec<Tensor>,
    recorded: bool,
    gradients: Vec<Tensor>,
    tangents: Vec<Tensor>,
}

/// How the gradients of outputs are passed to a derivative.
type Given<'a> = dyn Fn(&[Tensor], &mut dyn FnMut(OutputGradients<'_>) -> Result<()>) -> Result<()> + 'a;

impl Transposed {
    /// The map at zero; as it is linear, it has the same derivative everywhere.
    fn new(recorded: bool, outputs: &[(Vec<usize>, DType)]) -> Result<Transposed> {
        const NUMBER: &[usize] = &[];
        let mut us = Vec::with_capacity(outputs.len());
        for (sizes, dtype) in outputs {
            let zero = NamedTensor::zeros(NUMBER)?.to(*dtype)?.expand(&sizes[..])?;
            us.push(Tensor::constant(zero).leaf());
        }
        Ok(Transposed { us, recorded, gradients: Vec::new(), tangents: Vec::new() })
    }

    fn add(&mut self, gradient: Tensor, tangent: Tensor) {
        if gradient.requires_grad() {
            self.gradients.push(gradient);
            self.tangents.push(tangent);
        }
    }

    /// Adds the inputs of a joint derivative that have a tangent.
    fn add_joint(
        &mut self,
        joint: &Joint,
        node: &Arc<Meta>,
        origin: Origin,
        level: u64,
        given: &Given<'_>,
    ) -> Result<()> {
        let mut useful = Useful::default();
        for into in joint.inputs.iter().filter_map(|input| input.tracked()) {
            if tangent(into, level).is_some() {
                useful.insert(into.id, true);
            }
        }
        if useful.is_empty() {
            return Ok(());
        }
        let mut found = Vec::new();
        given(&self.us, &mut |outputs| {
            let inputs = NodeInputs::Joint(&joint.inputs);
            let cx = Cx { inputs, outputs, node, origin, useful: Some(&useful) };
            found = enable_grad(|| joint_gradients(joint, &cx))?;
            Ok(())
        })?;
        for (number, (input, gradient)) in joint.inputs.iter().zip(found).enumerate() {
            let Some(into) = input.tracked() else { continue };
            if let (Some(tangent), Some(gradient)) = (tangent(into, level), gradient) {
                let gradient = enable_grad(|| fit(gradient, into, number, origin))?;
                self.add(gradient, tangent.clone()?);
            }
        }
        Ok(())
    }

    /// The tangent of each output; none is zero.
    fn pull(self) -> Result<Vec<Option<Tensor>>> {
        if self.gradients.is_empty() {
            return Ok(vec![None; self.us.len()]);
        }
        let options =
            BackwardOptions { create_graph: self.recorded, allow_unused: true, ..BackwardOptions::default() };
        let tangents: Vec<Option<&Tensor>> = crate::list(self.tangents.iter().map(Some));
        let [of, us] = [&self.gradients, &self.us].map(|list| crate::list::<_, Vec<&Tensor>>(list.iter()));
        grad_with(&of, &us, &tangents, options)
    }
}

/// The results of an op with several outputs, of whose inputs some carry tangents.
#[cold]
pub(crate) fn forward_all(mut ys: Vec<Tensor>, meeting: &Arc<Meta>, joint: &Arc<Joint>) -> Vec<Tensor> {
    let (inputs, Some(origin)) = (inputs_of(&Route::Joint(joint.clone())), meeting.origin) else { return ys };
    let recorded = is_grad_enabled() && inputs.iter().any(|input| input.is_recorded());
    let mut all = vec![Carried { recorded, tangents: Vec::new() }; ys.len()];
    let (mut meeting, mut joint) = (meeting.clone(), joint.clone());
    let batch = ys.first().map_or(0, |y| level_of(y.value()));
    for level in levels_of(&args(&inputs), batch) {
        let recorded = recorded || is_grad_enabled() && inputs.iter().any(|x| is_recorded_at(x, level));
        let made = outside(level, || pushed_all(&joint, &meeting, origin, level, recorded));
        match made {
            Ok(tangents) => {
                for (carried, tangent) in all.iter_mut().zip(tangents) {
                    carried.tangents.extend(tangent.map(|tangent| (level, Ok(tangent))));
                }
            }
            Err(error) => all.iter_mut().for_each(|own| own.tangents.push((level, Err(error.clone())))),
        }
        (ys, meeting, joint) = met_again(&ys, &all, &joint, origin);
    }
    ys
}

/// The tangents of all outputs.
fn pushed_all(
    joint: &Joint,
    meeting: &Arc<Meta>,
    origin: Origin,
    level: u64,
    recorded: bool,
) -> Result<Vec<Option<Tensor>>> {
    let is_float = |output: &JointOutput| output.dtype.is_floating_point();
    let floats = joint.outputs.iter().filter(|output| is_float(output));
    let floats: Vec<(Vec<usize>, DType)> =
        crate::list(floats.map(|output| (output.sizes.to_vec(), output.dtype)));
    let mut transposed = Transposed::new(recorded, &floats)?;
    let outputs = |us: &[Tensor], f: &mut dyn FnMut(OutputGradients<'_>) -> Result<()>| {
        let mut us = us.iter().cloned();
        let gradients: Vec<Option<Tensor>> =
            crate::list(joint.outputs.iter().map(|output| if is_float(output) { us.next() } else { None }));
        f(OutputGradients::Several { gradients: &gradients, outputs: &joint.outputs })
    };
    transposed.add_joint(joint, meeting, origin, level, &outputs)?;
    let mut found = transposed.pull()?.into_iter();
    Ok(crate::list(
        joint.outputs.iter().map(|output| if is_float(output) { found.next().flatten() } else { None }),
    ))
}

/// The outputs with what they carry. A derivative sees it too, so its record is made again.
fn met_again(
    ys: &[Tensor],
    all: &[Carried],
    joint: &Joint,
    origin: Origin,
) -> (Vec<Tensor>, Arc<Meta>, Arc<Joint>) {
    let meeting = Meta::meeting(origin);
    let (mut outputs, mut made) = (Vec::with_capacity(ys.len()), Vec::with_capacity(ys.len()));
    for (number, (y, carried)) in ys.iter().zip(all).enumerate() {
        let value = y.value();
        let route = Route::Part { of: meeting.clone(), number, outputs: ys.len() };
        let meta = y.meta_and_carried().is_some().then(|| {
            let (origin, route) = if carried.recorded { (Some(origin), Some(route)) } else { (None, None) };
            Meta::carrying(value, origin, route, carried.clone())
        });
        outputs.push(JointOutput {
            carried: Some(carried.clone()).filter(|_| meta.is_some()),
            ..JointOutput::new(value, meta.as_ref())
        });
        made.push(Tensor::from_parts(value.clone(), meta));
    }
    let joint = Arc::new(joint.with_outputs(outputs));
    meeting.set_route(Route::Joint(joint.clone()));
    (made, meeting, joint)
}

/// The tangents of an op that is linear in each of the inputs that has one, from the op itself; `None` if the
/// op is not linear, or no input has a tangent.
#[cold]
pub(crate) fn linear(
    formulas: &[Formula],
    inputs: &[Input<'_>],
    run: &dyn Fn(&[Input<'_>]) -> Result<Tensor>,
) -> Option<Result<Tensor>> {
    let metas = |input: &Input<'_>| input.tensors().iter().find_map(|x| x.meta_and_carried().cloned());
    let metas: Vec<Option<Arc<Meta>>> = crate::list(inputs.iter().map(metas));
    let carriers: Vec<&Arc<Meta>> = crate::list(metas.iter().flatten());
    let levels = levels_of(&carriers, level_of_inputs(inputs));
    let outermost = *levels.first()?;
    let has_any = |meta: &Meta| levels.iter().any(|level| tangent(meta, *level).is_some());
    for (at, meta) in metas.iter().enumerate() {
        if meta.as_ref().is_some_and(|meta| has_any(meta)) && !is_linear(formulas, inputs, at) {
            return None;
        }
    }
    Some(of_linear(&metas, &levels, outermost, inputs, run))
}

fn of_linear(
    metas: &[Option<Arc<Meta>>],
    levels: &[u64],
    outermost: u64,
    inputs: &[Input<'_>],
    run: &dyn Fn(&[Input<'_>]) -> Result<Tensor>,
) -> Result<Tensor> {
    let y = outside(outermost, || run(inputs))?;
    with_tangents(y, levels, &|level| {
        let mut sum = None;
        for (at, meta) in metas.iter().enumerate() {
            let Some(tangent) = meta.as_ref().and_then(|meta| tangent(meta, level)) else { continue };
            let tangent = tangent.clone()?.with_names_of(inputs[at].tensors()[0]);
            let mut moved = Vec::with_capacity(inputs.len());
            for (number, input) in inputs.iter().enumerate() {
                moved.push(match input {
                    _ if number == at => Input::One(&tangent),
                    Input::Optional(_) => Input::Optional(None),
                    other => *other,
                });
            }
            add(&mut sum, run(&moved)?.unnamed(), is_grad_enabled())?;
        }
        Ok(sum)
    })
}

/// `y` with tangents, each of which is computed from those of its level.
fn with_tangents(
    mut y: Tensor,
    levels: &[u64],
    tangent: &dyn Fn(u64) -> Result<Option<Tensor>>,
) -> Result<Tensor> {
    let mut carried = Carried { recorded: y.requires_grad(), tangents: Vec::new() };
    for level in levels {
        if let Some(tangent) = outside(*level, || tangent(*level))? {
            carried.tangents.push((*level, Ok(tangent)));
            y = carrying(&y, carried.clone());
        }
    }
    Ok(y)
}

/// The result of an op that is linear in a list of tensors, if one of them has tangents: `run` on the list, and
/// on the lists of tangents.
#[cold]
pub(crate) fn linear_in_list(
    tensors: &[&Tensor],
    run: &dyn Fn(&[&Tensor]) -> Result<Tensor>,
) -> Option<Result<Tensor>> {
    let metas: Vec<&Arc<Meta>> = crate::list(tensors.iter().filter_map(|x| x.meta_and_carried()));
    let levels = levels_of(&metas, level_of_inputs(&[Input::List(tensors)]));
    let y = outside(*levels.first()?, || run(tensors));
    Some(y.and_then(|y| {
        with_tangents(y, &levels, &|level| {
            let mut moved = Vec::with_capacity(tensors.len());
            for x in tensors {
                moved.push(match x.carried().and_then(|carried| carried.tangent(level)) {
                    Some(tangent) => tangent.clone()?,
                    None => x.detach().unnamed().zeros_like()?,
                });
            }
            run(&crate::list::<_, Vec<&Tensor>>(moved.iter())).map(|tangent| Some(tangent.unnamed()))
        })
    }))
}

/// Whether a row is linear in an input: its derivative depends neither on that input nor on the output, and on
/// all others, so that nothing is added to the products with the input. An optional input may be added.
fn is_linear(formulas: &[Formula], inputs: &[Input<'_>], at: usize) -> bool {
    let Some(formula) = formulas.iter().find(|formula| formula.of == at) else { return false };
    let is_seen = |number: usize| formula.kept.contains(&number);
    let is_other = |(number, input): (usize, &Input<'_>)| match input {
        Input::One(_) => number == at || is_seen(number),
        Input::Optional(_) => number != at,
        Input::List(_) => false,
    };
    !formula.by_element
        && !is_seen(at)
        && formula.kept.iter().all(|number| *number < inputs.len())
        && inputs.iter().enumerate().all(is_other)
}
