//! Ops by element or along a dim, dropout, and the affine map.

use namegrad_autograd::Tensor;
use namegrad_core::{Error, ErrorKind, NamedTensor, Names, Result, Value, default_dtype, plain};
use namegrad_macros::{functional, functions};

functions! {
    unary: relu, sigmoid, tanh, silu, elu, leaky_relu, softplus, hardtanh, celu;
    along: softmax, log_softmax;
}

/// How [`gelu`] computes the normal distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approximate {
    /// By the error function, exactly.
    #[default]
    None,
    /// By an approximation with `tanh`.
    Tanh,
}
plain! {
    Approximate => |value| match value {
        Value::Text(text) if text == "none" => Some(Approximate::None),
        Value::Text(text) if text == "tanh" => Some(Approximate::Tanh),
        _ => None,
    },
}

functional! { activation;
    /// `x Φ(x)`, with the distribution function `Φ` of the normal distribution, as [`Tensor::gelu`];
    /// approximately `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
    ///
    /// # Source
    /// Hendrycks, Gimpel, *Gaussian Error Linear Units (GELUs)* (2016), section 2.
    gelu (x; approximate: Approximate = Approximate::None) names "keeps input names";
    /// In training, sets each element to 0 with probability `p` and divides the others by `1 - p`; otherwise
    /// `x`.
    ///
    /// # Source
    /// Srivastava et al., *Dropout: A Simple Way to Prevent Neural Networks from Overfitting*, JMLR 15
    /// (2014).
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `p` is in [0, 1], [`ErrorKind::DType`] unless `x` is floating-point.
    dropout (x; p: f64 or 0.5, training: bool = true) on floats names "keeps input names";
    /// `x weightᵀ + bias` over the last dim of `x`.
    ///
    /// # Shapes
    /// - `x`: `[.., in]`
    /// - `weight`: `[out, in]`, or `[in]` for one output without a dim
    /// - `bias`: `[out]`, or one number
    /// - result: `[.., out]`, with the names of `x` and the first name of the weight; or `[..]`
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::rand([("N", 2), ("in", 3)])?;
    /// let weight = Tensor::rand([("out", 4), ("in", 3)])?;
    /// assert_eq!(F::linear(&x, &weight)?.extents().to_string(), "[N=2, out=4]");
    /// let bias = Tensor::ones([("out", 4)])?;
    /// let y = F::linear_with(&x, &weight, LinearOptions::new().bias(&bias))?;
    /// assert!(y.sub(1)?.allclose(&F::linear(&x, &weight)?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`], [`ErrorKind::DType`], [`ErrorKind::DuplicateName`] if `x` has the name of the
    /// output; in strict mode [`ErrorKind::NameMismatch`].
    linear (x, weight, bias?) on floats integers names "contracts away dims";
}

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn gelu(x: &Tensor, approximate: Approximate) -> Result<Tensor> {
        if approximate == Approximate::None {
            return x.gelu();
        }
        // Integers and `bool` become floats, as in the exact form.
        let x = &if x.dtype().is_floating_point() { x.clone() } else { x.to(default_dtype())? };
        let inner = x.pow(3)?.mul(0.044715)?.add(x)?.mul((2.0 / std::f64::consts::PI).sqrt())?;
        x.mul(0.5)?.mul(inner.tanh()?.add(1.0)?)
    }

    #[track_caller]
    pub(super) fn dropout(x: &Tensor, p: f64, training: bool) -> Result<Tensor> {
        if !(0.0..=1.0).contains(&p) {
            let message = format!("dropout probability has to be between 0 and 1, but got {p}");
            return Err(Error::new(ErrorKind::Value, "dropout", message));
        }
        if !x.dtype().is_floating_point() {
            let message = format!("dropout takes floating-point dtypes, not {}", x.dtype());
            return Err(Error::new(ErrorKind::DType, "dropout", message)
                .with_operands([x.extents()])
                .with_repair("x.to(DType::F32)?"));
        }
        if !training || p == 0.0 {
            return Ok(x.clone());
        }
        let kept = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
        let mask = NamedTensor::choice("dropout", x.shape(), 1.0 - p, [0.0, kept], x.dtype())?;
        x.mul(Tensor::constant(mask))
    }

    #[track_caller]
    pub(super) fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        if weight.ndim() == 1 {
            let y = x.matmul(weight)?;
            return match bias {
                Some(bias) => y.add(bias),
                None => Ok(y),
            };
        }
        if weight.ndim() != 2 {
            let message = format!("linear expects a weight [out, in] or [in], got {} dims", weight.ndim());
            return Err(Error::new(ErrorKind::Shape, "linear", message)
                .with_operands([x.extents(), weight.extents()]));
        }
        let across = weight.t()?;
        if x.ndim() == 2 {
            return match bias {
                Some(bias) => bias.addmm(x, &across),
                None => x.mm(&across),
            };
        }
        if x.ndim() < 2 {
            let y = x.matmul(&across)?;
            return match bias {
                Some(bias) => y.add(bias),
                None => Ok(y),
            };
        }
        // One product with a matrix of all rows instead of one for each batch. The batch dims get their names
        // back at the end.
        let last = x.ndim() - 1;
        if namegrad_core::names::is_strict() && x.name(last) != weight.name(1) {
            return x.matmul(&across); // for its error
        }
        let names = Names::new("linear", x.names().iter(last + 1).take(last).chain([weight.name(0)]))
            .map_err(|error| error.with_operands([x.extents(), weight.extents()]))?;
        let rows = x.rename(None)?.reshape([-1, x.sizes()[last] as isize])?;
        let mut sizes = x.shape().sizes;
        sizes[last] = weight.sizes()[0];
        linear(&rows, &weight.rename(None)?, bias.map(|bias| bias.rename(None)).transpose()?.as_ref())?
            .reshape(sizes)?
            .rename(Some(names))
    }
}
