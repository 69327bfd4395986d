//! The grammar of op rows, and the code that the macros generate from them.
//!
//! Each op is defined once, as a row of a table. From the rows of a table, [`ops!`] generates the methods of
//! plain values, in-place forms, option structs and data about each op, and a macro that passes the same
//! tokens to other crates. [`derivatives!`] generates the methods of tensors, which record themselves on the
//! tape. `row`, `names` and `derivative` have the grammar, `given` shows what a method takes and how it
//! reaches the kernel, `values` and `tape` generate the code, `elements` the loops, `options` the option
//! structs, `recorded` the recipes of ops on the tape, `by_name` the entries of the registry, and `chain` the
//! methods of results.

#![forbid(unsafe_code)]

mod autocast;
mod by_name;
mod chain;
mod composed;
mod derivative;
mod docs;
mod elements;
mod functional;
mod given;
mod layer;
mod names;
mod options;
mod recorded;
mod row;
mod setters;
mod tape;
#[cfg(test)]
mod tests;
mod values;

use derivative::Derivatives;
use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use row::OpTable;
use std::path::Path;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Error, Ident, Result, Token, braced};

/// A table of ops: `ops! { unary; rows }` in `core/src/ops/unary.rs`.
#[proc_macro]
pub fn ops(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(of_file(input.into(), &file(), expand_ops))
}

/// The derivatives of the ops of a table: `derivatives! { unary; |g, cx| exp(x) -> y { x: [y] g * y } .. }`.
#[proc_macro]
pub fn derivatives(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(of_file(input.into(), &file(), |table| expand_derivatives(table).map(Expansion::from)))
}

/// Elementwise kernels that are not ops: `kernels! { rows }`. The rows look like rows of ops without an
/// in-place form.
#[proc_macro]
pub fn kernels(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(expand_kernels(input.into()))
}

/// Ops composed of other ops: `composed! { products; rows }`. Their code is in their rows, or in functions of
/// the module `kernels` beside it.
#[proc_macro]
pub fn composed(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(expand_composed(input.into()))
}

/// Free functions of tensors: `functional! { loss; rows }`. Their code is in their rows, or in functions of the
/// module `kernels` beside it.
#[proc_macro]
pub fn functional(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(expand_functional(input.into()))
}

/// Methods of tensors in a crate of their own, as a trait: `methods! { solve; rows }`. Their code is in their
/// rows, or in functions of the module `kernels` beside it. The trait is called `Methods`; it is implemented
/// for tensors, for results of other ops and for parameters.
#[proc_macro]
pub fn methods(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(expand_methods(input.into()))
}

/// Free functions for methods of tensors, and layers that call them:
/// `functions! { unary: relu layer Relu, elu; along: softmax }`. The first word is the table that has their
/// rows.
#[proc_macro]
pub fn functions(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(expand_functions(input.into()))
}

/// The second step of [`functions!`], which gets the rows of a table.
#[doc(hidden)]
#[proc_macro]
pub fn functions_of(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(expand_functions_of(input.into()))
}

/// The second step of [`derivatives!`], which gets the rows of the table.
#[doc(hidden)]
#[proc_macro]
pub fn tape(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(expand_tape(input.into()))
}

/// The constructor and the chained setters of an option struct with public fields, for structs that do not
/// come from rows. With `#[setters(row)]` on the struct, it has no constructor; with `#[setters(of(A, B), at =
/// settings)]`, the setters are those of the builders `A` and `B`, whose field `settings` holds the struct, and
/// with `own` those of the struct too, which set an `Option` to one. With `#[setters(default = value)]` on a
/// field, which otherwise starts as the default of its type, the struct gets `Default`.
///
/// A struct called `LinearConfig` has the settings of the layer `Linear`, and with `#[setters(builds(A, B))]`
/// those of the layers `A` and `B`. It makes `LinearBuilder`, which holds it as `config`, and the layer's
/// constructors `new` and `builder`. Their arguments, with their docs, are the fields with `#[setters(given)]`
/// and dims without a default; `config()` returns the settings or the first error of a dim. A default can use
/// the fields above it, and `layer` for the name of the layer, which is that of the type or `#[setters(layer =
/// NAME)]`; `generics(..)` has the generics of the layer.
///
/// The setter of a field takes its type, and for an `Option` its content; for `f64`, `Dim`, `Extents` and
/// `NewName` anything that converts into them; for a `Parameter` a reference, and for a `Tensor` one to a
/// tensor or to a parameter, whose value it takes. `#[setters(into)]` on the field takes anything that
/// converts into its type, and `skip` makes no setter.
#[proc_macro_derive(Setters, attributes(setters))]
pub fn setters(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(syn::parse(input).and_then(|input| setters::of_struct(&input)))
}

/// `Immediate` for an enum without fields, whose words in calls by name are those of the variants:
/// `nearest-exact` for `NearestExact`, unless the variant has another one, as `#[word = "batchmean"]`.
#[proc_macro_derive(Words, attributes(word))]
pub fn words(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(syn::parse(input).and_then(|input| setters::words(&input)))
}

/// The path of the file in which the macro is called.
fn file() -> String {
    proc_macro::Span::call_site().file()
}

/// Expands a table, which must have the name of its file, by which its derivatives find it. Under another
/// name it is expanded as well, so that its mistake is the only error.
fn of_file(
    table: TokenStream,
    path: &str,
    expand: impl Fn(TokenStream) -> Result<Expansion>,
) -> Result<Expansion> {
    let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str());
    let mut tokens = table.clone().into_iter();
    match (tokens.next(), stem) {
        (Some(TokenTree::Ident(name)), Some(stem)) if name != stem => {
            let message = format!("the table of {stem}.rs is called `{stem}`, not `{name}`");
            let right = TokenTree::Ident(Ident::new(stem, name.span()));
            let mut expansion = expand([right].into_iter().chain(tokens).collect())?;
            expansion.errors.insert(0, Error::new(name.span(), message));
            Ok(expansion)
        }
        _ => expand(table),
    }
}

/// The expansion of a table: the code for the valid rows, and the errors in the others.
#[derive(Default)]
struct Expansion {
    code: TokenStream,
    errors: Vec<Error>,
}

impl From<TokenStream> for Expansion {
    fn from(code: TokenStream) -> Expansion {
        Expansion { code, errors: Vec::new() }
    }
}

fn or_error(result: Result<impl Into<Expansion>>) -> proc_macro::TokenStream {
    let expansion = match result {
        Ok(made) => made.into(),
        Err(error) => Expansion { errors: vec![error], ..Expansion::default() },
    };
    let Expansion { code, errors } = expansion;
    let errors = errors.iter().map(Error::to_compile_error);
    quote!(#(#errors)* #code).into()
}

fn expand_ops(input: TokenStream) -> Result<Expansion> {
    let mut table: OpTable = syn::parse2(input.clone())?;
    table.keep(|row| {
        let no_method = row.tensors.first().is_some_and(|first| first.kind == row::TensorKind::Operand);
        if row.gradient.is_some() || row.is_in_place_only() || no_method {
            return Err(
                "only composed ops exist in place alone, have an `Operand` first, or say here what their gradient is",
            );
        }
        if row.code.is_some() {
            return Err("only composed ops and functions have their code in their rows");
        }
        layer::none(row)
    });
    let made = values::table(&table);
    let name = &table.name;
    let transport = format_ident!("{name}_ops");
    // The table with its name and `;`.
    let code = quote! {
        #made
        /// Passes the rows of this table to `$with`, together with its other arguments.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! #transport {
            ($with:path { $($more:tt)* }) => { $with! { { #input } { $($more)* } } };
        }
    };
    Ok(Expansion { code, errors: table.errors })
}

fn expand_derivatives(input: TokenStream) -> Result<TokenStream> {
    /// `unary; ..`
    struct Named(Ident, TokenStream);
    impl Parse for Named {
        fn parse(input: ParseStream<'_>) -> Result<Named> {
            let name = input.parse()?;
            input.parse::<Token![;]>()?;
            Ok(Named(name, input.parse()?))
        }
    }
    let Named(name, rest) = syn::parse2(input)?;
    let transport = format_ident!("{name}_ops");
    Ok(quote!(::namegrad_core::#transport! { ::namegrad_macros::tape { #rest } }))
}

/// The rows of a table, and the other arguments of the macro that has them.
struct Both(TokenStream, TokenStream);

impl Parse for Both {
    fn parse(input: ParseStream<'_>) -> Result<Both> {
        let (rows, rest);
        braced!(rows in input);
        braced!(rest in input);
        Ok(Both(rows.parse()?, rest.parse()?))
    }
}

fn expand_tape(input: TokenStream) -> Result<Expansion> {
    let Both(rows, rest) = syn::parse2(input)?;
    let table: OpTable = syn::parse2(resolved_here(rows))?;
    let mut derivatives: Derivatives = syn::parse2(rest)?;
    let mut errors = std::mem::take(&mut derivatives.errors);
    let (code, more) = tape::table(&table, &derivatives);
    errors.extend(more);
    Ok(Expansion { code, errors })
}

fn expand_kernels(input: TokenStream) -> Result<Expansion> {
    let mut table: OpTable = syn::parse2(quote!(kernels; #input))?;
    table.keep(|row| if row.by_element() { Ok(()) } else { Err("expected a formula, `{ float: .. }`") });
    Ok(Expansion { code: elements::kernels(&table.rows), errors: table.errors })
}

fn expand_composed(input: TokenStream) -> Result<Expansion> {
    let mut table: OpTable = syn::parse2(input)?;
    table.keep(composed::check);
    table.keep(layer::none);
    Ok(Expansion { code: composed::table(&table), errors: table.errors })
}

fn expand_functional(input: TokenStream) -> Result<Expansion> {
    let mut table: OpTable = syn::parse2(input)?;
    table.keep(functional::check);
    Ok(Expansion { code: functional::table(&table), errors: table.errors })
}

fn expand_methods(input: TokenStream) -> Result<Expansion> {
    let mut table: OpTable = syn::parse2(input)?;
    table.keep(functional::check);
    table.keep(layer::none);
    table.keep(|row| if row.is_method() { Ok(()) } else { Err("a method needs a tensor first") });
    Ok(Expansion { code: functional::methods(&table), errors: table.errors })
}

fn expand_functions(input: TokenStream) -> Result<TokenStream> {
    /// `unary: relu layer Relu, elu; ..`
    struct Tables(Vec<(Ident, TokenStream)>);
    impl Parse for Tables {
        fn parse(input: ParseStream<'_>) -> Result<Tables> {
            let mut tables = Vec::new();
            while !input.is_empty() {
                let name = input.parse()?;
                input.parse::<Token![:]>()?;
                let mut ops = TokenStream::new();
                while !input.is_empty() && !input.peek(Token![;]) {
                    ops.extend([input.parse::<TokenTree>()?]);
                }
                input.parse::<Option<Token![;]>>()?;
                tables.push((name, ops));
            }
            Ok(Tables(tables))
        }
    }
    let Tables(tables) = syn::parse2(input)?;
    let each = tables.iter().map(|(name, ops)| {
        let transport = format_ident!("{name}_ops");
        quote!(::namegrad_core::#transport! { ::namegrad_macros::functions_of { #ops } })
    });
    Ok(each.collect())
}

fn expand_functions_of(input: TokenStream) -> Result<TokenStream> {
    let Both(rows, ops) = syn::parse2(input)?;
    let table: OpTable = syn::parse2(resolved_here(rows))?;
    (|ops: ParseStream<'_>| functional::functions(table, ops)).parse2(ops)
}

/// Makes tokens that came through a macro resolve where they are used now. They keep their source locations,
/// for errors.
fn resolved_here(tokens: TokenStream) -> TokenStream {
    let here = |mut tree: TokenTree| {
        if let TokenTree::Group(group) = &tree {
            let mut inside = Group::new(group.delimiter(), resolved_here(group.stream()));
            inside.set_span(group.span());
            tree = TokenTree::Group(inside);
        }
        tree.set_span(tree.span().resolved_at(Span::call_site()));
        tree
    };
    tokens.into_iter().map(here).collect()
}
