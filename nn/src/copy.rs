//! Deep copies of modules. In a deep copy, a clone of a parameter or a buffer is another one, the same for
//! every clone of it; `autograd::places` knows them.

use crate::places::{AnyModule, Ids, walk};
use crate::{Entry, Layer, Module, ModuleFields};
use namegrad_autograd::{Tensor, places};
use namegrad_core::{Error, ErrorKind, Result};
use std::marker::PhantomData;

/// The clone of a module, with other parameters and buffers.
#[track_caller]
pub(crate) fn deep_copy<M: ModuleFields + Clone>(module: &M) -> Result<M> {
    let (copy, failed) = places::copying(|| module.clone());
    check(&module, &&copy, failed)?;
    Ok(copy)
}

/// An error if the copy shares something with the original.
#[track_caller]
fn check(own: &dyn AnyModule, copy: &dyn AnyModule, failed: Vec<String>) -> Result<()> {
    let (mut ids, mut shared) = (Ids::default(), Vec::new());
    each_place(own, &mut |_, id| _ = ids.first(id, 0));
    each_place(copy, &mut |path, id| {
        if ids.get(id).is_some() {
            shared.push(format!("'{path}'"));
        }
    });
    let message = match (failed.as_slice(), shared.as_slice()) {
        ([], []) => return Ok(()),
        ([], shared) => format!("the copy would share {} with the original", crate::joined(shared, ", ")),
        (failed, _) => format!("these boxed layers cannot be cloned: {}", crate::joined(failed, ", ")),
    };
    Err(Error::new(ErrorKind::Unsupported, "deep_copy", message)
        .with_repair("#[derive(Clone)] for the layer, which the model holds without an Arc"))
}

/// Calls `f` with the path and the id of every parameter and buffer, computed parameters included.
fn each_place(module: &dyn AnyModule, f: &mut dyn FnMut(&str, usize)) {
    walk(module, &mut |path, entry| match entry {
        Entry::Parameter(parameter) | Entry::Computed(parameter) => f(path, parameter.id()),
        Entry::Buffer(buffer) => f(path, buffer.id()),
        _ => {}
    });
}

/// Clones a layer in a box. A layer that does not implement `Clone` becomes one whose `forward` is an error.
impl Clone for Box<dyn Layer> {
    fn clone(&self) -> Box<dyn Layer> {
        self.clone_in_box().unwrap_or_else(|| {
            let what = self.describe();
            places::copy_failed(what.clone());
            Box::new(NotCloned { what })
        })
    }
}

/// The clone of a layer that cannot be cloned.
#[derive(Module)]
#[module(crate = crate, layer, describe = format!("a clone of {}, which cannot be cloned", self.what))]
struct NotCloned {
    what: String,
}

impl NotCloned {
    #[track_caller]
    fn forward(&self, _: &Tensor) -> Result<Tensor> {
        let message = format!("{} does not implement Clone", self.what);
        Err(Error::new(ErrorKind::Unsupported, "forward", message)
            .with_repair("#[derive(Clone)] for the layer"))
    }
}

/// A question of the derive macro: `(&Probe::<Self>(PhantomData)).clone_of(self)` is a clone in a box if `Self`
/// is a layer that can be cloned. The trait of `Probe` fits then; otherwise the compiler finds that of
/// `&Probe`.
#[doc(hidden)]
pub struct Probe<T: ?Sized>(pub PhantomData<fn(&T)>);

#[doc(hidden)]
pub trait Cloned<T> {
    fn clone_of(&self, layer: &T) -> Option<Box<dyn Layer>>;
}

impl<T: Layer + Clone + 'static> Cloned<T> for Probe<T> {
    fn clone_of(&self, layer: &T) -> Option<Box<dyn Layer>> {
        Some(Box::new(layer.clone()))
    }
}

#[doc(hidden)]
pub trait NotClonedHere<T: ?Sized> {
    fn clone_of(&self, layer: &T) -> Option<Box<dyn Layer>>;
}

impl<T: ?Sized> NotClonedHere<T> for &Probe<T> {
    fn clone_of(&self, _: &T) -> Option<Box<dyn Layer>> {
        None
    }
}
