//! Views and rearrangements. Views never copy. Dims keep their names when they move; new dims are unnamed
//! unless a name is given.

use crate::tensor::NamedTensor;
use namegrad_macros::ops;

ops! { shape;
    //! # Views and rearrangements
    /// The tensor with two dims swapped; a view.
    transpose transpose_ (x; dim0: Dim, dim1: Dim) names permutes;
    /// The transposed matrix; a vector or a 0-d tensor is unchanged. A view.
    t t_ (x) names permutes;
    /// The tensor with its last two dims swapped; a view.
    mt (x) names permutes;
    /// The tensor with its dims in the order `dims`, which lists all of them; a view.
    permute (x; dims: Dims) names permutes;
    /// The tensor with the dims `source` moved to the positions `destination`; the other dims keep their
    /// order. A view.
    movedim (x; source: Dims, destination: Dims) names permutes;
    /// The tensor without the given dims that have size one; a view.
    squeeze squeeze_ (x; dim: Dims = ..) names removes;
    /// The tensor with a new dim of size one at position `dim`, which can be the number of dims; a view.
    unsqueeze unsqueeze_ (x; dim: Place, name: NewName = None);
    /// The tensor with dims of size one expanded to `size` without copying; -1 keeps a size. A view.
    ///
    /// Sizes with names mean the dims of these names, in any order: `expand(("N", 6))` expands `N` alone, or
    /// adds it on the left, and a list of all dims gives the result in the order of the list. Sizes without
    /// names mean the last dims, and new dims are added on the left, as in PyTorch.
    expand (x; size: Expansion) names keeps, size: matched;
    /// The elements in the same order with other sizes, one of which can be -1. The result is a view; if that
    /// is impossible, it is an error. Names are dropped unless new ones are given or the sizes do not change;
    /// [`flatten`](Self::flatten) and [`unflatten`](Self::unflatten) keep them.
    view (x; size: Shape) names reshapes;
    /// The elements in the same order with other sizes, one of which can be -1. The result is a view if
    /// possible, otherwise a copy. Names are dropped unless new ones are given or the sizes do not change;
    /// [`flatten`](Self::flatten) and [`unflatten`](Self::unflatten) keep them.
    reshape (x; shape: Shape) names reshapes;
    /// The tensor with the order of the elements reversed along `dims`; a view.
    flip (x; dims: Dims);
    /// The tensor repeated along each dim as many times as `repeats` says. Names in `repeats` are matched as
    /// in [`expand`](Self::expand).
    repeat (x; repeats: Expansion) names keeps, repeats: matched;
    /// The same elements in row-major order without gaps; the tensor itself if it is already contiguous.
    contiguous (x);
}

pub(crate) mod kernels {
    use super::NamedTensor;
    use crate::args::{Expanded, OpenDim, OpenShape};
    use crate::dim::{Positions, resolve_index};
    use crate::dim::{called, in_rust, others};
    use crate::error::{Error, ErrorKind, Result};
    use crate::layout::{Sizes, Strides, around, contiguous_strides};
    use crate::names::{Name, Names, rules};
    use crate::ops::cast::packed;
    use crate::short::Short;
    use crate::sizes::checked_numel;
    use std::panic::Location;

    /// The dims of `x` in the order `dims`.
    pub(crate) fn reorder(x: &NamedTensor, dims: &[usize]) -> NamedTensor {
        x.view_as(x.sizes_of(dims), x.strides_of(dims), x.offset(), rules::permute(x.names(), dims))
    }

    pub(crate) fn transpose(x: &NamedTensor, dim0: usize, dim1: usize) -> Result<NamedTensor> {
        let mut dims = others(x.ndim(), &[]);
        if x.ndim() > 0 {
            dims.swap(dim0, dim1);
        }
        Ok(reorder(x, &dims))
    }

    #[track_caller]
    pub(crate) fn t(x: &NamedTensor) -> Result<NamedTensor> {
        match x.ndim() {
            0 | 1 => Ok(x.clone()),
            2 => Ok(reorder(x, &[1, 0])),
            ndim => {
                let message = format!("t() expects a tensor with <= 2 dimensions, but self is {ndim}D");
                Err(Error::about(&[x], ErrorKind::Shape, "t", message).with_repair("x.transpose(-2, -1)?"))
            }
        }
    }

    #[track_caller]
    pub(crate) fn mt(x: &NamedTensor) -> Result<NamedTensor> {
        let ndim = x.ndim();
        if ndim < 2 {
            let message =
                format!("mt is only supported on matrices or batches of matrices, got a {ndim}-D tensor");
            return Err(Error::about(&[x], ErrorKind::Shape, "mt", message));
        }
        transpose(x, ndim - 2, ndim - 1)
    }

    #[track_caller]
    pub(crate) fn permute(x: &NamedTensor, dims: Positions) -> Result<NamedTensor> {
        if dims.len() != x.ndim() {
            let message = format!("{} dims are given for a tensor of {}: all must be", dims.len(), x.ndim());
            let missing = (0..x.ndim()).filter(|dim| !dims.contains(dim));
            let all: Vec<String> = dims.iter().copied().chain(missing).map(|dim| in_rust(x, dim)).collect();
            let error = Error::about(&[x], ErrorKind::DimRange, "permute", message);
            return Err(match dims.iter().all(|dim| x.name(*dim).is_some()) == x.has_names() {
                true => error.with_repair(format!("x.permute([{}])?", crate::joined(&all, ", "))),
                false => error,
            });
        }
        Ok(reorder(x, &dims))
    }

    #[track_caller]
    pub(crate) fn movedim(x: &NamedTensor, source: Positions, destination: Positions) -> Result<NamedTensor> {
        if source.len() != destination.len() {
            let (from, to) = (source.len(), destination.len());
            let message = format!("cannot move {from} dims to {to} places: each dim needs one");
            return Err(Error::about(&[x], ErrorKind::DimRange, "movedim", message));
        }
        // The dims that are not moved, from the last on.
        let mut rest = others(x.ndim(), &source);
        rest.reverse();
        let mut dims = Positions::new();
        for place in 0..x.ndim() {
            let moved = destination.iter().position(|to| *to == place).map(|k| source[k]);
            dims.extend_from_slice(moved.or_else(|| rest.pop()).as_slice());
        }
        Ok(reorder(x, &dims))
    }

    pub(crate) fn squeeze(x: &NamedTensor, dims: Positions) -> Result<NamedTensor> {
        let mut removed = dims;
        removed.retain(|dim| x.sizes()[*dim] == 1);
        Ok(without(x, &removed))
    }

    /// `x` without these dims; only the first position of each is kept.
    pub(crate) fn without(x: &NamedTensor, removed: &[usize]) -> NamedTensor {
        let kept = others(x.ndim(), removed);
        x.view_as(x.sizes_of(&kept), x.strides_of(&kept), x.offset(), rules::remove(x.input(), removed))
    }

    #[track_caller]
    pub(crate) fn unsqueeze(x: &NamedTensor, at: isize, name: Option<Name>) -> Result<NamedTensor> {
        let at =
            resolve_index("unsqueeze", at, x.ndim() + 1).map_err(|error| error.with_operands([x.shape()]))?;
        let (mut sizes, mut strides) = (Sizes::from_slice(x.sizes()), Strides::from_slice(x.strides()));
        let mut names = x.names().to_vec(x.ndim());
        sizes.insert(at, 1);
        strides.insert(at, 1);
        names.insert(at, name);
        Ok(x.view_as(
            sizes,
            strides,
            x.offset(),
            Names::new("unsqueeze", names).map_err(|error| error.with_inputs(&[x]))?,
        ))
    }

    /// The sizes as they are written: -1 where one is left open.
    pub(crate) fn written(dims: &[OpenDim]) -> Vec<isize> {
        dims.iter().map(|dim| dim.size.map_or(-1, |size| size as isize)).collect()
    }

    /// The sizes as they are written, with their names; some names are a tuple.
    #[cold]
    fn literal(dims: &[OpenDim]) -> String {
        let each = dims.iter().zip(written(dims)).map(|(dim, size)| match dim.name {
            Some(name) => format!("(\"{name}\", {size})"),
            None => size.to_string(),
        });
        let list = crate::joined(&crate::list::<_, Vec<_>>(each), ", ");
        let named = dims.iter().filter(|dim| dim.name.is_some()).count();
        if named == 0 || named == dims.len() { format!("[{list}]") } else { format!("({list})") }
    }

    /// The names given for the dims of a result, beside the `own` names, aligned to the right.
    #[track_caller]
    fn named(op: &'static str, x: &NamedTensor, wanted: &[OpenDim]) -> Result<Names> {
        let new = wanted.len() - x.ndim();
        let mut names = Vec::with_capacity(wanted.len());
        for (at, dim) in wanted.iter().enumerate() {
            let own = at.checked_sub(new).and_then(|own| x.name(own));
            if let (Some(own), Some(given)) = (own, dim.name)
                && own != given
            {
                let message = format!(
                    "the size of '{given}' (index {at} of the sizes) is at the place of dim '{own}' (index {} of {}); sizes are matched by name if every dim has one",
                    at - new,
                    x.names().list(x.ndim())
                );
                return Err(Error::about(&[x], ErrorKind::NameMismatch, op, message));
            }
            names.push(dim.name.or(own));
        }
        Names::new(op, names).map_err(|error| error.with_inputs(&[x]))
    }

    /// Sizes as a call has them: with names, if all dims have one. `wanted` are the last of them.
    #[cold]
    fn by_name(x: &NamedTensor, wanted: &[OpenDim], sizes: &[isize]) -> String {
        let name = |at: usize| {
            let given = (at + wanted.len()).checked_sub(sizes.len()).and_then(|at| wanted[at].name);
            given.or((at + x.ndim()).checked_sub(sizes.len()).and_then(|own| x.name(own)))
        };
        let named = |(at, size): (usize, &isize)| {
            let name = name(at).filter(|own| (0..at).all(|before| name(before) != Some(*own)))?;
            Some(format!("(\"{name}\", {size})"))
        };
        match sizes.iter().enumerate().map(named).collect::<Option<Vec<String>>>() {
            Some(named) => format!("[{}]", crate::joined(&named, ", ")),
            None => format!("{sizes:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn expand(x: &NamedTensor, size: Expanded) -> Result<NamedTensor> {
        let (x, shape) = (&size.in_order(x), &size.sizes);
        let ndim = x.ndim();
        if shape.len() < ndim {
            let message = format!(
                "the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({ndim})",
                shape.len()
            );
            let kept = std::iter::repeat_n(-1, ndim - shape.len());
            let all: Vec<isize> = kept.chain(written(shape)).collect();
            return Err(Error::about(&[x], ErrorKind::Shape, "expand", message)
                .with_repair(format!("x.expand({})?, where -1 keeps a size", by_name(x, shape, &all))));
        }
        let new = shape.len() - ndim;
        let mut to = Sizes::new();
        let mut strides = Strides::new();
        for (dim, open) in shape.iter().enumerate() {
            let own = dim.checked_sub(new).map(|own| (x.sizes()[own], x.strides()[own]));
            let (size, stride) = match (own, open.size) {
                (Some(own), None) => own,
                (Some((size, stride)), Some(wanted)) if size == wanted => (size, stride),
                (Some((1, _)) | None, Some(wanted)) => (wanted, 0),
                (None, None) => {
                    let message = format!(
                        "the expanded size -1 isn't allowed in a leading, non-existing dimension {dim}: -1 keeps the size of a dim that is \
                         there"
                    );
                    return Err(Error::about(&[x], ErrorKind::Shape, "expand", message));
                }
                (Some((size, _)), Some(wanted)) => {
                    let message = format!(
                        "The expanded size of the tensor ({wanted}) must match the existing size ({size}) at non-singleton {}; the sizes \
                         asked for are {:?}",
                        called(x, dim - new),
                        written(shape)
                    );
                    let mut kept = written(shape);
                    kept[dim] = -1;
                    return Err(Error::about(&[x], ErrorKind::Shape, "expand", message).with_repair(
                        match wanted.checked_rem(size) {
                            Some(0) => {
                                let times = |(at, open): (usize, &OpenDim)| match at.checked_sub(new) {
                                    Some(own) => open.size.map_or(1, |size| size / x.sizes()[own].max(1)),
                                    None => open.size.unwrap_or(1),
                                };
                                let times = shape.iter().enumerate().map(times).map(|times| times as isize);
                                format!(
                                    "x.expand({})?, which keeps the size, or x.repeat({})?, which repeats the elements",
                                    by_name(x, shape, &kept),
                                    by_name(x, shape, &times.collect::<Vec<isize>>())
                                )
                            }
                            _ => format!("x.expand({})?, which keeps the size", by_name(x, shape, &kept)),
                        },
                    ));
                }
            };
            to.push(size);
            strides.push(stride);
        }
        checked_numel("expand", &to, x.dtype().itemsize())?;
        Ok(x.view_as(to, strides, x.offset(), named("expand", x, shape)?))
    }

    /// The sizes that `wanted` asks for, with the open one filled in.
    #[track_caller]
    fn infer_sizes(op: &'static str, x: &NamedTensor, wanted: &[OpenDim]) -> Result<Sizes> {
        let numel = x.numel();
        let caller = Location::caller();
        let invalid = || {
            let given = wanted.iter().filter_map(|dim| dim.size);
            let known = given.fold(1usize, |known, size| known.saturating_mul(size));
            let why = match wanted.iter().any(|dim| dim.size.is_none()) {
                true => format!("{numel} elements are no multiple of {known}"),
                false => format!("it has {known} elements"),
            };
            let message =
                format!("shape '{:?}' is invalid for input of size {numel}: {why}", written(wanted));
            let error = Error::about(&[x], ErrorKind::Shape, op, message).at(caller);
            // The first size that does not fit can be inferred if the others do. Dims of `x` keep theirs.
            let sizes: Vec<usize> = wanted
                .iter()
                .map(|dim| kept(x, dim).map_or(dim.size.unwrap_or(1), |own| x.sizes()[own]))
                .collect();
            let rest = |open: &usize| -> Option<usize> {
                let others = sizes.iter().enumerate().filter(|(dim, _)| dim != open);
                others.map(|(_, size)| *size).try_fold(1usize, usize::checked_mul)
            };
            let fits = |open: &usize| {
                let made = rest(open).filter(|rest| *rest > 0 && numel.is_multiple_of(*rest));
                made.is_some_and(|rest| {
                    let mut all = sizes.clone();
                    all[*open] = numel / rest;
                    kept(x, &wanted[*open]).is_none() && check_kept(op, x, &all, wanted).is_ok()
                })
            };
            match (0..sizes.len()).find(fits) {
                Some(open) if numel > 0 && wanted.iter().all(|dim| dim.size.is_some()) => {
                    let text = |(at, dim): (usize, &OpenDim)| {
                        let size = if at == open { "-1".into() } else { sizes[at].to_string() };
                        dim.name.map_or(size.clone(), |name| format!("(\"{name}\", {size})"))
                    };
                    let list: Vec<String> = wanted.iter().enumerate().map(text).collect();
                    error.with_repair(format!(
                        "x.{op}([{}])?, where -1 is inferred",
                        crate::joined(&list, ", ")
                    ))
                }
                _ => error,
            }
        };
        if wanted.iter().filter(|dim| dim.size.is_none()).count() > 1 {
            let message = "only one dimension can be inferred, and more sizes than one are -1";
            return Err(Error::about(&[x], ErrorKind::Shape, op, message));
        }
        let given = || wanted.iter().filter_map(|dim| dim.size);
        let known = match given().any(|size| size == 0) {
            true => 0,
            false => given().try_fold(1usize, usize::checked_mul).ok_or_else(invalid)?,
        };
        let mut sizes = Sizes::new();
        for dim in wanted {
            sizes.push(match dim.size {
                None if known > 0 && numel.is_multiple_of(known) => numel / known,
                None => return Err(invalid()),
                Some(size) => size,
            });
        }
        let made = if wanted.iter().any(|dim| dim.size.is_none()) { numel } else { known };
        if made != numel {
            return Err(invalid());
        }
        if numel == 0 {
            // The other sizes of an empty tensor are checked like those of a new tensor.
            checked_numel(op, &sizes, x.dtype().itemsize())
                .map_err(|error| error.with_operands([x.shape()]))?;
        }
        Ok(sizes)
    }

    /// The strides with which `x` has `sizes`, if no copy is needed: each group of dims of `x` without gaps
    /// is split or merged.
    pub(crate) fn view_strides(x: &NamedTensor, sizes: &[usize]) -> Option<Strides> {
        if x.numel() == 0 || x.is_contiguous() {
            return Some(contiguous_strides(sizes));
        }
        let mut strides: Strides = Short::from_elem(0, sizes.len());
        let own: Vec<(usize, isize)> = x
            .sizes()
            .iter()
            .copied()
            .zip(x.strides().iter().copied())
            .filter(|(size, _)| *size != 1)
            .collect();
        let mut to = sizes.len();
        let mut end = own.len();
        while end > 0 {
            // A group: dims of `x` that step evenly, from `start` to `end`.
            let mut start = end - 1;
            let mut elements = own[start].0;
            while start > 0 && own[start - 1].1 == own[start].1 * own[start].0 as isize {
                start -= 1;
                elements *= own[start].0;
            }
            let mut step = own[end - 1].1;
            let mut left = elements;
            while to > 0 && (left > 1 || sizes[to - 1] == 1) {
                to -= 1;
                if !left.is_multiple_of(sizes[to]) {
                    return None;
                }
                strides[to] = step;
                step *= sizes[to] as isize;
                left /= sizes[to];
            }
            if left != 1 {
                return None;
            }
            end = start;
        }
        Some(strides)
    }

    /// Checks that dims of `x` have the same order in `wanted`: a reshape moves no elements.
    #[track_caller]
    fn check_order(op: &'static str, x: &NamedTensor, wanted: &[OpenDim]) -> Result<()> {
        let kept = |dim: &OpenDim| kept(x, dim);
        if !x.has_names() || wanted.iter().filter_map(kept).is_sorted() {
            return Ok(());
        }
        let message = format!(
            "the sizes {} name dims of {} in another order, and a reshape only reads the elements one by one",
            literal(wanted),
            x.names().list(x.ndim())
        );
        let error = Error::about(&[x], ErrorKind::Misaligned, op, message);
        let names: Vec<Option<Name>> =
            wanted.iter().filter(|dim| kept(dim).is_some()).map(|dim| dim.name).collect();
        if names.len() < x.ndim() {
            return Err(error);
        }
        let aligned = x.align_to(names.iter().copied().flatten().collect::<Vec<Name>>());
        let is_split = aligned.is_ok_and(|x| {
            infer_sizes(op, &x, wanted).is_ok_and(|sizes| check_kept(op, &x, &sizes, wanted).is_err())
        });
        let order = rules::argument(&Names::unchecked(names), x.ndim());
        let is_whole = wanted
            .iter()
            .all(|dim| kept(dim).is_some_and(|own| dim.size.is_none_or(|size| size == x.sizes()[own])));
        Err(error.with_repair(match (is_whole, is_split) {
            (true, _) => format!("x.align_to({order})?"),
            (_, true) => without_names(op, wanted),
            _ => format!("x.align_to({order})?.reshape({})?", literal(wanted)),
        }))
    }

    /// The repair of a reshape that gives names of dims of `x` to other dims.
    #[cold]
    fn without_names(op: &str, wanted: &[OpenDim]) -> String {
        format!("x.rename(None)?.{op}({})?, if the names are those of other dims", literal(wanted))
    }

    /// The dim of `x` whose name a new dim has.
    fn kept(x: &NamedTensor, dim: &OpenDim) -> Option<usize> {
        dim.name.and_then(|name| x.names().position(name))
    }

    /// Checks that a dim with the name of a dim of `x` has the same elements, so that as many are before and
    /// after it. Otherwise the result would have the name for another dim.
    #[track_caller]
    fn check_kept(op: &'static str, x: &NamedTensor, sizes: &[usize], wanted: &[OpenDim]) -> Result<()> {
        if !x.has_names() {
            return Ok(());
        }
        for (dim, open) in wanted.iter().enumerate() {
            let (Some(own), Some(name)) = (kept(x, open), open.name) else { continue };
            let is_one = x.sizes()[own] == 1 && sizes[dim] == 1;
            if is_one || around(x.sizes(), own) == around(sizes, dim) {
                continue;
            }
            let message = format!(
                "the sizes {} give the name '{name}' of {} to a dim of other elements",
                literal(wanted),
                x.shape()
            );
            return Err(
                Error::about(&[x], ErrorKind::Misaligned, op, message).with_repair(without_names(op, wanted))
            );
        }
        Ok(())
    }

    /// The given names; if there are none, the names of `x` are kept if its sizes do not change.
    #[track_caller]
    fn names_of(op: &'static str, x: &NamedTensor, sizes: &[usize], wanted: &[OpenDim]) -> Result<Names> {
        if wanted.iter().any(|dim| dim.name.is_some()) {
            let names =
                Names::new(op, wanted.iter().map(|dim| dim.name)).map_err(|error| error.with_inputs(&[x]))?;
            check_kept(op, x, sizes, wanted)?;
            return Ok(names);
        }
        Ok(if x.sizes() == sizes { x.names().clone() } else { Names::none() })
    }

    #[track_caller]
    pub(crate) fn view(x: &NamedTensor, wanted: OpenShape) -> Result<NamedTensor> {
        check_order("view", x, &wanted)?;
        let sizes = infer_sizes("view", x, &wanted)?;
        let Some(strides) = view_strides(x, &sizes) else {
            let message = format!(
                "view size is not compatible with input tensor's size {:?} and stride {:?} (at least one dimension spans \
                 across two contiguous subspaces)",
                x.sizes(),
                x.strides()
            );
            return Err(Error::about(&[x], ErrorKind::Shape, "view", message)
                .with_repair(format!("x.reshape({})?, which copies where it must", literal(&wanted))));
        };
        let names = names_of("view", x, &sizes, &wanted)?;
        Ok(x.view_as(sizes, strides, x.offset(), names))
    }

    #[track_caller]
    pub(crate) fn reshape(x: &NamedTensor, wanted: OpenShape) -> Result<NamedTensor> {
        check_order("reshape", x, &wanted)?;
        let sizes = infer_sizes("reshape", x, &wanted)?;
        let names = names_of("reshape", x, &sizes, &wanted)?;
        reshaped("reshape", x, sizes, names)
    }

    /// The same elements with other sizes; a copy if necessary.
    #[track_caller]
    pub(crate) fn reshaped(
        op: &'static str,
        x: &NamedTensor,
        sizes: Sizes,
        names: Names,
    ) -> Result<NamedTensor> {
        if let Some(strides) = view_strides(x, &sizes) {
            return Ok(x.view_as(sizes, strides, x.offset(), names));
        }
        let dense = packed(op, x, x.dtype())?;
        let strides = contiguous_strides(&sizes);
        Ok(dense.view_as(sizes, strides, 0, names))
    }

    pub(crate) fn flip(x: &NamedTensor, dims: Positions) -> Result<NamedTensor> {
        if x.numel() == 0 {
            return Ok(x.clone());
        }
        let mut strides = Strides::from_slice(x.strides());
        let mut offset = x.offset() as isize;
        for dim in dims {
            offset += (x.sizes()[dim] as isize - 1) * strides[dim];
            strides[dim] = -strides[dim];
        }
        Ok(x.view_as(Sizes::from_slice(x.sizes()), strides, offset as usize, x.names().clone()))
    }

    #[track_caller]
    pub(crate) fn repeat(x: &NamedTensor, repeats: Expanded) -> Result<NamedTensor> {
        let (x, repeats) = (&repeats.in_order(x), &repeats.sizes);
        let ndim = x.ndim();
        if repeats.len() < ndim || repeats.iter().any(|dim| dim.size.is_none()) {
            let given = written(repeats);
            let message = format!(
                "there must be a number of repeats for each of the {ndim} dims, none of them negative, got {given:?}"
            );
            let error = Error::about(&[x], ErrorKind::Shape, "repeat", message);
            return Err(match repeats.iter().any(|dim| dim.size.is_none()) {
                true => error,
                false => {
                    let all: Vec<isize> = std::iter::repeat_n(1, ndim - given.len()).chain(given).collect();
                    error.with_repair(format!("x.repeat({all:?})?"))
                }
            });
        }
        // Each dim becomes (times, size) with stride 0 for `times`; merging the two is the only copy.
        let new = repeats.len() - ndim;
        let (mut sizes, mut strides, mut merged) = (Sizes::new(), Strides::new(), Sizes::new());
        for (dim, times) in repeats.iter().filter_map(|dim| dim.size).enumerate() {
            let (size, stride) =
                dim.checked_sub(new).map_or((1, 0), |own| (x.sizes()[own], x.strides()[own]));
            sizes.extend([times, size]);
            strides.extend([0, stride]);
            merged.push(times.saturating_mul(size));
        }
        checked_numel("repeat", &merged, x.dtype().itemsize())?;
        let names = named("repeat", x, repeats)?;
        let spread = x.view_as(sizes, strides, x.offset(), Names::none());
        let dense = packed("repeat", &spread, x.dtype())?;
        let strides = contiguous_strides(&merged);
        Ok(dense.view_as(merged, strides, 0, names))
    }

    #[track_caller]
    pub(crate) fn contiguous(x: &NamedTensor) -> Result<NamedTensor> {
        if x.is_contiguous() { Ok(x.clone()) } else { packed("contiguous", x, x.dtype()) }
    }
}

impl NamedTensor {
    /// The tensor with its dims in the order `dims`, which lists all of them; a view.
    pub fn reordered(&self, dims: &[usize]) -> NamedTensor {
        kernels::reorder(self, dims)
    }

    /// The tensor with its dims in reverse order; a view.
    pub fn reversed_dims(&self) -> NamedTensor {
        let dims: Vec<usize> = (0..self.ndim()).rev().collect();
        kernels::reorder(self, &dims)
    }
}
