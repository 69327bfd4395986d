//! The methods of [`Tensor`] that come from the tables of core: the doc and the arguments from the row there, the value and the record from the
//! derivative row of the same name in [`crate::rules`].

use crate::operators::Operand;
use crate::rules;
use crate::tensor::Tensor;
use namegrad_core::ops::pick::kernels as pick;
use namegrad_core::{Argument, Count, Dim, DimOrAll, Dims, Int, Picked, Reduce, Result, Scalar, SizeList};
use std::panic::Location;

/// Does a tape have to know of an in-place op? If not, it runs in the buffer of its tensor.
macro_rules! recorded {
    ($($x:expr),*) => { false $(|| $x.tracked().is_some())* };
}

macro_rules! tensor_unary {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident $($name_:ident)? ($x:ident) $(-> $out:ident)? { $($body:tt)* }
    )*) => {
        impl Tensor {$(
            $(#[doc = $doc])*
            ///
            /// # Errors
            /// [`ErrorKind::DType`](namegrad_core::ErrorKind::DType) on a dtype on which it makes no sense.
            #[inline]
            #[track_caller]
            pub fn $name(&self) -> Result<Tensor> {
                rules::unary::$name(self)
            }
            $(
                #[doc = concat!("In place: [`", stringify!($name), "`](Self::", stringify!($name), ").")]
                ///
                /// # Errors
                /// Those of the other form, [`ErrorKind::DType`](namegrad_core::ErrorKind::DType) if the result does not fit,
                /// [`ErrorKind::Autograd`](namegrad_core::ErrorKind::Autograd) on a leaf that requires a gradient.
                #[track_caller]
                pub fn $name_(&mut self) -> Result<&mut Tensor> {
                    self.check_in_place(stringify!($name_))?;
                    if recorded!(self) {
                        let y = self.$name()?;
                        return self.assign(stringify!($name_), y);
                    }
                    let caller = Location::caller(); // an error made inside of the closure would name this line
                    self.update(|value| value.$name_().map(drop)).map_err(|error| error.at(caller))?;
                    Ok(self)
                }
            )?
        )*}
    };
}
namegrad_core::unary_ops!(tensor_unary);

macro_rules! tensor_binary {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident $($name_:ident)? ($x:ident $y:ident) $(-> $out:ident)? { $($body:tt)* } $($divides:ident)?;
    )*) => {
        impl Tensor {$(
            $(#[doc = $doc])*
            ///
            /// # Errors
            /// Those of the name rule, [`ErrorKind::Shape`](namegrad_core::ErrorKind::Shape), [`ErrorKind::DType`](namegrad_core::ErrorKind::DType).
            #[inline]
            #[track_caller]
            pub fn $name(&self, other: impl Operand) -> Result<Tensor> {
                rules::binary::$name(self, &*other.operand_beside(self.dtype())?)
            }
            $(
                #[doc = concat!("In place: [`", stringify!($name), "`](Self::", stringify!($name), ").")]
                ///
                /// # Errors
                /// Those of the other form, [`ErrorKind::Shape`](namegrad_core::ErrorKind::Shape) or [`ErrorKind::DType`](namegrad_core::ErrorKind::DType) if the result does not
                /// fit, [`ErrorKind::Autograd`](namegrad_core::ErrorKind::Autograd) on a leaf that requires a gradient.
                #[track_caller]
                pub fn $name_(&mut self, other: impl Operand) -> Result<&mut Tensor> {
                    self.check_in_place(stringify!($name_))?;
                    let other = &*other.operand_beside(self.dtype())?;
                    if recorded!(self, other) {
                        let y = self.$name(other)?;
                        return self.assign(stringify!($name_), y);
                    }
                    let caller = Location::caller(); // an error made inside of the closure would name this line
                    self.update(|value| value.$name_(other.value()).map(drop)).map_err(|error| error.at(caller))?;
                    Ok(self)
                }
            )?
        )*}
    };
}
namegrad_core::binary_ops!(tensor_binary);

macro_rules! tensor_ternary {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident $($name_:ident)? ($x:ident $y:ident $z:ident) { $($body:tt)* };
    )*) => {
        impl Tensor {$(
            $(#[doc = $doc])*
            ///
            /// # Errors
            /// Those of the name rule, [`ErrorKind::Shape`](namegrad_core::ErrorKind::Shape), [`ErrorKind::DType`](namegrad_core::ErrorKind::DType).
            #[track_caller]
            pub fn $name(&self, $y: impl Operand, $z: impl Operand) -> Result<Tensor> {
                rules::binary::$name(self, &*$y.operand_beside(self.dtype())?, &*$z.operand_beside(self.dtype())?)
            }
            $(
                #[doc = concat!("In place: [`", stringify!($name), "`](Self::", stringify!($name), ").")]
                ///
                /// # Errors
                /// Those of the other form, [`ErrorKind::Shape`](namegrad_core::ErrorKind::Shape) or [`ErrorKind::DType`](namegrad_core::ErrorKind::DType) if the result does not
                /// fit, [`ErrorKind::Autograd`](namegrad_core::ErrorKind::Autograd) on a leaf that requires a gradient.
                #[track_caller]
                pub fn $name_(&mut self, $y: impl Operand, $z: impl Operand) -> Result<&mut Tensor> {
                    self.check_in_place(stringify!($name_))?;
                    let ($y, $z) = (&*$y.operand_beside(self.dtype())?, &*$z.operand_beside(self.dtype())?);
                    if recorded!(self, $y, $z) {
                        let result = self.$name($y, $z)?;
                        return self.assign(stringify!($name_), result);
                    }
                    let caller = Location::caller(); // an error made inside of the closure would name this line
                    self.update(|value| value.$name_($y.value(), $z.value()).map(drop)).map_err(|error| error.at(caller))?;
                    Ok(self)
                }
            )?
        )*}
    };
}
namegrad_core::ternary_ops!(tensor_ternary);

macro_rules! tensor_reductions {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident $name_keepdim:ident ($x:ident $(; $arg:ident: $ty:ty)?)
    )*) => {
        impl Tensor {$(
            $(#[doc = $doc])*
            ///
            /// `dims` is an index, a name, a list of either, or `..` for all.
            ///
            /// # Errors
            /// [`ErrorKind::NameNotFound`](namegrad_core::ErrorKind::NameNotFound), [`ErrorKind::DimRange`](namegrad_core::ErrorKind::DimRange),
            /// [`ErrorKind::DType`](namegrad_core::ErrorKind::DType), [`ErrorKind::Shape`](namegrad_core::ErrorKind::Shape) where nothing has no answer.
            #[track_caller]
            pub fn $name(&self, dims: impl Into<Dims> $(, $arg: $ty)?) -> Result<Tensor> {
                rules::reduce::$name(self, &dims.into().resolve(stringify!($name), self.value())?, &false $(, &$arg)?)
            }
            #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), ") with the reduced dims kept at size one.")]
            ///
            /// # Errors
            /// Those of the other form.
            #[track_caller]
            pub fn $name_keepdim(&self, dims: impl Into<Dims> $(, $arg: $ty)?) -> Result<Tensor> {
                rules::reduce::$name(self, &dims.into().resolve(stringify!($name), self.value())?, &true $(, &$arg)?)
            }
        )*}
    };
}
namegrad_core::reduce_ops!(tensor_reductions);
namegrad_core::paired_reductions!(Tensor);

/// The methods of the ops that pick along a dim, with the `_keepdim` form where the dim is removed.
macro_rules! tensor_picks {
    ($(
        #[doc = $doc:literal]
        $(#[doc = $more:literal])*
        $name:ident $($name_keepdim:ident)? [$rule:literal] $args:tt
    )*) => {
        impl Tensor {$(
            tensor_picks! { @ $name [$($name_keepdim)?] concat!($doc $(, "\n", $more)*, "\n\nNames: ", $rule, "."), $args }
        )*}
    };
    (@ $name:ident [] $doc:expr, $args:tt) => {
        tensor_picks! { @ $name as $name, true, $doc, $args }
    };
    (@ $name:ident [$name_keepdim:ident] $doc:expr, $args:tt) => {
        tensor_picks! { @ $name as $name, false, $doc, $args }
        tensor_picks! { @ $name as $name_keepdim, true,
            concat!("[`", stringify!($name), "`](Self::", stringify!($name), ") with the dim kept at size one."), $args }
    };
    (@ $name:ident as $method:ident, $keepdim:literal, $doc:expr,
        ($x:ident $(, $k:ident: $K:ty)?; $dim:ident: $Dim:ident $(, $flag:ident: $Flag:ty)?)
    ) => {
        #[doc = $doc]
        ///
        #[doc = tensor_picks!(@ doc $Dim)]
        ///
        /// # Errors
        /// [`ErrorKind::NameNotFound`](namegrad_core::ErrorKind::NameNotFound), [`ErrorKind::DimRange`](namegrad_core::ErrorKind::DimRange),
        /// [`ErrorKind::DType`](namegrad_core::ErrorKind::DType) if it is not for this dtype, [`ErrorKind::Shape`](namegrad_core::ErrorKind::Shape) or
        /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if there are too few elements.
        #[track_caller]
        pub fn $method(
            &self
            $(, $k: impl Into<$K>)?
            , $dim: impl Into<$Dim>
            $(, $flag: $Flag)?
        ) -> Result<Picked<Tensor>> {
            const OP: &str = stringify!($name);
            let x = self.value();
            $(let $k = <$K as Argument>::resolve($k.into(), OP, x)?;)?
            let $dim = <$Dim as Argument>::resolve($dim.into(), OP, x)?;
            rules::pick::pick(OP, self, pick::$name(x $(, $k)?, $dim $(, $flag)?)?, $dim.into(), $keepdim)
        }
    };
    (@ doc DimOrAll) => {
        "`dim` is an index, a name, or `..` for all elements as one dim; then equal ones share the gradient."
    };
    (@ doc Dim) => {
        "`dim` is an index or a name."
    };
}
namegrad_core::pick_ops!(tensor_picks);
namegrad_core::composed_along!(Tensor, |x| x.value());

/// The methods of a table of other ops, whose derivative rows are in the file of that name.
macro_rules! tensor_ops {
    ($file:ident $(
        $(#[doc = $doc:literal])*
        $name:ident $($name_:ident)? [$rule:literal] ($x:ident $(, $other:ident)* $(; $($arg:ident: $ty:ty),*)?)
    )*) => {
        impl Tensor {$(
            $(#[doc = $doc])*
            ///
            #[doc = concat!("Names: ", $rule, ".")]
            ///
            /// # Errors
            /// [`ErrorKind::NameNotFound`](namegrad_core::ErrorKind::NameNotFound), [`ErrorKind::DimRange`](namegrad_core::ErrorKind::DimRange),
            /// [`ErrorKind::Shape`](namegrad_core::ErrorKind::Shape), [`ErrorKind::Index`](namegrad_core::ErrorKind::Index),
            /// [`ErrorKind::DType`](namegrad_core::ErrorKind::DType), as far as they apply.
            #[track_caller]
            pub fn $name(&self $(, $other: &Tensor)* $($(, $arg: impl Into<$ty>)*)?) -> Result<Tensor> {
                $($(let $arg = <$ty as Argument>::resolve($arg.into(), stringify!($name), self.value())?;)*)?
                rules::$file::$name(self $(, $other)* $($(, &$arg)*)?)
            }
            tensor_in_place! { [$($name_)?] $name ($($other)*) ($($($arg: $ty)*)?) }
        )*}
    };
}

/// The in-place form of a row that has one.
macro_rules! tensor_in_place {
    ([] $($rest:tt)*) => {};
    ([$name_:ident] $name:ident ($($other:ident)*) ($($arg:ident: $ty:ty)*)) => {
        #[doc = concat!("In place: [`", stringify!($name), "`](Self::", stringify!($name), ").")]
        ///
        /// # Errors
        /// Those of the other form, [`ErrorKind::Autograd`](namegrad_core::ErrorKind::Autograd) on a leaf that requires a gradient.
        #[track_caller]
        pub fn $name_(&mut self $(, $other: &Tensor)* $(, $arg: impl Into<$ty>)*) -> Result<&mut Tensor> {
            self.check_in_place(stringify!($name_))?;
            let y = self.$name($($other,)* $($arg),*)?;
            self.become_result(stringify!($name_), y)
        }
    };
}

macro_rules! tensor_parametric { ($($rows:tt)*) => { tensor_ops! { unary $($rows)* } }; }
namegrad_core::parametric_ops!(tensor_parametric);
macro_rules! tensor_shape { ($($rows:tt)*) => { tensor_ops! { shape $($rows)* } }; }
namegrad_core::shape_ops!(tensor_shape);
macro_rules! tensor_along { ($($rows:tt)*) => { tensor_ops! { along $($rows)* } }; }
namegrad_core::along_ops!(tensor_along);
macro_rules! tensor_count { ($($rows:tt)*) => { tensor_ops! { count $($rows)* } }; }
namegrad_core::count_ops!(tensor_count);
macro_rules! tensor_index { ($($rows:tt)*) => { tensor_ops! { index $($rows)* } }; }
namegrad_core::index_ops!(tensor_index);
macro_rules! tensor_matmul { ($($rows:tt)*) => { tensor_ops! { matmul $($rows)* } }; }
namegrad_core::matmul_ops!(tensor_matmul);
