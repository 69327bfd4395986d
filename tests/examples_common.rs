//! Runs the tests of the code that the examples share. `cargo test` builds examples but does not run their
//! tests.

#[path = "../examples/common/mod.rs"]
mod common;
