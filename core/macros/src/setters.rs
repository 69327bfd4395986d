//! `#[derive(Setters)]`: the constructor and the chained setters of an option struct; the setters of builders,
//! and the constructors of the layers that they build.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::parse::Parse;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, ExprLit, Field, Fields, FieldsNamed, GenericArgument, Lit,
    Meta, Path, PathArguments, Result, Token, Type, parenthesized, parse_str,
};

/// The words on a struct.
#[derive(Default)]
struct OnStruct {
    /// `row`: without `new`, which the row of the struct has.
    row: bool,
    /// `of(A, B)`: the setters are those of these builders, which hold the struct.
    of: Vec<Path>,
    /// `own`: the struct has a constructor and setters besides those of its builders. An `Option` is set to one.
    own: bool,
    /// `at = settings`: the field of the builders that holds it.
    at: Option<Expr>,
    /// `builds(A, B)`: the settings of these layers, whose builders hold it as `config`.
    builds: Vec<Ident>,
    /// `layer = NAME`: the name of the layer in errors, if it is not that of its type.
    layer: Option<Expr>,
}

/// How a setter gets the value of its field.
#[derive(Default)]
struct OnField {
    /// No setter.
    skip: bool,
    /// No setter: an argument of the constructors of the layer. So is a `Result` without a default.
    given: bool,
    /// The value at first, if it is not the default of the type.
    default: Option<TokenStream>,
    /// Anything that converts into the type. Otherwise the setter of an `Option` takes its content.
    into: bool,
}

/// `new`, which returns the defaults, and a setter for each field with its name and doc.
pub(crate) fn of_struct(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(input, "options are a struct"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(input, "options are fields with names"));
    };
    let OnStruct { row, of, own: has_own, at, builds, layer } = on_struct(&input.attrs)?;
    let name = &input.ident;
    let (generics, own, bounds) = input.generics.split_for_impl();
    let text = name.to_string();
    let built = text.strip_suffix("Builder").unwrap_or_default();
    let builder = !row && !built.is_empty();
    let layer = layer.map_or_else(|| quote!(#built), |layer| quote!(#layer));
    let setters = |place: &TokenStream| -> Result<TokenStream> {
        fields.named.iter().map(|field| setter(field, place, &layer, has_own)).collect()
    };
    let mut builders = TokenStream::new();
    if !builder && builds.is_empty() {
        builders = defaults(input, fields)?;
    }
    if let Some(at) = at {
        let setters = setters(&quote!(self.#at))?;
        builders.extend(quote!(#(impl #generics #of #own #bounds { #setters })*));
        if !has_own {
            return Ok(builders);
        }
    }
    let new = (!builder && !row).then(|| {
        quote! {
            /// The defaults.
            pub fn new() -> Self {
                ::std::default::Default::default()
            }
        }
    });
    for built in &builds {
        let builder = format_ident!("{built}Builder");
        let text = built.to_string();
        let setters = setters(&quote!(self.config))?;
        let doc = format!(" A builder for [`{text}`]; see [`{text}::builder`].");
        let types = [&TokenStream::new(), &quote!(#built), &quote!(#builder)];
        let made = |fields: TokenStream| quote!(#builder { config: #name { #fields } });
        builders.extend(misused(TokenStream::new(), &quote!(#builder), &quote!(#built), true));
        builders.extend(constructors(fields, types, &quote!(#text), &made)?);
        builders.extend(quote! {
            #[doc = #doc]
            #[derive(Clone, Debug)]
            pub struct #builder {
                config: #name,
            }
            impl #builder { #setters }
        });
    }
    if !builds.is_empty() {
        return Ok(builders);
    }
    let setters = setters(&quote!(self))?;
    if builder {
        let built: Ident = parse_str(built)?;
        let types = [&quote!(#generics), &quote!(#built #own), &quote!(#name #own)];
        builders.extend(misused(quote!(#generics), types[2], types[1], true));
        builders.extend(constructors(fields, types, &layer, &|fields| quote!(#name { #fields }))?);
    }
    Ok(quote! {
        #builders
        impl #generics #name #own #bounds {
            #new
            #setters
        }
    })
}

/// `Default`, if the words on a field have its value.
fn defaults(input: &DeriveInput, fields: &FieldsNamed) -> Result<TokenStream> {
    let (mut values, mut has_values) = (Vec::new(), false);
    for field in &fields.named {
        let (name, value) = (&field.ident, on_field(field)?.default);
        has_values |= value.is_some();
        let value = value.unwrap_or_else(|| default_of(&field.ty));
        values.push(quote!(#name: #value));
    }
    let (name, (generics, own, bounds)) = (&input.ident, input.generics.split_for_impl());
    let made = quote! {
        impl #generics ::std::default::Default for #name #own #bounds {
            fn default() -> Self {
                #name { #(#values),* }
            }
        }
    };
    Ok(if has_values { made } else { TokenStream::new() })
}

/// `new` and `builder` of a layer whose builder has these fields, if one of them is given.
fn constructors(
    fields: &FieldsNamed,
    [generics, built, builder]: [&TokenStream; 3],
    layer: &TokenStream,
    made: &dyn Fn(TokenStream) -> TokenStream,
) -> Result<TokenStream> {
    let (mut names, mut docs) = (Vec::new(), Vec::new());
    let (mut parameters, mut values) = (Vec::new(), Vec::new());
    for field in &fields.named {
        let OnField { given, default, .. } = on_field(field)?;
        let (name, ty) = (&field.ident, &field.ty);
        let value = match (given, default) {
            (true, _) => {
                let (parameter, value) = argument(ty, &quote!(#name), &quote!(layer));
                names.push(name);
                parameters.push(quote!(#name: #parameter));
                let doc = doc_of(field).join(" ");
                docs.push(format!(" - `{}`: {}", quote!(#name), doc.trim().trim_end_matches('.')));
                value
            }
            (false, default) => default.unwrap_or_else(|| default_of(ty)),
        };
        values.push(quote!(#name: #value));
    }
    if names.is_empty() {
        return Ok(TokenStream::new());
    }
    let start = builder.to_string();
    let start = start.split(' ').next().unwrap_or_default();
    let errors = format!(" Those of [`build`]({start}::build).");
    let made = made(quote!(#(#values),*));
    Ok(quote! {
        impl #generics #built {
            /// The layer with the default options:
            #(#[doc = #docs])*
            ///
            /// # Errors
            #[doc = #errors]
            #[track_caller]
            pub fn new(#(#parameters),*) -> namegrad_core::Result<Self> {
                Self::builder(#(#names),*).build()
            }

            /// A builder, to change the defaults of [`new`](Self::new).
            #[track_caller]
            pub fn builder(#(#parameters),*) -> #builder {
                let layer: &'static str = #layer;
                #made
            }
        }
    })
}

/// The value of a field without one.
fn default_of(ty: &Type) -> TokenStream {
    match quote!(#ty).to_string().as_str() {
        "DType" => quote!(namegrad_core::default_dtype()),
        _ => quote!(::std::default::Default::default()),
    }
}

/// The type of the parameter for a field that is given, and the value of the field.
fn argument(ty: &Type, name: &TokenStream, layer: &TokenStream) -> (TokenStream, TokenStream) {
    let dim = quote!(impl namegrad_core::NewDim);
    let text = ty.to_token_stream().to_string().replace(' ', "");
    match text.as_str() {
        "Result<Named>" => (dim, quote!(crate::dims::named(#layer, #name))),
        "Result<Vec<Named>>" => {
            (quote!(impl namegrad_core::IntoShape), quote!(crate::dims::all_dims(#layer, #name)))
        }
        "Result<Seq>" => (
            quote!(impl ::std::convert::Into<namegrad_core::Dim>),
            quote!(crate::dims::sequences::Seq::new(#layer, #name)),
        ),
        "Vec<usize>" => {
            // An iterator can be endless; so long a list is refused.
            let numbers = quote!(impl ::std::iter::IntoIterator<Item = usize>);
            (numbers, quote!(::std::iter::IntoIterator::into_iter(#name).take(1 << 13).collect()))
        }
        "usize" | "f64" => (quote!(#ty), quote!(#name)),
        text => match text.strip_prefix("Result<[Named;").and_then(|rest| rest.strip_suffix("]>")) {
            Some(count) => {
                let count: TokenStream = count.parse().expect("it was parsed before");
                let dims = quote!(#name.map(namegrad_core::NewDim::into_new_dim));
                (quote!([#dim; #count]), quote!(crate::dims::all_named(#layer, #dims)))
            }
            None => (quote!(impl ::std::convert::Into<#ty>), quote!(#name.into())),
        },
    }
}

/// The lines of the doc of a field.
fn doc_of(field: &Field) -> Vec<String> {
    let mut lines = Vec::new();
    for attribute in &field.attrs {
        if let Meta::NameValue(doc) = &attribute.meta
            && doc.path.is_ident("doc")
            && let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &doc.value
        {
            lines.push(line.value().trim().to_string());
        }
    }
    lines
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
fn setter(
    field: &Field,
    place: &TokenStream,
    layer: &TokenStream,
    takes_options: bool,
) -> Result<TokenStream> {
    let OnField { skip, given, into, .. } = on_field(field)?;
    if skip || given {
        return Ok(TokenStream::new());
    }
    let (name, mut ty) = (&field.ident, &field.ty);
    // A type that a declarative macro was given.
    while let Type::Group(group) = ty {
        ty = &group.elem;
    }
    let content = inside(ty).filter(|_| !into && !takes_options);
    ty = content.unwrap_or(ty);
    let is = |name: &str| matches!(ty, Type::Path(path) if path.path.is_ident(name));
    let is_dim = is_checked(ty);
    let (given, mut value) = match into || CONVERTED.into_iter().any(is) {
        _ if is_dim => argument(ty, &quote!(#name), layer),
        true => (quote!(impl ::std::convert::Into<#ty>), quote!(#name.into())),
        false if is("Tensor") => (
            quote!(impl ::namegrad_autograd::AsTensor),
            quote!(::namegrad_autograd::AsTensor::as_tensor(&#name).into_owned()),
        ),
        false if is("Parameter") => (quote!(&#ty), quote!(::std::clone::Clone::clone(#name))),
        false => (quote!(#ty), quote!(#name)),
    };
    if content.is_some() {
        value = quote!(::std::option::Option::Some(#value));
    }
    let docs = field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let caller = is_dim.then(|| quote!(#[track_caller]));
    Ok(quote! {
        #(#docs)*
        #caller
        pub fn #name(mut self, #name: #given) -> Self {
            #place.#name = #value;
            self
        }
    })
}

/// The types whose setters take anything that converts into them.
const CONVERTED: [&str; 4] = ["f64", "Dim", "Extents", "NewName"];

/// Whether a type is the result of a check.
fn is_checked(ty: &Type) -> bool {
    ty.to_token_stream().to_string().starts_with("Result <")
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
            if meta.path.is_ident("row") {
                words.row = true;
            } else if meta.path.is_ident("own") {
                words.own = true;
            } else if meta.path.is_ident("at") {
                words.at = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("layer") {
                words.layer = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("of") {
                let builders;
                parenthesized!(builders in meta.input);
                words.of.extend(builders.parse_terminated(Path::parse, Token![,])?);
            } else if meta.path.is_ident("builds") {
                let layers;
                parenthesized!(layers in meta.input);
                words.builds.extend(layers.parse_terminated(Ident::parse, Token![,])?);
            } else {
                return Err(meta.error(
                    "expected `builds(Layer)` or `layer = NAME`, `row`, or `of(Builder), at = field` and `own`",
                ));
            }
            Ok(())
        })?;
    }
    Ok(words)
}

fn on_field(field: &Field) -> Result<OnField> {
    let mut words = OnField::default();
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("setters")) {
        attribute.parse_nested_meta(|meta| {
            let word = match meta.path.get_ident().map(ToString::to_string).as_deref() {
                Some("default") => {
                    let (value, mut tokens) = (meta.value()?, TokenStream::new());
                    while !value.is_empty() && !value.peek(Token![,]) {
                        tokens.extend([value.parse::<TokenTree>()?]);
                    }
                    words.default = Some(tokens);
                    return Ok(());
                }
                Some("given") => &mut words.given,
                Some("skip") => &mut words.skip,
                Some("into") => &mut words.into,
                _ => {
                    return Err(meta.error("expected `into`, `default = value`, `given` or `skip`"));
                }
            };
            *word = true;
            Ok(())
        })?;
    }
    words.given |= is_checked(&field.ty) && words.default.is_none();
    Ok(words)
}

/// The words of an enum.
pub(crate) fn words(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new_spanned(input, "words are those of an enum"));
    };
    let (name, mut words) = (&input.ident, Vec::new());
    for variant in &data.variants {
        let own = &variant.ident;
        let mut text = String::new();
        for letter in own.to_string().chars() {
            if letter.is_uppercase() && !text.is_empty() {
                text.push('-');
            }
            text.extend(letter.to_lowercase());
        }
        let mut word = quote!(#text);
        for attribute in variant.attrs.iter().filter(|attribute| attribute.path().is_ident("word")) {
            word = attribute.meta.require_name_value()?.value.to_token_stream();
        }
        words.push(quote!((#word, #name::#own)));
    }
    Ok(quote! {
        impl namegrad_core::args::Immediate for #name {
            const WORDS: &'static [(&'static str, Self)] = &[#(#words),*];
        }
    })
}
