//! The affine map.

use super::Layer;
use crate::functional as F;
use crate::functional::options::LinearOptions;
use crate::init;
use crate::module::{Module, Visitor};
use namegrad_autograd::{Parameter, Tensor, TensorOptions};
use namegrad_core::{Error, ErrorKind, Name, NewDim, Result, Shape};

/// `y = x Wᵀ + b` over one dim, which the layer finds by name.
///
/// # Shapes
/// - `x`: any dims that include the input dim, at any position
/// - result: the dims of `x`, with the output dim in place of the input dim
///
/// If the layer or the last dim of `x` has no name, the last dim is the input dim.
///
/// # Parameters
/// - `weight`: `[out, in]`, uniform in ±1/√in
/// - `bias`: `[out]`, uniform in ±1/√in
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let layer = Linear::new(("C", 3), ("features", 8))?;
/// let images = Tensor::rand([("N", 2), ("C", 3), ("H", 5), ("W", 5)])?;
/// assert_eq!(layer.forward(&images)?.shape().to_string(), "[N=2, features=8, H=5, W=5]");
/// # Ok::<(), Error>(())
/// ```
pub struct Linear {
    weight: Parameter,
    bias: Option<Parameter>,
    /// The name, if it has one, and the size.
    input: (Option<Name>, usize),
    output: (Option<Name>, usize),
}

impl Linear {
    /// A layer from the dim `input` to the dim `output`, each a size with or without a name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::DuplicateName`] if both have the same name,
    /// [`ErrorKind::Value`] for a negative size.
    #[track_caller]
    pub fn new(input: impl NewDim, output: impl NewDim) -> Result<Linear> {
        let mut layer = Linear::without_bias(input, output)?;
        let bound = 1.0 / (layer.input.1.max(1) as f64).sqrt();
        layer.bias = Some(Parameter::new(TensorOptions::new().uniform(
            Shape::new([layer.output])?,
            -bound,
            bound,
        )?)?);
        Ok(layer)
    }

    /// [`new`](Self::new) without the bias.
    ///
    /// # Errors
    /// Those of `new`.
    #[track_caller]
    pub fn without_bias(input: impl NewDim, output: impl NewDim) -> Result<Linear> {
        let (input, output) = (input.into_new_dim()?, output.into_new_dim()?);
        let weight = Parameter::new(Tensor::zeros(Shape::new([output, input])?)?)?;
        // With a = √5 the bound is 1/√in.
        init::kaiming_uniform_(&weight, init::Fan::In, init::Gain::LeakyRelu(5f64.sqrt()))?;
        Ok(Linear { weight, bias: None, input, output })
    }

    /// The weight, `[out, in]`.
    pub fn weight(&self) -> &Parameter {
        &self.weight
    }

    /// The bias, `[out]`, if there is one.
    pub fn bias(&self) -> Option<&Parameter> {
        self.bias.as_ref()
    }

    /// The output for `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` has no input dim, [`ErrorKind::Shape`] if it has another size,
    /// [`ErrorKind::DuplicateName`] if `x` already has a dim of the output's name.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (weight, bias) = (self.weight.tensor(), self.bias.as_ref().map(Parameter::tensor));
        let last = x.ndim().wrapping_sub(1);
        let (name, size) = self.input;
        let dim = match name {
            Some(name) => match x.names().position(name) {
                Some(dim) => dim,
                None if x.ndim() > 0 && x.name(last).is_none() => last,
                None => x.size(name).map(|_| last)?, // for its error, which suggests the closest name
            },
            None => last,
        };
        if x.ndim() == 0 || x.sizes()[dim] != size {
            let message = format!("{} expects {size} elements in its input dim", self.describe());
            return Err(Error::new(ErrorKind::Shape, "Linear", message).with_operands([x.shape()]));
        }
        let options = LinearOptions { bias: bias.as_ref() };
        if dim == last {
            return F::linear_with(x, &weight, options);
        }
        let y = F::linear_with(&x.movedim(dim, last)?, &weight, options)?;
        y.movedim(last, dim)
    }
}

impl Module for Linear {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("weight", &self.weight);
        if let Some(bias) = &self.bias {
            visitor.field("bias", bias);
        }
    }

    fn describe(&self) -> String {
        let dim = |(name, size): (Option<Name>, usize)| {
            name.map_or(size.to_string(), |name| format!("{name}={size}"))
        };
        format!("Linear({} -> {})", dim(self.input), dim(self.output))
    }
}

impl Layer for Linear {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Linear::forward(self, x)
    }
}
