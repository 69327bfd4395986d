//! The repair in the error of a state that does not fit: paths to rename, then the call that loads.

use super::load::{LoadOptions, LoadReport};
use super::{ByPath, StateDict};
use crate::module::EntryPlace;
use namegrad_core::{Result, Shape};

/// The calls that load the values that fit.
#[cold]
pub(super) fn repair(
    state: &StateDict,
    places: &ByPath<EntryPlace>,
    report: LoadReport,
    options: LoadOptions,
) -> Result<String> {
    let without_renames = report.call(options);
    let (mut state, mut report) = (state.clone(), report);
    let mut calls = String::new();
    for _ in 0..MOST_RENAMES {
        let renamed = moved(&state, places, &report).map(|(from, to)| (below(from), below(to)));
        let Some((from, to)) = renamed.filter(|(from, to)| state.rename(from, to).is_ok()) else {
            return Ok(calls + &report.call(options));
        };
        calls += &format!("state.rename(\"{from}\", \"{to}\")?; ");
        report = state.compare(places, options)?.0;
    }
    Ok(without_renames)
}

/// The most renames of a repair, and one more. Paths that differ in more ways are of another model.
const MOST_RENAMES: usize = 5;

/// The pattern of all paths with a prefix.
fn below(prefix: &str) -> String {
    if prefix.is_empty() { "**".into() } else { format!("{prefix}.**") }
}

/// Whether the path is that of a value in the module at `prefix`.
fn is_below(path: &str, prefix: &str) -> bool {
    prefix.is_empty() || path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'))
}

/// The prefix in the state and the prefix in the model of a module that moved: the values under the first are
/// used by nothing else, and have the sizes of missing values under the second.
fn moved<'r>(
    state: &StateDict,
    places: &ByPath<EntryPlace>,
    report: &'r LoadReport,
) -> Option<(&'r str, &'r str)> {
    // The prefixes, how often they fit, and whether all sizes agree.
    let mut fits: Vec<((&str, &str), usize, bool)> = Vec::new();
    for missing in &report.missing {
        let own = places.get(missing)?.value();
        for unexpected in &report.unexpected {
            let Some(prefixes) = differing(unexpected, missing) else { continue };
            let same_sizes = state.get(unexpected).is_some_and(|given| given.sizes() == own.sizes());
            match fits.iter_mut().find(|(other, ..)| *other == prefixes) {
                Some((_, count, same)) => (*count, *same) = (*count + 1, *same && same_sizes),
                None => fits.push((prefixes, 1, same_sizes)),
            }
        }
    }
    let unused = |prefix: &str| {
        let mut paths = state.values.paths().filter(|path| is_below(path, prefix));
        paths.all(|path| report.unexpected.binary_search_by(|own| own.as_str().cmp(path)).is_ok())
    };
    let mut best: Option<(&str, &str)> = None;
    let (mut most, mut several) = (0, false);
    for ((from, to), count, same_sizes) in fits {
        let whole = !from.is_empty() && !to.is_empty() || count == report.missing.len();
        if !same_sizes || !whole || count < most || !unused(from) {
            continue;
        }
        match best.filter(|_| count == most) {
            // Of several targets, none is better than the others.
            Some((_, other)) if other != to => several = true,
            Some(other) => best = Some(other.min((from, to))),
            None => (best, most, several) = (Some((from, to)), count, false),
        }
    }
    best.filter(|_| !several)
}

/// The parts in front of the longest end that two paths share, if they share at least the last segment.
fn differing<'p>(a: &'p str, b: &'p str) -> Option<(&'p str, &'p str)> {
    let pairs = a.rsplit('.').zip(b.rsplit('.'));
    let same: usize = pairs.take_while(|(a, b)| a == b).map(|(segment, _)| segment.len() + 1).sum();
    let front = |path: &'p str| path.get(..path.len().saturating_sub(same)).unwrap_or_default();
    (same > 0).then(|| (front(a), front(b)))
}

impl LoadReport {
    /// The call that loads the values that fit.
    fn call(&self, options: LoadOptions) -> String {
        let every =
            |fits: fn(&Shape, &Shape) -> bool| self.mismatched.iter().all(|(_, own, given)| fits(own, given));
        let differ = !self.mismatched.is_empty();
        let align = options.align || differ && every(same_dims);
        let ignore_names =
            options.ignore_names || differ && !align && every(|own, given| own.sizes == given.sizes);
        let mut removed = String::new();
        // Values with other sizes cannot be loaded.
        for (path, ..) in self.mismatched.iter().filter(|_| !align && !ignore_names) {
            removed += &format!("state.remove({path:?}); ");
        }
        for (path, _) in &self.refused {
            removed += &format!("state.remove({path:?}); ");
        }
        let absent = !self.missing.is_empty() || !self.unexpected.is_empty();
        let partial = options.partial || absent || !removed.is_empty();
        let mut setters = String::new();
        for (name, on) in [("partial", partial), ("align", align), ("ignore_names", ignore_names)] {
            if on {
                setters += &format!(".{name}(true)");
            }
        }
        match setters.is_empty() {
            true => "model.load_state_dict(&state)?".into(),
            false => format!("{removed}model.load_state_dict_with(&state, LoadOptions::new(){setters})?"),
        }
    }
}

/// Whether both have the same named dims of the same sizes, in any order.
fn same_dims(own: &Shape, given: &Shape) -> bool {
    let count = own.sizes.len();
    count == given.sizes.len()
        && (0..count).all(|dim| match (own.names.get(dim), given.names.get(dim)) {
            (Some(name), Some(_)) => {
                given.names.position(name).is_some_and(|at| given.sizes[at] == own.sizes[dim])
            }
            _ => false,
        })
}
