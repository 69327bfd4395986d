//! `#[derive(Setters)]`: the constructor and the chained setters of an option struct.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Result};

/// `new`, which returns the defaults, and a setter for each field with its name and doc.
pub(crate) fn of_struct(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(input, "options are a struct"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(input, "options are fields with names"));
    };
    let name = &input.ident;
    let mut setters = TokenStream::new();
    for field in &fields.named {
        let (field_name, ty) = (&field.ident, &field.ty);
        let mut into = false;
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("setters")) {
            attribute.parse_nested_meta(|meta| match meta.path.is_ident("into") {
                true => {
                    into = true;
                    Ok(())
                }
                false => Err(meta.error("expected `into`")),
            })?;
        }
        let (given, value) = match into {
            true => (quote!(impl ::std::convert::Into<#ty>), quote!(#field_name.into())),
            false => (quote!(#ty), quote!(#field_name)),
        };
        let docs = field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
        setters.extend(quote! {
            #(#docs)*
            pub fn #field_name(mut self, #field_name: #given) -> #name {
                self.#field_name = #value;
                self
            }
        });
    }
    Ok(quote! {
        impl #name {
            /// The defaults.
            pub fn new() -> #name {
                ::std::default::Default::default()
            }
            #setters
        }
    })
}
