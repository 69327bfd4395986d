//! The 1,797 handwritten digits that are compiled into the examples; `../data/README.md` says where they come
//! from.

use std::io::Read;

use flate2::read::GzDecoder;

use super::Result;
use super::samples::Samples;

/// An image is `SIDE` by `SIDE` pixels.
pub(crate) const SIDE: usize = 8;
/// The digits 0 to 9.
pub(crate) const CLASSES: usize = 10;

/// The brightest gray level in the file.
const WHITE: u8 = 16;
const FILE: &[u8] = include_bytes!("../data/digits.csv.gz");

/// All digits, in the order of the file.
pub(crate) fn load() -> Result<Samples> {
    let mut text = String::new();
    GzDecoder::new(FILE).read_to_string(&mut text).map_err(|error| format!("digits.csv.gz: {error}"))?;
    parse(&text).map_err(|what| format!("digits.csv.gz, {what}").into())
}

/// Reads lines of 64 gray levels and a label. An error gives the line number, counted from 1, and what is
/// wrong there.
fn parse(text: &str) -> std::result::Result<Samples, String> {
    let mut samples = Samples { pixels: Vec::new(), labels: Vec::new(), height: SIDE, width: SIDE };
    for (index, line) in text.lines().enumerate() {
        parse_line(line, &mut samples).map_err(|what| format!("line {}: {what}", index + 1))?;
    }
    if samples.count() == 0 {
        return Err("line 1: there is no data".to_owned());
    }
    Ok(samples)
}

fn parse_line(line: &str, samples: &mut Samples) -> std::result::Result<(), String> {
    let fields: Vec<&str> = line.split(',').collect();
    let Some((label, pixels)) = fields.split_last().filter(|(_, pixels)| pixels.len() == SIDE * SIDE) else {
        return Err(format!("{} fields instead of {}", fields.len(), SIDE * SIDE + 1));
    };
    for pixel in pixels {
        samples.pixels.push(f32::from(integer(pixel, WHITE)?) / f32::from(WHITE));
    }
    samples.labels.push(i64::from(integer(label, CLASSES as u8 - 1)?));
    Ok(())
}

fn integer(field: &str, max: u8) -> std::result::Result<u8, String> {
    let value = field.parse().ok().filter(|&value| value <= max);
    value.ok_or_else(|| format!("'{field}' is no integer from 0 to {max}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_file_is_whole() {
        let digits = load().unwrap();
        assert_eq!((digits.count(), digits.features()), (1797, 64));
        assert_eq!(digits.pixels.len(), 1797 * 64);
        assert!(digits.pixels.iter().all(|pixel| (0.0..=1.0).contains(pixel)));
        // The counts of the classes in scikit-learn's `load_digits`.
        let counts: Vec<usize> =
            (0..10).map(|class| digits.labels.iter().filter(|&&label| label == class).count()).collect();
        assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    }

    #[test]
    fn the_error_says_the_line_and_the_field() {
        let good = format!("{}3", "16,".repeat(64));
        assert_eq!(parse(&good).unwrap().labels, [3]);
        assert_eq!(parse(&good).unwrap().pixels, [1.0; 64]);

        let second = |line: &str| parse(&format!("{good}\n{line}\n")).unwrap_err();
        assert_eq!(second(""), "line 2: 1 fields instead of 65");
        assert_eq!(second(&format!("0,{good}")), "line 2: 66 fields instead of 65");
        assert_eq!(second(&good.replacen("16", "17", 1)), "line 2: '17' is no integer from 0 to 16");
        assert_eq!(second(&good.replacen("16", "", 1)), "line 2: '' is no integer from 0 to 16");
        assert_eq!(second(&format!("{}10", "0,".repeat(64))), "line 2: '10' is no integer from 0 to 9");
        assert_eq!(parse("").unwrap_err(), "line 1: there is no data");
    }
}
