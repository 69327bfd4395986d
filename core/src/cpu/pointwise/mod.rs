//! The loops of elementwise ops. The formula of a row is compiled for the dtypes that kernels compute in:
//! `f32`, `f64`, `i64` and `bool` (`loops`), and run over operands of any strides and dtypes (`drive`).
//! Operands that are not contiguous or have another dtype are gathered first. So a loop sees only contiguous
//! elements of one dtype, and there is one loop for each op and dtype, not for each combination.

mod drive;
mod loops;

pub(crate) use drive::{Job, LoopInput, MOST, drive, run_direct};
pub(crate) use loops::{
    AnyOp, BoolOp, ElementLoop, FloatLoops, FloatOp, IntOp, booleans, halves, integers, long, moving, plain,
    scalar, wide,
};
