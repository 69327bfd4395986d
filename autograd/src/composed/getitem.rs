//! Indexing with a list of indices: integers, ranges, new dims, tensors of integers and masks. It is composed
//! of ops that have derivatives.

use crate::Tensor;
use crate::chain::*;
use crate::lists;
use crate::vmap::numbers_for_op;
use namegrad_core::args::position;
use namegrad_core::names::apart;
use namegrad_core::{
    Argument, DType, Device, Dim, Dims, Error, ErrorKind, Name, NamedTensor, Names, Result, Shape, Value,
    called,
};
use namegrad_macros::composed;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo};
use std::panic::Location;

/// An entry of a list of indices, as between the brackets of `x[..]` in PyTorch.
///
/// Integers, ranges and tensors convert into it: `[0.into(), (1..3).into(), Index::Ellipsis,
/// (&mask).into()]`.
#[derive(Clone, Debug)]
pub enum Index {
    /// A single position; the dim is removed. A negative position counts from the end.
    At(isize),
    /// Every `step`-th position from `start` up to but not including `end`. Both are clamped to the size of
    /// the dim, and negative values count from the end.
    Slice {
        /// The first position, by default 0.
        start: Option<isize>,
        /// The position after the last, by default the size of the dim.
        end: Option<isize>,
        /// The distance between positions.
        step: usize,
    },
    /// A new unnamed dim of size one.
    New,
    /// All dims that are not mentioned, whole.
    Ellipsis,
    /// A tensor of positions, or a mask over as many dims as the mask has.
    Tensor(Tensor),
}

impl Index {
    const WHOLE: Index = Index::Slice { start: None, end: None, step: 1 };

    /// The number of dims of the tensor that the index applies to.
    fn dims(&self) -> usize {
        match self {
            Index::At(_) | Index::Slice { .. } => 1,
            Index::New | Index::Ellipsis => 0,
            Index::Tensor(tensor) if tensor.dtype() == DType::Bool => tensor.ndim(),
            Index::Tensor(_) => 1,
        }
    }
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Index {
        Index::WHOLE
    }
}

impl From<i32> for Index {
    fn from(at: i32) -> Index {
        Index::At(position(at))
    }
}

impl From<i64> for Index {
    fn from(at: i64) -> Index {
        Index::At(position(at))
    }
}

impl From<isize> for Index {
    fn from(at: isize) -> Index {
        Index::At(at)
    }
}

impl From<u32> for Index {
    fn from(at: u32) -> Index {
        Index::At(position(at))
    }
}

impl From<usize> for Index {
    fn from(at: usize) -> Index {
        Index::At(position(at))
    }
}

impl<T: TryInto<isize>> From<Range<T>> for Index {
    fn from(range: Range<T>) -> Index {
        Index::Slice { start: Some(position(range.start)), end: Some(position(range.end)), step: 1 }
    }
}

impl<T: TryInto<isize>> From<RangeInclusive<T>> for Index {
    fn from(range: RangeInclusive<T>) -> Index {
        let (start, last) = range.into_inner();
        // The end after the last element, -1, cannot be written as a number, so it is `None`.
        let end = Some(position(last).saturating_add(1)).filter(|end| *end != 0);
        Index::Slice { start: Some(position(start)), end, step: 1 }
    }
}

impl<T: TryInto<isize>> From<RangeFrom<T>> for Index {
    fn from(range: RangeFrom<T>) -> Index {
        Index::Slice { start: Some(position(range.start)), end: None, step: 1 }
    }
}

impl<T: TryInto<isize>> From<RangeTo<T>> for Index {
    fn from(range: RangeTo<T>) -> Index {
        Index::Slice { start: None, end: Some(position(range.end)), step: 1 }
    }
}

impl<const K: usize> From<[i64; K]> for Index {
    fn from(positions: [i64; K]) -> Index {
        Index::from(&positions[..])
    }
}

impl From<&[i64]> for Index {
    fn from(positions: &[i64]) -> Index {
        // A list fits its own length.
        NamedTensor::from_slice(positions, [positions.len()])
            .map_or(Index::Ellipsis, |positions| Index::Tensor(Tensor::constant(positions)))
    }
}

impl From<&Tensor> for Index {
    fn from(tensor: &Tensor) -> Index {
        Index::Tensor(tensor.clone())
    }
}

/// The indices of [`Tensor::index`] and [`Tensor::index_put`]. In a call by name they are numbers, lists
/// `[start, end, step]`, `"..."`, `None` for a new dim, or tensors.
#[derive(Clone, Debug)]
pub struct Indices(pub Vec<Index>);

impl From<&[Index]> for Indices {
    fn from(indices: &[Index]) -> Indices {
        Indices(indices.to_vec())
    }
}

impl Argument for Indices {
    type Resolved = Indices;
    type View<'a> = &'a Indices;
    fn look_up(&self, _: &'static str, _: &[&NamedTensor]) -> Result<Indices> {
        Ok(self.clone())
    }
    fn view(resolved: &Indices) -> &Indices {
        resolved
    }
    fn from_value(value: &Value) -> Option<Indices> {
        let end = |value: &Value| Option::<isize>::from_value(value);
        let index = |value: &Value| match value {
            Value::None => Some(Index::New),
            Value::Text(text) if text == "..." => Some(Index::Ellipsis),
            Value::List(range) => match &range[..] {
                [start, stop] => Some(Index::Slice { start: end(start)?, end: end(stop)?, step: 1 }),
                [start, stop, step] => {
                    Some(Index::Slice { start: end(start)?, end: end(stop)?, step: usize::from_value(step)? })
                }
                _ => None,
            },
            at => isize::from_value(at).map(Index::At),
        };
        match value {
            Value::List(list) => crate::list::<_, Option<_>>(list.iter().map(index)).map(Indices),
            one => Some(Indices(vec![index(one)?])),
        }
    }
    fn from_tensors(tensors: &[&NamedTensor]) -> Option<Indices> {
        let index = |x: &&NamedTensor| Index::Tensor(Tensor::constant((*x).clone()));
        Some(Indices(crate::list(tensors.iter().map(index))))
    }
    fn accepted() -> String {
        "an index, a range, a tensor or a list of these".into()
    }
}

/// The indices of [`Tensor::at`]: pairs of a dim and what is taken of it, as a list if all are of one type,
/// `[("time", 3..7), ("channel", 0..2)]`, or as a tuple of two or three pairs, `(("time", 3..7), ("channel",
/// 0))`. In a call by name they are a list of pairs.
#[derive(Clone, Debug)]
pub struct Places(Vec<(Dim, Index)>);

impl<D: Into<Dim>, I: Into<Index>, const K: usize> From<[(D, I); K]> for Places {
    fn from(places: [(D, I); K]) -> Places {
        Places(crate::list(places.into_iter().map(place)))
    }
}
impl<D: Into<Dim>, I: Into<Index>> From<Vec<(D, I)>> for Places {
    fn from(places: Vec<(D, I)>) -> Places {
        Places(crate::list(places.into_iter().map(place)))
    }
}
impl<A: Into<Dim>, I: Into<Index>, B: Into<Dim>, J: Into<Index>> From<((A, I), (B, J))> for Places {
    fn from((a, b): ((A, I), (B, J))) -> Places {
        Places(vec![place(a), place(b)])
    }
}
impl<A: Into<Dim>, I: Into<Index>, B: Into<Dim>, J: Into<Index>, C: Into<Dim>, K: Into<Index>>
    From<((A, I), (B, J), (C, K))> for Places
{
    fn from((a, b, c): ((A, I), (B, J), (C, K))) -> Places {
        Places(vec![place(a), place(b), place(c)])
    }
}

fn place<D: Into<Dim>, I: Into<Index>>((dim, index): (D, I)) -> (Dim, Index) {
    (dim.into(), index.into())
}

impl Argument for Places {
    /// An index for each dim.
    type Resolved = Indices;
    type View<'a> = &'a Indices;
    #[track_caller]
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<Indices> {
        let (dims, given): (Vec<Dim>, Vec<Index>) = self.0.iter().cloned().unzip();
        let dims = Dims::from(dims).look_up(op, of)?;
        let mut indices = vec![Index::WHOLE; of[0].ndim()];
        for (dim, index) in dims.into_iter().zip(given) {
            let takes_one = index.dims() == 1 && dim < indices.len();
            Error::ensure(takes_one, ErrorKind::Unsupported, op, || {
                format!("{} takes an index, a range or a tensor for one dim", called(of[0], dim))
            })?;
            indices[dim] = index;
        }
        Ok(Indices(indices))
    }
    fn view(resolved: &Indices) -> &Indices {
        resolved
    }
    fn from_value(value: &Value) -> Option<Places> {
        let Value::List(pairs) = value else { return None };
        let mut places = Vec::new();
        for pair in pairs {
            let Value::List(pair) = pair else { return None };
            let [dim, index] = &pair[..] else { return None };
            let Indices(mut index) = Indices::from_value(&Value::List(vec![index.clone()]))?;
            places.push((Dim::from_value(dim)?, index.pop()?));
        }
        Some(Places(places))
    }
    fn accepted() -> String {
        "a list of pairs of a dim and an index or a range".into()
    }
}

composed! { getitem;
    //! # Indexing with a list of indices
    /// The part of the tensor that the indices select, one index for each dim from the left. Dims that are
    /// not mentioned are kept whole.
    ///
    /// Tensors of positions broadcast to each other and pick together: their dims are where the picked dims
    /// were if these are side by side, else in front. These dims have the names that the tensors give them;
    /// a dim picked from by one vector without a name keeps its own.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::autograd::Index;
    /// let x = Tensor::new([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])?.refine_names(["N", "C"])?;
    /// assert_eq!(x.index(&[Index::At(-1), (1..).into()])?.to_vec::<f32>()?, [5.0, 6.0]);
    /// let places = Tensor::new([2_i64, 0])?;
    /// assert_eq!(x.index(&[(..).into(), (&places).into()])?.shape().to_string(), "[N=2, C=2]");
    /// // A look-up: the dims of the index in place of the dim that it picks from.
    /// let table = Tensor::randn([("word", 9), ("embed", 4)])?;
    /// let words = Tensor::zeros([("batch", 2), ("seq", 3)])?;
    /// let embedded = table.index(&[(&words.to(DType::I64)?).into()])?;
    /// assert_eq!(embedded.shape().to_string(), "[batch=2, seq=3, embed=4]");
    /// assert_eq!(x.index(&[(&x.gt(2.5)?).into()])?.to_vec::<f32>()?, [3.0, 4.0, 5.0, 6.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Index` for a position out of range or too many indices, `Shape` for a mask that does not fit,
    /// `NameMismatch` for one whose dims have other names, `DType` for an index tensor that has neither
    /// integers nor `bool`, `Ellipsis` for more than one ellipsis.
    index (x; indices: Indices)
        names removes, indices: renames indexed;
    /// The part of the tensor at an index, a range or a tensor of positions along some dims; the others are
    /// kept whole. This is [`index`](Self::index) by the names of dims.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::randn([("batch", 2), ("time", 9), ("channel", 3)])?;
    /// assert_eq!(x.at([("time", 3..7)])?.shape().to_string(), "[batch=2, time=4, channel=3]");
    /// assert_eq!(x.at((("channel", 0), ("time", -2..)))?.shape().to_string(), "[batch=2, time=2]");
    /// let order = Tensor::new([2, 0])?;
    /// assert_eq!(x.at([("channel", &order)])?.sizes(), [2, 9, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`index`](Self::index); `NameNotFound`, `DimRange` for a dim that is out of range or
    /// given twice, `Unsupported` for a mask over several dims.
    at (x; places: Places) names removes, places: renames indexed;
    /// For each element of `index`, the part of the tensor at that position along `dim`. Dims that both have
    /// are matched by name, whatever their order: each part is taken at the same place of the tensor. The
    /// other dims of `index` take the place of `dim`. Negative positions count from the end.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let table = Tensor::randn([("vocab", 9), ("embed", 4)])?;
    /// let ids = Tensor::zeros([("batch", 2), ("seq", 3)])?.to(DType::I64)?;
    /// assert_eq!(table.index_by("vocab", &ids)?.shape().to_string(), "[batch=2, seq=3, embed=4]");
    /// // The log probability of each word.
    /// let log_p = Tensor::randn([("seq", 3), ("vocab", 9), ("batch", 2)])?.log_softmax("vocab")?;
    /// assert_eq!(log_p.index_by("vocab", &ids)?.shape().to_string(), "[seq=3, batch=2]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `DType` unless `index` has integers, `Index` for a position out of range, `Shape` if a dim that both
    /// have has different sizes, `NameMismatch` if `index` has `dim`, `NameNotFound`, `DimRange`.
    ///
    /// # Source
    /// Chiang, Rush, Barak, *Named Tensor Notation* (2023), section 3.4.
    index_by (dim: Dim; x, index) names removes, index: aligned;
}

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn index(x: &Tensor, indices: Indices) -> Result<Tensor> {
        let whole = x;
        const OP: &str = "index";
        let caller = Location::caller();
        let fail = |kind, message: String| {
            Err(Error::new(kind, OP, message).with_operands(given(whole, &indices)).at(caller))
        };
        let mentioned: usize = indices.0.iter().map(Index::dims).sum();
        if mentioned > whole.ndim() {
            return fail(
                ErrorKind::Index,
                format!("too many indices: {mentioned} for a tensor of {} dims", whole.ndim()),
            );
        }
        if indices.0.iter().filter(|index| matches!(index, Index::Ellipsis)).count() > 1 {
            return fail(ErrorKind::Ellipsis, "an index can only have a single ellipsis".into());
        }
        let mut x = whole.clone();
        let mut dim = 0;
        let mut picks: Vec<(usize, Tensor)> = Vec::new();
        for index in &indices.0 {
            match index {
                Index::At(at) => x = x.select(dim, *at)?,
                Index::Slice { start, end, step } => {
                    x = x.slice(dim, start.unwrap_or(0), end.unwrap_or(isize::MAX), *step)?;
                    dim += 1;
                }
                Index::New => {
                    x = x.unsqueeze(dim as isize)?;
                    dim += 1;
                }
                Index::Ellipsis => dim += whole.ndim() - mentioned,
                Index::Tensor(mask) if mask.dtype() == DType::Bool => {
                    if mask.ndim() == 0 {
                        return fail(ErrorKind::Unsupported, "a mask must have at least one dim".into());
                    }
                    if mask.sizes() != &x.sizes()[dim..dim + mask.ndim()] {
                        let (own, at) = (mask.sizes(), dim);
                        let message = format!(
                            "the mask of sizes {own:?} does not match the dims from dim {at} on, of sizes {:?}",
                            &x.sizes()[at..at + own.len()]
                        );
                        return fail(ErrorKind::Shape, message);
                    }
                    let own = x.names().iter(x.ndim()).skip(dim);
                    if let Some((name, own)) = apart(mask.names().iter(mask.ndim()), own) {
                        let message = format!("dim '{name}' of the mask lies on dim '{own}'");
                        return Err(Error::new(ErrorKind::NameMismatch, OP, message)
                            .with_operands(given(whole, &indices))
                            .with_repair(
                                "mask.align_as(&x)?, or mask.rename(None)? if the position is meant",
                            ));
                    }
                    let places = mask.nonzero()?;
                    for d in 0..mask.ndim() {
                        picks.push((dim + d, places.select(1, d)?));
                    }
                    dim += mask.ndim();
                }
                Index::Tensor(places) => {
                    if !matches!(places.dtype(), DType::I64 | DType::I32 | DType::U8) {
                        let message = format!(
                            "a tensor of indices must be int64, int32, uint8 or bool, got {}",
                            places.dtype()
                        );
                        return Err(Error::new(ErrorKind::DType, OP, message)
                            .with_operands(given(whole, &indices))
                            .with_repair("places.to(DType::I64)?")
                            .at(caller));
                    }
                    picks.push((dim, places.clone()));
                    dim += 1;
                }
            }
        }
        if picks.is_empty() {
            return Ok(x);
        }
        picked(&x, &picks).map_err(|error| error.with_operands(given(whole, &indices)))
    }

    #[track_caller]
    pub(super) fn at(x: &Tensor, places: Indices) -> Result<Tensor> {
        index(x, places)
    }

    #[track_caller]
    pub(super) fn index_by(x: &Tensor, index: &Tensor, dim: usize) -> Result<Tensor> {
        const OP: &str = "index_by";
        let fail = |kind, message: String| {
            Err(Error::new(kind, OP, message).with_operands([x.shape(), index.shape()]))
        };
        if !matches!(index.dtype(), DType::I64 | DType::I32 | DType::U8) {
            let message = format!("the index must be int64, int32 or uint8, got {}", index.dtype());
            return Err(Error::new(ErrorKind::DType, OP, message)
                .with_inputs(&[x.value(), index.value()])
                .with_repair("index.to(DType::I64)?"));
        }
        if dim >= x.ndim() {
            return fail(ErrorKind::DimRange, "a 0-d tensor has no dim to take parts of".into());
        }
        // The dims that both have, in `x` and in the index.
        let (mut shared, mut theirs) = (Vec::new(), Vec::new());
        for at in 0..index.ndim() {
            let Some(own) = index.name(at).and_then(|name| x.names().position(name)) else { continue };
            let (size, other) = (x.sizes()[own], index.sizes()[at]);
            if own == dim {
                let message =
                    format!("the index has {}, along which parts are taken", called(x.value(), dim));
                return fail(ErrorKind::NameMismatch, message);
            }
            if size != other {
                let message = format!("{} has size {size}, and {other} in the index", called(x.value(), own));
                return fail(ErrorKind::Shape, message);
            }
            shared.push(own);
            theirs.push(at);
        }
        let new = lists::others(index.ndim(), &theirs);
        let rest = lists::others(x.ndim(), &[&shared[..], &[dim]].concat());
        let (size, each) = (x.sizes()[dim] as i64, lists::product_at(index.sizes(), &new).max(1));
        // Rows of the tensor, which the shared dims and `dim` count.
        let ordered = index.unnamed().permute([&theirs[..], &new].concat())?;
        let is_meta = ordered.device() == Device::Meta;
        let mut flat = if is_meta { Vec::new() } else { numbers_for_op::<i64>(&ordered)? };
        for (number, place) in flat.iter_mut().enumerate() {
            if *place < -size || *place >= size {
                let message =
                    format!("index {place} is out of bounds for {} of size {size}", called(x.value(), dim));
                return fail(ErrorKind::Index, message);
            }
            *place = (number / each) as i64 * size + place.rem_euclid(size);
        }
        let flat = match is_meta {
            true => ordered.to(DType::I64)?.reshape([index.numel()])?,
            false => Tensor::constant(NamedTensor::from_slice(&flat, [flat.len()])?),
        };
        let lying = [&shared[..], &[dim], &rest].concat();
        let counts =
            [lists::product_at(x.sizes(), &lying[..=shared.len()]), lists::product_at(x.sizes(), &rest)];
        let rows = x.unnamed().permute(lying).reshape(counts).index_select(&flat, 0);
        let parts = [lists::at(index.sizes(), &[&theirs[..], &new].concat()), lists::at(x.sizes(), &rest)];
        let (mut order, mut names) = (Vec::new(), Vec::new());
        for at in 0..x.ndim() {
            let place = |list: &[usize], start| Some(start + list.iter().position(|other| *other == at)?);
            if at == dim {
                order.extend(shared.len()..shared.len() + new.len());
                let alone = new.len() == 1;
                names.extend(new.iter().map(|at| index.name(*at).or(x.name(dim).filter(|_| alone))));
            } else {
                order.extend(place(&shared, 0).or(place(&rest, shared.len() + new.len())));
                names.push(x.name(at));
            }
        }
        Ok(rows.reshape(parts.concat()).permute(order)?.named(Names::new(OP, names)?))
    }
}

/// The tensor and the tensors among its indices, as errors show them.
#[cold]
fn given(x: &Tensor, indices: &Indices) -> Vec<Shape> {
    let mut given = vec![x.shape()];
    for index in &indices.0 {
        if let Index::Tensor(places) = index {
            given.push(places.shape());
        }
    }
    given
}

/// The elements of `x` at the positions given by the tensors for their dims.
#[track_caller]
fn picked(x: &Tensor, picks: &[(usize, Tensor)]) -> Result<Tensor> {
    const OP: &str = "index";
    let sizes = common_sizes(picks)?;
    // For each element of the broadcast index tensors, the position in the indexed dims flattened into one.
    let mut flat = vec![0_i64; sizes.iter().product()];
    for (dim, places) in picks {
        let size = x.sizes()[*dim] as i64;
        let places = numbers_for_op::<i64>(&places.unnamed().expand(&sizes[..])?)?;
        for (flat, place) in flat.iter_mut().zip(places) {
            if place < -size || place >= size {
                let message =
                    format!("index {place} is out of bounds for {} of size {size}", called(x.value(), *dim));
                return Err(Error::new(ErrorKind::Index, OP, message));
            }
            *flat = *flat * size + place.rem_euclid(size);
        }
    }
    let dims: Vec<usize> = crate::list(picks.iter().map(|(dim, _)| *dim));
    let rest = lists::others(x.ndim(), &dims);
    let rows = lists::product_at(x.sizes(), &dims);
    let lying = [&[rows][..], &lists::at(x.sizes(), &rest)].concat();
    let index = Tensor::constant(NamedTensor::from_slice(&flat, [flat.len()])?);
    let rows =
        x.unnamed().permute([&dims[..], &rest].concat()).reshape(&lying[..]).index_select(&index, 0)?;
    let made = [&sizes[..], &lying[1..]].concat();
    let y = rows.reshape(&made[..])?;
    // If the indexed dims were adjacent, the new dims go to their place.
    let together = dims.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let before = if together { rest.partition_point(|dim| *dim < dims[0]) } else { 0 };
    let new = sizes.len();
    let mut order: Vec<usize> = crate::list(0..made.len());
    order[..new + before].rotate_left(new);
    let mut given = names_of(picks, new)?;
    if let ([dim], [name @ None]) = (&dims[..], &mut given[..]) {
        *name = x.name(*dim);
    }
    let mut names: Vec<Option<Name>> = crate::list(rest.iter().map(|dim| x.name(*dim)));
    names.splice(before..before, given);
    y.permute(order)?.rename(Some(Names::new(OP, names)?))
}

/// The names that the index tensors give to the `ndim` dims that they broadcast to.
#[track_caller]
fn names_of(picks: &[(usize, Tensor)], ndim: usize) -> Result<Vec<Option<Name>>> {
    let mut names = vec![None; ndim];
    for (_, places) in picks {
        let from = ndim - places.ndim();
        for (dim, name) in names[from..].iter_mut().enumerate() {
            let own = places.name(dim);
            match (*name, own) {
                (Some(one), Some(other)) if one != other => {
                    let message = format!("index tensors call the same dim '{one}' and '{other}'");
                    return Err(Error::new(ErrorKind::NameMismatch, "index", message)
                        .with_operands(picks.iter().map(|(_, places)| places.shape()))
                        .with_repair("index.rename(None)? for one of them"));
                }
                _ => *name = name.or(own),
            }
        }
    }
    Ok(names)
}

/// The sizes that the index tensors broadcast to.
#[track_caller]
fn common_sizes(picks: &[(usize, Tensor)]) -> Result<Vec<usize>> {
    let ndim = picks.iter().map(|(_, places)| places.ndim()).max().unwrap_or(0);
    let mut sizes = vec![1; ndim];
    for (_, places) in picks {
        let from = ndim - places.ndim();
        for (size, own) in sizes[from..].iter_mut().zip(places.sizes()) {
            if *size != *own && *size != 1 && *own != 1 {
                let message = "shape mismatch: the tensors of indices do not broadcast to each other";
                return Err(Error::new(ErrorKind::Index, "index", message));
            }
            if *own != 1 {
                *size = *own;
            }
        }
    }
    Ok(sizes)
}
