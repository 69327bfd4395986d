//! [`Chart`]: lines, points and bars over two axes. `draw` draws it.

use super::Rgb;
use super::axis::{Axes, Axis};
use super::canvas::files;
use crate::image::ChannelBytes;
use crate::log::{Histogram, History};
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};

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
    pub(super) title: String,
    pub(super) labels: [String; 2],
    pub(super) size: (u32, u32),
    pub(super) log: [bool; 2],
    pub(super) ranges: [Option<[f64; 2]>; 2],
    pub(super) smoothing: f64,
    pub(super) background: Option<Background>,
    pub(super) series: Vec<Series>,
    next_color: Option<Rgb>,
}

#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) color: Rgb,
    pub(super) marks: Marks,
}

#[derive(Clone, Debug)]
pub(super) enum Marks {
    Line(Vec<(f64, f64)>),
    Points(Vec<(f64, f64)>),
    /// Lower end, upper end, height.
    Bars(Vec<(f64, f64, f64)>),
}

/// An image behind the series.
#[derive(Clone, Debug)]
pub(super) struct Background {
    pub(super) width: usize,
    pub(super) colors: Vec<Rgb>,
    /// Left and right, bottom and top.
    pub(super) x: [f64; 2],
    pub(super) y: [f64; 2],
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

/// A point of a series: a pair of numbers of any type, such as a step and a loss.
pub trait Point {
    /// The coordinates.
    fn xy(&self) -> (f64, f64);
}

namegrad_core::for_types!(f64, u64, i64, usize, i32, u32 => Number {
    impl Point for (Number, f64) {
        fn xy(&self) -> (f64, f64) {
            (self.0 as f64, self.1)
        }
    }
});

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
            smoothing: 0.0,
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

    /// The title above the chart, in place of that of [`new`](Self::new):
    /// `Chart::of(&history, ["loss"])?.title("Digits")`.
    pub fn title(mut self, title: impl Into<String>) -> Chart {
        self.title = title.into();
        self
    }

    /// Sets the label of the horizontal axis.
    pub fn x_label(mut self, label: impl Into<String>) -> Chart {
        self.labels[0] = label.into();
        self
    }

    /// Sets the label of the vertical axis.
    pub fn y_label(mut self, label: impl Into<String>) -> Chart {
        self.labels[1] = label.into();
        self
    }

    /// Sets whether the horizontal axis is logarithmic.
    pub fn log_x(mut self, log: bool) -> Chart {
        self.log[0] = log;
        self
    }

    /// Sets whether the vertical axis is logarithmic.
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

    /// Smooths all lines, as the slider of TensorBoard does: each value becomes an average of the values so
    /// far, in which the weight of a value falls by the factor `weight` with each later one. The lines
    /// themselves are drawn faint behind the smooth ones.
    ///
    /// ```
    /// use namegrad::train::pictures::Chart;
    /// let noisy = (0..100).map(|step| (step, f64::from(step % 7)));
    /// let chart = Chart::new("").line("loss", noisy).smooth(0.9)?;
    /// assert!(chart.to_svg()?.contains("opacity=\"0.25\"")); // the line itself
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `0 <= weight < 1`. 0 does not smooth.
    #[doc(alias = "ema")]
    #[track_caller]
    pub fn smooth(mut self, weight: f64) -> Result<Chart> {
        if !(0.0..1.0).contains(&weight) {
            let message = format!("expected a weight of at least 0 and less than 1, got {weight:?}");
            return Err(Error::new(ErrorKind::Value, "smooth", message).with_repair(".smooth(0.9)?"));
        }
        self.smoothing = weight;
        Ok(self)
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

    /// Puts a picture behind the series, such as the classes that a model predicts in a plane: a tensor with
    /// the dims `H` (from the top), `W` and, if it has colors, `C`, with values from 0 to 1. `x` has its left
    /// and right end, `y` its lower and upper end.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] without `H` or `W`, [`ErrorKind::UnnamedNotAllowed`] for a dim without a
    /// name, [`ErrorKind::Shape`] for other dims, another number of channels or no pixels.
    #[doc(alias = "imshow")]
    #[track_caller]
    pub fn image(mut self, image: impl AsRef<NamedTensor>, x: [f64; 2], y: [f64; 2]) -> Result<Chart> {
        let pixels = ChannelBytes::of("image", image.as_ref())?;
        self.background = Some(Background { width: pixels.width, colors: pixels.colors(), x, y });
        Ok(self)
    }

    fn series(mut self, name: String, marks: Marks) -> Chart {
        let color = self.next_color.take().unwrap_or(COLORS[self.series.len() % COLORS.len()]);
        self.series.push(Series { name, color, marks });
        self
    }

    pub(super) fn axes(&self) -> Axes {
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

files!(Chart);

impl Marks {
    /// Points that an axis must reach.
    pub(super) fn corners(&self) -> Box<dyn Iterator<Item = (f64, f64)> + '_> {
        match self {
            Marks::Line(points) | Marks::Points(points) => Box::new(points.iter().copied()),
            Marks::Bars(bars) => {
                Box::new(bars.iter().flat_map(|(low, high, count)| [(*low, 0.0), (*high, *count)]))
            }
        }
    }
}
