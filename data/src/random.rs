//! Random numbers that depend on a seed and on where they are used, and on nothing else.

use namegrad_core::random::Generator;
use namegrad_core::{NamedTensor, Result};
use namegrad_io::sorted::list_of;

/// A seed for use number `number` of `seed`.
///
/// # Source
/// The output function of SplitMix64: Steele, Lea, Flood, *Fast splittable pseudorandom number generators*
/// (OOPSLA 2014).
pub(crate) fn derived(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The numbers `0..n` in random order.
pub(crate) fn permutation(n: usize, seed: u64, number: u64) -> Result<Vec<usize>> {
    let order = Generator::from_seed(derived(seed, number)).scope(|| NamedTensor::randperm(n))?;
    let order = order.as_slice::<i64>()?;
    Ok(list_of(n, &mut |at| order[at] as usize))
}

/// `n` numbers that are uniform in `[0, 1)`.
pub(crate) fn uniform(n: usize, seed: u64, number: u64) -> Result<Vec<f64>> {
    let words =
        Generator::from_seed(derived(seed, number)).scope(|| NamedTensor::randint(0, 1 << 53, [n]))?;
    let words = words.as_slice::<i64>()?;
    Ok(list_of(n, &mut |at| words[at] as f64 / (1u64 << 53) as f64))
}

/// A seed from the default generator.
pub(crate) fn drawn_seed() -> Result<u64> {
    Ok(NamedTensor::randint(0, i64::MAX, [1])?.as_slice::<i64>()?[0] as u64)
}
