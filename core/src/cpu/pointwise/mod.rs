//! The loops of elementwise ops. The formula of a row is compiled once for each dtype that kernels compute in
//! (`loops`), and run over operands of any strides and dtypes (`drive`). Operands that are not contiguous or
//! have another dtype are gathered first. So a loop sees only contiguous elements of one dtype, and there is
//! one loop for each op and dtype, not for each combination.

mod drive;
mod loops;

pub(crate) use drive::{Job, Source, drive, run_direct};
pub(crate) use loops::{BoolOp, FloatOp, IntOp, Loop, bool_loop, float_loops, int_loops};
