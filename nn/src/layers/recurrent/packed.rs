//! Sequences of different lengths: [`PackedSequence`], and functions that pad and pack.

use super::*;
use crate::dims::steps::{unfit_length, unfit_lengths};
use namegrad_core::args::{Argument, NewName};
use namegrad_core::options::StackOptions;

/// Sequences of different lengths without padding: the first elements of all sequences, then the second
/// elements of those that have one, and so on. Made by [`pack_padded_sequence`] or [`pack_sequence`], and
/// taken by [`Rnn::forward_packed`](super::Rnn::forward_packed) and the same method of the other layers.
///
/// Layers also take `lengths`, which need no packing; see [`LstmOptions`](super::LstmOptions).
///
/// # Examples
/// ```
/// use namegrad::nn::{pack_padded_sequence, pad_packed_sequence};
/// use namegrad::prelude::*;
/// let x = Tensor::new([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]])?.refine_names(["N", "time"])?;
/// let lengths = Tensor::new([2, 3])?.refine_names(["N"])?;
/// let packed = pack_padded_sequence(&x, &lengths, "time")?;
/// assert_eq!(packed.data().to_vec::<f32>()?, [3.0, 1.0, 4.0, 2.0, 5.0]);
/// assert_eq!(packed.batch_sizes(), [2, 2, 1]);
/// let (padded, lengths) = pad_packed_sequence(&packed)?;
/// assert!(padded.equal(&x)?);
/// assert_eq!(lengths.to_vec::<i64>()?, [2, 3]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PackedSequence {
    /// `[rows, ..]`
    data: Tensor,
    batch_sizes: Vec<usize>,
    /// The sequences from the longest to the shortest.
    order: Vec<usize>,
    lengths: Vec<usize>,
    /// The positions of time and batch in the padded tensor.
    time: DimPosition,
    batch: DimPosition,
}

/// The position and the name of a dim.
type DimPosition = (usize, Option<Name>);

impl PackedSequence {
    /// The elements, `[rows, ..]`, where `..` are the dims besides time and batch.
    pub fn data(&self) -> &Tensor {
        &self.data
    }

    /// For each step, the number of sequences that have it.
    pub fn batch_sizes(&self) -> &[usize] {
        &self.batch_sizes
    }

    /// The sequences from the longest to the shortest, which is their order in [`data`](Self::data).
    pub fn sorted_indices(&self) -> &[usize] {
        &self.order
    }

    /// The length of each sequence, in the order in which they were given.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// The same sequences with other elements, such as `packed.map(|data| embedding.forward(data))`.
    ///
    /// # Errors
    /// The errors of `f`; [`ErrorKind::Shape`] if it changes the number of rows.
    #[track_caller]
    pub fn map(&self, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<PackedSequence> {
        self.with_data(f(&self.data)?)
    }

    #[track_caller]
    fn with_data(&self, data: Tensor) -> Result<PackedSequence> {
        let rows = self.data.sizes()[0];
        Error::ensure(data.sizes().first() == Some(&rows), ErrorKind::Shape, "PackedSequence::map", || {
            format!("the sequences have {rows} rows, and the new elements {}", data.shape())
        })?;
        Ok(PackedSequence { data, ..self.clone() })
    }

    /// The padded sequences, of `total` steps if that is given, their lengths, and the dim of time.
    #[track_caller]
    pub(super) fn padded(&self, value: f64, total: Option<usize>) -> Result<(Tensor, Tensor, usize)> {
        let total = total_length(PAD_PACKED, total, self.batch_sizes.len())?;
        let (rows, batch) = (self.data.sizes()[0], self.lengths.len());
        let data = F::pad_with(&self.data.rename(None)?, [(0, (0, 1))], PadOptions::new().value(value))?;
        // The row of each step of each sequence; the last row is padding.
        let mut row_of = vec![rows as i64; total * batch];
        for (row, (t, n)) in self.steps_of_rows().into_iter().enumerate() {
            row_of[t * batch + n] = row as i64;
        }
        let flat = data.index_select(tensor_of(&row_of, &[row_of.len()])?, 0)?;
        let padded = flat.unflatten(0, [total, batch])?;
        let lengths: Vec<i64> = crate::list(self.lengths.iter().map(|length| *length as i64));
        let lengths = Tensor::from_slice(&lengths, shape_of(&[(self.batch.1, batch)])?)?;
        let [time, of_batch] = self.places();
        let others = others(&padded, &[time, of_batch]);
        let mut names = vec![None; padded.ndim()];
        (names[time], names[of_batch]) = (self.time.1, self.batch.1);
        others.iter().enumerate().for_each(|(at, dim)| names[*dim] = self.data.name(at + 1));
        let padded = moved_back(padded, &[&[time, of_batch], &others[..]].concat())?;
        Ok((with_names(padded, &Names::new(PAD_PACKED, names)?)?, lengths, time))
    }

    /// The step and the sequence of each row.
    fn steps_of_rows(&self) -> Vec<(usize, usize)> {
        let mut steps = Vec::new();
        for (t, size) in self.batch_sizes.iter().enumerate() {
            self.order[..*size].iter().for_each(|n| steps.push((t, *n)));
        }
        steps
    }

    /// The dims of time and batch in the padded tensor, which can have fewer dims than the one that was packed.
    fn places(&self) -> [usize; 2] {
        let place = |own: usize, other: usize| own.min(self.data.ndim() - 1 + usize::from(other < own));
        [place(self.time.0, self.batch.0), place(self.batch.0, self.time.0)]
    }

    /// A copy of the sequences whose elements are those of a padded tensor.
    #[track_caller]
    pub(super) fn repacked(&self, padded: &Tensor) -> Result<PackedSequence> {
        self.with_data(rows(padded, self.places(), &self.steps_of_rows())?)
    }
}

const PACK: &str = "pack_padded_sequence";
const PAD_PACKED: &str = "pad_packed_sequence";

/// The number of steps of padded sequences, of which `longest` has the most.
#[track_caller]
fn total_length(op: &'static str, given: Option<usize>, longest: usize) -> Result<usize> {
    let total = given.unwrap_or(longest);
    Error::ensure(total >= longest, ErrorKind::Value, op, || {
        format!("total_length {total} is smaller than the longest sequence, {longest}")
    })?;
    Ok(total)
}

/// The elements of these steps of these sequences, `[rows, ..]`.
#[track_caller]
fn rows(x: &Tensor, places: [usize; 2], wanted: &[(usize, usize)]) -> Result<Tensor> {
    let count = x.sizes()[places[1]];
    let rows: Vec<i64> = crate::list(wanted.iter().map(|(t, n)| (t * count + n) as i64));
    let order = [&places, &others(x, &places)[..]].concat();
    let flat = x.permute(order)?.flatten(range(0..2), None)?;
    flat.index_select(tensor_of(&rows, &[rows.len()])?, 0)
}

/// Packs padded sequences. `dim` is that of time. The dim of the batch is the one with the name of `lengths`,
/// or the first one besides `dim`. The sequences can be in any order.
///
/// # Shapes
/// - `x`: any dims that include time and batch
/// - `lengths`: `[batch]`
///
/// [`PackedSequence`] has an example.
///
/// # Errors
/// [`ErrorKind::Shape`] if the lengths do not fit the batch, [`ErrorKind::NameNotFound`] if their dim is
/// another, [`ErrorKind::Value`] for a length that is not between 1 and the number of steps,
/// [`ErrorKind::DType`] for lengths that are not integers, and those of a wrong `dim`.
#[track_caller]
pub fn pack_padded_sequence(x: &Tensor, lengths: &Tensor, dim: impl Into<Dim>) -> Result<PackedSequence> {
    let time = dim.into().look_up(PACK, &[x.value()])?;
    pack(x, lengths, time, batch_of(PACK, x, lengths, time)?)
}

#[track_caller]
fn pack(x: &Tensor, lengths: &Tensor, time: usize, batch: Option<usize>) -> Result<PackedSequence> {
    let (batch, lengths) = lengths_of(PACK, x, lengths, time, batch)?;
    // From the longest to the shortest, of equals the earlier one first.
    let longest = lengths.iter().max().copied().unwrap_or(0);
    let (mut order, mut batch_sizes) = (Vec::with_capacity(lengths.len()), vec![0; longest]);
    for length in (1..=longest).rev() {
        order.extend((0..lengths.len()).filter(|n| lengths[*n] == length));
        batch_sizes[length - 1] = order.len();
    }
    let (time, batch) = ((time, x.name(time)), (batch, x.name(batch)));
    let packed = PackedSequence { data: x.clone(), batch_sizes, order, lengths, time, batch };
    let data = rows(x, [time.0, batch.0], &packed.steps_of_rows())?;
    Ok(PackedSequence { data, ..packed })
}

/// The dim of the batch: the one with the name of the lengths, or the first one besides the time.
#[track_caller]
fn batch_of(op: &'static str, x: &Tensor, lengths: &Tensor, time: usize) -> Result<Option<usize>> {
    let first = (0..x.ndim()).find(|dim| *dim != time);
    let (own, other) = (lengths.names().get(0), first.and_then(|first| x.name(first)));
    let found = own.and_then(|name| x.names().position(name));
    if let Some(batch) = found.filter(|batch| *batch != time) {
        return Ok(Some(batch));
    }
    let (kind, message) = match (own, other) {
        (Some(name), _) if found.is_some() => (
            ErrorKind::NameMismatch,
            format!("the lengths are those of the dim '{name}', which is that of time"),
        ),
        (Some(name), Some(_)) => (
            ErrorKind::NameNotFound,
            format!("the lengths are those of the dim '{name}', which the sequences do not have"),
        ),
        _ if !is_strict() || own == other => return Ok(first),
        _ => (
            ErrorKind::NameMismatch,
            "strict names: the lengths and the batch need the same name, and one of them has none".into(),
        ),
    };
    let repair = match (own, other) {
        (Some(name), Some(other)) => format!("lengths.rename([(\"{name}\", \"{other}\")])?"),
        (None, Some(other)) => format!("lengths.refine_names([\"{other}\"])?"),
        _ => String::new(),
    };
    Err(Error::new(kind, op, message).with_operands([x.shape(), lengths.shape()]).with_repair(repair))
}

/// The dim of the batch and the lengths, checked.
#[track_caller]
fn lengths_of(
    op: &'static str,
    x: &Tensor,
    lengths: &Tensor,
    time: usize,
    batch: Option<usize>,
) -> Result<(usize, Vec<usize>)> {
    let count = batch.map_or(0, |batch| x.sizes()[batch]);
    let mut wrong = unfit_lengths(lengths.dtype());
    if wrong.is_none() && (batch.is_none() || lengths.sizes() != [count]) {
        let message = format!("expected a length for each of {count} sequences, got {}", lengths.shape());
        wrong = Some((ErrorKind::Shape, message));
    }
    let own = if wrong.is_some() { Vec::new() } else { lengths.to(DType::I64)?.to_vec()? };
    let Some((kind, message)) = wrong.or_else(|| unfit_length(&own, x.sizes()[time])) else {
        return Ok((batch.unwrap_or_default(), whole(&own)));
    };
    Err(Error::new(kind, op, message).with_operands([x.shape(), lengths.shape()]))
}

/// The options of [`pad_sequence_with`] and [`pad_packed_sequence_with`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Setters)]
pub struct PadSequenceOptions {
    /// The elements beyond the end of a sequence; the default is 0.
    pub padding_value: f64,
    /// The number of steps of the result; the default is the length of the longest sequence.
    #[setters(into)]
    pub total_length: Option<usize>,
}

/// Pads packed sequences: the padded sequences and their lengths, with the dims and the order of sequences
/// that they had before they were packed.
///
/// [`PackedSequence`] has an example.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[track_caller]
pub fn pad_packed_sequence(packed: &PackedSequence) -> Result<(Tensor, Tensor)> {
    pad_packed_sequence_with(packed, PadSequenceOptions::new())
}

/// [`pad_packed_sequence`] with options.
///
/// # Errors
/// [`ErrorKind::Value`] for a `total_length` that is smaller than a sequence.
#[track_caller]
pub fn pad_packed_sequence_with(
    packed: &PackedSequence,
    options: PadSequenceOptions,
) -> Result<(Tensor, Tensor)> {
    let (padded, lengths, _) = packed.padded(options.padding_value, options.total_length)?;
    Ok((padded, lengths))
}

/// Stacks sequences of different lengths along a new dim `name`, padded with zeros. `dim` is that of time.
/// The new dim comes after it, so that without names sequences `[time, ..]` become `[time, batch, ..]`.
///
/// ```
/// use namegrad::nn::pad_sequence;
/// use namegrad::prelude::*;
/// let sequences = [Tensor::new([1, 2, 3])?, Tensor::new([4])?];
/// let sequences = sequences.map(|x| x.refine_names(["time"]).unwrap());
/// let padded = pad_sequence(&sequences, "time", "N")?;
/// assert_eq!(padded.shape().to_string(), "[time=3, N=2]");
/// assert_eq!(padded.select("N", 1)?.to_vec::<i64>()?, [4, 0, 0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Value`] without sequences, [`ErrorKind::Shape`] if they differ in other dims, and those of a
/// wrong `dim`.
#[track_caller]
pub fn pad_sequence(sequences: &[Tensor], dim: impl Into<Dim>, name: impl Into<NewName>) -> Result<Tensor> {
    padded_sequence(sequences, dim.into(), name.into(), PadSequenceOptions::new()).map(|(padded, _)| padded)
}

/// [`pad_sequence`] with options.
///
/// # Errors
/// Same as [`pad_sequence`]; [`ErrorKind::Value`] for a `total_length` that is smaller than a sequence.
#[track_caller]
pub fn pad_sequence_with(
    sequences: &[Tensor],
    dim: impl Into<Dim>,
    name: impl Into<NewName>,
    options: PadSequenceOptions,
) -> Result<Tensor> {
    padded_sequence(sequences, dim.into(), name.into(), options).map(|(padded, _)| padded)
}

/// The padded sequences and the dim of time.
#[track_caller]
fn padded_sequence(
    sequences: &[Tensor],
    dim: Dim,
    name: NewName,
    options: PadSequenceOptions,
) -> Result<(Tensor, usize)> {
    const OP: &str = "pad_sequence";
    let Some(first) = sequences.first() else {
        return Err(Error::new(ErrorKind::Value, OP, "expected at least one sequence"));
    };
    let time = dim.look_up(OP, &[first.value()])?;
    let longest = sequences.iter().map(|x| x.sizes().get(time).copied().unwrap_or(0)).max().unwrap_or(0);
    let total = total_length(OP, options.total_length, longest)?;
    let (mut padded, apart) = (Vec::with_capacity(sequences.len()), others(first, &[time]));
    for x in sequences {
        if x.ndim() != first.ndim() || sizes_of(x, &apart) != sizes_of(first, &apart) {
            let message = "the sequences need the same sizes in all dims but the time";
            let shapes = [first.shape(), x.shape()];
            return Err(Error::new(ErrorKind::Shape, OP, message).with_operands(shapes));
        }
        let missing = isize::try_from(total - x.sizes()[time]).unwrap_or(isize::MAX);
        let value = PadOptions::new().value(options.padding_value);
        padded.push(F::pad_with(x, [(time, (0, missing))], value).map_err(|error| error.of(OP))?);
    }
    let stacked = Tensor::stack_with(&padded, time + 1, StackOptions::new().name(name));
    Ok((stacked.map_err(|error| error.of(OP))?, time))
}

/// Packs sequences of different lengths. `dim` is that of time; `name` is the dim of the sequences in states
/// and padded results.
///
/// ```
/// use namegrad::nn::{pack_sequence, unpack_sequence};
/// use namegrad::prelude::*;
/// let sequences = [Tensor::randn([("time", 3), ("in", 2)])?, Tensor::randn([("time", 5), ("in", 2)])?];
/// let packed = pack_sequence(&sequences, "time", "N")?;
/// let hidden = Gru::new(("in", 2), ("hidden", 4), "time")?.forward_packed(&packed)?;
/// let outputs = unpack_sequence(&hidden.output)?;
/// assert_eq!(outputs[1].shape().to_string(), "[time=5, hidden=4]");
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Same as [`pad_sequence`]; [`ErrorKind::Value`] for an empty sequence.
#[track_caller]
pub fn pack_sequence(
    sequences: &[Tensor],
    dim: impl Into<Dim>,
    name: impl Into<NewName>,
) -> Result<PackedSequence> {
    const OP: &str = "pack_sequence";
    let padded = padded_sequence(sequences, dim.into(), name.into(), PadSequenceOptions::new());
    let (padded, time) = padded.map_err(|error| error.of(OP))?;
    let lengths: Vec<i64> = crate::list(sequences.iter().map(|x| x.sizes()[time] as i64));
    pack(&padded, &tensor_of(&lengths, &[lengths.len()])?, time, Some(time + 1)).map_err(|error| error.of(OP))
}

/// The sequences of a padded batch, each with its own length: the inverse of [`pad_sequence`]. `dim` is that
/// of time. The dim of the batch is the one with the name of `lengths`, or the first one besides `dim`.
///
/// ```
/// use namegrad::nn::unpad_sequence;
/// use namegrad::prelude::*;
/// let padded = Tensor::new([[1, 2, 3], [4, 0, 0]])?.refine_names(["N", "time"])?;
/// let sequences = unpad_sequence(&padded, &Tensor::new([3, 1])?, "time")?;
/// assert_eq!(sequences[1].shape().to_string(), "[time=1]");
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Same as [`pack_padded_sequence`].
#[track_caller]
pub fn unpad_sequence(padded: &Tensor, lengths: &Tensor, dim: impl Into<Dim>) -> Result<Vec<Tensor>> {
    const OP: &str = "unpad_sequence";
    let time = dim.into().look_up(OP, &[padded.value()])?;
    let batch = batch_of(OP, padded, lengths, time)?;
    let (batch, lengths) = lengths_of(OP, padded, lengths, time, batch)?;
    let mut sequences = Vec::with_capacity(lengths.len());
    for (n, length) in lengths.into_iter().enumerate() {
        sequences.push(padded.narrow(time, 0, length)?.select(batch, n as isize)?);
    }
    Ok(sequences)
}

/// The packed sequences, each with its own length: the inverse of [`pack_sequence`].
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[track_caller]
pub fn unpack_sequence(packed: &PackedSequence) -> Result<Vec<Tensor>> {
    let (padded, lengths, time) = packed.padded(0.0, None)?;
    unpad_sequence(&padded, &lengths, time)
}
