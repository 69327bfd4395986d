//! The exchanges in which all ranks take part, as ops with a derivative and as [`Pending`] ones without.

use crate::backend::{Reduction, Transfer};
use crate::group::{Group, room};
use crate::pending::Pending;
use namegrad::autograd::{Op, is_grad_enabled};
use namegrad::core::{Argument, DType, Dim, NamedTensor};
use namegrad::prelude::*;
use std::panic::Location;

/// An exchange, with the positions of its dims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Collective {
    AllReduce(Reduction),
    ReduceScatter(usize, Reduction),
    AllGather(usize),
    AllToAll { split: usize, join: usize },
    Broadcast(usize),
}
use Collective::{AllGather, AllReduce, AllToAll, Broadcast, ReduceScatter};

/// # Exchanges with a derivative
///
/// If the input requires a gradient, so does the result, and the backward pass exchanges gradients: all ranks
/// then have to make it. The gradient is that of the sum of what all ranks compute from the result.
impl Group {
    /// The tensors of all ranks, reduced by element; every rank has the result.
    ///
    /// Half types are added in `f32`. The minimum of `bool` is "all", the maximum is "any".
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::{Group, Reduction};
    /// let group = Group::world()?;
    /// let x = Tensor::ones([("C", 3)])?.requiring_grad()?;
    /// let y = group.all_reduce(&x, Reduction::Sum)?;
    /// assert_eq!(y.to_vec::<f32>()?, [group.size() as f32; 3]);
    /// y.sum(..)?.backward()?; // each rank's loss depends on each rank's x
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [group.size() as f32; 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] on all ranks if the calls differ; [`ErrorKind::DType`] for the sum of `bool` and
    /// the mean of integers; [`ErrorKind::Autograd`] for the minimum, maximum or product of a tensor that
    /// requires a gradient.
    #[track_caller]
    pub fn all_reduce(&self, x: &Tensor, reduction: Reduction) -> Result<Tensor> {
        self.run("all_reduce", AllReduce(reduction), x)
    }

    /// The tensors of all ranks, reduced by element; each rank has its part of the result along `dim`.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::{Group, Reduction};
    /// let group = Group::world()?;
    /// let x = Tensor::ones([("N", 2 * group.size()), ("C", 3)])?;
    /// let mine = group.reduce_scatter(&x, "N", Reduction::Mean)?;
    /// assert_eq!(mine, Tensor::ones([("N", 2), ("C", 3)])?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`all_reduce`](Self::all_reduce); [`ErrorKind::NameNotFound`]; [`ErrorKind::Shape`] if the size
    /// of the dim is no multiple of the number of ranks.
    #[track_caller]
    pub fn reduce_scatter(&self, x: &Tensor, dim: impl Into<Dim>, reduction: Reduction) -> Result<Tensor> {
        let dim = dim.into().resolve("reduce_scatter", x.value())?;
        self.run("reduce_scatter", ReduceScatter(dim, reduction), x)
    }

    /// The tensors of all ranks, joined along `dim` in the order of the ranks.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::Group;
    /// let group = Group::world()?;
    /// let all = group.all_gather(&Tensor::ones([("C", 3), ("N", 2)])?, "N")?;
    /// assert_eq!(all, Tensor::ones([("C", 3), ("N", 2 * group.size())])?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] on all ranks if the calls differ; [`ErrorKind::NameNotFound`].
    #[track_caller]
    pub fn all_gather(&self, x: &Tensor, dim: impl Into<Dim>) -> Result<Tensor> {
        self.run("all_gather", AllGather(dim.into().resolve("all_gather", x.value())?), x)
    }

    /// The tensor of rank `root`. The others give one with the same names, sizes and dtype.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::Group;
    /// let group = Group::world()?;
    /// let x = Tensor::full([("C", 3)], group.rank() as f64)?;
    /// assert_eq!(group.broadcast(&x, 0)?, Tensor::zeros([("C", 3)])?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] on all ranks if the calls differ or there is no such rank.
    #[track_caller]
    pub fn broadcast(&self, x: &Tensor, root: usize) -> Result<Tensor> {
        self.run("broadcast", Broadcast(root), x)
    }

    /// Sends slice `r` of dim `split` to rank `r`, and joins what comes from all ranks along dim `join`: one
    /// dim is divided among the ranks in place of another.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::Group;
    /// let group = Group::world()?;
    /// // From some positions of all heads to all positions of some heads.
    /// let x = Tensor::ones([("time", 3), ("head", 2 * group.size())])?;
    /// let y = group.all_to_all(&x, "head", "time")?;
    /// assert_eq!(y, Tensor::ones([("time", 3 * group.size()), ("head", 2)])?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] on all ranks if the calls differ; [`ErrorKind::NameNotFound`];
    /// [`ErrorKind::Shape`] if the size of `split` is no multiple of the number of ranks.
    #[track_caller]
    pub fn all_to_all(&self, x: &Tensor, split: impl Into<Dim>, join: impl Into<Dim>) -> Result<Tensor> {
        self.run("all_to_all", self.all_to_all_of(x, split.into(), join.into())?, x)
    }

    #[track_caller]
    fn all_to_all_of(&self, x: &Tensor, split: Dim, join: Dim) -> Result<Collective> {
        const OP: &str = "all_to_all";
        Ok(AllToAll { split: split.resolve(OP, x.value())?, join: join.resolve(OP, x.value())? })
    }

    /// The result of an exchange, which is recorded if `x` requires a gradient.
    #[track_caller]
    fn run(&self, op: &'static str, collective: Collective, x: &Tensor) -> Result<Tensor> {
        let is_recorded = x.requires_grad() && is_grad_enabled();
        if is_recorded && !collective.is_differentiable() {
            let message = format!("{op}({collective}) has no derivative");
            return Err(Error::new(ErrorKind::Autograd, op, message)
                .with_operands([x.shape()])
                .with_repair("x.detach()"));
        }
        let value = self.start_of(op, collective, x.value())?.value()?;
        let group = self.clone();
        Ok(Op::new(op, value).input(x, move |g, _| group.gradient(op, collective, g)).output())
    }

    /// The sum or another reduction of plain values.
    #[track_caller]
    pub(crate) fn reduced(&self, x: &NamedTensor, reduction: Reduction) -> Result<NamedTensor> {
        self.start_of("all_reduce", AllReduce(reduction), x)?.value()
    }

    /// The part of this rank of such a sum.
    #[track_caller]
    pub(crate) fn scattered(&self, x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        self.start_of("reduce_scatter", ReduceScatter(dim, Reduction::Sum), x)?.value()
    }

    /// Plain values, joined along a dim.
    #[track_caller]
    pub(crate) fn gathered(&self, x: &NamedTensor, dim: usize) -> Result<NamedTensor> {
        self.start_of("all_gather", AllGather(dim), x)?.value()
    }

    /// The gradient of the input of an exchange.
    fn gradient(&self, op: &'static str, collective: Collective, g: &Tensor) -> Result<Tensor> {
        match collective {
            AllReduce(_) => self.run(op, collective, g),
            AllGather(dim) => self.run(op, ReduceScatter(dim, Reduction::Sum), g),
            ReduceScatter(dim, Reduction::Mean) => self.run(op, AllGather(dim), g)?.div(self.size()),
            ReduceScatter(dim, _) => self.run(op, AllGather(dim), g),
            AllToAll { split, join } => self.run(op, AllToAll { split: join, join: split }, g),
            Broadcast(root) => {
                let sum = self.run(op, AllReduce(Reduction::Sum), g)?;
                if self.rank() == root { Ok(sum) } else { sum.zeros_like() }
            }
        }
    }
}

/// # Exchanges that go on
///
/// They return at once, after the comparison of the calls, and have no derivative.
impl Group {
    /// Starts an [`all_reduce`](Self::all_reduce).
    ///
    /// # Errors
    /// Same as [`all_reduce`](Self::all_reduce).
    #[track_caller]
    pub fn start_all_reduce(&self, x: &Tensor, reduction: Reduction) -> Result<Pending> {
        self.start_plain("all_reduce", AllReduce(reduction), x)
    }

    /// Starts a [`reduce_scatter`](Self::reduce_scatter).
    ///
    /// # Errors
    /// Same as [`reduce_scatter`](Self::reduce_scatter).
    #[track_caller]
    pub fn start_reduce_scatter(
        &self,
        x: &Tensor,
        dim: impl Into<Dim>,
        reduction: Reduction,
    ) -> Result<Pending> {
        let dim = dim.into().resolve("reduce_scatter", x.value())?;
        self.start_plain("reduce_scatter", ReduceScatter(dim, reduction), x)
    }

    /// Starts an [`all_gather`](Self::all_gather).
    ///
    /// # Errors
    /// Same as [`all_gather`](Self::all_gather).
    #[track_caller]
    pub fn start_all_gather(&self, x: &Tensor, dim: impl Into<Dim>) -> Result<Pending> {
        self.start_plain("all_gather", AllGather(dim.into().resolve("all_gather", x.value())?), x)
    }

    /// Starts a [`broadcast`](Self::broadcast).
    ///
    /// # Errors
    /// Same as [`broadcast`](Self::broadcast).
    #[track_caller]
    pub fn start_broadcast(&self, x: &Tensor, root: usize) -> Result<Pending> {
        self.start_plain("broadcast", Broadcast(root), x)
    }

    /// Starts an [`all_to_all`](Self::all_to_all).
    ///
    /// # Errors
    /// Same as [`all_to_all`](Self::all_to_all).
    #[track_caller]
    pub fn start_all_to_all(
        &self,
        x: &Tensor,
        split: impl Into<Dim>,
        join: impl Into<Dim>,
    ) -> Result<Pending> {
        self.start_plain("all_to_all", self.all_to_all_of(x, split.into(), join.into())?, x)
    }

    #[track_caller]
    fn start_plain(&self, op: &'static str, collective: Collective, x: &Tensor) -> Result<Pending> {
        without_gradient(op, x)?;
        self.start_of(op, collective, x.value())
    }

    #[track_caller]
    fn start_of(&self, op: &'static str, collective: Collective, x: &NamedTensor) -> Result<Pending> {
        if self.is_checked() {
            let meta = if x.device() == Device::Meta { " without elements" } else { "" };
            self.check(&format!("{op}({collective}) of {} {}{meta}", x.shape(), x.dtype()))?;
        }
        if !self.is_pretended() {
            x.check_elements(op)?;
        }
        collective.check_dtype(op, x)?;
        let (transfer, sent, sizes) = self.planned(op, collective, x)?;
        let make = || room(sent.dtype(), sizes);
        let received = if sent.device() == Device::Meta { on_device(Device::Meta, make) } else { make() }?;
        let work = vec![self.start(transfer, sent, received)?];
        let (ranks, dtype, names) = (self.size(), x.dtype(), x.names().clone());
        let finish = move |received: NamedTensor| {
            let mut y = match collective {
                AllReduce(_) | Broadcast(_) => received,
                ReduceScatter(dim, _) | AllGather(dim) => received.movedim(0, dim)?,
                AllToAll { join, .. } => {
                    // [rank, sizes]: the parts of the ranks, one after another along `join`
                    let mut sizes = received.sizes()[1..].to_vec();
                    sizes[join] *= ranks;
                    received.movedim(0, join)?.reshape(sizes)?
                }
            };
            if collective.reduction() == Some(Reduction::Mean) {
                y = y.div(ranks)?;
            }
            Ok(y.to(dtype)?.contiguous()?.with_names(names))
        };
        Ok(Pending { work, finish: Box::new(finish), group: self.clone(), op, at: Location::caller() })
    }

    /// How an exchange is one of dense parts: the transfer, what is sent, and the sizes of what is received.
    #[track_caller]
    fn planned(
        &self,
        op: &'static str,
        collective: Collective,
        x: &NamedTensor,
    ) -> Result<(Transfer, NamedTensor, Vec<usize>)> {
        let ranks = self.size();
        let has_dims = x.ndim() > 0 || matches!(collective, AllReduce(_) | Broadcast(_));
        Error::ensure(has_dims, ErrorKind::Shape, op, || "a tensor without dims has none to divide or join")
            .map_err(|error| error.with_operands([x.shape()]).with_repair("x.unsqueeze(0)?"))?;
        let x = match (collective.reduction(), x.dtype()) {
            (Some(_), DType::F16 | DType::BF16) => x.to(DType::F32)?,
            (Some(_), DType::Bool) => x.to(DType::U8)?,
            _ => x.clone(),
        };
        let unnamed = x.unnamed();
        let (transfer, sent) = match collective {
            AllReduce(reduction) => (Transfer::AllReduce(reduction), unnamed),
            Broadcast(root) => {
                Error::ensure(root < ranks, ErrorKind::Value, op, || {
                    format!("there is no rank {root} among {ranks}")
                })?;
                (Transfer::Broadcast(root), unnamed)
            }
            AllGather(dim) => (Transfer::AllGather, unnamed.movedim(dim, 0)?),
            ReduceScatter(dim, reduction) => {
                self.divided(op, &x, dim)?;
                (Transfer::ReduceScatter(reduction), unnamed.movedim(dim, 0)?)
            }
            AllToAll { split, .. } => {
                let part = self.divided(op, &x, split)?;
                let mut sizes = unnamed.sizes().to_vec();
                sizes.splice(split..=split, [ranks, part]);
                (Transfer::AllToAll, unnamed.reshape(sizes)?.movedim(split, 0)?)
            }
        };
        let mut sizes = sent.sizes().to_vec();
        match collective {
            AllGather(_) => sizes[0] *= ranks,
            ReduceScatter(..) => sizes[0] /= ranks,
            _ => {}
        }
        Ok((transfer, sent.contiguous()?, sizes))
    }
}

/// An error if a gradient would be lost.
#[track_caller]
pub(crate) fn without_gradient(op: &'static str, x: &Tensor) -> Result<()> {
    Error::ensure(
        !(x.requires_grad() && is_grad_enabled()),
        ErrorKind::Autograd,
        op,
        || "the tensor requires a gradient, which an exchange that goes on does not have",
    )
    .map_err(|error| error.with_operands([x.shape()]).with_repair("x.detach()"))
}

impl Collective {
    fn reduction(self) -> Option<Reduction> {
        match self {
            AllReduce(reduction) | ReduceScatter(_, reduction) => Some(reduction),
            _ => None,
        }
    }

    fn is_differentiable(self) -> bool {
        matches!(self.reduction(), None | Some(Reduction::Sum | Reduction::Mean))
    }

    #[track_caller]
    fn check_dtype(self, op: &'static str, x: &NamedTensor) -> Result<()> {
        let (dtype, repair) =
            (x.dtype(), "Reduction::Max, which is \"any\", or Reduction::Min, which is \"all\"");
        let (message, repair) = match self.reduction() {
            Some(Reduction::Mean) if !dtype.is_floating_point() => {
                (format!("the mean of {dtype}"), "x.to(DType::F32)?")
            }
            Some(Reduction::Sum | Reduction::Product) if dtype == DType::Bool => {
                ("bool has neither sum nor product".into(), repair)
            }
            _ => return Ok(()),
        };
        Err(Error::new(ErrorKind::DType, op, message).with_operands([x.shape()]).with_repair(repair))
    }
}

impl std::fmt::Display for Collective {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AllReduce(reduction) => write!(f, "{reduction:?}"),
            ReduceScatter(dim, reduction) => write!(f, "dim {dim}, {reduction:?}"),
            AllGather(dim) => write!(f, "dim {dim}"),
            AllToAll { split, join } => write!(f, "dims {split} and {join}"),
            Broadcast(root) => write!(f, "rank {root}"),
        }
    }
}
