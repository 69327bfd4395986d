//! A tensor in parts: the part of this rank, how it is split, and how parts are put together.

use super::{drawn, rules};
use crate::backend::Reduction;
use crate::group::Group;
use crate::traffic;
use namegrad::autograd::elsewhere::{Call, Elsewhere, behind, standing_for};
use namegrad::core::{NamedTensor, Shape};
use namegrad::prelude::*;
use std::any::Any;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// An axis of a mesh, as this rank sees it.
#[derive(Clone)]
pub(crate) struct Axis {
    pub(crate) name: String,
    /// The ranks that differ from this one along the axis alone, in their order.
    pub(crate) group: Group,
}

/// The axes of a mesh.
pub(crate) struct Axes {
    pub(crate) all: Vec<Axis>,
    /// The axis along which parameters are in parts, whatever their names.
    pub(crate) stored: Option<usize>,
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
    /// Whether the ranks along the axis of stored parts have terms, whose sum is not computed yet: a gradient,
    /// of which each rank will keep a part.
    pub(crate) is_term: bool,
}

impl Axes {
    pub(crate) fn size(&self, axis: usize) -> usize {
        self.all[axis].group.size()
    }

    /// A tensor that all ranks have.
    pub(crate) fn whole(&self, x: NamedTensor) -> Value {
        Value::of(x, vec![None; self.all.len()])
    }

    /// What a tensor is here.
    pub(crate) fn value(&self, x: &NamedTensor) -> Value {
        match parted(x) {
            Some(parted) => {
                let value = parted.value().clone();
                Value { part: value.part.unnamed().with_names(x.names().clone()), ..value }
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
        self.all[axis].group.reduced(x, reduction)
    }

    /// The tensors of all ranks of an axis, along a new first dim.
    pub(crate) fn stacked(&self, x: &NamedTensor, axis: usize) -> Result<NamedTensor> {
        self.all[axis].group.gathered(&x.unnamed().unsqueeze(0)?, 0)
    }
}

impl Value {
    pub(crate) fn of(part: NamedTensor, splits: Vec<Option<Split>>) -> Value {
        Value { part, splits, is_term: false }
    }

    /// Adds the terms of the ranks.
    pub(crate) fn sum(&mut self, axes: &Axes) -> Result<()> {
        if let Some(axis) = axes.stored.filter(|_| std::mem::take(&mut self.is_term)) {
            let names = self.part.names().clone();
            self.part = axes.reduced(&self.part.unnamed(), axis, Reduction::Sum)?.with_names(names);
        }
        Ok(())
    }

    /// Adds the terms of the ranks; this one receives its part of the sum.
    fn scatter(&mut self, axes: &Axes, axis: usize, split: Split) -> Result<()> {
        let names = self.part.names().clone();
        let part = axes.all[axis].group.scattered(&self.part.unnamed(), split.dim)?;
        (self.part, self.is_term) = (part.with_names(names), false);
        self.splits[axis] = Some(split);
        Ok(())
    }

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
        !self.is_term && self.splits.iter().all(Option::is_none)
    }

    /// The axis that splits a dim.
    pub(crate) fn axis_of(&self, dim: usize) -> Option<usize> {
        self.splits.iter().position(|split| split.as_ref().is_some_and(|split| split.dim == dim))
    }

    /// Joins the parts along an axis.
    pub(crate) fn gather(&mut self, axes: &Axes, axis: usize) -> Result<()> {
        self.sum(axes)?;
        self.join(axes, axis)
    }

    fn join(&mut self, axes: &Axes, axis: usize) -> Result<()> {
        let Some(split) = self.splits[axis].take() else { return Ok(()) };
        let (x, ranks, names) = (self.part.unnamed(), axes.size(axis), self.part.names().clone());
        let own = x.sizes()[split.dim];
        let all = axes.all[axis].group.gathered(&x, split.dim)?;
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
                self.join(axes, axis)?;
            }
        }
        let scattered = axes.stored.filter(|axis| self.is_term && self.splits[*axis].is_none());
        if let Some((axis, split)) = scattered.and_then(|axis| Some((axis, splits[axis].clone()?)))
            && split.blocks.len() < 2
        {
            self.scatter(axes, axis, split)?;
        }
        self.sum(axes)?;
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
        let device = self.part.device();
        let parted = Box::new(Parted { axes: axes.clone(), value: Mutex::new(self), whole: OnceLock::new() });
        let stand = || standing_for(shape, dtype, parted);
        if device == Device::Meta { on_device(device, stand) } else { stand() }
    }
}

/// What a tensor in parts stands for.
pub(crate) struct Parted {
    axes: Arc<Axes>,
    value: Mutex<Value>,
    /// All numbers of an index, which are read more than once.
    whole: OnceLock<NamedTensor>,
}

impl Parted {
    fn value(&self) -> MutexGuard<'_, Value> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the terms of the ranks, once for all who use the tensor.
    pub(crate) fn sum(&self) -> Result<()> {
        let mut sum = self.value().clone();
        sum.sum(&self.axes)?;
        *self.value() = sum;
        Ok(())
    }
}

/// It is replaced as a whole, so that a panic cannot leave it half written.
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

    fn drawn(&self, shape: Shape, draw: &dyn Fn(Shape) -> Result<NamedTensor>) -> Result<NamedTensor> {
        let (splits, device) = {
            let value = self.value();
            (value.splits.clone(), value.part.device())
        };
        drawn::part(&self.axes, &splits, shape, device == Device::Meta, draw)?.into_tensor(&self.axes)
    }

    fn numbers(&self, x: &NamedTensor) -> Result<NamedTensor> {
        let _gathers = traffic::in_op("to_vec");
        if let Some(whole) = self.whole.get() {
            return Ok(whole.unnamed().with_names(x.names().clone()));
        }
        let mut value = self.axes.value(x);
        value.gather_all(&self.axes)?;
        if value.part.dtype() == DType::I64 {
            let _ = self.whole.set(value.part.clone());
        }
        Ok(value.part)
    }
}
