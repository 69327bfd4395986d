//! Sums of products in Einstein's notation.
//!
//! The operands are multiplied from left to right. A label that neither a later operand nor the result has is
//! summed as early as possible. If only one operand has the label, it is summed before the product; if both
//! have it, by the product itself, which is one batched matrix product.

use crate::Tensor;
use crate::chain::*;
use crate::composed::pattern::{DOTS, Reader, Text};
use crate::line::called_here;
use crate::lists;
use namegrad_core::names::is_strict;
use namegrad_core::{DType, Error, ErrorKind, Name, Names, Result, called};
use namegrad_macros::composed;

/// The label of a dim: a letter or a word, or a position inside an ellipsis, counted from the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label<'e> {
    Word(&'e str),
    Ellipsis(usize),
}

impl std::fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Label::Word(word) => f.write_str(word),
            Label::Ellipsis(_) => f.write_str(DOTS),
        }
    }
}

/// A tensor whose dims all have different labels.
struct Labeled<'e> {
    x: Tensor,
    labels: Vec<Label<'e>>,
}

/// An equation without spaces if its labels are letters.
#[derive(Clone, Copy)]
struct Equation<'e> {
    text: &'e str,
    in_words: bool,
}

#[track_caller]
fn fail<T>(kind: ErrorKind, message: String) -> Result<T> {
    Err(Error::new(kind, "einsum", message))
}

/// Whether the labels are words: if only words fit the operands, or else if spaces separate labels.
fn is_in_words(equation: &str, operands: &[&Tensor]) -> bool {
    let left = equation.split("->").next().unwrap_or_default();
    let mut fit = [true; 2];
    for (part, x) in left.split(',').zip(operands) {
        let dots = part.contains(DOTS);
        let labels =
            part.split_whitespace().map(|word| word.replace(DOTS, "")).filter(|word| !word.is_empty());
        let labels: Vec<String> = crate::list(labels);
        let letters: usize = labels.iter().map(|label| label.chars().count()).sum();
        for (fit, count) in fit.iter_mut().zip([letters, labels.len()]) {
            *fit &= if dots { count <= x.ndim() } else { count == x.ndim() };
        }
    }
    let is_spaced =
        equation.split("->").flat_map(|side| side.split(',')).any(|part| part.split_whitespace().count() > 1);
    fit[1] && (!fit[0] || is_spaced) || is_spaced && !fit[0]
}

impl<'e> Equation<'e> {
    /// The labels of one operand or of the result, which start at this byte; `None` is the ellipsis.
    #[track_caller]
    fn subscripts(self, part: &'e str, at: usize) -> Result<Vec<Option<&'e str>>> {
        if self.in_words {
            let reader = Reader { op: "einsum", pattern: self.text };
            return reader.labels(at, at + part.len());
        }
        let mut list = Vec::new();
        for (number, letters) in part.split(DOTS).enumerate() {
            if number > 0 {
                list.push(None);
            }
            list.extend(letters.split("").filter(|letter| !letter.is_empty()).map(Some));
        }
        if list.iter().filter(|entry| entry.is_none()).count() > 1 {
            return fail(ErrorKind::Ellipsis, format!("more than one ellipsis in '{part}'"));
        }
        let is_letter = |letter: &&str| letter.bytes().all(|byte| byte.is_ascii_alphabetic());
        if let Some(other) = list.iter().flatten().find(|letter| !is_letter(letter)) {
            let message = format!("invalid subscript '{other}' in '{part}', subscripts must be in [a-zA-Z]");
            return fail(ErrorKind::Value, message);
        }
        Ok(list)
    }
}

composed! { einsum;
    //! # Einsum
    /// The sum of products described by an equation, which has a label for each dim of each operand and,
    /// after `->`, the labels of the result. A label is a letter, or a word if spaces separate them. Labels
    /// that are not in the result are summed over. Dims with the same label must have the same size, or size
    /// one, which broadcasts. Without `->`, the result of an equation in letters has those that occur once,
    /// in alphabetical order. `...` means all dims without a label. The dims of the result have the given
    /// `names`, or are unnamed. [`contract`](Self::contract) is the same idea with names.
    ///
    /// Words of several letters are names: a dim with a name must meet the same word, and if an operand has
    /// names, those of the result are its words.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let (x, y) = (Tensor::rand([2, 3, 4])?, Tensor::rand([2, 4, 5])?);
    /// assert!(Tensor::einsum("bij,bjk->bik", &[&x, &y])?.allclose(&x.bmm(&y)?)?);
    /// assert!(Tensor::einsum("bij->bi", &[&x])?.allclose(&x.sum(2)?)?);
    /// let (q, k) = (Tensor::rand([("batch", 3), ("query", 2)])?, Tensor::rand([("batch", 3), ("key", 4)])?);
    /// let scores = Tensor::einsum("batch query, batch key -> batch query key", &[&q, &k])?;
    /// assert_eq!(scores.shape().to_string(), "[batch=3, query=2, key=4]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `NameMismatch` if dims with the same label have different names, `Shape` if the labels do not fit the
    /// operands, `Value` if the equation cannot be read, `Ellipsis`.
    einsum (equation: Text; [operands]; names: NewNames = None) on floats integers names called names, operands: by equation;
}

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn einsum(operands: &[&Tensor], equation: String, names: Vec<Option<Name>>) -> Result<Tensor> {
        let in_words = is_in_words(&equation, operands);
        let text = if in_words { equation } else { equation.split_whitespace().collect() };
        let equation = Equation { text: &text, in_words };
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (&text[..], None),
        };
        if in_words && right.is_none() {
            let reader = Reader { op: "einsum", pattern: &text };
            return reader.fail(text.len(), "an equation in words needs '->' and the words of the result");
        }
        let parts: Vec<&str> = crate::list(left.split(','));
        if operands.is_empty() || parts.len() != operands.len() {
            let message = format!(
                "the equation '{text}' has the subscripts of {} operands, and {} are given",
                parts.len(),
                operands.len()
            );
            return fail(ErrorKind::Value, message);
        }
        let mut factors = Vec::with_capacity(operands.len());
        let mut at = 0;
        for (number, (part, x)) in parts.into_iter().zip(operands).enumerate() {
            factors.push(equation.labeled(number, part, at, x)?);
            at += part.len() + 1;
        }
        let first = operands[0].dtype();
        if let Some(other) = operands.iter().find(|x| x.dtype() != first) {
            let message = format!("expected operands of one dtype, but got {first} and {}", other.dtype());
            return Err(Error::new(ErrorKind::DType, "einsum", message)
                .with_inputs(&crate::list::<_, Vec<_>>(operands.iter().map(|x| x.value())))
                .with_repair(format!("y.to(DType::{first:?})?")));
        }
        let output = equation.output_labels(&factors, right)?;
        let names = Names::given("einsum", &names, &vec![None; output.len()])?;
        let own = equation.check_names(&factors, operands, &output)?;
        check_sizes(&factors, operands)?;
        let names = if names.is_named() { names } else { own };
        let mut factors = factors.into_iter();
        let mut product = factors.next().expect("there is an operand").on_own_diagonals()?;
        let mut rest: Vec<Labeled<'_>> = Vec::new();
        for factor in factors {
            rest.push(factor.on_own_diagonals()?);
        }
        for number in 0..rest.len() {
            let later = &rest[number + 1..];
            let needed =
                |label| output.contains(&label) || later.iter().any(|factor| factor.place(label).is_some());
            product = product.times(&rest[number], &needed)?;
        }
        let product = product.summed(&|label| output.contains(&label))?;
        product.x.permute(product.places(&output)).map(|y| y.named(names))
    }
}

impl<'e> Equation<'e> {
    /// An operand with the labels of its dims; a label can occur twice.
    #[track_caller]
    fn labeled(self, number: usize, part: &'e str, at: usize, x: &Tensor) -> Result<Labeled<'e>> {
        let list = self.subscripts(part, at)?;
        let letters = list.iter().flatten().count();
        let open = x.ndim().checked_sub(letters).filter(|open| *open == 0 || list.contains(&None));
        let Some(open) = open else {
            let message = format!(
                "the number of subscripts in '{part}' ({letters}) does not match the number of dims of operand {number}, {}, which has {}",
                x.shape(),
                x.ndim()
            );
            let error = Error::new(ErrorKind::Shape, "einsum", message);
            return Err(match letters < x.ndim() && !list.contains(&None) {
                true => error.with_repair(format!(
                    "\"...{part}\" in the equation, for dims before these that have no letter"
                )),
                false => error,
            });
        };
        let mut labels = Vec::with_capacity(x.ndim());
        for entry in list {
            match entry {
                Some(word) => labels.push(Label::Word(word)),
                None => labels.extend((0..open).rev().map(Label::Ellipsis)),
            }
        }
        Ok(Labeled { x: x.unnamed(), labels })
    }

    /// The labels of the result: those after `->`; without `->`, the ellipsis and the letters that occur once.
    #[track_caller]
    fn output_labels(self, factors: &[Labeled<'e>], right: Option<&'e str>) -> Result<Vec<Label<'e>>> {
        let mut all: Vec<Label<'e>> = Vec::new();
        for factor in factors {
            all.extend_from_slice(&factor.labels);
        }
        let mut count = 0;
        for label in &all {
            if let Label::Ellipsis(at) = label {
                count = count.max(at + 1);
            }
        }
        let mut open: Vec<Label<'e>> = Vec::new();
        for at in (0..count).rev() {
            open.push(Label::Ellipsis(at));
        }
        let Some(right) = right else {
            let mut once: Vec<&str> = Vec::new();
            for label in &all {
                if let Label::Word(letter) = label
                    && all.iter().filter(|other| *other == label).count() == 1
                {
                    let place = once.iter().take_while(|before| *before < letter).count();
                    once.insert(place, letter);
                }
            }
            open.extend(once.into_iter().map(Label::Word));
            return Ok(open);
        };
        // A word of the result that no operand has is a fault of the equation alone.
        let kind = if self.in_words { ErrorKind::Value } else { ErrorKind::Shape };
        let mut labels = Vec::new();
        for entry in self.subscripts(right, self.text.len() - right.len())? {
            let Some(letter) = entry else {
                labels.extend_from_slice(&open);
                continue;
            };
            let label = Label::Word(letter);
            if !all.contains(&label) {
                let message = format!(
                    "the subscript '{letter}' of the result, '{right}', does not appear for any operand"
                );
                return fail(kind, message);
            }
            if labels.contains(&label) {
                return fail(
                    kind,
                    format!(
                        "the subscript '{letter}' appears more than once in the result, '{}'",
                        right.trim()
                    ),
                );
            }
            labels.push(label);
        }
        Ok(labels)
    }

    /// Checks that dims with the same label have the same name, if they have one; in strict mode, that all of
    /// them have it. Words with several letters are names, which the dims must have; those of the result are
    /// returned.
    #[track_caller]
    fn check_names(
        self,
        factors: &[Labeled<'e>],
        operands: &[&Tensor],
        output: &[Label<'e>],
    ) -> Result<Names> {
        if !operands.iter().any(|x| x.has_names()) {
            return Ok(Names::none());
        }
        let is_long = |label: &Label<'e>| matches!(label, Label::Word(word) if word.len() > 1);
        let named = factors.iter().flat_map(|factor| &factor.labels).any(is_long);
        let mut seen: Vec<(Label<'e>, Option<Name>, usize)> = Vec::new();
        for (number, (factor, x)) in factors.iter().zip(operands).enumerate() {
            for (dim, label) in factor.labels.iter().enumerate() {
                let name = x.name(dim);
                if let (true, Label::Word(word), Some(name)) = (named, *label, name)
                    && name.as_str() != word
                {
                    return Err(self.mismatch(operands, number, &factor.labels, [name.as_str(), word]));
                }
                match seen.iter_mut().find(|(other, ..)| other == label) {
                    Some((_, known, _)) if *known == name => {}
                    Some(entry) if (entry.1.is_none() || name.is_none()) && !is_strict() => {
                        entry.1 = entry.1.or(name);
                    }
                    Some((_, known, there)) => {
                        let show =
                            |name: &Option<Name>| name.map_or("unnamed".into(), |name| format!("'{name}'"));
                        let message = format!(
                            "the subscript '{label}' is a dim that is {} in operand {there} and {} in operand {number}",
                            show(known),
                            show(&name)
                        );
                        return Err(Error::new(ErrorKind::NameMismatch, "einsum", message)
                            .with_operands(operands.iter().map(|x| x.shape())));
                    }
                    None => seen.push((*label, name, number)),
                }
            }
        }
        let mut names = Vec::new();
        for label in output.iter().filter(|_| named) {
            names.push(match label {
                Label::Word(word) => Some(Name::new(word).map_err(|error| error.of("einsum"))?),
                Label::Ellipsis(_) => {
                    seen.iter().find(|(other, ..)| other == label).and_then(|(_, name, _)| *name)
                }
            });
        }
        Names::new("einsum", names)
    }

    /// The error for a dim called `name` that meets another word.
    #[cold]
    #[track_caller]
    fn mismatch(
        self,
        operands: &[&Tensor],
        number: usize,
        labels: &[Label<'_>],
        [name, word]: [&str; 2],
    ) -> Error {
        let reader = Reader { op: "einsum", pattern: self.text };
        let at = word.as_ptr() as usize - self.text.as_ptr() as usize;
        let message = format!("operand {number} has a dim '{name}' where the equation has '{word}'");
        let error = reader
            .error(ErrorKind::NameMismatch, at, message)
            .with_operands(operands.iter().map(|x| x.shape()));
        let x = operands[number];
        let has = |word: &str| (0..x.ndim()).any(|dim| x.name(dim).is_some_and(|own| own.as_str() == word));
        let mut order = Vec::with_capacity(labels.len());
        for label in labels {
            if let Label::Word(word) = label {
                order.push(*word);
            }
        }
        match order.len() == x.ndim() && order.iter().all(|word| has(word)) {
            true => error.with_repair(format!("x.align_to({order:?})?")),
            // Writing a name that the equation has already would give two dims that name.
            false if has(word) || order.contains(&name) => error,
            false => error.with_repair(reader.with_names(&[(word, name)])),
        }
    }
}

/// Checks that dims with the same label have the same size, or size one.
#[track_caller]
fn check_sizes(factors: &[Labeled<'_>], operands: &[&Tensor]) -> Result<()> {
    // For each label its size, and the operand and the dim where it was seen.
    let mut seen: Vec<(Label<'_>, usize, [usize; 2])> = Vec::new();
    for (number, factor) in factors.iter().enumerate() {
        for (dim, (label, size)) in factor.labels.iter().zip(factor.x.sizes()).enumerate() {
            let here = (*label, *size, [number, dim]);
            match seen.iter_mut().find(|(other, ..)| other == label) {
                Some((_, known, _)) if *known == *size || *size == 1 => {}
                Some(entry) if entry.1 == 1 => *entry = here,
                Some((_, known, there)) => {
                    let place = |[number, dim]: [usize; 2]| {
                        format!("{} of operand {number}", called(operands[number].value(), dim))
                    };
                    let message = format!(
                        "the subscript '{label}' has size {known} in {} and size {size} in {}",
                        place(*there),
                        place([number, dim])
                    );
                    return fail(ErrorKind::Shape, message);
                }
                None => seen.push(here),
            }
        }
    }
    Ok(())
}

impl<'e> Labeled<'e> {
    fn place(&self, label: Label<'e>) -> Option<usize> {
        self.labels.iter().position(|other| *other == label)
    }

    /// The size of the dim with this label, or one if there is none.
    fn size(&self, label: Label<'e>) -> usize {
        self.place(label).map_or(1, |dim| self.x.sizes()[dim])
    }

    /// The dims with these labels, without those that it does not have.
    fn places(&self, labels: &[Label<'e>]) -> Vec<usize> {
        let mut places = Vec::with_capacity(labels.len());
        for label in labels {
            places.extend_from_slice(self.place(*label).as_slice());
        }
        places
    }

    /// Replaces dims with the same label by their diagonal.
    #[track_caller]
    fn on_own_diagonals(mut self) -> Result<Labeled<'e>> {
        let mut second = 0;
        while second < self.labels.len() {
            let label = self.labels[second];
            match self.labels[..second].iter().position(|other| *other == label) {
                Some(first) => {
                    let (one, other) = (self.x.sizes()[first], self.x.sizes()[second]);
                    if one != other {
                        let message = format!(
                            "the subscript '{label}' occurs twice in one operand, for the sizes {one} and {other}"
                        );
                        return fail(ErrorKind::Shape, message);
                    }
                    self.x = self.x.diagonal(first, second)?;
                    self.labels.remove(second);
                    self.labels.remove(first);
                    self.labels.push(label);
                    second -= 1;
                }
                None => second += 1,
            }
        }
        Ok(self)
    }

    /// Sums over the dims whose label is not `needed`.
    #[track_caller]
    fn summed(&self, needed: &dyn Fn(Label<'e>) -> bool) -> Result<Labeled<'e>> {
        let gone = lists::numbers(self.labels.len(), &|dim| !needed(self.labels[dim]));
        let x = if gone.is_empty() { self.x.clone() } else { self.x.sum(gone)? };
        Ok(Labeled { x, labels: picked(&self.labels, needed) })
    }

    /// The product with `other`, summed over the labels that are no longer `needed`.
    #[track_caller]
    fn times(&self, other: &Labeled<'e>, needed: &dyn Fn(Label<'e>) -> bool) -> Result<Labeled<'e>> {
        let _called = called_here(); // a closure does not know its caller
        // A dim of size one that broadcasts against the other operand is not part of the sum of products.
        let wide = |label| self.size(label) != 1 && other.size(label) != 1;
        let left = self.summed(&|label| needed(label) || wide(label))?;
        let right = other.summed(&|label| needed(label) || wide(label))?;
        let batch = picked(&left.labels, &|label| right.place(label).is_some() && needed(label));
        let inner = picked(&left.labels, &|label| right.place(label).is_some() && !needed(label));
        let rows = picked(&left.labels, &|label| right.place(label).is_none());
        let cols = picked(&right.labels, &|label| left.place(label).is_none());
        // A sum of integers has a wider dtype than the integers.
        let a = left.as_matrices(&right, [&batch, &rows, &inner], self.x.dtype())?;
        let b = right.as_matrices(&left, [&batch, &inner, &cols], other.x.dtype())?;
        let labels = [&batch[..], &rows, &cols].concat();
        let sizes = common_sizes(&left, &right, &labels);
        Ok(Labeled { x: a.bmm(&b).reshape(&sizes[..])?, labels })
    }

    /// The tensor as a batch of matrices, each of the three dims made of the dims with some labels.
    #[track_caller]
    fn as_matrices(&self, other: &Labeled<'e>, parts: [&[Label<'e>]; 3], dtype: DType) -> Result<Tensor> {
        let sizes = common_sizes(self, other, &parts.concat());
        let mut counts = [1; 3];
        let mut start = 0;
        for (count, part) in counts.iter_mut().zip(parts) {
            *count = sizes[start..][..part.len()].iter().product();
            start += part.len();
        }
        self.x.permute(self.places(&parts.concat())).expand(&sizes[..]).reshape(counts).to(dtype)
    }
}

/// The labels that are wanted.
fn picked<'e>(labels: &[Label<'e>], is_wanted: &dyn Fn(Label<'e>) -> bool) -> Vec<Label<'e>> {
    let mut picked = Vec::new();
    for label in labels {
        if is_wanted(*label) {
            picked.push(*label);
        }
    }
    picked
}

/// The sizes of the dims with these labels in a product, in which a size of one broadcasts.
fn common_sizes<'e>(a: &Labeled<'e>, b: &Labeled<'e>, labels: &[Label<'e>]) -> Vec<usize> {
    let mut sizes = Vec::with_capacity(labels.len());
    for label in labels {
        let both = [a.size(*label), b.size(*label)];
        sizes.push(if both.contains(&0) { 0 } else { both[0].max(both[1]) });
    }
    sizes
}
