//! Idx files, the format of MNIST and similar data sets, gzipped or not.
//!
//! An idx file is a big-endian header, then the elements, big-endian too: two zeros, the type of the
//! elements, the number of dims, the size of each dim in four bytes.
//!
//! # Source
//! Y. LeCun, C. Cortes, C. Burges, *The MNIST database of handwritten digits*.

use crate::input::{Input, Opened};
use namegrad_autograd::Tensor;
use namegrad_core::{DType, Error, Names, Result, Shape};
use namegrad_io::input::read_tensor;
use std::borrow::Cow;
use std::io::{self, BufRead, Read};
use std::panic::Location;
use std::path::Path;

const OP: &str = "idx";
/// The types of elements with their codes.
const TYPES: [(u8, DType); 6] = [
    (0x08, DType::U8),
    (0x09, DType::I8),
    (0x0b, DType::I16),
    (0x0c, DType::I32),
    (0x0d, DType::F32),
    (0x0e, DType::F64),
];
/// No bytes unpack to more than this many for each of them: a deflated block of 258 bytes takes two bits or
/// more.
const MOST_PER_BYTE: u64 = 1032;
/// Files that unpack to more than this many for each byte are unpacked twice, the first time to count: the
/// header of a damaged one could ask for a lot of memory. Images are packed to a fifth or so.
const USUAL_PER_BYTE: u64 = 8;

/// Reads a tensor from an idx file of `u8`, `i8`, `i16`, `i32`, `f32` or `f64`. Its dims are unnamed.
///
/// # Errors
/// [`ErrorKind::Io`](namegrad_core::ErrorKind::Io) if the file cannot be read,
/// [`ErrorKind::Format`](namegrad_core::ErrorKind::Format) if it is not an idx file, is truncated or longer
/// than its header says. A header that says more than there is takes no memory.
///
/// # Examples
/// ```
/// use namegrad::data::idx;
/// use namegrad::prelude::*;
/// # let path = std::env::temp_dir().join(format!("namegrad-doc-{}.idx", std::process::id()));
/// # std::fs::write(&path, [0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 3, 7, 8, 9]).unwrap();
/// let x = idx::load(&path)?.refine_names(["N", "feature"])?;
/// assert_eq!((x.dtype(), x.to_vec::<u8>()?), (DType::U8, vec![7, 8, 9]));
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn load(path: impl AsRef<Path>) -> Result<Tensor> {
    let caller = Location::caller();
    read(&Input::file(path.as_ref())).map_err(|error| error.at(caller))
}

/// Reads a tensor from the bytes of an idx file.
///
/// # Errors
/// Same as [`load`], except [`ErrorKind::Io`](namegrad_core::ErrorKind::Io).
#[track_caller]
pub fn from_bytes(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Tensor> {
    let caller = Location::caller();
    read(&Input::bytes(bytes)).map_err(|error| error.at(caller))
}

fn read(input: &Input) -> Result<Tensor> {
    let failed = |error: io::Error| input.failed(OP, &error);
    let Opened { mut bytes, stored, gzipped } = input.open(OP)?;
    let mut magic = [0; 4];
    bytes.read_exact(&mut magic).map_err(failed)?;
    let [0, 0, code, dims] = magic else {
        let magic = u32::from_be_bytes(magic);
        return Err(input.malformed(OP, &format_args!("not an idx file: it starts with {magic:#010x}")));
    };
    let Some((_, dtype)) = TYPES.into_iter().find(|(known, _)| *known == code) else {
        return Err(input.malformed(OP, &format_args!("not an idx file: no type has code {code:#04x}")));
    };
    let mut sizes = Vec::new();
    for _ in 0..dims {
        let mut size = [0; 4];
        bytes.read_exact(&mut size).map_err(failed)?;
        sizes.push(u32::from_be_bytes(size) as usize);
    }
    let announced =
        sizes.iter().try_fold(dtype.itemsize() as u64, |bytes, size| bytes.checked_mul(*size as u64));
    let header = 4 + 4 * u64::from(dims);
    let possible = if gzipped { stored.saturating_mul(MOST_PER_BYTE) } else { stored.saturating_sub(header) };
    let Some(announced) = announced.filter(|bytes| *bytes <= possible) else {
        let what =
            format!("truncated: its header says {sizes:?} of {dtype}, which do not fit in {stored} bytes");
        return Err(input.malformed(OP, &what));
    };
    let trailing = || {
        let what = format!(
            "there are more than the {announced} bytes after the header that it says, {sizes:?} of {dtype}"
        );
        input.malformed(OP, &what)
    };
    if !gzipped && announced < possible {
        return Err(trailing());
    }
    if gzipped && announced > stored.saturating_mul(USUAL_PER_BYTE) {
        let mut all = input.open(OP)?.bytes.take(header + announced);
        let found = io::copy(&mut all, &mut io::sink()).map_err(failed)?.saturating_sub(header);
        if found < announced {
            let what = format!(
                "truncated: its header says {sizes:?} of {dtype}, but there are {found} bytes after it"
            );
            return Err(input.malformed(OP, &what));
        }
    }
    let shape = Shape { sizes: crate::list(sizes.iter().copied()), names: Names::none() };
    let failed = |error: io::Error| -> Error {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                input.malformed(OP, &format_args!("truncated: its header says {sizes:?} of {dtype}"))
            }
            _ => input.failed(OP, &error),
        }
    };
    let size = dtype.itemsize();
    let mut read = |out: &mut [u8]| {
        let whole = out.len() - out.len() % size;
        let out = &mut out[..whole];
        bytes.read_exact(out)?;
        if size > 1 {
            out.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        Ok(whole)
    };
    let value = read_tensor(OP, shape, dtype, &mut read, &failed)?;
    // Reading past the end also makes gzip verify its checksum.
    match bytes.fill_buf().map_err(failed)?.len() {
        0 => Ok(Tensor::constant(value)),
        _ => Err(trailing()),
    }
}
