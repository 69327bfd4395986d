//! The back end for chains: the methods of `Tensor` that rows make, for the result of another op and for
//! parameters.

use crate::given::{Parameter, Side};
use crate::row::{OpRow, OpTable};
use crate::tape::static_path;
use crate::values::at_row;
use proc_macro2::{Ident, TokenStream};
use quote::quote;

/// A trait with the methods of a table, implemented for `Result<Tensor>` and `&Parameter`.
pub(crate) fn table(table: &OpTable, side: &Side, statics: &[&OpRow]) -> TokenStream {
    let methods = table.rows.iter().filter(|row| side.is_method(row) && !row.is_in_place_only());
    let methods =
        methods.map(|row| match statics.iter().any(|other| other.name == row.name) && row.args.is_empty() {
            true => method_of_static(row, side),
            false => methods_of(row, side),
        });
    quote! {
        /// The ops of this table as methods of the result of another op and of a parameter.
        #[doc(hidden)]
        pub trait Chained: crate::chain::Made { #(#methods)* }
        impl Chained for ::namegrad_core::Result<crate::Tensor> {}
        impl Chained for &crate::Parameter {}
    }
}

/// The methods of a trait that calls the functions of a table, for tensors as well.
pub(crate) fn extension(table: &OpTable, side: &Side) -> TokenStream {
    table.rows.iter().map(|row| at_row(extension_of(row, side), &row.name, side)).collect()
}

fn extension_of(row: &OpRow, side: &Side) -> TokenStream {
    let (name, returned, doc) = (&row.name, side.returned(row), row.doc(side));
    let parameters = side.parameters(row).split_off(1);
    let passed: Vec<&Ident> = parameters.iter().map(|parameter| &parameter.name).collect();
    let parameters: Vec<TokenStream> = parameters.iter().map(Parameter::declared).collect();
    let called = |name: &Ident, options: TokenStream| {
        quote! {
            match ::namegrad_autograd::chain::Made::made(self) {
                Ok(made) => functions::#name(&made, #(#passed,)* #options),
                Err(error) => Err(error),
            }
        }
    };
    let plain = called(name, quote!());
    let with_options = row.has_options().then(|| {
        let (with, options) = (row.with_name(false), side.options_type(row));
        let body = called(&with, quote!(options));
        let (first, errors) = (format!(" [`{name}`](Self::{name}) with options."), row.errors(side));
        quote! {
            #[doc = #first]
            #(#[doc = #errors])*
            #[inline]
            #[track_caller]
            fn #with(self, #(#parameters,)* options: #options) -> ::namegrad_core::Result<#returned> { #body }
        }
    });
    quote! {
        #doc
        #[inline]
        #[track_caller]
        fn #name(self, #(#parameters),*) -> ::namegrad_core::Result<#returned> { #plain }
        #with_options
    }
}

fn methods_of(row: &OpRow, side: &Side) -> TokenStream {
    let (name, returned) = (&row.name, side.returned(row));
    let parameters = side.parameters(row);
    let passed: Vec<&Ident> = parameters.iter().map(|parameter| &parameter.name).collect();
    let parameters: Vec<TokenStream> = parameters.iter().map(Parameter::declared).collect();
    let with_options = row.has_options().then(|| {
        let (name, options) = (row.with_name(false), side.options_type(row));
        quote! {
            #[inline]
            #[track_caller]
            fn #name(self, #(#parameters,)* options: #options) -> ::namegrad_core::Result<#returned> {
                match crate::chain::Made::made(self) {
                    Ok(made) => made.#name(#(#passed,)* options),
                    Err(error) => Err(error),
                }
            }
        }
    });
    quote! {
        #[inline]
        #[track_caller]
        fn #name(self, #(#parameters),*) -> ::namegrad_core::Result<#returned> {
            match crate::chain::Made::made(self) {
                Ok(made) => made.#name(#(#passed),*),
                Err(error) => Err(error),
            }
        }
        #with_options
    }
}

/// The method of an elementwise op that is a static. It is compiled for each type of operand in each crate, so
/// it only passes what it gets on.
fn method_of_static(row: &OpRow, side: &Side) -> TokenStream {
    let (name, op) = (&row.name, static_path(row));
    let parameters = side.parameters(row);
    let (function, passed) = match &parameters[..] {
        [operand] => (quote!(binary_of), Some(&operand.passed)),
        _ => (quote!(unary_of), None),
    };
    let parameters: Vec<TokenStream> = parameters.iter().map(Parameter::declared).collect();
    quote! {
        #[inline]
        #[track_caller]
        fn #name(self, #(#parameters),*) -> ::namegrad_core::Result<crate::Tensor> {
            crate::tape::#function(&#op, crate::chain::Made::made(self), #passed)
        }
    }
}
