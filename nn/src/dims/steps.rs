//! The positions of the steps, the features and the batch dims in the input of a recurrent layer, and the
//! dims of its results.

use super::*;
use namegrad_core::Dim;
use namegrad_core::args::NewName;
use namegrad_core::options::UnsqueezeOptions;
use std::cell::RefCell;

/// The dims of an input.
pub(crate) struct Steps<'a> {
    of: Finder<'a>,
    x: &'a Tensor,
    time: Option<usize>,
    /// All dims but the time and the features.
    batch: Vec<usize>,
    /// Their names, which those that have none in `x` get from states and lengths.
    told: RefCell<Vec<Option<Name>>>,
    feature: usize,
}

/// A tensor of the user and the dims in the order of the op: the first dim if there is one, such as the time,
/// then the batch dims as one, then the features.
pub(crate) struct Flattening {
    /// The position of each dim of the op in the tensor, the batch dims one by one.
    order: Order,
    /// Their sizes, in the order of the op.
    sizes: Vec<usize>,
    /// Whether there is a first dim.
    leads: bool,
}

impl<'a> Steps<'a> {
    /// Finds the features `input` and, unless the layer has none, the dim of time: by name, or by position if
    /// the layer or the input has no name for it. The features are the last dim then, and the time the first.
    pub(crate) fn find(of: Finder<'a>, x: &'a Tensor, input: Named, time: Option<&Dim>) -> Result<Steps<'a>> {
        let by_name = match time {
            Some(Dim::Name(name)) => x.names().position(*name),
            _ => None,
        };
        let last = (0..x.ndim()).rev().find(|dim| Some(*dim) != by_name);
        let feature = of.place(x, input, last)?;
        let find = |time: &Dim| by_name.map_or_else(|| time_by_position(of, x, feature, time), Ok);
        let time = time.map(find).transpose()?;
        let batch = others(x, &[time.as_slice(), &[feature]].concat());
        if let Some(time) = time.filter(|time| x.sizes()[*time] == 0) {
            let what = format_args!("needs at least one step, and {} has none", dim_of(x, time));
            return Err(of.wrong(x, ErrorKind::Shape, what));
        }
        let told = RefCell::new(names_at(x, &batch));
        Ok(Steps { of, x, time, batch, told, feature })
    }

    /// The dims of `x` with `feature` in place of the features.
    pub(crate) fn like_input(&self, feature: Named) -> Result<Flattening> {
        let x = self.x;
        let order = [self.time.as_slice(), &self.batch, &[self.feature]].concat();
        let mut sizes = sizes_of(x, &order);
        sizes[order.len() - 1] = feature.1;
        let mut names = names_of(x);
        names[self.feature] = feature.0;
        let names = self.names(names, feature.0)?;
        Ok(Flattening { order: Order { order, names }, sizes, leads: self.time.is_some() })
    }

    /// The dims of a state: `layers` if there are any, and the dims of `x` without the time and with `hidden`
    /// in place of the features.
    pub(crate) fn like_state(&self, layers: Option<Named>, hidden: Named) -> Result<Flattening> {
        let x = self.x;
        let (mut order, mut sizes, mut names) = (Vec::new(), Vec::new(), Vec::new());
        if let Some((name, size)) = layers {
            (order, sizes, names) = (vec![0], vec![size], vec![name]);
        }
        let first = order.len();
        for dim in self.batch.iter().chain([&self.feature]) {
            order.push(first + dim - usize::from(self.time.is_some_and(|time| time < *dim)));
            sizes.push(x.sizes()[*dim]);
        }
        sizes[order.len() - 1] = hidden.1;
        for dim in (0..x.ndim()).filter(|dim| Some(*dim) != self.time) {
            names.push(if dim == self.feature { hidden.0 } else { x.name(dim) });
        }
        let made = layers.and_then(|(name, _)| name).filter(|name| names[1..].contains(&Some(*name)));
        let names = self.names(names, made.or(hidden.0))?;
        Ok(Flattening { order: Order { order, names }, sizes, leads: layers.is_some() })
    }

    /// The names of a result with the new dim `made`.
    fn names(&self, names: Vec<Option<Name>>, made: Option<Name>) -> Result<Names> {
        let taken = made.filter(|made| names.iter().filter(|name| **name == Some(*made)).count() > 1);
        taken.map_or_else(|| Names::new(self.of.layer, names), |name| Err(self.of.already_has(self.x, name)))
    }

    /// A state of the user, called `what`, as the op takes it.
    pub(crate) fn state(&self, what: &str, given: &Tensor, way: &Flattening) -> Result<Tensor> {
        self.of.check_dtype(&format!("`{what}`"), given, self.x.dtype())?;
        let expected = way.shape()?;
        let state = &expanded(given, way, &expected)?;
        let wrong = |kind| {
            let one_layer = expected.names.get(0).filter(|_| way.leads && way.sizes[0] == 1);
            let is_free = |name: &Name| {
                Some(*name) == one_layer || self.batch.iter().any(|dim| self.x.name(*dim) == Some(*name))
            };
            let (free, own): (Vec<Name>, Vec<Name>) =
                expected.names.iter(expected.sizes.len()).flatten().partition(is_free);
            let mut text = format!("needs `{what}` with the dims {expected}, got {}", given.shape());
            let has = |name: &&Name| given.names().position(**name).is_some();
            if let Some(name) = own.iter().find(|name| given.has_names() && !has(name)) {
                text += &format!(", which lacks '{name}'");
            }
            for (at, name) in free.iter().enumerate().filter(|_| given.has_names()) {
                text += &format!("{}'{name}'", if at == 0 { "; these can be left out: " } else { ", " });
            }
            Err(self.of.wrong(given, kind, format_args!("{text}")))
        };
        if state.ndim() != expected.sizes.len() {
            return wrong(ErrorKind::Shape);
        }
        let wanted = all_names(&expected.names, state.ndim());
        let Some(places) = matched(state, &wanted) else { return wrong(ErrorKind::NameNotFound) };
        if places.iter().zip(&expected.sizes[..]).any(|(place, size)| state.sizes()[*place] != *size) {
            return wrong(ErrorKind::Shape);
        }
        let order: Vec<usize> = crate::list(way.order.order.iter().map(|dim| places[*dim]));
        let of_batch = &order[usize::from(way.leads)..order.len() - 1];
        self.tell(what, given, &names_at(state, of_batch))?;
        way.flat_in_order(state, &order)
    }

    /// Checks that an input, called `what`, has no other names for the batch dims than those before it, which
    /// `x` may not tell.
    fn tell(&self, what: &str, given: &Tensor, names: &[Option<Name>]) -> Result<()> {
        let mut told = self.told.borrow_mut();
        for (at, own) in names.iter().enumerate() {
            let Some(own) = own else { continue };
            if told[at] != Some(*own) && (told[at].is_some() || told.contains(&Some(*own))) {
                let (of, dim) = (self.of, dim_of(self.x, self.batch[at]));
                let message = format_args!(
                    "{of}: {dim} of the input is the dim '{own}' of {what}, and not in the other inputs"
                );
                return Err(of.error(&[self.x, given], ErrorKind::NameMismatch, message));
            }
            told[at] = Some(*own);
        }
        Ok(())
    }

    /// The lengths of all sequences of the batch, one dim. Batch dims that the lengths do not have share
    /// them.
    pub(crate) fn lengths(&self, lengths: &Tensor) -> Result<Tensor> {
        let wrong = |kind, message: String| {
            Err(self.of.error(&[self.x, lengths], kind, format_args!("{}: {message}", self.of)))
        };
        if let Some((kind, message)) = unfit_lengths(lengths.dtype()) {
            return wrong(kind, message);
        }
        let (sizes, wanted) = (sizes_of(self.x, &self.batch), names_at(self.x, &self.batch));
        let fits =
            |(dim, size): (&Option<usize>, &usize)| dim.is_none_or(|dim| lengths.sizes()[dim] == *size);
        let Some(found) = batch_dims(lengths, &wanted).filter(|found| found.iter().zip(&sizes).all(fits))
        else {
            let (dims, own) = (shape_of(&dims_with(&wanted, &sizes))?, lengths.shape());
            let message = format!("the lengths need the dims of the batch, {dims}, and have {own}");
            return wrong(ErrorKind::Shape, message);
        };
        self.tell("the lengths", lengths, &names_where(lengths, &found))?;
        let (value, steps) =
            (lengths.value().to(DType::I64)?, self.time.map_or(1, |time| self.x.sizes()[time]));
        if let Some((kind, message)) = unfit_length(&value.elements_to_check()?, steps) {
            return wrong(kind, message);
        }
        opened(&Tensor::constant(value), &found)?.expand(sizes.clone())?.reshape([numel(&sizes)])
    }
}

/// What is wrong with the dtype of lengths.
pub(crate) fn unfit_lengths(dtype: DType) -> Option<(ErrorKind, String)> {
    let fits = !dtype.is_floating_point() && dtype != DType::Bool;
    (!fits).then(|| (ErrorKind::DType, format!("lengths are integers, not {dtype}")))
}

/// What is wrong with the first length that is not one of a sequence with at most this many steps.
pub(crate) fn unfit_length(lengths: &[i64], steps: usize) -> Option<(ErrorKind, String)> {
    let at = lengths.iter().position(|length| *length < 1 || *length > steps as i64)?;
    let message = format!("length {} at position {at} is not between 1 and {steps} steps", lengths[at]);
    Some((ErrorKind::Value, message))
}

/// A state with the dims that it lacks: that of layers if there is only one, as in a state of a cell; and
/// batch dims if all of its dims have names, along which it is the same for the whole batch, as it is along
/// those of size 1.
fn expanded(given: &Tensor, way: &Flattening, expected: &Shape) -> Result<Tensor> {
    let names = all_names(&expected.names, expected.sizes.len());
    let lacks = |name: &Option<Name>| name.is_some_and(|name| given.names().position(name).is_none());
    let hidden = way.order.order[names.len() - 1];
    let mut batch: Vec<(Name, usize)> = Vec::new();
    if given.ndim() > 0 && !names_of(given).contains(&None) {
        for (dim, name) in names.iter().enumerate().skip(usize::from(way.leads)) {
            batch.extend(name.filter(|_| dim != hidden).map(|name| (name, expected.sizes[dim])));
        }
    }
    let mut missing: Vec<Option<Name>> = crate::list(batch.iter().map(|(name, _)| Some(*name)).filter(lacks));
    let leads = way.leads && way.sizes[0] == 1 && (names[0].is_none() || lacks(&names[0]));
    if leads && given.ndim() < names.len() && given.ndim() + missing.len() < names.len() {
        missing.push(names[0]);
    }
    if given.ndim() + missing.len() != names.len() {
        return Ok(given.clone());
    }
    let mut state = given.clone();
    for name in missing {
        let name = name.map_or(NewName::None, NewName::from);
        state = state.unsqueeze_with(0, UnsqueezeOptions { name })?;
    }
    for (name, size) in batch {
        if state.size(name)? == 1 {
            state = state.expand((name.as_str(), size))?;
        }
    }
    Ok(state)
}

impl Flattening {
    /// A tensor with these dims as the op takes it.
    pub(crate) fn flat(&self, x: &Tensor) -> Result<Tensor> {
        self.flat_in_order(x, &self.order.order)
    }

    fn flat_in_order(&self, x: &Tensor, order: &[usize]) -> Result<Tensor> {
        let x = permuted(x.rename(None)?, order)?;
        let (first, count) = (usize::from(self.leads), self.sizes.len());
        let mut sizes = copied(&self.sizes[..first]);
        sizes.push(numel(&self.sizes[first..count - 1]));
        sizes.push(x.sizes()[count - 1]);
        x.reshape(sizes)
    }

    /// A result of the op with the dims of the user's tensor.
    pub(crate) fn restore(&self, y: &Tensor) -> Result<Tensor> {
        self.order.restore(y.reshape(self.sizes.clone())?)
    }

    /// The dims of the user's tensor.
    fn shape(&self) -> Result<Shape> {
        let mut sizes = self.sizes.clone();
        self.order.order.iter().zip(&self.sizes).for_each(|(dim, size)| sizes[*dim] = *size);
        shape_of(&dims_with(&all_names(&self.order.names, sizes.len()), &sizes))
    }
}

/// The positions in `x` of dims with these names, and of the dims that are not found by name, in their order.
/// `None` if one of these has another name, or in strict mode if only one of the two has a name.
fn matched(x: &Tensor, wanted: &[Option<Name>]) -> Option<Vec<usize>> {
    let places = placed(x, wanted);
    let fits = |name: Option<Name>, own: Option<Name>| {
        name == own || !is_strict() && (name.is_none() || own.is_none())
    };
    places.iter().zip(wanted).all(|(dim, name)| fits(*name, x.name(*dim))).then_some(places)
}

/// For each dim of the batch, the dim of the lengths that belongs to it, if there is one.
fn batch_dims(lengths: &Tensor, wanted: &[Option<Name>]) -> Option<Vec<Option<usize>>> {
    let by_name = by_name(lengths, wanted);
    if by_name.iter().flatten().count() == lengths.ndim() {
        return Some(by_name);
    }
    let all = matched(lengths, wanted).filter(|_| lengths.ndim() == wanted.len())?;
    Some(crate::list(all.into_iter().map(Some)))
}

/// The dim of time of an input that has no such name.
fn time_by_position(of: Finder<'_>, x: &Tensor, feature: usize, time: &Dim) -> Result<usize> {
    let others = others(x, &[feature]);
    let Some(first) = others.first().copied() else {
        let what = format_args!("needs a dim to step along besides the features");
        return Err(of.wrong(x, ErrorKind::Shape, what));
    };
    match time {
        // With one other dim, there is no choice.
        Dim::Index(_) if others.len() == 1 => Ok(first),
        Dim::Index(at) => {
            let place = if *at < 0 { at + x.ndim() as isize } else { *at };
            if let Some(place) = usize::try_from(place).ok().filter(|place| others.contains(place)) {
                return Ok(place);
            }
            let count = others.len();
            let what = format_args!(
                "steps along dim {at}, which is not one of the {count} dims besides the features"
            );
            Err(of.wrong(x, ErrorKind::DimRange, what))
        }
        Dim::Name(name) if x.name(first).is_some() => Err(of.lacks(x, name, &others)),
        Dim::Name(name) if is_strict() => Err(of.strict(&[x], format_args!("an unnamed dim as '{name}'"))),
        _ => Ok(first),
    }
}
