//! Normalizations.

use crate::check::{by_subsets, values};
use crate::plain;
use namegrad::prelude::*;

/// The number at position `at` of `lane`, normalized.
fn normalized(lane: &[f64], at: usize, eps: f64) -> f64 {
    (lane[at] - plain::mean(lane)) / (plain::variance(lane, 0.0) + eps).sqrt()
}

cases! {
    layer_norm {
        (x: values("N=2 C=3"); "C") => "N=2 C=3" floats, |i| normalized(&x.lane(&[i[0], 0], 1), i[1], 1e-5), scale 3.0;
        (x: values("N=2 C=3"), weight: values("C=3"), bias: values("C=3"); "C", 0.5) => "N=2 C=3" floats, |i| {
            normalized(&x.lane(&[i[0], 0], 1), i[1], 0.5) * weight.at(&i[1..]) + bias.at(&i[1..])
        }, scale 9.0;
        (x: values("C=4 N=2"), weight: values("C=4"); 0, 0.5) => "C=4 N=2" floats, |i| {
            normalized(&x.lane(&[0, i[1]], 0), i[0], 0.5) * weight.at(&i[..1])
        }, scale 9.0;
        (x: values("A=2 N=2 B=3"), weight: values("B=3 A=2"), bias: values("B=3 A=2"); ["B", "A"], 0.5) => "A=2 N=2 B=3" floats, |i| {
            let lane: Vec<f64> = (0..6).map(|at| x.at(&[at % 2, i[1], at / 2])).collect();
            normalized(&lane, i[2] * 2 + i[0], 0.5) * weight.at(&[i[2], i[0]]) + bias.at(&[i[2], i[0]])
        }, scale 9.0;
        (x: values("N=0 C=3"), weight: values("C=3"); "C") => "N=0 C=3" floats, |i| unreachable!();
    }
}

/// For any subset of the inputs, the fused backward pass equals the formula.
#[test]
fn gradients_of_any_subset() -> Result<()> {
    manual_seed(0);
    let x = Tensor::randn([("N", 33), ("time", 5), ("C", 70)])?;
    let (weight, bias) = (Tensor::randn([("C", 70)])?, Tensor::randn([("C", 70)])?);
    by_subsets(&[x, weight, bias], |inputs| {
        inputs[0].layer_norm_with("C", LayerNormOptions::new().weight(&inputs[1]).bias(&inputs[2]))
    })
}

#[test]
fn parameters_that_do_not_fit() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    let kind =
        |weight: &Tensor| x.layer_norm_with("C", LayerNormOptions::new().weight(weight)).unwrap_err().kind();
    assert_eq!(kind(&Tensor::ones([("C", 2)])?), ErrorKind::Shape);
    assert_eq!(kind(&Tensor::ones([("K", 3)])?), ErrorKind::NameMismatch);
    assert_eq!(kind(&Tensor::new([1_i64, 2, 3])?), ErrorKind::DType);
    assert_eq!(x.to(DType::I64)?.layer_norm("C").unwrap_err().kind(), ErrorKind::DType);
    Ok(())
}
