//! Ops that mix the elements of a dim that is split: each rank computes what it can from its part, and a few
//! sums or maxima are exchanged.

use super::labels::{Join, Label, Labels, Slot, Slots, WHOLE};
use super::rules::{Args, is_split_at, plain};
use super::value::{Axes, Split, Value};
use crate::backend::Reduction;
use namegrad::core::args::Positions;
use namegrad::core::{DType, NamedTensor, keep};
use namegrad::prelude::*;

/// The maximum over a split dim, which stays with size one. NaN is a maximum.
fn most(axes: &Axes, x: &NamedTensor, dim: usize, axis: usize) -> Result<NamedTensor> {
    axes.stacked(&x.unnamed().amax(keep(dim))?, axis)?.amax(0)
}

/// `ln Σ eˣ` over a split dim, which stays with size one.
fn logsumexp(axes: &Axes, x: &NamedTensor, dim: usize, axis: usize) -> Result<NamedTensor> {
    axes.stacked(&x.unnamed().logsumexp(keep(dim))?, axis)?.logsumexp(0)
}

/// The only input, and the axis that splits a dim of it.
fn of_first(slots: &mut Slots<'_>, dim: usize) -> Option<(Value, usize)> {
    let value = slots.values().swap_remove(0).clone();
    value.axis_of(dim).map(|axis| (value, axis))
}

/// `softmax` and `log_softmax` over a split dim.
pub(crate) fn softmax(mut slots: Slots<'_>, dim: usize) -> Result<Vec<Value>> {
    let axes = slots.axes;
    let Some((value, axis)) = of_first(&mut slots, dim) else { return slots.run_whole() };
    // The dtype of the result.
    let dtype = run_dtype(&slots)?;
    let x = value.part.unnamed().to(dtype)?.to(wide(dtype))?;
    let y = match slots.call.op {
        "softmax" => {
            let terms = x.sub(&most(axes, &x, dim, axis)?)?.exp()?;
            let sum = axes.reduced(&terms.sum(keep(dim))?, axis, Reduction::Sum)?;
            terms.div(&sum)?
        }
        _ => {
            let shifted = x.sub(&most(axes, &x, dim, axis)?)?;
            let sum = axes.reduced(&shifted.exp()?.sum(keep(dim))?, axis, Reduction::Sum)?;
            shifted.sub(&sum.log()?)?
        }
    };
    let part = y.to(dtype)?.with_names(value.part.names().clone());
    Ok(vec![Value { part, ..value }])
}

/// The dtype of the result of an op of one tensor, seen in a call on few elements.
fn run_dtype(slots: &Slots<'_>) -> Result<DType> {
    let Slot::One(value) = &slots.all[0] else { return Ok(DType::F32) };
    let small =
        on_device(Device::Cpu, || NamedTensor::zeros(vec![1; value.part.ndim()])?.to(value.part.dtype()))?;
    Ok(super::rules::on_probe(slots.call, small)?[0].dtype())
}

/// The dtype that half types are computed in.
fn wide(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Layer norms and RMS norms over dims of which one or more are split.
pub(crate) fn norm(mut slots: Slots<'_>, dims: &Positions, args: &Args) -> Result<Vec<Value>> {
    let axes = slots.axes;
    let x = slots.values().swap_remove(0).clone();
    let is_layer = slots.call.op == "layer_norm";
    let dtype = x.part.dtype();
    let eps = match (args.get::<(Positions, f64)>(), args.get::<(Positions, Option<f64>)>()) {
        (Some((_, eps)), _) | (_, Some((_, Some(eps)))) => eps,
        // The distance from 1 to the next number, as in the op.
        _ if dtype == DType::F64 => f64::EPSILON,
        _ if dtype == DType::F32 => f64::from(f32::EPSILON),
        _ => return slots.run_whole(),
    };
    let over: Vec<usize> = dims.to_vec();
    let wide_x = x.part.unnamed().to(wide(dtype))?;
    let mean = |y: &NamedTensor| mean_of(axes, &x.splits, y, &over);
    let centered = if is_layer { wide_x.sub(&mean(&wide_x)?)? } else { wide_x };
    let scale = mean(&centered.square()?)?.add(eps)?.rsqrt()?;
    let mut y = centered.mul(&scale)?;
    let parameters: Vec<Option<Value>> = slots.all[1..]
        .iter()
        .map(|slot| match slot {
            Slot::Optional(value) => value.clone(),
            Slot::One(value) => Some(value.clone()),
            Slot::List(_) => None,
        })
        .collect();
    for (number, parameter) in parameters.into_iter().enumerate() {
        let Some(parameter) = parameter else { continue };
        // The dims of the parameter are those that the norm is over, in this order.
        let mut splits = vec![None; axes.all.len()];
        for (axis, split) in x.splits.iter().enumerate() {
            let own = split
                .as_ref()
                .and_then(|split| over.iter().position(|dim| *dim == split.dim).map(|at| split.at(at)));
            splits[axis] = own;
        }
        let part = parameter.placed(axes, &splits)?.part.unnamed().to(wide(dtype))?;
        let mut sizes = vec![1; x.part.ndim()];
        for (at, dim) in over.iter().enumerate() {
            sizes[*dim] = part.sizes()[at];
        }
        // Over dims in another order than those of the tensor, the parameter is turned first.
        let mut order: Vec<usize> = (0..over.len()).collect();
        order.sort_by_key(|at| over[*at]);
        let part = part.permute(order)?.reshape(sizes)?;
        y = if number == 0 { y.mul(&part)? } else { y.add(&part)? };
    }
    let part = y.to(dtype)?.with_names(x.part.names().clone());
    hidden(vec![Value::of(part, x.splits)], axes, if is_layer { 2 } else { 1 })
}

/// Outputs that only fused derivatives see, which do not run on parts.
fn hidden(mut made: Vec<Value>, axes: &Axes, count: usize) -> Result<Vec<Value>> {
    for _ in 0..count {
        made.push(axes.whole(NamedTensor::zeros(())?));
    }
    Ok(made)
}

/// The mean over dims, which stay with size one, of a tensor that is split in this way.
fn mean_of(axes: &Axes, splits: &[Option<Split>], x: &NamedTensor, over: &[usize]) -> Result<NamedTensor> {
    let mut mean = x.mean(keep(over.to_vec()))?;
    for (axis, split) in splits.iter().enumerate() {
        if split.as_ref().is_some_and(|split| over.contains(&split.dim)) {
            mean = axes.reduced(&mean, axis, Reduction::Mean)?;
        }
    }
    Ok(mean)
}

/// Batch and instance norms, whose statistics are over all ranks; group norms of whole channels.
pub(crate) fn standardize(mut slots: Slots<'_>, args: &Args) -> Result<Vec<Value>> {
    let axes = slots.axes;
    let Some((dim, over, groups, eps)) = args.get::<(usize, Positions, usize, f64)>() else {
        return slots.run_whole();
    };
    let x = slots.values().swap_remove(0).clone();
    let (ndim, channels) = (x.part.ndim(), x.sizes(axes)[dim]);
    let by_channel = groups == channels;
    let is_over = over.iter().any(|dim| is_split_at(&mut slots, 0, *dim));
    let statistic: Vec<usize> = (0..ndim).filter(|other| *other == dim || !over.contains(other)).collect();
    let is_by_parts = is_split_at(&mut slots, 0, dim);
    if !by_channel && (is_over || is_by_parts) {
        return slots.run_whole();
    }
    if !is_over && !is_by_parts {
        let own: Vec<Label> = (0..ndim)
            .map(|other| if statistic.contains(&other) && other != dim { other } else { WHOLE })
            .collect();
        let of_statistic: Vec<Label> = statistic.iter().map(|dim| own[*dim]).collect();
        let count = slots.values().len();
        let mut inputs = vec![own.clone()];
        inputs.extend((1..count).map(|_| vec![WHOLE]));
        return slots.by_labels(&plain(inputs, vec![own, of_statistic.clone(), of_statistic]));
    }
    let over: Vec<usize> = over.iter().copied().filter(|other| *other != dim).collect();
    let dtype = x.part.dtype();
    let wide_x = x.part.unnamed().to(wide(dtype))?;
    let mean = mean_of(axes, &x.splits, &wide_x, &over)?;
    let centered = wide_x.sub(&mean)?;
    let var = mean_of(axes, &x.splits, &centered.square()?, &over)?;
    let mut y = centered.mul(&var.add(eps)?.rsqrt()?)?;
    let parameters: Vec<Option<Value>> = slots.all[1..]
        .iter()
        .map(|slot| match slot {
            Slot::Optional(value) => value.clone(),
            _ => None,
        })
        .collect();
    for (number, parameter) in parameters.into_iter().enumerate() {
        let Some(parameter) = parameter else { continue };
        let of_channels = |split: &Option<Split>| Some(split.as_ref().filter(|own| own.dim == dim)?.at(0));
        let splits: Vec<Option<Split>> = x.splits.iter().map(of_channels).collect();
        let parameter = parameter.placed(axes, &splits)?;
        let mut sizes = vec![1; ndim];
        sizes[dim] = x.part.sizes()[dim];
        let part = parameter.part.unnamed().to(wide(dtype))?.reshape(sizes)?;
        y = if number == 0 { y.mul(&part)? } else { y.add(&part)? };
    }
    let of_statistics = |value: &NamedTensor| -> Result<Value> {
        let sizes: Vec<usize> = statistic.iter().map(|dim| value.sizes()[*dim]).collect();
        let names: Vec<_> = statistic.iter().map(|dim| x.part.name(*dim)).collect();
        let names = namegrad::core::Names::new("standardize", names)?;
        let mut splits = vec![None; axes.all.len()];
        for (axis, split) in x.splits.iter().enumerate() {
            splits[axis] = split
                .as_ref()
                .and_then(|split| statistic.iter().position(|dim| *dim == split.dim).map(|at| split.at(at)));
        }
        let mut value = Value::of(value.reshape(sizes)?.with_names(names), splits);
        // The layer keeps those of all channels.
        if let Some(axis) = x.axis_of(dim) {
            value.gather(axes, axis)?;
        }
        Ok(value)
    };
    let (mean, var) = (of_statistics(&mean)?, of_statistics(&var)?);
    let part = y.to(dtype)?.with_names(x.part.names().clone());
    Ok(vec![Value::of(part, x.splits), mean, var])
}

/// An index into all of a dim, as one into the part of this rank, and where it is not in the part. `None` if an
/// index is out of range, for the error of the op.
fn own_places(
    axes: &Axes,
    index: &NamedTensor,
    own: usize,
    axis: usize,
) -> Result<Option<(NamedTensor, NamedTensor)>> {
    let group = &axes.all[axis].group;
    let (start, size) = ((group.rank() * own) as i64, (group.size() * own) as i64);
    let index = index.to(DType::I64)?;
    if index.numel() > 0 && index.device() != Device::Meta {
        let [least, most] = [index.unnamed().amin(..)?, index.unnamed().amax(..)?];
        if least.item::<i64>()? < 0 || most.item::<i64>()? >= size {
            return Ok(None);
        }
    }
    let place = index.sub(start)?;
    let is_elsewhere = place.lt(0)?.logical_or(&place.ge(own as i64)?)?;
    Ok(Some((place.masked_fill(&is_elsewhere, 0)?, is_elsewhere)))
}

/// Rows of a table by index. Where the rows are split, each rank has zeros for those of other ranks.
pub(crate) fn rows(mut slots: Slots<'_>, dim: usize) -> Result<Vec<Value>> {
    let (axes, sizes) = (slots.axes, slots.sizes());
    if sizes.len() != 2 || sizes[1].len() != 1 || sizes[0].is_empty() {
        return slots.run_whole();
    }
    let ndim = sizes[0].len();
    let is_split = slots.values()[0]
        .splits
        .iter()
        .position(|split| split.as_ref().is_some_and(|split| split.dim == dim && split.blocks.is_empty()));
    let Some(axis) = is_split else {
        let own: Vec<Label> = (0..ndim).map(|other| if other == dim { WHOLE } else { other }).collect();
        let found: Vec<Label> = (0..ndim).map(|other| if other == dim { 100 } else { other }).collect();
        return slots.by_labels(&plain(vec![own, vec![100]], vec![found]));
    };
    // The index stays as it is only along axes that do not split the table.
    for other in 0..axes.all.len() {
        if slots.values()[0].splits[other].is_some() {
            slots.gather(1, other)?;
        }
    }
    let index = slots.values()[1].part.clone();
    let own = slots.values()[0].part.sizes()[dim];
    let Some((places, is_elsewhere)) = own_places(axes, &index, own, axis)? else { return slots.run_whole() };
    // Along this axis, each rank looks into its own rows.
    slots.values()[0].splits[axis] = None;
    slots.values()[1].part = places.with_names(index.names().clone());
    let own: Vec<Label> = (0..ndim).map(|other| if other == dim { WHOLE } else { other }).collect();
    let found: Vec<Label> = (0..ndim).map(|other| if other == dim { 100 } else { other }).collect();
    let mut made = slots.by_labels(&plain(vec![own, vec![100]], vec![found]))?;
    let value = &mut made[0];
    let mut mark = vec![1; ndim];
    mark[dim] = is_elsewhere.numel();
    let names = value.part.names().clone();
    let part = value.part.unnamed().masked_fill(&is_elsewhere.unnamed().reshape(mark)?, 0)?;
    value.part = axes.reduced(&part, axis, Reduction::Sum)?.with_names(names);
    Ok(made)
}

/// Rows that are added to a table. Where the rows are split, so is the sum.
pub(crate) fn added_rows(mut slots: Slots<'_>, dim: Option<usize>) -> Result<Vec<Value>> {
    let sizes = slots.sizes();
    let fits = sizes.len() == 3 && sizes[1].len() == 1 && sizes[2].len() == sizes[0].len();
    let Some(dim) = dim.filter(|_| fits) else { return slots.run_whole() };
    let label = |other: usize, at: Label| if other == dim { at } else { other };
    let own: Vec<Label> = (0..sizes[0].len()).map(|other| label(other, WHOLE)).collect();
    let source = (0..sizes[0].len()).map(|other| label(other, 100)).collect();
    slots.by_labels(&Labels {
        inputs: vec![own.clone(), vec![100], source],
        outputs: vec![own],
        join: Some(Join::Reduced(Reduction::Sum)),
        added: Some(0),
    })
}

/// Elements by index along a dim that is split.
pub(crate) fn picked(mut slots: Slots<'_>, dim: usize) -> Result<Vec<Value>> {
    let (axes, sizes) = (slots.axes, slots.sizes());
    let Some((x, axis)) = of_first(&mut slots, dim) else { return slots.run_whole() };
    let rides = |other: usize| other == dim || sizes[1][other] == sizes[0][other];
    let is_simple = x.splits[axis].as_ref().is_some_and(|split| split.blocks.is_empty());
    if !is_simple || sizes[1].len() != sizes[0].len() || !(0..sizes[0].len()).all(rides) {
        return slots.run_whole();
    }
    let mut splits = x.splits.clone();
    splits[axis] = None;
    let index = slots.values()[1].clone().placed(axes, &splits)?;
    let Some((places, is_elsewhere)) = own_places(axes, &index.part, x.part.sizes()[dim], axis)? else {
        return slots.run_whole();
    };
    let names = index.part.names().clone();
    let found = x.part.unnamed().gather(&places.unnamed(), dim)?.masked_fill(&is_elsewhere.unnamed(), 0)?;
    let part = axes.reduced(&found, axis, Reduction::Sum)?.with_names(names);
    Ok(vec![Value::of(part, splits)])
}

/// The cross entropy of classes that are split: `ln Σ eˣ` minus the logit of the target.
pub(crate) fn cross_entropy(mut slots: Slots<'_>, dim: usize, ignored: isize) -> Result<Vec<Value>> {
    let axes = slots.axes;
    let Some((x, axis)) = of_first(&mut slots, dim) else { return slots.run_whole() };
    if x.splits[axis].as_ref().is_some_and(|split| !split.blocks.is_empty()) {
        return slots.run_whole();
    }
    let dtype = x.part.dtype();
    let below = |split: &Option<Split>| {
        let split = split.as_ref().filter(|split| split.dim != dim)?;
        Some(split.at(split.dim - usize::from(split.dim > dim)))
    };
    let splits: Vec<Option<Split>> = x.splits.iter().map(below).collect();
    let target = slots.values()[1].clone().placed(axes, &splits)?;
    let names = target.part.names().clone();
    let target = target.part.unnamed().to(DType::I64)?;
    let is_ignored = target.eq(ignored as i64)?;
    let target = target.masked_fill(&is_ignored, 0)?;
    let Some((places, is_elsewhere)) = own_places(axes, &target, x.part.sizes()[dim], axis)? else {
        return slots.run_whole();
    };
    let logits = x.part.unnamed().to(wide(dtype))?;
    let sum = logsumexp(axes, &logits, dim, axis)?.squeeze(dim)?;
    let own =
        logits.gather(&places.unsqueeze(dim as isize)?, dim)?.squeeze(dim)?.masked_fill(&is_elsewhere, 0)?;
    let own = axes.reduced(&own, axis, Reduction::Sum)?;
    let losses = sum.sub(&own)?.masked_fill(&is_ignored, 0)?.to(dtype)?;
    let names = match x.part.has_names() {
        true => {
            let kept = (0..x.part.ndim()).filter(|other| *other != dim).map(|other| x.part.name(other));
            namegrad::core::Names::new("cross_entropy", kept.collect::<Vec<_>>())?
        }
        false => names,
    };
    let sum = Value::of(sum.with_names(names.clone()), splits.clone());
    Ok(vec![Value::of(losses.with_names(names), splits), sum])
}
