//! [`run`], the `main` of a program with several ranks.

use crate::group::Group;
use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// Runs `f` on every rank with the group of all. If `f` fails or panics on one rank, its error is printed with
/// the rank, and the processes of all ranks end. A rank that ends while others still wait for it is an error of
/// these.
///
/// A program that goes on after the error of calls that differ, or of a rank that has waited in vain, still
/// ends as one that has failed: the ranks have lost each other.
///
/// `mpirun` and `srun` end all ranks when one is killed.
///
/// Ops run on as many threads as there are cores for each rank of this machine, or as `RAYON_NUM_THREADS` says.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad_dist::Reduction;
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     namegrad_dist::run(|group| {
///         let sum = group.all_reduce(&Tensor::ones([3])?, Reduction::Sum)?;
///         if group.is_first() {
///             println!("{sum}");
///         }
///         Ok::<(), Error>(())
///     })
/// }
/// ```
#[track_caller]
pub fn run<E: Display>(f: impl FnOnce(&Group) -> Result<(), E>) -> ExitCode {
    let at = Location::caller();
    let group = match Group::world() {
        Ok(group) => group,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    share_cores();
    match catch_unwind(AssertUnwindSafe(|| f(&group))) {
        Ok(Ok(())) => match group.end(at) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&group, &error),
        },
        Ok(Err(error)) => failed(&group, &error),
        Err(panic) => failed(&group, &format_args!("panicked: {}", text_of(&*panic))),
    }
}

/// Divides the cores of this machine among its ranks, unless the user or the program has chosen the number of
/// threads. Variables of Open MPI, MPICH and Slurm tell how many ranks there are here.
fn share_cores() {
    if std::env::var_os("RAYON_NUM_THREADS").is_some() {
        return;
    }
    let here = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"];
    let ranks = here.iter().find_map(|name| std::env::var(name).ok()?.parse::<usize>().ok()).unwrap_or(1);
    if let (2.., Ok(cores)) = (ranks, thread::available_parallelism()) {
        let threads = (cores.get() / ranks).max(1);
        // An error means that the program has chosen already.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    }
}

/// Prints the error of this rank and ends all ranks.
fn failed(group: &Group, error: &dyn Display) -> ExitCode {
    if group.size() == 1 {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    // If all ranks have the same error, the first one ends the others before they print it again.
    match group.speaker() {
        Some(speaker) if speaker != group.rank() => {
            thread::sleep(Duration::from_secs(5));
            group.abort()
        }
        _ => thread::sleep(Duration::from_millis(500 * group.rank().min(3) as u64)),
    }
    eprintln!("error: rank {} of {}: {error}", group.rank(), group.size());
    group.abort()
}

/// The message of a panic.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

/// Ends the ranks of a program that has not called [`run`], when its group is dropped.
pub(crate) fn left(group: &Group) {
    if thread::panicking() {
        failed(group, &"panicked");
    }
    // An error on the other ranks says that this one has ended; this one has printed its own, if it has one.
    let _ = group.end(Location::caller());
}
