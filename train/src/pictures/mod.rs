//! Pictures of a training run as SVG and PNG files: [`Chart`] (learning curves, points, histograms),
//! [`Matrix`] (confusion matrices), [`Images`] (grids of pictures), and [`Figure`], which puts several of
//! these side by side.
//!
//! The end of the file name says the format. PNG files have texts in the Ubuntu font, which is in the
//! program, so no font of the system is needed; SVG files leave the font to the viewer. Values that are not
//! finite leave gaps.
//!
//! The crate plotters draws them, with its feature `ab_glyph`, which takes fonts from the program in place of
//! those of the system. Cargo enables a feature for the whole program: if your program also draws with
//! plotters, register a font with `plotters::style::register_font` before you draw texts. If your program
//! enables the feature `ttf` of plotters, all texts have fonts of the system, those of these pictures too.
//!
//! `canvas` draws to files, `axis` chooses ranges and labels, and `smooth` smooths the lines of a [`Chart`].
//!
//! ```
//! use namegrad::prelude::*;
//! use namegrad::train::log::History;
//! use namegrad::train::pictures::Chart;
//! let mut history = History::new(); // or History::read("runs/mlp")?
//! for epoch in 1..=20 {
//!     history.push("loss/train", epoch, 1.0 / f64::from(epoch))?;
//!     history.push("loss/test", epoch, 1.1 / f64::from(epoch))?;
//! }
//! # let path = std::env::temp_dir().join(format!("namegrad-doc-curves-{}.svg", std::process::id()));
//! let chart = Chart::of(&history, ["loss/train", "loss/test"])?.x_label("epoch").log_y(true);
//! chart.smooth(0.6)?.save(&path)?;
//! # std::fs::remove_file(path).unwrap();
//! # Ok::<(), Error>(())
//! ```

mod axis;
mod canvas;
mod chart;
mod draw;
mod figure;
mod images;
mod matrix;
mod panel;
mod smooth;

pub use self::chart::{Chart, Point};
pub use self::figure::Figure;
pub use self::images::Images;
pub use self::matrix::Matrix;
pub use self::panel::Panel;

/// Red, green and blue, each from 0 to 255.
pub type Rgb = [u8; 3];
