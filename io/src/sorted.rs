//! Lists that are made, sorted and searched by little code. The standard library's sorts are compiled again for
//! each type of element, and its iterators for each closure.
use std::mem::replace;

pub use namegrad_core::callback::order;

/// The values of `make` for the numbers below `count`.
pub fn list_of<T>(count: usize, make: &mut dyn FnMut(usize) -> T) -> Vec<T> {
    let mut list = Vec::with_capacity(count);
    for at in 0..count {
        list.push(make(at));
    }
    list
}

/// Sorts the items. The sort is stable.
pub fn sort<T>(items: &mut [T], is_less: &dyn Fn(&T, &T) -> bool) {
    let mut order = order(items.len(), &|a, b| is_less(&items[a], &items[b]));
    swap_into(&mut order, &mut |a, b| items.swap(a, b));
}

/// Swaps until the item of number `order[at]` is at `at`, one cycle of the permutation after the other.
fn swap_into(order: &mut [usize], swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..order.len() {
        let mut at = start;
        loop {
            let from = replace(&mut order[at], at);
            if from == start {
                break;
            }
            swap(at, from);
            at = from;
        }
    }
}

/// Leaves out the items that are not to be kept.
#[inline(never)]
pub fn retain<T>(items: &mut Vec<T>, is_kept: &dyn Fn(&T) -> bool) {
    items.retain(|item| is_kept(item));
}

/// The place of a name in a list that is sorted by name, or the place at which it belongs.
pub fn find<'n>(count: usize, name_at: &dyn Fn(usize) -> &'n str, name: &str) -> Result<usize, usize> {
    let (mut start, mut end) = (0, count);
    while start < end {
        let middle = start.midpoint(end);
        match name_at(middle) < name {
            true => start = middle + 1,
            false => end = middle,
        }
    }
    if start < count && name_at(start) == name { Ok(start) } else { Err(start) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_sorted_and_equal_ones_stay_in_their_order() {
        for count in 0..70 {
            let mut items: Vec<(usize, usize)> = (0..count).map(|at| (at * 7919 % 11, at)).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            sort(&mut items, &|a, b| a.0 < b.0);
            assert_eq!(items, expected);
        }
    }

    #[test]
    fn a_name_is_found_where_it_is_or_belongs() {
        let names = ["a", "c", "e"];
        for (name, place) in [("a", Ok(0)), ("e", Ok(2)), ("", Err(0)), ("d", Err(2)), ("f", Err(3))] {
            assert_eq!(find(3, &|at| names[at], name), place, "{name}");
        }
        assert_eq!(find(0, &|_| unreachable!(), "a"), Err(0));
    }
}
