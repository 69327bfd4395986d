//! Every op against a slow, plain reference: a row per op, and machinery that checks each row for everything.
//!
//! The tables are in `ops/`, in files named as in `core/src/ops`; what a row is checked for is in `ops/check/`. The tests here say that no op was
//! forgotten.

use crate::check::Derivative;
use namegrad::autograd::rules;
use namegrad::core::ops::all;
use std::collections::BTreeMap;

#[path = "ops/plain.rs"]
mod plain;
#[macro_use]
#[path = "ops/check/mod.rs"]
mod check;
#[path = "ops/along.rs"]
mod along;
#[path = "ops/binary.rs"]
mod binary;
#[path = "ops/composed.rs"]
mod composed;
#[path = "ops/count.rs"]
mod count;
#[path = "ops/index.rs"]
mod index;
#[path = "ops/matmul.rs"]
mod matmul;
#[path = "ops/pick.rs"]
mod pick;
#[path = "ops/reduce.rs"]
mod reduce;
#[path = "ops/shape.rs"]
mod shape;
#[path = "ops/unary.rs"]
mod unary;

/// An op with its in-place form.
type Tested = (&'static str, Option<&'static str>);

/// Ops that stand in neither list of derivatives, with the reason.
const WITHOUT_ROW: [(&str, Derivative, &str); 4] = [
    ("all", Derivative::Constant, "the result is truth"),
    ("any", Derivative::Constant, "the result is truth"),
    ("contract", Derivative::Taped, "its derivative needs the names, so it is recorded by hand"),
    ("histc", Derivative::Refused, "a count has no slope"),
];

fn tested() -> BTreeMap<&'static str, Option<&'static str>> {
    [
        unary::OPS,
        unary::parametric::OPS,
        binary::OPS,
        reduce::OPS,
        along::OPS,
        pick::OPS,
        count::OPS,
        shape::OPS,
        index::OPS,
        matmul::OPS,
        composed::OPS,
    ]
    .into_iter()
    .flatten()
    .copied()
    .collect()
}

#[test]
fn every_op_is_tested() {
    let tested = tested();
    let missing: Vec<&str> = all().map(|op| op.name).filter(|name| !tested.contains_key(name)).collect();
    assert!(missing.is_empty(), "no row in tests/ops for: {missing:?}");
}

#[test]
fn every_in_place_form_is_tested() {
    let tested = tested();
    let missing: Vec<&str> =
        all().filter(|op| tested.get(op.name).copied().flatten() != op.in_place).map(|op| op.name).collect();
    assert!(missing.is_empty(), "the rows in tests/ops have another in-place form than the ops: {missing:?}");
}

#[test]
fn every_op_has_a_derivative_or_a_reason() {
    for op in all() {
        let row = rules::rows().any(|row| row.op == op.name);
        let constant = rules::constants().any(|name| name == op.name);
        let reason = WITHOUT_ROW.iter().any(|(name, ..)| *name == op.name);
        assert!(
            [row, constant, reason].into_iter().filter(|listed| *listed).count() == 1,
            "{}: stands in the derivatives: {row}, in the constants: {constant}, in the ops without a row: {reason}",
            op.name
        );
    }
}
