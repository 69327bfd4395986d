//! The other operand of an elementwise op: a tensor or a number.

use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::tensor::NamedTensor;
use std::borrow::Cow;

/// The other operand of `add`, `mul`, `lt`...: a tensor, a reference to one, or a number.
pub trait Operand {
    /// The operand as it was passed.
    #[doc(hidden)]
    fn either(&self) -> TensorOrNumber<'_>;

    /// The operand as a tensor. A number becomes a 0-d tensor that does not widen a dtype of its category.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[track_caller]
    fn operand(&self) -> Result<Cow<'_, NamedTensor>> {
        self.either().tensor(DType::Bool)
    }

    /// The operand for an op with a tensor of `dtype`, so that a number with an `f64` tensor is not rounded
    /// to the default dtype.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[track_caller]
    fn operand_beside(&self, dtype: DType) -> Result<Cow<'_, NamedTensor>> {
        self.either().tensor(dtype)
    }
}

/// An operand as it was passed: the one type that operands of all types become, so that ops are compiled once.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum TensorOrNumber<'a> {
    /// A tensor.
    Tensor(&'a NamedTensor),
    /// A number.
    Number(Scalar),
}

impl<'a> TensorOrNumber<'a> {
    /// The tensor, or the number as a tensor for an op with a tensor of `dtype`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[track_caller]
    pub(crate) fn tensor(self, dtype: DType) -> Result<Cow<'a, NamedTensor>> {
        match self {
            TensorOrNumber::Tensor(tensor) => Ok(Cow::Borrowed(tensor)),
            TensorOrNumber::Number(number) => Ok(Cow::Owned(NamedTensor::number_beside(number, dtype)?)),
        }
    }

    /// [`tensor`](Self::tensor), for which memory is provided: a number as a tensor is put in `place`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[inline]
    #[track_caller]
    pub fn tensor_in<'p>(self, dtype: DType, place: &'p mut Option<NamedTensor>) -> Result<&'p NamedTensor>
    where
        'a: 'p,
    {
        match self {
            TensorOrNumber::Tensor(tensor) => Ok(tensor),
            TensorOrNumber::Number(number) => Ok(place.insert(NamedTensor::number_beside(number, dtype)?)),
        }
    }

    /// The dtype of the tensor, or that which a number has alone.
    ///
    /// # Errors
    /// None; a parameter on the tape can have one.
    pub fn dtype(self) -> Result<DType> {
        Ok(match self {
            TensorOrNumber::Tensor(tensor) => tensor.dtype(),
            TensorOrNumber::Number(number) => number.dtype(),
        })
    }
}

impl Operand for NamedTensor {
    #[inline]
    fn either(&self) -> TensorOrNumber<'_> {
        TensorOrNumber::Tensor(self)
    }
}

/// Optional tensors of options: `BincountOptions::new().weights(&x)`.
impl<'a> From<&'a NamedTensor> for Cow<'a, NamedTensor> {
    fn from(x: &'a NamedTensor) -> Cow<'a, NamedTensor> {
        Cow::Borrowed(x)
    }
}

impl Operand for Scalar {
    #[inline]
    fn either(&self) -> TensorOrNumber<'_> {
        TensorOrNumber::Number(*self)
    }
}

impl<T: Operand> Operand for &T {
    #[inline]
    fn either(&self) -> TensorOrNumber<'_> {
        (**self).either()
    }
}

crate::for_types!(bool, u8, i8, i16, i32, i64, f32, f64, usize => Number {
    impl Operand for Number {
        #[inline]
        fn either(&self) -> TensorOrNumber<'_> {
            TensorOrNumber::Number(Scalar::from(*self))
        }
    }
});
