//! `distributions.*`: a distribution is made as its description says, with the inputs in their order, and
//! asked for one thing.

use crate::call::{Answer, Call, IntoOutputs, Value, missing, unwritable};
use namegrad::core::Shape;
use namegrad::distributions::*;
use namegrad::prelude::*;
use serde_json::{Map, Value as Json, json};

/// The inputs that are not used yet.
type Inputs = std::vec::IntoIter<Tensor>;

/// The call of a method of a distribution, or of `kl`.
pub(crate) fn play(op: &str, c: &mut Call<'_>) -> Answer<Vec<Value>> {
    let inputs: Vec<Tensor> = c.xs()?.into_iter().cloned().collect();
    let mut inputs = inputs.into_iter();
    if op == "distributions.kl" {
        let [p, q] = ["p", "q"].map(|key| described(c.arg(key)));
        let (p, q) = (made(&p, &mut inputs)?, made(&q, &mut inputs)?);
        return Ok(kl_divergence(&*p, &*q)?.outputs());
    }
    let mut parts = op.split('.').skip(1);
    let (Some(name), Some(method)) = (parts.next(), parts.next()) else { return missing(op) };
    let mut description = Map::from_iter([("name".to_string(), json!(name))]);
    for key in ["params", "options", "base", "mixture", "component", "transforms"] {
        description.extend(c.arg(key).map(|value| (key.to_string(), value.clone())));
    }
    c.arg("method");
    let of_call = described(c.arg("call"));
    let is_expanded = of_call.get("expand") != Some(&json!(false));
    let draws = of_call.get("sample_shape").and_then(Json::as_array).cloned();
    let draws: Vec<usize> =
        draws.unwrap_or_default().iter().filter_map(Json::as_u64).map(|size| size as usize).collect();
    if let Some(answer) = property(method, &description, inputs.clone()) {
        return answer;
    }
    let of = made(&description, &mut inputs)?;
    let mut value = || inputs.next().map_or_else(|| missing("no value"), Ok);
    Ok(match method {
        "log_prob" => of.log_prob(&value()?)?.outputs(),
        "cdf" => of.cdf(&value()?)?.outputs(),
        "icdf" => of.icdf(&value()?)?.outputs(),
        "entropy" => of.entropy()?.outputs(),
        "perplexity" => of.perplexity()?.outputs(),
        "mean" => of.mean()?.outputs(),
        "mode" => of.mode()?.outputs(),
        "variance" => of.variance()?.outputs(),
        "stddev" => of.stddev()?.outputs(),
        "enumerate_support" if !is_expanded => listed(&*of)?.outputs(),
        "enumerate_support" => of.enumerate_support(None)?.outputs(),
        "sample" => of.sample(draws)?.outputs(),
        "rsample" => of.rsample(draws)?.outputs(),
        "batch_shape" => sizes(&of.batch_shape()),
        "event_shape" => sizes(&of.event_shape()),
        "has_rsample" => json!(of.has_rsample()).outputs(),
        _ => return missing(method),
    })
}

/// The values of a distribution, once for all of the batch.
fn listed(of: &dyn Distribution) -> Result<Tensor> {
    let values = of.values()?;
    let batch = of.batch_shape().sizes.len();
    let sizes = values.sizes()[..1].iter().copied().chain(vec![1; batch]).chain(values.sizes()[1..].to_vec());
    values.reshape(sizes.collect::<Vec<_>>())
}

fn sizes(shape: &Shape) -> Vec<Value> {
    json!(shape.sizes.to_vec()).outputs()
}

/// What only some distributions have: their parameters in another form.
fn property(method: &str, of: &Map<String, Json>, inputs: Inputs) -> Option<Answer<Vec<Value>>> {
    let name = of["name"].as_str()?;
    if !["probs", "logits", "covariance_matrix", "precision_matrix", "scale_tril"].contains(&method) {
        return None;
    }
    Some(form(method, name, of, inputs).map(IntoOutputs::outputs))
}

fn form(method: &str, name: &str, of: &Map<String, Json>, inputs: Inputs) -> Answer<Tensor> {
    let given = Given::new(of, &mut inputs.clone());
    Ok(match (name, method) {
        ("Bernoulli", "probs") => bernoulli(&given)?.probs()?,
        ("Bernoulli", _) => bernoulli(&given)?.logits()?,
        ("Geometric", "probs") => geometric(&given)?.probs()?,
        ("Geometric", _) => geometric(&given)?.logits()?,
        ("Binomial", "probs") => binomial(&given)?.probs()?,
        ("Binomial", _) => binomial(&given)?.logits()?,
        ("NegativeBinomial", "probs") => negative_binomial(&given)?.probs()?,
        ("NegativeBinomial", _) => negative_binomial(&given)?.logits()?,
        ("ContinuousBernoulli", "probs") => continuous(&given)?.probs()?,
        ("ContinuousBernoulli", _) => continuous(&given)?.logits()?,
        ("Categorical" | "OneHotCategorical" | "Multinomial", "probs") => {
            categorical(&given)?.probs().clone()
        }
        ("Categorical" | "OneHotCategorical" | "Multinomial", _) => categorical(&given)?.logits().clone(),
        ("MultivariateNormal", "covariance_matrix") => multivariate(&given)?.covariance_matrix()?,
        ("MultivariateNormal", "precision_matrix") => multivariate(&given)?.precision_matrix()?,
        ("MultivariateNormal", "scale_tril") => multivariate(&given)?.scale_tril()?,
        ("LowRankMultivariateNormal", "covariance_matrix") => low_rank(&given)?.covariance_matrix()?,
        ("LowRankMultivariateNormal", "precision_matrix") => low_rank(&given)?.precision_matrix()?,
        ("LowRankMultivariateNormal", "scale_tril") => low_rank(&given)?.scale_tril()?,
        ("Wishart", "covariance_matrix") => wishart(&given)?.covariance_matrix()?,
        ("Wishart", "precision_matrix") => wishart(&given)?.precision_matrix()?,
        ("Wishart", "scale_tril") => wishart(&given)?.scale_tril()?,
        _ => return missing(format!("{name}.{method}")),
    })
}

fn described(value: Option<&Json>) -> Map<String, Json> {
    value.and_then(Json::as_object).cloned().unwrap_or_default()
}

/// The parameters of a constructor by name: tensors from the inputs, numbers from the options.
struct Given {
    tensors: Vec<(String, Tensor)>,
    options: Map<String, Json>,
}

impl Given {
    fn new(of: &Map<String, Json>, inputs: &mut Inputs) -> Given {
        let names = of.get("params").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
        let tensors = names.map(String::from).zip(inputs).collect();
        Given { tensors, options: described(of.get("options")) }
    }

    fn has(&self, name: &str) -> bool {
        self.tensors.iter().any(|(own, _)| own == name)
    }

    fn get(&self, name: &str) -> Answer<Tensor> {
        if let Some((_, tensor)) = self.tensors.iter().find(|(own, _)| own == name) {
            return Ok(tensor.clone());
        }
        let number = match self.options.get(name).and_then(Json::as_f64) {
            Some(number) => number,
            None if name == "loc" => 0.0,
            None if name == "scale" || name == "total_count" => 1.0,
            None => return missing(format!("`{name}`")),
        };
        let dtype = self.tensors.first().map_or(DType::F32, |(_, tensor)| tensor.dtype());
        Ok(TensorOptions::new().dtype(dtype).full((), number)?)
    }

    /// Probabilities or logits, of which exactly one can be written.
    fn odds(&self) -> Answer<(Tensor, bool)> {
        match (self.has("probs"), self.has("logits")) {
            (true, true) => unwritable("a constructor takes probabilities or logits"),
            (_, is_logits) => Ok((self.get(if is_logits { "logits" } else { "probs" })?, is_logits)),
        }
    }

    fn total(&self) -> usize {
        self.options.get("total_count").and_then(Json::as_u64).unwrap_or(1) as usize
    }
}

fn bernoulli(of: &Given) -> Answer<Bernoulli> {
    let (x, is_logits) = of.odds()?;
    Ok(if is_logits { Bernoulli::from_logits(x)? } else { Bernoulli::new(x)? })
}

fn continuous(of: &Given) -> Answer<ContinuousBernoulli> {
    let (x, is_logits) = of.odds()?;
    Ok(if is_logits { ContinuousBernoulli::from_logits(x)? } else { ContinuousBernoulli::new(x)? })
}

fn geometric(of: &Given) -> Answer<Geometric> {
    let (x, is_logits) = of.odds()?;
    Ok(if is_logits { Geometric::from_logits(x)? } else { Geometric::new(x)? })
}

fn binomial(of: &Given) -> Answer<Binomial> {
    let ((x, is_logits), total) = (of.odds()?, of.get("total_count")?);
    Ok(if is_logits { Binomial::from_logits(total, x)? } else { Binomial::new(total, x)? })
}

fn negative_binomial(of: &Given) -> Answer<NegativeBinomial> {
    let ((x, is_logits), total) = (of.odds()?, of.get("total_count")?);
    Ok(if is_logits { NegativeBinomial::from_logits(total, x)? } else { NegativeBinomial::new(total, x)? })
}

fn categorical(of: &Given) -> Answer<Categorical> {
    let (x, is_logits) = of.odds()?;
    Ok(if is_logits { Categorical::from_logits(x, -1)? } else { Categorical::new(x, -1)? })
}

fn multivariate(of: &Given) -> Answer<MultivariateNormal> {
    let (loc, dims) = (of.get("loc")?, [-2, -1]);
    Ok(if of.has("covariance_matrix") {
        MultivariateNormal::new(loc, of.get("covariance_matrix")?, dims)?
    } else if of.has("precision_matrix") {
        MultivariateNormal::from_precision(loc, of.get("precision_matrix")?, dims)?
    } else if of.has("scale_tril") {
        MultivariateNormal::from_scale_tril(loc, of.get("scale_tril")?, dims)?
    } else {
        return unwritable("a constructor takes a matrix");
    })
}

fn low_rank(of: &Given) -> Answer<LowRankMultivariateNormal> {
    let (factor, diag) = (of.get("cov_factor")?, of.get("cov_diag")?);
    Ok(LowRankMultivariateNormal::new(of.get("loc")?, factor, diag, [-2, -1])?)
}

fn wishart(of: &Given) -> Answer<Wishart> {
    let (df, dims) = (of.get("df")?, [-2, -1]);
    Ok(if of.has("covariance_matrix") {
        Wishart::new(df, of.get("covariance_matrix")?, dims)?
    } else if of.has("precision_matrix") {
        Wishart::from_precision(df, of.get("precision_matrix")?, dims)?
    } else {
        Wishart::from_scale_tril(df, of.get("scale_tril")?, dims)?
    })
}

/// The distribution that a description says.
fn made(of: &Map<String, Json>, inputs: &mut Inputs) -> Answer<Box<dyn Distribution>> {
    let is_checked =
        of.get("options").and_then(|options| options.get("validate_args")) != Some(&json!(false));
    if is_checked { checked(of, inputs) } else { unchecked(|| checked(of, inputs)) }
}

fn boxed(of: impl Distribution) -> Answer<Box<dyn Distribution>> {
    Ok(Box::new(of))
}

fn checked(of: &Map<String, Json>, inputs: &mut Inputs) -> Answer<Box<dyn Distribution>> {
    let name = of.get("name").and_then(Json::as_str).unwrap_or_default();
    match name {
        "Independent" => {
            let base = made(&described(of.get("base")), inputs)?;
            let count = described(of.get("options"))["reinterpreted_batch_ndims"].as_i64().unwrap_or(0);
            let dims: Vec<i64> = (1..=count).rev().map(|dim| -dim).collect();
            return boxed(Independent::new(base, dims)?);
        }
        "MixtureSameFamily" => {
            let mixture = described(of.get("mixture"));
            let mixture = categorical(&Given::new(&mixture, inputs))?;
            return boxed(MixtureSameFamily::new(mixture, made(&described(of.get("component")), inputs)?)?);
        }
        "TransformedDistribution" => {
            let base = made(&described(of.get("base")), inputs)?;
            let list = of.get("transforms").and_then(Json::as_array).into_iter().flatten();
            let transforms: Vec<Box<dyn Transform>> =
                list.map(|transform| transformed(transform, inputs)).collect::<Answer<_>>()?;
            return boxed(Transformed::new(base, transforms)?);
        }
        _ => {}
    }
    let of = Given::new(of, inputs);
    let x = |parameter: &str| of.get(parameter);
    match name {
        "Normal" => boxed(Normal::new(x("loc")?, x("scale")?)?),
        "LogNormal" => boxed(LogNormal::new(x("loc")?, x("scale")?)?),
        "HalfNormal" => boxed(HalfNormal::new(x("scale")?)?),
        "Laplace" => boxed(Laplace::new(x("loc")?, x("scale")?)?),
        "Cauchy" => boxed(Cauchy::new(x("loc")?, x("scale")?)?),
        "HalfCauchy" => boxed(HalfCauchy::new(x("scale")?)?),
        "Gumbel" => boxed(Gumbel::new(x("loc")?, x("scale")?)?),
        "Uniform" => boxed(Uniform::new(x("low")?, x("high")?)?),
        "Exponential" => boxed(Exponential::new(x("rate")?)?),
        "Weibull" => boxed(Weibull::new(x("scale")?, x("concentration")?)?),
        "Pareto" => boxed(Pareto::new(x("scale")?, x("alpha")?)?),
        "Kumaraswamy" => boxed(Kumaraswamy::new(x("concentration1")?, x("concentration0")?)?),
        "Gamma" => boxed(Gamma::new(x("concentration")?, x("rate")?)?),
        "InverseGamma" => boxed(InverseGamma::new(x("concentration")?, x("rate")?)?),
        "Chi2" => boxed(Chi2::new(x("df")?)?),
        "StudentT" => boxed(StudentT::new(x("df")?, x("loc")?, x("scale")?)?),
        "FisherSnedecor" => boxed(FisherSnedecor::new(x("df1")?, x("df2")?)?),
        "Beta" => boxed(Beta::new(x("concentration1")?, x("concentration0")?)?),
        "Dirichlet" => boxed(Dirichlet::new(x("concentration")?, -1)?),
        "Bernoulli" => boxed(bernoulli(&of)?),
        "ContinuousBernoulli" => boxed(continuous(&of)?),
        "RelaxedBernoulli" => {
            let (odds, is_logits) = of.odds()?;
            boxed(match is_logits {
                true => RelaxedBernoulli::from_logits(x("temperature")?, odds)?,
                false => RelaxedBernoulli::new(x("temperature")?, odds)?,
            })
        }
        "Geometric" => boxed(geometric(&of)?),
        "Binomial" => boxed(binomial(&of)?),
        "NegativeBinomial" => boxed(negative_binomial(&of)?),
        "Poisson" => boxed(Poisson::new(x("rate")?)?),
        "Categorical" => boxed(categorical(&of)?),
        "OneHotCategorical" => {
            let (odds, is_logits) = of.odds()?;
            boxed(match is_logits {
                true => OneHotCategorical::from_logits(odds, -1)?,
                false => OneHotCategorical::new(odds, -1)?,
            })
        }
        "RelaxedOneHotCategorical" => {
            let (odds, is_logits) = of.odds()?;
            boxed(match is_logits {
                true => RelaxedOneHotCategorical::from_logits(x("temperature")?, odds, -1)?,
                false => RelaxedOneHotCategorical::new(x("temperature")?, odds, -1)?,
            })
        }
        "Multinomial" => {
            let (odds, is_logits) = of.odds()?;
            boxed(match is_logits {
                true => Multinomial::from_logits(of.total(), odds, -1)?,
                false => Multinomial::new(of.total(), odds, -1)?,
            })
        }
        "VonMises" => boxed(VonMises::new(x("loc")?, x("concentration")?)?),
        "MultivariateNormal" => boxed(multivariate(&of)?),
        "LowRankMultivariateNormal" => boxed(low_rank(&of)?),
        "Wishart" => boxed(wishart(&of)?),
        _ => missing(format!("the distribution {name}")),
    }
}

fn transformed(of: &Json, inputs: &mut Inputs) -> Answer<Box<dyn Transform>> {
    let description = described(Some(of));
    let given = Given::new(&description, inputs);
    Ok(match description.get("name").and_then(Json::as_str).unwrap_or_default() {
        "AffineTransform" => Box::new(AffineTransform::new(given.get("loc")?, given.get("scale")?)?),
        "ExpTransform" => Box::new(ExpTransform),
        "PowerTransform" => Box::new(PowerTransform::new(given.get("exponent")?)?),
        "SigmoidTransform" => Box::new(SigmoidTransform),
        "SoftplusTransform" => Box::new(SoftplusTransform),
        "TanhTransform" => Box::new(TanhTransform),
        "AbsTransform" => Box::new(AbsTransform),
        "SoftmaxTransform" => Box::new(SoftmaxTransform::new(-1)),
        "StickBreakingTransform" => Box::new(StickBreakingTransform::new(-1)),
        "LowerCholeskyTransform" => Box::new(LowerCholeskyTransform::new([-2, -1])),
        "CorrCholeskyTransform" => Box::new(CorrCholeskyTransform::new(-1, [-2, -1])),
        name => return missing(format!("the transform {name}")),
    })
}
