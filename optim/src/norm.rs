//! Norms of tensors, in one pass and in `f64`, and sums in several lanes, which become vectors.

use crate::update::sums_of;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::Sweep;
use namegrad_core::options::VectorNormOptions;
use namegrad_core::{DType, NamedTensor, Result};

/// The norm of a tensor; 0 if it is empty. The order is not negative.
#[track_caller]
pub(crate) fn norm_of(tensor: &NamedTensor, order: f64) -> Result<f64> {
    if tensor.numel() == 0 {
        return Ok(0.0);
    }
    if order == 2.0 && tensor.dtype().is_floating_point() {
        let tensor = tensor.to(tensor.dtype().compute())?.contiguous()?;
        let [squares] = sums_of(&tensor, &Squares)?;
        return Ok(squares.sqrt());
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
                let g = if T::IS_RARE { chunk[rare::<T>(i)] } else { *g }.to_f64();
                *lane += g * g;
            }
        }
        for (lane, g) in lanes.iter_mut().zip(chunks.remainder()) {
            let g = g.to_f64();
            *lane += g * g;
        }
        [total(&lanes)]
    }
}

/// The number of lanes.
const WIDTH: usize = 16;

/// The sum of the lanes.
#[inline(always)]
fn total<T: Real>(lanes: &[T; WIDTH]) -> f64 {
    let mut total = 0.0;
    for lane in lanes {
        total += lane.to_f64();
    }
    total
}

/// The index in a loop, hidden from the compiler where few CPUs run the loop, so that it stays short.
#[inline(always)]
fn rare<T: Real>(i: usize) -> usize {
    if T::IS_RARE { std::hint::black_box(i) } else { i }
}
