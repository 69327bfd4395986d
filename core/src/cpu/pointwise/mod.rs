//! Ops by element: what a row of an op table becomes, and how it is applied.
//!
//! A row becomes a [`Kernel`]: one loop for each dtype that is computed in (`loops`). [`Kernel::apply`] finds the dtype, the sizes
//! and the names of the result; then the loop is driven over operands of any strides and dtypes (`drive`). What is not contiguous, or not of the dtype
//! computed in, is gathered first, so that a loop only ever sees contiguous elements of one dtype, and there is one loop per op and dtype, not one per
//! combination.

mod drive;
mod loops;

pub(crate) use loops::{BoolOp, FloatOp, IntOp, bool_loop, float_loops, int_loops};

use crate::dtype::{Category, DType, default_dtype};
use crate::error::{Error, ErrorKind, Result};
use crate::names::{Names, rules};
use crate::shape::{Shape, Sizes, Strides, broadcast};
use crate::tensor::NamedTensor;
use drive::{Source, run_direct};
use loops::Loop;

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
}
