//! Tensors from data, and conversion from and to `ndarray` with the feature of this name.

use crate::create::TensorOptions;
use crate::tensor::Tensor;
#[cfg(doc)]
use namegrad_core::ErrorKind;
use namegrad_core::{Data, Element, IntoShape, NamedTensor, Result};

/// # New tensors from data
impl Tensor {
    /// A tensor from a number or from nested arrays or `Vec`s. Floats become the default dtype, integers
    /// `i64`.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0], [3.0, 4.5]])?;
    /// assert_eq!(x.to_string(), "tensor([[1.0000, 2.0000],\n        [3.0000, 4.5000]])");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if rows differ in length.
    #[track_caller]
    pub fn new(data: impl Data) -> Result<Tensor> {
        TensorOptions::new().tensor(data)
    }

    /// A tensor with these elements, in row-major order, of their dtype: `f64` numbers make a tensor of
    /// `F64`, where [`new`](Self::new) gives the default dtype.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the number of elements does not match the shape.
    #[track_caller]
    #[inline(never)]
    pub fn from_slice<T: Element>(data: &[T], shape: impl IntoShape) -> Result<Tensor> {
        NamedTensor::from_slice(data, shape).map(Tensor::constant)
    }
}

#[cfg(feature = "ndarray")]
impl Tensor {
    /// A tensor with the elements of an `ndarray` array. Needs the feature `ndarray`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn from_ndarray<T: Element, D: ndarray::Dimension>(
        array: ndarray::ArrayView<'_, T, D>,
    ) -> Result<Tensor> {
        NamedTensor::from_ndarray(array).map(Tensor::constant)
    }

    /// The elements as an `ndarray` array. Needs the feature `ndarray`.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the dtype is not that of `T`.
    #[track_caller]
    pub fn to_ndarray<T: Element>(&self) -> Result<ndarray::ArrayD<T>> {
        self.value().to_ndarray()
    }
}
