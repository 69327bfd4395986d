//! Rearrangements.

use crate::Tensor;
use crate::rules::shape::onto_diagonal;
use namegrad_core::{Argument, Dim, Dims, ErrorKind, Result};

impl Tensor {
    /// Of a matrix its diagonal, `diagonal` above the main one, as [`diagonal`](Self::diagonal); of a vector the matrix that has it there, as
    /// [`diag_embed`](Self::diag_embed).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] unless this is a vector or a matrix.
    #[track_caller]
    pub fn diag(&self, diagonal: isize) -> Result<Tensor> {
        match self.ndim() {
            1 => self.diag_embed(diagonal, -2, -1),
            2 => self.diagonal(diagonal, 0, 1),
            ndim => {
                let message = format!("diag(): Supports 1D or 2D tensors. Got {ndim}D");
                Err(namegrad_core::Error::new(ErrorKind::Shape, "diag", message)
                    .with_operands([self.extents()]))
            }
        }
    }

    /// Matrices with the last dim on their diagonal, `offset` above the main one, and zeros elsewhere. `dim0` and `dim1` are the rows and columns in the result;
    /// both have no name, the other dims keep theirs.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let y = Tensor::new([[1, 2]])?.refine_names(["N", "C"])?.diag_embed(0, -2, -1)?;
    /// assert_eq!((y.extents().to_string(), y.to_vec::<i64>()?), ("[N=1, ?=2, ?=2]".into(), vec![1, 0, 0, 2]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a 0-d tensor, [`ErrorKind::DimRange`] if the two dims are the same or out of range.
    #[track_caller]
    pub fn diag_embed(&self, offset: isize, dim0: isize, dim1: isize) -> Result<Tensor> {
        const OP: &str = "diag_embed";
        let Some((last, rest)) = self.sizes().split_last() else {
            let message = "diag_embed expects a tensor of at least one dim";
            return Err(namegrad_core::Error::new(ErrorKind::Shape, OP, message));
        };
        let side = last + offset.unsigned_abs();
        let sizes = [rest, &[side, side]].concat();
        let y = onto_diagonal(&self.unnamed(), &sizes, offset, rest.len(), rest.len() + 1)?;
        let names = self.names().iter(self.ndim()).take(rest.len()).chain([None, None]);
        let y = y.named(namegrad_core::Names::new(OP, names)?);
        y.movedim([-2, -1], [dim0, dim1])
    }

    /// The tensor turned `k` times by a quarter in the plane of two dims, from the first towards the second; a view.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1, 2], [3, 4]])?.refine_names(["H", "W"])?;
    /// assert_eq!(x.rot90(1, ["H", "W"])?.to_vec::<i64>()?, [2, 4, 1, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DimRange`] unless there are two different dims, [`ErrorKind::NameNotFound`].
    #[track_caller]
    pub fn rot90(&self, k: isize, dims: impl Into<Dims>) -> Result<Tensor> {
        const OP: &str = "rot90";
        let dims = dims.into().resolve(OP, self.value())?;
        let &[first, second] = &dims[..] else {
            let message = format!("expected total rotation dims == 2, but got {}", dims.len());
            return Err(namegrad_core::Error::new(ErrorKind::DimRange, OP, message));
        };
        match k.rem_euclid(4) {
            0 => Ok(self.clone()),
            1 => self.flip(second)?.transpose(first, second),
            2 => self.flip([first, second]),
            _ => self.flip(first)?.transpose(first, second),
        }
    }

    /// The sum of the diagonal of a matrix.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] unless this is a matrix.
    #[track_caller]
    pub fn trace(&self) -> Result<Tensor> {
        let message = format!("trace: expected a matrix, but got a tensor of {} dims", self.ndim());
        Tensor::ensure(self.ndim() == 2, ErrorKind::Shape, "trace", message)?;
        self.diagonal(0, 0, 1)?.sum(..)
    }

    /// The tensor with each element repeated along `dim`: `repeats` is a number, or a vector of one for each element. A copy.
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
    /// [`ErrorKind::DType`] unless `repeats` are `i32` or `i64`, [`ErrorKind::Value`] if one is negative, [`ErrorKind::Shape`] if there are not as many as elements,
    /// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`].
    #[track_caller]
    pub fn repeat_interleave(&self, repeats: impl crate::Operand, dim: impl Into<Dim>) -> Result<Tensor> {
        const OP: &str = "repeat_interleave";
        let dim = dim.into().resolve(OP, self.value())?;
        if self.ndim() == 0 {
            return self.reshape([1])?.repeat_interleave(repeats, dim);
        }
        let repeats = &*repeats.operand()?;
        let is_int = matches!(repeats.dtype(), namegrad_core::DType::I32 | namegrad_core::DType::I64);
        Tensor::ensure(is_int, ErrorKind::DType, OP, "repeats has to be a Long or Int tensor")?;
        let counts = repeats.to_vec::<i64>()?;
        Tensor::ensure(counts.iter().all(|n| *n >= 0), ErrorKind::Value, OP, "repeats can not be negative")?;
        if let [times] = counts[..] {
            let mut sizes: Vec<isize> = vec![-1; self.ndim() + 1];
            sizes[dim + 1] = times as isize;
            let spread = self.unsqueeze(dim as isize + 1)?.expand(sizes)?;
            return spread.flatten([dim, dim + 1], self.name(dim).map(|name| name.as_str()));
        }
        let size = self.sizes()[dim];
        let message = format!(
            "repeats must have the same size as input along dim, but got {} and {size}",
            counts.len()
        );
        Tensor::ensure(counts.len() == size && repeats.ndim() == 1, ErrorKind::Shape, OP, message)?;
        let places: Vec<i64> =
            (0i64..).zip(counts).flat_map(|(at, times)| std::iter::repeat_n(at, times as usize)).collect();
        self.index_select(&Tensor::from_slice(&places, [places.len()])?, dim)
    }
}
