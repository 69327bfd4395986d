//! The back end for the tape: methods of `Tensor`, each of which computes the value in core and records its
//! derivative, and the entries of the registry.

use crate::autocast::with_casts;
use crate::chain;
use crate::derivative::{Derivatives, Gradient, How, Signature, first_use};
use crate::given::{Side, written};
use crate::row::{Form, Row, Table, Tensor, TensorKind};
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
    let look = look(row, &renamed, &text, &values);
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
            let one =
                row.outputs.names.len() == 1 && gradients.iter().all(|gradient| gradient.inputs.len() == 1);
            if one && is_plain(row, gradients) {
                let value = &values[0];
                let record = formulas(&text, signature, gradients, derivatives, value);
                quote!(#refusals let #value = #run::#name(#(#computed),*)?; #record)
            } else {
                let recorded = match one {
                    true => edges(row, &text, signature, gradients, derivatives, side, &values),
                    false => joint(row, &text, signature, gradients, derivatives, side, &values),
                };
                quote!(#refusals #compute #recorded)
            }
        }
    };
    let casts = {
        let tensors = row.tensors.iter().map(|tensor| tensor.kind).zip(&renamed.tensors);
        let (tensor_names, args) = (&renamed.tensors, &renamed.args);
        with_casts(&quote!(crate), &text, tensors, &quote!(self::#name(#(#tensor_names,)* #(#args),*)))
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
fn look(row: &Row, renamed: &Renamed, op: &str, values: &[Ident]) -> TokenStream {
    if row.outputs.form == Form::Truth {
        return quote!();
    }
    let inputs = row.tensors.iter().zip(&renamed.tensors).map(|(tensor, name)| match tensor.kind {
        TensorKind::Optional => quote!(crate::plain::Input::Optional(#name)),
        TensorKind::List => quote!(crate::plain::Input::List(#name)),
        _ => quote!(crate::plain::Input::One(#name)),
    });
    let outputs = match row.outputs.form {
        Form::List => {
            let value = &values[0];
            quote!(&#value.iter().collect::<::std::vec::Vec<_>>())
        }
        _ => quote!(&[#(&#values),*]),
    };
    quote!(if crate::tape::is_looking() { crate::tape::nan::look(#op, &crate::plain::values(&[#(#inputs),*]), #outputs); })
}

/// The return value of the method, from tensors in variables with these names.
fn result(row: &Row, outputs: &[&Ident]) -> TokenStream {
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

/// How an argument is saved, and how a formula sees it.
fn args_of(row: &Row, gradient: &Gradient, side: &Side) -> (TokenStream, TokenStream) {
    let mut keep = TokenStream::new();
    let mut see = TokenStream::new();
    for name in &gradient.args {
        let Some(arg) = row.args.iter().find(|arg| arg.name == *name) else { continue };
        let ty = side.ty(&arg.ty);
        keep.extend(quote!(let #name = #name.clone();));
        see.extend(quote!(let #name = <#ty as ::namegrad_core::Argument>::view(&#name);));
    }
    (keep, see)
}

/// The kind of the tensor that a signature calls `name`; `None` if `name` is not a tensor.
fn kind_of(row: &Row, signature: &Signature, name: &Ident) -> Option<TensorKind> {
    let at = signature.tensors.iter().position(|tensor| tensor == name);
    at.map(|at| row.tensors[at].kind)
}

/// How a formula sees a saved value. An output that the op does not return is saved as a constant.
fn see(kept: &Ident, is_constant: bool, kind: Option<TensorKind>, cx: &Ident) -> TokenStream {
    match (is_constant, kind) {
        (true, _) => quote!(let #kept = &crate::Tensor::constant(#kept.clone());),
        (false, Some(TensorKind::Optional)) => quote! {
            let #kept = #kept.as_ref().map(|each| each.get(#cx));
            let #kept = #kept.as_ref();
        },
        (false, _) => quote!(let #kept = &#kept.get(#cx);),
    }
}

/// The gradient when it is not differentiated again, if there is a faster formula for it.
fn fused(gradient: &Gradient) -> Option<TokenStream> {
    gradient.fused.as_ref().map(|fused| quote!(if !crate::is_grad_enabled() { return Ok(#fused); }))
}

/// Whether [`formulas`] can record an op: it has tensors alone, and its gradients see few of them.
fn is_plain(row: &Row, gradients: &[Gradient]) -> bool {
    let listed = |tensor: &Tensor| matches!(tensor.kind, TensorKind::Optional | TensorKind::List);
    let small = |gradient: &Gradient| gradient.args.is_empty() && gradient.kept.len() <= 3;
    row.outputs.all().count() == 1 && !row.tensors.iter().any(listed) && gradients.iter().all(small)
}

/// The record of a plain op: a table of formulas, which one function reads for all ops.
fn formulas(
    op: &str,
    signature: &Signature,
    gradients: &[Gradient],
    derivatives: &Derivatives,
    value: &Ident,
) -> TokenStream {
    let (g, cx) = (&derivatives.g, &derivatives.cx);
    let tensors = &signature.tensors;
    // The output comes after the inputs.
    let place = |name: &Ident| tensors.iter().position(|tensor| tensor == name).unwrap_or(tensors.len());
    let each = gradients.iter().map(|gradient| {
        let (kept, formula, fused) = (&gradient.kept, &gradient.formula, fused(gradient));
        let (of, places) = (place(&gradient.inputs[0]), kept.iter().map(place));
        let see = (!kept.is_empty())
            .then(|| quote!(let [#(#kept),*] = kept else { ::std::unreachable!("as many as are listed") };));
        quote!(crate::tape::Formula {
            of: #of,
            kept: &[#(#places),*],
            gradient: {
                fn gradient(
                    #g: &crate::Tensor,
                    kept: &[crate::Tensor],
                    #cx: &crate::Cx<'_>,
                ) -> ::namegrad_core::Result<crate::Tensor> {
                    #see
                    #fused
                    // Of this type, so that a missing `?` is an error at the formula.
                    let gradient: crate::Tensor = #formula;
                    Ok(gradient)
                }
                gradient
            },
        })
    });
    quote! {
        const FORMULAS: &[crate::tape::Formula] = &[#(#each),*];
        Ok(crate::tape::record(#op, &[#(#tensors),*], #value, FORMULAS))
    }
}

/// One output, and a gradient for each input.
fn edges(
    row: &Row,
    op: &str,
    signature: &Signature,
    gradients: &[Gradient],
    derivatives: &Derivatives,
    side: &Side,
    values: &[Ident],
) -> TokenStream {
    let (g, cx, y) = (&derivatives.g, &derivatives.cx, &signature.outputs[0]);
    let value = &values[0];
    let hidden = |kept: &Ident| {
        signature.outputs.iter().skip(1).position(|output| output == kept).map(|at| &values[at + 1])
    };
    let pushed = gradients.iter().map(|gradient| {
        let input = &gradient.inputs[0];
        let tracked = match kind_of(row, signature, input) {
            Some(TensorKind::Optional) => quote!(#input.and_then(|each| each.tracked())),
            _ => quote!(#input.tracked()),
        };
        let (keep_args, see_args) = args_of(row, gradient, side);
        // An optional input is there in its own gradient.
        let is_optional = matches!(kind_of(row, signature, input), Some(TensorKind::Optional));
        let present = (is_optional && gradient.kept.contains(input))
            .then(|| quote!(let #input = #input.expect("it requires a gradient");));
        let kind = |kept: &Ident| kind_of(row, signature, kept).filter(|_| kept != input);
        let keep = gradient.kept.iter().map(|kept| match (hidden(kept), kind(kept)) {
            (Some(value), _) => quote!(let #kept = #value.clone();),
            (None, Some(TensorKind::Optional)) => quote!(let #kept = #kept.map(crate::op::Keep::keep);),
            (None, _) => quote!(let #kept = crate::op::Keep::keep(#kept);),
        });
        let see = gradient.kept.iter().map(|kept| see(kept, hidden(kept).is_some(), kind(kept), cx));
        let keeps = !gradient.kept.is_empty();
        let formula = &gradient.formula;
        let fused = fused(gradient);
        quote! {
            if let Some(into) = #tracked {
                #present
                #(#keep)*
                #keep_args
                let gradient = move |#g: &crate::Tensor, #cx: &crate::Cx<'_>| {
                    #(#see)*
                    #see_args
                    #fused
                    // Of this type, so that a missing `?` is an error at the formula.
                    let gradient: crate::Tensor = #formula;
                    Ok(gradient)
                };
                crate::tape::add_edge(&mut edges, into, #keeps, ::std::sync::Arc::new(gradient));
            }
        }
    });
    quote! {
        let #y = &#value;
        let mut edges = crate::tape::Edges::new();
        #(#pushed)*
        Ok(crate::op::Op::made(#op, #value, edges))
    }
}

/// Several outputs, or a joint gradient of several inputs: all in one closure.
fn joint(
    row: &Row,
    op: &str,
    signature: &Signature,
    gradients: &[Gradient],
    derivatives: &Derivatives,
    side: &Side,
    values: &[Ident],
) -> TokenStream {
    let (g, cx) = (&derivatives.g, &derivatives.cx);
    let returned = row.outputs.names.len();
    let count = signature.tensors.len();
    let kind = |name: &Ident| kind_of(row, signature, name);
    let inputs = signature.tensors.iter().map(|name| match kind(name) {
        Some(TensorKind::Optional) => quote!(#name),
        _ => quote!(::std::option::Option::Some(#name)),
    });
    let place = |name: &Ident| signature.tensors.iter().position(|tensor| tensor == name).unwrap_or(0);
    let tracked = |name: &Ident| match kind(name) {
        Some(TensorKind::Optional) => quote!(#name.is_some_and(|each| each.tracked().is_some())),
        _ => quote!(#name.tracked().is_some()),
    };
    let mut keeps = TokenStream::new();
    let mut parts = TokenStream::new();
    for (number, gradient) in gradients.iter().enumerate() {
        let bundle = format_ident!("kept_{number}");
        let wanted: Vec<TokenStream> = gradient.inputs.iter().map(tracked).collect();
        let places: Vec<usize> = gradient.inputs.iter().map(place).collect();
        let keep = gradient.kept.iter().map(|kept| {
            let output = signature.outputs.iter().position(|output| output == kept);
            match (output, kind(kept)) {
                (Some(at), _) if at < returned && returned > 1 => {
                    let value = &values[at];
                    quote!(crate::op::Kept::output_at(#at, &#value))
                }
                (Some(at), _) if at < returned => {
                    let value = &values[at];
                    quote!(crate::op::Kept::output(&#value))
                }
                (Some(at), _) => {
                    let value = &values[at];
                    quote!(#value.clone())
                }
                (None, Some(TensorKind::Optional)) => quote!(#kept.map(crate::op::Kept::input)),
                _ => quote!(crate::op::Kept::input(#kept)),
            }
        });
        let args = &gradient.args;
        let (_, see_args) = args_of(row, gradient, side);
        let names: Vec<&Ident> = gradient.kept.iter().chain(args).collect();
        let keep_args = args.iter().map(|arg| quote!(#arg.clone()));
        keeps.extend(quote! {
            let #bundle = if #(#wanted)||* { ::std::option::Option::Some((#(#keep,)* #(#keep_args,)*)) } else { ::std::option::Option::None };
        });
        let see = gradient.kept.iter().map(|kept| {
            let is_constant = signature.outputs.iter().skip(returned).any(|output| output == kept);
            see(kept, is_constant, kind(kept), cx)
        });
        let formula = &gradient.formula;
        let wants = Ident::new("wants", g.span());
        let of = |formula: &TokenStream| match places.len() {
            1 => quote!([::std::option::Option::Some(#formula)]),
            _ => quote!(#formula),
        };
        let (length, plain) = (places.len(), of(formula));
        let value = match gradient.fused.as_ref().map(of) {
            Some(fused) => quote!(if crate::is_grad_enabled() { #plain } else { #fused }),
            None => plain,
        };
        let texts = [Some(formula), gradient.fused.as_ref()];
        let given = signature.outputs.iter().take(returned).enumerate().filter_map(|(at, output)| {
            let name = Ident::new(&format!("{g}_{output}"), g.span());
            let used = texts.iter().flatten().any(|text| first_use(text, &name).is_some());
            (returned > 1 && used).then(|| quote!(let #name = &#cx.output_gradient(#at)?;))
        });
        parts.extend(quote! {
            let #wants = [#(#cx.wants(#places)),*];
            if let (::std::option::Option::Some((#(#names,)*)), true) = (&#bundle, #wants.contains(&true)) {
                #(#see)*
                #see_args
                #(#given)*
                let found: [::std::option::Option<crate::Tensor>; #length] = #value;
                for (place, gradient) in [#(#places),*].into_iter().zip(found) {
                    all[place] = gradient;
                }
            }
        });
    }
    let visible = &values[..returned];
    let (ty, made) = match visible {
        [value] => (quote!(crate::Tensor), quote!(crate::op::Op::new(#op, #value))),
        _ => (
            quote!([::std::option::Option<crate::Tensor>]),
            quote!(crate::op::Op::with_outputs(#op, ::std::vec![#(#visible),*])),
        ),
    };
    let refs: Vec<&Ident> = visible.iter().collect();
    let result = result(row, &refs);
    let taken = match visible {
        [value] => quote!(let #value = made.output();),
        _ => quote! {
            let mut made = made.into_iter();
            #(let #visible = made.next().expect("as many outputs as values");)*
        },
    };
    quote! {
        #keeps
        let inputs: [::std::option::Option<&crate::Tensor>; #count] = [#(#inputs),*];
        let made = #made.inputs(&inputs, move |#g: &#ty, #cx: &crate::Cx<'_>| {
            let mut all: ::std::vec::Vec<::std::option::Option<crate::Tensor>> = ::std::vec![None; #count];
            #parts
            Ok(all)
        });
        #taken
        Ok(#result)
    }
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
    let (maybe, given): (Vec<&Tensor>, Vec<&Tensor>) =
        row.tensors.iter().partition(|tensor| tensor.kind == TensorKind::Optional);
    let [maybe, given] = [maybe, given].map(|tensors| tensors.into_iter().map(|tensor| &tensor.name));
    let end = if row.by_element() { quote!(assign_made) } else { quote!(become_made) };
    let value = quote! {
        #written.check_in_place(#text)?;
        #prepare
        if crate::tape::follows(&[#(#given),*]) #(|| #maybe.is_some_and(|each| each.tracked().is_some()))* {
            // In-place ops keep the dtype of what they write to.
            let _off = crate::autocast::Off::enter();
            let made = #recorded::#name(#first #(, #others)*);
            return #written.#end(#text, made);
        }
        let done = #run::#name_(#written.in_buffer() #(, #plain)*);
        #written.written(done)
    };
    made.extend(forms(row, side, &doc, &returned, &value, name_));
    made
}

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
pub(crate) fn entry(row: &Row, how: &How, side: &Side, info: &TokenStream) -> TokenStream {
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
    let call = by_name(row, side, false);
    let in_place = match row.in_place.is_some() || row.is_in_place_only() {
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
            call: #call,
            call_in_place: #in_place,
        },
    }
}

/// The function that calls the method with named arguments. It is cold, so that the method is not inlined
/// into it.
pub(crate) fn by_name(row: &Row, side: &Side, in_place: bool) -> TokenStream {
    let method = side.is_method(row);
    let mut taken = TokenStream::new();
    for (at, tensor) in row.tensors.iter().enumerate().skip(usize::from(in_place)) {
        let name = &tensor.name;
        taken.extend(match tensor.kind {
            TensorKind::Optional => quote!(let #name = call.optional(#at)?;),
            TensorKind::List => quote!(let #name = &call.list(#at)[..];),
            _ => quote!(let #name = call.tensor(#at)?;),
        });
    }
    for tensor in row.options().0 {
        let name = &tensor.name;
        taken.extend(quote!(let #name = #name.map(::std::borrow::Cow::Borrowed);));
    }
    let casts_alone = in_place && row.casts_alone();
    for arg in &row.args {
        let (name, text, ty) = (&arg.name, arg.name.to_string(), side.ty(&arg.ty));
        if casts_alone && arg.ty.is("Cast") {
            continue;
        }
        taken.extend(match side.default(arg) {
            // Not `unwrap_or_else`, which would be compiled for each argument.
            Some(default) => quote! {
                let #name: #ty = match call.given(#text)? {
                    ::std::option::Option::Some(given) => given,
                    ::std::option::Option::None => #default,
                };
            },
            None => quote!(let #name: #ty = call.arg(#text)?;),
        });
    }
    let skip = usize::from(method);
    let tensors = row.tensors.iter().skip(skip).filter(|tensor| tensor.kind != TensorKind::Optional);
    let tensors = tensors.map(|tensor| {
        let name = &tensor.name;
        quote!(#name)
    });
    let args = |leads: bool| {
        let args = row.args.iter().filter(move |arg| !arg.is_option() && arg.leads == leads);
        args.map(|arg| {
            let name = &arg.name;
            // Methods take this as a slice.
            if arg.ty.is("Indices") { quote!(&#name.0) } else { quote!(#name) }
        })
    };
    let passed: Vec<TokenStream> = args(true).chain(tensors).chain(args(false)).collect();
    let (options, fields) = (row.options_name(), row.options());
    let fields = fields.0.iter().map(|tensor| &tensor.name).chain(fields.1.iter().map(|arg| &arg.name));
    let path = if side.local_types { quote!(#options) } else { quote!(::namegrad_core::options::#options) };
    let with = row.with_name(in_place);
    let name = match (&row.in_place, in_place) {
        (Some(name_), true) => name_,
        _ => &row.name,
    };
    let called = match row.has_options() && !casts_alone {
        true => quote!(#with(#(#passed,)* #path { #(#fields),* })),
        false => quote!(#name(#(#passed),*)),
    };
    let (core, tensor, registry) = (&side.core, &side.tensor, &side.registry);
    // Most ops are functions of one or two tensors. Their common code is compiled once.
    let given: Vec<&Ident> = row.tensors.iter().map(|tensor| &tensor.name).collect();
    let listed = |tensor: &Tensor| matches!(tensor.kind, TensorKind::Optional | TensorKind::List);
    let alike = row.args.is_empty() && !row.tensors.iter().any(listed);
    let shared = match given.len() {
        1 if alike => Some(quote!(One)),
        2 if alike => Some(quote!(Two)),
        _ => None,
    };
    if in_place {
        if let Some(shared) = shared {
            let (x, others) = (given[0], &given[1..]);
            return quote!(#registry::InPlace::#shared({
                #[cold]
                fn by_name<'x>(#x: &'x mut #tensor, #(#others: &#tensor),*) -> #core::Result<&'x mut #tensor> {
                    #x.#called
                }
                by_name
            }));
        }
        return quote!(#registry::InPlace::Any({
            #[cold]
            fn by_name(x: &mut #tensor, call: &#registry::Call<'_>) -> #core::Result<()> {
                #taken
                x.#called.map(drop)
            }
            by_name
        }));
    }
    let cold = |body: TokenStream| {
        quote!(#registry::Caller::Any({
            #[cold]
            fn by_name(call: &#registry::Call<'_>) -> #core::Result<::std::vec::Vec<#tensor>> { #body }
            by_name
        }))
    };
    if row.is_in_place_only() {
        let x = &row.tensors[0].name;
        return cold(quote! {
            #taken
            let mut written = #x.to_write();
            written.#called?;
            ::std::result::Result::Ok(::std::vec![written])
        });
    }
    let called = match row.tensors.first().filter(|_| method) {
        Some(first) => {
            let first = &first.name;
            quote!(#first.#called)
        }
        None if side.methods => quote!(crate::Tensor::#called),
        None => called,
    };
    if let (Some(shared), Form::One | Form::Truth) = (shared, &row.outputs.form) {
        return quote!(#registry::Caller::#shared({
            #[cold]
            fn by_name(#(#given: &#tensor),*) -> #core::Result<#tensor> { #called }
            by_name
        }));
    }
    let names = &row.outputs.names;
    let listed = match &row.outputs.form {
        Form::One | Form::Truth => quote!(::std::vec![made]),
        Form::List => quote!(made),
        Form::Tuple => quote!({
            let (#(#names),*) = made;
            ::std::vec![#(#names),*]
        }),
        Form::Struct(_) => quote!(::std::vec![#(made.#names),*]),
    };
    cold(quote! {
        #taken
        let made = #called?;
        ::std::result::Result::Ok(#listed)
    })
}
