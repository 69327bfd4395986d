//! Runs a loop over operands of any strides and dtypes on all threads: in chunks that stay in the L1 cache,
//! or in tiles if an operand is transposed in memory.

use super::loops::{Bytes, ElementLoop};
use crate::cpu::convert::converter;
use crate::cpu::copy::{TILE_COLS, TILE_ROWS, View, gather_tile};
use crate::cpu::threads::parallel;
use crate::dtype::{DType, Scalar};
use crate::layout::{Sizes, Strides, product};
use smallvec::SmallVec;
use std::mem::MaybeUninit;
use std::ops::Range;

/// The most inputs that a loop has.
pub(crate) const MOST: usize = 3;

/// A loop and its operands.
pub(crate) struct Job<'a> {
    /// The loop.
    pub(crate) body: &'a ElementLoop,
    /// The arguments that are the same for all elements.
    pub(crate) args: &'a [Scalar],
    /// The inputs, which broadcast to the sizes of the output.
    pub(crate) inputs: &'a [LoopInput<'a>],
    /// The dtypes in which the loop reads them.
    pub(crate) compute: [DType; MOST],
    /// The dtype that the loop produces.
    pub(crate) made: DType,
    /// The dtype of the output.
    pub(crate) out: DType,
    /// The sizes of the output.
    pub(crate) sizes: &'a [usize],
}

/// Runs a loop over its operands.
///
/// # Safety
/// `to` has room for a dense tensor of the sizes and dtype of the output that nothing else reads. No input
/// overlaps it, except the first one if `aliased`.
pub(crate) unsafe fn drive(job: Job<'_>, to: *mut u8, aliased: bool) {
    let Job { body, args, inputs, compute, made, out, sizes } = job;
    let numel: usize = product(sizes);
    if numel == 0 {
        return;
    }
    let direct =
        |k: usize| inputs[k].dtype == compute[k] && is_dense(inputs[k].sizes, inputs[k].strides, numel);
    if !aliased && made == out && (0..inputs.len()).all(direct) {
        let mut from = [std::ptr::null(); MOST];
        for (from, x) in from.iter_mut().zip(inputs) {
            *from = x.ptr;
        }
        // SAFETY: contiguous inputs of as many elements as the output.
        return unsafe { run_direct(numel, body, args, from, || compute, to, made.itemsize()) };
    }
    let mut expanded: SmallVec<[Strides; MOST]> = SmallVec::new();
    for x in inputs {
        expanded.push(expand_strides(x, sizes));
    }
    let (sizes, strides) = coalesce(sizes, &expanded);
    let mut views: SmallVec<[View<'_>; MOST]> = SmallVec::new();
    for (x, strides) in inputs.iter().zip(&strides) {
        views.push(View { ptr: x.ptr, dtype: x.dtype, strides });
    }
    let task =
        Task { body, args, compute, made, out_dtype: out, sizes: &sizes, views, out: to as usize, aliased };
    if task.is_transposed() {
        let (rows, grain) = (numel / sizes[sizes.len() - 1], GRAIN / (TILE_ROWS * sizes[sizes.len() - 1]));
        let bands = rows / sizes[sizes.len() - 2] * sizes[sizes.len() - 2].div_ceil(TILE_ROWS);
        // SAFETY: bands of different threads do not overlap, and the caller's contract.
        return parallel(bands, grain.max(1), |bands| unsafe { task.run_tiles(bands) });
    }
    parallel(numel, GRAIN, |range| {
        // SAFETY: ranges of different threads do not overlap, and the caller's contract.
        unsafe { task.run(range) }
    });
}

/// An input as the loops see it.
#[derive(Clone, Copy)]
pub(crate) struct LoopInput<'a> {
    pub(crate) ptr: *const u8,
    pub(crate) dtype: DType,
    pub(crate) sizes: &'a [usize],
    pub(crate) strides: &'a [isize],
}

/// Whether these `numel` elements are contiguous in row-major order.
#[inline]
fn is_dense(sizes: &[usize], strides: &[isize], numel: usize) -> bool {
    let mut step = 1;
    for (size, stride) in sizes.iter().zip(strides).rev() {
        if *size != 1 && *stride != step as isize {
            return false;
        }
        step *= size;
    }
    step == numel
}

/// The strides that read `x` as a tensor of `sizes`: zero for expanded dims.
fn expand_strides(x: &LoopInput<'_>, sizes: &[usize]) -> Strides {
    let missing = sizes.len() - x.sizes.len();
    let own = x.sizes.iter().zip(x.strides).map(|(size, stride)| if *size == 1 { 0 } else { *stride });
    std::iter::repeat_n(0, missing).chain(own).collect()
}

/// Merges adjacent dims over which every operand steps evenly.
fn coalesce(sizes: &[usize], strides: &[Strides]) -> (Sizes, SmallVec<[Strides; MOST]>) {
    let mut merged = Sizes::new();
    let n = strides.len();
    let mut steps: SmallVec<[Strides; MOST]> = SmallVec::from_elem(Strides::new(), n);
    for (dim, &size) in sizes.iter().enumerate() {
        if size == 1 {
            continue;
        }
        let last = merged.len().wrapping_sub(1);
        let even = !merged.is_empty() && (0..n).all(|k| steps[k][last] == strides[k][dim] * size as isize);
        if even {
            merged[last] *= size;
            (0..n).for_each(|k| steps[k][last] = strides[k][dim]);
        } else {
            merged.push(size);
            (0..n).for_each(|k| steps[k].push(strides[k][dim]));
        }
    }
    if merged.is_empty() {
        merged.push(1);
        (0..n).for_each(|k| steps[k].push(0));
    }
    (merged, steps)
}

/// The memory of an output.
///
/// # Safety
/// `to` has room for so many bytes, which nothing else reads or writes while they are borrowed.
#[inline]
unsafe fn bytes<'a>(to: *mut u8, len: usize) -> &'a mut Bytes {
    // SAFETY: the caller's contract.
    unsafe { std::slice::from_raw_parts_mut(to.cast(), len) }
}

/// The elements that a thread takes at a time. Fewer elements run on one thread, because passing work to
/// another thread costs several microseconds.
const GRAIN: usize = 1 << 16;

/// Runs the loop directly on contiguous inputs of the right dtypes.
///
/// # Safety
/// As for an [`ElementLoop`]: the inputs, which are the first of `from`, have `numel` elements of the dtypes
/// `compute`, and the output has as many elements of its size in bytes.
#[inline]
pub(crate) unsafe fn run_direct(
    numel: usize,
    body: &ElementLoop,
    args: &[Scalar],
    from: [*const u8; MOST],
    compute: impl FnOnce() -> [DType; MOST],
    to: *mut u8,
    out_itemsize: usize,
) {
    if numel <= 2 * GRAIN {
        // SAFETY: the caller's contract.
        return unsafe { body.run(numel, from.as_ptr(), args, bytes(to, numel * out_itemsize)) };
    }
    // SAFETY: the same contract.
    unsafe { run_in_parts(numel, body, args, from, compute(), to, out_itemsize) }
}

/// [`run_direct`] on several threads.
unsafe fn run_in_parts(
    numel: usize,
    body: &ElementLoop,
    args: &[Scalar],
    from: [*const u8; MOST],
    compute: [DType; MOST],
    to: *mut u8,
    out_itemsize: usize,
) {
    let (from, to) = (from.map(|ptr| ptr as usize), to as usize); // addresses, so that threads may share them
    parallel(numel, GRAIN, |range| {
        let mut part = [std::ptr::null::<u8>(); MOST];
        for k in 0..MOST {
            part[k] = (from[k] + range.start * compute[k].itemsize()) as *const u8;
        }
        let to = (to + range.start * out_itemsize) as *mut u8;
        // SAFETY: ranges of different threads do not overlap.
        unsafe { body.run(range.len(), part.as_ptr(), args, bytes(to, range.len() * out_itemsize)) }
    });
}

/// The elements of a scratch chunk: with two inputs of eight bytes, they take half of an L1 cache.
const CHUNK: usize = 1024;
type Scratch = [MaybeUninit<u64>; CHUNK];

/// A loop with its operands, of which a thread runs a part.
struct Task<'a> {
    body: &'a ElementLoop,
    args: &'a [Scalar],
    compute: [DType; MOST],
    made: DType,
    out_dtype: DType,
    sizes: &'a [usize],
    views: SmallVec<[View<'a>; MOST]>,
    out: usize,
    aliased: bool,
}

impl Task<'_> {
    /// Runs elements `range` of the output, chunk by chunk.
    ///
    /// # Safety
    /// The contract of [`drive`], and no other thread has any of these elements.
    unsafe fn run(&self, range: Range<usize>) {
        let mut scratch: [Scratch; MOST] = [[MaybeUninit::uninit(); CHUNK]; MOST];
        let mut made: Scratch = [MaybeUninit::uninit(); CHUNK];
        let last = self.sizes.len() - 1;
        let inner = self.sizes[last];
        let mut filled = [false; MOST]; // an operand of one element fills its chunk only once
        let mut start = range.start;
        while start < range.end {
            // A chunk does not cross the end of a long inner dim, so that operands contiguous along it are
            // read in place.
            let mut n = (range.end - start).min(CHUNK);
            if inner >= CHUNK / 4 {
                n = n.min(inner - start % inner);
            }
            let mut from = [std::ptr::null::<u8>(); MOST];
            for (k, view) in self.views.iter().enumerate() {
                let spread = view.strides.iter().all(|stride| *stride == 0);
                let buffer = scratch[k].as_mut_ptr().cast::<u8>();
                let whole_run = self.sizes.len() == 1 || n <= inner - start % inner;
                from[k] = if spread && filled[k] {
                    buffer
                } else if whole_run
                    && view.strides[last] == 1
                    && view.dtype == self.compute[k]
                    && !(self.aliased && k == 0)
                {
                    // SAFETY: element `start` of the view exists.
                    unsafe { view.ptr.offset(self.offset(view, start) * view.dtype.itemsize() as isize) }
                } else {
                    let n = if spread { CHUNK } else { n };
                    filled[k] = spread;
                    // SAFETY: the elements exist, the scratch chunk has room for `CHUNK` of any dtype.
                    unsafe { self.gather(k, start, n, buffer) };
                    buffer
                };
            }
            // SAFETY: `n` elements of each input are ready, and of the output there are as many from `start`
            // on.
            unsafe {
                let out = (self.out as *mut u8).add(start * self.out_dtype.itemsize());
                if self.made == self.out_dtype {
                    self.body.run(n, from.as_ptr(), self.args, bytes(out, n * self.made.itemsize()));
                } else {
                    let buffer = made.as_mut_ptr().cast::<u8>();
                    self.body.run(n, from.as_ptr(), self.args, bytes(buffer, size_of::<Scratch>()));
                    converter(self.made, self.out_dtype).run(n, buffer, 1, out);
                }
            }
            start += n;
        }
    }

    /// Whether an operand is transposed in memory, so that each element of a row is in a different cache
    /// line.
    fn is_transposed(&self) -> bool {
        let Some(row) = self.sizes.len().checked_sub(2) else { return false };
        let across = |k: usize| {
            let view = &self.views[k];
            let (row_stride, col_stride) =
                (view.strides[row].unsigned_abs(), view.strides[row + 1].unsigned_abs());
            col_stride > 1 && row_stride < col_stride && view.dtype == self.compute[k]
        };
        !self.aliased
            && self.made == self.out_dtype
            && self.sizes[row] >= 4
            && (0..self.views.len()).any(across)
    }

    /// Runs `bands` of [`TILE_ROWS`] rows of the output, tile by tile. Transposed operands are gathered so
    /// that each cache line is used completely. All bands are run before the next columns, so that each page
    /// is visited only once.
    ///
    /// # Safety
    /// The contract of [`drive`] for an [`is_transposed`](Self::is_transposed) task, and no other thread has
    /// any of these bands.
    unsafe fn run_tiles(&self, bands: Range<usize>) {
        let mut scratch: [[MaybeUninit<u64>; TILE_ROWS * TILE_COLS]; MOST] =
            [[MaybeUninit::uninit(); TILE_ROWS * TILE_COLS]; MOST];
        let row_dim = self.sizes.len() - 2;
        let (rows, cols) = (self.sizes[row_dim], self.sizes[row_dim + 1]);
        let per_matrix = rows.div_ceil(TILE_ROWS);
        for col in (0..cols).step_by(TILE_COLS) {
            let width = TILE_COLS.min(cols - col);
            for band in bands.clone() {
                let (matrix, row) = (band / per_matrix, band % per_matrix * TILE_ROWS);
                let height = TILE_ROWS.min(rows - row);
                let first = (matrix * rows + row) * cols + col; // in the output
                // The first row of each operand, and the number of bytes to the next row.
                let mut tile = [(std::ptr::null::<u8>(), 0); MOST];
                for (k, view) in self.views.iter().enumerate() {
                    let (row_stride, col_stride) = (view.strides[row_dim], view.strides[row_dim + 1]);
                    let itemsize = view.dtype.itemsize();
                    // SAFETY: the tile is inside the view, and the scratch has room for a tile of any dtype.
                    tile[k] = unsafe {
                        let from = view.ptr.offset(self.offset(view, first) * itemsize as isize);
                        let buffer = scratch[k].as_mut_ptr().cast::<u8>();
                        let pitch = TILE_COLS * self.compute[k].itemsize();
                        if col_stride == 1 && view.dtype == self.compute[k] {
                            (from, row_stride * itemsize as isize)
                        } else if view.dtype == self.compute[k] {
                            gather_tile(itemsize, [height, width], from, [row_stride, col_stride], buffer);
                            (buffer.cast_const(), pitch as isize)
                        } else {
                            let convert = converter(view.dtype, self.compute[k]);
                            for r in 0..height {
                                let from = from.offset(r as isize * row_stride * itemsize as isize);
                                convert.run(width, from, col_stride, buffer.add(r * pitch));
                            }
                            (buffer.cast_const(), pitch as isize)
                        }
                    };
                }
                for r in 0..height {
                    // SAFETY: row `r` of each tile has `width` elements, and so has the output from there on.
                    unsafe {
                        let out = (self.out as *mut u8).add((first + r * cols) * self.out_dtype.itemsize());
                        // A loop, since `array::map` is not always inlined.
                        let mut rows = [std::ptr::null::<u8>(); MOST];
                        for (row, (first, pitch)) in rows.iter_mut().zip(tile).take(self.views.len()) {
                            *row = first.offset(r as isize * pitch);
                        }
                        let out = bytes(out, width * self.made.itemsize());
                        self.body.run(width, rows.as_ptr(), self.args, out);
                    }
                }
            }
        }
    }

    /// The offset of element `index` of the output in `view`.
    #[inline]
    fn offset(&self, view: &View<'_>, mut index: usize) -> isize {
        let mut offset = 0;
        for (size, stride) in self.sizes.iter().zip(view.strides).rev() {
            offset += (index % size) as isize * stride;
            index /= size;
        }
        offset
    }

    /// Copies elements `start..start + n` of input `k` contiguously to `to`, cast to the dtype of the loop.
    ///
    /// # Safety
    /// The elements exist and `to` has room for them. For a view of one element, `n` may be larger than the
    /// output.
    unsafe fn gather(&self, k: usize, start: usize, n: usize, to: *mut u8) {
        let (view, compute) = (&self.views[k], self.compute[k]);
        let convert = converter(view.dtype, compute);
        let (from_size, to_size) = (view.dtype.itemsize() as isize, compute.itemsize());
        let last = self.sizes.len() - 1;
        let (inner, step) = (self.sizes[last], view.strides[last]);
        if view.strides.iter().all(|stride| *stride == 0) {
            // SAFETY: one element, read `n` times.
            return unsafe { convert.run(n, view.ptr, 0, to) };
        }
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, self.sizes.len());
        let mut rest = start;
        for dim in (0..self.sizes.len()).rev() {
            index[dim] = rest % self.sizes[dim];
            rest /= self.sizes[dim];
        }
        let mut offset: isize = index.iter().zip(view.strides).map(|(i, stride)| *i as isize * stride).sum();
        let mut done = 0;
        while done < n {
            let run = (inner - index[last]).min(n - done);
            // SAFETY: `run` elements along the inner dim exist from `offset` on.
            unsafe { convert.run(run, view.ptr.offset(offset * from_size), step, to.add(done * to_size)) };
            done += run;
            index[last] += run;
            offset += run as isize * step;
            // Carry into the outer dims, like an odometer.
            let mut dim = last;
            while index[dim] == self.sizes[dim] && dim > 0 {
                offset -= index[dim] as isize * view.strides[dim];
                index[dim] = 0;
                dim -= 1;
                index[dim] += 1;
                offset += view.strides[dim];
            }
        }
    }
}
