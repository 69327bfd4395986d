//! The matrix product `C ← alpha A B + beta C` on strided memory. Nothing here knows about tensors.
//!
//! Read [`gemm()`] first, then `blocked` (the loops around the kernel), `kernel` (the innermost loop) and
//! `pack` (copies of parts of the operands). `pairs` and `amx` have what differs for `bf16`. `rounded` has
//! sums that are not formed in C. `gram` has products of a matrix with itself transposed. `matvec` has
//! products with a vector or a few rows, with its two steps `dots` and `axpys`. `foreign` has products on
//! processors without a kernel here. `element` has the types of numbers, `lanes` the vector registers, and
//! `threads` shares the work.
//!
//! The order of every sum over `k`, and so the bits of a result, depend on the shape, the strides and the
//! CPU, but not on the number of threads.

#[cfg(target_arch = "x86_64")]
mod amx;
mod axpys;
mod blocked;
mod dots;
mod element;
mod foreign;
mod gram;
mod kernel;
mod lanes;
mod matvec;
mod pack;
#[cfg(target_arch = "x86_64")]
mod pairs;
mod rounded;
#[cfg(test)]
mod tests;
mod threads;

pub(crate) use element::{Accumulator, MatmulElement};
pub(crate) use lanes::Lanes;
pub(crate) use pack::{Buffer, with_buffer};
pub(crate) use rounded::write as write_rounded;

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

/// The arguments of [`gemm()`], with the scalars as accumulators.
#[derive(Clone, Copy)]
struct Product<T: MatmulElement> {
    m: usize,
    k: usize,
    n: usize,
    alpha: T::Acc,
    a: Mat<*const T>,
    b: Mat<*const T>,
    beta: T::Acc,
    c: Mat<*mut T>,
}

// SAFETY: a product is sent to another thread together with the right to its part of C. A and B are only
// read.
unsafe impl<T: MatmulElement> Send for Product<T> {}
// SAFETY: as above.
unsafe impl<T: MatmulElement> Sync for Product<T> {}

impl<T: MatmulElement> Product<T> {
    /// `m` rows of C from row `i` on, and `n` columns from column `j` on.
    fn part(&self, i: usize, m: usize, j: usize, n: usize) -> Self {
        Product { m, n, a: self.a.at(i, 0), b: self.b.at(0, j), c: self.c.at(i, j), ..*self }
    }

    /// The same product with each operand moved by a number of elements.
    fn moved(&self, (a, b, c): (isize, isize, isize)) -> Self {
        let mut moved = *self;
        moved.a.ptr = self.a.ptr.wrapping_offset(a);
        moved.b.ptr = self.b.ptr.wrapping_offset(b);
        moved.c.ptr = self.c.ptr.wrapping_offset(c);
        moved
    }

    /// The same product, transposed if needed: `C^T = B^T A^T` fills the same memory. The rows of C become
    /// contiguous if its columns are, and a C with one column gets one row.
    ///
    /// The stride of a direction with one element has no meaning and is set to 1, the best stride.
    fn upright(mut self) -> Self {
        if self.m == 1 {
            (self.a.row_stride, self.c.row_stride) = (1, 1);
        }
        if self.n == 1 {
            (self.b.col_stride, self.c.col_stride) = (1, 1);
        }
        if self.k == 1 {
            (self.a.col_stride, self.b.row_stride) = (1, 1);
        }
        let lying = self.c.row_stride == 1 && self.c.col_stride != 1;
        if self.m > 1 && (lying || self.n == 1) {
            (self.m, self.n) = (self.n, self.m);
            (self.a, self.b) = (self.b.t(), self.a.t());
            self.c = self.c.t();
        }
        self
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
    if m == 0 || n == 0 {
        return;
    }
    let product = Product { m, k, n, alpha, a, b, beta, c }.upright();
    // SAFETY: the contract is the same.
    unsafe { threads::one(&product) }
}

/// [`gemm()`] on this thread alone, for callers that share the work between threads themselves.
///
/// # Safety
/// The contract of [`gemm()`].
pub(crate) unsafe fn gemm_serial<T: MatmulElement>(
    [m, k, n]: [usize; 3],
    alpha: T::Acc,
    a: Mat<*const T>,
    b: Mat<*const T>,
    beta: T::Acc,
    c: Mat<*mut T>,
) {
    if m == 0 || n == 0 {
        return;
    }
    let product = Product { m, k, n, alpha, a, b, beta, c }.upright();
    // SAFETY: the contract is the same.
    unsafe {
        match k {
            0 => scale(&product),
            _ => serial(&product, Method::of(&product)),
        }
    }
}

/// `C ← A B + beta C` on this thread alone, where C has the sums of the products, in contiguous rows.
///
/// # Safety
/// The contract of [`gemm()`].
pub(crate) unsafe fn gemm_sums<T: MatmulElement>(
    [m, k, n]: [usize; 3],
    a: Mat<*const T>,
    b: Mat<*const T>,
    beta: T::Acc,
    c: Mat<*mut T::Acc>,
) {
    // SAFETY: the contract is the same; with `IS_ACC`, `T` is its own accumulator, and otherwise the C of the
    // product is replaced.
    unsafe {
        if T::IS_ACC || k == 0 {
            let [a, b] = [a, b].map(|x| Mat {
                ptr: x.ptr.cast::<T::Acc>(),
                row_stride: x.row_stride,
                col_stride: x.col_stride,
            });
            return gemm_serial([m, k, n], T::Acc::ONE, a, b, beta, c);
        }
        if m == 0 || n == 0 {
            return;
        }
        let none = Mat { ptr: std::ptr::null_mut(), row_stride: 0, col_stride: 0 };
        let product = Product { m, k, n, alpha: T::Acc::ONE, a, b, beta, c: none };
        Method::of(&product).run(&product, beta, c.ptr, c.row_stride);
    }
}

/// Whether products of `bf16` are faster than those of `f32` on this CPU.
pub(crate) fn has_fast_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    return pairs::found().is_some();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether the rows of a matrix at this distance evict each other from the cache of a core.
pub(crate) fn rows_collide<T>(stride: usize) -> bool {
    blocked::crowded::<T>(stride as isize)
}

/// `batch` products like [`gemm()`]. The operands of number `i` are `offsets(i)` elements after `a`, `b` and
/// `c`.
///
/// Threads share many products; few large products are cut into parts.
///
/// # Safety
/// The contract of [`gemm()`] for each product, and no two products share memory in C.
pub(crate) unsafe fn gemm_batched<T: MatmulElement>(
    batch: usize,
    offsets: &(dyn Fn(usize) -> (isize, isize, isize) + Sync),
    m: usize,
    k: usize,
    n: usize,
    alpha: T::Acc,
    a: Mat<*const T>,
    b: Mat<*const T>,
    beta: T::Acc,
    c: Mat<*mut T>,
) {
    if m == 0 || n == 0 {
        return;
    }
    let product = Product { m, k, n, alpha, a, b, beta, c };
    // SAFETY: the contract is the same.
    unsafe { threads::many(batch, offsets, &product) }
}

/// A way to compute a product on one thread. Parts of a product must use the method of the whole.
#[derive(Clone, Copy)]
enum Method {
    Blocked,
    ByColumns,
    ByRows,
    Foreign,
}

impl Method {
    /// The method for a shape.
    fn of<T: MatmulElement>(p: &Product<T>) -> Self {
        match T::kernels() {
            Some(_) => matvec::method(p).unwrap_or(Method::Blocked),
            None => Method::Foreign,
        }
    }

    /// Computes `C ← alpha A B + beta C`. The last three arguments replace `beta` and C of the product: C has
    /// accumulators, contiguous rows and the given row stride. `k` is not 0.
    ///
    /// # Safety
    /// The contract of [`gemm()`].
    unsafe fn run<T: MatmulElement>(self, p: &Product<T>, beta: T::Acc, c: *mut T::Acc, c_row_stride: isize) {
        // SAFETY: the contract is the same.
        unsafe {
            match self {
                Method::Blocked => blocked::blocked(p, beta, c, c_row_stride),
                Method::ByColumns => matvec::by_columns(p, beta, c, c_row_stride),
                Method::ByRows => matvec::by_rows(p, beta, c, c_row_stride),
                Method::Foreign => foreign::foreign(p, beta, c, c_row_stride),
            }
        }
    }
}

/// Computes `C ← alpha A B + beta C` on this thread. `k` is not 0.
///
/// # Safety
/// The contract of [`gemm()`].
#[inline]
unsafe fn serial<T: MatmulElement>(p: &Product<T>, method: Method) {
    // SAFETY: the contract is the same; with `IS_ACC`, `T` is its own accumulator.
    unsafe {
        if T::IS_ACC && p.c.col_stride == 1 {
            method.run(p, p.beta, p.c.ptr.cast(), p.c.row_stride);
        } else if !(matches!(method, Method::Blocked) && blocked::blocked_and_rounded(p)) {
            rounded::apart(p, method);
        }
    }
}

/// `C ← beta C`
///
/// # Safety
/// The contract of [`gemm()`] with respect to C.
unsafe fn scale<T: MatmulElement>(p: &Product<T>) {
    for i in 0..p.m {
        for j in 0..p.n {
            let c = p.c.at(i, j).ptr;
            // SAFETY: the element exists, and it is read only if `beta` is not 0.
            unsafe {
                let old = if p.beta == T::Acc::ZERO { T::Acc::ZERO } else { (*c).widen() };
                c.write(T::narrow(p.beta.mul_add(old, T::Acc::ZERO)));
            }
        }
    }
}
