//! The loop of all draws: it fills a slice group by group, and a long slice on all threads.
//!
//! Elements do not depend on each other, so a draw gives the same numbers however it is divided and on any
//! number of threads.

use super::generator::Generator;
use super::philox::{GROUP, Word};
use crate::callback::Callback;
use crate::cpu::simd::{Baseline, Simd, UpTo, Vectorized, vectorize};
use crate::cpu::threads::each_part;

/// A draw of more elements than this is divided between threads in pieces of this size. For fewer elements,
/// waking the threads costs more than they save.
const PIECE: usize = 1 << 15;

/// A group of elements from a group of words.
pub(super) trait Group: Copy + Sync {
    type Word: Word;
    type Out: Copy + Send + 'static;
    /// Whether draws are compiled for the widest vectors. Each copy costs build time, and some draws are
    /// rare.
    const IS_FREQUENT: bool = true;

    fn elements(self, words: [Self::Word; GROUP]) -> [Self::Out; GROUP];
}

/// Fills with elements `offset..` of `seed`. Groups start at multiples of their size in the sequence,
/// wherever a draw begins, so the first and the last group may be used only in part.
pub(super) fn fill_piece<G: Group>(out: &mut [G::Out], kind: G, seed: u64, offset: u64) {
    let piece = Piece { kind, seed, offset };
    if G::IS_FREQUENT { vectorize(piece, out) } else { Baseline.run(piece, out) }
}

struct Piece<G> {
    kind: G,
    seed: u64,
    offset: u64,
}

impl<G: Group> Vectorized for Piece<G> {
    type Out<'a> = &'a mut [G::Out];
    /// The products of a round take as long in vectors of any width.
    const UP_TO: UpTo = UpTo::Avx2;

    #[inline(always)]
    fn run<S: Simd>(self, _: S, out: &mut [G::Out]) {
        let (mut out, mut at) = (out, self.offset);
        while !out.is_empty() {
            let group = self.kind.elements(words::<S, G::Word>(self.seed, at / GROUP as u64));
            let skip = at as usize % GROUP;
            let n = out.len().min(GROUP - skip);
            let (now, later) = out.split_at_mut(n);
            match <&mut [G::Out; GROUP]>::try_from(&mut *now) {
                Ok(whole) => *whole = group,
                Err(_) => now.copy_from_slice(&group[skip..skip + n]),
            }
            (out, at) = (later, at.wrapping_add(n as u64));
        }
    }
}

/// The words of a group: a part of the loop, or a call where small code counts more.
#[inline(always)]
fn words<S: Simd, W: Word>(seed: u64, group: u64) -> [W; GROUP] {
    #[inline(never)]
    fn called<W: Word>(seed: u64, group: u64) -> [W; GROUP] {
        W::group(seed, group)
    }
    if S::IS_RARE { called(seed, group) } else { W::group(seed, group) }
}

/// Calls `piece` with parts of `out` and their offsets, on all threads if there is enough work.
pub(super) fn in_pieces<T: Send>(
    out: &mut [T],
    generator: &mut Generator,
    piece: &(dyn for<'p> Callback<(&'p mut [T], u64, u64)> + Sync),
) {
    let start = generator.split_off(out.len()).state();
    if out.len() <= PIECE || rayon::current_num_threads() == 1 {
        return piece.call_with((out, start.seed, start.offset));
    }
    each_part(out, PIECE, &|i, part| {
        piece.call_with((part, start.seed, start.offset.wrapping_add((i * PIECE) as u64)));
    });
}

/// Fills `out` with the next elements of the generator.
pub(super) fn fill<G: Group>(out: &mut [G::Out], kind: G, generator: &mut Generator) {
    in_pieces(out, generator, &|part: &mut [G::Out], seed, offset| fill_piece(part, kind, seed, offset));
}

#[cfg(test)]
mod tests {
    use rand::distr::Distribution;
    use rand_distr::Gamma;

    use super::*;
    use crate::cpu::random::discrete::*;
    use crate::cpu::random::distributions::*;
    use crate::dtype::DType;

    /// A fill function on the bits of the elements.
    type Fill = Box<dyn Fn(&mut [u64], &mut Generator) + Sync>;

    fn every_fill() -> Vec<Fill> {
        fn row<T: Copy + Default>(
            bits: impl Fn(T) -> u64 + Sync + 'static,
            fill: impl Fn(&mut [T], &mut Generator) + Sync + 'static,
        ) -> Fill {
            Box::new(move |out, generator| {
                let mut x = vec![T::default(); out.len()];
                fill(&mut x, generator);
                for (out, x) in out.iter_mut().zip(x) {
                    *out = bits(x);
                }
            })
        }
        vec![
            row(|x: f32| x.to_bits().into(), |out, g| fill_uniform(out, 0.0, 1.0, DType::F32, g)),
            row(f64::to_bits, |out, g| fill_uniform(out, 0.0, 1.0, DType::F64, g)),
            row(|x: f32| x.to_bits().into(), |out, g| fill_uniform(out, 0.0, 1.0, DType::F16, g)),
            row(|x: f32| x.to_bits().into(), |out, g| fill_normal(out, 0.0, 1.0, g)),
            row(f64::to_bits, |out, g| fill_normal(out, 0.0, 1.0, g)),
            row(|x: f32| x.to_bits().into(), |out, g| fill_log_normal(out, 0.0, 1.0, g)),
            row(f64::to_bits, |out, g| fill_log_normal(out, 0.0, 1.0, g)),
            row(|x: f32| x.to_bits().into(), |out, g| fill_exponential(out, 1.0, g)),
            row(|x: f32| x.to_bits().into(), |out, g| fill_cauchy(out, 0.0, 1.0, g)),
            row(f64::to_bits, |out, g| fill_geometric(out, 0.1, g)),
            row(u64::from, |out, g| fill_bernoulli(out, 0.3, [false, true], g)),
            row(|x| x as u64, |out, g| fill_randint(out, i64::MIN / 4 * 3, i64::MAX, g)),
            row(f64::to_bits, |out, g| fill_each(out, g, |_, rng| Gamma::new(0.7, 1.0).unwrap().sample(rng))),
        ]
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        for (row, fill) in every_fill().iter().enumerate() {
            let on = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut generator = Generator::from_seed(9);
                let mut out = vec![0; 3 * PIECE + 5];
                generator.split_off(7);
                pool.install(|| fill(&mut out, &mut generator));
                assert_eq!(generator.state().offset, 7 + out.len() as u64, "row {row}");
                out
            };
            let expected = on(1);
            assert!([2, 3, 7, 64].into_iter().all(|threads| on(threads) == expected), "row {row}");
        }
    }

    #[test]
    fn a_draw_in_parts_is_the_draw() {
        for (row, fill) in every_fill().iter().enumerate() {
            let mut whole = [0; 300];
            let mut generator = Generator::from_seed(31);
            fill(&mut whole, &mut generator);
            let mut parts = [0; 300];
            let mut again = Generator::from_seed(31);
            let (mut rest, mut n) = (&mut parts[..], 0);
            while !rest.is_empty() {
                let (part, later) = rest.split_at_mut(n.min(rest.len()));
                fill(part, &mut again);
                (rest, n) = (later, n + 17);
            }
            assert_eq!((whole, generator), (parts, again), "row {row}");
        }
    }

    /// Users rely on the sequence of a seed. The numbers were recorded from this code when it was written;
    /// the first word of seed 0 is the one in Random123's test vectors, `0x6627e8d5`.
    #[test]
    fn the_sequence_of_a_seed_is_kept() {
        let mut x = [0f32; 3];
        fill_uniform(&mut x, 0.0, 1.0, DType::F32, &mut Generator::from_seed(0));
        assert_eq!(x[0], 0x6627e8 as f32 / (1 << 24) as f32);
        fill_normal(&mut x, 0.0, 1.0, &mut Generator::from_seed(0));
        assert_eq!(x.map(f32::to_bits), NORMAL_F32);
        let mut x = [0f64; 2];
        fill_normal(&mut x, 0.0, 1.0, &mut Generator::from_seed(0));
        assert_eq!(x.map(f64::to_bits), NORMAL_F64);
        let mut x = [0; 5];
        fill_randperm(&mut x, &mut Generator::from_seed(0));
        assert_eq!(x, RANDPERM);
    }

    const NORMAL_F32: [u32; 3] = [0xbdf8de6b, 0xbda7ada6, 0x3fe361e2];
    const NORMAL_F64: [u64; 2] = [0xbfd67918141f2851, 0xbfe0555b373fe711];
    const RANDPERM: [i64; 5] = [4, 0, 1, 2, 3];
}
