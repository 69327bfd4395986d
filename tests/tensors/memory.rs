//! Memory that a program leaves behind. The test has a process of its own, because the counts are for all
//! threads.

use namegrad::autograd::{BackwardOptions, Cx, Kept, Op, grad_with};
use namegrad::core::memory;
use namegrad::prelude::*;
use std::sync::Arc;

#[test]
fn in_a_process_of_its_own() {
    namegrad_tests::run_alone("memory::");
}

#[test]
#[ignore = "run by `in_a_process_of_its_own`"]
fn nothing_stays_behind() -> Result<()> {
    forwards_without_backward()?;
    graphs_that_hold_themselves()?;
    outputs_that_their_op_keeps()?;
    missing_gradients()?;
    gradients_that_are_on_the_tape()?;
    what_ops_keep()?;
    what_is_kept_for_one_input_alone()?;
    backward_frees_as_it_passes()?;
    differences_of_pairs()?;
    operators_on_owned_tensors()?;
    training()
}

/// An op that saves a token, which tells the test whether its record on the tape is alive.
fn marked(x: &Tensor, token: &Arc<()>) -> Tensor {
    let token = token.clone();
    let gradient = move |g: &Tensor, _: &Cx<'_>| {
        let _ = &token;
        Ok(g.clone())
    };
    Op::new("marked", x.value().clone()).input(x, gradient).output()
}

/// Forward passes without a backward pass leave nothing behind.
fn forwards_without_backward() -> Result<()> {
    let x = Tensor::randn([4, 4])?.requiring_grad()?;
    let (before, token) = (memory::stats(), Arc::new(()));
    for _ in 0..100_000 {
        let y = marked(&x.mul(&x)?, &token).tanh()?;
        drop(y);
    }
    let after = memory::stats();
    assert_eq!(after.live_blocks, before.live_blocks);
    assert_eq!(after.live_bytes, before.live_bytes);
    assert_eq!(Arc::strong_count(&token), 1, "no place on the tape is left that a later walk could meet");
    Ok(())
}

/// Tensors have `SIDE` by `SIDE` numbers.
const SIDE: usize = 64;

/// The number of tensors with the size of `x` that are saved for the backward pass of `op`. Two operands
/// require gradients, the third does not. Everything but the sum of the result is dropped.
fn kept(op: impl Fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>) -> Result<f64> {
    let leaf = Tensor::ones([SIDE, SIDE])?.requiring_grad()?;
    let live = |op: &dyn Fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>| -> Result<usize> {
        let before = memory::stats().live_bytes;
        let sum = op(&leaf.neg()?, &leaf.neg()?, &leaf.detach().neg()?)?.sum(..)?;
        let bytes = memory::stats().live_bytes - before;
        assert!(sum.requires_grad());
        Ok(bytes)
    };
    let before = memory::stats().live_bytes;
    let one = Tensor::ones([SIDE, SIDE])?; // including the header of a block
    let block = memory::stats().live_bytes - before;
    drop(one);
    let bytes = live(&op)? - live(&|x, _, _| Ok(x.clone()))?;
    Ok(bytes as f64 / block as f64)
}

/// Distances of pairs and losses of few labels do not hold the differences of all pairs.
fn differences_of_pairs() -> Result<()> {
    let peak = |f: &dyn Fn() -> Result<Tensor>| -> Result<usize> {
        let before = memory::stats().live_bytes;
        memory::reset_peak();
        f()?.sum(..)?.backward()?;
        Ok(memory::stats().peak_bytes - before)
    };
    let x = Tensor::randn([200, 64])?.requiring_grad()?; // 5 MB of differences
    assert!(peak(&|| F::pdist(&x, 1))? < 2_500_000);
    let x = Tensor::randn([16, 500])?.requiring_grad()?; // 16 MB for each label beside each class
    let labels = Tensor::full([16, 500], -1)?;
    let target = Tensor::cat([&Tensor::zeros([16, 1])?.to(DType::I64)?, &labels.narrow(1, 0, 499)?], 1)?;
    assert!(peak(&|| F::multilabel_margin_loss(&x, &target, 1))? < 2_500_000);
    Ok(())
}

/// The bytes that derivatives save are those of the tensors in their brackets.
fn what_ops_keep() -> Result<()> {
    type Ternary = fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>;
    let expected: [(&str, usize, Ternary); 38] = [
        ("nothing: add", 0, |x, w, _| x.add(w)),
        ("nothing: sub", 0, |x, w, _| x.sub(w)),
        ("nothing: neg", 0, |x, _, _| x.neg()),
        ("nothing: floor", 0, |x, _, _| x.floor()),
        ("nothing: sum", 0, |x, _, _| x.sum(0)),
        ("nothing: mean", 0, |x, _, _| x.mean(0)),
        ("nothing: t", 0, |x, _, _| x.t()),
        ("nothing: reshape", 0, |x, _, _| x.reshape([SIDE * SIDE])),
        ("nothing: narrow", 0, |x, _, _| x.narrow(0, 0, 2)),
        ("nothing: cat", 0, |x, w, _| Tensor::cat(&[x, w], 0)),
        ("nothing: cumsum", 0, |x, _, _| x.cumsum(0)),
        ("the result: exp", 1, |x, _, _| x.exp()),
        ("the result: sqrt", 1, |x, _, _| x.sqrt()),
        ("the result: relu", 1, |x, _, _| x.relu()),
        ("the result: sigmoid", 1, |x, _, _| x.sigmoid()),
        ("the result: tanh", 1, |x, _, _| x.tanh()),
        ("the result: softmax", 1, |x, _, _| x.softmax(0)),
        ("the result: log_softmax", 1, |x, _, _| x.log_softmax(0)),
        ("the result once: exp of a view", 1, |x, _, _| x.t()?.exp()),
        ("the result of one, the input of the next", 1, |x, _, _| x.exp()?.square()),
        ("the input: log", 1, |x, _, _| x.log()),
        ("the input: sin", 1, |x, _, _| x.sin()),
        ("the input: gelu", 1, |x, _, _| x.gelu()),
        ("the input: square", 1, |x, _, _| x.square()),
        ("one operand for both: mul of itself", 1, |x, _, _| x.mul(x)),
        ("both: mul", 2, |x, w, _| x.mul(w)),
        ("the other: mul by a constant", 1, |x, _, c| x.mul(c)),
        ("the other: mul of a constant", 1, |x, _, c| c.mul(x)),
        ("the divisor: div by a constant", 1, |x, _, c| x.div(c)),
        ("divisor and result: div", 2, |x, w, _| x.div(w)),
        ("both: mm", 2, |x, w, _| x.mm(w)),
        ("the other: mm with a constant", 1, |x, _, c| x.mm(c)),
        ("both: matmul", 2, |x, w, _| x.matmul(w)),
        ("the other: matmul with a constant", 1, |x, _, c| x.matmul(c)),
        ("the other: matmul of a constant", 1, |x, _, c| c.matmul(x)),
        ("the factors: addmm", 2, |x, w, _| x.addmm(x, w)),
        ("the other: bias and product with a constant", 1, |x, w, c| w.addmm(x, c)),
        ("nothing outside of the tape", 0, |x, w, _| x.add(&no_grad(|| x.mul(w))?)),
    ];
    for (what, tensors, op) in expected {
        assert_eq!(kept(op)?, tensors as f64, "{what}");
    }
    Ok(())
}

/// A mask takes one byte per element, and with a frozen weight, the input of its layer is not saved.
fn what_is_kept_for_one_input_alone() -> Result<()> {
    let mask = Tensor::ones([SIDE, SIDE])?.gt(0)?;
    let of_mask = kept(|x, _, _| x.masked_fill(&mask.logical_not()?, 0.0))?;
    assert!((0.25..0.3).contains(&of_mask), "{of_mask}");
    let layer = Linear::new(SIDE, SIDE)?;
    let learning = kept(|x, _, _| layer.forward(x))?;
    assert!((1.0..1.05).contains(&learning), "{learning}");
    layer.set_requires_grad(false)?;
    let frozen = kept(|x, _, _| layer.forward(x))?;
    assert!(frozen < 0.05, "{frozen}");
    Ok(())
}

/// A deep stack of layers needs no more memory in its backward pass than in its forward pass, except for the
/// gradient of one layer.
fn backward_frees_as_it_passes() -> Result<()> {
    const DEPTH: usize = 16;
    let (batch, width) = (2048, 32);
    let layers = (0..DEPTH).map(|_| Linear::new(width, width)).collect::<Result<Vec<_>>>()?;
    let x = Tensor::randn([batch, width])?;
    let layer_bytes = 4 * batch * width;
    let before = memory::stats().live_bytes;
    memory::reset_peak();
    let mut y = x.clone();
    for layer in &layers {
        y = layer.forward(&y)?.tanh()?;
    }
    let loss = y.sum(..)?;
    drop(y);
    let forward = memory::stats().peak_bytes - before;
    assert!(forward >= DEPTH * layer_bytes, "every layer keeps its result");
    memory::reset_peak();
    loss.backward()?;
    let backward = memory::stats().peak_bytes - before;
    // The peak is accurate to 64 KiB, a fourth of a layer.
    assert!(
        backward <= forward + layer_bytes + layer_bytes / 4,
        "{backward} after {forward}, of {layer_bytes}"
    );
    let left = memory::stats().live_bytes - before;
    assert!(left < layer_bytes, "the gradients of the weights alone are left, and not {left} bytes");
    Ok(())
}

/// A chain of operators on an owned tensor takes as little memory as its in-place form. A tensor that is
/// shared or recorded keeps its value.
fn operators_on_owned_tensors() -> Result<()> {
    const N: usize = 1 << 20;
    let image = || Tensor::ones([("N", N / 4), ("C", 4)]);
    let (mean, std) = (Tensor::full([("C", 4)], 0.5)?, Tensor::full([("C", 4)], 0.25)?);
    let peak = |f: &dyn Fn(Tensor) -> Result<Tensor>| -> Result<(usize, Vec<f32>)> {
        let t = image()?;
        let before = memory::stats().live_bytes;
        memory::reset_peak();
        let y = f(t)?;
        Ok((memory::stats().peak_bytes - before, y.narrow("N", 0, 2)?.to_vec()?))
    };
    let in_place = |mut t: Tensor| {
        t.div_(255.0)?.sub_(&mean)?.div_(&std)?;
        Ok(t)
    };
    let (least, want) = peak(&in_place)?;
    let (operators, got) = peak(&|t| Ok((t / 255.0 - &mean) / &std))?;
    assert_eq!(got, want);
    assert!(operators <= least + (64 << 10) && operators < N, "{operators} bytes, {least} in place");

    let t = image()?;
    let held = t.clone();
    assert_eq!((t * 3.0 + 1.0).narrow("N", 0, 1)?.to_vec::<f32>()?, [4.0; 4]);
    assert_eq!((-held.clone()).narrow("N", 0, 1)?.to_vec::<f32>()?, [-1.0; 4]);
    assert_eq!(held.narrow("N", 0, 1)?.to_vec::<f32>()?, [1.0; 4]);
    Ok(())
}

/// Ops that save their own output, gradients with a graph, hooks and failed backward passes are freed with
/// the last handle.
fn graphs_that_hold_themselves() -> Result<()> {
    let before = memory::stats().live_blocks;
    for _ in 0..100 {
        let x = Tensor::randn([8])?.requiring_grad()?;
        let y = x.exp()?.softmax(0)?.tanh()?;
        y.register_hook(|_| Ok(None))?;
        let create = BackwardOptions { create_graph: true, ..Default::default() };
        let first = grad_with(&[&y.sum(..)?], &[&x], &[], create)?;
        assert!(y.sum("nothing").is_err() && y.backward().is_err());
        drop((first, y));
    }
    assert_eq!(memory::stats().live_blocks, before);
    Ok(())
}

/// `exp(x)` and `sin(x)`; the derivative saves the first output and the input.
fn exp_and_sin(x: &Tensor) -> Result<Vec<Tensor>> {
    let values = vec![x.value().exp()?, x.value().sin()?];
    let (exp, x_kept) = (Kept::output_at(0, &values[0]), Kept::input(x));
    Ok(Op::with_outputs("exp_and_sin", values).inputs(&[Some(x)], move |_, cx| {
        let of_exp = cx.output_gradient(0)?.mul(exp.get(cx))?;
        Ok(vec![Some(of_exp.add(cx.output_gradient(1)?.mul(x_kept.get(cx).cos()?)?)?)])
    }))
}

/// An op with several outputs saves their values and not their records on the tape, for any order of
/// differentiation.
fn outputs_that_their_op_keeps() -> Result<()> {
    let before = memory::stats().live_blocks;
    let create = BackwardOptions { create_graph: true, ..Default::default() };
    for used in [&[0][..], &[1], &[0, 1]] {
        let x = Tensor::randn([8])?.requiring_grad()?;
        drop(exp_and_sin(&x)?);
        let mut gradient = {
            let outputs = exp_and_sin(&x)?; // the first is freed if it is not used
            let mut loss = x.sum(..)?;
            for number in used {
                loss = loss.add(outputs[*number].sum(..)?)?;
            }
            loss
        };
        for _ in 0..3 {
            gradient = grad_with(&[&gradient], &[&x], &[], create)?.remove(0).unwrap().sum(..)?;
        }
        drop(gradient);
    }
    assert_eq!(memory::stats().live_blocks, before);
    Ok(())
}

/// The gradient of an unused output is zero and takes almost no memory.
fn missing_gradients() -> Result<()> {
    const LARGE: usize = 1 << 20;
    let x = Tensor::ones([2])?.requiring_grad()?;
    let large = Tensor::ones([1])?.expand([LARGE])?.into_value();
    let outputs = Op::with_outputs("two", vec![x.value().clone(), large]);
    let outputs = outputs.inputs(&[Some(&x)], |gs, cx| {
        let missing = cx.output_gradient(1)?;
        assert_eq!(missing.sizes(), [LARGE]);
        Ok(vec![gs[0].clone()])
    });
    let loss = outputs[0].sum(..)?;
    memory::reset_peak();
    let before = memory::stats().peak_bytes;
    loss.backward()?;
    assert!(memory::stats().peak_bytes - before < LARGE, "far from 4 bytes for each element");
    Ok(())
}

/// A derivative or a hook can return a tensor that is on the tape, such as a saved input.
fn gradients_that_are_on_the_tape() -> Result<()> {
    let pass = || -> Result<()> {
        let x = Tensor::ones([1000])?.requiring_grad()?;
        let kept = Kept::input(&x);
        let y = Op::new("kept", x.value().clone()).input(&x, move |_, cx| Ok(kept.get(cx))).output();
        y.sum(..)?.backward()?;
        assert!(!x.grad().unwrap().requires_grad());
        x.register_hook(|_| Ok(Some(Tensor::ones([1000])?.requiring_grad()?.mul(2.0)?)))?;
        x.zero_grad();
        x.backward_with(Some(&x), BackwardOptions::default())?;
        assert!(!x.grad().unwrap().requires_grad());
        Ok(())
    };
    pass()?;
    let before = memory::stats().live_blocks;
    (0..10).try_for_each(|_| pass())?;
    assert_eq!(memory::stats().live_blocks, before);
    Ok(())
}

/// A model written by hand: 10,000 steps in flat memory, and it learns.
fn training() -> Result<()> {
    manual_seed(0);
    let x = Tensor::randn([("batch", 16), ("in", 4)])?;
    let target = x.sum("in")?.tanh()?;
    let mut weights = [
        Tensor::randn([("in", 4), ("hidden", 8)])?.mul(0.5)?.detach().requiring_grad()?,
        Tensor::randn([("hidden", 8)])?.mul(0.5)?.detach().requiring_grad()?,
    ];
    let (mut flat, mut losses) = (None, Vec::new());
    for step in 0..10_000 {
        let hidden = x.matmul(&weights[0])?.tanh()?; // [batch, hidden]
        let loss = hidden.matmul(&weights[1])?.sub(&target)?.square()?.mean(..)?;
        losses.push(loss.item::<f64>()?);
        loss.backward()?;
        for weight in &mut weights {
            let grad = weight.grad().expect("both took part");
            weight.update(|value| value.sub_(&grad.value().mul(0.05)?).map(drop))?;
            weight.zero_grad();
        }
        drop((loss, hidden));
        if step >= 10 {
            let live = memory::stats().live_blocks;
            assert_eq!(live, *flat.get_or_insert(live), "step {step}");
        }
    }
    assert!(losses[9_999] < losses[0] / 10.0, "from {} to {}", losses[0], losses[9_999]);
    Ok(())
}
