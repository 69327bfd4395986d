//! The repair in the error of a state that does not fit: paths to rename, then the call that loads.

use super::load::{LoadOptions, LoadReport, more};
use super::{ByPath, StateDict};
use crate::pattern::Pattern;
use crate::places::EntryPlace;
use namegrad_core::names::{edit_distance, is_strict};
use namegrad_core::{Result, Shape};
use std::iter::zip;

/// How a state can be loaded.
pub(super) struct Advice {
    /// The number of paths of the model whose values fit.
    pub(super) fits: usize,
    /// Whether at least half of the paths of the model or of the state fit.
    pub(super) is_of_model: bool,
    /// The calls that load the values that fit, if there is something to advise.
    pub(super) repair: Option<String>,
}

/// The calls that load the values that fit.
#[cold]
pub(super) fn repair(
    original: &StateDict,
    places: &ByPath<EntryPlace>,
    report: &LoadReport,
    options: LoadOptions,
) -> Result<Advice> {
    let (mut state, mut now, mut calls) = (original.clone(), report.clone(), String::new());
    let mut guessed = false;
    for count in 0..MOST_RENAMES {
        let differing = (&state, places, &now);
        let likely = moved(differing);
        let is_likely = likely.is_some();
        let Some((from, to)) = likely.or_else(|| remaining(differing)) else { break };
        guessed |= !is_likely;
        if state.rename(&from, &to).is_err() {
            break;
        }
        calls += &format!("state.rename(\"{from}\", \"{to}\")?; ");
        now = state.compare(places, options)?.0;
        if count + 1 == MOST_RENAMES {
            (now, calls) = (report.clone(), String::new());
        }
    }
    let wrong = now.mismatched.len() + now.refused.len();
    let fits = places.entries().len().saturating_sub(now.missing.len() + wrong);
    let of_state = state.len().saturating_sub(now.unexpected.len() + wrong);
    let is_of_model = 2 * fits >= places.entries().len() || fits > 0 && 2 * of_state >= state.len();
    let same_paths = now.missing.is_empty() && now.unexpected.is_empty() && now.refused.is_empty();
    let swapped =
        now.mismatched.iter().any(|(_, own, given)| own.sizes == given.sizes && permuted(own, given));
    let other_size = now.mismatched.iter().any(|(_, own, given)| own.sizes != given.sizes);
    let none_fits = same_paths && !is_of_model && other_size && !now.can_align();
    let repair = match now.call(options) {
        _ if swapped || none_fits => other_sizes(&now.mismatched),
        call => (is_of_model || same_paths).then(|| {
            let note =
                if guessed && same_paths && call.ends_with('?') { ", if both mean the same" } else { "" };
            calls + &call + note
        }),
    };
    Ok(Advice { fits, is_of_model: is_of_model || same_paths, repair })
}

/// The most renames of a repair, and one more. Paths that differ in more ways are of another model.
const MOST_RENAMES: usize = 5;

/// A state, the places of a model, and what differs between them.
type Differing<'d> = (&'d StateDict, &'d ByPath<EntryPlace>, &'d LoadReport);

/// The call of [`StateDict::rename`] that gives most missing values: the values that match the pattern are used
/// by nothing else, and have the sizes of the missing ones. Of several that could be the same value, none is
/// better than the others.
fn moved((state, places, report): Differing<'_>) -> Option<(String, String)> {
    let mut renames: Vec<(String, String, usize)> = Vec::new();
    for missing in &report.missing {
        let own = places.get(missing)?.value();
        let (mut most, mut nearest) = (0, Vec::new());
        for unexpected in &report.unexpected {
            let alike = Alike::new(unexpected, missing);
            let fits = state.get(unexpected).is_some_and(|given| given.sizes() == own.sizes());
            if !fits || !alike.is_likely() || alike.shared() < most {
                continue;
            }
            if alike.shared() > most {
                (most, nearest) = (alike.shared(), Vec::new());
            }
            nearest.push(alike);
        }
        for (from, to) in nearest.iter().flat_map(Alike::patterns) {
            if renames.iter().any(|(own, other, _)| (own, other) == (&from, &to)) {
                continue;
            }
            if let Some(count) = gives((state, places, report), &from, &to) {
                renames.push((from, to, count));
            }
        }
    }
    let has_no_rival = |(from, to, count): &&(String, String, usize)| {
        !renames.iter().any(|(own, other, its)| its >= count && (own == from) != (other == to))
    };
    // Of equals the first, which is the last one here.
    let best = renames.iter().rev().filter(has_no_rival).max_by_key(|(.., count)| *count);
    best.map(|(from, to, _)| (from.clone(), to.clone()))
}

/// The only missing path and the only unexpected one, whatever they are called, if the value fits.
fn remaining((state, places, report): Differing<'_>) -> Option<(String, String)> {
    let ([missing], [unexpected]) = (&report.missing[..], &report.unexpected[..]) else { return None };
    let (own, given) = (places.get(missing)?.value(), state.get(unexpected)?);
    let fits = own.sizes() == given.sizes() && own.dtype() == given.dtype();
    fits.then(|| (unexpected.clone(), missing.clone()))
}

/// The number of missing values that a rename gives, unless it touches other values.
fn gives((state, places, report): Differing<'_>, from: &str, to: &str) -> Option<usize> {
    let among = |paths: &[String], path: &str| paths.binary_search_by(|own| own.as_str().cmp(path)).is_ok();
    let (pattern, target) = (Pattern::new(from), Pattern::new(to));
    let whole = from == "**" || to == "**"; // a prefix of all paths, some of which may have other sizes
    let (mut count, mut found) = (0, 0);
    for (path, value) in state.iter() {
        let Some(texts) = pattern.captures(path) else { continue };
        if !among(&report.unexpected, path) {
            return None;
        }
        let renamed = target.filled(&texts);
        if let Some(place) = places.get(&renamed) {
            let fits = place.value().sizes() == value.sizes();
            if !among(&report.missing, &renamed) || !fits && !whole {
                return None;
            }
            (count, found) = (count + usize::from(fits), found + 1);
        }
    }
    (count > 0 && (!whole || found == report.missing.len())).then_some(count)
}

/// The segments of a path of the state and of a path of the model.
struct Alike<'p> {
    from: Vec<&'p str>,
    to: Vec<&'p str>,
    /// The number of segments that both begin with, and end with.
    start: usize,
    end: usize,
}

impl<'p> Alike<'p> {
    fn new(from: &'p str, to: &'p str) -> Alike<'p> {
        let (from, to): (Vec<&str>, Vec<&str>) = (from.split('.').collect(), to.split('.').collect());
        let end = zip(from.iter().rev(), to.iter().rev()).take_while(|(a, b)| a == b).count();
        let rest = from.len().min(to.len()) - end;
        let start = zip(&from[..rest], &to[..rest]).take_while(|(a, b)| a == b).count();
        Alike { from, to, start, end }
    }

    fn shared(&self) -> usize {
        self.start + self.end
    }

    /// Whether the last segments are the same or misspelt.
    fn is_likely(&self) -> bool {
        let (Some(own), Some(other)) = (self.from.last(), self.to.last()) else { return false };
        edit_distance(own, other) <= own.len().max(other.len()) / 3
    }

    /// The patterns that rename one path to the other: with the numbers in front of the difference, and with
    /// stars in their place.
    fn patterns(&self) -> Vec<(String, String)> {
        let is_number = |segment: &str| segment.bytes().all(|byte| byte.is_ascii_digit());
        let pattern = |segments: &[&str], stars: bool| {
            let mut pattern = segments[..segments.len() - self.end].to_vec();
            for segment in pattern[..self.start].iter_mut().filter(|segment| stars && is_number(segment)) {
                *segment = "*";
            }
            if self.end > 0 {
                pattern.push("**");
            }
            pattern.join(".")
        };
        let each = [false, true].map(|stars| (pattern(&self.from, stars), pattern(&self.to, stars)));
        each.into()
    }
}

impl LoadReport {
    /// Whether the values have the dims of the model in another order.
    fn can_align(&self) -> bool {
        let fits = |own: &Shape, given: &Shape| same_dims(own, given) || transposed(own, given).is_some();
        !self.mismatched.is_empty() && self.mismatched.iter().all(|(_, own, given)| fits(own, given))
    }

    /// The call that loads the values that fit.
    fn call(&self, options: LoadOptions) -> String {
        let align = options.align || self.can_align();
        let same_sizes = self.mismatched.iter().all(|(_, own, given)| own.sizes == given.sizes);
        let ignore_names = options.ignore_names || !self.mismatched.is_empty() && !align && same_sizes;
        let (mut calls, mut lost) = (String::new(), self.missing.clone());
        for (path, own, given) in self.mismatched.iter().filter(|_| !ignore_names) {
            if same_dims(own, given) && align {
                continue;
            }
            if let Some(names) = transposed(own, given).filter(|_| align) {
                calls += &format!("state.refine_names({path:?}, {names:?})?; ");
                continue;
            }
            // Values with other sizes cannot be loaded.
            calls += &format!("state.remove({path:?}); ");
            lost.push(path.clone());
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
        if setters.is_empty() {
            return "model.load_state_dict(&state)?".into();
        }
        let call = format!("{calls}model.load_state_dict_with(&state, LoadOptions::new(){setters})?");
        let shown = lost[..lost.len().min(MOST_LOST)].join(", ") + &more(lost.len(), MOST_LOST);
        match lost.len() {
            0 if ignore_names
                && !options.ignore_names
                && is_strict()
                && self.mismatched.iter().all(half_named) =>
            {
                call + ", which takes dims by position: strict mode does not load dims without names"
            }
            0 if ignore_names && !options.ignore_names => call + ", if the names mean the same",
            0 => call,
            _ => format!("{call}, which leaves initial values in the model: {shown}"),
        }
    }
}

/// Whether a dim has a name in the model or in the state alone.
fn half_named((_, own, given): &(String, Shape, Shape)) -> bool {
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
    let mut repair = format!("a model with {}, whose sizes are those of the state", sizes.join(" and "));
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
fn transposed(own: &Shape, given: &Shape) -> Option<Vec<String>> {
    if (0..given.sizes.len()).any(|dim| given.names.get(dim).is_some()) || own.sizes == given.sizes {
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
