//! Pooling over dims in any place, for the functions and the layers: the dims are moved to the end and back.

use super::*;
use namegrad_core::Picked;
use namegrad_core::args::{OfDims, Windows};

/// `x` with `dims` last, and the order of its dims.
fn with_last(x: &Tensor, windows: usize, dims: &Positions) -> Result<(Tensor, Vec<usize>)> {
    let count = dims.len();
    (count == windows)
        .or_value(format_args!("expected {windows} `dims`, one for each dim of the windows, got {count}"))?;
    dims.iter()
        .all(|dim| x.sizes()[*dim] != 0)
        .or_shape(format_args!("the dims of the windows cannot be empty, got sizes {:?}", x.sizes()))?;
    let order = [&others(x, dims)[..], dims].concat();
    Ok((permuted(x.clone(), &order)?, order))
}

/// Both outputs with their dims where those of the input were.
fn both_back(picked: Picked<Tensor>, order: &[usize]) -> Result<Picked<Tensor>> {
    let Picked { values, indices } = picked;
    Ok(Picked { values: moved_back(values, order)?, indices: moved_back(indices, order)? })
}

/// The largest elements of windows over `dims`.
pub(crate) fn max_over(x: &Tensor, windows: Windows, dims: &Positions) -> Result<Picked<Tensor>> {
    let (moved, order) = with_last(x, windows.dims(), dims)?;
    both_back(moved.max_pool(windows)?, &order)
}

/// The means of windows over `dims`.
pub(crate) fn avg_over(x: &Tensor, windows: Windows, dims: &Positions) -> Result<Tensor> {
    let (moved, order) = with_last(x, windows.dims(), dims)?;
    moved_back(moved.avg_pool(windows)?, &order)
}

/// The norms of windows over `dims`.
pub(crate) fn lp_over(x: &Tensor, p: f64, windows: Windows, dims: &Positions) -> Result<Tensor> {
    x.value().check_float("")?;
    if p == 0.0 || p.is_nan() {
        return Err(value_error(format_args!("`norm_type` must not be {p}")).with_repair("2.0"));
    }
    if p.is_infinite() {
        let sign = p.signum();
        return max_over(&x.abs().mul(sign)?, windows, dims)?.values.mul(sign);
    }
    // The sums of the powers. A last window that is not complete counts as one with the same mean.
    let kernel = windows.sizes().0.over("", "kernel_size", dims.len())?;
    let means = avg_over(&x.pow(p)?, windows, dims)?;
    let sums = means.sign().mul(&means.abs().relu()?).mul(numel(&kernel))?;
    sums.pow(1.0 / p)
}

/// The factors for `dims`: those that were given for them, one for all, or a list in their order. The default
/// is 0.5.
fn factors(ratios: &OfDims<f64>, dims: &[usize]) -> Result<Vec<f64>> {
    let of = |dim: &usize| {
        let at = ratios.dims.as_ref()?.iter().position(|other| other == dim)?;
        ratios.numbers.get(at).copied()
    };
    let factors = match ratios.dims {
        _ if ratios.is_none() => Some(vec![0.5; dims.len()]),
        Some(_) => crate::list(dims.iter().map(of)),
        None => ratios.over(dims.len()),
    };
    let factors = factors.ok_or_else(|| {
        value_error(format_args!("`output_ratio` must be one number or {}, one for each dim", dims.len()))
    })?;
    for ratio in &factors {
        (*ratio > 0.0 && *ratio < 1.0)
            .or_value(format_args!("`output_ratio` must be between 0 and 1, got {ratio}"))
            .map_err(|error| error.with_repair("0.5"))?;
    }
    Ok(factors)
}

/// The largest elements of windows at random places over `dims`. Without an
/// `output_size`, the result has this part of the sizes of `x`.
pub(crate) fn fractional_over(
    x: &Tensor,
    samples: Option<&Tensor>,
    [kernel_size, output_size]: [Extents; 2],
    output_ratio: OfDims<f64>,
    dims: &Positions,
) -> Result<Picked<Tensor>> {
    let (moved, order) = with_last(x, dims.len(), dims)?;
    let names = names_at(x, dims);
    let kernel_size = kernel_size.in_order("", "kernel_size", &names, None)?;
    let mut output_size = output_size.in_order("", "output_size", &names, None)?;
    if output_size.is_none() {
        let size = |(dim, ratio): (&usize, f64)| (x.sizes()[*dim] as f64 * ratio) as usize;
        let sizes: Vec<usize> = crate::list(dims.iter().zip(factors(&output_ratio, dims)?).map(size));
        output_size = Extents::from(&sizes[..]);
    }
    let planes = numel(&moved.sizes()[..moved.ndim() - dims.len()]);
    let samples = match samples {
        Some(samples) => samples,
        None => &TensorOptions::new().device(x.device()).rand([1, planes, dims.len()])?,
    };
    both_back(moved.fractional_max_pool(samples, kernel_size, output_size)?, &order)
}

/// Zeros with elements of `x` at indices into `dims`.
pub(crate) fn unpool_over(
    [x, indices]: [&Tensor; 2],
    kernel_size: Extents,
    stride: Extents,
    padding: Extents,
    output_size: Extents,
    dims: &Positions,
) -> Result<Tensor> {
    x.value().check_alike("", ["x", "indices"], indices.value())?;
    (x.sizes() == indices.sizes()).or_shape("the indices must have the sizes of the input")?;
    let dtype = indices.dtype();
    let message = format_args!("expected indices of int32 or int64, got {dtype}");
    ensure_dtype(matches!(dtype, DType::I32 | DType::I64), message, ("indices", DType::I64))?;
    let names = names_at(x, dims);
    let numbers = |name, extents: Extents, or: Option<Extents>| {
        extents.in_order("", name, &names, or)?.over("", name, dims.len())
    };
    let kernel = numbers("kernel_size", kernel_size, None)?;
    let touching = Extents::from(&kernel[..]);
    let stride = if stride.is_none() { kernel.clone() } else { numbers("stride", stride, Some(touching))? };
    (!is_in(&stride, 0)).or_value(format_args!("`stride` must be at least 1, got {stride:?}"))?;
    let padding = numbers("padding", padding, Some(0.into()))?;
    let mut sizes = numbers("output_size", output_size.without_batch(dims.len()), None)?;
    for (at, dim) in dims.iter().enumerate() {
        let (last, stride) = (x.sizes()[*dim].saturating_sub(1), stride[at]);
        let size = last.checked_mul(stride).and_then(|size| size.checked_add(kernel[at]));
        let Some(size) = size.and_then(|size| size.checked_sub(padding[at].checked_mul(2)?)) else {
            return Err(value_error("the size of the result is out of range"));
        };
        let (least, most) = (size.saturating_sub(stride - 1), size.saturating_add(stride - 1));
        (least..=most).contains(sizes.get(at).unwrap_or(&size)).or_shape(format_args!(
            "`output_size` {sizes:?} is not the length of an input of these windows: for dim {dim} it must be {least} to {most}"
        ))?;
        sizes.extend((sizes.len() == at).then_some(size));
    }
    let (moved, order) = with_last(x, dims.len(), dims)?;
    let (places, _) = with_last(indices, dims.len(), dims)?;
    let (outer, windows) = moved.sizes().split_at(moved.ndim() - dims.len());
    let flat = [numel(outer), numel(windows)];
    let volume = sizes.iter().fold(1_usize, |volume, size| volume.saturating_mul(*size));
    let (elements, places) = (moved.rename(None).reshape(flat)?, places.rename(None).reshape(flat)?);
    let y = moved.new_zeros([flat[0], volume]).and_then(|zeros| zeros.scatter(places, elements, 1));
    let y = y.reshape([outer, &sizes].concat())?;
    moved_back(with_names(y, moved.names())?, &order)
}
