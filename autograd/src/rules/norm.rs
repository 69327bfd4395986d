//! Derivatives of normalizations.

use crate::Tensor;
use crate::chain::*;
use crate::lists;
use crate::rules::{kernels, shape::inverse};
use namegrad_core::args::Positions;
use namegrad_core::ops::norm::{layer_norm_backward, rms_eps, rms_norm_backward};
use namegrad_core::ops::standardize::Backward;
use namegrad_core::{Result, keep};
use namegrad_macros::derivatives;

derivatives! { norm; |g, cx|
    layer_norm(x, weight, bias; dims, eps) -> (y; mean, rstd) {
        (x weight bias): [x weight mean rstd; dims eps] layer_norm_gradients(g, x, weight, dims, eps, wants)?
            => kernels(layer_norm_backward(
                g.value(), x.value(), weight.map(|weight| weight.value()), [mean.value(), rstd.value()], dims, wants
            )?)
    }
    rms_norm(x, weight; dims, eps) -> (y; rstd) {
        (x weight): [x weight rstd; dims eps] rms_norm_gradients(g, x, weight, dims, eps, wants)?
            => kernels(rms_norm_backward(g.value(), x.value(), weight.map(|weight| weight.value()), rstd.value(), dims, wants)?)
    }
    standardize(x, weight, bias; dim, dims, groups, eps) -> (y, mean, var) {
        (x weight bias): [x weight mean var; dim dims groups eps]
            standardize_gradients([g_y, g_mean, g_var], x, weight, [mean, var], groups_of(dim, dims, groups, eps), wants)?
            => kernels(fused([g_y, g_mean, g_var], x, weight, [mean, var], groups_of(dim, dims, groups, eps)).gradients(wants)?)
    }
}

/// [`layer_norm_gradients`] without the mean.
fn rms_norm_gradients(
    g: &Tensor,
    x: &Tensor,
    weight: Option<&Tensor>,
    dims: &Positions,
    eps: Option<f64>,
    wants: [bool; 2],
) -> Result<[Option<Tensor>; 2]> {
    let dtype = x.dtype().compute();
    let (eps, g, x) = (rms_eps(x.dtype(), eps), &g.to(dtype)?, &x.to(dtype)?);
    let mean = |x: &Tensor| x.mean(keep(dims));
    let rstd = mean(&x.square()?).add(eps).rsqrt()?;
    let normalized = x.mul(&rstd)?;
    let of_input = || {
        let weighted = match weight {
            Some(weight) => g.mul(&along(&weight.to(dtype)?, x.ndim(), dims)?)?,
            None => g.clone(),
        };
        let across = normalized.mul(&mean(&weighted.mul(&normalized)?)?)?;
        weighted.sub(&across).mul(&rstd)
    };
    Ok([
        if wants[0] { Some(of_input()?) } else { None },
        if wants[1] { Some(of_parameter(&g.mul(&normalized)?, dims)?) } else { None },
    ])
}

/// The groups of elements that share their mean and variance in [`Tensor::standardize`].
#[derive(Clone, Copy)]
struct StatisticGroups<'a> {
    dim: usize,
    over: &'a Positions,
    groups: usize,
    eps: f64,
}

fn groups_of(dim: usize, over: &Positions, groups: usize, eps: f64) -> StatisticGroups<'_> {
    StatisticGroups { dim, over, groups, eps }
}

/// The backward pass as a kernel.
fn fused<'a>(
    g: [&'a Tensor; 3],
    x: &'a Tensor,
    weight: Option<&'a Tensor>,
    moments: [&'a Tensor; 2],
    StatisticGroups { dim, over, groups, eps }: StatisticGroups<'a>,
) -> Backward<'a> {
    let ([g, g_mean, g_var], [mean, var]) = (g, moments);
    Backward {
        g: [g.value(), g_mean.value(), g_var.value()],
        x: x.value(),
        weight: weight.map(Tensor::value),
        moments: [mean.value(), var.value()],
        dim,
        over,
        groups,
        eps,
    }
}

/// The formula of [`Backward::gradients`], on a tensor whose channels are split into groups.
fn standardize_gradients(
    [g, g_mean, g_var]: [&Tensor; 3],
    x: &Tensor,
    weight: Option<&Tensor>,
    [mean, var]: [&Tensor; 2],
    StatisticGroups { dim, over, groups, eps }: StatisticGroups<'_>,
    wants: [bool; 3],
) -> Result<[Option<Tensor>; 3]> {
    let dtype = x.dtype().compute();
    let (sizes, channels) = (x.sizes(), x.sizes()[dim]);
    let split = [&sizes[..dim], &[groups, channels / groups], &sizes[dim + 1..]].concat();
    let mut dims = Vec::with_capacity(over.len() + 1);
    let mut kept = split.clone();
    for d in over {
        dims.push(if *d == dim { dim + 1 } else { d + usize::from(*d > dim) });
    }
    if !over.contains(&dim) {
        dims.push(dim + 1);
    }
    for dim in &dims {
        kept[*dim] = 1;
    }
    let (g, x) = (&g.to(dtype).reshape(&split)?, &x.to(dtype)?.rename(None).reshape(&split)?);
    // The saved moments are results of the op, so they are differentiated with it.
    let center = mean.rename(None).reshape(&kept)?;
    let var = var.rename(None).reshape(&kept)?;
    let mean = |x: &Tensor| x.mean(keep(&dims));
    let centered = x.sub(&center)?;
    let rstd = var.add(eps).rsqrt()?;
    let normalized = centered.mul(&rstd)?;
    let of_input = || {
        let weighted = match weight {
            Some(weight) => {
                let mut of_weight = vec![1; split.len()];
                of_weight[dim..dim + 2].copy_from_slice(&split[dim..dim + 2]);
                g.mul(&weight.to(dtype)?.rename(None).reshape(of_weight)?)?
            }
            None => g.clone(),
        };
        let across = normalized.mul(&mean(&weighted.mul(&normalized)?)?)?;
        let of_result = weighted.sub(&mean(&weighted)?).sub(&across).mul(&rstd)?;
        let n = lists::product_at(&split, &dims);
        let of_var = g_var.to(dtype).reshape(&kept).mul(2.0).mul(&centered)?;
        let of_moments = g_mean.to(dtype).reshape(&kept).add(&of_var).div(n as f64)?;
        of_result.add(&of_moments).reshape(sizes)
    };
    let of_channels = |g: &Tensor| {
        let others = lists::others(split.len(), &[dim, dim + 1]);
        let sums = if others.is_empty() { g.clone() } else { g.sum(others)? };
        sums.reshape([channels])
    };
    Ok([
        if wants[0] { Some(of_input()?) } else { None },
        if wants[1] { Some(of_channels(&g.mul(&normalized)?)?) } else { None },
        if wants[2] { Some(of_channels(g)?) } else { None },
    ])
}

/// With `x̂` the normalized input and `h` the gradient times the weight, the gradient of the input is
/// `rstd (h - mean(h) - x̂ mean(h x̂))`. That of the weight is `Σ g x̂` over the other dims, that of the
/// bias `Σ g`. Like the kernel, it computes half types in `f32`.
fn layer_norm_gradients(
    g: &Tensor,
    x: &Tensor,
    weight: Option<&Tensor>,
    dims: &Positions,
    eps: f64,
    wants: [bool; 3],
) -> Result<[Option<Tensor>; 3]> {
    let dtype = x.dtype().compute();
    let (g, x) = (&g.to(dtype)?, &x.to(dtype)?);
    let mean = |x: &Tensor| x.mean(keep(dims));
    let centered = x.sub(&mean(x)?)?;
    let rstd = mean(&centered.square()?).add(eps).rsqrt()?;
    let normalized = centered.mul(&rstd)?;
    let of_input = || {
        let weighted = match weight {
            Some(weight) => g.mul(&along(&weight.to(dtype)?, x.ndim(), dims)?)?,
            None => g.clone(),
        };
        let across = normalized.mul(&mean(&weighted.mul(&normalized)?)?)?;
        weighted.sub(&mean(&weighted)?).sub(&across).mul(&rstd)
    };
    Ok([
        if wants[0] { Some(of_input()?) } else { None },
        if wants[1] { Some(of_parameter(&g.mul(&normalized)?, dims)?) } else { None },
        if wants[2] { Some(of_parameter(g, dims)?) } else { None },
    ])
}

/// The sum over the dims that a parameter with the dims `dims` does not have, in its order.
fn of_parameter(g: &Tensor, dims: &Positions) -> Result<Tensor> {
    // After the sum, the remaining dims are in the order of `g`.
    g.sum(lists::others(g.ndim(), dims)).permute(inverse(&order(dims)))
}

/// The permutation that sorts `dims`.
fn order(dims: &Positions) -> Positions {
    let mut order = Positions::new();
    for (at, dim) in dims.iter().enumerate() {
        // The dims before it in the sorted list are those that are smaller.
        let before = order.iter().take_while(|other| dims[**other] < *dim).count();
        order.insert(before, at);
    }
    order
}

/// Rearranges a parameter with the dims `dims` so that it broadcasts to a tensor with `ndim` dims.
fn along(parameter: &Tensor, ndim: usize, dims: &Positions) -> Result<Tensor> {
    let mut sizes = vec![1; ndim];
    for (dim, size) in dims.iter().zip(parameter.sizes()) {
        sizes[*dim] = *size;
    }
    parameter.permute(order(dims)).reshape(sizes)
}
