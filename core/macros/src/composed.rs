//! The back end for composed ops: methods of `Tensor` that call a function with the same name, and entries of
//! the registry.

use crate::autocast::with_casts;
use crate::by_name::entry;
use crate::chain;
use crate::derivative::How;
use crate::given::{Side, inputs, written};
use crate::row::{Form, Ranked, Row, Table, TensorKind};
use crate::tape::refusals;
use crate::values::{Forms, forms, in_place_doc, info, options_struct};
use proc_macro2::{Ident, TokenStream};
use quote::quote;

/// Checks that a row of a composed op has nothing that it must not have.
pub(crate) fn check(row: &Row) -> Result<(), &'static str> {
    match row.by_element() || !row.outputs.kept.is_empty() {
        true => Err("a composed op has no kernel and keeps nothing: its function calls other ops"),
        false => Ok(()),
    }
}

/// The code for a table of composed ops.
pub(crate) fn table(table: &Table) -> TokenStream {
    let (side, heading) = (Side::composed(), &table.heading);
    let mut methods = Forms::default();
    let mut options = TokenStream::new();
    let mut entries = TokenStream::new();
    for row in &table.rows {
        methods.extend(method(row, &side));
        if row.has_options() {
            options.extend(options_struct(row, &side));
        }
        let info = info(row, &table.name.to_string(), &side);
        entries.extend(entry(row, &how(row), &side, &quote!(&#info)));
    }
    let chained = chain::table(table, &side);
    let (plain, methods) = (methods.module(), &methods.methods);
    quote! {
        #plain
        #(#heading)*
        impl crate::Tensor { #methods }
        #chained
        #[doc(hidden)]
        pub mod options { use super::*; #options }
        #[allow(unused_imports)] // a table may have none
        use options::*;
        /// The ops of this table, as the registry has them.
        pub(crate) const OPS: &[&crate::registry::Op] = &[#entries];
    }
}

/// The arguments of the function of a row: its tensors, then its other arguments.
pub(crate) fn passed(row: &Row) -> Vec<&Ident> {
    row.tensors.iter().map(|tensor| &tensor.name).chain(row.kernel_args().map(|arg| &arg.name)).collect()
}

/// The arguments of the function that are not tensors.
pub(crate) fn arguments(row: &Row) -> Vec<&Ident> {
    row.kernel_args().map(|arg| &arg.name).collect()
}

/// The tensors of a row, with their kinds.
pub(crate) fn kinds(row: &Row) -> impl Iterator<Item = (TensorKind, &Ident)> {
    row.tensors.iter().map(|tensor| (tensor.kind, &tensor.name))
}

/// A call of the function of a row. Its errors name the form that was called, and not an op that it is made
/// of. `first` is the variable of its first tensor.
pub(crate) fn call(
    row: &Row,
    side: &Side,
    called: &Ident,
    given: TokenStream,
    first: Option<&Ident>,
) -> TokenStream {
    let (name, text, plain) = (&row.name, called.to_string(), &side.plain);
    let (kernel, of) = match row.ranked() {
        Some(Ranked { kernel, dims }) => {
            let name = name.to_string();
            (kernel, quote!((#name, #dims),))
        }
        None => (name.clone(), quote!()),
    };
    let tensors = kinds(row).enumerate();
    let tensors = tensors.map(|(at, (kind, own))| (kind, first.filter(|_| at == 0).unwrap_or(own)));
    let inputs = inputs(tensors, plain);
    quote!(#plain::named(kernels::#kernel(#of #given), #text, #inputs))
}

/// The statements before the call of the function. In a row with `refused`, no tensor may require a gradient.
/// The function of an op that has only an in-place form checks this itself, because its other tensors may be
/// used only for their sizes.
pub(crate) fn prepared(row: &Row, side: &Side, in_place: bool) -> TokenStream {
    let prepare = side.prepare(row, in_place);
    if !matches!(how(row), How::Refused) || row.is_in_place_only() {
        return prepare;
    }
    let tensors = row.tensors.iter().map(|tensor| (tensor.kind, &tensor.name, &tensor.name));
    let refusals = refusals(tensors, &row.name.to_string(), &side.registry);
    quote!(#prepare #refusals)
}

/// How gradients flow: as the row says, or through the ops that it calls.
pub(crate) fn how(row: &Row) -> How {
    match &row.gradient {
        Some(said) if said == "refused" => How::Refused,
        Some(_) => How::Constant,
        None if row.outputs.form == Form::Truth => How::Constant,
        None => How::Composed,
    }
}

/// The method of a row, and its in-place form. In both forms, a function that takes `mut x` writes to it.
fn method(row: &Row, side: &Side) -> Forms {
    let name = &row.name;
    let (prepare, returned, passed) = (prepared(row, side, false), side.returned(row), passed(row));
    let (doc, written) = (row.doc(side), written());
    let mut all = Forms::default();
    if !row.is_in_place_only() {
        let made = match row.writes() {
            true => {
                let (x, others) = (passed[0], &passed[1..]);
                let call = call(row, side, name, quote!(&mut #written #(, #others)*), None);
                quote!({
                    let mut #written = #x.to_write();
                    #call?;
                    Ok(#written)
                })
            }
            false => call(row, side, name, quote!(#(#passed),*), None),
        };
        let casts = with_casts(&quote!(crate), &name.to_string(), kinds(row), &arguments(row), &made);
        let value = quote! { #prepare #casts #made };
        all.extend(forms(row, side, &doc, &returned, &value, name));
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
    let call = call(row, side, name_, quote!(#written #(, #others)*), Some(&written));
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
    let value = quote! {
        #check
        #prepare
        #end
    };
    all.extend(forms(row, side, &doc, &returned, &value, name_));
    all
}
