//! [`plan`]: what a rank computes, holds and sends in a step, found out without the other ranks.

use crate::backend::{Reduction, Transfer};
use crate::traffic::{self, Note};
use namegrad::autograd::{Observed, Observer, Section, SectionKind, observe_by, running_layer};
use namegrad::prelude::*;
use namegrad::train::Plan;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

/// Plans a step of one rank: what it would compute and hold, as [`namegrad::plan`] tells it, and what it would
/// send, by kind of exchange, axis and line.
///
/// With [`Group::pretend`](crate::Group::pretend), this process plans for any number of ranks alone. All ranks
/// have parts of the same sizes, so the plan is that of each.
///
/// # Examples
/// A model of 7 billion parameters on 1,024 ranks: 8 parts of each batch, and 128 parts of each layer.
/// ```
/// use namegrad::prelude::*;
/// use namegrad_dist::{Group, Machine, Mesh, plan};
/// let mesh = Mesh::on(&Group::pretend(1024)?, [("data", 8), ("model", 128)])?
///     .shard([("N", "data"), ("heads", "model"), ("feedforward", "model")])?
///     .zero(1, "data")?;
///
/// let layer = TransformerEncoderLayer::builder(("embed", 4096), ("heads", 128), "time");
/// let layer = layer.dim_feedforward(16_384);
/// let model = on_device(Device::Meta, || TransformerEncoder::new(layer, 35))?;
/// let whole: usize = model.parameters().iter().map(|parameter| parameter.numel()).sum();
/// mesh.split(&model)?;
/// let mut optimizer = AdamW::new(model.parameters())?;
/// let x = on_device(Device::Meta, || Tensor::zeros([("N", 32), ("time", 2048), ("embed", 4096)]))?;
/// let x = mesh.part(&x)?;
///
/// let plan = plan(|| {
///     optimizer.zero_grad();
///     mesh.scope(|| model.forward(&x)?.square()?.mean(..)?.backward())?;
///     optimizer.step()
/// })?;
/// println!("{plan}");
/// assert!(whole > 7_000_000_000);
/// assert!(plan.step.parameters < 4 * whole as u64 / 1000);
/// assert_eq!(plan.step.state, 2 * plan.step.parameters);
///
/// // 10^14 FLOPs a second; messages take 5 µs, and a byte 1 / 50 GB/s.
/// let times = plan.times(&Machine::new(1e14).network(5e-6, 2e-11));
/// println!("{times}");
/// assert!(times.exchange > times.along[0].1 && times.compute > 0.0);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Those of the step; [`ErrorKind::Unsupported`] if it needs elements.
#[track_caller]
pub fn plan<R>(mut step: impl FnMut() -> Result<R>) -> Result<RankPlan> {
    let at = Location::caller();
    let table = namegrad::plan(&mut step)?;
    let recorder = Rc::new(Recorder { at, seen: RefCell::default() });
    traffic::noted(|| {
        let run = || on_device(Device::Meta, || step().map(drop));
        observe_by(recorder.clone(), run)?;
        recorder.assign("other", at, false);
        Ok(RankPlan { step: table, exchanges: recorder.finish() })
    })
}

/// What a rank computes, holds and sends in a step: see [`plan`]. `println!("{plan}")` prints tables.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RankPlan {
    /// What this rank computes and holds. Its parameters, gradients and states are the parts of this rank.
    pub step: Plan,
    /// What it sends: those with the most bytes come first.
    pub exchanges: Vec<Exchange>,
}

/// The exchanges of one kind along one axis that a line causes: a row of a [`RankPlan`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Exchange {
    /// The kind.
    pub kind: Transfer,
    /// The axis of the mesh, or the number of ranks of another group.
    pub axis: String,
    /// The number of ranks that take part.
    pub ranks: usize,
    /// The op that needs it, or the function that was called.
    pub op: &'static str,
    /// Whether it is in a backward pass.
    pub is_backward: bool,
    /// The line that called the op, also for a derivative.
    pub at: &'static Location<'static>,
    /// The path of the layer that called it.
    pub layer: Option<Arc<str>>,
    /// The number of exchanges.
    pub calls: u64,
    /// The bytes that this rank sends, as [`bytes_sent`](crate::Group::bytes_sent) counts them.
    pub bytes: u64,
    /// The messages that follow one another, in a ring; for a broadcast, in a tree.
    pub messages: u64,
    /// The bytes that follow one another.
    wire: u64,
}

struct Recorder {
    at: &'static Location<'static>,
    seen: RefCell<Seen>,
}

#[derive(Default)]
struct Seen {
    rows: Vec<Exchange>,
    open: Vec<Section>,
}

impl Recorder {
    /// Counts the transfers so far for this op, unless they say otherwise.
    fn assign(&self, op: &'static str, at: &'static Location<'static>, is_backward: bool) {
        let notes = traffic::take();
        let seen = &mut *self.seen.borrow_mut();
        for note in notes {
            seen.count(&note, note.op.unwrap_or(op), note.at.unwrap_or(at), is_backward);
        }
    }

    /// Counts them for the section that runs.
    fn assign_section(&self) {
        let (op, at, is_backward) = {
            let seen = self.seen.borrow();
            let is_backward = seen.open.iter().any(|section| section.kind == SectionKind::Backward);
            let section = seen.open.last().map_or(("other", self.at), |section| (section.name, section.at));
            (section.0, section.1, is_backward)
        };
        self.assign(op, at, is_backward);
    }

    fn finish(&self) -> Vec<Exchange> {
        let mut rows = self.seen.take().rows;
        rows.sort_by_key(|row| Reverse((row.bytes, row.messages)));
        rows
    }
}

impl Observer for Recorder {
    fn op(&self, op: &Observed<'_>) {
        // An exchange is an op too; what it is for comes later.
        if ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"].contains(&op.op) {
            return;
        }
        let is_backward = self.seen.borrow().open.iter().any(|section| section.kind == SectionKind::Backward);
        match is_backward {
            true => self.assign_section(),
            false => self.assign(op.op, op.at, false),
        }
    }

    fn enter(&self, section: &Section) {
        self.assign_section();
        self.seen.borrow_mut().open.push(*section);
    }

    fn leave(&self) {
        self.assign_section();
        self.seen.borrow_mut().open.pop();
    }
}

impl Seen {
    fn count(&mut self, note: &Note, op: &'static str, at: &'static Location<'static>, is_backward: bool) {
        let (axis, ranks) = note.group.clone();
        let layer = running_layer();
        let same = |row: &&mut Exchange| {
            (row.kind, row.op, row.is_backward, row.at) == (note.transfer, op, is_backward, at)
                && row.axis == axis
                && row.layer == layer
        };
        let place = match self.rows.iter_mut().find(same) {
            Some(row) => row,
            None => {
                let (calls, bytes, messages, wire) = (0, 0, 0, 0);
                let kind = note.transfer;
                let row =
                    Exchange { kind, axis, ranks, op, is_backward, at, layer, calls, bytes, messages, wire };
                self.rows.push(row);
                self.rows.last_mut().expect("a row was added")
            }
        };
        let others = ranks as u64 - 1;
        let (messages, wire) = match note.transfer {
            Transfer::AllReduce(_) => (2 * others, note.sent),
            Transfer::ReduceScatter(_) | Transfer::AllGather | Transfer::AllToAll => (others, note.sent),
            Transfer::Broadcast(_) => {
                let levels = u64::from(usize::BITS - (ranks - 1).leading_zeros());
                (levels, levels * note.given)
            }
            Transfer::Send(_) | Transfer::Receive(_) => (1, note.given),
        };
        (place.calls, place.bytes) = (place.calls + 1, place.bytes + note.sent);
        (place.messages, place.wire) = (place.messages + messages, place.wire + wire);
    }
}

/// How fast a rank computes and exchanges, for [`RankPlan::times`].
#[derive(Clone, Debug)]
pub struct Machine {
    flops: f64,
    network: (f64, f64),
    along: Vec<(String, f64, f64)>,
}

impl Machine {
    /// A machine on which a rank makes this many FLOPs a second, and messages take no time.
    pub fn new(flops: f64) -> Machine {
        Machine { flops, network: (0.0, 0.0), along: Vec::new() }
    }

    /// The seconds that a message takes, `alpha`, and each byte of it, `beta`.
    pub fn network(mut self, alpha: f64, beta: f64) -> Machine {
        self.network = (alpha, beta);
        self
    }

    /// The seconds for messages along an axis, such as one whose ranks are on one machine.
    pub fn axis(mut self, axis: &str, alpha: f64, beta: f64) -> Machine {
        self.along.push((axis.to_string(), alpha, beta));
        self
    }
}

/// How long a step takes: see [`RankPlan::times`]. `println!("{times}")` prints a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Times {
    /// The seconds for all FLOPs.
    pub compute: f64,
    /// The seconds for all exchanges.
    pub exchange: f64,
    /// The seconds for the exchanges along each axis and of each kind, the longest first.
    pub along: Vec<(String, f64)>,
}

impl Times {
    /// The seconds of the step if no exchange is hidden behind what is computed.
    pub fn step(&self) -> f64 {
        self.compute + self.exchange
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = self.step();
        write!(f, "{} for a step", duration(step))?;
        let rows = [("computing".to_string(), self.compute)].into_iter().chain(self.along.iter().cloned());
        for (name, seconds) in rows {
            write!(f, "\n  {name:<32} {:>10} {:>6.1} %", duration(seconds), 100.0 * seconds / step)?;
        }
        Ok(())
    }
}

impl RankPlan {
    /// The bytes that this rank sends in a step.
    pub fn bytes_sent(&self) -> u64 {
        self.exchanges.iter().map(|exchange| exchange.bytes).sum()
    }

    /// How long the step takes on a machine, by `FLOPs / flops` and `alpha · messages + beta · bytes`: an
    /// all-reduce in a ring of `n` ranks is `2 (n - 1)` messages of an `n`-th of the bytes.
    pub fn times(&self, machine: &Machine) -> Times {
        let mut along: Vec<(String, f64)> = Vec::new();
        for exchange in &self.exchanges {
            let own = machine.along.iter().find(|(axis, ..)| *axis == exchange.axis);
            let (alpha, beta) = own.map_or(machine.network, |(_, alpha, beta)| (*alpha, *beta));
            let seconds = alpha * exchange.messages as f64 + beta * exchange.wire as f64;
            add(&mut along, exchange.along(), seconds, |all, own| all + own);
        }
        along.sort_by(|a, b| b.1.total_cmp(&a.1));
        let exchange = along.iter().map(|(_, seconds)| seconds).sum();
        Times { compute: self.step.flops() as f64 / machine.flops, exchange, along }
    }
}

/// Adds to what has this name.
fn add<T: Copy>(all: &mut Vec<(String, T)>, name: String, own: T, sum: impl Fn(T, T) -> T) {
    match all.iter_mut().find(|(other, _)| *other == name) {
        Some((_, before)) => *before = sum(*before, own),
        None => all.push((name, own)),
    }
}

impl Exchange {
    /// The kind in words.
    fn name(&self) -> &'static str {
        match self.kind {
            Transfer::AllReduce(Reduction::Max) => "all_reduce, Max",
            Transfer::AllReduce(Reduction::Min) => "all_reduce, Min",
            Transfer::AllReduce(_) => "all_reduce",
            Transfer::ReduceScatter(_) => "reduce_scatter",
            Transfer::AllGather => "all_gather",
            Transfer::AllToAll => "all_to_all",
            Transfer::Broadcast(_) => "broadcast",
            Transfer::Send(_) => "send",
            Transfer::Receive(_) => "receive",
        }
    }

    fn along(&self) -> String {
        format!("{} along {}", self.name(), self.axis)
    }
}

/// The rows of the table of exchanges.
const SHOWN: usize = 12;

impl fmt::Display for RankPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.bytes_sent();
        write!(f, "{}\nsends {}", self.step, size(all))?;
        let mut along: Vec<(String, (u64, u64, u64))> = Vec::new();
        for own in &self.exchanges {
            let counts = (own.calls, own.bytes, own.messages);
            add(&mut along, own.along(), counts, |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2));
        }
        along.sort_by_key(|(_, (_, bytes, _))| Reverse(*bytes));
        write!(f, "\n{:<32} {:>8} {:>10} {:>9}", "by kind and axis", "calls", "bytes", "messages")?;
        for (name, (calls, bytes, messages)) in along {
            write!(f, "\n  {name:<30} {calls:>8} {:>10} {messages:>9}", size(bytes))?;
        }
        let (mut rows, title): (Vec<Exchange>, _) = (Vec::new(), "most bytes sent");
        for own in &self.exchanges {
            let same = |row: &&mut Exchange| {
                (row.op, row.is_backward, row.at, row.along())
                    == (own.op, own.is_backward, own.at, own.along())
            };
            match rows.iter_mut().find(same) {
                Some(row) => {
                    (row.calls, row.bytes, row.layer) = (row.calls + own.calls, row.bytes + own.bytes, None);
                }
                None => rows.push(own.clone()),
            }
        }
        rows.sort_by_key(|row| Reverse(row.bytes));
        write!(f, "\n{title:<32} {:>8} {:>10} {:>7}  kind, line and layer", "calls", "bytes", "share")?;
        for row in rows.iter().take(SHOWN) {
            let name = format!("  {}{}", row.op, if row.is_backward { ", backward" } else { "" });
            let share = 100.0 * row.bytes as f64 / all.max(1) as f64;
            write!(f, "\n{name:<32} {:>8} {:>10} {share:>5.1} %", row.calls, size(row.bytes))?;
            write!(f, "  {}, {}:{}", row.along(), row.at.file(), row.at.line())?;
            row.layer.as_ref().map_or(Ok(()), |layer| write!(f, " in {layer}"))?;
        }
        Ok(())
    }
}

/// Bytes as people read them.
fn size(bytes: u64) -> String {
    let mut number = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if number < 1024.0 || unit == "TiB" {
            return if unit == "B" { format!("{bytes} B") } else { format!("{number:.1} {unit}") };
        }
        number /= 1024.0;
    }
    unreachable!("the last unit has no end")
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} µs", s * 1e6),
    }
}
