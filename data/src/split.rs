//! Parts of a data set or a table to train on and to test on, as indices of samples: by class, by group or in
//! the order of time. [`Dataset::subset`] and [`Table::rows`](crate::Table::rows) take the indices.
//! [`Dataset::random_split`] and [`Dataset::k_folds`] split at random.
//!
//! | | parts of these sizes | folds to train on and to test on |
//! | --- | --- | --- |
//! | each class alike in all parts | [`stratified`] | [`stratified_folds`] |
//! | each group in one part | [`grouped`] | [`grouped_folds`] |
//! | earlier samples before later ones | [`ordered`] | [`ordered_folds`] |

use crate::random::{permutation, uniform};
use crate::{Dataset, Subset};
use namegrad_core::{Error, ErrorKind, Result};
use namegrad_io::sorted::{self, list_of};
use std::panic::Location;
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
                    return Err(refused(message).with_repair("[0.8, 0.2]"));
                }
                *lengths
            }
            SplitSizes::Fractions(fractions) => {
                let valid = fractions.iter().all(|fraction| (0.0..=1.0).contains(fraction));
                if !valid || (fractions.iter().sum::<f64>() - 1.0).abs() > 1e-6 {
                    let message = format!("fractions are from 0 to 1 and sum to 1, unlike {fractions:?}");
                    return Err(refused(message).with_repair("[0.8, 0.2]"));
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
    Ok(cut(&permutation(len, seed, 0)?, sizes.lengths(len)?))
}

/// An order in parts of these lengths.
fn cut<const K: usize>(order: &[usize], lengths: [usize; K]) -> [Vec<usize>; K] {
    let mut start = 0;
    lengths.map(|length| {
        start += length;
        order[start - length..start].to_vec()
    })
}

/// Parts in each of which the classes have the same shares, up to one sample of a class: scikit-learn's
/// `train_test_split(stratify=labels)`. `labels` has the class of each sample. The same seed gives the same
/// parts.
///
/// # Examples
/// ```
/// use namegrad::data::{Csv, split};
/// let text = "x,class\n".to_string() + &"1,rare\n2,common\n3,common\n4,common\n".repeat(10);
/// let table = Csv::from_bytes(text.into_bytes()).categories(["class"]).read()?;
/// let labels = table.category("class")?.to_vec::<i64>()?;
/// let [train, test] = split::stratified(&labels, [0.8, 0.2], 0)?;
/// let (train, test) = (table.rows(train)?, table.rows(test)?);
/// let rare = |part: &namegrad::data::Table| part.rows_where(&part.category("class")?.eq(1)?);
/// assert_eq!((rare(&train)?.len(), rare(&test)?.len()), (8, 2)); // of 32 and 8
/// # Ok::<(), namegrad::Error>(())
/// ```
///
/// # Errors
/// Same as [`Dataset::random_split`].
#[track_caller]
pub fn stratified<const K: usize>(
    labels: &[i64],
    sizes: impl Into<SplitSizes<K>>,
    seed: u64,
) -> Result<[Vec<usize>; K]> {
    let (sizes, caller) = (sizes.into(), Location::caller());
    let parts = || Ok(cut(&stratified_order(labels, seed)?, sizes.lengths(labels.len())?));
    parts().map_err(|error: Error| error.of("stratified").at(caller))
}

/// Like [`Dataset::k_folds`], with the same shares of the classes in each fold, up to one sample of a class.
///
/// # Errors
/// Same as [`Dataset::k_folds`].
#[track_caller]
pub fn stratified_folds(labels: &[i64], k: usize, seed: u64) -> Result<Vec<[Vec<usize>; 2]>> {
    let caller = Location::caller();
    let folds = stratified_order(labels, seed).and_then(|order| folds_of(&order, k));
    folds.map_err(|error| error.of("stratified_folds").at(caller))
}

/// A random order in which the samples of each class are spread evenly: number `i` of the `n` samples of a
/// class is at the share `(i + u) / n`, where `u` from 0 to 1 is of the class.
fn stratified_order(labels: &[i64], seed: u64) -> Result<Vec<usize>> {
    let random = permutation(labels.len(), seed, 0)?;
    let mut places = vec![0.0; labels.len()];
    let classes = runs(labels, random);
    for (class, offset) in classes.iter().zip(uniform(classes.len(), seed, 1)?) {
        for (number, sample) in class.iter().enumerate() {
            places[*sample] = (number as f64 + offset) / class.len() as f64;
        }
    }
    Ok(sorted::order(labels.len(), &|a, b| places[a] < places[b]))
}

/// The samples of each label, in the given order.
fn runs(labels: &[i64], samples: Vec<usize>) -> Vec<Vec<usize>> {
    let order = sorted::order(samples.len(), &|a, b| labels[samples[a]] < labels[samples[b]]);
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for at in order {
        let sample = samples[at];
        match runs.last_mut() {
            Some(run) if labels[run[0]] == labels[sample] => run.push(sample),
            _ => runs.push(vec![sample]),
        }
    }
    runs
}

/// Parts that share no group, such as the patients of several images each: scikit-learn's
/// `GroupShuffleSplit`. `groups` has the group of each sample. The larger groups are placed first, at random
/// among equal ones, each in the part that lacks most samples, so the sizes are met as well as the groups
/// allow.
///
/// # Examples
/// ```
/// use namegrad::data::{Dataset, Samples, split};
/// let data = Samples::new(vec!["a1", "a2", "b1", "b2", "c1", "d1", "d2", "e1", "f1", "f2"]);
/// let patients = [0, 0, 1, 1, 2, 3, 3, 4, 5, 5];
/// let [train, test] = split::grouped(&patients, [0.8, 0.2], 0)?;
/// assert!(train.iter().all(|one| test.iter().all(|other| patients[*one] != patients[*other])));
/// let (train, test) = ((&data).subset(train)?, (&data).subset(test)?);
/// assert_eq!((train.len(), test.len()), (8, 2));
/// # Ok::<(), namegrad::Error>(())
/// ```
///
/// # Errors
/// Same as [`Dataset::random_split`], also if there are fewer groups than parts.
#[track_caller]
pub fn grouped<const K: usize>(
    groups: &[i64],
    sizes: impl Into<SplitSizes<K>>,
    seed: u64,
) -> Result<[Vec<usize>; K]> {
    let (sizes, caller) = (sizes.into(), Location::caller());
    let parts = sizes.lengths(groups.len()).and_then(|lengths| placed(groups, &lengths, seed));
    let parts = parts.map_err(|error| error.of("grouped").at(caller))?;
    let mut parts = parts.into_iter();
    Ok([(); K].map(|()| parts.next().unwrap_or_default()))
}

/// Like [`Dataset::k_folds`], where no group is both in the part to train on and in that to test on:
/// scikit-learn's `GroupKFold`. The folds differ in length as [`grouped`] says.
///
/// # Errors
/// Same as [`Dataset::k_folds`], also if there are fewer groups than folds.
#[track_caller]
pub fn grouped_folds(groups: &[i64], k: usize, seed: u64) -> Result<Vec<[Vec<usize>; 2]>> {
    let caller = Location::caller();
    let tests = fold_ends(groups.len(), k).and_then(|ends| {
        let lengths = list_of(k, &mut |fold| ends[fold + 1] - ends[fold]);
        placed(groups, &lengths, seed)
    });
    let tests = tests.map_err(|error| error.of("grouped_folds").at(caller))?;
    Ok(list_of(k, &mut |fold| {
        let mut train = Vec::new();
        for (other, test) in tests.iter().enumerate() {
            if other != fold {
                train.extend_from_slice(test);
            }
        }
        [train, tests[fold].clone()]
    }))
}

/// Whole groups in parts of about these lengths.
fn placed(groups: &[i64], lengths: &[usize], seed: u64) -> Result<Vec<Vec<usize>>> {
    let runs = runs(groups, crate::list(0..groups.len()));
    if runs.len() < lengths.len() {
        let message =
            format!("{} groups of {} samples cannot be in {} parts", runs.len(), groups.len(), lengths.len());
        return Err(Error::new(ErrorKind::Value, "grouped", message));
    }
    let random = permutation(runs.len(), seed, 0)?;
    let order = sorted::order(runs.len(), &|a, b| runs[random[a]].len() > runs[random[b]].len());
    let mut parts = vec![Vec::new(); lengths.len()];
    for (at, number) in order.iter().enumerate() {
        // The last groups are for parts that have none yet.
        let empty = parts.iter().filter(|part| part.is_empty()).count();
        let must_fill = runs.len() - at <= empty;
        let mut best = None;
        for (part, length) in lengths.iter().enumerate() {
            let lacks = *length as isize - parts[part].len() as isize;
            if (!must_fill || parts[part].is_empty()) && best.is_none_or(|(most, _)| lacks > most) {
                best = Some((lacks, part));
            }
        }
        if let Some((_, part)) = best {
            parts[part].extend_from_slice(&runs[random[*number]]);
        }
    }
    Ok(parts)
}

/// Parts one after the other, for samples that are in the order of time: the earlier ones to train on, the
/// later ones to test on.
///
/// ```
/// use namegrad::data::split;
/// let [train, test] = split::ordered(5, [0.6, 0.4])?;
/// assert_eq!((train, test), (vec![0, 1, 2], vec![3, 4]));
/// # Ok::<(), namegrad::Error>(())
/// ```
///
/// # Errors
/// Same as [`Dataset::random_split`].
#[track_caller]
pub fn ordered<const K: usize>(len: usize, sizes: impl Into<SplitSizes<K>>) -> Result<[Vec<usize>; K]> {
    let (sizes, caller) = (sizes.into(), Location::caller());
    let lengths = sizes.lengths(len).map_err(|error| error.of("ordered").at(caller))?;
    Ok(cut(&list_of(len, &mut |at| at), lengths))
}

/// Pairs of parts to train on and to test on, for `len` samples that are in the order of time: scikit-learn's
/// `TimeSeriesSplit`. Each of the `k` tests has `len / (k + 1)` samples and comes after all that it is
/// trained on. `gap` samples before the test are left out: windows of `size` samples with a horizon overlap
/// with those of the test unless the gap is at least `size + horizon - 1`.
///
/// ```
/// use namegrad::data::split;
/// let folds = split::ordered_folds(6, 2, 0)?;
/// assert_eq!(folds, [[vec![0, 1], vec![2, 3]], [vec![0, 1, 2, 3], vec![4, 5]]]);
/// assert_eq!(split::ordered_folds(6, 2, 1)?[0], [vec![0], vec![2, 3]]);
/// # Ok::<(), namegrad::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Value`] if `k` is 0, or a part would be empty.
#[track_caller]
pub fn ordered_folds(len: usize, k: usize, gap: usize) -> Result<Vec<[Vec<usize>; 2]>> {
    let test = len / k.saturating_add(1);
    if k == 0 || test == 0 || len - k * test <= gap {
        let message =
            format!("{k} folds of {len} samples in order with a gap of {gap}: a part would be empty");
        return Err(Error::new(ErrorKind::Value, "ordered_folds", message));
    }
    Ok(list_of(k, &mut |fold| {
        let start = len - (k - fold) * test;
        [crate::list(0..start - gap), crate::list(start..start + test)]
    }))
}

/// A part to train on and a part to test on.
type TrainAndTest<D> = [Subset<Arc<D>>; 2];

pub(crate) fn folds<D: Dataset>(data: Arc<D>, k: usize, seed: u64) -> Result<Vec<TrainAndTest<D>>> {
    let folds = fold_indices(data.len(), k, seed)?;
    let fold = |fold: [Vec<usize>; 2]| fold.map(|indices| Subset::of(data.clone(), indices));
    Ok(crate::list(folds.into_iter().map(fold)))
}

/// The numbers below `len` to train on and to test on, for each of `k` folds.
pub(crate) fn fold_indices(len: usize, k: usize, seed: u64) -> Result<Vec<[Vec<usize>; 2]>> {
    fold_ends(len, k)?;
    folds_of(&permutation(len, seed, 0)?, k)
}

/// An order in `k` folds.
fn folds_of(order: &[usize], k: usize) -> Result<Vec<[Vec<usize>; 2]>> {
    let ends = fold_ends(order.len(), k)?;
    Ok(list_of(k, &mut |fold| {
        let (start, end) = (ends[fold], ends[fold + 1]);
        [[&order[..start], &order[end..]].concat(), order[start..end].to_vec()]
    }))
}

/// The start of each fold and the end of the last one.
fn fold_ends(len: usize, k: usize) -> Result<Vec<usize>> {
    if !(2..=len).contains(&k) {
        let message = format!("{k} folds of {len} samples: expected from 2 folds to one for each sample");
        return Err(Error::new(ErrorKind::Value, "k_folds", message));
    }
    // The first `len % k` folds have one sample more.
    Ok(list_of(k + 1, &mut |fold| fold * (len / k) + fold.min(len % k)))
}
