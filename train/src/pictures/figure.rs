//! [`Figure`]: several pictures side by side.

use super::Panel;
use super::canvas::{Area, Drawable, Drawn, FONT, files};
use plotters::prelude::*;

/// Several pictures in one file, with a title.
///
/// ```
/// use namegrad::train::log::History;
/// use namegrad::train::pictures::{Chart, Figure};
/// let mut history = History::new();
/// for epoch in 1..=20 {
///     history.push("train", epoch, 1.0 / f64::from(epoch))?;
///     history.push("accuracy", epoch, 1.0 - 1.0 / f64::from(epoch))?;
/// }
/// let loss = Chart::of(&history, ["train"])?.x_label("epoch").y_label("loss");
/// let accuracy = Chart::of(&history, ["accuracy"])?.x_label("epoch").y_label("accuracy");
/// let svg = Figure::new("Digits").panel(loss).panel(accuracy).to_svg()?;
/// assert!(svg.contains("Digits") && svg.contains("epoch"));
/// # Ok::<(), namegrad::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Figure {
    title: String,
    panels: Vec<Panel>,
    columns: Option<usize>,
}

const TITLE: u32 = 36;
const MARGIN: u32 = 8;

impl Figure {
    /// A figure without panels; an empty title takes no room.
    pub fn new(title: impl Into<String>) -> Figure {
        Figure { title: title.into(), panels: vec![], columns: None }
    }

    /// Adds a picture, to the right of the others.
    pub fn panel(mut self, panel: impl Into<Panel>) -> Figure {
        self.panels.push(panel.into());
        self
    }

    /// Sets the number of pictures in a row; by default all are in one.
    pub fn columns(mut self, columns: usize) -> Figure {
        self.columns = Some(columns.max(1));
        self
    }

    /// The rows of panels with their heights.
    fn rows(&self) -> impl Iterator<Item = (&[Panel], u32)> {
        let columns = self.columns.unwrap_or(self.panels.len()).max(1);
        self.panels.chunks(columns).map(|row| {
            let height = row.iter().map(|panel| panel.size().1 + 2 * MARGIN).max();
            (row, height.unwrap_or(0))
        })
    }

    fn title_height(&self) -> u32 {
        if self.title.is_empty() { 0 } else { TITLE }
    }
}

files!(Figure);

impl Drawable for Figure {
    fn size(&self) -> (u32, u32) {
        let width = |row: &[Panel]| row.iter().map(|panel| panel.size().0 + 2 * MARGIN).sum::<u32>();
        let widest = self.rows().map(|(row, _)| width(row)).max().unwrap_or(240);
        let height: u32 = self.rows().map(|(_, height)| height).sum();
        (widest, (self.title_height() + height).max(1))
    }

    fn draw<D: DrawingBackend>(&self, area: &Area<D>) -> Drawn<D> {
        let mut rest = area.clone();
        if !self.title.is_empty() {
            rest = rest.margin(MARGIN / 2, 0, 0, 0).titled(&self.title, (FONT, 24))?;
        }
        for (row, height) in self.rows() {
            let (mut right, below) = rest.split_vertically(height);
            for panel in row {
                let (width, height) = panel.size();
                let (own, further) = right.split_horizontally(width + 2 * MARGIN);
                let (own, _) = own.split_vertically(height + 2 * MARGIN);
                panel.draw(&own.margin(MARGIN, MARGIN, MARGIN, MARGIN))?;
                right = further;
            }
            rest = below;
        }
        Ok(())
    }
}
