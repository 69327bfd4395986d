//! The back end for the tape: methods of `Tensor`, each of which computes the value in core and records its
//! derivative. `recorded` makes the recipe of an op, and `by_name` the entries of the registry.

use crate::autocast::with_casts;
use crate::by_name::entry;
use crate::chain;
use crate::derivative::{Derivatives, How};
use crate::elements::kernel_name;
use crate::given::{Side, inputs, local, written};
use crate::recorded::{recipe, saved_args};
use crate::row::{Form, OpRow, OpTable, Tensor, TensorKind};
use crate::values::{Forms, MethodBody, forms, in_place_doc};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::Index;

/// The code for a table and its derivatives, and the errors in them. An op whose derivative has an error
/// still gets its methods, so that nothing else fails.
pub(crate) fn table(table: &OpTable, derivatives: &Derivatives) -> (TokenStream, Vec<syn::Error>) {
    let side = Side { written: Some(derivatives.g.span()), ..Side::tape() };
    let (errors, found) = derivatives.check(&table.name, &table.rows);
    let (name, heading) = (&table.name, &table.heading);
    let run = quote!(::namegrad_core::ops::#name::run);
    let (mut recorded, mut statics) = (TokenStream::new(), TokenStream::new());
    let (mut methods, mut with_static) = (Forms::default(), Vec::new());
    let mut entries = TokenStream::new();
    for (at, row) in table.rows.iter().enumerate() {
        let found = found.iter().find(|(known, _)| known.name == row.name);
        let how = found.map_or(&How::Refused, |(_, how)| how);
        let recipe = recipe(row, how, derivatives, &side);
        match has_static(row, how) {
            true => {
                with_static.push(row);
                statics.extend(static_of(row, name, &recipe));
                methods.extend(method_of_static(row, how, &side));
            }
            false => {
                recorded.extend(function(row, how, &recipe, &side, &run));
                methods.extend(method(row, name, &side, &run));
            }
        }
        let info = quote!(&::namegrad_core::ops::#name::ROWS[#at]);
        entries.extend(entry(row, how, &side, &info));
    }
    let chained = chain::table(table, &side, &with_static);
    let (plain, methods) = (methods.module(), &methods.methods);
    if !statics.is_empty() {
        recorded.extend(quote! {
            /// The elementwise ops, as the functions of the tape run them.
            #[allow(unused_variables)] // a formula need not use `cx`
            pub(crate) mod by_element { use super::*; #statics }
        });
    }
    let code = quote! {
        #recorded
        #plain
        #(#heading)*
        // The code has one form for arguments of all types.
        #[allow(clippy::clone_on_copy, clippy::useless_conversion)]
        impl crate::Tensor { #methods }
        #chained
        /// The ops of this table, as the registry has them.
        pub(crate) static OPS: &[&crate::registry::Op] = &[#entries];
    };
    (code, errors)
}

/// Whether an op is elementwise, of one tensor, or of a tensor and an operand. Then it is a
/// static in the module `by_element`, which one function runs, and has no function of its own.
pub(crate) fn has_static(row: &OpRow, how: &How) -> bool {
    let plain = |tensor: &Tensor| tensor.kind == TensorKind::Plain && !tensor.exact;
    row.by_element()
        && row.tensors.iter().all(plain)
        && (row.tensors.len() == 1 || row.tensors.len() == 2 && row.args.is_empty())
        && !matches!(how, How::By(..))
}

/// The path of the static of an elementwise op.
pub(crate) fn static_path(row: &OpRow) -> TokenStream {
    let name = kernel_name(&row.name);
    quote!(by_element::#name)
}

/// The static of an elementwise op.
fn static_of(row: &OpRow, table: &Ident, recipe: &TokenStream) -> TokenStream {
    let kernel = kernel_name(&row.name);
    let in_place = row.in_place.as_ref().map_or_else(String::new, Ident::to_string);
    quote! {
        pub(crate) static #kernel: crate::tape::ByElement = crate::tape::ByElement {
            recipe: #recipe,
            in_place: #in_place,
            kernel: &::namegrad_core::ops::#table::elements::#kernel,
        };
    }
}

/// The function that computes an op and records it, with arguments that are already looked up.
fn function(row: &OpRow, how: &How, recipe: &TokenStream, side: &Side, run: &TokenStream) -> TokenStream {
    let (name, text) = (&row.name, row.name.to_string());
    let [saved, args, given] = ["saved", "args", "inputs"].map(local);
    let renamed = Renamed::new(row, how);
    let (parameters, returned) = (renamed.parameters(row, side), side.returned(row));
    let inputs = inputs(row.tensors.iter().map(|tensor| tensor.kind).zip(&renamed.tensors), &side.plain);
    let body = match how {
        How::By(signature, by) => {
            let casts = casts(row, &renamed, &text);
            let values: Vec<Ident> =
                row.outputs.all().map(|output| format_ident!("value_of_{output}")).collect();
            let (computed, look) = (renamed.passed(row), look(row, &inputs, &text, &values));
            let (tensors, args) = (&renamed.tensors, &signature.args);
            let [kernel, caller] = ["kernel", "caller"].map(local);
            let of_batches = renamed.of_batches(row, &inputs, &text, &kernel);
            quote! {
                #casts
                crate::observe::starting();
                let #caller = ::std::panic::Location::caller(); // a closure does not get it
                let #kernel = || crate::line::device_of(#text, #inputs)
                    .and_then(|_device| #run::#name(#(#computed),*))
                    .map_err(|error| crate::plain::failed(error, #text, #inputs).at(#caller));
                let (#(#values),*) = if crate::tape::is_forward() { #of_batches } else { #kernel()? };
                #look
                #by(#text, #(#tensors,)* (#(#values),*) #(, #args)*)
            }
        }
        _ => {
            let seen = match how {
                How::Formulas(signature, gradients) => saved_args(signature, gradients),
                _ => Vec::new(),
            };
            let keep = (!seen.is_empty()).then(|| quote!(let #saved = (#(#seen,)*);));
            let some = match seen.is_empty() {
                true => quote!(::std::option::Option::None),
                false => quote!(::std::option::Option::Some(&#saved)),
            };
            let (kernel, is_list) = (quote!(#run::#name), row.outputs.form == Form::List);
            let passed = renamed.given(row, &seen);
            let compute = match row.outputs.names.len() {
                1 if !is_list => compute_one(row, &kernel, &passed),
                returned => {
                    let outputs: Vec<&Ident> = row.outputs.all().collect();
                    let (returned, kernel) = match is_list {
                        true => (quote!(::std::option::Option::None), quote!(#kernel(#(#passed),*))),
                        false => (
                            quote!(::std::option::Option::Some(#returned)),
                            quote!({
                                let (#(#outputs),*) = #kernel(#(#passed),*)?;
                                Ok(crate::plain::listed([#(#outputs),*]))
                            }),
                        ),
                    };
                    let made = quote!(crate::tape::compute_all(&RECIPE, #given, &|#given: &[crate::plain::Input<'_>]| #kernel, #returned, #args));
                    match is_list {
                        true => made,
                        false => {
                            let visible: Vec<&Ident> = row.outputs.names.iter().collect();
                            let result = result(row, &visible);
                            quote! {
                                let [#(#visible),*] = crate::tape::as_many(#made?);
                                Ok(#result)
                            }
                        }
                    }
                }
            };
            quote! {
                static RECIPE: crate::tape::Recipe = #recipe;
                #keep
                let (#given, #args): (&[crate::plain::Input<'_>], ::std::option::Option<&dyn crate::tape::Save>) = (#inputs, #some);
                #compute
            }
        }
    };
    let docs =
        format!(" [`Tensor::{text}`](crate::Tensor::{text}) with arguments that are already looked up.");
    quote! {
        #[doc = #docs]
        #[track_caller]
        // The code has one form for arguments of all types.
        #[allow(clippy::clone_on_copy, unused_variables, clippy::redundant_clone)]
        pub(crate) fn #name(#(#parameters),*) -> ::namegrad_core::Result<#returned> { #body }
    }
}

/// The call for an op with one output. Outputs that only formulas see go to a list.
fn compute_one(row: &OpRow, kernel: &TokenStream, passed: &[TokenStream]) -> TokenStream {
    let [inputs, args, more] = ["inputs", "args", "more"].map(local);
    let (call, hidden) = (quote!(#kernel(#(#passed),*)), &row.outputs.kept);
    let kernel = match hidden.is_empty() {
        true => {
            quote!(|#inputs: &[crate::plain::Input<'_>], _: &mut ::std::vec::Vec<::namegrad_core::NamedTensor>| #call)
        }
        false => {
            quote!(|#inputs: &[crate::plain::Input<'_>], #more: &mut ::std::vec::Vec<::namegrad_core::NamedTensor>| {
                let (result, #(#hidden),*) = #call?;
                #more.extend([#(#hidden),*]);
                Ok(result)
            })
        }
    };
    quote!(crate::tape::compute(&RECIPE, #inputs, &#kernel, #args))
}

/// The casts of an op whose function records it.
fn casts(row: &OpRow, renamed: &Renamed, op: &str) -> TokenStream {
    let name = &row.name;
    let (tensors, args) = (&renamed.tensors, &renamed.args);
    let refs: Vec<&Ident> = args.iter().collect();
    let then = quote!(self::#name(#(#tensors,)* #(#args),*));
    with_casts(&quote!(crate), op, row.tensors.iter().map(|tensor| tensor.kind).zip(tensors), &refs, &then)
}

/// Anomaly mode and observers look at the values of an op.
fn look(row: &OpRow, inputs: &TokenStream, op: &str, values: &[Ident]) -> TokenStream {
    let outputs = match row.outputs.form {
        Form::List => {
            let value = &values[0];
            quote!(&::namegrad_core::args::references(&#value))
        }
        _ => quote!(&[#(&#values),*]),
    };
    quote!(if crate::tape::is_looking() { crate::tape::nan::look(#op, &crate::plain::values(#inputs), #outputs); })
}

/// The return value of the method, from tensors in variables with these names.
pub(crate) fn result(row: &OpRow, outputs: &[&Ident]) -> TokenStream {
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
    fn new(row: &OpRow, how: &How) -> Renamed {
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

    fn parameters(&self, row: &OpRow, side: &Side) -> Vec<TokenStream> {
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

    /// The arguments of the op in core for a function that records it: plain values, and copies of arguments
    /// that the function needs.
    fn passed(&self, row: &OpRow) -> Vec<TokenStream> {
        let tensors = row.tensors.iter().zip(&self.tensors).map(|(tensor, name)| match tensor.kind {
            TensorKind::Optional => quote!(#name.map(crate::Tensor::value)),
            TensorKind::List => quote!(&crate::Tensor::values_of(#name)),
            _ => quote!(#name.value()),
        });
        let args = self.args.iter().map(|name| quote!(#name.clone()));
        tensors.chain(args).collect()
    }

    /// The values of an op on batches, whose function records it: the function is called with the batches.
    fn of_batches(&self, row: &OpRow, inputs: &TokenStream, op: &str, kernel: &Ident) -> TokenStream {
        let [given, of_slice, run, result] = ["given", "of_slice", "run", "result"].map(local);
        let tensors = row.tensors.iter().enumerate().map(|(at, tensor)| match tensor.kind {
            TensorKind::Optional => quote!(#given[#at].tensors().first().copied()),
            TensorKind::List => quote!(#given[#at].tensors()),
            _ => quote!(#given[#at].tensors()[0]),
        });
        let (name, args) = (&row.name, &self.args);
        let outputs: Vec<&Ident> = row.outputs.all().collect();
        let listed = match &row.outputs.form {
            Form::Struct(_) => quote!([#(#result.#outputs),*]),
            Form::Tuple => quote!({ let (#(#outputs),*) = #result; [#(#outputs),*] }),
            _ => quote!([#result]),
        };
        quote! {{
            let #of_slice = || {
                let (#(#outputs),*) = #kernel()?;
                Ok(crate::plain::listed([#(#outputs),*]))
            };
            let #run = |#given: &[crate::plain::Input<'_>]| {
                let #result = self::#name(#(#tensors,)* #(#args.clone()),*)?;
                Ok(crate::plain::listed(#listed))
            };
            let [#(#outputs),*] = crate::tape::as_many(crate::vmap::values(#op, #inputs, &#of_slice, &#run)?);
            (#(#outputs),*)
        }}
    }

    /// The arguments of the op in core for a closure that gets `inputs`. Those that formulas have `seen` are in
    /// a tuple.
    fn given(&self, row: &OpRow, seen: &[&Ident]) -> Vec<TokenStream> {
        let [saved, inputs] = ["saved", "inputs"].map(local);
        let tensors = row.tensors.iter().enumerate().map(|(at, tensor)| match tensor.kind {
            TensorKind::Optional => quote!(crate::plain::optional(#inputs, #at)),
            TensorKind::List => quote!(&crate::plain::values(&#inputs[#at..=#at])),
            _ => quote!(crate::plain::one(#inputs, #at)),
        });
        let args = self.args.iter().map(|name| match seen.iter().position(|arg| *arg == name) {
            Some(at) => {
                let at = Index::from(at);
                quote!(#saved.#at.clone())
            }
            None => quote!(#name.clone()),
        });
        tensors.chain(args).collect()
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

/// The methods of an elementwise op that is a static.
fn method_of_static(row: &OpRow, how: &How, side: &Side) -> Forms {
    let (name, op, returned) = (&row.name, static_path(row), side.returned(row));
    let scalars = row.args.iter().map(|arg| {
        let name = &arg.name;
        quote!(::namegrad_core::Scalar::from(#name))
    });
    let scalars = quote!(&[#(#scalars),*]);
    let saved = match how {
        How::Formulas(signature, gradients) => saved_args(signature, gradients),
        _ => Vec::new(),
    };
    let saved = saved.iter().map(|arg| Ident::new(&arg.to_string(), name.span()));
    let saved: Vec<Ident> = saved.collect();
    let args = match saved.is_empty() {
        true => quote!(::std::option::Option::None),
        false => quote!(::std::option::Option::Some(&(#(#saved,)*))),
    };
    let (x, written) = (&row.tensors[0].name, written());
    let body = |in_place: bool| match row.tensors.len() {
        1 => {
            let prepare = side.prepare(row, in_place);
            MethodBody::Own(match in_place {
                true => quote!(#prepare crate::tape::unary_(&#op, #written, #scalars, #args)),
                false if row.args.is_empty() => quote!(#prepare crate::tape::unary(&#op, #x)),
                false => quote!(#prepare crate::tape::unary_with(&#op, #x, #scalars, #args)),
            })
        }
        _ => {
            let run = if in_place { quote!(binary_) } else { quote!(binary) };
            MethodBody::Called { function: quote!(crate::tape::#run), first: quote!(&#op,) }
        }
    };
    let mut made = forms(row, side, &row.doc(side), &returned, &body(false), name);
    if let Some(name_) = &row.in_place {
        made.extend(forms(row, side, &in_place_doc(row, side), &returned, &body(true), name_));
    }
    made
}

/// The methods of a row.
fn method(row: &OpRow, table: &Ident, side: &Side, run: &TokenStream) -> Forms {
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
    let mut made = forms(row, side, &row.doc(side), &returned, &MethodBody::Own(value), name);
    let Some(name_) = &row.in_place else { return made };
    let (doc, prepare, text) = (in_place_doc(row, side), side.prepare(row, true), name_.to_string());
    let (others, written) = (&call[1..], written());
    let plain = side.passed(row);
    let plain = &plain[1..];
    let tensors = row.tensors.iter().skip(1).map(|tensor| (tensor.kind, &tensor.name));
    let inputs = inputs(tensors, &side.plain);
    let may_change_sizes = !row.by_element();
    let others_of = |names: &[&Ident]| -> Vec<TokenStream> {
        names
            .iter()
            .map(|name| match row.args.iter().any(|arg| arg.name == **name) {
                true => quote!(#name.clone()),
                false => quote!(#name),
            })
            .collect()
    };
    let others = others_of(others);
    let plain = plain.iter().zip(row.tensors.iter().skip(1).map(Some).chain(std::iter::repeat(None)));
    let plain = plain
        .map(|(passed, tensor)| if tensor.is_some() { quote!(#passed) } else { quote!(#passed.clone()) });
    let [own, buffer] = ["own", "buffer"].map(local);
    let value = quote! {
        #written.check_in_place(#text)?;
        #prepare
        crate::tape::in_place(
            #text,
            #written,
            #inputs,
            #may_change_sizes,
            &|#own: &crate::Tensor| #recorded::#name(#own #(, #others)*),
            &|#buffer: &mut ::namegrad_core::NamedTensor| #run::#name_(#buffer #(, #plain)*),
        )
    };
    made.extend(forms(row, side, &doc, &returned, &MethodBody::Own(value), name_));
    made
}
