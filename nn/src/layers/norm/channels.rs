//! Batch and instance normalization: norms over channels that can have running statistics.

use super::*;
use crate::Synchronized;
use namegrad_autograd::switched;
use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

/// A norm over channels, of each instance or of the whole batch: an [`InstanceNorm`] or a [`BatchNorm`].
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = format!("{}({})", Self::NAME, dim_text(self.config.dim)), layer, get(weight, bias, running_mean, running_var))]
pub struct ChannelNorm<const OF_INSTANCES: bool> {
    /// The weight, if the layer has one.
    weight: Option<Parameter>,
    /// The bias, if the layer has one.
    bias: Option<Parameter>,
    /// The running mean, if the layer has one.
    running_mean: Option<Buffer>,
    /// The running variance, if the layer has one.
    running_var: Option<Buffer>,
    num_batches_tracked: Option<Buffer>,
    /// Locked while the running statistics change, because threads can share the buffers.
    #[module(skip)]
    updating: Arc<Mutex<()>>,
    config: BatchNormConfig,
    /// The dims over which an instance is normalized.
    dims: Dims,
    training: Training,
    synchronized: Synchronized,
    path: ModulePath,
}

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
pub type BatchNorm = ChannelNorm<false>;

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
pub type InstanceNorm = ChannelNorm<true>;

/// A builder for [`BatchNorm`]; see [`BatchNorm::builder`].
///
/// ```
/// use namegrad::prelude::*;
/// let norm = BatchNorm::builder(("F", 3)).momentum(None).affine(false).build()?;
/// assert!(norm.weight().is_none());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Setters)]
struct BatchNormConfig {
    /// The dim of the channels, a size with or without a name.
    dim: Named,
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
        ChannelNorm::with(self.config()?, Dims::from(..))
    }
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
struct InstanceNormConfig {
    /// The dim of the channels, a size with or without a name.
    dim: Named,
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
        let InstanceNormConfig { dim, dims, eps, momentum, affine, track_running_stats, dtype } =
            self.config()?;
        let momentum = Some(momentum);
        ChannelNorm::with(BatchNormConfig { dim, eps, momentum, affine, track_running_stats, dtype }, dims)
    }
}

impl<const OF_INSTANCES: bool> ChannelNorm<OF_INSTANCES> {
    const NAME: &'static str = if OF_INSTANCES { "InstanceNorm" } else { "BatchNorm" };

    #[track_caller]
    fn with(config: BatchNormConfig, dims: Dims) -> Result<Self> {
        let BatchNormConfig { dim, affine, track_running_stats, dtype, .. } = config;
        let [weight, bias] = affine_of(Self::NAME, &[dim], dtype, [affine; 2])?;
        let mut running = [None, None, None];
        if track_running_stats {
            let [mean, var] =
                [filled(Self::NAME, &[dim], 0.0, dtype)?, filled(Self::NAME, &[dim], 1.0, dtype)?];
            running = [mean, var, Tensor::new(0_i64)?].map(|statistic| Some(Buffer::new(statistic)));
        }
        let [running_mean, running_var, num_batches_tracked] = running;
        Ok(ChannelNorm {
            weight,
            bias,
            running_mean,
            running_var,
            num_batches_tracked,
            updating: Arc::default(),
            config,
            dims,
            training: Training::new(),
            synchronized: Synchronized::new(),
            path: ModulePath::new(),
        })
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim of the layer, [`ErrorKind::Shape`] if the channel dim
    /// has another size or, with the statistics of the input, if there is only one element for each.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.path.run(Self::NAME, &[x], &|running: &Running| {
            let finder = Finder { layer: Self::NAME, path: &self.path, dims: &|| dim_text(self.config.dim) };
            let dim = finder.place(x, self.config.dim, Some(1))?;
            let (weight, bias) = (read(&self.weight)?, read(&self.bias)?);
            let (training, eps) = (self.training.get(), self.config.eps);
            if !OF_INSTANCES
                && training
                && let Some(sum) = self.synchronized.get()
            {
                let y = self.over_processes(x, dim, [weight.as_deref(), bias.as_deref()], &*sum)?;
                running.gives(&y);
                return Ok(y);
            }
            let [running_mean, running_var] = [&self.running_mean, &self.running_var].map(|statistic| {
                let fixed = statistic.as_ref().filter(|_| !training)?;
                Some(Cow::Owned(fixed.tensor()))
            });
            let of_input = running_mean.is_none();
            let (y, mean, var) = match OF_INSTANCES {
                true => {
                    let other = InstanceNormOptions::new().use_input_stats(of_input).eps(eps);
                    let options = InstanceNormOptions { running_mean, running_var, weight, bias, ..other };
                    F::instance_norm_with(x, dim, self.dims.clone(), options)?
                }
                false => {
                    let other = BatchNormOptions::new().training(of_input).eps(eps);
                    let options = BatchNormOptions { running_mean, running_var, weight, bias, ..other };
                    F::batch_norm_with(x, dim, options)?
                }
            };
            // An empty batch has no statistics.
            if training && x.numel() > 0 {
                self.update(&mean, &var)?;
            }
            running.gives(&y); // not the statistics
            Ok(y)
        })
    }

    /// The output for the part `x` of a batch that is divided among processes, with the statistics of the whole
    /// batch. As in one process, the variance is a sum of squared distances from the mean.
    fn over_processes(
        &self,
        x: &Tensor,
        dim: usize,
        [weight, bias]: [Option<&Tensor>; 2],
        sum: &dyn Fn(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let names = x.names().clone();
        let last = x.rename(None)?.movedim(dim, -1)?; // [.., channels]
        let channels = x.sizes()[dim];
        let wide = last.reshape([x.numel() / channels.max(1), channels])?;
        let wide = if x.dtype() == DType::F64 { wide } else { wide.to(DType::F32)? };
        let count = Tensor::full([1], wide.sizes()[0] as f64)?.to(wide.dtype())?;
        let total = sum(&Tensor::cat([wide.sum(0)?, count], 0)?)?;
        let count = total.narrow(0, channels, 1)?.detach();
        let mean = total.narrow(0, 0, channels)?.div(&count)?;
        let centered = wide.sub(&mean)?;
        let squares = sum(&centered.square()?.sum(0)?)?;
        let mut y = centered.mul(squares.div(&count)?.add(self.config.eps)?.rsqrt()?)?;
        if let Some(weight) = weight {
            y = y.mul(weight.rename(None)?)?;
        }
        if let Some(bias) = bias {
            y = y.add(bias.rename(None)?)?;
        }
        if count.item::<f64>()? > 0.0 {
            self.update(&mean.detach(), &squares.detach().div(count.sub(1.0)?)?)?;
        }
        let y = y.to(x.dtype())?.reshape(last.sizes())?.movedim(-1, dim)?;
        y.rename(names.is_named().then_some(names))
    }

    /// Moves the running statistics toward those of a batch, which it counts. Without a momentum, they are
    /// averages.
    fn update(&self, mean: &Tensor, var: &Tensor) -> Result<()> {
        let Some(batches) = &self.num_batches_tracked else { return Ok(()) };
        let _one = self.updating.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = batches.value().add(1)?;
        let count = counted.elements_to_check::<i64>()?.first().copied().unwrap_or(1);
        let momentum = self.config.momentum.filter(|_| !AVERAGING.get()).unwrap_or(1.0 / count as f64);
        for (running, new) in [(&self.running_mean, mean), (&self.running_var, var)] {
            let Some(running) = running else { continue };
            let (old, new) = (running.value().rename(None)?, new.value().rename(None)?);
            running.set(old.mul(1.0 - momentum)?.add(&new.mul(momentum)?)?)?;
        }
        batches.set(counted)
    }
}

thread_local! {
    /// Whether running statistics are the averages of all batches, whatever the momentum.
    static AVERAGING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f`, in which the running statistics of normalizations are the averages of all batches since they
/// were reset.
#[doc(hidden)]
pub fn averaging_statistics<R>(f: impl FnOnce() -> R) -> R {
    switched(&AVERAGING, true, f)
}
