//! [`Hooked`]: a layer with functions that are called with its values and gradients.

use super::*;
use namegrad_autograd::{HookHandle, Op, places};
use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// A layer with hooks: functions that see its input, its output and their gradients, and can replace them.
///
/// It has the parameters of the layer, under the same paths, and can be used wherever the layer can. Clones
/// share the layer and the hooks, so you can register hooks on one clone while another is part of a model. A
/// [deep copy](crate::Module::deep_copy) has its own layer and the same hooks, which are then independent. A
/// call runs the hooks in PyTorch's order, and each kind in order of registration:
///
/// 1. [`register_forward_pre_hook`](Self::register_forward_pre_hook): with the input;
/// 2. the layer;
/// 3. [`register_forward_hook`](Self::register_forward_hook): with input and output;
/// 4. in the backward pass [`register_full_backward_pre_hook`](Self::register_full_backward_pre_hook): with
///    the gradient of the output;
/// 5. the backward pass of the layer;
/// 6. [`register_full_backward_hook`](Self::register_full_backward_hook): with the gradients of input and
///    output.
///
/// Forward hooks work with every [`Layer`]. Both kinds of gradient hooks above work with layers from tensor
/// to tensor; [`register_gradient_hook`](Self::register_gradient_hook) works with any inputs and outputs that
/// consist of [`Tensors`].
///
/// A hook returns `None`, or `Some` with a replacement. Its error becomes the error of the call. A gradient
/// hook applies to calls of `forward` between its registration and its removal, even if the backward pass
/// runs later. A hook that holds a clone of its own `Hooked` keeps it alive forever.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// use namegrad::nn::Hooked;
/// let layer = Hooked::new(Linear::new(("in", 4), ("out", 2))?);
/// let model = Sequential::new().then(layer.clone()).then(Relu);
/// let limit = layer.register_forward_hook(|_, _, y| y.clamp(-0.25, 0.25).map(Some));
/// let y = model.forward(&Tensor::randn([("N", 3), ("in", 4)])?)?;
/// assert!(y.amax(..)?.item::<f64>()? <= 0.25);
/// limit.remove();
/// assert_eq!(model.named_parameters()[0].0, "0.weight");
/// # Ok::<(), Error>(())
/// ```
pub struct Hooked<L, Input = Tensor, Output = Tensor> {
    layer: Arc<L>,
    hooks: Arc<Mutex<LayerHooks<L, Input, Output>>>,
}

/// A hook for one value: the input, or the gradient of the output.
type One<L, I> = dyn Fn(&L, &I) -> Result<Option<I>> + Send + Sync;
/// A hook for input and output.
type Both<L, I, O> = dyn Fn(&L, &I, &O) -> Result<Option<O>> + Send + Sync;
/// A hook for the gradients of the input, if it has one, and of the output.
type GradientHook<L> = dyn Fn(&L, Option<&Tensor>, &Tensor) -> Result<Option<Tensor>> + Send + Sync;

/// A hook for the gradients of all tensors of input and output.
type OfAll<L> = dyn Fn(&L, &Grads, &Grads) -> Result<Option<Vec<Option<Tensor>>>> + Send + Sync;
/// The gradients of several tensors. One that does not require a gradient has none.
type Grads = [Option<Tensor>];
/// A value whose tensors are replaced with others.
type Replaced<T> = fn(&T, &dyn Fn(&[Tensor]) -> Vec<Tensor>) -> T;

/// Hooks of one kind with their numbers, in order of registration.
type HookList<H> = Vec<(u64, Arc<H>)>;

struct LayerHooks<L, I, O> {
    next: u64,
    forward_pre: HookList<One<L, I>>,
    forward: HookList<Both<L, I, O>>,
    backward_pre: HookList<One<L, Tensor>>,
    backward: HookList<GradientHook<L>>,
    of_all: HookList<OfAll<L>>,
    /// The replacement of the tensors of input and output; `None` until there is a hook for all gradients.
    replaced: Option<(Replaced<I>, Replaced<O>)>,
}

/// The hooks without their numbers. They run without the lock, so a hook can register or remove others.
fn copied<H: ?Sized>(list: &HookList<H>) -> Vec<Arc<H>> {
    list.iter().map(|(_, hook)| hook.clone()).collect()
}

impl<L: Clone, I, O> Clone for Hooked<L, I, O> {
    /// The same layer and hooks; in a deep copy, clones of them.
    fn clone(&self) -> Hooked<L, I, O> {
        if !places::is_copying() {
            return Hooked { layer: self.layer.clone(), hooks: self.hooks.clone() };
        }
        let layer = Arc::new(L::clone(&self.layer));
        let LayerHooks { next, forward_pre, forward, backward_pre, backward, of_all, replaced } =
            &*lock(&self.hooks);
        let hooks = LayerHooks {
            next: *next,
            forward_pre: forward_pre.clone(),
            forward: forward.clone(),
            backward_pre: backward_pre.clone(),
            backward: backward.clone(),
            of_all: of_all.clone(),
            replaced: *replaced,
        };
        Hooked { layer, hooks: Arc::new(Mutex::new(hooks)) }
    }
}

impl<L, I, O> Hooked<L, I, O>
where
    L: Layer<I, O> + 'static,
    I: 'static,
    O: 'static,
{
    /// Wraps a layer, initially without hooks. Your own layer must implement [`Layer`].
    pub fn new(layer: L) -> Hooked<L, I, O> {
        let hooks = LayerHooks {
            next: 0,
            forward_pre: Vec::new(),
            forward: Vec::new(),
            backward_pre: Vec::new(),
            backward: Vec::new(),
            of_all: Vec::new(),
            replaced: None,
        };
        Hooked { layer: Arc::new(layer), hooks: Arc::new(Mutex::new(hooks)) }
    }

    /// The layer itself.
    pub fn layer(&self) -> &L {
        &self.layer
    }

    /// Calls `hook(layer, input)` before the layer; `Some` replaces the input.
    pub fn register_forward_pre_hook(
        &self,
        hook: impl Fn(&L, &I) -> Result<Option<I>> + Send + Sync + 'static,
    ) -> HookHandle {
        self.register::<One<L, I>>(|hooks| &mut hooks.forward_pre, Arc::new(hook))
    }

    /// Calls `hook(layer, input, output)` after the layer; `Some` replaces the output.
    pub fn register_forward_hook(
        &self,
        hook: impl Fn(&L, &I, &O) -> Result<Option<O>> + Send + Sync + 'static,
    ) -> HookHandle {
        self.register::<Both<L, I, O>>(|hooks| &mut hooks.forward, Arc::new(hook))
    }

    fn register<H: ?Sized + 'static>(
        &self,
        list: fn(&mut LayerHooks<L, I, O>) -> &mut HookList<H>,
        hook: Arc<H>,
    ) -> HookHandle {
        let mut hooks = self.hooks();
        let number = hooks.next;
        hooks.next += 1;
        list(&mut hooks).push((number, hook));
        let hooks = Arc::downgrade(&self.hooks);
        HookHandle::new(move || {
            let Some(hooks) = hooks.upgrade() else { return };
            list(&mut lock(&hooks)).retain(|(other, _)| *other != number);
        })
    }

    fn hooks(&self) -> MutexGuard<'_, LayerHooks<L, I, O>> {
        lock(&self.hooks)
    }

    /// The output for `input`; runs the hooks.
    ///
    /// # Errors
    /// The errors of the layer and of the hooks.
    #[track_caller]
    pub fn forward(&self, input: &I) -> Result<O> {
        let (before, after, passing, of_all) = {
            let hooks = self.hooks();
            let of_all = OfCall {
                layer: self.layer.clone(),
                hooks: copied(&hooks.of_all),
                of_outputs: Mutex::default(),
            };
            let of_all =
                hooks.replaced.filter(|_| !of_all.hooks.is_empty()).map(|how| (Arc::new(of_all), how));
            let passing = Passing {
                layer: self.layer.clone(),
                before: copied(&hooks.backward_pre),
                after: copied(&hooks.backward),
                of_output: Mutex::default(),
            };
            (copied(&hooks.forward_pre), copied(&hooks.forward), passing, of_all)
        };
        // The input, unless a hook replaces it.
        let mut other: Option<I> = None;
        for hook in before {
            other = hook(&self.layer, other.as_ref().unwrap_or(input))?.or(other);
        }
        let watched = !(passing.before.is_empty() && passing.after.is_empty());
        if watched {
            other = on_tensor(other.as_ref().unwrap_or(input), place_of_its_own).or(other);
        }
        let mut goes_on = false;
        if let Some((call, (replaced, _))) = &of_all {
            let input = other.as_ref().unwrap_or(input);
            let own = Cell::new(false);
            let passed = replaced(input, &|inputs| {
                own.set(inputs.iter().any(Tensor::requires_grad));
                let call = call.clone();
                passed_through(inputs, move |g| call.inputs_reached(g))
            });
            goes_on = own.get();
            other = Some(passed);
        }
        let input = other.as_ref().unwrap_or(input);
        let mut output = self.layer.forward(input)?;
        for hook in after {
            output = hook(&self.layer, input, &output)?.unwrap_or(output);
        }
        if let Some((call, (_, replaced))) = of_all {
            output = replaced(&output, &|outputs| {
                let call = call.clone();
                passed_through(outputs, move |g| call.outputs_reached(g, goes_on))
            });
        }
        if watched {
            output = on_tensor(&output, place_of_its_own).unwrap_or(output);
            if let (Some(x), Some(y)) = (tensor(input), tensor(&output)) {
                passing.watch(x, y)?;
            }
        }
        Ok(output)
    }
}

impl<L, I, O> Hooked<L, I, O>
where
    L: Layer<I, O> + 'static,
    I: Tensors + 'static,
    O: Tensors + 'static,
{
    /// Calls `hook(layer, grad_inputs, grad_outputs)` when the gradients of the inputs are known: one for
    /// each tensor of the input and of the output, in order. A tensor that requires no gradient, and an
    /// output that is not used, have `None`. `Some` replaces the gradients of the inputs. If no input
    /// requires a gradient, the hook is called when the gradients of the outputs are known, with an empty
    /// list for the inputs.
    ///
    /// ```
    /// use namegrad::nn::Hooked;
    /// use namegrad::prelude::*;
    /// #[derive(Module)]
    /// struct Product;
    ///
    /// impl Layer<(Tensor, Tensor)> for Product {
    ///     fn forward(&self, (a, b): &(Tensor, Tensor)) -> Result<Tensor> {
    ///         a.mul(b)
    ///     }
    /// }
    /// let layer = Hooked::new(Product);
    /// // The second factor gets no gradient.
    /// layer.register_gradient_hook(|_, grad_inputs, _| Ok(Some(vec![grad_inputs[0].clone(), None])));
    /// let (a, b) = (Tensor::new(2.0)?.requiring_grad()?, Tensor::new(3.0)?.requiring_grad()?);
    /// layer.forward(&(a.clone(), b.clone()))?.backward()?;
    /// assert_eq!(a.grad().unwrap().item::<f32>()?, 3.0);
    /// assert_eq!(b.grad().map_or(0.0, |g| g.item::<f32>().unwrap()), 0.0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn register_gradient_hook(
        &self,
        hook: impl Fn(&L, &[Option<Tensor>], &[Option<Tensor>]) -> Result<Option<Vec<Option<Tensor>>>>
        + Send
        + Sync
        + 'static,
    ) -> HookHandle {
        self.hooks().replaced = Some((replaced::<I>, replaced::<O>));
        self.register::<OfAll<L>>(|hooks| &mut hooks.of_all, Arc::new(hook))
    }
}

impl<L: Layer + 'static> Hooked<L> {
    /// Calls `hook(layer, grad_output)` before the backward pass of the layer. `Some` replaces the gradient
    /// and must have its sizes and dtype, as in [`Tensor::register_hook`].
    pub fn register_full_backward_pre_hook(
        &self,
        hook: impl Fn(&L, &Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> HookHandle {
        self.register::<One<L, Tensor>>(|hooks| &mut hooks.backward_pre, Arc::new(hook))
    }

    /// Calls `hook(layer, grad_input, grad_output)` when the gradient of the input is known; `Some` replaces
    /// the gradient of the input. If the input requires no gradient, the hook gets `None` for it and is
    /// called when the gradient of the output is known.
    ///
    /// ```
    /// use namegrad::nn::Hooked;
    /// use namegrad::prelude::*;
    /// let layer = Hooked::new(Tanh);
    /// // Limits the gradients that flow back through the layer to ±1.
    /// layer.register_full_backward_hook(|_, grad_input, _| {
    ///     grad_input.map(|g| g.clamp(-1.0, 1.0)).transpose()
    /// });
    /// let x = Tensor::zeros([("N", 3)])?.requiring_grad()?;
    /// layer.forward(&x)?.mul(100.0)?.sum("N")?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [1.0; 3]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn register_full_backward_hook(
        &self,
        hook: impl Fn(&L, Option<&Tensor>, &Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> HookHandle {
        self.register::<GradientHook<L>>(|hooks| &mut hooks.backward, Arc::new(hook))
    }
}

/// The value, if it is a tensor: only tensors have gradient hooks.
fn tensor<T: 'static>(value: &T) -> Option<&Tensor> {
    (value as &dyn Any).downcast_ref()
}

/// Applies `f` to the value if it is a tensor.
#[track_caller]
fn on_tensor<T: 'static>(value: &T, f: fn(&Tensor) -> Tensor) -> Option<T> {
    let made: Box<dyn Any> = Box::new(f(tensor(value)?));
    made.downcast().ok().map(|made| *made)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same tensor with a new record on the tape, which only the gradients of this call reach. The input may
/// be used elsewhere, and a layer may return its input.
#[track_caller]
fn place_of_its_own(x: &Tensor) -> Tensor {
    Op::new("hooked", x.value().clone()).input(x, |g, _| Ok(g.clone())).output()
}

/// The data for the backward pass of one call.
struct Passing<L> {
    layer: Arc<L>,
    before: Vec<Arc<One<L, Tensor>>>,
    after: Vec<Arc<GradientHook<L>>>,
    /// The gradient of the output until the gradient of the input is known, for each thread that runs a
    /// backward pass.
    of_output: Mutex<HashMap<ThreadId, Tensor>>,
}

impl<L: Send + Sync + 'static> Passing<L> {
    #[track_caller]
    fn watch(self, x: &Tensor, y: &Tensor) -> Result<()> {
        if !y.requires_grad() {
            return Ok(());
        }
        let (passing, goes_on) = (Arc::new(self), x.requires_grad());
        let of_output = passing.clone();
        y.register_hook(move |grad_output| of_output.output_reached(grad_output, goes_on))?;
        if goes_on {
            x.register_hook(move |grad_input| passing.input_reached(grad_input))?;
        }
        Ok(())
    }

    fn output_reached(&self, grad_output: &Tensor, goes_on: bool) -> Result<Option<Tensor>> {
        let mut grad_output = grad_output.clone();
        for hook in &self.before {
            grad_output = hook(&self.layer, &grad_output)?.unwrap_or(grad_output);
        }
        if goes_on && !self.after.is_empty() {
            lock(&self.of_output).insert(std::thread::current().id(), grad_output.clone());
        } else {
            for hook in &self.after {
                hook(&self.layer, None, &grad_output)?;
            }
        }
        Ok(Some(grad_output))
    }

    fn input_reached(&self, grad_input: &Tensor) -> Result<Option<Tensor>> {
        // A gradient that reaches the input other than through the output, as in a second derivative, does
        // not belong to this call.
        let own = lock(&self.of_output).remove(&std::thread::current().id());
        let Some(grad_output) = own else { return Ok(None) };
        let mut grad_input = grad_input.clone();
        for hook in &self.after {
            grad_input = hook(&self.layer, Some(&grad_input), &grad_output)?.unwrap_or(grad_input);
        }
        Ok(Some(grad_input))
    }
}

/// The value with each tensor replaced by what `f` makes of it.
fn replaced<T: Tensors>(value: &T, f: &dyn Fn(&[Tensor]) -> Vec<Tensor>) -> T {
    let mut made = f(&value.list()).into_iter();
    value.map(&mut |x| made.next().unwrap_or_else(|| x.clone()))
}

/// The same tensors with new records on the tape, whose gradients `f` gets together and may change.
#[track_caller]
fn passed_through(
    tensors: &[Tensor],
    f: impl Fn(&Grads) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
) -> Vec<Tensor> {
    let values = tensors.iter().map(|x| x.value().clone()).collect();
    let inputs: Vec<Option<&Tensor>> = tensors.iter().map(Some).collect();
    Op::with_outputs("hooked", values).inputs(&inputs, move |gradients, _| f(gradients))
}

/// The data for the backward pass of one call of a layer with any inputs and outputs.
struct OfCall<L> {
    layer: Arc<L>,
    hooks: Vec<Arc<OfAll<L>>>,
    /// The gradients of the outputs until those of the inputs are known, for each thread that runs a backward
    /// pass.
    of_outputs: Mutex<HashMap<ThreadId, Vec<Option<Tensor>>>>,
}

impl<L> OfCall<L> {
    fn outputs_reached(&self, gradients: &Grads, goes_on: bool) -> Result<Vec<Option<Tensor>>> {
        if goes_on {
            lock(&self.of_outputs).insert(std::thread::current().id(), gradients.to_vec());
        } else {
            for hook in &self.hooks {
                hook(&self.layer, &[], gradients)?;
            }
        }
        Ok(gradients.to_vec())
    }

    fn inputs_reached(&self, gradients: &Grads) -> Result<Vec<Option<Tensor>>> {
        let mut of_inputs = gradients.to_vec();
        let own = lock(&self.of_outputs).remove(&std::thread::current().id());
        let Some(of_outputs) = own else { return Ok(of_inputs) };
        for hook in &self.hooks {
            of_inputs = hook(&self.layer, &of_inputs, &of_outputs)?.unwrap_or(of_inputs);
        }
        Ok(of_inputs)
    }
}

impl<L: Layer<I, O>, I, O> fmt::Display for Hooked<L, I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.layer.fmt(f)
    }
}

/// The layer itself, with the same paths.
impl<L: Layer<I, O>, I, O> ModuleFields for Hooked<L, I, O> {
    fn fields(&self, visitor: &mut Visitor<'_>) {
        self.layer.fields(visitor);
    }

    fn describe(&self) -> String {
        self.layer.describe()
    }
}

impl<L, I, O> Layer<I, O> for Hooked<L, I, O>
where
    L: Layer<I, O> + 'static,
    I: 'static,
    O: 'static,
{
    #[track_caller]
    fn forward(&self, input: &I) -> Result<O> {
        Hooked::forward(self, input)
    }
}
