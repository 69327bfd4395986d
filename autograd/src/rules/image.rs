//! Derivatives of resizing and sampling: both are linear in the images, and their transposes are ops.

use crate::Tensor;
use crate::chain::*;
use crate::rules::kernels;
use namegrad_core::Result;
use namegrad_core::args::Sampling;
use namegrad_core::ops::image::sample_at_backward;
use namegrad_macros::derivatives;

derivatives! { image; |g, cx|
    resample(x; dims, resize) -> y {
        x: [; dims resize] g.resample_input(dims, resize, &lengths(cx.sizes(), dims)[..])?
    }
    resample_input(x; dims, resize) -> y { x: [; dims resize] g.resample(dims, resize)? }
    sample_at(x, grid; sampling) -> y {
        (x grid): [x grid; sampling] sampled(g, x, grid, sampling, wants)?
            => kernels(sample_at_backward(g.value(), x.value(), grid.value(), sampling, wants)?)
    }
    sample_at_input(x, grid; sampling) -> y {
        x: [grid; sampling] unnamed(g).sample_at(&unnamed(grid)?, sampling)?,
        grid: [x grid; sampling] of_grid(&unnamed(g)?, x, grid, sampling)?
    }
}

/// The sizes of `dims`.
fn lengths(sizes: &[usize], dims: &[usize]) -> Vec<usize> {
    crate::list(dims.iter().map(|dim| sizes[*dim]))
}

fn unnamed(x: &Tensor) -> Result<Tensor> {
    x.rename(None)
}

fn sampled(
    g: &Tensor,
    x: &Tensor,
    grid: &Tensor,
    sampling: Sampling,
    wants: [bool; 2],
) -> Result<[Option<Tensor>; 2]> {
    let (x, grid) = (&unnamed(x)?, &unnamed(grid)?);
    let images = || g.sample_at_input(grid, sampling, &x.sizes()[2..]);
    Ok([
        if wants[0] { Some(images()?) } else { None },
        if wants[1] { Some(of_grid(x, g, grid, sampling)?) } else { None },
    ])
}

/// The gradient of the grid: for each coordinate, the slopes of the images along its dim, times `g`, summed
/// over the channels. The first coordinate is that of the last dim.
fn of_grid(images: &Tensor, g: &Tensor, grid: &Tensor, sampling: Sampling) -> Result<Tensor> {
    let (g, grid) = (unnamed(g)?, unnamed(grid)?);
    let slope = |dim: usize| images.sample_at(&grid, sampling.slope(dim)).mul(&g).sum(1);
    let slopes = crate::list::<_, Result<Vec<Tensor>>>((0..images.ndim() - 2).rev().map(slope))?;
    Tensor::stack(&crate::list::<_, Vec<_>>(slopes.iter()), -1)
}
