//! Instance normalization.

use super::*;

/// Instance normalization: `(x - mean) / √(var + eps) weight + bias` for each channel of each instance, with
/// the mean and the variance over the layer's dims. It replaces PyTorch's `InstanceNorm1d`, `InstanceNorm2d`
/// and `InstanceNorm3d`.
///
/// # Shapes
/// - `x`: any dims that include the channel dim and the dims to normalize over, in any position. All other
///   dims ride along.
/// - result: the dims of `x`
///
/// If the layer's channel dim or dim 1 of `x` is unnamed, dim 1 of `x` is the channel dim. The dims to
/// normalize over are names or positions, or `..` for all dims but the first and the channels, as in PyTorch:
/// with `..`, the batch is dim 0 whatever its name.
///
/// # Parameters
/// As in PyTorch, there are none unless the builder asks for them:
/// - `weight`: `[channels]`, ones
/// - `bias`: `[channels]`, zeros
/// - `running_mean`, `running_var`, `num_batches_tracked`: buffers, as in [`BatchNorm`]
///
/// # Source
/// Ulyanov, Vedaldi, Lempitsky, *Instance Normalization* (2016).
///
/// # Examples
/// ```
/// use namegrad::nn::InstanceNorm;
/// use namegrad::prelude::*;
/// let norm = InstanceNorm::new(("F", 3), ["H", "W"])?;
/// let images = Tensor::randn([("N", 2), ("H", 5), ("W", 5), ("F", 3)])?;
/// let y = norm.forward(&images)?;
/// assert_eq!(y.shape(), images.shape());
/// assert!(y.mean(["H", "W"])?.abs()?.amax(..)?.item::<f64>()? < 1e-5);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = dim_text(self.body.dim), layer)]
pub struct InstanceNorm {
    #[module(flatten)]
    body: ChannelNorm,
    dims: Dims,
}

/// A builder for [`InstanceNorm`]; see [`InstanceNorm::builder`].
///
/// ```
/// use namegrad::nn::InstanceNorm;
/// use namegrad::prelude::*;
/// let norm = InstanceNorm::builder(("F", 3), "time").affine(true).track_running_stats(true).build()?;
/// assert_eq!(norm.state_dict().len(), 5);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Setters)]
pub struct InstanceNormBuilder {
    /// The dim of the channels, a size with or without a name.
    dim: Result<Named>,
    /// The dims over which it normalizes.
    #[setters(given)]
    dims: Dims,
    /// The number that is added to the variance; the default is `1e-5`.
    #[setters(default = 1e-5)]
    eps: f64,
    /// The share of a batch in the running statistics; the default is `0.1`.
    #[setters(default = 0.1)]
    momentum: f64,
    /// Whether the layer has a weight and a bias; the default is `false`.
    affine: bool,
    /// Whether the layer has running statistics, which it uses in evaluation; the default is `false`.
    track_running_stats: bool,
    /// The dtype of the parameters and the running statistics; the default is the default dtype.
    dtype: DType,
}

impl InstanceNormBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size,
    /// [`ErrorKind::DType`] for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<InstanceNorm> {
        let (numbers, parts) = ((self.eps, Some(self.momentum)), (self.affine, self.track_running_stats));
        let body = ChannelNorm::new("InstanceNorm", self.dim?, numbers, parts, self.dtype)?;
        Ok(InstanceNorm { body, dims: self.dims })
    }
}

impl InstanceNorm {
    /// The weight, if the layer has one.
    pub fn weight(&self) -> Option<&Parameter> {
        self.body.affine.weight.as_ref()
    }

    /// The bias, if the layer has one.
    pub fn bias(&self) -> Option<&Parameter> {
        self.body.affine.bias.as_ref()
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim of the layer, [`ErrorKind::Shape`] if the channel dim
    /// has another size or if there is only one element per channel and instance.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.body.forward(x, Some(&self.dims))
    }
}
