//! Sums of products in Einstein's notation.
//!
//! The operands are multiplied from left to right. A label that neither a later operand nor the result has is
//! summed as early as possible. If only one operand has the label, it is summed before the product; if both
//! have it, by the product itself, which is one batched matrix product.

use crate::Tensor;
use crate::chain::*;
use crate::line::called_here;
use crate::lists;
use namegrad_core::names::is_strict;
use namegrad_core::{Argument, DType, Error, ErrorKind, Name, NamedTensor, Names, Result, Value, called};
use namegrad_macros::composed;

/// The label of a dim: a letter, or a position inside an ellipsis, counted from the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Letter(char),
    Ellipsis(usize),
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Label::Letter(letter) => write!(f, "{letter}"),
            Label::Ellipsis(_) => f.write_str("..."),
        }
    }
}

/// A tensor whose dims all have different labels.
struct Labeled {
    x: Tensor,
    labels: Vec<Label>,
}

#[track_caller]
fn fail<T>(kind: ErrorKind, message: String) -> Result<T> {
    Err(Error::new(kind, "einsum", message))
}

/// The letters of one operand; `None` is the ellipsis.
#[track_caller]
fn subscripts(text: &str) -> Result<Vec<Option<char>>> {
    let mut list = Vec::new();
    for (number, part) in text.split("...").enumerate() {
        if number > 0 {
            list.push(None);
        }
        list.extend(part.chars().map(Some));
    }
    if list.iter().filter(|entry| entry.is_none()).count() > 1 {
        return fail(ErrorKind::Ellipsis, format!("more than one ellipsis in '{text}'"));
    }
    if let Some(other) = list.iter().flatten().find(|letter| !letter.is_ascii_alphabetic()) {
        let message = format!("invalid subscript '{other}' in '{text}', subscripts must be in [a-zA-Z]");
        return fail(ErrorKind::Value, message);
    }
    Ok(list)
}

/// The equation of [`Tensor::einsum`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equation(pub String);

impl From<&str> for Equation {
    fn from(equation: &str) -> Equation {
        Equation(equation.into())
    }
}
impl From<String> for Equation {
    fn from(equation: String) -> Equation {
        Equation(equation)
    }
}

impl Argument for Equation {
    type Resolved = String;
    type View<'a> = &'a str;
    fn look_up(self, _: &'static str, _: &[&NamedTensor]) -> Result<String> {
        Ok(self.0)
    }
    fn view(resolved: &String) -> &str {
        resolved
    }
    fn from_value(value: &Value) -> Option<Equation> {
        match value {
            Value::Text(equation) => Some(Equation(equation.clone())),
            _ => None,
        }
    }
    fn accepted() -> String {
        "a text".into()
    }
}

composed! { einsum;
    //! # Einsum
    /// The sum of products described by an equation, which has a label for each dim of each operand and,
    /// after `->`, the labels of the result. Labels that are not in the result are summed over. Dims with the
    /// same label must have the same size, or size one, which broadcasts. Without `->`, the result has the
    /// labels that occur once, in alphabetical order. `...` means all dims without a label. The dims of
    /// the result have the given `names`, or are unnamed. [`contract`](Self::contract) is the same idea with
    /// names.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let (x, y) = (Tensor::rand([2, 3, 4])?, Tensor::rand([2, 4, 5])?);
    /// assert!(Tensor::einsum("bij,bjk->bik", &[&x, &y])?.allclose(&x.bmm(&y)?)?);
    /// assert!(Tensor::einsum("bij->bi", &[&x])?.allclose(&x.sum(2)?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `NameMismatch` if dims with the same label have different names, `Shape` if the labels do not fit the
    /// operands, `Value` if the equation cannot be read, `Ellipsis`.
    einsum (equation: Equation; [operands]; names: NewNames = None) on floats integers names called names, operands: by equation;
}

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn einsum(operands: &[&Tensor], equation: String, names: Vec<Option<Name>>) -> Result<Tensor> {
        let equation: String = equation.split_whitespace().collect();
        let (left, right) = match equation.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (&equation[..], None),
        };
        let parts: Vec<&str> = crate::list(left.split(','));
        if operands.is_empty() || parts.len() != operands.len() {
            let message = format!(
                "the equation '{equation}' has the subscripts of {} operands, and {} are given",
                parts.len(),
                operands.len()
            );
            return fail(ErrorKind::Value, message);
        }
        let mut factors = Vec::with_capacity(operands.len());
        for (number, (part, x)) in parts.into_iter().zip(operands).enumerate() {
            factors.push(labeled(number, part, x)?);
        }
        let first = operands[0].dtype();
        if let Some(other) = operands.iter().find(|x| x.dtype() != first) {
            let message = format!("expected operands of one dtype, but got {first} and {}", other.dtype());
            return Err(Error::new(ErrorKind::DType, "einsum", message)
                .with_inputs(&crate::list::<_, Vec<_>>(operands.iter().map(|x| x.value())))
                .with_repair(format!("y.to(DType::{first:?})?")));
        }
        let output = output_labels(&factors, right)?;
        let names = Names::given("einsum", &names, &vec![None; output.len()])?;
        check_sizes(&factors, operands)?;
        check_names(&factors, operands)?;
        let mut factors = factors.into_iter();
        let mut product = factors.next().expect("there is an operand").on_own_diagonals()?;
        let mut rest: Vec<Labeled> = Vec::new();
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

/// An operand with the labels of its dims; a label can occur twice.
#[track_caller]
fn labeled(number: usize, part: &str, x: &Tensor) -> Result<Labeled> {
    let list = subscripts(part)?;
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
            Some(letter) => labels.push(Label::Letter(letter)),
            None => labels.extend((0..open).rev().map(Label::Ellipsis)),
        }
    }
    Ok(Labeled { x: x.unnamed(), labels })
}

/// The labels of the result: those after `->`; without `->`, the ellipsis and the letters that occur once.
#[track_caller]
fn output_labels(factors: &[Labeled], right: Option<&str>) -> Result<Vec<Label>> {
    let mut all: Vec<Label> = Vec::new();
    for factor in factors {
        all.extend_from_slice(&factor.labels);
    }
    let mut count = 0;
    for label in &all {
        if let Label::Ellipsis(at) = label {
            count = count.max(at + 1);
        }
    }
    let mut open: Vec<Label> = Vec::new();
    for at in (0..count).rev() {
        open.push(Label::Ellipsis(at));
    }
    let Some(right) = right else {
        for letter in b'A'..=b'z' {
            let label = Label::Letter(char::from(letter));
            if all.iter().filter(|other| **other == label).count() == 1 {
                open.push(label);
            }
        }
        return Ok(open);
    };
    let mut labels = Vec::new();
    for entry in subscripts(right)? {
        let Some(letter) = entry else {
            labels.extend_from_slice(&open);
            continue;
        };
        let label = Label::Letter(letter);
        if !all.contains(&label) {
            let message =
                format!("the subscript '{letter}' of the result, '{right}', does not appear for any operand");
            return fail(ErrorKind::Shape, message);
        }
        if labels.contains(&label) {
            return fail(
                ErrorKind::Shape,
                format!("the subscript '{letter}' appears more than once in the result, '{right}'"),
            );
        }
        labels.push(label);
    }
    Ok(labels)
}

/// Checks that dims with the same label have the same size, or size one.
#[track_caller]
fn check_sizes(factors: &[Labeled], operands: &[&Tensor]) -> Result<()> {
    // For each label its size, and the operand and the dim where it was seen.
    let mut seen: Vec<(Label, usize, [usize; 2])> = Vec::new();
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

/// Checks that dims with the same letter have the same name, if they have one; in strict mode, that all of
/// them have it.
#[track_caller]
fn check_names(factors: &[Labeled], operands: &[&Tensor]) -> Result<()> {
    if !operands.iter().any(|x| x.has_names()) {
        return Ok(());
    }
    let mut seen: Vec<(Label, Option<Name>, usize)> = Vec::new();
    for (number, (factor, x)) in factors.iter().zip(operands).enumerate() {
        for (dim, label) in factor.labels.iter().enumerate() {
            let name = x.name(dim);
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
    Ok(())
}

impl Labeled {
    fn place(&self, label: Label) -> Option<usize> {
        self.labels.iter().position(|other| *other == label)
    }

    /// The size of the dim with this label, or one if there is none.
    fn size(&self, label: Label) -> usize {
        self.place(label).map_or(1, |dim| self.x.sizes()[dim])
    }

    /// The dims with these labels, without those that it does not have.
    fn places(&self, labels: &[Label]) -> Vec<usize> {
        let mut places = Vec::with_capacity(labels.len());
        for label in labels {
            places.extend_from_slice(self.place(*label).as_slice());
        }
        places
    }

    /// Replaces dims with the same label by their diagonal.
    #[track_caller]
    fn on_own_diagonals(mut self) -> Result<Labeled> {
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
    fn summed(&self, needed: &dyn Fn(Label) -> bool) -> Result<Labeled> {
        let gone = lists::numbers(self.labels.len(), &|dim| !needed(self.labels[dim]));
        let x = if gone.is_empty() { self.x.clone() } else { self.x.sum(gone)? };
        Ok(Labeled { x, labels: picked(&self.labels, needed) })
    }

    /// The product with `other`, summed over the labels that are no longer `needed`.
    #[track_caller]
    fn times(&self, other: &Labeled, needed: &dyn Fn(Label) -> bool) -> Result<Labeled> {
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
    fn as_matrices(&self, other: &Labeled, parts: [&[Label]; 3], dtype: DType) -> Result<Tensor> {
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
fn picked(labels: &[Label], is_wanted: &dyn Fn(Label) -> bool) -> Vec<Label> {
    let mut picked = Vec::new();
    for label in labels {
        if is_wanted(*label) {
            picked.push(*label);
        }
    }
    picked
}

/// The sizes of the dims with these labels in a product, in which a size of one broadcasts.
fn common_sizes(a: &Labeled, b: &Labeled, labels: &[Label]) -> Vec<usize> {
    let mut sizes = Vec::with_capacity(labels.len());
    for label in labels {
        let both = [a.size(*label), b.size(*label)];
        sizes.push(if both.contains(&0) { 0 } else { both[0].max(both[1]) });
    }
    sizes
}
