//! Normalization over dims, with a weight and a bias.

use crate::cpu::norm;
use crate::device::compute;
use crate::dim::{Positions, others};
use crate::dtype::{DType, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Sizes;
use crate::names::{Names, is_strict};
use crate::ops::shape::kernels::reorder;
use crate::ops::standardize::{self, ChannelGroups};
use crate::shape::Shape;
use crate::tensor::{NamedTensor, Unwritten};
use namegrad_macros::ops;

ops! { norm;
    //! # Normalization
    /// `(x - mean) / √(variance + eps) weight + bias`, with the mean and the variance over `dims`; the
    /// variance is divided by the number of elements.
    ///
    /// # Shapes
    /// - `x`: any dims that include `dims`
    /// - `weight`, `bias`: `dims` in that order, matched by name if they have names
    /// - result: the dims of `x`
    ///
    /// # Source
    /// Ba, Kiros, Hinton, *Layer Normalization* (2016), equations 3 and 4.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 3.0], [2.0, 6.0]])?.refine_names(["N", "embed"])?;
    /// let weight = Tensor::new([2.0, 2.0])?.refine_names(["embed"])?;
    /// let y = x.layer_norm_with("embed", LayerNormOptions::new().weight(&weight).eps(0.0))?;
    /// assert_eq!(y.to_vec::<f32>()?, [-2.0, 2.0, -2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    layer_norm (x, weight?, bias?; dims: Dims, eps: f64 = 1e-5) -> (y; mean, rstd) on floats names keeps, weight: along dims, bias: along dims;
    /// `x / √(mean(x²) + eps) weight`, with the mean over `dims`. Without `eps`, it is the distance from 1
    /// to the next number of the dtype, or of `f32` for half types.
    ///
    /// # Shapes
    /// - `x`: any dims that include `dims`
    /// - `weight`: `dims` in that order, matched by name if it has names
    /// - result: the dims of `x`
    ///
    /// # Source
    /// Zhang, Sennrich, *Root Mean Square Layer Normalization* (2019), equation 4.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 7.0], [5.0, 5.0]])?.refine_names(["N", "embed"])?;
    /// let y = x.rms_norm_with("embed", RmsNormOptions::new().eps(0.0))?;
    /// assert!(y.allclose(&Tensor::new([[0.2, 1.4], [1.0, 1.0]])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    rms_norm (x, weight?; dims: Dims, eps: Option<f64> = None) -> (y; rstd) on floats names keeps, weight: along dims;
    /// `(x - mean) / √(variance + eps) weight + bias`, where the channels along `dim` are split into
    /// `groups`, and the mean and the variance are over a group and the dims `dims`. They are returned, too;
    /// the variance is divided by the number of elements.
    ///
    /// With as many groups as channels, over all other dims, this is batch normalization; over the dims of an
    /// image, instance normalization; with fewer groups, group normalization.
    ///
    /// # Shapes
    /// - `x`: any dims that include `dim` and `dims`; `dims` may include `dim`
    /// - `weight`, `bias`: `dim`
    /// - `y`: the dims of `x`
    /// - `mean`, `var`: the dims of `x` without `dims`, with `groups` elements along `dim`; half types give
    ///   `f32`
    ///
    /// # Source
    /// Ioffe, Szegedy, *Batch Normalization* (2015), algorithm 1; Wu, He, *Group Normalization* (2018),
    /// equations 1 to 6.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 3.0], [2.0, 6.0]])?.refine_names(["C", "N"])?;
    /// let options = StandardizeOptions::new().eps(0.0);
    /// let (y, mean, var) = x.standardize_with("C", "N", 2, options)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// assert_eq!(mean.to_vec::<f32>()?, [2.0, 4.0]);
    /// assert_eq!(var.to_vec::<f32>()?, [1.0, 4.0]);
    /// assert_eq!(mean.shape().to_string(), "[C=2]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `ErrorKind::Shape` if the groups do not divide the channels.
    standardize (x, weight?, bias?; dim: Dim, dims: Dims, groups: usize, eps: f64 = 1e-5) -> (y, mean, var)
        on floats names keeps, mean: removes, var: removes, weight: along dim, bias: along dim;
}

pub(crate) mod kernels {
    use super::*;

    #[track_caller]
    pub(crate) fn layer_norm(
        x: &NamedTensor,
        weight: Option<&NamedTensor>,
        bias: Option<&NamedTensor>,
        dims: Positions,
        eps: f64,
    ) -> Result<(NamedTensor, NamedTensor, NamedTensor)> {
        const OP: &str = "layer_norm";
        x.check_float(OP)?;
        for (name, parameter) in [("weight", weight), ("bias", bias)] {
            if let Some(parameter) = parameter {
                check_parameter(OP, x, name, parameter, &dims)?;
            }
        }
        if let (Some(weight), Some(bias)) = (weight, bias) {
            weight.check_alike(OP, ["weight", "bias"], bias)?;
        }
        rows(OP, x, [weight, bias], &dims, true, eps)
    }

    #[track_caller]
    pub(crate) fn rms_norm(
        x: &NamedTensor,
        weight: Option<&NamedTensor>,
        dims: Positions,
        eps: Option<f64>,
    ) -> Result<(NamedTensor, NamedTensor)> {
        const OP: &str = "rms_norm";
        x.check_float(OP)?;
        if let Some(weight) = weight {
            check_parameter(OP, x, "weight", weight, &dims)?;
        }
        let (y, _, rstd) = rows(OP, x, [weight, None], &dims, false, rms_eps(x.dtype(), eps))?;
        Ok((y, rstd))
    }

    #[track_caller]
    pub(crate) fn standardize(
        x: &NamedTensor,
        weight: Option<&NamedTensor>,
        bias: Option<&NamedTensor>,
        dim: usize,
        dims: Positions,
        groups: usize,
        eps: f64,
    ) -> Result<(NamedTensor, NamedTensor, NamedTensor)> {
        standardize::forward(x, weight, bias, ChannelGroups { dim, over: &dims, groups }, eps)
    }

    /// A normalization of rows, with the mean and the reciprocal deviation of each row.
    #[track_caller]
    fn rows(
        op: &'static str,
        x: &NamedTensor,
        [weight, bias]: [Option<&NamedTensor>; 2],
        dims: &[usize],
        centered: bool,
        eps: f64,
    ) -> Result<(NamedTensor, NamedTensor, NamedTensor)> {
        let rows = NormRows::new(x, dims)?;
        let dtype = rows.x.dtype();
        let moment = || Unwritten::of(op, &[rows.count], Names::none(), dtype);
        let out = [Unwritten::like(op, &rows.x, dtype)?, moment()?, moment()?];
        let parameter = |parameter: Option<&NamedTensor>| match parameter {
            Some(parameter) => Ok::<_, Error>(Some(parameter.to(dtype)?.contiguous()?)),
            None => Ok(None),
        };
        let (weight, bias) = (parameter(weight)?, parameter(bias)?);
        let [y, mean, rstd] = dispatch!(dtype, float T => {
            let weight = weight.as_ref().map(|weight| weight.elements::<T>()).transpose()?;
            let bias = bias.as_ref().map(|bias| bias.elements::<T>()).transpose()?;
            let x = rows.x.elements::<T>()?;
            let norm = norm::NormRows { n: rows.n, centered, weight, bias, eps };
            Unwritten::write_all(out, |out| norm::layer_norm(x, norm, out))
        }, else unreachable!("checked to be a float"));
        Ok((rows.back(&y.into_dtype(x.dtype())?).with_names(x.names().clone()), mean, rstd))
    }

    /// Checks that a parameter has the normalized dims, in the same order.
    #[track_caller]
    pub(crate) fn check_parameter(
        op: &'static str,
        x: &NamedTensor,
        which: &str,
        parameter: &NamedTensor,
        dims: &Positions,
    ) -> Result<()> {
        let inputs = [x, parameter];
        let wanted = x.sizes_of(dims);
        if parameter.sizes() != &wanted[..] {
            let message = format!("expected a {which} of sizes {wanted:?}, got {:?}", parameter.sizes());
            return Err(Error::about(&inputs, ErrorKind::Shape, op, message));
        }
        for (own, dim) in dims.iter().enumerate() {
            let message = match (parameter.name(own), x.name(*dim)) {
                (Some(name), Some(there)) if name != there => {
                    format!("dim {own} of the {which} is '{name}', and that of the input '{there}'")
                }
                (Some(name), None) if is_strict() => {
                    format!(
                        "strict names: dim {own} of the {which} is '{name}', and that of the input is unnamed"
                    )
                }
                (None, Some(there)) if is_strict() => {
                    format!(
                        "strict names: dim {own} of the {which} is unnamed, and that of the input is '{there}'"
                    )
                }
                (Some(name), None) if x.names().position(name).is_some() => {
                    format!("dim {own} of the {which} is '{name}', which is another dim of the input")
                }
                _ => continue,
            };
            return Err(Error::about(&inputs, ErrorKind::NameMismatch, op, message));
        }
        if !parameter.dtype().is_floating_point() {
            let message = format!("expected a {which} of floats, got {}", parameter.dtype());
            return Err(Error::about(&inputs, ErrorKind::DType, op, message)
                .with_repair(format!("{which}.to(DType::F32)?")));
        }
        Ok(())
    }

    /// A tensor as rows to normalize, dense and in the dtype that kernels compute in.
    struct NormRows {
        x: NamedTensor,
        order: Positions,
        count: usize,
        n: usize,
    }

    impl NormRows {
        #[track_caller]
        fn new(x: &NamedTensor, dims: &[usize]) -> Result<NormRows> {
            let mut order = others(x.ndim(), dims);
            order.extend_from_slice(dims);
            let n: usize = dims.iter().map(|dim| x.sizes()[*dim]).product();
            let count = x.numel().checked_div(n).unwrap_or(0);
            let dense = reorder(&x.unnamed(), &order).to(x.dtype().compute())?.contiguous()?;
            Ok(NormRows { x: dense, order, count, n })
        }

        /// A tensor with these rows and the original order of dims.
        fn back(&self, y: &NamedTensor) -> NamedTensor {
            let mut inverse = self.order.clone();
            self.order.iter().enumerate().for_each(|(to, from)| inverse[*from] = to);
            reorder(y, &inverse)
        }
    }

    /// The gradients of the input, the weight and the bias; only those that are wanted.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub(super) fn backward(
        g: &NamedTensor,
        x: &NamedTensor,
        weight: Option<&NamedTensor>,
        mean: Option<&NamedTensor>,
        rstd: &NamedTensor,
        dims: &[usize],
        wants: [bool; 3],
    ) -> Result<[Option<NamedTensor>; 3]> {
        const OP: &str = "layer_norm_backward";
        let (rows, g) = (NormRows::new(x, dims)?, NormRows::new(g, dims)?);
        let dtype = rows.x.dtype();
        let zeros = || {
            let shape = Shape { sizes: x.sizes_of(dims), names: Names::none() };
            NamedTensor::filled(OP, shape, dtype, 0.into())
        };
        let (mut of_weight, mut of_bias) = (zeros()?, zeros()?);
        let weight = match weight {
            Some(weight) => Some(weight.to(dtype)?.contiguous()?),
            None => None,
        };
        let centered = mean.is_some();
        let mean = match mean {
            Some(mean) => mean.clone(),
            None => {
                let sizes = Sizes::from_slice(&[rows.count]);
                NamedTensor::filled(OP, Shape { sizes, names: Names::none() }, dtype, 0.into())?
            }
        };
        let dx = dispatch!(dtype, float T => {
            let weight = weight.as_ref().map(|weight| weight.elements::<T>()).transpose()?;
            let (x, g) = (rows.x.elements::<T>()?, g.x.elements::<T>()?);
            let (mean, rstd) = (mean.elements()?, rstd.elements()?);
            let pass = norm::NormBackward { g, x, n: rows.n, centered, mean, rstd, weight };
            if wants[1] || wants[2] {
                compute(|| {
                    pass.parameters(of_weight.as_mut_slice()?, of_bias.as_mut_slice()?);
                    Ok(())
                })?;
            }
            if wants[0] { Some(Unwritten::like(OP, &rows.x, dtype)?.write(|dx| pass.input(dx))) } else { None }
        }, else unreachable!("only floats have gradients"));
        let of_x = match dx {
            Some(dx) => Some(rows.back(&dx.into_dtype(x.dtype())?)),
            None => None,
        };
        Ok([of_x, wants[1].then_some(of_weight), wants[2].then_some(of_bias)])
    }
}

/// The gradients of [`layer_norm`](NamedTensor::layer_norm) in one pass: those of the input, the weight and
/// the bias that are wanted.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[doc(hidden)]
#[track_caller]
pub fn layer_norm_backward(
    g: &NamedTensor,
    x: &NamedTensor,
    weight: Option<&NamedTensor>,
    moments: [&NamedTensor; 2],
    dims: &[usize],
    wants: [bool; 3],
) -> Result<[Option<NamedTensor>; 3]> {
    kernels::backward(g, x, weight, Some(moments[0]), moments[1], dims, wants)
}

/// The gradients of [`rms_norm`](NamedTensor::rms_norm) in one pass: those of the input and the weight that
/// are wanted.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[doc(hidden)]
#[track_caller]
pub fn rms_norm_backward(
    g: &NamedTensor,
    x: &NamedTensor,
    weight: Option<&NamedTensor>,
    rstd: &NamedTensor,
    dims: &[usize],
    [of_x, of_weight]: [bool; 2],
) -> Result<[Option<NamedTensor>; 2]> {
    let [of_x, of_weight, _] = kernels::backward(g, x, weight, None, rstd, dims, [of_x, of_weight, false])?;
    Ok([of_x, of_weight])
}

/// The `eps` of [`rms_norm`](NamedTensor::rms_norm).
#[doc(hidden)]
pub fn rms_eps(dtype: DType, eps: Option<f64>) -> f64 {
    let smallest = if dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    eps.unwrap_or(smallest)
}
