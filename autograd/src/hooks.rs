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
    on_gradient: Vec<(u64, Hook)>,
    after_accumulation: Vec<(u64, Hook)>,
}

impl Hooks {
    pub(crate) fn on_gradient(&self) -> Vec<Hook> {
        self.on_gradient.iter().map(|(_, hook)| hook.clone()).collect()
    }

    pub(crate) fn after_accumulation(&self) -> Vec<Hook> {
        self.after_accumulation.iter().map(|(_, hook)| hook.clone()).collect()
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
        let list = if after_accumulation { &mut hooks.after_accumulation } else { &mut hooks.on_gradient };
        list.push((id, hook));
        let meta = Arc::downgrade(meta);
        HookHandle::new(move || {
            let Some(meta) = meta.upgrade() else { return };
            if let Some(hooks) = &mut meta.state().hooks {
                hooks.on_gradient.retain(|(other, _)| *other != id);
                hooks.after_accumulation.retain(|(other, _)| *other != id);
            }
        })
    }

    /// Removes the hook. Does nothing if the hook was already removed, or if the tensor no longer exists.
    pub fn remove(&self) {
        (self.0)();
    }
}
