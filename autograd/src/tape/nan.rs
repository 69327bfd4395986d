//! The origin of a NaN: anomaly mode remembers facts about the values that ops make, whether they require a
//! gradient or not.
//!
//! A value is known by the address of its first element. The list holds the values themselves, so that no
//! other takes their place; it is emptied when the mode ends.

use super::{Origin, is_anomalous, is_anomaly_enabled, is_infinite_checked, is_observed};
use crate::observe;
use namegrad_core::{Error, ErrorKind, NamedTensor, Shape};
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::Location;

/// The way in which a value became NaN.
#[derive(Clone)]
enum Birth {
    /// The op made it of inputs that were not, which are at these addresses.
    Made(Origin, Vec<usize>),
    /// The op was given an input that was NaN before anomaly mode saw it.
    Given(Origin, Shape),
    /// A leaf that was NaN when it was made.
    Leaf(Shape),
}

#[derive(Default)]
struct Births {
    /// By the address of the value, which is held.
    of_values: HashMap<u64, (Option<NamedTensor>, Birth)>,
    /// By the id of the meta.
    of_metas: HashMap<u64, (Option<NamedTensor>, Birth)>,
}

thread_local! {
    static BIRTHS: RefCell<Births> = RefCell::default();
}

fn key(value: &NamedTensor) -> usize {
    value.data_ptr() as usize
}

fn of_value(value: &NamedTensor) -> Option<Birth> {
    BIRTHS.with_borrow(|births| births.of_values.get(&(key(value) as u64)).map(|(_, birth)| birth.clone()))
}

fn remember(value: &NamedTensor, birth: Birth) {
    BIRTHS.with_borrow_mut(|births| births.of_values.insert(key(value) as u64, (Some(value.clone()), birth)));
}

/// Shows an op to the observer, and looks at its outputs in anomaly mode. A NaN in one was born where that of
/// an input was, or else here.
#[cold]
#[track_caller]
pub(crate) fn look(op: &'static str, inputs: &[&NamedTensor], outputs: &[&NamedTensor]) {
    let origin = Origin::here(op);
    if is_observed() {
        observe::tell(op, origin.at, inputs, outputs);
    }
    if !is_anomaly_enabled() {
        return;
    }
    for output in outputs {
        if !is_anomalous(output) {
            continue;
        }
        let mut birth = Birth::Made(origin, inputs.iter().map(|x| key(x)).collect());
        for x in inputs {
            if !is_anomalous(x) {
                continue;
            }
            if let Some(seen) = of_value(x) {
                birth = seen; // it says more than one that was not seen
                break;
            }
            if matches!(birth, Birth::Made(..)) {
                birth = Birth::Given(origin, x.shape());
            }
        }
        remember(output, birth);
    }
}

/// Looks at an input of an op of a user: a NaN in its output may come from there.
#[cold]
pub(crate) fn carry(input: &NamedTensor, output: &NamedTensor) {
    if of_value(output).is_none()
        && let Some(birth) = of_value(input).filter(|_| is_anomalous(output))
    {
        remember(output, birth);
    }
}

/// Looks at the output of an op of a user when all of its inputs are known.
#[cold]
pub(crate) fn settle(origin: Origin, output: &NamedTensor) {
    if of_value(output).is_none() && is_anomalous(output) {
        remember(output, Birth::Made(origin, Vec::new()));
    }
}

/// Whether a value that gets a place on the tape is NaN; then its birth is known by that place.
#[cold]
pub(crate) fn enters(id: u64, value: &NamedTensor, origin: Option<Origin>) -> bool {
    let is_nan = is_anomalous(value);
    if is_nan {
        let here = || match origin {
            Some(origin) => Birth::Made(origin, Vec::new()),
            None => Birth::Leaf(value.shape()),
        };
        let birth = of_value(value).unwrap_or_else(here);
        BIRTHS.with_borrow_mut(|births| births.of_metas.insert(id, (None, birth)));
    }
    is_nan
}

/// The error of a walk over the place `id`, whose value was NaN when anomaly mode saw it made by `origin`.
#[cold]
pub(crate) fn in_forward(op: &'static str, id: u64, origin: Option<Origin>) -> Error {
    let known = BIRTHS.with_borrow(|births| births.of_metas.get(&id).map(|(_, birth)| birth.clone()));
    let nan = what();
    let message = match known.or(origin.map(|origin| Birth::Made(origin, Vec::new()))) {
        Some(Birth::Made(Origin { op, at }, inputs)) => {
            keep(Anomaly { op, at, leaves: Vec::new(), inputs });
            format!(
                "Function '{op}' returned {nan} values in the forward pass, called at {at}; its inputs were not {nan}"
            )
        }
        Some(Birth::Given(Origin { op, at }, shape)) => format!(
            "Function '{op}', called at {at}, was given an input {shape} that was {nan} already, from the data or from code that \
             ran before the check"
        ),
        Some(Birth::Leaf(shape)) => {
            format!("a leaf {shape}, which requires a gradient, was {nan} when it was made")
        }
        None => format!("a value was {nan} in the forward pass"),
    };
    Error::new(ErrorKind::Autograd, op, message)
}

/// The name of an anomaly, for messages.
pub(crate) fn what() -> &'static str {
    if is_infinite_checked() { "nan or infinite" } else { "nan" }
}

/// The content of the error of an anomaly, as data: the op, its line, and what it leads to or was made of.
#[derive(Clone, Debug)]
pub struct Anomaly {
    /// The op.
    pub op: &'static str,
    /// The line that called it.
    pub at: &'static Location<'static>,
    /// In a backward pass: the [records](crate::Tensor::record_id) of the leaves that the gradient would have
    /// reached.
    pub leaves: Vec<u64>,
    /// In a forward pass: the addresses of the first elements of the inputs.
    pub inputs: Vec<usize>,
}

thread_local! {
    static LAST: RefCell<Option<Anomaly>> = const { RefCell::new(None) };
}

/// The anomaly of the last error on this thread, unless it was taken before.
pub fn take_anomaly() -> Option<Anomaly> {
    LAST.take()
}

pub(crate) fn keep(anomaly: Anomaly) {
    LAST.set(Some(anomaly));
}

/// Forgets everything, unless anomaly mode is on.
pub(crate) fn forget() {
    if !is_anomaly_enabled() {
        drop(BIRTHS.take());
    }
}
