//! Layer normalization, and its form without a mean.

use super::*;
use namegrad_core::options::{LayerNormOptions, RmsNormOptions};

/// The positions of dims that are found by name, or else are the last ones.
fn last_places(layer: &'static str, path: &ModulePath, x: &Tensor, dims: &[Named]) -> Result<Dims> {
    let of = Finder { layer, path, dims: &|| dims_text(dims) };
    let mut places = Vec::with_capacity(dims.len());
    for (at, dim) in dims.iter().enumerate() {
        places.push(of.place(x, *dim, (x.ndim() + at).checked_sub(dims.len()))?);
    }
    Ok(Dims::from(places))
}

/// Layer normalization: `(x - mean) / √(var + eps) weight + bias`, with the mean and the variance over the
/// layer's dims.
///
/// # Shapes
/// - `x`: any dims that include the layer's dims, in any position
/// - result: the dims of `x`
///
/// If the layer's dims or the last dims of `x` are unnamed, the last dims of `x` are the layer's dims.
///
/// # Parameters
/// - `weight`: the layer's dims, ones
/// - `bias`: the layer's dims, zeros
///
/// # Source
/// Ba, Kiros, Hinton, *Layer Normalization* (2016), equations 3 and 4.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let norm = LayerNorm::new([("embed", 4)])?;
/// let x = Tensor::randn([("N", 2), ("embed", 4), ("time", 3)])?;
/// let y = norm.forward(&x)?;
/// assert_eq!(y.shape(), x.shape());
/// assert!(y.mean("embed")?.abs()?.amax(..)?.item::<f64>()? < 1e-5);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = dims_text(&self.config.dims), layer, get(weight, bias))]
pub struct LayerNorm {
    /// The weight, if the layer has one.
    weight: Option<Parameter>,
    /// The bias, if the layer has one.
    bias: Option<Parameter>,
    config: LayerNormConfig,
    path: ModulePath,
}

/// A builder for [`LayerNorm`]; see [`LayerNorm::builder`].
///
/// ```
/// use namegrad::prelude::*;
/// let norm = LayerNorm::builder([("H", 4), ("W", 4)]).bias(false).eps(1e-6).build()?;
/// assert_eq!(norm.weight().unwrap().shape().to_string(), "[H=4, W=4]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Setters)]
struct LayerNormConfig {
    /// The dims to normalize over, each a size with or without a name.
    dims: Vec<Named>,
    /// The number that is added to the variance; the default is `1e-5`.
    #[setters(default = 1e-5)]
    eps: f64,
    /// Whether the layer has parameters; the default is `true`.
    #[setters(default = true)]
    elementwise_affine: bool,
    /// Whether the layer has a bias; the default is `true`. It has none without other parameters.
    #[setters(default = true)]
    bias: bool,
    /// The dtype of the parameters; the default is the default dtype.
    dtype: DType,
}

impl LayerNormBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size or no dims,
    /// [`ErrorKind::DType`] for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<LayerNorm> {
        let config = self.config()?;
        let LayerNormConfig { ref dims, elementwise_affine: affine, bias, dtype, .. } = config;
        let [weight, bias] = affine_of("LayerNorm", dims, dtype, [affine, affine && bias])?;
        Ok(LayerNorm { weight, bias, config, path: ModulePath::new() })
    }
}

impl LayerNorm {
    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim of the layer, [`ErrorKind::Shape`] if one has another
    /// size.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.path.run("LayerNorm", &[x], &|_: &Running| {
            let dims = last_places("LayerNorm", &self.path, x, &self.config.dims)?;
            let (weight, bias) = (read(&self.weight)?, read(&self.bias)?);
            x.layer_norm_with(dims, LayerNormOptions { weight, bias, eps: self.config.eps })
        })
    }
}

/// Root mean square normalization: `x / √(mean(x²) + eps) weight`, with the mean over the layer's dims.
///
/// # Shapes
/// - `x`: any dims that include the layer's dims, in any position
/// - result: the dims of `x`
///
/// If the layer's dims or the last dims of `x` are unnamed, the last dims of `x` are the layer's dims.
///
/// # Parameters
/// - `weight`: the layer's dims, ones
///
/// # Source
/// Zhang, Sennrich, *Root Mean Square Layer Normalization* (2019), equation 4.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let norm = RmsNorm::new([("embed", 4)])?;
/// let x = Tensor::randn([("N", 2), ("embed", 4), ("time", 3)])?;
/// let y = norm.forward(&x)?;
/// assert!(y.square()?.mean("embed")?.sub(1.0)?.abs()?.amax(..)?.item::<f64>()? < 1e-3);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = dims_text(&self.config.dims), layer, get(weight))]
pub struct RmsNorm {
    /// The weight, if the layer has one.
    weight: Option<Parameter>,
    config: RmsNormConfig,
    path: ModulePath,
}

/// A builder for [`RmsNorm`]; see [`RmsNorm::builder`].
///
/// ```
/// use namegrad::prelude::*;
/// let norm = RmsNorm::builder([("embed", 4)]).eps(1e-6).elementwise_affine(false).build()?;
/// assert_eq!(norm.num_parameters(), 0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Setters)]
struct RmsNormConfig {
    /// The dims to normalize over, each a size with or without a name.
    dims: Vec<Named>,
    /// The number that is added to the mean square. The default, `None`, is the distance from 1 to the next
    /// number of the dtype.
    #[setters(into)]
    eps: Option<f64>,
    /// Whether the layer has a weight; the default is `true`.
    #[setters(default = true)]
    elementwise_affine: bool,
    /// The dtype of the weight; the default is the default dtype.
    dtype: DType,
}

impl RmsNormBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size or no dims,
    /// [`ErrorKind::DType`] for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<RmsNorm> {
        let config = self.config()?;
        let affine = [config.elementwise_affine, false];
        let [weight, _] = affine_of("RmsNorm", &config.dims, config.dtype, affine)?;
        Ok(RmsNorm { weight, config, path: ModulePath::new() })
    }
}

impl RmsNorm {
    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim of the layer, [`ErrorKind::Shape`] if one has another
    /// size.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.path.run("RmsNorm", &[x], &|_: &Running| {
            let dims = last_places("RmsNorm", &self.path, x, &self.config.dims)?;
            x.rms_norm_with(dims, RmsNormOptions { weight: read(&self.weight)?, eps: self.config.eps })
        })
    }
}
