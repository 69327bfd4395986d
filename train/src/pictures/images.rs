//! [`Images`]: a grid of pictures.

use super::Rgb;
use super::canvas::{Area, Drawable, Drawn, files};
use super::draw::rgb;
use crate::image::ChannelBytes;
#[cfg(doc)]
use namegrad_core::ErrorKind;
use namegrad_core::{Error, NamedTensor, Result};
use namegrad_io::text::shapes;
use plotters::prelude::*;
use std::panic::Location;

/// Rows of pictures, such as images and what an autoencoder restores of them.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::pictures::Images;
/// let digits = Tensor::rand([("N", 5), ("C", 1), ("H", 8), ("W", 8)])?;
/// let svg = Images::new().row(&digits)?.row(digits.neg()?.add(1.0)?)?.scale(6).to_svg()?;
/// assert!(svg.starts_with("<svg"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Images {
    rows: Vec<Vec<Picture>>,
    scale: u32,
}

#[derive(Clone, Debug)]
struct Picture {
    width: usize,
    height: usize,
    colors: Vec<Rgb>,
}

/// Between pictures, in pixels of the file.
const GAP: u32 = 6;

impl Images {
    /// Without pictures. A pixel of a picture is a square of 4 pixels.
    pub fn new() -> Images {
        Images { rows: vec![], scale: 4 }
    }

    /// Adds a row: a tensor with the dims `H` and `W`, `C` if there are colors, and a dim of any name for the
    /// pictures of the row, in any order. Values are from 0 to 1, or from 0 to 255 if the dtype is `u8`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] without `H` or `W`, [`ErrorKind::UnnamedNotAllowed`] for a dim without a
    /// name, [`ErrorKind::Shape`] for more dims, other numbers of channels than 1 to 4 or no pixels.
    #[track_caller]
    pub fn row(mut self, images: impl AsRef<NamedTensor>) -> Result<Images> {
        let (images, caller) = (images.as_ref(), Location::caller());
        let is_batch =
            |dim: &usize| images.name(*dim).is_some_and(|name| !["C", "H", "W"].contains(&name.as_str()));
        let row = match (0..images.ndim()).find(is_batch) {
            None => vec![ChannelBytes::of("row", images)?],
            Some(dim) => {
                let each = |at: usize| ChannelBytes::of("row", &images.select(dim, at as isize)?);
                let row: Result<Vec<ChannelBytes>> = (0..images.sizes()[dim]).map(each).collect();
                row.map_err(|error: Error| error.with_operands(shapes(&[images])).at(caller))?
            }
        };
        let picture = |pixels: ChannelBytes| Picture {
            width: pixels.width,
            height: pixels.height,
            colors: pixels.colors(),
        };
        self.rows.push(row.into_iter().map(picture).collect());
        Ok(self)
    }

    /// The side of the square that a pixel becomes; by default 4.
    pub fn scale(mut self, scale: u32) -> Images {
        self.scale = scale.max(1);
        self
    }

    fn scaled(&self, pixels: usize) -> u32 {
        u32::try_from(pixels).unwrap_or(u32::MAX).saturating_mul(self.scale)
    }
}

impl Default for Images {
    fn default() -> Images {
        Images::new()
    }
}

files!(Images);

impl Drawable for Images {
    fn size(&self) -> (u32, u32) {
        let add = |sum: u32, side: u32| sum.saturating_add(side).saturating_add(GAP);
        let width = |row: &Vec<Picture>| row.iter().map(|picture| self.scaled(picture.width)).fold(GAP, add);
        let height = |row: &Vec<Picture>| row.iter().map(|picture| self.scaled(picture.height)).max();
        let heights = self.rows.iter().filter_map(height);
        (self.rows.iter().map(width).max().unwrap_or(GAP), heights.fold(GAP, add))
    }

    fn draw<D: DrawingBackend>(&self, area: &Area<D>) -> Drawn<D> {
        let (scale, gap) = (self.scale as i32, GAP as i32);
        let mut top = gap;
        for row in &self.rows {
            let mut left = gap;
            for picture in row {
                for (number, color) in picture.colors.iter().enumerate() {
                    let x = left + scale * (number % picture.width) as i32;
                    let y = top + scale * (number / picture.width) as i32;
                    area.draw(&Rectangle::new([(x, y), (x + scale, y + scale)], rgb(color).filled()))?;
                }
                left += scale * picture.width as i32 + gap;
            }
            top += scale * row.iter().map(|picture| picture.height).max().unwrap_or(0) as i32 + gap;
        }
        Ok(())
    }
}
