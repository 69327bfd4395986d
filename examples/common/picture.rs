//! Pictures of rectangles and dots, as SVG files.

use std::fmt::Write;
use std::path::Path;

use super::{Result, atomic};

/// A picture with a white background.
pub(crate) struct Picture {
    size: (f64, f64),
    shapes: String,
}

/// Red, green and blue, each from 0 to 1.
pub(crate) type Color = [f64; 3];

impl Picture {
    /// An empty picture with this width and height.
    pub(crate) fn new(width: f64, height: f64) -> Picture {
        Picture { size: (width, height), shapes: String::new() }
    }

    /// Fills a rectangle, given by its corner, width and height.
    pub(crate) fn rectangle(&mut self, [x, y, width, height]: [f64; 4], color: Color) {
        let color = hex(color);
        // Writing to a string cannot fail.
        let _ = writeln!(
            self.shapes,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{color}\"/>"
        );
    }

    /// Draws a dot with a dark edge.
    pub(crate) fn dot(&mut self, [x, y]: [f64; 2], radius: f64, color: Color) {
        let color = hex(color);
        let _ = writeln!(
            self.shapes,
            "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{radius:.2}\" fill=\"{color}\" stroke=\"#222222\" stroke-width=\"0.5\"/>"
        );
    }

    /// Draws an image, given by its rows of gray levels from 0, black, to 1, at a corner.
    pub(crate) fn image(&mut self, [x, y]: [f64; 2], pixel: f64, width: usize, grays: &[f64]) {
        for (at, gray) in grays.iter().enumerate() {
            let [row, column] = [at / width, at % width].map(|at| at as f64 * pixel);
            self.rectangle([x + column, y + row, pixel, pixel], [*gray; 3]);
        }
    }

    /// Writes the picture to a file.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let ((width, height), shapes) = (self.size, &self.shapes);
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" shape-rendering=\"crispEdges\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{shapes}</svg>\n"
        );
        atomic::write(path, svg.as_bytes())
    }
}

/// `#rrggbb`.
fn hex(color: Color) -> String {
    let [red, green, blue] = color.map(|part| (part.clamp(0.0, 1.0) * 255.0).round() as u8);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;

    #[test]
    fn shapes_are_in_the_file() {
        let folder = Scratch::new("picture");
        let path = folder.path().join("picture.svg");
        let mut picture = Picture::new(30.0, 20.0);
        picture.image([1.0, 2.0], 5.0, 2, &[0.0, 1.0, 0.5, f64::NAN]);
        picture.dot([3.0, 4.0], 2.0, [1.0, 0.0, 2.0]);
        picture.save(&path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert_eq!(svg.matches("<rect").count(), 1 + 4);
        assert!(
            svg.contains("x=\"6.00\" y=\"2.00\" width=\"5.00\" height=\"5.00\" fill=\"#ffffff\""),
            "{svg}"
        );
        assert!(svg.contains("fill=\"#808080\"") && svg.contains("fill=\"#ff00ff\""), "{svg}");
    }
}
