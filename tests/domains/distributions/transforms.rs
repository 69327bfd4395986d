//! Transforms: their inverses, their slopes against Jacobians, and the distributions that they make.

use super::table::{f64s, seeded};
use namegrad::autograd::functional::jacobian;
use namegrad::distributions::{Exponential, *};
use namegrad::prelude::*;

fn boxed(of: impl Transform) -> Box<dyn Transform> {
    Box::new(of)
}

/// Functions of one element, with points of their domain.
fn elementwise() -> Vec<(Box<dyn Transform>, [f64; 3])> {
    let any = [-1.3, 0.2, 2.0];
    vec![
        (boxed(AffineTransform::new(0.5, f64s([2.0, -0.3, 1.0])).unwrap()), any),
        (boxed(ExpTransform), any),
        (boxed(SigmoidTransform), any),
        (boxed(TanhTransform), any),
        (boxed(SoftplusTransform), any),
        (boxed(PowerTransform::new(f64s([2.0, 0.5, -1.0])).unwrap()), [0.3, 1.5, 2.0]),
        (boxed(CumulativeDistributionTransform::new(Normal::new(f64s(0.5), 2.0).unwrap())), any),
        (
            boxed(ComposeTransform::new([
                boxed(ExpTransform),
                boxed(AffineTransform::new(1.0, 2.0).unwrap()),
            ])),
            any,
        ),
        (boxed(CatTransform::new([(boxed(ExpTransform), 1), (boxed(TanhTransform), 2)], -1)), any),
        (
            boxed(StackTransform::new(
                [boxed(ExpTransform), boxed(TanhTransform), boxed(SoftplusTransform)],
                -1,
            )),
            any,
        ),
    ]
}

/// The Jacobian of a function of one tensor, without names.
fn slopes_of(x: &Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    jacobian(|x| f(&x[0]), &[x])?.remove(0).rename(None)
}

fn assert_close(what: &str, got: &Tensor, want: &Tensor) {
    let close = got.allclose_with(want, IscloseOptions::new().rtol(1e-9).atol(1e-11)).unwrap();
    assert!(close, "{what}: {got}, expected {want}");
}

#[test]
fn functions_of_elements() -> Result<()> {
    for (transform, x) in elementwise() {
        let (what, x) = (format!("{transform:?}"), f64s(x));
        let y = transform.forward(&x)?;
        assert_close(&what, &transform.inverse(&y)?, &x);
        let slopes = slopes_of(&x, |x| transform.forward(x))?;
        let diagonal = slopes.diagonal(0, 1)?;
        assert_close(&what, &transform.log_abs_det_jacobian(&x, &y)?, &diagonal.abs()?.log()?);
        if let Ok(sign) = transform.sign() {
            assert!(sign.mul(&diagonal)?.gt(0.0)?.all(..)?.item::<bool>()?, "{what}");
        }
        assert_eq!(transform.forward_shape(&x.shape())?, x.shape());
        transform.codomain().check("test", "y", &y)?;
    }
    Ok(())
}

/// The logarithm of the determinant of a square matrix, from its QR decomposition.
fn log_det(x: &Tensor) -> Result<Tensor> {
    let (_, r) = x.qr(..)?;
    r.diagonal(-2, -1)?.abs()?.log()?.sum(-1)
}

/// Functions of vectors: the determinant of the Jacobian in coordinates that are free.
#[test]
fn functions_of_vectors() -> Result<()> {
    let x = f64s([0.3, -1.0, 0.8]);
    let stick = StickBreakingTransform::new(-1);
    let y = stick.forward(&x)?;
    assert!((y.sum(..)?.item::<f64>()? - 1.0).abs() < 1e-15);
    assert_close("stick", &stick.inverse(&y)?, &x);
    let slopes = slopes_of(&x, |x| stick.forward(x)?.narrow(-1, 0, 3))?;
    assert_close("stick", &stick.log_abs_det_jacobian(&x, &y)?, &log_det(&slopes)?);

    let corr = CorrCholeskyTransform::new(-1, [-2, -1]);
    let y = corr.forward(&x)?;
    corr.codomain().check("test", "y", &y)?;
    assert_close("correlations", &corr.inverse(&y)?, &x);
    let below = Tensor::new([3, 6, 7])?;
    let slopes = slopes_of(&x, |x| corr.forward(x)?.reshape([9])?.index_select(&below, 0))?;
    assert_close("correlations", &corr.log_abs_det_jacobian(&x, &y)?, &log_det(&slopes)?);
    assert_eq!(corr.forward(&f64s([1.0, 2.0])).unwrap_err().kind(), ErrorKind::Shape);

    let x = f64s([[0.3, 0.0], [-1.0, 0.8]]);
    let lower = LowerCholeskyTransform::new([-2, -1]);
    let y = lower.forward(&x)?;
    assert_close("factor", &lower.inverse(&y)?, &x);
    assert_close("factor", &lower.log_abs_det_jacobian(&x, &y)?, &f64s(1.1));
    let error = SoftmaxTransform::new(-1).log_abs_det_jacobian(&x, &y).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    Ok(())
}

/// Dims of vectors are found by name, and stay where they are.
#[test]
fn dims_by_name() -> Result<()> {
    let x = f64s([[0.3, -1.0], [0.8, 0.1]]).refine_names(["class", "N"])?;
    let stick = StickBreakingTransform::new("class");
    let y = stick.forward(&x)?;
    assert_eq!(y.shape().to_string(), "[class=3, N=2]");
    assert_close("stick", &stick.inverse(&y)?, &x);
    assert_eq!(stick.log_abs_det_jacobian(&x, &y)?.shape().to_string(), "[N=2]");
    Ok(())
}

/// A transformed normal distribution is the log-normal one, with its draws.
#[test]
fn a_transformed_normal() -> Result<()> {
    let (loc, scale) = (f64s([0.2, -0.5]), f64s([0.4, 1.2]));
    let of = Transformed::new(Normal::new(&loc, &scale)?, [boxed(ExpTransform)])?;
    let want = LogNormal::new(&loc, &scale)?;
    let x = seeded(9, || of.rsample([3]))?;
    assert!(seeded(9, || want.rsample([3]))?.equal(&x)?);
    assert_close("log_prob", &of.log_prob(&x)?, &want.log_prob(&x)?);
    assert_close("cdf", &of.cdf(&x)?, &want.cdf(&x)?);
    assert_close("icdf", &of.icdf(&f64s([0.1, 0.8]))?, &want.icdf(&f64s([0.1, 0.8]))?);
    let error = of.log_prob(&f64s([-1.0, 1.0])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    // decreasing: the ranks turn round
    let down = Transformed::new(Exponential::new(f64s(1.0))?, [boxed(AffineTransform::new(0.0, -1.0)?)])?;
    assert_close("cdf", &down.cdf(&f64s(-2.0))?, &f64s((-2f64).exp()));
    assert_close("icdf", &down.icdf(&f64s((-2f64).exp()))?, &f64s(-2.0));
    Ok(())
}

/// A transform of vectors takes batch dims for its events, by name.
#[test]
fn transforms_of_vectors_make_event_dims() -> Result<()> {
    let loc = Tensor::zeros([("class", 2), ("N", 3)])?.to(DType::F64)?;
    let of = Transformed::new(Normal::new(&loc, 1.0)?, [boxed(StickBreakingTransform::new("class"))])?;
    assert_eq!(
        (of.batch_shape().to_string(), of.event_shape().to_string()),
        ("[N=3]".into(), "[class=3]".into())
    );
    let x = of.sample([("draw", 4)])?;
    assert_eq!(of.log_prob(&x)?.shape().to_string(), "[draw=4, N=3]");

    let pairs = Normal::new(Tensor::zeros([("N", 2), ("pair", 3)])?.to(DType::F64)?, 1.0)?;
    let of = Transformed::new(pairs, [boxed(CorrCholeskyTransform::new("pair", ["row", "col"]))])?;
    assert_eq!(of.event_shape().to_string(), "[row=3, col=3]");
    assert_eq!(of.log_prob(&of.sample([("draw", 4)])?)?.shape().to_string(), "[draw=4, N=2]");

    let pixels = Normal::new(Tensor::zeros([("N", 2), ("H", 2), ("W", 3)])?.to(DType::F64)?, 1.0)?;
    let flat = ReshapeTransform::new([("H", 2), ("W", 3)], [("pixel", 6)])?;
    let of = Transformed::new(pixels.clone(), [boxed(flat)])?;
    let x = of.sample(())?;
    assert_eq!(x.shape().to_string(), "[N=2, pixel=6]");
    let want = pixels.log_prob(&x.unflatten("pixel", [("H", 2), ("W", 3)])?)?.sum(["H", "W"])?;
    assert_close("reshaped", &of.log_prob(&x)?, &want);

    let of = Transformed::new(pixels.clone(), [boxed(IndependentTransform::new(ExpTransform, ["W"]))])?;
    assert_eq!(
        (of.batch_shape().to_string(), of.event_shape().to_string()),
        ("[N=2, H=2]".into(), "[W=3]".into())
    );
    let x = of.sample(())?;
    let want = pixels.log_prob(&x.log()?)?.sub(x.log()?)?.sum("W")?;
    assert_close("independent", &of.log_prob(&x)?, &want);
    Ok(())
}
