//! [`Axis`]: the range of an axis, linear or logarithmic, and its labels. [`Axes`]: the rectangle of two.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// The numbers along an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    /// The ends; of a logarithmic axis, their logarithms to base 10.
    low: f64,
    high: f64,
    log: bool,
    /// Whether only whole numbers are labeled.
    whole: bool,
}

/// Far enough from the largest number that arithmetic does not overflow.
const LARGEST: f64 = 1e300;

impl Axis {
    /// An axis for these values, with a little room at both ends.
    pub(super) fn over(values: &[f64], log: bool, room: f64) -> Axis {
        let values = || values.iter().copied().filter(|value| is_drawable(*value, log));
        let whole = !log && values().all(|value| value.fract() == 0.0);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values().map(|value| if log { value.log10() } else { value }) {
            (low, high) = (low.min(value), high.max(value));
        }
        let axis = |low: f64, high: f64| Axis { low, high, log, whole };
        let size = low.abs().max(high.abs());
        if low > high {
            return axis(0.0, 1.0);
        }
        // If the values are almost equal, the labels would be too.
        if high - low <= 1e-9 * size || high == low {
            let half = if log || size == 0.0 || whole && size < 1e6 { 0.5 } else { 0.05 * size };
            return axis(low - half, high + half);
        }
        let room = room * (high - low);
        axis(low - room, high + room)
    }

    /// An axis between two ends, in either order.
    pub(super) fn between(ends: [f64; 2], log: bool) -> Axis {
        Axis::over(&ends, log, 0.0)
    }

    /// The same axis without the room below 0, for charts with bars.
    pub(super) fn with_floor(mut self) -> Axis {
        if !self.log && self.low < 0.0 && self.low > -0.1 * self.high {
            self.low = 0.0;
        }
        self
    }

    /// The same axis with room above, as a share of the whole.
    pub(super) fn with_room_above(mut self, share: f64) -> Axis {
        self.high += (self.high - self.low) * share / (1.0 - share);
        self
    }

    /// The lower end.
    pub(super) fn start(&self) -> f64 {
        self.value(self.low)
    }

    fn value(&self, position: f64) -> f64 {
        if self.log { 10f64.powf(position) } else { position }
    }

    /// The place of a value: 0 at the lower end, 1 at the upper.
    fn share(&self, value: f64) -> f64 {
        let position = if self.log { value.max(1.0 / LARGEST).log10() } else { value };
        (position - self.low) / (self.high - self.low)
    }

    /// The value at a place.
    fn at(&self, share: f64) -> f64 {
        self.value(self.low + share * (self.high - self.low))
    }

    /// The labeled values, at most `most`.
    pub(super) fn ticks(&self, most: usize) -> Vec<f64> {
        let most = most.clamp(2, 1000);
        if !self.log {
            return linear(self.low, self.high, most, self.whole);
        }
        let decades = self.low.floor() as i32..=self.high.ceil() as i32;
        let multiples = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(decade)));
        let inside = -1e-9..=1.0 + 1e-9;
        let multiples: Vec<f64> = multiples.filter(|value| inside.contains(&self.share(*value))).collect();
        match multiples.len() {
            0..3 => linear(self.value(self.low), self.value(self.high), most, false),
            count if count <= most => multiples,
            _ => {
                linear(self.low, self.high, most, true).into_iter().map(|decade| self.value(decade)).collect()
            }
        }
    }

    /// A label for one of the ticks.
    fn label(&self, value: f64) -> String {
        let step = match self.ticks(10).as_slice() {
            [first, second, ..] if !self.log => second - first,
            _ => return short(value),
        };
        let size = value.abs();
        if size >= 1e6 || step < 1e-4 {
            return short(value);
        }
        // Just the digits in which neighbors differ.
        let digits = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
        let text = format!("{value:.digits$}");
        if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') { "0".into() } else { text }
    }
}

/// The part of the plane that a chart shows.
pub(super) struct Axes {
    pub(super) x: Axis,
    pub(super) y: Axis,
}

impl Axes {
    /// The places of a point along both axes.
    pub(super) fn shares(&self, (x, y): (f64, f64)) -> [f64; 2] {
        [self.x.share(x), self.y.share(y)]
    }

    /// Whether a point is inside of both axes.
    pub(super) fn contains(&self, point: (f64, f64)) -> bool {
        self.shares(point).iter().all(|share| (-1e-9..=1.0 + 1e-9).contains(share))
    }

    /// The point inside that is nearest to a point.
    pub(super) fn nearest(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x.at(self.x.share(x).clamp(0.0, 1.0)), self.y.at(self.y.share(y).clamp(0.0, 1.0)))
    }

    /// The parts of a line that are inside. Liang, Barsky, *A new concept and method for line clipping*
    /// (1984).
    pub(super) fn clip(&self, line: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
        if line.iter().all(|point| self.contains(*point)) {
            return if line.is_empty() { vec![] } else { vec![line.to_vec()] };
        }
        let mut parts: Vec<Vec<(f64, f64)>> = Vec::new();
        for pair in line.windows(2) {
            let [from, to] = [pair[0], pair[1]].map(|(x, y)| [self.x.share(x), self.y.share(y)]);
            let (mut start, mut end) = (0.0, 1.0);
            for (from, to) in from.into_iter().zip(to) {
                // Where the segment crosses 0 and 1.
                let ends = [-from / (to - from), (1.0 - from) / (to - from)];
                match to - from {
                    0.0 if (0.0..=1.0).contains(&from) => {}
                    0.0 => end = -1.0,
                    _ => {
                        start = f64::max(start, f64::min(ends[0], ends[1]));
                        end = f64::min(end, f64::max(ends[0], ends[1]));
                    }
                }
            }
            if start > end {
                continue;
            }
            let at = |share: f64| {
                let [x, y] = [0, 1].map(|dim| from[dim] + share * (to[dim] - from[dim]));
                (self.x.at(x), self.y.at(y))
            };
            match parts.last_mut() {
                Some(part) if start == 0.0 && part.last() == Some(&at(0.0)) => part.push(at(end)),
                _ => parts.push(vec![at(start), at(end)]),
            }
        }
        parts
    }
}

/// Whether a value has a place on an axis.
pub(super) fn is_drawable(value: f64, log: bool) -> bool {
    value.abs() <= LARGEST && (!log || value > 1.0 / LARGEST)
}

/// Up to `most` multiples of 1, 2 or 5 times a power of ten in a range.
fn linear(low: f64, high: f64, most: usize, whole: bool) -> Vec<f64> {
    let least = (high - low) / (most - 1) as f64;
    let power = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = steps.into_iter().find(|step| *step >= least).unwrap_or(10.0 * power);
    let step = if whole { step.max(1.0) } else { step };
    let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
    if !(first.is_finite() && last - first <= 2.0 * most as f64) {
        return vec![];
    }
    (0..=(last - first) as usize).map(|number| (first + number as f64) * step).collect()
}

/// `100`, `0.01`, `1e-6`, `1.5e7`.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if (1e-4..1e6).contains(&size) => format!("{}", (value * 1e10).round() / 1e10),
        _ => {
            let text = format!("{value:.3e}");
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let digits = digits.trim_end_matches('0').trim_end_matches('.');
            format!("{digits}e{exponent}")
        }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        // Far outside is outside.
        let share = self.share(*value).clamp(-10.0, 11.0);
        first + (f64::from(last - first) * share).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, hint: H) -> Vec<f64> {
        self.ticks(hint.max_num_points())
    }

    fn range(&self) -> Range<f64> {
        self.value(self.low)..self.value(self.high)
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.label(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64], log: bool) -> Vec<String> {
        let axis = Axis::over(values, log, 0.0);
        axis.ticks(6).into_iter().map(|tick| axis.label(tick)).collect()
    }

    #[test]
    fn labels_are_round_numbers() {
        assert_eq!(labels(&[0.0, 1.0, 0.5], false), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&[1.0, 5.0], false), ["1", "2", "3", "4", "5"]);
        assert_eq!(labels(&[1.0, 2.0], false), ["1", "2"], "whole numbers");
        assert_eq!(labels(&[2e6, 8e6], false), ["2e6", "4e6", "6e6", "8e6"]);
        assert_eq!(labels(&[1e-6, 1e-1], true), ["1e-6", "1e-5", "0.0001", "0.001", "0.01", "0.1"]);
        assert_eq!(labels(&[1e-7, 1.0], true), ["1e-6", "0.0001", "0.01", "1"]);
    }

    #[test]
    fn lines_end_at_the_edge() {
        let axes = Axes { x: Axis::between([0.0, 8.0], false), y: Axis::between([0.0, 1.0], false) };
        assert_eq!(axes.clip(&[(0.0, 0.5), (8.0, 0.5)]), [[(0.0, 0.5), (8.0, 0.5)]]);
        // Leaves at the top and comes back.
        let parts = axes.clip(&[(0.0, 0.0), (4.0, 2.0), (8.0, 0.0)]);
        assert_eq!(parts, [[(0.0, 0.0), (2.0, 1.0)], [(6.0, 1.0), (8.0, 0.0)]]);
        assert_eq!(axes.clip(&[(-5.0, 0.5), (11.0, 0.5)]), [[(0.0, 0.5), (8.0, 0.5)]]);
        assert!(axes.clip(&[(0.0, 2.0), (8.0, 2.0)]).is_empty() && axes.clip(&[]).is_empty());
        assert!(axes.clip(&[(0.0, 5.0)]).is_empty());
        assert_eq!(axes.nearest((-1.0, 2.0)), (0.0, 1.0));
    }

    #[test]
    fn any_values_have_an_axis() {
        for log in [false, true] {
            for values in [
                &[][..],
                &[0.0],
                &[-5.0, -5.0],
                &[1e-300, 1e300],
                &[f64::NAN, f64::INFINITY],
                &[f64::MAX, f64::MIN, -1e300, 1e300],
                &[1.0, 1.0 + f64::EPSILON],
                &[5e-324, 1e-310],
                &[1e18, 1e18 + 256.0],
            ] {
                let axis = Axis::over(values, log, 0.05);
                assert!(axis.low < axis.high && (axis.high - axis.low).is_finite(), "{values:?} {axis:?}");
                assert!(axis.ticks(10).len() <= 21);
                for value in values.iter().filter(|value| is_drawable(**value, log)) {
                    assert!((0..=100).contains(&axis.map(value, (0, 100))), "{values:?} {axis:?}");
                }
            }
        }
    }
}
