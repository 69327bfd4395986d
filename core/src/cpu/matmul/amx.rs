//! Products of `bf16` on a CPU with AMX, whose registers are tiles: 16 rows of 64 bytes. One instruction adds
//! the product of a tile of A, 16 rows of 16 pairs, and a tile of B, 16 pairs of 16 columns, to a tile of C,
//! 16 × 16 sums in `f32`. That is ten times as fast as with the vectors of `f32`.
//!
//! A panel of B is that of [`pairs`](super::pairs). A panel of A has, for each 16 rows and 16 pairs, a tile.
//! Both are filled with zeros to whole tiles along `k`. As with `pairs`, subnormal numbers count as 0.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use super::element::Accumulator;
use super::pack::square_of_8;
use super::pairs;
use super::product::{PanelCopy, Tile, TileFn};
use crate::cpu::simd::{Avx512, Simd, Vectorized, is_unlimited};
use half::bf16;

/// The rows of a tile, its pairs or sums in a row, and the pairs that it takes along `k`.
pub(super) const SIDE: usize = 16;
/// The rows and columns of C that the kernel computes at once, as two by two tiles. They take four of the
/// eight registers, and each tile of A and B is used twice.
pub(super) const BLOCK: usize = 2 * SIDE;
/// The bytes of a tile, and of its rows.
const BYTES: usize = SIDE * ROW;
const ROW: usize = 64;

/// Whether this CPU has the instructions and the system lets us use the registers.
#[inline]
pub(super) fn is_found() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| Avx512::found().is_some() && is_unlimited() && has_instructions() && is_permitted())
}

/// The kernel for each number of rows, the greatest first.
pub(super) static TILES: [(usize, TileFn); BLOCK] = {
    let mut tiles: [(usize, TileFn); BLOCK] = [(0, tile); BLOCK];
    let mut at = 0;
    while at < BLOCK {
        tiles[at].0 = BLOCK - at;
        at += 1;
    }
    tiles
};

/// Whether the CPU has tiles and their products of `bf16`.
fn has_instructions() -> bool {
    /// In leaf 7 of `cpuid`, in EDX: AMX-BF16 and AMX-TILE.
    const AMX: u32 = 1 << 22 | 1 << 24;
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & AMX == AMX
}

/// Asks the system for the registers, which Linux saves only for processes that have asked.
///
/// <https://docs.kernel.org/arch/x86/xstate.html>
#[cfg(target_os = "linux")]
fn is_permitted() -> bool {
    const SYS_ARCH_PRCTL: usize = 158;
    const ARCH_REQ_XCOMP_PERM: usize = 0x1023;
    const XFEATURE_XTILEDATA: usize = 18;
    let result: isize;
    // SAFETY: the call has two numbers as arguments and touches no memory of the program. An old system does
    // not know it and says so.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") SYS_ARCH_PRCTL => result,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XFEATURE_XTILEDATA,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    result == 0
}

/// Other systems are not asked.
#[cfg(not(target_os = "linux"))]
fn is_permitted() -> bool {
    false
}

/// The configuration of the registers: all are whole tiles.
#[repr(C, align(64))]
struct TileConfig {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

static CONFIG: TileConfig = {
    let (mut row_bytes, mut rows) = ([0; 16], [0; 16]);
    let mut register = 0;
    while register < 8 {
        (row_bytes[register], rows[register]) = (ROW as u16, SIDE as u8);
        register += 1;
    }
    TileConfig { palette: 1, start_row: 0, reserved: [0; 14], row_bytes, rows }
};

/// Makes the registers ready for use by this thread, which takes as long as the kernel with a short `k`.
///
/// # Safety
/// [`is_found`] has returned true.
pub(super) unsafe fn make_ready() {
    // SAFETY: the CPU has the instruction, which reads the configuration.
    unsafe { asm!("ldtilecfg [{}]", in(reg) &CONFIG, options(nostack, readonly, preserves_flags)) };
}

/// Ends the use of the registers.
///
/// # Safety
/// They are [ready](make_ready), and no other code uses them.
pub(super) unsafe fn release() {
    // SAFETY: the CPU has the instruction, and no other code uses the registers.
    unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) };
}

/// The sums of a block of C.
#[repr(C, align(64))]
struct BlockSums([[MaybeUninit<f32>; BLOCK]; BLOCK]);

/// The kernel. A tile that C does not have is computed as a copy of the one beside it.
///
/// # Safety
/// The contract of [`TileFn`]. The panels are those of [`pack_rows`] and [`pack_columns`], and the
/// registers are [ready](make_ready).
unsafe fn tile(t: &Tile) {
    let chunks = t.k / SIDE;
    let b_row = t.b_row as usize;
    let second_a = if t.rows > SIDE { chunks * BYTES } else { 0 };
    let second_b = if t.cols > SIDE { ROW } else { 0 };
    let in_place = t.rows == BLOCK && t.cols == BLOCK && t.alpha == f32::ONE_BITS && t.beta == 0;
    let mut sums = BlockSums([[MaybeUninit::uninit(); BLOCK]; BLOCK]);
    let (to, to_row) = if in_place {
        (t.c, t.c_row)
    } else {
        (sums.0.as_mut_ptr().cast::<u8>(), (BLOCK * size_of::<f32>()) as isize)
    };
    // SAFETY: the caller guarantees the panels, which are whole tiles, and C.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "2:",
            "tileloadd tmm4, [{a} + {a_row}*1]",
            "tileloadd tmm6, [{b} + {b_row}*1]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{right} + {b_row}*1]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tileloadd tmm5, [{below} + {a_row}*1]",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "add {a}, {a_step}",
            "add {below}, {a_step}",
            "add {b}, {b_step}",
            "add {right}, {b_step}",
            "dec {chunks}",
            "jnz 2b",
            "tilestored [{to} + {to_row}*1], tmm0",
            "tilestored [{to} + {to_row}*1 + 64], tmm1",
            "tilestored [{to_below} + {to_row}*1], tmm2",
            "tilestored [{to_below} + {to_row}*1 + 64], tmm3",
            a = inout(reg) t.a => _,
            below = inout(reg) t.a.add(second_a) => _,
            a_row = in(reg) ROW,
            a_step = const BYTES,
            b = inout(reg) t.b => _,
            right = inout(reg) t.b.add(second_b) => _,
            b_row = in(reg) b_row,
            b_step = in(reg) SIDE * b_row,
            chunks = inout(reg) chunks => _,
            to = in(reg) to,
            to_below = in(reg) to.wrapping_offset(SIDE as isize * to_row),
            to_row = in(reg) to_row,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
        if !in_place {
            Avx512::assume().run(Finish { t, sums: &sums }, ());
        }
    }
}

/// `c ← alpha sums + beta c` for the rows and columns that C has.
struct Finish<'a> {
    t: &'a Tile,
    sums: &'a BlockSums,
}

impl Vectorized for Finish<'_> {
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S, _: ()) {
        let t = self.t;
        let [alpha, beta] = [t.alpha, t.beta].map(|bits| f32::from_bits(bits as u32));
        for (r, sums) in self.sums.0.iter().enumerate().take(t.rows) {
            // SAFETY: the kernel has written all sums, and the caller guarantees the rows of C. They are
            // read only if `beta` is not 0.
            unsafe {
                let sums = std::slice::from_raw_parts(sums.as_ptr().cast::<f32>(), t.cols);
                let c = t.c.offset(r as isize * t.c_row).cast::<f32>();
                if t.beta == 0 {
                    for (j, sum) in sums.iter().enumerate() {
                        c.add(j).write(alpha * sum);
                    }
                } else {
                    let c = std::slice::from_raw_parts_mut(c, t.cols);
                    for (c, sum) in c.iter_mut().zip(sums) {
                        *c = alpha.mul_add(*sum, beta * *c);
                    }
                }
            }
        }
    }
}

/// Writes a panel of A: `part` has a row of it as each number, at most a block of them.
///
/// # Safety
/// The contract of [`pairs::pack`], and `to` has room for whole tiles.
pub(super) unsafe fn pack_rows(part: PanelCopy) {
    // SAFETY: the caller guarantees the instructions.
    unsafe { Avx512::assume() }.run(PanelRows(part), ());
}

struct PanelRows(PanelCopy);

impl Vectorized for PanelRows {
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S, _: ()) {
        let part = self.0;
        let chunks = part.k.div_ceil(BLOCK);
        // SAFETY: the contract of `pack_rows` holds.
        unsafe {
            for i in (0..part.count).step_by(SIDE) {
                let to = part.to.cast::<f32>().add(i * chunks * SIDE).cast();
                let group = PanelCopy {
                    count: (part.count - i).min(SIDE),
                    width: SIDE,
                    from: part.from.offset(i as isize * part.stride),
                    to,
                    ..part
                };
                if part.k_stride == size_of::<bf16>() as isize {
                    group.copy_rows();
                } else {
                    group.transpose_rows();
                }
            }
        }
    }
}

impl PanelCopy {
    /// Copies contiguous rows to tiles.
    ///
    /// # Safety
    /// The contract of [`pack_rows`] for at most [`SIDE`] rows.
    #[inline(always)]
    unsafe fn copy_rows(&self) {
        // SAFETY: the contract is the same; arrays of bytes have no alignment.
        unsafe {
            for r in 0..self.count {
                let from = self.from.offset(r as isize * self.stride).cast::<[u8; ROW]>();
                let to = self.to.cast::<[u8; ROW]>().add(r);
                let whole = self.k / BLOCK;
                for chunk in 0..whole {
                    to.add(chunk * SIDE).write_unaligned(from.add(chunk).read_unaligned());
                }
                let left = self.k % BLOCK;
                if left > 0 {
                    let mut last = [bf16::ZERO; BLOCK];
                    let from = from.add(whole).cast::<bf16>();
                    last.iter_mut().take(left).enumerate().for_each(|(i, x)| *x = *from.add(i));
                    to.add(whole * SIDE).cast::<[bf16; BLOCK]>().write_unaligned(last);
                }
            }
        }
    }

    /// Copies rows of any strides to tiles: first their pairs, as for B, which are then transposed.
    ///
    /// # Safety
    /// The contract of [`pack_rows`] for at most [`SIDE`] rows.
    #[inline(always)]
    unsafe fn transpose_rows(&self) {
        let mut columns = [0.0_f32; SIDE * SIDE];
        for (chunk, l) in (0..self.k).step_by(BLOCK).enumerate() {
            let k = (self.k - l).min(BLOCK);
            // SAFETY: the contract is the same, and the square has room for the pairs.
            unsafe {
                pairs::pack(PanelCopy {
                    k,
                    from: self.from.offset(l as isize * self.k_stride),
                    to: columns.as_mut_ptr().cast(),
                    ..*self
                });
                columns[k.div_ceil(2) * SIDE..].fill(0.0);
                let to = self.to.cast::<f32>().add(chunk * SIDE * SIDE);
                for (i, j) in [(0, 0), (0, 8), (8, 0), (8, 8)] {
                    square_of_8(columns.as_ptr().add(i * SIDE + j), ROW as isize, to.add(j * SIDE + i), SIDE);
                }
            }
        }
    }
}

/// Writes a panel of B.
///
/// # Safety
/// The contract of [`pairs::pack`], and `to` has room for whole tiles.
pub(super) unsafe fn pack_columns(part: PanelCopy) {
    let pairs = part.k.div_ceil(2);
    // SAFETY: the contract is the same.
    unsafe {
        part.to
            .cast::<f32>()
            .add(pairs * part.width)
            .write_bytes(0, (pairs.next_multiple_of(SIDE) - pairs) * part.width);
        pairs::pack(part);
    }
}
