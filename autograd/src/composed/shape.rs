//! Rearrangements.

use crate::Tensor;
use crate::chain::*;
use namegrad_core::{Argument, Device, Error, ErrorKind, Name, NamedTensor, Names, Result, Value, called};
use namegrad_macros::composed;

composed! { shape;
    //! # More rearrangements
    /// For a matrix, its diagonal, `diagonal` above the main one, like [`diagonal`](Self::diagonal). For a
    /// vector, the matrix with that vector on the diagonal, like [`diag_embed`](Self::diag_embed).
    ///
    /// # Errors
    /// `Shape` unless this is a vector or a matrix.
    diag (x; diagonal: isize = 0, names: NewNames = None) names called names;
    /// Matrices with the elements of the last dim on their diagonal, `offset` above the main one, and zeros
    /// elsewhere. `dim1` and `dim2` are the dims of the rows and columns in the result.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let y = Tensor::new([[1, 2]])?.refine_names(["N", "C"])?.diag_embed()?;
    /// assert_eq!((y.shape().to_string(), y.to_vec::<i64>()?), ("[N=1, ?=2, ?=2]".into(), vec![1, 0, 0, 2]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Shape` for a 0-d tensor, `DimRange` if the two dims are the same or out of range.
    diag_embed (x; offset: isize = 0, dim1: isize = -2, dim2: isize = -1, names: NewNames = None) names removes;
    /// The matrix with the elements of the tensor, in row-major order, on its diagonal, `offset` above the
    /// main one, and zeros elsewhere.
    diagflat (x; offset: isize = 0, names: NewNames = None) names called names => {
        let names = Names::given(op, &names, &[None, None])?;
        Ok(x.unnamed().reshape([-1]).diag_with(DiagOptions::new().diagonal(offset))?.named(names))
    }
    /// The tensor with at least one dim: a 0-d tensor gets one of size 1. Views.
    atleast_1d
    /// The tensor with at least two dims: a vector becomes a row. A view.
    atleast_2d
    /// The tensor with at least three dims: a vector `[n]` becomes `[1, n, 1]`, and a matrix `[n, m]` becomes
    /// `[n, m, 1]`. A view.
    atleast_3d (x) => {
        let mut x = x.clone();
        while x.ndim() < rank {
            x = x.unsqueeze(if x.ndim() == 2 { -1 } else { 0 })?;
        }
        Ok(x)
    }
    /// The windows of `size` elements along `dim`, each starting `step` elements after the previous one: `dim`
    /// counts the windows, and their elements are along a new dim called `name` right after it. A view.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let load = Tensor::arange(0, 6, 1)?.refine_names(["time"])?;
    /// let windows = load.windows("time", 3, 1, "window")?;
    /// assert_eq!(windows.shape().to_string(), "[time=4, window=3]");
    /// assert_eq!(windows.select("time", 1)?.to_vec::<i64>()?, [1, 2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Value` for a size or a step of 0, or a window longer than the dim; `Shape` for a 0-d tensor,
    /// `DuplicateName`, `NameNotFound`, `DimRange`.
    windows (x; dim: Dim, size: usize, step: usize, name: NewName) => windowed(op, x, dim, [size, 0, step], name)
        .map(|(windows, _)| windows);
    /// The [`windows`](Self::windows) along `dim` that have `horizon` elements after them, and those elements:
    /// what a forecast sees and what it is about. Both are views with the new dim `name`.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let load = Tensor::arange(0, 6, 1)?.refine_names(["time"])?;
    /// let (seen, ahead) = load.windows_ahead("time", 3, 2, 1, "window")?;
    /// assert_eq!(seen.to_vec::<i64>()?, [0, 1, 2, 1, 2, 3]);
    /// assert_eq!(ahead.to_vec::<i64>()?, [3, 4, 4, 5]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`windows`](Self::windows); `Value` if `horizon` is 0, or a window and its horizon are longer
    /// than the dim.
    windows_ahead (x; dim: Dim, size: usize, horizon: usize, step: usize, name: NewName) -> (seen, ahead) => {
        Error::ensure(horizon > 0, ErrorKind::Value, op, || "the horizon must be at least 1, got 0")?;
        windowed(op, x, dim, [size, horizon, step], name)
    }
    /// The elements at `storage_offset + Σ index stride`, counted in row-major order, for each index within
    /// `size`. Unlike PyTorch's view this is a copy, whose positions are checked, and which does not depend on
    /// the memory order of the tensor.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::arange(0, 9, 1)?;
    /// assert_eq!(x.as_strided([2, 2], [3, 1])?.to_vec::<i64>()?, [0, 1, 3, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Shape` unless there is a stride for each size, `Value` for a negative stride, `Index` if a position is
    /// beyond the last element.
    as_strided (x; size: Shape, stride: Strides, storage_offset: usize = 0) names called size;
    /// The tensor rotated by `k` times 90 degrees in the plane of two dims, from the first toward the second;
    /// a view.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1, 2], [3, 4]])?.refine_names(["H", "W"])?;
    /// assert_eq!(x.rot90(1, ["H", "W"])?.to_vec::<i64>()?, [2, 4, 1, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `DimRange` unless there are two different dims, `NameNotFound`.
    rot90 (x; k: isize or 1, dims: Dims = [0, 1]) names permutes;
    /// The sum of the diagonal of a matrix.
    ///
    /// # Errors
    /// `Shape` unless this is a matrix.
    trace (x) names removes;
    /// The tensor with each element repeated along `dim`. `repeats` is a number, or a vector with a number
    /// for each element. With `..`, the tensor is flattened first. A copy. `output_size` is the size of the
    /// dim in the result, if it is known: another one is an error.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([5, 6])?.refine_names(["N"])?;
    /// assert_eq!(x.repeat_interleave(2, "N")?.to_vec::<i64>()?, [5, 5, 6, 6]);
    /// assert_eq!(x.repeat_interleave(Tensor::new([0, 3])?, "N")?.to_vec::<i64>()?, [6, 6, 6]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `DType` unless `repeats` has dtype `i32` or `i64`, `Value` if a number is negative or the sum is not
    /// `output_size`, `Shape` if there is not one number for each element, `NameNotFound`, `DimRange`.
    repeat_interleave (x, repeats: Operand; dim: Dims = .., output_size: Option<usize> = None) names keeps, repeats: along dim;
    /// The tensor repeated along its last dims as many times as `dims` says; the dims before them do not
    /// change. Like [`repeat`](Self::repeat), which needs a number for each dim.
    tile (x; dims: Shape);
    /// The elements in row-major order, as a vector; a view if possible.
    ravel (x; name: NewName = None) names removes;
    /// The tensor with dim 1 reversed: flipped left to right.
    ///
    /// # Errors
    /// `DimRange` for fewer than two dims.
    fliplr (x);
    /// The tensor with dim 0 reversed: flipped upside down.
    ///
    /// # Errors
    /// `DimRange` for a 0-d tensor.
    flipud (x);
    /// The tensor with two dims swapped, like [`transpose`](Self::transpose); a view.
    swapaxes (x; axis0: Dim, axis1: Dim) names permutes;
    /// The tensor expanded to the sizes of `other`, whose dims are matched by name if both tensors have names:
    /// the result has the order of `other`. A view.
    expand_as (x, other) names of other, other: aligned;
    /// The elements in the same order with the sizes and names of `other`. The result is a view; if that is
    /// impossible, it is an error.
    view_as (x, other) names of other, other: own;
    /// The elements in the same order with the sizes and names of `other`; a view if possible, otherwise a
    /// copy.
    reshape_as (x, other) names of other, other: own;
}

/// Distances of elements in row-major order, one for each dim; an argument of [`Tensor::as_strided`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strides(Vec<usize>);

impl<const K: usize> From<[usize; K]> for Strides {
    fn from(list: [usize; K]) -> Strides {
        Strides(list.to_vec())
    }
}
impl From<&[usize]> for Strides {
    fn from(list: &[usize]) -> Strides {
        Strides(list.to_vec())
    }
}
impl Argument for Strides {
    type Resolved = Strides;
    type View<'a> = &'a Strides;
    fn look_up(&self, _: &'static str, _: &[&NamedTensor]) -> Result<Strides> {
        Ok(self.clone())
    }
    fn view(resolved: &Strides) -> &Strides {
        resolved
    }
    fn from_value(value: &Value) -> Option<Strides> {
        let Value::List(list) = value else { return None };
        crate::list::<_, Option<_>>(list.iter().map(usize::from_value)).map(Strides)
    }
    fn accepted() -> String {
        "a list of strides".into()
    }
}

/// Windows of `size` elements with `horizon` elements after them, and these.
fn windowed(
    op: &'static str,
    x: &Tensor,
    dim: usize,
    [size, horizon, step]: [usize; 3],
    name: Option<Name>,
) -> Result<(Tensor, Tensor)> {
    let Some(length) = x.sizes().get(dim).copied() else {
        return Err(Error::new(ErrorKind::Shape, op, "a 0-d tensor has no windows"));
    };
    Error::ensure(size > 0 && step > 0, ErrorKind::Value, op, || {
        format!("the size and the step of windows must be at least 1, got {size} and {step}")
    })?;
    let whole = size.saturating_add(horizon);
    Error::ensure(whole <= length, ErrorKind::Value, op, || {
        let dim = called(x.value(), dim);
        match horizon {
            0 => format!("a window of {size} elements is longer than {dim} of size {length}"),
            _ => format!("a window of {size} elements and a horizon of {horizon} are longer than {dim} of size {length}"),
        }
    })
    .map_err(|error| error.with_operands([x.shape()]))?;
    let of = |start: usize, own: usize| -> Result<Tensor> {
        let part = x.narrow(dim, start, length - (whole - own))?;
        let mut names: Vec<Option<Name>> = crate::list(x.names().iter(x.ndim()));
        names.insert(dim + 1, name);
        let names = Names::new(op, names).map_err(|error| error.with_operands([x.shape()]))?;
        Ok(part.unnamed().unfold(dim, own, step).movedim(-1, dim + 1)?.named(names))
    };
    let ahead = if horizon == 0 { x.clone() } else { of(size, horizon)? };
    Ok((of(0, size)?, ahead))
}

/// # Sums that undo broadcasting
impl Tensor {
    /// The sum over the dims along which a tensor with `sizes` was broadcast to the sizes of this one.
    ///
    /// # Errors
    /// `Shape` if `sizes` do not broadcast to the sizes of this tensor.
    #[track_caller]
    pub fn sum_to(&self, sizes: &[usize]) -> Result<Tensor> {
        let new = self.ndim().saturating_sub(sizes.len());
        let broadcast = |dim: &usize| *dim < new || sizes[dim - new] == 1 && self.sizes()[*dim] != 1;
        let fits = self.ndim() >= sizes.len()
            && (new..self.ndim()).all(|dim| sizes[dim - new] == self.sizes()[dim] || sizes[dim - new] == 1);
        let message = || format!("sizes {sizes:?} do not broadcast to {:?}", self.sizes());
        Error::ensure(fits, ErrorKind::Shape, "sum_to", message)?;
        let dims: Vec<usize> = crate::list((0..self.ndim()).filter(broadcast));
        self.unnamed().sum(dims).reshape(sizes)
    }
}

mod kernels {
    use super::*;
    use crate::rules::slice::onto_diagonal;
    use namegrad_core::args::{self, OpenDim, OpenShape, Positions};
    use namegrad_core::options::DiagonalOptions;
    use namegrad_core::{DType, IntoShape};

    #[track_caller]
    pub(super) fn diag(x: &Tensor, diagonal: isize, names: Vec<Option<Name>>) -> Result<Tensor> {
        const OP: &str = "diag";
        match x.ndim() {
            1 => {
                let names = Names::given(OP, &names, &[None, None])?;
                Ok(x.diag_embed_with(DiagEmbedOptions::new().offset(diagonal))?.named(names))
            }
            2 => {
                let names = Names::given(OP, &names, &[None])?;
                Ok(x.diagonal_with(0, 1, DiagonalOptions::new().offset(diagonal))?.named(names))
            }
            ndim => {
                let message = format!("Supports 1D or 2D tensors, got {ndim}D");
                Err(Error::new(ErrorKind::Shape, OP, message)
                    .with_repair("x.diagonal(-2, -1)? for the diagonals of a batch of matrices"))
            }
        }
    }

    #[track_caller]
    pub(super) fn as_strided(
        x: &Tensor,
        size: OpenShape,
        Strides(stride): Strides,
        storage_offset: usize,
    ) -> Result<Tensor> {
        const OP: &str = "as_strided";
        let shape = args::Shape(size).into_shape()?;
        let sizes = &shape.sizes[..];
        Error::ensure(sizes.len() == stride.len(), ErrorKind::Shape, OP, || {
            format!("expected a stride for each size, got {sizes:?} and {stride:?}")
        })?;
        let (mut places, mut last) =
            (NamedTensor::full([0usize; 0], storage_offset as i64)?, Some(storage_offset));
        for (size, stride) in sizes.iter().zip(&stride) {
            last = last.and_then(|last| last.checked_add(stride.checked_mul(size.saturating_sub(1))?));
            if last.is_none_or(|last| last >= x.numel()) {
                break;
            }
            let along = NamedTensor::arange(0, *size as i64, 1, DType::I64)?.mul(*stride as i64)?;
            places = places.unsqueeze(-1)?.add(&along)?;
        }
        if sizes.contains(&0) {
            return x.unnamed().reshape([-1]).narrow(0, 0, 0).reshape(sizes).map(|y| y.named(shape.names));
        }
        if last.is_none_or(|last| last >= x.numel()) {
            let message = format!(
                "sizes {sizes:?} with strides {stride:?} from {storage_offset} on reach beyond {} elements",
                x.numel()
            );
            return Err(Error::new(ErrorKind::Index, OP, message).with_operands([x.shape()]));
        }
        Ok(x.take(Tensor::constant(places))?.named(shape.names))
    }

    #[track_caller]
    pub(super) fn diag_embed(
        x: &Tensor,
        offset: isize,
        dim1: isize,
        dim2: isize,
        names: Vec<Option<Name>>,
    ) -> Result<Tensor> {
        const OP: &str = "diag_embed";
        let new = Names::given(OP, &names, &[None, None])?;
        Error::ensure(dim1 != dim2, ErrorKind::DimRange, OP, || {
            format!("dim1 and dim2, the dims of the new diagonals, must differ, got {dim1} for both")
        })?;
        let Some((last, rest)) = x.sizes().split_last() else {
            return Err(Error::new(ErrorKind::Shape, OP, "expected a tensor of at least one dim"));
        };
        let Some(side) = last.checked_add(offset.unsigned_abs()) else {
            return Err(Error::new(ErrorKind::Value, OP, format!("an offset of {offset} is too large")));
        };
        let sizes = [rest, &[side, side]].concat();
        let y = onto_diagonal(&x.unnamed(), &sizes, offset, rest.len(), rest.len() + 1)?;
        let names = x.names().iter(x.ndim()).take(rest.len()).chain(new.iter(2));
        let y = y.named(Names::new(OP, names)?);
        y.movedim([-2, -1], [dim1, dim2])
    }

    #[track_caller]
    pub(super) fn rot90(x: &Tensor, k: isize, dims: Positions) -> Result<Tensor> {
        let &[first, second] = &dims[..] else {
            let message = format!("a rotation is in the plane of two dims, got {}", dims.len());
            return Err(Error::new(ErrorKind::DimRange, "rot90", message));
        };
        match k.rem_euclid(4) {
            0 => Ok(x.clone()),
            1 => x.flip(second).transpose(first, second),
            2 => x.flip([first, second]),
            _ => x.flip(first).transpose(first, second),
        }
    }

    #[track_caller]
    pub(super) fn trace(x: &Tensor) -> Result<Tensor> {
        Error::ensure(x.ndim() == 2, ErrorKind::Shape, "trace", || {
            format!("expected a matrix, but got a tensor of {} dims", x.ndim())
        })?;
        x.diagonal(0, 1).sum(..)
    }

    #[track_caller]
    pub(super) fn repeat_interleave(
        x: &Tensor,
        repeats: &Tensor,
        dims: Positions,
        output_size: Option<usize>,
    ) -> Result<Tensor> {
        const OP: &str = "repeat_interleave";
        let (x, dim) = match &dims[..] {
            &[dim] => (x.clone(), dim),
            dims if dims.len() == x.ndim() => (x.unnamed().reshape([-1])?, 0),
            dims => {
                let message = format!("expected one dim, or `..` for all elements, got {} dims", dims.len());
                return Err(Error::new(ErrorKind::DimRange, OP, message).with_operands([x.shape()]));
            }
        };
        let is_int = matches!(repeats.dtype(), DType::I32 | DType::I64);
        Error::ensure(is_int, ErrorKind::DType, OP, || {
            format!("repeats must be int32 or int64, got {}", repeats.dtype())
        })
        .map_err(|error| error.with_repair("repeats.to(DType::I64)?"))?;
        if let (Some(own), [wanted]) = (repeats.name(0), &dims[..])
            && let Some(name) = x.name(*wanted).filter(|name| *name != own)
        {
            let message = format!("the dim '{own}' of the repeats meets the dim '{name}' of the tensor");
            return Err(Error::new(ErrorKind::NameMismatch, OP, message)
                .with_operands([x.shape(), repeats.shape()])
                .with_repair(format!(
                    "repeats.rename([(\"{own}\", \"{name}\")])?, if both names mean the same"
                )));
        }
        if let (Some(size), Device::Meta) = (output_size, repeats.device()) {
            return x.index_select(repeats.new_zeros([size])?, dim);
        }
        repeats.value().check_elements(OP)?;
        let counts = repeats.to_vec::<i64>()?;
        let whole = counts.iter().all(|n| *n >= 0);
        Error::ensure(whole, ErrorKind::Value, OP, || "repeats must not be negative")?;
        if let Some(size) = output_size {
            let each = if counts.len() == 1 { x.sizes().get(dim).copied().unwrap_or(1) } else { 1 };
            let total = counts.iter().map(|n| *n as u128).sum::<u128>() * each as u128;
            Error::ensure(total == size as u128, ErrorKind::Value, OP, || {
                format!("output_size is {size}, but the repeats give {total} elements")
            })?;
        }
        if let [times] = counts[..] {
            let mut sizes: Vec<isize> = vec![-1; x.ndim() + 1];
            sizes[dim + 1] = times as isize;
            let spread = x.unsqueeze(dim as isize + 1).expand(sizes)?;
            return spread.flatten([dim, dim + 1], x.name(dim).map(|name| name.as_str()));
        }
        let size = x.sizes()[dim];
        Error::ensure(counts.len() == size && repeats.ndim() == 1, ErrorKind::Shape, OP, || {
            format!(
                "repeats must be one number, or one for each of the {size} elements of {}, got {}",
                called(x.value(), dim),
                repeats.shape()
            )
        })?;
        let mut total = Some(0usize);
        for times in &counts {
            total = total.and_then(|total| total.checked_add(*times as usize));
        }
        let mut places: Vec<i64> = Vec::new();
        if total.is_none_or(|total| places.try_reserve_exact(total).is_err()) {
            let message = format!("the repeats of {} elements do not fit in memory", counts.len());
            return Err(Error::new(ErrorKind::OutOfMemory, OP, message).with_operands([x.shape()]));
        }
        for (at, times) in counts.into_iter().enumerate() {
            places.resize(places.len() + times as usize, at as i64);
        }
        x.index_select(&Tensor::from_slice(&places, [places.len()])?, dim)
    }

    #[track_caller]
    pub(super) fn tile(x: &Tensor, dims: OpenShape) -> Result<Tensor> {
        let by_name = x.has_names() && !dims.is_empty() && dims.iter().all(|dim| dim.name.is_some());
        let left = if by_name { 0 } else { x.ndim().saturating_sub(dims.len()) };
        let mut all = vec![OpenDim { name: None, size: Some(1) }; left];
        all.extend_from_slice(&dims);
        x.repeat(args::Expansion(all.into()))
    }

    #[track_caller]
    pub(super) fn ravel(x: &Tensor, name: Option<Name>) -> Result<Tensor> {
        let y = x.reshape([-1])?;
        match name {
            Some(_) => Ok(y.named(Names::new("ravel", [name])?)),
            None => Ok(y),
        }
    }

    #[track_caller]
    pub(super) fn fliplr(x: &Tensor) -> Result<Tensor> {
        Error::ensure(x.ndim() >= 2, ErrorKind::DimRange, "fliplr", || {
            format!("the second dim is flipped, and the tensor has {}", x.ndim())
        })?;
        x.flip(1)
    }

    #[track_caller]
    pub(super) fn flipud(x: &Tensor) -> Result<Tensor> {
        Error::ensure(
            x.ndim() >= 1,
            ErrorKind::DimRange,
            "flipud",
            || "the first dim is flipped, and the tensor has none",
        )?;
        x.flip(0)
    }

    #[track_caller]
    pub(super) fn swapaxes(x: &Tensor, axis0: usize, axis1: usize) -> Result<Tensor> {
        x.transpose(axis0, axis1)
    }

    #[track_caller]
    pub(super) fn expand_as(x: &Tensor, other: &Tensor) -> Result<Tensor> {
        // By position if not all dims have names.
        let is_partial = |x: &Tensor| x.names().iter(x.ndim()).any(|name| name.is_none());
        if namegrad_core::names::is_strict() && (is_partial(x) || is_partial(other)) {
            x.value().unified_names("expand_as", "broadcast", other.value())?;
        }
        if !x.has_names() || !other.has_names() {
            return x.expand(other.sizes());
        }
        let inputs = &[x.value(), other.value()];
        let y = x.expand(other.shape()).map_err(|error| error.of("expand_as").with_inputs(inputs))?;
        Error::ensure(
            y.sizes() == other.sizes(),
            ErrorKind::NameMismatch,
            "expand_as",
            || "the other tensor must have all dims of this one",
        )
        .map_err(|error| error.with_inputs(inputs))?;
        Ok(y)
    }

    #[track_caller]
    pub(super) fn view_as(x: &Tensor, other: &Tensor) -> Result<Tensor> {
        x.view(other.shape())
    }

    #[track_caller]
    pub(super) fn reshape_as(x: &Tensor, other: &Tensor) -> Result<Tensor> {
        x.reshape(other.shape())
    }
}
