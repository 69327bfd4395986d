//! Drawing to SVG and PNG files.

use crate::image;
use namegrad_core::{Error, ErrorKind, Result};
use namegrad_io::atomic;
use plotters::coord::Shift;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::*;
use plotters::style::register_font;
use std::io::Write;
use std::path::Path;
use std::sync::Once;

/// The font of all texts. SVG files leave it to the viewer.
pub(super) const FONT: &str = "sans-serif";

/// A picture that any backend can draw.
pub(super) trait Drawable {
    /// Width and height in pixels.
    fn size(&self) -> (u32, u32);

    fn draw<D: DrawingBackend>(&self, area: &Area<D>) -> Drawn<D>;
}

pub(super) type Area<D> = DrawingArea<D, Shift>;
pub(super) type Drawn<D, T = ()> =
    std::result::Result<T, DrawingAreaErrorKind<<D as DrawingBackend>::ErrorType>>;

/// Adds the methods that make files of a picture: `save`, `to_svg` and `to_png`.
macro_rules! files {
    ($picture:ty) => {
        impl $picture {
            /// Writes the picture as `.svg` or `.png`. If that fails, an existing file is unchanged.
            ///
            /// # Errors
            /// [`ErrorKind::Io`](namegrad_core::ErrorKind::Io) if the file cannot be written,
            /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) for another end of the file name, or if
            /// a side has no pixels or more than 16,384.
            #[track_caller]
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> namegrad_core::Result<()> {
                $crate::pictures::canvas::save(self, path.as_ref())
            }

            /// The text of the SVG file.
            ///
            /// # Errors
            /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if a side has no pixels or more than
            /// 16,384.
            #[track_caller]
            pub fn to_svg(&self) -> namegrad_core::Result<String> {
                $crate::pictures::canvas::svg(self)
            }

            /// The content of the PNG file.
            ///
            /// # Errors
            /// Same as [`to_svg`](Self::to_svg).
            #[track_caller]
            pub fn to_png(&self) -> namegrad_core::Result<Vec<u8>> {
                $crate::pictures::canvas::png(self)
            }
        }
    };
}
pub(super) use files;

/// The largest width and height.
const LARGEST: u32 = 1 << 14;

/// Writes a picture, as SVG or PNG by the end of the file name, atomically.
#[track_caller]
pub(super) fn save(picture: &impl Drawable, path: &Path) -> Result<()> {
    const OP: &str = "save";
    let caller = std::panic::Location::caller();
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    let bytes = match extension.as_deref() {
        Some("svg") => svg(picture).map(String::into_bytes),
        Some("png") => png(picture),
        _ => {
            let message = format!("{}: pictures are .svg and .png files", path.display());
            let repair = format!("{:?}", path.with_extension("svg").display().to_string());
            Err(Error::new(ErrorKind::Value, OP, message).with_repair(repair))
        }
    };
    let bytes = bytes.map_err(|error| error.of(OP).at(caller))?;
    atomic::write(path, |out| out.write_all(&bytes)).map_err(|error| {
        let failed = Error::new(ErrorKind::Io, OP, format!("{}: {error}", path.display())).at(caller);
        match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
            Some(folder) => failed.with_repair(format!("std::fs::create_dir_all({folder:?})? before it")),
            None => failed,
        }
    })
}

/// The text of an SVG file.
#[track_caller]
pub(super) fn svg(picture: &impl Drawable) -> Result<String> {
    const OP: &str = "to_svg";
    let (mut svg, size) = (String::new(), size(OP, picture)?);
    draw(OP, picture, SVGBackend::with_string(&mut svg, size))?;
    Ok(svg)
}

/// The bytes of a PNG file.
#[track_caller]
pub(super) fn png(picture: &impl Drawable) -> Result<Vec<u8>> {
    const OP: &str = "to_png";
    let (width, height) = size(OP, picture)?;
    let mut pixels = vec![255; width as usize * height as usize * 3];
    draw(OP, picture, BitMapBackend::with_buffer(&mut pixels, (width, height)))?;
    image::png(OP, width as usize, height as usize, 3, &pixels)
}

#[track_caller]
fn size(op: &'static str, picture: &impl Drawable) -> Result<(u32, u32)> {
    let (width, height) = picture.size();
    Error::ensure(
        (1..=LARGEST).contains(&width) && (1..=LARGEST).contains(&height),
        ErrorKind::Value,
        op,
        || format!("a picture has 1 to {LARGEST} pixels in each direction, got {width} x {height}"),
    )?;
    Ok((width, height))
}

#[track_caller]
fn draw<D: DrawingBackend>(op: &'static str, picture: &impl Drawable, backend: D) -> Result<()> {
    static FONTS: Once = Once::new();
    FONTS.call_once(|| {
        // If the font were damaged, drawing would say that there is none.
        let _ = register_font(FONT, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
    });
    let caller = std::panic::Location::caller();
    let area = backend.into_drawing_area();
    let drawn = area.fill(&WHITE).and_then(|()| picture.draw(&area)).and_then(|()| area.present());
    drawn.map_err(|error| Error::new(ErrorKind::Value, op, format!("cannot be drawn: {error}")).at(caller))
}
