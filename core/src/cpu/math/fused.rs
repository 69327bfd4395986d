//! [`Fused`]: numbers with fused multiply-add, for CPUs that have it.
//!
//! If the build target does not guarantee the instruction, `mul_add` of `std` calls a function that is a
//! hundred times slower, and an `#[inline(always)]` function cannot know for which instructions it is
//! compiled. So the type decides: `f32` multiplies and adds with two roundings, `Fused<f32>` with one, and a
//! [`Vectorized`](crate::cpu::simd::Vectorized) loop uses the type that suits its instructions. Fused numbers
//! make `exp` one and a half times as fast; both types are equally accurate.

use std::fmt::{Debug, Display, Formatter, Result};
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, Sub, SubAssign};

use super::Real;
use super::lane::{Lane, Tables};

/// A number whose functions are computed with fused multiply-add.
///
/// Slow on a CPU without the instruction, and in code that is not compiled for it.
#[derive(Clone, Copy, Default, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Fused<T>(pub T);

impl<T: Debug> Debug for Fused<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.fmt(f)
    }
}

impl<T: Display> Display for Fused<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.fmt(f)
    }
}

impl<T: Neg<Output = T>> Neg for Fused<T> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

/// Implements an operator of [`Fused`] numbers with that of the plain ones.
/// `operator!(Add add, AddAssign add_assign);` becomes
///
/// ```ignore
/// impl<T: Add<Output = T>> Add for Fused<T> {
///     type Output = Self;
///
///     fn add(self, other: Self) -> Self {
///         Self(self.0.add(other.0))
///     }
/// }
///
/// impl<T: AddAssign> AddAssign for Fused<T> {
///     fn add_assign(&mut self, other: Self) {
///         self.0.add_assign(other.0);
///     }
/// }
/// ```
macro_rules! operator {
    ($trait:ident $method:ident, $assign_trait:ident $assign_method:ident) => {
        impl<T: $trait<Output = T>> $trait for Fused<T> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(self.0.$method(other.0))
            }
        }

        impl<T: $assign_trait> $assign_trait for Fused<T> {
            #[inline(always)]
            fn $assign_method(&mut self, other: Self) {
                self.0.$assign_method(other.0);
            }
        }
    };
}
operator!(Add add, AddAssign add_assign);
operator!(Sub sub, SubAssign sub_assign);
operator!(Mul mul, MulAssign mul_assign);
operator!(Div div, DivAssign div_assign);

impl<T: Rem<Output = T>> Rem for Fused<T> {
    type Output = Self;

    #[inline(always)]
    fn rem(self, other: Self) -> Self {
        Self(self.0 % other.0)
    }
}

/// A type that can be [`Fused`].
pub trait Fusible: Real {
    /// `self · a + b`, rounded once.
    fn fused_mul_add(self, a: Self, b: Self) -> Self;
    /// [`powf`](Real::powf), computed with fused multiply-add.
    fn fused_powf(self, exponent: Self) -> Self;
}

impl<T: Fusible> Lane for Fused<T> {
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
        Self(self.0.fused_mul_add(a.0, b.0))
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

impl<T: Fusible> Real for Fused<T> {
    type Fused = Self;
    const ZERO: Self = Self(T::ZERO);
    const ONE: Self = Self(T::ONE);
    const HALF: Self = Self(T::HALF);
    const INFINITY: Self = Self(T::INFINITY);
    const NEG_INFINITY: Self = Self(T::NEG_INFINITY);
    const NAN: Self = Self(T::NAN);
    const EPSILON: Self = Self(T::EPSILON);
    const MAX: Self = Self(T::MAX);

    #[inline(always)]
    fn fused_slice(x: &[Self]) -> &[Self] {
        x
    }

    #[inline(always)]
    fn fused_slice_mut(x: &mut [Self]) -> &mut [Self] {
        x
    }

    #[inline(always)]
    fn call(self, f: impl Fn(Self) -> Self) -> Self {
        f(self)
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
        Self(self.0.fused_powf(exponent.0))
    }
}
