//! Factorizations of batches of row-major matrices, one matrix at a time, so that results do not depend on the
//! number of threads. Small matrices have plain loops, for many matrices at a time ([`lanes`]); larger ones go
//! to `faer`.

pub(crate) mod cholesky;
pub(crate) mod eigen;
pub(crate) mod lanes;
pub(crate) mod lu;
pub(crate) mod svd;

use faer::MatRef;
use faer::dyn_stack::{MemBuffer, StackReq};
use namegrad_core::Element;
use std::ops::{AddAssign, DivAssign, MulAssign, Range, SubAssign};

/// The numbers of matrices: `f32` and `f64`.
pub(crate) trait Number:
    Element + faer::traits::RealField + Copy + PartialOrd + AddAssign + SubAssign + MulAssign + DivAssign
{
    const ZERO: Self;
    const ONE: Self;

    fn root(self) -> Self;
    fn size(self) -> Self;
    fn finite(self) -> bool;
    fn undefined(self) -> bool;
}

impl Number for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;

    fn root(self) -> f32 {
        self.sqrt()
    }
    fn size(self) -> f32 {
        self.abs()
    }
    fn finite(self) -> bool {
        self.is_finite()
    }
    fn undefined(self) -> bool {
        self.is_nan()
    }
}

impl Number for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;

    fn root(self) -> f64 {
        self.sqrt()
    }
    fn size(self) -> f64 {
        self.abs()
    }
    fn finite(self) -> bool {
        self.is_finite()
    }
    fn undefined(self) -> bool {
        self.is_nan()
    }
}

/// Memory that `faer` works in, which grows when it is too small.
pub(crate) struct Scratch(MemBuffer, usize);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch(MemBuffer::new(StackReq::EMPTY), 0)
    }

    pub(crate) fn of(&mut self, needed: StackReq) -> &mut faer::dyn_stack::MemStack {
        let bytes = needed.unaligned_bytes_required();
        if bytes > self.1 {
            *self = Scratch(MemBuffer::new(needed), bytes);
        }
        faer::dyn_stack::MemStack::new(&mut self.0)
    }
}

/// A matrix of `m` rows, whose rows are contiguous.
pub(crate) fn rows<T: Number>(a: &[T], [m, n]: [usize; 2]) -> MatRef<'_, T> {
    MatRef::from_row_major_slice(a, m, n)
}

/// Runs `f` for each of `count` matrices with its part of each output, numbers and integers such as pivots,
/// whose sizes for one matrix are given. `cost` is about the number of operations for one matrix; batches
/// that cost enough are divided between threads.
pub(crate) fn each<T: Number, const N: usize, const M: usize>(
    count: usize,
    cost: usize,
    (numbers, sizes): ([&mut [T]; N], [usize; N]),
    (integers, integer_sizes): ([&mut [i32]; M], [usize; M]),
    f: &(impl Fn(&mut Scratch, usize, [&mut [T]; N], [&mut [i32]; M]) + Sync),
) {
    const TASK: usize = 200_000;
    let block = (TASK / cost.max(1)).max(1);
    divided(0..count, block, (numbers, sizes), (integers, integer_sizes), f);
}

fn divided<T: Number, const N: usize, const M: usize>(
    range: Range<usize>,
    block: usize,
    (mut numbers, sizes): ([&mut [T]; N], [usize; N]),
    (mut integers, integer_sizes): ([&mut [i32]; M], [usize; M]),
    f: &(impl Fn(&mut Scratch, usize, [&mut [T]; N], [&mut [i32]; M]) + Sync),
) {
    if range.len() > block {
        let half = range.len() / 2;
        let left = (taken(&mut numbers, sizes, half), taken(&mut integers, integer_sizes, half));
        let middle = range.start + half;
        rayon::join(
            || divided(range.start..middle, block, (left.0, sizes), (left.1, integer_sizes), f),
            || divided(middle..range.end, block, (numbers, sizes), (integers, integer_sizes), f),
        );
        return;
    }
    let mut scratch = Scratch::new();
    for at in range {
        let own = (taken(&mut numbers, sizes, 1), taken(&mut integers, integer_sizes, 1));
        f(&mut scratch, at, own.0, own.1);
    }
}

/// The parts of the first `count` matrices, or of as many as there are, which are removed from the slices.
fn taken<'a, T, const N: usize>(
    parts: &mut [&'a mut [T]; N],
    sizes: [usize; N],
    count: usize,
) -> [&'a mut [T]; N] {
    std::array::from_fn(|k| {
        let part = std::mem::take(&mut parts[k]);
        let (first, rest) = part.split_at_mut(part.len().min(sizes[k] * count));
        parts[k] = rest;
        first
    })
}
