//! Local response normalization.

use super::*;

/// Local response normalization: `x / (k + alpha/size Σ x²)^beta`, with the sum over the `size` channels
/// around each channel.
///
/// # Shapes
/// - `x`: any dims that include the channel dim, in any position
/// - result: the dims of `x`
///
/// # Parameters
/// None.
///
/// # Source
/// Krizhevsky, Sutskever, Hinton, *ImageNet Classification with Deep Convolutional Neural Networks* (2012),
/// section 3.3.
///
/// # Examples
/// ```
/// use namegrad::nn::LocalResponseNorm;
/// use namegrad::prelude::*;
/// let norm = LocalResponseNorm::new(5, "C")?;
/// let images = Tensor::ones([("N", 2), ("C", 7), ("H", 3)])?;
/// assert_eq!(norm.forward(&images)?.shape(), images.shape());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = self.size, layer)]
pub struct LocalResponseNorm {
    size: usize,
    dim: Dim,
    #[module(skip)]
    options: LocalResponseNormOptions,
    path: ModulePath,
}

impl LocalResponseNorm {
    /// A layer that sums over `size` channels along `dim`, with `alpha = 1e-4`, `beta = 0.75` and `k = 1`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a `size` of 0.
    #[track_caller]
    pub fn new(size: usize, dim: impl Into<Dim>) -> Result<LocalResponseNorm> {
        LocalResponseNorm::with(size, dim, LocalResponseNormOptions::new())
    }

    /// A layer with the options of [`F::local_response_norm_with`].
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a `size` of 0.
    #[track_caller]
    pub fn with(size: usize, dim: impl Into<Dim>, options: LocalResponseNormOptions) -> Result<Self> {
        let expected = "size, the number of channels around each channel, must be at least 1";
        Error::ensure(size > 0, ErrorKind::Value, "LocalResponseNorm", || expected)?;
        Ok(LocalResponseNorm { size, dim: dim.into(), options, path: ModulePath::new() })
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` has no channel dim.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.path.run("LocalResponseNorm", &[x], &|_: &Running| {
            F::local_response_norm_with(x, self.size, self.dim.clone(), self.options.clone())
        })
    }
}
