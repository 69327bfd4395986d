//! The op to which `.ci/op` limits the tests.

use namegrad::ops;

/// The error names the closest op.
#[test]
fn the_chosen_op_exists() {
    if let Some(name) = namegrad_tests::chosen() {
        ops::find(name).unwrap_or_else(|error| panic!("NAMEGRAD_OP: {}", error.message()));
    }
}
