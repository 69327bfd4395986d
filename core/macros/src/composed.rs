//! The back end for composed ops: methods of `Tensor` that call a function with the same name, and entries of
//! the registry.

use crate::autocast::with_casts;
use crate::by_name::entry;
use crate::chain;
use crate::derivative::How;
use crate::given::{Side, inputs, local, written};
use crate::options::options_struct;
use crate::row::{Form, OpRow, OpTable, Ranked, TensorKind};
use crate::tape::refusals;
use crate::values::{Forms, MethodBody, forms, in_place_doc, info};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;

/// Checks that a row of a composed op has nothing that it must not have.
pub(crate) fn check(row: &OpRow) -> Result<(), &'static str> {
    match row.by_element() || !row.outputs.kept.is_empty() {
        true => Err("a composed op has no kernel and keeps nothing: its function calls other ops"),
        false => Ok(()),
    }
}

/// The code for a table of composed ops.
pub(crate) fn table(table: &OpTable) -> TokenStream {
    let (side, heading) = (Side::composed(), &table.heading);
    let (methods, options, entries) = all_rows(table, &side, method);
    let (chained, in_rows) = (chain::table(table, &side, &[]), in_rows(table, &side));
    let (plain, methods) = (methods.module(), &methods.methods);
    quote! {
        #plain
        #in_rows
        #(#heading)*
        impl crate::Tensor { #methods }
        #chained
        #[doc(hidden)]
        pub mod options { use super::*; #options }
        #[allow(unused_imports)] // a table may have none
        use options::*;
        /// The ops of this table, as the registry has them.
        pub(crate) static OPS: &[&crate::registry::Op] = &[#entries];
    }
}

/// The methods or functions of the rows, their options, and their entries in the registry.
pub(crate) fn all_rows(
    table: &OpTable,
    side: &Side,
    form: fn(&OpRow, &Side) -> Forms,
) -> (Forms, TokenStream, TokenStream) {
    let (mut forms, mut options, mut entries) = (Forms::default(), TokenStream::new(), TokenStream::new());
    for row in &table.rows {
        forms.extend(form(row, side));
        if row.has_options() {
            options.extend(options_struct(row, side));
        }
        let info = info(row, &table.name.to_string(), side);
        entries.extend(entry(row, &how(row), side, &quote!(&#info)));
    }
    (forms, options, entries)
}

/// The arguments of the function of a row: its tensors, then its other arguments.
fn passed(row: &OpRow) -> Vec<&Ident> {
    row.tensors.iter().map(|tensor| &tensor.name).chain(row.kernel_args().map(|arg| &arg.name)).collect()
}

/// The tensors of a row, with their kinds.
fn kinds(row: &OpRow) -> impl Iterator<Item = (TensorKind, &Ident)> {
    row.tensors.iter().map(|tensor| (tensor.kind, &tensor.name))
}

/// A call of the function of a row, without its errors. `given` are its arguments.
fn function_called(row: &OpRow, given: &TokenStream) -> TokenStream {
    let (kernel, of) = match row.ranked() {
        Some(Ranked { kernel, dims }) => {
            let name = row.name.to_string();
            (kernel, quote!((#name, #dims),))
        }
        None => (row.name.clone(), quote!()),
    };
    let module = if row.code.is_some() { quote!(rows) } else { quote!(kernels) };
    quote!(#module::#kernel(#of #given))
}

/// The names of the tensors of a row, with what they meet.
fn names(row: &OpRow, side: &Side) -> TokenStream {
    let names = row.tensors.iter().map(|tensor| {
        let (name, meets) = (tensor.name.to_string(), row.meets(tensor, &side.core));
        quote!((#name, #meets))
    });
    quote!(&[#(#names),*])
}

/// The statement before the call of the function of a row: the closures in it do not know their caller, and new
/// tensors are on the device of its inputs. `first` is as in [`call`].
fn called(row: &OpRow, plain: &TokenStream, first: Option<&Ident>) -> TokenStream {
    let inputs = inputs(variables(row, first), plain);
    quote!(let _called = #plain::called_with(#inputs);)
}

/// The tensors of a row, with their kinds, where `first` is the variable of the first one.
fn variables<'a>(row: &'a OpRow, first: Option<&'a Ident>) -> impl Iterator<Item = (TensorKind, &'a Ident)> {
    let of = move |(at, (kind, own))| (kind, first.filter(|_| at == 0).unwrap_or(own));
    kinds(row).enumerate().map(of)
}

/// A call of the function of a row. Its errors name the form that was called, and not an op that it is made
/// of. `first` is the variable of its first tensor.
fn call(row: &OpRow, side: &Side, called: &Ident, given: &TokenStream, first: Option<&Ident>) -> TokenStream {
    let (text, plain) = (side.called(called), &side.plain);
    let inputs = inputs(variables(row, first), plain);
    let (function, names) = (function_called(row, given), names(row, side));
    quote!(#plain::named(#function, #text, #inputs, #names))
}

/// The body of the function behind a row: the function of the row as a closure, which `composed` calls.
pub(crate) fn body(row: &OpRow, side: &Side) -> TokenStream {
    let (plain, name, passed) = (&side.plain, side.called(&row.name), passed(row));
    let (given, names, inputs) = (side.given(row), names(row, side), local("inputs"));
    let tensors = kinds(row).enumerate().map(|(at, (kind, name))| match kind {
        TensorKind::Optional => quote!(let #name = #plain::tensor_or_none(#inputs, #at);),
        TensorKind::List => quote!(let #name = #inputs[#at].tensors();),
        _ => quote!(let #name = #plain::tensor(#inputs, #at);),
    });
    let (looked_up, refusals) = (side.looked_up(row, false, true), refused(row, side));
    let called = function_called(row, &quote!(#(#passed),*));
    quote! {
        static CALL: #plain::Composed = #plain::Composed::new(#name, #names);
        #plain::composed(&CALL, &[#(#given),*], &|#inputs: &[#plain::Input<'_>]| {
            #(#tensors)*
            #looked_up
            #refusals
            Ok(#called)
        })
    }
}

/// The functions of the rows that have their code, in a module beside `kernels`.
pub(crate) fn in_rows(table: &OpTable, side: &Side) -> TokenStream {
    let coded = table.rows.iter().filter_map(|row| Some((row, row.code.as_ref()?)));
    // Functions over other numbers of dims share the code of the first.
    let first = |row: &OpRow| row.others.iter().all(|(_, name)| *name != row.name);
    let functions: Vec<TokenStream> =
        coded.filter(|(row, _)| first(row)).map(|(row, code)| code_of(row, code, side)).collect();
    if functions.is_empty() {
        return TokenStream::new();
    }
    quote!(mod rows { use super::*; #(#functions)* })
}

/// The function of a row for its code.
fn code_of(row: &OpRow, code: &TokenStream, side: &Side) -> TokenStream {
    let (core, tensor, returned) = (&side.core, &side.tensor, side.returned(row));
    let tensors = kinds(row).map(|(kind, name)| match kind {
        TensorKind::Optional => quote!(#name: ::std::option::Option<&#tensor>),
        TensorKind::List => quote!(#name: &[&#tensor]),
        TensorKind::Written => quote!(#name: &mut #tensor),
        _ => quote!(#name: &#tensor),
    });
    let args = row.kernel_args().map(|arg| {
        let (name, ty) = (&arg.name, side.resolved(arg));
        quote!(#name: #ty)
    });
    let [op, rank] = ["op", "rank"].map(|name| Ident::new(name, Span::call_site()));
    let (name, of, called) = match row.ranked() {
        Some(Ranked { kernel, .. }) => {
            let [op, rank] =
                [op, rank].map(|name| if mentions(code, &name) { quote!(#name) } else { quote!(_) });
            (kernel, quote!((#op, #rank): (&'static str, usize),), quote!())
        }
        None => {
            let text = side.called(&row.name);
            let called = mentions(code, &op).then(|| quote!(let #op: &'static str = #text;));
            (row.name.clone(), quote!(), quote!(#called))
        }
    };
    quote! {
        #[allow(clippy::too_many_arguments)] // the arguments of the row
        pub(super) fn #name(#of #(#tensors,)* #(#args),*) -> #core::Result<#returned> {
            #called
            #code
        }
    }
}

/// Whether a word occurs in the code.
fn mentions(code: &TokenStream, word: &Ident) -> bool {
    code.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == *word,
        TokenTree::Group(group) => mentions(&group.stream(), word),
        _ => false,
    })
}

/// In a row with `refused`, the statements that return an error if a tensor requires a gradient. The function
/// of an op that has only an in-place form checks this itself, because its other tensors may be used only for
/// their sizes.
fn refused(row: &OpRow, side: &Side) -> TokenStream {
    if !matches!(how(row), How::Refused) || row.is_in_place_only() {
        return quote!();
    }
    let tensors = row.tensors.iter().map(|tensor| (tensor.kind, &tensor.name, &tensor.name));
    refusals(tensors, &row.name.to_string(), &side.registry)
}

/// The statements before the call of the function.
fn prepared(row: &OpRow, side: &Side, in_place: bool) -> TokenStream {
    let (prepare, refusals) = (side.prepare(row, in_place), refused(row, side));
    quote!(#prepare #refusals)
}

/// How gradients flow: as the row says, or through the ops that it calls.
pub(crate) fn how(row: &OpRow) -> How {
    match &row.gradient {
        Some(said) if said == "refused" => How::Refused,
        Some(_) => How::Constant,
        None if row.outputs.form == Form::Truth => How::Constant,
        None => How::Composed,
    }
}

/// The method of a row, and its in-place form. In both forms, a function that takes `mut x` writes to it.
fn method(row: &OpRow, side: &Side) -> Forms {
    let name = &row.name;
    let (returned, passed) = (side.returned(row), passed(row));
    let (doc, written) = (row.doc(side), written());
    let mut all = Forms::default();
    if !row.is_in_place_only() {
        let value = match row.writes() {
            true => {
                let (x, others, prepare) = (passed[0], &passed[1..], prepared(row, side, false));
                let call = call(row, side, name, &quote!(&mut #written #(, #others)*), None);
                let made = quote!({
                    let mut #written = #x.to_write();
                    #call?;
                    Ok(#written)
                });
                let args: Vec<&Ident> = row.kernel_args().map(|arg| &arg.name).collect();
                let casts = with_casts(&quote!(crate), &name.to_string(), kinds(row), &args, &made);
                let called = called(row, &side.plain, None);
                quote! { #prepare #called #casts #made }
            }
            false => body(row, side),
        };
        all.extend(forms(row, side, &doc, &returned, &MethodBody::Own(value), name));
    }
    let (name_, doc) = match &row.in_place {
        Some(name_) => (name_, in_place_doc(row, side)),
        None if row.is_in_place_only() => (
            name,
            quote! {
                #doc
                #[doc = " An error leaves the tensor as it was; on a leaf that requires a gradient it is of kind `Autograd`."]
            },
        ),
        None => return all,
    };
    let (prepare, text, others) = (prepared(row, side, true), name_.to_string(), &passed[1..]);
    let call = call(row, side, name_, &quote!(#written #(, #others)*), Some(&written));
    let end = match row.writes() {
        true => quote! {
            #call?;
            Ok(#written)
        },
        false => quote! {
            let made = #call?;
            #written.assign(#text, made)
        },
    };
    // The function of an op that has only an in-place form checks this itself, because some are stricter.
    let check = (!row.is_in_place_only()).then(|| quote!(#written.check_in_place(#text)?;));
    let called = called(row, &side.plain, Some(&written));
    let value = quote! {
        #check
        #prepare
        #called
        #end
    };
    all.extend(forms(row, side, &doc, &returned, &MethodBody::Own(value), name_));
    all
}
