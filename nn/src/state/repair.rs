//! The repair in the error of a state that does not fit: paths to rename, then the call that loads.

use super::StateDict;
use super::load::{LoadOptions, LoadReport, Place};
use namegrad_core::{Result, Shape};
use std::collections::{BTreeMap, BTreeSet};

/// The calls that load the values that fit.
#[cold]
pub(super) fn repair(
    state: &StateDict,
    places: &BTreeMap<String, Place>,
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
    places: &BTreeMap<String, Place>,
    report: &'r LoadReport,
) -> Option<(&'r str, &'r str)> {
    let mut fits: BTreeMap<(&str, &str), (usize, bool)> = BTreeMap::new();
    for missing in &report.missing {
        let own = places[missing].value();
        for unexpected in &report.unexpected {
            if let Some(prefixes) = differing(unexpected, missing) {
                let (count, same_sizes) = fits.entry(prefixes).or_insert((0, true));
                *count += 1;
                *same_sizes &= state.get(unexpected).is_some_and(|given| given.sizes() == own.sizes());
            }
        }
    }
    let unexpected: BTreeSet<&String> = report.unexpected.iter().collect();
    let unused = |prefix: &str| {
        let mut paths = state.values.keys().filter(|path| is_below(path, prefix));
        paths.all(|path| unexpected.contains(path))
    };
    fits.retain(|(from, to), (count, same_sizes)| {
        let whole = !from.is_empty() && !to.is_empty() || *count == report.missing.len();
        *same_sizes && whole && unused(from)
    });
    let most = fits.values().map(|(count, _)| *count).max()?;
    let mut best = fits.into_iter().filter(|(_, (count, _))| *count == most).map(|(prefixes, _)| prefixes);
    let (from, to) = best.next()?;
    // Of several targets, none is better than the others.
    best.all(|(_, other)| other == to).then_some((from, to))
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
        // Values with other sizes cannot be loaded.
        let unfit =
            self.mismatched.iter().map(|(path, ..)| path).filter(|_| differ && !align && !ignore_names);
        let removed: String = unfit
            .chain(self.refused.iter().map(|(path, _)| path))
            .map(|path| format!("state.remove({path:?}); "))
            .collect();
        let absent = !self.missing.is_empty() || !self.unexpected.is_empty();
        let partial = options.partial || absent || !removed.is_empty();
        let setters: String = [("partial", partial), ("align", align), ("ignore_names", ignore_names)]
            .iter()
            .filter(|(_, on)| *on)
            .map(|(name, _)| format!(".{name}(true)"))
            .collect();
        match setters.is_empty() {
            true => "model.load_state_dict(&state)?".into(),
            false => format!("{removed}model.load_state_dict_with(&state, LoadOptions::new(){setters})?"),
        }
    }
}

/// Whether both have the same named dims of the same sizes, in any order.
fn same_dims(own: &Shape, given: &Shape) -> bool {
    let dims = |shape: &Shape| {
        let mut dims: Vec<_> = shape.names.iter(shape.sizes.len()).zip(shape.sizes.iter().copied()).collect();
        dims.sort();
        dims
    };
    let named = |shape: &Shape| shape.names.iter(shape.sizes.len()).all(|name| name.is_some());
    named(own) && named(given) && dims(own) == dims(given)
}
