//! The ten element types, chosen at run time, and PyTorch's promotion between them.

use half::{bf16, f16};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};

/// The type of a tensor's elements.
///
/// # Source
/// Promotion: PyTorch, *Tensor Attributes*, section on type promotion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum DType {
    /// `bool`, one byte: 0 or 1.
    Bool,
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits: the dtype of indices and of sums of integers.
    I64,
    /// IEEE half precision; computed in `f32`.
    F16,
    /// Brain float: the exponent range of `f32` with 8 bits of precision; computed in `f32`.
    BF16,
    /// IEEE single precision: the default.
    F32,
    /// IEEE double precision.
    F64,
}

/// The kind of number, which promotion compares first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Category {
    /// `bool`.
    Bool,
    /// The integers.
    Integer,
    /// The floating-point types.
    Float,
}

impl DType {
    /// All ten dtypes, in the order of their declaration.
    pub const ALL: [DType; 10] = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    /// The size of an element in bytes.
    #[inline]
    pub const fn itemsize(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }

    /// Whether the dtype is `bool`, an integer or a float.
    #[inline]
    pub const fn category(self) -> Category {
        match self {
            DType::Bool => Category::Bool,
            DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => Category::Integer,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Category::Float,
        }
    }

    /// Whether the dtype is one of the four floating-point types.
    #[inline]
    pub const fn is_floating_point(self) -> bool {
        matches!(self.category(), Category::Float)
    }

    /// Whether the dtype has negative numbers.
    #[inline]
    pub const fn is_signed(self) -> bool {
        !matches!(self, DType::Bool | DType::U8)
    }

    /// The dtype that both promote to. The higher category wins; within a category, the wider type wins.
    /// `f16` with `bf16` gives `f32`, and `u8` with `i8` gives `i16`.
    pub const fn promote(self, other: DType) -> DType {
        use DType::*;
        if self as u8 == other as u8 {
            return self;
        }
        match (self, other) {
            (F16, BF16) | (BF16, F16) => F32,
            (U8, I8) | (I8, U8) => I16,
            (a, b) if a as u8 > b as u8 => a,
            (_, b) => b,
        }
    }

    /// Whether a result of this dtype can be written to a tensor of dtype `to`. Floats cannot be written to
    /// integers, nor numbers to `bool`.
    pub const fn can_cast(self, to: DType) -> bool {
        self.category() as u8 <= to.category() as u8
    }

    /// The dtype that kernels compute in: `f32` for the half types, otherwise the dtype itself.
    #[inline]
    pub const fn compute(self) -> DType {
        match self {
            DType::F16 | DType::BF16 => DType::F32,
            other => other,
        }
    }

    /// The dtype that has all numbers of this one, for loops that nobody waits for and that are compiled for
    /// few dtypes: `i64`, `f32` or `f64`. A `bool` becomes an `f64`, from which a cast back gives true for
    /// every number but 0.
    pub(crate) const fn wide(self) -> DType {
        match self {
            DType::Bool | DType::F64 => DType::F64,
            DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => DType::I64,
            DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        }
    }

    /// The numbers of an integer dtype.
    pub(crate) const fn bounds(self) -> RangeInclusive<i64> {
        match self {
            DType::Bool => 0..=1,
            DType::U8 => 0..=u8::MAX as i64,
            DType::I8 => i8::MIN as i64..=i8::MAX as i64,
            DType::I16 => i16::MIN as i64..=i16::MAX as i64,
            DType::I32 => i32::MIN as i64..=i32::MAX as i64,
            _ => i64::MIN..=i64::MAX,
        }
    }

    /// The least and the greatest number of an integer dtype; 0 and 1 for `bool`.
    #[doc(hidden)]
    pub fn ends(self) -> [i64; 2] {
        let bounds = self.bounds();
        [*bounds.start(), *bounds.end()]
    }

    /// PyTorch's name: `float32`, `int64`, `bool`...
    pub const fn torch_name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
        }
    }

    /// The dtype with this PyTorch name.
    pub fn from_torch_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.torch_name() == name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.torch_name())
    }
}

static DEFAULT_IS_F64: AtomicBool = AtomicBool::new(false);

/// The dtype of new float tensors, and the dtype that integers become in ops on floats: `f32` unless set
/// otherwise.
#[inline]
pub fn default_dtype() -> DType {
    if DEFAULT_IS_F64.load(Ordering::Relaxed) { DType::F64 } else { DType::F32 }
}

/// Makes `f64` the default dtype, or else `f32`.
pub(crate) fn set_default_is_f64(is_f64: bool) {
    DEFAULT_IS_F64.store(is_f64, Ordering::Relaxed);
}

mod sealed {
    pub trait Sealed {}
}

/// An element of which only the width is known: `U` is the unsigned integer of that width. Kernels that move
/// elements are compiled for four widths instead of ten dtypes. They read elements from a tensor and write
/// them to a tensor of the same dtype; except zero, there is no other way to make one, so that a `bool` stays
/// 0 or 1.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Opaque<U>(#[allow(dead_code, reason = "moved and never read as a number")] U);

/// A zero of every dtype.
impl<U: From<u8>> Opaque<U> {
    pub(crate) fn zero() -> Opaque<U> {
        Opaque(U::from(0))
    }
}

/// A Rust type that a tensor can hold.
pub trait Element: sealed::Sealed + Copy + Default + PartialEq + Send + Sync + fmt::Debug + 'static {
    /// The dtype of tensors of this type.
    const DTYPE: DType;
    /// Converts the value to a plain number.
    fn to_scalar(self) -> Scalar;
    /// Converts a plain number to this type, like the cast [`NamedTensor::to`](crate::NamedTensor::to).
    fn from_scalar(value: Scalar) -> Self;
}

/// The element types. A row gives the dtype, the kind of number, the conversion to it, and the conversions
/// from `bool`, `i64` and `f64`. `f32 = F32, Float, |v| v.into(), |b, i, f| b.into(), i as f32, f as f32`
/// becomes
///
/// ```ignore
/// impl sealed::Sealed for f32 {}
/// impl Element for f32 {
///     const DTYPE: DType = DType::F32;
///     fn to_scalar(self) -> Scalar { let v = self; Scalar::Float(v.into()) }
///     fn from_scalar(value: Scalar) -> Self {
///         match value {
///             Scalar::Bool(b) => b.into(),
///             Scalar::Int(i) => i as f32,
///             Scalar::Float(f) => f as f32,
///         }
///     }
/// }
/// impl From<f32> for Scalar { fn from(value: f32) -> Scalar { value.to_scalar() } }
/// ```
macro_rules! elements {
    ($($ty:ty = $dtype:ident, $variant:ident, |$v:ident| $to:expr, |$b:ident, $i:ident, $f:ident| $from_bool:expr, $from_int:expr, $from_float:expr;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            #[inline]
            fn to_scalar(self) -> Scalar { let $v = self; Scalar::$variant($to) }
            #[inline]
            fn from_scalar(value: Scalar) -> Self {
                match value { Scalar::Bool($b) => $from_bool, Scalar::Int($i) => $from_int, Scalar::Float($f) => $from_float }
            }
        }
        impl From<$ty> for Scalar { fn from(value: $ty) -> Scalar { value.to_scalar() } }
    )*};
}
elements! {
    bool = Bool, Bool, |v| v, |b, i, f| b, i != 0, f != 0.0;
    u8 = U8, Int, |v| v.into(), |b, i, f| b.into(), i as u8, float_to_int(f) as u8;
    i8 = I8, Int, |v| v.into(), |b, i, f| b.into(), i as i8, float_to_i32(f) as i8;
    i16 = I16, Int, |v| v.into(), |b, i, f| b.into(), i as i16, float_to_i32(f) as i16;
    i32 = I32, Int, |v| v.into(), |b, i, f| b.into(), i as i32, float_to_i32(f);
    i64 = I64, Int, |v| v, |b, i, f| b.into(), i, float_to_int(f);
    f16 = F16, Float, |v| v.into(), |b, i, f| f16::from_f32(b.into()), f16::from_f32(i as f32), f16::from_f32(f as f32);
    bf16 = BF16, Float, |v| v.into(), |b, i, f| bf16::from_f32(b.into()), bf16::from_f32(i as f32), bf16::from_f32(f as f32);
    f32 = F32, Float, |v| v.into(), |b, i, f| b.into(), i as f32, f as f32;
    f64 = F64, Float, |v| v, |b, i, f| b.into(), i as f64, f;
}

impl From<isize> for Scalar {
    fn from(value: isize) -> Scalar {
        Scalar::Int(value as i64)
    }
}

impl From<u16> for Scalar {
    fn from(value: u16) -> Scalar {
        Scalar::Int(value.into())
    }
}

impl From<u32> for Scalar {
    fn from(value: u32) -> Scalar {
        Scalar::Int(value.into())
    }
}

impl From<usize> for Scalar {
    /// A number beyond `i64` is the nearest float.
    fn from(value: usize) -> Scalar {
        i64::try_from(value).map_or(Scalar::Float(value as f64), Scalar::Int)
    }
}

/// A type that [`NamedTensor::item`](crate::NamedTensor::item) can return: an element type, `usize`, or
/// [`Scalar`], which accepts all dtypes.
#[diagnostic::on_unimplemented(
    message = "the type of the number is not known, or `{Self}` is not one",
    label = "say the type, as in `item::<f32>()`"
)]
pub trait Number: sealed::Sealed + Sized {
    /// The dtype that a tensor is cast to for this type.
    #[doc(hidden)]
    const NEAREST: Option<DType>;
    /// The number as this type, or `None` if it is another kind of number (bool, integer, float) or does not
    /// fit. A float is rounded.
    #[doc(hidden)]
    fn exactly(value: Scalar) -> Option<Self>;
}

impl<T: Element> Number for T {
    const NEAREST: Option<DType> = Some(T::DTYPE);
    fn exactly(value: Scalar) -> Option<T> {
        let number = T::from_scalar(value);
        match (value, number.to_scalar()) {
            (Scalar::Bool(_), Scalar::Bool(_)) | (Scalar::Float(_), Scalar::Float(_)) => Some(number),
            (Scalar::Int(value), Scalar::Int(back)) if value == back => Some(number),
            _ => None,
        }
    }
}

impl sealed::Sealed for usize {}
impl Number for usize {
    const NEAREST: Option<DType> = Some(DType::I64);
    fn exactly(value: Scalar) -> Option<usize> {
        match value {
            Scalar::Int(value) => value.try_into().ok(),
            _ => None,
        }
    }
}

impl sealed::Sealed for Scalar {}
impl Number for Scalar {
    const NEAREST: Option<DType> = None;
    fn exactly(value: Scalar) -> Option<Scalar> {
        Some(value)
    }
}

/// Converts like the CPU and PyTorch: the fraction is dropped, and values that do not fit in 64 bits,
/// including NaN and infinities, become `i64::MIN`.
#[inline(always)]
pub(crate) fn float_to_int(value: f64) -> i64 {
    const LIMIT: f64 = -(i64::MIN as f64); // 2⁶³
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

/// [`float_to_int`] for 32 bits; narrower integers wrap from there.
#[inline(always)]
pub(crate) fn float_to_i32(value: f64) -> i32 {
    const LIMIT: f64 = -(i32::MIN as f64); // 2³¹
    // Dropping the fraction can bring the value back into range.
    if value > -LIMIT - 1.0 && value < LIMIT { value as i32 } else { i32::MIN }
}

/// A plain number in an op with tensors. It does not widen the dtype of the tensors within its category.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
}

impl Scalar {
    /// The dtype of a tensor made from only this number.
    pub fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => default_dtype(),
        }
    }

    /// The number as `f64`; `true` is 1.
    pub fn to_f64(self) -> f64 {
        f64::from_scalar(self)
    }

    /// The number as `i64`; `true` is 1, and a float is truncated.
    pub fn to_i64(self) -> i64 {
        i64::from_scalar(self)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(v) => v.fmt(f),
            Scalar::Int(v) => v.fmt(f),
            Scalar::Float(v) => v.fmt(f),
        }
    }
}

/// Runs `body` with `T` bound to the Rust type of `dtype`: `dispatch!(dtype, float T => body, else other)`
/// becomes
///
/// ```ignore
/// match dtype {
///     DType::F32 => { type T = f32; body }
///     DType::F64 => { type T = f64; body }
///     _ => other
/// }
/// ```
///
/// Plain `T` covers all dtypes, `compute T` those that kernels compute in, and `number T` the latter without
/// `bool`. `wide T` covers only those of [`DType::wide`], and `width U` binds `U` for an [`Opaque`] of the
/// dtype's width.
macro_rules! dispatch {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::dtype::dispatch!(@ $dtype, $T, $body,
            Bool bool, U8 u8, I8 i8, I16 i16, I32 i32, I64 i64, F16 half::f16, BF16 half::bf16, F32 f32, F64 f64;)
    };
    ($dtype:expr, compute $T:ident => $body:expr) => {
        $crate::dtype::dispatch!(@ $dtype, $T, $body,
            Bool bool, U8 u8, I8 i8, I16 i16, I32 i32, I64 i64, F32 f32, F64 f64; _ => unreachable!("half types compute in f32"))
    };
    ($dtype:expr, float $T:ident => $body:expr, else $other:expr) => {
        $crate::dtype::dispatch!(@ $dtype, $T, $body, F32 f32, F64 f64; _ => $other)
    };
    ($dtype:expr, wide $T:ident => $body:expr) => {
        $crate::dtype::dispatch!(@ $dtype, $T, $body, I64 i64, F32 f32, F64 f64; _ => unreachable!("not a wide dtype"))
    };
    ($dtype:expr, product $T:ident => $body:expr) => {
        $crate::dtype::dispatch!(@ $dtype, $T, $body,
            I64 i64, BF16 half::bf16, F32 f32, F64 f64; _ => unreachable!("cast to a dtype with products"))
    };
    ($dtype:expr, width $U:ident => $body:expr) => {
        $crate::dtype::dispatch!(size $dtype.itemsize(), $U => $body)
    };
    (size $size:expr, $U:ident => $body:expr) => {
        match $size {
            1 => { type $U = u8; $body }
            2 => { type $U = u16; $body }
            4 => { type $U = u32; $body }
            _ => { type $U = u64; $body }
        }
    };
    ($dtype:expr, number $T:ident => $body:expr, else $other:expr) => {
        $crate::dtype::dispatch!(@ $dtype, $T, $body,
            U8 u8, I8 i8, I16 i16, I32 i32, I64 i64, F32 f32, F64 f64; _ => $other)
    };
    (@ $dtype:expr, $T:ident, $body:expr, $($variant:ident $ty:ty),*; $(_ => $other:expr)?) => {
        match $dtype {
            $($crate::dtype::DType::$variant => { type $T = $ty; $body })*
            $(_ => $other)?
        }
    };
}
pub(crate) use dispatch;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_commutative_and_idempotent() {
        for a in DType::ALL {
            assert_eq!(a.promote(a), a);
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a));
                assert!(a.can_cast(a.promote(b)));
            }
        }
    }

    #[test]
    fn names_round_trip() {
        for dtype in DType::ALL {
            assert_eq!(DType::from_torch_name(dtype.torch_name()), Some(dtype));
        }
    }
}
