//! [`Frame`]: which dims of a distribution belong to the batch and which to the event, and how the dims of a
//! value or a draw meet them.

use crate::common::*;

/// The name of a distribution, its batch dims, its event dims, and the dtype of its parameters.
///
/// Every distribution has one, [`Distribution::frame`]. It finds the event dims of a value by name, checks
/// all names and sizes, and says in an error which dims belong to what.
#[derive(Clone, Debug)]
pub struct Frame {
    name: &'static str,
    batch: Shape,
    event: Shape,
    dtype: DType,
    checked: bool,
    /// The dim of the parameters of which a value is an index.
    index_of: Option<Name>,
}

thread_local! {
    static CHECKED: Cell<bool> = const { Cell::new(true) };
}

/// Runs `f`, in which distributions are made that check neither their parameters nor, later, the values that
/// they are given: PyTorch's `validate_args=False`. Names and sizes are checked in any case.
///
/// ```
/// use namegrad::distributions::{Uniform, unchecked};
/// use namegrad::prelude::*;
/// let x = Tensor::new([0.5, 3.0])?.refine_names(["N"])?;
/// assert!(Uniform::new(0.0, 1.0)?.log_prob(&x).is_err()); // 3 is outside
/// let uniform = unchecked(|| Uniform::new(0.0, 1.0))?;
/// assert_eq!(uniform.log_prob(&x)?.to_vec::<f32>()?, [0.0, f32::NEG_INFINITY]);
/// # Ok::<(), Error>(())
/// ```
pub fn unchecked<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            CHECKED.set(self.0);
        }
    }
    let _restore = Restore(CHECKED.replace(false));
    f()
}

/// Whether distributions that are made now check their arguments.
pub(crate) fn is_checked() -> bool {
    CHECKED.get()
}

impl Frame {
    /// The frame of a distribution called `name` with these dims, whose parameters are of `dtype`. Arguments
    /// are checked unless it is made in [`unchecked`].
    pub fn new(name: &'static str, batch: Shape, event: Shape, dtype: DType) -> Frame {
        Frame { name, batch, event, dtype, checked: is_checked(), index_of: None }
    }

    /// The frame of a distribution without event dims, whose parameters all have the shape of `parameter`.
    pub fn of(name: &'static str, parameter: &Tensor) -> Frame {
        Frame::new(name, parameter.shape(), no_dims(), parameter.dtype())
    }

    /// The frame of a distribution whose events are the last `dims` dims of `parameter`.
    pub fn of_events(name: &'static str, parameter: &Tensor, dims: usize) -> Frame {
        let (batch, event) = split(&parameter.shape(), dims);
        Frame::new(name, batch, event, parameter.dtype())
    }

    /// The same dims for a distribution of another name, as one is made of another.
    pub(crate) fn called(&self, name: &'static str) -> Frame {
        Frame { name, checked: is_checked(), ..self.clone() }
    }

    /// The same frame for values that are indices along a dim of the parameters, which they do not have.
    pub(crate) fn with_index_of(self, dim: Option<Name>) -> Frame {
        Frame { index_of: dim, ..self }
    }

    /// The name of the distribution.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The batch dims: independent distributions of the same kind.
    pub fn batch(&self) -> &Shape {
        &self.batch
    }

    /// The event dims: those of one draw of one distribution.
    pub fn event(&self) -> &Shape {
        &self.event
    }

    /// The dtype of the parameters.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Whether values are checked; see [`unchecked`].
    pub fn is_checked(&self) -> bool {
        self.checked
    }

    /// The dims of draws: new ones, then those of the batch and of the event.
    ///
    /// # Errors
    /// [`ErrorKind::DuplicateName`] if a drawn dim has the name of another one.
    #[track_caller]
    pub fn drawn(&self, op: &'static str, drawn: &Shape) -> Result<Shape> {
        let parts = [drawn, &self.batch, &self.event];
        let sizes = parts.into_iter().flat_map(|part| part.sizes.iter().copied()).collect();
        match Names::new(op, parts.into_iter().flat_map(names_of)) {
            Ok(names) => Ok(Shape { sizes, names }),
            Err(error) => {
                let message = format!(
                    "a drawn dim has the name of another dim: {self} cannot draw {drawn} at a time. Draw along \
                     a dim with a new name"
                );
                Err(error.with_message(message))
            }
        }
    }

    /// The value with the event dims at the end, in the dtype of the parameters if it is not of floats.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] for an event dim that the value lacks, [`ErrorKind::Shape`] for other
    /// sizes, [`ErrorKind::NameMismatch`] and [`ErrorKind::Misaligned`] if its other dims do not meet the
    /// batch dims.
    #[track_caller]
    pub fn fit(&self, op: &'static str, value: &Tensor) -> Result<Tensor> {
        if let Some(name) = self.index_of.filter(|name| value.names().position(*name).is_some()) {
            let message =
                format!("the value is an index along '{name}', but has this dim: {}", self.roles(value));
            return Err(self.misfit(ErrorKind::NameMismatch, op, value, message));
        }
        let events = self.event.sizes.len();
        let Some(first) = value.ndim().checked_sub(events) else {
            let message = format!("the value has fewer dims than an event: {}", self.roles(value));
            return Err(self.misfit(ErrorKind::Shape, op, value, message));
        };
        let mut places = Vec::with_capacity(events);
        for dim in 0..events {
            let place = self.event_place(op, value, first, dim)?;
            if places.contains(&place) {
                let message = format!("a dim of the value would be two event dims: {}", self.roles(value));
                return Err(self.misfit(ErrorKind::DimRange, op, value, message));
            }
            places.push(place);
        }
        let x = moved_last(value, &places)?;
        for dim in 0..events {
            let (size, found) = (self.event.sizes[dim], x.sizes()[first + dim]);
            if size != found {
                let which = self.event.names.get(dim).map_or(format!("{dim}"), |name| format!("'{name}'"));
                let message = format!(
                    "the event dim {which} has {size} elements, and in the value {found}: {}",
                    self.roles(value)
                );
                return Err(self.misfit(ErrorKind::Shape, op, value, message));
            }
        }
        self.check_batch(op, &x, first, value)?;
        if x.dtype().is_floating_point() { Ok(x) } else { x.to(self.dtype) }
    }

    /// Where the value has an event dim.
    #[track_caller]
    fn event_place(&self, op: &'static str, value: &Tensor, first: usize, dim: usize) -> Result<usize> {
        let Some(name) = self.event.names.get(dim) else { return Ok(first + dim) };
        if let Some(place) = value.names().position(name) {
            return Ok(place);
        }
        if value.name(first + dim).is_none() {
            return Ok(first + dim);
        }
        let message = format!("the value has no dim '{name}', an event dim: {}", self.roles(value));
        Err(self.misfit(ErrorKind::NameNotFound, op, value, message))
    }

    /// Checks that the first `count` dims of `x` end with those of the batch, or broadcast to them.
    #[track_caller]
    fn check_batch(&self, op: &'static str, x: &Tensor, count: usize, value: &Tensor) -> Result<()> {
        let batch = &self.batch;
        for k in 1..=count.min(batch.sizes.len()) {
            let (own, other) = (batch.sizes.len() - k, count - k);
            let names = (batch.names.get(own), x.name(other));
            let meeting =
                |name: Option<Name>| name.map_or("an unnamed dim".into(), |name| format!("'{name}'"));
            let differ = match names {
                (Some(own), Some(other)) => own != other,
                (Some(name), None) => x.names().position(name).is_some(),
                (None, Some(name)) => batch.names.position(name).is_some(),
                (None, None) => false,
            };
            if differ {
                let is_elsewhere = names.0.is_some_and(|name| x.names().position(name).is_some())
                    || names.1.is_some_and(|name| batch.names.position(name).is_some());
                let message = format!(
                    "the batch dim {} meets {} of the value: {}",
                    meeting(names.0),
                    meeting(names.1),
                    self.roles(value)
                );
                let kind = if is_elsewhere { ErrorKind::Misaligned } else { ErrorKind::NameMismatch };
                let error = self.misfit(kind, op, value, message);
                return Err(if is_elsewhere { error.with_repair(self.order(value)) } else { error });
            }
            let (size, found) = (batch.sizes[own], x.sizes()[other]);
            if size != found && size != 1 && found != 1 {
                let message = format!(
                    "{} of the batch has {size} elements, and in the value {found}: {}",
                    meeting(names.0.or(names.1)),
                    self.roles(value)
                );
                return Err(self.misfit(ErrorKind::Shape, op, value, message));
            }
        }
        Ok(())
    }

    /// The call that puts the dims of a value into the order of the frame, if all of them have names.
    fn order(&self, value: &Tensor) -> String {
        let names: Option<Vec<Name>> = names_of(&value.shape()).collect();
        let own: Vec<Name> = names_of(&self.batch).chain(names_of(&self.event)).flatten().collect();
        let Some(names) = names else { return String::new() };
        let drawn = names.iter().filter(|name| !own.contains(name));
        let kept = own.iter().filter(|name| names.contains(name));
        let list: Vec<String> = drawn.chain(kept).map(|name| format!("\"{name}\"")).collect();
        format!("value.align_to([{}])?", list.join(", "))
    }

    /// What each dim of a value is: drawn, of the batch or of the event.
    fn roles(&self, value: &Tensor) -> String {
        let (events, all) = (self.event.sizes.len(), value.ndim());
        let own = self.batch.sizes.len() + events;
        // whether the value has the batch dim at another place
        let is_elsewhere =
            |dim: usize| self.batch.names.get(dim).is_some_and(|name| value.names().position(name).is_some());
        let role = |dim: usize| {
            let role = match value.name(dim) {
                Some(name) if self.event.names.position(name).is_some() => "event",
                Some(name) if self.batch.names.position(name).is_some() => "batch",
                _ if dim + events >= all => "event",
                _ if dim + own >= all && !is_elsewhere(dim + own - all) => "batch",
                _ => "drawn",
            };
            format!("{role} {}={}", value.name(dim).map_or("?", Name::as_str), value.sizes()[dim])
        };
        let roles: Vec<String> = (0..all).map(role).collect();
        let list = if roles.is_empty() { "none".into() } else { roles.join(", ") };
        format!("{self}; the dims of the value: {list}")
    }

    #[cold]
    #[track_caller]
    fn misfit(&self, kind: ErrorKind, op: &'static str, value: &Tensor, message: String) -> Error {
        Error::new(kind, op, message).with_operands([value.shape()])
    }

    /// The error of something that the distribution does not have, such as an entropy in closed form.
    ///
    /// # Errors
    /// Always, [`ErrorKind::Unsupported`].
    #[track_caller]
    pub fn missing(&self, op: &'static str) -> Result<Tensor> {
        Err(Error::new(ErrorKind::Unsupported, op, format!("{} has no {op} in closed form", self.name)))
    }

    /// A result of the distribution, with its name in an error.
    #[track_caller]
    pub(crate) fn answer(&self, op: &'static str, result: Result<Tensor>) -> Result<Tensor> {
        match result {
            Ok(tensor) => Ok(tensor),
            Err(error) if error.kind() == ErrorKind::Unsupported => Err(error.at(Location::caller())),
            Err(error) => Err(error.of(op).context(format_args!("{}: ", self.name)).at(Location::caller())),
        }
    }
}

/// `Normal (batch [N=3])`, `MultivariateNormal (batch [N=3], event [coord=2])`.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (batch {}, event {})", self.name, self.batch, self.event)
    }
}

/// No dims.
pub(crate) fn no_dims() -> Shape {
    Shape { sizes: Sizes::new(), names: Names::none() }
}

/// The names of all dims.
pub(crate) fn names_of(shape: &Shape) -> impl Iterator<Item = Option<Name>> + '_ {
    shape.names.iter(shape.sizes.len())
}

fn joined(first: &[usize], second: &[usize]) -> Sizes {
    first.iter().chain(second).copied().collect()
}

/// The first dims and the last `dims` dims.
pub(crate) fn split(shape: &Shape, dims: usize) -> (Shape, Shape) {
    let at = shape.sizes.len() - dims;
    (part(shape, 0..at), part(shape, at..shape.sizes.len()))
}

/// Some of the dims.
pub(crate) fn part(shape: &Shape, dims: Range<usize>) -> Shape {
    let names = dims.clone().map(|dim| shape.names.get(dim));
    Shape {
        names: Names::new("part", names).unwrap_or_default(), // a part of distinct names
        sizes: Sizes::from_slice(&shape.sizes[dims]),
    }
}

/// The dims of both.
#[track_caller]
pub(crate) fn concatenated(first: &Shape, second: &Shape) -> Result<Shape> {
    let names = Names::new("shape", names_of(first).chain(names_of(second)))?;
    Ok(Shape { sizes: joined(&first.sizes, &second.sizes), names })
}

/// The tensor with these dims at the end, in this order.
#[track_caller]
pub(crate) fn moved_last(x: &Tensor, dims: &[usize]) -> Result<Tensor> {
    let first = x.ndim() - dims.len();
    if dims.iter().enumerate().all(|(k, dim)| *dim == first + k) {
        return Ok(x.clone());
    }
    let others = (0..x.ndim()).filter(|dim| !dims.contains(dim));
    let order: Vec<usize> = others.chain(dims.iter().copied()).collect();
    x.permute(order)
}

/// The tensor expanded to a shape, whose names it takes.
#[track_caller]
pub(crate) fn expanded(x: &Tensor, shape: &Shape) -> Result<Tensor> {
    x.rename(None).expand(&shape.sizes).rename(Some(shape.names.clone()))
}

/// The tensor with these names, one for each dim, or none.
#[track_caller]
pub(crate) fn renamed(x: &Tensor, names: &Names) -> Result<Tensor> {
    x.rename(Some(names.clone()))
}
