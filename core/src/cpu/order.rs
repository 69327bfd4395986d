//! Comparing elements. Elements become 64-bit integers in the same order, their keys, so that comparisons are
//! compiled only once and not for each dtype.

use super::room::{Room, check_is, refill, write_each, written};
use super::threads::{DisjointParts, each_part, write_parts};
use crate::callback::{Callback, list};
use crate::dtype::{Element, Scalar};
use std::cell::Cell;
use std::thread::LocalKey;

/// The key of a NaN that counts as the largest. No other float has it.
pub(crate) const NAN_LAST: i64 = i64::MAX;
/// The key of a NaN that counts as the smallest. No other float has it.
pub(crate) const NAN_FIRST: i64 = i64::MIN;

/// Keys with the positions of their elements. The positions make all pairs distinct, so an unstable sort
/// keeps the order of equal elements.
pub(crate) type Pairs = Vec<(i64, usize)>;

/// Finds places in a lane: its keys, room for pairs, the places to be written, which it returns.
pub(crate) type Find<'f> = dyn for<'a> Fn(&[i64], &mut Pairs, &'a mut Room<i64>) -> &'a mut [i64] + Sync + 'f;

/// Finds one place in a lane.
pub(crate) type FindOne<'f> = dyn for<'k, 'p> Callback<(&'k [i64], &'p mut Pairs), usize> + Sync + 'f;

/// The elements that a thread takes at a time.
const TASK: usize = 1 << 14;

/// The bytes of a list that a thread keeps at most. The first use of fresh memory costs more than a pass of a
/// sort.
const KEPT: usize = 32 << 20;

thread_local! {
    /// Memory that a thread keeps between calls: keys, pairs, and those of one more pass.
    static KEYS: Cell<Vec<i64>> = const { Cell::new(Vec::new()) };
    static PAIRS: Cell<Pairs> = const { Cell::new(Pairs::new()) };
    static PASS: Cell<Pairs> = const { Cell::new(Pairs::new()) };
}

/// Keeps the memory of a list for the next call.
fn keep<T>(place: &'static LocalKey<Cell<Vec<T>>>, mut list: Vec<T>) {
    list.clear();
    list.shrink_to(KEPT / size_of::<T>());
    place.set(list);
}

/// Calls `f` with room for pairs.
pub(crate) fn with_pairs<R>(f: impl FnOnce(&mut Pairs) -> R) -> R {
    let mut pairs = PAIRS.take();
    let result = f(&mut pairs);
    keep(&PAIRS, pairs);
    result
}

/// The keys of the first elements of `x`, as many as there is room for.
pub(crate) fn keys<T: Element>(x: &[T], nan: i64, keys: &mut [i64]) {
    each_part(keys, TASK, &|task, keys| {
        for (key, x) in keys.iter_mut().zip(&x[task * TASK..]) {
            *key = match x.to_scalar() {
                Scalar::Bool(x) => x.into(),
                Scalar::Int(x) => x,
                Scalar::Float(x) if x.is_nan() => nan,
                Scalar::Float(x) => float_key(x),
            };
        }
    });
}

/// The bits of a float as an ordered integer; the order of negative numbers is reversed. The addition turns
/// -0 into 0.
#[inline(always)]
fn float_key(x: f64) -> i64 {
    let bits = (x + 0.0).to_bits() as i64;
    bits ^ ((bits >> 63) & i64::MAX)
}

/// Runs `f` for each lane of `n` elements. `load` reads the keys from a position on, and `f` writes `count`
/// positions of each lane to `places`.
pub(crate) fn each_lane<'a>(
    n: usize,
    count: usize,
    load: &(dyn for<'k> Callback<(usize, &'k mut [i64])> + Sync),
    places: &'a mut Room<i64>,
    f: &Find<'_>,
) -> &'a mut [i64] {
    let (lanes, count) = ((TASK / n.max(1)).max(1), count.max(1));
    write_parts(places, lanes * count, &|task, places| {
        let mut keys = KEYS.take();
        keys.resize(n, 0);
        with_pairs(|pairs| {
            for (lane, places) in places.chunks_mut(count).enumerate() {
                load.call_with(((task * lanes + lane) * n, &mut keys[..]));
                let place = (places.as_ptr(), places.len());
                check_is(place, f(&keys, pairs, places));
            }
        });
        keep(&KEYS, keys);
        // SAFETY: the chunks make up the part, and each was returned as elements.
        unsafe { written(places) }
    })
}

/// The first position of the largest key.
pub(crate) fn largest(keys: &[i64]) -> usize {
    best(keys, &|keys| keys.iter().max())
}

/// The first position of the smallest key.
pub(crate) fn smallest(keys: &[i64]) -> usize {
    best(keys, &|keys| keys.iter().min())
}

/// The first position of the key that `pick` takes of some keys.
fn best(keys: &[i64], pick: &(impl Fn(&[i64]) -> Option<&i64> + Sync)) -> usize {
    if keys.len() <= TASK {
        return first(keys, pick(keys));
    }
    let mut places = vec![0; keys.len().div_ceil(TASK)];
    each_part(&mut places, 1, &|task, place| {
        let keys = &keys[task * TASK..keys.len().min((task + 1) * TASK)];
        place[0] = task * TASK + first(keys, pick(keys));
    });
    let of_tasks: Vec<i64> = list(places.iter().map(|place| keys[*place]));
    places[first(&of_tasks, pick(&of_tasks))]
}

/// The first position of a key.
fn first(keys: &[i64], key: Option<&i64>) -> usize {
    keys.iter().position(|other| Some(other) == key).unwrap_or(0)
}

/// The bits that are flipped in keys, so that they ascend in the given order.
fn turn(descending: bool) -> i64 {
    if descending { -1 } else { 0 }
}

/// The keys with their positions. For descending order, the bits of the keys are flipped.
fn pairs(keys: &[i64], descending: bool, pairs: &mut Pairs) {
    let turn = turn(descending);
    refill(pairs, keys.len(), |pairs| {
        write_parts(pairs, TASK, &|task, pairs| {
            let from = task * TASK;
            write_each(pairs, |at| (keys[from + at] ^ turn, from + at))
        })
    });
}

/// The sorted pairs.
pub(crate) fn sort(keys: &[i64], descending: bool, pairs: &mut Pairs) {
    self::pairs(keys, descending, pairs);
    if pairs.len() < BY_DIGITS {
        pairs.sort_unstable();
    } else {
        sort_by_digits(pairs);
    }
}

/// From this length on, sorting by digits takes less time than comparing.
const BY_DIGITS: usize = 1 << 11;
/// The most bits of a digit. A pass over pairs writes to as many places as a digit has values.
const BITS: u32 = 8;

/// Sorts pairs in the order of their places by their keys: digit by digit, the lowest first. Digits are taken
/// from the bits that distances from the least key have: integers are often near each other, and the last bits
/// of an `f32` as `f64` are zeros. Each task has the places of its own pairs, in the order of the tasks, so
/// that threads do not meet.
fn sort_by_digits(pairs: &mut Pairs) {
    let n = pairs.len();
    let tasks = n.div_ceil(TASK);
    let part = |task: usize| task * TASK..n.min((task + 1) * TASK);
    let (mut least, mut spread) = (vec![i64::MAX; tasks], vec![0; tasks]);
    each_part(&mut least, 1, &|task, least| {
        least[0] = pairs[part(task)].iter().fold(i64::MAX, |least, (key, _)| least.min(*key));
    });
    let least = least.into_iter().fold(i64::MAX, i64::min);
    let above = |key: i64| key.wrapping_sub(least) as u64; // a distance can be too large for an `i64`
    each_part(&mut spread, 1, &|task, spread| {
        spread[0] = pairs[part(task)].iter().fold(0, |spread, (key, _)| spread | above(*key));
    });
    let spread = spread.into_iter().fold(0, |all, part| all | part);
    let (first, bits) = (spread.trailing_zeros(), u64::BITS - spread.leading_zeros());
    let passes = bits.saturating_sub(first).div_ceil(BITS);
    let width = bits.saturating_sub(first).div_ceil(passes.max(1));
    let (mut sorted, mut counts) = (PASS.take(), vec![[0; 1 << BITS]; tasks]);
    for pass in 0..passes {
        let digit = |key: i64| (above(key) >> (first + pass * width)) as usize & ((1 << width) - 1);
        each_part(&mut counts, 1, &|task, counts| {
            counts[0].fill(0);
            pairs[part(task)].iter().for_each(|(key, _)| counts[0][digit(*key)] += 1);
        });
        // The place of the first pair with each digit of each task, then of the next.
        let mut before = 0;
        for value in 0..1 << width {
            for counts in counts.iter_mut() {
                (before, counts[value]) = (before + counts[value], before);
            }
        }
        refill(&mut sorted, n, |room| {
            let places = DisjointParts::new(&mut *room);
            each_part(&mut counts, 1, &|task, counts| {
                for pair in &pairs[part(task)] {
                    let place = &mut counts[0][digit(pair.0)];
                    // SAFETY: a task's places of a digit begin where those of the tasks before it end, so
                    // each place is used once.
                    let room = unsafe { places.part(*place..*place + 1) };
                    room[0].write(*pair);
                    *place += 1;
                }
            });
            // SAFETY: the counts add up to `n`, so that each place is written.
            unsafe { written(room) }
        });
        std::mem::swap(pairs, &mut sorted);
    }
    keep(&PASS, sorted);
}

/// The position of the key that has `n` keys before it in sorted order.
pub(crate) fn nth(keys: &[i64], pairs: &mut Pairs, n: usize) -> usize {
    self::pairs(keys, false, pairs);
    pairs.select_nth_unstable(n).1.1
}

/// The position of the median, the lower of two; if `float`, the position of the first NaN, if there is one.
pub(crate) fn median(keys: &[i64], float: bool, pairs: &mut Pairs) -> usize {
    let nan = keys.iter().position(|key| float && *key == NAN_LAST);
    nan.unwrap_or_else(|| nth(keys, pairs, (keys.len() - 1) / 2))
}

/// The position of the median of the keys that are not NaN, or of a NaN if there are no others.
pub(crate) fn nanmedian(keys: &[i64], float: bool, pairs: &mut Pairs) -> usize {
    let numbers = keys.iter().filter(|key| !float || **key != NAN_LAST).count();
    nth(keys, pairs, numbers.saturating_sub(1) / 2)
}

/// The last position of the most frequent key, the smallest if there are several; if `float`, no NaN equals
/// another.
pub(crate) fn mode(keys: &[i64], float: bool, pairs: &mut Pairs) -> usize {
    sort(keys, false, pairs);
    let (mut best, mut at) = (0, 0);
    for run in pairs.chunk_by(|a, b| a.0 == b.0 && !(float && a.0 == NAN_LAST)) {
        if run.len() > best {
            (best, at) = (run.len(), run[run.len() - 1].1);
        }
    }
    at
}

/// The positions of the largest keys in descending order, or of the smallest in ascending order: as many as
/// there is room for.
pub(crate) fn top<'a>(
    keys: &[i64],
    largest: bool,
    pairs: &mut Pairs,
    places: &'a mut Room<i64>,
) -> &'a mut [i64] {
    let (turn, k) = (turn(largest), places.len());
    // Most keys are not better than the best ones before them, and need no pair.
    let room = (2 * k).max(64);
    let mut limit = i64::MAX;
    pairs.clear();
    for (place, key) in keys.iter().enumerate() {
        let key = key ^ turn;
        if place < room || key < limit {
            pairs.push((key, place));
            if pairs.len() >= room && k > 0 {
                limit = pairs.select_nth_unstable(k - 1).1.0;
                pairs.truncate(k);
            }
        }
    }
    pairs.sort_unstable();
    self::places(pairs, places)
}

/// The position of the best key so far, at each position.
pub(crate) fn running<'a>(
    keys: &[i64],
    better: fn(i64, i64) -> bool,
    places: &'a mut Room<i64>,
) -> &'a mut [i64] {
    let mut best = 0;
    write_each(places, |at| {
        if better(keys[at], keys[best]) {
            best = at;
        }
        best as i64
    })
}

/// The positions of the first pairs, as many as there is room for.
pub(crate) fn places<'a>(pairs: &[(i64, usize)], places: &'a mut Room<i64>) -> &'a mut [i64] {
    let pairs = &pairs[..places.len()];
    write_parts(places, TASK, &|task, places| write_each(places, |at| pairs[task * TASK + at].1 as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_keys_are_sorted_like_few() {
        let bits = |i: usize| (i as i64).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64);
        for (narrow, n) in [(0, BY_DIGITS + 7), (20, 3 * TASK + 1), (56, BY_DIGITS), (63, 2 * TASK)] {
            for descending in [false, true] {
                let keys: Vec<i64> = (0..n).map(|i| bits(i) >> narrow << (narrow / 3)).collect();
                let (mut found, mut expected) = (Pairs::new(), Pairs::new());
                sort(&keys, descending, &mut found);
                pairs(&keys, descending, &mut expected);
                expected.sort_unstable();
                assert_eq!(found, expected, "{narrow} {descending}");
            }
        }
        let mut same: Pairs = (0..BY_DIGITS).map(|place| (7, place)).collect();
        let expected = same.clone();
        sort_by_digits(&mut same);
        assert_eq!(same, expected);
    }

    #[test]
    fn keys_stand_in_the_order_of_their_floats() {
        let x = [f64::NEG_INFINITY, -2.0, -1e-310, -0.0, 0.0, 5e-324, 1.0, f64::MAX, f64::INFINITY, f64::NAN];
        for nan in [NAN_LAST, NAN_FIRST] {
            let mut found = [0; 10];
            keys(&x, nan, &mut found);
            assert_eq!(found[3], found[4]);
            assert_eq!(found[9], nan);
            assert!(found[..9].is_sorted());
            assert!(!found[..9].contains(&nan));
        }
    }
}
