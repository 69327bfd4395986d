//! [`update_batch_norm`]: running statistics, computed again from data.

use super::*;
use namegrad_autograd::no_grad;
use namegrad_nn::{Buffer, Entry, averaging_statistics};

/// Computes the running statistics of all normalizations in a model from data:
/// `torch.optim.swa_utils.update_bn`.
///
/// They are reset, then `forward` runs with each batch in training mode, without gradients. The statistics
/// are the averages of those of all batches, whatever the momentum of the layers. Afterwards, all layers are
/// in the mode that they were in.
///
/// A model without running statistics stays as it is, and `forward` is not called.
///
/// ```
/// use namegrad::optim::update_batch_norm;
/// use namegrad::prelude::*;
/// let norm = BatchNorm::new(("C", 3))?;
/// let batches = [Tensor::zeros([("N", 2), ("C", 3)])?, Tensor::ones([("N", 2), ("C", 3)])?];
/// update_batch_norm(&norm, &batches, |batch| norm.forward(batch))?;
/// assert_eq!(norm.running_mean().unwrap().tensor().to_vec::<f32>()?, [0.5; 3]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// The errors of `forward`; [`ErrorKind::Value`] if there are no batches. The statistics are as before then.
#[track_caller]
#[doc(alias = "update_bn")]
pub fn update_batch_norm<B, R>(
    model: &dyn Module,
    batches: impl IntoIterator<Item = B>,
    forward: impl FnMut(B) -> Result<R>,
) -> Result<()> {
    update(model, batches, forward, Location::caller())
}

pub(crate) fn update<B, R>(
    model: &dyn Module,
    batches: impl IntoIterator<Item = B>,
    mut forward: impl FnMut(B) -> Result<R>,
    caller: &'static Location<'static>,
) -> Result<()> {
    let statistics = statistics(model);
    if statistics.is_empty() {
        return Ok(());
    }
    let mut before = RestoreStatistics::new(model, &statistics);
    for (start, buffer) in &statistics {
        buffer.set(buffer.value().fill_(*start)?)?;
    }
    model.train();
    let mut count = 0;
    for batch in batches {
        averaging_statistics(|| no_grad(|| forward(batch)))?;
        count += 1;
    }
    let message = "there are no batches to compute running statistics from";
    let counted = Error::ensure(count > 0, ErrorKind::Value, "update_batch_norm", || message);
    counted.map_err(|error| error.at(caller))?;
    before.values.clear();
    Ok(())
}

/// The running statistics with the numbers that they start with.
fn statistics(model: &dyn Module) -> Vec<(f64, Buffer)> {
    let starts = [("running_mean", 0.0), ("running_var", 1.0), ("num_batches_tracked", 0.0)];
    let mut found = Vec::new();
    for (path, buffer) in model.named_buffers() {
        let (layer, name) = path.rsplit_once('.').unwrap_or(("", &path));
        if let Some((_, start)) = starts.iter().find(|(known, _)| *known == name) {
            found.push((layer.to_string(), *start, buffer));
        }
    }
    // Other layers may have a buffer with one of these names.
    let is_whole = |layer: &str| found.iter().filter(|(other, ..)| other == layer).count() == starts.len();
    let whole = found.iter().filter(|(layer, ..)| is_whole(layer));
    crate::list(whole.map(|(_, start, buffer)| (*start, buffer.clone())))
}

/// The modes of layers, and the statistics if they are not wanted. They are restored when this is dropped,
/// also after an error or a panic.
struct RestoreStatistics<'m> {
    model: &'m dyn Module,
    /// In the order of [`Module::entries`].
    modes: Vec<bool>,
    values: Vec<(Buffer, NamedTensor)>,
}

impl<'m> RestoreStatistics<'m> {
    fn new(model: &'m dyn Module, statistics: &[(f64, Buffer)]) -> RestoreStatistics<'m> {
        let values = crate::list(statistics.iter().map(|(_, buffer)| (buffer.clone(), buffer.value())));
        let mut modes = Vec::new();
        model.entries(&mut |_, entry| {
            if let Entry::Training(training) = entry {
                modes.push(training.get());
            }
        });
        RestoreStatistics { model, modes, values }
    }
}

impl Drop for RestoreStatistics<'_> {
    fn drop(&mut self) {
        let mut modes = self.modes.iter();
        self.model.entries(&mut |_, entry| {
            if let Entry::Training(training) = entry
                && let Some(mode) = modes.next()
            {
                training.set(*mode);
            }
        });
        for (buffer, value) in &self.values {
            let _ = buffer.set(value); // the same sizes, names and dtype
        }
    }
}
