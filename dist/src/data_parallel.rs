//! [`DataParallel`], a model of which every rank has a copy and computes a part of each batch.

mod courier;
mod reducer;

use crate::backend::Reduction;
use crate::group::Group;
use namegrad::autograd::{HookHandle, register_backward_end_hook};
use namegrad::nn::{Entry, Visitor};
use namegrad::prelude::*;
use reducer::Reducer;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The bytes of a bucket by default: 25 MiB, as in PyTorch.
const BUCKET: usize = 25 << 20;

/// A model of which every rank has a copy. Each rank computes the loss of its part of the batch, and the
/// gradients are averaged over the ranks while the backward pass still runs. All else is as on one process: the
/// ranks have the same gradients, so clipping, scalers, optimizers, schedules and averages do the same on all.
///
/// The wrapper has the fields, paths and methods of the model, so a checkpoint of one loads into the other.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad_dist::{DataParallel, Group};
///
/// let group = Group::world()?;
/// let model = Sequential::new().then(Linear::new(("C", 3), ("h", 8))?).then(Tanh);
/// let model = DataParallel::new(model, &group)?;
/// let mut optimizer = AdamW::builder(model.parameters()).lr(0.01).build()?;
/// let batch = Tensor::ones([("N", 4 * group.size()), ("C", 3)])?;
/// let loss = model.forward(&group.part(&batch, "N")?)?.square()?.mean(..)?;
/// optimizer.zero_grad();
/// loss.backward()?; // the gradients of the mean over the whole batch
/// optimizer.step()?;
/// # Ok::<(), Error>(())
/// ```
///
/// # What is exchanged
///
/// * [`new`](Self::new) compares paths, names, sizes and dtypes of all parameters and buffers between the
///   ranks, and gives all ranks the values of rank 0.
/// * A backward pass sums the gradients in buckets, in the reverse order of the parameters. A bucket is sent as
///   soon as its last gradient is complete: the pass is [early](BackwardOptions::early). A thread exchanges
///   the buckets meanwhile, and `backward` returns when all have arrived. A last message says how many ranks
///   have each gradient.
/// * After it, all ranks get the buffers of rank 0, such as running statistics.
/// * Once in each pass, the ranks compare that they all make one, as for other
///   [calls of a group](Group::checked).
///
/// # Rules
///
/// * A rank counts as much as any other, so the gradient is that of the mean of the losses of the ranks. That
///   is the mean over the whole batch if the parts are equally large, as those of [`Group::sampler`] are; for
///   other parts there is [`weighted`](Self::weighted).
/// * A parameter without a gradient on some ranks counts as zero there. One without a gradient on all ranks
///   keeps none.
/// * A parameter that is frozen when the wrapper is made is not exchanged, and must stay frozen.
pub struct DataParallel<M> {
    model: M,
    group: Group,
    reducer: Option<Arc<Reducer>>,
    hooks: Vec<HookHandle>,
}

impl<M: Module> DataParallel<M> {
    /// A copy of the model on every rank, with the parameters and buffers of rank 0.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] on all ranks if the models differ: the first parameter or buffer that does, and how
    /// it is on which rank.
    #[track_caller]
    pub fn new(model: M, group: &Group) -> Result<DataParallel<M>> {
        DataParallel::with_buckets(model, group, BUCKET)
    }

    /// Like [`new`](Self::new), with buckets of about `bytes`; 25 MiB by default. Small buckets are sent
    /// earlier, large ones cost fewer messages. A gradient of an eighth of it or more is a bucket of its own,
    /// which is not copied.
    ///
    /// # Errors
    /// Same as [`new`](Self::new).
    #[track_caller]
    pub fn with_buckets(model: M, group: &Group, bytes: usize) -> Result<DataParallel<M>> {
        let mut this = DataParallel { model, group: group.clone(), reducer: None, hooks: Vec::new() };
        if group.size() > 1 {
            let reducer = Arc::new(Reducer::new(&this.model, group, bytes)?);
            this.hooks = reducer.hooks()?;
            // The hooks of parameters must not keep their own parameters alive.
            let end = Arc::downgrade(&reducer);
            this.hooks.push(register_backward_end_hook(move || match end.upgrade() {
                Some(reducer) => reducer.ended(),
                None => Ok(()),
            }));
            this.reducer = Some(reducer);
        }
        Ok(this)
    }

    /// The group of the ranks.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Runs `f`, whose backward passes add gradients on each rank and exchange nothing. The next pass outside
    /// of it exchanges the sums: accumulation over several small batches.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::{DataParallel, Group};
    /// let model = DataParallel::new(Linear::new(("C", 3), ("y", 1))?, &Group::world()?)?;
    /// let loss = || model.forward(&Tensor::ones([("N", 2), ("C", 3)])?)?.mean(..)?.div(2.0);
    /// model.no_sync(|| loss()?.backward())?;
    /// loss()?.backward()?;
    /// assert_eq!(model.bias().unwrap().grad().unwrap().to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn no_sync<R>(&self, f: impl FnOnce() -> R) -> R {
        match &self.reducer {
            Some(reducer) => reducer.paused(f),
            None => f(),
        }
    }

    /// Runs `f`, which makes one backward pass for the mean loss over `samples` samples of this rank. The ranks
    /// count by their samples, so that the gradient is that of the mean over all samples, however they are
    /// divided. A rank without samples gives 0 and makes no pass.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::{DataParallel, Group};
    /// let group = Group::world()?;
    /// let model = DataParallel::new(Linear::new(("C", 3), ("y", 1))?, &group)?;
    /// let samples = if group.is_first() { 5 } else { 0 };
    /// model.weighted(samples, || match samples {
    ///     0 => Ok(()),
    ///     _ => model.forward(&Tensor::ones([("N", samples), ("C", 3)])?)?.mean(..)?.backward(),
    /// })?;
    /// assert_eq!(model.bias().unwrap().grad().unwrap().to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of `f`.
    pub fn weighted<R>(&self, samples: usize, f: impl FnOnce() -> Result<R>) -> Result<R> {
        match &self.reducer {
            Some(reducer) => reducer.weighted(samples, f),
            None => f(),
        }
    }

    /// Lets batch normalizations in training use the statistics of all ranks' parts together, with gradients.
    /// Each sends two messages forward and two backward.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::{DataParallel, Group};
    /// let model = DataParallel::new(BatchNorm::new(("C", 3))?, &Group::world()?)?.sync_batch_norm();
    /// let y = model.forward(&Tensor::randn([("N", 4), ("C", 3)])?)?;
    /// # assert_eq!(y.sizes(), [4, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn sync_batch_norm(self) -> DataParallel<M> {
        if self.group.size() > 1 {
            self.model.entries(&mut |_, entry| {
                if let Entry::Synchronized(sums) = entry {
                    let group = self.group.clone();
                    sums.set(Some(move |sum: &Tensor| group.all_reduce(sum, Reduction::Sum)));
                }
            });
        }
        self
    }
}

impl<M> Drop for DataParallel<M> {
    fn drop(&mut self) {
        self.hooks.iter().for_each(HookHandle::remove);
    }
}

/// The model, with its own methods.
impl<M> Deref for DataParallel<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.model
    }
}

impl<M: Module> ModuleFields for DataParallel<M> {
    fn fields(&self, visitor: &mut Visitor<'_>) {
        self.model.fields(visitor);
    }

    fn describe(&self) -> String {
        self.model.describe()
    }
}

impl<M: Layer<I, O>, I: ?Sized, O> Layer<I, O> for DataParallel<M> {
    #[track_caller]
    fn forward(&self, input: &I) -> Result<O> {
        self.model.forward(input)
    }
}

impl<M: Module> fmt::Display for DataParallel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.model, f)
    }
}
