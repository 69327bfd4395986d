//! `#[derive(Setters)]`: the constructor and the chained setters of an option struct; the setters of builders,
//! and the constructors of the layers that they build.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::{
    Attribute, Data, DataStruct, DeriveInput, Error, Expr, Field, Fields, FieldsNamed, GenericArgument,
    GenericParam, Generics, Lit, Meta, MetaNameValue, Path, PathArguments, Result, Token, Type,
    parenthesized,
};

/// The words on a struct.
#[derive(Default)]
struct OnStruct {
    /// `row`: without `new`, which the row of the struct has.
    row: bool,
    /// `of(A, B)`: the setters are those of these builders, which hold the struct.
    of: Vec<Path>,
    /// `own`: the struct has a constructor and setters besides those of its builders, and they take an `Option`
    /// for one.
    own: bool,
    /// `at = settings`: the field of the builders that holds it.
    at: Option<Expr>,
    /// `builds(A, B)`: the settings of these layers, whose builders hold it as `config`. `LinearConfig` builds
    /// `Linear`.
    builds: Vec<Ident>,
    /// `generics(const N: usize)`: those of the layers.
    generics: Generics,
    /// `layer = NAME`: the name of the layer in errors, if it is not that of its type.
    layer: Option<Expr>,
}

/// How a setter gets the value of its field.
#[derive(Default)]
struct OnField {
    /// No setter.
    skip: bool,
    /// `of(LstmBuilder)`: the setter is that of this builder alone.
    of: Vec<Path>,
    /// No setter: an argument of the constructors of the layer. So are dims without a default.
    given: bool,
    /// The value at first, if it is not the default of the type.
    default: Option<TokenStream>,
    /// Anything that converts into the type. Otherwise the setter of an `Option` takes its content.
    into: bool,
}

impl OnField {
    /// The value of the field at first.
    fn value(&self, field: &Field) -> TokenStream {
        let is_dtype = field.ty.to_token_stream().to_string() == "DType";
        let or = if is_dtype { quote!(namegrad_core::default_dtype()) } else { quote!(Default::default()) };
        self.default.clone().unwrap_or(or)
    }
}

/// What `Setters` makes of a struct: the constructor, the setters and the defaults of options, or for the
/// settings of layers, the builders of these.
pub(crate) fn of_struct(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(DataStruct { fields: Fields::Named(fields), .. }) = &input.data else {
        return Err(Error::new_spanned(input, "options are a struct whose fields have names"));
    };
    let mut on = on_struct(&input.attrs)?;
    if on.builds.is_empty() {
        let name = input.ident.to_string();
        on.builds.extend(name.strip_suffix("Config").map(|layer| format_ident!("{layer}")));
    }
    if on.builds.is_empty() {
        return of_options(input, fields, &on);
    }
    let layers = on.builds.iter().map(|layer| of_layer(input, fields, layer, &on));
    let (name, mut layers) = (&input.ident, layers.collect::<Result<TokenStream>>()?);
    for field in &fields.named {
        let of = on_field(field)?.of;
        let setter = setter(field, &quote!(self.config), &quote!(self.config.layer), false)?;
        layers.extend(quote!(#(impl #of { #setter })*));
    }
    Ok(quote! {
        #layers
        impl crate::Field for #name {
            fn visit(&self, _: &mut crate::Visitor<'_>) {}
        }
    })
}

fn of_options(input: &DeriveInput, fields: &FieldsNamed, on: &OnStruct) -> Result<TokenStream> {
    let (name, OnStruct { row, of, own: has_own, at, .. }) = (&input.ident, on);
    let (generics, own, bounds) = input.generics.split_for_impl();
    let setters = |place: TokenStream| -> Result<TokenStream> {
        fields.named.iter().map(|field| setter(field, &place, &quote!(""), *has_own)).collect()
    };
    let (mut made, mut values, mut has_defaults) = (TokenStream::new(), TokenStream::new(), false);
    for field in &fields.named {
        let (name, words) = (&field.ident, on_field(field)?);
        let value = words.value(field);
        has_defaults |= words.default.is_some();
        values.extend(quote!(#name: #value,));
    }
    if has_defaults {
        made.extend(quote! {
            impl #generics ::std::default::Default for #name #own #bounds {
                fn default() -> Self {
                    #name { #values }
                }
            }
        });
    }
    if let Some(at) = at {
        let setters = setters(quote!(self.#at))?;
        made.extend(quote!(#(impl #generics #of #own #bounds { #setters })*));
        if !has_own {
            return Ok(made);
        }
    }
    let new = (!row).then(|| {
        quote! {
            /// The defaults.
            pub fn new() -> Self {
                ::std::default::Default::default()
            }
        }
    });
    let setters = setters(quote!(self))?;
    Ok(quote! {
        #made
        impl #generics #name #own #bounds {
            #new
            #setters
        }
    })
}

/// The builder of the layer `built` with its setters, and the layer's `new` and `builder`.
fn of_layer(input: &DeriveInput, fields: &FieldsNamed, built: &Ident, on: &OnStruct) -> Result<TokenStream> {
    let OnStruct { builds, generics, layer, .. } = on;
    let (name, text, builder) = (&input.ident, built.to_string(), format_ident!("{built}Builder"));
    let doc = format!(" A builder for [`{text}`]; see [`{text}::builder`].");
    let docs = if builds.len() == 1 { docs_of(&input.attrs) } else { quote!(#[doc = #doc]) };
    let layer = layer.as_ref().map_or_else(|| quote!(#text), |layer| quote!(#layer));
    let (mut names, mut setters, mut values) = (Vec::new(), TokenStream::new(), TokenStream::new());
    let (mut given, mut parameters, mut given_docs) = (Vec::new(), Vec::new(), Vec::new());
    for field in &fields.named {
        let (name, words) = (&field.ident, on_field(field)?);
        let mut value = words.value(field);
        if words.given {
            let (parameter, made) = argument(&field.ty, name, [quote!(layer), quote!(checked)]);
            value = made;
            given.push(name);
            parameters.push(quote!(#name: #parameter));
            given_docs.push(format!(" - `{}`: {}", quote!(#name), doc_of(field).trim_end_matches('.')));
        }
        names.push(name);
        // One after the other, so that a default can be that of a field above.
        values.extend(quote!(let #name = #value;));
        if words.of.is_empty() {
            setters.extend(setter(field, &quote!(self.config), &layer, false)?);
        }
    }
    let own = generics.split_for_impl().1;
    let kinds = generics.type_params().map(|kind| &kind.ident);
    let misused = misused(quote!(#generics), &quote!(#builder #own), &quote!(#built #own), true);
    let errors = format!(" Those of [`build`]({builder}::build).");
    Ok(quote! {
        #misused
        #docs
        #[derive(Clone, Debug)]
        pub struct #builder #generics {
            config: #name,
            /// The first error of an argument or a setter.
            checked: namegrad_core::Result<()>,
            kinds: ::std::marker::PhantomData<fn() -> (#(#kinds,)*)>,
        }
        impl #generics #builder #own {
            /// The settings, if there was no error.
            pub(crate) fn config(self) -> namegrad_core::Result<#name> {
                self.checked.map(|()| self.config)
            }
            #setters
        }
        impl #generics #built #own {
            /// The layer with the default options:
            #(#[doc = #given_docs])*
            ///
            /// # Errors
            #[doc = #errors]
            #[track_caller]
            pub fn new(#(#parameters),*) -> namegrad_core::Result<Self> {
                Self::builder(#(#given),*).build()
            }

            /// A builder, to change the defaults of [`new`](Self::new).
            #[track_caller]
            pub fn builder(#(#parameters),*) -> #builder #own {
                let (layer, mut checked): (&'static str, _) = (#layer, ::std::result::Result::Ok(()));
                #values
                #builder { config: #name { #(#names),* }, checked, kinds: ::std::marker::PhantomData }
            }
        }
    })
}

/// The type of the parameter for a field, and the value of the field. The error of a dim is kept in `checked`.
fn argument(
    ty: &Type,
    name: &Option<Ident>,
    [layer, checked]: [TokenStream; 2],
) -> (TokenStream, TokenStream) {
    let dim = quote!(impl namegrad_core::NewDim);
    let dims = quote!(#name.map(namegrad_core::NewDim::into_new_dim));
    let text = ty.to_token_stream().to_string().replace(' ', "");
    let (parameter, made) = match text.as_str() {
        "Named" => (dim, quote!(named(#layer, #name))),
        "[Named;2]" => (quote!([#dim; 2]), quote!(all_named(#layer, #dims))),
        // The list of an array, in settings that do not have its length.
        "Kernel" => (quote!([#dim; N]), quote!(all_named(#layer, #dims).map(::std::vec::Vec::from))),
        "Vec<Named>" => (quote!(impl namegrad_core::IntoShape), quote!(all_dims(#layer, #name))),
        "Seq" => (
            quote!(impl ::std::convert::Into<namegrad_core::Dim>),
            quote!(sequences::Seq::new(#layer, #name)),
        ),
        "Vec<usize>" => {
            // An iterator can be endless; so long a list is refused.
            let numbers = quote!(impl ::std::iter::IntoIterator<Item = usize>);
            return (numbers, quote!(::std::iter::IntoIterator::into_iter(#name).take(1 << 13).collect()));
        }
        "usize" => return (quote!(#ty), quote!(#name)),
        _ => return (quote!(impl ::std::convert::Into<#ty>), quote!(#name.into())),
    };
    (parameter, quote!(crate::layers::kept(crate::dims::#made, &mut #checked)))
}

/// The docs among attributes.
fn docs_of(attributes: &[Attribute]) -> TokenStream {
    let docs = attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
    quote!(#(#docs)*)
}

/// The doc of a field in one line.
fn doc_of(field: &Field) -> String {
    let lines = field.attrs.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(MetaNameValue { path, value: Expr::Lit(doc), .. }) if path.is_ident("doc") => {
            if let Lit::Str(line) = &doc.lit {
                Some(line.value().trim().to_string())
            } else {
                None
            }
        }
        _ => None,
    });
    lines.collect::<Vec<_>>().join(" ")
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
fn setter(field: &Field, at: &TokenStream, layer: &TokenStream, takes_options: bool) -> Result<TokenStream> {
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
        _ if is_dim => argument(ty, name, [layer.clone(), quote!(self.checked)]),
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
    let docs = docs_of(&field.attrs);
    let caller = is_dim.then(|| quote!(#[track_caller]));
    Ok(quote! {
        #docs
        #caller
        pub fn #name(mut self, #name: #given) -> Self {
            #at.#name = #value;
            self
        }
    })
}

/// The types whose setters take anything that converts into them.
const CONVERTED: [&str; 4] = ["f64", "Dim", "Extents", "NewName"];

/// Whether a type is that of dims, which a check makes.
fn is_checked(ty: &Type) -> bool {
    let text = ty.to_token_stream().to_string().replace(' ', "");
    ["Named", "Seq", "Kernel", "Vec<Named>", "[Named;2]"].contains(&text.as_str())
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

const ON_STRUCT: &str = "expected `builds(Layer)`, `generics(..)` and `layer = NAME`, `row`, or `of(Builder), at = field` and `own`";
const ON_FIELD: &str = "expected `into`, `default = value`, `given`, `skip` or `of(Builder)`";

fn on_struct(attributes: &[Attribute]) -> Result<OnStruct> {
    let mut words = OnStruct::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("setters")) {
        attribute.parse_nested_meta(|meta| {
            match meta.path.get_ident().map(ToString::to_string).as_deref() {
                Some("row") => words.row = true,
                Some("own") => words.own = true,
                Some("at") => words.at = Some(meta.value()?.parse()?),
                Some("layer") => words.layer = Some(meta.value()?.parse()?),
                Some("of") => words.of = listed(&meta)?,
                Some("builds") => words.builds = listed(&meta)?,
                Some("generics") => words.generics.params.extend(listed::<GenericParam>(&meta)?),
                _ => return Err(meta.error(ON_STRUCT)),
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
            match meta.path.get_ident().map(ToString::to_string).as_deref() {
                Some("given") => words.given = true,
                Some("skip") => words.skip = true,
                Some("into") => words.into = true,
                Some("of") => words.of = listed(&meta)?,
                Some("default") => {
                    let (value, mut tokens) = (meta.value()?, TokenStream::new());
                    while !value.is_empty() && !value.peek(Token![,]) {
                        tokens.extend([value.parse::<TokenTree>()?]);
                    }
                    words.default = Some(tokens);
                }
                _ => return Err(meta.error(ON_FIELD)),
            }
            Ok(())
        })?;
    }
    words.given |= is_checked(&field.ty) && words.default.is_none();
    Ok(words)
}

/// What follows a word in parentheses.
fn listed<T: Parse>(meta: &ParseNestedMeta<'_>) -> Result<Vec<T>> {
    let list;
    parenthesized!(list in meta.input);
    Ok(list.parse_terminated(T::parse, Token![,])?.into_iter().collect())
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
