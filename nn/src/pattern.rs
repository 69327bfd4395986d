//! Patterns of paths, such as `blocks.*.norm`.

use crate::dims::repaired;
use namegrad_core::names::{closest, edit_distance};
use namegrad_core::{Error, ErrorKind};

/// A pattern of paths: `*` is any text without a dot, `**` any text, `**.` any number of whole segments, and
/// `?` one character other than a dot.
pub struct Pattern {
    text: String,
    parts: Vec<PatternPart>,
}

#[derive(PartialEq)]
enum PatternPart {
    /// What is neither a star nor a question mark.
    Text(String),
    /// `?`
    One,
    /// `*`
    Segment,
    /// `**`
    Any,
    /// `**.`
    Segments,
}

impl Pattern {
    /// The pattern with this text.
    pub fn new(text: &str) -> Pattern {
        let (mut parts, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let end = rest.find(['*', '?']).unwrap_or(rest.len());
            let (part, length) = match &rest[end..] {
                _ if end > 0 => (PatternPart::Text(rest[..end].into()), end),
                stars if stars.starts_with("**.") => (PatternPart::Segments, 3),
                stars if stars.starts_with("**") => (PatternPart::Any, 2),
                stars if stars.starts_with('*') => (PatternPart::Segment, 1),
                _ => (PatternPart::One, 1),
            };
            parts.push(part);
            rest = &rest[length..];
        }
        Pattern { text: text.into(), parts }
    }

    /// The texts in place of the stars and question marks, if the pattern matches the path.
    pub fn captures<'p>(&self, path: &'p str) -> Option<Vec<&'p str>> {
        let (mut texts, mut failed) = (Vec::new(), vec![vec![false; path.len() + 1]; self.parts.len()]);
        fit(&self.parts, path, &mut texts, &mut failed).then_some(texts)
    }

    /// Whether the pattern matches the path or that of a module around it.
    pub fn covers(&self, path: &str) -> bool {
        let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
        ends.into_iter().any(|end| self.captures(&path[..end]).is_some())
    }

    /// The pattern with texts in place of its stars and question marks, in order. If there are fewer texts,
    /// the others are empty.
    pub fn filled(&self, texts: &[&str]) -> String {
        let mut texts = texts.iter();
        let mut path = String::new();
        for part in &self.parts {
            match part {
                PatternPart::Text(text) => path.push_str(text),
                _ => {
                    let text = texts.next().copied().unwrap_or_default().trim_end_matches('.');
                    path.push_str(text);
                    if *part == PatternPart::Segments && !text.is_empty() {
                        path.push('.');
                    }
                }
            }
        }
        path
    }

    /// The number of stars and question marks.
    pub fn stars(&self) -> usize {
        self.parts.iter().filter(|part| !matches!(part, PatternPart::Text(_))).count()
    }

    /// The error of a pattern that matches none of these paths.
    #[cold]
    #[track_caller]
    pub fn unmatched(&self, op: &'static str, what: &str, paths: &mut dyn Iterator<Item = &str>) -> Error {
        let (text, paths) = (&self.text, crate::list::<_, Vec<&str>>(paths));
        let near = by_distance(text, &paths);
        let message = match near.is_empty() {
            true => format!("no {what} matches '{text}', because there is none"),
            false => {
                format!("no {what} matches '{text}'; the nearest: {}", crate::joined(&listed(&near), ", "))
            }
        };
        let error = Error::new(ErrorKind::Value, op, message);
        let corrected = near.first().and_then(|(_, path)| corrected(text, path));
        let likely = corrected.or_else(|| closest(text, paths.into_iter()).map(String::from));
        repaired(error, likely.map(|path| format!("{path:?}")))
    }
}

/// Whether the parts match the path. The texts of their stars and question marks, which are as short as
/// possible, are added to `texts`. This calls itself for each part of a pattern, which is short.
///
/// `failed` has the lengths of the rests of the path that the last parts of the pattern do not match, for each
/// number of parts: without it, the time would grow exponentially with the number of stars.
fn fit<'p>(parts: &[PatternPart], path: &'p str, texts: &mut Vec<&'p str>, failed: &mut [Vec<bool>]) -> bool {
    let Some((part, rest)) = parts.split_first() else { return path.is_empty() };
    if let PatternPart::Text(text) = part {
        return path.strip_prefix(text.as_str()).is_some_and(|path| fit(rest, path, texts, failed));
    }
    if failed[rest.len()][path.len()] {
        return false;
    }
    let segment = path.find('.').unwrap_or(path.len());
    for end in (0..=path.len()).filter(|end| path.is_char_boundary(*end)) {
        let takes = match part {
            PatternPart::One => end <= segment && path[..end].chars().count() == 1,
            PatternPart::Segment => end <= segment,
            PatternPart::Segments => end == 0 || path.as_bytes()[end - 1] == b'.',
            _ => true,
        };
        texts.push(&path[..end]);
        if takes && fit(rest, &path[end..], texts, failed) {
            return true;
        }
        texts.pop();
    }
    failed[rest.len()][path.len()] = true;
    false
}

/// Up to five of the paths, those most like `wanted` first, which is a path or a pattern.
pub fn nearest(wanted: &str, paths: &mut dyn Iterator<Item = &str>) -> Vec<String> {
    listed(&by_distance(wanted, &crate::list::<_, Vec<&str>>(paths)))
}

/// The number of paths that errors list.
const LISTED: usize = 5;

fn listed(near: &[(usize, &str)]) -> Vec<String> {
    let mut found: Vec<String> = crate::list(near.iter().take(LISTED).map(|(_, path)| format!("'{path}'")));
    if near.len() > LISTED {
        found.push("...".into());
    }
    found
}

/// The paths most like `wanted` with their distances, at most one more than errors list. Of equals, the
/// earlier one is first.
fn by_distance<'p>(wanted: &str, paths: &[&'p str]) -> Vec<(usize, &'p str)> {
    let mut near: Vec<(usize, &str)> = Vec::new();
    for path in paths {
        let distance = distance(wanted, path);
        let at = near.iter().position(|(other, _)| *other > distance).unwrap_or(near.len());
        near.insert(at, (distance, path));
        near.truncate(LISTED + 1);
    }
    near
}

/// The cost of a segment that the pattern lacks, or that has nothing in common with that of the path.
const SEGMENT: usize = 100;

/// The cost of a segment that only the pattern has.
const SUPERFLUOUS: usize = 150;

/// The cost of a segment at the end of the path that the pattern lacks. It is low because a pattern is often
/// that of a module.
const REST: usize = 25;

/// The edit distance between the segments of a pattern and those of a path. `*` is like any segment, and `**`
/// like any number of them.
fn distance(pattern: &str, path: &str) -> usize {
    let path: Vec<&str> = crate::list(path.split('.'));
    // From the segments of the pattern so far to the first `j` of the path.
    let mut row: Vec<usize> = crate::list((0..=path.len()).map(|j| j * SEGMENT));
    for wanted in pattern.split('.') {
        let (lacking, superfluous) = if wanted == "**" { (0, 0) } else { (SEGMENT, SUPERFLUOUS) };
        let mut diagonal = row[0];
        row[0] += superfluous;
        for (j, segment) in path.iter().enumerate() {
            let replaced = diagonal + unlike(wanted, segment);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + lacking).min(diagonal + superfluous);
        }
    }
    let with_rest = |(j, cost): (usize, &usize)| cost + REST * (path.len() - j);
    row.iter().enumerate().map(with_rest).min().unwrap_or(0)
}

/// The difference between a segment of a pattern and that of a path, from 0 to [`SEGMENT`].
fn unlike(wanted: &str, segment: &str) -> usize {
    if Pattern::new(wanted).captures(segment).is_some() {
        return 0;
    }
    (SEGMENT * edit_distance(wanted, segment)).div_ceil(wanted.len().max(segment.len()))
}

/// The pattern with the segments of the path where they differ, if few do and it matches the path then. A
/// pattern of wildcards alone is none: it would match paths that nobody meant.
fn corrected(pattern: &str, path: &str) -> Option<String> {
    let segments: Vec<&str> = crate::list(path.split('.'));
    // How much the pattern so far differs from the first `j` segments of the path, and what it should be.
    let mut row: Vec<Option<(usize, Vec<&str>)>> = vec![None; segments.len() + 1];
    row[0] = Some((0, Vec::new()));
    for wanted in pattern.split('.') {
        let longer = |(cost, so_far): &(usize, Vec<_>), more: usize, segment| {
            (cost + more, [so_far.as_slice(), &[segment]].concat())
        };
        let next = |j: usize| {
            if wanted == "**" {
                let least = row[..=j].iter().flatten().min_by_key(|(cost, _)| *cost)?;
                return Some(longer(least, 0, wanted));
            }
            let segment = segments[j.checked_sub(1)?];
            let cost = unlike(wanted, segment);
            let before = row[j - 1].as_ref().filter(|_| cost <= SEGMENT / 2)?;
            Some(longer(before, cost, if cost == 0 { wanted } else { segment }))
        };
        row = crate::list((0..row.len()).map(next));
    }
    let corrected = crate::joined(&row.pop().flatten()?.1, ".");
    let says_something = corrected.contains(|letter| !matches!(letter, '*' | '?' | '.'));
    (says_something && Pattern::new(&corrected).captures(path).is_some()).then_some(corrected)
}
