//! Code that several test programs use: the folder of the repository, a process for tests that need one for
//! themselves, random calls of ops, and the lists of optimizers and schedules.

pub mod draw;
#[cfg(feature = "all")]
pub mod list;
pub mod values;

use namegrad::ops::{self, Op};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder above `tests`")
}

/// Runs the ignored tests whose names start with `prefix` in a new process of this test program, one after
/// another: for tests that count what the whole process holds, such as memory or threads.
///
/// # Panics
/// If one of them fails, with its output, or if there are none.
pub fn run_alone(prefix: &str) {
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program)
        .args(["--ignored", "--test-threads=1", prefix])
        .output()
        .expect("a new process of this program");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains("running 0 tests"), "no ignored test starts with {prefix}");
}

static CHOSEN: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("NAMEGRAD_OP").ok());

/// The op, function or layer to which the variable `NAMEGRAD_OP` limits the tests, if it is set.
pub fn chosen() -> Option<&'static str> {
    CHOSEN.as_deref()
}

/// Whether the op, function or layer of this name is to be tested. The chosen name can leave out `nn.`.
pub fn is_chosen(name: &str) -> bool {
    chosen().is_none_or(|chosen| chosen == name || name.strip_prefix("nn.") == Some(chosen))
}

/// The ops to be tested: those of the registry, or the chosen one. The functions of Fourier transforms and of
/// complex numbers take other tensors: `tests/domains/fft/rows.rs` tests them.
pub fn ops() -> impl Iterator<Item = &'static Op> {
    ops::all().filter(|op| is_chosen(op.info.name) && !is_of_domain(op.info.name))
}

/// The tables of `linalg`.
pub const LINALG: [&str; 5] = ["solve", "factor", "eigen", "svd", "functions"];

/// Whether an op is one of a crate behind a feature, whose names start with that of its module.
pub fn is_of_domain(name: &str) -> bool {
    name.split_once('.').is_some_and(|(module, _)| module != "nn")
}
