//! State dicts: what loading reports, shared parameters, dims and paths of other tools, and files that are
//! damaged or do not fit, after which nothing has changed.

use namegrad::core::NamedTensor;
use namegrad::io::{OpenFile, TensorFile};
use namegrad::names::strict;
use namegrad::nn::{Buffer, LoadOptions, LoadReport, StateDict};
use namegrad::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A file that is removed when the test ends.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        Temporary(std::env::temp_dir().join(format!("namegrad-state-dict-{}-{name}", std::process::id())))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[derive(Clone, Module)]
struct Model {
    embed: Embedding,
    hidden: Linear,
    norm: BatchNorm,
    steps: Buffer,
    /// The weight of `embed`.
    decoder: Parameter,
}

impl Model {
    fn new() -> Result<Model> {
        let embed = Embedding::new(("vocab", 5), ("embed", 3))?;
        Ok(Model {
            decoder: embed.weight().clone(),
            embed,
            hidden: Linear::new(("embed", 3), ("hidden", 2))?,
            norm: BatchNorm::new(("hidden", 2))?,
            steps: Buffer::new(Tensor::new(0i64)?),
        })
    }
}

/// All values as numbers.
fn numbers(model: &Model) -> Vec<(String, Vec<f64>)> {
    let state = model.state_dict();
    state
        .iter()
        .map(|(path, value)| (path.to_string(), value.to(DType::F64).unwrap().to_vec().unwrap()))
        .collect()
}

/// Loading fails and changes nothing.
fn refused(model: &Model, state: &StateDict, options: LoadOptions) -> Error {
    let before = numbers(model);
    let error = model.load_state_dict_with(state, options).unwrap_err();
    assert_eq!(numbers(model), before);
    error
}

#[test]
fn one_error_reports_everything() -> Result<()> {
    let model = Model::new()?;
    let mut state = Model::new()?.state_dict();
    let weight = state.remove("hidden.weight").unwrap();
    state.insert("hiden.weight", weight);
    state.insert("norm.running_mean", NamedTensor::zeros([("hidden", 7)])?);
    state.insert("norm.bias", NamedTensor::zeros([("other", 2)])?);
    state.insert("extra", NamedTensor::zeros([1])?);
    state.insert("steps", NamedTensor::new(1.5)?);
    let error = refused(&model, &state, LoadOptions::default());
    let text = error.to_string();
    for part in [
        "missing: hidden.weight (the state has hiden.weight)",
        "hiden.weight (the model has hidden.weight)",
        "extra",
        "norm.running_mean is [hidden=2] in the model and [hidden=7] in the state",
        "norm.bias is [hidden=2] in the model and [other=2] in the state",
        "steps is of int64 in the model and of float32 in the state",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    Ok(())
}

#[test]
fn a_module_that_moved_is_renamed() -> Result<()> {
    #[derive(Module)]
    struct Old {
        a: Linear,
        b: Linear,
    }
    #[derive(Module)]
    struct New {
        a: Linear,
        c: Linear,
    }
    #[derive(Module)]
    struct Longer {
        a: Linear,
        c: Linear,
        d: Linear,
    }
    let linear = |name: &str, size| Linear::new((name, 2), ("out", size));
    let state = Old { a: linear("in", 2)?, b: linear("in", 3)? }.state_dict();
    let repair = |model: &dyn Module, state: &StateDict| {
        let error = model.load_state_dict(state).unwrap_err();
        error.repair().expect("there is a repair").to_string()
    };
    let new = New { a: linear("in", 2)?, c: linear("in", 3)? };
    let load = "model.load_state_dict(&state)?";
    let renamed = format!("state.rename(\"b.**\", \"c.**\")?; {load}, if both mean the same");
    assert_eq!(repair(&new, &state), renamed);
    // What the repair says works.
    let mut renamed = state.clone();
    renamed.rename("b.**", "c.**")?;
    new.load_state_dict(&renamed)?;
    // Other names are another matter.
    let others = New { a: linear("C", 2)?, c: linear("C", 3)? };
    assert_eq!(
        repair(&others, &state),
        "state.rename(\"b.**\", \"c.**\")?; \
         model.load_state_dict_with(&state, LoadOptions::new().ignore_names(true))?, if the names mean the same"
    );
    // Values of other sizes, and those that could be of two modules, are not renamed.
    let partial = |lost: &str| {
        let call = "model.load_state_dict_with(&state, LoadOptions::new().partial(true))?";
        format!("{call}, which leaves initial values in the model: {lost}")
    };
    let both = partial("c.bias, c.weight");
    let other_size = New { a: linear("in", 2)?, c: linear("in", 4)? };
    assert_eq!(repair(&other_size, &state), both);
    let two = Longer { a: linear("in", 2)?, c: linear("in", 3)?, d: linear("in", 3)? };
    assert_eq!(repair(&two, &state), partial("c.bias, c.weight, d.bias, .. 4 in all"));
    let one_of_them = Longer { a: linear("in", 2)?, c: linear("in", 4)?, d: linear("in", 3)? };
    assert_eq!(
        repair(&one_of_them, &state),
        format!("state.rename(\"b.**\", \"d.**\")?; {both}, if both mean the same")
    );
    Ok(())
}

#[test]
fn a_loose_load_reports_the_same() -> Result<()> {
    let model = Model::new()?;
    let mut state = Model::new()?.state_dict();
    let weight = state.remove("hidden.weight").unwrap();
    state.insert("hiden.weight", weight);
    state.insert("norm.running_mean", NamedTensor::zeros([("hidden", 7)])?);
    refused(&model, &state, LoadOptions::new().partial(true));
    refused(&model, &state, LoadOptions::new().skip_mismatched(true));
    let before = model.hidden.weight().tensor();
    let report: LoadReport =
        model.load_state_dict_with(&state, LoadOptions::new().partial(true).skip_mismatched(true))?;
    assert_eq!(
        (&report.missing[..], &report.unexpected[..]),
        (&["hidden.weight".into()][..], &["hiden.weight".into()][..])
    );
    assert_eq!(report.mismatched[0].0, "norm.running_mean");
    assert!(!report.is_empty());
    assert!(model.hidden.weight().tensor().equal(&before)?);
    assert_eq!(
        model.hidden.bias().unwrap().tensor().to_vec::<f32>()?,
        state.get("hidden.bias").unwrap().to_vec::<f32>()?
    );
    assert!(model.load_state_dict_with(&Model::new()?.state_dict(), LoadOptions::default())?.is_empty());
    Ok(())
}

#[test]
fn a_shared_parameter_is_in_the_file_once_and_stays_shared() -> Result<()> {
    let (model, other) = (Model::new()?, Model::new()?);
    let state = model.state_dict();
    assert!(state.get("decoder").is_some() && state.get("embed.weight").is_some());
    let file = Temporary::new("tied.safetensors");
    state.save(&file.0)?;
    let raw = TensorFile::load(&file.0)?;
    assert!(!raw.tensors.contains_key("decoder"), "the file has the value twice");
    assert_eq!(raw.metadata["shared:decoder"], "embed.weight");
    let loaded = StateDict::load(&file.0)?;
    assert!(loaded.iter().map(|(path, _)| path).eq(state.iter().map(|(path, _)| path)));
    other.load_state_dict(&loaded)?;
    assert!(other.decoder.is(other.embed.weight()));
    assert!(other.decoder.tensor().equal(&model.decoder.tensor())?);

    // Files of other tools have one of the paths, in any way.
    for left in ["decoder", "embed.weight"] {
        let mut state = model.state_dict();
        state.remove(left);
        let other = Model::new()?;
        other.load_state_dict(&state)?;
        assert!(other.decoder.tensor().equal(&model.decoder.tensor())?);
    }
    // Two values for one parameter fit none.
    let mut state = model.state_dict();
    state.insert("decoder", NamedTensor::zeros([("vocab", 5), ("embed", 3)])?);
    let error = refused(&other, &state, LoadOptions::default());
    assert!(error.to_string().contains("embed.weight is the same parameter as decoder"), "{error}");
    // A value that was set by itself is saved by itself.
    state.save(&file.0)?;
    assert!(TensorFile::load(&file.0)?.tensors.contains_key("decoder"));
    // Without metadata, both paths are in the file.
    let arrays = Temporary::new("tied.npz");
    model.state_dict().save(&arrays.0)?;
    assert_eq!(StateDict::load(&arrays.0)?.len(), model.state_dict().len());
    Ok(())
}

#[test]
fn metadata_of_a_file_that_shares_what_it_does_not_have() -> Result<()> {
    let file = Temporary::new("shared.safetensors");
    for (key, first) in [("shared:a", "b"), ("shared:a", "a"), ("shared:b", "a")] {
        let mut content = TensorFile::default();
        content.tensors.insert("c".into(), NamedTensor::zeros([2])?);
        content.metadata.insert(key.into(), first.into());
        content.save(&file.0)?;
        assert_eq!(StateDict::load(&file.0).unwrap_err().kind(), ErrorKind::Format);
    }
    Ok(())
}

#[test]
fn files_without_names_load_by_position() -> Result<()> {
    let (model, other) = (Model::new()?, Model::new()?);
    for name in ["plain.npz", "plain.safetensors"] {
        let file = Temporary::new(name);
        let unnamed: StateDict =
            model.state_dict().iter().map(|(path, value)| (path.to_string(), value.unnamed())).collect();
        unnamed.save(&file.0)?;
        let state = StateDict::load(&file.0)?;
        assert!(!state.get("hidden.weight").unwrap().has_names());
        other.load_state_dict(&state)?;
        assert_eq!(numbers(&other), numbers(&model));
        assert_eq!(other.hidden.weight().tensor().shape().to_string(), "[hidden=2, embed=3]");
        assert!(strict(|| other.load_state_dict(&state)).is_err());
    }
    // A model without names takes the values of one with names.
    let plain = Linear::new(3, 2)?;
    plain.load_state_dict(&model.hidden.state_dict())?;
    assert!(!plain.weight().tensor().has_names());
    Ok(())
}

#[test]
fn dims_are_aligned_by_name() -> Result<()> {
    let conv = Conv2d::builder(("C", 2), ("F", 3), [("H", 2), ("W", 2)]).bias(false).build()?;
    let last = Conv2d::builder(("C", 2), ("F", 3), [("H", 2), ("W", 2)]).bias(false).build()?;
    let weight = conv.weight().tensor();
    // Another tool keeps the channels last, and calls the values otherwise.
    let mut state = StateDict::default();
    state.insert("conv.kernel", weight.align_to(["H", "W", "C", "F"])?.contiguous()?.into_value().unnamed());
    state.rename("conv.kernel", "weight")?;
    state.refine_names("weight", ["H", "W", "C", "F"])?;
    assert!(last.load_state_dict(&state).is_err());
    last.load_state_dict_with(&state, LoadOptions::new().align(true))?;
    assert!(last.weight().tensor().equal(&weight)?);
    assert_eq!(last.weight().tensor().shape().to_string(), "[F=3, C=2, H=2, W=2]");
    Ok(())
}

#[test]
fn paths_are_renamed_by_pattern() -> Result<()> {
    let model = Sequential::new().then(Linear::new(2, 2)?).then(Linear::new(2, 2)?);
    let mut state = model.state_dict();
    assert_eq!(state.rename("**", "module.**")?, 4);
    let error = model.load_state_dict(&state).unwrap_err();
    let repair = "state.rename(\"module.**\", \"**\")?; model.load_state_dict(&state)?";
    assert_eq!(error.repair(), Some(repair));
    // A checkpoint has more than the model.
    let mut checkpoint = state.clone();
    checkpoint.insert("optimizer.step", Tensor::new(3)?.into_value());
    let error = model.load_state_dict(&checkpoint).unwrap_err();
    let repair = "state.rename(\"module.**\", \"**\")?; model.load_state_dict_with(&state, LoadOptions::new().partial(true))?, \
                  which leaves out the unexpected values of the state";
    assert_eq!(error.repair(), Some(repair));
    // With another head, too.
    let mut other = state.clone();
    other.insert("module.1.weight", Tensor::zeros([5, 2])?.into_value());
    let error = model.load_state_dict(&other).unwrap_err();
    let repair = "state.rename(\"module.**\", \"**\")?; state.remove(\"1.weight\"); model.load_state_dict_with(&state, \
                  LoadOptions::new().partial(true))?, which leaves initial values in the model: 1.weight";
    assert_eq!(error.repair(), Some(repair));
    checkpoint.rename("module.**", "**")?;
    let report = model.load_state_dict_with(&checkpoint, LoadOptions::new().partial(true))?;
    assert_eq!((report.missing.len(), report.unexpected), (0, vec!["optimizer.step".to_string()]));

    state.rename("module.**", "**")?;
    model.load_state_dict(&state)?;
    state.rename("*.weight", "layers.*.kernel")?;
    assert!(state.get("layers.1.kernel").is_some() && state.get("1.bias").is_some());

    let before = state.clone();
    for (from, to) in
        [("*.weight", "*.w"), ("*.bias", "bias"), ("*.bias", "*.*"), ("*.bias", "layers.*.kernel")]
    {
        let error = state.rename(from, to).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()), "{error}");
        assert!(state.iter().map(|(path, _)| path).eq(before.iter().map(|(path, _)| path)));
    }
    assert!(state.rename("*.wieght", "*.w").unwrap_err().to_string().contains("layers.0.kernel"));
    // Shared paths are renamed together.
    let mut state = Model::new()?.state_dict();
    state.rename("**", "model.**")?;
    let file = Temporary::new("renamed.safetensors");
    state.save(&file.0)?;
    assert_eq!(TensorFile::load(&file.0)?.metadata["shared:model.decoder"], "model.embed.weight");
    Ok(())
}

#[test]
fn a_file_mapped_into_memory() -> Result<()> {
    let (model, other) = (Model::new()?, Model::new()?);
    let file = Temporary::new("mapped.safetensors");
    model.state_dict().save(&file.0)?;
    // SAFETY: nobody else knows the file.
    let mapped = unsafe { OpenFile::map(&file.0)? };
    other.load_state_dict(&StateDict::from_file(&mapped)?)?;
    assert_eq!(numbers(&other), numbers(&model));
    Ok(())
}

/// Each cut and each changed byte gives an error or a state of the same paths, never half of a state.
#[test]
fn damaged_files_change_nothing() -> Result<()> {
    let model = Model::new()?;
    for name in ["damaged.safetensors", "damaged.npz"] {
        let file = Temporary::new(name);
        model.state_dict().save(&file.0)?;
        let bytes = std::fs::read(&file.0).unwrap();
        let before = numbers(&model);
        for length in (0..bytes.len()).step_by(7) {
            std::fs::write(&file.0, &bytes[..length]).unwrap();
            let error = StateDict::load(&file.0).map(drop).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Format), "{name} of {length} bytes: {error}");
        }
        for at in (0..bytes.len()).step_by(5) {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x55;
            std::fs::write(&file.0, &wrong).unwrap();
            let loaded = StateDict::load(&file.0).and_then(|state| {
                let other = model.deep_copy()?;
                let own = numbers(&other);
                match other.load_state_dict(&state) {
                    Ok(()) => Ok(()),
                    Err(error) => {
                        assert_eq!(numbers(&other), own, "{name}, byte {at}: {error}");
                        Err(error)
                    }
                }
            });
            drop(loaded);
        }
        assert_eq!(numbers(&model), before);
    }
    Ok(())
}

#[test]
fn a_load_inside_of_an_update_changes_nothing() -> Result<()> {
    let model = Linear::new(2, 2)?;
    let other = Linear::new(2, 2)?.state_dict();
    let before = model.state_dict();
    let error = model.weight().update(|_| model.load_state_dict(&other)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Autograd);
    for (path, value) in before.iter() {
        assert_eq!(value.to_vec::<f32>()?, model.state_dict().get(path).unwrap().to_vec::<f32>()?, "{path}");
    }
    Ok(())
}

#[test]
fn a_file_that_cannot_be_written_leaves_the_old_one() -> Result<()> {
    let model = Model::new()?;
    let file = Temporary::new("old.npz");
    model.state_dict().save(&file.0)?;
    let bytes = std::fs::read(&file.0).unwrap();
    let mut state = model.state_dict();
    state.insert("half", NamedTensor::zeros([2])?.to(DType::BF16)?); // NumPy has none
    assert_eq!(state.save(&file.0).unwrap_err().kind(), ErrorKind::DType);
    assert_eq!(std::fs::read(&file.0).unwrap(), bytes);
    Ok(())
}

#[test]
fn layers_can_share_a_weight() -> Result<()> {
    let table = Embedding::new(("vocab", 5), ("embed", 3))?;
    let head = Linear::builder(("embed", 3), ("vocab", 5)).weight(table.weight()).bias(false).build()?;
    let model = Sequential::new().then_named("table", table.clone()).then_named("head", head.clone());
    assert_eq!((model.named_parameters().len(), model.parameters().len()), (2, 1));
    model.forward(&Tensor::new([1, 4])?)?.sum(..)?.backward()?;
    assert_eq!(head.weight().grad().unwrap(), table.weight().grad().unwrap());
    let file = Temporary::new("weight.safetensors");
    model.state_dict().save(&file.0)?;
    model.load_state_dict(&StateDict::load(&file.0)?)?;
    assert!(head.weight().is(table.weight()));
    let again = Embedding::builder(5, 3).padding_idx(1).weight(head.weight()).build()?; // by position
    assert!(again.weight().is(table.weight()));

    let copy = head.deep_copy()?;
    assert!(!copy.weight().is(head.weight()));
    for (layer, kind) in [
        (Linear::builder(("embed", 3), ("vocab", 4)), ErrorKind::Shape),
        (Linear::builder(("vocab", 3), ("embed", 5)), ErrorKind::NameMismatch),
    ] {
        let error = layer.weight(table.weight()).build().unwrap_err();
        assert_eq!((error.kind(), error.op(), error.location().file()), (kind, "Linear", file!()));
    }
    let error = Embedding::builder(("vocab", 5), ("embed", 2)).weight(table.weight()).build().unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Shape, "Embedding"));
    let message =
        "the weight of this layer has the dims [vocab=5, embed=2], and the given one has [vocab=5, embed=3]";
    assert_eq!(error.message(), message);
    Ok(())
}

#[test]
fn a_tensor_could_not_be_saved_without_a_module() -> Result<()> {
    use namegrad::io::TensorFile;
    let folder = std::env::temp_dir().join(format!("namegrad-tensor-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let at = |name: &str| folder.join(name);
    let x = Tensor::new([[1.5, f64::NEG_INFINITY]])?.refine_names(["N", "C"])?.requiring_grad()?;
    for dtype in [DType::BF16, DType::F32, DType::I64, DType::Bool] {
        let y = x.detach().to(dtype)?;
        y.t()?.save(at("x.safetensors"))?;
        assert_eq!(Tensor::load(at("x.safetensors"))?, y.t()?);
        let written = y.t()?.save(at("x.npy"));
        match dtype {
            DType::BF16 => assert_eq!(written.unwrap_err().op(), "save"),
            _ => assert_eq!(Tensor::load(at("x.npy"))?, y.t()?.rename(None)?),
        }
    }
    x.save(at("x.SafeTensors"))?;
    assert!(!Tensor::load(at("x.SafeTensors"))?.requires_grad());
    let mut two = TensorFile::default();
    for name in ["a", "b"] {
        two.tensors.insert(name.into(), x.value().clone());
    }
    two.save(at("two.safetensors"))?;
    for (error, kind) in [
        (x.save(at("x.pt")).unwrap_err(), ErrorKind::Value),
        (Tensor::load(at("x")).unwrap_err(), ErrorKind::Value),
        (Tensor::load(at("none.npy")).unwrap_err(), ErrorKind::Io),
        (Tensor::load(at("two.safetensors")).unwrap_err(), ErrorKind::Format),
    ] {
        assert_eq!((error.kind(), error.location().file()), (kind, file!()), "{error}");
        assert!(["save", "load"].contains(&error.op()), "{error}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    Ok(())
}

/// The error of loading `state` into `model`, as text, and its repair.
fn advice(model: &dyn Module, state: &StateDict) -> (String, Option<String>) {
    let error = model.load_state_dict(state).unwrap_err();
    (error.to_string(), error.repair().map(String::from))
}

#[derive(Module)]
struct Tagger {
    embed: Embedding,
    hidden2tag: Linear,
}

impl Tagger {
    fn new() -> Result<Tagger> {
        Ok(Tagger {
            embed: Embedding::new(("word", 5), ("hidden", 48))?,
            hidden2tag: Linear::new(("hidden", 48), ("tag", 9))?,
        })
    }
}

#[test]
fn a_misspelt_path_is_renamed() -> Result<()> {
    let (model, mut state) = (Tagger::new()?, Tagger::new()?.state_dict());
    state.rename("hidden2tag.weight", "hidden2tag.weigth")?;
    let want = "state.rename(\"hidden2tag.weigth\", \"hidden2tag.weight\")?; model.load_state_dict(&state)?, \
                if both mean the same";
    assert_eq!(advice(&model, &state).1.as_deref(), Some(want));
    state.rename("hidden2tag.weigth", "hidden2tag.weight")?;
    model.load_state_dict(&state)
}

#[test]
fn modules_inside_of_blocks_are_renamed_at_once() -> Result<()> {
    let block = |norm: &str| -> Result<Sequential> {
        let (linear, norm_layer) = (Linear::new(("C", 4), ("C", 4))?, BatchNorm::new(("C", 4))?);
        Ok(Sequential::new().then_named("conv", linear).then_named(norm, norm_layer))
    };
    let model = |norm: &str| -> Result<Sequential> {
        let mut blocks = Sequential::new();
        for _ in 0..12 {
            blocks = blocks.then(block(norm)?);
        }
        Ok(Sequential::new().then_named("blocks", blocks))
    };
    let (own, mut state) = (model("bn1")?, model("norm")?.state_dict());
    let (text, repair) = advice(&own, &state);
    let rename = "state.rename(\"blocks.*.norm.**\", \"blocks.*.bn1.**\")?; model.load_state_dict(&state)?, if both mean the same";
    assert_eq!(repair.as_deref(), Some(rename));
    assert!(text.len() < 1200 && text.contains(".. 60 in all"), "{} bytes: {text}", text.len());
    assert_eq!(state.rename("blocks.*.norm.**", "blocks.*.bn1.**")?, 60);
    own.load_state_dict(&state)
}

#[test]
fn the_file_of_another_model_is_called_that() -> Result<()> {
    let model = Tagger::new()?;
    let other = Sequential::new().then(Linear::new(3, 4)?).then(Linear::new(4, 2)?).state_dict();
    let (text, repair) = advice(&model, &other);
    assert!(text.contains("the state is that of another model, 0 of the 3 paths fit"), "{text}");
    assert!(!text.contains("the state has") && !text.contains("the model has"), "{text}");
    assert_eq!(repair, None);
    // A partial load of nothing.
    for options in [LoadOptions::new().partial(true), LoadOptions::new().partial(true).skip_mismatched(true)]
    {
        let error = model.load_state_dict_with(&other, options).unwrap_err();
        assert!(error.message().contains("another model"), "{error}");
    }
    Ok(())
}

#[test]
fn transposed_weights_are_named_and_aligned() -> Result<()> {
    let (model, other) = (Tagger::new()?, Tagger::new()?);
    let mut state = other.state_dict();
    let turned = other.hidden2tag.weight().tensor().t()?.into_value().unnamed();
    state.insert("hidden2tag.weight", turned);
    let want = "state.refine_names(\"hidden2tag.weight\", [\"hidden\", \"tag\"])?; \
                model.load_state_dict_with(&state, LoadOptions::new().align(true))?, \
                if the file has the dims in this order; square weights stay as they are in the file";
    assert_eq!(advice(&model, &state).1.as_deref(), Some(want));
    state.refine_names("hidden2tag.weight", ["hidden", "tag"])?;
    model.load_state_dict_with(&state, LoadOptions::new().align(true))?;
    assert!(model.hidden2tag.weight().tensor().equal(&other.hidden2tag.weight().tensor())?);
    // The names are swapped, or it is another model.
    state.insert("hidden2tag.weight", NamedTensor::zeros([("hidden", 9), ("tag", 48)])?);
    let repair = advice(&model, &state).1.unwrap();
    let want = "a model with tag=48 and hidden=9, whose sizes are those of the state, and LoadOptions::new().align(true); \
                or, if the names in the state are wrong, LoadOptions::new().ignore_names(true)";
    assert_eq!(repair, want);
    // Of other sizes.
    let small = Linear::new(("hidden", 48), ("tag", 7))?.state_dict();
    let repair = advice(&model.hidden2tag, &small).1;
    assert_eq!(repair.as_deref(), Some("a model with tag=7, whose sizes are those of the state"));
    Ok(())
}

#[test]
fn values_that_stay_are_named() -> Result<()> {
    let (model, mut state) = (Tagger::new()?, Tagger::new()?.state_dict());
    state.insert("hidden2tag.bias", NamedTensor::zeros([("tag", 7)])?);
    let want = "state.remove(\"hidden2tag.bias\"); model.load_state_dict_with(&state, LoadOptions::new().partial(true))?, \
                which leaves initial values in the model: hidden2tag.bias";
    assert_eq!(advice(&model, &state).1.as_deref(), Some(want));
    // An unnamed file in strict mode.
    let plain: StateDict =
        Tagger::new()?.state_dict().iter().map(|(path, x)| (path.into(), x.unnamed())).collect();
    let repair = strict(|| advice(&model, &plain)).1.unwrap();
    assert!(repair.contains("ignore_names(true)") && repair.contains("strict mode"), "{repair}");
    strict(|| model.load_state_dict_with(&plain, LoadOptions::new().ignore_names(true)))?;
    Ok(())
}

#[test]
fn files_of_before_the_batches_were_counted() -> Result<()> {
    let (model, mut state) = (Model::new()?, Model::new()?.state_dict());
    state.remove("norm.num_batches_tracked");
    model.load_state_dict(&state)?;
    state.remove("norm.running_mean");
    let error = refused(&model, &state, LoadOptions::default());
    assert!(error.message().contains("norm.num_batches_tracked"), "{error}");
    Ok(())
}

#[test]
fn the_only_path_that_is_left_is_renamed() -> Result<()> {
    let model =
        || -> Result<Sequential> { Ok(Sequential::new().then(Linear::new(3, 4)?).then(Linear::new(4, 2)?)) };
    let (own, mut state) = (model()?, model()?.state_dict());
    state.rename("1.weight", "1.kernel")?;
    let (_, repair) = advice(&own, &state);
    let want =
        "state.rename(\"1.kernel\", \"1.weight\")?; model.load_state_dict(&state)?, if both mean the same";
    assert_eq!(repair.as_deref(), Some(want));
    // Not of other sizes, nor if there are two.
    let mut other = state.clone();
    other.insert("1.kernel", NamedTensor::zeros([5, 5])?);
    assert!(!advice(&own, &other).1.unwrap().contains("rename"));
    let mut more = state.clone();
    more.insert("more", NamedTensor::zeros([2, 4])?);
    assert!(!advice(&own, &more).1.unwrap().contains("rename"));
    state.rename("1.kernel", "1.weight")?;
    own.load_state_dict(&state)
}

#[test]
fn a_pattern_removes_several_values() -> Result<()> {
    let mut state = Tagger::new()?.state_dict();
    assert!(state.remove("hidden2tag.*").is_none());
    assert_eq!(state.remove_all("hidden2tag.*")?, 2);
    assert_eq!(state.len(), 1);
    let error = state.remove_all("hidden2tag.*").unwrap_err();
    assert!(error.kind() == ErrorKind::Value && error.message().contains("hidden2tag"), "{error}");
    Ok(())
}

/// A model with these paths.
#[derive(Module)]
struct Values {
    #[module(flatten)]
    values: BTreeMap<String, Parameter>,
}

impl Values {
    fn new(paths: &[&str]) -> Result<Values> {
        let value = |path: &&str| Ok((path.to_string(), Parameter::new(Tensor::zeros(size(path))?)?));
        Ok(Values { values: paths.iter().map(value).collect::<Result<_>>()? })
    }
}

fn size(path: &str) -> usize {
    if path.ends_with('b') || path.ends_with("bias") { 4 } else { 5 }
}

/// Loads a state whose paths have other names than those of the model, and follows the renames of the repair:
/// each value must get where it belongs. Returns the repair.
fn follow(paths: &[(&str, &str)]) -> Result<Option<String>> {
    let model = Values::new(&paths.iter().map(|(to, _)| *to).collect::<Vec<&str>>())?;
    let mut state = StateDict::default();
    for (at, (to, from)) in paths.iter().enumerate() {
        state.insert(*from, NamedTensor::full(size(to), at as f64)?);
    }
    let Some(repair) = advice(&model, &state).1 else { return Ok(None) };
    for call in repair.split("state.rename(\"").skip(1) {
        let mut texts = call.split('"').step_by(2);
        state.rename(texts.next().unwrap(), texts.next().unwrap())?;
    }
    model.load_state_dict(&state)?;
    for (at, (path, _)) in paths.iter().enumerate() {
        assert_eq!(model.values[*path].tensor().mean(..)?.item::<f64>()?, at as f64, "{path}: {repair}");
    }
    Ok(Some(repair))
}

#[test]
fn layers_that_are_numbered_in_another_way_keep_their_order() -> Result<()> {
    let renamed = |calls: &str, note: &str| Some(format!("{calls}model.load_state_dict(&state)?{note}"));
    let same = ", if these paths mean the same";
    // With activations between them, as in PyTorch.
    let numbers = [("0.weight", "0.weight"), ("1.weight", "2.weight"), ("2.weight", "4.weight")];
    let calls = "state.rename(\"2.**\", \"1.**\")?; state.rename(\"4.**\", \"2.**\")?; ";
    assert_eq!(follow(&numbers)?, renamed(calls, same));
    // From one, or from zero; up and down; in words.
    for paths in [
        [("layers.0.w", "layers.1.w"), ("layers.1.w", "layers.2.w"), ("layers.2.w", "layers.3.w")],
        [("fc1.w", "fc0.w"), ("fc2.w", "fc1.w"), ("fc3.w", "fc2.w")],
        [("norm1.w", "norm0.w"), ("norm2.w", "norm1.w"), ("fc.w", "fc.w")],
        [("layers.0.w", "layer1.w"), ("layers.1.w", "layer2.w"), ("layers.2.w", "layer3.w")],
        [("fc1.w", "0.w"), ("fc2.w", "2.w"), ("fc3.w", "4.w")],
        [("h.8.w", "h.9.w"), ("h.9.w", "h.10.w"), ("h.10.w", "h.11.w")],
    ] {
        assert!(follow(&paths)?.is_some_and(|repair| repair.contains("mean the same")), "{paths:?}");
    }
    Ok(())
}

#[test]
fn layers_with_other_names_are_renamed() -> Result<()> {
    for (paths, calls) in [
        (
            [("norm1.w", "bn1.w"), ("norm2.w", "bn2.w"), ("norm1.b", "bn1.b"), ("norm2.b", "bn2.b")],
            "state.rename(\"bn*.**\", \"norm*.**\")?; ",
        ),
        (
            [
                ("layers.0.w", "layers_0.w"),
                ("layers.1.w", "layers_1.w"),
                ("out.w", "out.w"),
                ("out.b", "out.b"),
            ],
            "state.rename(\"layers_*.**\", \"layers.*.**\")?; ",
        ),
        (
            [("fc1.w", "lin1.w"), ("fc1.b", "lin1.b"), ("out.w", "out.w"), ("out.b", "out.b")],
            "state.rename(\"lin1.**\", \"fc1.**\")?; ",
        ),
        (
            [("q.w", "q_proj.w"), ("k.w", "k_proj.w"), ("v.w", "v_proj.w"), ("o.b", "o.b")],
            "state.rename(\"k_proj.**\", \"k.**\")?; state.rename(\"q_proj.**\", \"q.**\")?; \
             state.rename(\"v_proj.**\", \"v.**\")?; ",
        ),
        (
            [("q.w", "query.w"), ("k.w", "key.w"), ("v.w", "value.w"), ("o.b", "o.b")],
            "state.rename(\"key.**\", \"k.**\")?; state.rename(\"query.**\", \"q.**\")?; \
             state.rename(\"value.**\", \"v.**\")?; ",
        ),
        (
            [("a.weight", "a.w"), ("b.weight", "b.w"), ("a.bias", "a.bias"), ("b.bias", "b.bias")],
            "state.rename(\"**.w\", \"**.weight\")?; ",
        ),
        (
            [("a.weight", "a.gamma"), ("b.weight", "b.gamma"), ("a.bias", "a.beta"), ("b.bias", "b.beta")],
            "state.rename(\"**.beta\", \"**.bias\")?; state.rename(\"**.gamma\", \"**.weight\")?; ",
        ),
    ] {
        let repair = follow(&paths)?.unwrap_or_default();
        assert!(repair.starts_with(calls) && repair.contains("mean the same"), "{paths:?}: {repair}");
    }
    Ok(())
}

/// Words that look misspelt, and prefixes of some paths, can be other layers.
#[test]
fn a_rename_that_may_be_of_another_layer_says_so() -> Result<()> {
    for paths in [
        &[("decoder.w", "encoder.w"), ("out.b", "out.b")][..],
        &[("norm.running_var", "norm.running_mean"), ("out.b", "out.b")],
        &[("norm.w", "blocks.0.norm.w"), ("head.b", "head.b")],
        &[("fc.w", "teacher.fc.w"), ("out.b", "student.out.b")],
    ] {
        let repair = follow(paths)?.unwrap_or_default();
        assert!(repair.contains("mean the same"), "{paths:?}: {repair}");
    }
    let whole = follow(&[("fc.w", "net.fc.w"), ("out.b", "net.out.b")])?.unwrap_or_default();
    assert_eq!(whole, "state.rename(\"net.**\", \"**\")?; model.load_state_dict(&state)?");
    Ok(())
}

#[test]
fn paths_that_could_be_several_layers_are_not_renamed() -> Result<()> {
    // Which is which nothing says.
    let repair = follow(&[("left.w", "one.w"), ("right.w", "two.w"), ("out.b", "out.b")])?;
    assert_eq!(repair, None);
    // A deeper model: another layer would get the value.
    let deeper = Values::new(&["fc1.w", "fc2.w"])?;
    let mut state = StateDict::default();
    state.insert("fc0.w", NamedTensor::zeros(5)?);
    let repair = advice(&deeper, &state).1;
    assert!(!repair.clone().unwrap_or_default().contains("rename"), "{repair:?}");
    Ok(())
}

#[test]
fn values_in_the_order_of_another_library_are_permuted() -> Result<()> {
    let model = Conv2d::builder(("C", 3), ("D", 4), [5, 5]).bias(false).build()?;
    let weight = model.weight().tensor().into_value().unnamed();
    let mut state = StateDict::default();
    state.insert("weight", weight.permute([2, 3, 1, 0])?.contiguous()?);
    let want = "state.insert(\"weight\", state.get(\"weight\").unwrap().permute([3, 2, 0, 1])?); \
                model.load_state_dict(&state)?, if the file has the dims in this order; \
                square weights stay as they are in the file";
    assert_eq!(advice(&model, &state).1.as_deref(), Some(want));
    state.insert("weight", state.get("weight").unwrap().permute([3, 2, 0, 1])?);
    model.load_state_dict(&state)?;
    assert_eq!(model.weight().tensor().to_vec::<f32>()?, weight.to_vec::<f32>()?);
    Ok(())
}

/// Values are not replaced by a state that has none, and a file of such a state is an error that names one.
#[test]
fn states_without_elements_are_refused() -> Result<()> {
    let (model, meta) = (Model::new()?, on_device(Device::Meta, Model::new)?);
    let before = numbers(&model);
    let error = model.load_state_dict(&meta.state_dict()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device, "{error}");
    assert!(error.to_string().starts_with("load_state_dict: 'decoder': "), "{error}");
    assert!(error.location().file().ends_with("state_dict.rs"), "{error}");
    // One value of many.
    let mut mixed: Vec<(String, NamedTensor)> =
        model.state_dict().iter().map(|(path, value)| (path.into(), value.clone())).collect();
    let bias = mixed.iter_mut().find(|(path, _)| path == "hidden.bias").unwrap();
    bias.1 = bias.1.to_device(Device::Meta)?;
    let mixed: StateDict = mixed.into_iter().collect();
    let error = model.load_state_dict(&mixed).unwrap_err();
    assert!(error.to_string().contains("'hidden.bias': "), "{error}");
    assert_eq!(numbers(&model), before);
    // A file.
    let file = Temporary::new("meta.safetensors");
    for error in [meta.state_dict().save(&file.0).unwrap_err(), mixed.save(&file.0).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("': needs the elements"), "{error}");
    }
    assert!(!file.0.exists());
    // Values for a model that was made without.
    meta.load_state_dict(&model.state_dict())?;
    assert_eq!(numbers(&meta), before);
    Ok(())
}
