//! Decoding of PNG and JPEG files into levels of 8 bits.

use png::{BitDepth, Limits, Transformations};
use std::error::Error;
use std::io::Cursor;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// The most memory that a decoded image may take, which protects against headers with huge sizes.
const MOST_BYTES: usize = 512 << 20;

/// An image: its levels pixel by pixel, each with `channels` of them.
#[derive(Debug)]
pub(crate) struct Pixels {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// 1 for gray, 2 with transparency, 3 for red, green and blue, 4 with transparency.
    channels: usize,
    levels: Vec<u8>,
}

impl Pixels {
    /// The image in these bytes, whose start tells the format.
    ///
    /// # Errors
    /// If this is no PNG or JPEG image, or is damaged or too large.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Pixels, Box<dyn Error>> {
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            decode_png(bytes)
        } else if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
            decode_jpeg(bytes)
        } else {
            Err("neither a PNG nor a JPEG image".into())
        }
    }

    /// The levels of red, green and blue, one plane after another.
    pub(crate) fn rgb(&self) -> Vec<u8> {
        let plane = |channel: usize| self.pixels().map(move |pixel| self.color(pixel)[channel]);
        crate::list((0..3).flat_map(plane))
    }

    /// The levels of gray: those of the image, or the luminance of its colors in sRGB (ITU-R BT.709).
    pub(crate) fn gray(&self) -> Vec<u8> {
        let luminance = |pixel: &[u8]| {
            let [red, green, blue] = self.color(pixel).map(u32::from);
            ((2126 * red + 7152 * green + 722 * blue) / 10_000) as u8
        };
        crate::list(self.pixels().map(|pixel| if self.channels < 3 { pixel[0] } else { luminance(pixel) }))
    }

    fn pixels(&self) -> std::slice::ChunksExact<'_, u8> {
        self.levels.chunks_exact(self.channels)
    }

    fn color(&self, pixel: &[u8]) -> [u8; 3] {
        if self.channels < 3 { [pixel[0]; 3] } else { [pixel[0], pixel[1], pixel[2]] }
    }
}

fn decode_png(bytes: &[u8]) -> Result<Pixels, Box<dyn Error>> {
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: MOST_BYTES });
    decoder.set_transformations(Transformations::EXPAND); // palettes and narrow levels
    let mut reader = decoder.read_info()?;
    let length = reader.output_buffer_size().filter(|length| *length <= MOST_BYTES);
    let mut levels = vec![0; length.ok_or("the image is too large")?];
    let info = reader.next_frame(&mut levels)?;
    levels.truncate(info.buffer_size());
    if info.bit_depth == BitDepth::Sixteen {
        let rounded = |level: &[u8]| (u32::from(u16::from_be_bytes([level[0], level[1]])) + 128) / 257;
        levels = crate::list(levels.chunks_exact(2).map(|level| rounded(level) as u8));
    }
    Ok(Pixels {
        width: info.width as usize,
        height: info.height as usize,
        channels: info.color_type.samples(),
        levels,
    })
}

fn decode_jpeg(bytes: &[u8]) -> Result<Pixels, Box<dyn Error>> {
    let options =
        DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers()?;
    let (width, height) = decoder.dimensions().ok_or("no sizes")?;
    if width.saturating_mul(height).saturating_mul(3) > MOST_BYTES {
        return Err("the image is too large".into());
    }
    let (channels, space) = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => (1, ColorSpace::Luma),
        _ => (3, ColorSpace::RGB),
    };
    decoder.set_options(decoder.options().jpeg_set_out_colorspace(space));
    Ok(Pixels { width, height, channels, levels: decoder.decode()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use png::ColorType;

    /// An image of one row in this format.
    fn png(color: ColorType, depth: BitDepth, width: u32, row: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, 1);
        encoder.set_color(color);
        encoder.set_depth(depth);
        if color == ColorType::Indexed {
            encoder.set_palette(vec![10, 20, 30, 255, 0, 100]);
        }
        encoder.write_header().unwrap().write_image_data(row).unwrap();
        bytes
    }

    #[test]
    fn formats_of_png() {
        use BitDepth::{Eight, One, Sixteen};
        use ColorType::{Grayscale, GrayscaleAlpha, Indexed, Rgb, Rgba};
        // 0x8080 is 128 of 255, and 0x0081 is closer to 1 than to 0.
        let wide = [0x80, 0x80, 0x00, 0x81, 0x00, 0x80];
        for (color, depth, row, rgb, gray) in [
            (Grayscale, Eight, &[7, 200][..], [7, 200, 7, 200, 7, 200], [7, 200]),
            (Grayscale, One, &[0b0100_0000], [0, 255, 0, 255, 0, 255], [0, 255]),
            (GrayscaleAlpha, Eight, &[7, 0, 200, 9], [7, 200, 7, 200, 7, 200], [7, 200]),
            (Indexed, One, &[0b0100_0000], [10, 255, 20, 0, 30, 100], [18, 61]),
            (Rgb, Eight, &[10, 20, 30, 255, 0, 100], [10, 255, 20, 0, 30, 100], [18, 61]),
            (Rgba, Eight, &[10, 20, 30, 0, 255, 0, 100, 1], [10, 255, 20, 0, 30, 100], [18, 61]),
            (Rgb, Sixteen, &[wide, wide].concat(), [128, 128, 1, 1, 0, 0], [27, 27]),
        ] {
            let pixels = Pixels::decode(&png(color, depth, 2, row)).unwrap();
            assert_eq!((pixels.width, pixels.height), (2, 1), "{color:?}");
            assert_eq!((pixels.rgb(), pixels.gray()), (rgb.to_vec(), gray.to_vec()), "{color:?} {depth:?}");
        }
    }
}
