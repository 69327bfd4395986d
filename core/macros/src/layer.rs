//! The back end for layers that call a function: `layer Softplus` in the row of `softplus` makes the struct,
//! its builder, `forward` and `Layer`. An argument that the function requires is an argument of `new`, an
//! option has a setter, an optional tensor is a buffer, and `training` is the mode of the layer.

use crate::given::Side;
use crate::row::{Arg, Form, Layer, OpRow, Setting, Tensor, TensorKind};
use crate::setters::misused;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

/// The types of arguments that `new` would have to convert with a possible error.
const FALLIBLE: [&str; 3] = ["Shape", "Indices", "NewNames"];

/// Checks that a layer can call the function of a row.
pub(crate) fn check(row: &OpRow) -> Result<(), &'static str> {
    let list = row.tensors.iter().any(|tensor| matches!(tensor.kind, TensorKind::List | TensorKind::Written));
    let fallible = row.args.iter().any(|arg| FALLIBLE.iter().any(|ty| arg.ty.is(ty)));
    match !row.layers.is_empty() && (list || fallible || row.outputs.form != Form::One) {
        true => Err("a layer takes and gives single tensors, and its arguments are stored without an error"),
        false => Ok(()),
    }
}

/// Checks that a row has no layer, which only functions have.
pub(crate) fn none(row: &OpRow) -> Result<(), &'static str> {
    if row.layers.is_empty() { Ok(()) } else { Err("only functions of namegrad-nn have layers") }
}

/// The layers of a row.
pub(crate) fn of_row(row: &OpRow, side: &Side) -> TokenStream {
    row.layers.iter().map(|layer| LayerArguments::new(row, layer, side).code()).collect()
}

/// The arguments of a layer by what becomes of them.
struct LayerArguments<'r> {
    row: &'r OpRow,
    side: &'r Side,
    name: &'r Ident,
    /// The tensors that `forward` takes.
    inputs: Vec<&'r Ident>,
    /// The optional tensors.
    weights: Vec<&'r Ident>,
    /// The arguments of `new`, with their checks.
    required: Vec<(&'r Arg, Option<&'r Ident>)>,
    options: Vec<&'r Arg>,
    fixed: Vec<(&'r Arg, &'r TokenStream)>,
    has_mode: bool,
}

impl<'r> LayerArguments<'r> {
    fn new(row: &'r OpRow, layer: &'r Layer, side: &'r Side) -> LayerArguments<'r> {
        let (weights, inputs): (Vec<&Tensor>, Vec<&Tensor>) =
            row.tensors.iter().partition(|tensor| tensor.kind == TensorKind::Optional);
        let names = |tensors: Vec<&'r Tensor>| tensors.into_iter().map(|tensor| &tensor.name).collect();
        let mut parts = LayerArguments {
            row,
            side,
            name: &layer.name,
            inputs: names(inputs),
            weights: names(weights),
            required: Vec::new(),
            options: Vec::new(),
            fixed: Vec::new(),
            has_mode: false,
        };
        for arg in &row.args {
            let setting =
                layer.settings.iter().find(|(name, _)| *name == arg.name).map(|(_, setting)| setting);
            match setting {
                Some(Setting::Fixed(value)) => parts.fixed.push((arg, value)),
                Some(Setting::Checked(check)) => parts.required.push((arg, Some(check))),
                Some(Setting::Required) => parts.required.push((arg, None)),
                None if arg.name == "training" => parts.has_mode = true,
                None if arg.is_option() => parts.options.push(arg),
                None => parts.required.push((arg, None)),
            }
        }
        parts
    }

    /// Whether it has nothing to store, such as `Relu`.
    fn is_unit(&self) -> bool {
        self.weights.is_empty() && self.required.is_empty() && self.options.is_empty() && !self.has_mode
    }

    fn code(&self) -> TokenStream {
        let (name, doc) = (self.name, self.doc());
        let inputs = &self.inputs;
        if self.is_unit() {
            let (text, call) = (name.to_string(), self.call());
            let forward =
                self.forward(quote!(#call.map_err(|error| error.of_layer(#text, &[#(#inputs.value()),*]))));
            return quote! {
                #doc
                #[derive(Clone, Copy, Debug, Default, crate::Module)]
                #[module(crate = crate, layer(#(#inputs),*))]
                pub struct #name;
                impl #name {
                    /// The layer.
                    pub fn new() -> #name {
                        #name
                    }
                    #forward
                }
            };
        }
        let (weights, stored) = (&self.weights, self.stored());
        let names: Vec<&Ident> = stored.iter().map(|arg| &arg.name).collect();
        let types: Vec<TokenStream> = stored.iter().map(|arg| self.field_type(arg)).collect();
        let mode = self.has_mode.then(|| quote!(training: crate::Training,));
        let (text, texts) = (name.to_string(), names.iter().map(|name| name.to_string()));
        let (made, builder) = (self.constructor(), self.builder());
        let getters = self.getters();
        let forward = {
            let (text, call) = (name.to_string(), self.call());
            let weights = weights
                .iter()
                .map(|weight| quote!(let #weight = self.#weight.as_ref().map(|weight| weight.tensor());));
            self.forward(quote! {
                self.path.run(#text, &[#(#inputs),*], &|_: &crate::Running| {
                    #(#weights)*
                    #call
                })
            })
        };
        quote! {
            #doc
            #[derive(Clone, crate::Module)]
            #[module(crate = crate, describe = #name::text, layer(#(#inputs),*))]
            pub struct #name {
                #(#weights: ::std::option::Option<crate::Buffer>,)*
                #(#[module(skip)] #names: #types,)*
                #mode
                path: crate::ModulePath,
            }
            impl #name {
                #made
                #getters
                #forward
                // Once, not in each of the three functions that call it.
                #[inline(never)]
                fn text(&self) -> ::std::string::String {
                    crate::layers::described(#text, &[#((#texts, &self.#names)),*])
                }
            }
            impl ::std::fmt::Debug for #name {
                fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    f.write_str(&self.text())
                }
            }
            #builder
        }
    }

    /// The arguments that the layer stores, in the order of the row.
    fn stored(&self) -> Vec<&'r Arg> {
        self.required.iter().map(|(arg, _)| *arg).chain(self.options.iter().copied()).collect()
    }

    /// The type of the field of an argument: what its function takes.
    fn field_type(&self, arg: &Arg) -> TokenStream {
        let core = &self.side.core;
        if arg.ty.is("Reduced") { quote!(#core::Dims) } else { self.side.ty(&arg.ty) }
    }

    /// `new`, which fails only if it checks an argument, `builder` and `Default`.
    fn constructor(&self) -> TokenStream {
        let (name, core, text) = (self.name, &self.side.core, self.name.to_string());
        let (mut parameters, mut values, mut checks) = (Vec::new(), Vec::new(), TokenStream::new());
        for (arg, check) in &self.required {
            let (own, (given, value)) = (&arg.name, self.side.setter(arg, &self.field_type(arg)));
            parameters.push(quote!(#own: #given));
            let (own_text, ty) = (own.to_string(), self.field_type(arg));
            match check {
                Some(check) => {
                    checks.extend(quote!(let #own: #ty = #value; #check(#text, #own_text, #own)?;));
                    values.push(quote!(#own));
                }
                None => values.push(quote!(#own: #value)),
            }
        }
        for arg in &self.options {
            let (own, default) = (&arg.name, self.side.default(arg));
            values.push(quote!(#own: #default));
        }
        let mode = self.has_mode.then(|| quote!(training: crate::Training::new(),));
        let weights = &self.weights;
        let layer = quote! {
            #name {
                #(#weights: ::std::option::Option::None,)*
                #(#values,)*
                #mode
                path: crate::ModulePath::new(),
            }
        };
        let doc = if self.has_builder() { " The layer with the default options." } else { " The layer." };
        let new = match checks.is_empty() {
            true => quote! {
                #[doc = #doc]
                pub fn new(#(#parameters),*) -> #name { #layer }
            },
            false => quote! {
                #[doc = #doc]
                ///
                /// # Errors
                #[doc = " [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) for a value out of range."]
                #[track_caller]
                pub fn new(#(#parameters),*) -> #core::Result<#name> {
                    #checks
                    Ok(#layer)
                }
            },
        };
        let builder = self.has_builder().then(|| {
            let (builder, given) =
                (format_ident!("{name}Builder"), self.required.iter().map(|(arg, _)| &arg.name));
            quote! {
                /// A builder, to change the options of [`new`](Self::new).
                pub fn builder(#(#parameters),*) -> #builder {
                    #builder(#name::new(#(#given),*))
                }
            }
        });
        quote!(#new #builder)
    }

    fn has_builder(&self) -> bool {
        let checked = self.required.iter().any(|(_, check)| check.is_some());
        !checked && (!self.options.is_empty() || !self.weights.is_empty())
    }

    /// The numbers given to `new`.
    fn getters(&self) -> TokenStream {
        let numbers = self.required.iter().filter(|(arg, _)| arg.ty.is("f64") || arg.ty.is("usize"));
        let getters = numbers.map(|(arg, _)| {
            let (name, ty, doc) =
                (&arg.name, self.field_type(arg), format!(" `{}` of [`new`](Self::new).", arg.name));
            quote! {
                #[doc = #doc]
                pub fn #name(&self) -> #ty { self.#name }
            }
        });
        getters.collect()
    }

    /// The builder, which is the layer with setters, and `Default` for a layer without arguments.
    fn builder(&self) -> TokenStream {
        let name = self.name;
        let default = self.required.is_empty().then(|| {
            quote! {
                impl ::std::default::Default for #name {
                    /// Same as [`new`](Self::new).
                    fn default() -> #name { #name::new() }
                }
            }
        });
        if !self.has_builder() {
            return quote!(#default);
        }
        let builder = format_ident!("{name}Builder");
        let doc = format!(" A builder for [`{name}`]; see [`{name}::builder`].");
        let (weights, tensor) = (&self.weights, &self.side.tensor);
        let weight_docs = weights.iter().map(|weight| format!(" Sets `{weight}`; the default is none."));
        let setters = self.options.iter().map(|arg| {
            let (own, (given, value)) = (&arg.name, self.side.setter(arg, &self.field_type(arg)));
            let default =
                arg.default.as_ref().map_or("None".into(), |default| default.to_string().replace(' ', ""));
            let doc = format!(" Sets `{own}`; the default is `{default}`.");
            quote! {
                #[doc = #doc]
                pub fn #own(mut self, #own: #given) -> #builder {
                    self.0.#own = #value;
                    self
                }
            }
        });
        // Each layer of a cloned builder has its own buffers.
        let own_buffers = weights.iter().map(|weight| {
            quote! {
                if let ::std::option::Option::Some(weight) = &mut self.0.#weight {
                    *weight = crate::Buffer::new(weight.tensor());
                }
            }
        });
        let own_buffers: TokenStream = own_buffers.collect();
        let mutable = (!weights.is_empty()).then(|| quote!(mut));
        let misused = misused(TokenStream::new(), &quote!(#builder), &quote!(#name), false);
        quote! {
            #default
            #misused
            #[doc = #doc]
            #[derive(Clone, Debug)]
            pub struct #builder(#name);
            impl #builder {
                #(
                    #[doc = #weight_docs]
                    pub fn #weights(mut self, #weights: &#tensor) -> #builder {
                        self.0.#weights = ::std::option::Option::Some(crate::Buffer::new(#weights.clone()));
                        self
                    }
                )*
                #(#setters)*
                /// The layer. Options that do not fit an input are errors of `forward`.
                pub fn build(#mutable self) -> #name {
                    #own_buffers
                    self.0
                }
            }
        }
    }

    /// The call of the function.
    fn call(&self) -> TokenStream {
        let (row, side) = (self.row, self.side);
        let value = |arg: &Arg| {
            let name = &arg.name;
            let fixed = self.fixed.iter().find(|(fixed, _)| fixed.name == *name);
            match fixed {
                Some((_, value)) => {
                    let ty = self.field_type(arg);
                    quote!(::std::convert::Into::<#ty>::into(#value))
                }
                None if *name == "training" && self.has_mode => quote!(self.training.get()),
                None => quote!(::std::clone::Clone::clone(&self.#name)),
            }
        };
        let (leading, others): (Vec<&Arg>, Vec<&Arg>) =
            row.args.iter().filter(|arg| !arg.is_option()).partition(|arg| arg.leads);
        let inputs = self.inputs.iter().map(|input| quote!(#input));
        let given: Vec<TokenStream> =
            leading.into_iter().map(value).chain(inputs).chain(others.into_iter().map(value)).collect();
        if !row.has_options() {
            let name = &row.name;
            return quote!(super::#name(#(#given),*));
        }
        let (tensors, args) = row.options();
        let (names, values) = (args.iter().map(|arg| &arg.name), args.iter().map(|arg| value(arg)));
        let tensors = tensors.iter().map(|tensor| &tensor.name);
        let (with, options, core) = (row.with_name(false), row.options_name(), &side.core);
        let path = if side.local_types { quote!(#options) } else { quote!(#core::options::#options) };
        quote! {
            super::#with(#(#given,)* #path {
                #(#tensors: #tensors.as_ref().map(::std::borrow::Cow::Borrowed),)*
                #(#names: #values,)*
            })
        }
    }

    fn forward(&self, value: TokenStream) -> TokenStream {
        let (inputs, core, tensor) = (&self.inputs, &self.side.core, &self.side.tensor);
        let doc = format!(" Those of [`{0}`](super::{0}).", self.row.name);
        quote! {
            /// The output.
            ///
            /// # Errors
            #[doc = #doc]
            #[inline(never)] // not once more in `Layer::forward`
            #[track_caller]
            pub fn forward(&self, #(#inputs: &#tensor),*) -> #core::Result<#tensor> { #value }
        }
    }

    /// The doc: how the function starts, its shapes and source, and where an example is.
    fn doc(&self) -> TokenStream {
        let function = format!("[`F::{0}`](crate::functional::{0})", self.row.name);
        let mut lines = self.row.doc_lines();
        for line in &mut lines {
            *line = line.replace("](Self::", "](namegrad_autograd::Tensor::");
        }
        let sections = sections(lines);
        let mut doc: Vec<String> = sections.first().map(|(_, lines)| lines.clone()).unwrap_or_default();
        let fixed: Vec<String> = self
            .fixed
            .iter()
            .map(|(arg, value)| format!("`{}` `{}`", arg.name, value.to_string().replace(' ', "")))
            .collect();
        let fixed = if fixed.is_empty() { String::new() } else { format!(", with {}", fixed.join(" and ")) };
        doc.extend([String::new(), format!(" {function} as a layer{fixed}."), String::new()]);
        let section = |name: &str| sections.iter().find(|(heading, _)| heading == name);
        doc.push(" # Shapes".into());
        match section("Shapes") {
            Some((_, lines)) => doc.extend(lines.clone()),
            None => doc.extend(self.shapes()),
        }
        let buffers: Vec<String> = self.weights.iter().map(|weight| format!("`{weight}`")).collect();
        let buffers = match buffers.is_empty() {
            true => String::new(),
            false => {
                format!(" If given, {} are buffers, which are saved with the model.", buffers.join(" and "))
            }
        };
        if let Some((_, lines)) = section("Source") {
            doc.extend([String::new(), " # Source".into()]);
            doc.extend(lines.clone());
        }
        doc.extend([String::new(), " # Parameters".into(), format!(" None.{buffers}"), String::new()]);
        doc.extend([" # Examples".into(), format!(" {function} has an example.")]);
        quote!(#(#[doc = #doc])*)
    }

    /// The shapes by the name rule, for a function whose doc does not say them.
    fn shapes(&self) -> [String; 2] {
        let inputs: Vec<String> = self.inputs.iter().map(|input| format!("`{input}`")).collect();
        let (inputs, rule) = (inputs.join(", "), self.row.rule_text());
        let reduced = self.options.iter().any(|arg| arg.name == "reduction");
        let made =
            if self.inputs.len() == 1 { "the dims of the input" } else { "the broadcast dims of the inputs" };
        match (rule.as_str(), reduced) {
            ("keeps input names", _) => [format!(" - {inputs}: any dims"), format!(" - result: {made}")],
            ("unifies names from inputs", true) => [
                format!(" - {inputs}: the same dims, or dims that broadcast"),
                " - result: one number, or without reduction the dims of all".into(),
            ],
            (rule, true) => [
                format!(" - {inputs}: dims as the function takes them"),
                format!(" - result: one number; without reduction, it {rule}"),
            ],
            (rule, false) => {
                [format!(" - {inputs}: dims as the function takes them"), format!(" - result: {rule}")]
            }
        }
    }
}

/// The sections of a doc by their headings; the first has none.
fn sections(lines: Vec<String>) -> Vec<(String, Vec<String>)> {
    let (mut sections, mut fenced) = (vec![(String::new(), Vec::new())], false);
    for line in lines {
        fenced ^= line.trim_start().starts_with("```");
        match line.strip_prefix(" # ").filter(|_| !fenced) {
            Some(heading) => sections.push((heading.to_string(), Vec::new())),
            None => sections.last_mut().expect("there is a first").1.push(line),
        }
    }
    sections
}
