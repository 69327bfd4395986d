//! Shared, aligned, recycled memory.
//!
//! A [`Storage`] is a counted reference to one block: a header of 64 bytes (count, size class) followed by
//! the data, so that a small tensor needs only one allocation. When its last reference is dropped, a block is
//! kept for the next tensor of its size class: small blocks by the thread that freed them, large blocks for
//! all threads. New pages cost more than most ops that fill them (1.6 µs each on some virtual machines), so
//! the memory that one training step frees is reused by the next. Blocks of 2 MiB or more are aligned for
//! huge pages, which are requested from the operating system.
//!
//! The data of a new storage are uninitialized, unless zeros are asked for: `tensor::make` hands them to a
//! kernel as `MaybeUninit`, and there is a tensor only when the kernel has written them.
//!
//! A block of a meta tensor is only the header: it has the size class and is counted, apart from the others,
//! but nothing points behind it.
//!
//! `block` has the size classes and the calls to the system's allocator, `cache` the freed blocks, `stats` the
//! counters, and `meta` those of blocks without data.

mod block;
mod cache;
mod meta;
mod stats;

use super::threads::each_part;
use block::{HEADER, Header, META, allocate, block_bytes, class_of, release};
use cache::{cached_bytes, fresh, recycle, recycled};
pub(crate) use meta::count_beside;
use meta::count_meta;
use stats::{live, peak};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

pub use cache::{empty_cache, set_cache_limit};
pub use meta::{MetaStats, empty_meta_cache, meta_stats, reset_meta_peak};
pub use stats::{allocated_bytes, reset_peak};

/// The bytes that a thread zeroes at a time.
const ZEROS: usize = 1 << 19;

/// A counted reference to a block of memory, 64-byte aligned.
pub(crate) struct Storage(NonNull<Header>);

// SAFETY: the count is atomic, and the data is only written through a unique reference (`data_mut`).
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    /// Storage for `bytes` bytes, which are uninitialized; `None` if there is not enough memory.
    #[inline(never)]
    pub(crate) fn new(bytes: usize) -> Option<Storage> {
        if bytes > isize::MAX as usize / 4 {
            return None;
        }
        let class = class_of(bytes);
        let block = match recycled(class) {
            Some(block) => {
                // SAFETY: there are no references to a cached block.
                unsafe { block.as_ref() }.refs.store(1, Ordering::Relaxed);
                block
            }
            None => fresh(class)?,
        };
        Some(Storage(block))
    }

    /// Storage for `bytes` bytes, filled with zeros; `None` if there is not enough memory.
    pub(crate) fn zeroed(bytes: usize) -> Option<Storage> {
        let storage = Storage::new(bytes)?;
        let data = storage.data().cast_mut().cast::<MaybeUninit<u8>>();
        // SAFETY: the block has room for `bytes`, and there is no other reference.
        let room = unsafe { std::slice::from_raw_parts_mut(data, bytes) };
        // On all threads: a new page is in the memory near the thread that writes to it first.
        each_part(room, ZEROS, &|_, room| room.fill(MaybeUninit::new(0)));
        Some(storage)
    }

    /// Storage that stands for `bytes` bytes, without data.
    #[cold]
    pub(crate) fn meta(bytes: usize) -> Option<Storage> {
        if bytes > isize::MAX as usize / 4 {
            return None;
        }
        let class = class_of(bytes) | META;
        count_meta(class, true);
        allocate(class).map(Storage)
    }

    /// Whether there is no data.
    #[inline]
    pub(crate) fn is_meta(&self) -> bool {
        self.header().class & META != 0
    }

    /// The data, of which there must be some.
    #[inline]
    pub(crate) fn data(&self) -> *const u8 {
        // SAFETY: the data follows the header in the same allocation.
        unsafe { self.0.as_ptr().cast::<u8>().add(HEADER) }
    }

    /// The capacity in bytes, which can be larger than requested.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        block_bytes(self.header().class) - HEADER
    }

    /// The data, for writing. There must be some.
    ///
    /// # Panics
    /// If there is another reference, because the data must not change for it.
    #[inline]
    pub(crate) fn data_mut(&mut self) -> *mut u8 {
        assert!(self.is_unique(), "a buffer that others see is not written");
        self.data().cast_mut()
    }

    /// Whether this is the only reference, so that the data can be written.
    #[inline]
    pub(crate) fn is_unique(&self) -> bool {
        self.header().refs.load(Ordering::Acquire) == 1
    }

    /// Where the data are, or would be if there were any.
    #[inline]
    pub(crate) fn address(&self) -> *const u8 {
        self.0.as_ptr().cast::<u8>().wrapping_add(HEADER)
    }

    /// The number of references.
    pub(crate) fn references(&self) -> usize {
        self.header().refs.load(Ordering::Relaxed)
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: a block lives as long as there is a reference to it.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for Storage {
    #[inline]
    fn clone(&self) -> Storage {
        // As in `Arc`: a new reference is made from an existing one, so no ordering is needed.
        let others = self.header().refs.fetch_add(1, Ordering::Relaxed);
        // If the count wrapped, memory in use would be freed. So many leaked references cannot be recovered
        // from.
        if others > isize::MAX as usize {
            std::process::abort();
        }
        Storage(self.0)
    }
}

impl Drop for Storage {
    #[inline(never)]
    fn drop(&mut self) {
        let header = self.header();
        let class = header.class;
        // If the count is one, this is the only reference and nobody can clone it now, so no locked
        // instruction is needed.
        if header.refs.load(Ordering::Acquire) != 1 {
            if header.refs.fetch_sub(1, Ordering::Release) != 1 {
                return;
            }
            // Uses through other references happened before their decrements; synchronize with them before
            // the block is reused.
            fence(Ordering::Acquire);
        }
        // SAFETY: this was the last reference.
        unsafe { if class & META == 0 { recycle(self.0, class) } else { forget(self.0, class) } };
    }
}

/// Frees a block without data.
///
/// # Safety
/// There are no references to the block.
#[cold]
unsafe fn forget(block: NonNull<Header>, class: usize) {
    count_meta(class, false);
    // SAFETY: the caller's contract.
    unsafe { release(block) };
}

/// The memory of all tensors in the process, in bytes of blocks (data, header and padding).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStats {
    /// Blocks that tensors use now.
    pub live_blocks: usize,
    /// The bytes of these blocks.
    pub live_bytes: usize,
    /// The largest `live_bytes` since the start or the last [`reset_peak`], within 64 KiB for each thread.
    pub peak_bytes: usize,
    /// Bytes in the shared cache of freed blocks. The small blocks that each thread caches (at most 4 MiB)
    /// are not included.
    pub cached_bytes: usize,
}

/// The memory that tensors use now.
pub fn stats() -> MemoryStats {
    let (live_blocks, live_bytes) = live();
    MemoryStats { live_blocks, live_bytes, peak_bytes: peak(live_bytes), cached_bytes: cached_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_reference_frees() {
        let a = Storage::new(1000).unwrap();
        assert!(a.is_unique());
        let b = a.clone();
        assert_eq!(a.references(), 2);
        drop(a);
        assert!(b.is_unique());
        assert_eq!(b.data() as usize % 64, 0);
    }

    #[test]
    fn zeroed_means_zero_after_recycling() {
        for bytes in [100, 100_000, 3 << 20] {
            let mut a = Storage::new(bytes).unwrap();
            // SAFETY: the block has room for `bytes`, and this is the only reference.
            unsafe { a.data_mut().write_bytes(7, bytes) };
            drop(a);
            let b = Storage::zeroed(bytes).unwrap();
            // SAFETY: all `bytes` were written.
            let data = unsafe { std::slice::from_raw_parts(b.data(), bytes) };
            assert!(data.iter().all(|v| *v == 0));
        }
    }

    #[test]
    fn blocks_travel_between_threads() {
        let blocks: Vec<Storage> = (0..100).map(|i| Storage::zeroed(i * 1000).unwrap()).collect();
        std::thread::spawn(move || drop(blocks)).join().unwrap();
        assert!(Storage::new(50_000).unwrap().is_unique());
    }

    #[test]
    fn what_is_live_is_counted_over_all_threads() {
        // Other tests run at the same time, so use a size far above theirs.
        const BYTES: usize = 1 << 28;
        let before = stats().live_bytes;
        let blocks: Vec<Storage> = (0..BYTES >> 15).map(|_| Storage::new(32 << 10).unwrap()).collect();
        assert!(stats().live_bytes > before + BYTES / 2);
        std::thread::spawn(move || drop(blocks)).join().unwrap();
        assert!(stats().live_bytes < before + BYTES / 2);
        assert!(stats().peak_bytes > before + BYTES / 2);
    }

    #[test]
    fn too_much_is_none() {
        assert!(Storage::zeroed(1 << 61).is_none());
        assert!(Storage::new(usize::MAX).is_none());
    }
}
