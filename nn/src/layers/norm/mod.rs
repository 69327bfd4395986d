//! Normalizations, and what they share: a weight and a bias.

mod channels;
mod group;
mod layer;
mod response;

pub use {channels::*, group::*, layer::*, response::*};

use super::*;
use namegrad_core::Dims;

/// A weight of ones and a bias of zeros, where a layer has them.
#[track_caller]
fn affine_of(
    layer: &'static str,
    dims: &[Named],
    dtype: DType,
    [weight, bias]: [bool; 2],
) -> Result<[Option<Parameter>; 2]> {
    check_dtype(layer, dtype)?;
    Ok([
        if weight { Some(Parameter::new(filled(layer, dims, 1.0, dtype)?)?) } else { None },
        if bias { Some(Parameter::new(filled(layer, dims, 0.0, dtype)?)?) } else { None },
    ])
}
