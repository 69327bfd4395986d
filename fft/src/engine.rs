//! One-dimensional transforms of many lanes, on plain slices and all threads.
//!
//! [`Stage`] says what a transform computes, and [`Stage::run`] computes it for tensors without names. The
//! plans of `rustfft` and `realfft` are shared by all calls.

use crate::common::*;
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use namegrad_core::kernels;
use num_complex::Complex;
use rayon::prelude::*;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftNum, FftPlanner};
use std::collections::HashMap;
use std::mem::MaybeUninit;
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

    /// The transform of a tensor of `f32` or `f64` without names, in its own memory if nobody else has it and
    /// the result fits there.
    #[track_caller]
    pub(crate) fn run(&self, op: &'static str, x: NamedTensor, is_own: bool) -> Result<NamedTensor> {
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
        match x.dtype() {
            DType::F64 => self.of::<f64>(op, x, lanes, &sizes, is_own),
            _ => self.of::<f32>(op, x, lanes, &sizes, is_own),
        }
    }

    #[track_caller]
    fn of<T: Real>(
        &self,
        op: &'static str,
        x: NamedTensor,
        lanes: [usize; 2],
        sizes: &[usize],
        is_own: bool,
    ) -> Result<NamedTensor> {
        if x.device() == Device::Meta {
            return NamedTensor::full_as(op, sizes, 0.into(), x.dtype());
        }
        if lanes[1] == 1 {
            let x = x.contiguous()?;
            let of = x.as_slice::<T>()?;
            return kernels::written(op, sizes, |y| self.slices(of, lanes, Out::Room(y)));
        }
        if is_own && self.kind == Kind::Complex && self.from == self.to {
            let mut y = x.contiguous()?;
            self.slices(&[], lanes, Out::Own(y.as_mut_slice::<T>()?));
            return Ok(y);
        }
        let x = x.contiguous()?;
        let mut y = NamedTensor::full_as(op, sizes, 0.into(), x.dtype()).map_err(|error| error.of(op))?;
        self.slices(x.as_slice::<T>()?, lanes, Out::Other(y.as_mut_slice::<T>()?));
        Ok(y)
    }

    fn slices<'y, T: Real>(&self, x: &[T], [outer, inner]: [usize; 2], y: Out<'y, T>) -> &'y mut [T] {
        let half = self.n / 2 + 1;
        // The values in half of a spectrum that count for two of the whole: all but the first and the middle
        // one.
        let two = 1..self.n.div_ceil(2);
        let (scale, inner_factor) = (self.scale, self.inner);
        let lanes = |points: [usize; 2]| Lanes { outer, inner, from: self.from, to: self.to, points };
        match self.kind {
            Kind::Complex => {
                let fft = T::complex_plan(self.n, self.inverse);
                let scratch = fft.get_immutable_scratch_len();
                lanes([self.n; 2]).run(
                    cast_slice::<T, Complex<T>>(x),
                    y,
                    || vec![zero(); scratch],
                    |scratch, x, y: &mut [Complex<T>]| {
                        fft.process_immutable_with_scratch(x, y, scratch);
                        scaled(cast_slice_mut::<_, T>(y), scale);
                    },
                )
            }
            Kind::ToHalf if self.n.is_multiple_of(2) => {
                let (fft, turns) = (T::complex_plan(self.n / 2, false), T::turns(self.n));
                let room = || (Vec::new(), vec![zero(); fft.get_immutable_scratch_len()]);
                let inner = scale * inner_factor;
                let factors = [scale, inner, if self.inverse { -inner } else { inner }].map(T::of);
                lanes([self.n, half]).run(x, y, room, |(folded, scratch), x, y: &mut [Complex<T>]| {
                    folded.resize(x.len() / 2, zero());
                    fft.process_immutable_with_scratch(cast_slice(x), folded, scratch);
                    kernels::widely(Unfold { z: folded, turns: &turns, factors, y });
                })
            }
            Kind::ToHalf => {
                let fft = T::half_plan(self.n);
                let room = || (vec![T::zero(); self.n], fft.make_scratch_vec());
                lanes([self.n, half]).run(x, y, room, |(signal, scratch), x, y: &mut [Complex<T>]| {
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
                })
            }
            Kind::FromHalf if self.n.is_multiple_of(2) => {
                let (fft, turns) = (T::complex_plan(self.n / 2, true), T::turns(self.n));
                let room = || (Vec::new(), vec![zero(); fft.get_immutable_scratch_len()]);
                let inner = scale * inner_factor / 2.0;
                let factors = [scale, inner, if self.inverse { inner } else { -inner }].map(T::of);
                lanes([half, self.n]).run(cast_slice(x), y, room, |(folded, scratch), x, y: &mut [T]| {
                    folded.resize(y.len() / 2, zero());
                    kernels::widely(Fold { x, turns: &turns, factors, z: folded });
                    fft.process_immutable_with_scratch(folded, cast_slice_mut(y), scratch);
                })
            }
            Kind::FromHalf => {
                let fft = T::real_plan(self.n);
                let room = || (vec![zero::<T>(); half], fft.make_scratch_vec());
                lanes([half, self.n]).run(cast_slice(x), y, room, |(spectrum, scratch), x, y: &mut [T]| {
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
                })
            }
        }
    }
}

/// Where a result goes.
enum Out<'y, T> {
    /// Memory that is not written yet.
    Room(&'y mut [MaybeUninit<T>]),
    /// The memory of the input.
    Own(&'y mut [T]),
    /// Other memory, with zeros.
    Other(&'y mut [T]),
}

/// For each lane of `z`, [`unfolded`].
struct Unfold<'a, T> {
    z: &'a [Complex<T>],
    turns: &'a Turns<T>,
    factors: [T; 3],
    y: &'a mut [Complex<T>],
}

impl<T: Real> kernels::Loop for Unfold<'_, T> {
    #[inline(always)]
    fn run(self) {
        let m = self.turns.half;
        for (z, y) in self.z.chunks_exact(m).zip(self.y.chunks_exact_mut(m + 1)) {
            unfolded(z, self.turns, self.factors, y);
        }
    }
}

/// For each lane of `x`, [`fold`].
struct Fold<'a, T> {
    x: &'a [Complex<T>],
    turns: &'a Turns<T>,
    factors: [T; 3],
    z: &'a mut [Complex<T>],
}

impl<T: Real> kernels::Loop for Fold<'_, T> {
    #[inline(always)]
    fn run(self) {
        let m = self.turns.half;
        for (x, z) in self.x.chunks_exact(m + 1).zip(self.z.chunks_exact_mut(m)) {
            fold(x, self.turns, self.factors, z);
        }
    }
}

/// The half spectrum of `2m` numbers, from the transform `z` of `m` pairs of neighbors as complex numbers:
/// `y[k] = e + t`, `y[m - k]* = e - t`, with `e = (z[k] + z[m - k]*) / 2` and `t` the other half times a turn.
/// The first factor is that of the first and the last value, the others are those of the real and imaginary
/// parts of all other values.
///
/// # Source
/// Press et al., *Numerical Recipes* (3rd edition, 2007), section 12.3.2.
#[inline(always)]
fn unfolded<T: Real>(z: &[Complex<T>], turns: &Turns<T>, [ends, re, im]: [T; 3], y: &mut [Complex<T>]) {
    let m = z.len();
    y[0] = Complex::new((z[0].re + z[0].im) * ends, T::zero());
    y[m] = Complex::new((z[0].re - z[0].im) * ends, T::zero());
    let factors = [T::of(0.5) * re, T::of(0.5) * im];
    let at = |a: Complex<T>, b: Complex<T>, turn: Complex<T>| {
        let (sum, rest) = (Complex::new(a.re + b.re, a.im - b.im), Complex::new(a.re - b.re, a.im + b.im));
        let turned = rest * turn;
        let (low, high) = (sum + turned, sum - turned);
        [
            Complex::new(low.re * factors[0], low.im * factors[1]),
            Complex::new(high.re * factors[0], -high.im * factors[1]),
        ]
    };
    mirrored(z, turns, at, &mut y[..m]);
    if m > 1 && m.is_multiple_of(2) {
        let z = z[m / 2];
        y[m / 2] = Complex::new(z.re * re, -z.im * im);
    }
}

/// The inverse of [`unfolded`], up to factors, of the values or of their conjugates.
#[inline(always)]
fn fold<T: Real>(x: &[Complex<T>], turns: &Turns<T>, [ends, re, im]: [T; 3], z: &mut [Complex<T>]) {
    let m = z.len();
    let own = |x: Complex<T>| Complex::new(x.re * re, x.im * im);
    // The imaginary parts of the first and the last value play no part.
    let (first, last) = (x[0].re * ends, x[m].re * ends);
    z[0] = Complex::new(first + last, first - last);
    let at = |a: Complex<T>, b: Complex<T>, turn: Complex<T>| {
        let (a, b) = (own(a), own(b));
        let (sum, rest) = (Complex::new(a.re + b.re, a.im - b.im), Complex::new(a.re - b.re, a.im + b.im));
        // Times the conjugate of the turn.
        let turned =
            Complex::new(rest.re * turn.re + rest.im * turn.im, rest.im * turn.re - rest.re * turn.im);
        [sum + turned, (sum - turned).conj()]
    };
    mirrored(&x[..m], turns, at, z);
    if m > 1 && m.is_multiple_of(2) {
        let middle = own(x[m / 2]);
        z[m / 2] = Complex::new(middle.re * T::of(2.0), -middle.im * T::of(2.0));
    }
}

/// `[y[k], y[m - k]] = at(x[k], x[m - k], turns[k])` for `k` from 1 on, up to before the middle, in blocks
/// whose numbers fill vectors.
#[inline(always)]
fn mirrored<T: Real>(
    x: &[Complex<T>],
    turns: &Turns<T>,
    at: impl Fn(Complex<T>, Complex<T>, Complex<T>) -> [Complex<T>; 2],
    y: &mut [Complex<T>],
) {
    let m = x.len();
    let count = (m - 1) / 2;
    let (mut k, x, y) = (0, &x[1..], &mut y[1..]);
    let (re, im) = (&turns.re[1..], &turns.im[1..]);
    let (low, high) = y.split_at_mut(m - 1 - count);
    while k + BLOCK_OF_PAIRS <= count {
        block::<T, BLOCK_OF_PAIRS>(x, [re, im], &at, [low, high], k);
        k += BLOCK_OF_PAIRS;
    }
    while k + BLOCK_OF_PAIRS / 4 <= count {
        block::<T, { BLOCK_OF_PAIRS / 4 }>(x, [re, im], &at, [low, high], k);
        k += BLOCK_OF_PAIRS / 4;
    }
    if k < count {
        block::<T, 1>(x, [re, im], &at, [low, high], k);
    }
}

/// The pairs of values that are computed together.
const BLOCK_OF_PAIRS: usize = 8;

#[inline(always)]
fn block<T: Real, const W: usize>(
    x: &[Complex<T>],
    [re, im]: [&[T]; 2],
    at: &impl Fn(Complex<T>, Complex<T>, Complex<T>) -> [Complex<T>; 2],
    [low, high]: [&mut [Complex<T>]; 2],
    k: usize,
) {
    let (from, to) = (x.len() - k - W, high.len() - k - W);
    let (a, b) = (&x[k..][..W], &x[from..][..W]);
    let (re, im) = (&re[k..][..W], &im[k..][..W]);
    let mut made = [[Complex::new(T::zero(), T::zero()); W]; 2];
    for i in 0..W {
        let [low, high] = at(a[i], b[W - 1 - i], Complex::new(re[i], im[i]));
        (made[0][i], made[1][W - 1 - i]) = (low, high);
    }
    low[k..][..W].copy_from_slice(&made[0]);
    high[to..][..W].copy_from_slice(&made[1]);
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
    fn run<'y, T: Real, I: Pod + Send + Sync, O: Pod + Send + Sync, S: Send>(
        &self,
        x: &[I],
        y: Out<'y, T>,
        state: impl Fn() -> S + Sync,
        f: impl Fn(&mut S, &[I], &mut [O]) + Sync,
    ) -> &'y mut [T] {
        match y {
            Out::Room(y) => self.rows(x, y, state, f),
            Out::Own(y) => {
                self.columns(None, cast_slice_mut::<T, O>(y), state, f);
                y
            }
            Out::Other(y) => {
                self.columns(Some(x), cast_slice_mut::<T, O>(y), state, f);
                y
            }
        }
    }

    /// [`run`](Self::run) for lanes that are one after another.
    fn rows<'y, T: Real, I: Pod + Send + Sync, O: Pod + Send + Sync, S: Send>(
        &self,
        x: &[I],
        y: &'y mut [MaybeUninit<T>],
        state: impl Fn() -> S + Sync,
        f: impl Fn(&mut S, &[I], &mut [O]) + Sync,
    ) -> &'y mut [T] {
        let Lanes { outer, from, to, points, .. } = *self;
        let width = to * size_of::<O>() / size_of::<T>();
        let longest = points[0].max(points[1]);
        let count = match outer * longest < SHARED {
            true => outer,
            false => (GRAIN / longest).max(1),
        };
        // Each thread takes what another one has used, if it can.
        let rooms = Mutex::new(Vec::new());
        kernels::write_parts(y, (count * width).max(1), &|at, y: &mut [MaybeUninit<T>]| {
            let taken = rooms.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let (mut state, mut room) = taken.unwrap_or_else(|| {
                let kept = if from == points[0] { 0 } else { points[0] };
                (state(), Room::<I, O>::new(count, [kept, points[1]]))
            });
            let lanes = y.len() / width.max(1);
            let x = &x[at * count * from..][..lanes * from];
            let made = &mut room.y[..lanes * points[1]];
            if from == points[0] {
                f(&mut state, x, made);
            } else {
                for (x, lane) in x.chunks_exact(from.max(1)).zip(room.x.chunks_exact_mut(points[0])) {
                    padded(x, lane);
                }
                f(&mut state, &room.x[..lanes * points[0]], made);
            }
            let y = if to == points[1] {
                kernels::copy(y, cast_slice(made))
            } else {
                kernels::write_in_turn(y, lanes, width, |lane, y| {
                    let mut cut = vec![O::zeroed(); to];
                    padded(&made[lane * points[1]..][..points[1]], &mut cut);
                    kernels::copy(y, cast_slice(&cut))
                })
            };
            rooms.lock().unwrap_or_else(PoisonError::into_inner).push((state, room));
            y
        })
    }

    /// [`run`](Self::run) for lanes whose elements are `inner` apart, of `x` or of `y`.
    fn columns<I: Pod + Send + Sync, O: Pod + Send + Sync, S>(
        &self,
        x: Option<&[I]>,
        y: &mut [O],
        state: impl Fn() -> S + Sync,
        f: impl Fn(&mut S, &[I], &mut [O]) + Sync,
    ) {
        let Lanes { outer, inner, from, to, points } = *self;
        if y.is_empty() {
            return;
        }
        let is_shared =
            outer * inner * points[0].max(points[1]) >= SHARED && rayon::current_num_threads() > 1;
        // Of about one size, lest a block of few lanes takes as long as one of many.
        let block = inner.div_ceil((inner / BLOCK).max(1));
        let strides = points.map(stride);
        let room = || (state(), Room::<I, O>::new(block, strides));
        // Transforms the lanes from `first` on of those in `x`, to `y`.
        let transform = |state: &mut S, room: &mut Room<I, O>, x: &[I], first: usize, y: &mut [O]| {
            let count = block.min(inner - first);
            room.gather(x, Place { first, count, inner, size: from, points: points[0] });
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
                    let x = x.map_or_else(|| cast_slice(&*y), |x| &x[outer * from * inner..]);
                    let count = transform(state, room, x, first, &mut lanes);
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
            let x = x.map_or_else(|| cast_slice(&*y), |x| &x[outer * from * inner..]);
            parts(&mut lanes, block * strides[1], true, room, |(state, room), (at, lanes)| {
                transform(state, room, x, at * block, lanes);
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

/// Lanes of an input whose elements are `inner` apart: `count` from `first` on.
struct Place {
    first: usize,
    count: usize,
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

    /// Copies lanes of `x`, cut or padded with zeros.
    fn gather(&mut self, x: &[I], place: Place) {
        let Place { first, count, inner, size, points } = place;
        let (stride, kept) = (stride(points), size.min(points));
        let rows = &x[..kept * inner];
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

    /// The [`Turns`] of `n` points.
    fn turns(n: usize) -> Arc<Turns<Self>> {
        Plans::with(n, |plans| {
            let of = |part: fn(f64) -> f64| {
                let angles = (0..n / 4 + 1).map(|k| std::f64::consts::TAU * k as f64 / n as f64);
                angles.map(|angle| Self::of(-part(angle))).collect()
            };
            let made = || Arc::new(Turns { half: n / 2, re: of(f64::sin), im: of(f64::cos) });
            plans.turns.entry(n).or_insert_with(made).clone()
        })
    }

    fn half_plan(n: usize) -> Arc<dyn RealToComplex<Self>> {
        Plans::with(n, |plans| plans.real.plan_fft_forward(n))
    }

    fn real_plan(n: usize) -> Arc<dyn ComplexToReal<Self>> {
        Plans::with(n, |plans| plans.real.plan_fft_inverse(n))
    }
}

/// `-i e^(-2πi k / n)` for the first quarter of the turn.
pub(crate) struct Turns<T> {
    /// Half of `n`.
    half: usize,
    re: Vec<T>,
    im: Vec<T>,
}

/// The plans of past transforms, which planners keep.
pub(crate) struct Plans<T: FftNum> {
    complex: FftPlanner<T>,
    real: RealFftPlanner<T>,
    turns: HashMap<usize, Arc<Turns<T>>>,
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
