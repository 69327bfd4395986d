//! [`Reducer`]: the buckets of a model, and where they are in a backward pass.

use super::courier::Courier;
use crate::group::Group;
use crate::traffic;
use namegrad::autograd::HookHandle;
use namegrad::prelude::*;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) struct Reducer {
    group: Group,
    /// The same ranks with messages of their own, so that those of buckets and of comparisons never meet.
    lane: Group,
    courier: Courier,
    /// The parameters in the order in which they are sent, with their paths.
    parameters: Vec<(String, Parameter)>,
    /// In the order in which their last gradients come.
    buckets: Vec<Bucket>,
    buffers: Vec<Buffer>,
    pass: Mutex<Pass>,
    /// Where the program has made it.
    at: &'static Location<'static>,
}

/// Gradients that are sent together.
struct Bucket {
    /// The numbers of the parameters, in ascending order.
    members: Vec<usize>,
    /// The dtype of the message: `f64`, or `f32` for all others.
    dtype: DType,
}

/// A backward pass, from its first gradient to its end.
struct Pass {
    has_arrived: Vec<bool>,
    /// How many gradients each bucket still waits for.
    missing: Vec<usize>,
    /// How many buckets were sent, from the first.
    sent: usize,
    /// For each parameter that was sent, whether there was a gradient, times the weight of this rank.
    counts: Vec<f64>,
    /// How much this rank counts.
    weight: f64,
    /// Whether gradients stay on this rank.
    is_paused: bool,
    /// How many passes have ended.
    ended: u64,
}

fn wire(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

impl Reducer {
    #[track_caller]
    pub(super) fn new(model: &dyn Module, group: &Group, bytes: usize) -> Result<Reducer> {
        let version = env!("CARGO_PKG_VERSION");
        let mut description = format!("DataParallel {version} with buckets of {bytes} bytes");
        let (named, buffers) = (model.named_parameters(), model.named_buffers());
        for (path, parameter) in &named {
            let frozen = if parameter.requires_grad() { "" } else { ", frozen" };
            let (shape, dtype) = (parameter.shape(), parameter.dtype());
            description.push_str(&format!("\nparameter '{path}' {shape} {dtype}{frozen}"));
        }
        for (path, buffer) in &buffers {
            let value = buffer.value();
            description.push_str(&format!("\nbuffer '{path}' {} {}", value.shape(), value.dtype()));
        }
        group.check(&description)?;
        let lane = group.lane()?;
        for (_, parameter) in &named {
            parameter.set(lane.broadcast(&parameter.tensor().detach(), 0)?)?;
        }
        for (_, buffer) in &buffers {
            buffer.set(lane.broadcast(&buffer.tensor(), 0)?)?;
        }
        let mut parameters: Vec<(String, Parameter)> = Vec::new();
        for (path, parameter) in named.into_iter().rev() {
            if parameter.requires_grad() && !parameters.iter().any(|(_, other)| other.is(&parameter)) {
                parameters.push((path, parameter));
            }
        }
        let buckets = buckets(&parameters, bytes);
        let courier = Courier::new(&lane)?;
        let pass = Mutex::new(Pass::new(&buckets, parameters.len()));
        let buffers = buffers.into_iter().map(|(_, buffer)| buffer).collect();
        let at = Location::caller();
        Ok(Reducer { group: group.clone(), lane, courier, parameters, buckets, buffers, pass, at })
    }

    /// Hooks that tell of each gradient.
    #[track_caller]
    pub(super) fn hooks(self: &Arc<Reducer>) -> Result<Vec<HookHandle>> {
        let mut hooks = Vec::with_capacity(self.parameters.len());
        for (number, (_, parameter)) in self.parameters.iter().enumerate() {
            let reducer = Arc::downgrade(self);
            hooks.push(parameter.tensor().register_post_accumulate_grad_hook(move |_| {
                if let Some(reducer) = reducer.upgrade() {
                    reducer.arrived(number)?;
                }
                Ok(None)
            })?);
        }
        Ok(hooks)
    }

    fn pass(&self) -> MutexGuard<'_, Pass> {
        self.pass.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the buckets that a gradient completes, in their order.
    fn arrived(&self, number: usize) -> Result<()> {
        let mut pass = self.pass();
        if pass.is_paused {
            return Ok(());
        }
        if std::mem::replace(&mut pass.has_arrived[number], true) {
            let message = format!(
                "the gradient of '{}' was complete before: the parameter is used both inside and outside of a \
                 checkpoint, or an earlier backward pass has failed",
                self.parameters[number].0
            );
            return Err(Error::new(ErrorKind::Autograd, "DataParallel", message));
        }
        let bucket = self.buckets.iter().position(|bucket| bucket.members.binary_search(&number).is_ok());
        pass.missing[bucket.expect("each parameter is in a bucket")] -= 1;
        while pass.missing.get(pass.sent) == Some(&0) {
            self.send_next(&mut pass)?;
        }
        Ok(())
    }

    /// The end of a backward pass, which is perhaps one of another model.
    pub(super) fn ended(&self) -> Result<()> {
        let mut pass = self.pass();
        if pass.is_paused || !pass.has_arrived.contains(&true) {
            return Ok(());
        }
        self.finish(&mut pass)
    }

    /// Waits for the gradients of all ranks. Buckets that wait for gradients which do not come are sent too.
    fn finish(&self, pass: &mut Pass) -> Result<()> {
        if self.group.is_checked() {
            self.group.check_at("the backward pass of a DataParallel model", self.at)?;
        }
        while pass.sent < self.buckets.len() {
            self.send_next(pass)?;
        }
        let mut counts = pass.counts.clone();
        counts.push(pass.weight);
        let message = match self.courier.is_planned() {
            true => TensorOptions::new().dtype(DType::F64).device(Device::Meta).zeros([counts.len()])?,
            false => Tensor::from_slice(&counts, [counts.len()])?,
        };
        let sends = traffic::in_op("DataParallel");
        self.courier.send(vec![message], 1.0)?;
        drop(sends);
        let mut sent = self.courier.hand_over()?;
        let message = sent.pop().expect("the last message")?.wait()?;
        let counts = match message.device() {
            Device::Meta => vec![1.0; counts.len()],
            _ => message.to_vec::<f64>()?,
        };
        for (bucket, sent) in self.buckets.iter().zip(sent) {
            self.receive(bucket, sent?.wait()?, &counts)?;
        }
        let Pass { weight, is_paused, ended, .. } = *pass;
        *pass =
            Pass { weight, is_paused, ended: ended + 1, ..Pass::new(&self.buckets, self.parameters.len()) };
        self.send_buffers()
    }

    /// Sends the gradients of the next bucket, times the weight of this rank.
    fn send_next(&self, pass: &mut Pass) -> Result<()> {
        let _sends = traffic::in_op("DataParallel");
        let bucket = &self.buckets[pass.sent];
        let mut parts = Vec::with_capacity(bucket.members.len());
        for number in &bucket.members {
            let (_, parameter) = &self.parameters[*number];
            let grad = parameter.grad().filter(|_| pass.weight != 0.0);
            if grad.is_some() {
                pass.counts[*number] = pass.weight;
            }
            parts.push(match grad {
                Some(grad) => grad.detach().rename(None)?.reshape([parameter.numel()])?.to(bucket.dtype)?,
                None => TensorOptions::new().dtype(bucket.dtype).zeros([parameter.numel()])?,
            });
        }
        pass.sent += 1;
        self.courier.send(parts, pass.weight)
    }

    /// Sets the gradients of a bucket from the sums over all ranks, of which `counts` are those of the ranks
    /// that have each gradient, and of all ranks.
    fn receive(&self, bucket: &Bucket, mut sums: Tensor, counts: &[f64]) -> Result<()> {
        let (whole, is_one, mut start) = (counts[counts.len() - 1], bucket.members.len() == 1, 0);
        if is_one {
            sums.div_(whole)?;
        }
        for number in &bucket.members {
            let (_, parameter) = &self.parameters[*number];
            let numel = parameter.numel();
            if counts[*number] > 0.0 {
                let mean = if is_one { sums.clone() } else { sums.narrow(0, start, numel)?.div(whole)? };
                let sizes = parameter.shape().sizes;
                parameter.set_grad(Some(mean.to(parameter.dtype())?.reshape(sizes.as_slice())?))?;
            }
            start += numel;
        }
        Ok(())
    }

    /// Gives all ranks the buffers of rank 0, in one message for each dtype.
    fn send_buffers(&self) -> Result<()> {
        let _sends = traffic::in_op("DataParallel");
        for dtype in DType::ALL {
            let buffers: Vec<&Buffer> =
                self.buffers.iter().filter(|buffer| buffer.value().dtype() == dtype).collect();
            if buffers.is_empty() {
                continue;
            }
            let flat = buffers.iter().map(|buffer| buffer.tensor().rename(None)?.reshape([-1]));
            let message = Tensor::cat(flat.collect::<Result<Vec<_>>>()?, 0)?;
            let message = self.lane.broadcast(&message, 0)?;
            let mut start = 0;
            for buffer in buffers {
                let value = buffer.value();
                buffer.set(message.narrow(0, start, value.numel())?.reshape(value.sizes())?)?;
                start += value.numel();
            }
        }
        Ok(())
    }

    /// Runs `f`, whose gradients stay on this rank.
    pub(super) fn paused<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = std::mem::replace(&mut self.pass().is_paused, true);
        let _restored = Restored(|| self.pass().is_paused = before);
        f()
    }

    /// Runs `f`, in which this rank counts as much as its samples. If `f` makes no pass, it counts nothing.
    pub(super) fn weighted<R>(&self, samples: usize, f: impl FnOnce() -> Result<R>) -> Result<R> {
        let (before, ended) = {
            let mut pass = self.pass();
            (std::mem::replace(&mut pass.weight, samples as f64), pass.ended)
        };
        let _restored = Restored(|| self.pass().weight = before);
        let result = f()?;
        let mut pass = self.pass();
        if pass.ended == ended && !pass.is_paused {
            pass.weight = 0.0;
            self.finish(&mut pass)?;
        }
        drop(pass);
        Ok(result)
    }
}

/// Calls a function when it is dropped, also after a panic.
struct Restored<F: FnMut()>(F);

impl<F: FnMut()> Drop for Restored<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Pass {
    fn new(buckets: &[Bucket], parameters: usize) -> Pass {
        Pass {
            has_arrived: vec![false; parameters],
            missing: buckets.iter().map(|bucket| bucket.members.len()).collect(),
            sent: 0,
            counts: vec![0.0; parameters],
            weight: 1.0,
            is_paused: false,
            ended: 0,
        }
    }
}

/// Groups of parameters of about `bytes` each. A large one is alone, so that its gradient is sent without a
/// copy.
fn buckets(parameters: &[(String, Parameter)], bytes: usize) -> Vec<Bucket> {
    let (mut buckets, mut open) = (Vec::<Bucket>::new(), None::<(Bucket, usize)>);
    for (number, (_, parameter)) in parameters.iter().enumerate() {
        let dtype = wire(parameter.dtype());
        let own = parameter.numel() * dtype.itemsize();
        if own >= bytes / 8 {
            buckets.push(Bucket { members: vec![number], dtype });
            continue;
        }
        match &mut open {
            Some((bucket, filled)) if bucket.dtype == dtype && *filled + own <= bytes => {
                bucket.members.push(number);
                *filled += own;
            }
            _ => buckets
                .extend(open.replace((Bucket { members: vec![number], dtype }, own)).map(|full| full.0)),
        }
    }
    buckets.extend(open.map(|last| last.0));
    buckets.sort_by_key(|bucket| bucket.members.last().copied());
    buckets
}
