//! A product as data: its operands as bytes at strides, and the functions for its type of number.
//!
//! The drivers (`blocked`, `matvec`, `gram`, `foreign` and `threads`) are compiled once. They know a type of
//! number by its [`NumberKind`], and the instructions of this CPU by [`Kernels`], both of which are tables of
//! functions.

use super::Mat;

/// A matrix in memory. Element (i, j) is at `ptr + i * row + j * col`, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct MatrixView {
    pub(crate) ptr: *mut u8,
    pub(crate) row: isize,
    pub(crate) col: isize,
}

impl MatrixView {
    /// The matrix of contiguous rows of elements of `size` bytes, whose starts are `width` elements apart.
    pub(crate) fn rows(ptr: *mut u8, width: usize, size: usize) -> MatrixView {
        MatrixView { ptr, row: (width * size) as isize, col: size as isize }
    }

    /// The matrix with these strides in elements.
    pub(super) fn of<T>(mat: Mat<*const T>) -> MatrixView {
        let size = size_of::<T>() as isize;
        MatrixView { ptr: mat.ptr.cast_mut().cast(), row: mat.row_stride * size, col: mat.col_stride * size }
    }

    /// [`of`](Self::of) for a matrix that is written.
    pub(super) fn of_mut<T>(mat: Mat<*mut T>) -> MatrixView {
        MatrixView::of(Mat {
            ptr: mat.ptr.cast_const(),
            row_stride: mat.row_stride,
            col_stride: mat.col_stride,
        })
    }

    /// The matrix from element (i, j) on. Nothing is read, so the element may be one past the end.
    pub(super) fn at(self, i: usize, j: usize) -> MatrixView {
        MatrixView { ptr: self.ptr.wrapping_offset(i as isize * self.row + j as isize * self.col), ..self }
    }

    /// The transposed matrix, on the same memory.
    pub(crate) fn t(self) -> MatrixView {
        MatrixView { ptr: self.ptr, row: self.col, col: self.row }
    }
}

/// `C ← alpha A B + beta C`, with A `m` by `k`, B `k` by `n` and C `m` by `n`. The scalars are the
/// [`bits`](super::Accumulator::bits) of accumulators.
#[derive(Clone, Copy)]
pub(super) struct Product {
    pub(super) kind: &'static NumberKind,
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) alpha: u64,
    pub(super) a: MatrixView,
    pub(super) b: MatrixView,
    pub(super) beta: u64,
    pub(super) c: MatrixView,
}

// SAFETY: a product is sent to another thread together with the right to its part of C. A and B are only
// read.
unsafe impl Send for Product {}
// SAFETY: as above.
unsafe impl Sync for Product {}

impl Product {
    /// `m` rows of C from row `i` on, and `n` columns from column `j` on.
    pub(super) fn part(&self, i: usize, m: usize, j: usize, n: usize) -> Self {
        Product { m, n, a: self.a.at(i, 0), b: self.b.at(0, j), c: self.c.at(i, j), ..*self }
    }

    /// The same product with each operand moved by a number of elements.
    pub(super) fn moved(&self, (a, b, c): (isize, isize, isize)) -> Self {
        let mut moved = *self;
        let size = self.kind.size as isize;
        moved.a.ptr = self.a.ptr.wrapping_offset(a * size);
        moved.b.ptr = self.b.ptr.wrapping_offset(b * size);
        moved.c.ptr = self.c.ptr.wrapping_offset(c * size);
        moved
    }

    /// The same product, transposed if needed: `C^T = B^T A^T` fills the same memory. The rows of C become
    /// contiguous if its columns are, and a C with one column gets one row.
    ///
    /// The stride of a direction with one element has no meaning and is set to that of contiguous elements,
    /// the best stride.
    pub(super) fn upright(mut self) -> Self {
        let size = self.kind.size as isize;
        if self.m == 1 {
            (self.a.row, self.c.row) = (size, size);
        }
        if self.n == 1 {
            (self.b.col, self.c.col) = (size, size);
        }
        if self.k == 1 {
            (self.a.col, self.b.row) = (size, size);
        }
        let lying = self.c.row == size && self.c.col != size;
        if self.m > 1 && (lying || self.n == 1) {
            (self.m, self.n) = (self.n, self.m);
            (self.a, self.b) = (self.b.t(), self.a.t());
            self.c = self.c.t();
        }
        self
    }

    /// Whether the rows of C are contiguous accumulators, in which sums can be formed.
    pub(super) fn sums_in_place(&self) -> bool {
        self.kind.is_acc && self.c.col == self.kind.size as isize
    }

    /// C and `beta` of a product with [`sums_in_place`](Self::sums_in_place).
    pub(super) fn sums(&self) -> Sums {
        Sums { ptr: self.c.ptr, row: self.c.row, beta: self.beta }
    }
}

/// Where the sums of a product go: accumulators in contiguous rows, to `beta` times which they are added. If
/// `beta` is 0, the memory is written and not read.
#[derive(Clone, Copy)]
pub(super) struct Sums {
    pub(super) ptr: *mut u8,
    /// The distance of the rows, in bytes.
    pub(super) row: isize,
    pub(super) beta: u64,
}

/// A type of number.
pub(crate) struct NumberKind {
    /// The bytes of a number.
    pub(crate) size: usize,
    /// The type of its sums.
    pub(super) acc: fn() -> &'static NumberKind,
    /// Whether that is the same type.
    pub(super) is_acc: bool,
    /// The [`bits`](super::Accumulator::bits) of one.
    pub(super) one: u64,
    /// The kernels for this CPU, if there are any.
    pub(super) kernels: fn() -> Option<&'static Kernels>,
    /// Copies numbers to a panel, as accumulators.
    pub(super) pack: PackFn,
    /// Writes sums to C.
    pub(super) write: WriteFn,
    /// For accumulators, `to += from` for `n` of them.
    pub(super) add: AddFn,
    /// For accumulators, a product of another library, for processors without kernels.
    pub(super) multiply: ForeignFn,
}

impl NumberKind {
    /// The bytes of a sum.
    pub(crate) fn acc_size(&self) -> usize {
        (self.acc)().size
    }

    /// The numbers of a slice as accumulators, which have at most eight bytes.
    pub(crate) fn widened(&self, x: &[u8]) -> Vec<u64> {
        let n = x.len() / self.size;
        let mut wide = vec![0; n];
        let x = MatrixView::rows(x.as_ptr().cast_mut(), n, self.size);
        // SAFETY: there are `n` numbers, and room for as many.
        unsafe { self.copy_rows(x, 1, n, wide.as_mut_ptr().cast()) };
        wide
    }

    /// Copies a matrix to contiguous rows of accumulators.
    ///
    /// # Safety
    /// The numbers are valid for reads, and `to` for writes of as many accumulators.
    pub(super) unsafe fn copy_rows(
        &self,
        x: MatrixView,
        rows: usize,
        cols: usize,
        to: *mut u8,
    ) -> MatrixView {
        // SAFETY: the contract is the same.
        unsafe { self.copy_matrix(x, [rows, cols], to, cols) };
        MatrixView::rows(to, cols, self.acc_size())
    }

    /// Copies a matrix to rows of accumulators whose starts are `width` apart.
    ///
    /// # Safety
    /// The numbers are valid for reads, and `to` for writes of as many accumulators in each row.
    pub(crate) unsafe fn copy_matrix(
        &self,
        x: MatrixView,
        [k, count]: [usize; 2],
        to: *mut u8,
        width: usize,
    ) {
        let MatrixView { ptr: from, row: k_stride, col: stride } = x;
        // SAFETY: the contract is the same.
        unsafe { (self.pack)(PanelCopy { k, count, width, from, k_stride, stride, to }) }
    }
}

/// The functions for a type of number and a set of instructions.
pub(super) struct Kernels {
    /// The numbers in a vector.
    pub(super) lanes: usize,
    /// The greatest number of rows of a tile.
    pub(super) rows: usize,
    /// Blocks and tiles have a multiple of so many rows where that is possible.
    pub(super) row_unit: usize,
    /// The numbers along `k` in an element of a panel.
    pub(super) depth: usize,
    /// Panels have a multiple of so many elements along `k`.
    pub(super) k_unit: usize,
    /// The kernels with one or two vectors, each with its rows, those with most rows first. The last has one
    /// row.
    pub(super) tiles: [Tiles; 2],
    /// Such kernels that find A and B by [offsets](Tile::offsets).
    pub(super) scattered: Option<[Tiles; 2]>,
    /// Copies rows of A, and columns of B, to panels, if panels do not consist of accumulators.
    pub(super) panels: Option<[PackFn; 2]>,
    /// The steps of `matvec`.
    pub(super) dots: StripFn,
    pub(super) axpys: StripFn,
    /// What a thread does before and after it calls kernels.
    pub(super) around: Option<Around>,
}

/// Kernels, each with its rows.
pub(super) type Tiles = &'static [(usize, TileFn)];

/// The functions that a thread calls before and after kernels. The CPU must have the kernels' instructions.
pub(super) type Around = (unsafe fn(), unsafe fn());

/// The arguments of a kernel: `C ← alpha A B + beta C` for one tile. Strides are in bytes.
pub(crate) struct Tile {
    /// The length of the sums.
    pub(super) k: usize,
    /// The first row of A, packed or in place.
    pub(super) a: *const u8,
    pub(super) a_row: isize,
    pub(super) a_col: isize,
    /// The first row of B. Rows are contiguous.
    pub(super) b: *const u8,
    pub(super) b_row: isize,
    /// For kernels that find them so, the offsets of each column of A and each row of B.
    pub(super) offsets: *const [i32; 2],
    /// The first row of C. Rows are contiguous.
    pub(super) c: *mut u8,
    pub(super) c_row: isize,
    /// The number of rows.
    pub(super) rows: usize,
    /// The number of columns. It is at most that of the kernel's vectors, and the last vector has at least
    /// one.
    pub(super) cols: usize,
    pub(super) alpha: u64,
    /// If 0, C is written and not read.
    pub(super) beta: u64,
}

/// A kernel.
///
/// # Safety
/// The CPU has its instructions. The pointers of the tile are valid for the rows of the kernel, `k` and
/// `cols`, that of C for writes by this call alone.
pub(crate) type TileFn = unsafe fn(&Tile);

/// A part of an operand that is copied to a panel: `k` rows of `width` numbers, of which the first `count`
/// are written. Number `i` of row `l` is at `from + l * k_stride + i * stride`, in bytes.
///
/// A row has one number per column of a panel of B, or per row of a panel of A. Usually the numbers are
/// contiguous along one of the two: along `i`, rows are copied, and along `l`, blocks are transposed.
#[derive(Clone, Copy)]
pub(crate) struct PanelCopy {
    pub(super) k: usize,
    pub(super) count: usize,
    pub(super) width: usize,
    pub(super) from: *const u8,
    pub(super) k_stride: isize,
    pub(super) stride: isize,
    pub(super) to: *mut u8,
}

/// Writes a panel.
///
/// # Safety
/// `from` is valid for reads of the numbers, `to` for writes of `k * width`. If the function is one of
/// [`Kernels`], the CPU has its instructions.
pub(super) type PackFn = unsafe fn(PanelCopy);

/// Sums to be written to C: `C ← sums + beta C` for `m` rows and `n` columns. The rows of sums are `width`
/// apart, in sums, and are overwritten.
pub(super) struct BlockResults {
    pub(super) sums: *mut u8,
    pub(super) width: usize,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) beta: u64,
    pub(super) c: MatrixView,
}

/// Writes sums to C.
///
/// # Safety
/// The sums are valid for reads and writes, the elements of C for writes and, unless `beta` is 0, for reads.
pub(super) type WriteFn = unsafe fn(&BlockResults);

/// Adds `n` accumulators to others.
///
/// # Safety
/// They are valid for reads, and `to` for writes.
pub(super) type AddFn = unsafe fn(from: *const u8, n: usize, to: *mut u8);

/// A product with few rows of A, which are contiguous, as are the rows or the columns of B and the rows of C.
/// All are accumulators; strides are in bytes.
pub(super) struct Strip {
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) alpha: u64,
    pub(super) a: *const u8,
    pub(super) a_row: isize,
    pub(super) b: MatrixView,
    pub(super) sums: Sums,
}

/// Computes a strip.
///
/// # Safety
/// The contract of [`gemm`](super::gemm) for the strip, and the CPU has the instructions.
pub(super) type StripFn = unsafe fn(&Strip);

/// Computes a product whose A, B and C are accumulators.
///
/// # Safety
/// The contract of [`gemm`](super::gemm).
pub(super) type ForeignFn = unsafe fn(&Product);
