//! Dropout.

use super::*;
use namegrad_core::Shape;

functional! { dropout;
    /// In training, sets each element to 0 with probability `p` and divides the others by `1 - p`. Otherwise
    /// returns `x`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::ones([("N", 100)])?;
    /// let y = F::dropout(&x, 0.5)?.to_vec::<f32>()?;
    /// assert!(y.iter().all(|y| *y == 0.0 || *y == 2.0));
    /// let same = F::dropout_with(&x, 0.5, DropoutOptions::new().training(false))?;
    /// assert!(same.equal(&x)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Source
    /// Srivastava et al., *Dropout: A Simple Way to Prevent Neural Networks from Overfitting*, JMLR 15
    /// (2014).
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `p` is in [0, 1], [`ErrorKind::DType`] for elements that are not
    /// floating-point and would be scaled.
    dropout (x; p: f64 or 0.5, training: bool = true)
        layer Dropout (p if probability) => dropped(x, p, None, training, false);
    /// A [`dropout`] that sets a whole feature map along `dims`, here one dim, to 0 or not: neighbors in it
    /// are so alike that dropping one of them has no effect. Each index of the other dims has its own fate.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::ones([("N", 4), ("C", 8), ("time", 5)])?;
    /// let y = F::dropout1d(&x, 0.5, "time")?;
    /// assert!(y.amax("time")?.equal(&y.amin("time")?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Source
    /// Tompson et al., *Efficient Object Localization Using Convolutional Networks* (2015), section 3.2.
    ///
    /// # Errors
    /// Same as [`dropout`], and those of the dims; [`ErrorKind::Shape`] if there are no other dims.
    dropout1d (x; p: f64 or 0.5, dims: SlidingDims or SlidingDims::NONE, training: bool = true) layer Dropout1d (p if probability) =>
        dropped(x, p, Some(map_dims(x, Some(1), dims)?), training, false);
    /// [`dropout1d`] with feature maps of two dims.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::ones([("N", 4), ("H", 5), ("W", 5), ("C", 8)])?;
    /// let y = F::dropout2d(&x, 0.5, ["H", "W"])?;
    /// assert!(y.amax(["H", "W"])?.equal(&y.amin(["H", "W"])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`dropout1d`].
    dropout2d (x; p: f64 or 0.5, dims: SlidingDims or SlidingDims::NONE, training: bool = true) layer Dropout2d (p if probability) =>
        dropped(x, p, Some(map_dims(x, Some(2), dims)?), training, false);
    /// [`dropout1d`] with feature maps of three dims.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::ones([("C", 8), ("D", 2), ("H", 3), ("W", 3)])?;
    /// let y = F::dropout3d(&x, 0.5, ["D", "H", "W"])?;
    /// assert!(y.amax(["D", "H", "W"])?.equal(&y.amin(["D", "H", "W"])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`dropout1d`].
    dropout3d (x; p: f64 or 0.5, dims: SlidingDims or SlidingDims::NONE, training: bool = true) layer Dropout3d (p if probability) =>
        dropped(x, p, Some(map_dims(x, Some(3), dims)?), training, false);
    /// In training, sets each element with probability `p` to the value that [`selu`](super::selu) approaches
    /// for small inputs, and scales and shifts all elements so that a mean of 0 and a variance of 1 stay as
    /// they are. Otherwise, which is the default as in PyTorch, returns `x`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// manual_seed(0);
    /// let x = Tensor::randn([("N", 10_000)])?;
    /// let y = F::alpha_dropout_with(&x, 0.2, AlphaDropoutOptions::new().training(true))?;
    /// assert!(y.mean("N")?.item::<f64>()?.abs() < 0.1 && (y.std("N")?.item::<f64>()? - 1.0).abs() < 0.1);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Source
    /// Klambauer et al., *Self-Normalizing Neural Networks* (2017), section 2.
    ///
    /// # Errors
    /// Same as [`dropout`].
    alpha_dropout (x; p: f64 or 0.5, training: bool = false)
        layer AlphaDropout (p if probability) => dropped(x, p, None, training, true);
    /// An [`alpha_dropout`] of whole feature maps along `dims`, as in [`dropout1d`].
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::ones([("N", 4), ("C", 8), ("H", 5), ("W", 5)])?;
    /// let training = FeatureAlphaDropoutOptions::new().training(true);
    /// let y = F::feature_alpha_dropout_with(&x, 0.5, ["H", "W"], training)?;
    /// assert!(y.amax(["H", "W"])?.equal(&y.amin(["H", "W"])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`dropout1d`].
    feature_alpha_dropout (x; p: f64 or 0.5, dims: SlidingDims or SlidingDims::NONE, training: bool = false) layer FeatureAlphaDropout (p if probability) =>
        dropped(x, p, Some(map_dims(x, None, dims)?), training, true);
}

/// Checks an argument that is a probability.
#[track_caller]
pub(crate) fn probability(op: &'static str, _: &str, p: f64) -> Result<()> {
    Error::ensure((0.0..=1.0).contains(&p), ErrorKind::Value, op, || {
        format!("dropout probability has to be between 0 and 1, but got {p}")
    })
}

/// The dims of feature maps of this many dims, or of any number. By default they are PyTorch's: the last dim,
/// the last three, or all but the first two.
fn map_dims(x: &Tensor, count: Option<usize>, dims: Option<Positions>) -> Result<Positions> {
    let Some(dims) = dims else {
        let start = match count {
            Some(count) if count != 2 => x.ndim().saturating_sub(count).max(1),
            _ => 2,
        };
        return Ok(range(start.min(x.ndim())..x.ndim()).into());
    };
    let wanted = count.unwrap_or(dims.len());
    (dims.len() == wanted)
        .or_value(format_args!("a feature map has {wanted} dims here, and {} were given", dims.len()))?;
    Ok(dims)
}

/// A mask of `values[1]` with probability `1 - p`, else `values[0]`, the same along `dims`.
fn mask(x: &Tensor, p: f64, dims: &[usize], values: [f64; 2]) -> Result<Tensor> {
    let size = |dim: usize| if is_in(dims, dim) { 1 } else { x.sizes()[dim] };
    let shape = Shape::new((0..x.ndim()).map(|dim| (x.name(dim), size(dim))))?;
    let draw = |shape: Shape| NamedTensor::choice("", shape, 1.0 - p, values, x.dtype());
    let drawn = elsewhere::behind(x.value())
        .map_or_else(|| draw(shape.clone()), |what| what.drawn(shape.clone(), &draw));
    drawn.map(Tensor::constant)
}

/// `x` without a share `p` of its elements, or of its feature maps over the dims `maps`. With `alpha`, what is
/// dropped has the limit of `selu` for small numbers, and the result the mean and the variance of `x`.
fn dropped(x: &Tensor, p: f64, maps: Option<Positions>, training: bool, alpha: bool) -> Result<Tensor> {
    use namegrad_core::ops::unary::{SELU_ALPHA, SELU_SCALE};
    probability("", "p", p)?;
    let (dtype, is_scaled) = (x.dtype(), training && p > 0.0 && p < 1.0);
    let message = format_args!("only floating-point tensors can be scaled, and x is {dtype}");
    ensure_dtype(!is_scaled || dtype.is_floating_point(), message, ("x", DType::F32))?;
    if !training || p == 0.0 {
        return Ok(x.clone());
    }
    if p == 1.0 {
        return x.mul(0);
    }
    let dims = maps.as_deref().map_or(&[][..], |maps| maps);
    let (count, sizes) = (dims.len(), x.sizes());
    (maps.is_none() || x.ndim() >= 2 && count < x.ndim()).or_shape(format_args!(
        "expected a dim of channels beside the {count} dims of the feature maps, got sizes {sizes:?}"
    ))?;
    if !alpha {
        return x.mul(mask(x, p, dims, [0.0, 1.0 / (1.0 - p)])?);
    }
    let limit = SELU_ALPHA * SELU_SCALE;
    let a = 1.0 / ((limit * limit * p + 1.0) * (1.0 - p)).sqrt();
    let kept = mask(x, p, dims, [0.0, 1.0])?;
    let shift = kept.sub(1).mul(limit * a).add(limit * a * p)?;
    x.mul(kept.mul(a)?).add(shift)
}
