//! Normalizations, and what they share: a weight and a bias, running statistics, and the form of their
//! builders.

use super::*;
use crate::functional::options::{BatchNormOptions, InstanceNormOptions};
use namegrad_core::Dims;
use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

/// Weight and bias, where a layer has them. Their paths are `weight` and `bias`.
#[derive(Clone, Debug, Default, Module)]
#[module(crate = crate, part)]
struct Affine {
    weight: Option<Parameter>,
    bias: Option<Parameter>,
}

impl Affine {
    /// Ones and zeros.
    #[track_caller]
    fn new(layer: &'static str, dims: &[Named], dtype: DType, [weight, bias]: [bool; 2]) -> Result<Affine> {
        check_dtype(layer, dtype)?;
        Ok(Affine {
            weight: if weight { Some(Parameter::new(filled(layer, dims, 1.0, dtype)?)?) } else { None },
            bias: if bias { Some(Parameter::new(filled(layer, dims, 0.0, dtype)?)?) } else { None },
        })
    }

    fn tensors(&self) -> Result<[Option<Cow<'static, Tensor>>; 2]> {
        let tensor = |parameter: &Option<Parameter>| match parameter {
            Some(parameter) => parameter.try_tensor().map(|tensor| Some(Cow::Owned(tensor))),
            None => Ok(None),
        };
        Ok([tensor(&self.weight)?, tensor(&self.bias)?])
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
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            AVERAGING.set(self.0);
        }
    }
    let _restore = Restore(AVERAGING.replace(true));
    f()
}

/// Running statistics, with PyTorch's names.
#[derive(Clone, Debug, Module)]
#[module(crate = crate, part)]
struct RunningStatistics {
    #[module(name = "running_mean")]
    mean: Buffer,
    #[module(name = "running_var")]
    var: Buffer,
    #[module(name = "num_batches_tracked")]
    batches: Buffer,
    /// Locked while the three change, because threads can share the buffers.
    #[module(skip)]
    updating: Arc<Mutex<()>>,
}

impl RunningStatistics {
    #[track_caller]
    fn new(layer: &'static str, dim: Named, dtype: DType) -> Result<RunningStatistics> {
        Ok(RunningStatistics {
            mean: Buffer::new(filled(layer, &[dim], 0.0, dtype)?),
            var: Buffer::new(filled(layer, &[dim], 1.0, dtype)?),
            batches: Buffer::new(Tensor::new(0_i64)?),
            updating: Arc::default(),
        })
    }

    /// Moves the statistics toward those of a batch, and counts it. Without a momentum, they are averages.
    fn update(&self, mean: &Tensor, var: &Tensor, momentum: Option<f64>) -> Result<()> {
        let _one = self.updating.lock().unwrap_or_else(PoisonError::into_inner);
        let count = self.batches.value().item::<i64>()? + 1;
        let momentum = momentum.filter(|_| !AVERAGING.get()).unwrap_or(1.0 / count as f64);
        for (running, new) in [(&self.mean, mean), (&self.var, var)] {
            let (old, new) = (running.value().rename(None)?, new.value().rename(None)?);
            running.set(old.mul(1.0 - momentum)?.add(&new.mul(momentum)?)?)?;
        }
        self.batches.set(Tensor::new(count)?)
    }
}

/// A norm over channels that can have running statistics.
#[derive(Clone, Debug, Module)]
#[module(crate = crate, part)]
struct ChannelNorm {
    layer: &'static str,
    #[module(flatten)]
    affine: Affine,
    #[module(flatten)]
    running: Option<RunningStatistics>,
    dim: Named,
    eps: f64,
    /// The share of a batch in the running statistics; without it, they are the average of all batches.
    momentum: Option<f64>,
    training: Training,
    path: ModulePath,
}

impl ChannelNorm {
    #[track_caller]
    fn new(
        layer: &'static str,
        dim: Named,
        (eps, momentum): (f64, Option<f64>),
        (affine, track_running_stats): (bool, bool),
        dtype: DType,
    ) -> Result<ChannelNorm> {
        let affine = Affine::new(layer, &[dim], dtype, [affine; 2])?;
        let running =
            if track_running_stats { Some(RunningStatistics::new(layer, dim, dtype)?) } else { None };
        let (training, path) = (Training::new(), ModulePath::new());
        Ok(ChannelNorm { layer, affine, running, dim, eps, momentum, training, path })
    }

    /// The output, normalized over `dims` of each sample, or over the batch if there are none. In training, the
    /// mean and the variance change the running statistics.
    #[track_caller]
    fn forward(&self, x: &Tensor, dims: Option<&Dims>) -> Result<Tensor> {
        self.path.run(self.layer, &[x], &|running| {
            let finder = Finder { layer: self.layer, path: &self.path, dims: &|| dim_text(self.dim) };
            let dim = finder.place(x, self.dim, Some(1))?;
            let [weight, bias] = self.affine.tensors()?;
            let (training, eps) = (self.training.get(), self.eps);
            let of_input = training || self.running.is_none();
            let [running_mean, running_var] = match self.running.as_ref().filter(|_| !training) {
                Some(running) => {
                    [&running.mean, &running.var].map(|statistic| Some(Cow::Owned(statistic.tensor())))
                }
                None => [None, None],
            };
            let (y, mean, var) = match dims {
                Some(dims) => {
                    let options = InstanceNormOptions {
                        running_mean,
                        running_var,
                        weight,
                        bias,
                        use_input_stats: of_input,
                        eps,
                        ..InstanceNormOptions::default()
                    };
                    F::instance_norm_with(x, dim, dims.clone(), options)?
                }
                None => {
                    let options = BatchNormOptions {
                        running_mean,
                        running_var,
                        weight,
                        bias,
                        training: of_input,
                        eps,
                        ..BatchNormOptions::default()
                    };
                    F::batch_norm_with(x, dim, options)?
                }
            };
            // An empty batch has no statistics.
            if let Some(running) = self.running.as_ref().filter(|_| training && x.numel() > 0) {
                running.update(&mean, &var, self.momentum)?;
            }
            running.gives(&y); // not the statistics
            Ok(y)
        })
    }
}

mod batch;
mod group;
mod instance;
mod layer;
mod response;

pub use {batch::*, group::*, instance::*, layer::*, response::*};
