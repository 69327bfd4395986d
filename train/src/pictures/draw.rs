//! Drawing of a [`Chart`].

use super::Rgb;
use super::axis::{Axes, Axis, is_drawable};
use super::canvas::{Area, Drawable, Drawn, FONT};
use super::chart::{Background, Chart, Marks, Series};
use super::smooth::smoothed;
use plotters::prelude::*;

type Context<'a, D> = ChartContext<'a, D, Cartesian2d<Axis, Axis>>;

impl Drawable for Chart {
    fn size(&self) -> (u32, u32) {
        self.size
    }

    fn draw<D: DrawingBackend>(&self, area: &Area<D>) -> Drawn<D> {
        let mut builder = ChartBuilder::on(area);
        builder.margin(12).x_label_area_size(44).y_label_area_size(66);
        if !self.title.is_empty() {
            builder.caption(&self.title, (FONT, 20));
        }
        let mut axes = self.axes();
        let legend = legend(self, &axes);
        if let Some(Legend { height, is_free: false, .. }) = legend
            && self.ranges[1].is_none()
        {
            axes.y = axes.y.with_room_above(height);
        }
        let mut chart = builder.build_cartesian_2d(axes.x.clone(), axes.y.clone())?;
        if let Some(image) = &self.background {
            draw_background(image, &mut chart)?;
        }
        chart
            .configure_mesh()
            .x_desc(&self.labels[0])
            .y_desc(&self.labels[1])
            .x_labels(9)
            .y_labels(8)
            .axis_desc_style((FONT, 16))
            .label_style((FONT, 14))
            .light_line_style(TRANSPARENT)
            .draw()?;
        for series in &self.series {
            draw_series(series, self, &axes, &mut chart)?;
        }
        if let Some(legend) = legend {
            chart
                .configure_series_labels()
                .position(legend.corner)
                .label_font((FONT, 14))
                .background_style(WHITE.mix(0.85))
                .border_style(BLACK.mix(0.3))
                .draw()?;
        }
        Ok(())
    }
}

fn draw_background<D: DrawingBackend>(image: &Background, chart: &mut Context<'_, D>) -> Drawn<D> {
    let height = image.colors.len() / image.width;
    let at = |ends: [f64; 2], place: usize, count: usize| {
        ends[0] + (ends[1] - ends[0]) * place as f64 / count as f64
    };
    chart.draw_series(image.colors.iter().enumerate().map(|(number, color)| {
        let (row, column) = (height - number / image.width, number % image.width);
        let corner = |row, column| (at(image.x, column, image.width), at(image.y, row, height));
        Rectangle::new([corner(row, column), corner(row - 1, column + 1)], rgb(color).filled())
    }))?;
    Ok(())
}

/// A line with at most this many points shows them.
const FEW: usize = 12;

fn draw_series<D: DrawingBackend>(
    series: &Series,
    of: &Chart,
    axes: &Axes,
    chart: &mut Context<'_, D>,
) -> Drawn<D> {
    let color = rgb(&series.color);
    let drawable = |point: &(f64, f64)| is_point(point, of.log);
    match &series.marks {
        Marks::Line(points) if of.smoothing > 0.0 => {
            draw_line(points, color.mix(0.25), of.log, axes, chart)?;
            draw_line(&smoothed(points, of.smoothing), color.to_rgba(), of.log, axes, chart)?;
        }
        Marks::Line(points) => draw_line(points, color.to_rgba(), of.log, axes, chart)?,
        Marks::Points(points) => {
            let points = points.iter().filter(|point| drawable(point) && axes.contains(**point));
            chart.draw_series(points.map(|point| Circle::new(*point, 3, color.filled())))?;
        }
        Marks::Bars(bars) => {
            let bars = bars.iter().filter(|bar| drawable(&(bar.1, bar.2)) && drawable(&(bar.0, bar.2)));
            chart.draw_series(bars.map(|(low, high, count)| {
                let corners = [(*low, axes.y.start()), (*high, *count)].map(|corner| axes.nearest(corner));
                Rectangle::new(corners, color.mix(0.6).filled())
            }))?;
        }
    }
    if !series.name.is_empty() {
        // The legend has its own series, so that it has one entry for any number of parts.
        let key = move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(3));
        chart.draw_series(LineSeries::new([], color))?.label(&series.name).legend(key);
    }
    Ok(())
}

fn is_point((x, y): &(f64, f64), log: [bool; 2]) -> bool {
    is_drawable(*x, log[0]) && is_drawable(*y, log[1])
}

fn draw_line<D: DrawingBackend>(
    points: &[(f64, f64)],
    color: RGBAColor,
    log: [bool; 2],
    axes: &Axes,
    chart: &mut Context<'_, D>,
) -> Drawn<D> {
    let size = if points.len() <= FEW { 3 } else { 0 };
    for run in points.split(|point| !is_point(point, log)) {
        let size = if run.len() == 1 { 3 } else { size };
        for part in axes.clip(&thinned(run)) {
            let line = LineSeries::new(part, color.filled().stroke_width(2));
            chart.draw_series(line.point_size(size))?;
        }
    }
    Ok(())
}

/// The place of the legend.
struct Legend {
    corner: SeriesLabelPosition,
    /// The share of the height that it takes.
    height: f64,
    /// Whether nothing is drawn there.
    is_free: bool,
}

/// The corner with the fewest points and lines, or one above if none is free; `None` if no series has a name.
fn legend(of: &Chart, axes: &Axes) -> Option<Legend> {
    use SeriesLabelPosition::{LowerLeft, LowerRight, UpperLeft, UpperRight};
    let (mut rows, mut letters) = (0, 0);
    for series in of.series.iter().filter(|series| !series.name.is_empty()) {
        rows += 1;
        letters = letters.max(series.name.chars().count());
    }
    if rows == 0 {
        return None;
    }
    // The sizes of its letters and of the labels of the axes, in pixels, with some room.
    let share =
        |size: usize, whole: u32, labels: f64| (size as f64 / (f64::from(whole) - labels)).clamp(0.1, 0.5);
    let (width, height) = (share(9 * letters + 50, of.size.0, 90.0), share(20 * rows + 30, of.size.1, 100.0));
    let mut counts = [0.0; 4];
    for series in &of.series {
        let points = outline(&series.marks, axes);
        for [x, y] in &points {
            let (left, right, low, high) = (*x < width, *x > 1.0 - width, *y < height, *y > 1.0 - height);
            let inside = [right && high, right && low, left && high, left && low];
            for (count, inside) in counts.iter_mut().zip(inside) {
                *count += f64::from(u8::from(inside)) / points.len() as f64;
            }
        }
    }
    let mut best = 0;
    for corner in 1..4 {
        if counts[corner] < counts[best] {
            best = corner;
        }
    }
    let is_free = counts[best] == 0.0;
    // Above the lines, the right corner is as good as the left one.
    let best = if is_free || of.ranges[1].is_some() { best } else { 0 };
    Some(Legend { corner: [UpperRight, LowerRight, UpperLeft, LowerLeft][best].clone(), height, is_free })
}

/// Points of a series, and of its lines some between them, as shares of both axes.
fn outline(marks: &Marks, axes: &Axes) -> Vec<[f64; 2]> {
    let corners: Vec<(f64, f64)> = marks.corners().collect();
    let places: Vec<[f64; 2]> = corners.iter().map(|point| axes.shares(*point)).collect();
    let mut outline = places.clone();
    if let Marks::Line(_) = marks {
        for pair in places.windows(2) {
            for part in [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875] {
                outline.push([0, 1].map(|dim| pair[0][dim] + part * (pair[1][dim] - pair[0][dim])));
            }
        }
    }
    outline
}

/// The points of a line, or of one with so many that they cannot be told apart, the outermost ones.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    const PARTS: usize = 2000;
    if points.len() <= 4 * PARTS {
        return points.to_vec();
    }
    let mut kept = Vec::new();
    for part in points.chunks(points.len().div_ceil(PARTS)) {
        let by = |a: &usize, b: &usize| part[*a].1.total_cmp(&part[*b].1);
        let (lowest, highest) = ((0..part.len()).min_by(by), (0..part.len()).max_by(by));
        let mut outermost = [0, lowest.unwrap_or(0), highest.unwrap_or(0), part.len() - 1];
        outermost.sort_unstable();
        kept.extend(outermost.map(|place| part[place]));
    }
    kept
}

pub(super) fn rgb(color: &Rgb) -> RGBColor {
    RGBColor(color[0], color[1], color[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legend_is_not_over_a_line() {
        let place = |of: Chart| {
            let legend = legend(&of, &of.axes()).unwrap();
            (format!("{:?}", legend.corner), legend.is_free)
        };
        let falls = Chart::new("").line("falls", (0..24).map(|x| (x, f64::from(-x))));
        assert_eq!(place(falls), ("UpperRight".into(), true));
        let rises = Chart::new("").line("rises", (0..24).map(|x| (x, f64::from(x))));
        assert_eq!(place(rises), ("LowerRight".into(), true));
        // Two points, and a line from one to the other through all corners.
        let corners = [(0, 0.0), (9, 1.0), (0, 1.0), (9, 0.0)];
        assert_eq!(place(Chart::new("").line("all", corners)), ("UpperRight".into(), false));
        let flat = Chart::new("").line("top", [(0, 1.0), (9, 1.0)]).line("bottom", [(0, 0.0), (9, 0.0)]);
        assert_eq!(place(flat), ("UpperRight".into(), false));
        assert!(legend(&Chart::new("").line("", corners), &Chart::new("").axes()).is_none());
    }

    #[test]
    fn a_thinned_line_keeps_its_extremes() {
        let points: Vec<(f64, f64)> = (0..100_000).map(|x| (f64::from(x), f64::from(x).sin())).collect();
        let mut peaked = points.clone();
        peaked[54_321].1 = 9.0;
        let thin = thinned(&peaked);
        assert!(thin.len() <= 8000 && thin.contains(&(54_321.0, 9.0)));
        assert!(
            thin.is_sorted_by(|a, b| a.0 <= b.0)
                && thin.first() == points.first()
                && thin.last() == points.last()
        );
        assert_eq!(thinned(&points[..100]), points[..100]);
    }
}
