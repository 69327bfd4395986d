//! The loops of a row: its formula, compiled into a loop for each dtype that kernels compute in.
//!
//! Loops are the largest part of a build, so a row says how many of them its formula is worth: [`wide`] for
//! functions that programs wait for, [`long`] for those of many instructions, [`plain`] for rare ones of a few
//! instructions, [`scalar`] for rare ones that call functions. Integers are computed in `i64` and narrowed by
//! the driver; what an op only moves ([`moving`]) has a loop for each width of an element and not for each
//! dtype.

use super::MOST;
use crate::cpu::math::Real;
use crate::cpu::matmul::MatmulNumber;
use crate::cpu::room::written;
use crate::cpu::simd::{CopyOf, Isa, LoopCopies, Simd, UpTo, Vectorized, isa, on_this_cpu};
use crate::dtype::{DType, Scalar};
use half::{bf16, f16};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// The loop of a formula over contiguous elements of certain dtypes: a copy for each [`Isa`].
#[derive(Clone, Copy)]
pub(crate) struct ElementLoop {
    copies: [LoopCopy; Isa::COUNT],
    /// The fewest elements that it takes.
    least: usize,
    /// The sizes of an element of each input and of the output, if there is such a number.
    sizes: [u8; MOST + 1],
}

/// The elements of the longest vectors.
const BLOCK: usize = 16;

/// A loop with arguments that are the same for all elements.
///
/// # Safety
/// There are as many inputs and arguments as the formula takes. Inputs and output have `n` elements of the
/// dtypes that the loop was made for, and the output is aligned for its dtype.
type LoopCopy = unsafe fn(Elements<'_>, out: &mut Bytes);

/// The loops of a formula on floats.
#[derive(Clone, Copy)]
pub(crate) struct FloatLoops {
    pub(crate) f32: ElementLoop,
    pub(crate) f64: ElementLoop,
    /// The loops on `f16` and `bf16`, if the formula has its own for them.
    halves: Option<[ElementLoop; 2]>,
}

impl FloatLoops {
    /// The loop on a half type that does not convert its inputs first, unless the CPU has rare instructions.
    pub(crate) fn half(&self, dtype: DType) -> Option<&ElementLoop> {
        let [f16, bf16] = self.halves.as_ref()?;
        match dtype {
            _ if cfg!(target_arch = "x86_64") && isa() == Isa::Baseline => None,
            DType::F16 => Some(f16),
            DType::BF16 => Some(bf16),
            _ => None,
        }
    }
}

/// What a loop reads.
#[derive(Clone, Copy)]
struct Elements<'a> {
    n: usize,
    inputs: InputAddresses,
    args: &'a [Scalar],
}

/// The memory of an output. It is a slice, and a parameter of every loop, so that the compiler knows that it
/// overlaps no input and a loop needs no second form for that.
pub(crate) type Bytes = [MaybeUninit<u8>];

/// The addresses of the inputs of a loop: the first of an array, so that loops over any number of inputs have
/// one type.
type InputAddresses = *const *const u8;

/// A loop with the same copy for all instructions.
const fn single(copy: LoopCopy) -> ElementLoop {
    ElementLoop { copies: [copy; Isa::COUNT], least: 0, sizes: [0; MOST + 1] }
}

impl ElementLoop {
    /// The copies of a loop, which takes any number of elements.
    ///
    /// # Safety
    /// `V` is a transparent struct of [`Elements`].
    const unsafe fn of<V>() -> Self
    where
        for<'a> V: Vectorized<Out<'a> = &'a mut Bytes>,
    {
        // SAFETY: by the caller's contract, both functions are called alike.
        let copies =
            unsafe { std::mem::transmute::<[CopyOf<V>; Isa::COUNT], [LoopCopy; Isa::COUNT]>(V::COPIES) };
        ElementLoop { copies, least: 0, sizes: [0; MOST + 1] }
    }

    /// Runs the loop on `n` elements.
    ///
    /// # Safety
    /// There are as many inputs and arguments as the formula takes. Inputs and output have `n` elements of the
    /// dtypes that the loop was made for, and the output is aligned for its dtype.
    #[inline]
    pub(crate) unsafe fn run(&self, n: usize, inputs: InputAddresses, args: &[Scalar], out: &mut Bytes) {
        if n < self.least {
            // SAFETY: the same contract.
            return unsafe { self.run_padded(n, inputs, args, out) };
        }
        // SAFETY: the same contract, for this CPU.
        unsafe { on_this_cpu(&self.copies)(Elements { n, inputs, args }, out) }
    }

    /// [`run`](Self::run) for fewer elements than a block, as a block.
    #[inline(never)]
    unsafe fn run_padded(&self, n: usize, inputs: InputAddresses, args: &[Scalar], out: &mut Bytes) {
        if n == 0 {
            return;
        }
        let mut padded = [const { MaybeUninit::<[u64; BLOCK]>::uninit() }; MOST];
        let mut made = MaybeUninit::<[u64; BLOCK]>::uninit();
        let mut addresses = [std::ptr::null(); MOST];
        let size_out = usize::from(self.sizes[MOST]);
        // SAFETY: a block of each input, and room for one, of elements of at most eight bytes, of which the
        // first `n` are the caller's.
        unsafe {
            for (k, block) in padded.iter_mut().enumerate() {
                let bytes = n * usize::from(self.sizes[k]);
                if bytes > 0 {
                    let block: *mut u8 = std::ptr::from_mut(block.write([0; BLOCK])).cast();
                    block.copy_from_nonoverlapping(*inputs.add(k), bytes);
                    addresses[k] = block.cast_const();
                }
            }
            let made = made.as_mut_ptr().cast::<MaybeUninit<u8>>();
            let block = Elements { n: BLOCK, inputs: addresses.as_ptr(), args };
            on_this_cpu(&self.copies)(block, std::slice::from_raw_parts_mut(made, BLOCK * size_out));
            out.as_mut_ptr().copy_from_nonoverlapping(made, n * size_out);
        }
    }
}

/// The formula of a row on floats, generic over the float type. `Out` is `T`, or `bool` for a test; `args`
/// are the `A` arguments of the row.
pub(crate) trait FloatOp<const N: usize, const A: usize> {
    /// The index of the input that is a `bool` mask, whose value among the inputs is meaningless. If the
    /// index is too large, there is no mask.
    const MASK: usize;
    type Out<T: Real>: FormulaResult;
    fn f<T: Real>(inputs: [T; N], mask: bool, args: [T; A]) -> Self::Out<T>;
}

/// The formula of a row on integers.
pub(crate) trait IntOp<const N: usize, const A: usize> {
    const MASK: usize;
    type Out: Copy;
    fn f(inputs: [i64; N], mask: bool, args: [i64; A]) -> Self::Out;
}

/// The formula of a row on `bool`.
pub(crate) trait BoolOp<const N: usize> {
    const MASK: usize;
    fn f(inputs: [bool; N], mask: bool) -> bool;
}

/// The formula of a row that only moves elements: it returns one of its inputs.
pub(crate) trait AnyOp<const N: usize> {
    const MASK: usize;
    fn f<T: Copy>(inputs: [T; N], mask: bool) -> T;
}

/// The result of a formula on floats: a number, or `bool`.
pub(crate) trait FormulaResult: Copy {
    /// Writes element `i` of the output of a loop on `T`.
    ///
    /// # Safety
    /// The output has an element `i`, of `T` if this is a number.
    unsafe fn write<T: Real>(self, out: *mut u8, i: usize);
}

impl<F: Real> FormulaResult for F {
    #[inline(always)]
    unsafe fn write<T: Real>(self, out: *mut u8, i: usize) {
        // SAFETY: the caller's contract.
        unsafe { out.cast::<T>().add(i).write(T::from_f64(self.to_f64())) }
    }
}

impl FormulaResult for bool {
    #[inline(always)]
    unsafe fn write<T: Real>(self, out: *mut u8, i: usize) {
        // SAFETY: the caller's contract.
        unsafe { out.cast::<bool>().add(i).write(self) }
    }
}

/// The addresses of the inputs as variables of the loop: in memory, every write of a result could change them,
/// and the loop would not be vectorized.
///
/// # Safety
/// There are `N` inputs.
#[inline(always)]
unsafe fn addresses<const N: usize>(inputs: InputAddresses) -> [*const u8; N] {
    // SAFETY: the caller's contract.
    unsafe { inputs.cast::<[*const u8; N]>().read() }
}

/// Element `i` of each input, and of the mask.
///
/// # Safety
/// Each input has an element `i` of type `T`, or `bool` for the mask.
#[inline(always)]
unsafe fn read<T: Copy, const N: usize>(inputs: &[*const u8; N], at_mask: usize, i: usize) -> ([T; N], bool) {
    // SAFETY: the caller's contract.
    unsafe {
        // A loop, since `array::map` costs the compiler more time than everything else here.
        let mut x = [*inputs[0].cast::<T>().add(i); N];
        let mut mask = false;
        let mut k = 1;
        while k < N {
            if k == at_mask {
                mask = *inputs[k].cast::<bool>().add(i);
            } else {
                x[k] = *inputs[k].cast::<T>().add(i);
            }
            k += 1;
        }
        (x, mask)
    }
}

/// The arguments of an op as numbers of one type.
#[inline]
fn converted<T: Real, const A: usize>(args: &[Scalar]) -> [T; A] {
    let mut numbers = [T::ZERO; A];
    for (number, arg) in numbers.iter_mut().zip(args) {
        *number = T::from_f64(as_f64(arg));
    }
    numbers
}

/// An argument as a number: a call, which is shorter than the conversion.
#[inline(never)]
fn as_f64(arg: &Scalar) -> f64 {
    arg.to_f64()
}

/// The arguments of an op as integers. Floats saturate.
#[inline]
fn whole<const A: usize>(args: &[Scalar]) -> [i64; A] {
    let mut numbers = [0; A];
    for (number, arg) in numbers.iter_mut().zip(args) {
        *number = match *arg {
            Scalar::Bool(value) => value.into(),
            Scalar::Int(value) => value,
            Scalar::Float(value) => value as i64,
        };
    }
    numbers
}

/// A loop on floats, compiled as a part of its caller.
///
/// # Safety
/// The contract of [`LoopCopy`], for `T`.
#[inline(always)]
unsafe fn float_loop<K: FloatOp<N, A>, T: Real, const N: usize, const A: usize>(
    Elements { n, inputs, args }: Elements<'_>,
    out: &mut Bytes,
) {
    let (args, out) = (converted::<T, A>(args), out.as_mut_ptr().cast::<K::Out<T>>());
    // SAFETY: the caller's contract.
    let inputs = unsafe { addresses::<N>(inputs) };
    let mut i = 0;
    while i < n {
        // SAFETY: the caller's contract.
        unsafe {
            let (x, mask) = read::<T, N>(&inputs, K::MASK, i);
            *out.add(i) = K::f(x, mask, args);
        }
        i += 1;
    }
}

/// Like [`float_loop`], one vector at a time, the last of which may overlap the one before: the loop contains
/// the formula once, and no second time for a rest.
///
/// # Safety
/// The contract of [`LoopCopy`], for `T`; `n` is at least `lanes`.
#[inline(always)]
unsafe fn vector_loop<K: FloatOp<N, A>, T: Real, const N: usize, const A: usize>(
    lanes: usize,
    Elements { n, inputs, args }: Elements<'_>,
    out: &mut Bytes,
) {
    let (args, out) = (converted::<T, A>(args), out.as_mut_ptr().cast::<K::Out<T>>());
    // SAFETY: the caller's contract.
    let inputs = unsafe { addresses::<N>(inputs) };
    // SAFETY: the caller's contract.
    unsafe { std::hint::assert_unchecked(n >= lanes) };
    let mut from = 0;
    loop {
        // Inputs do not overlap the output, so that elements that are computed twice are the same.
        let start = from.min(n - lanes);
        let mut i = 0;
        while i < lanes {
            // SAFETY: the caller's contract.
            unsafe {
                let (x, mask) = read::<T, N>(&inputs, K::MASK, start + i);
                *out.add(start + i) = K::f(x, mask, args);
            }
            i += 1;
        }
        from += lanes;
        if from >= n {
            return;
        }
    }
}

/// A loop over a function of `f64`, one element at a time: all that is compiled for a row is that function.
///
/// # Safety
/// The contract of [`LoopCopy`], for `T`.
#[inline(never)]
unsafe fn call_each<T: Real, O: FormulaResult, const N: usize, const A: usize>(
    f: fn([f64; N], bool, [f64; A]) -> O,
    at_mask: usize,
    Elements { n, inputs, args }: Elements<'_>,
    out: &mut Bytes,
) {
    let (args, out) = (converted::<f64, A>(args), out.as_mut_ptr().cast::<u8>());
    // SAFETY: the caller's contract.
    let inputs = unsafe { addresses::<N>(inputs) };
    for i in 0..n {
        // SAFETY: the caller's contract.
        unsafe {
            let (x, mask) = read::<T, N>(&inputs, at_mask, i);
            let mut numbers = [0.0; N];
            for k in 0..N {
                numbers[k] = x[k].to_f64();
            }
            f(numbers, mask, args).write::<T>(out, i);
        }
    }
}

/// The elements of a vector, at most those of a block.
const fn lanes<S: Simd, T>() -> usize {
    let bytes = if S::HAS_LONG_VECTORS { 64 } else { 32 };
    bytes / size_of::<T>()
}

/// A loop on `T`, whose [`Elements`] meet the contract of [`LoopCopy`].
#[repr(transparent)]
struct Floats<'a, K, T, const N: usize, const A: usize, const LONG: bool> {
    elements: Elements<'a>,
    formula: PhantomData<(K, T)>,
}

impl<K: FloatOp<N, A>, T: Real, const N: usize, const A: usize, const LONG: bool> Vectorized
    for Floats<'_, K, T, N, A, LONG>
{
    type Out<'a> = &'a mut Bytes;
    const UP_TO: UpTo = if LONG { UpTo::Avx512 } else { UpTo::Avx2 };

    #[inline(always)]
    fn run<S: Simd>(self, _: S, out: &mut Bytes) {
        const { assert!(size_of::<S::Number<T>>() == size_of::<T>()) };
        // SAFETY: the elements meet the contract of `LoopCopy`, and `Number<T>` has the layout of `T`.
        unsafe {
            if S::IS_RARE {
                call_each::<T, _, N, A>(K::f::<f64>, K::MASK, self.elements, out);
            } else if LONG {
                vector_loop::<K, S::Number<T>, N, A>(lanes::<S, T>(), self.elements, out);
            } else {
                float_loop::<K, S::Number<T>, N, A>(self.elements, out);
            }
        }
    }
}

unsafe fn run_plain<K: FloatOp<N, A>, T: Real, const N: usize, const A: usize>(
    elements: Elements<'_>,
    out: &mut Bytes,
) {
    // SAFETY: the same contract.
    unsafe { float_loop::<K, T, N, A>(elements, out) }
}

unsafe fn run_scalar<K: FloatOp<N, A>, T: Real, const N: usize, const A: usize>(
    elements: Elements<'_>,
    out: &mut Bytes,
) {
    // SAFETY: the same contract.
    unsafe { call_each::<T, _, N, A>(K::f::<f64>, K::MASK, elements, out) }
}

/// Fails to compile unless a formula on floats has the results that its row says.
const fn check_result<const N: usize, const A: usize, K: FloatOp<N, A>>(to_bool: bool) {
    assert!(size_of::<K::Out<f64>>() == if to_bool { size_of::<bool>() } else { size_of::<f64>() });
}

/// The loops of a formula on `f32` and `f64`, compiled for each set of vectors and with fused multiply-add.
/// The results must be `bool` if `to_bool`.
pub(crate) const fn wide<const N: usize, const A: usize, K: FloatOp<N, A>>(to_bool: bool) -> FloatLoops {
    check_result::<N, A, K>(to_bool);
    // SAFETY: `Floats` is such a struct.
    unsafe {
        FloatLoops {
            f32: ElementLoop::of::<Floats<'static, K, f32, N, A, false>>(),
            f64: ElementLoop::of::<Floats<'static, K, f64, N, A, false>>(),
            halves: None,
        }
    }
}

/// A loop on the half type `H`, whose [`Elements`] meet the contract of [`LoopCopy`]. It computes in `f32`, in
/// blocks of [`BLOCK`] numbers, the last of which may overlap the one before.
#[repr(transparent)]
struct Halves<'a, K, H, const N: usize> {
    elements: Elements<'a>,
    formula: PhantomData<(K, H)>,
}

impl<K: FloatOp<N, 0>, H: MatmulNumber<Acc = f32>, const N: usize> Vectorized for Halves<'_, K, H, N> {
    type Out<'a> = &'a mut Bytes;
    const UP_TO: UpTo = UpTo::Avx512;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S, out: &mut Bytes) {
        if S::IS_RARE {
            unreachable!("FloatLoops::half gives no loop for these instructions");
        }
        let Elements { n, inputs, .. } = self.elements;
        let out = out.as_mut_ptr().cast::<MaybeUninit<H>>();
        // SAFETY: the elements meet the contract of `LoopCopy`; `n` is at least a block.
        unsafe {
            let inputs = addresses::<N>(inputs);
            std::hint::assert_unchecked(n >= BLOCK);
            let mut from = 0;
            loop {
                let start = from.min(n - BLOCK);
                let mut x = [[const { MaybeUninit::uninit() }; BLOCK]; N];
                for (x, input) in x.iter_mut().zip(inputs) {
                    let halves = &*input.cast::<H>().add(start).cast::<[H; BLOCK]>();
                    H::widen_slice::<S>(halves, x);
                }
                let mut y = [S::Number::<f32>::ZERO; BLOCK];
                for i in 0..BLOCK {
                    let mut numbers = [S::Number::<f32>::ZERO; N];
                    for k in 0..N {
                        numbers[k] = simd.numbers(written(&mut x[k]))[i];
                    }
                    K::f(numbers, false, []).write::<S::Number<f32>>(y.as_mut_ptr().cast(), i);
                }
                let y = simd.plain_mut::<f32>(&mut y);
                H::narrow_slice::<S>(y, std::slice::from_raw_parts_mut(out.add(start), BLOCK));
                from += BLOCK;
                if from >= n {
                    return;
                }
            }
        }
    }
}

/// Like [`wide`], with loops on half types. Those of other formulas are converted to `f32` and back, part
/// by part.
pub(crate) const fn halves<const N: usize, const A: usize, K: FloatOp<N, 0>>(to_bool: bool) -> FloatLoops {
    assert!(!to_bool);
    let (mut sizes, mut k) = ([0; MOST + 1], 0);
    while k < N {
        sizes[k] = size_of::<f16>() as u8;
        k += 1;
    }
    sizes[MOST] = size_of::<f16>() as u8;
    // SAFETY: `Halves` is such a struct.
    let [short, brain] = unsafe {
        [ElementLoop::of::<Halves<'static, K, f16, N>>(), ElementLoop::of::<Halves<'static, K, bf16, N>>()]
    };
    let (least, loops) = (BLOCK, wide::<N, 0, K>(to_bool));
    FloatLoops {
        halves: Some([ElementLoop { least, sizes, ..short }, ElementLoop { least, sizes, ..brain }]),
        ..loops
    }
}

/// Like [`wide`], for formulas of many instructions, which the loops contain once. Others contain them twice,
/// in vectors and for a rest.
pub(crate) const fn long<const N: usize, const A: usize, K: FloatOp<N, A>>(to_bool: bool) -> FloatLoops {
    check_result::<N, A, K>(to_bool);
    // SAFETY: `Floats` is such a struct.
    let [short, wide] = unsafe {
        [
            ElementLoop::of::<Floats<'static, K, f32, N, A, true>>(),
            ElementLoop::of::<Floats<'static, K, f64, N, A, true>>(),
        ]
    };
    FloatLoops {
        f32: ElementLoop { least: BLOCK, sizes: sizes::<f32, N, A, K>(), ..short },
        f64: ElementLoop { least: BLOCK, sizes: sizes::<f64, N, A, K>(), ..wide },
        halves: None,
    }
}

/// The sizes of the inputs of a formula on `T`, and of its result.
const fn sizes<T: Real, const N: usize, const A: usize, K: FloatOp<N, A>>() -> [u8; MOST + 1] {
    let (mut sizes, mut k) = ([0; MOST + 1], 0);
    while k < N {
        sizes[k] = if k == K::MASK { size_of::<bool>() as u8 } else { size_of::<T>() as u8 };
        k += 1;
    }
    sizes[MOST] = size_of::<K::Out<T>>() as u8;
    sizes
}

/// Like [`wide`], compiled only for the build target.
pub(crate) const fn plain<const N: usize, const A: usize, K: FloatOp<N, A>>(to_bool: bool) -> FloatLoops {
    check_result::<N, A, K>(to_bool);
    let [f32, f64] = [single(run_plain::<K, f32, N, A>), single(run_plain::<K, f64, N, A>)];
    FloatLoops { f32, f64, halves: None }
}

/// Like [`wide`], as calls of one function of `f64`.
pub(crate) const fn scalar<const N: usize, const A: usize, K: FloatOp<N, A>>(to_bool: bool) -> FloatLoops {
    check_result::<N, A, K>(to_bool);
    let [f32, f64] = [single(run_scalar::<K, f32, N, A>), single(run_scalar::<K, f64, N, A>)];
    FloatLoops { f32, f64, halves: None }
}

unsafe fn run_int<K: IntOp<N, A>, const N: usize, const A: usize>(
    Elements { n, inputs, args }: Elements<'_>,
    out: &mut Bytes,
) {
    let (args, out) = (whole::<A>(args), out.as_mut_ptr().cast::<K::Out>());
    // SAFETY: the contract of `LoopCopy`.
    let inputs = unsafe { addresses::<N>(inputs) };
    let mut i = 0;
    while i < n {
        // SAFETY: the contract of `LoopCopy`.
        unsafe {
            let (x, mask) = read::<i64, N>(&inputs, K::MASK, i);
            *out.add(i) = K::f(x, mask, args);
        }
        i += 1;
    }
}

/// The loop of a formula on integers, which are computed in `i64`: narrower ones have the low bits of its
/// results. It is compiled only for the build target. The results must be `bool` if `to_bool`.
pub(crate) const fn integers<const N: usize, const A: usize, K: IntOp<N, A>>(to_bool: bool) -> ElementLoop {
    assert!(size_of::<K::Out>() == if to_bool { size_of::<bool>() } else { size_of::<i64>() });
    single(run_int::<K, N, A>)
}

unsafe fn run_bool<K: BoolOp<N>, const N: usize>(Elements { n, inputs, .. }: Elements<'_>, out: &mut Bytes) {
    let out = out.as_mut_ptr().cast::<bool>();
    // SAFETY: the contract of `LoopCopy`.
    let inputs = unsafe { addresses::<N>(inputs) };
    let mut i = 0;
    while i < n {
        // SAFETY: the contract of `LoopCopy`.
        unsafe {
            let (x, mask) = read::<bool, N>(&inputs, K::MASK, i);
            *out.add(i) = K::f(x, mask);
        }
        i += 1;
    }
}

/// The loop of a formula on `bool`.
pub(crate) const fn booleans<const N: usize, K: BoolOp<N>>() -> ElementLoop {
    single(run_bool::<K, N>)
}

/// A loop that moves elements of type `T`, and whose [`Elements`] meet the contract of [`LoopCopy`].
#[repr(transparent)]
struct Moves<'a, K, T, const N: usize> {
    elements: Elements<'a>,
    formula: PhantomData<(K, T)>,
}

impl<K: AnyOp<N>, T: Copy, const N: usize> Vectorized for Moves<'_, K, T, N> {
    type Out<'a> = &'a mut Bytes;
    const UP_TO: UpTo = UpTo::Avx2;

    #[inline(always)]
    fn run<S: Simd>(self, _: S, out: &mut Bytes) {
        let Elements { n, inputs, .. } = self.elements;
        let out = out.as_mut_ptr().cast::<T>();
        // SAFETY: the elements meet the contract of `LoopCopy`.
        let inputs = unsafe { addresses::<N>(inputs) };
        let mut i = 0;
        while i < n {
            // SAFETY: the elements meet the contract of `LoopCopy`.
            unsafe {
                let (x, mask) = read::<T, N>(&inputs, K::MASK, i);
                *out.add(i) = K::f(x, mask);
            }
            i += 1;
        }
    }
}

/// The loops of a formula that returns one of its inputs, for elements of 1, 2, 4 and 8 bytes.
pub(crate) const fn moving<const N: usize, K: AnyOp<N>>() -> [ElementLoop; 4] {
    // SAFETY: `Moves` is such a struct.
    unsafe {
        [
            ElementLoop::of::<Moves<'static, K, u8, N>>(),
            ElementLoop::of::<Moves<'static, K, u16, N>>(),
            ElementLoop::of::<Moves<'static, K, u32, N>>(),
            ElementLoop::of::<Moves<'static, K, u64, N>>(),
        ]
    }
}
