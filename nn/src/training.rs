//! Facts that a model tells its layers: whether they are being trained ([`Training`]), whether other processes
//! have parts of their batch ([`Synchronized`]), and their paths ([`ModulePath`]).

use crate::layers::within;
use crate::{Entry, Field, Layer, Running, Visitor, trace};
use namegrad_autograd::{Tensor, places};
use namegrad_core::callback::Callback;
use namegrad_core::recycled::DropByCall;
use namegrad_core::{Error, Result};
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Whether a layer is being trained. [`train`](crate::Module::train) and [`eval`](crate::Module::eval) of the
/// model set it. A new layer is in training mode.
///
/// # Examples
/// ```
/// use namegrad::nn::Training;
/// use namegrad::prelude::*;
///
/// /// Adds noise while it is being trained.
/// #[derive(Module)]
/// struct Noise {
///     std: f64,
///     training: Training,
/// }
///
/// impl Noise {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         if !self.training.get() {
///             return Ok(x.clone());
///         }
///         x.add(&Tensor::randn(x.shape())?.mul(self.std)?)
///     }
/// }
///
/// let noise = Noise { std: 0.1, training: Training::new() };
/// let x = Tensor::ones([("N", 3)])?;
/// assert!(!noise.forward(&x)?.equal(&x)?);
/// noise.eval();
/// assert!(noise.forward(&x)?.equal(&x)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Training(AtomicBool);

impl Training {
    /// A flag in training mode.
    pub fn new() -> Training {
        Training(AtomicBool::new(true))
    }

    /// Whether the layer is being trained.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Switches to training mode (`true`) or evaluation mode (`false`).
    pub fn set(&self, training: bool) {
        self.0.store(training, Ordering::Relaxed);
    }
}

impl Default for Training {
    fn default() -> Training {
        Training::new()
    }
}

impl Clone for Training {
    /// Another flag with the same value.
    fn clone(&self) -> Training {
        Training(AtomicBool::new(self.get()))
    }
}

impl Field for Training {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.entry(Entry::Training(self));
    }
}

/// A sum over processes, with a derivative.
type SumOverProcesses = Arc<dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync>;

/// How a batch normalization adds up sums over a batch that is divided among processes. By default, it
/// does not: each process has the statistics of its own part. Libraries for several processes find it as
/// [`Entry::Synchronized`] and set it.
///
/// ```
/// use namegrad::nn::Entry;
/// use namegrad::prelude::*;
/// let norm = BatchNorm::new(("C", 3))?;
/// norm.entries(&mut |_, entry| {
///     if let Entry::Synchronized(sums) = entry {
///         sums.set(Some(|sum: &Tensor| sum.mul(2.0))); // as if another process had the same part
///     }
/// });
/// let y = norm.forward(&Tensor::randn([("N", 4), ("C", 3)])?)?;
/// assert!(y.mean("N")?.abs()?.amax(..)?.item::<f64>()? < 1e-5);
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
pub struct Synchronized(Arc<RwLock<Option<SumOverProcesses>>>);

impl Clone for Synchronized {
    /// The same switch; in a deep copy, another one with the same function.
    fn clone(&self) -> Synchronized {
        let place = Arc::as_ptr(&self.0) as usize;
        places::copy_of(place, || Synchronized(Arc::new(RwLock::new(self.get()))))
            .unwrap_or_else(|| Synchronized(self.0.clone()))
    }
}

impl Synchronized {
    /// Sums over this process alone.
    pub fn new() -> Synchronized {
        Synchronized::default()
    }

    /// Sets the function from a sum over this process to that over all, or removes it.
    pub fn set(&self, sum: Option<impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static>) {
        let sum = sum.map(|sum| -> SumOverProcesses { Arc::new(sum) });
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = sum;
    }

    /// The function, if there is one.
    pub fn get(&self) -> Option<SumOverProcesses> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl std::fmt::Debug for Synchronized {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Synchronized").field(&self.get().is_some()).finish()
    }
}

impl Field for Synchronized {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.entry(Entry::Synchronized(self));
    }
}

/// The path of a layer in its model, for the errors of the layer.
///
/// Every walk over a model ([`parameters`](crate::Module::parameters),
/// [`state_dict`](crate::Module::state_dict), [`eval`](crate::Module::eval),
/// [`summary`](crate::Module::summary)) tells the layers their paths. If a layer gets several paths, it keeps
/// the longest, which is the path in the outermost model.
///
/// Before the first walk a layer has no path: it does not know the model that holds it, and the `forward` of
/// your own model is your own code. Building an optimizer is a walk, so training has paths. To have them in
/// errors of a `forward` before that, call `model.train()` once. A [`Sequential`](crate::Sequential) needs no
/// walk: it adds the path to the errors of its layers.
///
/// # Examples
/// ```
/// use namegrad::nn::ModulePath;
/// use namegrad::prelude::*;
///
/// #[derive(Module, Default)]
/// struct Scale {
///     path: ModulePath,
/// }
///
/// #[derive(Module)]
/// struct Model {
///     blocks: Vec<Scale>,
/// }
/// let model = Model { blocks: vec![Scale::default()] };
/// assert_eq!(model.blocks[0].path.get(), None);
/// model.eval();
/// assert_eq!(model.blocks[0].path.get().as_deref(), Some("blocks.0"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ModulePath(DropByCall<RwLock<Option<Arc<str>>>>);

impl ModulePath {
    /// No path yet.
    pub fn new() -> ModulePath {
        ModulePath::default()
    }

    /// The path, if there was a walk over the layer or its model. It is empty if there was a walk over the
    /// layer, but not over a model.
    #[inline(never)]
    pub fn get(&self) -> Option<Arc<str>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says that the layer runs until the result is dropped. [`summary_of`](crate::Module::summary_of) asks
    /// for it: it counts what a layer computes, and shows the last tensor that it computes as its output,
    /// unless [`gives`](Running::gives) says otherwise. The first line of `forward` is
    /// `let _running = self.path.running();`. In a profile, ops that do not know the line that called them,
    /// such as those of a function pointer, count for this line.
    ///
    /// ```
    /// use namegrad::nn::ModulePath;
    /// use namegrad::prelude::*;
    ///
    /// #[derive(Module, Default)]
    /// struct Gram {
    ///     path: ModulePath,
    /// }
    ///
    /// impl Gram {
    ///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
    ///         let _running = self.path.running();
    ///         x.t()?.mm(x)
    ///     }
    /// }
    ///
    /// #[derive(Module)]
    /// struct Model {
    ///     gram: Gram,
    /// }
    /// let model = Model { gram: Gram::default() };
    /// let summary = model.summary_of(|| model.gram.forward(&Tensor::ones([3, 2])?))?;
    /// assert_eq!(summary.layers()[1].multiply_adds, 2 * 3 * 2);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn running(&self) -> Running {
        trace::enter(self)
    }

    /// Runs the code of a layer. Its errors name the layer, its path and its inputs, and have the line of the
    /// caller.
    #[inline]
    #[track_caller]
    pub(crate) fn run<T>(
        &self,
        layer: &'static str,
        inputs: &[&Tensor],
        f: &dyn for<'r> Callback<(&'r Running,), Result<T>>,
    ) -> Result<T> {
        let running = self.running();
        match f.call_with((&running,)) {
            Ok(made) => Ok(made),
            Err(error) => Err(within(error, layer, inputs, self).at(Location::caller())),
        }
    }

    /// The output of the layer `name` inside the layer at this path, whose errors have the whole path.
    #[track_caller]
    pub(crate) fn forward_inner(&self, name: &str, layer: &dyn Layer, x: &Tensor) -> Result<Tensor> {
        let _running = trace::enter_inner(self, name);
        layer.forward(x).map_err(|error| self.name_inner(name, error))
    }

    #[cold]
    fn name_inner(&self, name: &str, error: Error) -> Error {
        const PLACE: &str = "the layer '";
        // What a layer says of itself before it knows its path.
        if self.get().is_none()
            && let Some(rest) = error.message().strip_prefix("the layer (")
        {
            let message = format!("{PLACE}{name}' ({rest}");
            return error.with_message(message);
        }
        match (self.get(), error.message().strip_prefix(PLACE)) {
            // The layer knows its path, and the error begins with it.
            (Some(_), Some(_)) => error,
            (Some(path), None) if !path.is_empty() => error.context(format_args!("{PLACE}{path}.{name}': ")),
            (_, None) => error.context(format_args!("{PLACE}{name}': ")),
            (None, Some(inner)) => {
                let message = format!("{PLACE}{name}.{inner}");
                error.with_message(message)
            }
        }
    }

    fn learn(&self, path: &str) {
        if self.get().is_none_or(|known| path.len() > known.len()) {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(path.into());
        }
    }
}

impl Clone for ModulePath {
    /// A separate path, which is the same at first.
    #[inline(never)]
    fn clone(&self) -> ModulePath {
        ModulePath(DropByCall::new(RwLock::new(self.get())))
    }
}

impl Field for ModulePath {
    /// The path of the field is `blocks.0.path`; the path of the layer is `blocks.0`.
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.learn(visitor.path.rsplit_once('.').map_or("", |(layer, _)| layer));
        visitor.entry(Entry::Path(self));
    }
}
