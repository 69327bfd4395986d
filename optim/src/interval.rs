//! [`Interval`], the range of an option: `0.0..`, `0.0..1.0`, `1..`.

use super::*;
use std::ops::{Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of numbers. NaN is in none, and infinity in none that has no end.
pub trait Interval: Send + Sync {
    /// The ends.
    fn bounds(&self) -> [Bound<f64>; 2];
    /// Whether a number between the ends is not in the range.
    fn has_hole_at(&self, _number: f64) -> bool {
        false
    }
}

impl dyn Interval + '_ {
    /// Whether a number is in the range.
    pub fn contains(&self, number: f64) -> bool {
        let [low, high] = self.bounds();
        let is_open = high == Bound::Unbounded && low != Bound::Unbounded;
        let is_inside = (low, high).contains(&number) && !self.has_hole_at(number);
        is_inside && !number.is_nan() && !(is_open && number == f64::INFINITY)
    }

    /// The condition on a number, or an integer, to be in the range: "finite and not negative".
    pub fn words(&self, is_integer: bool) -> String {
        match self.bounds() {
            [Bound::Included(f64::MIN), Bound::Included(f64::MAX)] => "finite".into(),
            [Bound::Included(0.0), Bound::Unbounded] => "finite and not negative".into(),
            [Bound::Unbounded, Bound::Unbounded] => "a number".into(),
            [low, high] => {
                let end = |bound, at: &str, beyond: &str| match bound {
                    Bound::Included(number) => Some(format!("{at} {number}")),
                    Bound::Excluded(number) => Some(format!("{beyond} {number}")),
                    Bound::Unbounded => None,
                };
                let low = end(low, "at least", "more than");
                let high = end(high, "at most", "less than").or((!is_integer).then(|| "finite".into()));
                namegrad_core::joined(&crate::list::<_, Vec<_>>(low.into_iter().chain(high)), " and ")
            }
        }
    }
}

/// The finite numbers other than 0.
pub(crate) struct NonZero;

impl Interval for NonZero {
    fn bounds(&self) -> [Bound<f64>; 2] {
        [Bound::Included(f64::MIN), Bound::Included(f64::MAX)]
    }
    fn has_hole_at(&self, number: f64) -> bool {
        number == 0.0
    }
}

impl Interval for RangeFull {
    fn bounds(&self) -> [Bound<f64>; 2] {
        [Bound::Unbounded; 2]
    }
}

for_types!(
    Range<f64>, RangeFrom<f64>, RangeInclusive<f64>, RangeToInclusive<f64>, (Bound<f64>, Bound<f64>),
    RangeFrom<i32>, RangeTo<i32> => Numbers {
        impl Interval for Numbers {
            fn bounds(&self) -> [Bound<f64>; 2] {
                [self.start_bound().map(|low| f64::from(*low)), self.end_bound().map(|high| f64::from(*high))]
            }
        }
    }
);
