//! The entries of the registry: facts about ops, and how a call by name reaches the function of an op.

use crate::derivative::How;
use crate::given::{Parameter, Side};
use crate::row::{Form, OpRow, TensorKind};
use crate::tape::{has_static, static_path};
use proc_macro2::TokenStream;
use quote::quote;

/// The text of a formula with its variables renamed, given as pairs of the old and the new name. A word after
/// a `.` or `:` is not a variable, but a method, a field or part of a path.
fn renamed(formula: &str, names: &[(String, String)]) -> String {
    let in_word = |letter: char| letter == '_' || letter.is_alphanumeric();
    let (mut text, mut rest) = (String::new(), formula);
    while let Some(start) = rest.find(in_word) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|letter| !in_word(letter)).unwrap_or(from.len()));
        text.push_str(before);
        let is_variable = !text.ends_with(['.', ':']);
        let new = names.iter().find(|(old, _)| is_variable && old == word);
        text.push_str(new.map_or(word, |(_, new)| new));
        rest = after;
    }
    text + rest
}

/// The entry of the registry.
pub(crate) fn entry(row: &OpRow, how: &How, side: &Side, info: &TokenStream) -> TokenStream {
    let registry = &side.registry;
    let gradients = match how {
        How::Constant => quote!(Constant),
        How::Refused => quote!(Refused),
        How::By(..) => quote!(Recorded),
        How::Composed => quote!(Composed),
        How::Formulas(signature, gradients) => {
            // Readers see the names in the row.
            let tensors = signature.tensors.iter().zip(row.tensors.iter().map(|tensor| &tensor.name));
            let outputs = signature.outputs.iter().zip(row.outputs.all());
            let names: Vec<(String, String)> =
                tensors.chain(outputs).map(|(own, name)| (own.to_string(), name.to_string())).collect();
            let each = gradients.iter().map(|gradient| {
                let inputs = gradient.inputs.iter().map(|input| renamed(&input.to_string(), &names));
                let inputs = inputs.collect::<Vec<_>>().join(", ");
                let formula = renamed(&gradient.formula.to_string(), &names);
                quote!((#inputs, #formula))
            });
            quote!(Formulas(&[#(#each),*]))
        }
    };
    let is_static = has_static(row, how) && (row.tensors.len() == 2 || row.args.is_empty());
    let kinds = row.args.iter().map(|arg| {
        let (ty, is_required) = (side.ty(&arg.ty), side.default(arg).is_none());
        quote!(#registry::Kind::of::<#ty>(#is_required))
    });
    let call = match is_static {
        true => {
            let op = static_path(row);
            quote!(#registry::Caller::ByElement(&#op))
        }
        false => by_name(row, side, false),
    };
    let in_place = match row.in_place.is_some() || row.is_in_place_only() {
        true if is_static => {
            let op = static_path(row);
            quote!(::std::option::Option::Some(#registry::InPlace::ByElement(&#op)))
        }
        true => {
            let call = by_name(row, side, true);
            quote!(::std::option::Option::Some(#call))
        }
        false => quote!(::std::option::Option::None),
    };
    quote! {
        &#registry::Op {
            info: #info,
            gradients: #registry::Gradients::#gradients,
            args: &[#(#kinds),*],
            call: #call,
            call_in_place: #in_place,
        },
    }
}

/// The function behind the methods of a row, as a call by name reaches it.
fn reached(row: &OpRow, side: &Side, in_place: bool) -> TokenStream {
    let name = match (&row.in_place, in_place) {
        (Some(name_), true) => name_,
        _ => &row.name,
    };
    let with = match has_options(row, in_place) {
        true => row.with_name(in_place),
        false => name.clone(),
    };
    match side.parameters(row).iter().any(|parameter| parameter.is_generic) {
        true => quote!(plain::#name),
        false if side.methods => {
            let tensor = &side.tensor;
            quote!(#tensor::#with)
        }
        false => quote!(#with),
    }
}

fn has_options(row: &OpRow, in_place: bool) -> bool {
    row.has_options() && !(in_place && row.casts_alone())
}

/// How a call by name runs the op. Functions of one or two tensors are called as they are; for the others,
/// a function reads the arguments.
fn by_name(row: &OpRow, side: &Side, in_place: bool) -> TokenStream {
    let (registry, reached) = (&side.registry, reached(row, side, in_place));
    let one = matches!(row.outputs.form, Form::One | Form::Truth);
    if row.args.is_empty() && (in_place || one && !row.is_in_place_only()) {
        let kind = match &side.parameters(row)[..] {
            [] if row.tensors.len() == 1 => Some(quote!(One)),
            [first] if row.tensors.len() == 1 && !side.is_method(row) && !first.is_generic => {
                Some(quote!(One))
            }
            [Parameter { two: Some(two), .. }] if row.tensors.len() == 2 => Some(quote!(#two)),
            [first, Parameter { two: Some(two), .. }] if row.tensors.len() == 2 && !first.is_generic => {
                Some(quote!(#two))
            }
            _ => None,
        };
        if let Some(kind) = kind {
            let form = if in_place { quote!(InPlace) } else { quote!(Caller) };
            return quote!(#registry::#form::#kind(#reached));
        }
    }
    reader(row, side, in_place, &reached)
}

/// The function that passes the arguments of a call by name on, after they were checked.
fn reader(row: &OpRow, side: &Side, in_place: bool, reached: &TokenStream) -> TokenStream {
    let (core, tensor, registry) = (&side.core, &side.tensor, &side.registry);
    let mut taken = TokenStream::new();
    for (at, tensor) in row.tensors.iter().enumerate().skip(usize::from(in_place)) {
        let name = &tensor.name;
        taken.extend(match tensor.kind {
            TensorKind::Optional => quote!(let #name = call.optional(#at);),
            TensorKind::List => quote!(let #name = &call.list(#at)[..];),
            _ => quote!(let #name = call.tensor(#at);),
        });
    }
    let options = has_options(row, in_place);
    if options {
        let path = side.options_path(row);
        taken.extend(quote!(let mut options = #path::new();));
        for name in row.options().0.iter().map(|tensor| &tensor.name) {
            taken.extend(quote!(options.#name = #name.map(::std::borrow::Cow::Borrowed);));
        }
    }
    for (at, arg) in row.args.iter().enumerate() {
        let name = &arg.name;
        if arg.is_option() {
            if options {
                taken.extend(quote!(call.set(#at, &mut options.#name);));
            }
            continue;
        }
        let ty = side.ty(&arg.ty);
        taken.extend(match side.default(arg) {
            Some(default) => quote!(let #name = call.or::<#ty>(#at, #default);),
            None => quote!(let #name = call.required::<#ty>(#at);),
        });
    }
    let parameters = side.parameters(row);
    let passed = parameters.iter().map(|parameter| &parameter.named);
    let options = options.then(|| quote!(options));
    if in_place {
        return quote!(#registry::InPlace::Read({
            fn by_name<'x>(x: &'x mut #tensor, call: &#registry::Call<'_>) -> #core::Result<&'x mut #tensor> {
                #taken
                #reached(x, #(#passed,)* #options)
            }
            by_name
        }));
    }
    let first = row.tensors.first().filter(|_| side.is_method(row)).map(|first| &first.name);
    let one = matches!(row.outputs.form, Form::One | Form::Truth);
    let (kind, returned) = match one {
        true => (quote!(Read), quote!(#tensor)),
        false => (quote!(Several), quote!(::std::vec::Vec<#tensor>)),
    };
    let body = match first.filter(|_| row.is_in_place_only()) {
        Some(x) => quote! {
            let mut written = #x.to_write();
            #reached(&mut written, #(#passed,)* #options)?;
            ::std::result::Result::Ok(written)
        },
        None => {
            let first = first.map(|first| quote!(#first,));
            let called = quote!(#reached(#first #(#passed,)* #options));
            match &row.outputs.form {
                Form::One | Form::Truth | Form::List => called,
                form => {
                    let (names, plain) = (&row.outputs.names, &side.plain);
                    let listed = match form {
                        Form::Tuple => quote!({
                            let (#(#names),*) = made;
                            #plain::listed([#(#names),*])
                        }),
                        _ => quote!(#plain::listed([#(made.#names),*])),
                    };
                    quote!(let made = #called?; ::std::result::Result::Ok(#listed))
                }
            }
        }
    };
    quote!(#registry::Caller::#kind({
        fn by_name(call: &#registry::Call<'_>) -> #core::Result<#returned> {
            #taken
            #body
        }
        by_name
    }))
}
