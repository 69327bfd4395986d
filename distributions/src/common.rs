//! What most files of this crate use.

pub(crate) use crate::distribution::{Distribution, DistributionExt};
pub(crate) use crate::frame::{Frame, expanded, moved_last, no_dims, renamed};
pub(crate) use crate::parameters::{check, floats, parameters, unified, with_events};
pub(crate) use crate::support::Support;
pub(crate) use crate::{random, special};
pub(crate) use namegrad_autograd::chain::*;
pub(crate) use namegrad_autograd::options::*;
pub(crate) use namegrad_autograd::plain::TensorOrNumber;
pub(crate) use namegrad_autograd::{Cx, Kept, Op, Operand, Tensor, TensorOptions, called_here, no_grad};
pub(crate) use namegrad_core::{
    Argument, DType, Dim, Dims, Error, ErrorKind, IntoShape, Name, NamedTensor, Names, Result, Shape, Sizes,
    Triangle, default_dtype, keep,
};
pub(crate) use std::any::Any;
pub(crate) use std::cell::Cell;
pub(crate) use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI, SQRT_2, TAU};
pub(crate) use std::fmt;
pub(crate) use std::ops::Range;
pub(crate) use std::panic::Location;
pub(crate) use std::sync::Arc;

/// Euler's constant `γ`.
pub(crate) const EULER: f64 = 0.577_215_664_901_532_9;
