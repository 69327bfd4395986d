//! The safetensors format.
//!
//! A file consists of the length of the header in 8 bytes, the header in JSON, and the elements. The header has
//! the dtype, sizes and offsets of each tensor, and metadata. The tensors have to follow one another without
//! gaps, and fill the file. A test reads the files with the `safetensors` crate.
//!
//! # Source
//! Hugging Face, *Safetensors*, section "Format".

use crate::TensorFile;
use crate::fields::{insert, insert_text};
use crate::input::{Output, ReadSome, SourceFile, read_exactly, write_elements};
use crate::setting::OfJson;
use crate::sorted;
use crate::text::{append, quoted};
use namegrad_core::{DType, Error, ErrorKind, Name, NamedTensor, Names, Result, Shape};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
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
    let mut tensors = Vec::new();
    for tensor in &file.tensors {
        tensors.push(tensor);
    }
    sorted::sort(&mut tensors, &|a, b| a.1.dtype().itemsize() > b.1.dtype().itemsize());
    tensors
}

/// The header, padded to a multiple of 8 bytes.
pub(crate) fn header(op: &'static str, file: &TensorFile) -> Result<Vec<u8>> {
    let refused = |message: String| Error::new(ErrorKind::Value, op, message);
    if let Some(key) = file.metadata.keys().find(|key| key.starts_with(NAMES)) {
        return Err(refused(format!("the metadata key '{key}' is kept for the names of dims")));
    }
    let mut texts = Vec::new();
    for (key, text) in &file.metadata {
        texts.push((key.clone(), quoted(text)));
    }
    let mut entries = String::new();
    let mut offset = 0;
    for (name, x) in ordered(file) {
        if name == METADATA {
            return Err(refused(format!("a tensor cannot be called '{METADATA}' in a safetensors file")));
        }
        if x.has_names() {
            let mut names = Vec::new();
            for name in x.names().iter(x.ndim()) {
                names.push(name.map_or("null".into(), |name| quoted(name.as_str())));
            }
            texts.push((format!("{NAMES}{name}"), quoted(&format!("[{}]", crate::joined(&names, ",")))));
        }
        let end = offset + x.nbytes();
        // The dtypes are in the order of their declaration, as a test checks.
        let (name, dtype) = (quoted(name), DTYPES[x.dtype() as usize].1);
        append(&mut entries, format_args!(",{name}:{{\"dtype\":\"{dtype}\",\"shape\":["));
        for (dim, size) in x.sizes().iter().enumerate() {
            let comma = if dim == 0 { "" } else { "," };
            append(&mut entries, format_args!("{comma}{size}"));
        }
        append(&mut entries, format_args!("],\"data_offsets\":[{offset},{end}]}}"));
        offset = end;
    }
    let mut metadata = String::new();
    if !texts.is_empty() {
        sorted::sort(&mut texts, &|a: &(String, String), b| a.0 < b.0);
        for (key, text) in &texts {
            append(&mut metadata, format_args!(",{}:{text}", quoted(key)));
        }
        metadata = format!(",\"{METADATA}\":{{{}}}", &metadata[1..]);
    }
    let mut header = (metadata + &entries).into_bytes();
    match header.first_mut() {
        Some(comma) => *comma = b'{',
        None => header.push(b'{'),
    }
    header.push(b'}');
    header.resize(header.len().next_multiple_of(LENGTH), b' ');
    if header.len() as u64 > MAX_HEADER {
        let message = format!("the header has {} bytes, the format allows {MAX_HEADER}", header.len());
        return Err(refused(message));
    }
    Ok(header)
}

/// Writes a file with this header.
pub(crate) fn write(file: &TensorFile, header: &[u8], out: &mut Output<'_>) -> io::Result<()> {
    out(&(header.len() as u64).to_le_bytes())?;
    out(header)?;
    for (_, x) in ordered(file) {
        write_elements(x, out)?;
    }
    Ok(())
}

/// The content of a header: the metadata and the tensors.
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

/// Reads a file.
pub(crate) fn read(input: &SourceFile, from: &mut dyn ReadSome) -> Result<TensorFile> {
    let Contents { metadata, tensors } = contents(input, from)?;
    let mut file = TensorFile { metadata, ..TensorFile::default() };
    for stored in tensors {
        let value = input.tensor(stored.shape, stored.dtype, from)?;
        insert(&mut file.tensors, stored.name, value);
    }
    Ok(file)
}

/// Reads the header. Every length in the file is compared with the length of the file before it is used.
pub(crate) fn contents(input: &SourceFile, from: &mut dyn ReadSome) -> Result<Contents> {
    let mut length = [0; LENGTH];
    if input.length < LENGTH as u64 {
        return Err(input.malformed(format_args!("{} bytes are no safetensors file", input.length)));
    }
    read_exactly(from, &mut length).map_err(|error| input.failed(&error))?;
    let (length, rest) = (u64::from_le_bytes(length), input.length - LENGTH as u64);
    if length.to_le_bytes().starts_with(b"\x93NUMPY") {
        let error = input.malformed("an npy file, which has one tensor without a name");
        return Err(error.with_repair("NamedTensor::load_npy(path)?"));
    }
    if length > MAX_HEADER.min(rest) {
        // What downloads leave in place of a file.
        let start = length.to_le_bytes();
        if start.trim_ascii_start().starts_with(b"<") {
            return Err(
                input.malformed("a page of the web (HTML), not a file of tensors; download the file itself")
            );
        }
        if start == *b"version " {
            let message = "a pointer of Git LFS, not the file itself, which `git lfs pull` downloads";
            return Err(input.malformed(message));
        }
        return Err(input.malformed(format_args!(
            "not a safetensors file, or cut short: its header would have {length} bytes, {rest} follow"
        )));
    }
    let mut header = vec![0; length as usize];
    read_exactly(from, &mut header).map_err(|error| input.failed(&error))?;
    let not_one =
        |error: &dyn fmt::Display| input.malformed(format_args!("not a safetensors header: {error}"));
    let text = str::from_utf8(&header).map_err(|error| not_one(&error))?;
    let entries = match text.parse().map_err(|error: serde_json::Error| not_one(&error))? {
        Value::Object(entries) => entries,
        _ => return Err(not_one(&"expected a map from names to tensors")),
    };
    if let Some(key) = repeated_key(text) {
        return Err(input.malformed(format_args!("two entries are called '{key}'")));
    }
    let (mut texts, mut tensors) = (None, Vec::new());
    let start = LENGTH as u64 + length;
    for (name, entry) in &entries {
        match name == METADATA {
            true => texts = Some(entry),
            false => tensors.push(stored(input, name, entry, start)?),
        }
    }
    let metadata = take_names(input, texts, &mut tensors)?;
    sorted::sort(&mut tensors, &|a: &Stored, b| (a.at.start, a.at.end) < (b.at.start, b.at.end));
    let mut end = start;
    for Stored { name, at, .. } in &tensors {
        if at.start != end {
            return Err(input.malformed(format_args!(
                "tensor '{name}' has an invalid offset: {}, expected {}",
                at.start - start,
                end - start
            )));
        }
        end = at.end;
    }
    let (stated, found) = (end - start, rest - length);
    if stated != found {
        return Err(
            input.malformed(format_args!("the tensors of the header have {stated} bytes, {found} follow"))
        );
    }
    Ok(Contents { metadata, tensors })
}

/// A key that a JSON object has twice. The format does not allow that, and maps lose one of the two entries.
fn repeated_key(object: &str) -> Option<String> {
    let (mut depth, mut begin, mut keys) = (0usize, None, Vec::new());
    let mut bytes = object.bytes().enumerate();
    let mut last = 0..0;
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => begin = Some(at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b':' if depth == 1 => keys.push(&object[last.clone()]),
            _ => {}
        }
        let Some(begin) = begin.take() else { continue };
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'\\' => drop(bytes.next()),
                b'"' => {
                    last = begin..at + 1;
                    break;
                }
                _ => {}
            }
        }
    }
    let mut texts = Vec::new();
    for key in keys {
        if let Ok(Value::String(key)) = key.parse() {
            texts.push(key);
        }
    }
    sorted::sort(&mut texts, &|a: &String, b| a < b);
    texts.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone())
}

/// The tensor of an entry of a header, as yet without names. The elements of the first tensor begin at `start`.
fn stored(input: &SourceFile, name: &str, entry: &Value, start: u64) -> Result<Stored> {
    let malformed = |what: fmt::Arguments<'_>| input.malformed(format_args!("tensor '{name}' {what}"));
    let no_entry = || input.malformed(format_args!("not a safetensors header: '{name}' is {entry}"));
    let dtype = entry["dtype"].as_str().ok_or_else(no_entry)?;
    let sizes = Vec::<usize>::of_json(&entry["shape"]).ok().ok_or_else(no_entry)?;
    let offsets = Vec::<usize>::of_json(&entry["data_offsets"]).unwrap_or_default();
    let [first, end] = offsets.try_into().ok().ok_or_else(no_entry)?;
    let Some((dtype, _)) = DTYPES.iter().find(|(_, name)| *name == dtype) else {
        return Err(malformed(format_args!("has dtype {dtype}, which is not supported")));
    };
    let bytes = sizes.iter().try_fold(dtype.itemsize(), |bytes, size| bytes.checked_mul(*size));
    let bytes = bytes
        .ok_or_else(|| malformed(format_args!("has an invalid shape: the size of {sizes:?} overflows")))?;
    if first.checked_add(bytes) != Some(end) {
        return Err(malformed(format_args!(
            "has an invalid shape: {sizes:?} of {dtype} has {bytes} bytes, not those from {first} to {end}"
        )));
    }
    let at = |offset: usize| {
        start.checked_add(offset as u64).ok_or_else(|| malformed(format_args!("is too large")))
    };
    let shape = Shape { sizes: sizes.as_slice().into(), names: Names::none() };
    Ok(Stored { name: name.to_string(), dtype: *dtype, shape, at: at(first)?..at(end)? })
}

/// Moves the names of dims from the texts of the metadata to the tensors, which are sorted by name. The rest
/// is the metadata.
fn take_names(
    input: &SourceFile,
    texts: Option<&Value>,
    tensors: &mut [Stored],
) -> Result<BTreeMap<String, String>> {
    let no_texts = || input.malformed("not a safetensors header: the metadata is not text by key");
    let mut metadata = BTreeMap::new();
    let Some(texts) = texts else { return Ok(metadata) };
    for (key, text) in texts.as_object().ok_or_else(no_texts)? {
        let text = text.as_str().ok_or_else(no_texts)?;
        let Some(name) = key.strip_prefix(NAMES) else {
            insert_text(&mut metadata, key.clone(), text.to_string());
            continue;
        };
        let Ok(at) = sorted::find(tensors.len(), &|at| &tensors[at].name, name) else {
            return Err(
                input.malformed(format_args!("names of dims for tensor '{name}', which is not there"))
            );
        };
        let shape = &mut tensors[at].shape;
        shape.names = names(input, name, text, shape.sizes.len())?;
    }
    Ok(metadata)
}

/// The names of the dims of a tensor, from their list in the metadata.
fn names(input: &SourceFile, tensor: &str, list: &str, ndim: usize) -> Result<Names> {
    let misfit = |what: &dyn fmt::Display| {
        input.malformed(format_args!("the names {list} of tensor '{tensor}' do not fit: {what}"))
    };
    let list: Value = list.parse().map_err(|error: serde_json::Error| misfit(&error))?;
    let list = list.as_array().ok_or_else(|| misfit(&"expected a list"))?;
    let mut names = Vec::new();
    for name in list {
        names.push(match name {
            Value::Null => None,
            Value::String(name) => Some(Name::new(name).map_err(|error| misfit(&error.message()))?),
            other => return Err(misfit(&format!("{other} is neither a name nor null"))),
        });
    }
    if names.len() != ndim {
        return Err(misfit(&format!("it has {ndim} dims")));
    }
    Names::new(input.op, names).map_err(|error| misfit(&error.message()))
}

/// The dtypes with their names in the format.
const DTYPES: [(DType, &str); 10] = [
    (DType::Bool, "BOOL"),
    (DType::U8, "U8"),
    (DType::I8, "I8"),
    (DType::I16, "I16"),
    (DType::I32, "I32"),
    (DType::I64, "I64"),
    (DType::F16, "F16"),
    (DType::BF16, "BF16"),
    (DType::F32, "F32"),
    (DType::F64, "F64"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_dtypes() {
        assert!(DTYPES.iter().map(|(own, _)| *own).eq(DType::ALL));
    }

    #[test]
    fn texts_of_failed_downloads_are_recognized() {
        let error = |text: &str| TensorFile::from_bytes(text.as_bytes()).expect_err(text).to_string();
        assert!(error("<!DOCTYPE html><html></html>").contains("a page of the web (HTML)"));
        assert!(error("\n <html><body></body></html>").contains("a page of the web (HTML)"));
        assert!(
            error("version https://git-lfs.github.com/spec/v1\nsize 9\n").contains("a pointer of Git LFS")
        );
        assert!(error("some other text").contains("not a safetensors file, or cut short"));
    }
}
