//! Slow arrays of `f64`, and functions of numbers written like their definitions.

use std::cmp::Ordering;
use std::f64::consts::PI;

/// Numbers in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plain {
    pub(crate) sizes: Vec<usize>,
    pub(crate) data: Vec<f64>,
}

impl Plain {
    /// The value of `f` at each index.
    pub(crate) fn from_fn(sizes: &[usize], mut f: impl FnMut(&[usize]) -> f64) -> Plain {
        let numel = sizes.iter().product();
        let data = (0..numel).map(|at| f(&unravel(at, sizes))).collect();
        Plain { sizes: sizes.to_vec(), data }
    }

    /// The element at an index.
    pub(crate) fn at(&self, index: &[usize]) -> f64 {
        assert_eq!(index.len(), self.sizes.len());
        self.data[ravel(index, &self.sizes)]
    }

    /// The element at an index, as an index.
    pub(crate) fn whole(&self, index: &[usize]) -> usize {
        self.at(index) as usize
    }

    /// The element that broadcasting moves to an index of the result.
    pub(crate) fn broadcast(&self, index: &[usize]) -> f64 {
        let skipped = index.len() - self.sizes.len();
        let own: Vec<usize> =
            index[skipped..].iter().zip(&self.sizes).map(|(i, size)| (*i).min(size - 1)).collect();
        self.at(&own)
    }

    /// The elements along dim `dim` through an index.
    pub(crate) fn lane(&self, index: &[usize], dim: usize) -> Vec<f64> {
        let mut index = index.to_vec();
        let n = self.sizes[dim];
        (0..n)
            .map(|j| {
                index[dim] = j;
                self.at(&index)
            })
            .collect()
    }
}

/// The index of the `at`-th element in row-major order.
pub(crate) fn unravel(mut at: usize, sizes: &[usize]) -> Vec<usize> {
    let mut index = vec![0; sizes.len()];
    for (i, size) in index.iter_mut().zip(sizes).rev() {
        *i = at % size;
        at /= size;
    }
    index
}

/// The position of an index in row-major order.
pub(crate) fn ravel(index: &[usize], sizes: &[usize]) -> usize {
    index.iter().zip(sizes).fold(0, |at, (i, size)| at * size + i)
}

/// `Σ f(k)` for `k < n`.
pub(crate) fn sum(n: usize, f: impl FnMut(usize) -> f64) -> f64 {
    (0..n).map(f).sum()
}

/// The sums of the first element, of the first two, and so on.
pub(crate) fn running_sum(x: &[f64]) -> Vec<f64> {
    x.iter()
        .scan(0.0, |total, x| {
            *total += x;
            Some(*total)
        })
        .collect()
}

/// The larger of two numbers, or NaN if one is NaN.
pub(crate) fn larger(x: f64, y: f64) -> f64 {
    if x.is_nan() || x > y { x } else { y }
}

/// The smaller of two numbers, or NaN if one is NaN.
pub(crate) fn smaller(x: f64, y: f64) -> f64 {
    if x.is_nan() || x < y { x } else { y }
}

/// `x/|x|`, and 0 for 0 and NaN.
pub(crate) fn sign(x: f64) -> f64 {
    f64::from(x > 0.0) - f64::from(x < 0.0)
}

/// The remainder with the sign of the divisor.
pub(crate) fn remainder(x: f64, y: f64) -> f64 {
    let left = x % y;
    if left != 0.0 && (left < 0.0) != (y < 0.0) { left + y } else { left }
}

/// The quotient rounded down, from the exact remainder, because `x / y` may be rounded up to the next
/// integer.
pub(crate) fn floor_divide(x: f64, y: f64) -> f64 {
    if y == 0.0 {
        return x / y;
    }
    let left = x % y;
    let towards_zero = ((x - left) / y).round();
    if left != 0.0 && (left < 0.0) != (y < 0.0) { towards_zero - 1.0 } else { towards_zero }
}

/// `sin(πx) / (πx)`, and the limit at 0.
pub(crate) fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) }
}

/// `ln(e^x + e^y)`, with the larger number factored out.
pub(crate) fn logaddexp(x: f64, y: f64) -> f64 {
    if x == y && x.is_infinite() { x } else { larger(x, y) + (-(x - y).abs()).exp().ln_1p() }
}

/// The inverse of `erf`, by bisection and then Newton's steps.
pub(crate) fn erfinv(y: f64) -> f64 {
    if y.abs() >= 1.0 || y.is_nan() {
        return if y.abs() == 1.0 { y * f64::INFINITY } else { f64::NAN };
    }
    // Near 1 the complement is exact where `erf` is not.
    let distance =
        |x: f64| if y.abs() < 0.5 { libm::erf(x) - y.abs() } else { (1.0 - y.abs()) - libm::erfc(x) };
    let (mut low, mut high) = (0.0, 6.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if distance(middle) < 0.0 { low = middle } else { high = middle }
    }
    let mut x = 0.5 * (low + high);
    for _ in 0..3 {
        x -= distance(x) * PI.sqrt() / 2.0 * (x * x).exp();
    }
    x.copysign(y)
}

/// The derivative of `ln Γ`: the reflection and the recurrence lead to large `x`, where Stirling's series is
/// used.
///
/// Abramowitz, Stegun, *Handbook of Mathematical Functions* (1964), 6.3.5, 6.3.7 and 6.3.18.
pub(crate) fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return (-1.0f64).copysign(x) * f64::INFINITY;
    }
    if x < 0.0 {
        return if x.fract() == 0.0 { f64::NAN } else { digamma(1.0 - x) - PI / (PI * x.fract()).tan() };
    }
    let (mut x, mut shift) = (x, 0.0);
    while x < 20.0 {
        shift -= 1.0 / x;
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    // Bernoulli numbers B₂ₙ / 2n.
    let coefficients =
        [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0];
    let series = coefficients.iter().rev().fold(0.0, |sum, c| (sum + c) * inverse);
    shift + x.ln() - 0.5 / x - if x.is_finite() { series } else { 0.0 }
}

/// `I₀(x)`.
pub(crate) fn i0(x: f64) -> f64 {
    bessel(0.0, x, x.abs())
}

/// `e^-|x| I₀(x)`.
pub(crate) fn i0e(x: f64) -> f64 {
    bessel(0.0, x, 0.0)
}

/// `I₁(x)`.
pub(crate) fn i1(x: f64) -> f64 {
    bessel(1.0, x, x.abs())
}

/// `e^-|x| I₁(x)`.
pub(crate) fn i1e(x: f64) -> f64 {
    bessel(1.0, x, 0.0)
}

/// `e^(exponent - |x|) I(x)` of order 0 or 1: the series in `x²/4`, or for large `x` that in `1/x`.
///
/// Abramowitz, Stegun, *Handbook of Mathematical Functions* (1964), 9.6.10 and 9.7.1.
fn bessel(order: f64, x: f64, exponent: f64) -> f64 {
    let a = x.abs();
    let sign = if order == 0.0 { 1.0 } else { x.signum() };
    if a > 40.0 {
        let terms = (1..20).scan(1.0, |term, k| {
            *term *= ((2.0 * f64::from(k) - 1.0).powi(2) - 4.0 * order * order) / (8.0 * f64::from(k) * a);
            Some(*term)
        });
        let root = (exponent / 2.0).exp(); // `e^a` alone may overflow
        return sign * (1.0 + terms.sum::<f64>()) / (2.0 * PI * a).sqrt() * root * root;
    }
    let first = (x / 2.0).powi(order as i32);
    let terms = (1..200).scan(1.0, |term, k| {
        *term *= (x / 2.0).powi(2) / (f64::from(k) * (f64::from(k) + order));
        Some(*term)
    });
    first * (1.0 + terms.sum::<f64>()) * (exponent - a).exp()
}

/// `e^exponent K(x)` of this order: `∫ e^(exponent - x cosh t) cosh(order t) dt` from 0 on.
pub(crate) fn modified_bessel_k(order: f64, x: f64, exponent: f64) -> f64 {
    let at = |t: f64| (exponent - x * t.cosh()).exp() * (order * t).cosh();
    0.01 * (0.5 * at(0.0) + sum(1000, |k| at(0.01 * (k + 1) as f64)))
}

/// `Ai(x)` for small `x`, by its power series (*NIST Handbook of Mathematical Functions*, 9.4.1).
pub(crate) fn airy(x: f64) -> f64 {
    let (mut even, mut odd) = (0.3550280538878172, -0.2588194037928068 * x);
    let mut total = even + odd;
    for k in (3..120).step_by(3).map(f64::from) {
        even *= x.powi(3) / (k * (k - 1.0));
        odd *= x.powi(3) / (k * (k + 1.0));
        total += even + odd;
    }
    total
}

/// `e^(x²) erfc(x)`, for large `x` by the series in `1/x²`.
///
/// Abramowitz, Stegun, *Handbook of Mathematical Functions* (1964), 7.1.23.
pub(crate) fn erfcx(x: f64) -> f64 {
    if x < 20.0 {
        return (x * x).exp() * libm::erfc(x);
    }
    let terms = (0..8).scan(1.0, |term, k| {
        *term *= -(2.0 * f64::from(k) + 1.0) / (2.0 * x * x);
        Some(*term)
    });
    (1.0 + terms.sum::<f64>()) / (PI.sqrt() * x)
}

/// The logarithm of the normal distribution function.
pub(crate) fn log_ndtr(x: f64) -> f64 {
    let y = x / 2f64.sqrt();
    if x > 0.0 { (-0.5 * libm::erfc(y)).ln_1p() } else { (0.5 * erfcx(-y)).ln() - x * x / 2.0 }
}

/// The inverse of the normal distribution function, by bisection in the tail in which `p` has full precision.
pub(crate) fn ndtri(p: f64) -> f64 {
    if p > 0.5 || p.is_nan() {
        return if p <= 1.0 { -ndtri(1.0 - p) } else { f64::NAN };
    }
    if p <= 0.0 {
        return if p == 0.0 { f64::NEG_INFINITY } else { f64::NAN };
    }
    let (mut low, mut high) = (-40.0, 0.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if 0.5 * libm::erfc(-middle / 2f64.sqrt()) < p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The derivative of order `n` of [`digamma`]: the first terms of the series, and the rest by the formula of
/// Euler and Maclaurin.
///
/// Abramowitz, Stegun, *Handbook of Mathematical Functions* (1964), 6.4.10 and 23.1.30.
pub(crate) fn polygamma(n: i32, x: f64) -> f64 {
    if n == 0 {
        return digamma(x);
    }
    let s = f64::from(n) + 1.0;
    let factorial: f64 = (1..=n).map(f64::from).product();
    let head: f64 = (0..400).rev().map(|k| (x + f64::from(k)).powi(-n - 1)).sum();
    let far = x + 400.0;
    let tail = far.powf(1.0 - s) / (s - 1.0) + 0.5 * far.powf(-s) + s / 12.0 * far.powf(-s - 1.0)
        - s * (s + 1.0) * (s + 2.0) / 720.0 * far.powf(-s - 3.0);
    if n % 2 == 1 { factorial * (head + tail) } else { -factorial * (head + tail) }
}

/// `x + weight (end - x)`, exact at both ends. These two forms also determine the result for infinite ends,
/// which PyTorch's documentation leaves open.
pub(crate) fn lerp(x: f64, end: f64, weight: f64) -> f64 {
    if weight.abs() < 0.5 { x + weight * (end - x) } else { end - (end - x) * (1.0 - weight) }
}

/// `ln Σ e^x`, with the largest factored out.
pub(crate) fn logsumexp(x: &[f64]) -> f64 {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, larger);
    if max.is_infinite() { max } else { max + sum(x.len(), |i| (x[i] - max).exp()).ln() }
}

/// The sum of the squared deviations from the mean, divided by their number minus the correction.
pub(crate) fn variance(x: &[f64], correction: f64) -> f64 {
    let mean = sum(x.len(), |i| x[i]) / x.len() as f64;
    sum(x.len(), |i| (x[i] - mean).powi(2)) / (x.len() as f64 - correction).max(0.0)
}

/// `Σ x / n`.
pub(crate) fn mean(x: &[f64]) -> f64 {
    sum(x.len(), |i| x[i]) / x.len() as f64
}

/// The mean of the numbers that are not NaN.
pub(crate) fn nanmean(x: &[f64]) -> f64 {
    let numbers: Vec<f64> = x.iter().copied().filter(|x| !x.is_nan()).collect();
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// `(Σ |x|^ord)^(1/ord)`, and its limits.
pub(crate) fn norm(x: &[f64], ord: f64) -> f64 {
    let sizes = || x.iter().map(|x| x.abs());
    match ord {
        0.0 => sizes().filter(|x| *x != 0.0).count() as f64,
        f64::INFINITY => sizes().reduce(larger).unwrap_or(f64::NAN),
        f64::NEG_INFINITY => sizes().reduce(smaller).unwrap_or(f64::NAN),
        _ => sizes().map(|x| x.powf(ord)).sum::<f64>().powf(1.0 / ord),
    }
}

/// The products of the first element, of the first two, and so on.
pub(crate) fn running_product(x: &[f64]) -> Vec<f64> {
    (1..=x.len()).map(|n| x[..n].iter().product()).collect()
}

/// `ln Σ e^x` of the first element, of the first two, and so on.
pub(crate) fn running_logsumexp(x: &[f64]) -> Vec<f64> {
    (1..=x.len()).map(|n| logsumexp(&x[..n])).collect()
}

/// `e^x / Σ e^x`, with the largest factored out.
pub(crate) fn softmax(x: &[f64]) -> Vec<f64> {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total = sum(x.len(), |i| (x[i] - max).exp());
    x.iter().map(|x| (x - max).exp() / total).collect()
}

/// `x - ln Σ e^x`, with the largest factored out.
pub(crate) fn log_softmax(x: &[f64]) -> Vec<f64> {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total = sum(x.len(), |i| (x[i] - max).exp()).ln();
    x.iter().map(|x| x - max - total).collect()
}

/// The first position of the best number; NaN is better than any number.
pub(crate) fn best(x: &[f64], better: Ordering) -> f64 {
    if let Some(nan) = x.iter().position(|x| x.is_nan()) {
        return nan as f64;
    }
    let beaten = |i: usize| x.iter().any(|other| other.partial_cmp(&x[i]) == Some(better));
    (0..x.len()).find(|i| !beaten(*i)).unwrap_or(0) as f64
}

/// The positions in sorted order, with equal numbers in their original order; NaN is larger than all numbers.
pub(crate) fn sorted(x: &[f64], descending: bool) -> Vec<f64> {
    let compare = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
    let mut places: Vec<usize> = (0..x.len()).collect();
    places.sort_by(|a, b| if descending { compare(x[*b], x[*a]) } else { compare(x[*a], x[*b]) });
    places.into_iter().map(|place| place as f64).collect()
}

/// The last position of the most frequent number, the smallest if there are several; no NaN equals another.
pub(crate) fn mode(x: &[f64]) -> f64 {
    let count = |x: &[f64], of: f64| x.iter().filter(|x| **x == of).count().max(1);
    let mut best = f64::NAN;
    for place in sorted(x, false) {
        let number = x[place as usize];
        if best.is_nan() || count(x, number) > count(x, best) {
            best = number;
        }
    }
    x.iter().rposition(|x| *x == best).unwrap_or(0) as f64
}

/// The position of the median, the lower of two; the position of a NaN if there is one.
pub(crate) fn median(x: &[f64]) -> f64 {
    let nan = x.iter().position(|x| x.is_nan());
    nan.map_or_else(|| nanmedian(x), |nan| nan as f64)
}

/// The position of the median, the lower of two, ignoring NaN.
pub(crate) fn nanmedian(x: &[f64]) -> f64 {
    let numbers = x.iter().filter(|x| !x.is_nan()).count();
    sorted(x, false)[numbers.saturating_sub(1) / 2]
}

/// The positions of the best number so far, the last of equal numbers; NaN is better than any number.
pub(crate) fn running_best(x: &[f64], better: Ordering) -> Vec<f64> {
    let mut best = 0;
    let mut places = Vec::new();
    for (place, number) in x.iter().enumerate() {
        let beats = number.partial_cmp(&x[best]).is_some_and(|order| order == better || order.is_eq());
        if number.is_nan() || beats {
            best = place;
        }
        places.push(best as f64);
    }
    places
}

/// The difference between each number and the previous one.
pub(crate) fn diff(x: &[f64]) -> Vec<f64> {
    x.windows(2).map(|x| x[1] - x[0]).collect()
}

/// The number at position `q (n - 1)` in sorted order, interpolated between two numbers if necessary.
pub(crate) fn quantile(x: &[f64], q: f64) -> f64 {
    let sorted: Vec<f64> = sorted(x, false).into_iter().map(|place| x[place as usize]).collect();
    let place = q * (x.len() as f64 - 1.0);
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (place - place.floor()) * (above - below)
}

/// The bits of an integer shifted left; 0 for 64 or more bits.
pub(crate) fn shift_left(x: f64, by: f64) -> f64 {
    if (0.0..64.0).contains(&by) { ((x as i64) << by as u32) as f64 } else { 0.0 }
}

/// `x / 2^by` rounded down; eventually only the sign is left.
pub(crate) fn shift_right(x: f64, by: f64) -> f64 {
    let by = if (0.0..64.0).contains(&by) { by as u32 } else { 63 };
    (x as i64 >> by) as f64
}

/// The largest integer that divides both; if one is 0, the other.
pub(crate) fn gcd(x: f64, y: f64) -> f64 {
    let (x, y) = (x.abs() as u64, y.abs() as u64);
    (1..=x.max(y)).rev().find(|d| x % d == 0 && y % d == 0).unwrap_or(0) as f64
}
