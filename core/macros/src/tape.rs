//! The back end for the tape: methods of `Tensor`, each of which computes the value in core and records its
//! derivative. `recorded` makes the record, and `by_name` the entries of the registry.

use crate::autocast::with_casts;
use crate::by_name::entry;
use crate::chain;
use crate::derivative::{Derivatives, How};
use crate::given::{Side, inputs, written};
use crate::recorded::recorded;
use crate::row::{Form, Row, Table, TensorKind};
use crate::values::{Forms, forms, in_place_doc};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

/// The code for a table and its derivatives, and the errors in them. An op whose derivative has an error
/// still gets its methods, so that nothing else fails.
pub(crate) fn table(table: &Table, derivatives: &Derivatives) -> (TokenStream, Vec<syn::Error>) {
    let side = Side::tape();
    let (errors, found) = derivatives.check(&table.name, &table.rows);
    let (name, heading) = (&table.name, &table.heading);
    let run = quote!(::namegrad_core::ops::#name::run);
    let mut recorded = TokenStream::new();
    let mut methods = Forms::default();
    let mut entries = TokenStream::new();
    for (at, row) in table.rows.iter().enumerate() {
        let found = found.iter().find(|(known, _)| known.name == row.name);
        let how = found.map_or(&How::Refused, |(_, how)| how);
        recorded.extend(record(row, how, derivatives, &side, &run));
        methods.extend(method(row, name, &side, &run));
        let info = quote!(&::namegrad_core::ops::#name::ROWS[#at]);
        entries.extend(entry(row, how, &side, &info));
    }
    let chained = chain::table(table, &side);
    let (plain, methods) = (methods.module(), &methods.methods);
    let code = quote! {
        #recorded
        #plain
        #(#heading)*
        impl crate::Tensor { #methods }
        #chained
        /// The ops of this table, as the registry has them.
        pub(crate) const OPS: &[&crate::registry::Op] = &[#entries];
    };
    (code, errors)
}

/// The variables and the type of the results of the recording function of a row.
fn values_pattern(row: &Row) -> (Vec<Ident>, TokenStream) {
    let values: Vec<Ident> = row.outputs.all().map(|output| format_ident!("value_of_{output}")).collect();
    let pattern = quote!((#(#values),*));
    (values, pattern)
}

/// The function that computes an op and records it, with arguments that are already looked up.
fn record(row: &Row, how: &How, derivatives: &Derivatives, side: &Side, run: &TokenStream) -> TokenStream {
    let name = &row.name;
    let text = name.to_string();
    let renamed = Renamed::new(row, how);
    let parameters = renamed.parameters(row, side);
    let returned = side.returned(row);
    let (values, pattern) = values_pattern(row);
    let computed = renamed.passed(row, how);
    let inputs = inputs(row.tensors.iter().map(|tensor| tensor.kind).zip(&renamed.tensors), &side.plain);
    let look = look(row, &inputs, &text, &values);
    let compute = quote!(let #pattern = #run::#name(#(#computed),*)?; #look);
    let visible: Vec<&Ident> = values.iter().take(row.outputs.names.len()).collect();
    let hidden: Vec<&Ident> = values.iter().skip(row.outputs.names.len()).collect();
    let list = row.outputs.form == Form::List;
    let constants = match list {
        true => {
            quote!(#(let #visible: ::std::vec::Vec<crate::Tensor> = #visible.into_iter().map(crate::Tensor::constant).collect();)*)
        }
        false => quote!(#(let #visible = crate::Tensor::constant(#visible);)*),
    };
    let result = result(row, &visible);
    let refusals = renamed.refusals(row, how, &text);
    let starting = (row.outputs.form != Form::Truth).then(|| quote!(crate::observe::starting();));
    let body = match how {
        How::Constant | How::Composed => quote!(#compute #(drop(#hidden);)* #constants Ok(#result)),
        How::Refused => quote!(#refusals #compute #(drop(#hidden);)* #constants Ok(#result)),
        How::By(signature, function) => {
            let tensors = &renamed.tensors;
            let args = &signature.args;
            quote!(#compute #function(#text, #(#tensors,)* #pattern #(, #args)*))
        }
        How::Formulas(signature, gradients) => {
            let recorded = recorded(row, &inputs, signature, gradients, derivatives, side, &values);
            quote!(#refusals let #pattern = #run::#name(#(#computed),*)?; #recorded)
        }
    };
    let casts = {
        let tensors = row.tensors.iter().map(|tensor| tensor.kind).zip(&renamed.tensors);
        let (tensor_names, args) = (&renamed.tensors, &renamed.args);
        let arg_refs: Vec<&Ident> = args.iter().collect();
        let then = quote!(self::#name(#(#tensor_names,)* #(#args),*));
        with_casts(&quote!(crate), &text, tensors, &arg_refs, &then)
    };
    let docs =
        format!(" [`Tensor::{text}`](crate::Tensor::{text}) with arguments that are already looked up.");
    quote! {
        #[doc = #docs]
        #[track_caller]
        // The code has one form for arguments of all types.
        #[allow(clippy::clone_on_copy, unused_variables, clippy::redundant_clone)]
        pub(crate) fn #name(#(#parameters),*) -> ::namegrad_core::Result<#returned> { #casts #starting #body }
    }
}

/// Anomaly mode and observers look at the values of an op. An op that gives no tensor has none.
fn look(row: &Row, inputs: &TokenStream, op: &str, values: &[Ident]) -> TokenStream {
    let outputs = match row.outputs.form {
        Form::Truth => return quote!(),
        Form::List => {
            let value = &values[0];
            quote!(&::namegrad_core::args::references(&#value))
        }
        _ => quote!(&[#(&#values),*]),
    };
    quote!(if crate::tape::is_looking() { crate::tape::nan::look(#op, &crate::plain::values(#inputs), #outputs); })
}

/// The return value of the method, from tensors in variables with these names.
pub(crate) fn result(row: &Row, outputs: &[&Ident]) -> TokenStream {
    match &row.outputs.form {
        Form::One | Form::Truth | Form::List => {
            let y = outputs[0];
            quote!(#y)
        }
        Form::Tuple => quote!((#(#outputs),*)),
        Form::Struct(name) => {
            let fields = &row.outputs.names;
            quote!(::namegrad_core::#name { #(#fields: #outputs),* })
        }
    }
}

/// The tensors and arguments of a row, with the names that its derivative gives them.
struct Renamed {
    tensors: Vec<Ident>,
    args: Vec<Ident>,
}

impl Renamed {
    fn new(row: &Row, how: &How) -> Renamed {
        let signature = match how {
            How::Formulas(signature, _) | How::By(signature, _) => Some(signature),
            _ => None,
        };
        let tensors = row.tensors.iter().map(|tensor| tensor.name.clone());
        // The identifiers of the derivative, so that its formulas see them.
        let arg = |own: &Ident| {
            let said = signature.and_then(|signature| signature.args.iter().find(|arg| *arg == own));
            said.unwrap_or(own).clone()
        };
        Renamed {
            tensors: signature.map_or_else(|| tensors.collect(), |signature| signature.tensors.clone()),
            args: row.kernel_args().map(|own| arg(&own.name)).collect(),
        }
    }

    fn parameters(&self, row: &Row, side: &Side) -> Vec<TokenStream> {
        let tensors = row.tensors.iter().zip(&self.tensors).map(|(tensor, name)| match tensor.kind {
            TensorKind::Optional => quote!(#name: ::std::option::Option<&crate::Tensor>),
            TensorKind::List => quote!(#name: &[&crate::Tensor]),
            _ => quote!(#name: &crate::Tensor),
        });
        let args = row.kernel_args().zip(&self.args).map(|(arg, name)| {
            let ty = side.resolved(arg);
            quote!(#name: #ty)
        });
        tensors.chain(args).collect()
    }

    /// The arguments of the op in core: plain values, and copies of arguments that are needed afterwards.
    fn passed(&self, row: &Row, how: &How) -> Vec<TokenStream> {
        let needed: Vec<&Ident> = match how {
            How::Formulas(_, gradients) => gradients.iter().flat_map(|gradient| &gradient.args).collect(),
            How::By(signature, _) => signature.args.iter().collect(),
            _ => Vec::new(),
        };
        let tensors = row.tensors.iter().zip(&self.tensors).map(|(tensor, name)| match tensor.kind {
            TensorKind::Optional => quote!(#name.map(crate::Tensor::value)),
            TensorKind::List => quote!(&crate::Tensor::values_of(#name)),
            _ => quote!(#name.value()),
        });
        let args = self.args.iter().map(|name| match needed.contains(&name) {
            true => quote!(#name.clone()),
            false => quote!(#name),
        });
        tensors.chain(args).collect()
    }

    /// The checks that inputs without a gradient do not require one, so that nothing is detached silently.
    fn refusals(&self, row: &Row, how: &How, op: &str) -> TokenStream {
        let served: Vec<&Ident> = match how {
            How::Formulas(_, gradients) => gradients.iter().flat_map(|gradient| &gradient.inputs).collect(),
            _ => Vec::new(),
        };
        let left = row.tensors.iter().zip(&self.tensors).filter(|(_, name)| !served.contains(name));
        refusals(left.map(|(tensor, own)| (tensor.kind, own, &tensor.name)), op, &quote!(crate::registry))
    }
}

/// Statements that return an error if one of these tensors requires a gradient. They are given by kind,
/// variable and name.
pub(crate) fn refusals<'a>(
    tensors: impl Iterator<Item = (TensorKind, &'a Ident, &'a Ident)>,
    op: &str,
    registry: &TokenStream,
) -> TokenStream {
    tensors
        .map(|(kind, own, name)| {
            let text = name.to_string();
            match kind {
                TensorKind::Mask => quote!(),
                TensorKind::List => quote!(for each in #own { #registry::refuse(#op, #text, each)?; }),
                TensorKind::Optional => {
                    quote!(if let ::std::option::Option::Some(each) = #own { #registry::refuse(#op, #text, each)?; })
                }
                _ => quote!(#registry::refuse(#op, #text, #own)?;),
            }
        })
        .collect()
}

/// The methods of a row.
fn method(row: &Row, table: &Ident, side: &Side, run: &TokenStream) -> Forms {
    let (name, recorded) = (&row.name, quote!(crate::rules::#table));
    let (prepare, returned) = (side.prepare(row, false), side.returned(row));
    let tensors = row.tensors.iter().map(|tensor| &tensor.name);
    let call: Vec<&Ident> = tensors.chain(row.kernel_args().map(|arg| &arg.name)).collect();
    let value = match row.args.iter().any(|arg| arg.ty.is("Cast")) {
        true => {
            let (result, cast) = (&row.outputs.names[0], side.cast_result(row));
            quote! { #prepare let #result = #recorded::#name(#(#call),*)?; #cast Ok(#result) }
        }
        false => quote! { #prepare #recorded::#name(#(#call),*) },
    };
    let mut made = forms(row, side, &row.doc(side), &returned, &value, name);
    let Some(name_) = &row.in_place else { return made };
    let (doc, prepare, text) = (in_place_doc(row, side), side.prepare(row, true), name_.to_string());
    let (first, others, written) = (call[0], &call[1..], written());
    let plain = side.passed(row);
    let plain = &plain[1..];
    let tensors = row.tensors.iter().map(|tensor| (tensor.kind, &tensor.name));
    let inputs = inputs(tensors, &side.plain);
    let end = if row.by_element() { quote!(assign_made) } else { quote!(become_made) };
    let value = quote! {
        #written.check_in_place(#text)?;
        #prepare
        if let ::std::option::Option::Some(_off) = crate::tape::followed(#inputs) {
            let made = #recorded::#name(#first #(, #others)*);
            return #written.#end(#text, made);
        }
        let done = #run::#name_(#written.in_buffer() #(, #plain)*);
        #written.written(done)
    };
    made.extend(forms(row, side, &doc, &returned, &value, name_));
    made
}
