//! [`Group`], the ranks that exchange tensors, its settings, and how the ranks end together.

use crate::backend::{Backend, Pretended, Single, Transfer, Work};
use crate::check;
use crate::mpi::Mpi;
use crate::pending::finished;
use crate::run::left;
use crate::traffic;
use namegrad::core::random::{GeneratorState, random_state, set_random_state};
use namegrad::core::{Argument, Dim, IntoShape, NamedTensor};
use namegrad::data::Sampler;
use namegrad::data::sampler::Distributed;
use namegrad::prelude::*;
use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How long a rank waits for the others, unless [`Group::timeout`] or [`TIMEOUT`] says otherwise: half an hour,
/// as in PyTorch.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// The call after all others.
pub(crate) const END: &str = "the end of the program";

/// The environment variable with the seconds that a rank waits for the others.
const TIMEOUT: &str = "NAMEGRAD_DIST_TIMEOUT";

#[track_caller]
fn patience_of_environment() -> Result<Duration> {
    let Some(text) = std::env::var_os(TIMEOUT) else { return Ok(PATIENCE) };
    let seconds = text.to_str().and_then(|text| text.trim().parse::<f64>().ok()).filter(|own| *own > 0.0);
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| {
        let message = format!("{TIMEOUT} is the seconds that a rank waits for the others, not {text:?}");
        Error::new(ErrorKind::Value, "Group::world", message).with_repair(format!("{TIMEOUT}=600"))
    })
}

/// Processes that exchange tensors. Each has a number, its rank. Clones are the same group.
///
/// All ranks of a group call the same functions in the same order, so one thread of a rank uses it. Before
/// data moves, the ranks compare what
/// they call, with names, sizes and dtype; if that differs, all ranks get one error that says which rank calls
/// what:
///
/// ```text
/// Group: the ranks differ: rank 0: all_reduce(Sum) of [N=2, C=3] float32 at src/main.rs:9:21;
/// ranks 1 to 3: all_reduce(Sum) of [N=2, K=3] float32 at src/main.rs:9:21
/// ```
///
/// The comparison is one all-reduce of 16 bytes; [`checked`](Self::checked) switches it off.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// use namegrad_dist::{Group, Reduction};
/// let group = Group::world()?;
/// let loss = Tensor::new(0.5 + group.rank() as f64)?;
/// let mean = group.all_reduce(&loss, Reduction::Mean)?;
/// if group.is_first() {
///     println!("loss {mean} over {} ranks", group.size());
/// }
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Group {
    shared: Arc<Shared>,
    is_checked: bool,
    patience: Duration,
}

/// What the clones of a group share.
struct Shared {
    backend: Box<dyn Backend>,
    bytes_sent: Arc<AtomicU64>,
    /// Whether the last clone waits until all ranks have ended.
    is_world: bool,
    /// Whether the other ranks do not exist.
    is_pretended: bool,
    /// The axis of a mesh that it is.
    axis: Option<String>,
    fate: Arc<Fate>,
}

/// What a group shares with its sub-groups.
#[derive(Default)]
struct Fate {
    /// Whether the ranks have ended, or lost each other.
    is_over: AtomicBool,
    /// Whether the others know that this rank makes no more calls.
    has_said_end: AtomicBool,
    /// One more than the rank that reports an error which others have too, or 0.
    speaker: AtomicUsize,
}

impl Group {
    /// All processes that `mpirun` or `srun` has started, or a group of one without them. The first call
    /// initializes MPI; it ends when the last group is dropped, and cannot begin again.
    ///
    /// Programs whose ranks can fail begin with [`run`](crate::run()) instead.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if other code has initialized MPI, if it has ended, or if the library was
    /// built without threads.
    #[track_caller]
    pub fn world() -> Result<Group> {
        static WORLD: Mutex<Weak<Shared>> = Mutex::new(Weak::new());
        let mut world = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = patience_of_environment()?;
        if let Some(shared) = world.upgrade() {
            return Ok(Group::with(shared).timeout(patience));
        }
        let shared = Arc::new(Shared::new(Box::new(Mpi::world()?), true));
        *world = Arc::downgrade(&shared);
        Ok(Group::with(shared).timeout(patience))
    }

    /// A group of this process alone, which needs no MPI.
    pub fn single() -> Group {
        Group::of(Single)
    }

    /// The group of a backend of your own.
    pub fn of(backend: impl Backend + 'static) -> Group {
        Group::with(Arc::new(Shared::new(Box::new(backend), false)))
    }

    /// A group of this many ranks of which this process is rank 0 and the others do not exist, to
    /// [`plan`](crate::plan()) for them. Exchanges of tensors without elements are counted and give such
    /// tensors.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::Group;
    /// let group = Group::pretend(1024)?;
    /// let x = on_device(Device::Meta, || Tensor::zeros([("N", 10), ("C", 1000)]))?;
    /// assert_eq!(group.all_gather(&x, "N")?.sizes(), [10_240, 1000]);
    /// assert_eq!(group.bytes_sent(), 40_000 * 1023);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] without ranks.
    #[track_caller]
    pub fn pretend(ranks: usize) -> Result<Group> {
        Error::ensure(ranks > 0, ErrorKind::Value, "Group::pretend", || "a group has at least one rank")?;
        let mut shared = Shared::new(Box::new(Pretended(ranks)), false);
        shared.is_pretended = true;
        Ok(Group::with(Arc::new(shared)))
    }

    /// Whether the other ranks do not exist.
    pub(crate) fn is_pretended(&self) -> bool {
        self.shared.is_pretended
    }

    /// What the group is called in tables and messages.
    pub(crate) fn name(&self) -> String {
        self.shared.axis.clone().unwrap_or_else(|| format!("{} ranks", self.size()))
    }

    fn with(shared: Arc<Shared>) -> Group {
        Group { shared, is_checked: true, patience: PATIENCE }
    }

    /// The number of this process in the group, from 0.
    pub fn rank(&self) -> usize {
        self.shared.backend.rank()
    }

    /// The number of processes in the group.
    pub fn size(&self) -> usize {
        self.shared.backend.size()
    }

    /// Whether this is rank 0, which writes logs and files.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// The same group, whose calls are compared between the ranks or not. Without it, ranks that call
    /// different functions wait for each other until the timeout, or get wrong numbers. All ranks choose the
    /// same.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::{Group, Reduction};
    /// let group = Group::world()?.checked(false);
    /// let sum = group.all_reduce(&Tensor::ones([2])?, Reduction::Sum)?;
    /// # assert_eq!(sum.numel(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn checked(&self, checked: bool) -> Group {
        Group { shared: self.shared.clone(), is_checked: checked, patience: self.patience }
    }

    /// The same group, which waits this long for other ranks before a call is an error on all ranks that wait,
    /// which says where each of them is. By default it is half an hour, or as many seconds as the environment
    /// variable `NAMEGRAD_DIST_TIMEOUT` says. The axes of a mesh wait as long as the group it is made of.
    pub fn timeout(&self, patience: Duration) -> Group {
        Group { shared: self.shared.clone(), is_checked: self.is_checked, patience }
    }

    pub(crate) fn is_checked(&self) -> bool {
        self.is_checked
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// The group of the ranks that give the same `color`, in the order of their ranks here.
    ///
    /// ```
    /// use namegrad_dist::Group;
    /// let world = Group::world()?;
    /// let pair = world.split(world.rank() / 2)?;
    /// assert_eq!(pair.rank(), world.rank() % 2);
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] on all ranks if one calls another function.
    #[track_caller]
    pub fn split(&self, color: usize) -> Result<Group> {
        if self.is_checked {
            self.check("split")?;
        }
        self.part_of_color(color, None)
    }

    fn part_of_color(&self, color: usize, axis: Option<String>) -> Result<Group> {
        let mut shared = Shared::new(self.shared.backend.split(color)?, false);
        (shared.fate, shared.axis) = (self.shared.fate.clone(), axis);
        Ok(Group { shared: Arc::new(shared), is_checked: self.is_checked, patience: self.patience })
    }

    /// The ranks that give the same color, of which there are `size`, as the axis of a mesh.
    #[track_caller]
    pub(crate) fn axis(&self, color: usize, size: usize, name: &str) -> Result<Group> {
        if !self.is_pretended() {
            if self.is_checked {
                self.check("split")?;
            }
            return self.part_of_color(color, Some(name.into()));
        }
        let mut shared = Shared::new(Box::new(Pretended(size)), false);
        (shared.is_pretended, shared.axis) = (true, Some(name.into()));
        Ok(Group::with(Arc::new(shared)))
    }

    /// The same ranks with messages of their own, which are not compared. Bytes are counted here.
    #[track_caller]
    pub(crate) fn lane(&self) -> Result<Group> {
        let backend = match self.is_pretended() {
            true => Box::new(Pretended(self.size())),
            false => self.shared.backend.split(0)?,
        };
        let mut shared = Shared::new(backend, false);
        (shared.is_pretended, shared.axis) = (self.is_pretended(), self.shared.axis.clone());
        shared.bytes_sent = self.shared.bytes_sent.clone();
        shared.fate = self.shared.fate.clone();
        Ok(Group { shared: Arc::new(shared), is_checked: false, patience: self.patience })
    }

    /// Waits until all ranks have called it.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] on all ranks if one calls another function.
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        self.check("barrier")
    }

    /// Runs `f` on rank 0 alone, while the others wait, and gives its result there: for files that one rank
    /// writes. If `f` fails, all ranks get its error.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::Group;
    /// let group = Group::world()?;
    /// let path = std::env::temp_dir().join(format!("namegrad-doc-first-{}", std::process::id()));
    /// group.on_first(|| Ok(std::fs::write(&path, "once")?))?;
    /// assert_eq!(std::fs::read(&path)?, b"once");
    /// # std::fs::remove_file(&path)?;
    /// let error = group.on_first(|| Ok(std::fs::read("missing")?)).unwrap_err();
    /// assert!(error.to_string().contains("rank 0: "));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of `f`, on all ranks; [`ErrorKind::Value`] for an exchange in `f`.
    #[track_caller]
    pub fn on_first<R>(&self, f: impl FnOnce() -> Result<R>) -> Result<Option<R>> {
        if self.is_checked {
            self.check("on_first")?;
        }
        let result = self.is_first().then(|| {
            let _alone = Alone(ALONE.replace(self.size() > 1));
            f()
        });
        let failed = match &result {
            Some(Err(error)) => error.to_string(),
            _ => String::new(),
        };
        let failed = self.text_of(0, &failed)?;
        match result {
            Some(Err(error)) => Err(error.context("rank 0: ")),
            Some(Ok(result)) => Ok(Some(result)),
            None if failed.is_empty() => Ok(None),
            None => Err(Error::other(format!("rank 0: {failed}"))),
        }
    }

    /// The text that a rank gives, on all ranks.
    #[track_caller]
    pub(crate) fn text_of(&self, root: usize, text: &str) -> Result<String> {
        if self.size() == 1 || self.is_pretended() {
            return Ok(text.to_string());
        }
        let at = Location::caller();
        let broadcast = |sent: NamedTensor| {
            let received = room(sent.dtype(), sent.sizes())?;
            self.transfer(Transfer::Broadcast(root), sent, received, ("on_first", at))
        };
        let length =
            broadcast(NamedTensor::from_slice(&[text.len() as i64], [1])?)?.as_slice::<i64>()?[0] as usize;
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(length, 0);
        let bytes = broadcast(NamedTensor::from_slice(&bytes, [length])?)?;
        Ok(String::from_utf8_lossy(bytes.as_slice::<u8>()?).into_owned())
    }

    /// The part of `x` that is this rank's: as many equal slices along `dim` as there are ranks.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::Group;
    /// let group = Group::world()?;
    /// let batch = Tensor::ones([("N", 4 * group.size()), ("C", 3)])?;
    /// assert_eq!(group.part(&batch, "N")?.shape().to_string(), "[N=4, C=3]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`]; [`ErrorKind::Shape`] if the size of the dim is no multiple of the number of
    /// ranks.
    #[track_caller]
    pub fn part(&self, x: &Tensor, dim: impl Into<Dim>) -> Result<Tensor> {
        const OP: &str = "Group::part";
        let dim = dim.into().resolve(OP, x.value())?;
        let size = self.divided(OP, x.value(), dim)?;
        x.narrow(dim, self.rank() * size, size)
    }

    /// The size of the part of each rank along `dim`.
    #[track_caller]
    pub(crate) fn divided(&self, op: &'static str, x: &NamedTensor, dim: usize) -> Result<usize> {
        let (size, ranks) = (x.sizes()[dim], self.size());
        if size.is_multiple_of(ranks) {
            return Ok(size / ranks);
        }
        let name = x.name(dim).map_or_else(|| format!("dim {dim}"), |name| format!("dim '{name}'"));
        let message = format!("{name} of size {size} cannot be divided among {ranks} ranks");
        Err(Error::new(ErrorKind::Shape, op, message).with_operands([x.shape()]))
    }

    /// The part of a sampler's epoch that is this rank's, for a loader with any number of workers. All loaders
    /// need the same seed.
    ///
    /// The parts are equally long: the epoch is extended with its first samples. With a data set of fewer
    /// samples than ranks, samples occur several times.
    ///
    /// ```
    /// use namegrad::data::sampler::Random;
    /// use namegrad::data::{Loader, Samples};
    /// use namegrad_dist::Group;
    /// let group = Group::world()?;
    /// let data = Samples::new((0..10).map(|n| n as f32).collect());
    /// let sampler = group.sampler(Random::new());
    /// let loader = Loader::builder(data).batch_size(5).sampler(sampler).seed(7).build()?;
    /// assert_eq!(loader.len()?, 10_usize.div_ceil(group.size()).div_ceil(5));
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    pub fn sampler<S: Sampler>(&self, of: S) -> Distributed<S> {
        Distributed::new(of, self.rank(), self.size()).expect("the rank is less than the size")
    }

    /// Gives each rank random numbers of its own, so that ranks drop different features: its seed is that of
    /// rank 0 plus the rank, and its position is that of rank 0. Call it after the model is made and, as the
    /// generator in a checkpoint is that of rank 0, again after resuming.
    ///
    /// ```
    /// use namegrad::core::random::initial_seed;
    /// use namegrad::prelude::*;
    /// use namegrad_dist::Group;
    /// let group = Group::world()?;
    /// manual_seed(7);
    /// group.spread_random_state()?;
    /// assert_eq!(initial_seed(), 7 + group.rank() as u64);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] on all ranks if one calls another function.
    #[track_caller]
    pub fn spread_random_state(&self) -> Result<()> {
        let state = random_state();
        let words = [state.seed, state.offset].map(u64::cast_signed);
        let first = self.broadcast(&Tensor::new(words)?, 0)?;
        if let [seed, offset] = first.to_vec::<i64>()?[..] {
            let seed = seed.cast_unsigned().wrapping_add(self.rank() as u64);
            set_random_state(GeneratorState { seed, offset: offset.cast_unsigned() });
        }
        Ok(())
    }

    /// The bytes that this rank has sent with the group, as the best algorithms send them: of `b` bytes, an
    /// all-reduce sends `2 b (n - 1) / n`, the others `b (n - 1) / n` or, where each rank gives a part of `b`
    /// bytes, `b (n - 1)`. Comparisons of calls are not counted.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::{Group, Reduction};
    /// let group = Group::world()?;
    /// let before = group.bytes_sent();
    /// group.all_reduce(&Tensor::ones([1200])?, Reduction::Sum)?;
    /// let n = group.size() as u64;
    /// assert_eq!(group.bytes_sent() - before, 2 * 4800 * (n - 1) / n);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn bytes_sent(&self) -> u64 {
        self.shared.bytes_sent.load(Ordering::Relaxed)
    }

    /// An error for a call that the other ranks do not make.
    #[track_caller]
    pub(crate) fn check_together(&self) -> Result<()> {
        Error::ensure(
            !ALONE.get() || self.size() == 1,
            ErrorKind::Value,
            "Group::on_first",
            || "rank 0 alone runs the function, so no other rank takes part in its exchanges",
        )
        .map_err(|error| error.with_repair("the exchange before on_first, and its result in the function"))
    }

    /// Starts a transfer, whose bytes are counted.
    #[track_caller]
    pub(crate) fn start(
        &self,
        transfer: Transfer,
        sent: NamedTensor,
        received: NamedTensor,
    ) -> Result<Box<dyn Work>> {
        self.check_together()?;
        let (bytes, ranks) = (sent.nbytes() as u64, self.size() as u64);
        let bytes = match transfer {
            Transfer::AllReduce(_) => 2 * bytes * (ranks - 1) / ranks,
            Transfer::ReduceScatter(_) | Transfer::AllToAll => bytes * (ranks - 1) / ranks,
            Transfer::AllGather => bytes * (ranks - 1),
            Transfer::Broadcast(root) if root == self.rank() => bytes * (ranks - 1),
            Transfer::Send(_) => bytes,
            Transfer::Broadcast(_) | Transfer::Receive(_) => 0,
        };
        self.shared.bytes_sent.fetch_add(bytes, Ordering::Relaxed);
        if ranks > 1 {
            traffic::note(transfer, self, sent.nbytes() as u64, bytes);
        }
        self.shared.backend.start(transfer, sent, received)
    }

    /// The result of a transfer that is not counted.
    #[track_caller]
    pub(crate) fn transfer(
        &self,
        transfer: Transfer,
        sent: NamedTensor,
        received: NamedTensor,
        (call, at): (&str, &'static Location<'static>),
    ) -> Result<NamedTensor> {
        finished(self.shared.backend.start(transfer, sent, received)?, self, &|| (call.into(), at))
    }

    /// Ends the processes of all ranks.
    pub(crate) fn abort(&self) -> ! {
        self.shared.backend.abort()
    }

    /// Remembers that the calls of the ranks differed, which all ranks know.
    pub(crate) fn lose(&self) {
        self.shared.fate.speaker.store(1, Ordering::Relaxed);
        self.leave();
    }

    /// Remembers that the ranks have lost each other: the end of the program waits for nobody.
    pub(crate) fn leave(&self) {
        self.shared.fate.is_over.store(true, Ordering::Relaxed);
        self.shared.backend.abandon();
    }

    /// The rank that reports an error which others have too.
    pub(crate) fn speaker(&self) -> Option<usize> {
        self.shared.fate.speaker.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Whether another rank no longer waits.
    pub(crate) fn is_given_up(&self) -> bool {
        self.shared.backend.is_given_up()
    }

    /// Whether another rank of the group makes no more calls.
    pub(crate) fn has_ended(&self) -> bool {
        self.shared.backend.has_ended()
    }

    /// Says that this rank makes no more calls, the first time that it is due.
    pub(crate) fn say_end_once(&self, is_due: bool) {
        if is_due && !self.shared.fate.has_said_end.swap(true, Ordering::Relaxed) {
            self.shared.backend.say_end();
        }
    }

    /// The error of a call in which this rank has waited in vain: where it and all others that wait are.
    #[cold]
    pub(crate) fn gave_up(&self, call: &str, at: &'static Location<'static>, waited: Duration) -> Error {
        let over = match &self.shared.axis {
            Some(axis) => format!("over '{axis}', "),
            None => format!("over {} ranks, ", self.size()),
        };
        let over = if call == END { String::new() } else { over };
        let own = format!("{call} {over}at {at}");
        let words = self.shared.backend.last_words(&own);
        let speaker = words.iter().position(Option::is_some).unwrap_or(0);
        self.shared.fate.speaker.store(speaker + 1, Ordering::Relaxed);
        self.leave();
        let message =
            format!("waited {:.0} s for the other ranks: {}", waited.as_secs_f64(), check::waiting(&words));
        Error::new(ErrorKind::Io, "Group", message).at(at).with_repair(format!(
            "{TIMEOUT}=3600, if a rank has more to do; otherwise the same calls on all ranks"
        ))
    }

    /// Waits until all ranks have come to the end of the program.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] on all ranks if one calls another function.
    pub(crate) fn end(&self, at: &'static Location<'static>) -> Result<()> {
        match self.shared.fate.is_over.swap(true, Ordering::Relaxed) {
            true => Ok(()),
            false => self.check_at(END, at),
        }
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group(rank {} of {})", self.rank(), self.size())
    }
}

/// The last group ends with those of the other ranks.
impl Drop for Group {
    fn drop(&mut self) {
        if self.shared.is_world && Arc::strong_count(&self.shared) == 1 && self.size() > 1 {
            left(self);
        }
    }
}

thread_local! {
    /// Whether this is rank 0 in [`Group::on_first`].
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// The former value of [`ALONE`], which comes back when this is dropped.
struct Alone(bool);

impl Drop for Alone {
    fn drop(&mut self) {
        ALONE.set(self.0);
    }
}

/// A tensor to receive elements in.
#[track_caller]
pub(crate) fn room(dtype: DType, sizes: impl IntoShape) -> Result<NamedTensor> {
    Ok(TensorOptions::new().dtype(dtype).empty(sizes)?.into_value())
}

impl Shared {
    fn new(backend: Box<dyn Backend>, is_world: bool) -> Shared {
        let (is_pretended, axis) = (false, None);
        Shared { backend, bytes_sent: Arc::default(), is_world, is_pretended, axis, fate: Arc::default() }
    }
}
