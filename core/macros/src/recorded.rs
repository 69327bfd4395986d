//! The recipe of an op: its derivatives and the other facts that the functions of the tape read.

use crate::derivative::{Derivatives, Gradient, How, Signature, first_use};
use crate::given::Side;
use crate::row::{Form, OpRow, TensorKind};
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{format_ident, quote};

/// The recipe of a row. `mul(a, b) -> y { a: [b] g * b, .. }` becomes
///
/// ```ignore
/// Recipe {
///     op: "mul",
///     class: class_of("mul"),
///     refused: &[],
///     is_truth: false,
///     formulas: Formulas::Each(&[
///         Formula { of: 0, kept: &[1], gradient: |g, saved, cx| { let b = saved.one(0); Ok(g * b) } },
///         ..
///     ]),
/// }
/// ```
///
/// with a function in place of the closure. If there are several outputs, or one formula is for several
/// inputs, the formulas are joint.
pub(crate) fn recipe(row: &OpRow, how: &How, derivatives: &Derivatives, side: &Side) -> TokenStream {
    let op = row.name.to_string();
    let (is_truth, by_element) = (row.outputs.form == Form::Truth, row.by_element());
    let (formulas, served) = match how {
        How::Formulas(signature, gradients) => {
            let args = saved_args(signature, gradients);
            let row = Recorded { row, signature, derivatives, side, args };
            let alone = row.row.outputs.names.len() == 1 && row.row.outputs.form != Form::List;
            let formulas = match alone && gradients.iter().all(|gradient| gradient.inputs.len() == 1) {
                true => {
                    let formulas = gradients.iter().map(|gradient| row.formula(gradient));
                    quote!(Each(&[#(#formulas),*]))
                }
                false => {
                    let formulas = gradients.iter().map(|gradient| row.joint(gradient));
                    quote!(Joint(&[#(#formulas),*]))
                }
            };
            let served = gradients.iter().flat_map(|gradient| &gradient.inputs);
            let served: Vec<usize> = served.map(|input| row.place(input)).collect();
            (formulas, served)
        }
        _ => (quote!(Each(&[])), Vec::new()),
    };
    let has_gradients = matches!(how, How::Formulas(..) | How::Refused);
    let left = row.tensors.iter().enumerate();
    let left =
        left.filter(|(at, tensor)| has_gradients && !served.contains(at) && tensor.kind != TensorKind::Mask);
    let refused = left.map(|(at, tensor)| {
        let name = tensor.name.to_string();
        quote!((#at, #name))
    });
    quote!(crate::tape::Recipe {
        op: #op,
        class: crate::autocast::class_of(#op),
        refused: &[#(#refused),*],
        is_truth: #is_truth,
        by_element: #by_element,
        formulas: crate::tape::Formulas::#formulas,
    })
}

/// The arguments that the formulas of an op see, which are saved as one tuple for all of them.
pub(crate) fn saved_args<'a>(signature: &'a Signature, gradients: &[Gradient]) -> Vec<&'a Ident> {
    let used = |arg: &&Ident| gradients.iter().any(|gradient| gradient.args.contains(arg));
    signature.args.iter().filter(used).collect()
}

/// Functions and methods in formulas that move elements or compare them.
const EXACT: [&str; 22] = [
    "abs",
    "choose",
    "chosen",
    "clone",
    "eq",
    "ge",
    "gt",
    "isinf",
    "isnan",
    "le",
    "logical_and",
    "logical_not",
    "logical_or",
    "lt",
    "masked_fill",
    "ne",
    "neg",
    "ones_like",
    "shared",
    "sign",
    "spread",
    "zeros_like",
];

/// How often a formula rounds each element, at least: an operator and a method round once, and a function
/// with a name of its own is taken for two.
fn roundings(formula: &TokenStream) -> usize {
    let (mut count, mut before) = (0, None);
    let mut trees = formula.clone().into_iter().peekable();
    while let Some(tree) = trees.next() {
        count += match &tree {
            TokenTree::Group(group) => roundings(&group.stream()),
            // Behind nothing or another operator it is a sign or a reference.
            TokenTree::Punct(punct) => {
                let is_operand = !matches!(before, None | Some('+' | '-' | '*' | '/' | '&' | ','));
                usize::from(is_operand && matches!(punct.as_char(), '+' | '-' | '*' | '/'))
            }
            TokenTree::Ident(name) => match trees.peek() {
                Some(TokenTree::Group(_)) if EXACT.iter().any(|exact| name == exact) => 0,
                Some(TokenTree::Group(_)) if before == Some('.') => 1,
                Some(TokenTree::Group(_)) => 2,
                _ => 0,
            },
            TokenTree::Literal(_) => 0,
        };
        before = match &tree {
            TokenTree::Punct(punct) => Some(punct.as_char()),
            _ => Some(' '),
        };
    }
    count
}

/// Whether a formula calls a method.
fn calls(formula: &TokenStream, method: &str) -> bool {
    formula.clone().into_iter().any(|tree| match tree {
        TokenTree::Group(group) => calls(&group.stream(), method),
        TokenTree::Ident(name) => name == method,
        _ => false,
    })
}

/// How a gradient computes for half types, if it may be widened.
fn halves(gradient: &Gradient, may_widen: bool) -> TokenStream {
    match (may_widen && roundings(&gradient.formula) > 1, &gradient.fused) {
        (false, _) => quote!(Direct),
        (true, None) => quote!(Widened),
        (true, Some(_)) => quote!(WidenedIfRecorded),
    }
}

/// An op that is recorded.
struct Recorded<'a> {
    row: &'a OpRow,
    signature: &'a Signature,
    derivatives: &'a Derivatives,
    side: &'a Side,
    /// The arguments that the formulas see.
    args: Vec<&'a Ident>,
}

impl Recorded<'_> {
    /// The number of an input, or of an output, which come after the inputs.
    fn place(&self, name: &Ident) -> usize {
        let Signature { tensors, outputs, .. } = self.signature;
        tensors.iter().chain(outputs).position(|tensor| tensor == name).unwrap_or(0)
    }

    /// How a formula sees what is saved for it.
    fn seen(&self, gradient: &Gradient) -> TokenStream {
        let alone = (gradient.inputs.len() == 1).then(|| &gradient.inputs[0]);
        let tensors = gradient.kept.iter().enumerate().map(|(at, kept)| {
            let own = self.signature.tensors.iter().position(|tensor| tensor == kept);
            let optional = own.is_some_and(|at| self.row.tensors[at].kind == TensorKind::Optional);
            // An optional input is there in its own gradient.
            match optional && alone != Some(kept) {
                true => quote!(let #kept = saved.optional(#at);),
                false => quote!(let #kept = saved.one(#at);),
            }
        });
        if gradient.args.is_empty() {
            return quote!(#(#tensors)*);
        }
        let arg = |name: &Ident| self.row.args.iter().find(|arg| arg.name == *name);
        let types = self.args.iter().filter_map(|name| Some(self.side.resolved(arg(name)?)));
        let names = self.args.iter().map(|name| match gradient.args.contains(name) {
            true => quote!(#name),
            false => quote!(_),
        });
        let views = gradient.args.iter().filter_map(|name| {
            let ty = self.side.ty(&arg(name)?.ty);
            Some(quote!(let #name = <#ty as ::namegrad_core::Argument>::view(#name);))
        });
        quote! {
            #(#tensors)*
            let (#(#names,)*) = saved.args::<(#(#types,)*)>();
            #(#views)*
        }
    }

    fn formula(&self, gradient: &Gradient) -> TokenStream {
        let (g, cx) = (&self.derivatives.g, &self.derivatives.cx);
        let (of, kept) = (self.place(&gradient.inputs[0]), gradient.kept.iter().map(|kept| self.place(kept)));
        let (seen, formula) = (self.seen(gradient), &gradient.formula);
        let fused =
            gradient.fused.as_ref().map(|fused| quote!(if crate::tape::fuses() { return Ok(#fused); }));
        let halves = halves(gradient, self.row.by_element() || self.row.reduces());
        let by_element = self.row.by_element() && !calls(formula, "sum");
        quote!(crate::tape::Formula {
            of: #of,
            kept: &[#(#kept),*],
            halves: crate::tape::Halves::#halves,
            by_element: #by_element,
            gradient: {
                fn formula(
                    #g: &crate::Tensor,
                    saved: &crate::tape::Saved<'_>,
                    #cx: &crate::Cx<'_>,
                ) -> ::namegrad_core::Result<crate::Tensor> {
                    #seen
                    #fused
                    // Of this type, so that a missing `?` is an error at the formula.
                    let gradient: crate::Tensor = #formula;
                    Ok(gradient)
                }
                formula
            },
        })
    }

    /// A formula for several inputs, or of several outputs.
    fn joint(&self, gradient: &Gradient) -> TokenStream {
        let (g, cx) = (&self.derivatives.g, &self.derivatives.cx);
        let places: Vec<usize> = gradient.inputs.iter().map(|input| self.place(input)).collect();
        let kept = gradient.kept.iter().map(|kept| self.place(kept));
        let (seen, length) = (self.seen(gradient), places.len());
        let wants = Ident::new("wants", g.span());
        let texts = [Some(&gradient.formula), gradient.fused.as_ref()];
        let is_used = |name: &Ident| texts.iter().flatten().any(|text| first_use(text, name).is_some());
        let outputs = &self.signature.outputs[..self.row.outputs.names.len()];
        let given: TokenStream = match outputs {
            [_] => quote!(let #g = #cx.gradient();),
            _ => outputs
                .iter()
                .enumerate()
                .map(|(at, output)| (at, Ident::new(&format_ident!("{g}_{output}").to_string(), g.span())))
                .filter(|(_, name)| is_used(name))
                .map(|(at, name)| quote!(let #name = &#cx.output_gradient(#at)?;))
                .collect(),
        };
        let of = |formula: &TokenStream| match length {
            1 => quote!([::std::option::Option::Some(#formula)]),
            _ => quote!(#formula),
        };
        let plain = of(&gradient.formula);
        let value = match gradient.fused.as_ref().map(of) {
            Some(fused) => quote!(if crate::tape::fuses() { #fused } else { #plain }),
            None => plain,
        };
        let halves = halves(gradient, true);
        quote!(crate::tape::JointFormula {
            of: &[#(#places),*],
            kept: &[#(#kept),*],
            halves: crate::tape::Halves::#halves,
            gradients: {
                fn joint_formula(
                    saved: &crate::tape::Saved<'_>,
                    #cx: &crate::Cx<'_>,
                ) -> ::namegrad_core::Result<::std::vec::Vec<::std::option::Option<crate::Tensor>>> {
                    let #wants = [#(#cx.wants(#places)),*];
                    #seen
                    #given
                    let found: [::std::option::Option<crate::Tensor>; #length] = #value;
                    Ok(crate::plain::listed(found))
                }
                joint_formula
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::roundings;

    #[test]
    fn formulas_that_round() {
        let count = |formula: &str| roundings(&formula.parse().expect("tokens"));
        assert_eq!(count("g.clone()"), 0);
        assert_eq!(count("-g"), 0);
        assert_eq!(count("g * y"), 1);
        assert_eq!(count("g * x.sign()?"), 1);
        assert_eq!(count("-g * y / b"), 2);
        assert_eq!(count("g * -x.sin()?"), 2);
        assert_eq!(count("g * slope(x)?"), 3);
        assert_eq!(count("chosen(g, a.ge(b)?)?"), 0);
    }
}
