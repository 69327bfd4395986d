//! What holds for the results of each method, for matrices of many sizes, batches and both dtypes: equations
//! that products alone decide, and plain loops.

use namegrad::ops;
use namegrad::prelude::*;
use std::collections::BTreeSet;

type Check = fn(&Case) -> Result<()>;

/// Random matrices and what fits them.
struct Case {
    /// Square and well conditioned.
    square: Tensor,
    /// Symmetric and positive definite.
    definite: Tensor,
    /// As many rows as `square`, and other columns.
    right: Tensor,
    /// Any sizes.
    wide: Tensor,
    tall: Tensor,
    dtype: DType,
}

impl Case {
    fn new(n: usize, batch: &[usize], dtype: DType) -> Result<Case> {
        let random = |rows: usize, columns: usize| {
            let sizes: Vec<usize> = batch.iter().copied().chain([rows, columns]).collect();
            TensorOptions::new().dtype(DType::F64).randn(sizes)
        };
        let one = TensorOptions::new().dtype(DType::F64).eye(n, n)?;
        let (a, b) = (random(n, n)?, random(n, n + 1)?);
        // Diagonally dominant enough for any draw.
        let square = a.mul(0.5 / (n.max(1) as f64).sqrt())?.add(one.mul(2.0)?)?;
        let definite = b.matmul(&b.mt()?).mul(1.0 / n.max(1) as f64)?.add(&one)?;
        let all = [square, definite, random(n, 2)?, random(n, n + 3)?, random(n + 2, n)?];
        let [square, definite, right, wide, tall] = all.map(|x| x.to(dtype));
        Ok(Case { square: square?, definite: definite?, right: right?, wide: wide?, tall: tall?, dtype })
    }

    /// Whether two tensors are equal up to rounding.
    #[track_caller]
    fn same(&self, a: &Tensor, b: &Tensor) -> Result<()> {
        let digits = if self.dtype == DType::F64 { 1e-11 } else { 5e-4 };
        let options = IscloseOptions::new().rtol(digits).atol(digits * 10.0);
        assert_eq!(a.sizes(), b.sizes());
        assert!(a.allclose_with(b, options)?, "{a} and {b}");
        Ok(())
    }

    fn one(&self, n: usize) -> Result<Tensor> {
        TensorOptions::new().dtype(self.dtype).eye(n, n)
    }

    /// The identity, for each matrix of `x`.
    fn one_like(&self, x: &Tensor) -> Result<Tensor> {
        let mut sizes = x.sizes().to_vec();
        let n = sizes[sizes.len() - 2];
        *sizes.last_mut().unwrap() = n;
        self.one(n)?.expand(&sizes[..])
    }

    /// The columns of `q` are orthonormal.
    fn orthonormal(&self, q: &Tensor) -> Result<()> {
        let product = q.mt()?.matmul(q)?;
        self.same(&product, &self.one_like(&product)?)
    }

    fn each(&self) -> [&Tensor; 3] {
        [&self.square, &self.wide, &self.tall]
    }
}

/// `det` by expansion along the first row.
fn expanded(x: &[Vec<f64>]) -> f64 {
    if x.is_empty() {
        return 1.0;
    }
    let minor = |k: usize| -> Vec<Vec<f64>> {
        let row = |row: &Vec<f64>| (0..x.len()).filter(|j| *j != k).map(|j| row[j]).collect();
        x[1..].iter().map(row).collect()
    };
    (0..x.len()).map(|k| (if k % 2 == 0 { 1.0 } else { -1.0 }) * x[0][k] * expanded(&minor(k))).sum()
}

/// A function of the rows of each matrix.
fn each_matrix(x: &Tensor, f: impl Fn(&[Vec<f64>]) -> f64) -> Result<Tensor> {
    let [.., m, n] = *x.sizes() else { unreachable!("matrices") };
    let numbers = x.to(DType::F64)?.to_vec::<f64>()?;
    let count: usize = x.sizes()[..x.ndim() - 2].iter().product();
    let rows =
        |at: usize| -> Vec<Vec<f64>> { (0..m).map(|i| numbers[(at * m + i) * n..][..n].to_vec()).collect() };
    let results: Vec<f64> = (0..count).map(|at| f(&rows(at))).collect();
    Tensor::from_slice(&results, &x.sizes()[..x.ndim() - 2])?.to(x.dtype())
}

const CHECKS: &[(&str, Check)] = &[
    ("solve", |c| {
        c.same(&c.square.matmul(&c.square.solve(&c.right, ..)?)?, &c.right)?;
        let left = c.square.solve_with(&c.right.mt()?, .., SolveOptions::new().left(false))?;
        c.same(&left.matmul(&c.square)?, &c.right.mt()?)
    }),
    ("solve_ex", |c| {
        let (x, info) = c.square.solve_ex(&c.right, ..)?;
        assert!(info.eq(0).all(..)?.item::<bool>()?);
        c.same(&x, &c.square.solve(&c.right, ..)?)
    }),
    ("inv", |c| c.same(&c.square.matmul(&c.square.inv(..)?)?, &c.one_like(&c.square)?)),
    ("inv_ex", |c| c.same(&c.square.inv_ex(..)?.0, &c.square.inv(..)?)),
    ("det", |c| match c.square.sizes()[c.square.ndim() - 1] {
        0..6 => c.same(&c.square.det(..)?, &each_matrix(&c.square, expanded)?),
        _ => c.same(
            &c.square.div(2.0).det(..)?.mul(&c.square.inv(..).mul(2.0).det(..)?)?,
            &c.square.det(..).mul(0.0).add(1.0)?,
        ),
    }),
    ("slogdet", |c| {
        let (sign, log) = c.square.slogdet(..)?;
        let n = c.square.sizes()[c.square.ndim() - 1] as f64;
        c.same(&sign.mul(log.sub(n * 2f64.ln()).exp()?)?, &c.square.div(2.0).det(..)?)
    }),
    ("logdet", |c| {
        let l = c.definite.cholesky(..)?;
        c.same(&c.definite.logdet(..)?, &l.diagonal(-2, -1).log().sum(-1).mul(2.0)?)
    }),
    ("tensorsolve", |c| {
        let n = c.square.sizes()[c.square.ndim() - 1];
        if c.square.numel() == 0 {
            return Ok(());
        }
        let x = c.square.reshape([-1, n as isize, n as isize])?;
        let (x, b) = (x.select(0, 0)?, c.right.reshape([-1, n as isize, 2])?.select(0, 0)?.select(-1, 0)?);
        let y = x.reshape([n as isize, 1, n as isize, 1])?.tensorsolve(&b.reshape([n as isize, 1])?)?;
        c.same(&y.reshape([n])?, &x.solve(&b, ..)?)
    }),
    ("tensorinv", |c| {
        let n = c.square.sizes()[c.square.ndim() - 1];
        let count = c.square.numel() / (n * n).max(1);
        if count == 0 || n == 0 {
            return Ok(());
        }
        let x = c.square.reshape([count, n, n])?.select(0, 0)?;
        c.same(&x.reshape([n, 1, n])?.tensorinv()?.reshape([n, n])?, &x.inv(..)?)
    }),
    ("cholesky", |c| {
        let l = c.definite.cholesky(..)?;
        assert!(l.equal(&l.tril()?)?);
        c.same(&l.matmul(&l.mt()?)?, &c.definite)?;
        let upper = CholeskyOptions::new().upper(Triangle::Upper);
        c.same(&c.definite.cholesky_with(.., upper)?, &l.mt()?)
    }),
    ("cholesky_ex", |c| c.same(&c.definite.cholesky_ex(..)?.0, &c.definite.cholesky(..)?)),
    ("cholesky_solve", |c| {
        let x = c.right.cholesky_solve(&c.definite.cholesky(..)?, ..)?;
        c.same(&c.definite.matmul(&x)?, &c.right)
    }),
    ("cholesky_inverse", |c| c.same(&c.definite.cholesky(..)?.cholesky_inverse(..)?, &c.definite.inv(..)?)),
    ("lu", |c| {
        for x in c.each() {
            let (p, l, u) = x.lu(..)?;
            assert!(l.equal(&l.tril()?)? && u.equal(&u.triu()?)?);
            assert!(l.abs().le(1.0 + 1e-6).all(..)?.item::<bool>()?, "partial pivoting");
            c.orthonormal(&p)?;
            c.same(&p.matmul(&l)?.matmul(&u)?, x)?;
        }
        Ok(())
    }),
    ("lu_factor", |c| {
        let ((factors, pivots), (_, l, u)) = (c.square.lu_factor(..)?, c.square.lu(..)?);
        assert_eq!(pivots.dtype(), DType::I32);
        c.same(&factors.triu()?, &u)?;
        c.same(
            &factors.tril_with(TrilOptions::new().diagonal(-1))?,
            &l.tril_with(TrilOptions::new().diagonal(-1))?,
        )
    }),
    ("lu_factor_ex", |c| c.same(&c.square.lu_factor_ex(..)?.0, &c.square.lu_factor(..)?.0)),
    ("lu_unpack", |c| {
        let (factors, pivots) = c.tall.lu_factor(..)?;
        let ((p, l, u), (want_p, want_l, want_u)) = (factors.lu_unpack(&pivots, ..)?, c.tall.lu(..)?);
        c.same(&p, &want_p)?;
        c.same(&l, &want_l)?;
        c.same(&u, &want_u)
    }),
    ("lu_solve", |c| {
        let (factors, pivots) = c.square.lu_factor(..)?;
        let adjoint = LuSolveOptions::new().adjoint(true);
        c.same(&factors.lu_solve(&pivots, &c.right, ..)?, &c.square.solve(&c.right, ..)?)?;
        c.same(&factors.lu_solve_with(&pivots, &c.right, .., adjoint)?, &c.square.mt()?.solve(&c.right, ..)?)
    }),
    ("householder_product", |c| {
        // One reflection of length 1 for each column: `1 - 2 v vᵀ / vᵀ v`, with 1 at the head of `v`.
        let v = c.tall.tril_with(TrilOptions::new().diagonal(-1))?;
        let tau = v.square().sum(-2).add(1.0).reciprocal().mul(2.0)?;
        let q = v.householder_product(&tau, ..)?;
        c.orthonormal(&q)
    }),
    ("eigh", |c| {
        let (values, v) = c.definite.eigh(..)?;
        c.orthonormal(&v)?;
        c.same(&v.mul(values.unsqueeze(-2)?)?.matmul(&v.mt()?)?, &c.definite)
    }),
    ("eigvalsh", |c| {
        let values = c.definite.eigvalsh(..)?;
        c.same(&values.sum(-1)?, &c.definite.diagonal(-2, -1).sum(-1)?)?;
        c.same(&values, &c.definite.eigh(..)?.0)
    }),
    ("eig", |c| {
        let (values, v) = c.square.eig(..)?;
        let part = |x: &Tensor, k: isize| x.select(-1, k);
        let (re, im) = (part(&values, 0).unsqueeze(-2)?, part(&values, 1).unsqueeze(-2)?);
        let (v_re, v_im) = (part(&v, 0)?, part(&v, 1)?);
        c.same(&c.square.matmul(&v_re)?, &v_re.mul(&re)?.sub(&v_im.mul(&im)?)?)?;
        c.same(&c.square.matmul(&v_im)?, &v_re.mul(&im)?.add(v_im.mul(&re)?)?)
    }),
    ("eigvals", |c| {
        c.same(&c.square.eigvals(..)?.sum(-2)?.select(-1, 0)?, &c.square.diagonal(-2, -1).sum(-1)?)
    }),
    ("svd", |c| {
        for x in c.each() {
            let (u, s, vt) = x.svd_with(.., SvdOptions::new().full_matrices(false))?;
            c.orthonormal(&u)?;
            c.orthonormal(&vt.mt()?)?;
            assert!(s.ge(0.0).all(..)?.item::<bool>()?);
            c.same(&u.mul(s.unsqueeze(-2)?)?.matmul(&vt)?, x)?;
            let (u, _, vt) = x.svd(..)?;
            c.orthonormal(&u)?;
            c.orthonormal(&vt.mt()?)?;
        }
        Ok(())
    }),
    ("svdvals", |c| c.same(&c.wide.svdvals(..)?, &c.wide.svd(..)?.1)),
    ("pinv", |c| {
        for x in c.each() {
            let y = x.pinv(..)?;
            c.same(&x.matmul(&y)?.matmul(x)?, x)?;
            c.same(&y.matmul(x)?.matmul(&y)?, &y)?;
            c.same(&x.matmul(&y)?, &x.matmul(&y)?.mt()?)?;
            c.same(&y.matmul(x)?, &y.matmul(x)?.mt()?)?;
        }
        Ok(())
    }),
    ("lstsq", |c| {
        let b = Tensor::cat(&[&c.right, &c.right.narrow(-2, 0, 0)?], -2)?;
        let (x, ..) = c.wide.lstsq(&b, ..)?;
        c.same(&c.wide.matmul(&x)?, &b)?;
        // The rest of an overdetermined system is orthogonal to its columns.
        let b = c.tall.mul(c.tall.exp()?)?.narrow(-1, 0, c.tall.sizes()[c.tall.ndim() - 1].min(1))?;
        let (x, residuals, rank, _) = c.tall.lstsq(&b, ..)?;
        let rest = c.tall.matmul(&x)?.sub(&b)?;
        let none = c.tall.mt()?.matmul(&rest)?;
        c.same(&none, &none.zeros_like()?)?;
        assert!(rank.eq(c.tall.sizes()[c.tall.ndim() - 1] as i64).all(..)?.item::<bool>()?);
        c.same(&residuals, &rest.square().sum(-2)?)
    }),
    ("matrix_rank", |c| {
        let n = c.tall.sizes()[c.tall.ndim() - 1];
        assert!(c.tall.matrix_rank(..)?.eq(n as i64).all(..)?.item::<bool>()?);
        let one = c.right.narrow(-1, 0, 1)?;
        assert!(one.matmul(&one.mt()?).matrix_rank(..)?.eq(n.min(1) as i64).all(..)?.item::<bool>()?);
        Ok(())
    }),
    ("cond", |c| {
        let s = c.square.svdvals(..)?;
        if s.sizes()[s.ndim() - 1] == 0 {
            return c.same(&c.square.cond(..)?, &s.sum(-1)?);
        }
        c.same(&c.square.cond(..)?, &s.amax(-1).div(s.amin(-1)?)?)?;
        for p in [MatrixNorm::Frobenius, MatrixNorm::Nuclear, 1.into(), f64::INFINITY.into()] {
            let norm = |x: &Tensor| x.matrix_norm_with(.., MatrixNormOptions::new().ord(p));
            let product = norm(&c.square).mul(norm(&c.square.inv(..)?)?)?;
            c.same(&c.square.cond_with(.., CondOptions::new().p(p))?, &product)?;
        }
        Ok(())
    }),
    ("matrix_norm", |c| {
        let x = &c.tall;
        let norm = |ord: MatrixNorm| x.matrix_norm_with(.., MatrixNormOptions::new().ord(ord));
        c.same(&norm(MatrixNorm::Frobenius)?, &x.square().sum([-2, -1]).sqrt()?)?;
        c.same(&norm(MatrixNorm::Nuclear)?, &x.svdvals(..)?.sum(-1)?)?;
        if x.sizes()[x.ndim() - 1] == 0 {
            return Ok(());
        }
        let (columns, rows) = (x.abs().sum(-2)?, x.abs().sum(-1)?);
        c.same(&norm(1.into())?, &columns.amax(-1)?)?;
        c.same(&norm((-1).into())?, &columns.amin(-1)?)?;
        c.same(&norm(f64::INFINITY.into())?, &rows.amax(-1)?)?;
        c.same(&norm(f64::NEG_INFINITY.into())?, &rows.amin(-1)?)?;
        c.same(&norm(2.into())?, &x.svdvals(..)?.amax(-1)?)?;
        c.same(&norm((-2).into())?, &x.svdvals(..)?.amin(-1)?)
    }),
    ("matrix_power", |c| {
        let x = c.square.mul(0.5)?;
        let cube = x.matmul(&x)?.matmul(&x)?;
        c.same(&x.matrix_power(3, ..)?, &cube)?;
        c.same(&x.matrix_power(0, ..)?, &c.one_like(&x)?)?;
        c.same(&x.matrix_power(-3, ..)?.matmul(&cube)?, &c.one_like(&x)?)
    }),
    ("matrix_exp", |c| {
        let x = c.definite.mul(0.3)?;
        let (values, v) = x.eigh(..)?;
        c.same(&x.matrix_exp(..)?, &v.mul(values.exp().unsqueeze(-2)?)?.matmul(&v.mt()?)?)?;
        // By its series.
        let x = c.square.mul(0.2)?;
        let (mut sum, mut term) = (c.one_like(&x)?.contiguous()?, c.one_like(&x)?.contiguous()?);
        for k in 1..30 {
            term = term.matmul(&x)?.div(k as f64)?;
            sum = sum.add(&term)?;
        }
        c.same(&x.matrix_exp(..)?, &sum)
    }),
    ("vander", |c| {
        let x = c.right.select(-1, 0)?;
        let y = x.vander_with(VanderOptions::new().n(4))?;
        for k in 0..4 {
            c.same(&y.select(-1, k)?, &x.pow(k as i64)?)?;
        }
        Ok(())
    }),
];

#[test]
fn what_holds_for_each_method() -> Result<()> {
    manual_seed(0);
    for n in [0, 1, 2, 3, 5, 8, 40] {
        for batch in [&[] as &[usize], &[3], &[2, 1], &[0]] {
            for dtype in [DType::F64, DType::F32] {
                let case = Case::new(n, batch, dtype)?;
                for (name, check) in CHECKS {
                    check(&case).unwrap_or_else(|error| {
                        panic!("{name} of {n} rows, batch {batch:?}, {dtype}: {error}")
                    });
                }
            }
        }
    }
    Ok(())
}

#[test]
fn every_method_is_tested() {
    let tested: BTreeSet<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
    let all = ops::all().filter(|op| namegrad_tests::LINALG.contains(&op.info.table));
    let all: BTreeSet<&str> = all.map(|op| op.info.name).collect();
    assert_eq!(tested, all);
}

/// One matrix is computed by one thread, and so are the same matrices in a batch.
#[test]
fn results_do_not_depend_on_the_number_of_threads() -> Result<()> {
    manual_seed(1);
    let pools = [1, 4].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    for sizes in [[300, 6, 6], [5, 90, 90]] {
        let x = TensorOptions::new().dtype(DType::F64).randn(sizes)?;
        let all = || -> Result<Vec<Tensor>> {
            let definite = x.matmul(&x.mt()?)?;
            let ((u, s, vt), (values, v), (q, r)) = (x.svd(..)?, definite.eigh(..)?, x.qr(..)?);
            Ok(vec![
                u,
                s,
                vt,
                values,
                v,
                q,
                r,
                x.inv(..)?,
                x.det(..)?,
                definite.cholesky(..)?,
                x.eigvals(..)?,
            ])
        };
        let [one, four] = pools.each_ref().map(|pool| pool.install(all));
        for (one, four) in one?.iter().zip(&four?) {
            assert!(one.equal(four)?);
        }
    }
    Ok(())
}
