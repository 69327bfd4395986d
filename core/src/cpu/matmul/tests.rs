//! Every path against three plain loops, and against itself on several threads.

use half::{bf16, f16};

use super::kernel::Tile;
use super::*;
use crate::cpu::simd::Isa;

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 11) as usize % end
    }
    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// What the tests have to know of a number.
trait Number: MatmulElement + PartialEq + std::fmt::Debug {
    /// Marks an element that must not be read, or must not be written.
    const POISON: Self;
    fn random(random: &mut Random) -> Self;
    fn small(x: i8) -> Self;
    /// `alpha sum(a b) + beta c` in more digits, and how far off a good result may be.
    fn reference(alpha: Self, pairs: impl Iterator<Item = (Self, Self)>, beta: Self, c: Self) -> (Self, f64);
    fn distance(self, other: Self) -> f64;
    /// Whether the bits are the same.
    fn same(self, other: Self) -> bool;
}

macro_rules! float {
    ($($T:ident: $digits:expr, $acc_digits:expr, $from:expr, $to:expr;)*) => {$(
        impl Number for $T {
            const POISON: $T = <$T>::NAN;
            fn random(random: &mut Random) -> $T {
                $from((random.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0)
            }
            fn small(x: i8) -> $T {
                $from(f64::from(x) / 4.0)
            }
            fn reference(alpha: $T, pairs: impl Iterator<Item = ($T, $T)>, beta: $T, c: $T) -> ($T, f64) {
                let to = $to;
                let (mut sum, mut size, mut k) = (0.0, 0.0, 1.0);
                for (a, b) in pairs {
                    sum += to(a) * to(b);
                    size += (to(a) * to(b)).abs();
                    k += 1.0;
                }
                let base = if to(beta) == 0.0 { 0.0 } else { to(beta) * to(c) };
                let exact = to(alpha) * sum + base;
                let size = to(alpha).abs() * size + base.abs();
                // One rounding of the result, and one of each partial sum.
                ($from(exact), exact.abs() * f64::powi(2.0, 1 - $digits) + k * size * f64::powi(2.0, -$acc_digits))
            }
            fn distance(self, other: $T) -> f64 {
                ($to(self) - $to(other)).abs()
            }
            fn same(self, other: $T) -> bool {
                self.to_bits() == other.to_bits()
            }
        }
    )*};
}
float! {
    f32: 24, 24, |x| x as f32, |x: f32| f64::from(x);
    f64: 53, 52, |x| x, |x: f64| x;
    f16: 11, 24, f16::from_f64, |x: f16| x.to_f64();
    bf16: 8, 24, bf16::from_f64, |x: bf16| x.to_f64();
}

macro_rules! integer {
    ($($T:ident)*) => {$(
        impl Number for $T {
            const POISON: $T = 113;
            fn random(random: &mut Random) -> $T {
                random.next() as $T
            }
            fn small(x: i8) -> $T {
                x as $T
            }
            fn reference(alpha: $T, pairs: impl Iterator<Item = ($T, $T)>, beta: $T, c: $T) -> ($T, f64) {
                let sum = pairs.fold(0, |sum: $T, (a, b)| sum.wrapping_add(a.wrapping_mul(b)));
                (alpha.wrapping_mul(sum).wrapping_add(beta.wrapping_mul(c)), 0.0)
            }
            fn distance(self, other: $T) -> f64 {
                if self == other { 0.0 } else { f64::INFINITY }
            }
            fn same(self, other: $T) -> bool {
                self == other
            }
        }
    )*};
}
integer! { u8 i8 i16 i32 i64 }

/// Where the elements of a matrix lie.
#[derive(Clone, Copy, Debug)]
enum Layout {
    Rows,
    Cols,
    PaddedRows,
    PaddedCols,
    /// Neither direction is contiguous.
    Spread,
    BackwardRows,
    BackwardCols,
    /// All rows are one: for A and B only.
    OneRow,
    OneCol,
}
use Layout::*;

const ALL: [Layout; 9] =
    [Rows, Cols, PaddedRows, PaddedCols, Spread, BackwardRows, BackwardCols, OneRow, OneCol];
const DISTINCT: [Layout; 7] = [Rows, Cols, PaddedRows, PaddedCols, Spread, BackwardRows, BackwardCols];

/// A matrix with memory of its own.
#[derive(Clone)]
struct Owned<T> {
    memory: Vec<T>,
    first: isize,
    row_stride: isize,
    col_stride: isize,
}

impl<T: Number> Owned<T> {
    fn new(rows: usize, cols: usize, layout: Layout, mut element: impl FnMut() -> T) -> Self {
        let (r, c) = (rows as isize, cols as isize);
        let (first, row_stride, col_stride) = match layout {
            Rows => (0, c, 1),
            Cols => (0, 1, r),
            PaddedRows => (2, c + 3, 1),
            PaddedCols => (1, 1, r + 5),
            Spread => (0, 3 * c + 1, 3),
            BackwardRows => ((r - 1).max(0) * c, -c, 1),
            BackwardCols => ((c - 1).max(0), c, -1),
            OneRow => (0, 0, 1),
            OneCol => (0, 1, 0),
        };
        let last = first + (r - 1).max(0) * row_stride.max(0) + (c - 1).max(0) * col_stride.max(0);
        let mut matrix = Owned { memory: vec![T::POISON; last as usize + 1], first, row_stride, col_stride };
        for i in 0..rows {
            for j in 0..cols {
                let at = matrix.at(i, j);
                matrix.memory[at] = element();
            }
        }
        matrix
    }
    fn at(&self, i: usize, j: usize) -> usize {
        (self.first + i as isize * self.row_stride + j as isize * self.col_stride) as usize
    }
    fn get(&self, i: usize, j: usize) -> T {
        self.memory[self.at(i, j)]
    }
    fn mat(&self) -> Mat<*const T> {
        let ptr = self.memory.as_ptr().wrapping_offset(self.first);
        Mat { ptr, row_stride: self.row_stride, col_stride: self.col_stride }
    }
    fn mat_mut(&mut self) -> Mat<*mut T> {
        let ptr = self.memory.as_mut_ptr().wrapping_offset(self.first);
        Mat { ptr, row_stride: self.row_stride, col_stride: self.col_stride }
    }
}

/// One product with random elements, against the reference; what lies between the elements of C stays as it was.
fn check<T: Number>(
    random: &mut Random,
    (m, k, n): (usize, usize, usize),
    (layout_a, layout_b, layout_c): (Layout, Layout, Layout),
    (alpha, beta): (i8, i8),
) {
    let case = format!(
        "{} m {m} k {k} n {n} a {layout_a:?} b {layout_b:?} c {layout_c:?} alpha {alpha} beta {beta}, seed {}",
        std::any::type_name::<T>(),
        random.0
    );
    let (alpha, zero_beta, beta) = (T::small(alpha), beta == 0, T::small(beta));
    let a = Owned::new(m, k, layout_a, || T::random(random));
    let b = Owned::new(k, n, layout_b, || T::random(random));
    let mut c = Owned::new(m, n, layout_c, || if zero_beta { T::POISON } else { T::random(random) });
    let old = c.clone();
    // SAFETY: the matrices own their elements, and C's layouts are without overlap.
    unsafe { gemm(m, k, n, alpha, a.mat(), b.mat(), beta, c.mat_mut()) };
    let mut touched = vec![false; c.memory.len()];
    for i in 0..m {
        for j in 0..n {
            let pairs = (0..k).map(|l| (a.get(i, l), b.get(l, j)));
            let (want, tolerance) = T::reference(alpha, pairs, beta, old.get(i, j));
            let got = c.get(i, j);
            assert!(
                got.distance(want) <= tolerance,
                "{case}: ({i}, {j}) is {got:?}, not {want:?} ± {tolerance}"
            );
            touched[c.at(i, j)] = true;
        }
    }
    for (at, touched) in touched.into_iter().enumerate() {
        assert!(touched || c.memory[at].same(old.memory[at]), "{case}: wrote between the elements, at {at}");
    }
}

/// Many small shapes, and some around the edges of vectors, tiles, panels and blocks.
fn shapes_and_strides<T: Number>() {
    let mut random = Random(0x9e3779b97f4a7c15 ^ size_of::<T>() as u64);
    let edges = [0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 14, 15, 16, 17, 31, 32, 33, 63, 64, 65, 66, 127, 129];
    for round in 0..600 {
        let mut size = || if round % 2 == 0 { random.below(70) } else { random.choose(&edges) };
        let shape = (size(), size(), size());
        let layouts = (random.choose(&ALL), random.choose(&ALL), random.choose(&DISTINCT));
        let scalars = (random.choose(&[1, 1, -3, 0]), random.choose(&[0, 0, 1, 4, -5]));
        check::<T>(&mut random, shape, layouts, scalars);
    }
    let deep = 2100 / size_of::<T::Acc>();
    for shape in [
        (2, deep, 35),
        (15, deep, 130),
        (253, 70, 33),
        (270, deep, 40),
        (9, 30, 2050),
        (260, 5, 530),
        (1, deep, 70),
        (70, deep, 1),
        (1, 40000, 3),
        (3, 40000, 1),
        (1, 70000, 1),
    ] {
        for layouts in [(Rows, Rows, Rows), (Cols, Cols, Rows), (Rows, Cols, Cols), (Spread, Spread, Spread)]
        {
            check::<T>(&mut random, shape, layouts, (1, 0));
            check::<T>(&mut random, shape, layouts, (-2, 3));
        }
    }
}

/// Every kernel of every instruction set that this CPU has, against plain loops, with numbers whose sums are exact.
fn kernels<T: Number + Accumulator>() {
    let mut random = Random(99);
    for isa in
        [Isa::Baseline, Isa::Avx2, Isa::Avx512].into_iter().filter(|isa| *isa <= crate::cpu::simd::isa())
    {
        let set = T::kernels(isa);
        for (rows, vectors, layout) in (1..=set.rows).flat_map(|rows| {
            [1, 2].into_iter().flat_map(move |v| [Cols, PaddedRows].map(|layout| (rows, v, layout)))
        }) {
            let kernel = set.tiles[vectors - 1][rows - 1];
            let (k, cols) = (random.below(9), (vectors - 1) * set.lanes + 1 + random.below(set.lanes));
            let a = Owned::new(rows, k, layout, || T::small(random.below(64) as i8));
            let b = Owned::new(k, cols, PaddedRows, || T::small(random.below(64) as i8));
            for (alpha, beta) in [(4, 0), (8, 4), (4, 12)] {
                let mut c = Owned::new(rows, cols, PaddedRows, || T::small(random.below(64) as i8));
                let old = c.clone();
                let (alpha, beta) = (T::small(alpha), T::small(beta));
                // SAFETY: the CPU has these instructions, and the matrices have these rows and columns.
                unsafe {
                    kernel(&Tile {
                        k,
                        a: a.mat().ptr,
                        a_row_stride: a.row_stride,
                        a_col_stride: a.col_stride,
                        b: b.mat().ptr,
                        b_row_stride: b.row_stride,
                        c: c.mat_mut().ptr,
                        c_row_stride: c.row_stride,
                        cols,
                        alpha,
                        beta,
                    });
                }
                for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
                    let pairs = (0..k).map(|l| (a.get(i, l), b.get(l, j)));
                    let (want, _) = T::reference(alpha, pairs, beta, old.get(i, j));
                    let case = format!(
                        "{isa:?} {rows} rows, {vectors} vectors, A {layout:?}, {cols} columns, k {k}"
                    );
                    assert!(c.get(i, j) == want, "{case}: ({i}, {j}) is {:?}, not {want:?}", c.get(i, j));
                }
            }
        }
    }
}

macro_rules! for_all_numbers {
    ($($test:ident: $check:ident::<$T:ident>;)*) => {$(
        #[test]
        fn $test() {
            $check::<$T>();
        }
    )*};
}
for_all_numbers! {
    f32_shapes_and_strides: shapes_and_strides::<f32>;
    f64_shapes_and_strides: shapes_and_strides::<f64>;
    f16_shapes_and_strides: shapes_and_strides::<f16>;
    bf16_shapes_and_strides: shapes_and_strides::<bf16>;
    u8_shapes_and_strides: shapes_and_strides::<u8>;
    i8_shapes_and_strides: shapes_and_strides::<i8>;
    i16_shapes_and_strides: shapes_and_strides::<i16>;
    i32_shapes_and_strides: shapes_and_strides::<i32>;
    i64_shapes_and_strides: shapes_and_strides::<i64>;
    f32_same_bits_on_any_threads: same_bits_on_any_threads::<f32>;
    f64_same_bits_on_any_threads: same_bits_on_any_threads::<f64>;
    bf16_same_bits_on_any_threads: same_bits_on_any_threads::<bf16>;
    f32_kernels: kernels::<f32>;
    f64_kernels: kernels::<f64>;
    i64_kernels: kernels::<i64>;
    f32_batches: batches::<f32>;
    f16_batches: batches::<f16>;
    i64_batches: batches::<i64>;
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

fn same_bits_on_any_threads<T: Number>() {
    let mut random = Random(77);
    let pools = [1, 2, 3, 8].map(pool);
    for (m, k, n) in [
        (150, 700, 170),
        (700, 40, 200),
        (1, 2000, 1500),
        (1500, 2000, 1),
        (1, 300_000, 1),
        (1, 300_000, 5),
        (5, 900, 1200),
        (10, 60_000, 20),
    ] {
        for layout in [(Rows, Rows, Rows), (Cols, Cols, Rows), (Rows, Cols, Cols), (Spread, Spread, Spread)] {
            let a = Owned::new(m, k, layout.0, || T::random(&mut random));
            let b = Owned::new(k, n, layout.1, || T::random(&mut random));
            let results = pools.each_ref().map(|pool| {
                let mut c = Owned::new(m, n, layout.2, || T::POISON);
                pool.install(|| {
                    let (one, zero) = (T::small(4), T::small(0));
                    // SAFETY: the matrices own their elements; C is read by nobody else.
                    unsafe { gemm(m, k, n, one, a.mat(), b.mat(), zero, c.mat_mut()) };
                });
                c.memory
            });
            for (result, threads) in results.iter().zip([1, 2, 3, 8]) {
                let same = result.iter().zip(&results[0]).all(|(x, y)| x.same(*y));
                assert!(same, "m {m} k {k} n {n} {layout:?}: other bits on {threads} threads");
            }
        }
    }
}

/// A batch gives the bits of its products one by one, many and small or few and large.
fn batches<T: Number>() {
    let mut random = Random(5);
    for (batch, m, k, n) in [
        (0, 2, 2, 2),
        (5, 3, 4, 0),
        (7, 3, 0, 4),
        (9, 4, 5, 6),
        (20, 7, 30, 1),
        (50, 1, 300, 400),
        (2, 2, 70_000, 3),
        (300, 20, 30, 25),
        (3, 130, 300, 120),
    ] {
        let a = Owned::new(batch * m, k, Rows, || T::random(&mut random));
        let b = Owned::new(batch * k, n, Rows, || T::random(&mut random));
        let mut one_by_one = Owned::new(batch * m, n, Rows, || T::random(&mut random));
        let start = one_by_one.clone();
        let (alpha, beta) = (T::small(3), T::small(2));
        let offsets = |i: usize| ((i * m * k) as isize, (i * k * n) as isize, (i * m * n) as isize);
        for i in 0..batch {
            let c = one_by_one.mat_mut().at(i * m, 0);
            // SAFETY: the products of the batch lie one below the other in their matrices.
            unsafe { gemm(m, k, n, alpha, a.mat().at(i * m, 0), b.mat().at(i * k, 0), beta, c) };
        }
        for threads in [1, 2, 5] {
            let mut c = start.clone();
            // SAFETY: as above.
            pool(threads).install(|| unsafe {
                gemm_batched(batch, &offsets, m, k, n, alpha, a.mat(), b.mat(), beta, c.mat_mut());
            });
            let same = c.memory.iter().zip(&one_by_one.memory).all(|(x, y)| x.same(*y));
            assert!(same, "batch {batch} m {m} k {k} n {n}, {threads} threads");
        }
    }
}

#[test]
fn every_half_is_widened_as_the_half_crate_does() {
    for bits in 0..=u16::MAX {
        let (x, y) = (f16::from_bits(bits), bf16::from_bits(bits));
        // A signalling NaN may become a quiet one.
        assert!(
            MatmulElement::widen(x) == x.to_f32() || x.is_nan() && MatmulElement::widen(x).is_nan(),
            "{bits:x}"
        );
        assert!(
            MatmulElement::widen(y) == y.to_f32() || y.is_nan() && MatmulElement::widen(y).is_nan(),
            "{bits:x}"
        );
    }
}

#[test]
fn nan_and_infinity_arrive() {
    for n in [1, 5, 40] {
        let a = Owned::new(n, n, Rows, || f32::INFINITY);
        let b = Owned::new(n, n, Rows, || 0.0);
        let mut c = Owned::new(n, n, Rows, || 1.0);
        // SAFETY: the matrices own their elements.
        unsafe { gemm(n, n, n, 0.0, a.mat(), b.mat(), 1.0, c.mat_mut()) };
        assert!(c.memory.iter().all(|x| x.is_nan()));
    }
}
