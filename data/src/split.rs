//! Parts of a data set or a table at random: [`Dataset::random_split`] and [`Dataset::k_folds`].

use crate::random::permutation;
use crate::{Dataset, Subset};
use namegrad_core::{Error, ErrorKind, Result};
use namegrad_io::sorted::list_of;
use std::sync::Arc;

/// The sizes of `K` parts of a data set or a table: numbers of samples or fractions. Arrays of either convert
/// to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SplitSizes<const K: usize> {
    /// Numbers of samples, which sum to the length of the data set.
    Lengths([usize; K]),
    /// Fractions, which sum to one.
    Fractions([f64; K]),
}

impl<const K: usize> From<[usize; K]> for SplitSizes<K> {
    fn from(lengths: [usize; K]) -> SplitSizes<K> {
        SplitSizes::Lengths(lengths)
    }
}

impl<const K: usize> From<[f64; K]> for SplitSizes<K> {
    fn from(fractions: [f64; K]) -> SplitSizes<K> {
        SplitSizes::Fractions(fractions)
    }
}

impl<const K: usize> SplitSizes<K> {
    /// The length of each part of a data set of `len`.
    fn lengths(&self, len: usize) -> Result<[usize; K]> {
        let refused = |message: String| Error::new(ErrorKind::Value, "random_split", message);
        let lengths = match self {
            SplitSizes::Lengths(lengths) => {
                let sum = lengths.iter().try_fold(0usize, |sum, length| sum.checked_add(*length));
                if sum != Some(len) {
                    let message = format!("{lengths:?} do not sum to {len}, the number of samples");
                    return Err(refused(message).with_repair("data.random_split([0.8, 0.2], seed)?"));
                }
                *lengths
            }
            SplitSizes::Fractions(fractions) => {
                let valid = fractions.iter().all(|fraction| (0.0..=1.0).contains(fraction));
                if !valid || (fractions.iter().sum::<f64>() - 1.0).abs() > 1e-6 {
                    let message = format!("fractions are from 0 to 1 and sum to 1, unlike {fractions:?}");
                    return Err(refused(message).with_repair("data.random_split([0.8, 0.2], seed)?"));
                }
                let mut lengths = fractions.map(|fraction| (len as f64 * fraction).floor() as usize);
                let left = len.saturating_sub(lengths.iter().sum());
                (0..left).for_each(|number| lengths[number % K] += 1);
                // Rounding can make the sum of the fractions a little larger than one.
                let mut over = lengths.iter().sum::<usize>().saturating_sub(len);
                for length in lengths.iter_mut().rev() {
                    let less = over.min(*length);
                    *length -= less;
                    over -= less;
                }
                lengths
            }
        };
        match lengths.iter().position(|length| *length == 0) {
            Some(part) => Err(refused(format!(
                "part {part} of a split of {len} samples is empty: the lengths would be {lengths:?}"
            ))),
            None => Ok(lengths),
        }
    }
}

pub(crate) fn random<D: Dataset, const K: usize>(
    data: Arc<D>,
    sizes: &SplitSizes<K>,
    seed: u64,
) -> Result<[Subset<Arc<D>>; K]> {
    Ok(indices(data.len(), sizes, seed)?.map(|indices| Subset::of(data.clone(), indices)))
}

/// The numbers below `len` in parts at random.
pub(crate) fn indices<const K: usize>(
    len: usize,
    sizes: &SplitSizes<K>,
    seed: u64,
) -> Result<[Vec<usize>; K]> {
    let lengths = sizes.lengths(len)?;
    let order = permutation(len, seed, 0)?;
    let mut start = 0;
    Ok(lengths.map(|length| {
        start += length;
        order[start - length..start].to_vec()
    }))
}

/// A part to train on and a part to test on.
type TrainAndTest<D> = [Subset<Arc<D>>; 2];

pub(crate) fn folds<D: Dataset>(data: Arc<D>, k: usize, seed: u64) -> Result<Vec<TrainAndTest<D>>> {
    let folds = fold_indices(data.len(), k, seed)?;
    let fold = |fold: [Vec<usize>; 2]| fold.map(|indices| Subset::of(data.clone(), indices));
    Ok(folds.into_iter().map(fold).collect())
}

/// The numbers below `len` to train on and to test on, for each of `k` folds.
pub(crate) fn fold_indices(len: usize, k: usize, seed: u64) -> Result<Vec<[Vec<usize>; 2]>> {
    if !(2..=len).contains(&k) {
        let message = format!("{k} folds of {len} samples: expected from 2 folds to one for each sample");
        return Err(Error::new(ErrorKind::Value, "k_folds", message));
    }
    let order = permutation(len, seed, 0)?;
    Ok(list_of(k, &mut |fold| {
        // The first `len % k` folds have one sample more.
        let start = fold * (len / k) + fold.min(len % k);
        let end = start + len / k + usize::from(fold < len % k);
        [[&order[..start], &order[end..]].concat(), order[start..end].to_vec()]
    }))
}
