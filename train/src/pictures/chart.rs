//! [`Chart`]: lines, points and bars over two axes.

use super::Rgb;
use super::axis::{Axes, Axis, is_drawable};
use super::canvas::{self, Area, Drawable, Drawn, FONT};
use crate::image::Pixels;
use crate::log::{Histogram, History};
#[cfg(doc)]
use namegrad_core::ErrorKind;
use namegrad_core::{NamedTensor, Result};
use plotters::prelude::*;
use std::path::Path;

/// Lines, points, bars and an image over two axes.
///
/// Values that are not finite leave gaps, as do values that are not positive on a logarithmic axis.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::log::Histogram;
/// use namegrad::train::pictures::Chart;
/// let years = 1990..2020;
/// let chart = Chart::new("Sunspots")
///     .x_label("year")
///     .y_label("spots")
///     .line("observed", years.clone().map(|year| (year, f64::from(year).sin())))
///     .points("forecast", years.map(|year| (year, f64::from(year).cos())));
/// assert!(chart.to_svg()?.contains("forecast"));
///
/// let weights = Histogram::new(Tensor::randn([1000])?, 30)?;
/// let chart = Chart::new("Weights").histogram("layer 1", &weights);
/// assert!(chart.to_png()?.starts_with(b"\x89PNG"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Chart {
    title: String,
    labels: [String; 2],
    size: (u32, u32),
    log: [bool; 2],
    ranges: [Option<[f64; 2]>; 2],
    background: Option<Background>,
    series: Vec<Series>,
    next_color: Option<Rgb>,
}

#[derive(Clone, Debug)]
struct Series {
    name: String,
    color: Rgb,
    marks: Marks,
}

#[derive(Clone, Debug)]
enum Marks {
    Line(Vec<(f64, f64)>),
    Points(Vec<(f64, f64)>),
    /// Lower end, upper end, height.
    Bars(Vec<(f64, f64, f64)>),
}

/// An image behind the series.
#[derive(Clone, Debug)]
struct Background {
    width: usize,
    colors: Vec<Rgb>,
    /// Left and right, bottom and top.
    x: [f64; 2],
    y: [f64; 2],
}

/// The colors of the series, in turn: those of Tableau 10.
const COLORS: [Rgb; 10] = [
    [31, 119, 180],
    [255, 127, 14],
    [44, 160, 44],
    [214, 39, 40],
    [148, 103, 189],
    [140, 86, 75],
    [227, 119, 194],
    [127, 127, 127],
    [188, 189, 34],
    [23, 190, 207],
];

/// A line with at most this many points shows them.
const FEW: usize = 40;

/// A point of a series: a pair of numbers of any type, such as a step and a loss.
pub trait Point {
    /// The coordinates.
    fn xy(&self) -> (f64, f64);
}

/// `f64, u64` becomes the implementations for pairs of `f64` and for pairs of `u64` and `f64`.
macro_rules! points {
    ($($x:ty),*) => {$(
        impl Point for ($x, f64) {
            fn xy(&self) -> (f64, f64) {
                (self.0 as f64, self.1)
            }
        }
    )*};
}

points!(f64, u64, i64, usize, i32, u32);

impl<P: Point> Point for &P {
    fn xy(&self) -> (f64, f64) {
        (**self).xy()
    }
}

impl Chart {
    /// A chart without series; an empty title takes no room.
    pub fn new(title: impl Into<String>) -> Chart {
        Chart {
            title: title.into(),
            labels: Default::default(),
            size: (560, 400),
            log: [false; 2],
            ranges: [None; 2],
            background: None,
            series: vec![],
            next_color: None,
        }
    }

    /// The learning curves of these names in a history, against the step.
    ///
    /// # Errors
    /// Same as [`History::get`].
    #[track_caller]
    pub fn of<N: AsRef<str>>(history: &History, names: impl IntoIterator<Item = N>) -> Result<Chart> {
        let mut chart = Chart::new("").x_label("step");
        for name in names {
            chart = chart.line(name.as_ref(), history.get(name.as_ref())?);
        }
        Ok(chart)
    }

    /// What is along the horizontal axis.
    pub fn x_label(mut self, label: impl Into<String>) -> Chart {
        self.labels[0] = label.into();
        self
    }

    /// What is along the vertical axis.
    pub fn y_label(mut self, label: impl Into<String>) -> Chart {
        self.labels[1] = label.into();
        self
    }

    /// Whether the horizontal axis is logarithmic.
    pub fn log_x(mut self, log: bool) -> Chart {
        self.log[0] = log;
        self
    }

    /// Whether the vertical axis is logarithmic.
    pub fn log_y(mut self, log: bool) -> Chart {
        self.log[1] = log;
        self
    }

    /// The ends of the horizontal axis; by default, all values are visible.
    pub fn x_range(mut self, low: f64, high: f64) -> Chart {
        self.ranges[0] = Some([low, high]);
        self
    }

    /// The ends of the vertical axis; by default, all values are visible.
    pub fn y_range(mut self, low: f64, high: f64) -> Chart {
        self.ranges[1] = Some([low, high]);
        self
    }

    /// Width and height in pixels; by default 560 and 400.
    pub fn size(mut self, width: u32, height: u32) -> Chart {
        self.size = (width, height);
        self
    }

    /// The color of the next series, in place of the next in turn.
    pub fn color(mut self, color: Rgb) -> Chart {
        self.next_color = Some(color);
        self
    }

    /// Adds a line through points, in their order. A series without a name is not in the legend.
    pub fn line<P: Point>(self, name: impl Into<String>, points: impl IntoIterator<Item = P>) -> Chart {
        let points = points.into_iter().map(|point| point.xy()).collect();
        self.series(name.into(), Marks::Line(points))
    }

    /// Adds points. A series without a name is not in the legend.
    #[doc(alias = "scatter")]
    pub fn points<P: Point>(self, name: impl Into<String>, points: impl IntoIterator<Item = P>) -> Chart {
        let points = points.into_iter().map(|point| point.xy()).collect();
        self.series(name.into(), Marks::Points(points))
    }

    /// Adds the buckets of a histogram as bars.
    pub fn histogram(self, name: impl Into<String>, histogram: &Histogram) -> Chart {
        // A single bucket, of equal values, has no width.
        let around = |low: f64, high: f64| {
            let half = if low == high { 0.05 * low.abs().max(1.0) } else { 0.0 };
            (low - half, high + half)
        };
        let bar = |(low, high, count): (f64, f64, u64)| {
            let (low, high) = around(low, high);
            (low, high, count as f64)
        };
        let bars = histogram.buckets().map(bar).collect();
        self.series(name.into(), Marks::Bars(bars))
    }

    /// Puts a picture behind the series, such as the classes that a model predicts in a plane: a tensor with the dims `H`
    /// (from the top), `W` and, if it has colors, `C`, with values from 0 to 1. `x` has its left and right end, `y` its
    /// lower and upper end.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] without `H` or `W`, [`ErrorKind::UnnamedNotAllowed`] for a dim without a name,
    /// [`ErrorKind::Shape`] for other dims, another number of channels or no pixels.
    #[doc(alias = "imshow")]
    #[track_caller]
    pub fn image(mut self, image: impl AsRef<NamedTensor>, x: [f64; 2], y: [f64; 2]) -> Result<Chart> {
        let pixels = Pixels::of("image", image.as_ref())?;
        self.background = Some(Background { width: pixels.width, colors: pixels.colors(), x, y });
        Ok(self)
    }

    /// Writes the chart as `.svg` or `.png`. If that fails, an existing file is unchanged.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file cannot be written, [`ErrorKind::Value`] for another end of the file name, or if
    /// a side is 0 or more than 16,384 pixels.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        canvas::save(self, path.as_ref())
    }

    /// The text of the SVG file.
    ///
    /// # Errors
    /// Same as [`save`](Self::save), except [`ErrorKind::Io`].
    #[track_caller]
    pub fn to_svg(&self) -> Result<String> {
        canvas::svg(self)
    }

    /// The content of the PNG file.
    ///
    /// # Errors
    /// Same as [`to_svg`](Self::to_svg).
    #[track_caller]
    pub fn to_png(&self) -> Result<Vec<u8>> {
        canvas::png(self)
    }

    fn series(mut self, name: String, marks: Marks) -> Chart {
        let color = self.next_color.take().unwrap_or(COLORS[self.series.len() % COLORS.len()]);
        self.series.push(Series { name, color, marks });
        self
    }

    fn axes(&self) -> Axes {
        let corners = self.series.iter().flat_map(|series| series.marks.corners());
        let (mut x, mut y): (Vec<f64>, Vec<f64>) = corners.unzip();
        if let Some(image) = &self.background {
            x.extend(image.x);
            y.extend(image.y);
        }
        let bars = self.series.iter().any(|series| matches!(series.marks, Marks::Bars(_)));
        let room = if self.background.is_some() { 0.0 } else { 0.04 };
        let x = match self.ranges[0] {
            Some(ends) => Axis::between(ends, self.log[0]),
            None => Axis::over(&x, self.log[0], room),
        };
        let y = match self.ranges[1] {
            Some(ends) => Axis::between(ends, self.log[1]),
            None if bars => Axis::over(&y, self.log[1], room).with_floor(),
            None => Axis::over(&y, self.log[1], room),
        };
        Axes { x, y }
    }
}

impl Marks {
    /// Points that an axis must reach.
    fn corners(&self) -> Box<dyn Iterator<Item = (f64, f64)> + '_> {
        match self {
            Marks::Line(points) | Marks::Points(points) => Box::new(points.iter().copied()),
            Marks::Bars(bars) => {
                Box::new(bars.iter().flat_map(|(low, high, count)| [(*low, 0.0), (*high, *count)]))
            }
        }
    }
}

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
        let base = axes.y.start();
        let mut chart = builder.build_cartesian_2d(axes.x.clone(), axes.y.clone())?;
        if let Some(image) = &self.background {
            let height = image.colors.len() / image.width;
            let at = |ends: [f64; 2], place: usize, count: usize| {
                ends[0] + (ends[1] - ends[0]) * place as f64 / count as f64
            };
            chart.draw_series(image.colors.iter().enumerate().map(|(number, color)| {
                let (row, column) = (height - number / image.width, number % image.width);
                let corner = |row, column| (at(image.x, column, image.width), at(image.y, row, height));
                Rectangle::new([corner(row, column), corner(row - 1, column + 1)], rgb(color).filled())
            }))?;
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
            let color = rgb(&series.color);
            let drawable = |(x, y): &(f64, f64)| is_drawable(*x, self.log[0]) && is_drawable(*y, self.log[1]);
            match &series.marks {
                Marks::Line(points) => {
                    let size = if points.len() <= FEW { 3 } else { 0 };
                    for run in points.split(|point| !drawable(point)) {
                        for part in axes.clip(&thinned(run)) {
                            let size = if run.len() == 1 { 3 } else { size };
                            let line = LineSeries::new(part, color.filled().stroke_width(2));
                            chart.draw_series(line.point_size(size))?;
                        }
                    }
                }
                Marks::Points(points) => {
                    let points = points.iter().filter(|point| drawable(point) && axes.contains(**point));
                    chart.draw_series(points.map(|point| Circle::new(*point, 3, color.filled())))?;
                }
                Marks::Bars(bars) => {
                    let bars =
                        bars.iter().filter(|bar| drawable(&(bar.1, bar.2)) && drawable(&(bar.0, bar.2)));
                    chart.draw_series(bars.map(|(low, high, count)| {
                        let corners = [(*low, base), (*high, *count)].map(|corner| axes.nearest(corner));
                        Rectangle::new(corners, color.mix(0.6).filled())
                    }))?;
                }
            }
            if !series.name.is_empty() {
                // The legend has its own series, so that it has one entry for any number of parts.
                let key = move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(3));
                chart.draw_series(LineSeries::new([], color))?.label(&series.name).legend(key);
            }
        }
        if self.series.iter().any(|series| !series.name.is_empty()) {
            chart
                .configure_series_labels()
                .position(self.free_corner())
                .label_font((FONT, 14))
                .background_style(WHITE.mix(0.85))
                .border_style(BLACK.mix(0.3))
                .draw()?;
        }
        Ok(())
    }
}

impl Chart {
    /// The corner with the fewest points, for the legend.
    fn free_corner(&self) -> SeriesLabelPosition {
        use SeriesLabelPosition::{LowerLeft, LowerRight, UpperLeft, UpperRight};
        use plotters::coord::ranged1d::Ranged;
        let Axes { x, y } = self.axes();
        let mut counts = [0.0; 4];
        for series in &self.series {
            let all: Vec<(f64, f64)> = series.marks.corners().collect();
            for (at, to) in &all {
                let [across, up] = [x.map(at, (0, 100)), y.map(to, (0, 100))];
                // Only about a third of the width, and the part of the height that a legend takes.
                let (left, right, low, high) = (across < 35, across > 65, up < 40, up > 60);
                for (number, inside) in
                    [right && high, right && low, left && high, left && low].into_iter().enumerate()
                {
                    counts[number] += f64::from(u8::from(inside)) / all.len() as f64;
                }
            }
        }
        let corners = [UpperRight, LowerRight, UpperLeft, LowerLeft];
        let least = counts.into_iter().fold(f64::INFINITY, f64::min);
        corners
            .into_iter()
            .zip(counts)
            .find(|(_, count)| *count == least)
            .map_or(UpperRight, |(corner, _)| corner)
    }
}

/// The points of a line, or of one with so many that they cannot be told apart, the outermost ones.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    const PARTS: usize = 2000;
    if points.len() <= 4 * PARTS {
        return points.to_vec();
    }
    let mut kept = Vec::new();
    for part in points.chunks(points.len().div_ceil(PARTS)) {
        let places = || 0..part.len();
        let by = |a: &usize, b: &usize| part[*a].1.total_cmp(&part[*b].1);
        let (Some(lowest), Some(highest)) = (places().min_by(by), places().max_by(by)) else { continue };
        let mut outermost = [0, lowest, highest, part.len() - 1];
        outermost.sort_unstable();
        kept.extend(outermost.map(|place| part[place]));
    }
    kept
}

pub(super) fn rgb(color: &Rgb) -> RGBColor {
    RGBColor(color[0], color[1], color[2])
}
