//! Hooks, functions that are called with gradients as they are computed, and the handles that remove them.

use crate::tape::Meta;
use crate::tensor::Tensor;
use namegrad_core::Result;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A function of a gradient. It can look at the gradient, replace it by returning `Some`, or stop the
/// backward pass with an error.
pub(crate) type Hook = Arc<dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync>;

/// The hooks of one tensor, in the order of their registration.
#[derive(Clone, Default)]
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

/// A function that is called at the end of a backward pass.
type EndHook = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// How many of `END_HOOKS` there are, which each backward pass reads.
static END_HOOK_COUNT: AtomicUsize = AtomicUsize::new(0);
static END_HOOKS: Mutex<Vec<(u64, EndHook)>> = Mutex::new(Vec::new());

fn end_hook_list() -> MutexGuard<'static, Vec<(u64, EndHook)>> {
    END_HOOKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `hook` at the end of every backward pass to leaves in this process, on the thread of the pass and
/// after the hooks of the leaves, unless the pass has failed. While there is such a hook, all passes add
/// gradients to their leaves [early](crate::BackwardOptions::early), so that a
/// [hook of a leaf](Tensor::register_post_accumulate_grad_hook) can start to send a gradient and this one can
/// wait for the last.
///
/// ```
/// use namegrad::prelude::*;
/// use std::sync::Mutex;
/// let x = Tensor::ones([2])?.requiring_grad()?;
/// static SEEN: Mutex<Vec<&str>> = Mutex::new(Vec::new());
/// x.register_post_accumulate_grad_hook(|_| {
///     SEEN.lock().unwrap().push("a gradient");
///     Ok(None)
/// })?;
/// let handle = autograd::register_backward_end_hook(|| {
///     SEEN.lock().unwrap().push("the end");
///     Ok(())
/// });
/// x.sum(..)?.backward()?;
/// handle.remove();
/// x.sum(..)?.backward()?;
/// assert_eq!(*SEEN.lock().unwrap(), ["a gradient", "the end", "a gradient"]);
/// # Ok::<(), Error>(())
/// ```
pub fn register_backward_end_hook(hook: impl Fn() -> Result<()> + Send + Sync + 'static) -> HookHandle {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut hooks = end_hook_list();
    hooks.push((number, Arc::new(hook)));
    END_HOOK_COUNT.store(hooks.len(), Ordering::Release);
    HookHandle::new(move || {
        let mut hooks = end_hook_list();
        // Dropped without the lock, in case the hook owns the handle of another.
        let removed = hooks.iter().position(|(other, _)| *other == number).map(|at| hooks.remove(at));
        END_HOOK_COUNT.store(hooks.len(), Ordering::Release);
        drop(hooks);
        drop(removed);
    })
}

/// The hooks that wait for the end of a backward pass.
#[inline]
pub(crate) fn end_hooks() -> Vec<EndHook> {
    match END_HOOK_COUNT.load(Ordering::Acquire) {
        0 => Vec::new(),
        _ => crate::list(end_hook_list().iter().map(|(_, hook)| hook.clone())),
    }
}
