//! The cross entropy of a linear map, as a layer with the weight of the map.

use super::*;

/// The cross entropy of logits that are a linear map of the input, such as the last layer of a model with its
/// loss: [`F::linear_cross_entropy`](crate::functional::linear_cross_entropy) as a layer.
///
/// # Shapes
/// - `x`: any dims that include the input dim, which is found by name; if it or the layer's is unnamed, the
///   last
/// - `target`: class indices, the other dims; or probabilities, with the class dim in place of the input dim
/// - result: one number, or without reduction the other dims
///
/// # Parameters
/// - `linear.weight`, `linear.bias`: those of a [`Linear`]; by default there is no bias. The weight of the
///   classes, if there is one, is a buffer: `weight`.
///
/// # Examples
/// ```
/// use namegrad::nn::LinearCrossEntropyLoss;
/// use namegrad::prelude::*;
/// let loss = LinearCrossEntropyLoss::new(("embed", 4), ("class", 3))?;
/// let x = Tensor::randn([("N", 2), ("embed", 4)])?;
/// let target = Tensor::new([2, 0])?.refine_names(["N"])?;
/// let logits = loss.linear().forward(&x)?;
/// assert!(loss.forward(&x, &target)?.allclose(&F::cross_entropy(&logits, &target, "class")?)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = LinearCrossEntropyLoss::text, layer(x, target), get(linear))]
pub struct LinearCrossEntropyLoss {
    /// The linear map to the logits.
    linear: Linear,
    weight: Option<Buffer>,
    config: LinearCrossEntropyLossConfig,
    path: ModulePath,
}

/// A builder for [`LinearCrossEntropyLoss`]; see [`LinearCrossEntropyLoss::builder`].
#[derive(Clone, Debug, Setters)]
struct LinearCrossEntropyLossConfig {
    /// The input dim, a size with or without a name.
    input: Named,
    /// The dim of the classes, a size with or without a name.
    classes: Named,
    /// Whether the linear map has a bias; the default is `false`.
    bias: bool,
    /// The dtype of the parameters; the default is the default dtype.
    dtype: DType,
    /// The weight of each class.
    weight: Option<Tensor>,
    /// The target that is ignored; the default is -100.
    #[setters(default = -100)]
    ignore_index: isize,
    /// The share of the target that is spread over all classes; the default is 0.
    label_smoothing: f64,
    /// The reduction of the losses; the default is the mean.
    reduction: F::Reduction,
}

impl LinearCrossEntropyLossBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// The errors of [`LinearBuilder::build`].
    #[track_caller]
    pub fn build(self) -> Result<LinearCrossEntropyLoss> {
        let mut config = self.config()?;
        let linear = Linear::builder(open(config.input), open(config.classes));
        let linear = linear.bias(config.bias).dtype(config.dtype).build()?;
        let weight = config.weight.take().map(Buffer::new);
        Ok(LinearCrossEntropyLoss { linear, weight, config, path: ModulePath::new() })
    }
}

impl LinearCrossEntropyLoss {
    /// The loss.
    ///
    /// # Errors
    /// The errors of [`Linear::forward`] and of [`F::cross_entropy`](crate::functional::cross_entropy).
    #[track_caller]
    pub fn forward(&self, x: &Tensor, target: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        let logits = self.linear.forward(x)?;
        let class_dim = self.linear.input_dim(x)?;
        let weight = self.weight.as_ref().map(|weight| Cow::Owned(weight.tensor()));
        let LinearCrossEntropyLossConfig { ignore_index, label_smoothing, reduction, .. } = self.config;
        let options = CrossEntropyOptions { weight, ignore_index, label_smoothing, reduction };
        F::cross_entropy_with(&logits, target, class_dim, options)
            .map_err(|error| within(error, "LinearCrossEntropyLoss", &[x, target], &self.path))
    }

    fn text(&self) -> String {
        let LinearCrossEntropyLossConfig { ignore_index, label_smoothing, reduction, .. } = &self.config;
        let settings: [(&str, &dyn Debug); 3] =
            [("ignore_index", ignore_index), ("label_smoothing", label_smoothing), ("reduction", reduction)];
        described("LinearCrossEntropyLoss", &settings)
    }
}
