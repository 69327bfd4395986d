//! New tensors with the sizes or the dtype of an existing one. They are constants: no gradient flows through
//! them.

use crate::Tensor;
use namegrad_core::{DType, NamedTensor};
use namegrad_macros::composed;

composed! { like;
    //! # New tensors like this one
    /// A tensor of zeros with the sizes, names and dtype of this tensor.
    zeros_like (x; dtype: Option<DType> = None) constant;
    /// A tensor of ones with the sizes, names and dtype of this tensor.
    ones_like (x; dtype: Option<DType> = None) constant;
    /// A tensor with the sizes, names and dtype of this tensor, for values to be written later; it has zeros.
    empty_like (x; dtype: Option<DType> = None) constant;
    /// A tensor filled with `fill_value`, with the sizes, names and dtype of this tensor.
    full_like (x; fill_value: Scalar, dtype: Option<DType> = None) constant;
    /// Uniform random numbers in [0, 1), with the sizes, names and dtype of this tensor.
    rand_like (x; dtype: Option<DType> = None) on floats constant;
    /// Normal random numbers with the sizes, names and dtype of this tensor.
    randn_like (x; dtype: Option<DType> = None) on floats constant;
    /// Uniformly distributed random integers in [`low`, `high`), with the sizes, names and dtype of this
    /// tensor.
    ///
    /// # Errors
    /// `Value` unless `low < high`.
    randint_like (x; low: isize or 0, high: isize, dtype: Option<DType> = None) constant => {
        let drawn = NamedTensor::randint(low as i64, high as i64, x.shape())?;
        drawn.to(dtype.unwrap_or(x.dtype())).map(Tensor::constant)
    }
    /// A tensor of zeros with the given sizes and the dtype of this tensor.
    new_zeros (x; size: Shape, dtype: Option<DType> = None) names called size constant;
    /// A tensor of ones with the given sizes and the dtype of this tensor.
    new_ones (x; size: Shape, dtype: Option<DType> = None) names called size constant;
    /// A tensor with the given sizes and the dtype of this tensor, for values to be written later; it has
    /// zeros.
    new_empty (x; size: Shape, dtype: Option<DType> = None) names called size constant
        => kernels::new_zeros(x, size, dtype);
    /// A tensor filled with `fill_value`, with the given sizes and the dtype of this tensor.
    new_full (x; size: Shape, fill_value: Scalar, dtype: Option<DType> = None) names called size constant;
}

mod kernels {
    use super::*;
    use namegrad_core::args::{self, OpenShape};
    use namegrad_core::{Result, Scalar};

    #[track_caller]
    pub(super) fn zeros_like(x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        full_like(x, Scalar::Int(0), dtype)
    }

    #[track_caller]
    pub(super) fn ones_like(x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        full_like(x, Scalar::Int(1), dtype)
    }

    #[track_caller]
    pub(super) fn empty_like(x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        // Zeros: reading uninitialized memory is undefined behavior, and fresh pages are zero anyway.
        full_like(x, Scalar::Int(0), dtype)
    }

    #[track_caller]
    pub(super) fn full_like(x: &Tensor, fill_value: Scalar, dtype: Option<DType>) -> Result<Tensor> {
        x.value().full_like(fill_value, dtype.unwrap_or(x.dtype())).map(Tensor::constant)
    }

    #[track_caller]
    pub(super) fn rand_like(x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        let dtype = dtype.unwrap_or(x.dtype());
        NamedTensor::uniform("rand_like", x.shape(), 0.0, 1.0, dtype).map(Tensor::constant)
    }

    #[track_caller]
    pub(super) fn randn_like(x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        let dtype = dtype.unwrap_or(x.dtype());
        NamedTensor::normal("randn_like", x.shape(), 0.0, 1.0, dtype).map(Tensor::constant)
    }

    #[track_caller]
    pub(super) fn new_zeros(x: &Tensor, size: OpenShape, dtype: Option<DType>) -> Result<Tensor> {
        new_full(x, size, Scalar::Int(0), dtype)
    }

    #[track_caller]
    pub(super) fn new_ones(x: &Tensor, size: OpenShape, dtype: Option<DType>) -> Result<Tensor> {
        new_full(x, size, Scalar::Int(1), dtype)
    }

    #[track_caller]
    pub(super) fn new_full(
        x: &Tensor,
        size: OpenShape,
        fill_value: Scalar,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        let dtype = dtype.unwrap_or(x.dtype());
        NamedTensor::full_as("new_full", args::Shape(size), fill_value, dtype).map(Tensor::constant)
    }
}
