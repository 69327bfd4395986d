//! The back end for plain values: methods of `NamedTensor`, elementwise kernels, option structs, and data
//! about each op.

use crate::given::{Parameter, Side, written};
use crate::row::{Body, Form, Row, Table, Tensor, TensorKind};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};

/// The code for a table in core, without the macro that passes it to other crates.
pub(crate) fn table(table: &Table) -> TokenStream {
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
    let (plain, methods) = (methods.module(), &methods.methods);
    quote! {
        #elements
        #plain
        /// The ops of this table on arguments that are looked up: what methods and derivatives call.
        #[doc(hidden)]
        pub mod run { use super::*; #run }
        /// The data about the ops of this table.
        pub const ROWS: &[crate::ops::OpInfo] = &[#(#infos),*];
        #(#heading)*
        impl crate::NamedTensor { #methods }
        #[doc(hidden)]
        pub mod options { use super::*; #options }
    }
}

/// Elementwise kernels that are not ops: a static for each, and a function of tensors that calls it.
pub(crate) fn kernels(rows: &[Row]) -> TokenStream {
    let elements = rows.iter().filter_map(|row| Some(element(row, row.body.as_ref()?))).collect();
    let elements = module_of_elements(elements);
    let functions = rows.iter().map(|row| {
        let (name, docs, kernel) = (&row.name, &row.docs, kernel_name(&row.name));
        let inputs: Vec<&Ident> = row.tensors.iter().map(|tensor| &tensor.name).collect();
        let args: Vec<&Ident> = row.args.iter().map(|arg| &arg.name).collect();
        let types = row.args.iter().map(|arg| Side::values().resolved(arg));
        quote! {
            #(#docs)*
            #[allow(dead_code)] // some kernels are used only by other kernels
            #[track_caller]
            pub fn #name(#(#inputs: &crate::NamedTensor,)* #(#args: #types),*) -> crate::Result<crate::NamedTensor> {
                elements::#kernel.call(&[#(#inputs),*], &[#(crate::Scalar::from(#args)),*])
            }
        }
    });
    quote! { #elements #(#functions)* }
}

fn module_of_elements(elements: TokenStream) -> TokenStream {
    if elements.is_empty() {
        return elements;
    }
    quote! {
        /// The kernels of elementwise rows.
        #[doc(hidden)]
        pub mod elements {
            use super::*;
            #[allow(unused_imports)] // not every table has floats, integers and rules of dtypes
            use crate::cpu::{integer::Integer, math::Real, pointwise as cpu};
            #[allow(unused_imports)]
            use crate::ops::by_element::{Dtypes, Kernel};
            #elements
        }
    }
}

/// The static with the kernel of an op: `SOFTPLUS`. It is in upper case so that it cannot clash with the name
/// of an argument, which would be an error where that argument is a parameter.
pub(crate) fn kernel_name(op: &Ident) -> Ident {
    Ident::new(&op.to_string().to_uppercase(), op.span())
}

/// The tensors in the order in which an elementwise kernel gets them: a mask is never first.
fn kernel_order(row: &Row) -> Vec<&Tensor> {
    let mut tensors: Vec<&Tensor> = row.tensors.iter().collect();
    if row.by_element() && tensors.first().is_some_and(|first| first.kind == TensorKind::Mask) {
        tensors.swap(0, 1);
    }
    tensors
}

/// The kernel of an elementwise row, whose loops contain the formulas.
fn element(row: &Row, body: &Body) -> TokenStream {
    let (name, text) = (kernel_name(&row.name), row.name.to_string());
    let truth = row.outputs.form == Form::Truth;
    let mask = kernel_order(row).iter().position(|tensor| tensor.kind == TensorKind::Mask);
    let mask = mask.map_or(quote!(None), |at| quote!(Some(#at)));
    let mut fields = TokenStream::new();
    if let Some(like) = body.like().map(|op| kernel_name(&op)) {
        fields.extend(quote! {
            // The loops write the type that the other row says.
            assert!(kernel.to_bool == #like.to_bool);
            kernel.float = #like.float;
            kernel.int = #like.int;
            kernel.boolean = #like.boolean;
            kernel.any = #like.any;
            kernel.dtypes = #like.dtypes;
        });
    }
    for (entry, value) in &body.entries {
        match entry.to_string().as_str() {
            "like" => {}
            "dtypes" | "before" => {
                fields.extend(quote_spanned!(entry.span()=> kernel.#entry = Some(#value);))
            }
            _ => {
                let loops = loops(row, entry, value, truth);
                fields.extend(quote!(kernel.#entry = Some(#loops);));
            }
        }
    }
    quote! {
        pub static #name: Kernel = {
            let mut kernel = Kernel::new(#text, #truth, #mask);
            #fields
            kernel
        };
    }
}

/// The loops of one class of dtypes. The formula is wrapped in a type, so that it is compiled inside the
/// loop.
fn loops(row: &Row, class: &Ident, formula: &TokenStream, truth: bool) -> TokenStream {
    let (n, a) = (row.tensors.len(), row.args.len());
    let hole = |tensor: &&Tensor| {
        let name = &tensor.name;
        if tensor.kind == TensorKind::Mask { quote!(_) } else { quote!(#name) }
    };
    let tensors = kernel_order(row);
    let inputs: Vec<TokenStream> = tensors.iter().map(hole).collect();
    let args = row.args.iter().map(|arg| &arg.name);
    let mask = tensors.iter().enumerate().find(|(_, tensor)| tensor.kind == TensorKind::Mask);
    let at = mask.map_or(quote!(usize::MAX), |(at, _)| quote!(#at));
    let mask = mask.map_or(quote!(_), |(_, tensor)| {
        let name = &tensor.name;
        quote!(#name)
    });
    let (pattern, formula) = (quote!([#(#inputs),*]), quote!({ #formula }));
    let (row_type, make) = match class.to_string().as_str() {
        "float" => {
            let out = if truth { quote!(bool) } else { quote!(T) };
            let code = quote! {
                impl cpu::FloatOp<#n, #a> for Row {
                    const MASK: usize = #at;
                    type Out<T: Real> = #out;
                    #[inline(always)]
                    #[allow(unused_variables)] // a formula need not use every argument
                    fn f<T: Real>(#pattern: [T; #n], #mask: bool, [#(#args),*]: [T; #a]) -> #out #formula
                }
            };
            let how = row.loops.clone().unwrap_or_else(|| format_ident!("wide"));
            (code, quote!(cpu::#how::<#n, #a, Row>(kernel.to_bool)))
        }
        "int" => {
            let out = if truth { quote!(bool) } else { quote!(i64) };
            let code = quote! {
                impl cpu::IntOp<#n, #a> for Row {
                    const MASK: usize = #at;
                    type Out = #out;
                    #[inline(always)]
                    #[allow(unused_variables)]
                    fn f(#pattern: [i64; #n], #mask: bool, [#(#args),*]: [i64; #a]) -> #out #formula
                }
            };
            (code, quote!(cpu::integers::<#n, #a, Row>(kernel.to_bool)))
        }
        "any" => {
            let code = quote! {
                impl cpu::AnyOp<#n> for Row {
                    const MASK: usize = #at;
                    #[inline(always)]
                    fn f<T: Copy>(#pattern: [T; #n], #mask: bool) -> T #formula
                }
            };
            (code, quote!(cpu::moving::<#n, Row>()))
        }
        _ => {
            let code = quote! {
                impl cpu::BoolOp<#n> for Row {
                    const MASK: usize = #at;
                    #[inline(always)]
                    fn f(#pattern: [bool; #n], #mask: bool) -> bool #formula
                }
            };
            (code, quote!(cpu::booleans::<#n, Row>()))
        }
    };
    quote! {{
        struct Row;
        #row_type
        #make
    }}
}

/// The parameters of a kernel, in the order of the row.
fn kernel_parameters(row: &Row, side: &Side) -> Vec<TokenStream> {
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
fn functions(row: &Row, side: &Side) -> TokenStream {
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

/// The methods of a row.
fn method(row: &Row, side: &Side) -> Forms {
    let name = &row.name;
    let (prepare, call, returned) = (side.prepare(row, false), side.passed(row), side.returned(row));
    let outputs = row.outputs.all().collect::<Vec<_>>();
    let (assembled, kept, cast) = (side.assembled(row), &row.outputs.kept, side.cast_result(row));
    let value = quote! {
        #prepare
        let (#(#outputs),*) = run::#name(#(#call),*)?;
        #(drop(#kept);)*
        #cast
        Ok(#assembled)
    };
    let mut made = forms(row, side, &row.doc(side), &returned, &MethodBody::Own(value), name);
    let Some(name_) = &row.in_place else { return made };
    let (doc, prepare, written) = (in_place_doc(row, side), side.prepare(row, true), written());
    let others = &call[1..];
    let value = quote! {
        #prepare
        run::#name_(#written #(, #others)*)?;
        Ok(#written)
    };
    made.extend(forms(row, side, &doc, &returned, &MethodBody::Own(value), name_));
    made
}

/// The doc of an in-place form.
pub(crate) fn in_place_doc(row: &Row, side: &Side) -> TokenStream {
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
    row: &Row,
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
    let with_doc = match (has_options, side.methods) {
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
    made
}

/// The option struct of an op.
pub(crate) fn options_struct(row: &Row, side: &Side) -> TokenStream {
    let struct_name = row.options_name();
    let (tensors, args) = row.options();
    let path = if side.methods { side.tensor.to_string().replace(' ', "") } else { "super".into() };
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
    let core = &side.core;
    let (given, value): (Vec<TokenStream>, Vec<TokenStream>) = args
        .iter()
        .zip(&arg_types)
        .map(|(arg, ty)| {
            let name = &arg.name;
            match arg.ty.name.to_string().as_str() {
                "bool" | "usize" if !arg.ty.optional => (quote!(#ty), quote!(#name)),
                "isize" if !arg.ty.optional => {
                    (quote!(impl #core::Whole), quote!(#core::args::position(#name)))
                }
                _ => (quote!(impl ::std::convert::Into<#ty>), quote!(#name.into())),
            }
        })
        .unzip();
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
fn defaults_text(row: &Row) -> String {
    let (tensors, args) = row.options();
    let tensors = tensors.iter().map(|tensor| format!("no `{}`", tensor.name));
    let args = args.iter().map(|arg| match &arg.default {
        Some(default) => format!("`{}` {}", arg.name, default.to_string().replace(' ', "")),
        None => format!("no `{}`", arg.name),
    });
    let all: Vec<String> = tensors.chain(args).collect();
    format!(": {}", all.join(", "))
}

/// The data about an op.
pub(crate) fn info(row: &Row, table: &str, side: &Side) -> TokenStream {
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
        let exact = tensor.exact;
        quote!(#core::ops::TensorInfo { name: #name, kind: #core::ops::TensorKind::#kind, exact: #exact })
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
        let (option, leads) = (arg.is_option(), arg.leads);
        quote!(#core::ops::ArgInfo {
            name: #name, ty: #ty, of: &[#(#of),*], default: #default, option: #option, leads: #leads
        })
    });
    let outputs = row.outputs.names.iter().map(Ident::to_string);
    let dtypes = dtypes(row);
    let element = row.by_element();
    quote! {
        #core::ops::OpInfo {
            name: #name,
            in_place: #in_place,
            table: #table,
            tensors: &[#(#tensors),*],
            args: &[#(#args),*],
            outputs: &[#(#outputs),*],
            by_element: #element,
            rule: #rule,
            dtypes: &[#(#core::Category::#dtypes),*],
            doc: #doc,
        }
    }
}

/// The classes of dtypes that a row takes.
fn dtypes(row: &Row) -> Vec<Ident> {
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
