//! What tensors hold: counted by each thread for itself, and added up when asked for.

use super::cache::cached_bytes;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

/// The small blocks that one thread took, less those that it gave back: negative where others took them. The
/// thread alone writes, so that counting needs no locked instruction; past [`FLUSH`] the count moves to that
/// of all threads.
pub(super) struct Counts {
    blocks: AtomicIsize,
    bytes: AtomicIsize,
    in_use: AtomicBool,
}

/// How far the peak may be wrong for each thread, in bytes.
const FLUSH: isize = 64 << 10;

static COUNTS: Mutex<Vec<&'static Counts>> = Mutex::new(Vec::new());

impl Counts {
    /// The counts of a thread that has ended, which go on from where they stand, or new ones.
    #[cold]
    pub(super) fn register() -> &'static Counts {
        let mut all = COUNTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(idle) = all.iter().find(|counts| !counts.in_use.load(Ordering::Acquire)) {
            idle.in_use.store(true, Ordering::Relaxed);
            return idle;
        }
        // As many as threads that ran at once; they live as long as the program.
        let (blocks, bytes) = (AtomicIsize::new(0), AtomicIsize::new(0));
        let counts: &'static Counts =
            Box::leak(Box::new(Counts { blocks, bytes, in_use: AtomicBool::new(true) }));
        all.push(counts);
        counts
    }

    /// The thread has ended; another may count on.
    pub(super) fn retire(&self) {
        self.in_use.store(false, Ordering::Release);
    }

    /// Counts blocks that the thread took (positive) or gave back (negative).
    #[inline]
    pub(super) fn add(&self, blocks: isize, bytes: isize) {
        let blocks = self.blocks.load(Ordering::Relaxed) + blocks;
        let bytes = self.bytes.load(Ordering::Relaxed) + bytes;
        let flush = bytes.abs() > FLUSH;
        if flush {
            count_shared(blocks, bytes);
        }
        self.blocks.store(if flush { 0 } else { blocks }, Ordering::Relaxed);
        self.bytes.store(if flush { 0 } else { bytes }, Ordering::Relaxed);
    }
}

static LIVE_BYTES: AtomicIsize = AtomicIsize::new(0);
static LIVE_BLOCKS: AtomicIsize = AtomicIsize::new(0);
static PEAK_BYTES: AtomicIsize = AtomicIsize::new(0);

/// Counts blocks for all threads together.
pub(super) fn count_shared(blocks: isize, bytes: isize) {
    LIVE_BLOCKS.fetch_add(blocks, Ordering::Relaxed);
    let live = LIVE_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes;
    if live > PEAK_BYTES.load(Ordering::Relaxed) {
        PEAK_BYTES.fetch_max(live, Ordering::Relaxed);
    }
}

/// The bytes that tensors hold, but for what threads have not reported yet.
pub(super) fn live_bytes() -> usize {
    LIVE_BYTES.load(Ordering::Relaxed).max(0) as usize
}

/// What tensors of the whole process hold, in bytes of blocks (data, header and rounding).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStats {
    /// Blocks that tensors hold now.
    pub live_blocks: usize,
    /// Their bytes.
    pub live_bytes: usize,
    /// The largest `live_bytes` since the start or the last [`reset_peak`], to 64 KiB for each thread.
    pub peak_bytes: usize,
    /// Bytes kept for reuse by all threads together; what each thread keeps of small blocks (4 MiB at most)
    /// is not in it.
    pub cached_bytes: usize,
}

/// The blocks and bytes that tensors hold now.
fn live() -> (usize, usize) {
    let all = COUNTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let sum = |shared: &AtomicIsize, of: fn(&Counts) -> &AtomicIsize| {
        let own: isize = all.iter().map(|counts| of(counts).load(Ordering::Relaxed)).sum();
        // Other threads may count while we add up.
        (shared.load(Ordering::Relaxed) + own).max(0) as usize
    };
    (sum(&LIVE_BLOCKS, |counts| &counts.blocks), sum(&LIVE_BYTES, |counts| &counts.bytes))
}

/// The memory that tensors hold now.
pub fn stats() -> MemoryStats {
    let (live_blocks, live_bytes) = live();
    let peak_bytes = live_bytes.max(PEAK_BYTES.load(Ordering::Relaxed).max(0) as usize);
    MemoryStats { live_blocks, live_bytes, peak_bytes, cached_bytes: cached_bytes() }
}

/// Starts a new measurement of the peak at what is live now.
pub fn reset_peak() {
    PEAK_BYTES.store(live().1 as isize, Ordering::Relaxed);
}
