//! [`Generator`], a position in a sequence of random words.

use super::philox::Word;
use rand::{SeedableRng, TryRng};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;

/// A source of random numbers: Philox4x32-10 keyed by a seed, at an offset that each draw advances.
///
/// It is a [`rand::Rng`], so it works with all of `rand` and `rand_distr`; a word drawn that way advances the
/// offset by one. It is not cryptographically secure.
///
/// # Source
/// Salmon, Moraes, Dror, Shaw, *Parallel random numbers: as easy as 1, 2, 3* (SC 2011).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generator {
    state: GeneratorState,
}

/// The complete state of a [`Generator`], for saving and restoring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GeneratorState {
    /// The seed of the sequence.
    pub seed: u64,
    /// The number of elements drawn so far.
    pub offset: u64,
}

impl Generator {
    /// A generator at the start of the sequence for `seed`.
    pub fn from_seed(seed: u64) -> Self {
        Self { state: GeneratorState { seed, offset: 0 } }
    }

    /// The seed of the sequence.
    pub fn seed(&self) -> u64 {
        self.state.seed
    }

    /// Goes to the start of the sequence for `seed`.
    pub fn manual_seed(&mut self, seed: u64) {
        *self = Self::from_seed(seed);
    }

    /// The state, for [`set_state`](Self::set_state).
    pub fn state(&self) -> GeneratorState {
        self.state
    }

    /// Continues the sequence from `state`.
    pub fn set_state(&mut self, state: GeneratorState) {
        self.state = state;
    }

    /// Splits off a generator for the next `n` elements and skips them in this one.
    ///
    /// After 2⁶⁴ elements, a sequence repeats.
    pub(crate) fn split_off(&mut self, n: usize) -> Self {
        let next = self.clone();
        self.state.offset = self.state.offset.wrapping_add(n as u64);
        next
    }

    fn next_word<W: Word>(&mut self) -> W {
        let GeneratorState { seed, offset } = self.split_off(1).state;
        W::at(seed, offset)
    }
}

impl TryRng for Generator {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.next_word())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.next_word())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        rand::rand_core::utils::fill_bytes_via_next_word(bytes, || self.try_next_u64())
    }
}

impl SeedableRng for Generator {
    type Seed = [u8; 8];

    fn from_seed(seed: [u8; 8]) -> Self {
        Self::from_seed(u64::from_le_bytes(seed))
    }

    fn seed_from_u64(seed: u64) -> Self {
        Self::from_seed(seed)
    }
}
