//! Tensors of different numbers of dims packed into one, and unpacked.

use super::reader::STAR;
use super::*;
use crate::AsTensor;
use namegrad_core::args::{OpenDim, OpenShape};
use namegrad_core::{IntoShape, Shape};
use std::ops::Range;

/// # Packing by a pattern
impl Tensor {
    /// Packs tensors into one: the dims that meet `*` in the pattern, any number of them, are flattened into
    /// one, along which the tensors are concatenated. Also returns the shapes of these dims, for
    /// [`unpack`](Self::unpack). The words of the pattern are those of [`rearrange`](Self::rearrange);
    /// `(token: *)` names the packed dim. Tensors of different dtypes are promoted, as [`cat`](Self::cat) does.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let class = Tensor::randn([("N", 2), ("embed", 5)])?;
    /// let patches = Tensor::randn([("N", 2), ("H", 3), ("W", 4), ("embed", 5)])?;
    /// let (tokens, shapes) = Tensor::pack(&[&class, &patches], "N (token: *) embed")?;
    /// assert_eq!(tokens.shape().to_string(), "[N=2, token=13, embed=5]");
    /// let parts = tokens.unpack(&shapes, "N * embed")?;
    /// assert_eq!(parts[1].shape(), patches.shape());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Value` for an invalid pattern or no tensors, `Shape` if a tensor has too few dims or other sizes,
    /// `NameMismatch` or `Misaligned` if names do not match the pattern.
    #[track_caller]
    pub fn pack(tensors: impl IntoIterator<Item: AsTensor>, pattern: &str) -> Result<(Tensor, Vec<Shape>)> {
        packed(&crate::plain::tensors(tensors)?, pattern)
    }

    /// Unpacks what [`pack`](Self::pack) packed: for each shape, a tensor with these dims in place of the one
    /// that meets `*`. One size can be -1 and is then inferred. Views.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let parts = Tensor::arange(0, 6, 1)?.unpack([vec![], vec![-1], vec![1, 2]], "*")?;
    /// assert_eq!(parts[1].to_vec::<i64>()?, [1, 2, 3]);
    /// assert_eq!(parts[2].sizes(), [1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Value` for an invalid pattern or more than one -1, `Shape` if the sizes do not add up, `NameMismatch`
    /// or `Misaligned` if names do not match the pattern, `DuplicateName`.
    #[track_caller]
    pub fn unpack<S: IntoShape>(
        &self,
        shapes: impl IntoIterator<Item = S>,
        pattern: &str,
    ) -> Result<Vec<Tensor>> {
        let mut all = Vec::new();
        for shape in shapes {
            all.push(shape.into_open_shape().map_err(|error| error.of("unpack"))?);
        }
        unpacked(self, all, pattern)
    }
}

/// The one side of the pattern, the position of `*`, and its name.
#[track_caller]
fn star<'p>(reader: Reader<'p>) -> Result<(Side<'p>, usize, Option<Word<'p>>)> {
    let mut side = reader.read(0, reader.pattern.len())?;
    let mut found = None;
    for (number, place) in side.places.iter().enumerate() {
        match side.words_of(place) {
            [word] if word.text == STAR => found = Some(number),
            [_] if !place.is_group && side.name_of(place).is_some() && !side.is_dots(place) => {}
            _ => {
                return reader.fail(place.text.start, "the pattern has words, and '*' for the packed dims");
            }
        }
    }
    let Some(star) = found else {
        return reader.fail(reader.pattern.len(), "the pattern has no '*' for the packed dims");
    };
    side.places[star].is_group = false; // any number of dims
    let name = side.places[star].label.take();
    Ok((side, star, name))
}

impl<'p> Reader<'p> {
    /// The names of the words before or after `*`.
    #[track_caller]
    fn names(self, side: &Side<'p>, places: Range<usize>) -> Result<Vec<Option<Name>>> {
        let mut names = Vec::new();
        for place in &side.places[places] {
            let Some(word) = side.name_of(place) else { continue };
            names.push(Some(Name::new(word.text).map_err(|error| error.of(self.op))?));
        }
        Ok(names)
    }
}

#[track_caller]
fn packed(tensors: &[Tensor], pattern: &str) -> Result<(Tensor, Vec<Shape>)> {
    const OP: &str = "pack";
    let reader = Reader { op: OP, pattern };
    let (side, star, name) = star(reader)?;
    let count = side.places.len();
    let (mut flat, mut shapes) = (Vec::new(), Vec::new());
    for x in tensors {
        let places = reader.places(x, &side)?;
        if x.has_names() {
            reader.check_names(x, &side, &places)?;
        }
        let open = x.ndim() + 1 - count;
        let packed = star..star + open;
        shapes.push(Shape::new(packed.clone().map(|dim| (x.name(dim), x.sizes()[dim])))?);
        let mut sizes = Sizes::from_slice(x.sizes());
        let size = sizes.drain(packed).product();
        sizes.insert(star, size);
        flat.push(x.unnamed().reshape(&sizes[..])?);
    }
    if flat.is_empty() {
        return Err(Error::new(ErrorKind::Value, OP, "there are no tensors to pack"));
    }
    let y = Tensor::cat(&flat, star)
        .map_err(|error| error.of(OP).with_operands(tensors.iter().map(|x| x.shape())))?;
    let names = match tensors.iter().any(|x| x.has_names()) {
        true => {
            let (before, after) = (reader.names(&side, 0..star)?, reader.names(&side, star + 1..count)?);
            let own = name.map(|name| Name::new(name.text)).transpose().map_err(|error| error.of(OP))?;
            Names::new(OP, before.into_iter().chain([own]).chain(after))?
        }
        false => Names::none(),
    };
    Ok((y.named(names), shapes))
}

#[track_caller]
fn unpacked(x: &Tensor, shapes: Vec<OpenShape>, pattern: &str) -> Result<Vec<Tensor>> {
    const OP: &str = "unpack";
    let reader = Reader { op: OP, pattern };
    let (side, star, name) = star(reader)?;
    let count = side.places.len();
    if x.ndim() != count {
        let message = format!("the pattern '{pattern}' is for {count} dims, and the tensor has {}", x.ndim());
        return Err(Error::new(ErrorKind::Shape, OP, message).with_operands([x.shape()]));
    }
    if x.has_names() {
        reader.check_names(x, &side, &reader.places(x, &side)?)?;
    }
    if let (Some(own), Some(word)) = (x.name(star), name)
        && own.as_str() != word.text
    {
        return Err(reader.mismatch(x, &side, star, own, word));
    }
    let size = x.sizes()[star];
    let is_open = |dim: &&OpenDim| dim.size.is_none();
    if shapes.iter().flatten().filter(is_open).count() > 1 {
        return Err(Error::new(ErrorKind::Value, OP, "more than one size is -1, so none can be inferred"));
    }
    let products: Vec<usize> = crate::list(shapes.iter().map(|shape| {
        let sizes = shape.iter().filter_map(|dim| dim.size);
        sizes.fold(1_usize, |product, size| product.saturating_mul(size))
    }));
    let mut known = 0_usize;
    let mut open = None;
    for (number, product) in products.iter().enumerate() {
        match shapes[number].iter().any(|dim| is_open(&dim)) {
            true => open = Some(number),
            false => known = known.saturating_add(*product),
        }
    }
    // The size that is open, if any.
    let rest = open.and_then(|open| {
        let rest = size.checked_sub(known)?;
        (products[open] > 0 && rest % products[open] == 0).then(|| rest / products[open])
    });
    if known != size && rest.is_none() || open.is_some() && rest.is_none() {
        let list = crate::list::<_, Vec<String>>(shapes.iter().map(|shape| {
            let sizes = shape.iter().map(|dim| dim.size.map_or(-1, |size| size as isize));
            format!("{:?}", crate::list::<_, Vec<_>>(sizes))
        }));
        let message =
            format!("a dim of {size} elements cannot be unpacked into [{}]", crate::joined(&list, ", "));
        return Err(Error::new(ErrorKind::Shape, OP, message).with_operands([x.shape()]));
    }
    let has_names = x.has_names() || shapes.iter().flatten().any(|dim| dim.name.is_some());
    let ends = match has_names {
        true => [reader.names(&side, 0..star)?, reader.names(&side, star + 1..count)?],
        false => Default::default(),
    };
    let mut lengths: Vec<isize> = Vec::with_capacity(shapes.len());
    for (number, product) in products.iter().enumerate() {
        let times = if Some(number) == open { rest.unwrap_or(1) } else { 1 };
        lengths.push((product * times) as isize);
    }
    let mut parts = Vec::with_capacity(shapes.len());
    for (part, shape) in x.unnamed().split(lengths, star)?.into_iter().zip(shapes) {
        let mut sizes = Sizes::from_slice(x.sizes());
        sizes.remove(star);
        sizes.insert_many(star, shape.iter().map(|dim| dim.size.or(rest).unwrap_or(1)));
        let names = match has_names {
            true => {
                let own = shape.iter().map(|dim| dim.name);
                Names::new(OP, ends[0].iter().copied().chain(own).chain(ends[1].iter().copied()))?
            }
            false => Names::none(),
        };
        parts.push(part.reshape(&sizes[..])?.named(names));
    }
    Ok(parts)
}
