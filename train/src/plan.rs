//! [`plan`]: what a step of a program computes and holds, found out on the meta device.

use crate::profile::{percent, size};
use namegrad_autograd::{
    Held, Observed, Observer, Section, SectionKind, called_here, observe_by, places, running_layer,
};
use namegrad_core::memory::{empty_meta_cache, meta_stats, reset_meta_peak};
use namegrad_core::{Device, NamedTensor, Result, on_device};
use namegrad_io::sorted;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

/// Plans a step: runs it on the meta device, where nothing is computed and no memory is taken, and tells what
/// it would compute and hold.
///
/// Make the model, the optimizer and the batch in [`on_device`], so that they take no memory either. In the
/// step, all tensors count as meta tensors, also those of the CPU. A model on the CPU is planned as well: its
/// parameters, buffers and gradients, the state of its optimizer and the random numbers are afterwards as they
/// were. The step runs twice, and the second run is what the plan tells: an optimizer makes its state in the
/// first one. What needs elements, such as `loss.item()`, is an error. Threads that the step starts itself
/// are not part of the plan.
///
/// FLOPs are those of products, convolutions, attention and recurrent layers, two for each multiply-add, as
/// [`multiply_adds`](Observed::multiply_adds) counts them. Bytes are those of the blocks that tensors take;
/// [`Plan::process`] also has memory that is cached for the next tensors, and that of large kernels.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// use namegrad::plan;
/// let make = || {
///     let hidden = Linear::new(("in", 20_000), ("hidden", 100_000))?;
///     Ok(Sequential::new().then(hidden).then(Relu).then(Linear::new(("hidden", 100_000), ("out", 10))?))
/// };
/// let model = on_device(Device::Meta, make)?;
/// let mut optimizer = AdamW::new(model.parameters())?;
/// let x = on_device(Device::Meta, || Tensor::zeros([("N", 64), ("in", 20_000)]))?;
/// let plan = plan(|| {
///     optimizer.zero_grad();
///     model.forward(&x)?.square()?.mean(..)?.backward()?;
///     optimizer.step()
/// })?;
/// println!("{plan}");
/// let weights = 20_000 * 100_000 + 100_000 * 10;
/// assert_eq!(plan.forward_flops, 2 * 64 * weights);
/// assert_eq!(plan.parameters, 4 * (weights + 100_000 + 10));
/// assert_eq!(plan.state, 2 * plan.parameters); // the averages of AdamW
/// assert!(plan.peak > plan.parameters + plan.gradients + plan.state);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Those of the step; [`ErrorKind::Unsupported`](namegrad_core::ErrorKind::Unsupported) if it needs elements.
#[track_caller]
pub fn plan<R>(mut step: impl FnMut() -> Result<R>) -> Result<Plan> {
    let (at, _called) = (Location::caller(), called_here());
    let run = || {
        drop(step()?);
        reset_meta_peak();
        let before = live();
        let seen = Rc::new(Recorder { before, seen: RefCell::default() });
        drop(observe_by(seen.clone(), step)?);
        Ok(seen.finish(at))
    };
    let planned = on_device(Device::Meta, || places::planned(run));
    empty_meta_cache();
    planned
}

/// The bytes that meta tensors of this thread would take now.
fn live() -> u64 {
    meta_stats().live_bytes.max(0) as u64
}

/// What a step computes and holds: see [`plan`]. `println!("{plan}")` prints a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// The FLOPs of the step outside of backward passes.
    pub forward_flops: u64,
    /// The FLOPs of backward passes.
    pub backward_flops: u64,
    /// The bytes of the elements of all parameters that the step reads.
    pub parameters: u64,
    /// The bytes of their gradients.
    pub gradients: u64,
    /// The bytes of the state of optimizers.
    pub state: u64,
    /// The bytes that the step has added when the first backward pass begins: what the tape keeps. Without a
    /// backward pass, the most that it holds.
    pub activations: u64,
    /// The bytes that tensors take before the step: parameters, state, gradients of the step before, the batch.
    pub before: u64,
    /// The largest number of bytes that tensors take during the step, with those from before.
    pub peak: u64,
    /// The bytes by which a process grows that makes such steps: `peak`, freed memory that is kept for the next
    /// tensors, and what kernels need themselves.
    pub process: u64,
    /// The op that reached the peak, and the line that called it.
    pub peak_at: (&'static str, &'static Location<'static>),
    /// The ops of the step: those with the most FLOPs come first, then those that make the most bytes.
    pub rows: Vec<PlannedOp>,
    /// The bytes that tensors take after each op, in order.
    pub memory: Vec<u64>,
    /// The ops before the first backward pass, and those before the end of the last one: places in `memory`.
    pub backward: Option<(usize, usize)>,
}

/// An op that is called in one layer from one line, forward or backward: a row of a [`Plan`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlannedOp {
    /// Whether these are derivatives of the op in backward passes.
    pub is_backward: bool,
    /// The name of the op.
    pub name: &'static str,
    /// The line that called it, also for a derivative.
    pub at: &'static Location<'static>,
    /// The path of the layer that called it; see [`running_layer`].
    pub layer: Option<Arc<str>>,
    /// The number of calls.
    pub calls: u64,
    /// The FLOPs of all calls.
    pub flops: u64,
    /// The bytes that the results take, without views of other tensors.
    pub bytes: u64,
}

/// The FLOPs of kernels of derivatives, which are no ops, as a multiple of those of the op. That of attention
/// computes the scores again, and four products of their size.
const FUSED: [(&str, f64); 2] = [("scaled_dot_product_attention", 2.5), ("recurrent", 2.0)];

/// What rows are for.
type Key = (bool, &'static str, &'static Location<'static>, Option<Arc<str>>);

/// The observer of a step.
struct Recorder {
    before: u64,
    seen: RefCell<Seen>,
}

#[derive(Default)]
struct Seen {
    rows: HashMap<Key, PlannedOp>,
    /// The bytes of the inputs of ops that have elements, by their addresses.
    inputs: HashMap<usize, u64>,
    /// What the step holds, by the addresses of the elements.
    held: HashMap<usize, (Held, u64)>,
    memory: Vec<u64>,
    /// The sections that have not ended, with the FLOPs of the ops in them.
    open: Vec<(Section, u64)>,
    /// The FLOPs of ops whose derivatives are kernels, the latest last.
    waiting: HashMap<(&'static str, &'static Location<'static>), Vec<u64>>,
    /// The bytes when the current op started.
    started: Option<u64>,
    /// The least that the step holds before a backward pass: without the gradients of the step before.
    base: Option<u64>,
    activations: Option<u64>,
    backward: Option<(usize, usize)>,
    peak: u64,
    peak_at: Option<(&'static str, &'static Location<'static>)>,
}

impl Observer for Recorder {
    fn start(&self) {
        let seen = &mut *self.seen.borrow_mut();
        seen.started = Some(live());
        if seen.activations.is_none() {
            seen.base = Some(seen.base.map_or(live(), |base| base.min(live())));
        }
    }

    fn op(&self, op: &Observed<'_>) {
        let seen = &mut *self.seen.borrow_mut();
        let flops = 2 * op.multiply_adds() as u64;
        let mut all = op.inputs.iter().chain(op.outputs);
        // An op on batches or tensors in parts often calls itself on what they consist of, and that counts.
        let is_repeated = seen.started.is_none() && all.any(|x| x.behind().is_some());
        let started = seen.started.take().or(seen.memory.last().copied()).unwrap_or(self.before);
        let bytes = live().saturating_sub(started);
        if FUSED.iter().any(|(name, _)| *name == op.op) {
            seen.waiting.entry((op.op, op.at)).or_default().push(flops);
        }
        for x in op.inputs.iter().filter(|x| x.device() == Device::Cpu && x.ndim() > 0) {
            seen.inputs.insert(x.data_ptr() as usize, x.nbytes() as u64);
        }
        let derivative = seen.open.iter().rfind(|(section, _)| section.kind == SectionKind::Derivative);
        let (name, at) = derivative.map_or((op.op, op.at), |(of, _)| (of.name, of.at));
        let calls = u64::from(derivative.is_none() && !is_repeated);
        seen.count((seen.is_backward(), name, at, running_layer()), calls, flops, bytes);
        for (_, all) in &mut seen.open {
            *all += flops;
        }
        seen.note(name, at);
    }

    fn enter(&self, section: &Section) {
        let seen = &mut *self.seen.borrow_mut();
        if section.kind == SectionKind::Backward {
            let base = seen.base.unwrap_or(self.before);
            seen.activations.get_or_insert(live().saturating_sub(base));
            seen.backward.get_or_insert((seen.memory.len(), 0));
        }
        seen.open.push((*section, 0));
    }

    fn leave(&self) {
        let seen = &mut *self.seen.borrow_mut();
        let Some((Section { kind, name, at, .. }, flops)) = seen.open.pop() else { return };
        match (kind, &mut seen.backward) {
            (SectionKind::Backward, Some((_, end))) => *end = seen.memory.len(),
            (SectionKind::Derivative, _) => {
                let of_op = seen.waiting.get_mut(&(name, at)).and_then(Vec::pop).filter(|_| flops == 0);
                let times = FUSED.iter().find(|(fused, _)| *fused == name).map_or(0.0, |(_, times)| *times);
                let fused = of_op.map_or(0, |flops| (flops as f64 * times) as u64);
                seen.count((true, name, at, running_layer()), 1, fused, 0);
            }
            _ => {}
        }
        seen.note(name, at);
    }

    fn holds(&self, what: Held, value: &NamedTensor) {
        let held = (what, value.nbytes() as u64);
        self.seen.borrow_mut().held.insert(value.data_ptr() as usize, held);
    }
}

impl Seen {
    fn is_backward(&self) -> bool {
        self.open.iter().any(|(section, _)| section.kind == SectionKind::Backward)
    }

    fn count(&mut self, key: Key, calls: u64, flops: u64, bytes: u64) {
        let row = self.rows.entry(key).or_insert_with_key(|(is_backward, name, at, layer)| PlannedOp {
            is_backward: *is_backward,
            name,
            at,
            layer: layer.clone(),
            calls: 0,
            flops: 0,
            bytes: 0,
        });
        (row.calls, row.flops, row.bytes) = (row.calls + calls, row.flops + flops, row.bytes + bytes);
    }

    /// Notes the memory after an op or a section.
    fn note(&mut self, name: &'static str, at: &'static Location<'static>) {
        self.memory.push(live());
        let peak = meta_stats().peak_bytes.max(0) as u64;
        if peak > self.peak {
            (self.peak, self.peak_at) = (peak, Some((name, at)));
        }
    }

    fn held(&self, what: Held) -> u64 {
        self.held.values().filter(|(kind, _)| *kind == what).map(|(_, bytes)| bytes).sum()
    }
}

impl Recorder {
    fn finish(&self, at: &'static Location<'static>) -> Plan {
        let mut seen = self.seen.take();
        let stats = meta_stats();
        let given: u64 = seen.inputs.values().sum();
        let [peak, system] = [stats.peak_bytes, stats.system_bytes].map(|bytes| bytes.max(0) as u64 + given);
        seen.memory.iter_mut().for_each(|bytes| *bytes += given);
        let [parameters, gradients, state] =
            [Held::Parameter, Held::Gradient, Held::State].map(|what| seen.held(what));
        let mut rows: Vec<PlannedOp> = seen.rows.drain().map(|(_, row)| row).collect();
        sorted::sort(&mut rows, &|a, b| {
            (b.flops, b.bytes, a.name, a.at.line()) < (a.flops, a.bytes, b.name, b.at.line())
        });
        let flops = |backward: bool| {
            let of = rows.iter().filter(|row| row.is_backward == backward);
            of.map(|row| row.flops).sum()
        };
        Plan {
            forward_flops: flops(false),
            backward_flops: flops(true),
            parameters,
            gradients,
            state,
            activations: seen.activations.unwrap_or(peak - given - self.before),
            before: self.before + given,
            peak,
            process: system,
            peak_at: seen.peak_at.unwrap_or(("nothing", at)),
            rows,
            memory: seen.memory,
            backward: seen.backward,
        }
    }
}

impl Plan {
    /// The FLOPs of the step.
    pub fn flops(&self) -> u64 {
        self.forward_flops + self.backward_flops
    }

    /// The rows with one for all layers that call an op from one line, those with the most FLOPs first.
    fn by_line(&self) -> Vec<PlannedOp> {
        let mut all: Vec<PlannedOp> = Vec::new();
        for row in &self.rows {
            let same = |other: &&mut PlannedOp| {
                (other.is_backward, other.name, other.at) == (row.is_backward, row.name, row.at)
            };
            match all.iter_mut().find(same) {
                Some(sum) => {
                    (sum.calls, sum.flops) = (sum.calls + row.calls, sum.flops + row.flops);
                    (sum.bytes, sum.layer) = (sum.bytes + row.bytes, None);
                }
                None => all.push(row.clone()),
            }
        }
        sorted::sort(&mut all, &|a, b| b.flops < a.flops);
        all
    }

    /// The memory over the ops of the step as a picture. Needs the feature `pictures`.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let model = on_device(Device::Meta, || Linear::new(("in", 1000), ("out", 1000)))?;
    /// let x = on_device(Device::Meta, || Tensor::zeros([("N", 64), ("in", 1000)]))?;
    /// let plan = namegrad::plan(|| model.forward(&x)?.relu()?.sum(..)?.backward())?;
    /// assert!(plan.chart().to_svg()?.contains("backward"));
    /// # Ok::<(), Error>(())
    /// ```
    #[cfg(feature = "pictures")]
    pub fn chart(&self) -> crate::pictures::Chart {
        let end = self.memory.len();
        let (backward, after) = self.backward.unwrap_or((end, end));
        let mut chart = crate::pictures::Chart::new("Memory of a step").x_label("op").y_label("MiB");
        for (name, from, to) in
            [("forward", 0, backward), ("backward", backward, after), ("after", after, end)]
        {
            // Each line begins where the one before ends.
            let points =
                (from.saturating_sub(1)..to).map(|at| (at, self.memory[at] as f64 / f64::from(1 << 20)));
            if from < to {
                chart = chart.line(name, points);
            }
        }
        chart
    }
}

/// The rows of the table for each of FLOPs and bytes.
const SHOWN: usize = 8;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.flops();
        writeln!(
            f,
            "{} FLOPs: {} forward, {} backward",
            count(all),
            count(self.forward_flops),
            count(self.backward_flops)
        )?;
        let lines = [
            ("parameters", self.parameters),
            ("gradients", self.gradients),
            ("optimizer state", self.state),
            ("activations", self.activations),
            ("before the step", self.before),
            ("peak", self.peak),
            ("process", self.process),
        ];
        for (name, bytes) in lines {
            writeln!(f, "  {name:<16} {:>10}", size(bytes))?;
        }
        let (op, at) = self.peak_at;
        writeln!(f, "  the peak is at {op}, {}:{}", at.file(), at.line())?;
        let head = ["calls", "FLOPs", "share", "bytes", "line and layer"];
        let heading = |title: &str| {
            let [calls, flops, share, bytes, line] = head;
            format!("{title:<32} {calls:>8} {flops:>8} {share:>7} {bytes:>10}  {line}")
        };
        write!(f, "{}", heading("most FLOPs"))?;
        let mut rows = self.by_line();
        for row in rows.iter().filter(|row| row.flops > 0).take(SHOWN) {
            row.write(f, all)?;
        }
        sorted::sort(&mut rows, &|a, b| b.bytes < a.bytes);
        write!(f, "\n{}", heading("most bytes"))?;
        for row in rows.iter().filter(|row| row.bytes > 0).take(SHOWN) {
            row.write(f, all)?;
        }
        Ok(())
    }
}

impl PlannedOp {
    fn write(&self, f: &mut fmt::Formatter<'_>, all: u64) -> fmt::Result {
        let name = format!("  {}{}", self.name, if self.is_backward { ", backward" } else { "" });
        let share = percent(self.flops as f64 / all.max(1) as f64);
        let (flops, bytes) = (count(self.flops), size(self.bytes));
        write!(f, "\n{name:<32} {:>8} {flops:>8} {share:>7} {bytes:>10}  ", self.calls)?;
        write!(f, "{}:{}", self.at.file(), self.at.line())?;
        self.layer.as_ref().map_or(Ok(()), |layer| write!(f, " in {layer}"))
    }
}

/// A number of FLOPs as people read it: `1.23 T`.
fn count(flops: u64) -> String {
    let mut number = flops as f64;
    for unit in ["", " k", " M", " G", " T", " P"] {
        if number < 1000.0 {
            return if unit.is_empty() { format!("{flops}") } else { format!("{number:.3}{unit}") };
        }
        number /= 1000.0;
    }
    format!("{number:.3} E")
}
