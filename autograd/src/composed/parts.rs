//! A tensor in parts along one dim; views.

use crate::op::Op;
use crate::{Cx, Tensor};
use namegrad_core::{Argument, Dim, Error, ErrorKind, Result};

/// Into what [`Tensor::split`] and [`Tensor::tensor_split`] part a dim: one number for all parts, or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sections {
    /// One number: the size of each part, or how many there are.
    Each(isize),
    /// The size of each part, or where each but the first begins.
    List(Vec<isize>),
}

macro_rules! sections {
    ($($int:ty),*) => {$(
        impl From<$int> for Sections {
            fn from(each: $int) -> Sections { Sections::Each(each as isize) }
        }
    )*};
}
sections!(i32, isize, usize);

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

impl Tensor {
    /// The dim by position, and its size.
    #[track_caller]
    fn sized_dim(&self, op: &'static str, dim: Dim) -> Result<(usize, usize)> {
        let dim = dim.resolve(op, self.value())?;
        match self.sizes().get(dim) {
            Some(size) => Ok((dim, *size)),
            None => {
                let message = format!("{op}: Dimension specified as {dim} but tensor has no dimensions");
                Err(Error::new(ErrorKind::DimRange, op, message))
            }
        }
    }

    /// One part after the other, of these sizes, which add up to that of the dim. One op, so that the gradient of all parts is put together once.
    #[track_caller]
    fn parted(
        &self,
        op: &'static str,
        dim: usize,
        sizes: impl IntoIterator<Item = usize>,
    ) -> Result<Vec<Tensor>> {
        let (mut parts, mut start) = (Vec::new(), 0);
        for length in sizes {
            parts.push(self.value().narrow(dim, start, length)?);
            start += length;
        }
        Ok(Op::with_outputs(op, parts).inputs(&[Some(self)], move |gradients, cx| {
            let present = all(gradients, cx)?;
            Ok(vec![Some(Tensor::cat(&present.iter().collect::<Vec<_>>(), dim)?)])
        }))
    }

    /// The tensor in parts along `dim`: of one size, the last one being smaller if it does not divide, or of the sizes of a list, which add up to that of the
    /// dim. Views with the names of this tensor.
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
    /// [`ErrorKind::Shape`] if the sizes do not add up, [`ErrorKind::Value`] for a size below 0, or of 0 of a dim that has elements,
    /// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`].
    #[track_caller]
    pub fn split(&self, sections: impl Into<Sections>, dim: impl Into<Dim>) -> Result<Vec<Tensor>> {
        const OP: &str = "split";
        let (dim, size) = self.sized_dim(OP, dim.into())?;
        match sections.into() {
            Sections::Each(each) => {
                let message = format_args!("split expects split_size to be positive, got split_size={each}");
                Tensor::ensure(each > 0 || each == 0 && size == 0, ErrorKind::Value, OP, message)?;
                let each = each.max(1) as usize;
                let parts = size.div_ceil(each).max(1);
                self.parted(OP, dim, (0..parts).map(|part| each.min(size - part * each)))
            }
            Sections::List(list) => {
                let message = format_args!(
                    "split_with_sizes expects split_sizes have only non-negative entries, but got {list:?}"
                );
                Tensor::ensure(list.iter().all(|size| *size >= 0), ErrorKind::Value, OP, message)?;
                let message = format_args!(
                    "split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {dim}), but got \
                     split_sizes={list:?}"
                );
                let total = list.iter().try_fold(0isize, |total, size| total.checked_add(*size));
                Tensor::ensure(total == Some(size as isize), ErrorKind::Shape, OP, message)?;
                self.parted(OP, dim, list.into_iter().map(|size| size as usize))
            }
        }
    }

    /// The tensor in at most `chunks` parts along `dim`, of equal size but for the last one. Views with the names of this tensor.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let parts = Tensor::zeros([("N", 2), ("C", 5)])?.chunk(2, "C")?;
    /// assert_eq!((parts[0].sizes(), parts[1].sizes()), (&[2, 3][..], &[2, 2][..]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for no chunks, [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`].
    #[track_caller]
    pub fn chunk(&self, chunks: usize, dim: impl Into<Dim>) -> Result<Vec<Tensor>> {
        const OP: &str = "chunk";
        let message = format_args!("chunk expects `chunks` to be greater than 0, got: {chunks}");
        Tensor::ensure(chunks > 0, ErrorKind::Value, OP, message)?;
        let (dim, size) = self.sized_dim(OP, dim.into())?;
        if size == 0 {
            return self.parted(OP, dim, vec![0; chunks]);
        }
        self.split(size.div_ceil(chunks), dim)
    }

    /// The tensor in parts along `dim`: in so many whose sizes differ by one at most, the larger ones first, or before each index of a list. Views with the
    /// names of this tensor.
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
    /// [`ErrorKind::Value`] for no sections, [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`].
    #[track_caller]
    pub fn tensor_split(&self, sections: impl Into<Sections>, dim: impl Into<Dim>) -> Result<Vec<Tensor>> {
        const OP: &str = "tensor_split";
        let (dim, size) = self.sized_dim(OP, dim.into())?;
        match sections.into() {
            Sections::Each(count) => {
                let message = format_args!("number of sections must be larger than 0, got {count}");
                Tensor::ensure(count > 0, ErrorKind::Value, OP, message)?;
                let count = count as usize;
                self.parted(OP, dim, (0..count).map(|part| size / count + usize::from(part < size % count)))
            }
            Sections::List(indices) => {
                let mut parts = Vec::with_capacity(indices.len() + 1);
                let mut start = 0;
                for end in indices.into_iter().chain([isize::MAX]) {
                    parts.push(self.slice(dim, start, end, 1)?);
                    start = end;
                }
                Ok(parts)
            }
        }
    }

    /// The elements along `dim`, each a tensor without that dim; views.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let rows = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.refine_names(["N", "C"])?.unbind("N")?;
    /// assert_eq!(rows[1].extents().to_string(), "[C=2]");
    /// assert_eq!(rows[1].to_vec::<f32>()?, [3.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`].
    #[track_caller]
    pub fn unbind(&self, dim: impl Into<Dim>) -> Result<Vec<Tensor>> {
        let (dim, size) = self.sized_dim("unbind", dim.into())?;
        let mut parts = Vec::with_capacity(size);
        for at in 0..size {
            parts.push(self.value().select(dim, at as isize)?);
        }
        Ok(Op::with_outputs("unbind", parts).inputs(&[Some(self)], move |gradients, cx| {
            let present = all(gradients, cx)?;
            Ok(vec![Some(Tensor::stack(&present.iter().collect::<Vec<_>>(), dim as isize, None)?)])
        }))
    }
}

/// The gradients of all outputs, zeros for those that nothing was made of.
fn all(gradients: &[Option<Tensor>], cx: &Cx<'_>) -> Result<Vec<Tensor>> {
    (0..gradients.len()).map(|part| cx.output_gradient(part)).collect()
}
