//! The casts of an op under `autocast`. The classes of ops are a table in `autograd/src/autocast.rs`, which
//! is read at compile time: an op without a class has no code for this in an optimized build.

use crate::given::inputs;
use crate::row::TensorKind;
use proc_macro2::{Ident, TokenStream};
use quote::quote;

/// Statements that compute the op with cast tensors and return, if it has a class and `autocast` is on.
/// `then` is the result, an expression that sees the cast tensors under the names of the given ones, and
/// copies of `args`.
pub(crate) fn with_casts<'a>(
    autograd: &TokenStream,
    op: &str,
    tensors: impl Iterator<Item = (TensorKind, &'a Ident)>,
    args: &[&Ident],
    then: &TokenStream,
) -> TokenStream {
    let tensors: Vec<(TensorKind, &Ident)> = tensors.collect();
    let inputs = inputs(tensors.iter().copied(), &quote!(#autograd::plain));
    let casts = tensors.iter().enumerate().map(|(at, (kind, name))| match kind {
        TensorKind::Optional => quote!(let #name = casts.optional(#at);),
        TensorKind::List => quote!(let #name = &casts.list(#at)[..];),
        _ => quote!(let #name = casts.one(#at);),
    });
    quote! {
        const CLASS: ::std::option::Option<#autograd::autocast::Class> = #autograd::autocast::class_of(#op);
        const HAS_CLASS: bool = CLASS.is_some();
        if HAS_CLASS && #autograd::autocast::is_on() {
            return #autograd::autocast::with_casts(#op, CLASS, #inputs, &|casts: &#autograd::autocast::Casts| {
                #(#casts)*
                #(let #args = ::std::clone::Clone::clone(&#args);)*
                #then
            });
        }
    }
}
