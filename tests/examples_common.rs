//! The tests of what the examples share: examples are built by `cargo test`, but their own tests are not run.

#[path = "../examples/common/mod.rs"]
mod common;
