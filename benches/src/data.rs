//! Numbers that are the same in every framework: number `i` of stream `seed` is a hash of both.

use namegrad::prelude::*;

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finalizer of SplitMix64, applied to the position of the number.
fn hash(seed: u64, i: u64) -> u64 {
    let mut z = seed.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add((i + 1).wrapping_mul(GOLDEN));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A number in [0, 1), from the upper 24 bits, which is the precision of `f32`.
fn unit(seed: u64, i: u64) -> f32 {
    (hash(seed, i) >> 40) as f32 / (1 << 24) as f32
}

/// Numbers in [-scale, scale).
pub(crate) fn uniform(seed: u64, sizes: &[usize], scale: f32) -> Result<Tensor> {
    tensor(sizes, |i| (unit(seed, i) * 2.0 - 1.0) * scale)
}

/// Numbers in [0, 1).
pub(crate) fn positive(seed: u64, sizes: &[usize]) -> Result<Tensor> {
    tensor(sizes, |i| unit(seed, i))
}

/// Class indices below `classes`.
pub(crate) fn classes(seed: u64, n: usize, classes: u64) -> Result<Tensor> {
    let indices: Vec<i64> = (0..n as u64).map(|i| ((hash(seed, i) >> 33) % classes) as i64).collect();
    Tensor::from_slice(&indices, [n])
}

fn tensor(sizes: &[usize], number: impl Fn(u64) -> f32) -> Result<Tensor> {
    let numbers: Vec<f32> = (0..sizes.iter().product::<usize>() as u64).map(number).collect();
    Tensor::from_slice(&numbers, sizes)
}
