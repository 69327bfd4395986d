//! The bilinear layer.

use super::norm::check_dtype;
use super::{read, read_any, within};
use crate::Module;
use crate::dims::{Finder, Named, dim_text, named};
use crate::functional as F;
use crate::functional::options::BilinearOptions;
use crate::training::ModulePath;
use namegrad_autograd::{Parameter, Tensor, TensorOptions};
use namegrad_core::{DType, Name, NewDim, Result, Shape, default_dtype};
use namegrad_macros::Setters;
use std::borrow::Cow;
use std::panic::Location;

/// `y[o] = Σ_i Σ_j x[i] weight[o, i, j] other[j] + bias[o]` over one dim of each of two inputs.
///
/// # Shapes
/// - `x`: any dims that include the first input dim
/// - `other`: the same other dims, and the second input dim
/// - result: the other dims of `x`, followed by the output dim
///
/// The dims are found by name. If the layer's dim or the last dim of an input is unnamed, that is the last
/// dim. If all dims of the inputs have names, the order of the other dims does not matter.
///
/// # Parameters
/// - `weight`: `[out, in1, in2]`, uniform in ±1/√in1
/// - `bias`: `[out]`, uniform in ±1/√in1
///
/// A tensor cannot have the same name twice: the input dims of a weight with the name of an earlier dim of
/// the weight get `_in1` or `_in2` appended.
///
/// # Examples
/// ```
/// use namegrad::nn::Bilinear;
/// use namegrad::prelude::*;
/// let layer = Bilinear::new(("text", 3), ("image", 4), ("out", 2))?;
/// let (text, image) = (Tensor::rand([("N", 5), ("text", 3)])?, Tensor::rand([("image", 4), ("N", 5)])?);
/// assert_eq!(layer.forward(&text, &image)?.shape().to_string(), "[N=5, out=2]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = Bilinear::text, layer(x, other))]
pub struct Bilinear {
    weight: Parameter,
    bias: Option<Parameter>,
    #[module(skip)]
    dims: [Named; 3],
    path: ModulePath,
}

/// A builder for [`Bilinear`]; see [`Bilinear::builder`].
#[derive(Clone, Debug, Setters)]
#[setters(builder)]
pub struct BilinearBuilder {
    #[setters(skip)]
    dims: Result<[Named; 3]>,
    /// Whether the layer has a bias; the default is `true`.
    bias: bool,
    /// The dtype of the weight and the bias; the default is the default dtype.
    dtype: DType,
}

impl BilinearBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`](namegrad_core::ErrorKind::InvalidName) for an invalid name,
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) for an invalid size,
    /// [`ErrorKind::DType`](namegrad_core::ErrorKind::DType) for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<Bilinear> {
        let (dims, dtype) = (self.dims?, self.dtype);
        check_dtype("Bilinear", dtype)?;
        let [first, second, out] = dims;
        let bound = 1.0 / (first.1.max(1) as f64).sqrt();
        let renamed = |(name, size): Named, taken: &[Option<Name>], suffix: &str| -> Result<Named> {
            match name {
                Some(own) if taken.contains(&name) => Ok((Some(Name::new(&format!("{own}{suffix}"))?), size)),
                _ => Ok((name, size)),
            }
        };
        let one = renamed(first, &[out.0], "_in1")?;
        let two = renamed(second, &[out.0, first.0], "_in2")?;
        let caller = Location::caller(); // not that of the closure
        let uniform = |dims: &[Named]| -> Result<Parameter> {
            let value =
                TensorOptions::new().dtype(dtype).uniform(Shape::new(dims.iter().copied())?, -bound, bound);
            Parameter::new(value.map_err(|error| error.of("Bilinear").at(caller))?)
        };
        let weight = uniform(&[out, one, two])?;
        let bias = if self.bias { Some(uniform(&[out])?) } else { None };
        Ok(Bilinear { weight, bias, dims, path: ModulePath::new() })
    }
}

impl Bilinear {
    /// A layer with a bias, from two dims to the dim `output`. Each is a size with or without a name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`](namegrad_core::ErrorKind::InvalidName),
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) for a negative size.
    #[track_caller]
    pub fn new(first: impl NewDim, second: impl NewDim, output: impl NewDim) -> Result<Bilinear> {
        Bilinear::builder(first, second, output).build()
    }

    /// A builder, to change the defaults of [`new`](Self::new).
    #[track_caller]
    pub fn builder(first: impl NewDim, second: impl NewDim, output: impl NewDim) -> BilinearBuilder {
        let dims = match (named("Bilinear", first), named("Bilinear", second), named("Bilinear", output)) {
            (Ok(first), Ok(second), Ok(output)) => Ok([first, second, output]),
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => Err(error),
        };
        BilinearBuilder { dims, bias: true, dtype: default_dtype() }
    }

    /// The weight, `[out, in1, in2]`.
    pub fn weight(&self) -> &Parameter {
        &self.weight
    }

    /// The bias, `[out]`, if there is one.
    pub fn bias(&self) -> Option<&Parameter> {
        self.bias.as_ref()
    }

    /// The output for two inputs.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`](namegrad_core::ErrorKind::NameNotFound) if an input lacks its dim,
    /// [`ErrorKind::Shape`](namegrad_core::ErrorKind::Shape) if the sizes do not fit.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, other: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        let fail = |error| within(error, "Bilinear", &self.path);
        let (x, mut other) = (self.last(x, self.dims[0])?, self.last(other, self.dims[1])?);
        let leading = |x: &Tensor| (0..x.ndim() - 1).map(|dim| x.name(dim)).collect::<Option<Vec<Name>>>();
        if let (Some(order), Some(own)) = (leading(&x), leading(&other))
            && order != own
            && order.len() == own.len()
        {
            let places = order.iter().map(|name| own.iter().position(|own| own == name));
            if let Some(mut places) = places.collect::<Option<Vec<usize>>>() {
                places.push(own.len());
                other = other.permute(places)?;
            }
        }
        let weight = read(&self.weight, "Bilinear", &self.path)?;
        let bias = read_any(self.bias.as_ref(), "Bilinear", &self.path)?;
        F::bilinear_with(&x, &other, &weight, BilinearOptions { bias: bias.as_ref().map(Cow::Borrowed) })
            .map_err(fail)
    }

    /// The input with its dim at the end.
    #[track_caller]
    fn last(&self, x: &Tensor, dim: Named) -> Result<Tensor> {
        let of = Finder { layer: "Bilinear", path: &self.path, dims: &|| self.about() };
        let place = of.place(x, dim, x.ndim().checked_sub(1))?;
        x.movedim(place, -1)
    }

    fn about(&self) -> String {
        let [first, second, out] = self.dims.map(dim_text);
        format!("{first}, {second} -> {out}")
    }

    fn text(&self) -> String {
        format!("Bilinear({})", self.about())
    }
}
