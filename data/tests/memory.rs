//! Data is in memory once. This is the only test of its process, so it can measure that.

use namegrad::data::{Dataset, Loader, TensorDataset};
use namegrad::memory;
use namegrad::prelude::*;

#[test]
fn a_split_shares_the_tensors() -> Result<()> {
    let x = Tensor::rand([("N", 100_000), ("feature", 16)])?;
    memory::reset_peak();
    let before = memory::stats().live_bytes;
    let data = TensorDataset::new(x)?;
    let [train, test] = data.random_split([0.9, 0.1], 0)?;
    let loader = Loader::builder(train).batch_size(64).shuffle(true).build()?;
    for batch in loader.iter().take(20) {
        assert_eq!(batch?.size("N")?, 64);
    }
    assert_eq!(test.len(), 10_000);
    // Less than a quarter of the data: permutations and batches.
    let peak = memory::stats().peak_bytes - before;
    assert!(peak < 100_000 * 16, "{peak} bytes");
    Ok(())
}
