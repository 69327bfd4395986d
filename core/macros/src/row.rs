//! The grammar of a row. No other file knows how ops are written.
//!
//! ```text
//! table    = NAME ["of" PREFIX] ";" ["//!" heading] row*
//! row      = docs (NAME [NAME_] | NAME_ | NAME1d (docs NAME2d)+)
//!            "(" [args ";"] [tensors] [";" args] ")" ["->" outputs]
//!            ["on" class+] ["names" rules] ["constant" | "refused"] layer* (";" | code | [loops] body)
//! tensors  = tensor ("," tensor)*
//! tensor   = "x" | "mut" "x" | "weight" "?" | "[" "tensors" "]" | "mask" ":" "bool"
//!          | "value" ":" "Operand" ["of" "f64"]
//! args     = arg ("," arg)*
//! arg      = NAME ":" TYPE ["of" NAME ("," NAME)*] [("=" | "or") default]
//! outputs  = "bool" | "(" NAME ("," NAME)* [";" NAME ("," NAME)*] ")" | STRUCT "{" NAME ("," NAME)* "}"
//!          | "[" NAME "]"
//! layer    = "layer" NAME ["(" setting ("," setting)* ")"]
//! setting  = NAME ["=" value | "if" CHECK]
//! class    = "floats" | "integers" | "bool"
//! rules    = see `names.rs`
//! code     = "=>" (expression ";" | block)
//! loops    = "wide" | "halves" | "long" | "plain" | "scalar"
//! body     = "{" entry ("," entry)* "}"
//! entry    = ("float" | "int" | "boolean" | "any" | "dtypes" | "before" | "like") ":" expression
//! ```
//!
//! A single name that ends in `_` is an op that has only an in-place form and writes to its `mut x`.
//! Arguments before the tensors come first in the method too, after `self`:
//! `einsum (equation: Text; [operands])`. An argument with `= default` is a field of the option struct.
//! An argument with `or default` is required in Rust; its default applies to calls by name. A number passed
//! as an `Operand` gets its dtype from the first tensor; with `of f64`, it keeps all its digits. An op whose
//! first tensor is an `Operand` is not a method: `Tensor::normal(0.0, &std)`.
//!
//! The word before a body says how its `float` formula is compiled, for `f32` and `f64` alike. `wide`, the
//! default, is a loop for each set of vectors: for functions that programs wait for. `halves` adds loops
//! on half types, for the most frequent ones. `long` is the same for formulas of many instructions, such
//! as `exp`: such a loop takes whole vectors only. `plain` is one loop, for the build target: for rare
//! functions of a few instructions, such as `isnan`. `scalar` is one function of an `f64`, called for each
//! element: for rare functions that call others, such as `lgamma`. Integers and `bool` have one loop each,
//! and an `any` formula, which returns one of its inputs, one for each width of an element.
//!
//! `constant` and `refused` are for composed ops, which otherwise have the derivative of the ops that they
//! call. `constant` means that the result cannot have a gradient, and `refused` that the op is an error for a
//! tensor that requires one.
//!
//! Functions over different numbers of dims share a row: `conv1d`, then the doc and the name of `conv2d`, and
//! so on. They call `kernels::conv`, whose first argument is the name and the number of dims,
//! `("conv2d", 2)`.
//!
//! A function, or a composed op, that fits a few lines has its code in its row:
//! `softsign (x) .. => x.div(x.abs()?.add(1)?);`. The code sees the tensors and the arguments of the row, as a
//! function in `kernels` would get them, its own name as `op`, and in a row for several numbers of dims their
//! number as `rank`.
//!
//! The names of functions in the registry start with `nn.`, or with the prefix of the table, which errors show
//! too: `functional! { transform of fft; .. }`.
//!
//! A function can have layers: `layer SoftMarginLoss`. An option in the parentheses is an argument of the
//! layer's `new`; with `= value` it is fixed, and with `if CHECK`, `new` calls `CHECK(layer, name, value)?`.

pub(crate) mod parse;

use crate::names::NameRules;
pub(crate) use parse::{PLAIN_TYPES, TYPES, expect, here, no_comma, no_keyword, parse_layers};
use proc_macro2::{Ident, Span, TokenStream};
use syn::{Attribute, Error, Result};

/// An op.
#[derive(Clone)]
pub(crate) struct OpRow {
    /// The lines of the doc comment, as attributes.
    pub(crate) docs: Vec<Attribute>,
    pub(crate) name: Ident,
    /// The functions over other numbers of dims, with their docs.
    pub(crate) others: Vec<(Vec<Attribute>, Ident)>,
    pub(crate) in_place: Option<Ident>,
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) args: Vec<Arg>,
    pub(crate) outputs: Outputs,
    /// The classes of dtypes that the op takes; all dtypes if this is empty.
    pub(crate) classes: Vec<Ident>,
    /// The rule of names, if the row says it.
    pub(crate) names: Option<NameRules>,
    /// `constant` or `refused`, in the row of a composed op.
    pub(crate) gradient: Option<Ident>,
    /// The layers that call the op.
    pub(crate) layers: Vec<Layer>,
    /// How the loops on floats are compiled: one of [`LOOPS`], or the first of them.
    pub(crate) loops: Option<Ident>,
    pub(crate) body: Option<Body>,
    /// The code of a function or of a composed op; without, it is a function in `kernels`.
    pub(crate) code: Option<TokenStream>,
}

/// A tensor that an op takes.
#[derive(Clone)]
pub(crate) struct Tensor {
    pub(crate) name: Ident,
    pub(crate) kind: TensorKind,
    /// `Operand of f64`: a number keeps all its digits, regardless of the first tensor.
    pub(crate) exact: bool,
}

/// The kinds of tensors that can be passed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TensorKind {
    /// `x`: a tensor; in an elementwise op also a number, unless it is the first.
    Plain,
    /// `mut x`: a tensor that the kernel writes to.
    Written,
    /// `weight?`: a tensor or nothing.
    Optional,
    /// `[tensors]`: any number of tensors.
    List,
    /// `mask: bool`: a `bool` tensor; the others can have any dtype.
    Mask,
    /// `value: Operand`: a tensor or a number.
    Operand,
}

/// An argument that is not a tensor.
#[derive(Clone)]
pub(crate) struct Arg {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    /// The tensors in which it is looked up; the first tensor of the row if this is empty.
    pub(crate) of: Vec<Ident>,
    pub(crate) default: Option<TokenStream>,
    /// `or default`: required in Rust.
    pub(crate) said: bool,
    /// Whether it comes before the tensors.
    pub(crate) leads: bool,
}

/// The type of an argument: `Dim`, or `Option<f64>`.
#[derive(Clone)]
pub(crate) struct Type {
    pub(crate) name: Ident,
    pub(crate) optional: bool,
}

/// A layer that calls the function of a row.
#[derive(Clone)]
pub(crate) struct Layer {
    pub(crate) name: Ident,
    pub(crate) settings: Vec<(Ident, Setting)>,
}

/// How a layer differs from its function in an argument.
#[derive(Clone)]
pub(crate) enum Setting {
    /// `value`: an option of the function is an argument of `new`.
    Required,
    /// `mode = PadMode::Reflect`: the argument is fixed.
    Fixed(TokenStream),
    /// `p if probability`: `new` checks the argument.
    Checked(Ident),
}

/// The outputs of an op.
#[derive(Clone)]
pub(crate) struct Outputs {
    pub(crate) form: Form,
    /// The outputs that are returned; a single output without a name is called `y`.
    pub(crate) names: Vec<Ident>,
    /// The outputs that are saved for the gradient and not returned.
    pub(crate) kept: Vec<Ident>,
}

/// The form in which outputs are returned.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Form {
    One,
    /// A single `bool` tensor.
    Truth,
    Tuple,
    /// A struct with a field for each output.
    Struct(Ident),
    /// Any number of outputs.
    List,
}

/// The body of an elementwise op: formulas by class of dtype, and other entries for its kernel.
#[derive(Clone)]
pub(crate) struct Body {
    pub(crate) entries: Vec<(Ident, TokenStream)>,
}

impl OpRow {
    /// Checks the conditions for generating methods from the row.
    fn check_form(&self) -> Result<()> {
        let OpRow { name, tensors, args, outputs, in_place, .. } = self;
        let fail = |at: &Ident, message: String| Err(self.error(at.span(), message));
        let mut seen: Vec<&Ident> = Vec::new();
        for each in tensors.iter().map(|tensor| &tensor.name).chain(args.iter().map(|arg| &arg.name)) {
            if seen.contains(&each) {
                return fail(each, format!("`{each}` occurs twice among its tensors and arguments"));
            }
            seen.push(each);
        }
        let mut made: Vec<&Ident> = Vec::new();
        for output in outputs.names.iter().chain(&outputs.kept) {
            if made.contains(&output) {
                return fail(output, format!("two outputs are called `{output}`"));
            }
            if seen.contains(&output) {
                return fail(output, format!("an output and an input are called `{output}`"));
            }
            made.push(output);
        }
        if let Some(first) = tensors.first().filter(|first| {
            first.kind == TensorKind::Optional
                || tensors.len() == 1 && matches!(first.kind, TensorKind::Operand | TensorKind::Mask)
        }) {
            return fail(&first.name, "the first tensor must be one: the method is called on it".into());
        }
        if let Some(other) = tensors.iter().skip(1).find(|tensor| tensor.kind == TensorKind::Written) {
            return fail(&other.name, "only the first tensor can be written to".into());
        }
        if self.is_in_place_only() {
            if in_place.is_some() || tensors.first().is_none_or(|first| first.kind != TensorKind::Written) {
                return fail(name, "an op that exists in place only takes a `mut` tensor first".into());
            }
            if outputs.names.len() != 1 || outputs.form != Form::One {
                return fail(
                    name,
                    "an op that exists in place only has no outputs besides what it writes to".into(),
                );
            }
        }
        if let Some(in_place) = in_place.as_ref().filter(|_| outputs.names.len() != 1 || tensors.is_empty()) {
            return fail(in_place, "only an op of one tensor and one output has an in-place form".into());
        }
        if let Some(in_place) =
            in_place.as_ref().filter(|_| args.iter().any(|arg| arg.ty.is("Cast")) && !self.casts_alone())
        {
            return fail(in_place, "beside a `Cast` an op with an in-place form has no other option".into());
        }
        let mask_first = tensors.first().is_some_and(|first| first.kind == TensorKind::Mask);
        if let Some(in_place) = in_place.as_ref().filter(|_| mask_first) {
            return fail(
                in_place,
                "an op on a mask has no in-place form, as its values are not those of a mask".into(),
            );
        }
        if self.by_element() {
            if outputs.names.len() + outputs.kept.len() != 1 {
                return fail(name, "an op by element has one output".into());
            }
            if let Some(tensor) =
                tensors.iter().find(|tensor| !matches!(tensor.kind, TensorKind::Plain | TensorKind::Mask))
            {
                return fail(&tensor.name, "an op by element takes tensors and masks of `bool` alone".into());
            }
        }
        Ok(())
    }

    /// Checks the other rules for rows.
    fn check(&self) -> Result<()> {
        let OpRow { name, body, classes, .. } = self;
        let fail = |at: &Ident, message: String| Err(self.error(at.span(), message));
        self.check_names()?;
        if let Some(body) = body {
            if let Some(class) = classes.first() {
                let message =
                    "an op by element says its dtypes by its formulas and by `dtypes:`, not by `on`";
                return fail(class, message.into());
            }
            let like = body.entry("like").is_some();
            let mut formulas =
                body.entries.iter().map(|(entry, _)| entry).filter(|entry| {
                    ["float", "int", "boolean", "any"].iter().any(|formula| entry == formula)
                });
            if !like && formulas.clone().next().is_none() {
                let message = "expected a formula: `{ float: x.exp() }`, or `int:`, `boolean:`, `any:`";
                return fail(name, message.into());
            }
            if body.entry("any").is_some()
                && let Some(other) = formulas.find(|entry| *entry != "any")
            {
                return fail(other, "`any` is the formula of all dtypes: there can be no other".into());
            }
            if let Some(loops) = self.loops.as_ref().filter(|_| body.entry("float").is_none()) {
                return fail(loops, format!("`{loops}` is about a formula on floats, and there is none"));
            }
        }
        Ok(())
    }

    /// The lines of the doc comment.
    pub(crate) fn doc_lines(&self) -> Vec<String> {
        let line = |attribute: &Attribute| match &attribute.meta {
            syn::Meta::NameValue(syn::MetaNameValue {
                value: syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }),
                ..
            }) => Some(text.value()),
            _ => None,
        };
        self.docs.iter().filter_map(line).collect()
    }

    /// An error that names the op.
    pub(crate) fn error(&self, at: Span, message: impl std::fmt::Display) -> Error {
        Error::new(at, format!("`{}`: {message}", self.name))
    }

    /// Whether it has only an in-place form, like `fill_`.
    pub(crate) fn is_in_place_only(&self) -> bool {
        self.in_place.is_none() && self.name.to_string().ends_with('_')
    }

    /// Whether its first tensor is a list of them.
    pub(crate) fn takes_list(&self) -> bool {
        self.tensors.first().is_some_and(|first| first.kind == TensorKind::List)
    }

    /// Whether it writes to its first tensor.
    pub(crate) fn writes(&self) -> bool {
        self.tensors.first().is_some_and(|first| first.kind == TensorKind::Written)
    }

    /// Whether it is an elementwise op, whose kernel is made of formulas.
    pub(crate) fn by_element(&self) -> bool {
        self.body.is_some()
    }

    /// Whether it is a reduction over dims.
    pub(crate) fn reduces(&self) -> bool {
        self.args.iter().any(|arg| arg.ty.is("Reduced"))
    }

    /// Whether this tensor can be a number.
    pub(crate) fn takes_number(&self, tensor: &Tensor) -> bool {
        let first = self.tensors.first().is_some_and(|first| first.name == tensor.name);
        tensor.kind == TensorKind::Operand || self.by_element() && !first && tensor.kind == TensorKind::Plain
    }

    /// The fields of the option struct: optional tensors, and arguments that can be left out. A dim is always
    /// required in Rust, so its default applies only to calls by name.
    pub(crate) fn options(&self) -> (Vec<&Tensor>, Vec<&Arg>) {
        let tensors = self.tensors.iter().filter(|tensor| tensor.kind == TensorKind::Optional).collect();
        (tensors, self.args.iter().filter(|arg| arg.is_option()).collect())
    }

    /// Whether a cast is the only option. Then the in-place form, which keeps its dtype, has no options.
    pub(crate) fn casts_alone(&self) -> bool {
        let (tensors, args) = self.options();
        tensors.is_empty() && args.iter().all(|arg| arg.ty.is("Cast"))
    }

    /// Whether there are any options.
    pub(crate) fn has_options(&self) -> bool {
        let (tensors, args) = self.options();
        tensors.len() + args.len() > 0
    }
}

/// The name of a function over some number of dims: `conv2d` is `conv` over 2.
pub(crate) struct Ranked {
    pub(crate) kernel: Ident,
    pub(crate) dims: usize,
}

impl Ranked {
    fn of(name: &Ident) -> Option<Ranked> {
        let text = name.to_string();
        let kernel = text.strip_suffix('d')?;
        let dims = kernel.chars().last()?.to_digit(10)? as usize;
        let kernel = kernel.trim_end_matches(|c: char| c.is_ascii_digit());
        Some(Ranked { kernel: Ident::new(kernel, name.span()), dims })
    }
}

impl OpRow {
    /// The kernel and the number of dims of a row that several functions share.
    pub(crate) fn ranked(&self) -> Option<Ranked> {
        if self.others.is_empty() { None } else { Ranked::of(&self.name) }
    }
}

impl Arg {
    /// Whether it is a field of the option struct.
    pub(crate) fn is_option(&self) -> bool {
        self.ty.is("Cast")
            || self.default.is_some()
                && !self.said
                && !["Dim", "Dims", "Reduced", "Matrix", "Place"].iter().any(|ty| self.ty.is(ty))
    }
}

impl Type {
    pub(crate) fn is(&self, name: &str) -> bool {
        !self.optional && self.name == name
    }

    /// The type as Rust code.
    pub(crate) fn text(&self) -> String {
        if self.optional { format!("Option<{}>", self.name) } else { self.name.to_string() }
    }
}

impl Outputs {
    /// A single output without a name.
    fn one(form: Form) -> Outputs {
        Outputs { form, names: vec![Ident::new("y", Span::call_site())], kept: Vec::new() }
    }

    /// Whether its single output is called `y` because the row gives no name.
    fn is_unnamed(&self) -> bool {
        matches!(self.form, Form::One | Form::Truth) && self.kept.is_empty() && self.names[0] == "y"
    }

    /// The number of tensors that the kernel returns.
    pub(crate) fn count(&self) -> usize {
        self.names.len() + self.kept.len()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Ident> {
        self.names.iter().chain(&self.kept)
    }
}

impl Body {
    /// The op whose loops the row reuses: `like: maximum`.
    pub(crate) fn like(&self) -> Option<Ident> {
        syn::parse2(self.entry("like")?.clone()).ok()
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&TokenStream> {
        self.entries.iter().find(|(entry, _)| entry == name).map(|(_, value)| value)
    }
}

/// A table: its name, its rows, and the errors in it.
pub(crate) struct OpTable {
    pub(crate) name: Ident,
    /// What the names of its functions start with in the registry, if not with `nn`.
    pub(crate) prefix: Option<Ident>,
    /// The `//!` lines before the rows: the heading of the methods in their documentation.
    pub(crate) heading: Vec<Attribute>,
    pub(crate) rows: Vec<OpRow>,
    pub(crate) errors: Vec<Error>,
}

impl OpTable {
    /// Removes the rows that do not pass a check, with an error at the name of each.
    pub(crate) fn keep(&mut self, check: impl Fn(&OpRow) -> std::result::Result<(), &'static str>) {
        let errors = &mut self.errors;
        self.rows.retain(|row| {
            let failed = check(row).map_err(|message| row.error(row.name.span(), message)).err();
            let passes = failed.is_none();
            errors.extend(failed);
            passes
        });
    }
}
