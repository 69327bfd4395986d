//! [`Fused`]: numbers with fused multiply-add, for CPUs that have it; and [`Alone`], for those that few have.
//!
//! If the build target does not guarantee the instruction, `mul_add` of `std` calls a function that is a
//! hundred times slower, and an `#[inline(always)]` function cannot know for which instructions it is
//! compiled. So the type decides: `f32` multiplies and adds with two roundings, `Fused<f32>` with one, and a
//! [`Vectorized`](crate::cpu::simd::Vectorized) loop uses the type that suits its instructions. Fused numbers
//! make `exp` one and a half times as fast; both types are equally accurate.
//!
//! A loop over [`Alone`] numbers stays a loop: it becomes neither vectors nor a sequence of its steps. That
//! makes the copy of a loop for an x86-64 without AVX2, which is rare, a third as long.

use std::fmt::{Debug, Display, Formatter, Result};
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, Sub, SubAssign};

use super::Real;
use super::lane::{Lane, Tables};

/// A number that is computed in another way than `T`: [`Fused`] or [`Alone`].
#[derive(Clone, Copy, Default, PartialEq)]
#[repr(transparent)]
pub struct Variant<T, const FUSED: bool>(pub T);

/// A number whose functions are computed with fused multiply-add.
///
/// Slow on a CPU without the instruction, and in code that is not compiled for it.
pub type Fused<T> = Variant<T, true>;

/// A number that is computed alone: no vector instruction computes several.
pub type Alone<T> = Variant<T, false>;

impl<T: Fusible, const FUSED: bool> Variant<T, FUSED> {
    /// A result of an operation.
    #[inline(always)]
    fn of(result: T) -> Self {
        Self(if FUSED { result } else { result.alone() })
    }
}

impl<T: Debug, const FUSED: bool> Debug for Variant<T, FUSED> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.fmt(f)
    }
}

impl<T: Display, const FUSED: bool> Display for Variant<T, FUSED> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.fmt(f)
    }
}

impl<T: Fusible, const FUSED: bool> PartialOrd for Variant<T, FUSED> {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.0.partial_cmp(&other.0)
    }

    #[inline(always)]
    fn lt(&self, other: &Self) -> bool {
        Self::of(self.0).0 < other.0
    }

    #[inline(always)]
    fn le(&self, other: &Self) -> bool {
        Self::of(self.0).0 <= other.0
    }

    #[inline(always)]
    fn gt(&self, other: &Self) -> bool {
        Self::of(self.0).0 > other.0
    }

    #[inline(always)]
    fn ge(&self, other: &Self) -> bool {
        Self::of(self.0).0 >= other.0
    }
}

impl<T: Fusible, const FUSED: bool> Neg for Variant<T, FUSED> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

/// Implements an operator of a [`Variant`] with that of the plain numbers.
/// `operator!(Add add, AddAssign add_assign);` becomes
///
/// ```ignore
/// impl<T: Fusible, const FUSED: bool> Add for Variant<T, FUSED> {
///     type Output = Self;
///
///     fn add(self, other: Self) -> Self {
///         Self::of(self.0.add(other.0))
///     }
/// }
///
/// impl<T: Fusible, const FUSED: bool> AddAssign for Variant<T, FUSED> {
///     fn add_assign(&mut self, other: Self) {
///         *self = self.add(other);
///     }
/// }
/// ```
macro_rules! operator {
    ($trait:ident $method:ident, $assign_trait:ident $assign_method:ident) => {
        impl<T: Fusible, const FUSED: bool> $trait for Variant<T, FUSED> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self::of(self.0.$method(other.0))
            }
        }

        impl<T: Fusible, const FUSED: bool> $assign_trait for Variant<T, FUSED> {
            #[inline(always)]
            fn $assign_method(&mut self, other: Self) {
                *self = self.$method(other);
            }
        }
    };
}
operator!(Add add, AddAssign add_assign);
operator!(Sub sub, SubAssign sub_assign);
operator!(Mul mul, MulAssign mul_assign);
operator!(Div div, DivAssign div_assign);

impl<T: Fusible, const FUSED: bool> Rem for Variant<T, FUSED> {
    type Output = Self;

    #[inline(always)]
    fn rem(self, other: Self) -> Self {
        Self(self.0 % other.0)
    }
}

/// A type that has variants.
pub trait Fusible: Real {
    /// `self · a + b`, rounded once.
    fn fused_mul_add(self, a: Self, b: Self) -> Self;
    /// [`powf`](Real::powf), computed with fused multiply-add.
    fn fused_powf(self, exponent: Self) -> Self;
    /// The same number, about which the compiler knows nothing.
    fn alone(self) -> Self;
}

/// `f(x)`, as a call.
#[inline(never)]
fn call_of<T>(x: T, f: impl Fn(T) -> T) -> T {
    f(x)
}

impl<T: Fusible, const FUSED: bool> Lane for Variant<T, FUSED> {
    const TABLES: &'static Tables = T::TABLES;
    const ROUND: f64 = T::ROUND;
    const SMALLEST_NORMAL: f64 = T::SMALLEST_NORMAL;
    const FRACTION: i32 = T::FRACTION;

    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        Self(T::from_f64(x))
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.0.to_f64()
    }

    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        Self::of(if FUSED { self.0.fused_mul_add(a.0, b.0) } else { self.0.mul_add(a.0, b.0) })
    }

    #[inline(always)]
    fn abs(self) -> Self {
        Self(self.0.abs())
    }

    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        Self(self.0.copysign(sign.0))
    }

    #[inline(always)]
    fn trunc(self) -> Self {
        Self(self.0.trunc())
    }

    #[inline(always)]
    fn head(self) -> Self {
        Self(self.0.head())
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(self.0.or(other.0))
    }

    #[inline(always)]
    fn powers_of_two(self) -> (Self, Self) {
        let (a, b) = self.0.powers_of_two();
        (Self(a), Self(b))
    }

    #[inline(always)]
    fn second_reciprocal(self) -> Self {
        Self(self.0.second_reciprocal())
    }

    #[inline(always)]
    fn power_of_two(self) -> Self {
        Self(self.0.power_of_two())
    }

    #[inline(always)]
    fn split(self) -> (Self, Self, Self) {
        let (k, m, down) = self.0.split();
        (Self(k), Self(m), Self(down))
    }
}

impl<T: Fusible, const FUSED: bool> Real for Variant<T, FUSED> {
    type Fused = Self;
    type Alone = Self;
    const ZERO: Self = Self(T::ZERO);
    const ONE: Self = Self(T::ONE);
    const HALF: Self = Self(T::HALF);
    const INFINITY: Self = Self(T::INFINITY);
    const NEG_INFINITY: Self = Self(T::NEG_INFINITY);
    const NAN: Self = Self(T::NAN);
    const EPSILON: Self = Self(T::EPSILON);
    const MAX: Self = Self(T::MAX);
    const IS_RARE: bool = !FUSED;

    #[inline(always)]
    fn call(self, f: impl Fn(Self) -> Self) -> Self {
        if FUSED { f(self) } else { call_of(self, f) }
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(self.0.sqrt())
    }

    #[inline(always)]
    fn floor(self) -> Self {
        Self(self.0.floor())
    }

    #[inline(always)]
    fn ceil(self) -> Self {
        Self(self.0.ceil())
    }

    #[inline(always)]
    fn round(self) -> Self {
        Self(self.0.round())
    }

    #[inline(always)]
    fn powf(self, exponent: Self) -> Self {
        Self(if FUSED { self.0.fused_powf(exponent.0) } else { self.0.powf(exponent.0) })
    }
}
