//! One-dimensional transforms of many lanes, on plain slices and all threads.
//!
//! [`Stage`] says what a transform computes, and [`Stage::run`] computes it for tensors without names. The
//! plans of `rustfft` and `realfft` are shared by all calls.

use crate::common::*;
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use num_complex::Complex;
use rayon::prelude::*;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftNum, FftPlanner};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// What a stage maps to what. Half of a spectrum is that of a real signal: the other half mirrors it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Complex numbers to complex numbers.
    Complex,
    /// Real numbers to half of their spectrum.
    ToHalf,
    /// Half of a spectrum to real numbers.
    FromHalf,
}

/// A transform along one dim: `y[k] = scale Σ x[j] e^(±2πi jk / n)`.
///
/// The input is cut or padded with zeros to what `n` points need, and so is the output to the size `to`. For
/// half of a spectrum, `inner` multiplies all values but the first and, for even `n`, the last, which stand
/// for two values of the whole spectrum. So the adjoint of a stage is a stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    pub(crate) kind: Kind,
    /// The position of the dim. The pairs of a complex tensor are its last dim.
    pub(crate) dim: usize,
    pub(crate) n: usize,
    /// The size of the dim in the input.
    pub(crate) from: usize,
    /// The size of the dim in the output.
    pub(crate) to: usize,
    /// Whether the exponent is positive.
    pub(crate) inverse: bool,
    pub(crate) scale: f64,
    pub(crate) inner: f64,
}

impl Stage {
    /// The gradient of the output to that of the input.
    pub(crate) fn adjoint(self) -> Stage {
        let kind = match self.kind {
            Kind::Complex => Kind::Complex,
            Kind::ToHalf => Kind::FromHalf,
            Kind::FromHalf => Kind::ToHalf,
        };
        Stage { kind, from: self.to, to: self.from, inverse: !self.inverse, ..self }
    }

    /// The transform of a dense tensor of `f32` or `f64` without names.
    #[track_caller]
    pub(crate) fn run(&self, op: &'static str, x: &NamedTensor) -> Result<NamedTensor> {
        let x = x.contiguous()?;
        let mut sizes = x.sizes().to_vec();
        if self.kind != Kind::ToHalf {
            sizes.pop();
        }
        let lanes = [sizes[..self.dim].iter().product(), sizes[self.dim + 1..].iter().product()];
        sizes[self.dim] = self.to;
        if self.kind != Kind::FromHalf {
            sizes.push(2);
        }
        // A plan needs about as much memory as a signal.
        NamedTensor::check_room(op, self.n, 2 * size_of::<f64>())?;
        let zeros =
            || NamedTensor::full_as(op, &sizes[..], 0.into(), x.dtype()).map_err(|error| error.of(op));
        let mut y = zeros()?;
        match x.dtype() {
            DType::F64 => self.slices::<f64>(x.as_slice()?, lanes, y.as_mut_slice()?),
            _ => self.slices::<f32>(x.as_slice()?, lanes, y.as_mut_slice()?),
        }
        Ok(y)
    }

    fn slices<T: Real>(&self, x: &[T], [outer, inner]: [usize; 2], y: &mut [T]) {
        if y.is_empty() {
            return;
        }
        let half = self.n / 2 + 1;
        // The values in half of a spectrum that stand for two of the whole: all but the first and the middle
        // one.
        let two = 1..self.n.div_ceil(2);
        let (scale, inner_factor) = (self.scale, self.inner);
        match self.kind {
            Kind::Complex => {
                let fft = T::complex_plan(self.n, self.inverse);
                let lanes = Lanes { outer, inner, from: self.from, to: self.to, points: [self.n; 2] };
                let scratch = fft.get_immutable_scratch_len();
                lanes.run(
                    cast_slice(x),
                    cast_slice_mut(y),
                    || vec![zero(); scratch],
                    |scratch, x, y| {
                        fft.process_immutable_with_scratch(x, y, scratch);
                        scaled(cast_slice_mut::<_, T>(y), scale);
                    },
                );
            }
            Kind::ToHalf if self.n.is_multiple_of(2) => {
                let (fft, turns) = (T::complex_plan(self.n / 2, false), T::turns(self.n));
                let lanes = Lanes { outer, inner, from: self.from, to: self.to, points: [self.n, half] };
                let room = || (Vec::new(), vec![zero(); fft.get_immutable_scratch_len()]);
                let factors = [scale, scale * inner_factor].map(T::of);
                lanes.run(x, cast_slice_mut(y), room, |(folded, scratch), x, y| {
                    folded.resize(x.len() / 2, zero());
                    fft.process_immutable_with_scratch(cast_slice(x), folded, scratch);
                    for (z, y) in folded.chunks_exact(half - 1).zip(y.chunks_exact_mut(half)) {
                        unfolded(z, &turns, factors, y);
                        if self.inverse {
                            y.iter_mut().for_each(|y| y.im = -y.im);
                        }
                    }
                });
            }
            Kind::ToHalf => {
                let fft = T::half_plan(self.n);
                let lanes = Lanes { outer, inner, from: self.from, to: self.to, points: [self.n, half] };
                let room = || (vec![T::zero(); self.n], fft.make_scratch_vec());
                lanes.run(x, cast_slice_mut(y), room, |(signal, scratch), x, y| {
                    for (x, y) in x.chunks_exact(self.n).zip(y.chunks_exact_mut(half)) {
                        signal.copy_from_slice(x);
                        // Its only errors are wrong lengths.
                        let _ = fft.process_with_scratch(signal, y, scratch);
                        scaled(cast_slice_mut::<_, T>(&mut y[two.clone()]), inner_factor);
                        if self.inverse {
                            y.iter_mut().for_each(|y| y.im = -y.im);
                        }
                    }
                    scaled(cast_slice_mut::<_, T>(y), scale);
                });
            }
            Kind::FromHalf if self.n.is_multiple_of(2) => {
                let (fft, turns) = (T::complex_plan(self.n / 2, true), T::turns(self.n));
                let lanes = Lanes { outer, inner, from: self.from, to: self.to, points: [half, self.n] };
                let room = || (Vec::new(), vec![zero(); fft.get_immutable_scratch_len()]);
                let factors = [scale, scale * inner_factor / 2.0].map(T::of);
                lanes.run(cast_slice::<T, Complex<T>>(x), y, room, |(folded, scratch), x, y| {
                    folded.resize(y.len() / 2, zero());
                    for (x, z) in x.chunks_exact(half).zip(folded.chunks_exact_mut(half - 1)) {
                        fold(x, &turns, factors, !self.inverse, z);
                    }
                    fft.process_immutable_with_scratch(folded, cast_slice_mut(y), scratch);
                });
            }
            Kind::FromHalf => {
                let fft = T::real_plan(self.n);
                let lanes = Lanes { outer, inner, from: self.from, to: self.to, points: [half, self.n] };
                let room = || (vec![zero::<T>(); half], fft.make_scratch_vec());
                lanes.run(cast_slice::<T, Complex<T>>(x), y, room, |(spectrum, scratch), x, y| {
                    for (x, y) in x.chunks_exact(half).zip(y.chunks_exact_mut(self.n)) {
                        spectrum.copy_from_slice(x);
                        scaled(cast_slice_mut::<_, T>(&mut spectrum[two.clone()]), inner_factor / 2.0);
                        if !self.inverse {
                            spectrum.iter_mut().for_each(|x| x.im = -x.im);
                        }
                        // The imaginary part of the first plays no part.
                        spectrum[0].im = T::zero();
                        let _ = fft.process_with_scratch(spectrum, y, scratch);
                    }
                    scaled(y, scale);
                });
            }
        }
    }
}

/// The half spectrum of `2m` numbers, from the transform `z` of `m` pairs of neighbors as complex numbers:
/// `y[k] = e + t`, `y[m - k]* = e - t`, with `e = (z[k] + z[m - k]*) / 2` and `t` the other half times a turn.
/// The first and the last value are multiplied by the first factor, the others by the second.
///
/// # Source
/// Press et al., *Numerical Recipes* (3rd edition, 2007), section 12.3.2.
fn unfolded<T: Real>(z: &[Complex<T>], turns: &[Complex<T>], [ends, inner]: [T; 2], y: &mut [Complex<T>]) {
    let m = z.len();
    y[0] = Complex::new((z[0].re + z[0].im) * ends, T::zero());
    y[m] = Complex::new((z[0].re - z[0].im) * ends, T::zero());
    let (first, last) = y[1..m].split_at_mut((m - 1) / 2);
    let half = T::of(0.5) * inner;
    let both = z[1..].iter().zip(z[1..].iter().rev()).zip(&turns[1..]);
    for (((a, b), turn), (low, high)) in both.zip(first.iter_mut().zip(last.iter_mut().rev())) {
        let (sum, turned) = (a + b.conj(), (a - b.conj()) * turn);
        (*low, *high) = ((sum + turned).scale(half), (sum - turned).conj().scale(half));
    }
    if m > 1 && m.is_multiple_of(2) {
        y[m / 2] = z[m / 2].conj().scale(inner);
    }
}

/// The inverse of [`unfolded`], up to factors, of the conjugates or of the values.
fn fold<T: Real>(
    x: &[Complex<T>],
    turns: &[Complex<T>],
    [ends, inner]: [T; 2],
    conjugated: bool,
    z: &mut [Complex<T>],
) {
    let m = z.len();
    let sign = if conjugated { -inner } else { inner };
    let own = |x: &Complex<T>| Complex::new(x.re * inner, x.im * sign);
    // The imaginary parts of the first and the last value play no part.
    let (first, last) = (x[0].re * ends, x[m].re * ends);
    z[0] = Complex::new(first + last, first - last);
    let (low, high) = z[1..].split_at_mut((m - 1) / 2);
    let both = x[1..m].iter().zip(x[1..m].iter().rev()).zip(&turns[1..]);
    for (((a, b), turn), (low, high)) in both.zip(low.iter_mut().zip(high.iter_mut().rev())) {
        let (a, b) = (own(a), own(b).conj());
        let (sum, turned) = (a + b, (a - b) * turn.conj());
        (*low, *high) = (sum + turned, (sum - turned).conj());
    }
    if m > 1 && m.is_multiple_of(2) {
        z[m / 2] = own(&x[m / 2]).conj().scale(T::of(2.0));
    }
}

/// Multiplies all numbers by a factor.
fn scaled<T: Real>(x: &mut [T], factor: f64) {
    if factor != 1.0 {
        let factor = T::of(factor);
        x.iter_mut().for_each(|x| *x = *x * factor);
    }
}

fn zero<T: Real>() -> Complex<T> {
    Complex::new(T::zero(), T::zero())
}

/// The lanes of a tensor with the sizes `[outer, from, inner]` and of one with `[outer, to, inner]`.
struct Lanes {
    outer: usize,
    inner: usize,
    from: usize,
    to: usize,
    /// The length of a lane as the transform reads and writes it.
    points: [usize; 2],
}

/// The points of lanes beside each other that are transformed together.
const GRAIN: usize = 1 << 13;
/// The points from which several threads are faster than one: waking a thread takes as long as a transform
/// of this many.
const SHARED: usize = 1 << 15;
/// The lanes that are gathered together from a tensor whose lanes are strided: a cache line or two of each row.
const BLOCK: usize = 16;

impl Lanes {
    /// Has `f` transform all lanes: it gets some of them, one after another, and where to write the results.
    fn run<I: Pod + Send + Sync, O: Pod + Send + Sync, S>(
        &self,
        x: &[I],
        y: &mut [O],
        state: impl Fn() -> S + Sync,
        f: impl Fn(&mut S, &[I], &mut [O]) + Sync,
    ) {
        let Lanes { outer, inner, from, to, points } = *self;
        let longest = points[0].max(points[1]);
        let is_shared = outer * inner * longest >= SHARED && rayon::current_num_threads() > 1;
        if inner == 1 {
            let count = (GRAIN / longest).max(1);
            let run = |state: &mut (S, Room<I, O>), (at, y): (usize, &mut [O])| {
                let lanes = y.len() / to;
                let x = &x[at * count * from..][..lanes * from];
                if [from, to] == points {
                    f(&mut state.0, x, y);
                    return;
                }
                let room = &mut state.1;
                let place =
                    Place { first: 0, count: lanes, outer: 0, inner: 1, size: from, points: points[0] };
                room.gather(x, place, true);
                f(&mut state.0, &room.x[..lanes * points[0]], &mut room.y[..lanes * points[1]]);
                for (from, y) in room.y.chunks_exact(points[1]).zip(y.chunks_exact_mut(to)) {
                    padded(from, y);
                }
            };
            let room = || (state(), Room::<I, O>::new(if [from, to] == points { 0 } else { count }, points));
            return parts(y, count * to, is_shared, room, run);
        }
        let block = inner.min(BLOCK);
        let strides = points.map(stride);
        let room = || (state(), Room::<I, O>::new(block, strides));
        // Transforms the lanes from `first` on, which `room.y` has then.
        let transform = |state: &mut S, room: &mut Room<I, O>, outer: usize, first: usize, y: &mut [O]| {
            let count = block.min(inner - first);
            room.gather(x, Place { first, count, outer, inner, size: from, points: points[0] }, false);
            for lane in 0..count {
                let x = &room.x[lane * strides[0]..][..points[0]];
                f(state, x, &mut y[lane * strides[1]..][..points[1]]);
            }
            count
        };
        if !is_shared || outer >= 2 * rayon::current_num_threads() {
            // Each part has all lanes of one index of the outer dims.
            return parts(y, to * inner, is_shared, room, |(state, room), (outer, y)| {
                let mut lanes = std::mem::take(&mut room.y);
                for first in (0..inner).step_by(block) {
                    let count = transform(state, room, outer, first, &mut lanes);
                    spread(&lanes, 0, points[1], y, inner, first..first + count);
                }
                room.y = lanes;
            });
        }
        // The lanes are transformed beside the result, in blocks of one index of the outer dims, and moved
        // there.
        let blocks = inner.div_ceil(block);
        for (outer, y) in y.chunks_exact_mut(to * inner).enumerate() {
            let mut lanes = vec![O::zeroed(); blocks * block * strides[1]];
            parts(&mut lanes, block * strides[1], true, room, |(state, room), (at, lanes)| {
                transform(state, room, outer, at * block, lanes);
            });
            let rows = (GRAIN / inner).max(BLOCK);
            parts(
                y,
                rows * inner,
                true,
                || (),
                |(), (at, y)| {
                    for (block_at, lanes) in lanes.chunks_exact(block * strides[1]).enumerate() {
                        let first = block_at * block;
                        spread(lanes, at * rows, points[1], y, inner, first..inner.min(first + block));
                    }
                },
            );
        }
    }
}

/// The distance between lanes of `points` elements in a room. At a distance of a power of two they would
/// compete for the same lines of the cache.
fn stride(points: usize) -> usize {
    points + 8
}

/// Writes the elements of lanes from `start` on to rows of `inner` elements, one column for each lane, and
/// zeros after the end of the lanes.
fn spread<O: Pod>(
    lanes: &[O],
    start: usize,
    points: usize,
    y: &mut [O],
    inner: usize,
    columns: Range<usize>,
) {
    for (k, row) in (start..).zip(y.chunks_exact_mut(inner)) {
        let row = &mut row[columns.clone()];
        match k < points {
            true => row.iter_mut().zip(lanes[k..].iter().step_by(stride(points))).for_each(|(y, x)| *y = *x),
            false => row.fill(O::zeroed()),
        }
    }
}

/// Calls `f` for each part of `len` elements and its number, on all threads if it is shared. Each thread has a
/// state of its own.
fn parts<O: Send, S>(
    y: &mut [O],
    len: usize,
    is_shared: bool,
    state: impl Fn() -> S + Sync,
    f: impl Fn(&mut S, (usize, &mut [O])) + Sync,
) {
    if is_shared {
        return y.par_chunks_mut(len).enumerate().for_each_init(&state, &f);
    }
    let mut state = state();
    y.chunks_mut(len).enumerate().for_each(|part| f(&mut state, part));
}

/// Lanes of an input: `count` from `first` on, at one index of the outer dims.
struct Place {
    first: usize,
    count: usize,
    outer: usize,
    inner: usize,
    /// The elements of a lane.
    size: usize,
    /// The elements that the transform reads.
    points: usize,
}

/// Lanes one after another, as a transform reads and writes them.
struct Room<I, O> {
    x: Vec<I>,
    y: Vec<O>,
}

impl<I: Pod, O: Pod> Room<I, O> {
    fn new(lanes: usize, points: [usize; 2]) -> Room<I, O> {
        Room { x: vec![I::zeroed(); lanes * points[0]], y: vec![O::zeroed(); lanes * points[1]] }
    }

    /// Copies lanes of `x`, which are dense or strided, cut or padded with zeros.
    fn gather(&mut self, x: &[I], place: Place, is_dense: bool) {
        let Place { first, count, outer, inner, size, points } = place;
        if is_dense {
            let lanes = self.x.chunks_exact_mut(points).take(count).enumerate();
            return lanes.for_each(|(at, lane)| padded(&x[at * size..][..size], lane));
        }
        let (stride, kept) = (stride(points), size.min(points));
        let rows = &x[outer * size * inner..][..kept * inner];
        for (k, row) in rows.chunks_exact(inner).enumerate() {
            let lanes = self.x[k..].iter_mut().step_by(stride);
            row[first..first + count].iter().zip(lanes).for_each(|(x, lane)| *lane = *x);
        }
        self.x.chunks_mut(stride).for_each(|lane| lane[kept..].fill(I::zeroed()));
    }
}

/// Copies as much of a lane as fits, and writes zeros after it.
fn padded<A: Pod>(from: &[A], into: &mut [A]) {
    let kept = from.len().min(into.len());
    into[..kept].copy_from_slice(&from[..kept]);
    into[kept..].fill(A::zeroed());
}

/// A float that is transformed.
pub(crate) trait Real: FftNum + Pod + namegrad_core::Element {
    /// The plans of this type.
    fn plans() -> &'static Mutex<Plans<Self>>;

    fn of(value: f64) -> Self;

    fn complex_plan(n: usize, inverse: bool) -> Arc<dyn Fft<Self>> {
        Plans::with(n, |plans| match inverse {
            true => plans.complex.plan_fft_inverse(n),
            false => plans.complex.plan_fft_forward(n),
        })
    }

    /// `-i e^(-2πi k / n)` for the first quarter of the turn.
    fn turns(n: usize) -> Arc<[Complex<Self>]> {
        Plans::with(n, |plans| {
            let turn = |k: usize| {
                let (sin, cos) = (std::f64::consts::TAU * k as f64 / n as f64).sin_cos();
                Complex::new(Self::of(-sin), Self::of(-cos))
            };
            plans.turns.entry(n).or_insert_with(|| (0..n / 4 + 1).map(turn).collect()).clone()
        })
    }

    fn half_plan(n: usize) -> Arc<dyn RealToComplex<Self>> {
        Plans::with(n, |plans| plans.real.plan_fft_forward(n))
    }

    fn real_plan(n: usize) -> Arc<dyn ComplexToReal<Self>> {
        Plans::with(n, |plans| plans.real.plan_fft_inverse(n))
    }
}

/// The plans of past transforms, which planners keep.
pub(crate) struct Plans<T: FftNum> {
    complex: FftPlanner<T>,
    real: RealFftPlanner<T>,
    turns: HashMap<usize, Arc<[Complex<T>]>>,
    /// The points of all transforms that were planned.
    points: usize,
    known: HashSet<usize>,
}

impl<T: Real> Plans<T> {
    fn new() -> Plans<T> {
        Plans {
            complex: FftPlanner::new(),
            real: RealFftPlanner::new(),
            turns: HashMap::new(),
            points: 0,
            known: HashSet::new(),
        }
    }

    /// Plans are as large as what they transform, so those of a program with many lengths are dropped now and
    /// then.
    fn with<P>(n: usize, plan: impl FnOnce(&mut Plans<T>) -> P) -> P {
        const MOST: usize = 1 << 23;
        let mut plans = T::plans().lock().unwrap_or_else(PoisonError::into_inner);
        if plans.known.insert(n) {
            if plans.points > MOST {
                *plans = Plans::new();
                plans.known.insert(n);
            }
            plans.points += n;
        }
        plan(&mut plans)
    }
}

impl Real for f32 {
    fn plans() -> &'static Mutex<Plans<f32>> {
        static PLANS: LazyLock<Mutex<Plans<f32>>> = LazyLock::new(|| Mutex::new(Plans::new()));
        &PLANS
    }
    fn of(value: f64) -> f32 {
        value as f32
    }
}

impl Real for f64 {
    fn plans() -> &'static Mutex<Plans<f64>> {
        static PLANS: LazyLock<Mutex<Plans<f64>>> = LazyLock::new(|| Mutex::new(Plans::new()));
        &PLANS
    }
    fn of(value: f64) -> f64 {
        value
    }
}
