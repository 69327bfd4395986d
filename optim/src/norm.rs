//! Norms of tensors, in one pass and in `f64`, and sums in several lanes, which become vectors.

use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::{Compiled, Sweep, sweep_any};
use namegrad_core::options::VectorNormOptions;
use namegrad_core::{DType, NamedTensor, Result};
use std::hint::black_box;

/// The norm of a tensor; 0 if it is empty. The order is not negative.
#[track_caller]
pub(crate) fn norm_of(tensor: &NamedTensor, order: f64) -> Result<f64> {
    if tensor.numel() == 0 {
        return Ok(0.0);
    }
    if order == 2.0 && tensor.dtype().is_floating_point() {
        let tensor = tensor.to(tensor.dtype().compute())?.contiguous()?;
        let (sweep, mut squares) = (Compiled::<_, 0, 1>(&Squares), [0.0]);
        match tensor.dtype() {
            DType::F64 => sweep_any::<f64>(&sweep, &mut [], tensor.as_slice()?, &mut [], &mut squares),
            _ => sweep_any::<f32>(&sweep, &mut [], tensor.as_slice()?, &mut [], &mut squares),
        }
        return Ok(squares[0].sqrt());
    }
    // In f64, so that no power overflows. The largest magnitude needs none.
    let is_exact = order.is_infinite() || !tensor.dtype().is_floating_point(); // integers are refused
    let dtype = if is_exact { tensor.dtype() } else { DType::F64 };
    let norm = tensor.to(dtype)?.vector_norm_with(.., VectorNormOptions::new().ord(order))?;
    Ok(norm.to(DType::F64)?.to_vec::<f64>()?[0])
}

/// The norm over all elements of tensors with these norms.
#[track_caller]
pub(crate) fn norm_of_norms(op: &'static str, norms: &[f64], order: f64) -> Result<f64> {
    let norms = NamedTensor::from_slice(norms, [norms.len()])?;
    norm_of(&norms, order).map_err(|error| error.of(op))
}

/// `Σ g²`.
struct Squares;

impl Sweep<0, 1> for Squares {
    #[inline(always)]
    fn run<T: Real>(&self, _: usize, _: &mut [T], g: &[T], []: [&mut [T]; 0]) -> [f64; 1] {
        let mut lanes = [0.0_f64; WIDTH];
        let mut chunks = g.chunks_exact(WIDTH);
        for chunk in &mut chunks {
            for (i, (lane, g)) in lanes.iter_mut().zip(chunk).enumerate() {
                // Where few CPUs run the loop, the index is hidden from the compiler, so that it stays short.
                let g = if T::IS_RARE { chunk[black_box(i)] } else { *g }.to_f64();
                *lane += g * g;
            }
        }
        for (lane, g) in lanes.iter_mut().zip(chunks.remainder()) {
            let g = g.to_f64();
            *lane += g * g;
        }
        [lanes.iter().sum()]
    }
}

/// The number of lanes.
const WIDTH: usize = 16;
