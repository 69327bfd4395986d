//! The product on one thread: the loops around the kernel.

use super::buffer::{PANELS, with_buffer};
use super::product::{
    BlockResults, Kernels, MatrixView, PackFn, PanelCopy, Product, Sums, Tile, TileFn, Tiles,
};

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

/// The place where the sums of a product are written.
#[derive(Clone, Copy)]
enum SumTarget {
    /// They are formed in memory for all of them.
    Sums(Sums),
    /// Each is rounded once and added to `beta` times a matrix. There is one block of `k`. The last matrix is
    /// the part of a symmetric C on the other side of the diagonal.
    Rounded(u64, MatrixView, Option<MatrixView>),
}

impl SumTarget {
    /// The sums from row `i` and column `j` on, of a block of `k` that is the first or a later one.
    fn at(self, p: &Product, i: usize, j: usize, first: bool) -> Self {
        match self {
            SumTarget::Sums(Sums { ptr, row, beta }) => {
                let beta = if first { beta } else { p.kind.one };
                let ptr = ptr.wrapping_offset(i as isize * row).wrapping_add(j * p.kind.acc_size());
                SumTarget::Sums(Sums { ptr, row, beta })
            }
            SumTarget::Rounded(beta, c, mirror) => {
                SumTarget::Rounded(beta, c.at(i, j), mirror.map(|mirror| mirror.at(j, i)))
            }
        }
    }
}

/// How a product is cut into blocks. The blocks of `k`, which determine the bits of a result, depend only on
/// `k`.
struct BlockPlan {
    kernels: &'static Kernels,
    /// Copies rows of A, and columns of B, to panels.
    panels: [PackFn; 2],
    /// The largest `k` of a block, in elements of a panel.
    k_max: usize,
    /// The columns of a panel of B.
    panel: usize,
    /// The bytes of a sum, and of an element of a panel.
    size: usize,
    /// Whether the kernels read A in place.
    a_direct: bool,
    /// Whether the kernels read B in place.
    b_direct: bool,
}

impl BlockPlan {
    /// A kernel reads an operand in place at full speed as long as the caches keep what it reads more than
    /// once. A copy pays off for a large operand, and for one whose cache lines evict each other.
    fn new(p: &Product) -> Self {
        let kernels = (p.kind.kernels)().expect("only a CPU with kernels uses this method");
        let (panel, size) = (2 * kernels.lanes, p.kind.acc_size());
        let contiguous = size as isize; // the stride, for operands that are read in place
        let a_stride = if p.a.row == contiguous { p.a.col } else { p.a.row };
        let a_in_lines = p.a.row == contiguous || p.a.col == contiguous;
        let a_direct = p.n <= 2 * panel || p.n <= A_DIRECT && a_in_lines && !crowded(a_stride);
        let b_direct = p.m <= M_MAX || p.m <= B_DIRECT && !crowded(p.b.row);
        let k = p.k.div_ceil(kernels.depth).next_multiple_of(kernels.k_unit);
        BlockPlan {
            kernels,
            panels: kernels.panels.unwrap_or([p.kind.pack; 2]),
            k_max: k.min(K_BYTES / size),
            panel,
            size,
            a_direct: p.kind.is_acc && a_direct,
            b_direct: p.kind.is_acc && p.b.col == contiguous && b_direct,
        }
    }

    /// Whether one block has all of `k`.
    fn is_one_block(&self, k: usize) -> bool {
        k <= self.k_max * self.kernels.depth
    }
}

/// Whether cache lines at this stride, in bytes, use so few sets of the L1 cache that they evict each other.
/// Most L1 caches have 64 sets, which depend on the address modulo 4096.
pub(super) fn crowded(stride: isize) -> bool {
    let bytes = stride.unsigned_abs();
    bytes >= 4096 - 256 && (bytes + 256) % 4096 < 512
}

/// The [`ProductMethod`](super::method::ProductMethod) for all shapes: A and B are cut into blocks for the
/// caches, and the blocks into tiles for the kernel.
///
/// # Safety
/// The contract of [`ProductMethod::run`](super::method::ProductMethod::run).
pub(super) unsafe fn blocked(p: &Product, sums: Sums) {
    // SAFETY: the contract is the same.
    unsafe { blocks(p, &BlockPlan::new(p), SumTarget::Sums(sums), None) }
}

/// [`blocked`] for any C, if there is one block of `k`. Otherwise it does nothing and returns false.
///
/// # Safety
/// The contract of [`gemm`](super::gemm).
pub(super) unsafe fn blocked_and_rounded(p: &Product) -> bool {
    let plan = BlockPlan::new(p);
    let one = plan.is_one_block(p.k);
    if one {
        // SAFETY: the contract is the same.
        unsafe { blocks(p, &plan, SumTarget::Rounded(p.beta, p.c, None), None) }
    }
    one
}

/// Whether there is one block of `k`.
pub(super) fn is_one_block(p: &Product) -> bool {
    BlockPlan::new(p).is_one_block(p.k)
}

/// The columns `from..to` of a symmetric product, down to the diagonal or somewhat further. If they are
/// rounded, their mirror image is written too; then there must be one block of `k`.
///
/// # Safety
/// The contract of [`gemm`](super::gemm) for these columns and for the rows of the same numbers.
pub(super) unsafe fn blocked_above(p: &Product, from: usize, to: usize) {
    let part = p.part(0, to, from, to - from);
    let target = match p.kind.is_acc {
        true => SumTarget::Sums(part.sums()),
        false => SumTarget::Rounded(p.beta, part.c, Some(p.c.at(from, 0))),
    };
    // SAFETY: the contract is the same.
    unsafe { blocks(&part, &BlockPlan::new(&part), target, Some(from as isize)) }
}

/// The loops over blocks. If C is part of a symmetric matrix, `diagonal` is the row of the diagonal in its
/// first column.
///
/// # Safety
/// The contract of [`gemm`](super::gemm), with the target in place of C and `beta`.
unsafe fn blocks(p: &Product, plan: &BlockPlan, target: SumTarget, diagonal: Option<isize>) {
    let (depth, unit) = (plan.kernels.depth, plan.kernels.row_unit);
    let m_max = M_MAX.next_multiple_of(unit);
    let a_len = if plan.a_direct { 0 } else { plan.k_max * p.m.next_multiple_of(unit).min(m_max) };
    // With one block of rows, a panel of B is no longer needed when the next one is packed.
    let b_cols = if p.m <= m_max { plan.panel } else { p.n.min(N_MAX).next_multiple_of(plan.panel) };
    let b_len = if plan.b_direct { 0 } else { plan.k_max * b_cols };
    let sums_len = match target {
        SumTarget::Sums(_) => 0,
        SumTarget::Rounded(_, _, None) => p.m.min(m_max) * plan.panel,
        SumTarget::Rounded(_, _, Some(_)) => 2 * p.m.min(m_max) * plan.panel,
    };
    // A block from row `i` and column `j` on, and from `l` on along `k`.
    let block =
        |[i, m]: [usize; 2], [l, k]: [usize; 2], [j, n]: [usize; 2], b_panels: *mut u8| ProductBlock {
            plan,
            m,
            k,
            n,
            alpha: p.alpha,
            a: p.a.at(i, l),
            a_panels: b_panels.wrapping_add(b_len * plan.size),
            panel_sums: b_panels.wrapping_add((b_len + a_len) * plan.size),
            b: p.b.at(l, j),
            b_panels,
            pack_b: !plan.b_direct && i == 0,
            keep_b: p.m > m_max,
            target: target.at(p, i, j, l == 0),
            diagonal: diagonal.map(|row| row + j as isize - i as isize),
        };
    let bytes = (b_len + a_len + sums_len) * plan.size;
    if bytes == 0 && p.m <= m_max && p.n <= N_MAX && plan.is_one_block(p.k) {
        // A small product, for which the rest of this function would take longer than the kernel.
        let block = block([0, p.m], [0, p.k], [0, p.n], std::ptr::null_mut());
        // SAFETY: the contract is the same, and no panels are used.
        return unsafe { block.run(p) };
    }
    with_buffer(&PANELS, bytes, &mut |b_panels| {
        // LOOP 5: blocks of columns of B and C.
        for (j, n) in pieces(p.n, N_MAX, plan.panel) {
            // LOOP 4: blocks of `k`. All but the first add to C.
            for (l, k) in pieces(p.k, plan.k_max * depth, depth) {
                // LOOP 3: blocks of rows of A and C.
                for (i, m) in pieces(p.m, m_max, unit) {
                    // SAFETY: the block is inside the operands, and the buffer has room for its panels.
                    unsafe { block([i, m], [l, k], [j, n], b_panels).run(p) };
                }
            }
        }
    });
}

/// A block of the product: some rows of A, some columns of B.
struct ProductBlock<'p> {
    plan: &'p BlockPlan,
    m: usize,
    k: usize,
    n: usize,
    alpha: u64,
    a: MatrixView,
    a_panels: *mut u8,
    /// Memory for the sums of a panel of columns, if they are rounded, and for their mirror image.
    panel_sums: *mut u8,
    b: MatrixView,
    b_panels: *mut u8,
    /// Whether to pack the panels of B. Otherwise they are read in place, or were packed for an earlier
    /// block.
    pack_b: bool,
    /// Whether each panel of B has its own memory.
    keep_b: bool,
    target: SumTarget,
    /// The row of the diagonal in the first column, if C is symmetric.
    diagonal: Option<isize>,
}

impl ProductBlock<'_> {
    /// # Safety
    /// The contract of [`gemm`](super::gemm) for the part of the operands, and the panels fit into their
    /// memory.
    unsafe fn run(&self, p: &Product) {
        let BlockPlan { kernels, panels, size, a_direct, b_direct, .. } = *self.plan;
        let ProductBlock { m, n, .. } = *self;
        let unit = kernels.row_unit;
        let k = self.k.div_ceil(kernels.depth).next_multiple_of(kernels.k_unit);
        // SAFETY: the plan has kernels of this CPU.
        let _around = kernels.around.map(|around| unsafe { KernelGuard::start(around) });
        if !a_direct {
            for (i, rows) in pieces(m, kernels.rows, unit) {
                let MatrixView { ptr, row, col } = self.a.at(i, 0);
                let to = self.a_panels.wrapping_add(i * k * size);
                let (count, width) = (rows, rows);
                // SAFETY: the rows exist, and each takes `k` elements of the panels.
                unsafe {
                    panels[0](PanelCopy {
                        k: self.k,
                        count,
                        width,
                        from: ptr,
                        k_stride: col,
                        stride: row,
                        to,
                    });
                }
            }
        }
        // LOOP 2: panels of columns of B and C.
        let mut j = 0;
        while j < n {
            let (second, cols) = self.panel(n - j);
            let width = kernels.lanes << second;
            let MatrixView { ptr, row, col } = self.b.at(0, j);
            let (mut b, mut b_row) = (ptr, row);
            if !b_direct {
                b = self.b_panels.wrapping_add(if self.keep_b { j * k * size } else { 0 });
                b_row = (width * size) as isize;
                if self.pack_b {
                    let (from, to) = (ptr, b);
                    // SAFETY: the columns exist, and the panel has room for them.
                    unsafe {
                        panels[1](PanelCopy {
                            k: self.k,
                            count: cols,
                            width,
                            from,
                            k_stride: row,
                            stride: col,
                            to,
                        });
                    }
                }
            }
            // Those of the panel down to the diagonal, and those above it alone.
            let above = |column: usize| {
                self.diagonal
                    .map_or(m, |row| row.saturating_add_unsigned(column).clamp(0, m as isize) as usize)
            };
            let (m, m_above) = (above(j + cols), above(j));
            // LOOP 1: tiles of rows of A and C.
            for (i, mut rows) in pieces(self.m, kernels.rows, unit) {
                if i >= m {
                    break;
                }
                let (mut a, mut a_row, mut a_col) = (self.a.at(i, 0).ptr, self.a.row, self.a.col);
                if !a_direct {
                    a = self.a_panels.wrapping_add(i * k * size);
                    (a_row, a_col) = (size as isize, (rows * size) as isize);
                }
                let Sums { ptr, row: c_row, beta } = match self.target {
                    SumTarget::Sums(sums) => sums,
                    SumTarget::Rounded(..) => {
                        Sums { ptr: self.panel_sums, row: (width * size) as isize, beta: 0 }
                    }
                };
                let in_panel = if matches!(self.target, SumTarget::Sums(_)) { j * size } else { 0 };
                let mut c = ptr.wrapping_offset(i as isize * c_row).wrapping_add(in_panel);
                while rows > 0 {
                    let (count, kernel) = tile_of(kernels.tiles[second], rows);
                    let alpha = self.alpha;
                    // SAFETY: the rows and columns exist, and the kernel is for as many of them and for this
                    // CPU.
                    unsafe {
                        kernel(&Tile {
                            k,
                            a,
                            a_row,
                            a_col,
                            b,
                            b_row,
                            offsets: std::ptr::null(),
                            c,
                            c_row,
                            rows: count,
                            cols,
                            alpha,
                            beta,
                        });
                    }
                    a = a.wrapping_offset(count as isize * a_row);
                    c = c.wrapping_offset(count as isize * c_row);
                    rows -= count;
                }
            }
            if let SumTarget::Rounded(beta, c, mirror) = self.target {
                let sums = self.panel_sums;
                // SAFETY: the kernels have written the sums of these columns, which C has. There is room for
                // their mirror image, which C has too.
                unsafe {
                    if let Some(mirror) = mirror {
                        let turned = sums.add(self.m * width * size);
                        let (row, col) = ((width * size) as isize, size as isize);
                        let columns = MatrixView { ptr: sums, row, col }.t();
                        (p.kind.acc)().copy_rows(columns, cols, m_above, turned);
                        let (m, n, width, c) = (cols, m_above, m_above, mirror.at(j, 0));
                        (p.kind.write)(&BlockResults { sums: turned, width, m, n, beta, c });
                    }
                    (p.kind.write)(&BlockResults { sums, width, m, n: cols, beta, c: c.at(0, j) });
                }
            }
            j += cols;
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

/// The kernel with most rows, at most `rows`, with the number of its rows.
pub(super) fn tile_of(tiles: Tiles, rows: usize) -> (usize, TileFn) {
    let at = tiles.iter().position(|(most, _)| *most <= rows);
    tiles[at.expect("the last kernel has one row")]
}

/// The time in which a thread calls kernels that need something done [around](Kernels::around).
struct KernelGuard(unsafe fn());

impl KernelGuard {
    /// # Safety
    /// The functions are those of kernels for this CPU.
    unsafe fn start((before, after): (unsafe fn(), unsafe fn())) -> Self {
        // SAFETY: the contract is the same.
        unsafe { before() };
        KernelGuard(after)
    }
}

impl Drop for KernelGuard {
    fn drop(&mut self) {
        // SAFETY: the function of `start` was called before.
        unsafe { (self.0)() };
    }
}

/// Cuts `len` into the fewest pieces of at most `most`, as equal as multiples of `unit` can be. Returns the
/// start and the length of each. `most` is a multiple of `unit`.
pub(super) fn pieces(len: usize, most: usize, unit: usize) -> impl Iterator<Item = (usize, usize)> {
    // Most often there is one piece, for which nothing is divided: divisions take longer than a small
    // product.
    let (count, short, longer) = match len <= most {
        true => (1, len, 0),
        false => {
            let (count, units) = (len.div_ceil(most), len.div_ceil(unit));
            (count, units / count, units % count)
        }
    };
    let start = move |piece: usize| ((piece * short + piece.min(longer)) * unit).min(len);
    (0..count).map(move |piece| (start(piece), start(piece + 1) - start(piece)))
}
