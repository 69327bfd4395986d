//! The tape: the records of values. The backward pass is in [`walk`], and [`modes`] controls what is
//! recorded.
//!
//! Each tensor that requires a gradient has a [`Meta`]. The meta of a tensor that was made by an op also
//! holds the [`Route`] to the inputs. Metas are numbered in the order of their creation, and the walk takes
//! them from a heap, latest first. When a meta is taken, every op that used it has been processed, so its
//! gradient is complete. Neither the walk nor `Drop` uses recursion, so a graph can be as deep as memory
//! allows.

mod compute;
mod cx;
mod forward;
mod joint;
mod modes;
pub(crate) mod nan;
mod record;
mod walk;

pub use compute::ByElement;
pub(crate) use compute::{
    Formulas, Recipe, Save, binary, binary_, binary_of, compute, compute_all, in_place, unary, unary_,
    unary_of, unary_with,
};
pub use cx::Cx;
pub(crate) use cx::OutputGradients;
pub(crate) use forward::{Carried, Level, forward, forward_all, fuses, inside, linear, linear_in_list};
pub(crate) use joint::{Joint, JointInput, JointInputs, JointOutput};
pub use modes::{
    detect_anomaly, detect_nonfinite, enable_grad, inference_mode, is_anomaly_enabled, is_grad_enabled,
    no_grad, set_grad_enabled, switched,
};
pub(crate) use modes::{
    forgetting, is_forgetting, is_forward, is_infinite_checked, is_looking, is_observed, is_plain, last_off,
    observed, remembering,
};
pub(crate) use record::{Formula, Halves, JointFormula, Saved, as_many};
pub use walk::{BackwardOptions, backward_passes, began_last_backward};
pub(crate) use walk::{ById, Goal, Root, history, set_backward_passes, walk};

use crate::hooks::Hooks;
use crate::line::line_of;
use crate::observe;
use crate::tensor::Tensor;
use namegrad_core::callback::Callback;
use namegrad_core::{DType, Device, Error, ErrorKind, NamedTensor, Names, Result, Sizes};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

/// The record of a value that requires a gradient, without the value itself.
pub(crate) struct Meta {
    pub(crate) id: u64,
    pub(crate) sizes: Sizes,
    pub(crate) dtype: DType,
    /// Whether the value is a column-major matrix, such as the transposed weight of a linear map.
    column_major: bool,
    /// Whether an element was an anomaly when the value was made. Only anomaly mode checks this.
    pub(crate) is_nan: bool,
    /// The op that made the value, and where it was called; `None` for a leaf.
    pub(crate) origin: Option<Origin>,
    /// What the value carries besides the record. Most values carry nothing.
    pub(crate) carried: Option<Box<Carried>>,
    state: Mutex<State>,
}

/// The op that made a value.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) op: &'static str,
    pub(crate) at: &'static Location<'static>,
}

impl Origin {
    /// An op at the line that the caller's line counts for.
    #[inline]
    #[track_caller]
    pub(crate) fn here(op: &'static str) -> Origin {
        Origin { op, at: line_of(Location::caller()) }
    }
}

/// The part that changes while a graph is used.
#[derive(Default)]
pub(crate) struct State {
    /// The route to the inputs. A backward pass uses it up, unless it has no saved values.
    pub(crate) route: Option<Route>,
    pub(crate) grad: Option<Tensor>,
    pub(crate) grad_names: GradNames,
    pub(crate) retain_grad: bool,
    pub(crate) hooks: Option<Box<Hooks>>,
}

/// The names of a gradient, which is stored without names.
#[derive(Clone, Default)]
pub(crate) enum GradNames {
    #[default]
    None,
    /// The names of its tensor: the gradient is from a backward pass with named gradients.
    OfTensor,
    /// The names of the gradient that a program has set.
    Given(Names),
}

/// The route of a gradient from a value to the inputs of its op.
#[derive(Clone)]
pub(crate) enum Route {
    /// An op with one output: a gradient for each input.
    Edges(Edges),
    /// The op has several outputs; their gradients meet at an extra meta.
    Part { of: Arc<Meta>, number: usize, outputs: usize },
    /// A derivative for several inputs.
    Joint(Arc<Joint>),
    /// A value that is recomputed when its gradient is needed.
    Again(Arc<Again>),
}

impl Route {
    /// Calls `visit` with each of the metas that it leads to.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(&Arc<Meta>)) {
        match self {
            Route::Edges(edges) => {
                for edge in edges {
                    visit(&edge.into);
                }
            }
            Route::Part { of, .. } => visit(of),
            Route::Joint(joint) => {
                for edge in &joint.edges {
                    visit(&edge.into);
                }
                for input in &joint.inputs {
                    if let Some(into) = input.tracked() {
                        visit(into);
                    }
                }
            }
            Route::Again(again) => {
                for into in &again.uses {
                    visit(into);
                }
            }
        }
    }

    /// Whether it holds tensors, which are freed after their use.
    fn keeps(&self) -> bool {
        match self {
            Route::Edges(edges) => edges.iter().any(|edge| edge.keeps),
            Route::Part { .. } => false,
            Route::Joint(joint) => joint.keeps,
            Route::Again(_) => true,
        }
    }
}

/// The recomputation of a value, with recording.
pub(crate) struct Again {
    pub(crate) compute: Box<dyn Fn() -> Result<Tensor> + Send + Sync>,
    /// The inputs of the computation.
    pub(crate) uses: Vec<Arc<Meta>>,
}

pub(crate) type Edges = SmallVec<[Edge; 2]>;

/// The route of a gradient from a value to one input of its op.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) into: Arc<Meta>,
    pub(crate) gradient: Gradient,
    /// Whether the gradient holds a tensor, which is freed after its use.
    pub(crate) keeps: bool,
    /// Whether each element of the gradient depends only on the same element of the gradient of the output.
    /// Then the same formula gives the tangent of the output from that of the input.
    pub(crate) by_element: bool,
}

impl Edge {
    /// Drops the gradient with its saved values. Only the existence of the route matters.
    pub(crate) fn forget(&mut self) {
        static FORGOTTEN: LazyLock<Gradient> =
            LazyLock::new(|| Gradient::With(Arc::new(|_: &Tensor, cx: &Cx<'_>| Err(forgotten(cx)))));
        self.gradient = FORGOTTEN.clone();
    }
}

/// The error of a walk over an op whose derivative was dropped.
#[cold]
fn forgotten(cx: &Cx<'_>) -> Error {
    let message = "the op was called in a checkpoint, which keeps nothing for a backward pass inside of it; call `backward` or `grad` outside of the checkpoint";
    Error::new(ErrorKind::Autograd, cx.origin.op, message).at(cx.origin.at)
}

/// The gradient of an input, given the gradient of the output.
#[derive(Clone)]
pub(crate) enum Gradient {
    /// A formula that sees nothing else, so that a record needs no memory for it.
    Alone(&'static Formula),
    /// A function with what it sees.
    With(Arc<GradientFunction>),
}

pub(crate) type GradientFunction =
    dyn for<'g, 'x, 'c> Callback<(&'g Tensor, &'x Cx<'c>), Result<Tensor>> + Send + Sync;

impl Gradient {
    pub(crate) fn apply(&self, g: &Tensor, cx: &Cx<'_>) -> Result<Tensor> {
        match self {
            Gradient::Alone(formula) => formula.apply(g, &mut [], None, cx),
            Gradient::With(function) => function.call_with((g, cx)),
        }
    }
}

/// Whether an element is NaN, or infinite where that is an anomaly.
#[cold]
pub(crate) fn is_anomalous(value: &NamedTensor) -> bool {
    // Of a batch, or a tensor in parts, what it consists of is looked at.
    let has_elements = value.behind().is_none() && value.device() != Device::Meta;
    if !value.dtype().is_floating_point() || !has_elements {
        return false;
    }
    match is_infinite_checked() {
        true => {
            !value.isfinite().and_then(|finite| finite.all(..)).and_then(|all| all.item()).unwrap_or(true)
        }
        false => value.isnan().and_then(|nan| nan.any(..)).and_then(|any| any.item()).unwrap_or(false),
    }
}

/// The number of the next meta; 0 is none.
static BIRTHS: AtomicU64 = AtomicU64::new(1);

/// Notes what somebody wants to know of a value that gets the place `id`. Returns whether it is an anomaly.
#[cold]
fn looked_at(id: u64, value: &NamedTensor, origin: Option<Origin>) -> bool {
    if is_observed() && origin.is_some() {
        observe::remember_layer(id);
    }
    is_anomaly_enabled() && nan::enters(id, value, origin)
}

impl Meta {
    pub(crate) fn leaf(value: &NamedTensor) -> Arc<Meta> {
        Meta::new(value, None, None)
    }

    pub(crate) fn new(value: &NamedTensor, origin: Option<Origin>, route: Option<Route>) -> Arc<Meta> {
        let (sizes, dtype) = (Sizes::from_slice(value.sizes()), value.dtype());
        let column_major =
            matches!((&sizes[..], value.strides()), ([rows, _], [1, column]) if *column == *rows as isize);
        let id = BIRTHS.fetch_add(1, Ordering::Relaxed);
        let is_nan = is_looking() && looked_at(id, value, origin);
        let state = Mutex::new(State { route, ..State::default() });
        Arc::new(Meta { id, sizes, dtype, column_major, is_nan, origin, carried: None, state })
    }

    /// The meta of a value that carries more than a record.
    pub(crate) fn carrying(
        value: &NamedTensor,
        origin: Option<Origin>,
        route: Option<Route>,
        carried: Carried,
    ) -> Arc<Meta> {
        let mut meta = Meta::new(value, origin, route);
        if let Some(meta) = Arc::get_mut(&mut meta) {
            meta.carried = Some(Box::new(carried)); // nobody else has it yet
        }
        meta
    }

    /// Whether gradients flow to or through the value.
    #[inline]
    pub(crate) fn is_recorded(&self) -> bool {
        self.carried.as_ref().is_none_or(|carried| carried.recorded)
    }

    /// The meta at which the gradients of several outputs meet. It has no value. Its route is set after the
    /// outputs are made, which are later on the tape.
    pub(crate) fn meeting(origin: Origin) -> Arc<Meta> {
        let id = BIRTHS.fetch_add(1, Ordering::Relaxed);
        if is_observed() {
            observe::remember_layer(id);
        }
        let (sizes, dtype, column_major) = (Sizes::new(), DType::F32, false);
        let (origin, state) = (Some(origin), Mutex::default());
        Arc::new(Meta { id, sizes, dtype, column_major, is_nan: false, origin, carried: None, state })
    }

    pub(crate) fn set_route(&self, route: Route) {
        self.state().route = Some(route);
    }

    /// A number between those of the metas before and after.
    pub(crate) fn next_id_taken() -> u64 {
        BIRTHS.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of the next meta.
    pub(crate) fn next_id() -> u64 {
        BIRTHS.load(Ordering::Relaxed)
    }

    /// A panic of a user's hook cannot poison the state: hooks run without the lock.
    #[inline]
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.origin.is_none()
    }
}

thread_local! {
    /// Ways without an owner, which the loop below drops. Nothing destroys the list, so that it can be used
    /// while the thread ends; it holds memory only while the loop runs.
    static DROPPED: ManuallyDrop<RefCell<Vec<Route>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
    static DROPPING: Cell<bool> = const { Cell::new(false) };
}

impl Drop for Meta {
    /// A route may own the last reference to other metas, and so on. A loop drops them, as recursion could
    /// overflow the stack.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Some(route) = state.route.take() else { return };
        if DROPPING.replace(true) {
            return DROPPED.with(|queue| queue.borrow_mut().push(route));
        }
        /// A value in a user's gradient may panic in its `drop`. The rest is then dropped with the next meta.
        struct Done;
        impl Drop for Done {
            fn drop(&mut self) {
                DROPPING.set(false);
            }
        }
        let _done = Done;
        let mut next = Some(route);
        while let Some(route) = next {
            drop(route);
            next = DROPPED.with(|queue| queue.borrow_mut().pop());
        }
        DROPPED.with(|queue| queue.take());
    }
}
