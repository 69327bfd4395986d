//! Grids of positions in images: the grid of an affine map, and which dims of the images and of a grid are
//! the same.

use super::*;
use crate::dims::{Order, dim_of};

/// The centers of the elements of an image in its own coordinates, each with a 1: `[elements, dims + 1]`.
pub(super) fn positions(sizes: &[usize], align_corners: bool, dtype: DType) -> Result<Tensor> {
    let place = |at: usize, n: usize| match align_corners {
        _ if n == 1 => 0.0,
        true => 2.0 * at as f64 / (n - 1) as f64 - 1.0,
        false => (2 * at + 1) as f64 / n as f64 - 1.0,
    };
    let last = sizes.len();
    // Sizes whose product is too large for memory are refused here.
    drop(TensorOptions::new().dtype(DType::F64).ones([sizes, &[last + 1]].concat())?);
    let count = numel(sizes);
    let mut numbers = Vec::with_capacity(count * (last + 1));
    for mut at in 0..count {
        for n in sizes.iter().rev() {
            numbers.push(place(at % n, *n));
            at /= n;
        }
        numbers.push(1.0);
    }
    tensor_of(&numbers, &[count, last + 1]).to(dtype)
}

/// The order of the dims of images and of a grid in the op. Dims of both that are alike have the same place.
pub(super) struct GridDims {
    /// The batch dims, the channels, and the dims that positions are in; and the names of the result.
    images: Order,
    /// The batch dims, the dims of positions, and that of the coordinates.
    grid: Vec<usize>,
    /// The number of batch dims.
    batch: usize,
    /// The number of dims of channels.
    channels: usize,
}

/// The dims of `x` with these names, if all are among the first `count`.
fn places(x: &Tensor, names: &[Option<Name>], count: usize) -> Option<Vec<usize>> {
    crate::list(by_name(x, names).into_iter().map(|dim| dim.filter(|dim| *dim < count)))
}

impl GridDims {
    /// Finds the dims: by name, or by position where either has no name. A batch dim that the grid lacks is one
    /// of the channels.
    pub(super) fn find(x: &Tensor, grid: &Tensor, dims: Option<Positions>) -> Result<GridDims> {
        let coordinates = grid.sizes().last().copied().unwrap_or(0);
        // Without names, the dims are PyTorch's.
        let fits = x.has_names() || dims.is_some() || x.ndim() == coordinates + 2 && grid.ndim() == x.ndim();
        fits.or_shape(format_args!(
            "expected images [N, C, H, W] and a grid [N, H', W', 2], or [N, C, D, H, W] and [N, D', H', W', 3], got {:?} and {:?}",
            x.sizes(),
            grid.sizes()
        ))?;
        let by_position = dims.is_none();
        let spatial = match dims {
            Some(dims) => dims,
            None => GridDims::spatial(x, grid, coordinates)?.into(),
        };
        let count = spatial.len();
        ((1..=3).contains(&coordinates) && count == coordinates && grid.ndim() > coordinates).or_shape(format_args!(
            "a grid has as many coordinates in its last dim as the images have spatial dims, and as many dims before it; this one has {coordinates} for {count}"
        ))?;
        let last = grid.ndim() - 1;
        let made = places(grid, &names_at(x, &spatial), last);
        if by_position && made.is_none() {
            check_last(coordinates, x)?;
        }
        let made = made.unwrap_or_else(|| range(last - coordinates..last));
        // The dims of the batch in the images, and in the grid.
        let (mut left, mut pairs) = (others(x, &spatial), Vec::new());
        for (dim, at) in spatial.iter().zip(&made) {
            check_meeting(("grid", grid, *at), ("x", x.name(*dim)))?;
        }
        if let Some(name) = grid.name(last).filter(|name| x.names().position(*name).is_some()) {
            let message = format_args!(
                "the last dim of the grid, that of the coordinates, is '{name}', which the images have too"
            );
            return Err(fault(ErrorKind::Misaligned, message));
        }
        let mut rest = others(grid, &[&made[..], &[last]].concat());
        // Those with names first, so that the others do not take their dims.
        rest.retain(|at| {
            let dim = grid.name(*at).and_then(|name| x.names().position(name));
            let place = left.iter().position(|own| Some(*own) == dim);
            pairs.extend(place.map(|place| (left.remove(place), *at)));
            place.is_none()
        });
        for at in rest {
            if !left.first().is_some_and(|dim| x.name(*dim).is_none() || grid.name(at).is_none()) {
                let message = format_args!("the images lack {} of the grid", dim_of(grid, at));
                return Err(fault(ErrorKind::NameMismatch, message));
            }
            check_meeting(("grid", grid, at), ("x", x.name(left[0])))?;
            pairs.push((left.remove(0), at));
        }
        let mut names = names_of(x);
        for (dim, at) in &pairs {
            let (images, grids) = (x.sizes()[*dim], grid.sizes()[*at]);
            if images != grids {
                let mut sizes = vec![-1; grid.ndim()];
                sizes[*at] = images as isize;
                let repair = match (grids, grid.name(*at)) {
                    (1, Some(name)) => {
                        format!("grid.squeeze(\"{name}\")?, as a grid without a batch dim is for all images")
                    }
                    (1, None) => format!("grid.expand({sizes:?})?, if it is for all images"),
                    _ => String::new(),
                };
                let message = format_args!("there are {images} images and {grids} grids");
                return Err(shape_error(message).with_repair(repair));
            }
            // An unnamed dim of the grid is for the batch, which may not come first in the images.
            let other = x.name(*dim).filter(|name| grid.name(*at).is_none() && !is_batch(*name));
            let has_batch = || names_at(x, &left).into_iter().flatten().any(is_batch);
            if let Some(name) = other.filter(|name| is_channel(*name) && !left.is_empty() || has_batch()) {
                let message = format_args!(
                    "{} of the grid has no name, and '{name}', which comes first in the images {}, is not called as a batch is",
                    dim_of(grid, *at),
                    x.shape()
                );
                return Err(fault(ErrorKind::Misaligned, message));
            }
        }
        let batch = pairs.len();
        pairs.extend(spatial.iter().copied().zip(made));
        for (dim, at) in &pairs {
            names[*dim] = names[*dim].or(grid.name(*at));
        }
        let of_batch: Vec<usize> = crate::list(pairs[..batch].iter().map(|(dim, _)| *dim));
        let images =
            Order { order: [&of_batch[..], &left, &spatial].concat(), names: Names::new("", names)? };
        let grid = crate::list(pairs.iter().map(|(_, at)| *at).chain([last]));
        Ok(GridDims { images, grid, batch, channels: left.len() })
    }

    /// The spatial dims of the images if the call does not say them: the last ones, or those whose names the
    /// last positions of the grid have. The coordinates are in the order of these dims, which images and grid
    /// have to agree on, since the order of named dims says nothing. For the same reason, the batch dims of
    /// both come before them, except for those that are called as a batch is.
    fn spatial(x: &Tensor, grid: &Tensor, coordinates: usize) -> Result<Vec<usize>> {
        let positions = grid.ndim().saturating_sub(1);
        let end_of = |count: usize| range(count.saturating_sub(coordinates)..count);
        let last = end_of(x.ndim());
        let by_images = places(grid, &names_at(x, &last), positions);
        let by_grid = places(x, &names_at(grid, &end_of(positions)), x.ndim());
        let of_grid = by_grid.as_ref().unwrap_or(&last);
        let agree = by_images.as_ref().is_none_or(|own| own.is_sorted() && *of_grid == last);
        let spatial = if by_images.is_none() { of_grid } else { &last };
        let mut shared: Vec<usize> =
            crate::list(by_name(x, &names_at(grid, &range(0..positions))).into_iter().flatten());
        let is_of_batch = |dim: &usize| x.name(*dim).is_some_and(is_batch);
        let comes_first = |dim: &usize| spatial.iter().all(|own| dim < own);
        let mut others = shared.iter().filter(|dim| !spatial.contains(dim));
        if agree
            && spatial.is_sorted()
            && !spatial.iter().any(is_of_batch)
            && others.all(|dim| is_of_batch(dim) || comes_first(dim))
        {
            return Ok(spatial.clone());
        }
        let message = format_args!(
            "the images {} and the grid {} do not have the same dims at the end, in the same order and after those of the batch, so it is not clear which dims the coordinates are for",
            x.shape(),
            grid.shape()
        );
        shared.retain(|dim| !is_of_batch(dim));
        let likely = if shared.len() == coordinates { &shared } else { of_grid };
        let names: Vec<&str> = crate::list(names_at(x, likely).into_iter().flatten().map(Name::as_str));
        let repair =
            format!("GridSampleOptions::new().dims({names:?}), with the dim of the first coordinate last");
        let fits = !likely.iter().any(is_of_batch);
        Err(repaired(fault(ErrorKind::Misaligned, message), fits.then_some(repair)))
    }

    /// The images `[batch, channels, spatial..]` and the grid `[batch, positions.., coordinates]`.
    pub(super) fn apply(&self, x: &Tensor, grid: &Tensor) -> Result<[Tensor; 2]> {
        let (of_images, of_grid) = (sizes_of(x, &self.images.order), sizes_of(grid, &self.grid));
        let (batch, rest) = of_images.split_at(self.batch);
        let (channels, spatial) = rest.split_at(self.channels);
        let images = self.images.apply(x).reshape([&[numel(batch), numel(channels)], spatial].concat())?;
        let (batch, positions) = of_grid.split_at(self.batch);
        let grid = permuted(grid.rename(None)?, &self.grid).reshape([&[numel(batch)], positions].concat())?;
        Ok([images, grid])
    }

    /// The result with the dims of the images.
    pub(super) fn restore(&self, y: Tensor, x: &Tensor) -> Result<Tensor> {
        let others = sizes_of(x, &self.images.order[..self.batch + self.channels]);
        let sizes = [&others, &y.sizes()[2..]].concat();
        self.images.restore(y.reshape(sizes)?)
    }
}
