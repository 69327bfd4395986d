//! `a = u diag(s) vᵀ`.

use super::cholesky::transpose;
use super::{Number, Scratch, rows};
use faer::diag::DiagMut;
use faer::linalg::svd::{ComputeSvdVectors, svd as decompose, svd_scratch};
use faer::{MatMut, Par, Spec};

/// The singular values of a matrix with `m` rows and `n` columns, from the largest, and the vectors if they are
/// wanted: `u` has the columns `sides[0]`, and `vᵀ` as many rows as `sides[1]` says. Returns whether the
/// algorithm converged.
pub(crate) fn svd<T: Number>(
    scratch: &mut Scratch,
    a: &[T],
    [m, n]: [usize; 2],
    s: &mut [T],
    vectors: Option<([&mut [T]; 2], [usize; 2])>,
) -> bool {
    let (par, params) = (Par::Seq, Spec::default());
    let Some(([u, vt], sides)) = vectors else {
        let none = ComputeSvdVectors::No;
        let stack = scratch.of(svd_scratch::<T>(m, n, none, none, par, params));
        return decompose(rows(a, [m, n]), DiagMut::from_slice_mut(s), None, None, par, stack, params)
            .is_ok();
    };
    let wanted = |size: usize| {
        if size == m.min(n) { ComputeSvdVectors::Thin } else { ComputeSvdVectors::Full }
    };
    let stack = scratch.of(svd_scratch::<T>(m, n, wanted(sides[0]), wanted(sides[1]), par, params));
    let mut columns = vec![T::ZERO; m * sides[0]];
    let made = decompose(
        rows(a, [m, n]),
        DiagMut::from_slice_mut(s),
        Some(MatMut::from_column_major_slice_mut(&mut columns, m, sides[0])),
        // The rows of `vᵀ` are the columns of `v`.
        Some(MatMut::from_column_major_slice_mut(vt, n, sides[1])),
        par,
        stack,
        params,
    );
    transpose(&columns, u, [sides[0], m]);
    made.is_ok()
}
