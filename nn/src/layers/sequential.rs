//! Layers one after the other.

use super::Layer;
use crate::module::{Module, Visitor};
use namegrad_autograd::Tensor;
use namegrad_core::Result;

/// Runs layers one after the other; their paths are `0`, `1`, ... or the names given.
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
#[derive(Default)]
pub struct Sequential(Vec<(String, Box<dyn Layer>)>);

impl Sequential {
    /// No layers: the output is the input.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// Appends a layer, whose path is its number.
    pub fn then(self, layer: impl Layer + 'static) -> Sequential {
        let number = self.0.len().to_string();
        self.then_named(number, layer)
    }

    /// Appends a layer with a name as its path.
    pub fn then_named(mut self, name: impl Into<String>, layer: impl Layer + 'static) -> Sequential {
        self.0.push((name.into(), Box::new(layer)));
        self
    }

    /// The number of layers.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no layers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The output for `x`.
    ///
    /// # Errors
    /// Those of the layers.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut y = x.clone();
        for (_, layer) in &self.0 {
            y = layer.forward(&y)?;
        }
        Ok(y)
    }
}

impl Module for Sequential {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.0.iter().for_each(|(name, layer)| visitor.field(name, layer));
    }

    fn describe(&self) -> String {
        "Sequential".into()
    }
}

impl Layer for Sequential {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Sequential::forward(self, x)
    }
}
