//! Batches of MNIST: W13, shuffled, 64 images a batch, in `f32` from 0 to 1, with 0, 2 and 4 workers. The
//! time is that of a batch.
//!
//! The four files are in the folder `mnist` of `NAMEGRAD_DATA`, by default `../shared/data`. Without them
//! there are no rows.

use crate::harness::{Bench, Work};
use namegrad::data::{Dataset, Loader, Mnist};
use namegrad::prelude::*;
use std::path::PathBuf;

const BATCH: usize = 64;

fn mnist() -> Result<Option<Mnist>> {
    let folder = std::env::var_os("NAMEGRAD_DATA").map_or_else(|| "../shared/data".into(), PathBuf::from);
    let folder = folder.join("mnist");
    if folder.is_dir() { Mnist::load(folder).map(Some) } else { Ok(None) }
}

fn loader<D>(data: D, workers: usize) -> Result<Loader<(Tensor, Tensor)>>
where
    D: Dataset<Sample = (Tensor, i64)> + 'static,
{
    Loader::builder(data).batch_size(BATCH).shuffle(true).workers(workers).build()
}

/// Goes through an epoch.
fn epoch(loader: &Loader<(Tensor, Tensor)>) -> Result<usize> {
    loader.iter().try_fold(0, |count, batch| Ok(count + batch?.1.numel()))
}

pub(crate) fn all(bench: &Bench) -> Result<()> {
    if !bench.wants("W13.") {
        return Ok(());
    }
    let Some(mnist) = mnist()? else { return Ok(()) };
    let batches = mnist.train.len().div_ceil(BATCH);
    for workers in [0, 2, 4] {
        let whole = loader(mnist.train.clone(), workers)?;
        bench.case(&format!("W13.mnist.{workers}"), Work::Operations(batches), || epoch(&whole));
        // Image by image, as for your own data set.
        let single = loader(mnist.train.clone().map(Ok), workers)?;
        bench.case(&format!("W13.single.{workers}"), Work::Operations(batches), || epoch(&single));
    }
    Ok(())
}

/// Prints the peak of memory of an epoch with two workers.
pub(crate) fn memory(bench: &Bench) -> Result<()> {
    if let Some(mnist) = mnist()? {
        epoch(&loader(mnist.train, 2)?)?;
    }
    bench.print_memory("W13");
    Ok(())
}
