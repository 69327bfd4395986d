//! [`PerGroup`], a number for all groups or one for each.

/// A number for all groups of parameters, or one for each.
///
/// ```
/// use namegrad::optim::schedule::OneCycle;
/// let for_all = OneCycle::new(0.1, 1000);
/// let for_each = OneCycle::new([0.1, 0.01], 1000);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum PerGroup {
    /// The same number for all groups.
    All(f64),
    /// A number for each group.
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
