//! The attribute `dims`: reads the notation of dims, and puts checks around the body of a function.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream as Tokens, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Generics, LitStr, Member, Path, Result, Token, Type, Visibility};

/// The function with its checks. If there is a mistake, the function as it was, and the error: so that there
/// are no others about calls of it.
pub(crate) fn expand(notation: Tokens, function: Tokens) -> Tokens {
    checked(notation, function.clone()).unwrap_or_else(|error| {
        let error = error.to_compile_error();
        quote!(#error #function)
    })
}

pub(crate) fn checked(notation: Tokens, function: Tokens) -> Result<Tokens> {
    let function = Function::parse.parse2(function)?;
    let written = Written::parse.parse2(notation)?;
    let krate = &written.krate;
    let support = quote!(#krate::core::names::signature);
    let mut names = Vec::new();
    let (mut parts, mut arguments, mut results) = (Vec::new(), Vec::new(), Vec::new());
    // Only the macro's own code can refer to these.
    let [signature, met, output, value, error] =
        ["signature", "met", "output", "value", "error"].map(|name| Ident::new(name, Span::mixed_site()));
    let returned = &function.returned;
    let refused = at(quote!(#support::Fallible::refused(#error)), returned.span());
    for (number, part) in written.parts.iter().enumerate() {
        parts.push(part.notation(&mut names, &support)?);
        let Place { root, fields } = &part.place;
        let place = if part.place.is_result() {
            quote!(#value #(.#fields)*)
        } else {
            function.has(root)?;
            quote!(#root #(.#fields)*)
        };
        let checked =
            at(quote!(#support::HasDims::check_dims(&#place, #signature, #number, &mut #met)), root.span());
        let check = quote!(if let ::core::result::Result::Err(#error) = #checked { return #refused; });
        if part.place.is_result() { &mut results } else { &mut arguments }.push(check);
    }
    let (name, count) = (function.name.unraw().to_string(), names.len());
    let names = names.iter().map(|(name, _)| name);
    let Function { attributes, header, body, .. } = &function;
    let track = (!attributes.iter().any(|attribute| attribute.path().is_ident("track_caller")))
        .then(|| quote!(#[track_caller]));
    // A closure cannot return `impl Trait`: its type is then found from the function's.
    let closure_type = (!mentions_impl(returned.clone())).then(|| quote!(-> #returned));
    let run = match &closure_type {
        Some(closure_type) => quote!(#support::run(move || #closure_type #body)),
        None => quote!(#support::run(move || #body)),
    };
    let checked = match &results[..] {
        [] => run,
        results => quote! {{
            let #output = #run;
            if #support::CHECKED {
                if let ::core::option::Option::Some(#value) = #support::Fallible::value(&#output) {
                    #(#results)*
                }
            }
            #output
        }},
    };
    Ok(quote! {
        #(#attributes)*
        #track
        #header {
            let #signature = {
                static SIGNATURE: #support::Signature =
                    #support::Signature::new(#name, &[#(#names),*], &[#(#parts),*]);
                &SIGNATURE
            };
            let mut #met = [#support::Met::NONE; #count];
            if #support::CHECKED {
                #(#arguments)*
            }
            #checked
        }
    })
}

/// Code of the macro whose errors the compiler reports at a place of the program.
fn at(code: Tokens, place: Span) -> Tokens {
    let moved = code.into_iter().map(|mut token| {
        if let TokenTree::Group(group) = &token {
            token = TokenTree::Group(Group::new(group.delimiter(), at(group.stream(), place)));
        }
        token.set_span(token.span().located_at(place));
        token
    });
    moved.collect()
}

/// A function: what is needed of it, and the rest as it was written.
struct Function {
    attributes: Vec<Attribute>,
    /// From the visibility to the `where` clause.
    header: Tokens,
    name: Ident,
    /// The words of the patterns of its arguments, and `self`.
    arguments: Vec<Ident>,
    returned: Tokens,
    body: TokenTree,
}

impl Function {
    fn parse(input: ParseStream<'_>) -> Result<Function> {
        let attributes = input.call(Attribute::parse_outer)?;
        let mut trees: Vec<TokenTree> = input.fork().parse::<Tokens>()?.into_iter().collect();
        let body = match trees.pop() {
            Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => TokenTree::Group(body),
            last => {
                let span = last.map_or_else(Span::call_site, |last| last.span());
                let words = "`#[dims(..)]` needs a function with a body; for a method that a trait declares, write it on the \
                             implementations";
                return Err(Error::new(span, words));
            }
        };
        input.parse::<Visibility>()?;
        while !input.peek(Token![fn]) {
            let word: TokenTree = input.parse()?;
            match word.to_string().as_str() {
                "async" | "const" => {
                    let words = format!("`#[dims(..)]` does not support `{word} fn`");
                    return Err(Error::new(word.span(), words));
                }
                "unsafe" | "extern" | "default" => {}
                text if text.starts_with('"') => {} // of `extern "C"`
                _ => return Err(Error::new(word.span(), "`#[dims(..)]` is for functions and methods")),
            }
        }
        input.parse::<Token![fn]>()?;
        let name: Ident = input.parse()?;
        input.parse::<Generics>()?;
        let inside;
        syn::parenthesized!(inside in input);
        let arguments = arguments(&inside)?;
        if !input.peek(Token![->]) {
            let words =
                "a function with `#[dims(..)]` must return a `Result`, so that wrong dims are an error";
            return Err(Error::new(name.span(), words));
        }
        input.parse::<Token![->]>()?;
        let mut returned = Tokens::new();
        while !input.peek(Token![where]) && !input.peek(syn::token::Brace) {
            returned.extend([input.parse::<TokenTree>()?]);
        }
        input.parse::<Tokens>()?; // what is left was split off above
        Ok(Function { attributes, header: trees.into_iter().collect(), name, arguments, returned, body })
    }

    fn has(&self, root: &Ident) -> Result<()> {
        if self.arguments.contains(root) {
            return Ok(());
        }
        let all: Vec<String> = self.arguments.iter().map(|argument| format!("`{argument}`")).collect();
        let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        let words =
            format!("`{}` has no argument `{root}`; it has {all}, and `returns` is its result", self.name);
        Err(Error::new(root.span(), words))
    }
}

/// The words of the patterns of a function's arguments.
fn arguments(input: ParseStream<'_>) -> Result<Vec<Ident>> {
    let mut all = Vec::new();
    while !input.is_empty() {
        input.call(Attribute::parse_outer)?;
        while !input.is_empty() && !input.peek(Token![,]) {
            if input.peek(Token![:]) && !input.peek(Token![::]) {
                input.parse::<Token![:]>()?;
                input.parse::<Type>()?;
            } else {
                words(input.parse()?, &mut all);
            }
        }
        input.parse::<Option<Token![,]>>()?;
    }
    Ok(all)
}

fn words(token: TokenTree, all: &mut Vec<Ident>) {
    match token {
        TokenTree::Ident(word) if word != "mut" && word != "ref" => all.push(word),
        TokenTree::Group(group) => group.stream().into_iter().for_each(|token| words(token, all)),
        _ => {}
    }
}

fn mentions_impl(tokens: Tokens) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(word) => word == "impl",
        TokenTree::Group(group) => mentions_impl(group.stream()),
        _ => false,
    })
}

/// What is in the parentheses of the attribute.
struct Written {
    krate: Path,
    parts: Vec<Part>,
}

impl Written {
    fn parse(input: ParseStream<'_>) -> Result<Written> {
        let mut written = Written { krate: syn::parse_quote!(::namegrad), parts: Vec::<Part>::new() };
        while !input.is_empty() {
            if input.peek(Token![crate]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                written.krate = input.call(Path::parse_mod_style)?;
            } else {
                let part = Part::parse(input)?;
                if written.parts.iter().any(|other| other.place.text() == part.place.text()) {
                    let words = format!("the dims of `{}` are given twice", part.place.text());
                    return Err(Error::new(part.place.root.span(), words));
                }
                written.parts.push(part);
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        match written.parts.is_empty() {
            true => Err(input.error("say the dims of an argument or of the result: `#[dims(x = \"N C\")]`")),
            false => Ok(written),
        }
    }
}

/// An argument or the result, or a field of it.
struct Place {
    root: Ident,
    fields: Vec<Member>,
}

impl Place {
    fn is_result(&self) -> bool {
        self.root == "returns"
    }

    fn text(&self) -> String {
        let fields = self.fields.iter().map(|field| match field {
            Member::Named(name) => format!(".{name}"),
            Member::Unnamed(index) => format!(".{}", index.index),
        });
        fields.fold(self.root.to_string(), |text, field| text + &field)
    }
}

/// `q = "N query embed"`.
struct Part {
    place: Place,
    notation: LitStr,
}

impl Part {
    fn parse(input: ParseStream<'_>) -> Result<Part> {
        // `self` is a word as well.
        let mut place = Place { root: input.call(Ident::parse_any)?, fields: Vec::new() };
        while input.peek(Token![.]) {
            input.parse::<Token![.]>()?;
            place.fields.push(input.parse()?);
        }
        input.parse::<Token![=]>()?;
        if !input.peek(LitStr) {
            return Err(input.error("expected the dims as a text, such as \"N C\""));
        }
        Ok(Part { place, notation: input.parse()? })
    }

    /// The value of `Notation`. New names are added to `names`, with their sizes and where these are said.
    fn notation(
        &self,
        names: &mut Vec<(String, Option<(usize, String)>)>,
        support: &Tokens,
    ) -> Result<Tokens> {
        let (text, place) = (self.notation.value(), self.place.text());
        let fail = |words: String| Error::new(self.notation.span(), format!("`{place}`: {words}"));
        let inner = text.trim();
        let ordered = inner.starts_with('[') || inner.ends_with(']');
        let inner = match inner.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
            Some(inner) => inner,
            None if ordered => return Err(fail("a list of dims in order is between `[` and `]`".into())),
            None => inner,
        };
        let (mut own, mut dims, mut rest) = (Vec::new(), Vec::new(), None);
        for word in inner.split_whitespace() {
            if word == "..." {
                if rest.replace(dims.len()).is_some() {
                    return Err(fail("`...` occurs twice".into()));
                }
                continue;
            }
            let (dim, optional) = word.strip_suffix('?').map_or((word, false), |dim| (dim, true));
            let (name, size) = dim.split_once('=').map_or((dim, None), |(name, size)| (name, Some(size)));
            let size = match size.map(str::parse::<usize>) {
                None => None,
                Some(Ok(size)) => Some(size),
                Some(Err(_)) => {
                    return Err(fail(format!("the size in `{word}` is not a number, as in `C=3`")));
                }
            };
            if !is_name(name) {
                let words = "is not the name of a dim: letters, digits and `_` without a digit in front, separated by spaces";
                return Err(fail(format!("`{name}` {words}")));
            }
            if own.contains(&name) {
                return Err(fail(format!("the dim `{name}` occurs twice")));
            }
            own.push(name);
            let at = names.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                names.push((name.to_owned(), None));
                names.len() - 1
            });
            match (&names[at].1, size) {
                (Some((other, place)), Some(size)) if *other != size => {
                    return Err(fail(format!(
                        "the dim `{name}` has size {size}, and size {other} in `{place}`"
                    )));
                }
                (None, Some(size)) => names[at].1 = Some((size, place.clone())),
                _ => {}
            }
            let (at, size) = (at as u32, size.map_or(quote!(#support::ANY), |size| quote!(#size)));
            dims.push(quote!(#support::NotedDim { name: #at, size: #size, optional: #optional }));
        }
        let rest = option(rest);
        Ok(quote! {
            #support::Notation {
                place: #place, text: #text, dims: &[#(#dims),*], ordered: #ordered, rest: #rest,
            }
        })
    }
}

/// Whether a dim can have this name: what `Name::new` accepts.
fn is_name(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=255).contains(&text.len()) && !text.as_bytes()[0].is_ascii_digit() && text.bytes().all(word)
}

fn option(number: Option<usize>) -> Tokens {
    match number {
        Some(number) => quote!(::core::option::Option::Some(#number)),
        None => quote!(::core::option::Option::None),
    }
}

#[cfg(test)]
mod tests;
