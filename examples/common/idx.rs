//! Reads MNIST, or a data set in its format (Fashion-MNIST, KMNIST), from a folder with its four idx files,
//! gzipped or not.
//!
//! An idx file is a big-endian header, then bytes: two zeros, the type of the values (8: unsigned byte), the
//! number of dims, the size of each dim in four bytes. See Y. LeCun, C. Cortes, C. Burges, *The MNIST
//! database of handwritten digits*.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::Result;
use super::samples::Samples;

/// The ten classes of each of these data sets.
pub(crate) const CLASSES: usize = 10;

/// The largest size that a header may declare: twenty times MNIST. This stops damaged headers and small files
/// that unpack to endless data.
const MAX_BYTES: u64 = 1 << 30;

/// The training set and the test set.
///
/// # Errors
/// One line that names the file or folder and says what is wrong with it.
pub(crate) fn load(folder: &Path) -> Result<(Samples, Samples)> {
    if !folder.is_dir() {
        return Err(format!("{}: no such folder", folder.display()).into());
    }
    let train = load_part(folder, "train")?;
    let test = load_part(folder, "t10k")?;
    if (train.height, train.width) != (test.height, test.width) {
        return Err(format!(
            "{}: images of {}x{} to train on but of {}x{} to test on",
            folder.display(),
            train.height,
            train.width,
            test.height,
            test.width
        )
        .into());
    }
    Ok((train, test))
}

fn load_part(folder: &Path, part: &str) -> Result<Samples> {
    let (image_path, ([count, height, width], pixels)) =
        read::<3>(folder, &format!("{part}-images-idx3-ubyte"))?;
    let (label_path, ([label_count], labels)) = read::<1>(folder, &format!("{part}-labels-idx1-ubyte"))?;
    if count != label_count {
        let (images, labels) = (image_path.display(), label_path.display());
        return Err(format!("{images}: {count} images, but {labels} has {label_count} labels").into());
    }
    if let Some(index) = labels.iter().position(|&label| usize::from(label) >= CLASSES) {
        let (path, label) = (label_path.display(), labels[index]);
        return Err(
            format!("{path}: label {label} at index {index} is not one of 0 to {}", CLASSES - 1).into()
        );
    }
    Ok(Samples {
        pixels: pixels.into_iter().map(|pixel| f32::from(pixel) / 255.0).collect(),
        labels: labels.into_iter().map(i64::from).collect(),
        height,
        width,
    })
}

/// The sizes of the dims, and the values row by row.
type Idx<const DIMS: usize> = ([usize; DIMS], Vec<u8>);

/// Reads the file `name` or `name.gz`. Its first bytes, not its name, tell whether it is gzipped.
fn read<const DIMS: usize>(folder: &Path, name: &str) -> Result<(PathBuf, Idx<DIMS>)> {
    let (path, file) = open(folder, name)?;
    let mut file = BufReader::new(file);
    let idx = match file.fill_buf() {
        Ok([0x1f, 0x8b, ..]) => parse(MultiGzDecoder::new(file)),
        Ok(_) => parse(file),
        Err(error) => Err(fault(&error)),
    };
    match idx {
        Ok(idx) => Ok((path, idx)),
        Err(what) => Err(format!("{}: {what}", path.display()).into()),
    }
}

fn open(folder: &Path, name: &str) -> Result<(PathBuf, File)> {
    for name in [name.to_owned(), format!("{name}.gz")] {
        let path = folder.join(name);
        match File::open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{}: {}", path.display(), fault(&error)).into()),
        }
    }
    Err(format!("{}: missing, with and without .gz", folder.join(name).display()).into())
}

fn parse<const DIMS: usize>(mut input: impl Read) -> std::result::Result<Idx<DIMS>, String> {
    let magic = read_u32(&mut input)?;
    let expected = 0x800 + DIMS as u32;
    if magic != expected {
        return Err(format!("wrong magic number {magic:#010x} instead of {expected:#010x}"));
    }
    let mut sizes = [0; DIMS];
    for size in &mut sizes {
        *size = read_u32(&mut input)?;
    }
    let announced = sizes.iter().try_fold(1u64, |bytes, &size| bytes.checked_mul(u64::from(size)));
    let Some(announced) = announced.filter(|bytes| (1..=MAX_BYTES).contains(bytes)) else {
        return Err(format!("wrong header: sizes {sizes:?} are empty or more than {MAX_BYTES} bytes"));
    };

    // The vector grows only as data arrives. Reading one byte past the end detects trailing data and makes
    // gzip verify its checksum.
    let mut bytes = Vec::new();
    input.take(announced + 1).read_to_end(&mut bytes).map_err(|error| fault(&error))?;
    match (bytes.len() as u64).cmp(&announced) {
        Ordering::Less => Err(format!("truncated: {} of {announced} bytes after the header", bytes.len())),
        Ordering::Greater => Err(format!("trailing bytes after the {announced} that the header announces")),
        Ordering::Equal => Ok((sizes.map(|size| size as usize), bytes)),
    }
}

fn read_u32(input: &mut impl Read) -> std::result::Result<u32, String> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes).map_err(|error| fault(&error))?;
    Ok(u32::from_be_bytes(bytes))
}

fn fault(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof => "truncated".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::super::scratch::Scratch;
    use super::*;

    fn idx(sizes: &[u32], values: &[u8]) -> Vec<u8> {
        let mut file = vec![0, 0, 8, sizes.len() as u8];
        file.extend(sizes.iter().flat_map(|size| size.to_be_bytes()));
        file.extend(values);
        file
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Two training images of 1x3 and one test image. The test set is gzipped, and the name of one of its
    /// files does not show it.
    fn whole(name: &str) -> Scratch {
        let folder = Scratch::new(name);
        let save = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        save("train-images-idx3-ubyte", &idx(&[2, 1, 3], &[0, 51, 255, 1, 2, 3]));
        save("train-labels-idx1-ubyte", &idx(&[2], &[4, 9]));
        save("t10k-images-idx3-ubyte.gz", &gzip(&idx(&[1, 1, 3], &[255, 0, 255])));
        save("t10k-labels-idx1-ubyte", &gzip(&idx(&[1], &[0])));
        folder
    }

    /// The error if `file` contains `bytes`, without the path of the folder, which differs between machines.
    fn error_with(test: &str, file: &str, bytes: &[u8]) -> String {
        let folder = whole(test);
        fs::write(folder.path().join(file), bytes).unwrap();
        let error = load(folder.path()).unwrap_err().to_string();
        error.replace(&format!("{}{}", folder.path().display(), std::path::MAIN_SEPARATOR), "")
    }

    #[test]
    fn packed_or_not() {
        let (train, test) = load(whole("idx-whole").path()).unwrap();
        assert_eq!((train.count(), train.height, train.width), (2, 1, 3));
        assert_eq!(train.pixels[..3], [0.0, 0.2, 1.0]);
        assert_eq!(train.labels, [4, 9]);
        assert_eq!(test, Samples { pixels: vec![1.0, 0.0, 1.0], labels: vec![0], height: 1, width: 3 });
    }

    #[test]
    fn what_is_missing_is_named() {
        let folder = whole("idx-missing");
        let nowhere = folder.path().join("nowhere");
        assert_eq!(load(&nowhere).unwrap_err().to_string(), format!("{}: no such folder", nowhere.display()));

        let labels = folder.path().join("train-labels-idx1-ubyte");
        fs::remove_file(&labels).unwrap();
        let expected = format!("{}: missing, with and without .gz", labels.display());
        assert_eq!(load(folder.path()).unwrap_err().to_string(), expected);

        fs::create_dir(&labels).unwrap();
        let error = load(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with(&labels.display().to_string()), "{error}");
    }

    #[test]
    fn headers_are_not_believed() {
        let error = |bytes: &[u8]| error_with("idx-header", "train-images-idx3-ubyte", bytes);
        let wrong = |sizes: &str| {
            format!(
                "train-images-idx3-ubyte: wrong header: sizes {sizes} are empty or more than 1073741824 bytes"
            )
        };
        assert_eq!(error(b""), "train-images-idx3-ubyte: truncated");
        assert_eq!(error(&[0, 0, 8]), "train-images-idx3-ubyte: truncated");
        assert_eq!(error(&idx(&[2, 1], &[])), format!("train-images-idx3-ubyte: {}", magic(0x802)));
        assert_eq!(error(b"<html></html>"), format!("train-images-idx3-ubyte: {}", magic(0x3c68_746d)));
        assert_eq!(error(&idx(&[2, 0, 3], &[])), wrong("[2, 0, 3]"));
        assert_eq!(error(&idx(&[u32::MAX; 3], &[])), wrong("[4294967295, 4294967295, 4294967295]"));
        let large = idx(&[1 << 10, 1 << 10, 1 << 10], &[1, 2]);
        assert_eq!(
            error(&large),
            "train-images-idx3-ubyte: truncated: 2 of 1073741824 bytes after the header"
        );
        assert_eq!(error(&gzip(&large)), error(&large));
    }

    fn magic(found: u32) -> String {
        format!("wrong magic number {found:#010x} instead of 0x00000803")
    }

    #[test]
    fn length_is_exact() {
        let error = |bytes: &[u8]| error_with("idx-length", "train-images-idx3-ubyte", bytes);
        let [short, long] = [&[0; 5][..], &[0; 7]].map(|values| idx(&[2, 1, 3], values));
        for pack in [|bytes: &[u8]| bytes.to_vec(), gzip] {
            assert_eq!(
                error(&pack(&short)),
                "train-images-idx3-ubyte: truncated: 5 of 6 bytes after the header"
            );
            let trailing = "train-images-idx3-ubyte: trailing bytes after the 6 that the header announces";
            assert_eq!(error(&pack(&long)), trailing);
        }
    }

    #[test]
    fn damaged_gzip() {
        let error = |bytes: &[u8]| error_with("idx-gzip", "train-images-idx3-ubyte", bytes);
        let packed = gzip(&idx(&[2, 1, 3], &[0; 6]));
        for length in 2..packed.len() {
            assert_eq!(error(&packed[..length]), "train-images-idx3-ubyte: truncated", "{length} bytes");
        }
        let mut wrong_sum = packed.clone();
        // The last eight bytes are the checksum and the length.
        wrong_sum[packed.len() - 8] ^= 1;
        assert!(error(&wrong_sum).starts_with("train-images-idx3-ubyte: cannot be read: "));
        assert!(error(&[&packed[..], b"more"].concat()).starts_with("train-images-idx3-ubyte: "));
    }

    #[test]
    fn files_fit_together() {
        let labels = |values: &[u8]| {
            error_with("idx-fit", "train-labels-idx1-ubyte", &idx(&[values.len() as u32], values))
        };
        assert_eq!(
            labels(&[1]),
            "train-images-idx3-ubyte: 2 images, but train-labels-idx1-ubyte has 1 labels"
        );
        assert_eq!(labels(&[9, 10]), "train-labels-idx1-ubyte: label 10 at index 1 is not one of 0 to 9");

        let other = gzip(&idx(&[1, 3, 1], &[0; 3]));
        let error = error_with("idx-size", "t10k-images-idx3-ubyte.gz", &other);
        assert!(error.ends_with(": images of 1x3 to train on but of 3x1 to test on"), "{error}");
    }
}
