//! Rearrangements.

use crate::Tensor;
use crate::chain::*;
use namegrad_core::{Error, ErrorKind, Result, called};
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
    /// for each element. With `..`, the tensor is flattened first. A copy.
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
    /// `DType` unless `repeats` has dtype `i32` or `i64`, `Value` if a number is negative, `Shape` if there
    /// is not one number for each element, `NameNotFound`, `DimRange`.
    repeat_interleave (x, repeats: Operand; dim: Dims = ..) names keeps, repeats: along dim;
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
    use namegrad_core::{DType, Name, Names};

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
    pub(super) fn repeat_interleave(x: &Tensor, repeats: &Tensor, dims: Positions) -> Result<Tensor> {
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
        let counts = repeats.to_vec::<i64>()?;
        let whole = counts.iter().all(|n| *n >= 0);
        Error::ensure(whole, ErrorKind::Value, OP, || "repeats must not be negative")?;
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
