//! Philox4x32-10, a counter-based generator: a random block is a pure function of a key and a counter.
//!
//! No state is carried from one block to the next, so any thread can compute any element of a sequence
//! directly. Read `philox` first, then `Word`, which maps elements to words of blocks, then `ElementStream`.
//!
//! # Source
//! Salmon, Moraes, Dror, Shaw, *Parallel random numbers: as easy as 1, 2, 3* (SC 2011), section 3.3 and table
//! 2.

use std::convert::Infallible;

use rand::TryRng;

/// Elements are generated in groups of this size, each in one vectorized pass.
pub(super) const GROUP: usize = 64;

/// The multipliers of a round and the increments of the key (the golden ratio and `√3 - 1`, as 32-bit
/// fractions).
const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;
const LOW: u64 = 0xFFFF_FFFF;

/// The third word of a counter. Each kind of draw has its own counters, so that no two kinds share words.
#[derive(Clone, Copy)]
enum Domain {
    Words32 = 0,
    Words64 = 1,
    Stream = 2,
}

/// Four random words from a counter and a key, all in the low halves of `u64`s.
///
/// The high halves are not cleared, but masked where a product would use them. A vector multiplication of 32
/// by 32 bits ignores them anyway, so the mask costs nothing, and a round is two products, two shifts and
/// four exclusive ors for as many counters as a vector holds.
#[inline(always)]
fn philox(mut c: [u64; 4], mut key: [u32; 2]) -> [u64; 4] {
    for _ in 0..ROUNDS {
        let p0 = (c[0] & LOW) * MULTIPLIERS[0];
        let p1 = (c[2] & LOW) * MULTIPLIERS[1];
        c = [(p1 >> 32) ^ c[1] ^ u64::from(key[0]), p1, (p0 >> 32) ^ c[3] ^ u64::from(key[1]), p0];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    c
}

/// The block at `index` of a domain: four words. `step` is the position in a stream.
#[inline(always)]
fn block(seed: u64, domain: Domain, index: u64, step: u32) -> [u64; 4] {
    philox([index & LOW, index >> 32, domain as u64, u64::from(step)], halves(seed))
}

#[inline(always)]
fn halves(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

/// The random words from which elements are computed: `u32` for floats of at most 24 binary digits, `u64` for
/// `f64` and integers.
///
/// Word `i` of a seed belongs to group `i / 64`. A group consists of as many blocks as are needed for 64
/// words. To avoid shuffling vectors, it has the first word of every block, then the second word of every
/// block, and so on.
pub(crate) trait Word: Copy + Send + Sync {
    /// The 64 words of a group.
    fn group(seed: u64, group: u64) -> [Self; GROUP];

    /// Word `index`: the same as `group(seed, index / 64)[index % 64]`.
    fn at(seed: u64, index: u64) -> Self;
}

impl Word for u32 {
    #[inline(always)]
    fn group(seed: u64, group: u64) -> [Self; GROUP] {
        const BLOCKS: usize = GROUP / 4;
        let mut words = [0; GROUP];
        for i in 0..BLOCKS {
            let w = block(seed, Domain::Words32, first_block(group, BLOCKS) + i as u64, 0);
            for (lane, w) in w.into_iter().enumerate() {
                words[lane * BLOCKS + i] = w as u32;
            }
        }
        words
    }

    #[inline]
    fn at(seed: u64, index: u64) -> Self {
        let (block_index, lane) = locate(index, GROUP / 4);
        block(seed, Domain::Words32, block_index, 0)[lane] as u32
    }
}

impl Word for u64 {
    #[inline(always)]
    fn group(seed: u64, group: u64) -> [Self; GROUP] {
        const BLOCKS: usize = GROUP / 2;
        let mut words = [0; GROUP];
        for i in 0..BLOCKS {
            let w = block(seed, Domain::Words64, first_block(group, BLOCKS) + i as u64, 0);
            words[i] = join(w[0], w[1]);
            words[BLOCKS + i] = join(w[2], w[3]);
        }
        words
    }

    #[inline]
    fn at(seed: u64, index: u64) -> Self {
        let (block_index, lane) = locate(index, GROUP / 2);
        let w = block(seed, Domain::Words64, block_index, 0);
        join(w[2 * lane], w[2 * lane + 1])
    }
}

/// The first block of a group.
#[inline(always)]
fn first_block(group: u64, blocks: usize) -> u64 {
    group * blocks as u64
}

/// The block that contains word `index`, and the position in the block.
#[inline(always)]
fn locate(index: u64, blocks: usize) -> (u64, usize) {
    let (group, within) = (index / GROUP as u64, index as usize % GROUP);
    (first_block(group, blocks) + (within % blocks) as u64, within / blocks)
}

#[inline(always)]
fn join(low: u64, high: u64) -> u64 {
    (low & LOW) | (high << 32)
}

/// A generator for a single element, for samplers that need an unknown number of words.
///
/// Two elements never share a word, so rejections for one element do not affect the others. It has 2³⁴
/// words.
#[derive(Clone, Debug)]
pub(crate) struct ElementStream {
    seed: u64,
    element: u64,
    step: u32,
    words: [u32; 4],
    left: usize,
}

impl ElementStream {
    /// The stream of the element at offset `element` of `seed`.
    #[inline]
    pub(super) fn new(seed: u64, element: u64) -> Self {
        Self { seed, element, step: 0, words: [0; 4], left: 0 }
    }
}

impl TryRng for ElementStream {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        if self.left == 0 {
            self.words = block(self.seed, Domain::Stream, self.element, self.step).map(|word| word as u32);
            self.step = self.step.wrapping_add(1);
            self.left = self.words.len();
        }
        self.left -= 1;
        Ok(self.words[self.words.len() - 1 - self.left])
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let (low, high) = (self.try_next_u32()?, self.try_next_u32()?);
        Ok(join(u64::from(low), u64::from(high)))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        rand::rand_core::utils::fill_bytes_via_next_word(bytes, || self.try_next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `kat_vectors` of Random123 1.14 (D. E. Shaw Research): zeros, ones, the digits of pi.
    #[test]
    fn known_answers() {
        let words = |counter: [u32; 4], key| philox(counter.map(u64::from), key).map(|word| word as u32);
        assert_eq!(words([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(words([!0; 4], [!0; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let answer = [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1];
        assert_eq!(words(pi, [0xa409_3822, 0x299f_31d0]), answer);
    }

    fn group_is_its_words<W: Word + PartialEq + std::fmt::Debug>() {
        for group in [0, 1, 77, 1 << 40, u64::MAX / GROUP as u64] {
            for (i, word) in W::group(5 << 33, group).into_iter().enumerate() {
                assert_eq!(word, W::at(5 << 33, group * GROUP as u64 + i as u64), "group {group}, word {i}");
            }
        }
    }

    #[test]
    fn groups_are_their_words() {
        group_is_its_words::<u32>();
        group_is_its_words::<u64>();
    }

    #[test]
    fn first_word_is_that_of_the_first_block() {
        assert_eq!(u32::at(0, 0), 0x6627_e8d5);
        assert_eq!(u32::at(0, 16), 0xe169_c58d);
    }

    #[test]
    fn streams_differ_from_each_other_and_go_on() {
        let draw = |element| {
            let mut stream = ElementStream::new(1, element);
            (0..9).map(|_| stream.try_next_u32().unwrap()).collect::<Vec<_>>()
        };
        let mut all: Vec<u32> = (0..100).flat_map(draw).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 900, "a word is repeated");
    }
}
