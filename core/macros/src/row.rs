//! The grammar of a row. No other file knows how ops are written.
//!
//! ```text
//! table    = NAME ";" ["//!" heading] row*
//! row      = docs (NAME [NAME_] | NAME_ | NAME1d (docs NAME2d)+)
//!            "(" [args ";"] [tensors] [";" args] ")" ["->" outputs]
//!            ["on" class+] ["names" "RULE"] ["constant" | "refused"] layer* (";" | code | [loops] body)
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
//! code     = "=>" (expression ";" | block)
//! loops    = "wide" | "plain" | "scalar"
//! body     = "{" entry ("," entry)* "}"
//! entry    = ("float" | "int" | "boolean" | "any" | "dtypes" | "before" | "like") ":" expression
//! ```
//!
//! A single name that ends in `_` is an op that has only an in-place form and writes to its `mut x`.
//! Arguments before the tensors come first in the method too, after `self`:
//! `einsum (equation: Equation; [operands])`. An argument with `= default` is a field of the option struct.
//! An argument with `or default` is required in Rust; its default applies to calls by name. A number passed
//! as an `Operand` gets its dtype from the first tensor; with `of f64`, it keeps all its digits. An op whose
//! first tensor is an `Operand` is not a method: `Tensor::normal(0.0, &std)`.
//!
//! The word before a body says how its `float` formula is compiled, for `f32` and `f64` alike. `wide`, the
//! default, is a loop for each set of vectors: for functions that programs wait for. `plain` is one loop, for
//! the build target: for rare functions of a few instructions, such as `isnan`. `scalar` is one function of
//! an `f64`, called for each element: for rare functions that call others, such as `lgamma`. Integers and
//! `bool` have one loop each, and an `any` formula, which returns one of its inputs, one for each width of
//! an element.
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
//! A function can have layers: `layer SoftMarginLoss`. An option in the parentheses is an argument of the
//! layer's `new`; with `= value` it is fixed, and with `if CHECK`, `new` calls `CHECK(layer, name, value)?`.

use crate::derivative::nearest;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative;
use syn::parse::{Parse, ParseStream};
use syn::{AttrStyle, Attribute, Error, LitStr, Result, Token, braced, bracketed, parenthesized, token};

/// An op.
#[derive(Clone)]
pub(crate) struct Row {
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
    /// The name inference rule.
    pub(crate) rule: Option<LitStr>,
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

/// The words that can start an entry of a body.
const ENTRIES: [&str; 7] = ["float", "int", "boolean", "any", "dtypes", "before", "like"];
/// The words for how loops on floats are compiled.
const LOOPS: [&str; 3] = ["wide", "plain", "scalar"];
const CLASSES: [&str; 3] = ["floats", "integers", "bool"];

/// Parses a row, and returns whether it was read to its end. If there is an error after the parentheses, the
/// row has what was understood, so that its methods exist; the error goes to `errors`.
pub(crate) fn parse_row(input: ParseStream<'_>, errors: &mut Vec<Error>) -> Result<(Row, bool)> {
    let docs = input.call(Attribute::parse_outer)?;
    no_keyword(input)?;
    let name: Ident = input.parse().map_err(|error| {
        Error::new(error.span(), "expected the row of an op, as `exp exp_ (x) { float: x.exp() }`")
    })?;
    if docs.is_empty() {
        errors
            .push(Error::new(name.span(), format!("op `{name}` has no doc: write `/// ...` above its row")));
    }
    let mut in_place: Option<Ident> = if input.peek(syn::Ident) { Some(input.parse()?) } else { None };
    let mut others = Vec::new();
    while Ranked::of(&name).is_some() && input.peek(Token![#]) {
        others.push((input.call(Attribute::parse_outer)?, input.parse()?));
    }
    if let Some(name_) = in_place.as_mut().filter(|name_| **name_ != format!("{name}_")) {
        let message = format!("the in-place form of `{name}` is called `{name}_`, not `{name_}`");
        errors.push(Error::new(name_.span(), message));
        *name_ = Ident::new(&format!("{name}_"), name_.span());
    }
    if !input.peek(token::Paren) {
        let message = format!("`{name}`: expected `(` and its tensors, as `{name} (x; dim: Dim)`");
        return Err(here(input, message));
    }
    let inside;
    parenthesized!(inside in input);
    let mut args = parse_leading(&inside, &name, errors)?;
    let tensors = parse_tensors(&inside, &name)?;
    if inside.parse::<Option<Token![;]>>()?.is_some() {
        args.extend(parse_args(&inside, &name, &tensors, errors)?);
    }
    let mut row = Row {
        docs,
        name,
        others,
        in_place,
        tensors,
        args,
        outputs: Outputs::one(Form::One),
        classes: Vec::new(),
        rule: None,
        gradient: None,
        layers: Vec::new(),
        loops: None,
        body: None,
        code: None,
    };
    let has_body = skip_row(&input.fork());
    let understood = parse_result(input, &mut row);
    row.check_form()?;
    let whole = understood.is_ok();
    match understood {
        Ok(()) => errors.extend(row.check().err()),
        Err(error) => {
            errors.push(error);
            row.body = has_body.then(|| Body { entries: Vec::new() });
        }
    }
    Ok((row, whole))
}

/// Parses the part of a row after its parentheses.
fn parse_result(input: ParseStream<'_>, row: &mut Row) -> Result<()> {
    let name = row.name.clone();
    row.outputs = parse_outputs(input, &name)?;
    if row.outputs.is_unnamed() && row.tensors.iter().any(|tensor| tensor.name == "y") {
        row.outputs.names = vec![Ident::new("result", Span::call_site())];
    }
    row.classes = parse_classes(input, &name)?;
    if word(input, "names") {
        row.rule = Some(input.parse().map_err(|error: Error| {
            let message = format!("`{name}`: expected the rule of its names, as \"keeps input names\"");
            Error::new(error.span(), message)
        })?);
    }
    row.gradient = match word(input, "constant") {
        true => Some(Ident::new("constant", name.span())),
        false => word(input, "refused").then(|| Ident::new("refused", name.span())),
    };
    row.layers = parse_layers(input, row)?;
    row.code = parse_code(input, &name)?;
    if row.code.is_some() {
        return Ok(());
    }
    row.loops = parse_loops(input, &name)?;
    row.body = if input.peek(token::Brace) { Some(parse_body(input, &name)?) } else { None };
    if input.parse::<Option<Token![;]>>()?.is_none() && row.body.is_none() {
        let message = format!(
            "`{name}`: expected `-> ..`, `on ..`, `names \"..\"`, `constant`, `layer ..`, `=> ..`, `{{ float: .. }}` or `;`, in this order"
        );
        return Err(here(input, message));
    }
    Ok(())
}

/// Skips to the doc comment of the next row. Returns whether it skipped a body.
fn skip_row(input: ParseStream<'_>) -> bool {
    let (mut body, mut rule) = (false, false);
    while !input.is_empty() && !input.peek(Token![#]) {
        body |= input.peek(token::Brace);
        rule |= input.cursor().ident().is_some_and(|(word, _)| word == "names");
        if input.parse::<TokenTree>().is_err() {
            break;
        }
    }
    body && !rule
}

/// Returns an error if the next token is a keyword instead of the name of an op.
pub(crate) fn no_keyword(input: ParseStream<'_>) -> Result<()> {
    if input.peek(syn::Ident) || !input.peek(Ident::peek_any) {
        return Ok(());
    }
    let word = input.call(Ident::parse_any)?;
    let message = format!("`{word}` is a keyword of Rust: an op cannot have this name");
    Err(Error::new(word.span(), message))
}

impl Row {
    /// Checks the conditions for generating methods from the row.
    fn check_form(&self) -> Result<()> {
        let Row { name, tensors, args, outputs, in_place, .. } = self;
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
        let Row { name, body, rule, classes, .. } = self;
        let fail = |at: &Ident, message: String| Err(self.error(at.span(), message));
        if rule.is_none() && body.is_none() {
            let message = "expected `names \"..\"`, the rule of the names of its result, before the `;`";
            return fail(name, message.into());
        }
        if let Some(body) = body {
            if let Some(class) = classes.first() {
                let message =
                    "an op by element says its dtypes by its formulas and by `dtypes:`, not by `on`";
                return fail(class, message.into());
            }
            if let Some(rule) = rule {
                let message =
                    format!("an op by element has no `names`: its rule is \"{}\"", self.rule_by_element());
                return Err(self.error(rule.span(), message));
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

    /// The name rule of the row, or that of elementwise ops.
    pub(crate) fn rule_text(&self) -> String {
        self.rule.as_ref().map_or_else(|| self.rule_by_element().into(), LitStr::value)
    }

    /// The name rule of elementwise ops.
    fn rule_by_element(&self) -> &'static str {
        if self.tensors.len() == 1 { "keeps input names" } else { "unifies names from inputs" }
    }

    /// An error that names the op.
    pub(crate) fn error(&self, at: Span, message: impl std::fmt::Display) -> Error {
        Error::new(at, format!("`{}`: {message}", self.name))
    }

    /// Whether it has only an in-place form, like `fill_`.
    pub(crate) fn is_in_place_only(&self) -> bool {
        self.in_place.is_none() && self.name.to_string().ends_with('_')
    }

    /// Whether it writes to its first tensor.
    pub(crate) fn writes(&self) -> bool {
        self.tensors.first().is_some_and(|first| first.kind == TensorKind::Written)
    }

    /// Whether it is an elementwise op, whose kernel is made of formulas.
    pub(crate) fn by_element(&self) -> bool {
        self.body.is_some()
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

impl Row {
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
                && !["Dim", "Dims", "Reduced", "Place"].iter().any(|ty| self.ty.is(ty))
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

/// An error at the next token.
pub(crate) fn here(input: ParseStream<'_>, message: impl std::fmt::Display) -> Error {
    Error::new(input.span(), message)
}

/// The error for a missing comma before the next token.
pub(crate) fn no_comma(input: ParseStream<'_>, op: &Ident) -> Error {
    let next = input.cursor().ident().map_or_else(String::new, |(next, _)| format!(" before `{next}:`"));
    here(input, format!("`{op}`: expected `,`{next}"))
}

/// Consumes the word if it comes next.
fn word(input: ParseStream<'_>, word: &str) -> bool {
    let next = input.cursor().ident().is_some_and(|(ident, _)| ident == word);
    next && input.parse::<Ident>().is_ok()
}

/// Parses arguments before the tensors: a name with a type that is not a tensor's.
fn parse_leading(input: ParseStream<'_>, op: &Ident, errors: &mut Vec<Error>) -> Result<Vec<Arg>> {
    let ahead = input.fork();
    let typed = ahead.parse::<Ident>().is_ok() && ahead.parse::<Token![:]>().is_ok();
    let Some(ty) =
        ahead.cursor().ident().map(|(ty, _)| ty).filter(|ty| typed && ty != "bool" && ty != "Operand")
    else {
        return Ok(Vec::new());
    };
    let mut args = parse_args(input, op, &[], errors)?;
    if input.parse::<Option<Token![;]>>()?.is_none() {
        let message = format!(
            "`{op}`: `{ty}` is not a kind of tensor, which are `bool` and `Operand`; arguments that are not tensors follow a `;`, \
             or are followed by one"
        );
        return Err(Error::new(ty.span(), message));
    }
    args.iter_mut().for_each(|arg| arg.leads = true);
    Ok(args)
}

fn parse_tensors(input: ParseStream<'_>, op: &Ident) -> Result<Vec<Tensor>> {
    let mut tensors = Vec::new();
    while !input.is_empty() && !input.peek(Token![;]) {
        let tensor = if input.peek(token::Bracket) {
            let inside;
            bracketed!(inside in input);
            Tensor { name: inside.parse()?, kind: TensorKind::List, exact: false }
        } else if input.parse::<Option<Token![mut]>>()?.is_some() {
            Tensor { name: input.parse()?, kind: TensorKind::Written, exact: false }
        } else {
            let name: Ident = input.parse().map_err(|error| {
                let message = format!(
                    "`{op}`: expected a tensor: `x`, `mut x`, `weight?`, `[tensors]`, `mask: bool` or `value: Operand`"
                );
                Error::new(error.span(), message)
            })?;
            let kind = if input.parse::<Option<Token![?]>>()?.is_some() {
                TensorKind::Optional
            } else if input.parse::<Option<Token![:]>>()?.is_some() {
                let ty: Ident = input.parse()?;
                match ty.to_string().as_str() {
                    "bool" => TensorKind::Mask,
                    "Operand" => TensorKind::Operand,
                    _ => {
                        let message = format!(
                            "`{op}`: `{ty}` is not a kind of tensor, which are `bool` and `Operand`; \
                             arguments that are not tensors follow a `;`"
                        );
                        return Err(Error::new(ty.span(), message));
                    }
                }
            } else {
                TensorKind::Plain
            };
            let exact = kind == TensorKind::Operand && word(input, "of");
            if exact && !word(input, "f64") {
                return Err(
                    input.error(format!("`{op}`: expected `Operand of f64`: a number with all its digits"))
                );
            }
            Tensor { name, kind, exact }
        };
        tensors.push(tensor);
        if input.parse::<Option<Token![,]>>()?.is_none() {
            break;
        }
    }
    if !input.is_empty() && !input.peek(Token![;]) {
        return Err(here(
            input,
            format!("`{op}`: expected `,` and another tensor, or `;` and the arguments"),
        ));
    }
    Ok(tensors)
}

fn parse_args(
    input: ParseStream<'_>,
    op: &Ident,
    tensors: &[Tensor],
    errors: &mut Vec<Error>,
) -> Result<Vec<Arg>> {
    let mut args = Vec::new();
    while !input.is_empty() && !input.peek(Token![;]) {
        let name: Ident = input.parse().map_err(|error| {
            Error::new(
                error.span(),
                format!("`{op}`: expected an argument, as `dim: Dim` or `eps: f64 = 1e-5`"),
            )
        })?;
        if input.parse::<Option<Token![:]>>()?.is_none() {
            let message = format!("`{op}`: expected `:` and the type of `{name}`, as `{name}: Dim`");
            return Err(Error::new(name.span(), message));
        }
        let ty = parse_type(input, op)?;
        let of = parse_of(input, op, tensors)?;
        let said = word(input, "or");
        let default = match said || input.parse::<Option<Token![=]>>()?.is_some() {
            true => Some(parse_default(input, op, &name, &ty).unwrap_or_else(|error| {
                errors.push(error);
                quote!(::std::unreachable!())
            })),
            false => None,
        };
        args.push(Arg { name, ty, of, default, said, leads: false });
        if input.parse::<Option<Token![,]>>()?.is_none() && !input.is_empty() && !input.peek(Token![;]) {
            return Err(here(
                input,
                format!("`{op}`: expected `of TENSOR`, `= default`, `or default`, `,` or `)`"),
            ));
        }
    }
    Ok(args)
}

/// The argument types that the grammar knows. Other types are in `core::args` or in the file of the row, and
/// are in camel case.
pub(crate) const TYPES: [&str; 12] = [
    "Dim", "Dims", "Reduced", "Place", "Shape", "Scalar", "DType", "NewName", "NewNames", "Cast", "Extents",
    "Padding",
];
pub(crate) const PLAIN_TYPES: [&str; 4] = ["usize", "isize", "f64", "bool"];

/// `Dim, Dims, .., usize, isize, f64, bool`.
fn types() -> String {
    [&TYPES[..], &PLAIN_TYPES].concat().join(", ")
}

fn parse_type(input: ParseStream<'_>, op: &Ident) -> Result<Type> {
    let named = || -> Result<Ident> {
        let name: Ident = input.parse().map_err(|error: Error| {
            Error::new(error.span(), format!("`{op}`: expected a type: {}", types()))
        })?;
        let text = name.to_string();
        if text.starts_with(char::is_lowercase) && !PLAIN_TYPES.contains(&&*text) {
            let message = format!("`{op}`: `{name}` is not a type of arguments; there are {}", types());
            return Err(Error::new(name.span(), message));
        }
        Ok(name)
    };
    let name = named()?;
    if name != "Option" {
        return Ok(Type { name, optional: false });
    }
    input.parse::<Token![<]>()?;
    let name = named()?;
    input.parse::<Token![>]>()?;
    Ok(Type { name, optional: true })
}

/// `of x`, `of x, other`: a name after a comma belongs to it only if no type follows.
fn parse_of(input: ParseStream<'_>, op: &Ident, tensors: &[Tensor]) -> Result<Vec<Ident>> {
    let mut of: Vec<Ident> = Vec::new();
    if !word(input, "of") {
        return Ok(of);
    }
    loop {
        let tensor: Ident = input.parse().map_err(|error| {
            Error::new(
                error.span(),
                format!("`{op}`: expected the tensor in which the argument is looked up"),
            )
        })?;
        if !tensors.iter().any(|known| known.name == tensor) {
            let message = format!("`{op}`: `{tensor}` is not a tensor of this row; it has {}", list(tensors));
            return Err(Error::new(tensor.span(), message));
        }
        of.push(tensor);
        if !(input.peek(Token![,]) && input.peek2(syn::Ident) && !input.peek3(Token![:])) {
            return Ok(of);
        }
        input.parse::<Token![,]>()?;
    }
}

fn list(tensors: &[Tensor]) -> String {
    let names: Vec<String> = tensors.iter().map(|tensor| format!("`{}`", tensor.name)).collect();
    names.join(", ")
}

/// All tokens up to the next comma or semicolon, or up to `dtypes:` and so on, if the comma before it is
/// missing.
fn tokens_to_comma(input: ParseStream<'_>) -> Result<TokenStream> {
    let at_entry = || {
        let entry = input.cursor().ident().is_some_and(|(word, _)| ENTRIES.iter().any(|entry| word == entry));
        entry && input.peek2(Token![:]) && !input.peek2(Token![::])
    };
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) && !input.peek(Token![;]) && !at_entry() {
        let next: TokenTree = input.parse()?;
        tokens.extend([next]);
    }
    Ok(tokens)
}

fn parse_default(input: ParseStream<'_>, op: &Ident, arg: &Ident, ty: &Type) -> Result<TokenStream> {
    let at = input.span();
    let tokens = tokens_to_comma(input)?;
    if tokens.is_empty() {
        return Err(Error::new(at, format!("`{op}`: expected a default of `{arg}` after `=` or `or`")));
    }
    let text = tokens.to_string().replace(' ', "");
    let number = text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    let whole = number && !text.contains(['.', 'e']);
    let literal = number || text == "true" || text == "false" || text.starts_with('"');
    let (fits, example) = match ty.name.to_string().as_str() {
        _ if text == "None" && (ty.optional || ty.name == "NewName" || ty.name == "NewNames") => (true, ""),
        "f64" => (!literal || number, "a number such as `1.0`"),
        "usize" => (!literal || whole && !text.starts_with('-'), "a number such as `1`"),
        "isize" => (!literal || whole, "a number such as `-1`"),
        "bool" => (text == "true" || text == "false", "`true` or `false`"),
        "Scalar" => (!literal || number || !text.starts_with('"'), "a number such as `1`"),
        "Dim" | "Place" => (whole, "the index of a dim such as `-1`"),
        "Extents" | "Padding" => (whole || text == "None", "a number such as `1`"),
        "Reduced" | "Dims" => (whole || text == ".." || text.starts_with('['), "`..`, `-1` or a list"),
        _ => (!literal, "a value of that type"),
    };
    if fits {
        return Ok(tokens);
    }
    if !TYPES.iter().chain(&PLAIN_TYPES).any(|known| ty.name == known) {
        let message = format!(
            "`{op}`: a default of type {} cannot be `{text}`; the types that the grammar knows are {}",
            ty.text(),
            types()
        );
        return Err(Error::new(ty.name.span(), message));
    }
    let message = format!("`{op}`: the default of `{arg}` must be of type {}: {example}", ty.text());
    let at = tokens.into_iter().next().map_or(at, |first| first.span());
    Err(Error::new(at, message))
}

fn parse_outputs(input: ParseStream<'_>, op: &Ident) -> Result<Outputs> {
    if input.parse::<Option<Token![->]>>()?.is_none() {
        return Ok(Outputs::one(Form::One));
    }
    if word(input, "bool") {
        return Ok(Outputs::one(Form::Truth));
    }
    if input.peek(token::Paren) {
        let inside;
        parenthesized!(inside in input);
        let names = parse_names(&inside, op)?;
        let kept = if inside.parse::<Option<Token![;]>>()?.is_some() {
            parse_names(&inside, op)?
        } else {
            Vec::new()
        };
        if !inside.is_empty() {
            return Err(here(
                &inside,
                format!("`{op}`: expected `,` and another output, `;` and what is kept, or `)`"),
            ));
        }
        let form = if names.len() == 1 { Form::One } else { Form::Tuple };
        return Ok(Outputs { form, names, kept });
    }
    if input.peek(token::Bracket) {
        let inside;
        bracketed!(inside in input);
        return Ok(Outputs { form: Form::List, names: vec![inside.parse()?], kept: Vec::new() });
    }
    if input.peek(syn::Ident) && input.peek2(token::Brace) {
        let name = input.parse()?;
        let inside;
        braced!(inside in input);
        return Ok(Outputs { form: Form::Struct(name), names: parse_names(&inside, op)?, kept: Vec::new() });
    }
    let message = format!(
        "`{op}`: expected `bool`, `(q, r)`, `(y; kept)`, `Picked {{ values, indices }}` or `[parts]`"
    );
    Err(here(input, message))
}

fn parse_names(input: ParseStream<'_>, op: &Ident) -> Result<Vec<Ident>> {
    let mut names = Vec::new();
    while !input.is_empty() && !input.peek(Token![;]) {
        names.push(input.parse().map_err(|error: Error| {
            Error::new(error.span(), format!("`{op}`: expected the name of an output"))
        })?);
        if input.parse::<Option<Token![,]>>()?.is_none() {
            break;
        }
    }
    if names.is_empty() {
        return Err(here(input, format!("`{op}`: expected the name of an output")));
    }
    Ok(names)
}

fn parse_classes(input: ParseStream<'_>, op: &Ident) -> Result<Vec<Ident>> {
    let mut classes: Vec<Ident> = Vec::new();
    if !word(input, "on") {
        return Ok(classes);
    }
    while let Some((next, _)) = input.cursor().ident().filter(|(next, _)| next != "names" && next != "layer")
    {
        if !CLASSES.iter().any(|class| next == class) {
            let message =
                format!("`{op}`: `{next}` is not a class of dtypes; there are {}", CLASSES.join(", "));
            return Err(Error::new(next.span(), message));
        }
        classes.push(input.parse()?);
    }
    if classes.is_empty() {
        return Err(here(input, format!("`{op}`: expected classes of dtypes: {}", CLASSES.join(", "))));
    }
    Ok(classes)
}

/// Parses the layers of a function. They name arguments that it has.
pub(crate) fn parse_layers(input: ParseStream<'_>, row: &Row) -> Result<Vec<Layer>> {
    let mut layers = Vec::new();
    while word(input, "layer") {
        let name: Ident = input.parse().map_err(|error: Error| {
            row.error(error.span(), "expected the name of the layer, as `layer Softplus`")
        })?;
        let mut settings = Vec::new();
        if input.peek(token::Paren) {
            let inside;
            parenthesized!(inside in input);
            while !inside.is_empty() {
                settings.push(parse_setting(&inside, row, &name)?);
                if inside.parse::<Option<Token![,]>>()?.is_none() && !inside.is_empty() {
                    return Err(here(
                        &inside,
                        format!("layer `{name}`: expected `= value`, `if CHECK`, `,` or `)`"),
                    ));
                }
            }
        }
        layers.push(Layer { name, settings });
    }
    Ok(layers)
}

fn parse_setting(input: ParseStream<'_>, row: &Row, layer: &Ident) -> Result<(Ident, Setting)> {
    let name: Ident = input.parse().map_err(|error: Error| {
        Error::new(error.span(), format!("layer `{layer}`: expected an argument of `{}`", row.name))
    })?;
    let Some(arg) = row.args.iter().find(|arg| arg.name == name) else {
        let near = nearest(&name.to_string(), row.args.iter().map(|arg| arg.name.to_string()));
        let message = format!("layer `{layer}`: `{name}` is not an argument of `{}`{near}", row.name);
        return Err(Error::new(name.span(), message));
    };
    let setting = if input.parse::<Option<Token![=]>>()?.is_some() {
        Setting::Fixed(parse_default(input, layer, &name, &arg.ty)?)
    } else if input.parse::<Option<Token![if]>>()?.is_some() {
        Setting::Checked(input.parse()?)
    } else {
        Setting::Required
    };
    Ok((name, setting))
}

/// `=> expression;` or `=> { .. }`.
fn parse_code(input: ParseStream<'_>, op: &Ident) -> Result<Option<TokenStream>> {
    let Some(arrow) = input.parse::<Option<Token![=>]>>()? else { return Ok(None) };
    let is_block = input.peek(token::Brace);
    let mut code = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![;]) {
        code.extend([input.parse::<TokenTree>()?]);
        if is_block {
            return Ok(Some(code));
        }
    }
    if code.is_empty() || input.parse::<Option<Token![;]>>()?.is_none() {
        let message = format!("`{op}`: expected an expression and `;`, or a block, after `=>`");
        return Err(Error::new_spanned(arrow, message));
    }
    Ok(Some(code))
}

/// The word before a body.
fn parse_loops(input: ParseStream<'_>, op: &Ident) -> Result<Option<Ident>> {
    if !(input.peek(syn::Ident) && input.peek2(token::Brace)) {
        return Ok(None);
    }
    let loops: Ident = input.parse()?;
    if LOOPS.iter().any(|known| loops == known) {
        return Ok(Some(loops));
    }
    let near = nearest(&loops.to_string(), LOOPS.iter().map(ToString::to_string));
    Err(Error::new(loops.span(), format!("`{op}`: `{loops}` is not a way to compile its loops{near}")))
}

fn parse_body(input: ParseStream<'_>, op: &Ident) -> Result<Body> {
    let inside;
    braced!(inside in input);
    let mut entries: Vec<(Ident, TokenStream)> = Vec::new();
    while !inside.is_empty() {
        let entry: Ident = inside.parse().map_err(|error| {
            Error::new(error.span(), format!("`{op}`: expected one of {}", ENTRIES.join(", ")))
        })?;
        if !ENTRIES.iter().any(|known| entry == known) {
            let message = format!("`{op}`: `{entry}` is not one of {}", ENTRIES.join(", "));
            return Err(Error::new(entry.span(), message));
        }
        if entries.iter().any(|(known, _)| *known == entry) {
            return Err(Error::new(entry.span(), format!("`{op}`: `{entry}` occurs twice")));
        }
        if inside.parse::<Option<Token![:]>>()?.is_none() {
            return Err(here(&inside, format!("`{op}`: expected `:` and an expression after `{entry}`")));
        }
        let value = tokens_to_comma(&inside)?;
        if value.is_empty() {
            return Err(here(&inside, format!("`{op}`: expected an expression after `{entry}:`")));
        }
        if entry == "like" && syn::parse2::<Ident>(value.clone()).is_err() {
            return Err(Error::new_spanned(value, format!("`{op}`: expected the op that it is like")));
        }
        entries.push((entry, value));
        if inside.parse::<Option<Token![,]>>()?.is_none() && !inside.is_empty() {
            return Err(no_comma(&inside, op));
        }
    }
    Ok(Body { entries })
}

/// A table: its name, its rows, and the errors in it.
pub(crate) struct Table {
    pub(crate) name: Ident,
    /// The `//!` lines before the rows: the heading of the methods in their documentation.
    pub(crate) heading: Vec<Attribute>,
    pub(crate) rows: Vec<Row>,
    pub(crate) errors: Vec<Error>,
}

impl Table {
    /// Removes the rows that do not pass a check, with an error at the name of each.
    pub(crate) fn keep(&mut self, check: impl Fn(&Row) -> std::result::Result<(), &'static str>) {
        let errors = &mut self.errors;
        self.rows.retain(|row| {
            let failed = check(row).map_err(|message| row.error(row.name.span(), message)).err();
            let passes = failed.is_none();
            errors.extend(failed);
            passes
        });
    }
}

impl Parse for Table {
    fn parse(input: ParseStream<'_>) -> Result<Table> {
        let name = input.parse().map_err(|error: Error| {
            Error::new(error.span(), "expected the name of the table, which is that of its file, and `;`")
        })?;
        input.parse::<Token![;]>()?;
        let mut heading = input.call(Attribute::parse_inner)?;
        heading.iter_mut().for_each(|line| line.style = AttrStyle::Outer);
        let (rows, errors) = parse_rows(input);
        Ok(Table { name, heading, rows, errors })
    }
}

/// Parses rows up to the end, with distinct names. An error in one row does not affect the others.
pub(crate) fn parse_rows(input: ParseStream<'_>) -> (Vec<Row>, Vec<Error>) {
    let (mut rows, mut errors) = (Vec::<Row>::new(), Vec::new());
    while !input.is_empty() {
        let ahead = input.fork();
        let parsed = parse_row(&ahead, &mut errors);
        if matches!(parsed, Ok((_, true))) {
            input.advance_to(&ahead);
        } else {
            while input.peek(Token![#]) && input.call(Attribute::parse_outer).is_ok() {}
            skip_row(input);
        }
        match parsed {
            Ok((row, _)) => {
                let others: Vec<Row> = row
                    .others
                    .iter()
                    .map(|(docs, name)| Row { docs: docs.clone(), name: name.clone(), ..row.clone() })
                    .collect();
                for row in [row].into_iter().chain(others) {
                    match rows.iter().any(|known| known.name == row.name) {
                        true => {
                            errors
                                .push(Error::new(row.name.span(), format!("op `{}` has two rows", row.name)));
                        }
                        false => rows.push(row),
                    }
                }
            }
            Err(error) => errors.push(error),
        }
    }
    (rows, errors)
}
