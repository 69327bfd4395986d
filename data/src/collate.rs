//! [`Collate`]: how samples become a batch. `stack` has what it does with tensors.

use crate::stack;
use namegrad_autograd::Tensor;
use namegrad_core::for_types;
use namegrad_core::{Error, ErrorKind, Name, Result, Scalar};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Samples of a type that can be made into a batch.
///
/// | sample | batch |
/// | --- | --- |
/// | tensor | a tensor with the new dim "N" first, and the names of the samples |
/// | number or `bool` | a tensor `[N]` of its dtype; of `i64` for `usize` |
/// | [`Ragged`](crate::Ragged) tensor | a padded tensor and the lengths |
/// | string or path | a `Vec` |
/// | tuple of up to six | a tuple of batches |
/// | map with the same keys in each sample | a map of batches |
/// | `Option` that is `Some` in all samples or in none | an `Option` of a batch |
///
/// Dims with other names, in another order or of other sizes are errors. A [`Loader`](crate::Loader) pads
/// dims of different sizes on request.
///
/// # Examples
/// Derive it for your own struct. The struct of a batch is made too, with the batches of the fields:
/// ```
/// use namegrad::data::{Collate, Loader, Samples};
/// use namegrad::prelude::*;
///
/// #[derive(Clone, Collate)]
/// #[collate(batch = Houses)] // without this line, HouseBatch
/// struct House {
///     rooms: i64,
///     price: f32,
/// }
///
/// let houses = vec![House { rooms: 3, price: 0.5 }, House { rooms: 5, price: 0.75 }];
/// for batch in Loader::new(Samples::new(houses), 2)?.iter() {
///     let Houses { rooms, price } = batch?;
///     assert_eq!(rooms.to_vec::<i64>()?, [3, 5]);
///     assert_eq!(price.shape().to_string(), "[N=2]");
/// }
/// # Ok::<(), Error>(())
/// ```
///
/// Or implement it, for a batch that is not made of the batches of the fields:
/// ```
/// use namegrad::data::{Collate, Collation, Loader, Samples};
/// use namegrad::prelude::*;
///
/// #[derive(Clone)]
/// struct Words(&'static str);
///
/// impl Collate for Words {
///     type Batch = Tensor;
///     fn collate(samples: Vec<Words>, how: &Collation<'_>) -> Result<Tensor> {
///         usize::collate(samples.iter().map(|words| words.0.split(' ').count()).collect(), how)
///     }
/// }
///
/// let words = vec![Words("a name"), Words("and a dim")];
/// let counts = Loader::new(Samples::new(words), 2)?.iter().next().unwrap()?;
/// assert_eq!(counts.to_vec::<i64>()?, [2, 3]);
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "samples of `{Self}` do not become a batch",
    label = "not a sample",
    note = "add #[derive(Collate)] to your own type, implement `Collate` for it, or give `Loader::builder_with` a function"
)]
pub trait Collate: Sized {
    /// The type of a batch.
    type Batch: Send;

    /// The batch of samples, of which there is at least one.
    ///
    /// # Errors
    /// [`ErrorKind::NameMismatch`], [`ErrorKind::Shape`] and [`ErrorKind::DType`] if samples do not fit
    /// together; the message says which.
    fn collate(samples: Vec<Self>, how: &Collation<'_>) -> Result<Self::Batch>;
}

/// The functions that `#[derive(Collate)]` calls.
#[doc(hidden)]
pub mod derived {
    use super::{Collate, Collation};
    pub use namegrad_core::Result;

    /// The batch of a field.
    pub fn field<T: Collate>(name: &str, list: Vec<T>, how: &Collation<'_>) -> Result<T::Batch> {
        T::collate(list, how).map_err(|error| error.context(format_args!("field '{name}': ")))
    }
}

/// The options of a batch: the name of the batch dim, and values that pad samples of different sizes.
#[derive(Clone, Debug)]
pub struct Collation<'a> {
    batch_dim: Name,
    pads: &'a [(Name, Scalar)],
    indices: &'a [usize],
}

impl<'a> Collation<'a> {
    pub(crate) fn new(batch_dim: Name, pads: &'a [(Name, Scalar)], indices: &'a [usize]) -> Collation<'a> {
        Collation { batch_dim, pads, indices }
    }

    /// The name of the new dim.
    pub fn batch_dim(&self) -> Name {
        self.batch_dim
    }

    /// The value with which a dim is padded, if the loader was asked to.
    pub fn pad(&self, dim: Name) -> Option<Scalar> {
        self.pads.iter().find(|(padded, _)| *padded == dim).map(|(_, value)| *value)
    }

    /// The name of the sample at a position of the batch, for errors: `sample 17`, by its index in the data
    /// set.
    pub fn sample(&self, position: usize) -> String {
        match self.indices.get(position) {
            Some(index) => format!("sample {index}"),
            None => format!("the sample at position {position} of the batch"),
        }
    }
}

impl Collate for Tensor {
    type Batch = Tensor;

    fn collate(samples: Vec<Tensor>, how: &Collation<'_>) -> Result<Tensor> {
        stack::stack(samples, how, &|dim| how.pad(dim))
    }
}

for_types!(bool, u8, i8, i16, i32, i64, f32, f64 => Number {
    impl Collate for Number {
        type Batch = Tensor;

        fn collate(samples: Vec<Number>, how: &Collation<'_>) -> Result<Tensor> {
            Tensor::from_slice(&samples, [(how.batch_dim(), samples.len())])
        }
    }
});

// No tensor can hold these.
for_types!(String, &'static str, PathBuf => Text {
    impl Collate for Text {
        type Batch = Vec<Text>;

        fn collate(samples: Vec<Text>, _: &Collation<'_>) -> Result<Vec<Text>> {
            Ok(samples)
        }
    }
});

impl Collate for usize {
    type Batch = Tensor;

    fn collate(samples: Vec<usize>, how: &Collation<'_>) -> Result<Tensor> {
        let mut numbers = Vec::new();
        for (position, value) in samples.into_iter().enumerate() {
            numbers.push(i64::try_from(value).map_err(|_| {
                let message = format!("{}: {value} does not fit in i64", how.sample(position));
                Error::new(ErrorKind::Value, "collate", message)
            })?);
        }
        i64::collate(numbers, how)
    }
}

/// Implements `Collate` for a tuple. `tuple!(A a 0, B b 1)` collates the first elements as `A`s and the
/// second ones as `B`s; an error says at which position of the tuple it is.
macro_rules! tuple {
    ($($type:ident $list:ident $position:tt),*) => {
        impl<$($type: Collate),*> Collate for ($($type,)*) {
            type Batch = ($($type::Batch,)*);

            fn collate(samples: Vec<Self>, how: &Collation<'_>) -> Result<Self::Batch> {
                $(let mut $list = Vec::with_capacity(samples.len());)*
                for sample in samples {
                    $($list.push(sample.$position);)*
                }
                Ok(($(
                    $type::collate($list, how)
                        .map_err(|error| error.context(concat!("element ", $position, " of the tuples: ")))?,
                )*))
            }
        }
    };
}
tuple!(A a 0);
tuple!(A a 0, B b 1);
tuple!(A a 0, B b 1, C c 2);
tuple!(A a 0, B b 1, C c 2, D d 3);
tuple!(A a 0, B b 1, C c 2, D d 3, E e 4);
tuple!(A a 0, B b 1, C c 2, D d 3, E e 4, F f 5);

impl<T: Collate> Collate for Option<T> {
    type Batch = Option<T::Batch>;

    fn collate(samples: Vec<Option<T>>, how: &Collation<'_>) -> Result<Option<T::Batch>> {
        let first = samples.first().is_some_and(Option::is_some);
        if let Some(other) = samples.iter().position(|sample| sample.is_some() != first) {
            let words = |some: bool| if some { "Some" } else { "None" };
            let (one, other) = (how.sample(0), how.sample(other));
            let message = format!("{one} is {}, but {other} is {}", words(first), words(!first));
            return Err(Error::new(ErrorKind::Value, "collate", message));
        }
        let samples: Vec<T> = crate::list(samples.into_iter().flatten());
        first.then(|| T::collate(samples, how)).transpose()
    }
}

impl<T: Collate> Collate for BTreeMap<String, T> {
    type Batch = BTreeMap<String, T::Batch>;

    fn collate(samples: Vec<Self>, how: &Collation<'_>) -> Result<Self::Batch> {
        let mut lists: BTreeMap<String, Vec<T>> = BTreeMap::new();
        for (position, sample) in samples.into_iter().enumerate() {
            let fits = position == 0 || sample.len() == lists.len();
            for (key, value) in sample {
                match lists.get_mut(&key) {
                    Some(list) if fits => list.push(value),
                    None if position == 0 => drop(lists.insert(key, vec![value])),
                    _ => return Err(other_keys(position, lists.keys(), how)),
                }
            }
            if lists.values().any(|list| list.len() != position + 1) {
                return Err(other_keys(position, lists.keys(), how));
            }
        }
        let collated = |(key, list): (String, Vec<T>)| match T::collate(list, how) {
            Ok(batch) => Ok((key, batch)),
            Err(error) => Err(error.context(format!("key '{key}': "))),
        };
        lists.into_iter().map(collated).collect()
    }
}

#[cold]
fn other_keys<'k>(position: usize, keys: impl Iterator<Item = &'k String>, how: &Collation<'_>) -> Error {
    let keys: Vec<&String> = crate::list(keys);
    let message =
        format!("{} has other keys than {}, which has {keys:?}", how.sample(position), how.sample(0));
    Error::new(ErrorKind::Value, "collate", message)
}

impl<T: Collate> Collate for HashMap<String, T> {
    type Batch = HashMap<String, T::Batch>;

    fn collate(samples: Vec<Self>, how: &Collation<'_>) -> Result<Self::Batch> {
        let sorted = crate::list(samples.into_iter().map(BTreeMap::from_iter));
        Ok(BTreeMap::<String, T>::collate(sorted, how)?.into_iter().collect())
    }
}
