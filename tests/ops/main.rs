//! Every op against a slow, plain reference: one row for each op, and code that checks each row in all
//! respects.
//!
//! The tables are in `ops/`, in files named as in `core/src/ops`, and the checks are in `ops/check/`. The
//! tests here check that no op in the registry was forgotten.

use namegrad::ops;
use namegrad_tests::is_of_domain;
use std::collections::BTreeSet;

mod plain;
#[macro_use]
mod check;
mod along;
mod attention;
mod attention_by_name;
mod binary;
mod composed;
mod conv;
mod count;
mod functional;
mod image;
mod index;
mod linalg;
mod loss;
mod matmul;
mod norm;
mod pattern;
mod pick;
mod pool;
mod recurrent;
mod reduce;
mod shape;
mod slice;
mod unary;

/// The ops whose values are compared with a reference.
fn tested() -> BTreeSet<&'static str> {
    [
        unary::OPS,
        unary::parametric::OPS,
        binary::OPS,
        reduce::OPS,
        along::OPS,
        along::composed::OPS,
        pick::OPS,
        count::OPS,
        shape::OPS,
        slice::OPS,
        image::OPS,
        index::OPS,
        matmul::OPS,
        linalg::OPS,
        conv::OPS,
        pool::OPS,
        norm::OPS,
        attention::OPS,
        recurrent::OPS,
        loss::OPS,
        composed::OPS,
        pattern::OPS,
        functional::OPS,
        binary::BY_FUNCTION,
    ]
    .into_iter()
    .flatten()
    .copied()
    .chain(composed::by_function())
    .collect()
}

/// The values of each op, and of its in-place form, are compared with a reference somewhere.
#[test]
fn every_op_is_tested() {
    // A row `huber_loss` is for the function `nn.huber_loss` if there is no op with that name.
    let mut tested: BTreeSet<&str> =
        tested().into_iter().map(|name| ops::find(name).map_or(name, |op| op.info.name)).collect();
    // A function can have PyTorch's answers instead, which `tests/conformance/main.rs` replays.
    let answers = include_str!("../fixtures/implemented.txt").lines().filter_map(|line| line.split_once(' '));
    tested.extend(
        answers.filter(|(op, passed)| op.starts_with("nn.") && !passed.starts_with("0 ")).map(|(op, _)| op),
    );
    let missing: Vec<&str> = ops::all()
        .filter(|op| !namegrad_tests::LINALG.contains(&op.info.table)) // see tests/domains
        .map(|op| op.info.name)
        .filter(|name| !tested.contains(name) && !is_of_domain(name))
        .collect();
    assert!(
        missing.is_empty(),
        "not compared with a reference: {missing:?}. An op needs a row in tests/ops; a function of `nn` a row \
         in tests/ops/functional.rs, or answers recorded from PyTorch in tests/fixtures, which \
         `NAMEGRAD_CONFORMANCE_BLESS=1 cargo test --test conformance` then lists"
    );
}
