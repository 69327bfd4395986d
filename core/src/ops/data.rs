//! Tensors from data, and conversion from and to `ndarray` with the feature of this name.

use crate::args::IntoShape;
use crate::dtype::{Category, DType, Element, Scalar, default_dtype, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::NamedTensor;
use crate::tensor::range::{does_not_fit, fits};
use std::any::TypeId;

impl NamedTensor {
    /// A tensor from a number or from nested arrays or `Vec`s.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if rows differ in length.
    #[track_caller]
    pub fn new(data: impl Data) -> Result<NamedTensor> {
        NamedTensor::new_as(data, None)
    }

    /// [`new`](Self::new) in `dtype`; each number is rounded only once.
    ///
    /// # Errors
    /// Same as `new`.
    #[track_caller]
    pub fn new_as(data: impl Data, dtype: Option<DType>) -> Result<NamedTensor> {
        fn build<D: Data>(data: &D) -> Option<(Vec<usize>, Vec<Scalar>, DType)> {
            let mut numbers = Vec::new();
            data.collect(&mut numbers).then(|| (data.sizes(), numbers, D::dtype()))
        }
        let Some((sizes, numbers, own)) = build(&data) else {
            let message = "expected rows of equal length, as in [[1.0, 2.0], [3.0, 4.0]]";
            return Err(Error::new(ErrorKind::Shape, "Tensor::new", message));
        };
        let dtype = dtype.unwrap_or(own);
        if dtype.category() == Category::Integer {
            let far = |number: &&Scalar| matches!(number, Scalar::Float(_)) && !fits(**number, DType::I64);
            if let Some(far) = numbers.iter().find(far) {
                return Err(does_not_fit("Tensor::new", None, *far, dtype));
            }
        }
        NamedTensor::of_numbers("tensor", &numbers, sizes.into_shape()?, dtype)
    }

    /// A tensor with these elements, in row-major order.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the number of elements does not match the shape, and the errors of the shape.
    #[track_caller]
    #[inline(never)]
    pub fn from_slice<T: Element>(data: &[T], shape: impl IntoShape) -> Result<NamedTensor> {
        NamedTensor::of_elements("from_slice", data, shape.into_shape()?)
    }
}

#[cfg(feature = "ndarray")]
impl NamedTensor {
    /// A tensor with the elements of an `ndarray` array, and dims in the order of its axes. Needs the feature
    /// `ndarray`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn from_ndarray<T: Element, D: ndarray::Dimension>(
        array: ndarray::ArrayView<'_, T, D>,
    ) -> Result<NamedTensor> {
        let sizes = array.shape().to_vec();
        match array.as_slice() {
            Some(data) => NamedTensor::from_slice(data, sizes),
            None => NamedTensor::from_slice(&crate::list::<_, Vec<T>>(array.iter().copied()), sizes),
        }
    }

    /// The elements as an `ndarray` array. Needs the feature `ndarray`.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the dtype is not that of `T`, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn to_ndarray<T: Element>(&self) -> Result<ndarray::ArrayD<T>> {
        if self.dtype() != T::DTYPE {
            let message =
                format!("the elements are of {}, and those of the array of {}", self.dtype(), T::DTYPE);
            return Err(Error::about(&[self], ErrorKind::DType, "to_ndarray", message)
                .with_repair(crate::tensor::explicit(T::DTYPE, "to_ndarray")));
        }
        let data = self.contiguous()?.as_slice::<T>()?.to_vec();
        let caller = std::panic::Location::caller();
        let invalid = |error: ndarray::ShapeError| {
            Error::new(ErrorKind::Shape, "to_ndarray", format!("{error}")).at(caller)
        };
        ndarray::ArrayD::from_shape_vec(self.sizes().to_vec(), data).map_err(invalid)
    }
}

/// Data for a tensor: numbers, and nested arrays and `Vec`s of numbers. Floats become the default dtype and
/// integers `i64`, as in PyTorch; use [`NamedTensor::from_slice`] to keep the type of the data.
pub trait Data {
    /// The sizes, outermost first.
    fn sizes(&self) -> Vec<usize>;
    /// Appends the numbers in row-major order. Returns `false` if the rows differ in length.
    fn collect(&self, into: &mut Vec<Scalar>) -> bool;
    /// The dtype of the tensor.
    fn dtype() -> DType;
}

crate::for_types!(bool, u8, i8, i16, i32, i64, u16, u32, usize, f32, f64, half::f16, half::bf16 => Number {
    impl Data for Number {
        fn sizes(&self) -> Vec<usize> {
            Vec::new()
        }
        fn collect(&self, into: &mut Vec<Scalar>) -> bool {
            into.push((*self).into());
            true
        }
        fn dtype() -> DType {
            dtype_of_literals::<Number>()
        }
    }
});

/// The dtype of a tensor that is made of numbers of this type: literals are `i32` and `f64` in Rust, and `i64`
/// and the default dtype in tensors. Types without a dtype, such as `u32`, become `i64`.
pub(crate) fn dtype_of_literals<T: 'static>() -> DType {
    dtype_of_type(TypeId::of::<T>())
}

/// [`dtype_of_literals`], compiled once.
fn dtype_of_type(ty: TypeId) -> DType {
    let is = |dtype: &DType| dispatch!(*dtype, E => TypeId::of::<E>()) == ty;
    match DType::ALL.into_iter().find(is) {
        None | Some(DType::I32) => DType::I64,
        Some(DType::F32 | DType::F64) => default_dtype(),
        Some(dtype) => dtype,
    }
}

impl<D: Data> Data for [D] {
    fn sizes(&self) -> Vec<usize> {
        crate::list(std::iter::once(self.len()).chain(self.first().map(D::sizes).unwrap_or_default()))
    }
    fn collect(&self, into: &mut Vec<Scalar>) -> bool {
        let first = self.first().map(D::sizes);
        self.iter().all(|row| Some(row.sizes()) == first && row.collect(into))
    }
    fn dtype() -> DType {
        D::dtype()
    }
}

impl<D: Data, const K: usize> Data for [D; K] {
    fn sizes(&self) -> Vec<usize> {
        self.as_slice().sizes()
    }
    fn collect(&self, into: &mut Vec<Scalar>) -> bool {
        self.as_slice().collect(into)
    }
    fn dtype() -> DType {
        D::dtype()
    }
}

impl<D: Data> Data for Vec<D> {
    fn sizes(&self) -> Vec<usize> {
        self.as_slice().sizes()
    }
    fn collect(&self, into: &mut Vec<Scalar>) -> bool {
        self.as_slice().collect(into)
    }
    fn dtype() -> DType {
        D::dtype()
    }
}

impl<D: Data + ?Sized> Data for &D {
    fn sizes(&self) -> Vec<usize> {
        (**self).sizes()
    }
    fn collect(&self, into: &mut Vec<Scalar>) -> bool {
        (**self).collect(into)
    }
    fn dtype() -> DType {
        D::dtype()
    }
}
