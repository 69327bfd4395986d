//! The paths of a state that are paths of a model by another name, and the calls that rename them.

use super::load::LoadReport;
use super::{ByPath, StateDict};
use crate::pattern::Pattern;
use crate::places::EntryPlace;
use namegrad_core::names::edit_distance;
use namegrad_io::sorted::{retain, sort};
use std::iter::zip;

/// What gives a model values that its paths do not find in a state.
pub(super) struct Renames {
    /// The path in the state, and in the model.
    pub(super) pairs: Vec<(String, String)>,
    /// The arguments of [`StateDict::rename`], call by call.
    pub(super) calls: Vec<(String, String)>,
    /// Whether one prefix of all paths is added or removed. Everything else is a guess: `decoder` in place of
    /// `encoder` looks like a word that is misspelt.
    pub(super) is_prefix: bool,
}

impl Renames {
    /// The renames for a state, which are made in it.
    pub(super) fn make(state: &mut StateDict, places: &ByPath<EntryPlace>, report: &LoadReport) -> Renames {
        let (original, pairs) = (state.clone(), pairs(state, places, report));
        let mut renames = Renames { pairs, calls: Vec::new(), is_prefix: false };
        let mut pending = renames.pairs.clone();
        while !pending.is_empty() {
            let Some((from, to)) = next(state, places, &pending) else {
                // Paths that are exchanged, for example: part of the calls would mix up values.
                *state = original;
                return Renames { pairs: Vec::new(), calls: Vec::new(), is_prefix: false };
            };
            let pattern = Pattern::new(&from);
            retain(&mut pending, &|(path, _)| pattern.captures(path).is_none());
            renames.calls.push((from, to));
        }
        if let [(from, to)] = &renames.calls[..] {
            let of_all = Pattern::new(from);
            let is_moved = |path: &str| of_all.captures(path).is_some() || !places.contains(path);
            renames.is_prefix =
                (from == "**" || to == "**") && original.iter().all(|(path, _)| is_moved(path));
        }
        renames
    }
}

/// Makes the rename that gives most of the pairs, and no value another path than they do.
fn next(
    state: &mut StateDict,
    places: &ByPath<EntryPlace>,
    pending: &[(String, String)],
) -> Option<(String, String)> {
    let mut renames: Vec<(String, String)> = Vec::new();
    for (from, to) in pending.iter().take(MOST_TRIED) {
        for rename in Alike::new(from, to).patterns() {
            if !renames.contains(&rename) {
                renames.push(rename);
            }
        }
    }
    let mut counted: Vec<(usize, (String, String))> = Vec::new();
    for rename in renames {
        if let Some(count) = gives(state, places, pending, &rename) {
            counted.push((count, rename));
        }
    }
    sort(&mut counted, &|(a, _), (b, _)| a > b);
    for (_, (from, to)) in counted {
        // A path may be that of another value until that is renamed.
        if state.rename(&from, &to).is_ok() {
            return Some((from, to));
        }
    }
    None
}

/// The most pairs from which one search makes patterns.
const MOST_TRIED: usize = 64;

/// The number of pairs that a rename gives, unless it gives a value of the model another path.
fn gives(
    state: &StateDict,
    places: &ByPath<EntryPlace>,
    pending: &[(String, String)],
    (from, to): &(String, String),
) -> Option<usize> {
    let (pattern, target) = (Pattern::new(from), Pattern::new(to));
    let is_prefix = from == "**" || to == "**"; // of all paths, some of which may have other sizes
    let mut count = 0;
    for (path, value) in state.iter() {
        let Some(texts) = pattern.captures(path) else { continue };
        let renamed = target.filled(&texts);
        match pending.binary_search_by(|(own, _)| own.as_str().cmp(path)) {
            Ok(at) if pending[at].1 == renamed => count += 1,
            Ok(_) => return None,
            Err(_) if places.contains(path) => return None,
            Err(_) => {
                let fits = |place: &EntryPlace| is_prefix || place.value().sizes() == value.sizes();
                if !places.get(&renamed).is_none_or(fits) {
                    return None;
                }
            }
        }
    }
    (count > 0).then_some(count)
}

/// The paths in the state and in the model that mean the same, as far as paths and sizes say, in the order of
/// the paths in the state.
fn pairs(state: &StateDict, places: &ByPath<EntryPlace>, report: &LoadReport) -> Vec<(String, String)> {
    let is_missing = |path: &str| report.missing.binary_search_by(|own| own.as_str().cmp(path)).is_ok();
    let mut own: Vec<Path<'_>> = Vec::new();
    for (path, place) in places.entries() {
        if is_missing(path) || state.get(path).is_some() {
            own.push((path, place.value().sizes().into()));
        }
    }
    let mut given: Vec<Path<'_>> =
        crate::list(state.iter().map(|(path, value)| (path, value.sizes().into())));
    let mut pairs: Vec<(String, String)> = Vec::new();
    for in_words in [true, false] {
        let (ours, theirs) = (numbered(&own, in_words), numbered(&given, in_words));
        let (ours, theirs) = (groups(&ours), groups(&theirs));
        for (of_model, of_state) in alike(&ours, &theirs) {
            for (to, from) in zip(of_model, of_state) {
                if from.path != to.path {
                    pairs.push((from.path.into(), to.path.into()));
                }
            }
        }
        retain(&mut own, &|(path, _)| pairs.iter().all(|(_, to)| to != path));
        retain(&mut given, &|(path, _)| pairs.iter().all(|(from, _)| from != path));
    }
    retain(&mut own, &|(path, _)| is_missing(path));
    retain(&mut given, &|(path, _)| !places.contains(path));
    // The only ones that are left, whatever they are called.
    if let ([(to, sizes)], [(from, others)]) = (&own[..], &given[..])
        && sizes == others
        && !differ_in_numbers(from, to)
    {
        pairs.push((from.to_string(), to.to_string()));
    }
    sort(&mut pairs, &|a, b| a < b);
    pairs
}

/// A path and the sizes of its value.
type Path<'p> = (&'p str, Vec<usize>);

/// Whether paths differ in their numbers alone. Then another layer would get the value, unless all layers are
/// numbered in another way.
fn differ_in_numbers(a: &str, b: &str) -> bool {
    Numbered::new(a, &[], true).skeleton == Numbered::new(b, &[], true).skeleton
}

/// A path with `#` in place of numbers. The order is that of the numbers: 10 comes after 9.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Numbered<'p> {
    skeleton: String,
    numbers: Vec<u32>,
    path: &'p str,
    sizes: &'p [usize],
}

impl<'p> Numbered<'p> {
    /// `in_words` says whether the digits inside words are numbers.
    fn new(path: &'p str, sizes: &'p [usize], in_words: bool) -> Numbered<'p> {
        let (mut skeleton, mut numbers, mut inside) = (String::new(), Vec::new(), false);
        for segment in path.split_inclusive('.') {
            let counts = in_words || is_number(segment.trim_end_matches('.'));
            for letter in segment.chars() {
                let digit = letter.to_digit(10).filter(|_| counts);
                match (digit, numbers.last_mut()) {
                    (Some(digit), Some(number)) if inside => *number = digit.wrapping_add(10 * *number),
                    (Some(digit), _) => {
                        skeleton.push('#');
                        numbers.push(digit);
                    }
                    (None, _) => skeleton.push(letter),
                }
                inside = digit.is_some();
            }
        }
        Numbered { skeleton, numbers, path, sizes }
    }
}

fn is_number(segment: &str) -> bool {
    segment.bytes().all(|byte| byte.is_ascii_digit())
}

fn numbered<'p>(paths: &'p [Path<'p>], in_words: bool) -> Vec<Numbered<'p>> {
    let mut all: Vec<Numbered<'p>> =
        crate::list(paths.iter().map(|(path, sizes)| Numbered::new(path, sizes, in_words)));
    sort(&mut all, &|a, b| a < b);
    all
}

/// The paths that differ in their numbers alone.
fn groups<'n, 'p>(paths: &'n [Numbered<'p>]) -> Vec<&'n [Numbered<'p>]> {
    crate::list(paths.chunk_by(|a, b| a.skeleton == b.skeleton))
}

/// The groups of the model and of the state that have the same sizes, in order: those that are called the same,
/// then those whose paths are most alike.
fn alike<'n, 'p>(
    own: &[&'n [Numbered<'p>]],
    given: &[&'n [Numbered<'p>]],
) -> Vec<(&'n [Numbered<'p>], &'n [Numbered<'p>])> {
    let fits = |a: &[Numbered<'_>], b: &[Numbered<'_>]| {
        a.len() == b.len() && zip(a, b).all(|(a, b)| a.sizes == b.sizes)
    };
    let (mut found, mut rest, mut others) = (Vec::new(), Vec::new(), given.to_vec());
    for group in own {
        let called = others.iter().position(|other| other[0].skeleton == group[0].skeleton);
        match called.map(|at| others.remove(at)) {
            Some(other) if fits(group, other) => found.push((*group, other)),
            Some(_) => {}
            None => rest.push(*group),
        }
    }
    loop {
        let mut scores: Vec<(usize, usize, usize)> = Vec::new();
        for (to, group) in rest.iter().enumerate() {
            for (from, other) in others.iter().enumerate() {
                let alike = Alike::new(other[0].path, group[0].path);
                let renumbered = differ_in_numbers(other[0].path, group[0].path);
                if fits(group, other) && alike.ends_alike() && !renumbered {
                    scores.push((alike.score(), to, from));
                }
            }
        }
        // Of several that could be the same value, none is better than the others.
        let is_best = |(score, to, from): &&(usize, usize, usize)| {
            !scores.iter().any(|(other, own, given)| other >= score && (own == to) != (given == from))
        };
        let best: Vec<&(usize, usize, usize)> = crate::list(scores.iter().filter(is_best));
        if best.is_empty() {
            return found;
        }
        found.extend(best.iter().map(|(_, to, from)| (rest[*to], others[*from])));
        rest = without(rest, |at| best.iter().any(|(_, to, _)| *to == at));
        others = without(others, |at| best.iter().any(|(.., from)| *from == at));
    }
}

fn without<T>(list: Vec<T>, is_out: impl Fn(usize) -> bool) -> Vec<T> {
    crate::list(list.into_iter().enumerate().filter(|(at, _)| !is_out(*at)).map(|(_, item)| item))
}

/// The segments of a path of a state and of a path of a model.
struct Alike<'p> {
    from: Vec<&'p str>,
    to: Vec<&'p str>,
    /// The number of segments that both begin with, and end with.
    start: usize,
    end: usize,
}

impl<'p> Alike<'p> {
    fn new(from: &'p str, to: &'p str) -> Alike<'p> {
        let (from, to): (Vec<&str>, Vec<&str>) = (crate::list(from.split('.')), crate::list(to.split('.')));
        let end = zip(from.iter().rev(), to.iter().rev()).take_while(|(a, b)| a == b).count();
        let rest = from.len().min(to.len()) - end;
        let start = zip(&from[..rest], &to[..rest]).take_while(|(a, b)| a == b).count();
        Alike { from, to, start, end }
    }

    /// What differs.
    fn middle(&self) -> (String, String) {
        let middle = |path: &[&str]| path[self.start..path.len() - self.end].join(".");
        (middle(&self.from), middle(&self.to))
    }

    /// How much of the paths is the same: segments, then numbers, then letters.
    fn score(&self) -> usize {
        let (from, to) = self.middle();
        let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
        let same_numbers = !digits(&from).is_empty() && digits(&from) == digits(&to);
        let letters = zip(from.chars(), to.chars()).take_while(|(a, b)| a == b).count();
        16 * (self.start + self.end) + 8 * usize::from(same_numbers) + letters.min(7)
    }

    /// Whether the last segments mean the same: they are equal, misspelt, shortened, or TensorFlow's words.
    fn ends_alike(&self) -> bool {
        let (Some(from), Some(to)) = (self.from.last(), self.to.last()) else { return false };
        is_misspelt(from, to)
            || from.starts_with(to)
            || to.starts_with(from)
            || [("gamma", "weight"), ("beta", "bias"), ("kernel", "weight")].contains(&(from, to))
    }

    /// The patterns that rename one path to the other: exactly, with stars in place of the numbers where both
    /// begin, or of all numbers, and in all layers.
    fn patterns(&self) -> Vec<(String, String)> {
        let pattern = |path: &[&str], starred: usize| {
            let mut pattern: Vec<String> = Vec::new();
            for (at, segment) in path[..path.len() - self.end].iter().enumerate() {
                pattern.push(match at < starred {
                    true => Numbered::new(segment, &[], true).skeleton.replace('#', "*"),
                    false => segment.to_string(),
                });
            }
            if self.end > 0 {
                pattern.push("**".into());
            }
            pattern.join(".")
        };
        let mut starred = vec![0, self.start];
        let (from, to) = self.middle();
        if Numbered::new(&from, &[], true).numbers == Numbered::new(&to, &[], true).numbers {
            starred.push(usize::MAX);
        }
        let mut patterns = Vec::new();
        for starred in starred {
            patterns.push((pattern(&self.from, starred), pattern(&self.to, starred)));
        }
        if self.end == 0 && self.start > 0 && self.start + 1 == self.from.len().max(self.to.len()) {
            patterns.push((format!("**.{}", self.from[self.start]), format!("**.{}", self.to[self.start])));
        }
        patterns
    }
}

/// Whether two words differ in few letters, and not in their digits.
fn is_misspelt(a: &str, b: &str) -> bool {
    edit_distance(a, b) <= a.len().max(b.len()) / 3 && (a == b || !differ_in_numbers(a, b))
}
