//! The parameters of methods for the tensors and arguments of a row, and how they become the arguments of
//! kernels. This is the same for plain values and for tensors on the tape, except for what a [`Side`]
//! describes.

use crate::row::{Arg, Form, OpRow, PLAIN_TYPES, TYPES, Tensor, TensorKind, Type};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

/// A parameter of a method, and what the plain function behind it gets.
pub(crate) struct Parameter {
    pub(crate) name: Ident,
    /// The type in the method: `impl Into<Dim>`.
    pub(crate) ty: TokenStream,
    /// The type in the plain function: `Dim`.
    pub(crate) plain: TokenStream,
    /// What the method passes on: `Into::<Dim>::into(dim)`.
    pub(crate) passed: TokenStream,
    /// Whether the two types differ, so that the method is generic.
    pub(crate) is_generic: bool,
    /// What a call by name passes for the value that it read.
    pub(crate) named: TokenStream,
    /// If it is a tensor: how the registry calls a function of a tensor and of such a parameter.
    pub(crate) two: Option<Ident>,
}

impl Parameter {
    fn plain(name: &Ident, ty: TokenStream) -> Parameter {
        let passed = quote!(#name);
        Parameter {
            name: name.clone(),
            plain: ty.clone(),
            ty,
            named: passed.clone(),
            passed,
            is_generic: false,
            two: None,
        }
    }

    fn converted(
        name: &Ident,
        ty: TokenStream,
        plain: TokenStream,
        passed: TokenStream,
        named: TokenStream,
    ) -> Parameter {
        Parameter { name: name.clone(), ty, plain, passed, is_generic: true, named, two: None }
    }

    /// A tensor, which the registry calls by functions of this kind.
    fn of_two(self, kind: &str) -> Parameter {
        Parameter { two: Some(format_ident!("{kind}")), ..self }
    }

    /// The parameter in the signature of the method.
    pub(crate) fn declared(&self) -> TokenStream {
        let (name, ty) = (&self.name, &self.ty);
        quote!(#name: #ty)
    }
}

/// The tensors of an op, given by kind and variable, as what every op can be asked about: `&[Input::One(x)]`.
pub(crate) fn inputs<'a>(
    tensors: impl Iterator<Item = (TensorKind, &'a Ident)>,
    plain: &TokenStream,
) -> TokenStream {
    let inputs = tensors.map(|(kind, name)| match kind {
        TensorKind::Optional => quote!(#plain::Input::Optional(#name)),
        TensorKind::List => quote!(#plain::Input::List(#name)),
        _ => quote!(#plain::Input::One(#name)),
    });
    quote!(&[#(#inputs),*])
}

/// A variable that no tensor or argument of a row can have.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// The variable of the tensor that an in-place form writes to.
pub(crate) fn written() -> Ident {
    local("written")
}

/// The variable of the tensor that is made of an operand.
fn place(operand: &Ident) -> Ident {
    format_ident!("place_of_{operand}", span = Span::mixed_site())
}

/// The number of the tensor on which the dtype of a number depends that is given for a tensor: the first other
/// one that is not a mask.
fn beside(row: &OpRow, tensor: &Tensor) -> Option<usize> {
    let is_other = |other: &Tensor| other.name != tensor.name && other.kind != TensorKind::Mask;
    row.tensors.iter().position(is_other).filter(|_| !tensor.exact)
}

/// The crate for which code is generated.
pub(crate) struct Side {
    /// The path of `namegrad_core` in the crate.
    pub(crate) core: TokenStream,
    /// The type of a tensor.
    pub(crate) tensor: TokenStream,
    /// The trait of the other operands of a tensor.
    pub(crate) operand: TokenStream,
    /// The module with the types that plain functions get for operands: `TensorOrNumber` and `Handle`.
    pub(crate) plain: TokenStream,
    /// The trait of arguments for tensors other than the first; empty if only references are accepted.
    pub(crate) as_tensor: TokenStream,
    /// The suffix that turns a reference to a tensor into a plain value: `.value()`, or nothing.
    pub(crate) value: TokenStream,
    /// The path of the registry.
    pub(crate) registry: TokenStream,
    /// The prefix of the names of ops in the registry.
    pub(crate) prefix: String,
    /// Whether ops are methods of a tensor; otherwise they are functions of their tensors.
    pub(crate) methods: bool,
    /// Whether types that the grammar does not know are in the scope of the row, rather than in `core::args`.
    pub(crate) local_types: bool,
    /// Where the derivatives are written, if the rows come from another crate.
    pub(crate) written: Option<Span>,
}

impl Side {
    /// Plain values, in core.
    pub(crate) fn values() -> Side {
        Side {
            core: quote!(crate),
            tensor: quote!(crate::NamedTensor),
            operand: quote!(crate::Operand),
            plain: quote!(crate::args),
            as_tensor: quote!(),
            value: quote!(),
            registry: quote!(),
            prefix: String::new(),
            methods: true,
            local_types: false,
            written: None,
        }
    }

    /// Tensors of the tape, in autograd.
    pub(crate) fn tape() -> Side {
        Side {
            core: quote!(::namegrad_core),
            tensor: quote!(crate::Tensor),
            operand: quote!(crate::Operand),
            plain: quote!(crate::plain),
            as_tensor: quote!(crate::AsTensor),
            value: quote!(.value()),
            registry: quote!(crate::registry),
            prefix: String::new(),
            methods: true,
            local_types: false,
            written: None,
        }
    }

    /// Composed ops, next to their functions.
    pub(crate) fn composed() -> Side {
        Side { local_types: true, ..Side::tape() }
    }

    /// Functions of tensors, in the crate of layers.
    pub(crate) fn functions() -> Side {
        Side {
            tensor: quote!(::namegrad_autograd::Tensor),
            operand: quote!(::namegrad_autograd::Operand),
            plain: quote!(::namegrad_autograd::plain),
            as_tensor: quote!(::namegrad_autograd::AsTensor),
            registry: quote!(::namegrad_autograd::registry),
            prefix: "nn.".into(),
            methods: false,
            ..Side::composed()
        }
    }

    /// What errors call an op: its name, after the prefix of its table. Functions of `nn` have no prefix there.
    pub(crate) fn called(&self, name: &Ident) -> String {
        if self.prefix == "nn." { name.to_string() } else { format!("{}{name}", self.prefix) }
    }

    /// Methods of tensors in a crate of their own: functions, which a trait calls.
    pub(crate) fn extension() -> Side {
        Side { prefix: String::new(), ..Side::functions() }
    }

    /// Whether users call methods: of `Tensor`, or of a trait.
    pub(crate) fn shows_methods(&self) -> bool {
        self.methods || self.prefix.is_empty()
    }

    /// Whether the op is a method of its first tensor.
    pub(crate) fn is_method(&self, row: &OpRow) -> bool {
        self.methods && row.is_method()
    }

    /// Whether a `Parameter` can be passed for the tensor, which is not possible for the receiver of a
    /// method.
    fn takes_parameter(&self, row: &OpRow, tensor: &Tensor) -> bool {
        let first = row.tensors.first().is_some_and(|first| first.name == tensor.name);
        let plain = matches!(tensor.kind, TensorKind::Plain | TensorKind::Mask);
        !self.as_tensor.is_empty() && plain && !first && !row.takes_number(tensor)
    }

    /// Whether this is the side of plain values.
    pub(crate) fn is_core(&self) -> bool {
        self.value.is_empty()
    }

    /// The default of an argument, as a value of its type.
    pub(crate) fn default(&self, arg: &Arg) -> Option<TokenStream> {
        let (ty, default) = (self.ty(&arg.ty), arg.default.as_ref());
        match arg.ty.name.to_string().as_str() {
            "Cast" | "NewName" | "NewNames" => Some(quote!(<#ty as ::std::default::Default>::default())),
            "Scalar" | "Dim" | "Dims" | "Reduced" | "Matrix" | "Place" | "Extents" | "Padding"
                if !arg.ty.optional =>
            {
                default.map(|default| quote!(::std::convert::Into::<#ty>::into(#default)))
            }
            _ => default.cloned(),
        }
    }

    /// The type of an argument.
    pub(crate) fn ty(&self, ty: &Type) -> TokenStream {
        let (core, name) = (&self.core, &ty.name);
        let text = name.to_string();
        let plain = match text.as_str() {
            plain if PLAIN_TYPES.contains(&plain) => quote!(#name),
            known if self.local_types && !TYPES.contains(&known) => quote!(#name),
            _ => quote!(#core::args::#name),
        };
        if ty.optional { quote!(::std::option::Option<#plain>) } else { plain }
    }

    /// The type of the parameter that sets an argument in a field of type `ty`, and the value of the field.
    pub(crate) fn setter(&self, arg: &Arg, ty: &TokenStream) -> (TokenStream, TokenStream) {
        let (name, core) = (&arg.name, &self.core);
        match arg.ty.name.to_string().as_str() {
            "bool" | "usize" if !arg.ty.optional => (quote!(#ty), quote!(#name)),
            "isize" if !arg.ty.optional => (quote!(impl #core::Whole), quote!(#core::args::position(#name))),
            _ => (quote!(impl ::std::convert::Into<#ty>), quote!(#name.into())),
        }
    }

    /// The type that a kernel gets for an argument.
    pub(crate) fn resolved(&self, arg: &Arg) -> TokenStream {
        let (core, ty) = (&self.core, self.ty(&arg.ty));
        quote!(<#ty as #core::Argument>::Resolved)
    }

    /// The parameters of a method after `self`, without options.
    pub(crate) fn parameters(&self, row: &OpRow) -> Vec<Parameter> {
        let tensors = row.tensors.iter().skip(usize::from(self.is_method(row)));
        let tensors = tensors.filter_map(|tensor| self.parameter_for_tensor(row, tensor));
        let arg = |arg: &Arg| self.parameter_for_arg(arg);
        let (leading, others): (Vec<&Arg>, Vec<&Arg>) =
            row.args.iter().filter(|arg| !arg.is_option()).partition(|arg| arg.leads);
        leading.into_iter().map(arg).chain(tensors).chain(others.into_iter().map(arg)).collect()
    }

    fn parameter_for_tensor(&self, row: &OpRow, tensor: &Tensor) -> Option<Parameter> {
        let (core, name, ty, plain) = (&self.core, &tensor.name, &self.tensor, &self.plain);
        Some(match tensor.kind {
            TensorKind::Optional => return None,
            TensorKind::List if !self.as_tensor.is_empty() => {
                let as_tensor = &self.as_tensor;
                Parameter::converted(
                    name,
                    quote!(impl ::std::iter::IntoIterator<Item: #as_tensor>),
                    quote!(&[#ty]),
                    quote!(&#plain::tensors(#name)?),
                    quote!(#name),
                )
            }
            TensorKind::List => Parameter::converted(
                name,
                quote!(impl ::std::iter::IntoIterator<Item: ::std::convert::AsRef<#ty>>),
                quote!(&[#ty]),
                quote!(&#core::args::list::<#ty>(#name)),
                quote!(#name),
            ),
            _ if row.takes_number(tensor) => {
                let operand = &self.operand;
                Parameter::converted(
                    name,
                    quote!(impl #operand),
                    quote!(#plain::TensorOrNumber<'_>),
                    quote!(#operand::either(&#name)),
                    quote!(#plain::TensorOrNumber::Tensor(#name)),
                )
                .of_two("Operand")
            }
            _ if self.takes_parameter(row, tensor) => {
                let as_tensor = &self.as_tensor;
                Parameter::converted(
                    name,
                    quote!(impl #as_tensor),
                    quote!(#plain::Handle<'_>),
                    quote!(#as_tensor::handle(&#name)),
                    quote!(#plain::Handle::Tensor(#name)),
                )
                .of_two("Handle")
            }
            _ => Parameter::plain(name, quote!(&#ty)).of_two("Two"),
        })
    }

    fn parameter_for_arg(&self, arg: &Arg) -> Parameter {
        let (core, name, ty) = (&self.core, &arg.name, &arg.ty);
        let given = quote!(#name);
        let into = |ty: TokenStream, named: TokenStream| {
            let converted = quote!(::std::convert::Into::<#ty>::into(#name));
            Parameter::converted(name, quote!(impl ::std::convert::Into<#ty>), ty, converted, named)
        };
        let whole = |named: TokenStream| {
            let number = quote!(#core::Whole::number(#name));
            Parameter::converted(name, quote!(impl #core::Whole), quote!(i128), number, named)
        };
        match ty.name.to_string().as_str() {
            "usize" | "isize" if !ty.optional => whole(quote!(#name as i128)),
            "Place" if !ty.optional => whole(quote!(#name.0 as i128)),
            "Shape" | "Expansion" if !ty.optional => Parameter::converted(
                name,
                quote!(impl #core::IntoShape),
                quote!(#core::Result<#core::args::OpenShape>),
                quote!(#core::IntoShape::into_open_shape(#given)),
                quote!(#core::Result::Ok(#name.0)),
            ),
            "Dim" if !ty.optional => Parameter::converted(
                name,
                quote!(impl #core::IntoDim),
                quote!(#core::Dim),
                quote!(#core::IntoDim::into_dim(#name)),
                given,
            ),
            "Reduced" | "Dims" | "Matrix" if !ty.optional => {
                let (plain, dims) = (self.ty(ty), quote!(#core::IntoDims::into_dims(#name)));
                let passed = if ty.is("Dims") { dims } else { quote!(#plain(#dims)) };
                Parameter::converted(name, quote!(impl #core::IntoDims), plain, passed, given)
            }
            // A slice, so that `(..).into()` in it has a type.
            "Indices" => Parameter { named: quote!(&#name.0), ..Parameter::plain(name, quote!(&[Index])) },
            _ => into(self.ty(ty), given),
        }
    }

    /// Statements that turn what the plain function of a method gets into what kernels get: operands become
    /// tensors, options are taken out of their struct, and arguments are looked up.
    pub(crate) fn prepare(&self, row: &OpRow, in_place: bool) -> TokenStream {
        let core = &self.core;
        let mut code = TokenStream::new();
        if let Some(first) = row.tensors.first().filter(|_| in_place) {
            let (name, written) = (&first.name, written());
            code.extend(quote!(let #name = &*#written;));
        }
        for tensor in row.tensors.iter().filter(|tensor| tensor.kind == TensorKind::List) {
            let name = &tensor.name;
            code.extend(quote!(let #name = &#core::args::references(#name)[..];));
        }
        for tensor in row.tensors.iter().filter(|tensor| self.takes_parameter(row, tensor)) {
            let name = &tensor.name;
            let place = place(name);
            code.extend(quote!(let mut #place = None; let #name = #name.tensor_in(&mut #place)?;));
        }
        for (at, tensor) in row.tensors.iter().enumerate().filter(|(_, tensor)| row.takes_number(tensor)) {
            let name = &tensor.name;
            let beside = match beside(row, tensor) {
                Some(other) => {
                    let is_later = other > at && row.takes_number(&row.tensors[other]);
                    let fails = is_later.then(|| quote!(?));
                    let other = &row.tensors[other].name;
                    quote!(#other.dtype()#fails)
                }
                None => quote!(#core::DType::F64),
            };
            let place = place(name);
            code.extend(quote!(let mut #place = None; let #name = #name.tensor_in(#beside, &mut #place)?;));
        }
        for field in row.options().0.iter().map(|tensor| &tensor.name) {
            code.extend(quote!(let #field = options.#field.as_deref();));
        }
        let looked_up = self.looked_up(row, in_place, false);
        quote!(#code #looked_up)
    }

    /// What [`composed`](crate::composed) calls are given for the tensors of a row.
    pub(crate) fn given(&self, row: &OpRow) -> Vec<TokenStream> {
        let plain = &self.plain;
        let given = |tensor: &Tensor| {
            let name = &tensor.name;
            match tensor.kind {
                TensorKind::Optional => quote!(#plain::Given::Optional(options.#name.as_deref())),
                TensorKind::List => quote!(#plain::Given::List(#name)),
                _ if row.takes_number(tensor) => {
                    let beside = match beside(row, tensor) {
                        Some(at) => quote!(::std::option::Option::Some(#at)),
                        None => quote!(::std::option::Option::None),
                    };
                    quote!(#plain::Given::Operand(#name, #beside))
                }
                _ if self.takes_parameter(row, tensor) => quote!(#plain::Given::One(#name)),
                _ => quote!(#plain::Given::One(#plain::Handle::Tensor(#name))),
            }
        };
        row.tensors.iter().map(given).collect()
    }

    /// Statements that look up the arguments that are not tensors. If they are `shared`, they may run again.
    pub(crate) fn looked_up(&self, row: &OpRow, in_place: bool, shared: bool) -> TokenStream {
        let core = &self.core;
        let op = self.called(row.in_place.as_ref().filter(|_| in_place).unwrap_or(&row.name));
        let mut code = TokenStream::new();
        for arg in &row.args {
            let (name, ty, text) = (&arg.name, self.ty(&arg.ty), arg.name.to_string());
            let field = match arg.is_option() {
                true => quote!(options.#name),
                false => quote!(#name),
            };
            if arg.ty.is("Cast") {
                if in_place {
                    continue;
                }
                let first = &row.tensors[0].name;
                code.extend(quote!(let #name = #field; let #first = &*#first.cast_to(#name.0)?;));
                continue;
            }
            let given = match arg.ty.name.to_string().as_str() {
                _ if arg.is_option() => field,
                "usize" if !arg.ty.optional => quote!(#core::args::length(#op, #text, #name)?),
                "isize" if !arg.ty.optional => quote!(#core::args::whole(#op, #text, #name)?),
                "Place" => quote!(#core::args::Place(#core::args::whole(#op, #text, #name)?)),
                "Indices" => quote!(::std::convert::Into::<#ty>::into(#name)),
                "Shape" | "Expansion" if shared => quote!(#name.clone()),
                _ => field,
            };
            if ["f64", "bool", "usize", "isize", "Scalar", "DType"].iter().any(|plain| arg.ty.name == plain) {
                code.extend(quote!(let #name = #given;)); // it is the same for all tensors
                continue;
            }
            let of = self.looked_up_in(row, arg);
            code.extend(match arg.ty.name.to_string().as_str() {
                "Shape" | "Expansion" if !arg.is_option() && !arg.ty.optional => {
                    quote!(let #name = #ty::resolved(#op, #given, #of)?;)
                }
                _ if shared => quote!(let #name = <#ty as #core::Argument>::look_up(&#given, #op, #of)?;),
                _ => quote!(let #name = <#ty as #core::Argument>::looked_up(#given, #op, #of)?;),
            });
        }
        code
    }

    /// The statement after an op that takes a `Cast`: it casts the result to the requested dtype, because the
    /// op may compute in another one, such as `i64` for sums of integers.
    pub(crate) fn cast_result(&self, row: &OpRow) -> TokenStream {
        let result = &row.outputs.names[0];
        let cast = row.args.iter().filter(|arg| arg.ty.is("Cast")).map(|arg| {
            let name = &arg.name;
            quote!(let #result = #result.in_dtype(#name.0)?;)
        });
        cast.collect()
    }

    /// The tensors in which an argument is looked up, as plain values.
    fn looked_up_in(&self, row: &OpRow, arg: &Arg) -> TokenStream {
        let value = &self.value;
        let one = |tensor: &Tensor| {
            let name = &tensor.name;
            let first = row.tensors.first().map(|first| &first.name);
            match tensor.kind {
                TensorKind::Optional => quote!(#name.unwrap_or(#first) #value),
                _ => quote!(#name #value),
            }
        };
        let list = |tensor: &Tensor| {
            let name = &tensor.name;
            match value.is_empty() {
                true => quote!(#name),
                false => {
                    let ty = &self.tensor;
                    quote!(&#ty::values_of(#name))
                }
            }
        };
        let named = |name: &Ident| row.tensors.iter().find(|tensor| tensor.name == *name);
        let of: Vec<&Tensor> = match arg.of.is_empty() {
            true => row.tensors.first().into_iter().collect(),
            false => arg.of.iter().filter_map(named).collect(),
        };
        match &of[..] {
            [tensor] if tensor.kind == TensorKind::List => list(tensor),
            of => {
                let of = of.iter().map(|tensor| one(tensor));
                quote!(&[#(#of),*])
            }
        }
    }

    /// The arguments of kernels, in the order of the row: tensors, then other arguments.
    pub(crate) fn passed(&self, row: &OpRow) -> Vec<TokenStream> {
        let (value, ty) = (&self.value, &self.tensor);
        let tensors = row.tensors.iter().map(|tensor| {
            let name = &tensor.name;
            match tensor.kind {
                _ if value.is_empty() => quote!(#name),
                TensorKind::Optional => quote!(#name.map(#ty::value)),
                TensorKind::List => quote!(&#ty::values_of(#name)),
                _ => quote!(#name #value),
            }
        });
        let args = row.kernel_args().map(|arg| {
            let name = &arg.name;
            quote!(#name)
        });
        tensors.chain(args).collect()
    }

    /// The type that a method returns, without the `Result`.
    pub(crate) fn returned(&self, row: &OpRow) -> TokenStream {
        let (core, tensor) = (&self.core, &self.tensor);
        match &row.outputs.form {
            Form::One | Form::Truth => quote!(#tensor),
            Form::Tuple => {
                let each = row.outputs.names.iter().map(|_| quote!(#tensor));
                quote!((#(#each),*))
            }
            Form::Struct(name) => quote!(#core::#name<#tensor>),
            Form::List => quote!(::std::vec::Vec<#tensor>),
        }
    }

    /// The return value of a method, from its outputs, which are in variables with their names.
    pub(crate) fn assembled(&self, row: &OpRow) -> TokenStream {
        let (core, names) = (&self.core, &row.outputs.names);
        match &row.outputs.form {
            Form::One | Form::Truth | Form::List => {
                let y = &names[0];
                quote!(#y)
            }
            Form::Tuple => quote!((#(#names),*)),
            Form::Struct(name) => quote!(#core::#name { #(#names),* }),
        }
    }

    /// The path of the option struct.
    pub(crate) fn options_path(&self, row: &OpRow) -> TokenStream {
        let (core, name) = (&self.core, row.options_name());
        if self.local_types { quote!(#name) } else { quote!(#core::options::#name) }
    }

    /// The type of the option struct as a parameter of a method.
    pub(crate) fn options_type(&self, row: &OpRow) -> TokenStream {
        let (path, tensor) = (self.options_path(row), &self.tensor);
        if row.options().0.is_empty() { path } else { quote!(#path<'_, #tensor>) }
    }
}

impl OpRow {
    /// Whether it is a method of a tensor; otherwise it is an associated function that takes a list, an
    /// operand or no tensor.
    pub(crate) fn is_method(&self) -> bool {
        self.tensors
            .first()
            .is_some_and(|first| !matches!(first.kind, TensorKind::List | TensorKind::Operand))
    }

    /// The arguments of kernels, without a cast, which is done before.
    pub(crate) fn kernel_args(&self) -> impl Iterator<Item = &Arg> {
        self.args.iter().filter(|arg| !arg.ty.is("Cast"))
    }

    /// The name of the option struct: `SoftplusOptions` for `softplus`.
    pub(crate) fn options_name(&self) -> Ident {
        let words = self.name.to_string();
        let camel: String = words
            .split('_')
            .map(|word| {
                let mut letters = word.chars();
                letters
                    .next()
                    .map_or(String::new(), |first| first.to_ascii_uppercase().to_string() + letters.as_str())
            })
            .collect();
        Ident::new(&format!("{camel}Options"), self.name.span())
    }

    /// The name of the form that takes options: `softplus_with`, or `softplus_with_` in place.
    pub(crate) fn with_name(&self, in_place: bool) -> Ident {
        let name = self.name.to_string();
        let plain = name.trim_end_matches('_');
        if in_place || self.is_in_place_only() {
            format_ident!("{plain}_with_")
        } else {
            format_ident!("{plain}_with")
        }
    }
}
