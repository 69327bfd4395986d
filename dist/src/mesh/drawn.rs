//! Random numbers for a tensor in parts: those that one process would draw for the whole, of which each rank
//! draws its part.

use super::labels::{Label, Slots};
use super::value::{Axes, Split, Value};
use namegrad::core::random::{Generator, GeneratorState, next_of_default};
use namegrad::core::{Device, NamedTensor, Names, Shape};
use namegrad::prelude::*;

/// Draws of fewer numbers than this are not worth a call: the whole is drawn.
const LEAST: usize = 64;

/// The part of this rank of numbers of `shape`, whose dims of other sizes than 1 are split in this way.
pub(crate) fn part(
    axes: &Axes,
    splits: &[Option<Split>],
    shape: Shape,
    is_meta: bool,
    draw: &dyn Fn(Shape) -> Result<NamedTensor>,
) -> Result<Value> {
    let is_drawn = |split: &Split| shape.sizes[split.dim] != 1;
    let splits: Vec<Option<Split>> = splits.iter().map(|split| split.clone().filter(is_drawn)).collect();
    let mut own = shape.sizes.to_vec();
    // The first place of this rank along each dim.
    let mut first = vec![0; own.len()];
    for (axis, split) in splits.iter().enumerate() {
        let Some(Split { dim, .. }) = split else { continue };
        own[*dim] /= axes.size(axis);
        first[*dim] = axes.all[axis].group.rank() * own[*dim];
    }
    let Some(last) = splits.iter().flatten().map(|split| split.dim).max() else {
        return Ok(axes.whole(draw(shape)?));
    };
    let run: usize = own[last..].iter().product();
    let is_simple = splits.iter().flatten().all(|split| split.blocks.is_empty());
    if !is_simple || run < LEAST {
        return axes.whole(draw(shape)?).placed(axes, &splits);
    }
    let names = shape.names.clone();
    let of = |sizes: &[usize]| Shape { sizes: sizes.iter().copied().collect(), names: Names::none() };
    if is_meta {
        return Ok(Value::of(on_device(Device::Meta, || draw(of(&own)))?.with_names(names), splits));
    }
    let start = next_of_default(shape.sizes.iter().product()).state();
    // Numbers that follow one another here follow one another in the whole too, from `last` on.
    let (mut runs, mut at) = (Vec::new(), vec![0; last]);
    for _ in 0..own[..last].iter().product() {
        let place = (0..shape.sizes.len())
            .fold(0, |place, dim| place * shape.sizes[dim] + first[dim] + at.get(dim).copied().unwrap_or(0));
        let mut generator = Generator::from_seed(start.seed);
        generator.set_state(GeneratorState { offset: start.offset + place as u64, ..start });
        runs.push(generator.scope(|| draw(of(&[run])))?);
        advance(&mut at, &own);
    }
    let drawn =
        if runs.len() == 1 { runs.remove(0) } else { NamedTensor::cat(&runs.iter().collect::<Vec<_>>(), 0)? };
    Ok(Value::of(drawn.reshape(own)?.with_names(names), splits))
}

/// The outputs of an attention with dropout on the parts of this rank. `split` has the labels of its split
/// dims, counted from the right, and `scores` the sizes of all scores.
pub(crate) fn attention(
    slots: &mut Slots<'_>,
    split: &[Option<Label>],
    scores: &[usize],
) -> Result<Vec<NamedTensor>> {
    let ndim = scores.len();
    let start = next_of_default(scores.iter().product()).state();
    let own = slots.values()[0].part.sizes().to_vec();
    let mut first = vec![0; ndim];
    let mut last = 0;
    for (axis, label) in split.iter().enumerate() {
        let Some(label) = label else { continue };
        let dim = ndim - 1 - label;
        first[dim] = slots.axes.all[axis].group.rank() * own[dim];
        last = last.max(dim);
    }
    let (mut made, mut at) = (Vec::new(), vec![0; last]);
    for _ in 0..own[..last].iter().product() {
        let place = (0..ndim)
            .fold(0, |place, dim| place * scores[dim] + first[dim] + at.get(dim).copied().unwrap_or(0));
        let mut generator = Generator::from_seed(start.seed);
        generator.set_state(GeneratorState { offset: start.offset + place as u64, ..start });
        let mut run = Slots::new(slots.axes, slots.call);
        for (to, from) in run.values().into_iter().zip(slots.values()) {
            *to = from.clone();
            for (dim, index) in at.iter().enumerate() {
                // A mask may have fewer dims, or one element along some.
                let Some(dim) = (dim + to.part.ndim()).checked_sub(ndim) else { continue };
                if to.part.sizes()[dim] != 1 {
                    to.part = to.part.narrow(dim, *index as isize, 1)?;
                }
            }
        }
        made.push(generator.scope(|| run.run())?);
        advance(&mut at, &own);
    }
    let joined = |output: usize, sizes: &[usize]| -> Result<NamedTensor> {
        let all: Vec<&NamedTensor> = made.iter().map(|outputs| &outputs[output]).collect();
        let names = all[0].names().clone();
        let all: Vec<NamedTensor> = all.into_iter().map(NamedTensor::unnamed).collect();
        Ok(NamedTensor::cat(&all.iter().collect::<Vec<_>>(), 0)?.reshape(sizes)?.with_names(names))
    };
    let mut sizes = own.clone();
    sizes[ndim - 1] = made[0][0].sizes()[ndim - 1];
    let (y, lse) = (joined(0, &sizes)?, joined(1, &own[..ndim - 1])?);
    // The backward pass draws from the state before all scores.
    let draw = NamedTensor::from_slice(&[start.seed.cast_signed(), start.offset.cast_signed()], [2])?;
    Ok(vec![y, lse, draw])
}

/// The next place in row-major order.
fn advance(at: &mut [usize], sizes: &[usize]) {
    for dim in (0..at.len()).rev() {
        at[dim] += 1;
        if at[dim] < sizes[dim] {
            return;
        }
        at[dim] = 0;
    }
}
