//! The derivative of recurrent layers.

use crate::chain::*;
use crate::rules::kernels;
use crate::tensor::grad_with;
use crate::{BackwardOptions, Tensor, enable_grad, is_grad_enabled};
use namegrad_core::ops::recurrent::{RecurrentInputs, recurrent_backward};
use namegrad_core::{Cell, NamedTensor, Result};
use namegrad_macros::derivatives;

derivatives! { recurrent; |g, cx|
    recurrent(x, hx, w_ih, w_hh, c, b_ih, b_hh, w_hr, lengths; cell, reverse) -> (y, hn, cn; gates, inner) {
        (x hx w_ih w_hh c b_ih b_hh w_hr): [x hx w_ih w_hh c b_ih b_hh w_hr lengths y gates inner; cell reverse]
            gradients(
                [g_y, g_hn, g_cn], [Some(x), Some(hx), Some(w_ih), Some(w_hh), c, b_ih, b_hh, w_hr], lengths,
                cell, reverse, wants
            )?
            => fused(
                [g_y, g_hn, g_cn], [Some(x), Some(hx), Some(w_ih), Some(w_hh), c, b_ih, b_hh, w_hr], lengths,
                [y, gates, inner], cell, reverse, wants
            )?,
        lengths: refused
    }
}

type LayerInputs<'a> = [Option<&'a Tensor>; 8];

fn fused(
    gs: [&Tensor; 3],
    inputs: LayerInputs<'_>,
    lengths: Option<&Tensor>,
    kept: [&Tensor; 3],
    cell: Cell,
    reverse: bool,
    wants: [bool; 8],
) -> Result<[Option<Tensor>; 8]> {
    let [Some(x), Some(hx), Some(w_ih), Some(w_hh), c, b_ih, b_hh, w_hr] = inputs else {
        unreachable!("the first four are required")
    };
    let inputs = RecurrentInputs {
        x: x.value(),
        hx: hx.value(),
        w_ih: w_ih.value(),
        w_hh: w_hh.value(),
        cx: c.map(Tensor::value),
        b_ih: b_ih.map(Tensor::value),
        b_hh: b_hh.map(Tensor::value),
        w_hr: w_hr.map(Tensor::value),
        lengths: lengths.map(Tensor::value),
    };
    let mut found = recurrent_backward(values(gs), &inputs, values(kept), cell, reverse)?;
    for (found, wants) in found.iter_mut().zip(wants) {
        if !wants {
            *found = None;
        }
    }
    Ok(kernels(found))
}

fn values([a, b, c]: [&Tensor; 3]) -> [&NamedTensor; 3] {
    [a.value(), b.value(), c.value()]
}

/// The gradients of the same steps made of differentiable ops. Like the kernel, it computes half types in
/// `f32`.
fn gradients(
    gs: [&Tensor; 3],
    inputs: LayerInputs<'_>,
    lengths: Option<&Tensor>,
    cell: Cell,
    reverse: bool,
    wants: [bool; 8],
) -> Result<[Option<Tensor>; 8]> {
    // Views, since one tensor may be several inputs, such as the first state and the first cells.
    let mut own = [const { None }; 8];
    for (at, input) in inputs.into_iter().enumerate() {
        if let Some(input) = input {
            let view = input.to(input.dtype().compute()).view(input.sizes())?;
            own[at] = Some(if wants[at] && !view.requires_grad() { view.leaf() } else { view });
        }
    }
    let outputs = enable_grad(|| unrolled(&own, lengths, cell, reverse))?;
    let mut cast = Vec::with_capacity(gs.len());
    for g in gs {
        cast.push(g.to(g.dtype().compute())?);
    }
    let (mut of, mut gs) = (Vec::new(), Vec::new());
    for (output, g) in outputs.iter().zip(&cast) {
        if output.requires_grad() {
            of.push(output);
            gs.push(Some(g));
        }
    }
    let mut wanted = Vec::new();
    for at in 0..8 {
        wanted.extend(own[at].as_ref().filter(|_| wants[at]));
    }
    let options = BackwardOptions::new().create_graph(is_grad_enabled()).allow_unused(true);
    let mut found = grad_with(&of, &wanted, &gs, options)?.into_iter();
    let mut gradients = [const { None }; 8];
    for at in 0..8 {
        if let Some(own) = own[at].as_ref().filter(|_| wants[at]) {
            gradients[at] = Some(match found.next().flatten() {
                Some(gradient) => gradient,
                None => own.zeros_like()?, // over no steps, a parameter is not used
            });
        }
    }
    Ok(gradients)
}

/// The results of the op.
fn unrolled(
    inputs: &[Option<Tensor>; 8],
    lengths: Option<&Tensor>,
    cell: Cell,
    reverse: bool,
) -> Result<[Tensor; 3]> {
    let [Some(x), Some(hx), Some(w_ih), Some(w_hh), cx, b_ih, b_hh, w_hr] = inputs else {
        unreachable!("the first four are required")
    };
    let (steps, gates) = (x.sizes()[0], cell.gates() as i64);
    let mut h = hx.clone();
    let mut c = match cx {
        Some(cx) => cx.clone(),
        None => Tensor::constant(NamedTensor::zeros([0])?.to(x.dtype())?),
    };
    let mut ys = vec![None; steps];
    let affine = |x: &Tensor, weight: &Tensor, bias: &Option<Tensor>| {
        let product = x.matmul(weight.t()?)?;
        match bias {
            Some(bias) => product.add(bias),
            None => Ok(product),
        }
    };
    for step in 0..steps {
        let t = if reverse { steps - 1 - step } else { step };
        let (from_input, from_state) = (affine(&x.select(0, t)?, w_ih, b_ih)?, affine(&h, w_hh, b_hh)?);
        let (mut new, mut cells) = match cell {
            Cell::Tanh => (from_input.add(&from_state).tanh()?, c.clone()),
            Cell::Relu => (from_input.add(&from_state).relu()?, c.clone()),
            Cell::Lstm => {
                let all = from_input.add(&from_state).chunk(gates, 1)?;
                let (i, f, g, o) = (all[0].sigmoid()?, all[1].sigmoid()?, all[2].tanh()?, all[3].sigmoid()?);
                let cells = f.mul(&c).add(i.mul(&g)?)?;
                (o.mul(cells.tanh()?)?, cells)
            }
            Cell::Gru => {
                let (a, b) = (from_input.chunk(gates, 1)?, from_state.chunk(gates, 1)?);
                let (r, z) = (a[0].add(&b[0]).sigmoid()?, a[1].add(&b[1]).sigmoid()?);
                let n = a[2].add(r.mul(&b[2])?).tanh()?;
                (h.sub(&n).mul(&z).add(&n)?, c.clone())
            }
        };
        if let Some(w_hr) = w_hr {
            new = new.matmul(w_hr.t()?)?;
        }
        let mut y = new.clone();
        if let Some(lengths) = lengths {
            let is_over = lengths.le(t as i64).unsqueeze(1)?;
            y = y.masked_fill(&is_over, 0.0)?;
            new = is_over.choose(&h, &new)?;
            if cell == Cell::Lstm {
                cells = is_over.choose(&c, &cells)?;
            }
        }
        ys[t] = Some(y);
        (h, c) = (new, cells);
    }
    let ys: Vec<Tensor> = crate::list(ys.into_iter().flatten());
    let y = match ys.is_empty() {
        true => Tensor::constant(NamedTensor::zeros([0, h.sizes()[0], h.sizes()[1]])?.to(x.dtype())?),
        false => Tensor::stack(&ys, 0)?,
    };
    Ok([y, h, c])
}
