//! Optimizers, schedules, files, data sets, loaders and runs.

use super::{Advice, follow};
use namegrad::autograd::{autocast, detect_anomaly};
use namegrad::core::NamedTensor;
use namegrad::data::sampler::{Random, Weighted};
use namegrad::data::{Dataset, Fill, Samples, Standardize, Stream, Vocabulary, Windows};
use namegrad::io::TensorFile;
use namegrad::optim;
use namegrad::optim::schedule::SchedulerState;
use namegrad::optim::{AveragedModel, ClipGradNormOptions, GradScaler, clip_grad_norm_with_};
use namegrad::prelude::*;
use namegrad::train::log::Log;
use namegrad::train::lr_finder::LrFinder;
use namegrad::train::meters::{Accuracy, ConfusionMatrix, Regression, RocAuc};
use namegrad::train::pictures::{Chart, Images};
use namegrad::train::{Best, Checkpoints, EarlyStopping, HealthWatch, Parts, parts};
use std::path::PathBuf;

pub(super) fn follow(advice: &mut Advice) -> Result<()> {
    optimizers(advice)?;
    scaling(advice)?;
    schedules(advice)?;
    files(advice)?;
    tables(advice)?;
    data(advice)?;
    loaders(advice)?;
    checkpoints(advice)?;
    runs(advice)
}

/// A folder for the files of a case, which is removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("namegrad-advice-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder for temporary files");
        Folder(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn layer() -> Result<Linear> {
    Linear::new(("in", 3), ("out", 2))
}

fn loss(model: &Linear) -> Result<Tensor> {
    model.forward(&Tensor::ones([("N", 4), ("in", 3)])?)?.square()?.mean(..)
}

fn optimizers(advice: &mut Advice) -> Result<()> {
    let model = layer()?;
    let twice = || model.parameters().into_iter().chain(model.parameters());
    follow!(advice, AdamW::builder(twice()).build() => { assert_eq!(AdamW::builder(model.parameters()).build()?.group_parameters(0).len(), 2) });
    follow!(advice, AdamW::builder([] as [Parameter; 0]).build() => { assert_eq!(AdamW::builder(model.parameters()).build()?.lrs(), [1e-3]) });
    follow!(advice, AdamW::builder(model.parameters()).group_matching("**.bias", |_| {}).build() => {
        let named = AdamW::builder_named(model.named_parameters());
        assert_eq!(named.group_matching("bias", |_| {}).build()?.lrs().len(), 2)
    });
    follow!(advice, AdamW::builder_named(model.named_parameters()).group_matching("biass", |_| {}).build() => {
        let optimizer = AdamW::builder_named(model.named_parameters()).group_matching("bias", |_| {}).build()?;
        assert_eq!(optimizer.lrs().len(), 2)
    });
    follow!(advice, Lbfgs::builder_named(model.named_parameters()).group_matching("bias", |_| {}).build() => {
        assert_eq!(Lbfgs::builder(model.parameters()).build()?.lrs().len(), 1)
    });
    let parameter = Parameter::new(Tensor::ones([3])?)?;
    follow!(advice, Muon::builder([parameter.clone()]).build() => { let parameter = parameter.clone(); assert_eq!(AdamW::builder([parameter]).build()?.lrs().len(), 1) });
    let mut optimizer = Lbfgs::new(model.parameters())?;
    follow!(advice, optimizer.step() => {
        let mut optimizer = Lbfgs::new(model.parameters())?;
        let closure = || -> Result<Tensor> { optimizer_loss(&model) };
        assert!(optimizer.step_with(&mut || closure())?.item::<f64>()? >= 0.0)
    });
    let mut optimizer = Sgd::builder_named(model.named_parameters()).build()?;
    let of = |names: [&str; 2]| -> Result<_> {
        let named = model.parameters().into_iter().zip(names).map(|(own, name)| (name.to_string(), own));
        Ok(Sgd::builder_named(named.collect::<Vec<_>>()).build()?.state_dict())
    };
    let state = of(["a", "b"])?;
    follow!(advice, optimizer.load_state_dict(&state) => {
        let mut optimizer = Sgd::builder_named(model.named_parameters()).build()?;
        optimizer.load_state_dict(&state.ignore_names())?;
        assert_eq!(optimizer.lrs().len(), 1)
    });
    let fresh = layer()?;
    let unused = loss(&fresh)?;
    follow!(advice, Sgd::builder(fresh.parameters()).build()?.step() => {
        let loss = loss(&fresh)?;
        loss.backward()?;
        Sgd::builder(fresh.parameters()).build()?.step()?;
        assert!(fresh.weight().grad().is_some() && unused.requires_grad())
    });
    let mut optimizer = Sgd::builder(fresh.parameters()).build()?;
    loss(&fresh)?.backward()?;
    optimizer.zero_grad();
    follow!(advice, optimizer.step() => {
        let (loss, mut optimizer) = (loss(&fresh)?, Sgd::builder(fresh.parameters()).build()?);
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        assert!(fresh.weight().grad().is_some())
    });
    let wrong = || loss(&fresh).and_then(|loss| loss.backward().map(|()| loss));
    follow!(advice, optimizer.step_with(&mut || wrong()) => {
        let mut optimizer = Sgd::builder(fresh.parameters()).build()?;
        assert!(optimizer.step_with(&mut || loss(&fresh))?.item::<f64>()? >= 0.0)
    });
    let (other, p) = (Linear::new(("a", 3), ("b", 2))?, model.weight());
    let mut optimizer = Sgd::builder(other.parameters()).build()?;
    let state = Sgd::builder(model.parameters()).build()?.state_dict();
    follow!(advice, optimizer.load_state_dict(&state) => {
        let mut optimizer = Sgd::builder(other.parameters()).build()?;
        optimizer.load_state_dict(&state.ignore_names())?;
        assert_eq!(optimizer.lrs().len(), 1)
    });
    let mut optimizer = Sgd::builder(model.parameters()).lr(0.1).build()?;
    let g = Tensor::ones([("in", 3), ("out", 2)])?;
    p.set_grad(Some(g.align_as(&p.tensor())?.rename(["out", "other"])?))?;
    follow!(advice, optimizer.step() => {
        let mut optimizer = Sgd::builder(model.parameters()).lr(0.1).build()?;
        p.set_grad(Some(g.align_as(&p.tensor())?))?;
        optimizer.step()?;
        assert!(p.grad().is_some())
    } { let g = g.t()?; p.set_grad(Some(g.rename(None)?))?; assert!(!p.grad().unwrap().has_names()) });
    p.set_grad(Some(Tensor::full([2, 3], f64::NAN)?))?;
    let strict = || ClipGradNormOptions::new().error_if_nonfinite(true);
    follow!(advice, clip_grad_norm_with_([p], 1.0, strict()) => {
        let found = detect_anomaly(|| p.tensor().mul(f64::NAN)?.sum(..)?.backward());
        assert!(found.unwrap_err().message().contains("'mul'"))
    });
    p.set_grad(None)?;
    follow!(advice, AveragedModel::ema(&model, 2.0) => { assert_eq!(AveragedModel::ema(&model, 0.999)?.n_averaged(), 0) });
    let mut average = AveragedModel::new(&model)?;
    let other = Linear::new(("in", 4), ("out", 2))?;
    follow!(advice, average.update_parameters(&other) => {
        let model = other.clone();
        let mut average = AveragedModel::new(&model)?;
        average.update_parameters(&model)?;
        assert_eq!(average.n_averaged(), 1)
    });
    let other = Sequential::new();
    follow!(advice, average.update_parameters(&other) => { let model = layer()?; let mut average = AveragedModel::new(&model)?; average.update_parameters(&model)?; assert_eq!(average.n_averaged(), 1) });
    Ok(())
}

fn optimizer_loss(model: &Linear) -> Result<Tensor> {
    loss(model)
}

fn scaling(advice: &mut Advice) -> Result<()> {
    let model = layer()?;
    let mut optimizer = Sgd::builder(model.parameters()).lr(0.1).build()?;
    let loss = loss(&model)?;
    follow!(advice, GradScaler::builder().init_scale(0.0).build() => { assert!(GradScaler::builder().init_scale(65536.0).build().is_ok()) });
    follow!(advice, GradScaler::builder().growth_factor(0.5).build() => { let scaler = GradScaler::builder().growth_factor(2.0).backoff_factor(0.5).growth_interval(2000).build()?; assert_eq!(scaler.steps_taken(), 0) });
    let (logits, target) = (Tensor::ones([("N", 2), ("class", 3)])?, Tensor::new([0, 1])?);
    follow!(advice, GradScaler::new().scale(&target) => { assert!(GradScaler::new().scale(&F::cross_entropy(&logits, &target, "class")?).is_ok()) });
    follow!(advice, GradScaler::new().step(&mut optimizer) => {
        let mut scaler = GradScaler::new();
        scaler.scale(&loss)?.backward()?;
        assert!(scaler.step(&mut optimizer)?)
    });
    let mut scaler = GradScaler::new();
    follow!(advice, scaler.update() => {
        let model = layer()?;
        let (mut scaler, mut optimizer) = (GradScaler::new(), Sgd::builder(model.parameters()).build()?);
        let loss = optimizer_loss(&model)?;
        scaler.scale(&loss)?.backward()?;
        scaler.step(&mut optimizer)?;
        scaler.update()?;
        assert_eq!(scaler.steps_taken(), 1)
    });
    scaler.scale(&optimizer_loss(&model)?)?.backward()?;
    follow!(advice, scaler.update() => {
        scaler.step(&mut optimizer)?;
        scaler.update()?;
        assert_eq!(scaler.steps_taken(), 1)
    });
    let untouched = layer()?;
    let mut other = Sgd::builder(untouched.parameters()).build()?;
    scaler.scale(&Tensor::ones([1])?)?;
    follow!(advice, scaler.step(&mut other) => {
        let (mut scaler, loss) = (GradScaler::new(), optimizer_loss(&untouched)?);
        scaler.scale(&loss)?.backward()?;
        let mut other = Sgd::builder(untouched.parameters()).build()?;
        assert!(scaler.step(&mut other)?)
    });
    let mut scaler = GradScaler::new();
    scaler.scale(&optimizer_loss(&model)?)?.backward()?;
    scaler.unscale_(&mut optimizer)?;
    follow!(advice, scaler.unscale_(&mut optimizer) => {
        let mut scaler = GradScaler::new();
        scaler.scale(&optimizer_loss(&model)?)?.backward()?;
        scaler.unscale_(&mut optimizer)?;
        scaler.step(&mut optimizer)?;
        scaler.update()?;
        scaler.scale(&optimizer_loss(&model)?)?.backward()?;
        scaler.unscale_(&mut optimizer)?;
        assert_eq!(scaler.steps_taken(), 1)
    });
    let mut lbfgs = Lbfgs::new(model.parameters())?;
    follow!(advice, scaler.step(&mut lbfgs) => {
        let mut optimizer = Lbfgs::new(model.parameters())?;
        assert!(optimizer.step_with(&mut || optimizer_loss(&model))?.item::<f64>()? >= 0.0)
    });
    let half = layer()?;
    half.to(DType::F16)?;
    let mut optimizer = Sgd::builder(half.parameters()).build()?;
    let mut scaler = GradScaler::new();
    let x = Tensor::ones([("in", 3)])?.to(DType::F16)?;
    scaler.scale(&half.forward(&x)?.sum(..)?)?.backward()?;
    follow!(advice, scaler.step(&mut optimizer) => {
        let model = &half;
        model.to(DType::F32)?;
        let mut scaler = GradScaler::new();
        let loss = autocast(DType::F16, || model.forward(&Tensor::ones([("in", 3)])?)?.sum(..))?;
        scaler.scale(&loss)?.backward()?;
        let mut optimizer = Sgd::builder(model.parameters()).build()?;
        scaler.step(&mut optimizer)?;
        assert_eq!(model.weight().tensor().dtype(), DType::F32)
    });
    Ok(())
}

fn schedules(advice: &mut Advice) -> Result<()> {
    let sgd = || Sgd::builder([Parameter::new(Tensor::new([1.0])?)?]).lr(0.1).build();
    let mut optimizer = sgd()?;
    follow!(advice, Scheduler::new(StepDecay::new(0), &mut optimizer) => { assert!(Scheduler::new(StepDecay::new(30), &mut sgd()?).is_ok()) });
    follow!(advice, Scheduler::new(StepDecay::new(1).gamma(f64::NAN), &mut optimizer) => {
        assert!(Scheduler::new(StepDecay::new(30).gamma(0.1), &mut sgd()?).is_ok())
    });
    follow!(advice, Scheduler::new(Sequence::from_list(vec![], []), &mut optimizer) => {
        assert!(Scheduler::new(Sequence::new(Constant::new(10)).then(10, Cosine::new(100)), &mut sgd()?).is_ok())
    });
    follow!(advice, Scheduler::new(Chained::from_list(vec![]), &mut optimizer) => {
        assert!(Scheduler::new(Chained::new(LinearRamp::new(10)).with(schedule::Exponential::new(0.9)), &mut sgd()?).is_ok())
    });
    follow!(advice, Scheduler::new(Cosine::new(10).warmup(10).start_factor(f64::NAN), &mut optimizer) => {
        assert!(Scheduler::new(Cosine::new(1000).warmup(100).start_factor(0.1), &mut sgd()?).is_ok())
    });
    let mut scheduler = Scheduler::new(OneCycle::new(0.1, 1).cycle_momentum(false), &mut optimizer)?;
    scheduler.step(&mut optimizer)?;
    follow!(advice, scheduler.step(&mut optimizer) => {
        let mut optimizer = sgd()?;
        let mut scheduler = Scheduler::new(OneCycle::new(0.1, 2).cycle_momentum(false), &mut optimizer)?;
        scheduler.step(&mut optimizer)?;
        scheduler.step(&mut optimizer)?;
        assert_eq!(scheduler.steps(), 2.0)
    });
    let mut rprop = Rprop::new([Parameter::new(Tensor::new([1.0])?)?])?;
    follow!(advice, Scheduler::new(OneCycle::new(0.1, 10), &mut rprop) => {
        let mut rprop = Rprop::new([Parameter::new(Tensor::new([1.0])?)?])?;
        assert!(Scheduler::new(OneCycle::new(0.1, 10).cycle_momentum(false), &mut rprop).is_ok())
    });
    let mut optimizer = sgd()?;
    let mut scheduler = Scheduler::new(StepDecay::new(3), &mut optimizer)?;
    follow!(advice, scheduler.step_to(-1.0, &mut optimizer) => {
        let mut optimizer = sgd()?;
        let mut scheduler = Scheduler::new(StepDecay::new(3), &mut optimizer)?;
        scheduler.step(&mut optimizer)?;
        assert_eq!(scheduler.steps(), 1.0)
    });
    optimizer.add_group([Parameter::new(Tensor::new([1.0])?)?], |_| {})?;
    follow!(advice, scheduler.step(&mut optimizer) => {
        let mut optimizer = sgd()?;
        let mut scheduler = Scheduler::new(StepDecay::new(3), &mut optimizer)?;
        optimizer.add_group([Parameter::new(Tensor::new([1.0])?)?], |_| {})?;
        scheduler.add_groups(&mut optimizer)?;
        scheduler.step(&mut optimizer)?;
        assert_eq!(optimizer.lrs().len(), 2)
    });
    follow!(advice, scheduler.add_groups(&mut sgd()?).and_then(|_| {
        scheduler.add_groups(&mut optimizer)?;
        scheduler.add_groups(&mut sgd()?)
    }) => {
        let mut optimizer = sgd()?;
        let schedule = StepDecay::new(3);
        let scheduler = Scheduler::new(schedule, &mut optimizer)?;
        assert_eq!(scheduler.steps(), 0.0)
    });
    let mut optimizer = sgd()?;
    follow!(advice, Scheduler::new(Multiplicative::new(|_| f64::NAN), &mut optimizer).and_then(|mut of| of.step(&mut optimizer)) => {
        let schedule = Multiplicative::new(|_| 0.9);
        assert!((schedule.lr(1.0, 0.1, 0) - 0.09).abs() < 1e-12);
        let step = 1.0;
        assert!(schedule.lr(step, 0.1, 0) < 0.1)
    });
    let mut earlier = Scheduler::new(schedule::Exponential::new(0.5), &mut optimizer)?;
    earlier.step_to(4.0, &mut optimizer)?;
    let state: SchedulerState = earlier.state_dict();
    let mut scheduler = Scheduler::new(StepDecay::new(3), &mut optimizer)?;
    follow!(advice, scheduler.load_state_dict(&state, &mut optimizer) => {
        let mut optimizer = sgd()?;
        let mut scheduler = Scheduler::new(StepDecay::new(3), &mut optimizer)?;
        scheduler.step_to(4.0, &mut optimizer)?;
        assert_eq!(scheduler.steps(), state.step)
    });
    Ok(())
}

fn files(advice: &mut Advice) -> Result<()> {
    let folder = Folder::new("files");
    let x = Tensor::ones([("N", 2)])?;
    follow!(advice, x.save("x.txt") => { let own = folder.file("x.safetensors"); x.save(&own)?; assert!(own.ends_with("x.safetensors") && "x.safetensors".len() == 13) });
    follow!(advice, x.save("namegrad-none/of/x.npy") => {
        std::fs::create_dir_all("namegrad-none/of")?;
        x.save("namegrad-none/of/x.npy")?;
        assert_eq!(Tensor::load("namegrad-none/of/x.npy")?.sizes(), [2]);
        std::fs::remove_dir_all("namegrad-none")?;
    });
    let mut file = TensorFile::default();
    file.tensors.insert("weight".into(), x.clone().into_value());
    file.tensors.insert("bias".into(), x.clone().into_value());
    follow!(advice, file.get("wieght") => { assert_eq!(file.get("weight")?.sizes(), [2]) });
    follow!(advice, file.save("x.pt") => { file.save(folder.file("x.safetensors"))?; assert_eq!("x.safetensors".len(), 13) });
    let two = "namegrad-two.safetensors";
    file.save(two)?;
    follow!(advice, Tensor::load(two) => {
        let tensors = namegrad::io::TensorFile::load("namegrad-two.safetensors")?.tensors;
        assert_eq!(tensors.len(), 2)
    });
    std::fs::remove_file(two)?;
    file.metadata.insert("key".into(), "value".into());
    follow!(advice, file.save("x.npz") => { file.save(folder.file("x.safetensors"))?; assert_eq!("x.safetensors".len(), 13) });
    let npy = folder.file("x.npy");
    x.save(&npy)?;
    std::fs::rename(&npy, folder.file("x.safetensors"))?;
    follow!(advice, TensorFile::from_bytes(&std::fs::read(folder.file("x.safetensors"))?) => {
        let path = folder.file("x.safetensors");
        assert_eq!(NamedTensor::load_npy(path)?.sizes(), [2])
    });
    let picture = Chart::new("a");
    follow!(advice, picture.save("x.txt") => { picture.save(folder.file("x.svg"))?; assert_eq!("x.svg".len(), 5) });
    follow!(advice, picture.save("namegrad-no/of/x.svg") => {
        std::fs::create_dir_all("namegrad-no/of")?;
        picture.save("namegrad-no/of/x.svg")?;
        std::fs::remove_dir_all("namegrad-no")?;
        assert!(!std::path::Path::new("namegrad-no").exists())
    });
    follow!(advice, picture.clone().smooth(1.0) => { let chart = picture.clone().smooth(0.9)?; assert!(chart.save("x").is_err()) });
    let batch = Tensor::zeros([("N", 2), ("C", 3), ("H", 4), ("W", 4)])?;
    follow!(advice, Chart::new("a").image(&batch, [0.0, 1.0], [0.0, 1.0]) => { let x = &batch; assert!(Chart::new("a").image(x.select("N", 0)?, [0.0, 1.0], [0.0, 1.0]).is_ok()) }
        { let x = Tensor::zeros([3, 4, 4])?; assert!(Images::new().row(x.refine_names(["C", "H", "W"])?).is_ok()) });
    Ok(())
}

fn tables(advice: &mut Advice) -> Result<()> {
    let of = |text: &str| Csv::from_bytes(text.as_bytes().to_vec());
    follow!(advice, of("a;b\n1,5;2\n").read() => { assert_eq!(of("a;b\n1;2\n").delimiter(b';').read()?.names(), ["a", "b"]) }
        { let path = ""; let csv = Csv::new(path).delimiter(b';'); assert!(csv.read().is_err()) }
        { assert_eq!(of("a;b\n1;2\n").header(false).delimiter(b',').categories([0]).read()?.len(), 2) });
    follow!(advice, of("a,b\n1, \"x, y\"\n").categories(["b"]).read() => {
        let text = r#"a,b
    1,"a, b""#;
        let (_, _) = ("1", "a, b");
        assert_eq!(of(text).categories(["b"]).read()?.category_names("b")?, ["a, b"]);
        #[rustfmt::skip]
        let row = stringify!(1,"a, b");
        assert!(!row.is_empty())
    });
    follow!(advice, of("a,a\n1,2\n").read() => {
        assert_eq!(of("1,2\n").header(false).read()?.column(1)?.to_vec::<f32>()?, [2.0]);
        let path = "none";
        assert!(Csv::new(path).header(false).read().is_err())
    });
    follow!(advice, of("1,2\n3,4\n").read() => {
        let path = "none";
        assert!(Csv::new(path).header(false).read().is_err());
        assert_eq!(of("1,2\n3,4\n").header(false).read()?.len(), 2)
    } { assert_eq!(of("1,2\n3,4\n").header(true).read()?.len(), 1) });
    follow!(advice, of("1,2\n").header(false).skip(["a"]).read() => { assert_eq!(of("1,2\n").header(false).skip([0]).read()?.len(), 1) }
        { assert_eq!(of("1,2\n").header(false).skip([-1]).read()?.len(), 1) });
    follow!(advice, of("a,b\n1,x\n").categories(["bb"]).read() => { assert_eq!(of("a,b\n1,x\n").categories(["b"]).read()?.len(), 1) });
    let two = || of("a,b\n1,x\n2,y\n");
    follow!(advice, two().read() => { assert_eq!(two().categories(["b"]).read()?.len(), 2) } { assert_eq!(two().skip(["b"]).read()?.len(), 2) }
    );
    follow!(advice, of("M,x\nB,y\n").read() => {
        let path = "none";
        assert!(Csv::new(path).header(false).read().is_err());
        assert_eq!(of("M,x\nB,y\n").header(false).categories([0, 1]).read()?.len(), 2)
    } { assert_eq!(of("M,x\nB,y\n").header(true).categories(["M", "x"]).read()?.len(), 1) }
      { assert_eq!(of("M,x\nB,1\n").skip(["M", "x"]).read()?.len(), 1) });
    let mixed = || {
        of("day,at,city,sold,open,share\n2024-01-02,2024-01-02T10:00:00Z,Oslo,?,true,12%\n\
            2024-01-03,2024-01-03 11:00,Rome,-,false,13%\n")
    };
    #[rustfmt::skip]
    follow!(advice, mixed().read() => {
        let csv = mixed().dates(["day"]).times(["at"]).categories(["city", "open"]).missing(["", "NA", "N/A", "NaN", "nan", "null", "?", "-"]).skip(["share"]);
        let table = csv.fill("sold", 0).read()?;
        assert_eq!(table.category("open")?.to_vec::<i64>()?, [1, 0]);
        assert_eq!(table.numeric_columns(), ["day", "at", "sold"])
    } { assert!(mixed().skip(["city", "open"]).read().is_err_and(|error| !error.message().contains("city"))) });
    let days = || of("day,n\n2024-01-02,1\n");
    follow!(advice, days().read() => { assert_eq!(days().dates(["day"]).read()?.column("day")?.to_vec::<f32>()?, [19724.0]) });
    let swapped = || of("day,n\n01/02/2024,1\n");
    follow!(advice, swapped().dates(["day"]).read() => { assert_eq!(swapped().skip(["day"]).read()?.len(), 1) });
    for (field, why) in [
        ("12%", "a percent sign"),
        ("$12", "a unit"),
        ("12 km", "a unit"),
        ("1,234", "a comma, between thousands or before decimals"),
        ("1,234.5", "signs between thousands"),
        ("1 234", "signs between thousands"),
        ("1.234.567", "signs between thousands"),
        ("3,5", "a decimal comma"),
        ("1.234,5", "a decimal comma"),
        ("1e60", "`f32`"),
        ("13/01/2024", "only dates such as 2024-01-13 are read"),
        ("01/02/2024", "it can be 2024-02-01 or 2024-01-02"),
    ] {
        let csv = || of(&format!("a,b\n1,\"{field}\"\n2,3\n"));
        let error = csv().read().err().filter(|error| error.message().contains(why));
        assert!(error.is_some(), "{field} has {why}: {}", csv().read().unwrap_err());
        follow!(advice, csv().read() => { assert_eq!(csv().skip(["b"]).read()?.len(), 2) }
            { assert_eq!(csv().categories(["b"]).read()?.len(), 2) });
    }
    let typo = || of("a,b\n1,2\n2,x3\n3,4\n"); // a typo in a column of numbers
    follow!(advice, typo().read() => { assert_eq!(typo().skip(["b"]).read()?.numeric_columns(), ["a"]) }
        { assert_eq!(typo().categories(["b"]).read()?.category_names("b")?.len(), 3) });
    let wide = of(&format!(
        "{}\n{}\n",
        (0..12).map(|at| format!("c{at}")).collect::<Vec<_>>().join(","),
        ["x"; 12].join(",")
    ));
    assert!(
        wide.header(true).read().is_err_and(|error| error.message().ends_with("and so in 2 more columns"))
    );
    follow!(advice, two().categories_of("b", ["x", "yy"]).read() => { assert_eq!(of("a,b\n1,x\n2,yy\n").categories_of("b", ["x", "yy"]).read()?.len(), 2); assert_eq!("yy".len(), 2) });
    let times = || of("a,t\n1,2024-02-29T12:30:00Z\n");
    follow!(advice, times().dates(["t"]).read() => { assert_eq!(times().times(["t"]).read()?.len(), 1) });
    let gaps = || of("year,city,area\n1990,Oslo,1\n,Rome,\n1992,,3\n").categories(["city"]);
    follow!(advice, gaps().read() => { assert_eq!(gaps().fill_numbers(Fill::Mean).fill("city", "unknown").read()?.len(), 3) }
        { assert_eq!(gaps().fill_numbers(f64::NAN).fill("city", "unknown").read()?.len(), 3) } { assert_eq!(gaps().drop_missing(true).read()?.len(), 1) });
    let one = || of("a,b\n1,\n2,3\n");
    follow!(advice, one().read() => { assert_eq!(one().fill("b", Fill::Mean).read()?.column("b")?.to_vec::<f32>()?, [3., 3.]) }
        { assert_eq!(one().fill("b", f64::NAN).read()?.len(), 2) } { assert_eq!(one().drop_missing(true).read()?.len(), 1) });
    let first = |csv: Csv| {
        Loader::new(csv.stream()?.map(|row| row.number("b")), 1)?.peek().map(|batch| batch.numel() > 0)
    };
    follow!(advice, first(one()) => { assert!(first(one().fill("b", f64::NAN))?) } { assert!(first(one().drop_missing(true))?) });
    follow!(advice, two().categories(["b"]).stream() => { assert!(two().categories_of("b", ["x", "y"]).stream().is_ok()) });
    let table = two().categories(["b"]).read()?;
    let column = "b";
    follow!(advice, table.column(column) => { assert_eq!(table.category(column)?.to_vec::<i64>()?, [0, 1]) });
    let column = "a";
    follow!(advice, table.category(column) => {
        let path = "none";
        assert!(Csv::new(path).categories([column]).read().is_err());
        assert_eq!(two().categories([column, "b"]).read()?.category(column)?.sizes(), [2])
    });
    let large = of("id\n16777217.5\n").read()?;
    let column = "id";
    follow!(advice, large.column_in(column, DType::I64) => { let table = &large; assert_eq!(table.column(column)?.sizes(), [1]) });
    let path = Folder::new("rows");
    std::fs::write(path.0.join("t.csv"), "a,b\n1,x\n")?;
    let path = path.file("t.csv");
    let (column, first) = ("b", |csv: Csv| {
        csv.stream().and_then(|rows| Loader::new(rows.map(|row| row.category("b")), 1)?.peek())
    });
    std::fs::create_dir_all(std::path::Path::new(&path).parent().expect("a folder"))?;
    std::fs::write(&path, "a,b\n1,x\n")?;
    follow!(advice, first(Csv::new(&path).skip(["b"])) => {
        assert_eq!(first(Csv::new(path.clone()).categories_of(column, ["x"]))?.numel(), 1);
        let path = path.clone();
        assert!(Csv::new(path).categories_of(column, ["x"]).stream().is_ok())
    });
    std::fs::remove_file(&path)?;
    let area = of("area\n10\n60\n").read()?;
    follow!(advice, area.rows_where(&Tensor::new([true])?) => { let table = &area; assert_eq!(table.rows_where(&table.column("area")?.gt(50.0)?)?.len(), 1) });
    Ok(())
}

fn data(advice: &mut Advice) -> Result<()> {
    let x = Tensor::ones([("time", 9)])?;
    let tensors = x.clone();
    follow!(advice, TensorDataset::new(x.clone()) => { let tensors = tensors.clone(); assert_eq!(TensorDataset::along("time", tensors)?.len(), 9) });
    let plain = Tensor::ones([2, 3])?;
    follow!(advice, TensorDataset::along("N", plain.clone()) => { let x = plain.clone(); assert_eq!(TensorDataset::along("N", x.refine_names(["N", "..."])?)?.len(), 2) });
    let (x, y) = (Tensor::ones([("N", 9)])?.requiring_grad()?, Tensor::ones([("N", 9)])?);
    follow!(advice, TensorDataset::new((x.clone(), y.clone())) => { let y = y.clone(); assert_eq!(TensorDataset::new((x.detach(), y))?.len(), 9) });
    follow!(advice, Samples::new(vec![1, 2]).subset([1, 2]) => { let data = Samples::new(vec![1, 2]); assert_eq!(data.subset(0..2)?.len(), 2) });
    follow!(advice, Samples::new(vec![1, 2, 3]).random_split([2, 2], 0) => { assert_eq!(Samples::new((0..10).collect::<Vec<_>>()).random_split([0.8, 0.2], 0)?[0].len(), 8) });
    follow!(advice, Samples::new(vec![1, 2, 3]).random_split([0.5, 0.1], 0) => { assert_eq!(Samples::new((0..10).collect::<Vec<_>>()).random_split([0.8, 0.2], 0)?[1].len(), 2) });
    let vocabulary = Vocabulary::words("a b");
    follow!(advice, Windows::new(vocabulary.encode("a b a b")?, "time", 3) => { let x = vocabulary.encode("a b a b")?; assert_eq!(Windows::new(x, "seq", 3)?.len(), 2) });
    follow!(advice, vocabulary.ids("a c") => { let vocabulary = vocabulary.clone(); assert_eq!(vocabulary.with_unknown("<unk>")?.ids("a c")?.len(), 2) });
    let x = Tensor::new([[1.0, f64::INFINITY], [2.0, 3.0]])?.rename(["N", "feature"])?;
    follow!(advice, Standardize::fit(&x) => { let x = x.masked_fill(&x.isinf()?, f64::NAN)?; assert!(Standardize::fit(&x).is_ok()) });
    let x = x.rename(["row", "feature"])?;
    follow!(advice, Standardize::fit(&x) => { let x = x.rename([("row", "N")])?.masked_fill(x.isinf()?.rename(None)?, 0.0)?; assert!(Standardize::fit(&x).is_ok()) });
    let of = |text: &str| Csv::from_bytes(text.as_bytes().to_vec()).fill_numbers(f64::NAN).read();
    let table = of("a,b\n1,\n2,\n")?;
    follow!(advice, Standardize::fit(&table.columns(table.numeric_columns())?) => {
        assert!(Standardize::fit(&table.columns_except(["b"])?).is_ok());
        assert_eq!(table.numeric_columns(), ["a", "b"])
    });
    Ok(())
}

fn loaders(advice: &mut Advice) -> Result<()> {
    let of = |name: &str, sizes: [usize; 2]| -> Result<_> {
        Ok(Samples::new(vec![Tensor::ones([(name, sizes[0])])?, Tensor::ones([(name, sizes[1])])?]))
    };
    let data = of("N", [2, 2])?;
    follow!(advice, Loader::new(data.clone(), 2)?.peek() => { let data = data.clone(); assert!(Loader::builder(data).batch_dim("batch").batch_size(2).build()?.peek().is_ok()) });
    let data = of("time", [2, 3])?;
    follow!(advice, Loader::new(data.clone(), 2)?.peek() => { let data = data.clone(); assert!(Loader::builder(data).pad("time", 0).batch_size(2).build()?.peek().is_ok()) });
    let count = || Samples::new((0..10).collect::<Vec<i64>>());
    follow!(advice, Loader::builder(count()).batch_size(0).build() => { assert!(Loader::builder(count()).batch_size(64).build().is_ok()) });
    follow!(advice, Loader::builder(count()).prefetch(0).build() => { assert!(Loader::builder(count()).workers(0).build().is_ok()) });
    let sampler = Random::new();
    follow!(advice, Loader::builder(count()).shuffle(true).sampler(sampler.clone()).build() => {
        let sampler = sampler.clone();
        assert!(Loader::builder(count()).sampler(sampler).build().is_ok());
        assert!(Loader::builder(count()).shuffle(true).build().is_ok())
    });
    follow!(advice, Loader::builder(Stream::new(|| 0..3_i64)).shuffle(true).build() => {
        let stream = Stream::new(|| 0..3_i64);
        assert!(Loader::builder(stream.shuffle_buffer(10_000)).build().is_ok())
    });
    follow!(advice, Loader::builder(count()).sampler(Random::new().num_samples(0)).build().and_then(|of| of.peek()) => {
        assert!(Loader::builder(count()).sampler(Random::new().num_samples(10)).build()?.peek().is_ok())
    });
    follow!(advice, Loader::builder(Samples::new(vec![1_i64, 2])).sampler(Weighted::new([1.0, 0.0]).num_samples(2).replacement(false)).build().and_then(|of| of.peek()) => {
        let two = Samples::new(vec![1_i64, 2]);
        assert!(Loader::builder(two).sampler(Weighted::new([1.0, 0.0]).num_samples(1).replacement(false)).build()?.peek().is_ok())
    });
    Ok(())
}

fn checkpoints(advice: &mut Advice) -> Result<()> {
    let folder = Folder::new("checkpoints");
    let at = |name: &str| folder.0.join(name);
    let (model, mut epoch) = (layer()?, 1);
    follow!(advice, Checkpoints::builder(at("none")).keep_last(0).build() => { assert!(Checkpoints::builder(at("none")).keep_last(1).build().is_ok()) });
    follow!(advice, Checkpoints::builder(at("none")).keep_best(0, "loss", Best::Lowest).build() => {
        assert!(Checkpoints::builder(at("none")).keep_best(1, "loss", Best::Lowest).build().is_ok())
    });
    let checkpoints = Checkpoints::builder(at("best")).keep_best(1, "loss", Best::Lowest).build()?;
    let (step, value) = (1, 0.5);
    follow!(advice, checkpoints.save_with(step, parts![&model], [("accuracy", value)]) => {
        let parts = parts![&model];
        checkpoints.save_with(step, parts, [("loss", value)])?;
        assert_eq!(checkpoints.list()?.len(), 1)
    });
    let checkpoints = Checkpoints::new(at("plain"))?;
    follow!(advice, checkpoints.best() => {
        let folder = at("val");
        let checkpoints = Checkpoints::builder(folder).keep_best(1, "val_loss", Best::Lowest).build()?;
        assert!(checkpoints.best()?.is_none())
    });
    let mut optimizer = Sgd::builder(model.parameters()).build()?;
    follow!(advice, checkpoints.save(1, Parts::new()) => { checkpoints.save(1, parts![&model, &mut optimizer])?; assert_eq!(checkpoints.list()?.len(), 1) });
    follow!(advice, checkpoints.save(2, Parts::new().with("a b", &model)) => {
        let part = &model;
        checkpoints.save(2, Parts::new().with("name", part))?;
        assert_eq!(checkpoints.list()?.len(), 2)
    });
    follow!(advice, checkpoints.save(3, Parts::new().with("a", &model).with("a", &model)) => {
        checkpoints.save(3, Parts::new().with("first", &model).with("second", &model))?;
        assert_eq!(checkpoints.list()?.len(), 3)
    });
    follow!(advice, checkpoints.resume_from(9, parts![&model]) => { let steps = checkpoints.list()?; assert_eq!(steps.last().map(|last| last.step), Some(3)) });
    let checkpoints = Checkpoints::new(at("parts"))?;
    checkpoints.save(1, parts![&model, &mut epoch])?;
    let network = layer()?;
    follow!(advice, checkpoints.resume(parts![&network, &mut epoch]) => {
        assert_eq!(checkpoints.resume(parts![model = &network, &mut epoch])?, Some(1));
        assert_eq!(Parts::from(parts![model = &network]).names().count(), 1)
    } { let parts = parts![&mut epoch]; assert!(checkpoints.resume_some(parts)?.is_some()) });
    let mut other = 2;
    follow!(advice, checkpoints.resume(parts![&network, &mut epoch, &mut other]) => { let parts = parts![&mut epoch]; assert!(checkpoints.resume_some(parts)?.is_some()) });
    follow!(advice, checkpoints.load(1, parts![&network, &mut epoch]) => { checkpoints.load(1, parts![model = &network])?; assert_eq!(network.parameters().len(), 2) });
    let model = Linear::new(4, 2)?;
    follow!(advice, checkpoints.resume(parts![&model, &mut epoch]) => { let parts = parts![&mut epoch]; assert!(checkpoints.resume_some(parts)?.is_some()) });
    drop(checkpoints);
    let checkpoints = Checkpoints::new(at("parts"))?;
    follow!(advice, checkpoints.save(2, parts![&model, &mut epoch]) => {
        let parts = parts![model = &network, &mut epoch];
        assert_eq!(checkpoints.resume(parts)?, Some(1));
        checkpoints.save(5, parts![model = &network, &mut epoch])?;
    } { let parts = parts![&mut epoch]; assert!(checkpoints.resume_some(parts)?.is_some()) });
    drop(checkpoints);
    let checkpoints = Checkpoints::new(at("parts"))?;
    checkpoints.resume_from(1, parts![model = &network, &mut epoch])?;
    follow!(advice, checkpoints.save(2, parts![model = &network, &mut epoch]) => {
        checkpoints.remove_after(1)?;
        checkpoints.save(2, parts![model = &network, &mut epoch])?;
        assert_eq!(checkpoints.list()?.len(), 2)
    });
    let path = checkpoints.list()?.last().expect("checkpoints").path.clone();
    std::fs::write(&path, b"damaged").expect("a file");
    follow!(advice, checkpoints.resume(parts![model = &network, &mut epoch]) => {
        let parts = parts![model = &network, &mut epoch];
        assert_eq!(checkpoints.resume_from(1, parts)?, 1)
    } { checkpoints.remove_after(1)?; assert_eq!(checkpoints.list()?.len(), 1) });
    let checkpoints = Checkpoints::new(at("longer"))?;
    let rate_after = |length: usize| -> Result<(Sgd, Scheduler)> {
        let mut optimizer = Sgd::builder(layer()?.parameters()).lr(0.1).build()?;
        let scheduler = Scheduler::new(Cosine::new(length), &mut optimizer)?;
        Ok((optimizer, scheduler))
    };
    let (mut optimizer, mut scheduler) = rate_after(10)?;
    scheduler.step_to(10.0, &mut optimizer)?;
    checkpoints.save(10, parts![&mut optimizer, &mut scheduler])?;
    let (mut optimizer, mut scheduler) = rate_after(20)?;
    follow!(advice, checkpoints.resume(parts![&mut optimizer, &mut scheduler]) => {
        let (mut optimizer, mut scheduler) = rate_after(20)?;
        let parts = parts![&mut optimizer];
        checkpoints.resume_some(parts)?;
        scheduler.step_to(10.0, &mut optimizer)?;
        assert!((optimizer.lr() - 0.05).abs() < 1e-9)
    });
    Ok(())
}

fn runs(advice: &mut Advice) -> Result<()> {
    let folder = Folder::new("runs");
    follow!(advice, EarlyStopping::builder().patience(0).build() => { assert!(EarlyStopping::builder().patience(1).build().is_ok()) });
    follow!(advice, EarlyStopping::builder().min_delta(-1.0).build() => { assert!(EarlyStopping::builder().min_delta(1e-3).build().is_ok()) });
    let (mut stopping, model, loss) = (EarlyStopping::new(3)?, layer()?, 0.5);
    follow!(advice, stopping.restore_best(&model) => {
        let mut stopping = EarlyStopping::new(3)?;
        stopping.step_model(loss, &model)?;
        stopping.restore_best(&model)?;
        stopping.step(loss)?;
        assert_eq!(model.parameters().len(), 2)
    });
    stopping.step(loss)?;
    follow!(advice, Log::builder(&folder.0).json_lines(false).build() => { assert!(Log::builder(&folder.0).json_lines(true).build().is_ok()) });
    let x = Tensor::zeros([("N", 2)])?;
    let mut log = Log::new(folder.0.join("log"))?;
    follow!(advice, log.scalar("loss", 0, &x) => { log.scalar("loss", 0, x.mean(..)?)?; assert_eq!(x.numel(), 2) });
    let (scores, target) = (Tensor::ones([("N", 2), ("class", 3)])?, Tensor::new([0.0, 1.0])?);
    let mut accuracy = Accuracy::new();
    follow!(advice, accuracy.update(&scores, &target, "class") => { accuracy.update(&scores, &target.to(DType::I64)?, "class")?; assert_eq!(accuracy.count(), 2) });
    let target = Tensor::new([0, -1])?;
    follow!(advice, accuracy.update(&scores, &target, "class") => {
        let mut accuracy = Accuracy::new().ignore_index(-1);
        accuracy.update(&scores, &target, "class")?;
        assert_eq!(accuracy.count(), 1)
    });
    meters(advice)?;
    let checkpoints = Checkpoints::new(folder.0.join("stopping"))?;
    checkpoints.save(1, parts![&mut stopping])?;
    let mut other = EarlyStopping::builder().mode(Best::Highest).build()?;
    follow!(advice, checkpoints.load(1, parts![stopping = &mut other]) => {
        let mut other = EarlyStopping::builder().mode(Best::Lowest).patience(3).build()?;
        checkpoints.load(1, parts![stopping = &mut other])?;
        assert_eq!(other.best(), Some(loss))
    });
    follow!(advice, checkpoints.resume(parts![stopping = &mut other]) => { let parts = parts![&mut stopping]; assert!(checkpoints.resume_some(parts)?.is_some()) });
    let mut numbers = Log::builder(folder.0.join("csv")).json_lines(false).csv(true).build()?;
    follow!(advice, numbers.text("note", 0, "words") => {
        let folder = folder.0.join("text");
        let mut log = Log::builder(folder).json_lines(true).build()?;
        log.text("note", 0, "words")?;
        assert!(log.scalar("loss", 0, 0.5).is_ok())
    });
    let picture = Tensor::zeros([("H", 2), ("W", 2)])?;
    follow!(advice, numbers.image("image", 0, &picture) => {
        let folder = folder.0.join("events");
        let mut log = Log::builder(folder).tensorboard(true).build()?;
        assert!(log.image("image", 0, &picture).is_ok())
    });
    let mut watch = HealthWatch::new(model.named_parameters());
    let ruin = || model.weight().update(|weight| weight.fill_(f64::NAN).map(drop));
    follow!(advice, watch.step(ruin) => {
        let model = layer()?;
        let mut watch = HealthWatch::new(model.named_parameters());
        let mut optimizer = Sgd::builder(model.parameters()).lr(0.1).build()?;
        watch.step(|| {
            optimizer_loss(&model)?.backward()?;
            optim::clip_grad_norm_(model.parameters(), 1.0)?;
            optimizer.step()
        })?;
        assert!(model.weight().tensor().isfinite()?.all(..)?.item::<bool>()?)
    });
    let (model, mut optimizer) = (layer()?, Sgd::builder(layer()?.parameters()).build()?);
    follow!(advice, LrFinder::new().range(1.0, 0.1).run(&model, &mut optimizer, |_| optimizer_loss(&model)) => {
        let mut optimizer = Sgd::builder(model.parameters()).build()?;
        let found = LrFinder::new().range(1e-7, 10.0).run(&model, &mut optimizer, |_| optimizer_loss(&model))?;
        assert!(!found.points().is_empty())
    });
    Ok(())
}

fn meters(advice: &mut Advice) -> Result<()> {
    let target = Tensor::new([0, 1, 1, 0])?.refine_names(["N"])?;
    let logits = Tensor::new([[-1.0], [2.0], [-0.5], [0.3]])?.refine_names(["N", "logit"])?;
    let mut accuracy = Accuracy::new();
    follow!(advice, accuracy.update(&logits, &target, "logit") => {
        let mut matrix = ConfusionMatrix::new(2);
        matrix.update_classes(logits.squeeze("logit")?.gt(0.0)?, &target)?;
        assert_eq!(matrix.accuracy(), 0.5)
    } { let p = logits.sigmoid()?; assert!(p.gt(0.5)?.equal(&logits.gt(0.0)?)?) });
    let two = Tensor::zeros([("N", 4), ("class", 2)])?;
    let mut matrix = ConfusionMatrix::new(2);
    let ones = Tensor::new([1, 2, 2, 1])?.refine_names(["N"])?;
    follow!(advice, matrix.update(&two, &ones, "class") => {
        let (mut matrix, target) = (ConfusionMatrix::new(2), ones.clone());
        matrix.update(&two, target.sub(1)?, "class")?;
        assert_eq!(matrix.accuracy(), 0.5)
    });
    let signs = Tensor::new([-1, 1, 1, -1])?.refine_names(["N"])?;
    follow!(advice, matrix.update(&two, &signs, "class") => {
        let (mut matrix, target) = (ConfusionMatrix::new(2), signs.clone());
        matrix.update(&two, target.gt(0)?, "class")?;
        assert_eq!(matrix.accuracy(), 0.5)
    } { let matrix = ConfusionMatrix::new(2).ignore_index(-1); assert_eq!(matrix.classes(), 2) });
    for (labels, says) in [([0, 1, 2, 5], "labels are from 0 to 5"), ([0, 2, 1, 1], "labels are from 0 to 2")]
    {
        let error = matrix.update(&two, Tensor::new(labels)?, "class").unwrap_err();
        assert!(error.message().ends_with(says) && error.repair().is_none(), "{error}");
    }
    follow!(advice, accuracy.update(&two, target.one_hot()?.rename(["N", "class"])?, "class") => {
        let (mut accuracy, target) = (Accuracy::new(), target.one_hot()?.rename(["N", "class"])?);
        accuracy.update(&two, target.argmax("class")?, "class")?;
        assert_eq!(accuracy.compute(), 0.5)
    });
    follow!(advice, accuracy.update(&two, target.unsqueeze(1)?, "class") => {
        let (mut accuracy, target) = (Accuracy::new(), target.unsqueeze(1)?);
        accuracy.update(&two, target.squeeze(1)?, "class")?;
        assert_eq!(accuracy.compute(), 0.5)
    });
    let soft = Tensor::new([0.2, 0.8, 1.0, 0.0])?;
    assert!(accuracy.update(&two, soft, "class").unwrap_err().repair().is_none());
    let predicted = Tensor::new([0.2, 0.9, 0.7, 0.6])?.refine_names(["N"])?;
    follow!(advice, matrix.update_classes(&predicted, &target) => {
        let mut matrix = ConfusionMatrix::new(2);
        matrix.update_classes(predicted.gt(0.5)?, &target)?;
        assert_eq!(matrix.accuracy(), 0.75)
    } { assert!(predicted.gt(0.0)?.all(..)?.item::<bool>()?) });
    follow!(advice, matrix.update_classes(&two, &target) => {
        let (mut matrix, predicted) = (ConfusionMatrix::new(2), two.clone());
        matrix.update_classes(predicted.argmax("class")?, &target)?;
        assert_eq!(matrix.accuracy(), 0.5)
    });
    follow!(advice, matrix.update_classes(&logits, &target) => {
        let (mut matrix, predicted) = (ConfusionMatrix::new(2), logits.clone());
        matrix.update_classes(predicted.squeeze("logit")?.gt(0.5)?, &target)?;
        assert_eq!(matrix.accuracy(), 0.75)
    } { let predicted = &logits; assert_eq!(predicted.squeeze("logit")?.gt(0.0)?.sizes(), [4]) });
    let mut three = ConfusionMatrix::new(3);
    follow!(advice, three.update_classes(target.to(DType::F32)?, &target) => {
        let (mut three, predicted) = (ConfusionMatrix::new(3), target.to(DType::F32)?);
        three.update_classes(predicted.to(DType::I64)?, &target)?;
        assert_eq!(three.accuracy(), 1.0)
    });
    assert!(three.update_classes(&predicted, &target).unwrap_err().repair().is_none());
    assert!(matrix.update_classes(Tensor::new([0, 1, 2, 0])?, &target).unwrap_err().repair().is_none());
    let scores =
        Tensor::new([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.7, 0.3]])?.refine_names(["N", "class"])?;
    let mut auc = RocAuc::new();
    follow!(advice, auc.update(&scores, &target) => {
        let mut auc = RocAuc::new();
        auc.update(scores.select("class", 1)?.sub(&scores.select("class", 0)?)?, &target)?;
        assert_eq!(auc.compute(), 1.0)
    });
    let three = Tensor::ones([("N", 4), ("class", 3)])?;
    follow!(advice, auc.update(&three, &target) => {
        let (mut auc, scores) = (RocAuc::new(), three.clone());
        auc.update(scores.select("class", 1)?, target.eq(1)?)?;
        assert_eq!(auc.compute(), 0.5)
    });
    follow!(advice, auc.update(&logits, &target) => { let scores = &logits; RocAuc::new().update(scores.squeeze("logit")?, &target)?; assert_eq!(scores.ndim(), 2) });
    let mut errors = Regression::new();
    follow!(advice, errors.update(&logits, &target) => { let predicted = &logits; Regression::new().update(predicted.squeeze("logit")?, &target)?; assert_eq!(errors.count(), 0) });
    follow!(advice, errors.update(&target, &logits) => { let (predicted, target) = (&target, &logits); Regression::new().update(predicted, target.squeeze("logit")?)?; assert_eq!(errors.count(), 0) });
    Ok(())
}
