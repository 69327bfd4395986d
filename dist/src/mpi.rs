//! [`Mpi`], the backend on MPI. All transfers are nonblocking ones of MPI, so that no call waits: a rank can
//! report a timeout, and calls of several threads are made one after another.

use crate::backend::{Backend, Reduction, Transfer, Work};
use half::{bf16, f16};
use mpi::environment::{Universe, initialize_with_threading};
use mpi::ffi;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::{AsRaw, Communicator};
use mpi::{Rank, Threading};
use namegrad::core::{DType, NamedTensor};
use namegrad::{Error, ErrorKind, Result};
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The processes of a communicator.
pub(crate) struct Mpi {
    communicator: SimpleCommunicator,
    rank: usize,
    size: usize,
    /// The numbers of its processes among all.
    members: Vec<Rank>,
    session: Arc<Session>,
}

/// MPI, which ends when the last group and the last transfer are dropped.
struct Session {
    /// All processes, for words of those that have waited in vain.
    words: SimpleCommunicator,
    /// The processes that share a smaller group with this one, and those that make no more calls.
    peers: Mutex<(Vec<Rank>, Vec<Rank>)>,
    _universe: Universe,
    /// Whether the ranks have lost each other, so that no transfer may be waited for.
    is_abandoned: AtomicBool,
}

// SAFETY: a communicator can be used by any thread, one at a time, which `one_call` ensures.
unsafe impl Send for Session {}
// SAFETY: the same.
unsafe impl Sync for Session {}
// SAFETY: the same.
unsafe impl Send for Mpi {}
// SAFETY: the same.
unsafe impl Sync for Mpi {}

/// One call of MPI at a time.
fn one_call() -> MutexGuard<'static, ()> {
    static CALLS: Mutex<()> = Mutex::new(());
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mpi {
    /// All processes that `mpirun` has started.
    #[track_caller]
    pub(crate) fn world() -> Result<Mpi> {
        const OP: &str = "Group::world";
        let Some((universe, threads)) = initialize_with_threading(Threading::Serialized) else {
            let message = "MPI was initialized by other code, or it has ended with the last group";
            return Err(Error::new(ErrorKind::Unsupported, OP, message)
                .with_repair("namegrad_dist::run(|group| ..), with all that the ranks do inside of it"));
        };
        if threads < Threading::Serialized {
            let message = "this MPI library does not allow calls from several threads";
            return Err(Error::new(ErrorKind::Unsupported, OP, message));
        }
        let (world, is_abandoned) = (universe.world(), AtomicBool::new(false));
        let words = world.duplicate();
        Mpi::of(
            world,
            Arc::new(Session { words, peers: Mutex::default(), _universe: universe, is_abandoned }),
        )
    }

    /// The processes of a communicator, whose calls then return errors. MPI's default is to end the process.
    #[track_caller]
    fn of(communicator: SimpleCommunicator, session: Arc<Session>) -> Result<Mpi> {
        // SAFETY: the communicator and the predefined handler are valid.
        let code = unsafe { ffi::MPI_Comm_set_errhandler(communicator.as_raw(), ffi::RSMPI_ERRORS_RETURN) };
        checked("MPI_Comm_set_errhandler", code)?;
        let (rank, size) = (communicator.rank() as usize, communicator.size() as usize);
        let own: Vec<Rank> = (0..size as Rank).collect();
        let mut members = own.clone();
        // SAFETY: the groups are those of valid communicators, and the lists are as long as the count says.
        unsafe {
            let mut groups = [ffi::RSMPI_GROUP_NULL; 2];
            let [of_own, of_all] = &mut groups;
            ffi::MPI_Comm_group(communicator.as_raw(), &raw mut *of_own);
            ffi::MPI_Comm_group(session.words.as_raw(), &raw mut *of_all);
            let (count, from, to) = (size as c_int, own.as_ptr().cast_mut(), members.as_mut_ptr());
            ffi::MPI_Group_translate_ranks(*of_own, count, from, *of_all, to);
            groups.iter_mut().for_each(|group| {
                ffi::MPI_Group_free(group);
            });
        }
        if size < session.words.size() as usize {
            let others = members.iter().filter(|member| **member != session.words.rank());
            session.peers().0.extend(others);
        }
        Ok(Mpi { communicator, rank, size, members, session })
    }
}

impl Backend for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn start(
        &self,
        transfer: Transfer,
        sent: NamedTensor,
        mut received: NamedTensor,
    ) -> Result<Box<dyn Work>> {
        let Mpi { rank, size, .. } = *self;
        let (from, datatype) = (sent.data_ptr().cast::<c_void>(), datatype(sent.dtype()));
        let is_root = transfer == Transfer::Broadcast(rank);
        if is_root {
            received = sent.clone();
        }
        let to = if is_root { from.cast_mut() } else { elements_of(&mut received)? };
        let [whole, part] = [sent.numel(), sent.numel() / size].map(count_of);
        let (whole, part, of_received) = (whole?, part?, count_of(received.numel())?);
        let communicator = self.communicator.as_raw();
        // SAFETY: a constant of the library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        let _one = one_call();
        // SAFETY: the buffers are dense and as long as the counts say; the work owns them until the request has
        // ended. `sent` may be shared, but a shared buffer is never written to. The root of a broadcast only
        // reads its buffer.
        let (name, code) = unsafe {
            let request = &raw mut request;
            match transfer {
                Transfer::AllReduce(reduction) => (
                    "MPI_Iallreduce",
                    ffi::MPI_Iallreduce(from, to, whole, datatype, op(reduction), communicator, request),
                ),
                Transfer::ReduceScatter(reduction) => (
                    "MPI_Ireduce_scatter_block",
                    ffi::MPI_Ireduce_scatter_block(
                        from,
                        to,
                        of_received,
                        datatype,
                        op(reduction),
                        communicator,
                        request,
                    ),
                ),
                Transfer::AllGather => (
                    "MPI_Iallgather",
                    ffi::MPI_Iallgather(from, whole, datatype, to, whole, datatype, communicator, request),
                ),
                Transfer::AllToAll => (
                    "MPI_Ialltoall",
                    ffi::MPI_Ialltoall(from, part, datatype, to, part, datatype, communicator, request),
                ),
                Transfer::Broadcast(root) => (
                    "MPI_Ibcast",
                    ffi::MPI_Ibcast(to, of_received, datatype, root as Rank, communicator, request),
                ),
                Transfer::Send(to) => (
                    "MPI_Isend",
                    ffi::MPI_Isend(from, whole, datatype, to as Rank, TAG, communicator, request),
                ),
                Transfer::Receive(root) => (
                    "MPI_Irecv",
                    ffi::MPI_Irecv(to, of_received, datatype, root as Rank, TAG, communicator, request),
                ),
            }
        };
        checked(name, code)?;
        let session = self.session.clone();
        Ok(Box::new(Request { request, buffers: Some((sent, received)), session }))
    }

    fn split(&self, color: usize) -> Result<Box<dyn Backend>> {
        let color = Color::with_value(count_of(color)?);
        let _one = one_call();
        let Some(communicator) = self.communicator.split_by_color(color) else {
            return Err(Error::new(ErrorKind::Io, "Group::split", "MPI_Comm_split gave no communicator"));
        };
        Ok(Box::new(Mpi::of(communicator, self.session.clone())?))
    }

    fn abort(&self) -> ! {
        self.communicator.abort(1)
    }

    fn abandon(&self) {
        self.session.is_abandoned.store(true, Ordering::Relaxed);
        std::mem::forget(self.session.clone()); // without MPI_Finalize, which waits for all ranks
    }

    fn is_given_up(&self) -> bool {
        self.session.speaker(TAG).is_some()
    }

    fn say_end(&self) {
        let mut peers = std::mem::take(&mut self.session.peers().0);
        peers.sort_unstable();
        peers.dedup();
        peers.into_iter().for_each(|peer| self.session.say(&[], END, peer));
    }

    fn has_ended(&self) -> bool {
        while let Some(from) = self.session.speaker(END) {
            if self.session.heard(&mut [], END, from).is_err() {
                break;
            }
            self.session.peers().1.push(from);
        }
        self.session.peers().1.iter().any(|ended| self.members.contains(ended))
    }

    fn last_words(&self, own: &str) -> Vec<Option<String>> {
        let words = &self.session.words;
        let (rank, count) = (words.rank() as usize, words.size() as usize);
        let mut all = vec![None; count];
        all[rank] = Some(own.to_string());
        let mut text = own.as_bytes().to_vec();
        text.resize(WORDS, b' ');
        let text = text.leak(); // the messages may never arrive
        (0..count).filter(|to| *to != rank).for_each(|to| self.session.say(text, TAG, to as Rank));
        let started = Instant::now();
        while started.elapsed() < GRACE && all.contains(&None) {
            let Some(from) = self.session.speaker(TAG) else {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            };
            let mut text = vec![0_u8; WORDS];
            if self.session.heard(&mut text, TAG, from).is_err() {
                break;
            }
            all[from as usize] = Some(String::from_utf8_lossy(&text).trim_end().to_string());
        }
        all
    }
}

/// The bytes of the words of a process that has waited in vain.
const WORDS: usize = 512;

/// How long it waits for the words of the others.
const GRACE: Duration = Duration::from_secs(2);

impl Session {
    fn peers(&self) -> MutexGuard<'_, (Vec<Rank>, Vec<Rank>)> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to send words, and does not wait.
    fn say(&self, text: &'static [u8], tag: c_int, to: Rank) {
        let _one = one_call();
        // SAFETY: the buffer lives forever, and nobody changes it; the request is not used again. An error is
        // one of a process that hears nothing.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let (from, length) = (text.as_ptr().cast(), text.len() as c_int);
            let words = self.words.as_raw();
            ffi::MPI_Isend(from, length, ffi::RSMPI_UINT8_T, to, tag, words, &raw mut request);
        }
    }

    /// Receives words that have arrived.
    fn heard(&self, text: &mut [u8], tag: c_int, from: Rank) -> Result<()> {
        let _one = one_call();
        // SAFETY: the buffer is as long as all messages with the tag.
        let code = unsafe {
            let (to, length) = (text.as_mut_ptr().cast(), text.len() as c_int);
            let status = ffi::RSMPI_STATUS_IGNORE;
            ffi::MPI_Recv(to, length, ffi::RSMPI_UINT8_T, from, tag, self.words.as_raw(), status)
        };
        checked("MPI_Recv", code)
    }

    /// A process whose words with a tag have arrived.
    fn speaker(&self, tag: c_int) -> Option<Rank> {
        let _one = one_call();
        let (mut has_come, mut status) = (0, std::mem::MaybeUninit::<ffi::MPI_Status>::zeroed());
        // SAFETY: the communicator is valid, and the status is written if there is a message.
        unsafe {
            let (any, to) = (ffi::RSMPI_ANY_SOURCE, status.as_mut_ptr());
            let code = ffi::MPI_Iprobe(any, tag, self.words.as_raw(), &raw mut has_come, to);
            (code == ffi::MPI_SUCCESS as c_int && has_come != 0).then(|| status.assume_init().MPI_SOURCE)
        }
    }
}

/// The tag of all messages between two ranks, which arrive in their order.
const TAG: c_int = 0;

/// The tag of the word that a process makes no more calls.
const END: c_int = 1;

/// A transfer that goes on, with its buffers.
struct Request {
    request: ffi::MPI_Request,
    buffers: Option<(NamedTensor, NamedTensor)>,
    session: Arc<Session>,
}

// SAFETY: a request can be used by any thread, one at a time, which `one_call` ensures.
unsafe impl Send for Request {}

impl Work for Request {
    fn is_done(&mut self) -> Result<bool> {
        let mut done = 0;
        let _one = one_call();
        // SAFETY: the request is that of this transfer; one that has ended is the null request, which is done.
        let code = unsafe { ffi::MPI_Test(&mut self.request, &mut done, ffi::RSMPI_STATUS_IGNORE) };
        checked("MPI_Test", code)?;
        Ok(done != 0)
    }

    fn into_received(mut self: Box<Self>) -> NamedTensor {
        let (_, received) = self.buffers.take().expect("the buffers are there until this call");
        received
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if self.buffers.is_none() {
            return;
        }
        while !std::thread::panicking() && !self.session.is_abandoned.load(Ordering::Relaxed) {
            match self.is_done() {
                Ok(true) => return,
                Ok(false) => std::thread::yield_now(),
                Err(_) => break,
            }
        }
        // The transfer may still write, and waiting for ranks that have failed would be forever.
        std::mem::forget(self.buffers.take());
    }
}

/// An error unless a call of MPI has succeeded.
#[track_caller]
fn checked(call: &'static str, code: c_int) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = [0_u8; ffi::MPI_MAX_ERROR_STRING as usize];
    let mut length = 0;
    // SAFETY: the text has the length that the library asks for.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast::<c_char>(), &mut length) };
    let text = String::from_utf8_lossy(&text[..(length as usize).min(text.len())]);
    Err(Error::new(ErrorKind::Io, call, text))
}

/// A number of elements as MPI counts them.
#[track_caller]
fn count_of(count: usize) -> Result<c_int> {
    c_int::try_from(count).map_err(|_| {
        let message = format!("{count} elements in one transfer; MPI takes at most {}", c_int::MAX);
        Error::new(ErrorKind::Unsupported, "Group", message).with_repair("x.chunk(n, dim)?, part by part")
    })
}

fn datatype(dtype: DType) -> ffi::MPI_Datatype {
    // SAFETY: constants of the library.
    unsafe {
        match dtype {
            DType::Bool | DType::U8 => ffi::RSMPI_UINT8_T,
            DType::I8 => ffi::RSMPI_INT8_T,
            DType::I16 => ffi::RSMPI_INT16_T,
            DType::I32 => ffi::RSMPI_INT32_T,
            DType::I64 => ffi::RSMPI_INT64_T,
            // Moved, but never reduced.
            DType::F16 | DType::BF16 => ffi::RSMPI_UINT16_T,
            DType::F32 => ffi::RSMPI_FLOAT,
            DType::F64 => ffi::RSMPI_DOUBLE,
        }
    }
}

fn op(reduction: Reduction) -> ffi::MPI_Op {
    // SAFETY: constants of the library.
    unsafe {
        match reduction {
            Reduction::Sum | Reduction::Mean => ffi::RSMPI_SUM,
            Reduction::Min => ffi::RSMPI_MIN,
            Reduction::Max => ffi::RSMPI_MAX,
            Reduction::Product => ffi::RSMPI_PROD,
        }
    }
}

/// The elements of a tensor, for writing.
fn elements_of(x: &mut NamedTensor) -> Result<*mut c_void> {
    Ok(match x.dtype() {
        DType::Bool => x.as_mut_slice::<bool>()?.as_mut_ptr().cast(),
        DType::U8 => x.as_mut_slice::<u8>()?.as_mut_ptr().cast(),
        DType::I8 => x.as_mut_slice::<i8>()?.as_mut_ptr().cast(),
        DType::I16 => x.as_mut_slice::<i16>()?.as_mut_ptr().cast(),
        DType::I32 => x.as_mut_slice::<i32>()?.as_mut_ptr().cast(),
        DType::I64 => x.as_mut_slice::<i64>()?.as_mut_ptr().cast(),
        DType::F16 => x.as_mut_slice::<f16>()?.as_mut_ptr().cast(),
        DType::BF16 => x.as_mut_slice::<bf16>()?.as_mut_ptr().cast(),
        DType::F32 => x.as_mut_slice::<f32>()?.as_mut_ptr().cast(),
        DType::F64 => x.as_mut_slice::<f64>()?.as_mut_ptr().cast(),
    })
}
