//! [`profile`]: where the time of a program goes. `recorder.rs` collects, `table.rs` prints, and `trace.rs`
//! writes a Chrome trace.

mod recorder;
mod table;
mod trace;

use namegrad_autograd::{called_here, observe_by};
use recorder::{Event, Recorder};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

pub use self::table::Table;
pub(crate) use self::table::{percent, size};
pub use namegrad_autograd::span;

/// Runs `f` and measures its ops. Returns the result of `f` and the [`Profile`].
///
/// The profile has a row for each op, layer and line of your program that called it: forward, and backward,
/// where the derivative of an op counts for the line that called the op. Steps of optimizers have rows too,
/// and so has each part of the program that you give a name with [`span`].
///
/// An op in a layer counts for the line of your program that called the layer, and has the path of the layer,
/// so that the layers of a `Sequential` have rows of their own. A function that is called through a pointer,
/// such as a `fn(&Tensor) -> Result<Tensor>`, does not know that line: its ops count for the line of the layer
/// or of the span that it runs in, or else for that of `profile`. An op that is recorded with
/// [`Op`](namegrad_autograd::Op) begins where the op before it ended, because its value is computed first.
///
/// Measuring takes about half a microsecond for each op; this time has its own row. What runs on other
/// threads is only seen if they were [handed over](namegrad_autograd::hand_over).
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::profile::{Row, RowKind, profile, span};
/// let model = Linear::new(("in", 64), ("out", 8))?;
/// let mut optimizer = Sgd::new(model.parameters())?;
/// let (result, profile) = profile(|| {
///     let x = span("batch", || Tensor::randn([("N", 32), ("in", 64)]))?;
///     let loss = model.forward(&x)?.square()?.mean(..)?;
///     loss.backward()?;
///     optimizer.step()
/// });
/// result?;
/// println!("{profile}");
/// let is_square = |row: &&Row| row.name == "square" && row.kind == RowKind::Backward;
/// let square = profile.rows().iter().find(is_square).unwrap();
/// assert_eq!(square.calls, 1);
/// let shares: f64 = profile.rows().iter().map(|row| row.share).sum();
/// assert!((shares - 1.0).abs() < 1e-6);
/// # let path = std::env::temp_dir().join(format!("namegrad-doc-trace-{}.json", std::process::id()));
/// profile.chrome_trace(&path)?; // for chrome://tracing or https://ui.perfetto.dev
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn profile<R>(f: impl FnOnce() -> R) -> (R, Profile) {
    let at = Location::caller();
    let (recorder, collected) = Recorder::new();
    let _called = called_here();
    let result = observe_by(recorder, f);
    (result, collected.finish(at))
}

/// The time and memory of each op and span: see [`profile`]. `println!("{profile}")` prints a table of the
/// rows that took the most time.
#[derive(Clone, Debug)]
pub struct Profile {
    total: Duration,
    allocated: u64,
    rows: Vec<Row>,
    /// The events of each thread, in the order of their ends.
    threads: Vec<Vec<Event>>,
    /// The number of events that were not kept.
    dropped: u64,
}

/// The sum over all calls of an op in one layer from one line, or of a span.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Row {
    /// The kind: forward, backward, a span, or the rest of the time.
    pub kind: RowKind,
    /// The name of the op, of the optimizer or of the span.
    pub name: &'static str,
    /// The line that called it. For a derivative, it is the line that called the op in the forward pass.
    pub at: &'static Location<'static>,
    /// The path of the layer that called it, as in `named_parameters`. It is known after a walk over the
    /// model, such as `model.parameters()`, and in a `Sequential`.
    pub layer: Option<Arc<str>>,
    /// The thread that it ran on: 0 is that of the profile.
    pub thread: usize,
    /// The number of calls.
    pub calls: u64,
    /// The time from start to end.
    pub total: Duration,
    /// The same, without the time of other rows in between, such as ops in a span.
    pub own: Duration,
    /// `own` as a part of the time of the profile. The shares of thread 0 add up to 1.
    pub share: f64,
    /// The bytes that were allocated for tensors, without those of other rows in between.
    pub bytes: u64,
}

/// The kind of a [`Row`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RowKind {
    /// An op.
    Forward,
    /// The derivative of an op; or the backward pass itself, which walks from one to the next.
    Backward,
    /// The step of an optimizer, or another [`span`].
    Span,
    /// Everything else.
    Outside,
    /// Measuring itself.
    Profile,
}

impl Profile {
    /// The time that `f` took.
    pub fn total(&self) -> Duration {
        self.total
    }

    /// The bytes that were allocated for tensors, on all threads.
    pub fn allocated_bytes(&self) -> u64 {
        self.allocated
    }

    /// The rows: those with the most own time come first.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The rows of ops and their derivatives.
    pub fn ops(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| matches!(row.kind, RowKind::Forward | RowKind::Backward))
    }

    /// The time outside of ops and spans: of the program itself, and of functions that are not ops, such as
    /// factories and `item`.
    pub fn outside(&self) -> Duration {
        let outside = self.rows.iter().filter(|row| row.kind == RowKind::Outside);
        outside.map(|row| row.own).sum()
    }
}
