//! The widest vectors of the CPU, found at run time: a plain `cargo build --release` is fast.
//!
//! A loop written in plain Rust is compiled three times (baseline, AVX2 + FMA, AVX-512) and the right one is called.
//! The body must be `#[inline(always)]` all the way down, so that it is compiled *inside* the function that
//! enables the features.

use std::sync::atomic::{AtomicU8, Ordering};

/// A set of vector instructions that the kernels are compiled for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Isa {
    /// What the compilation target guarantees.
    Baseline = 1,
    /// AVX2 with fused multiply-add and half-precision conversions.
    Avx2 = 2,
    /// AVX-512 F, BW, DQ and VL on top of that.
    Avx512 = 3,
}

/// The widest instruction set of the CPU that runs this.
#[inline]
pub fn isa() -> Isa {
    static FOUND: AtomicU8 = AtomicU8::new(0);
    match FOUND.load(Ordering::Relaxed) {
        1 => Isa::Baseline,
        2 => Isa::Avx2,
        3 => Isa::Avx512,
        _ => {
            let found = detect();
            FOUND.store(found as u8, Ordering::Relaxed);
            found
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Isa {
    use std::arch::is_x86_feature_detected as has;
    let avx2 = has!("avx2") && has!("fma") && has!("f16c");
    let avx512 = avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
    match (avx2, avx512) {
        (_, true) => Isa::Avx512,
        (true, false) => Isa::Avx2,
        _ => Isa::Baseline,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Isa {
    Isa::Baseline
}

/// Defines a function whose body is compiled for every [`Isa`] and dispatched at run time.
///
/// ```ignore
/// simd! {
///     /// `y ← y + a x`.
///     pub(crate) fn axpy['a, T: Real](a: T, x: &'a [T], y: &mut [T]) { for (y, x) in y.iter_mut().zip(x) { *y += a * *x } }
/// }
/// ```
/// becomes `pub(crate) fn axpy<'a, T: Real>(..)` that calls one of three copies of the body. Type parameters must
/// follow from the arguments.
macro_rules! simd {
    ($(#[$meta:meta])* $vis:vis unsafe fn $name:ident $([$($generics:tt)*])? ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[inline]
        $vis unsafe fn $name $(<$($generics)*>)? ($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            unsafe fn body $(<$($generics)*>)? ($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
                unsafe fn avx512 $(<$($generics)*>)? ($($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: the caller keeps the contract of the body.
                    unsafe { body($($arg),*) }
                }
                #[target_feature(enable = "avx2,fma,f16c")]
                unsafe fn avx2 $(<$($generics)*>)? ($($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: the caller keeps the contract of the body.
                    unsafe { body($($arg),*) }
                }
                match $crate::cpu::simd::isa() {
                    // SAFETY: `isa` found these features on this CPU; the rest is the caller's contract.
                    $crate::cpu::simd::Isa::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::cpu::simd::Isa::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::cpu::simd::Isa::Baseline => {}
                }
            }
            // SAFETY: the caller keeps the contract of the body.
            unsafe { body($($arg),*) }
        }
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident $([$($generics:tt)*])? ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[inline]
        $vis fn $name $(<$($generics)*>)? ($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body $(<$($generics)*>)? ($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
                fn avx512 $(<$($generics)*>)? ($($arg: $ty),*) $(-> $ret)? {
                    body($($arg),*)
                }
                #[target_feature(enable = "avx2,fma,f16c")]
                fn avx2 $(<$($generics)*>)? ($($arg: $ty),*) $(-> $ret)? {
                    body($($arg),*)
                }
                match $crate::cpu::simd::isa() {
                    // SAFETY: `isa` found these features on this CPU.
                    $crate::cpu::simd::Isa::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::cpu::simd::Isa::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::cpu::simd::Isa::Baseline => {}
                }
            }
            body($($arg),*)
        }
    };
}
pub(crate) use simd;
