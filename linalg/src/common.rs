//! What most files of this crate use.

pub(crate) use crate::matrices::{Matrices, fault, named, vectors_of};
pub(crate) use crate::values;
pub(crate) use namegrad_autograd::chain::*;
pub(crate) use namegrad_autograd::options::*;
pub(crate) use namegrad_autograd::{Kept, Numbers, Op, Tensor, TensorOptions};
pub(crate) use namegrad_core::args::Value;
pub(crate) use namegrad_core::{
    DType, Device, Element, Error, ErrorKind, Name, NamedTensor, Names, Result, Triangle, keep,
};
pub(crate) use namegrad_macros::methods;
