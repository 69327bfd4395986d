//! Derivatives of normalizations.

use crate::Tensor;
use crate::rules::{kernel, shape::inverse};
use namegrad_core::args::Positions;
use namegrad_core::ops::norm::layer_norm_backward;
use namegrad_core::{Result, keep};
use namegrad_macros::derivatives;

derivatives! { norm; |g, cx|
    layer_norm(x, weight, bias; dims, eps) -> (y; mean, rstd) {
        (x weight bias): [x weight mean rstd; dims eps] layer_norm_gradients(g, x, weight, dims, eps, wants)?
            => layer_norm_backward(
                g.value(), x.value(), weight.map(|weight| weight.value()), [mean.value(), rstd.value()], dims, wants
            )?.map(|gradient| gradient.map(kernel))
    }
}

/// With `x̂` the normalized input and `gw` the gradient times the weight: `rstd (gw - mean(gw) - x̂ mean(gw
/// x̂))` for the input, `Σ g x̂` over the other dims for the weight, `Σ g` for the bias. Like the kernel, it
/// computes half types in `f32`.
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
    let rstd = mean(&centered.square()?)?.add(eps)?.rsqrt()?;
    let normalized = centered.mul(&rstd)?;
    let of_input = || {
        let weighted = match weight {
            Some(weight) => g.mul(&along(&weight.to(dtype)?, x.ndim(), dims)?)?,
            None => g.clone(),
        };
        let across = normalized.mul(&mean(&weighted.mul(&normalized)?)?)?;
        weighted.sub(&mean(&weighted)?)?.sub(&across)?.mul(&rstd)
    };
    // After the sum, the remaining dims are in the order of `x`.
    let of_parameter = |g: &Tensor| {
        let others: Vec<usize> = (0..x.ndim()).filter(|dim| !dims.contains(dim)).collect();
        g.sum(others)?.permute(inverse(&order(dims)))
    };
    Ok([
        if wants[0] { Some(of_input()?) } else { None },
        if wants[1] { Some(of_parameter(&g.mul(&normalized)?)?) } else { None },
        if wants[2] { Some(of_parameter(g)?) } else { None },
    ])
}

/// The permutation that sorts `dims`.
fn order(dims: &Positions) -> Positions {
    let mut order: Positions = (0..dims.len()).collect();
    order.sort_by_key(|at| dims[*at]);
    order
}

/// Rearranges a parameter with the dims `dims` so that it broadcasts to a tensor with `ndim` dims.
fn along(parameter: &Tensor, ndim: usize, dims: &Positions) -> Result<Tensor> {
    let mut sizes = vec![1; ndim];
    dims.iter().zip(parameter.sizes()).for_each(|(dim, size)| sizes[*dim] = *size);
    parameter.permute(order(dims))?.reshape(sizes)
}
