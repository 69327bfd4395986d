//! Event files: read back by this crate, and by the `tensorboard` package if `NAMEGRAD_TENSORBOARD_PYTHON`
//! names a Python that has it.

use crate::common::Scratch;
use namegrad::prelude::*;
use namegrad::train::log::{Content, Histogram, History, Hparam, Image, Log, Record, events};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn model() -> Result<Sequential> {
    manual_seed(1);
    Ok(Sequential::new()
        .then_named("hidden", Linear::new(("in", 3), ("h", 4))?)
        .then_named("out", Linear::new(("h", 4), ("y", 1))?))
}

/// A log with everything that an event file can hold.
fn write(folder: &Path) -> Result<PathBuf> {
    let mut log = Log::builder(folder).json_lines(false).tensorboard(true).build()?;
    log.hparams([("lr", 0.1.into()), ("layers", 2.into()), ("act", "relu".into()), ("fused", true.into())])?;
    let model = model()?;
    for step in 0..5_u64 {
        let x = Tensor::randn([("N", 8), ("in", 3)])?;
        let loss = model.forward(&x)?.square().mean(..)?;
        model.zero_grad();
        loss.backward()?;
        log.scalars(step * 1000, [("loss/train", loss.detach()), ("loss/test", loss.detach().mul(2.0)?)])?;
        log.parameters(step * 1000, &model)?;
    }
    log.scalar("not finite", 0, f64::NAN)?;
    log.scalar("not finite", i32::MAX, f64::NEG_INFINITY)?;
    log.histogram("equal", 1, Histogram::new(Tensor::ones([3])?, 8)?)?;
    log.histogram("empty", 1, Histogram::new(Tensor::zeros([0])?, 8)?)?;
    let colors = Tensor::rand([("H", 5), ("C", 3), ("W", 7)])?;
    log.image("colors", 2, &colors)?;
    log.image("gray", 3, Tensor::linspace(-0.5, 1.5, 12)?.reshape([3, 4]).refine_names(["H", "W"])?)?;
    log.text("note", 4, "**bold** \u{1F600}\nsecond line")?;
    Ok(log.files().next().unwrap().to_path_buf())
}

#[test]
fn everything_is_read_back() -> Result<()> {
    let folder = Scratch::new("events-read");
    let file = write(folder.path())?;
    let records = events::read(&file)?;
    let of = |name: &str| records.iter().filter(|record| record.name == name).collect::<Vec<_>>();
    assert_eq!(
        of("loss/train").iter().map(|record| record.step).collect::<Vec<_>>(),
        [0, 1000, 2000, 3000, 4000]
    );
    let Content::Hparams(values) = &of("hparams")[0].content else { panic!("{:?}", records[0]) };
    assert_eq!((values["lr"].clone(), values["fused"].clone()), (Hparam::Number(0.1), Hparam::Bool(true)));
    assert_eq!(of("note")[0].content, Content::Text("**bold** \u{1F600}\nsecond line".into()));
    let Content::Image(Image { width, height, png }) = &of("gray")[0].content else { panic!("no image") };
    assert_eq!((*width, *height), (4, 3));
    let decoder = png::Decoder::new(std::io::Cursor::new(png));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; 12];
    reader.next_frame(&mut pixels).unwrap();
    assert_eq!((pixels[0], pixels[11]), (0, 255), "clamped");
    let expected = Histogram::new(Tensor::ones([3])?, 8)?;
    assert_eq!(of("equal")[0].content, Content::Histogram(expected));
    assert_eq!(of("parameters/hidden.weight").len(), 5);
    assert_eq!(of("gradients/out.bias").len(), 5);
    assert_eq!(of("not finite")[1].step, i32::MAX as u64);
    assert_eq!(History::read(folder.path())?.get("loss/test")?.len(), 5);
    Ok(())
}

#[test]
fn a_damaged_file_is_an_error_with_the_offset() -> Result<()> {
    let folder = Scratch::new("events-damaged");
    let file = write(folder.path())?;
    let (content, count) = (fs::read(&file).unwrap(), events::read(&file)?.len());
    let other = folder.path().join("events.out.tfevents.1");
    let mut step = 1;
    for length in (0..content.len()).step_by(397) {
        fs::write(&other, &content[..length]).unwrap();
        let live = History::records(&other)?.len();
        assert!(live < count, "a part of a live file can be read");
        match events::read(&other) {
            Ok(records) => assert_eq!(records.len(), live),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Format);
                assert!(error.to_string().contains("is truncated"), "{error}");
                assert_eq!(error.location().file(), file!());
            }
        }
        let mut changed = content.clone();
        changed[length] ^= step;
        step = step.rotate_left(1);
        fs::write(&other, &changed).unwrap();
        for error in [events::read(&other).unwrap_err(), History::read(&other).unwrap_err()] {
            assert!(error.to_string().contains("the record at offset "), "{error}");
        }
    }
    Ok(())
}

#[test]
fn a_resumed_file_is_that_of_an_uninterrupted_run() -> Result<()> {
    fn run(log: &mut Log, steps: std::ops::Range<u64>) -> Result<()> {
        log.hparams([("lr", 0.1.into())])?;
        steps.into_iter().try_for_each(|step| log.scalar("loss", step, 1.0 / (step + 1) as f64))
    }
    fn records(log: &Log) -> Vec<Record> {
        events::read(log.files().last().unwrap()).unwrap()
    }
    let (whole, parts) = (Scratch::new("events-whole"), Scratch::new("events-parts"));
    let mut uninterrupted = Log::builder(whole.path()).tensorboard(true).build()?;
    run(&mut uninterrupted, 0..20)?;
    let mut killed = Log::builder(parts.path()).tensorboard(true).build()?;
    run(&mut killed, 0..13)?;
    let file = killed.files().last().unwrap().to_path_buf();
    drop(killed);
    let content = fs::read(&file).unwrap();
    fs::write(&file, &content[..content.len() - 5]).unwrap();
    let mut resumed = Log::builder(parts.path()).tensorboard(true).resume_from(8).build()?;
    run(&mut resumed, 8..20)?;
    assert_eq!(records(&resumed), records(&uninterrupted));
    assert_eq!(resumed.files().last().unwrap(), file, "the same file");
    Ok(())
}

#[test]
fn bad_pictures_are_errors() -> Result<()> {
    let folder = Scratch::new("events-pictures");
    let mut log = Log::builder(folder.path()).tensorboard(true).build()?;
    for (x, kind) in [
        (Tensor::zeros([("N", 2), ("C", 3), ("H", 4), ("W", 4)])?, ErrorKind::Shape),
        (Tensor::zeros([("C", 5), ("H", 4), ("W", 4)])?, ErrorKind::Shape),
        (Tensor::zeros([("H", 0), ("W", 4)])?, ErrorKind::Shape),
        (Tensor::zeros([4, 4])?, ErrorKind::UnnamedNotAllowed),
        (Tensor::zeros([("C", 3), ("X", 4), ("W", 4)])?, ErrorKind::NameNotFound),
    ] {
        let error = log.image("picture", 0, &x).unwrap_err();
        assert_eq!((error.kind(), error.op()), (kind, "image"), "{error}");
        assert_eq!(error.location().file(), file!());
    }
    log.image("nan", 0, Tensor::full([("H", 2), ("W", 2)], f64::NAN)?)?;
    let without = Scratch::new("events-without");
    let error =
        Log::new(without.path())?.image("picture", 0, Tensor::zeros([("H", 2), ("W", 2)])?).unwrap_err();
    assert_eq!(
        (error.kind(), error.repair().is_some_and(|line| line.contains("tensorboard(true)"))),
        (ErrorKind::Unsupported, true)
    );
    Ok(())
}

/// Prints every record of a file as the `tensorboard` package reads it.
const READER: &str = r#"
import sys
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams import plugin_data_pb2
for raw in RawEventFileLoader(sys.argv[1]).Load():
    event = Event.FromString(raw)
    if event.file_version:
        print("version", event.file_version)
    for value in event.summary.value:
        kind = value.WhichOneof("value")
        plugin = value.metadata.plugin_data
        print(event.step, value.tag, kind or plugin.plugin_name, end=" ")
        if kind == "simple_value":
            print(float(value.simple_value).hex())
        elif kind == "histo":
            h = value.histo
            print(*(float(x).hex() for x in [h.min, h.max, h.num, h.sum, h.sum_squares, *h.bucket_limit, *h.bucket]))
        elif kind == "image":
            print(value.image.width, value.image.height, value.image.encoded_image_string.hex())
        elif kind == "tensor":
            print(plugin.plugin_name, value.tensor.dtype, value.tensor.tensor_shape.dim[0].size, value.tensor.string_val[0].hex())
        else:
            info = plugin_data_pb2.HParamsPluginData.FromString(plugin.content).session_start_info
            fields = {name: getattr(v, v.WhichOneof("kind")) for name, v in info.hparams.items()}
            print(sorted(fields.items()))
"#;

#[test]
fn the_tensorboard_package_reads_the_same() -> Result<()> {
    let Some(python) = std::env::var_os("NAMEGRAD_TENSORBOARD_PYTHON") else {
        println!("skipped: NAMEGRAD_TENSORBOARD_PYTHON names no Python with the package tensorboard");
        return Ok(());
    };
    let folder = Scratch::new("events-python");
    let file = write(folder.path())?;
    if let Some(keep) = std::env::var_os("NAMEGRAD_KEEP_EVENTS") {
        let to = Path::new(&keep).join(file.file_name().unwrap());
        fs::copy(&file, to).unwrap();
    }
    let output = Command::new(python).arg("-c").arg(READER).arg(&file).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut expected = vec!["version brain.Event:2".to_string()];
    expected.extend(events::read(&file)?.iter().map(printed_by_python));
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
    Ok(())
}

/// The line that the script prints for a record.
fn printed_by_python(record: &Record) -> String {
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let content = match &record.content {
        Content::Scalar(value) => format!("simple_value {}", hex(*value)),
        Content::Histogram(h) => {
            let counts = h.counts.iter().map(|count| *count as f64);
            let all = [h.min, h.max, h.count() as f64, h.sum, h.sum_squares];
            let all = all.into_iter().chain(h.limits.iter().copied()).chain(counts);
            format!("histo {}", all.map(hex).collect::<Vec<_>>().join(" "))
        }
        Content::Image(image) => format!("image {} {} {}", image.width, image.height, bytes(&image.png)),
        Content::Text(text) => format!("tensor text 7 1 {}", bytes(text.as_bytes())),
        Content::Hparams(_) => {
            let values = "[('act', 'relu'), ('fused', True), ('layers', 2.0), ('lr', 0.1)]";
            return format!("0 _hparams_/session_start_info hparams {values}");
        }
        content => panic!("{content:?}"),
    };
    format!("{} {} {content}", record.step, record.name)
}

/// Python's `float.hex`.
fn hex(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string().to_lowercase();
    }
    let (bits, sign) = (value.to_bits(), if value.is_sign_negative() { "-" } else { "" });
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i64, bits & ((1 << 52) - 1));
    match (exponent, fraction) {
        (0, 0) => format!("{sign}0x0.0p+0"),
        (0, _) => format!("{sign}0x0.{fraction:013x}p-1022"),
        _ => format!("{sign}0x1.{fraction:013x}p{:+}", exponent - 1023),
    }
}
