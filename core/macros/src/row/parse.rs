//! The parser of tables. Its errors are at the token that is wrong, and an error in one row does not affect
//! the others.

use super::{Arg, Body, Form, Layer, OpRow, OpTable, Outputs, Ranked, Setting, Tensor, TensorKind, Type};
use crate::derivative::nearest;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative;
use syn::parse::{Parse, ParseStream};
use syn::{AttrStyle, Attribute, Error, Result, Token, braced, bracketed, parenthesized, token};

/// The words that can start an entry of a body.
const ENTRIES: [&str; 7] = ["float", "int", "boolean", "any", "dtypes", "before", "like"];
/// The words for how loops on floats are compiled.
const LOOPS: [&str; 5] = ["wide", "halves", "long", "plain", "scalar"];
const CLASSES: [&str; 3] = ["floats", "integers", "bool"];
/// The words that can follow them.
const AFTER_CLASSES: [&str; 4] = ["names", "constant", "refused", "layer"];

/// Parses a row, and returns whether it was read to its end. If there is an error after the parentheses, the
/// row has what was understood, so that its methods exist; the error goes to `errors`.
pub(crate) fn parse_row(input: ParseStream<'_>, errors: &mut Vec<Error>) -> Result<(OpRow, bool)> {
    let docs = input.call(Attribute::parse_outer)?;
    no_keyword(input)?;
    let name: Ident = expect(input, "expected the row of an op, as `exp exp_ (x) { float: x.exp() }`")?;
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
    let mut row = OpRow {
        docs,
        name,
        others,
        in_place,
        tensors,
        args,
        outputs: Outputs::one(Form::One),
        classes: Vec::new(),
        names: None,
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
fn parse_result(input: ParseStream<'_>, row: &mut OpRow) -> Result<()> {
    let name = row.name.clone();
    row.outputs = parse_outputs(input, &name)?;
    if row.outputs.is_unnamed() && row.tensors.iter().any(|tensor| tensor.name == "y") {
        row.outputs.names = vec![Ident::new("result", Span::call_site())];
    }
    row.classes = parse_classes(input, &name)?;
    if input.cursor().ident().is_some_and(|(next, _)| next == "names") {
        let names: Ident = input.parse()?;
        row.names = Some(row.parse_names(input)?);
        if input.peek(token::Brace) {
            let message = format!("`{name}`: an op by element has no `names`: its rule is that of its kind");
            return Err(Error::new(names.span(), message));
        }
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
            "`{name}`: expected `-> ..`, `on ..`, `names ..`, `constant`, `layer ..`, `=> ..`, `{{ float: .. }}` or `;`, in this order"
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

/// Parses the next token. `message` says what it must be.
pub(crate) fn expect<T: Parse>(input: ParseStream<'_>, message: impl std::fmt::Display) -> Result<T> {
    input.parse().map_err(|error: Error| Error::new(error.span(), message))
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
            let name: Ident = expect(
                input,
                format!(
                    "`{op}`: expected a tensor: `x`, `mut x`, `weight?`, `[tensors]`, `mask: bool` or `value: Operand`"
                ),
            )?;
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
        let name: Ident =
            expect(input, format!("`{op}`: expected an argument, as `dim: Dim` or `eps: f64 = 1e-5`"))?;
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
pub(crate) const TYPES: [&str; 14] = [
    "Dim",
    "Dims",
    "Reduced",
    "Matrix",
    "Place",
    "Shape",
    "Expansion",
    "Scalar",
    "DType",
    "NewName",
    "NewNames",
    "Cast",
    "Extents",
    "Padding",
];
pub(crate) const PLAIN_TYPES: [&str; 4] = ["usize", "isize", "f64", "bool"];

/// `Dim, Dims, .., usize, isize, f64, bool`.
fn types() -> String {
    [&TYPES[..], &PLAIN_TYPES].concat().join(", ")
}

fn parse_type(input: ParseStream<'_>, op: &Ident) -> Result<Type> {
    let named = || -> Result<Ident> {
        let name: Ident = expect(input, format!("`{op}`: expected a type: {}", types()))?;
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
        let tensor: Ident =
            expect(input, format!("`{op}`: expected the tensor in which the argument is looked up"))?;
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
        "Reduced" | "Dims" | "Matrix" => {
            (whole || text == ".." || text.starts_with('['), "`..`, `-1` or a list")
        }
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
        names.push(expect(input, format!("`{op}`: expected the name of an output"))?);
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
    let follows = |next: &Ident| AFTER_CLASSES.iter().any(|word| next == word);
    while let Some((next, _)) = input.cursor().ident().filter(|(next, _)| !follows(next)) {
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
pub(crate) fn parse_layers(input: ParseStream<'_>, row: &OpRow) -> Result<Vec<Layer>> {
    let mut layers = Vec::new();
    while word(input, "layer") {
        let message = format!("`{}`: expected the name of the layer, as `layer Softplus`", row.name);
        let name: Ident = expect(input, message)?;
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

fn parse_setting(input: ParseStream<'_>, row: &OpRow, layer: &Ident) -> Result<(Ident, Setting)> {
    let name: Ident = expect(input, format!("layer `{layer}`: expected an argument of `{}`", row.name))?;
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
        let entry: Ident = expect(&inside, format!("`{op}`: expected one of {}", ENTRIES.join(", ")))?;
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

impl Parse for OpTable {
    fn parse(input: ParseStream<'_>) -> Result<OpTable> {
        let name = expect(input, "expected the name of the table, which is that of its file, and `;`")?;
        let prefix = if word(input, "of") { Some(input.parse()?) } else { None };
        input.parse::<Token![;]>()?;
        let mut heading = input.call(Attribute::parse_inner)?;
        heading.iter_mut().for_each(|line| line.style = AttrStyle::Outer);
        let (rows, errors) = parse_rows(input);
        Ok(OpTable { name, prefix, heading, rows, errors })
    }
}

/// Parses rows up to the end, with distinct names. An error in one row does not affect the others.
pub(crate) fn parse_rows(input: ParseStream<'_>) -> (Vec<OpRow>, Vec<Error>) {
    let (mut rows, mut errors) = (Vec::<OpRow>::new(), Vec::new());
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
                let others: Vec<OpRow> = row
                    .others
                    .iter()
                    .map(|(docs, name)| OpRow { docs: docs.clone(), name: name.clone(), ..row.clone() })
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
