//! Searches in the graph, which run no derivative: the leaves of a value, the first NaN, the last uses of
//! leaves, and the values that lead to chosen inputs.

use super::ById;
use crate::tape::Meta;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// The metas that lead to the inputs of a goal, including the inputs themselves, and whether each leads to a
/// further input.
pub(in crate::tape) type Useful = ById<bool>;

/// A meta in a heap that gives the latest first.
struct Latest(Arc<Meta>);

impl Ord for Latest {
    fn cmp(&self, other: &Latest) -> Ordering {
        self.0.id.cmp(&other.0.id)
    }
}
impl PartialOrd for Latest {
    fn partial_cmp(&self, other: &Latest) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Latest {
    fn eq(&self, other: &Latest) -> bool {
        self.0.id == other.0.id
    }
}
impl Eq for Latest {}

/// The metas of `starts` and all that they depend on, latest first. Those older than number `first` are not
/// followed further.
pub(crate) fn history(starts: &[Arc<Meta>], first: u64) -> Vec<Arc<Meta>> {
    let mut todo = BinaryHeap::new();
    for start in starts {
        todo.push(Latest(start.clone()));
    }
    let mut found: Vec<Arc<Meta>> = Vec::new();
    while let Some(Latest(meta)) = todo.pop() {
        if found.last().is_some_and(|last| last.id == meta.id) {
            continue;
        }
        if meta.id >= first
            && let Some(route) = &meta.state().route
        {
            route.visit(&mut |into| todo.push(Latest(into.clone())));
        }
        found.push(meta);
    }
    found
}

/// The records of the leaves that a value depends on.
#[cold]
pub(super) fn leaves_of(meta: &Arc<Meta>) -> Vec<u64> {
    let mut leaves = Vec::new();
    for meta in history(std::slice::from_ref(meta), 0) {
        if meta.is_leaf() {
            leaves.push(meta.id);
        }
    }
    leaves
}

/// The leaves of `roots`, each behind the oldest value whose op uses it, in the order of these.
#[cold]
pub(super) fn last_uses(roots: &[Arc<Meta>]) -> Vec<(u64, u64)> {
    let mut last: ById<u64> = ById::default();
    for meta in history(roots, 0) {
        if let Some(route) = &meta.state().route {
            route.visit(&mut |into| {
                if into.is_leaf() {
                    last.insert(into.id, meta.id); // the oldest comes last
                }
            });
        }
    }
    let uses: Vec<(u64, u64)> = crate::list(last.into_iter().map(|(leaf, used)| (used, leaf)));
    BinaryHeap::from(uses).into_sorted_vec()
}

/// The earliest value that `roots` depend on and that was NaN when it was computed in anomaly mode.
pub(super) fn first_nan(roots: &[Arc<Meta>]) -> Option<Arc<Meta>> {
    history(roots, 0).into_iter().rev().find(|meta| meta.is_nan)
}

/// The values from which a path leads to one of `inputs`, with `inputs` themselves.
pub(super) fn leading_to(roots: &[Arc<Meta>], inputs: &[Arc<Meta>]) -> Useful {
    let mut useful = Useful::default();
    for input in inputs {
        useful.insert(input.id, false);
    }
    // By number, every input of an op comes before the op, so what is older than all inputs of the goal does
    // not lead to them, freed or not.
    let first = inputs.iter().map(|input| input.id).min().unwrap_or(0);
    for meta in history(roots, first).iter().rev() {
        if meta.id < first {
            continue;
        }
        let mut leads_on = false;
        match &meta.state().route {
            Some(route) => route.visit(&mut |into| leads_on |= useful.contains_key(&into.id)),
            // The walk goes to a freed part and says so, unless it ends there anyway, at an input.
            None => leads_on = !meta.is_leaf() && !useful.contains_key(&meta.id),
        }
        if leads_on {
            useful.insert(meta.id, true);
        }
    }
    useful
}
