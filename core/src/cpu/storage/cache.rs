//! Caches of freed blocks, kept for the next tensor of the same size class. Small blocks stay with the thread
//! that freed them; large blocks are shared by all threads.

use super::block::{CLASSES, Header, allocate, block_bytes, class_of, release};
use super::stats::{Counts, count_shared, live_bytes};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Blocks up to this size, in bytes, stay with the thread that freed them.
const LOCAL_MAX: usize = 64 << 10;
/// The maximum number of bytes in the cache of a thread.
const LOCAL_BYTES: usize = 4 << 20;
/// The default limit of the shared cache, in bytes, before blocks are returned to the system.
const DEFAULT_CACHE: usize = 512 << 20;

const LOCAL_CLASSES: usize = class_of(LOCAL_MAX) + 1;

/// Whether blocks are cached at all. `.ci/sanitize` turns it off, because AddressSanitizer detects the use of
/// a freed block only if the block is returned to the system.
const KEEPS: bool = !cfg!(namegrad_sanitize);

static CACHE_LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT_CACHE);

struct Local {
    free: [Vec<NonNull<Header>>; LOCAL_CLASSES],
    bytes: usize,
    counts: Option<&'static Counts>,
}

impl Local {
    /// Counts small blocks that tensors took (positive) or returned (negative) on this thread.
    #[inline]
    fn count(&mut self, blocks: isize, bytes: isize) {
        self.counts.get_or_insert_with(Counts::register).add(blocks, bytes);
    }
}

impl Drop for Local {
    /// Returns the blocks of a thread to the system when the thread ends.
    fn drop(&mut self) {
        for block in self.free.iter_mut().flat_map(std::mem::take) {
            // SAFETY: there are no references to blocks in a free list.
            unsafe { release(block) };
        }
        if let Some(counts) = self.counts {
            counts.retire();
        }
    }
}

thread_local! {
    static LOCAL: RefCell<Local> = const {
        RefCell::new(Local { free: [const { Vec::new() }; LOCAL_CLASSES], bytes: 0, counts: None })
    };
}

struct SharedCache {
    free: [Vec<NonNull<Header>>; CLASSES],
    bytes: usize,
}

impl SharedCache {
    /// Whether a block is kept, and the blocks that leave: if it would exceed the limit, those of other sizes
    /// make room, which a program may no longer use, from the size with the most bytes on.
    fn keep(&mut self, block: NonNull<Header>, class: usize, limit: usize) -> (bool, Vec<NonNull<Header>>) {
        let (bytes, mut others) = (block_bytes(class), Vec::new());
        while self.bytes + bytes > limit {
            let of = |other: &usize| self.free[*other].len() * block_bytes(*other);
            let others_of_size = (LOCAL_CLASSES..CLASSES).filter(|other| *other != class && of(other) > 0);
            let Some(other) = others_of_size.max_by_key(of).filter(|_| bytes <= limit) else {
                return (false, others);
            };
            others.extend(self.free[other].pop());
            self.bytes -= block_bytes(other);
        }
        self.free[class].push(block);
        self.bytes += bytes;
        (true, others)
    }
}

// SAFETY: there are no other references to blocks in the lists, and the mutex gives each block to one thread.
unsafe impl Send for SharedCache {}

static SHARED: Mutex<SharedCache> =
    Mutex::new(SharedCache { free: [const { Vec::new() }; CLASSES], bytes: 0 });

fn shared() -> MutexGuard<'static, SharedCache> {
    SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Counts a block of `class` that was allocated (`blocks` 1) or returned to the system (-1).
fn count(class: usize, blocks: isize) {
    let bytes = blocks * block_bytes(class) as isize;
    let local =
        class < LOCAL_CLASSES && LOCAL.try_with(|local| local.borrow_mut().count(blocks, bytes)).is_ok();
    if !local {
        count_shared(blocks, bytes);
    }
}

/// Takes a block of this class from the cache, if there is one, and counts it as live.
#[inline]
pub(super) fn recycled(class: usize) -> Option<NonNull<Header>> {
    let bytes = block_bytes(class);
    if class < LOCAL_CLASSES {
        // A thread that is ending no longer has a cache.
        let block = LOCAL.try_with(|local| {
            let local = &mut *local.borrow_mut();
            let block = local.free[class].pop()?;
            local.bytes -= bytes;
            local.count(1, bytes as isize);
            Some(block)
        });
        return block.ok().flatten();
    }
    let block = {
        let mut shared = shared();
        let block = shared.free[class].pop()?;
        shared.bytes -= bytes;
        block
    };
    count_shared(1, bytes as isize);
    Some(block)
}

/// Caches a block, or returns it to the system if the cache is full.
///
/// # Safety
/// There are no references to the block, and it has this class.
#[inline]
pub(super) unsafe fn recycle(block: NonNull<Header>, class: usize) {
    let bytes = block_bytes(class);
    if class < LOCAL_CLASSES {
        let kept = LOCAL.try_with(|local| {
            let local = &mut *local.borrow_mut();
            let keep = KEEPS && local.bytes + bytes <= LOCAL_BYTES;
            if keep {
                local.free[class].push(block);
                local.bytes += bytes;
                local.count(-1, -(bytes as isize));
            }
            keep
        });
        if kept.unwrap_or(false) {
            return;
        }
    } else if keep_shared(block, class) {
        return count_shared(-1, -(bytes as isize));
    }
    count(class, -1);
    // SAFETY: the caller's contract.
    unsafe { release(block) };
}

/// Caches a large block if the limit allows it.
fn keep_shared(block: NonNull<Header>, class: usize) -> bool {
    let limit = cache_limit();
    if !KEEPS || limit == 0 {
        return false;
    }
    let (kept, others) = shared().keep(block, class, limit.max(live_bytes()));
    for block in others {
        // SAFETY: the block was in the cache, so there are no references to it.
        unsafe { release(block) };
    }
    kept
}

/// Allocates a block from the system and counts it as live. If memory is short, returns all cached blocks
/// first.
#[cold]
pub(super) fn fresh(class: usize) -> Option<NonNull<Header>> {
    let block = allocate(class).or_else(|| {
        empty_cache();
        allocate(class)
    })?;
    count(class, 1);
    Some(block)
}

/// The number of bytes in the shared cache.
pub(super) fn cached_bytes() -> usize {
    shared().bytes
}

/// Returns all cached blocks to the system, except small blocks in the caches of other threads.
pub fn empty_cache() {
    let lists = {
        let mut shared = shared();
        shared.bytes = 0;
        std::mem::replace(&mut shared.free, [const { Vec::new() }; CLASSES])
    };
    let local = LOCAL.try_with(|local| {
        let local = &mut *local.borrow_mut();
        local.bytes = 0;
        std::mem::replace(&mut local.free, [const { Vec::new() }; LOCAL_CLASSES])
    });
    for block in lists.into_iter().flatten().chain(local.into_iter().flatten().flatten()) {
        // SAFETY: there are no references to cached blocks.
        unsafe { release(block) };
    }
}

/// How many bytes are kept for reuse.
pub(super) fn cache_limit() -> usize {
    CACHE_LIMIT.load(Ordering::Relaxed)
}

/// Sets how many bytes are kept for reuse before blocks are returned to the system. The default is 512 MiB;
/// the cache can always hold as many bytes as tensors use. With 0, no large block is kept.
pub fn set_cache_limit(bytes: usize) {
    CACHE_LIMIT.store(bytes, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_other_sizes_make_room() {
        let [small, large, huge] = [1 << 20, 4 << 20, 16 << 20].map(class_of);
        let mut cache = SharedCache { free: [const { Vec::new() }; CLASSES], bytes: 0 };
        let limit = 2 * block_bytes(small) + block_bytes(large);
        let mut keep = |class: usize| {
            let block = allocate(class).unwrap();
            let (kept, others) = cache.keep(block, class, limit);
            // SAFETY: blocks that are not in the cache, without references.
            let left: Vec<usize> = others.iter().map(|block| unsafe { block.as_ref() }.class).collect();
            // SAFETY: as above.
            others.into_iter().chain((!kept).then_some(block)).for_each(|block| unsafe { release(block) });
            (kept, left)
        };
        for class in [small, small, large] {
            assert_eq!(keep(class), (true, vec![]));
        }
        assert_eq!(keep(small), (true, vec![large]), "the largest part leaves first");
        assert_eq!(keep(large), (true, vec![small]));
        assert_eq!(keep(huge), (false, vec![]), "a block above the limit");
        assert_eq!(keep(small), (true, vec![large]), "a size makes no room for itself");
        assert_eq!(cache.bytes, 3 * block_bytes(small));
        // SAFETY: blocks of the cache, without references.
        cache.free.into_iter().flatten().for_each(|block| unsafe { release(block) });
    }
}
