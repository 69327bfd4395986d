//! Statistics of the memory of tensors. Each thread counts for itself; the counts are added up on request.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering};

/// The small blocks that a thread took, minus those that it returned, which can be negative if other threads
/// took them. Only the thread writes the count, so counting needs no locked instruction. Above [`FLUSH`], the
/// count is moved to the shared count.
#[repr(align(128))] // no thread writes to the cache line of another, or to the next one, which is loaded with it
pub(super) struct Counts {
    blocks: AtomicIsize,
    bytes: AtomicIsize,
    /// The bytes of all blocks that the thread took, without those that were moved to the shared count.
    allocated: AtomicU64,
    in_use: AtomicBool,
}

/// The possible error of the peak for each thread, in bytes.
const FLUSH: isize = 64 << 10;

static COUNTS: Mutex<Vec<&'static Counts>> = Mutex::new(Vec::new());

impl Counts {
    /// The counters of a thread that has ended, with their current values, or new ones.
    #[cold]
    pub(super) fn register() -> &'static Counts {
        let mut all = COUNTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(idle) = all.iter().find(|counts| !counts.in_use.load(Ordering::Acquire)) {
            idle.in_use.store(true, Ordering::Relaxed);
            return idle;
        }
        // As many as threads ever ran at once; they live as long as the program.
        let (blocks, bytes, allocated) = (AtomicIsize::new(0), AtomicIsize::new(0), AtomicU64::new(0));
        let counts: &'static Counts =
            Box::leak(Box::new(Counts { blocks, bytes, allocated, in_use: AtomicBool::new(true) }));
        all.push(counts);
        counts
    }

    /// Marks the thread as ended, so that another thread can use its counters.
    pub(super) fn retire(&self) {
        self.in_use.store(false, Ordering::Release);
    }

    /// Counts blocks that the thread took (positive) or returned (negative).
    #[inline]
    pub(super) fn add(&self, blocks: isize, bytes: isize) {
        if blocks > 0 {
            let allocated = self.allocated.load(Ordering::Relaxed) + bytes as u64;
            self.allocated.store(allocated, Ordering::Relaxed);
        }
        let blocks = self.blocks.load(Ordering::Relaxed) + blocks;
        let bytes = self.bytes.load(Ordering::Relaxed) + bytes;
        let flush = bytes.abs() > FLUSH;
        if flush {
            move_to_shared(blocks, bytes);
        }
        self.blocks.store(if flush { 0 } else { blocks }, Ordering::Relaxed);
        self.bytes.store(if flush { 0 } else { bytes }, Ordering::Relaxed);
    }
}

static LIVE_BYTES: AtomicIsize = AtomicIsize::new(0);
static LIVE_BLOCKS: AtomicIsize = AtomicIsize::new(0);
static PEAK_BYTES: AtomicIsize = AtomicIsize::new(0);
static ALLOCATED: AtomicU64 = AtomicU64::new(0);

/// Counts blocks for all threads together: taken (positive) or returned (negative).
pub(super) fn count_shared(blocks: isize, bytes: isize) {
    if blocks > 0 {
        ALLOCATED.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    move_to_shared(blocks, bytes);
}

fn move_to_shared(blocks: isize, bytes: isize) {
    LIVE_BLOCKS.fetch_add(blocks, Ordering::Relaxed);
    let live = LIVE_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes;
    if live > PEAK_BYTES.load(Ordering::Relaxed) {
        PEAK_BYTES.fetch_max(live, Ordering::Relaxed);
    }
}

/// The bytes that tensors use, except those that threads have not reported yet.
pub(super) fn live_bytes() -> usize {
    LIVE_BYTES.load(Ordering::Relaxed).max(0) as usize
}

/// The blocks and bytes that tensors use now.
pub(super) fn live() -> (usize, usize) {
    let all = COUNTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let sum = |shared: &AtomicIsize, of: fn(&Counts) -> &AtomicIsize| {
        let own: isize = all.iter().map(|counts| of(counts).load(Ordering::Relaxed)).sum();
        // Other threads may count in the meantime.
        (shared.load(Ordering::Relaxed) + own).max(0) as usize
    };
    (sum(&LIVE_BLOCKS, |counts| &counts.blocks), sum(&LIVE_BYTES, |counts| &counts.bytes))
}

/// The bytes of all blocks that tensors took since the start of the program, on all threads, whether they are
/// in use or not. The difference of two calls is what was allocated between them.
///
/// ```
/// use namegrad_core::{NamedTensor, memory};
/// let before = memory::allocated_bytes();
/// for _ in 0..3 {
///     NamedTensor::zeros([1000])?; // is freed at once
/// }
/// assert!(memory::allocated_bytes() - before >= 3 * 4000);
/// # Ok::<(), namegrad_core::Error>(())
/// ```
pub fn allocated_bytes() -> u64 {
    let all = COUNTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let own: u64 = all.iter().map(|counts| counts.allocated.load(Ordering::Relaxed)).sum();
    ALLOCATED.load(Ordering::Relaxed) + own
}

/// The largest number of bytes in use so far, of which `live` are in use now.
pub(super) fn peak(live: usize) -> usize {
    live.max(PEAK_BYTES.load(Ordering::Relaxed).max(0) as usize)
}

/// Resets the peak to the memory that tensors use now.
pub fn reset_peak() {
    PEAK_BYTES.store(live().1 as isize, Ordering::Relaxed);
}
