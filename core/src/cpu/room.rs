//! Memory that a kernel has yet to write.
//!
//! A kernel takes the memory of its result as a [`Room`] and returns it as numbers. Numbers come only
//! from memory that is written, so the type of a kernel says that it writes all of its result, and who calls
//! it needs no `unsafe`.

use std::mem::MaybeUninit;

/// Elements that are not written yet.
pub(crate) type Room<T> = [MaybeUninit<T>];

/// The elements of a room.
///
/// # Safety
/// All are written.
#[inline(always)]
pub(crate) unsafe fn written<T>(y: &mut Room<T>) -> &mut [T] {
    // SAFETY: `MaybeUninit<T>` has the layout of `T`, and the caller guarantees that each holds one.
    unsafe { &mut *(std::ptr::from_mut(y) as *mut [T]) }
}

/// Panics unless `done` is this room, of which only the address and the length are left.
#[inline(always)]
pub(crate) fn check_is<T>((at, len): (*const MaybeUninit<T>, usize), done: &[T]) {
    check_is_at(at.cast(), len, done.as_ptr().cast(), done.len());
}

/// [`check_is`], compiled once.
fn check_is_at(at: *const u8, len: usize, done: *const u8, done_len: usize) {
    let same = done_len == len && (len == 0 || done == at);
    assert!(same, "a kernel returns the room that it was given");
}

/// `y[i] = f(i)`.
#[inline(always)]
pub(crate) fn write_each<T>(y: &mut Room<T>, mut f: impl FnMut(usize) -> T) -> &mut [T] {
    for (i, y) in y.iter_mut().enumerate() {
        y.write(f(i));
    }
    // SAFETY: the loop writes each element.
    unsafe { written(y) }
}

/// `y = value` everywhere.
#[inline(always)]
pub(crate) fn fill<T: Copy>(y: &mut Room<T>, value: T) -> &mut [T] {
    for y in y.iter_mut() {
        y.write(value);
    }
    // SAFETY: the loop writes each element.
    unsafe { written(y) }
}

/// `y = x`, of the same length.
#[inline(always)]
pub fn copy<'a, T: Copy>(y: &'a mut Room<T>, x: &[T]) -> &'a mut [T] {
    // SAFETY: any element may be in a room, which is written and not read here.
    y.copy_from_slice(unsafe { &*(std::ptr::from_ref(x) as *const Room<T>) });
    // SAFETY: the line above writes each element.
    unsafe { written(y) }
}

/// `count` parts of `len` elements, one after another: `f` writes its part and returns it.
pub fn write_in_turn<T>(
    y: &mut Room<T>,
    count: usize,
    len: usize,
    f: impl for<'y> Fn(usize, &'y mut Room<T>) -> &'y mut [T],
) -> &mut [T] {
    assert_eq!(y.len(), count * len);
    for (at, part) in y.chunks_exact_mut(len.max(1)).enumerate() {
        let place = (part.as_ptr(), part.len());
        check_is(place, f(at, part));
    }
    // SAFETY: the parts make up `y`, and each was returned as elements.
    unsafe { written(y) }
}

/// A vector of `n` elements that `write` writes.
#[inline]
pub(crate) fn vec_of<T>(n: usize, write: impl FnOnce(&mut Room<T>) -> &mut [T]) -> Vec<T> {
    let mut elements = Vec::new();
    refill(&mut elements, n, write);
    elements
}

/// [`vec_of`] in the memory of a vector, whose elements are dropped.
#[inline]
pub(crate) fn refill<T>(elements: &mut Vec<T>, n: usize, write: impl FnOnce(&mut Room<T>) -> &mut [T]) {
    elements.clear();
    elements.reserve_exact(n);
    let room = &mut elements.spare_capacity_mut()[..n];
    let place = (room.as_ptr(), n);
    check_is(place, write(room));
    // SAFETY: there is capacity for `n`, and `write` returned them as elements.
    unsafe { elements.set_len(n) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_become_what_is_written() {
        assert_eq!(vec_of(3, |y| write_each(y, |i| i * i)), [0, 1, 4]);
        assert_eq!(vec_of(3, |y| fill(y, true)), [true; 3]);
        assert_eq!(vec_of(2, |y| copy(y, &[1.5, 2.5])), [1.5, 2.5]);
        assert_eq!(vec_of::<u8>(0, |y| fill(y, 1)), [0; 0]);
    }

    #[test]
    #[should_panic(expected = "the room that it was given")]
    fn other_memory_is_refused() {
        vec_of(3, |_| Box::leak(Box::new([1, 2, 3])).as_mut_slice());
    }

    #[test]
    #[should_panic(expected = "the room that it was given")]
    fn a_part_of_a_room_is_refused() {
        vec_of(3, |y| fill(&mut y[..2], 1));
    }
}
