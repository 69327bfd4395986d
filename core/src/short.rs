//! [`Short`], a list that holds few items without an allocation.

use smallvec::SmallVec;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A list that holds up to `N` items inline: a [`SmallVec`] of items that need not be dropped. Most functions
/// have several such lists, so one with an allocation is freed by a call.
pub struct Short<T: Copy, const N: usize>(ManuallyDrop<SmallVec<[T; N]>>);

impl<T: Copy, const N: usize> Short<T, N> {
    /// A list without items.
    #[inline]
    pub fn new() -> Short<T, N> {
        Short::from(SmallVec::new())
    }

    /// A list of these items.
    #[inline]
    pub fn from_slice(items: &[T]) -> Short<T, N> {
        Short::from(SmallVec::from_slice(items))
    }

    /// A list of `count` times the same item.
    #[inline]
    pub fn from_elem(item: T, count: usize) -> Short<T, N> {
        Short::from(SmallVec::from_elem(item, count))
    }

    #[inline]
    fn into_inner(self) -> SmallVec<[T; N]> {
        let mut list = ManuallyDrop::new(self);
        // SAFETY: the list is not used afterwards.
        unsafe { ManuallyDrop::take(&mut list.0) }
    }
}

impl<T: Copy, const N: usize> From<SmallVec<[T; N]>> for Short<T, N> {
    #[inline]
    fn from(list: SmallVec<[T; N]>) -> Short<T, N> {
        Short(ManuallyDrop::new(list))
    }
}

impl<T: Copy, const N: usize> Drop for Short<T, N> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.spilled() {
            // SAFETY: the list is not used afterwards.
            unsafe { freed::<T, N>(NonNull::from(&mut self.0).cast()) }
        }
    }
}

/// Frees a list. Functions of C do not unwind, so that callers have no code for that.
///
/// # Safety
/// There is such a list at `list`, which is not used afterwards.
#[cold]
#[inline(never)]
unsafe extern "C" fn freed<T, const N: usize>(list: NonNull<u8>) {
    // SAFETY: the caller's contract.
    unsafe { list.cast::<SmallVec<[T; N]>>().drop_in_place() }
}

impl<T: Copy, const N: usize> Deref for Short<T, N> {
    type Target = SmallVec<[T; N]>;

    #[inline(always)]
    fn deref(&self) -> &SmallVec<[T; N]> {
        &self.0
    }
}

impl<T: Copy, const N: usize> DerefMut for Short<T, N> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut SmallVec<[T; N]> {
        &mut self.0
    }
}

impl<T: Copy, const N: usize> Clone for Short<T, N> {
    #[inline(never)]
    fn clone(&self) -> Short<T, N> {
        Short::from_slice(self)
    }
}

impl<T: Copy, const N: usize> Default for Short<T, N> {
    #[inline]
    fn default() -> Short<T, N> {
        Short::new()
    }
}

impl<T: Copy + fmt::Debug, const N: usize> fmt::Debug for Short<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: Copy + PartialEq, const N: usize> PartialEq for Short<T, N> {
    #[inline]
    fn eq(&self, other: &Short<T, N>) -> bool {
        self[..] == other[..]
    }
}

impl<T: Copy + Eq, const N: usize> Eq for Short<T, N> {}

impl<T: Copy + std::hash::Hash, const N: usize> std::hash::Hash for Short<T, N> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self[..].hash(state);
    }
}

impl<T: Copy, const N: usize> AsRef<[T]> for Short<T, N> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: Copy, const N: usize> From<&[T]> for Short<T, N> {
    #[inline]
    fn from(items: &[T]) -> Short<T, N> {
        Short::from_slice(items)
    }
}

impl<T: Copy, const N: usize> From<Vec<T>> for Short<T, N> {
    fn from(items: Vec<T>) -> Short<T, N> {
        Short::from(SmallVec::from_vec(items))
    }
}

impl<T: Copy, const N: usize> FromIterator<T> for Short<T, N> {
    #[inline]
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Short<T, N> {
        Short::from(SmallVec::from_iter(items))
    }
}

impl<T: Copy, const N: usize> Extend<T> for Short<T, N> {
    #[inline]
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.0.extend(items);
    }
}

impl<T: Copy, const N: usize> IntoIterator for Short<T, N> {
    type Item = T;
    type IntoIter = smallvec::IntoIter<[T; N]>;

    #[inline]
    fn into_iter(self) -> smallvec::IntoIter<[T; N]> {
        self.into_inner().into_iter()
    }
}

impl<'a, T: Copy, const N: usize> IntoIterator for &'a Short<T, N> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    #[inline]
    fn into_iter(self) -> std::slice::Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T: Copy, const N: usize> IntoIterator for &'a mut Short<T, N> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    #[inline]
    fn into_iter(self) -> std::slice::IterMut<'a, T> {
        self.iter_mut()
    }
}

impl<T: Copy, const N: usize> crate::callback::List<T> for Short<T, N> {
    #[inline(never)]
    fn from_calls(_: usize, next: &mut dyn crate::callback::CallbackMut<(), Option<T>>) -> Short<T, N> {
        let mut list = Short::new();
        while let Some(item) = next.call_with(()) {
            list.push(item);
        }
        list
    }
}
