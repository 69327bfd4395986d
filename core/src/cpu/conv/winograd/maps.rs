//! The linear maps of Winograd's algorithm, each for the rows and the columns of a tile.
//!
//! The algorithm multiplies two polynomials by their values at some points. A 3-tap filter and a result of `M`
//! elements need `M + 2` points: for `M = 2` these are 0, 1, -1 and infinity, and for `M = 4` they are 0, ±a,
//! ±b and infinity. Errors are least when `a` and `b` are near 1 and not near each other. `a = 2/3` and
//! `b = 3/2`, whose product is 1, give half of the error of the usual 1 and 2.
//!
//! # Source
//! Lavin, Gray, *Fast algorithms for convolutional neural networks* (2016), section 4; Barabasz et al., *Error
//! analysis and improving the accuracy of Winograd convolution for deep neural networks* (2020), section 3.

use crate::cpu::matmul::{Lanes, x86};
use crate::cpu::simd::{Avx2, Avx512, Isa, Simd, Vectorized};
use std::marker::PhantomData;

/// The most points.
const MOST: usize = 6;

/// A linear map of a few vectors, the first of six.
trait LinearMap {
    const FROM: usize;
    const TO: usize;

    /// # Safety
    /// The contract of [`Lanes`].
    unsafe fn map<L: Lanes<Elem = f32>>(x: [L; MOST]) -> [L; MOST];
}

/// `a * x + y`
///
/// # Safety
/// The contract of [`Lanes`].
#[inline(always)]
unsafe fn axpy<L: Lanes<Elem = f32>>(a: f32, x: L, y: L) -> L {
    // SAFETY: the contract is the same.
    unsafe { L::splat(a).mul_add(x, y) }
}

/// `y + a x` and `y - a x`
///
/// # Safety
/// The contract of [`Lanes`].
#[inline(always)]
unsafe fn both<L: Lanes<Elem = f32>>(a: f32, x: L, y: L) -> [L; 2] {
    // SAFETY: the contract is the same.
    unsafe { [axpy(a, x, y), axpy(-a, x, y)] }
}

/// Defines maps. The row
///
/// ```ignore
/// Input2: 4 => 4, |[x0, x1, x2, x3, _, _], zero| [...];
/// ```
///
/// becomes the type `Input2`, which maps four vectors to four. `zero` is a vector of zeros.
macro_rules! maps {
    ($($(#[$doc:meta])* $Name:ident: $from:literal => $to:literal, |$x:pat_param, $zero:ident| $map:expr;)*) => {$(
        $(#[$doc])*
        struct $Name;

        impl LinearMap for $Name {
            const FROM: usize = $from;
            const TO: usize = $to;

            #[inline(always)]
            #[allow(unused_variables, reason = "maps to six vectors have no zeros")]
            unsafe fn map<L: Lanes<Elem = f32>>($x: [L; MOST]) -> [L; MOST] {
                // SAFETY: the caller's contract.
                unsafe {
                    let $zero = L::splat(0.0);
                    $map
                }
            }
        }
    )*};
}

const A: f32 = 2.0 / 3.0;
const B: f32 = 3.0 / 2.0;
const AA: f32 = (4.0_f64 / 9.0) as f32;
const BB: f32 = 9.0 / 4.0;
/// The values of the weight at `±a` and `±b` are divided by the products of the differences of the points.
const AT_A: f32 = (1.0 / (2.0 * 4.0 / 9.0 * (4.0 / 9.0 - 9.0 / 4.0))) as f32;
const AT_B: f32 = (1.0 / (2.0 * 9.0 / 4.0 * (9.0 / 4.0 - 4.0 / 9.0))) as f32;

maps! {
    /// The input of a tile of two, `Bᵀ`.
    Input2: 4 => 4, |[x0, x1, x2, x3, ..], zero| {
        let [plus, minus] = both(1.0, x1, x2);
        [axpy(-1.0, x2, x0), plus, minus, axpy(-1.0, x1, x3), zero, zero]
    };
    /// The result, `Aᵀ`.
    Output2: 4 => 2, |[x0, x1, x2, x3, ..], zero| {
        let [plus, minus] = both(1.0, x2, x1);
        [axpy(1.0, plus, x0), axpy(1.0, minus, x3), zero, zero, zero, zero]
    };
    /// The gradient of the result, `A`.
    Gradient2: 2 => 4, |[x0, x1, ..], zero| {
        let [plus, minus] = both(1.0, x1, x0);
        [x0, plus, minus, x1, zero, zero]
    };
    /// The weight, `G`.
    Weight2: 3 => 4, |[x0, x1, x2, ..], zero| {
        let half = axpy(0.5, x0, axpy(0.5, x2, zero));
        let [plus, minus] = both(0.5, x1, half);
        [x0, plus, minus, x2, zero, zero]
    };
    /// The gradient of the weight, `Gᵀ`.
    WeightGradient2: 4 => 3, |[x0, x1, x2, x3, ..], zero| {
        let [plus, minus] = both(1.0, x2, x1);
        [axpy(0.5, plus, x0), axpy(0.5, minus, zero), axpy(0.5, plus, x3), zero, zero, zero]
    };
    /// The input of a tile of four.
    Input4: 6 => 6, |[x0, x1, x2, x3, x4, x5], zero| {
        let [a0, a1] = both(A, axpy(-BB, x1, x3), axpy(-BB, x2, x4));
        let [b0, b1] = both(B, axpy(-AA, x1, x3), axpy(-AA, x2, x4));
        let first = axpy(-(AA + BB), x2, axpy(1.0, x4, x0));
        [first, a0, a1, b0, b1, axpy(-(AA + BB), x3, axpy(1.0, x5, x1))]
    };
    /// The result.
    Output4: 6 => 4, |[x0, x1, x2, x3, x4, x5], zero| {
        let ([even_a, odd_a], [even_b, odd_b]) = (both(1.0, x2, x1), both(1.0, x4, x3));
        let first = axpy(1.0, axpy(1.0, even_a, even_b), x0);
        let last = axpy(A * AA, odd_a, axpy(B * BB, odd_b, x5));
        [
            first,
            axpy(A, odd_a, axpy(B, odd_b, zero)),
            axpy(AA, even_a, axpy(BB, even_b, zero)),
            last,
            zero,
            zero,
        ]
    };
    /// The gradient of the result.
    Gradient4: 4 => 6, |[x0, x1, x2, x3, ..], zero| {
        let [a0, a1] = both(A, axpy(AA, x3, x1), axpy(AA, x2, x0));
        let [b0, b1] = both(B, axpy(BB, x3, x1), axpy(BB, x2, x0));
        [x0, a0, a1, b0, b1, x3]
    };
    /// The weight.
    Weight4: 3 => 6, |[x0, x1, x2, ..], zero| {
        let even_a = axpy(AT_A, x0, axpy(AT_A * AA, x2, zero));
        let even_b = axpy(AT_B, x0, axpy(AT_B * BB, x2, zero));
        let ([a0, a1], [b0, b1]) = (both(AT_A * A, x1, even_a), both(AT_B * B, x1, even_b));
        [x0, a0, a1, b0, b1, x2]
    };
    /// The gradient of the weight.
    WeightGradient4: 6 => 3, |[x0, x1, x2, x3, x4, x5], zero| {
        let ([even_a, odd_a], [even_b, odd_b]) = (both(1.0, x2, x1), both(1.0, x4, x3));
        [
            axpy(AT_A, even_a, axpy(AT_B, even_b, x0)),
            axpy(AT_A * A, odd_a, axpy(AT_B * B, odd_b, zero)),
            axpy(AT_A * AA, even_a, axpy(AT_B * BB, even_b, x5)),
            zero,
            zero,
            zero,
        ]
    };
}

/// Square matrices of vectors, and where the results of a map of their columns and then of their rows go. The
/// distances of rows, columns and matrices are in numbers.
pub(super) struct Tiles {
    pub(super) from: (*const f32, [usize; 3]),
    pub(super) to: (*mut f32, [usize; 3]),
    pub(super) count: usize,
    /// A vector that is added to each result.
    pub(super) plus: Option<*const f32>,
}

/// Maps tiles.
///
/// # Safety
/// The vectors are valid for reads and writes, and the CPU has the instructions.
pub(super) type MapFn = unsafe fn(&Tiles);

/// The maps for tiles of some size.
pub(super) struct TileMaps {
    /// The results along a side.
    pub(super) side: usize,
    /// The numbers in a vector.
    pub(super) lanes: usize,
    pub(super) input: MapFn,
    pub(super) output: MapFn,
    pub(super) gradient: MapFn,
    pub(super) weight: MapFn,
    pub(super) weight_gradient: MapFn,
}

impl TileMaps {
    /// The maps with vectors of `L` for tiles of two and of four.
    const fn with<S: Simd, L: Lanes<Elem = f32>>() -> [TileMaps; 2] {
        [
            TileMaps {
                side: 2,
                lanes: L::COUNT,
                input: compiled::<S, L, Input2>,
                output: compiled::<S, L, Output2>,
                gradient: compiled::<S, L, Gradient2>,
                weight: compiled::<S, L, Weight2>,
                weight_gradient: compiled::<S, L, WeightGradient2>,
            },
            TileMaps {
                side: 4,
                lanes: L::COUNT,
                input: compiled::<S, L, Input4>,
                output: compiled::<S, L, Output4>,
                gradient: compiled::<S, L, Gradient4>,
                weight: compiled::<S, L, Weight4>,
                weight_gradient: compiled::<S, L, WeightGradient4>,
            },
        ]
    }

    /// The maps for tiles of two and of four. CPUs without AVX2 are rare and have none.
    pub(super) fn of(isa: Isa) -> Option<&'static [TileMaps; 2]> {
        static NARROW: [TileMaps; 2] = TileMaps::with::<Avx2, x86::F32x8>();
        static WIDE: [TileMaps; 2] = TileMaps::with::<Avx512, x86::F32x16>();
        match isa {
            Isa::Baseline => None,
            Isa::Avx2 => Some(&NARROW),
            Isa::Avx512 => Some(&WIDE),
        }
    }
}

/// A map for the instructions of `S`. The contract is that of [`MapFn`].
unsafe fn compiled<S: Simd, L: Lanes<Elem = f32>, M: LinearMap>(tiles: &Tiles) {
    // SAFETY: the contract is the same.
    unsafe { S::assume() }.run(MapOf::<L, M>(tiles, PhantomData), ());
}

/// The argument of a map, which meets its contract.
struct MapOf<'a, L, M>(&'a Tiles, PhantomData<(L, M)>);

impl<L: Lanes<Elem = f32>, M: LinearMap> Vectorized for MapOf<'_, L, M> {
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S, _: ()) {
        let Tiles { from: (from, from_apart), to: (to, to_apart), count, plus } = *self.0;
        // SAFETY: the contract of a map holds.
        unsafe {
            let zero = L::splat(0.0);
            let plus = plus.map_or(zero, |plus| L::load(plus));
            let mut tile = 0;
            while tile < count {
                let (from, to) = (from.add(tile * from_apart[2]), to.add(tile * to_apart[2]));
                let mut columns = [[zero; MOST]; MOST];
                let mut j = 0;
                while j < M::FROM {
                    let mut column = [zero; MOST];
                    let mut i = 0;
                    while i < M::FROM {
                        column[i] = L::load(from.add(i * from_apart[0] + j * from_apart[1]));
                        i += 1;
                    }
                    columns[j] = M::map(column);
                    j += 1;
                }
                let mut i = 0;
                while i < M::TO {
                    let mut row = [zero; MOST];
                    let mut j = 0;
                    while j < M::FROM {
                        row[j] = columns[j][i];
                        j += 1;
                    }
                    let row = M::map(row);
                    let mut j = 0;
                    while j < M::TO {
                        axpy(1.0, row[j], plus).store(to.add(i * to_apart[0] + j * to_apart[1]));
                        j += 1;
                    }
                    i += 1;
                }
                tile += 1;
            }
        }
    }
}
