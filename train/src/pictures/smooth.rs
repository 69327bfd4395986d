//! Smoothing of curves.

/// The points with values replaced by averages of those so far, in which the weight of a value falls by the
/// factor `weight` with each later one. Values that are not finite stay, and have no weight.
///
/// # Source
/// The slider of TensorBoard: an exponential moving average without the bias towards 0 of its start.
pub(super) fn smoothed(points: &[(f64, f64)], weight: f64) -> Vec<(f64, f64)> {
    let (mut average, mut rest) = (0.0, 1.0);
    let smooth = |&(x, y): &(f64, f64)| {
        if !y.is_finite() {
            return (x, y);
        }
        average = weight * average + (1.0 - weight) * y;
        rest *= weight;
        (x, average / (1.0 - rest))
    };
    points.iter().map(smooth).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_with_falling_weights() {
        let values = [3.0, -1.0, 4.0, f64::NAN, 1.0, -5.0, 9.0];
        let points: Vec<(f64, f64)> = (0..7).map(|x| (f64::from(x), values[x as usize])).collect();
        for weight in [0.0, 0.6, 0.99] {
            for (end, (x, y)) in smoothed(&points, weight).into_iter().enumerate() {
                assert_eq!(x, points[end].0);
                if values[end].is_nan() {
                    assert!(y.is_nan());
                    continue;
                }
                let known = values[..=end].iter().rev().filter(|y| y.is_finite());
                let (mut sum, mut weights, mut own) = (0.0, 0.0, 1.0);
                for value in known {
                    sum += own * value;
                    weights += own;
                    own *= weight;
                }
                assert!((y - sum / weights).abs() < 1e-12, "{weight}: {y} in place of {}", sum / weights);
            }
        }
    }
}
