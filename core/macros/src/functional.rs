//! The back end for free functions of tensors. A function has an entry in the registry, and its code in its row
//! or in the function with the same name in `kernels`. Methods of tensors can also become functions; they
//! already have entries.

use crate::chain;
use crate::composed::{all_rows, body, in_rows};
use crate::derivative::nearest;
use crate::given::{Parameter, Side};
use crate::layer;
use crate::row::{OpRow, OpTable, here, parse_layers};
use crate::values::{Forms, MethodBody, at_row, forms};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::parse::ParseStream;
use syn::{Error, Result, Token};

/// Checks that a row of a function has nothing that it must not have.
pub(crate) fn check(row: &OpRow) -> std::result::Result<(), &'static str> {
    match row.by_element() || !row.outputs.kept.is_empty() || row.writes() || row.in_place.is_some() {
        true => Err("a function has no kernel, keeps nothing and writes to nothing"),
        false => layer::check(row),
    }
}

/// The code for a table of functions.
pub(crate) fn table(table: &OpTable) -> TokenStream {
    let prefix = table.prefix.as_ref().map(|prefix| format!("{prefix}."));
    let functions = Side::functions();
    let side = Side { prefix: prefix.unwrap_or(functions.prefix.clone()), ..functions };
    let (functions, options, entries) = all_rows(table, &side, function);
    let layers: TokenStream = table.rows.iter().map(|row| layer::of_row(row, &side)).collect();
    let (plain, functions, in_rows) = (functions.module(), &functions.methods, in_rows(table, &side));
    quote! {
        #plain
        #in_rows
        #functions
        /// The layers of this table.
        pub(crate) mod layers {
            #[allow(unused_imports)] // a table may have none
            use super::*;
            #layers
        }
        #[doc(hidden)]
        pub mod options { use super::*; #options }
        #[allow(unused_imports)] // a table may have none
        use self::options::*;
        /// The functions of this table, as the registry has them.
        pub(crate) static OPS: &[&::namegrad_autograd::registry::Op] = &[#entries];
    }
}

/// The code for a table of methods in a crate of their own: their functions, which are not public, and the
/// trait.
pub(crate) fn methods(table: &OpTable) -> TokenStream {
    let side = Side::extension();
    let (functions, options, entries) = all_rows(table, &side, function);
    let (plain, functions, in_rows) = (functions.module(), &functions.methods, in_rows(table, &side));
    let (heading, methods) = (&table.heading, chain::extension(table, &side));
    quote! {
        #plain
        #in_rows
        mod functions {
            #![allow(unreachable_pub)]
            use super::*;
            #functions
        }
        #(#heading)*
        pub trait Methods: ::namegrad_autograd::chain::Made { #methods }
        impl Methods for &::namegrad_autograd::Tensor {}
        impl Methods for ::namegrad_core::Result<::namegrad_autograd::Tensor> {}
        impl Methods for &::namegrad_autograd::Parameter {}
        #[doc(hidden)]
        pub mod options { use super::*; #options }
        #[allow(unused_imports)] // a table may have none
        use {self::functions::*, self::options::*};
        /// The ops of this table, as the registry has them.
        pub(crate) static OPS: &[&::namegrad_autograd::registry::Op] = &[#entries];
    }
}

fn function(row: &OpRow, side: &Side) -> Forms {
    // The methods of a trait have the docs.
    let doc = if side.shows_methods() { quote!() } else { row.doc(side) };
    forms(row, side, &doc, &side.returned(row), &MethodBody::Own(body(row, side)), &row.name)
}

/// Functions for ops of a table that are methods, `relu layer Relu, elu`, and their layers.
pub(crate) fn functions(mut table: OpTable, ops: ParseStream<'_>) -> Result<TokenStream> {
    let side = Side { local_types: false, ..Side::functions() };
    let (mut functions, mut layers) = (TokenStream::new(), TokenStream::new());
    while !ops.is_empty() {
        let op: Ident = ops.parse()?;
        let Some(row) = table.rows.iter_mut().find(|row| row.name == op) else {
            let near = nearest(&op.to_string(), table.rows.iter().map(|row| row.name.to_string()));
            let message = format!("`{op}` is not an op of core/src/ops/{}.rs{near}", table.name);
            return Err(Error::new(op.span(), message));
        };
        row.layers = parse_layers(ops, row)?;
        layer::check(row).map_err(|message| row.error(op.span(), message))?;
        if !ops.is_empty() && ops.parse::<Option<Token![,]>>()?.is_none() {
            return Err(here(ops, format!("`{op}`: expected `layer NAME`, `,` or `;`")));
        }
        functions.extend(of_method(row, &op, &side));
        layers.extend(layer::of_row(row, &side));
    }
    let module = format_ident!("{}_layers", table.name);
    let layers = (!layers.is_empty()).then(|| {
        quote! {
            /// The layers of these functions.
            pub(crate) mod #module { use super::*; #layers }
        }
    });
    Ok(quote!(#functions #layers))
}

/// The function `op` for the method of a row.
fn of_method(row: &OpRow, op: &Ident, side: &Side) -> TokenStream {
    let parameters = side.parameters(row);
    let given: Vec<&Ident> = parameters.iter().map(|parameter| &parameter.name).collect();
    let parameters: Vec<TokenStream> = parameters.iter().map(Parameter::declared).collect();
    let (returned, doc, name) = (side.returned(row), row.doc(side), &row.name);
    let mut function = quote! {
        #doc
        #[inline]
        #[track_caller]
        pub fn #op(#(#parameters),*) -> ::namegrad_core::Result<#returned> {
            ::namegrad_autograd::Tensor::#name(#(#given),*)
        }
    };
    if row.has_options() {
        let (with, options) = (row.with_name(false), side.options_type(row));
        let doc = format!(" [`{op}`] with options.");
        let errors = row.errors(side);
        function.extend(quote! {
            #[doc = #doc]
            #(#[doc = #errors])*
            #[inline]
            #[track_caller]
            pub fn #with(#(#parameters,)* options: #options) -> ::namegrad_core::Result<#returned> {
                ::namegrad_autograd::Tensor::#with(#(#given,)* options)
            }
        });
    }
    at_row(function, op, side)
}
