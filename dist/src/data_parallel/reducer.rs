//! [`Reducer`]: the buckets of a model, and where they are in a backward pass.

use crate::backend::Reduction;
use crate::group::Group;
use crate::pending::Pending;
use crate::traffic;
use namegrad::autograd::HookHandle;
use namegrad::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) struct Reducer {
    group: Group,
    /// The same ranks with messages of their own, so that those of buckets and of comparisons never meet.
    lane: Group,
    /// The parameters in the order in which they are sent, with their paths.
    parameters: Vec<(String, Parameter)>,
    buckets: Vec<Bucket>,
    buffers: Vec<Buffer>,
    pass: Mutex<Pass>,
}

/// Gradients that are sent together.
struct Bucket {
    first: usize,
    count: usize,
    /// The dtype of the message: `f64`, or `f32` for all others.
    dtype: DType,
}

/// A backward pass, from its first gradient to its end.
struct Pass {
    has_arrived: Vec<bool>,
    /// How many gradients each bucket still waits for.
    missing: Vec<usize>,
    /// The buckets that were sent, from the first.
    sent: Vec<Pending>,
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
        let pass = Mutex::new(Pass::new(&buckets, parameters.len()));
        let buffers = buffers.into_iter().map(|(_, buffer)| buffer).collect();
        Ok(Reducer { group: group.clone(), lane, parameters, buckets, buffers, pass })
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

    /// Sends the buckets that a gradient completes, in their order, and moves those on that are on their way.
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
        let bucket = self.buckets.partition_point(|bucket| bucket.first + bucket.count <= number);
        pass.missing[bucket] -= 1;
        while pass.sent.len() < self.buckets.len() && pass.missing[pass.sent.len()] == 0 {
            self.send_next(&mut pass)?;
        }
        for bucket in &mut pass.sent {
            bucket.is_done()?;
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
            self.group.check("the backward pass of a DataParallel model")?;
        }
        while pass.sent.len() < self.buckets.len() {
            self.send_next(pass)?;
        }
        for (bucket, sent) in self.buckets.iter().zip(std::mem::take(&mut pass.sent)) {
            self.receive(bucket, &sent.wait()?)?;
        }
        let Pass { weight, is_paused, ended, .. } = *pass;
        *pass =
            Pass { weight, is_paused, ended: ended + 1, ..Pass::new(&self.buckets, self.parameters.len()) };
        self.send_buffers()
    }

    /// Sends the next bucket: the gradients, for each whether there is one, and a 1, all times the weight of
    /// this rank.
    fn send_next(&self, pass: &mut Pass) -> Result<()> {
        let _sends = traffic::in_op("DataParallel");
        let bucket = &self.buckets[pass.sent.len()];
        let mut parts = Vec::with_capacity(bucket.count + 1);
        let mut counts = Vec::with_capacity(bucket.count + 1);
        for (_, parameter) in self.members(bucket) {
            let grad = parameter.grad().filter(|_| pass.weight != 0.0);
            counts.push(if grad.is_some() { 1.0 } else { 0.0 });
            parts.push(match grad {
                Some(grad) => grad.detach().rename(None)?.reshape([parameter.numel()])?.to(bucket.dtype)?,
                None => TensorOptions::new().dtype(bucket.dtype).zeros([parameter.numel()])?,
            });
        }
        counts.push(1.0);
        parts.push(Tensor::new(counts)?.to(bucket.dtype)?);
        let mut message = Tensor::cat(parts, 0)?;
        if pass.weight != 1.0 {
            message = message.mul(pass.weight)?;
        }
        pass.sent.push(self.lane.start_all_reduce(&message, Reduction::Sum)?);
        Ok(())
    }

    /// Sets the gradients of a bucket from the sums over all ranks.
    fn receive(&self, bucket: &Bucket, sums: &Tensor) -> Result<()> {
        let counts = match sums.device() {
            Device::Meta => vec![1.0; bucket.count + 1],
            _ => sums.narrow(0, sums.numel() - bucket.count - 1, bucket.count + 1)?.to_vec::<f64>()?,
        };
        let (whole, mut start) = (counts[bucket.count], 0);
        for ((_, parameter), count) in self.members(bucket).iter().zip(counts) {
            let numel = parameter.numel();
            if count > 0.0 {
                let mean = sums.narrow(0, start, numel)?.div(whole)?;
                let sizes = parameter.shape().sizes;
                parameter.set_grad(Some(mean.to(parameter.dtype())?.reshape(sizes.as_slice())?))?;
            }
            start += numel;
        }
        Ok(())
    }

    fn members(&self, bucket: &Bucket) -> &[(String, Parameter)] {
        &self.parameters[bucket.first..bucket.first + bucket.count]
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
            missing: buckets.iter().map(|bucket| bucket.count).collect(),
            sent: Vec::new(),
            weight: 1.0,
            is_paused: false,
            ended: 0,
        }
    }
}

/// Runs of parameters of about `bytes` each.
fn buckets(parameters: &[(String, Parameter)], bytes: usize) -> Vec<Bucket> {
    let (mut buckets, mut filled) = (Vec::<Bucket>::new(), 0);
    for (number, (_, parameter)) in parameters.iter().enumerate() {
        let dtype = wire(parameter.dtype());
        let own = parameter.numel() * dtype.itemsize();
        match buckets.last_mut() {
            Some(bucket) if bucket.dtype == dtype && filled + own <= bytes => {
                bucket.count += 1;
                filled += own;
            }
            _ => {
                buckets.push(Bucket { first: number, count: 1, dtype });
                filled = own;
            }
        }
    }
    buckets
}
