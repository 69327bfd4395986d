//! Chains of ops with one `?`: they give the same results as single ops, and the error is the error of the op
//! that failed, at its line.

use namegrad::prelude::*;

#[test]
fn a_chain_gives_what_its_ops_give() -> Result<()> {
    let x = Tensor::randn([("N", 3), ("C", 4)])?;
    let chained = x.square().mean(keep("C")).add(1e-6).rsqrt().mul(&x)?;
    let step_by_step = x.mul(&x.square()?.mean(keep("C"))?.add(1e-6)?.rsqrt()?)?;
    assert!(chained.equal(&step_by_step)?);
    Ok(())
}

#[test]
fn methods_of_the_standard_library_do_not_come_first() -> Result<()> {
    let x = Tensor::arange(0, 6, 1)?.reshape([("N", 2), ("C", 3)])?;
    assert_eq!(x.neg().flatten(.., "all")?.to_string(), x.neg()?.flatten(.., "all")?.to_string());
    assert_eq!(x.neg().transpose("N", "C")?.shape().to_string(), "[C=3, N=2]");
    assert_eq!(x.neg().max("C")?.values.to_vec::<i64>()?, [0, -3]);
    assert_eq!(x.neg().eq(&x)?.sum(..).item::<i64>()?, 1);
    assert_eq!(x.neg().clamp(-2, 5)?.min(..)?.values.item::<i64>()?, -2);
    Ok(())
}

#[test]
fn an_error_names_the_op_and_the_line_that_failed() -> Result<()> {
    let x = Tensor::ones([("N", 3), ("C", 4)])?;
    let line = line!() + 4;
    #[rustfmt::skip]
    let error = x
        .exp()
        .softmax("H")
        .log()
        .sum(..)
        .unwrap_err();
    assert_eq!((error.op(), error.location().file(), error.location().line()), ("softmax", file!(), line));
    assert_eq!(error.kind(), ErrorKind::NameNotFound);
    Ok(())
}

/// A parameter is a tensor for every op, not only as the other operand.
#[test]
fn a_parameter_has_the_methods_of_a_tensor() -> Result<()> {
    let p = Parameter::new(Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.refine_names(["N", "C"])?)?;
    let loss = p.square().sum(except("C")).mul(&p)?.sum(..)?;
    loss.backward()?;
    // The derivative of Σ_nc p_nc Σ_m p_mc², and of its other factor.
    assert_eq!(p.grad().expect("a gradient").to_vec::<f32>()?, [18.0, 44.0, 34.0, 68.0]);
    assert_eq!(p.index_select(&Tensor::new([1])?, "N")?.shape().to_string(), "[N=1, C=2]");
    assert_eq!((p.shape().to_string().as_str(), p.ndim(), p.numel()), ("[N=2, C=2]", 2, 4));
    assert!(p.max("C")?.values.requires_grad());
    // An option that is a tensor can be a parameter.
    let scale = Parameter::new(Tensor::ones([("C", 2)])?)?;
    let options = LayerNormOptions::new().weight(&scale);
    p.layer_norm_with("C", options)?.square().sum(..).backward()?;
    assert!(scale.grad().is_some());
    Ok(())
}

#[test]
fn a_chain_can_have_names_options_and_an_end() -> Result<()> {
    let x = Tensor::ones([2, 3])?.requiring_grad()?;
    let named = x.exp().refine_names(["N", "C"]).align_to(["C", "N"])?;
    assert_eq!(*named.names(), ["C", "N"]);
    let sum = x.mul(2.0).sum_with(1, SumOptions::new().dtype(DType::F64))?;
    assert_eq!(sum.dtype(), DType::F64);
    x.mul(3.0).sum(..).backward()?;
    assert_eq!(x.grad().expect("a gradient").to_vec::<f32>()?, [3.0; 6]);
    assert_eq!(x.mul(3.0).sum(..).item::<f32>()?, 18.0);
    Ok(())
}
