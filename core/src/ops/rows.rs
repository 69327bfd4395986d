//! The macros that turn rows into methods of `NamedTensor`.
//!
//! A pointwise row such as
//!
//! ```ignore
//! /// `e^x` of each element.
//! exp exp_ (x) { float: x.exp() }
//! ```
//! becomes a `static exp: Kernel<1>` whose loops on `f32` and `f64` hold the formula, the methods `exp` and `exp_`, and an
//! [`OpInfo`](super::OpInfo). The row of any other op,
//!
//! ```ignore
//! /// The tensor with two dims exchanged.
//! transpose transpose_ [permutes dimensions] (x; dim0: Dim, dim1: Dim)
//! ```
//! becomes a method that looks its arguments up in `x` and calls `kernels::transpose(x, dim0, dim1)` of the same file.

/// The loops of one class of dtypes. A formula is wrapped in a type, so that it is compiled inside the loop.
macro_rules! pointwise_class {
    (float $n:literal ($($x:ident)*) $out:tt $e:expr) => {{
        struct Row;
        impl $crate::cpu::pointwise::FloatOp<$n> for Row {
            type Out<T: $crate::cpu::math::Real> = pointwise_out!($out T);
            #[inline(always)]
            fn f<T: $crate::cpu::math::Real>([$($x),*]: [T; $n]) -> pointwise_out!($out T) { $e }
        }
        $crate::cpu::pointwise::float_loops::<$n, Row>()
    }};
    (int $n:literal ($($x:ident)*) $out:tt $e:expr) => {{
        struct Row;
        impl $crate::cpu::pointwise::IntOp<$n> for Row {
            type Out<T: $crate::cpu::integer::Integer> = pointwise_out!($out T);
            #[inline(always)]
            fn f<T: $crate::cpu::integer::Integer>([$($x),*]: [T; $n]) -> pointwise_out!($out T) { $e }
        }
        $crate::cpu::pointwise::int_loops::<$n, Row>()
    }};
    (boolean $n:literal ($($x:ident)*) $out:tt $e:expr) => {{
        struct Row;
        impl $crate::cpu::pointwise::BoolOp<$n> for Row {
            #[inline(always)]
            fn f([$($x),*]: [bool; $n]) -> bool { $e }
        }
        $crate::cpu::pointwise::bool_loop::<$n, Row>()
    }};
    (dtypes $n:literal $x:tt $out:tt $e:expr) => {
        $e
    };
}

/// The element type that a formula gives: that of its inputs, or `bool`.
macro_rules! pointwise_out {
    ([] $T:ident) => {
        $T
    };
    ([bool] $T:ident) => {
        bool
    };
}

/// `true` if the marker stands in the row.
macro_rules! marked {
    (bool [bool]) => {
        true
    };
    (divides [divides]) => {
        true
    };
    (powers [powers]) => {
        true
    };
    ($marker:ident [$($other:ident)?]) => {
        false
    };
}

/// The kernel of a pointwise row. `{ like: maximum }` takes the loops of another row of the table, so that they are compiled once: for ops that differ in
/// their derivative alone.
macro_rules! kernel {
    ($n:literal $name:ident $args:tt $out:tt $marker:tt { like: $other:ident }) => {
        $crate::cpu::pointwise::Kernel::<$n> {
            name: stringify!($name),
            float: $other.float,
            int: $other.int,
            boolean: $other.boolean,
            to_bool: marked!(bool $out),
            divides: marked!(divides $marker),
            powers: marked!(powers $marker),
            dtypes: $other.dtypes,
        }
    };
    ($n:literal $name:ident $args:tt $out:tt $marker:tt { $($class:ident: $e:expr),* $(,)? }) => {{
        let mut kernel = $crate::cpu::pointwise::Kernel::<$n> {
            name: stringify!($name),
            float: None,
            int: None,
            boolean: None,
            to_bool: marked!(bool $out),
            divides: marked!(divides $marker),
            powers: marked!(powers $marker),
            dtypes: None,
        };
        $(kernel.$class = Some(pointwise_class!($class $n $args $out $e));)*
        kernel
    }};
}

/// The info of a row.
macro_rules! info {
    ($name:ident [$($name_:ident)?] $rule:expr, $($doc:literal)*) => {
        $crate::ops::OpInfo { name: stringify!($name), in_place: info!(@ $($name_)?), rule: $rule, doc: &[$($doc),*] }
    };
    (@) => { None };
    (@ $name_:ident) => { Some(stringify!($name_)) };
}

/// The kernels of a table of pointwise rows.
macro_rules! pointwise_kernels {
    ($n:literal $($name:ident $args:tt $out:tt $marker:tt $body:tt)*) => {
        #[allow(non_upper_case_globals)] // a kernel has the name of its op
        pub(crate) mod kernels {
            use crate::cpu::pointwise::Kernel;
            #[allow(unused_imports)] // not every table has floats, integers and rules of dtypes
            use crate::cpu::{integer::Integer, math::Real, pointwise::Dtypes};
            $(pub(crate) static $name: Kernel<$n> = kernel!($n $name $args $out $marker $body);)*
        }
    };
}

/// Rows of ops on one tensor by element.
macro_rules! define_unary {
    ($(
        #[doc = $doc:literal]
        $(#[doc = $more:literal])*
        $name:ident $($name_:ident)? ($x:ident) $(-> $out:ident)? { $($body:tt)* }
    )*) => {
        pointwise_kernels! { 1 $($name ($x) [$($out)?] [] { $($body)* })* }
        /// What is known of the ops of this table.
        pub const ROWS: &[$crate::ops::OpInfo] = &[$(info!($name [$($name_)?] "keeps input names", $doc $($more)*)),*];
        impl $crate::NamedTensor {$(
            #[doc = $doc]
            ///
            /// # Errors
            /// [`ErrorKind::DType`](crate::ErrorKind::DType) on a dtype on which it makes no sense, [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
            #[track_caller]
            pub fn $name(&self) -> $crate::Result<$crate::NamedTensor> {
                kernels::$name.apply([self])
            }
            $(
                #[doc = concat!("In place: [`", stringify!($name), "`](Self::", stringify!($name), ").")]
                ///
                /// # Errors
                /// Those of the other form, and [`ErrorKind::DType`](crate::ErrorKind::DType) if the result does not fit the dtype.
                #[track_caller]
                pub fn $name_(&mut self) -> $crate::Result<&mut $crate::NamedTensor> {
                    kernels::$name.apply_in_place(self, &[])?;
                    Ok(self)
                }
            )?
        )*}
    };
}

/// Rows of ops on two tensors, or a tensor and a number, by element.
macro_rules! define_binary {
    ($(
        #[doc = $doc:literal]
        $(#[doc = $more:literal])*
        $name:ident $($name_:ident)? ($x:ident $y:ident) $(-> $out:ident)? { $($body:tt)* } $($marker:ident)?;
    )*) => {
        pointwise_kernels! { 2 $($name ($x $y) [$($out)?] [$($marker)?] { $($body)* })* }
        /// What is known of the ops of this table.
        pub const ROWS: &[$crate::ops::OpInfo] = &[$(info!($name [$($name_)?] "unifies names from inputs", $doc $($more)*)),*];
        impl $crate::NamedTensor {$(
            #[doc = $doc]
            ///
            /// # Errors
            /// Those of the name rule, [`ErrorKind::Shape`](crate::ErrorKind::Shape), [`ErrorKind::DType`](crate::ErrorKind::DType).
            #[track_caller]
            pub fn $name(&self, other: impl $crate::Operand) -> $crate::Result<$crate::NamedTensor> {
                kernels::$name.apply([self, &*other.operand_beside(self.dtype())?])
            }
            $(
                #[doc = concat!("In place: [`", stringify!($name), "`](Self::", stringify!($name), ").")]
                ///
                /// # Errors
                /// Those of the other form, and [`ErrorKind::Shape`](crate::ErrorKind::Shape) or [`ErrorKind::DType`](crate::ErrorKind::DType) if the result
                /// does not fit.
                #[track_caller]
                pub fn $name_(&mut self, other: impl $crate::Operand) -> $crate::Result<&mut $crate::NamedTensor> {
                    let other = other.operand_beside(self.dtype())?;
                    kernels::$name.apply_in_place(self, &[&*other])?;
                    Ok(self)
                }
            )?
        )*}
    };
}

/// Rows of ops on three tensors by element.
macro_rules! define_ternary {
    ($(
        #[doc = $doc:literal]
        $(#[doc = $more:literal])*
        $name:ident $($name_:ident)? ($x:ident $y:ident $z:ident) $body:tt;
    )*) => {
        pub(crate) mod ternary {
            pointwise_kernels! { 3 $($name ($x $y $z) [] [] $body)* }
        }
        /// What is known of the ops of this table.
        pub const TERNARY_ROWS: &[$crate::ops::OpInfo] =
            &[$(info!($name [$($name_)?] "unifies names from inputs", $doc $($more)*)),*];
        impl $crate::NamedTensor {$(
            #[doc = $doc]
            ///
            /// # Errors
            /// Those of the name rule, [`ErrorKind::Shape`](crate::ErrorKind::Shape), [`ErrorKind::DType`](crate::ErrorKind::DType).
            #[track_caller]
            pub fn $name(&self, $y: impl $crate::Operand, $z: impl $crate::Operand) -> $crate::Result<$crate::NamedTensor> {
                ternary::kernels::$name.apply([self, &*$y.operand_beside(self.dtype())?, &*$z.operand_beside(self.dtype())?])
            }
            $(
                #[doc = concat!("In place: [`", stringify!($name), "`](Self::", stringify!($name), ").")]
                ///
                /// # Errors
                /// Those of the other form, and [`ErrorKind::Shape`](crate::ErrorKind::Shape) or [`ErrorKind::DType`](crate::ErrorKind::DType) if the result
                /// does not fit.
                #[track_caller]
                pub fn $name_(
                    &mut self,
                    $y: impl $crate::Operand,
                    $z: impl $crate::Operand,
                ) -> $crate::Result<&mut $crate::NamedTensor> {
                    let dtype = self.dtype();
                    ternary::kernels::$name.apply_in_place(self, &[&*$y.operand_beside(dtype)?, &*$z.operand_beside(dtype)?])?;
                    Ok(self)
                }
            )?
        )*}
    };
}

/// Rows of all other ops: the kernel is the function of that name in `kernels`, and gets the arguments looked up in `x`.
macro_rules! define_ops {
    ($(
        #[doc = $doc:literal]
        $(#[doc = $more:literal])*
        $name:ident $($name_:ident)? [$rule:literal] ($x:ident $(, $other:ident)* $(; $($arg:ident: $ty:ty),*)?)
    )*) => {
        /// What is known of the ops of this table.
        pub const ROWS: &[$crate::ops::OpInfo] = &[$(info!($name [$($name_)?] $rule, $doc $($more)*)),*];
        impl $crate::NamedTensor {$(
            #[doc = $doc]
            ///
            /// # Errors
            #[doc = concat!("As `namegrad::Tensor::", stringify!($name), "`.")]
            #[track_caller]
            pub fn $name(
                &self
                $(, $other: &$crate::NamedTensor)*
                $($(, $arg: impl Into<$ty>)*)?
            ) -> $crate::Result<$crate::NamedTensor> {
                $($(let $arg = <$ty as $crate::Argument>::resolve($arg.into(), stringify!($name), self)?;)*)?
                kernels::$name(self $(, $other)* $($(, $arg)*)?)
            }
            define_in_place! { [$($name_)?] $name ($($other)*) ($($($arg: $ty)*)?) }
        )*}
    };
}

/// The in-place form of a row that has one.
macro_rules! define_in_place {
    ([] $($rest:tt)*) => {};
    ([$name_:ident] $name:ident ($($other:ident)*) ($($arg:ident: $ty:ty)*)) => {
        #[doc = concat!("In place: [`", stringify!($name), "`](Self::", stringify!($name), ").")]
        ///
        /// # Errors
        /// Those of the other form, and [`ErrorKind::DType`](crate::ErrorKind::DType) if the result does not fit the dtype.
        #[track_caller]
        pub fn $name_(
            &mut self
            $(, $other: &$crate::NamedTensor)*
            $(, $arg: impl Into<$ty>)*
        ) -> $crate::Result<&mut $crate::NamedTensor> {
            let result = self.$name($($other,)* $($arg),*)?;
            self.replace_with(stringify!($name_), result)
        }
    };
}
