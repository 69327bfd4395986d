//! Comparing a state with a model, and loading it. The repair in the error is in `repair.rs`.

use super::repair::misfit;
use super::{ByPath, StateDict};
use crate::places::{AnyModule, EntryPlace, Ids, places};
use namegrad_core::{DType, NamedTensor, Result, Shape};
use namegrad_macros::Setters;
use std::fmt;

/// The mismatches that [`load_state_dict_with`](crate::Module::load_state_dict_with) allows. By default, the
/// state must fit exactly.
///
/// # Examples
/// ```
/// use namegrad::nn::LoadOptions;
/// use namegrad::prelude::*;
/// let small = Linear::builder(("in", 3), ("out", 2)).bias(false).build()?;
/// let model = Linear::new(("in", 3), ("out", 2))?;
/// assert!(model.load_state_dict(&small.state_dict()).is_err());
/// let report = model.load_state_dict_with(&small.state_dict(), LoadOptions::new().partial(true))?;
/// assert_eq!(report.missing, ["bias"]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Setters)]
pub struct LoadOptions {
    /// Allow paths that only the state or only the model has: values of the model that the state lacks stay as
    /// they are. At least one value must load.
    pub partial: bool,
    /// Align the dims of a value to those of the model by name, for example from `[N, H, W, C]` to
    /// `[N, C, H, W]`.
    pub align: bool,
    /// Allow values whose dims have other names. (Dims without names fit in any case.)
    pub ignore_names: bool,
    /// Leave out values with other sizes or names than in the model: they are reported and not loaded.
    pub skip_mismatched: bool,
}

/// The values that did not fit. [`LoadOptions`] has an example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadReport {
    /// Paths of the model that the state does not have.
    pub missing: Vec<String>,
    /// Paths of the state that the model does not have.
    pub unexpected: Vec<String>,
    /// Paths with other sizes or names: the dims in the model, then the dims in the state.
    pub mismatched: Vec<(String, Shape, Shape)>,
    /// Values that the model cannot have for another reason: the path and the reason.
    pub refused: Vec<(String, String)>,
}

impl LoadReport {
    /// Whether everything fit.
    pub fn is_empty(&self) -> bool {
        *self == LoadReport::default()
    }
}

/// The most paths in the text of a report.
const MOST_SHOWN: usize = 10;

/// At most ten of the paths, and how many there are.
impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&[]))
    }
}

impl LoadReport {
    /// At most ten of the paths, with their names on the other side.
    pub(super) fn text(&self, pairs: &[(String, String)]) -> String {
        let counts = [self.missing.len(), self.unexpected.len(), self.mismatched.len(), self.refused.len()];
        let kinds = counts.iter().filter(|count| **count > 0).count();
        let most = MOST_SHOWN / kinds.max(1);
        let mut parts = Vec::new();
        // A path of a pair is missing or unexpected, never both.
        let paired = |path: &String| {
            let pair = pairs.iter().find(|(from, to)| from == path || to == path)?;
            Some(if pair.0 == *path { &pair.1 } else { &pair.0 })
        };
        let lists = [("missing", &self.missing, "state"), ("unexpected", &self.unexpected, "model")];
        for (what, paths, place) in lists {
            let mut each = Vec::new();
            for path in paths.iter().take(most) {
                let other = paired(path).map(|other| format!(" (the {place} has {other})"));
                each.push(path.clone() + &other.unwrap_or_default());
            }
            if !each.is_empty() {
                parts.push(format!("{what}: {}{}", crate::joined(&each, ", "), more(paths.len(), most)));
            }
        }
        for (path, own, given) in self.mismatched.iter().take(most) {
            parts.push(format!("{path} is {own} in the model and {given} in the state"));
        }
        parts.extend(self.refused.iter().take(most).map(|(path, reason)| format!("{path} {reason}")));
        let others = counts[2].saturating_sub(most) + counts[3].saturating_sub(most);
        if others > 0 {
            parts.push(format!("and {others} more values that do not fit"));
        }
        crate::joined(&parts, "; ")
    }
}

/// The end of a list of which `most` are shown.
pub(super) fn more(count: usize, most: usize) -> String {
    if count > most { format!(", .. {count} in all") } else { String::new() }
}

impl StateDict {
    /// Compares everything with `state`, then loads it.
    #[track_caller]
    pub(crate) fn load_into(&self, module: &dyn AnyModule, options: LoadOptions) -> Result<LoadReport> {
        let mut by_path = ByPath::default();
        for (path, place) in places(module) {
            by_path.insert(path, place);
        }
        let (report, updates) = self.compare(&by_path, options)?;
        let absent = !report.missing.is_empty() || !report.unexpected.is_empty();
        let differ = !report.mismatched.is_empty() && !options.skip_mismatched;
        // A load of nothing leaves a model that was never trained.
        let nothing = updates.is_empty() && !by_path.entries().is_empty();
        if differ || !report.refused.is_empty() || absent && !options.partial || nothing {
            return Err(misfit(self, &by_path, &report, options)?);
        }
        for (place, value, own) in &updates {
            let path = || by_path.entries().iter().find(|(_, other)| other.id() == place.id());
            own.check_keeps_elements("load_state_dict", value).map_err(|error| match path() {
                Some((path, _)) => error.context(format!("'{path}': ")),
                None => error,
            })?;
        }
        for (done, (place, value, _)) in updates.iter().enumerate() {
            if let Err(error) = place.set(value.unnamed()) {
                // A parameter that is being updated further up on this thread.
                for (place, _, before) in &updates[..done] {
                    place.set(before.unnamed())?;
                }
                return Err(error);
            }
        }
        Ok(report)
    }

    /// The values that do not fit, and the new values of the others, each with its place and the value
    /// before.
    #[track_caller]
    #[allow(clippy::type_complexity)]
    pub(super) fn compare<'p>(
        &self,
        places: &'p ByPath<EntryPlace>,
        options: LoadOptions,
    ) -> Result<(LoadReport, Vec<(&'p EntryPlace, NamedTensor, NamedTensor)>)> {
        let (mut report, mut updates) = (LoadReport::default(), Vec::new());
        // A shared parameter is not missing if the state has one of its paths.
        let mut given_by = Ids::default();
        for (at, (path, place)) in places.entries().iter().enumerate() {
            if self.values.contains(path) {
                given_by.first(place.id(), at);
            }
        }
        let unexpected = self.values.paths().filter(|path| !places.contains(path));
        report.unexpected = crate::list(unexpected.map(str::to_string));
        for (at, (path, place)) in places.entries().iter().enumerate() {
            let Some(first) = given_by.get(place.id()) else {
                // Old files of PyTorch lack the count.
                let tracked = path.strip_suffix("num_batches_tracked");
                if !tracked.is_some_and(|layer| self.values.contains(&format!("{layer}running_mean"))) {
                    report.missing.push(path.clone());
                }
                continue;
            };
            let Some(given) = self.get(path) else { continue };
            let own = place.dims()?;
            let Some(value) = fitted(&own, given, options) else {
                report.mismatched.push((path.clone(), own.shape(), given.shape()));
                continue;
            };
            let of_first = &places.entries()[first].0;
            let (to, from) = (own.dtype(), value.dtype());
            if from.is_floating_point() && !to.is_floating_point() {
                let reason = format!("is of {to} in the model and of {from} in the state");
                report.refused.push((path.clone(), reason));
            } else if first == at {
                let value = value.to(to)?;
                let value = place.part().map_or(Ok(value.clone()), |part| part.mine(&value))?;
                updates.push((place, value, place.value()));
            } else if !self.get(of_first).map_or(Ok(true), |value| same_values(value, given))? {
                let reason = format!(
                    "is the same parameter as {of_first} in the model, and has other values in the state"
                );
                report.refused.push((path.clone(), reason));
            }
        }
        Ok((report, updates))
    }
}

/// Whether both have the same numbers; NaN is the same as NaN.
#[track_caller]
fn same_values(a: &NamedTensor, b: &NamedTensor) -> Result<bool> {
    if a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() {
        return Ok(true);
    }
    let numbers = |x: &NamedTensor| x.to(DType::F64)?.to_vec::<f64>();
    let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits();
    Ok(a.sizes() == b.sizes() && numbers(a)?.iter().zip(&numbers(b)?).all(same))
}

/// The value with the dims of the model, if it fits.
fn fitted(own: &NamedTensor, given: &NamedTensor, options: LoadOptions) -> Option<NamedTensor> {
    if options.align && own.names() != given.names() && own.has_names() && given.has_names() {
        let aligned = given.align_as(own).ok()?;
        return (aligned.sizes() == own.sizes()).then_some(aligned);
    }
    let names_agree = || options.ignore_names || own.unified_names("", "match", given).is_ok();
    (own.sizes() == given.sizes() && names_agree()).then(|| given.clone())
}
