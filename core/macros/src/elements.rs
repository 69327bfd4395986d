//! The kernels of elementwise rows: a static for each, whose loops contain the formulas of the row.

use crate::given::Side;
use crate::row::{Body, Form, OpRow, Tensor, TensorKind};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};

/// Elementwise kernels that are not ops: a static for each, and a function of tensors that calls it.
pub(crate) fn kernels(rows: &[OpRow]) -> TokenStream {
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

pub(crate) fn module_of_elements(elements: TokenStream) -> TokenStream {
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
pub(crate) fn kernel_order(row: &OpRow) -> Vec<&Tensor> {
    let mut tensors: Vec<&Tensor> = row.tensors.iter().collect();
    if row.by_element() && tensors.first().is_some_and(|first| first.kind == TensorKind::Mask) {
        tensors.swap(0, 1);
    }
    tensors
}

/// The kernel of an elementwise row, whose loops contain the formulas.
pub(crate) fn element(row: &OpRow, body: &Body) -> TokenStream {
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
fn loops(row: &OpRow, class: &Ident, formula: &TokenStream, truth: bool) -> TokenStream {
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
                impl cpu::FloatOp<#n, #a> for OpRow {
                    const MASK: usize = #at;
                    type Out<T: Real> = #out;
                    #[inline(always)]
                    #[allow(unused_variables)] // a formula need not use every argument
                    fn f<T: Real>(#pattern: [T; #n], #mask: bool, [#(#args),*]: [T; #a]) -> #out #formula
                }
            };
            let how = row.loops.clone().unwrap_or_else(|| format_ident!("wide"));
            (code, quote!(cpu::#how::<#n, #a, OpRow>(kernel.to_bool)))
        }
        "int" => {
            let out = if truth { quote!(bool) } else { quote!(i64) };
            let code = quote! {
                impl cpu::IntOp<#n, #a> for OpRow {
                    const MASK: usize = #at;
                    type Out = #out;
                    #[inline(always)]
                    #[allow(unused_variables)]
                    fn f(#pattern: [i64; #n], #mask: bool, [#(#args),*]: [i64; #a]) -> #out #formula
                }
            };
            (code, quote!(cpu::integers::<#n, #a, OpRow>(kernel.to_bool)))
        }
        "any" => {
            let code = quote! {
                impl cpu::AnyOp<#n> for OpRow {
                    const MASK: usize = #at;
                    #[inline(always)]
                    fn f<T: Copy>(#pattern: [T; #n], #mask: bool) -> T #formula
                }
            };
            (code, quote!(cpu::moving::<#n, OpRow>()))
        }
        _ => {
            let code = quote! {
                impl cpu::BoolOp<#n> for OpRow {
                    const MASK: usize = #at;
                    #[inline(always)]
                    fn f(#pattern: [bool; #n], #mask: bool) -> bool #formula
                }
            };
            (code, quote!(cpu::booleans::<#n, OpRow>()))
        }
    };
    quote! {{
        struct OpRow;
        #row_type
        #make
    }}
}
