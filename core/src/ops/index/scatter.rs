//! Elements, or slices, that are combined with those of a tensor at positions along a dim: what scattering,
//! index_add and their kin have in common.

use super::Reduce;
use super::kernels::{beside, lane_positions, vector_index};
use crate::cpu::index::{self as cpu, Combine, TargetPositions};
use crate::device::compute_in;
use crate::dim::called;
use crate::dtype::{DType, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{Sizes, around};
use crate::names::rules::{self, NamedInput};
use crate::tensor::NamedTensor;
use half::{bf16, f16};

/// Elements, or slices, with their target positions along a dim.
pub(super) struct Scatter {
    positions: NamedTensor,
    /// Dense; of elements, it has the sizes of the positions.
    source: NamedTensor,
    dim: usize,
    of_slices: bool,
}

impl Scatter {
    #[track_caller]
    pub(super) fn new(
        op: &'static str,
        x: &NamedTensor,
        index: &NamedTensor,
        source: &NamedTensor,
        dim: usize,
    ) -> Result<Scatter> {
        same_dtype(op, x, source)?;
        if index.ndim() == x.ndim() {
            rules::beside(op, "index", x.input(), index.input(), dim)?;
        }
        let positions = lane_positions(op, x, index, dim)?;
        let ndim = index.ndim();
        if source.ndim() != ndim || (0..ndim).any(|d| index.sizes()[d] > source.sizes()[d]) {
            let message = format!(
                "Expected index {} to be no larger than source {}: each position needs an element",
                index.shape(),
                source.shape()
            );
            return Err(Error::about(&[x, index, source], ErrorKind::Shape, op, message));
        }
        let names = rules::unify(op, "match", index.input(), source.input())?;
        rules::beside(op, "index", x.input(), NamedInput { names: &names, sizes: index.sizes() }, dim)?;
        let source = beside(source, index, None)?.contiguous()?;
        Ok(Scatter { positions, source, dim, of_slices: false })
    }

    /// Each slice of `source` along `dim` has one position.
    #[track_caller]
    pub(super) fn of_slices(
        op: &'static str,
        x: &NamedTensor,
        index: &NamedTensor,
        source: &NamedTensor,
        dim: usize,
    ) -> Result<Scatter> {
        same_dtype(op, x, source)?;
        let picked = vector_index(op, x, index, dim)?;
        let mut wanted = Sizes::from_slice(x.sizes());
        if x.ndim() > 0 {
            wanted[dim] = picked.numel();
        }
        // As in PyTorch, a vector with one slice for each position can match the single element of a 0-d
        // tensor.
        let alike = x.ndim() == 0 && picked.numel() == 1 && source.sizes() == [1];
        if source.sizes() != &wanted[..] && !alike {
            let message = format!(
                "source must have sizes {wanted:?}, those of the tensor with a slice along {} for each of the {} positions, got {:?}",
                called(x, dim),
                picked.numel(),
                source.sizes()
            );
            return Err(Error::about(&[x, index, source], ErrorKind::Shape, op, message));
        }
        rules::indexed(op, x.input(), index.input(), dim)?; // it has no name of another dim
        rules::beside(op, "source", x.input(), source.input(), dim)?;
        if x.ndim() > 0 && index.ndim() == 1 {
            rules::matched(op, ["index", "source"], [index.input(), source.input()], [0, dim])?;
        }
        Ok(Scatter { positions: picked, source: source.contiguous()?, dim, of_slices: true })
    }

    /// Other elements at the same positions.
    fn of(&self, source: NamedTensor) -> Scatter {
        Scatter { positions: self.positions.clone(), source, ..*self }
    }

    /// Combines each element with the element of `x` at its position.
    #[track_caller]
    pub(super) fn run(&self, how: Combine, x: &mut NamedTensor) -> Result<()> {
        if self.positions.numel() == 0 {
            return Ok(());
        }
        if self.of_slices {
            return self.run_on(how, x);
        }
        let view = beside(x, &self.positions, Some(self.dim))?;
        if view.sizes() == x.sizes() {
            drop(view); // so that it does not count as another owner
            return self.run_on(how, x);
        }
        let mut part = view.contiguous()?;
        self.run_on(how, &mut part)?;
        if !x.is_contiguous() {
            *x = x.deep_clone()?;
        }
        let view = beside(x, &self.positions, Some(self.dim))?;
        x.write_part(view, &part)
    }

    #[track_caller]
    fn run_on(&self, how: Combine, x: &mut NamedTensor) -> Result<()> {
        let sizes = around(x.sizes(), self.dim);
        let positions = self.positions.elements()?;
        let positions = match self.of_slices {
            true => TargetPositions::OfRows(positions),
            false => TargetPositions::OfElements(positions),
        };
        compute_in(x, |x| combine(how, x, &self.source, sizes, positions))
    }

    /// Reduces the elements for each position of `x`, with that of `x` if `include_self`.
    #[track_caller]
    pub(super) fn reduce(
        &self,
        op: &'static str,
        x: &mut NamedTensor,
        reduce: Reduce,
        include_self: bool,
    ) -> Result<()> {
        if reduce == Reduce::Mean && x.dtype() == DType::Bool {
            let message = "the mean is not implemented for bool; it takes the integers and floats";
            return Err(Error::about(&[x], ErrorKind::DType, op, message).with_repair("x.to(DType::U8)?"));
        }
        // The initial value at a position if `x` does not count.
        let (how, start) = match reduce {
            Reduce::Sum | Reduce::Mean => (Combine::Add, Some(-0.0)),
            Reduce::Prod => (Combine::Mul, Some(1.0)),
            // Counting one of the terms twice does not change their extreme.
            Reduce::Amax => (Combine::Max, None),
            Reduce::Amin => (Combine::Min, None),
        };
        if !include_self {
            match start {
                Some(start) => {
                    self.of(self.source.full_like(start, x.dtype())?).run(Combine::Set, x)?;
                }
                None => self.run(Combine::Set, x)?,
            }
        }
        self.run(how, x)?;
        if reduce != Reduce::Mean {
            return Ok(());
        }
        let mut counts = x.unnamed().full_like(i64::from(include_self), DType::I64)?;
        self.of(self.source.full_like(1, DType::I64)?).run(Combine::Add, &mut counts)?;
        let counts = counts.clamp(1, i64::MAX)?;
        match x.dtype().is_floating_point() {
            true => x.div_(&counts).map(drop),
            false => x.floor_divide_(&counts).map(drop),
        }
    }
}

/// Combines the elements of `source`, of the dtype of `x`, with those of `x` at their positions.
#[track_caller]
fn combine(
    how: Combine,
    x: &mut NamedTensor,
    source: &NamedTensor,
    sizes: [usize; 3],
    positions: TargetPositions<'_>,
) -> Result<()> {
    let dtype = x.dtype();
    match (how, dtype) {
        (Combine::Set, _) => dispatch!(dtype, width U => {
            cpu::replace(source.opaque::<U>()?, sizes, positions, x.opaque_mut()?);
        }),
        (Combine::Add, DType::F16) => {
            cpu::add_floats::<f16>(source.elements()?, sizes, positions, x.as_mut_slice()?);
        }
        (Combine::Add, DType::BF16) => {
            cpu::add_floats::<bf16>(source.elements()?, sizes, positions, x.as_mut_slice()?);
        }
        (Combine::Add, DType::F32) => {
            cpu::add_floats::<f32>(source.elements()?, sizes, positions, x.as_mut_slice()?);
        }
        (Combine::Add, DType::F64) => {
            cpu::add::<f64>(source.elements()?, sizes, positions, x.as_mut_slice()?);
        }
        (Combine::Add, DType::I64) => {
            cpu::add::<i64>(source.elements()?, sizes, positions, x.as_mut_slice()?);
        }
        (Combine::Max | Combine::Min, DType::F32) => {
            let is_max = matches!(how, Combine::Max);
            cpu::extremes(is_max, source.elements()?, sizes, positions, x.as_mut_slice()?);
        }
        (_, DType::F32 | DType::F64 | DType::I64) => dispatch!(dtype, wide T => {
            cpu::combine::<T>(how, source.elements()?, sizes, positions, x.as_mut_slice()?);
        }),
        // Integers wrap after the last combination as well as after each, and a `bool` is 0 or 1.
        _ => {
            let class = if dtype.is_floating_point() { DType::F32 } else { DType::I64 };
            let mut wide = x.to(class)?.contiguous()?;
            combine(how, &mut wide, &source.to(class)?, sizes, positions)?;
            *x = wide.to(dtype)?;
        }
    }
    Ok(())
}

#[track_caller]
fn same_dtype(op: &'static str, x: &NamedTensor, source: &NamedTensor) -> Result<()> {
    if x.dtype() == source.dtype() {
        return Ok(());
    }
    let message =
        format!("self and source must have the same dtype, got {} and {}", x.dtype(), source.dtype());
    Err(Error::about(&[x, source], ErrorKind::DType, op, message)
        .with_repair(format!("source.to(DType::{:?})?", x.dtype())))
}
