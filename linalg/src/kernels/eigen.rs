//! Eigenvalues and eigenvectors.

use super::{Number, Scratch, rows};
use faer::diag::DiagMut;
use faer::linalg::evd::{
    ComputeEigenvectors, evd_real, evd_scratch, self_adjoint_evd, self_adjoint_evd_scratch,
};
use faer::{MatMut, Par, Spec};

/// The eigenvalues of a symmetric matrix, from the smallest, and the eigenvectors as columns, if they are
/// wanted. Only the lower triangle is read. Returns whether the algorithm converged.
pub(crate) fn symmetric<T: Number>(
    scratch: &mut Scratch,
    a: &[T],
    n: usize,
    values: &mut [T],
    vectors: Option<&mut [T]>,
) -> bool {
    let (par, params) = (Par::Seq, Spec::default());
    let compute = if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let stack = scratch.of(self_adjoint_evd_scratch::<T>(n, compute, par, params));
    let mut columns = vec![T::ZERO; if vectors.is_some() { n * n } else { 0 }];
    let target = vectors.is_some().then(|| MatMut::from_column_major_slice_mut(&mut columns, n, n));
    let made = self_adjoint_evd(rows(a, [n, n]), DiagMut::from_slice_mut(values), target, par, stack, params);
    if let Some(vectors) = vectors {
        super::cholesky::transpose(&columns, vectors, [n, n]);
    }
    made.is_ok()
}

/// The eigenvalues of a square matrix, and the eigenvectors as columns, if they are wanted: for a pair of
/// complex eigenvalues, the real part and then the imaginary part of the first. Returns whether the algorithm
/// converged.
pub(crate) fn general<T: Number>(
    scratch: &mut Scratch,
    a: &[T],
    n: usize,
    re: &mut [T],
    im: &mut [T],
    vectors: Option<&mut [T]>,
) -> bool {
    let (par, params) = (Par::Seq, Spec::default());
    let compute = if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let stack = scratch.of(evd_scratch::<T>(n, ComputeEigenvectors::No, compute, par, params));
    let mut columns = vec![T::ZERO; if vectors.is_some() { n * n } else { 0 }];
    let target = vectors.is_some().then(|| MatMut::from_column_major_slice_mut(&mut columns, n, n));
    let made = evd_real(
        rows(a, [n, n]),
        DiagMut::from_slice_mut(re),
        DiagMut::from_slice_mut(im),
        None,
        target,
        par,
        stack,
        params,
    );
    if let Some(vectors) = vectors {
        super::cholesky::transpose(&columns, vectors, [n, n]);
    }
    made.is_ok()
}
