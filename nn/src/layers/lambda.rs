//! A layer from a closure.

use super::*;

/// Calls a closure: a layer for a line of code in a [`Sequential`](super::Sequential).
///
/// The closure has no parameters that a model could find, save or train, and does not know whether the model
/// is being trained. A layer that needs these is a struct that implements
/// [`Layer`](crate::Layer). A clone, and a [`deep_copy`](Module::deep_copy), calls the same closure.
///
/// # Shapes
/// - `x`: what the closure takes
/// - result: what the closure returns
///
/// # Parameters
/// None.
///
/// # Examples
/// ```
/// use namegrad::nn::Lambda;
/// use namegrad::prelude::*;
/// let model = Sequential::new()
///     .then(Linear::new(("in", 3), ("hidden", 4))?)
///     .then(Lambda::new(|x| x.square()))
///     .then(Lambda::new(|x| x.div(x.sum(keep("hidden"))?)));
/// let y = model.forward(&Tensor::rand([("N", 2), ("in", 3)])?)?;
/// assert!(y.sum("hidden")?.allclose(1.0)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Module)]
#[module(crate = crate, layer, debug)]
pub struct Lambda {
    #[module(skip)]
    f: Arc<LambdaFn>,
    path: ModulePath,
}

type LambdaFn = dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync;

impl Lambda {
    /// A layer that calls `f`.
    pub fn new(f: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static) -> Lambda {
        Lambda { f: Arc::new(f), path: ModulePath::new() }
    }

    /// Calls the closure on `x`.
    ///
    /// # Errors
    /// The errors of the closure, with its own lines.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        (self.f)(x)
    }
}
