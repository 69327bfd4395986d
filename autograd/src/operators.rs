//! What may stand beside a tensor, and the operators `+ - * /`, unary `-` and `+=`: they panic where the
//! methods give an error.

use crate::tensor::Tensor;
use namegrad_core::{DType, NamedTensor, Result, Scalar};
use std::borrow::Cow;
use std::ops;

/// The other operand of `add`, `mul`, `lt`...: a tensor, a reference to one, or a number.
pub trait Operand {
    /// The operand as a tensor; a number widens no dtype within its category.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](namegrad_core::ErrorKind::OutOfMemory).
    #[track_caller]
    fn operand(&self) -> Result<Cow<'_, Tensor>>;

    /// The operand beside a tensor of `dtype`, so that a number beside `f64` is not rounded to the default
    /// dtype.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](namegrad_core::ErrorKind::OutOfMemory).
    #[inline]
    #[track_caller]
    fn operand_beside(&self, _dtype: DType) -> Result<Cow<'_, Tensor>> {
        self.operand()
    }
}

impl Operand for Tensor {
    #[inline]
    fn operand(&self) -> Result<Cow<'_, Tensor>> {
        Ok(Cow::Borrowed(self))
    }
}

impl<T: Operand> Operand for &T {
    #[inline]
    #[track_caller]
    fn operand(&self) -> Result<Cow<'_, Tensor>> {
        (**self).operand()
    }
    #[inline]
    #[track_caller]
    fn operand_beside(&self, dtype: DType) -> Result<Cow<'_, Tensor>> {
        (**self).operand_beside(dtype)
    }
}

macro_rules! numbers {
    ($($ty:ty),*) => {$(
        impl Operand for $ty {
            #[inline]
            #[track_caller]
            fn operand(&self) -> Result<Cow<'_, Tensor>> { Ok(Cow::Owned(Tensor::constant(NamedTensor::number(*self)?))) }
            #[inline]
            #[track_caller]
            fn operand_beside(&self, dtype: DType) -> Result<Cow<'_, Tensor>> {
                Ok(Cow::Owned(Tensor::constant(NamedTensor::number_beside(*self, dtype)?)))
            }
        }
    )*};
}
numbers!(bool, u8, i8, i16, i32, i64, f32, f64, usize, Scalar);

/// Unwraps the result of an operator.
#[inline]
#[track_caller]
fn or_panic(result: Result<Tensor>) -> Tensor {
    match result {
        Ok(tensor) => tensor,
        Err(error) => panic!("{error}"),
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident, $assign_trait:ident $assign:ident $in_place:ident;)*) => {$(
        operators!(@ $trait $method; &Tensor, Tensor);
        impl<T: Operand> ops::$assign_trait<T> for Tensor {
            #[track_caller]
            fn $assign(&mut self, other: T) {
                if let Err(error) = self.$in_place(other) {
                    panic!("{error}");
                }
            }
        }
        // One float and one integer type, so that the type of a literal is never in doubt.
        operators!(number $trait $method; f64, i32);
    )*};
    (@ $trait:ident $method:ident; $($left:ty),*) => {$(
        impl<T: Operand> ops::$trait<T> for $left {
            type Output = Tensor;
            #[inline]
            #[track_caller]
            fn $method(self, other: T) -> Tensor { or_panic(Tensor::$method(&self, other)) }
        }
    )*};
    (number $trait:ident $method:ident; $($number:ty),*) => {$(
        operators!(number $trait $method $number, &Tensor);
        operators!(number $trait $method $number, Tensor);
    )*};
    (number $trait:ident $method:ident $number:ty, $right:ty) => {
        impl ops::$trait<$right> for $number {
            type Output = Tensor;
            #[inline]
            #[track_caller]
            fn $method(self, other: $right) -> Tensor {
                // No closure: the error is to name the caller's line.
                or_panic(match self.operand_beside(other.dtype()) {
                    Ok(number) => Tensor::$method(&number, &other),
                    Err(error) => Err(error),
                })
            }
        }
    };
}
operators! {
    Add add, AddAssign add_assign add_;
    Sub sub, SubAssign sub_assign sub_;
    Mul mul, MulAssign mul_assign mul_;
    Div div, DivAssign div_assign div_;
}

impl ops::Neg for &Tensor {
    type Output = Tensor;
    #[inline]
    #[track_caller]
    fn neg(self) -> Tensor {
        or_panic(Tensor::neg(self))
    }
}

impl ops::Neg for Tensor {
    type Output = Tensor;
    #[inline]
    #[track_caller]
    fn neg(self) -> Tensor {
        or_panic(Tensor::neg(&self))
    }
}
