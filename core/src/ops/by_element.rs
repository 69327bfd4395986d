//! Elementwise ops: the kernels that rows with formulas become, and how they are applied.
//!
//! A row becomes a [`Kernel`], with one loop for each dtype that kernels compute in. [`Kernel::call`]
//! determines the dtype, sizes and names of the result, and `crate::cpu::pointwise` runs the loop over
//! operands of any strides and dtypes.

use crate::cpu::pointwise::{ElementLoop, FloatLoops, Job, LoopInput, MOST, drive, run_direct};
use crate::device::{OnDevice, is_on_meta};
use crate::dtype::{Category, DType, Scalar, default_dtype};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{Sizes, Strides};
use crate::names::{Names, rules};
use crate::ops::OpInfo;
use crate::sizes::broadcast;
use crate::tensor::range::beyond;
use crate::tensor::{NamedTensor, Unwritten};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::panic::Location;

/// An elementwise op: a row of a table.
#[doc(hidden)]
pub struct Kernel {
    /// The name of the op.
    pub(crate) name: &'static str,
    /// The loops on floats.
    pub(crate) float: Option<FloatLoops>,
    /// The loop on `i64`, for all integers.
    pub(crate) int: Option<ElementLoop>,
    /// The loop on `bool`.
    pub(crate) boolean: Option<ElementLoop>,
    /// The loops on elements of 1, 2, 4 and 8 bytes, if the op only moves elements.
    pub(crate) any: Option<[ElementLoop; 4]>,
    /// Whether the result is `bool` for all inputs.
    pub(crate) to_bool: bool,
    /// The input that is a `bool` mask and does not affect the dtype of the result.
    pub(crate) mask: Option<usize>,
    /// The function that checks the inputs first.
    pub(crate) before: Option<Before>,
    /// The rule about dtypes, if the loops alone do not determine it.
    pub(crate) dtypes: Option<Dtypes>,
}

/// A function that looks at the inputs and arguments before an op runs. It returns an error, or another
/// kernel that computes the same better.
pub(crate) type Before = fn(&'static str, &[&NamedTensor], &[Scalar]) -> Result<Option<Instead>>;

/// A kernel that runs in place of another one.
pub(crate) enum Instead {
    /// A kernel that needs only the first input, at a lower cost.
    OfFirst(&'static Kernel),
    /// A kernel that sees a mask behind both inputs.
    Masked(&'static Kernel, NamedTensor),
}

/// A rule about the dtypes of an op, in addition to the loops that it has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dtypes {
    /// Only floats; integers and `bool` are not converted.
    Floats,
    /// Only floats, and all inputs have the dtype of the first. A plain number and a 0-d last input can have
    /// another dtype.
    OneFloat,
    /// No input can be `bool`, even if it would promote to a dtype that has a loop.
    NoBool,
    /// `bool` is computed in `i64`.
    BoolAsInt,
    /// The dtype of the first input, to which the others are cast.
    OfFirst,
    /// Inputs that are beyond an integer dtype are bounds: they count as its least or largest number.
    Bounds,
}

/// The dtype that tensors promote to. There are three groups: tensors with dims, 0-d tensors, plain numbers.
/// In each group the widest dtype counts, and a later group matters only if its category is higher.
#[inline(never)]
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

/// The error of sizes that do not broadcast, with the inputs.
#[cold]
fn spread(error: Error, inputs: &[&NamedTensor]) -> Error {
    let error = error.with_inputs(inputs);
    let at = |x: &NamedTensor, from_right: usize| {
        let dim = x.ndim().checked_sub(from_right + 1)?;
        Some((x.sizes()[dim], x.name(dim)))
    };
    let ndim = inputs.iter().map(|x| x.ndim()).max().unwrap_or(0);
    let apart = (0..ndim).find_map(|k| {
        let mut here = inputs.iter().filter_map(|x| at(x, k)).filter(|(size, _)| *size != 1);
        let (first, name) = here.next()?;
        here.find(|(size, _)| *size != first).map(|(_, other)| name.or(other))
    });
    match apart {
        Some(Some(name)) => error.context(format_args!("dim '{name}': ")),
        _ => error,
    }
}

/// The arguments of an op on a narrow integer, limited to its range: for example, -1 as a bound for bytes
/// becomes 0.
#[inline]
fn saturated(dtype: DType, args: &[Scalar]) -> Cow<'_, [Scalar]> {
    if dtype.category() != Category::Integer || dtype == DType::I64 {
        return Cow::Borrowed(args);
    }
    let (bounds, mut args) = (dtype.bounds(), args.to_vec());
    for arg in &mut args {
        let whole = match *arg {
            Scalar::Float(value) => value as i64, // also saturates
            value => value.to_i64(),
        };
        *arg = Scalar::Int(whole.clamp(*bounds.start(), *bounds.end()));
    }
    Cow::Owned(args)
}

/// The inputs of an in-place form, in the first places of an array.
fn with_first<'a>(x: &'a NamedTensor, others: &[&'a NamedTensor]) -> [&'a NamedTensor; MOST] {
    let mut inputs = [x; MOST];
    inputs[1..][..others.len()].copy_from_slice(others);
    inputs
}

/// Tensors as the loops see them, in the first places of an array.
#[inline]
fn sources<'a>(first: LoopInput<'a>, others: &[&'a NamedTensor]) -> [LoopInput<'a>; MOST] {
    let mut sources = [first; MOST];
    for (source, x) in sources[1..].iter_mut().zip(others) {
        *source = self::source(x);
    }
    sources
}

/// A tensor as the loops see it.
#[inline]
fn source(x: &NamedTensor) -> LoopInput<'_> {
    LoopInput { ptr: x.ptr(), dtype: x.dtype(), sizes: x.sizes(), strides: x.strides() }
}

fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    match (higher, lower) {
        (Some(high), Some(low)) if low.category() > high.category() => Some(high.promote(low)),
        (None, low) => low,
        (high, _) => high,
    }
}

impl Kernel {
    /// A kernel without loops.
    pub(crate) const fn new(name: &'static str, to_bool: bool, mask: Option<usize>) -> Kernel {
        let (before, dtypes) = (None, None);
        Kernel { name, float: None, int: None, boolean: None, any: None, to_bool, mask, before, dtypes }
    }

    /// The dtype of the computation, before half types are widened; also the dtype of the result, unless that
    /// is `bool`.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the op does not accept it.
    #[inline]
    #[track_caller]
    pub(crate) fn compute_dtype(&self, inputs: &[&NamedTensor]) -> Result<DType> {
        let dtype = self.promoted(inputs)?;
        let dtype = match self.dtypes {
            Some(Dtypes::OfFirst) => inputs[0].dtype(),
            Some(Dtypes::BoolAsInt) if dtype == DType::Bool => DType::I64,
            Some(Dtypes::NoBool) if inputs.iter().any(|x| x.dtype() == DType::Bool) => {
                return Err(self.refused(DType::Bool, inputs).with_repair(
                    "x.logical_not()? to invert a mask, x.logical_xor(&y)? for where two differ, x.to(DType::I64)? and y.to(DType::I64)? for numbers",
                ));
            }
            Some(Dtypes::OneFloat) => {
                self.check_one_float(inputs)?;
                dtype
            }
            // A number such as 300 does not fit in a byte, and compares greater than all bytes.
            _ if self.to_bool && beyond(inputs, dtype)?.is_some() => DType::I64,
            _ => dtype,
        };
        if self.has(dtype) {
            return Ok(dtype);
        }
        // An op with only a float loop converts other dtypes to the default float, unless its row says
        // otherwise.
        if self.float.is_some() && self.int.is_none() && self.boolean.is_none() && self.dtypes.is_none() {
            return Ok(default_dtype());
        }
        Err(self.refused(dtype, inputs))
    }

    /// The dtype that the inputs promote to, ignoring a mask.
    #[inline]
    #[track_caller]
    fn promoted(&self, inputs: &[&NamedTensor]) -> Result<DType> {
        let Some(at) = self.mask else { return Ok(promoted(inputs)) };
        if inputs[at].dtype() != DType::Bool {
            let (what, repair) = match self.name {
                "choose" => ("condition", "condition.ne(0)?"),
                _ => ("the mask", "mask.ne(0)?"),
            };
            let message = format!("expected {what} to be a boolean tensor, but got {}", inputs[at].dtype());
            return Err(Error::about(inputs, ErrorKind::DType, self.name, message).with_repair(repair));
        }
        let mut others: SmallVec<[&NamedTensor; MOST]> = SmallVec::from_slice(inputs);
        others[at] = inputs[0];
        Ok(promoted(&others))
    }

    /// The error for a dtype that the op does not accept.
    #[track_caller]
    fn refused(&self, dtype: DType, inputs: &[&NamedTensor]) -> Error {
        let accepted = DType::ALL.into_iter().filter(|other| self.has(*other));
        let accepted: Vec<&str> = accepted.map(DType::torch_name).collect();
        let message = format!("not implemented for {dtype}; it takes {}", crate::joined(&accepted, ", "));
        let cast = match (&self.float, &self.int) {
            (Some(_), _) => format!("x.to(DType::{:?})?", default_dtype()),
            (None, Some(_)) => format!("x.to(DType::{:?})?", DType::I64),
            (None, None) => "x.ne(0)?".to_string(),
        };
        // Casts the input whose dtype the op does not take.
        let taken = |x: &NamedTensor| self.has(x.dtype());
        let cast = match inputs[..] {
            [x, y] if taken(x) && !y.is_number() => cast.replacen('x', "y", 1),
            _ => cast,
        };
        Error::about(inputs, ErrorKind::DType, self.name, message).with_repair(cast)
    }

    /// Checks the rule [`Dtypes::OneFloat`].
    #[track_caller]
    fn check_one_float(&self, inputs: &[&NamedTensor]) -> Result<()> {
        let dtype = inputs[0].dtype();
        let fits = |(k, x): (usize, &&NamedTensor)| {
            x.dtype() == dtype || x.is_number() || k == inputs.len() - 1 && x.ndim() == 0
        };
        if dtype.is_floating_point() && inputs.iter().enumerate().all(fits) {
            return Ok(());
        }
        let found =
            crate::joined(&crate::list::<_, Vec<_>>(inputs.iter().map(|x| x.dtype().torch_name())), ", ");
        let message = format!("expected inputs of one floating-point dtype, got {found}");
        let common = inputs.iter().map(|x| x.dtype()).fold(default_dtype(), DType::promote);
        Err(Error::about(inputs, ErrorKind::DType, self.name, message)
            .with_repair(format!("x.to(DType::{common:?})?, and the other inputs alike")))
    }

    #[inline]
    fn loop_for(&self, dtype: DType) -> &ElementLoop {
        let found = match dtype {
            _ if self.any.is_some() => {
                self.any.as_ref().map(|loops| &loops[dtype.itemsize().trailing_zeros() as usize])
            }
            DType::F64 => self.float.as_ref().map(|loops| &loops.f64),
            DType::F32 | DType::F16 | DType::BF16 => self.float.as_ref().map(|loops| &loops.f32),
            DType::Bool => self.boolean.as_ref(),
            _ => self.int.as_ref(),
        };
        found.expect("compute_dtype chose a dtype that the row has")
    }

    /// The dtype of the loop for `dtype`.
    #[inline]
    fn computes(&self, dtype: DType) -> DType {
        match dtype {
            _ if self.any.is_some() => dtype,
            DType::U8 | DType::I8 | DType::I16 | DType::I32 => DType::I64,
            _ => dtype.compute(),
        }
    }

    /// Applies the op to `inputs` with the arguments of the row: dtypes promote, sizes broadcast, names
    /// unify.
    ///
    /// # Errors
    /// The errors of the name rule and of `before`, [`ErrorKind::Shape`], [`ErrorKind::DType`].
    #[track_caller]
    pub fn call(&self, inputs: &[&NamedTensor], args: &[Scalar]) -> Result<NamedTensor> {
        if !is_on_meta() && inputs.iter().any(|x| x.is_meta()) {
            let _device = OnDevice::of_inputs(self.name, &[inputs])?;
            return self.call(inputs, args);
        }
        if let Some(instead) = self.look_before(inputs, args)? {
            return match instead {
                Instead::OfFirst(kernel) => kernel.call(&inputs[..1], &[]),
                Instead::Masked(kernel, mask) => kernel.call(&[inputs[0], inputs[1], &mask], &[]),
            }
            .map_err(|error| error.of(self.name));
        }
        let first = inputs[0];
        let alike = match self.mask {
            None => inputs[1..].iter().all(|x| x.is_like(first)),
            Some(at) => (1..inputs.len()).all(|k| match k == at {
                true => inputs[k].is_mask_of(first),
                false => inputs[k].is_like(first),
            }),
        };
        if alike && inputs.iter().all(|x| x.is_contiguous()) {
            let dtype = first.dtype();
            if self.computes(dtype) == dtype && self.has(dtype) {
                return self.apply_alike(self.loop_for(dtype), self.makes(dtype), inputs, args);
            } else if let Some(body) = self.float.as_ref().and_then(|loops| loops.half(dtype)) {
                return self.apply_alike(body, dtype, inputs, args);
            }
        }
        let dtype = self.compute_dtype(inputs)?;
        self.apply_as(dtype, inputs, args)
    }

    /// Runs [`before`](Kernel::before).
    #[inline]
    #[track_caller]
    fn look_before(&self, inputs: &[&NamedTensor], args: &[Scalar]) -> Result<Option<Instead>> {
        let Some(before) = self.before else { return Ok(None) };
        let caller = Location::caller(); // a function pointer does not get it
        before(self.name, inputs, args).map_err(|error| error.at(caller))
    }

    /// The dtypes of the inputs of a loop on `dtype`.
    #[inline]
    fn reads(&self, dtype: DType) -> [DType; MOST] {
        let mut reads = [dtype; MOST];
        if let Some(at) = self.mask {
            reads[at] = DType::Bool;
        }
        reads
    }

    /// The dtype of the result of the loop for `dtype`.
    #[inline]
    fn makes(&self, dtype: DType) -> DType {
        if self.to_bool { DType::Bool } else { self.computes(dtype) }
    }

    /// The most common case: dense inputs of the same dtype, sizes and names.
    #[inline]
    #[track_caller]
    fn apply_alike(
        &self,
        body: &ElementLoop,
        makes: DType,
        inputs: &[&NamedTensor],
        args: &[Scalar],
    ) -> Result<NamedTensor> {
        let mut from = [std::ptr::null(); MOST];
        for (from, x) in from.iter_mut().zip(inputs) {
            *from = x.data_ptr();
        }
        let (numel, itemsize) = (inputs[0].numel(), makes.itemsize());
        let reads = || self.reads(inputs[0].dtype());
        // SAFETY: dense inputs of the dtypes of the loop, and a fresh output of as many elements, all of which
        // the loop writes.
        unsafe {
            inputs[0].like(self.name, makes, |to| run_direct(numel, body, args, from, reads, to, itemsize))
        }
    }

    /// Whether there is a loop for this dtype.
    #[inline]
    fn has(&self, dtype: DType) -> bool {
        let own = match dtype.category() {
            Category::Float => self.float.is_some(),
            Category::Integer => self.int.is_some(),
            Category::Bool => self.boolean.is_some(),
        };
        own || self.any.is_some()
    }

    /// Applies the op with a given `dtype`, for ops in which an input does not take part in promotion.
    #[track_caller]
    pub(crate) fn apply_as(
        &self,
        dtype: DType,
        inputs: &[&NamedTensor],
        args: &[Scalar],
    ) -> Result<NamedTensor> {
        let (cast, args) = (self.narrowed(dtype, inputs)?, saturated(dtype, args));
        let cast: Vec<&NamedTensor> = cast.iter().collect();
        let inputs = if cast.is_empty() { inputs } else { &cast };
        let names = self.names(inputs)?;
        let sizes = self.sizes(inputs)?;
        let out_dtype = if self.to_bool { DType::Bool } else { dtype };
        let out = Unwritten::of(self.name, &sizes, names, out_dtype)?;
        // SAFETY: the output is new, dense and has the broadcast sizes, to which each input is expanded; the
        // loop writes each element.
        Ok(unsafe { out.write_at(|to| self.drive(dtype, inputs, &args, &sizes, out_dtype, to)) })
    }

    /// Runs the loop for `dtype` over these inputs.
    ///
    /// # Safety
    /// As for [`drive`].
    unsafe fn drive(
        &self,
        dtype: DType,
        inputs: &[&NamedTensor],
        args: &[Scalar],
        sizes: &[usize],
        out: DType,
        to: *mut u8,
    ) {
        let sources = sources(source(inputs[0]), &inputs[1..]);
        // SAFETY: the caller's contract.
        unsafe { drive(self.job(dtype, &sources[..inputs.len()], args, sizes, out), to, false) };
    }

    /// The inputs cast to `dtype`, if the loop computes in a wider integer and one of them is of a wider dtype:
    /// a 0-d tensor, which does not take part in promotion. Otherwise an empty list.
    #[inline]
    #[track_caller]
    fn narrowed(&self, dtype: DType, inputs: &[&NamedTensor]) -> Result<Vec<NamedTensor>> {
        let beyond = |x: &NamedTensor| dtype.promote(x.dtype()) != dtype;
        let mut narrowed = Vec::new();
        if self.computes(dtype) == DType::I64 && dtype != DType::I64 && inputs.iter().any(|x| beyond(x)) {
            for x in inputs {
                let to = if x.dtype() == DType::Bool { DType::Bool } else { dtype };
                narrowed.push(match self.dtypes {
                    Some(Dtypes::Bounds) if beyond(x) && !x.is_meta() => {
                        let bound = saturated(dtype, &[x.item::<Scalar>()?])[0];
                        x.full_like(bound, to)?
                    }
                    _ => x.to(to)?,
                });
            }
        }
        Ok(narrowed)
    }

    /// The loop for `dtype` over these inputs.
    #[inline]
    fn job<'a>(
        &'a self,
        dtype: DType,
        inputs: &'a [LoopInput<'a>],
        args: &'a [Scalar],
        sizes: &'a [usize],
        out: DType,
    ) -> Job<'a> {
        let (compute, made) = (self.reads(self.computes(dtype)), self.makes(dtype));
        Job { body: self.loop_for(dtype), args, inputs, compute, made, out, sizes }
    }

    /// Applies the op and writes the result to its first input `x`, in the same buffer if that is not shared.
    /// After an error, `x` is unchanged.
    ///
    /// # Errors
    /// The errors of [`Kernel::call`]; [`ErrorKind::Shape`] if the result is larger than `x`,
    /// [`ErrorKind::DType`] if it cannot be cast to the dtype of `x`.
    #[track_caller]
    pub fn call_in_place(&self, x: &mut NamedTensor, others: &[&NamedTensor], args: &[Scalar]) -> Result<()> {
        // The kernel has the name of the op, but the user called the in-place form.
        self.write_over(x, others, args).map_err(|error| match super::all().find(|op| op.name == self.name) {
            Some(OpInfo { in_place: Some(called), .. }) => error.of(called),
            _ => error,
        })
    }

    #[track_caller]
    fn write_over(&self, x: &mut NamedTensor, others: &[&NamedTensor], args: &[Scalar]) -> Result<()> {
        let inputs = with_first(x, others);
        let inputs = &inputs[..1 + others.len()];
        let _device = OnDevice::of_inputs(self.name, &[inputs])?;
        if let Some(instead) = self.look_before(inputs, args)? {
            return match instead {
                Instead::OfFirst(kernel) => kernel.write_over(x, &[], &[]),
                Instead::Masked(kernel, mask) => kernel.write_over(x, &[others[0], &mask], &[]),
            };
        }
        let dtype = self.compute_dtype(inputs)?;
        let (cast, args) = (self.narrowed(dtype, others)?, saturated(dtype, args));
        let cast: Vec<&NamedTensor> = cast.iter().collect();
        let others = if cast.is_empty() { others } else { &cast };
        let inputs = with_first(x, others);
        let inputs = &inputs[..1 + others.len()];
        let names = self.names(inputs)?;
        let sizes = self.sizes(inputs)?;
        if sizes[..] != *x.sizes() {
            let message =
                format!("output with shape {:?} doesn't match the broadcast shape {sizes:?}", x.sizes());
            let error = Error::about(inputs, ErrorKind::Shape, self.name, message);
            let op = self.name.trim_end_matches('_');
            return Err(match inputs.len() {
                2 => error.with_repair(format!("let x = x.{op}(&y)?; the result does not fit into x")),
                _ => error,
            });
        }
        if x.has_names() && names != *x.names() {
            rules::out(self.name, &names, x.input())?;
        }
        let result = if self.to_bool { DType::Bool } else { dtype };
        if !result.can_cast(x.dtype()) {
            let message =
                format!("result type {result} can't be cast to the desired output type {}", x.dtype());
            let repair = format!("x = x.to(DType::{result:?})?; before it");
            return Err(Error::about(inputs, ErrorKind::DType, self.name, message).with_repair(repair));
        }
        let out_dtype = x.dtype();
        if x.is_meta() && x.is_writable() {
            x.set_names(names);
        } else if x.is_writable() {
            let strides = Strides::from_slice(x.strides());
            let to = x.ptr_mut();
            let own = LoopInput { ptr: to, dtype: out_dtype, sizes: &sizes, strides: &strides };
            let sources = sources(own, others);
            let job = self.job(dtype, &sources[..1 + others.len()], &args, &sizes, out_dtype);
            // SAFETY: `x` is dense, has the broadcast sizes, and its buffer is not shared; with `aliased`,
            // each chunk is copied before it is overwritten.
            unsafe { drive(job, to, true) };
            x.set_names(names);
        } else {
            let out = Unwritten::of(self.name, &sizes, names, out_dtype)?;
            // SAFETY: as in `apply_as`.
            *x = unsafe { out.write_at(|to| self.drive(dtype, inputs, &args, &sizes, out_dtype, to)) };
        }
        Ok(())
    }

    #[inline]
    #[track_caller]
    fn names(&self, inputs: &[&NamedTensor]) -> Result<Names> {
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
                rules::NamedInput { names: &names, sizes: &sizes },
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
    fn sizes(&self, inputs: &[&NamedTensor]) -> Result<Sizes> {
        let mut sizes = Sizes::from_slice(inputs[0].sizes());
        for x in &inputs[1..] {
            if x.ndim() > 0 && sizes[..] != *x.sizes() {
                sizes = broadcast(self.name, &sizes, x.sizes()).map_err(|error| spread(error, inputs))?;
            }
        }
        Ok(sizes)
    }
}
