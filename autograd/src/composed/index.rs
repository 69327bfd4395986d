//! Reading and writing parts by index or mask.

use crate::Tensor;
use crate::chain::*;
use crate::composed::getitem::{Index, Indices};
use crate::rules::slice::onto_diagonal;
use namegrad_core::options::DiagonalOptions;
use namegrad_core::{DType, Device, Error, ErrorKind, Name, NamedTensor, Names, Result, Unique};
use namegrad_macros::composed;

composed! { index;
    //! # More indexing
    /// The tensor with `value`, a number or 0-d tensor, written to the positions along `dim` in `index`, a
    /// vector of integers; negative positions count from the end. The value is cast.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1, 2, 3], [4, 5, 6]])?.refine_names(["N", "C"])?;
    /// assert_eq!(x.index_fill(&Tensor::new([0, -1])?, 9, "C")?.to_vec::<i64>()?, [9, 2, 9, 9, 5, 9]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `DType`, `Shape` or `Index` for an invalid index, `Shape` for a value with dims, `NameNotFound`,
    /// `DimRange`.
    index_fill index_fill_ (x, index, value: Operand; dim: Dim) names keeps, index: picks dim, value: free;
    /// The tensor with the elements of `source`, in row-major order, written where `mask` is true. The mask
    /// broadcasts to the tensor; an unnamed tensor also broadcasts to a mask with more dims. `source` can
    /// have more elements than are needed.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1, -1, 2, -2])?;
    /// assert_eq!(x.masked_scatter(&x.lt(0)?, &Tensor::new([7, 8, 9])?)?.to_vec::<i64>()?, [1, 7, 2, 8]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `DType` unless the mask is `bool` and the source has the dtype of the tensor, `Shape` if the source
    /// has too few elements, and the errors of the name rule.
    masked_scatter masked_scatter_ (x, mask: bool, source) names keeps, mask: unified, source: free;
    /// The elements at the positions in `index`, counted in row-major order; negative positions count from
    /// the end. The result has the sizes of the index.
    ///
    /// # Errors
    /// `DType` unless the index has integers, `Index` for a position out of range.
    take (x, index) names of index, index: own;
    /// The tensor with the elements of `source` written to the positions in `index`, counted in row-major
    /// order; negative positions count from the end. With `accumulate`, the elements are added; otherwise,
    /// the last of several elements for one position is kept.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1, 2], [3, 4]])?;
    /// assert_eq!(x.put(&Tensor::new([0, -1])?, &Tensor::new([8, 9])?)?.to_vec::<i64>()?, [8, 2, 3, 9]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `DType` unless the index has integers and the source has the dtype of the tensor, `Shape` unless index
    /// and source have the same number of elements, `Index` for a position out of range.
    put put_ (x, index, source; accumulate: bool = false) names keeps, index: by source, source: by index;
    /// For each class, a vector along a new last dim, with 1 at the position of the class and 0 elsewhere, in
    /// `i64`. The dim has size `num_classes`; with the default of -1, one more than the largest class.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let classes = Tensor::new([2, 0])?.refine_names(["N"])?;
    /// let y = classes.one_hot_with(OneHotOptions::new().num_classes(4).name("class"))?;
    /// assert_eq!(y.shape().to_string(), "[N=2, class=4]");
    /// assert_eq!(y.to_vec::<i64>()?, [0, 0, 1, 0, 1, 0, 0, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `DType` unless the classes are integers, `Value` if one is negative or not less than `num_classes`, or
    /// if there are none and no `num_classes` is given, `DuplicateName`.
    one_hot (x; num_classes: isize = -1, name: NewName = None) on integers constant;
    /// For each element of `indices`, the element of this tensor at that position along `dim`:
    /// [`gather`](Self::gather) for tensors that broadcast to each other along the other dims, such as the
    /// result of [`argmax`](Self::argmax).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1, 9], [8, 2]])?;
    /// assert_eq!(x.take_along_dim(&x.argsort(1)?, 1)?.to_vec::<i64>()?, [1, 9, 2, 8]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// With `..` for the dim, the positions are counted in row-major order: [`take`](Self::take) of all
    /// indices, as a vector.
    take_along_dim (x, indices; dim: Dims = ..) names of indices, indices: beside dim;
    /// The tensor with the slice at `index` of `dim` replaced by `src`, which has its sizes.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::zeros([("N", 2), ("C", 2)])?;
    /// let y = x.select_scatter(&Tensor::ones([("N", 2)])?, "C", -1)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 1.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Index` for an index out of range, `Shape` for a source of other sizes, the errors of the name rule.
    select_scatter (x, src; dim: Dim, index: isize) names keeps, src: without dim => {
        fits(op, x, &x.select(dim, index)?, src)?;
        x.index_put(&at(dim, Index::At(index))[..], src)
    }
    /// The tensor with the elements from `start` to `end` of `dim`, `step` apart, replaced by `src`, which has
    /// their sizes. Both ends are clamped to the size of the dim, and negative ones count from its end.
    ///
    /// # Errors
    /// `Shape` for a source of other sizes, the errors of the name rule.
    slice_scatter (x, src; dim: Dim = 0, start: isize or 0, end: isize or isize::MAX, step: usize = 1) names keeps, src: matched => {
        fits(op, x, &x.slice(dim, start, end, step)?, src)?;
        x.index_put(&at(dim, Index::Slice { start: Some(start), end: Some(end), step })[..], src)
    }
    /// The tensor with the diagonal of two dims, `offset` above the main one, replaced by `src`, which has the
    /// sizes of [`diagonal`](Self::diagonal).
    ///
    /// # Errors
    /// `Shape` for a source of other sizes, the errors of `diagonal` and of the name rule.
    diagonal_scatter (x, src; dim1: Dim = 0, dim2: Dim = 1, offset: isize = 0) names keeps, src: without dim1 => {
        let part = x.detach().diagonal_with(dim1, dim2, DiagonalOptions::new().offset(offset))?;
        fits(op, x, &part, src)?;
        let spread = |src: &Tensor| onto_diagonal(&src.unnamed(), x.sizes(), offset, dim1, dim2);
        let mask = spread(&part.ones_like().to(DType::Bool)?)?;
        let y = mask.choose(spread(&src.to(x.dtype())?)?, x.unnamed())?;
        Ok(y.named(x.names().clone()))
    }
    /// The positions of the nonzero elements, as the rows of a matrix: [`nonzero`](Self::nonzero).
    argwhere (x; names: NewNames = None) names called names constant
        => Ok(x.nonzero()?.named(Names::given(op, &names, &[None, None])?));
    /// The positions of the nonzero elements, as a vector for each dim: indices of the tensor. Their dim is
    /// called `name` or unnamed.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let places = Tensor::new([[0, 3], [2, 0]])?.nonzero_numpy()?;
    /// assert_eq!([places[0].to_vec::<i64>()?, places[1].to_vec::<i64>()?], [[0, 1], [1, 0]]);
    /// # Ok::<(), Error>(())
    /// ```
    nonzero_numpy (x; name: NewName = None) -> [places] names called name constant => {
        let x = x.detach();
        let whole = if x.ndim() == 0 { x.unsqueeze(0)? } else { x };
        let mut columns = whole.unnamed().nonzero().unbind(1)?;
        for column in &mut columns {
            *column = column.rename([name])?;
        }
        Ok(columns)
    }
    /// The indices in a tensor of the given sizes that have these positions in row-major order: a tensor for
    /// each dim, with the sizes and names of this one.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let indices = Tensor::new([5, 2])?.unravel_index([2, 3])?;
    /// assert_eq!([indices[0].to_vec::<i64>()?, indices[1].to_vec::<i64>()?], [[1, 0], [2, 2]]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `DType` unless integers, `Value` for a negative size or none at all.
    unravel_index (x; shape: Shape) -> [indices] on integers names keeps, shape: own constant;
    /// The groups of equal neighbors along `dim`, or of the flattened tensor with `..`: the first element of
    /// each, for each element the number of its group, and the sizes of the groups.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::core::Unique;
    /// let x = Tensor::new([1, 1, 2, 1])?.refine_names(["N"])?;
    /// let Unique { values, inverse, counts } = x.unique_consecutive("N")?;
    /// assert_eq!((values.to_vec::<i64>()?, counts.to_vec::<i64>()?), (vec![1, 2, 1], vec![2, 1, 1]));
    /// assert_eq!(inverse.to_vec::<i64>()?, [0, 0, 1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    unique_consecutive (x; dim: Dims = ..) -> Unique { values, inverse, counts }
        names keeps, inverse: removes, counts: removes refused;
    /// The tensor with the part that the indices select replaced by `values`, as in `x[..] = values`. With
    /// `accumulate`, the values are added to the part; otherwise, the last of several elements for one
    /// position is kept. The values are cast and broadcast to the part. In place, a part that is a view is
    /// written directly to the buffer of the tensor if the buffer is not shared.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::autograd::Index;
    /// let x = Tensor::zeros([("N", 2), ("C", 3)])?;
    /// let y = x.index_put(&[Index::At(-1), (1..).into()], 5.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0, 0.0, 0.0, 5.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`index`](Self::index) and of the name rule; `Shape` if the values do not broadcast to
    /// the part.
    index_put index_put_ (indices: Indices; mut x, values: Operand; accumulate: bool = false) names keeps, values: matched;
}

/// Checks that `src` has the sizes of the part of `x` that it replaces.
fn fits(op: &'static str, x: &Tensor, part: &Tensor, src: &Tensor) -> Result<()> {
    Error::ensure(part.sizes() == src.sizes(), ErrorKind::Shape, op, || {
        format!("expected src to have the sizes {:?} of the part, got {:?}", part.sizes(), src.sizes())
    })
    .map_err(|error| error.with_operands([x.shape(), src.shape()]))?;
    part.value().check_alike(op, ["x", "src"], src.value())
}

/// An index along `dim` alone.
fn at(dim: usize, index: Index) -> Vec<Index> {
    let mut all = vec![Index::from(..); dim];
    all.push(index);
    all
}

mod kernels {
    use super::*;
    use crate::composed::set_result;
    use crate::op::Op;
    use namegrad_core::Category;
    use namegrad_core::args::{OpenShape, Positions};

    #[track_caller]
    pub(super) fn index_fill(x: &Tensor, index: &Tensor, value: &Tensor, dim: usize) -> Result<Tensor> {
        let mask = x.value().positions_mask("index_fill", index.value(), dim)?;
        x.masked_fill(Tensor::constant(mask), value)
    }

    #[track_caller]
    pub(super) fn masked_scatter(x: &Tensor, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
        const OP: &str = "masked_scatter";
        let is_mask = mask.dtype() == DType::Bool;
        Error::ensure(is_mask, ErrorKind::DType, OP, || {
            format!("expected the mask to be a boolean tensor, but got {}", mask.dtype())
        })
        .map_err(|error| error.with_repair("mask.ne(0)?"))?;
        x.value().unified_names(OP, "broadcast", mask.value())?;
        if source.ndim() > 1 {
            // It is read in the order of its dims.
            x.value().check_alike(OP, ["x", "source"], source.value())?;
            mask.value().check_alike(OP, ["mask", "source"], source.value())?;
        }
        // As in `masked_fill`, an unnamed tensor broadcasts to a mask with more dims.
        let x = &match x.value().has_names() || mask.ndim() <= x.ndim() {
            true => x.clone(),
            false => Tensor::broadcast_tensors(&[x, mask])?.swap_remove(0),
        };
        let marks = mask.unnamed().expand(x.sizes()).reshape([-1])?;
        let places = match mask.device() {
            Device::Meta => marks.narrow(0, 0, marks.numel().min(source.numel())).to(DType::I64)?,
            _ => marks.nonzero().reshape([-1])?,
        };
        Error::ensure(places.numel() <= source.numel(), ErrorKind::Shape, OP, || {
            format!("the source has {} elements, and the mask is true at {}", source.numel(), places.numel())
        })?;
        let source = source.unnamed().reshape([-1]).narrow(0, 0, places.numel())?;
        let flat = x.unnamed().reshape([-1]).index_copy(&places, &source, 0)?;
        Ok(flat.reshape(x.sizes())?.named(x.names().clone()))
    }

    /// The positions in `index` as a vector, with negative positions converted to positive ones.
    #[track_caller]
    fn places_in(x: &Tensor, op: &'static str, index: &Tensor) -> Result<Tensor> {
        Error::ensure(matches!(index.dtype(), DType::I32 | DType::I64), ErrorKind::DType, op, || {
            format!("Expected dtype int32/int64 for index, got {}", index.dtype())
        })
        .map_err(|error| error.with_repair("index.to(DType::I64)?"))?;
        let places = index.unnamed().reshape([-1])?;
        let numel = x.numel() as i64;
        let all = places.to(DType::I64)?.numbers()?.elements_to_check::<i64>()?;
        if let Some(bad) = all.into_iter().find(|place| !(-numel..numel).contains(place)) {
            let message =
                format!("position {bad} is out of bounds for {numel} elements, counted in row-major order");
            return Err(Error::new(ErrorKind::Index, op, message));
        }
        places.lt(0).choose(places.add(numel)?, &places)
    }

    #[track_caller]
    pub(super) fn one_hot(x: &Tensor, num_classes: isize, name: Option<Name>) -> Result<Tensor> {
        const OP: &str = "one_hot";
        Error::ensure(x.dtype().category() == Category::Integer, ErrorKind::DType, OP, || {
            format!("classes must be integers, got {}", x.dtype())
        })
        .map_err(|error| error.with_repair("x.to(DType::I64)?"))?;
        let (mut least, mut largest) = (0, -1);
        if x.numel() > 0 && (num_classes == -1 || x.device() != Device::Meta) {
            x.value().check_elements(OP)?;
            (least, largest) = (x.amin(..)?.item::<i64>()?, x.amax(..)?.item::<i64>()?);
        }
        let count = if num_classes == -1 { largest.saturating_add(1) } else { num_classes as i64 };
        if x.numel() == 0 && count < 1 {
            let message = "no classes are given from which their number could be seen";
            return Err(Error::new(ErrorKind::Value, OP, message).with_operands([x.shape()]).with_repair(
                "x.one_hot_with(OneHotOptions::new().num_classes(10))?, with the number of classes",
            ));
        }
        if least < 0 || largest >= count {
            let message = match least {
                ..0 => format!("class values must not be negative, got {least}"),
                _ => format!("class values must be less than num_classes, got {largest} of {count}"),
            };
            let error = Error::new(ErrorKind::Value, OP, message);
            return Err(match largest.checked_add(1) {
                Some(count) if least >= 0 => {
                    error.with_repair(format!("x.one_hot_with(OneHotOptions::new().num_classes({count}))?"))
                }
                _ => error,
            });
        }
        let classes = Tensor::constant(NamedTensor::arange(0, count, 1, DType::I64)?);
        let names = Names::new(OP, x.names().iter(x.ndim()).chain([name]))
            .map_err(|error| error.with_operands([x.shape()]))?;
        Ok(x.unnamed().unsqueeze(-1).eq(&classes).to(DType::I64)?.named(names))
    }

    #[track_caller]
    pub(super) fn take(x: &Tensor, index: &Tensor) -> Result<Tensor> {
        let places = places_in(x, "take", index)?;
        let picked = x.unnamed().reshape([-1]).index_select(&places, 0)?;
        Ok(picked.reshape(index.sizes())?.named(index.names().clone()))
    }

    #[track_caller]
    pub(super) fn put(x: &Tensor, index: &Tensor, source: &Tensor, accumulate: bool) -> Result<Tensor> {
        const OP: &str = "put";
        let places = places_in(x, OP, index)?;
        Error::ensure(index.numel() == source.numel(), ErrorKind::Shape, OP, || {
            format!("the source has {} elements, and the index {} positions", source.numel(), index.numel())
        })?;
        if index.ndim() == source.ndim() {
            index.value().check_alike(OP, ["index", "source"], source.value())?;
        }
        let (flat, source) = (x.unnamed().reshape([-1])?, source.unnamed().reshape([-1])?);
        let flat = match accumulate {
            true => flat.index_add(&places, &source, 0)?,
            false => flat.index_copy(&places, &source, 0)?,
        };
        Ok(flat.reshape(x.sizes())?.named(x.names().clone()))
    }

    #[track_caller]
    pub(super) fn take_along_dim(x: &Tensor, indices: &Tensor, dims: Positions) -> Result<Tensor> {
        let dim = match dims[..] {
            [dim] => dim,
            _ if dims.len() == x.ndim() => {
                if indices.ndim() == x.ndim() && x.ndim() > 1 {
                    x.value().check_alike("take_along_dim", ["x", "indices"], indices.value())?;
                }
                let name = indices.name(0).filter(|_| indices.ndim() == 1);
                return x.take(indices.unnamed().reshape([-1])?).rename([name]);
            }
            _ => {
                let message = format!("expected one dim, or `..` for all elements, got {}", dims.len());
                return Err(Error::new(ErrorKind::DimRange, "take_along_dim", message));
            }
        };
        if indices.ndim() != x.ndim() {
            let message = format!(
                "input and indices should have the same number of dimensions, got {} and {}",
                x.ndim(),
                indices.ndim()
            );
            let error = Error::new(ErrorKind::Shape, "take_along_dim", message);
            return Err(match indices.ndim() + 1 == x.ndim() {
                true => error.with_repair(format!("x.take_along_dim(&indices.unsqueeze({dim})?, {dim})?")),
                false => error,
            });
        }
        let spread = |x: &Tensor, like: &Tensor| -> Vec<usize> {
            let size = |d| if d != dim && x.sizes()[d] == 1 { like.sizes()[d] } else { x.sizes()[d] };
            crate::list((0..x.ndim()).map(size))
        };
        let (x, places) = (x.expand(spread(x, indices))?, indices.expand(spread(indices, x))?);
        let size = x.sizes().get(dim).copied().unwrap_or(1);
        // A position that is out of range is left as it was given, so that the error shows it.
        let before = places.lt(0).logical_and(places.ge(-(size as i64))?)?;
        x.gather(&places.add(before.mul(size)?)?, dim)
    }

    #[track_caller]
    pub(super) fn unravel_index(x: &Tensor, shape: OpenShape) -> Result<Vec<Tensor>> {
        const OP: &str = "unravel_index";
        Error::ensure(x.dtype().category() == Category::Integer, ErrorKind::DType, OP, || {
            format!("expected index to have an integer dtype, got {}", x.dtype())
        })
        .map_err(|error| error.with_repair("x.to(DType::I64)?"))?;
        let mut sizes: Vec<i64> = Vec::new();
        for dim in shape.iter() {
            match dim.size {
                Some(size) => sizes.push(size as i64),
                None => return Err(Error::new(ErrorKind::Value, OP, "the sizes cannot be negative")),
            }
        }
        let mut indices = Vec::with_capacity(sizes.len());
        let mut rest = x.to(DType::I64)?;
        for size in sizes.iter().rev() {
            indices.push(rest.remainder(*size)?);
            rest = rest.floor_divide(*size)?;
        }
        indices.reverse();
        Ok(indices)
    }

    #[track_caller]
    pub(super) fn unique_consecutive(x: &Tensor, dims: Positions) -> Result<Unique<Tensor>> {
        const OP: &str = "unique_consecutive";
        let flat = match &dims[..] {
            &[dim] if x.ndim() > 0 => return groups(x, dim),
            dims if dims.len() == x.ndim() => x.unnamed().reshape([-1])?,
            dims => {
                let message = format!("expected one dim, or `..` for all elements, got {} dims", dims.len());
                return Err(Error::new(ErrorKind::DimRange, OP, message).with_operands([x.shape()]));
            }
        };
        let groups = groups(&flat, 0)?;
        let inverse = groups.inverse.reshape(x.sizes())?.named(x.names().clone());
        Ok(Unique { inverse, ..groups })
    }

    /// The groups of equal neighbors along `dim`.
    #[track_caller]
    fn groups(x: &Tensor, dim: usize) -> Result<Unique<Tensor>> {
        let n = x.sizes()[dim];
        let others = crate::lists::others(x.ndim(), &[dim]);
        let [before, after] = [0, 1].map(|start| x.unnamed().narrow(dim, start.min(n), n.saturating_sub(1)));
        let mut new = after?.ne(&before?)?;
        if !others.is_empty() {
            new = new.any(others)?;
        }
        let first = new.new_full([n.min(1)], true)?;
        let new = Tensor::cat(&[&first, &new], 0)?;
        let inverse = new.cumsum(0).sub(1)?;
        let firsts = new.nonzero().reshape([-1])?;
        let ends = Tensor::cat(&[&firsts, &firsts.new_full([1], n as i64)?], 0)?;
        let name = x.name(dim);
        Ok(Unique {
            values: x.index_select(&firsts, dim)?,
            inverse: inverse.rename([name])?,
            counts: ends.diff(0).rename([name])?,
        })
    }

    #[track_caller]
    pub(super) fn index_put(
        x: &mut Tensor,
        value: &Tensor,
        indices: Indices,
        accumulate: bool,
    ) -> Result<()> {
        const OP: &str = "index_put";
        value.value().check_fits(OP, x.value())?;
        let views = !accumulate && !indices.0.iter().any(|index| matches!(index, Index::Tensor(_)));
        if views && !x.is_contiguous() {
            // A view of a dense tensor can be written to.
            let dense = x.value().contiguous()?;
            *x = Tensor::from_parts(dense, x.meta_and_carried().cloned());
        }
        // If the part is not a view, the same part of a tensor of positions tells where the values go.
        let part = match views {
            true => x.detach().index(&indices.0)?,
            false => {
                let all = NamedTensor::arange(0, x.numel() as i64, 1, DType::I64)?.reshape(x.sizes())?;
                Tensor::constant(all.with_names(x.names().clone())).index(&indices.0)?
            }
        };
        let mut value = value.clone();
        while value.ndim() > part.ndim() && value.sizes()[0] == 1 {
            value = value.select(0, 0)?;
        }
        part.value().unified_names(OP, "broadcast", value.value())?;
        if value.expand(part.sizes()).is_err() {
            let message =
                format!("the values {} do not broadcast to the part, {}", value.shape(), part.shape());
            return Err(Error::new(ErrorKind::Shape, OP, message).with_operands([x.shape(), value.shape()]));
        }
        if views {
            return put_into_view(x, indices, part, &value);
        }
        let value = value.unnamed().to(x.dtype()).expand(part.sizes()).reshape([-1])?;
        let (flat, places) = (x.unnamed().reshape([-1])?, part.unnamed().reshape([-1])?);
        let flat = match accumulate {
            true => flat.index_add(&places, &value, 0)?,
            false => flat.index_copy(&places, &value, 0)?,
        };
        set_result(x, flat.reshape(x.sizes())?.named(x.names().clone()));
        Ok(())
    }

    /// Writes to a part that shares the buffer of the tensor, which is dense.
    #[track_caller]
    fn put_into_view(x: &mut Tensor, indices: Indices, part: Tensor, value: &Tensor) -> Result<()> {
        let at = std::panic::Location::caller(); // a closure does not know its caller
        let part = part.into_value();
        if x.tracked().is_none() && value.tracked().is_none() {
            return x.update(|x| x.write_part(part, value.value())).map_err(|error| error.at(at));
        }
        crate::observe::starting();
        let mut written = x.value().clone();
        written.write_part(part, value.value())?;
        let (own, theirs): (Vec<Index>, Vec<Index>) = (indices.0.clone(), indices.0);
        let y = Op::new("index_put", written)
            .input(x, move |g, _| g.index_put(&own, 0.0))
            .input(value, move |g, _| g.index(&theirs))
            .output();
        set_result(x, y);
        Ok(())
    }
}
