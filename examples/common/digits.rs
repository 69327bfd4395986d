//! The 1,797 handwritten digits that are compiled into the examples; `../data/README.md` says where they come
//! from.

use namegrad::data::Csv;
use namegrad::prelude::*;

/// An image is `SIDE` by `SIDE` pixels.
pub const SIDE: usize = 8;
/// The digits 0 to 9.
pub const CLASSES: usize = 10;

/// The brightest gray level in the file.
const WHITE: f64 = 16.0;
const FILE: &[u8] = include_bytes!("../data/digits.csv.gz");

/// All digits in the order of the file: images `[N, C=1, H, W]` from 0 to 1, and labels `[N]`.
pub fn load() -> Result<(Tensor, Tensor)> {
    let table = Csv::from_bytes(FILE).header(false).read()?;
    let images = table.columns_except([-1])?.div(WHITE)?; // [N, feature]
    let images = images.unflatten("feature", [("C", 1), ("H", SIDE), ("W", SIDE)])?;
    Ok((images, table.column(-1)?.to(DType::I64)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_file_is_whole() {
        let (images, labels) = load().unwrap();
        assert_eq!(images.shape().to_string(), "[N=1797, C=1, H=8, W=8]");
        assert!(images.to_vec::<f32>().unwrap().iter().all(|pixel| (0.0..=1.0).contains(pixel)));
        // The counts of the classes in scikit-learn's `load_digits`.
        let labels = labels.to_vec::<i64>().unwrap();
        let counts: Vec<usize> =
            (0..10).map(|class| labels.iter().filter(|&&x| x == class).count()).collect();
        assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    }
}
