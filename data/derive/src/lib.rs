//! `#[derive(Collate)]`: see `namegrad_data::Collate`.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;
use proc_macro2::{Span, TokenStream as Tokens};
use quote::{format_ident, quote, quote_spanned};
use syn::{Data, DeriveInput, Fields, Ident, Index, Member, Path, parse_macro_input, parse_quote};

/// Implements `Collate` for a struct, and makes the struct of a batch, whose fields are the batches of the
/// fields. It is called as the struct with `Batch` after it.
///
/// On the struct, `#[collate(batch = Name)]` is another name, and `#[collate(crate = path)]` is the path of
/// `Collate`'s module if it is not `::namegrad::data`.
#[proc_macro_derive(Collate, attributes(collate))]
pub fn derive_collate(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// The options of `#[collate(..)]`.
struct Options {
    krate: Path,
    batch: Ident,
}

impl Options {
    fn of(input: &DeriveInput) -> syn::Result<Options> {
        let batch = format_ident!("{}Batch", input.ident);
        let mut options = Options { krate: parse_quote!(::namegrad::data), batch };
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("collate")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("crate") {
                    options.krate = meta.value()?.call(Path::parse_mod_style)?;
                } else if meta.path.is_ident("batch") {
                    options.batch = meta.value()?.parse()?;
                } else {
                    return Err(meta.error("expected `batch = Name` or `crate = path`"));
                }
                Ok(())
            })?;
        }
        Ok(options)
    }
}

fn expand(input: DeriveInput) -> syn::Result<Tokens> {
    let name = &input.ident;
    let Data::Struct(data) = &input.data else {
        let message = "Collate can be derived for structs; for an enum, implement it by hand";
        return Err(syn::Error::new_spanned(name, message));
    };
    if data.fields.is_empty() {
        return Err(syn::Error::new_spanned(name, "a sample without fields makes no batch"));
    }
    let Options { krate, batch } = Options::of(&input)?;
    let mut generics = input.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(#krate::Collate));
    }

    let (mut members, mut lists, mut declared, mut batches) = (vec![], vec![], vec![], vec![]);
    for (index, field) in data.fields.iter().enumerate() {
        // For a field of an unsupported type, the compiler points at the type.
        let span = Span::call_site().located_at(syn::spanned::Spanned::span(&field.ty));
        let (ty, visibility, list) = (&field.ty, &field.vis, format_ident!("list_{index}"));
        let label = field.ident.as_ref().map_or_else(|| index.to_string(), |ident| ident.to_string());
        let label = label.trim_start_matches("r#");
        let doc = format!("The batch of `{label}`.");
        let colon = field.ident.as_ref().map(|ident| quote!(#ident:));
        declared
            .push(quote_spanned!(span=> #[doc = #doc] #visibility #colon <#ty as #krate::Collate>::Batch));
        members.push(match &field.ident {
            Some(ident) => Member::Named(ident.clone()),
            None => Member::Unnamed(Index { index: index as u32, span }),
        });
        batches.push(quote_spanned!(span=> #krate::derived::field::<#ty>(#label, #list, how)?));
        lists.push(list);
    }
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    let (visibility, doc) = (&input.vis, format!("A batch of [`{name}`]."));
    let declaration = match &data.fields {
        Fields::Named(_) => quote!(#visibility struct #batch #generics #where_clause { #(#declared,)* }),
        _ => quote!(#visibility struct #batch #generics (#(#declared,)*) #where_clause;),
    };
    Ok(quote! {
        #[doc = #doc]
        #declaration

        impl #impl_generics #krate::Collate for #name #ty_generics #where_clause {
            type Batch = #batch #ty_generics;

            fn collate(
                samples: ::std::vec::Vec<Self>,
                how: &#krate::Collation<'_>,
            ) -> #krate::derived::Result<Self::Batch> {
                #(let mut #lists = ::std::vec::Vec::with_capacity(samples.len());)*
                for sample in samples {
                    #(#lists.push(sample.#members);)*
                }
                ::std::result::Result::Ok(#batch { #(#members: #batches,)* })
            }
        }
    })
}
