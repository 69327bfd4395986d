//! Rows of a table by index.

use super::*;
use namegrad_autograd::plain::Input;
use namegrad_autograd::{Op, elsewhere, starting};

/// The reduction by which [`embedding_bag`] combines the rows of a bag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub enum BagMode {
    /// Their sum.
    Sum,
    /// Their mean.
    #[default]
    Mean,
    /// The largest of each column.
    Max,
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
    ) on integers names keeps, weight: own => {
        let table = BagCall::new(x, weight, padding_idx)?;
        let (index, _) = table.indices(x)?;
        let names = names_and(x, x.ndim(), weight.name(1))?;
        let renormed = renormed(weight.value(), index.value(), max_norm, norm_type)?;
        let rows = table.looked_up(&index, renormed, scale_grad_by_freq)?;
        let sizes = [x.sizes(), &weight.sizes()[1..]].concat();
        with_names(rows.reshape(sizes)?, &names)
    }
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
        on integers names of weight, weight: own constant => {
        let (index, _) = BagCall::new(x, weight, None)?.indices(x)?;
        Ok(Tensor::constant(renormed(weight.value(), index.value(), Some(max_norm), norm_type)?))
    }
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
    ) on integers names removes, weight: own, offsets: own, per_sample_weights: matched => {
        let table = BagCall::new(x, weight, padding_idx)?;
        let starts = starts(x, offsets, include_last_offset)?;
        if let Some(factors) = per_sample_weights {
            check_factors(x, factors, mode, weight.dtype())?;
        }
        (!scale_grad_by_freq || mode != BagMode::Max)
            .or_value("the gradient of a maximum cannot be scaled by the frequency of an index")?;
        let (all, indices) = table.indices(x)?;
        let (bags, columns) = (starts.len() - 1, weight.sizes()[1]);
        // The indices that are not padding, their positions and their bags.
        let (mut kept, mut places, mut bag_of) = (Vec::new(), Vec::new(), Vec::new());
        for bag in 0..bags {
            let start = starts[bag];
            for (place, index) in indices[start..starts[bag + 1]].iter().enumerate() {
                if Some(*index as usize) != table.padding {
                    kept.push(*index);
                    places.push((start + place) as i64);
                    bag_of.push(bag as i64);
                }
            }
        }
        let vector = |numbers: &[i64]| tensor_of(numbers, &[numbers.len()]);
        let renormed = renormed(weight.value(), all.value(), max_norm, norm_type)?;
        let (mut rows, bag_at) = (table.looked_up(&vector(&kept)?, renormed, scale_grad_by_freq)?, vector(&bag_of)?);
        if let Some(factors) = per_sample_weights {
            let factors = factors.rename(None).reshape([-1])?;
            rows = rows.mul(&factors.index_select(vector(&places)?, 0).unsqueeze(1)?)?;
        }
        let sums = || rows.detach().new_zeros([bags, columns]).index_add(&bag_at, &rows, 0);
        let y = match mode {
            BagMode::Sum => sums()?,
            BagMode::Mean => by_frequency(&sums()?, &bag_at)?,
            BagMode::Max => largest(&rows, &bag_of, [bags, columns])?,
        };
        // The bags are along the dim of the offsets, or along all dims of `x` but the last.
        let (of, count) = offsets.map_or((x, x.ndim() - 1), |offsets| (offsets, 1));
        let sizes = if offsets.is_some() { &[bags] } else { &x.sizes()[..count] };
        with_names(y.reshape([sizes, &[columns]].concat())?, &names_and(of, count, weight.name(1))?)
    }
}

/// A checked call.
struct BagCall<'a> {
    weight: &'a Tensor,
    padding: Option<usize>,
}

/// The row of the weight at `padding_idx`, which counts from the end if it is negative.
pub(crate) fn padding_row(padding_idx: Option<isize>, rows: usize) -> Result<Option<usize>> {
    let (Some(at), rows) = (padding_idx, rows as isize) else { return Ok(None) };
    (-rows..rows)
        .contains(&at)
        .or_value(format_args!("padding_idx {at} is not one of the {rows} rows of the weight"))?;
    Ok(Some(at.rem_euclid(rows) as usize))
}

impl BagCall<'_> {
    fn new<'a>(x: &Tensor, weight: &'a Tensor, padding_idx: Option<isize>) -> Result<BagCall<'a>> {
        check_integers(("indices", "x"), x)?;
        ensure_dims(weight.ndim() == 2, "a weight [vocab, embed]", weight)?;
        ensure_floats(("weight", weight), "expected a weight of floats, got")?;
        Ok(BagCall { weight, padding: padding_row(padding_idx, weight.sizes()[0])? })
    }

    /// The indices as a vector and as numbers, checked.
    fn indices(&self, x: &Tensor) -> Result<(Tensor, Vec<i64>)> {
        let flat = x.rename(None).to(DType::I64)?.reshape([-1])?;
        let numbers = numbers_of::<i64>(&flat)?;
        let rows = self.weight.sizes()[0];
        let Some(at) = numbers.iter().position(|index| !(0..rows as i64).contains(index)) else {
            return Ok((flat, numbers));
        };
        let (index, place) = (numbers[at], place(&x.shape(), at));
        let message =
            format_args!("index {index} at position{place} is out of range for {rows} rows of the weight");
        Err(fault(ErrorKind::Index, message))
    }
    /// The rows of `values` at `index`, with the gradient of the rows of `weight`.
    fn looked_up(&self, index: &Tensor, values: NamedTensor, by_freq: bool) -> Result<Tensor> {
        starting();
        let values = Tensor::constant(values.rename(None)?);
        let rows = || values.value().index_select(index.value(), 0).map(|rows| vec![rows]);
        let run =
            |inputs: &[Input<'_>]| Ok(vec![inputs[0].tensors()[0].index_select(inputs[1].tensors()[0], 0)?]);
        let rows = elsewhere::values("embedding", &[Input::One(&values), Input::One(index)], &rows, &run)?;
        let (index, padding, count) = (index.clone(), self.padding, self.weight.sizes()[0]);
        let gradient = move |g: &Tensor| of_weight(g, &index, count, padding, by_freq);
        let rows = rows.into_iter().next().expect("an op with one output");
        Ok(Op::new("embedding", rows).input(self.weight, move |g, _| gradient(g)).output())
    }
}

/// The weight with the rows at `index` scaled down to a norm of `max_norm`, without names.
pub(crate) fn renormed(
    weight: &NamedTensor,
    index: &NamedTensor,
    max_norm: Option<f64>,
    norm_type: f64,
) -> Result<NamedTensor> {
    let Some(max_norm) = max_norm.filter(|_| index.numel() > 0) else { return Ok(weight.clone()) };
    let (plain, index) = (weight.rename(None)?, distinct(index)?);
    let rows = plain.index_select(&index, 0)?;
    let norm = rows.vector_norm_with(keep(1), VectorNormOptions::new().ord(norm_type))?;
    // 1e-7 as in PyTorch.
    let scale = norm.add(1e-7)?.reciprocal()?.mul(max_norm)?;
    let scale = norm.gt(max_norm)?.choose(&scale, 1.0)?;
    plain
        .index_copy(&index, &rows.mul(&scale)?, 0)?
        .rename(Some(weight.names().clone()).filter(Names::is_named))
}

/// The values of an index, each once; on the meta device, as many as there can be.
fn distinct(index: &NamedTensor) -> Result<NamedTensor> {
    match index.device() {
        Device::Meta => Ok(index.clone()),
        _ => Ok(index.unique()?.values),
    }
}

/// The sums of the rows of `g` by index, which are 0 for padding.
fn of_weight(
    g: &Tensor,
    index: &Tensor,
    rows: usize,
    padding: Option<usize>,
    by_freq: bool,
) -> Result<Tensor> {
    let wide = g.rename(None).to(g.dtype().compute())?;
    let mut sums = wide.detach().new_zeros([rows, g.sizes()[1]]).index_add(index, &wide, 0)?;
    if by_freq {
        sums = by_frequency(&sums, index)?;
    }
    if let Some(padding) = padding {
        sums = sums.index_fill(&tensor_of(&[padding as i64], &[1])?, 0.0, 0)?;
    }
    sums.to(g.dtype())
}

/// The rows of `sums` divided by the number of times that each occurs in `of`.
fn by_frequency(sums: &Tensor, of: &Tensor) -> Result<Tensor> {
    let counts = of.new_zeros([sums.sizes()[0]]).index_add(of, of.ones_like()?, 0).clamp_min(1)?;
    sums.div(counts.unsqueeze(1).to(sums.dtype())?)
}

/// Checks that a tensor, described as `what` and called `name`, has integers.
pub(crate) fn check_integers((what, name): (&str, &str), x: &Tensor) -> Result<()> {
    let dtype = x.dtype();
    let fits = !dtype.is_floating_point() && dtype != DType::Bool;
    ensure_dtype(fits, format_args!("expected {what} of an integer dtype, got {dtype}"), (name, DType::I64))
}

/// Checks the factors of the indices.
fn check_factors(x: &Tensor, factors: &Tensor, mode: BagMode, dtype: DType) -> Result<()> {
    if mode != BagMode::Sum {
        return Err(fault(ErrorKind::Unsupported, "per_sample_weights are factors in a sum")
            .with_repair("EmbeddingBagOptions::new().mode(F::BagMode::Sum)"));
    }
    ensure_sizes("per_sample_weights", factors, x.sizes())?;
    let own = factors.dtype();
    let message = format_args!("per_sample_weights are {own}, and the weight is {dtype}");
    ensure_dtype(own == dtype, message, ("per_sample_weights", dtype))?;
    check_meeting_all(("per_sample_weights", factors), ("x", x), x.ndim())
}

/// The position of the first index of each bag, and the number of indices.
fn starts(x: &Tensor, offsets: Option<&Tensor>, include_last_offset: bool) -> Result<Vec<usize>> {
    let Some(offsets) = offsets else {
        let Some((items, bags)) = x.sizes().split_last().filter(|(_, bags)| !bags.is_empty()) else {
            let message = "without offsets, the input needs at least 2 dims, the last of which is a bag";
            return Err(value_error(message).with_repair("x.unsqueeze(0)?"));
        };
        return Ok(crate::list((0..=numel(bags)).map(|bag| bag * items)));
    };
    let (count, ndims) = (x.numel() as i64, [x.ndim(), offsets.ndim()]);
    (ndims[0] == 1)
        .or_value(format_args!("with offsets, the input must be a vector, got {} dims", ndims[0]))?;
    check_integers(("offsets", "offsets"), offsets)?;
    (ndims[1] == 1).or_value(format_args!("offsets must be a vector, got {} dims", ndims[1]))?;
    let mut given = numbers_of::<i64>(&offsets.to(DType::I64)?)?;
    if let (Device::Meta, true, Some(last)) = (offsets.device(), include_last_offset, given.last_mut()) {
        *last = count;
    }
    let mut starts = given.clone();
    starts.extend((!include_last_offset).then_some(count));
    let Some(last) = starts.last() else {
        return Err(value_error("include_last_offset needs at least one offset, the end of the last bag"));
    };
    (*last == count).or_value(format_args!(
        "with include_last_offset, the last offset must be the number of indices, {count}, got {last}"
    ))?;
    (starts.is_sorted() && (starts[0] == 0 || starts.len() == 1)).or_value(format_args!(
        "offsets must start at 0, not decrease and not be beyond the {count} indices, got {given:?}"
    ))?;
    Ok(whole(&starts))
}

/// The elements of a tensor, and zeros in their place on the meta device, where no sizes depend on them.
fn numbers_of<T: Element + Default>(x: &Tensor) -> Result<Vec<T>> {
    match x.device() {
        Device::Meta => Ok(vec![T::default(); x.numbers()?.numel()]),
        _ => x.to_vec(),
    }
}

/// The largest element of each column in each bag of rows. The first of equal ones gets the gradient.
fn largest(rows: &Tensor, bag_of: &[i64], [bags, columns]: [usize; 2]) -> Result<Tensor> {
    let numbers = numbers_of::<f64>(&rows.detach().to(DType::F64)?)?;
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
    let found = tensor_of(&found, &[bags, columns])?;
    let empty = found.lt(0)?;
    rows.gather(&found.clamp_min(0)?, 0).masked_fill(&empty, 0.0)
}
