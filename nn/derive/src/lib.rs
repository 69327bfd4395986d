//! `#[derive(Module)]`: see `namegrad_nn::Module`.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;
use proc_macro2::{Span, TokenStream as Tokens, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Data, DeriveInput, Expr, Generics, Ident, Index, Member, Path, Type, parse_macro_input, parse_quote,
};

/// Implements `Module` for a struct, and `Display`, which prints the summary. The name of a field becomes a
/// segment in the paths of the parameters inside it.
///
/// On a field, `#[module(skip)]` ignores the field, and `#[module(flatten)]` leaves its name out of paths. On
/// the struct, `#[module(describe = path)]` names a function that returns its text in the summary, and
/// `#[module(dims = value)]` has what is in parentheses after its name there. `#[module(layer)]` implements
/// `Layer` with its method `forward(&self, x: &Tensor) -> Result<Tensor>`, of several tensors with
/// `#[module(layer(x, target))]`, `#[module(no_display)]` does not implement `Display`, and
/// `#[module(crate = path)]` is the path of `Module`'s module if it is not `::namegrad::nn`.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// The options of `#[module(..)]` on a field.
#[derive(Default)]
struct FieldOptions {
    skip: bool,
    flatten: bool,
}

impl FieldOptions {
    fn of(attributes: &[syn::Attribute]) -> syn::Result<FieldOptions> {
        let mut options = FieldOptions::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("module")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("skip") {
                    options.skip = true;
                } else if meta.path.is_ident("flatten") {
                    options.flatten = true;
                } else {
                    return Err(meta.error("expected `skip` or `flatten` on a field"));
                }
                Ok(())
            })?;
        }
        Ok(options)
    }
}

/// The options of `#[module(..)]` on the struct.
struct StructOptions {
    krate: Path,
    describe: Option<Path>,
    dims: Option<Expr>,
    no_display: bool,
    /// The inputs of `forward`.
    layer: Option<Vec<Ident>>,
}

impl StructOptions {
    fn of(attributes: &[syn::Attribute]) -> syn::Result<StructOptions> {
        let krate = parse_quote!(::namegrad::nn);
        let mut options = StructOptions { krate, describe: None, dims: None, no_display: false, layer: None };
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("module")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("crate") {
                    options.krate = meta.value()?.call(Path::parse_mod_style)?;
                } else if meta.path.is_ident("describe") {
                    options.describe = Some(meta.value()?.call(Path::parse_mod_style)?);
                } else if meta.path.is_ident("dims") {
                    options.dims = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("no_display") {
                    options.no_display = true;
                } else if meta.path.is_ident("layer") {
                    let mut inputs = Vec::new();
                    if meta.input.peek(syn::token::Paren) {
                        meta.parse_nested_meta(|input| {
                            inputs.push(input.path.require_ident()?.clone());
                            Ok(())
                        })?;
                    } else {
                        inputs.push(Ident::new("x", Span::call_site()));
                    }
                    options.layer = Some(inputs);
                } else {
                    let words =
                        "expected `crate = path`, `describe = path`, `dims = value`, `layer` or `no_display` on the struct";
                    return Err(meta.error(words));
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
        return Err(syn::Error::new_spanned(
            name,
            "Module can be derived for structs; for an enum, implement `namegrad::nn::Field` by hand and make it a field",
        ));
    };
    let StructOptions { krate, describe, dims, no_display, layer } = StructOptions::of(&input.attrs)?;
    let mut visits = Vec::new();
    let mut types = Vec::new();
    for (index, field) in data.fields.iter().enumerate() {
        let options = FieldOptions::of(&field.attrs)?;
        if options.skip {
            continue;
        }
        let label = field.ident.as_ref().map_or_else(|| index.to_string(), |ident| ident.to_string());
        let label = label.trim_start_matches("r#");
        // For a field of an unsupported type, the compiler points at the type.
        let span = Span::call_site().located_at(syn::spanned::Spanned::span(&field.ty));
        let member = match &field.ident {
            Some(ident) => {
                let mut ident = ident.clone();
                ident.set_span(span);
                Member::Named(ident)
            }
            None => Member::Unnamed(Index { index: index as u32, span }),
        };
        let access = quote_spanned!(span=> self.#member);
        let label = if options.flatten { "" } else { label };
        visits.push(quote_spanned!(span=> (#label, &#access)));
        types.push(&field.ty);
    }
    let label = name.to_string();
    let describe = match (describe, dims) {
        (Some(describe), _) => quote!(#describe(self)),
        (None, Some(dims)) => quote!(::std::format!("{}({})", #label, #dims)),
        (None, None) => quote!(::std::string::String::from(#label)),
    };
    // A layer that borrows something cannot be in a box of any lifetime.
    let clone_in_box = input.generics.lifetimes().next().is_none().then(|| {
        quote! {
            fn clone_in_box(&self) -> ::std::option::Option<::std::boxed::Box<dyn #krate::Layer>> {
                #[allow(unused_imports)]
                use #krate::derived::{Cloned as _, NotClonedHere as _};
                (&#krate::derived::Probe::<Self>::new()).clone_of(self)
            }
        }
    });
    let generics = with_bounds(input.generics.clone(), &types, &krate);
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    let display = (!no_display).then(|| {
        quote! {
            impl #impl_generics ::std::fmt::Display for #name #ty_generics #where_clause {
                fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    #krate::derived::show(self, f)
                }
            }
        }
    });
    let layer = layer.map(|inputs| {
        let tensor = quote!(#krate::derived::Tensor);
        let of = match &inputs[..] {
            [_] => quote!(#tensor),
            several => {
                let each = several.iter().map(|_| &tensor);
                quote!((#(#each),*))
            }
        };
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
        impl #impl_generics #krate::ModuleFields for #name #ty_generics #where_clause {
            fn fields(&self, visitor: &mut #krate::Visitor<'_>) {
                visitor.fields(&[#(#visits),*]);
            }
            fn describe(&self) -> ::std::string::String {
                #describe
            }
            #clone_in_box
        }
        #display
        #layer
    })
}

/// Adds the bound `Field` to the type parameters that occur in visited fields.
fn with_bounds(mut generics: Generics, types: &[&Type], krate: &Path) -> Generics {
    for parameter in generics.type_params_mut() {
        if types.iter().any(|ty| !is_phantom(ty) && mentions(ty.to_token_stream(), &parameter.ident)) {
            parameter.bounds.push(parse_quote!(#krate::Field));
        }
    }
    generics
}

fn is_phantom(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|segment| segment.ident == "PhantomData")
}

fn mentions(tokens: Tokens, parameter: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == *parameter,
        TokenTree::Group(group) => mentions(group.stream(), parameter),
        _ => false,
    })
}
