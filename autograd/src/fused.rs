//! Chains of elementwise ops on large tensors, in one pass over tiles that stay in the cache.

use crate::checkpoint::older_than;
use crate::op::{Kept, Op};
use crate::scan::{Tensors, list};
use crate::tape::{
    BackwardOptions, Cx, Meta, enable_grad, is_anomaly_enabled, is_forward, is_grad_enabled, no_grad,
};
use crate::tensor::{Tensor, grad_with};
use crate::{autocast, observe, registry};
use namegrad_core::callback::{Callback, CallbackMut};
use namegrad_core::ops::tiles::Tiles;
use namegrad_core::random::Draws;
use namegrad_core::{Device, Error, ErrorKind, NamedTensor, OnDevice, Result};
use std::cell::RefCell;
use std::ops::Range;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

const OP: &str = "fused";

/// Computes `f(inputs)`, a chain of elementwise ops, in one pass: the inputs are cut into tiles, and `f` runs
/// on one tile after another, on all threads. Intermediate values stay in the cache and take no memory. The
/// backward pass keeps the inputs alone, and runs `f` a second time on each tile, as that of a
/// [`checkpoint`](crate::checkpoint()) does.
///
/// The result and the gradients have the same bits as those of the ops one after another, for any number of
/// threads. `f` sees parts of its inputs, so it may contain elementwise ops alone, without random numbers and
/// without branches on sizes, which no check can see. Everything that it uses is an input, except numbers and
/// 0-d tensors that require no gradient. It returns a tensor, or a tuple, an array or a `Vec` of tensors, of
/// the sizes to which the inputs broadcast.
///
/// The longer the chain and the larger the tensors, the more is gained: eight ops on ten million elements take
/// half the time. Short chains with gradients are faster one after another. `docs/performance.md` has the
/// figures.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::fused;
/// let x = Tensor::randn([("N", 100), ("C", 300)])?.requiring_grad()?;
/// let gate = Tensor::randn([("N", 100), ("C", 300)])?;
/// let bias = Tensor::randn(("C", 300))?.requiring_grad()?;
/// let y = fused(&[&x, &gate, &bias], |[x, gate, bias]| gate.sigmoid().mul(gate).mul(x).add(bias))?;
/// assert!(y.equal(&gate.sigmoid()?.mul(&gate)?.mul(&x)?.add(&bias)?)?);
/// y.sum(..)?.backward()?;
/// assert_eq!(bias.grad().unwrap().to_vec::<f32>()?, [100.0; 300]);
/// # Ok::<(), Error>(())
/// ```
///
/// The gradient of an input that broadcasts is that of the ops on the [expanded](Tensor::expand) input. If the
/// gradient is itself differentiated, in forward mode and under [`detect_anomaly`](crate::detect_anomaly()),
/// the ops run one after another.
///
/// # Errors
/// The errors of `f`. [`ErrorKind::Value`] if `f` contains other ops, computes with sizes or draws random
/// numbers, [`ErrorKind::Shape`] if the inputs do not broadcast or a result has other sizes, and
/// [`ErrorKind::Autograd`] if `f` uses a tensor that requires a gradient and is not an input.
#[track_caller]
pub fn fused<const N: usize, Y: Tensors>(
    inputs: &[&Tensor; N],
    f: impl Fn(&[Tensor; N]) -> Result<Y> + Send + Sync + 'static,
) -> Result<Y> {
    let call = Call::new(inputs)?;
    if call.runs_whole() {
        return f(&inputs.map(Tensor::clone));
    }
    let f = Arc::new(move |x: &[Tensor]| f(&std::array::from_fn(|at| x[at].clone())));
    let (mut form, typed) = (None, f.clone());
    let all = call.run(
        &mut |x: &[Tensor]| {
            let y = typed(x)?;
            let all = list(&y);
            form = Some(y);
            Ok(all)
        },
        Arc::new(move |x: &[Tensor]| Ok(list(&f(x)?))),
    )?;
    let form = form.expect("`run` has called it");
    Ok(form.with_next(&mut all.into_iter()))
}

const ALL_INPUTS: &str = "fused(&[&x, &w], |[x, w]| ..), with every tensor that the function uses";

/// The function on lists of tensors.
type Body = dyn for<'x> Callback<(&'x [Tensor],), Result<Vec<Tensor>>> + Send + Sync;

/// The ops that ran, with the numbers that they were called with.
type Trace = Vec<(&'static str, Vec<u64>)>;

struct Call<'a> {
    inputs: &'a [&'a Tensor],
    tiles: Tiles,
    at: &'static Location<'static>,
}

impl Call<'_> {
    #[track_caller]
    fn new<'a>(inputs: &'a [&'a Tensor]) -> Result<Call<'a>> {
        let values: Vec<&NamedTensor> = crate::list(inputs.iter().map(|x| x.value()));
        Ok(Call { inputs, tiles: Tiles::new(OP, &values)?, at: Location::caller() })
    }

    /// Whether there is nothing to cut, or each op is looked at. Tensors without elements have no parts.
    fn runs_whole(&self) -> bool {
        if OnDevice::is_meta() || self.inputs.iter().any(|x| x.device() == Device::Meta) {
            return true;
        }
        self.tiles.sizes().contains(&0) || self.inputs.is_empty() || is_forward() || is_anomaly_enabled()
    }

    fn run(
        &self,
        probe: &mut dyn for<'x> CallbackMut<&'x [Tensor], Result<Vec<Tensor>>>,
        f: Arc<Body>,
    ) -> Result<Vec<Tensor>> {
        let mode = autocast::mode();
        let tile = |at: usize| {
            let ranges = self.tiles.ranges(at);
            let x: Vec<Tensor> =
                crate::list(self.inputs.iter().map(|x| Tensor::constant(Tiles::part(x.value(), &ranges))));
            autocast::in_mode(mode, || no_grad(|| f.call_with((&x,)))).map(values)
        };
        let (draws, checked) = Draws::record(|| self.check(probe, &tile));
        if !draws.is_empty() {
            let refused = self.refused("draws random numbers".to_string());
            return Err(
                refused.with_repair("fused(&[&x, &mask], |[x, mask]| ..), with a mask that was drawn before")
            );
        }
        let (first, tracked) = match checked {
            // The whole inputs have a better error, unless it is only about parts.
            Err(error) if error.op() != OP => {
                f.call_with((&crate::list::<_, Vec<_>>(self.inputs.iter().map(|x| (*x).clone())),))?;
                let refused = self.refused(format!("fails on a part of its inputs: {}", error.message()));
                return Err(refused.with_repair(ALL_INPUTS));
            }
            checked => checked?,
        };
        let all = self.tiles.fill(OP, &first, &tile).map_err(|error| error.at(self.at))?;
        if !tracked.contains(&true) {
            return Ok(crate::list(all.into_iter().map(Tensor::constant)));
        }
        self.recorded(all, &tracked, f)
    }

    /// The results for the first tile, and which of them require a gradient.
    ///
    /// The function also runs on a part whose sizes all differ from those of the tile. What is computed there
    /// shows whether it looks at sizes; it is computed as the backward pass does, which shows what it uses.
    fn check(
        &self,
        probe: &mut dyn for<'x> CallbackMut<&'x [Tensor], Result<Vec<Tensor>>>,
        tile: &dyn Callback<(usize,), Result<Vec<NamedTensor>>>,
    ) -> Result<(Vec<NamedTensor>, Vec<bool>)> {
        let ranges = self.tiles.ranges(0);
        let (trace, made) = traced(|| tile.call_with((0,)));
        if let Some(op) = foreign(&trace) {
            return Err(self.refused(format!("calls {op}, which is not an elementwise op")));
        }
        let made = made?;
        let other: Vec<Range<usize>> = crate::list(ranges.iter().zip(self.tiles.sizes()).map(other_than));
        let oldest = Meta::next_id();
        let leaves = leaves(&self.expanded()?, &other, |at| self.inputs[at].tracked().is_some())?;
        let (again, probed) = traced(|| probe.call_with(&leaves));
        let probed = probed?;
        if trace != again || made.len() != probed.len() {
            return Err(self.refused("computes something else for other sizes".to_string()));
        }
        for (y, small) in made.iter().zip(&probed) {
            self.check_sizes(y, &ranges)?;
            self.check_sizes(small.value(), &other)?;
            self.check_same(y, small.value(), &ranges, &other)?;
            if let Some(meta) = small.meta()
                && !older_than(oldest, meta).is_empty()
            {
                let message = "the function uses a tensor that requires a gradient and is not an input";
                return Err(Error::new(ErrorKind::Autograd, OP, message).at(self.at).with_repair(ALL_INPUTS));
            }
        }
        Ok((made, crate::list(probed.iter().map(Tensor::requires_grad))))
    }

    /// Checks the sizes of the result for a part.
    fn check_sizes(&self, y: &NamedTensor, part: &[Range<usize>]) -> Result<()> {
        let sizes: Vec<usize> = crate::list(part.iter().map(|range| range.len()));
        if *y.sizes() != sizes {
            let message = format!(
                "a result has sizes {:?} for a part of the inputs of sizes {sizes:?}; the function must be elementwise and use an input of all dims",
                y.sizes()
            );
            return Err(Error::new(ErrorKind::Shape, OP, message)
                .at(self.at)
                .with_operands(self.inputs.iter().map(|x| x.shape())));
        }
        Ok(())
    }

    /// Checks that two parts have the same elements where both are.
    fn check_same(
        &self,
        y: &NamedTensor,
        other: &NamedTensor,
        ranges: &[Range<usize>],
        others: &[Range<usize>],
    ) -> Result<()> {
        let both = |of: &[Range<usize>]| -> Vec<Range<usize>> {
            let places = of.iter().zip(ranges.iter().zip(others));
            crate::list(
                places.map(|(own, (a, b))| a.start.max(b.start) - own.start..a.end.min(b.end) - own.start),
            )
        };
        let (a, b) = (Tiles::part(y, &both(ranges)).unnamed(), Tiles::part(other, &both(others)).unnamed());
        if a.eq(&b)?.logical_or(&a.ne(&a)?)?.is_true_everywhere()? {
            return Ok(()); // nan is nan
        }
        Err(self.refused("gives other values for other sizes".to_string()))
    }

    /// The inputs without names, in the sizes of the result.
    fn expanded(&self) -> Result<Vec<NamedTensor>> {
        let mut all = Vec::with_capacity(self.inputs.len());
        for x in self.inputs {
            all.push(x.value().unnamed().expand(self.tiles.sizes())?);
        }
        Ok(all)
    }

    #[cold]
    fn refused(&self, what: String) -> Error {
        Error::new(ErrorKind::Value, OP, format!("the function must be elementwise, and it {what}"))
            .at(self.at)
    }

    /// The results with the derivative: the function again, on each tile.
    fn recorded(&self, all: Vec<NamedTensor>, tracked: &[bool], f: Arc<Body>) -> Result<Vec<Tensor>> {
        let sizes = self.tiles.sizes().to_vec();
        let kept: Vec<Kept> = crate::list(self.inputs.iter().map(|x| Kept::input(x)));
        let mode = autocast::mode();
        let gradients = move |gs: &[Option<Tensor>], cx: &Cx<'_>| {
            let mut x = Vec::with_capacity(kept.len());
            for kept in &kept {
                x.push(enable_grad(|| kept.get(cx).expand(&sizes[..]))?);
            }
            let wanted: Vec<bool> = crate::list((0..x.len()).map(|at| cx.wants(at)));
            if is_grad_enabled() || is_forward() {
                return pulled_back(&*f, mode, &x, &wanted, gs, is_grad_enabled());
            }
            let x: Vec<NamedTensor> = crate::list(x.into_iter().map(Tensor::into_value));
            by_tiles(&*f, mode, &x, &wanted, gs)
        };
        let inputs: Vec<Option<&Tensor>> = crate::list(self.inputs.iter().map(|x| Some(*x)));
        let all = Op::with_outputs(OP, all).inputs(&inputs, gradients);
        Ok(crate::list(
            all.into_iter().zip(tracked).map(|(y, tracked)| if *tracked { y } else { y.detach() }),
        ))
    }
}

/// Parts of the inputs, which require gradients where they are wanted.
fn leaves(x: &[NamedTensor], ranges: &[Range<usize>], wanted: impl Fn(usize) -> bool) -> Result<Vec<Tensor>> {
    let mut leaves = Vec::with_capacity(x.len());
    for (at, x) in x.iter().enumerate() {
        let part = Tensor::constant(Tiles::part(x, ranges));
        leaves.push(if wanted(at) { part.requiring_grad()? } else { part });
    }
    Ok(leaves)
}

/// The gradients of the inputs, given those of the results.
fn pulled_back(
    f: &Body,
    mode: Option<autocast::CastMode>,
    x: &[Tensor],
    wanted: &[bool],
    gs: &[Option<Tensor>],
    create_graph: bool,
) -> Result<Vec<Option<Tensor>>> {
    let y = enable_grad(|| autocast::in_mode(mode, || f.call_with((x,))))?;
    let (mut outputs, mut of_outputs) = (Vec::new(), Vec::new());
    for (y, g) in y.iter().zip(gs) {
        if y.requires_grad() && g.is_some() {
            outputs.push(y);
            of_outputs.push(g.as_ref());
        }
    }
    let inputs: Vec<&Tensor> =
        crate::list(x.iter().zip(wanted).filter(|(_, wanted)| **wanted).map(|(x, _)| x));
    if outputs.is_empty() {
        return Ok(vec![None; x.len()]);
    }
    let options = BackwardOptions { create_graph, allow_unused: true, ..BackwardOptions::default() };
    let mut found = grad_with(&outputs, &inputs, &of_outputs, options)?.into_iter();
    Ok(crate::list(wanted.iter().map(|wanted| if *wanted { found.next().flatten() } else { None })))
}

/// [`pulled_back`], tile by tile.
fn by_tiles(
    f: &Body,
    mode: Option<autocast::CastMode>,
    x: &[NamedTensor],
    wanted: &[bool],
    gs: &[Option<Tensor>],
) -> Result<Vec<Option<Tensor>>> {
    let tiles = Tiles::new(OP, &crate::list::<_, Vec<_>>(x.iter()))?;
    let of_tile = |at: usize| {
        let ranges = tiles.ranges(at);
        let part = |g: &Option<Tensor>| g.as_ref().map(|g| Tensor::constant(Tiles::part(g.value(), &ranges)));
        let gs: Vec<Option<Tensor>> = crate::list(gs.iter().map(part));
        let x = enable_grad(|| leaves(x, &ranges, |at| wanted[at]))?;
        pulled_back(f, mode, &x, wanted, &gs, false)
    };
    let first = of_tile(0)?;
    let made = values(crate::list(first.iter().flatten().cloned()));
    let tile = |at: usize| Ok(values(crate::list(of_tile(at)?.into_iter().flatten())));
    let mut all = tiles.fill(OP, &made, &tile)?.into_iter().map(Tensor::constant);
    Ok(crate::list(first.iter().map(|of_x| of_x.as_ref().and_then(|_| all.next()))))
}

fn values(tensors: Vec<Tensor>) -> Vec<NamedTensor> {
    crate::list(tensors.into_iter().map(Tensor::into_value))
}

/// A range of other length for a dim of this size, if there is one. It overlaps the given one.
fn other_than((range, size): (&Range<usize>, &usize)) -> Range<usize> {
    const FEW: usize = 64;
    match range.len() {
        _ if *size == 1 => 0..1,
        1 => 0..2,
        length => range.end - (length - 1).min(FEW)..range.end,
    }
}

/// Runs `f` and traces its ops.
fn traced<R>(f: impl FnOnce() -> R) -> (Trace, R) {
    let seen = Rc::new(RefCell::new(Trace::new()));
    let trace = seen.clone();
    let made = observe(
        move |op| {
            let numbers = op.inputs.iter().filter(|x| x.is_number());
            let bits = numbers.map(|x| x.item::<f64>().unwrap_or(f64::NAN).to_bits());
            seen.borrow_mut().push((op.op, bits.collect()));
        },
        f,
    );
    (trace.take(), made)
}

/// The first op that is not elementwise.
fn foreign(trace: &Trace) -> Option<&'static str> {
    const WITHOUT_FORMULA: [&str; 4] = ["to", "contiguous", "addcmul", "addcdiv"];
    let is_elementwise = |name: &str| {
        WITHOUT_FORMULA.contains(&name)
            || registry::all().any(|op| op.info.name == name && op.info.by_element)
    };
    trace.iter().map(|(op, _)| *op).find(|op| !is_elementwise(op))
}
