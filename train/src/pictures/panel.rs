//! [`Panel`]: one of the pictures of a figure.

use super::canvas::{Area, Drawable, Drawn};
use super::{Chart, Images, Matrix};
use plotters::prelude::DrawingBackend;

/// A picture in a [`Figure`](super::Figure).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Panel {
    /// Lines, points and bars over two axes.
    Chart(Chart),
    /// A matrix of counts.
    Matrix(Matrix),
    /// A grid of pictures.
    Images(Images),
}

impl From<Chart> for Panel {
    fn from(chart: Chart) -> Panel {
        Panel::Chart(chart)
    }
}

impl From<Matrix> for Panel {
    fn from(matrix: Matrix) -> Panel {
        Panel::Matrix(matrix)
    }
}

impl From<Images> for Panel {
    fn from(images: Images) -> Panel {
        Panel::Images(images)
    }
}

impl Drawable for Panel {
    fn size(&self) -> (u32, u32) {
        match self {
            Panel::Chart(chart) => chart.size(),
            Panel::Matrix(matrix) => matrix.size(),
            Panel::Images(images) => images.size(),
        }
    }

    fn draw<D: DrawingBackend>(&self, area: &Area<D>) -> Drawn<D> {
        match self {
            Panel::Chart(chart) => chart.draw(area),
            Panel::Matrix(matrix) => matrix.draw(area),
            Panel::Images(images) => images.draw(area),
        }
    }
}
