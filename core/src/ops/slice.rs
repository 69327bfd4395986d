//! Parts of a tensor as views: ranges, single positions, diagonals, windows.

use crate::tensor::NamedTensor;
use namegrad_macros::ops;

ops! { slice;
    //! # Slices
    /// The `length` positions of `dim` from `start` on; a view. A negative `start` counts from the end.
    narrow (x; dim: Dim, start: isize, length: usize);
    /// Every `step`-th position of `dim` from `start` up to but not including `end`; a view. Both are clamped
    /// to the size of the dim, and negative values count from the end.
    slice (x; dim: Dim, start: isize or 0, end: isize or isize::MAX, step: usize or 1);
    /// The part of the tensor at position `index` of `dim`, which is removed; a view. A negative index counts
    /// from the end.
    select (x; dim: Dim, index: isize) names removes;
    /// The diagonal of `dim1` and `dim2`, `offset` above the main diagonal, as a new last dim; a view.
    diagonal (x; dim1: Dim = 0, dim2: Dim = 1, offset: isize = 0, name: NewName = None)
        names removes;
    /// Windows of `size` elements along `dimension`, each starting `step` elements after the previous one, as
    /// a new last dim; a view.
    unfold (x; dimension: Dim, size: usize, step: usize, name: NewName = None);
}

pub(crate) mod kernels {
    use super::NamedTensor;
    use crate::dim::{called, in_rust, others};
    use crate::error::{Error, ErrorKind, Result};
    use crate::layout::{Sizes, Strides};
    use crate::names::{Name, Names};
    use crate::ops::shape::kernels::without;
    use crate::sizes::checked_numel;

    #[track_caller]
    pub(crate) fn narrow(x: &NamedTensor, dim: usize, start: isize, length: usize) -> Result<NamedTensor> {
        let Some(&size) = x.sizes().get(dim) else {
            return Err(Error::about(
                &[x],
                ErrorKind::Shape,
                "narrow",
                "cannot be applied to a 0-dim tensor",
            ));
        };
        let from = if start < 0 { start + size as isize } else { start };
        if from < 0 || from as usize > size {
            let message = format!("start ({start}) is out of range of {} of size {size}", called(x, dim));
            return Err(Error::about(&[x], ErrorKind::Index, "narrow", message));
        }
        if length > size - from as usize {
            let message =
                format!("start ({from}) + length ({length}) exceeds the size of {} ({size})", called(x, dim));
            let dim = in_rust(x, dim);
            return Err(Error::about(&[x], ErrorKind::Index, "narrow", message)
                .with_repair(format!("x.narrow({dim}, {from}, {})?", size - from as usize)));
        }
        Ok(stepped(x, dim, from as usize, length, 1))
    }

    /// `length` positions of `dim`, `step` apart, from `start` on.
    fn stepped(x: &NamedTensor, dim: usize, start: usize, length: usize, step: usize) -> NamedTensor {
        let (mut sizes, mut strides) = (Sizes::from_slice(x.sizes()), Strides::from_slice(x.strides()));
        let offset = if length == 0 { 0 } else { start as isize * strides[dim] };
        sizes[dim] = length;
        if length > 1 {
            strides[dim] *= step as isize; // less than the size, otherwise there is no second element
        }
        x.view_as(sizes, strides, (x.offset() as isize + offset) as usize, x.names().clone())
    }

    #[track_caller]
    pub(crate) fn slice(
        x: &NamedTensor,
        dim: usize,
        start: isize,
        end: isize,
        step: usize,
    ) -> Result<NamedTensor> {
        let Some(&size) = x.sizes().get(dim) else {
            return Err(Error::about(&[x], ErrorKind::Shape, "slice", "cannot be applied to a 0-dim tensor"));
        };
        if step == 0 {
            return Err(Error::about(&[x], ErrorKind::Value, "slice", "the step must be positive, got 0"));
        }
        let clamp = |at: isize| {
            (if at < 0 { at.saturating_add(size as isize) } else { at }).clamp(0, size as isize) as usize
        };
        let (start, end) = (clamp(start), clamp(end));
        Ok(stepped(x, dim, start, end.saturating_sub(start).div_ceil(step), step))
    }

    #[track_caller]
    pub(crate) fn select(x: &NamedTensor, dim: usize, index: isize) -> Result<NamedTensor> {
        let Some(&size) = x.sizes().get(dim) else {
            return Err(Error::about(
                &[x],
                ErrorKind::DimRange,
                "select",
                "cannot be applied to a 0-dim tensor",
            ));
        };
        let from = if index < 0 { index + size as isize } else { index };
        if from < 0 || from as usize >= size {
            let message = format!("index {index} out of range for {} of size {size}", called(x, dim));
            let error = Error::about(&[x], ErrorKind::Index, "select", message);
            return Err(match size {
                0 => error,
                _ => error.with_repair(format!(
                    "x.select({}, -1)? for the last; the indices are {} to {}",
                    in_rust(x, dim),
                    -(size as isize),
                    size - 1
                )),
            });
        }
        Ok(without(&stepped(x, dim, from as usize, 1, 1), &[dim]))
    }

    #[track_caller]
    pub(crate) fn diagonal(
        x: &NamedTensor,
        dim0: usize,
        dim1: usize,
        offset: isize,
        name: Option<Name>,
    ) -> Result<NamedTensor> {
        if dim0 == dim1 || x.ndim() < 2 {
            let message = match x.ndim() {
                0 | 1 => format!("a diagonal is of two dims, and the tensor has {}", x.ndim()),
                _ => format!("diagonal dimensions cannot be identical {dim0}, {dim1}"),
            };
            let error = Error::about(&[x], ErrorKind::DimRange, "diagonal", message);
            return Err(match x.ndim() {
                0 => error,
                1 => error.with_repair("x.diag()? for the matrix with x on its diagonal"),
                _ => error.with_repair(format!("x.diagonal({}, {})?", in_rust(x, 0), in_rust(x, 1))),
            });
        }
        let (rows, cols) = (x.sizes()[dim0], x.sizes()[dim1]);
        let (row, col) = if offset >= 0 { (0, offset as usize) } else { (offset.unsigned_abs(), 0) };
        let length = rows.saturating_sub(row).min(cols.saturating_sub(col));
        let step = x.strides()[dim0] + x.strides()[dim1];
        let skip =
            if length == 0 { 0 } else { row as isize * x.strides()[dim0] + col as isize * x.strides()[dim1] };
        let rest = others(x.ndim(), &[dim0, dim1]);
        let (mut sizes, mut strides) = (x.sizes_of(&rest), x.strides_of(&rest));
        sizes.push(length);
        strides.push(step);
        let mut names = Vec::new();
        for dim in &rest {
            names.push(x.name(*dim));
        }
        names.push(name);
        let names = Names::new("diagonal", names).map_err(|error| error.with_inputs(&[x]))?;
        Ok(x.view_as(sizes, strides, (x.offset() as isize + skip) as usize, names))
    }

    #[track_caller]
    pub(crate) fn unfold(
        x: &NamedTensor,
        dim: usize,
        size: usize,
        step: usize,
        name: Option<Name>,
    ) -> Result<NamedTensor> {
        let length = x.length_of(dim);
        if step == 0 {
            let message = "the step from one window to the next must be at least 1, got 0";
            return Err(Error::about(&[x], ErrorKind::Value, "unfold", message)
                .with_repair(format!("x.unfold({}, {size}, 1)?", in_rust(x, dim))));
        }
        if size > length {
            let message =
                format!("a window of {size} elements is larger than {} of size {length}", called(x, dim));
            return Err(Error::about(&[x], ErrorKind::Value, "unfold", message)
                .with_repair(format!("x.unfold({}, {length}, {step})?", in_rust(x, dim))));
        }
        let (mut sizes, mut strides) = (Sizes::from_slice(x.sizes()), Strides::from_slice(x.strides()));
        if x.ndim() == 0 {
            return Ok(x.view_as(
                Sizes::from_slice(&[size]),
                Strides::from_slice(&[1]),
                x.offset(),
                Names::new("unfold", [name])?,
            ));
        }
        let apart = strides[dim];
        sizes[dim] = (length - size) / step + 1;
        if sizes[dim] > 1 {
            strides[dim] *= step as isize;
        }
        sizes.push(size);
        strides.push(apart);
        // Windows overlap, so a view can have more elements than there are addresses.
        checked_numel("unfold", &sizes, x.dtype().itemsize())?;
        let names = Names::new("unfold", x.names().iter(x.ndim()).chain([name]))
            .map_err(|error| error.with_inputs(&[x]))?;
        Ok(x.view_as(sizes, strides, x.offset(), names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn windows_that_overlap_beyond_all_addresses_are_an_error() {
        let x = NamedTensor::zeros([1]).unwrap().expand([1usize << 40]).unwrap();
        let error = x.unfold(0, 1usize << 39, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        assert_eq!(error.location().file(), file!());
        assert_eq!(x.unfold(0, 1usize << 39, 1usize << 39).unwrap().sizes(), [2, 1 << 39]);
    }

    #[test]
    fn a_step_beyond_the_end_leaves_one_element() {
        let x = NamedTensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2]).unwrap();
        for step in [3, usize::MAX, usize::MAX / 2, 1 << 62] {
            assert_eq!(x.slice(0, 1, 3, step).unwrap().to_vec::<f32>().unwrap(), [3.0, 4.0]);
            assert_eq!(x.unfold(0, 2, step).unwrap().sizes(), [1, 2, 2]);
        }
    }
}
