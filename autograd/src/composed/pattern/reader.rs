//! Reading a pattern, and checking it against the tensor. Errors mark the place in the pattern.

use super::{How, REDUCTIONS};
use crate::Tensor;
use namegrad_core::names::closest;
use namegrad_core::{Error, ErrorKind, Name, Result};
use std::ops::Range;

/// All other dims.
pub(in super::super) const DOTS: &str = "...";
/// The packed dims.
pub(super) const STAR: &str = "*";

/// A word, a number or an ellipsis, and where it is in the pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'p> {
    pub(super) text: &'p str,
    pub(super) at: usize,
}

impl Word<'_> {
    pub(super) fn is_number(self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_digit())
    }

    /// The size that a number is; a number too large is one that no dim has.
    pub(super) fn number(self) -> Option<usize> {
        self.is_number().then(|| self.text.parse().unwrap_or(usize::MAX))
    }
}

/// A dim of a pattern: a word alone, or a group.
pub(super) struct Place<'p> {
    /// The name of a group, as in `(name: words)`.
    pub(super) label: Option<Word<'p>>,
    /// Whether it is in parentheses.
    pub(super) is_group: bool,
    /// Its words, of those of the side.
    pub(super) words: Range<usize>,
    /// Its text in the pattern.
    pub(super) text: Range<usize>,
}

/// One side of a pattern.
#[derive(Default)]
pub(super) struct Side<'p> {
    pub(super) words: Vec<Word<'p>>,
    pub(super) places: Vec<Place<'p>>,
}

impl<'p> Side<'p> {
    fn find(&self, text: &str) -> Option<Word<'p>> {
        self.words.iter().find(|word| word.text == text).copied()
    }

    pub(super) fn words_of(&self, place: &Place<'p>) -> &[Word<'p>] {
        &self.words[place.words.clone()]
    }

    /// Whether any number of dims are at this place.
    pub(super) fn is_dots(&self, place: &Place<'p>) -> bool {
        !place.is_group && matches!(self.words_of(place), [word] if [DOTS, STAR].contains(&word.text))
    }

    /// The word that a dim at this place is called by: that of the group, or a word alone.
    pub(super) fn name_of(&self, place: &Place<'p>) -> Option<Word<'p>> {
        match self.words_of(place) {
            [word] if !place.is_group && !word.is_number() => Some(*word),
            _ => place.label,
        }
    }
}

/// Reads the pattern of an op, with places for errors.
#[derive(Clone, Copy)]
pub(in super::super) struct Reader<'p> {
    pub(in super::super) op: &'static str,
    pub(in super::super) pattern: &'p str,
}

impl<'p> Reader<'p> {
    /// An error with a mark below the pattern.
    #[cold]
    #[track_caller]
    pub(in super::super) fn error(
        self,
        kind: ErrorKind,
        at: usize,
        message: impl std::fmt::Display,
    ) -> Error {
        let shown: String = self.pattern.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        let before = self.pattern[..at].chars().count();
        Error::new(kind, self.op, format!("{message}\n    {shown}\n    {:before$}^", ""))
    }

    #[cold]
    #[track_caller]
    pub(in super::super) fn fail<T>(self, at: usize, message: impl std::fmt::Display) -> Result<T> {
        Err(self.error(ErrorKind::Value, at, message))
    }

    /// Both sides of the pattern.
    #[track_caller]
    pub(super) fn sides(self) -> Result<[Side<'p>; 2]> {
        let Some((left, right)) = self.pattern.split_once("->") else {
            return self.fail(self.pattern.len(), "the pattern has no '->' between its two sides");
        };
        let start = left.len() + 2;
        if let Some(second) = right.find("->") {
            return self.fail(start + second, "the pattern has more than one '->'");
        }
        Ok([self.read(0, left.len())?, self.read(start, self.pattern.len())?])
    }

    #[track_caller]
    pub(super) fn read(self, start: usize, end: usize) -> Result<Side<'p>> {
        let side = self.read_any(start, end)?;
        for (number, word) in side.words.iter().enumerate() {
            if !word.is_number() && side.words[..number].iter().any(|other| other.text == word.text) {
                return self.fail(word.at, format_args!("'{}' occurs twice on one side", word.text));
            }
        }
        Ok(side)
    }

    /// The words of one operand of an equation; `None` is the ellipsis. A word can occur twice.
    #[track_caller]
    pub(in super::super) fn labels(self, start: usize, end: usize) -> Result<Vec<Option<&'p str>>> {
        let side = self.read_any(start, end)?;
        let mut labels = Vec::with_capacity(side.places.len());
        for place in &side.places {
            labels.push(match side.name_of(place) {
                Some(word) if !place.is_group && word.text != STAR => {
                    Some(word.text).filter(|text| *text != DOTS)
                }
                _ => return self.fail(place.text.start, "an equation has only words"),
            });
        }
        if labels.iter().filter(|label| label.is_none()).count() > 1 {
            return self.fail(start, "more than one ellipsis in an operand");
        }
        Ok(labels)
    }

    /// One side, in which a word can occur twice.
    #[track_caller]
    fn read_any(self, start: usize, end: usize) -> Result<Side<'p>> {
        let mut side = Side::default();
        // The start of the open group, its first word and its label.
        let mut open: Option<(usize, usize, Option<Word<'p>>)> = None;
        let mut at = start;
        while let Some(c) = self.pattern[at..end].chars().next() {
            let before = at;
            at += c.len_utf8();
            match (c, &mut open) {
                ('(', None) => open = Some((before, side.words.len(), None)),
                ('(', Some(_)) => return self.fail(before, "a group cannot contain another group"),
                (')', None) => return self.fail(before, "')' closes no group"),
                (')', Some((from, first, label))) => {
                    let (words, text) = (*first..side.words.len(), *from..at);
                    side.places.push(Place { label: *label, is_group: true, words, text });
                    open = None;
                }
                (':', Some((_, first, label @ None)))
                    if side.words.len() == *first + 1 && !side.words[*first].is_number() =>
                {
                    *label = side.words.pop();
                }
                (c, _) if c.is_whitespace() => {}
                _ => {
                    let rest = &self.pattern[before..end];
                    let length = rest.find(|c: char| "():".contains(c) || c.is_whitespace());
                    at = (before + length.unwrap_or(rest.len())).max(at);
                    let word = Word { text: &self.pattern[before..at], at: before };
                    self.check(word)?;
                    let first = side.words.len();
                    if word.number() != Some(1) {
                        side.words.push(word);
                    }
                    if open.is_none() {
                        let words = first..side.words.len();
                        side.places.push(Place { label: None, is_group: false, words, text: before..at });
                    }
                }
            }
        }
        match open {
            Some((from, ..)) => self.fail(from, "the group is not closed"),
            None => Ok(side),
        }
    }

    #[track_caller]
    fn check(self, word: Word<'p>) -> Result<()> {
        let (text, at) = (word.text, word.at);
        if [DOTS, STAR].contains(&text) {
            return Ok(());
        }
        let other = text.char_indices().find(|(_, c)| !c.is_alphanumeric() && *c != '_');
        if let Some((bad, c)) = other {
            let hint = if c == '.' { "; an ellipsis is a word of three dots" } else { "" };
            return self.fail(at + bad, format_args!("unexpected character '{c}'{hint}"));
        }
        if text.bytes().all(|b| b.is_ascii_digit()) {
            return match text.bytes().all(|b| b == b'0') {
                true => self.fail(at, "a dim without a word must have a positive size"),
                false => Ok(()),
            };
        }
        if word.is_number() {
            return self.fail(at, format_args!("'{text}' is no word: a word starts with a letter"));
        }
        match text.starts_with('_') || text.ends_with('_') {
            true => self
                .fail(at, format_args!("'{text}' is no word: a word starts and ends with a letter or digit")),
            false => Ok(()),
        }
    }

    /// Checks that the words of both sides fit together and that sizes are those of words.
    #[track_caller]
    pub(super) fn check_sides(
        self,
        [left, right]: &[Side<'p>; 2],
        sizes: &[(String, usize)],
        how: How<'_>,
    ) -> Result<()> {
        for word in left.words.iter().chain(&right.words) {
            if word.text == STAR {
                return self.fail(word.at, "'*' is only for pack and unpack");
            }
            if how == How::Rearrange && word.is_number() {
                return self
                    .fail(word.at, "a rearrangement has no dims of a given number; give the dim a word");
            }
        }
        for place in left.places.iter().filter(|place| place.is_group) {
            if left.words_of(place).iter().any(|word| word.text == DOTS) {
                return self.fail(place.text.start, "an ellipsis on the left cannot be in a group");
            }
        }
        for word in left.words.iter().filter(|_| !matches!(how, How::Reduce(_))) {
            if word.is_number() || right.find(word.text).is_none() {
                return self.fail(word.at, format_args!("'{}' is only on the left", word.text));
            }
        }
        for word in right.words.iter().filter(|word| !word.is_number() && left.find(word.text).is_none()) {
            let text = word.text;
            let sized = sizes.iter().any(|(sized, _)| sized == text);
            if how != How::Repeat || text == DOTS {
                return self.fail(word.at, format_args!("'{text}' is only on the right"));
            } else if !sized {
                return self.fail(word.at, format_args!("the new dim '{text}' needs a size"));
            }
        }
        if let (How::Reduce(_), Some(word)) = (how, right.words.iter().find(|word| word.is_number())) {
            return self.fail(word.at, "a reduction makes no new dims");
        }
        if let How::Reduce(word) = how
            && !REDUCTIONS.contains(&word)
        {
            let near = closest(word, REDUCTIONS.into_iter());
            let near = near.map_or(String::new(), |near| format!("; did you mean '{near}'?"));
            let message = format!(
                "unknown reduction '{word}', expected one of {}{near}",
                crate::joined(&REDUCTIONS, ", ")
            );
            return Err(Error::new(ErrorKind::Value, self.op, message));
        }
        Ok(())
    }

    /// Checks that each size is that of one word.
    #[track_caller]
    pub(super) fn check_sizes(self, sides: &[Side<'p>; 2], sizes: &[(String, usize)]) -> Result<()> {
        let words = || sides.iter().flat_map(|side| side.words.iter().map(|word| word.text));
        for (number, (word, size)) in sizes.iter().enumerate() {
            let message = if sizes[..number].iter().any(|(other, _)| other == word) {
                format!("the size of '{word}' is given twice")
            } else if *size > isize::MAX as usize {
                format!("the size of '{word}' is too large: {size}")
            } else if words().any(|text| text == word) && word.as_str() != DOTS {
                continue;
            } else {
                let near = closest(word, words().filter(|text| *text != DOTS));
                let near = near.map_or(String::new(), |near| format!("; did you mean '{near}'?"));
                format!("the pattern '{}' has no '{word}', for which a size is given{near}", self.pattern)
            };
            return Err(Error::new(ErrorKind::Value, self.op, message));
        }
        Ok(())
    }

    /// The place of each dim of the tensor.
    #[track_caller]
    pub(super) fn places<'s>(self, x: &Tensor, left: &'s Side<'p>) -> Result<Vec<&'s Place<'p>>> {
        let dots = left.places.iter().position(|place| left.is_dots(place));
        let count = left.places.len() - usize::from(dots.is_some());
        let open = x.ndim().checked_sub(count).filter(|open| *open == 0 || dots.is_some());
        let Some(open) = open else {
            let least = if dots.is_some() { "at least " } else { "" };
            let message = format!(
                "the pattern '{}' is for a tensor of {least}{count} dims, and this one has {}",
                self.pattern,
                x.ndim()
            );
            return Err(Error::new(ErrorKind::Shape, self.op, message).with_operands([x.shape()]));
        };
        let mut places = Vec::with_capacity(x.ndim());
        for place in &left.places {
            let times = if left.is_dots(place) { open } else { 1 };
            places.extend(std::iter::repeat_n(place, times));
        }
        Ok(places)
    }

    /// Checks the names of the tensor: a named dim meets its own word, and one that is split or dropped cannot
    /// be taken for another one.
    #[track_caller]
    pub(super) fn check_names(self, x: &Tensor, left: &Side<'p>, places: &[&Place<'p>]) -> Result<()> {
        let mut loose: Vec<(usize, Name)> = Vec::new();
        for (dim, place) in places.iter().enumerate() {
            if left.is_dots(place) {
                continue;
            }
            let (own, word) = (x.name(dim), left.name_of(place));
            match (own, word) {
                (Some(own), Some(word)) if own.as_str() != word.text => {
                    return Err(self.mismatch(x, left, dim, own, word));
                }
                (Some(own), None) if left.words_of(place).iter().all(|word| word.text != own.as_str()) => {
                    loose.push((dim, own));
                }
                _ => {}
            }
            // A word that another dim has as its name.
            let words = word.as_slice().iter().chain(left.words_of(place));
            for word in words {
                let elsewhere = Name::lookup(word.text).and_then(|name| x.names().position(name));
                if let Some(other) = elsewhere.filter(|other| *other != dim) {
                    let text = word.text;
                    let message = format_args!(
                        "'{text}' meets dim {dim}, and dim {other} of the tensor is called '{text}'"
                    );
                    let error = self.error(ErrorKind::Misaligned, word.at, message);
                    return Err(error.with_operands([x.shape()]));
                }
            }
        }
        let [(_, first), (second, name), ..] = loose[..] else { return Ok(()) };
        let message = format_args!(
            "the pattern does not name the dims '{first}' and '{name}', so their order cannot be checked"
        );
        let mut named = self.pattern.to_string();
        for (dim, name) in loose.iter().rev() {
            let text = places[*dim].text.clone();
            let inner = self.pattern[text.clone()].trim_matches(['(', ')']);
            named.replace_range(text, &format!("({name}: {inner})"));
        }
        Err(self
            .error(ErrorKind::NameMismatch, places[second].text.start, message)
            .with_operands([x.shape()])
            .with_repair(format!("\"{named}\", if they are in this order")))
    }

    /// The error for a dim that meets another word.
    #[cold]
    #[track_caller]
    pub(super) fn mismatch(
        self,
        x: &Tensor,
        left: &Side<'p>,
        dim: usize,
        own: Name,
        word: Word<'p>,
    ) -> Error {
        let message =
            format_args!("dim {dim} of the tensor is '{own}', and the pattern has '{}' there", word.text);
        let error = self.error(ErrorKind::NameMismatch, word.at, message).with_operands([x.shape()]);
        let has =
            |word: Word<'_>| Name::lookup(word.text).is_some_and(|name| x.names().position(name).is_some());
        if !has(word) && left.find(own.as_str()).is_none() {
            // The other words that meet no dim of the tensor, so that one repair mends them all.
            let mut renames = vec![(word.text, own.as_str())];
            for (place, dim) in left.places.iter().zip(0..x.ndim()) {
                if left.places.len() == x.ndim()
                    && let (Some(word), Some(own)) = (left.name_of(place), x.name(dim))
                    && !has(word)
                    && left.find(own.as_str()).is_none()
                {
                    renames.push((word.text, own.as_str()));
                }
            }
            return error.with_repair(self.with_names(&renames));
        }
        // The order of the pattern, in which the dims of one place without a word are the others.
        let mut order = Vec::with_capacity(left.places.len());
        for place in &left.places {
            let word = left.name_of(place).filter(|word| has(*word));
            order.push(word.map_or(DOTS, |word| word.text));
        }
        let is_named = x.names().iter(x.ndim()).all(|name| name.is_some());
        let others = order.iter().filter(|text| **text == DOTS).count();
        let fits = left.places.len() == x.ndim() || left.places.iter().any(|place| left.is_dots(place));
        match is_named && others <= 1 && fits {
            true => error.with_repair(format!("x.align_to({order:?})?")),
            false => error,
        }
    }

    /// The repair that writes names of dims in place of words.
    #[cold]
    pub(in super::super) fn with_names(self, renames: &[(&str, &str)]) -> String {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let mut renamed = String::new();
        for part in self.pattern.split_inclusive(|c| !is_part(c)) {
            let text = part.trim_end_matches(|c| !is_part(c));
            renamed += renames.iter().find(|(word, _)| text == *word).map_or(text, |(_, name)| *name);
            renamed += &part[text.len()..];
        }
        format!("\"{renamed}\", if both mean the same")
    }
}
