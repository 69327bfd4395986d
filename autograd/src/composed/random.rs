//! Filling a tensor with random numbers, after which its gradient is 0, and random tensors.

use crate::chain::*;
use crate::composed::like::options::NewZerosOptions;
use crate::observe::starting;
use crate::op::Op;
use crate::{Tensor, TensorOptions};
use namegrad_core::options::SearchsortedOptions;
use namegrad_core::random::{Distribution, Sampled, Source};
use namegrad_core::{DType, Device, Error, ErrorKind, IntoShape, Name, NamedTensor, Names, Result, keep};
use namegrad_macros::composed;
use std::ops::RangeBounds;
use std::panic::Location;

composed! { random;
    //! # Random numbers
    /// Fills the tensor with uniform random numbers in [`from`, `to`).
    ///
    /// # Errors
    /// `Value` unless `from <= to` and both are finite, `DType` unless floating-point.
    uniform_ (mut x; from: f64 or 0.0, to: f64 or 1.0) on floats;
    /// Fills the tensor with normal random numbers.
    ///
    /// # Errors
    /// `Value` unless `std >= 0`, `DType` unless floating-point.
    normal_ (mut x; mean: f64 or 0.0, std: f64 or 1.0) on floats;
    /// Fills the tensor with `e^z`, where `z` is normal with this mean and standard deviation.
    ///
    /// # Errors
    /// `Value` unless `std > 0`, `DType` unless floating-point.
    log_normal_ (mut x; mean: f64 or 1.0, std: f64 or 2.0) on floats;
    /// Fills the tensor with exponential random numbers with density `lambd e^(-lambd x)`.
    ///
    /// # Errors
    /// `Value` unless `lambd > 0`, `DType` unless floating-point.
    exponential_ (mut x; lambd: f64 or 1.0) on floats;
    /// Fills the tensor with Cauchy random numbers with density `σ / (π ((x - median)² + σ²))`.
    ///
    /// # Errors
    /// `Value` unless `sigma > 0`, `DType` unless floating-point.
    cauchy_ (mut x; median: f64 or 0.0, sigma: f64 or 1.0) on floats;
    /// Fills the tensor with the number of trials up to the first success, each with probability `p`.
    ///
    /// # Errors
    /// `Value` unless `p` is in (0, 1), `DType` for `bool`.
    geometric_ (mut x; p: f64) on floats integers;
    /// Fills the tensor with 1 with probability `p`, else 0. `p` is a number, or a float tensor that
    /// broadcasts to this one.
    ///
    /// # Errors
    /// `Value` unless `p` is in [0, 1], `DType` for a `p` of integers, `Shape` for one that does not fit.
    bernoulli_ (mut x, p: Operand of f64) names keeps, p: unified;
    /// For each element `p` of this tensor, 1 with probability `p`, else 0. No gradient flows through it.
    ///
    /// # Errors
    /// `Value` unless all are in [0, 1], `DType` unless floating-point.
    bernoulli (x) on floats constant;
    /// Normal random numbers, each with its own mean and standard deviation, which broadcast to each other;
    /// one of the two can be a number. No gradient flows through it; if you need one, write
    /// `mean + std * Tensor::randn(..)`.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let mean = Tensor::new([1.0, 2.0])?.refine_names(["N"])?;
    /// let x = Tensor::normal(&mean, 0.0)?;
    /// assert_eq!((x.to_vec::<f32>()?, x.shape()), (vec![1.0, 2.0], mean.shape()));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Value` for a negative `std`, `DType` unless floating-point, `Shape`, and the errors of the name rule.
    normal (mean: Operand, std: Operand) on floats names unifies constant;
    /// Random positions along `dim`, each with a probability in proportion to its weight, in `i64`. Along the
    /// other dims, the draws are independent. `num_samples` positions take the place of `dim`; their dim is
    /// called `name`. Without `replacement`, all positions of a draw differ, in the order in which they were
    /// drawn. A weight of 0 is never drawn.
    ///
    /// The numbers depend only on the seed, not on the number of threads.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let weights = Tensor::new([[0.0, 1.0, 0.0], [2.0, 0.0, 6.0]])?.refine_names(["N", "class"])?;
    /// let classes = weights.multinomial_with(
    ///     4,
    ///     "class",
    ///     MultinomialOptions::new().replacement(true).name("draw"),
    /// )?;
    /// assert_eq!(classes.shape().to_string(), "[N=2, draw=4]");
    /// assert_eq!(classes.select("N", 0)?.to_vec::<i64>()?, [1, 1, 1, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Value` if a weight is negative, infinite or NaN, if all weights of a draw are 0, or if without
    /// replacement fewer than `num_samples` are not; `Shape` for a 0-d tensor, `DType` unless floating-point,
    /// `DuplicateName`, `NameNotFound`, `DimRange`.
    ///
    /// # Source
    /// Without replacement: Efraimidis and Spirakis, *Weighted random sampling with a reservoir* (2006).
    multinomial (x; num_samples: usize, dim: Dim or -1, replacement: bool = false, name: NewName = None) on floats
        names removes constant;
    /// For each element a draw of Poisson's distribution with that rate, the number of arrivals in one unit of
    /// time.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::core::random::Generator;
    /// let rates = Tensor::full([("N", 1000)], 4.0)?;
    /// let counts = Generator::from_seed(3).scope(|| rates.poisson())?;
    /// assert!((counts.mean("N")?.item::<f64>()? - 4.0).abs() < 0.3);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Value` for a negative or infinite rate, `DType` unless floating-point.
    ///
    /// # Source
    /// Ahrens, Dieter, *Computer methods for sampling from gamma, beta, Poisson and binomial distributions*
    /// (1974).
    poisson (x) on floats constant => {
        within(op, "rate", x, [0.0, f64::MAX])?;
        Source::draw(&x.shape(), &[x.value()], |source, x| source.poisson(x[0])).map(Tensor::constant)
    }
    /// For each element the number of `x` trials that succeed, each with probability `prob`.
    ///
    /// # Errors
    /// `Value` for a negative number of trials or a probability outside [0, 1], `DType` unless floating-point,
    /// `Shape`, and the errors of the name rule.
    ///
    /// # Source
    /// As [`poisson`](Self::poisson).
    binomial (x, prob) on floats names unifies constant => {
        within(op, "count", x, [0.0, f64::MAX])?;
        within(op, "prob", prob, [0.0, 1.0])?;
        let both = Tensor::broadcast_tensors(&[x, prob])?;
        let parameters = [both[0].value(), both[1].value()];
        Source::draw(&both[0].shape(), &parameters, |source, x| source.binomial(x[0].floor(), x[1])).map(Tensor::constant)
    }
    /// For each element a draw of the gamma distribution with that shape and rate 1. `distributions::Gamma` has
    /// draws with gradients.
    ///
    /// # Errors
    /// `Value` unless the shapes are positive, `DType` unless floating-point, `Autograd` for a tensor that
    /// requires a gradient.
    ///
    /// # Source
    /// Marsaglia, Tsang, *A simple method for generating gamma variables* (2000).
    standard_gamma (x) on floats refused => gamma(op, x)?.exp().to(x.dtype());
    /// Draws of the Dirichlet distribution whose concentrations are along `dim`: positive numbers with a sum of
    /// 1 there.
    ///
    /// # Errors
    /// Those of [`standard_gamma`](Self::standard_gamma), `NameNotFound`, `DimRange`.
    dirichlet (x; dim: Dim or -1) on floats refused => gamma(op, x)?.softmax(dim).to(x.dtype());
}

/// Checks that all elements are in a range.
fn within(op: &'static str, name: &str, x: &Tensor, [low, high]: [f64; 2]) -> Result<()> {
    x.value().check_float(op)?;
    let inside = x.ge(low)?.logical_and(x.le(high)?)?.numbers()?.is_true_everywhere()?;
    Error::ensure(inside, ErrorKind::Value, op, || match high {
        1.0 => format!("{name} must be between 0 and 1"),
        _ => format!("{name} must be finite and not negative"),
    })
    .map_err(|error| error.with_operands([x.shape()]))
}

/// Logarithms of draws of the gamma distribution, in `f64`, because those of small shapes are below its range.
fn gamma(op: &'static str, x: &Tensor) -> Result<Tensor> {
    within(op, "the shape", x, [f64::MIN_POSITIVE, f64::MAX])?;
    let x = x.to(DType::F64)?;
    Source::draw(&x.shape(), &[x.value()], |source, x| source.log_gamma(x[0])).map(Tensor::constant)
}

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn uniform_(x: &mut Tensor, from: f64, to: f64) -> Result<()> {
        drawn(x, "uniform_", &|value| value.uniform_(from, to).map(drop))
    }

    #[track_caller]
    pub(super) fn normal_(x: &mut Tensor, mean: f64, std: f64) -> Result<()> {
        drawn(x, "normal_", &|value| value.normal_(mean, std).map(drop))
    }

    #[track_caller]
    pub(super) fn log_normal_(x: &mut Tensor, mean: f64, std: f64) -> Result<()> {
        drawn(x, "log_normal_", &|value| value.log_normal_(mean, std).map(drop))
    }

    #[track_caller]
    pub(super) fn exponential_(x: &mut Tensor, lambd: f64) -> Result<()> {
        drawn(x, "exponential_", &|value| value.exponential_(lambd).map(drop))
    }

    #[track_caller]
    pub(super) fn cauchy_(x: &mut Tensor, median: f64, sigma: f64) -> Result<()> {
        drawn(x, "cauchy_", &|value| value.cauchy_(median, sigma).map(drop))
    }

    #[track_caller]
    pub(super) fn geometric_(x: &mut Tensor, p: f64) -> Result<()> {
        drawn(x, "geometric_", &|value| value.geometric_(p).map(drop))
    }

    #[track_caller]
    pub(super) fn bernoulli_(x: &mut Tensor, p: &Tensor) -> Result<()> {
        drawn(x, "bernoulli_", &|value| value.bernoulli_(p.value()).map(drop))
    }

    #[track_caller]
    pub(super) fn bernoulli(x: &Tensor) -> Result<Tensor> {
        x.value().bernoulli().map(Tensor::constant)
    }

    #[track_caller]
    pub(super) fn normal(mean: &Tensor, std: &Tensor) -> Result<Tensor> {
        mean.value().normal_around(std.value()).map(Tensor::constant)
    }

    #[track_caller]
    pub(super) fn multinomial(
        x: &Tensor,
        num_samples: usize,
        dim: usize,
        replacement: bool,
        name: Option<Name>,
    ) -> Result<Tensor> {
        const OP: &str = "multinomial";
        x.value().check_float(OP)?;
        let fault = |kind, message: String| Error::new(kind, OP, message);
        if x.ndim() == 0 {
            return Err(fault(ErrorKind::Shape, "a 0-d tensor has no dim with weights".into()));
        }
        let names = (0..x.ndim()).map(|d| if d == dim { name } else { x.name(d) });
        let names = Names::new(OP, names)?;
        let weights = x.detach().unnamed().to(DType::F64).movedim(dim, -1)?; // [.., weights]
        let n = x.sizes()[dim];
        let mut sizes = weights.sizes().to_vec();
        sizes[x.ndim() - 1] = num_samples;
        if sizes.contains(&0) {
            let none = weights.new_zeros_with(sizes, NewZerosOptions::new().dtype(DType::I64));
            return Ok(none.movedim(-1, dim)?.named(names));
        }
        if n == 0 {
            return Err(fault(ErrorKind::Value, format!("there are no weights to draw {num_samples} from")));
        }
        let largest = weights.amax(keep(-1))?; // NaN if any is
        if weights.device() == Device::Meta {
            return Ok(weights
                .new_zeros_with(sizes, NewZerosOptions::new().dtype(DType::I64))
                .movedim(-1, dim)?
                .named(names));
        }
        for bound in [weights.amin(..)?.item::<f64>()?, largest.amax(..)?.item::<f64>()?] {
            if !(0.0..f64::INFINITY).contains(&bound) {
                let error =
                    fault(ErrorKind::Value, format!("weights must be finite and not negative, got {bound}"));
                return Err(match bound.is_finite() {
                    true => error.with_repair("x.softmax(dim)? if they are logits"),
                    false => error,
                });
            }
        }
        let above = weights.gt(0).sum(-1).amin(..)?.item::<usize>()?;
        let needed = if replacement { 1 } else { num_samples };
        if above < needed {
            return Err(match above {
                0 => fault(ErrorKind::Value, "all weights of a draw are 0".into()),
                _ => fault(
                    ErrorKind::Value,
                    format!(
                        "{num_samples} draws without replacement need as many weights above 0, got {above}"
                    ),
                )
                .with_repair(
                    "MultinomialOptions::new().replacement(true), to draw a position more than once",
                ),
            });
        }
        // So that their sum is finite. A weight above 0 stays above 0.
        let parts = weights.div(&largest)?;
        let weights = weights.gt(0).choose(parts.clamp(f64::MIN_POSITIVE, 1.0)?, 0.0)?;
        let drawn = match needed == 1 && (replacement || num_samples == 1) {
            true => {
                // The first position at which the sum of the weights so far exceeds a part of all.
                let sums = weights.cumsum(-1)?;
                let mut parts = weights.new_zeros(sizes)?;
                parts.uniform_(0.0, 1.0)?;
                let parts = parts.mul(&sums.narrow(-1, n - 1, 1)?)?;
                sums.searchsorted_with(&parts, SearchsortedOptions::new().right(true))?
            }
            // The first arrivals, if positions arrive at rates that are their weights.
            false => {
                let mut times = weights.zeros_like()?;
                times.exponential_(1.0)?;
                weights.gt(0).choose(weights.div(&times)?, -1.0).topk(num_samples, -1)?.indices
            }
        };
        Ok(drawn.movedim(-1, dim)?.named(names))
    }
}

/// Replaces the values of `x` with those that `draw` writes. On the tape, the result still depends on `x`,
/// with a gradient of 0.
#[track_caller]
fn drawn(x: &mut Tensor, op: &'static str, draw: &dyn Fn(&mut NamedTensor) -> Result<()>) -> Result<()> {
    x.check_in_place(op)?;
    starting();
    let (mut value, at) = (x.value().clone(), Location::caller());
    draw(&mut value).map_err(|error| error.at(at))?; // a closure does not know its caller
    let y = Op::new(op, value).input(x, |g, _| g.zeros_like()).output();
    x.assign(op, y).map(drop)
}

/// # Random integers
impl Tensor {
    /// Uniformly distributed random integers in [`low`, `high`), in `i64`.
    ///
    /// # Errors
    /// `Value` unless `low < high`.
    #[track_caller]
    pub fn randint(low: i64, high: i64, shape: impl IntoShape) -> Result<Tensor> {
        NamedTensor::randint(low, high, shape).map(Tensor::constant)
    }

    /// Samples from a distribution of the crates `rand` 0.10 or `rand_distr` 0.6. Floats become the default
    /// dtype, and integers are treated as in [`Tensor::new`]; types without a dtype, such as `u64`, become
    /// `i64`. For other dtypes, see [`TensorOptions::sample`].
    ///
    /// Each element has its own sequence of random words, so the samples depend only on the seed and not on
    /// the number of threads.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use rand_distr::{Binomial, Gamma};
    /// manual_seed(0);
    /// let rates = Tensor::sample([("N", 1000)], &Gamma::new(2.0, 1.0).unwrap())?;
    /// assert_eq!((rates.dtype(), rates.shape().to_string().as_str()), (DType::F32, "[N=1000]"));
    /// assert!((rates.mean("N")?.item::<f64>()? - 2.0).abs() < 0.2);
    /// let heads = Tensor::sample([("N", 4)], &Binomial::new(10, 0.5).unwrap())?;
    /// assert_eq!(heads.dtype(), DType::I64);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the shape, `OutOfMemory`.
    #[track_caller]
    pub fn sample<T: Sampled>(
        shape: impl IntoShape,
        distribution: &(impl Distribution<T> + Sync),
    ) -> Result<Tensor> {
        TensorOptions::new().sample(shape, distribution)
    }

    /// The integers `0..n` in random order, in `i64`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    #[track_caller]
    pub fn randperm(n: usize) -> Result<Tensor> {
        NamedTensor::randperm(n).map(Tensor::constant)
    }

    /// Fills the tensor with uniformly distributed integers in `range`. Without a start, the range starts
    /// at 0. Without an end, it ends at the largest integer up to which the dtype represents all integers.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let mut x = Tensor::zeros([("N", 9)])?;
    /// x.random_(2..5)?;
    /// assert!(x.to(DType::I64)?.to_vec::<i64>()?.iter().all(|x| (2..5).contains(x)));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `Value` if the range is empty or exceeds the range of the dtype; `Autograd` for a leaf that requires a
    /// gradient.
    #[track_caller]
    pub fn random_(&mut self, range: impl RangeBounds<i64>) -> Result<&mut Tensor> {
        let range = (range.start_bound().cloned(), range.end_bound().cloned());
        drawn(self, "random_", &|value| value.random_(range).map(drop))?;
        Ok(self)
    }
}
