//! The derivative of recurrent layers.

use crate::chain::*;
use crate::rules::kernel;
use crate::tensor::grad_with;
use crate::{BackwardOptions, Tensor};
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

type Inputs<'a> = [Option<&'a Tensor>; 8];

fn fused(
    gs: [&Tensor; 3],
    inputs: Inputs<'_>,
    lengths: Option<&Tensor>,
    kept: [&Tensor; 3],
    cell: Cell,
    reverse: bool,
    wants: [bool; 8],
) -> Result<[Option<Tensor>; 8]> {
    fn value(x: Option<&Tensor>) -> Option<&NamedTensor> {
        x.map(Tensor::value)
    }
    let [Some(x), Some(hx), Some(w_ih), Some(w_hh), cx, b_ih, b_hh, w_hr] = inputs.map(value) else {
        unreachable!("the first four are required")
    };
    let inputs = RecurrentInputs { x, hx, w_ih, w_hh, cx, b_ih, b_hh, w_hr, lengths: value(lengths) };
    let mut found =
        recurrent_backward(gs.map(Tensor::value), &inputs, kept.map(Tensor::value), cell, reverse)?;
    let mut at = 0..;
    Ok(wants.map(|wants| at.next().and_then(|at| found[at].take()).filter(|_| wants).map(kernel)))
}

/// The gradients of the same steps made of differentiable ops. Like the kernel, it computes half types in
/// `f32`.
fn gradients(
    gs: [&Tensor; 3],
    inputs: Inputs<'_>,
    lengths: Option<&Tensor>,
    cell: Cell,
    reverse: bool,
    wants: [bool; 8],
) -> Result<[Option<Tensor>; 8]> {
    // Views, since one tensor may be several inputs, such as the first state and the first cells.
    let mut own = inputs.map(|_| None);
    for (own, input) in own.iter_mut().zip(inputs) {
        *own = match input {
            Some(input) => Some(input.to(input.dtype().compute()).view(input.sizes())?),
            None => None,
        };
    }
    let outputs = unrolled(&own, lengths, cell, reverse)?;
    let wanted: Vec<&Tensor> =
        own.iter().zip(wants).filter_map(|(own, wants)| own.as_ref().filter(|_| wants)).collect();
    let gs = gs.map(|g| g.to(g.dtype().compute()));
    let gs = [gs[0].clone()?, gs[1].clone()?, gs[2].clone()?];
    let given: Vec<(&Tensor, &Tensor)> =
        outputs.iter().zip(&gs).filter(|(output, _)| output.requires_grad()).collect();
    let [of, g]: [Vec<&Tensor>; 2] =
        [given.iter().map(|pair| pair.0).collect(), given.iter().map(|pair| pair.1).collect()];
    let g: Vec<Option<&Tensor>> = g.into_iter().map(Some).collect();
    let options = BackwardOptions { create_graph: true, allow_unused: true, ..BackwardOptions::default() };
    let found = grad_with(&of, &wanted, &g, options)?;
    let mut gradients = [const { None }; 8];
    let wanted = gradients.iter_mut().zip(&own).zip(wants).filter(|(_, wants)| *wants);
    for (((gradient, own), _), found) in wanted.zip(found) {
        *gradient = match (found, own) {
            // Over no steps, a parameter is not used.
            (None, Some(own)) => Some(own.zeros_like()?),
            (found, _) => found,
        };
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
    let ys: Vec<Tensor> = ys.into_iter().flatten().collect();
    let y = match ys.is_empty() {
        true => Tensor::constant(NamedTensor::zeros([0, h.sizes()[0], h.sizes()[1]])?.to(x.dtype())?),
        false => Tensor::stack(&ys, 0)?,
    };
    Ok([y, h, c])
}
