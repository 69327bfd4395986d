//! NumPy's `.npz`: a zip archive with a `.npy` file for each array.
//!
//! # Source
//! NumPy, `numpy.savez` and `numpy.load`.

use crate::TensorFile;
use crate::input::Input;
use crate::npy;
use crate::zip::{Archive, Writer};
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use std::io::{self, Write};

const SUFFIX: &str = ".npy";
/// The longest name of an entry in a zip archive, in bytes.
const LONGEST_NAME: usize = u16::MAX as usize;

/// An array that is written: its name, its header and its values.
pub(crate) type Array<'a> = (&'a String, Vec<u8>, &'a NamedTensor);

/// The arrays of a file, for `op`.
pub(crate) fn prepare<'a>(op: &'static str, file: &'a TensorFile) -> Result<Vec<Array<'a>>> {
    if let Some(key) = file.metadata.keys().next() {
        let message = format!(".npz files have no metadata, and the key '{key}' would be lost");
        return Err(Error::new(ErrorKind::Value, op, message).with_repair("\"x.safetensors\""));
    }
    let array = |(name, x): (&'a String, &'a NamedTensor)| {
        if name.len() + SUFFIX.len() > LONGEST_NAME {
            let message = format!("the name of a tensor has {} bytes, too many for .npz", name.len());
            return Err(Error::new(ErrorKind::Value, op, message));
        }
        let header = npy::header(x.dtype(), x.sizes()).map_err(|message| {
            Error::about(&[x], ErrorKind::DType, op, format!("tensor '{name}': {message}"))
        })?;
        Ok((name, header, x))
    };
    file.tensors.iter().map(array).collect()
}

pub(crate) fn write(arrays: &[Array<'_>], out: &mut dyn Write) -> io::Result<()> {
    let mut zip = Writer::new(out);
    for (name, header, x) in arrays {
        zip.add(&format!("{name}{SUFFIX}"), &|out| {
            out.write_all(header)?;
            x.write_bytes(out)
        })?;
    }
    zip.finish()
}

pub(crate) fn read(input: &Input, archive: &mut Archive<'_>) -> Result<TensorFile> {
    let mut file = TensorFile::default();
    for entry in archive.entries().to_vec() {
        let Some(name) = entry.name.strip_suffix(SUFFIX) else {
            return Err(input.malformed(format!(
                "a zip archive with '{}', which is neither a NumPy array nor part of a file of torch.save",
                entry.name
            )));
        };
        let bytes = archive.open(&entry).and_then(|content| content.into_vec());
        let bytes = bytes.map_err(|error| input.failed(&error))?;
        let malformed = |message: String| input.malformed(format!("array '{name}': {message}"));
        let x = npy::parse(input.op, bytes, &malformed)?;
        file.tensors.insert(name.to_string(), x);
    }
    Ok(file)
}
