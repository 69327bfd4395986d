//! Errors that gradcheck and anomaly mode find, and their reports.

use namegrad::autograd::{
    GradCheckOptions, Kept, Op, detect_anomaly, gradcheck, gradcheck_parameters, gradcheck_with,
    gradgradcheck, gradgradcheck_with,
};
use namegrad::prelude::*;
use std::sync::Arc;

fn wide() -> TensorOptions {
    TensorOptions::new().dtype(DType::F64)
}

/// `factor x²`, with the derivative `2 x`.
fn square(x: &Tensor, factor: &Tensor) -> Result<Tensor> {
    let kept = Kept::input(x);
    let value = x.value().square()?.mul(factor.value())?;
    Ok(Op::new("square", value).input(x, move |g, cx| g.mul(kept.get(cx).mul(2.0)?)).output())
}

#[test]
fn the_worst_element_is_given_by_name() -> Result<()> {
    let x = wide().tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])?.refine_names(["N", "C"])?;
    let factor = wide().tensor([[1.0, 1.0, 1.0], [1.0, 1.5, 1.01]])?;
    let error = gradcheck(|x| square(&x[0], &factor), std::slice::from_ref(&x)).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Autograd, file!()));
    let text = error.to_string();
    assert!(text.contains("2 of 36 derivatives differ."), "{text}");
    assert!(
        text.contains("that of output [N=1, C=1] by input 0 [N=1, C=1] is 10 on the tape and 15"),
        "{text}"
    );
    let plain = x.rename(None)?.select(0, 1)?;
    let factor = factor.select(0, 1)?;
    let sum = |x: &[Tensor]| square(&x[0], &factor)?.sum(..);
    let text = gradcheck(sum, &[plain]).unwrap_err().to_string();
    assert!(
        text.contains("2 of 3 derivatives differ. The worst: that of output by input 0 [1] is 10 "),
        "{text}"
    );
    Ok(())
}

#[test]
fn what_is_slightly_wrong_fails() -> Result<()> {
    let (x, factor) = (wide().tensor([0.5, 2.0])?, wide().tensor([1.0005, 1.0005])?);
    assert!(gradcheck(|x| square(&x[0], &factor), std::slice::from_ref(&x)).is_err());
    let factor = wide().ones([2])?;
    gradcheck(|x| square(&x[0], &factor), std::slice::from_ref(&x))?;
    gradgradcheck(|x| square(&x[0], &factor), std::slice::from_ref(&x))?;
    // If the outputs are large, the difference has fewer digits.
    gradcheck(|x| x[0].add(1e6)?.sin()?.add(1e8), &[x])?;
    Ok(())
}

#[test]
fn what_cannot_be_checked_fails() -> Result<()> {
    let x = [wide().tensor([0.5, 2.0])?];
    let f = |x: &[Tensor]| x[0].exp();
    for second in [false, true] {
        let check = |f: &dyn Fn(&[Tensor]) -> Result<Tensor>, x: &[Tensor], options| match second {
            true => gradgradcheck_with(f, x, options),
            false => gradcheck_with(f, x, options),
        };
        let error = check(&|x| x[0].argmax(..), &x, GradCheckOptions::new()).unwrap_err();
        assert!(error.to_string().contains("the output is of int64, which has no gradient"), "{error}");
        let error = check(&|x| x[0].detach().exp(), &x, GradCheckOptions::new()).unwrap_err();
        assert!(error.to_string().contains("depends on no input on the tape"), "{error}");
        let error = check(&|x| x[0].add(wide().rand([2])?), &x, GradCheckOptions::new()).unwrap_err();
        assert!(error.to_string().contains("two calls of the function"), "{error}");
        let error = check(&|_| wide().ones([2]), &[], GradCheckOptions::new()).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()), "{error}");
        assert!(error.to_string().contains("there are no inputs"), "{error}");
        // A linear function has a second derivative of zero.
        check(&|x| x[0].mul(2.0), &x, GradCheckOptions::new())?;
    }
    gradcheck(f, &x)?;
    Ok(())
}

#[test]
fn parameters_are_checked_by_path() -> Result<()> {
    manual_seed(0);
    let model = Sequential::new().then(Linear::new(("in", 3), ("hidden", 2))?).then(Tanh);
    model.to(DType::F64)?;
    let x = wide().randn([("N", 4), ("in", 3)])?;
    let before = model
        .named_parameters()
        .iter()
        .map(|(_, p)| p.tensor().to_vec::<f64>())
        .collect::<Result<Vec<_>>>()?;
    gradcheck_parameters(|| model.forward(&x), model.named_parameters())?;
    let (path, bias) = model.named_parameters().remove(1);
    let factor = wide().ones([2])?.mul(3.0)?;
    let wrong = || model.forward(&x)?.add(square(&bias.tensor(), &factor)?);
    let error = gradcheck_parameters(wrong, model.named_parameters()).unwrap_err();
    assert_eq!((error.op(), error.location().file()), ("gradcheck_parameters", file!()));
    assert!(error.to_string().contains(&format!("by '{path}' [hidden=")), "{error}");
    let after = model
        .named_parameters()
        .iter()
        .map(|(_, p)| p.tensor().to_vec::<f64>())
        .collect::<Result<Vec<_>>>()?;
    assert_eq!(before, after);
    assert!(bias.grad().is_none());
    bias.set_requires_grad(false)?;
    let error = gradcheck_parameters(|| model.forward(&x), model.named_parameters()).unwrap_err();
    assert!(error.to_string().contains(&format!("parameter '{path}' is frozen")), "{error}");
    Ok(())
}

#[test]
fn anomaly_mode_says_where_a_nan_was_born() -> Result<()> {
    let x = Tensor::new([-1.0, 4.0])?.requiring_grad()?;
    let line = line!() + 2;
    let compute = || {
        let y = x.log()?;
        y.add(1.0)?.log_softmax(0)?.sum(..)
    };
    let error = detect_anomaly(|| compute()?.backward()).unwrap_err();
    let text = error.to_string();
    let born =
        format!("Function 'log' returned nan values in the forward pass, called at {}:{line}", file!());
    assert!(text.contains(&born), "{text}");
    assert_eq!((error.op(), error.location().file()), ("backward", file!()));
    assert!(x.grad().is_none());

    let loss = compute()?;
    let retain = BackwardOptions::new().retain_graph(true);
    let text = detect_anomaly(|| loss.backward_with(None, retain)).unwrap_err().to_string();
    assert!(text.contains("the output is nan before the backward pass"), "{text}");
    assert!(text.contains("with the forward pass inside of it too"), "{text}");
    // Even if the gradients are finite.
    let loss = x.add(f64::NAN)?.sum(..)?;
    let text = detect_anomaly(|| loss.backward_with(None, retain)).unwrap_err().to_string();
    assert!(text.contains("the output is nan before the backward pass"), "{text}");
    assert!(x.grad().is_none());
    loss.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [1.0, 1.0], "without the mode NaN passes");

    let fine = detect_anomaly(|| x.square()?.sqrt()?.sum(..)?.backward());
    assert!(fine.is_ok());
    Ok(())
}

/// A NaN of a value that requires no gradient is found where it was born, and not where it met a parameter.
#[test]
fn anomaly_mode_follows_values_that_are_not_recorded() -> Result<()> {
    let weight = Tensor::new([1.0, 2.0])?.requiring_grad()?;
    let data = Tensor::new([-1.0, 4.0])?;
    let found = |f: &dyn Fn() -> Result<Tensor>| -> String {
        detect_anomaly(|| f()?.mul(&weight)?.sum(..)?.backward()).unwrap_err().message().to_string()
    };
    let born = |op: &str, line: u32| {
        format!("Function '{op}' returned nan values in the forward pass, called at {}:{line}", file!())
    };

    let line = line!() + 1;
    let text = found(&|| data.log()?.add(1.0)?.reshape([2, 1])?.select(1, 0)?.rename(["N"]));
    assert!(text.starts_with(&born("log", line)), "{text}");

    // In place, and beside a NaN that does not reach the loss.
    let line = line!() + 3;
    let text = found(&|| {
        let _other = data.asin()?;
        data.clone().sqrt_().cloned()
    });
    assert!(text.starts_with(&born("sqrt", line)), "{text}");

    // Of several tensors, and by an op of several inputs.
    let line = line!() + 1;
    let text = found(&|| Tensor::cat([&data.log()?, &data], 0)?.narrow(0, 0, 2));
    assert!(text.starts_with(&born("log", line)), "{text}");

    // By the op of a user.
    let line = line!() + 2;
    let text = found(&|| {
        let made = data.log2()?;
        Ok(Op::new("mine", made.value().neg()?).input(&made, |g, _| g.neg()).output())
    });
    assert!(text.starts_with(&born("log2", line)), "{text}");

    // In a value that becomes a leaf.
    let line = line!() + 1;
    let text = found(&|| data.log10()?.requiring_grad());
    assert!(text.starts_with(&born("log10", line)), "{text}");

    // Before the mode: the op that it was given to.
    let before = data.log()?.rename(["N"])?;
    let text = found(&|| before.mul(2.0));
    assert!(
        text.starts_with("Function 'mul', called at ") && text.contains("[N=2] that was nan already"),
        "{text}"
    );
    assert!(weight.grad().is_none());

    // What is picked away again is no anomaly of the loss.
    detect_anomaly(|| data.log()?.select(0, 1)?.mul(&weight)?.sum(..)?.backward())?;
    Ok(())
}

#[test]
fn the_repair_of_a_change_in_place_reaches_the_parameter() -> Result<()> {
    let p = Parameter::new(Tensor::new([1.0, 2.0])?)?;
    let error = p.tensor().mul_(2.0).map(drop).unwrap_err();
    assert!(error.repair().unwrap().starts_with("p.update(|v| v.mul_(..).map(drop))?"), "{error}");
    p.update(|v| v.mul_(2.0).map(drop))?;
    assert_eq!(p.tensor().to_vec::<f32>()?, [2.0, 4.0]);
    Ok(())
}

/// As documented, a `grad` on the tape keeps its leaf alive until it is removed.
#[test]
fn zero_grad_frees_a_gradient_that_is_on_the_tape() -> Result<()> {
    let token = Arc::new(());
    let held = token.clone();
    let x = Tensor::new([1.0])?.requiring_grad()?;
    let y = Op::new("marked", x.value().clone())
        .input(&x, move |g, _| {
            let _ = &held;
            Ok(g.clone())
        })
        .output()
        .mul(&x)?
        .sum(..)?;
    y.backward_with(None, BackwardOptions::new().create_graph(true))?;
    assert!(x.grad().unwrap().requires_grad());
    x.zero_grad();
    drop((x, y));
    assert_eq!(Arc::strong_count(&token), 1);
    Ok(())
}

/// Names that a user's op gives to its gradient are removed from `grad`.
#[test]
fn names_of_a_gradient_do_not_stay() -> Result<()> {
    let x = Tensor::new([1.0, 2.0])?.requiring_grad()?;
    let with = |name: &'static str| {
        let gradient = move |g: &Tensor, _: &namegrad::autograd::Cx<'_>| g.rename([name]);
        Op::new("named", x.value().clone()).input(&x, gradient).output().sum(..)
    };
    for name in ["a", "b"] {
        with(name)?.backward()?;
    }
    let grad = x.grad().unwrap();
    assert!(!grad.has_names());
    assert_eq!(grad.to_vec::<f32>()?, [2.0, 2.0]);
    Ok(())
}
