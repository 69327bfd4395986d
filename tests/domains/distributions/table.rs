//! One distribution of each kind, made of parameters that are given as tensors of `f64` with a batch dim `N`
//! of three elements.

use namegrad::distributions::{Exponential, *};
use namegrad::prelude::*;

/// A kind: its name, its parameters (with an event dim `e` for those of vectors) and its constructor.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) parameters: Vec<Tensor>,
    pub(crate) make: fn(&[Tensor]) -> Result<Box<dyn Distribution>>,
}

impl Kind {
    pub(crate) fn made(&self) -> Box<dyn Distribution> {
        (self.make)(&self.parameters).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

/// Numbers over `N`.
pub(crate) fn batch(numbers: [f64; 3]) -> Tensor {
    f64s(numbers).refine_names(["N"]).unwrap()
}

/// Numbers in `f64`.
pub(crate) fn f64s(data: impl namegrad::core::Data) -> Tensor {
    TensorOptions::new().dtype(DType::F64).tensor(data).unwrap()
}

/// Vectors of three over `N` and `e`.
fn vectors(numbers: [[f64; 3]; 3]) -> Tensor {
    f64s(numbers).refine_names(["N", "e"]).unwrap()
}

/// Lower triangular matrices over `N`, `e` and `f`.
fn triangles() -> Tensor {
    let one = [[1.5, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.3, 0.2, 1.1]];
    f64s([one, one, [[0.7, 0.0, 0.0], [0.1, 1.3, 0.0], [0.5, -0.6, 0.9]]])
        .refine_names(["N", "e", "f"])
        .unwrap()
}

fn covariances() -> Tensor {
    let l = triangles().rename(None).unwrap();
    l.matmul(l.mt().unwrap()).unwrap().refine_names(["N", "e", "f"]).unwrap()
}

/// The symmetric part of matrices, of which every element can be changed.
fn symmetric(x: &Tensor) -> Result<Tensor> {
    let bare = x.rename(None)?;
    bare.add(bare.mt()?)?.mul(0.5)?.rename(["N", "e", "f"])
}

fn boxed(of: impl Distribution) -> Result<Box<dyn Distribution>> {
    Ok(Box::new(of))
}

/// Every kind.
pub(crate) fn kinds() -> Vec<Kind> {
    let loc = || batch([-0.7, 0.3, 2.0]);
    let scale = || batch([0.6, 1.7, 1.1]);
    let shape = || batch([0.6, 1.8, 5.5]);
    let probs = || batch([0.15, 0.5, 0.82]);
    let logits = || batch([-1.2, 0.4, 2.1]);
    let counts = || batch([3.0, 12.0, 60.0]);
    let weights = || vectors([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3], [0.1, 0.1, 0.8]]);
    let kind = |name, parameters: &[Tensor], make| Kind { name, parameters: parameters.to_vec(), make };
    vec![
        kind("Normal", &[loc(), scale()], |p| boxed(Normal::new(&p[0], &p[1])?)),
        kind("LogNormal", &[loc(), batch([0.3, 0.5, 0.4])], |p| boxed(LogNormal::new(&p[0], &p[1])?)),
        kind("HalfNormal", &[scale()], |p| boxed(HalfNormal::new(&p[0])?)),
        kind("Laplace", &[loc(), scale()], |p| boxed(Laplace::new(&p[0], &p[1])?)),
        kind("Cauchy", &[loc(), scale()], |p| boxed(Cauchy::new(&p[0], &p[1])?)),
        kind("HalfCauchy", &[scale()], |p| boxed(HalfCauchy::new(&p[0])?)),
        kind("Gumbel", &[loc(), scale()], |p| boxed(Gumbel::new(&p[0], &p[1])?)),
        kind("Uniform", &[loc(), loc().add(1.5).unwrap()], |p| boxed(Uniform::new(&p[0], &p[1])?)),
        kind("Exponential", &[scale()], |p| boxed(Exponential::new(&p[0])?)),
        kind("Weibull", &[scale(), batch([0.9, 1.5, 3.0])], |p| boxed(Weibull::new(&p[0], &p[1])?)),
        kind("Pareto", &[scale(), batch([7.0, 8.0, 12.0])], |p| boxed(Pareto::new(&p[0], &p[1])?)),
        kind("Kumaraswamy", &[shape(), batch([2.0, 0.8, 3.0])], |p| boxed(Kumaraswamy::new(&p[0], &p[1])?)),
        kind("Gamma", &[shape(), scale()], |p| boxed(Gamma::new(&p[0], &p[1])?)),
        kind("InverseGamma", &[batch([6.5, 9.0, 12.0]), scale()], |p| {
            boxed(InverseGamma::new(&p[0], &p[1])?)
        }),
        kind("Chi2", &[batch([0.8, 3.0, 9.0])], |p| boxed(Chi2::new(&p[0])?)),
        kind("StudentT", &[batch([9.0, 12.0, 30.0]), loc(), scale()], |p| {
            boxed(StudentT::new(&p[0], &p[1], &p[2])?)
        }),
        kind("FisherSnedecor", &[batch([3.0, 5.0, 9.0]), batch([14.0, 20.0, 40.0])], |p| {
            boxed(FisherSnedecor::new(&p[0], &p[1])?)
        }),
        kind("Beta", &[shape(), batch([2.0, 0.8, 3.0])], |p| boxed(Beta::new(&p[0], &p[1])?)),
        kind("Dirichlet", &[vectors([[0.5, 1.5, 3.0], [2.0, 2.0, 2.0], [9.0, 0.7, 4.0]])], |p| {
            boxed(Dirichlet::new(&p[0], "e")?)
        }),
        kind("Bernoulli", &[probs()], |p| boxed(Bernoulli::new(&p[0])?)),
        kind("Bernoulli of logits", &[logits()], |p| boxed(Bernoulli::from_logits(&p[0])?)),
        kind("ContinuousBernoulli", &[batch([0.15, 0.5003, 0.82])], |p| {
            boxed(ContinuousBernoulli::new(&p[0])?)
        }),
        kind("ContinuousBernoulli of logits", &[logits()], |p| {
            boxed(ContinuousBernoulli::from_logits(&p[0])?)
        }),
        kind("RelaxedBernoulli", &[scale(), logits()], |p| {
            boxed(RelaxedBernoulli::from_logits(&p[0], &p[1])?)
        }),
        kind("Geometric", &[probs()], |p| boxed(Geometric::new(&p[0])?)),
        kind("Geometric of logits", &[logits()], |p| boxed(Geometric::from_logits(&p[0])?)),
        kind("Binomial", &[counts(), probs()], |p| boxed(Binomial::new(&p[0], &p[1])?)),
        kind("Binomial of logits", &[counts(), logits()], |p| boxed(Binomial::from_logits(&p[0], &p[1])?)),
        kind("NegativeBinomial", &[batch([0.7, 3.0, 8.5]), probs()], |p| {
            boxed(NegativeBinomial::new(&p[0], &p[1])?)
        }),
        kind("Poisson", &[batch([0.4, 6.0, 70.0])], |p| boxed(Poisson::new(&p[0])?)),
        kind("Categorical", &[weights()], |p| boxed(Categorical::new(&p[0], "e")?)),
        kind("OneHotCategorical", &[weights()], |p| boxed(OneHotCategorical::new(&p[0], "e")?)),
        kind("Multinomial", &[weights()], |p| boxed(Multinomial::new(7, &p[0], "e")?)),
        kind("RelaxedOneHotCategorical", &[scale(), weights()], |p| {
            boxed(RelaxedOneHotCategorical::new(&p[0], &p[1], "e")?)
        }),
        kind("VonMises", &[loc(), batch([0.4, 2.0, 60.0])], |p| boxed(VonMises::new(&p[0], &p[1])?)),
        kind("MultivariateNormal", &[weights(), covariances()], |p| {
            boxed(MultivariateNormal::new(&p[0], symmetric(&p[1])?, ["e", "f"])?)
        }),
        kind("MultivariateNormal of a precision", &[weights(), covariances()], |p| {
            boxed(MultivariateNormal::from_precision(&p[0], symmetric(&p[1])?, ["e", "f"])?)
        }),
        kind("MultivariateNormal of a factor", &[weights(), triangles()], |p| {
            boxed(MultivariateNormal::from_scale_tril(&p[0], p[1].tril()?, ["e", "f"])?)
        }),
        kind(
            "LowRankMultivariateNormal",
            &[weights(), triangles().narrow("f", 0, 2).unwrap(), weights()],
            |p| boxed(LowRankMultivariateNormal::new(&p[0], &p[1], &p[2], ["e", "f"])?),
        ),
        kind("Wishart", &[batch([3.5, 5.0, 20.0]), covariances()], |p| {
            boxed(Wishart::new(&p[0], symmetric(&p[1])?, ["e", "f"])?)
        }),
        kind("Wishart of a factor", &[batch([3.5, 5.0, 20.0]), triangles()], |p| {
            boxed(Wishart::from_scale_tril(&p[0], p[1].tril()?, ["e", "f"])?)
        }),
        kind("Independent", &[vectors([[0.5, -1.5, 3.0]; 3]), scale()], |p| {
            boxed(Independent::new(Normal::new(&p[0], p[1].align_as(&p[0])?)?, "e")?)
        }),
        kind("MixtureSameFamily", &[weights(), vectors([[-2.0, 0.5, 3.0]; 3])], |p| {
            boxed(MixtureSameFamily::new(Categorical::new(&p[0], "e")?, Normal::new(&p[1], 0.7)?)?)
        }),
        kind("Transformed", &[loc(), scale()], |p| {
            let transforms: Vec<Box<dyn Transform>> =
                vec![Box::new(TanhTransform), Box::new(AffineTransform::new(&p[0], -2.0)?)];
            boxed(Transformed::new(Normal::new(0.1, &p[1])?, transforms)?)
        }),
    ]
}

/// Runs `f` with random numbers of its own, whatever other tests draw.
pub(crate) fn seeded<R>(seed: u64, f: impl FnOnce() -> R) -> R {
    namegrad::core::random::Generator::from_seed(seed).scope(f)
}
