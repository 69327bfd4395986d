//! Errors: which matrix of a batch, and what does not fit.

use namegrad::ops;
use namegrad::prelude::*;

/// Two by three matrices `[[1, 0], [0, k]]`, of which that at N=1, M=2 is singular.
fn batch() -> Result<Tensor> {
    let last = Tensor::new([[1.0, 2.0, 3.0], [1.0, 2.0, 0.0]])?.to(DType::F64)?;
    Tensor::stack(&[&last.ones_like()?, &last], -1).diag_embed()?.rename(["N", "M", "row", "col"])
}

#[test]
fn an_error_says_which_matrix() -> Result<()> {
    let x = batch()?;
    let rows = ["row", "col"];
    let b = TensorOptions::new().dtype(DType::F64).ones([("row", 2), ("K", 1)])?;
    let errors = [
        x.inv(rows).unwrap_err(),
        x.solve(&b, rows).unwrap_err(),
        x.lu_factor(rows).unwrap_err(),
        x.matrix_power(-2, rows).unwrap_err(),
        x.cholesky(rows).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Value);
        assert!(error.message().contains("the matrix at N=1, M=2 is"), "{error}");
        assert_eq!(error.location().file(), file!());
    }
    let error = x.rename(None)?.permute([2, 0, 3, 1])?.inv([0, 2]).unwrap_err();
    assert!(error.message().contains("the matrix at dim 1=1, dim 3=2 is singular"), "{error}");
    assert!(Tensor::zeros([2, 2])?.inv(..).unwrap_err().message().starts_with("the matrix is singular"));
    for infos in [x.inv_ex(rows)?.1, x.lu_factor_ex(rows)?.2, x.cholesky_ex(rows)?.1, x.solve_ex(&b, rows)?.1]
    {
        assert_eq!(infos.shape().to_string(), "[N=2, M=3]");
        assert_eq!(infos.to_vec::<i32>()?, [0, 0, 0, 0, 0, 2]);
    }
    Ok(())
}

/// Algorithms that would not end on numbers that are not finite refuse them; the others carry them on.
#[test]
fn infinite_elements_and_nan() -> Result<()> {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for n in [1, 2, 40] {
            let mut x = TensorOptions::new().dtype(DType::F64).eye(n, n)?;
            x = x.masked_fill(&x.eq(1)?, bad)?;
            let (x, b) = (x, TensorOptions::new().dtype(DType::F64).ones([n, 1])?);
            for name in ["svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "pinv", "matrix_rank"] {
                let error = ops::call(name, &[&x], &[]).unwrap_err();
                assert!(error.message().contains("infinite or NaN"), "{name}: {error}");
            }
            for name in ["det", "slogdet", "logdet", "qr", "lu", "matrix_exp", "inv_ex", "cholesky_ex"] {
                ops::call(name, &[&x], &[])?;
            }
            x.solve_ex(&b, ..)?;
            assert!(x.cholesky(..).is_err() || bad == f64::INFINITY, "{bad} {n}");
        }
    }
    Ok(())
}

#[test]
fn what_does_not_fit() -> Result<()> {
    let (wide, vector) = (Tensor::ones([2, 3])?, Tensor::ones([3])?);
    let square = [
        "solve",
        "inv",
        "det",
        "slogdet",
        "logdet",
        "cholesky",
        "cholesky_inverse",
        "eigh",
        "eigvalsh",
        "eig",
        "eigvals",
        "matrix_exp",
        "inv_ex",
        "cholesky_ex",
    ];
    for name in square {
        let tensors = if name == "solve" { vec![&wide, &wide] } else { vec![&wide] };
        assert_eq!(ops::call(name, &tensors, &[]).unwrap_err().kind(), ErrorKind::Shape, "{name}");
    }
    for op in ops::all()
        .filter(|op| ["factor", "eigen", "svd"].contains(&op.info.table) && op.info.tensors.len() == 1)
    {
        let name = op.info.name;
        assert_eq!(op.call(&[&vector], &[]).unwrap_err().kind(), ErrorKind::Shape, "{name}");
        assert_eq!(op.call(&[&vector.select(0, 0)?], &[]).unwrap_err().kind(), ErrorKind::Shape, "{name}");
        for dtype in [DType::I64, DType::Bool, DType::F16, DType::BF16] {
            let error = op.call(&[&Tensor::eye(2, 2)?.to(dtype)?], &[]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::DType, "{name} of {dtype}");
        }
    }
    assert_eq!(wide.svd([0, 0]).unwrap_err().kind(), ErrorKind::DimRange);
    assert_eq!(wide.svd([0]).unwrap_err().kind(), ErrorKind::DimRange);
    assert_eq!(wide.svd(["row", "col"]).unwrap_err().kind(), ErrorKind::NameNotFound);
    assert_eq!(
        wide.matrix_norm_with(.., MatrixNormOptions::new().ord(3)).unwrap_err().kind(),
        ErrorKind::Value
    );
    Ok(())
}

/// Equal singular values: the gradient of the values is finite, and that of the vectors is not.
#[test]
fn equal_singular_values() -> Result<()> {
    let x = TensorOptions::new().dtype(DType::F64).eye(3, 3)?.requiring_grad()?;
    x.svdvals(..)?.sum(..)?.backward()?;
    assert!(x.grad().unwrap().allclose(&TensorOptions::new().dtype(DType::F64).eye(3, 3)?)?);
    x.zero_grad();
    x.svd(..)?.0.sum(..)?.backward()?;
    assert!(!x.grad().unwrap().isfinite().all(..)?.item::<bool>()?);
    Ok(())
}

/// The gradient of the determinant of a singular matrix has the cofactors.
#[test]
fn the_determinant_of_a_singular_matrix() -> Result<()> {
    let x = Tensor::new([[1.0, 2.0], [2.0, 4.0]])?.to(DType::F64)?.requiring_grad()?;
    let det = x.det(..)?;
    assert_eq!(det.item::<f64>()?, 0.0);
    det.backward()?;
    let cofactors = Tensor::new([[4.0, -2.0], [-2.0, 1.0]])?.to(DType::F64)?;
    assert!(x.grad().unwrap().allclose(&cofactors)?);
    Ok(())
}

/// Tolerances of each matrix.
#[test]
fn tolerances_as_tensors() -> Result<()> {
    let x = Tensor::new([[1.0, 0.0], [0.0, 0.01]])?.expand([("N", 2), ("row", 2), ("col", 2)])?;
    let atol = Tensor::new([0.0, 0.1])?;
    let dims = ["row", "col"];
    let rank = |tolerance: &Tensor| x.matrix_rank_with(dims, MatrixRankOptions::new().atol(tolerance));
    assert_eq!(rank(&atol)?.to_vec::<i64>()?, [2, 1]);
    assert_eq!(rank(&atol.refine_names(["N"])?)?.shape().to_string(), "[N=2]");
    assert_eq!(rank(&atol.refine_names(["M"])?).unwrap_err().kind(), ErrorKind::NameMismatch);
    assert_eq!(rank(&Tensor::zeros([3])?).unwrap_err().kind(), ErrorKind::Shape);
    let inverse = x.pinv_with(dims, PinvOptions::new().rtol(&atol))?;
    assert!(inverse.item_at::<f64>([0, 1, 1])? > 99.0 && inverse.item_at::<f64>([1, 1, 1])?.abs() < 1e-6);
    Ok(())
}
