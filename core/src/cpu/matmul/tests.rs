//! Tests every path against three plain loops, and against itself on several threads.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use half::{bf16, f16};

use super::pack::Packed;
use super::product::{PanelCopy, Tile};
use super::rounded::Rounding;
use super::*;
use crate::cpu::simd::{Isa, supported, vectorize_for};
use crate::dtype::{DType, Element, Scalar};

/// A xorshift generator.
struct Xorshift(u64);

impl Xorshift {
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

/// What the tests need from a number.
trait TestNumber: MatmulElement + Element {
    const IS_FLOAT: bool = Self::DTYPE.is_floating_point();

    /// Marks an element that must not be read, or must not be written.
    fn poison() -> Self {
        Self::from_scalar(if Self::IS_FLOAT { Scalar::Float(f64::NAN) } else { Scalar::Int(113) })
    }

    /// Between -1 and 1, or any integer.
    fn random(random: &mut Xorshift) -> Self {
        let x = random.next();
        Self::from_scalar(if Self::IS_FLOAT {
            Scalar::Float((x >> 11) as f64 / (1u64 << 52) as f64 - 1.0)
        } else {
            Scalar::Int(x as i64)
        })
    }

    /// `x`, or a quarter of it for floats.
    fn small(x: i8) -> Self {
        let (float, int) = (Scalar::Float(f64::from(x) / 4.0), Scalar::Int(x.into()));
        Self::from_scalar(if Self::IS_FLOAT { float } else { int })
    }

    /// `alpha sum(a b) + beta c` with more digits, and how far off a good result can be.
    fn reference(alpha: Self, pairs: impl Iterator<Item = (Self, Self)>, beta: Self, c: Self) -> (Self, f64) {
        if !Self::IS_FLOAT {
            let to = |x: Self| i64::from_scalar(x.to_scalar());
            let sum = pairs.fold(0, |sum: i64, (a, b)| sum.wrapping_add(to(a).wrapping_mul(to(b))));
            let exact = to(alpha).wrapping_mul(sum).wrapping_add(to(beta).wrapping_mul(to(c)));
            return (Self::from_scalar(Scalar::Int(exact)), 0.0);
        }
        let to = |x: Self| x.to_scalar().to_f64();
        let (mut sum, mut size, mut k) = (0.0, 0.0, 1.0);
        for (a, b) in pairs {
            let product = to(a) * to(b);
            sum += product;
            size += product.abs();
            k += 1.0;
        }
        let base = if to(beta) == 0.0 { 0.0 } else { to(beta) * to(c) };
        let exact = to(alpha) * sum + base;
        let size = to(alpha).abs() * size + base.abs();
        // The bits of a number, and those of a sum, of which the reference has at least one more.
        let (digits, acc_digits) = match Self::DTYPE {
            DType::F64 => (53, 52),
            DType::F16 => (11, 24),
            DType::BF16 => (8, 24),
            _ => (24, 24),
        };
        // One rounding of the result, and one of each partial sum.
        let tolerance = exact.abs() * f64::powi(2.0, 1 - digits) + k * size * f64::powi(2.0, -acc_digits);
        (Self::from_scalar(Scalar::Float(exact)), tolerance)
    }

    fn distance(self, other: Self) -> f64 {
        match (self.to_scalar(), other.to_scalar()) {
            (Scalar::Float(a), Scalar::Float(b)) => (a - b).abs(),
            (a, b) if a == b => 0.0,
            _ => f64::INFINITY,
        }
    }

    /// Whether the bits are the same.
    fn same(self, other: Self) -> bool {
        match (self.to_scalar(), other.to_scalar()) {
            (Scalar::Float(a), Scalar::Float(b)) => a.to_bits() == b.to_bits(),
            (a, b) => a == b,
        }
    }
}

impl<T: MatmulElement + Element> TestNumber for T {}

/// The layout of a matrix.
#[derive(Clone, Copy, Debug)]
enum MatrixLayout {
    Rows,
    Cols,
    PaddedRows,
    PaddedCols,
    /// Neither direction is contiguous.
    Spread,
    BackwardRows,
    BackwardCols,
    /// All rows share memory; only for A and B.
    OneRow,
    OneCol,
}
use MatrixLayout::*;

const ALL: [MatrixLayout; 9] =
    [Rows, Cols, PaddedRows, PaddedCols, Spread, BackwardRows, BackwardCols, OneRow, OneCol];
const DISTINCT: [MatrixLayout; 7] = [Rows, Cols, PaddedRows, PaddedCols, Spread, BackwardRows, BackwardCols];

/// A matrix that owns its memory.
#[derive(Clone)]
struct Owned<T> {
    memory: Vec<T>,
    first: isize,
    row_stride: isize,
    col_stride: isize,
}

impl<T: TestNumber> Owned<T> {
    fn new(rows: usize, cols: usize, layout: MatrixLayout, mut element: impl FnMut() -> T) -> Self {
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
        let mut matrix =
            Owned { memory: vec![T::poison(); last as usize + 1], first, row_stride, col_stride };
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

/// A way to compute `C ← alpha A B + beta C`: [`gemm`], or the product of another library.
type Multiply<T> = unsafe fn(
    usize,
    usize,
    usize,
    <T as MatmulNumber>::Acc,
    Mat<*const T>,
    Mat<*const T>,
    <T as MatmulNumber>::Acc,
    Mat<*mut T>,
);

/// [`gemm`] as on a CPU for which there are no kernels.
///
/// # Safety
/// The contract of [`gemm`].
unsafe fn gemm_without_kernels<T: MatmulElement>(
    m: usize,
    k: usize,
    n: usize,
    alpha: T::Acc,
    a: Mat<*const T>,
    b: Mat<*const T>,
    beta: T::Acc,
    c: Mat<*mut T>,
) {
    if m == 0 || n == 0 {
        return;
    }
    let product = Product::of([m, k, n], alpha, a, b, beta, c).upright();
    // SAFETY: the contract is the same.
    unsafe { if k == 0 { scale(&product) } else { serial(&product, ProductMethod::Foreign) } }
}

/// Checks a product of random elements against the reference, and that nothing between the elements of C
/// changes.
fn check<T: TestNumber>(
    multiply: Multiply<T>,
    random: &mut Xorshift,
    (m, k, n): (usize, usize, usize),
    (layout_a, layout_b, layout_c): (MatrixLayout, MatrixLayout, MatrixLayout),
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
    let mut c = Owned::new(m, n, layout_c, || if zero_beta { T::poison() } else { T::random(random) });
    let old = c.clone();
    // SAFETY: the matrices own their elements, and those of C do not overlap.
    unsafe { multiply(m, k, n, alpha.widen(), a.mat(), b.mat(), beta.widen(), c.mat_mut()) };
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

/// Checks many small shapes, and some around the sizes of vectors, tiles, panels and blocks.
fn shapes_and_strides<T: TestNumber>(multiply: Multiply<T>) {
    let mut random = Xorshift(0x9e3779b97f4a7c15 ^ size_of::<T>() as u64);
    let edges = [0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 14, 15, 16, 17, 31, 32, 33, 63, 64, 65, 66, 127, 129];
    for round in 0..600 {
        let mut size = || if round % 2 == 0 { random.below(70) } else { random.choose(&edges) };
        let shape = (size(), size(), size());
        let layouts = (random.choose(&ALL), random.choose(&ALL), random.choose(&DISTINCT));
        let scalars = (random.choose(&[1, 1, -3, 0]), random.choose(&[0, 0, 1, 4, -5]));
        check::<T>(multiply, &mut random, shape, layouts, scalars);
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
            check::<T>(multiply, &mut random, shape, layouts, (1, 0));
            check::<T>(multiply, &mut random, shape, layouts, (-2, 3));
        }
    }
}

/// Checks every kernel of this CPU against plain loops, with numbers whose sums are exact.
fn kernels<T: TestNumber + Accumulator>() {
    let mut random = Xorshift(99);
    let Some(set) = (T::kind().kernels)() else { return };
    for (vectors, tiles) in [1, 2].into_iter().zip(set.tiles) {
        for ((rows, kernel), layout) in
            tiles.iter().flat_map(|tile| [Cols, PaddedRows].map(|layout| (*tile, layout)))
        {
            let (k, cols) = (random.below(9), (vectors - 1) * set.lanes + 1 + random.below(set.lanes));
            let a = Owned::new(rows, k, layout, || T::small(random.below(64) as i8));
            let b = Owned::new(k, cols, PaddedRows, || T::small(random.below(64) as i8));
            for (alpha, beta) in [(4, 0), (8, 4), (4, 12)] {
                let mut c = Owned::new(rows, cols, PaddedRows, || T::small(random.below(64) as i8));
                let old = c.clone();
                let (alpha, beta) = (T::small(alpha), T::small(beta));
                let [in_a, in_b] = [a.mat(), b.mat()].map(MatrixView::of);
                let in_c = MatrixView::of_mut(c.mat_mut());
                // SAFETY: the CPU has these instructions, and the matrices have these rows and columns.
                unsafe {
                    kernel(&Tile {
                        k,
                        a: in_a.ptr,
                        a_row: in_a.row,
                        a_col: in_a.col,
                        b: in_b.ptr,
                        b_row: in_b.row,
                        offsets: std::ptr::null(),
                        c: in_c.ptr,
                        c_row: in_c.row,
                        rows,
                        cols,
                        alpha: alpha.bits(),
                        beta: beta.bits(),
                    });
                }
                for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
                    let pairs = (0..k).map(|l| (a.get(i, l), b.get(l, j)));
                    let (want, _) = T::reference(alpha, pairs, beta, old.get(i, j));
                    let case = format!("{rows} rows, {vectors} vectors, A {layout:?}, {cols} columns, k {k}");
                    assert!(c.get(i, j) == want, "{case}: ({i}, {j}) is {:?}, not {want:?}", c.get(i, j));
                }
            }
        }
    }
}

#[test]
fn shapes_and_strides_of_floats() {
    shapes_and_strides::<f32>(gemm);
    shapes_and_strides::<f64>(gemm);
    shapes_and_strides::<f16>(gemm);
    shapes_and_strides::<bf16>(gemm);
}

#[test]
fn shapes_and_strides_without_kernels() {
    shapes_and_strides::<f32>(gemm_without_kernels);
    shapes_and_strides::<bf16>(gemm_without_kernels);
}

#[test]
fn shapes_and_strides_of_integers() {
    shapes_and_strides::<i64>(gemm);
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    same_bits_on_any_threads::<f32>();
    same_bits_on_any_threads::<f64>();
    same_bits_on_any_threads::<bf16>();
}

#[test]
fn kernels_of_this_cpu() {
    kernels::<f32>();
    kernels::<f64>();
}

#[test]
fn batches_of_products() {
    batches::<f32>();
    batches::<f16>();
    batches::<i64>();
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

fn same_bits_on_any_threads<T: TestNumber>() {
    let mut random = Xorshift(77);
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
                let mut c = Owned::new(m, n, layout.2, || T::poison());
                pool.install(|| {
                    let (one, zero) = (T::Acc::ONE, T::Acc::ZERO);
                    // SAFETY: the matrices own their elements, and nothing else accesses C.
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

#[test]
fn a_matrix_with_itself_transposed() {
    symmetric::<f32>();
    symmetric::<f64>();
    symmetric::<f16>();
    symmetric::<bf16>();
    symmetric::<i64>();
}

/// Checks that a product with a B that is A transposed has the bits of one with a copy of it.
fn symmetric<T: TestNumber>() {
    let mut random = Xorshift(31);
    let pools = [1, 5].map(pool);
    let deep = 2100 / size_of::<T::Acc>();
    let layouts =
        [(Rows, Rows), (Cols, PaddedRows), (Spread, Rows), (BackwardRows, BackwardRows), (Rows, Cols)];
    for (n, k) in [(63, 9), (64, 1), (65, 70), (97, 2 * deep), (290, 33), (530, 2)] {
        for scalars in [(1, 0), (2, 3)] {
            let layout = random.choose(&layouts);
            let a = Owned::new(n, k, layout.0, || T::random(&mut random));
            let copy = a.clone();
            let start = Owned::new(n, n, layout.1, || T::random(&mut random));
            let [alpha, beta] = [scalars.0, scalars.1].map(|x| T::small(4 * x).widen());
            let product = |b: Mat<*const T>| {
                let mut c = start.clone();
                // SAFETY: the matrices own their elements, and nothing else accesses C.
                unsafe { gemm(n, k, n, alpha, a.mat(), b.t(), beta, c.mat_mut()) };
                c.memory
            };
            let whole = product(copy.mat());
            for pool in &pools {
                let half = pool.install(|| product(a.mat()));
                let same = half.iter().zip(&whole).all(|(x, y)| x.same(*y));
                let threads = pool.current_num_threads();
                assert!(same, "n {n} k {k} {layout:?} {scalars:?} {threads} threads: other bits");
            }
        }
    }
}

/// The same for sums in squares, of several blocks of `k`.
#[test]
fn a_large_matrix_with_itself_transposed() {
    let mut random = Xorshift(32);
    let (n, k) = (400, 1100);
    let a = Owned::new(n, k, Rows, || bf16::random(&mut random));
    let copy = a.clone();
    let [half, whole] = [&a, &copy].map(|b| {
        let mut c = Owned::new(n, n, Rows, || bf16::small(3));
        // SAFETY: the matrices own their elements, and nothing else accesses C.
        unsafe { gemm(n, k, n, 2.0, a.mat(), b.mat().t(), -1.0, c.mat_mut()) };
        c.memory
    });
    assert!(half.iter().zip(&whole).all(|(x, y)| x.same(*y)));
}

/// Checks that a batch gives the same bits as its products one by one, for many small and few large products.
fn batches<T: TestNumber>() {
    let mut random = Xorshift(5);
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
        let (alpha, beta) = (T::small(3).widen(), T::small(2).widen());
        let offsets = |i: usize| ((i * m * k) as isize, (i * k * n) as isize, (i * m * n) as isize);
        for i in 0..batch {
            let c = one_by_one.mat_mut().at(i * m, 0);
            // SAFETY: the products of the batch are stacked in their matrices.
            unsafe { gemm(m, k, n, alpha, a.mat().at(i * m, 0), b.mat().at(i * k, 0), beta, c) };
        }
        for threads in [1, 2, 5, 64] {
            let mut c = start.clone();
            // SAFETY: as above.
            pool(threads).install(|| unsafe {
                let p = Product::of([m, k, n], alpha, a.mat(), b.mat(), beta, c.mat_mut());
                threads::many(batch, &offsets, &p);
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
        // A signaling NaN may become a quiet one.
        assert!(
            MatmulNumber::widen(x) == x.to_f32() || x.is_nan() && MatmulNumber::widen(x).is_nan(),
            "{bits:x}"
        );
        assert!(
            MatmulNumber::widen(y) == y.to_f32() || y.is_nan() && MatmulNumber::widen(y).is_nan(),
            "{bits:x}"
        );
    }
}

/// Checks that all halves are widened and narrowed to the same bits with all instructions, at any stride.
fn halves<T: TestNumber<Acc = f32>>(all: impl Iterator<Item = T>) {
    const WIDTH: usize = 16;
    let halves: Vec<T> = all.collect();
    let floats: Vec<f32> = halves.iter().map(|x| x.widen() * 1.000_1).collect(); // most of them need rounding
    let rows = halves.len() / WIDTH;
    for stride in [1, 3] {
        let on = |isa| {
            let (mut wide, mut narrow) =
                (vec![0.0_f32; halves.len()], vec![T::small(0); halves.len() * stride]);
            // As many rows as there are at this stride.
            let (k, from) = (rows / stride, halves.as_ptr());
            let (k_stride, stride) = ((WIDTH * stride) as isize, stride as isize);
            let [k_stride, in_bytes] = [k_stride, stride].map(|stride| stride * size_of::<T>() as isize);
            let panel = PanelCopy {
                k,
                count: WIDTH,
                width: WIDTH,
                from: from.cast(),
                k_stride,
                stride: in_bytes,
                to: wide.as_mut_ptr().cast(),
            };
            let packed = Packed::<T>(panel, PhantomData);
            // SAFETY: the CPU supports these instructions, and the slices have room for the rows.
            unsafe { vectorize_for(isa, packed, &mut MaybeUninit::uninit()) };
            let (n, mut sums) = (floats.len(), floats.clone());
            let c = MatrixView::of_mut(Mat { ptr: narrow.as_mut_ptr(), row_stride: 0, col_stride: stride });
            let results = BlockResults { sums: sums.as_mut_ptr().cast(), width: n, m: 1, n, beta: 0, c };
            // SAFETY: the CPU supports these instructions, and `narrow` has an element for each float.
            unsafe { vectorize_for(isa, Rounding::<T>(&results, PhantomData), ()) };
            (wide, narrow)
        };
        let (wide, narrow) = on(Isa::Baseline);
        for i in 0..rows / stride * WIDTH {
            let x = halves[i / WIDTH * WIDTH * stride + i % WIDTH * stride];
            assert!(wide[i] == x.widen() || x.widen().is_nan(), "{x:?} is not {}", wide[i]);
        }
        assert!(floats.iter().zip(narrow.iter().step_by(stride)).all(|(x, y)| T::narrow(*x).same(*y)));
        for isa in supported() {
            let (other_wide, other_narrow) = on(isa);
            assert!(wide.iter().zip(&other_wide).all(|(x, y)| x.to_bits() == y.to_bits()), "{isa:?}");
            assert!(narrow.iter().zip(&other_narrow).all(|(x, y)| x.same(*y)), "{isa:?}");
        }
    }
}

#[test]
fn halves_are_converted_alike_with_all_instructions() {
    halves((0..=u16::MAX).map(f16::from_bits));
    halves((0..=u16::MAX).map(bf16::from_bits));
}

#[test]
fn every_float_is_narrowed_as_the_half_crate_does() {
    // Every 4099th float, and the numbers next to those half-way between two `bf16`.
    let near_ties = (0..=u32::MAX).step_by(1 << 16).flat_map(|x| [x, x + 0x7fff, x + 0x8000, x + 0x8001]);
    for x in (0..=u32::MAX).step_by(4099).chain(near_ties).map(f32::from_bits) {
        let (narrow, expected): (bf16, bf16) = (MatmulNumber::narrow(x), bf16::from_f32(x));
        assert_eq!(narrow.to_bits(), expected.to_bits(), "{x:e}");
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
