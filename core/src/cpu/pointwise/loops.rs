//! The loops of a row: its formula, compiled inside one loop for each dtype that is computed in.

use crate::cpu::integer::Integer;
use crate::cpu::math::Real;
use crate::cpu::simd::{Isa, isa};
use std::marker::PhantomData;

/// A loop over `n` contiguous elements of each of `N` inputs.
///
/// # Safety
/// Inputs and output have `n` elements of the dtypes that the loop was made for; the output overlaps no input.
pub(crate) type Loop<const N: usize> = unsafe fn(n: usize, inputs: [*const u8; N], out: *mut u8);

/// The formula of a row on floats, generic over the type computed in. `Out` is `T`, or `bool` for a test.
pub(crate) trait FloatOp<const N: usize> {
    type Out<T: Real>: Copy;
    fn f<T: Real>(inputs: [T; N]) -> Self::Out<T>;
}

/// The formula of a row on integers.
pub(crate) trait IntOp<const N: usize> {
    type Out<T: Integer>: Copy;
    fn f<T: Integer>(inputs: [T; N]) -> Self::Out<T>;
}

/// The formula of a row on `bool`.
pub(crate) trait BoolOp<const N: usize> {
    fn f(inputs: [bool; N]) -> bool;
}

/// A formula on one type: what a loop is made of.
trait Formula<const N: usize>: 'static {
    type In: Copy;
    type Out: Copy;
    fn f(inputs: [Self::In; N]) -> Self::Out;
}

struct Float<K, T>(PhantomData<(K, T)>);
impl<const N: usize, K: FloatOp<N> + 'static, T: Real> Formula<N> for Float<K, T> {
    type In = T;
    type Out = K::Out<T>;
    #[inline(always)]
    fn f(inputs: [T; N]) -> K::Out<T> {
        K::f(inputs)
    }
}

struct Int<K, T>(PhantomData<(K, T)>);
impl<const N: usize, K: IntOp<N> + 'static, T: Integer> Formula<N> for Int<K, T> {
    type In = T;
    type Out = K::Out<T>;
    #[inline(always)]
    fn f(inputs: [T; N]) -> K::Out<T> {
        K::f(inputs)
    }
}

struct Boolean<K>(PhantomData<K>);
impl<const N: usize, K: BoolOp<N> + 'static> Formula<N> for Boolean<K> {
    type In = bool;
    type Out = bool;
    #[inline(always)]
    fn f(inputs: [bool; N]) -> bool {
        K::f(inputs)
    }
}

/// The one loop of all ops by element.
#[inline(always)]
unsafe fn loop_over<F: Formula<N>, const N: usize>(n: usize, inputs: [*const u8; N], out: *mut u8) {
    let out = out.cast::<F::Out>();
    for i in 0..n {
        // SAFETY: the contract of `Loop`.
        unsafe {
            // Not `array::map`: it costs the compiler more than the loop itself.
            let mut x = [inputs[0].cast::<F::In>().add(i).read(); N];
            for k in 1..N {
                x[k] = inputs[k].cast::<F::In>().add(i).read();
            }
            out.add(i).write(F::f(x));
        }
    }
}

/// The loop of a formula on integers or `bool`, compiled once: they are rarely hot, and each copy costs build time.
unsafe fn run_loop<F: Formula<N>, const N: usize>(n: usize, inputs: [*const u8; N], out: *mut u8) {
    // SAFETY: the same contract.
    unsafe { loop_over::<F, N>(n, inputs, out) }
}

/// The loop of a formula on floats, which is computed with fused multiply-add where the CPU has it.
unsafe fn run_float<K: FloatOp<N> + 'static, T: Real, const N: usize>(
    n: usize,
    inputs: [*const u8; N],
    out: *mut u8,
) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
        unsafe fn avx512<F: Formula<N>, const N: usize>(n: usize, inputs: [*const u8; N], out: *mut u8) {
            // SAFETY: the contract of `Loop`.
            unsafe { loop_over::<F, N>(n, inputs, out) }
        }
        #[target_feature(enable = "avx2,fma,f16c")]
        unsafe fn avx2<F: Formula<N>, const N: usize>(n: usize, inputs: [*const u8; N], out: *mut u8) {
            // SAFETY: the contract of `Loop`.
            unsafe { loop_over::<F, N>(n, inputs, out) }
        }
        match isa() {
            // SAFETY: `isa` found these features, and a fused number has the layout of the plain one.
            Isa::Avx512 => return unsafe { avx512::<Float<K, T::Fused>, N>(n, inputs, out) },
            // SAFETY: as above.
            Isa::Avx2 => return unsafe { avx2::<Float<K, T::Fused>, N>(n, inputs, out) },
            Isa::Baseline => {}
        }
    }
    // SAFETY: the contract of `Loop`.
    unsafe { loop_over::<Float<K, T>, N>(n, inputs, out) }
}

/// The loops of a formula on floats.
pub(crate) const fn float_loops<const N: usize, K: FloatOp<N> + 'static>() -> [Loop<N>; 2] {
    [run_float::<K, f32, N>, run_float::<K, f64, N>]
}

/// The loops of a formula on integers.
pub(crate) const fn int_loops<const N: usize, K: IntOp<N> + 'static>() -> [Loop<N>; 5] {
    [
        run_loop::<Int<K, u8>, N>,
        run_loop::<Int<K, i8>, N>,
        run_loop::<Int<K, i16>, N>,
        run_loop::<Int<K, i32>, N>,
        run_loop::<Int<K, i64>, N>,
    ]
}

/// The loop of a formula on `bool`.
pub(crate) const fn bool_loop<const N: usize, K: BoolOp<N> + 'static>() -> Loop<N> {
    run_loop::<Boolean<K>, N>
}
