//! Memory that a thread keeps between products.

use crate::callback::CallbackMut;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::thread::LocalKey;

/// A cache line, the unit and the alignment of buffers. The widest vector has the same size.
#[repr(align(64))]
pub(crate) struct CacheLine(#[expect(dead_code, reason = "gives the size")] [u8; 64]);

/// Memory that a thread keeps between calls.
pub(crate) type PanelBuffer = Cell<Vec<MaybeUninit<CacheLine>>>;

thread_local! {
    /// Packed parts of A and B.
    pub(super) static PANELS: PanelBuffer = const { Cell::new(Vec::new()) };
    /// Sums that cannot be formed in C.
    pub(super) static SUMS: PanelBuffer = const { Cell::new(Vec::new()) };
}

/// Calls `f` with uninitialized memory for `bytes` bytes from the thread's `buffer`.
///
/// The buffer is taken while `f` runs, so a nested call would allocate its own memory.
#[inline(always)]
pub(crate) fn with_buffer(buffer: &'static LocalKey<PanelBuffer>, bytes: usize, f: &mut impl FnMut(*mut u8)) {
    with_buffer_of(buffer, bytes, f);
}

/// [`with_buffer`], which is compiled once.
fn with_buffer_of(buffer: &'static LocalKey<PanelBuffer>, bytes: usize, f: &mut dyn CallbackMut<*mut u8>) {
    let lines = bytes.div_ceil(size_of::<CacheLine>());
    let mut memory = buffer.take();
    if memory.capacity() < lines {
        memory = Vec::with_capacity(lines);
    }
    f.call_with(memory.as_mut_ptr().cast());
    buffer.set(memory);
}
