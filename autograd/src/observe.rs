//! [`observe`]: a function that sees every op that runs. [`observe_by`]: an observer that also sees where an
//! op starts, and the sections of a program, such as backward passes.

use crate::line::{called, called_at, line_of};
use crate::tape::{ById, is_observed, observed};
use namegrad_core::NamedTensor;
use namegrad_core::tensor::looked_behind;
use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

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
    /// The line that called the op.
    pub at: &'static Location<'static>,
}

impl Observed<'_> {
    /// The multiplications whose results the op adds up: those of products, convolutions, attention and
    /// recurrent layers. Other ops have none, and so has an op on batches of `vmap` or on tensors in parts: the
    /// op on what they consist of is seen too.
    ///
    /// ```
    /// use namegrad::autograd::observe;
    /// use namegrad::prelude::*;
    /// let (a, b) = (Tensor::ones([2, 3])?, Tensor::ones([3, 4])?);
    /// observe(|op| assert_eq!(op.multiply_adds(), 2 * 3 * 4), || a.matmul(&b))?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn multiply_adds(&self) -> usize {
        let (inputs, Some(output)) = (self.inputs, self.outputs.first()) else { return 0 };
        if inputs.iter().chain(self.outputs).any(|x| x.behind().is_some()) {
            return 0;
        }
        let last = |x: &NamedTensor| x.sizes().last().copied().unwrap_or(1);
        match (self.op, inputs) {
            ("mm" | "bmm" | "matmul" | "mv" | "dot" | "linear", [a, ..]) => output.numel() * last(a),
            ("addmm" | "addmv" | "baddbmm", [_, a, ..]) => output.numel() * last(a),
            ("outer", _) => output.numel(),
            // Each sum is over the dims that both inputs have and the output has not.
            ("tensordot" | "contract", [a, b, ..]) => {
                let named = output.has_names() || a.has_names() && output.ndim() == 0;
                if !named || (0..a.ndim()).any(|dim| a.names().get(dim).is_none()) {
                    return (a.numel() as f64 * b.numel() as f64 * output.numel() as f64).sqrt() as usize;
                }
                let is_left = |name| output.names().position(name).is_some();
                let summed = (0..a.ndim()).filter(|dim| !a.names().get(*dim).is_some_and(is_left));
                output.numel() * summed.map(|dim| a.sizes()[dim]).product::<usize>()
            }
            ("convolution", [_, weight, ..]) => output.numel() * per_channel(weight),
            ("convolution_input", [g, weight, ..]) => g.numel() * per_channel(weight),
            ("convolution_weight", [_, g, ..]) => g.numel() * per_channel(output),
            ("scaled_dot_product_attention", [query, key, ..]) if key.ndim() >= 2 => {
                (query.numel() + output.numel()) * key.sizes()[key.ndim() - 2]
            }
            ("recurrent", [x, _, w_ih, w_hh, rest @ ..]) if x.ndim() == 3 => {
                let projection = rest.iter().skip(1).filter(|x| x.ndim() == 2).map(|x| x.numel());
                x.sizes()[0] * x.sizes()[1] * (w_ih.numel() + w_hh.numel() + projection.sum::<usize>())
            }
            _ => 0,
        }
    }
}

/// The multiply-adds of each element of the output of a convolution.
fn per_channel(weight: &NamedTensor) -> usize {
    weight.sizes().iter().skip(1).product()
}

/// A section of a program, which can contain ops and other sections.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// The kind of the section.
    pub kind: SectionKind,
    /// Its name: that of a [`span`], the op of a derivative, or the function that was called.
    pub name: &'static str,
    /// The line of the call. For a derivative, it is the line that called the op in the forward pass.
    pub at: &'static Location<'static>,
}

/// The kind of a [`Section`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SectionKind {
    /// A [`span`]: a part of the program that has a name.
    Span,
    /// A backward pass.
    Backward,
    /// The derivative of an op in a backward pass.
    Derivative,
}

/// What a program holds from one step to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Held {
    /// The value of a parameter.
    Parameter,
    /// The accumulated gradient of a leaf.
    Gradient,
    /// The state of an optimizer.
    State,
}

/// Receives ops and sections: see [`observe_by`]. The calls come from the thread that the program runs on.
pub trait Observer {
    /// An op has run.
    fn op(&self, op: &Observed<'_>);

    /// An op starts. [`op`](Self::op) follows, unless it fails. For an op that is recorded with
    /// [`Op`](crate::Op), there is no start.
    fn start(&self) {}

    /// A section starts.
    fn enter(&self, _section: &Section) {}

    /// The latest section that has started ends.
    fn leave(&self) {}

    /// The program holds a tensor from one step to the next: it reads a parameter, has the complete gradient of
    /// a leaf, or the state of an optimizer. The observer sees a tensor each time.
    fn holds(&self, _what: Held, _value: &NamedTensor) {}

    /// Makes an observer for a thread that works for this one: see [`hand_over`]. By default, nobody observes
    /// it.
    fn for_thread(&self) -> Option<ForThread> {
        None
    }
}

/// Makes the observer of another thread, on that thread.
pub type ForThread = Box<dyn FnOnce() -> Rc<dyn Observer> + Send>;

thread_local! {
    static OBSERVER: RefCell<Option<Rc<dyn Observer>>> = const { RefCell::new(None) };
    /// Whether an op has started, and where the output of the last op is.
    static STARTED: Cell<bool> = const { Cell::new(false) };
    static LAST: Cell<(&'static str, usize)> = const { Cell::new(("", 0)) };
    /// The path of the layer that runs, while somebody observes it.
    static LAYER: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
    /// The layers in which values were recorded, by their place on the tape.
    static RECORDED: RefCell<ById<Arc<str>>> = RefCell::default();
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
/// observe(move |op| list.borrow_mut().push((op.op, op.at.line())), || x.mm(&x)?.exp())?;
/// let line = line!() - 1;
/// assert_eq!(*seen.borrow(), [("mm", line), ("exp", line)]);
/// # Ok::<(), Error>(())
/// ```
pub fn observe<R>(observer: impl Fn(&Observed<'_>) + 'static, f: impl FnOnce() -> R) -> R {
    struct Ops<F>(F);
    impl<F: Fn(&Observed<'_>)> Observer for Ops<F> {
        fn op(&self, op: &Observed<'_>) {
            (self.0)(op);
        }
    }
    observe_by(Rc::new(Ops(observer)), f)
}

/// Like [`observe`], with an observer that also sees where ops start, and sections: backward passes, the
/// derivatives of ops in them, and [`span`]s.
///
/// # Examples
/// ```
/// use namegrad::autograd::{Observed, Observer, Section, SectionKind, observe_by};
/// use namegrad::prelude::*;
/// use std::cell::RefCell;
/// use std::rc::Rc;
/// #[derive(Default)]
/// struct Derivatives(RefCell<Vec<(&'static str, u32)>>);
/// impl Observer for Derivatives {
///     fn op(&self, _: &Observed<'_>) {}
///     fn enter(&self, section: &Section) {
///         if section.kind == SectionKind::Derivative {
///             self.0.borrow_mut().push((section.name, section.at.line()));
///         }
///     }
/// }
///
/// let x = Tensor::new([1.0, 2.0])?.requiring_grad()?;
/// let loss = x.exp()?.sum(..)?;
/// let line = line!() - 1;
/// let derivatives = Rc::new(Derivatives::default());
/// observe_by(derivatives.clone(), || loss.backward())?;
/// assert_eq!(*derivatives.0.borrow(), [("sum", line), ("exp", line)]);
/// # Ok::<(), Error>(())
/// ```
pub fn observe_by<R>(observer: Rc<dyn Observer>, f: impl FnOnce() -> R) -> R {
    /// Restores the observer before, also after a panic.
    struct Restore(Option<Rc<dyn Observer>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let before = self.0.take();
            if before.is_none() {
                RECORDED.take();
            }
            OBSERVER.with_borrow_mut(|observer| *observer = before);
        }
    }
    let _restore = Restore(OBSERVER.replace(Some(observer)));
    observed(true, f)
}

/// Runs `f` as a section with a name, which observers such as a profile see. Without an observer, it only
/// calls `f`.
///
/// ```
/// use namegrad::autograd::span;
/// assert_eq!(span("augment", || 1 + 2), 3);
/// ```
#[inline]
#[track_caller]
pub fn span<R>(name: &'static str, f: impl FnOnce() -> R) -> R {
    if !is_observed() {
        return f();
    }
    section(Section { kind: SectionKind::Span, name, at: line_of(Location::caller()) }, f)
}

/// [`span`] at the line of another call: an iterator says where its loop is.
#[inline]
pub fn span_at<R>(name: &'static str, at: &'static Location<'static>, f: impl FnOnce() -> R) -> R {
    if !is_observed() {
        return f();
    }
    section(Section { kind: SectionKind::Span, name, at }, f)
}

/// The path of the layer that runs on this thread, for an [`Observer`]: that of the innermost one whose path is
/// known, from a walk over the model such as `model.parameters()`, or because a `Sequential` contains it.
/// While the derivative of an op runs, it is the layer that called the op. Without an observer it is `None`.
///
/// ```
/// use namegrad::autograd::{observe, running_layer};
/// use namegrad::prelude::*;
/// use std::cell::RefCell;
/// use std::rc::Rc;
/// let model = Sequential::new().then(Relu).then_named("squash", Tanh);
/// let seen = Rc::new(RefCell::new(Vec::new()));
/// let list = seen.clone();
/// observe(move |op| list.borrow_mut().push((op.op, running_layer())), || model.forward(&Tensor::ones([2])?))?;
/// assert_eq!(*seen.borrow(), [("relu", Some("0".into())), ("tanh", Some("squash".into()))]);
/// # Ok::<(), Error>(())
/// ```
pub fn running_layer() -> Option<Arc<str>> {
    LAYER.with_borrow(Clone::clone)
}

/// A layer that runs, until this is dropped.
#[derive(Debug)]
#[doc(hidden)]
#[must_use = "the layer runs until this is dropped"]
pub struct InLayer(Option<Arc<str>>);

impl Drop for InLayer {
    fn drop(&mut self) {
        LAYER.replace(self.0.take());
    }
}

/// Says that a layer runs whose path `path` makes of that of the layer around it, if somebody observes that.
#[doc(hidden)]
#[inline]
pub fn in_layer(path: impl FnOnce(Option<Arc<str>>) -> Option<Arc<str>>) -> Option<InLayer> {
    if !is_observed() {
        return None;
    }
    Some(InLayer(LAYER.replace(path(running_layer()))))
}

/// Remembers the layer in which the value at the place `id` of the tape is made.
#[cold]
pub(crate) fn remember_layer(id: u64) {
    if let Some(layer) = running_layer() {
        RECORDED.with_borrow_mut(|recorded| recorded.insert(id, layer));
    }
}

/// Runs `f`, a section, in the layer that made the value at the place `id` of the tape.
#[cold]
pub(crate) fn section_of<R>(id: u64, of: Section, f: impl FnOnce() -> R) -> R {
    let layer = RECORDED.with_borrow(|recorded| recorded.get(&id).cloned());
    let _layer = in_layer(|_| layer);
    section(of, f)
}

/// Makes a function with which another thread, which works for this one, is observed by the same observer: a
/// loader takes it before it starts its threads.
///
/// ```
/// use namegrad::autograd::{hand_over, span};
/// let handed = hand_over();
/// let worker = std::thread::spawn(move || handed.run(|| span("decode", || 42)));
/// assert_eq!(worker.join().unwrap(), 42);
/// ```
pub fn hand_over() -> HandedOver {
    let observer = OBSERVER.with_borrow(Clone::clone).filter(|_| is_observed());
    HandedOver { observer: observer.and_then(|observer| observer.for_thread()), called: called() }
}

/// The observers that [`hand_over`] passes to another thread.
pub struct HandedOver {
    observer: Option<ForThread>,
    /// The line for which ops count that have no line.
    called: Option<&'static Location<'static>>,
}

impl HandedOver {
    /// Runs `f` with the observer of the other thread, if it has one.
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        let _called = self.called.map(called_at);
        match self.observer {
            Some(make) => observe_by(make(), f),
            None => f(),
        }
    }
}

impl std::fmt::Debug for HandedOver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HandedOver").field(&self.observer.is_some()).finish()
    }
}

/// Shows a tensor that the program holds from one step to the next to the observer.
#[inline]
#[doc(hidden)]
pub fn holding(what: Held, value: &NamedTensor) {
    if is_observed() {
        hold(what, value);
    }
}

#[cold]
fn hold(what: Held, value: &NamedTensor) {
    with_observer(&|observer| observer.holds(what, value));
}

/// Says that an op starts, of which [`tell`] says that it has run.
#[inline]
#[doc(hidden)]
pub fn starting() {
    if is_observed() {
        start();
    }
}

#[cold]
fn start() {
    STARTED.set(true);
    with_observer(&|observer| observer.start());
}

/// Shows an op to the observer.
#[cold]
pub(crate) fn tell(
    op: &'static str,
    at: &'static Location<'static>,
    inputs: &[&NamedTensor],
    outputs: &[&NamedTensor],
) {
    // What is observed is not read by the program.
    looked_behind(|| tell_op(op, at, inputs, outputs)).0
}

fn tell_op(
    op: &'static str,
    at: &'static Location<'static>,
    inputs: &[&NamedTensor],
    outputs: &[&NamedTensor],
) {
    // An op of a row that records itself with `Op` is told twice; the second time, it has not started.
    let output = (op, outputs.first().map_or(0, |output| output.data_ptr() as usize));
    if !STARTED.replace(false) && LAST.get() == output && inputs.is_empty() {
        return LAST.set(("", 0));
    }
    LAST.set(output);
    with_observer(&|observer| observer.op(&Observed { op, inputs, outputs, at }));
}

/// Runs `f` as a section.
#[cold]
pub(crate) fn section<R>(section: Section, f: impl FnOnce() -> R) -> R {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            with_observer(&|observer| observer.leave());
        }
    }
    with_observer(&|observer| observer.enter(&section));
    let _leave = Leave;
    let _called = called_at(section.at); // for ops that know no line
    f()
}

/// Calls the observer, whose own ops are not shown.
fn with_observer(f: &dyn Fn(&dyn Observer)) {
    let observer = OBSERVER.with_borrow(Clone::clone);
    if let Some(observer) = observer.filter(|_| is_observed()) {
        observed(false, || f(&*observer));
    }
}
