//! A line search for the strong conditions of Wolfe.
//!
//! # Source
//! Nocedal, Wright, *Numerical Optimization* (2nd edition, 2006), algorithms 3.5 and 3.6, with the constants,
//! the interpolation and the limits of `torch.optim.LBFGS`.

use namegrad_core::{NamedTensor, Result};

/// A point on the line.
#[derive(Clone)]
pub(crate) struct LinePoint {
    /// The distance from the start, in units of the direction.
    pub(crate) t: f64,
    pub(crate) loss: f64,
    pub(crate) grad: NamedTensor,
    /// The derivative of the loss by `t`.
    pub(crate) slope: f64,
}

/// The share of the decrease predicted by the slope at the start that is enough.
const DECREASE: f64 = 1e-4;
/// The share of the slope at the start that counts as small.
const CURVATURE: f64 = 0.9;

/// A search from a start.
pub(crate) struct Search {
    pub(crate) start: LinePoint,
    /// The largest magnitude in the direction.
    pub(crate) largest: f64,
    /// The search ends when no parameter would change by more.
    pub(crate) tolerance_change: f64,
    pub(crate) max_evaluations: usize,
}

/// Computes a point.
type Evaluate<'e> = &'e mut dyn FnMut(f64) -> Result<LinePoint>;

/// The best point, and the number of evaluations.
type Found = Result<(LinePoint, usize)>;

impl Search {
    /// A point, and the number of evaluations. `t` is tried first.
    pub(crate) fn run(&self, t: f64, evaluate: Evaluate<'_>) -> Found {
        let (mut before, mut now) = (self.start.clone(), evaluate(t)?);
        // Further evaluations.
        let mut further = 0;
        while further < self.max_evaluations {
            let is_high = self.is_high(&now) || (further > 1 && now.loss >= before.loss);
            if !is_high && self.is_flat(&now) {
                return Ok((now, further + 1));
            }
            if is_high || now.slope >= 0.0 {
                return self.zoom([before, now], further, evaluate);
            }
            let bounds = (now.t + 0.01 * (now.t - before.t), now.t * 10.0);
            let next = minimum(&before, &now, bounds);
            before = std::mem::replace(&mut now, evaluate(next)?);
            further += 1;
        }
        self.zoom([self.start.clone(), now], further, evaluate)
    }

    /// Narrows a range around a good point.
    fn zoom(&self, mut ends: [LinePoint; 2], mut further: usize, evaluate: Evaluate<'_>) -> Found {
        let mut low = lower(&ends);
        // Whether the last point was close to an end.
        let mut close = false;
        while further < self.max_evaluations {
            if (ends[1].t - ends[0].t).abs() * self.largest < self.tolerance_change {
                break;
            }
            let (least, most) = (ends[0].t.min(ends[1].t), ends[0].t.max(ends[1].t));
            let mut t = minimum(&ends[0], &ends[1], (least, most));
            let margin = 0.1 * (most - least);
            if (most - t).min(t - least) >= margin {
                close = false;
            } else if close || t >= most || t <= least {
                t = if (t - most).abs() < (t - least).abs() { most - margin } else { least + margin };
                close = false;
            } else {
                close = true;
            }
            let now = evaluate(t)?;
            further += 1;
            let high = 1 - low;
            if self.is_high(&now) || now.loss >= ends[low].loss {
                ends[high] = now;
                low = lower(&ends);
                continue;
            }
            let done = self.is_flat(&now);
            if !done && now.slope * (ends[high].t - ends[low].t) >= 0.0 {
                ends[high] = ends[low].clone();
            }
            ends[low] = now;
            if done {
                break;
            }
        }
        Ok((ends[low].clone(), further + 1))
    }

    /// Whether the loss has not fallen enough.
    fn is_high(&self, point: &LinePoint) -> bool {
        point.loss > self.start.loss + DECREASE * point.t * self.start.slope
    }

    /// Whether the slope is small.
    fn is_flat(&self, point: &LinePoint) -> bool {
        point.slope.abs() <= -CURVATURE * self.start.slope
    }
}

/// The number of the end with the lower loss.
fn lower(ends: &[LinePoint; 2]) -> usize {
    usize::from(ends[0].loss > ends[1].loss || ends[0].loss.is_nan() || ends[1].loss.is_nan())
}

/// The minimum of the cubic polynomial with the losses and slopes of two points, within bounds.
///
/// # Source
/// Nocedal, Wright, equation 3.59.
#[inline(never)]
fn minimum(a: &LinePoint, b: &LinePoint, (low, high): (f64, f64)) -> f64 {
    let (a, b) = if a.t <= b.t { (a, b) } else { (b, a) };
    let d1 = a.slope + b.slope - 3.0 * (a.loss - b.loss) / (a.t - b.t);
    let square = d1 * d1 - a.slope * b.slope;
    if square >= 0.0 {
        let d2 = square.sqrt();
        let t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2.0 * d2));
        t.max(low).min(high)
    } else {
        (low + high) / 2.0
    }
}
