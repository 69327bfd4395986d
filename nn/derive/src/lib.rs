//! `#[derive(Module)]`: see `namegrad_nn::Module`.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Fields, Generics, parse_macro_input, parse_quote};

/// Makes a struct a module: each field is one, and its name is the next part of the path of what it holds.
///
/// `#[module(skip)]` on a field leaves it out. `#[module(no_display)]` on the struct leaves out the `Display`
/// that prints the summary.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// The words of `#[module(..)]` on a struct or field.
#[derive(Default)]
struct Options {
    skip: bool,
    no_display: bool,
}

impl Options {
    fn of(attributes: &[syn::Attribute]) -> syn::Result<Options> {
        let mut options = Options::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("module")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("skip") {
                    options.skip = true;
                } else if meta.path.is_ident("no_display") {
                    options.no_display = true;
                } else {
                    return Err(meta.error("expected `skip` on a field or `no_display` on the struct"));
                }
                Ok(())
            })?;
        }
        Ok(options)
    }
}

fn expand(input: DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    let name = &input.ident;
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(
            name,
            "Module can be derived for structs; implement `visit` by hand for an enum",
        ));
    };
    let mut visits = Vec::new();
    for (index, field) in data.fields.iter().enumerate() {
        if Options::of(&field.attrs)?.skip {
            continue;
        }
        let label = field.ident.as_ref().map_or_else(|| index.to_string(), |ident| ident.to_string());
        let access = match (&data.fields, &field.ident) {
            (Fields::Named(_), Some(ident)) => quote!(self.#ident),
            _ => {
                let index = syn::Index::from(index);
                quote!(self.#index)
            }
        };
        // The span of the type lets the compiler point at the field that is no module.
        let ty = &field.ty;
        let visit = format_ident!("field", span = syn::spanned::Spanned::span(ty));
        visits.push(quote!(visitor.#visit(#label, &#access);));
    }
    let label = name.to_string();
    let generics = with_bounds(input.generics.clone());
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    let display = (!Options::of(&input.attrs)?.no_display).then(|| {
        quote! {
            impl #impl_generics ::std::fmt::Display for #name #ty_generics #where_clause {
                fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    ::std::fmt::Display::fmt(&::namegrad::nn::Module::summary(self), f)
                }
            }
        }
    });
    Ok(quote! {
        impl #impl_generics ::namegrad::nn::Module for #name #ty_generics #where_clause {
            fn visit(&self, visitor: &mut ::namegrad::nn::Visitor<'_>) {
                let _ = &visitor;
                #(#visits)*
            }
            fn describe(&self) -> ::std::string::String {
                ::std::string::String::from(#label)
            }
        }
        #display
    })
}

/// Each type parameter is a module.
fn with_bounds(mut generics: Generics) -> Generics {
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(::namegrad::nn::Module));
    }
    generics
}
