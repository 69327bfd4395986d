//! [`observe`]: a function that sees every op that runs.

use crate::tape::{is_observed, observed};
use namegrad_core::NamedTensor;
use std::cell::RefCell;
use std::rc::Rc;

/// An op that ran: what the observer of [`observe`] gets.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The name of the op, such as `mm`.
    pub op: &'static str,
    /// The tensors that the op was called with, without those that are optional and missing. An op that is
    /// recorded with [`Op`](crate::Op) shows none.
    pub inputs: &'a [&'a NamedTensor],
    /// The results.
    pub outputs: &'a [&'a NamedTensor],
}

type Observer = Rc<dyn Fn(&Observed<'_>)>;

thread_local! {
    static OBSERVER: RefCell<Option<Observer>> = const { RefCell::new(None) };
}

/// Runs `f` and shows the observer each op that runs on this thread, in order. An op that is composed of
/// others shows up as those. Ops that the observer itself calls are not shown. Inside another `observe`, only
/// the inner observer sees the ops.
///
/// # Examples
/// ```
/// use namegrad::autograd::observe;
/// use namegrad::prelude::*;
/// use std::cell::RefCell;
/// use std::rc::Rc;
/// let x = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?;
/// let seen = Rc::new(RefCell::new(Vec::new()));
/// let list = seen.clone();
/// observe(move |op| list.borrow_mut().push(op.op), || x.mm(&x)?.exp())?;
/// assert_eq!(*seen.borrow(), ["mm", "exp"]);
/// # Ok::<(), Error>(())
/// ```
pub fn observe<R>(observer: impl Fn(&Observed<'_>) + 'static, f: impl FnOnce() -> R) -> R {
    with_observer(Some(Rc::new(observer)), || observed(true, f))
}

/// Runs `f` with another observer, and restores the one before, also after a panic.
fn with_observer<R>(observer: Option<Observer>, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Observer>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let before = self.0.take();
            OBSERVER.with_borrow_mut(|observer| *observer = before);
        }
    }
    let _restore = Restore(OBSERVER.replace(observer));
    f()
}

/// Shows an op to the observer.
#[cold]
pub(crate) fn tell(op: &'static str, inputs: &[&NamedTensor], outputs: &[&NamedTensor]) {
    let observer = OBSERVER.with_borrow(Clone::clone);
    if let Some(observer) = observer.filter(|_| is_observed()) {
        observed(false, || observer(&Observed { op, inputs, outputs }));
    }
}
