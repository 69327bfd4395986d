//! Tensors as PNG files.

use super::value::Image;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result};
use std::panic::Location;

/// The picture of a tensor `[C, H, W]` or `[H, W]`, in any order of the dims.
#[track_caller]
pub(crate) fn encode(op: &'static str, x: &NamedTensor) -> Result<Image> {
    let (width, height, channels, pixels) = pixels(op, x)?;
    let caller = Location::caller();
    let png = png(width, height, channels, &pixels).map_err(|error| {
        Error::new(ErrorKind::Value, op, format!("the picture cannot be encoded: {error}")).at(caller)
    })?;
    Ok(Image { width, height, png })
}

/// Width, height, channels, and the pixels row by row.
#[track_caller]
pub(crate) fn pixels(op: &'static str, x: &NamedTensor) -> Result<(usize, usize, usize, Vec<u8>)> {
    let has_channels = x.names().iter(x.ndim()).any(|name| name.is_some_and(|name| name.as_str() == "C"));
    let order = if has_channels { &["H", "W", "C"][..] } else { &["H", "W"] };
    if x.ndim() != order.len() {
        let message = format!("expected a picture with the dims {}, got {} dims", order.join(", "), x.ndim());
        return Err(Error::new(ErrorKind::Shape, op, message).with_operands([x.shape()]).with_repair(
            "x.select(\"N\", 0)? for one of a batch, or x.refine_names([\"C\", \"H\", \"W\"])?",
        ));
    }
    let caller = Location::caller();
    let ordered = x.align_to(order).map_err(|error| error.of(op).with_operands([x.shape()]).at(caller))?;
    let (height, width) = (ordered.sizes()[0], ordered.sizes()[1]);
    let channels = ordered.sizes().get(2).copied().unwrap_or(1);
    if !(1..=4).contains(&channels) || height == 0 || width == 0 {
        let message = "a picture has 1 to 4 channels and at least one pixel";
        return Err(Error::new(ErrorKind::Shape, op, message).with_operands([x.shape()]));
    }
    let pixels = match ordered.dtype() {
        DType::U8 => ordered.to_vec::<u8>()?,
        // A cast to `u8` saturates, and NaN is 0.
        _ => ordered
            .to(DType::F32)?
            .to_vec::<f32>()?
            .into_iter()
            .map(|value| (value * 255.0).round() as u8)
            .collect(),
    };
    Ok((width, height, channels, pixels))
}

/// The PNG file of pixels.
pub(crate) fn png(
    width: usize,
    height: usize,
    channels: usize,
    pixels: &[u8],
) -> Result<Vec<u8>, png::EncodingError> {
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
    encoder.write_header()?.write_image_data(pixels)?;
    Ok(file)
}
