//! Tensors that are computed tile by tile. A tile fits in the cache of a core. It is a range of one dim with
//! all dims inside of it, so that its elements are neighbors in a dense result.

use crate::callback::Callback;
use crate::cpu::threads::each;
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{Sizes, Strides, product};
use crate::sizes::broadcast;
use crate::tensor::{NamedTensor, Unwritten};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The most elements of a tile: 64 KiB of `f32`, of which the second cache of a core holds several. The thread
/// that frees such a block keeps it for the next tile.
const TILE: usize = 1 << 14;

/// The tiles of the sizes that inputs broadcast to.
#[doc(hidden)]
pub struct Tiles {
    sizes: Sizes,
    /// The dim that is cut: the outermost one of which a row fits in a tile.
    cut: usize,
    /// The rows of that dim in a tile; the last tile of a dim may have fewer.
    rows: usize,
}

impl Tiles {
    /// The tiles of these inputs.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes do not broadcast.
    #[track_caller]
    pub fn new(op: &'static str, inputs: &[&NamedTensor]) -> Result<Tiles> {
        let mut sizes = Sizes::new();
        for x in inputs {
            sizes = broadcast(op, &sizes, x.sizes()).map_err(|error| error.with_inputs(inputs))?;
        }
        let cut = (0..sizes.len()).find(|dim| product(&sizes[dim + 1..]) <= TILE).unwrap_or(0);
        let mut tiles = Tiles { sizes, cut, rows: 1 };
        let (length, most) = (tiles.length(), (TILE / tiles.row().max(1)).max(1));
        tiles.rows = length.div_ceil(length.div_ceil(most).max(1)).max(1); // of about the same size
        Ok(tiles)
    }

    /// The sizes of the result.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The size of the dim that is cut.
    fn length(&self) -> usize {
        self.sizes.get(self.cut).copied().unwrap_or(1)
    }

    /// The elements of a row of that dim.
    fn row(&self) -> usize {
        product(self.sizes.get(self.cut + 1..).unwrap_or(&[]))
    }

    /// The number of tiles.
    pub fn count(&self) -> usize {
        product(&self.sizes[..self.cut]) * self.length().div_ceil(self.rows)
    }

    /// The range of each dim in tile number `at`.
    pub fn ranges(&self, at: usize) -> Vec<Range<usize>> {
        let (mut ranges, each) = (Vec::with_capacity(self.sizes.len()), self.length().div_ceil(self.rows));
        let (mut outer, start) = (at / each, at % each * self.rows);
        for (dim, size) in self.sizes.iter().enumerate().rev() {
            ranges.push(match dim {
                _ if dim > self.cut => 0..*size,
                _ if dim == self.cut => start..(start + self.rows).min(*size),
                _ => {
                    let index = outer % size;
                    outer /= size;
                    index..index + 1
                }
            });
        }
        ranges.reverse();
        ranges
    }

    /// The part of an input in these ranges, as a view. Dims of one element stay, as those that it lacks.
    pub fn part(x: &NamedTensor, ranges: &[Range<usize>]) -> NamedTensor {
        let (mut sizes, mut offset) = (Sizes::from_slice(x.sizes()), x.offset() as isize);
        for (dim, range) in ranges[ranges.len() - x.ndim()..].iter().enumerate() {
            if sizes[dim] != 1 {
                sizes[dim] = range.len();
                offset += range.start as isize * x.strides()[dim];
            }
        }
        x.view_as(sizes, Strides::from_slice(x.strides()), offset as usize, x.names().clone())
    }

    /// Computes all tiles, on all threads. `first` are the results for the first tile, whose dtypes and names
    /// are those of all, and `compute` gives them for any other.
    ///
    /// # Errors
    /// Those of `compute`, and [`ErrorKind::Value`] if a result has other sizes than its tile or another dtype
    /// than the first one.
    #[track_caller]
    pub fn fill(
        &self,
        op: &'static str,
        first: &[NamedTensor],
        compute: &(dyn Callback<(usize,), Result<Vec<NamedTensor>>> + Sync),
    ) -> Result<Vec<NamedTensor>> {
        let (mut all, mut to) = (Vec::with_capacity(first.len()), Vec::with_capacity(first.len()));
        for y in first {
            let mut out = Unwritten::of(op, &self.sizes, y.names().clone(), y.dtype())?;
            to.push(out.ptr_mut() as usize); // an address, so that threads may share it
            all.push(out);
        }
        let failed = Mutex::new(None);
        let failure = || failed.lock().unwrap_or_else(PoisonError::into_inner);
        each(self.count(), &|at: usize| {
            if failure().is_some() {
                return;
            }
            let made = if at == 0 { Ok(first.to_vec()) } else { compute.call_with((at,)) };
            // SAFETY: the memory of tensors of these sizes, and each tile is computed once.
            if let Err(error) = made.and_then(|made| unsafe { self.place(op, at, &made, first, &to) }) {
                failure().get_or_insert(error);
            }
        });
        if let Some(error) = failure().take() {
            return Err(error);
        }
        // SAFETY: without a failure, each tile was placed, and together they are all elements.
        Ok(crate::list(all.into_iter().map(|out| unsafe { out.written() })))
    }

    /// Copies the results for a tile to their places.
    ///
    /// # Safety
    /// At `to` is the memory of tensors of these sizes and of the dtypes of `first`, and no other thread has
    /// this tile.
    unsafe fn place(
        &self,
        op: &'static str,
        at: usize,
        made: &[NamedTensor],
        first: &[NamedTensor],
        to: &[usize],
    ) -> Result<()> {
        let ranges = self.ranges(at);
        let mut start = 0;
        for (range, size) in ranges.iter().zip(&self.sizes) {
            start = start * size + range.start;
        }
        assert_eq!(made.len(), first.len(), "as many results for each tile");
        for ((y, first), to) in made.iter().zip(first).zip(to) {
            let fits = y.sizes().len() == ranges.len()
                && y.sizes().iter().zip(&ranges).all(|(size, range)| *size == range.len());
            if !fits || y.dtype() != first.dtype() {
                let tile: Vec<usize> = crate::list(ranges.iter().map(|range| range.len()));
                let message = format!("a part of sizes {tile:?} gave {} {:?}", y.dtype(), y.sizes());
                return Err(Error::new(ErrorKind::Value, op, message));
            }
            let (dense, itemsize) = (y.contiguous()?, y.dtype().itemsize());
            // SAFETY: the elements of the tile are neighbors from `start` on, as many as `dense` has, and the
            // caller's contract.
            unsafe {
                let to = (*to as *mut u8).add(start * itemsize);
                to.copy_from_nonoverlapping(dense.ptr(), dense.nbytes());
            }
        }
        Ok(())
    }
}
