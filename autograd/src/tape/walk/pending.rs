//! The gradients that have arrived at values that the walk has not taken yet.

use super::ById;
use super::gradient::{add_to, plain};
use crate::tape::Meta;
use crate::tensor::Tensor;
use namegrad_core::Result;
use std::collections::BinaryHeap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The gradient that has arrived at a meta that is still in the heap.
pub(super) enum Arrived {
    /// The gradient of a value, summed so far.
    Gradient(Tensor),
    /// The gradients of several outputs of an op.
    Parts(Vec<Option<Tensor>>),
}

#[derive(Default)]
pub(super) struct Pending {
    heap: BinaryHeap<u64>,
    at: ById<(Arc<Meta>, Arrived)>,
}

impl Pending {
    pub(super) fn add(&mut self, meta: Arc<Meta>, grad: Tensor) -> Result<()> {
        let grad = plain(grad);
        match self.at.entry(meta.id) {
            Entry::Vacant(place) => {
                self.heap.push(meta.id);
                place.insert((meta, Arrived::Gradient(grad)));
            }
            Entry::Occupied(mut place) => {
                if let Arrived::Gradient(sum) = &mut place.get_mut().1 {
                    add_to(sum, grad)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a gradient of output `number` of the op at `of`. Several gradients arrive if the output has
    /// several records on the tape: the original one, and those of its saved values.
    pub(super) fn add_part(
        &mut self,
        of: Arc<Meta>,
        number: usize,
        outputs: usize,
        grad: Tensor,
    ) -> Result<()> {
        let grad = plain(grad);
        let heap = &mut self.heap;
        let (_, arrived) = self.at.entry(of.id).or_insert_with(|| {
            heap.push(of.id);
            (of, Arrived::Parts(vec![None; outputs]))
        });
        if let Arrived::Parts(parts) = arrived {
            match &mut parts[number] {
                Some(sum) => add_to(sum, grad)?,
                none => *none = Some(grad),
            }
        }
        Ok(())
    }

    // Not inlined: that would copy the entry once more on its way out of the map.
    #[inline(never)]
    pub(super) fn take(&mut self) -> Option<(Arc<Meta>, Arrived)> {
        loop {
            let id = self.heap.pop()?;
            if let Some(found) = self.at.remove(&id) {
                return Some(found); // otherwise it was taken out before
            }
        }
    }

    /// The latest of the metas in the heap.
    pub(super) fn latest(&self) -> Option<u64> {
        self.heap.peek().copied()
    }

    /// Takes this meta out of turn.
    pub(super) fn take_out(&mut self, id: u64) -> Option<(Arc<Meta>, Arrived)> {
        self.at.remove(&id)
    }
}
