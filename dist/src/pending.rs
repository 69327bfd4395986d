//! [`Pending`], an exchange that goes on while the program computes.

use crate::backend::Work;
use crate::group::Group;
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
        let Pending { work, finish, group, at } = self;
        let mut received = None;
        for work in work {
            received = Some(finished(work, &group).map_err(|error| error.at(at))?);
        }
        finish(received.expect("an exchange has a transfer")).map_err(|error| error.at(at))
    }
}

/// What a transfer has received, once it has ended. After an error, the end of the program waits for nobody.
#[track_caller]
pub(crate) fn finished(mut work: Box<dyn Work>, group: &Group) -> Result<NamedTensor> {
    let (started, patience) = (Instant::now(), group.patience());
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
        if waited > patience {
            group.leave();
            let message = format!("waited {} s for the other ranks", patience.as_secs_f64());
            return Err(Error::new(ErrorKind::Io, "Group", message)
                .with_repair("group.timeout(Duration::from_secs(3600)), if a rank has more to do"));
        }
        match waited < Duration::from_millis(1) {
            true => thread::yield_now(),
            false => thread::sleep((waited / 16).min(Duration::from_micros(200))),
        }
    }
    Ok(work.into_received())
}
