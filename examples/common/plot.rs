//! The curves of a training run, as an SVG file.

use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Result, atomic};

/// The width and height of the image, in pixels.
const SIZE: (u32, u32) = (960, 420);

/// The measurements after an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Epoch {
    /// Mean loss over the training data.
    pub(crate) train_loss: f64,
    /// Mean loss over the test data.
    pub(crate) test_loss: f64,
    /// Accuracy on the training data, from 0 to 1.
    pub(crate) train_accuracy: f64,
    /// Accuracy on the test data, from 0 to 1.
    pub(crate) test_accuracy: f64,
}

/// Draws loss and accuracy side by side, with epochs counted from 1, and writes the image to `path`.
///
/// A loss that is not finite (a run that diverged) leaves a gap.
pub(crate) fn save(path: &Path, title: &str, epochs: &[Epoch]) -> Result<()> {
    let mut svg = String::new();
    draw(SVGBackend::with_string(&mut svg, SIZE), title, epochs)?;
    atomic::write(path, svg.as_bytes())
}

fn draw(svg: SVGBackend<'_>, title: &str, epochs: &[Epoch]) -> Result<()> {
    let canvas = svg.into_drawing_area();
    canvas.fill(&WHITE)?;
    let panels = canvas.margin(10, 0, 0, 0).titled(title, ("sans-serif", 24))?;
    let (loss, accuracy) = panels.split_horizontally(SIZE.0 / 2);
    let values = |of: fn(&Epoch) -> f64| epochs.iter().map(of).collect::<Vec<_>>();
    let curves = [values(|epoch| epoch.train_loss), values(|epoch| epoch.test_loss)];
    panel(&loss, "loss", SeriesLabelPosition::UpperRight, &curves)?;
    let curves = [values(|epoch| 100.0 * epoch.train_accuracy), values(|epoch| 100.0 * epoch.test_accuracy)];
    panel(&accuracy, "accuracy (%)", SeriesLabelPosition::LowerRight, &curves)?;
    Ok(canvas.present()?)
}

/// A chart with one curve for the training data and one for the test data.
fn panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    label: &str,
    legend: SeriesLabelPosition,
    curves: &[Vec<f64>; 2],
) -> Result<()> {
    // A single epoch is drawn in the middle, because an axis needs two ends.
    let epochs = match curves[0].len() {
        0 | 1 => 0..2,
        count => 1..count,
    };
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(epochs, limits(curves))?;
    chart
        .configure_mesh()
        .x_desc("epoch")
        .y_desc(label)
        .x_labels(10)
        .y_labels(8)
        .axis_desc_style(("sans-serif", 16))
        .label_style(("sans-serif", 14))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for ((name, color), curve) in
        [("train", RGBColor(31, 119, 180)), ("test", RGBColor(255, 127, 14))].into_iter().zip(curves)
    {
        for points in runs(curve) {
            chart.draw_series(LineSeries::new(points, color.filled().stroke_width(2)).point_size(3))?;
        }
        // The legend has its own series, so that it has one entry for any number of segments.
        let key = move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2));
        chart.draw_series(LineSeries::new([], color))?.label(name).legend(key);
    }
    chart
        .configure_series_labels()
        .position(legend)
        .label_font(("sans-serif", 14))
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}

/// Far above any meaningful loss, and far enough below the largest number that arithmetic does not overflow.
fn is_drawable(value: f64) -> bool {
    value.abs() < 1e30
}

/// The segments of a curve between gaps, as points; the first epoch is 1.
fn runs(curve: &[f64]) -> Vec<Vec<(usize, f64)>> {
    let points: Vec<(usize, f64)> = (1..).zip(curve.iter().copied()).collect();
    let runs = points.split(|&(_, value)| !is_drawable(value));
    runs.filter(|run| !run.is_empty()).map(<[_]>::to_vec).collect()
}

/// An axis that covers all values, with a little room at both ends.
fn limits(curves: &[Vec<f64>]) -> Range<f64> {
    let values = || curves.iter().flatten().copied().filter(|&value| is_drawable(value));
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let size = low.abs().max(high.abs());
    if low > high || size < 1e-30 {
        return 0.0..1.0;
    }
    // If the values were almost equal, the axis would have no room for distinct labels.
    let room = (0.05 * (high - low)).max(1e-3 * size);
    low - room..high + room
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::scratch::Scratch;
    use super::*;

    fn epoch(loss: f64) -> Epoch {
        Epoch { train_loss: loss, test_loss: 1.1 * loss, train_accuracy: 0.9, test_accuracy: 0.8 }
    }

    #[test]
    fn the_file_names_its_axes_and_curves() {
        let folder = Scratch::new("plot");
        let path = folder.path().join("loss.svg");
        let epochs: Vec<Epoch> = (1..30).map(|step| epoch(2.0 / f64::from(step))).collect();
        save(&path, "digits & <letters>", &epochs).unwrap();
        let svg = fs::read_to_string(&path).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        let words: Vec<&str> = svg.lines().map(str::trim).collect();
        for word in ["digits &amp; &lt;letters&gt;", "epoch", "loss", "accuracy (%)", "train", "test"] {
            assert!(words.contains(&word), "{word} is missing");
        }
    }

    #[test]
    fn any_losses_can_be_drawn() {
        let folder = Scratch::new("plot-any");
        let path = folder.path().join("loss.svg");
        for losses in [
            &[][..],
            &[0.5],
            &[0.5, 0.5],
            &[0.0, 0.0, 0.0],
            &[1.0, 1.0 + f64::EPSILON],
            &[1e-300],
            &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY],
            &[0.5, f64::NAN, 1e20, f64::MAX, f64::MIN, 1e-300],
        ] {
            let epochs: Vec<Epoch> = losses.iter().map(|&loss| epoch(loss)).collect();
            save(&path, "a", &epochs).unwrap();
        }
    }

    #[test]
    fn a_gap_divides_a_curve() {
        assert_eq!(runs(&[1.0, f64::NAN, 3.0, 4.0]), [vec![(1, 1.0)], vec![(3, 3.0), (4, 4.0)]]);
        assert!(runs(&[f64::INFINITY]).is_empty());
    }
}
