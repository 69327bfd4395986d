//! Elementwise updates by a formula of one element: a [`Formula`], its compiled loops [`FormulaLoops`], and a
//! [`FormulaStep`], which is a [`Loop`] like those of a [`Sweep`](super::update::Sweep).
//!
//! All formulas share the code around the loops, and a loop runs over whole chunks of elements, so that it is a
//! few hundred bytes for each type and set of instructions. The last elements are copied to a chunk.

use super::math::Real;
use super::simd::{Simd, UpTo, Vectorized, vectorize};
use super::update::Loop;
use std::marker::PhantomData;
use std::sync::atomic::{Ordering, compiler_fence};

/// A formula for one element, with `NUMBERS` numbers that are the same for all elements and `STATES` states of
/// the element.
///
/// ```
/// use namegrad_core::cpu::formula::{Formula, FormulaLoops, FormulaStep};
/// use namegrad_core::cpu::math::Real;
/// use namegrad_core::cpu::update::sweep_any;
///
/// /// `x -= lr g`, and `Σ x²`.
/// struct Descend;
///
/// impl Formula<1, 1> for Descend {
///     #[inline(always)]
///     fn apply<T: Real>([lr]: [T; 1], x: T, g: T, [sum]: [T; 1]) -> (T, [T; 1]) {
///         let x = x - lr * g;
///         (x, [sum + x * x])
///     }
/// }
///
/// const LOOPS: &FormulaLoops = &FormulaLoops::of::<Descend, 1, 1, 1>();
/// let (mut x, mut sums) = ([1.0_f32, 2.0], [0.0]);
/// sweep_any(&FormulaStep { loops: LOOPS, numbers: &[0.5] }, &mut x, &[1.0, 1.0], &mut [], &mut sums);
/// assert_eq!((x, sums), ([0.5, 1.5], [2.5]));
/// ```
pub trait Formula<const NUMBERS: usize, const STATES: usize>: 'static {
    /// The new element and states, from the numbers, the element, its gradient and its states. It must be
    /// `#[inline(always)]`, and so must every function that it calls.
    fn apply<T: Real>(numbers: [T; NUMBERS], x: T, g: T, states: [T; STATES]) -> (T, [T; STATES]);
}

/// The most states of a formula.
const STATES: usize = 4;
/// The most sums of a formula.
const SUMS: usize = 2;
/// The elements in a chunk of `f32`: a vector of AVX-512, or two where a formula is short, so that the loop
/// does more than count. A quarter as many are in one of `f64`, whose loops have the vectors of every CPU.
const CHUNK: usize = 16;
const LONG: usize = 2 * CHUNK;

/// The loops of a [`Formula`].
#[derive(Debug)]
pub struct FormulaLoops {
    numbers: usize,
    states: usize,
    sums: usize,
    /// The elements in a chunk of `f32`.
    chunk: usize,
    f32s: ChunkLoop<f32>,
    f64s: ChunkLoop<f64>,
}

/// A loop over whole chunks. The caller's pointers must be as [`Chunks`] says.
type ChunkLoop<T> = unsafe fn(&Chunks<'_, T>);

impl FormulaLoops {
    /// The loops of a formula whose last `S` states are sums over all elements.
    pub const fn of<F: Formula<K, N>, const K: usize, const N: usize, const S: usize>() -> FormulaLoops {
        const { assert!(S <= N && S <= SUMS && N - S <= STATES) };
        let (chunk, f32s, f64s): (usize, ChunkLoop<f32>, ChunkLoop<f64>) = match N {
            0 | 1 => (LONG, run_chunks::<F, f32, K, N, S, LONG>, run_chunks::<F, f64, K, N, S, { LONG / 4 }>),
            _ => (CHUNK, run_chunks::<F, f32, K, N, S, CHUNK>, run_chunks::<F, f64, K, N, S, { CHUNK / 4 }>),
        };
        FormulaLoops { numbers: K, states: N - S, sums: S, chunk, f32s, f64s }
    }
}

/// A formula with its numbers.
#[derive(Clone, Copy, Debug)]
pub struct FormulaStep<'a> {
    /// The loops of the formula.
    pub loops: &'static FormulaLoops,
    /// Its numbers, as many as it takes.
    pub numbers: &'a [f64],
}

impl Loop<f32> for FormulaStep<'_> {
    fn run(&self, _: usize, x: &mut [f32], g: &[f32], states: &mut [&mut [f32]], sums: &mut [f64]) {
        run(self, self.loops.f32s, self.loops.chunk, x, g, states, sums);
    }
}

impl Loop<f64> for FormulaStep<'_> {
    fn run(&self, _: usize, x: &mut [f64], g: &[f64], states: &mut [&mut [f64]], sums: &mut [f64]) {
        run(self, self.loops.f64s, self.loops.chunk / 4, x, g, states, sums);
    }
}

/// Some chunks of elements.
struct Chunks<'a, T> {
    /// As many as the formula takes.
    numbers: &'a [f64],
    /// The number of chunks.
    count: usize,
    /// Their elements.
    x: *mut T,
    /// As many; may be `x`.
    g: *const T,
    /// As many for each state. No other pointer is to the same memory.
    states: &'a [*mut T; STATES],
    /// A chunk of zeros for each sum.
    sums: *mut T,
}

/// Runs a loop over slices of any length. Without `g`, the formula gets `x` in its place.
fn run<T: Real>(
    step: &FormulaStep<'_>,
    chunk_loop: ChunkLoop<T>,
    chunk: usize,
    x: &mut [T],
    g: &[T],
    states: &mut [&mut [T]],
    sums: &mut [f64],
) {
    let FormulaStep { loops, numbers } = step;
    let given = [numbers.len(), states.len(), sums.len()];
    assert!(
        given == [loops.numbers, loops.states, loops.sums],
        "a formula gets its numbers, states and sums"
    );
    let n = x.len();
    let x = x.as_mut_ptr();
    let g = if g.is_empty() { x.cast_const() } else { g[..n].as_ptr() };
    let mut all = [x; STATES];
    for (pointer, state) in all.iter_mut().zip(&mut *states) {
        *pointer = state[..n].as_mut_ptr();
    }
    let mut all_lanes;
    let lanes: &mut [T] = if sums.is_empty() {
        &mut []
    } else {
        all_lanes = [T::ZERO; LONG * SUMS];
        &mut all_lanes
    };
    // A chunk is a power of two, and a division takes as long as some chunks.
    let (count, rest) = (n >> chunk.trailing_zeros(), n & (chunk - 1));
    if count > 0 {
        let sums = lanes.as_mut_ptr();
        // SAFETY: each pointer is to `n` elements, and the slices do not overlap.
        unsafe { chunk_loop(&Chunks { numbers, count, x, g, states: &all, sums }) };
    }
    for (k, sum) in sums.iter_mut().enumerate() {
        *sum = total(&lanes[k * chunk..][..chunk]);
    }
    if rest == 0 {
        return;
    }
    lanes.fill(T::ZERO);
    let mut chunks = [[T::ZERO; LONG]; STATES + 2];
    let mut pointers = [x; STATES + 2];
    pointers[1] = g.cast_mut();
    pointers[2..].copy_from_slice(&all);
    let used = 2 + states.len();
    for (chunk, pointer) in chunks[..used].iter_mut().zip(pointers) {
        // SAFETY: `rest` elements are left at the end of each slice.
        unsafe { pointer.add(n - rest).copy_to_nonoverlapping(chunk.as_mut_ptr(), rest) };
    }
    let [own, given, kept @ ..] = &mut chunks;
    let kept = kept.each_mut().map(|chunk| chunk.as_mut_ptr());
    let last = Chunks {
        numbers,
        count: 1,
        x: own.as_mut_ptr(),
        g: given.as_ptr(),
        states: &kept,
        sums: lanes.as_mut_ptr(),
    };
    // SAFETY: each pointer is to a chunk of its own.
    unsafe { chunk_loop(&last) };
    for (place, (chunk, pointer)) in chunks[..used].iter().zip(pointers).enumerate() {
        if place != 1 {
            // SAFETY: as above; the elements of `x` and of the states are the caller's to change.
            unsafe { pointer.add(n - rest).copy_from_nonoverlapping(chunk.as_ptr(), rest) };
        }
    }
    for (k, sum) in sums.iter_mut().enumerate() {
        *sum += total(&lanes[k * chunk..][..rest]);
    }
}

/// The sum of some elements.
fn total<T: Real>(elements: &[T]) -> f64 {
    let mut total = 0.0;
    for element in elements {
        total += element.to_f64();
    }
    total
}

/// The chunks of a loop with the formula `F`.
struct FormulaChunks<'a, F, T, const K: usize, const N: usize, const S: usize, const W: usize> {
    chunks: &'a Chunks<'a, T>,
    formula: PhantomData<fn() -> F>,
}

/// # Safety
/// The pointers are as [`Chunks`] says.
unsafe fn run_chunks<
    F: Formula<K, N>,
    T: Real,
    const K: usize,
    const N: usize,
    const S: usize,
    const W: usize,
>(
    chunks: &Chunks<'_, T>,
) {
    vectorize(FormulaChunks::<F, T, K, N, S, W> { chunks, formula: PhantomData }, ());
}

impl<F: Formula<K, N>, T: Real, const K: usize, const N: usize, const S: usize, const W: usize> Vectorized
    for FormulaChunks<'_, F, T, K, N, S, W>
{
    type Out<'a> = ();
    /// Most parameters are `f32`.
    const UP_TO: UpTo = UpTo::for_memory::<T>();

    #[inline(always)]
    fn run<I: Simd>(self, _: I, (): ()) {
        // SAFETY: `run_chunks` has the same conditions.
        unsafe {
            match I::IS_RARE {
                true => each_element(element::<F, K, N>, self.chunks, W, [N - S, S]),
                false => each_chunk::<F, T, I::Number<T>, K, N, S, W>(self.chunks),
            }
        }
    }
}

/// Applies a formula to all elements of some chunks.
///
/// # Safety
/// The pointers are as [`Chunks`] says, and `R` has the layout of `T`.
#[inline(always)]
unsafe fn each_chunk<
    F: Formula<K, N>,
    T: Real,
    R: Real,
    const K: usize,
    const N: usize,
    const S: usize,
    const W: usize,
>(
    chunks: &Chunks<'_, T>,
) {
    let (x, g) = (chunks.x.cast::<[R; W]>(), chunks.g.cast::<[R; W]>());
    let (mut numbers, mut states, mut own) = ([R::ZERO; K], [x; N], [[R::ZERO; W]; N]);
    // SAFETY: there are `K` numbers.
    let given = unsafe { chunks.numbers.as_ptr().cast::<[f64; K]>().read() };
    for k in 0..K {
        numbers[k] = R::from_f64(given[k]);
    }
    for (own, given) in states.iter_mut().zip(chunks.states).take(N - S) {
        *own = given.cast();
    }
    for at in 0..chunks.count {
        // The loop over a chunk becomes vectors, and this loop must not.
        compiler_fence(Ordering::SeqCst);
        // SAFETY: there are `count` chunks at each pointer. Everything is read before anything is written.
        unsafe {
            let (mut xs, gs) = (x.add(at).read(), g.add(at).read());
            for k in 0..N - S {
                own[k] = states[k].add(at).read();
            }
            for i in 0..W {
                let mut states = [R::ZERO; N];
                for k in 0..N {
                    states[k] = own[k][i];
                }
                (xs[i], states) = F::apply(numbers, xs[i], gs[i], states);
                for k in 0..N {
                    own[k][i] = states[k];
                }
            }
            x.add(at).write(xs);
            for k in 0..N - S {
                states[k].add(at).write(own[k]);
            }
        }
    }
    for k in 0..S {
        // SAFETY: there is a chunk for each sum.
        unsafe { chunks.sums.cast::<[R; W]>().add(k).write(own[N - S + k]) };
    }
}

/// An element, its gradient, its states and its sums.
type ElementValues = [f64; 2 + STATES + SUMS];

/// A formula in `f64`.
///
/// # Safety
/// There are as many numbers as the formula takes.
unsafe fn element<F: Formula<K, N>, const K: usize, const N: usize>(
    numbers: &[f64],
    values: &mut ElementValues,
) {
    // SAFETY: there are `K` numbers.
    let (numbers, mut states) = (unsafe { numbers.as_ptr().cast::<[f64; K]>().read() }, [0.0; N]);
    states.copy_from_slice(&values[2..2 + N]);
    (values[0], states) = F::apply(numbers, values[0], values[1], states);
    values[2..2 + N].copy_from_slice(&states);
}

/// Applies a formula to all elements of some chunks, one after the other, for CPUs that few have.
///
/// # Safety
/// The pointers are as [`Chunks`] says.
#[inline(never)]
unsafe fn each_element<T: Real>(
    formula: unsafe fn(&[f64], &mut ElementValues),
    chunks: &Chunks<'_, T>,
    chunk: usize,
    [states, sums]: [usize; 2],
) {
    let mut values = ElementValues::default();
    for i in 0..chunks.count * chunk {
        // SAFETY: there are `count` chunks at each pointer.
        unsafe {
            (values[0], values[1]) = ((*chunks.x.add(i)).to_f64(), (*chunks.g.add(i)).to_f64());
            for k in 0..states {
                values[2 + k] = (*chunks.states[k].add(i)).to_f64();
            }
            for k in 0..sums {
                values[2 + states + k] = (*chunks.sums.add(k * chunk + i % chunk)).to_f64();
            }
            formula(chunks.numbers, &mut values);
            *chunks.x.add(i) = T::from_f64(values[0]);
            for k in 0..states {
                *chunks.states[k].add(i) = T::from_f64(values[2 + k]);
            }
            for k in 0..sums {
                *chunks.sums.add(k * chunk + i % chunk) = T::from_f64(values[2 + states + k]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::update::{PARALLEL, sweep_any};
    use super::*;

    /// `m = beta m + g`, `x = x - m`, `Σ x` and `Σ m`.
    struct Momentum;

    impl Formula<1, 3> for Momentum {
        #[inline(always)]
        fn apply<T: Real>([beta]: [T; 1], x: T, g: T, [m, of_x, of_m]: [T; 3]) -> (T, [T; 3]) {
            let m = beta * m + g;
            let x = x - m;
            (x, [m, of_x + x, of_m + m])
        }
    }

    /// `x = 2 x + g`, where `g` is `x`.
    struct Triple;

    impl Formula<0, 0> for Triple {
        #[inline(always)]
        fn apply<T: Real>([]: [T; 0], x: T, g: T, []: [T; 0]) -> (T, [T; 0]) {
            (x + x + g, [])
        }
    }

    fn check<T: Real>(n: usize)
    where
        for<'a> FormulaStep<'a>: Loop<T>,
    {
        let numbers = |k: usize| (0..n).map(|i| T::from_f64((i * k % 17) as f64)).collect::<Vec<_>>();
        let (mut x, g, mut m, mut sums) = (numbers(3), numbers(5), numbers(7), [f64::NAN; 2]);
        let loops = const { &FormulaLoops::of::<Momentum, 1, 3, 2>() };
        sweep_any(&FormulaStep { loops, numbers: &[2.0] }, &mut x, &g, &mut [&mut m], &mut sums);
        let mut expected = [0.0; 2];
        for i in 0..n {
            let number = |k: usize| (i * k % 17) as f64;
            let new = 2.0 * number(7) + number(5);
            assert_eq!((x[i].to_f64(), m[i].to_f64()), (number(3) - new, new), "{i} of {n}");
            expected = [expected[0] + number(3) - new, expected[1] + new];
        }
        assert!(g == numbers(5));
        assert_eq!(sums, expected, "{n}");
        let loops = const { &FormulaLoops::of::<Triple, 0, 0, 0>() };
        sweep_any(&FormulaStep { loops, numbers: &[] }, &mut m, &[], &mut [], &mut []);
        for (i, m) in m.iter().enumerate() {
            assert_eq!(m.to_f64(), 3.0 * (2 * (i * 7 % 17) + i * 5 % 17) as f64, "{i} of {n}");
        }
    }

    #[test]
    fn each_element_is_updated_once() {
        for n in [0, 1, 7, 8, 16, 37, 64, if cfg!(miri) { 100 } else { PARALLEL + 5 }] {
            check::<f32>(n);
            check::<f64>(n);
        }
    }

    #[test]
    fn single_elements_are_those_of_chunks() {
        let (numbers, g, states) = ([2.0], [5.0; CHUNK], [&mut [7.0; CHUNK]]);
        let (mut x, mut sums) = ([3.0_f32; CHUNK], [0.0; SUMS * CHUNK]);
        let [state] = states;
        let chunks = Chunks {
            numbers: &numbers,
            count: 1,
            x: x.as_mut_ptr(),
            g: g.as_ptr(),
            states: &[state.as_mut_ptr(); STATES],
            sums: sums.as_mut_ptr(),
        };
        // SAFETY: each pointer is to a chunk.
        unsafe { each_element(element::<Momentum, 1, 3>, &chunks, CHUNK, [1, 2]) };
        assert_eq!((x, *state), ([-16.0; CHUNK], [19.0; CHUNK]));
        assert_eq!((sums[0], sums[CHUNK]), (-16.0, 19.0));
    }

    #[test]
    #[should_panic(expected = "a formula gets its numbers, states and sums")]
    fn all_numbers_are_needed() {
        let loops = const { &FormulaLoops::of::<Triple, 0, 0, 0>() };
        sweep_any(&FormulaStep { loops, numbers: &[1.0] }, &mut [1.0_f32], &[], &mut [], &mut []);
    }
}
