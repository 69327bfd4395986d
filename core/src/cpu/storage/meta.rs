//! The memory that meta tensors would use if they had elements, and what the cache of freed blocks would then
//! hold, as `cache` has it.

use super::block::{CLASSES, META, block_bytes};
use super::cache::cache_limit;
use std::cell::RefCell;

thread_local! {
    static MEMORY: RefCell<MetaMemory> = const { RefCell::new(MetaMemory::NONE) };
}

/// The memory of the meta tensors of a thread.
struct MetaMemory {
    stats: MetaStats,
    /// The number of freed blocks of each size class, and their bytes.
    free: [usize; CLASSES],
    cached: isize,
}

/// The memory that the meta tensors of a thread would use, in bytes of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaStats {
    /// The bytes of the blocks that the thread took, minus those that it returned.
    pub live_bytes: isize,
    /// The largest `live_bytes` since the last [`reset_meta_peak`].
    pub peak_bytes: isize,
    /// The largest number of bytes that the system would have given since the last [`empty_meta_cache`]: blocks
    /// in use, and freed ones that are kept for the next tensors.
    pub system_bytes: isize,
}

impl MetaMemory {
    const NONE: MetaMemory = MetaMemory {
        stats: MetaStats { live_bytes: 0, peak_bytes: 0, system_bytes: 0 },
        free: [0; CLASSES],
        cached: 0,
    };

    fn take(&mut self, class: usize) {
        let bytes = block_bytes(class) as isize;
        if self.free[class] > 0 {
            self.free[class] -= 1;
            self.cached -= bytes;
        }
        let MetaStats { live_bytes, peak_bytes, system_bytes } = &mut self.stats;
        *live_bytes += bytes;
        *peak_bytes = (*peak_bytes).max(*live_bytes);
        *system_bytes = (*system_bytes).max(*live_bytes + self.cached);
    }

    /// A block is kept as the cache of all threads keeps it.
    fn give(&mut self, class: usize) {
        let bytes = block_bytes(class) as isize;
        let limit = (cache_limit() as isize).max(self.stats.live_bytes);
        self.stats.live_bytes -= bytes;
        while self.cached + bytes > limit {
            let (mut most, mut bytes_of_most) = (None, 0);
            for (other, free) in self.free.iter_mut().enumerate() {
                if other != class && *free > 0 && *free * block_bytes(other) >= bytes_of_most {
                    (bytes_of_most, most) = (*free * block_bytes(other), Some((block_bytes(other), free)));
                }
            }
            let Some((size, free)) = most.filter(|_| bytes <= limit) else { return };
            *free -= 1;
            self.cached -= size as isize;
        }
        self.free[class] += 1;
        self.cached += bytes;
    }
}

/// The memory that the meta tensors of this thread would use, counted as [`stats`](super::stats) counts that of
/// tensors with elements.
///
/// ```
/// use namegrad_core::{Device, NamedTensor, memory, on_device};
/// let before = memory::meta_stats().live_bytes;
/// let x = on_device(Device::Meta, || NamedTensor::zeros([1 << 20, 1 << 20]))?;
/// assert!(memory::meta_stats().live_bytes - before >= 4 << 40);
/// # Ok::<(), namegrad_core::Error>(())
/// ```
pub fn meta_stats() -> MetaStats {
    MEMORY.with_borrow(|memory| memory.stats)
}

/// Resets the peak of [`meta_stats`] to the memory that the meta tensors of this thread would use now.
pub fn reset_meta_peak() {
    MEMORY.with_borrow_mut(|memory| memory.stats.peak_bytes = memory.stats.live_bytes);
}

/// Lets the cache of freed blocks that [`meta_stats`] counts be empty.
pub fn empty_meta_cache() {
    MEMORY.with_borrow_mut(|memory| {
        (memory.free, memory.cached) = ([0; CLASSES], 0);
        memory.stats.system_bytes = memory.stats.live_bytes;
    });
}

/// Counts a block without data that this thread took, or returned. A thread that is ending no longer counts.
pub(super) fn count_meta(class: usize, is_taken: bool) {
    let count = |memory: &RefCell<MetaMemory>| {
        let (memory, class) = (&mut *memory.borrow_mut(), class & !META);
        if is_taken { memory.take(class) } else { memory.give(class) }
    };
    let _ = MEMORY.try_with(count);
}

/// Counts memory that a kernel would take for a moment beside the blocks.
pub(crate) fn count_beside(bytes: usize) {
    MEMORY.with_borrow_mut(|memory| {
        let all = memory.stats.live_bytes + memory.cached + bytes as isize;
        memory.stats.system_bytes = memory.stats.system_bytes.max(all);
    });
}

#[cfg(test)]
mod tests {
    use super::super::block::class_of;
    use super::*;

    #[test]
    fn freed_blocks_are_taken_again() {
        let (small, large) = (class_of(1 << 20), class_of(4 << 20));
        let [a, b] = [small, large].map(|class| block_bytes(class) as isize);
        let mut memory = MetaMemory::NONE;
        let of = |memory: &MetaMemory| {
            (memory.stats.live_bytes, memory.stats.peak_bytes, memory.stats.system_bytes)
        };
        memory.take(small);
        memory.give(small);
        memory.take(large);
        assert_eq!(of(&memory), (b, b, a + b));
        memory.take(small);
        assert_eq!(of(&memory), (a + b, a + b, a + b));
        // Above the limit, blocks of other sizes leave.
        let many = cache_limit() / a as usize;
        memory.give(large);
        (0..many).for_each(|_| memory.take(small));
        (0..many).for_each(|_| memory.give(small));
        memory.take(large);
        assert!(memory.cached <= cache_limit().max((many + 1) * a as usize) as isize);
        assert!(memory.stats.system_bytes <= (many as isize + 1) * a + b);
    }
}
