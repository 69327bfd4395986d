//! Elementwise updates of tensors in place: [`update_tensors`] and [`sweep_tensors`] of a parameter with its
//! gradient and its slots, [`run_alone`] of one tensor.
//!
//! The loops of an update are compiled for each type of numbers and each set of instructions. Everything
//! around them takes a `&dyn Loops` and is compiled once.

use super::*;
use namegrad_core::cpu::update::{Compiled, Loop, Loops, WithoutSums, sweep_any};

/// Updates a parameter and tensors of the same sizes elementwise, with the widest vectors of the CPU and on
/// all threads. [`ParameterStep::run`](crate::ParameterStep::run) does this with all slots.
///
/// # Errors
/// [`ErrorKind::Shape`] if the tensors differ in sizes, [`ErrorKind::DType`] if they differ in dtype.
#[track_caller]
pub fn update_tensors<const N: usize>(
    step: &impl Update<N>,
    param: &mut NamedTensor,
    grad: &NamedTensor,
    slots: [&mut NamedTensor; N],
) -> Result<()> {
    run(&Compiled::<_, N, 0>(&WithoutSums(step)), param, grad, &mut slots.into_iter(), &mut [])
}

/// Like [`update_tensors`], with a loop that returns sums over all elements.
///
/// # Errors
/// Same as [`update_tensors`].
#[track_caller]
pub fn sweep_tensors<const N: usize, const SUMS: usize>(
    step: &impl Sweep<N, SUMS>,
    param: &mut NamedTensor,
    grad: &NamedTensor,
    slots: [&mut NamedTensor; N],
) -> Result<[f64; SUMS]> {
    let mut sums = [0.0; SUMS];
    run(&Compiled::<_, N, SUMS>(step), param, grad, &mut slots.into_iter(), &mut sums)?;
    Ok(sums)
}

/// Runs a loop over a parameter, its gradient and its slots.
#[track_caller]
pub(crate) fn run(
    step: &dyn Loops,
    param: &mut NamedTensor,
    grad: &NamedTensor,
    slots: StateSlots<'_, '_>,
    sums: &mut [f64],
) -> Result<()> {
    check_sizes(param, grad)?;
    if param.device() == Device::Meta {
        return Ok(());
    }
    match param.dtype() {
        DType::F64 => run_as::<f64>(step, param, grad, slots, sums),
        _ => run_as::<f32>(step, param, grad, slots, sums),
    }
}

/// The slots of a parameter.
type StateSlots<'a, 's> = &'a mut dyn ExactSizeIterator<Item = &'s mut NamedTensor>;

#[track_caller]
fn check_sizes(param: &NamedTensor, other: &NamedTensor) -> Result<()> {
    let (own, given) = (param.sizes(), other.sizes());
    Error::ensure(given == own, ErrorKind::Shape, "update_tensors", || {
        format!(
            "{given:?} numbers for a parameter of {own:?}; Slots::take gives slots of other sizes as tensors"
        )
    })
}

#[track_caller]
fn run_as<T: Real + Element>(
    step: &dyn Loop<T>,
    param: &mut NamedTensor,
    grad: &NamedTensor,
    slots: StateSlots<'_, '_>,
    sums: &mut [f64],
) -> Result<()> {
    // Most steps have few slots and allocate nothing.
    let (count, mut few, mut many) = (slots.len(), <[&mut [T]; 4]>::default(), Vec::new());
    for number in 0..count {
        let Some(slot) = slots.next() else { break };
        check_sizes(param, slot)?;
        let slice = slot.as_mut_slice()?;
        if count > few.len() {
            many.push(slice);
        } else {
            few[number] = slice;
        }
    }
    let slices = if count > few.len() { &mut many[..] } else { &mut few[..count] };
    sweep_any(step, param.as_mut_slice()?, grad.as_slice()?, slices, sums);
    Ok(())
}

/// Changes the numbers of one tensor in its buffer. A half type is changed in `f32` and rounded.
pub(crate) fn run_alone(tensor: &mut NamedTensor, sweep: &dyn Loops, sums: &mut [f64]) -> Result<()> {
    if tensor.device() == Device::Meta {
        return Ok(());
    }
    match tensor.dtype() {
        DType::F64 => sweep_any::<f64>(sweep, tensor.as_mut_slice()?, &[], &mut [], sums),
        DType::F32 => sweep_any::<f32>(sweep, tensor.as_mut_slice()?, &[], &mut [], sums),
        dtype => {
            let mut wide = tensor.to(DType::F32)?;
            sweep_any::<f32>(sweep, wide.as_mut_slice()?, &[], &mut [], sums);
            *tensor = wide.to(dtype)?;
        }
    }
    Ok(())
}

/// The number in a tensor with one element; NaN on the meta device.
#[inline(never)]
pub(crate) fn number(tensor: &NamedTensor) -> Result<f64> {
    if tensor.device() == Device::Meta { Ok(f64::NAN) } else { Ok(tensor.to_vec::<f64>()?[0]) }
}

/// The number in a slot of sizes `[]`, in single precision: PyTorch keeps such numbers as `f32` for
/// parameters of any dtype.
pub(crate) fn single(slot: &NamedTensor) -> Result<f32> {
    Ok(number(slot)? as f32)
}
