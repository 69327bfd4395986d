//! Tensors as pixels, and pixels as PNG files.

use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result};
use namegrad_io::text::shapes;
use std::panic::Location;

/// The picture of a tensor `[C, H, W]` or `[H, W]`, in any order of the dims.
#[cfg(feature = "tensorboard")]
#[track_caller]
pub(crate) fn encode(op: &'static str, x: &NamedTensor) -> Result<crate::log::Image> {
    let ChannelBytes { width, height, channels, bytes } = ChannelBytes::of(op, x)?;
    let png = png(op, width, height, channels, &bytes)?;
    Ok(crate::log::Image { width, height, png })
}

/// Bytes of channels, pixel by pixel and row by row.
pub(crate) struct ChannelBytes {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) channels: usize,
    pub(crate) bytes: Vec<u8>,
}

impl ChannelBytes {
    /// The pixels of a tensor `[C, H, W]` or `[H, W]`, in any order of the dims.
    #[track_caller]
    pub(crate) fn of(op: &'static str, x: &NamedTensor) -> Result<ChannelBytes> {
        let has_channels = x.names().iter(x.ndim()).any(|name| name.is_some_and(|name| name.as_str() == "C"));
        let order = if has_channels { &["H", "W", "C"][..] } else { &["H", "W"] };
        if x.ndim() != order.len() {
            let message = format!(
                "expected a picture with the dims {}, got {} dims",
                crate::joined(order, ", "),
                x.ndim()
            );
            return Err(Error::new(ErrorKind::Shape, op, message).with_operands(shapes(&[x])).with_repair(
                "x.select(\"N\", 0)? for one of a batch, or x.refine_names([\"C\", \"H\", \"W\"])?",
            ));
        }
        let caller = Location::caller();
        let ordered =
            x.align_to(order).map_err(|error| error.of(op).with_operands(shapes(&[x])).at(caller))?;
        let (height, width) = (ordered.sizes()[0], ordered.sizes()[1]);
        let channels = ordered.sizes().get(2).copied().unwrap_or(1);
        if !(1..=4).contains(&channels) || height == 0 || width == 0 {
            let message = "a picture has 1 to 4 channels and at least one pixel";
            return Err(Error::new(ErrorKind::Shape, op, message).with_operands(shapes(&[x])));
        }
        let bytes = match ordered.dtype() {
            DType::U8 => ordered.to_vec::<u8>()?,
            // A cast to `u8` saturates, and NaN is 0.
            _ => crate::list(
                ordered
                    .to(DType::F32)?
                    .to_vec::<f32>()?
                    .into_iter()
                    .map(|value| (value * 255.0).round() as u8),
            ),
        };
        Ok(ChannelBytes { width, height, channels, bytes })
    }
}

#[cfg(feature = "pictures")]
impl ChannelBytes {
    /// Red, green and blue of each pixel, on white if it is transparent.
    pub(crate) fn colors(&self) -> Vec<[u8; 3]> {
        let on_white = |color: [u8; 3], alpha: u8| {
            color.map(|part| 255 - ((255 - u32::from(part)) * u32::from(alpha) / 255) as u8)
        };
        let color = |pixel: &[u8]| match *pixel {
            [gray] => [gray; 3],
            [gray, alpha] => on_white([gray; 3], alpha),
            [red, green, blue] => [red, green, blue],
            [red, green, blue, alpha, ..] => on_white([red, green, blue], alpha),
            [] => [255; 3],
        };
        crate::list(self.bytes.chunks(self.channels).map(color))
    }
}

/// The PNG file of pixels.
#[track_caller]
pub(crate) fn png(
    op: &'static str,
    width: usize,
    height: usize,
    channels: usize,
    bytes: &[u8],
) -> Result<Vec<u8>> {
    let caller = Location::caller();
    let encoded = || -> std::result::Result<Vec<u8>, png::EncodingError> {
        let mut file = Vec::new();
        let side = |size: usize| u32::try_from(size).unwrap_or(0); // which is an error of the encoder
        let mut encoder = png::Encoder::new(&mut file, side(width), side(height));
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_color(match channels {
            1 => png::ColorType::Grayscale,
            2 => png::ColorType::GrayscaleAlpha,
            3 => png::ColorType::Rgb,
            _ => png::ColorType::Rgba,
        });
        encoder.write_header()?.write_image_data(bytes)?;
        Ok(file)
    };
    encoded().map_err(|error| {
        Error::new(ErrorKind::Value, op, format!("the picture cannot be encoded: {error}")).at(caller)
    })
}
