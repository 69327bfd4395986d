//! Reductions of integers, and products: one plain loop, which reads its elements as `i64` or `f64`. They are
//! rarely hot, and a tree would not make them more accurate.

use super::{TASK, write_each_part};
use crate::cpu::convert::converter;
use crate::cpu::room::{Room, fill, vec_of, written};
use crate::cpu::simd::{Simd, UpTo, Vectorized, vectorize};
use crate::dtype::{DType, Element};

/// A reduction of numbers of type `A`.
#[derive(Clone, Copy)]
pub(crate) struct Plain<A> {
    /// The result for no elements.
    start: A,
    /// Adds each row of `x` to the row `y`.
    add_rows: fn(x: &[A], y: &mut [A]),
}

/// `Σ x`; wraps.
pub(crate) const SUM: Plain<i64> = Plain { start: 0, add_rows: |x, y| vectorize(Sums(x), y) };
/// `Π x`; wraps.
pub(crate) const PRODUCT: Plain<i64> = Plain { start: 1, add_rows: |x, y| add_rows(x, y, i64::wrapping_mul) };
/// The largest element.
pub(crate) const MAX: Plain<i64> = Plain { start: i64::MIN, add_rows: |x, y| add_rows(x, y, i64::max) };
/// The smallest element.
pub(crate) const MIN: Plain<i64> = Plain { start: i64::MAX, add_rows: |x, y| add_rows(x, y, i64::min) };
/// Whether all elements, each 0 or 1, are 1.
pub(crate) const ALL: Plain<i64> = Plain { start: 1, ..MIN };
/// Whether any element, each 0 or 1, is 1.
pub(crate) const ANY: Plain<i64> = Plain { start: 0, ..MAX };
/// `Π x` of floats.
pub(crate) const FLOAT_PRODUCT: Plain<f64> =
    Plain { start: 1.0, add_rows: |x, y| add_rows(x, y, |a, b| a * b) };

/// Sums of integers, which are frequent: counts, and numbers of right answers.
struct Sums<'a>(&'a [i64]);

impl Vectorized for Sums<'_> {
    type Out<'a> = &'a mut [i64];
    const UP_TO: UpTo = UpTo::Avx2;

    #[inline(always)]
    fn run<S: Simd>(self, _: S, y: &mut [i64]) {
        add_rows(self.0, y, i64::wrapping_add);
    }
}

#[inline(always)]
fn add_rows<A: Copy>(x: &[A], y: &mut [A], join: impl Fn(A, A) -> A) {
    if let [y] = y {
        for x in x {
            *y = join(*y, *x);
        }
        return;
    }
    for x in x.chunks_exact(y.len()) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = join(*y, *x);
        }
    }
}

/// Elements of any dtype.
#[derive(Clone, Copy)]
pub(crate) struct AnyElements<'a> {
    bytes: &'a [u8],
    dtype: DType,
}

impl<'a> AnyElements<'a> {
    /// The elements of a slice.
    pub(crate) fn of<T: Element>(x: &'a [T]) -> Self {
        // SAFETY: any element consists of initialized bytes.
        let bytes = unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), size_of_val(x)) };
        AnyElements { bytes, dtype: T::DTYPE }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() / self.dtype.itemsize()
    }

    /// The elements from number `from` on, as numbers: those in place, or written to `to`.
    pub(super) fn read<'b, A: Element>(&'b self, from: usize, to: &'b mut Room<A>) -> &'b [A] {
        let size = self.dtype.itemsize();
        let bytes = &self.bytes[from * size..][..to.len() * size];
        // SAFETY: there are as many elements of the dtype, and the cast writes all of the room.
        unsafe {
            if self.dtype == A::DTYPE {
                return std::slice::from_raw_parts(bytes.as_ptr().cast(), to.len());
            }
            converter(self.dtype, A::DTYPE).run(to.len(), bytes.as_ptr(), 1, to.as_mut_ptr().cast());
            written(to)
        }
    }

    /// The first `columns` elements of rows of `stride` elements from number `from` on, as `f32`s in `to`.
    pub(super) fn read_rows<'b>(
        &self,
        from: usize,
        stride: usize,
        columns: usize,
        to: &'b mut Room<f32>,
    ) -> &'b [f32] {
        assert!(to.len().is_multiple_of(columns) && self.dtype != DType::F32, "others are read in place");
        let step = if stride == columns { to.len() } else { columns };
        for (row, to) in to.chunks_mut(step).enumerate() {
            self.read(from + row * stride, to);
        }
        // SAFETY: the rows make up `to`, and the loop writes each.
        unsafe { written(to) }
    }
}

/// The elements that are cast at a time.
const PIECE: usize = 1 << 12;

/// `[outer, n, inner] -> [outer, inner]`.
pub(crate) fn fold_plainly<'a, A: Element>(
    plain: Plain<A>,
    x: AnyElements<'_>,
    [outer, n, inner]: [usize; 3],
    y: &'a mut Room<A>,
) -> &'a mut [A] {
    assert_eq!((x.len(), y.len()), (outer * n * inner, outer * inner));
    if y.is_empty() || n == 0 {
        return fill(y, plain.start);
    }
    // [outer, slabs, inner]: each slab is reduced to a row, then these rows are reduced.
    let rows = (TASK / inner).max(1);
    let slabs = n.div_ceil(rows);
    let parts = vec_of(y.len() * slabs, |parts| {
        write_each_part(x.len(), parts, inner, &|i, part| {
            let (o, from) = (i / slabs, i % slabs * rows);
            let part = fill(part, plain.start);
            let mut piece = Vec::new();
            let (first, len) = ((o * n + from) * inner, (n - from).min(rows) * inner);
            let step = (PIECE / inner).max(1) * inner;
            for at in (0..len).step_by(step) {
                piece.clear();
                piece.reserve(step);
                let room = &mut piece.spare_capacity_mut()[..step.min(len - at)];
                (plain.add_rows)(x.read(first + at, room), part);
            }
            part
        })
    });
    let y = fill(y, plain.start);
    for (parts, y) in parts.chunks_exact(slabs * inner).zip(y.chunks_exact_mut(inner)) {
        (plain.add_rows)(parts, y);
    }
    y
}
