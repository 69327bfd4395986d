//! Option structs: a field and a setter for each argument with a default, and for each optional tensor.

use crate::given::Side;
use crate::row::OpRow;
use proc_macro2::{Ident, TokenStream};
use quote::quote;

/// The option struct of an op.
pub(crate) fn options_struct(row: &OpRow, side: &Side) -> TokenStream {
    let struct_name = row.options_name();
    let (tensors, args) = row.options();
    let path = match (side.methods, side.shows_methods()) {
        (true, _) => side.tensor.to_string().replace(' ', ""),
        (false, true) => "super::Methods".into(),
        (false, false) => "super".into(),
    };
    let doc = format!(" The options of [`{0}`]({path}::{0}).", row.name);
    let new_doc = format!(" The defaults{}.", defaults_text(row));
    let (generics, short) = match tensors.is_empty() {
        true => (quote!(), quote!()),
        false => {
            let tensor = &side.tensor;
            (quote!(<'a, T: ::std::clone::Clone = #tensor>), quote!(<'a, T>))
        }
    };
    let bounded = if tensors.is_empty() { quote!() } else { quote!(<'a, T: ::std::clone::Clone>) };
    let tensor_names: Vec<&Ident> = tensors.iter().map(|tensor| &tensor.name).collect();
    let arg_names: Vec<&Ident> = args.iter().map(|arg| &arg.name).collect();
    let arg_types: Vec<TokenStream> = args.iter().map(|arg| side.ty(&arg.ty)).collect();
    let defaults = args.iter().map(|arg| side.default(arg));
    let (given, value): (Vec<TokenStream>, Vec<TokenStream>) =
        args.iter().zip(&arg_types).map(|(arg, ty)| side.setter(arg, ty)).unzip();
    let field_docs = arg_names.iter().map(|name| format!(" The argument `{name}` of the op."));
    let tensor_docs = tensor_names.iter().map(|name| format!(" The argument `{name}` of the op."));
    let (setter_docs, tensor_setter_docs) = (
        arg_names.iter().map(|name| format!(" Sets `{name}`.")),
        tensor_names.iter().map(|name| format!(" Sets `{name}`.")),
    );
    let copy = if tensors.is_empty() { quote!(PartialEq,) } else { quote!() };
    quote! {
        #[doc = #doc]
        #[derive(Clone, Debug, #copy)]
        pub struct #struct_name #generics {
            #(#[doc = #tensor_docs] pub #tensor_names: ::std::option::Option<::std::borrow::Cow<'a, T>>,)*
            #(#[doc = #field_docs] pub #arg_names: #arg_types,)*
        }
        impl #bounded ::std::default::Default for #struct_name #short {
            fn default() -> Self {
                Self { #(#tensor_names: ::std::option::Option::None,)* #(#arg_names: #defaults,)* }
            }
        }
        impl #bounded #struct_name #short {
            #[doc = #new_doc]
            pub fn new() -> Self {
                Self::default()
            }
            #(
                #[doc = #tensor_setter_docs]
                pub fn #tensor_names(mut self, #tensor_names: impl ::std::convert::Into<::std::borrow::Cow<'a, T>>) -> Self {
                    self.#tensor_names = ::std::option::Option::Some(#tensor_names.into());
                    self
                }
            )*
            #(
                #[doc = #setter_docs]
                pub fn #arg_names(mut self, #arg_names: #given) -> Self {
                    self.#arg_names = #value;
                    self
                }
            )*
        }
    }
}

/// `: beta 1.0, threshold 20.0`.
fn defaults_text(row: &OpRow) -> String {
    let (tensors, args) = row.options();
    let tensors = tensors.iter().map(|tensor| format!("no `{}`", tensor.name));
    let args = args.iter().map(|arg| match &arg.default {
        Some(default) => format!("`{}` {}", arg.name, default.to_string().replace(' ', "")),
        None => format!("no `{}`", arg.name),
    });
    let all: Vec<String> = tensors.chain(args).collect();
    format!(": {}", all.join(", "))
}
