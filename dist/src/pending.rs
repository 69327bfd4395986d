//! [`Pending`], an exchange that goes on while the program computes.

use crate::backend::Work;
use crate::group::{END, Group};
use namegrad::core::NamedTensor;
use namegrad::prelude::*;
use std::panic::Location;
use std::thread;
use std::time::{Duration, Instant};

/// An exchange that was started, with its buffers. [`wait`](Self::wait) gives the result. Dropping it waits.
///
/// MPI moves messages on while one of its functions runs, so a long computation calls
/// [`is_done`](Self::is_done) now and then.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad_dist::{Group, Reduction};
/// let group = Group::world()?;
/// let pending = group.start_all_reduce(&Tensor::ones([("C", 3)])?, Reduction::Mean)?;
/// let other = Tensor::ones([100])?.exp()?; // meanwhile
/// assert_eq!(pending.wait()?, Tensor::ones([("C", 3)])?);
/// # assert_eq!(other.numel(), 100);
/// # Ok::<(), Error>(())
/// ```
#[must_use = "the result comes from `wait`"]
pub struct Pending {
    /// The transfers; the last one receives the result.
    pub(crate) work: Vec<Box<dyn Work>>,
    /// Makes the result of what was received.
    pub(crate) finish: Box<dyn FnOnce(NamedTensor) -> Result<NamedTensor> + Send>,
    pub(crate) group: Group,
    /// What was called, and where.
    pub(crate) op: &'static str,
    pub(crate) at: &'static Location<'static>,
}

impl Pending {
    /// Whether the exchange has ended. Calling it moves the exchange on.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] with the message of the library.
    pub fn is_done(&mut self) -> Result<bool> {
        for work in &mut self.work {
            if !work.is_done()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits for the end of the exchange and gives the result. What is sent gives itself.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] with the message of the library, or if the other ranks do not come before the
    /// [timeout](crate::Group::timeout).
    pub fn wait(self) -> Result<Tensor> {
        Ok(Tensor::from(self.value()?))
    }

    pub(crate) fn value(self) -> Result<NamedTensor> {
        let Pending { work, finish, group, op, at } = self;
        let mut received = None;
        for work in work {
            received = Some(finished(work, &group, &|| (op.into(), at)).map_err(|error| error.at(at))?);
        }
        finish(received.expect("an exchange has a transfer")).map_err(|error| error.at(at))
    }
}

/// What a transfer has received, once it has ended. After an error, the end of the program waits for nobody.
#[track_caller]
pub(crate) fn finished(
    mut work: Box<dyn Work>,
    group: &Group,
    call: &dyn Fn() -> (String, &'static Location<'static>),
) -> Result<NamedTensor> {
    let (started, patience) = (Instant::now(), group.patience());
    let mut asked = Duration::ZERO;
    // While a rank waits, others may need its core: it polls less often the longer it waits.
    for poll in 0_u64.. {
        if work.is_done().inspect_err(|_| group.leave())? {
            break;
        }
        if poll < 64 {
            thread::yield_now();
            continue;
        }
        let waited = started.elapsed();
        let asks = waited > asked + Duration::from_millis(100);
        if asks {
            asked = waited;
            if call().0 == END {
                // Ranks that wait for this one in another group wait in vain.
                group.say_end_once(waited > Duration::from_secs(1));
            } else if group.has_ended() {
                let (call, at) = call();
                return Err(group.gave_up(&call, at, waited));
            }
        }
        if waited > patience || asks && group.is_given_up() {
            let (call, at) = call();
            return Err(group.gave_up(&call, at, waited));
        }
        match waited < Duration::from_millis(1) {
            true => thread::yield_now(),
            false => thread::sleep((waited / 16).min(Duration::from_micros(200))),
        }
    }
    Ok(work.into_received())
}
