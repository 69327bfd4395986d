//! Names of matrices: what they map from and to, and dims in any order.

use namegrad::ops;
use namegrad::prelude::*;

fn random(shape: &[(&str, usize)]) -> Result<Tensor> {
    TensorOptions::new().dtype(DType::F64).randn(shape.to_vec())
}

fn text(x: &Tensor) -> String {
    x.shape().to_string()
}

#[test]
fn an_inverse_maps_back() -> Result<()> {
    let a = random(&[("N", 2), ("out", 3), ("in", 3)])?;
    assert_eq!(text(&a.inv(["out", "in"])?), "[N=2, in=3, out=3]");
    assert_eq!(text(&a.pinv(["out", "in"])?), "[N=2, in=3, out=3]");
    let b = random(&[("N", 2), ("out", 3), ("K", 4)])?;
    assert_eq!(text(&a.solve(&b, ["out", "in"])?), "[N=2, in=3, K=4]");
    assert_eq!(text(&a.solve(&b.select("K", 0)?, ["out", "in"])?), "[N=2, in=3]");
    assert_eq!(text(&a.lstsq(&b, ["out", "in"])?.0), "[N=2, in=3, K=4]");
    let left = random(&[("N", 2), ("K", 4), ("in", 3)])?;
    let solved = a.solve_with(&left, ["out", "in"], SolveOptions::new().left(false))?;
    assert_eq!(text(&solved), "[N=2, K=4, out=3]");
    assert!(solved.matmul(&a)?.allclose(&left)?);
    let (factors, pivots) = a.lu_factor(["out", "in"])?;
    assert_eq!((text(&factors), text(&pivots)), ("[N=2, out=3, in=3]".into(), "[N=2, ?=3]".into()));
    assert_eq!(text(&factors.lu_solve(&pivots, &b, ["out", "in"])?), "[N=2, in=3, K=4]");
    Ok(())
}

#[test]
fn new_dims_have_the_name_that_is_given() -> Result<()> {
    let a = random(&[("row", 3), ("N", 2), ("col", 4)])?;
    let (u, s, vt) = a.svd_with(["row", "col"], SvdOptions::new().full_matrices(false).name("rank"))?;
    let shapes = ["[row=3, N=2, rank=3]", "[N=2, rank=3]", "[rank=3, N=2, col=4]"];
    assert_eq!([text(&u), text(&s), text(&vt)], shapes);
    let (q, r) = a.qr_with(["row", "col"], QrOptions::new().name("rank"))?;
    assert_eq!([text(&q), text(&r)], ["[row=3, N=2, rank=3]", "[rank=3, N=2, col=4]"]);
    let b = a.narrow("col", 0, 3)?;
    let (values, v) = b.eigh_with(["row", "col"], EighOptions::new().name("mode"))?;
    assert_eq!([text(&values), text(&v)], ["[N=2, mode=3]", "[row=3, N=2, mode=3]"]);
    let error = a.svd_with(["row", "col"], SvdOptions::new().name("N")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DuplicateName);
    Ok(())
}

/// Dims by name are found wherever they are: the result is that of the last two dims, permuted.
#[test]
fn the_dims_can_be_in_any_order() -> Result<()> {
    manual_seed(3);
    let names = ["M", "N", "row", "col"];
    let x = random(&[("M", 2), ("N", 3), ("row", 3), ("col", 3)])?;
    let x = x.mul(0.1)?.add(Tensor::eye(3, 3)?.to(DType::F64)?.rename(["row", "col"])?)?;
    let methods =
        ["inv", "det", "slogdet", "qr", "lu", "svdvals", "pinv", "matrix_exp", "matrix_norm", "cond"];
    for name in methods {
        let op = ops::find(name)?;
        let by_name = [("dim", ["row", "col"].into())];
        let plain = op.call(&[&x], &by_name)?;
        for order in [["row", "M", "col", "N"], ["col", "N", "row", "M"], ["N", "col", "M", "row"]] {
            let moved = op.call(&[&x.align_to(order)?], &by_name)?;
            for (plain, moved) in plain.iter().zip(&moved) {
                let known: Vec<&str> = names
                    .into_iter()
                    .filter(|name| {
                        plain
                            .names()
                            .iter(plain.ndim())
                            .any(|own| own.is_some_and(|own| own.as_str() == *name))
                    })
                    .collect();
                assert!(moved.numel() == plain.numel(), "{name}");
                if known.len() == plain.ndim() {
                    assert!(
                        moved.align_to(&known[..])?.allclose(&plain.align_to(&known[..])?)?,
                        "{name} in {order:?}"
                    );
                }
            }
        }
    }
    let b = random(&[("M", 2), ("N", 3), ("row", 3), ("K", 2)])?;
    let plain = x.solve(&b, ["row", "col"])?;
    let moved =
        x.align_to(["col", "M", "row", "N"])?.solve(&b.align_to(["M", "N", "K", "row"])?, ["row", "col"])?;
    assert!(moved.align_to(["M", "N", "col", "K"])?.allclose(&plain)?);
    Ok(())
}

#[test]
fn names_that_do_not_meet_are_errors() -> Result<()> {
    let a = random(&[("N", 2), ("out", 3), ("in", 3)])?;
    let kind = |b: &[(&str, usize)]| {
        a.solve(&random(b)?, ["out", "in"]).map(|x| text(&x)).map_err(|error| error.kind()).pipe()
    };
    assert_eq!(kind(&[("N", 2), ("other", 3), ("K", 4)])?, Err(ErrorKind::NameMismatch));
    assert_eq!(kind(&[("M", 2), ("out", 3), ("K", 4)])?, Err(ErrorKind::NameMismatch));
    assert_eq!(kind(&[("K", 3), ("N", 2), ("out", 3), ("L", 1)])?, Ok("[K=3, N=2, in=3, L=1]".into()));
    assert_eq!(kind(&[("N", 2), ("M", 2), ("out", 3), ("L", 1)])?, Err(ErrorKind::NameMismatch));
    assert_eq!(kind(&[("N", 2), ("out", 3), ("in", 4)])?, Err(ErrorKind::DuplicateName));
    Ok(())
}

/// A result in an `Ok`, so that `?` is for other errors.
trait Pipe: Sized {
    fn pipe(self) -> Result<Self> {
        Ok(self)
    }
}
impl<T, E> Pipe for std::result::Result<T, E> {}
