//! Data is in memory once. These tests run one after another in a process of their own, so they can measure
//! that.

use flate2::{Compression, read::GzEncoder};
use namegrad::data::{Dataset, LabeledImages, Loader, TensorDataset, idx};
use namegrad::memory;
use namegrad::prelude::*;
use std::io::Read;

#[test]
fn in_a_process_of_its_own() {
    namegrad_tests::run_alone("memory::");
}

#[test]
#[ignore = "run by `in_a_process_of_its_own`"]
fn a_split_shares_the_tensors() -> Result<()> {
    manual_seed(1);
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

#[test]
#[ignore = "run by `in_a_process_of_its_own`"]
fn images_are_in_memory_once() -> Result<()> {
    const COUNT: usize = 20_000;
    let folder = std::env::temp_dir().join(format!("namegrad-data-memory-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (images, labels) = (folder.join("images"), folder.join("labels"));
    let header = |sizes: &[usize]| {
        let sizes = sizes.iter().flat_map(|size| (*size as u32).to_be_bytes());
        [0, 0, 8, sizes.clone().count() as u8 / 4].into_iter().chain(sizes).collect::<Vec<u8>>()
    };
    std::fs::write(&images, [header(&[COUNT, 28, 28]), vec![7; COUNT * 784]].concat()).unwrap();
    std::fs::write(&labels, [header(&[COUNT]), vec![1; COUNT]].concat()).unwrap();
    memory::reset_peak();
    let before = memory::stats().live_bytes;
    let data = LabeledImages::load(&images, &labels)?;
    let [train, _] = data.random_split([0.5, 0.5], 0)?;
    let loader = Loader::builder(train).batch_size(64).shuffle(true).workers(2).build()?;
    for batch in loader.iter() {
        batch?;
    }
    // The images in `u8` once, labels, and some batches in `f32`.
    let peak = memory::stats().peak_bytes - before;
    assert!(peak < COUNT * 784 * 5 / 4, "{peak} bytes");
    std::fs::remove_dir_all(folder).unwrap();
    Ok(())
}

#[test]
#[ignore = "run by `in_a_process_of_its_own`"]
fn a_header_takes_no_memory_for_what_is_not_there() {
    // These many bytes could unpack to what the header says, but do not.
    let file = [&[0, 0, 8, 3, 0, 0, 0xea, 0x60, 0, 0, 0, 28, 0, 0, 0, 28][..], &[7; 60_000]].concat();
    let mut packed = Vec::new();
    GzEncoder::new(&file[..], Compression::none()).read_to_end(&mut packed).unwrap();
    memory::reset_peak();
    let before = memory::stats().live_bytes;
    let error = idx::from_bytes(packed).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Format);
    assert_eq!(
        error.message(),
        "the bytes: truncated: its header says [60000, 28, 28] of uint8, but there are 60000 bytes after it"
    );
    let peak = memory::stats().peak_bytes - before;
    assert!(peak < 1 << 20, "{peak} bytes");
}
