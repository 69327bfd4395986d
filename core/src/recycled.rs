//! [`Recycled`], the pointer that a tensor is, to its parts.
//!
//! Every op returns a tensor or an error, and most functions of a model return tensors: one word is returned
//! in a register, and the code that moves and drops it is short. The memory of the parts is recycled by each
//! thread, because a call of the system's allocator would take as long as an op on a few numbers.

use std::cell::Cell;
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::thread::LocalKey;

/// A type of values behind a [`Recycled`].
pub trait Recycle: Sized + 'static {
    /// Whether dropping a value may run code of users, which may panic.
    const MAY_PANIC: bool;

    /// The free memory of this thread for values of this type alone.
    fn free() -> &'static LocalKey<FreeList<Self>>;
}

/// An owning pointer, as [`Box`], whose memory comes from a list of the thread.
pub struct Recycled<T: Recycle>(NonNull<T>);

// SAFETY: the pointer is the only one to its value, so it may go where that may.
unsafe impl<T: Recycle + Send> Send for Recycled<T> {}
// SAFETY: as above.
unsafe impl<T: Recycle + Sync> Sync for Recycled<T> {}

impl<T: Recycle> Recycled<T> {
    /// A box of the value that `value` returns. There is a place for it before, so that it need not be moved
    /// there: a word whose bytes were written one by one cannot be read before they have reached the cache.
    #[inline]
    pub fn new(value: impl FnOnce() -> T) -> Recycled<T> {
        let place = take::<T>();
        // SAFETY: there is room for the value, and nothing else refers to it. If there is a panic, it leaks.
        unsafe { place.write(value()) };
        Recycled(place)
    }

    /// The same as a call, for the many places that need not be the fastest.
    #[inline(always)]
    pub fn of(value: T) -> Recycled<T> {
        let value = ManuallyDrop::new(value);
        // SAFETY: the value is not used afterwards.
        Recycled(unsafe { moved::<T>(NonNull::from(&value).cast()) }.cast())
    }

    /// The value.
    #[inline]
    pub fn into_inner(self) -> T {
        let place = ManuallyDrop::new(self).0;
        // SAFETY: this was the only pointer; the value moves out before its memory is given back.
        unsafe {
            let value = place.read();
            give(place);
            value
        }
    }
}

impl<T: Recycle> Deref for Recycled<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value lives as long as its owner.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Recycle> DerefMut for Recycled<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; this is the only pointer.
        unsafe { self.0.as_mut() }
    }
}

impl<T: Recycle + Clone> Clone for Recycled<T> {
    #[inline(always)]
    fn clone(&self) -> Recycled<T> {
        // SAFETY: this is such a value, and the result is a value of its own.
        Recycled(unsafe { cloned::<T>(self.0.cast()) }.cast())
    }
}

/// A place that the value at `from` has moved to. It is a function of C as [`cloned`] is.
///
/// # Safety
/// There is a `T` at `from`, which is not used afterwards.
#[inline(never)]
unsafe extern "C" fn moved<T: Recycle>(from: NonNull<u8>) -> NonNull<u8> {
    // SAFETY: the caller's contract.
    ManuallyDrop::new(Recycled::new(|| unsafe { from.cast::<T>().read() })).0.cast()
}

/// The place of a clone of the value at `place`. Tensors are cloned and dropped everywhere, so both are
/// compiled once; and as a function of C does not unwind, callers have no code for that.
///
/// # Safety
/// There is a `T` at `place`.
#[inline(never)]
unsafe extern "C" fn cloned<T: Recycle + Clone>(place: NonNull<u8>) -> NonNull<u8> {
    // SAFETY: the caller's contract.
    let value = unsafe { place.cast::<T>().as_ref() };
    ManuallyDrop::new(Recycled::new(|| value.clone())).0.cast()
}

impl<T: Recycle> Drop for Recycled<T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this is the only pointer, and nothing uses it afterwards.
        unsafe { dropped::<T>(self.0.cast()) }
    }
}

/// Drops the value at `place` and takes its memory back. It is a function of C as [`cloned`] is. A panic of
/// users' code ends here: its message has been printed, and what is left of the value leaks.
///
/// # Safety
/// `place` comes from a [`Recycled`] that is not used afterwards.
#[inline(never)]
unsafe extern "C" fn dropped<T: Recycle>(place: NonNull<u8>) {
    let place = place.cast::<T>();
    // SAFETY: the caller's contract.
    let drop_and_give = || unsafe {
        place.drop_in_place();
        give(place);
    };
    match T::MAY_PANIC {
        true => catch_unwind(AssertUnwindSafe(drop_and_give)).unwrap_or_else(std::mem::forget),
        false => drop_and_give(),
    }
}

/// A value that is dropped by a call, which does not unwind. Otherwise every function that has one would have
/// the code that drops it, twice: where it returns, and where a call in it panics. A panic of users' code ends
/// in the call, as in `dropped`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DropByCall<T>(ManuallyDrop<T>);

impl<T> DropByCall<T> {
    /// The value, from now on dropped by a call.
    #[inline]
    pub const fn new(value: T) -> DropByCall<T> {
        DropByCall(ManuallyDrop::new(value))
    }
}

impl<T> Deref for DropByCall<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for DropByCall<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for DropByCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Drop for DropByCall<T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: nothing uses the value afterwards.
        unsafe { dropped_in_place::<T>(NonNull::from(&mut self.0).cast()) }
    }
}

/// Drops the value at `place`.
///
/// # Safety
/// There is a `T` at `place`, which is not used afterwards.
#[inline(never)]
unsafe extern "C" fn dropped_in_place<T>(place: NonNull<u8>) {
    // SAFETY: the caller's contract.
    let drop = || unsafe { place.cast::<T>().drop_in_place() };
    catch_unwind(AssertUnwindSafe(drop)).unwrap_or_else(std::mem::forget)
}

/// Memory for one value; while it is free, the link of a list.
union Slot<T> {
    next: Option<NonNull<Slot<T>>>,
    _value: ManuallyDrop<MaybeUninit<T>>,
}

/// The free slots of a thread.
pub struct FreeList<T> {
    first: Cell<Option<NonNull<Slot<T>>>>,
    count: Cell<usize>,
}

/// The largest number of slots in a list: as many as the tensors of a large step, of 128 bytes or less.
const MOST: usize = if cfg!(namegrad_sanitize) { 0 } else { 1024 };

/// Memory whose content is undefined.
#[inline]
fn take<T: Recycle>() -> NonNull<T> {
    // A thread that is ending no longer has a list.
    let slot = T::free().try_with(FreeList::pop).ok().flatten();
    slot.unwrap_or_else(allocated).cast()
}

#[cold]
#[inline(never)]
fn allocated<T>() -> NonNull<Slot<T>> {
    NonNull::from(Box::leak(Box::new(Slot { next: None })))
}

/// Takes memory back.
///
/// # Safety
/// It comes from `take`, and neither it nor its value are used afterwards.
#[inline]
unsafe fn give<T: Recycle>(place: NonNull<T>) {
    let slot = place.cast::<Slot<T>>();
    // SAFETY: the caller's contract.
    if !T::free().try_with(|free| unsafe { free.push(slot) }).unwrap_or(false) {
        // SAFETY: the slot was leaked from a `Box`.
        drop(unsafe { Box::from_raw(slot.as_ptr()) });
    }
}

impl<T> FreeList<T> {
    /// A list without memory yet.
    pub const fn new() -> FreeList<T> {
        FreeList { first: Cell::new(None), count: Cell::new(0) }
    }

    #[inline]
    fn pop(&self) -> Option<NonNull<Slot<T>>> {
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
    unsafe fn push(&self, slot: NonNull<Slot<T>>) -> bool {
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

impl<T> Default for FreeList<T> {
    fn default() -> FreeList<T> {
        FreeList::new()
    }
}

impl<T> Drop for FreeList<T> {
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
