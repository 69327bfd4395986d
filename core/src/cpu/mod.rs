//! The CPU's kernels: the one seam behind which a second device could stand.
//!
//! Nothing here knows names or derivatives. `pointwise` runs the loops of ops by element, `convert` casts, `copy` packs strided views,
//! `matmul` multiplies, `fold` reduces, `order` compares, `rows` has softmax and its kin, [`math`] the functions of one number, [`optimizer_steps`] the updates of
//! parameters.

pub(crate) mod convert;
pub(crate) mod copy;
pub(crate) mod fold;
pub(crate) mod integer;
pub mod math;
pub(crate) mod matmul;
pub mod optimizer_steps;
pub(crate) mod order;
pub(crate) mod pointwise;
pub(crate) mod rows;
pub mod simd;
pub(crate) mod threads;
