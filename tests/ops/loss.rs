//! Losses in one pass.

use crate::check::{index, values};
use crate::plain;
use namegrad::prelude::*;

cases! {
    class_cross_entropy {
        (x: values("N=3 C=4"), target: index("N=3", [3, 0, 1]); "C") => "N=3" floats, |i| {
            -plain::log_softmax(&x.lane(&[i[0], 0], 1))[target.whole(i)]
        }, scale 6.0;
        (x: values("C=4 N=3"), target: index("?=3", [3, 0, 1]); "C", 0) => "N=3" floats, |i| {
            let class = target.whole(i);
            if class == 0 { 0.0 } else { -plain::log_softmax(&x.lane(&[0, i[0]], 0))[class] }
        }, scale 6.0;
        (x: values("N=2 C=3 H=2"), target: index("N=2 H=2", [0, -100, 2, 1]); 1) => "N=2 H=2" floats, |i| match target.at(i) {
            -100.0 => 0.0,
            class => -plain::log_softmax(&x.lane(&[i[0], 0, i[1]], 1))[class as usize],
        }, scale 6.0;
        (x: values("N=0 C=3"), target: index("N=0", []); 1) => "N=0" floats, |i| unreachable!();
    }
}

#[test]
fn targets_that_do_not_fit() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    let kind = |target: &Tensor| x.class_cross_entropy(target, "C").unwrap_err().kind();
    assert_eq!(kind(&Tensor::new([0_i64, 3])?), ErrorKind::Index);
    assert_eq!(kind(&Tensor::new([0_i64, -1])?), ErrorKind::Index);
    assert_eq!(kind(&Tensor::new([0_i64])?), ErrorKind::Shape);
    assert_eq!(kind(&Tensor::new([0.0, 1.0])?), ErrorKind::DType);
    assert_eq!(kind(&Tensor::new([0_i64, 1])?.refine_names(["K"])?), ErrorKind::NameMismatch);
    Ok(())
}
