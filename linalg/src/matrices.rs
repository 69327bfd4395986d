//! The matrices of a tensor: which dims they are, and the names of results.

use crate::common::*;
use std::fmt::{Display, Write};

/// An error of a method, which adds its name, its inputs and the caller's line.
#[cold]
pub(crate) fn fault(kind: ErrorKind, message: impl Display) -> Error {
    Error::new(kind, "", message.to_string())
}

/// A tensor without names, which gets these.
pub(crate) fn named(y: Tensor, names: Vec<Option<Name>>) -> Result<Tensor> {
    if names.iter().all(Option::is_none) { Ok(y) } else { y.rename(Some(Names::new("", names)?)) }
}

/// A tensor seen as a batch of matrices.
pub(crate) struct Matrices {
    /// The tensor without names, with the matrices in its last two dims.
    pub(crate) x: Tensor,
    /// The numbers of rows and columns.
    pub(crate) sizes: [usize; 2],
    /// The names of rows and columns.
    pub(crate) names: [Option<Name>; 2],
    /// The names of the batch dims.
    pub(crate) batch: Vec<Option<Name>>,
    /// The dims of the tensor in the order of `x`.
    order: Vec<usize>,
}

impl Matrices {
    /// The matrices whose rows and columns are these dims.
    pub(crate) fn of(x: &Tensor, dims: [usize; 2]) -> Result<Matrices> {
        if !matches!(x.dtype(), DType::F32 | DType::F64) {
            let message = format!("expected float32 or float64, got {}", x.dtype());
            return Err(fault(ErrorKind::DType, message).with_repair("x.to(DType::F32)?"));
        }
        let mut order: Vec<usize> = (0..x.ndim()).filter(|dim| !dims.contains(dim)).collect();
        let batch = order.iter().map(|dim| x.name(*dim)).collect();
        order.extend(dims);
        let unnamed = x.rename(None)?;
        Ok(Matrices {
            x: if order.is_sorted() { unnamed } else { unnamed.permute(&order[..])? },
            sizes: dims.map(|dim| x.sizes()[dim]),
            names: dims.map(|dim| x.name(dim)),
            batch,
            order,
        })
    }

    /// Like [`of`](Self::of), for matrices that are square.
    pub(crate) fn square(x: &Tensor, dims: [usize; 2]) -> Result<Matrices> {
        let matrices = Matrices::of(x, dims)?;
        let [m, n] = matrices.sizes;
        if m == n {
            return Ok(matrices);
        }
        Err(fault(ErrorKind::Shape, format!("expected square matrices, got {m} rows and {n} columns")))
    }

    /// The sizes of the batch dims.
    pub(crate) fn batch_sizes(&self) -> &[usize] {
        &self.x.sizes()[..self.batch.len()]
    }

    /// A result with matrices in its last two dims, which get these names and the places of the matrices.
    pub(crate) fn matrices(&self, y: Tensor, names: [Option<Name>; 2]) -> Result<Tensor> {
        let all: Vec<_> = self.batch.iter().copied().chain(names).collect();
        let y = named(y, all)?;
        if self.order.is_sorted() {
            return Ok(y);
        }
        let mut back = vec![0; self.order.len()];
        for (at, dim) in self.order.iter().enumerate() {
            back[*dim] = at;
        }
        y.permute(back)
    }

    /// A result with vectors in its last dim, which gets this name.
    pub(crate) fn vectors(&self, y: Tensor, name: Option<Name>) -> Result<Tensor> {
        named(y, self.batch.iter().copied().chain([name]).collect())
    }

    /// A result with a number for each matrix.
    pub(crate) fn numbers(&self, y: Tensor) -> Result<Tensor> {
        named(y, self.batch.clone())
    }

    /// Where the matrix with this number is: `the matrix at N=3, dim 1=0`, with the dims of the tensor.
    pub(crate) fn which(&self, number: usize) -> String {
        let (mut rest, mut at) = (number, Vec::new());
        for size in self.batch_sizes().iter().rev() {
            at.push(rest % size);
            rest /= size;
        }
        let mut text = String::from("the matrix");
        for (k, index) in at.iter().rev().enumerate() {
            let _ = match self.batch[k] {
                Some(name) => write!(text, "{}{name}={index}", if k == 0 { " at " } else { ", " }),
                None => {
                    write!(text, "{}dim {}={index}", if k == 0 { " at " } else { ", " }, self.order[k])
                }
            };
        }
        text
    }

    /// An error for the first matrix whose info is not 0. The message follows `the matrix at N=3`.
    pub(crate) fn check(&self, infos: &[i32], message: impl Fn(i32) -> String) -> Result<()> {
        let Some(number) = infos.iter().position(|info| *info != 0) else { return Ok(()) };
        Err(fault(ErrorKind::Value, format!("{} {}", self.which(number), message(infos[number]))))
    }

    /// The infos as a tensor with the batch dims.
    pub(crate) fn infos(&self, infos: &[i32]) -> Result<Tensor> {
        self.numbers(Tensor::constant(NamedTensor::from_slice(infos, self.batch_sizes())?))
    }

    /// An error if an element is not finite, for algorithms that would not end.
    pub(crate) fn check_finite(&self) -> Result<()> {
        let infos = values::not_finite(self.x.value())?;
        self.check(&infos, |_| "has elements that are infinite or NaN".into())
    }
}

/// Whether `b` has vectors rather than matrices in a system with the matrices `a`: it has one dim, or the batch
/// dims of `a` and one more.
pub(crate) fn vectors_of(a: &Matrices, b: &Tensor) -> bool {
    let rows = a.batch_sizes().iter().chain([&a.sizes[0]]);
    b.ndim() == 1 || rows.eq(b.sizes())
}
