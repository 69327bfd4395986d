//! Splitting a tensor along one dim. The parts are views.

use crate::Tensor;
use namegrad_core::{Argument, DType, Error, ErrorKind, NamedTensor, Result, Value, called};
use namegrad_macros::composed;

/// The parts into which [`Tensor::split`] and [`Tensor::tensor_split`] split a dim: one number for all, or a
/// list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sections {
    /// For `split`, the size of each part; for `tensor_split`, the number of parts.
    Each(isize),
    /// For `split`, the sizes of the parts; for `tensor_split`, the start of each part but the first.
    List(Vec<isize>),
}

impl From<i32> for Sections {
    fn from(each: i32) -> Sections {
        Sections::Each(each as isize)
    }
}
impl From<isize> for Sections {
    fn from(each: isize) -> Sections {
        Sections::Each(each)
    }
}
impl From<usize> for Sections {
    /// A size too large for `isize` is larger than every dim, so it becomes the largest `isize`.
    fn from(each: usize) -> Sections {
        Sections::Each(each.try_into().unwrap_or(isize::MAX))
    }
}
impl<const K: usize> From<[isize; K]> for Sections {
    fn from(list: [isize; K]) -> Sections {
        Sections::List(list.to_vec())
    }
}
impl From<&[isize]> for Sections {
    fn from(list: &[isize]) -> Sections {
        Sections::List(list.to_vec())
    }
}
impl From<Vec<isize>> for Sections {
    fn from(list: Vec<isize>) -> Sections {
        Sections::List(list)
    }
}

impl From<&Tensor> for Sections {
    /// The integers of a tensor; a tensor of other numbers splits nothing.
    fn from(tensor: &Tensor) -> Sections {
        Sections::from_tensors(&[tensor.value()]).unwrap_or(Sections::List(Vec::new()))
    }
}

impl Argument for Sections {
    type Resolved = Sections;
    type View<'a> = &'a Sections;
    fn look_up(&self, _: &'static str, _: &[&NamedTensor]) -> Result<Sections> {
        Ok(self.clone())
    }
    fn view(resolved: &Sections) -> &Sections {
        resolved
    }
    fn from_value(value: &Value) -> Option<Sections> {
        match value {
            Value::List(list) => {
                crate::list::<_, Option<_>>(list.iter().map(isize::from_value)).map(Sections::List)
            }
            each => isize::from_value(each).map(Sections::Each),
        }
    }
    /// A number, or a vector of them.
    fn from_tensors(tensors: &[&NamedTensor]) -> Option<Sections> {
        let [x] = tensors else { return None };
        let numbers = x.to_vec::<i64>().ok().filter(|_| x.dtype() == DType::I64)?;
        match (x.ndim(), &numbers[..]) {
            (0, [each]) => Some(Sections::Each(*each as isize)),
            (1, list) => Some(Sections::List(crate::list(list.iter().map(|at| *at as isize)))),
            _ => None,
        }
    }
    fn accepted() -> String {
        "a size or a list of sizes".into()
    }
}

composed! { parts;
    //! # Splitting
    /// Splits the tensor along `dim`: into parts of one size, of which the last may be smaller, or into parts
    /// with the sizes in a list, which must add up to the size of the dim. Views.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::zeros([("N", 2), ("C", 5)])?;
    /// let sizes = |parts: Vec<Tensor>| parts.iter().map(|x| x.sizes()[1]).collect::<Vec<_>>();
    /// assert_eq!(sizes(x.split(2, "C")?), [2, 2, 1]);
    /// assert_eq!(sizes(x.split([4, 1], 1)?), [4, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Shape` if the sizes do not add up, `Value` for a negative size, or for size 0 if the dim is not
    /// empty, `NameNotFound`, `DimRange`.
    split (x; split_size: Sections, dim: Dim = 0) -> [parts];
    /// Splits the tensor along `dim` into at most `chunks` parts of equal size, except that the last may be
    /// smaller. Views.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let parts = Tensor::zeros([("N", 2), ("C", 5)])?.chunk(2, "C")?;
    /// assert_eq!((parts[0].sizes(), parts[1].sizes()), (&[2, 3][..], &[2, 2][..]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Value` if `chunks` is 0, `NameNotFound`, `DimRange`.
    chunk (x; chunks: usize, dim: Dim = 0) -> [parts];
    /// Splits the tensor along `dim`: into a number of parts whose sizes differ by at most one, the larger
    /// ones first, or before each index in a list. Views.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::zeros([("N", 7)])?;
    /// let sizes = |parts: Vec<Tensor>| parts.iter().map(|x| x.sizes()[0]).collect::<Vec<_>>();
    /// assert_eq!(sizes(x.tensor_split(3, "N")?), [3, 2, 2]);
    /// assert_eq!(sizes(x.tensor_split([2, -1], "N")?), [2, 4, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Value` if the number of parts is 0, `NameNotFound`, `DimRange`.
    tensor_split (x; indices_or_sections: Sections, dim: Dim = 0) -> [parts];
    /// Splits the tensor horizontally, along dim 1 or, if there is one dim, dim 0: into parts of equal size, or
    /// before each index in a list; see [`tensor_split`](Self::tensor_split). Views.
    ///
    /// # Errors
    /// `Shape` for a 0-d tensor, or a size that the number of parts does not divide.
    hsplit (x; indices_or_sections: Sections) -> [parts] => stacked(op, x, usize::from(x.ndim() > 1), 1, indices_or_sections);
    /// Splits the tensor vertically, along dim 0, like [`hsplit`](Self::hsplit).
    ///
    /// # Errors
    /// `Shape` for fewer than two dims, or a size that the number of parts does not divide.
    vsplit (x; indices_or_sections: Sections) -> [parts] => stacked(op, x, 0, 2, indices_or_sections);
    /// Splits the tensor along dim 2, like [`hsplit`](Self::hsplit).
    ///
    /// # Errors
    /// `Shape` for fewer than three dims, or a size that the number of parts does not divide.
    dsplit (x; indices_or_sections: Sections) -> [parts] => stacked(op, x, 2, 3, indices_or_sections);
    /// The slices along `dim`, each as a tensor without that dim; views.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let rows = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.refine_names(["N", "C"])?.unbind("N")?;
    /// assert_eq!(rows[1].shape().to_string(), "[C=2]");
    /// assert_eq!(rows[1].to_vec::<f32>()?, [3.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    unbind (x; dim: Dim = 0) -> [parts] names removes;
}

/// Parts of equal size along `dim` of a tensor that must have `least` dims.
fn stacked(
    op: &'static str,
    x: &Tensor,
    dim: usize,
    least: usize,
    sections: Sections,
) -> Result<Vec<Tensor>> {
    Error::ensure(x.ndim() >= least, ErrorKind::Shape, op, || {
        format!("expected a tensor of at least {least} dims, got {}", x.ndim())
    })?;
    if let Sections::Each(count) = sections {
        let size = x.sizes()[dim];
        Error::ensure(count > 0 && size.is_multiple_of(count as usize), ErrorKind::Shape, op, || {
            format!("{} of size {size} is not divisible into {count} parts", called(x.value(), dim))
        })?;
    }
    x.tensor_split(sections, dim)
}

mod kernels {
    use super::*;
    use crate::Cx;
    use crate::observe::starting;
    use crate::op::Op;
    use crate::vmap::value_of;

    /// The size of a dim; an error for a 0-d tensor.
    #[track_caller]
    fn size_of(x: &Tensor, op: &'static str, dim: usize) -> Result<usize> {
        match x.sizes().get(dim) {
            Some(size) => Ok(*size),
            None => {
                let message = format!("a 0-d tensor has no dim {dim} to split");
                Err(Error::new(ErrorKind::DimRange, op, message))
            }
        }
    }

    /// Consecutive parts, `count` of them, whose sizes add up to the size of the dim. This is one op, so that
    /// the gradients of all parts are concatenated only once.
    #[track_caller]
    fn parted(
        x: &Tensor,
        op: &'static str,
        dim: usize,
        count: usize,
        size: &dyn Fn(usize) -> usize,
    ) -> Result<Vec<Tensor>> {
        NamedTensor::check_room(op, count, 4 * std::mem::size_of::<Tensor>())?;
        let (mut parts, mut start) = (Vec::with_capacity(count), 0);
        starting();
        for part in 0..count {
            let length = size(part);
            let part = |x: &Tensor| x.narrow(dim, start as isize, length);
            parts.push(value_of("narrow", x, &|| x.value().narrow(dim, start as isize, length), &part)?);
            start += length;
        }
        Ok(Op::with_outputs(op, parts).inputs(&[Some(x)], move |gradients, cx| {
            let present = all(gradients, cx)?;
            Ok(vec![Some(Tensor::cat(&present, dim)?)])
        }))
    }

    #[track_caller]
    pub(super) fn split(x: &Tensor, split_size: Sections, dim: usize) -> Result<Vec<Tensor>> {
        const OP: &str = "split";
        let size = size_of(x, OP, dim)?;
        match split_size {
            Sections::Each(each) => {
                Error::ensure(each > 0 || each == 0 && size == 0, ErrorKind::Value, OP, || {
                    format!("split_size, the size of each part, must be positive, got {each}")
                })?;
                let each = each.max(1) as usize;
                let parts = size.div_ceil(each).max(1);
                parted(x, OP, dim, parts, &|part| each.min(size - part * each))
            }
            Sections::List(list) => {
                Error::ensure(list.iter().all(|size| *size >= 0), ErrorKind::Value, OP, || {
                    format!("the sizes of the parts must not be negative, got {list:?}")
                })?;
                let mut total = Some(0isize);
                for size in &list {
                    total = total.and_then(|total| total.checked_add(*size));
                }
                Error::ensure(total == Some(size as isize), ErrorKind::Shape, OP, || {
                    format!(
                        "the sizes of the parts must sum exactly to {size}, the size of {}, but {list:?} sum to {}",
                        called(x.value(), dim),
                        total.map_or("more than fits a number".into(), |total| total.to_string())
                    )
                })?;
                parted(x, OP, dim, list.len(), &|part| list[part] as usize)
            }
        }
    }

    #[track_caller]
    pub(super) fn chunk(x: &Tensor, chunks: usize, dim: usize) -> Result<Vec<Tensor>> {
        const OP: &str = "chunk";
        Error::ensure(chunks > 0, ErrorKind::Value, OP, || {
            format!("the number of chunks must be at least 1, got {chunks}")
        })?;
        let size = size_of(x, OP, dim)?;
        if size == 0 {
            return parted(x, OP, dim, chunks, &|_| 0);
        }
        x.split(size.div_ceil(chunks), dim)
    }

    #[track_caller]
    pub(super) fn tensor_split(x: &Tensor, sections: Sections, dim: usize) -> Result<Vec<Tensor>> {
        const OP: &str = "tensor_split";
        let size = size_of(x, OP, dim)?;
        match sections {
            Sections::Each(count) => {
                Error::ensure(count > 0, ErrorKind::Value, OP, || {
                    format!("the number of sections must be at least 1, got {count}")
                })?;
                let count = count as usize;
                parted(x, OP, dim, count, &|part| size / count + usize::from(part < size % count))
            }
            Sections::List(indices) => {
                let mut parts = Vec::with_capacity(indices.len() + 1);
                let mut start = 0;
                for end in indices {
                    parts.push(x.slice(dim, start, end, 1)?);
                    start = end;
                }
                parts.push(x.slice(dim, start, isize::MAX, 1)?);
                Ok(parts)
            }
        }
    }

    #[track_caller]
    pub(super) fn unbind(x: &Tensor, dim: usize) -> Result<Vec<Tensor>> {
        let size = size_of(x, "unbind", dim)?;
        NamedTensor::check_room("unbind", size, 4 * std::mem::size_of::<Tensor>())?;
        let mut parts = Vec::with_capacity(size);
        starting();
        for at in 0..size {
            let part = |x: &Tensor| x.select(dim, at as isize);
            parts.push(value_of("select", x, &|| x.value().select(dim, at as isize), &part)?);
        }
        Ok(Op::with_outputs("unbind", parts).inputs(&[Some(x)], move |gradients, cx| {
            let present = all(gradients, cx)?;
            Ok(vec![Some(Tensor::stack(&present, dim as isize)?)])
        }))
    }

    /// The gradients of all outputs; zeros for unused outputs.
    fn all(gradients: &[Option<Tensor>], cx: &Cx<'_>) -> Result<Vec<Tensor>> {
        let mut all = Vec::with_capacity(gradients.len());
        for part in 0..gradients.len() {
            all.push(cx.output_gradient(part)?);
        }
        Ok(all)
    }
}
