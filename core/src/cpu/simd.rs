//! The widest vectors of the CPU, found at run time, so that a plain `cargo build --release` is fast.
//!
//! A loop is a [`Vectorized`] value. [`vectorize`] compiles it three times, for the build target, for AVX2
//! with FMA and for AVX-512, and runs the copy that suits the CPU. Nothing else in the crate enables
//! instructions.
//!
//! An x86-64 without AVX2 is rare, so its copies are as small as possible: their loops take one number at a
//! time ([`Alone`](super::math::Alone)) and call long functions instead of containing them ([`Real::call`]),
//! and a loop may be another one there ([`Simd::IS_RARE`]).

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU8, Ordering};

use super::math::Real;
use super::room::Room;

/// A loop to be compiled for each set of instructions.
///
/// For example, `y ← y + a x`:
///
/// ```ignore
/// struct Axpy<'a, T> { a: f64, x: &'a [T] }
///
/// impl<T: Real> Vectorized for Axpy<'_, T> {
///     type Out<'a> = &'a mut [T];
///
///     #[inline(always)]
///     fn run<S: Simd>(self, simd: S, y: &mut [T]) {
///         axpy(self.a, simd.numbers(self.x), simd.numbers_mut(y));
///     }
/// }
///
/// #[inline(always)]
/// fn axpy<T: Real>(a: f64, x: &[T], y: &mut [T]) {
///     let a = T::from_f64(a);
///     for (y, x) in y.iter_mut().zip(x) {
///         *y = a.mul_add(*x, *y);
///     }
/// }
///
/// vectorize(Axpy { a: 2.0, x: &x }, &mut y);
/// ```
pub(crate) trait Vectorized: Sized {
    /// A reference to what the loop writes, or `()`. It is an argument rather than a field so that the
    /// compiler knows that it overlaps no input.
    type Out<'a>;

    /// What the loop is compiled for.
    const UP_TO: UpTo = UpTo::Avx512;

    /// The loop.
    ///
    /// Must be `#[inline(always)]`, and so must every function that it calls in a hot place: a function that
    /// is not inlined has neither the vectors nor the fused multiply-add of the caller. This includes
    /// closures, which cannot be marked, so use loops instead.
    fn run<S: Simd>(self, simd: S, out: Self::Out<'_>);
}

/// The sets of instructions that a loop is compiled for: the narrowest up to this one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpTo {
    /// Only what the build target guarantees.
    Target,
    /// Not AVX-512.
    Avx2,
    /// All.
    Avx512,
}

impl UpTo {
    /// For loops that take longer to compute than to read and write: all for `f32`. Programs seldom wait for
    /// longer numbers.
    pub(crate) const fn for_math<T>() -> UpTo {
        if is_short::<T>() { UpTo::Avx512 } else { UpTo::Avx2 }
    }

    /// For loops that wait for memory, which take as long with AVX2 as with AVX-512.
    pub(crate) const fn for_memory<T>() -> UpTo {
        if is_short::<T>() { UpTo::Avx2 } else { UpTo::Target }
    }
}

/// Whether the numbers are shorter than `f64`, which most programs use.
pub(crate) const fn is_short<T>() -> bool {
    size_of::<T>() < size_of::<f64>()
}

/// Runs a loop with the widest vectors of this CPU.
#[inline]
pub(crate) fn vectorize<V: Vectorized>(job: V, out: V::Out<'_>) {
    // Nothing that is dropped, since the code for that would be in each copy of this function.
    let (job, out) = (ManuallyDrop::new(job), ManuallyDrop::new(out));
    // SAFETY: this CPU has the instructions that `isa` found.
    unsafe { on_this_cpu(&V::COPIES)(ManuallyDrop::into_inner(job), ManuallyDrop::into_inner(out)) }
}

/// The copies of a loop, in the order of [`Isa`]. [`on_this_cpu`] finds the one to run.
pub(crate) trait LoopCopies: Vectorized {
    const COPIES: [CopyOf<Self>; Isa::COUNT];
}

/// A loop, compiled for the instructions of an [`Isa`], which the CPU must have.
pub(crate) type CopyOf<V> = for<'a> unsafe fn(V, <V as Vectorized>::Out<'a>);

/// The copy for the widest vectors of this CPU.
#[inline]
pub(crate) fn on_this_cpu<F: Copy>(copies: &[F; Isa::COUNT]) -> F {
    // SAFETY: there is a copy for each number.
    unsafe { *copies.get_unchecked(isa_number()) }
}

impl<V: Vectorized> LoopCopies for V {
    #[cfg(not(target_arch = "x86_64"))]
    const COPIES: [CopyOf<V>; Isa::COUNT] = [<V as OnBaseline>::compiled];
    #[cfg(target_arch = "x86_64")]
    const COPIES: [CopyOf<V>; Isa::COUNT] = match V::UP_TO {
        UpTo::Target => [<V as OnTarget>::compiled; Isa::COUNT],
        UpTo::Avx2 => [<V as OnBaseline>::compiled, <V as OnAvx2>::compiled, <V as OnAvx2>::compiled],
        UpTo::Avx512 => [<V as OnBaseline>::compiled, <V as OnAvx2>::compiled, <V as OnAvx512>::compiled],
    };
}

/// Loops with a copy for the build target.
trait OnBaseline: Vectorized {
    #[inline(never)]
    unsafe fn compiled(self, out: Self::Out<'_>) {
        self.run(Baseline, out);
    }
}
impl<V: Vectorized> OnBaseline for V {}

/// A set of instructions, as a value that exists only where the CPU has them.
pub(crate) trait Simd: Copy {
    /// The same as an [`Isa`].
    const ISA: Isa;
    /// Whether vectors have 64 bytes, and not 32 or fewer.
    const HAS_LONG_VECTORS: bool = false;
    /// Whether few CPUs that run this build have no more than these instructions, so that small code counts
    /// more than fast code.
    const IS_RARE: bool;
    /// `T`, with fused multiply-add if there is one; computed one by one where [`IS_RARE`](Self::IS_RARE). It
    /// has the layout of `T`.
    type Number<T: Real>: Real;

    /// The token.
    ///
    /// # Safety
    /// This CPU has the instructions.
    unsafe fn assume() -> Self;

    /// Calls a loop that is compiled for these instructions: once, however many loops call it.
    fn run<V: Vectorized>(self, job: V, out: V::Out<'_>);

    /// The same numbers.
    #[inline(always)]
    fn numbers<T: Real>(self, x: &[T]) -> &[Self::Number<T>] {
        const { assert!(size_of::<Self::Number<T>>() == size_of::<T>()) };
        // SAFETY: the numbers have the layout of `T`.
        unsafe { &*(std::ptr::from_ref(x) as *const [Self::Number<T>]) }
    }

    /// The same numbers.
    #[inline(always)]
    fn numbers_mut<T: Real>(self, x: &mut [T]) -> &mut [Self::Number<T>] {
        const { assert!(size_of::<Self::Number<T>>() == size_of::<T>()) };
        // SAFETY: the numbers have the layout of `T`.
        unsafe { &mut *(std::ptr::from_mut(x) as *mut [Self::Number<T>]) }
    }

    /// [`numbers_mut`](Self::numbers_mut) undone.
    #[inline(always)]
    fn plain_mut<T: Real>(self, x: &mut [Self::Number<T>]) -> &mut [T] {
        // SAFETY: the numbers have the layout of `T`.
        unsafe { &mut *(std::ptr::from_mut(x) as *mut [T]) }
    }

    /// The same memory, to be written.
    #[inline(always)]
    fn room<T: Real>(self, x: &mut Room<T>) -> &mut Room<Self::Number<T>> {
        // SAFETY: the numbers have the layout of `T`, and any number is one of `T` too.
        unsafe { &mut *(std::ptr::from_mut(x) as *mut Room<Self::Number<T>>) }
    }
}

/// The instructions that the build target guarantees.
#[derive(Clone, Copy)]
pub(crate) struct Baseline;

impl Simd for Baseline {
    const ISA: Isa = Isa::Baseline;
    const IS_RARE: bool = cfg!(target_arch = "x86_64");
    #[cfg(target_arch = "x86_64")]
    type Number<T: Real> = T::Alone;
    #[cfg(not(target_arch = "x86_64"))]
    type Number<T: Real> = T;

    #[inline(always)]
    unsafe fn assume() -> Self {
        Baseline
    }

    #[inline(always)]
    fn run<V: Vectorized>(self, job: V, out: V::Out<'_>) {
        // SAFETY: every CPU that runs this program has the instructions of the build target.
        unsafe { OnBaseline::compiled(job, out) }
    }
}

/// Loops with one copy for all CPUs.
#[cfg(target_arch = "x86_64")]
trait OnTarget: Vectorized {
    #[inline(never)]
    unsafe fn compiled(self, out: Self::Out<'_>) {
        self.run(Target, out);
    }
}
#[cfg(target_arch = "x86_64")]
impl<V: Vectorized> OnTarget for V {}

/// The instructions of [`Baseline`] for a loop that every CPU runs, so that its speed counts too.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Target;

#[cfg(target_arch = "x86_64")]
impl Simd for Target {
    const ISA: Isa = Isa::Baseline;
    const IS_RARE: bool = false;
    type Number<T: Real> = T;

    #[inline(always)]
    unsafe fn assume() -> Self {
        Target
    }

    #[inline(always)]
    fn run<V: Vectorized>(self, job: V, out: V::Out<'_>) {
        // SAFETY: every CPU that runs this program has the instructions of the build target.
        unsafe { OnTarget::compiled(job, out) }
    }
}

/// The instruction sets of x86-64. A row has the doc, the name, the trait with its copies of loops, the bytes
/// of a vector and the CPU features of one.
///
/// The row `Avx2 OnAvx2 32: "avx2", "fma", "f16c";` becomes
///
/// ```ignore
/// pub(crate) struct Avx2(());
///
/// impl Avx2 {
///     /// The token, if this CPU has all of the features.
///     pub(crate) fn found() -> Option<Avx2> { ... }
///
///     /// Whether this CPU has all of the features.
///     fn detected() -> bool {
///         is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && ...
///     }
/// }
///
/// trait OnAvx2: Vectorized {
///     #[target_feature(enable = "avx2", enable = "fma", enable = "f16c")]
///     unsafe fn compiled(self, out: Self::Out<'_>) {
///         self.run(Avx2(()), out);
///     }
/// }
/// impl<V: Vectorized> OnAvx2 for V {}
///
/// impl Simd for Avx2 {
///     const ISA: Isa = Isa::Avx2;
///     const HAS_LONG_VECTORS: bool = false;
///     type Number<T: Real> = T::Fused;
///     ...
/// }
/// ```
#[cfg(target_arch = "x86_64")]
macro_rules! instructions {
    ($($(#[$doc:meta])* $Name:ident $OnName:ident $bytes:literal: $($feature:tt),*;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $Name(());

        impl $Name {
            /// The token, if this CPU has all of the features.
            #[inline]
            #[allow(dead_code, reason = "not every set is asked for by itself")]
            pub(crate) fn found() -> Option<$Name> {
                (isa() >= Isa::$Name).then_some($Name(()))
            }

            /// Whether this CPU has all of the features.
            fn detected() -> bool {
                $(std::arch::is_x86_feature_detected!($feature))&&*
            }
        }

        /// Loops with a copy for these instructions. It is a method of the loop, so that the compiler builds
        /// each one with the module that has its type, and several modules at a time.
        trait $OnName: Vectorized {
            #[target_feature($(enable = $feature),*)]
            unsafe fn compiled(self, out: Self::Out<'_>) {
                self.run($Name(()), out);
            }

            /// Calls the copy. rustc lets LLVM inline a function with features in others with the same ones,
            /// whatever its attributes say, but not in this function.
            #[inline(never)]
            unsafe fn called(self, out: Self::Out<'_>) {
                // SAFETY: the same contract.
                unsafe { self.compiled(out) }
            }
        }
        impl<V: Vectorized> $OnName for V {}

        impl Simd for $Name {
            const ISA: Isa = Isa::$Name;
            const HAS_LONG_VECTORS: bool = $bytes == 64;
            const IS_RARE: bool = false;
            type Number<T: Real> = T::Fused;

            #[inline(always)]
            unsafe fn assume() -> Self {
                $Name(())
            }

            #[inline(always)]
            fn run<V: Vectorized>(self, job: V, out: V::Out<'_>) {
                // SAFETY: there is a token only where the CPU has these features.
                unsafe { $OnName::called(job, out) }
            }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
instructions! {
    /// AVX2 with fused multiply-add and half-precision conversions.
    Avx2 OnAvx2 32: "avx2", "fma", "f16c";
    /// AVX-512 F, BW, DQ and VL on top of that.
    Avx512 OnAvx512 64: "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c";
}

/// A set of instructions that loops are compiled for, from the narrowest to the widest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum Isa {
    Baseline = 0,
    #[cfg(target_arch = "x86_64")]
    Avx2 = 1,
    #[cfg(target_arch = "x86_64")]
    Avx512 = 2,
}

impl Isa {
    /// The number of sets.
    pub(crate) const COUNT: usize = if cfg!(target_arch = "x86_64") { 3 } else { 1 };
}

/// The instruction set that loops run with: the widest of this CPU, unless [`VARIABLE`] names a narrower one.
#[inline]
pub(crate) fn isa() -> Isa {
    match FOUND.load(Ordering::Relaxed) {
        #[cfg(target_arch = "x86_64")]
        3 => Isa::Avx512,
        #[cfg(target_arch = "x86_64")]
        2 => Isa::Avx2,
        1 => Isa::Baseline,
        _ => detect(),
    }
}

/// The number of [`isa`].
#[inline]
fn isa_number() -> usize {
    match FOUND.load(Ordering::Relaxed) {
        0 => detect() as usize,
        found => usize::from(found) - 1,
    }
}

/// One more than the number of the instruction set that [`detect`] found; 0 before its first call.
static FOUND: AtomicU8 = AtomicU8::new(0);

/// The environment variable that limits the instructions: `baseline`, `avx2` or `avx512`. Tests and
/// benchmarks set it to run the loops of other CPUs. It is read once. `avx512` includes the instructions for
/// `bf16` of a CPU that has them, but not AMX.
const VARIABLE: &str = "NAMEGRAD_ISA";

/// The instruction set that [`VARIABLE`] names.
fn limit() -> Option<Isa> {
    std::env::var(VARIABLE).ok().and_then(|name| named(&name))
}

/// Whether instructions beyond every [`Isa`] may be used.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_unlimited() -> bool {
    limit().is_none()
}

#[cold]
fn detect() -> Isa {
    let isa = limit().map_or(widest(), |limit| limit.min(widest()));
    FOUND.store(isa as u8 + 1, Ordering::Relaxed);
    isa
}

/// The instruction set with this name.
fn named(name: &str) -> Option<Isa> {
    match name {
        "baseline" => Some(Isa::Baseline),
        #[cfg(target_arch = "x86_64")]
        "avx2" => Some(Isa::Avx2),
        #[cfg(target_arch = "x86_64")]
        "avx512" => Some(Isa::Avx512),
        _ => None,
    }
}

fn widest() -> Isa {
    #[cfg(target_arch = "x86_64")]
    if Avx512::detected() {
        return Isa::Avx512;
    } else if Avx2::detected() {
        return Isa::Avx2;
    }
    Isa::Baseline
}

/// Runs a loop with the given instructions.
///
/// # Safety
/// This CPU has the instructions.
#[cfg(test)]
pub(crate) unsafe fn vectorize_for<V: Vectorized>(isa: Isa, job: V, out: V::Out<'_>) {
    // SAFETY: the caller's contract.
    unsafe { V::COPIES[isa as usize](job, out) }
}

/// The instruction sets that this CPU has, the baseline first.
#[cfg(test)]
pub(crate) fn supported() -> impl Iterator<Item = Isa> {
    #[cfg(target_arch = "x86_64")]
    let all = [Isa::Baseline, Isa::Avx2, Isa::Avx512];
    #[cfg(not(target_arch = "x86_64"))]
    let all = [Isa::Baseline];
    all.into_iter().filter(|set| *set <= isa())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `y = f(x)` of floats.
    struct Map<'a, T> {
        f: Function,
        x: &'a [T],
    }

    #[derive(Clone, Copy, Debug)]
    enum Function {
        /// `3 x + 1`: exact for small integers, with one rounding or two.
        Line,
        Exp,
        Tanh,
    }

    impl Function {
        #[inline(always)]
        fn call<T: Real>(self, x: T) -> T {
            match self {
                Function::Line => x.mul_add(T::from_f64(3.0), T::ONE),
                Function::Exp => x.exp(),
                Function::Tanh => x.tanh(),
            }
        }
    }

    impl<T: Real> Vectorized for Map<'_, T> {
        type Out<'a> = &'a mut [T];

        #[inline(always)]
        fn run<S: Simd>(self, simd: S, y: &mut [T]) {
            for (y, x) in simd.numbers_mut(y).iter_mut().zip(simd.numbers(self.x)) {
                *y = self.f.call(*x);
            }
        }
    }

    /// The results with each set of instructions, the baseline first.
    fn results<T: Real>(f: Function, x: &[T]) -> Vec<(Isa, Vec<T>)> {
        let on = |isa| {
            let mut y = vec![T::NAN; x.len()];
            // SAFETY: the CPU supports these instructions.
            unsafe { vectorize_for(isa, Map { f, x }, &mut y) };
            (isa, y)
        };
        supported().map(on).collect()
    }

    fn check<T: Real>() {
        let integers: Vec<T> = (-500..500).map(|i| T::from_f64(i.into())).collect();
        for (isa, y) in results(Function::Line, &integers) {
            assert!((-500..500).zip(&y).all(|(i, y)| y.to_f64() == f64::from(3 * i + 1)), "{isa:?}");
        }
        let x: Vec<T> = (0..1003).map(|i| T::from_f64((f64::from(i) * 0.73).sin() * 9.0)).collect();
        for f in [Function::Exp, Function::Tanh] {
            let results = results(f, &x);
            let (_, baseline) = &results[0];
            for ((isa, y), i) in results.iter().flat_map(|result| (0..x.len()).map(move |i| (result, i))) {
                let (y, expected) = (y[i].to_f64(), baseline[i].to_f64());
                // Each is within one and a half units of the last place, and the unit is at most `EPSILON`.
                let tolerance = 3.0 * T::EPSILON.to_f64() * expected.abs();
                assert!(
                    (y - expected).abs() <= tolerance,
                    "{isa:?}: {f:?} of {} is {y}, not {expected}",
                    x[i]
                );
            }
        }
    }

    #[test]
    fn floats_are_the_same_with_all_instructions() {
        check::<f32>();
        check::<f64>();
    }

    /// The sums of rows of four, and the last bits of all products so far.
    struct Sums<'a>(&'a [i32]);

    impl Vectorized for Sums<'_> {
        type Out<'a> = (&'a mut [i64], &'a mut i32);

        #[inline(always)]
        fn run<S: Simd>(self, _: S, (sums, product): (&mut [i64], &mut i32)) {
            for (x, sum) in self.0.chunks_exact(4).zip(sums) {
                *sum = x.iter().map(|x| i64::from(*x)).sum();
                for x in x {
                    *product = product.wrapping_mul(*x | 1);
                }
            }
        }
    }

    #[test]
    fn integers_are_the_same_with_all_instructions() {
        let x: Vec<i32> =
            (0..4004_i32).map(|i| i.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)).collect();
        let on = |isa| {
            let (mut sums, mut product) = (vec![0; x.len() / 4], 1);
            // SAFETY: the CPU supports these instructions.
            unsafe { vectorize_for(isa, Sums(&x), (&mut sums, &mut product)) };
            (sums, product)
        };
        let expected = on(Isa::Baseline);
        assert!(supported().all(|isa| on(isa) == expected));
    }

    #[test]
    fn the_widest_instructions_are_taken() {
        struct Which;
        impl Vectorized for Which {
            type Out<'a> = &'a mut Option<Isa>;

            #[inline(always)]
            fn run<S: Simd>(self, _: S, out: &mut Option<Isa>) {
                *out = Some(S::ISA);
            }
        }
        let mut found = None;
        vectorize(Which, &mut found);
        assert_eq!(found, supported().last());
        for isa in supported() {
            // SAFETY: the CPU supports these instructions.
            unsafe { vectorize_for(isa, Which, &mut found) };
            assert_eq!(found, Some(isa));
        }
    }
}
