//! The repair in the error of a state that does not fit: paths to rename, then the call that loads.

use super::load::{LoadOptions, LoadReport, more};
use super::renames::Renames;
use super::{ByPath, StateDict};
use crate::dims::repaired;
use crate::places::EntryPlace;
use namegrad_core::names::is_strict;
use namegrad_core::{Error, ErrorKind, Result, Shape};

/// The error for a state that does not fit, with the calls that load the values that fit.
#[cold]
#[track_caller]
pub(super) fn misfit(
    original: &StateDict,
    places: &ByPath<EntryPlace>,
    report: &LoadReport,
    options: LoadOptions,
) -> Result<Error> {
    let mut state = original.clone();
    let Renames { pairs, calls, is_prefix } = Renames::make(&mut state, places, report);
    let now = state.compare(places, options)?.0;
    let (wrong, count) = (now.mismatched.len() + now.refused.len(), places.entries().len());
    let fits = count.saturating_sub(now.missing.len() + wrong);
    let of_state = state.len().saturating_sub(now.unexpected.len() + wrong);
    // At least half of the paths of the model or of the state fit.
    let is_of_model = 2 * fits >= count || fits > 0 && 2 * of_state >= state.len();
    let same_paths = now.missing.is_empty() && now.unexpected.is_empty() && now.refused.is_empty();
    let swapped =
        now.mismatched.iter().any(|(_, own, given)| own.sizes == given.sizes && permuted(own, given));
    let fits_in_order = now.all(&|own, given| reordered(own, given).is_some());
    let none_fits = same_paths && !is_of_model && !now.same_sizes() && !now.can_align() && !fits_in_order;
    let is_of_model = is_of_model || same_paths;
    let repair = match now.call(options) {
        _ if swapped || none_fits => other_sizes(&now.mismatched),
        _ if !is_of_model => None,
        call => {
            let mut text = String::new();
            for (from, to) in calls.iter().take(if calls.len() > MOST_RENAMES { 3 } else { MOST_RENAMES }) {
                text += &format!("state.rename(\"{from}\", \"{to}\")?; ");
            }
            if calls.len() > MOST_RENAMES {
                text += &format!(".. {} such renames; ", calls.len());
            }
            let note = match calls.len() {
                0 => "",
                _ if is_prefix || call.ends_with("mean the same") => "",
                1 => ", if both mean the same",
                _ => ", if these paths mean the same",
            };
            Some(text + &call + note)
        }
    };
    let message = match is_of_model {
        true => format!("the state does not fit the model: {}", report.text(pairs.entries())),
        false => format!(
            "the state is that of another model, {fits} of the {count} paths fit: {}",
            report.text(&[])
        ),
    };
    Ok(repaired(Error::new(ErrorKind::Value, "load_state_dict", message), repair))
}

/// The most renames that a repair spells out.
const MOST_RENAMES: usize = 10;

impl LoadReport {
    /// Whether this holds for all values that do not fit: their shapes in the model and in the state.
    fn all(&self, holds: &dyn Fn(&Shape, &Shape) -> bool) -> bool {
        self.mismatched.iter().all(|(_, own, given)| holds(own, given))
    }

    fn same_sizes(&self) -> bool {
        self.all(&|own, given| own.sizes == given.sizes)
    }

    /// Whether the values have the dims of the model in another order.
    fn can_align(&self) -> bool {
        let fits = |own: &Shape, given: &Shape| same_dims(own, given) || transposed(own, given).is_some();
        !self.mismatched.is_empty() && self.all(&fits)
    }

    /// The call that loads the values that fit.
    fn call(&self, options: LoadOptions) -> String {
        let align = options.align || self.can_align();
        let ignore_names = options.ignore_names || !self.mismatched.is_empty() && !align && self.same_sizes();
        let (mut calls, mut lost, mut is_turned) = (String::new(), self.missing.clone(), false);
        for (path, own, given) in self.mismatched.iter().filter(|_| !ignore_names) {
            let turned = match transposed(own, given).filter(|_| align) {
                _ if align && same_dims(own, given) => continue,
                Some(names) => Some(format!("state.refine_names({path:?}, {names:?})?; ")),
                None => reordered(own, given).map(|order| {
                    let value = format!("state.get({path:?}).unwrap().permute({order:?})?");
                    format!("state.insert({path:?}, {value}); ")
                }),
            };
            is_turned |= turned.is_some();
            calls += &turned.unwrap_or_else(|| {
                // Values with other sizes cannot be loaded.
                lost.push(path.clone());
                format!("state.remove({path:?}); ")
            });
        }
        for (path, _) in &self.refused {
            calls += &format!("state.remove({path:?}); ");
            lost.push(path.clone());
        }
        let partial = options.partial || !lost.is_empty() || !self.unexpected.is_empty();
        let mut setters = String::new();
        for (name, on) in [("partial", partial), ("align", align), ("ignore_names", ignore_names)] {
            if on {
                setters += &format!(".{name}(true)");
            }
        }
        let call = match setters.is_empty() {
            true => format!("{calls}model.load_state_dict(&state)?"),
            false => format!("{calls}model.load_state_dict_with(&state, LoadOptions::new(){setters})?"),
        };
        let shown = crate::joined(&lost[..lost.len().min(MOST_LOST)], ", ") + &more(lost.len(), MOST_LOST);
        match lost.len() {
            0 if ignore_names && !options.ignore_names => match is_strict() && self.all(&half_named) {
                true => call + ", which takes dims by position: strict mode does not load dims without names",
                false => call + ", if the names mean the same",
            },
            // Nothing says which way a square one is.
            0 if is_turned => {
                call + ", if the file has the dims in this order; square weights stay as they are in the file"
            }
            0 if self.unexpected.is_empty() || options.partial => call,
            0 => call + ", which leaves out the unexpected values of the state",
            _ => format!("{call}, which leaves initial values in the model: {shown}"),
        }
    }
}

/// Whether a dim has a name in the model or in the state alone.
fn half_named(own: &Shape, given: &Shape) -> bool {
    (0..own.sizes.len()).any(|dim| own.names.get(dim).is_some() != given.names.get(dim).is_some())
}

/// The most paths in a repair.
const MOST_LOST: usize = 3;

/// The repair for values whose named dims have other sizes: a model of these sizes.
fn other_sizes(mismatched: &[(String, Shape, Shape)]) -> Option<String> {
    let (mut sizes, mut turned, mut same) = (Vec::new(), false, true);
    for (_, own, given) in mismatched {
        if !permuted(own, given) {
            return None;
        }
        (turned, same) = (turned || own.names != given.names, same && own.sizes == given.sizes);
        for (dim, size) in own.sizes.iter().enumerate() {
            let name = own.names.get(dim)?;
            let other = given.sizes[given.names.position(name)?];
            let text = format!("{name}={other}");
            if other != *size && !sizes.contains(&text) {
                sizes.push(text);
            }
        }
    }
    let mut repair =
        format!("a model with {}, whose sizes are those of the state", crate::joined(&sizes, " and "));
    if turned {
        repair += ", and LoadOptions::new().align(true)";
    }
    if same {
        repair += "; or, if the names in the state are wrong, LoadOptions::new().ignore_names(true)";
    }
    Some(repair)
}

/// Whether both have the same names, whose sizes may differ.
fn permuted(own: &Shape, given: &Shape) -> bool {
    let count = own.sizes.len();
    let has = |dim| own.names.get(dim).is_some_and(|name| given.names.position(name).is_some());
    count == given.sizes.len() && !same_dims(own, given) && (0..count).all(has)
}

/// The names of the dims of a value without names that has the sizes of the model in another order.
#[inline(never)]
fn transposed(own: &Shape, given: &Shape) -> Option<Vec<String>> {
    if given.names.is_named() || own.sizes == given.sizes {
        return None;
    }
    let mut names = Vec::with_capacity(own.sizes.len());
    for size in &given.sizes {
        // Dims of the same size could be either.
        let mut places = (0..own.sizes.len()).filter(|dim| own.sizes[*dim] == *size);
        let (dim, None) = (places.next()?, places.next()) else { return None };
        names.push(own.names.get(dim)?.to_string());
    }
    (names.len() == own.sizes.len()).then_some(names)
}

/// The order of the dims of a value without names that gives it the sizes of the model, if dims of the same
/// size keep their order.
#[inline(never)]
fn reordered(own: &Shape, given: &Shape) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = Vec::new();
    for size in &own.sizes {
        order.push((0..given.sizes.len()).find(|dim| given.sizes[*dim] == *size && !order.contains(dim))?);
    }
    let fits = !given.names.is_named() && order.len() == given.sizes.len() && own.sizes != given.sizes;
    fits.then_some(order)
}

/// Whether both have the same named dims of the same sizes, in any order.
#[inline(never)]
fn same_dims(own: &Shape, given: &Shape) -> bool {
    let count = own.sizes.len();
    let fits = |dim| {
        let at = own.names.get(dim).and_then(|name| given.names.position(name));
        given.names.get(dim).is_some() && at.is_some_and(|at| given.sizes[at] == own.sizes[dim])
    };
    count == given.sizes.len() && (0..count).all(fits)
}
