//! Substitutes and copies of shared places, such as parameters: a thread can see other values in their place
//! for a while, and make independent copies of them.
//!
//! A place is known by its address. `Parameter` and the buffers of layers ask here.

use crate::tensor::Tensor;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of threads and calls with substitutes, so that a program without any asks nothing else.
static CALLS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SUBSTITUTES: RefCell<HashMap<usize, Tensor>> = RefCell::default();
    static COPYING: Cell<bool> = const { Cell::new(false) };
    static COPIES: RefCell<Copies> = RefCell::default();
}

/// Runs `f` with `values` in place of those of the places with these addresses, on this thread alone. The
/// former values are back afterwards, also after a panic.
pub fn substituted<R>(values: Vec<(usize, Tensor)>, f: impl FnOnce() -> R) -> R {
    struct Restore(Vec<(usize, Option<Tensor>)>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let now = SUBSTITUTES.with_borrow_mut(|all| {
                let back = self.0.drain(..).rev();
                let each = back.map(|(place, before)| match before {
                    Some(before) => all.insert(place, before),
                    None => all.remove(&place),
                });
                each.collect::<Vec<_>>()
            });
            drop(now); // tensors are dropped outside of the borrow
            CALLS.fetch_sub(1, Ordering::Relaxed);
        }
    }
    CALLS.fetch_add(1, Ordering::Relaxed);
    let _restore = Restore(SUBSTITUTES.with_borrow_mut(|all| {
        values.into_iter().map(|(place, value)| (place, all.insert(place, value))).collect()
    }));
    f()
}

/// The value in place of that of a place, if there is one.
#[inline]
pub fn substitute(place: usize) -> Option<Tensor> {
    match CALLS.load(Ordering::Relaxed) {
        0 => None,
        _ => SUBSTITUTES.with_borrow(|all| all.get(&place).cloned()),
    }
}

/// Sets the value in place of that of a place, if there is one. Otherwise returns `false`.
pub fn set_substitute(place: usize, value: Tensor) -> bool {
    let before = SUBSTITUTES.with_borrow_mut(|all| {
        let own = all.get_mut(&place)?;
        Some(std::mem::replace(own, value))
    });
    before.is_some()
}

#[derive(Default)]
struct Copies {
    of: HashMap<usize, Box<dyn Any>>,
    failed: Vec<String>,
}

/// Runs `f`, in which clones of shared places are independent copies. Two clones of the same place are the
/// same copy. Also returns what could not be copied.
pub fn copying<R>(f: impl FnOnce() -> R) -> (R, Vec<String>) {
    struct Restore(bool, Option<Copies>);
    impl Drop for Restore {
        fn drop(&mut self) {
            COPYING.set(self.0);
            drop(COPIES.replace(self.1.take().unwrap_or_default()));
        }
    }
    let _restore = Restore(COPYING.replace(true), Some(COPIES.take()));
    let result = f();
    let failed = COPIES.with_borrow_mut(|copies| std::mem::take(&mut copies.failed));
    (result, failed)
}

/// In [`copying`], the copy of the place at an address, which `make` creates for its first clone; otherwise
/// `None`.
#[inline]
pub fn copy_of<T: Clone + 'static>(place: usize, make: impl FnOnce() -> T) -> Option<T> {
    if !COPYING.get() {
        return None;
    }
    let known = plainly(|| {
        COPIES.with_borrow(|copies| copies.of.get(&place).and_then(|copy| copy.downcast_ref::<T>()).cloned())
    });
    Some(known.unwrap_or_else(|| {
        let copy = make();
        let kept = plainly(|| Box::new(copy.clone()));
        COPIES.with_borrow_mut(|copies| copies.of.insert(place, kept));
        copy
    }))
}

/// Runs `f`, in which a clone of a copy is the same copy.
fn plainly<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            COPYING.set(self.0);
        }
    }
    let _restore = Restore(COPYING.replace(false));
    f()
}

/// Whether clones of shared places are independent copies.
pub fn is_copying() -> bool {
    COPYING.get()
}

/// Says that something cannot be copied.
pub fn copy_failed(what: String) {
    COPIES.with_borrow_mut(|copies| copies.failed.push(what));
}
