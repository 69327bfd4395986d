//! Where the dims that a layer needs are in an input: by name, or by position where either has no name.
//! Errors name the layer, its path and its dims.
//!
//! `mod.rs` finds single dims, `images` channels and the dims that windows slide along, `steps` time,
//! features and batch of recurrent layers, `sequences` those of attention.

pub(crate) mod images;
pub(crate) mod sequences;
pub(crate) mod steps;

use crate::layers::called;
use crate::training::ModulePath;
use namegrad_autograd::{Tensor, autocast};
use namegrad_core::names::{Name, Names, is_strict};
use namegrad_core::{DType, Element, Error, ErrorKind, IntoShape, NewDim, Result, Shape};
use namegrad_io::sorted::retain;
use std::fmt::{self, Display};
use std::ops::Range;

/// A dim that a layer was made for: the name, if it has one, and the size.
pub(crate) type Named = (Option<Name>, usize);

/// `C=3`, or `3` without a name.
pub(crate) fn dim_text((name, size): Named) -> String {
    name.map_or(size.to_string(), |name| format!("{name}={size}"))
}

/// `C=3, H=5`.
pub(crate) fn dims_text(dims: &[Named]) -> String {
    let texts: Vec<String> = crate::list(dims.iter().copied().map(dim_text));
    crate::joined(&texts, ", ")
}

/// The shape with these dims.
#[track_caller]
pub(crate) fn shape_of(dims: &[Named]) -> Result<Shape> {
    Shape::new(dims.iter().copied())
}

/// A dim of a layer, with the layer in the error.
#[track_caller]
pub(crate) fn named(layer: &'static str, dim: impl NewDim) -> Result<Named> {
    dim.into_new_dim().map_err(|error| error.of(layer))
}

/// The dims of a layer, with the layer in the error of the first that is invalid.
pub(crate) fn all_named<const N: usize>(layer: &'static str, dims: [Result<Named>; N]) -> Result<[Named; N]> {
    let mut all = [(None, 0); N];
    for (to, dim) in all.iter_mut().zip(dims) {
        *to = dim.map_err(|error| error.of(layer))?;
    }
    Ok(all)
}

/// The dims of windows, none of which is empty.
#[track_caller]
pub(crate) fn window<const N: usize>(layer: &'static str, dims: [Named; N]) -> Result<[Named; N]> {
    let sizes = dims.map(|(_, size)| size);
    Error::ensure(!sizes.contains(&0), ErrorKind::Value, layer, || {
        format!("a window must have at least one element along each dim, got {sizes:?}")
    })?;
    Ok(dims)
}

/// The dims that a layer normalizes over, of which there is at least one.
#[track_caller]
pub(crate) fn all_dims(layer: &'static str, dims: impl IntoShape) -> Result<Vec<Named>> {
    let shape = dims.into_shape().map_err(|error| error.of(layer))?;
    let dims = dims_with(&all_names(&shape.names, shape.sizes.len()), &shape.sizes);
    let expected = "expected the dims to normalize over, with their sizes, such as [(\"embed\", 64)]";
    Error::ensure(!dims.is_empty(), ErrorKind::Value, layer, || expected)?;
    Ok(dims)
}

/// Finds the dims of a layer in its inputs.
#[derive(Clone, Copy)]
pub(crate) struct Finder<'a> {
    pub(crate) layer: &'static str,
    pub(crate) path: &'a ModulePath,
    /// The dims of the layer, as in its summary.
    pub(crate) dims: &'a dyn Fn() -> String,
}

/// How errors refer to the layer.
impl Display for Finder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&called(self.path, &(self.dims)()))
    }
}

impl Finder<'_> {
    /// The position in `x` of a dim of the layer, with its size and, if names are strict, its name. If the
    /// layer or `x` has no name for it, it is at `position`.
    pub(crate) fn place(self, x: &Tensor, dim: Named, position: Option<usize>) -> Result<usize> {
        let place = self.find(x, dim, position)?;
        self.check_size(x, place, dim)?;
        if is_strict() && x.name(place) != dim.0 {
            let (own, taken) = (unnamed_or(dim.0), unnamed_or(x.name(place)));
            return Err(self.strict(&[x], format_args!("{taken} as {own}")));
        }
        Ok(place)
    }

    /// The position in `x` of a dim of the layer.
    pub(crate) fn find(self, x: &Tensor, dim: Named, position: Option<usize>) -> Result<usize> {
        let position = position.filter(|at| *at < x.ndim());
        let place = match dim.0 {
            Some(name) => x.names().position(name).or(position.filter(|at| x.name(*at).is_none())),
            None => position,
        };
        place.ok_or_else(|| self.missing(x, dim))
    }

    /// Checks the size of a dim of `x`.
    pub(crate) fn check_size(self, x: &Tensor, place: usize, (name, size): Named) -> Result<()> {
        let found = x.sizes()[place];
        if found == size {
            return Ok(());
        }
        let (mut what, mut repair) =
            (format!("needs {size} elements in {}, got {found}", dim_of(x, place)), None);
        // Images whose channels are last, for a layer that would find them by name.
        let last = x.ndim() - 1;
        if let Some(name) = name.filter(|_| !x.has_names() && place != last && x.sizes()[last] == size) {
            what += &format!("; the input has no names, by which it would be found; is dim {last} '{name}'?");
            repair = Some(format!("x.refine_names([\"...\", \"{name}\"])?"));
        }
        Err(repaired(self.wrong(x, ErrorKind::Shape, format_args!("{what}")), repair))
    }

    /// Checks that the parameters, of this dtype, fit `x`, which is `what` of the layer.
    pub(crate) fn check_dtype(self, what: &str, x: &Tensor, dtype: DType) -> Result<()> {
        if autocast::fits(x.dtype(), dtype) {
            return Ok(());
        }
        let name = if what.contains(' ') { "x" } else { what.trim_matches('`') };
        let what = format_args!("has parameters of {dtype}, and {what} is {}", x.dtype());
        Err(self.wrong(x, ErrorKind::DType, what).with_repair(format!("{name}.to(DType::{dtype:?})?")))
    }

    /// The error for a new dim whose name `x` already has.
    #[cold]
    pub(crate) fn already_has(self, x: &Tensor, name: Name) -> Error {
        let what = format_args!("makes the dim '{name}', which the input already has");
        self.wrong(x, ErrorKind::DuplicateName, what)
            .with_repair(format!("x.rename([(\"{name}\", \"{name}_in\")])?"))
    }

    /// An error about some of the inputs.
    #[cold]
    pub(crate) fn error(self, about: &[&Tensor], kind: ErrorKind, message: fmt::Arguments<'_>) -> Error {
        Error::new(kind, self.layer, format!("{message}")).with_operands(about.iter().map(|x| x.shape()))
    }

    /// An error for a dim that strict names would not let the layer take: "an unnamed dim as 'N'".
    #[cold]
    pub(crate) fn strict(self, about: &[&Tensor], what: fmt::Arguments<'_>) -> Error {
        self.error(about, ErrorKind::NameMismatch, format_args!("strict names: {self} would take {what}"))
    }

    /// An error about what the layer needs, which follows its name.
    #[cold]
    pub(crate) fn wrong(self, x: &Tensor, kind: ErrorKind, what: fmt::Arguments<'_>) -> Error {
        self.error(&[x], kind, format_args!("{self} {what}"))
    }

    #[cold]
    fn missing(self, x: &Tensor, (name, size): Named) -> Error {
        let Some(name) = name.filter(|_| x.ndim() > 0) else {
            let what = match x.ndim() {
                0 => format!("needs the dim {}, and the input is one number", dim_text((name, size))),
                ndim => format!("needs a dim of size {size}, and the input has {ndim} dims"),
            };
            return self.wrong(x, ErrorKind::Shape, format_args!("{what}"));
        };
        let mut alike = range(0..x.ndim());
        retain(&mut alike, &|dim| x.sizes()[*dim] == size);
        self.lacks(x, &name, &alike)
    }

    /// The error for an input without the dim `name`, which one of these dims may be: the only one.
    #[cold]
    pub(crate) fn lacks(self, x: &Tensor, name: &dyn Display, likely: &[usize]) -> Error {
        let what = format_args!("needs the dim '{name}', which the input does not have");
        let mut likely = likely.iter().filter_map(|dim| x.name(*dim)).filter(|name| !is_batch(*name));
        let other = likely.next().filter(|_| likely.next().is_none());
        let repair = other.map(|other| renaming("x", other, name));
        repaired(self.wrong(x, ErrorKind::NameNotFound, what), repair)
    }
}

/// The repair that gives a dim of a tensor another name.
pub(crate) fn renaming(what: &str, own: Name, wanted: &dyn Display) -> String {
    format!("{what}.rename([(\"{own}\", \"{wanted}\")])?, if both names mean the same")
}

/// The repair of names of `x` that should be among `wanted`: one of them is not, and one wanted dim of its size
/// is left.
pub(crate) fn renamed_to_fit(what: &str, x: &Tensor, wanted: &[(Option<Name>, usize)]) -> Option<String> {
    let mut foreign = range(0..x.ndim());
    retain(&mut foreign, &|dim| {
        x.name(*dim).is_some_and(|own| wanted.iter().all(|(name, _)| *name != Some(own)))
    });
    let [dim] = foreign[..] else { return None };
    let is_left = |(name, size): &&(Option<Name>, usize)| {
        *size == x.sizes()[dim] && name.is_some_and(|name| x.names().position(name).is_none())
    };
    let mut left = wanted.iter().filter(is_left);
    match (left.next(), left.next()) {
        (Some((Some(name), _)), None) => Some(renaming(what, x.name(dim)?, name)),
        _ => None,
    }
}

/// Whether a name says that the dim is the batch, which is none of a model's own dims.
pub(crate) fn is_batch(name: Name) -> bool {
    matches!(name.as_str(), "N" | "B" | "batch")
}

/// Whether a name says that the dim is that of channels.
pub(crate) fn is_channel(name: Name) -> bool {
    matches!(name.as_str(), "C" | "channel" | "channels")
}

/// The error with the repair, if there is one.
pub(crate) fn repaired(error: Error, repair: Option<String>) -> Error {
    match repair {
        Some(repair) => error.with_repair(repair),
        None => error,
    }
}

/// How errors refer to a dim of `x`.
pub(crate) fn dim_of(x: &Tensor, dim: usize) -> String {
    x.name(dim).map_or(format!("dim {dim}"), |name| format!("the dim '{name}'"))
}

/// The words of errors for a dim with this name.
pub(crate) fn unnamed_or(name: Option<Name>) -> String {
    name.map_or("an unnamed dim".into(), |name| format!("the dim '{name}'"))
}

/// The positions of the dims with these names, for those that `x` has.
pub(crate) fn by_name(x: &Tensor, names: &[Option<Name>]) -> Vec<Option<usize>> {
    crate::list(names.iter().map(|name| name.and_then(|name| x.names().position(name))))
}

/// The positions of dims with these names: by name, and those that are not found as the last dims that are
/// left, whatever these are called.
pub(crate) fn placed(x: &Tensor, names: &[Option<Name>]) -> Vec<usize> {
    let mut found = by_name(x, names);
    let mut left = others(x, &crate::list::<_, Vec<usize>>(found.iter().copied().flatten()));
    for place in found.iter_mut().rev().filter(|place| place.is_none()) {
        *place = left.pop().or(Some(0)); // callers look for as many dims as there are
    }
    crate::list(found.into_iter().flatten())
}

/// The dims of `x` other than these.
#[inline(never)]
pub(crate) fn others(x: &Tensor, dims: &[usize]) -> Vec<usize> {
    let mut others = range(0..x.ndim());
    retain(&mut others, &|dim| !is_in(dims, *dim));
    others
}

/// The names of all dims of `x`.
pub(crate) fn names_of(x: &Tensor) -> Vec<Option<Name>> {
    all_names(x.names(), x.ndim())
}

/// The names of this many dims.
pub(crate) fn all_names(names: &Names, ndim: usize) -> Vec<Option<Name>> {
    crate::list(names.iter(ndim))
}

/// The names of these dims of `x`.
pub(crate) fn names_at(x: &Tensor, dims: &[usize]) -> Vec<Option<Name>> {
    let mut names = Vec::with_capacity(dims.len() + 3); // callers add some
    dims.iter().for_each(|dim| names.push(x.name(*dim)));
    names
}

/// The names of dims, of which some may be missing.
pub(crate) fn names_where(x: &Tensor, dims: &[Option<usize>]) -> Vec<Option<Name>> {
    crate::list(dims.iter().map(|dim| dim.and_then(|dim| x.name(dim))))
}

/// The sizes of these dims of `x`.
pub(crate) fn sizes_of(x: &Tensor, dims: &[usize]) -> Vec<usize> {
    crate::list(dims.iter().map(|dim| x.sizes()[*dim]))
}

/// A tensor of these numbers. Like the functions below, it is a call where much code would be inlined.
#[inline(never)]
#[track_caller]
pub(crate) fn tensor_of<T: Element>(numbers: &[T], sizes: &[usize]) -> Result<Tensor> {
    Tensor::from_slice(numbers, sizes)
}

/// A list of these numbers.
#[inline(never)]
pub(crate) fn copied(numbers: &[usize]) -> Vec<usize> {
    numbers.to_vec()
}

/// The number of elements for these sizes.
#[inline(never)]
pub(crate) fn numel(sizes: &[usize]) -> usize {
    sizes.iter().product()
}

/// Whether a dim is one of these.
#[inline(never)]
pub(crate) fn is_in(dims: &[usize], dim: usize) -> bool {
    dims.contains(&dim)
}

/// The numbers of a range, in order.
pub(crate) fn range(numbers: Range<usize>) -> Vec<usize> {
    crate::list(numbers)
}

/// Numbers that are known to be positions or lengths.
pub(crate) fn whole(numbers: &[i64]) -> Vec<usize> {
    crate::list(numbers.iter().map(|number| *number as usize))
}

/// Dims with their sizes, for errors.
pub(crate) fn dims_with(names: &[Option<Name>], sizes: &[usize]) -> Vec<Named> {
    crate::list(names.iter().copied().zip(sizes.iter().copied()))
}

/// The order in which a layer has the dims of a tensor, and the names of its result.
pub(crate) struct Order {
    pub(crate) order: Vec<usize>,
    pub(crate) names: Names,
}

impl Order {
    /// The order with these dims of `x` at the end, for a result with the names of `x`.
    pub(crate) fn ending_with(x: &Tensor, dims: &[usize]) -> Order {
        Order { order: [&others(x, dims)[..], dims].concat(), names: x.names().clone() }
    }

    /// `x` in this order, without names.
    pub(crate) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        permuted(x.rename(None)?, &self.order)
    }

    /// The reverse of [`apply`](Self::apply), with the names of the result.
    pub(crate) fn restore(&self, y: Tensor) -> Result<Tensor> {
        with_names(moved_back(y, &self.order)?, &self.names)
    }
}

/// `x` with its dims in this order.
pub(crate) fn permuted(x: Tensor, order: &[usize]) -> Result<Tensor> {
    if order.is_sorted() { Ok(x) } else { x.permute(copied(order)) }
}

/// `x` with its dims in this order, without names, and with a dim of size 1 for each that it lacks.
pub(crate) fn opened(x: &Tensor, places: &[Option<usize>]) -> Result<Tensor> {
    let order: Vec<usize> = crate::list(places.iter().copied().flatten());
    let sizes: Vec<usize> = crate::list(places.iter().map(|dim| dim.map_or(1, |dim| x.sizes()[dim])));
    permuted(x.rename(None)?, &order)?.reshape(sizes)
}

/// `y`, whose dims are in this order of the dims of a tensor, with its dims in the order of that tensor.
pub(crate) fn moved_back(y: Tensor, order: &[usize]) -> Result<Tensor> {
    if order.is_sorted() {
        return Ok(y);
    }
    let mut inverse = copied(order);
    for (at, dim) in order.iter().enumerate() {
        inverse[*dim] = at;
    }
    y.permute(inverse)
}

/// A tensor without names, which gets these.
pub(crate) fn with_names(y: Tensor, names: &Names) -> Result<Tensor> {
    if names.is_named() { y.rename(Some(names.clone())) } else { Ok(y) }
}
