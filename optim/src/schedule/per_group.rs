//! [`PerGroup`], a number for all groups or one for each.

use super::require;
use namegrad_core::Result;
use serde::Serialize;

/// A number for all groups of parameters, or one for each.
///
/// ```
/// use namegrad::optim::schedule::OneCycle;
/// let for_all = OneCycle::new(0.1, 1000);
/// let for_each = OneCycle::new([0.1, 0.01], 1000);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PerGroup {
    /// The same number for all groups.
    All(f64),
    /// One number for each group.
    Each(Vec<f64>),
}

impl PerGroup {
    /// The number of a group. It is NaN if there is none.
    pub fn get(&self, group: usize) -> f64 {
        match self {
            PerGroup::All(value) => *value,
            PerGroup::Each(values) => values.get(group).copied().unwrap_or(f64::NAN),
        }
    }

    /// Checks that there is a finite number for each group.
    pub(super) fn check(&self, op: &'static str, what: &str, groups: usize) -> Result<()> {
        let values = match self {
            PerGroup::All(value) => std::slice::from_ref(value),
            PerGroup::Each(values) => {
                let message = || {
                    format!(
                        "{what} must have the same length as the groups of the optimizer: {what} has {} values, \
                         the optimizer has {groups} groups",
                        values.len()
                    )
                };
                require(
                    values.len() == groups,
                    op,
                    message,
                    "give one number for all groups, or one for each",
                )?;
                values
            }
        };
        let wrong = values.iter().find(|value| !value.is_finite());
        let message = || format!("{what} must be finite, but is {:?}", wrong.unwrap_or(&f64::NAN));
        require(wrong.is_none(), op, message, "give finite numbers")
    }
}

impl From<f64> for PerGroup {
    fn from(value: f64) -> PerGroup {
        PerGroup::All(value)
    }
}

impl<const N: usize> From<[f64; N]> for PerGroup {
    fn from(values: [f64; N]) -> PerGroup {
        PerGroup::Each(values.to_vec())
    }
}

impl From<&[f64]> for PerGroup {
    fn from(values: &[f64]) -> PerGroup {
        PerGroup::Each(values.to_vec())
    }
}

impl From<Vec<f64>> for PerGroup {
    fn from(values: Vec<f64>) -> PerGroup {
        PerGroup::Each(values)
    }
}
