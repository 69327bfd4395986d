//! Blocks of memory: a header and the data right behind it, in sizes of a few classes.

use std::alloc::{self, Layout};
use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize;

pub(super) const HEADER: usize = 64;
const HUGE_PAGE: usize = 2 << 20;

/// What is in front of the data of a block.
#[repr(C, align(64))]
pub(super) struct Header {
    pub(super) refs: AtomicUsize,
    pub(super) class: usize,
}

/// Size classes: four to a power of two, so that at most a quarter of a block is unused, and nothing where
/// the data have a power of two of bytes, as they often do: the header comes on top. A block of class `c` has
/// `block_bytes(c)` bytes in all.
pub(super) const fn class_of(data: usize) -> usize {
    let total = (if data < HEADER { HEADER } else { data }).next_multiple_of(HEADER);
    let exponent = (usize::BITS - 1 - (total - 1).leading_zeros()) as usize; // 2^e < total <= 2^(e+1)
    let quarter = (1usize << exponent) / 4;
    let step = (total - (1 << exponent)).div_ceil(quarter); // 1..=4
    exponent * 4 + step
}

pub(super) fn block_bytes(class: usize) -> usize {
    let (exponent, step) = ((class - 1) / 4, (class - 1) % 4 + 1);
    ((1usize << exponent) + step * ((1usize << exponent) / 4)).next_multiple_of(HEADER) + HEADER
}

fn layout(class: usize) -> Layout {
    let bytes = block_bytes(class);
    let align = if bytes >= HUGE_PAGE { HUGE_PAGE } else { HEADER };
    // `Storage::allocate` refuses sizes near the end of the address space, for which this would fail.
    Layout::from_size_align(bytes, align).expect("a size class is smaller than half the address space")
}

pub(super) const CLASSES: usize = usize::BITS as usize * 4;

/// Gives a block back to the system.
///
/// # Safety
/// Nobody references the block.
pub(super) unsafe fn release(block: NonNull<Header>) {
    // SAFETY: the block came from `alloc` with the layout of its class.
    unsafe {
        let class = block.as_ref().class;
        alloc::dealloc(block.as_ptr().cast(), layout(class));
    }
}

/// Is there an assembly block that stands for a write to fresh memory?
const SETTLES: bool = cfg!(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)));

/// A block from the system with one reference, if there is memory. Its data are bytes of any value, zeros if
/// `zeroed`.
#[cold]
pub(super) fn allocate(class: usize, zeroed: bool) -> Option<NonNull<Header>> {
    let layout = layout(class);
    let zeroed = zeroed || !SETTLES;
    // SAFETY: the layout is not empty.
    let block =
        NonNull::new(unsafe { if zeroed { alloc::alloc_zeroed(layout) } else { alloc::alloc(layout) } })?;
    #[cfg(target_os = "linux")]
    if layout.size() >= HUGE_PAGE && !cfg!(miri) {
        // SAFETY: the range is ours and page-aligned; the advice changes no content. A refusal costs speed
        // only.
        unsafe { libc::madvise(block.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
    }
    settle(block);
    let block = block.cast::<Header>();
    // SAFETY: the block is ours, aligned for the header and larger than it.
    unsafe { block.write(Header { refs: AtomicUsize::new(1), class }) };
    Some(block)
}

/// Reading uninitialized memory is undefined behavior, although it holds some bytes. To the compiler this
/// assembly block, which is empty, has written all that the pointer reaches, so that the bytes that are there
/// can be read as numbers.
#[inline]
fn settle(block: NonNull<u8>) {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    // SAFETY: it does nothing.
    unsafe {
        std::arch::asm!("/* {0} */", in(reg) block.as_ptr(), options(nostack, preserves_flags));
    }
    let _ = block;
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
}
