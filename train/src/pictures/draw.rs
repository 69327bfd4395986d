//! Drawing of a [`Chart`].

use super::Rgb;
use super::axis::{Axes, Axis, is_drawable};
use super::canvas::{Area, Drawable, Drawn, FONT};
use super::chart::{Background, Chart, Marks, Series};
use super::smooth::smoothed;
use plotters::coord::ranged1d::Ranged;
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
        let axes = self.axes();
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
        if self.series.iter().any(|series| !series.name.is_empty()) {
            chart
                .configure_series_labels()
                .position(free_corner(&self.series, &axes))
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
const FEW: usize = 40;

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

/// The corner with the fewest points, for the legend.
fn free_corner(series: &[Series], axes: &Axes) -> SeriesLabelPosition {
    use SeriesLabelPosition::{LowerLeft, LowerRight, UpperLeft, UpperRight};
    let mut counts = [0.0; 4];
    for series in series {
        let all: Vec<(f64, f64)> = series.marks.corners().collect();
        for (x, y) in &all {
            let (across, up) = (axes.x.map(x, (0, 100)), axes.y.map(y, (0, 100)));
            // A legend takes about a third of the width, and less than that of the height.
            let (left, right, low, high) = (across < 35, across > 65, up < 40, up > 60);
            let inside = [right && high, right && low, left && high, left && low];
            for (count, inside) in counts.iter_mut().zip(inside) {
                *count += f64::from(u8::from(inside)) / all.len() as f64;
            }
        }
    }
    let corners = [UpperRight, LowerRight, UpperLeft, LowerLeft].into_iter().zip(counts);
    corners.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(UpperRight, |(corner, _)| corner)
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
