//! Says what to install if MPI is missing. It runs before the crate `mpi` is built, whose own message is about
//! what it tried.

use std::env;
use std::process::Command;

const INSTALL: &str = "on Debian and Ubuntu: apt install libopenmpi-dev openmpi-bin libclang-dev; \
                       on Fedora: dnf install openmpi-devel clang-devel, then module load mpi; \
                       on macOS: brew install open-mpi llvm";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=MPICC");
    let mpicc = env::var("MPICC").unwrap_or("mpicc".into());
    let is_there = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    let packages = ["ompi", "mpich"];
    if !is_there(&mpicc, &["-show"])
        && !packages.iter().any(|name| is_there("pkg-config", &["--exists", name]))
    {
        println!(
            "cargo::error=no MPI library was found, for neither {mpicc} nor pkg-config knows one; {INSTALL}"
        );
    }
    let folders = ["/usr/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
    let has_clang = |folder: &str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("libclang"))
    };
    let is_known = env::var_os("LIBCLANG_PATH").is_some() || is_there("llvm-config", &["--version"]);
    let llvm = (10..40).map(|version| format!("/usr/lib/llvm-{version}/lib"));
    if cfg!(target_os = "linux")
        && !is_known
        && !folders.into_iter().map(String::from).chain(llvm).any(|folder| has_clang(&folder))
    {
        println!("cargo::warning=libclang was not found, which the build of the crate mpi needs; {INSTALL}");
    }
}
