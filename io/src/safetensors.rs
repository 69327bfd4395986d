//! The safetensors format.
//!
//! A file consists of the length of the header in 8 bytes, the header in JSON, and the elements. The
//! `safetensors` crate checks the headers that are read. Its writer is not used, because it writes metadata
//! in random order, holds all elements in memory at once, and does not sync them to disk.

use crate::TensorFile;
use crate::input::Input;
use namegrad_core::{DType, Error, ErrorKind, Name, NamedTensor, Names, Result, Shape};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::ops::Range;

/// The longest header that the format allows, in bytes.
const MAX_HEADER: u64 = 100_000_000;
/// The size of the length of the header, in bytes.
const LENGTH: usize = size_of::<u64>();
/// The key in the header that is not a tensor.
const METADATA: &str = "__metadata__";
/// The prefix of a metadata key, before the name of a tensor; the value is a JSON list of the names of its
/// dims.
const NAMES: &str = "names:";

/// The tensors in the order of the file: those with wide elements first, so that each is aligned.
fn ordered(file: &TensorFile) -> Vec<(&String, &NamedTensor)> {
    let mut tensors: Vec<_> = file.tensors.iter().collect();
    tensors.sort_by_key(|(_, x)| Reverse(x.dtype().itemsize())); // stable, so by name within a size
    tensors
}

/// The header, padded to a multiple of 8 bytes.
pub(crate) fn header(op: &'static str, file: &TensorFile) -> Result<Vec<u8>> {
    let refused = |message: String| Error::new(ErrorKind::Value, op, message);
    if let Some(key) = file.metadata.keys().find(|key| key.starts_with(NAMES)) {
        return Err(refused(format!("the metadata key '{key}' is kept for the names of dims")));
    }
    let mut metadata = file.metadata.clone();
    let mut entries = Vec::new();
    let mut offset = 0;
    for (name, x) in ordered(file) {
        if name == METADATA {
            return Err(refused(format!("a tensor cannot be called '{METADATA}' in a safetensors file")));
        }
        if x.has_names() {
            let names: Vec<Option<Name>> = x.names().iter(x.ndim()).collect();
            metadata.insert(format!("{NAMES}{name}"), json(op, &names)?);
        }
        let end = offset + x.nbytes();
        let info =
            TensorInfo { dtype: dtype_of(x.dtype()), shape: x.sizes().to_vec(), data_offsets: (offset, end) };
        entries.push((name, Entry::Tensor(info)));
        offset = end;
    }
    let metadata = (!metadata.is_empty()).then_some((METADATA.to_string(), metadata));
    let metadata = metadata.as_ref().map(|(key, metadata)| (key, Entry::Metadata(metadata)));
    let mut header = json(op, &Header(metadata.into_iter().chain(entries).collect()))?.into_bytes();
    header.resize(header.len().next_multiple_of(LENGTH), b' ');
    if header.len() as u64 > MAX_HEADER {
        let message = format!("the header has {} bytes, the format allows {MAX_HEADER}", header.len());
        return Err(refused(message));
    }
    Ok(header)
}

/// Writes a file with this header.
pub(crate) fn write(file: &TensorFile, header: &[u8], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header)?;
    ordered(file).into_iter().try_for_each(|(_, x)| x.write_bytes(out))
}

/// The header in the order of the file; a map would lose it.
struct Header<'a>(Vec<(&'a String, Entry<'a>)>);

#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    Metadata(&'a BTreeMap<String, String>),
    Tensor(TensorInfo),
}

impl Serialize for Header<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, entry)| (key, entry)))
    }
}

fn json(op: &'static str, value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::new(ErrorKind::Value, op, error.to_string()))
}

/// What the header of a file says.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) metadata: BTreeMap<String, String>,
    /// In the order of the file.
    pub(crate) tensors: Vec<Stored>,
}

/// A tensor in a file.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
    /// The position of its elements in the file.
    pub(crate) at: Range<u64>,
}

impl Stored {
    /// Reads the tensor from its elements.
    pub(crate) fn read(&self, input: &Input, from: &mut dyn Read) -> Result<NamedTensor> {
        NamedTensor::read_bytes(input.op, self.shape.clone(), self.dtype, from, &|error| input.failed(&error))
    }
}

/// Reads a file.
pub(crate) fn read(input: &Input, from: &mut dyn Read) -> Result<TensorFile> {
    let Contents { metadata, tensors } = contents(input, from)?;
    let mut file = TensorFile { metadata, ..TensorFile::default() };
    for stored in tensors {
        let value = stored.read(input, from)?;
        file.tensors.insert(stored.name, value);
    }
    Ok(file)
}

/// Reads the header. Every length in the file is compared with the length of the file before it is used.
pub(crate) fn contents(input: &Input, from: &mut dyn Read) -> Result<Contents> {
    let mut length = [0; LENGTH];
    if input.length < LENGTH as u64 {
        return Err(input.malformed(format!("{} bytes are no safetensors file", input.length)));
    }
    from.read_exact(&mut length).map_err(|error| input.failed(&error))?;
    let (length, rest) = (u64::from_le_bytes(length), input.length - LENGTH as u64);
    if length.to_le_bytes().starts_with(b"\x93NUMPY") {
        let error = input.malformed("an npy file, which has one tensor without a name");
        return Err(error.with_repair("NamedTensor::load_npy(path)?"));
    }
    if length > MAX_HEADER.min(rest) {
        let message = format!(
            "not a safetensors file, or cut short: its header would have {length} bytes, {rest} follow"
        );
        return Err(input.malformed(message));
    }
    let mut header = vec![0; length as usize];
    from.read_exact(&mut header).map_err(|error| input.failed(&error))?;
    let not_one = |error| input.malformed(format!("not a safetensors header: {error}"));
    let Keys(keys) = serde_json::from_slice(&header).map_err(not_one)?;
    if let Some(key) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(input.malformed(format!("two entries are called '{}'", key[0])));
    }
    let header: Metadata = serde_json::from_slice(&header).map_err(not_one)?;
    let (stated, found) = (header.data_len() as u64, rest - length);
    if stated != found {
        let message = format!("the tensors of the header have {stated} bytes, {found} follow");
        return Err(input.malformed(message));
    }
    checked(input, &header, LENGTH as u64 + length)
}

/// The keys of a JSON object, sorted. The format does not allow a key twice, and maps lose one of the two.
struct Keys(Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Keys, D::Error> {
        from.deserialize_map(Keys(Vec::new()))
    }
}

impl<'de> Visitor<'de> for Keys {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map from names to tensors")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> std::result::Result<Keys, A::Error> {
        while let Some((key, IgnoredAny)) = map.next_entry()? {
            self.0.push(key);
        }
        self.0.sort_unstable();
        Ok(self)
    }
}

/// The content of a header whose elements start at `start`.
fn checked(input: &Input, header: &Metadata, start: u64) -> Result<Contents> {
    let mut contents = Contents { metadata: BTreeMap::new(), tensors: Vec::new() };
    let mut lists = BTreeMap::new();
    for (key, text) in header.metadata().iter().flatten() {
        match key.strip_prefix(NAMES) {
            Some(tensor) => lists.insert(tensor, text.as_str()),
            None => {
                contents.metadata.insert(key.clone(), text.clone());
                continue;
            }
        };
    }
    for name in header.offset_keys() {
        let info = header.info(&name).ok_or_else(|| input.malformed(format!("tensor '{name}' is lost")))?;
        let dtype = known_dtype(info.dtype).ok_or_else(|| {
            input.malformed(format!("tensor '{name}' has dtype {}, which is not supported", info.dtype))
        })?;
        let names = match lists.remove(name.as_str()) {
            Some(list) => names(input, &name, list, info.shape.len())?,
            None => Names::none(),
        };
        let (first, end) = info.data_offsets;
        let at = start + first as u64..start + end as u64;
        let shape = Shape { sizes: info.shape.as_slice().into(), names };
        contents.tensors.push(Stored { name, dtype, shape, at });
    }
    match lists.keys().next() {
        Some(tensor) => {
            Err(input.malformed(format!("names of dims for tensor '{tensor}', which is not there")))
        }
        None => Ok(contents),
    }
}

/// The names of the dims of a tensor, from their list in the metadata.
fn names(input: &Input, tensor: &str, list: &str, ndim: usize) -> Result<Names> {
    let misfit = |what: &dyn std::fmt::Display| {
        input.malformed(format!("the names {list} of tensor '{tensor}' do not fit: {what}"))
    };
    let names: Vec<Option<Name>> = serde_json::from_str(list).map_err(|error| misfit(&error))?;
    if names.len() != ndim {
        return Err(misfit(&format!("it has {ndim} dims")));
    }
    Names::new(input.op, names).map_err(|error| misfit(&error.message()))
}
/// The dtypes of the format.
const DTYPES: [(DType, Dtype); 10] = [
    (DType::Bool, Dtype::BOOL),
    (DType::U8, Dtype::U8),
    (DType::I8, Dtype::I8),
    (DType::I16, Dtype::I16),
    (DType::I32, Dtype::I32),
    (DType::I64, Dtype::I64),
    (DType::F16, Dtype::F16),
    (DType::BF16, Dtype::BF16),
    (DType::F32, Dtype::F32),
    (DType::F64, Dtype::F64),
];

fn dtype_of(dtype: DType) -> Dtype {
    DTYPES[dtype as usize].1 // in the order of the declaration, as a test checks
}

fn known_dtype(dtype: Dtype) -> Option<DType> {
    DTYPES.iter().find(|(_, theirs)| *theirs == dtype).map(|(own, _)| *own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use namegrad_core::random::Generator;
    use rand::RngExt;

    /// One tensor of each dtype, with and without names, one empty, one without dims, one that is a view.
    fn sample() -> TensorFile {
        let mut file = TensorFile::default();
        for dtype in DType::ALL {
            let x = NamedTensor::arange(0, 6, 1, dtype).unwrap().unflatten(0, [("N", 2), ("C", 3)]).unwrap();
            file.tensors.insert(format!("of_{dtype}"), x);
        }
        let view = file.tensors["of_int16"].reversed_dims();
        file.tensors.insert("view".into(), view.rename([Some("C"), None]).unwrap());
        file.tensors.insert("empty".into(), NamedTensor::zeros((("N", 0), 3)).unwrap());
        file.tensors.insert("".into(), NamedTensor::new(f64::NAN).unwrap());
        file.metadata.insert("format".into(), "a note".into());
        file
    }

    fn assert_same(a: &TensorFile, b: &TensorFile) {
        assert_eq!(a.metadata, b.metadata);
        assert!(a.tensors.keys().eq(b.tensors.keys()));
        for (name, x) in &a.tensors {
            let y = &b.tensors[name];
            assert_eq!((x.dtype(), x.sizes(), x.names()), (y.dtype(), y.sizes(), y.names()), "{name}");
            let bits = |x: &NamedTensor| {
                let numbers = x.to(DType::F64).unwrap().to_vec::<f64>().unwrap();
                numbers.into_iter().map(f64::to_bits).collect::<Vec<_>>()
            };
            assert_eq!(bits(x), bits(y), "{name}");
        }
    }

    /// A file with this header and as many bytes of elements.
    fn file(header: &str, data: usize) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![1; data]].concat()
    }

    #[test]
    fn the_table_is_in_the_order_of_the_dtypes() {
        assert!(DTYPES.iter().map(|(own, _)| *own).eq(DType::ALL));
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let path = std::env::temp_dir().join(format!("namegrad-{}.safetensors", std::process::id()));
        let saved = sample();
        saved.save(&path).unwrap();
        assert_same(&saved, &TensorFile::load(&path).unwrap());
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes, saved.to_bytes().unwrap());
        assert_same(&saved, &TensorFile::from_bytes(&bytes).unwrap());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        let bytes = sample().to_bytes().unwrap();
        assert!((0..20).all(|_| sample().to_bytes().unwrap() == bytes));
    }

    #[test]
    fn each_tensor_is_aligned() {
        let bytes = sample().to_bytes().unwrap();
        let (length, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
        assert_eq!((LENGTH + length) % 8, 0);
        for info in header.tensors().values() {
            assert_eq!(info.data_offsets.0 % (info.dtype.bitsize() / 8), 0);
        }
    }

    #[test]
    fn other_programs_read_it() {
        let bytes = sample().to_bytes().unwrap();
        let theirs = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let view = theirs.tensor("view").unwrap();
        assert_eq!((view.dtype(), view.shape()), (Dtype::I16, &[3, 2][..]));
        assert_eq!(view.data(), [0i16, 3, 1, 4, 2, 5].map(i16::to_le_bytes).concat());
    }

    /// The example in the documentation of the `safetensors` package.
    #[test]
    fn files_of_other_programs_have_no_names() {
        let bytes = file(r#"{"test":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}}"#, 16);
        let read = TensorFile::from_bytes(&bytes).unwrap();
        let x = &read.tensors["test"];
        assert_eq!((x.sizes(), x.has_names()), (&[2, 2][..], false));
        assert_eq!(x.to_vec::<i32>().unwrap(), [0x01010101; 4]);
    }

    #[test]
    fn a_bool_is_zero_or_one() {
        let mut bytes = file(r#"{"b":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}}"#, 0);
        bytes.extend([0, 1, 255]);
        let read = TensorFile::from_bytes(&bytes).unwrap();
        assert_eq!(read.tensors["b"].as_slice::<bool>().unwrap(), [false, true, true]);
    }

    #[test]
    fn says_what_is_wrong() {
        let x = r#""x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#;
        let with_names = |names: &str| file(&format!(r#"{{"__metadata__":{{{names}}},{x}}}"#), 8);
        for (bytes, message) in [
            (vec![], "0 bytes"),
            (vec![0; 7], "7 bytes"),
            (b"PK\x03\x04\x05\x06\x07\x08 something".to_vec(), "not a zip archive"),
            (u64::MAX.to_le_bytes().to_vec(), "not a safetensors file"),
            (b"\x93NUMPY\x01\x00v\x00".to_vec(), "an npy file"),
            (file("[1, 2]", 0), "not a safetensors header"),
            (file(&format!("{{{x}"), 8), "not a safetensors header"),
            (file(&format!("{{{x}}}"), 7), "have 8 bytes, 7 follow"),
            (file(&format!("{{{x}}}"), 9), "have 8 bytes, 9 follow"),
            (
                file(&format!(r#"{{{x},"y":{{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}}}"#), 8),
                "offset",
            ),
            (file(r#"{"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#, 8), "invalid shape"),
            (
                file(r#"{"x":{"dtype":"F32","shape":[-3],"data_offsets":[0,8]}}"#, 8),
                "not a safetensors header",
            ),
            (
                file(r#"{"x":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,8]}}"#, 8),
                "overflow",
            ),
            (file(&format!("{{{x},{x}}}"), 8), "two entries are called 'x'"),
            (file(r#"{"x":{"dtype":"U64","shape":[1],"data_offsets":[0,8]}}"#, 8), "dtype U64"),
            (with_names(r#""names:y":"[null]""#), "'y', which is not there"),
            (with_names(r#""names:x":"[\"N\",\"C\"]""#), "it has 1 dims"),
            (with_names(r#""names:x":"[\"1st\"]""#), "Invalid name"),
            (with_names(r#""names:x":"N""#), "do not fit"),
        ] {
            let error = TensorFile::from_bytes(&bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Format, "{error}");
            assert!(error.message().contains(message), "{error} does not say '{message}'");
        }
        let twice = r#"{"__metadata__":{"names:x":"[\"N\",\"N\"]"},"x":{"dtype":"U8","shape":[1,1],"data_offsets":[0,1]}}"#;
        assert!(TensorFile::from_bytes(&file(twice, 1)).unwrap_err().message().contains("duplicate names"));
    }

    #[test]
    fn errors_name_the_file() {
        let error = TensorFile::load("no/such/file.safetensors").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.message().contains("no/such/file.safetensors"), "{error}");
        assert_eq!(sample().save("no/such/file.safetensors").unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(TensorFile::load(std::env::temp_dir()).unwrap_err().kind(), ErrorKind::Io);
    }

    #[test]
    fn keys_of_the_format_are_refused() {
        let mut note = sample();
        note.metadata.insert("names:x".into(), "[]".into());
        let mut tensor = sample();
        tensor.tensors.insert(METADATA.into(), NamedTensor::zeros([1]).unwrap());
        for file in [note, tensor] {
            assert_eq!(file.to_bytes().unwrap_err().kind(), ErrorKind::Value);
        }
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let seed = 7;
        let mut generator = Generator::from_seed(seed);
        let valid = sample().to_bytes().unwrap();
        for end in 0..valid.len() {
            assert!(TensorFile::from_bytes(&valid[..end]).is_err(), "cut at {end}");
        }
        let alphabet = b"{}[]:,\"0123456789-FIUB_namesNC\\\x00\xff";
        for _ in 0..20_000 {
            let mut bytes = valid.clone();
            for _ in 0..generator.random_range(1..5) {
                let at = generator.random_range(0..bytes.len());
                bytes[at] = alphabet[generator.random_range(0..alphabet.len())];
            }
            let _ = TensorFile::from_bytes(&bytes);
        }
    }
}
