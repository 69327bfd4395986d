//! Names of batch, event and drawn dims.

use super::table::{batch, f64s, kinds, seeded};
use namegrad::distributions::*;
use namegrad::names;
use namegrad::prelude::*;

fn names_of(x: &Tensor) -> Vec<String> {
    x.names().iter(x.ndim()).map(|name| name.map_or("?".into(), |name| name.to_string())).collect()
}

/// Every kind has the batch dim of its parameters and the event dims that it was told, in all results.
#[test]
fn results_have_the_dims_of_the_frame() {
    for kind in kinds() {
        let of = kind.made();
        let own = |shape: &namegrad::core::Shape| -> Vec<String> {
            shape.names.iter(shape.sizes.len()).map(|name| name.expect("a name").to_string()).collect()
        };
        let (batch, event) = (own(of.frame().batch()), own(of.frame().event()));
        assert_eq!(batch, ["N"], "{}", kind.name);
        let both: Vec<String> = batch.iter().chain(&event).cloned().collect();
        let drawn: Vec<String> = ["draw".to_string()].into_iter().chain(both.clone()).collect();
        let x = of.sample([("draw", 4)]).unwrap();
        assert_eq!(names_of(&x), drawn, "{}", kind.name);
        assert_eq!(names_of(&of.sample(()).unwrap()), both, "{}", kind.name);
        assert_eq!(names_of(&of.log_prob(&x).unwrap()), ["draw", "N"], "{}", kind.name);
        for moment in [of.mean(), of.mode(), of.variance()].into_iter().flatten() {
            assert_eq!(names_of(&moment), both, "{}", kind.name);
        }
        if let Ok(entropy) = of.entropy() {
            assert_eq!(names_of(&entropy), ["N"], "{}", kind.name);
        }
        if let Ok(values) = of.enumerate_support(Some("value")) {
            assert_eq!(names_of(&values)[1..], both, "{}", kind.name);
        }
    }
}

/// Event dims are found by name: `log_prob` is the same for every order of them beside the other dims.
#[test]
fn event_dims_are_found_by_name() {
    for kind in kinds() {
        let of = kind.made();
        let x = seeded(4, || of.sample([("draw", 4)])).unwrap();
        let want = of.log_prob(&x).unwrap();
        let event = names_of(&x)[2..].to_vec();
        let first: Vec<&str> = event.iter().map(String::as_str).chain(["draw", "N"]).collect();
        let got = of.log_prob(&x.align_to(first).unwrap()).unwrap();
        assert!(got.equal(&want).unwrap(), "{}", kind.name);
        // names in strict mode, and no names at all
        let strict = names::strict(|| of.log_prob(&x));
        assert!(strict.is_ok(), "{}: {}", kind.name, strict.unwrap_err());
        assert!(of.log_prob(&x.rename(None).unwrap()).unwrap().allclose(&want).unwrap(), "{}", kind.name);
    }
}

/// Parameters without names give the same numbers.
#[test]
fn names_are_optional() -> Result<()> {
    let probs = Tensor::new([[0.2, 0.8], [0.5, 0.5]])?;
    let named = probs.refine_names(["N", "class"])?;
    let value = Tensor::new([1, 0])?;
    let log = Categorical::new(&probs, -1)?.log_prob(&value)?;
    assert!(Categorical::new(&named, "class")?.log_prob(&value)?.rename(None)?.equal(&log)?);
    assert!(Categorical::new(probs.t()?, 0)?.log_prob(&value)?.equal(&log)?);
    assert!(Categorical::new(named.t()?, "class")?.log_prob(&value)?.rename(None)?.equal(&log)?);
    let covariance = Tensor::new([[2.0, 0.5], [0.5, 1.0]])?;
    let x = MultivariateNormal::new(Tensor::zeros([3, 2])?, &covariance, [-2, -1])?;
    assert_eq!(x.log_prob(&Tensor::zeros([2])?)?.sizes(), [3]);
    Ok(())
}

/// The batch dims of parameters broadcast by name, and matrices take part.
#[test]
fn parameters_broadcast_by_name() -> Result<()> {
    let loc = Tensor::zeros([("N", 2), ("M", 3)])?;
    let scale = Tensor::ones([("M", 3)])?;
    assert_eq!(Normal::new(&loc, &scale)?.batch_shape().to_string(), "[N=2, M=3]");
    let error = Normal::new(&loc, Tensor::ones([("K", 3)])?).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::NameMismatch, "Normal"));
    assert!(error.message().starts_with("loc and scale: "), "{error}");
    let error = Normal::new(Tensor::zeros([3])?, Tensor::ones([2])?).unwrap_err();
    assert_eq!((error.kind(), error.location().line()), (ErrorKind::Shape, line!() - 1));
    let factors = Tensor::eye(3, 3)?.refine_names(["M", "K"])?;
    let x = MultivariateNormal::from_scale_tril(&loc, &factors, ["M", "K"])?;
    assert_eq!(x.scale_tril()?.shape().to_string(), "[N=2, M=3, K=3]");
    assert_eq!(x.batch_shape().to_string(), "[N=2]");
    Ok(())
}

fn points() -> Result<MultivariateNormal> {
    let loc = Tensor::zeros([("N", 3), ("coord", 2)])?;
    MultivariateNormal::new(loc, Tensor::eye(2, 2)?.refine_names(["coord", "other"])?, ["coord", "other"])
}

/// An error says which dim of the value is drawn, of the batch and of the event.
#[test]
fn errors_say_what_each_dim_is() -> Result<()> {
    let of = points()?;
    let cases: [(Tensor, ErrorKind, &str); 6] = [
        (Tensor::zeros([("draw", 5), ("M", 3), ("coord", 2)])?, ErrorKind::NameMismatch, "'N' meets 'M'"),
        (Tensor::zeros([("draw", 5), ("N", 3), ("xy", 2)])?, ErrorKind::NameNotFound, "no dim 'coord'"),
        (Tensor::zeros([("N", 3), ("draw", 5), ("coord", 2)])?, ErrorKind::Misaligned, "'N' meets 'draw'"),
        (
            Tensor::zeros([("N", 3), ("coord", 4)])?,
            ErrorKind::Shape,
            "'coord' has 2 elements, and in the value 4",
        ),
        (Tensor::zeros([("N", 4), ("coord", 2)])?, ErrorKind::Shape, "'N' of the batch has 3 elements"),
        (Tensor::zeros(())?, ErrorKind::Shape, "fewer dims than an event"),
    ];
    for (value, kind, text) in cases {
        let line = line!() + 1;
        let error = of.log_prob(&value).unwrap_err();
        assert_eq!((error.kind(), error.op(), error.location().line()), (kind, "log_prob", line), "{error}");
        assert!(error.message().contains(text), "{error}");
        assert!(error.message().contains("MultivariateNormal (batch [N=3], event [coord=2])"), "{error}");
    }
    let error = of.log_prob(&Tensor::zeros([("N", 3), ("draw", 5), ("coord", 2)])?).unwrap_err();
    assert!(error.message().contains("batch N=3, drawn draw=5, event coord=2"), "{error}");
    assert_eq!(error.repair(), Some("value.align_to([\"draw\", \"N\", \"coord\"])?"));
    // as an object, too
    let object: Box<dyn Distribution> = Box::new(of);
    assert_eq!(object.log_prob(&Tensor::zeros(())?).unwrap_err().location().line(), line!());
    assert_eq!(object.sample([("N", 2)]).unwrap_err().location().line(), line!());
    Ok(())
}

#[test]
fn draws_need_names_of_their_own() -> Result<()> {
    let error = points()?.sample([("coord", 4)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DuplicateName);
    assert!(error.message().contains("cannot draw [coord=4]"), "{error}");
    Ok(())
}

/// A categorical value is an index, and has no dim of classes.
#[test]
fn an_index_has_no_dim_of_classes() -> Result<()> {
    let probs = Tensor::ones([("N", 2), ("class", 3)])?;
    let of = Categorical::new(&probs, "class")?;
    let error = of.log_prob(&Tensor::zeros([("N", 2), ("class", 3)])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameMismatch);
    assert!(error.message().contains("an index along 'class'"), "{error}");
    let error = Categorical::new(&probs, "clas").unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::NameNotFound, "Categorical"));
    Ok(())
}

/// Batch dims at any place can be event dims, of which the order in the base does not matter.
#[test]
fn independent_dims_anywhere() -> Result<()> {
    let loc = f64s([[0.5, -1.0, 2.0], [0.0, 0.3, 0.9]]).refine_names(["e", "N"])?;
    let base = Normal::new(&loc, 1.5)?;
    let of = Independent::new(base.clone(), "e")?;
    assert_eq!(
        (of.batch_shape().to_string(), of.event_shape().to_string()),
        ("[N=3]".into(), "[e=2]".into())
    );
    let x = of.sample([("draw", 4)])?;
    assert_eq!(x.shape().to_string(), "[draw=4, N=3, e=2]");
    let want = base.log_prob(&x.align_to(["draw", "e", "N"])?)?.sum("e")?;
    assert!(of.log_prob(&x)?.allclose(&want)?);
    assert!(of.mean()?.equal(&loc.t()?)?);
    assert_eq!(kl_divergence(&of, &of)?.shape().to_string(), "[N=3]");
    let error = Independent::new(base, "H").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameNotFound);
    Ok(())
}

/// The components of a mixture are found by the name of the classes, wherever they are.
#[test]
fn components_anywhere() -> Result<()> {
    let weights = || Categorical::new(f64s([0.2, 0.8]).refine_names(["k"])?, "k");
    let loc = f64s([[0.0, 1.0, 2.0], [5.0, 6.0, 7.0]]).refine_names(["k", "N"])?;
    let of = MixtureSameFamily::new(weights()?, Normal::new(&loc, 1.0)?)?;
    let last = MixtureSameFamily::new(weights()?, Normal::new(loc.t()?, 1.0)?)?;
    assert_eq!(of.batch_shape().to_string(), "[N=3]");
    let x = of.sample([("draw", 5)])?;
    assert!(of.log_prob(&x)?.allclose(&last.log_prob(&x)?)?);
    assert!(of.variance()?.allclose(&last.variance()?)?);
    let error = MixtureSameFamily::new(weights()?, Normal::new(batch([1.0, 2.0, 3.0]), 1.0)?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameNotFound);
    let error =
        MixtureSameFamily::new(weights()?, Normal::new(Tensor::zeros([("k", 3)])?, 1.0)?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.message().contains("the mixture has 2 classes, and the component 3"), "{error}");
    Ok(())
}

/// Matrices have the names of what they are over.
#[test]
fn names_of_matrices() -> Result<()> {
    let loc = Tensor::zeros([("N", 2), ("coord", 3)])?;
    let (factor, diag) = (Tensor::ones([("coord", 3), ("rank", 1)])?, Tensor::ones([("coord", 3)])?);
    let of = LowRankMultivariateNormal::new(&loc, &factor, &diag, ["coord", "rank"])?;
    assert_eq!(of.cov_factor()?.shape().to_string(), "[N=2, coord=3, rank=1]");
    assert_eq!(of.covariance_matrix()?.shape().to_string(), "[N=2, coord=3, ?=3]");
    let eye = of.covariance_matrix()?.rename(None)?.matmul(of.precision_matrix()?.rename(None)?)?;
    assert!(eye.allclose_with(Tensor::eye(3, 3)?, IscloseOptions::new().atol(1e-6))?);
    let root = of.scale_tril()?.rename(None)?;
    assert!(root.matmul(root.mt()?)?.allclose(of.covariance_matrix()?.rename(None)?)?);
    let covariance = of.covariance_matrix()?.select("N", 0)?.rename(["coord", "other"])?;
    let same = MultivariateNormal::new(&loc, &covariance, ["coord", "other"])?;
    assert_eq!(same.precision_matrix()?.shape().to_string(), "[N=2, coord=3, other=3]");
    assert!(kl_divergence(&of, &same)?.abs()?.amax(..)?.item::<f64>()? < 1e-5);
    Ok(())
}

/// Matrices need two dims, by names or by position.
#[test]
fn dims_of_matrices() -> Result<()> {
    let (loc, eye) = (Tensor::zeros([("coord", 2)])?, Tensor::eye(2, 2)?.refine_names(["coord", "other"])?);
    let kind = |error: Error| error.kind();
    let of = |dims: [&str; 2]| MultivariateNormal::new(&loc, &eye, dims);
    assert_eq!(kind(of(["coord", "coord"]).unwrap_err()), ErrorKind::DimRange);
    assert_eq!(kind(of(["row", "other"]).unwrap_err()), ErrorKind::NameNotFound);
    let three = Tensor::zeros([("coord", 3)])?;
    let error = MultivariateNormal::new(three, &eye, ["coord", "other"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.message().contains("must be a matrix 3 by 3"), "{error}");
    assert_eq!(kind(MultivariateNormal::new(0.0, &eye, [-2, -1]).unwrap_err()), ErrorKind::Shape);
    assert_eq!(kind(Wishart::new(3.0, 1.0, [-2, -1]).unwrap_err()), ErrorKind::Shape);
    assert_eq!(kind(Dirichlet::new(1.0, -1).unwrap_err()), ErrorKind::Shape);
    Ok(())
}
