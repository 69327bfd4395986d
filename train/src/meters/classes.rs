//! Meters of predicted classes: [`ClassMeter`], and [`update_all`], which checks and orders a batch once for
//! all of them.

use super::pairs::{extra_dim, in_order_of};
use namegrad_core::{Argument, DType, Dim, Error, ErrorKind, NamedTensor, Result, in_rust};
use namegrad_io::text::shapes;
use std::panic::Location;

const OP: &str = "update";

/// A meter that takes logits and target classes: [`Accuracy`](super::Accuracy),
/// [`ConfusionMatrix`](super::ConfusionMatrix) and [`Perplexity`](super::Perplexity). [`update_all`] updates
/// several.
pub trait ClassMeter: TakesBatch {}

impl<M: TakesBatch> ClassMeter for M {}

/// Counts a batch in a meter. The trait is not exported, so only meters of this crate are a [`ClassMeter`].
pub trait TakesBatch {
    /// The target that does not count.
    fn ignored(&self) -> Option<i64>;

    /// Checks that the meter is for this number of classes.
    #[track_caller]
    fn check(&self, _classes: usize) -> Result<()> {
        Ok(())
    }

    /// Adds logits `[.., class]`, and the target of each row; `None` if it is ignored.
    fn take(&mut self, logits: &NamedTensor, targets: &[Option<usize>]) -> Result<()>;
}

/// Adds a batch to several meters of predicted classes. After an error about the batch, all of them are
/// unchanged.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::meters::{Accuracy, ConfusionMatrix, Perplexity, update_all};
/// let (mut first, mut second) = (Accuracy::new(), Accuracy::top(2));
/// let (mut matrix, mut perplexity) = (ConfusionMatrix::new(3), Perplexity::new());
/// let logits = Tensor::new([[0.1, 0.2, 0.7], [0.3, 0.4, 0.3]])?.refine_names(["N", "class"])?;
/// let target = Tensor::new([2, 0])?.refine_names(["N"])?;
/// update_all(&mut [&mut first, &mut second, &mut matrix, &mut perplexity], &logits, &target, "class")?;
/// assert_eq!((first.compute(), second.compute(), matrix.accuracy()), (0.5, 1.0, 0.5));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Those of [`Accuracy::update`](super::Accuracy::update) and
/// [`ConfusionMatrix::update`](super::ConfusionMatrix::update).
#[track_caller]
pub fn update_all(
    meters: &mut [&mut dyn ClassMeter],
    logits: impl AsRef<NamedTensor>,
    target: impl AsRef<NamedTensor>,
    dim: impl Into<Dim>,
) -> Result<()> {
    update_as(meters, logits.as_ref(), target.as_ref(), dim.into()).map_err(|error| error.of("update_all"))
}

#[track_caller]
fn update_as(
    meters: &mut [&mut dyn ClassMeter],
    logits: &NamedTensor,
    target: &NamedTensor,
    dim: Dim,
) -> Result<()> {
    let scores = logits;
    let ClassBatch { logits, target, classes, dim } = ClassBatch::new(scores, target, dim)?;
    // Most meters ignore the same target, and share the indices.
    let mut known: Vec<(Option<i64>, Vec<Option<usize>>)> = Vec::new();
    let mut numbers = Vec::new();
    for meter in &*meters {
        meter.check(classes)?;
        let ignored = meter.ignored();
        let number = known.iter().position(|(own, _)| *own == ignored);
        numbers.push(number.unwrap_or(known.len()));
        if number.is_none() {
            let indices = indices(&target, classes, ignored);
            known.push((ignored, indices.map_err(|error| about_logits(error, scores, dim))?));
        }
    }
    for (meter, number) in meters.iter_mut().zip(numbers) {
        meter.take(&logits, &known[number].1)?;
    }
    Ok(())
}

/// Logits `[.., class]`, and the target of each row.
struct ClassBatch {
    /// The logits with the class dim last.
    logits: NamedTensor,
    /// The targets, in the order of the rows.
    target: NamedTensor,
    /// The number of classes.
    classes: usize,
    /// The class dim, as it was given.
    dim: usize,
}

impl ClassBatch {
    #[track_caller]
    fn new(logits: &NamedTensor, target: &NamedTensor, dim: Dim) -> Result<ClassBatch> {
        let dim = dim.look_up(OP, &[logits])?;
        if logits.ndim() == 0 || logits.sizes()[dim] == 0 {
            let message = "expected logits with at least one class";
            return Err(Error::new(ErrorKind::Shape, OP, message).with_operands(shapes(&[logits, target])));
        }
        let rest = logits.select(dim, 0)?;
        let classes = logits.sizes()[dim];
        let target = in_order_of(&rest, target, &|| one_hot(&rest, target, classes))
            .map_err(|error| error.with_operands(shapes(&[logits, target])))?;
        Ok(ClassBatch { logits: logits.movedim(dim, -1)?, target, classes, dim })
    }
}

/// The repair for a target with a dim too many; empty if it has none.
#[cold]
fn one_hot(rest: &NamedTensor, target: &NamedTensor, classes: usize) -> String {
    match extra_dim(target, rest) {
        Some(dim) if target.sizes()[dim] == 1 => format!("target.squeeze({})?", in_rust(target, dim)),
        Some(dim) if target.sizes()[dim] == classes => {
            format!("target.argmax({})?, if it is one-hot", in_rust(target, dim))
        }
        _ => String::new(),
    }
}

/// The error of a target; a single logit is usually one of two classes.
#[cold]
fn about_logits(error: Error, logits: &NamedTensor, dim: usize) -> Error {
    let is_padding = error.repair().is_some_and(|own| own.contains(".ignore_index("));
    if error.kind() != ErrorKind::Index || logits.sizes()[dim] != 1 || is_padding {
        return error;
    }
    let one = format!("logits.squeeze({})?", in_rust(logits, dim));
    error.with_repair(format!(
        "ConfusionMatrix::new(2) with matrix.update_classes({one}.gt(0.0)?, &target)? for one logit of two classes, \
         .gt(0.5)? for a probability"
    ))
}

/// The classes in a tensor of integers, in row-major order; `None` where they are ignored.
#[track_caller]
pub(super) fn indices(x: &NamedTensor, classes: usize, ignored: Option<i64>) -> Result<Vec<Option<usize>>> {
    if x.dtype().is_floating_point() {
        let message = format!("expected class indices of an integer dtype, got {}", x.dtype());
        return Err(Error::new(ErrorKind::DType, OP, message)
            .with_operands(shapes(&[x]))
            .with_repair(if is_whole(x) { "target.to(DType::I64)?" } else { "" }));
    }
    let caller = Location::caller();
    let mut indices = Vec::new();
    let found = x.to(DType::I64)?.to_vec::<i64>()?;
    for class in &found {
        let index = usize::try_from(*class).ok().filter(|class| *class < classes);
        if Some(*class) != ignored && index.is_none() {
            let counted: Vec<i64> = found.iter().copied().filter(|class| Some(*class) != ignored).collect();
            return Err(outside(*class, &counted, classes).with_operands(shapes(&[x])).at(caller));
        }
        indices.push(index.filter(|_| Some(*class) != ignored));
    }
    Ok(indices)
}

/// Whether all numbers are whole, so that they can be classes.
pub(super) fn is_whole(x: &NamedTensor) -> bool {
    let numbers = x.to(DType::F64).and_then(|x| x.to_vec::<f64>());
    numbers.is_ok_and(|numbers| numbers.iter().all(|number| number.fract() == 0.0))
}

/// The error of a target that is not one of the classes.
#[cold]
fn outside(class: i64, found: &[i64], classes: usize) -> Error {
    let (least, most) =
        found.iter().fold((class, class), |(least, most), own| (least.min(*own), most.max(*own)));
    let mut message = format!("class {class} is not in 0..{classes}");
    let ignored = format!(".ignore_index({class}), if it marks what is not to be counted");
    let is_sign = found.iter().all(|class| class.abs() == 1) && least < most;
    let marks_padding = class < 0 || class == 255;
    let repair = match marks_padding {
        true if is_sign && classes <= 2 => {
            format!("target.gt(0)?, if -1 and 1 are the two classes; {ignored}")
        }
        true => ignored,
        false if least == 1 && most == classes as i64 => {
            message += &format!("; labels begin at 1, or there are {} classes", classes + 1);
            "target.sub(1)?, if they begin at 1 in all batches".into()
        }
        false => {
            message += &format!("; labels are from {least} to {most}");
            String::new()
        }
    };
    Error::new(ErrorKind::Index, OP, message).with_repair(repair)
}

/// The rows of logits `[.., class]` with their targets.
pub(super) fn rows<'a, T>(
    logits: &'a [T],
    targets: &'a [Option<usize>],
) -> impl Iterator<Item = (&'a [T], Option<usize>)> {
    let classes = (logits.len() / targets.len().max(1)).max(1);
    logits.chunks(classes).zip(targets.iter().copied())
}
