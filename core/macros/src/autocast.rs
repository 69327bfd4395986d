//! The casts of an op under `autocast`. The classes of ops are a table in `autograd/src/autocast.rs`, which
//! is read at compile time: an op without a class has no code for this in an optimized build.

use crate::row::TensorKind;
use proc_macro2::{Ident, TokenStream};
use quote::quote;

/// Statements that compute the op with cast tensors and return, if it has a class and `autocast` is on.
/// `then` is the result, an expression that sees the cast tensors under the names of the given ones.
pub(crate) fn with_casts<'a>(
    autograd: &TokenStream,
    op: &str,
    tensors: impl Iterator<Item = (TensorKind, &'a Ident)>,
    then: &TokenStream,
) -> TokenStream {
    let (mut looks, mut casts) = (TokenStream::new(), TokenStream::new());
    for (kind, name) in tensors {
        match kind {
            TensorKind::Optional => {
                looks.extend(quote!(cast.look(#name);));
                casts.extend(quote! {
                    let #name = #name.map(|each| cast.of(each)).transpose()?;
                    let #name = #name.as_ref();
                });
            }
            TensorKind::List => {
                looks.extend(quote!(cast.look(#name.iter().copied());));
                casts.extend(quote! {
                    let #name = #name.iter().map(|each| cast.of(each));
                    let #name = #name.collect::<::namegrad_core::Result<::std::vec::Vec<_>>>()?;
                    let #name = &#name.iter().collect::<::std::vec::Vec<_>>()[..];
                });
            }
            _ => {
                looks.extend(quote!(cast.look([#name]);));
                casts.extend(quote!(let #name = &cast.of(#name)?;));
            }
        }
    }
    quote! {
        const CLASS: ::std::option::Option<#autograd::autocast::Class> = #autograd::autocast::class_of(#op);
        const HAS_CLASS: bool = CLASS.is_some();
        if HAS_CLASS && #autograd::autocast::is_on() {
            let mut cast = #autograd::autocast::Cast::new(#op, CLASS)?;
            #looks
            let _off = #autograd::autocast::Off::enter();
            #casts
            return #then.map_err(|error| cast.explain(error));
        }
    }
}
