//! The positions in a tensor of the channels and of the dims along which a window slides.

use super::*;
use namegrad_core::args::Positions;

/// The dims that a function needs, by the names that its weight or its caller gives them.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// The dim of the channels.
    pub(crate) channel: Option<Name>,
    /// The dims that a window slides along.
    pub(crate) spatial: &'a [Option<Name>],
    /// The name of the channels of the result.
    pub(crate) made: Option<Name>,
    /// Whether the names are those of a weight that the caller can rename.
    pub(crate) of_weight: bool,
}

/// The order of dims in which the ops work, `[batch, channels, spatial..]`, and the way back.
pub(crate) struct ImageDims {
    order: Order,
    /// The sizes of the batch dims.
    batch: Vec<usize>,
}

const MORE_DIMS: &str =
    "; more batch dims need names for the dims of the input, and the same for the channels of the weight";

/// An error of a function or layer, which adds its name and its inputs.
#[cold]
pub(crate) fn fault(kind: ErrorKind, message: impl Display) -> Error {
    Error::new(kind, "", format!("{message}"))
}

impl ImageDims {
    /// Finds the dims in `x`: those whose names it has by name, the others by position, as the last dims that
    /// are left. If no dim is found by name, there can be one batch dim, as in PyTorch.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if a dim with another name is where one is expected, [`ErrorKind::Shape`]
    /// for a wrong number of dims, [`ErrorKind::DuplicateName`] if the result would have a name twice.
    pub(crate) fn find(x: &Tensor, wanted: Wanted<'_>) -> Result<ImageDims> {
        let (dims, names) = (wanted.spatial.len(), [&[wanted.channel], wanted.spatial].concat());
        let by_name = names.iter().flatten().any(|name| x.names().position(*name).is_some());
        if x.ndim() < dims + 1 || !by_name && x.ndim() > dims + 2 {
            let spatial = ["length", "height, width", "depth, height, width"][dims.clamp(1, 3) - 1];
            let more = if x.ndim() > dims + 2 { MORE_DIMS } else { "" };
            let message = format!(
                "expected an input [N, channels, {spatial}] or [channels, {spatial}], got {} dims{more}",
                x.ndim()
            );
            return Err(fault(ErrorKind::Shape, message));
        }
        let taken = positions(x, &names, wanted.of_weight.then_some(wanted.made))?;
        let batch = others(x, &taken);
        let mut result = names_of(x);
        result[taken[0]] = wanted.made;
        let names = Names::new("", result).map_err(|error| {
            let name = wanted.made.map_or(String::new(), |name| format!("{name}"));
            error.with_repair(format!("x.rename([(\"{name}\", \"{name}_in\")])?"))
        })?;
        let order = [&batch[..], &taken].concat();
        Ok(ImageDims { order: Order { order, names }, batch: sizes_of(x, &batch) })
    }

    /// The positions of the dims that the kernel slides along.
    pub(crate) fn spatial(&self) -> &[usize] {
        &self.order.order[self.batch.len() + 1..]
    }

    /// The position of the channels.
    pub(crate) fn channel(&self) -> usize {
        self.order.order[self.batch.len()]
    }

    /// `x` in the order of the ops, without names and with at most one batch dim.
    pub(crate) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = self.order.apply(x)?;
        if self.batch.len() > 1 {
            x = x.reshape([&[numel(&self.batch)], &x.sizes()[self.batch.len()..]].concat())?;
        }
        Ok(x)
    }

    /// The result of an op with the order of dims of the input, and with names.
    pub(crate) fn restore(&self, mut y: Tensor) -> Result<Tensor> {
        if self.batch.len() > 1 {
            y = y.reshape([&self.batch[..], &y.sizes()[1..]].concat())?;
        }
        self.order.restore(y)
    }
}

/// The positions of the dims that windows slide along: by name, or as the last dims that are left.
///
/// # Errors
/// [`ErrorKind::NameNotFound`] if `x` lacks a dim and has another one there, [`ErrorKind::Shape`] if it has
/// too few dims.
pub(crate) fn sliding_dims(x: &Tensor, wanted: &[Option<Name>]) -> Result<Positions> {
    if x.ndim() < wanted.len() {
        let message = format!("windows over {} dims do not fit into {} dims", wanted.len(), x.ndim());
        return Err(fault(ErrorKind::Shape, message));
    }
    Ok(positions(x, wanted, None)?.into())
}

/// The positions of dims with these names: by name, or as the last dims that are left, if these do not have
/// other names. If they are those of a weight, `made` is the name of its other dim.
fn positions(x: &Tensor, names: &[Option<Name>], made: Option<Option<Name>>) -> Result<Vec<usize>> {
    let places = placed(x, names);
    for (dim, name) in places.iter().zip(names).rev() {
        check_taken(x, [*name, x.name(*dim)], made)?;
    }
    Ok(places)
}

/// Checks a dim that is matched by name or position: one with another name must not be taken, nor, with strict
/// names, an unnamed one. For `made`, see [`positions`].
fn check_taken(x: &Tensor, [wanted, there]: [Option<Name>; 2], made: Option<Option<Name>>) -> Result<()> {
    let (kind, message, repair) = match (wanted, there) {
        (Some(wanted), Some(there)) if wanted != there => {
            let message = format!("Name '{wanted}' not found in {}, and '{there}' is another dim", x.shape());
            let repair = match made {
                Some(_) => format!("weight.rename([(\"{wanted}\", \"{there}\")])?, if both mean the same"),
                // The batch, of an input that lacks a dim.
                None if is_batch(there) => String::new(),
                None => renaming("x", there, &wanted),
            };
            (ErrorKind::NameNotFound, message, repair)
        }
        (Some(wanted), None) if is_strict() => (
            ErrorKind::NameMismatch,
            format!("strict names: an unnamed dim would be taken for '{wanted}'"),
            format!("x.refine_names([\"...\", \"{wanted}\"])?"),
        ),
        (None, Some(there)) if is_strict() => (
            ErrorKind::NameMismatch,
            format!("strict names: '{there}' would be taken for an unnamed dim"),
            "x.rename(None)?".into(),
        ),
        _ => return Ok(()),
    };
    let is_twice = wanted.is_some() && made == Some(there); // the name would be there twice
    Err(fault(kind, message).with_repair(if is_twice { "" } else { &repair[..] }))
}
