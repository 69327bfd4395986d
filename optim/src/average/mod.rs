//! [`AveragedModel`], an average of a model over its training. `rule.rs` has the formulas, `state.rs` the state
//! that is saved, and `batch_norm.rs` the running statistics of an average.

mod batch_norm;
mod rule;
mod state;

pub use batch_norm::update_batch_norm;
pub use state::{AverageState, Averaged};

use super::*;
use namegrad_nn::places::{EntryPlace, places_of};
use namegrad_nn::{Module, functional_call};
use rule::{Rule, check_decay};

/// The average of a model's parameters over the steps of its training, which often does better on new data
/// than the last parameters: `torch.optim.swa_utils.AveragedModel`.
///
/// | average | formula, from the second update on | |
/// | --- | --- | --- |
/// | [`ema`](Self::ema) | `a ← decay · a + (1 - decay) · p` | exponential moving average |
/// | [`new`](Self::new) | `a ← a + (p - a) / (n + 1)` | equal average of the `n` updates so far (SWA) |
/// | [`weight`](AveragedModelBuilder::weight) | `a ← a + w(n) · (p - a)` | your own weights |
/// | [`avg_fn`](AveragedModelBuilder::avg_fn) | `a ← f(a, p, n)` | your own formula |
///
/// The first update copies the parameters. Averages of half types are in `f32`. A parameter that several
/// layers share is averaged once, and one that is added to the model later joins with the next update.
///
/// To use the average, run the model in a [`scope`](Self::scope), or copy the average to a copy of the model
/// with [`copy_to`](Self::copy_to).
///
/// # Buffers
/// The buffers are those of the model at the last update, as in PyTorch. The running statistics of a batch
/// normalization do not fit averaged weights: compute them again with
/// [`update_batch_norm`](Self::update_batch_norm), or average the buffers as well with
/// [`use_buffers`](AveragedModelBuilder::use_buffers).
///
/// # Source
/// Izmailov et al., *Averaging Weights Leads to Wider Optima and Better Generalization* (arXiv:1803.05407);
/// Polyak, Juditsky, *Acceleration of Stochastic Approximation by Averaging* (1992).
///
/// # Examples
/// ```
/// use namegrad::optim::AveragedModel;
/// use namegrad::prelude::*;
/// let model = Linear::new(("in", 2), ("out", 1))?;
/// let mut optimizer = Sgd::builder(model.parameters()).lr(0.1).build()?;
/// let mut average = AveragedModel::ema(&model, 0.9)?;
/// let x = Tensor::randn([("N", 16), ("in", 2)])?;
/// let y = x.sum(keep("in"))?.rename([("in", "out")])?;
/// for _ in 0..100 {
///     optimizer.step_with(&mut || F::mse_loss(&model.forward(&x)?, &y))?;
///     average.update_parameters(&model)?;
/// }
/// let loss = average.scope(&model, || F::mse_loss(&model.forward(&x)?, &y))?;
/// assert!(loss.item::<f64>()? < 0.1);
/// # Ok::<(), Error>(())
/// ```
///
/// As a separate model:
/// ```
/// # use namegrad::optim::AveragedModel;
/// # use namegrad::prelude::*;
/// # let model = Linear::new(("in", 2), ("out", 1))?;
/// # let mut average = AveragedModel::new(&model)?;
/// let averaged = model.deep_copy()?;
/// average.copy_to(&averaged)?;
/// # let file = format!("namegrad-doc-average-{}.safetensors", std::process::id());
/// # let path = std::env::temp_dir().join(file);
/// averaged.state_dict().save(&path)?;
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), Error>(())
/// ```
pub struct AveragedModel {
    rule: Rule,
    state: AverageState,
}

/// A builder for [`AveragedModel`]; see [`AveragedModel::builder`].
pub struct AveragedModelBuilder<'m> {
    model: &'m dyn Module,
    rule: Rule,
    decay: Option<f64>,
    use_buffers: bool,
}

impl AveragedModelBuilder<'_> {
    /// An exponential moving average. By default, the average is equal.
    pub fn ema(self, decay: f64) -> Self {
        AveragedModelBuilder { rule: Rule::Ema, decay: Some(decay), ..self }
    }

    /// The weight of the parameters in the update after `n` others, which moves the average by that part of
    /// the way: `a ← a + w(n) · (p - a)`. An exponential moving average that starts faster:
    ///
    /// ```
    /// use namegrad::optim::AveragedModel;
    /// use namegrad::prelude::*;
    /// let model = Linear::new(("in", 2), ("out", 1))?;
    /// let decay = |n: u64| f64::min(0.999, (1.0 + n as f64) / (10.0 + n as f64));
    /// let mut average = AveragedModel::builder(&model).weight(move |n| 1.0 - decay(n)).build()?;
    /// average.update_parameters(&model)?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn weight(self, weight: impl Fn(u64) -> f64 + Send + Sync + 'static) -> Self {
        AveragedModelBuilder { rule: Rule::Weight(Box::new(weight)), decay: None, ..self }
    }

    /// Any formula, of the average, the parameter and the number of updates before this one.
    ///
    /// ```
    /// use namegrad::optim::AveragedModel;
    /// use namegrad::prelude::*;
    /// let model = Linear::new(("in", 2), ("out", 1))?;
    /// let builder = AveragedModel::builder(&model);
    /// let mut average = builder.avg_fn(|average, parameter, _| average.maximum(parameter)).build()?;
    /// average.update_parameters(&model)?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn avg_fn(
        self,
        formula: impl Fn(&NamedTensor, &NamedTensor, u64) -> Result<NamedTensor> + Send + Sync + 'static,
    ) -> Self {
        AveragedModelBuilder { rule: Rule::Custom(Box::new(formula)), decay: None, ..self }
    }

    /// Whether buffers are averaged like parameters. By default, they are those of the model at the last
    /// update.
    pub fn use_buffers(self, use_buffers: bool) -> Self {
        AveragedModelBuilder { use_buffers, ..self }
    }

    /// Builds the average, which has the values of the model until its first update.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a decay is not between 0 and 1, or the model has no parameters;
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn build(self) -> Result<AveragedModel> {
        let AveragedModelBuilder { model, rule, decay, use_buffers } = self;
        check_decay(decay)?;
        let places = places(model);
        let is_empty = places.iter().all(AveragedPlace::is_buffer);
        Error::ensure(!is_empty, ErrorKind::Value, OP, || "the model has no parameters to average")?;
        let start = AverageState::default();
        let mut state = AverageState { rule: rule.name().into(), decay, use_buffers, ..start };
        for place in &places {
            state.average(place)?;
        }
        Ok(AveragedModel { rule, state })
    }
}

const OP: &str = "AveragedModel";

impl AveragedModel {
    /// An equal average of all updates (stochastic weight averaging).
    ///
    /// # Errors
    /// Same as [`AveragedModelBuilder::build`].
    #[track_caller]
    pub fn new(model: &dyn Module) -> Result<AveragedModel> {
        AveragedModel::builder(model).build()
    }

    /// An exponential moving average: `decay` of the average stays in an update. 0.999 is usual.
    ///
    /// # Errors
    /// Same as [`AveragedModelBuilder::build`].
    #[track_caller]
    #[doc(alias = "get_ema_multi_avg_fn")]
    pub fn ema(model: &dyn Module, decay: f64) -> Result<AveragedModel> {
        AveragedModel::builder(model).ema(decay).build()
    }

    /// A builder for other averages.
    pub fn builder(model: &dyn Module) -> AveragedModelBuilder<'_> {
        AveragedModelBuilder { model, rule: Rule::Equal, decay: None, use_buffers: false }
    }

    /// Includes the current parameters of the model. Call it after a step, or after an epoch.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the model has lost a parameter, [`ErrorKind::Shape`] and
    /// [`ErrorKind::NameMismatch`] if one has other dims than before, [`ErrorKind::Value`] if your own weight
    /// is not finite, or the errors of your own formula. Nothing changes then.
    #[track_caller]
    pub fn update_parameters(&mut self, model: &dyn Module) -> Result<()> {
        at_caller(|| {
            let places = places(model);
            self.fitting_pairs(&places)?;
            // Only the user's formula or weight can fail in the middle.
            let before = matches!(self.rule, Rule::Custom(_) | Rule::Weight(_)).then(|| self.state.clone());
            let result = self.add(&places);
            if let (Err(_), Some(before)) = (&result, before) {
                self.state = before;
            }
            result
        })
        .map_err(|error| error.of("update_parameters"))
    }

    fn add(&mut self, places: &[AveragedPlace]) -> Result<()> {
        let (decay, use_buffers) = (self.state.decay, self.state.use_buffers);
        for place in places {
            let average = self.state.average(place)?;
            match place.is_buffer() && !use_buffers {
                true => average.value = place.wide()?,
                false => average.include(&self.rule, decay, &place.value)?,
            }
        }
        self.state.n_averaged += 1;
        Ok(())
    }

    /// The places that have an average, each with it. It is an error if a place is missing.
    fn pairs<'a>(&'a self, places: &'a [AveragedPlace]) -> Result<AveragedPairs<'a>> {
        let AverageState { parameters, buffers, .. } = &self.state;
        let mut pairs = Vec::new();
        for place in places {
            let averages = if place.is_buffer() { buffers } else { parameters };
            if let Some(average) = value_of(averages, &place.path) {
                pairs.push((average, place));
            }
        }
        if pairs.len() == parameters.len() + buffers.len() {
            return Ok(pairs);
        }
        let mut missing = Vec::new();
        for (path, _) in [entries(parameters), entries(buffers)].concat() {
            if !pairs.iter().any(|(_, place)| place.path == *path) {
                missing.push(format!("'{path}'"));
            }
        }
        let message =
            format!("the model has no {}, which was averaged before", namegrad_core::joined(&missing, ", "));
        Err(refused(OP, message, "AveragedModel::new(&model)?, for another model"))
    }

    /// The pairs, whose dims fit each other.
    fn fitting_pairs<'a>(&'a self, places: &'a [AveragedPlace]) -> Result<AveragedPairs<'a>> {
        let pairs = self.pairs(places)?;
        for (average, place) in &pairs {
            state::check_dims(&place.path, &average.value, &place.value.shape())?;
        }
        Ok(pairs)
    }

    /// The number of updates so far.
    pub fn n_averaged(&self) -> u64 {
        self.state.n_averaged
    }

    /// Runs `f` with the averages in place of the parameters and buffers of the model. Afterwards, also after
    /// an error or a panic, the model is as before.
    ///
    /// It is a [`functional_call`]: the averages hold for this thread alone, and changes of buffers in `f`
    /// are dropped. `f` computes no gradients of parameters. Call `model.eval()` before if there are layers
    /// such as dropout.
    ///
    /// # Errors
    /// The errors of `f`, and of [`functional_call`] if the model has other parameters than those averaged.
    #[track_caller]
    pub fn scope<R>(&self, model: &dyn Module, f: impl FnOnce() -> Result<R>) -> Result<R> {
        let values = at_caller(|| self.values(model)).map_err(|error| error.of("scope"))?;
        functional_call(model, values, f)
    }

    /// The averages in the dtypes of the model.
    fn values(&self, model: &dyn Module) -> Result<Vec<(String, Tensor)>> {
        let mut values = Vec::new();
        for (average, place) in self.pairs(&places(model))? {
            values.push((place.path.clone(), Tensor::constant(average.value.to(place.value.dtype())?)));
        }
        Ok(values)
    }

    /// Sets the parameters and buffers of a model to the averages: of a [deep copy](Module::deep_copy), or of
    /// the model itself at the end of training.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the model lacks a parameter that is averaged, [`ErrorKind::Shape`] and
    /// [`ErrorKind::NameMismatch`] if one has other dims. Nothing changes then.
    #[track_caller]
    pub fn copy_to(&self, model: &dyn Module) -> Result<()> {
        at_caller(|| {
            let places = places(model);
            for (average, place) in self.fitting_pairs(&places)? {
                place.target.set(average.value.to(place.value.dtype())?)?;
            }
            Ok(())
        })
        .map_err(|error| error.of("copy_to"))
    }

    /// Computes the running statistics of the averaged model from data, as
    /// [`update_batch_norm`](crate::update_batch_norm) does. Call it after the last update: unless buffers
    /// are averaged too, the next update replaces the statistics by those of the model. The model itself does
    /// not change.
    ///
    /// ```
    /// use namegrad::optim::AveragedModel;
    /// use namegrad::prelude::*;
    /// let model = Sequential::new().then(Linear::new(("in", 2), ("h", 3))?).then(BatchNorm::new(("h", 3))?);
    /// let mut average = AveragedModel::new(&model)?;
    /// average.update_parameters(&model)?;
    /// let batches = vec![Tensor::randn([("N", 8), ("in", 2)])?; 4];
    /// average.update_batch_norm(&model, &batches, |batch| model.forward(batch))?;
    /// model.eval();
    /// let y = average.scope(&model, || model.forward(&batches[0]))?;
    /// assert!(y.mean("N")?.abs()?.amax(..)?.item::<f64>()? < 1e-5);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`update_batch_norm`](crate::update_batch_norm). Nothing changes then.
    #[track_caller]
    pub fn update_batch_norm<B, R>(
        &mut self,
        model: &dyn Module,
        batches: impl IntoIterator<Item = B>,
        forward: impl FnMut(B) -> Result<R>,
    ) -> Result<()> {
        let caller = Location::caller();
        let places = self.scope(model, || {
            batch_norm::update(model, batches, forward, caller)?;
            Ok(places(model))
        })?;
        self.take_buffers(places).map_err(|error| error.at(caller))
    }

    fn take_buffers(&mut self, places: Vec<AveragedPlace>) -> Result<()> {
        for place in places.iter().filter(|place| place.is_buffer()) {
            self.state.average(place)?.value = place.wide()?;
        }
        Ok(())
    }

    /// Everything that the next averages depend on. Nothing is copied, and later updates do not change it.
    pub fn state_dict(&self) -> AverageState {
        self.state.clone()
    }

    /// Continues from a state, with its decay. The state of the same kind of average and of a model with the
    /// same paths fits; an average with your own function goes on with that function.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the state is of another average or another model; the message says what
    /// differs. Nothing changes then.
    #[track_caller]
    pub fn load_state_dict(&mut self, state: &AverageState) -> Result<()> {
        self.state = at_caller(|| state.fitted(&self.state))?;
        Ok(())
    }
}

impl fmt::Debug for AveragedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AveragedModel")
            .field("rule", &self.state.rule)
            .field("decay", &self.state.decay)
            .field("n_averaged", &self.state.n_averaged)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AveragedModelBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AveragedModelBuilder").field("rule", &self.rule.name()).finish_non_exhaustive()
    }
}

/// A parameter or a buffer of a model with its first path.
struct AveragedPlace {
    path: String,
    target: EntryPlace,
    value: NamedTensor,
}

/// Averages with their places in a model.
type AveragedPairs<'a> = Vec<(&'a Averaged, &'a AveragedPlace)>;

impl AveragedPlace {
    /// The value as averages are kept: in `f32` if it is of a half type.
    fn wide(&self) -> Result<NamedTensor> {
        self.value.to(self.value.dtype().compute())
    }

    fn is_buffer(&self) -> bool {
        matches!(self.target, EntryPlace::Buffer(_))
    }
}

/// The parameters and buffers of a model, each once.
fn places(model: &dyn Module) -> Vec<AveragedPlace> {
    let (mut places, mut seen) = (Vec::new(), Ids::default());
    for (at, (path, target)) in places_of(model).into_iter().enumerate() {
        if seen.first(target.id(), at) == at {
            let value = target.value();
            places.push(AveragedPlace { path, target, value });
        }
    }
    places
}
