//! What this thread sends, for a [`plan`](crate::plan()): exchanges say for which op they are.

use crate::backend::Transfer;
use crate::group::Group;
use std::cell::{Cell, RefCell};
use std::panic::Location;

type CallSite = &'static Location<'static>;

/// A transfer that has started.
#[derive(Clone)]
pub(crate) struct Note {
    pub(crate) transfer: Transfer,
    /// The name of the group, and its ranks.
    pub(crate) group: (String, usize),
    /// The bytes of what this rank gives, and those that it sends.
    pub(crate) given: u64,
    pub(crate) sent: u64,
    /// What it is for, if that is not a call of the program itself.
    pub(crate) op: Option<&'static str>,
    /// The line, unless that of the next op that the observer sees is the line.
    pub(crate) at: Option<CallSite>,
}

thread_local! {
    /// Transfers that a plan has not seen yet, while one is made.
    static NOTES: RefCell<Option<Vec<Note>>> = const { RefCell::new(None) };
    static CURRENT: Cell<Option<(&'static str, Option<CallSite>)>> = const { Cell::new(None) };
}

/// Until this is dropped, exchanges are for an op.
#[must_use = "exchanges are for the op until this is dropped"]
pub(crate) struct Current(Option<(&'static str, Option<CallSite>)>);

impl Drop for Current {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Exchanges are for an op that the observer will see.
pub(crate) fn in_op(op: &'static str) -> Current {
    Current(CURRENT.replace(Some((op, None))))
}

/// Exchanges are for a function that is called at a line.
pub(crate) fn in_call(name: &'static str, at: CallSite) -> Current {
    Current(CURRENT.replace(Some((name, Some(at)))))
}

/// Remembers a transfer, if somebody plans.
#[track_caller]
pub(crate) fn note(transfer: Transfer, group: &Group, given: u64, sent: u64) {
    let caller = Location::caller();
    NOTES.with_borrow_mut(|notes| {
        let Some(notes) = notes else { return };
        let (op, at) = match CURRENT.get() {
            Some((op, at)) => (Some(op), at),
            None => (None, Some(caller)),
        };
        notes.push(Note { transfer, group: (group.name(), group.size()), given, sent, op, at });
    });
}

/// Runs `f`, whose transfers [`take`] gives.
pub(crate) fn noted<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Vec<Note>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            NOTES.set(self.0.take());
        }
    }
    let _restore = Restore(NOTES.replace(Some(Vec::new())));
    f()
}

/// The transfers since the last call.
pub(crate) fn take() -> Vec<Note> {
    NOTES.with_borrow_mut(|notes| notes.as_mut().map(std::mem::take).unwrap_or_default())
}
