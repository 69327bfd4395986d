//! Derivatives checked against central differences, and what the check says of wrong ones.
//!
//! `cargo run --example 06_gradient_check`

use namegrad::autograd::{GradCheckOptions, Kept, Op, gradcheck, gradcheck_with, gradgradcheck};
use namegrad::prelude::*;

/// `x³` with the derivative that is given.
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

    // Any function of tensors that gives a tensor can be checked: each output is compared by each element of
    // each input, with a step of 1e-6 and tolerances of 1e-6 and 1e-5 unless `gradcheck_with` is given others.
    let f = |x: &[Tensor]| x[0].matmul(&x[1])?.log_softmax("out")?.sum("N");
    gradcheck(f, &inputs)?;
    // The same for the gradient of the function: second derivatives.
    gradgradcheck(f, &inputs)?;
    println!("log_softmax of a product: first and second derivatives agree");

    // A slip in a derivative: 2x² for 3x².
    let wrong = |x: &[Tensor]| cube(&x[0], |x| Ok(2.0 * x.square()?));
    let error = gradcheck(wrong, &inputs[..1]).unwrap_err();
    println!("{error}");
    assert_eq!(error.kind(), ErrorKind::Autograd);

    // The right number, but cut from the tape: only the second derivative shows it.
    let cut = |x: &[Tensor]| cube(&x[0], |x| Ok(3.0 * x.detach().square()?));
    gradcheck(cut, &inputs[..1])?;
    println!("{}", gradgradcheck(cut, &inputs[..1]).unwrap_err());

    // The right one passes both.
    let right = |x: &[Tensor]| cube(&x[0], |x| Ok(3.0 * x.square()?));
    gradcheck(right, &inputs[..1])?;
    gradgradcheck(right, &inputs[..1])?;

    // At a kink there is no derivative, and the difference sees half of each side: keep away from kinks.
    let kink = f64s.tensor([-1.0, 0.0, 1.0])?;
    println!("{}", gradcheck(|x| x[0].relu(), &[kink]).unwrap_err());

    // Differences of f32 are coarse: only a large step and wide tolerances pass, and with a warning.
    let coarse = GradCheckOptions { eps: 1e-2, atol: 1e-2, rtol: 1e-2 };
    println!("{:?}", gradcheck_with(|x| x[0].exp(), &[inputs[0].to(DType::F32)?], coarse)?.warning);
    Ok(())
}
