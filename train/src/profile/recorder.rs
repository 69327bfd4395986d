//! The observer that measures. Each thread has its own record.

use super::{Profile, Row, RowKind};
use namegrad_autograd::{ForThread, Observed, Observer, Section, SectionKind, running_layer};
use namegrad_core::memory::allocated_bytes;
use namegrad_io::sorted;
use std::collections::HashMap;
use std::panic::Location;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The number of events that are kept for the trace of a thread. The table has all of them.
const MOST_EVENTS: usize = 1_000_000;

/// Something that ran: a bar in the trace.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) key: Key,
    /// Since the start of the profile.
    pub(super) begin: Duration,
    pub(super) total: Duration,
    pub(super) bytes: u64,
}

/// Measures a thread.
pub(super) struct Recorder {
    all: Arc<Collected>,
    record: Arc<Mutex<ThreadRecord>>,
}

/// The records of all threads.
pub(super) struct Collected {
    start: Mark,
    threads: Mutex<Vec<Arc<Mutex<ThreadRecord>>>>,
}

/// A moment, with the bytes that were allocated until then.
#[derive(Clone, Copy)]
struct Mark {
    time: Instant,
    bytes: u64,
}

impl Mark {
    fn now() -> Mark {
        let bytes = allocated_bytes(); // first, so that it is not measured
        Mark { time: Instant::now(), bytes }
    }
}

/// The measurements of a thread.
struct ThreadRecord {
    start: Instant,
    /// The start of the current op.
    started: Option<Mark>,
    /// The end of the event before.
    last: Mark,
    /// The sections that have not ended.
    open: Vec<Open>,
    sums: HashMap<Key, RowSums>,
    events: Vec<Event>,
    dropped: u64,
    /// The time of measuring itself.
    cost: Duration,
}

/// What a row is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) kind: RowKind,
    pub(super) name: &'static str,
    pub(super) at: &'static Location<'static>,
    /// The path of the layer.
    pub(super) layer: Option<Arc<str>>,
}

/// A section that has not ended.
struct Open {
    section: Section,
    begin: Mark,
    /// The time of other rows, and of measuring, in between.
    inner: Duration,
    inner_bytes: u64,
}

#[derive(Clone, Copy, Default)]
struct RowSums {
    calls: u64,
    total: Duration,
    own: Duration,
    bytes: u64,
}

impl Recorder {
    pub(super) fn new() -> (Rc<Recorder>, Arc<Collected>) {
        let all = Arc::new(Collected { start: Mark::now(), threads: Mutex::default() });
        (Rc::new(Recorder::of(all.clone())), all)
    }

    /// A recorder of another thread.
    fn of(all: Arc<Collected>) -> Recorder {
        let record = Arc::new(Mutex::new(ThreadRecord {
            start: all.start.time,
            started: None,
            last: Mark::now(),
            open: Vec::new(),
            sums: HashMap::new(),
            events: Vec::new(),
            dropped: 0,
            cost: Duration::ZERO,
        }));
        locked(&all.threads).push(record.clone());
        Recorder { all, record }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observer for Recorder {
    fn start(&self) {
        let begin = Instant::now();
        let mut record = locked(&self.record);
        let mark = record.measured(begin);
        record.started = Some(mark);
    }

    fn op(&self, op: &Observed<'_>) {
        let end = Mark::now();
        let mut record = locked(&self.record);
        let begin = record.started.take().unwrap_or(record.last);
        record.op(op, begin, end);
        record.last = record.measured(end.time);
    }

    fn enter(&self, section: &Section) {
        let entered = Instant::now();
        let mut record = locked(&self.record);
        record.started = None;
        let begin = record.measured(entered);
        record.open.push(Open { section: *section, begin, inner: Duration::ZERO, inner_bytes: 0 });
        record.last = begin;
    }

    fn leave(&self) {
        let end = Mark::now();
        let mut record = locked(&self.record);
        record.started = None;
        if let Some(open) = record.open.pop() {
            record.section(&open, end);
        }
        record.last = record.measured(end.time);
    }

    fn for_thread(&self) -> Option<ForThread> {
        let all = self.all.clone();
        Some(Box::new(move || Rc::new(Recorder::of(all))))
    }
}

impl ThreadRecord {
    /// Counts the time of measuring since `begin`, which belongs to no row. Returns the moment when it ended.
    fn measured(&mut self, begin: Instant) -> Mark {
        let end = Mark::now();
        let cost = end.time - begin;
        self.cost += cost;
        if let Some(open) = self.open.last_mut() {
            open.inner += cost;
        }
        end
    }

    fn op(&mut self, op: &Observed<'_>, begin: Mark, end: Mark) {
        let (total, bytes) = (end.time - begin.time, end.bytes.saturating_sub(begin.bytes));
        let key = Key { kind: RowKind::Forward, name: op.op, at: op.at, layer: running_layer() };
        self.keep(&key, begin, total, bytes);
        // The ops of a derivative are a part of it.
        if self.open.last().is_some_and(|open| open.section.kind == SectionKind::Derivative) {
            return;
        }
        self.count(key, total, total, bytes);
        self.nest(total, bytes);
    }

    fn section(&mut self, open: &Open, end: Mark) {
        let Section { kind, name, at } = open.section;
        let kind = match kind {
            SectionKind::Backward | SectionKind::Derivative => RowKind::Backward,
            _ => RowKind::Span,
        };
        let (total, bytes) = (end.time - open.begin.time, end.bytes.saturating_sub(open.begin.bytes));
        let key = Key { kind, name, at, layer: running_layer() };
        self.keep(&key, open.begin, total, bytes);
        let own = total.saturating_sub(open.inner);
        self.count(key, total, own, bytes.saturating_sub(open.inner_bytes));
        self.nest(total, bytes);
    }

    fn count(&mut self, key: Key, total: Duration, own: Duration, bytes: u64) {
        let sum = self.sums.entry(key).or_default();
        sum.calls += 1;
        sum.total += total;
        sum.own += own;
        sum.bytes += bytes;
    }

    /// Takes the time of a row from the section around it.
    fn nest(&mut self, total: Duration, bytes: u64) {
        if let Some(open) = self.open.last_mut() {
            open.inner += total;
            open.inner_bytes += bytes;
        }
    }

    fn keep(&mut self, key: &Key, begin: Mark, total: Duration, bytes: u64) {
        match self.events.len() < MOST_EVENTS {
            true => {
                let begin = begin.time - self.start;
                self.events.push(Event { key: key.clone(), begin, total, bytes });
            }
            false => self.dropped += 1,
        }
    }
}

impl Collected {
    /// The profile, which ends now. A thread that is still running can go on, unmeasured.
    pub(super) fn finish(&self, at: &'static Location<'static>) -> Profile {
        let end = Mark::now();
        let total = end.time - self.start.time;
        let allocated = end.bytes.saturating_sub(self.start.bytes);
        let mut profile = Profile { total, allocated, rows: Vec::new(), threads: Vec::new(), dropped: 0 };
        let share = |own: Duration| own.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
        for (thread, record) in locked(&self.threads).iter().enumerate() {
            let mut record = locked(record);
            for (Key { kind, name, at, layer }, sum) in record.sums.drain() {
                let RowSums { calls, total, own, bytes } = sum;
                profile.rows.push(Row {
                    kind,
                    name,
                    at,
                    layer,
                    thread,
                    calls,
                    total,
                    own,
                    share: share(own),
                    bytes,
                });
            }
            profile.threads.push(std::mem::take(&mut record.events));
            profile.dropped += record.dropped;
            if thread > 0 {
                continue;
            }
            let known: Duration = profile.rows.iter().map(|row| row.own).sum();
            let known_bytes: u64 = profile.rows.iter().map(|row| row.bytes).sum();
            let mut rest = |kind, name, own: Duration, bytes| {
                let (total, share) = (own, share(own));
                let (layer, calls) = (None, 1);
                profile.rows.push(Row { kind, name, at, layer, thread, calls, total, own, share, bytes });
            };
            rest(RowKind::Profile, "profiling", record.cost, 0);
            let outside = total.saturating_sub(known + record.cost);
            rest(RowKind::Outside, "outside of ops", outside, allocated.saturating_sub(known_bytes));
        }
        sorted::sort(&mut profile.rows, &|a, b| {
            (a.thread, b.own, a.kind, a.name) < (b.thread, a.own, b.kind, b.name)
        });
        profile
    }
}
