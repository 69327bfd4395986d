//! Pooling over dims in any place, for the functions and the layers: the dims are moved to the end and back.

use crate::dims::images::{about, fail};
use namegrad_autograd::Tensor;
use namegrad_core::args::{Extents, OfDims, Positions, Windows};
use namegrad_core::{Error, ErrorKind, Picked, Result};
use std::panic::Location;

/// `x` with `dims` last, and the order of its dims, if that changes it.
#[track_caller]
fn with_last<'x>(
    op: &'static str,
    x: &'x Tensor,
    windows: usize,
    dims: &Positions,
) -> Result<(std::borrow::Cow<'x, Tensor>, Option<Vec<usize>>)> {
    if dims.len() != windows {
        let message =
            format!("expected {windows} `dims`, one for each dim of the windows, got {}", dims.len());
        return Err(fail(op, ErrorKind::Value, message, &[x]));
    }
    let others = (0..x.ndim()).filter(|dim| !dims.contains(dim));
    let order: Vec<usize> = others.chain(dims.iter().copied()).collect();
    if order.is_sorted() {
        return Ok((std::borrow::Cow::Borrowed(x), None));
    }
    Ok((std::borrow::Cow::Owned(x.permute(order.clone())?), Some(order)))
}

/// `y` with its dims where those of the input were.
#[track_caller]
fn moved_back(y: Tensor, order: Option<&Vec<usize>>) -> Result<Tensor> {
    let Some(order) = order else { return Ok(y) };
    let mut inverse = order.clone();
    order.iter().enumerate().for_each(|(at, dim)| inverse[*dim] = at);
    y.permute(inverse)
}

/// The largest elements of windows over `dims`, for the function or layer `op`.
#[track_caller]
pub(crate) fn max_over(
    op: &'static str,
    x: &Tensor,
    windows: Windows,
    dims: &Positions,
) -> Result<Picked<Tensor>> {
    let (moved, order) = with_last(op, x, windows.dims(), dims)?;
    let Picked { values, indices } = moved.max_pool(windows).map_err(|error| about(error, op, &[x]))?;
    Ok(Picked { values: moved_back(values, order.as_ref())?, indices: moved_back(indices, order.as_ref())? })
}

/// The means of windows over `dims`, for the function or layer `op`.
#[track_caller]
pub(crate) fn avg_over(op: &'static str, x: &Tensor, windows: Windows, dims: &Positions) -> Result<Tensor> {
    let (moved, order) = with_last(op, x, windows.dims(), dims)?;
    let y = moved.avg_pool(windows).map_err(|error| about(error, op, &[x]))?;
    moved_back(y, order.as_ref())
}

/// The norms of windows over `dims`, for the function or layer `op`.
#[track_caller]
pub(crate) fn lp_over(
    op: &'static str,
    x: &Tensor,
    p: f64,
    windows: Windows,
    dims: &Positions,
) -> Result<Tensor> {
    x.value().check_float(op)?;
    if p == 0.0 || p.is_nan() {
        let message = format!("`norm_type` must not be {p}");
        return Err(fail(op, ErrorKind::Value, message, &[x]).with_repair("2.0"));
    }
    if p.is_infinite() {
        let sign = p.signum();
        return max_over(op, &x.abs()?.mul(sign)?, windows, dims)?.values.mul(sign);
    }
    // The sums of the powers. A last window that is not complete counts as one with the same mean.
    let kernel = windows.sizes().0.over(op, "kernel_size", dims.len())?;
    let means = avg_over(op, &x.pow(p)?, windows, dims)?;
    let sums = means.sign()?.mul(&means.abs()?.relu()?)?.mul(kernel.iter().product::<usize>())?;
    sums.pow(1.0 / p)
}

/// The sizes of the result of a fractional pooling.
#[derive(Clone, Debug)]
pub(crate) enum Size {
    Of(Extents),
    /// The sizes as fractions of the input's.
    Ratio(OfDims<f64>),
}

/// The factors for `dims`: those that were given for them, one for all, or a list in their order.
#[track_caller]
fn factors(op: &'static str, x: &Tensor, ratios: &OfDims<f64>, dims: &[usize]) -> Result<Vec<f64>> {
    let of = |dim: &usize| {
        let at = ratios.dims.as_ref()?.iter().position(|other| other == dim)?;
        ratios.numbers.get(at).copied()
    };
    let ratios = match ratios.dims {
        Some(_) => dims.iter().map(of).collect(),
        None => ratios.over(dims.len()),
    };
    match ratios {
        Some(ratios) => Ok(ratios),
        None => {
            let message = format!("`output_ratio` must be one number or {}, one for each dim", dims.len());
            Err(fail(op, ErrorKind::Value, message, &[x]))
        }
    }
}

/// The largest elements of windows at random places over `dims`, for the function or layer `op`.
#[track_caller]
pub(crate) fn fractional_over(
    op: &'static str,
    x: &Tensor,
    samples: Option<&Tensor>,
    kernel_size: Extents,
    size: Size,
    dims: &Positions,
) -> Result<Picked<Tensor>> {
    let (moved, order) = with_last(op, x, dims.len(), dims)?;
    let sizes = match size {
        Size::Of(sizes) => sizes,
        Size::Ratio(ratios) => {
            let ratios = factors(op, x, &ratios, dims)?;
            if let Some(ratio) = ratios.iter().find(|ratio| !(**ratio > 0.0 && **ratio < 1.0)) {
                let message = format!("`output_ratio` must be between 0 and 1, got {ratio}");
                return Err(fail(op, ErrorKind::Value, message, &[x]).with_repair("0.5"));
            }
            let lengths = dims.iter().map(|dim| x.sizes()[*dim] as f64);
            let sizes: Vec<usize> =
                lengths.zip(&ratios).map(|(length, ratio)| (length * ratio) as usize).collect();
            Extents::from(&sizes[..])
        }
    };
    let planes = moved.sizes()[..moved.ndim() - dims.len()].iter().product();
    let drawn = match samples {
        Some(_) => None,
        None => Some(Tensor::rand([1, planes, dims.len()])?),
    };
    let samples = samples.or(drawn.as_ref()).expect("one of them is there");
    let Picked { values, indices } =
        moved.fractional_max_pool(samples, kernel_size, sizes).map_err(|error| about(error, op, &[x]))?;
    Ok(Picked { values: moved_back(values, order.as_ref())?, indices: moved_back(indices, order.as_ref())? })
}

/// Zeros with elements of `x` at indices into `dims`, for the function or layer `op`.
#[track_caller]
pub(crate) fn unpool_over(
    op: &'static str,
    [x, indices]: [&Tensor; 2],
    kernel_size: Extents,
    stride: Extents,
    padding: Extents,
    output_size: Extents,
    dims: &Positions,
) -> Result<Tensor> {
    let caller = Location::caller();
    let fail = |kind, message| fail(op, kind, message, &[x, indices]).at(caller);
    if x.sizes() != indices.sizes() {
        return Err(fail(ErrorKind::Shape, "the indices must have the sizes of the input".into()));
    }
    let numbers = |name, extents: Extents| {
        let error_at = |error: Error| error.with_operands([x.shape(), indices.shape()]).at(caller);
        extents.over(op, name, dims.len()).map_err(error_at)
    };
    let kernel = numbers("kernel_size", kernel_size)?;
    let stride = if stride.is_none() { kernel.clone() } else { numbers("stride", stride)? };
    Error::ensure(!stride.contains(&0), ErrorKind::Value, op, || {
        format!("`stride` must be at least 1, got {stride:?}")
    })?;
    let padding = numbers("padding", padding)?;
    let mut sizes = numbers("output_size", output_size.without_batch(dims.len()))?;
    for (at, dim) in dims.iter().enumerate() {
        let last = x.sizes()[*dim].saturating_sub(1);
        let size = last.checked_mul(stride[at]).and_then(|size| size.checked_add(kernel[at]));
        let size = size.and_then(|size| size.checked_sub(padding[at].checked_mul(2)?));
        match (size, sizes.get(at)) {
            (Some(size), None) => sizes.push(size),
            (Some(size), Some(given)) if given.abs_diff(size) < stride[at] => {}
            (Some(size), Some(_)) => {
                let message = format!(
                    "`output_size` {sizes:?} is not the length of an input of these windows: for dim {dim} it must be {} to {}",
                    size.saturating_sub(stride[at] - 1),
                    size.saturating_add(stride[at] - 1)
                );
                return Err(fail(ErrorKind::Shape, message));
            }
            (None, _) => return Err(fail(ErrorKind::Value, "the size of the result is out of range".into())),
        }
    }
    let (moved, order) = with_last(op, x, dims.len(), dims)?;
    let (places, _) = with_last(op, indices, dims.len(), dims)?;
    let outer = moved.sizes()[..moved.ndim() - dims.len()].to_vec();
    let names = moved.names().clone();
    let flat = |x: &Tensor| {
        let windows: usize = x.sizes()[outer.len()..].iter().product();
        x.rename(None)?.reshape([outer.iter().product(), windows])
    };
    let failed = |error: Error| about(error, op, &[x, indices]).at(caller);
    let volume =
        sizes.iter().try_fold(1_usize, |volume, size| volume.checked_mul(*size)).unwrap_or(usize::MAX);
    let planes: usize = outer.iter().product();
    let zeros = moved.new_zeros([planes, volume]).map_err(failed)?;
    let y = zeros.scatter(flat(&places)?, flat(&moved)?, 1).map_err(failed)?;
    let sizes: Vec<usize> = outer.into_iter().chain(sizes).collect();
    let y = y.reshape(sizes)?;
    moved_back(if names.is_named() { y.rename(Some(names))? } else { y }, order.as_ref())
}
