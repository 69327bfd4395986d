//! Concatenating tensors along a dim, and rolling elements along it.

use crate::cpu::join::JoinedRows;
use crate::cpu::room::Room;
use crate::dtype::{DType, Opaque, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{Sizes, product};
use crate::names::{Name, Names, rules};
use crate::ops::by_element::promoted;
use crate::ops::shape::kernels::unsqueeze;
use crate::shape::Shape;
use crate::tensor::{NamedTensor, Unwritten};
use namegrad_macros::ops;
use std::panic::Location;

ops! { join;
    //! # Concatenation
    /// The tensors concatenated along `dim`; the sizes of all other dims must be the same. Unnamed empty
    /// vectors are skipped, whatever the sizes of the other tensors. If a `name` is given, the dim has it in
    /// the result, whatever it is called in the tensors.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let pixels = Tensor::ones([("N", 2), ("color", 3)])?;
    /// let depth = Tensor::ones([("N", 2), ("depth", 1)])?;
    /// let both = Tensor::cat_with(&[&pixels, &depth], 1, CatOptions::new().name("C"))?;
    /// assert_eq!(both.shape().to_string(), "[N=2, C=4]");
    /// # Ok::<(), Error>(())
    /// ```
    cat ([tensors]; dim: Dim = 0, name: NewName = None) names unifies, tensors: beside dim;
    /// The tensors, which must have the same sizes, stacked along a new dim at position `dim`. A negative
    /// `dim` counts from the end of the result. The new dim is called `name`, or is unnamed.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let rows = [Tensor::ones([("C", 3)])?, Tensor::zeros([("C", 3)])?];
    /// assert_eq!(Tensor::stack(&rows, 0)?.shape().to_string(), "[?=2, C=3]");
    /// let batch = Tensor::stack_with(&rows, 0, StackOptions::new().name("N"))?;
    /// assert_eq!(batch.shape().to_string(), "[N=2, C=3]");
    /// # Ok::<(), Error>(())
    /// ```
    stack ([tensors]; dim: Place = 0, name: NewName = None) names unifies;
    /// The tensor with its elements shifted by `shifts` along `dims`; elements shifted past the end come back
    /// at the start.
    roll (x; shifts: isize, dims: Dim);
}

impl NamedTensor {
    /// Tells which of `tensors` are skipped by [`cat`](Self::cat): as in PyTorch, empty vectors, unless there
    /// are names.
    #[doc(hidden)]
    pub fn skipped_by_cat(tensors: &[&NamedTensor]) -> impl Fn(&NamedTensor) -> bool + use<> {
        let named = tensors.iter().any(|x| x.has_names());
        move |x| !named && x.sizes() == [0]
    }
}

pub(crate) mod kernels {
    use super::*;
    use crate::dim::{called, in_rust};

    #[track_caller]
    pub(crate) fn cat(tensors: &[&NamedTensor], dim: usize, name: Option<Name>) -> Result<NamedTensor> {
        const OP: &str = "cat";
        let skipped = NamedTensor::skipped_by_cat(tensors);
        let Some(first) = tensors.iter().find(|x| !skipped(x)).or(tensors.first()) else {
            return Err(Error::new(ErrorKind::Value, OP, "expected a non-empty list of Tensors"));
        };
        if first.ndim() == 0 {
            let message = "zero-dimensional tensor (at position 0) cannot be concatenated";
            return Err(Error::about(tensors, ErrorKind::DimRange, OP, message)
                .with_repair("Tensor::stack(&tensors, 0)?"));
        }
        // `dim` was looked up in the tensor with the most dims.
        if let Some(x) = tensors.iter().find(|x| !skipped(x) && x.ndim() != first.ndim()) {
            let (first, other) = (first.ndim(), x.ndim());
            let message = format!("Tensors must have same number of dimensions: got {first} and {other}");
            return Err(Error::about(tensors, ErrorKind::Shape, OP, message));
        }
        // The names that have to unify: the dim can have any, if the result gets another one.
        let unified = |x: &NamedTensor| match name {
            Some(_) => Names::unchecked((0..x.ndim()).map(|d| x.name(d).filter(|_| d != dim))),
            None => x.names().clone(),
        };
        let mut names = unified(first);
        let mut sizes = Sizes::from_slice(first.sizes());
        sizes[dim] = 0;
        for (number, x) in tensors.iter().enumerate() {
            if skipped(x) {
                continue;
            }
            let [left, right] = [
                rules::NamedInput { names: &names, sizes: first.sizes() },
                rules::NamedInput { names: &unified(x), sizes: x.sizes() },
            ];
            names = rules::unify(OP, "cat", left, right)?;
            if let Some(d) = (0..x.ndim()).find(|d| *d != dim && x.sizes()[*d] != first.sizes()[*d]) {
                let message = format!(
                    "Sizes of tensors must match except in {}. Expected size {} in {} but got size {} for tensor number {number} in the list, \
                     counted from 0",
                    called(first, dim),
                    first.sizes()[d],
                    called(first, d),
                    x.sizes()[d]
                );
                let error = Error::about(tensors, ErrorKind::Shape, OP, message);
                let others =
                    (0..x.ndim()).all(|other| other == d || x.sizes()[other] == first.sizes()[other]);
                return Err(match others {
                    true => error.with_repair(format!(
                        "Tensor::cat(&tensors, {})?, if they are to be joined along the dim that differs; else give them one size with narrow or F::pad",
                        in_rust(first, d)
                    )),
                    false => error,
                });
            }
            sizes[dim] = sizes[dim].saturating_add(x.sizes()[dim]);
        }
        if name.is_some() {
            let all = (0..first.ndim()).map(|d| if d == dim { name } else { names.get(d) });
            names = Names::new(OP, all).map_err(|error| error.with_inputs(tensors))?;
        }
        let dtype = promoted(tensors);
        let row: usize = product(&sizes[dim..]);
        let out = Unwritten::new(OP, Shape { sizes, names }, dtype)?;
        let parts: Vec<&NamedTensor> = crate::list(tensors.iter().copied().filter(|x| !skipped(x)));
        let joined = dispatch!(dtype, width U => out.try_write_moved::<U>(|y| side_by_side(&parts, dtype, dim, row, y)));
        let caller = Location::caller();
        joined.map_err(|error| error.at(caller))
    }

    /// Copies the parts to rows of `row` elements, each a cast at a time.
    fn side_by_side<'a, U>(
        parts: &[&NamedTensor],
        dtype: DType,
        dim: usize,
        row: usize,
        y: &'a mut Room<Opaque<U>>,
    ) -> Result<&'a mut [Opaque<U>]>
    where
        Opaque<U>: Copy + Send + Sync,
    {
        let mut rows = JoinedRows::new(y, row);
        for x in parts {
            let dense = x.to(dtype)?.contiguous()?;
            rows.place(dense.opaque::<U>()?, product(&x.sizes()[dim..]));
        }
        Ok(rows.done())
    }

    #[track_caller]
    pub(crate) fn stack(tensors: &[&NamedTensor], at: isize, name: Option<Name>) -> Result<NamedTensor> {
        const OP: &str = "stack";
        let Some(first) = tensors.first() else {
            return Err(Error::new(ErrorKind::Value, OP, "expected a non-empty list of Tensors"));
        };
        if let Some(other) = tensors.iter().find(|x| x.sizes() != first.sizes()) {
            let message = format!(
                "expected each tensor to be of equal size, but got {:?} and {:?}",
                first.sizes(),
                other.sizes()
            );
            let error = Error::about(tensors, ErrorKind::Shape, OP, message);
            let is_cat = tensors.iter().all(|x| x.ndim() == first.ndim());
            let differs =
                |dim: &usize| is_cat && tensors.iter().any(|x| x.sizes()[*dim] != first.sizes()[*dim]);
            let mut differing = (0..first.ndim()).filter(differs);
            return Err(match (differing.next(), differing.next()) {
                (Some(dim), None) => error.with_repair(format!(
                    "Tensor::cat(&tensors, {})?, if they are to be joined along the dim that differs; else give them one size with narrow or F::pad",
                    in_rust(first, dim)
                )),
                _ => error,
            });
        }
        let place = crate::dim::resolve_index(OP, at, first.ndim() + 1)
            .map_err(|error| error.with_inputs(tensors))?;
        let mut grown = Vec::with_capacity(tensors.len());
        for x in tensors {
            grown.push(unsqueeze(x, place as isize, None)?);
        }
        let stacked = cat(&crate::list::<_, Vec<_>>(grown.iter()), place, None)
            .map_err(|error| error.of(OP).with_inputs(tensors))?;
        let mut names: Vec<Option<Name>> = crate::list(stacked.names().iter(stacked.ndim()));
        names[place] = name;
        let names = Names::new(OP, names).map_err(|error| error.with_inputs(tensors))?;
        Ok(stacked.with_names(names))
    }

    #[track_caller]
    pub(crate) fn roll(x: &NamedTensor, shift: isize, dim: usize) -> Result<NamedTensor> {
        let size = x.length_of(dim);
        if size <= 1 || x.numel() == 0 {
            return Ok(x.clone());
        }
        let cut = (size as isize - shift.rem_euclid(size as isize)) % size as isize;
        let (head, tail) = (x.narrow(dim, cut, size - cut as usize)?, x.narrow(dim, 0, cut as usize)?);
        cat(&[&head, &tail], dim, None)
    }
}
