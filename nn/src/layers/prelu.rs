//! [`Prelu`]: `relu` with a slope that is learned.

use super::*;

/// `x` for `x > 0`, else `weight x`, with a slope for each channel that is learned:
/// [`F::prelu`](crate::functional::prelu) as a layer.
///
/// # Shapes
/// - `x`: any dims that include the dim of the channels, in any position
/// - result: the dims of `x`
///
/// # Parameters
/// - `weight`: `[channels]`, 0.25
///
/// A layer with one slope for all channels is `Prelu::new(1)`. If the dim of several channels is unnamed, it
/// is dim 1 of `x`.
///
/// # Source
/// He et al., *Delving Deep into Rectifiers* (2015), equation 1.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// use namegrad::nn::Prelu;
/// let layer = Prelu::new(("C", 2))?;
/// let x = Tensor::new([[-1.0, 2.0, 3.0], [-4.0, 5.0, -6.0]])?.refine_names(["C", "N"])?;
/// assert_eq!(layer.forward(&x)?.to_vec::<f32>()?, [-0.25, 2.0, 3.0, -1.0, 5.0, -1.5]);
/// assert_eq!(layer.named_parameters()[0].0, "weight");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = format!("Prelu{}", self.weight.shape()), layer, get(weight))]
pub struct Prelu {
    /// The slopes.
    weight: Parameter,
    path: ModulePath,
}

/// A builder for [`Prelu`]; see [`Prelu::builder`].
#[derive(Clone, Debug, Setters)]
struct PreluConfig {
    /// The dim with a slope for each element, a size with or without a name.
    channels: Named,
    /// The first value of each slope; the default is 0.25.
    #[setters(default = 0.25)]
    init: f64,
    /// The dtype of the weight; the default is the default dtype.
    dtype: DType,
}

impl PreluBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size,
    /// [`ErrorKind::DType`] for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<Prelu> {
        let PreluConfig { channels, init, dtype } = self.config()?;
        let weight = Parameter::new(filled("Prelu", &[channels], init, dtype)?)?;
        Ok(Prelu { weight, path: ModulePath::new() })
    }
}

impl Prelu {
    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] unless `x` has as many channels, [`ErrorKind::DType`] for another dtype.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.path.run("Prelu", &[x], &|_: &Running| {
            let weight = self.weight.try_tensor()?;
            let channels = (weight.name(0), weight.numel());
            let of = Finder { layer: "Prelu", path: &self.path, dims: &|| dim_text(channels) };
            of.check_dtype("the input", x, weight.dtype())?;
            if weight.numel() > 1 {
                of.place(x, channels, Some(1))?;
            }
            F::prelu(x, &weight)
        })
    }
}
