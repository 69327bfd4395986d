//! Searches in the graph, which run no derivative: the leaves of a value, the first NaN, and the values that
//! lead to chosen inputs.

use super::ById;
use crate::tape::{Meta, Route};
use std::sync::Arc;

/// The metas that lead to the inputs of a goal, including the inputs themselves, and whether each leads to a
/// further input.
pub(in crate::tape) type Useful = ById<bool>;

/// The records of the leaves that a value depends on.
#[cold]
pub(super) fn leaves_of(meta: &Meta) -> Vec<u64> {
    let (mut seen, mut leaves): (ById<()>, Vec<u64>) = (ById::default(), Vec::new());
    let mut todo: Vec<Arc<Meta>> = Vec::new();
    let mut visit = |meta: &Meta, todo: &mut Vec<Arc<Meta>>| {
        if seen.insert(meta.id, ()).is_none() {
            leaves.extend(meta.is_leaf().then_some(meta.id));
            todo.extend(meta.route().iter().flat_map(Route::leads_to).cloned());
        }
    };
    visit(meta, &mut todo);
    while let Some(meta) = todo.pop() {
        visit(&meta, &mut todo);
    }
    leaves
}

/// The earliest value that `roots` depend on and that was NaN when it was computed in anomaly mode.
pub(super) fn first_nan(roots: impl Iterator<Item = Arc<Meta>>) -> Option<Arc<Meta>> {
    let mut seen: ById<()> = ById::default();
    let mut todo: Vec<Arc<Meta>> = roots.collect();
    let mut first: Option<Arc<Meta>> = None;
    while let Some(meta) = todo.pop() {
        if seen.insert(meta.id, ()).is_some() {
            continue;
        }
        let route = meta.route();
        todo.extend(route.iter().flat_map(Route::leads_to).cloned());
        if meta.is_nan && first.as_ref().is_none_or(|first| meta.id < first.id) {
            first = Some(meta);
        }
    }
    first
}

/// The values from which a path leads to one of `inputs`, with `inputs` themselves.
pub(super) fn leading_to(roots: impl Iterator<Item = Arc<Meta>>, inputs: &[Arc<Meta>]) -> Useful {
    // The values to which each value leads; `None` where a graph was freed, because they are unknown.
    let mut seen: ById<Option<Vec<u64>>> = ById::default();
    let mut todo: Vec<Arc<Meta>> = roots.collect();
    while let Some(meta) = todo.pop() {
        if seen.contains_key(&meta.id) {
            continue;
        }
        let state = meta.state();
        let into = state.route.as_ref().map(Route::leads_to).unwrap_or_default();
        let is_freed = state.route.is_none() && meta.origin.is_some();
        todo.extend(into.iter().filter(|into| !seen.contains_key(&into.id)).map(|into| Arc::clone(into)));
        seen.insert(meta.id, (!is_freed).then(|| into.iter().map(|into| into.id).collect()));
    }
    // By number, every input of an op comes before the op.
    let mut ids: Vec<u64> = seen.keys().copied().collect();
    ids.sort_unstable();
    let mut useful: Useful = inputs.iter().map(|input| (input.id, false)).collect();
    for id in ids {
        let leads_on = match &seen[&id] {
            Some(into) => into.iter().any(|into| useful.contains_key(into)),
            // The walk goes to a freed part and says so, unless it ends there anyway, at an input.
            None => !useful.contains_key(&id),
        };
        if leads_on {
            useful.insert(id, true);
        }
    }
    useful
}
