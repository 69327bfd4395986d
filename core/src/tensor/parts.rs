//! The parts of a tensor, and [`PartsBox`], the pointer to them that a tensor is.
//!
//! Every op returns a tensor or an error, and most functions of a model return tensors: with one word, they are
//! moved in registers, and the code that moves and drops them is short. The memory of the parts is recycled by
//! each thread, because a call of the system's allocator would take as long as an op on a few numbers.

use crate::cpu::storage::Storage;
use crate::dtype::DType;
use crate::layout::Layout;
use crate::names::Names;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

#[derive(Clone)]
pub(super) struct Parts {
    pub(super) storage: Storage,
    pub(super) layout: Layout,
    pub(super) names: Names,
    pub(super) offset: usize,
    pub(super) dtype: DType,
    pub(super) is_number: bool,
}

/// An owning pointer, as [`Box`], whose memory comes from a list of the thread.
pub(super) struct PartsBox(NonNull<Parts>);

// SAFETY: the pointer is the only one to its parts, so it may go where they may.
unsafe impl Send for PartsBox where Parts: Send {}
// SAFETY: as above.
unsafe impl Sync for PartsBox where Parts: Sync {}

impl PartsBox {
    /// A box of what `parts` returns. There is a place for it before, so that it need not be moved there: a
    /// word whose bytes were written one by one cannot be read before they have reached the cache.
    #[inline]
    pub(super) fn new(parts: impl FnOnce() -> Parts) -> PartsBox {
        let place = Slot::take();
        // SAFETY: the slot has room for the parts, and nothing else refers to it. If there is a panic, it leaks.
        unsafe { place.write(parts()) };
        PartsBox(place)
    }
}

impl Deref for PartsBox {
    type Target = Parts;

    #[inline]
    fn deref(&self) -> &Parts {
        // SAFETY: the parts live as long as their owner.
        unsafe { self.0.as_ref() }
    }
}

impl DerefMut for PartsBox {
    #[inline]
    fn deref_mut(&mut self) -> &mut Parts {
        // SAFETY: as in `deref`; this is the only pointer.
        unsafe { self.0.as_mut() }
    }
}

impl Clone for PartsBox {
    #[inline]
    fn clone(&self) -> PartsBox {
        PartsBox::new(|| (**self).clone())
    }
}

/// Tensors are dropped everywhere, so this is compiled once.
impl Drop for PartsBox {
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: this is the only pointer, and nothing uses it afterwards.
        unsafe {
            self.0.drop_in_place();
            Slot::give(self.0);
        }
    }
}

/// Memory for the parts of one tensor; while it is free, the link of a list.
union Slot {
    next: Option<NonNull<Slot>>,
    _parts: std::mem::ManuallyDrop<MaybeUninit<Parts>>,
}

/// The free slots of a thread.
struct Free {
    first: Cell<Option<NonNull<Slot>>>,
    count: Cell<usize>,
}

/// The largest number of slots in the list of a thread: as many as the tensors of a large step, or 128 KiB.
const MOST: usize = if cfg!(namegrad_sanitize) { 0 } else { 1024 };

thread_local! {
    static FREE: Free = const { Free { first: Cell::new(None), count: Cell::new(0) } };
}

impl Slot {
    /// A slot whose content is undefined.
    #[inline]
    fn take() -> NonNull<Parts> {
        // A thread that is ending no longer has a list.
        let slot = FREE.try_with(Free::pop).ok().flatten();
        slot.unwrap_or_else(Slot::allocated).cast()
    }

    #[cold]
    #[inline(never)]
    fn allocated() -> NonNull<Slot> {
        NonNull::from(Box::leak(Box::new(Slot { next: None })))
    }

    /// Takes a slot back.
    ///
    /// # Safety
    /// The slot comes from `take`, and neither it nor its parts are used afterwards.
    #[inline]
    unsafe fn give(place: NonNull<Parts>) {
        let slot = place.cast::<Slot>();
        // SAFETY: the caller's contract.
        if !FREE.try_with(|free| unsafe { free.push(slot) }).unwrap_or(false) {
            // SAFETY: the slot was leaked from a `Box`.
            drop(unsafe { Box::from_raw(slot.as_ptr()) });
        }
    }
}

impl Free {
    #[inline]
    fn pop(&self) -> Option<NonNull<Slot>> {
        let slot = self.first.get()?;
        // SAFETY: a slot of the list is ours, and `next` was written when it came.
        self.first.set(unsafe { slot.as_ref().next });
        self.count.set(self.count.get() - 1);
        Some(slot)
    }

    /// Keeps the slot unless the list is full; returns whether it did.
    ///
    /// # Safety
    /// Nothing else refers to the slot.
    #[inline]
    unsafe fn push(&self, slot: NonNull<Slot>) -> bool {
        let count = self.count.get();
        if count >= MOST {
            return false;
        }
        // SAFETY: the caller's contract.
        unsafe { slot.write(Slot { next: self.first.get() }) };
        self.first.set(Some(slot));
        self.count.set(count + 1);
        true
    }
}

impl Drop for Free {
    fn drop(&mut self) {
        while let Some(slot) = self.pop() {
            // SAFETY: the slot was leaked from a `Box`.
            drop(unsafe { Box::from_raw(slot.as_ptr()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::NamedTensor;

    #[test]
    fn tensors_outlive_the_threads_that_made_them() {
        let make = || (0..3000).map(|i| NamedTensor::number(i).unwrap()).collect::<Vec<_>>();
        let tensors = std::thread::spawn(make).join().unwrap();
        std::thread::spawn(move || {
            assert!(tensors.iter().enumerate().all(|(i, x)| x.to_vec::<i64>().unwrap() == [i as i64]));
            let half: Vec<_> = tensors.iter().step_by(2).cloned().collect();
            drop(tensors);
            assert_eq!(half[1000].to_vec::<i64>().unwrap(), [2000]);
        })
        .join()
        .unwrap();
    }
}
