//! `#[derive(Module)]`: see `namegrad_nn::Module`. The attribute `dims` is in `dims.rs`.

#![forbid(unsafe_code)]

mod dims;

use proc_macro::TokenStream;
use proc_macro2::{Span, TokenStream as Tokens, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::parse::Parse;
use syn::{
    Data, DeriveInput, Expr, Generics, Ident, Index, Member, Token, Type, parenthesized, parse_macro_input,
    parse_quote,
};

/// Implements `Module` for a struct, and `Display`, which prints the summary. The name of a field becomes a
/// segment in the paths of the parameters inside it.
///
/// For an enum, the fields are those of the variant that it is. A variant with one field without a name, such
/// as `Dense(Linear)`, adds no segment.
///
/// On a field, `#[module(skip)]` ignores the field, `#[module(flatten)]` leaves its name out of paths, and
/// `#[module(name = "weight_g")]` gives it another one. On the struct, `#[module(describe = path)]` names a
/// function that returns its text in the summary, or is the text, and `#[module(dims = value)]` has what is in
/// parentheses after its name there. `#[module(layer)]` implements `Layer` with its method `forward(&self, x:
/// &Tensor) -> Result<Tensor>`, of several tensors with `#[module(layer(x, target))]`. `#[module(get(weight))]`
/// makes a method that returns a reference to the field `weight`, with its docs, and `#[module(debug)]`
/// implements `Debug` as `Display`, which `#[module(no_display)]` does not implement. `#[module(part)]`
/// implements `Field` alone: the struct is no module, and a module that flattens it has its fields.
/// `#[module(crate = path)]` is the path of `Module`'s module if it is not `::namegrad::nn`.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(input).unwrap_or_else(|error| error.to_compile_error()).into()
}

#[allow(missing_docs)] // they are on its re-export in `namegrad::nn`, with examples
#[proc_macro_attribute]
pub fn dims(notation: TokenStream, function: TokenStream) -> TokenStream {
    dims::expand(notation.into(), function.into()).into()
}

/// The options of `#[module(..)]` on a field or on the struct: their words, each with its value or its list.
#[derive(Default)]
struct Options(Vec<(String, Vec<Expr>)>);

impl Options {
    /// Reads the attributes, which can have these words: `dims=` with a value, `get()` with a list.
    fn read(&mut self, attributes: &[syn::Attribute], known: &[&str], expected: &str) -> syn::Result<()> {
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("module")) {
            attribute.parse_nested_meta(|meta| {
                let word = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
                let is = |form: &str| known.contains(&format!("{word}{form}").as_str());
                let value = if is("()") && meta.input.peek(syn::token::Paren) {
                    let list;
                    parenthesized!(list in meta.input);
                    list.parse_terminated(Expr::parse, Token![,])?.into_iter().collect()
                } else if is("=") {
                    vec![meta.value()?.parse()?]
                } else if is("") {
                    Vec::new()
                } else {
                    return Err(meta.error(format!("expected {expected}")));
                };
                self.0.push((word, value));
                Ok(())
            })?;
        }
        Ok(())
    }

    fn list(&self, word: &str) -> Option<&[Expr]> {
        self.0.iter().find(|(own, _)| own == word).map(|(_, value)| &value[..])
    }

    fn value(&self, word: &str) -> Option<&Expr> {
        self.list(word)?.first()
    }

    fn has(&self, word: &str) -> bool {
        self.list(word).is_some()
    }
}

fn expand(input: DeriveInput) -> syn::Result<Tokens> {
    let name = &input.ident;
    // The implementation is made without the wrong fields, so that uses of the type are not errors as well.
    let mut wrong = Tokens::new();
    let mut options = Options::default();
    let known = ["crate=", "describe=", "dims=", "layer", "layer()", "get()", "part", "debug", "no_display"];
    let expected = "`crate = path`, `describe = text`, `dims = value`, `layer`, `get(field)`, `part`, `debug` or \
        `no_display` on the struct";
    if let Err(error) = options.read(&input.attrs, &known, expected) {
        wrong.extend(error.to_compile_error());
    }
    let krate = options.value("crate").map_or(quote!(::namegrad::nn), |path| quote!(#path));
    let (mut types, mut getters) = (Vec::new(), Tokens::new());
    let visits = match &input.data {
        Data::Struct(data) => {
            for name in options.list("get").unwrap_or_default() {
                getters.extend(getter(&data.fields, name)?);
            }
            let visits = visits(&data.fields, None, &mut types, &mut wrong);
            quote!(visitor.fields(&[#(#visits),*]))
        }
        Data::Enum(data) => {
            let mut arms = Vec::new();
            for variant in &data.variants {
                let (own, members) = (&variant.ident, variant.fields.members());
                let held: Vec<Ident> =
                    (0..variant.fields.len()).map(|at| format_ident!("field_{at}")).collect();
                let visits = visits(&variant.fields, Some(&held), &mut types, &mut wrong);
                arms.push(quote! {
                    #[allow(unused_variables)] // of fields that are skipped
                    #name::#own { #(#members: #held),* } => visitor.fields(&[#(#visits),*])
                });
            }
            match arms.is_empty() {
                true => {
                    return Err(syn::Error::new_spanned(name, "an enum without variants cannot be a module"));
                }
                false => quote!(match self { #(#arms),* }),
            }
        }
        Data::Union(_) => return Err(syn::Error::new_spanned(name, "a union cannot be a module")),
    };
    let label = name.to_string();
    let describe = match (options.value("describe"), options.value("dims")) {
        (Some(Expr::Path(function)), _) => quote!(#function(self)),
        (Some(text), _) => quote!(#text),
        (None, Some(dims)) => quote!(::std::format!("{}({})", #label, #dims)),
        (None, None) => quote!(#krate::derived::text(#label)),
    };
    // A layer that borrows something cannot be in a box of any lifetime.
    let clone_in_box = input.generics.lifetimes().next().is_none().then(|| {
        quote! {
            fn clone_in_box(&self) -> ::std::option::Option<::std::boxed::Box<dyn #krate::Layer>> {
                #[allow(unused_imports)]
                use #krate::derived::{Cloned as _, NotClonedHere as _};
                (&#krate::derived::Probe::<Self>(::std::marker::PhantomData)).clone_of(self)
            }
        }
    });
    let generics = with_bounds(input.generics.clone(), &types, &krate);
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    if options.has("part") {
        return Ok(quote! {
            #wrong
            impl #impl_generics #krate::Field for #name #ty_generics #where_clause {
                fn visit(&self, visitor: &mut #krate::Visitor<'_>) {
                    #visits
                }
            }
        });
    }
    let shown = |form: Tokens| {
        quote! {
            impl #impl_generics ::std::fmt::#form for #name #ty_generics #where_clause {
                fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    #krate::derived::show(self, f)
                }
            }
        }
    };
    let display = (!options.has("no_display")).then(|| shown(quote!(Display)));
    let debug = options.has("debug").then(|| shown(quote!(Debug)));
    let one = [parse_quote!(x)];
    let layer = options.list("layer").map(|inputs| {
        let inputs = if inputs.is_empty() { &one[..] } else { inputs };
        let tensor = quote!(#krate::derived::Tensor);
        let each = inputs.iter().map(|_| &tensor);
        let of = quote!((#(#each),*));
        quote! {
            impl #impl_generics #krate::Layer<#of> for #name #ty_generics #where_clause {
                #[track_caller]
                fn forward(&self, (#(#inputs),*): &#of) -> #krate::derived::Result<#tensor> {
                    <#name #ty_generics>::forward(self, #(#inputs),*)
                }
            }
        }
    });
    Ok(quote! {
        #wrong
        impl #impl_generics #krate::ModuleFields for #name #ty_generics #where_clause {
            #[inline(never)]
            fn fields(&self, visitor: &mut #krate::Visitor<'_>) {
                #visits
            }
            fn describe(&self) -> ::std::string::String {
                #describe
            }
            #clone_in_box
        }
        #display
        #debug
        impl #impl_generics #name #ty_generics #where_clause {
            #getters
        }
        #layer
    })
}

/// The method that returns a reference to the field: `Option<&T>` for an `Option<T>`, `&[T]` for a `Vec<T>`.
fn getter(fields: &syn::Fields, name: &Expr) -> syn::Result<Tokens> {
    let text = name.to_token_stream().to_string();
    let Some(field) = fields.iter().find(|field| field.ident.as_ref().is_some_and(|own| *own == text)) else {
        return Err(syn::Error::new_spanned(name, format!("`get({text})`: there is no such field")));
    };
    let docs = field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let (own, ty) = (&field.ident, &field.ty);
    let (ty, value) = match held_by(ty) {
        Some((holder, Some(ty))) if holder == "Option" => {
            (quote!(::std::option::Option<&#ty>), quote!(self.#own.as_ref()))
        }
        Some((holder, Some(ty))) if holder == "Vec" => (quote!(&[#ty]), quote!(&self.#own)),
        _ => (quote!(&#ty), quote!(&self.#own)),
    };
    Ok(quote! {
        #(#docs)*
        pub fn #own(&self) -> #ty {
            #value
        }
    })
}

/// The last name of a type, and its first argument.
fn held_by(ty: &Type) -> Option<(&Ident, Option<&Type>)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let syn::PathArguments::AngleBracketed(of) = &last.arguments else { return Some((&last.ident, None)) };
    let first =
        of.args.first().and_then(|of| if let syn::GenericArgument::Type(of) = of { Some(of) } else { None });
    Some((&last.ident, first))
}

/// What a visitor gets of each field: its name and a reference to it. A variant of an enum holds its fields in
/// variables, and has the path of a field that is its only one. Errors are added to `wrong`.
fn visits<'f>(
    fields: &'f syn::Fields,
    held: Option<&[Ident]>,
    types: &mut Vec<&'f Type>,
    wrong: &mut Tokens,
) -> Vec<Tokens> {
    let mut visits = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let mut options = Options::default();
        let expected = "`skip`, `flatten` or `name = \"..\"` on a field";
        let read = options.read(&field.attrs, &["skip", "flatten", "name="], expected);
        let is_flag =
            field.ident.as_ref().is_some_and(|ident| ident == "training") && is_or_holds(&field.ty, "bool");
        let fits = read.and_then(|()| match instead(&field.ty).or(is_flag.then_some(NOT_A_FLAG)) {
            Some(message) if !options.has("skip") => Err(syn::Error::new_spanned(&field.ty, message)),
            _ => Ok(()),
        });
        if let Err(error) = fits {
            wrong.extend(error.to_compile_error());
            continue;
        }
        if options.has("skip") {
            continue;
        }
        let label = field.ident.as_ref().map_or_else(|| index.to_string(), |ident| ident.to_string());
        let label = label.trim_start_matches("r#");
        let is_only = held.is_some() && fields.len() == 1 && field.ident.is_none();
        let label = if options.has("flatten") || is_only { "" } else { label };
        let label = options.value("name").map_or(quote!(#label), |name| quote!(#name));
        // For a field of an unsupported type, the compiler points at the type.
        let span = Span::call_site().located_at(syn::spanned::Spanned::span(&field.ty));
        let access = match (&field.ident, held) {
            (_, Some(held)) => {
                let mut variable = held[index].clone();
                variable.set_span(span);
                quote_spanned!(span=> #variable)
            }
            (Some(ident), None) => {
                let mut ident = ident.clone();
                ident.set_span(span);
                quote_spanned!(span=> &self.#ident)
            }
            (None, None) => {
                let member = Member::Unnamed(Index { index: index as u32, span });
                quote_spanned!(span=> &self.#member)
            }
        };
        visits.push(quote_spanned!(span=> (#label, #access)));
        types.push(&field.ty);
    }
    visits
}

const NOT_A_FLAG: &str = "`train()` and `eval()` of the model do not reach a `bool`: its type is \
    `namegrad::nn::Training`, or put `#[module(skip)]` on the field";

/// What to write for a field of a type that is common in other programs and cannot be a field of a module.
fn instead(ty: &Type) -> Option<&'static str> {
    let named = |name: &str| is_or_holds(ty, name);
    if named("Tensor") {
        return Some(
            "a tensor of a module is a `Parameter`, which is trained, or a `Buffer`, which is not; \
             or put `#[module(skip)]` on the field, which is then neither saved nor cast",
        );
    }
    (named("HashMap") || named("HashSet")).then_some(
        "the layers of a `HashMap` have no fixed order; use a `BTreeMap`, or put `#[module(skip)]` on the field",
    )
}

/// Whether a type has this name, or is an option or a list of it.
fn is_or_holds(ty: &Type, name: &str) -> bool {
    match held_by(ty) {
        Some((holder, Some(of))) if holder == "Option" || holder == "Vec" => is_or_holds(of, name),
        Some((own, _)) => own == name,
        None => false,
    }
}

/// Adds the bound `Field` to the type parameters that occur in visited fields.
fn with_bounds(mut generics: Generics, types: &[&Type], krate: &Tokens) -> Generics {
    for parameter in generics.type_params_mut() {
        if types.iter().any(|ty| !is_phantom(ty) && mentions(ty.to_token_stream(), &parameter.ident)) {
            parameter.bounds.push(parse_quote!(#krate::Field));
        }
    }
    generics
}

fn is_phantom(ty: &Type) -> bool {
    held_by(ty).is_some_and(|(name, _)| name == "PhantomData")
}

fn mentions(tokens: Tokens, parameter: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == *parameter,
        TokenTree::Group(group) => mentions(group.stream(), parameter),
        _ => false,
    })
}
