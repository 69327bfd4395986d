//! Derivatives of matrix decompositions and of systems of linear equations.

use crate::Tensor;
use crate::chain::*;
use namegrad_core::options::SolveTriangularOptions;
use namegrad_core::{Error, ErrorKind, QrMode, Result, Triangle};
use namegrad_macros::derivatives;

derivatives! { linalg; |g, cx|
    qr(x; dim, mode) -> (q, r) { x: [q r; dim mode] placed_gradient([g_q, g_r], [q, r], dim, mode)? }
    solve_triangular(x, other; upper, left, unitriangular, dim) -> y {
        x: [x y; upper left unitriangular dim] triangle_gradient(&solved(g, x, upper, left, unitriangular, dim)?, y, upper, left, unitriangular)?
            .movedim([-2, -1], dim.map(|at| at as isize - x.ndim() as isize))?,
        other: [x; upper left unitriangular dim] solved(g, x, upper, left, unitriangular, dim)?
    }
}

/// [`qr_gradient`] for matrices in these dims.
fn placed_gradient(
    gs: [&Tensor; 2],
    outputs: [&Tensor; 2],
    dims: [usize; 2],
    mode: QrMode,
) -> Result<Tensor> {
    let last = [gs[1].ndim() - 2, gs[1].ndim() - 1];
    if mode == QrMode::R {
        let message = "the gradient needs `q`, which the mode `r` does not compute";
        return Err(Error::new(ErrorKind::Autograd, "qr", message));
    }
    let [m, n] = [outputs[0].sizes()[dims[0]], outputs[1].sizes()[dims[1]]];
    if mode == QrMode::Complete && m > n {
        let message =
            "a complete `q` is no function of a matrix with more rows than columns: use the mode `reduced`";
        return Err(Error::new(ErrorKind::Autograd, "qr", message));
    }
    let k = m.min(n);
    let placed = |x: &Tensor, dim: usize| x.movedim(dims.to_vec(), last.to_vec())?.narrow(last[dim], 0, k);
    let (g_q, g_r) = (placed(gs[0], 1)?, placed(gs[1], 0)?);
    let (q, r) = (placed(outputs[0], 1)?, placed(outputs[1], 0)?);
    qr_gradient(&g_q, &g_r, &q, &r)?.movedim(last.to_vec(), dims.to_vec())
}

/// The gradient of `x = q r`. Columns of `x` beyond the square part are `q` times columns of `r`, so their
/// gradient is `q g_r`, and they add `g_r rᵀ` to the gradient of `q`.
fn qr_gradient(g_q: &Tensor, g_r: &Tensor, q: &Tensor, r: &Tensor) -> Result<Tensor> {
    let [k, n] = [-2isize, -1].map(|dim| r.sizes()[(r.ndim() as isize + dim) as usize]);
    if n == k {
        return square_gradient(g_q, g_r, q, r);
    }
    let parts = |x: &Tensor| Ok::<_, namegrad_core::Error>((x.narrow(-1, 0, k)?, x.narrow(-1, k, n - k)?));
    let ((r, rest), (g_r, g_rest)) = (parts(r)?, parts(g_r)?);
    // The columns of `r` beyond the square part are `rest = qᵀ y`, where `y = q rest` are the same columns of
    // `x`.
    let y = q.matmul(&rest)?;
    let g_q = g_q.add(&y.matmul(&g_rest.mt()?)?)?;
    let square = square_gradient(&g_q, &g_r, q, &r)?;
    Tensor::cat(&[&square, &q.matmul(&g_rest)?], -1)
}

/// With `m = g_r rᵀ - qᵀ g_q`: `(g_q + q s) r⁻ᵀ`, where the symmetric
/// `s` has the upper triangle of `m`.
fn square_gradient(g_q: &Tensor, g_r: &Tensor, q: &Tensor, r: &Tensor) -> Result<Tensor> {
    let m = g_r.matmul(&r.mt()?).sub(&q.mt().matmul(g_q)?)?;
    let above = m.triu_with(namegrad_core::options::TriuOptions::new().diagonal(1))?;
    let symmetric = m.triu().add(&above.mt()?)?;
    let right = g_q.add(&q.matmul(&symmetric)?)?;
    right_solved(&right, r)
}

/// `x r⁻ᵀ` for an upper triangular `r`: the solution of `y rᵀ = x`.
fn right_solved(x: &Tensor, r: &Tensor) -> Result<Tensor> {
    r.mt().solve_triangular_with(x, Triangle::Lower, SolveTriangularOptions::new().left(false))
}

/// The solution of the transposed system for `g`.
fn solved(
    g: &Tensor,
    x: &Tensor,
    upper: Triangle,
    left: bool,
    unit: bool,
    [rows, columns]: [usize; 2],
) -> Result<Tensor> {
    let options = SolveTriangularOptions::new().left(left).unitriangular(unit).dim([columns, rows]);
    x.solve_triangular_with(g, upper.transposed(), options)
}

/// `-solved yᵀ` or `-yᵀ solved`, in the triangle that is read.
fn triangle_gradient(solved: &Tensor, y: &Tensor, upper: Triangle, left: bool, unit: bool) -> Result<Tensor> {
    let whole = if left { solved.matmul(&y.mt()?)? } else { y.mt().matmul(solved)? }.neg()?;
    let from = isize::from(unit);
    match upper {
        Triangle::Upper => whole.triu_with(namegrad_core::options::TriuOptions::new().diagonal(from)),
        Triangle::Lower => whole.tril_with(namegrad_core::options::TrilOptions::new().diagonal(-from)),
    }
}
