//! `#[derive(Setters)]`: the constructor and the chained setters of a struct of options.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Result};

/// `new` with the defaults, and for each field a setter of its name and doc.
pub(crate) fn of_struct(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(input, "options are a struct"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(input, "options are fields with names"));
    };
    let name = &input.ident;
    let setters = fields.named.iter().map(|field| {
        let (field_name, ty) = (&field.ident, &field.ty);
        let docs = field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
        quote! {
            #(#docs)*
            pub fn #field_name(mut self, #field_name: #ty) -> #name {
                self.#field_name = #field_name;
                self
            }
        }
    });
    Ok(quote! {
        impl #name {
            /// The defaults.
            pub fn new() -> #name {
                ::std::default::Default::default()
            }
            #(#setters)*
        }
    })
}
