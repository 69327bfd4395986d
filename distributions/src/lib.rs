//! Probability distributions over tensors whose dims have names: draws, densities, moments, divergences.
//! Programs use this crate as `namegrad::distributions`, with the feature `distributions`.
//!
//! ```
//! use namegrad::distributions::{Normal, kl_divergence};
//! use namegrad::prelude::*;
//!
//! let loc = Tensor::zeros([("N", 3)])?.requiring_grad()?;
//! let normal = Normal::new(&loc, 1.0)?;
//! let x = normal.rsample([("draw", 100)])?; // gradients flow through it to `loc`
//! assert_eq!(x.shape().to_string(), "[draw=100, N=3]");
//! let log = normal.log_prob(&x)?; // [draw, N]
//! log.mean(..)?.backward()?;
//! assert_eq!(kl_divergence(&normal, &Normal::new(0.0, 2.0)?)?.shape().to_string(), "[N=3]");
//! # Ok::<(), Error>(())
//! ```
//!
//! The prelude brings the methods of distributions into scope, but not their names: some are also those of
//! schedules and layers.
//!
//! # Which dims are which
//!
//! | dims | are | in |
//! | --- | --- | --- |
//! | drawn | what `sample([("draw", 100)])` asks for | draws and values, in front |
//! | batch | one distribution for each element | all of the others and all results |
//! | event | one draw of one distribution | moments, draws, values, parameters of vectors |
//!
//! * The dims of the parameters are batch dims, with their names. Parameters broadcast to each other by the
//!   rules of elementwise ops: another order of names is an error, and so are two names at one place.
//! * Distributions of vectors have event dims, which a caller names:
//!   `Dirichlet::new(&concentration, "topic")`. They are found by name in parameters and values, wherever
//!   they are, and are at the end of draws and moments. Dims without names are found by position:
//!   `Dirichlet::new(&concentration, -1)`.
//! * [`Categorical`] has the classes along a dim of its parameters, but a value is an index and has the batch
//!   dims only.
//! * [`Independent`] makes event dims of batch dims, so that `log_prob` adds up over them.
//! * A value has the event dims, and any others must end with the batch dims, or broadcast to them. An error
//!   says which dim of the value is drawn, of the batch or of the event.
//!
//! ```
//! use namegrad::distributions::MultivariateNormal;
//! use namegrad::prelude::*;
//! let loc = Tensor::zeros([("coord", 2), ("N", 3)])?;
//! let covariance = Tensor::eye(2, 2)?.refine_names(["coord", "other"])?;
//! let points = MultivariateNormal::new(&loc, &covariance, ["coord", "other"])?;
//! assert_eq!(points.batch_shape().to_string(), "[N=3]");
//! let x = points.sample([("draw", 5)])?; // [draw, N, coord]
//! assert!(points.log_prob(&x)?.equal(&points.log_prob(&x.align_to(["coord", "draw", "N"])?)?)?);
//! let error = points.log_prob(&x.rename([("N", "M")])?).unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::NameMismatch);
//! assert!(error.to_string().contains("drawn draw=5, batch M=3, event coord=2"));
//! # Ok::<(), Error>(())
//! ```
//!
//! # Which distribution
//!
//! | values | distributions |
//! | --- | --- |
//! | any number | [`Normal`], [`StudentT`], [`Laplace`], [`Cauchy`], [`Gumbel`] |
//! | positive numbers | [`Gamma`], [`LogNormal`], [`Exponential`], [`Weibull`], [`HalfNormal`] |
//! | .. with heavy tails | [`InverseGamma`], [`HalfCauchy`], [`Pareto`] |
//! | .. of tests | [`Chi2`], [`FisherSnedecor`] |
//! | numbers from 0 to 1 | [`Beta`], [`Kumaraswamy`], [`ContinuousBernoulli`], [`RelaxedBernoulli`] |
//! | in an interval, angles | [`Uniform`], [`VonMises`] |
//! | counts | [`Bernoulli`], [`Binomial`], [`Geometric`], [`NegativeBinomial`], [`Poisson`] |
//! | classes | [`Categorical`] as an index, [`OneHotCategorical`] as a vector |
//! | counts of classes | [`Multinomial`] |
//! | shares whose sum is 1 | [`Dirichlet`], [`RelaxedOneHotCategorical`] |
//! | vectors, matrices | [`MultivariateNormal`], [`LowRankMultivariateNormal`], [`Wishart`] |
//! | made of others | [`Independent`], [`MixtureSameFamily`], [`Transformed`] with a [`Transform`] |
//!
//! # Gradients and draws
//!
//! Densities and moments are tensor ops, which are differentiated like any other.
//! [`rsample`](DistributionExt::rsample) draws on the tape, also from [`Gamma`], [`Beta`], [`Dirichlet`],
//! [`StudentT`] and [`VonMises`], whose draws have implicit gradients; `sample` does not. Draws use the
//! library's generator, so that `manual_seed` fixes them, for any number of threads.
//!
//! An implicit gradient cannot be differentiated again.
//!
//! Distributions of counts and classes have no `rsample`. For their gradient, multiply `log_prob` of a draw
//! by what it earned, or draw from a relaxed form.
//!
//! # Checks
//!
//! A constructor checks its parameters, and `log_prob` and `cdf` that the value is in the support, like
//! PyTorch's `validate_args`: "Normal: scale must be positive, but scale[N: 3] is -0.5". [`unchecked`] turns
//! both off.
//!
//! # Accuracy
//!
//! Densities are computed without the cancellation of large terms: those of counts and of the gamma and beta
//! distributions are accurate for counts of 10^15, and those with tails far out in them. At the ends of a
//! support they are infinite where the density is, not NaN.

#![forbid(unsafe_code)]

mod bernoulli;
mod beta;
mod categorical;
mod common;
mod counts;
mod distribution;
mod exponential;
mod frame;
mod gamma;
mod independent;
mod kl;
mod location;
mod matrix;
mod mixture;
mod multivariate;
mod normal;
mod odds;
mod parameters;
mod random;
mod special;
mod support;
mod transform;
mod transform_dims;
mod transform_of;
mod transformed;
mod von_mises;

pub use bernoulli::{Bernoulli, ContinuousBernoulli, RelaxedBernoulli};
pub use beta::{Beta, Dirichlet};
pub use categorical::{Categorical, Multinomial, OneHotCategorical, RelaxedOneHotCategorical};
pub use counts::{Binomial, Geometric, NegativeBinomial, Poisson};
pub use distribution::{Distribution, DistributionExt};
pub use exponential::{Exponential, Kumaraswamy, Pareto, Uniform, Weibull};
pub use frame::{Frame, unchecked};
pub use gamma::{Chi2, FisherSnedecor, Gamma, InverseGamma, StudentT};
pub use independent::{Independent, IntoDistribution};
pub use kl::kl_divergence;
pub use location::{Cauchy, Gumbel, HalfCauchy, Laplace};
pub use mixture::MixtureSameFamily;
pub use multivariate::{LowRankMultivariateNormal, MultivariateNormal, Wishart};
pub use normal::{HalfNormal, LogNormal, Normal};
pub use support::Support;
pub use transform::{
    AbsTransform, AffineTransform, CumulativeDistributionTransform, ExpTransform, PowerTransform,
    SigmoidTransform, SoftplusTransform, TanhTransform, Transform,
};
pub use transform_dims::{
    CorrCholeskyTransform, LowerCholeskyTransform, SoftmaxTransform, StickBreakingTransform,
};
pub use transform_of::{
    CatTransform, ComposeTransform, IndependentTransform, ReshapeTransform, StackTransform,
};
pub use transformed::Transformed;
pub use von_mises::VonMises;
