//! The tape beyond a plain backward pass: ops with several outputs, gradients that cannot be differentiated
//! again, recomputed values, NaN, names, drawings.

use namegrad::autograd::{
    BackwardOptions, Cx, Graph, Kept, Op, checkpoint, detect_anomaly, grad_with, gradcheck, gradgradcheck,
    is_anomaly_enabled, is_grad_enabled,
};
use namegrad::core::random::Generator;
use namegrad::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

fn vector(numbers: &[f64]) -> Result<Tensor> {
    Tensor::from_slice(numbers, [("n", numbers.len())])?.requiring_grad()
}

/// The real and the imaginary part of `(a + ib)²`, with one derivative for both.
fn complex_square(a: &Tensor, b: &Tensor, calls: &Arc<AtomicUsize>) -> Result<[Tensor; 2]> {
    let values = vec![a.value().square()?.sub(b.value().square()?)?, a.value().mul(b.value())?.mul(2)?];
    let (kept_a, kept_b, calls) = (a.clone(), b.clone(), calls.clone());
    let outputs = Op::with_outputs("complex_square", values).inputs(&[Some(a), Some(b)], move |_, cx| {
        calls.fetch_add(1, Ordering::Relaxed);
        let (re, im) = (cx.output_gradient(0)?, cx.output_gradient(1)?);
        let of_a = re.mul(&kept_a)?.add(&im.mul(&kept_b)?)?.mul(2)?;
        let of_b = im.mul(&kept_a)?.sub(&re.mul(&kept_b)?)?.mul(2)?;
        Ok(vec![Some(of_a), Some(of_b)])
    });
    Ok(outputs.try_into().expect("as many as values"))
}

#[test]
fn an_op_of_several_outputs() -> Result<()> {
    let calls = Arc::new(AtomicUsize::new(0));
    let (a, b) = (vector(&[1.0, 2.0])?, vector(&[3.0, -1.0])?);
    let plain = |a: &Tensor, b: &Tensor| Ok::<_, Error>([a.square()?.sub(&b.square()?)?, a.mul(b)?.mul(2)?]);
    let gradients = |outputs: [Tensor; 2], create_graph: bool| -> Result<Vec<Tensor>> {
        let loss = outputs[0].exp()?.mul(&outputs[1])?.sum(..)?;
        let options = BackwardOptions { create_graph, ..Default::default() };
        Ok(grad_with(&[&loss], &[&a, &b], &[], options)?.into_iter().flatten().collect())
    };
    let of = gradients(complex_square(&a, &b, &calls)?, false)?;
    let want: [Tensor; 2] = plain(&a, &b)?;
    for (got, want) in of.iter().zip(gradients(want, false)?) {
        assert!(got.sub(&want)?.abs()?.amax(..)?.item::<f64>()? < 1e-9);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1, "one backward for both outputs");

    // Again through the gradient of the gradient.
    let second = |outputs: [Tensor; 2]| -> Result<Vec<f64>> {
        let first = gradients(outputs, true)?;
        grad_with(&[&first[0].sum(..)?], &[&b], &[], BackwardOptions::default())?
            .remove(0)
            .unwrap()
            .to_vec::<f64>()
    };
    let (got, want) = (second(complex_square(&a, &b, &calls)?)?, second(plain(&a, &b)?)?);
    assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-6 * b.abs()), "{got:?} {want:?}");
    Ok(())
}

#[test]
fn one_of_several_outputs_is_enough() -> Result<()> {
    let calls = Arc::new(AtomicUsize::new(0));
    let (a, b) = (vector(&[1.0, 2.0])?, vector(&[3.0, -1.0])?);
    let [_, im] = complex_square(&a, &b, &calls)?;
    im.sum(..)?.backward()?;
    assert_eq!(a.grad().unwrap().to_vec::<f64>()?, [6.0, -2.0]);
    assert_eq!(b.grad().unwrap().to_vec::<f64>()?, [2.0, 4.0]);
    let error = im.sum(..)?.backward().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Autograd, "what it kept is freed: {error}");
    let constant = complex_square(&a.detach(), &b.detach(), &calls)?;
    assert!(constant.iter().all(|x| !x.requires_grad()));
    Ok(())
}

#[test]
fn a_wrong_number_of_gradients() -> Result<()> {
    let x = vector(&[1.0])?;
    let op = Op::with_outputs("halves", vec![x.value().clone(), x.value().clone()]);
    let outputs = op.inputs(&[Some(&x)], |_, _| Ok(vec![]));
    let error = outputs[0].sum(..)?.backward().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Autograd);
    assert!(
        error.to_string().contains("halves") && error.to_string().contains("0 gradients for 1 inputs"),
        "{error}"
    );
    assert!(x.grad().is_none());
    Ok(())
}

#[test]
fn a_gradient_outside_of_the_tape_is_not_differentiated() -> Result<()> {
    let cube = |x: &Tensor| -> Result<Tensor> {
        let kept = Kept::input(x);
        let value = x.value().pow(3)?;
        Ok(Op::new("cube", value)
            .input_once(x, move |g, cx| g.mul(&kept.get(cx).value().square()?.mul(3)?))
            .output())
    };
    let x = vector(&[2.0])?;
    cube(&x)?.sum(..)?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [12.0]);
    let create = BackwardOptions { create_graph: true, ..Default::default() };
    let first = grad_with(&[&cube(&x)?.sum(..)?], &[&x], &[], create)?.remove(0).unwrap();
    assert!(first.requires_grad(), "not cut in silence");
    let error = first.sum(..)?.backward().unwrap_err();
    assert!(
        error.to_string().contains("cube") && error.to_string().contains("cannot be differentiated again"),
        "{error}"
    );
    Ok(())
}

#[test]
fn a_checkpoint_gives_the_same_gradients() -> Result<()> {
    let weight = Parameter::new(vector(&[0.3, -0.7])?)?;
    let block = {
        let weight = weight.clone();
        move |inputs: &[Tensor]| inputs[0].mul(weight.tensor())?.tanh()?.exp()
    };
    let x = vector(&[1.0, 2.0])?;
    let run = |checkpointed: bool| -> Result<[Vec<f64>; 2]> {
        weight.zero_grad();
        x.zero_grad();
        let y =
            if checkpointed { checkpoint(block.clone(), &[&x])? } else { block(std::slice::from_ref(&x))? };
        // The input is also used outside of the block.
        y.mul(&x)?.sum(..)?.backward()?;
        Ok([x.grad().unwrap().to_vec()?, weight.grad().unwrap().to_vec()?])
    };
    assert_eq!(run(true)?, run(false)?);

    let y = checkpoint(block.clone(), &[&x])?;
    let only = grad_with(&[&y.sum(..)?], &[&weight.tensor()], &[], BackwardOptions::default())?;
    let plain = grad_with(
        &[&block(std::slice::from_ref(&x))?.sum(..)?],
        &[&weight.tensor()],
        &[],
        BackwardOptions::default(),
    )?;
    assert_eq!(only[0].as_ref().unwrap().to_vec::<f64>()?, plain[0].as_ref().unwrap().to_vec::<f64>()?);
    assert!(!no_grad(|| checkpoint(block.clone(), &[&x]))?.requires_grad());
    assert!(!checkpoint(|x| x[0].exp(), &[&x.detach()])?.requires_grad());
    Ok(())
}

#[test]
fn a_checkpoint_draws_the_same_numbers_again() -> Result<()> {
    let x = Tensor::ones([1000])?.requiring_grad()?;
    manual_seed(3);
    let y = checkpoint(|x| F::dropout(&x[0], 0.5), &[&x])?;
    let after = Tensor::rand([1])?.item::<f32>()?;
    y.sum(..)?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, y.to_vec::<f32>()?, "what was dropped has no gradient");
    manual_seed(3);
    F::dropout(&x, 0.5)?;
    assert_eq!(Tensor::rand([1])?.item::<f32>()?, after, "nothing is drawn twice from the generator");
    Ok(())
}

#[test]
fn checkpoints_within_checkpoints() -> Result<()> {
    let x = vector(&[0.2, 0.4])?;
    let y = checkpoint(|x| checkpoint(|x| x[0].sin()?.sin(), &[&x[0].exp()?])?.exp(), &[&x])?;
    let create = BackwardOptions { create_graph: true, ..Default::default() };
    let first = grad_with(&[&y.sum(..)?], &[&x], &[], create)?.remove(0).unwrap();
    let second = grad_with(&[&first.sum(..)?], &[&x], &[], BackwardOptions::default())?.remove(0).unwrap();
    let plain = x.exp()?.sin()?.sin()?.exp()?;
    let want = grad_with(&[&plain.sum(..)?], &[&x], &[], create)?.remove(0).unwrap();
    let want_second =
        grad_with(&[&want.sum(..)?], &[&x], &[], BackwardOptions::default())?.remove(0).unwrap();
    assert_eq!(first.to_vec::<f64>()?, want.to_vec::<f64>()?);
    assert_eq!(second.to_vec::<f64>()?, want_second.to_vec::<f64>()?);
    Ok(())
}

#[test]
fn nan_is_found_where_it_was_made() -> Result<()> {
    let x = vector(&[-1.0, 4.0])?;
    let line = line!() + 1;
    let y = x.sqrt()?;
    let loss = y.mul(2)?.sum(..)?;
    let error = detect_anomaly(|| {
        loss.backward_with(None, BackwardOptions { retain_graph: true, ..Default::default() })
    });
    let text = error.unwrap_err().to_string();
    assert!(text.contains("sqrt") && text.contains(&format!("{}:{line}", file!())), "{text}");
    assert!(x.grad().is_none());
    loss.backward()?;
    assert!(x.grad().unwrap().to_vec::<f64>()?[0].is_nan(), "without the mode NaN passes");
    Ok(())
}

#[test]
fn gradients_with_names() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?.requiring_grad()?;
    let named = BackwardOptions { named: true, ..Default::default() };
    x.exp()?.sum(..)?.backward_with(None, named)?;
    assert_eq!(*x.grad().unwrap().names(), ["N", "C"]);
    let y = x.mul(2)?;
    let right = Tensor::ones([("N", 2), ("C", 3)])?;
    assert_eq!(*grad_with(&[&y], &[&x], &[Some(&right)], named)?[0].as_ref().unwrap().names(), ["N", "C"]);
    let wrong = Tensor::ones([("C", 2), ("N", 3)])?;
    let error = grad_with(&[&x.mul(2)?], &[&x], &[Some(&wrong)], named).unwrap_err();
    assert!([ErrorKind::NameMismatch, ErrorKind::Misaligned].contains(&error.kind()), "{error}");
    x.zero_grad();
    x.mul(2)?.backward_with(Some(&wrong), BackwardOptions::default())?;
    assert!(!x.grad().unwrap().has_names(), "names are ignored unless they are asked for");
    Ok(())
}

#[test]
fn a_picture_of_the_tape() -> Result<()> {
    let x = Tensor::ones([("N", 2)])?.requiring_grad()?;
    let h = x.exp()?;
    let loss = h.mul(&h)?.sum(..)?;
    let graph = Graph::of(&[("x", &x), ("loss", &loss)]);
    assert_eq!(
        graph.nodes.iter().map(|node| node.op).collect::<Vec<_>>(),
        [None, Some("exp"), Some("mul"), Some("sum")]
    );
    assert_eq!(graph.edges, [(0, 1), (1, 2), (1, 2), (2, 3)]);
    let text = graph.to_string();
    assert!(text.starts_with("digraph tape {") && text.ends_with('}'));
    assert!(text.contains("leaf\\nx [N=2]") && text.contains("n2 -> n3;"), "{text}");
    assert!(Graph::of(&[("x", &x.detach())]).nodes.is_empty());
    Ok(())
}

#[test]
fn parts_of_which_some_are_not_used() -> Result<()> {
    let f = |x: &[Tensor]| {
        let parts = x[0].split([1, 0, 2], "C")?;
        let rows = x[0].unbind("N")?;
        parts[2].exp()?.sum("C")?.mul(&rows[1].sum(..)?.square()?)
    };
    let x = Tensor::from_slice(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [("N", 2), ("C", 3)])?;
    gradcheck(f, std::slice::from_ref(&x))?;
    gradgradcheck(f, &[x])?;
    Ok(())
}

// Failures in the backward pass

const WELL: u8 = 0;
const ERROR: u8 = 1;
const PANIC: u8 = 2;

/// A switch in a user's function, which makes it succeed, fail or panic.
#[derive(Clone, Default)]
struct Trap(Arc<AtomicU8>);

impl Trap {
    fn step_on(&self) -> Result<()> {
        match self.0.load(Ordering::Relaxed) {
            ERROR => Err(Error::new(ErrorKind::Value, "trap", "stepped on")),
            PANIC => panic!("stepped on the trap"),
            _ => Ok(()),
        }
    }
}

type Place = fn(&Tensor, &Trap) -> Result<Tensor>;

fn in_a_hook(x: &Tensor, trap: &Trap) -> Result<Tensor> {
    let (y, trap) = (x.sin()?, trap.clone());
    y.register_hook(move |_| trap.step_on().map(|()| None))?;
    Ok(y)
}

fn in_a_hook_after_accumulation(x: &Tensor, trap: &Trap) -> Result<Tensor> {
    let trap = trap.clone();
    x.register_post_accumulate_grad_hook(move |_| trap.step_on().map(|()| None))?;
    x.sin()
}

fn in_an_op(x: &Tensor, trap: &Trap) -> Result<Tensor> {
    let (kept, trap) = (Kept::input(x), trap.clone());
    let gradient = move |g: &Tensor, cx: &Cx<'_>| trap.step_on().and_then(|()| g.mul(kept.get(cx).cos()?));
    Ok(Op::new("own_sin", x.value().sin()?).input(x, gradient).output())
}

fn in_an_op_of_several_outputs(x: &Tensor, trap: &Trap) -> Result<Tensor> {
    let (kept, trap) = (x.clone(), trap.clone());
    let outputs = Op::with_outputs("own_sin", vec![x.value().sin()?]).inputs(&[Some(x)], move |g, _| {
        trap.step_on()?;
        let g = g[0].as_ref().expect("the only output is used");
        Ok(vec![Some(g.mul(kept.cos()?)?)])
    });
    Ok(outputs[0].clone())
}

fn in_a_checkpoint(x: &Tensor, trap: &Trap) -> Result<Tensor> {
    let trap = trap.clone();
    let again = move |x: &[Tensor]| {
        Tensor::rand([2])?; // drawn again in the backward pass, but not after it
        trap.step_on()?;
        x[0].sin()
    };
    checkpoint(again, &[x])
}

#[test]
fn what_fails_in_a_backward_pass_leaves_no_trace() -> Result<()> {
    Generator::from_seed(0).scope(failures_going_back)
}

fn failures_going_back() -> Result<()> {
    let retain = BackwardOptions { retain_graph: true, ..Default::default() };
    let places: [(Place, bool); 5] = [
        (in_a_hook, false),
        (in_a_hook_after_accumulation, true),
        (in_an_op, false),
        (in_an_op_of_several_outputs, false),
        (in_a_checkpoint, false),
    ];
    for (number, (place, is_after)) in places.into_iter().enumerate() {
        for how in [ERROR, PANIC] {
            let trap = Trap::default();
            // When the trap is triggered, the gradient of `late` is known, but the gradient of `early` is
            // not.
            let (early, late) = (vector(&[0.5, 2.0])?, vector(&[3.0, -1.0])?);
            let loss = place(&early, &trap)?.mul(&late)?.sum(..)?;
            let draw = || Generator::from_seed(7).scope(|| Tensor::rand([1])?.item::<f32>());
            let drawn = draw()?;
            trap.0.store(how, Ordering::Relaxed);
            let backward = || detect_anomaly(|| loss.backward_with(None, retain));
            let failed = catch_unwind(AssertUnwindSafe(backward));
            assert!(if how == PANIC { failed.is_err() } else { failed.unwrap().is_err() }, "place {number}");
            assert!(is_grad_enabled() && !is_anomaly_enabled(), "place {number}: the modes are back");
            // Hooks after accumulation run when all gradients are complete.
            assert_eq!(early.grad().is_some(), is_after, "place {number}");
            assert_eq!(late.grad().is_some(), is_after, "place {number}");
            assert_eq!(draw()?, drawn, "place {number}: numbers come from the generator again");
            assert!(early.mul(2)?.requires_grad() && !no_grad(|| early.mul(2))?.requires_grad());

            early.zero_grad();
            late.zero_grad();
            trap.0.store(WELL, Ordering::Relaxed);
            for times in [1.0, 2.0] {
                loss.backward_with(None, retain)?;
                let of_late = early.detach().sin()?.mul(times)?;
                let of_early = early.detach().cos()?.mul(late.detach())?.mul(times)?;
                assert_eq!(late.grad().unwrap().to_vec::<f64>()?, of_late.to_vec::<f64>()?, "place {number}");
                assert_eq!(
                    early.grad().unwrap().to_vec::<f64>()?,
                    of_early.to_vec::<f64>()?,
                    "place {number}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn what_fails_in_a_checkpoint_going_forward_leaves_no_trace() -> Result<()> {
    let (x, trap) = (vector(&[0.5])?, Trap::default());
    for how in [ERROR, PANIC] {
        trap.0.store(how, Ordering::Relaxed);
        let going = || Generator::from_seed(0).scope(|| in_a_checkpoint(&x, &trap));
        let failed = catch_unwind(AssertUnwindSafe(going));
        assert!(if how == PANIC { failed.is_err() } else { failed.unwrap().is_err() });
        x.exp()?.sum(..)?.backward()?;
        assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [0.5f64.exp()], "what is kept is kept again");
        x.zero_grad();
    }
    Ok(())
}

#[test]
fn what_panics_as_it_is_dropped_stops_nothing() -> Result<()> {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a bomb");
        }
    }
    let (x, token) = (vector(&[1.0])?, Arc::new(()));
    let holding = |held: Arc<dyn std::any::Any + Send + Sync>| {
        let gradient = move |g: &Tensor, _: &Cx<'_>| {
            let _ = &held;
            Ok(g.clone())
        };
        Op::new("holding", x.value().clone()).input(&x, gradient).output()
    };
    // The panic is reported and goes no further: not even one in progress is a reason to abort.
    drop(holding(Arc::new(Bomb)));
    let bomb = holding(Arc::new(Bomb));
    let unwinding = catch_unwind(AssertUnwindSafe(|| {
        let _bomb = bomb;
        panic!("the first");
    }));
    assert_eq!(unwinding.unwrap_err().downcast_ref(), Some(&"the first"));
    drop(holding(token.clone()));
    assert_eq!(Arc::strong_count(&token), 1);
    Ok(())
}

#[test]
fn checkpoints_within_checkpoints_draw_the_same_numbers_again() -> Result<()> {
    let x = Tensor::ones([1000])?.requiring_grad()?;
    let inner = |x: &[Tensor]| checkpoint(|x| F::dropout(&x[0], 0.5), &[&F::dropout(&x[0], 0.5)?]);
    let y = Generator::from_seed(5).scope(|| checkpoint(inner, &[&x]))?;
    y.sum(..)?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, y.to_vec::<f32>()?);
    Ok(())
}

/// The second run always drew from the default generator, even if the first one did not.
#[test]
fn a_checkpoint_in_the_scope_of_a_generator_dropped_other_elements_the_second_time() -> Result<()> {
    let x = Tensor::ones([100])?.requiring_grad()?;
    let y = Generator::from_seed(5).scope(|| checkpoint(|x| F::dropout(&x[0], 0.5), &[&x]))?;
    y.sum(..)?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, y.to_vec::<f32>()?);
    Ok(())
}

/// The graph beyond a tensor whose gradient was requested was walked needlessly, which used it up, or failed
/// if it was already used up.
#[test]
fn a_gradient_of_an_intermediate_used_up_what_it_was_made_of() -> Result<()> {
    let x = Tensor::new([2.0])?.requiring_grad()?;
    let y = x.exp()?;
    let gradient = |y: &Tensor| grad_with(&[&y.square()?], &[y], &[], BackwardOptions::default());
    let before = gradient(&y)?.remove(0).unwrap().item::<f64>()?;
    y.backward()?;
    assert_eq!(gradient(&y)?.remove(0).unwrap().item::<f64>()?, before);
    assert_eq!(before, y.mul(2)?.item::<f64>()?);
    // Another input beyond it is still reached.
    let y = x.exp()?;
    let both = grad_with(&[&y.square()?], &[&y, &x], &[], BackwardOptions::default())?;
    assert!(both.iter().all(Option::is_some));
    assert!(y.backward().is_err());
    // Even if there is a path that does not lead through it.
    let y = x.exp()?;
    let loss = y.mul(&checkpoint(|x| x[0].square(), &[&x])?)?;
    let of_x = grad_with(&[&loss], &[&y, &x], &[], BackwardOptions::default())?.remove(1).unwrap();
    let want = y.mul(x.square()?.add(x.mul(2)?)?)?; // (eˣ x²)' = eˣ (x² + 2x)
    assert!(of_x.allclose(&want)?);
    Ok(())
}

/// The gradient inside was the gradient of the result, as if every op were the identity.
#[test]
fn a_gradient_inside_of_a_checkpoint_was_wrong_in_silence() -> Result<()> {
    let create = BackwardOptions { create_graph: true, ..BackwardOptions::default() };
    let f = move |x: &[Tensor]| Ok(grad_with(&[&x[0].pow(3)?], &[&x[0]], &[], create)?.remove(0).unwrap());
    let x = Tensor::new([2.0])?.requiring_grad()?;
    assert_eq!(f(std::slice::from_ref(&x))?.item::<f64>()?, 12.0);
    let error = checkpoint(f, &[&x]).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Autograd, file!()));
    assert!(error.to_string().contains("called in a checkpoint"), "{error}");
    Ok(())
}

/// A chain of layers, the last of them with the weights of the first, one of them in a checkpoint.
fn layers_with_a_tie() -> Result<Vec<Linear>> {
    let mut layers = Vec::new();
    for seed in 0..5 {
        layers.push(Generator::from_seed(seed).scope(|| Linear::new(6, 6))?);
    }
    layers.push(layers[0].clone());
    Ok(layers)
}

fn loss_of(layers: &[Linear]) -> Result<Tensor> {
    let mut x = Generator::from_seed(9).scope(|| Tensor::randn([4, 6]))?;
    for (at, layer) in layers.iter().enumerate() {
        x = match at {
            2 => {
                let layer = layer.clone();
                checkpoint(move |x| layer.forward(&x[0])?.tanh(), &[&x])?
            }
            _ => layer.forward(&x)?.tanh()?,
        };
    }
    x.square()?.sum(..)
}

#[test]
fn early_gradients_are_applied_while_the_pass_goes_on() -> Result<()> {
    let early = BackwardOptions::new().early(true);
    let (plain, stepping) = (layers_with_a_tie()?, layers_with_a_tie()?);
    let mut optimizer = Sgd::builder(plain[..5].iter().flat_map(Module::parameters)).lr(0.1).build()?;
    // The most gradients that are there at once, and the order of the layers.
    let seen = Arc::new(Mutex::new((0, Vec::new())));
    let parameters: Vec<Parameter> = stepping[..5].iter().flat_map(Module::parameters).collect();
    for (at, parameter) in parameters.iter().enumerate() {
        let optimizer = Mutex::new(Sgd::builder([parameter]).lr(0.1).build()?);
        let (seen, all) = (seen.clone(), parameters.clone());
        parameter.tensor().register_post_accumulate_grad_hook(move |_| {
            let mut seen = seen.lock().unwrap();
            seen.0 = seen.0.max(all.iter().filter(|other| other.grad().is_some()).count());
            seen.1.push(at / 2);
            let mut optimizer = optimizer.lock().unwrap();
            optimizer.step()?;
            optimizer.zero_grad();
            Ok(None)
        })?;
    }
    for _ in 0..3 {
        optimizer.zero_grad();
        loss_of(&plain)?.backward()?;
        optimizer.step()?;
        loss_of(&stepping)?.backward_with(None, early)?;
        for (a, b) in plain.iter().zip(&stepping) {
            assert!(a.weight().tensor().equal(&b.weight().tensor())?);
        }
        let (most, order) = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!((most, order), (1, vec![4, 4, 3, 3, 2, 2, 1, 1, 0, 0]), "one at a time");
    }
    Ok(())
}

#[test]
fn early_gradients_are_those_of_a_plain_pass() -> Result<()> {
    let layers = layers_with_a_tie()?;
    let gradients = |options: BackwardOptions| {
        let loss = loss_of(&layers)?.add(layers[3].weight().tensor().sum(..)?)?;
        loss.backward_with(None, options)?;
        layers[1].weight().tensor().sum(..)?.backward_with(None, options)?; // accumulates
        layers[1].weight().tensor().backward_with(Some(&Tensor::ones([6, 6])?), options)?; // begins at a leaf
        let all = layers.iter().flat_map(Module::parameters).map(|p| p.grad().map(|g| g.to_vec::<f32>()));
        let all: Vec<_> = all.collect();
        layers.iter().for_each(Module::zero_grad);
        Ok::<_, Error>(format!("{all:?}"))
    };
    assert_eq!(gradients(BackwardOptions::new().early(true))?, gradients(BackwardOptions::new())?);
    Ok(())
}
