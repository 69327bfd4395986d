//! Scans and folds: functions along a dim.

use namegrad::autograd::{checkpoint, fold, gradcheck, gradgradcheck, scan};
use namegrad::core::random::Generator;
use namegrad::prelude::*;

fn drawn(seed: u64, shape: &[(&'static str, usize)]) -> Result<Tensor> {
    Generator::from_seed(seed).scope(|| Tensor::randn(shape))?.to(DType::F64)
}

/// One step of a recurrent layer: `tanh(x w + h u)`.
fn step(x: &Tensor, h: &Tensor, w: &Tensor, u: &Tensor) -> Result<Tensor> {
    let u = u.rename([("hidden", "next"), ("from", "hidden")])?;
    let recurrent = h.contract(&u, "hidden")?.rename([("next", "hidden")])?;
    x.contract(w, "in")?.add(&recurrent).tanh()
}

#[test]
fn a_recurrent_layer() -> Result<()> {
    let x = drawn(1, &[("N", 2), ("time", 4), ("in", 3)])?;
    let (w, u) = (drawn(2, &[("in", 3), ("hidden", 2)])?, drawn(3, &[("from", 2), ("hidden", 2)])?);
    let h0 = drawn(4, &[("N", 2), ("hidden", 2)])?;
    for reverse in [false, true] {
        let options = ScanOptions::new().reverse(reverse);
        let run = |t: &[Tensor]| {
            t[0].scan_with("time", t[1].clone(), options, |h, x| {
                let h = step(&x, &h, &t[2], &t[3])?;
                Ok((h.clone(), h))
            })
        };
        let inputs = [x.clone(), h0.clone(), w.clone(), u.clone()];
        let (last, all) = run(&inputs)?;
        assert_eq!(all.shape().to_string(), "[N=2, time=4, hidden=2]");
        // By hand.
        let mut h = h0.clone();
        for at in 0..4 {
            let at = if reverse { 3 - at } else { at };
            h = step(&x.select("time", at)?, &h, &w, &u)?;
            assert!(h.equal(&all.select("time", at)?)?, "step {at}");
        }
        assert!(h.equal(&last)?);
        let both = |t: &[Tensor]| {
            let (last, all) = run(t)?;
            all.square()?.sum("time").add(&last)
        };
        gradcheck(both, &inputs)?;
        gradgradcheck(both, &inputs)?;
        let folded =
            |t: &[Tensor]| t[0].fold_with("time", t[1].clone(), options, |h, x| step(&x, &h, &t[2], &t[3]));
        assert!(folded(&inputs)?.equal(&last)?);
        gradcheck(folded, &inputs)?;
    }
    Ok(())
}

#[test]
fn structures_of_tensors() -> Result<()> {
    let x = Tensor::new([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])?.refine_names(["N", "time"])?;
    let weight = Tensor::new([1, 10, 100])?.refine_names(["time"])?;
    let init = (Tensor::zeros(("N", 2))?, vec![Tensor::new(0)?]);
    let ((sum, count), (outputs, [])) =
        scan(&[x.clone(), weight.to(DType::F32)?], -1, init, |state, [x, w]| {
            let (sum, count) = state;
            let sum = sum.add(x.mul(&w)?)?;
            let count = vec![count[0].add(1)?];
            Ok(((sum.clone(), count.clone()), ((sum, count[0].clone(), w), [] as [Tensor; 0])))
        })?;
    assert_eq!((sum.to_vec::<f32>()?, count[0].item::<i64>()?), (vec![321.0, 654.0], 3));
    // A 0-d output has the dim last.
    assert_eq!(outputs.0.shape().to_string(), "[N=2, time=3]");
    assert_eq!(
        (outputs.1.shape().to_string(), outputs.1.to_vec::<i64>()?),
        ("[time=3]".into(), vec![1, 2, 3])
    );
    assert_eq!(outputs.2.shape().to_string(), "[time=3]");
    let (state, ()) = x.scan("time", (), |(), _| Ok(((), ())))?;
    assert_eq!(state, ());
    Ok(())
}

#[test]
fn no_steps() -> Result<()> {
    let x = Tensor::zeros([("N", 2), ("time", 0), ("in", 3)])?;
    let h = Tensor::ones([("N", 2), ("hidden", 4)])?.requiring_grad()?;
    let mut calls = 0;
    let draw = |seed: u64, x: &Tensor, calls: &mut i32| {
        Generator::from_seed(seed).scope(|| {
            let made = x.scan("time", h.clone(), |h, x| {
                *calls += 1;
                assert_eq!(x.shape().to_string(), "[N=2, in=3]");
                Ok((h.clone(), (h.add(Tensor::rand(())?)?, x.to(DType::I64)?)))
            });
            made.map(|made| (made, Tensor::rand(3).unwrap()))
        })
    };
    let ((last, (ys, whole)), next) = draw(5, &x, &mut calls)?;
    assert_eq!(calls, 1);
    assert!(last.equal(&h)? && last.requires_grad());
    assert_eq!(ys.shape().to_string(), "[N=2, time=0, hidden=4]");
    assert_eq!((whole.shape().to_string(), whole.dtype()), ("[N=2, time=0, in=3]".into(), DType::I64));
    assert!(
        next.equal(&Generator::from_seed(5).scope(|| Tensor::rand(3))?)?,
        "the draws of the program moved"
    );
    let folded = x.fold("time", h.clone(), |_, _| panic!("there is no step"))?;
    assert!(folded.equal(&h)?);
    Ok(())
}

#[test]
fn what_scans_refuse() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("time", 3)])?;
    let h = Tensor::zeros([("N", 2), ("hidden", 2)])?;
    let kind = |kind: ErrorKind, text: &str, made: Result<Tensor>| {
        let error = made.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(text), "{text:?} is not in: {error}");
        assert!(
            error.location().file().ends_with("scan.rs") && error.location().file().starts_with("tests"),
            "{error}"
        );
    };
    use ErrorKind::{DimRange, DuplicateName, NameMismatch, NameNotFound, Shape, Value};
    kind(NameMismatch, "state.align_to([\"N\", \"hidden\"])", x.fold("time", h.clone(), |h, _| h.t()));
    kind(
        NameMismatch,
        "init.refine_names([\"N\", \"hidden\"])",
        x.fold("time", h.rename(None)?, |h, _| h.rename(["N", "hidden"])),
    );
    kind(Shape, "step 0 gives [N=2, hidden=4]", x.fold("time", h.clone(), |h, _| Tensor::cat([&h, &h], 1)));
    kind(ErrorKind::DType, "state.to(DType::F32)", x.fold("time", h.clone(), |h, _| h.to(DType::F64)));
    let mut sizes = 1..;
    let grows = x.scan("time", (), |(), x| Ok(((), x.unsqueeze(0)?.expand([sizes.next().unwrap(), -1])?)));
    kind(Shape, "step 1 gives [?=2, N=2], and it was [?=1, N=2] at the first", grows.map(|(_, y)| y));
    let named = x.scan("time", (), |(), x| Ok(((), x.rename(["time"])?)));
    kind(DuplicateName, "already has the dim 'time'", named.map(|(_, y)| y));
    let list = x.fold("time", vec![h.clone()], |mut state, _| {
        state.push(h.clone());
        Ok(state)
    });
    kind(Value, "gives 2 tensors as its state, and it had 1", list.map(|mut state| state.remove(0)));
    kind(NameNotFound, "'times'", x.fold("times", h.clone(), |h, _| Ok(h)));
    kind(DimRange, "", x.fold(2, h.clone(), |h, _| Ok(h)));
    kind(Shape, "0-d", Tensor::new(1.0)?.fold(0, h.clone(), |h, _| Ok(h)));
    let other = Tensor::ones(("time", 4))?;
    kind(Shape, "3 and 4 steps along", fold(&(x.clone(), other), "time", h.clone(), |h, _| Ok(h)));
    kind(Value, "no tensor", fold(&Vec::<Tensor>::new(), "time", h.clone(), |h, _| Ok(h)));
    let error = x.fold("time", h.clone(), |h, x| h.add(&x)).unwrap_err();
    assert_eq!(error.op(), "add", "the error of a step is its own: {error}");
    Ok(())
}

/// With checkpoints in the steps, backward computes them again and gives the same gradients.
#[test]
fn steps_with_checkpoints() -> Result<()> {
    let x = drawn(6, &[("time", 5), ("N", 2)])?.requiring_grad()?;
    let h = drawn(7, &[("N", 2)])?;
    let plain = x.fold("time", h.clone(), |h, x| h.mul(&x).sin())?;
    plain.sum(..)?.backward()?;
    let expected = x.grad().unwrap();
    x.zero_grad();
    let again = x.fold("time", h, |h, x| checkpoint(|t| t[0].mul(&t[1]).sin(), &[&h, &x]))?;
    again.sum(..)?.backward()?;
    assert!(again.equal(&plain)? && x.grad().unwrap().equal(&expected)?);
    Ok(())
}

/// Without steps, a call of the step tells the shapes of outputs, and leaves no trace in buffers.
#[test]
fn no_steps_change_no_buffer() -> Result<()> {
    let mean = namegrad::nn::Buffer::new(Tensor::zeros(("C", 2))?);
    let track = |x: &Tensor| -> Result<Tensor> {
        mean.set(mean.tensor().add(x)?.add(1.0)?)?;
        Ok(mean.tensor())
    };
    let run = |steps: usize| {
        let x = Tensor::ones([("time", steps), ("C", 2)])?;
        x.scan("time", (), |(), x| Ok(((), track(&x)?)))
    };
    assert_eq!(run(0)?.1.shape().to_string(), "[time=0, C=2]");
    assert_eq!(mean.tensor().to_vec::<f32>()?, [0.0; 2]);
    run(1)?;
    assert_eq!(mean.tensor().to_vec::<f32>()?, [2.0; 2]);
    Ok(())
}

/// The gradient of a long scan takes time in proportion to its length.
#[test]
fn a_long_scan() -> Result<()> {
    let x = Tensor::ones([("time", 20_000)])?.requiring_grad()?;
    let (last, all) = x.scan("time", Tensor::new(0.0)?, |sum, x| {
        let sum = sum.add(&x)?;
        Ok((sum.clone(), sum))
    })?;
    assert_eq!((last.item::<f64>()?, all.sizes()), (20_000.0, &[20_000][..]));
    last.backward()?;
    assert_eq!(x.grad().unwrap().sum(..)?.item::<f64>()?, 20_000.0);
    Ok(())
}
