//! Logs: what is in the files, what a killed or resumed run leaves, and full disks.

use crate::common::Scratch;
use namegrad::prelude::*;
use namegrad::train::log::{Content, Histogram, History, Hparam, Log};
use std::fs;
use std::path::Path;

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_string).collect()
}

#[test]
fn each_call_is_in_the_files_at_once() -> Result<()> {
    let folder = Scratch::new("log-lines");
    let mut log = Log::builder(folder.path()).csv(true).build()?;
    log.hparams([("lr", 0.5.into()), ("layers", 3.into()), ("act", "relu".into()), ("fused", true.into())])?;
    log.scalar("loss", 0, 0.1f32)?;
    log.scalars(1_usize, [("loss", Tensor::new(0.25)?), ("a,b", Tensor::new([3])?)])?;
    log.scalar("loss", 2_u64, f64::NAN)?;
    log.scalar("loss", 3, f64::NEG_INFINITY)?;
    log.text("note", 3, "two\n\"lines\"")?;
    log.histogram("x", 4, Histogram::new(Tensor::new([0.0, 1.0, 1.0])?, 2)?)?;
    let json = [
        r#"{"step":0,"name":"hparams","hparams":{"act":"relu","fused":true,"layers":3.0,"lr":0.5}}"#,
        r#"{"step":0,"name":"loss","value":0.10000000149011612}"#,
        r#"{"step":1,"name":"loss","value":0.25}"#,
        r#"{"step":1,"name":"a,b","value":3.0}"#,
        r#"{"step":2,"name":"loss","value":"NaN"}"#,
        r#"{"step":3,"name":"loss","value":"-Infinity"}"#,
        r#"{"step":3,"name":"note","text":"two\n\"lines\""}"#,
        r#"{"step":4,"name":"x","histogram":{"min":0.0,"max":1.0,"sum":2.0,"sum_squares":2.0,"not_finite":0,"limits":[0.5,1.0],"counts":[1,2]}}"#,
    ];
    assert_eq!(lines(&folder.path().join("log.jsonl")), json);
    let csv = [
        "step,name,value",
        "0,loss,0.10000000149011612",
        "1,loss,0.25",
        "1,\"a,b\",3.0",
        "2,loss,NaN",
        "3,loss,-inf",
    ];
    assert_eq!(lines(&folder.path().join("log.csv")), csv);
    for file in ["log.jsonl", "log.csv", ""] {
        let history = History::read(folder.path().join(file))?;
        assert_eq!(history.names().collect::<Vec<_>>(), ["a,b", "loss"]);
        let loss = history.get("loss")?;
        assert_eq!(loss[1], (1, 0.25));
        assert!(loss[2].1.is_nan() && loss[3].1 == f64::NEG_INFINITY);
        assert_eq!(history.last("a,b"), Some(3.0));
    }
    let records = History::records(folder.path())?;
    assert_eq!(records.len(), json.len());
    let Content::Hparams(values) = &records[0].content else { panic!("{:?}", records[0]) };
    assert_eq!(values["act"], Hparam::Text("relu".into()));
    Ok(())
}

#[test]
fn a_resumed_log_is_that_of_an_uninterrupted_run() -> Result<()> {
    fn run(log: &mut Log, steps: std::ops::Range<u64>) -> Result<()> {
        log.hparams([("lr", 0.1.into())])?;
        for step in steps {
            log.scalar("loss/train", step, 1.0 / (step + 1) as f64)?;
            if step % 3 == 2 {
                log.scalar("loss/test", step, step as f64)?;
            }
        }
        Ok(())
    }
    let (whole, parts) = (Scratch::new("log-whole"), Scratch::new("log-parts"));
    run(&mut Log::builder(whole.path()).csv(true).build()?, 0..20)?;
    // Killed after step 12, with a checkpoint after step 7.
    run(&mut Log::builder(parts.path()).csv(true).build()?, 0..13)?;
    for (file, half) in [("log.jsonl", "{\"step\":13,\"na"), ("log.csv", "13,loss/tr")] {
        let path = parts.path().join(file);
        let mut content = fs::read_to_string(&path).unwrap();
        content.push_str(half);
        fs::write(&path, content).unwrap();
        assert_eq!(History::read(&path)?.get("loss/train")?.len(), 13, "half a line is left out");
    }
    run(&mut Log::builder(parts.path()).csv(true).resume_from(8).build()?, 8..20)?;
    for file in ["log.jsonl", "log.csv"] {
        assert_eq!(lines(&parts.path().join(file)), lines(&whole.path().join(file)));
    }
    // Without anything to resume, from the start, and twice without progress.
    let fresh = Scratch::new("log-fresh");
    for _ in 0..2 {
        run(&mut Log::builder(fresh.path()).csv(true).resume_from(0).build()?, 0..20)?;
    }
    drop(Log::builder(fresh.path()).csv(true).resume_from(100).build()?);
    for file in ["log.jsonl", "log.csv"] {
        assert_eq!(lines(&fresh.path().join(file)), lines(&whole.path().join(file)));
    }
    Ok(())
}

#[test]
fn other_hyperparameters_of_a_resumed_run_are_logged() -> Result<()> {
    let folder = Scratch::new("log-hparams");
    Log::new(folder.path())?.hparams([("lr", 0.1.into())])?;
    for lr in [0.1, 0.2, 0.2, f64::NAN, f64::NAN] {
        let mut log = Log::builder(folder.path()).resume_from(3).build()?;
        for _ in 0..2 {
            log.hparams([("lr", lr.into())])?;
        }
    }
    assert_eq!(lines(&folder.path().join("log.jsonl")).len(), 3);
    Ok(())
}

#[test]
fn a_new_log_moves_the_earlier_one() -> Result<()> {
    let folder = Scratch::new("log-earlier");
    for run in 0..3 {
        let mut log = Log::builder(folder.path()).csv(run == 0).build()?;
        log.scalar("run", 0, run)?;
    }
    for (place, run) in [("earlier-1", 0.0), ("earlier-2", 1.0), ("", 2.0)] {
        let history = History::read(folder.path().join(place))?;
        assert_eq!(history.get("run")?, [(0, run)], "{place}");
    }
    assert!(folder.path().join("earlier-1/log.csv").exists());
    assert!(!folder.path().join("log.csv").exists());
    Ok(())
}

#[test]
fn bad_arguments_are_errors_and_nothing_is_written() -> Result<()> {
    let folder = Scratch::new("log-bad");
    let mut log = Log::new(folder.path())?;
    let error = log.scalar("loss", -1, 0.5).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Value, "scalar"));
    assert_eq!(error.location().file(), file!());
    for name in ["", "a\nb"] {
        assert_eq!(log.scalar(name, 0, 0.5).unwrap_err().kind(), ErrorKind::Value);
    }
    let error = log.scalar("loss", 0, Tensor::zeros([("N", 2)])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.to_string().contains("'loss'") && error.to_string().contains("[N=2]"), "{error}");
    // All or none.
    let error = log.scalars(0, [("a", Tensor::new(1.0)?), ("b", Tensor::zeros([0])?)]).unwrap_err();
    assert_eq!(error.location().file(), file!());
    assert!(log.scalars(0, [("a", 1.0), ("", 1.0)]).is_err());
    assert_eq!(fs::metadata(folder.path().join("log.jsonl")).unwrap().len(), 0);

    let second = Log::new(folder.path()).unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Io);
    assert!(second.to_string().contains("another log"), "{second}");
    assert_eq!(Log::builder(folder.path()).json_lines(false).build().unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(Log::builder(folder.path()).resume_from(-1).build().unwrap_err().kind(), ErrorKind::Value);
    let file = folder.path().join("log.jsonl");
    assert_eq!(Log::new(&file).unwrap_err().kind(), ErrorKind::Io, "a file is no folder");

    let only_numbers = Scratch::new("log-only-csv");
    let mut log = Log::builder(only_numbers.path()).json_lines(false).csv(true).build()?;
    let error = log.text("note", 0, "words").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.repair().unwrap().contains("json_lines"));
    Ok(())
}

#[test]
fn a_damaged_log_is_an_error_that_names_the_line_and_changes_nothing() -> Result<()> {
    let folder = Scratch::new("log-damaged");
    let path = folder.path().join("log.jsonl");
    let content =
        "{\"step\":0,\"name\":\"a\",\"value\":1.0}\nnot json\n{\"step\":9,\"name\":\"a\",\"value\":1.0}\n";
    fs::create_dir_all(folder.path()).unwrap();
    fs::write(&path, content).unwrap();
    for error in [
        History::read(folder.path()).unwrap_err(),
        Log::builder(folder.path()).resume_from(5).build().unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Format);
        assert!(error.to_string().contains("log.jsonl: line 2: "), "{error}");
        assert_eq!(error.location().file(), file!());
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), content);
    for missing in ["none", "none.csv"] {
        assert_eq!(History::read(folder.path().join(missing)).unwrap_err().kind(), ErrorKind::Io);
    }
    let other = folder.path().join("notes.txt");
    fs::write(&other, "words").unwrap();
    assert_eq!(History::read(other).unwrap_err().kind(), ErrorKind::Format);
    fs::remove_file(&path).unwrap();
    assert_eq!(History::read(folder.path()).unwrap_err().kind(), ErrorKind::Io);
    Ok(())
}

/// On a full disk, a write is an error, and what was written before stays.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_at_the_call() -> Result<()> {
    let folder = Scratch::new("log-full");
    fs::create_dir_all(folder.path()).unwrap();
    // The other file of the log has space.
    std::os::unix::fs::symlink("/dev/full", folder.path().join("log.csv")).unwrap();
    assert_eq!(Log::builder(folder.path()).csv(true).build().unwrap_err().kind(), ErrorKind::Io);

    let weight = Parameter::new(Tensor::new(4.0)?)?;
    let mut optimizer = Sgd::builder([weight.clone()]).lr(0.25).build()?;
    let full = Scratch::new("log-full-lines");
    fs::create_dir_all(full.path()).unwrap();
    std::os::unix::fs::symlink("/dev/full", full.path().join("log.jsonl")).unwrap();
    let mut log = Log::builder(full.path()).csv(true).build()?;
    for step in 0..3 {
        let loss = optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
        let error = log.scalar("loss", step, loss).unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::Io, "scalar"));
        assert!(error.to_string().contains("log.jsonl"), "{error}");
    }
    assert_eq!(weight.tensor().item::<f64>()?, 0.5, "training goes on");
    assert_eq!(lines(&full.path().join("log.csv")), ["step,name,value"], "in all files or in none");
    Ok(())
}

/// Parameters are logged by path, with their gradients if they have any.
#[test]
fn parameters_and_gradients_by_path() -> Result<()> {
    manual_seed(1);
    let folder = Scratch::new("log-parameters");
    let model = Sequential::new()
        .then_named("hidden", Linear::new(("in", 3), ("h", 4))?)
        .then_named("out", Linear::new(("h", 4), ("y", 1))?);
    let mut log = Log::new(folder.path())?;
    log.parameters(0, &model)?;
    model.forward(&Tensor::ones([("N", 2), ("in", 3)])?)?.sum(..)?.backward()?;
    log.parameters(1, &model)?;
    let records = History::records(folder.path())?;
    let names = |step: u64| {
        let names = records.iter().filter(|record| record.step == step).map(|record| record.name.as_str());
        names.collect::<Vec<_>>()
    };
    let paths = ["hidden.weight", "hidden.bias", "out.weight", "out.bias"];
    assert_eq!(names(0), paths.map(|path| format!("parameters/{path}")));
    assert_eq!(names(1).len(), 8);
    assert!(paths.iter().all(|path| names(1).contains(&format!("gradients/{path}").as_str())));
    let Content::Histogram(bias) = &records.last().unwrap().content else { panic!("not a histogram") };
    assert_eq!((bias.min, bias.max, bias.counts.as_slice()), (2.0, 2.0, &[1][..]));
    Ok(())
}
