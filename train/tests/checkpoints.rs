//! Checkpoints in a folder: which ones are kept, and refusals, after which nothing has changed or is lost.

use namegrad::core::NamedTensor;
use namegrad::data::{Loader, Samples, Standardize};
use namegrad::io::TensorFile;
use namegrad::optim::schedule::{Cosine, Scheduler};
use namegrad::prelude::*;
use namegrad::train::{Best, Checkpoints, Parts, Resumable, parts};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("namegrad-checkpoints-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut files: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        files
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn layer(value: f64) -> Result<Linear> {
    let layer = Linear::new(("in", 3), ("out", 2))?;
    for parameter in layer.parameters() {
        parameter.update(|own| own.mul_(0.0)?.add_(value).map(drop))?;
    }
    Ok(layer)
}

fn values(layer: &Linear) -> Vec<f32> {
    layer.parameters().iter().flat_map(|parameter| parameter.tensor().to_vec::<f32>().unwrap()).collect()
}

/// Checks an error: its kind, the line of the call, and parts of its text.
#[track_caller]
fn refused<T>(result: Result<T>, kind: ErrorKind, texts: &[&str]) {
    let Err(error) = result else { panic!("it should be an error") };
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    assert_eq!(error.location().file(), file!(), "{text}");
    texts.iter().for_each(|part| assert!(text.contains(part), "no '{part}' in: {text}"));
}

#[test]
fn the_last_and_the_best_stay() -> Result<()> {
    let folder = Folder::new("keep");
    let model = layer(0.0)?;
    let checkpoints =
        Checkpoints::builder(&folder).keep_last(2).keep_best(2, "loss", Best::Lowest).build()?;
    fs::write(folder.0.join("step-7.safetensors"), "not ours").unwrap();
    fs::write(folder.0.join("notes.txt"), "not ours").unwrap();
    for (step, loss) in [(1, 3.0), (2, f64::NAN), (3, 1.0), (4, 2.0), (5, 1.0), (6, f64::INFINITY), (7, 9.0)]
    {
        model.parameters()[0].update(|own| own.mul_(0.0)?.add_(step as f64).map(drop))?;
        checkpoints.save_with(step, parts![&model], [("loss", loss), ("other", 0.5)])?;
    }
    let steps =
        |list: Vec<namegrad::train::Checkpoint>| -> Vec<u64> { list.iter().map(|each| each.step).collect() };
    assert_eq!(steps(checkpoints.list()?), [3, 5, 6, 7]);
    let files = ["notes.txt", "step-00000003.safetensors", "step-00000005.safetensors"];
    assert_eq!(folder.files()[..3], files);
    assert_eq!(folder.files()[5..], ["step-7.safetensors"]);
    assert!(checkpoints.list()?[2].metrics["loss"].is_infinite());
    let best = checkpoints.load_best(parts![&model])?.unwrap();
    assert_eq!(
        (best.step, best.metrics["loss"], values(&model)[0]),
        (3, 1.0, 3.0),
        "the earlier one of equals"
    );
    drop(checkpoints);
    let highest = Checkpoints::builder(&folder).keep_best(1, "loss", Best::Highest).build()?;
    assert_eq!(highest.best()?.unwrap().step, 6);
    refused(Checkpoints::new(&folder)?.best(), ErrorKind::Value, &["keep_best(1, \"val_loss\""]);
    Ok(())
}

#[test]
fn the_same_step_replaces_and_steps_do_not_fall() -> Result<()> {
    let folder = Folder::new("same");
    let model = layer(1.0)?;
    let checkpoints = Checkpoints::new(&folder)?;
    assert_eq!(checkpoints.resume(parts![&model])?, None);
    checkpoints.save(5, parts![&model])?;
    model.parameters()[0].update(|own| own.add_(1.0).map(drop))?;
    checkpoints.save(5, parts![&model])?;
    refused(checkpoints.save(4, parts![&model]), ErrorKind::Value, &["step 4", "step 5"]);
    checkpoints.save(6, parts![&model])?;
    let fresh = layer(0.0)?;
    assert_eq!(checkpoints.resume_from(5, parts![model = &fresh])?, 5);
    assert_eq!(values(&fresh), values(&model));
    refused(checkpoints.save(6, parts![&model]), ErrorKind::Value, &["up to step 6", "remove_after(5)"]);
    checkpoints.remove_after(5)?;
    checkpoints.save(6, parts![&model])?;
    assert_eq!(folder.files(), ["step-00000005.safetensors", "step-00000006.safetensors"]);
    Ok(())
}

#[test]
fn two_runs_do_not_share_a_folder() -> Result<()> {
    let folder = Folder::new("two");
    let model = layer(1.0)?;
    let first = Checkpoints::new(&folder)?;
    let second = Checkpoints::new(&folder)?;
    first.save(1, parts![&model])?;
    assert_eq!(second.resume(parts![&model])?, Some(1), "reading is possible");
    if cfg!(unix) {
        refused(second.save(2, parts![&model]), ErrorKind::Io, &["another run saves"]);
    }
    drop((first, second));
    let later = Checkpoints::new(&folder)?;
    refused(
        later.save(2, parts![&model]),
        ErrorKind::Value,
        &["up to step 1", "did not resume", "resume(parts)"],
    );
    later.resume(parts![&model])?;
    later.save(2, parts![&model])?;
    Ok(())
}

#[test]
fn parts_that_do_not_fit_are_named_and_nothing_changes() -> Result<()> {
    let folder = Folder::new("fit");
    let model = layer(1.0)?;
    let mut optimizer = Adam::builder_named(model.named_parameters()).lr(0.5).build()?;
    let mut epoch = 3;
    let checkpoints = Checkpoints::new(&folder)?;
    checkpoints.save(1, parts![&model, &mut optimizer, &mut epoch])?;

    let fresh = layer(2.0)?;
    let wide = Linear::new(("in", 3), ("out", 5))?;
    let mut sgd = Sgd::builder_named(fresh.named_parameters()).lr(0.25).build()?;
    let mut adam = Adam::builder_named(fresh.named_parameters()).lr(0.25).build()?;
    let (mut text, mut number) = ("before".to_string(), 9);
    let resume = |parts: Parts<'_>| checkpoints.resume(parts);
    refused(
        resume(parts![model = &fresh, optimizer = &mut adam, epoch = &mut text]),
        ErrorKind::Format,
        &["step-00000001.safetensors: part 'epoch': expected a value of type String: invalid type: integer"],
    );
    refused(
        resume(parts![epoch = &mut number, model = &wide, optimizer = &mut adam]),
        ErrorKind::Value,
        &["part 'model'", "weight is [out=5, in=3] in the model and [out=2, in=3] in the state"],
    );
    refused(
        resume(parts![epoch = &mut number, model = &fresh, optimizer = &mut sgd]),
        ErrorKind::Value,
        &["part 'optimizer'", "Adam"],
    );
    refused(
        resume(parts![model = &fresh, optimiser = &mut adam]),
        ErrorKind::Value,
        &["no part 'optimiser', it has 'optimizer'", "part 'epoch' of the checkpoint"],
    );
    refused(checkpoints.load(1, parts![ema = &fresh]), ErrorKind::Value, &["no part 'ema'", "'model'"]);
    refused(
        checkpoints.load(2, parts![model = &fresh]),
        ErrorKind::Value,
        &["no checkpoint of step 2; it has 1"],
    );
    assert_eq!((values(&fresh), adam.lr(), sgd.lr()), (vec![2.0; 8], 0.25, 0.25));
    assert_eq!((text.as_str(), number), ("before", 9));

    checkpoints.load(1, parts![model = &fresh])?;
    assert_eq!(values(&fresh), [1.0; 8]);
    Ok(())
}

#[test]
fn a_run_goes_on_with_another_schedule() -> Result<()> {
    let folder = Folder::new("longer");
    let model = layer(1.0)?;
    let mut optimizer = Adam::builder_named(model.named_parameters()).lr(0.5).build()?;
    let mut scheduler = Scheduler::new(Cosine::new(10), &mut optimizer)?;
    let mut epoch = 10;
    Checkpoints::new(&folder)?.save(10, parts![&model, &mut optimizer, &mut scheduler, &mut epoch])?;

    let model = layer(2.0)?;
    let mut optimizer = Adam::builder_named(model.named_parameters()).lr(0.25).build()?;
    let mut longer = Scheduler::new(Cosine::new(20), &mut optimizer)?;
    let (mut average, mut epoch) = (7.0, 0);
    let checkpoints = Checkpoints::new(&folder)?;
    let error =
        checkpoints.resume(parts![&model, &mut optimizer, scheduler = &mut longer, &mut epoch]).unwrap_err();
    assert!(
        error.repair().unwrap().contains("checkpoints.resume_some(parts)? without 'scheduler'"),
        "{error}"
    );
    let error =
        checkpoints.resume(parts![&model, &mut optimizer, &mut average, extra = &mut epoch]).unwrap_err();
    assert!(error.repair().unwrap().contains("checkpoints.resume_some(parts)?"), "{error}");
    refused(
        checkpoints.resume_some(parts![&mut average]),
        ErrorKind::Value,
        &["no part 'average', it has 'model', 'optimizer', 'scheduler', 'epoch'"],
    );
    refused(
        checkpoints.resume_some(parts![&model, scheduler = &mut longer]),
        ErrorKind::Value,
        &["part 'scheduler'", "resume_some(parts)? without 'scheduler'"],
    );
    assert_eq!((values(&model)[0], epoch, average), (2.0, 0, 7.0));

    let resumed = checkpoints
        .resume_some(parts![&model, &mut optimizer, &mut average, &mut epoch])?
        .expect("there is a checkpoint");
    assert_eq!((resumed.step, values(&model)[0], epoch, average), (10, 1.0, 10, 7.0));
    assert_eq!((resumed.missing, resumed.unused), (vec!["average".into()], vec!["scheduler".into()]));
    let mut all = parts![&model, &mut optimizer, scheduler = &mut longer, &mut average, &mut epoch];
    checkpoints.save(11, all)?;
    all = parts![&model, &mut optimizer, scheduler = &mut longer, &mut average, &mut epoch];
    assert_eq!(checkpoints.resume(all)?, Some(11));
    Ok(())
}

#[test]
fn a_renamed_variable_keeps_the_name_of_its_part() -> Result<()> {
    let folder = Folder::new("renamed");
    let (model, mut epoch) = (layer(1.0)?, 1);
    let checkpoints = Checkpoints::new(&folder)?;
    checkpoints.save(1, parts![&model, &mut epoch])?;
    let (network, mut number) = (layer(2.0)?, 0);
    let repair = |parts: Parts<'_>| checkpoints.resume(parts).unwrap_err().repair().unwrap().to_string();
    assert!(repair(parts![&network, &mut epoch]).starts_with("parts![model = &network] if"));
    assert!(repair(parts![&model, &mut number]).starts_with("parts![epoch = &mut number] if"));
    assert_eq!(checkpoints.resume(parts![model = &network, epoch = &mut number])?, Some(1));
    assert_eq!((values(&network)[0], number), (1.0, 1));
    Ok(())
}

#[test]
fn tied_parameters_and_any_form_of_a_model() -> Result<()> {
    manual_seed(1);
    #[derive(Module)]
    struct Tied {
        table: Embedding,
        head: Linear,
    }
    let tied = |start: f64| -> Result<Tied> {
        let table = Embedding::new(("word", 5), ("embed", 3))?;
        table.weight().update(|weight| weight.fill_(start).map(drop))?;
        let head = Linear::builder(("embed", 3), ("word", 5)).weight(table.weight()).bias(false).build()?;
        Ok(Tied { table, head })
    };
    let folder = Folder::new("tied");
    let checkpoints = Checkpoints::new(&folder)?;
    let (model, single) = (tied(1.0)?, Parameter::new(Tensor::new([7.0])?)?);
    checkpoints.save(1, parts![&model, &single])?;
    let file = namegrad::io::TensorFile::load(folder.0.join("step-00000001.safetensors"))?;
    assert!(file.tensors.keys().eq(["model.table.weight", "single.value"]), "{:?}", file.tensors.keys());

    let (fresh, other) = (std::sync::Arc::new(tied(0.0)?), Parameter::new(Tensor::new([0.0])?)?);
    checkpoints.resume(parts![model = &fresh, single = &other])?;
    assert_eq!(fresh.head.weight().tensor().to_vec::<f32>()?, [1.0; 15]);
    assert!(fresh.head.weight().is(fresh.table.weight()));
    assert_eq!(other.tensor().item::<f32>()?, 7.0);
    // Other programs read the tensors by name.
    let mut state = namegrad::nn::StateDict::load(folder.0.join("step-00000001.safetensors"))?;
    state.remove("single.value");
    state.rename("model.**", "**")?;
    tied(0.0)?.load_state_dict(&state)?;
    Ok(())
}

/// A file has no order in memory, and the rounding of some products depends on it.
#[test]
fn the_order_in_memory_stays() -> Result<()> {
    let folder = Folder::new("order");
    let checkpoints = Checkpoints::new(&folder)?;
    let x = NamedTensor::arange(0.0, 24.0, 1.0, DType::F32)?.reshape([("a", 2), ("b", 3), ("c", 4)])?;
    for (step, order) in [(1, [2, 0, 1]), (2, [0, 1, 2]), (3, [1, 0, 2]), (4, [2, 1, 0])] {
        let back: Vec<usize> = (0..3).map(|dim| order.iter().position(|at| *at == dim).unwrap()).collect();
        let value = x.permute(order.to_vec())?.contiguous()?.permute(back)?;
        let saved = Parameter::new(Tensor::constant(value.clone()))?;
        let resumed = Parameter::new(Tensor::constant(x.mul(0.0)?))?;
        checkpoints.save(step, parts![weight = &saved])?;
        checkpoints.resume(parts![weight = &resumed])?;
        let resumed = resumed.tensor().into_value();
        assert_eq!(resumed.strides(), value.strides());
        assert_eq!(resumed.to_vec::<f32>()?, x.to_vec::<f32>()?);
        assert_eq!(*resumed.names(), ["a", "b", "c"]);
    }
    Ok(())
}

#[test]
fn bad_calls_are_refused() -> Result<()> {
    let folder = Folder::new("calls");
    let model = layer(1.0)?;
    let builder = || Checkpoints::builder(&folder);
    refused(builder().keep_last(0).build(), ErrorKind::Value, &["at least 1"]);
    refused(builder().keep_best(0, "loss", Best::Lowest).build(), ErrorKind::Value, &[".keep_best(1"]);
    let checkpoints = builder().keep_best(1, "val_loss", Best::Lowest).build()?;
    refused(checkpoints.save(1, parts![]), ErrorKind::Value, &["no parts"]);
    refused(checkpoints.save(1, Parts::new().with("a.b", &model)), ErrorKind::Value, &["'a.b'"]);
    refused(checkpoints.save(1, Parts::new().with("", &model)), ErrorKind::Value, &["called ''"]);
    refused(checkpoints.save(1, parts![&model, &model]), ErrorKind::Value, &["two parts are called 'model'"]);
    let wrong = checkpoints.save_with(1, parts![&model], [("vall_loss", 1.0)]);
    refused(wrong, ErrorKind::Value, &["'val_loss'", "there is 'vall_loss'"]);
    let mut nested = vec![vec![f64::NAN]];
    refused(
        checkpoints.save(1, parts![&mut nested]),
        ErrorKind::Value,
        &["part 'nested'", "cannot be saved", "Vec<f64>"],
    );
    assert!(folder.files().is_empty());
    checkpoints.save(u64::MAX, parts![&model])?;
    assert_eq!(checkpoints.resume(parts![&model])?, Some(u64::MAX));
    fs::write(folder.0.join("file"), "").unwrap();
    refused(Checkpoints::new(folder.0.join("file")), ErrorKind::Io, &["file"]);
    Ok(())
}

#[test]
fn floats_keep_their_bits() -> Result<()> {
    let folder = Folder::new("floats");
    let checkpoints = Checkpoints::new(&folder)?;
    let (mut best, mut single, mut none, mut some) =
        (f64::INFINITY, f32::MIN_POSITIVE, None::<f64>, Some(f64::NAN));
    let mut list = vec![0.1, -0.0, f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001), 5e-324];
    let (mut empty, mut map) = (Vec::<f32>::new(), std::collections::HashMap::from([(3_u8, 0.1_f64)]));
    let bits: Vec<u64> = list.iter().map(|x| x.to_bits()).collect();
    checkpoints
        .save(1, parts![&mut best, &mut single, &mut none, &mut some, &mut list, &mut empty, &mut map])?;
    (best, single, none, some, empty) = (0.0, 0.0, Some(1.0), None, vec![1.0]);
    list.clear();
    map.clear();
    checkpoints.resume(parts![
        &mut best,
        &mut single,
        &mut none,
        &mut some,
        &mut list,
        &mut empty,
        &mut map
    ])?;
    assert_eq!((best, single, none, empty.len()), (f64::INFINITY, f32::MIN_POSITIVE, None, 0));
    assert!(some.unwrap().is_nan());
    assert_eq!(list.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), bits);
    assert_eq!(map[&3], 0.1);
    Ok(())
}

#[test]
fn a_damaged_checkpoint_is_an_error_with_the_way_on() -> Result<()> {
    let folder = Folder::new("damaged");
    let model = layer(1.0)?;
    let checkpoints = Checkpoints::new(&folder)?;
    checkpoints.save(1, parts![&model])?;
    checkpoints.save(2, parts![&model])?;
    let path = folder.0.join("step-00000002.safetensors");
    let whole = fs::read(&path).unwrap();
    let fresh = layer(0.0)?;
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        refused(
            checkpoints.resume(parts![model = &fresh]),
            ErrorKind::Format,
            &["step-00000002.safetensors", "resume_from(1, parts)", "remove_after(1)"],
        );
    }
    assert_eq!(values(&fresh), [0.0; 8]);
    assert!(checkpoints.list()?[1].damage.is_some());
    // A file with other content under this name.
    fs::copy(folder.0.join("step-00000001.safetensors"), &path).unwrap();
    refused(checkpoints.resume(parts![model = &fresh]), ErrorKind::Format, &["it is of step 1"]);
    model.state_dict().save(&path)?;
    refused(checkpoints.resume(parts![model = &fresh]), ErrorKind::Format, &["not a checkpoint"]);
    checkpoints.resume_from(1, parts![model = &fresh])?;
    checkpoints.remove_after(1)?;
    assert_eq!(checkpoints.resume(parts![&model])?, Some(1));
    assert_eq!(values(&fresh), [1.0; 8]);
    Ok(())
}

#[test]
fn a_flipped_bit_is_noticed() -> Result<()> {
    let folder = Folder::new("flipped");
    let (model, mut epoch) = (layer(1.0)?, 3);
    let checkpoints = Checkpoints::new(&folder)?;
    checkpoints.save_with(1, parts![&model, &mut epoch], [("loss", 0.5)])?;
    checkpoints.save(2, parts![&model, &mut epoch])?;
    let path = folder.0.join("step-00000002.safetensors");
    let whole = fs::read(&path).unwrap();
    let (fresh, mut before) = (layer(0.0)?, 0);
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, &damaged).unwrap();
        let error = checkpoints.resume(parts![model = &fresh, epoch = &mut before]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format, "byte {at}: {error}");
        assert!(
            error.repair().is_some_and(|repair| repair.contains("resume_from(1, parts)")),
            "byte {at}: {error}"
        );
    }
    let mut damaged = whole;
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&path, &damaged).unwrap();
    let text = "step-00000002.safetensors: the content has changed since it was written";
    refused(checkpoints.load(2, parts![model = &fresh]), ErrorKind::Format, &[text]);
    assert_eq!((values(&fresh), before), (vec![0.0; 8], 0));
    Ok(())
}

#[test]
fn files_of_earlier_versions_have_no_checksum() -> Result<()> {
    let folder = Folder::new("earlier");
    let model = layer(1.0)?;
    let path = Checkpoints::new(&folder)?.save(1, parts![&model])?.path;
    let mut file = TensorFile::load(&path)?;
    file.metadata.remove("checksum").unwrap();
    file.save(&path)?;
    let fresh = layer(0.0)?;
    let resume = || Checkpoints::new(&folder)?.resume(parts![model = &fresh]);
    refused(resume(), ErrorKind::Format, &["the one in the file is missing"]);
    let header = file.metadata.get_mut("checkpoint").unwrap();
    *header = header.replace("\"has_checksum\":true,", "");
    file.save(&path)?;
    assert_eq!((resume()?, values(&fresh)), (Some(1), vec![1.0; 8]));
    Ok(())
}

#[test]
fn a_loop_goes_on_after_a_failed_resume() -> Result<()> {
    manual_seed(2);
    let folder = Folder::new("loop");
    let loader = Loader::builder(Samples::new((0..10).collect::<Vec<i64>>())).batch_size(2).build()?;
    let (narrow, wide) = (layer(1.0)?, Linear::new(("in", 3), ("out", 5))?);
    let checkpoints = Checkpoints::new(&folder)?;
    checkpoints.save(1, parts![&loader, model = &narrow])?;
    let mut batches = loader.iter();
    batches.next().unwrap()?;
    // The loader takes its state before the model refuses its own.
    refused(checkpoints.resume(parts![&loader, model = &wide]), ErrorKind::Value, &["part 'model'"]);
    assert_eq!(loader.batches_done(), 1);
    batches.next().unwrap()?;
    assert_eq!(loader.batches_done(), 2);
    drop(batches);
    assert_eq!((loader.epochs_done(), loader.iter().count()), (1, 5));
    Ok(())
}

/// A part that takes no state at all.
struct Stuck;

impl Resumable for Stuck {
    fn state(&self) -> Result<TensorFile> {
        Ok(TensorFile::default())
    }
    fn restore(&mut self, _: &TensorFile) -> Result<()> {
        Err(Error::new(ErrorKind::Value, "restore", "no"))
    }
}

#[test]
fn a_part_that_cannot_be_put_back_is_named() -> Result<()> {
    let folder = Folder::new("stuck");
    let checkpoints = Checkpoints::new(&folder)?;
    checkpoints.save(1, parts![stuck = &mut Stuck])?;
    let error = checkpoints.resume(parts![stuck = &mut Stuck]).unwrap_err();
    let text = "part 'stuck': no; after that, part 'stuck' could not be put back as it was: no";
    assert!(error.message().ends_with(text), "{error}");
    assert_eq!(error.location().file(), file!());
    Ok(())
}

#[derive(serde::Serialize, serde::Deserialize)]
struct History {
    best: Option<f64>,
    epoch: u64,
}

#[test]
fn a_nan_in_a_value_is_not_lost() -> Result<()> {
    let folder = Folder::new("nan");
    let checkpoints = Checkpoints::new(&folder)?;
    let mut history = History { best: Some(f64::NAN), epoch: 1 };
    refused(
        checkpoints.save(1, parts![&mut history]),
        ErrorKind::Value,
        &["part 'history': a value of type History cannot be saved: 'best' is NaN, which JSON cannot store"],
    );
    assert!(folder.files().is_empty());
    history.best = None;
    checkpoints.save(1, parts![&mut history])?;
    (history.best, history.epoch) = (Some(1.0), 2);
    checkpoints.resume(parts![&mut history])?;
    assert_eq!((history.best, history.epoch), (None, 1));
    Ok(())
}

#[test]
fn a_fitted_transformation_is_a_part() -> Result<()> {
    manual_seed(3);
    let folder = Folder::new("scaler");
    let checkpoints = Checkpoints::new(&folder)?;
    let mut scaler = Standardize::fit(&Tensor::randn([("N", 100), ("feature", 3)])?)?;
    let (fitted, mut other) = (scaler.clone(), Standardize::fit(&Tensor::ones([("N", 2)])?)?);
    checkpoints.save(1, parts![&mut scaler])?;
    checkpoints.resume(parts![scaler = &mut other])?;
    assert_eq!(other, fitted);
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_folder_without_permission_loses_nothing() -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("read-only");
    let model = layer(1.0)?;
    let checkpoints = Checkpoints::new(&folder)?;
    checkpoints.save(1, parts![&model])?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let is_root = fs::write(folder.0.join("probe"), "").is_ok(); // who may write anywhere
    let saved = checkpoints.save(2, parts![&model]);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    if !is_root {
        refused(saved, ErrorKind::Io, &["step-00000002.safetensors"]);
        assert_eq!(folder.files(), ["step-00000001.safetensors"]);
    }
    // A folder in the place of the file cannot be written by anybody.
    fs::create_dir(folder.0.join("step-00000003.safetensors")).unwrap();
    refused(checkpoints.save(3, parts![&model]), ErrorKind::Io, &["step-00000003.safetensors"]);
    Ok(())
}
