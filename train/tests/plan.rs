//! Plans of steps: FLOPs against their formulas, and memory against real runs of the same steps.

use namegrad::core::random::random_state;
use namegrad::memory;
use namegrad::optim::AdamW;
use namegrad::options::*;
use namegrad::prelude::*;
use namegrad::{Plan, plan};
use std::time::Instant;

/// What a plan tells of `f`, whose inputs have these sizes and require gradients.
fn planned<const N: usize>(sizes: [&[usize]; N], f: impl Fn([&Tensor; N]) -> Result<Tensor>) -> Result<Plan> {
    let make = |sizes: &[usize]| Tensor::zeros(sizes)?.requiring_grad();
    let inputs =
        on_device(Device::Meta, || sizes.iter().map(|sizes| make(sizes)).collect::<Result<Vec<_>>>())?;
    plan(|| f(std::array::from_fn(|at| &inputs[at]))?.sum(..)?.backward())
}

#[track_caller]
fn assert_flops(plan: &Plan, forward: u64, backward: u64) {
    assert_eq!((plan.forward_flops, plan.backward_flops), (forward, backward), "{plan}");
    assert_eq!(plan.flops(), forward + backward);
    assert_eq!(plan.rows.iter().map(|row| row.flops).sum::<u64>(), plan.flops());
}

#[test]
fn flops_of_products() -> Result<()> {
    // Each gradient is a product of the same size.
    let one = 2 * 30 * 40 * 50;
    assert_flops(&planned([&[30, 40], &[40, 50]], |[a, b]| a.matmul(b))?, one, 2 * one);
    assert_flops(&planned([&[7, 30, 40], &[7, 40, 50]], |[a, b]| a.bmm(b))?, 7 * one, 14 * one);
    assert_flops(
        &planned([&[30, 40], &[50, 40], &[50]], |[x, weight, bias]| {
            F::linear_with(x, weight, LinearOptions::new().bias(bias))
        })?,
        one,
        2 * one,
    );
    Ok(())
}

#[test]
fn flops_of_convolutions() -> Result<()> {
    // 4 images of 3 channels, 8 features of windows of 5 by 5.
    let one = 2 * (4 * 8 * 28 * 28) * (3 * 5 * 5);
    let made = planned([&[4, 3, 32, 32], &[8, 3, 5, 5]], |[x, weight]| F::conv2d(x, weight))?;
    assert_flops(&made, one, 2 * one);
    Ok(())
}

#[test]
fn flops_of_attention_and_recurrent_layers() -> Result<()> {
    // Two products forward; backward, the scores again and four gradients.
    let one = 2 * (2 * 8 * 16 * 16 * 32);
    let heads: &[usize] = &[2, 8, 16, 32];
    let made = planned([heads, heads, heads], |[q, k, v]| q.scaled_dot_product_attention(k, v))?;
    assert_flops(&made, 2 * one, 5 * one);
    // An LSTM has four gates, of the input and of the state.
    let lstm = on_device(Device::Meta, || Lstm::new(("in", 24), ("hidden", 32), "time"))?;
    let x =
        on_device(Device::Meta, || Tensor::zeros([("time", 10), ("N", 4), ("in", 24)])?.requiring_grad())?;
    let one = 2 * 10 * 4 * (4 * 32) * (24 + 32);
    let made = plan(|| lstm.forward(&x)?.output.sum(..)?.backward())?;
    assert_flops(&made, one, 2 * one);
    Ok(())
}

/// The outputs of all steps of an LSTM.
#[derive(Module)]
struct Outputs {
    lstm: Lstm,
}

impl Layer for Outputs {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.lstm.forward(x)?.output)
    }
}

/// A step of training and what it needs, on the device of new tensors.
fn training(name: &str) -> Result<Box<dyn FnMut() -> Result<()>>> {
    let (model, x): (Box<dyn Layer>, Tensor) = match name {
        "MLP" => {
            let model = Sequential::new()
                .then(Linear::new(("in", 512), ("h", 1024))?)
                .then(Relu)
                .then(Dropout::new(0.1)?)
                .then(Linear::new(("h", 1024), ("out", 256))?);
            (Box::new(model), Tensor::randn([("N", 128), ("in", 512)])?)
        }
        "convnet" => {
            let model = Sequential::new()
                .then(Conv2d::new(("C", 3), ("C", 32), [3, 3])?)
                .then(BatchNorm::new(("C", 32))?)
                .then(Relu)
                .then(MaxPool2d::new([2, 2])?)
                .then(Conv2d::new(("C", 32), ("C", 64), [3, 3])?)
                .then(Relu);
            (Box::new(model), Tensor::randn([("N", 16), ("C", 3), ("H", 40), ("W", 40)])?)
        }
        "transformer" => {
            let layer =
                TransformerEncoderLayer::builder(("embed", 128), ("heads", 4), "time").dim_feedforward(512);
            (
                Box::new(TransformerEncoder::new(layer, 2)?),
                Tensor::randn([("N", 8), ("time", 64), ("embed", 128)])?,
            )
        }
        _ => {
            let lstm = Outputs { lstm: Lstm::new(("in", 128), ("hidden", 256), "time")? };
            (Box::new(lstm), Tensor::randn([("time", 20), ("N", 32), ("in", 128)])?)
        }
    };
    let mut optimizer = AdamW::new(model.parameters())?;
    Ok(Box::new(move || {
        optimizer.zero_grad();
        model.forward(&x)?.square()?.mean(..)?.backward()?;
        optimizer.step()
    }))
}

#[test]
fn in_a_process_of_its_own() {
    namegrad_tests::run_alone("plan::");
}

/// The most bytes that the process has had in memory at once.
#[cfg(target_os = "linux")]
fn most_resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
}

/// A plan tells by how much a process grows: to 10 % and 3 MiB, for stacks, code and what threads keep. Each
/// model has a process of its own, as the allocator keeps memory.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "run by `in_a_process_of_its_own`"]
fn the_process_grows_as_planned() -> Result<()> {
    const MODEL: &str = "NAMEGRAD_PLANNED_MODEL";
    let Ok(name) = std::env::var(MODEL) else {
        for name in ["MLP", "convnet", "transformer", "LSTM"] {
            let mut program = std::process::Command::new(std::env::current_exe().unwrap());
            program.args(["--ignored", "--exact", "plan::the_process_grows_as_planned"]).env(MODEL, name);
            let output = program.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        return Ok(());
    };
    let plan = on_device(Device::Meta, || plan(training(&name)?))?;
    let before = most_resident();
    let mut step = training(&name)?;
    (0..3).try_for_each(|_| step())?;
    let (grown, planned) = (most_resident() - before, plan.process as f64);
    let apart = (grown - planned).abs();
    assert!(apart < 0.1 * grown + f64::from(3 << 20), "{name}: grown by {grown}, planned {planned}");
    assert!(plan.process >= plan.peak, "{plan}");
    Ok(())
}

/// The peak of a plan is that of a real run to 5 %, and the memory before the step to 1 %.
#[test]
#[ignore = "run by `in_a_process_of_its_own`"]
fn memory_is_that_of_a_real_run() -> Result<()> {
    let mut wrong = Vec::new();
    for name in ["MLP", "convnet", "transformer", "LSTM"] {
        let empty = memory::stats().live_bytes;
        let real = {
            let mut step = training(name)?;
            step()?;
            memory::reset_peak();
            let before = memory::stats().live_bytes;
            step()?;
            [before, memory::stats().peak_bytes].map(|bytes| (bytes - empty) as f64)
        };
        let plan = on_device(Device::Meta, || plan(training(name)?))?;
        let planned = [plan.before, plan.peak].map(|bytes| bytes as f64);
        println!("{name}: real {real:?}, planned {planned:?}\n{plan}");
        let off = |at: usize| (planned[at] / real[at] - 1.0).abs();
        if off(0) > 0.01 || off(1) > 0.05 {
            wrong.push(format!("{name}: real {real:?}, planned {planned:?}"));
        }
        assert!(plan.peak > plan.parameters + plan.gradients + plan.state, "{plan}");
        assert_eq!((plan.gradients, plan.state), (plan.parameters, 2 * plan.parameters), "{plan}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

/// A step of 7 billion parameters takes no memory, and less time than it takes to read the table.
#[test]
fn a_model_of_7_billion_parameters() -> Result<()> {
    let started = Instant::now();
    let layer =
        || TransformerEncoderLayer::builder(("embed", 4096), ("heads", 32), "time").dim_feedforward(4 * 4096);
    let model = on_device(Device::Meta, || TransformerEncoder::new(layer(), 35))?;
    let mut optimizer = AdamW::new(model.parameters())?;
    let x = on_device(Device::Meta, || Tensor::zeros([("N", 4), ("time", 2048), ("embed", 4096)]))?;
    let plan = plan(|| {
        optimizer.zero_grad();
        model.forward(&x)?.square()?.mean(..)?.backward()?;
        optimizer.step()
    })?;
    let count = 35 * (12 * 4096 * 4096 + 13 * 4096); // 4 + 8 matrices, biases and two norms
    assert_eq!(plan.parameters, 4 * count, "{plan}");
    assert!(plan.peak > 16 * count, "{plan}"); // with gradients and state
    // Six FLOPs for each weight and token, and those of the scores.
    let weights = 6 * 35 * 12 * 4096 * 4096 * (4 * 2048);
    assert!(plan.flops() > weights && plan.flops() < weights * 11 / 10, "{plan}");
    println!("{:?}\n{plan}", started.elapsed());
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    let table = plan.to_string();
    assert!(table.contains("most FLOPs") && table.contains("train/tests/plan.rs"), "{table}");
    Ok(())
}

/// A model with buffers and random numbers, its optimizer, and a leaf that is no parameter.
struct Run {
    model: Sequential,
    optimizer: AdamW,
    scale: Tensor,
    x: Tensor,
}

impl Run {
    fn new() -> Result<Run> {
        manual_seed(3);
        let model = Sequential::new()
            .then(Linear::new(("in", 6), ("h", 8))?)
            .then(BatchNorm::new(("h", 8))?)
            .then(Dropout::new(0.3)?)
            .then(Linear::builder(("h", 8), ("out", 2)).dtype(DType::BF16).build()?);
        let optimizer = AdamW::new(model.parameters())?;
        let scale = Tensor::ones([("in", 6)])?.requiring_grad()?;
        Ok(Run { model, optimizer, scale, x: Tensor::randn([("N", 16), ("in", 6)])? })
    }

    /// With gradients of the step before, `keeps` adds to them.
    fn step(&mut self, keeps: bool) -> Result<()> {
        if !keeps {
            self.optimizer.zero_grad();
            self.scale.zero_grad();
        }
        let x = self.x.mul(&self.scale)?;
        autocast(DType::BF16, || self.model.forward(&x))?.square()?.mean(..)?.backward()?;
        clip_grad_norm_(self.model.parameters(), 1.0)?;
        self.optimizer.step()
    }

    /// Everything that a step reads or changes.
    fn state(&self) -> Result<Vec<(String, Tensor)>> {
        let mut all = Vec::new();
        for (path, value) in self.model.state_dict().iter() {
            all.push((path.to_string(), Tensor::from(value.clone())));
        }
        for (path, parameter) in self.model.named_parameters() {
            all.extend(parameter.grad().map(|grad| (format!("gradient of {path}"), grad)));
        }
        all.extend(self.scale.grad().map(|grad| ("gradient of scale".into(), grad)));
        for (path, value) in self.optimizer.state_dict().to_file()?.tensors.iter() {
            all.push((format!("state {path}"), Tensor::from(value.clone())));
        }
        let state = serde_json::to_string(&random_state()).unwrap();
        all.push((state, Tensor::zeros(())?));
        Ok(all)
    }
}

#[test]
fn a_plan_of_a_model_on_the_cpu_leaves_it_as_it_was() -> Result<()> {
    let (mut run, mut twin) = (Run::new()?, Run::new()?);
    let mut sizes = Vec::new();
    for step in 0..4 {
        manual_seed(step);
        run.step(step == 2)?;
        let before = run.state()?;
        let made = plan(|| run.step(step == 1))?;
        assert_eq!(run.state()?, before, "after step {step}");
        sizes.push((made.parameters, made.gradients, made.state, made.before, made.peak));
        // Nor does an error or a panic leave anything behind.
        let error = plan(|| run.step(false).and_then(|()| run.scale.sum(..)?.item::<f32>())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let panics = || plan(|| run.step(true).map(|()| panic!("in the step")));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(run.state()?, before, "after step {step}");
        manual_seed(step);
        twin.step(step == 2)?;
        assert_eq!(run.state()?, twin.state()?, "after step {step}");
    }
    // A plan of the same model on the meta device has the same figures, and so has every plan of this one.
    let mut meta = on_device(Device::Meta, Run::new)?;
    let made = plan(|| meta.step(false))?;
    for (number, sizes) in sizes.iter().enumerate().filter(|(number, _)| *number != 1) {
        let other = (made.parameters, made.gradients, made.state, made.before, made.peak);
        assert_eq!(sizes.0, other.0, "plan {number}");
        assert_eq!((sizes.1, sizes.2), (other.1, other.2), "plan {number}");
        for (a, b) in [(sizes.3, other.3), (sizes.4, other.4)] {
            assert!((a as f64 / b as f64 - 1.0).abs() < 0.05, "plan {number}: {sizes:?}, {other:?}");
        }
    }
    // The model on the meta device has no state from the plan: with values, it trains on the CPU.
    meta.model.load_state_dict(&twin.model.state_dict())?;
    (meta.scale, meta.x) = (twin.scale.detach().requiring_grad()?, twin.x.clone());
    meta.step(false)?;
    assert!(meta.state()?.iter().all(|(_, x)| x.device() == Device::Cpu));
    Ok(())
}

#[test]
fn other_threads_see_no_plan() -> Result<()> {
    let model = Linear::new(("in", 3), ("out", 2))?;
    let x = Tensor::ones([("in", 3)])?;
    let outside = model.forward(&x)?;
    let made = plan(|| {
        let here = model.forward(&x)?;
        let there = std::thread::scope(|scope| scope.spawn(|| model.forward(&x)).join().unwrap())?;
        assert_eq!((here.device(), there.device()), (Device::Meta, Device::Cpu));
        assert_eq!(there, outside);
        here.sum(..)?.backward()
    })?;
    assert_eq!(made.parameters, 4 * 8);
    assert_eq!(model.weight().grad(), None);
    Ok(())
}

#[test]
fn what_needs_elements_is_an_error() -> Result<()> {
    let x = Tensor::ones([3])?;
    let error = plan(|| x.sum(..)?.item::<f32>()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().starts_with("item: needs the elements"), "{error}");
    assert!(error.location().file().ends_with("plan.rs"), "{error}");
    // Outside of the step, all is as before.
    assert_eq!((x.item_at::<f32>([0])?, x.mul(2.0)?.device()), (1.0, Device::Cpu));
    Ok(())
}
