//! Ops by element: the loops and how they are driven.
//!
//! A row of an op table becomes a [`Kernel`]: one loop for each dtype that is computed in. [`Kernel::apply`] finds the dtype, the sizes
//! and the names of the result; [`run`] drives the loop over operands of any strides and dtypes in chunks that stay in the first-level cache: what is
//! not contiguous, or not of the dtype computed in, is gathered into a scratch chunk first. So a loop only ever sees
//! contiguous elements of one dtype, and there is one loop per op and dtype, not one per combination.

use super::convert::converter;
use super::copy::{TILE_COLS, TILE_ROWS, View, gather_tile};
use super::integer::Integer;
use super::math::Real;
use super::simd::{Isa, isa};
use super::threads::parallel;
use crate::dtype::{Category, DType, default_dtype};
use crate::error::{Error, ErrorKind, Result};
use crate::names::{Names, rules};
use crate::shape::{Shape, Sizes, Strides, broadcast};
use crate::tensor::NamedTensor;
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

/// A loop over `n` contiguous elements of each of `N` inputs.
///
/// # Safety
/// Inputs and output have `n` elements of the dtypes that the loop was made for; the output overlaps no input.
pub(crate) type Loop<const N: usize> = unsafe fn(n: usize, inputs: [*const u8; N], out: *mut u8);

/// What an op by element is: a row of a table.
pub(crate) struct Kernel<const N: usize> {
    /// The op.
    pub(crate) name: &'static str,
    /// The loops on `f32` and `f64`.
    pub(crate) float: Option<[Loop<N>; 2]>,
    /// The loops on `u8`, `i8`, `i16`, `i32`, `i64`.
    pub(crate) int: Option<[Loop<N>; 5]>,
    /// The loop on `bool`.
    pub(crate) boolean: Option<Loop<N>>,
    /// Is the result `bool`, whatever the inputs are?
    pub(crate) to_bool: bool,
    /// Must the last input of an integer op not hold a zero?
    pub(crate) divides: bool,
    /// Is this `pow`, which for some exponents is a product or a root?
    pub(crate) powers: bool,
    /// Which dtypes it takes, where the loops alone do not say it.
    pub(crate) dtypes: Option<Dtypes>,
}

/// A rule of dtypes that a row follows besides having loops for some.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dtypes {
    /// Floats alone: the others do not become the default float.
    Floats,
    /// Floats alone, and all inputs of the dtype of the first; only a plain number, and a last input without dims, may have another.
    OneFloat,
    /// No input may be `bool`, also where it would promote to what has a loop.
    NoBool,
    /// `bool` is computed in `i64`.
    BoolAsInt,
}

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

/// The dtype that tensors promote to. Among those with dims, then among 0-d tensors, then among plain numbers the widest counts; a later group
/// matters only when its category is higher.
#[inline]
pub(crate) fn promoted(inputs: &[&NamedTensor]) -> DType {
    let first = inputs[0].dtype();
    if inputs.iter().all(|x| x.dtype() == first) {
        return first;
    }
    let group = |member: fn(&NamedTensor) -> bool| {
        inputs.iter().filter(|x| member(x)).map(|x| x.dtype()).reduce(DType::promote)
    };
    let dims = group(|x| x.ndim() > 0);
    let zero_d = group(|x| x.ndim() == 0 && !x.is_number());
    let numbers = group(NamedTensor::is_number);
    [zero_d, numbers].into_iter().fold(dims, combine).expect("there is an input")
}

fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    match (higher, lower) {
        (Some(high), Some(low)) if low.category() > high.category() => Some(high.promote(low)),
        (None, low) => low,
        (high, _) => high,
    }
}

/// Integers have no power of a negative number, which would be 0 but for 1 and -1.
#[track_caller]
fn check_power(x: &NamedTensor, exponent: &NamedTensor) -> Result<()> {
    let whole = |x: &NamedTensor| !x.dtype().is_floating_point();
    if !exponent.is_number() || !whole(exponent) || !whole(x) || exponent.item()?.to_f64() >= 0.0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::DType, "pow", "Integers to negative integer powers are not allowed.")
        .with_operands([x.extents()])
        .with_repair(format!("x.to({:?})?", default_dtype())))
}

/// The op that raises floats to this number, if it is a cheaper one: PyTorch's choice, whose results at -0 and -inf are those of the cheaper op.
fn power_of(x: &NamedTensor, exponent: &NamedTensor) -> Option<&'static Kernel<1>> {
    use crate::ops::binary::{cube, first_power, zeroth_power};
    use crate::ops::unary::kernels::{positive, reciprocal, rsqrt, sqrt, square};
    if !exponent.is_number() || x.is_number() {
        return None;
    }
    if exponent.dtype() == DType::Bool && x.dtype() == DType::Bool {
        // The powers that bools have, as in PyTorch.
        return Some(if exponent.item().ok()?.to_f64() == 0.0 { &zeroth_power } else { &first_power });
    }
    if !x.dtype().is_floating_point() {
        return None;
    }
    let powers =
        [(-1.0, &reciprocal), (-0.5, &rsqrt), (0.5, &sqrt), (1.0, &positive), (2.0, &square), (3.0, &cube)];
    let exponent = exponent.item().ok()?.to_f64();
    powers.into_iter().find(|(power, _)| *power == exponent).map(|(_, kernel)| kernel)
}

impl<const N: usize> Kernel<N> {
    /// The dtype that the inputs are computed in, before half types widen, and that the result has unless it is `bool`.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the op makes no sense on it.
    #[inline]
    #[track_caller]
    pub(crate) fn compute_dtype(&self, inputs: &[&NamedTensor; N]) -> Result<DType> {
        let dtype = promoted(inputs);
        let dtype = match self.dtypes {
            Some(Dtypes::BoolAsInt) if dtype == DType::Bool => DType::I64,
            Some(Dtypes::NoBool) if inputs.iter().any(|x| x.dtype() == DType::Bool) => {
                return Err(self.refused(DType::Bool, inputs).with_repair(
                    "logical_not to invert a mask, logical_xor for where two differ, or a cast",
                ));
            }
            Some(Dtypes::OneFloat) => {
                self.check_one_float(inputs)?;
                dtype
            }
            _ => dtype,
        };
        if self.has(dtype) {
            return Ok(dtype);
        }
        // An op that only floats have takes the others as the default float, unless its row says otherwise.
        if self.float.is_some() && self.int.is_none() && self.boolean.is_none() && self.dtypes.is_none() {
            return Ok(default_dtype());
        }
        Err(self.refused(dtype, inputs))
    }

    /// The error of a dtype that the op does not take.
    #[track_caller]
    fn refused(&self, dtype: DType, inputs: &[&NamedTensor; N]) -> Error {
        let accepted = DType::ALL.into_iter().filter(|other| self.has(*other));
        let accepted: Vec<&str> = accepted.map(DType::torch_name).collect();
        let message = format!("not implemented for {dtype}; it takes {}", accepted.join(", "));
        Error::new(ErrorKind::DType, self.name, message).with_operands(inputs.map(|x| x.extents()))
    }

    /// The rule of [`Dtypes::OneFloat`].
    #[track_caller]
    fn check_one_float(&self, inputs: &[&NamedTensor; N]) -> Result<()> {
        let dtype = inputs[0].dtype();
        let fits = |(k, x): (usize, &&NamedTensor)| {
            x.dtype() == dtype || x.is_number() || k == N - 1 && x.ndim() == 0
        };
        if dtype.is_floating_point() && inputs.iter().enumerate().all(fits) {
            return Ok(());
        }
        let found = inputs.map(|x| x.dtype().torch_name()).join(", ");
        let message = format!("expected inputs of one floating-point dtype, got {found}");
        Err(Error::new(ErrorKind::DType, self.name, message).with_operands(inputs.map(|x| x.extents())))
    }

    #[inline]
    fn loop_for(&self, dtype: DType) -> Loop<N> {
        let found = match dtype.compute() {
            DType::Bool => self.boolean,
            DType::U8 => self.int.map(|loops| loops[0]),
            DType::I8 => self.int.map(|loops| loops[1]),
            DType::I16 => self.int.map(|loops| loops[2]),
            DType::I32 => self.int.map(|loops| loops[3]),
            DType::I64 => self.int.map(|loops| loops[4]),
            DType::F64 => self.float.map(|loops| loops[1]),
            _ => self.float.map(|loops| loops[0]),
        };
        found.expect("compute_dtype chose a dtype that the row has")
    }

    /// The op on `inputs`: dtypes promote, sizes broadcast, names unify.
    ///
    /// # Errors
    /// Those of the name rule, [`ErrorKind::Shape`], [`ErrorKind::DType`], [`ErrorKind::Value`] for an integer division by zero.
    #[inline]
    #[track_caller]
    pub(crate) fn apply(&self, inputs: [&NamedTensor; N]) -> Result<NamedTensor> {
        let first = inputs[0];
        let alike = inputs[1..].iter().all(|x| x.is_like(first)) && inputs.iter().all(|x| x.is_contiguous());
        let special = self.divides || self.powers && inputs[N - 1].is_number();
        if alike && !special && first.dtype().compute() == first.dtype() && self.has(first.dtype()) {
            return self.apply_alike(inputs);
        }
        if self.powers {
            check_power(inputs[0], inputs[N - 1])?;
            if let Some(kernel) = power_of(inputs[0], inputs[N - 1]) {
                return kernel.apply([inputs[0]]);
            }
        }
        let dtype = self.compute_dtype(&inputs)?;
        self.apply_as(dtype, inputs)
    }

    /// Most calls: dense inputs of one dtype, of the same sizes and names.
    #[inline]
    #[track_caller]
    fn apply_alike(&self, inputs: [&NamedTensor; N]) -> Result<NamedTensor> {
        let dtype = inputs[0].dtype();
        let mut out = inputs[0].unwritten_like(self.name, if self.to_bool { DType::Bool } else { dtype })?;
        let (body, numel, itemsize) = (self.loop_for(dtype), out.numel(), out.dtype().itemsize());
        // SAFETY: dense inputs of the dtype of the loop, and a fresh output of as many elements.
        unsafe {
            run_direct(numel, body, inputs.map(NamedTensor::ptr), dtype.itemsize(), out.ptr_mut(), itemsize)
        };
        Ok(out)
    }

    /// Is there a loop on this dtype?
    #[inline]
    fn has(&self, dtype: DType) -> bool {
        match dtype.category() {
            Category::Float => self.float.is_some(),
            Category::Integer => self.int.is_some(),
            Category::Bool => self.boolean.is_some(),
        }
    }

    /// The op with `dtype` computed in, for ops of which an input does not take part in promotion.
    #[inline]
    #[track_caller]
    pub(crate) fn apply_as(&self, dtype: DType, inputs: [&NamedTensor; N]) -> Result<NamedTensor> {
        let names = self.names(&inputs)?;
        let sizes = self.sizes(&inputs)?;
        self.check_divisor(dtype, &inputs)?;
        let out_dtype = if self.to_bool { DType::Bool } else { dtype };
        let mut out = NamedTensor::uninit(self.name, Shape { sizes, names }, out_dtype)?;
        let to = out.ptr_mut();
        // SAFETY: the output is fresh, dense and of the broadcast sizes, to which each input is expanded.
        unsafe { self.run(dtype, inputs.map(Source::of), out.sizes(), out_dtype, to, false) };
        Ok(out)
    }

    /// The op written into its first input, `x`: its buffer is reused when nobody else holds it. On an error `x` is as it was.
    ///
    /// # Errors
    /// As [`Kernel::apply`]; [`ErrorKind::Shape`] if the result is larger than `x`, [`ErrorKind::DType`] if it cannot be cast to the dtype of `x`.
    #[track_caller]
    pub(crate) fn apply_in_place(&self, x: &mut NamedTensor, others: &[&NamedTensor]) -> Result<()> {
        if self.powers {
            check_power(x, others[0])?;
            if let Some(kernel) = power_of(x, others[0]) {
                return kernel.apply_in_place(x, &[]);
            }
        }
        let mut inputs: [&NamedTensor; N] = [x; N];
        inputs[1..].copy_from_slice(others);
        let dtype = self.compute_dtype(&inputs)?;
        let names = self.names(&inputs)?;
        let sizes = self.sizes(&inputs)?;
        self.check_divisor(dtype, &inputs)?;
        if sizes[..] != *x.sizes() {
            let message =
                format!("output with shape {:?} doesn't match the broadcast shape {sizes:?}", x.sizes());
            return Err(
                Error::new(ErrorKind::Shape, self.name, message).with_operands(inputs.map(|x| x.extents()))
            );
        }
        let result = if self.to_bool { DType::Bool } else { dtype };
        if !result.can_cast(x.dtype()) {
            let message =
                format!("result type {result} can't be cast to the desired output type {}", x.dtype());
            return Err(Error::new(ErrorKind::DType, self.name, message));
        }
        if x.is_writable() {
            let (out_dtype, strides) = (x.dtype(), Strides::from_slice(x.strides()));
            let to = x.ptr_mut();
            let own = Source { ptr: to, dtype: out_dtype, sizes: &sizes, strides: &strides };
            let sources = std::array::from_fn(|k| if k == 0 { own } else { Source::of(others[k - 1]) });
            // SAFETY: `x` is dense, of the broadcast sizes, and its buffer is held by nobody else; with `aliased` each chunk of it is
            // copied before it is overwritten.
            unsafe { self.run(dtype, sources, &sizes, out_dtype, to, true) };
            x.set_names(names);
        } else {
            let out_dtype = x.dtype();
            let mut out = NamedTensor::uninit(self.name, Shape { sizes: sizes.clone(), names }, out_dtype)?;
            // SAFETY: as in `apply_as`.
            unsafe { self.run(dtype, inputs.map(Source::of), &sizes, out_dtype, out.ptr_mut(), false) };
            *x = out;
        }
        Ok(())
    }

    #[inline]
    #[track_caller]
    fn names(&self, inputs: &[&NamedTensor; N]) -> Result<Names> {
        let first = inputs[0];
        if inputs[1..].iter().all(|x| x.names() == first.names() && x.ndim() == first.ndim())
            || inputs.iter().all(|x| !x.has_names())
        {
            return Ok(first.names().clone());
        }
        let mut names = inputs[0].names().clone();
        let mut sizes = Sizes::from_slice(inputs[0].sizes());
        for x in &inputs[1..] {
            names = rules::unify(
                self.name,
                "broadcast",
                rules::Input { names: &names, sizes: &sizes },
                x.input(),
            )?;
            if x.ndim() > sizes.len() {
                sizes = Sizes::from_slice(x.sizes());
            }
        }
        Ok(names)
    }

    #[inline]
    #[track_caller]
    fn sizes(&self, inputs: &[&NamedTensor; N]) -> Result<Sizes> {
        let mut sizes = Sizes::from_slice(inputs[0].sizes());
        for x in &inputs[1..] {
            if sizes[..] != *x.sizes() {
                let extents = || inputs.iter().map(|x| x.extents());
                sizes = broadcast(self.name, &sizes, x.sizes())
                    .map_err(|error| error.with_operands(extents()))?;
            }
        }
        Ok(sizes)
    }

    #[inline]
    #[track_caller]
    fn check_divisor(&self, dtype: DType, inputs: &[&NamedTensor; N]) -> Result<()> {
        if self.divides
            && dtype.category() == Category::Integer
            && inputs[0].numel() > 0
            // Cast first: 256 is zero as a byte.
            && inputs[N - 1].to(dtype)?.has_zero()?
        {
            return Err(Error::new(
                ErrorKind::Value,
                self.name,
                "ZeroDivisionError: an integer divided by zero",
            ));
        }
        Ok(())
    }

    /// Drives the loop for `dtype` over the inputs, expanded to `sizes`.
    ///
    /// # Safety
    /// `to` has room for a dense tensor of `sizes` that nobody else reads; the inputs broadcast to them. Unless `aliased`, no input overlaps it.
    #[inline]
    unsafe fn run(
        &self,
        dtype: DType,
        inputs: [Source<'_>; N],
        sizes: &[usize],
        out_dtype: DType,
        to: *mut u8,
        aliased: bool,
    ) {
        let compute = dtype.compute();
        let body = self.loop_for(dtype);
        let made = if self.to_bool { DType::Bool } else { compute };
        let numel: usize = sizes.iter().product();
        if numel == 0 {
            return;
        }
        let direct = |x: &Source<'_>| x.dtype == compute && is_dense(x.sizes, x.strides, numel);
        if !aliased && made == out_dtype && inputs.iter().all(direct) {
            // SAFETY: contiguous inputs of as many elements as the output.
            return unsafe {
                run_direct(numel, body, inputs.map(|x| x.ptr), compute.itemsize(), to, made.itemsize())
            };
        }
        let expanded: [Strides; N] = std::array::from_fn(|k| expand_strides(&inputs[k], sizes));
        let (sizes, strides) = coalesce(sizes, expanded);
        let views = std::array::from_fn(|k| View {
            ptr: inputs[k].ptr,
            dtype: inputs[k].dtype,
            strides: &strides[k],
        });
        let task = Task { body, compute, made, out_dtype, sizes: &sizes, views, out: to as usize, aliased };
        if task.is_transposed() {
            let (rows, grain) =
                (numel / sizes[sizes.len() - 1], GRAIN / (TILE_ROWS * sizes[sizes.len() - 1]));
            let bands = rows / sizes[sizes.len() - 2] * sizes[sizes.len() - 2].div_ceil(TILE_ROWS);
            // SAFETY: bands of different threads do not overlap, and the caller's contract.
            return parallel(bands, grain.max(1), |bands| unsafe { task.run_tiles(bands) });
        }
        parallel(numel, GRAIN, |range| {
            // SAFETY: ranges of different threads do not overlap, and the caller's contract.
            unsafe { task.run(range) }
        });
    }
}

/// An input as the loops see it.
#[derive(Clone, Copy)]
struct Source<'a> {
    ptr: *const u8,
    dtype: DType,
    sizes: &'a [usize],
    strides: &'a [isize],
}

impl<'a> Source<'a> {
    #[inline]
    fn of(x: &'a NamedTensor) -> Source<'a> {
        Source { ptr: x.ptr(), dtype: x.dtype(), sizes: x.sizes(), strides: x.strides() }
    }
}

/// Are these `numel` elements side by side in row-major order?
#[inline]
fn is_dense(sizes: &[usize], strides: &[isize], numel: usize) -> bool {
    let mut step = 1;
    for (size, stride) in sizes.iter().zip(strides).rev() {
        if *size != 1 && *stride != step as isize {
            return false;
        }
        step *= size;
    }
    step == numel
}

/// The strides that read `x` as a tensor of `sizes`: zero where it is expanded.
fn expand_strides(x: &Source<'_>, sizes: &[usize]) -> Strides {
    let missing = sizes.len() - x.sizes.len();
    let own = x.sizes.iter().zip(x.strides).map(|(size, stride)| if *size == 1 { 0 } else { *stride });
    std::iter::repeat_n(0, missing).chain(own).collect()
}

/// Merges neighbouring dims over which every operand steps evenly.
fn coalesce<const N: usize>(sizes: &[usize], strides: [Strides; N]) -> (Sizes, [Strides; N]) {
    let mut merged = Sizes::new();
    let mut steps: [Strides; N] = std::array::from_fn(|_| Strides::new());
    for (dim, &size) in sizes.iter().enumerate() {
        if size == 1 {
            continue;
        }
        let last = merged.len().wrapping_sub(1);
        let even = !merged.is_empty() && (0..N).all(|k| steps[k][last] == strides[k][dim] * size as isize);
        if even {
            merged[last] *= size;
            (0..N).for_each(|k| steps[k][last] = strides[k][dim]);
        } else {
            merged.push(size);
            (0..N).for_each(|k| steps[k].push(strides[k][dim]));
        }
    }
    if merged.is_empty() {
        merged.push(1);
        (0..N).for_each(|k| steps[k].push(0));
    }
    (merged, steps)
}

/// Elements that a thread takes at a time, and below which one thread does all: handing work to another costs several microseconds.
pub(crate) const GRAIN: usize = 1 << 16;

/// Contiguous inputs of the dtype computed in: the loop runs on them as they are.
#[inline]
unsafe fn run_direct<const N: usize>(
    numel: usize,
    body: Loop<N>,
    from: [*const u8; N],
    itemsize: usize,
    to: *mut u8,
    out_itemsize: usize,
) {
    if numel <= 2 * GRAIN {
        // SAFETY: the caller's contract.
        return unsafe { body(numel, from, to) };
    }
    let (from, to) = (from.map(|ptr| ptr as usize), to as usize); // addresses, so that threads may share them
    parallel(numel, GRAIN, |range| {
        let from = from.map(|ptr| (ptr + range.start * itemsize) as *const u8);
        let to = (to + range.start * out_itemsize) as *mut u8;
        // SAFETY: ranges of different threads do not overlap.
        unsafe { body(range.len(), from, to) }
    });
}

/// Elements of a scratch chunk: with two inputs of eight bytes half of a first-level cache.
const CHUNK: usize = 1024;
type Scratch = [MaybeUninit<u64>; CHUNK];

/// A loop with its operands, for a thread to run a part of.
struct Task<'a, const N: usize> {
    body: Loop<N>,
    compute: DType,
    made: DType,
    out_dtype: DType,
    sizes: &'a [usize],
    views: [View<'a>; N],
    out: usize,
    aliased: bool,
}

impl<const N: usize> Task<'_, N> {
    /// Runs elements `range` of the output, chunk by chunk.
    ///
    /// # Safety
    /// As [`Kernel::run`]; no other thread has any of these elements.
    unsafe fn run(&self, range: Range<usize>) {
        let mut scratch: [Scratch; N] = [[MaybeUninit::uninit(); CHUNK]; N];
        let mut made: Scratch = [MaybeUninit::uninit(); CHUNK];
        let last = self.sizes.len() - 1;
        let inner = self.sizes[last];
        let mut filled = [false; N]; // an operand of one element is spread over its scratch chunk once
        let mut start = range.start;
        while start < range.end {
            // A long inner dim is not crossed, so that operands contiguous along it are read in place.
            let mut n = (range.end - start).min(CHUNK);
            if inner >= CHUNK / 4 {
                n = n.min(inner - start % inner);
            }
            let mut from = [std::ptr::null::<u8>(); N];
            for k in 0..N {
                let view = &self.views[k];
                let spread = view.strides.iter().all(|stride| *stride == 0);
                let buffer = scratch[k].as_mut_ptr().cast::<u8>();
                let whole_run = self.sizes.len() == 1 || n <= inner - start % inner;
                from[k] = if spread && filled[k] {
                    buffer
                } else if whole_run && view.strides[last] == 1 && view.dtype == self.compute && !self.aliased
                {
                    // SAFETY: element `start` of the view exists.
                    unsafe { view.ptr.offset(self.offset(view, start) * view.dtype.itemsize() as isize) }
                } else {
                    let n = if spread { CHUNK } else { n };
                    filled[k] = spread;
                    // SAFETY: the elements exist, the scratch chunk has room for `CHUNK` of any dtype.
                    unsafe { self.gather(view, start, n, buffer) };
                    buffer
                };
            }
            // SAFETY: `n` elements of each input are ready, and of the output there are as many from `start` on.
            unsafe {
                let out = (self.out as *mut u8).add(start * self.out_dtype.itemsize());
                if self.made == self.out_dtype {
                    (self.body)(n, from, out);
                } else {
                    let buffer = made.as_mut_ptr().cast::<u8>();
                    (self.body)(n, from, buffer);
                    converter(self.made, self.out_dtype)(n, buffer, 1, out);
                }
            }
            start += n;
        }
    }

    /// Is an operand read across its memory, so that each element of a row lies in a cache line of its own?
    fn is_transposed(&self) -> bool {
        let Some(row) = self.sizes.len().checked_sub(2) else { return false };
        let across = |view: &View<'_>| {
            let (row_stride, col_stride) =
                (view.strides[row].unsigned_abs(), view.strides[row + 1].unsigned_abs());
            col_stride > 1 && row_stride < col_stride && view.dtype == self.compute
        };
        !self.aliased && self.made == self.out_dtype && self.sizes[row] >= 4 && self.views.iter().any(across)
    }

    /// Runs `bands` of [`TILE_ROWS`] rows of the output, tile by tile: what is read across is gathered so that each of
    /// its cache lines is used whole, down the bands before the next columns, so that a page is left only once.
    ///
    /// # Safety
    /// As [`Kernel::run`] for an [`is_transposed`](Self::is_transposed) task; no other thread has any of these bands.
    unsafe fn run_tiles(&self, bands: Range<usize>) {
        let mut scratch: [[MaybeUninit<u64>; TILE_ROWS * TILE_COLS]; N] =
            [[MaybeUninit::uninit(); TILE_ROWS * TILE_COLS]; N];
        let row_dim = self.sizes.len() - 2;
        let (rows, cols) = (self.sizes[row_dim], self.sizes[row_dim + 1]);
        let per_matrix = rows.div_ceil(TILE_ROWS);
        for col in (0..cols).step_by(TILE_COLS) {
            let width = TILE_COLS.min(cols - col);
            for band in bands.clone() {
                let (matrix, row) = (band / per_matrix, band % per_matrix * TILE_ROWS);
                let height = TILE_ROWS.min(rows - row);
                let first = (matrix * rows + row) * cols + col; // in the output
                let mut tile = [(std::ptr::null::<u8>(), 0); N]; // the first row of each operand, and bytes to the next
                for k in 0..N {
                    let view = &self.views[k];
                    let (row_stride, col_stride) = (view.strides[row_dim], view.strides[row_dim + 1]);
                    let itemsize = view.dtype.itemsize();
                    // SAFETY: the tile is inside the view, and the scratch has room for a tile of any dtype.
                    tile[k] = unsafe {
                        let from = view.ptr.offset(self.offset(view, first) * itemsize as isize);
                        let buffer = scratch[k].as_mut_ptr().cast::<u8>();
                        let pitch = TILE_COLS * self.compute.itemsize();
                        if col_stride == 1 && view.dtype == self.compute {
                            (from, row_stride * itemsize as isize)
                        } else if view.dtype == self.compute {
                            gather_tile(itemsize, [height, width], from, [row_stride, col_stride], buffer);
                            (buffer.cast_const(), pitch as isize)
                        } else {
                            let convert = converter(view.dtype, self.compute);
                            for r in 0..height {
                                let from = from.offset(r as isize * row_stride * itemsize as isize);
                                convert(width, from, col_stride, buffer.add(r * pitch));
                            }
                            (buffer.cast_const(), pitch as isize)
                        }
                    };
                }
                for r in 0..height {
                    // SAFETY: row `r` of each tile has `width` elements, and so has the output from there on.
                    unsafe {
                        let out = (self.out as *mut u8).add((first + r * cols) * self.out_dtype.itemsize());
                        (self.body)(width, tile.map(|(row, pitch)| row.offset(r as isize * pitch)), out);
                    }
                }
            }
        }
    }

    /// Where element `index` of the output lies in `view`.
    #[inline]
    fn offset(&self, view: &View<'_>, mut index: usize) -> isize {
        let mut offset = 0;
        for (size, stride) in self.sizes.iter().zip(view.strides).rev() {
            offset += (index % size) as isize * stride;
            index /= size;
        }
        offset
    }

    /// Copies elements `start..start + n` of `view` side by side to `to`, cast to the dtype computed in.
    ///
    /// # Safety
    /// The elements exist and `to` has room for them. A view of one element may be asked for more than the output has.
    unsafe fn gather(&self, view: &View<'_>, start: usize, n: usize, to: *mut u8) {
        let convert = converter(view.dtype, self.compute);
        let (from_size, to_size) = (view.dtype.itemsize() as isize, self.compute.itemsize());
        let last = self.sizes.len() - 1;
        let (inner, step) = (self.sizes[last], view.strides[last]);
        if view.strides.iter().all(|stride| *stride == 0) {
            // SAFETY: one element, read `n` times.
            return unsafe { convert(n, view.ptr, 0, to) };
        }
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, self.sizes.len());
        let mut rest = start;
        for dim in (0..self.sizes.len()).rev() {
            index[dim] = rest % self.sizes[dim];
            rest /= self.sizes[dim];
        }
        let mut offset: isize = index.iter().zip(view.strides).map(|(i, stride)| *i as isize * stride).sum();
        let mut done = 0;
        while done < n {
            let run = (inner - index[last]).min(n - done);
            // SAFETY: `run` elements along the inner dim exist from `offset` on.
            unsafe { convert(run, view.ptr.offset(offset * from_size), step, to.add(done * to_size)) };
            done += run;
            index[last] += run;
            offset += run as isize * step;
            // Carry into the outer dims, as an odometer does.
            let mut dim = last;
            while index[dim] == self.sizes[dim] && dim > 0 {
                offset -= index[dim] as isize * view.strides[dim];
                index[dim] = 0;
                dim -= 1;
                index[dim] += 1;
                offset += view.strides[dim];
            }
        }
    }
}
