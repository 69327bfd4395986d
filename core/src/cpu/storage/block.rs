//! Blocks of memory: a header followed by the data, in a limited number of size classes.

use std::alloc::{self, Layout};
use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize;

pub(super) const HEADER: usize = 64;
/// The bit of the size class of a block without data.
pub(super) const META: usize = 1 << (usize::BITS - 1);
const HUGE_PAGE: usize = 2 << 20;

/// The header of a block, before its data.
#[repr(C, align(64))]
pub(super) struct Header {
    pub(super) refs: AtomicUsize,
    pub(super) class: usize,
}

/// The number of size classes between a power of two and the next. With more of them less memory is wasted,
/// and a block serves fewer sizes again.
const STEPS: usize = 8;

/// The size class for `data` bytes. At most an eighth of a large block is unused. Data whose size is a power
/// of two, which is common, wastes nothing, because the header is added on top. A block of class `c` has
/// `block_bytes(c)` bytes in total.
pub(super) const fn class_of(data: usize) -> usize {
    let total = (if data < HEADER { HEADER } else { data }).next_multiple_of(HEADER);
    let exponent = (usize::BITS - 1 - (total - 1).leading_zeros()) as usize; // 2^e < total <= 2^(e+1)
    let step = (total - (1 << exponent)).div_ceil((1 << exponent) / STEPS); // from 1 to STEPS
    exponent * STEPS + step
}

pub(super) fn block_bytes(class: usize) -> usize {
    let class = class & !META;
    let (exponent, step) = ((class - 1) / STEPS, (class - 1) % STEPS + 1);
    ((1usize << exponent) + step * ((1usize << exponent) / STEPS)).next_multiple_of(HEADER) + HEADER
}

fn layout(class: usize) -> Layout {
    if class & META != 0 {
        return Layout::new::<Header>();
    }
    let bytes = block_bytes(class);
    let align = if bytes >= HUGE_PAGE { HUGE_PAGE } else { HEADER };
    // `Storage::allocate` rejects sizes so large that this would fail.
    Layout::from_size_align(bytes, align).expect("a size class is smaller than half the address space")
}

pub(super) const CLASSES: usize = usize::BITS as usize * STEPS;

/// Returns a block to the system.
///
/// # Safety
/// There are no references to the block.
pub(super) unsafe fn release(block: NonNull<Header>) {
    // SAFETY: the block came from `alloc` with the layout of its class.
    unsafe {
        let class = block.as_ref().class;
        alloc::dealloc(block.as_ptr().cast(), layout(class));
    }
}

/// Allocates a block with one reference from the system, if there is memory. Its data is uninitialized.
#[cold]
pub(super) fn allocate(class: usize) -> Option<NonNull<Header>> {
    let layout = layout(class);
    // SAFETY: the layout is not empty.
    let block = NonNull::new(unsafe { alloc::alloc(layout) })?;
    #[cfg(target_os = "linux")]
    if layout.size() >= HUGE_PAGE && !cfg!(miri) {
        // SAFETY: the range is ours and page-aligned; the advice does not change the content. If it is
        // refused, only speed is lost.
        unsafe { libc::madvise(block.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
    }
    let block = block.cast::<Header>();
    // SAFETY: the block is ours, aligned for the header and larger than it.
    unsafe { block.write(Header { refs: AtomicUsize::new(1), class }) };
    Some(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_they_are_asked_for() {
        for bytes in (0..5000).chain((1..40).flat_map(|e| [(1usize << e) - 1, 1 << e, (1 << e) + 1])) {
            let class = class_of(bytes);
            assert!(block_bytes(class) >= bytes + HEADER, "{bytes}");
            assert!(block_bytes(class) <= (bytes.max(64) + HEADER) * (STEPS + 1) / STEPS + HEADER, "{bytes}");
        }
        for exponent in 6..40 {
            assert_eq!(block_bytes(class_of(1 << exponent)), (1 << exponent) + HEADER);
        }
    }
}
