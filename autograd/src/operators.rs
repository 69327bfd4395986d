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
use crate::rules::binary::by_element;
use crate::tape::{ByElement, binary, binary_, is_forward};
use crate::tensor::Tensor;
use namegrad_core::{DType, Error, Result, Scalar};
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
        Err(error) => fails(error),
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn fails(error: Error) -> ! {
    panic!("{error}")
}

/// The result of an operator on a tensor. As operators are everywhere, it is a call, which needs no check.
#[inline(never)]
#[track_caller]
fn made(op: &'static ByElement, x: &Tensor, other: TensorOrNumber<'_>) -> Tensor {
    or_panic(binary(op, x, other))
}

/// The result of an operator on a number and a tensor.
#[inline(never)]
#[track_caller]
fn made_of_number(op: &'static ByElement, number: Scalar, other: &Tensor) -> Tensor {
    let mut place = None;
    or_panic(match TensorOrNumber::Number(number).tensor_in(other.dtype(), &mut place) {
        Ok(number) => binary(op, number, TensorOrNumber::Tensor(other)),
        Err(error) => Err(error), // no closure: the error is to name the caller's line
    })
}

/// The result of an operator on an owned tensor. It is written into the buffer of `x` if the buffer is not
/// shared, nothing is recorded, and sizes, names and dtype do not change.
#[inline(never)]
#[track_caller]
fn made_in(op: &'static ByElement, mut x: Tensor, other: TensorOrNumber<'_>) -> Tensor {
    let mut place = None;
    let other = match other.tensor_in(x.dtype(), &mut place) {
        Ok(other) => other,
        Err(error) => fails(error),
    };
    let dtype = x.dtype();
    let stays = x.tracked().is_none()
        && other.tracked().is_none()
        && x.value().shared() == 1
        && x.is_contiguous()
        && x.value().result_type(other.value()) == dtype
        && (op.recipe.op != "div" || dtype.is_floating_point())
        && fits_into(other, &x)
        && !is_forward();
    if !stays {
        return made(op, &x, TensorOrNumber::Tensor(other));
    }
    x.detach_(); // a leaf, while nothing is recorded
    match binary_(op, &mut x, TensorOrNumber::Tensor(other)) {
        Ok(_) => x,
        Err(error) => fails(error),
    }
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
/// method, and the op. `Sub sub, SubAssign sub_assign sub_, SUB` becomes
///
/// ```ignore
/// impl<T: Operand> ops::Sub<T> for &Tensor {
///     type Output = Tensor;
///     fn sub(self, other: T) -> Tensor {
///         made(&SUB, self, other.either())
///     }
/// }
/// ```
///
/// and the same for `Tensor`, `Parameter`, `&Parameter` and numbers on the left, and `SubAssign` for
/// `Tensor`.
macro_rules! operators {
    ($($trait:ident $method:ident, $assign_trait:ident $assign:ident $in_place:ident, $op:ident;)*) => {$(
        operators!(tensor $trait $method, &Tensor, |x, other| made(&by_element::$op, x, other));
        operators!(tensor $trait $method, Tensor, |x, other| made_in(&by_element::$op, x, other));
        operators!(tensor $trait $method, &Parameter, |x, other| made(&by_element::$op, &x.tensor(), other));
        operators!(tensor $trait $method, Parameter, |x, other| made(&by_element::$op, &x.tensor(), other));
        impl<T: Operand> ops::$assign_trait<T> for Tensor {
            #[track_caller]
            fn $assign(&mut self, other: T) {
                if let Err(error) = self.$in_place(other) {
                    fails(error);
                }
            }
        }
        operators!(number $trait $method $op; f64, i32);
    )*};
    (tensor $trait:ident $method:ident, $left:ty, |$x:ident, $given:ident| $made:expr) => {
        impl<T: Operand> ops::$trait<T> for $left {
            type Output = Tensor;
            #[inline]
            #[track_caller]
            fn $method(self, other: T) -> Tensor {
                let ($x, $given) = (self, other.either());
                $made
            }
        }
    };
    (number $trait:ident $method:ident $op:ident; $($number:ty),*) => {$(
        operators!(number $trait $method $op $number, &Tensor, |right| right);
        operators!(number $trait $method $op $number, Tensor, |right| &right);
        operators!(number $trait $method $op $number, &Parameter, |right| &right.tensor());
        operators!(number $trait $method $op $number, Parameter, |right| &right.tensor());
    )*};
    (number $trait:ident $method:ident $op:ident $number:ty, $right:ty, |$given:ident| $tensor:expr) => {
        impl ops::$trait<$right> for $number {
            type Output = Tensor;
            #[inline]
            #[track_caller]
            fn $method(self, $given: $right) -> Tensor {
                made_of_number(&by_element::$op, self.into(), $tensor)
            }
        }
    };
}
operators! {
    Add add, AddAssign add_assign add_, ADD;
    Sub sub, SubAssign sub_assign sub_, SUB;
    Mul mul, MulAssign mul_assign mul_, MUL;
    Div div, DivAssign div_assign div_, DIV;
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
            fails(error);
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
