//! Several curves over one axis, as an SVG file.

use std::ops::Range;
use std::path::Path;

use plotters::prelude::*;

use super::{Result, atomic};

/// The width and height of the image, in pixels.
const SIZE: (u32, u32) = (1200, 480);

const COLORS: [RGBColor; 4] =
    [RGBColor(150, 150, 150), RGBColor(31, 119, 180), RGBColor(255, 127, 14), RGBColor(44, 160, 44)];

/// A curve with its name in the legend.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    /// Points from left to right.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Draws the curves and writes the image to `path`.
pub(crate) fn save(path: &Path, title: &str, axes: [&str; 2], lines: &[Line]) -> Result<()> {
    let mut svg = String::new();
    draw(SVGBackend::with_string(&mut svg, SIZE), title, axes, lines)?;
    atomic::write(path, svg.as_bytes())
}

fn draw(svg: SVGBackend<'_>, title: &str, axes: [&str; 2], lines: &[Line]) -> Result<()> {
    let canvas = svg.into_drawing_area();
    canvas.fill(&WHITE)?;
    let area = canvas.margin(10, 0, 0, 0).titled(title, ("sans-serif", 24))?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(limits(lines, |point| point.0), limits(lines, |point| point.1))?;
    chart
        .configure_mesh()
        .x_desc(axes[0])
        .y_desc(axes[1])
        .x_label_formatter(&|x| format!("{x:.0}"))
        .axis_desc_style(("sans-serif", 16))
        .label_style(("sans-serif", 14))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (line, color) in lines.iter().zip(COLORS.into_iter().cycle()) {
        let key = move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2));
        let points = line.points.iter().copied().filter(|point| point.0.is_finite() && point.1.is_finite());
        chart.draw_series(LineSeries::new(points, color.stroke_width(2)))?.label(line.name).legend(key);
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .label_font(("sans-serif", 14))
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(canvas.present()?)
}

/// An axis that covers all points.
fn limits(lines: &[Line], of: fn(&(f64, f64)) -> f64) -> Range<f64> {
    let values = || lines.iter().flat_map(|line| &line.points).map(of).filter(|value| value.is_finite());
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    match low < high {
        true => low..high,
        false if low == high => low - 1.0..low + 1.0,
        false => 0.0..1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;

    #[test]
    fn any_curves_can_be_drawn() {
        let folder = Scratch::new("lines");
        let path = folder.path().join("lines.svg");
        for points in [vec![], vec![(0.0, 1.0)], vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)]] {
            let lines = [Line { name: "curve", points }, Line { name: "other", points: vec![] }];
            save(&path, "a title", ["year", "spots"], &lines).unwrap();
            let svg = std::fs::read_to_string(&path).unwrap();
            assert!(["a title", "year", "spots", "curve"].iter().all(|word| svg.contains(word)));
        }
    }
}
