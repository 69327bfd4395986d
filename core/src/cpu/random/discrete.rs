//! Fills slices with random choices, integers, permutations, and samples that need an unknown number of
//! random words.
//!
//! Every function uses the next `out.len()` elements of the generator. The caller checks the parameters.

use rand::Rng;

use super::fill::{Group, fill, fill_piece, in_pieces};
use super::generator::Generator;
use super::philox::{ElementStream, GROUP};
use crate::cpu::simd::is_short;

/// The words themselves.
#[derive(Clone, Copy)]
struct Raw;

impl Group for Raw {
    type Word = u64;
    type Out = i64;

    #[inline(always)]
    fn elements(self, words: [u64; GROUP]) -> [i64; GROUP] {
        let mut elements = [0; GROUP];
        for i in 0..GROUP {
            elements[i] = words[i] as i64;
        }
        elements
    }
}

/// `values[1]` for words up to `last`, `values[0]` for those above.
#[derive(Clone, Copy)]
struct TwoValues<T> {
    last: u32,
    values: [T; 2],
}

impl<T: Copy + Send + Sync + 'static> Group for TwoValues<T> {
    type Word = u32;
    type Out = T;
    const IS_FREQUENT: bool = is_short::<T>();

    #[inline(always)]
    fn elements(self, words: [u32; GROUP]) -> [T; GROUP] {
        let mut elements = [self.values[0]; GROUP];
        for i in 0..GROUP {
            elements[i] = if words[i] <= self.last { self.values[1] } else { self.values[0] };
        }
        elements
    }
}

/// `values[1]` with probability `p`, rounded to a multiple of 2⁻³², else `values[0]`.
pub(crate) fn fill_bernoulli<T>(out: &mut [T], p: f64, values: [T; 2], generator: &mut Generator)
where
    T: Copy + Send + Sync + 'static,
{
    let favorable = (p * 2f64.powi(32)).round_ties_even() as u64;
    match favorable.checked_sub(1) {
        Some(last) => fill(out, TwoValues { last: last.min(u32::MAX.into()) as u32, values }, generator),
        None => {
            generator.split_off(out.len());
            out.fill(values[0]);
        }
    }
}

/// Uniformly distributed integers in `[low, high)`; `low < high`.
pub(crate) fn fill_randint(out: &mut [i64], low: i64, high: i64, generator: &mut Generator) {
    let range = high.wrapping_sub(low) as u64;
    in_pieces(out, generator, &|part: &mut [i64], seed, offset| {
        fill_piece(part, Raw, seed, offset);
        for (i, x) in part.iter_mut().enumerate() {
            let below = below(range, *x as u64, || ElementStream::new(seed, offset.wrapping_add(i as u64)));
            *x = low.wrapping_add(below as i64);
        }
    });
}

/// An integer in `[0, range)` from a word, and from `more` words if that word is one of the few that would
/// bias the result.
///
/// Lemire, *Fast random integer generation in an interval* (2019), section 4.
#[inline(always)]
fn below(range: u64, word: u64, more: impl FnOnce() -> ElementStream) -> u64 {
    let product = u128::from(word) * u128::from(range);
    if (product as u64) < range && (product as u64) < range.wrapping_neg() % range {
        return below_again(range, more());
    }
    (product >> 64) as u64
}

#[cold]
fn below_again(range: u64, mut stream: ElementStream) -> u64 {
    let excess = range.wrapping_neg() % range;
    loop {
        let product = u128::from(stream.next_u64()) * u128::from(range);
        if product as u64 >= excess {
            return (product >> 64) as u64;
        }
    }
}

/// A uniformly distributed permutation of the integers from 0 to `out.len() - 1`.
///
/// Fisher-Yates: Knuth, *The Art of Computer Programming*, volume 2, section 3.4.2, algorithm P.
pub(crate) fn fill_randperm(out: &mut [i64], generator: &mut Generator) {
    let n = out.len();
    let start = generator.split_off(n).state();
    for (i, x) in out.iter_mut().enumerate() {
        *x = i as i64;
    }
    let mut words = [0; 16 * GROUP];
    for begin in (0..n).step_by(words.len()) {
        let words = &mut words[..(n - begin).min(16 * GROUP)];
        fill_piece(words, Raw, start.seed, start.offset.wrapping_add(begin as u64));
        for (i, word) in (begin..).zip(words) {
            let stream = || ElementStream::new(start.seed, start.offset.wrapping_add(i as u64));
            out.swap(i, i + below((n - i) as u64, *word as u64, stream) as usize);
        }
    }
}

/// `sample(i, stream)` for every element `i`, each with its own generator. This is for the distributions of
/// `rand_distr` that use rejection, such as the Poisson and gamma distributions, and for parameters that
/// differ between elements.
pub(crate) fn fill_each<T, F>(out: &mut [T], generator: &mut Generator, sample: F)
where
    T: Send,
    F: Fn(usize, &mut ElementStream) -> T + Sync,
{
    let first = generator.state().offset;
    in_pieces(out, generator, &|part: &mut [T], seed: u64, offset: u64| {
        let mut at = offset;
        for x in part {
            *x = sample(at.wrapping_sub(first) as usize, &mut ElementStream::new(seed, at));
            at = at.wrapping_add(1);
        }
    });
}

/// Sets each element to 1 with its own probability, else to 0.
pub(crate) fn fill_trials(out: &mut [f64], p: &[f64], generator: &mut Generator) {
    fill_each(out, generator, |i, stream| {
        let u: f64 = rand::RngExt::random(stream);
        f64::from(u < p[i])
    });
}

/// The first number that is not a probability.
pub(crate) fn outside_unit(p: &[f64]) -> Option<f64> {
    p.iter().copied().find(|p| !(0.0..=1.0).contains(p))
}

#[cfg(test)]
mod tests {
    use rand::distr::Distribution;
    use rand_distr::{Gamma, Poisson};

    use super::*;
    use crate::cpu::random::distributions::tests::{N, draw, mean_and_std};

    #[test]
    fn bernoulli_has_its_share_and_its_ends() {
        let share = |p| {
            let x = draw(false, |out, g| fill_bernoulli(out, p, [false, true], g));
            x.iter().filter(|&&x| x).count() as f64 / N as f64
        };
        assert_eq!((share(0.0), share(1.0)), (0.0, 1.0));
        for p in [0.001, 0.3, 0.5, 0.999] {
            assert!((share(p) - p).abs() < 5.0 * (p * (1.0 - p) / N as f64).sqrt(), "p {p}: {}", share(p));
        }
    }

    #[test]
    fn randint_has_no_bias() {
        let x = draw(0, |out, g| fill_randint(out, -3, 7, g));
        for k in -3..7 {
            let count = x.iter().filter(|&&x| x == k).count() as f64;
            assert!((count - 1e4).abs() < 5.0 * 95.0, "{k}: {count}");
        }
        // 3/4 of all integers: a quarter of the words is rejected; a modulus would give the first third twice
        // as often.
        let x = draw(0, |out, g| fill_randint(out, i64::MIN, 1 << 62, g));
        let first = x.iter().filter(|&&x| x < i64::MIN + (1 << 62)).count() as f64 / N as f64;
        assert!((first - 1.0 / 3.0).abs() < 0.008, "{first}");
        assert!(draw(0, |out, g| fill_randint(out, 5, 6, g)).iter().all(|&x| x == 5));
    }

    #[test]
    fn randperm_is_any_permutation() {
        let mut x = draw(0, fill_randperm);
        assert!(x.iter().zip(0..).any(|(&x, i)| x != i));
        x.sort_unstable();
        assert!(x.iter().zip(0..).all(|(&x, i)| x == i));

        let mut generator = Generator::from_seed(6);
        let mut counts = [0i32; 6];
        for _ in 0..6000 {
            let mut order = [0; 3];
            fill_randperm(&mut order, &mut generator);
            counts[order[0] as usize * 2 + usize::from(order[1] > order[2])] += 1;
        }
        assert!(counts.iter().all(|count| (count - 1000).abs() < 150), "{counts:?}");
    }

    #[test]
    fn samplers_of_rand_distr_have_a_stream_for_each_element() {
        let poisson = Poisson::new(4.0).unwrap();
        let (mean, std) = mean_and_std(&draw(0f64, |out, g| fill_each(out, g, |_, rng| poisson.sample(rng))));
        assert!((mean - 4.0).abs() < 0.04 && (std - 2.0).abs() < 0.04, "{mean} {std}");
        let shape = |i: usize| if i.is_multiple_of(2) { 0.5 } else { 8.0 };
        let sample = |i, rng: &mut ElementStream| Gamma::new(shape(i), 1.0).unwrap().sample(rng);
        let x = draw(0f64, |out, g| fill_each(out, g, sample));
        let (mean, _) = mean_and_std(&x.iter().copied().skip(1).step_by(2).collect::<Vec<_>>());
        assert!((mean - 8.0).abs() < 0.08, "{mean}");
    }
}
