//! Kernels on plain values without names, with the matrices in the last two dims.

use crate::common::*;
use crate::kernels::lanes::{self as many, LANES};
use crate::kernels::lu::SMALL;
use crate::kernels::{Number, cholesky, each, eigen, lu as lus, svd as svds};
use namegrad_core::kernels::{elements, elements_mut};

/// From this number of matrices on, small ones are computed beside each other.
const MANY: usize = 4;

/// A tensor of zeros with the batch dims of `x` and these.
fn blank(x: &NamedTensor, batch: usize, sizes: &[usize], dtype: DType) -> Result<NamedTensor> {
    let all: Vec<usize> = x.sizes()[..batch].iter().chain(sizes).copied().collect();
    NamedTensor::full_as("", all, 0.into(), dtype)
}

/// The matrices that a kernel computes, of `count`.
fn runs(x: &NamedTensor, count: usize) -> usize {
    if x.device() == Device::Meta { 0 } else { count }
}

/// The elements of a tensor; on the meta device, this number for each.
pub(crate) fn numbers_or<T: Element>(x: &NamedTensor, number: T) -> Result<Vec<T>> {
    if x.device() == Device::Meta { Ok(vec![number; x.numel()]) } else { x.to_vec() }
}

/// The number of matrices of `x`, and their sizes.
fn counted(x: &NamedTensor) -> (usize, [usize; 2]) {
    let batch = x.ndim() - 2;
    (x.sizes()[..batch].iter().product(), [x.sizes()[batch], x.sizes()[batch + 1]])
}

/// For each matrix 1 if an element is not finite.
pub(crate) fn not_finite(x: &NamedTensor) -> Result<Vec<i32>> {
    fn of<T: Number>(x: &NamedTensor) -> Result<Vec<i32>> {
        let (x, (count, [m, n])) = (x.contiguous()?, counted(x));
        if runs(&x, count) == 0 {
            return Ok(vec![0; count]);
        }
        let a = elements::<T>(&x)?;
        Ok((0..count).map(|k| i32::from(!a[k * m * n..(k + 1) * m * n].iter().all(|x| x.finite()))).collect())
    }
    match x.dtype() {
        DType::F64 => of::<f64>(x),
        _ => of::<f32>(x),
    }
}

/// The lower triangular factors of symmetric matrices, whose lower triangles are read. An info is the order of
/// the first leading minor that is not positive.
pub(crate) fn cholesky(x: &NamedTensor) -> Result<(NamedTensor, Vec<i32>)> {
    fn of<T: Number>(x: &NamedTensor) -> Result<(NamedTensor, Vec<i32>)> {
        let (count, [n, _]) = counted(x);
        let (mut y, mut infos) = (x.contiguous()?.deep_clone()?, vec![0; count]);
        if n <= SMALL && n > 0 && runs(x, count) >= MANY {
            each(
                count.div_ceil(LANES),
                LANES * n * n * n / 3,
                ([y.as_mut_slice::<T>()?], [n * n * LANES]),
                ([&mut infos], [LANES]),
                &|_, _, [a], [infos]| many::cholesky(a, n, infos),
            );
            return Ok((y, infos));
        }
        each(
            runs(x, count),
            n * n * n / 3,
            ([elements_mut::<T>(&mut y)?], [n * n]),
            ([&mut infos], [1]),
            &|scratch, _, [l], [info]| info[0] = cholesky::cholesky(scratch, l, n),
        );
        Ok((y, infos))
    }
    match x.dtype() {
        DType::F64 => of::<f64>(x),
        _ => of::<f32>(x),
    }
}

/// The factors of `p a = l u`.
pub(crate) struct Lu {
    /// `l` below the diagonal, and `u`.
    pub(crate) factors: NamedTensor,
    /// The rows that were swapped, from 1.
    pub(crate) pivots: NamedTensor,
    /// The number of the first pivot that is 0, from 1.
    pub(crate) infos: Vec<i32>,
}

pub(crate) fn lu(x: &NamedTensor) -> Result<Lu> {
    fn of<T: Number>(x: &NamedTensor) -> Result<Lu> {
        let (count, [m, n]) = counted(x);
        let (k, batch) = (m.min(n), x.ndim() - 2);
        let (mut factors, mut infos) = (x.contiguous()?.deep_clone()?, vec![0; count]);
        let mut pivots = blank(x, batch, &[k], DType::I32)?;
        if m == n && n <= SMALL && n > 0 && runs(x, count) >= MANY {
            each(
                count.div_ceil(LANES),
                LANES * m * n * k,
                ([factors.as_mut_slice::<T>()?], [n * n * LANES]),
                ([pivots.as_mut_slice::<i32>()?, &mut infos], [n * LANES, LANES]),
                &|_, _, [a], [pivots, infos]| many::lu(a, n, pivots, infos),
            );
            return Ok(Lu { factors, pivots, infos });
        }
        each(
            runs(x, count),
            m * n * k,
            ([elements_mut::<T>(&mut factors)?], [m * n]),
            ([elements_mut::<i32>(&mut pivots)?, &mut infos], [k, 1]),
            &|scratch, _, [a], [pivots, info]| info[0] = lus::lu(scratch, a, [m, n], pivots),
        );
        Ok(Lu { factors, pivots, infos })
    }
    match x.dtype() {
        DType::F64 => of::<f64>(x),
        _ => of::<f32>(x),
    }
}

/// The solutions of `a x = b`, or with `adjoint` of `aᵀ x = b`, for the factors of `a`. Batch dims broadcast.
pub(crate) fn lu_solve(
    factors: &NamedTensor,
    pivots: &NamedTensor,
    b: &NamedTensor,
    adjoint: bool,
) -> Result<NamedTensor> {
    fn of<T: Number>(
        factors: &NamedTensor,
        pivots: &NamedTensor,
        b: &NamedTensor,
        adjoint: bool,
    ) -> Result<NamedTensor> {
        let (_, [n, columns]) = counted(b);
        let batch = broadcast(factors, b)?;
        let sizes: Vec<usize> = batch.iter().copied().chain([n, columns]).collect();
        let mut x = b.expand(&sizes[..])?.contiguous()?.deep_clone()?;
        let (places, count) = (places(factors, &batch)?, batch.iter().product::<usize>());
        let (factors, pivots) = (factors.contiguous()?, pivots.contiguous()?);
        let (factors, pivots) = (elements::<T>(&factors)?, elements::<i32>(&pivots)?);
        if n <= SMALL && n * columns > 0 && runs(b, count) >= MANY {
            each(
                count.div_ceil(LANES),
                LANES * n * n * columns,
                ([x.as_mut_slice::<T>()?], [n * columns * LANES]),
                ([], []),
                &|_, at, [x], []| {
                    let own = |k: usize| places[at * LANES + k];
                    let of = |k: usize| (&factors[own(k) * n * n..], &pivots[own(k) * n..]);
                    many::solve(of, n, x, columns, adjoint);
                },
            );
            return Ok(x);
        }
        each(
            runs(b, count),
            n * n * columns,
            ([elements_mut::<T>(&mut x)?], [n * columns]),
            ([], []),
            &|_, at, [x], []| {
                let own = places[at];
                let (factors, pivots) = (&factors[own * n * n..][..n * n], &pivots[own * n..][..n]);
                lus::solve(factors, pivots, n, x, columns, adjoint);
            },
        );
        Ok(x)
    }
    match factors.dtype() {
        DType::F64 => of::<f64>(factors, pivots, b, adjoint),
        _ => of::<f32>(factors, pivots, b, adjoint),
    }
}

/// The batch dims of two tensors of matrices, broadcast.
pub(crate) fn broadcast(a: &NamedTensor, b: &NamedTensor) -> Result<Vec<usize>> {
    let [a, b] = [a, b].map(|x| &x.sizes()[..x.ndim() - 2]);
    Tensor::broadcast_shapes(&[a, b])
        .map_err(|_| fault(ErrorKind::Shape, format!("the batch dims {a:?} and {b:?} do not broadcast")))
}

/// For each matrix of the broadcast batch, the number of its matrix in `x`.
fn places(x: &NamedTensor, batch: &[usize]) -> Result<Vec<usize>> {
    let own = &x.sizes()[..x.ndim() - 2];
    let count: usize = own.iter().product();
    let numbers = NamedTensor::arange(0, count, 1, DType::I64)?.reshape(own)?.expand(batch)?;
    Ok(numbers_or::<i64>(&numbers, 0)?.into_iter().map(|number| number as usize).collect())
}

/// The inverses of matrices; an info is that of [`lu`].
pub(crate) fn inverse(x: &NamedTensor) -> Result<(NamedTensor, Vec<i32>)> {
    let Lu { factors, pivots, infos } = lu(x)?;
    let n = x.sizes()[x.ndim() - 1];
    let identity = NamedTensor::eye(n, n, x.dtype())?;
    Ok((lu_solve(&factors, &pivots, &identity, false)?, infos))
}

/// The signs of the permutations and of the pivots, and the pivots.
pub(crate) fn signs(lu: &Lu) -> Result<Vec<f64>> {
    let n = lu.pivots.sizes()[lu.pivots.ndim() - 1];
    let pivots = numbers_or(&lu.pivots, 0)?;
    let count = lu.infos.len();
    let swaps = |k: usize| (0..n).filter(|i| pivots[k * n + i] != *i as i32 + 1).count();
    Ok((0..count).map(|k| if swaps(k) % 2 == 0 { 1.0 } else { -1.0 }).collect())
}

/// The permutation matrices `p` of `a = p l u`, of `m` rows, for the swaps in `pivots`.
pub(crate) fn permutations(pivots: &NamedTensor, m: usize, dtype: DType) -> Result<NamedTensor> {
    let (batch, k) = (pivots.ndim() - 1, pivots.sizes()[pivots.ndim() - 1]);
    let all = numbers_or(pivots, 1)?;
    let count: usize = pivots.sizes()[..batch].iter().product();
    let mut p = vec![0.0; count * m * m];
    for number in 0..count {
        let mut order: Vec<usize> = (0..m).collect();
        for (i, pivot) in all[number * k..(number + 1) * k].iter().enumerate() {
            let Some(other) =
                usize::try_from(*pivot).ok().and_then(|at| at.checked_sub(1)).filter(|at| *at < m)
            else {
                return Err(fault(ErrorKind::Value, format!("the pivot {pivot} is not between 1 and {m}")));
            };
            order.swap(i, other);
        }
        for (to, from) in order.into_iter().enumerate() {
            p[number * m * m + from * m + to] = 1.0;
        }
    }
    let sizes: Vec<usize> = pivots.sizes()[..batch].iter().copied().chain([m, m]).collect();
    NamedTensor::from_slice(&p, &sizes[..])?.to(dtype)
}

/// The eigenvalues of symmetric matrices, whose lower triangles are read, and the eigenvectors, if they are
/// wanted. An info is 1 if the algorithm did not converge.
pub(crate) fn symmetric(
    x: &NamedTensor,
    vectors: bool,
) -> Result<(NamedTensor, Option<NamedTensor>, Vec<i32>)> {
    fn of<T: Number>(x: &NamedTensor, wanted: bool) -> Result<(NamedTensor, Option<NamedTensor>, Vec<i32>)> {
        let (count, [n, _]) = counted(x);
        let (batch, x) = (x.ndim() - 2, x.contiguous()?);
        let (mut values, mut infos) = (blank(&x, batch, &[n], x.dtype())?, vec![0; count]);
        let (each_vectors, pair) = (if wanted { n * n } else { 0 }, [n, n]);
        let mut vectors = blank(&x, batch, if wanted { &pair } else { &[0] }, x.dtype())?;
        if n > 0 {
            let a = elements::<T>(&x)?;
            each(
                runs(&x, count),
                10 * n * n * n,
                ([elements_mut::<T>(&mut values)?, elements_mut::<T>(&mut vectors)?], [n, each_vectors]),
                ([&mut infos], [1]),
                &|scratch, at, [values, vectors], [info]| {
                    let a = &a[at * n * n..][..n * n];
                    info[0] = i32::from(!eigen::symmetric(scratch, a, n, values, wanted.then_some(vectors)));
                },
            );
        }
        Ok((values, wanted.then_some(vectors), infos))
    }
    match x.dtype() {
        DType::F64 => of::<f64>(x, vectors),
        _ => of::<f32>(x, vectors),
    }
}

/// The real and the imaginary parts of the eigenvalues of matrices, and the eigenvectors as `faer` gives them.
pub(crate) fn general(
    x: &NamedTensor,
    vectors: bool,
) -> Result<([NamedTensor; 2], Option<NamedTensor>, Vec<i32>)> {
    fn of<T: Number>(
        x: &NamedTensor,
        wanted: bool,
    ) -> Result<([NamedTensor; 2], Option<NamedTensor>, Vec<i32>)> {
        let (count, [n, _]) = counted(x);
        let (batch, x) = (x.ndim() - 2, x.contiguous()?);
        let (mut re, mut im) = (blank(&x, batch, &[n], x.dtype())?, blank(&x, batch, &[n], x.dtype())?);
        let mut infos = vec![0; count];
        let (each_vectors, pair) = (if wanted { n * n } else { 0 }, [n, n]);
        let mut vectors = blank(&x, batch, if wanted { &pair } else { &[0] }, x.dtype())?;
        if n > 0 {
            let a = elements::<T>(&x)?;
            each(
                runs(&x, count),
                25 * n * n * n,
                (
                    [
                        elements_mut::<T>(&mut re)?,
                        elements_mut::<T>(&mut im)?,
                        elements_mut::<T>(&mut vectors)?,
                    ],
                    [n, n, each_vectors],
                ),
                ([&mut infos], [1]),
                &|scratch, at, [re, im, vectors], [info]| {
                    let a = &a[at * n * n..][..n * n];
                    info[0] = i32::from(!eigen::general(scratch, a, n, re, im, wanted.then_some(vectors)));
                },
            );
        }
        Ok(([re, im], wanted.then_some(vectors), infos))
    }
    match x.dtype() {
        DType::F64 => of::<f64>(x, vectors),
        _ => of::<f32>(x, vectors),
    }
}

/// The singular values of matrices, from the largest, and the vectors, if they are wanted: as many as there are
/// rows and columns with `full`.
pub(crate) fn svd(
    x: &NamedTensor,
    vectors: bool,
    full: bool,
) -> Result<(NamedTensor, Option<[NamedTensor; 2]>, Vec<i32>)> {
    fn of<T: Number>(
        x: &NamedTensor,
        wanted: bool,
        full: bool,
    ) -> Result<(NamedTensor, Option<[NamedTensor; 2]>, Vec<i32>)> {
        let (count, [m, n]) = counted(x);
        let (batch, x, k) = (x.ndim() - 2, x.contiguous()?, m.min(n));
        let sides = if full { [m, n] } else { [k, k] };
        let (mut s, mut infos) = (blank(&x, batch, &[k], x.dtype())?, vec![0; count]);
        let sizes = if wanted { [m * sides[0], sides[1] * n] } else { [0, 0] };
        let [of_u, of_vt] = [[m, sides[0]], [sides[1], n]];
        let mut u = blank(&x, batch, if wanted { &of_u } else { &[0] }, x.dtype())?;
        let mut vt = blank(&x, batch, if wanted { &of_vt } else { &[0] }, x.dtype())?;
        if k > 0 {
            let a = elements::<T>(&x)?;
            each(
                runs(&x, count),
                20 * m * n * k,
                (
                    [elements_mut::<T>(&mut s)?, elements_mut::<T>(&mut u)?, elements_mut::<T>(&mut vt)?],
                    [k, sizes[0], sizes[1]],
                ),
                ([&mut infos], [1]),
                &|scratch, at, [s, u, vt], [info]| {
                    let a = &a[at * m * n..][..m * n];
                    let vectors = wanted.then_some(([u, vt], sides));
                    info[0] = i32::from(!svds::svd(scratch, a, [m, n], s, vectors));
                },
            );
        } else if wanted && full {
            // No column is needed to complete the basis of an empty matrix.
            let identity = |side: usize, like: NamedTensor| {
                NamedTensor::eye(side, side, x.dtype())?.expand(like.sizes())?.contiguous()
            };
            (u, vt) = (identity(m, u)?, identity(n, vt)?);
        }
        Ok((s, wanted.then_some([u, vt]), infos))
    }
    match x.dtype() {
        DType::F64 => of::<f64>(x, vectors, full),
        _ => of::<f32>(x, vectors, full),
    }
}
