//! Vector registers, for each type of number and set of instructions.

use super::element::Accumulator;

/// A vector of [`COUNT`](Self::COUNT) numbers.
///
/// # Safety
/// Implementations read and write exactly [`COUNT`](Self::COUNT) numbers, or those under the mask.
///
/// The methods may be called only in code that is compiled for the instructions of the type, on a CPU that
/// has them. Pointers are valid for what is read or written. They need only the alignment of a number.
pub(crate) unsafe trait Lanes: Copy {
    /// A number.
    type Elem: Accumulator;
    /// Selects the first few numbers of a vector.
    type Mask: Copy;
    /// The number of numbers in a vector.
    const COUNT: usize;
    /// Whether the vectors are for CPUs that few have, so that small code counts more than fast code.
    const IS_RARE: bool = false;

    /// The mask of the first `count` numbers. `count` is at most [`COUNT`](Self::COUNT).
    unsafe fn mask(count: usize) -> Self::Mask;
    /// A vector of copies of `x`.
    unsafe fn splat(x: Self::Elem) -> Self;
    /// The numbers from `p` on.
    unsafe fn load(p: *const Self::Elem) -> Self;
    /// The numbers under the mask, and zeros for the others, which are not read.
    unsafe fn load_first(p: *const Self::Elem, mask: Self::Mask) -> Self;
    /// Writes all numbers.
    unsafe fn store(self, p: *mut Self::Elem);
    /// Writes only the numbers under the mask.
    unsafe fn store_first(self, p: *mut Self::Elem, mask: Self::Mask);
    /// `self * x + y`
    unsafe fn mul_add(self, x: Self, y: Self) -> Self;
    /// `self * x + y` for elements of panels. For pairs, it adds both products.
    #[inline(always)]
    unsafe fn accumulate(self, x: Self, y: Self) -> Self {
        // SAFETY: the contract is the same.
        unsafe { self.mul_add(x, y) }
    }

    /// The numbers from `p` on, or those under the mask, if there is one, and zeros for the others.
    #[inline(always)]
    unsafe fn load_if(p: *const Self::Elem, mask: Option<Self::Mask>) -> Self {
        // SAFETY: the contract is the same.
        unsafe {
            match mask {
                Some(mask) => Self::load_first(p, mask),
                None => Self::load(p),
            }
        }
    }

    /// The sum of all numbers.
    #[inline(always)]
    unsafe fn sum(self) -> Self::Elem {
        const { assert!(Self::COUNT <= MOST) };
        let mut lanes = [Self::Elem::ZERO; MOST];
        // SAFETY: there is room for all numbers.
        unsafe { self.store(lanes.as_mut_ptr()) };
        let mut count = Self::COUNT;
        while count > 1 {
            count /= 2;
            let mut i = 0;
            while i < count {
                lanes[i] = lanes[i].add(lanes[i + count]);
                i += 1;
            }
        }
        lanes[0]
    }
}

/// The most numbers in a vector: 64 bytes of `f32`.
const MOST: usize = 16;

/// A vector as an array, which the compiler keeps in registers of the build target.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Array<T, const N: usize>([T; N]);

#[cfg(target_arch = "x86_64")]
impl<T: Accumulator, const N: usize> Array<T, N> {
    /// The vector of `f(0)`, `f(1)`, ...
    #[inline(always)]
    fn of(mut f: impl FnMut(usize) -> T) -> Self {
        let mut lanes = [T::ZERO; N];
        let mut i = 0;
        while i < N {
            lanes[i] = f(i);
            i += 1;
        }
        Array(lanes)
    }
}

// SAFETY: `load` and `store` access `N` numbers, the others only those before the mask.
#[cfg(target_arch = "x86_64")]
unsafe impl<T: Accumulator, const N: usize> Lanes for Array<T, N> {
    type Elem = T;
    type Mask = usize;
    const COUNT: usize = N;
    const IS_RARE: bool = true;

    #[inline(always)]
    unsafe fn mask(count: usize) -> usize {
        count
    }
    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        Array([x; N])
    }
    #[inline(always)]
    unsafe fn load(p: *const T) -> Self {
        // SAFETY: the caller's contract; an array has the alignment of its numbers.
        Array(unsafe { p.cast::<[T; N]>().read() })
    }
    #[inline(always)]
    unsafe fn load_first(p: *const T, mask: usize) -> Self {
        // SAFETY: the caller's contract.
        Self::of(|i| if i < mask { unsafe { *p.add(i) } } else { T::ZERO })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut T) {
        // SAFETY: the caller's contract; an array has the alignment of its numbers.
        unsafe { p.cast::<[T; N]>().write(self.0) }
    }
    #[inline(always)]
    unsafe fn store_first(self, p: *mut T, mask: usize) {
        let mut i = 0;
        while i < mask {
            // SAFETY: the caller's contract.
            unsafe { p.add(i).write(self.0[i]) };
            i += 1;
        }
    }
    #[inline(always)]
    unsafe fn mul_add(self, x: Self, y: Self) -> Self {
        Self::of(|i| self.0[i].mul_add(x.0[i], y.0[i]))
    }
}

/// The vectors of x86-64.
pub(crate) mod x86 {
    use super::Lanes;
    use std::arch::x86_64::*;

    /// Implements [`Lanes`]. A row has the type, its doc, the type of the numbers and their count, the types
    /// of the register and of the mask, and the intrinsics in the order of the methods. The row of `F32x16`
    /// becomes
    ///
    /// ```ignore
    /// /// AVX-512, `f32`.
    /// pub(crate) struct F32x16(__m512);
    ///
    /// unsafe impl Lanes for F32x16 {
    ///     type Elem = f32;
    ///     type Mask = __mmask16;
    ///     const COUNT: usize = 16;
    ///
    ///     unsafe fn mask(count: usize) -> __mmask16 {
    ///         ((1u32 << count) - 1) as u16
    ///     }
    ///
    ///     unsafe fn splat(x: f32) -> Self {
    ///         Self(_mm512_set1_ps(x))
    ///     }
    ///     ...
    /// }
    /// ```
    macro_rules! lanes {
        ($($name:ident: $doc:literal, $Elem:ident, $N:literal, $Raw:ident, $Mask:ident, $mask:expr, $splat:expr,
           $load:expr, $load_first:expr, $store:expr, $store_first:expr, $mul_add:expr
           $(, $accumulate:expr)?;)*) => {$(
            #[doc = $doc]
            #[derive(Clone, Copy)]
            pub(crate) struct $name($Raw);

            // SAFETY: the intrinsics of a row read and write `$N` numbers, or those under the mask. The
            // blocks below need only what the trait demands of its callers.
            unsafe impl Lanes for $name {
                type Elem = $Elem;
                type Mask = $Mask;
                const COUNT: usize = $N;
                #[inline(always)]
                #[allow(unused_unsafe, reason = "AVX-512 computes its masks, AVX2 loads them")]
                unsafe fn mask(count: usize) -> $Mask {
                    // SAFETY: as above; `count` is at most COUNT.
                    unsafe { $mask(count) }
                }
                #[inline(always)]
                unsafe fn splat(x: $Elem) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $splat(x) })
                }
                #[inline(always)]
                unsafe fn load(p: *const $Elem) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $load(p.cast()) })
                }
                #[inline(always)]
                unsafe fn load_first(p: *const $Elem, mask: $Mask) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $load_first(p.cast(), mask) })
                }
                #[inline(always)]
                unsafe fn store(self, p: *mut $Elem) {
                    // SAFETY: as above.
                    unsafe { $store(p.cast(), self.0) }
                }
                #[inline(always)]
                unsafe fn store_first(self, p: *mut $Elem, mask: $Mask) {
                    // SAFETY: as above.
                    unsafe { $store_first(p.cast(), mask, self.0) }
                }
                #[inline(always)]
                unsafe fn mul_add(self, x: Self, y: Self) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $mul_add(self.0, x.0, y.0) })
                }
                $(
                    #[inline(always)]
                    unsafe fn accumulate(self, x: Self, y: Self) -> Self {
                        // SAFETY: as above.
                        Self(unsafe { $accumulate(self.0, x.0, y.0) })
                    }
                )?
            }
        )*};
    }

    lanes! {
        F32x16: "AVX-512, `f32`.", f32, 16, __m512, __mmask16, |count: usize| ((1u32 << count) - 1) as u16,
            _mm512_set1_ps, _mm512_loadu_ps, |p, mask| _mm512_maskz_loadu_ps(mask, p),
            _mm512_storeu_ps, _mm512_mask_storeu_ps, _mm512_fmadd_ps;
        PairsX16: "AVX-512 with BF16, sums in `f32` of pairs of `bf16`.", f32, 16, __m512, __mmask16,
            |count: usize| ((1u32 << count) - 1) as u16,
            _mm512_set1_ps, _mm512_loadu_ps, |p, mask| _mm512_maskz_loadu_ps(mask, p),
            _mm512_storeu_ps, _mm512_mask_storeu_ps, _mm512_fmadd_ps,
            |x, y, sum| _mm512_dpbf16_ps(sum, as_pairs(x), as_pairs(y));
        F64x8: "AVX-512, `f64`.", f64, 8, __m512d, __mmask8, |count: usize| ((1u32 << count) - 1) as u8,
            _mm512_set1_pd, _mm512_loadu_pd, |p, mask| _mm512_maskz_loadu_pd(mask, p),
            _mm512_storeu_pd, _mm512_mask_storeu_pd, _mm512_fmadd_pd;
        F32x8: "AVX2 with FMA, `f32`.", f32, 8, __m256, __m256i,
            |count: usize| _mm256_loadu_si256(SLIDE32.as_ptr().add(8 - count).cast()),
            _mm256_set1_ps, _mm256_loadu_ps, |p, mask| _mm256_maskload_ps(p, mask),
            _mm256_storeu_ps, _mm256_maskstore_ps, _mm256_fmadd_ps;
        F64x4: "AVX2 with FMA, `f64`.", f64, 4, __m256d, __m256i,
            |count: usize| _mm256_loadu_si256(SLIDE64.as_ptr().add(4 - count).cast()),
            _mm256_set1_pd, _mm256_loadu_pd, |p, mask| _mm256_maskload_pd(p, mask),
            _mm256_storeu_pd, _mm256_maskstore_pd, _mm256_fmadd_pd;
    }

    /// The pairs in the bits of the lanes.
    #[inline(always)]
    fn as_pairs(x: __m512) -> __m512bh {
        // SAFETY: both are 64 bytes, and any bits are pairs.
        unsafe { std::mem::transmute::<__m512, __m512bh>(x) }
    }

    /// The eight numbers from entry `8 - count` on are the mask of the first `count`.
    static SLIDE32: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    /// The four numbers from entry `4 - count` on are the mask of the first `count`.
    static SLIDE64: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];
}
