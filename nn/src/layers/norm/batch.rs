//! Batch normalization.

use super::*;

/// Batch normalization: `(x - mean) / √(var + eps) weight + bias` for each channel, with the mean and the
/// variance over all other dims. It replaces PyTorch's `BatchNorm1d`, `BatchNorm2d` and `BatchNorm3d`.
///
/// In training, mean and variance are those of the input, and the running statistics move towards them. In
/// evaluation, they are the running statistics.
///
/// # Shapes
/// - `x`: any dims that include the channel dim, in any position
/// - result: the dims of `x`
///
/// If the layer's dim or dim 1 of `x` is unnamed, dim 1 of `x` is the channel dim.
///
/// # Parameters
/// - `weight`: `[channels]`, ones
/// - `bias`: `[channels]`, zeros
/// - `running_mean`, `running_var`: buffers `[channels]`, zeros and ones. The running variance is divided by
///   the number of elements minus one.
/// - `num_batches_tracked`: a buffer, the number of batches in training. Unlike in PyTorch, an empty
///   batch does not count.
///
/// # Source
/// Ioffe, Szegedy, *Batch Normalization* (2015), algorithms 1 and 2.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let norm = BatchNorm::new(("F", 3))?;
/// let images = Tensor::randn([("N", 2), ("F", 3), ("H", 5), ("W", 5)])?;
/// let y = norm.forward(&images)?;
/// assert_eq!(y.shape(), images.shape());
/// assert!(y.mean(["N", "H", "W"])?.abs()?.amax(..)?.item::<f64>()? < 1e-5);
/// // The order of the dims does not matter.
/// let last = norm.forward(&images.align_to(["N", "H", "W", "F"])?)?;
/// let distance = last.align_to(["N", "F", "H", "W"])?.sub(&y)?.abs()?.amax(..)?;
/// assert!(distance.item::<f64>()? < 1e-5); // sums in another order
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = dim_text(self.body.dim), layer)]
pub struct BatchNorm {
    #[module(flatten)]
    body: ChannelNorm,
}

/// A builder for [`BatchNorm`]; see [`BatchNorm::builder`].
///
/// ```
/// use namegrad::prelude::*;
/// let norm = BatchNorm::builder(("F", 3)).momentum(None).affine(false).build()?;
/// assert!(norm.weight().is_none());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Setters)]
pub struct BatchNormBuilder {
    /// The dim of the channels, a size with or without a name.
    dim: Result<Named>,
    /// The number that is added to the variance; the default is `1e-5`.
    #[setters(default = 1e-5)]
    eps: f64,
    /// The share of a batch in the running statistics; the default is `0.1`. With `None`, they are the
    /// average of all batches.
    #[setters(into, default = Some(0.1))]
    momentum: Option<f64>,
    /// Whether the layer has a weight and a bias; the default is `true`.
    #[setters(default = true)]
    affine: bool,
    /// Whether the layer has running statistics; the default is `true`. Without them, it uses those of the
    /// input in evaluation, too.
    #[setters(default = true)]
    track_running_stats: bool,
    /// The dtype of the parameters and the running statistics; the default is the default dtype.
    dtype: DType,
}

impl BatchNormBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size,
    /// [`ErrorKind::DType`] for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<BatchNorm> {
        let (numbers, parts) = ((self.eps, self.momentum), (self.affine, self.track_running_stats));
        let body = ChannelNorm::new("BatchNorm", self.dim?, numbers, parts, self.dtype)?;
        Ok(BatchNorm { body })
    }
}

impl BatchNorm {
    /// The weight, if the layer has one.
    pub fn weight(&self) -> Option<&Parameter> {
        self.body.affine.weight.as_ref()
    }

    /// The bias, if the layer has one.
    pub fn bias(&self) -> Option<&Parameter> {
        self.body.affine.bias.as_ref()
    }

    /// The running mean, if the layer has one.
    pub fn running_mean(&self) -> Option<&Buffer> {
        self.body.running.as_ref().map(|running| &running.mean)
    }

    /// The running variance, if the layer has one.
    pub fn running_var(&self) -> Option<&Buffer> {
        self.body.running.as_ref().map(|running| &running.var)
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` has no channel dim, [`ErrorKind::Shape`] if it has another size or,
    /// in training, if there is only one element per channel.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.body.forward(x, None)
    }
}
