//! The line of a program that an op counts for, in profiles, errors of backward passes and graphs.
//!
//! `#[track_caller]` tells a function where it was called, but not inside of a closure, and not through a
//! function pointer: the location of an op is then a line of this library. So a layer, a function of `nn` and
//! a span also say where they were called, and an op whose own line is in the library counts for that line.

use crate::plain::{Input, values};
use namegrad_core::{Device, OnDevice, Result};
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::Location;

type CallSite = &'static Location<'static>;

thread_local! {
    /// The line of the program that called the innermost function of the library, if the function said so.
    static CALLED: Cell<Option<CallSite>> = const { Cell::new(None) };
}

/// A call of the library, until this is dropped. See [`called_here`].
#[derive(Debug)]
#[must_use = "the call lasts until this is dropped"]
pub struct Called {
    before: Option<CallSite>,
    /// The device of new tensors before, as [`OnDevice::until`] has it.
    device: bool,
    /// Keeps the value on its thread.
    here: PhantomData<*const ()>,
}

/// Says that a function of the library was called at the caller's line, until the result is dropped.
#[track_caller]
pub fn called_here() -> Called {
    called_at(Location::caller())
}

/// [`called_here`] with these inputs: new tensors are on their device. If they are on different ones, the first
/// op that meets two of them is an error.
#[track_caller]
pub fn called_with(inputs: &[Input<'_>]) -> Called {
    entered(Location::caller(), device_of("", inputs).ok().flatten().unwrap_or_default())
}

/// The device of the results of an op, if one of its inputs is a meta tensor.
///
/// # Errors
/// As [`OnDevice::of_inputs`].
#[inline]
#[track_caller]
pub(crate) fn device_of(op: &'static str, inputs: &[Input<'_>]) -> Result<Option<OnDevice>> {
    for input in inputs {
        for x in input.tensors() {
            if x.value().device() == Device::Meta {
                return OnDevice::of_inputs(op, &[&values(inputs)]).map(Some);
            }
        }
    }
    Ok(None)
}

/// [`called_here`] at another line.
pub(crate) fn called_at(at: CallSite) -> Called {
    entered(at, OnDevice::default())
}

#[inline(never)]
fn entered(at: CallSite, device: OnDevice) -> Called {
    let before = CALLED.get();
    // A call from inside of the library is a part of the call that is known already. Most have the same
    // location.
    if before.is_none_or(|before| !std::ptr::eq(before, at) && !is_of_library(at)) {
        CALLED.replace(Some(at));
    }
    Called { before, device: device.until(), here: PhantomData }
}

/// The call of this thread, for another thread that works for it.
pub(crate) fn called() -> Option<CallSite> {
    CALLED.get()
}

impl Drop for Called {
    #[inline(always)]
    fn drop(&mut self) {
        restore(self.before, self.device);
    }
}

/// Ends a call. Functions of C do not unwind, so that callers have no code for that.
#[allow(improper_ctypes_definitions)] // the caller is not C
#[inline(never)]
extern "C" fn restore(before: Option<CallSite>, device: bool) {
    CALLED.replace(before);
    OnDevice::restore(device);
}

/// The line that something at `at` counts for.
#[inline]
pub(crate) fn line_of(at: CallSite) -> CallSite {
    match CALLED.get() {
        Some(called) if !std::ptr::eq(called, at) && is_of_library(at) => called,
        _ => at,
    }
}

/// Whether a line is one of these crates: of `autograd/src` in a workspace, or of
/// `namegrad-autograd-0.1.0/src` in a registry. All crates have the same version.
pub(crate) fn is_of_library(at: CallSite) -> bool {
    const CRATES: [&str; 10] =
        ["core", "autograd", "nn", "optim", "train", "data", "io", "distributions", "fft", "linalg"];
    const PARTS: (&str, &str) = around("autograd", file!());
    let Some(inside) = at.file().strip_prefix(PARTS.0) else { return false };
    CRATES.iter().any(|own| inside.strip_prefix(own).is_some_and(|rest| rest.starts_with(PARTS.1)))
}

/// The parts of a path before and after the last `name`, the latter up to the name of the file.
const fn around(name: &str, file: &'static str) -> (&'static str, &'static str) {
    let (bytes, name) = (file.as_bytes(), name.as_bytes());
    let mut end = bytes.len();
    while !matches!(bytes[end - 1], b'/' | b'\\') {
        end -= 1;
    }
    if end < name.len() {
        return (file, "");
    }
    let mut start = end - name.len();
    loop {
        let mut same = 0;
        while same < name.len() && bytes[start + same] == name[same] {
            same += 1;
        }
        if same == name.len() {
            let (before, rest) = file.split_at(start);
            return (before, rest.split_at(name.len()).1.split_at(end - start - name.len()).0);
        }
        if start == 0 {
            return (file, ""); // an unusual folder: no file is one of the library
        }
        start -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_in_workspaces_and_registries() {
        assert_eq!(around("autograd", "autograd/src/line.rs"), ("", "/src/"));
        assert_eq!(around("autograd", "x/src/line.rs"), ("x/src/line.rs", ""));
        assert_eq!(around("autograd", "a_long_name/src/line.rs"), ("a_long_name/src/line.rs", ""));
        let registry = "/home/me/autograd/namegrad-autograd-0.1.0/src/line.rs";
        assert_eq!(around("autograd", registry), ("/home/me/autograd/namegrad-", "-0.1.0/src/"));
    }

    #[test]
    fn a_call_inside_of_a_call() {
        let here = Location::caller();
        assert!(is_of_library(here)); // this file
        assert_eq!(line_of(here), here);
        let outer = called_here();
        let line = CALLED.get().unwrap();
        let inner = called_here();
        assert_eq!((line_of(here), CALLED.get()), (line, Some(line)));
        drop((inner, outer));
        assert_eq!(CALLED.get(), None);
    }
}
