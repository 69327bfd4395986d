//! NumPy's `.npz`: a zip archive with a `.npy` file for each array.
//!
//! # Source
//! NumPy, `numpy.savez` and `numpy.load`.

use crate::TensorFile;
use crate::fields::insert;
use crate::input::{Output, SourceFile, read_up_to, write_elements};
use crate::npy;
use crate::zip::{Archive, Writer};
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use std::io;

const SUFFIX: &str = ".npy";
/// The longest name of an entry in a zip archive, in bytes.
const LONGEST_NAME: usize = u16::MAX as usize;
/// The longest header of an array that is read, in bytes.
const LONGEST_HEADER: u64 = 1 << 20;

/// An array that is written: its name, its header and its values.
pub(crate) type Array<'a> = (&'a String, Vec<u8>, &'a NamedTensor);

/// The arrays of a file, for `op`.
pub(crate) fn prepare<'a>(op: &'static str, file: &'a TensorFile) -> Result<Vec<Array<'a>>> {
    if let Some(key) = file.metadata.keys().next() {
        let message = format!(".npz files have no metadata, and the key '{key}' would be lost");
        return Err(Error::new(ErrorKind::Value, op, message).with_repair("\"x.safetensors\""));
    }
    let mut arrays = Vec::new();
    for (name, x) in &file.tensors {
        if name.len() + SUFFIX.len() > LONGEST_NAME {
            let message = format!("the name of a tensor has {} bytes, too many for .npz", name.len());
            return Err(Error::new(ErrorKind::Value, op, message));
        }
        let header = npy::header(x.dtype(), x.sizes()).map_err(|message| {
            Error::about(&[x], ErrorKind::DType, op, format!("tensor '{name}': {message}"))
        })?;
        arrays.push((name, header, x));
    }
    Ok(arrays)
}

pub(crate) fn write(arrays: &[Array<'_>], out: &mut Output<'_>) -> io::Result<()> {
    let mut zip = Writer::new(out);
    for (name, header, x) in arrays {
        zip.add(&format!("{name}{SUFFIX}"), &|out| {
            out(header)?;
            write_elements(x, out)
        })?;
    }
    zip.finish()
}

pub(crate) fn read(input: &SourceFile, archive: &Archive<'_>) -> Result<TensorFile> {
    let mut file = TensorFile::default();
    for entry in archive.entries() {
        let Some(name) = entry.name.strip_suffix(SUFFIX) else {
            return Err(input.malformed(format_args!(
                "a zip archive with '{}', which is neither a NumPy array nor part of a file of torch.save",
                entry.name
            )));
        };
        let malformed = |message: String| input.malformed(format_args!("array '{name}': {message}"));
        let failed = |error: io::Error| input.failed(&error);
        let mut content = archive.open(entry).map_err(failed)?;
        // The header first: a small file can claim to be a large one, and contain many zeros.
        let mut bytes = Vec::new();
        read_up_to(LONGEST_HEADER, &mut content, &mut bytes).map_err(failed)?;
        let length =
            npy::length(&bytes, usize::try_from(entry.size).unwrap_or(usize::MAX)).map_err(malformed)?;
        let rest = entry.size - length as u64;
        if rest > 0 {
            return Err(malformed(format!("{rest} bytes follow its elements")));
        }
        read_up_to(u64::MAX, &mut content, &mut bytes).map_err(failed)?;
        let x = npy::parse(input.op, bytes, &malformed)?;
        insert(&mut file.tensors, name.to_string(), x);
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zip::archive;

    #[test]
    fn an_array_is_as_long_as_its_header_says() {
        let x = NamedTensor::ones([2, 3]).unwrap();
        let header = npy::header(x.dtype(), x.sizes()).unwrap();
        for (extra, missing) in [(0, 0), (1, 0), (10_000_000, 0), (0, 1)] {
            let content = [&header[..], &[0; 24][missing..], &vec![0; extra]].concat();
            match TensorFile::from_bytes(&archive(&[("a.npy", &content)])) {
                Ok(file) => assert_eq!((extra, missing, file.tensors["a"].sizes()), (0, 0, &[2, 3][..])),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Format);
                    let message = error.message();
                    assert!(
                        message.contains(if extra > 0 { "follow its elements" } else { "do not fit" }),
                        "{error}"
                    );
                }
            }
        }
    }
}
