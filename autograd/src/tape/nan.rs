//! Where a NaN was born: what anomaly mode remembers of the values that ops make, whether they require a
//! gradient or not.
//!
//! A value is known by the address of its first element. The list holds the values themselves, so that no
//! other takes their place; it is emptied when the mode ends.

use super::{Origin, has_nan, is_anomaly_enabled, is_observed};
use crate::observe;
use namegrad_core::{Error, ErrorKind, NamedTensor, Shape};
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::Location;

/// How a value came to be NaN.
#[derive(Clone)]
enum Birth {
    /// The op made it of inputs that were not.
    Made(Origin),
    /// The op was given an input that was NaN before anomaly mode saw it.
    Given(Origin, Shape),
    /// A leaf that was NaN when it was made.
    Leaf(Shape),
}

#[derive(Default)]
struct Births {
    of_values: HashMap<usize, (NamedTensor, Birth)>,
    of_metas: HashMap<u64, Birth>,
}

thread_local! {
    static BIRTHS: RefCell<Births> = RefCell::default();
}

fn key(value: &NamedTensor) -> usize {
    value.data_ptr() as usize
}

fn of_value(value: &NamedTensor) -> Option<Birth> {
    BIRTHS.with_borrow(|births| births.of_values.get(&key(value)).map(|(_, birth)| birth.clone()))
}

fn remember(value: &NamedTensor, birth: Birth) {
    BIRTHS.with_borrow_mut(|births| births.of_values.insert(key(value), (value.clone(), birth)));
}

/// Shows an op to the observer, and looks at its outputs in anomaly mode. A NaN in one was born where that of
/// an input was, or else here.
#[cold]
#[track_caller]
pub(crate) fn look(op: &'static str, inputs: &[&NamedTensor], outputs: &[&NamedTensor]) {
    if is_observed() {
        observe::tell(op, Location::caller(), inputs, outputs);
    }
    if !is_anomaly_enabled() {
        return;
    }
    let origin = Origin { op, at: Location::caller() };
    for output in outputs.iter().filter(|output| has_nan(output)) {
        let before = inputs.iter().filter(|x| has_nan(x));
        let birth = before.map(|x| of_value(x).unwrap_or(Birth::Given(origin, x.shape()))).min_by_key(
            |birth| matches!(birth, Birth::Given(..)), // one that was seen says more
        );
        remember(output, birth.unwrap_or(Birth::Made(origin)));
    }
}

/// Looks at an input of an op of a user: a NaN in its output may come from there.
#[cold]
pub(crate) fn carry(input: &NamedTensor, output: &NamedTensor) {
    if of_value(output).is_none()
        && let Some(birth) = of_value(input).filter(|_| has_nan(output))
    {
        remember(output, birth);
    }
}

/// Looks at the output of an op of a user when all of its inputs are known.
#[cold]
pub(crate) fn settle(origin: Origin, output: &NamedTensor) {
    if of_value(output).is_none() && has_nan(output) {
        remember(output, Birth::Made(origin));
    }
}

/// Whether a value that gets a place on the tape is NaN; then its birth is known by that place.
#[cold]
pub(crate) fn enters(id: u64, value: &NamedTensor, origin: Option<Origin>) -> bool {
    let is_nan = has_nan(value);
    if is_nan {
        let here = || origin.map_or_else(|| Birth::Leaf(value.shape()), Birth::Made);
        let birth = of_value(value).unwrap_or_else(here);
        BIRTHS.with_borrow_mut(|births| births.of_metas.insert(id, birth));
    }
    is_nan
}

/// The error of a walk over the place `id`, whose value was NaN when anomaly mode saw it made by `origin`.
#[cold]
pub(crate) fn in_forward(op: &'static str, id: u64, origin: Option<Origin>) -> Error {
    let known = BIRTHS.with_borrow(|births| births.of_metas.get(&id).cloned());
    let (message, repair) = match known.or(origin.map(Birth::Made)) {
        Some(Birth::Made(Origin { op, at })) => (
            format!("Function '{op}' returned nan values in the forward pass, called at {at}"),
            "look at the inputs of that call, which were not nan",
        ),
        Some(Birth::Given(Origin { op, at }, shape)) => (
            format!("Function '{op}', called at {at}, was given an input {shape} that was nan already"),
            "look at where that tensor was made, or make it inside of detect_anomaly too",
        ),
        Some(Birth::Leaf(shape)) => (
            format!("a leaf {shape}, which requires a gradient, was nan when it was made"),
            "look at where that tensor was made",
        ),
        None => ("a value was nan in the forward pass".into(), "look at the tensors that require gradients"),
    };
    Error::new(ErrorKind::Autograd, op, message).with_repair(repair)
}

/// Forgets everything, unless anomaly mode is on.
pub(crate) fn forget() {
    if !is_anomaly_enabled() {
        drop(BIRTHS.take());
    }
}
