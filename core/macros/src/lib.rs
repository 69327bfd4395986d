//! The grammar of op rows, and what is made of them.
//!
//! An op is written down once, as a row of a table (`row.rs` has the grammar). From the rows of a table
//! [`ops!`] makes the methods of plain values, in-place forms, structs of options and data on each op, and a
//! macro that hands the same tokens to other crates; [`derivatives!`] makes the methods of tensors that
//! record what they do. To read: `row` and `derivative` for the grammar, `given` for what a method takes and
//! how it reaches the kernel, `values` and `tape` for the two back ends.

mod composed;
mod derivative;
mod docs;
mod functional;
mod given;
mod row;
mod tape;
#[cfg(test)]
mod tests;
mod values;

use derivative::Derivatives;
use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use row::Table;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Ident, Result, Token, braced};

/// A table of ops: `ops! { unary; rows }` in `core/src/ops/unary.rs`.
#[proc_macro]
pub fn ops(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(expand_ops(input.into()))
}

/// The derivatives of the ops of a table: `derivatives! { unary; |g, cx| exp(x) -> y { x: [y] g * y } .. }`.
#[proc_macro]
pub fn derivatives(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(expand_derivatives(input.into()))
}

/// Kernels by element that are not ops: `kernels! { rows }`, rows as those of ops without an in-place form.
#[proc_macro]
pub fn kernels(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(expand_kernels(input.into()))
}

/// Ops made of others: `composed! { products; rows }`, whose functions are in the module `kernels` beside it.
#[proc_macro]
pub fn composed(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(expand_composed(input.into()))
}

/// Functions of tensors, with the functions that they call in the module `kernels` beside them: `functional!
/// { loss; rows }`.
#[proc_macro]
pub fn functional(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(expand_functional(input.into()))
}

/// Methods of tensors as functions: `functions! { unary: relu, elu; along: softmax }`, by the tables that
/// have their rows.
#[proc_macro]
pub fn functions(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(expand_functions(input.into()))
}

/// What [`functions!`] becomes once the rows of a table are there.
#[doc(hidden)]
#[proc_macro]
pub fn functions_of(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(expand_functions_of(input.into()))
}

/// What [`derivatives!`] becomes once the rows are there.
#[doc(hidden)]
#[proc_macro]
pub fn tape(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    or_error(expand_tape(input.into()))
}

fn or_error(result: Result<TokenStream>) -> proc_macro::TokenStream {
    result.unwrap_or_else(|error| error.to_compile_error()).into()
}

fn expand_ops(input: TokenStream) -> Result<TokenStream> {
    let table: Table = syn::parse2(input.clone())?;
    if let Some(row) = table.rows.iter().find(|row| {
        let no_method = row.tensors.first().is_some_and(|first| first.kind == row::TensorKind::Operand);
        row.gradient.is_some() || row.is_in_place_only() || no_method
    }) {
        let message = format!(
            "`{}`: only composed ops exist in place alone, have an `Operand` first, or say here what their gradient is",
            row.name
        );
        return Err(syn::Error::new(row.name.span(), message));
    }
    let made = values::table(&table);
    let name = &table.name;
    let transport = format_ident!("{name}_ops");
    // The table with its name and `;`.
    Ok(quote! {
        #made
        /// Hands the rows of this table to `$with`, together with what else it is given.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! #transport {
            ($with:path { $($more:tt)* }) => { $with! { { #input } { $($more)* } } };
        }
    })
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

/// The rows of a table, and what else the macro that has them was given.
struct Both(TokenStream, TokenStream);

impl Parse for Both {
    fn parse(input: ParseStream<'_>) -> Result<Both> {
        let (rows, rest);
        braced!(rows in input);
        braced!(rest in input);
        Ok(Both(rows.parse()?, rest.parse()?))
    }
}

fn expand_tape(input: TokenStream) -> Result<TokenStream> {
    let Both(rows, rest) = syn::parse2(input)?;
    let table: Table = syn::parse2(resolved_here(rows))?;
    let derivatives: Derivatives = syn::parse2(rest)?;
    Ok(tape::table(&table, &derivatives))
}

fn expand_kernels(input: TokenStream) -> Result<TokenStream> {
    struct Rows(Vec<row::Row>);
    impl Parse for Rows {
        fn parse(input: ParseStream<'_>) -> Result<Rows> {
            row::parse_rows(input).map(Rows)
        }
    }
    let Rows(rows) = syn::parse2(input)?;
    if let Some(row) = rows.iter().find(|row| !row.by_element()) {
        return Err(syn::Error::new(
            row.name.span(),
            format!("`{}`: expected a formula, `{{ float: .. }}`", row.name),
        ));
    }
    Ok(values::kernels(&rows))
}

fn expand_composed(input: TokenStream) -> Result<TokenStream> {
    let table: Table = syn::parse2(input)?;
    composed::table(&table)
}

fn expand_functional(input: TokenStream) -> Result<TokenStream> {
    let table: Table = syn::parse2(input)?;
    functional::table(&table)
}

fn expand_functions(input: TokenStream) -> Result<TokenStream> {
    /// `unary: relu, elu; ..`
    struct Tables(Vec<(Ident, TokenStream)>);
    impl Parse for Tables {
        fn parse(input: ParseStream<'_>) -> Result<Tables> {
            let mut tables = Vec::new();
            while !input.is_empty() {
                let name = input.parse()?;
                input.parse::<Token![:]>()?;
                let ops = Punctuated::<Ident, Token![,]>::parse_separated_nonempty(input)?;
                tables.push((name, quote!(#ops)));
                input.parse::<Option<Token![;]>>()?;
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
    let table: Table = syn::parse2(resolved_here(rows))?;
    let ops = Punctuated::<Ident, Token![,]>::parse_terminated.parse2(ops)?;
    functional::functions(&table, ops.iter())
}

/// Tokens that came through a macro resolve where they are used now. Their places in the source stay, for
/// errors.
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
