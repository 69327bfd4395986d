//! The loops of a row: its formula, compiled into a loop for each dtype that kernels compute in.

use crate::cpu::integer::Integer;
use crate::cpu::math::Real;
use crate::cpu::simd::{Simd, Vectorized, vectorize};
use crate::dtype::Scalar;
use std::marker::PhantomData;

/// A loop over `n` contiguous elements of each of `N` inputs, with arguments that are the same for all
/// elements.
///
/// # Safety
/// Inputs and output have `n` elements of the dtypes that the loop was made for, and there are as many
/// arguments as the formula takes; the output overlaps no input.
pub(crate) type Loop<const N: usize> =
    unsafe fn(n: usize, inputs: [*const u8; N], args: &[Scalar], out: *mut u8);

/// The formula of a row on floats, generic over the float type. `Out` is `T`, or `bool` for a test; `args`
/// are the `A` arguments of the row.
pub(crate) trait FloatOp<const N: usize, const A: usize> {
    /// The index of the input that is a `bool` mask, whose value among the inputs is meaningless. If the
    /// index is too large, there is no mask.
    const MASK: usize;
    type Out<T: Real>: Copy;
    fn f<T: Real>(inputs: [T; N], mask: bool, args: [T; A]) -> Self::Out<T>;
}

/// The formula of a row on integers.
pub(crate) trait IntOp<const N: usize, const A: usize> {
    const MASK: usize;
    type Out<T: Integer>: Copy;
    fn f<T: Integer>(inputs: [T; N], mask: bool, args: [T; A]) -> Self::Out<T>;
}

/// The formula of a row on `bool`.
pub(crate) trait BoolOp<const N: usize> {
    const MASK: usize;
    fn f(inputs: [bool; N], mask: bool) -> bool;
}

/// A formula on one type, from which a loop is made.
trait Formula<const N: usize>: 'static {
    const MASK: usize;
    type In: Copy;
    type Out: Copy;
    /// The arguments, converted to the type of the formula.
    type Args: Copy;
    fn args(args: &[Scalar]) -> Self::Args;
    fn f(inputs: [Self::In; N], mask: bool, args: Self::Args) -> Self::Out;
}

/// The arguments of an op as numbers of one type. It does not depend on the op, so that it is compiled once
/// for each type and not for each loop.
#[inline]
fn converted<T: Copy, const A: usize>(args: &[Scalar], zero: T, convert: fn(Scalar) -> T) -> [T; A] {
    let mut numbers = [zero; A];
    for (number, arg) in numbers.iter_mut().zip(args) {
        *number = convert(*arg);
    }
    numbers
}

/// Converts a number to a float type.
#[inline]
fn float<T: Real>(number: Scalar) -> T {
    T::from_f64(number.to_f64())
}

struct Float<K, T, const A: usize>(PhantomData<(K, T)>);
impl<const N: usize, const A: usize, K: FloatOp<N, A> + 'static, T: Real> Formula<N> for Float<K, T, A> {
    const MASK: usize = K::MASK;
    type In = T;
    type Out = K::Out<T>;
    type Args = [T; A];
    #[inline(always)]
    fn args(args: &[Scalar]) -> [T; A] {
        converted(args, T::ZERO, float)
    }
    #[inline(always)]
    fn f(inputs: [T; N], mask: bool, args: [T; A]) -> K::Out<T> {
        K::f(inputs, mask, args)
    }
}

struct Int<K, T, const A: usize>(PhantomData<(K, T)>);
impl<const N: usize, const A: usize, K: IntOp<N, A> + 'static, T: Integer> Formula<N> for Int<K, T, A> {
    const MASK: usize = K::MASK;
    type In = T;
    type Out = K::Out<T>;
    type Args = [T; A];
    #[inline(always)]
    fn args(args: &[Scalar]) -> [T; A] {
        converted(args, T::default(), saturated)
    }
    #[inline(always)]
    fn f(inputs: [T; N], mask: bool, args: [T; A]) -> K::Out<T> {
        K::f(inputs, mask, args)
    }
}

/// The nearest integer of a type: for example, -1 as a bound for bytes becomes 0.
fn saturated<T: Integer>(number: Scalar) -> T {
    let bits = 8 * size_of::<T>();
    let signed = T::from_scalar(Scalar::Int(-1)) < T::ZERO;
    let (low, high) = match signed {
        true => (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)),
        false => (0, i64::MAX >> (63 - bits)),
    };
    let whole = match number {
        Scalar::Bool(value) => value.into(),
        Scalar::Int(value) => value,
        Scalar::Float(value) => value as i64, // also saturates
    };
    T::from_scalar(Scalar::Int(whole.clamp(low, high)))
}

struct Boolean<K>(PhantomData<K>);
impl<const N: usize, K: BoolOp<N> + 'static> Formula<N> for Boolean<K> {
    const MASK: usize = K::MASK;
    type In = bool;
    type Out = bool;
    type Args = ();
    #[inline(always)]
    fn args(_: &[Scalar]) {}
    #[inline(always)]
    fn f(inputs: [bool; N], mask: bool, _: ()) -> bool {
        K::f(inputs, mask)
    }
}

/// The loop that all elementwise ops share.
///
/// # Safety
/// The contract of [`Loop`], for the types of the formula.
#[inline(always)]
unsafe fn loop_over<F: Formula<N>, const N: usize>(
    n: usize,
    inputs: [*const u8; N],
    args: &[Scalar],
    out: *mut u8,
) {
    let out = out.cast::<F::Out>();
    let args = F::args(args);
    for i in 0..n {
        // SAFETY: the contract of `Loop`.
        unsafe {
            // A loop, since `array::map` costs the compiler more time than everything else here.
            let mut x = [inputs[0].cast::<F::In>().add(i).read(); N];
            let mut mask = false;
            for k in 1..N {
                if k == F::MASK {
                    mask = inputs[k].cast::<bool>().add(i).read();
                } else {
                    x[k] = inputs[k].cast::<F::In>().add(i).read();
                }
            }
            out.add(i).write(F::f(x, mask, args));
        }
    }
}

/// The [`Loop`] of a formula on integers or `bool`. It is compiled only for the build target: these loops are
/// rarely hot, and each copy costs build time.
unsafe fn run_loop<F: Formula<N>, const N: usize>(
    n: usize,
    inputs: [*const u8; N],
    args: &[Scalar],
    out: *mut u8,
) {
    // SAFETY: the same contract.
    unsafe { loop_over::<F, N>(n, inputs, args, out) }
}

/// The [`Loop`] of a formula on floats, compiled for the widest vectors and with fused multiply-add.
unsafe fn run_float<K: FloatOp<N, A> + 'static, T: Real, const N: usize, const A: usize>(
    n: usize,
    inputs: [*const u8; N],
    args: &[Scalar],
    out: *mut u8,
) {
    vectorize(FloatLoop::<K, T, N, A> { n, inputs: &inputs, args, out, formula: PhantomData }, ());
}

/// The arguments of a [`Loop`] on `T`, which meet its contract.
struct FloatLoop<'a, K, T, const N: usize, const A: usize> {
    n: usize,
    /// A reference, since a copy would cost short loops a tenth of their time.
    inputs: &'a [*const u8; N],
    args: &'a [Scalar],
    out: *mut u8,
    formula: PhantomData<(K, T)>,
}

impl<K, T: Real, const N: usize, const A: usize> Vectorized for FloatLoop<'_, K, T, N, A>
where
    K: FloatOp<N, A> + 'static,
{
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S, _: ()) {
        const { assert!(size_of::<S::Number<T>>() == size_of::<T>()) };
        // SAFETY: the arguments meet the contract of `Loop`, and `Number<T>` has the layout of `T`.
        unsafe { loop_over::<Float<K, S::Number<T>, A>, N>(self.n, *self.inputs, self.args, self.out) }
    }
}

/// The loops of a formula on floats. Its results must be `bool` if `to_bool`, which is checked at compile
/// time.
pub(crate) const fn float_loops<const N: usize, const A: usize, K: FloatOp<N, A> + 'static>(
    to_bool: bool,
) -> [Loop<N>; 2] {
    assert!(size_of::<K::Out<f64>>() == if to_bool { size_of::<bool>() } else { size_of::<f64>() });
    [run_float::<K, f32, N, A>, run_float::<K, f64, N, A>]
}

/// Like [`float_loops`], for a formula on integers.
pub(crate) const fn int_loops<const N: usize, const A: usize, K: IntOp<N, A> + 'static>(
    to_bool: bool,
) -> [Loop<N>; 5] {
    assert!(size_of::<K::Out<i64>>() == if to_bool { size_of::<bool>() } else { size_of::<i64>() });
    [
        run_loop::<Int<K, u8, A>, N>,
        run_loop::<Int<K, i8, A>, N>,
        run_loop::<Int<K, i16, A>, N>,
        run_loop::<Int<K, i32, A>, N>,
        run_loop::<Int<K, i64, A>, N>,
    ]
}

/// The loop of a formula on `bool`.
pub(crate) const fn bool_loop<const N: usize, K: BoolOp<N> + 'static>() -> Loop<N> {
    run_loop::<Boolean<K>, N>
}
