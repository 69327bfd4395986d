//! How products are shared among threads.
//!
//! C is cut into parts, each of which is a product on its own with all of `k`; so no sum is formed by two threads.

use super::blocked::Method;
use super::element::MatmulElement;
use super::{Product, blocked, method, whole};

/// Multiply-adds that are worth handing to another thread, which costs some microseconds.
const HAND_OVER: usize = 1 << 19;

/// One product, on as many threads as it is worth.
///
/// # Safety
/// That of [`gemm`](super::gemm).
pub(super) unsafe fn one<T: MatmulElement>(p: &Product<T>) {
    let work = p.m.saturating_mul(p.n).saturating_mul(p.k);
    let parts = if work < 2 * HAND_OVER { 1 } else { (work / HAND_OVER).min(rayon::current_num_threads()) };
    // SAFETY: the contract is the same.
    unsafe { if parts == 1 || p.k == 0 { whole(p) } else { cut(p, parts, method(p)) } }
}

/// Cuts C in two along its longer side until there are `parts` of it.
///
/// # Safety
/// That of [`gemm`](super::gemm).
unsafe fn cut<T: MatmulElement>(p: &Product<T>, parts: usize, method: Method<T>) {
    if parts == 1 || p.m.max(p.n) == 1 {
        // SAFETY: the contract is the same.
        return unsafe { blocked::serial(p, method) };
    }
    let (first, second) = (parts / 2, parts - parts / 2);
    let (a, b) = if p.m > p.n {
        let m = p.m * first / parts;
        (p.part(0, m, 0, p.n), p.part(m, p.m - m, 0, p.n))
    } else {
        // Whole panels, unless C is too narrow for two.
        let n = p.n * first / parts;
        let n = if n < 64 { n } else { n / 64 * 64 };
        (p.part(0, p.m, 0, n), p.part(0, p.m, n, p.n - n))
    };
    // SAFETY: the two parts of C have no element in common.
    rayon::join(|| unsafe { cut(&a, first, method) }, || unsafe { cut(&b, second, method) });
}

/// `batch` products, number `i` of which is `p` moved by `offsets(i)`.
///
/// # Safety
/// That of [`gemm_batched`](super::gemm_batched).
pub(super) unsafe fn many<T: MatmulElement>(
    batch: usize,
    offsets: &(dyn Fn(usize) -> (isize, isize, isize) + Sync),
    p: &Product<T>,
) {
    let work = p.m.saturating_mul(p.n).saturating_mul(p.k);
    let threads = rayon::current_num_threads();
    // SAFETY: the contract is the same for each product, and they have no element of C in common.
    unsafe {
        if batch < 2 * threads && work >= 2 * HAND_OVER {
            for i in 0..batch {
                one(&p.moved(offsets(i)));
            }
        } else if threads == 1 || work.saturating_mul(batch) < 2 * HAND_OVER {
            for i in 0..batch {
                whole(&p.moved(offsets(i)));
            }
        } else {
            share(0, batch, &|i| whole(&p.moved(offsets(i))), (HAND_OVER / work.max(1)).max(1));
        }
    }
}

/// Calls `f` for each number from `first` to `end`, at least `least` numbers to a thread.
fn share(first: usize, end: usize, f: &(dyn Fn(usize) + Sync), least: usize) {
    if end - first < 2 * least {
        return (first..end).for_each(f);
    }
    let middle = first.midpoint(end);
    rayon::join(|| share(first, middle, f, least), || share(middle, end, f, least));
}
