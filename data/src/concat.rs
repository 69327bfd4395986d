//! [`Concat`]: one data set after another.

use crate::Dataset;
use namegrad_core::Result;

/// The result of [`Dataset::concat`].
#[derive(Clone, Debug)]
pub struct Concat<A, B> {
    first: A,
    second: B,
}

impl<A, B> Concat<A, B> {
    pub(crate) fn new(first: A, second: B) -> Concat<A, B> {
        Concat { first, second }
    }
}

impl<A: Dataset, B: Dataset<Sample = A::Sample>> Dataset for Concat<A, B> {
    type Sample = A::Sample;

    fn len(&self) -> usize {
        self.first.len() + self.second.len()
    }

    #[track_caller]
    fn get(&self, index: usize) -> Result<A::Sample> {
        match index.checked_sub(self.first.len()) {
            None => self.first.get(index),
            Some(rest) => self.second.get(rest),
        }
    }
}
