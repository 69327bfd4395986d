//! Errors of memory name the op that was called, not one that it is made of.

use namegrad::ops::{self, Given, Gradients, TensorKind};
use namegrad::prelude::*;

/// Composed ops of these tables, which read no element one by one.
const TABLES: [&str; 5] = ["pointwise", "along", "cast", "like", "shape"];

#[test]
fn errors_of_memory_name_the_op_that_was_called() -> Result<()> {
    let (mut wrong, mut met) = (Vec::new(), 0);
    for op in ops::all().filter(|op| TABLES.contains(&op.info.table)) {
        let is_composed = matches!(op.gradients, Gradients::Composed | Gradients::Constant);
        if !is_composed || op.info.args.iter().any(|arg| arg.default.is_none()) {
            continue;
        }
        for shape in [&[1usize << 50][..], &[1 << 25, 1 << 25]] {
            // Views of one number: what is made of them does not fit in memory.
            let x = Tensor::ones(&vec![1; shape.len()][..])?.expand(shape)?;
            let tensors = op.info.tensors.iter().filter(|tensor| tensor.kind != TensorKind::Optional).count();
            let args: [(&str, Given<'_>); 0] = [];
            match op.call(&vec![&x; tensors], &args) {
                Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                    met += 1;
                    if error.op() != op.info.name {
                        wrong.push(format!("{}: {error}", op.info.name));
                    }
                }
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(met > 10, "only {met} of the calls ran out of memory");
    Ok(())
}
