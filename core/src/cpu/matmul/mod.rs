//! The matrix product `C ← alpha A B + beta C` on strided memory. Nothing here knows about tensors.
//!
//! The files, each of which uses only those above it:
//!
//! | file | subject |
//! | --- | --- |
//! | `element` | the types of numbers |
//! | `product` | a product as data, and the tables of functions that the drivers call |
//! | `buffer` | memory that a thread keeps between products |
//! | `lanes` | vector registers |
//! | `pack` | copies of parts of the operands |
//! | `kernel` | the innermost loop |
//! | `rounded` | sums that are not formed in C |
//! | `dots`, `axpys` | the innermost loops for a vector or a few rows |
//! | `pairs`, `amx` | what differs for `bf16` |
//! | `foreign` | products on processors without a kernel here |
//! | `kind` | the table of number types and instructions |
//! | `blocked` | the loops around the kernel |
//! | `scattered` | products of matrices whose rows overlap in memory |
//! | `matvec` | the loops around `dots` and `axpys` |
//! | `method` | the ways to compute a product on one thread |
//! | `gram` | products of a matrix with itself transposed |
//! | `threads` | shares the work |
//!
//! The order of every sum over `k`, and so the bits of a result, depend on the shape, the strides and the
//! CPU, but not on the number of threads.

mod element;
mod product;

mod buffer;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod pack;

#[cfg(target_arch = "x86_64")]
mod axpys;
#[cfg(target_arch = "x86_64")]
mod dots;
#[cfg(target_arch = "x86_64")]
mod kernel;
mod rounded;

#[cfg(target_arch = "x86_64")]
mod amx;
mod foreign;
#[cfg(target_arch = "x86_64")]
mod pairs;

mod kind;

mod blocked;
mod gram;
mod matvec;
mod method;
mod scattered;
mod threads;

#[cfg(test)]
mod tests;

use crate::dtype::{DType, Element, Scalar};
use half::{bf16, f16};
use method::{ProductMethod, scale, serial};
use product::{BlockResults, Product, Sums};

pub(crate) use buffer::{PanelBuffer, with_buffer};
pub(crate) use element::{Accumulator, MatmulNumber};
pub(crate) use kind::MatmulElement;
#[cfg(target_arch = "x86_64")]
pub(crate) use lanes::{Lanes, x86};
pub(crate) use product::{MatrixView, NumberKind};
pub(crate) use scattered::{ScatteredProduct, has_scattered};

/// One operand of a product. Element (i, j) is at `ptr + i * row_stride + j * col_stride`, in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mat<P> {
    /// Element (0, 0).
    pub ptr: P,
    /// The distance from one row to the next, of any sign.
    pub row_stride: isize,
    /// The distance from one column to the next, of any sign.
    pub col_stride: isize,
}

impl<P> Mat<P> {
    /// The transposed matrix, on the same memory.
    pub(crate) fn t(self) -> Self {
        Mat { ptr: self.ptr, row_stride: self.col_stride, col_stride: self.row_stride }
    }

    fn offset(&self, i: usize, j: usize) -> isize {
        i as isize * self.row_stride + j as isize * self.col_stride
    }
}

impl<T> Mat<*const T> {
    /// The matrix from element (i, j) on. Nothing is read, so the element may be one past the end.
    pub(crate) fn at(self, i: usize, j: usize) -> Self {
        Mat { ptr: self.ptr.wrapping_offset(self.offset(i, j)), ..self }
    }
}

impl<T> Mat<*mut T> {
    /// The matrix from element (i, j) on.
    pub(crate) fn at(self, i: usize, j: usize) -> Self {
        Mat { ptr: self.ptr.wrapping_offset(self.offset(i, j)), ..self }
    }
}

impl Product {
    fn of<T: MatmulElement>(
        [m, k, n]: [usize; 3],
        alpha: T::Acc,
        a: Mat<*const T>,
        b: Mat<*const T>,
        beta: T::Acc,
        c: Mat<*mut T>,
    ) -> Product {
        let [a, b] = [a, b].map(MatrixView::of);
        let (alpha, beta, c) = (alpha.bits(), beta.bits(), MatrixView::of_mut(c));
        Product { kind: T::kind(), m, k, n, alpha, a, b, beta, c }
    }
}

/// `C ← alpha A B + beta C`, with A `m` by `k`, B `k` by `n` and C `m` by `n`.
///
/// Half types are computed in `f32`, as are the scalars, and rounded once; on a CPU with AVX-512 BF16 or
/// AMX, subnormal `bf16` numbers count as 0, except in products with a few rows. `i64` wraps. If `k` is 0, the
/// result is `beta C`. If `beta` is 0, C is never read, so it may be uninitialized or NaN. If `alpha` is 0, A
/// and B are still read, so their NaN reach C.
///
/// Large products run on all threads of the current rayon pool. The bits of the result do not depend on their
/// number.
///
/// # Safety
/// The elements of A and B are valid for reads, those of C for writes and, unless `beta` is 0, for reads. The
/// elements of C do not overlap each other, nor A and B. Nothing else accesses C during the call.
pub(crate) unsafe fn gemm<T: MatmulElement>(
    m: usize,
    k: usize,
    n: usize,
    alpha: T::Acc,
    a: Mat<*const T>,
    b: Mat<*const T>,
    beta: T::Acc,
    c: Mat<*mut T>,
) {
    // SAFETY: the contract is the same.
    unsafe { threads::one(&Product::of([m, k, n], alpha, a, b, beta, c)) }
}

/// [`gemm()`] on this thread alone, for callers that share the work between threads themselves.
///
/// # Safety
/// The contract of [`gemm()`].
pub(crate) unsafe fn gemm_serial<T: MatmulElement>(
    sizes: [usize; 3],
    alpha: T::Acc,
    a: Mat<*const T>,
    b: Mat<*const T>,
    beta: T::Acc,
    c: Mat<*mut T>,
) {
    // SAFETY: the contract is the same.
    unsafe { on_this_thread(Product::of(sizes, alpha, a, b, beta, c)) }
}

/// [`gemm_serial`] of a product as data.
///
/// # Safety
/// The contract of [`gemm()`].
unsafe fn on_this_thread(p: Product) {
    if p.m == 0 || p.n == 0 {
        return;
    }
    let p = p.upright();
    // SAFETY: the contract is the same.
    unsafe {
        match p.k {
            0 => scale(&p),
            _ => serial(&p, ProductMethod::of(&p)),
        }
    }
}

/// `C ← A B`, or, if it is to `add`, `C ← A B + C`, on this thread alone, where C has the sums of the
/// products, in contiguous rows.
///
/// # Safety
/// The contract of [`gemm()`], with A and B of this kind, and C of its sums.
pub(crate) unsafe fn gemm_sums(
    kind: &'static NumberKind,
    [m, k, n]: [usize; 3],
    a: MatrixView,
    b: MatrixView,
    add: bool,
    c: MatrixView,
) {
    let p = Product { kind, m, k, n, alpha: kind.one, a, b, beta: if add { kind.one } else { 0 }, c };
    // SAFETY: the contract is the same. With no `k`, A and B are not read, so they may be of any type.
    unsafe {
        if kind.is_acc || k == 0 {
            on_this_thread(Product { kind: (kind.acc)(), ..p });
        } else if m > 0 && n > 0 {
            ProductMethod::of(&p).run(&p, Sums { ptr: c.ptr, row: c.row, beta: p.beta });
        }
    }
}

/// Writes the sums of `m` rows and `n` columns to C. The rows of `sums` are `width` sums apart. They may be
/// overwritten if they are of another type than C.
///
/// # Safety
/// The sums are valid for reads and writes, the elements of C, of this kind, for writes.
pub(crate) unsafe fn write_sums(
    kind: &'static NumberKind,
    sums: *mut u8,
    width: usize,
    [m, n]: [usize; 2],
    c: MatrixView,
) {
    // SAFETY: the contract is the same.
    unsafe { (kind.write)(&BlockResults { sums, width, m, n, beta: 0, c }) };
}

/// `to += sums` for `n` sums of products of this kind.
///
/// # Safety
/// They are valid for reads, and `to` for writes.
pub(crate) unsafe fn add_sums(kind: &'static NumberKind, sums: *const u8, n: usize, to: *mut u8) {
    // SAFETY: the contract is the same.
    unsafe { ((kind.acc)().add)(sums, n, to) };
}

/// Whether products of `bf16` are faster than those of `f32` on this CPU.
pub(crate) fn has_fast_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    return pairs::are_found();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether the rows of a matrix at this distance in bytes evict each other from the cache of a core.
pub(crate) fn rows_collide(stride: usize) -> bool {
    blocked::crowded(stride as isize)
}

/// The number of products, and where the operands of each are, in elements after `a`, `b` and `c`.
pub(crate) type Batch<'a> = (usize, &'a (dyn Fn(usize) -> (isize, isize, isize) + Sync));

/// A batch of products like [`gemm()`]: `C ← A B`, or, if it is to `add`, `C ← A B + C`.
///
/// Threads share many products; few large products are cut into parts.
///
/// # Safety
/// The contract of [`gemm()`] for each product, of this kind, and no two products share memory in C.
pub(crate) unsafe fn gemm_batched(
    kind: &'static NumberKind,
    (batch, offsets): Batch<'_>,
    [m, k, n]: [usize; 3],
    a: MatrixView,
    b: MatrixView,
    add: bool,
    c: MatrixView,
) {
    let p = Product { kind, m, k, n, alpha: kind.one, a, b, beta: if add { kind.one } else { 0 }, c };
    // SAFETY: the contract is the same.
    unsafe { threads::many(batch, offsets, &p) }
}

/// [`gemm_batched`] of a dtype that is known at run time, with operands at addresses of bytes and strides in
/// elements.
///
/// # Safety
/// The contract of [`gemm_batched`]. The dtype has products.
pub(crate) unsafe fn gemm_of(
    dtype: DType,
    (batch, offsets): Batch<'_>,
    [m, k, n]: [usize; 3],
    alpha: Scalar,
    a: Mat<*const u8>,
    b: Mat<*const u8>,
    beta: Scalar,
    c: Mat<*mut u8>,
) {
    let (kind, bits): (_, fn(Scalar) -> u64) = match dtype {
        DType::F16 => (f16::kind(), |x| f32::from_scalar(x).bits()),
        DType::BF16 => (bf16::kind(), |x| f32::from_scalar(x).bits()),
        DType::F32 => (f32::kind(), |x| f32::from_scalar(x).bits()),
        DType::F64 => (f64::kind(), |x| f64::from_scalar(x).bits()),
        DType::I64 => (i64::kind(), |x| i64::from_scalar(x).bits()),
        _ => unreachable!("the other integers are cast to i64"),
    };
    let matrix = |ptr: *mut u8, row: isize, col: isize| MatrixView {
        ptr,
        row: row * kind.size as isize,
        col: col * kind.size as isize,
    };
    let bits = |number: Scalar| match number {
        Scalar::Int(0) => 0,
        Scalar::Int(1) => kind.one,
        number => bits(number),
    };
    let (alpha, beta) = (bits(alpha), bits(beta));
    let [a, b] = [a, b].map(|x| matrix(x.ptr.cast_mut(), x.row_stride, x.col_stride));
    let p = Product { kind, m, k, n, alpha, a, b, beta, c: matrix(c.ptr, c.row_stride, c.col_stride) };
    // SAFETY: the contract is the same.
    unsafe {
        match batch {
            1 => threads::one(&p.moved(offsets(0))),
            _ => threads::many(batch, offsets, &p),
        }
    }
}
