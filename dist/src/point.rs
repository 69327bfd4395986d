//! Messages between two ranks. A header of fixed length with the names, sizes and dtype comes first, so that
//! the receiver needs to know nothing.

use crate::backend::Transfer;
use crate::collective::without_gradient;
use crate::group::{Group, room};
use crate::pending::{Pending, finished};
use namegrad::core::{DType, NamedTensor};
use namegrad::prelude::*;
use std::panic::Location;

/// The bytes of a header.
const HEADER: usize = 512;

/// # Messages between two ranks
impl Group {
    /// Sends a tensor to another rank, which [receives](Self::receive) it.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::Group;
    /// let group = Group::world()?;
    /// if group.size() > 1 && group.rank() == 0 {
    ///     group.send(&Tensor::ones([("C", 3)])?, 1)?;
    /// } else if group.rank() == 1 {
    ///     assert_eq!(group.receive(0)?, Tensor::ones([("C", 3)])?);
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if there is no such rank or it is this one; [`ErrorKind::Autograd`] if the tensor
    /// requires a gradient; [`ErrorKind::Io`] if the other rank does not receive it before the timeout.
    #[track_caller]
    pub fn send(&self, x: &Tensor, to: usize) -> Result<()> {
        self.start_send(x, to)?.value().map(drop)
    }

    /// Starts a [`send`](Self::send).
    ///
    /// # Errors
    /// Same as [`send`](Self::send).
    #[track_caller]
    pub fn start_send(&self, x: &Tensor, to: usize) -> Result<Pending> {
        self.check_other("send", to)?;
        without_gradient("send", x)?;
        if !self.is_pretended() {
            x.value().check_elements("send")?;
        }
        let sent = x.value().contiguous()?;
        let header = header(&sent)?;
        let mut work = Vec::with_capacity(2);
        for part in [header, sent.clone()] {
            let nothing = room(part.dtype(), [0])?;
            work.push(self.start(Transfer::Send(to), part, nothing)?);
        }
        let finish = Box::new(move |_| Ok(sent));
        Ok(Pending { work, finish, group: self.clone(), op: "send", at: Location::caller() })
    }

    /// The tensor that another rank [sends](Self::send), with its names, sizes and dtype.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if there is no such rank or it is this one; [`ErrorKind::Io`] if it sends nothing
    /// before the timeout.
    #[track_caller]
    pub fn receive(&self, from: usize) -> Result<Tensor> {
        self.start_receive(from)?.wait()
    }

    /// Starts a [`receive`](Self::receive). The elements begin to move with [`Pending::wait`].
    ///
    /// # Errors
    /// Same as [`receive`](Self::receive).
    #[track_caller]
    pub fn start_receive(&self, from: usize) -> Result<Pending> {
        self.check_other("receive", from)?;
        let (nothing, header) = (room(DType::U8, [0])?, room(DType::U8, [HEADER])?);
        let work = vec![self.start(Transfer::Receive(from), nothing, header)?];
        let (group, at) = (self.clone(), Location::caller());
        let finish = Box::new(move |header: NamedTensor| {
            let received = described(&header)?;
            let names = received.names().clone();
            let work = group.start(Transfer::Receive(from), room(received.dtype(), [0])?, received)?;
            Ok(finished(work, &group, &|| ("receive".into(), at))?.with_names(names))
        });
        Ok(Pending { work, finish, group: self.clone(), op: "receive", at: Location::caller() })
    }

    #[track_caller]
    fn check_other(&self, op: &'static str, rank: usize) -> Result<()> {
        Error::ensure(rank < self.size() && rank != self.rank(), ErrorKind::Value, op, || {
            format!("rank {rank} is not another of the {} ranks; this is rank {}", self.size(), self.rank())
        })
    }
}

/// The header of a tensor: its dtype, then the size and name of each dim.
#[track_caller]
fn header(x: &NamedTensor) -> Result<NamedTensor> {
    let mut text = x.dtype().to_string();
    for (dim, size) in x.sizes().iter().enumerate() {
        let name = x.name(dim).map(|name| name.to_string()).unwrap_or_default();
        text.push_str(&format!(" {size},{name}"));
    }
    let mut bytes = text.into_bytes();
    if bytes.len() > HEADER {
        let message = format!("the names of the dims have more than {HEADER} bytes with the sizes");
        return Err(Error::new(ErrorKind::Unsupported, "send", message)
            .with_operands([x.shape()])
            .with_repair("x.rename(None)?"));
    }
    bytes.resize(HEADER, b' ');
    NamedTensor::from_slice(&bytes, [HEADER])
}

/// A tensor as a header says, whose elements are to be received.
fn described(header: &NamedTensor) -> Result<NamedTensor> {
    let text = String::from_utf8_lossy(header.as_slice::<u8>()?).into_owned();
    let wrong = || Error::new(ErrorKind::Format, "receive", format!("not the header of a tensor: {text:?}"));
    let mut words = text.split_whitespace();
    let dtype = words.next().and_then(DType::from_torch_name).ok_or_else(wrong)?;
    let (mut sizes, mut names) = (Vec::new(), Vec::new());
    for word in words {
        let (size, name) = word.split_once(',').ok_or_else(wrong)?;
        sizes.push(size.parse::<usize>().map_err(|_| wrong())?);
        names.push((!name.is_empty()).then_some(name));
    }
    let x = TensorOptions::new().dtype(dtype).empty(sizes)?;
    Ok(x.rename(names)?.into_value())
}
