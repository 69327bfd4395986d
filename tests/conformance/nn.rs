//! The rows of `torch.nn.functional`.

use crate::conformance::call::{Answer, Call, Stop, missing};
use crate::conformance::case::scalar;
use crate::conformance::ops::{cast, table};
use namegrad::core::Element;
use namegrad::nn::functional::{Conv, CrossEntropy, Padding, Reduction};
use namegrad::prelude::*;

table! {
    /// Functions without state.
    pub(crate) fn functional;
    "nn.relu" => |c| if c.flag("inplace", false) { c.in_place(|x, _| Ok(x.relu_()?))? } else { F::relu(c.x(0)?)? };
    "nn.sigmoid" => |c| F::sigmoid(c.x(0)?)?;
    "nn.tanh" => |c| F::tanh(c.x(0)?)?;
    "nn.gelu" => |c| match c.text("approximate") {
        None | Some("none") => F::gelu(c.x(0)?)?,
        Some("tanh") => F::gelu_tanh(c.x(0)?)?,
        Some(other) => return missing(format!("approximate {other}")),
    };
    "nn.silu" => |c| if c.flag("inplace", false) { c.in_place(|x, _| Ok(x.silu_()?))? } else { F::silu(c.x(0)?)? };
    "nn.conv1d" => |c| F::conv1d(c.x(0)?, c.x(1)?, c.x(2).ok().or(c.tensor("bias")), conv(c)?)?;
    "nn.softmax" => |c| F::softmax(&cast(c)?, c.dim("dim")?)?;
    "nn.log_softmax" => |c| F::log_softmax(&cast(c)?, c.dim("dim")?)?;
    "nn.dropout" => |c| F::dropout(c.x(0)?, c.float_or("p", 0.5)?, c.flag("training", true))?;
    "nn.linear" => |c| F::linear(c.x(0)?, c.x(1)?, c.x(2).ok().or(c.tensor("bias")))?;
    "nn.mse_loss" => |c| F::mse_loss_with(c.x(0)?, c.x(1)?, reduction(c)?)?;
    "nn.nll_loss" => |c| F::nll_loss_with(c.x(0)?, c.x(1)?, class_dim(c)?, &cross_entropy(c)?)?;
    "nn.cross_entropy" => |c| F::cross_entropy_with(c.x(0)?, c.x(1)?, class_dim(c)?, &cross_entropy(c)?)?;
}

fn conv(c: &Call<'_>) -> Answer<Conv> {
    let padding = match c.text("padding") {
        Some("same") => Padding::Same,
        Some("valid") => Padding::Zeros(0),
        _ => Padding::Zeros(c.int_or("padding", 0)? as usize),
    };
    let count = |key| Ok::<usize, Stop>(c.int_or(key, 1)? as usize);
    Ok(Conv { stride: count("stride")?, padding, dilation: count("dilation")?, groups: count("groups")? })
}

fn reduction(c: &Call<'_>) -> Answer<Reduction> {
    match c.text("reduction") {
        None | Some("mean") => Ok(Reduction::Mean),
        Some("sum") => Ok(Reduction::Sum),
        Some("none") => Ok(Reduction::None),
        Some(other) => missing(format!("reduction {other}")),
    }
}

/// Where PyTorch has the classes: behind the batch, or in front of all if there is none.
fn class_dim(c: &Call<'_>) -> Answer<usize> {
    Ok(usize::from(c.x(0)?.ndim() > 1))
}

fn cross_entropy(c: &Call<'_>) -> Answer<CrossEntropy> {
    let default = CrossEntropy::default();
    let ignore_index = c.arg("ignore_index").and_then(scalar).map_or(default.ignore_index, i64::from_scalar);
    Ok(CrossEntropy {
        weight: c.tensor("weight").cloned(),
        ignore_index,
        label_smoothing: c.float_or("label_smoothing", 0.0)?,
        reduction: reduction(c)?,
    })
}
