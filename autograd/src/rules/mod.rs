//! Derivatives: one row for each op, in the file of the op's table.
//!
//! A row names the inputs, the other arguments that it needs and the output. For each input it has
//! `[saved values] gradient`, where `g` is the gradient of the output:
//!
//! ```ignore
//! exp(x) -> y { x: [y] g * y }
//! softmax(x; dim) -> y { x: [y; dim] (g - (g * y).sum(keep(dim))?) * y => fused(g, y, dim)? }
//! ```
//! The gradient can use only the values in the bracket; it is an error to use a value that is not saved, or
//! to save a value that is not used. Values are saved only if that input requires a gradient. Because the
//! gradient consists of differentiable ops, it can be differentiated again. After `=>` comes the same
//! gradient as a single kernel, which runs when the backward pass is not recorded.
//!
//! A formula for several inputs is `(x weight): [x weight] ..`. It returns an array with an `Option` for each
//! gradient; `wants` says which of them are needed. An input without a gradient is marked `index: refused`.
//! If there are several outputs, `q` and `r`, their gradients are `g_q` and `g_r`.
//!
//! `op constant;` means that the result cannot have a gradient because it is `bool` or an index.
//! `op refused;` means that there is no derivative, so the op is an error for a tensor that requires a
//! gradient. `op(x; dim) -> y by function;` means that a function records the op.

/// The result of a fused gradient.
pub(crate) fn kernel(gradient: namegrad_core::NamedTensor) -> crate::Tensor {
    crate::Tensor::constant(gradient)
}

// In the order in which rustdoc shows the methods of `Tensor`. The blank lines keep rustfmt from sorting
// them.
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

pub(crate) mod conv;

pub(crate) mod pool;

pub(crate) mod image;

pub(crate) mod norm;

pub(crate) mod attention;

pub(crate) mod recurrent;

pub(crate) mod loss;

/// The tables of core, each with a module of the same name here. `tables! { unary }` becomes
///
/// ```ignore
/// pub(crate) const OPS: &[&[&crate::registry::Op]] = &[unary::OPS];
/// pub(crate) mod chained { pub use super::unary::Chained as _; }
/// ```
macro_rules! tables {
    ($($table:ident)*) => {
        pub(crate) const OPS: &[&[&crate::registry::Op]] = &[$($table::OPS),*];
        #[allow(unreachable_pub)] // public through another path
        pub(crate) mod chained {
            $(pub use super::$table::Chained as _;)*
        }
    };
}
namegrad_core::op_tables! { tables }

/// Returns an error if an input without a derivative requires a gradient, so that nothing is detached
/// silently.
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
