//! Grids of positions in images: the grid of an affine map, and which dims of the images and of a grid are
//! the same.

use crate::dims::images::{about, fail};
use crate::dims::moved_back;
use namegrad_autograd::chain::*;
use namegrad_autograd::{Tensor, TensorOptions};
use namegrad_core::args::Positions;
use namegrad_core::names::{Name, Names};
use namegrad_core::{DType, ErrorKind, Result};
use std::panic::Location;

/// The centers of the elements of an image in its own coordinates, each with a 1: `[elements, dims + 1]`.
#[track_caller]
pub(super) fn positions(sizes: &[usize], align_corners: bool, dtype: DType) -> Result<Tensor> {
    let place = |at: usize, n: usize| match align_corners {
        _ if n == 1 => 0.0,
        true => 2.0 * at as f64 / (n - 1) as f64 - 1.0,
        false => (2 * at + 1) as f64 / n as f64 - 1.0,
    };
    let last = sizes.len();
    // Sizes whose product is too large for memory are refused here.
    let mut x = TensorOptions::new().dtype(DType::F64).ones([sizes, &[last + 1]].concat())?;
    let count: usize = sizes.iter().product();
    let mut numbers = Vec::with_capacity(count * (last + 1));
    for mut at in 0..count {
        for n in sizes.iter().rev() {
            numbers.push(place(at % n, *n));
            at /= n;
        }
        numbers.push(1.0);
    }
    x = Tensor::from_slice(&numbers, [count, last + 1]).inspect(|_| drop(x))?;
    x.to(dtype)
}

/// The positions of the dims of images and of a grid.
pub(super) struct Places {
    /// The batch dims of the images, and the same ones of the grid.
    batch: Vec<(usize, usize)>,
    channels: Vec<usize>,
    /// The spatial dims of the images, and the same ones of the grid.
    spatial: Vec<(usize, usize)>,
}

impl Places {
    #[track_caller]
    pub(super) fn find(
        op: &'static str,
        x: &Tensor,
        grid: &Tensor,
        dims: Option<Positions>,
    ) -> Result<Places> {
        let caller = Location::caller();
        let fail = |kind, message: String| fail(op, kind, message, &[x, grid]).at(caller);
        let coordinates = grid.sizes().last().copied().unwrap_or(0);
        let by_dims = dims.is_some();
        let spatial: Positions = match dims {
            Some(dims) => dims,
            None => (x.ndim().saturating_sub(coordinates)..x.ndim()).collect(),
        };
        // Without names, the dims are PyTorch's.
        let layout = x.has_names() || by_dims || x.ndim() == coordinates + 2 && grid.ndim() == x.ndim();
        if !layout {
            let message = format!(
                "expected images [N, C, H, W] and a grid [N, H', W', 2], or [N, C, D, H, W] and [N, D', H', W', 3], got {:?} and {:?}",
                x.sizes(),
                grid.sizes()
            );
            return Err(fail(ErrorKind::Shape, message));
        }
        if !(1..=3).contains(&coordinates) || spatial.len() != coordinates || grid.ndim() < coordinates + 1 {
            let message = format!(
                "a grid has as many coordinates in its last dim as the images have spatial dims, and as many dims before it; this one has {coordinates} for {}",
                spatial.len()
            );
            return Err(fail(ErrorKind::Shape, message));
        }
        let last = grid.ndim() - 1;
        let by_name: Option<Vec<usize>> =
            spatial.iter().map(|dim| grid.names().position(x.name(*dim)?).filter(|at| *at < last)).collect();
        let made = by_name.unwrap_or_else(|| (last - coordinates..last).collect());
        let mut left: Vec<usize> = (0..x.ndim()).filter(|dim| !spatial.contains(dim)).collect();
        let mut batch = Vec::new();
        let of_grid: Vec<usize> = (0..last).filter(|dim| !made.contains(dim)).collect();
        // Those with names first, so that the others do not take their dims.
        for at in of_grid.iter().copied().filter(|at| grid.name(*at).is_some()) {
            let found = grid.name(at).and_then(|name| x.names().position(name));
            if let Some(dim) = found.filter(|dim| left.contains(dim)) {
                left.retain(|other| *other != dim);
                batch.push((dim, at));
            }
        }
        for at in of_grid {
            if batch.iter().any(|(_, found)| *found == at) {
                continue;
            }
            let fits = |dim: &usize| x.name(*dim).is_none() || grid.name(at).is_none();
            let Some(dim) = left.first().copied().filter(fits) else {
                let name = grid.name(at).map_or(format!("dim {at}"), |name| format!("the dim '{name}'"));
                return Err(fail(ErrorKind::NameMismatch, format!("the images lack {name} of the grid")));
            };
            left.remove(0);
            batch.push((dim, at));
        }
        for (dim, at) in &batch {
            let (images, grids) = (x.sizes()[*dim], grid.sizes()[*at]);
            if images != grids {
                let error = fail(ErrorKind::Shape, format!("there are {images} images and {grids} grids"));
                return Err(error.with_repair("a grid without a batch dim is for all images"));
            }
        }
        Ok(Places { batch, channels: left, spatial: spatial.into_iter().zip(made).collect() })
    }

    /// The images `[batch, channels, spatial..]` and the grid `[batch, positions.., coordinates]`.
    #[track_caller]
    pub(super) fn apply(&self, x: &Tensor, grid: &Tensor) -> Result<[Tensor; 2]> {
        let (mut batch, mut channels, mut grids) = (1, 1, 1);
        let (mut order, mut spatial, mut positions) = (Vec::new(), Vec::new(), Vec::new());
        for (dim, at) in &self.batch {
            batch *= x.sizes()[*dim];
            grids *= grid.sizes()[*at];
            order.push(*at);
        }
        for dim in &self.channels {
            channels *= x.sizes()[*dim];
        }
        for (dim, at) in &self.spatial {
            spatial.push(x.sizes()[*dim]);
            positions.push(grid.sizes()[*at]);
            order.push(*at);
        }
        positions.push(self.spatial.len());
        order.push(grid.ndim() - 1);
        let images =
            x.rename(None).permute(self.order()).reshape([&[batch, channels], &spatial[..]].concat())?;
        let grid = grid.rename(None).permute(order).reshape([&[grids], &positions[..]].concat())?;
        Ok([images, grid])
    }

    /// The dims of the images in the order of the op.
    fn order(&self) -> Vec<usize> {
        let mut order = Vec::new();
        order.extend(self.batch.iter().map(|(dim, _)| *dim));
        order.extend(&self.channels);
        order.extend(self.spatial.iter().map(|(dim, _)| *dim));
        order
    }

    /// The result with the dims of the images, and their names or those of the grid.
    #[track_caller]
    pub(super) fn restore(&self, y: Tensor, x: &Tensor, grid: &Tensor) -> Result<Tensor> {
        let mut names: Vec<Option<Name>> = (0..x.ndim()).map(|dim| x.name(dim)).collect();
        for (dim, at) in self.spatial.iter().chain(&self.batch) {
            names[*dim] = names[*dim].or(grid.name(*at));
        }
        let (order, mut sizes) = (self.order(), Vec::with_capacity(x.ndim()));
        for dim in &order {
            let place = self.spatial.iter().find(|(spatial, _)| spatial == dim);
            sizes.push(place.map_or(x.sizes()[*dim], |(_, at)| grid.sizes()[*at]));
        }
        let y = moved_back(y.reshape(sizes)?, &order)?;
        let names =
            Names::new("grid_sample", names).map_err(|error| about(error, "grid_sample", &[x, grid]))?;
        if names.is_named() { y.rename(Some(names)) } else { Ok(y) }
    }
}
