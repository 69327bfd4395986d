//! How the ops of rows are recorded: a row is a table of formulas, and the functions here read the tables.
//!
//! A formula is a plain function. The tensors and arguments that it sees are saved in one form for all ops,
//! because closures that own what they save would be compiled, with their allocation and drop, for each
//! formula.

use super::{Cx, Edge, Edges, Gradient, Origin, fuses, is_looking, nan};
use crate::op::{Kept, Op, finished};
use crate::plain::{self, Input};
use crate::tensor::Tensor;
use namegrad_core::{DType, NamedTensor, Result, args};
use std::any::Any;
use std::sync::Arc;

/// The gradient of one input of an op with one output.
pub(crate) struct Formula {
    /// The number of the input.
    pub(crate) of: usize,
    /// The tensors that it sees: inputs by their numbers, then the outputs.
    pub(crate) kept: &'static [usize],
    /// How it computes for half types.
    pub(crate) halves: Halves,
    /// Whether each element of the gradient depends only on the same element of that of the output.
    pub(crate) by_element: bool,
    /// The gradient, given that of the output.
    pub(crate) gradient: fn(&Tensor, &Saved<'_>, &Cx<'_>) -> Result<Tensor>,
}

/// How a formula computes if the gradient of the output has a half type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halves {
    /// In the half type: the formula rounds once at most, or its ops do more than round.
    Direct,
    /// In `f32`, and the result is rounded once.
    Widened,
    /// In `f32` if the backward pass is recorded; otherwise a kernel does the same.
    WidenedIfRecorded,
}

impl Halves {
    /// Whether a formula computes in `f32` for a gradient of this dtype.
    fn widens(self, dtype: DType) -> bool {
        let is_used = match self {
            Halves::Direct => false,
            Halves::Widened => true,
            Halves::WidenedIfRecorded => !fuses(),
        };
        is_used && dtype != dtype.compute()
    }
}

/// Casts tensors of half types to `f32`.
fn widen(tensors: &mut [Option<Tensor>]) -> Result<()> {
    for x in tensors.iter_mut().flatten() {
        *x = x.to(x.dtype().compute())?;
    }
    Ok(())
}

impl Formula {
    /// The gradient of the input, given that of the output.
    pub(super) fn apply(
        &self,
        g: &Tensor,
        tensors: &mut [Option<Tensor>],
        args: Option<&Args>,
        cx: &Cx<'_>,
    ) -> Result<Tensor> {
        let own = g.dtype();
        if !self.halves.widens(own) {
            return (self.gradient)(g, &Saved { tensors, args }, cx);
        }
        widen(tensors)?;
        (self.gradient)(&g.to(own.compute())?, &Saved { tensors, args }, cx)?.to(own)
    }
}

/// The gradients of several inputs, or of an op with several outputs.
pub(crate) struct JointFormula {
    /// The numbers of the inputs.
    pub(crate) of: &'static [usize],
    /// The tensors that it sees, as in a [`Formula`].
    pub(crate) kept: &'static [usize],
    /// How it computes for half types.
    pub(crate) halves: Halves,
    /// One gradient for each of the inputs.
    pub(crate) gradients: fn(&Saved<'_>, &Cx<'_>) -> Result<Vec<Option<Tensor>>>,
}

/// The tensors and arguments that a formula reads besides the gradient.
pub(crate) struct Saved<'a> {
    tensors: &'a [Option<Tensor>],
    args: Option<&'a Args>,
}

/// The arguments that the formulas of an op see: a tuple, whose type they know.
pub(crate) type Args = Arc<dyn Any + Send + Sync>;

impl Saved<'_> {
    /// Saved tensor number `at`. Every formula calls it, and the check in it would be in each.
    #[inline(never)]
    pub(crate) fn one(&self, at: usize) -> &Tensor {
        self.tensors[at].as_ref().expect("a tensor that every call has")
    }

    /// Saved tensor number `at`, if the op was called with it.
    #[inline(never)]
    pub(crate) fn optional(&self, at: usize) -> Option<&Tensor> {
        self.tensors[at].as_ref()
    }

    /// The saved arguments.
    pub(crate) fn args<A: 'static>(&self) -> &A {
        match self.any().downcast_ref() {
            Some(args) => args,
            None => unreachable!("the macro that saves the arguments gives the type"),
        }
    }

    #[inline(never)]
    fn any(&self) -> &dyn Any {
        &**self.args.expect("the macro saves the arguments that formulas see")
    }
}

/// Whether one of the inputs requires a gradient.
pub(crate) fn is_tracked(inputs: &[Input<'_>]) -> bool {
    inputs.iter().any(|input| input.tensors().iter().any(|x| x.tracked().is_some()))
}

/// Whether an in-place op on these tensors is recorded or looked at.
pub(crate) fn is_followed(inputs: &[Input<'_>]) -> bool {
    is_tracked(inputs) || is_looking()
}

/// The result of an op with one output. It is recorded if an input requires a gradient. `hidden` are the
/// outputs that only formulas see.
#[track_caller]
pub(crate) fn record(
    op: &'static str,
    inputs: &[Input<'_>],
    value: NamedTensor,
    hidden: &[NamedTensor],
    args: Option<Args>,
    formulas: &'static [Formula],
) -> Tensor {
    if is_looking() {
        let mut outputs = args::references(hidden);
        outputs.insert(0, &value);
        nan::look(op, &plain::values(inputs), &outputs);
    }
    match is_tracked(inputs) {
        true => record_edges(op, inputs, value, hidden, args, formulas),
        false => Tensor::constant(value),
    }
}

/// [`record`] in a program that does not look at values.
#[track_caller]
pub(crate) fn record_edges(
    op: &'static str,
    inputs: &[Input<'_>],
    value: NamedTensor,
    hidden: &[NamedTensor],
    args: Option<Args>,
    formulas: &'static [Formula],
) -> Tensor {
    let mut edges = Edges::new();
    for formula in formulas {
        let Some(into) = inputs[formula.of].tensors().first().and_then(|x| x.tracked()) else { continue };
        let keep = |at: usize| kept(at, inputs, &[&value], hidden);
        let gradient = match *formula.kept {
            [] if args.is_none() => Gradient::Alone(formula),
            [] => owning(formula, [], args.clone()),
            [a] => owning(formula, [keep(a)], args.clone()),
            [a, b] => owning(formula, [keep(a), keep(b)], args.clone()),
            [a, b, c] => owning(formula, [keep(a), keep(b), keep(c)], args.clone()),
            ref more => owning_all(formula, more.iter().map(|at| keep(*at)).collect(), args.clone()),
        };
        let (into, keeps) = (into.clone(), !formula.kept.is_empty());
        edges.push(Edge { into, gradient, keeps, by_element: formula.by_element });
    }
    finished(value, Origin::here(op), edges)
}

/// Saves tensor number `at` of an op: an input, an output or a hidden output.
fn kept(at: usize, inputs: &[Input<'_>], outputs: &[&NamedTensor], hidden: &[NamedTensor]) -> Option<Kept> {
    if let Some(input) = inputs.get(at) {
        return input.tensors().first().map(|x| Kept::input(x));
    }
    let number = at - inputs.len();
    Some(match outputs.get(number) {
        Some(output) => Kept::output_at(number, output),
        None => Kept::constant(&hidden[number - outputs.len()]),
    })
}

/// The gradient that owns what its formula sees: few tensors, in the same allocation.
fn owning<const K: usize>(
    formula: &'static Formula,
    kept: [Option<Kept>; K],
    args: Option<Args>,
) -> Gradient {
    Gradient::With(Arc::new(move |g: &Tensor, cx: &Cx<'_>| {
        let mut tensors = [const { None }; K];
        for (tensor, kept) in tensors.iter_mut().zip(&kept) {
            *tensor = kept.as_ref().map(|kept| kept.get(cx));
        }
        formula.apply(g, &mut tensors, args.as_ref(), cx)
    }))
}

/// The same with any number of tensors.
fn owning_all(formula: &'static Formula, kept: Vec<Option<Kept>>, args: Option<Args>) -> Gradient {
    let gradient = move |g: &Tensor, cx: &Cx<'_>| formula.apply(g, &mut all_of(&kept, cx), args.as_ref(), cx);
    Gradient::With(Arc::new(gradient))
}

fn all_of(kept: &[Option<Kept>], cx: &Cx<'_>) -> Vec<Option<Tensor>> {
    let mut all = Vec::with_capacity(kept.len());
    for kept in kept {
        all.push(kept.as_ref().map(|kept| kept.get(cx)));
    }
    all
}

/// The gradients of all inputs by these formulas.
fn joint_gradients(
    formulas: &[(&JointFormula, Vec<Option<Kept>>)],
    args: Option<&Args>,
    cx: &Cx<'_>,
) -> Result<Vec<Option<Tensor>>> {
    let mut all = vec![None; cx.count()];
    for (formula, kept) in formulas {
        if !formula.of.iter().any(|at| cx.wants(*at)) {
            continue;
        }
        let mut tensors = all_of(kept, cx);
        let gradients = match formula.halves.widens(cx.dtype_of(formula.of[0])) {
            true => {
                widen(&mut tensors)?;
                // The walk rounds them to the dtypes of the inputs.
                cx.with_wide_gradients(|cx| (formula.gradients)(&Saved { tensors: &tensors, args }, cx))?
            }
            false => (formula.gradients)(&Saved { tensors: &tensors, args }, cx)?,
        };
        for (at, gradient) in formula.of.iter().zip(gradients) {
            all[*at] = gradient;
        }
    }
    Ok(all)
}

/// The results of an op with joint formulas, recorded if an input requires a gradient.
#[track_caller]
pub(crate) fn record_jointly(
    op: &'static str,
    inputs: &[Input<'_>],
    mut values: Vec<NamedTensor>,
    hidden: &[NamedTensor],
    saved: Option<Args>,
    formulas: &'static [JointFormula],
) -> Vec<Tensor> {
    let outputs = args::references(&values);
    if is_looking() {
        let mut all = outputs.clone();
        all.append(&mut args::references(hidden));
        nan::look(op, &plain::values(inputs), &all);
    }
    let mut tensors: Vec<Option<&Tensor>> = Vec::with_capacity(inputs.len());
    for input in inputs {
        tensors.push(input.tensors().first().copied());
    }
    // The formulas of which an input requires a gradient, with the tensors that they see.
    let mut parts: Vec<(&JointFormula, Vec<Option<Kept>>)> = Vec::with_capacity(formulas.len());
    for formula in formulas {
        if formula.of.iter().any(|at| tensors[*at].is_some_and(|x| x.tracked().is_some())) {
            let mut seen = Vec::with_capacity(formula.kept.len());
            for at in formula.kept {
                seen.push(kept(*at, inputs, &outputs, hidden));
            }
            parts.push((formula, seen));
        }
    }
    let gradients = move |cx: &Cx<'_>| joint_gradients(&parts, saved.as_ref(), cx);
    match (values.pop(), values.is_empty()) {
        (Some(value), true) => {
            vec![Op::new(op, value).inputs(&tensors, move |_, cx| gradients(cx)).output()]
        }
        (last, _) => {
            values.extend(last);
            Op::with_outputs(op, values).inputs(&tensors, move |_, cx| gradients(cx))
        }
    }
}

/// Tensors or values in an array: `N` of them, which the caller knows.
pub(crate) fn as_many<T, const N: usize>(tensors: Vec<T>) -> [T; N] {
    let mut tensors = tensors.into_iter();
    std::array::from_fn(|_| tensors.next().expect("as many results as outputs in the row"))
}
