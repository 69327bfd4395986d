//! Every op against a slow, plain reference: one row for each op, and code that checks each row in all
//! respects.
//!
//! The tables are in `ops/`, in files named as in `core/src/ops`, and the checks are in `ops/check/`. The
//! tests here check that no op in the registry was forgotten.

use namegrad::ops;
use std::collections::BTreeSet;

#[path = "ops/plain.rs"]
mod plain;
#[macro_use]
#[path = "ops/check/mod.rs"]
mod check;
#[path = "ops/along.rs"]
mod along;
#[path = "ops/attention.rs"]
mod attention;
#[path = "ops/binary.rs"]
mod binary;
#[path = "ops/composed.rs"]
mod composed;
#[path = "ops/conv.rs"]
mod conv;
#[path = "ops/count.rs"]
mod count;
#[path = "ops/functional.rs"]
mod functional;
#[path = "ops/image.rs"]
mod image;
#[path = "ops/index.rs"]
mod index;
#[path = "ops/linalg.rs"]
mod linalg;
#[path = "ops/loss.rs"]
mod loss;
#[path = "ops/matmul.rs"]
mod matmul;
#[path = "ops/norm.rs"]
mod norm;
#[path = "ops/pick.rs"]
mod pick;
#[path = "ops/pool.rs"]
mod pool;
#[path = "ops/recurrent.rs"]
mod recurrent;
#[path = "ops/reduce.rs"]
mod reduce;
#[path = "ops/shape.rs"]
mod shape;
#[path = "ops/slice.rs"]
mod slice;
#[path = "ops/unary.rs"]
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
    // A function can have PyTorch's answers instead, which `tests/conformance.rs` replays.
    let answers = include_str!("fixtures/implemented.txt").lines().filter_map(|line| line.split_once(' '));
    tested.extend(
        answers.filter(|(op, passed)| op.starts_with("nn.") && !passed.starts_with("0 ")).map(|(op, _)| op),
    );
    let missing: Vec<&str> =
        ops::all().map(|op| op.info.name).filter(|name| !tested.contains(name)).collect();
    assert!(
        missing.is_empty(),
        "not compared with a reference: {missing:?}. An op needs a row in tests/ops; a function of `nn` a row \
         in tests/ops/functional.rs, or answers recorded from PyTorch in tests/fixtures, which \
         `NAMEGRAD_CONFORMANCE_BLESS=1 cargo test --test conformance` then lists"
    );
}
