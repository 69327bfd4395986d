//! Stacks tensors along a new dim, and pads the dims that differ: [`Ragged`], [`Padded`].

use crate::collate::{Collate, Collation};
use namegrad_autograd::{Tensor, TensorOptions};
use namegrad_core::options::StackOptions;
use namegrad_core::{DType, Error, ErrorKind, Name, Result, Scalar};

const OP: &str = "collate";

/// The tensors along a new first dim. Where sizes differ, `pad` gives the value for a dim, if it may be
/// padded.
pub(crate) fn stack(
    mut samples: Vec<Tensor>,
    how: &Collation<'_>,
    pad: &dyn Fn(Name) -> Option<Scalar>,
) -> Result<Tensor> {
    let Some(first) = samples.first().cloned() else {
        return Err(Error::new(ErrorKind::Value, OP, "a batch has at least one sample"));
    };
    let batch_dim = how.batch_dim();
    if first.names().position(batch_dim).is_some() {
        let message = format!("{}, {}, has a dim '{batch_dim}' already", how.sample(0), first.shape());
        return Err(Error::new(ErrorKind::DuplicateName, OP, message)
            .with_repair("Loader::builder(data).batch_dim(\"batch\")"));
    }
    for (position, sample) in samples.iter().enumerate().skip(1) {
        check_alike(&first, sample, position, how)?;
    }
    for dim in 0..first.ndim() {
        let Some(position) = samples.iter().position(|sample| sample.sizes()[dim] != first.sizes()[dim])
        else {
            continue;
        };
        let Some(value) = first.name(dim).and_then(pad) else {
            return Err(sizes_differ(&first, &samples[position], dim, position, how));
        };
        check_value(&first, dim, value)?;
        let longest = samples.iter().map(|sample| sample.sizes()[dim]).max().unwrap_or(0);
        for sample in &mut samples {
            *sample = padded(sample, dim, longest, value)?;
        }
    }
    Tensor::stack_with(&samples, 0, StackOptions::new().name(batch_dim))
}

/// Checks that a sample has the dims and the dtype of the first one.
fn check_alike(first: &Tensor, sample: &Tensor, position: usize, how: &Collation<'_>) -> Result<()> {
    if sample.ndim() == first.ndim() && sample.names() == first.names() && sample.dtype() == first.dtype() {
        return Ok(());
    }
    Err(not_alike(first, sample, position, how))
}

#[cold]
fn not_alike(first: &Tensor, sample: &Tensor, position: usize, how: &Collation<'_>) -> Error {
    let both = |one: String, other: String| {
        format!("{} is {one}, but {} is {other}", how.sample(0), how.sample(position))
    };
    if sample.dtype() != first.dtype() {
        let message = both(format!("{}", first.dtype()), format!("{}", sample.dtype()));
        return Error::new(ErrorKind::DType, OP, message)
            .with_repair(format!("x.to(DType::{:?})?", first.dtype()));
    }
    let message = both(format!("{}", first.shape()), format!("{}", sample.shape()));
    if sample.ndim() != first.ndim() {
        return Error::new(ErrorKind::Shape, OP, message);
    }
    let error = Error::new(ErrorKind::NameMismatch, OP, format!("{message}: the dims of samples are alike"));
    let own = || first.names().iter(first.ndim()).flatten();
    let names: Vec<String> = crate::list(own().map(|name| format!("\"{name}\"")));
    let permuted = names.len() == first.ndim() && own().all(|name| sample.names().position(name).is_some());
    let method = if permuted { "align_to" } else { "rename" };
    error.with_repair(format!("x.{method}([{}])?", crate::joined(&names, ", ")))
}

#[cold]
fn sizes_differ(first: &Tensor, sample: &Tensor, dim: usize, position: usize, how: &Collation<'_>) -> Error {
    let (one, other) = (first.shape(), sample.shape());
    let message = format!("{} is {one}, but {} is {other}", how.sample(0), how.sample(position));
    let repair = match first.name(dim) {
        Some(name) => format!("Loader::builder(data).pad(\"{name}\", 0)"),
        None => String::new(), // padding is by name
    };
    Error::new(ErrorKind::Shape, OP, message).with_repair(repair)
}

/// Checks that the dtype of the samples has a value: 0.5 would become 0 in integers. A float is rounded,
/// though.
fn check_value(x: &Tensor, dim: usize, value: Scalar) -> Result<()> {
    let dtype = x.dtype();
    let padded =
        TensorOptions::new().dtype(dtype).full((), value).and_then(|x| x.to(DType::F64)?.item::<f64>());
    let has = padded.is_ok_and(|padded| match value {
        Scalar::Float(value) if dtype.is_floating_point() => padded.is_finite() || !value.is_finite(),
        Scalar::Int(_) if dtype == DType::I64 => true, // `f64` does not tell all of them apart
        value => padded == value.to_f64(),
    });
    if has {
        return Ok(());
    }
    let name = x.name(dim).map(|name| format!(" '{name}'")).unwrap_or_default();
    let message = format!("the dim{name} cannot be padded with {value}, because the samples are {dtype}");
    Err(Error::new(ErrorKind::Value, OP, message))
}

/// `x` with `value` after its elements along a dim, up to `size`.
fn padded(x: &Tensor, dim: usize, size: usize, value: Scalar) -> Result<Tensor> {
    let mut rest = x.shape();
    rest.sizes[dim] = size - rest.sizes[dim];
    if rest.sizes[dim] == 0 {
        return Ok(x.clone());
    }
    let rest = TensorOptions::new().dtype(x.dtype()).full(&rest, value)?;
    Tensor::cat([x, &rest], dim)
}

/// A sample whose size along a dim differs from sample to sample. Its batch is [`Padded`], with the lengths.
/// All samples of a batch have the same ragged dim and are padded with the same value.
///
/// To pad without lengths, use [`LoaderBuilder::pad`](crate::LoaderBuilder::pad).
///
/// # Examples
/// ```
/// use namegrad::data::{Loader, Ragged, Samples};
/// use namegrad::prelude::*;
/// let words = [vec![1i64, 2, 3], vec![4]].map(|ids| Tensor::from_slice(&ids, [("seq", ids.len())]));
/// let words = words.into_iter().map(|ids| Ok(Ragged::new(ids?, "seq")?.value(-1)));
/// let loader = Loader::new(Samples::new(words.collect::<Result<Vec<_>>>()?), 2)?;
/// for batch in loader.iter() {
///     let batch = batch?;
///     assert_eq!(batch.tensor.shape().to_string(), "[N=2, seq=3]");
///     assert_eq!(batch.tensor.to_vec::<i64>()?, [1, 2, 3, 4, -1, -1]);
///     assert_eq!(batch.lengths.to_vec::<i64>()?, [3, 1]);
/// }
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ragged {
    tensor: Tensor,
    dim: Name,
    value: Scalar,
}

impl Ragged {
    /// A sample with a ragged dim, which is padded with zeros.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if the tensor has no such dim, [`ErrorKind::InvalidName`].
    #[track_caller]
    pub fn new(tensor: Tensor, dim: &str) -> Result<Ragged> {
        tensor.size(dim)?;
        Ok(Ragged { tensor, dim: Name::new(dim)?, value: Scalar::Int(0) })
    }

    /// Sets the value with which the dim is padded.
    pub fn value(mut self, value: impl Into<Scalar>) -> Ragged {
        self.value = value.into();
        self
    }

    /// Whether two samples are padded alike. NaN equals NaN here.
    fn padded_as(&self, other: &Ragged) -> bool {
        let exact = |value: Scalar| (value.to_f64().to_bits(), value.to_i64());
        self.dim == other.dim && exact(self.value) == exact(other.value)
    }
}

/// The batch of [`Ragged`] samples.
#[derive(Clone, Debug)]
pub struct Padded {
    /// The samples along the batch dim, each padded to the longest one.
    pub tensor: Tensor,
    /// The length of each sample along the ragged dim, `[N]` in `i64`.
    pub lengths: Tensor,
}

impl Collate for Ragged {
    type Batch = Padded;

    fn collate(samples: Vec<Ragged>, how: &Collation<'_>) -> Result<Padded> {
        let own = samples.first().map(|first| (first.dim, first.value));
        if let Some(other) = samples.iter().position(|sample| !sample.padded_as(&samples[0])) {
            let padded = |position: usize| {
                let Ragged { dim, value, .. } = &samples[position];
                format!("{} pads '{dim}' with {value}", how.sample(position))
            };
            let message = format!("{}, but {}", padded(0), padded(other));
            return Err(Error::new(ErrorKind::Value, OP, message));
        }
        let (mut lengths, mut tensors) = (Vec::new(), Vec::new());
        for Ragged { tensor, dim, .. } in samples {
            lengths.push(tensor.size(dim)?);
            tensors.push(tensor);
        }
        let pad = |dim| own.filter(|own| own.0 == dim).map(|own| own.1).or_else(|| how.pad(dim));
        Ok(Padded { tensor: stack(tensors, how, &pad)?, lengths: usize::collate(lengths, how)? })
    }
}
