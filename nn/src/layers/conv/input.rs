//! The input of a convolution: where its dims are, and the elements around it.

use super::settings::Settings;
use super::{Named, PaddingMode};
use crate::functional::PadMode;
use crate::functional::image::repeated;
use crate::functional::layout::{Layout, Wanted};
use crate::layers::{called, within};
use crate::training::ModulePath;
use namegrad_autograd::{Tensor, autocast};
use namegrad_core::args::{Extents, Padding};
use namegrad_core::{DType, Error, ErrorKind, Result};
use std::panic::Location;

/// Where the dims of a layer are in `x`.
#[track_caller]
pub(super) fn layout<const N: usize>(
    op: &'static str,
    path: &ModulePath,
    settings: &Settings<N>,
    x: &Tensor,
    dtype: DType,
) -> Result<Layout> {
    let wanted = Wanted {
        channel: settings.input.0,
        spatial: &settings.spatial(),
        made: settings.output.0,
        exact: true,
    };
    let layout = Layout::find(op, x, None, wanted).map_err(|error| within(error, op, path))?;
    let (channel, size) = (layout.channel(), settings.input.1);
    let caller = Location::caller();
    let fail = |kind, message: String| Error::new(kind, op, message).with_operands([x.shape()]).at(caller);
    let found = x.sizes()[channel];
    if found != size {
        let dim = x.name(channel).map_or(format!("dim {channel}"), |name| format!("the dim '{name}'"));
        let who = called(path, &settings.dims());
        return Err(fail(ErrorKind::Shape, format!("{who} needs {size} elements in {dim}, got {found}")));
    }
    if !autocast::fits(x.dtype(), dtype) {
        let who = called(path, &settings.dims());
        let message = format!("{who} has parameters of {dtype}, and the input is {}", x.dtype());
        let repair = format!("x.to(DType::{dtype:?})?");
        return Err(fail(ErrorKind::DType, message).with_repair(repair));
    }
    Ok(layout)
}

/// Images with copies of their own elements around them, along the last dims.
#[track_caller]
pub(super) fn padded(
    op: &'static str,
    images: Tensor,
    kernel: &[Named],
    padding: Padding,
    dilation: Extents,
    mode: PaddingMode,
) -> Result<Tensor> {
    let dims = kernel.len();
    let around: Vec<(usize, usize)> = match padding {
        Padding::Valid => return Ok(images),
        Padding::Zeros(each) => {
            each.over(op, "padding", dims)?.into_iter().map(|each| (each, each)).collect()
        }
        Padding::Same => {
            let dilation = dilation.over(op, "dilation", dims)?;
            let total = |(dilation, (_, size)): (usize, &Named)| dilation.saturating_mul(size - 1);
            dilation.into_iter().zip(kernel).map(total).map(|total| (total / 2, total - total / 2)).collect()
        }
    };
    let mode = match mode {
        PaddingMode::Zeros => PadMode::Constant,
        PaddingMode::Reflect => PadMode::Reflect,
        PaddingMode::Replicate => PadMode::Replicate,
        PaddingMode::Circular => PadMode::Circular,
    };
    let first = images.ndim() - dims;
    let pads: Vec<(usize, [isize; 2])> = around
        .into_iter()
        .enumerate()
        .map(|(at, (before, after))| {
            (first + at, [before, after].map(|pad| isize::try_from(pad).unwrap_or(isize::MAX)))
        })
        .collect();
    repeated(op, &images, &pads, mode)
}
