//! Shared, aligned, recycled memory.
//!
//! A [`Storage`] is a counted reference to one block: a header of 64 bytes (count, size class) and the data right behind it,
//! so that a small tensor costs one block and no other allocation. A block whose last reference goes is kept for the next
//! tensor of its size class: small blocks by the thread that freed them, large ones for all threads. Fresh pages cost more
//! than most ops that fill them (1.6 µs each on some virtual machines), so what a training step frees, the next step gets.
//! From 2 MiB on, blocks are aligned for huge pages and the kernel is asked for them.

use crate::error::{Error, ErrorKind, Result};
use std::alloc::{self, Layout};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering, fence};

const HEADER: usize = 64;
const HUGE_PAGE: usize = 2 << 20;
/// Blocks up to this size are kept by the thread that freed them.
const LOCAL_MAX: usize = 64 << 10;
/// Bytes that one thread keeps at most.
const LOCAL_BYTES: usize = 4 << 20;
/// Bytes that all threads together keep at least, before blocks are given back to the system.
const DEFAULT_CACHE: usize = 512 << 20;

#[repr(C, align(64))]
struct Header {
    refs: AtomicUsize,
    class: usize,
}

/// A counted reference to a block of memory, 64-byte aligned.
pub(crate) struct Storage(NonNull<Header>);

// SAFETY: the count is atomic, and the data is only written through a unique reference (`data_mut`).
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

/// Size classes: four to a power of two, so at most a quarter of a block is unused, and nothing where the data have a power of two of bytes, as they often do:
/// the header comes on top. A block of class `c` has `block_bytes(c)` bytes in all.
const fn class_of(data: usize) -> usize {
    let total = (if data < HEADER { HEADER } else { data }).next_multiple_of(HEADER);
    let exponent = (usize::BITS - 1 - (total - 1).leading_zeros()) as usize; // 2^e < total <= 2^(e+1)
    let quarter = (1usize << exponent) / 4;
    let step = (total - (1 << exponent)).div_ceil(quarter); // 1..=4
    exponent * 4 + step
}

fn block_bytes(class: usize) -> usize {
    let (exponent, step) = ((class - 1) / 4, (class - 1) % 4 + 1);
    ((1usize << exponent) + step * ((1usize << exponent) / 4)).next_multiple_of(HEADER) + HEADER
}

fn layout(class: usize) -> Layout {
    let bytes = block_bytes(class);
    let align = if bytes >= HUGE_PAGE { HUGE_PAGE } else { HEADER };
    // `allocate` refuses sizes near the end of the address space, for which this would fail.
    Layout::from_size_align(bytes, align).expect("a size class is smaller than half the address space")
}

const CLASSES: usize = usize::BITS as usize * 4;
const LOCAL_CLASSES: usize = class_of(LOCAL_MAX) + 1;

struct Local {
    free: [Vec<NonNull<Header>>; LOCAL_CLASSES],
    bytes: usize,
    counts: Option<&'static Counts>,
}

impl Local {
    /// Counts small blocks that tensors took (positive) or gave back (negative) on this thread.
    #[inline]
    fn count(&mut self, blocks: isize, bytes: isize) {
        self.counts.get_or_insert_with(Counts::register).add(blocks, bytes);
    }
}

impl Drop for Local {
    /// A thread that ends hands its blocks back to the system.
    fn drop(&mut self) {
        for block in self.free.iter_mut().flat_map(std::mem::take) {
            // SAFETY: blocks in a free list are referenced by nobody.
            unsafe { release(block) };
        }
        if let Some(counts) = self.counts {
            counts.in_use.store(false, Ordering::Release);
        }
    }
}

thread_local! {
    static LOCAL: RefCell<Local> = const {
        RefCell::new(Local { free: [const { Vec::new() }; LOCAL_CLASSES], bytes: 0, counts: None })
    };
}

/// The small blocks that one thread took, less those that it gave back: negative where others took them. The thread alone
/// writes, so that counting needs no locked instruction; past [`FLUSH`] the count moves to that of all threads.
struct Counts {
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
    fn register() -> &'static Counts {
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

    #[inline]
    fn add(&self, blocks: isize, bytes: isize) {
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

struct Shared {
    free: [Vec<NonNull<Header>>; CLASSES],
    bytes: usize,
}
// SAFETY: the blocks in the lists are referenced by nobody else, and the mutex hands each to one thread.
unsafe impl Send for Shared {}

static SHARED: Mutex<Shared> = Mutex::new(Shared { free: [const { Vec::new() }; CLASSES], bytes: 0 });

static LIVE_BYTES: AtomicIsize = AtomicIsize::new(0);
static LIVE_BLOCKS: AtomicIsize = AtomicIsize::new(0);
static PEAK_BYTES: AtomicIsize = AtomicIsize::new(0);
static CACHE_LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT_CACHE);

/// Counts blocks for all threads together.
fn count_shared(blocks: isize, bytes: isize) {
    LIVE_BLOCKS.fetch_add(blocks, Ordering::Relaxed);
    let live = LIVE_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes;
    if live > PEAK_BYTES.load(Ordering::Relaxed) {
        PEAK_BYTES.fetch_max(live, Ordering::Relaxed);
    }
}

/// Counts a block of `class` that was made (`blocks` 1) or that goes back to the system (-1).
fn count(class: usize, blocks: isize) {
    let bytes = blocks * block_bytes(class) as isize;
    let local =
        class < LOCAL_CLASSES && LOCAL.try_with(|local| local.borrow_mut().count(blocks, bytes)).is_ok();
    if !local {
        count_shared(blocks, bytes);
    }
}

fn shared() -> std::sync::MutexGuard<'static, Shared> {
    SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Gives a block back to the system.
///
/// # Safety
/// Nobody references the block.
unsafe fn release(block: NonNull<Header>) {
    // SAFETY: the block came from `alloc` with the layout of its class.
    unsafe {
        let class = block.as_ref().class;
        alloc::dealloc(block.as_ptr().cast(), layout(class));
    }
}

/// A kept block of this class, if there is one; it counts as live from now on.
#[inline]
fn recycled(class: usize) -> Option<NonNull<Header>> {
    let bytes = block_bytes(class);
    if class < LOCAL_CLASSES {
        // A thread that is ending has no cache any more.
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

/// Keeps a block for later, or gives it back to the system when enough is kept.
#[inline]
fn recycle(block: NonNull<Header>, class: usize) {
    let bytes = block_bytes(class);
    if class < LOCAL_CLASSES {
        let kept = LOCAL.try_with(|local| {
            let local = &mut *local.borrow_mut();
            let keep = local.bytes + bytes <= LOCAL_BYTES;
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
    // SAFETY: the caller held the last reference.
    unsafe { release(block) };
}

/// Keeps a large block if the limit allows.
fn keep_shared(block: NonNull<Header>, class: usize) -> bool {
    let limit = CACHE_LIMIT.load(Ordering::Relaxed);
    let live = LIVE_BYTES.load(Ordering::Relaxed).max(0) as usize;
    let bytes = block_bytes(class);
    let mut shared = shared();
    let keep = limit > 0 && shared.bytes + bytes <= limit.max(live);
    if keep {
        shared.free[class].push(block);
        shared.bytes += bytes;
    }
    keep
}

impl Storage {
    /// Room for `bytes` bytes, of which nothing is known yet.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[inline]
    #[track_caller]
    pub(crate) fn uninit(op: &'static str, bytes: usize) -> Result<Storage> {
        Storage::allocate(op, bytes, false)
    }

    /// `bytes` bytes of zeros.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub(crate) fn zeroed(op: &'static str, bytes: usize) -> Result<Storage> {
        Storage::allocate(op, bytes, true)
    }

    #[inline]
    #[track_caller]
    fn allocate(op: &'static str, bytes: usize, zeroed: bool) -> Result<Storage> {
        if bytes > isize::MAX as usize / 4 {
            return Err(out_of_memory(op, bytes));
        }
        let class = class_of(bytes);
        let block = match recycled(class) {
            Some(block) => {
                if zeroed {
                    // SAFETY: the block has room for its class, which holds `bytes`.
                    unsafe { block.as_ptr().cast::<u8>().add(HEADER).write_bytes(0, bytes) };
                }
                // SAFETY: a kept block is referenced by nobody.
                unsafe { block.as_ref() }.refs.store(1, Ordering::Relaxed);
                block
            }
            None => match fresh(class, zeroed) {
                Some(block) => block,
                None => return Err(out_of_memory(op, bytes)),
            },
        };
        Ok(Storage(block))
    }

    /// The data.
    #[inline]
    pub(crate) fn data(&self) -> *const u8 {
        // SAFETY: the data stands right behind the header, in the same allocation.
        unsafe { self.0.as_ptr().cast::<u8>().add(HEADER) }
    }

    /// The data, to be written.
    #[inline]
    pub(crate) fn data_mut(&mut self) -> *mut u8 {
        debug_assert!(self.is_unique());
        self.data().cast_mut()
    }

    /// Is this the only reference, so that writing is seen by nobody else?
    #[inline]
    pub(crate) fn is_unique(&self) -> bool {
        self.header().refs.load(Ordering::Acquire) == 1
    }

    /// The number of references.
    pub(crate) fn references(&self) -> usize {
        self.header().refs.load(Ordering::Relaxed)
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: a block lives as long as a reference to it.
        unsafe { self.0.as_ref() }
    }
}

/// A block from the system, counted as live; if there is none, all kept blocks go back first.
#[cold]
fn fresh(class: usize, zeroed: bool) -> Option<NonNull<Header>> {
    let layout = layout(class);
    let allocate = || {
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { if zeroed { alloc::alloc_zeroed(layout) } else { alloc::alloc(layout) } })
    };
    let block = allocate().or_else(|| {
        empty_cache();
        allocate()
    })?;
    #[cfg(target_os = "linux")]
    if layout.size() >= HUGE_PAGE && !cfg!(miri) {
        // SAFETY: the range is ours and page-aligned; the advice changes no content. A refusal costs speed only.
        unsafe { libc::madvise(block.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
    }
    let block = block.cast::<Header>();
    // SAFETY: the block is ours, aligned for the header and larger than it.
    unsafe { block.write(Header { refs: AtomicUsize::new(1), class }) };
    count(class, 1);
    Some(block)
}

#[cold]
#[track_caller]
fn out_of_memory(op: &'static str, bytes: usize) -> Error {
    Error::new(ErrorKind::OutOfMemory, op, format!("{bytes} bytes of memory cannot be had"))
}

impl Clone for Storage {
    #[inline]
    fn clone(&self) -> Storage {
        // As in `Arc`: a new reference is made from one that lives, so nothing need be ordered.
        self.header().refs.fetch_add(1, Ordering::Relaxed);
        Storage(self.0)
    }
}

impl Drop for Storage {
    #[inline]
    fn drop(&mut self) {
        let header = self.header();
        let class = header.class;
        // A count of one is this reference, of which nobody can make another now: no locked instruction is needed then.
        if header.refs.load(Ordering::Acquire) != 1 {
            if header.refs.fetch_sub(1, Ordering::Release) != 1 {
                return;
            }
            // All uses by other references happened before their decrement; see them before the block is reused.
            fence(Ordering::Acquire);
        }
        recycle(self.0, class);
    }
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
    /// Bytes kept for reuse by all threads together; what each thread keeps of small blocks (4 MiB at most) is not in it.
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
    MemoryStats { live_blocks, live_bytes, peak_bytes, cached_bytes: shared().bytes }
}

/// Starts a new measurement of the peak at what is live now.
pub fn reset_peak() {
    PEAK_BYTES.store(live().1 as isize, Ordering::Relaxed);
}

/// Gives all kept blocks back to the system, but for the small ones that other threads keep.
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
        // SAFETY: kept blocks are referenced by nobody.
        unsafe { release(block) };
    }
}

/// How many bytes are kept for reuse before blocks go back to the system: 512 MiB unless set, and always as much as is live.
/// With 0 nothing large is kept.
pub fn set_cache_limit(bytes: usize) {
    CACHE_LIMIT.store(bytes, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_they_are_asked_for() {
        for bytes in (0..5000).chain((1..40).flat_map(|e| [(1usize << e) - 1, 1 << e, (1 << e) + 1])) {
            let class = class_of(bytes);
            assert!(block_bytes(class) >= bytes + HEADER, "{bytes}");
            assert!(block_bytes(class) <= (bytes.max(64) + HEADER) * 5 / 4 + HEADER, "{bytes}");
        }
        for exponent in 6..40 {
            assert_eq!(block_bytes(class_of(1 << exponent)), (1 << exponent) + HEADER);
        }
    }

    #[test]
    fn the_last_reference_frees() {
        let a = Storage::uninit("test", 1000).unwrap();
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
            let mut a = Storage::uninit("test", bytes).unwrap();
            // SAFETY: the block has room for `bytes` and is ours alone.
            unsafe { a.data_mut().write_bytes(7, bytes) };
            drop(a);
            let b = Storage::zeroed("test", bytes).unwrap();
            // SAFETY: all `bytes` were written.
            let data = unsafe { std::slice::from_raw_parts(b.data(), bytes) };
            assert!(data.iter().all(|v| *v == 0));
        }
    }

    #[test]
    fn blocks_travel_between_threads() {
        let blocks: Vec<Storage> = (0..100).map(|i| Storage::zeroed("test", i * 1000).unwrap()).collect();
        std::thread::spawn(move || drop(blocks)).join().unwrap();
        assert!(Storage::uninit("test", 50_000).unwrap().is_unique());
    }

    #[test]
    fn what_is_live_is_counted_over_all_threads() {
        // Other tests run meanwhile, so only what stays far above their sizes can be compared.
        const BYTES: usize = 1 << 28;
        let before = stats().live_bytes;
        let blocks: Vec<Storage> =
            (0..BYTES >> 15).map(|_| Storage::uninit("test", 32 << 10).unwrap()).collect();
        assert!(stats().live_bytes > before + BYTES / 2);
        std::thread::spawn(move || drop(blocks)).join().unwrap();
        assert!(stats().live_bytes < before + BYTES / 2);
        assert!(stats().peak_bytes > before + BYTES / 2);
    }

    #[test]
    fn too_much_is_an_error() {
        let error = Storage::zeroed("zeros", 1 << 61).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        assert!(Storage::uninit("zeros", usize::MAX).is_err());
    }
}
