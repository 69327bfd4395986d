//! Matrix decompositions and systems of linear equations.

use crate::check::{numbers, values};
use crate::plain::Plain;
use namegrad::core::Triangle;
use namegrad::prelude::*;

/// A matrix of a batch, as rows.
fn matrix(x: &Plain, batch: &[usize]) -> Vec<Vec<f64>> {
    let [.., rows, cols] = x.sizes[..] else { unreachable!("a matrix") };
    let at = |row, col| x.at(&[batch, &[row, col]].concat());
    (0..rows).map(|row| (0..cols).map(|col| at(row, col)).collect()).collect()
}

fn product(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let entry = |row: &[f64], col: usize| row.iter().zip(b).map(|(x, b)| x * b[col]).sum();
    a.iter().map(|row| (0..b[0].len()).map(|col| entry(row, col)).collect()).collect()
}

/// `q` and `r` from full reflections `I - 2 v vᵀ / vᵀv`, one for each column.
fn factors(x: &[Vec<f64>]) -> [Vec<Vec<f64>>; 2] {
    let (m, n) = (x.len(), x[0].len());
    let mut q: Vec<Vec<f64>> = (0..m).map(|i| (0..m).map(|j| f64::from(i == j)).collect()).collect();
    let mut r = x.to_vec();
    for i in 0..m.min(n) {
        let norm = (i..m).map(|row| r[row][i] * r[row][i]).sum::<f64>().sqrt();
        let mut v: Vec<f64> = (0..m).map(|row| if row < i { 0.0 } else { r[row][i] }).collect();
        v[i] += if r[i][i] < 0.0 { -norm } else { norm };
        let square: f64 = v.iter().map(|v| v * v).sum();
        if square == 0.0 || (i + 1..m).all(|row| r[row][i] == 0.0) {
            continue;
        }
        let entry = |row: usize, col: usize| f64::from(row == col) - 2.0 * v[row] * v[col] / square;
        let reflection: Vec<Vec<f64>> =
            (0..m).map(|row| (0..m).map(|col| entry(row, col)).collect()).collect();
        r = product(&reflection, &r);
        q = product(&q, &reflection);
    }
    [q, r]
}

cases! {
    qr {
        (x: values("A=3 B=2")) q => "A=3 ?=2" floats, |i| factors(&matrix(x, &[]))[0][i[0]][i[1]], scale 3.0;
        (x: values("A=3 B=2")) r => "?=2 B=2" floats, |i| if i[0] > i[1] { 0.0 } else { factors(&matrix(x, &[]))[1][i[0]][i[1]] }, scale 9.0;
        (x: values("A=2 B=4")) q => "A=2 ?=2" floats, |i| factors(&matrix(x, &[]))[0][i[0]][i[1]], scale 3.0;
        (x: values("A=2 B=4")) r => "?=2 B=4" floats, |i| if i[0] > i[1] { 0.0 } else { factors(&matrix(x, &[]))[1][i[0]][i[1]] }, scale 9.0;
        (x: values("N=2 A=3 B=3")) q => "N=2 A=3 ?=3" floats, |i| factors(&matrix(x, &i[..1]))[0][i[1]][i[2]], scale 3.0;
        (x: values("A=0 B=3")) r => "?=0 B=3" floats, |i| unreachable!();
    }
    solve_triangular {
        (x: numbers("A=2 B=2", [2.0, 9.0, 1.0, -1.0]), other: values("B=2 C=3"); false) => "B=2 C=3" floats, |i| {
            let first = other.at(&[0, i[1]]) / 2.0;
            if i[0] == 0 { first } else { (other.at(&[1, i[1]]) - x.at(&[1, 0]) * first) / -1.0 }
        }, scale 6.0;
        (x: numbers("A=2 B=2", [2.0, 1.0, 9.0, -1.0]), other: values("C=3 B=2"); true, false) => "C=3 A=2" floats, |i| {
            let first = other.at(&[i[0], 0]) / 2.0;
            if i[1] == 0 { first } else { (other.at(&[i[0], 1]) - x.at(&[0, 1]) * first) / -1.0 }
        }, scale 6.0;
        (x: numbers("A=2 B=2", [7.0, 1.0, 9.0, 7.0]), other: values("N=2 B=2 C=1"); true, true, true) => "N=2 B=2 C=1" floats, |i| {
            let last = other.at(&[i[0], 1, 0]);
            if i[1] == 1 { last } else { other.at(&[i[0], 0, 0]) - x.at(&[0, 1]) * last }
        }, scale 6.0;
    }
}

#[test]
fn the_factors_of_large_matrices() -> Result<()> {
    manual_seed(0);
    for [m, n] in [[40, 40], [70, 30], [30, 70], [1, 5], [5, 1]] {
        let x = Tensor::randn([2, m, n])?.to(DType::F64)?;
        let (q, r) = x.qr(..)?;
        assert!(q.matmul(&r)?.allclose(&x)?, "{m} by {n}");
        let identity = TensorOptions::new().dtype(DType::F64).eye(m.min(n), m.min(n))?;
        let one = q.mt()?.matmul(&q)?.sub(&identity)?.abs()?.amax(..)?.item::<f64>()?;
        assert!(one < 1e-13, "{m} by {n}: the columns are {one} from orthonormal");
        assert!(r.equal(&r.triu()?)?, "{m} by {n}: the lower triangle is zero");
    }
    Ok(())
}

#[test]
fn columns_that_overflow_when_squared() -> Result<()> {
    for size in [1e200, 1e-200] {
        let (_, r) = Tensor::new([[3.0, 0.0], [4.0, 1.0]])?.to(DType::F64)?.mul(size)?.qr(..)?;
        let found = r.select(0, 0)?.select(0, 0)?.item::<f64>()? / size;
        assert!((found + 5.0).abs() < 1e-12, "{found}");
    }
    Ok(())
}

#[test]
fn what_does_not_fit() {
    let x = Tensor::ones([2, 3]).unwrap();
    assert_eq!(Tensor::ones([3]).unwrap().qr(..).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(Tensor::new([[1_i64]]).unwrap().qr(..).unwrap_err().kind(), ErrorKind::DType);
    assert_eq!(x.solve_triangular(&x, Triangle::Upper).unwrap_err().kind(), ErrorKind::Shape);
}

/// The further columns of a complete `q` are not a function of the matrix.
#[test]
fn a_complete_q_of_a_tall_matrix_has_no_gradient() -> Result<()> {
    let complete = |rows: usize| -> Result<()> {
        let x = Tensor::eye(rows, 2)?.requiring_grad()?;
        let (q, r) = x.qr_with(.., QrOptions::new().mode(QrMode::Complete))?;
        assert_eq!(q.sizes(), [rows, rows]);
        r.sum(..)?.backward()
    };
    complete(2)?;
    assert_eq!(complete(3).unwrap_err().kind(), ErrorKind::Autograd);
    Ok(())
}

/// The rows and columns of a triangle can be any dims, and so can those of its gradient.
#[test]
fn a_triangle_in_other_dims() -> Result<()> {
    let solved = |dims: bool, left: bool| -> Result<[Tensor; 3]> {
        manual_seed(1);
        let x = Tensor::randn([3, 2, 3])?
            .add(Tensor::eye(3, 3)?.unsqueeze(1)?)?
            .to(DType::F64)?
            .requiring_grad()?; // [col, N, row]
        let b = Tensor::randn([4, 2, 3, 3])?.to(DType::F64)?.requiring_grad()?;
        let options = SolveTriangularOptions::new().left(left);
        let y = match dims {
            true => {
                let x = x.rename(["col", "N", "row"])?;
                x.solve_triangular_with(&b, Triangle::Lower, options.dim(["row", "col"]))?
            }
            false => x.permute([1, 2, 0])?.solve_triangular_with(&b, Triangle::Lower, options)?,
        };
        y.sin().sum(..)?.backward()?;
        Ok([y.rename(None)?, x.grad().expect("a gradient"), b.grad().expect("a gradient")])
    };
    for left in [true, false] {
        for (one, other) in solved(true, left)?.iter().zip(&solved(false, left)?) {
            assert!(one.allclose(other)?, "{one} and {other}");
        }
    }
    Ok(())
}

/// In `Σ_j a[i, j] y[j, k] = b[i, k]`, the rows of the solution are the columns of the triangle.
#[test]
fn a_solution_has_the_names_of_the_equation() -> Result<()> {
    let (a, b) = (Tensor::new([[2.0, 1.0], [0.0, 4.0]])?, Tensor::new([[4.0, 1.0], [8.0, 2.0]])?);
    let solved = |x: [Option<&str>; 2], left: bool| -> Result<String> {
        let (x, b) = (a.rename(x)?, b.rename(["I", "K"])?);
        let y = x.solve_triangular_with(&b, Triangle::Upper, SolveTriangularOptions::new().left(left))?;
        Ok(y.shape().to_string())
    };
    for rows in [Some("I"), Some("P"), None] {
        assert_eq!(solved([rows, Some("J")], true)?, "[J=2, K=2]");
    }
    assert_eq!(solved([Some("K"), Some("J")], true)?, "[J=2, K=2]");
    assert_eq!(solved([Some("I"), None], true)?, "[?=2, K=2]");
    assert_eq!(solved([None, None], true)?, "[I=2, K=2]");
    for columns in [Some("K"), Some("P"), None] {
        assert_eq!(solved([Some("J"), columns], false)?, "[I=2, J=2]");
    }
    assert_eq!(solved([Some("I"), Some("K")], true).unwrap_err().kind(), ErrorKind::DuplicateName);
    assert!(namegrad::names::strict(|| solved([Some("P"), Some("J")], true)).is_err());
    Ok(())
}
