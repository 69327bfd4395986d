//! Ops that pick elements along one dim and return their positions: extremes, order statistics, sorting.
//!
//! A kernel finds only the positions; `gather`, which has a derivative, then takes the values. The kernel
//! compares 64-bit integers that have the same order as the elements, so it is compiled only once and not for
//! each dtype.

use crate::args::Over;
use crate::error::Result;
use crate::tensor::NamedTensor;
use namegrad_macros::ops;

/// Elements picked along a dim, and their positions.
///
/// ```
/// use namegrad_core::{NamedTensor, Picked};
/// let x = NamedTensor::from_slice(&[1.0f32, 5.0, 2.0, 7.0, 3.0, 7.0], [("N", 2), ("C", 3)])?;
/// let Picked { values, indices } = x.max("C")?;
/// assert_eq!(values.to_vec::<f32>()?, [5.0, 7.0]);
/// assert_eq!(indices.to_vec::<i64>()?, [1, 0]);
/// # Ok::<(), namegrad_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Picked<T = NamedTensor> {
    /// The elements.
    pub values: T,
    /// Their positions along the dim, in `i64`. If the op ran over all elements, these are positions in
    /// row-major order.
    pub indices: T,
}

ops! { pick;
    //! # Extremes, order statistics, sorting
    /// The largest element along `dim`, and its position; the first of equal elements. NaN counts as the
    /// largest. With `..`, the largest of all elements, with its position in row-major order; equal elements
    /// then share the gradient.
    max (x; dim: Reduced = ..) -> Picked { values, indices };
    /// The smallest element along `dim`, and its position; the first of equal elements. NaN counts as the
    /// smallest. With `..`, the smallest of all elements, with its position in row-major order; equal
    /// elements then share the gradient.
    min (x; dim: Reduced = ..) -> Picked { values, indices };
    /// The median along `dim`, and its position: the lower of the two middle elements if their number is
    /// even, NaN if any element is NaN. Not for `bool`. The median of an empty float tensor is NaN, with
    /// index -1.
    median (x; dim: Reduced = ..) -> Picked { values, indices } on floats integers;
    /// The [`median`](Self::median) of the elements that are not NaN. If there are none, it is NaN.
    nanmedian (x; dim: Reduced = ..) -> Picked { values, indices } on floats integers;
    /// The most frequent element along `dim`, and its last position; the smallest if several are equally
    /// frequent. No NaN equals another.
    mode (x; dim: Reduced = -1) -> Picked { values, indices };
    /// The `k`-th smallest element along `dim`, counted from 1, and its position. NaN counts as the largest.
    /// Not for `bool`.
    kthvalue (x; k: usize, dim: Reduced = -1) -> Picked { values, indices } on floats integers;
    /// The elements sorted along `dim`, in ascending order unless `descending`, and their positions. Equal
    /// elements keep their order, and NaN counts as the largest.
    sort (x; dim: Dim = -1, descending: bool = false) -> Picked { values, indices };
    /// The `k` largest elements along `dim` in descending order, and their positions; if `largest` is false,
    /// the `k` smallest in ascending order. Of equal elements, the first are taken. NaN counts as the
    /// largest. Not for `bool`.
    topk (x; k: usize, dim: Dim = -1, largest: bool = true) -> Picked { values, indices }
        on floats integers;
    /// The cumulative maximum along `dim`, and its position; the last of equal elements. It is NaN from the
    /// first NaN on.
    cummax (x; dim: Dim) -> Picked { values, indices };
    /// The cumulative minimum along `dim`, and its position; the last of equal elements. It is NaN from the
    /// first NaN on.
    cummin (x; dim: Dim) -> Picked { values, indices };
    /// The index of the largest element along `dim`, or of all elements; the first of equal elements. NaN
    /// counts as the largest.
    argmax (x; dim: Reduced = ..) on floats integers;
    /// The index of the smallest element along `dim`, or of all elements; the first of equal elements. NaN
    /// counts as the smallest.
    argmin (x; dim: Reduced = ..) on floats integers;
    /// The indices that sort the elements along `dim`, in ascending order unless `descending`. Equal elements
    /// keep their order, and NaN counts as the largest.
    argsort (x; dim: Dim = -1, descending: bool = false);
}

/// The repair for a tensor without elements where one is needed.
pub(crate) const EMPTY: &str = "if x.numel() > 0 { .. }";

/// The kernels of the methods, and functions that the derivatives need.
#[doc(hidden)]
pub mod kernels {
    use super::*;
    use crate::cpu::order::{self, NAN_FIRST, NAN_LAST, Pairs};
    use crate::cpu::room::fill;
    use crate::dim::{called, in_rust};
    use crate::dtype::{DType, Scalar, dispatch};
    use crate::error::{Error, ErrorKind};
    use crate::layout::Sizes;
    use crate::names::Names;
    use crate::ops::{index, shape};
    use crate::shape::Shape;
    use crate::tensor::Unwritten;
    use std::borrow::Cow;

    /// The dim to search, or `None` for all elements as one dim.
    #[track_caller]
    pub fn one_or_all(op: &'static str, x: &NamedTensor, dim: &Over) -> Result<Option<usize>> {
        match dim.one_or_all(op, x) {
            Err(_) if dim.len() > 1 => {
                let message = format!("expected one dim, or `..` for all elements, got {}", list(x, dim));
                Err(Error::about(&[x], ErrorKind::DimRange, op, message).with_repair(on_flat(op, x, dim)))
            }
            found => found,
        }
    }

    /// Dims as a list in Rust code: by name if all have one, otherwise by index.
    fn list(x: &NamedTensor, dims: &[usize]) -> String {
        let names: Option<Vec<String>> =
            crate::list(dims.iter().map(|dim| Some(format!("{}", x.name(*dim)?))));
        names.map_or_else(|| format!("{dims:?}"), |names| format!("{names:?}"))
    }

    /// The call of `op` that flattens several dims first, for a repair.
    fn on_flat(op: &str, x: &NamedTensor, dims: &[usize]) -> String {
        let list = list(x, dims);
        let flat = if dims.windows(2).all(|pair| pair[1] == pair[0] + 1) {
            format!("x.flatten({list}, \"flat\")?")
        } else {
            let last: Vec<isize> = crate::list(-(dims.len() as isize)..0);
            format!("x.movedim({list}, {last:?})?.flatten({last:?}, \"flat\")?")
        };
        match op {
            "max" | "min" => format!(
                "x.a{op}({list})? for the values alone, {flat}.{op}(\"flat\")? for their indices as well"
            ),
            "kthvalue" => format!("{flat}.{op}(k, \"flat\")?"),
            "quantile" => format!("{flat}.{op}(q, \"flat\")?"),
            _ => format!("{flat}.{op}(\"flat\")?"),
        }
    }

    /// The elements at `indices`.
    #[track_caller]
    fn pick(
        x: &NamedTensor,
        indices: NamedTensor,
        dim: Option<usize>,
        keepdim: bool,
    ) -> Result<(NamedTensor, NamedTensor)> {
        let values = match dim {
            Some(dim) => index::kernels::gather(x, &indices, dim)?,
            None => index::kernels::gather(&flat(x)?, &indices, 0)?,
        };
        Ok((placed(x, values, dim, keepdim)?, placed(x, indices, dim, keepdim)?))
    }

    /// The indices found along a dim of `x`, or in all of `x`, with the sizes and names of the result.
    #[track_caller]
    pub fn placed(
        x: &NamedTensor,
        found: NamedTensor,
        dim: Option<usize>,
        keepdim: bool,
    ) -> Result<NamedTensor> {
        match (dim, keepdim) {
            (Some(_), true) => Ok(found),
            (Some(dim), false) => found.squeeze(dim),
            (None, false) => found.squeeze(..),
            (None, true) => {
                shape::kernels::reshaped("reshape", &found, Sizes::from_elem(1, x.ndim()), x.names().clone())
            }
        }
    }

    /// All elements as one dim.
    #[track_caller]
    fn flat(x: &NamedTensor) -> Result<NamedTensor> {
        x.unnamed().reshape([-1])
    }

    /// The number of elements that are compared.
    fn length(x: &NamedTensor, dim: Option<usize>) -> usize {
        dim.map_or(x.numel(), |dim| x.length_of(dim))
    }

    /// For each lane along `dim`, the `count` positions that `f` finds in the keys of the lane; the key of
    /// NaN is `nan`.
    #[track_caller]
    fn find(
        op: &'static str,
        x: &NamedTensor,
        dim: Option<usize>,
        count: usize,
        nan: i64,
        f: &order::Find<'_>,
    ) -> Result<NamedTensor> {
        let x = if dim.is_some() { Cow::Borrowed(x) } else { Cow::Owned(flat(x)?) };
        let (dim, last) = (dim.unwrap_or(0), x.ndim().saturating_sub(1));
        let dense = x.movedim(dim, last)?.to(x.dtype().wide())?.contiguous()?;
        let mut shape = dense.shape();
        if let Some(size) = shape.sizes.last_mut() {
            *size = count;
        }
        let found = Unwritten::new(op, shape, DType::I64)?;
        let n = length(&x, Some(dim));
        let found = dispatch!(dense.dtype(), wide T => {
            let elements = dense.elements::<T>()?;
            let keys = |from: usize, keys: &mut [i64]| order::keys(&elements[from..], nan, keys);
            found.write(|places| order::each_lane(n, count, &keys, places, f))
        });
        found.movedim(last, dim)?.contiguous()
    }

    /// Like [`find`], for one position in each lane. No lane is empty.
    #[track_caller]
    fn find_one(
        op: &'static str,
        x: &NamedTensor,
        dim: Option<usize>,
        nan: i64,
        f: &order::FindOne<'_>,
    ) -> Result<NamedTensor> {
        match dim {
            None if x.numel() == 0 => {
                let message = "a tensor without elements has none to find";
                return Err(Error::about(&[x], ErrorKind::Value, op, message).with_repair(EMPTY));
            }
            Some(dim) if length(x, Some(dim)) == 0 => {
                let message = format!("Expected {} to have non-zero size", called(x, dim));
                return Err(Error::about(&[x], ErrorKind::Shape, op, message).with_repair(EMPTY));
            }
            _ => {}
        }
        find(op, x, dim, 1, nan, &|keys, pairs, places| fill(places, f.call_with((keys, pairs)) as i64))
    }

    /// The positions of the largest or smallest elements.
    #[track_caller]
    pub(crate) fn extreme(
        op: &'static str,
        x: &NamedTensor,
        dim: Option<usize>,
        largest: bool,
    ) -> Result<NamedTensor> {
        match largest {
            true => find_one(op, x, dim, NAN_LAST, &|keys: &[i64], _: &mut Pairs| order::largest(keys)),
            false => find_one(op, x, dim, NAN_FIRST, &|keys: &[i64], _: &mut Pairs| order::smallest(keys)),
        }
    }

    #[track_caller]
    pub(crate) fn max(x: &NamedTensor, dim: Over) -> Result<(NamedTensor, NamedTensor)> {
        let one = one_or_all("max", x, &dim)?;
        pick(x, extreme("max", x, one, true)?, one, dim.keep)
    }

    #[track_caller]
    pub(crate) fn min(x: &NamedTensor, dim: Over) -> Result<(NamedTensor, NamedTensor)> {
        let one = one_or_all("min", x, &dim)?;
        pick(x, extreme("min", x, one, false)?, one, dim.keep)
    }

    #[track_caller]
    pub(crate) fn median(x: &NamedTensor, dim: Over) -> Result<(NamedTensor, NamedTensor)> {
        x.check_not_bool("median")?;
        let one = one_or_all("median", x, &dim)?;
        let float = x.dtype().is_floating_point();
        if float && one.is_none() && x.numel() == 0 {
            return middle_of_nothing("median", x, dim.keep);
        }
        let found = find_one("median", x, one, NAN_LAST, &|keys: &[i64], pairs: &mut Pairs| {
            order::median(keys, float, pairs)
        })?;
        pick(x, found, one, dim.keep)
    }

    #[track_caller]
    pub(crate) fn nanmedian(x: &NamedTensor, dim: Over) -> Result<(NamedTensor, NamedTensor)> {
        x.check_not_bool("nanmedian")?;
        let one = one_or_all("nanmedian", x, &dim)?;
        let float = x.dtype().is_floating_point();
        if float && one.is_none() && x.numel() == 0 {
            return middle_of_nothing("nanmedian", x, dim.keep);
        }
        let found = find_one("nanmedian", x, one, NAN_LAST, &|keys: &[i64], pairs: &mut Pairs| {
            order::nanmedian(keys, float, pairs)
        })?;
        pick(x, found, one, dim.keep)
    }

    /// NaN with index -1.
    #[track_caller]
    fn middle_of_nothing(
        op: &'static str,
        x: &NamedTensor,
        keepdim: bool,
    ) -> Result<(NamedTensor, NamedTensor)> {
        let one = |dtype, value: Scalar| {
            let shape = Shape { sizes: Sizes::from_slice(&[1]), names: Names::none() };
            placed(x, NamedTensor::filled(op, shape, dtype, value)?, None, keepdim)
        };
        Ok((one(x.dtype(), f64::NAN.into())?, one(DType::I64, (-1).into())?))
    }

    #[track_caller]
    pub(crate) fn mode(x: &NamedTensor, dim: Over) -> Result<(NamedTensor, NamedTensor)> {
        let one = one_or_all("mode", x, &dim)?;
        let float = x.dtype().is_floating_point();
        let found = find_one("mode", x, one, NAN_LAST, &|keys: &[i64], pairs: &mut Pairs| {
            order::mode(keys, float, pairs)
        })?;
        pick(x, found, one, dim.keep)
    }

    #[track_caller]
    pub(crate) fn kthvalue(x: &NamedTensor, k: usize, dim: Over) -> Result<(NamedTensor, NamedTensor)> {
        const OP: &str = "kthvalue";
        x.check_not_bool(OP)?;
        let one = one_or_all(OP, x, &dim)?;
        let n = length(x, one);
        if n > 0 && !(1..=n).contains(&k) {
            let of = one.map_or("all elements".into(), |dim| called(x, dim));
            let message = format!("k counts from 1 to {n}, the number of elements of {of}, got {k}");
            return Err(Error::about(&[x], ErrorKind::Value, OP, message));
        }
        let found = find_one(OP, x, one, NAN_LAST, &|keys: &[i64], pairs: &mut Pairs| {
            order::nth(keys, pairs, k - 1)
        })?;
        pick(x, found, one, dim.keep)
    }

    /// The positions that sort the elements along `dim`.
    #[track_caller]
    pub(crate) fn sorted(
        op: &'static str,
        x: &NamedTensor,
        dim: usize,
        descending: bool,
    ) -> Result<NamedTensor> {
        find(op, x, Some(dim), length(x, Some(dim)), NAN_LAST, &|keys, pairs, places| {
            order::sort(keys, descending, pairs);
            order::places(pairs, places)
        })
    }

    #[track_caller]
    pub(crate) fn sort(x: &NamedTensor, dim: usize, descending: bool) -> Result<(NamedTensor, NamedTensor)> {
        pick(x, sorted("sort", x, dim, descending)?, Some(dim), true)
    }

    #[track_caller]
    pub(crate) fn topk(
        x: &NamedTensor,
        k: usize,
        dim: usize,
        largest: bool,
    ) -> Result<(NamedTensor, NamedTensor)> {
        const OP: &str = "topk";
        x.check_not_bool(OP)?;
        let n = length(x, Some(dim));
        if k > n || x.ndim() == 0 && k == 0 {
            let message =
                format!("selected index k out of range: {k} of the {n} elements of {}", called(x, dim));
            let error = Error::about(&[x], ErrorKind::Value, OP, message);
            return Err(match x.ndim() {
                0 => error,
                _ => error.with_repair(format!("x.topk({n}, {})?", in_rust(x, dim))),
            });
        }
        let found = find(OP, x, Some(dim), k, NAN_LAST, &|keys, pairs, places| {
            order::top(keys, largest, pairs, places)
        })?;
        pick(x, found, Some(dim), true)
    }

    /// The position of the largest or smallest element so far.
    #[track_caller]
    fn running(
        op: &'static str,
        x: &NamedTensor,
        dim: usize,
        nan: i64,
        better: fn(i64, i64) -> bool,
    ) -> Result<NamedTensor> {
        find(op, x, Some(dim), length(x, Some(dim)), nan, &|keys, _, places| {
            order::running(keys, better, places)
        })
    }

    #[track_caller]
    pub(crate) fn cummax(x: &NamedTensor, dim: usize) -> Result<(NamedTensor, NamedTensor)> {
        pick(x, running("cummax", x, dim, NAN_LAST, |a, b| a >= b)?, Some(dim), true)
    }

    #[track_caller]
    pub(crate) fn cummin(x: &NamedTensor, dim: usize) -> Result<(NamedTensor, NamedTensor)> {
        pick(x, running("cummin", x, dim, NAN_FIRST, |a, b| a <= b)?, Some(dim), true)
    }

    #[track_caller]
    fn arg(op: &'static str, x: &NamedTensor, dim: &Over, largest: bool) -> Result<NamedTensor> {
        let one = one_or_all(op, x, dim)?;
        if x.dtype() == DType::Bool {
            let message = "not implemented for bool; it takes the integers and floats";
            return Err(Error::about(&[x], ErrorKind::DType, op, message).with_repair(match one {
                Some(dim) => format!("x.to(DType::U8)?.{op}({dim})?"),
                None => format!("x.to(DType::U8)?.{op}(..)?"),
            }));
        }
        placed(x, extreme(op, x, one, largest)?, one, dim.keep)
    }

    #[track_caller]
    pub(crate) fn argmax(x: &NamedTensor, dim: Over) -> Result<NamedTensor> {
        arg("argmax", x, &dim, true)
    }

    #[track_caller]
    pub(crate) fn argmin(x: &NamedTensor, dim: Over) -> Result<NamedTensor> {
        arg("argmin", x, &dim, false)
    }

    #[track_caller]
    pub(crate) fn argsort(x: &NamedTensor, dim: usize, descending: bool) -> Result<NamedTensor> {
        sorted("argsort", x, dim, descending)
    }
}
