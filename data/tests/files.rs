//! Files: idx and MNIST, CSV, text; what is damaged is an error before memory is taken.

use namegrad::data::{
    Csv, Dataset, Fill, LabeledImages, Loader, Mnist, TensorDataset, Vocabulary, Windows, idx, text,
};
use namegrad::io::TensorFile;
use namegrad::prelude::*;
use std::path::{Path, PathBuf};

/// A folder that is removed at the end of a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("namegrad-data-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `bytes` as a gzip file of one stored block: no compression, but header, checksum and length.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 65536);
    let mut sum = !0u32;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
        }
    }
    let len = bytes.len() as u16;
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    file.extend(len.to_le_bytes());
    file.extend((!len).to_le_bytes());
    file.extend(bytes);
    file.extend((!sum).to_le_bytes());
    file.extend(u32::from(len).to_le_bytes());
    file
}

fn idx_file(code: u8, sizes: &[u32], elements: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, code, sizes.len() as u8];
    file.extend(sizes.iter().flat_map(|size| size.to_be_bytes()));
    file.extend(elements);
    file
}

#[test]
fn every_type_of_idx() -> Result<()> {
    let load = |code, elements: &[u8]| -> Result<Tensor> {
        let plain = idx_file(code, &[2], elements);
        let x = idx::from_bytes(plain.clone())?;
        assert_eq!(idx::from_bytes(gzip(&plain))?, x);
        Ok(x)
    };
    assert_eq!(load(8, &[7, 255])?.to_vec::<u8>()?, [7, 255]);
    assert_eq!(load(9, &[7, 255])?.to_vec::<i8>()?, [7, -1]);
    let bytes = |numbers: [[u8; 2]; 2]| numbers.concat();
    assert_eq!(load(0xb, &bytes([258i16.to_be_bytes(), (-2i16).to_be_bytes()]))?.to_vec::<i16>()?, [258, -2]);
    let four = [70000i32.to_be_bytes(), (-5i32).to_be_bytes()].concat();
    assert_eq!(load(0xc, &four)?.to_vec::<i32>()?, [70000, -5]);
    let four = [1.5f32.to_be_bytes(), (-0.25f32).to_be_bytes()].concat();
    assert_eq!(load(0xd, &four)?.to_vec::<f32>()?, [1.5, -0.25]);
    let eight = [1e300f64.to_be_bytes(), (-0.1f64).to_be_bytes()].concat();
    assert_eq!(load(0xe, &eight)?.to_vec::<f64>()?, [1e300, -0.1]);
    Ok(())
}

#[test]
fn headers_of_idx_are_not_believed() {
    let error = |bytes: Vec<u8>| {
        let error = idx::from_bytes(bytes).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Format, file!()));
        error.message().replace("the bytes: ", "")
    };
    let whole = idx_file(8, &[2, 3], &[0; 6]);
    for packed in [whole.clone(), gzip(&whole)] {
        for length in 0..packed.len() {
            let message = error(packed[..length].to_vec());
            assert!(message.starts_with("truncated"), "{length} of {}: {message}", packed.len());
        }
    }
    let long = [&whole[..], &[0]].concat();
    for packed in [long.clone(), gzip(&long)] {
        assert!(error(packed).starts_with("there are more than the 6 bytes"));
    }
    let mut damaged = gzip(&whole);
    let at = damaged.len() - 6;
    damaged[at] ^= 1;
    assert!(error(damaged).starts_with("damaged: "));
    assert!(error(b"<html></html>".to_vec()).starts_with("not an idx file: it starts with 0x3c68746d"));
    assert!(error(idx_file(7, &[1], &[0])).starts_with("not an idx file: no type has code 0x07"));
    for sizes in [vec![u32::MAX; 3], vec![u32::MAX; 200], vec![1 << 20, 1 << 12]] {
        namegrad::memory::reset_peak();
        for packed in [idx_file(8, &sizes, &[1, 2]), gzip(&idx_file(8, &sizes, &[1, 2]))] {
            assert!(error(packed).starts_with("truncated: its header says ["));
        }
        assert!(namegrad::memory::stats().peak_bytes < 1 << 27);
    }
}

/// A folder like that of MNIST: two images to train on, and one to test on, partly gzipped.
fn small_mnist(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("train-images-idx3-ubyte", idx_file(8, &[2, 1, 3], &[0, 51, 255, 1, 2, 3]));
    folder.write("train-labels-idx1-ubyte", idx_file(8, &[2], &[4, 9]));
    folder.write("t10k-images-idx3-ubyte.gz", gzip(&idx_file(8, &[1, 1, 3], &[255, 0, 255])));
    folder.write("t10k-labels-idx1-ubyte", gzip(&idx_file(8, &[1], &[0])));
    folder
}

#[test]
fn mnist_is_a_folder() -> Result<()> {
    let folder = small_mnist("mnist");
    let mnist = Mnist::load(&folder.0)?;
    let (image, label) = mnist.train.get(0)?;
    assert_eq!((image.shape().to_string(), label), ("[C=1, H=1, W=3]".into(), 4));
    assert_eq!(image.to_vec::<f32>()?, [0.0, 0.2, 1.0]);
    let (images, labels) = Loader::new(mnist.train.clone(), 2)?.peek()?;
    assert_eq!(images.shape().to_string(), "[N=2, C=1, H=1, W=3]");
    assert_eq!(images.to_vec::<f32>()?[..3], [0.0, 0.2, 1.0]);
    assert_eq!((labels.to_vec::<i64>()?, labels.shape().to_string()), (vec![4, 9], "[N=2]".into()));
    // From single samples it is the same batch.
    let slow = Loader::new(mnist.train.clone().map(Ok), 2)?.peek()?;
    assert_eq!((slow.0, slow.1), (images.clone(), labels.clone()));
    assert_eq!(mnist.train.tensors()?, (images, labels));
    assert!(mnist.test.get(1).is_err());

    let error = |bytes: Vec<u8>, file: &str| {
        let folder = small_mnist(&format!("damaged-{file}"));
        folder.write(file, bytes);
        Mnist::load(&folder.0).unwrap_err().message().replace(&format!("{}/", folder.0.display()), "")
    };
    assert_eq!(
        error(idx_file(8, &[1], &[0]), "train-labels-idx1-ubyte"),
        "train-images-idx3-ubyte: 2 images, but train-labels-idx1-ubyte has 1 labels"
    );
    assert_eq!(
        error(idx_file(8, &[2, 3], &[0; 6]), "train-images-idx3-ubyte"),
        "train-images-idx3-ubyte: expected 3 dims of uint8, found [2, 3] of uint8"
    );
    assert!(error(vec![], "t10k-labels-idx1-ubyte").starts_with("t10k-labels-idx1-ubyte: truncated"));
    std::fs::remove_file(folder.0.join("t10k-labels-idx1-ubyte")).unwrap();
    let missing = Mnist::load(&folder.0).unwrap_err();
    assert_eq!((missing.kind(), missing.location().file()), (ErrorKind::Io, file!()));
    assert!(missing.message().ends_with("t10k-labels-idx1-ubyte: missing, with and without .gz"));
    let nowhere = Mnist::load(folder.0.join("nowhere")).unwrap_err();
    assert!(nowhere.message().ends_with("nowhere: no such folder"), "{nowhere}");
    assert!(LabeledImages::load("/nowhere/x", "/nowhere/y").unwrap_err().kind() == ErrorKind::Io);
    assert_eq!(idx::load(&folder.0).unwrap_err().kind(), ErrorKind::Io, "a folder");
    Ok(())
}

/// The data of the machine, if it is there.
fn shared_data() -> Option<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let folder = std::env::var_os("NAMEGRAD_DATA").map_or_else(default, PathBuf::from);
    folder.is_dir().then_some(folder)
}

#[test]
fn real_files() -> Result<()> {
    let Some(data) = shared_data() else { return Ok(()) };
    let file = |name: &str| data.join("mnist").join(name);
    let mnist = LabeledImages::load(file("t10k-images-idx3-ubyte.gz"), file("t10k-labels-idx1-ubyte.gz"))?;
    assert_eq!(mnist.len(), 10_000);
    // As PyTorch and NumPy read them.
    assert_eq!(mnist.labels().narrow("N", 0, 5)?.to_vec::<i64>()?, [7, 2, 1, 0, 4]);
    let mean = mnist.images().to(DType::F64)?.mean(..)?.item::<f64>()? / 255.0;
    assert!((mean - 0.1325).abs() < 1e-4, "{mean}");

    let iris = Csv::new(data.join("tabular/iris.data")).header(false).categories([-1]).read()?;
    assert_eq!((iris.len(), iris.category_names(4)?.len()), (150, 3));
    assert_eq!(iris.columns_except([4])?.shape().to_string(), "[N=150, feature=4]");
    let wine = Csv::new(data.join("tabular/wine.data")).header(false).read()?;
    assert_eq!(wine.columns_except([0])?.size("feature")?, 13);
    let diabetes = Csv::new(data.join("tabular/diabetes.tab.txt")).delimiter(b'\t').read()?;
    assert_eq!((diabetes.len(), diabetes.names().len()), (442, 11));
    assert_eq!(diabetes.column("Y")?.item_at::<f32>([0])?, 151.0);
    let scaled = Csv::new(data.join("tabular/diabetes_target.csv.gz")).header(false).read()?;
    assert_eq!(scaled.column(0)?.to_vec::<f32>()?, diabetes.column("Y")?.to_vec::<f32>()?);
    let sunspots = Csv::new(data.join("timeseries/monthly-sunspots.csv")).skip([0]).read()?;
    assert_eq!(sunspots.column(1)?.rename(["time"])?.size("time")?, 2820);
    let digits = Csv::new(data.join("embedded/digits.csv.gz")).header(false).read()?;
    let label = digits.column(-1)?.to(DType::I64)?;
    assert_eq!((digits.columns(0..64usize)?.numel(), label.amax(..)?.item::<i64>()?), (1797 * 64, 9));

    assert_eq!(text::lines(data.join("text/names.txt"))?.len(), 32_033);
    let shakespeare = text::read_text(data.join("text/tinyshakespeare.txt"))?;
    let vocabulary = Vocabulary::chars(&shakespeare);
    assert_eq!(vocabulary.len(), 65);
    let ids = vocabulary.encode(&shakespeare)?;
    assert_eq!(Windows::new(ids.clone(), "seq", 64)?.shifted()?.len(), 1_115_394 - 64);
    assert_eq!(vocabulary.decode(&ids)?, shakespeare);
    Ok(())
}

/// The message of the error of a table, without the name of the input.
#[track_caller]
fn csv_error(csv: Csv) -> String {
    let error = csv.read().unwrap_err();
    assert_eq!(error.location().file(), file!());
    error.message().replace("the bytes: ", "")
}

#[test]
fn damaged_tables() {
    let table = |text: &str| Csv::from_bytes(text.as_bytes().to_vec());
    let error = |text: &str| csv_error(table(text));
    for text in ["a,b\n1,2\n\n3\n", "a,b\r\n1,2\r\n\r\n3\r\n", "\na,b\n\n3"] {
        assert_eq!(error(text), "line 4: 1 fields, expected 2");
    }
    assert_eq!(error("a,b\n1,\"x\n\ny\"\n"), "line 2, column 'b': 'x\n\ny' is not a number");
    assert_eq!(error("a,b\n1,2\n3,4,5\n"), "line 3: 3 fields, expected 2");
    // The quote after a blank is part of the text, as in RFC 4180.
    let spaced = table("a,b\n1, \"x, y\"\n").categories(["b"]).read().unwrap_err();
    assert_eq!(spaced.message(), "the bytes: line 2: 3 fields, expected 2");
    let repair = "1,\"a, b\" in the file: quotes around a field that has ',' in it, and no blank before them";
    assert_eq!(spaced.repair(), Some(repair));
    let literal = table("a,b\n1, \"x\"\n").categories(["b"]).read().unwrap();
    assert_eq!(literal.category_names("b").unwrap(), ["\"x\""]);
    assert_eq!(error("a,b,a\n1,2,3\n"), "line 1: columns 1 and 3 of the header are both called 'a'");
    assert_eq!(error("a,b\n1,2\na,b\n3,4\n"), "line 3: the header repeats");
    assert_eq!(error("a,b\n1,2\n3,x\n"), "line 3, column 'b': 'x' is not a number");
    assert_eq!(error("a,b\n1,2\n3,inf\n"), "line 3, column 'b': 'inf' is not a finite number");
    for missing in ["", " ", "NA", "NaN"] {
        assert_eq!(error(&format!("a,b\n1,{missing}\n")), "line 2, column 'b': the value is missing");
    }
    assert_eq!(csv_error(table("1,2\n3,\n").header(false)), "line 2, column 1: the value is missing");
    for text in ["", "a,b\n", "\n\n"] {
        assert_eq!(error(text), "there are no rows");
    }
    assert_eq!(csv_error(Csv::from_bytes(b"a\n1\n\xff\n")), "line 3: field 1 is not UTF-8");
    assert!(csv_error(Csv::from_bytes(gzip(b"a\n1\n")[..20].to_vec())).starts_with("truncated"));
    assert!(csv_error(Csv::new("/nowhere.csv")).contains("No such file"));

    // The parser would take everything after the quote as one field.
    for text in
        ["a,b\n1,x\n2,\"y\n3,z\n4,z\n", "a,b\r\n1,x\r\n2,\"y\"\"\r\n", "a,b\n1,x\n\"", "a,b\n1,x\n2,\"\r"]
    {
        for packed in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
            let message = csv_error(Csv::from_bytes(packed).categories(["b"]));
            assert_eq!(message, "damaged: line 3: a quote opens here that is not closed", "{text:?}");
        }
    }
    let message = csv_error(Csv::from_bytes(b"a;b\n1;\"x\n").delimiter(b';').categories(["b"]));
    assert_eq!(message, "damaged: line 2: a quote opens here that is not closed");
    for text in
        ["a,b\n1,\"\"\n", "a,b\n1,x\"\n", "a,b\n1,\"x\"\"\"", "a,b\n1,\"x\"y\"\n", "a,b\n1,\"x\n\ny\""]
    {
        assert!(table(text).categories(["b"]).fill("b", "none").read().is_ok(), "{text:?}");
    }

    let two = || table("a,b\n1,x\n2,y\n");
    let error = two().read().unwrap_err();
    assert_eq!(error.repair(), Some(".categories([\"b\"]), or .skip([\"b\"]) for free text"));
    let error = two().categories(["bb"]).read().unwrap_err();
    assert_eq!(
        (error.message(), error.repair()),
        ("the bytes: there is no column 'bb', only 'a', 'b'", Some("\"b\""))
    );
    assert_eq!(csv_error(two().skip([2])), "no column 2 in a table of 2");
    assert_eq!(csv_error(two().skip([-3])), "no column -3 in a table of 2");
    assert_eq!(csv_error(two().header(false).skip(["a"])), "there is no column 'a', as there is no header");
    assert_eq!(
        csv_error(two().categories_of("b", ["x", "z"])),
        "line 3, column 'b': 'y' is not one of [\"x\", \"z\"]"
    );
    assert!(csv_error(two().categories(["b"]).fill("b", 1.0)).starts_with("column 'b' cannot be filled"));
    assert!(csv_error(two().categories(["b"]).fill("a", "x")).starts_with("column 'a' cannot be filled"));
    assert!(
        csv_error(two().categories(["b"]).fill("a", f64::INFINITY))
            .starts_with("column 'a' cannot be filled")
    );
    assert!(csv_error(table("a,b\n1,\n").fill("b", Fill::Mean)).contains("no values to take the mean of"));
    assert!(csv_error(table("a,b\n1,\n").drop_missing(true)).contains("there are no rows"));
}

/// Without it, the first row would be lost.
#[test]
fn a_header_that_is_a_row_is_an_error() -> Result<()> {
    let table = |text: &str| Csv::from_bytes(text.as_bytes().to_vec());
    let repair = Some("Csv::new(path).header(false) if line 1 is a row, .header(true) if it has the names");
    let cells = "842302,M,17.99\n842517,M,20.57\n843009,B,19.69\n";
    for csv in [
        table(cells),
        table(cells).categories(["M"]),
        table(cells).skip(["M"]),
        table("842302,M,17.99\nNA,M,20.57\n").categories([1]).drop_missing(true),
        table("1,2\n3,4\n"),
        table("country,1990\nNorway,4.5\n"),
    ] {
        for error in [csv.read().unwrap_err(), csv.skip([1]).stream().unwrap_err()] {
            assert!(error.message().contains("line 1: the header looks like a row: '"), "{error}");
            assert_eq!((error.repair(), error.location().file()), (repair, file!()));
        }
    }
    let error = table(cells).read().unwrap_err();
    assert!(error.message().ends_with("looks like a row: '842302', 'M', '17.99'"), "{error}");
    assert_eq!(table("1,2\n").read().unwrap_err().repair(), repair);
    assert_eq!(table(cells).categories(["diagnosis"]).read().unwrap_err().repair(), repair);
    // What the repair says.
    let whole = table(cells).header(false).categories([1]).read()?;
    assert_eq!((whole.len(), whole.category_names(1)?), (3, &["B".to_string(), "M".to_string()][..]));
    let years = table("country,1990\nNorway,4.5\n").header(true).categories(["country"]).read()?;
    assert_eq!(years.column("1990")?.to_vec::<f32>()?, [4.5]);
    // A name over numbers tells that it is a header, and text over text tells nothing.
    assert_eq!(table("id,1990\n1,4.5\n").read()?.len(), 1);
    let error = table("M,x\nB,y\n").read().unwrap_err();
    let both = ".header(true) if it has the names; else .categories([\"M\", \"x\"]), or .skip([\"M\", \"x\"]) for free text";
    assert!(error.repair().unwrap().ends_with(both), "{error}");
    assert_eq!(table("M,x\nB,y\n").categories(["M", "x"]).read()?.len(), 1);
    Ok(())
}

#[test]
fn a_wrong_delimiter_is_an_error() -> Result<()> {
    for (delimiter, in_rust) in [(';', "';'"), ('\t', "'\\t'"), ('|', "'|'")] {
        let text = format!("a{delimiter}b\n1,5{delimiter}2\n").into_bytes();
        let csv = Csv::from_bytes(text).missing(["1,5"]).fill("a", 1.5);
        let error = csv.read().unwrap_err();
        assert!(error.message().contains("line 1: there is one column, \"a"), "{error}");
        let repair = format!("Csv::new(path).delimiter(b{in_rust}), or .delimiter(b',') for one column");
        assert_eq!((error.repair(), error.location().file()), (Some(&repair[..]), file!()));
        assert_eq!(csv.delimiter(delimiter as u8).read()?.names(), ["a", "b"]);
    }
    let texts = Csv::from_bytes(b"this; that\none | other\n").header(false).categories([0]);
    assert!(texts.read().is_err());
    assert_eq!(texts.delimiter(b',').read()?.category_names(0)?, ["one | other", "this; that"]);
    Ok(())
}

/// Names were compared in pairs: 20 seconds for this table.
#[test]
fn a_header_of_many_columns_takes_linear_time() -> Result<()> {
    let count = 200_000;
    let line = |of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<Vec<_>>().join(",");
    let text = format!("{}\n{}\n", line(&|at| format!("x{at}")), line(&|at| at.to_string()));
    let names = line(&|at| format!("x{at}"));
    let table = Csv::from_bytes(text.into_bytes()).read()?;
    assert_eq!(table.columns(names.split(','))?.item_at::<f64>([0, count as isize - 1])?, 199_999.0);
    Ok(())
}

/// All columns with missing values are in one error, which suggests no number that would be data.
#[test]
fn missing_values_are_listed_by_column() {
    let text = "year,city,area,id\n1990,Oslo,1,\n,Rome,,2\n1992,,3,\n,Oslo,,4\n,Bonn,5,x\n";
    let csv = || Csv::from_bytes(text.as_bytes().to_vec()).categories(["city"]).skip(["id"]);
    let error = csv().read().unwrap_err();
    let columns = "column 'year' (3, from line 3 on), column 'city' (1, from line 4 on), column 'area' (2, from line 3 on)";
    assert_eq!(error.message(), format!("the bytes: values are missing in {columns}"));
    let repair = ".fill_numbers(Fill::Mean), .fill_numbers(f64::NAN), .fill(\"city\", \"unknown\") or .drop_missing(true)";
    assert_eq!((error.repair(), error.kind()), (Some(repair), ErrorKind::Format));
    let table = csv().fill_numbers(Fill::Mean).fill("city", "unknown").read().unwrap();
    assert_eq!(table.column("area").unwrap().to_vec::<f32>().unwrap(), [1.0, 3.0, 3.0, 3.0, 5.0]);

    let error = csv().fill("area", 0).fill("city", "unknown").read().unwrap_err();
    assert_eq!(error.message(), "the bytes: line 3, column 'year': the value is missing, and 2 more below");
    let repair = ".fill(\"year\", Fill::Mean), .fill(\"year\", f64::NAN) or .drop_missing(true)";
    assert_eq!(error.repair(), Some(repair));
    let error = csv().fill_numbers("unknown").read().unwrap_err();
    assert!(error.message().contains("column 'year' cannot be filled with the category"), "{error}");
    let row = Csv::from_bytes(b"a,b\n1,\n".to_vec()).stream().unwrap().map(|row| row.number("b"));
    let error = Loader::new(row, 1).unwrap().iter().next().unwrap().unwrap_err();
    assert_eq!(error.repair(), Some(".fill(\"b\", f64::NAN) or .drop_missing(true)"), "not the mean");
    // A row that cannot be read comes after the missing values before it.
    let error = Csv::from_bytes(b"a,b\n1,\n2\n").read().unwrap_err();
    assert_eq!(error.message(), "the bytes: line 2, column 'b': the value is missing");
}

#[test]
fn tables() -> Result<()> {
    let text = "\u{feff}a,\"b b\" ,c\r\n1,\"x,\"\"y\",-2.5e1\r\n\r\n 2 , NA ,?\r\n+3,x, 4\r\n";
    for bytes in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
        let csv = Csv::from_bytes(bytes).categories(["b b"]).missing(["NA", "?"]);
        let table = csv.clone().fill("b b", "none").fill("c", 0).read()?;
        assert_eq!((table.len(), table.names()), (3, vec!["a", "b b", "c"]));
        assert_eq!(table.column("a")?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
        assert_eq!(table.column(-1)?.to_vec::<f32>()?, [-25.0, 0.0, 4.0]);
        assert_eq!(table.category_names("b b")?, ["none", "x", "x,\"y"]);
        assert_eq!(table.category(1)?.to_vec::<i64>()?, [2, 0, 1]);
        let x = table.columns(["c", "a"])?;
        assert_eq!((x.shape().to_string(), x.dtype()), ("[N=3, feature=2]".into(), DType::F32));
        assert_eq!(x.to_vec::<f32>()?, [-25.0, 1.0, 0.0, 2.0, 4.0, 3.0]);
        assert_eq!(table.columns_except(["a"])?.to_vec::<f32>()?, [-25.0, 0.0, 4.0]);
        assert_eq!(csv.drop_missing(true).read()?.column("a")?.to_vec::<f32>()?, [1.0, 3.0]);
        assert!(table.column("b b").unwrap_err().message().contains("has categories"));
        assert!(table.category("a").unwrap_err().message().contains("has numbers"));
        assert_eq!(table.column("d").unwrap_err().location().file(), file!());
    }
    Ok(())
}

#[test]
fn a_table_row_by_row() -> Result<()> {
    let folder = Folder::new("rows");
    let text: String = (0..1000).map(|n| format!("{n},{}\n", ["x", "y"][n % 2])).collect();
    let path = folder.write("table.csv", format!("a,b\n{text}"));
    let rows = Csv::new(&path).categories_of("b", ["x", "y"]).stream()?;
    let samples = rows.map(|row| Ok((row.number("a")? as f32, row.category("b")?, row.line() as i64)));
    for workers in [0, 2] {
        let loader = Loader::builder(samples.clone()).batch_size(300).workers(workers).build()?;
        let batches = loader.iter().collect::<Result<Vec<_>>>()?;
        assert_eq!(batches.len(), 4);
        assert_eq!(batches[3].0.to_vec::<f32>()?, (900..1000).map(|n| n as f32).collect::<Vec<_>>());
        assert_eq!(batches[0].1.to_vec::<i64>()?[..4], [0, 1, 0, 1]);
        assert_eq!(batches[0].2.to_vec::<i64>()?[0], 2);
    }
    assert_eq!(Csv::new(&path).categories(["b"]).stream().unwrap_err().kind(), ErrorKind::Unsupported);
    // A row that is damaged in the middle.
    let path = folder.write("damaged.csv", format!("a,b\n{text}1,x,2\n"));
    let rows = Csv::new(path).skip(["b"]).stream()?;
    let loader = Loader::new(rows.map(|row| row.number("a")), 500)?;
    let batches: Vec<_> = loader.iter().collect();
    assert_eq!(batches.len(), 3);
    let message = batches[2].as_ref().unwrap_err().message();
    assert!(message.ends_with("line 1002: 3 fields, expected 2"), "{message}");
    Ok(())
}

#[test]
fn vocabularies() -> Result<()> {
    let words = Vocabulary::frequent_words("a b b c c c", 2).with_special("<pad>")?.with_unknown("<unk>")?;
    assert_eq!(words.ids("c a b")?, [3, 1, 2]);
    assert_eq!(words.decode(&words.encode("c b")?)?, "c b");
    let chars = Vocabulary::chars("hello → hé");
    assert_eq!(chars.text(&chars.ids("hé → ho")?)?, "hé → ho");
    let error = chars.ids("hex").unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    assert!(error.message().starts_with("\"x\", token 2"), "{error}");
    let bytes = Vocabulary::bytes();
    assert_eq!((bytes.len(), bytes.ids("é")?), (256, vec![0xc3, 0xa9]));
    assert_eq!(bytes.decode(&bytes.encode("hé\0")?)?, "hé\0");
    assert_eq!(chars.text(&[99]).unwrap_err().kind(), ErrorKind::Index);
    assert_eq!(chars.text(&[-1]).unwrap_err().kind(), ErrorKind::Index);
    for error in
        [words.clone().with_special("b").unwrap_err(), bytes.clone().with_unknown("<unk>").unwrap_err()]
    {
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    }

    let folder = Folder::new("vocabulary");
    let path = folder.0.join("words.safetensors");
    words.save(&path)?;
    assert_eq!(Vocabulary::load(&path)?, words);
    let mut file = TensorFile::load(&path)?;
    for damaged in ["", "{}", r#"{"of":"words","special":0,"unknown":null,"tokens":["a","a"]}"#] {
        file.metadata.insert("vocabulary".into(), damaged.into());
        file.save(&path)?;
        let error = Vocabulary::load(&path).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Format, file!()));
    }
    std::fs::write(&path, "not a file of tensors").unwrap();
    assert_eq!(Vocabulary::load(&path).unwrap_err().kind(), ErrorKind::Format);
    assert_eq!(words.save(folder.0.join("no/such/folder")).unwrap_err().kind(), ErrorKind::Io);
    Ok(())
}

#[test]
fn lines_and_windows() -> Result<()> {
    let folder = Folder::new("lines");
    let path = folder.write("names.txt", " emma \r\n\nolivia");
    let names = text::lines(&path)?;
    assert_eq!((names.len(), names.get(0)?, names.get(1)?), (2, "emma".into(), "olivia".into()));
    let loader = Loader::new(text::stream_lines(&path)?, 5)?;
    assert_eq!(loader.peek()?, ["emma", "olivia"]);
    let path = folder.write("binary.txt", b"a\n\xff\n");
    let broken = text::lines(&path).unwrap_err();
    assert_eq!((broken.kind(), broken.location().file()), (ErrorKind::Format, file!()));
    let message = Loader::new(text::stream_lines(&path)?, 5)?.peek().unwrap_err().message().to_string();
    assert!(message.contains("line 2: "), "{message}");
    assert_eq!(text::stream_lines("/nowhere").unwrap_err().kind(), ErrorKind::Io);

    let x = Tensor::arange(0.0, 10.0, 1.0)?.refine_names(["time"])?;
    let windows = Windows::new(x.clone(), "time", 4)?.stride(3)?;
    assert_eq!((windows.len(), windows.get(2)?.to_vec::<f32>()?), (3, vec![6.0, 7.0, 8.0, 9.0]));
    let pairs = windows.clone().shifted()?;
    assert_eq!((pairs.len(), pairs.get(1)?.1.to_vec::<f32>()?), (2, vec![4.0, 5.0, 6.0, 7.0]));
    assert!(windows.get(3).is_err() && windows.clone().stride(0).is_err());
    for size in [0, 11] {
        assert_eq!(Windows::new(x.clone(), "time", size).unwrap_err().kind(), ErrorKind::Value);
    }
    assert!(Windows::new(x.clone(), "time", 10)?.shifted().is_err());
    let ahead = windows.clone().horizon(2)?;
    assert_eq!((ahead.len(), ahead.get(1)?.0.to_vec::<f32>()?), (2, vec![3.0, 4.0, 5.0, 6.0]));
    assert_eq!(ahead.get(1)?.1.to_vec::<f32>()?, [7.0, 8.0]);
    assert!(ahead.get(2).is_err());
    assert_eq!(windows.clone().horizon(6)?.len(), 1);
    for horizon in [0, 7] {
        let error = windows.clone().horizon(horizon).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
        assert!(error.message().contains("6 elements come after a window of 4 of 10"), "{error}");
    }
    assert_eq!(Windows::new(x, "seq", 1).unwrap_err().kind(), ErrorKind::NameNotFound);
    Ok(())
}

#[test]
fn arrays_of_numpy() -> Result<()> {
    let folder = Folder::new("numpy");
    let path = folder.0.join("x.npy");
    Tensor::arange(0, 6, 1)?.reshape([3, 2])?.save(&path)?;
    let data = TensorDataset::new(Tensor::load(&path)?)?;
    assert_eq!(Loader::new(data, 2)?.peek()?.shape().to_string(), "[N=2, ?=2]");
    Ok(())
}
