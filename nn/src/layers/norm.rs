//! Normalizations.

use super::place::{Named, Of, dim_text, named};
use super::{Layer, read_any, within};
use crate::Module;
use crate::buffer::Buffer;
use crate::field::{Field, Visitor};
use crate::functional as F;
use crate::functional::options::{
    BatchNormOptions, GroupNormOptions, InstanceNormOptions, LocalResponseNormOptions,
};
use crate::training::{ModulePath, Training};
use namegrad_autograd::{Parameter, Tensor, TensorOptions};
use namegrad_core::options::{LayerNormOptions, RmsNormOptions};
use namegrad_core::{DType, Dim, Dims, Error, ErrorKind, IntoShape, NewDim, Result, Shape, default_dtype};
use std::borrow::Cow;
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

/// The accessors of a layer's parameters.
macro_rules! parameters {
    ($layer:ident) => {
        impl $layer {
            /// The weight, if the layer has one.
            pub fn weight(&self) -> Option<&Parameter> {
                self.affine.weight.as_ref()
            }

            /// The bias, if the layer has one.
            pub fn bias(&self) -> Option<&Parameter> {
                self.affine.bias.as_ref()
            }
        }
    };
}

/// `Layer` for a layer with a method `forward`.
macro_rules! layers {
    ($($layer:ident)*) => {$(
        impl Layer for $layer {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                $layer::forward(self, x)
            }
        }
    )*};
}
layers! { BatchNorm LayerNorm RmsNorm GroupNorm InstanceNorm LocalResponseNorm }

/// Setters of a builder.
macro_rules! setters {
    ($builder:ident { $($(#[$doc:meta])* $field:ident: $ty:ty,)* }) => {
        impl $builder {
            $(
                $(#[$doc])*
                pub fn $field(mut self, $field: $ty) -> $builder {
                    self.$field = $field;
                    self
                }
            )*
        }
    };
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
/// - `num_batches_tracked`: a buffer, the number of batches in training
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
/// assert!(last.align_to(["N", "F", "H", "W"])?.allclose(&y)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = BatchNorm::text)]
pub struct BatchNorm {
    #[module(flatten)]
    affine: Affine,
    #[module(flatten)]
    running: Option<Running>,
    #[module(skip)]
    dim: Named,
    eps: f64,
    momentum: Option<f64>,
    training: Training,
    path: ModulePath,
}
parameters! { BatchNorm }

/// A builder for [`BatchNorm`]; see [`BatchNorm::builder`].
#[derive(Clone, Debug)]
pub struct BatchNormBuilder {
    dim: Result<Named>,
    eps: f64,
    momentum: Option<f64>,
    affine: bool,
    track_running_stats: bool,
    dtype: DType,
}

setters! { BatchNormBuilder {
    /// What is added to the variance; the default is `1e-5`.
    eps: f64,
    /// Whether the layer has a weight and a bias; the default is `true`.
    affine: bool,
    /// Whether the layer has running statistics; the default is `true`. Without them, it uses those of the
    /// input in evaluation, too.
    track_running_stats: bool,
    /// The dtype of the parameters and the running statistics; the default is the default dtype.
    dtype: DType,
} }

impl BatchNormBuilder {
    /// The share of a batch in the running statistics; the default is `0.1`. With `None`, they are the
    /// average of all batches.
    pub fn momentum(mut self, momentum: impl Into<Option<f64>>) -> BatchNormBuilder {
        self.momentum = momentum.into();
        self
    }

    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size,
    /// [`ErrorKind::DType`] for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<BatchNorm> {
        let dim = self.dim?;
        Ok(BatchNorm {
            affine: Affine::new("BatchNorm", &[dim], self.dtype, [self.affine; 2])?,
            running: if self.track_running_stats { Some(Running::new(dim, self.dtype)?) } else { None },
            dim,
            eps: self.eps,
            momentum: self.momentum,
            training: Training::new(),
            path: ModulePath::new(),
        })
    }
}

impl BatchNorm {
    /// A layer for the channel dim `dim`, a size with or without a name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a negative size.
    #[track_caller]
    pub fn new(dim: impl NewDim) -> Result<BatchNorm> {
        BatchNorm::builder(dim).build()
    }

    /// A builder, to change the defaults of [`new`](Self::new).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let norm = BatchNorm::builder(("F", 3)).momentum(None).affine(false).build()?;
    /// assert!(norm.weight().is_none());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn builder(dim: impl NewDim) -> BatchNormBuilder {
        BatchNormBuilder {
            dim: named("BatchNorm", dim),
            eps: 1e-5,
            momentum: Some(0.1),
            affine: true,
            track_running_stats: true,
            dtype: default_dtype(),
        }
    }

    /// The running mean, if the layer has one.
    pub fn running_mean(&self) -> Option<&Buffer> {
        self.running.as_ref().map(|running| &running.mean)
    }

    /// The running variance, if the layer has one.
    pub fn running_var(&self) -> Option<&Buffer> {
        self.running.as_ref().map(|running| &running.var)
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` has no channel dim, [`ErrorKind::Shape`] if it has another size or,
    /// in training, if there is only one element per channel.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let measured = self.path.running();
        let dim = Of { layer: "BatchNorm", path: &self.path, dims: &|| dim_text(self.dim) }.place(
            x,
            self.dim,
            Some(1),
        )?;
        let ([weight, bias], training) = (self.affine.tensors("BatchNorm", &self.path)?, self.training.get());
        let options = BatchNormOptions {
            weight: weight.as_ref().map(Cow::Borrowed),
            bias: bias.as_ref().map(Cow::Borrowed),
            training: training || self.running.is_none(),
            eps: self.eps,
            ..BatchNormOptions::new()
        };
        let fail = |error| within(error, "BatchNorm", &self.path);
        let Some(running) = &self.running else {
            let y = F::batch_norm_with(x, dim, options).map_err(fail)?.0;
            measured.gives(&y);
            return Ok(y);
        };
        let (count, momentum) = running.counted(self.momentum)?;
        let options = BatchNormOptions {
            running_mean: Some(Cow::Owned(running.mean.tensor())),
            running_var: Some(Cow::Owned(running.var.tensor())),
            momentum,
            ..options
        };
        let (y, mean, var) = F::batch_norm_with(x, dim, options).map_err(fail)?;
        if training {
            running.set(&mean, &var, count)?;
        }
        measured.gives(&y);
        Ok(y)
    }

    fn text(&self) -> String {
        format!("BatchNorm({})", dim_text(self.dim))
    }
}

/// The dims that a layer normalizes over.
#[track_caller]
fn all_dims(layer: &'static str, dims: impl IntoShape) -> Result<Vec<Named>> {
    let shape = dims.into_shape().map_err(|error| error.of(layer))?;
    let dims: Vec<Named> =
        shape.sizes.iter().enumerate().map(|(at, size)| (shape.names.get(at), *size)).collect();
    if dims.is_empty() {
        let message = "expected the dims to normalize over, with their sizes, such as [(\"embed\", 64)]";
        return Err(Error::new(ErrorKind::Value, layer, message));
    }
    Ok(dims)
}

fn all_text(dims: &[Named]) -> String {
    dims.iter().map(|dim| dim_text(*dim)).collect::<Vec<_>>().join(", ")
}

/// The positions of dims that are found by name, or else are the last ones.
#[track_caller]
fn last_places(layer: &'static str, path: &ModulePath, x: &Tensor, dims: &[Named]) -> Result<Dims> {
    let of = Of { layer, path, dims: &|| all_text(dims) };
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
#[module(crate = crate, describe = LayerNorm::text)]
pub struct LayerNorm {
    #[module(flatten)]
    affine: Affine,
    #[module(skip)]
    dims: Vec<Named>,
    eps: f64,
    path: ModulePath,
}
parameters! { LayerNorm }

/// A builder for [`LayerNorm`]; see [`LayerNorm::builder`].
#[derive(Clone, Debug)]
pub struct LayerNormBuilder {
    dims: Result<Vec<Named>>,
    eps: f64,
    elementwise_affine: bool,
    bias: bool,
    dtype: DType,
}

setters! { LayerNormBuilder {
    /// What is added to the variance; the default is `1e-5`.
    eps: f64,
    /// Whether the layer has parameters; the default is `true`.
    elementwise_affine: bool,
    /// Whether the layer has a bias; the default is `true`. It has none without other parameters.
    bias: bool,
    /// The dtype of the parameters; the default is the default dtype.
    dtype: DType,
} }

impl LayerNormBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size or no dims,
    /// [`ErrorKind::DType`] for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<LayerNorm> {
        let (dims, affine) = (self.dims?, self.elementwise_affine);
        let parameters = [affine, affine && self.bias];
        let affine = Affine::new("LayerNorm", &dims, self.dtype, parameters)?;
        Ok(LayerNorm { affine, dims, eps: self.eps, path: ModulePath::new() })
    }
}

impl LayerNorm {
    /// A layer that normalizes over `dims`, each a size with or without a name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a negative size or no dims.
    #[track_caller]
    pub fn new(dims: impl IntoShape) -> Result<LayerNorm> {
        LayerNorm::builder(dims).build()
    }

    /// A builder, to change the defaults of [`new`](Self::new).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let norm = LayerNorm::builder([("H", 4), ("W", 4)]).bias(false).eps(1e-6).build()?;
    /// assert_eq!(norm.weight().unwrap().shape().to_string(), "[H=4, W=4]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn builder(dims: impl IntoShape) -> LayerNormBuilder {
        LayerNormBuilder {
            dims: all_dims("LayerNorm", dims),
            eps: 1e-5,
            elementwise_affine: true,
            bias: true,
            dtype: default_dtype(),
        }
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim of the layer, [`ErrorKind::Shape`] if one has another
    /// size.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        let dims = last_places("LayerNorm", &self.path, x, &self.dims)?;
        let [weight, bias] = self.affine.tensors("LayerNorm", &self.path)?;
        let options = LayerNormOptions { eps: self.eps, ..LayerNormOptions::new() };
        let options = LayerNormOptions {
            weight: weight.as_ref().map(Cow::Borrowed),
            bias: bias.as_ref().map(Cow::Borrowed),
            ..options
        };
        x.layer_norm_with(dims, options).map_err(|error| within(error, "LayerNorm", &self.path))
    }

    fn text(&self) -> String {
        format!("LayerNorm({})", all_text(&self.dims))
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
#[module(crate = crate, describe = RmsNorm::text)]
pub struct RmsNorm {
    #[module(flatten)]
    affine: Affine,
    #[module(skip)]
    dims: Vec<Named>,
    eps: Option<f64>,
    path: ModulePath,
}

/// A builder for [`RmsNorm`]; see [`RmsNorm::builder`].
#[derive(Clone, Debug)]
pub struct RmsNormBuilder {
    dims: Result<Vec<Named>>,
    eps: Option<f64>,
    elementwise_affine: bool,
    dtype: DType,
}

setters! { RmsNormBuilder {
    /// Whether the layer has a weight; the default is `true`.
    elementwise_affine: bool,
    /// The dtype of the weight; the default is the default dtype.
    dtype: DType,
} }

impl RmsNormBuilder {
    /// What is added to the mean square. The default, `None`, is the distance from 1 to the next number of
    /// the dtype.
    pub fn eps(mut self, eps: impl Into<Option<f64>>) -> RmsNormBuilder {
        self.eps = eps.into();
        self
    }

    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size or no dims,
    /// [`ErrorKind::DType`] for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<RmsNorm> {
        let dims = self.dims?;
        let affine = Affine::new("RmsNorm", &dims, self.dtype, [self.elementwise_affine, false])?;
        Ok(RmsNorm { affine, dims, eps: self.eps, path: ModulePath::new() })
    }
}

impl RmsNorm {
    /// A layer that normalizes over `dims`, each a size with or without a name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a negative size or no dims.
    #[track_caller]
    pub fn new(dims: impl IntoShape) -> Result<RmsNorm> {
        RmsNorm::builder(dims).build()
    }

    /// A builder, to change the defaults of [`new`](Self::new).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let norm = RmsNorm::builder([("embed", 4)]).eps(1e-6).elementwise_affine(false).build()?;
    /// assert_eq!(norm.num_parameters(), 0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn builder(dims: impl IntoShape) -> RmsNormBuilder {
        RmsNormBuilder {
            dims: all_dims("RmsNorm", dims),
            eps: None,
            elementwise_affine: true,
            dtype: default_dtype(),
        }
    }

    /// The weight, if the layer has one.
    pub fn weight(&self) -> Option<&Parameter> {
        self.affine.weight.as_ref()
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim of the layer, [`ErrorKind::Shape`] if one has another
    /// size.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        let dims = last_places("RmsNorm", &self.path, x, &self.dims)?;
        let weight = self.affine.weight.as_ref().map(Parameter::tensor);
        let options = RmsNormOptions { weight: weight.as_ref().map(Cow::Borrowed), eps: self.eps };
        x.rms_norm_with(dims, options).map_err(|error| within(error, "RmsNorm", &self.path))
    }

    fn text(&self) -> String {
        format!("RmsNorm({})", all_text(&self.dims))
    }
}

/// Group normalization: `(x - mean) / √(var + eps) weight + bias`, where the channels are split into groups,
/// and the mean and the variance are over a group and the layer's other dims.
///
/// # Shapes
/// - `x`: any dims that include the channel dim and the dims to normalize over, in any position. All other
///   dims ride along.
/// - result: the dims of `x`
///
/// If the layer's channel dim or dim 1 of `x` is unnamed, dim 1 of `x` is the channel dim. The dims to
/// normalize over are names or positions, or `..` for all dims but the first, as in PyTorch.
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
#[module(crate = crate, describe = GroupNorm::text)]
pub struct GroupNorm {
    #[module(flatten)]
    affine: Affine,
    num_groups: usize,
    #[module(skip)]
    dim: Named,
    #[module(skip)]
    dims: Dims,
    eps: f64,
    path: ModulePath,
}
parameters! { GroupNorm }

/// A builder for [`GroupNorm`]; see [`GroupNorm::builder`].
#[derive(Clone, Debug)]
pub struct GroupNormBuilder {
    num_groups: usize,
    dim: Result<Named>,
    dims: Dims,
    eps: f64,
    affine: bool,
    dtype: DType,
}

setters! { GroupNormBuilder {
    /// What is added to the variance; the default is `1e-5`.
    eps: f64,
    /// Whether the layer has a weight and a bias; the default is `true`.
    affine: bool,
    /// The dtype of the parameters; the default is the default dtype.
    dtype: DType,
} }

impl GroupNormBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size,
    /// [`ErrorKind::Shape`] if the groups do not divide the channels, [`ErrorKind::DType`] for a dtype that
    /// is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<GroupNorm> {
        let (dim, num_groups) = (self.dim?, self.num_groups);
        if num_groups == 0 || !dim.1.is_multiple_of(num_groups) {
            let message = format!(
                "the number of channels must be divisible by num_groups, got {} channels and {num_groups} groups",
                dim.1
            );
            return Err(Error::new(ErrorKind::Shape, "GroupNorm", message));
        }
        let affine = Affine::new("GroupNorm", &[dim], self.dtype, [self.affine; 2])?;
        Ok(GroupNorm { affine, num_groups, dim, dims: self.dims, eps: self.eps, path: ModulePath::new() })
    }
}

impl GroupNorm {
    /// A layer that splits the channels `dim`, a size with or without a name, into `num_groups` groups, and
    /// normalizes over a group and `dims`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a negative size, [`ErrorKind::Shape`] if the
    /// groups do not divide the channels.
    #[track_caller]
    pub fn new(num_groups: usize, dim: impl NewDim, dims: impl Into<Dims>) -> Result<GroupNorm> {
        GroupNorm::builder(num_groups, dim, dims).build()
    }

    /// A builder, to change the defaults of [`new`](Self::new).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let norm = GroupNorm::builder(2, ("F", 4), ["H", "W"]).affine(false).build()?;
    /// assert!(norm.weight().is_none());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn builder(num_groups: usize, dim: impl NewDim, dims: impl Into<Dims>) -> GroupNormBuilder {
        let (dim, dims) = (named("GroupNorm", dim), dims.into());
        GroupNormBuilder { num_groups, dim, dims, eps: 1e-5, affine: true, dtype: default_dtype() }
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim of the layer, [`ErrorKind::Shape`] if the channel dim
    /// has another size.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        let dim = Of { layer: "GroupNorm", path: &self.path, dims: &|| self.about() }.place(
            x,
            self.dim,
            Some(1),
        )?;
        let [weight, bias] = self.affine.tensors("GroupNorm", &self.path)?;
        let options = GroupNormOptions {
            weight: weight.as_ref().map(Cow::Borrowed),
            bias: bias.as_ref().map(Cow::Borrowed),
            eps: self.eps,
        };
        F::group_norm_with(x, self.num_groups, dim, self.dims.clone(), options)
            .map_err(|error| within(error, "GroupNorm", &self.path))
    }

    fn about(&self) -> String {
        format!("{}, groups={}", dim_text(self.dim), self.num_groups)
    }

    fn text(&self) -> String {
        format!("GroupNorm({})", self.about())
    }
}

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
/// normalize over are names or positions, or `..` for all dims but the first and the channels, as in PyTorch.
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
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = InstanceNorm::text)]
pub struct InstanceNorm {
    #[module(flatten)]
    affine: Affine,
    #[module(flatten)]
    running: Option<Running>,
    #[module(skip)]
    dim: Named,
    #[module(skip)]
    dims: Dims,
    eps: f64,
    momentum: Option<f64>,
    training: Training,
    path: ModulePath,
}
parameters! { InstanceNorm }

/// A builder for [`InstanceNorm`]; see [`InstanceNorm::builder`].
#[derive(Clone, Debug)]
pub struct InstanceNormBuilder {
    dim: Result<Named>,
    dims: Dims,
    eps: f64,
    momentum: f64,
    affine: bool,
    track_running_stats: bool,
    dtype: DType,
}

setters! { InstanceNormBuilder {
    /// What is added to the variance; the default is `1e-5`.
    eps: f64,
    /// The share of a batch in the running statistics; the default is `0.1`.
    momentum: f64,
    /// Whether the layer has a weight and a bias; the default is `false`.
    affine: bool,
    /// Whether the layer has running statistics, which it uses in evaluation; the default is `false`.
    track_running_stats: bool,
    /// The dtype of the parameters and the running statistics; the default is the default dtype.
    dtype: DType,
} }

impl InstanceNormBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size,
    /// [`ErrorKind::DType`] for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<InstanceNorm> {
        let dim = self.dim?;
        Ok(InstanceNorm {
            affine: Affine::new("InstanceNorm", &[dim], self.dtype, [self.affine; 2])?,
            running: if self.track_running_stats { Some(Running::new(dim, self.dtype)?) } else { None },
            dim,
            dims: self.dims,
            eps: self.eps,
            momentum: Some(self.momentum),
            training: Training::new(),
            path: ModulePath::new(),
        })
    }
}

impl InstanceNorm {
    /// A layer for the channel dim `dim`, a size with or without a name, that normalizes over `dims`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a negative size.
    #[track_caller]
    pub fn new(dim: impl NewDim, dims: impl Into<Dims>) -> Result<InstanceNorm> {
        InstanceNorm::builder(dim, dims).build()
    }

    /// A builder, to change the defaults of [`new`](Self::new).
    ///
    /// ```
    /// use namegrad::nn::InstanceNorm;
    /// use namegrad::prelude::*;
    /// let norm = InstanceNorm::builder(("F", 3), "time").affine(true).track_running_stats(true).build()?;
    /// assert_eq!(norm.state_dict().len(), 5);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn builder(dim: impl NewDim, dims: impl Into<Dims>) -> InstanceNormBuilder {
        InstanceNormBuilder {
            dim: named("InstanceNorm", dim),
            dims: dims.into(),
            eps: 1e-5,
            momentum: 0.1,
            affine: false,
            track_running_stats: false,
            dtype: default_dtype(),
        }
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim of the layer, [`ErrorKind::Shape`] if the channel dim
    /// has another size or if there is only one element per channel and instance.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let measured = self.path.running();
        let dim = Of { layer: "InstanceNorm", path: &self.path, dims: &|| dim_text(self.dim) }.place(
            x,
            self.dim,
            Some(1),
        )?;
        let ([weight, bias], training) =
            (self.affine.tensors("InstanceNorm", &self.path)?, self.training.get());
        let options = InstanceNormOptions {
            weight: weight.as_ref().map(Cow::Borrowed),
            bias: bias.as_ref().map(Cow::Borrowed),
            use_input_stats: training || self.running.is_none(),
            eps: self.eps,
            ..InstanceNormOptions::new()
        };
        let fail = |error| within(error, "InstanceNorm", &self.path);
        let Some(running) = &self.running else {
            let y = F::instance_norm_with(x, dim, self.dims.clone(), options).map_err(fail)?.0;
            measured.gives(&y);
            return Ok(y);
        };
        let (count, momentum) = running.counted(self.momentum)?;
        let options = InstanceNormOptions {
            running_mean: Some(Cow::Owned(running.mean.tensor())),
            running_var: Some(Cow::Owned(running.var.tensor())),
            momentum,
            ..options
        };
        let (y, mean, var) = F::instance_norm_with(x, dim, self.dims.clone(), options).map_err(fail)?;
        if training {
            running.set(&mean, &var, count)?;
        }
        measured.gives(&y);
        Ok(y)
    }

    fn text(&self) -> String {
        format!("InstanceNorm({})", dim_text(self.dim))
    }
}

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
#[module(crate = crate, describe = LocalResponseNorm::text)]
pub struct LocalResponseNorm {
    size: usize,
    #[module(skip)]
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
    pub fn with(
        size: usize,
        dim: impl Into<Dim>,
        options: LocalResponseNormOptions,
    ) -> Result<LocalResponseNorm> {
        if size == 0 {
            let message = "size, the number of channels around each channel, must be at least 1";
            return Err(Error::new(ErrorKind::Value, "LocalResponseNorm", message));
        }
        Ok(LocalResponseNorm { size, dim: dim.into(), options, path: ModulePath::new() })
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` has no channel dim.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        F::local_response_norm_with(x, self.size, self.dim.clone(), self.options.clone())
            .map_err(|error| within(error, "LocalResponseNorm", &self.path))
    }

    fn text(&self) -> String {
        format!("LocalResponseNorm({})", self.size)
    }
}
