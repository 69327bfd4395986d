//! The paths of a state that are paths of a model by another name, and the calls that rename them.

use super::load::LoadReport;
use super::{ByPath, StateDict};
use crate::pattern::Pattern;
use crate::places::EntryPlace;
use namegrad_core::names::edit_distance;
use namegrad_io::sorted::{find, retain, sort};
use std::iter::zip;

/// What gives a model values that its paths do not find in a state.
#[derive(Default)]
pub(super) struct Renames {
    /// The paths in the model by those in the state.
    pub(super) pairs: ByPath<String>,
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
        let mut pending = pairs.clone();
        let mut renames = Renames { pairs, ..Renames::default() };
        while !pending.entries().is_empty() {
            let Some((from, to)) = next(state, places, &pending) else {
                // Paths that are exchanged, for example: part of the calls would mix up values.
                *state = original;
                return Renames::default();
            };
            let pattern = Pattern::new(&from);
            retain(pending.entries_mut(), &|(path, _)| pattern.captures(path).is_none());
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
    pending: &ByPath<String>,
) -> Option<(String, String)> {
    let (mut tried, mut counted) = (Vec::new(), Vec::new());
    for (from, to) in pending.entries().iter().take(MOST_TRIED) {
        for rename in Alike::new(from, to).patterns() {
            if !tried.contains(&rename) {
                counted.extend(gives(state, places, pending, &rename).map(|count| (count, rename.clone())));
                tried.push(rename);
            }
        }
    }
    sort(&mut counted, &|(a, _), (b, _)| a > b);
    // A path may be that of another value until that is renamed.
    let mut renames = counted.into_iter().map(|(_, rename)| rename);
    renames.find(|(from, to)| state.rename(from, to).is_ok())
}

/// The most pairs from which one search makes patterns.
const MOST_TRIED: usize = 64;

/// The number of pairs that a rename gives, unless it gives a value of the model another path.
fn gives(
    state: &StateDict,
    places: &ByPath<EntryPlace>,
    pending: &ByPath<String>,
    (from, to): &(String, String),
) -> Option<usize> {
    let (pattern, target) = (Pattern::new(from), Pattern::new(to));
    let is_prefix = from == "**" || to == "**"; // of all paths, some of which may have other sizes
    let mut count = 0;
    for (path, value) in state.iter() {
        let Some(texts) = pattern.captures(path) else { continue };
        let renamed = target.filled(&texts);
        let fits =
            |place: &EntryPlace| is_prefix || place.dims().is_ok_and(|own| own.sizes() == value.sizes());
        match pending.get(path) {
            Some(to) if *to == renamed => count += 1,
            None if !places.contains(path) && places.get(&renamed).is_none_or(fits) => {}
            _ => return None,
        }
    }
    (count > 0).then_some(count)
}

/// The paths in the state and in the model that mean the same, as far as paths and sizes say.
fn pairs(state: &StateDict, places: &ByPath<EntryPlace>, report: &LoadReport) -> ByPath<String> {
    let is_missing = |path: &str| find(report.missing.len(), &|at| &report.missing[at], path).is_ok();
    let (mut own, mut given): (Vec<Path<'_>>, Vec<Path<'_>>) = (Vec::new(), Vec::new());
    for (path, place) in places.entries() {
        if is_missing(path) || state.get(path).is_some() {
            own.push((path, place.dims().unwrap_or_else(|_| place.value()).sizes().into()));
        }
    }
    state.iter().for_each(|(path, value)| given.push((path, value.sizes().into())));
    let mut pairs = ByPath::default();
    for in_words in [true, false] {
        let (ours, theirs) = (numbered(&own, in_words), numbered(&given, in_words));
        for (of_model, of_state) in alike(groups(&ours), groups(&theirs)) {
            for (to, from) in zip(of_model, of_state).filter(|(to, from)| to.path != from.path) {
                pairs.insert(from.path.to_string(), to.path.to_string());
            }
        }
        retain(&mut own, &|(path, _)| pairs.entries().iter().all(|(_, to)| to != path));
        retain(&mut given, &|(path, _)| !pairs.contains(path));
    }
    retain(&mut own, &|(path, _)| is_missing(path));
    retain(&mut given, &|(path, _)| !places.contains(path));
    // The only ones that are left, whatever they are called.
    if let ([(to, sizes)], [(from, others)]) = (&own[..], &given[..])
        && sizes == others
        && !differ_in_numbers(from, to)
    {
        pairs.insert(from.to_string(), to.to_string());
    }
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
    #[inline(never)]
    fn new(path: &'p str, sizes: &'p [usize], in_words: bool) -> Numbered<'p> {
        let (mut skeleton, mut numbers, mut inside) = (String::new(), Vec::new(), false);
        for segment in path.split_inclusive('.') {
            let is_digit = |byte: u8| byte.is_ascii_digit();
            let counts = in_words || segment.trim_end_matches('.').bytes().all(is_digit);
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

fn numbered<'p>(paths: &'p [Path<'p>], in_words: bool) -> Vec<Numbered<'p>> {
    let mut all: Vec<Numbered<'p>> =
        crate::list(paths.iter().map(|(path, sizes)| Numbered::new(path, sizes, in_words)));
    sort(&mut all, &|a, b| a < b);
    all
}

/// Paths that differ in their numbers alone.
type Group<'p> = &'p [Numbered<'p>];

fn groups<'p>(paths: &'p [Numbered<'p>]) -> Vec<Group<'p>> {
    crate::list(paths.chunk_by(|a, b| a.skeleton == b.skeleton))
}

/// The groups of the model and of the state that have the same sizes, in order: those that are called the same,
/// then those whose paths are most alike.
fn alike<'p>(own: Vec<Group<'p>>, mut given: Vec<Group<'p>>) -> Vec<(Group<'p>, Group<'p>)> {
    let fits = |a: Group<'_>, b: Group<'_>| a.len() == b.len() && zip(a, b).all(|(a, b)| a.sizes == b.sizes);
    let (mut found, mut rest) = (Vec::new(), Vec::new());
    for group in own {
        let called = given.iter().position(|other| other[0].skeleton == group[0].skeleton);
        match called.map(|at| given.remove(at)) {
            Some(other) if fits(group, other) => found.push((group, other)),
            Some(_) => {}
            None => rest.push(group),
        }
    }
    let mut scores: Vec<(usize, usize, usize)> = Vec::new();
    for (to, group) in rest.iter().enumerate() {
        for (from, other) in given.iter().enumerate().filter(|(_, other)| fits(group, other)) {
            let alike = Alike::new(other[0].path, group[0].path);
            if alike.ends_alike() && !differ_in_numbers(other[0].path, group[0].path) {
                scores.push((alike.score(), to, from));
            }
        }
    }
    loop {
        // Of several that could be the same value, none is better than the others.
        let is_best = |(score, to, from): &&(usize, usize, usize)| {
            !scores.iter().any(|(other, own, given)| other >= score && (own == to) != (given == from))
        };
        let best: Vec<(usize, usize, usize)> = crate::list(scores.iter().filter(is_best).copied());
        if best.is_empty() {
            return found;
        }
        found.extend(best.iter().map(|(_, to, from)| (rest[*to], given[*from])));
        let is_free = |(_, to, from): &_| best.iter().all(|(_, own, given)| own != to && given != from);
        retain(&mut scores, &is_free);
    }
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
        let middle = |path: &[&str]| crate::joined(&path[self.start..path.len() - self.end], ".");
        (middle(&self.from), middle(&self.to))
    }

    /// How much of the paths is the same: segments, then numbers, then letters.
    fn score(&self) -> usize {
        let (from, to) = self.middle();
        let [own, other] = [&from, &to].map(|text| Numbered::new(text, &[], true).numbers);
        let same_numbers = !own.is_empty() && own == other;
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
        let segment = |text: &str, starred: bool| match starred {
            true => Numbered::new(text, &[], true).skeleton.replace('#', "*"),
            false => text.to_string(),
        };
        let pattern = |path: &[&str], starred: usize| {
            let own = path[..path.len() - self.end].iter().enumerate();
            let mut pattern: Vec<String> = crate::list(own.map(|(at, text)| segment(text, at < starred)));
            pattern.extend((self.end > 0).then(|| "**".into()));
            crate::joined(&pattern, ".")
        };
        let (from, to) = self.middle();
        let [own, other] = [&from, &to].map(|text| Numbered::new(text, &[], true).numbers);
        let most = if own == other { usize::MAX } else { self.start };
        let both = |starred| (pattern(&self.from, starred), pattern(&self.to, starred));
        let mut patterns = [0, self.start, most].map(both).to_vec();
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
