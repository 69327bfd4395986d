//! [`Stream`]: samples that come one after another, such as the lines of a file that is larger than memory.

use crate::random::derived;
use namegrad_core::NamedTensor;
use namegrad_core::Result;
use namegrad_core::random::Generator;
use std::fmt;
use std::sync::Arc;

/// Makes a sample from what was read. A worker runs it.
pub(crate) type Thunk<T> = Box<dyn FnOnce() -> Result<T> + Send>;
/// The samples of an epoch, as one thread reads them; workers run the thunks.
pub(crate) type Thunks<T> = Box<dyn Iterator<Item = Result<Thunk<T>>> + Send>;

/// Samples that can only be read in order: from an iterator, or from a file that is larger than memory.
///
/// A [`Loader`](crate::Loader) reads the iterator from one thread at a time and runs what [`map`](Self::map)
/// adds in all its workers, so the batches are the same for any number of workers.
///
/// # Examples
/// ```
/// use namegrad::data::{Loader, Stream};
/// use namegrad::prelude::*;
/// let squares = Stream::new(|| 0..10).map(|x: i64| Ok(x * x)).shuffle_buffer(4);
/// let loader = Loader::builder(squares).batch_size(4).workers(2).build()?;
/// let sizes = loader.iter().map(|batch| batch?.size("N")).collect::<Result<Vec<_>>>()?;
/// assert_eq!(sizes, [4, 4, 2]);
/// # Ok::<(), Error>(())
/// ```
pub struct Stream<T> {
    /// The samples of an epoch. Its argument is a seed for the order.
    open: Arc<dyn Fn(u64) -> Result<Thunks<T>> + Send + Sync>,
}

impl<T> Clone for Stream<T> {
    fn clone(&self) -> Stream<T> {
        Stream { open: self.open.clone() }
    }
}

impl<T> fmt::Debug for Stream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

impl<T: Send + 'static> Stream<T> {
    /// The samples of an iterator. `open` is called at the start of each epoch.
    pub fn new<I>(open: impl Fn() -> I + Send + Sync + 'static) -> Stream<T>
    where
        I: IntoIterator<Item = T>,
        I::IntoIter: Send + 'static,
    {
        Stream::fallible(move || Ok(open().into_iter().map(Ok)))
    }

    /// The samples of an iterator that can fail. An error of the iterator ends the epoch.
    ///
    /// ```
    /// use namegrad::data::{Loader, Stream};
    /// use namegrad::prelude::*;
    /// let numbers = Stream::fallible(|| Ok(["1", "2", "x"].into_iter().map(|text| {
    ///     text.parse::<i64>().map_err(|error| Error::new(ErrorKind::Format, "numbers", error.to_string()))
    /// })));
    /// let loader = Loader::new(numbers, 2)?;
    /// let batches: Vec<Result<Tensor>> = loader.iter().collect();
    /// assert!(batches[0].is_ok() && batches[1].is_err());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn fallible<I>(open: impl Fn() -> Result<I> + Send + Sync + 'static) -> Stream<T>
    where
        I: IntoIterator<Item = Result<T>>,
        I::IntoIter: Send + 'static,
    {
        let ready = |sample: T| -> Thunk<T> { Box::new(|| Ok(sample)) };
        let open = move |_| -> Result<Thunks<T>> {
            Ok(Box::new(open()?.into_iter().map(move |sample| sample.map(ready))))
        };
        Stream { open: Arc::new(open) }
    }

    /// The samples changed by `f`. The workers of a loader call it.
    pub fn map<U: Send + 'static>(self, f: impl Fn(T) -> Result<U> + Send + Sync + 'static) -> Stream<U> {
        let f = Arc::new(f);
        let open = move |seed| -> Result<Thunks<U>> {
            let f = f.clone();
            Ok(Box::new((self.open)(seed)?.map(move |thunk| -> Result<Thunk<U>> {
                let (thunk, f) = (thunk?, f.clone());
                Ok(Box::new(move || f(thunk()?)))
            })))
        };
        Stream { open: Arc::new(open) }
    }

    /// Shuffles the samples through a buffer of `size`: each sample is drawn from those in the buffer, and
    /// the next one that is read takes its place. The order depends on the loader's seed and the epoch.
    pub fn shuffle_buffer(self, size: usize) -> Stream<T> {
        let open = move |seed| -> Result<Thunks<T>> {
            Ok(Box::new(Shuffled {
                source: (self.open)(derived(seed, 1))?,
                buffer: Vec::new(),
                size: size.max(1),
                generator: Generator::from_seed(derived(seed, 0)),
                ended: false,
            }))
        };
        Stream { open: Arc::new(open) }
    }

    pub(crate) fn open(&self, seed: u64) -> Result<Thunks<T>> {
        (self.open)(seed)
    }
}

/// An iterator through a shuffle buffer.
struct Shuffled<T> {
    source: Thunks<T>,
    buffer: Vec<Thunk<T>>,
    size: usize,
    generator: Generator,
    ended: bool,
}

impl<T> Iterator for Shuffled<T> {
    type Item = Result<Thunk<T>>;

    fn next(&mut self) -> Option<Result<Thunk<T>>> {
        while !self.ended && self.buffer.len() < self.size {
            match self.source.next() {
                Some(Ok(thunk)) => self.buffer.push(thunk),
                Some(Err(error)) => return Some(Err(error)),
                None => self.ended = true,
            }
        }
        let len = self.buffer.len();
        if len == 0 {
            return None;
        }
        let drawn = self.generator.scope(|| NamedTensor::randint(0, len as i64, [1])?.item::<i64>());
        Some(drawn.map(|index| self.buffer.swap_remove(index as usize)))
    }
}
