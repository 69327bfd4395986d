//! [`Backend`], what a group needs from a message-passing library, and [`Single`], a group of one process.

use namegrad::core::{Device, NamedTensor};
use namegrad::{Error, ErrorKind, Result};

/// How the elements of all ranks become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The sum divided by the number of ranks.
    Mean,
    /// The least element; of `bool`, whether all are true.
    Min,
    /// The greatest element; of `bool`, whether any is true.
    Max,
    /// The product.
    Product,
}

/// A transfer of dense elements between the ranks of a group. Part `r` of a tensor is the `r`-th of as many
/// equal runs of elements as there are ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transfer {
    /// Receives the elements of all ranks, reduced.
    AllReduce(Reduction),
    /// Receives the part of this rank, reduced.
    ReduceScatter(Reduction),
    /// Receives what each rank sends, as its part.
    AllGather,
    /// Sends part `r` to rank `r`, and receives part `r` from it.
    AllToAll,
    /// Receives what this rank sends.
    Broadcast(usize),
    /// Sends to this rank.
    Send(usize),
    /// Receives from this rank.
    Receive(usize),
}

/// The messages of one group of processes: what [`Group`](crate::Group) needs from MPI, or from another
/// library in its place.
///
/// All ranks start the same collective transfers in the same order. Half types and `bool` arrive in reductions
/// as `f32` and `u8`, and a mean as a sum.
pub trait Backend: Send + Sync {
    /// The number of this process in the group, from 0.
    fn rank(&self) -> usize;

    /// The number of processes in the group.
    fn size(&self) -> usize;

    /// Starts a transfer from `sent` to `received`: dense tensors of the same dtype, of which the work owns
    /// what it needs. Nobody else has `received`.
    ///
    /// # Errors
    /// What the library reports.
    fn start(&self, transfer: Transfer, sent: NamedTensor, received: NamedTensor) -> Result<Box<dyn Work>>;

    /// The group of the processes that give the same color, in the order of their ranks.
    ///
    /// # Errors
    /// What the library reports.
    fn split(&self, color: usize) -> Result<Box<dyn Backend>>;

    /// Ends the processes of all groups, not only this one.
    fn abort(&self) -> !;

    /// Says that the ranks have lost each other, so that the end of this process must not wait for them.
    fn abandon(&self);

    /// Whether another process, also of another group, no longer waits for the rest.
    fn is_given_up(&self) -> bool {
        false
    }

    /// Tells the processes that share a group with this one that it makes no more calls.
    fn say_end(&self) {}

    /// Whether a process of this group makes no more calls.
    fn has_ended(&self) -> bool {
        false
    }

    /// Tells all other processes where this one has waited in vain, and gives what those tell that wait too, by
    /// their number among all processes. It takes a few seconds at most.
    fn last_words(&self, own: &str) -> Vec<Option<String>> {
        let mut words = vec![None; self.size()];
        words[self.rank()] = Some(own.to_string());
        words
    }
}

/// A transfer that was started. Dropping it waits for its end.
pub trait Work: Send {
    /// Whether the transfer has ended. Calling it moves the transfer on.
    ///
    /// # Errors
    /// What the library reports.
    fn is_done(&mut self) -> Result<bool>;

    /// What was received, once the transfer has ended.
    fn into_received(self: Box<Self>) -> NamedTensor;
}

/// A group of one process, without a library: transfers give what is sent.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad_dist::{Group, Single};
/// let group = Group::of(Single);
/// let x = Tensor::ones([("N", 2)])?;
/// assert_eq!(group.all_gather(&x, "N")?, x);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Single;

impl Backend for Single {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn start(&self, _: Transfer, sent: NamedTensor, received: NamedTensor) -> Result<Box<dyn Work>> {
        Ok(Box::new(Done(sent.reshape(received.sizes())?)))
    }

    fn split(&self, _: usize) -> Result<Box<dyn Backend>> {
        Ok(Box::new(Single))
    }

    fn abort(&self) -> ! {
        std::process::exit(1)
    }

    fn abandon(&self) {}
}

/// Rank 0 of a group of this many, whose other ranks do not exist: transfers of tensors without elements give
/// such tensors.
pub(crate) struct Pretended(pub(crate) usize);

impl Backend for Pretended {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        self.0
    }

    fn start(&self, transfer: Transfer, sent: NamedTensor, received: NamedTensor) -> Result<Box<dyn Work>> {
        match (received.device(), transfer) {
            (Device::Meta, _) | (_, Transfer::Send(_)) => Ok(Box::new(Done(received))),
            (_, Transfer::Broadcast(0)) => Ok(Box::new(Done(sent))),
            _ => {
                let message = "the other ranks of a pretended group have no elements";
                Err(Error::new(ErrorKind::Unsupported, "Group", message)
                    .with_repair("namegrad_dist::plan(|| ..), or on_device(Device::Meta, || ..)"))
            }
        }
    }

    fn split(&self, _: usize) -> Result<Box<dyn Backend>> {
        let message = "the other ranks of a pretended group give no colors";
        Err(Error::new(ErrorKind::Unsupported, "split", message)
            .with_repair("Mesh::on(&group, [(\"data\", 4), (\"model\", 2)])?, whose axes are groups"))
    }

    fn abort(&self) -> ! {
        std::process::exit(1)
    }

    fn abandon(&self) {}
}

/// A transfer within one process, which has ended.
pub(crate) struct Done(pub(crate) NamedTensor);

impl Work for Done {
    fn is_done(&mut self) -> Result<bool> {
        Ok(true)
    }

    fn into_received(self: Box<Self>) -> NamedTensor {
        self.0
    }
}
