//! [`Hooked`]: a layer with functions that are called with its values and gradients.

use super::*;
use namegrad_autograd::{HookHandle, Op, called_here, places};
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::Location;
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

/// A hook of one of the four kinds.
enum Hook<L, I, O> {
    BeforeForward(Box<OfOne<L, I>>),
    AfterForward(Box<OfBoth<L, I, O>>),
    BeforeBackward(Box<OfOne<L, Tensor>>),
    AfterBackward(Box<OfGradients<L>>),
}

/// A hook for one value: the input, or the gradient of the output.
type OfOne<L, T> = dyn Fn(&L, &T) -> Result<Option<T>> + Send + Sync;
/// A hook for input and output.
type OfBoth<L, I, O> = dyn Fn(&L, &I, &O) -> Result<Option<O>> + Send + Sync;
/// A hook for the gradients of all tensors of input and output.
type OfGradients<L> = dyn Fn(&L, &Grads, &Grads) -> Result<Option<NewGrads>> + Send + Sync;
/// The gradients of several tensors. One that does not require a gradient has none.
type Grads = [Option<Tensor>];
/// The gradients that take their place.
type NewGrads = Vec<Option<Tensor>>;
/// A value whose tensors are replaced with others.
type Replaced<T> = fn(&T, &dyn Fn(&[Tensor]) -> Vec<Tensor>) -> T;

struct LayerHooks<L, I, O> {
    /// The hooks, in order of registration.
    list: Vec<Arc<Hook<L, I, O>>>,
    /// The replacement of the tensors of input and output; `None` until there is a hook for gradients.
    replaced: Option<(Replaced<I>, Replaced<O>)>,
}

impl<L: Clone, I, O> Clone for Hooked<L, I, O> {
    /// The same layer and hooks; in a deep copy, clones of them.
    fn clone(&self) -> Hooked<L, I, O> {
        if !places::is_copying() {
            return Hooked { layer: self.layer.clone(), hooks: self.hooks.clone() };
        }
        let hooks = lock(&self.hooks);
        let hooks = LayerHooks { list: hooks.list.clone(), ..*hooks };
        Hooked { layer: Arc::new(L::clone(&self.layer)), hooks: Arc::new(Mutex::new(hooks)) }
    }
}

impl<L: Layer<I, O> + 'static, I: 'static, O: 'static> Hooked<L, I, O> {
    /// Wraps a layer, initially without hooks. Your own layer must implement [`Layer`].
    pub fn new(layer: L) -> Hooked<L, I, O> {
        let hooks = LayerHooks { list: Vec::new(), replaced: None };
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
        self.register(Hook::BeforeForward(Box::new(hook)))
    }

    /// Calls `hook(layer, input, output)` after the layer; `Some` replaces the output.
    pub fn register_forward_hook(
        &self,
        hook: impl Fn(&L, &I, &O) -> Result<Option<O>> + Send + Sync + 'static,
    ) -> HookHandle {
        self.register(Hook::AfterForward(Box::new(hook)))
    }

    fn register(&self, hook: Hook<L, I, O>) -> HookHandle {
        let hook = Arc::new(hook);
        let (hooks, own) = (Arc::downgrade(&self.hooks), Arc::downgrade(&hook));
        lock(&self.hooks).list.push(hook);
        HookHandle::new(move || {
            let Some(hooks) = hooks.upgrade() else { return };
            lock(&hooks).list.retain(|other| Arc::as_ptr(other) != own.as_ptr());
        })
    }

    /// The output for `input`; runs the hooks.
    ///
    /// # Errors
    /// The errors of the layer and of the hooks.
    #[track_caller]
    pub fn forward(&self, input: &I) -> Result<O> {
        let _called = called_here(); // for the ops in closures
        let own = lock(&self.hooks);
        let (hooks, replaced) =
            (own.list.clone(), own.replaced.filter(|_| own.list.iter().any(is_of_gradients)));
        drop(own); // hooks run without the lock, so that they can register or remove others
        // The input, unless a hook replaces it.
        let mut other: Option<I> = None;
        for hook in &hooks {
            if let Hook::BeforeForward(hook) = &**hook {
                other = hook(&self.layer, other.as_ref().unwrap_or(input))?.or(other);
            }
        }
        let (layer, of_outputs, at) = (self.layer.clone(), Mutex::default(), Location::caller());
        let call = Arc::new(HookedCall { layer, hooks, of_outputs, at });
        let goes_on = Cell::new(false);
        if let Some((replaced, _)) = replaced {
            let passed = replaced(other.as_ref().unwrap_or(input), &|inputs| {
                goes_on.set(inputs.iter().any(Tensor::requires_grad));
                let call = call.clone();
                passed_through(inputs, move |g| call.inputs_reached(g))
            });
            other = Some(passed);
        }
        let input = other.as_ref().unwrap_or(input);
        let mut output = self.layer.forward(input)?;
        for hook in &call.hooks {
            if let Hook::AfterForward(hook) = &**hook {
                output = hook(&self.layer, input, &output)?.unwrap_or(output);
            }
        }
        if let Some((_, replaced)) = replaced {
            output = replaced(&output, &|outputs| {
                let (call, goes_on) = (call.clone(), goes_on.get());
                passed_through(outputs, move |g| call.outputs_reached(g, goes_on))
            });
        }
        Ok(output)
    }
}

impl<L: Layer<I, O> + 'static, I: Tensors + 'static, O: Tensors + 'static> Hooked<L, I, O> {
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
        self.register_of_gradients(Hook::AfterBackward(Box::new(hook)))
    }

    fn register_of_gradients(&self, hook: Hook<L, I, O>) -> HookHandle {
        lock(&self.hooks).replaced = Some((replaced::<I>, replaced::<O>));
        self.register(hook)
    }
}

impl<L: Layer + 'static> Hooked<L> {
    /// Calls `hook(layer, grad_output)` before the backward pass of the layer. `Some` replaces the gradient
    /// and must have its sizes and dtype, as in [`Tensor::register_hook`].
    pub fn register_full_backward_pre_hook(
        &self,
        hook: impl Fn(&L, &Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> HookHandle {
        self.register_of_gradients(Hook::BeforeBackward(Box::new(hook)))
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
        self.register_gradient_hook(move |layer, of_input, of_output| {
            let Some(Some(of_output)) = of_output.first() else { return Ok(None) };
            let of_input = of_input.first().and_then(Option::as_ref);
            Ok(hook(layer, of_input, of_output)?.map(|gradient| vec![Some(gradient)]))
        })
    }
}

fn is_of_gradients<L, I, O>(hook: &Arc<Hook<L, I, O>>) -> bool {
    matches!(**hook, Hook::BeforeBackward(_) | Hook::AfterBackward(_))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The value with each tensor replaced by what `f` makes of it.
fn replaced<T: Tensors>(value: &T, f: &dyn Fn(&[Tensor]) -> Vec<Tensor>) -> T {
    let mut made = f(&value.list()).into_iter();
    value.map(&mut |x| made.next().unwrap_or_else(|| x.clone()))
}

/// The same tensors with new records on the tape, which only the gradients of this call reach: the input may
/// be used elsewhere, and a layer may return its input. `f` gets the gradients together and may change them.
#[track_caller]
fn passed_through(
    tensors: &[Tensor],
    f: impl Fn(&Grads) -> Result<NewGrads> + Send + Sync + 'static,
) -> Vec<Tensor> {
    let values = crate::list(tensors.iter().map(|x| x.value().clone()));
    let inputs: Vec<Option<&Tensor>> = crate::list(tensors.iter().map(Some));
    Op::with_outputs("hooked", values).inputs(&inputs, move |gradients, _| f(gradients))
}

/// The data for the backward pass of one call.
struct HookedCall<L, I, O> {
    layer: Arc<L>,
    hooks: Vec<Arc<Hook<L, I, O>>>,
    /// The gradients of the outputs until those of the inputs are known, for each thread that runs a backward
    /// pass.
    of_outputs: Mutex<HashMap<ThreadId, NewGrads>>,
    /// The line of the call, for errors of the backward pass.
    at: &'static Location<'static>,
}

impl<L, I, O> HookedCall<L, I, O> {
    fn outputs_reached(&self, gradients: &Grads, goes_on: bool) -> Result<NewGrads> {
        let mut of_outputs = gradients.to_vec();
        for hook in &self.hooks {
            if let (Hook::BeforeBackward(hook), [Some(of_output)]) = (&**hook, &mut of_outputs[..])
                && let Some(new) = hook(&self.layer, of_output)?
            {
                self.check_like(of_output, &new)?;
                *of_output = new;
            }
        }
        if goes_on {
            lock(&self.of_outputs).insert(std::thread::current().id(), of_outputs.clone());
            return Ok(of_outputs);
        }
        self.after_backward(Vec::new(), &of_outputs)?;
        Ok(of_outputs)
    }

    fn inputs_reached(&self, gradients: &Grads) -> Result<NewGrads> {
        // A gradient that reaches the input other than through the output, as in a second derivative, does
        // not belong to this call.
        let of_outputs = lock(&self.of_outputs).remove(&std::thread::current().id());
        let Some(of_outputs) = of_outputs else { return Ok(gradients.to_vec()) };
        self.after_backward(gradients.to_vec(), &of_outputs)
    }

    fn after_backward(&self, mut of_inputs: NewGrads, of_outputs: &Grads) -> Result<NewGrads> {
        for hook in &self.hooks {
            let Hook::AfterBackward(hook) = &**hook else { continue };
            let replaced = hook(&self.layer, &of_inputs, of_outputs)?.filter(|_| !of_inputs.is_empty());
            let Some(replaced) = replaced else { continue };
            for (old, new) in of_inputs.iter().zip(&replaced) {
                if let (Some(old), Some(new)) = (old, new) {
                    self.check_like(old, new)?;
                }
            }
            of_inputs = replaced;
        }
        Ok(of_inputs)
    }

    /// Checks a gradient that replaces another, like [`Tensor::register_hook`] does.
    fn check_like(&self, old: &Tensor, new: &Tensor) -> Result<()> {
        let message = if old.sizes() != new.sizes() {
            format!("a hook changed the sizes of a gradient from {:?} to {:?}", old.sizes(), new.sizes())
        } else if old.dtype() != new.dtype() {
            format!("a hook changed the dtype of a gradient from {} to {}", old.dtype(), new.dtype())
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Autograd, "register_hook", message).at(self.at))
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

impl<L: Layer<I, O> + 'static, I: 'static, O: 'static> Layer<I, O> for Hooked<L, I, O> {
    #[track_caller]
    fn forward(&self, input: &I) -> Result<O> {
        Hooked::forward(self, input)
    }
}
