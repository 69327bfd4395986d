//! Dropout.

use super::{Layer, within};
use crate::Module;
use crate::functional as F;
use crate::functional::MapDims;
use crate::functional::options::*;
use crate::training::{ModulePath, Training};
use namegrad_autograd::Tensor;
use namegrad_core::{Error, ErrorKind, Result};

/// In training, sets each element to 0 with probability `p` and divides the others by `1 - p`; in evaluation,
/// does nothing.
///
/// # Shapes
/// - `x`: any dims
/// - result: the dims of `x`
///
/// # Parameters
/// None.
///
/// # Source
/// Srivastava et al., *Dropout: A Simple Way to Prevent Neural Networks from Overfitting*, JMLR 15 (2014).
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let dropout = Dropout::new(0.5)?;
/// dropout.eval();
/// let x = Tensor::ones([("N", 4)])?;
/// assert_eq!(dropout.forward(&x)?.to_vec::<f32>()?, [1.0; 4]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = Dropout::text)]
pub struct Dropout {
    p: f64,
    training: Training,
    path: ModulePath,
}

impl Dropout {
    /// A layer that drops elements with probability `p`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `p` is in [0, 1].
    #[track_caller]
    pub fn new(p: f64) -> Result<Dropout> {
        check_probability("Dropout", p)?;
        Ok(Dropout { p, training: Training::new(), path: ModulePath::new() })
    }

    /// The probability to drop an element.
    pub fn p(&self) -> f64 {
        self.p
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] unless `x` is floating-point.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        F::dropout_with(x, self.p, DropoutOptions { training: self.training.get() })
            .map_err(|error| within(error, "Dropout", &self.path))
    }

    fn text(&self) -> String {
        format!("Dropout(p={})", self.p)
    }
}

impl Layer for Dropout {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Dropout::forward(self, x)
    }
}

#[track_caller]
fn check_probability(layer: &'static str, p: f64) -> Result<()> {
    Error::ensure((0.0..=1.0).contains(&p), ErrorKind::Value, layer, || {
        format!("dropout probability has to be between 0 and 1, but got {p}")
    })
}

/// Layers that drop feature maps. A row has the doc, the layer, its function and the options of that.
macro_rules! of_maps {
    ($($(#[$doc:meta])* $layer:ident $function:ident $options:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Module)]
        #[module(crate = crate, describe = $layer::text)]
        pub struct $layer {
            p: f64,
            #[module(skip)]
            dims: MapDims,
            training: Training,
            path: ModulePath,
        }

        impl $layer {
            /// A layer that drops feature maps along `dims` with probability `p`.
            ///
            /// # Errors
            /// [`ErrorKind::Value`] unless `p` is in [0, 1].
            #[track_caller]
            pub fn new(p: f64, dims: impl Into<MapDims>) -> Result<$layer> {
                check_probability(stringify!($layer), p)?;
                Ok($layer { p, dims: dims.into(), training: Training::new(), path: ModulePath::new() })
            }

            /// The probability to drop a feature map.
            pub fn p(&self) -> f64 {
                self.p
            }

            /// The output for `x`, with the dims of `x`.
            ///
            /// # Errors
            /// Those of the function in [`functional`](crate::functional) that the layer calls.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
                let _running = self.path.running();
                F::$function(x, self.p, self.dims.clone(), $options { training: self.training.get() })
                    .map_err(|error| within(error, stringify!($layer), &self.path))
            }

            fn text(&self) -> String {
                format!(concat!(stringify!($layer), "(p={})"), self.p)
            }
        }

        impl Layer for $layer {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                $layer::forward(self, x)
            }
        }
    )*};
}
of_maps! {
    /// [`F::dropout1d`](crate::functional::dropout1d) in training: drops whole feature maps, whose dims are
    /// found by name; any other dims have a fate for each index.
    ///
    /// # Shapes
    /// - `x`: any dims that include those of the feature maps, in any order
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::Dropout1d;
    /// let x = Tensor::ones([("N", 4), ("C", 8), ("time", 5)])?;
    /// let y = Dropout1d::new(0.5, "time")?.forward(&x)?;
    /// assert!(y.amax("time")?.equal(&y.amin("time")?)?);
    /// # Ok::<(), Error>(())
    /// ```
    Dropout1d dropout1d_with Dropout1dOptions;

    /// [`F::dropout2d`](crate::functional::dropout2d) in training: drops whole feature maps, whose dims are
    /// found by name; any other dims have a fate for each index.
    ///
    /// # Shapes
    /// - `x`: any dims that include those of the feature maps, in any order
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::Dropout2d;
    /// let x = Tensor::ones([("N", 4), ("C", 8), ("H", 5), ("W", 5)])?;
    /// let y = Dropout2d::new(0.5, ["H", "W"])?.forward(&x)?;
    /// assert!(y.amax(["H", "W"])?.equal(&y.amin(["H", "W"])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    Dropout2d dropout2d_with Dropout2dOptions;

    /// [`F::dropout3d`](crate::functional::dropout3d) in training: drops whole feature maps, whose dims are
    /// found by name; any other dims have a fate for each index.
    ///
    /// # Shapes
    /// - `x`: any dims that include those of the feature maps, in any order
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::Dropout3d;
    /// let x = Tensor::ones([("N", 4), ("C", 8), ("D", 2), ("H", 3), ("W", 3)])?;
    /// let y = Dropout3d::new(0.5, ["D", "H", "W"])?.forward(&x)?;
    /// assert!(y.amax(["D", "H", "W"])?.equal(&y.amin(["D", "H", "W"])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    Dropout3d dropout3d_with Dropout3dOptions;

    /// [`F::feature_alpha_dropout`](crate::functional::feature_alpha_dropout) in training, of feature maps
    /// whose dims are found by name.
    ///
    /// # Shapes
    /// - `x`: any dims that include those of the feature maps, in any order
    /// - result: the dims of `x`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::FeatureAlphaDropout;
    /// let x = Tensor::ones([("N", 4), ("C", 8), ("H", 5), ("W", 5)])?;
    /// let y = FeatureAlphaDropout::new(0.5, ["H", "W"])?.forward(&x)?;
    /// assert!(y.amax(["H", "W"])?.equal(&y.amin(["H", "W"])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    FeatureAlphaDropout feature_alpha_dropout_with FeatureAlphaDropoutOptions;
}

/// [`F::alpha_dropout`](crate::functional::alpha_dropout) in training; in evaluation, does nothing. The
/// output has the dims of `x`.
///
/// # Shapes
/// - `x`: any dims
/// - result: the dims of `x`
///
/// # Parameters
/// None.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// use namegrad::nn::AlphaDropout;
/// let dropout = AlphaDropout::new(0.5)?;
/// dropout.eval();
/// let x = Tensor::ones([("N", 4)])?;
/// assert!(dropout.forward(&x)?.equal(&x)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = AlphaDropout::text)]
pub struct AlphaDropout {
    p: f64,
    training: Training,
    path: ModulePath,
}

impl AlphaDropout {
    /// A layer that drops elements with probability `p`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `p` is in [0, 1].
    #[track_caller]
    pub fn new(p: f64) -> Result<AlphaDropout> {
        check_probability("AlphaDropout", p)?;
        Ok(AlphaDropout { p, training: Training::new(), path: ModulePath::new() })
    }

    /// The probability to drop an element.
    pub fn p(&self) -> f64 {
        self.p
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] unless `x` is floating-point.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        F::alpha_dropout_with(x, self.p, AlphaDropoutOptions { training: self.training.get() })
            .map_err(|error| within(error, "AlphaDropout", &self.path))
    }

    fn text(&self) -> String {
        format!("AlphaDropout(p={})", self.p)
    }
}

impl Layer for AlphaDropout {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        AlphaDropout::forward(self, x)
    }
}
