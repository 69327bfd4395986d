//! Random numbers: one seedable counter-based generator, the same on every machine and for any number of
//! threads.
//!
//! A [`Generator`] is a seed and an offset. Element `i` of a draw depends only on the seed and on
//! `offset + i`, and a draw of `n` elements advances the offset by `n` for every distribution. The default
//! generator of the process is behind a mutex: [`manual_seed`], [`initial_seed`], [`seed`], [`random_state`],
//! [`set_random_state`].
//!
//! The loops are in `crate::cpu::random`. `sample` draws from the distributions of other crates.

mod sample;
mod source;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

pub use crate::cpu::random::{Generator, GeneratorState};
pub use rand::distr::Distribution;
pub use sample::Sampled;
#[doc(hidden)]
pub use source::Source;

impl Generator {
    /// Runs `f` with this generator in place of the default generator for all draws of the calling thread.
    ///
    /// ```
    /// use namegrad_core::{NamedTensor, random::Generator};
    /// let mut generator = Generator::from_seed(7);
    /// let first = generator.scope(|| NamedTensor::rand([3]))?.to_vec::<f32>()?;
    /// let second = generator.scope(|| NamedTensor::rand([3]))?.to_vec::<f32>()?;
    /// assert_ne!(first, second);
    /// generator.manual_seed(7);
    /// assert_eq!(generator.scope(|| NamedTensor::rand([3]))?.to_vec::<f32>()?, first);
    /// # Ok::<(), namegrad_core::Error>(())
    /// ```
    pub fn scope<R>(&mut self, f: impl FnOnce() -> R) -> R {
        /// Restores the previous state, even if `f` panics.
        struct Scope<'a> {
            generator: &'a mut Generator,
            outer: Option<Generator>,
        }
        impl Drop for Scope<'_> {
            fn drop(&mut self) {
                if let Some(drawn) = SCOPED.replace(self.outer.take()) {
                    *self.generator = drawn;
                }
            }
        }
        let outer = SCOPED.replace(Some(self.clone()));
        let _scope = Scope { generator: self, outer };
        f()
    }
}

thread_local! {
    /// The generator of the innermost [`Generator::scope`] that this thread is in.
    static SCOPED: RefCell<Option<Generator>> = const { RefCell::new(None) };
}

thread_local! {
    /// The draws of this thread since the start of each [`Draws::record`] that it is in, with the innermost
    /// last.
    static RECORDED: RefCell<Vec<Draws>> = const { RefCell::new(Vec::new()) };
    /// The draws that the innermost [`Draws::replay`] has not replayed yet.
    static REPLAYED: RefCell<VecDeque<Generator>> = const { RefCell::new(VecDeque::new()) };
}

/// The recorded draws of a function, which can be replayed from any generator and regardless of what other
/// threads draw.
///
/// ```
/// use namegrad_core::{NamedTensor, random::Draws};
/// let (draws, first) = Draws::record(|| NamedTensor::rand([3]));
/// let other = NamedTensor::rand([3])?.to_vec::<f32>()?;
/// let first = first?.to_vec::<f32>()?;
/// assert_ne!(other, first);
/// assert_eq!(draws.replay(|| NamedTensor::rand([3]))?.to_vec::<f32>()?, first);
/// # Ok::<(), namegrad_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Draws(Vec<Generator>);

impl Draws {
    /// Whether nothing was drawn.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs `f` and records the draws of the calling thread, except those taken directly from a
    /// [`Generator`].
    pub fn record<R>(f: impl FnOnce() -> R) -> (Draws, R) {
        /// Cleans up if `f` panics.
        struct Depth(usize);
        impl Drop for Depth {
            fn drop(&mut self) {
                RECORDED.with_borrow_mut(|recorded| recorded.truncate(self.0));
            }
        }
        let depth = Depth(RECORDED.with_borrow(Vec::len));
        RECORDED.with_borrow_mut(|recorded| recorded.push(Draws::default()));
        let result = f();
        let draws = RECORDED.with_borrow_mut(Vec::pop).unwrap_or_default();
        drop(depth);
        (draws, result)
    }

    /// Runs `f`, in which the calling thread draws the same numbers again. Any further draws are new.
    pub fn replay<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Restore(VecDeque<Generator>);
        impl Drop for Restore {
            fn drop(&mut self) {
                REPLAYED.set(std::mem::take(&mut self.0));
            }
        }
        let _outer = Restore(REPLAYED.replace(self.0.iter().cloned().collect()));
        f()
    }
}

static DEFAULT: LazyLock<Mutex<Generator>> = LazyLock::new(|| Mutex::new(Generator::from_seed(entropy())));

/// The default generator. Every change is one assignment, so a panic elsewhere cannot leave it half changed.
fn default_generator() -> MutexGuard<'static, Generator> {
    DEFAULT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A seed that differs from run to run, from the random keys of the hash maps of `std` and the time.
fn entropy() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    hasher.write_u128(since_epoch.as_nanos());
    hasher.finish()
}

/// A generator for the next `n` elements of the innermost scope's generator, or of the default one outside of
/// scopes. Within [`Draws::replay`], it is the generator of the recorded draw.
///
/// The lock is not held while the elements are generated. Otherwise a `rayon` thread that waits for its part
/// of a draw could start other work that draws too, and deadlock.
#[doc(hidden)]
pub fn next_of_default(n: usize) -> Generator {
    let scoped = || SCOPED.with_borrow_mut(|scoped| scoped.as_mut().map(|generator| generator.split_off(n)));
    let next = REPLAYED.with_borrow_mut(VecDeque::pop_front).or_else(scoped);
    let next = next.unwrap_or_else(|| default_generator().split_off(n));
    RECORDED.with_borrow_mut(|all| all.iter_mut().for_each(|draws| draws.0.push(next.clone())));
    next
}

/// Seeds the default generator, so that later draws are the same in every run.
pub fn manual_seed(seed: u64) {
    default_generator().manual_seed(seed);
}

/// The seed of the default generator, whether it was set or chosen automatically.
pub fn initial_seed() -> u64 {
    default_generator().seed()
}

/// Seeds the default generator with a seed that differs from run to run, and returns that seed.
pub fn seed() -> u64 {
    let seed = entropy();
    manual_seed(seed);
    seed
}

/// The state of the default generator, for [`set_random_state`].
pub fn random_state() -> GeneratorState {
    default_generator().state()
}

/// Restores the default generator to a state from [`random_state`].
pub fn set_random_state(state: GeneratorState) {
    default_generator().set_state(state);
}

#[cfg(test)]
mod tests {
    use rand::{Rng, RngExt, SeedableRng};
    use serde::{Deserialize, Serialize};

    use super::*;

    fn is_shared<T: Clone + Send + Sync>() {}
    fn is_saved<T: Serialize + for<'de> Deserialize<'de>>() {}

    #[test]
    fn state_continues_the_sequence() {
        is_shared::<Generator>();
        is_saved::<GeneratorState>();
        let mut a = Generator::from_seed(3);
        let _: u32 = a.random();
        let saved = a.state();
        let expected: [u64; 5] = a.random();
        let mut b = Generator::from_seed(8);
        b.set_state(saved);
        assert_eq!(b.random::<[u64; 5]>(), expected);
        assert_eq!(a, b);
    }

    #[test]
    fn bytes_are_the_words() {
        let (mut a, mut b) = (Generator::from_seed(4), Generator::from_seed(4));
        let mut bytes = [0; 19];
        a.fill_bytes(&mut bytes);
        let words: Vec<u8> = (0..3).flat_map(|_| b.next_u64().to_le_bytes()).collect();
        assert_eq!(bytes[..], words[..19]);
        assert_eq!(a.state().offset, 3);
    }

    #[test]
    fn all_ways_to_seed_agree() {
        let a = Generator::from_seed(0x0102_0304);
        assert_eq!(a, <Generator as SeedableRng>::seed_from_u64(0x0102_0304));
        assert_eq!(a, <Generator as SeedableRng>::from_seed([4, 3, 2, 1, 0, 0, 0, 0]));
    }

    #[test]
    fn a_scope_draws_from_its_generator() {
        let (mut outer, mut inner) = (Generator::from_seed(1), Generator::from_seed(2));
        outer.scope(|| {
            assert_eq!(next_of_default(3), Generator::from_seed(1));
            inner.scope(|| next_of_default(5));
            next_of_default(4);
        });
        assert_eq!((outer.state().offset, inner.state().offset), (7, 5));
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            inner.scope(|| {
                next_of_default(2);
                panic!("inside")
            })
        }));
        assert!(panic.is_err());
        assert_eq!(inner.state().offset, 7);
        assert!(SCOPED.with_borrow(Option::is_none));
    }

    /// A single test for everything that touches the default generator, because tests run in parallel.
    #[test]
    fn default_generator_is_seeded_saved_and_restored() {
        let first = seed();
        assert_eq!(initial_seed(), first);
        assert_ne!(seed(), first);
        manual_seed(12);
        assert_eq!((initial_seed(), random_state()), (12, GeneratorState { seed: 12, offset: 0 }));
        assert_eq!(next_of_default(10), Generator::from_seed(12));
        let state = random_state();
        let drawn = next_of_default(3);
        set_random_state(state);
        assert_eq!(next_of_default(3), drawn);
        assert_eq!(random_state().offset, 13);
    }
}
