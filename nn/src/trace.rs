//! The layers that run, with their outputs and multiply-adds, for the summary of a run.

use crate::training::ModulePath;
use namegrad_autograd::{Called, InLayer, Observed, Tensor, called_here, in_layer, no_grad, observe};
use namegrad_core::Shape;
use namegrad_core::recycled::DropByCall;
use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

/// The work of the layers of a module, by the address of the [`ModulePath`] of each; that of the module
/// around all layers is 0.
#[derive(Default)]
pub(crate) struct Trace {
    pub(crate) layers: HashMap<usize, LayerWork>,
    /// The layers that run, each with the last tensor before it.
    running: Vec<(usize, Option<Shape>)>,
    last: Option<Shape>,
}

/// The work of a layer.
#[derive(Clone, Default)]
pub(crate) struct LayerWork {
    /// The multiply-adds, with those of the layers inside.
    pub(crate) multiply_adds: usize,
    pub(crate) calls: usize,
    /// The last tensor that the last call computed.
    pub(crate) output: Option<Shape>,
}

thread_local! {
    static TRACE: RefCell<Option<Rc<RefCell<Trace>>>> = const { RefCell::new(None) };
}

/// Runs `f` and returns what the layers computed.
pub(crate) fn traced<R>(f: impl FnOnce() -> R) -> (R, Trace) {
    struct Restore(Option<Rc<RefCell<Trace>>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            TRACE.replace(self.0.take());
        }
    }
    let trace = Rc::new(RefCell::new(Trace::default()));
    let restore = Restore(TRACE.replace(Some(trace.clone())));
    let (seen, root) = (trace.clone(), Running::begin(Some(trace.clone()), 0, None));
    let result = observe(move |op| seen.borrow_mut().see(op), || no_grad(f));
    drop((root, restore));
    (result, trace.take())
}

/// A layer that runs, until this is dropped. See [`ModulePath::running`].
#[must_use = "the layer runs until this is dropped"]
pub struct Running(DropByCall<RunningLayer>);

struct RunningLayer {
    trace: Option<Rc<RefCell<Trace>>>,
    /// Counts the ops of the layer for the line of its call.
    _called: Called,
    /// Says to observers which layer runs.
    _layer: Option<InLayer>,
    here: PhantomData<*const ()>,
}

#[inline(never)]
#[track_caller]
pub(crate) fn enter(path: &ModulePath) -> Running {
    let layer = in_layer(|around| known(path).or(around));
    // A trace is an observer.
    let trace = layer.as_ref().and_then(|_| TRACE.with_borrow(Clone::clone));
    Running::begin(trace, path as *const ModulePath as usize, layer)
}

/// The path of a layer in its model.
fn known(path: &ModulePath) -> Option<Arc<str>> {
    path.get().filter(|path| !path.is_empty())
}

/// Says that the layer `name` of the layer at `path` runs, for one that does not know its own path.
pub(crate) fn enter_inner(path: &ModulePath, name: &str) -> Option<InLayer> {
    in_layer(|around| match known(path).or(around) {
        Some(outer) => Some(format!("{outer}.{name}").into()),
        None => Some(name.into()),
    })
}

impl Running {
    #[track_caller]
    fn begin(trace: Option<Rc<RefCell<Trace>>>, layer: usize, observed: Option<InLayer>) -> Running {
        if let Some(trace) = &trace {
            trace.borrow_mut().enter(layer);
        }
        let _called = called_here();
        Running(DropByCall::new(RunningLayer { trace, _called, _layer: observed, here: PhantomData }))
    }

    /// Says what the output of the layer is, if that is not the last tensor that it computes.
    pub fn gives(&self, output: &Tensor) {
        if let Some(trace) = &self.0.trace {
            trace.borrow_mut().last = Some(output.shape());
        }
    }
}

impl Drop for RunningLayer {
    fn drop(&mut self) {
        if let Some(trace) = &self.trace {
            trace.borrow_mut().leave();
        }
    }
}

impl Trace {
    fn enter(&mut self, layer: usize) {
        self.running.push((layer, self.last.take()));
        self.layers.entry(layer).or_default().calls += 1;
    }

    fn leave(&mut self) {
        let Some((layer, before)) = self.running.pop() else { return };
        if let Some(work) = self.layers.get_mut(&layer) {
            work.output = self.last.clone().or(work.output.take());
        }
        self.last = self.last.take().or(before); // the layer may compute nothing
    }

    fn see(&mut self, op: &Observed<'_>) {
        let count = op.multiply_adds();
        for (at, (layer, _)) in self.running.iter().enumerate() {
            // Once for a layer that calls itself.
            if self.running[..at].iter().all(|(other, _)| other != layer) {
                self.layers.entry(*layer).or_default().multiply_adds += count;
            }
        }
        if let Some(output) = op.outputs.first() {
            self.last = Some(output.shape());
        }
    }
}
