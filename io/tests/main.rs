//! Files that PyTorch and NumPy wrote, which are in `data/`, and damaged and malicious files made of them.

mod safetensors;
mod values;

use namegrad::nn::{LoadOptions, StateDict};
use namegrad::prelude::{Linear, Module};
use namegrad_core::random::Generator;
use namegrad_core::{DType, ErrorKind, NamedTensor, Result};
use namegrad_io::{Files, OpenFile, TensorFile};
use rand::RngExt;
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, which notes the largest allocation: no test here needs a large one.
struct Noting;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the conditions are those of the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the conditions are those of the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the conditions are those of the caller.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Noting = Noting;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A path for a file that the test removes.
fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("namegrad-others-{}-{name}", std::process::id()))
}

fn numbers(x: &NamedTensor) -> Vec<f64> {
    x.to(DType::F64).unwrap().to_vec().unwrap()
}

/// `first`, `first + 1`, ...
fn count(first: i32, n: i32) -> Vec<f64> {
    (first..first + n).map(f64::from).collect()
}

#[test]
fn tensors_of_every_dtype_are_read() -> Result<()> {
    let file = TensorFile::load(data("dtypes.pt"))?;
    assert_eq!(file.tensors.len(), DType::ALL.len());
    for dtype in DType::ALL {
        let x = &file.tensors[&dtype.to_string()];
        assert_eq!((x.dtype(), x.sizes(), x.has_names()), (dtype, &[2, 3][..], false));
        let expected = if dtype == DType::Bool { vec![0., 1., 1., 1., 1., 1.] } else { count(0, 6) };
        assert_eq!(numbers(x), expected);
    }
    Ok(())
}

#[test]
fn a_state_dict_is_read() -> Result<()> {
    let file = TensorFile::load(data("state_dict.pth"))?;
    let names: Vec<&str> = file.tensors.keys().map(String::as_str).collect();
    let norm =
        ["norm.bias", "norm.num_batches_tracked", "norm.running_mean", "norm.running_var", "norm.weight"];
    assert_eq!(names, [&["conv.bias", "conv.weight", "fc.bias", "fc.weight"][..], &norm].concat());
    assert_eq!(file.tensors["conv.weight"].sizes(), [2, 1, 3, 3]);
    assert_eq!(numbers(&file.tensors["conv.weight"]), count(0, 18));
    assert_eq!(numbers(&file.tensors["fc.weight"]), count(40, 6));
    assert_eq!(numbers(&file.tensors["fc.bias"]), count(50, 3));
    assert!(file.metadata.is_empty());
    Ok(())
}

#[test]
fn a_model_takes_the_state_of_pytorch() -> Result<()> {
    #[derive(Module)]
    struct Net {
        fc: Linear,
    }
    let model = Net { fc: Linear::new(("in", 2), ("out", 3))? };
    let state = StateDict::load(data("state_dict.pth"))?;
    let report = model.load_state_dict_with(&state, LoadOptions::new().partial(true).ignore_names(true))?;
    assert!(report.missing.is_empty());
    assert_eq!(numbers(model.fc.weight().tensor().value()), count(40, 6));
    assert!(*model.fc.weight().tensor().names() == ["out", "in"]);

    // A state dict without names, through NumPy's format.
    let path = temporary("state.npz");
    model.state_dict().save(&path)?;
    let state = StateDict::load(&path)?;
    std::fs::remove_file(path).unwrap();
    let other = Net { fc: Linear::new(("in", 2), ("out", 3))? };
    other.load_state_dict_with(&state, LoadOptions::new().ignore_names(true))?;
    assert_eq!(numbers(other.fc.weight().tensor().value()), count(40, 6));
    Ok(())
}

#[test]
fn a_checkpoint_is_read_by_paths() -> Result<()> {
    let file = TensorFile::load(data("checkpoint.pt"))?;
    assert_eq!(file.tensors["model.fc.weight"].sizes(), [3, 2]);
    assert_eq!(file.tensors["optimizer.state.0.exp_avg"].sizes(), [2, 1, 3, 3]);
    assert_eq!(numbers(&file.tensors["optimizer.state.0.step"]), [1.0]);
    for (key, value) in [
        ("epoch", "7"),
        ("loss", "0.5"),
        ("note", "été"),
        ("best", "None"),
        ("done", "True"),
        ("large", "1099511627776"),
        ("negative", "-300"),
        ("shape.1", "2"),
        ("optimizer.param_groups.0.lr", "0.01"),
        ("optimizer.param_groups.0.betas.1", "0.999"),
    ] {
        assert_eq!(file.metadata[key], value, "{key}");
    }
    Ok(())
}

#[test]
fn views_are_read_by_their_strides() -> Result<()> {
    let file = TensorFile::load(data("views.pt"))?;
    let x = NamedTensor::arange(0, 24, 1, DType::F32)?.reshape([2, 3, 4])?;
    let last = x.reshape([1, 2, 3, 4])?;
    let part = x.narrow(1, 1, 2)?.index_select(&NamedTensor::new([0, 2])?, 2)?;
    for (name, expected) in [
        ("whole", x.clone()),
        ("transposed", x.permute([2, 0, 1])?),
        ("part", part),
        ("row", x.select(0, 1)?.select(0, 2)?),
        ("one", NamedTensor::new(1.0)?),
        ("expanded", NamedTensor::new([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]])?),
        ("last", last),
        ("empty", NamedTensor::zeros([2, 0])?),
        ("scalar", NamedTensor::new(2.5)?),
        ("parameter", x.select(0, 0)?),
        ("diagonal", NamedTensor::new([0.0, 4.0, 8.0])?),
    ] {
        let read = &file.tensors[name];
        assert_eq!((read.sizes(), numbers(read)), (expected.sizes(), numbers(&expected)), "{name}");
    }
    // All views of one storage share a buffer.
    assert_eq!(file.tensors["whole"].data_ptr(), file.tensors["transposed"].data_ptr());
    assert_eq!(file.tensors["expanded"].strides(), [1, 0]);
    Ok(())
}

#[test]
fn one_tensor_and_other_protocols_are_read() -> Result<()> {
    assert_eq!(NamedTensor::load(data("single.pt"))?, NamedTensor::new([[1.0, 2.0]])?);
    assert_eq!(numbers(&TensorFile::load(data("protocol4.pt"))?.tensors["x"]), [1.0, 1.0]);
    Ok(())
}

#[test]
fn what_is_no_state_dict_is_refused() {
    for (name, message) in [
        ("code.pt", "\"posix.system\", which is not part of a state dict"),
        ("module.pt", "\"torch.nn.modules.linear.Linear\", which is not part of a state dict"),
        ("complex.pt", "\"torch.ComplexFloatStorage\", which is a storage of a dtype that is not supported"),
        ("legacy.pt", "before PyTorch 1.6"),
        ("script.pt", "TorchScript"),
        ("objects.npz", "array 'a': NumPy's dtype '|O' is not supported"),
        ("README.md", "not a safetensors file"),
    ] {
        let error = TensorFile::load(data(name)).unwrap_err();
        assert_eq!((error.kind(), error.op(), error.location().file()), (ErrorKind::Format, "load", file!()));
        assert!(error.message().contains(message), "{name}: {error}");
        assert!(error.message().contains(name), "{error}");
    }
    assert!(!Path::new("/tmp/namegrad-was-run").exists());
    let repair = TensorFile::load(data("module.pt")).unwrap_err().repair().map(str::to_string);
    assert_eq!(repair.as_deref(), Some("torch.save(model.state_dict(), path) # in Python"));
    assert_eq!(TensorFile::load(data("complex.pt")).unwrap_err().repair(), None);
}

#[test]
fn arrays_of_numpy_are_read() -> Result<()> {
    let file = TensorFile::load(data("arrays.npz"))?;
    assert_eq!(file.tensors.len(), 6);
    assert_eq!(file.tensors["a"], NamedTensor::arange(0, 6, 1, DType::I16)?.reshape([2, 3])?);
    assert_eq!(file.tensors["b"], NamedTensor::arange(0, 6, 1, DType::F64)?.reshape([2, 3])?);
    assert_eq!(file.tensors["c"], NamedTensor::full_as("full", (), 1.5.into(), DType::F64)?);
    assert_eq!(file.tensors["bools"], NamedTensor::new([true, false])?);
    assert_eq!(file.tensors["big"], NamedTensor::arange(0, 3, 1, DType::F32)?);
    assert_eq!(file.tensors["layer/weight"], NamedTensor::ones([2, 2])?.to(DType::F16)?);
    let file = TensorFile::load(data("compressed.npz"))?;
    assert_eq!(numbers(&file.tensors["a"]), (0..1000).map(|i| f64::from(i % 7)).collect::<Vec<_>>());
    assert_eq!(numbers(&file.tensors["zeros"]), [0.0; 100]);
    Ok(())
}

#[test]
fn arrays_are_written() -> Result<()> {
    let path = temporary("written.NPZ");
    let mut file = TensorFile::default();
    for dtype in DType::ALL.into_iter().filter(|dtype| *dtype != DType::BF16) {
        let x = NamedTensor::arange(0, 6, 1, dtype)?.unflatten(0, [("N", 2), ("C", 3)])?;
        file.tensors.insert(format!("of/{dtype}"), x.reversed_dims());
    }
    file.tensors.insert("empty".into(), NamedTensor::zeros([3, 0])?);
    file.tensors.insert("".into(), NamedTensor::new(2.5)?);
    file.save(&path)?;
    let bytes = std::fs::read(&path).unwrap();
    let read = TensorFile::load(&path)?;
    assert!(file.tensors.keys().eq(read.tensors.keys()));
    for (name, x) in &file.tensors {
        assert_eq!(&x.unnamed(), &read.tensors[name], "{name}");
    }
    file.save(&path)?;
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "the same content gives the same bytes");

    file.tensors.insert("x".repeat(65_532), NamedTensor::ones([2])?);
    assert_eq!(file.save(&path).unwrap_err().kind(), ErrorKind::Value);
    file.tensors.remove(&"x".repeat(65_532));
    file.tensors.insert("half".into(), NamedTensor::ones([2])?.to(DType::BF16)?);
    assert_eq!(file.save(&path).unwrap_err().kind(), ErrorKind::DType);
    file.tensors.remove("half");
    file.metadata.insert("epoch".into(), "7".into());
    let error = file.save(&path).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    assert_eq!(file.save("x.pt").unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "after errors, the file is unchanged");
    std::fs::remove_file(path).unwrap();
    Ok(())
}

/// Every cut and many flips of each file: an error or a result, and never a panic or a large allocation.
#[test]
fn damaged_files_are_errors() {
    let mut generator = Generator::from_seed(17);
    for name in
        ["dtypes.pt", "checkpoint.pt", "views.pt", "code.pt", "script.pt", "arrays.npz", "compressed.npz"]
    {
        let valid = std::fs::read(data(name)).unwrap();
        for end in 0..valid.len() {
            let error = TensorFile::from_bytes(&valid[..end]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Format, "{name} cut at {end}: {error}");
        }
        for _ in 0..3_000 {
            let mut bytes = valid.clone();
            for _ in 0..generator.random_range(1..5) {
                let at = generator.random_range(0..bytes.len());
                bytes[at] = if generator.random_range(0..2) == 0 {
                    bytes[at] ^ (1 << generator.random_range(0..8))
                } else {
                    [0, 1, 0x7f, 0x80, 0xff][generator.random_range(0..5)]
                };
            }
            if let Err(error) = TensorFile::from_bytes(&bytes) {
                assert_eq!(error.kind(), ErrorKind::Format, "{name}: {error}");
            }
        }
    }
    // Files are written through a buffer of 1 MiB; everything else is smaller.
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest <= 2 << 20, "an allocation of {largest} bytes");
}

#[test]
fn tensors_are_read_one_by_one() -> Result<()> {
    let path = temporary("open.safetensors");
    let mut file = TensorFile::default();
    file.metadata.insert("note".into(), "a".into());
    for dtype in DType::ALL {
        let x = NamedTensor::arange(0, 6, 1, dtype)?.unflatten(0, [("N", 2), ("C", 3)])?;
        file.tensors.insert(dtype.to_string(), x);
    }
    file.tensors.insert("empty".into(), NamedTensor::zeros([0, 3])?);
    file.save(&path)?;
    let open = OpenFile::open(&path)?;
    // SAFETY: no program writes to the file.
    let mapped = unsafe { OpenFile::map(&path)? };
    for open in [&open, &mapped] {
        assert!(open.names().eq(file.tensors.keys()));
        assert_eq!(open.metadata(), &file.metadata);
        for (name, x) in &file.tensors {
            assert_eq!((open.dtype(name), open.shape(name)), (Some(x.dtype()), Some(&x.shape())));
            assert_eq!(&open.tensor(name)?, x);
        }
        let error = open.tensor("floot32").unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
        assert!(error.message().contains("'bfloat16'"), "{error}");
        std::thread::scope(|scope| {
            for name in ["float32", "int64"] {
                scope.spawn(move || assert_eq!(open.tensor(name).unwrap().numel(), 6));
            }
        });
    }
    drop(mapped);

    // A file that became shorter since it was opened.
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(open.tensor("uint8").unwrap_err().kind(), ErrorKind::Format);
    assert_eq!(OpenFile::open(&path).unwrap_err().kind(), ErrorKind::Format);
    for wrong in [&b""[..], &[255; 8], b"1234567"] {
        std::fs::write(&path, wrong).unwrap();
        assert_eq!(OpenFile::open(&path).unwrap_err().kind(), ErrorKind::Format);
        // SAFETY: no other program writes to the file.
        assert_eq!(unsafe { OpenFile::map(&path) }.unwrap_err().kind(), ErrorKind::Format);
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(OpenFile::open(&path).unwrap_err().kind(), ErrorKind::Io);
    Ok(())
}
