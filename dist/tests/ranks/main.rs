//! Programs on 1 to 8 ranks. Without arguments, this program starts itself with `mpirun` for each of them;
//! an argument is the start of the names of the programs to run.

mod collectives;
mod failures;
mod mesh;
mod models;

use namegrad_dist::Group;
use std::io::Read;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A program that all ranks run.
struct Program {
    name: &'static str,
    /// The numbers of ranks to run it with.
    ranks: &'static [usize],
    run: fn(&Group) -> Outcome,
    /// What its error says, if it is to fail.
    error: Option<&'static str>,
}

/// The environment variable that tells a rank its program.
const PROGRAM: &str = "NAMEGRAD_DIST_PROGRAM";

fn programs() -> impl Iterator<Item = &'static Program> {
    [collectives::PROGRAMS, models::PROGRAMS, mesh::PROGRAMS, failures::PROGRAMS].into_iter().flatten()
}

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(PROGRAM) {
        let program = programs().find(|program| program.name == name).expect("a program of this name");
        return namegrad_dist::run(|group| (program.run)(group));
    }
    if Command::new("mpirun").arg("--version").output().is_err() {
        println!("skipped: there is no mpirun");
        return ExitCode::SUCCESS;
    }
    let filter = std::env::args().nth(1).filter(|argument| !argument.starts_with('-')).unwrap_or_default();
    let mut failed = 0;
    for program in programs().filter(|program| program.name.starts_with(&filter)) {
        for ranks in program.ranks {
            let started = Instant::now();
            let result = launch(program, *ranks);
            let words = if result.is_ok() { "ok" } else { "FAILED" };
            println!(
                "{} on {ranks} ranks .. {words} ({:.1} s)",
                program.name,
                started.elapsed().as_secs_f64()
            );
            if let Err(output) = result {
                println!("{output}");
                failed += 1;
            }
        }
    }
    type Whole = fn(usize) -> Result<(), String>;
    let whole: [(&str, Whole); 3] = [
        ("bytes-of-mpi", collectives::bytes_of_mpi),
        ("resumed-after-a-kill", |ranks| failures::resumed(ranks, false)),
        ("resumed-after-a-full-disk", |ranks| failures::resumed(ranks, true)),
    ];
    for (name, run) in whole.into_iter().filter(|(name, _)| name.starts_with(&filter)) {
        for ranks in [2, 4] {
            let words = run(ranks).err().unwrap_or("ok".into());
            failed += usize::from(words != "ok" && !words.starts_with("skipped"));
            println!("{name} on {ranks} ranks .. {words}");
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a program; the error is what it printed.
fn launch(program: &Program, ranks: usize) -> Result<(), String> {
    let output = output_of(program.name, ranks, &[])?;
    match program.error {
        None if output.succeeded => Ok(()),
        Some(error) if !output.succeeded && output.text.matches(error).count() == 1 => Ok(()),
        Some(error) => Err(format!("expected one error with '{error}'\n{}", output.text)),
        None => Err(output.text),
    }
}

struct Output {
    succeeded: bool,
    text: String,
}

/// Runs a program of this name on several ranks, with these environment variables, for a limited time.
fn output_of(name: &str, ranks: usize, variables: &[(&str, &str)]) -> Result<Output, String> {
    let limit = Duration::from_secs(60);
    let program = std::env::current_exe().expect("a path");
    let mut mpirun = Command::new("mpirun");
    // A write that exceeds the limit of a file is an error, not a signal that ends the process.
    let script = "trap '' XFSZ; exec \"$0\"";
    mpirun.args(["--oversubscribe", "-n", &ranks.to_string(), "sh", "-c", script]).arg(program);
    mpirun.envs(variables.iter().copied()).env(PROGRAM, name).env("RAYON_NUM_THREADS", "1");
    mpirun.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    mpirun.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
    let mut child = mpirun.spawn().map_err(|error| error.to_string())?;
    let (mut out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let texts = [thread::spawn(move || read(&mut out)), thread::spawn(move || read(&mut err))];
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break Some(status);
        }
        if started.elapsed() > limit {
            child.kill().map_err(|error| error.to_string())?;
            break None;
        }
        thread::sleep(Duration::from_millis(10));
    };
    let text = texts.map(|text| text.join().expect("no panic")).concat();
    match status {
        Some(status) => Ok(Output { succeeded: status.success(), text }),
        None => Err(format!("did not end in {} s\n{text}", limit.as_secs())),
    }
}

fn read(from: &mut dyn Read) -> String {
    let mut bytes = Vec::new();
    let _ = from.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
