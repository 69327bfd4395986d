//! Parts of tensors by index. `scatter` combines elements at positions, and `segments` has the numbers of
//! segments. Masks are in `mask`, writing to views in `write`, and concatenation in `join`.

use crate::args::Immediate;
use crate::cpu::index::{self as cpu, Combine};
use crate::device::compute_in;
use crate::dim::called;
use crate::dtype::{Category, DType, Opaque, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::around;
use crate::names::{Name, Names, rules};
use crate::shape::Shape;
use crate::tensor::{NamedTensor, Unwritten};
use namegrad_macros::ops;

mod scatter;
mod segments;

ops! { index;
    //! # Indexing
    /// The slices of `x` along `dim` at the positions in `index`, a vector of integers. If the vector has a
    /// name, the dim gets it.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let words = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.refine_names(["vocab", "embed"])?;
    /// let sentence = Tensor::new([1, 0, 1])?.refine_names(["time"])?;
    /// let x = words.index_select(&sentence, "vocab")?;
    /// assert_eq!(x.shape().to_string(), "[time=3, embed=2]");
    /// assert_eq!(x.to_vec::<f32>()?, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    index_select (x, index; dim: Dim) names keeps, index: renames dim;
    /// For each element of `index`, the element of `x` at that position along `dim` and at the same position
    /// as the element along the other dims, whose names must match. Along `dim`, the result has the name of the
    /// index, if it has one.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// // The probability of the label of each sample.
    /// let p = Tensor::new([[0.1, 0.9], [0.7, 0.3]])?.refine_names(["N", "class"])?;
    /// let label = Tensor::new([1, 0])?.refine_names(["N"])?;
    /// let column = label.unsqueeze_with(1, UnsqueezeOptions::new().name("class"))?; // [N, class=1]
    /// let of_label = p.gather(&column, "class")?.squeeze("class")?;
    /// assert_eq!((of_label.shape().to_string(), of_label.to_vec::<f32>()?), ("[N=2]".into(), vec![0.9, 0.7]));
    /// # Ok::<(), Error>(())
    /// ```
    gather (x, index; dim: Dim) names of index, index: beside dim;
    /// `x` with the elements of `source` added at the positions along `dim` given by `index`: the transpose
    /// of [`gather`](Self::gather).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// // How much each sample spends on each of three goods.
    /// let good = Tensor::new([[0, 2, 2], [1, 1, 1]])?.refine_names(["N", "good"])?;
    /// let price = Tensor::new([[5.0, 1.0, 2.0], [3.0, 3.0, 4.0]])?.refine_names(["N", "good"])?;
    /// let spent = Tensor::zeros([("N", 2), ("good", 3)])?.scatter_add(&good, &price, "good")?;
    /// assert_eq!(spent.to_vec::<f32>()?, [5.0, 0.0, 3.0, 0.0, 10.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    scatter_add scatter_add_ (mut x, index, source; dim: Dim) names keeps, index: beside dim, source: beside dim;
    /// `x` with the elements of `source` written to the positions along `dim` given by `index`: the reverse
    /// of [`gather`](Self::gather). If several elements of `source` have the same position, the last one is
    /// kept, but the gradient goes to all of them. If `source` is a number, it is written to all positions.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// // One row for each class.
    /// let class = Tensor::new([[2], [0]])?.refine_names(["N", "class"])?;
    /// let one_hot = Tensor::zeros([("N", 2), ("class", 3)])?.scatter(&class, 1.0, "class")?;
    /// assert_eq!(one_hot.to_vec::<f32>()?, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    scatter scatter_ (mut x, index, source: Operand; dim: Dim) names keeps, index: beside dim, source: beside dim;
    /// `x` with the elements of `source` reduced into the positions along `dim` given by `index`, together
    /// with the element of `x` at the position if `include_self`. Other positions are unchanged. Equal
    /// extremes share the gradient. The second derivative of a product is right if at most one of its factors
    /// is 0.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::core::Reduce;
    /// let bin = Tensor::new([0, 1, 0, 0])?.refine_names(["bin"])?;
    /// let x = Tensor::new([4.0, 5.0, 7.0, 1.0])?.refine_names(["bin"])?;
    /// let options = ScatterReduceOptions::new().include_self(false);
    /// let largest = Tensor::zeros([("bin", 2)])?.scatter_reduce_with(&bin, &x, "bin", Reduce::Amax, options)?;
    /// assert_eq!(largest.to_vec::<f32>()?, [7.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    scatter_reduce scatter_reduce_ (mut x, index, source; dim: Dim, reduce: Reduce, include_self: bool = true)
        names keeps, index: beside dim, source: beside dim;
    /// `x` with its slices along `dim` at the positions in `index`, a vector of integers, replaced by the
    /// slices of `source`. If several slices have the same position, the last one is kept, but the gradient
    /// goes to all of them.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::zeros([("row", 3), ("C", 2)])?;
    /// let rows = Tensor::ones([("row", 2), ("C", 2)])?;
    /// let y = x.index_copy(&Tensor::new([2, 0])?, &rows, "row")?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    index_copy index_copy_ (mut x, index, source; dim: Dim) names keeps, index: along dim, source: beside dim;
    /// `x` with `alpha source` added along `dim` at the positions in `index`, a vector of integers.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// // Messages along edges, added up at the nodes where they end.
    /// let messages = Tensor::new([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])?.refine_names(["node", "C"])?;
    /// let ends = Tensor::new([1, 0, 1])?;
    /// let received = Tensor::zeros([("node", 2), ("C", 2)])?.index_add(&ends, &messages, "node")?;
    /// assert_eq!(received.to_vec::<f32>()?, [2.0, 20.0, 5.0, 50.0]);
    /// # Ok::<(), Error>(())
    /// ```
    index_add index_add_ (mut x, index, source; dim: Dim, alpha: Scalar = 1)
        names keeps, index: along dim, source: beside dim;
    /// `x` with the slices of `source` reduced into its slices along `dim` at the positions in `index`, a
    /// vector of integers, together with the slice of `x` if `include_self`. Other slices are unchanged.
    /// Gradients are those of [`scatter_reduce`](Self::scatter_reduce).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::core::Reduce;
    /// let x = Tensor::new([[1.0, 8.0], [5.0, 5.0]])?.refine_names(["row", "C"])?;
    /// let rows = Tensor::new([[3.0, 3.0], [2.0, 9.0]])?.refine_names(["row", "C"])?;
    /// let y = x.index_reduce(&Tensor::new([0, 0])?, &rows, "row", Reduce::Amax)?;
    /// assert_eq!(y.to_vec::<f32>()?, [3.0, 9.0, 5.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    index_reduce index_reduce_ (mut x, index, source; dim: Dim, reduce: Reduce, include_self: bool = true)
        names keeps, index: along dim, source: beside dim;
    /// The lower triangle of the last two dims, with zeros elsewhere; a positive `diagonal` includes that
    /// many diagonals above the main one.
    tril tril_ (mut x; diagonal: isize = 0);
    /// The upper triangle of the last two dims, with zeros elsewhere; a positive `diagonal` leaves out that
    /// many diagonals from the main one up.
    triu triu_ (mut x; diagonal: isize = 0);
    /// The positions of the nonzero elements, as the rows of a matrix.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[0, 3], [2, 0]])?;
    /// let places = x.nonzero_with(NonzeroOptions::new().names(["place", "dim"]))?;
    /// assert_eq!(places.shape().to_string(), "[place=2, dim=2]");
    /// assert_eq!(places.to_vec::<i64>()?, [0, 1, 1, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    nonzero (x; names: NewNames = None) names called names;
}

/// The reduction by which [`scatter_reduce`](NamedTensor::scatter_reduce) and
/// [`index_reduce`](NamedTensor::index_reduce) combine the elements for a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// Their sum.
    Sum,
    /// Their product.
    Prod,
    /// Their mean, rounded down for integers.
    Mean,
    /// The largest; NaN if any is NaN.
    Amax,
    /// The smallest; NaN if any is NaN.
    Amin,
}
impl Immediate for Reduce {
    const WORDS: &'static [(&'static str, Reduce)] = &[
        ("sum", Reduce::Sum),
        ("prod", Reduce::Prod),
        ("mean", Reduce::Mean),
        ("amax", Reduce::Amax),
        ("amin", Reduce::Amin),
    ];
}

impl Reduce {
    /// All variants.
    pub const ALL: [Reduce; 5] = [Reduce::Sum, Reduce::Prod, Reduce::Mean, Reduce::Amax, Reduce::Amin];

    /// PyTorch's name.
    pub fn name(self) -> &'static str {
        match self {
            Reduce::Sum => "sum",
            Reduce::Prod => "prod",
            Reduce::Mean => "mean",
            Reduce::Amax => "amax",
            Reduce::Amin => "amin",
        }
    }
}

pub(crate) mod kernels {
    use super::scatter::Scatter;
    use super::*;
    use crate::cpu::fill;
    use crate::dim::in_rust;
    use crate::tensor::range::{beyond, does_not_fit};

    /// The positions along dim `dim` of `x` in `index`, dense and in `i64`; negative ones are refused, as
    /// PyTorch does here.
    #[track_caller]
    fn positions(op: &'static str, x: &NamedTensor, index: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        let dense = whole_positions(op, x, index)?;
        let size = x.length_of(dim);
        match cpu::stray(dense.elements()?, size, None) {
            Some(bad) => Err(out_of_bounds(op, &[x, index], bad, dim)),
            None => Ok(dense),
        }
    }

    /// `index`, dense and in `i64`; an error unless it has integers.
    #[track_caller]
    pub(super) fn whole_positions(
        op: &'static str,
        x: &NamedTensor,
        index: &NamedTensor,
    ) -> Result<NamedTensor> {
        let empty = index.numel() == 0 && index.dtype().category() == Category::Integer; // as in PyTorch
        if !matches!(index.dtype(), DType::I64 | DType::I32) && !empty {
            let message = format!("Expected dtype int32/int64 for index, got {}", index.dtype());
            return Err(
                Error::about(&[x, index], ErrorKind::DType, op, message).with_repair("index.to(DType::I64)?")
            );
        }
        index.to(DType::I64)?.contiguous()
    }

    /// The error of a position that dim `dim` of the first of `inputs` does not have.
    #[cold]
    #[track_caller]
    fn out_of_bounds(op: &'static str, inputs: &[&NamedTensor], bad: i64, dim: usize) -> Error {
        let size = inputs[0].length_of(dim);
        let message = format!("index {bad} is out of bounds for {} of size {size}", called(inputs[0], dim));
        let error = Error::about(inputs, ErrorKind::Index, op, message);
        match bad < 0 && bad >= -(size as i64) {
            true => {
                error.with_repair(format!("index.remainder({size})?, as {op} does not count from the end"))
            }
            false => error,
        }
    }

    /// The positions in the vector `index` along `dim`.
    #[track_caller]
    pub(crate) fn vector_index(
        op: &'static str,
        x: &NamedTensor,
        index: &NamedTensor,
        dim: usize,
    ) -> Result<NamedTensor> {
        if index.ndim() > 1 {
            let message = format!("Index is supposed to be a vector, got {} dims", index.ndim());
            return Err(Error::about(&[x, index], ErrorKind::Shape, op, message)
                .with_repair("index.flatten(.., None)?"));
        }
        positions(op, x, index, dim)
    }

    #[track_caller]
    pub(crate) fn index_select(x: &NamedTensor, index: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        const OP: &str = "index_select";
        let picked = vector_index(OP, x, index, dim)?;
        if x.ndim() == 0 && picked.numel() != 1 {
            let message = format!("an index of a 0-d tensor has one element, got {}", picked.numel());
            return Err(Error::about(&[x, index], ErrorKind::Index, OP, message));
        }
        let dense = x.contiguous()?;
        let mut shape = x.shape();
        if x.ndim() > 0 {
            shape.sizes[dim] = picked.numel();
            shape.names = rules::indexed(OP, x.input(), index.input(), dim)?;
        }
        let out = Unwritten::new(OP, shape, x.dtype())?;
        let (sizes, picked) = (around(x.sizes(), dim), picked.elements()?);
        dispatch!(x.dtype(), width U => out.write_moved::<U>(&dense, |x, y| cpu::select(x, sizes, picked, y)))
    }

    /// The positions in `index`, which has as many dims as `x` and is nowhere larger but along `dim`.
    #[track_caller]
    pub(super) fn lane_positions(
        op: &'static str,
        x: &NamedTensor,
        index: &NamedTensor,
        dim: usize,
    ) -> Result<NamedTensor> {
        // As in PyTorch, a 0-d tensor and a vector of one element are equivalent here.
        if index.ndim().max(1) != x.ndim().max(1) && index.numel() > 0 {
            let message = format!(
                "Index tensor must have the same number of dimensions as input tensor, got {} and {}",
                index.ndim(),
                x.ndim()
            );
            let error = Error::about(&[x, index], ErrorKind::Shape, op, message);
            let others = x.sizes().iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, size)| size);
            // In any order: `align_as` adds the dim of the positions.
            let is_by_name = index.ndim() + 1 == x.ndim()
                && (0..x.ndim()).all(|d| {
                    x.name(d).is_some_and(|name| index.names().position(name).is_some() != (d == dim))
                });
            return Err(match index.ndim() {
                _ if op == "gather" && is_by_name => error.with_repair(format!(
                    "x.gather(&index.align_as(&x)?, {})?, one element for each position of the index",
                    in_rust(x, dim)
                )),
                _ if op == "gather" && others.eq(index.sizes()) => error.with_repair(format!(
                    "x.gather(&index.unsqueeze({dim})?, {})?, one element for each position of the index",
                    in_rust(x, dim)
                )),
                1 => {
                    let dim = in_rust(x, dim);
                    let call = match op.trim_end_matches('_') {
                        "scatter_add" => format!("index_add(&index, &source, {dim})"),
                        "scatter" => format!("index_copy(&index, &source, {dim})"),
                        "scatter_reduce" => format!("index_reduce(&index, &source, {dim}, reduce)"),
                        _ => format!("index_select(&index, {dim})"),
                    };
                    error.with_repair(format!("x.{call}?, for whole slices"))
                }
                _ => error,
            });
        }
        let larger = |d: &usize| *d != dim && index.sizes()[*d] > x.sizes()[*d];
        if index.numel() > 0
            && let Some(d) = (0..index.ndim().min(x.ndim())).find(larger)
        {
            let message = format!(
                "Size does not match at {}: the index has {} elements there and the tensor {}; only along {}, where the positions are, may \
                 it have more",
                called(x, d),
                index.sizes()[d],
                x.sizes()[d],
                called(x, dim)
            );
            return Err(Error::about(&[x, index], ErrorKind::Shape, op, message));
        }
        positions(op, x, index, dim)
    }

    /// The part of `x` that has the sizes of `index` in all dims except `dim`; an unnamed view.
    #[track_caller]
    pub(super) fn beside(x: &NamedTensor, index: &NamedTensor, dim: Option<usize>) -> Result<NamedTensor> {
        let mut part = x.unnamed();
        for (d, size) in index.sizes().iter().enumerate() {
            if Some(d) != dim && part.sizes()[d] != *size {
                part = part.narrow(d, 0, *size)?;
            }
        }
        Ok(part)
    }

    #[track_caller]
    pub(crate) fn gather(x: &NamedTensor, index: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        const OP: &str = "gather";
        // The names first: the sizes may be in another order too.
        let names = match index.ndim() == x.ndim() {
            true => rules::beside(OP, "index", x.input(), index.input(), dim)?,
            false => index.names().clone(),
        };
        let positions = lane_positions(OP, x, index, dim)?;
        let shape = Shape { names, ..index.shape() };
        if index.numel() == 0 {
            return NamedTensor::filled(OP, shape, x.dtype(), 0.into());
        }
        let out = Unwritten::new(OP, shape, x.dtype())?;
        let part = beside(x, index, Some(dim))?.contiguous()?;
        let (sizes, positions) = (around(part.sizes(), dim), positions.elements()?);
        dispatch!(x.dtype(), width U => out.write_moved::<U>(&part, |x, y| cpu::gather(x, sizes, positions, y)))
    }

    #[track_caller]
    pub(crate) fn scatter_add(
        x: &mut NamedTensor,
        index: &NamedTensor,
        source: &NamedTensor,
        dim: usize,
    ) -> Result<()> {
        Scatter::new("scatter_add", x, index, source, dim)?.run(Combine::Add, x)
    }

    #[track_caller]
    pub(crate) fn scatter(
        x: &mut NamedTensor,
        index: &NamedTensor,
        source: &NamedTensor,
        dim: usize,
    ) -> Result<()> {
        const OP: &str = "scatter";
        if let Some(number) = beyond(&[source], x.dtype())? {
            return Err(does_not_fit(OP, Some(x), number, x.dtype()));
        }
        let everywhere = match source.is_number() {
            true => &NamedTensor::filled(OP, index.shape(), x.dtype(), source.item::<crate::Scalar>()?)?,
            false => source,
        };
        Scatter::new(OP, x, index, everywhere, dim)?.run(Combine::Set, x)
    }

    #[track_caller]
    pub(crate) fn scatter_reduce(
        x: &mut NamedTensor,
        index: &NamedTensor,
        source: &NamedTensor,
        dim: usize,
        reduce: Reduce,
        include_self: bool,
    ) -> Result<()> {
        let terms = Scatter::new("scatter_reduce", x, index, source, dim)?;
        terms.reduce("scatter_reduce", x, reduce, include_self)
    }

    #[track_caller]
    pub(crate) fn index_reduce(
        x: &mut NamedTensor,
        index: &NamedTensor,
        source: &NamedTensor,
        dim: usize,
        reduce: Reduce,
        include_self: bool,
    ) -> Result<()> {
        let terms = Scatter::of_slices("index_reduce", x, index, source, dim)?;
        terms.reduce("index_reduce", x, reduce, include_self)
    }

    #[track_caller]
    pub(crate) fn index_add(
        x: &mut NamedTensor,
        index: &NamedTensor,
        source: &NamedTensor,
        dim: usize,
        alpha: crate::Scalar,
    ) -> Result<()> {
        const OP: &str = "index_add";
        super::super::matmul::kernels::check_factor(OP, "alpha", alpha, &[x, index, source])?;
        let scaled = if alpha.to_f64() == 1.0 { source.clone() } else { source.mul(alpha)? };
        Scatter::of_slices(OP, x, index, &scaled.to(source.dtype())?, dim)?.run(Combine::Add, x)
    }

    #[track_caller]
    pub(crate) fn index_copy(
        x: &mut NamedTensor,
        index: &NamedTensor,
        source: &NamedTensor,
        dim: usize,
    ) -> Result<()> {
        Scatter::of_slices("index_copy", x, index, source, dim)?.run(Combine::Set, x)
    }

    #[track_caller]
    fn triangle(op: &'static str, x: &mut NamedTensor, diagonal: isize, upper: bool) -> Result<()> {
        let [.., rows, cols] = *x.sizes() else {
            let message = format!("the input must have at least 2 dims, got {}", x.ndim());
            return Err(Error::about(&[x], ErrorKind::Shape, op, message));
        };
        let sizes = [rows, cols];
        compute_in(x, |x| {
            dispatch!(x.dtype(), width U => fill::triangle(Opaque::<U>::zero(), sizes, diagonal, upper, x.opaque_mut()?));
            Ok(())
        })
    }

    #[track_caller]
    pub(crate) fn tril(x: &mut NamedTensor, diagonal: isize) -> Result<()> {
        triangle("tril", x, diagonal, false)
    }

    #[track_caller]
    pub(crate) fn triu(x: &mut NamedTensor, diagonal: isize) -> Result<()> {
        triangle("triu", x, diagonal, true)
    }

    #[track_caller]
    pub(crate) fn nonzero(x: &NamedTensor, names: Vec<Option<Name>>) -> Result<NamedTensor> {
        let names = Names::given("nonzero", &names, &[None, None])?;
        x.check_elements("nonzero")?;
        let truth = x.ne(0)?.contiguous()?;
        let count = truth.count_nonzero(..)?.item::<usize>()?;
        let places = NamedTensor::from_slice(&cpu::places(truth.elements()?, x.sizes()), [count, x.ndim()])?;
        Ok(places.with_names(names))
    }
}
