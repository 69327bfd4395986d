//! Modes of the calling thread: what is recorded, and whether gradients are checked.

use crate::line::{is_of_library, line_of};
use std::cell::Cell;
use std::panic::Location;
use std::thread::LocalKey;

/// The extent to which ops are recorded on the tape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recording {
    /// Nothing.
    Off,
    /// The routes to its inputs, with the values that their gradients need.
    On,
    /// Only the routes, which show what a value depends on.
    Forgetting,
}

thread_local! {
    static RECORDING: Cell<Recording> = const { Cell::new(Recording::On) };
    /// The lookers at the values of ops: [`ANOMALY`] or [`OBSERVER`], both, or nobody; and [`INFINITE`] and
    /// [`FORWARD`].
    static LOOKING: Cell<u8> = const { Cell::new(0) };
    /// Where the program last switched recording off.
    static LAST_OFF: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
}

const ANOMALY: u8 = 1;
const OBSERVER: u8 = 2;
/// In anomaly mode, whether infinite values are anomalies too.
const INFINITE: u8 = 4;
/// Whether tensors may carry tangents or stand for batches, which is no looker.
const FORWARD: u8 = 8;

/// Sets a switch of the calling thread while `f` runs, and restores it afterwards, even after a panic.
pub fn switched<T: Copy + 'static, R>(
    switch: &'static LocalKey<Cell<T>>,
    value: T,
    f: impl FnOnce() -> R,
) -> R {
    struct Restore<T: Copy + 'static>(&'static LocalKey<Cell<T>>, T);
    impl<T: Copy + 'static> Drop for Restore<T> {
        fn drop(&mut self) {
            self.0.set(self.1);
        }
    }
    let _restore = Restore(switch, switch.replace(value));
    f()
}

/// Whether ops are recorded on the calling thread.
#[inline]
pub fn is_grad_enabled() -> bool {
    RECORDING.get() != Recording::Off
}

/// Where this thread last switched recording off, if the program did.
pub(crate) fn last_off() -> Option<&'static Location<'static>> {
    LAST_OFF.get()
}

/// Whether ops record without the values that their gradients need.
#[inline]
pub(crate) fn is_forgetting() -> bool {
    RECORDING.get() == Recording::Forgetting
}

/// Runs `f` with ops that record their inputs but save nothing for a backward pass.
pub(crate) fn forgetting<R>(f: impl FnOnce() -> R) -> R {
    switched(&RECORDING, Recording::Forgetting, f)
}

/// Runs `f` with ops that save what their gradients need, even inside of a checkpoint.
pub(crate) fn remembering<R>(f: impl FnOnce() -> R) -> R {
    match is_forgetting() {
        true => switched(&RECORDING, Recording::On, f),
        false => f(),
    }
}

/// Runs `f` with recording switched on or off on the calling thread, and restores the switch afterwards, even
/// after a panic.
#[track_caller]
pub fn set_grad_enabled<R>(enabled: bool, f: impl FnOnce() -> R) -> R {
    let at = line_of(Location::caller());
    if !enabled && is_grad_enabled() && !is_of_library(at) {
        LAST_OFF.set(Some(at));
    }
    // Inside a checkpoint nothing is saved: `f` runs a second time in the backward pass, with full recording.
    let on = if is_forgetting() { Recording::Forgetting } else { Recording::On };
    switched(&RECORDING, if enabled { on } else { Recording::Off }, f)
}

/// Runs `f` without recording, so its results require no gradient.
///
/// ```
/// use namegrad::prelude::*;
/// let x = Tensor::ones([2])?.requiring_grad()?;
/// let y = no_grad(|| x.mul(2.0))?;
/// assert!(!y.requires_grad());
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn no_grad<R>(f: impl FnOnce() -> R) -> R {
    set_grad_enabled(false, f)
}

/// Runs `f` with recording, even inside [`no_grad`].
pub fn enable_grad<R>(f: impl FnOnce() -> R) -> R {
    set_grad_enabled(true, f)
}

/// The same as [`no_grad`]. PyTorch's inference mode also skips the bookkeeping that detects in-place changes
/// of saved values. namegrad has no such bookkeeping, because saved values cannot change.
#[track_caller]
pub fn inference_mode<R>(f: impl FnOnce() -> R) -> R {
    no_grad(f)
}

/// Runs `f` with checks for NaN: in the values that ops make, and in gradients.
///
/// A backward pass is an error if a value that it goes back to was NaN when `f` made it. The error names the
/// op that made the first NaN, and the line where it was called, also if that op was not recorded: in a mask,
/// a target or anything else that requires no gradient. A tensor that was NaN before `f` is named with the op
/// that it was given to. Otherwise the first gradient with a NaN is an error, which names the op whose
/// derivative computed it. Nothing is accumulated then.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::detect_anomaly;
/// let x = Tensor::new([-1.0, 4.0])?.requiring_grad()?;
/// let error = detect_anomaly(|| {
///     let loss = x.log()?.add(1.0)?.sum(..)?;
///     loss.backward()
/// });
/// let start = "Function 'log' returned nan values in the forward pass";
/// assert!(error.unwrap_err().message().starts_with(start));
/// # Ok::<(), Error>(())
/// ```
///
/// Every value is read once more, which takes time. Values that are NaN are kept until `detect_anomaly`
/// returns.
pub fn detect_anomaly<R>(f: impl FnOnce() -> R) -> R {
    detect(ANOMALY, f)
}

/// Like [`detect_anomaly`], for NaN and infinite values that reach the loss or a gradient.
///
/// A backward pass is an error if the output that it starts from is not finite, and if a gradient in it is
/// not finite. Other values of the forward pass can be infinite, as those of a mask often are. The error
/// names the op that made the first value of that kind, of inputs that were finite.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::detect_nonfinite;
/// let x = Tensor::new([100.0, 4.0])?.requiring_grad()?;
/// let error = detect_nonfinite(|| x.exp()?.sum(..)?.backward()).unwrap_err();
/// let start = "Function 'exp' returned nan or infinite values in the forward pass";
/// assert!(error.message().starts_with(start));
/// # Ok::<(), Error>(())
/// ```
pub fn detect_nonfinite<R>(f: impl FnOnce() -> R) -> R {
    detect(ANOMALY | INFINITE, f)
}

fn detect<R>(mode: u8, f: impl FnOnce() -> R) -> R {
    struct Forget;
    impl Drop for Forget {
        fn drop(&mut self) {
            super::nan::forget();
        }
    }
    let _forget = Forget; // after the switch is back, also after a panic
    switched(&LOOKING, LOOKING.get() | mode, f)
}

/// Runs `f` with an observer, or without one.
pub(crate) fn observed<R>(on: bool, f: impl FnOnce() -> R) -> R {
    let others = LOOKING.get() & !OBSERVER;
    switched(&LOOKING, if on { others | OBSERVER } else { others }, f)
}

/// Whether the calling thread checks for NaN.
#[inline]
pub fn is_anomaly_enabled() -> bool {
    LOOKING.get() & ANOMALY != 0
}

/// Whether infinite values are anomalies, too.
#[inline]
pub(crate) fn is_infinite_checked() -> bool {
    LOOKING.get() & INFINITE != 0
}

/// Whether the calling thread has an observer of ops.
#[inline]
pub(crate) fn is_observed() -> bool {
    LOOKING.get() & OBSERVER != 0
}

/// Whether ops only compute values: nothing looks at them, and there are neither tangents nor batches.
#[inline]
pub(crate) fn is_plain() -> bool {
    LOOKING.get() == 0
}

/// Whether tensors may carry tangents, or stand for batches.
#[inline]
pub(crate) fn is_forward() -> bool {
    LOOKING.get() & FORWARD != 0
}

pub(crate) fn set_forward(on: bool) {
    let others = LOOKING.get() & !FORWARD;
    LOOKING.set(if on { others | FORWARD } else { others });
}

/// Whether anything looks at the values of ops: anomaly mode or an observer.
#[inline]
pub(crate) fn is_looking() -> bool {
    LOOKING.get() & !FORWARD != 0
}
