//! The product on one thread: the loops around the kernel.

use super::element::{Accumulator, MatmulElement};
use super::kernel::{Kernels, Tile};
#[cfg(target_arch = "x86_64")]
use super::pack::Part;
use super::pack::{PANELS, SUMS, pack, with_buffer};
#[cfg(target_arch = "x86_64")]
use super::pairs;
use super::{Mat, Product};
use crate::cpu::simd::{Simd, Vectorized};

/// The largest `k` of a block, in bytes of a row of A: a panel of B with as many rows stays in the caches of
/// the core.
const K_BYTES: usize = 2048;
/// The most rows of a block: with `K_BYTES`, the block of A fills half of an L2 cache of 1 MiB.
const M_MAX: usize = 280;
/// The most columns of a block: with `K_BYTES`, the block of B takes 4 MiB of the L3 cache.
const N_MAX: usize = 2048;
/// The most columns of B for which A is read in place, if its strides allow it.
const A_DIRECT: usize = 2048;
/// The most rows of A for which B is read in place, if its strides allow it.
const B_DIRECT: usize = 1024;
/// The rows and columns of C whose sums are in a buffer at once, if they cannot be in C: 36 full tiles of 14
/// rows, and 1 MiB.
const APART: (usize, usize) = (504, 512);

/// A way to compute `C ← alpha A B + beta C`. The last three arguments replace `beta` and C of the product: C
/// has accumulators, contiguous rows and the given row stride. The contract is that of [`gemm`](super::gemm).
pub(super) type Method<T> =
    unsafe fn(&Product<T>, <T as MatmulElement>::Acc, *mut <T as MatmulElement>::Acc, isize);

/// Computes `C ← alpha A B + beta C` on this thread with a method. `k` is not 0.
///
/// # Safety
/// The contract of [`gemm`](super::gemm).
#[inline]
pub(super) unsafe fn serial<T: MatmulElement>(p: &Product<T>, method: Method<T>) {
    if T::IS_ACC && p.c.col_stride == 1 {
        // SAFETY: the contract is the same, and `T` is its own accumulator.
        return unsafe { method(p, p.beta, p.c.ptr.cast(), p.c.row_stride) };
    }
    // SAFETY: the contract is the same.
    unsafe { apart(p, method) }
}

/// [`serial`] for a C whose rows are not contiguous accumulators: the sums are formed in a buffer.
///
/// # Safety
/// The contract of [`gemm`](super::gemm).
unsafe fn apart<T: MatmulElement>(p: &Product<T>, method: Method<T>) {
    for i in (0..p.m).step_by(APART.0) {
        for j in (0..p.n).step_by(APART.1) {
            let part = p.part(i, (p.m - i).min(APART.0), j, (p.n - j).min(APART.1));
            with_buffer(&SUMS, part.m * part.n, |sums: *mut T::Acc| {
                // SAFETY: the contract is the same. The buffer has room for the part; the method initializes
                // it and, since `beta` is 0, does not read it before.
                unsafe {
                    method(&part, T::Acc::ZERO, sums, part.n as isize);
                    for i in 0..part.m {
                        let sums = std::slice::from_raw_parts_mut(sums.add(i * part.n), part.n);
                        write_row(sums, part.beta, part.c.at(i, 0).ptr, part.c.col_stride);
                    }
                }
            });
        }
    }
}

/// `c ← sums + beta c` for one row of C. The sums are overwritten.
///
/// # Safety
/// `sums.len()` numbers at `stride` from `c` on are valid for writes and, unless `beta` is 0, for reads.
pub(super) unsafe fn write_row<T: MatmulElement>(
    sums: &mut [T::Acc],
    beta: T::Acc,
    c: *mut T,
    stride: isize,
) {
    T::Acc::run(Row { beta, c, stride }, sums);
}

/// The arguments of [`write_row`], which meet its contract.
pub(super) struct Row<T: MatmulElement> {
    pub(super) beta: T::Acc,
    pub(super) c: *mut T,
    pub(super) stride: isize,
}

impl<T: MatmulElement> Vectorized for Row<T> {
    type Out<'a> = &'a mut [T::Acc];

    #[inline(always)]
    fn run<S: Simd>(self, _: S, sums: &mut [T::Acc]) {
        let Row { beta, c, stride } = self;
        // SAFETY: the contract of `write_row` holds.
        unsafe {
            if beta != T::Acc::ZERO {
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum = beta.mul_add((*c.offset(j as isize * stride)).widen(), *sum);
                }
            }
            let mut block = [T::narrow(T::Acc::ZERO); 64];
            for (start, sums) in (0..).step_by(block.len()).zip(sums.chunks(block.len())) {
                let block = &mut block[..sums.len()];
                T::narrow_slice(sums, block);
                for (j, x) in block.iter().enumerate() {
                    c.offset((start + j as isize) * stride).write(*x);
                }
            }
        }
    }
}

/// How a product is cut into blocks. The blocks of `k`, which determine the bits of a result, depend only on
/// `k`.
struct Plan<T: 'static> {
    kernels: &'static Kernels<T>,
    /// The largest `k` of a block, in elements of a panel.
    k_max: usize,
    /// The columns of a panel of B.
    panel: usize,
    /// Whether the kernels read A in place.
    a_direct: bool,
    /// Whether the kernels read B in place.
    b_direct: bool,
}

impl<T: Accumulator> Plan<T> {
    /// A kernel reads an operand in place at full speed as long as the caches keep what it reads more than
    /// once. A copy pays off for a large operand, and for one whose cache lines evict each other.
    fn new<E: MatmulElement<Acc = T>>(p: &Product<E>) -> Self {
        let kernels = E::kernels().expect("only a CPU with kernels uses this method");
        let panel = 2 * kernels.lanes;
        let a_stride = if p.a.row_stride == 1 { p.a.col_stride } else { p.a.row_stride };
        let a_in_lines = p.a.row_stride == 1 || p.a.col_stride == 1;
        let a_direct = p.n <= 2 * panel || p.n <= A_DIRECT && a_in_lines && !crowded::<T>(a_stride);
        let b_direct = p.m <= M_MAX || p.m <= B_DIRECT && !crowded::<T>(p.b.row_stride);
        Plan {
            kernels,
            k_max: p.k.div_ceil(kernels.depth).min(K_BYTES / size_of::<T>()),
            panel,
            a_direct: E::IS_ACC && a_direct,
            b_direct: E::IS_ACC && p.b.col_stride == 1 && b_direct,
        }
    }
}

/// Whether cache lines at this stride use so few sets of the L1 cache that they evict each other. Most L1
/// caches have 64 sets, which depend on the address modulo 4096.
pub(super) fn crowded<T>(stride: isize) -> bool {
    let bytes = stride.unsigned_abs() * size_of::<T>();
    bytes >= 4096 - 256 && (bytes + 256) % 4096 < 512
}

/// The [`Method`] for all shapes: A and B are cut into blocks for the caches, and the blocks into tiles for
/// the kernel.
///
/// # Safety
/// The contract of a [`Method`].
pub(super) unsafe fn blocked<T: MatmulElement>(
    p: &Product<T>,
    beta: T::Acc,
    c: *mut T::Acc,
    c_row_stride: isize,
) {
    let plan = Plan::new(p);
    let depth = plan.kernels.depth;
    let a_len = if plan.a_direct { 0 } else { plan.k_max * p.m.min(M_MAX) };
    // With one block of rows, a panel of B is no longer needed when the next one is packed.
    let b_cols = if p.m <= M_MAX { plan.panel } else { p.n.min(N_MAX).next_multiple_of(plan.panel) };
    let b_len = if plan.b_direct { 0 } else { plan.k_max * b_cols };
    with_buffer(&PANELS, b_len + a_len, |b_panels: *mut T::Acc| {
        // LOOP 5: blocks of columns of B and C.
        for (j, n) in pieces(p.n, N_MAX, plan.panel) {
            // LOOP 4: blocks of `k`. All but the first add to C.
            for (l, k) in pieces(p.k, plan.k_max * depth, depth) {
                let beta = if l == 0 { beta } else { T::Acc::ONE };
                // LOOP 3: blocks of rows of A and C.
                for (i, m) in pieces(p.m, M_MAX, 1) {
                    // SAFETY: the block is inside the operands, and the buffer has room for its panels.
                    unsafe {
                        let block = Block {
                            plan: &plan,
                            m,
                            k,
                            n,
                            alpha: p.alpha,
                            a: p.a.at(i, l),
                            a_panels: b_panels.add(b_len),
                            b: p.b.at(l, j),
                            b_panels,
                            pack_b: !plan.b_direct && i == 0,
                            keep_b: p.m > M_MAX,
                            beta,
                            c: c.offset(i as isize * c_row_stride).add(j),
                            c_row_stride,
                        };
                        block.run();
                    }
                }
            }
        }
    });
}

/// A block of the product: some rows of A, some columns of B.
struct Block<'p, T: MatmulElement> {
    plan: &'p Plan<T::Acc>,
    m: usize,
    k: usize,
    n: usize,
    alpha: T::Acc,
    a: Mat<*const T>,
    a_panels: *mut T::Acc,
    b: Mat<*const T>,
    b_panels: *mut T::Acc,
    /// Whether to pack the panels of B. Otherwise they are read in place, or were packed for an earlier
    /// block.
    pack_b: bool,
    /// Whether each panel of B has its own memory.
    keep_b: bool,
    beta: T::Acc,
    c: *mut T::Acc,
    c_row_stride: isize,
}

impl<T: MatmulElement> Block<'_, T> {
    /// # Safety
    /// The contract of [`gemm`](super::gemm) for the part of the operands, and the panels fit into their
    /// memory.
    unsafe fn run(&self) {
        let Plan { kernels, a_direct, b_direct, .. } = *self.plan;
        let Block { m, n, .. } = *self;
        let k = self.k.div_ceil(kernels.depth);
        if !a_direct {
            for (i, rows) in pieces(m, kernels.rows, 1) {
                // SAFETY: the rows exist, and each takes `k` elements of the panels.
                unsafe { self.copy(rows, rows, self.a.at(i, 0).t(), self.a_panels.add(i * k)) };
            }
        }
        // LOOP 2: panels of columns of B and C.
        let mut j = 0;
        while j < n {
            let (second, cols) = self.panel(n - j);
            // SAFETY: the columns exist, and the panel has room for them.
            let (b, b_row_stride) = unsafe {
                let from = self.b.at(0, j);
                if b_direct {
                    (from.ptr.cast(), from.row_stride)
                } else {
                    let width = kernels.lanes << second;
                    let to = if self.keep_b { self.b_panels.add(j * k) } else { self.b_panels };
                    if self.pack_b {
                        self.copy(cols, width, from, to);
                    }
                    (to.cast_const(), width as isize)
                }
            };
            // LOOP 1: tiles of rows of A and C.
            for (i, rows) in pieces(m, kernels.rows, 1) {
                // SAFETY: the rows and columns exist, and the kernel is for as many of them and for this CPU.
                unsafe {
                    let a = self.a.at(i, 0);
                    let (a, a_row_stride, a_col_stride) = if a_direct {
                        (a.ptr.cast(), a.row_stride, a.col_stride)
                    } else {
                        (self.a_panels.add(i * k).cast_const(), 1, rows as isize)
                    };
                    kernels.tiles[second][rows - 1](&Tile {
                        k,
                        a,
                        a_row_stride,
                        a_col_stride,
                        b,
                        b_row_stride,
                        c: self.c.offset(i as isize * self.c_row_stride).add(j),
                        c_row_stride: self.c_row_stride,
                        cols,
                        alpha: self.alpha,
                        beta: self.beta,
                    });
                }
            }
            j += cols;
        }
    }

    /// Writes the first `count` columns of a part of B, or of A transposed, to a panel of `width` columns.
    ///
    /// # Safety
    /// The columns exist, and the panel has room.
    unsafe fn copy(&self, count: usize, width: usize, from: Mat<*const T>, to: *mut T::Acc) {
        let Mat { ptr, row_stride, col_stride } = from;
        // SAFETY: the contract is the same. Only kernels for `bf16` have this depth.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if self.plan.kernels.depth == 2 {
                let (from, to) = (ptr.cast(), to.cast());
                return pairs::pack(Part {
                    k: self.k,
                    count,
                    width,
                    from,
                    k_stride: row_stride,
                    stride: col_stride,
                    to,
                });
            }
            pack(self.k, count, width, ptr, row_stride, col_stride, to);
        }
    }

    /// The next panel of B when `left` columns are left: 1 if it has two vectors, else 0, and the number of
    /// its columns.
    fn panel(&self, left: usize) -> (usize, usize) {
        let lanes = self.plan.kernels.lanes;
        let second = usize::from(left > lanes);
        (second, left.min(lanes << second))
    }
}

/// Cuts `len` into the fewest pieces of at most `most`, as equal as multiples of `unit` can be. Returns the
/// start and the length of each. `most` is a multiple of `unit`.
fn pieces(len: usize, most: usize, unit: usize) -> impl Iterator<Item = (usize, usize)> {
    let (count, units) = (len.div_ceil(most), len.div_ceil(unit));
    let (short, longer) = (units / count, units % count);
    let start = move |piece: usize| ((piece * short + piece.min(longer)) * unit).min(len);
    (0..count).map(move |piece| (start(piece), start(piece + 1) - start(piece)))
}
