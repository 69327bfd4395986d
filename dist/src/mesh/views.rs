//! Views, and other ops that move elements: which dims ride along is seen in calls on tensors whose elements
//! say where they are from.

use super::labels::{Label, Slot, Slots, WHOLE};
use super::rules::{on_probe, plain, probe_names, probed, probing};
use super::value::{Split, Value};
use crate::backend::Reduction;
use namegrad::autograd::plain::Input;
use namegrad::core::{DType, NamedTensor};
use namegrad::prelude::*;

/// Whether the op only moves the elements of one tensor.
pub(crate) fn is_view(op: &str) -> bool {
    matches!(
        op,
        "view"
            | "reshape"
            | "flatten"
            | "unflatten"
            | "squeeze"
            | "expand"
            | "transpose"
            | "t"
            | "mt"
            | "permute"
            | "movedim"
            | "unsqueeze"
            | "narrow"
            | "slice"
            | "select"
            | "flip"
            | "roll"
    )
}

/// The outputs of an op on one tensor that moves elements, or else of the op on the whole.
pub(crate) fn outputs(slots: Slots<'_>, sizes: &[Vec<usize>]) -> Result<Vec<Value>> {
    match slots.call.op {
        "view" | "reshape" | "flatten" | "unflatten" | "squeeze" => reshaped(slots, &sizes[0]),
        "expand" => expanded(slots, &sizes[0]),
        "transpose" | "t" | "mt" | "permute" | "movedim" | "unsqueeze" | "narrow" | "slice" | "select" => {
            moved(slots, &sizes[0], true)
        }
        "flip" | "roll" => moved(slots, &sizes[0], false),
        _ => slots.run_whole(),
    }
}

/// A tensor without memory of its own, whose elements are their positions along `dim`.
fn probe(sizes: &[usize], dim: usize) -> Result<NamedTensor> {
    let mut own = vec![1; sizes.len()];
    own[dim] = sizes[dim];
    on_device(Device::Cpu, || {
        let positions = NamedTensor::arange(0, sizes[dim] as i64, 1, DType::I64)?.reshape(own)?;
        Ok(positions.expand(sizes)?.with_names(probe_names(sizes.len())?))
    })
}

/// Where the elements along a dim of an input are in the output: the dim, and for each place there the place
/// here.
struct Found {
    dim: usize,
    places: Vec<usize>,
}

fn found(slots: &Slots<'_>, sizes: &[usize], dim: usize) -> Result<Option<Found>> {
    let Ok(made) = on_probe(slots.call, probe(sizes, dim)?) else { return Ok(None) };
    let [y] = &made[..] else { return Ok(None) };
    let Some(at) = (0..y.ndim()).find(|at| probed(y.name(*at)) == Some(dim)) else { return Ok(None) };
    let mut lane = y.rename(None)?;
    for other in (0..y.ndim()).rev().filter(|other| *other != at) {
        if lane.sizes()[other] == 0 {
            return Ok(None);
        }
        lane = lane.select(other, 0)?;
    }
    let places = lane.to_vec::<i64>()?.into_iter().map(|place| place as usize).collect();
    Ok(Some(Found { dim: at, places }))
}

/// Ops whose dims keep their names. `is_view` says that a call on the sizes of the whole takes no memory.
fn moved(mut slots: Slots<'_>, sizes: &[usize], is_view: bool) -> Result<Vec<Value>> {
    let axes = slots.axes;
    let mut splits = vec![None; axes.all.len()];
    let keeps_all = is_view && !matches!(slots.call.op, "narrow" | "slice" | "select");
    for (axis, kept) in splits.iter_mut().enumerate() {
        let Some(split) = slots.values()[0].splits[axis].clone() else { continue };
        // A few elements tell where a dim goes that is kept as a whole.
        let size = if keeps_all { 2 } else { sizes[split.dim] };
        let mut of_probe = vec![1; sizes.len()];
        of_probe[split.dim] = size;
        let found = found(&slots, if is_view && !keeps_all { sizes } else { &of_probe }, split.dim)?;
        match found {
            Some(Found { dim, places }) if places.iter().copied().eq(0..size) => {
                *kept = Some(split.at(dim));
            }
            None if slots.call.op == "select" => return selected(slots, sizes, axis),
            Some(Found { places, .. }) if is_view => match blocks_of(&split, sizes[split.dim], &places) {
                Some((start, blocks)) => return narrowed(slots, axis, start, blocks),
                None => slots.gather(0, axis)?,
            },
            _ => slots.gather(0, axis)?,
        }
    }
    let made = slots.run()?;
    Ok(made.into_iter().map(|part| Value::of(part, splits.clone())).collect())
}

/// One place along a split dim, which one rank has.
fn selected(mut slots: Slots<'_>, sizes: &[usize], axis: usize) -> Result<Vec<Value>> {
    let axes = slots.axes;
    let mut value = slots.values().swap_remove(0).clone();
    let Some(Split { dim, blocks, .. }) = value.splits[axis].take() else { return slots.run_whole() };
    let place = on_probe(slots.call, probe(sizes, dim)?)?.swap_remove(0);
    if value.part.dtype() == DType::Bool || place.numel() == 0 || !blocks.is_empty() {
        return slots.run_whole();
    }
    let (place, own) = (place.reshape([-1])?.select(0, 0)?.item::<i64>()? as usize, value.part.sizes()[dim]);
    let part = value.part.select(dim, (place % own) as isize)?;
    let names = part.names().clone();
    let is_here = axes.all[axis].group.rank() == place / own;
    let part = if is_here { part.unnamed() } else { NamedTensor::zeros(part.sizes())?.to(part.dtype())? };
    value.part = axes.reduced(&part, axis, Reduction::Sum)?.with_names(names);
    for split in value.splits.iter_mut().flatten() {
        split.dim -= usize::from(split.dim > dim);
    }
    Ok(vec![value])
}

/// The blocks that consecutive places are made of: where the first begins, and their sizes.
fn blocks_of(split: &Split, size: usize, places: &[usize]) -> Option<(usize, Vec<usize>)> {
    let first = *places.first()?;
    if !places.iter().copied().eq(first..first + places.len())
        || split.blocks.is_empty() && places.len() != size
    {
        return None;
    }
    let (mut start, mut blocks) = (0, Vec::new());
    for block in &split.blocks {
        if start >= first && start + block <= first + places.len() {
            blocks.push(*block);
        }
        start += block;
    }
    let from = split.blocks.iter().scan(0, |end, block| Some(std::mem::replace(end, *end + block)));
    let starts = from.into_iter().any(|start| start == first);
    (starts && blocks.iter().sum::<usize>() == places.len()).then_some((first, blocks))
}

/// Whole blocks of a split dim.
fn narrowed(mut slots: Slots<'_>, axis: usize, start: usize, blocks: Vec<usize>) -> Result<Vec<Value>> {
    let ranks = slots.axes.size(axis);
    let mut value = slots.values().swap_remove(0).clone();
    let Some(split) = value.splits[axis].clone() else { return slots.run_whole() };
    let length = blocks.iter().sum::<usize>() / ranks;
    value.part = value.part.narrow(split.dim, (start / ranks) as isize, length)?;
    let blocks = if blocks.len() == 1 { Vec::new() } else { blocks };
    value.splits[axis] = Some(Split { blocks, ..split });
    Ok(vec![value])
}

/// Repeats dims of size one, and adds dims on the left.
fn expanded(mut slots: Slots<'_>, sizes: &[usize]) -> Result<Vec<Value>> {
    let axes = slots.axes;
    let whole = slots.call.on_stand_ins()?;
    let [y] = &whole[..] else { return slots.run_whole() };
    let Some(added) = y.ndim().checked_sub(sizes.len()) else { return slots.run_whole() };
    let mut splits = vec![None; axes.all.len()];
    let mut own = y.sizes().to_vec();
    for (axis, kept) in splits.iter_mut().enumerate() {
        let Some(split) = slots.values()[0].splits[axis].clone() else { continue };
        let by_position =
            found(&slots, sizes, split.dim)?.is_some_and(|found| found.dim == split.dim + added);
        if by_position && y.sizes()[split.dim + added] == sizes[split.dim] {
            own[split.dim + added] /= axes.size(axis);
            *kept = Some(split.at(split.dim + added));
        } else {
            slots.gather(0, axis)?;
        }
    }
    if splits.iter().all(Option::is_none) {
        return slots.run_whole();
    }
    let part = &slots.values()[0].part;
    let part = part.unnamed().expand(own)?.with_names(y.names().clone());
    Ok(vec![Value::of(part, splits)])
}

/// Other dims of the same elements. A split dim can be the first of several that become one, and the first of
/// those that it becomes, if its size is a multiple of the ranks.
fn reshaped(mut slots: Slots<'_>, sizes: &[usize]) -> Result<Vec<Value>> {
    let axes = slots.axes;
    let whole = slots.call.on_stand_ins()?;
    let [y] = &whole[..] else { return slots.run_whole() };
    let mut own = y.sizes().to_vec();
    let mut splits = vec![None; axes.all.len()];
    if sizes.contains(&0) {
        return slots.run_whole();
    }
    let groups = groups(sizes, y.sizes());
    for axis in 0..axes.all.len() {
        let Some(split) = slots.values()[0].splits[axis].clone() else { continue };
        let group = groups.iter().find(|(from, _)| from.contains(&split.dim));
        let place =
            group.and_then(|(from, to)| place_in(&split, sizes, y.sizes(), from, to, axes.size(axis)));
        match place {
            Some(split) if !splits.iter().flatten().any(|other: &Split| other.dim == split.dim) => {
                own[split.dim] /= axes.size(axis);
                splits[axis] = Some(split);
            }
            _ => slots.gather(0, axis)?,
        }
    }
    let part = slots.values()[0].part.unnamed().reshape(own)?.with_names(y.names().clone());
    Ok(vec![Value::of(part, splits)])
}

/// Runs of dims that have the same elements before and after.
fn groups(from: &[usize], to: &[usize]) -> Vec<(Vec<usize>, Vec<usize>)> {
    let (mut i, mut j, mut groups) = (0, 0, Vec::new());
    while i < from.len() || j < to.len() {
        let (start, first) = (i, j);
        let (mut a, mut b) = (1, 1);
        if i < from.len() {
            a = from[i];
            i += 1;
        }
        if j < to.len() && (a > 1 || i >= from.len() || to[j] == 1) {
            b = to[j];
            j += 1;
        }
        while a != b {
            if a < b {
                a *= from[i];
                i += 1;
            } else {
                b *= to[j];
                j += 1;
            }
        }
        groups.push(((start..i).collect(), (first..j).collect()));
    }
    groups
}

/// How a dim is split after a reshape.
fn place_in(
    split: &Split,
    sizes: &[usize],
    new: &[usize],
    from: &[usize],
    to: &[usize],
    ranks: usize,
) -> Option<Split> {
    let mut outer = from.iter().take_while(|dim| **dim != split.dim);
    if outer.any(|dim| sizes[*dim] != 1) {
        return None;
    }
    let mut to = to.iter().copied().filter(|dim| new[*dim] != 1);
    let dim = to.next()?;
    let size = sizes[split.dim];
    if split.blocks.is_empty() {
        return new[dim].is_multiple_of(ranks).then(|| split.at(dim));
    }
    // Elements of the old dim in an element of the new one, or the other way around.
    let inner: usize = from.iter().filter(|other| **other > split.dim).map(|other| sizes[*other]).product();
    let rest: usize = to.clone().map(|dim| new[dim]).product();
    let scaled = |block: usize| (block * inner).is_multiple_of(rest).then(|| block * inner / rest);
    let blocks: Option<Vec<usize>> = split.blocks.iter().map(|block| scaled(*block)).collect();
    if let Some(blocks) = blocks.filter(|blocks| blocks.iter().all(|block| block.is_multiple_of(ranks))) {
        return Some(Split { blocks, ..split.at(dim) });
    }
    // One dim for the number of the block, and one for what is in it.
    let inside = to.next()?;
    let is_even = split.blocks.iter().all(|block| *block == size / split.blocks.len());
    let splits = is_even && inner == 1 && new[dim] == split.blocks.len() && new[inside].is_multiple_of(ranks);
    splits.then(|| Split { blocks: Vec::new(), ..split.at(inside) })
}

/// The op on as many tensors of one element.
fn on_small(slots: &Slots<'_>, ndim: usize, count: usize) -> Result<Vec<Tensor>> {
    probing(|| {
        let small = NamedTensor::zeros(vec![1; ndim])?;
        let small = Tensor::from(small.with_names(probe_names(ndim)?));
        slots.call.on(&[Input::List(&vec![&small; count])])
    })
}

/// Tensors one after another along a dim.
pub(crate) fn joined(mut slots: Slots<'_>, sizes: &[Vec<usize>]) -> Result<Vec<Value>> {
    let (count, ndim, axes) = (sizes.len(), sizes[0].len(), slots.axes);
    if count == 1 || sizes.iter().any(|other| other.len() != ndim) {
        return slots.run_whole();
    }
    let made = on_small(&slots, ndim, count)?;
    let Some(dim) = made[0].sizes().iter().position(|size| *size == count) else { return slots.run_whole() };
    let is_split =
        |value: &Value, axis: usize| value.splits[axis].as_ref().is_some_and(|split| split.dim == dim);
    for axis in 0..axes.all.len() {
        let part = |value: &&mut Value| is_split(value, axis);
        if !slots.values().iter().any(part) {
            continue;
        }
        // The parts along the dim are joined on each rank: these are blocks.
        let mut blocks = Vec::new();
        let other = |value: &Value| value.splits[axis].is_some() && !is_split(value, axis);
        let whole = Split::of(dim);
        let fits = |value: &Value| {
            !other(value)
                && (is_split(value, axis)
                    || value.axis_of(dim).is_none() && value.divides(axes, axis, &whole))
        };
        if !slots.values().iter().all(|value| fits(value)) || count > 64 {
            for at in 0..count {
                slots.gather(at, axis)?;
            }
            continue;
        }
        for (value, sizes) in slots.values().into_iter().zip(sizes) {
            match &value.splits[axis] {
                Some(split) if !split.blocks.is_empty() => blocks.extend_from_slice(&split.blocks),
                _ => blocks.push(sizes[dim]),
            }
            if value.splits[axis].is_none() {
                value.slice(axes, axis, whole.clone())?;
            }
        }
        return concatenated(slots, axis, Split { blocks, ..whole });
    }
    let own: Vec<Label> = (0..ndim).map(|other| if other == dim { WHOLE } else { other }).collect();
    slots.by_labels(&plain(vec![own.clone(); count], vec![own]))
}

/// Tensors that are split along the dim along which they are joined.
fn concatenated(mut slots: Slots<'_>, axis: usize, split: Split) -> Result<Vec<Value>> {
    let axes = slots.axes;
    let mut splits = vec![None; axes.all.len()];
    splits[axis] = Some(split);
    // Along the other axes, all are split as the first one.
    for other in (0..axes.all.len()).filter(|other| *other != axis) {
        let first = slots.values()[0].splits[other].clone();
        let same = slots.values().iter().all(|value| value.splits[other] == first);
        if same {
            splits[other] = first;
            continue;
        }
        for at in 0..slots.values().len() {
            slots.gather(at, other)?;
        }
    }
    let part = slots.run()?.swap_remove(0);
    Ok(vec![Value::of(part, splits)])
}

/// Tensors along a new dim.
pub(crate) fn stacked(slots: Slots<'_>, sizes: &[Vec<usize>]) -> Result<Vec<Value>> {
    let (count, ndim) = (sizes.len(), sizes[0].len());
    let made = on_small(&slots, ndim, count)?;
    let own: Vec<Label> = (0..ndim).collect();
    let output = (0..ndim + 1).map(|dim| probed(made[0].name(dim)).unwrap_or(WHOLE)).collect();
    slots.by_labels(&plain(vec![own; count], vec![output]))
}

impl Slots<'_> {
    /// The dtype of the first input.
    pub(crate) fn all_dtype(&self) -> DType {
        match &self.all[0] {
            Slot::One(value) => value.part.dtype(),
            Slot::Optional(value) => value.as_ref().map_or(DType::F32, |value| value.part.dtype()),
            Slot::List(values) => values.first().map_or(DType::F32, |value| value.part.dtype()),
        }
    }
}
