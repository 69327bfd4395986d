//! Safetensors files: what is written is read, by other programs too, and damaged headers are errors.

use namegrad_core::random::Generator;
use namegrad_core::{DType, ErrorKind, NamedTensor};
use namegrad_io::TensorFile;
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
    let (length, header) = ::safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!((8 + length) % 8, 0);
    for info in header.tensors().values() {
        assert_eq!(info.data_offsets.0 % (info.dtype.bitsize() / 8), 0);
    }
}

#[test]
fn other_programs_read_it() {
    let bytes = sample().to_bytes().unwrap();
    let theirs = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let view = theirs.tensor("view").unwrap();
    assert_eq!((view.dtype(), view.shape()), (::safetensors::Dtype::I16, &[3, 2][..]));
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
        (file(&format!(r#"{{{x},"y":{{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}}}"#), 8), "offset"),
        (file(r#"{"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#, 8), "invalid shape"),
        (file(r#"{"x":{"dtype":"F32","shape":[-3],"data_offsets":[0,8]}}"#, 8), "not a safetensors header"),
        (file(r#"{"x":{"dtype":"F9","shape":[1],"data_offsets":[0,8]}}"#, 8), "dtype F9"),
        (file(r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}"#, 8), "invalid shape"),
        (file(r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0]}}"#, 8), "not a safetensors header"),
        (file(r#"{"x":{"dtype":"F32","shape":[2]}}"#, 8), "not a safetensors header"),
        (file(r#"{"__metadata__":{"a":1}}"#, 0), "not a safetensors header"),
        (file(&format!(r#"{{{x},"y":{{"dtype":"U8","shape":[0],"data_offsets":[9,9]}}}}"#), 8), "offset"),
        (
            file(r#"{"a{\"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0061{\u0022":1}"#, 1),
            "entries are called",
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
    tensor.tensors.insert("__metadata__".into(), NamedTensor::zeros([1]).unwrap());
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
