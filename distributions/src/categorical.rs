//! One of several classes: as an index, as a vector of zeros and a one, and counts of several draws.

use crate::common::*;
use crate::counts::Binomial;
use crate::frame::{part, split};
use crate::odds::clamped;
use crate::special::counted;
use crate::transform::open_unit;

/// The categorical distribution of one of several classes, as an index of `i64`: class `k` with probability
/// `pₖ`.
///
/// The classes are along a dim of the parameters; a value has the batch dims only.
///
/// ```
/// use namegrad::distributions::Categorical;
/// use namegrad::prelude::*;
/// let probs = Tensor::new([[0.1, 0.9], [0.5, 0.5], [0.8, 0.2]])?.refine_names(["N", "class"])?;
/// let x = Categorical::new(&probs, "class")?;
/// assert_eq!(x.mode()?.to_vec::<i64>()?, [1, 0, 0]);
/// let class = x.sample([("draw", 7)])?;
/// assert_eq!(class.shape().to_string(), "[draw=7, N=3]");
/// assert_eq!(x.log_prob(&class)?.shape(), class.shape());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Categorical {
    /// The probabilities, whose sum is 1, with the classes at the end.
    probs: Tensor,
    /// Their logarithms.
    logits: Tensor,
    frame: Frame,
}

impl Categorical {
    /// The distribution with probabilities in proportion to `probs` along `dim`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if one of `probs` is negative or all along `dim` are 0, [`ErrorKind::DType`]
    /// unless floating-point, [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`] or [`ErrorKind::Shape`] if
    /// there is no such dim.
    #[track_caller]
    pub fn new(probs: impl Operand, dim: impl Into<Dim>) -> Result<Categorical> {
        Categorical::of("Categorical", &probs, &dim.into(), false)
    }

    /// The distribution with probabilities `softmax(logits)` along `dim`.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`ErrorKind::Value`] for NaN and infinity, and if all along `dim` are -inf.
    #[track_caller]
    pub fn from_logits(logits: impl Operand, dim: impl Into<Dim>) -> Result<Categorical> {
        Categorical::of("Categorical", &logits, &dim.into(), true)
    }

    #[track_caller]
    pub(crate) fn of(
        name: &'static str,
        given: &dyn Operand,
        dim: &Dim,
        is_logits: bool,
    ) -> Result<Categorical> {
        let parameter = if is_logits { "logits" } else { "probs" };
        let given = floats(name, &[(parameter, given)])?.remove(0);
        let given = with_events(name, parameter, &given, dim)?;
        if given.sizes()[given.ndim() - 1] == 0 {
            let message = format!("there are no classes: {parameter} has no elements along their dim");
            return Err(Error::new(ErrorKind::Value, name, message).with_operands([given.shape()]));
        }
        check(name, parameter, if is_logits { &Support::Logits } else { &Support::Weights }, &given)?;
        let (probs, logits) = match is_logits {
            true => (given.softmax(-1)?, given.log_softmax(-1)?),
            false => {
                let probs = given.div(given.sum(keep(-1))?)?;
                let logits = clamped(&probs)?.log()?;
                (probs, logits)
            }
        };
        let batch = split(&given.shape(), 1).0;
        let frame = Frame::new(name, batch, no_dims(), given.dtype());
        Ok(Categorical { probs, logits, frame: frame.with_index_of(given.name(given.ndim() - 1)) })
    }

    /// The probabilities, whose sum is 1, with the dim of classes at the end.
    pub fn probs(&self) -> &Tensor {
        &self.probs
    }

    /// The logarithms of the probabilities. Those of given probabilities are finite: like PyTorch's, they are
    /// moved away from 0 and 1 by the distance from 1 to the next larger number.
    pub fn logits(&self) -> &Tensor {
        &self.logits
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.probs.sizes()[self.probs.ndim() - 1]
    }

    /// The batch dims and the dim of classes.
    fn parameter_shape(&self) -> Shape {
        self.probs.shape()
    }

    /// The frame of a distribution whose events are along the classes.
    fn frame_of_events(&self, name: &'static str) -> Frame {
        Frame::of_events(name, &self.probs, 1)
    }

    /// Draws of classes without names, in a tensor of these sizes, which end with those of the batch.
    #[track_caller]
    fn indices(&self, sizes: &[usize]) -> Result<Tensor> {
        let batch = &self.frame.batch().sizes;
        let drawn = &sizes[..sizes.len() - batch.len()];
        let count: usize = drawn.iter().product();
        let weights = self.probs.detach().rename(None)?;
        if sizes.contains(&0) {
            return TensorOptions::new().dtype(DType::I64).zeros(sizes);
        }
        let classes = weights.multinomial_with(count, -1, MultinomialOptions::new().replacement(true))?;
        classes.movedim(-1, 0).reshape(sizes)
    }
}

impl Distribution for Categorical {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::index_below(self.classes())
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let first = self.logits.detach().select(-1, 0)?;
        let spread = Tensor::broadcast_tensors(&[x, &first])?;
        let (names, mut sizes) = (spread[0].names().clone(), spread[0].sizes().to_vec());
        let index = spread[0].rename(None).to(DType::I64).unsqueeze(-1)?;
        sizes.push(self.classes());
        let picked = self.logits.rename(None).expand(sizes).gather(&index, -1).squeeze(-1)?;
        renamed(&picked, &names)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        renamed(&self.indices(&shape.sizes)?, &shape.names)
    }
    fn values(&self) -> Result<Tensor> {
        Tensor::arange(0, self.classes() as i64, 1)
    }
    fn mean(&self) -> Result<Tensor> {
        self.logits.detach().select(-1, 0).full_like(f64::NAN)
    }
    fn mode(&self) -> Result<Tensor> {
        self.probs.detach().argmax(-1)
    }
    fn variance(&self) -> Result<Tensor> {
        self.mean()
    }
    fn entropy(&self) -> Result<Tensor> {
        counted(&self.probs, &self.logits)?.sum(-1).neg()
    }
}

/// [`Categorical`] with a vector for each class: 1 at its position and 0 elsewhere.
///
/// ```
/// use namegrad::distributions::OneHotCategorical;
/// use namegrad::prelude::*;
/// let probs = Tensor::new([[0.0, 1.0], [1.0, 0.0]])?.refine_names(["N", "class"])?;
/// let x = OneHotCategorical::new(&probs, "class")?;
/// assert_eq!(x.event_shape().to_string(), "[class=2]");
/// assert_eq!(x.sample(())?.to_vec::<f32>()?, [0.0, 1.0, 1.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OneHotCategorical {
    /// The distribution of the position of the 1.
    pub(crate) categorical: Categorical,
    frame: Frame,
}

impl OneHotCategorical {
    /// The distribution with probabilities in proportion to `probs` along `dim`.
    ///
    /// # Errors
    /// As [`Categorical::new`].
    #[track_caller]
    pub fn new(probs: impl Operand, dim: impl Into<Dim>) -> Result<OneHotCategorical> {
        OneHotCategorical::of(&probs, &dim.into(), false)
    }

    /// The distribution with probabilities `softmax(logits)` along `dim`.
    ///
    /// # Errors
    /// As [`Categorical::from_logits`].
    #[track_caller]
    pub fn from_logits(logits: impl Operand, dim: impl Into<Dim>) -> Result<OneHotCategorical> {
        OneHotCategorical::of(&logits, &dim.into(), true)
    }

    #[track_caller]
    fn of(given: &dyn Operand, dim: &Dim, is_logits: bool) -> Result<OneHotCategorical> {
        const NAME: &str = "OneHotCategorical";
        let categorical = Categorical::of(NAME, given, dim, is_logits)?;
        Ok(OneHotCategorical { frame: categorical.frame_of_events(NAME), categorical })
    }

    /// The probabilities, whose sum is 1, with the event dim at the end.
    pub fn probs(&self) -> &Tensor {
        self.categorical.probs()
    }

    /// The logarithms of the probabilities; see [`Categorical::logits`].
    pub fn logits(&self) -> &Tensor {
        self.categorical.logits()
    }
}

/// Vectors with a 1 at an index, in a float dtype, without names.
#[track_caller]
fn one_hot(index: &Tensor, classes: usize, dtype: DType) -> Result<Tensor> {
    index.rename(None).one_hot_with(OneHotOptions::new().num_classes(classes as isize)).to(dtype)
}

impl Distribution for OneHotCategorical {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::OneHot
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        counted(x, self.logits())?.sum(-1)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let index = self.categorical.indices(&shape.sizes[..shape.sizes.len() - 1])?;
        renamed(&one_hot(&index, self.categorical.classes(), self.frame.dtype())?, &shape.names)
    }
    fn values(&self) -> Result<Tensor> {
        let classes = self.categorical.classes();
        TensorOptions::new().dtype(self.frame.dtype()).eye(classes, classes)
    }
    fn mean(&self) -> Result<Tensor> {
        Ok(self.probs().clone())
    }
    fn mode(&self) -> Result<Tensor> {
        let mode = one_hot(&self.categorical.mode()?, self.categorical.classes(), self.frame.dtype())?;
        renamed(&mode, self.probs().names())
    }
    fn variance(&self) -> Result<Tensor> {
        self.probs().mul(self.probs().neg().add(1.0)?)
    }
    fn entropy(&self) -> Result<Tensor> {
        self.categorical.entropy()
    }
}

/// The multinomial distribution of counts of `n` draws of a class: `n! / Π kᵢ! Π pᵢ^kᵢ`.
///
/// ```
/// use namegrad::distributions::Multinomial;
/// use namegrad::prelude::*;
/// let probs = Tensor::new([[0.25, 0.75], [0.5, 0.5]])?.refine_names(["N", "class"])?;
/// let x = Multinomial::new(8, &probs, "class")?;
/// assert_eq!(x.mean()?.to_vec::<f32>()?, [2.0, 6.0, 4.0, 4.0]);
/// assert_eq!(x.sample([("draw", 5)])?.sum("class")?.to_vec::<f32>()?, [8.0; 10]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Multinomial {
    total_count: usize,
    categorical: Categorical,
    frame: Frame,
}

impl Multinomial {
    /// The distribution of `total_count` draws with probabilities in proportion to `probs` along `dim`.
    ///
    /// # Errors
    /// As [`Categorical::new`].
    #[track_caller]
    pub fn new(total_count: usize, probs: impl Operand, dim: impl Into<Dim>) -> Result<Multinomial> {
        Multinomial::of(total_count, &probs, &dim.into(), false)
    }

    /// The distribution of `total_count` draws with probabilities `softmax(logits)` along `dim`.
    ///
    /// # Errors
    /// As [`Categorical::from_logits`].
    #[track_caller]
    pub fn from_logits(total_count: usize, logits: impl Operand, dim: impl Into<Dim>) -> Result<Multinomial> {
        Multinomial::of(total_count, &logits, &dim.into(), true)
    }

    #[track_caller]
    fn of(total_count: usize, given: &dyn Operand, dim: &Dim, is_logits: bool) -> Result<Multinomial> {
        const NAME: &str = "Multinomial";
        let categorical = Categorical::of(NAME, given, dim, is_logits)?;
        Ok(Multinomial { total_count, frame: categorical.frame_of_events(NAME), categorical })
    }

    /// The number of draws `n`.
    pub fn total_count(&self) -> usize {
        self.total_count
    }

    /// The probabilities, whose sum is 1, with the event dim at the end.
    pub fn probs(&self) -> &Tensor {
        self.categorical.probs()
    }

    /// The logarithms of the probabilities; see [`Categorical::logits`].
    pub fn logits(&self) -> &Tensor {
        self.categorical.logits()
    }
}

impl Distribution for Multinomial {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::CountsUpTo(self.total_count as f64)
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let total = x.sum(keep(-1))?;
        let parts =
            special::count_deviance(x, &total, self.logits())?.add(special::log_factorial_rest(x)?)?;
        special::log_factorial_rest(&total.squeeze(-1)?)?.sub(parts.sum(-1)?)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        random::multinomial(shape, self.probs(), self.total_count as f64)
    }
    fn mean(&self) -> Result<Tensor> {
        self.probs().mul(self.total_count as f64)
    }
    fn variance(&self) -> Result<Tensor> {
        self.probs().mul(self.probs().neg().add(1.0)?).mul(self.total_count as f64)
    }
    fn entropy(&self) -> Result<Tensor> {
        let n = self.total_count as f64;
        let of_one = self.categorical.entropy()?.mul(n)?;
        // -log n!, and for each class the mean of log k!
        let binomial = Binomial::new(n, self.probs())?;
        let values = binomial.listed()?; // [values, 1, ..]
        let factorials = values.add(1.0).lgamma()?;
        let weights = binomial.log_density(&values)?.exp()?;
        of_one.sub(libm::lgamma(n + 1.0)).add(weights.mul(factorials).sum(0).sum(-1)?)
    }
}

/// A smooth form of [`OneHotCategorical`], whose draws are shares with gradients: the softmax of
/// `(l + z) / t`, with the logits `l`, the temperature `t` and a `z` of Gumbel's distribution.
///
/// ```
/// use namegrad::distributions::RelaxedOneHotCategorical;
/// use namegrad::prelude::*;
/// let logits = Tensor::zeros([("N", 2), ("class", 3)])?.requiring_grad()?;
/// let x = RelaxedOneHotCategorical::from_logits(0.5, &logits, "class")?;
/// let shares = x.rsample([("draw", 4)])?;
/// assert!(shares.sum("class")?.allclose(&Tensor::ones([4, 2])?)?);
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Maddison, Mnih, Teh, *The Concrete Distribution* (2017); Jang, Gu, Poole, *Categorical Reparameterization
/// with Gumbel-Softmax* (2017).
#[derive(Clone, Debug)]
pub struct RelaxedOneHotCategorical {
    /// The temperature `t`, positive: draws are near 0 or 1 where it is small. It has no event dim.
    pub temperature: Tensor,
    categorical: Categorical,
    frame: Frame,
}

impl RelaxedOneHotCategorical {
    /// The distribution with this temperature and probabilities in proportion to `probs` along `dim`.
    ///
    /// # Errors
    /// As [`Categorical::new`]; [`ErrorKind::Value`] unless `temperature` is positive.
    #[track_caller]
    pub fn new(
        temperature: impl Operand,
        probs: impl Operand,
        dim: impl Into<Dim>,
    ) -> Result<RelaxedOneHotCategorical> {
        RelaxedOneHotCategorical::of(&temperature, &probs, &dim.into(), false)
    }

    /// The distribution with this temperature and probabilities `softmax(logits)` along `dim`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[track_caller]
    pub fn from_logits(
        temperature: impl Operand,
        logits: impl Operand,
        dim: impl Into<Dim>,
    ) -> Result<RelaxedOneHotCategorical> {
        RelaxedOneHotCategorical::of(&temperature, &logits, &dim.into(), true)
    }

    #[track_caller]
    fn of(
        temperature: &dyn Operand,
        given: &dyn Operand,
        dim: &Dim,
        is_logits: bool,
    ) -> Result<RelaxedOneHotCategorical> {
        const NAME: &str = "RelaxedOneHotCategorical";
        let categorical = Categorical::of(NAME, given, dim, is_logits)?;
        let temperature = temperature.operand_beside(categorical.frame.dtype())?.into_owned();
        check(NAME, "temperature", &Support::Positive, &temperature)?;
        let first = categorical.probs.select(-1, 0)?;
        unified(NAME, &["temperature", "logits"], &[&temperature, &first])?;
        Ok(RelaxedOneHotCategorical { temperature, frame: categorical.frame_of_events(NAME), categorical })
    }

    /// The probabilities, whose sum is 1, with the event dim at the end.
    pub fn probs(&self) -> &Tensor {
        self.categorical.probs()
    }

    /// The logarithms of the probabilities; see [`Categorical::logits`].
    pub fn logits(&self) -> &Tensor {
        self.categorical.logits()
    }

    /// The temperature with an event dim.
    #[track_caller]
    fn temperatures(&self) -> Result<Tensor> {
        let mut options = UnsqueezeOptions::new();
        if let Some(name) = self.frame.event().names.get(0) {
            options = options.name(name);
        }
        self.temperature.unsqueeze_with(-1, options)
    }
}

impl Distribution for RelaxedOneHotCategorical {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Simplex
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let tiny = open_unit(x.dtype()).0;
        let (y, classes) = (x.clamp_min(tiny).log()?, self.categorical.classes() as f64);
        let scores = self.logits().sub(y.mul(self.temperatures()?)?)?.log_softmax(-1)?;
        let scale = self.temperature.log().mul(classes - 1.0).add(libm::lgamma(classes))?;
        scores.sub(&y)?.sum(-1)?.add(scale)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let gumbel = random::exponential(shape, self.frame.dtype())?.log().neg()?;
        let shares = self.logits().add(gumbel).div(self.temperatures()?)?.softmax(-1)?;
        shares.clamp_min(open_unit(shares.dtype()).0) // the density of 0 is none
    }
    fn has_rsample(&self) -> bool {
        true
    }
}

/// The shape of the classes alone.
impl Categorical {
    pub(crate) fn class_shape(&self) -> Shape {
        let shape = self.parameter_shape();
        let dims = shape.sizes.len();
        part(&shape, dims - 1..dims)
    }
}
