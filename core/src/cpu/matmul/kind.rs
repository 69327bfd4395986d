//! The table of number types: their functions, and their kernels for each set of instructions.

use half::{bf16, f16};

use super::element::{Accumulator, MatmulNumber};
use super::foreign::{of_f32, of_f64, of_integers};
use super::pack::pack;
use super::product::{AddFn, ForeignFn, Kernels, NumberKind, PackFn, WriteFn};
use super::rounded::{add, write};

/// A type of number that has products.
pub(crate) trait MatmulElement: MatmulNumber {
    /// Its functions.
    fn kind() -> &'static NumberKind;
}

impl MatmulElement for f32 {
    fn kind() -> &'static NumberKind {
        static KIND: NumberKind = of_sums::<f32>(kernels_of_f32, of_f32);
        &KIND
    }
}

impl MatmulElement for f64 {
    fn kind() -> &'static NumberKind {
        static KIND: NumberKind = of_sums::<f64>(kernels_of_f64, of_f64);
        &KIND
    }
}

impl MatmulElement for i64 {
    fn kind() -> &'static NumberKind {
        static KIND: NumberKind = of_sums::<i64>(|| None, of_integers);
        &KIND
    }
}

impl MatmulElement for bf16 {
    fn kind() -> &'static NumberKind {
        static KIND: NumberKind = of_halves::<bf16>(kernels_of_bf16, write_bf16);
        &KIND
    }
}

impl MatmulElement for f16 {
    fn kind() -> &'static NumberKind {
        static KIND: NumberKind = of_halves::<f16>(kernels_of_f32, write::<f16>);
        &KIND
    }
}

/// A type that is its own accumulator.
const fn of_sums<T: MatmulElement + Accumulator>(
    kernels: fn() -> Option<&'static Kernels>,
    multiply: ForeignFn,
) -> NumberKind {
    let (size, acc) = (size_of::<T>(), T::kind as fn() -> &'static NumberKind);
    // Integers are packed as floats of their width: what is copied are bits.
    let pack = if size == size_of::<f64>() { pack::<f64> as PackFn } else { pack::<f32> };
    let (write, add) = (write::<T> as WriteFn, add::<T> as AddFn);
    NumberKind { size, acc, is_acc: true, one: T::ONE_BITS, kernels, pack, write, add, multiply }
}

/// A half type, whose sums are `f32`.
const fn of_halves<T: MatmulElement<Acc = f32>>(
    kernels: fn() -> Option<&'static Kernels>,
    write: WriteFn,
) -> NumberKind {
    let sums = of_sums::<f32>(kernels, |_| unreachable!("only accumulators are multiplied"));
    NumberKind { size: size_of::<T>(), is_acc: false, pack: pack::<T>, write, ..sums }
}

#[cfg(not(target_arch = "x86_64"))]
use none::*;

/// Other processors have no kernels here.
#[cfg(not(target_arch = "x86_64"))]
mod none {
    use super::*;

    pub(super) fn kernels_of_f32() -> Option<&'static Kernels> {
        None
    }
    pub(super) use kernels_of_f32 as kernels_of_f64;
    pub(super) use kernels_of_f32 as kernels_of_bf16;
    pub(super) use write as write_bf16;
}

#[cfg(target_arch = "x86_64")]
use x86_64::*;

/// The kernels of x86-64.
#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::super::amx;
    use super::super::axpys::axpys;
    use super::super::dots::dots;
    use super::super::kernel::compiled;
    use super::super::lanes::{Array, Lanes, x86};
    use super::super::pairs::{self, tile_of_pairs};
    use super::super::product::{BlockResults, TileFn};
    use super::*;
    use crate::cpu::simd::{Avx2, Avx512, Baseline, Simd, isa};

    /// Kernels with the listed rows, and a number of vectors, or those of `pairs`.
    /// `tiles!(Avx2, x86::F32x8, [2 1] 2)` is
    ///
    /// ```ignore
    /// &[(2, compiled::<Avx2, x86::F32x8, 2, 2, false>), (1, compiled::<Avx2, x86::F32x8, 1, 2, false>)]
    /// ```
    macro_rules! tiles {
        (pairs, [$($rows:literal)*] $V:literal) => {
            &[$(($rows, tile_of_pairs::<$rows, $V> as TileFn)),*]
        };
        ($S:ty, $L:ty, [$($rows:literal)*] $V:literal) => { tiles!(false, $S, $L, [$($rows)*] $V) };
        ($scattered:literal, $S:ty, $L:ty, [$($rows:literal)*] $V:literal) => {
            &[$(($rows, compiled::<$S, $L, $rows, $V, $scattered> as TileFn)),*]
        };
    }

    /// The kernels with vectors `L` of the instructions `S`.
    const fn with<S: Simd, L: Lanes>(row_unit: usize, tiles: [&'static [(usize, TileFn)]; 2]) -> Kernels {
        Kernels {
            lanes: L::COUNT,
            rows: tiles[1][0].0,
            row_unit,
            depth: 1,
            k_unit: 1,
            tiles,
            scattered: None,
            panels: None,
            dots: dots::<S, L>,
            axpys: axpys::<S, L>,
            around: None,
        }
    }

    /// The kernels of the CPU among those for each set of instructions, the narrowest first.
    fn of_isa(kernels: [&'static Kernels; 3]) -> Option<&'static Kernels> {
        Some(kernels[isa() as usize])
    }

    /// The kernels for all CPUs, of which there are few: CPUs without AVX2 are rare.
    const fn plain<L: Lanes>() -> Kernels {
        with::<Baseline, L>(4, [tiles!(Baseline, L, [4 1] 1), tiles!(Baseline, L, [4 1] 2)])
    }

    pub(super) fn kernels_of_f32() -> Option<&'static Kernels> {
        static WIDE: Kernels = Kernels {
            scattered: Some([
                tiles!(true, Avx512, x86::F32x16, [12 8 4 1] 1),
                tiles!(true, Avx512, x86::F32x16, [12 10 8 6 4 2 1] 2),
            ]),
            ..with::<Avx512, x86::F32x16>(
                2,
                [
                    tiles!(Avx512, x86::F32x16, [14 12 8 4 2 1] 1),
                    tiles!(Avx512, x86::F32x16, [14 12 10 8 6 4 2 1] 2),
                ],
            )
        };
        static NARROW: Kernels = Kernels {
            scattered: Some([
                tiles!(true, Avx2, x86::F32x8, [6 4 1] 1),
                tiles!(true, Avx2, x86::F32x8, [6 4 2 1] 2),
            ]),
            ..with::<Avx2, x86::F32x8>(
                2,
                [tiles!(Avx2, x86::F32x8, [6 4 1] 1), tiles!(Avx2, x86::F32x8, [6 4 2 1] 2)],
            )
        };
        static PLAIN: Kernels = plain::<Array<f32, 4>>();
        of_isa([&PLAIN, &NARROW, &WIDE])
    }

    /// Fewer kernels than for `f32`: each costs build time.
    pub(super) fn kernels_of_f64() -> Option<&'static Kernels> {
        static WIDE: Kernels = with::<Avx512, x86::F64x8>(
            4,
            [tiles!(Avx512, x86::F64x8, [12 4 1] 1), tiles!(Avx512, x86::F64x8, [12 4 1] 2)],
        );
        static NARROW: Kernels = with::<Avx2, x86::F64x4>(
            4,
            [tiles!(Avx2, x86::F64x4, [4 1] 1), tiles!(Avx2, x86::F64x4, [4 1] 2)],
        );
        static PLAIN: Kernels = plain::<Array<f64, 2>>();
        of_isa([&PLAIN, &NARROW, &WIDE])
    }

    pub(super) fn kernels_of_bf16() -> Option<&'static Kernels> {
        const PAIRS: Kernels = Kernels {
            depth: 2,
            panels: Some([pairs::pack, pairs::pack]),
            ..with::<Avx512, x86::F32x16>(4, [tiles!(pairs, [12 4 1] 1), tiles!(pairs, [12 4 1] 2)])
        };
        static OF_PAIRS: Kernels = PAIRS;
        static OF_TILES: Kernels = Kernels {
            lanes: amx::SIDE,
            rows: amx::BLOCK,
            row_unit: amx::SIDE,
            k_unit: amx::SIDE,
            tiles: [&amx::TILES, &amx::TILES],
            panels: Some([amx::pack_rows, amx::pack_columns]),
            around: Some((amx::make_ready, amx::release)),
            ..PAIRS
        };
        if amx::is_found() {
            Some(&OF_TILES)
        } else if pairs::are_found() {
            Some(&OF_PAIRS)
        } else {
            kernels_of_f32()
        }
    }

    /// # Safety
    /// The contract of [`WriteFn`].
    pub(super) unsafe fn write_bf16(results: &BlockResults) {
        // SAFETY: the contract is the same, and the instructions are found.
        unsafe {
            if results.c.col == size_of::<bf16>() as isize && pairs::are_found() {
                pairs::write(results);
            } else {
                write::<bf16>(results);
            }
        }
    }
}
