//! Counting and searching. Both compare the keys of [`order`](super::order).

use crate::callback::order;

use super::order::{NAN_LAST, sort, with_pairs};
use super::room::{Room, write_each};
use super::threads::write_parts;

/// The searches that a thread takes at a time.
const TASK: usize = 1 << 12;

/// For each of `wanted`, the number of smaller keys in its row of `sorted`, or with `right` of keys that are
/// not larger. A row has `n` keys and `per_row` of `wanted`.
pub(crate) fn search<'a>(
    sorted: &[i64],
    n: usize,
    wanted: &[i64],
    per_row: usize,
    right: bool,
    found: &'a mut Room<i64>,
) -> &'a mut [i64] {
    write_parts(found, TASK, &|task, found| {
        write_each(found, |at| {
            let at = task * TASK + at;
            let value = wanted[at];
            let before = |key: &i64| if right { *key <= value } else { *key < value };
            sorted[at / per_row * n..][..n].partition_point(before) as i64
        })
    })
}

/// Counts each of the numbers `0, 1...`.
pub(crate) fn tally(numbers: &[i64], counts: &mut [i64]) {
    numbers.iter().for_each(|number| counts[*number as usize] += 1);
}

/// The smallest and the largest number, if there are any.
pub(crate) fn extremes(numbers: &[i64]) -> Option<(i64, i64)> {
    Some((*numbers.iter().min()?, *numbers.iter().max()?))
}

/// The smallest and the largest number; `∞` and `-∞` if there are none.
pub(crate) fn range(numbers: &[f64]) -> (f64, f64) {
    let smallest = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    (smallest, numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

/// Counts the numbers in intervals of equal length from `low` to `high`, one for each count. The last
/// interval includes both of its ends.
pub(crate) fn histogram(numbers: &[f64], low: f64, high: f64, counts: &mut [f64]) {
    let bins = counts.len() as f64;
    for x in numbers.iter().filter(|x| (low..=high).contains(x)) {
        counts[((x - low) / (high - low) * bins).min(bins - 1.0) as usize] += 1.0;
    }
}

/// The distinct rows of `width` keys in ascending order: the position of the first of each, and their counts.
/// For each row, `inverse` gets its number among them.
pub(crate) fn unique_rows(
    keys: &[i64],
    width: usize,
    float: bool,
    inverse: &mut [i64],
) -> (Vec<i64>, Vec<i64>) {
    let row = |at: usize| &keys[at * width..(at + 1) * width];
    let order = order(inverse.len(), &|a, b| row(a) < row(b));
    let (mut firsts, mut counts) = (Vec::new(), Vec::new());
    for run in order.chunk_by(|a, b| row(*a) == row(*b) && !(float && row(*a).contains(&NAN_LAST))) {
        run.iter().for_each(|place| inverse[*place] = firsts.len() as i64);
        firsts.push(run[0] as i64);
        counts.push(run.len() as i64);
    }
    (firsts, counts)
}

/// The distinct keys in ascending order: the first place and the count of each, and for each key its index
/// among them. With `float`, no NaN equals another.
pub(crate) fn unique(keys: &[i64], float: bool, inverse: &mut [i64]) -> (Vec<i64>, Vec<i64>) {
    let (mut firsts, mut counts) = (Vec::new(), Vec::new());
    with_pairs(|pairs| {
        sort(keys, false, pairs);
        for run in pairs.chunk_by(|a, b| a.0 == b.0 && !(float && a.0 == NAN_LAST)) {
            run.iter().for_each(|(_, place)| inverse[*place] = firsts.len() as i64);
            firsts.push(run[0].1 as i64);
            counts.push(run.len() as i64);
        }
    });
    (firsts, counts)
}
