//! Tensors from data, and conversion from and to files and `ndarray`.

use crate::create::TensorOptions;
use crate::tensor::Tensor;
#[cfg(doc)]
use namegrad_core::ErrorKind;
use namegrad_core::{Data, Element, IntoShape, NamedTensor, Result};
use namegrad_io::Files;
use std::path::Path;

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
    pub fn from_slice<T: Element>(data: &[T], shape: impl IntoShape) -> Result<Tensor> {
        NamedTensor::from_slice(data, shape).map(Tensor::constant)
    }

    /// A tensor with the elements of an `ndarray` array.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn from_ndarray<T: Element, D: ndarray::Dimension>(
        array: ndarray::ArrayView<'_, T, D>,
    ) -> Result<Tensor> {
        NamedTensor::from_ndarray(array).map(Tensor::constant)
    }

    /// Writes the values to a file, or replaces the file. `.safetensors` keeps the dtype and names; `.npy` is
    /// NumPy's format, which has no names and no `bf16`. If writing fails, an existing file is unchanged.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// # let folder = std::env::temp_dir().join(format!("namegrad-save-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// let x = Tensor::rand([("N", 2), ("C", 3)])?;
    /// x.save(folder.join("x.safetensors"))?;
    /// assert_eq!(Tensor::load(folder.join("x.safetensors"))?, x);
    /// x.save(folder.join("x.npy"))?;
    /// assert_eq!(Tensor::load(folder.join("x.npy"))?.refine_names(["N", "C"])?, x);
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Value`] for any other extension, [`ErrorKind::DType`] for `bf16` in a
    /// `.npy` file.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.value().save(path)
    }

    /// Reads a tensor from a `.npy` file, or from a `.safetensors` file with a single tensor. The tensor
    /// requires no gradient.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Format`] if the content does not follow the format or does not have
    /// exactly one tensor, [`ErrorKind::Value`] for any other extension, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn load(path: impl AsRef<Path>) -> Result<Tensor> {
        NamedTensor::load(path).map(Tensor::constant)
    }

    /// The elements as an `ndarray` array.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the dtype is not that of `T`.
    #[track_caller]
    pub fn to_ndarray<T: Element>(&self) -> Result<ndarray::ArrayD<T>> {
        self.value().to_ndarray()
    }
}
