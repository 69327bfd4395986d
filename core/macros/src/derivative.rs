//! The grammar of derivatives, and how they are checked against the rows of the same table.
//!
//! ```text
//! table    = rows "{" "|" g "," cx "|" entry* "}"
//! entry    = NAME+ ("constant" | "refused") ";"
//!          | NAME+ "(" tensors [";" args] ")" "->" outputs
//!            ("{" gradient ("," gradient)* "}" | "by" FUNCTION ";")
//! outputs  = NAME | "(" NAME ("," NAME)* ")"
//! gradient = input ":" ("[" kept* [";" args] "]" formula ["=>" fused] | "refused")
//! input    = NAME | "(" NAME+ ")"
//! ```
//!
//! Every tensor except a mask has a gradient or is marked `refused`, which means that the op is an error if
//! the tensor requires a gradient. An index, which never requires a gradient, is marked `refused` too.

use crate::row::{Form, OpRow, TensorKind, expect, here, no_comma, no_keyword};
use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::parse::discouraged::Speculative;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Result, Token, braced, bracketed, parenthesized, token};

/// The derivatives of a table, as their file has them.
pub(crate) struct Derivatives {
    /// The names of the gradient of the output, and of the context.
    pub(crate) g: Ident,
    pub(crate) cx: Ident,
    pub(crate) entries: Vec<Derivative>,
    /// The errors in other entries.
    pub(crate) errors: Vec<Error>,
    /// The names in those entries, so that these ops are not reported as having no derivative.
    lost: Vec<Ident>,
}

/// The derivative of an op, or of several ops with the same derivative.
pub(crate) struct Derivative {
    pub(crate) ops: Vec<Ident>,
    pub(crate) how: How,
}

/// The flow of gradients through an op.
pub(crate) enum How {
    /// The result cannot have a gradient.
    Constant,
    /// There is no derivative: the op is an error for a tensor that requires a gradient.
    Refused,
    Formulas(Signature, Vec<Gradient>),
    /// The op is composed of ops that have derivatives.
    Composed,
    /// A function records the op.
    By(Signature, Ident),
}

/// The names that a derivative gives to the inputs, arguments and outputs of an op.
pub(crate) struct Signature {
    pub(crate) tensors: Vec<Ident>,
    pub(crate) args: Vec<Ident>,
    pub(crate) outputs: Vec<Ident>,
    /// The tensors that are marked `refused`.
    refused: Vec<Ident>,
}

/// The gradient of an input, or a joint gradient of several.
pub(crate) struct Gradient {
    pub(crate) inputs: Vec<Ident>,
    pub(crate) kept: Vec<Ident>,
    pub(crate) args: Vec<Ident>,
    pub(crate) formula: TokenStream,
    pub(crate) fused: Option<TokenStream>,
}

impl Parse for Derivatives {
    fn parse(input: ParseStream<'_>) -> Result<Derivatives> {
        let message = "expected `|g, cx|`: the names of the gradient of the output and of the context";
        expect::<Token![|]>(input, message)?;
        let g = input.parse()?;
        input.parse::<Token![,]>()?;
        let cx = input.parse()?;
        input.parse::<Token![|]>()?;
        let (mut entries, mut errors, mut lost) = (Vec::new(), Vec::new(), Vec::new());
        while !input.is_empty() {
            let ahead = input.fork();
            match ahead.parse() {
                Ok(entry) => {
                    entries.push(entry);
                    input.advance_to(&ahead);
                }
                Err(error) => {
                    errors.push(error);
                    lost.extend(skip_entry(input)?);
                }
            }
        }
        Ok(Derivatives { g, cx, entries, errors, lost })
    }
}

/// Skips to the end of an entry, its braces or `;`, and returns the names in it.
fn skip_entry(input: ParseStream<'_>) -> Result<Vec<Ident>> {
    let mut names = Vec::new();
    while !input.is_empty() {
        let last = input.peek(token::Brace) || input.peek(Token![;]);
        if let TokenTree::Ident(name) = input.parse()? {
            names.push(name);
        }
        if last {
            break;
        }
    }
    Ok(names)
}

impl Parse for Derivative {
    fn parse(input: ParseStream<'_>) -> Result<Derivative> {
        let mut ops: Vec<Ident> = Vec::new();
        no_keyword(input)?;
        while input.peek(syn::Ident) {
            ops.push(input.parse()?);
        }
        let Some(last) = ops.last().cloned() else {
            return Err(here(input, "expected the derivative of an op, as `exp(x) -> y { x: [y] g * y }`"));
        };
        if input.parse::<Option<Token![;]>>()?.is_some() {
            let how = match last.to_string().as_str() {
                "constant" => How::Constant,
                "refused" => How::Refused,
                _ => {
                    let message =
                        format!("`{last}`: expected `(x) -> y {{ .. }}`, `constant;` or `refused;`");
                    return Err(Error::new(last.span(), message));
                }
            };
            ops.pop();
            return Ok(Derivative { ops, how });
        }
        if !input.peek(token::Paren) {
            let message = format!("`{last}`: expected `(x) -> y {{ .. }}`, `constant;` or `refused;`");
            return Err(here(input, message));
        }
        let mut signature = parse_signature(input, &last)?;
        if input.peek(syn::Ident) {
            let by: Ident = input.parse()?;
            if by != "by" {
                return Err(Error::new(
                    by.span(),
                    format!("`{last}`: expected `{{ x: [..] .. }}` or `by function;`"),
                ));
            }
            let function = input.parse()?;
            input.parse::<Token![;]>()?;
            return Ok(Derivative { ops, how: How::By(signature, function) });
        }
        if !input.peek(token::Brace) {
            return Err(here(input, format!("`{last}`: expected `{{ x: [..] .. }}` or `by function;`")));
        }
        let inside;
        braced!(inside in input);
        let mut gradients = Vec::new();
        while !inside.is_empty() {
            gradients.extend(parse_gradient(&inside, &last, &mut signature)?);
            let comma = inside.parse::<Option<Token![,]>>()?.is_some();
            if !comma && !inside.is_empty() {
                return Err(no_comma(&inside, &last));
            }
        }
        if gradients.is_empty() {
            return Err(Error::new(
                last.span(),
                format!("`{last}`: no input has a gradient; say `{last} constant;` or `{last} refused;`"),
            ));
        }
        Ok(Derivative { ops, how: How::Formulas(signature, gradients) })
    }
}

fn idents(input: ParseStream<'_>) -> Result<Vec<Ident>> {
    let mut all = Vec::new();
    while input.peek(syn::Ident) {
        all.push(input.parse()?);
        input.parse::<Option<Token![,]>>()?;
    }
    Ok(all)
}

fn parse_signature(input: ParseStream<'_>, op: &Ident) -> Result<Signature> {
    let inside;
    parenthesized!(inside in input);
    let tensors = idents(&inside)?;
    let args = if inside.parse::<Option<Token![;]>>()?.is_some() { idents(&inside)? } else { Vec::new() };
    if !inside.is_empty() {
        return Err(here(
            &inside,
            format!("`{op}`: expected the names of its tensors and, behind a `;`, of its arguments"),
        ));
    }
    if input.parse::<Option<Token![->]>>()?.is_none() {
        return Err(here(input, format!("`{op}`: expected `-> y`, the name of its output")));
    }
    let outputs = if input.peek(token::Paren) {
        let inside;
        parenthesized!(inside in input);
        let mut outputs = idents(&inside)?;
        inside.parse::<Option<Token![;]>>()?;
        outputs.extend(idents(&inside)?);
        outputs
    } else {
        vec![input.parse()?]
    };
    Ok(Signature { tensors, args, outputs, refused: Vec::new() })
}

/// Parses the gradient of an input, or of several. It is `None` if the input is marked `refused`.
fn parse_gradient(input: ParseStream<'_>, op: &Ident, signature: &mut Signature) -> Result<Option<Gradient>> {
    let inputs = if input.peek(token::Paren) {
        let inside;
        parenthesized!(inside in input);
        idents(&inside)?
    } else {
        vec![expect(input, format!("`{op}`: expected an input, as `x: [y] g * y`"))?]
    };
    if input.parse::<Option<Token![:]>>()?.is_none() {
        return Err(here(input, format!("`{op}`: expected `:`, what is kept in brackets, and the gradient")));
    }
    if input.cursor().ident().is_some_and(|(word, _)| word == "refused") {
        input.parse::<Ident>()?;
        signature.refused.extend(inputs);
        return Ok(None);
    }
    if !input.peek(token::Bracket) {
        let message = format!("`{op}`: expected `[`, what the gradient keeps, `[]` if nothing; or `refused`");
        return Err(here(input, message));
    }
    let inside;
    bracketed!(inside in input);
    let kept = idents(&inside)?;
    let args = if inside.parse::<Option<Token![;]>>()?.is_some() { idents(&inside)? } else { Vec::new() };
    if !inside.is_empty() {
        return Err(here(
            &inside,
            format!("`{op}`: expected the names of what is kept and, behind a `;`, arguments"),
        ));
    }
    let formula = tokens_to_end(input, &signature.tensors)?;
    if formula.is_empty() {
        return Err(here(input, format!("`{op}`: expected the gradient of `{}`", inputs[0])));
    }
    if input.peek(Token![->]) {
        return Err(here(input, format!("`{op}`: `->` in a gradient: did you mean `=>`?")));
    }
    let fused = match input.parse::<Option<Token![=>]>>()?.is_some() {
        true => Some(tokens_to_end(input, &signature.tensors)?),
        false => None,
    };
    Ok(Some(Gradient { inputs, kept, args, formula, fused }))
}

/// All tokens up to the next comma, `=>` or `->`, or up to `weight:` or `(x weight): [`, if the comma before
/// it is missing.
fn tokens_to_end(input: ParseStream<'_>, tensors: &[Ident]) -> Result<TokenStream> {
    let at_input = || {
        let named = input.cursor().ident().is_some_and(|(name, _)| tensors.contains(&name));
        let several = input.peek(token::Paren) && input.peek3(token::Bracket);
        (named || several) && input.peek2(Token![:]) && !input.peek2(Token![::])
    };
    let mut tokens = TokenStream::new();
    while !input.is_empty()
        && !input.peek(Token![,])
        && !input.peek(Token![=>])
        && !input.peek(Token![->])
        && !at_input()
    {
        let next: TokenTree = input.parse()?;
        tokens.extend([next]);
    }
    Ok(tokens)
}

impl Derivatives {
    /// Returns all errors that are found by comparison with the rows, and for each row its derivative, if it
    /// has one without an error.
    pub(crate) fn check<'a>(
        &'a self,
        table: &Ident,
        rows: &'a [OpRow],
    ) -> (Vec<Error>, Vec<(&'a OpRow, &'a How)>) {
        let mut errors = Vec::new();
        let mut found: Vec<(&OpRow, &How)> = Vec::new();
        for entry in &self.entries {
            for op in &entry.ops {
                let Some(row) = rows.iter().find(|row| row.name == *op) else {
                    let near = nearest(&op.to_string(), rows.iter().map(|row| row.name.to_string()));
                    let message = format!(
                        "a derivative of `{op}`, which is not an op of core/src/ops/{table}.rs{near}"
                    );
                    wrong(&mut errors, op, message);
                    continue;
                };
                if found.iter().any(|(known, _)| known.name == row.name) {
                    wrong(&mut errors, op, format!("`{op}` has two derivatives"));
                    continue;
                }
                let before = errors.len();
                match &entry.how {
                    How::Constant | How::Refused | How::Composed => {}
                    How::By(signature, _) => signature.check(op, row, &mut errors),
                    How::Formulas(signature, gradients) => {
                        signature.check(op, row, &mut errors);
                        if errors.len() == before {
                            check_inputs(op, row, signature, gradients, &mut errors);
                            check_formulas(op, row, signature, gradients, &self.g, &mut errors);
                        }
                    }
                }
                found.push((row, if errors.len() == before { &entry.how } else { &How::Refused }));
            }
        }
        let missing = |row: &&OpRow| {
            !found.iter().any(|(known, _)| known.name == row.name) && !self.lost.contains(&row.name)
        };
        for row in rows.iter().filter(missing) {
            let name = &row.name;
            let list = |names: &mut dyn Iterator<Item = &Ident>| {
                names.map(Ident::to_string).collect::<Vec<_>>().join(", ")
            };
            let tensors = list(&mut row.tensors.iter().map(|tensor| &tensor.name));
            let args = match list(&mut row.kernel_args().map(|arg| &arg.name)) {
                none if none.is_empty() => none,
                args => format!("; {args}"),
            };
            let outputs = match row.outputs.names.len() {
                1 => "y".to_string(),
                _ => format!("({})", list(&mut row.outputs.names.iter())),
            };
            let first = row.tensors.first().map_or_else(|| "x".into(), |tensor| tensor.name.to_string());
            let message = format!(
                "op `{name}` of core/src/ops/{table}.rs has no derivative here: write `{name}({tensors}{args}) -> {outputs} {{ {first}: \
                 [..] .. }}`, `{name} constant;` if its result has no gradient by nature, or `{name} refused;`"
            );
            errors.push(Error::new(proc_macro2::Span::call_site(), message));
        }
        (errors, found)
    }
}

impl Signature {
    fn check(&self, op: &Ident, row: &OpRow, errors: &mut Vec<Error>) {
        let counts = [
            ("tensor", self.tensors.len(), row.tensors.len()),
            ("output", self.outputs.len(), row.outputs.count()),
        ];
        for (what, said, has) in counts {
            if said != has {
                let plural = if has == 1 { "" } else { "s" };
                wrong(errors, op, format!("`{op}` has {has} {what}{plural}, and {said} are named here"));
            }
        }
        let names = |all: Vec<&Ident>| all.iter().map(|name| name.to_string()).collect::<Vec<_>>().join(", ");
        let orders = [
            ("takes", &self.tensors, row.tensors.iter().map(|tensor| &tensor.name).collect::<Vec<_>>()),
            ("gives", &self.outputs, row.outputs.all().collect()),
        ];
        for (verb, said, known) in orders {
            let moved = said.iter().zip(&known).find(|(name, own)| name != *own && known.contains(name));
            if let Some((name, _)) = moved {
                let message = format!("`{op}` {verb} ({}), in this order", names(known));
                wrong(errors, name, message);
            }
        }
        for arg in &self.args {
            if !row.args.iter().any(|known| known.name == *arg) {
                let near = nearest(&arg.to_string(), row.args.iter().map(|known| known.name.to_string()));
                wrong(errors, arg, format!("`{arg}` is not an argument of `{op}`{near}"));
            }
        }
    }
}

/// Checks that every tensor has exactly one gradient, or none if it cannot have one.
fn check_inputs(
    op: &Ident,
    row: &OpRow,
    signature: &Signature,
    gradients: &[Gradient],
    errors: &mut Vec<Error>,
) {
    let mut served: Vec<&Ident> = Vec::new();
    let refused = signature.refused.iter().map(|input| (input, true));
    let given = gradients.iter().flat_map(|gradient| &gradient.inputs).map(|input| (input, false));
    for (input, refused) in refused.chain(given) {
        let Some(at) = signature.tensors.iter().position(|tensor| tensor == input) else {
            let near = nearest(&input.to_string(), signature.tensors.iter().map(Ident::to_string));
            wrong(errors, input, format!("`{input}` is not a tensor that `{op}` takes{near}"));
            continue;
        };
        if served.contains(&input) {
            wrong(errors, input, format!("`{op}` has two gradients of `{input}`"));
        }
        served.push(input);
        if !refused && matches!(row.tensors[at].kind, TensorKind::Mask | TensorKind::List) {
            let what = if row.tensors[at].kind == TensorKind::Mask {
                "is a mask, which has no gradient"
            } else {
                "is a list: its gradients are recorded `by function;`"
            };
            wrong(errors, input, format!("`{input}` of `{op}` {what}"));
        }
    }
    let left = row.tensors.iter().zip(&signature.tensors);
    for (_, input) in left.filter(|(tensor, own)| tensor.kind != TensorKind::Mask && !served.contains(own)) {
        let message = format!(
            "`{op}`: the gradient of `{input}` is missing: write `{input}: [..] ..`, or `{input}: refused` if it has none"
        );
        wrong(errors, op, message);
    }
}

/// Checks that the formulas use exactly the values that are saved for them.
fn check_formulas(
    op: &Ident,
    row: &OpRow,
    signature: &Signature,
    gradients: &[Gradient],
    g: &Ident,
    errors: &mut Vec<Error>,
) {
    let tensors = || signature.tensors.iter().chain(&signature.outputs);
    let outputs = &signature.outputs[..row.outputs.names.len()];
    for gradient in gradients {
        let texts = [Some(&gradient.formula), gradient.fused.as_ref()];
        if let (Some(at), true) =
            (texts.iter().flatten().find_map(|text| first_use(text, g)), outputs.len() > 1)
        {
            let each: Vec<String> = outputs.iter().map(|output| format!("`{g}_{output}`")).collect();
            let message =
                format!("`{op}` has several outputs: there are {} in place of `{g}`", each.join(" and "));
            wrong(errors, &at, message);
        }
        for kept in &gradient.kept {
            if !tensors().any(|known| known == kept) {
                let near = nearest(&kept.to_string(), tensors().map(Ident::to_string));
                wrong(errors, kept, format!("`{kept}` is not an input or output of `{op}`{near}"));
            } else if texts.iter().flatten().all(|text| first_use(text, kept).is_none()) {
                wrong(errors, kept, format!("`{kept}` is kept for the gradient of `{op}` and not used"));
            }
        }
        for arg in gradient.args.iter().filter(|arg| !signature.args.contains(arg)) {
            let message = format!(
                "`{arg}` is not among the arguments that the derivative of `{op}` names: write `{op}(..; {arg})`"
            );
            wrong(errors, arg, message);
        }
        for arg in gradient.args.iter().filter(|arg| signature.args.contains(arg)) {
            if texts.iter().flatten().all(|text| first_use(text, arg).is_none()) {
                let message = format!("`{arg}` is kept for the gradient of `{op}` and not used");
                wrong(errors, arg, message);
            }
        }
        for known in tensors().filter(|known| !gradient.kept.contains(known)) {
            if let Some(at) = texts.iter().flatten().find_map(|text| first_use(text, known)) {
                let kept: Vec<String> =
                    gradient.kept.iter().map(Ident::to_string).chain([known.to_string()]).collect();
                let message = format!(
                    "`{known}` is used in the gradient of `{op}` and not kept: write `[{}]`",
                    kept.join(" ")
                );
                wrong(errors, &at, message);
            }
        }
        for known in row.args.iter().map(|arg| &arg.name).filter(|known| !gradient.args.contains(known)) {
            if let Some(at) = texts.iter().flatten().find_map(|text| first_use(text, known)) {
                let message = format!(
                    "`{known}` is used in the gradient of `{op}` and not kept: write `[..; {known}]`"
                );
                wrong(errors, &at, message);
            }
        }
    }
    if matches!(row.outputs.form, Form::List) {
        wrong(errors, op, format!("`{op}` gives a list: its gradients are recorded `by function;`"));
    }
}

/// Adds an error at a token.
fn wrong(errors: &mut Vec<Error>, token: &Ident, message: String) {
    errors.push(Error::new(token.span(), message));
}

/// The first use of a variable with this name, ignoring methods and fields, which follow a `.`, and paths.
pub(crate) fn first_use(tokens: &TokenStream, name: &Ident) -> Option<Ident> {
    let mut before = None;
    for tree in tokens.clone() {
        match &tree {
            TokenTree::Ident(ident) if ident == name && !matches!(before, Some('.' | ':')) => {
                return Some(ident.clone());
            }
            TokenTree::Group(group) => {
                if let Some(found) = first_use(&group.stream(), name) {
                    return Some(found);
                }
            }
            _ => {}
        }
        before = match &tree {
            TokenTree::Punct(punct) => Some(punct.as_char()),
            _ => None,
        };
    }
    None
}

/// `; did you mean `x`?`, if there is a similar name.
pub(crate) fn nearest(name: &str, known: impl Iterator<Item = String>) -> String {
    let known: Vec<String> = known.collect();
    let best = known.iter().map(|other| (distance(name, other), other)).min();
    match best {
        Some((distance, other)) if distance <= 1 + name.len() / 4 => format!("; did you mean `{other}`?"),
        _ if known.is_empty() => String::new(),
        _ if known.len() <= 6 => format!("; there is {}", known.join(", ")),
        _ => String::new(),
    }
}

/// The number of letters to change, insert or delete.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
