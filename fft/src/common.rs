//! What most files of this crate use.

pub(crate) use crate::pair::{AnyAxes, AnyAxis, Axes, Axis, Found, RealAxes, RealAxis, pair_dim};
pub(crate) use crate::stage::{Direction, Norm, Points, Transformed, floats, transformed};
pub(crate) use namegrad_autograd::chain::*;
pub(crate) use namegrad_autograd::{Kept, Op, Tensor};
pub(crate) use namegrad_core::args::{NewName, OfDims, Positions, SizesByDim, Value};
pub(crate) use namegrad_core::kernels::{elements, elements_mut};
pub(crate) use namegrad_core::{
    Argument, DType, Device, Dim, Dims, Error, ErrorKind, IntoDim, IntoDims, Name, NamedTensor, Names,
    Result, default_dtype,
};
pub(crate) use namegrad_macros::{Words, functional};
pub(crate) use std::collections::HashSet;
pub(crate) use std::ops::Range;
pub(crate) use std::sync::Arc;
