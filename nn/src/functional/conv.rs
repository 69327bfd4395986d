//! Convolution over one dim.

use namegrad_autograd::Tensor;
use namegrad_core::{Error, ErrorKind, Name, Names, Result, Value, plain};
use namegrad_macros::functional;
use std::borrow::Cow;

/// The padding of the input of a convolution.
///
/// ```
/// use namegrad::prelude::*;
/// let x = Tensor::new([[1.0, 2.0, 4.0, 8.0]])?;
/// let sum = Tensor::ones([1, 1, 3])?;
/// let same = F::conv1d_with(&x, &sum, Conv1dOptions::new().padding(F::Padding::Same))?;
/// assert_eq!(same.to_vec::<f32>()?, [3.0, 7.0, 14.0, 12.0]);
/// let wide = F::conv1d_with(&x, &sum, Conv1dOptions::new().padding(F::Padding::Zeros(2)))?;
/// assert_eq!(wide.to_vec::<f32>()?, [1.0, 3.0, 7.0, 14.0, 12.0, 8.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// The number of zeros on each side.
    Zeros(usize),
    /// As many zeros as make the result as long as the input. If their number is odd, the extra zero is at
    /// the end.
    Same,
}

plain! {
    Padding: "same, valid or a number of zeros" => |value| match value {
        Value::Text(text) if text == "same" => Some(Padding::Same),
        Value::Text(text) if text == "valid" => Some(Padding::Zeros(0)),
        Value::List(one) => match &one[..] {
            [zeros] => usize::from_value(zeros).map(Padding::Zeros),
            _ => None,
        },
        zeros => usize::from_value(zeros).map(Padding::Zeros),
    },
}

functional! { conv;
    /// Convolution, which in deep learning means cross-correlation: `y[n, o, t] = bias[o] + Σ_c Σ_k weight[o,
    /// c, k] x[n, c, stride t + dilation k - padding]`. The channels are split into `groups`, each with its
    /// own part of the weight.
    ///
    /// # Shapes
    /// - `x`: `[N, C, L]`, or `[C, L]` without a batch
    /// - `weight`: `[out, C / groups, K]`
    /// - `bias`: `[out]`
    /// - result: `[N, out, T]`, with `T = (L + 2 padding - dilation (K - 1) - 1) / stride + 1`
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0, 4.0, 8.0]])?.refine_names(["C", "time"])?;
    /// let slope = Tensor::new([[[-1.0, 1.0]]])?;
    /// let y = F::conv1d(&x, &slope)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0, 4.0]);
    /// assert_eq!(*y.names(), [None, Some("time")]);
    /// let halved = F::conv1d_with(&x, &slope, Conv1dOptions::new().stride(2))?;
    /// assert_eq!(halved.to_vec::<f32>()?, [1.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes do not fit, [`ErrorKind::Value`] for a stride, dilation or number of
    /// groups of 0 and for [`Padding::Same`] with a stride, [`ErrorKind::DType`] if the dtypes differ.
    conv1d (
        x, weight, bias?;
        stride: usize = 1,
        padding: Padding = Padding::Zeros(0),
        dilation: usize = 1,
        groups: usize = 1
    ) on floats integers names "keeps input names, but the channel dim has the first name of the weight";
}

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn conv1d(
        x: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        stride: usize,
        padding: Padding,
        dilation: usize,
        groups: usize,
    ) -> Result<Tensor> {
        let options = Conv1dOptions { bias: bias.map(Cow::Borrowed), stride, padding, dilation, groups };
        let given = [x, weight];
        let (names, batched) = (result_names(x, weight)?, x.ndim() == 3);
        let (x, weight) = (x.rename(None)?, weight.rename(None)?);
        let x = if batched { x } else { x.unsqueeze(0)? };
        check(&x, &weight, &options, &given)?;
        let (out, channels, length) = (weight.sizes()[0], weight.sizes()[1], weight.sizes()[2]);
        let span = dilation.saturating_mul(length.saturating_sub(1)).saturating_add(1);
        let (before, after) = match padding {
            Padding::Zeros(zeros) => (zeros, zeros),
            Padding::Same => ((span - 1) / 2, span / 2),
        };
        let x = padded(&x, before, after)?;
        if length == 0 || span > x.sizes()[2] {
            let length = x.sizes()[2];
            let message = format!(
                "a kernel over {span} elements does not fit into a length of {length}, padding included"
            );
            let lacking = span.saturating_sub(length).div_ceil(2) + before;
            return Err(fail(ErrorKind::Shape, message, &given)
                .with_repair(format!("Conv1dOptions::new().padding(F::Padding::Zeros({lacking}))")));
        }
        let batch = x.sizes()[0];
        // The windows of all positions, as the rows of a matrix for each group.
        let windows = x.unfold(2, span, stride)?.slice(3, 0, span, dilation)?; // [N, C, T, K]
        let places = windows.sizes()[2];
        let windows = windows
            .reshape([batch, groups, channels, places, length])?
            .permute([0, 1, 3, 2, 4])?
            .reshape([batch, groups, places, channels * length])?;
        let weight = weight.reshape([groups, out / groups, channels * length])?.transpose(1, 2)?;
        let mut y = windows.matmul(&weight)?.transpose(2, 3)?.reshape([batch, out, places])?;
        if let Some(bias) = bias {
            y = y.add(&bias.rename(None)?.reshape([out, 1])?)?;
        }
        if !batched {
            y = y.squeeze(0)?;
        }
        y.rename(Some(names))
    }
}

/// The names of the input, with the first name of the weight for the channels.
#[track_caller]
fn result_names(x: &Tensor, weight: &Tensor) -> Result<Names> {
    if !(2..=3).contains(&x.ndim()) || weight.ndim() != 3 {
        let message = format!(
            "expected an input [N, channels, length] or [channels, length] and a weight [out, channels, kernel], got {} and {}",
            x.shape(),
            weight.shape()
        );
        return Err(fail(ErrorKind::Shape, message, &[x, weight]));
    }
    let mut names: Vec<Option<Name>> = (0..x.ndim()).map(|dim| x.name(dim)).collect();
    names[x.ndim() - 2] = weight.name(0);
    Names::new("conv1d", names)
}

#[track_caller]
fn check(x: &Tensor, weight: &Tensor, options: &Conv1dOptions<'_>, given: &[&Tensor]) -> Result<()> {
    let dtype = weight.dtype();
    if x.dtype() != dtype {
        let message = format!("x is {}, and the weight is {dtype}", x.dtype());
        let error = fail(ErrorKind::DType, message, given);
        return Err(error.with_repair(format!("x.to(DType::{dtype:?})?")));
    }
    let Conv1dOptions { stride, padding, dilation, groups, .. } = *options;
    if stride == 0 || dilation == 0 || groups == 0 {
        let message =
            format!("stride {stride}, dilation {dilation} and groups {groups} must all be at least 1");
        return Err(fail(ErrorKind::Value, message, given));
    }
    if padding == Padding::Same && stride != 1 {
        let message = "padding of the same length needs a stride of 1, got {stride}".to_string();
        return Err(fail(ErrorKind::Value, message, given));
    }
    let (channels, expected) = (x.sizes()[1], weight.sizes()[1].saturating_mul(groups));
    if channels != expected || !weight.sizes()[0].is_multiple_of(groups) {
        let message = format!(
            "the weight of sizes {:?} and {groups} groups need {expected} channels, and the input of sizes {:?} has {channels}",
            weight.sizes(),
            given[0].sizes()
        );
        return Err(fail(ErrorKind::Shape, message, given));
    }
    let out = weight.sizes()[0];
    match &options.bias {
        Some(bias) if *bias.sizes() != [out] => {
            let message = format!("the bias must have sizes [{out}], got {:?}", bias.sizes());
            Err(fail(ErrorKind::Shape, message, given))
        }
        _ => Ok(()),
    }
}

/// Zeros before and after the last of three dims.
#[track_caller]
fn padded(x: &Tensor, before: usize, after: usize) -> Result<Tensor> {
    if before + after == 0 {
        return Ok(x.clone());
    }
    let sizes = |length: usize| [x.sizes()[0], x.sizes()[1], length];
    Tensor::cat(&[&x.new_zeros(sizes(before))?, x, &x.new_zeros(sizes(after))?], 2)
}

#[track_caller]
fn fail(kind: ErrorKind, message: String, operands: &[&Tensor]) -> Error {
    Error::new(kind, "conv1d", message).with_operands(operands.iter().map(|x| x.shape()))
}
