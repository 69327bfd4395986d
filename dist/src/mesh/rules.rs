//! How each op runs on tensors in parts. Most ops say which of their dims go together ([`Labels`]); views are
//! in `views.rs`, ops that mix the elements of a split dim and need not gather them in `mixing.rs`. All others
//! run on the wholes.

use super::labels::{Join, Label, Labels, Slots, WHOLE};
use super::value::{Axes, Parted, Value, parted};
use super::views;
use super::{drawn, mixing};
use crate::backend::Reduction;
use crate::traffic;
use namegrad::autograd::elsewhere::Call;
use namegrad::autograd::observe;
use namegrad::core::args::{Extents, Over, Padding, Paired, Positions, Windows};
use namegrad::core::{Name, NamedTensor, Names, Scalar, options};
use namegrad::prelude::*;
use std::any::Any;
use std::sync::Arc;

/// The outputs of an op in parts.
pub(crate) fn outputs(axes: &Arc<Axes>, call: &Call<'_>) -> Result<Vec<Value>> {
    let _exchanges = traffic::in_op(call.op);
    let mut slots = Slots::new(axes, call);
    if slots.values().iter().any(|value| value.is_term) {
        let is_linear = is_linear(&mut slots);
        for x in call.inputs.iter().flat_map(|input| input.tensors()).filter(|_| !is_linear) {
            parted(x.value()).map_or(Ok(()), Parted::sum)?;
        }
        if is_linear {
            slots.values().iter_mut().for_each(|value| value.is_term = false);
            let made = outputs_of(axes, call, slots)?;
            return Ok(made.into_iter().map(|value| Value { is_term: true, ..value }).collect());
        }
        slots = Slots::new(axes, call);
    }
    outputs_of(axes, call, slots)
}

/// Whether the op of terms is a term of the op of the sum, so that the sum can wait.
fn is_linear(slots: &mut Slots<'_>) -> bool {
    let op = slots.call.op;
    let values = slots.values();
    match &values[..] {
        [x] => match op {
            "to" => x.part.dtype().is_floating_point(),
            "contiguous" | "clone" => true,
            _ => views::is_view(op),
        },
        [x, y] => {
            op == "add" && x.is_term && y.is_term && x.splits == y.splits && x.part.sizes() == y.part.sizes()
        }
        _ => false,
    }
}

/// [`outputs`] of inputs that are no terms.
fn outputs_of<'a>(axes: &'a Arc<Axes>, call: &'a Call<'a>, mut slots: Slots<'a>) -> Result<Vec<Value>> {
    let mut is_split = false;
    for value in slots.values() {
        for axis in 0..axes.all.len() {
            if value.splits[axis].as_ref().is_some_and(|split| split.is_stored) {
                value.gather(axes, axis)?;
            }
        }
        is_split |= !value.is_whole();
    }
    if !is_split {
        return slots.run_whole();
    }
    let sizes = slots.sizes();
    let args = Args(call.args());
    if call.by_element {
        return slots.by_labels(&by_element(&sizes));
    }
    match call.op {
        "to" | "contiguous" | "clone" => slots.by_labels(&by_element(&sizes)),
        "sum" | "mean" | "nansum" | "amax" | "amin" | "prod" | "all" | "any" | "count_nonzero"
        | "logsumexp" | "norm" | "vector_norm" | "aminmax" | "var" | "std" | "var_mean" | "std_mean"
        | "nanmean" | "max" | "min" | "median" | "nanmedian" | "mode" | "kthvalue" | "argmax" | "argmin" => {
            reduced(slots, &sizes, &args)
        }
        "softmax" | "log_softmax" => match args.dim() {
            Some(dim) if is_split_at(&mut slots, 0, dim) => mixing::softmax(slots, dim),
            dim => along(slots, &sizes, dim),
        },
        "cumsum" | "cumprod" | "logcumsumexp" => along(slots, &sizes, args.dim()),
        "layer_norm" | "rms_norm" => {
            let Some(dims) = args.dims() else { return slots.run_whole() };
            match dims.iter().any(|dim| is_split_at(&mut slots, 0, *dim)) {
                true => mixing::norm(slots, &dims, &args),
                false => normalized(slots, &sizes, &dims),
            }
        }
        "standardize" => mixing::standardize(slots, &args),
        "mm" | "mv" | "dot" | "bmm" | "outer" | "matmul" | "addmm" | "addmv" | "baddbmm" | "contract"
        | "tensordot" => match products(call.op, &sizes, &args) {
            Some(labels) => slots.by_labels(&labels),
            None => slots.run_whole(),
        },
        "convolution" | "convolution_input" | "convolution_weight" => convolved(slots, &sizes, &args),
        "max_pool" | "avg_pool" | "avg_pool_input" => {
            let windows = args.0.as_ref().and_then(|args| args.downcast_ref::<(Windows,)>());
            let Some((windows,)) = windows else { return slots.run_whole() };
            let outer = sizes[0].len() - windows.dims();
            let own: Vec<Label> =
                (0..sizes[0].len()).map(|dim| if dim < outer { dim } else { WHOLE + dim }).collect();
            slots.by_labels(&plain(vec![own.clone()], vec![own.clone(), own]))
        }
        "embedding" => mixing::rows(slots, 0),
        "index_select" => match args.dim() {
            Some(dim) => mixing::rows(slots, dim),
            None => slots.run_whole(),
        },
        "index_add" => mixing::added_rows(slots, args.dim()),
        "gather" => match args.dim() {
            Some(dim) if is_split_at(&mut slots, 0, dim) => mixing::picked(slots, dim),
            dim => beside(slots, &sizes, dim),
        },
        "scatter" | "scatter_add" => beside(slots, &sizes, args.dim()),
        "class_cross_entropy" => {
            let args = args.0.as_ref().and_then(|args| args.downcast_ref::<(usize, isize)>()).copied();
            match args {
                Some((dim, ignored)) if is_split_at(&mut slots, 0, dim) => {
                    mixing::cross_entropy(slots, dim, ignored)
                }
                Some((dim, _)) if !sizes[0].is_empty() => {
                    let own: Vec<Label> =
                        (0..sizes[0].len()).map(|other| if other == dim { WHOLE } else { other }).collect();
                    let rest: Vec<Label> = own.iter().copied().filter(|label| *label < WHOLE).collect();
                    slots.by_labels(&plain(vec![own, rest.clone()], vec![rest.clone(), rest]))
                }
                _ => slots.run_whole(),
            }
        }
        "scaled_dot_product_attention" => attended(slots, &sizes),
        "recurrent" => recurrent(slots, &sizes),
        "tril" | "triu" => {
            let n = sizes[0].len();
            let own: Vec<Label> = (0..n).map(|dim| if dim + 2 < n { dim } else { WHOLE + dim }).collect();
            slots.by_labels(&plain(vec![own.clone()], vec![own]))
        }
        "cat" => views::joined(slots, &sizes),
        "stack" => views::stacked(slots, &sizes),
        _ => views::outputs(slots, &sizes),
    }
}

/// The arguments of a call.
pub(crate) struct Args(pub(crate) Option<Arc<dyn Any + Send + Sync>>);

impl Args {
    pub(crate) fn get<T: Clone + 'static>(&self) -> Option<T> {
        self.0.as_ref()?.downcast_ref::<T>().cloned()
    }

    /// The dim, if that is the only argument beside a factor.
    fn dim(&self) -> Option<usize> {
        let scaled = || self.get::<(usize, Scalar)>().map(|(dim, _)| dim);
        self.get::<(usize,)>().map(|(dim,)| dim).or_else(scaled)
    }

    /// The dims of a norm.
    fn dims(&self) -> Option<Positions> {
        let layer = self.get::<(Positions, f64)>().map(|(dims, _)| dims);
        layer.or_else(|| self.get::<(Positions, Option<f64>)>().map(|(dims, _)| dims))
    }
}

pub(crate) fn is_split_at(slots: &mut Slots<'_>, at: usize, dim: usize) -> bool {
    slots.values()[at].axis_of(dim).is_some()
}

/// Labels without anything to join.
pub(crate) fn plain(inputs: Vec<Vec<Label>>, outputs: Vec<Vec<Label>>) -> Labels<'static> {
    Labels { inputs, outputs, join: None, added: None }
}

/// Dims meet from the right.
fn from_right(ndim: usize) -> Vec<Label> {
    (0..ndim).rev().collect()
}

fn by_element(sizes: &[Vec<usize>]) -> Labels<'static> {
    let most = sizes.iter().map(Vec::len).max().unwrap_or(0);
    plain(sizes.iter().map(|sizes| from_right(sizes.len())).collect(), vec![from_right(most)])
}

/// All dims of one input but one ride along.
fn along(slots: Slots<'_>, sizes: &[Vec<usize>], dim: Option<usize>) -> Result<Vec<Value>> {
    let Some(dim) = dim else { return slots.run_whole() };
    let own: Vec<Label> = (0..sizes[0].len()).map(|other| if other == dim { WHOLE } else { other }).collect();
    slots.by_labels(&plain(vec![own.clone()], vec![own]))
}

/// Inputs with the same dims, all but one of which ride along if all sizes are the same.
fn beside(slots: Slots<'_>, sizes: &[Vec<usize>], dim: Option<usize>) -> Result<Vec<Value>> {
    let Some(dim) = dim.filter(|_| sizes.iter().all(|other| other.len() == sizes[0].len())) else {
        return slots.run_whole();
    };
    let rides = |other: usize| other != dim && sizes.iter().all(|own| own[other] == sizes[0][other]);
    let own: Vec<Label> =
        (0..sizes[0].len()).map(|other| if rides(other) { other } else { WHOLE + other }).collect();
    slots.by_labels(&plain(vec![own.clone(); sizes.len()], vec![own]))
}

/// Names that tell dims apart.
pub(crate) fn probe_names(ndim: usize) -> Result<Names> {
    let names: Result<Vec<Option<Name>>> =
        (0..ndim).map(|dim| Name::new(&format!("dim_{dim}")).map(Some)).collect();
    Names::new("Mesh", names?)
}

/// The dim of a probe that a name is of.
pub(crate) fn probed(name: Option<Name>) -> Option<usize> {
    name?.as_str().strip_prefix("dim_")?.parse().ok()
}

/// The call on one tensor without numbers that matter.
pub(crate) fn on_probe(call: &Call<'_>, probe: NamedTensor) -> Result<Vec<Tensor>> {
    probing(|| call.on(&[namegrad::autograd::plain::Input::One(&Tensor::from(probe))]))
}

/// Runs a call that only finds out what an op does, which nobody observes. Its tensors have elements.
pub(crate) fn probing<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    observe(|_| {}, || on_device(Device::Cpu, f))
}

/// Reductions. Which dims they are over is seen in a call on two elements in each dim.
fn reduced(slots: Slots<'_>, sizes: &[Vec<usize>], args: &Args) -> Result<Vec<Value>> {
    let (ndim, call) = (sizes[0].len(), slots.call);
    let over: Option<Over> =
        args.get::<(Over,)>().map(|(over,)| over).or_else(|| args.get::<(Over, f64)>().map(|(over, _)| over));
    let labels: Vec<Vec<Label>> = match over {
        Some(over) => {
            let kept = (0..ndim).filter(|dim| over.keep || !over.contains(dim));
            vec![kept.map(|dim| if over.contains(&dim) { WHOLE } else { dim }).collect(); 2]
        }
        None => {
            let zeros = || NamedTensor::zeros(vec![2; ndim])?.to(slots.all_dtype());
            let probe = on_device(Device::Cpu, zeros)?.with_names(probe_names(ndim)?);
            let Ok(made) = on_probe(call, probe) else { return slots.run_whole() };
            let of = |y: &Tensor| -> Vec<Label> {
                (0..y.ndim())
                    .map(|dim| probed(y.name(dim)).filter(|_| y.sizes()[dim] == 2).unwrap_or(WHOLE))
                    .collect()
            };
            made.iter().map(of).collect()
        }
    };
    let over_first = |x: &NamedTensor, op: &str| match op {
        "amax" => x.amax(0),
        "amin" => x.amin(0),
        "prod" => x.prod(0),
        "all" => x.all(0),
        "any" => x.any(0),
        "logsumexp" => x.logsumexp(0),
        _ => x.norm(0),
    };
    let again = |x: &NamedTensor| match (call.op, args.get::<(Over, f64)>()) {
        ("vector_norm", Some((_, ord))) => x.vector_norm_with(0, options::VectorNormOptions::new().ord(ord)),
        (op, _) => over_first(x, op),
    };
    let join = match (call.op, args.get::<(Over, f64)>()) {
        ("sum" | "nansum" | "count_nonzero", _) => Some(Join::Reduced(Reduction::Sum)),
        ("mean", _) => Some(Join::Reduced(Reduction::Mean)),
        ("amax" | "amin" | "prod" | "all" | "any" | "logsumexp" | "norm", _) => Some(Join::Again(&again)),
        ("vector_norm", Some((_, ord))) if ord != 0.0 => Some(Join::Again(&again)),
        _ => None,
    };
    let own = (0..ndim).collect();
    slots.by_labels(&Labels { inputs: vec![own], outputs: labels, join, added: None })
}

/// Norms over dims that are not split.
fn normalized(slots: Slots<'_>, sizes: &[Vec<usize>], dims: &[usize]) -> Result<Vec<Value>> {
    let own: Vec<Label> =
        (0..sizes[0].len()).map(|dim| if dims.contains(&dim) { WHOLE + dim } else { dim }).collect();
    let mut inputs = vec![own.clone()];
    inputs.extend(sizes[1..].iter().map(|sizes| vec![WHOLE; sizes.len()]));
    slots.by_labels(&plain(inputs, vec![own]))
}

/// Sums of products.
fn products(op: &str, sizes: &[Vec<usize>], args: &Args) -> Option<Labels<'static>> {
    let matrix = |inputs: Vec<Vec<Label>>, output: Vec<Label>| {
        let adds_first = op.starts_with("add") || op == "baddbmm";
        let inputs = match adds_first {
            true => {
                let from = output.len().checked_sub(sizes[0].len())?;
                [vec![output[from..].to_vec()], inputs].concat()
            }
            false => inputs,
        };
        let added = adds_first.then_some(0);
        Some(Labels { inputs, outputs: vec![output], join: Some(Join::Reduced(Reduction::Sum)), added })
    };
    match op {
        "mm" | "addmm" => matrix(vec![vec![0, 1], vec![1, 2]], vec![0, 2]),
        "mv" | "addmv" => matrix(vec![vec![0, 1], vec![1]], vec![0]),
        "dot" => matrix(vec![vec![0], vec![0]], vec![]),
        "bmm" | "baddbmm" => matrix(vec![vec![0, 1, 2], vec![0, 2, 3]], vec![0, 1, 3]),
        "outer" => matrix(vec![vec![0], vec![1]], vec![0, 1]),
        "matmul" => {
            let batch = |ndim: usize| (0..ndim.saturating_sub(2)).rev().map(|from_right| 10 + from_right);
            let (m, n) = (sizes[0].len(), sizes[1].len());
            let mut a: Vec<Label> = batch(m).collect();
            let mut b: Vec<Label> = batch(n).collect();
            let mut y: Vec<Label> = batch(m.max(n)).collect();
            if m > 1 {
                a.push(0);
                y.push(0);
            }
            a.push(1);
            b.push(1);
            if n > 1 {
                b.push(2);
                y.push(2);
            }
            matrix(vec![a, b], y)
        }
        _ => {
            let ndims = [sizes[0].len(), sizes[1].len()];
            let dims = match (args.get::<(Paired,)>(), args.get::<(Positions, Positions)>()) {
                (Some((dims,)), _) => dims,
                (_, Some((own, other))) => Paired::new(ndims, &[], own.into_iter().zip(other).collect()),
                _ => return None,
            };
            let mut a: Vec<Label> = (0..ndims[0]).collect();
            let mut b: Vec<Label> = (0..ndims[1]).map(|dim| 100 + dim).collect();
            let mut y = Vec::new();
            for (own, other) in dims.batch.iter().chain(&dims.summed) {
                b[*other] = a[*own];
            }
            y.extend(dims.batch.iter().map(|(own, _)| *own));
            y.extend(dims.rows.iter().copied());
            y.extend(dims.cols.iter().map(|dim| b[*dim]));
            a.truncate(ndims[0]);
            matrix(vec![a, b], y)
        }
    }
}

/// Convolutions, whose images can be split, and without groups their channels.
fn convolved(slots: Slots<'_>, sizes: &[Vec<usize>], args: &Args) -> Result<Vec<Value>> {
    const N: Label = 0;
    let n = sizes[0].len();
    if sizes.get(1).is_none_or(|weight| weight.len() != n) || n < 3 {
        return slots.run_whole(); // one image
    }
    let is_dense = args.get::<(Extents, Padding, Extents, usize)>().is_some_and(|(.., groups)| groups == 1);
    let (from, to) = if is_dense { (1, 2) } else { (WHOLE + 1, WHOLE + 2) };
    let of = |first: Label, second: Label| -> Vec<Label> {
        [first, second].into_iter().chain((2..n).map(|dim| 10 + WHOLE + dim)).collect()
    };
    let (x, y, weight) = (of(N, from), of(N, to), of(to, from));
    let (mut inputs, output) = match slots.call.op {
        "convolution" => (vec![x, weight], y),
        "convolution_input" => (vec![y, weight], x),
        _ => (vec![x, y], weight),
    };
    inputs.extend((2..sizes.len()).map(|_| vec![to]));
    let (join, added) = (Some(Join::Reduced(Reduction::Sum)), (sizes.len() > 2).then_some(2));
    slots.by_labels(&Labels { inputs, outputs: vec![output], join, added })
}

/// Attention, whose batches and heads can be split.
fn attended(slots: Slots<'_>, sizes: &[Vec<usize>]) -> Result<Vec<Value>> {
    // The last of the arguments is `window`; the first is the probability of dropout.
    let args = slots.call.args();
    let args =
        args.as_ref().and_then(|args| args.downcast_ref::<(f64, bool, Option<f64>, bool, Option<usize>)>());
    let Some((drops, is_grouped)) = args.map(|args| (args.0 != 0.0, args.3)) else {
        return slots.run_whole();
    };
    let n = sizes[0].len();
    let is_alike = || (1..3).all(|at| sizes[at][..n - 2] == sizes[0][..n - 2]);
    if n < 2 || sizes[1].len() != n || sizes[2].len() != n || drops && (is_grouped || !is_alike()) {
        return slots.run_whole();
    }
    let own: Vec<Label> = (0..n).rev().map(|dim| if dim < 2 { WHOLE + dim } else { dim }).collect();
    let mut inputs = vec![own.clone(); 3];
    inputs.extend(sizes[3..].iter().map(|sizes| own[n.saturating_sub(sizes.len())..].to_vec()));
    let labels = plain(inputs, vec![own.clone(), own[..n - 1].to_vec()]);
    match drops {
        false => slots.by_labels(&labels),
        true => {
            let scores = [&sizes[0][..n - 1], &sizes[1][n - 2..n - 1]].concat();
            slots.by_labels_with(&labels, &|slots, split| drawn::attention(slots, split, &scores))
        }
    }
}

/// Recurrent layers, whose sequences can be split.
fn recurrent(mut slots: Slots<'_>, sizes: &[Vec<usize>]) -> Result<Vec<Value>> {
    if sizes[0].len() != 3 || sizes[1].len() != 2 {
        return slots.run_whole();
    }
    // In the order of the row: x, hx, w_ih, w_hh, c, b_ih, b_hh, w_hr, lengths.
    let labels: [&[Label]; 9] = [
        &[WHOLE, 0, WHOLE],
        &[0, WHOLE],
        &[WHOLE; 2],
        &[WHOLE; 2],
        &[0, WHOLE],
        &[WHOLE],
        &[WHOLE],
        &[WHOLE; 2],
        &[0],
    ];
    let mut inputs = Vec::new();
    for (slot, own) in slots.call.inputs.iter().zip(labels) {
        inputs.extend(
            slot.tensors()
                .iter()
                .map(|x| if x.ndim() == own.len() { own.to_vec() } else { vec![WHOLE; x.ndim()] }),
        );
    }
    if slots.call.inputs.len() != 9 || inputs.len() != slots.values().len() {
        return slots.run_whole();
    }
    let cells = if slots.call.inputs[4].tensors().is_empty() { vec![WHOLE] } else { vec![0, WHOLE] };
    slots.by_labels(&plain(inputs, vec![vec![WHOLE, 0, WHOLE], vec![0, WHOLE], cells]))
}
