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

/// The results of a fused joint gradient.
pub(crate) fn kernels<const N: usize>(
    mut gradients: [Option<namegrad_core::NamedTensor>; N],
) -> [Option<crate::Tensor>; N] {
    let mut made = [const { None }; N];
    for (made, gradient) in made.iter_mut().zip(&mut gradients) {
        *made = gradient.take().map(kernel);
    }
    made
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

/// The ops of all tables.
pub(crate) static OPS: &[&[&crate::registry::Op]] = &[
    unary::OPS,
    binary::OPS,
    reduce::OPS,
    along::OPS,
    pick::OPS,
    count::OPS,
    shape::OPS,
    slice::OPS,
    index::OPS,
    mask::OPS,
    join::OPS,
    matmul::OPS,
    linalg::OPS,
    conv::OPS,
    pool::OPS,
    image::OPS,
    norm::OPS,
    attention::OPS,
    recurrent::OPS,
    loss::OPS,
];

/// The ops as methods of the result of another op.
#[allow(unreachable_pub)] // public through another path
pub(crate) mod chained {
    pub use super::{
        along::Chained as _, attention::Chained as _, binary::Chained as _, conv::Chained as _,
        count::Chained as _, image::Chained as _, index::Chained as _, join::Chained as _,
        linalg::Chained as _, loss::Chained as _, mask::Chained as _, matmul::Chained as _,
        norm::Chained as _, pick::Chained as _, pool::Chained as _, recurrent::Chained as _,
        reduce::Chained as _, shape::Chained as _, slice::Chained as _, unary::Chained as _,
    };
}

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
