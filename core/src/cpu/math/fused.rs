//! Fused multiply-add where the CPU turns out to have it: [`Fused`] and [`simd_real!`].
//!
//! `mul_add` of `std` calls a function that is a hundred times slower where the compilation target does not promise the
//! instruction, and an `#[inline(always)]` body cannot know which copy of a loop it is compiled into. So the type says
//! it: `f32` multiplies and adds with two roundings, `Fused<f32>` with one, and [`simd_real!`] calls the body
//! with the type that suits the copy. It makes `exp` one and a half times as fast. Both are as accurate.

use std::fmt::{Debug, Display, Formatter, Result};
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, Sub, SubAssign};

use super::lane::{Lane, Tables};
use super::{Real, elementary};

/// Whether the compilation target promises the instruction, so that the plain types may use it too.
pub(super) const EVERYWHERE: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));

/// A number whose functions are computed with fused multiply-add. Use it only where the CPU has that.
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

macro_rules! fused {
    ($float:ident, $powf:expr) => {
        impl Lane for Fused<$float> {
            const TABLES: &'static Tables = $float::TABLES;
            const ROUND: f64 = $float::ROUND;
            const SMALLEST_NORMAL: f64 = $float::SMALLEST_NORMAL;
            const FRACTION: i32 = $float::FRACTION;

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                Self($float::from_f64(x))
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.0.to_f64()
            }

            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                Self($float::mul_add(self.0, a.0, b.0))
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

        impl Real for Fused<$float> {
            type Fused = Self;
            const ZERO: Self = Self($float::ZERO);
            const ONE: Self = Self($float::ONE);
            const HALF: Self = Self($float::HALF);
            const INFINITY: Self = Self($float::INFINITY);
            const NEG_INFINITY: Self = Self($float::NEG_INFINITY);
            const NAN: Self = Self($float::NAN);
            const EPSILON: Self = Self($float::EPSILON);
            const MAX: Self = Self($float::MAX);
            const MIN: Self = Self($float::MIN);
            const MIN_POSITIVE: Self = Self($float::MIN_POSITIVE);

            #[inline(always)]
            fn fused(self) -> Self {
                self
            }

            #[inline(always)]
            fn fused_slice(x: &[Self]) -> &[Self] {
                x
            }

            #[inline(always)]
            fn fused_slice_mut(x: &mut [Self]) -> &mut [Self] {
                x
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
                Self(Real::round(self.0))
            }

            #[inline(always)]
            fn powf(self, exponent: Self) -> Self {
                let powf: fn(Self, Self) -> Self = $powf;
                powf(self, exponent)
            }
        }
    };
}
fused!(f32, elementary::powf::<Self, Fused<f64>>);
fused!(f64, |x, y| Fused(libm::pow(x.0, y.0)));

/// An argument of a `simd_real!` function, as the copies with fused multiply-add take it.
pub trait Fuse {
    /// `[T::Fused]` for `[T]`.
    type Fused;
    /// The same value.
    fn fuse(self) -> Self::Fused;
}

impl<T: Real> Fuse for T {
    type Fused = T::Fused;

    #[inline(always)]
    fn fuse(self) -> T::Fused {
        self.fused()
    }
}

impl<'a, T: Real> Fuse for &'a [T] {
    type Fused = &'a [T::Fused];

    #[inline(always)]
    fn fuse(self) -> Self::Fused {
        T::fused_slice(self)
    }
}

impl<'a, T: Real> Fuse for &'a mut [T] {
    type Fused = &'a mut [T::Fused];

    #[inline(always)]
    fn fuse(self) -> Self::Fused {
        T::fused_slice_mut(self)
    }
}

impl Fuse for usize {
    type Fused = usize;

    #[inline(always)]
    fn fuse(self) -> usize {
        self
    }
}

impl Fuse for bool {
    type Fused = bool;

    #[inline(always)]
    fn fuse(self) -> bool {
        self
    }
}

impl Fuse for &[i64] {
    type Fused = Self;

    #[inline(always)]
    fn fuse(self) -> Self {
        self
    }
}

/// [`simd!`](crate::cpu::simd) for a body that is generic over [`Real`]: the copies for a CPU with fused multiply-add
/// run it on [`Fused`] numbers. Each argument's type implements [`Fuse`]; nothing is returned.
///
/// Compute in loops and `#[inline(always)]` functions, not in closures: what the compiler decides to compile on its own
/// has no vectors, and calls the C library for each fused multiply-add.
///
/// ```ignore
/// simd_real! {
///     /// `y = exp(x)`.
///     fn exp[T: Real](x: &[T], y: &mut [T]) { for (y, x) in y.iter_mut().zip(x) { *y = x.exp() } }
/// }
/// ```
/// becomes `fn exp<T: Real>(x: &[T], y: &mut [T])`, which calls `body::<T::Fused>` or, on an old CPU, `body::<T>`.
macro_rules! simd_real {
    ($(#[$meta:meta])* $vis:vis fn $name:ident[$($generics:tt)*]($($arg:ident : $ty:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        $vis fn $name<$($generics)*>($($arg: $ty),*) {
            #[inline(always)]
            fn body<$($generics)*>($($arg: $ty),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                use $crate::cpu::{math::Fuse, simd::{Isa, isa}};
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
                fn avx512<$($generics)*>($($arg: $ty),*) {
                    body($($arg.fuse()),*)
                }
                #[target_feature(enable = "avx2,fma,f16c")]
                fn avx2<$($generics)*>($($arg: $ty),*) {
                    body($($arg.fuse()),*)
                }
                match isa() {
                    // SAFETY: `isa` found these features on this CPU.
                    Isa::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    Isa::Avx2 => return unsafe { avx2($($arg),*) },
                    Isa::Baseline => {}
                }
            }
            body($($arg),*)
        }
    };
}
pub(crate) use simd_real;
