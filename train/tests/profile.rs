//! Profiles: rows by op and line, times that add up, traces.

use namegrad::autograd::{Op, checkpoint, hand_over};
use namegrad::data::{Dataset, Loader, TensorDataset};
use namegrad::nn;
use namegrad::optim::Lbfgs;
use namegrad::prelude::*;
use namegrad::train::profile::{Profile, Row, RowKind, profile, span};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn find<'p>(profile: &'p Profile, kind: RowKind, name: &str) -> Vec<&'p Row> {
    profile.rows().iter().filter(|row| row.kind == kind && row.name == name).collect()
}

/// The only row of this kind and name.
#[track_caller]
fn one<'p>(profile: &'p Profile, kind: RowKind, name: &str) -> &'p Row {
    let found = find(profile, kind, name);
    assert_eq!(found.len(), 1, "{kind:?} {name} in\n{profile}");
    found[0]
}

#[track_caller]
fn adds_up(profile: &Profile) {
    let own: Duration = profile.rows().iter().filter(|row| row.thread == 0).map(|row| row.own).sum();
    let difference = own.abs_diff(profile.total());
    assert!(difference < Duration::from_nanos(100), "{difference:?} in\n{profile}");
    let bytes: u64 = profile.rows().iter().filter(|row| row.thread == 0).map(|row| row.bytes).sum();
    assert_eq!(bytes, profile.allocated_bytes(), "{profile}");
}

/// Threads that wait may help other tests of this program, and what these allocate would count.
#[test]
fn in_a_process_of_its_own() {
    namegrad_tests::run_alone("profile::");
}

#[test]
#[ignore = "run by `in_a_process_of_its_own`"]
fn a_training_step_by_line() -> Result<()> {
    manual_seed(1);
    let model = Sequential::new()
        .then(Linear::new(("in", 784), ("h", 256))?)
        .then(Relu)
        .then(Linear::new(("h", 256), ("class", 10))?);
    let mut optimizer = Adam::new(model.parameters())?;
    let x = Tensor::randn([("N", 64), ("in", 784)])?;
    let target = Tensor::zeros([("N", 64)])?.to(DType::I64)?;
    let mut step = || -> Result<u32> {
        optimizer.zero_grad();
        let line = line!() + 1;
        let loss = F::cross_entropy(&model.forward(&x)?, &target, "class")?;
        loss.backward()?;
        optimizer.step()?;
        Ok(line)
    };
    step()?;
    let watch = Instant::now();
    let (line, profile) = profile(|| {
        step()?;
        step()?;
        step()
    });
    let (watch, line) = (watch.elapsed(), line?);
    println!("{profile}");
    adds_up(&profile);
    assert!(profile.total() <= watch, "{watch:?}\n{profile}");
    for kind in [RowKind::Forward, RowKind::Backward] {
        let relu = one(&profile, kind, "relu");
        assert_eq!(relu.calls, 3);
        assert!(relu.at.file().ends_with("profile.rs") && relu.at.line() == line, "{}", relu.at);
        assert!(relu.bytes >= 3 * 64 * 256 * 4 && relu.bytes < 3 * 80 * 256 * 4 + 1000, "{profile}");
        assert_eq!(relu.own, relu.total);
    }
    let backward = one(&profile, RowKind::Backward, "backward");
    assert_eq!((backward.calls, backward.at.line()), (3, line + 1));
    let derivatives: Duration =
        profile.rows().iter().filter(|row| row.kind == RowKind::Backward).map(|row| row.own).sum();
    assert!(derivatives <= backward.total, "{profile}");
    let adam = one(&profile, RowKind::Span, "Adam");
    assert_eq!((adam.calls, adam.at.line()), (3, line + 2));
    // Every line of the table is one of this file.
    assert!(profile.ops().all(|row| row.at.file().ends_with("tests/profile.rs")), "{profile}");
    Ok(())
}

/// Functions that are given as pointers do not know their caller.
#[test]
fn ops_of_layers_and_of_function_pointers_by_line() -> Result<()> {
    manual_seed(2);
    let dims = (("E", 8), ("head", 2));
    let layer = nn::TransformerEncoderLayer::builder(dims.0, dims.1, "time").activation(Tensor::gelu);
    let encoder = nn::TransformerEncoder::new(layer, 2)?;
    let x = Tensor::randn([("N", 2), ("time", 3), dims.0])?;
    let line = line!() + 1;
    let (result, profile) = profile(|| encoder.forward(&x)?.square()?.sum(..)?.backward());
    result?;
    assert_eq!(one(&profile, RowKind::Forward, "gelu").calls, 2);
    assert!(profile.ops().all(|row| row.at.file() == file!() && row.at.line() == line), "{profile}");

    // The pass forward can be outside of the profile.
    let line = line!() + 1;
    let loss = encoder.forward(&x)?.sum(..)?;
    let (result, profile) = profile_of(|| loss.backward());
    result?;
    assert_eq!(one(&profile, RowKind::Backward, "gelu").at.line(), line);

    // Otherwise the best that is known is the span, or the profile itself.
    let functions: [fn(&Tensor) -> Result<Tensor>; 2] = [Tensor::tanh, F::selu];
    let each = || functions.iter().try_for_each(|f| f(&x).map(drop));
    let line = line!() + 1;
    let (result, profile) = profile_of(|| span("activations", each));
    result?;
    for name in ["tanh", "selu"] {
        let row = one(&profile, RowKind::Forward, name);
        assert_eq!((row.at.file(), row.at.line()), (file!(), line), "{profile}");
    }
    Ok(())
}

#[test]
fn spans_nest_and_the_rest_is_outside() {
    let ((), profile) = profile(|| {
        sleep(Duration::from_millis(20));
        span("outer", || {
            sleep(Duration::from_millis(30));
            span("inner", || sleep(Duration::from_millis(40)));
        });
    });
    adds_up(&profile);
    let (outer, inner) = (one(&profile, RowKind::Span, "outer"), one(&profile, RowKind::Span, "inner"));
    let millis = |time: Duration| time.as_millis();
    assert!(millis(outer.total) >= 70 && millis(outer.own) >= 30 && outer.own + inner.total <= outer.total);
    assert!(millis(inner.own) >= 40 && millis(profile.outside()) >= 20);
    assert!((profile.rows().iter().map(|row| row.share).sum::<f64>() - 1.0).abs() < 1e-6);
    assert_eq!(profile.rows()[0].name, if inner.own > outer.own { "inner" } else { "outer" });
    // Nobody looks: a span only calls its function.
    assert_eq!(span("alone", || 3), 3);
}

#[test]
fn the_table_has_the_rows_that_matter() -> Result<()> {
    manual_seed(3);
    let x = Tensor::randn([("N", 4)])?;
    let (result, profile) = profile(|| -> Result<()> {
        x.exp()?.sin()?.cos()?;
        x.exp()?.tanh()?;
        x.exp()?;
        span("empty", || ());
        Ok(())
    });
    result?;
    let count = |table: &str, what: &str| table.lines().filter(|line| line.contains(what)).count();
    let row = |table: &str, what: &str| -> Vec<String> {
        let line = table.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{table}"));
        line.split_whitespace().map(str::to_string).collect()
    };
    // Six rows of ops, and a span.
    let all = profile.to_string();
    assert_eq!((count(&all, "exp"), count(&all, "profile.rs:"), count(&all, "other")), (3, 7, 0), "{all}");
    let one = profile.table().rows(1).to_string();
    assert_eq!(count(&one, "profile.rs:"), 1, "{one}");
    let none = profile.table().rows(0).to_string();
    assert_eq!((count(&none, "profile.rs:"), row(&none, "… 6 others")[3].as_str()), (0, "6"), "{none}");
    assert_eq!(row(&none, "… 1 other")[3], "1", "{none}");

    let by_op = profile.table().by_op().to_string();
    let exp = row(&by_op, "exp");
    assert_eq!((exp[1].as_str(), exp[exp.len() - 2..].join(" ").as_str()), ("3", "3 lines"), "{by_op}");
    assert_eq!((count(&by_op, "tanh"), count(&by_op, "profile.rs:")), (1, 4), "{by_op}");
    let by_line = profile.table().by_line().to_string();
    assert_eq!(row(&by_line, "3 ops")[2], "3", "{by_line}");
    assert_eq!((count(&by_line, "2 ops"), count(&by_line, "exp")), (1, 1), "{by_line}");
    Ok(())
}

#[test]
fn ops_are_counted_once() -> Result<()> {
    manual_seed(4);
    let x = Tensor::randn([("N", 4), ("C", 6)])?.requiring_grad()?;
    let slow = |x: &Tensor| -> Result<Tensor> {
        sleep(Duration::from_millis(10));
        Ok(Op::new("slow", x.value().clone()).input(x, |g, _| Ok(g.clone())).output())
    };
    let (result, profile) = profile(|| -> Result<()> {
        let y = x.layer_norm("C")?;
        let (values, _) = {
            let Picked { values, indices } = y.max("C")?;
            (values, indices)
        };
        let z = Tensor::cat([&y, &y], "N")?.to(DType::F64)?.split(2, "N")?.remove(0).rename([("C", "D")])?;
        let w = slow(&z)?.exp()?.sum(..)?.add(&values.sum(..)?)?;
        w.backward()
    });
    result?;
    adds_up(&profile);
    for name in ["layer_norm", "max", "cat", "to", "split", "slow", "exp", "add"] {
        assert_eq!(one(&profile, RowKind::Forward, name).calls, 1, "{name} in\n{profile}");
    }
    assert!(one(&profile, RowKind::Forward, "slow").own >= Duration::from_millis(10), "{profile}");
    // The ops of a derivative are a part of it.
    assert!(find(&profile, RowKind::Forward, "mul").is_empty(), "{profile}");
    assert_eq!(one(&profile, RowKind::Backward, "layer_norm").calls, 1);
    assert_eq!(one(&profile, RowKind::Backward, "exp").calls, 1);

    // An op that failed has not run.
    let (failed, profile) = profile_of(|| x.sum("Z").is_err() && x.add(Tensor::ones([5]).unwrap()).is_err());
    assert!(failed && profile.ops().count() == 0, "{profile}");
    Ok(())
}

/// `profile`, whose name a variable hides.
fn profile_of<R>(f: impl FnOnce() -> R) -> (R, Profile) {
    profile(f)
}

#[test]
fn what_runs_again_and_closures_of_steps() -> Result<()> {
    manual_seed(5);
    let w = Parameter::new(Tensor::randn([("in", 3)])?)?;
    let mut optimizer = Lbfgs::builder([w.clone()]).max_iter(3).build()?;
    let (result, profile) = profile(|| {
        optimizer
            .step_with(&mut || checkpoint(|inputs| inputs[0].square(), &[&w.tensor()])?.sum(..))
            .map(drop)
    });
    result?;
    adds_up(&profile);
    let (square, sum) = (one(&profile, RowKind::Forward, "square"), one(&profile, RowKind::Forward, "sum"));
    assert_eq!(square.calls, 2 * sum.calls, "forward and again in the backward pass\n{profile}");
    assert_eq!(one(&profile, RowKind::Backward, "square").calls, sum.calls);
    assert!(sum.calls >= 2);
    Ok(())
}

#[test]
fn threads_that_work_for_the_program() -> Result<()> {
    let work = || {
        let handed = hand_over();
        let worker = std::thread::spawn(move || {
            handed.run(|| span("decode", || Tensor::ones([100]).and_then(|x| x.exp())).map(drop))
        });
        Tensor::ones([100]).and_then(|x| x.tanh())?;
        worker.join().unwrap()
    };
    let (result, profile) = profile(work);
    result?;
    adds_up(&profile);
    assert_eq!(one(&profile, RowKind::Forward, "exp").thread, 1);
    assert_eq!(one(&profile, RowKind::Span, "decode").thread, 1);
    assert_eq!(one(&profile, RowKind::Forward, "tanh").thread, 0);
    assert!(profile.to_string().contains("spans, other threads"), "{profile}");
    Ok(())
}

/// The ops of a loader count for lines of the program, whichever thread they run on.
#[test]
fn ops_of_loaders_by_line() -> Result<()> {
    manual_seed(6);
    let x = Tensor::randn([("N", 12), ("in", 4)])?;
    for workers in [0, 2] {
        let data = TensorDataset::new(x.clone())?.map(|x: Tensor| x.mul(2.0));
        let loader = Loader::builder(data).batch_size(4).shuffle(true).workers(workers).build()?;
        let (result, profile) = profile_of(|| loader.iter().try_for_each(|x| x?.exp().map(drop)));
        result?;
        assert!(one(&profile, RowKind::Forward, "exp").calls == 3, "{profile}");
        assert!(profile.rows().iter().all(|row| row.at.file() == file!()), "{profile}");
    }
    Ok(())
}

/// A loader starts new workers in each epoch.
#[test]
fn the_table_does_not_grow_with_the_workers() -> Result<()> {
    manual_seed(6);
    let data = TensorDataset::new(Tensor::randn([("N", 12), ("in", 4)])?)?.map(|x: Tensor| x.mul(2.0));
    let loader = Loader::builder(data).batch_size(4).workers(2).build()?;
    let epochs = |count: usize| {
        let (result, profile) =
            profile(|| (0..count).try_for_each(|_| loader.iter().try_for_each(|x| x?.exp().map(drop))));
        result.map(|()| profile)
    };
    let profile = epochs(4)?;
    let table = profile.to_string();
    assert_eq!(table.matches("forward, other threads").count(), 1, "{table}");
    assert!(!table.contains("thread 1"), "{table}");
    let muls: Vec<&str> = table.lines().filter(|line| line.trim_start().starts_with("mul ")).collect();
    assert_eq!(muls.len(), 1, "{table}");
    assert_eq!(muls[0].split_whitespace().nth(1), Some("48"), "one for each sample of 4 epochs\n{table}");
    assert!(profile.rows().iter().any(|row| row.thread > 2), "rows and the trace keep the threads");
    assert_eq!(table.lines().count(), epochs(1)?.to_string().lines().count());
    Ok(())
}

#[test]
fn a_trace_is_json_that_chrome_reads() -> Result<()> {
    manual_seed(7);
    let x = Tensor::randn([("N", 4)])?.requiring_grad()?;
    let (result, profile) = profile(|| span("\"quoted\"", || x.exp()?.sum(..)?.backward()));
    result?;
    let path = std::env::temp_dir().join(format!("namegrad-trace-{}.json", std::process::id()));
    profile.chrome_trace(&path)?;
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let bars: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    let find = |name: &str, category: &str| {
        *bars
            .iter()
            .find(|bar| bar["name"] == name && bar["cat"] == category)
            .unwrap_or_else(|| panic!("{name}"))
    };
    let ends = |bar: &serde_json::Value| {
        let (from, length) = (bar["ts"].as_f64().unwrap(), bar["dur"].as_f64().unwrap());
        (from, from + length)
    };
    // Sections surround what ran in them.
    let mut outer = ends(find("\"quoted\"", "span"));
    for (name, category) in [("backward", "backward"), ("exp", "backward"), ("mul", "forward")] {
        let inner = ends(find(name, category));
        assert!(outer.0 <= inner.0 && inner.1 <= outer.1, "{name}");
        outer = inner;
    }
    assert!(find("exp", "forward")["args"]["line"].as_str().unwrap().contains("profile.rs:"));
    let failed = profile.chrome_trace(std::env::temp_dir()).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Io);
    if cfg!(target_os = "linux") {
        assert_eq!(profile.chrome_trace("/dev/full").unwrap_err().kind(), ErrorKind::Io);
    }
    Ok(())
}

/// The layers of a sequence have rows of their own, forward and backward, with the paths of `named_parameters`.
#[test]
fn the_layers_of_a_sequence_by_path() -> Result<()> {
    let linear = || Linear::new(("in", 8), ("in", 8));
    let inner = Sequential::new().then(linear()?).then_named("squash", Tanh);
    let model = Sequential::new().then(linear()?).then(Relu).then_named("block", inner);
    let x = Tensor::ones([("N", 4), ("in", 8)])?;
    let layers = |profile: &Profile, kind| {
        let mut layers: Vec<(String, String)> = Vec::new();
        for row in profile.rows().iter().filter(|row| row.kind == kind) {
            layers.push((row.layer.as_deref().unwrap_or("-").into(), row.name.into()));
        }
        layers.sort();
        layers
    };
    let run = || profile(|| model.forward(&x)?.square()?.sum(..)?.backward());
    // Before any walk over the model, a sequence knows the names of its layers; then all layers know their
    // paths.
    let (first, unwalked) = run();
    first?;
    assert!(!model.named_parameters().is_empty());
    let (second, walked) = run();
    second?;
    for profile in [&unwalked, &walked] {
        for kind in [RowKind::Forward, RowKind::Backward] {
            let found = layers(profile, kind);
            for (layer, op) in
                [("0", "addmm"), ("1", "relu"), ("block.0", "addmm"), ("block.squash", "tanh"), ("-", "sum")]
            {
                assert!(found.contains(&(layer.into(), op.into())), "{layer}: {op} is not in {found:?}");
            }
        }
    }
    let (text, table) = (walked.to_string(), walked.table().by_layer().to_string());
    assert!(text.contains("profile.rs") && text.contains(" in block.squash"), "{text}");
    assert!(table.contains(" ops ") && table.contains(" in 0"), "{table}");
    assert_eq!(namegrad_autograd::running_layer(), None);
    Ok(())
}
