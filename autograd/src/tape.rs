//! What the tape knows of a value, and the walk from outputs to leaves.
//!
//! Each tensor that requires a gradient has a [`Meta`]; one made by an op also holds the op's edges, which lead to the inputs. Metas are numbered in order of birth, so
//! the walk takes them from a heap, youngest first: when one is taken, every op that used it has been passed, and its gradient is complete.
//! Nothing is walked or dropped by recursion, so a graph may be as deep as memory allows.

use crate::hooks::Hooks;
use crate::tensor::Tensor;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result, Sizes};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// What the tape knows of one value that requires a gradient; never the value itself.
pub(crate) struct Meta {
    pub(crate) id: u64,
    pub(crate) sizes: Sizes,
    pub(crate) dtype: DType,
    /// Is the value a matrix whose columns stand in memory one after the other, as the transposed weight of a linear map?
    column_major: bool,
    /// The op that made the value, and where it was called; nothing for a leaf.
    pub(crate) origin: Option<Origin>,
    state: Mutex<State>,
}

/// The op that made a value.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) op: &'static str,
    pub(crate) at: &'static Location<'static>,
}

/// What changes while a graph is used.
#[derive(Default)]
pub(crate) struct State {
    /// The way to the inputs; gone once a backward pass has used it, unless nothing was kept for it.
    edges: Option<Edges>,
    pub(crate) grad: Option<Tensor>,
    pub(crate) retain_grad: bool,
    pub(crate) hooks: Option<Box<Hooks>>,
}

pub(crate) type Edges = SmallVec<[Edge; 2]>;

/// The way from a value to one of the inputs it was made of.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) into: Arc<Meta>,
    pub(crate) gradient: Gradient,
    /// Does the gradient hold a tensor, which is freed once it has been used?
    keeps: bool,
}

impl Edge {
    /// A gradient of which only the caller knows whether it holds a tensor: one that owns nothing does not.
    #[inline]
    pub(crate) fn new<F>(into: &Arc<Meta>, gradient: F) -> Edge
    where
        F: Fn(&Tensor, &Cx<'_>) -> Result<Tensor> + Send + Sync + 'static,
    {
        Edge::keeping(std::mem::needs_drop::<F>(), into, gradient)
    }

    /// A gradient that holds a tensor or not.
    #[inline]
    pub(crate) fn keeping(
        keeps: bool,
        into: &Arc<Meta>,
        gradient: impl Fn(&Tensor, &Cx<'_>) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Edge {
        Edge { into: into.clone(), gradient: Arc::new(gradient), keeps }
    }
}

/// The gradient of an input, given that of the output.
pub(crate) type Gradient = Arc<dyn Fn(&Tensor, &Cx<'_>) -> Result<Tensor> + Send + Sync>;

/// What a derivative may ask for besides what it kept.
pub struct Cx<'a> {
    input: &'a Meta,
    pub(crate) output: &'a Arc<Meta>,
}

impl Cx<'_> {
    /// The sizes of the input that the gradient is for.
    pub fn sizes(&self) -> &[usize] {
        &self.input.sizes
    }

    /// The dtype of the input that the gradient is for.
    pub fn dtype(&self) -> DType {
        self.input.dtype
    }

    /// Is the input a matrix whose columns stand in memory one after the other? A gradient that stands so too needs no copy on its way back.
    pub(crate) fn is_column_major(&self) -> bool {
        self.input.column_major
    }
}

static BIRTHS: AtomicU64 = AtomicU64::new(0);

impl Meta {
    pub(crate) fn leaf(value: &NamedTensor) -> Arc<Meta> {
        Meta::new(value, None, None)
    }

    #[inline]
    pub(crate) fn new(value: &NamedTensor, origin: Option<Origin>, edges: Option<Edges>) -> Arc<Meta> {
        let (sizes, dtype) = (Sizes::from_slice(value.sizes()), value.dtype());
        let column_major =
            matches!((&sizes[..], value.strides()), ([rows, _], [1, column]) if *column == *rows as isize);
        let id = BIRTHS.fetch_add(1, Ordering::Relaxed);
        let state = Mutex::new(State { edges, ..State::default() });
        Arc::new(Meta { id, sizes, dtype, column_major, origin, state })
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
    /// Edges whose owner is gone, until the loop that drops them comes to them.
    static DROPPED: RefCell<Vec<Edges>> = const { RefCell::new(Vec::new()) };
    static DROPPING: Cell<bool> = const { Cell::new(false) };
}

impl Drop for Meta {
    /// Edges may own the last reference to other metas, and those to others: they are dropped by a loop, not by recursion.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Some(edges) = state.edges.take() else { return };
        // While a thread ends its locals may be gone; then what is left of the graph is dropped as it comes.
        let queued = DROPPED.try_with(|queue| queue.borrow_mut().push(edges)).is_ok();
        if !queued || DROPPING.replace(true) {
            return;
        }
        while let Some(edges) = DROPPED.with(|queue| queue.borrow_mut().pop()) {
            drop(edges);
        }
        DROPPING.set(false);
    }
}

thread_local! {
    static GRAD_ENABLED: Cell<bool> = const { Cell::new(true) };
}

/// Are ops recorded on the calling thread?
#[inline]
pub fn is_grad_enabled() -> bool {
    GRAD_ENABLED.get()
}

/// Runs `f` with recording switched on or off on the calling thread, and restores what was before, also after a panic.
pub fn set_grad_enabled<R>(enabled: bool, f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            GRAD_ENABLED.set(self.0);
        }
    }
    let _restore = Restore(GRAD_ENABLED.replace(enabled));
    f()
}

/// Runs `f` without recording: what it computes requires no gradient.
///
/// ```
/// use namegrad::prelude::*;
/// let x = Tensor::ones([2])?.requires_grad_(true)?;
/// let y = no_grad(|| x.mul(2.0))?;
/// assert!(!y.requires_grad());
/// # Ok::<(), Error>(())
/// ```
pub fn no_grad<R>(f: impl FnOnce() -> R) -> R {
    set_grad_enabled(false, f)
}

/// Runs `f` with recording, also inside [`no_grad`].
pub fn enable_grad<R>(f: impl FnOnce() -> R) -> R {
    set_grad_enabled(true, f)
}

/// How a backward pass treats the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackwardOptions {
    /// Keep what the ops kept, so that the graph can be walked again; where they kept nothing, it can be anyway. `create_graph` implies it.
    pub retain_graph: bool,
    /// Record the pass itself, so that gradients can be differentiated.
    pub create_graph: bool,
    /// In [`grad`](crate::grad): an input that no output depends on has no gradient, rather than being an error.
    pub allow_unused: bool,
}

/// Ids are distinct already: no need to mix them.
#[derive(Default)]
struct IdHasher(u64);
impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }
    fn write_u64(&mut self, id: u64) {
        // hashbrown takes the high bits to tell entries apart.
        self.0 = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
type ById<T> = HashMap<u64, T, BuildHasherDefault<IdHasher>>;
type Ids = HashSet<u64, BuildHasherDefault<IdHasher>>;

/// The gradients that have reached values not taken from the heap yet.
#[derive(Default)]
struct Pending {
    heap: BinaryHeap<u64>,
    at: ById<(Arc<Meta>, Tensor)>,
}

impl Pending {
    fn add(&mut self, meta: Arc<Meta>, grad: Tensor) -> Result<()> {
        use std::collections::hash_map::Entry;
        match self.at.entry(meta.id) {
            Entry::Vacant(place) => {
                self.heap.push(meta.id);
                place.insert((meta, grad));
            }
            Entry::Occupied(mut place) => {
                let sum = &mut place.get_mut().1;
                if is_grad_enabled() { *sum = sum.add(&grad)? } else { sum.add_in_place(grad)? }
            }
        }
        Ok(())
    }

    fn take(&mut self) -> Option<(Arc<Meta>, Tensor)> {
        let id = self.heap.pop()?;
        self.at.remove(&id)
    }
}

/// What a walk is for: the leaves' `grad`, or the gradients of chosen tensors.
pub(crate) enum Goal<'a> {
    Leaves,
    Inputs(&'a [Arc<Meta>]),
}

/// Walks from `roots` with the gradients given for them. Gives the gradients of the inputs of the goal; those of leaves are added to their `grad` once the whole
/// walk has succeeded.
#[track_caller]
pub(crate) fn walk(
    op: &'static str,
    roots: Vec<(Arc<Meta>, Tensor)>,
    goal: Goal<'_>,
    options: BackwardOptions,
) -> Result<Vec<Option<Tensor>>> {
    let retain = options.retain_graph || options.create_graph;
    let at = Location::caller();
    set_grad_enabled(options.create_graph, || {
        let useful = match goal {
            Goal::Leaves => None,
            Goal::Inputs(inputs) => Some(leading_to(roots.iter().map(|(meta, _)| meta.clone()), inputs)),
        };
        let mut found: Vec<Option<Tensor>> = match goal {
            Goal::Leaves => Vec::new(),
            Goal::Inputs(inputs) => vec![None; inputs.len()],
        };
        let mut leaves = Vec::new();
        let mut pending = Pending::default();
        for (meta, grad) in roots {
            pending.add(meta, grad)?;
        }
        while let Some((meta, mut grad)) = pending.take() {
            grad = run_hooks(&meta, grad, at)?;
            if let Goal::Inputs(inputs) = goal {
                for (slot, input) in found.iter_mut().zip(inputs) {
                    if input.id == meta.id {
                        *slot = Some(grad.clone());
                    }
                }
            }
            let Some(origin) = meta.origin else {
                if matches!(goal, Goal::Leaves) {
                    leaves.push((meta, grad));
                }
                continue;
            };
            if matches!(goal, Goal::Leaves) && meta.state().retain_grad {
                leaves.push((meta.clone(), grad.clone()));
            }
            if useful.as_ref().is_some_and(|useful| !useful.contains(&meta.id)) {
                continue;
            }
            let edges = take_edges(&meta, retain);
            let Some(edges) = edges else {
                let message = "Trying to backward through the graph a second time (or directly access saved tensors after they have \
                               already been freed). Saved intermediate values of the graph are freed when you call .backward() or \
                               autograd.grad(). Specify retain_graph if you need to backward through the graph a second time.";
                return Err(Error::new(ErrorKind::Autograd, op, message).at(at));
            };
            for edge in edges {
                if useful.as_ref().is_some_and(|useful| !useful.contains(&edge.into.id)) {
                    continue;
                }
                let cx = Cx { input: &edge.into, output: &meta };
                let of_input = (edge.gradient)(&grad, &cx)
                    .and_then(|gradient| fit(gradient, &edge.into))
                    .map_err(|error| {
                        error.context(format_args!(
                            "in the backward of {}, called at {}: ",
                            origin.op, origin.at
                        ))
                    })?;
                pending.add(edge.into, of_input)?;
            }
        }
        for (meta, grad) in leaves {
            accumulate(&meta, grad)?;
        }
        Ok(found)
    })
}

/// The way from a value to its inputs. What was kept for it goes with it, unless the graph is to be `retain`ed.
fn take_edges(meta: &Meta, retain: bool) -> Option<Edges> {
    let mut state = meta.state();
    let keeps = state.edges.iter().flatten().any(|edge| edge.keeps);
    if retain || !keeps { state.edges.clone() } else { state.edges.take() }
}

/// The gradient of an input that was broadcast is summed to its sizes, that of one that was promoted is cast back.
fn fit(gradient: Tensor, input: &Meta) -> Result<Tensor> {
    let gradient =
        if gradient.sizes() == &input.sizes[..] { gradient } else { gradient.sum_to(&input.sizes)? };
    if gradient.dtype() == input.dtype { Ok(gradient) } else { gradient.to(input.dtype) }
}

/// The values from which a path leads to one of `inputs`, these included.
fn leading_to(roots: impl Iterator<Item = Arc<Meta>>, inputs: &[Arc<Meta>]) -> Ids {
    let mut seen: ById<Vec<u64>> = ById::default();
    let mut todo: Vec<Arc<Meta>> = roots.collect();
    while let Some(meta) = todo.pop() {
        if seen.contains_key(&meta.id) {
            continue;
        }
        let state = meta.state();
        let edges = state.edges.iter().flatten();
        todo.extend(edges.clone().map(|edge| edge.into.clone()).filter(|into| !seen.contains_key(&into.id)));
        seen.insert(meta.id, edges.map(|edge| edge.into.id).collect());
    }
    // In order of birth every input of an op comes before the op.
    let mut ids: Vec<u64> = seen.keys().copied().collect();
    ids.sort_unstable();
    let mut useful: Ids = inputs.iter().map(|input| input.id).collect();
    for id in ids {
        if seen[&id].iter().any(|into| useful.contains(into)) {
            useful.insert(id);
        }
    }
    useful
}

/// The gradient after the hooks of a tensor, in the order of their registration.
fn run_hooks(meta: &Meta, mut grad: Tensor, at: &'static Location<'static>) -> Result<Tensor> {
    let hooks = match &meta.state().hooks {
        Some(hooks) => hooks.on_gradient(),
        None => return Ok(grad),
    };
    for hook in hooks {
        let Some(changed) = hook(&grad)? else { continue };
        if changed.sizes() != grad.sizes() {
            let message = format!(
                "a hook changed the sizes of a gradient from {:?} to {:?}",
                grad.sizes(),
                changed.sizes()
            );
            return Err(Error::new(ErrorKind::Autograd, "register_hook", message).at(at));
        }
        if changed.dtype() != grad.dtype() {
            let message = format!(
                "a hook changed the dtype of a gradient from {} to {}",
                grad.dtype(),
                changed.dtype()
            );
            return Err(Error::new(ErrorKind::Autograd, "register_hook", message).at(at));
        }
        grad = changed.unnamed();
    }
    Ok(grad)
}

/// Adds to the `grad` of a value, and tells the hooks that wait for it.
fn accumulate(meta: &Meta, grad: Tensor) -> Result<()> {
    let hooks = {
        let mut state = meta.state();
        match state.grad.as_mut() {
            None => state.grad = Some(grad),
            Some(old) if is_grad_enabled() => *old = old.add(&grad)?,
            Some(old) => old.add_in_place(grad)?,
        }
        state.hooks.as_ref().map(|hooks| hooks.after_accumulation()).unwrap_or_default()
    };
    for hook in hooks {
        let old = meta.state().grad.clone();
        if let Some(old) = old
            && let Some(new) = hook(&old)?
        {
            meta.state().grad = Some(new);
        }
    }
    Ok(())
}
