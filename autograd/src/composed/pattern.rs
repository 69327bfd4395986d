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
use namegrad_core::{Argument, Category, Error, ErrorKind, Name, NamedTensor, Names, Result, Sizes, Value};
use namegrad_macros::composed;

mod packing;
mod reader;

pub(super) use reader::{DOTS, Reader};
use reader::{Place, Side, Word};

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
    fn look_up(&self, _: &'static str, _: &[&NamedTensor]) -> Result<String> {
        Ok(self.0.clone())
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
    fn look_up(&self, _: &'static str, _: &[&NamedTensor]) -> Result<Self::Resolved> {
        Ok(self.0.clone())
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
