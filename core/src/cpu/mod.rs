//! The kernels for the CPU. A second device would be added beside this folder.
//!
//! Nothing here knows about names or derivatives, and nothing calls back to the ops. The loops get slices,
//! and sizes that the slices have room for. `pointwise` runs the loops of elementwise ops, `convert` casts,
//! `copy` packs strided views, `fill` makes elements from their positions, `join` joins tensors, `index`
//! moves elements, `matmul` multiplies, `conv` convolves, `pool` has maxima and means of windows, `resample`
//! and `sample` interpolate, `fold` reduces, `scan` has cumulative sums, `order` compares, `count` counts and
//! searches, `softmax` has softmax and functions of the same sums, `norm` and `standardize` normalize,
//! `attention` and `recurrent` have layers of those names, `linalg` decomposes matrices, [`update`] runs the
//! steps of optimizers, and [`vectors`] has sums of many vectors. They share `simd`, which finds the widest vectors, `threads`, `room`, which is memory
//! to be written, `row`, the sums of a row, and the functions of one number in [`math`] and `integer`.

pub(crate) mod attention;
pub(crate) mod conv;
pub(crate) mod convert;
pub(crate) mod copy;
pub(crate) mod count;
pub(crate) mod fill;
pub(crate) mod fold;
pub(crate) mod index;
pub(crate) mod integer;
pub(crate) mod join;
pub(crate) mod linalg;
pub mod math;
pub(crate) mod matmul;
pub(crate) mod norm;
pub(crate) mod order;
pub(crate) mod pointwise;
pub(crate) mod pool;
pub(crate) mod recurrent;
pub(crate) mod resample;
pub(crate) mod room;
mod row;
pub(crate) mod sample;
pub(crate) mod scan;
pub(crate) mod simd;
pub(crate) mod softmax;
pub(crate) mod standardize;
pub(crate) mod threads;
pub mod update;
pub mod vectors;
