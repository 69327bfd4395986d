//! Closures behind references.
//!
//! `&dyn Fn(A)` would do, but an object of `Fn` has two more functions, which are compiled for each closure,
//! and one of them often has all of its body.

use smallvec::{Array, SmallVec};
use std::iter::from_fn;

/// A closure of the types in a tuple.
pub trait Callback<Args, R = ()> {
    fn call_with(&self, args: Args) -> R;
}

impl<A, R, F: Fn(A) -> R> Callback<(A,), R> for F {
    #[inline]
    fn call_with(&self, (a,): (A,)) -> R {
        self(a)
    }
}

impl<A, B, R, F: Fn(A, B) -> R> Callback<(A, B), R> for F {
    #[inline]
    fn call_with(&self, (a, b): (A, B)) -> R {
        self(a, b)
    }
}

impl<A, B, C, R, F: Fn(A, B, C) -> R> Callback<(A, B, C), R> for F {
    #[inline]
    fn call_with(&self, (a, b, c): (A, B, C)) -> R {
        self(a, b, c)
    }
}

/// A closure of one value that changes what it captures.
pub trait CallbackMut<A, R = ()> {
    fn call_with(&mut self, a: A) -> R;
}

impl<A, R, F: FnMut(A) -> R> CallbackMut<A, R> for F {
    #[inline]
    fn call_with(&mut self, a: A) -> R {
        self(a)
    }
}

/// `collect` as a call: that of `std` is compiled again for each closure in front of it, with all of what a
/// list does to grow. For lists that are short, since each item is a call.
#[inline]
pub fn list<T, L: List<T>>(mut items: impl Iterator<Item = T>) -> L {
    L::from_calls(items.size_hint().0, &mut |()| items.next())
}

/// The texts with `between` them: `join` as a call, which crates share.
#[inline(never)]
pub fn joined<T: AsRef<str>>(texts: &[T], between: &str) -> String {
    let mut all = String::new();
    for (number, text) in texts.iter().enumerate() {
        all += if number == 0 { "" } else { between };
        all += text.as_ref();
    }
    all
}

/// A list that is made of the results of calls, until there are no more.
pub trait List<T> {
    /// The list of at least so many items.
    fn from_calls(least: usize, next: &mut dyn CallbackMut<(), Option<T>>) -> Self;
}

impl<T> List<T> for Vec<T> {
    #[inline(never)]
    fn from_calls(least: usize, next: &mut dyn CallbackMut<(), Option<T>>) -> Vec<T> {
        let mut list = Vec::with_capacity(least);
        while let Some(item) = next.call_with(()) {
            list.push(item);
        }
        list
    }
}

impl<A: Array> List<A::Item> for SmallVec<A> {
    #[inline(never)]
    fn from_calls(_: usize, next: &mut dyn CallbackMut<(), Option<A::Item>>) -> SmallVec<A> {
        let mut list = SmallVec::new();
        while let Some(item) = next.call_with(()) {
            list.push(item);
        }
        list
    }
}

impl<T, L: List<T>> List<Option<T>> for Option<L> {
    fn from_calls(_: usize, next: &mut dyn CallbackMut<(), Option<Option<T>>>) -> Option<L> {
        list::<Result<T, ()>, Result<L, ()>>(from_fn(|| Some(next.call_with(())?.ok_or(())))).ok()
    }
}

impl<T, E, L: List<T>> List<Result<T, E>> for Result<L, E> {
    #[inline(never)]
    fn from_calls(_: usize, next: &mut dyn CallbackMut<(), Option<Result<T, E>>>) -> Result<L, E> {
        let mut failed = None;
        let list = L::from_calls(0, &mut |()| next.call_with(())?.map_err(|error| failed = Some(error)).ok());
        failed.map_or(Ok(list), Err)
    }
}

/// The numbers below `count`, sorted by `is_less`. The sort is stable: equal ones stay in their order.
#[inline(never)]
pub fn order(count: usize, is_less: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut order: Vec<usize> = list(0..count);
    let mut merged = order.clone();
    let mut width = 1;
    while width < count {
        for start in (0..count).step_by(2 * width) {
            let middle = count.min(start + width);
            let end = count.min(start + 2 * width);
            let (mut left, mut right) = (start, middle);
            for slot in &mut merged[start..end] {
                let is_right = left == middle || (right < end && is_less(order[right], order[left]));
                let next = if is_right { &mut right } else { &mut left };
                *slot = order[*next];
                *next += 1;
            }
        }
        std::mem::swap(&mut order, &mut merged);
        width *= 2;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_end_at_the_first_error() {
        let even: Vec<usize> = list((0..5).filter(|at| at % 2 == 0));
        let all: SmallVec<[usize; 2]> = list(0..5);
        assert_eq!((&even[..], &all[..]), (&[0, 2, 4][..], &[0, 1, 2, 3, 4][..]));
        let whole = |items: [Option<usize>; 2]| list::<_, Option<Vec<_>>>(items.into_iter());
        assert_eq!((whole([Some(1), Some(2)]), whole([None, Some(2)])), (Some(vec![1, 2]), None));
        assert_eq!(list::<_, Result<Vec<_>, _>>([Ok(1), Err("no"), Ok(2)].into_iter()), Err("no"));
    }
}
