//! Substitutes, stand-ins and copies of shared places, such as parameters: a thread can see other values in
//! their place for a while, and make independent copies of them.
//!
//! A place is known by its address. `Parameter` and the buffers of layers ask here.

use crate::tape::{GradNames, Meta, backward_passes, set_backward_passes, switched};
use crate::tensor::Tensor;
use namegrad_core::Device;
use namegrad_core::random::Generator;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of threads and calls with substitutes, so that a program without any asks nothing else.
static CALLS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SUBSTITUTES: RefCell<HashMap<usize, Tensor>> = RefCell::default();
    /// Whether what is written to any place is a substitute.
    static REHEARSING: Cell<bool> = const { Cell::new(false) };
    static COPYING: Cell<bool> = const { Cell::new(false) };
    static COPIES: RefCell<Copies> = RefCell::default();
    static PLANNED: RefCell<Option<Planned>> = const { RefCell::new(None) };
}

/// Runs `f` with `values` in place of those of the places with these addresses, on this thread alone. The
/// former values are back afterwards, also after a panic.
pub fn substituted<R>(values: Vec<(usize, Tensor)>, f: impl FnOnce() -> R) -> R {
    let _restore = substitute_all(values);
    f()
}

/// Runs `f`, after which all places that are written by [`set_substitute`] have their values from before.
pub(crate) fn rehearsed<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(HashMap<usize, Tensor>, bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            REHEARSING.set(self.1);
            drop(SUBSTITUTES.replace(std::mem::take(&mut self.0)));
            CALLS.fetch_sub(1, Ordering::Relaxed);
        }
    }
    CALLS.fetch_add(1, Ordering::Relaxed);
    let _restore = Restore(SUBSTITUTES.with_borrow(HashMap::clone), REHEARSING.replace(true));
    f()
}

/// The values before a call of [`substituted`], which come back when this is dropped.
struct RestoreValues(Vec<(usize, Option<Tensor>)>);

impl Drop for RestoreValues {
    fn drop(&mut self) {
        let mut now = Vec::with_capacity(self.0.len());
        SUBSTITUTES.with_borrow_mut(|all| {
            while let Some((place, before)) = self.0.pop() {
                now.push(match before {
                    Some(before) => all.insert(place, before),
                    None => all.remove(&place),
                });
            }
        });
        drop(now); // tensors are dropped outside of the borrow
        CALLS.fetch_sub(1, Ordering::Relaxed);
    }
}

fn substitute_all(values: Vec<(usize, Tensor)>) -> RestoreValues {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let mut before = Vec::with_capacity(values.len());
    SUBSTITUTES.with_borrow_mut(|all| {
        for (place, value) in values {
            before.push((place, all.insert(place, value)));
        }
    });
    RestoreValues(before)
}

/// The value in place of that of a place, if there is one.
#[inline]
pub fn substitute(place: usize) -> Option<Tensor> {
    match CALLS.load(Ordering::Relaxed) {
        0 => None,
        _ => SUBSTITUTES.with_borrow(|all| all.get(&place).cloned()),
    }
}

/// Sets the value in place of that of a place, if it has one, or if the place has to keep its value. Otherwise
/// gives the value back.
pub fn set_substitute(place: usize, value: Tensor) -> Option<Tensor> {
    if CALLS.load(Ordering::Relaxed) == 0 {
        return Some(value);
    }
    let (rest, before) =
        SUBSTITUTES.with_borrow_mut(|all| match REHEARSING.get() || all.contains_key(&place) {
            true => (None, all.insert(place, value)),
            false => (Some(value), None),
        });
    drop(before); // outside of the borrow
    rest
}

/// What [`planned`] keeps.
#[derive(Default)]
struct Planned {
    /// The stand-ins of places, by their addresses.
    stand_ins: HashMap<usize, Rc<dyn Any>>,
    /// The gradients of leaves before the first change.
    gradients: HashMap<u64, (Arc<Meta>, Option<Tensor>, GradNames)>,
}

/// Runs `f`, in which shared places on the CPU have stand-ins without elements ([`stand_in`]). After it, also
/// after a panic, the places have the values from before, leaves their gradients, and the random generator its
/// state.
pub fn planned<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(u64);
    impl Drop for Restore {
        fn drop(&mut self) {
            let planned = PLANNED.take().unwrap_or_default();
            for (meta, grad, names) in planned.gradients.into_values() {
                let mut state = meta.state();
                (state.grad, state.grad_names) = (grad, names);
            }
            set_backward_passes(self.0);
            CALLS.fetch_sub(1, Ordering::Relaxed);
        }
    }
    if is_planned() {
        return f(); // it is a part of the outer one
    }
    CALLS.fetch_add(1, Ordering::Relaxed);
    PLANNED.set(Some(Planned::default()));
    let _restore = Restore(backward_passes());
    Generator::from_seed(0).scope(f)
}

/// Whether places have stand-ins on this thread.
#[inline]
pub fn is_planned() -> bool {
    CALLS.load(Ordering::Relaxed) > 0 && PLANNED.with_borrow(Option::is_some)
}

/// In [`planned`], what is in the place at an address, which `make` creates when it is first asked for, unless
/// the place needs no stand-in.
#[inline]
pub fn stand_in<T: Clone + 'static>(place: usize, make: impl FnOnce() -> Option<T>) -> Option<T> {
    if is_planned() { find_stand_in(place, make) } else { None }
}

#[cold]
fn find_stand_in<T: Clone + 'static>(place: usize, make: impl FnOnce() -> Option<T>) -> Option<T> {
    let known = PLANNED.with_borrow(|planned| planned.as_ref()?.stand_ins.get(&place).cloned());
    if let Some(known) = known.as_ref().and_then(|known| known.downcast_ref::<T>()) {
        return Some(known.clone());
    }
    let made = make()?;
    let kept = Rc::new(made.clone());
    PLANNED.with_borrow_mut(|planned| planned.as_mut()?.stand_ins.insert(place, kept));
    Some(made)
}

/// Remembers the gradient of a leaf, which is about to change, in [`planned`].
#[inline]
pub(crate) fn before_change(leaf: &Arc<Meta>) {
    if is_planned() {
        remember(leaf);
    }
}

#[cold]
fn remember(leaf: &Arc<Meta>) {
    let state = leaf.state();
    // Without elements nothing is lost, and memory that is freed is not kept.
    if state.grad.as_ref().is_some_and(|grad| grad.device() == Device::Meta) {
        return;
    }
    PLANNED.with_borrow_mut(|planned| {
        let Some(planned) = planned else { return };
        let (grad, names) = (state.grad.clone(), state.grad_names.clone());
        planned.gradients.entry(leaf.id).or_insert_with(|| (leaf.clone(), grad, names));
    });
}

#[derive(Default)]
struct Copies {
    of: HashMap<usize, Rc<dyn Any>>,
    failed: Vec<String>,
}

/// Runs `f`, in which clones of shared places are independent copies. Two clones of the same place are the
/// same copy. Also returns what could not be copied.
pub fn copying<R>(f: impl FnOnce() -> R) -> (R, Vec<String>) {
    struct RestoreValues(bool, Option<Copies>);
    impl Drop for RestoreValues {
        fn drop(&mut self) {
            COPYING.set(self.0);
            drop(COPIES.replace(self.1.take().unwrap_or_default()));
        }
    }
    let _restore = RestoreValues(COPYING.replace(true), Some(COPIES.take()));
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
    if let Some(known) = known(place)
        && let Some(copy) = known.downcast_ref::<T>()
    {
        return Some(switched(&COPYING, false, || copy.clone())); // a clone of a copy is the same copy
    }
    let copy = make();
    keep(place, Rc::new(switched(&COPYING, false, || copy.clone())));
    Some(copy)
}

/// The copy that was made of a place.
fn known(place: usize) -> Option<Rc<dyn Any>> {
    COPIES.with_borrow(|copies| copies.of.get(&place).cloned())
}

/// Keeps the copy of a place.
fn keep(place: usize, copy: Rc<dyn Any>) {
    COPIES.with_borrow_mut(|copies| copies.of.insert(place, copy));
}

/// Whether clones of shared places are independent copies.
pub fn is_copying() -> bool {
    COPYING.get()
}

/// Says that something cannot be copied.
pub fn copy_failed(what: String) {
    COPIES.with_borrow_mut(|copies| copies.failed.push(what));
}
