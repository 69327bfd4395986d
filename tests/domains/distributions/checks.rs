//! Parameters and values that are not allowed.

use super::table::{batch, f64s, kinds};
use namegrad::distributions::{Exponential, *};
use namegrad::prelude::*;

fn assert_value(error: Error, text: &str) {
    assert_eq!(error.kind(), ErrorKind::Value, "{error}");
    assert!(error.to_string().starts_with(text), "{error}");
}

/// The message has the parameter, the element by its position, its value and the condition.
#[test]
fn parameters() -> Result<()> {
    let scale = batch([1.0, 2.0, -0.5]);
    let error = Normal::new(0.0, &scale).unwrap_err();
    assert_eq!(error.location().line(), line!() - 1);
    assert_value(error, "Normal: scale must be positive, but scale[N: 2] is -0.5 (at ");
    assert_value(Normal::new(f64::NAN, 1.0).unwrap_err(), "Normal: loc must be a number, but loc is NaN");
    assert_value(
        Bernoulli::new(Tensor::new([[0.5, 1.5]])?).unwrap_err(),
        "Bernoulli: probs must be between 0 and 1, but probs[0, 1] is 1.5",
    );
    assert_value(Uniform::new(1.0, 1.0).unwrap_err(), "Uniform: low must be less than 1, but low is 1");
    assert_value(
        Uniform::new(&scale, batch([2.0, 1.0, 0.0])).unwrap_err(),
        "Uniform: low must be less than the bound beside it, but low[N: 1] is 2",
    );
    let probs = f64s([[0.5, 0.5], [1.5, -0.5]]).refine_names(["N", "class"])?;
    assert_value(
        Categorical::new(&probs, "class").unwrap_err(),
        "Categorical: probs must be numbers that are not negative and not all 0, but probs[N: 1, class: 1] is -0.5",
    );
    assert_value(
        Categorical::new(probs.mul(0.0)?, "class").unwrap_err(),
        "Categorical: probs must be numbers that are not negative and not all 0, but 0 is the sum of probs[N: 0]",
    );
    assert_value(
        Geometric::new(0.0).unwrap_err(),
        "Geometric: probs must be above 0 and at most 1, but probs is 0",
    );
    assert_value(
        Binomial::new(2.5, 0.5).unwrap_err(),
        "Binomial: total_count must be a whole number that is not negative, but total_count is 2.5",
    );
    let matrix = f64s([[1.0, 2.0], [2.0, 1.0]]);
    let loc = f64s([0.0, 0.0]);
    let of = |matrix: &Tensor| MultivariateNormal::new(&loc, matrix, [-2, -1]).unwrap_err();
    assert_value(
        of(&matrix),
        "MultivariateNormal: covariance_matrix must be a symmetric positive definite matrix, but an eigenvalue",
    );
    assert!(
        of(&f64s([[1.0, 0.5], [0.25, 1.0]])).message().contains("but 0.25 and 0.5 are at mirrored places")
    );
    let error = MultivariateNormal::from_scale_tril(&loc, matrix, [-2, -1]).unwrap_err();
    assert!(error.message().contains("but 2 is above the diagonal of scale_tril"), "{error}");
    assert_value(
        Wishart::new(1.0, Tensor::eye(2, 2)?, [-2, -1]).unwrap_err(),
        "Wishart: df must be greater than 1, but df is 1",
    );
    Ok(())
}

/// Logits that no probabilities belong to.
#[test]
fn logits() -> Result<()> {
    let inf = f64::INFINITY;
    for bad in [f64::NAN, inf] {
        let logits = f64s([0.0, bad]);
        let text = format!("must be numbers below infinity and not all -inf, but logits[1] is {bad}");
        let errors = [
            Categorical::from_logits(&logits, -1).unwrap_err(),
            OneHotCategorical::from_logits(&logits, -1).unwrap_err(),
            Multinomial::from_logits(2, &logits, -1).unwrap_err(),
            RelaxedOneHotCategorical::from_logits(1.0, &logits, -1).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Value);
            assert!(error.message().contains(&text), "{error}");
        }
    }
    assert_value(
        Categorical::from_logits(f64s([[0.0, -inf], [-inf, -inf]]).refine_names(["N", "class"])?, "class")
            .unwrap_err(),
        "Categorical: logits must be numbers below infinity and not all -inf, but every number is -inf in \
         logits[N: 1]",
    );
    assert_value(Bernoulli::from_logits(f64::NAN).unwrap_err(), "Bernoulli: logits must be a number");
    Ok(())
}

/// Errors of what a distribution is made of have the caller's line and the name of the distribution.
#[test]
fn lines_of_composed_distributions() -> Result<()> {
    let normal = || Normal::new(Tensor::zeros([("k", 2)])?, 1.0);
    let weights = Categorical::new(Tensor::ones([("k", 3)])?, "k")?;
    let error = MixtureSameFamily::new(weights, normal()?).unwrap_err();
    assert_eq!((error.op(), error.location().line()), ("MixtureSameFamily", line!() - 1));
    assert!(error.location().file().ends_with("checks.rs"), "{error}");
    let affine: Box<dyn Transform> = Box::new(AffineTransform::new(Tensor::zeros([("M", 3)])?, 2.0)?);
    let error = Transformed::new(normal()?, [affine]).unwrap_err();
    assert_eq!((error.op(), error.location().line()), ("Transformed", line!() - 1));
    assert!(error.location().file().ends_with("checks.rs"), "{error}");
    let softmax: Box<dyn Transform> = Box::new(SoftmaxTransform::new("M"));
    let error = Transformed::new(normal()?, [softmax]).unwrap_err();
    assert_eq!((error.op(), error.location().line()), ("Transformed", line!() - 1));
    assert_eq!(error.kind(), ErrorKind::NameNotFound);
    Ok(())
}

/// Vectors without coordinates, and functions that lose their argument.
#[test]
fn degenerate_parameters() -> Result<()> {
    let none = || Tensor::zeros([0, 0]);
    assert_value(
        MultivariateNormal::new(Tensor::zeros([0])?, none()?, [-2, -1]).unwrap_err(),
        "MultivariateNormal: there are no coordinates: loc has no elements along their dim",
    );
    assert_value(Wishart::new(1.0, none()?, [-2, -1]).unwrap_err(), "Wishart: there are no coordinates");
    assert_value(
        AffineTransform::new(0.0, batch([1.0, 0.0, 2.0])).unwrap_err(),
        "AffineTransform: scale must not be 0, but scale[N: 1] is 0",
    );
    assert_value(
        PowerTransform::new(0.0).unwrap_err(),
        "PowerTransform: exponent must not be 0, but exponent is 0",
    );
    Ok(())
}

#[test]
fn values() -> Result<()> {
    let x = f64s([[1.0, 2.0], [-1.0, 3.0]]).refine_names(["draw", "N"])?;
    let of = Exponential::new(f64s([1.0, 2.0]).refine_names(["N"])?)?;
    let error = of.log_prob(&x).unwrap_err();
    assert_eq!((error.op(), error.location().line()), ("log_prob", line!() - 1));
    assert_value(error, "log_prob: Exponential: value must be at least 0, but value[draw: 1, N: 0] is -1");
    assert_value(of.cdf(&x).unwrap_err(), "cdf: Exponential: value must be at least 0");
    let of = Dirichlet::new(Tensor::ones([3])?, -1)?;
    assert_value(
        of.log_prob(&Tensor::new([0.25, 0.25, 0.25])?).unwrap_err(),
        "log_prob: Dirichlet: value must be probabilities whose sum is 1, but 0.75 is the sum of value",
    );
    let of = Binomial::new(3, Tensor::new([0.5, 0.5])?)?;
    assert_value(
        of.log_prob(&Tensor::new([1.0, 4.0])?).unwrap_err(),
        "log_prob: Binomial: value must be a whole number from 0 to 3, but value[1] is 4",
    );
    assert_value(
        Categorical::new(Tensor::ones([3])?, -1)?.log_prob(&Tensor::new(3)?).unwrap_err(),
        "log_prob: Categorical: value must be a whole number from 0 to 2, but value is 3",
    );
    assert_value(
        Normal::new(0.0, 1.0)?.log_prob(&Tensor::new(f64::NAN)?).unwrap_err(),
        "log_prob: Normal: value",
    );
    Ok(())
}

/// Without checks, anything goes through the formula; names and sizes are still checked.
#[test]
fn unchecked_arguments() -> Result<()> {
    let of = unchecked(|| HalfNormal::new(Tensor::new([1.0, -1.0])?))?;
    assert_eq!(of.log_prob(&Tensor::new([-1.0, 1.0])?)?.to_vec::<f32>()?[0], f32::NEG_INFINITY);
    assert_eq!(of.log_prob(&Tensor::zeros([3])?).unwrap_err().kind(), ErrorKind::Shape);
    assert!(HalfNormal::new(-1.0).is_err(), "checks are on again");
    // a distribution that was made with checks keeps them
    let of = Exponential::new(1.0)?;
    assert!(unchecked(|| of.log_prob(&Tensor::new(-1.0)?)).is_err());
    Ok(())
}

/// NaN is an error of a checked parameter, wherever it is.
#[test]
fn nan_in_any_parameter() {
    for kind in kinds().into_iter().filter(|kind| kind.name != "Transformed") {
        for number in 0..kind.parameters.len() {
            let mut parameters = kind.parameters.clone();
            parameters[number] = parameters[number].mul(f64::NAN).unwrap();
            let error = (kind.make)(&parameters).expect_err(kind.name);
            assert_eq!(error.kind(), ErrorKind::Value, "{}: {error}", kind.name);
        }
    }
}

/// Parameters are floats of one dtype: integers are an error with a repair, and half types work.
#[test]
fn dtypes() -> Result<()> {
    let error = Normal::new(Tensor::new([0, 1])?, 1.0).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::DType, "Normal"));
    assert_eq!(error.repair(), Some("loc.to(DType::F32)?"));
    assert_eq!(Normal::new(0.0, f64s([1.0]))?.loc.dtype(), DType::F64);
    assert_eq!(Normal::new(Tensor::new([0.0])?, f64s([1.0]))?.loc.dtype(), DType::F64);
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        for kind in kinds() {
            let parameters: Vec<Tensor> = kind.parameters.iter().map(|p| p.to(dtype).unwrap()).collect();
            // matrices of half types do not factor well
            let Ok(of) = (kind.make)(&parameters) else {
                assert!(parameters.iter().any(|p| p.ndim() == 3), "{} in {dtype}", kind.name);
                continue;
            };
            let x =
                of.sample([("draw", 3)]).unwrap_or_else(|error| panic!("{} in {dtype}: {error}", kind.name));
            let is_index = x.dtype() == DType::I64;
            assert!(is_index || x.dtype() == dtype, "{} in {dtype}: {}", kind.name, x.dtype());
            match unchecked(|| (kind.make)(&parameters))?.log_prob(&x) {
                Ok(log) => assert_eq!(log.dtype(), dtype, "{}", kind.name),
                Err(error) => assert!(kind.name.starts_with("Wishart"), "{}: {error}", kind.name),
            }
        }
    }
    Ok(())
}

/// Values of counts can be integers and bools.
#[test]
fn integers_as_values() -> Result<()> {
    let of = Bernoulli::new(f64s([0.25, 0.75]))?;
    let log = of.log_prob(&f64s([1.0, 0.0]))?;
    assert!(of.log_prob(&Tensor::new([1, 0])?)?.equal(&log)?);
    assert!(of.log_prob(&Tensor::new([true, false])?)?.equal(&log)?);
    Ok(())
}

/// Empty batches and events.
#[test]
fn sizes_of_zero() -> Result<()> {
    let none = Tensor::zeros([("N", 0)])?;
    let of = Normal::new(&none, 1.0)?;
    assert_eq!(of.log_prob(&of.sample([("draw", 3)])?)?.shape().to_string(), "[draw=3, N=0]");
    assert_eq!(Gamma::new(&none, 1.0)?.rsample(())?.numel(), 0);
    let error = Categorical::new(Tensor::zeros([("N", 2), ("class", 0)])?, "class").unwrap_err();
    assert_value(error, "Categorical: there are no classes");
    let of = Categorical::new(Tensor::ones([("N", 0), ("class", 2)])?, "class")?;
    assert_eq!(of.sample([("draw", 2)])?.shape().to_string(), "[draw=2, N=0]");
    assert_eq!(of.entropy()?.numel(), 0);
    Ok(())
}

/// What has no formula is an error that says so.
#[test]
fn missing_formulas() -> Result<()> {
    let poisson = Poisson::new(3.0)?;
    let error = poisson.entropy().unwrap_err();
    assert_eq!((error.kind(), error.location().line()), (ErrorKind::Unsupported, line!() - 1));
    assert!(error.to_string().starts_with("entropy: Poisson has no entropy in closed form"), "{error}");
    let error = poisson.rsample(()).unwrap_err();
    assert_eq!((error.kind(), error.location().line()), (ErrorKind::Unsupported, line!() - 1));
    assert_eq!(Normal::new(0.0, 1.0)?.enumerate_support(None).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(Beta::new(1.0, 1.0)?.cdf(&Tensor::new(0.5)?).unwrap_err().kind(), ErrorKind::Unsupported);
    let uneven = Binomial::new(Tensor::new([2.0, 3.0])?, 0.5)?;
    assert_eq!(uneven.enumerate_support(None).unwrap_err().kind(), ErrorKind::Unsupported);
    Ok(())
}

#[test]
fn counts_can_be_integers() -> Result<()> {
    let of = Binomial::new(Tensor::new([2, 3])?, f64s([0.5, 0.25]))?;
    assert_eq!((of.mean()?.dtype(), of.mean()?.to_vec::<f64>()?), (DType::F64, vec![1.0, 0.75]));
    assert_eq!(NegativeBinomial::new(Tensor::new(2)?, 0.5)?.mean()?.item::<f64>()?, 2.0);
    assert!(Binomial::new(2, Tensor::new([1])?).is_err());
    Ok(())
}

/// Dims in another order are called by their names, whatever their sizes.
#[test]
fn batches_in_another_order() -> Result<()> {
    let mixture = Categorical::new(Tensor::ones([("A", 2), ("B", 3), ("k", 4)])?, "k")?;
    let normals = Normal::new(Tensor::zeros([("B", 3), ("A", 2), ("k", 4)])?, 1.0)?;
    let error = MixtureSameFamily::new(mixture, normals).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameMismatch, "{error}");
    assert!(error.message().contains("'A'") || error.message().contains("'B'"), "{error}");
    let error =
        Normal::new(Tensor::zeros([("A", 2), ("B", 3)])?, Tensor::ones([("B", 3), ("A", 2)])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameMismatch, "{error}");
    Ok(())
}
