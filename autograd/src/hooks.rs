//! Hooks, functions that are called with gradients as they are computed, and the handles that remove them.

use crate::tape::Meta;
use crate::tensor::Tensor;
use namegrad_core::Result;
use std::sync::Arc;

/// A function of a gradient. It can look at the gradient, replace it by returning `Some`, or stop the
/// backward pass with an error.
pub(crate) type Hook = Arc<dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync>;

/// The hooks of one tensor, in the order of their registration.
#[derive(Default)]
pub(crate) struct Hooks {
    next: u64,
    /// Each with its number, and whether it runs after accumulation.
    hooks: Vec<(u64, bool, Hook)>,
}

impl Hooks {
    /// The hooks that run after accumulation, or those that run on the gradient.
    pub(crate) fn list(&self, after_accumulation: bool) -> Vec<Hook> {
        let mut list = Vec::new();
        for (_, after, hook) in &self.hooks {
            if *after == after_accumulation {
                list.push(hook.clone());
            }
        }
        list
    }
}

/// Removes a hook. Dropping the handle leaves the hook in place.
#[derive(Clone)]
pub struct HookHandle(Arc<dyn Fn() + Send + Sync>);

impl HookHandle {
    /// A handle that removes a hook by calling `remove`, which must do nothing when called a second time.
    pub fn new(remove: impl Fn() + Send + Sync + 'static) -> HookHandle {
        HookHandle(Arc::new(remove))
    }

    /// Registers a hook on a tensor.
    pub(crate) fn add(meta: &Arc<Meta>, hook: Hook, after_accumulation: bool) -> HookHandle {
        let mut state = meta.state();
        let hooks = state.hooks.get_or_insert_default();
        let id = hooks.next;
        hooks.next += 1;
        hooks.hooks.push((id, after_accumulation, hook));
        let meta = Arc::downgrade(meta);
        HookHandle::new(move || {
            let Some(meta) = meta.upgrade() else { return };
            if let Some(hooks) = &mut meta.state().hooks {
                hooks.hooks.retain(|(other, ..)| *other != id);
            }
        })
    }

    /// Removes the hook. Does nothing if the hook was already removed, or if the tensor no longer exists.
    pub fn remove(&self) {
        (self.0)();
    }
}
