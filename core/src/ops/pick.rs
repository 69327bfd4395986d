//! Elements picked along one dim, together with their places: extremes, order statistics, sorting.
//!
//! A kernel finds the places alone; the values are gathered from there, which has a derivative. What it compares are 64-bit integers in the order of the
//! elements, so that it is compiled once and not once per dtype.

use crate::dim::{Argument, Count, Dim, DimOrAll};
use crate::error::Result;
use crate::tensor::NamedTensor;

/// Elements that were picked along a dim, and where in it they stood.
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
    /// Their places along the dim, in `i64`; in row-major order where all elements were taken as one dim.
    pub indices: T,
}

/// The rows of the ops that pick along a dim, handed to `$with`.
#[macro_export]
#[doc(hidden)]
macro_rules! pick_ops {
    ($with:ident) => {
        $with! {
            /// The largest element along `dim`, the first of equal ones; NaN counts as the largest.
            max max_keepdim ["removes dimensions"] (x; dim: DimOrAll)
            /// The smallest element along `dim`, the first of equal ones; NaN counts as the smallest.
            min min_keepdim ["removes dimensions"] (x; dim: DimOrAll)
            /// The element in the middle of the sorted `dim`, the lower of two; NaN if there is one. Not of bool.
            median median_keepdim ["removes dimensions"] (x; dim: DimOrAll)
            /// The [`median`](Self::median) of the elements that are not NaN; NaN if there are no others.
            nanmedian nanmedian_keepdim ["removes dimensions"] (x; dim: DimOrAll)
            /// The most frequent element along `dim`, the smallest of several such, and its last place; no NaN equals another.
            mode mode_keepdim ["removes dimensions"] (x; dim: Dim)
            /// The `k`-th smallest element along `dim`, counted from 1; NaN counts as the largest. Not of bool.
            kthvalue kthvalue_keepdim ["removes dimensions"] (x, k: Count; dim: DimOrAll)
            /// The elements of `dim` in ascending order unless `descending`; equal elements keep their order, NaN counts as the largest.
            sort ["keeps input names"] (x; dim: Dim, descending: bool)
            /// The `k` largest elements along `dim` in descending order, or the smallest in ascending order unless `largest`; the first of equal ones, NaN counts
            /// as the largest. Not of bool.
            topk ["keeps input names"] (x, k: Count; dim: Dim, largest: bool)
            /// The largest element so far along `dim`, the last of equal ones; NaN from the first NaN on.
            cummax ["keeps input names"] (x; dim: Dim)
            /// The smallest element so far along `dim`, the last of equal ones; NaN from the first NaN on.
            cummin ["keeps input names"] (x; dim: Dim)
        }
    };
}

/// Rows become methods, with the `_keepdim` form where the dim is removed.
macro_rules! define_picks {
    ($(
        #[doc = $doc:literal]
        $(#[doc = $more:literal])*
        $name:ident $($name_keepdim:ident)? [$rule:literal] $args:tt
    )*) => {
        /// What is known of the ops of this table.
        pub const ROWS: &[$crate::ops::OpInfo] = &[$(info!($name [] $rule, $doc $($more)*)),*];
        impl NamedTensor {$(
            define_picks! { @ $name [$($name_keepdim)?] concat!($doc $(, "\n", $more)*), $args }
        )*}
    };
    (@ $name:ident [] $doc:expr, $args:tt) => {
        define_picks! { @ $name as $name, true, $doc, $args }
    };
    (@ $name:ident [$name_keepdim:ident] $doc:expr, $args:tt) => {
        define_picks! { @ $name as $name, false, $doc, $args }
        define_picks! { @ $name as $name_keepdim, true,
            concat!("[`", stringify!($name), "`](Self::", stringify!($name), ") with the dim kept at size one."), $args }
    };
    (@ $name:ident as $method:ident, $keepdim:literal, $doc:expr,
        ($x:ident $(, $k:ident: $K:ty)?; $dim:ident: $Dim:ty $(, $flag:ident: $Flag:ty)?)
    ) => {
        #[doc = $doc]
        ///
        /// # Errors
        #[doc = concat!("As `namegrad::Tensor::", stringify!($name), "`.")]
        #[track_caller]
        pub fn $method(
            &self
            $(, $k: impl Into<$K>)?
            , $dim: impl Into<$Dim>
            $(, $flag: $Flag)?
        ) -> Result<Picked> {
            $(let $k = <$K as Argument>::resolve($k.into(), stringify!($name), self)?;)?
            let $dim = <$Dim as Argument>::resolve($dim.into(), stringify!($name), self)?;
            kernels::pick(self, kernels::$name(self $(, $k)?, $dim $(, $flag)?)?, $dim.into(), $keepdim)
        }
    };
}
pick_ops!(define_picks);

/// What the methods call: the places of an op, with its dim of the size of what is picked, and the elements there.
#[doc(hidden)]
pub mod kernels {
    use super::*;
    use crate::cpu::order::{self, NAN_FIRST, NAN_LAST, Pairs};
    use crate::dtype::{DType, dispatch};
    use crate::error::{Error, ErrorKind};
    use crate::ops::{index, shape};
    use crate::shape::Sizes;
    use std::borrow::Cow;

    /// The elements at `indices`.
    #[track_caller]
    pub(super) fn pick(
        x: &NamedTensor,
        indices: NamedTensor,
        dim: Option<usize>,
        keepdim: bool,
    ) -> Result<Picked> {
        let values = match dim {
            Some(dim) => index::kernels::gather(x, &indices, dim)?,
            None => index::kernels::gather(&flat(x)?, &indices, 0)?,
        };
        Ok(Picked { values: placed(x, values, dim, keepdim)?, indices: placed(x, indices, dim, keepdim)? })
    }

    /// What was found along a dim of `x`, or in all of it, with the sizes and names of the result.
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

    #[track_caller]
    fn fail(op: &'static str, x: &NamedTensor, kind: ErrorKind, message: String) -> Error {
        Error::new(kind, op, message).with_operands([x.extents()])
    }

    /// For each lane along `dim` the `count` places that `f` finds in its keys, among which NaN is `nan`.
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
        let dense = x.movedim(dim, last)?.contiguous()?;
        let mut shape = dense.shape();
        if let Some(size) = shape.sizes.last_mut() {
            *size = count;
        }
        let mut found = NamedTensor::filled(op, shape, DType::I64, 0.into())?;
        let n = length(&x, Some(dim));
        dispatch!(x.dtype(), T => {
            let elements = dense.as_slice::<T>()?;
            let keys = |from: usize, keys: &mut [i64]| order::keys(&elements[from..], nan, keys);
            order::each_lane(n, count, &keys, found.as_mut_slice()?, f);
        });
        found.movedim(last, dim)?.contiguous()
    }

    /// As [`find`], one place in each lane, of which none is empty.
    #[track_caller]
    fn find_one(
        op: &'static str,
        x: &NamedTensor,
        dim: Option<usize>,
        nan: i64,
        f: &(dyn Fn(&[i64], &mut Pairs) -> usize + Sync),
    ) -> Result<NamedTensor> {
        match dim {
            None if x.numel() == 0 => {
                let message = "Expected reduction dim to be specified for input.numel() == 0".to_string();
                return Err(fail(op, x, ErrorKind::Value, message));
            }
            Some(dim) if length(x, Some(dim)) == 0 => {
                let message = format!("Expected reduction dim {dim} to have non-zero size.");
                return Err(fail(op, x, ErrorKind::Shape, message));
            }
            _ => {}
        }
        find(op, x, dim, 1, nan, &|keys, pairs, places| places[0] = f(keys, pairs) as i64)
    }

    /// The places of the largest or the smallest elements.
    #[track_caller]
    pub(crate) fn extreme(
        op: &'static str,
        x: &NamedTensor,
        dim: Option<usize>,
        largest: bool,
    ) -> Result<NamedTensor> {
        match largest {
            true => find_one(op, x, dim, NAN_LAST, &|keys, _| order::first(keys, keys.iter().max())),
            false => find_one(op, x, dim, NAN_FIRST, &|keys, _| order::first(keys, keys.iter().min())),
        }
    }

    #[track_caller]
    pub fn max(x: &NamedTensor, dim: Option<usize>) -> Result<NamedTensor> {
        extreme("max", x, dim, true)
    }

    #[track_caller]
    pub fn min(x: &NamedTensor, dim: Option<usize>) -> Result<NamedTensor> {
        extreme("min", x, dim, false)
    }

    #[track_caller]
    pub fn median(x: &NamedTensor, dim: Option<usize>) -> Result<NamedTensor> {
        x.check_not_bool("median")?;
        let float = x.dtype().is_floating_point();
        find_one("median", x, dim, NAN_LAST, &|keys, pairs| {
            let nan = keys.iter().position(|key| float && *key == NAN_LAST);
            nan.unwrap_or_else(|| order::nth(keys, pairs, (keys.len() - 1) / 2))
        })
    }

    #[track_caller]
    pub fn nanmedian(x: &NamedTensor, dim: Option<usize>) -> Result<NamedTensor> {
        x.check_not_bool("nanmedian")?;
        let float = x.dtype().is_floating_point();
        find_one("nanmedian", x, dim, NAN_LAST, &|keys, pairs| {
            let numbers = keys.iter().filter(|key| !float || **key != NAN_LAST).count();
            order::nth(keys, pairs, numbers.saturating_sub(1) / 2)
        })
    }

    #[track_caller]
    pub fn mode(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        let float = x.dtype().is_floating_point();
        find_one("mode", x, Some(dim), NAN_LAST, &|keys, pairs| {
            order::sort(keys, false, pairs);
            let (mut best, mut at) = (0, 0);
            for run in pairs.chunk_by(|a, b| a.0 == b.0 && !(float && a.0 == NAN_LAST)) {
                if run.len() > best {
                    (best, at) = (run.len(), run[run.len() - 1].1);
                }
            }
            at
        })
    }

    #[track_caller]
    pub fn kthvalue(x: &NamedTensor, k: usize, dim: Option<usize>) -> Result<NamedTensor> {
        const OP: &str = "kthvalue";
        x.check_not_bool(OP)?;
        let n = length(x, dim);
        if n > 0 && !(1..=n).contains(&k) {
            let message = format!("selected number k out of range: {k} of {n} elements");
            return Err(fail(OP, x, ErrorKind::Value, message));
        }
        find_one(OP, x, dim, NAN_LAST, &|keys, pairs| order::nth(keys, pairs, k - 1))
    }

    /// The places that sort `dim`.
    #[track_caller]
    pub(crate) fn sorted(
        op: &'static str,
        x: &NamedTensor,
        dim: usize,
        descending: bool,
    ) -> Result<NamedTensor> {
        find(op, x, Some(dim), length(x, Some(dim)), NAN_LAST, &|keys, pairs, places| {
            order::sort(keys, descending, pairs);
            order::places(pairs, places);
        })
    }

    #[track_caller]
    pub fn sort(x: &NamedTensor, dim: usize, descending: bool) -> Result<NamedTensor> {
        sorted("sort", x, dim, descending)
    }

    #[track_caller]
    pub fn topk(x: &NamedTensor, k: usize, dim: usize, largest: bool) -> Result<NamedTensor> {
        const OP: &str = "topk";
        x.check_not_bool(OP)?;
        let n = length(x, Some(dim));
        if k > n || x.ndim() == 0 && k == 0 {
            let message = format!("selected index k out of range: {k} of {n} elements along dimension {dim}");
            return Err(fail(OP, x, ErrorKind::Value, message));
        }
        find(OP, x, Some(dim), k, NAN_LAST, &|keys, pairs, places| {
            order::pairs(keys, largest, pairs);
            if k < pairs.len() {
                pairs.select_nth_unstable(k);
            }
            pairs[..k].sort_unstable();
            order::places(pairs, places);
        })
    }

    /// The place of the best element so far.
    #[track_caller]
    fn running(
        op: &'static str,
        x: &NamedTensor,
        dim: usize,
        nan: i64,
        better: fn(i64, i64) -> bool,
    ) -> Result<NamedTensor> {
        find(op, x, Some(dim), length(x, Some(dim)), nan, &|keys, _, places| {
            let mut best = 0;
            for (at, place) in places.iter_mut().enumerate() {
                if better(keys[at], keys[best]) {
                    best = at;
                }
                *place = best as i64;
            }
        })
    }

    #[track_caller]
    pub fn cummax(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        running("cummax", x, dim, NAN_LAST, |a, b| a >= b)
    }

    #[track_caller]
    pub fn cummin(x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        running("cummin", x, dim, NAN_FIRST, |a, b| a <= b)
    }
}
