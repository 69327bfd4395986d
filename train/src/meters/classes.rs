//! Batches of logits and target classes, checked.

use super::pairs::in_order_of;
use namegrad_core::{Argument, DType, Dim, Error, ErrorKind, NamedTensor, Result};
use std::panic::Location;

const OP: &str = "update";

/// Logits `[.., class]`, and the target of each row.
pub(super) struct Batch {
    /// The logits with the class dim last.
    pub(super) logits: NamedTensor,
    /// The number of classes.
    pub(super) classes: usize,
    /// The target of each row; `None` if it is ignored.
    pub(super) targets: Vec<Option<usize>>,
}

impl Batch {
    /// Checks the inputs of a meter.
    #[track_caller]
    pub(super) fn new(
        logits: &NamedTensor,
        target: &NamedTensor,
        dim: Dim,
        ignored: Option<i64>,
    ) -> Result<Batch> {
        let dim = dim.look_up(OP, &[logits])?;
        let operands = [logits.shape(), target.shape()];
        if logits.ndim() == 0 || logits.sizes()[dim] == 0 {
            let message = "expected logits with at least one class";
            return Err(Error::new(ErrorKind::Shape, OP, message).with_operands(operands));
        }
        let rest = logits.select(dim, 0)?;
        let target = in_order_of(&rest, target).map_err(|error| error.with_operands(operands.clone()))?;
        let classes = logits.sizes()[dim];
        let targets = indices(&target, classes, ignored)?;
        Ok(Batch { logits: logits.movedim(dim, -1)?, classes, targets })
    }
}

/// The classes in a tensor of integers, in row-major order; `None` where they are ignored.
#[track_caller]
pub(super) fn indices(
    target: &NamedTensor,
    classes: usize,
    ignored: Option<i64>,
) -> Result<Vec<Option<usize>>> {
    if target.dtype().is_floating_point() {
        let message = format!("expected class indices of an integer dtype, got {}", target.dtype());
        return Err(Error::new(ErrorKind::DType, OP, message)
            .with_operands([target.shape()])
            .with_repair("target.to(DType::I64)?"));
    }
    let caller = Location::caller();
    let index = |class: i64| {
        if Some(class) == ignored {
            return Ok(None);
        }
        match usize::try_from(class).ok().filter(|class| *class < classes) {
            Some(class) => Ok(Some(class)),
            None => Err(Error::new(ErrorKind::Index, OP, format!("class {class} is not in 0..{classes}"))
                .with_operands([target.shape()])
                .with_repair(format!(".ignore_index({class}), if it marks what is not to be counted"))
                .at(caller)),
        }
    };
    target.to(DType::I64)?.to_vec::<i64>()?.into_iter().map(index).collect()
}
