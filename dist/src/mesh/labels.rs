//! The rule of most ops: dims that go together have the same label.

use super::value::{Axes, Split, Value};
use crate::backend::Reduction;
use namegrad::autograd::Tensor;
use namegrad::autograd::elsewhere::Call;
use namegrad::autograd::plain::Input;
use namegrad::core::NamedTensor;
use namegrad::prelude::*;

/// What dims go together. A label from [`WHOLE`] on is of dims that the op needs all of.
pub(crate) type Label = usize;

pub(crate) const WHOLE: Label = 1000;

/// How the results for parts of a dim that the op removes become one.
pub(crate) enum Join<'j> {
    /// Their sum or mean.
    Reduced(Reduction),
    /// The op again, on the results along a new first dim.
    Again(&'j dyn Fn(&NamedTensor) -> Result<NamedTensor>),
}

/// The dims of the inputs and outputs of an op.
pub(crate) struct Labels<'j> {
    pub(crate) inputs: Vec<Vec<Label>>,
    /// Those of the first outputs; the others are only for formulas that do not run on parts.
    pub(crate) outputs: Vec<Vec<Label>>,
    /// For labels that no output has.
    pub(crate) join: Option<Join<'j>>,
    /// The input that is added to what is joined, so that one rank alone adds it.
    pub(crate) added: Option<usize>,
}

impl Labels<'_> {
    fn is_sum(&self) -> bool {
        matches!(self.join, Some(Join::Reduced(Reduction::Sum)))
    }
}

/// An input of an op, in parts.
pub(crate) enum Slot {
    One(Value),
    Optional(Option<Value>),
    List(Vec<Value>),
}

impl Slot {
    pub(crate) fn of(axes: &Axes, input: &Input<'_>) -> Slot {
        let value = |x: &Tensor| axes.value(x.value());
        match input {
            Input::One(x) => Slot::One(value(x)),
            Input::Optional(x) => Slot::Optional(x.map(value)),
            Input::List(all) => Slot::List(all.iter().map(|x| value(x)).collect()),
        }
    }

    fn values(&mut self) -> &mut [Value] {
        match self {
            Slot::One(value) => std::slice::from_mut(value),
            Slot::Optional(value) => value.as_mut_slice(),
            Slot::List(values) => values,
        }
    }
}

/// Gives the outputs of an op for the parts of its inputs, of which these labels are split along the axes.
type Run<'r> = dyn Fn(&mut Slots<'_>, &[Option<Label>]) -> Result<Vec<NamedTensor>> + 'r;

/// The inputs of a call, in parts.
pub(crate) struct Slots<'a> {
    pub(crate) axes: &'a Axes,
    pub(crate) call: &'a Call<'a>,
    pub(crate) all: Vec<Slot>,
}

impl<'a> Slots<'a> {
    pub(crate) fn new(axes: &'a Axes, call: &'a Call<'a>) -> Slots<'a> {
        Slots { axes, call, all: call.inputs.iter().map(|input| Slot::of(axes, input)).collect() }
    }

    /// All inputs that there are, in order.
    pub(crate) fn values(&mut self) -> Vec<&mut Value> {
        self.all.iter_mut().flat_map(|slot| slot.values().iter_mut()).collect()
    }

    /// The sizes of the wholes.
    pub(crate) fn sizes(&mut self) -> Vec<Vec<usize>> {
        let axes = self.axes;
        self.values().into_iter().map(|value| value.sizes(axes)).collect()
    }

    pub(crate) fn gather(&mut self, at: usize, axis: usize) -> Result<()> {
        let (axes, op) = (self.axes, self.call.op);
        let value = self.values().swap_remove(at);
        axes.note(op, value, axis);
        value.gather(axes, axis)
    }

    /// The outputs of the op on the parts.
    pub(crate) fn run(&self) -> Result<Vec<NamedTensor>> {
        run(self.call, &self.all)
    }

    /// The outputs of the op on the wholes.
    pub(crate) fn run_whole(mut self) -> Result<Vec<Value>> {
        for at in 0..self.values().len() {
            for axis in 0..self.axes.all.len() {
                self.gather(at, axis)?;
            }
        }
        let axes = self.axes;
        Ok(self.run()?.into_iter().map(|y| axes.whole(y)).collect())
    }

    /// The outputs of the op on parts that fit each other, joined.
    pub(crate) fn by_labels(self, labels: &Labels<'_>) -> Result<Vec<Value>> {
        self.by_labels_with(labels, &|slots, _| slots.run())
    }

    /// [`by_labels`](Self::by_labels), where `run` gives the outputs for the parts.
    pub(crate) fn by_labels_with(mut self, labels: &Labels<'_>, run: &Run<'_>) -> Result<Vec<Value>> {
        let axes = self.axes;
        let mut chosen: Vec<Option<(Label, Split)>> = Vec::new();
        for axis in 0..axes.all.len() {
            let choice = self.choose(axis, labels, &chosen)?;
            chosen.push(choice);
        }
        if let Some(added) = labels.added {
            let removed = |label: &Label| !labels.outputs[0].contains(label);
            let others = chosen.iter().enumerate().any(|(axis, choice)| {
                choice.as_ref().is_some_and(|(label, _)| removed(label)) && axes.all[axis].group.rank() > 0
            });
            if others {
                let added = self.values().swap_remove(added);
                let names = added.part.names().clone();
                let zeros = NamedTensor::zeros(added.part.sizes())?.to(added.part.dtype())?;
                added.part = zeros.with_names(names);
            }
        }
        let mut made = Vec::new();
        let split: Vec<Option<Label>> =
            chosen.iter().map(|choice| choice.as_ref().map(|(label, _)| *label)).collect();
        for (number, mut part) in run(&mut self, &split)?.into_iter().enumerate() {
            let mut splits = vec![None; axes.all.len()];
            let mut is_term = false;
            if let Some(own) = labels.outputs.get(number) {
                for (axis, choice) in chosen.iter().enumerate() {
                    let Some((label, split)) = choice else { continue };
                    match own.iter().position(|other| other == label) {
                        Some(dim) => splits[axis] = Some(split.at(dim)),
                        // A sum of gradients waits, as each rank may keep a part of it alone.
                        None if axes.stored == Some(axis)
                            && labels.is_sum()
                            && part.dtype().is_floating_point() =>
                        {
                            is_term = true;
                        }
                        None => part = self.joined(&part, axis, labels)?,
                    }
                }
            }
            made.push(Value { is_term, ..Value::of(part, splits) });
        }
        Ok(made)
    }

    fn joined(&self, part: &NamedTensor, axis: usize, labels: &Labels<'_>) -> Result<NamedTensor> {
        match &labels.join {
            Some(Join::Reduced(reduction)) => self.axes.reduced(part, axis, *reduction),
            Some(Join::Again(again)) => {
                let names = part.names().clone();
                Ok(again(&self.axes.stacked(part, axis)?)?.with_names(names))
            }
            None => unreachable!("dims that are removed are whole"),
        }
    }

    /// Splits all inputs along an axis by the same label, or none.
    fn choose(
        &mut self,
        axis: usize,
        labels: &Labels<'_>,
        taken: &[Option<(Label, Split)>],
    ) -> Result<Option<(Label, Split)>> {
        let axes = self.axes;
        let sizes = self.sizes();
        let is_kept = |label: Label| {
            label < WHOLE
                && !taken.iter().flatten().any(|(other, _)| *other == label)
                && (labels.join.is_some() || labels.outputs.iter().all(|own| own.contains(&label)))
        };
        // The split of the largest input stays.
        let mut best: Option<(usize, Label, Split)> = None;
        for (at, value) in self.values().into_iter().enumerate() {
            let Some(split) = &value.splits[axis] else { continue };
            let Some(label) = labels.inputs[at].get(split.dim).copied().filter(|label| is_kept(*label))
            else {
                continue;
            };
            let size = sizes[at].iter().product();
            if best.as_ref().is_none_or(|(most, ..)| size > *most) {
                best = Some((size, label, split.at(0)));
            }
        }
        let mut choice = best.map(|(_, label, split)| (label, split));
        // Whether all inputs with the dim can be divided.
        if let Some((label, split)) = &choice {
            for (at, value) in self.values().into_iter().enumerate() {
                let Some(dim) = labels.inputs[at].iter().position(|own| own == label) else { continue };
                let size = sizes[at][dim];
                let same = value.splits[axis].as_ref() == Some(&split.at(dim));
                let free = match value.axis_of(dim) {
                    Some(other) => other == axis,
                    None => true,
                };
                let blocks: usize = split.blocks.iter().sum();
                let fits = split.blocks.is_empty() || blocks == size;
                let ranks = axes.size(axis);
                if size != 1 && !same && !(free && fits && size.is_multiple_of(ranks)) {
                    choice = None;
                    break;
                }
            }
        }
        for (at, sizes) in sizes.iter().enumerate() {
            let dim =
                choice.as_ref().and_then(|(label, _)| labels.inputs[at].iter().position(|own| own == label));
            let dim = dim.filter(|dim| sizes[*dim] != 1);
            let wanted = choice.as_ref().zip(dim).map(|((_, split), dim)| split.at(dim));
            let value = &self.values()[at].splits[axis];
            if value.is_some() && *value != wanted {
                self.gather(at, axis)?;
            }
            let value = self.values().swap_remove(at);
            if let (Some(split), None) = (wanted, &value.splits[axis]) {
                value.slice(axes, axis, split)?;
            }
        }
        Ok(choice)
    }
}

/// The outputs of an op on these values.
pub(crate) fn run(call: &Call<'_>, slots: &[Slot]) -> Result<Vec<NamedTensor>> {
    let tensor = |value: &Value| Tensor::from(value.part.clone());
    let lists: Vec<Vec<Tensor>> = slots
        .iter()
        .map(|slot| match slot {
            Slot::One(value) => vec![tensor(value)],
            Slot::Optional(value) => value.iter().map(tensor).collect(),
            Slot::List(values) => values.iter().map(tensor).collect(),
        })
        .collect();
    let refs: Vec<Vec<&Tensor>> = lists.iter().map(|list| list.iter().collect()).collect();
    let inputs: Vec<Input<'_>> = slots
        .iter()
        .zip(&refs)
        .map(|(slot, list)| match slot {
            Slot::One(_) => Input::One(list[0]),
            Slot::Optional(_) => Input::Optional(list.first().copied()),
            Slot::List(_) => Input::List(list),
        })
        .collect();
    Ok(call.on(&inputs)?.into_iter().map(Tensor::into_value).collect())
}
