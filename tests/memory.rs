//! What a program leaves behind. One test alone in its process: the counts are those of all threads.

use namegrad::core::memory;
use namegrad::prelude::*;

#[test]
fn nothing_stays_behind() -> Result<()> {
    forwards_without_backward()?;
    graphs_that_hold_themselves()?;
    training()
}

/// Forwards with tracked operands that never see a backward pass leave nothing.
fn forwards_without_backward() -> Result<()> {
    let x = Tensor::randn([4, 4])?.requires_grad_(true)?;
    let before = memory::stats();
    for _ in 0..100_000 {
        let y = x.mul(&x)?.tanh()?;
        drop(y);
    }
    let after = memory::stats();
    assert_eq!(after.live_blocks, before.live_blocks);
    assert_eq!(after.live_bytes, before.live_bytes);
    Ok(())
}

/// Ops that keep their own output, gradients with a graph, hooks and failed walks are freed with the last handle.
fn graphs_that_hold_themselves() -> Result<()> {
    use namegrad::autograd::BackwardOptions;
    let before = memory::stats().live_blocks;
    for _ in 0..100 {
        let x = Tensor::randn([8])?.requires_grad_(true)?;
        let y = x.exp()?.softmax(0)?.tanh()?;
        y.register_hook(|_| Ok(None))?;
        let create = BackwardOptions { create_graph: true, ..Default::default() };
        let first = namegrad::autograd::grad(&[&y.sum(..)?], &[&x], &[], create)?;
        assert!(y.sum("nothing").is_err() && y.backward().is_err());
        drop((first, y));
    }
    assert_eq!(memory::stats().live_blocks, before);
    Ok(())
}

/// A model written by hand: 10,000 steps in flat memory, and it learns.
fn training() -> Result<()> {
    manual_seed(0);
    let x = Tensor::randn([("batch", 16), ("in", 4)])?;
    let target = x.sum("in")?.tanh()?;
    let mut weights = [
        Tensor::randn([("in", 4), ("hidden", 8)])?.mul(0.5)?.detach().requires_grad_(true)?,
        Tensor::randn([("hidden", 8)])?.mul(0.5)?.detach().requires_grad_(true)?,
    ];
    let (mut flat, mut losses) = (None, Vec::new());
    for step in 0..10_000 {
        let hidden = x.matmul(&weights[0])?.tanh()?; // [batch, hidden]
        let loss = hidden.matmul(&weights[1])?.sub(&target)?.square()?.mean(..)?;
        losses.push(loss.item()?.to_f64());
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
