//! Concatenation, and broadcasting of several tensors.

use crate::Tensor;
use crate::chain::*;
use namegrad_core::args::Immediate;
use namegrad_core::{NamedTensor, Result};
use namegrad_macros::composed;

/// The order of the dims of the grid of [`Tensor::meshgrid`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexing {
    /// The order of the vectors, as with the indices of a matrix: row, column.
    #[default]
    Ij,
    /// The first two dims swapped, as with the coordinates of an image: `x` runs along the columns.
    Xy,
}
impl Immediate for Indexing {
    const WORDS: &'static [(&'static str, Self)] = &[("ij", Self::Ij), ("xy", Self::Xy)];
}

composed! { join;
    //! # More concatenation
    /// All tensors expanded to the sizes that they broadcast to; views.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let (x, y) = (Tensor::zeros([("N", 3), ("C", 1)])?, Tensor::zeros([("C", 2)])?);
    /// let parts = Tensor::broadcast_tensors(&[&x, &y])?;
    /// assert_eq!([parts[0].sizes(), parts[1].sizes()], [[3, 2], [3, 2]]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Shape` if they do not broadcast to each other.
    broadcast_tensors ([tensors]) -> [expanded] names unifies;
    /// The tensors concatenated horizontally: vectors along dim 0, others along dim 1. See
    /// [`cat`](Self::cat).
    hstack ([tensors]) names unifies;
    /// The tensors concatenated vertically, along dim 0; a vector is a row. See [`cat`](Self::cat).
    vstack ([tensors]) names unifies;
    /// The tensors concatenated along dim 2; a vector `[n]` becomes `[1, n, 1]`, and a matrix `[n, m]`
    /// becomes `[n, m, 1]`. See [`cat`](Self::cat).
    dstack ([tensors]) names unifies;
    /// The tensors concatenated along dim 1; a vector is a column. See [`cat`](Self::cat).
    column_stack ([tensors]) names unifies;
    /// A block diagonal matrix of the given matrices; a vector is a row.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let y = Tensor::block_diag(&[&Tensor::new([[1], [2]])?, &Tensor::new([[3, 4]])?])?;
    /// assert_eq!(y.to_vec::<i64>()?, [1, 0, 0, 2, 0, 0, 0, 3, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Value` for an empty list, `Shape` for more than two dims.
    block_diag ([tensors]; names: NewNames = None) names called names, tensors: free;
    /// The coordinate grids of vectors: for each vector, a tensor in which it runs along its own dim and is
    /// repeated along the others; views.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let y = Tensor::new([0, 1])?.refine_names(["H"])?;
    /// let x = Tensor::new([5, 6, 7])?.refine_names(["W"])?;
    /// let grid = Tensor::meshgrid(&[&y, &x])?;
    /// assert_eq!(grid[1].shape().to_string(), "[H=2, W=3]");
    /// assert_eq!(grid[1].to_vec::<i64>()?, [5, 6, 7, 5, 6, 7]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Shape` for a tensor with more than one dim, `DuplicateName` for two vectors with the same name.
    meshgrid ([tensors]; indexing: Indexing = Indexing::Ij) -> [grid] names keeps, tensors: own;
    /// All tuples of one element of each vector, in the order of the vectors, as the rows of a matrix; of one
    /// vector, the vector itself.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let pairs = Tensor::cartesian_prod(&[&Tensor::new([1, 2])?, &Tensor::new([5, 6])?])?;
    /// assert_eq!(pairs.to_vec::<i64>()?, [1, 5, 1, 6, 2, 5, 2, 6]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Shape` for a tensor that is no vector, `Value` for an empty list.
    cartesian_prod ([tensors]; names: NewNames = None) names called names, tensors: free;
    /// All combinations of `r` elements of a vector, in its order, as the rows of a matrix; with
    /// `with_replacement`, an element can occur several times in one.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1, 2, 3])?;
    /// assert_eq!(x.combinations()?.to_vec::<i64>()?, [1, 2, 1, 3, 2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Shape` unless this is a vector, `OutOfMemory`.
    combinations (x; r: usize = 2, with_replacement: bool = false, names: NewNames = None) names called names;
    /// The Kronecker product: a block `x[i] y` for each element `x[i]` of this tensor. The tensor with fewer
    /// dims gets dims of size one in front. The dims of the product have the given `names`, or are unnamed.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let y = Tensor::new([[1, 2]])?.kron(&Tensor::new([[1, 10]])?)?;
    /// assert_eq!(y.to_vec::<i64>()?, [1, 10, 2, 20]);
    /// # Ok::<(), Error>(())
    /// ```
    kron (x, other; names: NewNames = None) names called names, other: free;
}

mod kernels {
    use super::*;
    use namegrad_core::{Error, ErrorKind, Name, Names};

    /// The sizes that the tensors broadcast to.
    #[track_caller]
    fn common_sizes(op: &'static str, tensors: &[&Tensor]) -> Result<Vec<usize>> {
        let ndim = tensors.iter().map(|x| x.ndim()).max().unwrap_or(0);
        let mut sizes = vec![1; ndim];
        for x in tensors {
            let from = ndim - x.ndim();
            for (size, own) in sizes[from..].iter_mut().zip(x.sizes()) {
                if *size != *own && *size != 1 && *own != 1 {
                    let message = format!("the sizes {own} and {size} do not broadcast to each other");
                    return Err(Error::new(ErrorKind::Shape, op, message)
                        .with_operands(tensors.iter().map(|x| x.shape())));
                }
                if *own != 1 {
                    *size = *own;
                }
            }
        }
        Ok(sizes)
    }

    #[track_caller]
    pub(super) fn broadcast_tensors(tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
        let sizes = common_sizes("broadcast_tensors", tensors)?;
        let mut expanded = Vec::with_capacity(tensors.len());
        // The names of all: each tensor lends its own to the one that has those of the tensors before it.
        let mut like: Option<NamedTensor> = None;
        for x in tensors {
            like = Some(match like {
                Some(like) => {
                    let names = like.unified_names("broadcast_tensors", "broadcast", x.value())?;
                    let widest = if like.ndim() < x.ndim() { x.value() } else { &like };
                    widest.rename(Some(names))?
                }
                None => x.value().clone(),
            });
        }
        for x in tensors {
            let names = like.as_ref().map(|like| like.names().clone());
            expanded.push(x.expand(&sizes[..])?.rename(names)?);
        }
        Ok(expanded)
    }

    #[track_caller]
    pub(super) fn hstack(tensors: &[&Tensor]) -> Result<Tensor> {
        let grown = grown(tensors, &[0], 1)?;
        let dim = usize::from(grown.first().is_some_and(|x| x.ndim() > 1));
        Tensor::cat(&grown, dim)
    }

    #[track_caller]
    pub(super) fn vstack(tensors: &[&Tensor]) -> Result<Tensor> {
        Tensor::cat(&grown(tensors, &[0, 0], 2)?, 0)
    }

    #[track_caller]
    pub(super) fn dstack(tensors: &[&Tensor]) -> Result<Tensor> {
        Tensor::cat(&grown(tensors, &[0, 0, -1], 3)?, 2)
    }

    #[track_caller]
    pub(super) fn column_stack(tensors: &[&Tensor]) -> Result<Tensor> {
        Tensor::cat(&grown(tensors, &[-1, -1], 2)?, 1)
    }

    /// Adds dims to the tensors until they have `ndim`: a tensor with `d` dims gets its next dim at
    /// `places[d]`.
    #[track_caller]
    fn grown(tensors: &[&Tensor], places: &[isize], ndim: usize) -> Result<Vec<Tensor>> {
        let mut grown = Vec::with_capacity(tensors.len());
        for x in tensors {
            let mut x = (*x).clone();
            while x.ndim() < ndim {
                x = x.unsqueeze(places[x.ndim()])?;
            }
            grown.push(x);
        }
        Ok(grown)
    }

    #[track_caller]
    pub(super) fn block_diag(tensors: &[&Tensor], names: Vec<Option<Name>>) -> Result<Tensor> {
        let names = Names::given("block_diag", &names, &[None, None])?;
        let blocks = grown(tensors, &[0, 0], 2)?;
        let matrices = blocks.iter().all(|x| x.ndim() == 2);
        let message = "every input must have at most 2 dims";
        Error::ensure(matrices, ErrorKind::Shape, "block_diag", || message)?;
        let cols: usize = blocks.iter().map(|x| x.sizes()[1]).sum();
        let mut bands = Vec::with_capacity(blocks.len());
        let mut before = 0;
        for block in &blocks {
            let [rows, own] = [block.sizes()[0], block.sizes()[1]];
            let (left, right) =
                (block.new_zeros([rows, before])?, block.new_zeros([rows, cols - before - own])?);
            bands.push(Tensor::cat([&left, &block.unnamed(), &right], 1)?);
            before += own;
        }
        Ok(Tensor::cat(&bands, 0)?.named(names))
    }

    #[track_caller]
    pub(super) fn meshgrid(tensors: &[&Tensor], indexing: Indexing) -> Result<Vec<Tensor>> {
        const OP: &str = "meshgrid";
        let vectors = tensors.iter().all(|x| x.ndim() < 2);
        Error::ensure(vectors, ErrorKind::Shape, OP, || "every input must be a vector or a single number")?;
        let names = Names::new(OP, tensors.iter().map(|x| x.name(0)))?;
        let sizes: Vec<usize> = crate::list(tensors.iter().map(|x| x.numel()));
        let mut grid = Vec::with_capacity(tensors.len());
        for (dim, x) in tensors.iter().enumerate() {
            let mut lying = vec![1; tensors.len()];
            lying[dim] = sizes[dim];
            let spread = x.unnamed().reshape(&lying[..]).expand(&sizes[..])?.named(names.clone());
            grid.push(match indexing {
                Indexing::Xy if tensors.len() > 1 => spread.transpose(0, 1)?,
                _ => spread,
            });
        }
        Ok(grid)
    }

    #[track_caller]
    pub(super) fn cartesian_prod(tensors: &[&Tensor], names: Vec<Option<Name>>) -> Result<Tensor> {
        const OP: &str = "cartesian_prod";
        let vectors = tensors.iter().all(|x| x.ndim() == 1);
        Error::ensure(vectors, ErrorKind::Shape, OP, || "every input must be a vector")?;
        let Some((first, more)) = tensors.split_first() else {
            return Err(Error::new(ErrorKind::Value, OP, "expected at least one vector"));
        };
        if more.is_empty() {
            return Ok(first.unnamed().named(Names::given(OP, &names, &[None])?));
        }
        let names = Names::given(OP, &names, &[None, None])?;
        let bare: Vec<Tensor> = crate::list(tensors.iter().map(|x| x.unnamed()));
        let columns = meshgrid(&crate::list::<_, Vec<_>>(bare.iter()), Indexing::Ij)?;
        let rows = Tensor::stack(&columns, -1).reshape([-1, tensors.len() as isize])?;
        Ok(rows.named(names))
    }

    #[track_caller]
    pub(super) fn combinations(
        x: &Tensor,
        r: usize,
        with_replacement: bool,
        names: Vec<Option<Name>>,
    ) -> Result<Tensor> {
        const OP: &str = "combinations";
        Error::ensure(x.ndim() == 1, ErrorKind::Shape, OP, || {
            format!("expected a vector, got {} dims", x.ndim())
        })?;
        let n = x.numel();
        if r == 0 {
            return x.detach().unnamed().narrow(0, 0, 0);
        }
        let names = Names::given(OP, &names, &[None, None])?;
        // (n choose r), or (n + r - 1 choose r)
        let of = if with_replacement { (n + r).saturating_sub(1) } else { n };
        let (mut count, mut k) = (if n == 0 || of < r { 0usize } else { 1 }, 0);
        while k < r && count > 0 {
            count = (count as u128 * (of - k) as u128 / (k + 1) as u128).min(usize::MAX as u128) as usize;
            k += 1;
        }
        NamedTensor::check_room(OP, count, r.saturating_mul(16))?;
        let apart = usize::from(!with_replacement);
        let mut row: Vec<usize> = crate::list((0..r).map(|k| k * apart));
        let mut places: Vec<i64> = Vec::with_capacity(count * r);
        for _ in 0..count {
            places.extend(row.iter().map(|at| *at as i64));
            // The last position that can move on, and those after it behind it.
            let Some(at) = (0..r).rev().find(|k| row[*k] + 1 + (r - 1 - k) * apart < n) else { break };
            let start = row[at] + 1;
            for (k, place) in row[at..].iter_mut().enumerate() {
                *place = start + k * apart;
            }
        }
        let picked = x.unnamed().index_select(&Tensor::from_slice(&places, [places.len()])?, 0)?;
        Ok(picked.reshape([count, r])?.named(names))
    }

    #[track_caller]
    pub(super) fn kron(x: &Tensor, other: &Tensor, names: Vec<Option<Name>>) -> Result<Tensor> {
        let ndim = x.ndim().max(other.ndim());
        let names = Names::given("kron", &names, &vec![None; ndim])?;
        let size =
            |x: &Tensor, dim: usize| (dim + x.ndim()).checked_sub(ndim).map_or(1, |own| x.sizes()[own]);
        let (mut left, mut right, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        for dim in 0..ndim {
            let (own, others) = (size(x, dim), size(other, dim));
            left.extend([own, 1]);
            right.extend([1, others]);
            sizes.push(own.saturating_mul(others));
        }
        let products = x.unnamed().reshape(left).mul(other.unnamed().reshape(right)?);
        products
            .map_err(|error| error.with_operands([x.shape(), other.shape()]))?
            .reshape(sizes)
            .map(|y| y.named(names))
    }
}
