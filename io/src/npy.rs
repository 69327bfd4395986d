//! NumPy's `.npy` files: the header as text, the elements as bytes.
//!
//! `parse_header` finds the position and the type of the elements in a file. `Npy::to_little_endian` returns
//! them in the byte order that tensors are read in. `header` is written before the elements. None of these
//! panics, whatever bytes a file contains.
//!
//! # Source
//! NumPy, `numpy.lib.format`, versions 1.0, 2.0 and 3.0.

use std::io::Write;
use std::ops::Range;
use std::panic::Location;
use std::path::Path;

use crate::input::write_elements;
use crate::text::append;
use crate::{atomic, io_error};
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Names, Result, Shape};

const MAGIC: &[u8] = b"\x93NUMPY";

/// NumPy places the elements at a multiple of this, so that a mapped file is aligned.
const ALIGNMENT: usize = 64;

/// Writes a file, for `op`.
#[track_caller]
pub(crate) fn save(op: &'static str, x: &NamedTensor, path: &Path) -> Result<()> {
    x.check_elements(op)?;
    let caller = Location::caller();
    let header = header(x.dtype(), x.sizes())
        .map_err(|message| Error::about(&[x], ErrorKind::DType, op, message).at(caller))?;
    atomic::write(path, |out| {
        out.write_all(&header)?;
        write_elements(x, &mut |bytes| out.write_all(bytes))
    })
    .map_err(|error| io_error(op, path, &error).at(caller))
}

/// Reads a file, for `op`.
#[track_caller]
pub(crate) fn load(op: &'static str, path: &Path) -> Result<NamedTensor> {
    let caller = Location::caller();
    let malformed = |message: String| {
        Error::new(ErrorKind::Format, op, format!("{}: {message}", path.display())).at(caller)
    };
    let file = std::fs::read(path).map_err(|error| io_error(op, path, &error).at(caller))?;
    parse(op, file, &malformed)
}

/// The array in the bytes of a file.
#[track_caller]
pub(crate) fn parse(
    op: &'static str,
    mut file: Vec<u8>,
    malformed: &dyn Fn(String) -> Error,
) -> Result<NamedTensor> {
    let npy = parse_header(&file).map_err(malformed)?;
    let mut sizes = npy.shape.clone();
    if npy.fortran_order {
        sizes.reverse();
    }
    if npy.complex {
        sizes.push(2); // the pairs are adjacent in any order of the dims
    }
    let shape = Shape { sizes: sizes.into(), names: Names::none() };
    let mut bytes = npy.to_little_endian(&mut file);
    let failed = |error: std::io::Error| malformed(format!("{error}"));
    let x = NamedTensor::read_bytes(op, shape, npy.dtype, &mut bytes, &failed)?;
    match (npy.fortran_order, npy.complex) {
        (false, _) => Ok(x),
        (true, false) => Ok(x.reversed_dims()),
        (true, true) => x.reversed_dims().movedim(0, -1),
    }
}

/// The content of the header of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Npy {
    /// The type of the elements, or of both parts of complex ones.
    dtype: DType,
    /// Whether the elements are complex: they become pairs along a further dim.
    complex: bool,
    /// Whether the most significant byte of an element comes first.
    pub big_endian: bool,
    /// Whether elements are adjacent along the first dim, instead of the last.
    pub fortran_order: bool,
    pub shape: Vec<usize>,
    /// The position of the elements in the file. It is inside the file, and has the length that the shape and
    /// the dtype require.
    pub data: Range<usize>,
}

impl Npy {
    /// The elements of `file`, the file of this header, in the order of the file, each in little-endian byte
    /// order.
    fn to_little_endian<'a>(&self, file: &'a mut [u8]) -> &'a [u8] {
        let bytes = &mut file[self.data.clone()];
        if self.big_endian {
            bytes.chunks_exact_mut(self.dtype.itemsize()).for_each(<[u8]>::reverse);
        }
        bytes
    }
}

/// The length of a file according to its header, of which `start` is the beginning. It is at most `length`.
pub(crate) fn length(start: &[u8], length: usize) -> std::result::Result<usize, String> {
    parse_start(start, length).map(|npy| npy.data.end)
}

/// Reads the header of a file that is completely in memory. Anything after the elements is ignored.
fn parse_header(file: &[u8]) -> std::result::Result<Npy, String> {
    parse_start(file, file.len())
}

/// Reads the header of a file of `file_length` bytes that begins with `file`.
fn parse_start(file: &[u8], file_length: usize) -> std::result::Result<Npy, String> {
    let after_magic = file.strip_prefix(MAGIC).ok_or("not an npy file: it does not start with \\x93NUMPY")?;
    let (version, rest) = after_magic.split_first_chunk().ok_or("the npy file ends in its version")?;
    let (length, rest) = match version {
        [1, 0] => split_length(rest, |bytes: [u8; 2]| u16::from_le_bytes(bytes).into()),
        [2 | 3, 0] => split_length(rest, |bytes: [u8; 4]| u32::from_le_bytes(bytes) as usize),
        [major, minor] => return Err(format!("version {major}.{minor} of npy is not known")),
    }
    .ok_or("the npy file ends in its header")?;
    let text = rest.get(..length).ok_or("the npy file ends in its header")?;
    let start = file.len() - rest.len() + length;

    let fields = HeaderFields::parse(text).ok_or_else(|| {
        let text = String::from_utf8_lossy(&text[..length.min(200)]);
        format!("the npy header is not one of a plain array: {}", text.trim_end())
    })?;
    let (big_endian, complex, dtype) = parse_descr(fields.descr)?;
    let element = dtype.itemsize() * if complex { 2 } else { 1 };
    let bytes = fields.shape.iter().try_fold(element, |n, &size| n.checked_mul(size));
    let end = bytes.and_then(|bytes| start.checked_add(bytes)).filter(|&end| end <= file_length);
    let Some(end) = end else {
        let found = file_length - start;
        return Err(format!(
            "sizes {:?} of {dtype} do not fit in the {found} bytes of the npy file",
            fields.shape
        ));
    };
    let HeaderFields { fortran_order, shape, .. } = fields;
    Ok(Npy { dtype, complex, big_endian, fortran_order, shape, data: start..end })
}

/// The header for little-endian elements in C order.
///
/// It has version 1.0, or 2.0 if the shape is too long for that. `bf16` is an error, because NumPy does not
/// have it.
pub(crate) fn header(dtype: DType, shape: &[usize]) -> std::result::Result<Vec<u8>, String> {
    let order = match dtype.itemsize() {
        1 => '|',
        _ => '<',
    };
    let code = CODES.iter().find(|(of, _)| *of == dtype).map(|(_, code)| code);
    let code = code.ok_or_else(|| format!("NumPy has no type for {dtype}"))?;
    let mut sizes = String::new();
    for (dim, size) in shape.iter().enumerate() {
        append(&mut sizes, format_args!("{}{size}", if dim == 0 { "" } else { ", " }));
    }
    if shape.len() == 1 {
        sizes.push(',');
    }
    let mut text = format!("{{'descr': '{order}{code}', 'fortran_order': False, 'shape': ({sizes}), }}");

    let unpadded = |length_bytes: usize| MAGIC.len() + 2 + length_bytes + text.len() + 1;
    let padded = |length_bytes| unpadded(length_bytes).next_multiple_of(ALIGNMENT);
    let (version, length_bytes) = if padded(2) <= u16::MAX.into() { ([1, 0], 2) } else { ([2, 0], 4) };
    let total = padded(length_bytes);
    for _ in unpadded(length_bytes)..total {
        text.push(' ');
    }
    text.push('\n');

    let length = u32::try_from(text.len()).map_err(|_| "the shape is too long for an npy header")?;
    let mut bytes = Vec::with_capacity(total);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&version);
    bytes.extend_from_slice(&length.to_le_bytes()[..length_bytes]);
    bytes.extend_from_slice(text.as_bytes());
    Ok(bytes)
}

/// NumPy's codes: the kind of an element and its size in bytes.
const CODES: [(DType, &str); 9] = [
    (DType::Bool, "b1"),
    (DType::U8, "u1"),
    (DType::I8, "i1"),
    (DType::I16, "i2"),
    (DType::I32, "i4"),
    (DType::I64, "i8"),
    (DType::F16, "f2"),
    (DType::F32, "f4"),
    (DType::F64, "f8"),
];

/// Parses a type such as `<f4`: the byte order (`=`, `|` or nothing for the order of this machine), then a
/// code. The second result says whether it is complex, and the third is then the type of both parts.
fn parse_descr(descr: &[u8]) -> std::result::Result<(bool, bool, DType), String> {
    let native = cfg!(target_endian = "big");
    let (big_endian, code) = match descr {
        [b'<', code @ ..] => (false, code),
        [b'>', code @ ..] => (true, code),
        [b'=' | b'|', code @ ..] => (native, code),
        code => (native, code),
    };
    let (complex, code) = match code {
        b"c8" => (true, &b"f4"[..]),
        b"c16" => (true, &b"f8"[..]),
        code => (false, code),
    };
    let dtype = CODES.iter().find(|(_, known)| known.as_bytes() == code).map(|(dtype, _)| *dtype);
    let unknown = || format!("NumPy's dtype '{}' is not supported", String::from_utf8_lossy(descr));
    Ok((big_endian, complex, dtype.ok_or_else(unknown)?))
}

fn split_length<const N: usize>(bytes: &[u8], length: fn([u8; N]) -> usize) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first_chunk()?;
    Some((length(*first), rest))
}

/// The three entries of the header, a Python dict: `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4),
/// }`.
struct HeaderFields<'a> {
    descr: &'a [u8],
    fortran_order: bool,
    shape: Vec<usize>,
}

impl<'a> HeaderFields<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        let mut rest = Cursor(text);
        rest.take(b"{")?;
        while rest.take(b"}").is_none() {
            let key = rest.string()?;
            rest.take(b":")?;
            match key {
                b"descr" => descr = Some(rest.string()?),
                b"fortran_order" => fortran_order = Some(rest.truth()?),
                b"shape" => shape = Some(rest.tuple()?),
                _ => return None,
            }
            rest.comma_or(b"}")?;
        }
        rest.0.trim_ascii().is_empty().then_some(())?;
        Some(Self { descr: descr?, fortran_order: fortran_order?, shape: shape? })
    }
}

/// The rest of the header's text. Each method consumes one item, or nothing if the item does not come next.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, token: &[u8]) -> Option<()> {
        self.0 = self.0.trim_ascii_start().strip_prefix(token)?;
        Some(())
    }

    /// Consumes a comma, which may be missing before the end of the list.
    fn comma_or(&mut self, end: &[u8]) -> Option<()> {
        self.take(b",").or_else(|| self.0.trim_ascii_start().starts_with(end).then_some(()))
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let (quote, rest) = self.0.trim_ascii_start().split_first()?;
        let end = rest.iter().position(|byte| byte == quote).filter(|_| matches!(quote, b'\'' | b'"'))?;
        self.0 = &rest[end + 1..];
        Some(&rest[..end])
    }

    fn truth(&mut self) -> Option<bool> {
        self.take(b"True").map(|()| true).or_else(|| self.take(b"False").map(|()| false))
    }

    fn tuple(&mut self) -> Option<Vec<usize>> {
        let mut sizes = Vec::new();
        self.take(b"(")?;
        while self.take(b")").is_none() {
            sizes.push(self.size()?);
            // A single size in parentheses is a number in Python, but here it can only mean a tuple.
            self.comma_or(b")")?;
        }
        Some(sizes)
    }

    /// Consumes a size, with the `L` that Python 2 appended to long integers.
    fn size(&mut self) -> Option<usize> {
        let text = self.0.trim_ascii_start();
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = text.split_at(digits);
        self.0 = rest.strip_prefix(b"L").unwrap_or(rest);
        str::from_utf8(number).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::Files;
    use namegrad_core::random::Generator;

    /// A file of version 1.0.
    fn file(dict: &str, data: &[u8]) -> Vec<u8> {
        let length = u16::try_from(dict.len()).unwrap().to_le_bytes();
        [MAGIC, &[1, 0], &length, dict.as_bytes(), data].concat()
    }

    /// A file written by NumPy 2.4 with `np.lib.format.write_array(f, a, version)`; `spaces` is the number of
    /// spaces in the header.
    fn numpys(version: u8, dict: &str, spaces: usize, data: &[u8]) -> Vec<u8> {
        let padding = " ".repeat(spaces) + "\n";
        let length = u32::try_from(dict.len() + padding.len()).unwrap().to_le_bytes();
        let length = if version == 1 { &length[..2] } else { &length[..] };
        [MAGIC, &[version, 0], length, dict.as_bytes(), padding.as_bytes(), data].concat()
    }

    #[test]
    fn reads_what_numpy_writes() {
        // np.arange(6, dtype="<i2").reshape(2, 3)
        let dict = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }";
        let bytes = numpys(1, dict, 58, b"\x00\x00\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00");
        let npy = parse_header(&bytes).unwrap();
        assert_eq!((npy.dtype, npy.fortran_order, &npy.shape[..]), (DType::I16, false, &[2, 3][..]));
        assert_eq!(npy.data, 128..140);
        assert_eq!(
            npy.to_little_endian(&mut bytes.clone()),
            [0i16, 1, 2, 3, 4, 5].map(i16::to_le_bytes).concat()
        );

        // np.asfortranarray(np.arange(6, dtype=">f4").reshape(2, 3)), version (2, 0)
        let dict = "{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3), }";
        let data = b"\x00\x00\x00\x00@@\x00\x00?\x80\x00\x00@\x80\x00\x00@\x00\x00\x00@\xa0\x00\x00";
        let bytes = numpys(2, dict, 57, data);
        let npy = parse_header(&bytes).unwrap();
        assert_eq!((npy.dtype, npy.big_endian, npy.fortran_order), (DType::F32, true, true));
        assert_eq!(
            npy.to_little_endian(&mut bytes.clone()),
            [0f32, 3.0, 1.0, 4.0, 2.0, 5.0].map(f32::to_le_bytes).concat()
        );

        // np.array(1.5), version (3, 0)
        let dict = "{'descr': '<f8', 'fortran_order': False, 'shape': (), }";
        let bytes = numpys(3, dict, 60, b"\x00\x00\x00\x00\x00\x00\xf8?");
        let npy = parse_header(&bytes).unwrap();
        assert_eq!(
            (npy.shape.len(), npy.to_little_endian(&mut bytes.clone())),
            (0, &1.5f64.to_le_bytes()[..])
        );
    }

    /// Complex numbers become pairs along a last dim, in either order of the dims and of the bytes.
    #[test]
    fn complex_numbers_are_pairs() {
        let read = |dict: &str, data: &[u8]| {
            let bad = |message: String| Error::new(ErrorKind::Format, "load_npy", message);
            parse("load_npy", file(dict, data), &bad).unwrap()
        };
        let data = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let x = read(
            "{'descr': '<c8', 'fortran_order': False, 'shape': (2, 2), }",
            &data.map(f32::to_le_bytes).concat(),
        );
        assert_eq!((x.sizes(), x.to_vec::<f32>().unwrap()), (&[2, 2, 2][..], data.to_vec()));
        let wide = data.map(f64::from).map(f64::to_be_bytes).concat();
        let x = read("{'descr': '>c16', 'fortran_order': True, 'shape': (2, 2), }", &wide);
        let wanted = [1.0, 2.0, 5.0, 6.0, 3.0, 4.0, 7.0, 8.0];
        assert_eq!(
            (x.dtype(), x.contiguous().unwrap().to_vec::<f64>().unwrap()),
            (DType::F64, wanted.to_vec())
        );
        let short = file("{'descr': '<c8', 'fortran_order': False, 'shape': (9,), }", &[0; 64]);
        assert!(parse_header(&short).unwrap_err().contains("do not fit"));
    }

    #[test]
    fn reads_other_ways_to_write_it() {
        for dict in [
            "{\"shape\":(3,),\"fortran_order\":False,\"descr\":\"|u1\"}",
            " { 'descr' : 'u1' , 'shape' : ( 3L , ) , 'fortran_order' : False , } \n",
            "{'descr': '=u1', 'fortran_order': False, 'shape': (3)}",
        ] {
            let npy = parse_header(&file(dict, &[1, 2, 3, 4])).unwrap();
            assert_eq!((npy.dtype, &npy.shape[..], npy.data.len()), (DType::U8, &[3][..], 3), "{dict}");
        }
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let path = std::env::temp_dir().join(format!("namegrad-{}.npy", std::process::id()));
        for (dtype, _) in CODES {
            let x = NamedTensor::arange(0, 6, 1, dtype).unwrap().unflatten(0, [("N", 2), ("C", 3)]).unwrap();
            for x in
                [x.reversed_dims(), x, NamedTensor::zeros([3, 0]).unwrap(), NamedTensor::ones(()).unwrap()]
            {
                x.save_npy(&path).unwrap();
                let y = NamedTensor::load_npy(&path).unwrap();
                assert_eq!((x.dtype(), x.sizes(), y.has_names()), (y.dtype(), y.sizes(), false));
                let numbers = |x: &NamedTensor| x.to(DType::F64).unwrap().to_vec::<f64>().unwrap();
                assert_eq!(numbers(&x), numbers(&y));
            }
        }
        let columns = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }";
        std::fs::write(&path, file(columns, &[0, 0, 0, 3, 0, 1, 0, 4, 0, 2, 0, 5])).unwrap();
        let x = NamedTensor::load_npy(&path).unwrap();
        assert_eq!((x.sizes(), x.to_vec::<i16>().unwrap()), (&[2, 3][..], vec![0, 1, 2, 3, 4, 5]));

        std::fs::write(
            &path,
            file("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", &[0, 1, 255]),
        )
        .unwrap();
        let x = NamedTensor::load_npy(&path).unwrap();
        assert_eq!(x.as_slice::<bool>().unwrap(), [false, true, true]);

        std::fs::write(&path, b"PK").unwrap();
        let error = NamedTensor::load_npy(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format);
        assert!(error.message().contains(path.to_str().unwrap()), "{error}");
        let half = NamedTensor::ones([2]).unwrap().to(DType::BF16).unwrap();
        assert_eq!(half.save_npy(&path).unwrap_err().kind(), ErrorKind::DType);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(NamedTensor::load_npy(&path).unwrap_err().kind(), ErrorKind::Io);
    }

    #[test]
    fn what_is_written_is_read() {
        let long = vec![1; 30_000];
        for (dtype, _) in CODES {
            for shape in [&[][..], &[0], &[7], &[2, 3], &[0, 3, usize::MAX], &long] {
                let mut bytes = header(dtype, shape).unwrap();
                assert_eq!(bytes.len() % ALIGNMENT, 0);
                assert_eq!(bytes.last(), Some(&b'\n'));
                let start = bytes.len();
                bytes.resize(start + shape.iter().product::<usize>() * dtype.itemsize(), 1);
                let npy = parse_header(&bytes).unwrap();
                assert_eq!((npy.dtype, npy.fortran_order, &npy.shape[..]), (dtype, false, shape));
                assert_eq!(npy.data, start..bytes.len());
                assert_eq!(npy.to_little_endian(&mut bytes.clone()), &bytes[start..]);
            }
        }
        assert!(header(DType::BF16, &[1]).is_err());
    }

    #[test]
    fn says_what_is_wrong() {
        let dict = |descr: &str, shape: &str| {
            file(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"), &[0; 64])
        };
        for (bytes, message) in [
            (b"PK\x03\x04".to_vec(), "does not start with"),
            ([MAGIC, &[9, 1, 0, 0]].concat(), "version 9.1"),
            ([MAGIC, &[1]].concat(), "ends in its version"),
            ([MAGIC, &[2, 0, 255, 255, 255, 255, b'{']].concat(), "ends in its header"),
            (dict("'<c32'", "(2,)"), "'<c32' is not supported"),
            (dict("[('x', '<f4')]", "(2,)"), "not one of a plain array"),
            (dict("'<f4'", "(-2,)"), "not one of a plain array"),
            (dict("'<f4'", "(99999999999999999999,)"), "not one of a plain array"),
            (dict("'<f4'", "(17,)"), "do not fit in the 64 bytes"),
            (dict("'<f8'", "(9223372036854775807, 9223372036854775807)"), "do not fit"),
            (file("{'descr': '<f4', 'shape': (2,)}", &[0; 8]), "not one of a plain array"),
            (file("{'descr': '<f4", &[0; 8]), "not one of a plain array"),
        ] {
            let error = parse_header(&bytes).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut generator = Generator::from_seed(99);
        let valid = [&header(DType::F32, &[2, 3]).unwrap()[..], &[0; 24]].concat();
        for end in 0..valid.len() {
            assert!(parse_header(&valid[..end]).is_err(), "cut at {end}");
        }
        let alphabet = b"{}()',:\"0123456789LTrueFals descrfotn_hp<>=|\x00\xff";
        for _ in 0..50_000 {
            let mut bytes = valid.clone();
            for _ in 0..generator.random_range(1..5) {
                let at = generator.random_range(0..bytes.len());
                bytes[at] = alphabet[generator.random_range(0..alphabet.len())];
            }
            bytes.truncate(generator.random_range(0..=bytes.len()));
            if let Ok(npy) = parse_header(&bytes) {
                assert_eq!(npy.to_little_endian(&mut bytes.clone()).len(), npy.data.len());
            }
        }
        for _ in 0..10_000 {
            let mut text = vec![0; generator.random_range(0..60)];
            text.fill_with(|| alphabet[generator.random_range(0..alphabet.len())]);
            let length = text.len() as u16;
            let _ = parse_header(&[MAGIC, &[1, 0], &length.to_le_bytes(), &text].concat());
        }
    }
}
