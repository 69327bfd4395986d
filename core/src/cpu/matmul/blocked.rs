//! The product on one thread: the loops around the kernel.

use super::element::{Accumulator, MatmulElement};
use super::kernel::{Kernels, Layout, Tile};
#[cfg(target_arch = "x86_64")]
use super::pack::Part;
use super::pack::{PANELS, pack, with_buffer};
use super::rounded::{turn, write};
use super::{Mat, Product};
#[cfg(target_arch = "x86_64")]
use super::{amx, pairs};
#[cfg(target_arch = "x86_64")]
use half::bf16;

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

/// Where the sums of a product go, and what they are added to.
enum Sums<T: MatmulElement> {
    /// `beta C` for a C of accumulators, with contiguous rows at a stride.
    InPlace(T::Acc, *mut T::Acc, isize),
    /// `beta C`, in which each number is rounded once. There is one block of `k`. The last matrix is the part
    /// of a symmetric C on the other side of the diagonal.
    Rounded(T::Acc, Mat<*mut T>, Option<Mat<*mut T>>),
}

impl<T: MatmulElement> Copy for Sums<T> {}
impl<T: MatmulElement> Clone for Sums<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: MatmulElement> Sums<T> {
    /// The sums from row `i` and column `j` on, of a block of `k` that is the first or a later one.
    fn at(self, i: usize, j: usize, first: bool) -> Self {
        match self {
            Sums::InPlace(beta, c, stride) => {
                let beta = if first { beta } else { T::Acc::ONE };
                Sums::InPlace(beta, c.wrapping_offset(i as isize * stride).wrapping_add(j), stride)
            }
            Sums::Rounded(beta, c, mirror) => {
                Sums::Rounded(beta, c.at(i, j), mirror.map(|mirror| mirror.at(j, i)))
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
        let k = p.k.div_ceil(kernels.layout.depth()).next_multiple_of(kernels.layout.unit());
        Plan {
            kernels,
            k_max: k.min(K_BYTES / size_of::<T>()),
            panel,
            a_direct: E::IS_ACC && a_direct,
            b_direct: E::IS_ACC && p.b.col_stride == 1 && b_direct,
        }
    }

    /// Whether one block has all of `k`.
    fn is_one_block(&self, k: usize) -> bool {
        k <= self.k_max * self.kernels.layout.depth()
    }
}

/// Whether cache lines at this stride use so few sets of the L1 cache that they evict each other. Most L1
/// caches have 64 sets, which depend on the address modulo 4096.
pub(super) fn crowded<T>(stride: isize) -> bool {
    let bytes = stride.unsigned_abs() * size_of::<T>();
    bytes >= 4096 - 256 && (bytes + 256) % 4096 < 512
}

/// The [`Method`](super::Method) for all shapes: A and B are cut into blocks for the caches, and the blocks
/// into tiles for the kernel.
///
/// # Safety
/// The contract of [`Method::run`](super::Method::run).
pub(super) unsafe fn blocked<T: MatmulElement>(
    p: &Product<T>,
    beta: T::Acc,
    c: *mut T::Acc,
    c_row_stride: isize,
) {
    // SAFETY: the contract is the same.
    unsafe { blocks(p, &Plan::new(p), Sums::InPlace(beta, c, c_row_stride), None) }
}

/// [`blocked`] for any C, if there is one block of `k`. Otherwise it does nothing and returns false.
///
/// # Safety
/// The contract of [`gemm`](super::gemm).
pub(super) unsafe fn blocked_and_rounded<T: MatmulElement>(p: &Product<T>) -> bool {
    let plan = Plan::new(p);
    let one = plan.is_one_block(p.k);
    if one {
        // SAFETY: the contract is the same.
        unsafe { blocks(p, &plan, Sums::Rounded(p.beta, p.c, None), None) }
    }
    one
}

/// Whether there is one block of `k`.
pub(super) fn is_one_block<T: MatmulElement>(p: &Product<T>) -> bool {
    Plan::new(p).is_one_block(p.k)
}

/// The columns `from..to` of a symmetric product, down to the diagonal or somewhat further. If they are
/// rounded, their mirror image is written too; then there must be one block of `k`.
///
/// # Safety
/// The contract of [`gemm`](super::gemm) for these columns and for the rows of the same numbers.
pub(super) unsafe fn blocked_above<T: MatmulElement>(p: &Product<T>, from: usize, to: usize) {
    let part = p.part(0, to, from, to - from);
    let sums = if T::IS_ACC {
        Sums::InPlace(p.beta, part.c.ptr.cast(), part.c.row_stride)
    } else {
        Sums::Rounded(p.beta, part.c, Some(p.c.at(from, 0)))
    };
    // SAFETY: the contract is the same; with `IS_ACC`, `T` is its own accumulator.
    unsafe { blocks(&part, &Plan::new(&part), sums, Some(from as isize)) }
}

/// The loops over blocks. If C is part of a symmetric matrix, `diagonal` is the row of the diagonal in its
/// first column.
///
/// # Safety
/// The contract of [`gemm`](super::gemm), with the sums in place of C and `beta`.
unsafe fn blocks<T: MatmulElement>(
    p: &Product<T>,
    plan: &Plan<T::Acc>,
    sums: Sums<T>,
    diagonal: Option<isize>,
) {
    let (depth, unit) = (plan.kernels.layout.depth(), plan.kernels.layout.unit());
    let m_max = M_MAX.next_multiple_of(unit);
    let a_len = if plan.a_direct { 0 } else { plan.k_max * p.m.next_multiple_of(unit).min(m_max) };
    // With one block of rows, a panel of B is no longer needed when the next one is packed.
    let b_cols = if p.m <= m_max { plan.panel } else { p.n.min(N_MAX).next_multiple_of(plan.panel) };
    let b_len = if plan.b_direct { 0 } else { plan.k_max * b_cols };
    let sums_len = match sums {
        Sums::InPlace(..) => 0,
        Sums::Rounded(_, _, None) => p.m.min(m_max) * plan.panel,
        Sums::Rounded(_, _, Some(_)) => 2 * p.m.min(m_max) * plan.panel,
    };
    with_buffer(&PANELS, b_len + a_len + sums_len, |b_panels: *mut T::Acc| {
        // LOOP 5: blocks of columns of B and C.
        for (j, n) in pieces(p.n, N_MAX, plan.panel) {
            // LOOP 4: blocks of `k`. All but the first add to C.
            for (l, k) in pieces(p.k, plan.k_max * depth, depth) {
                // LOOP 3: blocks of rows of A and C.
                for (i, m) in pieces(p.m, m_max, unit) {
                    // SAFETY: the block is inside the operands, and the buffer has room for its panels.
                    unsafe {
                        let block = Block {
                            plan,
                            m,
                            k,
                            n,
                            alpha: p.alpha,
                            a: p.a.at(i, l),
                            a_panels: b_panels.add(b_len),
                            panel_sums: b_panels.add(b_len + a_len),
                            b: p.b.at(l, j),
                            b_panels,
                            pack_b: !plan.b_direct && i == 0,
                            keep_b: p.m > m_max,
                            sums: sums.at(i, j, l == 0),
                            diagonal: diagonal.map(|row| row + j as isize - i as isize),
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
    /// Memory for the sums of a panel of columns, if they are rounded, and for their mirror image.
    panel_sums: *mut T::Acc,
    b: Mat<*const T>,
    b_panels: *mut T::Acc,
    /// Whether to pack the panels of B. Otherwise they are read in place, or were packed for an earlier
    /// block.
    pack_b: bool,
    /// Whether each panel of B has its own memory.
    keep_b: bool,
    sums: Sums<T>,
    /// The row of the diagonal in the first column, if C is symmetric.
    diagonal: Option<isize>,
}

impl<T: MatmulElement> Block<'_, T> {
    /// # Safety
    /// The contract of [`gemm`](super::gemm) for the part of the operands, and the panels fit into their
    /// memory.
    unsafe fn run(&self) {
        let Plan { kernels, a_direct, b_direct, .. } = *self.plan;
        let unit = kernels.layout.unit();
        let Block { m, n, .. } = *self;
        let k = self.k.div_ceil(kernels.layout.depth()).next_multiple_of(unit);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the plan has kernels that are found.
        let _registers = matches!(kernels.layout, Layout::Tiles).then(|| unsafe { amx::Registers::ready() });
        if !a_direct {
            for (i, rows) in pieces(m, kernels.rows, unit) {
                // SAFETY: the rows exist, and each takes `k` elements of the panels.
                unsafe { self.copy_rows(rows, self.a.at(i, 0), self.a_panels.add(i * k)) };
            }
        }
        // LOOP 2: panels of columns of B and C.
        let mut j = 0;
        while j < n {
            let (second, cols) = self.panel(n - j);
            let width = kernels.lanes << second;
            // SAFETY: the columns exist, and the panel has room for them.
            let (b, b_row_stride) = unsafe {
                let from = self.b.at(0, j);
                if b_direct {
                    (from.ptr.cast(), from.row_stride)
                } else {
                    let to = if self.keep_b { self.b_panels.add(j * k) } else { self.b_panels };
                    if self.pack_b {
                        self.copy_columns(cols, width, from, to);
                    }
                    (to.cast_const(), width as isize)
                }
            };
            // Those of the panel down to the diagonal, and those above it alone.
            let above = |column: usize| {
                self.diagonal
                    .map_or(m, |row| row.saturating_add_unsigned(column).clamp(0, m as isize) as usize)
            };
            let (m, m_above) = (above(j + cols), above(j));
            // LOOP 1: tiles of rows of A and C.
            for (i, rows) in pieces(self.m, kernels.rows, unit).take_while(|(i, _)| *i < m) {
                // SAFETY: the rows and columns exist, and the kernel is for as many of them and for this CPU.
                unsafe {
                    let a = self.a.at(i, 0);
                    let (a, a_row_stride, a_col_stride) = if a_direct {
                        (a.ptr.cast(), a.row_stride, a.col_stride)
                    } else {
                        (self.a_panels.add(i * k).cast_const(), 1, rows as isize)
                    };
                    let (beta, c, c_row_stride) = match self.sums {
                        Sums::InPlace(beta, c, stride) => {
                            (beta, c.offset(i as isize * stride).add(j), stride)
                        }
                        Sums::Rounded(..) => (T::Acc::ZERO, self.panel_sums.add(i * width), width as isize),
                    };
                    kernels.tiles[second][rows - 1](&Tile {
                        k,
                        a,
                        a_row_stride,
                        a_col_stride,
                        b,
                        b_row_stride,
                        c,
                        c_row_stride,
                        rows,
                        cols,
                        alpha: self.alpha,
                        beta,
                    });
                }
            }
            if let Sums::Rounded(beta, c, mirror) = self.sums {
                // SAFETY: the kernels have written the sums of these columns, which C has. There is room for
                // their mirror image, which C has too.
                unsafe {
                    if let Some(mirror) = mirror {
                        let turned = self.panel_sums.add(self.m * width);
                        turn(self.panel_sums, width, m_above, cols, turned);
                        write(turned, m_above, cols, m_above, beta, mirror.at(j, 0));
                    }
                    write(self.panel_sums, width, m, cols, beta, c.at(0, j));
                }
            }
            j += cols;
        }
    }

    /// Writes `count` rows of a part of A to a panel.
    ///
    /// # Safety
    /// The rows exist, and the panel has room.
    unsafe fn copy_rows(&self, count: usize, from: Mat<*const T>, to: *mut T::Acc) {
        // SAFETY: the contract is the same. Only kernels for `bf16` have tiles.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if matches!(self.plan.kernels.layout, Layout::Tiles) {
                return amx::pack_rows(self.halves(count, count, from.t(), to));
            }
            self.copy_columns(count, count, from.t(), to);
        }
    }

    /// Writes `count` columns of a part of B to a panel of `width` columns.
    ///
    /// # Safety
    /// The columns exist, and the panel has room.
    unsafe fn copy_columns(&self, count: usize, width: usize, from: Mat<*const T>, to: *mut T::Acc) {
        // SAFETY: the contract is the same. Only kernels for `bf16` have pairs or tiles.
        unsafe {
            match self.plan.kernels.layout {
                Layout::Numbers => pack(self.k, count, width, from.ptr, from.row_stride, from.col_stride, to),
                #[cfg(target_arch = "x86_64")]
                Layout::Pairs => pairs::pack(self.halves(count, width, from, to)),
                #[cfg(target_arch = "x86_64")]
                Layout::Tiles => amx::pack_columns(self.halves(count, width, from, to)),
            }
        }
    }

    /// What to pack, if `T` is `bf16`.
    #[cfg(target_arch = "x86_64")]
    fn halves(&self, count: usize, width: usize, from: Mat<*const T>, to: *mut T::Acc) -> Part<bf16> {
        let Mat { ptr, row_stride, col_stride } = from;
        let (from, to) = (ptr.cast(), to.cast());
        Part { k: self.k, count, width, from, k_stride: row_stride, stride: col_stride, to }
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
