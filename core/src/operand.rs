//! The other operand of an elementwise op: a tensor or a number.

use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::tensor::NamedTensor;
use std::borrow::Cow;

/// The other operand of `add`, `mul`, `lt`...: a tensor, a reference to one, or a number.
pub trait Operand {
    /// The operand as a tensor. A number becomes a 0-d tensor that does not widen a dtype of its category.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[track_caller]
    fn operand(&self) -> Result<Cow<'_, NamedTensor>>;

    /// The operand for an op with a tensor of `dtype`, so that a number with an `f64` tensor is not rounded
    /// to the default dtype.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[inline]
    #[track_caller]
    fn operand_beside(&self, _dtype: DType) -> Result<Cow<'_, NamedTensor>> {
        self.operand()
    }
}

impl Operand for NamedTensor {
    #[inline]
    fn operand(&self) -> Result<Cow<'_, NamedTensor>> {
        Ok(Cow::Borrowed(self))
    }
}

/// Optional tensors of options: `BincountOptions::new().weights(&x)`.
impl<'a> From<&'a NamedTensor> for Cow<'a, NamedTensor> {
    fn from(x: &'a NamedTensor) -> Cow<'a, NamedTensor> {
        Cow::Borrowed(x)
    }
}

impl<T: Operand> Operand for &T {
    #[inline]
    #[track_caller]
    fn operand(&self) -> Result<Cow<'_, NamedTensor>> {
        (**self).operand()
    }
    #[inline]
    #[track_caller]
    fn operand_beside(&self, dtype: DType) -> Result<Cow<'_, NamedTensor>> {
        (**self).operand_beside(dtype)
    }
}

/// Plain numbers as operands: `f64` becomes
///
/// ```ignore
/// impl Operand for f64 {
///     fn operand(&self) -> Result<Cow<'_, NamedTensor>> { Ok(Cow::Owned(NamedTensor::number(*self)?)) }
///     fn operand_beside(&self, dtype: DType) -> Result<Cow<'_, NamedTensor>> {
///         Ok(Cow::Owned(NamedTensor::number_beside(*self, dtype)?))
///     }
/// }
/// ```
macro_rules! numbers {
    ($($ty:ty),*) => {$(
        impl Operand for $ty {
            #[inline]
            #[track_caller]
            fn operand(&self) -> Result<Cow<'_, NamedTensor>> { Ok(Cow::Owned(NamedTensor::number(*self)?)) }
            #[inline]
            #[track_caller]
            fn operand_beside(&self, dtype: DType) -> Result<Cow<'_, NamedTensor>> {
                Ok(Cow::Owned(NamedTensor::number_beside(*self, dtype)?))
            }
        }
    )*};
}
numbers!(bool, u8, i8, i16, i32, i64, f32, f64, usize, Scalar);
