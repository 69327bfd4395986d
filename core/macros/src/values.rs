//! The back end for plain values: methods of `NamedTensor`, and data about each op.

use crate::elements::{element, kernel_name, kernel_order, module_of_elements};
use crate::given::{Parameter, Side, written};
use crate::options::options_struct;
use crate::row::{Form, OpRow, OpTable, Tensor, TensorKind};
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote, quote_spanned};

/// The code for a table in core, without the macro that passes it to other crates.
pub(crate) fn table(table: &OpTable) -> TokenStream {
    let side = Side::values();
    let mut elements = TokenStream::new();
    let mut run = TokenStream::new();
    let mut methods = Forms::default();
    let mut options = TokenStream::new();
    for row in &table.rows {
        if let Some(body) = &row.body {
            elements.extend(element(row, body));
        }
        run.extend(functions(row, &side));
        methods.extend(method(row, &side));
        if row.has_options() {
            options.extend(options_struct(row, &side));
        }
    }
    let elements = module_of_elements(elements);
    let (name, heading) = (table.name.to_string(), &table.heading);
    let infos = table.rows.iter().map(|row| info(row, &name, &side));
    let count = table.rows.len();
    let (plain, methods) = (methods.module(), &methods.methods);
    quote! {
        #elements
        #plain
        /// The ops of this table on arguments that are looked up. Results are on the device of new tensors.
        #[doc(hidden)]
        pub mod run { use super::*; #run }
        /// The data about the ops of this table.
        pub static ROWS: [crate::ops::OpInfo; #count] = [#(#infos),*];
        #(#heading)*
        impl crate::NamedTensor { #methods }
        #[doc(hidden)]
        pub mod options { use super::*; #options }
    }
}

/// The parameters of a kernel, in the order of the row.
fn kernel_parameters(row: &OpRow, side: &Side) -> Vec<TokenStream> {
    let tensors = row.tensors.iter().map(|tensor| {
        let name = &tensor.name;
        match tensor.kind {
            TensorKind::Optional => quote!(#name: Option<&crate::NamedTensor>),
            TensorKind::List => quote!(#name: &[&crate::NamedTensor]),
            _ => quote!(#name: &crate::NamedTensor),
        }
    });
    let args = row.kernel_args().map(|arg| {
        let (name, ty) = (&arg.name, side.resolved(arg));
        quote!(#name: #ty)
    });
    tensors.chain(args).collect()
}

/// The op and its in-place form, with arguments that are already looked up.
fn functions(row: &OpRow, side: &Side) -> TokenStream {
    let (name, kernel, parameters) = (&row.name, kernel_name(&row.name), kernel_parameters(row, side));
    let names: Vec<&Ident> =
        row.tensors.iter().map(|tensor| &tensor.name).chain(row.kernel_args().map(|arg| &arg.name)).collect();
    let made = match row.outputs.count() {
        _ if row.outputs.form == Form::List => quote!(::std::vec::Vec<crate::NamedTensor>),
        1 => quote!(crate::NamedTensor),
        count => {
            let each = (0..count).map(|_| quote!(crate::NamedTensor));
            quote!((#(#each),*))
        }
    };
    let written = row.tensors.first().is_some_and(|first| first.kind == TensorKind::Written);
    let tensors: Vec<&Ident> = kernel_order(row).iter().map(|tensor| &tensor.name).collect();
    let scalars = row.args.iter().map(|arg| {
        let name = &arg.name;
        quote!(crate::Scalar::from(#name))
    });
    let scalars = quote!(&[#(#scalars),*]);
    let call = match (row.by_element(), written) {
        (true, _) => quote!(elements::#kernel.call(&[#(#tensors),*], #scalars)),
        (false, true) => {
            let (x, others) = (names[0], &names[1..]);
            quote! {
                let mut written = #x.clone();
                kernels::#name(&mut written #(, #others)*)?;
                Ok(written)
            }
        }
        (false, false) => quote_spanned!(name.span()=> kernels::#name(#(#names),*)),
    };
    let mut code = quote! {
        #[inline]
        #[track_caller]
        pub fn #name(#(#parameters),*) -> crate::Result<#made> { #call }
    };
    let Some(name_) = &row.in_place else { return code };
    let (x, others, more) = (names[0], &names[1..], &parameters[1..]);
    let text = name_.to_string();
    let call = match (row.by_element(), written) {
        (true, _) => {
            let others = &tensors[1..];
            quote!(elements::#kernel.call_in_place(#x, &[#(#others),*], #scalars))
        }
        (false, true) => quote!(kernels::#name(#x #(, #others)*).map_err(|error| error.of(#text))),
        (false, false) => quote!({
            let made = kernels::#name(#x #(, #others)*).map_err(|error| error.of(#text))?;
            #x.replace_with(#text, made).map(drop)
        }),
    };
    code.extend(quote! {
        #[inline]
        #[track_caller]
        pub fn #name_(#x: &mut crate::NamedTensor #(, #more)*) -> crate::Result<()> { #call }
    });
    code
}

/// A call of a kernel whose results are on the device of the inputs. The kernel of an elementwise op sees to
/// this itself.
fn on_device(row: &OpRow, op: &Ident, call: &TokenStream) -> TokenStream {
    if row.by_element() {
        return quote!(#call);
    }
    let all = row.tensors.iter().map(|Tensor { name, kind, .. }| match kind {
        TensorKind::Optional => quote!(#name.as_slice()),
        TensorKind::List => quote!(#name),
        _ => quote!(&[&*#name]),
    });
    let op = op.to_string();
    quote!({
        let _device = crate::OnDevice::of_inputs(#op, &[#(#all),*])?;
        #call
    })
}

/// The methods of a row.
fn method(row: &OpRow, side: &Side) -> Forms {
    let name = &row.name;
    let (prepare, call, returned) = (side.prepare(row, false), side.passed(row), side.returned(row));
    let outputs = row.outputs.all().collect::<Vec<_>>();
    let (assembled, kept, cast) = (side.assembled(row), &row.outputs.kept, side.cast_result(row));
    let run = on_device(row, name, &quote!(run::#name(#(#call),*)));
    let value = quote! {
        #prepare
        let (#(#outputs),*) = #run?;
        #(drop(#kept);)*
        #cast
        Ok(#assembled)
    };
    let mut made = forms(row, side, &row.doc(side), &returned, &MethodBody::Own(value), name);
    let Some(name_) = &row.in_place else { return made };
    let (doc, prepare, written) = (in_place_doc(row, side), side.prepare(row, true), written());
    let others = &call[1..];
    let run = on_device(row, name_, &quote!(run::#name_(#written #(, #others)*)));
    let value = quote! {
        #prepare
        #run?;
        Ok(#written)
    };
    made.extend(forms(row, side, &doc, &returned, &MethodBody::Own(value), name_));
    made
}

/// The doc of an in-place form.
pub(crate) fn in_place_doc(row: &OpRow, side: &Side) -> TokenStream {
    let first = format!(" [`{0}`](Self::{0}) in place.", row.name);
    let more = row.errors(side);
    let last = match side.is_core() {
        true => " After an error, the tensor is unchanged.",
        false => {
            " After an error, the tensor is unchanged. A leaf that requires a gradient is an error of kind `Autograd`."
        }
    };
    quote! { #[doc = #first] #(#[doc = #more])* #[doc = #last] }
}

/// The methods of rows, and the plain functions that they call.
#[derive(Default)]
pub(crate) struct Forms {
    pub(crate) methods: TokenStream,
    plain: TokenStream,
}

impl Forms {
    pub(crate) fn extend(&mut self, more: Forms) {
        self.methods.extend(more.methods);
        self.plain.extend(more.plain);
    }

    /// The module with the plain functions.
    pub(crate) fn module(&self) -> TokenStream {
        let plain = &self.plain;
        if plain.is_empty() {
            return quote!();
        }
        quote! {
            /// The plain functions behind generic methods. A method converts its arguments and calls one, so
            /// that its body is compiled once, and not for each type of argument in every crate.
            pub(crate) mod plain {
                use super::*;
                #plain
            }
        }
    }
}

/// The body of a method.
pub(crate) enum MethodBody {
    /// Statements. They have the first tensor of the row under its name, or in [`written`].
    Own(TokenStream),
    /// A call of this function, whose first arguments are given, with the arguments of the method.
    Called { function: TokenStream, first: TokenStream },
}

/// A method in its plain form and, if the row has options, in the form that takes them.
///
/// Both share the body. If no argument of the method is generic, it is the body of the method. Otherwise
/// it is in a plain function, and `sum (x; dim: Reduced, dtype: Cast)` becomes
///
/// ```ignore
/// pub fn sum(&self, dim: impl Into<Dims>) -> Result<Tensor> {
///     plain::sum(self, dim.into(), SumOptions::new())
/// }
/// pub fn sum_with(&self, dim: impl Into<Dims>, options: SumOptions) -> Result<Tensor> {
///     plain::sum(self, dim.into(), options)
/// }
/// mod plain {
///     pub fn sum(x: &Tensor, dim: Dims, options: SumOptions) -> Result<Tensor> { value }
/// }
/// ```
pub(crate) fn forms(
    row: &OpRow,
    side: &Side,
    doc: &TokenStream,
    returned: &TokenStream,
    body: &MethodBody,
    name: &Ident,
) -> Forms {
    let (core, parameters) = (&side.core, side.parameters(row));
    let in_place = row.in_place.as_ref() == Some(name) || row.is_in_place_only();
    let first = row.tensors.first().filter(|_| side.is_method(row)).map(|first| &first.name);
    let (tensor, written) = (&side.tensor, written());
    // The first tensor: how a method has it, how the body calls it, and how a plain function has it.
    let (receiver, bound, first, lifetime, returned) = match first {
        Some(_) if in_place => (
            quote!(&mut self,),
            quote!(let #written = self;),
            quote!(#written: &'w mut #tensor,),
            quote!(<'w>),
            [quote!(&mut #tensor), quote!(&'w mut #tensor)],
        ),
        Some(first) => (
            quote!(&self,),
            quote!(let #first = self;),
            quote!(#first: &#tensor,),
            quote!(),
            [returned.clone(), returned.clone()],
        ),
        None => (quote!(), quote!(), quote!(), quote!(), [returned.clone(), returned.clone()]),
    };
    let [returned, plain_returned] = returned;
    let is_generic = parameters.iter().any(|parameter| parameter.is_generic);
    let has_options = row.has_options() && !(in_place && row.casts_alone());
    let declared: Vec<TokenStream> = parameters.iter().map(Parameter::declared).collect();
    let passed: Vec<&TokenStream> = parameters.iter().map(|parameter| &parameter.passed).collect();
    let options_type = side.options_type(row);
    let options = has_options.then(|| quote!(options: #options_type,));
    let with = if has_options { row.with_name(in_place) } else { name.clone() };
    // If there is already a method with this name, the error is at the name in the row.
    let at = Span::call_site().located_at(name.span());
    let plain = quote_spanned!(at=> pub fn #name(#receiver #(#declared),*) -> #core::Result<#returned>);
    let with_signature = match has_options {
        true => quote!(pub fn #with(#receiver #(#declared,)* #options) -> #core::Result<#returned>),
        false => plain.clone(),
    };
    let text = name.to_string();
    let with_doc = match (has_options, side.shows_methods()) {
        (false, _) => doc.clone(),
        (true, methods) => {
            let link = if methods { format!("(Self::{text})") } else { String::new() };
            let first = format!(" [`{text}`]{link} with options.");
            let errors = row.errors(side);
            quote!(#[doc = #first] #(#[doc = #errors])*)
        }
    };
    // An in-place form uses this only if an argument needs it.
    let unused = in_place.then(|| quote!(#[allow(unused_variables)]));
    let path = side.options_path(row);
    let own = if receiver.is_empty() { quote!() } else { quote!(self,) };
    let mut made = Forms::default();
    let call = match (body, is_generic) {
        (MethodBody::Called { function, first }, _) => {
            made.methods = quote! {
                #with_doc
                #[inline]
                #[track_caller]
                #with_signature { #function(#first #own #(#passed),*) }
            };
            quote!()
        }
        (MethodBody::Own(value), true) => {
            let plains = parameters.iter().map(|Parameter { name, plain, .. }| quote!(#name: #plain));
            made.plain = quote! {
                #unused
                #[inline(never)]
                #[track_caller]
                pub(crate) fn #name #lifetime(#first #(#plains,)* #options) -> #core::Result<#plain_returned> {
                    #value
                }
            };
            let given = has_options.then(|| quote!(options));
            made.methods = quote! {
                #with_doc
                #[inline]
                #[track_caller]
                #with_signature { plain::#name(#own #(#passed,)* #given) }
            };
            quote!(plain::#name)
        }
        (MethodBody::Own(value), false) => {
            made.methods = quote! {
                #with_doc
                #unused
                #[track_caller]
                #with_signature { #bound #value }
            };
            match (side.is_method(row), side.methods) {
                (false, false) => quote!(#with),
                _ => quote!(Self::#with),
            }
        }
    };
    if has_options {
        made.methods.extend(quote! {
            #doc
            #[inline]
            #[track_caller]
            #plain { #call(#own #(#passed,)* #path::new()) }
        });
    }
    made.methods = at_row(made.methods, name, side);
    made
}

/// Tokens as if they were written at the name in the row, so that an error in a call shows that line, and not
/// the table and its macros.
pub(crate) fn at_row(tokens: TokenStream, name: &Ident, side: &Side) -> TokenStream {
    let span = side.written.map_or(name.span(), |written| name.span().resolved_at(written));
    if side.is_core() { tokens } else { at(tokens, span) }
}

fn at(tokens: TokenStream, span: Span) -> TokenStream {
    let moved = tokens.into_iter().map(|mut token| {
        if let TokenTree::Group(group) = &token {
            token = Group::new(group.delimiter(), at(group.stream(), span)).into();
        }
        token.set_span(span);
        token
    });
    moved.collect()
}

/// The data about an op.
pub(crate) fn info(row: &OpRow, table: &str, side: &Side) -> TokenStream {
    let core = &side.core;
    let (name, rule, doc) = (format!("{}{}", side.prefix, row.name), row.rule_text(), row.doc_lines());
    let doc: Vec<&str> = doc.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    let doc = doc.join("\n");
    let in_place = match row.in_place.as_ref().or(Some(&row.name).filter(|_| row.is_in_place_only())) {
        Some(name_) => {
            let name_ = name_.to_string();
            quote!(Some(#name_))
        }
        None => quote!(None),
    };
    let tensors = row.tensors.iter().map(|tensor| {
        let name = tensor.name.to_string();
        let kind = match tensor.kind {
            _ if row.takes_number(tensor) => quote!(Operand),
            TensorKind::Plain | TensorKind::Written => quote!(Tensor),
            TensorKind::Optional => quote!(Optional),
            TensorKind::List => quote!(List),
            TensorKind::Mask => quote!(Mask),
            TensorKind::Operand => quote!(Operand),
        };
        let (exact, meets) = (tensor.exact, row.meets(tensor, core));
        quote!(#core::ops::TensorInfo {
            name: #name, kind: #core::ops::TensorKind::#kind, exact: #exact, meets: #meets
        })
    });
    let args = row.args.iter().map(|arg| {
        let (name, ty) = (arg.name.to_string(), arg.ty.text());
        let of = arg.of.iter().map(Ident::to_string);
        let default = match &arg.default {
            Some(default) => {
                let text = default.to_string().replace(' ', "");
                quote!(Some(#text))
            }
            None if arg.ty.is("Cast") => quote!(Some("None")),
            None => quote!(None),
        };
        let (option, leads, meets) = (arg.is_option(), arg.leads, row.meets_of_arg(&arg.name, core));
        quote!(#core::ops::ArgInfo {
            name: #name, ty: #ty, of: &[#(#of),*], default: #default, option: #option, leads: #leads, meets: #meets
        })
    });
    let outputs = row.outputs.names.iter().map(Ident::to_string);
    let dtypes = dtypes(row);
    let (element, outcomes) = (row.by_element(), row.outcomes(core));
    quote! {
        #core::ops::OpInfo {
            name: #name,
            in_place: #in_place,
            table: #table,
            tensors: &[#(#tensors),*],
            args: &[#(#args),*],
            outputs: &[#(#outputs),*],
            by_element: #element,
            names: #outcomes,
            rule: #rule,
            dtypes: &[#(#core::Category::#dtypes),*],
            doc: #doc,
        }
    }
}

/// The classes of dtypes that a row takes.
fn dtypes(row: &OpRow) -> Vec<Ident> {
    let has = |class: &str| match &row.body {
        Some(body) => body.entry(class).is_some() || body.entry("any").is_some(),
        None => {
            row.classes.is_empty()
                || row.classes.iter().any(|own| match class {
                    "float" => own == "floats",
                    "int" => own == "integers",
                    _ => own == "bool",
                })
        }
    };
    // An elementwise op with only a float formula converts other dtypes to the default float, and a copy
    // takes what the other row takes.
    let rule =
        row.body.as_ref().and_then(|body| body.entry("dtypes")).map(ToString::to_string).unwrap_or_default();
    let only = |class: &str| match &row.body {
        Some(body) if body.entry("like").is_some() => true,
        Some(body) if rule.is_empty() && body.entry("int").is_none() && body.entry("boolean").is_none() => {
            true
        }
        Some(_) if class == "boolean" && rule.contains("BoolAsInt") => true,
        _ => has(class),
    };
    let classes = [("float", "Float"), ("int", "Integer"), ("boolean", "Bool")];
    classes.iter().filter(|(class, _)| only(class)).map(|(_, name)| format_ident!("{name}")).collect()
}
