//! Group normalization.

use super::*;
use crate::functional::norm::check_groups;

/// Group normalization: `(x - mean) / √(var + eps) weight + bias`, where the channels are split into groups,
/// and the mean and the variance are over a group and the layer's other dims.
///
/// # Shapes
/// - `x`: any dims that include the channel dim and the dims to normalize over, in any position. All other
///   dims ride along.
/// - result: the dims of `x`
///
/// If the layer's channel dim or dim 1 of `x` is unnamed, dim 1 of `x` is the channel dim. The dims to
/// normalize over are names or positions, or `..` for all dims but the first, as in PyTorch: with `..`, the
/// batch is dim 0 whatever its name, so give names if the order of the dims of `x` can change.
///
/// # Parameters
/// - `weight`: `[channels]`, ones
/// - `bias`: `[channels]`, zeros
///
/// # Source
/// Wu, He, *Group Normalization* (2018), equations 1 to 6.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let norm = GroupNorm::new(2, ("F", 4), ["H", "W"])?;
/// let images = Tensor::randn([("N", 2), ("F", 4), ("H", 5), ("W", 5)])?;
/// let y = norm.forward(&images)?;
/// assert_eq!(y.shape(), images.shape());
/// let by_position = GroupNorm::new(2, 4, ..)?;
/// assert!(by_position.forward(&images.rename(None)?)?.allclose(&y.rename(None)?)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = self.about(), layer, get(weight, bias))]
pub struct GroupNorm {
    /// The weight, if the layer has one.
    weight: Option<Parameter>,
    /// The bias, if the layer has one.
    bias: Option<Parameter>,
    config: GroupNormConfig,
    path: ModulePath,
}

/// A builder for [`GroupNorm`]; see [`GroupNorm::builder`].
///
/// ```
/// use namegrad::prelude::*;
/// let norm = GroupNorm::builder(2, ("F", 4), ["H", "W"]).affine(false).build()?;
/// assert!(norm.weight().is_none());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Setters)]
struct GroupNormConfig {
    /// The number of groups, each of which is normalized.
    #[setters(given)]
    num_groups: usize,
    /// The dim of the channels, which is split into groups, a size with or without a name.
    dim: Named,
    /// The other dims over which it normalizes.
    #[setters(given)]
    dims: Dims,
    /// The number that is added to the variance; the default is `1e-5`.
    #[setters(default = 1e-5)]
    eps: f64,
    /// Whether the layer has a weight and a bias; the default is `true`.
    #[setters(default = true)]
    affine: bool,
    /// The dtype of the parameters; the default is the default dtype.
    dtype: DType,
}

impl GroupNormBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size,
    /// [`ErrorKind::Shape`] if the groups do not divide the channels, [`ErrorKind::DType`] for a dtype that
    /// is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<GroupNorm> {
        let config = self.config()?;
        made("GroupNorm", check_groups(config.dim.1, config.num_groups))?;
        let [weight, bias] = affine_of("GroupNorm", &[config.dim], config.dtype, [config.affine; 2])?;
        Ok(GroupNorm { weight, bias, config, path: ModulePath::new() })
    }
}

impl GroupNorm {
    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim of the layer, [`ErrorKind::Shape`] if the channel dim
    /// has another size.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.path.run("GroupNorm", &[x], &|_: &Running| {
            let finder = Finder { layer: "GroupNorm", path: &self.path, dims: &|| self.about() };
            let GroupNormConfig { num_groups, dim, ref dims, eps, .. } = self.config;
            let dim = finder.place(x, dim, Some(1))?;
            let (weight, bias) = (read(&self.weight)?, read(&self.bias)?);
            F::group_norm_with(x, num_groups, dim, dims.clone(), GroupNormOptions { weight, bias, eps })
        })
    }

    fn about(&self) -> String {
        format!("{}, groups={}", dim_text(self.config.dim), self.config.num_groups)
    }
}
