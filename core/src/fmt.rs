//! The text of a tensor, as PyTorch prints it: `tensor([[0., 1.], [2., 3.]], names=('N', 'C'))`, on one
//! line or several.
//!
//! `write_tensor` gets sizes and a function that returns an element, not a tensor. The caller passes what
//! follows the numbers (names, dtype, gradient function). [`PrintOptions`] apply to the whole process.
//!
//! # Source
//! The behavior of `torch/_tensor_str.py` in PyTorch 2.15; `names` are printed as up to 2.12.
use crate::layout::has;
use std::fmt;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

/// The options of printing tensors; the defaults are PyTorch's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// Digits after the decimal point (4).
    pub precision: usize,
    /// Tensors with more elements than this are summarized by their edges (1000).
    pub threshold: usize,
    /// The number of items at each edge (3). With 0, the sizes are also printed.
    pub edgeitems: usize,
    /// Columns per line (80).
    pub linewidth: usize,
    /// Whether to use scientific notation; `None` (the default) decides by the numbers.
    pub sci_mode: Option<bool>,
}

/// A text: what the `format!` of this crate calls.
#[inline(never)]
pub(crate) fn formatted(words: fmt::Arguments<'_>) -> String {
    fmt::format(words)
}

impl PrintOptions {
    const DEFAULT: Self = Self { precision: 4, threshold: 1000, edgeitems: 3, linewidth: 80, sci_mode: None };

    /// Short output: two digits, edges of two items.
    pub fn short() -> Self {
        Self { precision: 2, edgeitems: 2, ..Self::DEFAULT }
    }

    /// All elements of any tensor.
    pub fn full() -> Self {
        Self { threshold: usize::MAX, ..Self::DEFAULT }
    }
}

impl Default for PrintOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

static OPTIONS: RwLock<PrintOptions> = RwLock::new(PrintOptions::DEFAULT);

/// The current print options.
pub fn printoptions() -> PrintOptions {
    *OPTIONS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Sets how all tensors of the process are printed.
pub fn set_printoptions(options: PrintOptions) {
    *OPTIONS.write().unwrap_or_else(PoisonError::into_inner) = options;
}

/// An element to print; floats of all dtypes are exact in `f64`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PrintedElement {
    Float(f64),
    Int(i64),
    Bool(bool),
}

/// Writes `tensor(...)`: the elements, the sizes if the brackets do not show them, then `suffixes`
/// (`"names=('N', 'C')"`, `"dtype=torch.float64"`, `"grad_fn=<MulBackward0>"`...), each on a new line if it
/// does not fit.
///
/// `get` is called once for each element that is shown.
pub(crate) fn write_tensor(
    f: &mut fmt::Formatter<'_>,
    sizes: &[usize],
    get: &dyn Fn(&[usize]) -> PrintedElement,
    suffixes: &[&str],
) -> fmt::Result {
    f.write_str(&tensor_text(sizes, get, suffixes, &printoptions()))
}

const PREFIX: &str = "tensor(";

fn tensor_text(
    sizes: &[usize],
    get: &dyn Fn(&[usize]) -> PrintedElement,
    suffixes: &[&str],
    options: &PrintOptions,
) -> String {
    let mut text = String::from(PREFIX);
    let empty = has(sizes, 0);
    if empty {
        text.push_str("[]");
    } else {
        Printer::new(sizes, get, options).push(&mut text);
    }
    let hidden = if empty { sizes.len() != 1 } else { options.edgeitems == 0 };
    let size = hidden.then(|| format!("size={}", tuple(sizes)));
    push_suffixes(&mut text, size.as_deref().into_iter().chain(suffixes.iter().copied()), options.linewidth);
    text.push(')');
    text
}

/// The text of a tensor without elements, with its sizes in their place.
pub(crate) fn without_elements(sizes: &[usize], suffixes: &[&str]) -> String {
    let (mut text, size) = (format!("{PREFIX}..."), format!("size={}", tuple(sizes)));
    let first = ["device='meta'", &size];
    push_suffixes(&mut text, first.into_iter().chain(suffixes.iter().copied()), printoptions().linewidth);
    text.push(')');
    text
}

/// Python's text of a tuple: `()`, `(3,)`, `(3, 4)`.
fn tuple(sizes: &[usize]) -> String {
    let items: Vec<_> = crate::list(sizes.iter().map(usize::to_string));
    format!("({}{})", crate::joined(&items, ", "), if items.len() == 1 { "," } else { "" })
}

fn push_suffixes<'a>(text: &mut String, suffixes: impl Iterator<Item = &'a str>, linewidth: usize) {
    // PyTorch counts two columns too many in the first line; we do the same to get the same line breaks.
    let mut column = text.lines().last().map_or(0, |line| line.chars().count()) + 2;
    for suffix in suffixes {
        let length = suffix.chars().count();
        if column + length + 2 > linewidth {
            text.push_str(",\n");
            push_spaces(text, PREFIX.len());
            column = PREFIX.len() + length;
        } else {
            text.push_str(", ");
            column += length + 2;
        }
        text.push_str(suffix);
    }
}

fn push_spaces(text: &mut String, n: usize) {
    text.extend(std::iter::repeat_n(' ', n));
}

/// The brackets and line breaks around the elements that are shown.
struct Printer<'a> {
    sizes: &'a [usize],
    options: &'a PrintOptions,
    summarize: bool,
    /// The text of each shown element, in row-major order, all with the same width.
    cells: std::vec::IntoIter<String>,
    width: usize,
}

impl<'a> Printer<'a> {
    fn new(sizes: &'a [usize], get: &dyn Fn(&[usize]) -> PrintedElement, options: &'a PrintOptions) -> Self {
        let numel = sizes.iter().fold(1, |n: usize, &size| n.saturating_mul(size));
        let summarize = numel > options.threshold;
        let mut printer = Self { sizes, options, summarize, cells: Vec::new().into_iter(), width: 0 };
        let mut elements = Vec::new();
        printer.collect(&mut Vec::with_capacity(sizes.len()), get, &mut elements);
        let format = Format::new(&elements, options);
        let cells: Vec<_> = crate::list(elements.into_iter().map(|element| format.cell(element)));
        (printer.cells, printer.width) = (cells.into_iter(), format.width);
        printer
    }

    /// The indices of a dim that are shown, and whether the two ranges leave any out.
    fn shown(&self, dim: usize) -> (Range<usize>, Range<usize>, bool) {
        let (size, edge) = (self.sizes[dim], self.options.edgeitems);
        if self.summarize && size > edge.saturating_mul(2) {
            (0..edge, size - edge..size, true)
        } else {
            (0..size, size..size, false)
        }
    }

    fn collect(
        &self,
        index: &mut Vec<usize>,
        get: &dyn Fn(&[usize]) -> PrintedElement,
        elements: &mut Vec<PrintedElement>,
    ) {
        if index.len() == self.sizes.len() {
            return elements.push(get(index));
        }
        let (head, tail, _) = self.shown(index.len());
        for i in head.chain(tail) {
            index.push(i);
            self.collect(index, get, elements);
            index.pop();
        }
    }

    fn push(mut self, text: &mut String) {
        self.push_dim(text, 0, PREFIX.len());
    }

    fn push_dim(&mut self, text: &mut String, dim: usize, indent: usize) {
        if dim == self.sizes.len() {
            text.extend(self.cells.next());
            return;
        }
        text.push('[');
        if dim + 1 == self.sizes.len() {
            self.push_vector(text, dim, indent);
        } else {
            self.push_slices(text, dim, indent);
        }
        text.push(']');
    }

    /// Writes elements one after another, in columns.
    fn push_vector(&mut self, text: &mut String, dim: usize, indent: usize) {
        let per_line = (self.options.linewidth.saturating_sub(indent) / (self.width + ", ".len())).max(1);
        let (head, tail, cut) = self.shown(dim);
        // Without an edge, the dots need no space before them.
        let dots = if head.is_empty() { "..." } else { " ..." };
        let cut_at = if cut { head.len() } else { usize::MAX };
        for item in 0..head.len() + usize::from(cut) + tail.len() {
            match item {
                0 => {}
                _ if item.is_multiple_of(per_line) => self.push_break(text, 1, indent),
                _ => text.push_str(", "),
            }
            if item == cut_at {
                text.push_str(dots);
            } else {
                text.extend(self.cells.next());
            }
        }
    }

    /// Writes slices one below another, with an extra empty line for each dim beyond two.
    fn push_slices(&mut self, text: &mut String, dim: usize, indent: usize) {
        let (head, tail, cut) = self.shown(dim);
        let cut_at = if cut { head.len() } else { usize::MAX };
        for item in 0..head.len() + usize::from(cut) + tail.len() {
            if item > 0 {
                self.push_break(text, self.sizes.len() - dim - 1, indent);
            }
            if item == cut_at {
                text.push_str("...");
            } else {
                self.push_dim(text, dim + 1, indent + 1);
            }
        }
    }

    fn push_break(&self, text: &mut String, lines: usize, indent: usize) {
        text.push(',');
        text.extend(std::iter::repeat_n('\n', lines));
        push_spaces(text, indent + 1);
    }
}

/// The format of all elements, chosen from those that are shown.
struct Format {
    precision: usize,
    /// All numbers are whole and are written as `1.`.
    whole: bool,
    /// Scientific notation.
    scientific: bool,
    width: usize,
}

impl Format {
    /// Scientific notation is for numbers that are large, small, or more than three orders of magnitude
    /// apart. Zeros and non-finite numbers are ignored, even for the width.
    fn new(elements: &[PrintedElement], options: &PrintOptions) -> Self {
        let counts = |x: f64| x.is_finite() && x != 0.0;
        let floats = || elements.iter().filter_map(|element| element.as_float()).filter(|&x| counts(x));
        let largest = floats().fold(0.0, |largest, x| x.abs().max(largest));
        let smallest = floats().fold(f64::INFINITY, |smallest, x| x.abs().min(smallest));
        let any = largest > 0.0;
        let called_for = largest / smallest > 1000.0 || largest > 1e8 || smallest < 1e-4;
        let mut format = Self {
            // An `f64` has at most 1074 digits after the decimal point; Rust's formatting allows at
            // most 65535.
            precision: options.precision.min(2000),
            whole: floats().all(|x| x.fract() == 0.0),
            scientific: any && options.sci_mode.unwrap_or(called_for),
            width: 1,
        };
        let sets_width = |element: &&PrintedElement| element.as_float().is_none_or(counts);
        format.width = elements.iter().filter(sets_width).map(|&x| format.text(x).len()).max().unwrap_or(1);
        format
    }

    fn cell(&self, element: PrintedElement) -> String {
        format!("{:>width$}", self.text(element), width = self.width)
    }

    fn text(&self, element: PrintedElement) -> String {
        match element {
            PrintedElement::Int(x) => x.to_string(),
            PrintedElement::Bool(true) => "True".into(),
            PrintedElement::Bool(false) => "False".into(),
            PrintedElement::Float(x) if x.is_nan() => "nan".into(),
            PrintedElement::Float(x) if x.is_infinite() => format!("{x}"),
            PrintedElement::Float(x) if self.scientific => self.scientific_text(x),
            PrintedElement::Float(x) if self.whole => format!("{x:.0}."),
            PrintedElement::Float(x) => format!("{x:.precision$}", precision = self.precision),
        }
    }

    /// `1.5000e-05`, as in C, where Rust writes `1.5000e-5`.
    fn scientific_text(&self, x: f64) -> String {
        let text = format!("{x:.precision$e}", precision = self.precision);
        match text.split_once('e') {
            Some((digits, power)) => match power.strip_prefix('-') {
                Some(power) => format!("{digits}e-{power:0>2}"),
                None => format!("{digits}e+{power:0>2}"),
            },
            None => text,
        }
    }
}

impl PrintedElement {
    fn as_float(&self) -> Option<f64> {
        match *self {
            Self::Float(x) => Some(x),
            Self::Int(_) | Self::Bool(_) => None,
        }
    }
}

/// The expected texts were printed by PyTorch 2.15 (`_tensor_str` and `_add_suffixes` of
/// `torch/_tensor_str.py`).
#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: PrintOptions = PrintOptions::DEFAULT;
    const NAN: f64 = f64::NAN;
    const INF: f64 = f64::INFINITY;

    /// Prints a tensor whose elements are given by their position in row-major order.
    fn print(
        options: PrintOptions,
        sizes: &[usize],
        element: impl Fn(usize) -> PrintedElement,
        suffixes: &[&str],
    ) -> String {
        let flat = |index: &[usize]| index.iter().zip(sizes).fold(0, |flat, (i, size)| flat * size + i);
        tensor_text(sizes, &|index| element(flat(index)), suffixes, &options)
    }

    fn count(i: usize) -> PrintedElement {
        PrintedElement::Int(i as i64)
    }

    #[test]
    fn floats() {
        let short = PrintOptions { precision: 2, ..DEFAULT };
        let no_digits = PrintOptions { precision: 0, ..DEFAULT };
        let powers = PrintOptions { sci_mode: Some(true), ..DEFAULT };
        let no_powers = PrintOptions { sci_mode: Some(false), ..DEFAULT };
        let rows: &[(PrintOptions, &[f64], &str)] = &[
            (DEFAULT, &[0.0, 0.0], "tensor([0., 0.])"),
            (DEFAULT, &[-0.0], "tensor([-0.])"),
            (DEFAULT, &[1.0, -2.0, 10.0], "tensor([ 1., -2., 10.])"),
            (DEFAULT, &[1.5, -2.25, 10.0], "tensor([ 1.5000, -2.2500, 10.0000])"),
            (DEFAULT, &[1.0, NAN, INF, -INF], "tensor([1., nan, inf, -inf])"),
            (DEFAULT, &[0.5, NAN, INF, -INF], "tensor([0.5000,    nan,    inf,   -inf])"),
            (DEFAULT, &[NAN, 0.0], "tensor([nan, 0.])"),
            (DEFAULT, &[1.0, 1000.0], "tensor([   1., 1000.])"),
            (DEFAULT, &[1.0, 0.0, 1001.0], "tensor([1.0000e+00, 0.0000e+00, 1.0010e+03])"),
            (DEFAULT, &[0.001, 1.5], "tensor([1.0000e-03, 1.5000e+00])"),
            (DEFAULT, &[9e-5, 5e-5], "tensor([9.0000e-05, 5.0000e-05])"),
            (DEFAULT, &[1e8, 1.5e8], "tensor([1.0000e+08, 1.5000e+08])"),
            (DEFAULT, &[0.03125, 0.09375, 0.15625], "tensor([0.0312, 0.0938, 0.1562])"),
            (DEFAULT, &[1e300, 5e-324], "tensor([1.0000e+300, 4.9407e-324])"),
            (short, &[1.23456789, 2.0], "tensor([1.23, 2.00])"),
            (no_digits, &[1.5, 2.5], "tensor([2, 2])"),
            (powers, &[1.5, 2.5], "tensor([1.5000e+00, 2.5000e+00])"),
            (no_powers, &[1e-7, 2.5], "tensor([0.0000, 2.5000])"),
        ];
        for &(options, x, expected) in rows {
            assert_eq!(print(options, &[x.len()], |i| PrintedElement::Float(x[i]), &[]), expected);
        }
    }

    #[test]
    fn integers_and_truth() {
        assert_eq!(
            print(DEFAULT, &[3], |i| PrintedElement::Int(5 - 7 * i as i64), &[]),
            "tensor([ 5, -2, -9])"
        );
        let truth = print(DEFAULT, &[2, 2], |i| PrintedElement::Bool(i == 2), &[]);
        assert_eq!(truth, "tensor([[False, False],\n        [ True, False]])");
    }

    #[test]
    fn no_dims_and_no_elements() {
        let float = |_| PrintedElement::Float(3.0);
        assert_eq!(print(DEFAULT, &[], float, &[]), "tensor(3.)");
        assert_eq!(print(DEFAULT, &[], count, &["names=()"]), "tensor(0, names=())");
        assert_eq!(print(DEFAULT, &[0, 3], float, &[]), "tensor([], size=(0, 3))");
        assert_eq!(print(DEFAULT, &[0], float, &["dtype=torch.int64"]), "tensor([], dtype=torch.int64)");
    }

    #[test]
    fn lines_and_slices() {
        let rows: &[(PrintOptions, &[usize], &[&str])] = &[
            (
                DEFAULT,
                &[30],
                &[
                    "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,",
                    "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])",
                ],
            ),
            (
                PrintOptions { linewidth: 14, ..DEFAULT },
                &[9],
                &["tensor([0, 1,", "        2, 3,", "        4, 5,", "        6, 7,", "        8])"],
            ),
            (
                DEFAULT,
                &[2, 2, 2],
                &["tensor([[[0, 1],", "         [2, 3]],", "", "        [[4, 5],", "         [6, 7]]])"],
            ),
            (DEFAULT, &[1, 2, 1, 2], &["tensor([[[[0, 1]],", "", "         [[2, 3]]]])"]),
            (DEFAULT, &[1001], &["tensor([   0,    1,    2,  ...,  998,  999, 1000])"]),
            (
                PrintOptions { threshold: 5, edgeitems: 1, ..DEFAULT },
                &[7, 2],
                &["tensor([[ 0,  1],", "        ...,", "        [12, 13]])"],
            ),
            (PrintOptions { threshold: 2, edgeitems: 0, ..DEFAULT }, &[4], &["tensor([...], size=(4,))"]),
        ];
        for &(options, sizes, expected) in rows {
            assert_eq!(print(options, sizes, count, &[]), expected.join("\n"));
        }
    }

    #[test]
    fn names_follow_the_last_bracket() {
        let zeros = print(DEFAULT, &[2, 3], |_| PrintedElement::Float(0.0), &["names=('N', 'C')"]);
        assert_eq!(zeros, "tensor([[0., 0., 0.],\n        [0., 0., 0.]], names=('N', 'C'))");

        let expected = [
            "tensor([[0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500, 0.8750, 1.0000,",
            "         1.1250, 1.2500, 1.3750],",
            "        [1.5000, 1.6250, 1.7500, 1.8750, 2.0000, 2.1250, 2.2500, 2.3750, 2.5000,",
            "         2.6250, 2.7500, 2.8750]], names=('N', 'C'))",
        ];
        let eighths =
            print(DEFAULT, &[2, 12], |i| PrintedElement::Float(i as f64 / 8.0), &["names=('N', 'C')"]);
        assert_eq!(eighths, expected.join("\n"));

        let expected = [
            "tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9700e+02, 1.9800e+02,",
            "         1.9900e+02],",
            "        [2.0000e+02, 2.0100e+02, 2.0200e+02,  ..., 3.9700e+02, 3.9800e+02,",
            "         3.9900e+02],",
            "        [4.0000e+02, 4.0100e+02, 4.0200e+02,  ..., 5.9700e+02, 5.9800e+02,",
            "         5.9900e+02],",
            "        ...,",
            "        [1.0000e+03, 1.0010e+03, 1.0020e+03,  ..., 1.1970e+03, 1.1980e+03,",
            "         1.1990e+03],",
            "        [1.2000e+03, 1.2010e+03, 1.2020e+03,  ..., 1.3970e+03, 1.3980e+03,",
            "         1.3990e+03],",
            "        [1.4000e+03, 1.4010e+03, 1.4020e+03,  ..., 1.5970e+03, 1.5980e+03,",
            "         1.5990e+03]], names=('batch', 'pixels'), grad_fn=<MulBackward0>)",
        ];
        let suffixes = ["names=('batch', 'pixels')", "grad_fn=<MulBackward0>"];
        let edges = print(DEFAULT, &[8, 200], |i| PrintedElement::Float(i as f64), &suffixes);
        assert_eq!(edges, expected.join("\n"));
    }

    #[test]
    fn suffixes_go_to_a_new_line_where_they_do_not_fit() {
        let suffixes = ["names=('a_dim_with_a_long_name',)", "requires_grad=True"];
        let text = print(DEFAULT, &[3], |i| PrintedElement::Float(i as f64 + 1.5), &suffixes);
        let expected = [
            "tensor([1.5000, 2.5000, 3.5000], names=('a_dim_with_a_long_name',),",
            "       requires_grad=True)",
        ];
        assert_eq!(text, expected.join("\n"));
        // The longest suffix that PyTorch leaves on the line, and one character more.
        let one = |suffix: &str| print(DEFAULT, &[], |_| PrintedElement::Float(1.0), &[suffix]);
        let (fits, too_long) = ("x".repeat(67), "x".repeat(68));
        assert_eq!(one(&fits), format!("tensor(1., {fits})"));
        assert_eq!(one(&too_long), format!("tensor(1.,\n       {too_long})"));
    }

    #[test]
    fn options_are_those_of_the_process() {
        struct Count(usize);
        impl fmt::Display for Count {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_tensor(f, &[self.0], &|index| count(index[0]), &[])
            }
        }
        // Other tests print at the same time, so change the options only in a way that they cannot see.
        let all_of_1001 = PrintOptions { threshold: 1001, ..DEFAULT };
        assert!(Count(1001).to_string().contains("..."));
        set_printoptions(all_of_1001);
        let (text, options) = (Count(1001).to_string(), printoptions());
        set_printoptions(DEFAULT);
        assert_eq!((text.contains("..."), options), (false, all_of_1001));
        let many_digits = PrintOptions { precision: usize::MAX, ..DEFAULT };
        assert!(print(many_digits, &[], |_| PrintedElement::Float(5e-324), &[]).ends_with("00e-324)"));
        assert_eq!(print(PrintOptions::full(), &[5000], count, &[]).matches(',').count(), 4999);
        assert!(print(PrintOptions::short(), &[5000], count, &[]).contains("[   0,    1,  ..., 4998, 4999]"));
    }
}
