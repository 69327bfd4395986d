//! Derivatives: a row per op, in the file of the op's kind.
//!
//! A row names the inputs, the other arguments that it needs and the output, and says for each input `[what
//! is kept] its gradient`, `g` being that of the output:
//!
//! ```ignore
//! exp(x) -> y { x: [y] g * y }
//! softmax(x; dim) -> y { x: [y; dim] (g - (g * y).sum(keep(dim))?) * y => fused(g, y, dim)? }
//! ```
//! The bracket is all that the gradient can use; what is used and not kept, or kept and not used, is an
//! error. It is kept only if that input requires a gradient. Because the gradient is made of differentiable
//! ops, it can be differentiated again. What follows `=>` is the same gradient as one kernel; it runs when
//! the backward pass is not recorded.
//!
//! The gradients of several inputs in one are `(x weight): [x weight] ..`, an array of an `Option` for each;
//! `wants` says which of them are asked for. An input without a gradient says so: `index: refused`. With
//! several outputs, `q` and `r`, their gradients are `g_q` and `g_r`.
//!
//! `op constant;` says that a result has no gradient by nature, as it is `bool` or an index; `op refused;`
//! that there is none, so that the op is an error on a tensor that requires a gradient; `op(x; dim) -> y by
//! function;` that a function records it.

/// The result of a fused gradient.
pub(crate) fn kernel(gradient: namegrad_core::NamedTensor) -> crate::Tensor {
    crate::Tensor::constant(gradient)
}

// In the order in which the page of `Tensor` shows their methods; blank lines keep rustfmt from sorting them.
pub(crate) mod binary;

pub(crate) mod unary;

pub(crate) mod reduce;

pub(crate) mod pick;

pub(crate) mod along;

pub(crate) mod count;

pub(crate) mod shape;

pub(crate) mod slice;

pub(crate) mod join;

pub(crate) mod index;

pub(crate) mod mask;

pub(crate) mod matmul;

pub(crate) mod linalg;

pub(crate) mod norm;

pub(crate) mod loss;

/// The tables of core, each with a module of its name here. `tables! { unary }` becomes
///
/// ```ignore
/// pub(crate) const OPS: &[&[&crate::registry::Op]] = &[unary::OPS];
/// pub(crate) mod chained { pub use super::unary::Chained as _; }
/// ```
macro_rules! tables {
    ($($table:ident)*) => {
        pub(crate) const OPS: &[&[&crate::registry::Op]] = &[$($table::OPS),*];
        #[allow(unreachable_pub)] // public by another path
        pub(crate) mod chained {
            $(pub use super::$table::Chained as _;)*
        }
    };
}
namegrad_core::op_tables! { tables }

/// An input that has no gradient must not require one: never a silent cut.
#[doc(hidden)]
#[inline]
#[track_caller]
pub fn refuse(op: &'static str, input: &'static str, x: &crate::Tensor) -> namegrad_core::Result<()> {
    if x.tracked().is_none() {
        return Ok(());
    }
    let message = format!("the gradient of `{input}` is not implemented, but `{input}` requires one");
    Err(namegrad_core::Error::new(namegrad_core::ErrorKind::Autograd, op, message)
        .with_operands([x.shape()])
        .with_repair(format!("{input}.detach(), if no gradient is to flow to it")))
}
