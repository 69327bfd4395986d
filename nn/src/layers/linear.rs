//! The linear layer.

use super::{called, read, read_any, within};
use crate::Module;
use crate::dims::{Finder, Named, unnamed_or};
use crate::functional as F;
use crate::functional::options::LinearOptions;
use crate::training::ModulePath;
use namegrad_autograd::{Parameter, Tensor, TensorOptions};
use namegrad_core::names::{Name, is_strict};
use namegrad_core::{DType, Error, ErrorKind, NewDim, Result, Shape, default_dtype};
use namegrad_macros::Setters;
use std::borrow::Cow;

/// `y = x Wᵀ + b` over one dim, which the layer finds by name.
///
/// # Shapes
/// - `x`: any dims that include the input dim, in any position
/// - result: the dims of `x`, with the output dim in place of the input dim
///
/// If the layer's input dim or the last dim of `x` is unnamed, the last dim of `x` is the input dim.
///
/// # Parameters
/// - `weight`: `[out, in]`, uniform in ±1/√in
/// - `bias`: `[out]`, uniform in ±1/√in
///
/// The dims of the weight have the names given to [`new`](Self::new). Because a tensor cannot have the same
/// name twice, the weight of a layer from `hidden` to `hidden` is `[hidden, hidden_in]`.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let layer = Linear::new(("C", 3), ("features", 8))?;
/// let images = Tensor::rand([("N", 2), ("C", 3), ("H", 5), ("W", 5)])?;
/// assert_eq!(layer.forward(&images)?.shape().to_string(), "[N=2, features=8, H=5, W=5]");
/// assert_eq!(layer.weight().tensor().shape().to_string(), "[features=8, C=3]");
///
/// // The input and output dims can have the same name, as in a residual block:
/// let square = Linear::new(("C", 3), ("C", 3))?;
/// assert_eq!(images.add(&square.forward(&images)?)?.shape(), images.shape());
/// assert_eq!(square.weight().tensor().shape().to_string(), "[C=3, C_in=3]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = Linear::text, layer)]
pub struct Linear {
    weight: Parameter,
    bias: Option<Parameter>,
    #[module(skip)]
    input: Named,
    #[module(skip)]
    output: Named,
    path: ModulePath,
}

/// A builder for [`Linear`]; see [`Linear::builder`].
#[derive(Clone, Debug, Setters)]
#[setters(builder)]
pub struct LinearBuilder {
    /// The input and output dims, or the error in one of them.
    #[setters(skip)]
    dims: Result<(Named, Named)>,
    /// A parameter in place of a new weight, such as the weight of another layer, which both then share. It
    /// has the dims `[out, in]`, by name or by position; the bias gets its dtype.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let table = Embedding::new(("vocab", 65), ("embed", 8))?;
    /// let head = Linear::builder(("embed", 8), ("vocab", 65)).weight(table.weight()).build()?;
    /// assert!(head.weight().is(table.weight()));
    /// # Ok::<(), Error>(())
    /// ```
    #[setters(some, cloned)]
    weight: Option<Parameter>,
    /// Whether the layer has a bias; the default is `true`.
    bias: bool,
    /// The dtype of the weight and the bias; the default is the default dtype.
    dtype: DType,
}

impl LinearBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size,
    /// [`ErrorKind::DType`] for a dtype that is not floating-point, [`ErrorKind::Shape`] or
    /// [`ErrorKind::NameMismatch`] for a [`weight`](Self::weight) with other dims.
    #[track_caller]
    pub fn build(self) -> Result<Linear> {
        let LinearBuilder { dims, weight, bias, dtype } = self;
        let (input, output) = dims?;
        let dtype = weight.as_ref().map_or(dtype, Parameter::dtype);
        if !dtype.is_floating_point() {
            let message = format!("the parameters of a layer are floating-point, not {dtype}");
            return Err(Error::new(ErrorKind::DType, "Linear", message).with_repair(".dtype(DType::F32)"));
        }
        let bound = 1.0 / (input.1.max(1) as f64).sqrt();
        let dims = [output, (input_of_weight(input.0, output.0)?, input.1)];
        let weight = match weight {
            Some(weight) => shared("Linear", weight, dims)?,
            None => uniform(&dims, bound, dtype)?,
        };
        let bias = if bias { Some(uniform(&[output], bound, dtype)?) } else { None };
        Ok(Linear { weight, bias, input, output, path: ModulePath::new() })
    }
}

/// A parameter with these dims, uniform in ±`bound`.
#[track_caller]
fn uniform(dims: &[Named], bound: f64, dtype: DType) -> Result<Parameter> {
    let shape = Shape::new(dims.iter().copied())?;
    let value = TensorOptions::new().dtype(dtype).uniform(shape, -bound, bound);
    Parameter::new(value.map_err(|error| error.of("Linear"))?)
}

/// The parameter, if it has these dims, some of which may have no name.
#[track_caller]
pub(super) fn shared(layer: &'static str, weight: Parameter, dims: [Named; 2]) -> Result<Parameter> {
    let (own, wanted) = (weight.shape(), Shape::new(dims)?);
    let kind = if own.sizes != wanted.sizes {
        ErrorKind::Shape
    } else if (0..2).any(|dim| own.names.get(dim).zip(wanted.names.get(dim)).is_some_and(|(a, b)| a != b)) {
        ErrorKind::NameMismatch
    } else {
        return Ok(weight);
    };
    let message = format!("the weight of this layer has the dims {wanted}, and the given one has {own}");
    Err(Error::new(kind, layer, message).with_operands([own]))
}

/// The name of the input dim of a weight, which must differ from the name of its output dim.
#[track_caller]
fn input_of_weight(input: Option<Name>, output: Option<Name>) -> Result<Option<Name>> {
    match input {
        Some(name) if input == output => Name::new(&format!("{name}_in")).map(Some),
        _ => Ok(input),
    }
}

impl Linear {
    /// A layer with a bias, from the dim `input` to the dim `output`. Each is a size with or without a name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a negative size.
    #[track_caller]
    pub fn new(input: impl NewDim, output: impl NewDim) -> Result<Linear> {
        Linear::builder(input, output).build()
    }

    /// A builder for a layer from the dim `input` to the dim `output`, to change the defaults of
    /// [`new`](Self::new).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let layer = Linear::builder(("in", 3), ("out", 2)).bias(false).dtype(DType::F64).build()?;
    /// assert!(layer.bias().is_none());
    /// assert_eq!(layer.weight().tensor().dtype(), DType::F64);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn builder(input: impl NewDim, output: impl NewDim) -> LinearBuilder {
        let dims = match (input.into_new_dim(), output.into_new_dim()) {
            (Ok(input), Ok(output)) => Ok((input, output)),
            (Err(error), _) | (_, Err(error)) => Err(error.of("Linear")),
        };
        LinearBuilder { dims, weight: None, bias: true, dtype: default_dtype() }
    }

    /// The weight, `[out, in]`.
    pub fn weight(&self) -> &Parameter {
        &self.weight
    }

    /// The bias, `[out]`, if there is one.
    pub fn bias(&self) -> Option<&Parameter> {
        self.bias.as_ref()
    }

    /// The output for `x`: its dims, with the output dim in place of the input dim.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` has no input dim, [`ErrorKind::Shape`] if it has another size,
    /// [`ErrorKind::DuplicateName`] if `x` already has a dim with the output's name, [`ErrorKind::DType`] if
    /// `x` does not have the dtype of the parameters.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        let weight = read(&self.weight, "Linear", &self.path)?;
        let bias = read_any(self.bias.as_ref(), "Linear", &self.path)?;
        let dim = self.input_dim(x)?;
        self.check(x, dim, weight.dtype())?;
        self.map(x, dim, &weight, bias.as_ref()).map_err(|error| within(error, "Linear", &self.path))
    }

    /// The position of the input dim.
    #[track_caller]
    pub(super) fn input_dim(&self, x: &Tensor) -> Result<usize> {
        if x.ndim() == 0 {
            let (who, size) = (called(&self.path, &self.dims()), self.input.1);
            let message = format!("{who} needs an input dim of size {size}, and the input is one number");
            return Err(Error::new(ErrorKind::Shape, "Linear", message).with_operands([x.shape()]));
        }
        let finder = Finder { layer: "Linear", path: &self.path, dims: &|| self.dims() };
        finder.find(x, self.input, Some(x.ndim() - 1))
    }

    #[track_caller]
    fn check(&self, x: &Tensor, dim: usize, dtype: DType) -> Result<()> {
        let finder = Finder { layer: "Linear", path: &self.path, dims: &|| self.dims() };
        let size = self.input.1;
        finder.check_size(x, dim, size)?;
        finder.check_dtype("the input", x, dtype)?;
        if is_strict() && x.name(dim) != self.input.0 {
            let message = format!(
                "strict names: {} would take {} as its input dim",
                finder.who(),
                unnamed_or(x.name(dim))
            );
            let repair = match (self.input.0, x.name(dim)) {
                (Some(name), _) => format!("x.refine_names([\"...\", \"{name}\"])?"),
                (None, own) => {
                    let output = match self.output {
                        (Some(name), size) => format!("(\"{name}\", {size})"),
                        (None, size) => size.to_string(),
                    };
                    format!("Linear::new((\"{}\", {size}), {output})?", own.map_or("", Name::as_str))
                }
            };
            return Err(finder.error(x, ErrorKind::NameMismatch, message).with_repair(repair));
        }
        match self.output.0 {
            Some(name) if x.names().position(name).is_some_and(|taken| taken != dim) => {
                Err(finder.already_has(x, name))
            }
            _ => Ok(()),
        }
    }

    /// The affine map along `dim`.
    #[track_caller]
    fn map(&self, x: &Tensor, dim: usize, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let (options, last) = (LinearOptions { bias: bias.map(Cow::Borrowed) }, x.ndim() - 1);
        // In a layer from `C` to `C`, the input dim of the weight is called `C_in`, so rename the dim of `x`
        // too.
        let renamed = match (x.name(dim), weight.name(1)) {
            (Some(own), Some(of_weight)) if own != of_weight => {
                Some(x.rename([(own.as_str(), of_weight.as_str())])?)
            }
            _ => None,
        };
        let x = renamed.as_ref().unwrap_or(x);
        if dim == last {
            return F::linear_with(x, weight, options);
        }
        F::linear_with(&x.movedim(dim, last)?, weight, options)?.movedim(last, dim)
    }

    /// `in=64 -> out=128`.
    fn dims(&self) -> String {
        let dim = |(name, size): Named| name.map_or(size.to_string(), |name| format!("{name}={size}"));
        format!("{} -> {}", dim(self.input), dim(self.output))
    }

    fn text(&self) -> String {
        format!("Linear({})", self.dims())
    }
}
