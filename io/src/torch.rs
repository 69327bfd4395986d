//! Files of `torch.save`, version 1.6 and later: a zip archive with the pickle `data.pkl` and the elements of
//! each storage in `data/<key>`, never compressed.
//!
//! [`pickle`] reads the pickle; here its tensors become views of storages, and dicts become paths.
//!
//! # Source
//! PyTorch, `torch/serialization.py` and `torch/_utils.py`.

use crate::TensorFile;
use crate::fields::insert;
use crate::input::{Reader, SourceFile};
use crate::pickle::{self, PickleValue, StorageRef, StridedView, Unpickled};
use crate::sorted;
use crate::zip::{Archive, ZipEntry};
use namegrad_core::{Error, ErrorKind, NamedTensor, Names, Result, Shape};
use std::collections::BTreeMap;

const PICKLE: &str = "data.pkl";
const ONLY_TENSORS: &str = "torch.save(model.state_dict(), path) # in Python";
/// The name of a tensor that is not in a dict.
const ALONE: &str = "tensor";
const DEEPEST: usize = 64;
const ENDLESS: &str = "it has the same dicts over and over, or a dict inside of itself";

/// The first bytes of a file of a version before 1.6: the pickle of a magic number.
pub(crate) const LEGACY: [u8; 8] = [0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46];

#[cold]
pub(crate) fn legacy(input: &SourceFile) -> Error {
    let message = "a file of torch.save before PyTorch 1.6, which is not read";
    input.malformed(message).with_repair("torch.save(torch.load(path, weights_only=True), path) # in Python")
}

/// The folder of the archive that the files are in, if the archive is of PyTorch.
pub(crate) fn folder<'a>(archive: &'a Archive<'_>) -> Option<&'a str> {
    for entry in archive.entries() {
        let folder = entry.name.strip_suffix(PICKLE);
        if let Some(folder) = folder.filter(|folder| folder.is_empty() || folder.ends_with('/')) {
            return Some(folder);
        }
    }
    None
}

pub(crate) fn read(input: &SourceFile, archive: &Archive<'_>, folder: &str) -> Result<TensorFile> {
    if archive.entry(&format!("{folder}constants.pkl")).is_some() {
        let message = "a TorchScript program, which is not read";
        return Err(input
            .malformed(message)
            .with_repair("torch.save(program.state_dict(), path) # in Python"));
    }
    if archive.entry(&format!("{folder}byteorder")).is_some() {
        let order = content(input, archive, &format!("{folder}byteorder"))?;
        if order != b"little" {
            return Err(input.malformed("its elements are not in little-endian byte order"));
        }
    }
    let pickle = content(input, archive, &format!("{folder}{PICKLE}"))?;
    let unpickled = pickle::unpickle(&pickle).map_err(|refused| {
        let error = input.malformed(refused.message);
        if refused.is_foreign { error.with_repair(ONLY_TENSORS) } else { error }
    })?;
    let (paths, texts) = flatten(&unpickled, pickle.len()).map_err(|message| input.malformed(message))?;
    let mut storages = Storages { input, archive, folder, loaded: BTreeMap::new(), copied: 0 };
    let mut file = TensorFile::of_entries(Vec::new(), texts);
    for (path, tensor) in paths {
        let view = &unpickled.tensors[tensor];
        let x = storages.view(&unpickled.storages[view.storage], view, &path);
        let x = x.map_err(|error| match error.kind() {
            ErrorKind::Io | ErrorKind::Format | ErrorKind::OutOfMemory => error.of(input.op),
            _ => input.malformed(format_args!("tensor '{path}': {}", error.message())),
        })?;
        insert(&mut file.tensors, path, x);
    }
    Ok(file)
}

/// An entry that is not compressed: what it says of its size is bounded by the file.
fn stored(input: &SourceFile, archive: &Archive<'_>, name: &str) -> Result<ZipEntry> {
    let entry = archive.entry(name).ok_or_else(|| input.malformed(format_args!("it has no '{name}'")))?;
    if !entry.is_stored() {
        return Err(input.malformed(format_args!("'{name}' is compressed, which torch.save never does")));
    }
    Ok(entry.clone())
}

fn content(input: &SourceFile, archive: &Archive<'_>, name: &str) -> Result<Vec<u8>> {
    let entry = stored(input, archive, name)?;
    archive.open(&entry).and_then(|content| content.into_vec()).map_err(|error| input.failed(&error))
}

/// The storages that are read, each once.
struct Storages<'a, 'b> {
    input: &'a SourceFile,
    archive: &'a Archive<'b>,
    folder: &'a str,
    loaded: BTreeMap<String, NamedTensor>,
    /// The bytes of views that were copied: at most as many as the file has, because views can overlap.
    copied: u64,
}

impl Storages<'_, '_> {
    /// All elements of a storage, in one dim.
    fn load(&mut self, storage: &StorageRef<'_>) -> Result<NamedTensor> {
        if let Some(loaded) = self.loaded.get(storage.key) {
            return Ok(loaded.clone());
        }
        let (input, name) = (self.input, format!("{}data/{}", self.folder, storage.key));
        let entry = stored(input, self.archive, &name)?;
        if storage.numel.checked_mul(storage.dtype.itemsize() as u64) != Some(entry.size) {
            return Err(input.malformed(format_args!(
                "'{name}' has {} bytes, and should have {} elements of {}",
                entry.size, storage.numel, storage.dtype
            )));
        }
        let mut elements = self.archive.open(&entry).map_err(|error| input.failed(&error))?;
        let shape = unnamed(&[storage.numel as usize]); // as many bytes are in the file
        let x = input.tensor(shape, storage.dtype, &mut elements)?;
        insert(&mut self.loaded, storage.key.to_string(), x.clone());
        Ok(x)
    }

    /// The tensor of a view.
    fn view(&mut self, storage: &StorageRef<'_>, view: &StridedView, path: &str) -> Result<NamedTensor> {
        let input = self.input;
        let checked = CheckedView::new(view, storage.numel).ok_or_else(|| {
            input.malformed(format_args!(
                "tensor '{path}' of sizes {:?} and strides {:?} from {} is not within its storage of {} elements",
                view.sizes, view.strides, view.offset, storage.numel
            ))
        })?;
        if checked.numel == 0 {
            return input.tensor(unnamed(&view.sizes), storage.dtype, &mut Reader::bytes(&[]));
        }
        let elements = self.load(storage)?;
        let x = match checked.is_dense() {
            true => elements.narrow(0, view.offset as isize, checked.numel)?,
            false => {
                let bytes = (checked.numel as u64).saturating_mul(storage.dtype.itemsize() as u64);
                self.copied = self.copied.saturating_add(bytes);
                if self.copied > input.length {
                    let message =
                        format!("tensor '{path}' would be a copy of elements that many views share");
                    return Err(input.malformed(message));
                }
                let index = checked.positions(view.offset);
                elements.index_select(&NamedTensor::from_slice(&index, [index.len()])?, 0)?
            }
        };
        let x = x.reshape(checked.sorted_sizes())?.permute(checked.back())?;
        if x.sizes() == view.sizes { Ok(x) } else { x.expand(view.sizes.clone()) }
    }
}

fn unnamed(sizes: &[usize]) -> Shape {
    Shape { sizes: sizes.into(), names: Names::none() }
}

/// A view whose elements are all inside of its storage.
struct CheckedView {
    /// For each dim, the stride, the size and the number of the dim; the largest stride first. A dim of
    /// stride 0, along which all elements are the same, has size 1 here.
    dims: Vec<(usize, usize, usize)>,
    /// The number of elements, each counted once along dims of stride 0.
    numel: usize,
}

impl CheckedView {
    fn new(view: &StridedView, storage: u64) -> Option<CheckedView> {
        let StridedView { offset, sizes, strides, .. } = view;
        if sizes.contains(&0) {
            return Some(CheckedView { dims: Vec::new(), numel: 0 });
        }
        let (mut dims, mut numel, mut last) = (Vec::new(), 1usize, *offset);
        for (dim, (&size, &stride)) in sizes.iter().zip(strides).enumerate() {
            let size = if stride == 0 { 1 } else { size };
            last = last.checked_add((size - 1).checked_mul(stride)?)?;
            numel = numel.checked_mul(size)?;
            dims.push((if size == 1 { 0 } else { stride }, size, dim));
        }
        if last as u64 >= storage {
            return None;
        }
        sorted::sort(&mut dims, &|a: &(usize, usize, usize), b| a.0 > b.0);
        Some(CheckedView { dims, numel })
    }

    /// Whether the elements are adjacent in some order of the dims.
    fn is_dense(&self) -> bool {
        let mut expected = 1;
        self.dims.iter().rev().filter(|(_, size, _)| *size > 1).all(|(stride, size, _)| {
            let fits = *stride == expected;
            expected *= size; // at most the number of elements
            fits
        })
    }

    fn sorted_sizes(&self) -> Vec<usize> {
        crate::list(self.dims.iter().map(|(_, size, _)| *size))
    }

    /// The permutation from sorted dims to those of the tensor.
    fn back(&self) -> Vec<usize> {
        let mut back = vec![0; self.dims.len()];
        for (sorted, (_, _, dim)) in self.dims.iter().enumerate() {
            back[*dim] = sorted;
        }
        back
    }

    /// The positions of the elements in the storage, in the order of the sorted dims.
    fn positions(&self, offset: usize) -> Vec<i64> {
        let mut positions = vec![offset as i64];
        for (stride, size, _) in &self.dims {
            let starts = std::mem::take(&mut positions);
            for start in starts {
                for i in 0..*size {
                    positions.push(start + (i * stride) as i64);
                }
            }
        }
        positions
    }
}

/// Tensors by path, as numbers, which are sorted, and everything else as strings.
type Flat = (Vec<(String, usize)>, Vec<(String, String)>);

/// The content by path: dicts and lists in each other become `model.fc.weight`.
fn flatten(unpickled: &Unpickled<'_>, length: usize) -> std::result::Result<Flat, String> {
    let (mut tensors, mut texts) = (Vec::new(), Vec::new());
    match unpickled.root {
        PickleValue::Tensor(tensor) => return Ok((vec![(ALONE.to_string(), tensor)], texts)),
        PickleValue::Dict(_) | PickleValue::List(_) | PickleValue::Tuple(_) => {}
        other => return Err(format!("it has {}, neither a tensor nor a dict of tensors", other.kind())),
    }
    // Dicts that contain one dict many times over would make exponentially many paths.
    let mut budget = 64 * length + 4096;
    let mut next = vec![(String::new(), 0, unpickled.root)];
    while let Some((path, depth, value)) = next.pop() {
        let text = match value {
            PickleValue::Tensor(tensor) => {
                tensors.push((path, tensor));
                continue;
            }
            PickleValue::Dict(_) | PickleValue::List(_) | PickleValue::Tuple(_) => {
                if depth == DEEPEST {
                    return Err(format!("dicts are nested more than {DEEPEST} deep"));
                }
                for (key, value) in entries(unpickled, value, &mut budget)? {
                    let path = if depth == 0 { key } else { format!("{path}.{key}") };
                    budget = budget.checked_sub(path.len() + 1).ok_or(ENDLESS)?;
                    next.push((path, depth + 1, value));
                }
                continue;
            }
            PickleValue::None => "None".to_string(),
            PickleValue::Bool(true) => "True".to_string(),
            PickleValue::Bool(false) => "False".to_string(),
            PickleValue::Int(number) => number.to_string(),
            PickleValue::Float(number) => format!("{number:?}"),
            PickleValue::Text(text) => text.to_string(),
            PickleValue::Global(_) | PickleValue::Storage(_) => {
                return Err(format!("'{path}' is neither a tensor nor a number or a string"));
            }
        };
        budget = budget.checked_sub(text.len()).ok_or(ENDLESS)?;
        texts.push((path, text));
    }
    sorted::sort(&mut tensors, &|a: &(String, usize), b| a.0 < b.0);
    match tensors.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(format!("two tensors are called '{}'", pair[0].0)),
        None => Ok((tensors, texts)),
    }
}

/// The entries of a container, sorted by key, or an error if they exceed the budget. A later value of a key
/// replaces an earlier one, as in Python.
fn entries<'p>(
    unpickled: &Unpickled<'p>,
    container: PickleValue<'p>,
    budget: &mut usize,
) -> std::result::Result<Vec<(String, PickleValue<'p>)>, String> {
    let mut entries: Vec<(String, PickleValue<'p>)> = Vec::new();
    match container {
        PickleValue::Dict(number) => {
            let items = &unpickled.containers[number];
            *budget = budget.checked_sub(items.len() / 2).ok_or(ENDLESS)?;
            for pair in items.chunks_exact(2) {
                let key = match pair[0] {
                    PickleValue::Text(key) => {
                        *budget = budget.checked_sub(key.len()).ok_or(ENDLESS)?;
                        key.to_string()
                    }
                    PickleValue::Int(key) => key.to_string(),
                    _ => return Err("a key of a dict is neither a string nor an integer".into()),
                };
                entries.push((key, pair[1]));
            }
            entries.reverse();
            sorted::sort(&mut entries, &|a, b| a.0 < b.0);
            entries.dedup_by(|next, kept| next.0 == kept.0);
        }
        PickleValue::List(number) | PickleValue::Tuple(number) => {
            let items = &unpickled.containers[number];
            *budget = budget.checked_sub(items.len()).ok_or(ENDLESS)?;
            for (at, item) in items.iter().enumerate() {
                entries.push((at.to_string(), *item));
            }
        }
        _ => {}
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zip::archive;
    use namegrad_core::random::Generator;
    use rand::RngExt;

    /// A file with this pickle and the storage `0` of four floats.
    fn file(pickle: &[u8]) -> Vec<u8> {
        let elements = [1.0f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat();
        archive(&[("x/data.pkl", pickle), ("x/byteorder", b"little"), ("x/data/0", &elements)])
    }

    fn int(number: i64) -> Vec<u8> {
        [&[0x8a, 8], &number.to_le_bytes()[..]].concat()
    }

    fn text(text: &str) -> Vec<u8> {
        [&[0x8c, text.len() as u8], text.as_bytes()].concat()
    }

    fn tuple(items: &[Vec<u8>]) -> Vec<u8> {
        [b"(", &items.concat()[..], b"t"].concat()
    }

    fn storage(kind: &str, key: &str, numel: i64) -> Vec<u8> {
        let kind = format!("ctorch\n{kind}\n").into_bytes();
        [tuple(&[text("storage"), kind, text(key), text("cpu"), int(numel)]), b"Q".to_vec()].concat()
    }

    fn tensor(storage: Vec<u8>, offset: i64, sizes: &[i64], strides: &[i64]) -> Vec<u8> {
        let numbers = |numbers: &[i64]| tuple(&numbers.iter().map(|x| int(*x)).collect::<Vec<_>>());
        let hooks = b"ccollections\nOrderedDict\n)R".to_vec();
        let arguments =
            tuple(&[storage, int(offset), numbers(sizes), numbers(strides), b"\x89".to_vec(), hooks]);
        [b"ctorch._utils\n_rebuild_tensor_v2\n", &arguments[..], b"R"].concat()
    }

    fn floats(offset: i64, sizes: &[i64], strides: &[i64]) -> Vec<u8> {
        tensor(storage("FloatStorage", "0", 4), offset, sizes, strides)
    }

    fn read(program: &[u8]) -> Result<TensorFile> {
        TensorFile::from_bytes(&file(&[b"\x80\x02", program, b"."].concat()))
    }

    #[test]
    fn views_are_read() {
        for (offset, sizes, strides, expected) in [
            (0, &[2, 2][..], &[2, 1][..], &[1.0f32, 2.0, 3.0, 4.0][..]),
            (0, &[2, 2], &[1, 2], &[1.0, 3.0, 2.0, 4.0]),
            (1, &[3], &[1], &[2.0, 3.0, 4.0]),
            (1, &[2], &[2], &[2.0, 4.0]),
            (0, &[2, 1, 2], &[1, 77, 2], &[1.0, 3.0, 2.0, 4.0]),
            (3, &[2, 3], &[0, 0], &[4.0; 6]),
            (0, &[3, 2], &[0, 3], &[1.0, 4.0, 1.0, 4.0, 1.0, 4.0]),
            (0, &[3], &[1], &[1.0, 2.0, 3.0]),
            (0, &[2, 2], &[1, 1], &[1.0, 2.0, 2.0, 3.0]),
            (9, &[0, 3], &[3, 1], &[]),
            (2, &[], &[], &[3.0]),
        ] {
            let x = read(&floats(offset, sizes, strides)).unwrap().tensors.remove("tensor").unwrap();
            assert!(x.sizes().iter().eq(sizes.iter().map(|size| *size as usize).collect::<Vec<_>>().iter()));
            assert_eq!(x.to_vec::<f32>().unwrap(), expected, "{sizes:?} {strides:?}");
        }
        // Elements that are next to each other more than once would fill memory.
        let windows = floats(0, &[1 << 20, 2], &[0, 1]);
        assert!(read(&windows).is_ok());
        let many = [2; 20];
        let strides = [1; 20];
        assert!(read(&floats(0, &many, &strides)).is_err());
        // An expanded view of a terabyte takes no memory.
        let x = read(&floats(0, &[1 << 40], &[0])).unwrap().tensors.remove("tensor").unwrap();
        assert_eq!((x.sizes(), x.strides()), (&[1 << 40][..], &[0][..]));
    }

    #[test]
    fn views_outside_of_their_storage_are_errors() {
        const MAX: i64 = i64::MAX;
        for (offset, sizes, strides) in [
            (1, &[4][..], &[1][..]),
            (4, &[], &[]),
            (MAX, &[2], &[1]),
            (0, &[2], &[MAX]),
            (MAX, &[2], &[MAX]),
            (0, &[MAX, MAX], &[MAX, MAX]),
            (0, &[MAX, MAX, 4], &[0, 0, 1]),
            (0, &[1 << 40], &[1]),
            (0, &[2, 2, 2, 2], &[1, 1, 0, 0]),
            (0, &[-1], &[1]),
            (0, &[2], &[-1]),
            (-1, &[2], &[1]),
            (0, &[2], &[]),
            (0, &[0, MAX, MAX], &[1, 1, 1]),
            (0, &[1; 65], &[1; 65]),
            (0, &[3, 3], &[1, 0]),
            (0, &[3, 2], &[1, 1]),
            (0, &[2; 60], &[0; 60]),
            (0, &[2, 2, 2], &[1, 1, 1]),
        ] {
            let read = read(&floats(offset, sizes, strides));
            let fits = sizes.ends_with(&[2, 2]) || sizes == [3, 3] || sizes == [3, 2];
            assert_eq!(read.is_ok(), fits, "{offset} {sizes:?} {strides:?}");
            let kind = read.err().map(|error| (error.kind(), error.op()));
            let kinds = [ErrorKind::Format, ErrorKind::OutOfMemory];
            assert!(kind.is_none_or(|(kind, op)| kinds.contains(&kind) && op == "from_bytes"), "{kind:?}");
        }
    }

    #[test]
    fn storages_that_do_not_fit_are_errors() {
        let of = |storage: Vec<u8>| tensor(storage, 0, &[1], &[1]);
        let two = tuple(&[of(storage("FloatStorage", "0", 4)), of(storage("IntStorage", "0", 4))]);
        for (program, message) in [
            (of(storage("FloatStorage", "0", 5)), "has 16 bytes, and should have 5 elements of float32"),
            (of(storage("FloatStorage", "0", i64::MAX)), "has 16 bytes"),
            (of(storage("FloatStorage", "0", -1)), "negative size"),
            (of(storage("DoubleStorage", "0", 4)), "has 16 bytes"),
            (of(storage("FloatStorage", "1", 4)), "it has no 'x/data/1'"),
            (of(storage("FloatStorage", "../data/0", 4)), "it has no 'x/data/../data/0'"),
            (of(storage("QInt8Storage", "0", 4)), "dtype that is not supported"),
            (two, "with different sizes"),
        ] {
            let error = read(&program).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Format, "{error}");
            assert!(error.message().contains(message), "{error} does not say '{message}'");
        }
    }

    /// A negated view has the elements of its base, and a bit.
    #[test]
    fn elements_that_mean_something_else_are_errors() {
        let with = |metadata: &[u8]| {
            let plain = floats(0, &[4], &[1]);
            let arguments = plain.strip_suffix(b"tR").unwrap();
            read(&[arguments, metadata, b"tR"].concat())
        };
        assert!(with(b"N").is_ok() && with(b"}").is_ok());
        let error = with(b"}\x8c\x03neg\x88s").unwrap_err();
        assert!(error.message().contains("not well-formed"), "{error}");
    }

    #[test]
    fn programs_are_errors() {
        let system = b"cos\nsystem\nX\x04\0\0\0true\x85R";
        for (program, message) in [
            (&system[..], "\"os.system\", which is not part of a state dict"),
            (b"c__builtin__\neval\n(X\x01\0\0\x001tR", "\"__builtin__.eval\""),
            (b"\x8c\x02os\x8c\x06system\x93)R", "\"os.system\""),
            (b"ctorch\nload\n)R", "\"torch.load\""),
            (b"ctorch._utils\n_rebuild_sparse_tensor\n)R", "makes a kind of tensor that is not supported"),
            (b"ccollections\nOrderedDict\n]\x85R", "an OrderedDict of a list"),
            (b"(S'true'\nios\nsystem\n", "the op STRING"),
            (b"(ios\nsystem\n", "the op INST"),
            (b"(o", "the op OBJ"),
            (b"ccollections\nOrderedDict\n)\x81", "the op NEWOBJ"),
            (b"\x82\x01", "the op EXT1"),
            (b"P0\n", "the op PERSID"),
            (b"\xee", "the op 0xee"),
            (b"ctorch\nFloatStorage\n)R", "calls a type of storage"),
            (b"K\x01)R", "calls a number"),
            (b"Nccollections\nOrderedDict\nb", "sets the state of None"),
            (b"NQ", "something other than a storage"),
            (b"ccollections\nOrderedDict\n", "it has a function, neither a tensor nor a dict"),
            (b"K\x01", "it has an int"),
            (b"}\x8c\x01actorch\nFloatStorage\ns", "'a' is neither a tensor nor"),
            (b"}Nb}(ccollections\nOrderedDict\nK\x01u", "neither a string nor an integer"),
        ] {
            let error = read(program).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Format, "{error}");
            let message = message.replace("a number", "an int");
            assert!(error.message().contains(&message), "{error} does not say '{message}'");
        }
    }

    #[test]
    fn malformed_pickles_are_errors() {
        for program in [
            &b""[..],
            b"0",
            b"1",
            b"2",
            b"t",
            b"\x85",
            b"a",
            b"]a",
            b"s",
            b"}Ns",
            b"}(Nu",
            b"q\0",
            b"h\0",
            b"j\0\0\0\0",
            b"X\xff\xff\xff\xffa",
            b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff",
            b"X\x01\0\0\0\xff",
            b"(N0",
            b"(N(0",
            b"N(.",
            b"\x8a\x09\0\0\0\0\0\0\0\0\x01",
            b"cos",
            b"cos\nsystem",
            b"\x80\x01",
            b"R",
            b"NR",
            b"K\x01\x85R",
            b"Q",
            b"b",
            b"ccollections\nOrderedDict\nNR",
            b"ccollections\nOrderedDict\n(K\x01tR",
            b"ccollections\nOrderedDict\n(](NNetR",
            b"ctorch._utils\n_rebuild_parameter\n)R",
            b"ctorch._utils\n_rebuild_tensor_v2\n)R",
            b"N(\x93",
            b"NN\x93",
        ] {
            assert_eq!(read(program).unwrap_err().kind(), ErrorKind::Format, "{program:?}");
        }
    }

    /// Flipped bytes in pickles of PyTorch, in archives that are whole.
    #[test]
    fn no_pickle_makes_it_panic() {
        let mut generator = Generator::from_seed(5);
        let ops = b"()]}NKMJGXqrhjcQRbtu01s.ae\x85\x86\x87\x88\x89\x8a\x8c\x93\x94\x00\x01\x7f\x80\xff";
        for name in ["views.pt", "checkpoint.pt", "dtypes.pt"] {
            let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
            let whole = std::fs::read(path).unwrap();
            let read = Archive::new(Reader::bytes(&whole), whole.len() as u64).unwrap();
            let entries: Vec<(&str, Vec<u8>)> = (read.entries().iter())
                .map(|entry| (&entry.name[..], read.open(entry).unwrap().into_vec().unwrap()))
                .collect();
            for _ in 0..3_000 {
                let mut changed = entries.clone();
                for (name, content) in &mut changed {
                    for _ in 0..if name.ends_with(PICKLE) { generator.random_range(1..4) } else { 0 } {
                        let at = generator.random_range(0..content.len());
                        content[at] = ops[generator.random_range(0..ops.len())];
                    }
                }
                let changed: Vec<(&str, &[u8])> =
                    changed.iter().map(|(name, content)| (*name, &content[..])).collect();
                if let Err(error) = TensorFile::from_bytes(&archive(&changed)) {
                    assert_eq!(error.kind(), ErrorKind::Format, "{name}: {error}");
                }
            }
        }
    }

    #[test]
    fn values_beside_tensors_are_metadata() {
        let program = b"}(\x8c\x01aG\x3f\xf0\0\0\0\0\0\0\x8c\x01b\x8a\0K\x05\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\xff\
            \x8c\x01c](K\x01M\x02\x01J\xff\xff\xff\xffe\x8c\x01aN\x8c\x01d(\x8c\x01xK\x01d\x8c\x01e(K\x07lu";
        let file = read(program).unwrap();
        let found: Vec<_> = file.metadata.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(found, ["5=-1", "a=None", "b=0", "c.0=1", "c.1=258", "c.2=-1", "d.x=1", "e.0=7"]);
    }

    #[test]
    fn containers_without_end_are_errors() {
        // A list that contains itself, and dicts that each contain the one before twice.
        let mut doubled = b"}q\0".to_vec();
        for _ in 0..60 {
            doubled.extend(b"0}(\x8c\x01ah\0\x8c\x01bh\0uq\0");
        }
        let (shared, keys) = (b"q\0".to_vec(), 50_000);
        let long = [&b"X\x50\xc3\0\0"[..], &[b'k'; 50_000], &shared, b"0}("].concat();
        let keyed = [&long[..], &b"h\0N".repeat(keys), b"u"].concat();
        let deep = [b"]".repeat(100_000), b"a".repeat(99_999)].concat();
        let tuples = [b")".to_vec(), b"\x85".repeat(100_000)].concat();
        let wide = [&b"]q\0(K\x01"[..], &b"h\0".repeat(20_000), b"e"].concat();
        for program in [&b"]q\0h\0a"[..], b"}q\0\x8c\x01ah\0s", &doubled, &deep, &tuples, &wide, &keyed] {
            let error = read(program).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Format);
        }
    }
}
