//! [`Dataset`]: a length and a way to get a sample. Its methods make other data sets from it.

use crate::collate::{Collate, Collation};
use crate::split::{self, SplitSizes};
use crate::{Concat, Map, Subset, Zip};
use namegrad_core::{Error, ErrorKind, Result};
use std::panic::Location;
use std::sync::Arc;

/// Samples by index.
///
/// Implement it for your own data: a length, and a function that reads one sample. A
/// [`Loader`](crate::Loader) makes batches of the samples, with [`Collate`].
///
/// # Examples
/// ```
/// use namegrad::data::{Dataset, Loader};
/// use namegrad::prelude::*;
///
/// /// Points of a parabola.
/// struct Parabola;
///
/// impl Dataset for Parabola {
///     type Sample = (f32, f32);
///     fn len(&self) -> usize {
///         100
///     }
///     fn get(&self, index: usize) -> Result<(f32, f32)> {
///         let x = index as f32 / 100.0;
///         Ok((x, x * x))
///     }
/// }
///
/// let loader = Loader::new(Parabola, 25)?;
/// for batch in loader.iter() {
///     let (x, y) = batch?;
///     assert_eq!(x.shape().to_string(), "[N=25]");
///     assert!(y.allclose(&x.square()?)?);
/// }
/// # Ok::<(), Error>(())
/// ```
pub trait Dataset: Send + Sync {
    /// The type of a sample, which [`get`](Self::get) returns.
    type Sample: Send;

    /// The number of samples.
    fn len(&self) -> usize;

    /// The sample at `index`, which is less than [`len`](Self::len).
    ///
    /// A loader calls it from several threads at once. Within it, random numbers from the default generator
    /// depend on the loader's seed, the epoch and the position in the epoch alone, so augmentations are the
    /// same for any number of workers.
    ///
    /// # Errors
    /// What the data set decides. A loader returns the error with the index of the sample.
    #[track_caller]
    fn get(&self, index: usize) -> Result<Self::Sample>;

    /// Whether there are no samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A whole batch, if the data set can make it faster than from single samples. It must be the batch that
    /// [`Collate::collate`] makes of the samples.
    fn get_batch(
        &self,
        indices: &[usize],
        how: &Collation<'_>,
    ) -> Option<Result<<Self::Sample as Collate>::Batch>>
    where
        Self::Sample: Collate,
    {
        let _ = (indices, how);
        None
    }

    /// The samples changed by `f`, each time that they are read.
    ///
    /// ```
    /// use namegrad::data::{Dataset, Samples};
    /// let squares = Samples::new(vec![1, 2, 3]).map(|x| Ok(x * x));
    /// assert_eq!(squares.get(2)?, 9);
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// This is also where random augmentation goes. In a [`Loader`](crate::Loader), it depends on the
    /// loader's seed, the epoch and the sample, and not on the number of workers. Here an image is mirrored
    /// half of the time, and moved by up to two pixels:
    ///
    /// ```
    /// use namegrad::data::{Dataset, TensorDataset};
    /// use namegrad::prelude::*;
    /// # let images = Tensor::rand([("N", 3), ("C", 1), ("H", 28), ("W", 28)])?;
    /// # let labels = Tensor::arange(0, 3, 1)?.refine_names(["N"])?;
    /// let data = TensorDataset::new((images, labels))?;
    /// let train = data.map(|(mut image, label)| {
    ///     if Tensor::rand(())?.item::<f32>()? < 0.5 {
    ///         image = image.flip("W")?;
    ///     }
    ///     let moves = Tensor::randint(-2, 3, [2])?.to_vec::<i64>()?;
    ///     let (down, right) = (moves[0] as isize, moves[1] as isize);
    ///     let image = F::pad(&image, [("H", (down, -down)), ("W", (right, -right))])?;
    ///     Ok((image, label))
    /// });
    /// assert_eq!(train.get(0)?.0.shape().to_string(), "[C=1, H=28, W=28]");
    /// # Ok::<(), Error>(())
    /// ```
    fn map<T, F>(self, f: F) -> Map<Self, F>
    where
        Self: Sized,
        T: Send,
        F: Fn(Self::Sample) -> Result<T> + Send + Sync,
    {
        Map::new(self, f)
    }

    /// The samples for which `keep` is true. Each sample is read once, now; only the indices are kept.
    ///
    /// # Errors
    /// The first error of [`get`](Self::get), with the index of the sample.
    ///
    /// ```
    /// use namegrad::data::{Dataset, Samples};
    /// let even = Samples::new(vec![1, 2, 3, 4]).filter(|x| x % 2 == 0)?;
    /// assert_eq!((even.len(), even.get(1)?), (2, 4));
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    fn filter(self, keep: impl Fn(&Self::Sample) -> bool) -> Result<Subset<Self>>
    where
        Self: Sized,
    {
        let mut kept = Vec::new();
        for index in 0..self.len() {
            let sample = self.get(index).map_err(|error| error.context(format!("sample {index}: ")))?;
            if keep(&sample) {
                kept.push(index);
            }
        }
        Ok(Subset::of(self, kept))
    }

    /// The samples at `indices`, in this order. An index can occur several times.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if there is no sample at an index.
    #[track_caller]
    fn subset(self, indices: impl IntoIterator<Item = usize>) -> Result<Subset<Self>>
    where
        Self: Sized,
    {
        Subset::new(self, crate::list(indices.into_iter()))
    }

    /// The samples of this data set, followed by those of another one.
    ///
    /// ```
    /// use namegrad::data::{Dataset, Samples};
    /// let both = Samples::new(vec![1, 2]).concat(Samples::new(vec![3]));
    /// assert_eq!((both.len(), both.get(2)?), (3, 3));
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    fn concat<O: Dataset<Sample = Self::Sample>>(self, other: O) -> Concat<Self, O>
    where
        Self: Sized,
    {
        Concat::new(self, other)
    }

    /// Pairs of the samples of two data sets at the same index.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if they have different lengths.
    ///
    /// # Examples
    /// ```
    /// use namegrad::data::{Dataset, Samples};
    /// let pairs = Samples::new(vec![1.0, 2.0]).zip(Samples::new(vec!["a", "b"]))?;
    /// assert_eq!(pairs.get(1)?, (2.0, "b"));
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    #[track_caller]
    #[doc(alias = "StackDataset")]
    fn zip<O: Dataset>(self, other: O) -> Result<Zip<Self, O>>
    where
        Self: Sized,
    {
        Zip::new(self, other)
    }

    /// Splits the data set at random into parts that share it: by lengths, as in `[50_000, 10_000]`, or
    /// by fractions, as in `[0.8, 0.2]`. The same seed gives the same parts. [`Subset::whole`] has the
    /// data set, and `(&data).random_split(..)` borrows it. [`split`](mod@crate::split) has other ways to
    /// split.
    ///
    /// As in PyTorch, a fraction is rounded down, and samples that are left over go to the first parts, one
    /// to each.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the lengths do not sum to the number of samples, the fractions do not sum to
    /// one, or a part is empty.
    ///
    /// # Examples
    /// ```
    /// use namegrad::data::{Dataset, Samples};
    /// let [train, test] = Samples::new((0..10).collect()).random_split([0.8, 0.2], 7)?;
    /// assert_eq!((train.len(), test.len()), (8, 2));
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    #[track_caller]
    fn random_split<const K: usize>(
        self,
        sizes: impl Into<SplitSizes<K>>,
        seed: u64,
    ) -> Result<[Subset<Arc<Self>>; K]>
    where
        Self: Sized,
    {
        let caller = Location::caller();
        split::random(Arc::new(self), &sizes.into(), seed).map_err(|error| error.at(caller))
    }

    /// `k` pairs of data sets for cross-validation, to train on and to test on. Each sample is in one of the
    /// test sets, which differ in length by at most one.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if `k` is less than two, or more than the number of samples.
    ///
    /// # Examples
    /// ```
    /// use namegrad::data::{Dataset, Samples};
    /// for [train, test] in Samples::new((0..10).collect()).k_folds(5, 7)? {
    ///     assert_eq!((train.len(), test.len()), (8, 2));
    /// }
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    #[track_caller]
    fn k_folds(self, k: usize, seed: u64) -> Result<Vec<[Subset<Arc<Self>>; 2]>>
    where
        Self: Sized,
    {
        let caller = Location::caller();
        split::folds(Arc::new(self), k, seed).map_err(|error| error.at(caller))
    }
}

macro_rules! shared {
    ($($of:ty),*) => {$(
        impl<D: Dataset + ?Sized> Dataset for $of {
            type Sample = D::Sample;

            fn len(&self) -> usize {
                (**self).len()
            }

            #[track_caller]
            fn get(&self, index: usize) -> Result<D::Sample> {
                (**self).get(index)
            }

            fn get_batch(
                &self,
                indices: &[usize],
                how: &Collation<'_>,
            ) -> Option<Result<<D::Sample as Collate>::Batch>>
            where
                D::Sample: Collate,
            {
                (**self).get_batch(indices, how)
            }
        }
    )*};
}
// References to a data set are that data set.
shared!(&D, Arc<D>, Box<D>);

/// The samples of a `Vec`. Clones share it.
///
/// ```
/// use namegrad::data::{Dataset, Samples};
/// let letters = Samples::new(vec!["a", "b"]);
/// assert_eq!((letters.len(), letters.get(1)?), (2, "b"));
/// # Ok::<(), namegrad::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Samples<T>(Arc<Vec<T>>);

impl<T> Samples<T> {
    /// A data set of these samples.
    pub fn new(samples: Vec<T>) -> Samples<T> {
        Samples(Arc::new(samples))
    }
}

impl<T> From<Vec<T>> for Samples<T> {
    fn from(samples: Vec<T>) -> Samples<T> {
        Samples::new(samples)
    }
}

impl<T: Clone + Send + Sync> Dataset for Samples<T> {
    type Sample = T;

    fn len(&self) -> usize {
        self.0.len()
    }

    #[track_caller]
    fn get(&self, index: usize) -> Result<T> {
        match self.0.get(index) {
            Some(sample) => Ok(sample.clone()),
            None => Err(no_sample("Samples", index, self.0.len())),
        }
    }
}

/// The error of an index that is out of range.
#[cold]
#[track_caller]
pub(crate) fn no_sample(op: &'static str, index: usize, len: usize) -> Error {
    let message = format!("there is no sample {index} in a data set of {len}");
    Error::new(ErrorKind::Index, op, message)
}
