//! A training program that is killed at random moments, and resumed until it is through, ends with the same
//! bits as one that ran in one go. A disk that is full while saving loses nothing.
//!
//! The program is a test of this file, which runs in a new process with [`FOLDER`] set. `NAMEGRAD_KILLS` sets
//! how often it is killed in all, 10 times by default.

use namegrad::core::random::Generator;
use namegrad::data::{Loader, TensorDataset};
use namegrad::optim::AveragedModel;
use namegrad::optim::schedule::{Cosine, Scheduler};
use namegrad::prelude::*;
use namegrad::train::{Best, Checkpoints, parts};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// The name of the test that is the program.
const PROGRAM: &str = "kill::the_program";
/// The environment variable with the folder of the program.
const FOLDER: &str = "NAMEGRAD_KILLED_RUN";
const ARGUMENTS: [&str; 3] = ["--exact", PROGRAM, "--nocapture"];
const STEPS: u64 = 150;
const SAMPLES: usize = 32;
const BATCH: usize = 8;

#[test]
fn the_program() {
    if let Some(folder) = env::var_os(FOLDER) {
        train(Path::new(&folder)).unwrap();
    }
}

/// The training program. Its log has a line for each step; what a checkpoint does not know is removed from
/// it.
fn train(folder: &Path) -> Result<()> {
    manual_seed(3);
    let data = Tensor::randn([("N", SAMPLES), ("in", 4)])?;
    let model = Sequential::new()
        .then_named("hidden", Linear::new(("in", 4), ("h", 16))?)
        .then_named("dropout", Dropout::new(0.2)?)
        .then_named("out", Linear::new(("h", 16), ("out", 1))?);
    let mut optimizer = AdamW::builder_named(model.named_parameters()).lr(0.01).build()?;
    let mut scheduler = Scheduler::new(Cosine::new(STEPS as usize), &mut optimizer)?;
    let mut average = AveragedModel::ema(&model, 0.9)?;
    let loader =
        Loader::builder(TensorDataset::new(data)?).batch_size(BATCH).shuffle(true).workers(2).build()?;
    let (mut step, mut log) = (0_u64, Vec::<String>::new());
    let checkpoints = Checkpoints::builder(folder).keep_last(2).keep_best(1, "loss", Best::Lowest).build()?;
    checkpoints.resume(parts![
        &model,
        &mut optimizer,
        &mut scheduler,
        &mut average,
        &loader,
        &mut step,
        &mut log
    ])?;
    while step < STEPS {
        for x in loader.iter() {
            let loss = model.forward(&x?)?.square()?.mean(..)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            scheduler.step(&mut optimizer)?;
            average.update_parameters(&model)?;
            let loss = loss.item::<f64>()?;
            step += 1;
            // So long that checkpoints grow over the limit of the full disk.
            log.push(format!("{step} {:0100x}", loss.to_bits()));
            let (at, parts) = (
                step,
                parts![&model, &mut optimizer, &mut scheduler, &mut average, &loader, &mut step, &mut log],
            );
            checkpoints.save_with(at, parts, [("loss", loss)])?;
            if step == STEPS {
                break;
            }
        }
    }
    average.state_dict().save(folder.join("average.safetensors"))?;
    model.state_dict().save(folder.join("final.safetensors"))?;
    fs::write(folder.join("log.txt"), log.join("\n")).unwrap();
    Ok(())
}

fn start(folder: &Path) -> Child {
    let program = env::current_exe().unwrap();
    Command::new(program)
        .args(ARGUMENTS)
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("namegrad-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// The results of a complete run.
fn result(folder: &Path) -> ([Vec<u8>; 2], String) {
    let read = |name: &str| fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    (["final.safetensors", "average.safetensors"].map(read), String::from_utf8(read("log.txt")).unwrap())
}

#[test]
fn a_killed_run_has_the_same_bits() {
    let kills = env::var("NAMEGRAD_KILLS").map_or(10, |kills| kills.parse().expect("a number of kills"));
    let whole = folder("whole");
    let begin = Instant::now();
    let output = start(&whole).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let length = begin.elapsed();
    let expected = result(&whole);
    assert_eq!(expected.1.lines().count() as u64, STEPS);

    let mut random =
        Generator::from_seed(env::var("NAMEGRAD_KILL_SEED").map_or(1, |seed| seed.parse().unwrap()));
    let (mut killed, mut runs) = (0, 0);
    while killed < kills {
        let killed_run = folder("killed");
        loop {
            let mut child = start(&killed_run);
            // So that a run is killed about five times.
            let share = random.scope(|| Tensor::rand(())).unwrap().item::<f64>().unwrap() * 0.4;
            let until = Instant::now() + Duration::from_secs_f64(share * length.as_secs_f64());
            while Instant::now() < until && child.try_wait().unwrap().is_none() {
                thread::sleep(Duration::from_micros(200));
            }
            if killed < kills && child.try_wait().unwrap().is_none() {
                child.kill().unwrap(); // SIGKILL
                child.wait().unwrap();
                killed += 1;
                continue;
            }
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            break;
        }
        let found = result(&killed_run);
        assert_eq!(found.1, expected.1, "the log after {killed} kills");
        assert!(found.0 == expected.0, "the parameters after {killed} kills");
        runs += 1;
        fs::remove_dir_all(&killed_run).unwrap();
    }
    fs::remove_dir_all(&whole).unwrap();
    println!("{killed} kills in {runs} runs of {length:?}: the same bits");
}

/// A limit on the size of files, which the system treats like a full disk.
#[test]
fn a_full_disk_loses_nothing() {
    if !cfg!(unix) {
        return;
    }
    let limited = folder("full");
    let program = env::current_exe().unwrap();
    // The signal would kill the program; without it, writing fails. The unit is 512 or 1024 bytes.
    let script = "trap '' XFSZ; ulimit -f 12; exec \"$0\" \"$@\"";
    let fail = || {
        let mut command = Command::new("sh");
        let output = command
            .args(["-c", script])
            .arg(&program)
            .args(ARGUMENTS)
            .env(FOLDER, &limited)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{text}");
        let error = text.lines().find(|line| line.contains("Checkpoints::save: "));
        error.unwrap_or_else(|| panic!("{text}")).to_string()
    };
    let error = fail();
    let mut files: Vec<String> = fs::read_dir(&limited)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert!(!files.is_empty() && files.iter().all(|file| file.starts_with("step-")), "{files:?}");
    // It goes on from the last one that was saved, and fails at the next.
    assert_eq!(fail(), error);
    // With more space, the run gets through.
    let output = start(&limited).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(result(&limited).1.lines().count() as u64, STEPS);
    fs::remove_dir_all(&limited).unwrap();
}
