//! Losses, and what they share: reductions, and checks of an input and its target.

pub(super) mod classes;
pub(super) mod ctc;
pub(super) mod margin;
pub(super) mod probability;
pub(super) mod regression;
pub(super) mod similarity;

use super::*;
use namegrad_core::in_rust;
use namegrad_core::names::apart;

/// The reduction of the losses of individual elements.
///
/// ```
/// use namegrad::prelude::*;
/// let (x, target) = (Tensor::new([1.0, 3.0])?, Tensor::new([0.0, 0.0])?);
/// assert_eq!(F::mse_loss(&x, &target)?.item::<f64>()?, 5.0); // the mean
/// let sum = MseLossOptions::new().reduction(F::Reduction::Sum);
/// assert_eq!(F::mse_loss_with(&x, &target, sum)?.item::<f64>()?, 10.0);
/// let each = MseLossOptions::new().reduction(F::Reduction::None);
/// assert_eq!(F::mse_loss_with(&x, &target, each)?.to_vec::<f32>()?, [1.0, 9.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub enum Reduction {
    /// The mean, weighted if there are weights.
    #[default]
    Mean,
    /// The sum.
    Sum,
    /// No reduction: one loss for each element.
    None,
}

impl Reduction {
    fn apply(self, losses: Tensor) -> Result<Tensor> {
        match self {
            Reduction::Mean => {
                self.check_not_empty(losses.numel())?;
                losses.mean(..)
            }
            Reduction::Sum => losses.sum(..),
            Reduction::None => Ok(losses),
        }
    }

    /// Reduces losses whose mean is `mean` of their sum.
    fn apply_by(self, losses: Tensor, mean: &dyn Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        match self {
            Reduction::Mean if losses.numel() > 0 => mean(&losses.sum(..)?),
            _ => self.apply(losses),
        }
    }

    /// Returns an error for the mean of no losses. In PyTorch it is NaN, which would then spread to every
    /// parameter.
    fn check_not_empty(self, losses: usize) -> Result<()> {
        if self != Reduction::Mean || losses > 0 {
            return Ok(());
        }
        Err(value_error("there is no mean loss of an empty batch")
            .with_repair("if x.numel() > 0 { .. }, or F::Reduction::Sum in the options, which gives 0"))
    }
}

/// The class dim, by name or index, such as `"class"` or `1`. In a call by name, the default is PyTorch's:
/// dim 1, or the only dim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassDim(Option<Dim>);

impl<T: Into<Dim>> From<T> for ClassDim {
    fn from(dim: T) -> ClassDim {
        ClassDim(Some(dim.into()))
    }
}

impl Argument for ClassDim {
    type Resolved = usize;
    type View<'a> = usize;
    #[track_caller]
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<usize> {
        match &self.0 {
            Some(dim) => dim.look_up(op, of),
            None => Dim::from(usize::from(of.first().is_some_and(|x| x.ndim() > 1))).look_up(op, of),
        }
    }
    fn view(resolved: &usize) -> usize {
        *resolved
    }
    fn from_value(value: &Value) -> Option<ClassDim> {
        Dim::from_value(value).map(ClassDim::from)
    }
    fn accepted() -> String {
        "a dim".into()
    }
}

/// Checks that the tensors are floating-point.
fn check_floats(inputs: &[Called<'_>]) -> Result<()> {
    for (name, x) in inputs {
        let message = format_args!("{name} is {}, and must be floating-point", x.dtype());
        ensure_dtype(x.dtype().is_floating_point(), message, (name, DType::F32))?;
    }
    Ok(())
}

/// Checks that `other` has the sizes of `x`, and names that are not others.
fn check_same(x: Called<'_>, other: Called<'_>) -> Result<()> {
    check_order(x, other)?;
    let ((x_name, wanted), (name, own)) = ((x.0, x.1.sizes()), (other.0, other.1.sizes()));
    if own == wanted {
        return check_names(x, other).map(drop);
    }
    let message = format_args!("{name} must have the sizes of {x_name}, {wanted:?}, and has {own:?}");
    let repair = squeezed_pair(x, other).or_else(|| widened(x, other, true));
    Err(repaired(shape_error(message), repair))
}

/// `losses` times a weight that broadcasts to their sizes.
fn weighted(losses: Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
    let Some(weight) = weight else { return Ok(losses) };
    let (weighted, own, sizes) = (losses.mul(weight)?, weight.sizes(), losses.sizes());
    (weighted.sizes() == sizes)
        .or_shape(format_args!("the weight {own:?} does not broadcast to the losses {sizes:?}"))?;
    Ok(weighted)
}

/// Checks that an argument is greater than 0.
fn check_positive(name: &str, value: f64) -> Result<()> {
    (value > 0.0).or_value(format_args!("{name} must be greater than 0, got {value}"))
}

/// Checks the input and the target of an elementwise loss: they must be numeric, have the same dims in the
/// same order, and broadcast to the sizes of one of them.
fn check_pair(x: &Tensor, target: &Tensor) -> Result<()> {
    check_both(("x", x), ("target", target))
}

/// [`check_pair`] of inputs with other names.
fn check_both(x: Called<'_>, target: Called<'_>) -> Result<()> {
    for (name, x) in [x, target] {
        let message = format_args!("{name} is bool, and must be numbers");
        ensure_dtype(x.dtype() != DType::Bool, message, (name, DType::F32))?;
    }
    check_order(x, target)?;
    check_names(x, target)?;
    let ((x_name, own), (name, other)) = ((x.0, x.1.sizes()), (target.0, target.1.sizes()));
    let fits = |sizes: &[usize], to: &[usize]| {
        sizes.len() <= to.len() && sizes.iter().rev().zip(to.iter().rev()).all(|(n, to)| n == to || *n == 1)
    };
    if own == other || fits(own, other) || fits(other, own) {
        return Ok(());
    }
    let Ok(both) = Tensor::broadcast_tensors(&[x.1, target.1]) else {
        // If there is no repair, the op fails with its own error.
        let Some(repair) = widened(x, target, false) else { return Ok(()) };
        let message = format_args!("{name} has the sizes {other:?}, which do not broadcast to {own:?}");
        return Err(shape_error(message).with_repair(repair));
    };
    let sizes = both[0].sizes();
    let message = format_args!(
        "the input {own:?} and the target {other:?} broadcast to {sizes:?}, which is larger than both"
    );
    let repair = squeezed_pair(x, target);
    let repair = repair.unwrap_or_else(|| format!("{x_name}.expand({sizes:?})?, if that is meant"));
    Err(shape_error(message).with_repair(repair))
}

/// The names of the target are those of `x` where both have names.
fn check_names(called: Called<'_>, of_target: Called<'_>) -> Result<Names> {
    let (x, (name, target)) = (called.1, of_target);
    // Under the name of a method, whose repair would be a call of it.
    x.value().unified_names("unify", "broadcast", target.value()).map_err(|error| {
        let own: Option<Vec<&str>> = crate::list(x.names().iter(x.ndim()).map(|name| Some(name?.as_str())));
        let own = own.filter(|_| !target.has_names() && x.ndim() == target.ndim());
        let apart = apart(x.names().iter(x.ndim()), target.names().iter(target.ndim()))
            .filter(|(own, _)| x.sizes() == target.sizes() && target.names().position(*own).is_none());
        let repair = squeezed_pair(called, of_target)
            .or_else(|| widened(called, of_target, false))
            .or_else(|| Some(format!("{name}.refine_names({:?})?, if both mean the same", own?)))
            .or_else(|| apart.map(|(own, other)| renaming(name, other, &own)));
        repaired(error.of(""), repair)
    })
}

/// The unified names of both tensors, without the class dim.
fn names_without(x: Called<'_>, target: &Tensor, dim: usize) -> Result<Names> {
    let mut rest = all_names(&check_names(x, ("target", target))?, x.1.ndim());
    rest.remove(dim);
    Names::new("", rest)
}

/// Checks that the dims of a target or weight are in the order of the dims of `x`, if both have the same names.
fn check_order((x_name, x): Called<'_>, (name, target): Called<'_>) -> Result<()> {
    let (own, other) = (x.names(), target.names());
    let has = |dim: usize| own.get(dim).is_some_and(|name| other.position(name).is_some());
    if own == other || x.ndim() != target.ndim() || !(0..x.ndim()).all(has) {
        return Ok(()); // if the names differ, the op checks them
    }
    let message = format_args!("the input and the {name} have the same dims in another order");
    Err(fault(ErrorKind::Misaligned, message).with_repair(format!("{name}.align_as(&{x_name})?")))
}

/// The call that gives `other` the dims of `x` that it lacks, if there is only one way, for a repair; with
/// `all` also their sizes.
fn widened((x_name, x): Called<'_>, (name, other): Called<'_>, all: bool) -> Option<String> {
    let (sizes, own) = (x.sizes(), other.sizes());
    if own.is_empty() || own.len() >= sizes.len() {
        return None;
    }
    let (mut call, mut lacking) = (format!("{name}.align_as(&{x_name})?"), Vec::new());
    if other.names().is_named() {
        for (dim, size) in own.iter().enumerate() {
            let at = x.names().position(other.names().get(dim)?)?;
            (sizes[at] == *size).then_some(())?;
        }
        for at in 0..sizes.len() {
            let own = x.names().get(at)?;
            lacking.extend(other.names().position(own).is_none().then(|| format!("'{own}'")));
        }
    } else {
        let mut places = (0..sizes.len()).filter(|at| without(sizes, *at) == own);
        let at = places.next().filter(|_| places.next().is_none() && !x.names().is_named())?;
        call = format!("{name}.unsqueeze({at})?");
        lacking.push(format!("dim {at}"));
    }
    let expanded = if all { format!(".expand_as(&{x_name})?") } else { String::new() };
    Some(format!("{call}{expanded}, if it is the same along {}", crate::joined(&lacking, " and ")))
}

/// The call that removes an extra dim of size one that one of two tensors has, for a repair.
fn squeezed_pair((x_name, x): Called<'_>, (name, other): Called<'_>) -> Option<String> {
    squeezed(x, other.sizes(), x_name).or_else(|| squeezed(other, x.sizes(), name))
}

/// The call that removes an extra dim of size one that `x` has in addition to `sizes`, for a repair.
fn squeezed(x: &Tensor, sizes: &[usize], name: &str) -> Option<String> {
    let is_extra = |dim: &usize| x.sizes()[*dim] == 1 && without(x.sizes(), *dim) == sizes;
    let dim = (0..x.ndim()).rev().find(is_extra)?;
    Some(format!("{name}.squeeze({})?", in_rust(x.value(), dim)))
}

/// The sizes without those of a dim.
fn without(sizes: &[usize], dim: usize) -> Vec<usize> {
    [&sizes[..dim], &sizes[dim + 1..]].concat()
}

/// The tensor, with a dim of classes if it is a single number.
fn with_classes(x: &Tensor) -> Result<Cow<'_, Tensor>> {
    if x.ndim() > 0 { Ok(Cow::Borrowed(x)) } else { x.unsqueeze(0).map(Cow::Owned) }
}

/// The error for a target, element number `at`, that is not one of the classes.
#[cold]
pub(crate) fn no_class(target: &Tensor, at: usize, class: i64, count: usize) -> Error {
    let (place, last) = (position(target, at), count.saturating_sub(1));
    let message =
        format_args!("Target {class}{place} is out of bounds for {count} classes: they are 0 to {last}");
    fault(ErrorKind::Index, message)
}

/// The position of element number `at`: ` at [3, 0]` or ` at [N=3, time=0]`.
fn position(x: &Tensor, at: usize) -> String {
    let place = place(&x.shape(), at);
    if place.is_empty() { place } else { format!(" at{place}") }
}
