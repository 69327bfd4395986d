//! The linear layer.

use super::*;

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
#[module(crate = crate, dims = self.dims(), layer, get(weight, bias))]
pub struct Linear {
    /// The weight, `[out, in]`.
    weight: Parameter,
    /// The bias, `[out]`, if there is one.
    bias: Option<Parameter>,
    input: Named,
    output: Named,
    path: ModulePath,
}

/// A builder for [`Linear`]; see [`Linear::builder`].
///
/// ```
/// use namegrad::prelude::*;
/// let layer = Linear::builder(("in", 3), ("out", 2)).bias(false).dtype(DType::F64).build()?;
/// assert!(layer.bias().is_none());
/// assert_eq!(layer.weight().tensor().dtype(), DType::F64);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Setters)]
struct LinearConfig {
    /// The input dim, a size with or without a name.
    input: Named,
    /// The output dim, a size with or without a name.
    output: Named,
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
    weight: Option<Parameter>,
    /// Whether the layer has a bias; the default is `true`.
    #[setters(default = true)]
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
        let LinearConfig { input, output, weight, bias, dtype } = self.config()?;
        let dtype = weight.as_ref().map_or(dtype, Parameter::dtype);
        let bound = 1.0 / (input.1.max(1) as f64).sqrt();
        let dims = [output, beside(input, &[output.0], "_in")?];
        let weight = match weight {
            Some(weight) => shared("Linear", weight, dims)?,
            None => uniform("Linear", &dims, bound, dtype)?,
        };
        let bias = if bias { Some(uniform("Linear", &[output], bound, dtype)?) } else { None };
        Ok(Linear { weight, bias, input, output, path: ModulePath::new() })
    }
}

impl Linear {
    /// The output for `x`: its dims, with the output dim in place of the input dim.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` has no input dim, [`ErrorKind::Shape`] if it has another size,
    /// [`ErrorKind::DuplicateName`] if `x` already has a dim with the output's name, [`ErrorKind::DType`] if
    /// `x` does not have the dtype of the parameters.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.path.run("Linear", &[x], &|_: &Running| {
            let weight = self.weight.try_tensor()?;
            let bias = read(&self.bias)?;
            let (dim, last) = (self.input_dim(x)?, x.ndim().saturating_sub(1));
            self.check(x, dim, weight.dtype())?;
            let x = as_in_weight(x, dim, weight.name(1))?;
            if dim == last {
                return F::linear_with(&x, &weight, LinearOptions { bias });
            }
            F::linear_with(&x.movedim(dim, last)?, &weight, LinearOptions { bias })?.movedim(last, dim)
        })
    }

    /// The position of the input dim.
    pub(super) fn input_dim(&self, x: &Tensor) -> Result<usize> {
        let finder = Finder { layer: "Linear", path: &self.path, dims: &|| self.dims() };
        finder.find(x, self.input, x.ndim().checked_sub(1))
    }

    fn check(&self, x: &Tensor, dim: usize, dtype: DType) -> Result<()> {
        let finder = Finder { layer: "Linear", path: &self.path, dims: &|| self.dims() };
        let size = self.input.1;
        finder.check_size(x, dim, self.input)?;
        finder.check_dtype("the input", x, dtype)?;
        if is_strict() && x.name(dim) != self.input.0 {
            let taken = unnamed_or(x.name(dim));
            let repair = match (self.input.0, x.name(dim)) {
                (Some(name), _) => format!("x.refine_names([\"...\", \"{name}\"])?"),
                (None, own) => {
                    let (name, count) = self.output;
                    let output = name.map_or(count.to_string(), |name| format!("(\"{name}\", {count})"));
                    format!("Linear::new((\"{}\", {size}), {output})?", own.map_or("", Name::as_str))
                }
            };
            return Err(finder.strict(&[x], format_args!("{taken} as its input dim")).with_repair(repair));
        }
        let is_elsewhere = |name: &Name| x.names().position(*name).is_some_and(|taken| taken != dim);
        self.output.0.filter(is_elsewhere).map_or(Ok(()), |name| Err(finder.already_has(x, name)))
    }

    fn dims(&self) -> String {
        format!("{} -> {}", dim_text(self.input), dim_text(self.output))
    }
}
