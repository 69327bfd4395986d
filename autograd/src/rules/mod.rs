//! Derivatives: a row per op, in the file of the op's kind.
//!
//! A row names the inputs, the other arguments and the output, and says for each input `[what is kept] its gradient`, `g` being that of the output:
//!
//! ```ignore
//! exp(x) -> y { x: [y] g * y }
//! softmax(x; dim: usize) -> y { x: [y; dim] (g - (g * y).sum_keepdim(*dim)?) * y => fused(g, y, *dim)? }
//! ```
//! The bracket is all that the gradient can use: an input that is used but not kept does not live long enough and does not compile, one that is kept but not
//! used is an unused variable, which is denied. It is kept only if that input requires a gradient. Because the gradient is made of differentiable
//! ops, it can be differentiated again. What stands behind `=>` is the same gradient as one kernel; it runs when the backward pass is not recorded.
//!
//! A row becomes a function that computes the value with the op of that name in core and records it. An op that has a row in core and none here does not
//! compile, because its method calls that function.
#![deny(unused_variables)]

/// Turns rows into functions. `in path` is where the ops of core are.
macro_rules! rules {
    (in $core:ident; |$g:ident, $cx:ident| $(
        $(#[doc = $doc:literal])*
        $name:ident ($x:ident $(, $xs:ident)* $(; $($p:ident: $t:ty),*)?) -> $y:ident
        { $($input:ident: [$($kept:ident)* $(; $($arg:ident)*)?] $gradient:expr $(=> $fused:expr)?),+ $(,)? }
    )*) => {
        /// Each op of this file with its derivatives, as they stand in the rows.
        pub(crate) const ROWS: &[$crate::rules::Row] = &[$($crate::rules::Row {
            op: stringify!($name),
            gradients: &[$((stringify!($input), stringify!($gradient))),+],
        }),*];
        $(
            $(#[doc = $doc])*
            #[track_caller]
            #[allow(unused_mut)]
            pub(crate) fn $name(
                $x: &$crate::Tensor $(, $xs: &$crate::Tensor)* $($(, $p: &$t)*)?
            ) -> namegrad_core::Result<$crate::Tensor> {
                let value = $core::$name($x.value() $(, $xs.value())* $($(, Clone::clone($p))*)?)?;
                let $y = &value;
                let mut edges = $crate::tape::Edges::new();
                $(
                    if let Some(into) = $input.tracked() {
                        $(let $kept = $crate::op::Keep::keep($kept);)*
                        $($(let $arg = Clone::clone($arg);)*)?
                        const KEEPS: bool = !<[&str]>::is_empty(&[$(stringify!($kept)),*]);
                        edges.push($crate::tape::Edge::keeping(KEEPS, into, move |$g: &$crate::Tensor, $cx: &$crate::Cx<'_>| {
                            let _ = ($g, $cx);
                            $(let $kept = &$kept.get($cx);)*
                            $($(let $arg = &$arg;)*)?
                            $(if !$crate::is_grad_enabled() {
                                return Ok($fused);
                            })?
                            Ok($gradient)
                        }));
                    }
                )+
                let _ = $y;
                Ok($crate::op::Op::with_edges(stringify!($name), value, edges).output())
            }
        )*
    };
}

/// Rows of ops whose result has no gradient by nature: it is `bool` or an index.
macro_rules! constants {
    (in $core:ident; $($name:ident ($x:ident $(, $xs:ident)* $(; $($p:ident: $t:ty),*)?))*) => {
        /// The ops of this file whose results have no gradient.
        pub(crate) const CONSTANTS: &[&str] = &[$(stringify!($name)),*];
        $(
            #[track_caller]
            pub(crate) fn $name(
                $x: &$crate::Tensor $(, $xs: &$crate::Tensor)* $($(, $p: &$t)*)?
            ) -> namegrad_core::Result<$crate::Tensor> {
                let value = $core::$name($x.value() $(, $xs.value())* $($(, Clone::clone($p))*)?)?;
                Ok($crate::Tensor::constant(value))
            }
        )*
    };
}

/// The result of a fused gradient.
pub(crate) fn kernel(gradient: namegrad_core::NamedTensor) -> crate::Tensor {
    crate::Tensor::constant(gradient)
}

/// A derivative row as text, for documentation.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The op.
    pub op: &'static str,
    /// For each differentiable input its gradient.
    pub gradients: &'static [(&'static str, &'static str)],
}

pub(crate) mod along;
pub(crate) mod binary;
pub(crate) mod count;
pub(crate) mod getitem;
pub(crate) mod index;
pub mod loss;
pub(crate) mod matmul;
pub(crate) mod pick;
pub(crate) mod reduce;
pub(crate) mod shape;
pub(crate) mod unary;

/// Every op that has a derivative, with the formulas of its rows.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    [
        unary::ROWS,
        binary::ROWS,
        reduce::ROWS,
        along::ROWS,
        pick::ROWS,
        count::ROWS,
        shape::ROWS,
        index::ROWS,
        matmul::ROWS,
    ]
    .into_iter()
    .flatten()
}

/// Every op whose result has no gradient by nature.
pub fn constants() -> impl Iterator<Item = &'static str> {
    [
        unary::CONSTANTS,
        binary::CONSTANTS,
        reduce::CONSTANTS,
        along::CONSTANTS,
        count::CONSTANTS,
        index::CONSTANTS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// The error of an op that is called on a tensor that requires a gradient and that has none: never a silent cut.
#[track_caller]
pub(crate) fn no_derivative(op: &'static str, x: &crate::Tensor) -> namegrad_core::Error {
    let message = format!("the derivative of {op} is not implemented, and the input requires a gradient");
    namegrad_core::Error::new(namegrad_core::ErrorKind::Autograd, op, message)
        .with_operands([x.extents()])
        .with_repair(format!("x.detach().{op}(), if no gradient is to flow"))
}
