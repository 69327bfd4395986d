//! Views and rearrangements: none of the views copies. Dims keep their names wherever they go; a dim made anew has none.

use crate::dim::{Count, Dim, Dims, Int, SizeList};
use crate::tensor::NamedTensor;

/// The rows of the ops that rearrange one tensor, handed to `$with`.
#[macro_export]
#[doc(hidden)]
macro_rules! shape_ops {
    ($with:ident) => {
        $with! {
            /// The tensor with two dims exchanged; a view.
            transpose transpose_ ["permutes dimensions"] (x; dim0: Dim, dim1: Dim)
            /// The transposed matrix; a vector or a single element stays as it is. A view.
            t t_ ["permutes dimensions"] (x)
            /// The tensor with its last two dims exchanged; a view.
            mt ["permutes dimensions"] (x)
            /// The tensor with its dims in the order `dims`, all of them; a view.
            permute ["permutes dimensions"] (x; dims: Dims)
            /// The tensor with each dim of `source` at its place in `destination`, the others in their order; a view.
            movedim ["permutes dimensions"] (x; source: Dims, destination: Dims)
            /// The tensor without those of `dims` that have size one; a view.
            squeeze squeeze_ ["removes dimensions"] (x; dims: Dims)
            /// The tensor with a new dim of size one before dim `at`, which may be the number of dims; a view. The new dim has no name.
            unsqueeze unsqueeze_ ["keeps input names; the new dim has none"] (x; at: Int)
            /// The tensor with dims of size one repeated to `sizes`, without copying; -1 keeps a size, new dims stand on the left. A view.
            expand ["keeps input names; new dims have none"] (x; sizes: SizeList)
            /// The elements in the same order under other sizes; one of them may be -1. A view, or an error if that needs a copy. Drops the
            /// names unless the sizes stay the same; [`flatten`](Self::flatten) and [`unflatten`](Self::unflatten) keep them.
            view ["drops names unless the sizes stay"] (x; sizes: SizeList)
            /// The elements in the same order under other sizes; one of them may be -1. A view if possible, else a copy. Drops the
            /// names unless the sizes stay the same; [`flatten`](Self::flatten) and [`unflatten`](Self::unflatten) keep them.
            reshape ["drops names unless the sizes stay"] (x; sizes: SizeList)
            /// The part of dim `dim` from `start` on, `length` long; a view. A negative start counts from the end.
            narrow ["keeps input names"] (x; dim: Dim, start: Int, length: Count)
            /// Every `step`-th element of dim `dim` from `start` up to before `end`, both clamped to the dim; negative ones count from the end. A view.
            slice ["keeps input names"] (x; dim: Dim, start: Int, end: Int, step: Count)
            /// The element `index` of dim `dim`, which is removed; a view. A negative index counts from the end.
            select ["removes dimensions"] (x; dim: Dim, index: Int)
            /// The tensor with the elements of `dims` in reverse order; a view.
            flip ["keeps input names"] (x; dims: Dims)
            /// The diagonal of dims `dim0` and `dim1`, `offset` above the main one, as a new last dim without a name; a view.
            diagonal ["removes dimensions"] (x; offset: Int, dim0: Dim, dim1: Dim)
            /// The tensor repeated along each dim as often as `repeats` says; new dims stand on the left.
            repeat ["keeps input names; new dims have none"] (x; repeats: SizeList)
            /// Windows of `size` elements of dim `dim`, each `step` after the one before, as a new last dim without a name; a view.
            unfold ["keeps input names; the new dim has none"] (x; dim: Dim, size: Count, step: Count)
            /// The same elements in row-major order without gaps: the tensor itself if it is so already.
            contiguous ["keeps input names"] (x)
        }
    };
}
shape_ops!(define_ops);

pub(crate) mod kernels {
    use super::NamedTensor;
    use crate::cpu::copy::{View, pack};
    use crate::dim::{Axes, resolve_index};
    use crate::error::{Error, ErrorKind, Result};
    use crate::names::{Names, rules};
    use crate::shape::{Shape, Sizes, Strides, contiguous_strides};
    use smallvec::SmallVec;
    use std::panic::Location;

    #[track_caller]
    fn fail(x: &NamedTensor, kind: ErrorKind, op: &'static str, message: String) -> Error {
        Error::new(kind, op, message).with_operands([x.extents()])
    }

    /// The dims of `x` in the order `dims`.
    pub(crate) fn reorder(x: &NamedTensor, dims: &[usize]) -> NamedTensor {
        let sizes = dims.iter().map(|dim| x.sizes()[*dim]).collect();
        let strides = dims.iter().map(|dim| x.strides()[*dim]).collect();
        x.view_as(sizes, strides, x.offset(), rules::permute(x.names(), dims))
    }

    pub(crate) fn transpose(x: &NamedTensor, dim0: usize, dim1: usize) -> Result<NamedTensor> {
        let mut dims: Axes = (0..x.ndim()).collect();
        if x.ndim() > 0 {
            dims.swap(dim0, dim1);
        }
        Ok(reorder(x, &dims))
    }

    #[track_caller]
    pub(crate) fn t(x: &NamedTensor) -> Result<NamedTensor> {
        match x.ndim() {
            0 | 1 => Ok(x.clone()),
            2 => Ok(reorder(x, &[1, 0])),
            ndim => {
                let message = format!("t() expects a tensor with <= 2 dimensions, but self is {ndim}D");
                Err(fail(x, ErrorKind::Shape, "t", message).with_repair("x.transpose(-2, -1)?"))
            }
        }
    }

    #[track_caller]
    pub(crate) fn mt(x: &NamedTensor) -> Result<NamedTensor> {
        let ndim = x.ndim();
        if ndim < 2 {
            let message =
                format!("mt is only supported on matrices or batches of matrices, got a {ndim}-D tensor");
            return Err(fail(x, ErrorKind::Shape, "mt", message));
        }
        transpose(x, ndim - 2, ndim - 1)
    }

    #[track_caller]
    pub(crate) fn permute(x: &NamedTensor, dims: Axes) -> Result<NamedTensor> {
        if dims.len() != x.ndim() {
            let message = format!("{} dims are given for a tensor of {}: all must be", dims.len(), x.ndim());
            return Err(fail(x, ErrorKind::DimRange, "permute", message)
                .with_repair("x.align_to([.., \"...\"]) needs only some names"));
        }
        Ok(reorder(x, &dims))
    }

    #[track_caller]
    pub(crate) fn movedim(x: &NamedTensor, source: Axes, destination: Axes) -> Result<NamedTensor> {
        if source.len() != destination.len() {
            let (from, to) = (source.len(), destination.len());
            let message = format!("{from} dims are to be moved to {to} places: each needs its own");
            return Err(fail(x, ErrorKind::DimRange, "movedim", message));
        }
        let mut rest = (0..x.ndim()).filter(|dim| !source.contains(dim));
        let mut dims = Axes::new();
        for place in 0..x.ndim() {
            let moved = destination.iter().position(|to| *to == place).map(|k| source[k]);
            dims.extend(moved.or_else(|| rest.next()));
        }
        Ok(reorder(x, &dims))
    }

    pub(crate) fn squeeze(x: &NamedTensor, dims: Axes) -> Result<NamedTensor> {
        let removed: Axes = dims.into_iter().filter(|dim| x.sizes()[*dim] == 1).collect();
        Ok(without(x, &removed))
    }

    /// `x` without these dims, of which only the first element is left.
    fn without(x: &NamedTensor, removed: &[usize]) -> NamedTensor {
        let kept = || (0..x.ndim()).filter(|dim| !removed.contains(dim));
        let sizes = kept().map(|dim| x.sizes()[dim]).collect();
        let strides = kept().map(|dim| x.strides()[dim]).collect();
        x.view_as(sizes, strides, x.offset(), rules::remove(x.input(), removed))
    }

    #[track_caller]
    pub(crate) fn unsqueeze(x: &NamedTensor, at: isize) -> Result<NamedTensor> {
        let at = resolve_index("unsqueeze", at, x.ndim() + 1)
            .map_err(|error| error.with_operands([x.extents()]))?;
        let (mut sizes, mut strides) = (Sizes::from_slice(x.sizes()), Strides::from_slice(x.strides()));
        let mut names: Vec<_> = x.names().iter(x.ndim()).collect();
        sizes.insert(at, 1);
        strides.insert(at, 1);
        names.insert(at, None);
        Ok(x.view_as(sizes, strides, x.offset(), Names::unchecked(names)))
    }

    #[track_caller]
    pub(crate) fn expand(x: &NamedTensor, sizes: SmallVec<[isize; 6]>) -> Result<NamedTensor> {
        let ndim = x.ndim();
        if sizes.len() < ndim {
            let message = format!(
                "the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({ndim})",
                sizes.len()
            );
            return Err(fail(x, ErrorKind::Shape, "expand", message));
        }
        let new = sizes.len() - ndim;
        let mut to = Sizes::new();
        let mut strides = Strides::new();
        for (dim, wanted) in sizes.iter().enumerate() {
            let own = dim.checked_sub(new);
            let (size, stride) = match (own, *wanted) {
                (Some(own), -1) => (x.sizes()[own], x.strides()[own]),
                (Some(own), wanted) if x.sizes()[own] as isize == wanted => {
                    (x.sizes()[own], x.strides()[own])
                }
                (Some(own), wanted) if x.sizes()[own] == 1 && wanted >= 0 => (wanted as usize, 0),
                (None, wanted) if wanted >= 0 => (wanted as usize, 0),
                (None, _) => {
                    let message = format!(
                        "the expanded size {wanted} isn't allowed in a leading, non-existing dimension {dim}"
                    );
                    return Err(fail(x, ErrorKind::Shape, "expand", message));
                }
                (Some(own), _) => {
                    let message = format!(
                        "The expanded size of the tensor ({wanted}) must match the existing size ({}) at non-singleton dimension {dim}.  \
                         Target sizes: {sizes:?}.  Tensor sizes: {:?}",
                        x.sizes()[own],
                        x.sizes()
                    );
                    return Err(fail(x, ErrorKind::Shape, "expand", message));
                }
            };
            to.push(size);
            strides.push(stride);
        }
        crate::shape::checked_numel("expand", &to, x.dtype().itemsize())?;
        let names = std::iter::repeat_n(None, new).chain(x.names().iter(ndim));
        let names = Names::unchecked(names);
        Ok(x.view_as(to, strides, x.offset(), names))
    }

    /// The sizes that `wanted` asks for, with -1 filled in.
    #[track_caller]
    fn infer_sizes(op: &'static str, x: &NamedTensor, wanted: &[isize]) -> Result<Sizes> {
        let numel = x.numel();
        let caller = Location::caller();
        let invalid = || {
            let message = format!("shape '{wanted:?}' is invalid for input of size {numel}");
            fail(x, ErrorKind::Shape, op, message).at(caller)
        };
        if wanted.iter().filter(|size| **size == -1).count() > 1 {
            return Err(fail(x, ErrorKind::Shape, op, "only one dimension can be inferred".into()));
        }
        let mut known = 1usize;
        for size in wanted.iter().filter(|size| **size != -1) {
            let size = usize::try_from(*size).map_err(|_| invalid())?;
            known = known.checked_mul(size).ok_or_else(invalid)?;
        }
        let mut sizes = Sizes::new();
        for size in wanted {
            sizes.push(match *size {
                -1 if known > 0 && numel.is_multiple_of(known) => numel / known,
                -1 => return Err(invalid()),
                size => size as usize,
            });
        }
        if sizes.iter().product::<usize>() != numel {
            return Err(invalid());
        }
        Ok(sizes)
    }

    /// Strides under which `x` has `sizes`, if no copy is needed: each group of dims of `x` without gaps is split or merged.
    pub(crate) fn view_strides(x: &NamedTensor, sizes: &[usize]) -> Option<Strides> {
        if x.numel() == 0 || x.is_contiguous() {
            return Some(contiguous_strides(sizes));
        }
        let mut strides: Strides = SmallVec::from_elem(0, sizes.len());
        let own: Vec<(usize, isize)> = x
            .sizes()
            .iter()
            .copied()
            .zip(x.strides().iter().copied())
            .filter(|(size, _)| *size != 1)
            .collect();
        let mut to = sizes.len();
        let mut end = own.len();
        while end > 0 {
            // A group: dims of `x` that step evenly, from `start` to `end`.
            let mut start = end - 1;
            let mut elements = own[start].0;
            while start > 0 && own[start - 1].1 == own[start].1 * own[start].0 as isize {
                start -= 1;
                elements *= own[start].0;
            }
            let mut step = own[end - 1].1;
            let mut left = elements;
            while to > 0 && (left > 1 || sizes[to - 1] == 1) {
                to -= 1;
                if !left.is_multiple_of(sizes[to]) {
                    return None;
                }
                strides[to] = step;
                step *= sizes[to] as isize;
                left /= sizes[to];
            }
            if left != 1 {
                return None;
            }
            end = start;
        }
        Some(strides)
    }

    /// Names survive where the sizes do.
    fn names_of(x: &NamedTensor, sizes: &[usize]) -> Names {
        if x.sizes() == sizes { x.names().clone() } else { Names::none() }
    }

    #[track_caller]
    pub(crate) fn view(x: &NamedTensor, sizes: SmallVec<[isize; 6]>) -> Result<NamedTensor> {
        let sizes = infer_sizes("view", x, &sizes)?;
        let Some(strides) = view_strides(x, &sizes) else {
            let message = format!(
                "view size is not compatible with input tensor's size {:?} and stride {:?} (at least one dimension spans across two \
                 contiguous subspaces)",
                x.sizes(),
                x.strides()
            );
            return Err(fail(x, ErrorKind::Shape, "view", message).with_repair("x.reshape(..)?"));
        };
        let names = names_of(x, &sizes);
        Ok(x.view_as(sizes, strides, x.offset(), names))
    }

    #[track_caller]
    pub(crate) fn reshape(x: &NamedTensor, sizes: SmallVec<[isize; 6]>) -> Result<NamedTensor> {
        let sizes = infer_sizes("reshape", x, &sizes)?;
        let names = names_of(x, &sizes);
        reshaped("reshape", x, sizes, names)
    }

    /// The same elements under other sizes, a copy if need be.
    #[track_caller]
    pub(crate) fn reshaped(
        op: &'static str,
        x: &NamedTensor,
        sizes: Sizes,
        names: Names,
    ) -> Result<NamedTensor> {
        if let Some(strides) = view_strides(x, &sizes) {
            return Ok(x.view_as(sizes, strides, x.offset(), names));
        }
        let dense = packed(op, x, x.dtype())?;
        let strides = contiguous_strides(&sizes);
        Ok(dense.view_as(sizes, strides, 0, names))
    }

    #[track_caller]
    pub(crate) fn narrow(x: &NamedTensor, dim: usize, start: isize, length: usize) -> Result<NamedTensor> {
        let Some(&size) = x.sizes().get(dim) else {
            return Err(fail(
                x,
                ErrorKind::Shape,
                "narrow",
                "narrow() cannot be applied to a 0-dim tensor.".into(),
            ));
        };
        let from = if start < 0 { start + size as isize } else { start };
        if from < 0 || from as usize > size {
            let message = format!("start ({start}) is out of range of dim {dim} of size {size}");
            return Err(fail(x, ErrorKind::Index, "narrow", message));
        }
        if length > size - from as usize {
            let message = format!("start ({from}) + length ({length}) exceeds dimension size ({size}).");
            return Err(fail(x, ErrorKind::Index, "narrow", message));
        }
        Ok(stepped(x, dim, from as usize, length, 1))
    }

    /// `length` elements of dim `dim`, `step` apart, from `start` on.
    fn stepped(x: &NamedTensor, dim: usize, start: usize, length: usize, step: usize) -> NamedTensor {
        let (mut sizes, mut strides) = (Sizes::from_slice(x.sizes()), Strides::from_slice(x.strides()));
        let offset = if length == 0 { 0 } else { start as isize * strides[dim] };
        sizes[dim] = length;
        strides[dim] *= step as isize;
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
            return Err(fail(
                x,
                ErrorKind::Shape,
                "slice",
                "slice() cannot be applied to a 0-dim tensor.".into(),
            ));
        };
        if step == 0 {
            return Err(fail(x, ErrorKind::Value, "slice", "slice step must be positive".into()));
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
            return Err(fail(
                x,
                ErrorKind::DimRange,
                "select",
                "select() cannot be applied to a 0-dim tensor.".into(),
            ));
        };
        let from = if index < 0 { index + size as isize } else { index };
        if from < 0 || from as usize >= size {
            let message =
                format!("index {index} out of range for tensor of size {:?} at dimension {dim}", x.sizes());
            return Err(fail(x, ErrorKind::Index, "select", message));
        }
        Ok(without(&stepped(x, dim, from as usize, 1, 1), &[dim]))
    }

    pub(crate) fn flip(x: &NamedTensor, dims: Axes) -> Result<NamedTensor> {
        if x.numel() == 0 {
            return Ok(x.clone());
        }
        let mut strides = Strides::from_slice(x.strides());
        let mut offset = x.offset() as isize;
        for dim in dims {
            offset += (x.sizes()[dim] as isize - 1) * strides[dim];
            strides[dim] = -strides[dim];
        }
        Ok(x.view_as(Sizes::from_slice(x.sizes()), strides, offset as usize, x.names().clone()))
    }

    #[track_caller]
    pub(crate) fn diagonal(x: &NamedTensor, offset: isize, dim0: usize, dim1: usize) -> Result<NamedTensor> {
        if dim0 == dim1 || x.ndim() < 2 {
            let message = format!("diagonal dimensions cannot be identical {dim0}, {dim1}");
            return Err(fail(x, ErrorKind::DimRange, "diagonal", message));
        }
        let (rows, cols) = (x.sizes()[dim0], x.sizes()[dim1]);
        let (row, col) = if offset >= 0 { (0, offset as usize) } else { (offset.unsigned_abs(), 0) };
        let length = rows.saturating_sub(row).min(cols.saturating_sub(col));
        let step = x.strides()[dim0] + x.strides()[dim1];
        let skip =
            if length == 0 { 0 } else { row as isize * x.strides()[dim0] + col as isize * x.strides()[dim1] };
        let rest = without(x, &[dim0, dim1]);
        let (mut sizes, mut strides) = (Sizes::from_slice(rest.sizes()), Strides::from_slice(rest.strides()));
        sizes.push(length);
        strides.push(step);
        let names = Names::unchecked(rest.names().iter(rest.ndim()).chain([None]));
        Ok(x.view_as(sizes, strides, (x.offset() as isize + skip) as usize, names))
    }

    #[track_caller]
    pub(crate) fn repeat(x: &NamedTensor, repeats: SmallVec<[isize; 6]>) -> Result<NamedTensor> {
        let ndim = x.ndim();
        if repeats.len() < ndim || repeats.iter().any(|times| *times < 0) {
            let message = format!(
                "Number of dimensions of repeat dims {repeats:?} can not be smaller than number of dimensions of tensor, nor one negative"
            );
            return Err(fail(x, ErrorKind::Shape, "repeat", message));
        }
        // Each dim becomes (times, size) with stride 0 for `times`; merging the two is the one copy.
        let new = repeats.len() - ndim;
        let (mut sizes, mut strides, mut merged) = (Sizes::new(), Strides::new(), Sizes::new());
        for (dim, times) in repeats.iter().enumerate() {
            let (size, stride) =
                dim.checked_sub(new).map_or((1, 0), |own| (x.sizes()[own], x.strides()[own]));
            sizes.extend([*times as usize, size]);
            strides.extend([0, stride]);
            merged.push((*times as usize).saturating_mul(size));
        }
        crate::shape::checked_numel("repeat", &merged, x.dtype().itemsize())?;
        let names = Names::unchecked(std::iter::repeat_n(None, new).chain(x.names().iter(ndim)));
        let spread = x.view_as(sizes, strides, x.offset(), Names::none());
        let dense = packed("repeat", &spread, x.dtype())?;
        let strides = contiguous_strides(&merged);
        Ok(dense.view_as(merged, strides, 0, names))
    }

    #[track_caller]
    pub(crate) fn unfold(x: &NamedTensor, dim: usize, size: usize, step: usize) -> Result<NamedTensor> {
        let length = x.length_of(dim);
        if step == 0 || size > length {
            let message =
                format!("windows of {size} elements, {step} apart, do not fit into dim {dim}, of {length}");
            return Err(fail(x, ErrorKind::Value, "unfold", message));
        }
        let (mut sizes, mut strides) = (Sizes::from_slice(x.sizes()), Strides::from_slice(x.strides()));
        if x.ndim() == 0 {
            return Ok(x.view_as(
                Sizes::from_slice(&[size]),
                Strides::from_slice(&[1]),
                x.offset(),
                Names::none(),
            ));
        }
        let apart = strides[dim];
        sizes[dim] = (length - size) / step + 1;
        strides[dim] = apart * step as isize;
        sizes.push(size);
        strides.push(apart);
        let names = Names::unchecked(x.names().iter(x.ndim()).chain([None]));
        Ok(x.view_as(sizes, strides, x.offset(), names))
    }

    #[track_caller]
    pub(crate) fn contiguous(x: &NamedTensor) -> Result<NamedTensor> {
        if x.is_contiguous() { Ok(x.clone()) } else { packed("contiguous", x, x.dtype()) }
    }

    /// A dense copy of `x`, cast to `dtype`.
    #[track_caller]
    pub(crate) fn packed(op: &'static str, x: &NamedTensor, dtype: crate::DType) -> Result<NamedTensor> {
        let mut out = NamedTensor::uninit(
            op,
            Shape { sizes: Sizes::from_slice(x.sizes()), names: x.names().clone() },
            dtype,
        )?;
        let view = View { ptr: x.ptr(), dtype: x.dtype(), strides: x.strides() };
        let to = out.ptr_mut();
        // SAFETY: the view is that of a tensor; the output is fresh and has room for as many elements.
        unsafe { pack(x.sizes(), view, dtype, to) };
        Ok(out)
    }
}

impl NamedTensor {
    /// The tensor with its dims in the order `dims`, which are all of them; a view.
    pub fn reordered(&self, dims: &[usize]) -> NamedTensor {
        kernels::reorder(self, dims)
    }

    /// The tensor with its dims in reverse order; a view.
    pub fn reversed_dims(&self) -> NamedTensor {
        let dims: Vec<usize> = (0..self.ndim()).rev().collect();
        kernels::reorder(self, &dims)
    }

    /// The elements cast to `dtype`: the tensor itself if it has it already. Floats lose their fraction in integers, anything but 0 is `true`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[track_caller]
    pub fn to(&self, dtype: crate::DType) -> crate::Result<NamedTensor> {
        if self.dtype() == dtype && !self.is_number() {
            Ok(self.clone())
        } else {
            kernels::packed("to", self, dtype)
        }
    }

    /// A dense copy with a buffer of its own. `clone` only takes a reference, which no later write can be seen through either.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[track_caller]
    pub fn deep_clone(&self) -> crate::Result<NamedTensor> {
        kernels::packed("clone", self, self.dtype())
    }

    /// Puts `result` in the place of this tensor, cast to its dtype: the end of an in-place op that cannot run in its buffer.
    #[track_caller]
    pub fn replace_with(&mut self, op: &'static str, result: NamedTensor) -> crate::Result<&mut NamedTensor> {
        if !result.dtype().can_cast(self.dtype()) {
            let message = format!(
                "result type {} can't be cast to the desired output type {}",
                result.dtype(),
                self.dtype()
            );
            return Err(
                crate::Error::new(crate::ErrorKind::DType, op, message).with_operands([self.extents()])
            );
        }
        *self = result.to(self.dtype())?;
        Ok(self)
    }

    /// Writes this result to `out`, as the argument `out=` of PyTorch's functions does; see `namegrad::Tensor::write_to`.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn write_to(self, out: &mut NamedTensor) -> crate::Result<&mut NamedTensor> {
        if out.sizes() != self.sizes() && (out.numel() > 0 || out.names().is_named()) {
            let message = format!(
                "the output has sizes {:?}, but the result has {:?}; only an unnamed output without elements is resized",
                out.sizes(),
                self.sizes()
            );
            let error = crate::Error::new(crate::ErrorKind::Shape, "out", message);
            return Err(error
                .with_operands([out.extents(), self.extents()])
                .with_repair(format!("let mut out = Tensor::zeros({:?})?", self.sizes())));
        }
        crate::names::rules::out("out", self.names(), out.input())?;
        out.replace_with("out", self)
    }
}
