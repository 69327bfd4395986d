//! Normalizations, and what they share: a weight and a bias, running statistics, and the form of their
//! builders.

use super::{read_any, within};
use crate::buffer::Buffer;
use crate::dims::Named;
use crate::field::{Field, Visitor};
use crate::training::ModulePath;
use namegrad_autograd::{Parameter, Tensor, TensorOptions};
use namegrad_core::{DType, Error, ErrorKind, Result, Shape};
use std::borrow::Cow;
use std::cell::Cell;
use std::panic::Location;

/// Weight and bias, where a layer has them. Their paths are `weight` and `bias`.
#[derive(Clone, Debug, Default)]
struct Affine {
    weight: Option<Parameter>,
    bias: Option<Parameter>,
}

impl Affine {
    /// Ones and zeros.
    #[track_caller]
    fn new(layer: &'static str, dims: &[Named], dtype: DType, [weight, bias]: [bool; 2]) -> Result<Affine> {
        check_dtype(layer, dtype)?;
        let caller = Location::caller(); // not that of the closure
        let filled = |wanted: bool, value: f64| -> Result<Option<Parameter>> {
            if !wanted {
                return Ok(None);
            }
            let shape = Shape::new(dims.iter().copied())?;
            let value = TensorOptions::new().dtype(dtype).full(shape, value);
            Parameter::new(value.map_err(|error| error.of(layer).at(caller))?).map(Some)
        };
        Ok(Affine { weight: filled(weight, 1.0)?, bias: filled(bias, 0.0)? })
    }

    #[track_caller]
    fn tensors(&self, layer: &'static str, path: &ModulePath) -> Result<[Option<Tensor>; 2]> {
        Ok([read_any(self.weight.as_ref(), layer, path)?, read_any(self.bias.as_ref(), layer, path)?])
    }
}

impl Field for Affine {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        for (name, parameter) in [("weight", &self.weight), ("bias", &self.bias)] {
            if let Some(parameter) = parameter {
                visitor.field(name, parameter);
            }
        }
    }
}

#[track_caller]
pub(super) fn check_dtype(layer: &'static str, dtype: DType) -> Result<()> {
    if dtype.is_floating_point() {
        return Ok(());
    }
    let message = format!("the parameters of a layer are floating-point, not {dtype}");
    Err(Error::new(ErrorKind::DType, layer, message).with_repair(".dtype(DType::F32)"))
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
#[derive(Clone, Debug)]
struct Running {
    mean: Buffer,
    var: Buffer,
    batches: Buffer,
}

impl Running {
    #[track_caller]
    fn new(dim: Named, dtype: DType) -> Result<Running> {
        let options = TensorOptions::new().dtype(dtype);
        Ok(Running {
            mean: Buffer::new(options.zeros(Shape::new([dim])?)?),
            var: Buffer::new(options.ones(Shape::new([dim])?)?),
            batches: Buffer::new(Tensor::new(0_i64)?),
        })
    }

    /// The number of batches, with this one, and the share of this one in the new statistics.
    fn counted(&self, momentum: Option<f64>) -> Result<(i64, f64)> {
        let count = self.batches.tensor().item::<i64>()? + 1;
        let momentum = momentum.filter(|_| !AVERAGING.get());
        Ok((count, momentum.unwrap_or(1.0 / count as f64)))
    }

    #[track_caller]
    fn set(&self, mean: &Tensor, var: &Tensor, count: i64) -> Result<()> {
        self.mean.set(mean)?;
        self.var.set(var)?;
        self.batches.set(Tensor::new(count)?)
    }
}

impl Field for Running {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("running_mean", &self.mean);
        visitor.field("running_var", &self.var);
        visitor.field("num_batches_tracked", &self.batches);
    }
}

/// The arguments of a norm that depend on its parameters and running statistics.
struct Given {
    weight: Option<Cow<'static, Tensor>>,
    bias: Option<Cow<'static, Tensor>>,
    running_mean: Option<Cow<'static, Tensor>>,
    running_var: Option<Cow<'static, Tensor>>,
    /// Whether the statistics are those of the input.
    of_input: bool,
    momentum: f64,
}

/// The output of a norm with running statistics, if the layer has them; in training, they are updated. `f` is
/// the function of the layer.
#[track_caller]
fn with_running(
    (layer, path): (&'static str, &ModulePath),
    (affine, running): (&Affine, Option<&Running>),
    (training, momentum): (bool, Option<f64>),
    f: &dyn Fn(Given) -> Result<(Tensor, Tensor, Tensor)>,
) -> Result<Tensor> {
    let caller = Location::caller(); // not that of the closure
    let [weight, bias] = affine.tensors(layer, path)?.map(|tensor| tensor.map(Cow::Owned));
    let (count, momentum) = running.map_or(Ok((0, 0.0)), |running| running.counted(momentum))?;
    let of_running =
        |buffer: fn(&Running) -> &Buffer| running.map(|running| Cow::Owned(buffer(running).tensor()));
    let (running_mean, running_var) = (of_running(|own| &own.mean), of_running(|own| &own.var));
    let of_input = training || running.is_none();
    let made = f(Given { weight, bias, running_mean, running_var, of_input, momentum });
    let (y, mean, var) = made.map_err(|error| within(error.at(caller), layer, path))?;
    if let Some(running) = running.filter(|_| training) {
        running.set(&mean, &var, count)?;
    }
    Ok(y)
}

mod batch;
mod group;
mod instance;
mod layer;
mod response;

pub use batch::{BatchNorm, BatchNormBuilder};
pub use group::{GroupNorm, GroupNormBuilder};
pub use instance::{InstanceNorm, InstanceNormBuilder};
pub use layer::{LayerNorm, LayerNormBuilder, RmsNorm, RmsNormBuilder};
pub use response::LocalResponseNorm;
