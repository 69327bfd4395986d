//! `#[derive(Setters)]`: the constructor and the chained setters of an option struct, and the setters of
//! builders.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::Parse;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, Field, Fields, GenericArgument, Path, PathArguments, Result,
    Token, Type, parenthesized,
};

/// The words on a struct.
#[derive(Default)]
struct OnStruct {
    /// `builder`: of a layer, without `new`, which returns the defaults.
    builder: bool,
    /// `row`: without `new`, which the row of the struct has.
    row: bool,
    /// `of(A, B)`: the setters are those of these builders, which hold the struct.
    of: Vec<Path>,
    /// `own`: the struct has a constructor and setters besides those of its builders.
    own: bool,
    /// `at = settings`: the field of the builders that holds it.
    at: Option<Expr>,
    /// `fallible`: the field is a `Result`.
    fallible: bool,
}

/// How a setter gets the value of its field.
#[derive(Default)]
struct OnField {
    /// No setter.
    skip: bool,
    /// Anything that converts into the type.
    into: bool,
    /// The content of an `Option`.
    some: bool,
    /// A reference, which is cloned; a parameter in place of a tensor gives its value.
    cloned: bool,
}

/// `new`, which returns the defaults, and a setter for each field with its name and doc.
pub(crate) fn of_struct(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(input, "options are a struct"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(input, "options are fields with names"));
    };
    let OnStruct { builder, row, of, own: has_own, at, fallible } = on_struct(&input.attrs)?;
    let name = &input.ident;
    let (generics, own, bounds) = input.generics.split_for_impl();
    let setters = |place: &TokenStream| -> Result<TokenStream> {
        fields.named.iter().map(|field| setter(field, place, fallible)).collect()
    };
    let mut builders = TokenStream::new();
    if let Some(at) = at {
        let setters = setters(&quote!(self.#at))?;
        builders = quote!(#(impl #generics #of #own #bounds { #setters })*);
        if !has_own {
            return Ok(builders);
        }
    }
    let setters = setters(&quote!(self))?;
    let new = (!builder && !row).then(|| {
        quote! {
            /// The defaults.
            pub fn new() -> Self {
                ::std::default::Default::default()
            }
        }
    });
    let text = name.to_string();
    let misused = text.strip_suffix("Builder").filter(|_| builder).map(|built| {
        let built = format_ident!("{built}");
        misused(quote!(#generics), &quote!(#name #own), &quote!(#built #own), true)
    });
    Ok(quote! {
        #builders
        #misused
        impl #generics #name #own #bounds {
            #new
            #setters
        }
    })
}

/// The compiler's words for a setter of a layer, and for a method of a layer that is called on its builder: see
/// `namegrad_nn::misused`.
pub(crate) fn misused(
    generics: TokenStream,
    builder: &TokenStream,
    built: &TokenStream,
    is_result: bool,
) -> TokenStream {
    let result = is_result.then(|| quote!(::std::result::Result<#built, namegrad_core::Error>));
    let built = [built.clone()].into_iter().chain(result);
    quote! {
        #(impl #generics crate::misused::Options for #built where for<'never> #built: crate::misused::TakesOptions {})*
        impl #generics crate::misused::Built for #builder where for<'never> #builder: crate::misused::IsBuilt {}
    }
}

/// The setter of a field of the struct in `place`.
fn setter(field: &Field, place: &TokenStream, fallible: bool) -> Result<TokenStream> {
    let OnField { skip, into, some, cloned } = on_field(&field.attrs)?;
    if skip {
        return Ok(TokenStream::new());
    }
    let (name, mut ty) = (&field.ident, &field.ty);
    // A type that a `macro_rules!` was given.
    while let Type::Group(group) = ty {
        ty = &group.elem;
    }
    if some {
        ty = inside(ty).ok_or_else(|| Error::new_spanned(ty, "expected an `Option`"))?;
    }
    let is = |name: &str| matches!(ty, Type::Path(path) if path.path.is_ident(name));
    let (given, mut value) = match into || is("f64") {
        true => (quote!(impl ::std::convert::Into<#ty>), quote!(#name.into())),
        false if cloned && is("Tensor") => (
            quote!(impl ::namegrad_autograd::AsTensor),
            quote!(::namegrad_autograd::AsTensor::as_tensor(&#name).into_owned()),
        ),
        false if cloned => (quote!(&#ty), quote!(::std::clone::Clone::clone(#name))),
        false => (quote!(#ty), quote!(#name)),
    };
    if some {
        value = quote!(::std::option::Option::Some(#value));
    }
    let set = match fallible {
        true => quote!(if let ::std::result::Result::Ok(settings) = &mut #place { settings.#name = #value; }),
        false => quote!(#place.#name = #value;),
    };
    let docs = field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
    Ok(quote! {
        #(#docs)*
        pub fn #name(mut self, #name: #given) -> Self {
            #set
            self
        }
    })
}

/// `T` of `Option<T>`.
fn inside(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    }
}

fn on_struct(attributes: &[Attribute]) -> Result<OnStruct> {
    let mut words = OnStruct::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("setters")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("builder") {
                words.builder = true;
            } else if meta.path.is_ident("row") {
                words.row = true;
            } else if meta.path.is_ident("fallible") {
                words.fallible = true;
            } else if meta.path.is_ident("own") {
                words.own = true;
            } else if meta.path.is_ident("at") {
                words.at = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("of") {
                let builders;
                parenthesized!(builders in meta.input);
                words.of.extend(builders.parse_terminated(Path::parse, Token![,])?);
            } else {
                return Err(meta.error(
                    "expected `builder`, `row`, or `of(Builder), at = field` and `own` or `fallible`",
                ));
            }
            Ok(())
        })?;
    }
    Ok(words)
}

fn on_field(attributes: &[Attribute]) -> Result<OnField> {
    let mut words = OnField::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("setters")) {
        attribute.parse_nested_meta(|meta| {
            let word = match meta.path.get_ident().map(ToString::to_string).as_deref() {
                Some("skip") => &mut words.skip,
                Some("into") => &mut words.into,
                Some("some") => &mut words.some,
                Some("cloned") => &mut words.cloned,
                _ => return Err(meta.error("expected `into`, `some`, `cloned` or `skip`")),
            };
            *word = true;
            Ok(())
        })?;
    }
    Ok(words)
}
