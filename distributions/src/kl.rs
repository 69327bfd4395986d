//! [`kl_divergence`]: a table of the pairs that have a formula, and the formulas.
//!
//! The sources of most formulas are Gil, Alajaji, Linder, *Rényi divergence measures for commonly used
//! univariate continuous distributions* (2013), and `torch.distributions.kl`.

use crate::bernoulli::{Bernoulli, ContinuousBernoulli};
use crate::beta::{Beta, Dirichlet};
use crate::categorical::{Categorical, OneHotCategorical};
use crate::common::*;
use crate::counts::{Binomial, Geometric, Poisson};
use crate::exponential::{Exponential, Pareto, Uniform, Weibull};
use crate::frame::names_of;
use crate::gamma::{Chi2, Gamma, InverseGamma};
use crate::independent::Independent;
use crate::location::{Cauchy, Gumbel, HalfCauchy, Laplace};
use crate::matrix::{half_log_det, mahalanobis, solve_lower, square_norm};
use crate::multivariate::{LowRankMultivariateNormal, MultivariateNormal, Wishart};
use crate::normal::{HalfNormal, LogNormal, Normal};
use crate::special::{counted, deviance, gamma_rest};
use crate::support::numbers;
use crate::transformed::Transformed;

/// The Kullback-Leibler divergence `KL(p ‖ q) = E[log p(x) - log q(x)]` for `x` of `p`, in nats, over the
/// batch dims of both, which broadcast by name. It is infinite where `q` does not cover `p`.
///
/// There are formulas for all pairs of PyTorch: for two distributions of one kind of most kinds, for
/// transformed and independent distributions of pairs that have one, and for many pairs of different kinds.
///
/// ```
/// use namegrad::distributions::{Laplace, Normal, kl_divergence};
/// use namegrad::prelude::*;
/// let p = Normal::new(&Tensor::zeros([("N", 3)])?, 1.0)?;
/// assert_eq!(kl_divergence(&p, &Normal::new(1.0, 1.0)?)?.to_vec::<f32>()?, [0.5; 3]);
/// assert!(kl_divergence(&p, &Laplace::new(0.0, 1.0)?)?.gt(0.0)?.all(..)?.item::<bool>()?);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Unsupported`] if the pair has no formula, [`ErrorKind::Shape`] for events of different sizes,
/// and the errors of broadcasting.
#[track_caller]
pub fn kl_divergence(p: &dyn Distribution, q: &dyn Distribution) -> Result<Tensor> {
    const OP: &str = "kl_divergence";
    let _called = called_here();
    let found = p.kl(q).or_else(|| {
        let (p, q) = (plain(p), plain(q));
        PAIRS.iter().find_map(|pair| pair(p, q))
    });
    let answer = match found {
        Some(answer) => answer,
        None if is_infinite(plain(p), plain(q)) => infinite(p, q),
        None => Err(no_formula(p, q)),
    };
    match answer {
        Ok(divergence) => Ok(divergence),
        Err(error) if error.kind() == ErrorKind::Unsupported => Err(error.of(OP).at(Location::caller())),
        Err(error) => Err(error
            .of(OP)
            .context(format_args!("{} from {}: ", p.frame(), q.frame()))
            .at(Location::caller())),
    }
}

#[cold]
fn no_formula(p: &dyn Distribution, q: &dyn Distribution) -> Error {
    let message = format!("there is no formula for {} and {}", p.frame().name(), q.frame().name());
    Error::new(ErrorKind::Unsupported, "kl_divergence", message)
        .with_repair("p.log_prob(&x)?.sub(q.log_prob(&x)?)?.mean(\"draw\")? for draws x of p, an estimate")
}

/// A distribution of another name as the one that it is.
fn plain(of: &dyn Distribution) -> &dyn Any {
    let any: &dyn Any = of;
    match any.downcast_ref::<Chi2>() {
        Some(chi2) => &chi2.gamma,
        None => any,
    }
}

/// The divergence of a pair, if it is of the two kinds of a row.
type Pair = fn(&dyn Any, &dyn Any) -> Option<Result<Tensor>>;

fn both<P: 'static, Q: 'static>(
    p: &dyn Any,
    q: &dyn Any,
    formula: fn(&P, &Q) -> Result<Tensor>,
) -> Option<Result<Tensor>> {
    Some(formula(p.downcast_ref()?, q.downcast_ref()?))
}

const PAIRS: &[Pair] = &[
    |p, q| both(p, q, normal_normal),
    |p, q| both(p, q, |p: &LogNormal, q: &LogNormal| normal_normal(&p.normal, &q.normal)),
    |p, q| both(p, q, |p: &HalfNormal, q: &HalfNormal| normal_normal(&p.normal, &q.normal)),
    |p, q| both(p, q, cauchy_cauchy),
    |p, q| both(p, q, |p: &HalfCauchy, q: &HalfCauchy| cauchy_cauchy(&p.cauchy, &q.cauchy)),
    |p, q| both(p, q, laplace_laplace),
    |p, q| both(p, q, gumbel_gumbel),
    |p, q| both(p, q, exponential_exponential),
    |p, q| both(p, q, uniform_uniform),
    |p, q| both(p, q, pareto_pareto),
    |p, q| both(p, q, weibull_weibull),
    |p, q| both(p, q, gamma_gamma),
    |p, q| both(p, q, |p: &InverseGamma, q: &InverseGamma| gamma_gamma(&p.gamma, &q.gamma)),
    |p, q| both(p, q, beta_beta),
    |p, q| both(p, q, dirichlet_dirichlet),
    |p, q| both(p, q, bernoulli_bernoulli),
    |p, q| both(p, q, continuous_continuous),
    |p, q| both(p, q, geometric_geometric),
    |p, q| both(p, q, binomial_binomial),
    |p, q| both(p, q, poisson_poisson),
    |p, q| both(p, q, categorical_categorical),
    |p, q| {
        both(p, q, |p: &OneHotCategorical, q: &OneHotCategorical| {
            categorical_categorical(&p.categorical, &q.categorical)
        })
    },
    |p, q| both(p, q, multivariate_multivariate),
    |p, q| both(p, q, multivariate_low_rank),
    |p, q| both(p, q, low_rank_multivariate),
    |p, q| both(p, q, low_rank_low_rank),
    |p, q| both(p, q, wishart_wishart),
    |p, q| both(p, q, independent_independent),
    |p, q| both(p, q, transformed_transformed),
    |p, q| both(p, q, bernoulli_poisson),
    |p, q| both(p, q, beta_continuous),
    |p, q| both(p, q, beta_exponential),
    |p, q| both(p, q, beta_gamma),
    |p, q| both(p, q, |p: &Beta, q: &Normal| of_normal(p, q)),
    |p, q| both(p, q, |p: &Beta, q: &Uniform| unit_uniform(p, q)),
    |p, q| both(p, q, |p: &ContinuousBernoulli, q: &Exponential| of_exponential(p, q)),
    |p, q| both(p, q, |p: &ContinuousBernoulli, q: &Normal| of_normal(p, q)),
    |p, q| both(p, q, |p: &ContinuousBernoulli, q: &Uniform| unit_uniform(p, q)),
    |p, q| both(p, q, exponential_gamma),
    |p, q| both(p, q, exponential_gumbel),
    |p, q| both(p, q, |p: &Exponential, q: &Normal| of_normal(p, q)),
    |p, q| both(p, q, |p: &Gamma, q: &Exponential| of_exponential(p, q)),
    |p, q| both(p, q, gamma_gumbel),
    |p, q| both(p, q, |p: &Gamma, q: &Normal| of_normal(p, q)),
    |p, q| both(p, q, |p: &Gumbel, q: &Normal| of_normal(p, q)),
    |p, q| both(p, q, |p: &Laplace, q: &Normal| of_normal(p, q)),
    |p, q| both(p, q, normal_gumbel),
    |p, q| both(p, q, normal_laplace),
    |p, q| both(p, q, pareto_exponential),
    |p, q| both(p, q, pareto_gamma),
    |p, q| both(p, q, pareto_normal),
    |p, q| both(p, q, uniform_beta),
    |p, q| both(p, q, uniform_continuous),
    |p, q| both(p, q, uniform_exponential),
    |p, q| both(p, q, uniform_gamma),
    |p, q| both(p, q, uniform_gumbel),
    |p, q| both(p, q, |p: &Uniform, q: &Normal| of_normal(p, q)),
    |p, q| both(p, q, uniform_pareto),
];

/// Whether a distribution is of a kind.
type Is = fn(&dyn Any) -> bool;

fn is<D: 'static>(of: &dyn Any) -> bool {
    of.is::<D>()
}

/// Kinds that have values which those beside them never have, so that the divergence is infinite.
const INFINITE: &[(Is, &[Is])] = &[
    (is::<Beta>, &[is::<Pareto>]),
    (is::<ContinuousBernoulli>, &[is::<Pareto>]),
    (is::<Exponential>, BOUNDED),
    (is::<Gamma>, BOUNDED),
    (is::<Gumbel>, POSITIVE),
    (is::<Laplace>, POSITIVE),
    (is::<Normal>, POSITIVE),
    (is::<Pareto>, &[is::<Beta>, is::<ContinuousBernoulli>, is::<Uniform>]),
    (is::<Poisson>, &[is::<Bernoulli>, is::<Binomial>]),
];

/// Kinds that have no values near 0, or none that are large.
const BOUNDED: &[Is] = &[is::<Beta>, is::<ContinuousBernoulli>, is::<Pareto>, is::<Uniform>];

/// Kinds that have not all numbers as values.
const POSITIVE: &[Is] =
    &[is::<Beta>, is::<ContinuousBernoulli>, is::<Exponential>, is::<Gamma>, is::<Pareto>, is::<Uniform>];

fn is_infinite(p: &dyn Any, q: &dyn Any) -> bool {
    INFINITE.iter().any(|(of_p, of_q)| of_p(p) && of_q.iter().any(|of_q| of_q(q)))
}

/// Infinity over the batch dims of both.
#[track_caller]
fn infinite(p: &dyn Distribution, q: &dyn Distribution) -> Result<Tensor> {
    let zeros = |of: &dyn Distribution| {
        expanded(&TensorOptions::new().dtype(of.frame().dtype()).zeros(())?, of.frame().batch())
    };
    zeros(p)?.add(zeros(q)?).full_like(f64::INFINITY)
}

// Two of one kind.

#[track_caller]
fn normal_normal(p: &Normal, q: &Normal) -> Result<Tensor> {
    let ratio = p.scale.div(&q.scale)?;
    let distance = p.loc.sub(&q.loc).div(&q.scale)?;
    ratio.square().add(distance.square()?).sub(1.0).mul(0.5).sub(ratio.log()?)
}

/// Chyzak, Nielsen, *A closed-form formula for the Kullback-Leibler divergence between Cauchy distributions*
/// (2019).
#[track_caller]
fn cauchy_cauchy(p: &Cauchy, q: &Cauchy) -> Result<Tensor> {
    let square = p.scale.add(&q.scale).square().add(p.loc.sub(&q.loc).square()?)?;
    square.log().sub(p.scale.mul(&q.scale).mul(4.0).log()?)
}

#[track_caller]
fn laplace_laplace(p: &Laplace, q: &Laplace) -> Result<Tensor> {
    let (ratio, distance) = (p.scale.div(&q.scale)?, p.loc.sub(&q.loc).abs()?);
    let overlap = ratio.mul(distance.div(&p.scale).neg().exp()?)?;
    distance.div(&q.scale).add(overlap).sub(1.0).sub(ratio.log()?)
}

#[track_caller]
fn gumbel_gumbel(p: &Gumbel, q: &Gumbel) -> Result<Tensor> {
    let (ratio, distance) = (p.scale.div(&q.scale)?, p.loc.sub(&q.loc).div(&q.scale)?);
    let tail = ratio.add(1.0).lgamma().sub(&distance).exp()?;
    ratio.mul(EULER).sub(ratio.log()?).add(distance).add(tail).sub(1.0 + EULER)
}

#[track_caller]
fn exponential_exponential(p: &Exponential, q: &Exponential) -> Result<Tensor> {
    deviance(&p.rate, &q.rate)?.div(&p.rate)
}

#[track_caller]
fn uniform_uniform(p: &Uniform, q: &Uniform) -> Result<Tensor> {
    let inside = q.high.sub(&q.low).div(p.high.sub(&p.low)?).log()?;
    inside.masked_fill(&q.low.gt(&p.low)?.logical_or(q.high.lt(&p.high)?)?, f64::INFINITY)
}

#[track_caller]
fn pareto_pareto(p: &Pareto, q: &Pareto) -> Result<Tensor> {
    let ratio = q.alpha.div(&p.alpha)?;
    let divergence = p.scale.div(&q.scale).log().mul(&q.alpha).sub(ratio.log()?).add(&ratio).sub(1.0)?;
    divergence.masked_fill(&p.scale.lt(&q.scale)?, f64::INFINITY)
}

/// Bauckhage, *Computing the Kullback-Leibler Divergence between two Weibull Distributions* (2013).
#[track_caller]
fn weibull_weibull(p: &Weibull, q: &Weibull) -> Result<Tensor> {
    let (k, l) = (&p.concentration, &q.concentration);
    let log_scales = p.scale.div(&q.scale).log()?;
    let tail = l.mul(&log_scales).add(l.div(k).add(1.0).lgamma()?).exp()?;
    let slope = l.div(k).sub(1.0).mul(EULER).sub(l.mul(log_scales)?)?;
    k.div(l).log().add(slope).add(tail).sub(1.0)
}

#[track_caller]
fn gamma_gamma(p: &Gamma, q: &Gamma) -> Result<Tensor> {
    let (a, b) = (&p.concentration, &q.concentration);
    deviance(b, &q.rate.div(&p.rate).mul(a)?)?.add(gamma_rest(a, b)?)
}

#[track_caller]
fn beta_beta(p: &Beta, q: &Beta) -> Result<Tensor> {
    let (of_p, of_q) = (p.total()?, q.total()?);
    let ratio = of_q.div(&of_p)?;
    let part = |a: &Tensor, b: &Tensor| deviance(b, &ratio.mul(a)?)?.add(gamma_rest(a, b)?);
    let parts =
        part(&p.concentration1, &q.concentration1)?.add(part(&p.concentration0, &q.concentration0)?)?;
    parts.sub(gamma_rest(&of_p, &of_q)?)
}

#[track_caller]
fn dirichlet_dirichlet(p: &Dirichlet, q: &Dirichlet) -> Result<Tensor> {
    check_events(p, q)?;
    let (a, b) = (&p.concentration, &q.concentration);
    let (of_p, of_q) = (a.sum(keep(-1))?, b.sum(keep(-1))?);
    let parts = deviance(b, &of_q.div(&of_p)?.mul(a)?)?.add(gamma_rest(a, b)?)?;
    parts.sum(-1)?.sub(gamma_rest(&of_p, &of_q)?.squeeze(-1)?)
}

#[track_caller]
fn bernoulli_bernoulli(p: &Bernoulli, q: &Bernoulli) -> Result<Tensor> {
    let side = |p: Tensor, q: Tensor, of_p: Tensor, of_q: Tensor| {
        let part = p.mul(of_p.logsigmoid().sub(of_q.logsigmoid()?)?)?;
        part.masked_fill(&q.eq(0.0)?, f64::INFINITY).masked_fill(&p.eq(0.0)?, 0.0)
    };
    let (probs, other, of_p, of_q) = (p.probs()?, q.probs()?, p.logits()?, q.logits()?);
    let one = side(probs.clone(), other.clone(), of_p.clone(), of_q.clone())?;
    one.add(side(probs.neg().add(1.0)?, other.neg().add(1.0)?, of_p.neg()?, of_q.neg()?)?)
}

#[track_caller]
fn continuous_continuous(p: &ContinuousBernoulli, q: &ContinuousBernoulli) -> Result<Tensor> {
    let distance = p.logits()?.sub(q.logits()?)?;
    p.mean()?.mul(distance)?.sub(p.cumulant(0)?).add(q.cumulant(0)?)
}

#[track_caller]
fn geometric_geometric(p: &Geometric, q: &Geometric) -> Result<Tensor> {
    let failure = q.probs()?.neg().log1p()?;
    p.entropy()?.neg().sub(failure.div(p.probs()?)?).sub(q.logits()?)
}

#[track_caller]
fn binomial_binomial(p: &Binomial, q: &Binomial) -> Result<Tensor> {
    let fewer = p.total_count.lt(&q.total_count)?;
    if numbers(&fewer)?.contains(&1.0) {
        let message = "there is no formula for a Binomial of fewer trials than the other";
        return Err(Error::new(ErrorKind::Unsupported, "kl_divergence", message));
    }
    let failures = p.probs()?.neg().log1p().sub(q.probs()?.neg().log1p()?)?;
    let one = p.probs()?.mul(p.logits()?.sub(q.logits()?)?)?.add(failures)?;
    p.total_count.mul(one)?.masked_fill(&p.total_count.gt(&q.total_count)?, f64::INFINITY)
}

#[track_caller]
fn poisson_poisson(p: &Poisson, q: &Poisson) -> Result<Tensor> {
    deviance(&p.rate, &q.rate)
}

#[track_caller]
fn categorical_categorical(p: &Categorical, q: &Categorical) -> Result<Tensor> {
    if p.classes() != q.classes() {
        let message = format!("{} classes and {}", p.classes(), q.classes());
        return Err(Error::new(ErrorKind::Shape, "kl_divergence", message)
            .with_operands([p.probs().shape(), q.probs().shape()]));
    }
    let parts = p.probs().mul(p.logits().sub(q.logits())?)?;
    let covered = parts.masked_fill(&q.probs().eq(0.0)?, f64::INFINITY)?;
    covered.masked_fill(&p.probs().eq(0.0)?, 0.0).sum(-1)
}

/// An error unless the events have the same sizes.
#[track_caller]
fn check_events(p: &dyn Distribution, q: &dyn Distribution) -> Result<()> {
    let [of_p, of_q] = [p.frame().event(), q.frame().event()];
    if of_p.sizes == of_q.sizes {
        return Ok(());
    }
    let message = format!("events of sizes {of_p} and {of_q}");
    Err(Error::new(ErrorKind::Shape, "kl_divergence", message))
}

/// The distance of two means without names, and the names of the batch dims of both.
#[track_caller]
fn distance(p: &Tensor, q: &Tensor) -> Result<(Tensor, Names)> {
    let d = q.sub(p)?;
    let names = Names::new("kl_divergence", (0..d.ndim() - 1).map(|dim| d.name(dim)))?;
    Ok((d.rename(None)?, names))
}

/// `½ (trace + square - n + log det Σ_q - log det Σ_p)` with these names.
#[track_caller]
fn of_gaussians(
    d: &Tensor,
    names: &Names,
    log_dets: Tensor,
    trace: Tensor,
    square: Tensor,
) -> Result<Tensor> {
    let n = d.sizes()[d.ndim() - 1] as f64;
    renamed(&trace.add(square).sub(n).add(log_dets).mul(0.5)?, names)
}

#[track_caller]
fn multivariate_multivariate(p: &MultivariateNormal, q: &MultivariateNormal) -> Result<Tensor> {
    check_events(p, q)?;
    let (d, names) = distance(&p.loc, &q.loc)?;
    let log_dets = half_log_det(&q.factor)?.sub(half_log_det(&p.factor)?).mul(2.0)?;
    let trace = square_norm(&solve_lower(&q.factor, &p.factor)?)?;
    of_gaussians(&d, &names, log_dets, trace, mahalanobis(&q.factor, &d)?)
}

/// `L⁻¹ Wᵀ D⁻¹` with the factor `L` of `I + Wᵀ D⁻¹ W`, of which the square is what `D⁻¹` has
/// more than the inverse of the covariance.
#[track_caller]
fn excess(q: &LowRankMultivariateNormal) -> Result<Tensor> {
    solve_lower(&q.capacitance, &q.factor.div(q.diag.unsqueeze(-1)?)?.mt()?)
}

#[track_caller]
fn multivariate_low_rank(p: &MultivariateNormal, q: &LowRankMultivariateNormal) -> Result<Tensor> {
    check_events(p, q)?;
    let (d, names) = distance(&p.loc, &q.loc)?;
    let log_dets = q.log_det()?.sub(half_log_det(&p.factor)?.mul(2.0)?)?;
    let whole = square_norm(&p.factor.mul(q.diag.rsqrt().unsqueeze(-1)?)?)?;
    let trace = whole.sub(square_norm(&excess(q)?.matmul(&p.factor)?)?)?;
    of_gaussians(&d, &names, log_dets, trace, q.square_distance(&d)?)
}

#[track_caller]
fn low_rank_multivariate(p: &LowRankMultivariateNormal, q: &MultivariateNormal) -> Result<Tensor> {
    check_events(p, q)?;
    let (d, names) = distance(&p.loc, &q.loc)?;
    let log_dets = half_log_det(&q.factor)?.mul(2.0).sub(p.log_det()?)?;
    let of_factor = square_norm(&solve_lower(&q.factor, &p.factor)?)?;
    let trace = of_factor.add(square_norm(&solve_lower(&q.factor, &p.diag.sqrt().diag_embed()?)?)?)?;
    of_gaussians(&d, &names, log_dets, trace, mahalanobis(&q.factor, &d)?)
}

#[track_caller]
fn low_rank_low_rank(p: &LowRankMultivariateNormal, q: &LowRankMultivariateNormal) -> Result<Tensor> {
    check_events(p, q)?;
    let (d, names) = distance(&p.loc, &q.loc)?;
    let inner = excess(q)?;
    let of_factor = square_norm(&p.factor.mul(q.diag.rsqrt().unsqueeze(-1)?)?)?;
    let whole = p.diag.div(&q.diag).sum(-1).add(of_factor)?;
    let of_diag = square_norm(&inner.mul(p.diag.sqrt().unsqueeze(-2)?)?)?;
    let trace = whole.sub(of_diag).sub(square_norm(&inner.matmul(&p.factor)?)?)?;
    of_gaussians(&d, &names, q.log_det()?.sub(p.log_det()?)?, trace, q.square_distance(&d)?)
}

#[track_caller]
fn wishart_wishart(p: &Wishart, q: &Wishart) -> Result<Tensor> {
    check_events(p, q)?;
    let names = p.df.add(&q.df)?.names().clone();
    let (df, other, n) = (p.bare_df()?, q.bare_df()?, p.rows() as f64);
    let log_dets = half_log_det(&q.factor)?.sub(half_log_det(&p.factor)?).mul(&other)?;
    let trace = square_norm(&solve_lower(&q.factor, &p.factor)?)?.sub(n).mul(df.mul(0.5)?)?;
    let normalizers = q.log_multigamma()?.sub(p.log_multigamma()?)?;
    let slope = df.sub(&other).mul(0.5).mul(p.multidigamma()?)?;
    renamed(&log_dets.add(trace).add(normalizers).add(slope)?, &names)
}

fn independent_independent(p: &Independent, q: &Independent) -> Result<Tensor> {
    let from_right = |of: &Independent| {
        let dims = of.base.frame().batch().sizes.len();
        of.reinterpreted().iter().map(|dim| dims - dim).collect::<Vec<_>>()
    };
    let names = |of: &Independent| -> Option<Vec<Name>> {
        let batch = of.base.frame().batch();
        of.reinterpreted().iter().map(|dim| batch.names.get(*dim)).collect()
    };
    let are_beside = from_right(p) == from_right(q);
    match (names(p), names(q)) {
        (Some(of_p), Some(of_q)) if !are_beside || of_p != of_q => {
            let is_same = of_p.len() == of_q.len() && of_p.iter().all(|name| of_q.contains(name));
            let (true, Some((p, q))) = (is_same, in_one_order(&*p.base, &*q.base)) else {
                return Err(no_formula(p, q));
            };
            kl_divergence(&*p?, &*q?)?.sum(of_p)
        }
        _ if are_beside => p.summed(&kl_divergence(&*p.base, &*q.base)?),
        _ => Err(no_formula(p, q)),
    }
}

type Arranged = Result<Arc<dyn Distribution>>;

/// Both distributions with all batch dims of both in one order, if all have names and the kinds are of
/// those whose parameters have the batch dims and no others.
fn in_one_order(p: &dyn Distribution, q: &dyn Distribution) -> Option<(Arranged, Arranged)> {
    let names = |of: &dyn Distribution| names_of(of.frame().batch()).collect::<Option<Vec<Name>>>();
    let (of_p, mut order) = (names(p)?, names(q)?);
    order.retain(|name| !of_p.contains(name));
    order.extend(of_p);
    let arrange = |x: &Tensor| x.align_to(order.clone());
    let of = |of: &dyn Distribution| ARRANGED.iter().find_map(|kind| kind(of as &dyn Any, &arrange));
    Some((of(p)?, of(q)?))
}

/// A distribution of one kind whose parameters are rearranged.
type Arrange = fn(&dyn Any, &dyn Fn(&Tensor) -> Result<Tensor>) -> Option<Arranged>;

fn arranged<D: 'static, P: Distribution>(
    of: &dyn Any,
    make: impl FnOnce(&D) -> Result<P>,
) -> Option<Arranged> {
    Some(make(of.downcast_ref()?).map(|made| Arc::new(made) as Arc<dyn Distribution>))
}

const ARRANGED: &[Arrange] = &[
    |of, x| arranged(of, |of: &Normal| Normal::new(x(&of.loc)?, x(&of.scale)?)),
    |of, x| arranged(of, |of: &Laplace| Laplace::new(x(&of.loc)?, x(&of.scale)?)),
    |of, x| arranged(of, |of: &Gumbel| Gumbel::new(x(&of.loc)?, x(&of.scale)?)),
    |of, x| arranged(of, |of: &Cauchy| Cauchy::new(x(&of.loc)?, x(&of.scale)?)),
    |of, x| arranged(of, |of: &Uniform| Uniform::new(x(&of.low)?, x(&of.high)?)),
    |of, x| arranged(of, |of: &Gamma| Gamma::new(x(&of.concentration)?, x(&of.rate)?)),
    |of, x| arranged(of, |of: &Beta| Beta::new(x(&of.concentration1)?, x(&of.concentration0)?)),
    |of, x| arranged(of, |of: &Exponential| Exponential::new(x(&of.rate)?)),
    |of, x| arranged(of, |of: &Poisson| Poisson::new(x(&of.rate)?)),
    |of, x| {
        arranged(of, |of: &Bernoulli| match of.odds.is_logits() {
            true => Bernoulli::from_logits(x(of.odds.given())?),
            false => Bernoulli::new(x(of.odds.given())?),
        })
    },
];

fn transformed_transformed(p: &Transformed, q: &Transformed) -> Result<Tensor> {
    let same = p.transforms.len() == q.transforms.len()
        && p.transforms.iter().zip(&q.transforms).all(|(p, q)| p.is_same(&**q));
    if !same {
        let message = "there is no formula for distributions that are transformed in different ways";
        return Err(Error::new(ErrorKind::Unsupported, "kl_divergence", message));
    }
    check_events(p, q)?;
    kl_divergence(&*p.base, &*q.base)
}

// Different kinds.

#[track_caller]
fn bernoulli_poisson(p: &Bernoulli, q: &Poisson) -> Result<Tensor> {
    let mean = counted(&p.probs()?, &q.rate.log()?)?;
    q.rate.sub(mean).sub(p.entropy()?)
}

/// `-H(p) - E[log q]` for an exponential `q`.
#[track_caller]
fn of_exponential(p: &dyn Distribution, q: &Exponential) -> Result<Tensor> {
    q.rate.mul(p.mean()?).sub(q.rate.log()?).sub(p.entropy()?)
}

/// `-H(p) - E[log q]` for a normal `q`.
#[track_caller]
fn of_normal(p: &dyn Distribution, q: &Normal) -> Result<Tensor> {
    let square = p.mean()?.sub(&q.loc).square().add(p.variance()?)?;
    let density = square.div(q.scale.square()?).mul(0.5).add(q.scale.log()?).add(0.5 * TAU.ln())?;
    density.sub(p.entropy()?)
}

/// Of a distribution on `[0, 1]` from a uniform one.
#[track_caller]
fn unit_uniform(p: &dyn Distribution, q: &Uniform) -> Result<Tensor> {
    let inside = q.high.sub(&q.low).log().sub(p.entropy()?)?;
    inside.masked_fill(&q.low.gt(0.0)?.logical_or(q.high.lt(1.0)?)?, f64::INFINITY)
}

/// `-H(p) - E[log q]` for a continuous Bernoulli `q`.
#[track_caller]
fn of_continuous(p: &dyn Distribution, q: &ContinuousBernoulli) -> Result<Tensor> {
    q.cumulant(0)?.sub(p.mean()?.mul(q.logits()?)?).sub(p.entropy()?)
}

#[track_caller]
fn beta_continuous(p: &Beta, q: &ContinuousBernoulli) -> Result<Tensor> {
    of_continuous(p, q)
}

#[track_caller]
fn beta_exponential(p: &Beta, q: &Exponential) -> Result<Tensor> {
    of_exponential(p, q)
}

/// `log Γ(α) - α log β - (α - 1) E[log x] + β E[x]`, the mean of `-log q` for a gamma distribution.
#[track_caller]
fn of_gamma(q: &Gamma, mean_log: &Tensor, mean: &Tensor) -> Result<Tensor> {
    let a = &q.concentration;
    let normalizer = a.lgamma().sub(a.mul(q.rate.log()?)?)?;
    normalizer.sub(a.sub(1.0).mul(mean_log)?).add(q.rate.mul(mean)?)
}

#[track_caller]
fn beta_gamma(p: &Beta, q: &Gamma) -> Result<Tensor> {
    let mean_log = p.concentration1.digamma().sub(p.total()?.digamma()?)?;
    of_gamma(q, &mean_log, &p.mean()?)?.sub(p.entropy()?)
}

#[track_caller]
fn exponential_gamma(p: &Exponential, q: &Gamma) -> Result<Tensor> {
    let (ratio, a) = (q.rate.div(&p.rate)?, &q.concentration);
    ratio.sub(a.mul(ratio.log()?)?).add(a.lgamma()?).add(a.mul(EULER)?).sub(1.0 + EULER)
}

#[track_caller]
fn exponential_gumbel(p: &Exponential, q: &Gumbel) -> Result<Tensor> {
    let (product, start) = (p.rate.mul(&q.scale)?, q.loc.div(&q.scale)?);
    let tail = start.exp().mul(product.div(product.add(1.0)?)?)?;
    product.log().sub(1.0).sub(start).add(tail).add(product.reciprocal()?)
}

#[track_caller]
fn gamma_gumbel(p: &Gamma, q: &Gumbel) -> Result<Tensor> {
    let (a, product, start) = (&p.concentration, p.rate.mul(&q.scale)?, q.loc.div(&q.scale)?);
    let of_shape = a.sub(1.0).mul(a.digamma()?).sub(a.lgamma()?).sub(a)?;
    // e^start (1 + 1 / product)^-a
    let tail = start.sub(product.reciprocal().log1p().mul(a)?).exp()?;
    of_shape.add(product.log()?).add(a.div(&product)?).add(tail).sub(start)
}

#[track_caller]
fn normal_gumbel(p: &Normal, q: &Gumbel) -> Result<Tensor> {
    let (distance, ratio) = (p.loc.sub(&q.loc).div(&q.scale)?, p.scale.div(&q.scale)?);
    let tail = ratio.square().mul(0.5).sub(&distance).exp()?;
    distance.add(tail).sub(ratio.log()?).sub(0.5 * (1.0 + TAU.ln()))
}

#[track_caller]
fn normal_laplace(p: &Normal, q: &Laplace) -> Result<Tensor> {
    let distance = p.loc.sub(&q.loc)?;
    let z = distance.div(&p.scale)?;
    // E|x - loc|
    let near = z.square().mul(-0.5).exp().mul(&p.scale).mul((2.0 / PI).sqrt())?;
    let mean = near.add(distance.mul(z.mul(FRAC_1_SQRT_2).erf()?)?)?;
    mean.div(&q.scale).sub(p.scale.div(&q.scale).log()?).sub(0.5 * (1.0 + (0.5 * PI).ln()))
}

/// A divergence of Pareto's distribution, which is infinite for small shapes.
#[track_caller]
fn of_pareto(p: &Pareto, divergence: Tensor, least: f64) -> Result<Tensor> {
    divergence.masked_fill(&p.alpha.le(least)?, f64::INFINITY)
}

#[track_caller]
fn pareto_exponential(p: &Pareto, q: &Exponential) -> Result<Tensor> {
    let (a, product) = (&p.alpha, p.scale.mul(&q.rate)?);
    let mean = a.mul(&product).div(a.sub(1.0)?)?;
    of_pareto(p, a.div(product).log().sub(a.reciprocal()?).add(mean).sub(1.0)?, 1.0)
}

#[track_caller]
fn pareto_gamma(p: &Pareto, q: &Gamma) -> Result<Tensor> {
    let a = &p.alpha;
    let mean_log = p.scale.log().add(a.reciprocal()?)?;
    let mean = a.mul(&p.scale).div(a.sub(1.0)?)?;
    let divergence = a.log().sub(&mean_log).add(of_gamma(q, &mean_log, &mean)?).sub(1.0)?;
    of_pareto(p, divergence, 1.0)
}

#[track_caller]
fn pareto_normal(p: &Pareto, q: &Normal) -> Result<Tensor> {
    let (a, part) = (&p.alpha, p.scale.div(p.alpha.sub(1.0)?)?);
    let variance = a.mul(part.square()?).div(a.sub(2.0)?)?;
    let square = a.mul(part).sub(&q.loc).square().add(variance)?;
    let normalizer = q.scale.mul(a).div(&p.scale).log().add(0.5 * TAU.ln())?;
    let density = square.div(q.scale.square().mul(2.0)?)?;
    of_pareto(p, normalizer.sub(a.reciprocal()?).add(density).sub(1.0)?, 2.0)
}

/// `E[log x]` for a uniform `x` between two bounds, where 0 log 0 is 0.
#[track_caller]
fn mean_log(low: &Tensor, high: &Tensor) -> Result<Tensor> {
    let part = |x: &Tensor| x.xlogy(x);
    part(high)?.sub(part(low)?).div(high.sub(low)?).sub(1.0)
}

#[track_caller]
fn uniform_beta(p: &Uniform, q: &Beta) -> Result<Tensor> {
    let (a, b) = (&q.concentration1, &q.concentration0);
    let of_one = a.sub(1.0).mul(mean_log(&p.low, &p.high)?)?;
    let of_zero = b.sub(1.0).mul(mean_log(&p.high.neg().add(1.0)?, &p.low.neg().add(1.0)?)?)?;
    let width = p.high.sub(&p.low).log()?;
    let divergence = special::log_beta(a, b)?.sub(width).sub(of_one).sub(of_zero)?;
    divergence.masked_fill(&p.high.gt(1.0)?.logical_or(p.low.lt(0.0)?)?, f64::INFINITY)
}

#[track_caller]
fn uniform_continuous(p: &Uniform, q: &ContinuousBernoulli) -> Result<Tensor> {
    of_continuous(p, q)?.masked_fill(&p.high.gt(1.0)?.logical_or(p.low.lt(0.0)?)?, f64::INFINITY)
}

#[track_caller]
fn uniform_exponential(p: &Uniform, q: &Exponential) -> Result<Tensor> {
    of_exponential(p, q)?.masked_fill(&p.low.lt(0.0)?, f64::INFINITY)
}

#[track_caller]
fn uniform_gamma(p: &Uniform, q: &Gamma) -> Result<Tensor> {
    let divergence = of_gamma(q, &mean_log(&p.low, &p.high)?, &p.mean()?)?.sub(p.entropy()?)?;
    divergence.masked_fill(&p.low.lt(0.0)?, f64::INFINITY)
}

#[track_caller]
fn uniform_gumbel(p: &Uniform, q: &Gumbel) -> Result<Tensor> {
    let width = q.scale.div(p.high.sub(&p.low)?)?;
    let [high, low] = [&p.high, &p.low].map(|end| end.sub(&q.loc).div(&q.scale));
    let (high, low) = (high?, low?);
    let tail = low.neg().exp().sub(high.neg().exp()?).mul(&width)?;
    width.log().add(high.add(low).mul(0.5)?).add(tail)
}

#[track_caller]
fn uniform_pareto(p: &Uniform, q: &Pareto) -> Result<Tensor> {
    let log = q.alpha.log().add(q.alpha.mul(q.scale.log()?)?).add(p.entropy()?)?;
    let divergence = q.alpha.add(1.0).mul(mean_log(&p.low, &p.high)?).sub(log)?;
    divergence.masked_fill(&p.low.lt(&q.scale)?, f64::INFINITY)
}
