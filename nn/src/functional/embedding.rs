//! Rows of a table by index.

use namegrad_autograd::{Op, Tensor, starting};
use namegrad_core::args::Immediate;
use namegrad_core::options::VectorNormOptions;
use namegrad_core::{DType, Error, ErrorKind, Name, NamedTensor, Names, Result, keep};
use namegrad_macros::functional;
use std::panic::Location;

/// The reduction by which [`embedding_bag`] combines the rows of a bag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BagMode {
    /// Their sum.
    Sum,
    /// Their mean.
    #[default]
    Mean,
    /// The largest of each column.
    Max,
}
impl Immediate for BagMode {
    const WORDS: &'static [(&'static str, Self)] =
        &[("sum", Self::Sum), ("mean", Self::Mean), ("max", Self::Max)];
}

functional! { embedding;
    /// For each index in `x`, the row of the weight at that index.
    ///
    /// The row at `padding_idx`, which counts from the end if it is negative, gets no gradient. With
    /// `max_norm`, rows whose `norm_type`-norm is larger are scaled down to it before they are used;
    /// [`embedding_renorm`] returns the weight with them. With `scale_grad_by_freq`, the gradient of a row is
    /// divided by the number of its indices.
    ///
    /// # Shapes
    /// - `x`: integers, any dims
    /// - `weight`: `[vocab, embed]`
    /// - result: the dims of `x`, followed by `embed`
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let weight = Tensor::new([[0.0, 0.1], [1.0, 1.1], [2.0, 2.1]])?.refine_names(["vocab", "embed"])?;
    /// let words = Tensor::new([2, 0])?.refine_names(["time"])?;
    /// let y = F::embedding(&words, &weight)?;
    /// assert_eq!(y.shape().to_string(), "[time=2, embed=2]");
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 2.1, 0.0, 0.1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for an index that is out of range, [`ErrorKind::DType`] unless `x` is of
    /// integers, [`ErrorKind::Shape`] unless the weight is a matrix, [`ErrorKind::Value`] for a `padding_idx`
    /// that is out of range, [`ErrorKind::DuplicateName`] if `x` already has the last dim of the weight.
    embedding (
        x, weight;
        padding_idx: Option<isize> = None,
        max_norm: Option<f64> = None,
        norm_type: f64 = 2.0,
        scale_grad_by_freq: bool = false
    ) on integers names "the dims of the index, followed by the last dim of the weight";
    /// The weight of [`embedding`], in which the rows with an index in `x` have a `norm_type`-norm of at most
    /// `max_norm`: larger ones are scaled down to it. It has no gradient.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let weight = Tensor::new([[3.0, 4.0], [30.0, 40.0], [0.3, 0.4]])?;
    /// let renormed = F::embedding_renorm(&Tensor::new([0, 2])?, &weight, 1.0)?;
    /// assert!(renormed.allclose(&Tensor::new([[0.6, 0.8], [30.0, 40.0], [0.3, 0.4]])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`embedding`].
    embedding_renorm (x, weight; max_norm: f64 or 1.0, norm_type: f64 = 2.0)
        on integers names "keeps the names of the weight" constant;
    /// The sums, means or maxima of bags of rows of the weight.
    ///
    /// Without `offsets`, the indices along the last dim of `x` are a bag. With `offsets`, `x` is a vector of
    /// all bags, and `offsets` are the positions at which they start; with `include_last_offset`, the last
    /// offset is the end of the last bag. An empty bag gives zeros. `per_sample_weights` are factors for the
    /// rows of a sum. Indices equal to `padding_idx` are left out; the other options are those of
    /// [`embedding`].
    ///
    /// # Shapes
    /// - `x`: integers, `[.., items]`, or `[items]` with offsets
    /// - `weight`: `[vocab, embed]`
    /// - `offsets`: integers, `[bags]`
    /// - `per_sample_weights`: the dims of `x`
    /// - result: `[.., embed]`, or `[bags, embed]`
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let weight = Tensor::new([[1.0], [10.0], [100.0]])?;
    /// let sum = EmbeddingBagOptions::new().mode(F::BagMode::Sum);
    /// let y = F::embedding_bag_with(&Tensor::new([[0, 1], [2, 2]])?, &weight, sum)?;
    /// assert_eq!(y.to_vec::<f32>()?, [11.0, 200.0]);
    /// let starts = Tensor::new([0, 3])?;
    /// let options = EmbeddingBagOptions::new().offsets(&starts);
    /// let y = F::embedding_bag_with(&Tensor::new([0, 1, 2, 1])?, &weight, options)?;
    /// assert_eq!(y.to_vec::<f32>()?, [37.0, 10.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`embedding`], and [`ErrorKind::Value`] for offsets that do not start at 0, decrease or are
    /// beyond the end of `x`, or for `per_sample_weights` in another mode than a sum.
    embedding_bag (
        x, weight, offsets?, per_sample_weights?;
        mode: BagMode = BagMode::Mean,
        padding_idx: Option<isize> = None,
        max_norm: Option<f64> = None,
        norm_type: f64 = 2.0,
        scale_grad_by_freq: bool = false,
        include_last_offset: bool = false
    ) on integers names "the dims of the bags, followed by the last dim of the weight";
}

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn embedding(
        x: &Tensor,
        weight: &Tensor,
        padding_idx: Option<isize>,
        max_norm: Option<f64>,
        norm_type: f64,
        scale_grad_by_freq: bool,
    ) -> Result<Tensor> {
        const OP: &str = "embedding";
        let table = Table::new(OP, x, weight, padding_idx)?;
        let (index, _) = table.indices(x)?;
        let names = table.names(x, x.ndim())?;
        let renormed = renormed(weight.value(), &index, max_norm, norm_type)?;
        let rows = looked_up(&index, weight, &renormed, table.padding, scale_grad_by_freq)?;
        let sizes = [x.sizes(), &weight.sizes()[1..]].concat();
        rows.reshape(sizes)?.rename(names)
    }

    #[track_caller]
    pub(super) fn embedding_renorm(
        x: &Tensor,
        weight: &Tensor,
        max_norm: f64,
        norm_type: f64,
    ) -> Result<Tensor> {
        let (index, _) = Table::new("embedding_renorm", x, weight, None)?.indices(x)?;
        Ok(Tensor::constant(renormed(weight.value(), &index, Some(max_norm), norm_type)?))
    }

    #[track_caller]
    #[allow(clippy::too_many_arguments)] // the arguments of the row
    pub(super) fn embedding_bag(
        x: &Tensor,
        weight: &Tensor,
        offsets: Option<&Tensor>,
        per_sample_weights: Option<&Tensor>,
        mode: BagMode,
        padding_idx: Option<isize>,
        max_norm: Option<f64>,
        norm_type: f64,
        scale_grad_by_freq: bool,
        include_last_offset: bool,
    ) -> Result<Tensor> {
        let table = Table::new(OP_BAG, x, weight, padding_idx)?;
        check_bags(x, offsets, per_sample_weights, mode, weight)?;
        Error::ensure(
            !scale_grad_by_freq || mode != BagMode::Max,
            ErrorKind::Value,
            OP_BAG,
            || "the gradient of a maximum cannot be scaled by the frequency of an index",
        )?;
        let (_, indices) = table.indices(x)?;
        let starts = match offsets {
            Some(offsets) => starts(x, offsets, include_last_offset)?,
            None => {
                let items = x.sizes()[x.ndim() - 1];
                let bags: usize = x.sizes()[..x.ndim() - 1].iter().product();
                (0..=bags).map(|bag| bag * items).collect()
            }
        };
        let bags = starts.len() - 1;
        // The indices that are not padding, their positions and their bags.
        let (mut kept, mut places, mut bag_of) = (Vec::new(), Vec::new(), Vec::new());
        for (bag, ends) in starts.windows(2).enumerate() {
            for (place, index) in indices.iter().enumerate().take(ends[1]).skip(ends[0]) {
                if Some(*index as usize) != table.padding {
                    kept.push(*index);
                    places.push(place as i64);
                    bag_of.push(bag as i64);
                }
            }
        }
        let vector = |numbers: &[i64]| NamedTensor::from_slice(numbers, [numbers.len()]);
        let all = vector(&indices)?;
        let renormed = renormed(weight.value(), &all, max_norm, norm_type)?;
        let mut rows = looked_up(&vector(&kept)?, weight, &renormed, table.padding, scale_grad_by_freq)?;
        if let Some(factors) = per_sample_weights {
            let factors = factors.rename(None)?.reshape([-1])?;
            rows = rows.mul(&factors.index_select(Tensor::constant(vector(&places)?), 0)?.unsqueeze(1)?)?;
        }
        let columns = weight.sizes()[1];
        let y = match mode {
            BagMode::Max => largest(&rows, &bag_of, [bags, columns])?,
            BagMode::Sum | BagMode::Mean => {
                let zeros = rows.detach().new_zeros([bags, columns])?;
                let sums = zeros.index_add(Tensor::constant(vector(&bag_of)?), &rows, 0)?;
                if mode == BagMode::Sum {
                    sums
                } else {
                    let mut counts = vec![0.0; bags];
                    bag_of.iter().for_each(|bag| counts[*bag as usize] += 1.0);
                    let counts: Vec<f64> = counts.into_iter().map(|count: f64| count.max(1.0)).collect();
                    sums.div(&Tensor::from_slice(&counts, [bags, 1])?.to(weight.dtype())?)?
                }
            }
        };
        match offsets {
            Some(offsets) => {
                let names = [offsets.name(0), weight.name(1)];
                let names = Names::new(OP_BAG, names)?;
                y.rename(names.is_named().then_some(names))
            }
            None => {
                let leading = x.ndim() - 1;
                let names = table.names(x, leading)?;
                y.reshape([&x.sizes()[..leading], &[columns]].concat())?.rename(names)
            }
        }
    }
}

const OP_BAG: &str = "embedding_bag";

/// A checked call.
struct Table<'a> {
    op: &'static str,
    weight: &'a Tensor,
    padding: Option<usize>,
}

impl Table<'_> {
    #[track_caller]
    fn new<'a>(
        op: &'static str,
        x: &Tensor,
        weight: &'a Tensor,
        padding_idx: Option<isize>,
    ) -> Result<Table<'a>> {
        let caller = Location::caller();
        let fail = |kind, message| {
            Error::new(kind, op, message).with_operands([x.shape(), weight.shape()]).at(caller)
        };
        if x.dtype().is_floating_point() || x.dtype() == DType::Bool {
            let message = format!("expected indices of an integer dtype, got {}", x.dtype());
            return Err(fail(ErrorKind::DType, message).with_repair("x.to(DType::I64)?"));
        }
        if weight.ndim() != 2 {
            let message = format!("expected a weight [vocab, embed], got {} dims", weight.ndim());
            return Err(fail(ErrorKind::Shape, message));
        }
        if !weight.dtype().is_floating_point() {
            let message = format!("expected a weight of floats, got {}", weight.dtype());
            return Err(fail(ErrorKind::DType, message).with_repair("weight.to(DType::F32)?"));
        }
        let rows = weight.sizes()[0] as isize;
        let padding = match padding_idx {
            None => None,
            Some(at) if (-rows..rows).contains(&at) => Some(at.rem_euclid(rows) as usize),
            Some(at) => {
                let message = format!("padding_idx {at} is not one of the {rows} rows of the weight");
                return Err(fail(ErrorKind::Value, message));
            }
        };
        Ok(Table { op, weight, padding })
    }

    /// The indices as a vector and as numbers, checked.
    #[track_caller]
    fn indices(&self, x: &Tensor) -> Result<(NamedTensor, Vec<i64>)> {
        let flat = x.value().rename(None)?.to(DType::I64)?.reshape([-1])?;
        let numbers = flat.to_vec::<i64>()?;
        let rows = self.weight.sizes()[0];
        match numbers.iter().position(|index| usize::try_from(*index).map_or(true, |index| index >= rows)) {
            None => Ok((flat, numbers)),
            Some(at) => {
                let place = place(at, x.sizes());
                let message = format!(
                    "index {} at position {place:?} is out of range for {rows} rows of the weight",
                    numbers[at]
                );
                let operands = [x.shape(), self.weight.shape()];
                Err(Error::new(ErrorKind::Index, self.op, message).with_operands(operands))
            }
        }
    }

    /// The names of the first `leading` dims of `x`, and the name of the columns.
    #[track_caller]
    fn names(&self, x: &Tensor, leading: usize) -> Result<Option<Names>> {
        let names: Vec<Option<Name>> =
            (0..leading).map(|dim| x.name(dim)).chain([self.weight.name(1)]).collect();
        let names = Names::new(self.op, names)
            .map_err(|error| error.with_operands([x.shape(), self.weight.shape()]))?;
        Ok(names.is_named().then_some(names))
    }
}

/// The index of element number `at` of a tensor.
fn place(mut at: usize, sizes: &[usize]) -> Vec<usize> {
    let mut place = vec![0; sizes.len()];
    for (index, size) in place.iter_mut().zip(sizes).rev() {
        *index = at % size;
        at /= size;
    }
    place
}

/// The weight with the rows at `index` scaled down to a norm of `max_norm`, without names.
#[track_caller]
pub(crate) fn renormed(
    weight: &NamedTensor,
    index: &NamedTensor,
    max_norm: Option<f64>,
    norm_type: f64,
) -> Result<NamedTensor> {
    let Some(max_norm) = max_norm.filter(|_| index.numel() > 0) else { return Ok(weight.clone()) };
    let mut rows: Vec<i64> = index.to_vec()?;
    rows.sort_unstable();
    rows.dedup();
    let index = NamedTensor::from_slice(&rows, [rows.len()])?;
    let plain = weight.rename(None)?;
    let rows = plain.index_select(&index, 0)?;
    let norm = rows.vector_norm_with(keep(1), VectorNormOptions::new().ord(norm_type))?;
    // 1e-7 as in PyTorch.
    let scale = norm.add(1e-7)?.reciprocal()?.mul(max_norm)?;
    let scale = norm.gt(max_norm)?.choose(&scale, 1.0)?;
    plain
        .index_copy(&index, &rows.mul(&scale)?, 0)?
        .rename(Some(weight.names().clone()).filter(Names::is_named))
}

/// The rows of `values` at `index`, with the gradient of the rows of `weight`.
#[track_caller]
fn looked_up(
    index: &NamedTensor,
    weight: &Tensor,
    values: &NamedTensor,
    padding: Option<usize>,
    scale_grad_by_freq: bool,
) -> Result<Tensor> {
    starting();
    let rows = values.rename(None)?.index_select(index, 0)?;
    let (index, sizes) = (Tensor::constant(index.clone()), [weight.sizes()[0], weight.sizes()[1]]);
    let gradient = move |g: &Tensor| of_weight(g, &index, sizes, padding, scale_grad_by_freq);
    Ok(Op::new("embedding", rows).input(weight, move |g, _| gradient(g)).output())
}

/// The sums of the rows of `g` by index, which are 0 for padding.
fn of_weight(
    g: &Tensor,
    index: &Tensor,
    sizes: [usize; 2],
    padding: Option<usize>,
    scale_grad_by_freq: bool,
) -> Result<Tensor> {
    let wide = g.rename(None)?.to(g.dtype().compute())?;
    let mut sums = wide.detach().new_zeros(sizes)?.index_add(index, &wide, 0)?;
    if scale_grad_by_freq {
        let mut counts = vec![0.0; sizes[0]];
        index.to_vec::<i64>()?.iter().for_each(|index| counts[*index as usize] += 1.0);
        let counts: Vec<f64> = counts.into_iter().map(|count: f64| count.max(1.0)).collect();
        sums = sums.div(&Tensor::from_slice(&counts, [sizes[0], 1])?.to(wide.dtype())?)?;
    }
    if let Some(padding) = padding {
        sums = sums.index_fill(&Tensor::from_slice(&[padding as i64], [1])?, 0.0, 0)?;
    }
    sums.to(g.dtype())
}

/// Checks the tensors of [`embedding_bag`].
#[track_caller]
fn check_bags(
    x: &Tensor,
    offsets: Option<&Tensor>,
    per_sample_weights: Option<&Tensor>,
    mode: BagMode,
    weight: &Tensor,
) -> Result<()> {
    let caller = Location::caller();
    let fail =
        |kind, message: String| Error::new(kind, OP_BAG, message).with_operands([x.shape()]).at(caller);
    match offsets {
        Some(_) if x.ndim() != 1 => {
            let message = format!("with offsets, the input must be a vector, got {} dims", x.ndim());
            return Err(fail(ErrorKind::Value, message));
        }
        None if x.ndim() < 2 => {
            let message = "without offsets, the input needs at least 2 dims, the last of which is a bag";
            return Err(fail(ErrorKind::Value, message.into())
                .with_repair("EmbeddingBagOptions::new().offsets(&Tensor::new([0])?)"));
        }
        _ => {}
    }
    let Some(factors) = per_sample_weights else { return Ok(()) };
    if mode != BagMode::Sum {
        let message = "per_sample_weights are factors in a sum";
        return Err(fail(ErrorKind::Unsupported, message.into())
            .with_repair("EmbeddingBagOptions::new().mode(F::BagMode::Sum)"));
    }
    if factors.sizes() != x.sizes() {
        let message =
            format!("expected per_sample_weights of sizes {:?}, got {:?}", x.sizes(), factors.sizes());
        return Err(fail(ErrorKind::Shape, message));
    }
    if factors.dtype() != weight.dtype() {
        let message =
            format!("per_sample_weights are {}, and the weight is {}", factors.dtype(), weight.dtype());
        let repair = format!("per_sample_weights.to(DType::{:?})?", weight.dtype());
        return Err(fail(ErrorKind::DType, message).with_repair(repair));
    }
    Ok(())
}

/// The positions at which bags start, and the end of the last.
#[track_caller]
fn starts(x: &Tensor, offsets: &Tensor, include_last_offset: bool) -> Result<Vec<usize>> {
    let caller = Location::caller();
    let fail = |kind, message: String| {
        Error::new(kind, OP_BAG, message).with_operands([x.shape(), offsets.shape()]).at(caller)
    };
    if offsets.dtype().is_floating_point() || offsets.dtype() == DType::Bool {
        let message = format!("expected offsets of an integer dtype, got {}", offsets.dtype());
        return Err(fail(ErrorKind::DType, message).with_repair("offsets.to(DType::I64)?"));
    }
    if offsets.ndim() != 1 {
        let message = format!("offsets must be a vector, got {} dims", offsets.ndim());
        return Err(fail(ErrorKind::Value, message));
    }
    let mut starts = offsets.to(DType::I64)?.to_vec::<i64>()?;
    if include_last_offset && starts.is_empty() {
        let message = "include_last_offset needs at least one offset, the end of the last bag";
        return Err(fail(ErrorKind::Value, message.into()));
    }
    if !include_last_offset {
        starts.push(x.numel() as i64);
    }
    if include_last_offset && starts.last() != Some(&(x.numel() as i64)) {
        let message = format!(
            "with include_last_offset, the last offset must be the number of indices, {}, got {:?}",
            x.numel(),
            starts.last()
        );
        return Err(fail(ErrorKind::Value, message));
    }
    let decreasing = starts.windows(2).any(|ends| ends[1] < ends[0]);
    if starts[0] != 0 && starts.len() > 1 || decreasing || starts.iter().any(|at| *at > x.numel() as i64) {
        let message = format!(
            "offsets must start at 0, not decrease and not be beyond the {} indices, got {:?}",
            x.numel(),
            offsets.to_vec::<i64>()?
        );
        return Err(fail(ErrorKind::Value, message));
    }
    Ok(starts.into_iter().map(|at| at as usize).collect())
}

/// The largest element of each column in each bag of rows. The first of equal ones gets the gradient.
#[track_caller]
fn largest(rows: &Tensor, bag_of: &[i64], [bags, columns]: [usize; 2]) -> Result<Tensor> {
    let numbers = rows.detach().to(DType::F64)?.to_vec::<f64>()?;
    if numbers.is_empty() {
        return rows.detach().new_zeros([bags, columns]);
    }
    let mut found = vec![-1_i64; bags * columns];
    for (row, bag) in bag_of.iter().enumerate() {
        for column in 0..columns {
            let best = &mut found[*bag as usize * columns + column];
            let (new, old) = (numbers[row * columns + column], *best);
            // The comparison is false for NaN, which is kept.
            if old < 0 || new.is_nan() || new > numbers[old as usize * columns + column] {
                *best = row as i64;
            }
        }
    }
    let found = Tensor::from_slice(&found, [bags, columns])?;
    let empty = found.lt(0)?;
    rows.gather(&found.clamp_min(0)?, 0)?.masked_fill(&empty, 0.0)
}
