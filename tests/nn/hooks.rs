//! Hooks of layers: when they are called, with which values, and what they can replace.

use namegrad::autograd::{BackwardOptions, HookHandle, grad_with};
use namegrad::nn::Hooked;
use namegrad::prelude::*;
use std::sync::{Arc, Mutex};

/// A log that hooks write to.
type Log = Arc<Mutex<Vec<String>>>;

fn text(x: &Tensor) -> String {
    format!("{:?}", x.to_vec::<f32>().expect("numbers"))
}

/// Registers hooks of every kind that log what they see, with a label.
fn observed<L: Layer + 'static>(layer: &Hooked<L>, label: &'static str, log: &Log) -> Vec<HookHandle> {
    let note = |kind: &'static str| {
        let log = log.clone();
        move |what: String| log.lock().unwrap().push(format!("{label} {kind} {what}"))
    };
    let (before, after) = (note("forward_pre"), note("forward"));
    let (before_backward, after_backward) = (note("backward_pre"), note("backward"));
    vec![
        layer.register_full_backward_hook(move |_, grad_input, grad_output| {
            after_backward(format!("{} {}", grad_input.map_or("none".into(), text), text(grad_output)));
            Ok(None)
        }),
        layer.register_full_backward_pre_hook(move |_, grad_output| {
            before_backward(text(grad_output));
            Ok(None)
        }),
        layer.register_forward_hook(move |_, x, y| {
            after(format!("{} {}", text(x), text(y)));
            Ok(None)
        }),
        layer.register_forward_pre_hook(move |_, x| {
            before(text(x));
            Ok(None)
        }),
    ]
}

/// A layer `y = 3 x`.
fn triple() -> Result<Hooked<Linear>> {
    let layer = Linear::builder(1, 1).bias(false).build()?;
    layer.weight().set(Tensor::new([[3.0]])?.value())?;
    Ok(Hooked::new(layer))
}

fn leaf(number: f64) -> Result<Tensor> {
    Tensor::new([number])?.to(DType::F32)?.requiring_grad()
}

#[test]
fn hooks_are_called_in_the_order_of_pytorch_until_removed() -> Result<()> {
    let (layer, log, x) = (triple()?, Log::default(), leaf(2.0)?);
    let handles = [observed(&layer, "a", &log), observed(&layer, "b", &log)].concat();
    layer.forward(&x)?.mul(5.0)?.sum(..)?.backward()?;
    let seen = ["forward_pre [2.0]", "forward [2.0] [6.0]", "backward_pre [5.0]", "backward [15.0] [5.0]"];
    let want: Vec<_> =
        seen.iter().flat_map(|what| ["a", "b"].map(|label| format!("{label} {what}"))).collect();
    assert_eq!(*log.lock().unwrap(), want);
    assert_eq!(text(&x.grad().unwrap()), "[15.0]");

    handles.iter().chain(&handles[..1]).for_each(HookHandle::remove);
    layer.forward(&x)?.sum(..)?.backward()?;
    assert_eq!(log.lock().unwrap().len(), want.len(), "all are removed, the first twice");
    Ok(())
}

#[test]
fn hooks_of_outer_and_inner_layers_nest() -> Result<()> {
    let (inner, log, x) = (triple()?, Log::default(), leaf(1.0)?);
    let outer = Hooked::new(Sequential::new().then(inner.clone()).then(Relu));
    observed(&inner, "inner", &log);
    observed(&outer, "outer", &log);
    outer.forward(&x)?.sum(..)?.backward()?;
    let want = [
        "outer forward_pre [1.0]",
        "inner forward_pre [1.0]",
        "inner forward [1.0] [3.0]",
        "outer forward [1.0] [3.0]",
        "outer backward_pre [1.0]",
        "inner backward_pre [1.0]",
        "inner backward [3.0] [1.0]",
        "outer backward [3.0] [1.0]",
    ];
    assert_eq!(*log.lock().unwrap(), want);
    Ok(())
}

#[test]
fn hooks_replace_what_they_see() -> Result<()> {
    let (layer, x) = (triple()?, leaf(1.0)?);
    layer.register_forward_pre_hook(|_, x| x.add(1.0).map(Some)); // 2
    layer.register_forward_hook(|layer, _, y| y.mul(layer.weight().tensor().item::<f64>()?).map(Some)); // 18
    // 10, and 30 at the output of the previous hook
    layer.register_full_backward_pre_hook(|_, g| g.mul(10.0).map(Some));
    layer.register_full_backward_hook(|_, grad_input, grad_output| {
        assert_eq!([text(grad_input.unwrap()), text(grad_output)], ["[90.0]", "[10.0]"]);
        grad_input.unwrap().add(1.0).map(Some)
    });
    let y = layer.forward(&x)?;
    assert_eq!(text(&y), "[18.0]");
    y.sum(..)?.backward()?;
    assert_eq!(text(&x.grad().unwrap()), "[91.0]");
    assert_eq!(text(&layer.layer().weight().grad().unwrap().squeeze(0)?), "[60.0]", "10 * 3 * 2");
    Ok(())
}

#[test]
fn a_hook_sees_the_gradients_of_its_call_alone() -> Result<()> {
    let (layer, log, x) = (triple()?, Log::default(), leaf(1.0)?);
    observed(&layer, "", &log);
    // The input is also used outside of the layer, and the layer is used twice.
    let y = layer.forward(&x)?.add(x.mul(100.0)?)?.add(layer.forward(&x)?.mul(2.0)?)?;
    y.sum(..)?.backward()?;
    let backward: Vec<_> =
        log.lock().unwrap().iter().filter(|line| line.contains("backward ")).cloned().collect();
    assert_eq!(backward, [" backward [6.0] [2.0]", " backward [3.0] [1.0]"], "the later call first");
    assert_eq!(text(&x.grad().unwrap()), "[109.0]");

    let (same, log, x) = (Hooked::new(Sequential::new()), Log::default(), leaf(1.0)?);
    observed(&same, "", &log);
    same.forward(&x)?.add(x.mul(100.0)?)?.sum(..)?.backward()?;
    assert_eq!(log.lock().unwrap()[3], " backward [1.0] [1.0]", "a layer that gives back its input");
    Ok(())
}

#[test]
fn an_input_without_gradient_has_none() -> Result<()> {
    let (layer, log) = (triple()?, Log::default());
    observed(&layer, "", &log);
    layer.forward(&leaf(2.0)?.detach())?.sum(..)?.backward()?;
    assert_eq!(log.lock().unwrap()[2..], [" backward_pre [1.0]", " backward none [1.0]"]);
    assert_eq!(text(&layer.layer().weight().grad().unwrap().squeeze(0)?), "[2.0]");
    log.lock().unwrap().clear();
    no_grad(|| layer.forward(&leaf(2.0)?))?;
    assert_eq!(log.lock().unwrap().len(), 2, "nothing goes back through what is not recorded");
    Ok(())
}

#[test]
fn hooks_of_gradients_stay_with_the_calls_that_they_were_there_for() -> Result<()> {
    let (layer, x) = (triple()?, leaf(1.0)?);
    let before = layer.forward(&x)?;
    let handle = layer.register_full_backward_hook(|_, g, _| Ok(Some(g.unwrap().mul(10.0)?)));
    let during = layer.forward(&x)?;
    handle.remove();
    let after = layer.forward(&x)?;
    for (y, want) in [(before, "[3.0]"), (during, "[30.0]"), (after, "[3.0]")] {
        assert_eq!(
            text(&grad_with(&[&y], &[&x], &[], BackwardOptions::default())?[0].clone().unwrap()),
            want
        );
    }
    Ok(())
}

#[test]
fn a_hook_that_fails_stops_the_call() -> Result<()> {
    let (layer, x) = (triple()?, leaf(1.0)?);
    let retain = BackwardOptions { retain_graph: true, ..Default::default() };
    let kind = |error: Error| error.kind();
    let handle = layer.register_forward_pre_hook(|_, x| x.sum("C").map(Some));
    assert_eq!(layer.forward(&x).map_err(kind).unwrap_err(), ErrorKind::NameNotFound);
    handle.remove();
    let handle = layer.register_full_backward_hook(|_, _, _| Ok(Some(Tensor::ones([7])?)));
    let loss = layer.forward(&x)?.sum(..)?;
    let error = loss.backward_with(None, retain).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Autograd, file!()), "{error}");
    assert!(x.grad().is_none() && layer.layer().weight().grad().is_none());
    handle.remove();
    layer.forward(&x)?.sum(..)?.backward()?;
    assert_eq!(text(&x.grad().unwrap()), "[3.0]");
    Ok(())
}

#[test]
fn gradients_through_hooks_are_differentiated_again() -> Result<()> {
    let (layer, x) = (Hooked::new(Tanh), leaf(0.5)?);
    layer.register_full_backward_hook(|_, g, _| Ok(Some(g.unwrap().mul(2.0)?)));
    let create = BackwardOptions { create_graph: true, ..Default::default() };
    let second = |y: Tensor, x: &Tensor| -> Result<f64> {
        let first = grad_with(&[&y], &[x], &[], create)?.remove(0).unwrap();
        grad_with(&[&first], &[x], &[], BackwardOptions::default())?.remove(0).unwrap().item::<f64>()
    };
    // The second pass reaches the input without the output, so the hook is not called again.
    let (got, plain) = (second(layer.forward(&x)?, &x)?, second(x.tanh()?, &x)?);
    assert!((got - 2.0 * plain).abs() < 1e-6, "{got} {plain}");
    Ok(())
}

#[test]
fn a_hooked_layer_is_the_layer_to_its_model() -> Result<()> {
    #[derive(Module)]
    struct Net {
        first: Hooked<Linear>,
        drop: Hooked<Dropout>,
    }
    let net = Net {
        first: Hooked::new(Linear::new(("in", 2), ("out", 3))?),
        drop: Hooked::new(Dropout::new(0.5)?),
    };
    let paths: Vec<_> = net.named_parameters().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["first.weight", "first.bias"]);
    assert!(net.summary().to_string().contains("Linear(in=2 -> out=3)"));
    net.eval();
    let x = Tensor::ones([("N", 4), ("in", 2)])?;
    let y = net.first.forward(&x)?;
    assert_eq!(net.drop.forward(&y)?.to_vec::<f32>()?, y.to_vec::<f32>()?);
    assert_eq!(y.shape().to_string(), "[N=4, out=3]");
    Ok(())
}

#[test]
fn a_layer_of_other_inputs_and_outputs_has_forward_hooks() -> Result<()> {
    #[derive(Module)]
    struct Split;
    impl Layer<(Tensor, f64), Vec<Tensor>> for Split {
        fn forward(&self, (x, factor): &(Tensor, f64)) -> Result<Vec<Tensor>> {
            Ok(vec![x.clone(), x.mul(*factor)?])
        }
    }
    let layer = Hooked::new(Split);
    layer.register_forward_pre_hook(|_, (x, factor)| Ok(Some((x.clone(), factor + 1.0))));
    let cut = layer.register_forward_hook(|_, _, parts| Ok(Some(parts[1..].to_vec())));
    let parts = layer.forward(&(leaf(2.0)?, 2.0))?;
    assert_eq!(parts.iter().map(text).collect::<Vec<_>>(), ["[6.0]"]);
    cut.remove();
    assert_eq!(layer.forward(&(leaf(2.0)?, 2.0))?.len(), 2);
    Ok(())
}

#[test]
fn threads_walk_through_one_hooked_graph() -> Result<()> {
    let (layer, x) = (triple()?, leaf(1.0)?);
    layer.register_full_backward_hook(|_, g, of_output| Ok(Some(g.unwrap().mul(of_output)?)));
    let y = layer.forward(&x)?;
    let retain = BackwardOptions { retain_graph: true, ..Default::default() };
    std::thread::scope(|scope| {
        for number in 1..=8 {
            let (x, y) = (&x, &y);
            scope.spawn(move || {
                for _ in 0..100 {
                    let factor = Tensor::new([number as f64]).unwrap().to(DType::F32).unwrap();
                    let of_x = grad_with(&[y], &[x], &[Some(&factor)], retain).unwrap().remove(0).unwrap();
                    assert_eq!(of_x.item::<f64>().unwrap(), 3.0 * f64::from(number * number));
                }
            });
        }
    });
    Ok(())
}
