//! The bilinear layer.

use super::*;

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
#[module(crate = crate, dims = self.about(), layer(x, other), get(weight, bias))]
pub struct Bilinear {
    /// The weight, `[out, in1, in2]`.
    weight: Parameter,
    /// The bias, `[out]`, if there is one.
    bias: Option<Parameter>,
    dims: [Named; 3],
    path: ModulePath,
}

/// A builder for [`Bilinear`]; see [`Bilinear::builder`].
#[derive(Clone, Debug, Setters)]
struct BilinearConfig {
    /// The dim of the first input, a size with or without a name.
    first: Named,
    /// The dim of the second input, a size with or without a name.
    second: Named,
    /// The output dim, a size with or without a name.
    output: Named,
    /// Whether the layer has a bias; the default is `true`.
    #[setters(default = true)]
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
        let BilinearConfig { first, second, output: out, bias, dtype } = self.config()?;
        let bound = 1.0 / (first.1.max(1) as f64).sqrt();
        let one = beside(first, &[out.0], "_in1")?;
        let two = beside(second, &[out.0, first.0], "_in2")?;
        let weight = uniform("Bilinear", &[out, one, two], bound, dtype)?;
        let bias = if bias { Some(uniform("Bilinear", &[out], bound, dtype)?) } else { None };
        Ok(Bilinear { weight, bias, dims: [first, second, out], path: ModulePath::new() })
    }
}

impl Bilinear {
    /// The output for two inputs.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`](namegrad_core::ErrorKind::NameNotFound) if an input lacks its dim,
    /// [`ErrorKind::Shape`](namegrad_core::ErrorKind::Shape) if the sizes do not fit.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, other: &Tensor) -> Result<Tensor> {
        self.path.run("Bilinear", &[x, other], &|_: &Running| {
            let weight = self.weight.try_tensor()?;
            let (x, other) = (self.last(x, &weight, 0)?, self.last(other, &weight, 1)?);
            // The other dims in one order, if both inputs have the same names.
            let (leading, last) = (names_at(&x, &range(0..x.ndim() - 1)), other.ndim() - 1);
            let found = by_name(&other, &leading).into_iter().flatten().filter(|dim| *dim < last);
            let places: Vec<usize> = crate::list(found.chain([last]));
            let aligned = places.len() == x.ndim() && other.ndim() == x.ndim();
            let other = if aligned { permuted(other, &places)? } else { other };
            F::bilinear_with(&x, &other, &weight, BilinearOptions { bias: read(&self.bias)? })
        })
    }

    /// The input with its dim at the end, which has the name of that of the weight.
    fn last(&self, x: &Tensor, weight: &Tensor, input: usize) -> Result<Tensor> {
        let of = Finder { layer: "Bilinear", path: &self.path, dims: &|| self.about() };
        let place = of.place(x, self.dims[input], x.ndim().checked_sub(1))?;
        of.check_dtype(["x", "other"][input], x, weight.dtype())?;
        as_in_weight(x, place, weight.name(input + 1))?.movedim(place, -1)
    }

    fn about(&self) -> String {
        format!("{} -> {}", dims_text(&self.dims[..2]), dim_text(self.dims[2]))
    }
}
