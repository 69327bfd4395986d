//! The operators `+ - * /`, unary `-` and `+=`, which panic where the methods return an error, and the types
//! that can be operands.
//!
//! The left operand of an operator is a tensor, a [`Parameter`], an `f64` or an `i32`. There is only one
//! float and one integer type, so that the compiler can infer the type of a literal: if `f32` were also
//! allowed, `(2.0 * &x).sum(..)` would not compile, because `2.0` could be either. Put an `f32` variable on
//! the right, `&x * scale`, or convert it to `f64` first, `f64::from(scale) * &x`.
//!
//! An operator on an owned tensor writes the result into its buffer if the buffer is not shared, no gradient
//! is recorded, and the result has the sizes, names and dtype of the tensor.

use crate::parameter::Parameter;
use crate::plain::{Handle, TensorOrNumber};
use crate::tape::is_forward;
use crate::tensor::Tensor;
use namegrad_core::{DType, Result, Scalar};
use std::borrow::Cow;
use std::ops;
use std::rc::Rc;
use std::sync::Arc;

/// An argument in place of a tensor, such as `w` in `x.matmul(&w)`: a tensor, a [`Parameter`], or a reference
/// to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor",
    label = "expected a tensor, a parameter, or a reference to one",
    note = "a `Result` must be unwrapped first, with `?`; `&Tensor::new(..)?` makes a tensor of numbers"
)]
pub trait AsTensor {
    /// The tensor or the parameter.
    #[doc(hidden)]
    fn handle(&self) -> Handle<'_>;

    /// The tensor as it is now.
    ///
    /// # Panics
    /// As [`Parameter::tensor`].
    #[track_caller]
    fn as_tensor(&self) -> Cow<'_, Tensor> {
        match self.handle() {
            Handle::Tensor(tensor) => Cow::Borrowed(tensor),
            Handle::Parameter(parameter) => Cow::Owned(parameter.tensor()),
        }
    }
}

#[diagnostic::do_not_recommend]
impl AsTensor for Tensor {
    #[inline]
    fn handle(&self) -> Handle<'_> {
        Handle::Tensor(self)
    }
}

#[diagnostic::do_not_recommend]
impl AsTensor for Parameter {
    #[inline]
    fn handle(&self) -> Handle<'_> {
        Handle::Parameter(self)
    }
}

#[diagnostic::do_not_recommend]
impl AsTensor for Cow<'_, Tensor> {
    #[inline]
    fn handle(&self) -> Handle<'_> {
        Handle::Tensor(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: AsTensor> AsTensor for Box<T> {
    #[inline]
    fn handle(&self) -> Handle<'_> {
        (**self).handle()
    }
}

#[diagnostic::do_not_recommend]
impl<T: AsTensor> AsTensor for Rc<T> {
    #[inline]
    fn handle(&self) -> Handle<'_> {
        (**self).handle()
    }
}

#[diagnostic::do_not_recommend]
impl<T: AsTensor> AsTensor for Arc<T> {
    #[inline]
    fn handle(&self) -> Handle<'_> {
        (**self).handle()
    }
}

/// Optional tensors of options: `LayerNormOptions::new().weight(&x)`.
impl<'a> From<&'a Tensor> for Cow<'a, Tensor> {
    fn from(x: &'a Tensor) -> Cow<'a, Tensor> {
        Cow::Borrowed(x)
    }
}

/// Optional tensors of options: `LayerNormOptions::new().weight(x.exp()?)`.
impl From<Tensor> for Cow<'_, Tensor> {
    fn from(x: Tensor) -> Self {
        Cow::Owned(x)
    }
}

/// Optional tensors of options: `LayerNormOptions::new().weight(&parameter)`.
impl<'a> From<&'a Parameter> for Cow<'a, Tensor> {
    fn from(parameter: &'a Parameter) -> Cow<'a, Tensor> {
        Cow::Owned(parameter.tensor())
    }
}

#[diagnostic::do_not_recommend]
impl<T: AsTensor> AsTensor for &T {
    #[inline]
    fn handle(&self) -> Handle<'_> {
        (**self).handle()
    }
}

/// The other operand of `add`, `mul`, `lt`...: a tensor, a [`Parameter`], a reference to one, or a number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the operand of a tensor",
    label = "expected a tensor, a parameter, a reference to one, or a number",
    note = "a `Result` must be unwrapped first, with `?`; integers of other types can be cast: `n as i64`"
)]
pub trait Operand {
    /// The operand as it was passed.
    #[doc(hidden)]
    fn either(&self) -> TensorOrNumber<'_>;

    /// The operand as a tensor. A number does not widen a dtype of its category.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](namegrad_core::ErrorKind::OutOfMemory).
    #[track_caller]
    fn operand(&self) -> Result<Cow<'_, Tensor>> {
        self.either().tensor(DType::Bool)
    }

    /// The operand for an op with a tensor of `dtype`, so that a number with an `f64` tensor is not rounded
    /// to the default dtype.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](namegrad_core::ErrorKind::OutOfMemory).
    #[track_caller]
    fn operand_beside(&self, dtype: DType) -> Result<Cow<'_, Tensor>> {
        self.either().tensor(dtype)
    }
}

#[diagnostic::do_not_recommend]
impl Operand for Tensor {
    #[inline]
    fn either(&self) -> TensorOrNumber<'_> {
        TensorOrNumber::Tensor(self)
    }
}

#[diagnostic::do_not_recommend]
impl Operand for Parameter {
    #[inline]
    fn either(&self) -> TensorOrNumber<'_> {
        TensorOrNumber::Parameter(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Operand> Operand for &T {
    #[inline]
    fn either(&self) -> TensorOrNumber<'_> {
        (**self).either()
    }
}

namegrad_core::for_types!(bool, u8, i8, i16, i32, i64, f32, f64, usize, Scalar => Number {
    #[diagnostic::do_not_recommend]
    impl Operand for Number {
        #[inline]
        fn either(&self) -> TensorOrNumber<'_> {
            TensorOrNumber::Number(Scalar::from(*self))
        }
    }
});

/// Unwraps the result of an operator.
#[inline]
#[track_caller]
fn or_panic(result: Result<Tensor>) -> Tensor {
    match result {
        Ok(tensor) => tensor,
        Err(error) => panic!("{error}"),
    }
}

/// Writes the result of an elementwise op into the buffer of `x` if the buffer is not shared, nothing is
/// recorded, and sizes, names and dtype do not change. Otherwise returns `x` unchanged.
#[track_caller]
fn reused(
    mut x: Tensor,
    other: &Tensor,
    divides: bool,
    in_place: fn(&mut Tensor, &Tensor) -> Result<()>,
) -> Result<Result<Tensor, Tensor>> {
    let dtype = x.dtype();
    let stays = x.tracked().is_none()
        && other.tracked().is_none()
        && x.value().shared() == 1
        && x.is_contiguous()
        && x.value().result_type(other.value()) == dtype
        && (!divides || dtype.is_floating_point())
        && fits_into(other, &x)
        && !is_forward();
    if !stays {
        return Ok(Err(x));
    }
    x.detach_(); // a leaf, while nothing is recorded
    in_place(&mut x, other)?;
    Ok(Ok(x))
}

/// Whether the result of an elementwise op on `x` and `other` has the sizes and names of `x`.
fn fits_into(other: &Tensor, x: &Tensor) -> bool {
    let Some(left) = x.ndim().checked_sub(other.ndim()) else { return false };
    let sizes = x.sizes()[left..].iter().zip(other.sizes());
    sizes.into_iter().all(|(own, size)| size == own || *size == 1)
        && (!other.has_names()
            || (0..other.ndim())
                .all(|dim| other.name(dim).is_none() || other.name(dim) == x.name(left + dim)))
}

/// The operators. A row has the trait and its method, the assignment trait and its method, the in-place
/// method, and whether it is a division. `Sub sub, SubAssign sub_assign sub_, false` becomes
///
/// ```ignore
/// impl<T: Operand> ops::Sub<T> for &Tensor {
///     type Output = Tensor;
///     fn sub(self, other: T) -> Tensor {
///         or_panic(Tensor::sub(self, other))
///     }
/// }
/// ```
///
/// and the same for `Tensor`, `Parameter`, `&Parameter` and numbers on the left, and `SubAssign` for
/// `Tensor`.
macro_rules! operators {
    ($($trait:ident $method:ident, $assign_trait:ident $assign:ident $in_place:ident, $divides:literal;)*) => {$(
        impl<T: Operand> ops::$trait<T> for &Tensor {
            type Output = Tensor;
            #[inline]
            #[track_caller]
            fn $method(self, other: T) -> Tensor {
                or_panic(Tensor::$method(self, other))
            }
        }
        impl<T: Operand> ops::$trait<T> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: T) -> Tensor {
                // No closure: the error is to name the caller's line.
                or_panic(match other.operand_beside(self.dtype()) {
                    Ok(other) => owned::$method(self, &other),
                    Err(error) => Err(error),
                })
            }
        }
        impl<T: Operand> ops::$trait<T> for &Parameter {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: T) -> Tensor {
                or_panic(Tensor::$method(&self.tensor(), other))
            }
        }
        impl<T: Operand> ops::$trait<T> for Parameter {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: T) -> Tensor {
                or_panic(Tensor::$method(&self.tensor(), other))
            }
        }
        impl<T: Operand> ops::$assign_trait<T> for Tensor {
            #[track_caller]
            fn $assign(&mut self, other: T) {
                if let Err(error) = self.$in_place(other) {
                    panic!("{error}");
                }
            }
        }
        operators!(number $trait $method; f64, i32);
    )*
    /// The operators on an owned tensor.
    mod owned {
        use super::{Result, Tensor, reused};
        $(
            #[track_caller]
            pub(super) fn $method(x: Tensor, other: &Tensor) -> Result<Tensor> {
                match reused(x, other, $divides, |x, other| x.$in_place(other).map(drop))? {
                    Ok(y) => Ok(y),
                    Err(x) => Tensor::$method(&x, other),
                }
            }
        )*
    }
    };
    (number $trait:ident $method:ident; $($number:ty),*) => {$(
        operators!(number $trait $method $number, &Tensor, |right| right);
        operators!(number $trait $method $number, Tensor, |right| &right);
        operators!(number $trait $method $number, &Parameter, |right| &right.tensor());
        operators!(number $trait $method $number, Parameter, |right| &right.tensor());
    )*};
    (number $trait:ident $method:ident $number:ty, $right:ty, |$given:ident| $tensor:expr) => {
        impl ops::$trait<$right> for $number {
            type Output = Tensor;
            #[inline]
            #[track_caller]
            fn $method(self, $given: $right) -> Tensor {
                let other: &Tensor = $tensor;
                // No closure: the error is to name the caller's line.
                or_panic(match self.operand_beside(other.dtype()) {
                    Ok(number) => Tensor::$method(&number, other),
                    Err(error) => Err(error),
                })
            }
        }
    };
}
operators! {
    Add add, AddAssign add_assign add_, false;
    Sub sub, SubAssign sub_assign sub_, false;
    Mul mul, MulAssign mul_assign mul_, false;
    Div div, DivAssign div_assign div_, true;
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
    fn neg(mut self) -> Tensor {
        if self.tracked().is_some() {
            return or_panic(Tensor::neg(&self));
        }
        self.detach_(); // a leaf, while nothing is recorded
        if let Err(error) = self.neg_() {
            panic!("{error}");
        }
        self
    }
}

impl ops::Neg for &Parameter {
    type Output = Tensor;
    #[inline]
    #[track_caller]
    fn neg(self) -> Tensor {
        or_panic(Tensor::neg(&self.tensor()))
    }
}
