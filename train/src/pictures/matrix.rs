//! [`Matrix`]: a confusion matrix as a picture.

use super::canvas::{Area, Drawable, Drawn, FONT, files};
use crate::meters::ConfusionMatrix;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A confusion matrix: rows are true classes, columns predicted ones. The color of a cell is its share of the
/// row.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::meters::ConfusionMatrix;
/// use namegrad::train::pictures::Matrix;
/// let mut matrix = ConfusionMatrix::new(2).names(["cat", "dog"])?;
/// matrix.update_classes(Tensor::new([0, 1, 1])?, Tensor::new([0, 0, 1])?)?;
/// let svg = Matrix::new("Pets", &matrix).to_svg()?;
/// assert!(svg.contains("cat") && svg.contains("predicted"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Matrix {
    title: String,
    matrix: ConfusionMatrix,
    cell: u32,
}

/// Around the cells: title, names, words.
const TITLE: u32 = 30;
const WORDS: u32 = 26;
const LETTER: u32 = 8;
/// The letters of a name above a column.
const WIDEST: usize = 10;

impl Matrix {
    /// The picture of a matrix; an empty title takes no room.
    pub fn new(title: impl Into<String>, matrix: &ConfusionMatrix) -> Matrix {
        let digits =
            |class| (0..matrix.classes()).map(move |other| matrix.count(class, other).to_string().len());
        let longest = (0..matrix.classes()).flat_map(digits).max().unwrap_or(1);
        let name = matrix.class_names().iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let letters = longest.max(name.min(WIDEST)) as u32;
        Matrix { title: title.into(), matrix: matrix.clone(), cell: (LETTER * letters + 10).max(36) }
    }

    /// The corner of the first cell.
    fn corner(&self) -> (u32, u32) {
        let title = if self.title.is_empty() { 0 } else { TITLE };
        (WORDS + self.names_width(), title + WORDS + WORDS)
    }

    fn names_width(&self) -> u32 {
        let longest = self.matrix.class_names().iter().map(|name| name.chars().count()).max();
        LETTER * longest.unwrap_or(0).min(40) as u32 + 10
    }
}

files!(Matrix);

impl Drawable for Matrix {
    fn size(&self) -> (u32, u32) {
        let (left, top) = self.corner();
        let cells = self.cell.saturating_mul(self.matrix.classes() as u32);
        (left.saturating_add(cells).saturating_add(10).max(160), top.saturating_add(cells).saturating_add(10))
    }

    fn draw<D: DrawingBackend>(&self, area: &Area<D>) -> Drawn<D> {
        let centered =
            |size: u32| (FONT, size).into_font().color(&BLACK).pos(Pos::new(HPos::Center, VPos::Center));
        let (left, top) = self.corner();
        let (left, top, cell) = (left as i32, top as i32, self.cell as i32);
        let (classes, words) = (self.matrix.classes(), WORDS as i32);
        let middle = cell * classes as i32 / 2;
        if !self.title.is_empty() {
            area.draw_text(&self.title, &centered(20), (left + middle, TITLE as i32 / 2))?;
        }
        area.draw_text("predicted", &centered(16), (left + middle, top - words - words / 2))?;
        let upright = centered(16).transform(FontTransform::Rotate270);
        area.draw_text("true", &upright, (words / 2, top + middle))?;
        let at = |number: usize| cell * number as i32 + cell / 2;
        for (class, name) in self.matrix.class_names().iter().enumerate() {
            let right = (FONT, 14).into_font().color(&BLACK).pos(Pos::new(HPos::Right, VPos::Center));
            area.draw_text(name, &right, (left - 6, top + at(class)))?;
            let short: String = name.chars().take(WIDEST).collect();
            area.draw_text(&short, &centered(14), (left + at(class), top - words / 2))?;
        }
        for class in 0..classes {
            let support = (0..classes).map(|other| self.matrix.count(class, other)).sum::<u64>().max(1);
            for predicted in 0..classes {
                let count = self.matrix.count(class, predicted);
                let share = count as f64 / support as f64;
                let (x, y) = (left + cell * predicted as i32, top + cell * class as i32);
                let color = rgb_of(share);
                area.draw(&Rectangle::new([(x, y), (x + cell, y + cell)], color.filled()))?;
                area.draw(&Rectangle::new([(x, y), (x + cell, y + cell)], BLACK.mix(0.2)))?;
                let ink = if share > 0.5 { WHITE } else { BLACK };
                let center = (left + at(predicted), top + at(class));
                area.draw_text(&count.to_string(), &centered(14).color(&ink), center)?;
            }
        }
        Ok(())
    }
}

/// From white to dark blue.
fn rgb_of(share: f64) -> RGBColor {
    let part = |dark: f64| (255.0 + (dark - 255.0) * share).round() as u8;
    RGBColor(part(8.0), part(48.0), part(107.0))
}
