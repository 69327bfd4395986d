//! Rearranging, reducing and repeating by a pattern of words, in the language of einops: `"N (h w) C -> N C h
//! w"`.
//!
//! A pattern is read by [`Reader`] into a [`Side`] for the tensor and one for the result. The words of the
//! left side, with groups split up, are the parts of the tensor, to which a new word of the right side adds
//! one. [`transform`] reshapes the tensor to its parts, reduces, permutes and expands them, and merges the
//! groups of the right side; steps that would change nothing are left out. [`packing`] has `pack` and
//! `unpack`.
//!
//! Source of the language: Rogozhnikov, *Einops: Clear and Reliable Tensor Manipulations with Einstein-like
//! Notation* (2022). The name of a group, `(pixels: h w)`, is from Haliax.

use crate::Tensor;
use crate::lists;
use namegrad_core::names::closest;
use namegrad_core::{Argument, Category, Error, ErrorKind, Name, NamedTensor, Names, Result, Sizes, Value};
use namegrad_macros::composed;
use std::ops::Range;

mod packing;

/// A text: the equation of [`Tensor::einsum`], a pattern, or the word for a reduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub String);

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(text.into())
    }
}
impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(text)
    }
}

impl Argument for Text {
    type Resolved = String;
    type View<'a> = &'a str;
    fn look_up(self, _: &'static str, _: &[&NamedTensor]) -> Result<String> {
        Ok(self.0)
    }
    fn view(resolved: &String) -> &str {
        resolved
    }
    fn from_value(value: &Value) -> Option<Text> {
        match value {
            Value::Text(text) => Some(Text(text.clone())),
            _ => None,
        }
    }
    fn accepted() -> String {
        "a text".into()
    }
}

/// The sizes of words in a pattern, such as `[("h", 8)]`, or `[]` for none. In a call by name they are a list
/// of pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordSizes(pub Vec<(String, usize)>);

impl From<&[(&str, usize)]> for WordSizes {
    fn from(sizes: &[(&str, usize)]) -> WordSizes {
        WordSizes(crate::list(sizes.iter().map(|(word, size)| ((*word).into(), *size))))
    }
}
/// Only for `usize`, so that the type of `[]` can be inferred.
impl<const K: usize> From<[(&str, usize); K]> for WordSizes {
    fn from(sizes: [(&str, usize); K]) -> WordSizes {
        WordSizes::from(&sizes[..])
    }
}

impl Argument for WordSizes {
    type Resolved = Vec<(String, usize)>;
    type View<'a> = &'a [(String, usize)];
    fn look_up(self, _: &'static str, _: &[&NamedTensor]) -> Result<Self::Resolved> {
        Ok(self.0)
    }
    fn view(resolved: &Self::Resolved) -> &[(String, usize)] {
        resolved
    }
    fn from_value(value: &Value) -> Option<WordSizes> {
        let pair = |value: &Value| match value {
            Value::List(pair) => match &pair[..] {
                [Value::Text(word), size] => Some((word.clone(), usize::from_value(size)?)),
                _ => None,
            },
            _ => None,
        };
        match value {
            Value::List(list) => crate::list::<_, Option<_>>(list.iter().map(pair)).map(WordSizes),
            _ => None,
        }
    }
    fn accepted() -> String {
        "a list of pairs of a word and a size".into()
    }
}

composed! { pattern;
    //! # Patterns
    //!
    //! A pattern has a word for each dim of the tensor and, after `->`, for each dim of the result, in the
    //! language of einops. Words in parentheses are one dim: `(h w)` is split on the left and merged on the
    //! right, with the last word changing fastest. `sizes` has the sizes of words that cannot be inferred, as
    //! `[("h", 8)]`, or `[]`. `1` or `()` is a dim of size one, and `...` means all other dims.
    //!
    //! A dim with a name must meet the same word: a pattern is an error on a tensor with other names or
    //! another order. If the tensor has names, those of the result are its words; without, it has none either.
    //! A dim that is split may have any name. A merged dim has none, unless the pattern names it: `(pixels: h
    //! w)`. Where more than one dim with a name is split, reduced in parts or dropped, each needs that form,
    //! or its name among the words, as in `(H: h p) (W: w p2)`.
    /// The tensor with its dims split, merged and permuted by a pattern. The result is a view unless dims are
    /// merged that are not adjacent in memory.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::randn([("N", 2), ("pixels", 48), ("C", 3)])?;
    /// let images = x.rearrange("N (h w) C -> N C h w", [("h", 8)])?;
    /// assert_eq!(images.shape().to_string(), "[N=2, C=3, h=8, w=6]");
    /// let patches = "N C (h: y p) (w: x q) -> N (patch: y x) (p q C)";
    /// let patches = images.rearrange(patches, [("p", 2), ("q", 2)])?;
    /// assert_eq!(patches.shape().to_string(), "[N=2, patch=12, ?=12]");
    /// // Several tensors: `rearrange([a, b], 'n a b -> a (n b)')` in einops.
    /// let (a, b) = (Tensor::zeros([2, 3])?, Tensor::ones([2, 3])?);
    /// assert_eq!(Tensor::stack(&[&a, &b], 0)?.rearrange("n a b -> a (n b)", [])?.sizes(), [2, 6]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Value` for an invalid pattern, for a word that is only on one side, or whose size is missing or
    /// superfluous; `Shape` if the tensor does not fit; `NameMismatch` or `Misaligned` if its names do not;
    /// `DuplicateName`, `InvalidName`.
    rearrange (x; pattern: Text, sizes: WordSizes) names called pattern;
    /// The reduction over the dims whose words are only on the left of a pattern, such as pooling. The
    /// reduction is `"sum"`, `"mean"`, `"max"`, `"min"`, `"prod"`, `"any"` or `"all"`. See
    /// [`rearrange`](Self::rearrange).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0, 3.0, 4.0]])?.refine_names(["C", "time"])?;
    /// let pooled = x.reduce("C (time 2) -> C time", "max", [])?;
    /// assert_eq!(pooled.shape().to_string(), "[C=1, time=2]");
    /// assert_eq!(pooled.to_vec::<f32>()?, [2.0, 4.0]);
    /// assert_eq!(x.reduce("C time -> time", "mean", [])?.sizes(), [4]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`rearrange`](Self::rearrange); `Value` for another reduction, `DType` for the mean of
    /// integers, `Shape` for the largest or smallest of no elements.
    reduce (x; pattern: Text, reduction: Text, sizes: WordSizes) names called pattern;
    /// The tensor repeated along the words that are only on the right of a pattern, which need a size: einops'
    /// `repeat`. The result is a view unless dims are merged. [`repeat`](Self::repeat) repeats by numbers. See
    /// [`rearrange`](Self::rearrange).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1, 2])?;
    /// assert_eq!(x.repeat_dims("h -> (h 2)", [])?.to_vec::<i64>()?, [1, 1, 2, 2]);
    /// assert_eq!(x.repeat_dims("h -> (2 h)", [])?.to_vec::<i64>()?, [1, 2, 1, 2]);
    /// assert_eq!(x.repeat_dims("h -> n h", [("n", 5)])?.sizes(), [5, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`rearrange`](Self::rearrange).
    #[doc(alias = "repeat")]
    repeat_dims (x; pattern: Text, sizes: WordSizes) names called pattern;
}

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn rearrange(x: &Tensor, pattern: String, sizes: Vec<(String, usize)>) -> Result<Tensor> {
        transform("rearrange", x, &pattern, &sizes, How::Rearrange)
    }

    #[track_caller]
    pub(super) fn reduce(
        x: &Tensor,
        pattern: String,
        reduction: String,
        sizes: Vec<(String, usize)>,
    ) -> Result<Tensor> {
        transform("reduce", x, &pattern, &sizes, How::Reduce(&reduction))
    }

    #[track_caller]
    pub(super) fn repeat_dims(x: &Tensor, pattern: String, sizes: Vec<(String, usize)>) -> Result<Tensor> {
        transform("repeat_dims", x, &pattern, &sizes, How::Repeat)
    }
}

/// What happens to words that are only on one side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How<'a> {
    Rearrange,
    Reduce(&'a str),
    Repeat,
}

const REDUCTIONS: [&str; 7] = ["sum", "mean", "max", "min", "prod", "any", "all"];
pub(super) const DOTS: &str = "...";

/// A word, a number or an ellipsis, and where it is in the pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word<'p> {
    text: &'p str,
    at: usize,
}

impl Word<'_> {
    fn is_number(self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_digit())
    }

    /// The size that a number is; a number too large is one that no dim has.
    fn number(self) -> Option<usize> {
        self.is_number().then(|| self.text.parse().unwrap_or(usize::MAX))
    }
}

/// A dim of a pattern: a word alone, or a group.
struct Place<'p> {
    /// The name of a group, as in `(name: words)`.
    label: Option<Word<'p>>,
    /// Whether it is in parentheses.
    is_group: bool,
    /// Its words, of those of the side.
    words: Range<usize>,
    /// Its text in the pattern.
    text: Range<usize>,
}

/// One side of a pattern.
#[derive(Default)]
struct Side<'p> {
    words: Vec<Word<'p>>,
    places: Vec<Place<'p>>,
}

impl<'p> Side<'p> {
    fn find(&self, text: &str) -> Option<Word<'p>> {
        self.words.iter().find(|word| word.text == text).copied()
    }

    fn words_of(&self, place: &Place<'p>) -> &[Word<'p>] {
        &self.words[place.words.clone()]
    }

    fn is_dots(&self, place: &Place<'p>) -> bool {
        !place.is_group && matches!(self.words_of(place), [word] if word.text == DOTS)
    }

    /// The word that a dim at this place is called by: that of the group, or a word alone.
    fn name_of(&self, place: &Place<'p>) -> Option<Word<'p>> {
        match self.words_of(place) {
            [word] if !place.is_group && !word.is_number() => Some(*word),
            _ => place.label,
        }
    }
}

/// Reads the pattern of an op, with places for errors.
#[derive(Clone, Copy)]
pub(super) struct Reader<'p> {
    pub(super) op: &'static str,
    pub(super) pattern: &'p str,
}

impl<'p> Reader<'p> {
    /// An error with a mark below the pattern.
    #[cold]
    #[track_caller]
    pub(super) fn error(self, kind: ErrorKind, at: usize, message: impl std::fmt::Display) -> Error {
        let shown: String = self.pattern.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        let before = self.pattern[..at].chars().count();
        Error::new(kind, self.op, format!("{message}\n    {shown}\n    {:before$}^", ""))
    }

    #[cold]
    #[track_caller]
    pub(super) fn fail<T>(self, at: usize, message: impl std::fmt::Display) -> Result<T> {
        Err(self.error(ErrorKind::Value, at, message))
    }

    /// Both sides of the pattern.
    #[track_caller]
    fn sides(self) -> Result<[Side<'p>; 2]> {
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
    fn read(self, start: usize, end: usize) -> Result<Side<'p>> {
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
    pub(super) fn labels(self, start: usize, end: usize) -> Result<Vec<Option<&'p str>>> {
        let side = self.read_any(start, end)?;
        let mut labels = Vec::with_capacity(side.places.len());
        for place in &side.places {
            labels.push(match side.name_of(place) {
                Some(word) if !place.is_group && word.text != "*" => {
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
        if [DOTS, "*"].contains(&text) {
            return Ok(());
        }
        let other = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        if let Some(bad) = other {
            let c = text[bad..].chars().next().unwrap_or_default();
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
    fn check_sides(
        self,
        [left, right]: &[Side<'p>; 2],
        sizes: &[(String, usize)],
        how: How<'_>,
    ) -> Result<()> {
        for word in left.words.iter().chain(&right.words) {
            if word.text == "*" {
                return self.fail(word.at, "'*' is only for pack and unpack");
            }
            if how == How::Rearrange && word.is_number() {
                return self
                    .fail(word.at, "a rearrangement has no dims of a given number; give the dim a word");
            }
        }
        if let Some(place) = left
            .places
            .iter()
            .find(|place| place.is_group && left.words_of(place).iter().any(|word| word.text == DOTS))
        {
            return self.fail(place.text.start, "an ellipsis on the left cannot be in a group");
        }
        let alone = |of: &Side<'p>, other: &Side<'p>| {
            of.words.iter().find(|word| word.is_number() || other.find(word.text).is_none()).copied()
        };
        if let Some(word) = alone(left, right).filter(|_| !matches!(how, How::Reduce(_))) {
            return self.fail(word.at, format_args!("'{}' is only on the left", word.text));
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
            let message =
                format!("unknown reduction '{word}', expected one of {}{near}", REDUCTIONS.join(", "));
            return Err(Error::new(ErrorKind::Value, self.op, message));
        }
        Ok(())
    }

    /// Checks that each size is that of one word.
    #[track_caller]
    fn check_sizes(self, sides: &[Side<'p>; 2], sizes: &[(String, usize)]) -> Result<()> {
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
    fn places<'s>(self, x: &Tensor, left: &'s Side<'p>) -> Result<Vec<&'s Place<'p>>> {
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
    fn check_names(self, x: &Tensor, left: &Side<'p>, places: &[&Place<'p>]) -> Result<()> {
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
    fn mismatch(self, x: &Tensor, left: &Side<'p>, dim: usize, own: Name, word: Word<'p>) -> Error {
        let message =
            format_args!("dim {dim} of the tensor is '{own}', and the pattern has '{}' there", word.text);
        let error = self.error(ErrorKind::NameMismatch, word.at, message).with_operands([x.shape()]);
        let mut order: Vec<String> = Vec::new();
        for place in &left.places {
            if let Some(word) = left.name_of(place).filter(|_| !left.is_dots(place)) {
                order.push(format!("\"{}\"", word.text));
            }
        }
        let has = |text: &String| {
            Name::lookup(text.trim_matches('"')).is_some_and(|name| x.names().position(name).is_some())
        };
        if order.len() == x.ndim() && order.iter().all(has) {
            return error.with_repair(format!("x.align_to([{}])?", order.join(", ")));
        }
        if left.find(own.as_str()).is_some() {
            return error;
        }
        error.with_repair(self.with_name(word.text, own.as_str()))
    }

    /// The repair that writes the name of a dim in place of a word.
    #[cold]
    pub(super) fn with_name(self, word: &str, name: &str) -> String {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let mut renamed = String::new();
        for part in self.pattern.split_inclusive(|c| !is_part(c)) {
            let text = part.trim_end_matches(|c| !is_part(c));
            renamed += if text == word { name } else { text };
            renamed += &part[text.len()..];
        }
        format!("\"{renamed}\", if both mean the same")
    }
}

/// A part of the tensor, or a new dim: its word and its size.
struct Part<'p> {
    word: Word<'p>,
    size: usize,
}

/// The parts of the tensor in its order, from its sizes and the given ones.
#[track_caller]
fn parts<'p>(
    reader: Reader<'p>,
    x: &Tensor,
    left: &Side<'p>,
    places: &[&Place<'p>],
    given: &dyn Fn(Word<'p>) -> Option<usize>,
) -> Result<Vec<Part<'p>>> {
    let mut parts = Vec::new();
    for (place, size) in places.iter().zip(x.sizes()) {
        let words = left.words_of(place);
        let mut open: Option<Word<'p>> = None;
        let mut known = Some(1_usize);
        for word in words {
            match (given(*word), open) {
                (Some(size), _) => known = known.and_then(|known| known.checked_mul(size)),
                (None, None) => open = Some(*word),
                (None, Some(first)) => {
                    let message = format!(
                        "the sizes of '{}' and '{}' cannot both be inferred; give one of them",
                        first.text, word.text
                    );
                    return Err(reader.error(ErrorKind::Value, word.at, message).with_operands([x.shape()]));
                }
            }
        }
        let known = known.unwrap_or(usize::MAX);
        let fits = if open.is_some() { known > 0 && size % known == 0 } else { known == *size };
        if !fits {
            let shown = reader.pattern[place.text.clone()].trim();
            let message = match open.is_some() {
                true => {
                    format!("'{shown}' splits {size} elements into parts of {known}, which does not divide")
                }
                false => format!("'{shown}' has {known} elements, and the dim of the tensor has {size}"),
            };
            let at = place.text.start;
            return Err(reader.error(ErrorKind::Shape, at, message).with_operands([x.shape()]));
        }
        for word in words {
            parts.push(Part { word: *word, size: given(*word).unwrap_or_else(|| size / known) });
        }
    }
    Ok(parts)
}

#[track_caller]
fn transform(
    op: &'static str,
    x: &Tensor,
    pattern: &str,
    sizes: &[(String, usize)],
    how: How<'_>,
) -> Result<Tensor> {
    let reader = Reader { op, pattern };
    let sides = reader.sides()?;
    reader.check_sides(&sides, sizes, how)?;
    let [left, right] = &sides;
    let places = reader.places(x, left)?;
    reader.check_sizes(&sides, sizes)?;
    if x.has_names() {
        reader.check_names(x, left, &places)?;
    }
    let size_of = |word: &Word<'_>| sizes.iter().find(|(sized, _)| sized == word.text).map(|(_, size)| *size);
    let given = |word: Word<'_>| word.number().or_else(|| size_of(&word));
    let mut parts = parts(reader, x, left, &places, &given)?;
    let own = parts.len();
    // The parts in the order of the result, the number of them in each of its dims, and its names.
    let (mut order, mut counts, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for place in &right.places {
        let before = order.len();
        for word in right.words_of(place) {
            let known = order.len();
            for (number, part) in parts[..own].iter().enumerate() {
                if part.word.text == word.text && !word.is_number() {
                    order.push(number);
                }
            }
            if order.len() == known && word.text != DOTS {
                order.push(parts.len());
                parts.push(Part { word: *word, size: given(*word).unwrap_or(1) });
            }
        }
        let is_dots = right.is_dots(place);
        match is_dots {
            true => counts.extend(std::iter::repeat_n(1, order.len() - before)),
            false => counts.push(order.len() - before),
        }
        if x.has_names() {
            match right.name_of(place) {
                _ if is_dots => {
                    let dims = lists::numbers(x.ndim(), &|dim| left.is_dots(places[dim]));
                    names.extend(dims.into_iter().map(|dim| x.name(dim)));
                }
                Some(word) => names.push(Some(Name::new(word.text).map_err(|error| error.of(op))?)),
                None => names.push(None),
            }
        }
    }
    let names = match x.has_names() {
        true => Names::new(op, names).map_err(|error| error.with_operands([x.shape()]))?,
        false => Names::none(),
    };
    let all: Vec<usize> = crate::list(parts.iter().map(|part| part.size));
    let mut y = x.unnamed();
    let mut now: Vec<usize> = all[..own].to_vec();
    now.resize(parts.len(), 1);
    let gone = lists::others(own, &order);
    if now[..] != *y.sizes() {
        y = y.reshape(&now[..])?;
    }
    if let (How::Reduce(reduction), false) = (how, gone.is_empty()) {
        for number in &mut order {
            *number -= gone.partition_point(|gone| gone < number);
        }
        y = reduced(op, &y, reduction, gone)?;
    }
    if !order.is_sorted() {
        y = y.permute(&order[..])?;
    }
    if parts.len() > own {
        y = y.expand(lists::at(&all, &order))?;
    }
    let mut merged = Sizes::new();
    let mut start = 0;
    for count in counts {
        let sizes = &y.sizes()[start..][..count];
        let size = sizes.iter().try_fold(1_usize, |product, size| product.checked_mul(*size));
        let Some(size) = size.filter(|size| *size <= isize::MAX as usize) else {
            let message = format!("the sizes {sizes:?} do not fit in one dim");
            return Err(Error::new(ErrorKind::Shape, op, message).with_operands([x.shape()]));
        };
        merged.push(size);
        start += count;
    }
    if merged[..] != *y.sizes() {
        y = y.reshape(&merged[..])?;
    }
    Ok(y.named(names))
}

#[track_caller]
fn reduced(op: &'static str, x: &Tensor, reduction: &str, dims: Vec<usize>) -> Result<Tensor> {
    match reduction {
        "sum" => x.sum(dims),
        "mean" if x.dtype().category() != Category::Float => {
            let message = format!("the mean of {} is not defined", x.dtype());
            Err(Error::new(ErrorKind::DType, op, message)
                .with_operands([x.shape()])
                .with_repair("x.to(DType::F32)?"))
        }
        "mean" => x.mean(dims),
        "max" | "min" if dims.iter().any(|dim| x.sizes()[*dim] == 0) => {
            let message = format!("the {reduction} of no elements is not defined");
            Err(Error::new(ErrorKind::Shape, op, message).with_operands([x.shape()]))
        }
        "max" => x.amax(dims),
        "min" => x.amin(dims),
        "prod" => x.prod(dims),
        "any" => x.any(dims),
        _ => x.all(dims),
    }
}
