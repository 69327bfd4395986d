//! Spectral normalization.

use super::*;
use crate::dims::range;
use crate::functional as F;
use crate::functional::options::NormalizeOptions;
use crate::{Buffer, Training};
use namegrad_autograd::{TensorOptions, no_grad};
use namegrad_core::Dim;
use namegrad_core::args::Argument;
use namegrad_macros::Setters;

/// The options of [`spectral_norm_with`].
#[derive(Clone, Copy, Debug, PartialEq, Setters)]
pub struct SpectralNormOptions {
    /// Power iterations for each use of the weight in training mode.
    ///
    /// Default: 1.
    #[setters(default = 1)]
    pub n_power_iterations: usize,
    /// Added to norms below it, so that none is zero.
    ///
    /// Default: 1e-12.
    #[setters(default = 1e-12)]
    pub eps: f64,
}

/// `w / σ`, with `σ` the largest singular value of `w` as a matrix of one dim and all others. Power iteration
/// finds it: in training mode, each use of the weight improves two vectors that are kept.
///
/// [`spectral_norm`] parametrizes a weight with it. A weight of one dim is divided by its norm.
///
/// # Parameters
/// - `original`: the weight
/// - buffers `_u`: `[n]` and `_v`: `[m]`, for the weight as a matrix `[n, m]`: random vectors of length one
///   after 15 iterations at first
///
/// # Source
/// Miyato et al., *Spectral Normalization for Generative Adversarial Networks* (2018), algorithm 1. PyTorch,
/// `torch.nn.utils.parametrizations.spectral_norm`.
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = format!("dim={}, n_power_iterations={}, eps={}", self.dim, self.options.n_power_iterations, self.options.eps))]
pub struct SpectralNorm {
    _u: Option<Buffer>,
    _v: Option<Buffer>,
    training: Training,
    dim: usize,
    #[module(skip)]
    options: SpectralNormOptions,
}

impl SpectralNorm {
    /// The normalization of this weight, whose vectors are found by 15 iterations.
    #[track_caller]
    fn new(weight: &Tensor, dim: usize, options: SpectralNormOptions) -> Result<SpectralNorm> {
        let mut norm = SpectralNorm { _u: None, _v: None, training: Training::new(), dim, options };
        if weight.ndim() > 1 {
            let matrix = norm.matrix(&weight.detach())?;
            let random = |size| {
                let made =
                    TensorOptions::new().dtype(weight.dtype()).device(weight.device()).randn([size])?;
                Ok::<_, Error>(Buffer::new(norm.unit(&made)?))
            };
            let (u, v) = (random(matrix.sizes()[0])?, random(matrix.sizes()[1])?);
            (norm._u, norm._v) = (Some(u), Some(v));
            norm.iterate(&matrix, 15)?;
        }
        Ok(norm)
    }

    /// The weight as a matrix: one dim, and all others.
    fn matrix(&self, weight: &Tensor) -> Result<Tensor> {
        let first = weight.rename(None)?.movedim(self.dim, 0)?;
        first.flatten(range(1..first.ndim()), None)
    }

    fn unit(&self, x: &Tensor) -> Result<Tensor> {
        F::normalize_with(x, 0, NormalizeOptions::new().eps(self.options.eps))
    }

    fn iterate(&self, matrix: &Tensor, times: usize) -> Result<()> {
        let (Some(u), Some(v)) = (&self._u, &self._v) else { return Ok(()) };
        no_grad(|| {
            let (matrix, transposed) = (matrix.detach(), matrix.detach().t()?);
            for _ in 0..times {
                u.set(self.unit(&matrix.mv(v.tensor())?)?)?;
                v.set(self.unit(&transposed.mv(u.tensor())?)?)?;
            }
            Ok(())
        })
    }
}

impl Parametrization for SpectralNorm {
    fn compute(&self, originals: &[Tensor]) -> Result<Tensor> {
        let weight = &originals[0];
        let (Some(u), Some(v)) = (&self._u, &self._v) else { return self.unit(weight) };
        let matrix = self.matrix(weight)?;
        if self.training.get() {
            self.iterate(&matrix, self.options.n_power_iterations)?;
        }
        weight.div(&u.tensor().dot(&matrix.mv(v.tensor())?)?)
    }
}

/// Divides the weight of `module` at `path` by its largest singular value, as a matrix of `dim`, usually that
/// of the outputs, and all other dims. See [`SpectralNorm`].
///
/// # Errors
/// [`ErrorKind::Value`] for a path that `module` does not have, [`ErrorKind::NameNotFound`] or
/// [`ErrorKind::DimRange`] for a dim that the weight does not have, [`ErrorKind::Shape`] for a weight without
/// elements.
///
/// # Examples
/// ```
/// use namegrad::nn::parametrize;
/// use namegrad::prelude::*;
/// let layer = Linear::new(("in", 4), ("out", 3))?;
/// parametrize::spectral_norm(&layer, "weight", "out")?;
/// layer.forward(&Tensor::ones([("in", 4)])?)?; // in training mode, a step of power iteration
/// layer.eval();
/// assert_eq!(layer.state_dict().get("parametrizations.weight.0._u").unwrap().sizes(), [3]);
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn spectral_norm(module: &dyn Module, path: &str, dim: impl Into<Dim>) -> Result<()> {
    spectral_norm_with(module, path, dim, SpectralNormOptions::default())
}

/// [`spectral_norm`] with options.
///
/// # Errors
/// Same as [`spectral_norm`], and [`ErrorKind::Value`] for no iterations.
#[track_caller]
pub fn spectral_norm_with(
    module: &dyn Module,
    path: &str,
    dim: impl Into<Dim>,
    options: SpectralNormOptions,
) -> Result<()> {
    const OP: &str = "spectral_norm";
    let parameter = find(OP, module, path)?;
    let weight = parameter.tensor();
    let dim = dim.into().look_up(OP, &[weight.value()])?;
    let few = "expected at least one power iteration, got n_power_iterations=0";
    Error::ensure(options.n_power_iterations > 0, ErrorKind::Value, OP, || few)?;
    Error::ensure(weight.numel() > 0, ErrorKind::Shape, OP, || {
        format!("the weight {} has no elements", weight.shape())
    })?;
    let norm = SpectralNorm::new(&weight, dim, options).map_err(|error| error.of(OP))?;
    super::add(&parameter, Arc::new(norm)).map_err(|error| error.of(OP))
}
