//! A tensor in parts: the part of this rank, how it is split, and how parts are put together.

use super::rules;
use crate::backend::Reduction;
use crate::group::Group;
use namegrad::autograd::elsewhere::{Call, Elsewhere, behind, standing_for};
use namegrad::core::{NamedTensor, Shape};
use namegrad::prelude::*;
use std::any::Any;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};

/// An axis of a mesh, as this rank sees it.
pub(crate) struct Axis {
    pub(crate) name: String,
    /// The ranks that differ from this one along the axis alone, in their order.
    pub(crate) group: Group,
}

/// The axes of a mesh.
pub(crate) struct Axes {
    pub(crate) all: Vec<Axis>,
    /// What was gathered because an op needs all of a dim, as text.
    pub(crate) gathered: Mutex<Vec<String>>,
}

/// How a tensor is split along an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) dim: usize,
    /// The sizes of consecutive blocks of the dim, each of which is divided among the ranks; empty if the dim
    /// is one block.
    pub(crate) blocks: Vec<usize>,
    /// Whether the parts only save memory, so that ops see the whole.
    pub(crate) is_stored: bool,
}

impl Split {
    pub(crate) fn of(dim: usize) -> Split {
        Split { dim, blocks: Vec::new(), is_stored: false }
    }

    /// The same blocks of another dim.
    pub(crate) fn at(&self, dim: usize) -> Split {
        Split { dim, ..self.clone() }
    }
}

/// The part of this rank of a tensor, and how the tensor is split along each axis. No two axes split the same
/// dim.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) part: NamedTensor,
    pub(crate) splits: Vec<Option<Split>>,
}

impl Axes {
    pub(crate) fn size(&self, axis: usize) -> usize {
        self.all[axis].group.size()
    }

    /// A tensor that all ranks have.
    pub(crate) fn whole(&self, x: NamedTensor) -> Value {
        Value { part: x, splits: vec![None; self.all.len()] }
    }

    /// What a tensor is here.
    pub(crate) fn value(&self, x: &NamedTensor) -> Value {
        match parted(x) {
            Some(parted) => {
                let part = parted.value.part.unnamed().with_names(x.names().clone());
                Value { part, splits: parted.value.splits.clone() }
            }
            None => self.whole(x.clone()),
        }
    }

    /// Remembers that an op needed all of a dim.
    pub(crate) fn note(&self, op: &str, value: &Value, axis: usize) {
        let Some(split) = &value.splits[axis] else { return };
        if split.is_stored {
            return;
        }
        let dim =
            value.part.name(split.dim).map_or_else(|| split.dim.to_string(), |name| format!("'{name}'"));
        let text = format!("{op}: dim {dim} along '{}'", self.all[axis].name);
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        if !gathered.contains(&text) {
            gathered.push(text);
        }
    }

    /// The elements of all ranks of an axis, reduced.
    pub(crate) fn reduced(&self, x: &NamedTensor, axis: usize, reduction: Reduction) -> Result<NamedTensor> {
        let x = Tensor::from(x.contiguous()?);
        Ok(self.all[axis].group.all_reduce(&x, reduction)?.into_value())
    }

    /// The tensors of all ranks of an axis, along a new first dim.
    pub(crate) fn stacked(&self, x: &NamedTensor, axis: usize) -> Result<NamedTensor> {
        let x = Tensor::from(x.unnamed().unsqueeze(0)?.contiguous()?);
        Ok(self.all[axis].group.all_gather(&x, 0)?.into_value())
    }
}

impl Value {
    /// The sizes of the whole tensor.
    pub(crate) fn sizes(&self, axes: &Axes) -> Vec<usize> {
        let mut sizes = self.part.sizes().to_vec();
        for (axis, split) in self.splits.iter().enumerate() {
            if let Some(split) = split {
                sizes[split.dim] *= axes.size(axis);
            }
        }
        sizes
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.splits.iter().all(Option::is_none)
    }

    /// The axis that splits a dim.
    pub(crate) fn axis_of(&self, dim: usize) -> Option<usize> {
        self.splits.iter().position(|split| split.as_ref().is_some_and(|split| split.dim == dim))
    }

    /// Joins the parts along an axis.
    pub(crate) fn gather(&mut self, axes: &Axes, axis: usize) -> Result<()> {
        let Some(split) = self.splits[axis].take() else { return Ok(()) };
        let (x, ranks, names) = (self.part.unnamed(), axes.size(axis), self.part.names().clone());
        let own = x.sizes()[split.dim];
        let all = axes.all[axis].group.all_gather(&Tensor::from(x.contiguous()?), split.dim)?.into_value();
        self.part = match split.blocks.len() {
            0 | 1 => all,
            _ => {
                let (mut pieces, mut start) = (Vec::new(), 0);
                for block in &split.blocks {
                    let length = block / ranks;
                    for rank in 0..ranks {
                        pieces.push(all.narrow(split.dim, (rank * own + start) as isize, length)?);
                    }
                    start += length;
                }
                NamedTensor::cat(&pieces.iter().collect::<Vec<_>>(), split.dim)?
            }
        }
        .with_names(names);
        Ok(())
    }

    pub(crate) fn gather_all(&mut self, axes: &Axes) -> Result<()> {
        (0..axes.all.len()).try_for_each(|axis| self.gather(axes, axis))
    }

    /// Whether the whole dim can be divided among the ranks of an axis.
    pub(crate) fn divides(&self, axes: &Axes, axis: usize, split: &Split) -> bool {
        let (ranks, size) = (axes.size(axis), self.part.sizes()[split.dim]);
        match split.blocks.len() {
            0 => size.is_multiple_of(ranks),
            _ => {
                split.blocks.iter().sum::<usize>() == size
                    && split.blocks.iter().all(|block| block.is_multiple_of(ranks))
            }
        }
    }

    /// Keeps the part of this rank along an axis.
    pub(crate) fn slice(&mut self, axes: &Axes, axis: usize, split: Split) -> Result<()> {
        let group = &axes.all[axis].group;
        let (rank, ranks, dim) = (group.rank(), group.size(), split.dim);
        let whole = [self.part.sizes()[dim]];
        let blocks = if split.blocks.is_empty() { &whole[..] } else { &split.blocks };
        let (mut pieces, mut start) = (Vec::new(), 0);
        for block in blocks {
            let length = block / ranks;
            pieces.push(self.part.narrow(dim, (start + rank * length) as isize, length)?);
            start += block;
        }
        self.part = match &pieces[..] {
            [piece] => piece.clone(),
            _ => NamedTensor::cat(&pieces.iter().collect::<Vec<_>>(), dim)?,
        };
        self.splits[axis] = Some(split);
        Ok(())
    }

    /// The same tensor in parts of another kind.
    pub(crate) fn placed(mut self, axes: &Axes, splits: &[Option<Split>]) -> Result<Value> {
        for (axis, split) in splits.iter().enumerate() {
            let own = self.splits[axis].as_ref().map(|split| (split.dim, &split.blocks));
            if own.is_some() && own != split.as_ref().map(|split| (split.dim, &split.blocks)) {
                self.gather(axes, axis)?;
            }
        }
        for (axis, split) in splits.iter().enumerate() {
            match split {
                Some(split) if self.splits[axis].is_none() => self.slice(axes, axis, split.clone())?,
                _ => self.splits[axis] = split.clone(),
            }
        }
        Ok(self)
    }

    /// A tensor with the sizes of the whole: the part itself if all ranks have all of it.
    pub(crate) fn into_tensor(self, axes: &Arc<Axes>) -> Result<NamedTensor> {
        if self.is_whole() {
            return Ok(self.part);
        }
        let (dtype, names) = (self.part.dtype(), self.part.names().clone());
        let shape = Shape { sizes: self.sizes(axes).into_iter().collect(), names };
        standing_for(shape, dtype, Box::new(Parted { axes: axes.clone(), value: self }))
    }
}

/// What a tensor in parts stands for.
pub(crate) struct Parted {
    axes: Arc<Axes>,
    pub(crate) value: Value,
}

/// Nothing changes it, so that a panic cannot leave it half written.
impl UnwindSafe for Parted {}
impl RefUnwindSafe for Parted {}

/// What a tensor stands for, if it is in parts.
pub(crate) fn parted(x: &NamedTensor) -> Option<&Parted> {
    let what: &dyn Any = behind(x)?;
    what.downcast_ref()
}

impl Elsewhere for Parted {
    fn outputs(&self, call: &Call<'_>) -> Result<Vec<NamedTensor>> {
        let made = rules::outputs(&self.axes, call)?;
        made.into_iter().map(|value| value.into_tensor(&self.axes)).collect()
    }

    fn numbers(&self, x: &NamedTensor) -> Result<NamedTensor> {
        let mut value = self.axes.value(x);
        value.gather_all(&self.axes)?;
        Ok(value.part)
    }
}
