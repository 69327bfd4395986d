//! Programs on the meta device beside the same programs on the CPU: transforms of functions, gradients of
//! gradients, hooks, and mistakes.

use namegrad::autograd::functional::{jvp, vmap};
use namegrad::autograd::{BackwardOptions, grad_with};
use namegrad::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// Runs a program on both devices, and compares dtypes, sizes and names of what it gives.
#[track_caller]
fn alike(program: fn() -> Result<Vec<Tensor>>) {
    let forms = |made: Vec<Tensor>| -> Vec<String> {
        made.iter().map(|x| format!("{} {}", x.dtype(), x.shape())).collect()
    };
    let meta = on_device(Device::Meta, program).unwrap();
    assert!(meta.iter().all(|x| x.device() == Device::Meta));
    assert_eq!(forms(program().unwrap()), forms(meta));
}

#[test]
fn functions_are_mapped() {
    alike(|| {
        let x = Tensor::ones([("N", 5), ("time", 3), ("in", 4)])?;
        let layer = Linear::new(("in", 4), ("out", 2))?;
        let slice = |x: &[Tensor]| layer.forward(&x[0])?.softmax("out")?.max("time").map(|y| y.values);
        let y = vmap(slice, &[&x], "N")?;
        Ok(vec![y])
    });
}

#[test]
fn tangents_are_pushed_forward() {
    alike(|| {
        let x = Tensor::ones([("N", 5), ("in", 4)])?;
        let layer = Linear::new(("in", 4), ("out", 2))?;
        let f = |x: &[Tensor]| layer.forward(&x[0])?.tanh()?.sum("out");
        let (y, tangent) = jvp(f, &[&x], &[&x.ones_like()?])?;
        Ok(vec![y, tangent])
    });
}

#[test]
fn gradients_have_gradients() {
    alike(|| {
        let layer = Linear::new(("in", 4), ("out", 2))?;
        let x = Tensor::ones([("N", 5), ("in", 4)])?.requiring_grad()?;
        let y = layer.forward(&x)?.square()?.sum(..)?;
        let options = BackwardOptions::new().create_graph(true);
        let g = grad_with(&[&y], &[&x], &[None], options)?.remove(0).expect("a gradient");
        g.square()?.sum(..)?.backward()?;
        Ok(vec![g, layer.weight().grad().expect("a gradient of the gradient")])
    });
}

#[test]
fn hooks_are_called() {
    alike(|| {
        let seen: Arc<Mutex<Vec<Tensor>>> = Arc::default();
        let layer = Linear::new(("in", 4), ("out", 2))?;
        let of_weight = seen.clone();
        layer.weight().tensor().register_post_accumulate_grad_hook(move |grad| {
            of_weight.lock().unwrap().push(grad.detach());
            Ok(None)
        })?;
        let y = layer.forward(&Tensor::ones([("N", 5), ("in", 4)])?)?;
        let of_output = seen.clone();
        y.register_hook(move |g| {
            of_output.lock().unwrap().push(g.detach());
            Ok(Some(g.mul(2.0)?))
        })?;
        y.sum(..)?.backward()?;
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 2);
        Ok(seen.clone())
    });
}

#[test]
fn mistakes_are_errors() {
    let make = || Linear::new(("in", 4), ("out", 2));
    let (real, meta) = (make().unwrap(), on_device(Device::Meta, make).unwrap());
    let error = real.load_state_dict(&meta.state_dict()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Device, "{error}");
    assert_eq!(real.weight().device(), Device::Cpu);
    meta.load_state_dict(&real.state_dict()).unwrap();
    assert_eq!(meta.weight().tensor(), real.weight().tensor());
    real.to_device(Device::Meta).unwrap();
    real.to_empty(Device::Cpu).unwrap();
    assert_eq!(real.weight().tensor(), real.weight().tensor().zeros_like().unwrap());

    let x = on_device(Device::Meta, || Tensor::ones([3])?.requiring_grad()).unwrap();
    let y = x.exp().unwrap();
    let options = BackwardOptions::new();
    let error = y.backward_with(Some(&Tensor::ones([3]).unwrap()), options).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Device, "{error}");
    let panic = catch_unwind(AssertUnwindSafe(|| x == y)).err().unwrap();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("needs the elements") && text.contains("tests/nn/meta.rs"), "{text}");
}
