//! Parts of tensors by index. Those by mask are in `mask`, what writes to a part in `write`, tensors put together in `join`.

use crate::dim::{Dim, Int};
use crate::dtype::{DType, Element, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::shape::{Sizes, around};
use crate::tensor::NamedTensor;

/// The rows of the ops that pick elements, handed to `$with`.
#[macro_export]
#[doc(hidden)]
macro_rules! index_ops {
    ($with:ident) => {
        $with! {
            /// The elements of dim `dim` at the positions in `index`, a vector of integers.
            index_select ["keeps input names"] (x, index; dim: Dim)
            /// For each element of `index`, the element of `x` at that position along `dim` and at its own place along the other dims.
            gather ["keeps the names of the index"] (x, index; dim: Dim)
            /// Zeros of the sizes of `x`, to which `source` is added at the positions along `dim` that `index` says: the transpose of [`gather`](Self::gather),
            /// added to `x`.
            scatter_add scatter_add_ ["keeps input names"] (x, index, source; dim: Dim)
            /// `x` with `source` in the place of the elements of `x` at the positions along `dim` that `index` says: [`gather`](Self::gather) the other way. Of
            /// several elements of `source` for one place the last one stays; the gradient goes to all of them.
            scatter scatter_ ["keeps input names"] (x, index, source; dim: Dim)
            /// `x` with the elements of `source` reduced to the positions along `dim` that `index` says, together with what `x` has there if `include_self`.
            /// Places that `index` does not name stay as they are. Equal extremes share the gradient; the second derivative of a product is right where at most one
            /// factor of a place is 0.
            scatter_reduce scatter_reduce_ ["keeps input names"] (x, index, source; dim: Dim, reduce: Reduce, include_self: bool)
            /// `x` with the slices of `source` along `dim` in the place of those at the positions in `index`, a vector of integers. Of several slices for
            /// one place the last one stays; the gradient goes to all of them.
            index_copy index_copy_ ["keeps input names"] (x, index, source; dim: Dim)
            /// `x` with `source` added along `dim` at the positions in `index`, a vector of integers.
            index_add index_add_ ["keeps input names"] (x, index, source; dim: Dim)
            /// The lower triangle of the last two dims, zeros elsewhere; `diagonal` moves the border up.
            tril tril_ ["keeps input names"] (x; diagonal: Int)
            /// The upper triangle of the last two dims, zeros elsewhere; `diagonal` moves the border up.
            triu triu_ ["keeps input names"] (x; diagonal: Int)
            /// The positions of the elements that are not zero, a row each.
            nonzero ["gives a matrix without names"] (x)
        }
    };
}
index_ops!(define_ops);

/// What [`scatter_reduce`](NamedTensor::scatter_reduce) makes of the elements for one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// Their sum.
    Sum,
    /// Their product.
    Prod,
    /// Their mean; that of integers rounds down.
    Mean,
    /// The largest; NaN if there is one.
    Amax,
    /// The smallest; NaN if there is one.
    Amin,
}
crate::dim::plain!(Reduce);

/// What a new element does to the one that is there.
#[derive(Clone, Copy)]
enum Combine {
    Set,
    Add,
    Mul,
    Max,
    Min,
}

pub(crate) mod kernels {
    use super::*;

    /// Checked positions along a dim of `size`; negative ones are refused, as PyTorch does here.
    #[track_caller]
    fn positions(op: &'static str, index: &NamedTensor, size: usize) -> Result<Vec<usize>> {
        if !matches!(index.dtype(), DType::I64 | DType::I32) {
            let message = format!("{op}(): Expected dtype int32/int64 for index, got {}", index.dtype());
            return Err(Error::new(ErrorKind::DType, op, message).with_operands([index.extents()]));
        }
        let index = index.to_vec::<i64>()?;
        if let Some(bad) = index.iter().find(|i| **i < 0 || **i as u64 >= size as u64) {
            let message = format!("index {bad} is out of bounds for a dimension of size {size}");
            return Err(Error::new(ErrorKind::Index, op, message));
        }
        Ok(index.into_iter().map(|i| i as usize).collect())
    }

    #[track_caller]
    pub(crate) fn vector_index(
        op: &'static str,
        x: &NamedTensor,
        index: &NamedTensor,
        dim: usize,
    ) -> Result<Vec<usize>> {
        if index.ndim() > 1 {
            let message = format!("{op}(): Index is supposed to be a vector, got {} dims", index.ndim());
            return Err(
                Error::new(ErrorKind::Shape, op, message).with_operands([x.extents(), index.extents()])
            );
        }
        positions(op, index, x.length_of(dim))
    }

    #[track_caller]
    pub(crate) fn index_select(x: &NamedTensor, index: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        let picked = vector_index("index_select", x, index, dim)?;
        if x.ndim() == 0 && picked.len() != 1 {
            let message = format!("an index of a 0-d tensor has one element, got {}", picked.len());
            return Err(Error::new(ErrorKind::Index, "index_select", message)
                .with_operands([x.extents(), index.extents()]));
        }
        let dense = x.contiguous()?;
        let [outer, n, inner] = around(x.sizes(), dim);
        let mut shape = x.shape();
        if x.ndim() > 0 {
            shape.sizes[dim] = picked.len();
        }
        let mut out = NamedTensor::uninit("index_select", shape, x.dtype())?;
        dispatch!(x.dtype(), T => {
            let from = dense.as_slice::<T>()?;
            // SAFETY: fresh, of dtype T, and written as a whole: each of the `outer * picked` rows of `inner` elements once.
            let mut slots = unsafe { out.uninit_mut::<T>() }.iter_mut();
            for o in 0..outer {
                for at in &picked {
                    let row = &from[(o * n + at) * inner..][..inner];
                    row.iter().zip(&mut slots).for_each(|(value, slot)| { slot.write(*value); });
                }
            }
        });
        Ok(out)
    }

    /// Where each element of `index` points in a dense tensor of `sizes`.
    #[track_caller]
    fn pointed(op: &'static str, sizes: &[usize], index: &NamedTensor, dim: usize) -> Result<Vec<usize>> {
        let fits = index.ndim() == sizes.len()
            && index.sizes().iter().zip(sizes).enumerate().all(|(d, (i, x))| d == dim || i <= x);
        if !fits && index.numel() > 0 {
            let message = format!(
                "Size does not match at dimension {dim} expected index {:?} to be no larger than self {sizes:?}",
                index.sizes()
            );
            return Err(Error::new(ErrorKind::Shape, op, message).with_operands([index.extents()]));
        }
        let picked = positions(op, index, sizes.get(dim).copied().unwrap_or(1))?;
        if index.sizes().iter().zip(sizes).enumerate().all(|(d, (i, x))| d == dim || i == x) {
            return Ok(pointed_in_lanes(picked, around(sizes, dim)));
        }
        let strides = crate::shape::contiguous_strides(sizes);
        let mut place = vec![0usize; sizes.len()];
        let mut pointed = Vec::with_capacity(picked.len());
        for at in picked {
            let offset: usize = place
                .iter()
                .enumerate()
                .map(|(d, i)| (if d == dim { at } else { *i }) * strides[d] as usize)
                .sum();
            pointed.push(offset);
            for d in (0..place.len()).rev() {
                place[d] += 1;
                if place[d] < index.sizes()[d] {
                    break;
                }
                place[d] = 0;
            }
        }
        Ok(pointed)
    }

    /// Where positions along the middle of `[outer, n, inner]` point, as many in each lane. What sorts or takes extremes asks for this alone.
    fn pointed_in_lanes(mut picked: Vec<usize>, [outer, n, inner]: [usize; 3]) -> Vec<usize> {
        let slab = picked.len().checked_div(outer).unwrap_or(0).max(1);
        for (o, slab) in picked.chunks_exact_mut(slab).enumerate() {
            for row in slab.chunks_exact_mut(inner) {
                row.iter_mut().enumerate().for_each(|(i, at)| *at = (o * n + *at) * inner + i);
            }
        }
        picked
    }

    #[track_caller]
    pub(crate) fn gather(x: &NamedTensor, index: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        let pointed = pointed("gather", x.sizes(), index, dim)?;
        let dense = x.contiguous()?;
        dispatch!(x.dtype(), T => {
            let from = dense.as_slice::<T>()?;
            let picked: Vec<T> = pointed.into_iter().map(|at| from[at]).collect();
            NamedTensor::from_slice(&picked, index.shape())
        })
    }

    /// The element that `b` makes of `a`, in the arithmetic of the dtype.
    fn combined<T: Element>(how: Combine, a: T, b: T) -> T {
        use crate::Scalar::{Bool, Float, Int};
        let float = |a: f64, b: f64| match how {
            Combine::Set => b,
            Combine::Add => a + b,
            Combine::Mul => a * b,
            _ if a.is_nan() || b.is_nan() => f64::NAN,
            Combine::Max => a.max(b),
            Combine::Min => a.min(b),
        };
        let int = |a: i64, b: i64| match how {
            Combine::Set => b,
            Combine::Add => a.wrapping_add(b),
            Combine::Mul => a.wrapping_mul(b),
            Combine::Max => a.max(b),
            Combine::Min => a.min(b),
        };
        let boolean = |a: bool, b: bool| match how {
            Combine::Set => b,
            Combine::Add | Combine::Max => a | b,
            Combine::Mul | Combine::Min => a & b,
        };
        T::from_scalar(match (a.to_scalar(), b.to_scalar()) {
            (Bool(a), Bool(b)) => Bool(boolean(a, b)),
            (Int(a), Int(b)) => Int(int(a, b)),
            (a, b) => Float(float(a.to_f64(), b.to_f64())),
        })
    }

    #[track_caller]
    fn same_dtype(op: &'static str, x: &NamedTensor, source: &NamedTensor) -> Result<()> {
        if x.dtype() == source.dtype() {
            return Ok(());
        }
        let message =
            format!("self and source must have the same dtype, got {} and {}", x.dtype(), source.dtype());
        Err(Error::new(ErrorKind::DType, op, message).with_operands([x.extents(), source.extents()]))
    }

    #[track_caller]
    pub(crate) fn scatter_add(
        x: &NamedTensor,
        index: &NamedTensor,
        source: &NamedTensor,
        dim: usize,
    ) -> Result<NamedTensor> {
        Ok(scattered("scatter_add", x, index, source, dim, Combine::Add, false)?.0)
    }

    #[track_caller]
    pub(crate) fn scatter(
        x: &NamedTensor,
        index: &NamedTensor,
        source: &NamedTensor,
        dim: usize,
    ) -> Result<NamedTensor> {
        Ok(scattered("scatter", x, index, source, dim, Combine::Set, false)?.0)
    }

    #[track_caller]
    pub(crate) fn scatter_reduce(
        x: &NamedTensor,
        index: &NamedTensor,
        source: &NamedTensor,
        dim: usize,
        reduce: Reduce,
        include_self: bool,
    ) -> Result<NamedTensor> {
        const OP: &str = "scatter_reduce";
        let how = match reduce {
            Reduce::Sum | Reduce::Mean => Combine::Add,
            Reduce::Prod => Combine::Mul,
            Reduce::Amax => Combine::Max,
            Reduce::Amin => Combine::Min,
        };
        let (mut out, pointed) = scattered(OP, x, index, source, dim, how, !include_self)?;
        if reduce != Reduce::Mean {
            return Ok(out);
        }
        if x.dtype() == DType::Bool {
            let message = "the mean is not implemented for bool; it takes the integers and floats";
            return Err(Error::new(ErrorKind::DType, OP, message).with_operands([x.extents()]));
        }
        let mut terms = vec![i64::from(include_self); x.numel()];
        pointed.iter().for_each(|at| terms[*at] += 1);
        let counts = NamedTensor::from_slice(&terms, x.sizes())?.clamp(1, i64::MAX)?;
        out = match x.dtype().is_floating_point() {
            true => out.div(&counts)?,
            false => out.floor_divide(&counts)?.to(x.dtype())?,
        };
        Ok(out)
    }

    /// `x` with each element of `source` combined into the place that `index` says, and these places. With `afresh` the first element for a place
    /// takes it whatever was there.
    #[track_caller]
    fn scattered(
        op: &'static str,
        x: &NamedTensor,
        index: &NamedTensor,
        source: &NamedTensor,
        dim: usize,
        how: Combine,
        afresh: bool,
    ) -> Result<(NamedTensor, Vec<usize>)> {
        same_dtype(op, x, source)?;
        let pointed = pointed(op, x.sizes(), index, dim)?;
        let ndim = index.ndim();
        if source.ndim() != ndim || (0..ndim).any(|d| index.sizes()[d] > source.sizes()[d]) {
            let message =
                format!("Expected index {:?} to be no larger than src {:?}", index.sizes(), source.sizes());
            return Err(Error::new(ErrorKind::Shape, op, message).with_operands([
                x.extents(),
                index.extents(),
                source.extents(),
            ]));
        }
        let mut part = source.unnamed();
        for d in 0..ndim {
            part = part.narrow(d, 0, index.sizes()[d])?;
        }
        let part = part.contiguous()?;
        let mut out = x.deep_clone()?;
        let mut untouched = vec![afresh; if afresh { x.numel() } else { 0 }];
        dispatch!(x.dtype(), T => {
            let (from, to) = (part.as_slice::<T>()?, out.as_mut_slice::<T>()?);
            for (at, value) in pointed.iter().zip(from) {
                let first = afresh && std::mem::take(&mut untouched[*at]);
                to[*at] = combined(if first { Combine::Set } else { how }, to[*at], *value);
            }
        });
        Ok((out, pointed))
    }

    #[track_caller]
    pub(crate) fn index_add(
        x: &NamedTensor,
        index: &NamedTensor,
        source: &NamedTensor,
        dim: usize,
    ) -> Result<NamedTensor> {
        indexed("index_add", x, index, source, dim, Combine::Add)
    }

    #[track_caller]
    pub(crate) fn index_copy(
        x: &NamedTensor,
        index: &NamedTensor,
        source: &NamedTensor,
        dim: usize,
    ) -> Result<NamedTensor> {
        indexed("index_copy", x, index, source, dim, Combine::Set)
    }

    /// `x` with each slice of `source` along `dim` combined into the one at its position in `index`.
    #[track_caller]
    fn indexed(
        op: &'static str,
        x: &NamedTensor,
        index: &NamedTensor,
        source: &NamedTensor,
        dim: usize,
        how: Combine,
    ) -> Result<NamedTensor> {
        same_dtype(op, x, source)?;
        let picked = vector_index(op, x, index, dim)?;
        let mut wanted = Sizes::from_slice(x.sizes());
        if x.ndim() > 0 {
            wanted[dim] = picked.len();
        }
        if source.sizes() != &wanted[..] {
            let message = format!("source must have sizes {wanted:?}, got {:?}", source.sizes());
            return Err(
                Error::new(ErrorKind::Shape, op, message).with_operands([x.extents(), source.extents()])
            );
        }
        let [outer, n, inner] = around(x.sizes(), dim);
        let source = source.contiguous()?;
        let mut out = x.deep_clone()?;
        dispatch!(x.dtype(), T => {
            let (from, to) = (source.as_slice::<T>()?, out.as_mut_slice::<T>()?);
            let mut rows = from.chunks(inner.max(1));
            for o in 0..outer {
                for (at, row) in picked.iter().zip(&mut rows) {
                    let place = &mut to[(o * n + at) * inner..][..inner];
                    place.iter_mut().zip(row).for_each(|(there, value)| *there = combined(how, *there, *value));
                }
            }
        });
        Ok(out)
    }

    #[track_caller]
    fn triangle(
        op: &'static str,
        x: &NamedTensor,
        keep: impl Fn(isize, isize) -> bool,
    ) -> Result<NamedTensor> {
        let [.., rows, cols] = *x.sizes() else {
            let message = format!("{op}: input tensor must have at least 2 dimensions");
            return Err(Error::new(ErrorKind::Shape, op, message).with_operands([x.extents()]));
        };
        let mut out = x.deep_clone()?;
        dispatch!(x.dtype(), T => {
            for (at, value) in out.as_mut_slice::<T>()?.iter_mut().enumerate() {
                if !keep((at / cols % rows) as isize, (at % cols) as isize) {
                    *value = T::default();
                }
            }
        });
        Ok(out)
    }

    #[track_caller]
    pub(crate) fn tril(x: &NamedTensor, diagonal: isize) -> Result<NamedTensor> {
        triangle("tril", x, |row, col| col - row <= diagonal)
    }

    #[track_caller]
    pub(crate) fn triu(x: &NamedTensor, diagonal: isize) -> Result<NamedTensor> {
        triangle("triu", x, |row, col| col - row >= diagonal)
    }

    #[track_caller]
    pub(crate) fn nonzero(x: &NamedTensor) -> Result<NamedTensor> {
        let truth = x.ne(0)?.contiguous()?;
        let strides = crate::shape::contiguous_strides(x.sizes());
        let mut places = Vec::new();
        let mut count = 0;
        for (at, _) in truth.as_slice::<bool>()?.iter().enumerate().filter(|(_, truth)| **truth) {
            count += 1;
            places.extend((0..x.ndim()).map(|d| (at / strides[d] as usize % x.sizes()[d]) as i64));
        }
        NamedTensor::from_slice(&places, [count, x.ndim()])
    }
}
