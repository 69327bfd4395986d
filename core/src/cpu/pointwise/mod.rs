//! Ops by element, the loops: the formula of a row compiled once for each dtype that is computed in
//! (`loops`), and driven over operands of any strides and dtypes (`drive`). What is not contiguous, or not of
//! the dtype computed in, is gathered first, so that a loop only ever sees contiguous elements of one dtype,
//! and there is one loop per op and dtype, not one per combination.

mod drive;
mod loops;

pub(crate) use drive::{Job, Source, drive, run_direct};
pub(crate) use loops::{BoolOp, FloatOp, IntOp, Loop, bool_loop, float_loops, int_loops};
