//! Checking derivatives against central differences, and what the check says about wrong ones.
//!
//! `cargo run --example 06_gradient_check`

use namegrad::autograd::{GradCheckOptions, Kept, Op, gradcheck, gradcheck_with, gradgradcheck};
use namegrad::prelude::*;

/// `x³` with the given derivative.
fn cube(
    x: &Tensor,
    derivative: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
) -> Result<Tensor> {
    let kept = Kept::input(x);
    Ok(Op::new("cube", x.value().pow(3)?).input(x, move |g, cx| g.mul(derivative(&kept.get(cx))?)).output())
}

fn main() -> Result<()> {
    manual_seed(0);
    let f64s = TensorOptions::new().dtype(DType::F64);
    let inputs = [f64s.randn([("N", 3), ("in", 4)])?, f64s.randn([("in", 4), ("out", 2)])?];

    // Any function from tensors to a tensor can be checked. The derivative of each output by each element of
    // each input is compared, with a step of 1e-6 and tolerances of 1e-6 and 1e-5; `gradcheck_with` takes
    // others.
    let f = |x: &[Tensor]| x[0].matmul(&x[1])?.log_softmax("out")?.sum("N");
    gradcheck(f, &inputs)?;
    // The same for the gradient of the function, that is, for second derivatives.
    gradgradcheck(f, &inputs)?;
    println!("log_softmax of a product: first and second derivatives agree");

    // A mistake in a derivative: 2x² instead of 3x².
    let wrong = |x: &[Tensor]| cube(&x[0], |x| Ok(2.0 * x.square()?));
    let error = gradcheck(wrong, &inputs[..1]).unwrap_err();
    println!("{error}");
    assert_eq!(error.kind(), ErrorKind::Autograd);

    // The right value, but detached from the tape: only the second derivative reveals it.
    let cut = |x: &[Tensor]| cube(&x[0], |x| Ok(3.0 * x.detach().square()?));
    gradcheck(cut, &inputs[..1])?;
    println!("{}", gradgradcheck(cut, &inputs[..1]).unwrap_err());

    // The right derivative passes both checks.
    let right = |x: &[Tensor]| cube(&x[0], |x| Ok(3.0 * x.square()?));
    gradcheck(right, &inputs[..1])?;
    gradgradcheck(right, &inputs[..1])?;

    // At a kink there is no derivative, and the difference averages both sides: stay away from kinks.
    let kink = f64s.tensor([-1.0, 0.0, 1.0])?;
    println!("{}", gradcheck(|x| x[0].relu(), &[kink]).unwrap_err());

    // Differences in f32 are coarse: the check passes only with a large step and wide tolerances, and it
    // warns.
    let coarse = GradCheckOptions { eps: 1e-2, atol: 1e-2, rtol: 1e-2 };
    println!("{:?}", gradcheck_with(|x| x[0].exp(), &[inputs[0].to(DType::F32)?], coarse)?.warning);
    Ok(())
}
