//! A sequence of layers.

use super::*;
use namegrad_autograd::places;

/// Runs layers from tensor to tensor one after another. Their paths are `0`, `1`, ... or the given names.
///
/// # Shapes
/// - `x`: what the first layer takes
/// - result: the output of the last layer
///
/// # Parameters
/// Those of the layers.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let model = Sequential::new()
///     .then(Linear::new(("pixels", 64), ("hidden", 32))?)
///     .then(Relu)
///     .then_named("head", Linear::new(("hidden", 32), ("classes", 10))?);
/// let y = model.forward(&Tensor::rand([("N", 2), ("pixels", 64)])?)?;
/// assert_eq!(y.shape().to_string(), "[N=2, classes=10]");
/// assert_eq!(model.named_parameters()[2].0, "head.weight");
/// # Ok::<(), Error>(())
/// ```
///
/// An error says in which layer it happened: `the layer 'head.0': ...`. A clone has the same layers; a
/// [`deep_copy`](Module::deep_copy) has its own.
#[derive(Clone, Default, Module)]
#[module(crate = crate, layer, debug)]
pub struct Sequential {
    #[module(flatten)]
    layers: SequentialLayers,
    path: ModulePath,
}

/// Layers with the names that are their paths.
#[derive(Default)]
struct SequentialLayers(Vec<(String, Arc<dyn Layer>)>);

impl Clone for SequentialLayers {
    /// The same layers; in a deep copy, clones of them.
    fn clone(&self) -> SequentialLayers {
        if !places::is_copying() {
            return SequentialLayers(self.0.clone());
        }
        let copy = |layer: &Arc<dyn Layer>| match layer.clone_in_box() {
            Some(copy) => Arc::from(copy),
            None => {
                places::copy_failed(layer.describe());
                layer.clone()
            }
        };
        SequentialLayers(crate::list(self.0.iter().map(|(name, layer)| (name.clone(), copy(layer)))))
    }
}

impl Field for SequentialLayers {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.0.iter().for_each(|(name, layer)| visitor.field(name, layer));
    }
}

impl<L: Layer + 'static> Extend<L> for Sequential {
    fn extend<I: IntoIterator<Item = L>>(&mut self, layers: I) {
        for layer in layers {
            self.layers.0.push((self.len().to_string(), Arc::new(layer)));
        }
    }
}

impl<L: Layer + 'static> FromIterator<L> for Sequential {
    fn from_iter<I: IntoIterator<Item = L>>(layers: I) -> Sequential {
        let mut all = Sequential::new();
        all.extend(layers);
        all
    }
}

impl Sequential {
    /// An empty sequence, whose output is its input.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// Appends a layer, whose path is its number.
    pub fn then(self, layer: impl Layer + 'static) -> Sequential {
        let number = self.len().to_string();
        self.then_named(number, layer)
    }

    /// Appends a layer, whose path is `name`.
    pub fn then_named(mut self, name: impl Into<String>, layer: impl Layer + 'static) -> Sequential {
        self.layers.0.push((name.into(), Arc::new(layer)));
        self
    }

    /// The number of layers.
    pub fn len(&self) -> usize {
        self.layers.0.len()
    }

    /// Whether there are no layers.
    pub fn is_empty(&self) -> bool {
        self.layers.0.is_empty()
    }

    /// The output for `x`.
    ///
    /// # Errors
    /// The errors of the layers.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        let mut y = x.clone();
        for (name, layer) in &self.layers.0 {
            y = self.path.forward_inner(name, &**layer, &y)?;
        }
        Ok(y)
    }
}
