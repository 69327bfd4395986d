//! Joint derivatives of several inputs and outputs, defined through the public API.

use namegrad::autograd::{
    BackwardOptions, Cx, Graph, Kept, Op, checkpoint, detect_anomaly, grad_with, gradcheck, gradgradcheck,
};
use namegrad::core::NamedTensor;
use namegrad::prelude::*;
use namegrad_tests::values::ONCE;
use std::sync::{Arc, Mutex};

const RETAIN: BackwardOptions = BackwardOptions { retain_graph: true, ..ONCE };
const CREATE: BackwardOptions = BackwardOptions { create_graph: true, ..ONCE };

/// A leaf of `f64`.
fn leaf<const K: usize>(data: [f64; K]) -> Tensor {
    TensorOptions::new().dtype(DType::F64).requires_grad(true).tensor(data).unwrap()
}

fn numbers(x: &Tensor) -> Vec<f64> {
    x.to(DType::F64).unwrap().to_vec().unwrap()
}

fn grad_of(x: &Tensor) -> Vec<f64> {
    numbers(&x.grad().expect("backward has reached this leaf"))
}

/// The gradient of the sum of `y` with respect to `x`.
fn slope(y: &Tensor, x: &Tensor, options: BackwardOptions) -> Result<Tensor> {
    Ok(grad_with(&[&y.sum(..)?], &[x], &[], options)?.remove(0).expect("used"))
}

fn assert_near(got: &[f64], want: &[f64]) {
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * (1.0 + b.abs());
    assert!(got.len() == want.len() && got.iter().zip(want).all(near), "{got:?} is not {want:?}");
}

/// Fails unless the result is an error of the tape at the caller's line, with these words.
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T>, op: &str, words: &[&str]) {
    let (error, caller) = (result.unwrap_err(), std::panic::Location::caller());
    assert_eq!((error.kind(), error.op()), (ErrorKind::Autograd, op), "{error}");
    // A call too long for one line starts on the next.
    assert!((caller.line()..caller.line() + 4).contains(&error.location().line()), "{caller}: {error}");
    assert_eq!(error.location().file(), caller.file(), "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "no {word:?} in {error}");
    }
}

/// `(x - mean) / std` over the last dim, times `weight`, plus `bias`, with one derivative for all three:
/// `of_x = (h - mean h - y mean (h y)) / std` for `h = g weight` and the normalized `y`.
fn layer_norm(x: &Tensor, weight: Option<&Tensor>, bias: Option<&Tensor>) -> Result<Tensor> {
    let centered = x.value().sub(&x.value().mean(keep(-1))?)?;
    let mut value = centered.div(&centered.square()?.mean(keep(-1))?.sqrt()?)?;
    if let Some(weight) = weight {
        value = value.mul(weight.value())?;
    }
    if let Some(bias) = bias {
        value = value.add(bias.value())?;
    }
    let (kept, weight_kept) = (Kept::input(x), weight.map(Kept::input));
    let gradients = move |g: &Tensor, cx: &Cx<'_>| {
        let x = kept.get(cx);
        let centered = x.sub(&x.mean(keep(-1))?)?;
        let std = centered.square()?.mean(keep(-1))?.sqrt()?;
        let y = centered.div(&std)?;
        let h = match &weight_kept {
            Some(weight) => g.mul(weight.get(cx))?,
            None => g.clone(),
        };
        let inner = h.sub(&h.mean(keep(-1))?)?.sub(&y.mul(&h.mul(&y)?.mean(keep(-1))?)?)?;
        let of_weight = if cx.wants(1) { Some(g.mul(&y)?.sum_to(cx.sizes_of(1))?) } else { None };
        // The bias was broadcast; the tape sums its gradient.
        Ok(vec![Some(inner.div(&std)?), of_weight, Some(g.clone())])
    };
    Ok(Op::new("layer_norm", value).inputs(&[Some(x), weight, bias], gradients).output())
}

/// The radius and the angle of the points `(x, y)`. The derivative uses only the two outputs.
fn polar(x: &Tensor, y: &Tensor) -> Result<[Tensor; 2]> {
    polar_with(x, y, &Arc::new(()))
}

/// [`polar`] whose derivative owns a token, which tells a test whether the derivative is alive.
fn polar_with(x: &Tensor, y: &Tensor, token: &Arc<()>) -> Result<[Tensor; 2]> {
    let r = x.value().square()?.add(&y.value().square()?)?.sqrt()?;
    let angle = y.value().atan2(x.value())?;
    let (r_kept, angle_kept, token) = (Kept::output(&r), Kept::output_at(1, &angle), token.clone());
    let outputs = Op::with_outputs("polar", vec![r, angle]).inputs(&[Some(x), Some(y)], move |_, cx| {
        let _ = &token;
        let (r, angle) = (r_kept.get(cx), angle_kept.get(cx));
        let (along, across) = (cx.output_gradient(0)?, cx.output_gradient(1)?.div(&r)?);
        let (sin, cos) = (angle.sin()?, angle.cos()?);
        let of_x = along.mul(&cos)?.sub(&across.mul(&sin)?)?;
        let of_y = along.mul(&sin)?.add(&across.mul(&cos)?)?;
        Ok(vec![Some(of_x), Some(of_y)])
    });
    Ok(outputs.try_into().expect("as many as values"))
}

/// [`polar`] from built-in ops.
fn plain_polar(x: &Tensor, y: &Tensor) -> Result<[Tensor; 2]> {
    Ok([x.square()?.add(&y.square()?)?.sqrt()?, y.atan2(x)?])
}

// One output

#[test]
fn one_derivative_for_inputs_that_may_be_missing() -> Result<()> {
    let x = TensorOptions::new().dtype(DType::F64).tensor([[0.3, -1.2, 0.8], [1.5, 0.1, -0.4]])?;
    let (weight, bias) = (leaf([0.5, 1.5, -1.0]), leaf([0.1, 0.2, 0.3]));
    let all = [x.clone(), weight.clone(), bias.clone()];
    let affine = |x: &[Tensor]| layer_norm(&x[0], Some(&x[1]), Some(&x[2]));
    gradcheck(affine, &all)?;
    gradgradcheck(affine, &all)?;
    let bare = |x: &[Tensor]| layer_norm(&x[0], None, None);
    gradcheck(bare, &all[..1])?;
    gradgradcheck(bare, &all[..1])?;
    let shifted = |x: &[Tensor]| layer_norm(&x[0], None, Some(&x[1]));
    gradcheck(shifted, &[x.clone(), bias.clone()])?;
    // A frozen input among the others.
    layer_norm(&x, Some(&weight), Some(&bias))?.sum(..)?.backward()?;
    assert_near(&grad_of(&bias), &[2.0, 2.0, 2.0]);
    assert_eq!(weight.grad().unwrap().sizes(), [3]);
    Ok(())
}

#[test]
fn what_is_not_recorded_keeps_nothing() -> Result<()> {
    let token = Arc::new(());
    let op = |x: &Tensor| {
        let token = token.clone();
        let gradients = move |g: &Tensor, _: &Cx<'_>| {
            let _ = &token;
            Ok(vec![Some(g.clone())])
        };
        Op::new("held", x.value().clone()).inputs(&[Some(x)], gradients).output()
    };
    let x = leaf([1.0]);
    let constants = [op(&x.detach()), no_grad(|| op(&x)), op(&x.to(DType::I64)?)];
    assert!(constants.iter().all(|y| !y.requires_grad()));
    let several = no_grad(|| polar_with(&x, &x, &token))?;
    assert!(several.iter().all(|y| !y.requires_grad()));
    assert_eq!(Arc::strong_count(&token), 1);
    let recorded = op(&x);
    assert!(recorded.requires_grad() && recorded.grad_fn() == Some("held"));
    assert_eq!(Arc::strong_count(&token), 2);
    Ok(())
}

#[test]
fn an_op_of_one_output_takes_one_place_on_the_tape() -> Result<()> {
    let (x, y) = (leaf([1.0]), leaf([2.0]));
    let one = layer_norm(&x, Some(&y), None)?;
    let graph = Graph::of(&[("one", &one)]);
    assert_eq!(graph.edges, [(0, 2), (1, 2)]);
    let [r, angle] = polar(&x, &y)?;
    let graph = Graph::of(&[("r", &r), ("angle", &angle)]);
    assert_eq!(graph.edges, [(0, 2), (1, 2), (2, 3), (2, 4)], "the gradients of two outputs meet");
    Ok(())
}

#[test]
fn an_input_with_its_own_derivative_beside_joint_ones() -> Result<()> {
    let f = |x: &[Tensor]| {
        let value = x[0].value().exp()?.mul(x[1].value())?.mul(x[2].value())?;
        let (y_own, y) = (Kept::output(&value), Kept::output(&value));
        let (b, c) = (Kept::input(&x[1]), Kept::input(&x[2]));
        let op = Op::new("product", value).input(&x[0], move |g, cx| g.mul(y_own.get(cx)));
        let op = op.inputs(&[Some(&x[1]), Some(&x[2])], move |g, cx| {
            let gy = g.mul(y.get(cx))?;
            Ok(vec![Some(gy.div(b.get(cx))?), Some(gy.div(c.get(cx))?)])
        });
        Ok(op.output())
    };
    let inputs = [leaf([0.5, -0.2]), leaf([1.5, 2.0]), leaf([-1.0, 0.7])];
    gradcheck(f, &inputs)?;
    gradgradcheck(f, &inputs)?;
    // Only one of the two kinds requires a gradient.
    for tracked in 0..3 {
        let mut some = inputs.clone().map(|x| x.detach());
        some[tracked] = inputs[tracked].clone();
        inputs[tracked].zero_grad();
        let y = f(&some)?;
        y.sum(..)?.backward()?;
        let want = if tracked == 0 { y.detach() } else { y.detach().div(some[tracked].detach())? };
        assert_near(&grad_of(&inputs[tracked]), &numbers(&want));
    }
    Ok(())
}

// Several outputs

#[test]
fn a_derivative_made_of_two_outputs() -> Result<()> {
    let inputs = [leaf([0.7, -1.1]), leaf([1.3, 0.4])];
    type Use = fn([Tensor; 2]) -> Result<Tensor>;
    let uses: [Use; 4] = [
        |[r, angle]| r.exp()?.mul(angle.sin()?),
        |[r, _]| r.square(),
        |[_, angle]| angle.pow(3),
        |[r, angle]| r.mul(&r)?.add(angle.mul(&r)?), // r three times
    ];
    for f in uses {
        gradcheck(|x| f(polar(&x[0], &x[1])?), &inputs)?;
        gradgradcheck(|x| f(polar(&x[0], &x[1])?), &inputs)?;
        // To third order, against built-in ops.
        let third = |outputs: [Tensor; 2]| -> Result<Vec<f64>> {
            let first = slope(&f(outputs)?, &inputs[0], CREATE)?;
            let second = slope(&first.mul(&inputs[1])?, &inputs[1], CREATE)?;
            Ok(numbers(&slope(&second.square()?, &inputs[0], ONCE)?))
        };
        let [x, y] = &inputs;
        assert_near(&third(polar(x, y)?)?, &third(plain_polar(x, y)?)?);
    }
    Ok(())
}

/// `√x` and `ln x`. Their derivatives `1 / 2r` and `1 / r²` use the first output, which is saved `times`
/// times.
fn root_and_log(x: &Tensor, times: usize, token: &Arc<()>) -> Result<[Tensor; 2]> {
    let values = vec![x.value().sqrt()?, x.value().log()?];
    let (kept, token) = (Kept::output_at(0, &values[0]), token.clone());
    let outputs = Op::with_outputs("root_and_log", values).inputs(&[Some(x)], move |_, cx| {
        let _ = &token;
        // The mean of the same output, which was saved several times.
        let mut r = kept.get(cx);
        for _ in 1..times {
            r = r.add(kept.get(cx))?;
        }
        let r = r.div(times as f64)?;
        let of_root = cx.output_gradient(0)?.div(r.mul(2)?)?;
        Ok(vec![Some(of_root.add(cx.output_gradient(1)?.div(r.square()?)?)?)])
    });
    Ok(outputs.try_into().expect("as many as values"))
}

#[test]
fn an_output_that_is_gone_is_made_again() -> Result<()> {
    let token = Arc::new(());
    for times in [1, 2, 3] {
        let x = leaf([4.0, 0.5]);
        let [root, log] = root_and_log(&x, times, &token)?;
        drop(root);
        let first = slope(&log, &x, CREATE)?;
        drop(log);
        assert_near(&numbers(&first), &[0.25, 2.0]);
        // ln x by its derivatives 1/x, -1/x², 2/x³; the second time in place, the third recorded.
        assert_near(&numbers(&slope(&first, &x, RETAIN)?), &[-1.0 / 16.0, -4.0]);
        let second = slope(&first, &x, CREATE)?;
        assert_near(&numbers(&second), &[-1.0 / 16.0, -4.0]);
        assert_near(&numbers(&slope(&second, &x, ONCE)?), &[2.0 / 64.0, 16.0]);
    }
    assert_eq!(Arc::strong_count(&token), 1);
    Ok(())
}

#[test]
fn a_hook_on_an_output_sees_all_of_its_gradient() -> Result<()> {
    let x = leaf([4.0]);
    let [r, log] = root_and_log(&x, 2, &Arc::new(()))?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log_of = seen.clone();
    r.register_hook(move |g| {
        log_of.lock().unwrap().extend(numbers(g));
        Ok(None)
    })?;
    let loss = r.pow(3)?.add(&log)?;
    let first = slope(&loss, &x, CREATE)?; // 3r² / 2r + 1 / r², with r = 2
    assert_near(&numbers(&first), &[3.25]);
    assert_near(&std::mem::take(&mut *seen.lock().unwrap()), &[12.0]);
    // Through the gradient 3r² of the output: 6r / 2r = 3. Through the saved output: -3r² / 2r² - 2 / r³.
    let second = slope(&first, &x, ONCE)?;
    assert_near(&std::mem::take(&mut *seen.lock().unwrap()), &[3.0 - 1.5 - 0.25]);
    assert_near(&numbers(&second), &[1.25 / 4.0]);
    // A single output has no other record on the tape either.
    let y = x.value().sqrt()?;
    let kept = Kept::output(&y);
    let root =
        Op::new("root", y).inputs(&[Some(&x)], move |g, cx| Ok(vec![Some(g.div(kept.get(cx).mul(2)?)?)]));
    let root = root.output();
    let log_of = seen.clone();
    root.register_hook(move |g| {
        log_of.lock().unwrap().extend(numbers(g));
        Ok(None)
    })?;
    slope(&slope(&root.pow(3)?, &x, CREATE)?, &x, ONCE)?;
    assert_near(&seen.lock().unwrap(), &[12.0, 1.5]);
    Ok(())
}

#[test]
fn a_hook_replaces_the_gradient_of_one_output() -> Result<()> {
    let x = leaf([4.0]);
    let [r, log] = root_and_log(&x, 1, &Arc::new(()))?;
    r.register_hook(|g| g.mul(0).map(Some))?;
    r.retain_grad()?;
    log.retain_grad()?;
    r.mul(3)?.add(&log)?.sum(..)?.backward()?;
    assert_near(&grad_of(&x), &[0.25]);
    assert_eq!((grad_of(&r), grad_of(&log)), (vec![0.0], vec![1.0]));
    Ok(())
}

#[test]
fn outputs_without_a_gradient_by_nature() -> Result<()> {
    // The largest of each row with its index, which the derivative uses.
    let largest = |x: &Tensor| -> Result<Vec<Tensor>> {
        let found = x.value().max(1)?;
        let kept = Kept::output_at(1, &found.indices);
        let outputs = Op::with_outputs("largest", vec![found.values, found.indices]);
        Ok(outputs.inputs(&[Some(x)], move |gs, cx| {
            assert!(gs.len() == 2 && gs[1].is_none());
            let indices = kept.get(cx);
            assert!(!indices.requires_grad());
            let g = cx.output_gradient(0)?.unsqueeze(1)?;
            Ok(vec![Some(g.new_zeros(cx.sizes())?.scatter_add(&indices.unsqueeze(1)?, &g, 1)?)])
        }))
    };
    let x = TensorOptions::new().dtype(DType::F64).tensor([[0.3, 2.0], [1.5, -1.0]])?;
    gradcheck(|x| largest(&x[0])?[0].exp(), std::slice::from_ref(&x))?;
    gradgradcheck(|x| largest(&x[0])?[0].exp(), std::slice::from_ref(&x))?;
    let outputs = largest(&x.requiring_grad()?)?;
    assert!(outputs[0].requires_grad() && !outputs[1].requires_grad());
    assert_eq!((outputs[1].dtype(), outputs[1].to_vec::<i64>()?), (DType::I64, vec![1, 0]));

    // Only the indices.
    let y = leaf([1.0]);
    let value = y.value().to(DType::I64)?;
    let only = Op::with_outputs("whole", vec![value]).inputs(&[Some(&y)], |_, _| Ok(vec![None]));
    assert!(!only[0].requires_grad());
    assert!(Op::with_outputs("none", vec![]).inputs(&[Some(&y)], |_, _| Ok(vec![None])).is_empty());
    Ok(())
}

#[test]
fn an_input_twice() -> Result<()> {
    let x = leaf([0.6, 1.7]);
    let f = |x: &[Tensor]| {
        let [r, angle] = polar(&x[0], &x[0])?;
        r.square()?.mul(angle.exp()?)
    };
    gradcheck(f, std::slice::from_ref(&x))?;
    gradgradcheck(f, std::slice::from_ref(&x))?;
    let [r, _] = polar(&x, &x)?;
    r.square()?.sum(..)?.backward()?; // 2 x²
    assert_near(&grad_of(&x), &[2.4, 6.8]);
    Ok(())
}

#[test]
fn outputs_without_elements() -> Result<()> {
    let x = TensorOptions::new().dtype(DType::F64).requires_grad(true).zeros([0, 3])?;
    let [r, angle] = polar(&x, &x)?;
    let loss = r.sum(..)?.add(angle.sum(..)?)?;
    let first = slope(&loss, &x, CREATE)?;
    assert_eq!(first.sizes(), [0, 3]);
    assert_eq!(slope(&first, &x, ONCE)?.sizes(), [0, 3]);
    let [_, angle] = polar(&x, &x)?;
    angle.sum(..)?.backward()?;
    assert_eq!(x.grad().unwrap().sizes(), [0, 3]);
    assert_eq!(layer_norm(&x, None, None)?.sizes(), [0, 3]);
    Ok(())
}

// The context of a derivative

/// An op with two outputs and four inputs, of which the third is missing and the last is constant. Its
/// derivative logs which inputs are wanted and everything else that it is told.
fn asking(x: &Tensor, y: &Tensor, asked: &Arc<Mutex<Vec<String>>>) -> Result<Vec<Tensor>> {
    let constant = Tensor::new([[1, 2], [3, 4]])?;
    let values = vec![x.value().clone(), NamedTensor::zeros([1000, 1000])?.to(DType::F32)?];
    let asked = asked.clone();
    let inputs = [Some(x), Some(y), None, Some(&constant)];
    Ok(Op::with_outputs("asking", values).inputs(&inputs, move |gs, cx| {
        let wanted: Vec<_> = (0..5).map(|number| cx.wants(number)).collect();
        asked.lock().unwrap().push(format!("{wanted:?}"));
        assert_eq!((cx.sizes(), cx.dtype()), (cx.sizes_of(0), cx.dtype_of(0)));
        let sizes: Vec<_> = (0..5).map(|number| cx.sizes_of(number)).collect();
        assert_eq!(sizes, [&[2][..], &[], &[], &[2, 2], &[]]);
        let dtypes: Vec<_> = (0..5).map(|number| cx.dtype_of(number)).collect();
        assert_eq!(dtypes, [DType::F64, DType::F32, DType::F32, DType::I64, DType::F32]);

        assert!(gs[0].is_some() && gs[1].is_none());
        let missing = cx.output_gradient(1)?;
        assert_eq!((missing.sizes(), missing.dtype()), (&[1000, 1000][..], DType::F32));
        assert_eq!(missing.strides(), [0, 0], "a view of one zero");
        assert_eq!(missing.sum(..)?.item::<f64>()?, 0.0);
        assert!(!missing.requires_grad());
        assert!(cx.output_gradient(2).is_err());
        let of_y = Tensor::new(2.0)?.to(cx.dtype_of(1))?;
        Ok(vec![gs[0].clone(), Some(of_y), None, None])
    }))
}

#[test]
fn what_is_wanted_depends_on_the_pass() -> Result<()> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let x = leaf([1.0, 2.0]);
    let y = Tensor::new(1.0)?.requiring_grad()?;
    let taken = || std::mem::take(&mut *asked.lock().unwrap());

    asking(&x, &y, &asked)?[0].sum(..)?.backward()?;
    assert_eq!(taken(), ["[true, true, false, false, false]"]);
    assert_eq!((grad_of(&x), y.grad().unwrap().item::<f64>()?), (vec![1.0, 1.0], 2.0));

    assert_eq!(numbers(&slope(&asking(&x, &y, &asked)?[0], &x, ONCE)?), [1.0, 1.0]);
    assert_eq!(taken(), ["[true, false, false, false, false]"]);
    assert_eq!(numbers(&slope(&asking(&x, &y, &asked)?[0], &y, ONCE)?), [2.0]);
    assert_eq!(taken(), ["[false, true, false, false, false]"]);
    asking(&x, &y.detach(), &asked)?[0].sum(..)?.backward()?;
    assert_eq!(taken(), ["[true, false, false, false, false]"]);

    // An input that leads to the tensor asked for, and one that does not.
    let (far, off) = (x.mul(2)?, y.mul(2)?);
    assert_eq!(numbers(&slope(&asking(&far, &off, &asked)?[0], &x, ONCE)?), [2.0, 2.0]);
    assert_eq!(taken(), ["[true, false, false, false, false]"]);

    // Only up to the output: the derivative is not called, and keeps its tensors.
    let output = &asking(&x, &y, &asked)?[0];
    assert_eq!(numbers(&slope(&output.mul(3)?, output, ONCE)?), [3.0, 3.0]);
    assert!(taken().is_empty());
    output.sum(..)?.backward()?;
    assert_eq!(taken().len(), 1);

    // Only an input with its own derivative is wanted: the joint derivative of the others is not called.
    let op = Op::new("both", x.value().clone()).input(&x, |g, _| Ok(g.clone()));
    let both = op.inputs(&[Some(&y)], |_, _| Err(Error::new(ErrorKind::Value, "both", "called"))).output();
    assert_eq!(numbers(&slope(&both, &x, RETAIN)?), [1.0, 1.0]);
    assert!(slope(&both, &y, RETAIN).is_err());
    Ok(())
}

#[test]
fn what_a_derivative_of_one_input_may_ask_for() -> Result<()> {
    let x = leaf([1.0, 2.0]);
    let y = Op::new("asking", x.value().clone()).input(&x, |g, cx| {
        assert!(cx.wants(0) && !cx.wants(1));
        assert_eq!((cx.sizes(), cx.sizes_of(0), cx.sizes_of(1)), (&[2][..], &[2][..], &[][..]));
        assert_eq!((cx.dtype(), cx.dtype_of(0), cx.dtype_of(1)), (DType::F64, DType::F64, DType::F32));
        assert!(cx.output_gradient(1).is_err());
        assert_eq!(numbers(g), numbers(&cx.output_gradient(0)?));
        Ok(g.clone())
    });
    y.output().sum(..)?.backward()?;
    assert_eq!(grad_of(&x), [1.0, 1.0]);
    Ok(())
}

#[test]
fn gradients_of_what_was_broadcast_or_promoted_are_made_to_fit() -> Result<()> {
    let (x, row) = (Tensor::ones([4, 2])?.requiring_grad()?, leaf([1.0, 2.0]));
    let value = x.value().add(row.value())?;
    let sum = |value: &NamedTensor| -> [Tensor; 2] {
        let one = Op::new("sum", value.clone());
        let one =
            one.inputs(&[Some(&x), Some(&row)], |g, _| Ok(vec![Some(g.clone()), Some(g.clone())])).output();
        let two = Op::with_outputs("sum", vec![value.clone()]);
        let mut two = two.inputs(&[Some(&x), Some(&row)], |gs, _| Ok(vec![gs[0].clone(), gs[0].clone()]));
        [one, two.remove(0)]
    };
    for y in sum(&value) {
        assert_eq!(y.dtype(), DType::F64);
        y.sum(..)?.backward()?;
        assert_eq!((grad_of(&row), x.grad().unwrap().dtype()), (vec![4.0, 4.0], DType::F32));
        row.zero_grad();
    }
    Ok(())
}

// Freeing

#[test]
fn what_a_joint_derivative_kept_is_freed() -> Result<()> {
    let token = Arc::new(());
    let alive = || Arc::strong_count(&token) - 1;
    let (x, y) = (leaf([0.5, 1.0]), leaf([2.0, 3.0]));
    let made = || polar_with(&x, &y, &token);
    drop(made()?);
    assert_eq!(alive(), 0, "never walked");

    let [r, angle] = made()?;
    r.sum(..)?.backward()?;
    assert_eq!(alive(), 0, "freed by the walk, though both outputs are held");
    assert_refused(angle.sum(..)?.backward(), "backward", &["a second time"]);
    drop((r, angle));

    let [r, angle] = made()?;
    let loss = r.mul(&angle)?.sum(..)?;
    loss.backward_with(None, RETAIN)?;
    loss.backward_with(None, RETAIN)?;
    assert_eq!(alive(), 1);
    drop((r, angle));
    assert_eq!(alive(), 1, "the loss holds it");
    drop(loss);
    assert_eq!(alive(), 0);

    // Recorded gradients lead back to the outputs, which nothing else owns.
    let first = {
        let [r, angle] = made()?;
        let first = slope(&r.mul(&angle)?, &x, CREATE)?;
        let [_, angle] = made()?; // and to one that is recomputed
        first.add(slope(&angle, &x, CREATE)?)?
    };
    assert_eq!(alive(), 2);
    first.sum(..)?.backward()?;
    assert_eq!(alive(), 0);
    drop(first);

    let first = slope(&made()?[0].square()?, &x, CREATE)?;
    assert_eq!(alive(), 1);
    drop(first);
    assert_eq!(alive(), 0, "dropped without a walk");

    let [r, _] = made()?;
    r.register_hook(|_| Err(Error::new(ErrorKind::Value, "hook", "fails")))?;
    assert!(r.sum(..)?.backward().is_err());
    drop(r);
    assert_eq!(alive(), 0, "a walk that failed");
    Ok(())
}

#[test]
fn what_keeps_nothing_is_walked_again() -> Result<()> {
    let x = leaf([1.0, 2.0]);
    let rows = x.unbind(0)?;
    let loss = rows[0].add(&rows[1])?;
    loss.backward()?;
    loss.backward()?;
    assert_eq!(grad_of(&x), [2.0, 2.0]);
    let same = |keeps: Option<Kept>| {
        let op = Op::new("same", x.value().clone());
        match keeps {
            None => op.inputs(&[Some(&x)], |g, _| Ok(vec![Some(g.clone())])).output(),
            Some(kept) => op
                .inputs(&[Some(&x)], move |g, cx| Ok(vec![Some(g.mul(kept.get(cx))?.div(kept.get(cx))?)]))
                .output(),
        }
    };
    for kept in [None, Some(Kept::input(&x)), Some(Kept::output(x.value()))] {
        let again = kept.is_none();
        let loss = same(kept).sum(..)?;
        loss.backward()?;
        assert_eq!(loss.backward().is_ok(), again);
    }
    Ok(())
}

/// An op with a joint derivative, to build a chain of.
type Link = fn(Tensor) -> Result<Tensor>;

const LINKS: [Link; 2] = [
    |x| {
        let y = x.value().clone();
        let kept = Kept::output(&y);
        let gradients = move |g: &Tensor, cx: &Cx<'_>| Ok(vec![None, Some(g.mul(kept.get(cx))?)]);
        Ok(Op::new("link", y).inputs(&[None, Some(&x)], gradients).output())
    },
    |x| {
        let values = vec![x.value().clone(), x.value().clone()];
        let kept = [Kept::output_at(0, &values[0]), Kept::output_at(1, &values[1])];
        let mut both = Op::with_outputs("links", values).inputs(&[Some(&x)], move |gs, cx| {
            let g = gs[1].as_ref().expect("the chain goes on from the second");
            Ok(vec![Some(g.mul(kept[0].get(cx))?.mul(kept[1].get(cx))?)])
        });
        Ok(both.remove(1))
    },
];

#[test]
fn long_chains_are_walked_and_dropped_without_recursion() -> Result<()> {
    // Far more than would fit on the stack of this thread with a frame for each.
    const LONG: usize = 40_000;
    let chains = || -> Result<()> {
        for link in LINKS {
            let x = leaf([1.0]);
            let chain = || (0..LONG).try_fold(x.clone(), |y, _| link(y));
            chain()?.sum(..)?.backward()?;
            assert_eq!(grad_of(&x), [1.0]);
            drop(chain()?);
            let retained = chain()?;
            retained.sum(..)?.backward_with(None, RETAIN)?;
            drop(retained);
            let first = slope(&chain()?, &x, CREATE)?;
            drop(slope(&first, &x, RETAIN)?);
            drop(first);
        }
        Ok(())
    };
    let thread = std::thread::Builder::new().stack_size(256 * 1024).spawn(chains).expect("a thread");
    thread.join().expect("the stack is large enough")
}

// Modes

#[test]
fn a_checkpoint_of_joint_derivatives() -> Result<()> {
    let (token, kept) = (Arc::new(()), Arc::new(Mutex::new(Vec::new())));
    let (held, log) = (token.clone(), kept.clone());
    let block = move |inputs: &[Tensor]| {
        let before = Arc::strong_count(&held);
        let [r, angle] = polar_with(&inputs[0], &inputs[1], &held)?;
        log.lock().unwrap().push(Arc::strong_count(&held) - before);
        layer_norm(&r.mul(&angle)?, Some(&inputs[1]), None)
    };
    let inputs = [leaf([0.7, -1.1, 0.2]), leaf([1.3, 0.4, 0.9])];
    let gradients = |y: Tensor| -> Result<Vec<Vec<f64>>> {
        let found = grad_with(&[&y.square()?.sum(..)?], &[&inputs[0], &inputs[1]], &[], ONCE)?;
        Ok(found.iter().map(|g| numbers(g.as_ref().unwrap())).collect())
    };
    let want = gradients(block(&inputs)?)?;
    let y = checkpoint(block, &[&inputs[0], &inputs[1]])?;
    assert_eq!(Arc::strong_count(&token), 2, "nothing is kept but the block");
    assert_eq!(gradients(y)?, want);
    assert_eq!(*kept.lock().unwrap(), [1, 0, 1], "plain, first, and in the backward pass");
    Ok(())
}

#[test]
fn nan_in_a_joint_derivative_is_found() -> Result<()> {
    let (x, y) = (leaf([0.0]), leaf([0.0]));
    let [r, angle] = polar(&x, &y)?;
    let loss = r.add(angle)?.sum(..)?;
    let error = detect_anomaly(|| loss.backward_with(None, RETAIN)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("Function 'polar' returned nan"), "{text}");
    assert!(text.contains(&format!("in the backward of polar, called at {}:", file!())), "{text}");
    assert!(x.grad().is_none());
    loss.backward()?;
    assert!(grad_of(&x)[0].is_nan(), "without the mode NaN passes");

    let x = leaf([1.0, 1.0]); // no deviation from the mean
    let y = layer_norm(&x, None, None)?;
    let error = detect_anomaly(|| y.backward_with(Some(&y.detach()), ONCE)).unwrap_err();
    assert!(error.to_string().contains("Function 'layer_norm' returned nan"), "{error}");
    Ok(())
}

#[test]
fn joint_gradients_with_names() -> Result<()> {
    let named = BackwardOptions { named: true, ..ONCE };
    let x = Tensor::from_slice(&[0.5, 1.0, 2.0, 0.25], [("N", 2), ("C", 2)])?.requiring_grad()?;
    let [r, angle] = polar(&x, &x)?;
    assert_eq!((*r.names() == ["N", "C"], r.shape()), (true, angle.shape()));
    r.mul(&angle)?.sum(..)?.backward_with(None, named)?;
    assert_eq!(*x.grad().unwrap().names(), ["N", "C"]);
    let weight = leaf([1.0, 2.0]).refine_names(["C"])?;
    let y = layer_norm(&x, Some(&weight), None)?;
    let found = grad_with(&[&y], &[&x, &weight], &[Some(&y.detach())], named)?;
    let names: Vec<_> = found.iter().map(|g| g.as_ref().unwrap().shape().to_string()).collect();
    assert_eq!(names, ["[N=2, C=2]", "[C=2]"]);
    Ok(())
}

// Errors

#[test]
fn gradients_that_do_not_fit() -> Result<()> {
    let (x, y) = (leaf([1.0, 2.0]), leaf([3.0, 4.0]));
    // On the same line as the backward pass, so that the error points to it.
    #[track_caller]
    fn one(x: &Tensor, y: &Tensor, gradients: Vec<Option<Tensor>>) -> Tensor {
        let op = Op::new("one", x.value().clone());
        op.inputs(&[Some(x), None, Some(y)], move |_, _| Ok(gradients.clone())).output()
    }
    #[track_caller]
    fn two(x: &Tensor, y: &Tensor, gradients: Vec<Option<Tensor>>) -> Tensor {
        let op = Op::with_outputs("two", vec![x.value().clone(), y.value().clone()]);
        op.inputs(&[Some(x), None, Some(y)], move |_, _| Ok(gradients.clone())).remove(1)
    }
    let (g, long) = (Some(x.detach()), Some(Tensor::ones([3])?));
    let ints = Some(Tensor::new([1, 1])?);
    assert_refused(
        one(&x, &y, vec![g.clone()]).backward_with(g.as_ref(), ONCE),
        "one",
        &["in the backward of one, called at tests/tensors/joint.rs", "gave 1 gradients for 3 inputs"],
    );
    assert_refused(
        two(&x, &y, vec![]).backward_with(g.as_ref(), ONCE),
        "two",
        &["in the backward of two, called at tests/tensors/joint.rs", "gave 0 gradients for 3 inputs"],
    );
    assert_refused(
        one(&x, &y, vec![g.clone(), None, long.clone()]).backward_with(g.as_ref(), ONCE),
        "one",
        &["an invalid gradient at index 2 - got [3] but expected shape compatible with [2]"],
    );
    assert_refused(
        two(&x, &y, vec![g.clone(), None, long]).backward_with(g.as_ref(), ONCE),
        "two",
        &["an invalid gradient at index 2 - got [3] but expected shape compatible with [2]"],
    );
    assert_refused(
        two(&x, &y, vec![ints, None, None]).backward_with(g.as_ref(), ONCE),
        "two",
        &["at index 0 - got int64 but expected float64"],
    );
    assert!(x.grad().is_none() && y.grad().is_none());
    // A missing input has no gradient, and `None` is a zero gradient.
    two(&x, &y, vec![None, g.clone(), g.clone()]).backward_with(g.as_ref(), ONCE)?;
    assert!(x.grad().is_none());
    assert_eq!(grad_of(&y), [1.0, 2.0]);
    Ok(())
}

#[test]
fn an_error_in_a_joint_derivative_says_which_op_and_where() -> Result<()> {
    let x = leaf([1.0]);
    let line = line!() + 1;
    let y = Op::new("broken", x.value().clone());
    let y = y.inputs(&[Some(&x)], |g, _| Ok(vec![Some(g.sum("no_such_dim")?)])).output();
    let error = y.sum(..)?.backward().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameNotFound);
    let place = format!("in the backward of broken, called at {}:{line}", file!());
    assert!(error.to_string().contains(&place), "{error}");

    let two = Op::with_outputs("two", vec![x.value().clone(), x.value().clone()]);
    let two = two.inputs(&[Some(&x)], |_, cx| Ok(vec![Some(cx.output_gradient(2)?)]));
    let error = two[0].sum(..)?.backward().unwrap_err();
    assert_eq!(error.op(), "two");
    assert!(error.to_string().contains("the gradient of output 2 of 2"), "{error}");
    Ok(())
}

/// An output saved with a wrong number cannot be differentiated: its gradient is an error instead of being
/// lost or misdirected.
#[test]
fn what_was_kept_as_an_output_that_it_is_not() -> Result<()> {
    let x = leaf([4.0, 9.0]);
    let root = |number: usize, of: Option<&NamedTensor>| -> Result<Tensor> {
        let y = x.value().sqrt()?;
        let kept = Kept::output_at(number, of.unwrap_or(&y));
        let of_x = move |g: &Tensor, cx: &Cx<'_>| g.div(kept.get(cx).mul(2)?);
        Ok(Op::new("root", y).input(&x, of_x).output())
    };
    let pair = |number: usize| -> Result<Tensor> {
        let y = x.value().sqrt()?;
        let kept = Kept::output_at(number, &y);
        let op = Op::with_outputs("pair", vec![y, x.value().unsqueeze(0)?]);
        let mut outputs = op.inputs(&[Some(&x)], move |gs, cx| {
            let of_x = gs[0].as_ref().expect("used").div(kept.get(cx).mul(2)?)?;
            Ok(vec![Some(of_x)])
        });
        Ok(outputs.swap_remove(0))
    };
    let number = NamedTensor::new(2.0)?;
    let wrong = [root(1, None)?, root(0, Some(&number))?, pair(1)?, pair(2)?];
    for y in wrong {
        let first = slope(&y, &x, CREATE)?;
        assert!(first.requires_grad());
        let error = slope(&first, &x, ONCE).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Autograd, file!()));
        assert!(error.to_string().contains("was kept as output"), "{error}");
    }
    for y in [root(0, None)?, pair(0)?] {
        let first = slope(&y, &x, CREATE)?;
        assert_near(&numbers(&slope(&first, &x, ONCE)?), &[-1.0 / 32.0, -1.0 / 108.0]);
    }
    Ok(())
}

/// `c[N, k, ..] = Σ_in a[N, in, ..] b[in, k]`, with derivatives by name that work in every order of dims.
fn named_product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let y = a.value().contract(b.value(), "in")?;
    let [a_kept, b_kept] = [a, b].map(Kept::named_input);
    let op = Op::new("named_product", y)
        .input_named(a, move |g, cx| g.contract(b_kept.get(cx), "k"))
        .input_named(b, move |g, cx| a_kept.get(cx).contract(g, ["N", "time"]));
    Ok(op.output())
}

#[test]
fn derivatives_of_users_ops_with_names() -> Result<()> {
    namegrad::core::random::Generator::from_seed(3).scope(|| {
        let draw = |dims: &[(&str, usize)]| TensorOptions::new().dtype(DType::F64).randn(dims.to_vec());
        let (a, b) = (draw(&[("N", 3), ("in", 4), ("time", 2)])?, draw(&[("in", 4), ("k", 5)])?);
        for order in [["N", "in", "time"], ["time", "N", "in"], ["in", "time", "N"]] {
            for b in [b.clone(), b.t()?] {
                let inputs = [a.align_to(order)?, b];
                gradcheck(|x| named_product(&x[0], &x[1]), &inputs)?;
                gradgradcheck(|x| named_product(&x[0], &x[1])?.square(), &inputs)?;
            }
        }
        Ok(())
    })
}

#[test]
fn gradients_with_the_wrong_names_are_errors() -> Result<()> {
    let x = Tensor::ones([("N", 3), ("C", 3)])?.requiring_grad()?;
    let line = line!() + 2;
    let run = |gradient: fn(&Tensor) -> Result<Tensor>| {
        let op = Op::new("own", x.value().clone()).input_named(&x, move |g, _| {
            assert_eq!(*g.names(), ["N", "C"]);
            gradient(g)
        });
        x.zero_grad();
        op.output().sum(..)?.backward()
    };
    run(|g| g.t()?.mul(Tensor::new([1.0, 2.0, 3.0])?))?; // [C, N], with a factor for each N
    let grad = x.grad().unwrap();
    assert_eq!(
        (grad.has_names(), grad.to_vec::<f32>()?),
        (false, vec![1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0])
    );
    for (gradient, words) in [
        (
            (|g| g.rename([("C", "K")])) as fn(&Tensor) -> Result<Tensor>,
            "returned a gradient without the dim 'C'; the input has ['N', 'C']",
        ),
        (|g| g.rename(None::<namegrad::names::Names>), "returned a gradient without the dim 'N'"),
        (|g| g.sum("N"), "returned a gradient without the dim 'N'"),
        (|g| g.unsqueeze_with(0, UnsqueezeOptions::new().name("K")), "returned a gradient with the dim 'K'"),
        (|g| g.unsqueeze(0), "returned a gradient with an unnamed dim"),
    ] {
        let error = run(gradient).unwrap_err();
        assert_eq!((error.kind(), error.location().line()), (ErrorKind::Autograd, line), "{error}");
        assert!(error.message().contains(words), "{error}");
    }
    // An input without names is meant by position, and names of one that has some must agree.
    let plain = Tensor::ones([3])?.requiring_grad()?;
    let op = Op::new("own", x.value().mul(plain.value())?).input_named(&plain, |g, _| Ok(g.clone()));
    op.output().sum(..)?.backward()?;
    assert_eq!(plain.grad().unwrap().to_vec::<f32>()?, [3.0; 3]);
    Ok(())
}

#[test]
fn joint_derivatives_with_names() -> Result<()> {
    // The sum and the difference, of tensors in different orders.
    let both = |a: &Tensor, b: &Tensor| -> Result<Vec<Tensor>> {
        let aligned = b.value().align_as(a.value())?;
        let values = vec![a.value().add(&aligned)?, a.value().sub(&aligned)?];
        Ok(Op::with_outputs("both", values).inputs_named(&[Some(a), Some(b)], |g, _| {
            Ok(vec![Some(g[0].add(&g[1])?), Some(g[0].sub(&g[1])?)])
        }))
    };
    let a = Tensor::ones([("N", 2), ("C", 2)])?.requiring_grad()?;
    let b = Tensor::ones([("C", 2), ("N", 2)])?.requiring_grad()?;
    let weights = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.refine_names(["N", "C"])?;
    both(&a, &b)?[1].mul(&weights)?.sum(..)?.backward()?; // the sum is not used
    assert_eq!(a.grad().unwrap().to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(b.grad().unwrap().to_vec::<f32>()?, [-1.0, -3.0, -2.0, -4.0]);
    let op = Op::new("joined", a.value().mul(&b.value().t()?)?);
    let joined = op.inputs_named(&[Some(&a), None, Some(&b)], |g, _| Ok(vec![None, None, Some(g.clone())]));
    b.zero_grad();
    joined.output().mul(&weights)?.sum(..)?.backward()?;
    assert_eq!(b.grad().unwrap().to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    Ok(())
}
