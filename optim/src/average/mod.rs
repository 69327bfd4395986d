//! [`AveragedModel`], an average of a model over its training. `rule.rs` has the formulas, `state.rs` what is
//! saved.

mod rule;
mod state;

pub use state::{AverageState, Averaged};

use namegrad_autograd::{Parameter, Tensor};
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use namegrad_nn::{Buffer, Module, functional_call};
use rule::Rule;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::panic::Location;

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
    use_buffers: bool,
    updates: u64,
    parameters: BTreeMap<String, Averaged>,
    buffers: BTreeMap<String, Averaged>,
}

/// A builder for [`AveragedModel`]; see [`AveragedModel::builder`].
pub struct AveragedModelBuilder<'m> {
    model: &'m dyn Module,
    rule: Rule,
    use_buffers: bool,
}

impl AveragedModelBuilder<'_> {
    /// An exponential moving average. By default, the average is equal.
    pub fn ema(mut self, decay: f64) -> Self {
        self.rule = Rule::Ema(decay);
        self
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
    pub fn weight(mut self, weight: impl Fn(u64) -> f64 + Send + Sync + 'static) -> Self {
        self.rule = Rule::Weight(Box::new(weight));
        self
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
        mut self,
        formula: impl Fn(&NamedTensor, &NamedTensor, u64) -> Result<NamedTensor> + Send + Sync + 'static,
    ) -> Self {
        self.rule = Rule::Custom(Box::new(formula));
        self
    }

    /// Whether buffers are averaged like parameters. By default, they are those of the model at the last
    /// update.
    pub fn use_buffers(mut self, use_buffers: bool) -> Self {
        self.use_buffers = use_buffers;
        self
    }

    /// Builds the average, which has the values of the model until its first update.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a decay is not between 0 and 1, or the model has no parameters;
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn build(self) -> Result<AveragedModel> {
        let AveragedModelBuilder { model, rule, use_buffers } = self;
        rule.check()?;
        let places = Places::of(model);
        if places.parameters.is_empty() {
            return Err(Error::new(ErrorKind::Value, OP, "the model has no parameters to average")
                .with_repair(
                    "give it a module with parameters, such as Linear::new((\"in\", 3), (\"out\", 2))?",
                ));
        }
        let (mut parameters, mut buffers) = (BTreeMap::new(), BTreeMap::new());
        for (path, parameter) in places.parameters {
            parameters.insert(path, Averaged::new(parameter.try_tensor()?.value())?);
        }
        for (path, buffer) in places.buffers {
            buffers.insert(path, Averaged::new(&buffer.value())?);
        }
        Ok(AveragedModel { rule, use_buffers, updates: 0, parameters, buffers })
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
        AveragedModelBuilder { model, rule: Rule::Equal, use_buffers: false }
    }

    /// Includes the current parameters of the model. Call it after a step, or after an epoch.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the model has lost a parameter, [`ErrorKind::Shape`] and
    /// [`ErrorKind::NameMismatch`] if one has other dims than before, [`ErrorKind::Value`] if your own weight
    /// is not finite, or the errors of your own formula. Nothing changes then.
    #[track_caller]
    pub fn update_parameters(&mut self, model: &dyn Module) -> Result<()> {
        let caller = Location::caller();
        self.include(model).map_err(|error| error.of("update_parameters").at(caller))
    }

    fn include(&mut self, model: &dyn Module) -> Result<()> {
        let places = Places::of(model);
        let mut values = Vec::new();
        for (path, parameter) in places.parameters {
            values.push((path, parameter.try_tensor()?.into_value()));
        }
        let buffers = places.buffers.into_iter().map(|(path, buffer)| (path, buffer.value()));
        let buffers: Vec<(String, NamedTensor)> = buffers.collect();
        check(&self.parameters, &values)?;
        check(&self.buffers, &buffers)?;
        // Only the user's formula or weight can fail in the middle.
        let before = matches!(self.rule, Rule::Custom(_) | Rule::Weight(_));
        let before = before.then(|| (self.parameters.clone(), self.buffers.clone()));
        let result = self.add(&values, &buffers);
        if let (Err(_), Some((parameters, buffers))) = (&result, before) {
            (self.parameters, self.buffers) = (parameters, buffers);
        }
        result?;
        self.updates += 1;
        Ok(())
    }

    fn add(&mut self, values: &[(String, NamedTensor)], buffers: &[(String, NamedTensor)]) -> Result<()> {
        for (path, value) in values {
            entry(&mut self.parameters, path, value)?.include(&self.rule, value)?;
        }
        for (path, value) in buffers {
            let buffer = entry(&mut self.buffers, path, value)?;
            match self.use_buffers {
                true => buffer.include(&self.rule, value)?,
                false => buffer.value = state::wide(value)?,
            }
        }
        Ok(())
    }

    /// The number of updates so far.
    pub fn n_averaged(&self) -> u64 {
        self.updates
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
        let caller = Location::caller();
        let values = self.values(model).map_err(|error| error.of("scope").at(caller))?;
        functional_call(model, values, f)
    }

    /// The averages in the dtypes of the model.
    fn values(&self, model: &dyn Module) -> Result<Vec<(String, Tensor)>> {
        let places = Places::of(model);
        let mut values = Vec::new();
        for (path, parameter) in &places.parameters {
            if let Some(average) = self.parameters.get(path) {
                values.push((path.clone(), Tensor::constant(average.value.to(parameter.dtype())?)));
            }
        }
        for (path, buffer) in &places.buffers {
            if let Some(average) = self.buffers.get(path) {
                values.push((path.clone(), Tensor::constant(average.value.to(buffer.value().dtype())?)));
            }
        }
        let all = self.parameters.keys().chain(self.buffers.keys());
        let known: HashSet<&String> = values.iter().map(|(path, _)| path).collect();
        missing(all.filter(|path| !known.contains(path)))?;
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
        let caller = Location::caller();
        self.copy(model).map_err(|error| error.of("copy_to").at(caller))
    }

    fn copy(&self, model: &dyn Module) -> Result<()> {
        let values: BTreeMap<String, Tensor> = self.values(model)?.into_iter().collect();
        let places = Places::of(model);
        for (own, place) in [
            (
                &self.parameters,
                places.parameters.iter().map(|(path, own)| (path, own.shape())).collect::<Vec<_>>(),
            ),
            (&self.buffers, places.buffers.iter().map(|(path, own)| (path, own.value().shape())).collect()),
        ] {
            for (path, shape) in place {
                if let Some(average) = own.get(path) {
                    state::check_dims(path, &average.value, &shape)?;
                }
            }
        }
        for (path, parameter) in &places.parameters {
            if let Some(value) = values.get(path) {
                parameter.set(value)?;
            }
        }
        for (path, buffer) in &places.buffers {
            if let Some(value) = values.get(path) {
                buffer.set(value)?;
            }
        }
        Ok(())
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
        let buffers = self.scope(model, || {
            crate::batch_norm::update(model, batches, forward, caller)?;
            let buffers = Places::of(model).buffers.into_iter();
            Ok(buffers.map(|(path, buffer)| (path, buffer.value())).collect::<Vec<_>>())
        })?;
        for (path, value) in buffers {
            if let Some(buffer) = self.buffers.get_mut(&path) {
                buffer.value = state::wide(&value).map_err(|error| error.at(caller))?;
            }
        }
        Ok(())
    }

    /// Everything that the next averages depend on. Nothing is copied, and later updates do not change it.
    pub fn state_dict(&self) -> AverageState {
        AverageState {
            rule: self.rule.name().into(),
            decay: self.rule.decay(),
            use_buffers: self.use_buffers,
            n_averaged: self.updates,
            parameters: self.parameters.clone(),
            buffers: self.buffers.clone(),
        }
    }

    /// Continues from a state, with its decay. The state of the same kind of average and of a model with the
    /// same paths fits; an average with your own function goes on with that function.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the state is of another average or another model; the message says what
    /// differs. Nothing changes then.
    #[track_caller]
    pub fn load_state_dict(&mut self, state: &AverageState) -> Result<()> {
        let caller = Location::caller();
        let fitted = state.fitted(self).map_err(|error| error.at(caller))?;
        (self.parameters, self.buffers) = fitted;
        if let (Rule::Ema(own), Some(decay)) = (&mut self.rule, state.decay) {
            *own = decay;
        }
        self.updates = state.n_averaged;
        Ok(())
    }
}

impl fmt::Debug for AveragedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AveragedModel")
            .field("rule", &self.rule.name())
            .field("decay", &self.rule.decay())
            .field("n_averaged", &self.updates)
            .field("parameters", &self.parameters.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AveragedModelBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AveragedModelBuilder").field("rule", &self.rule.name()).finish_non_exhaustive()
    }
}

/// The parameters and buffers of a model with their first paths.
struct Places {
    parameters: Vec<(String, Parameter)>,
    buffers: Vec<(String, Buffer)>,
}

impl Places {
    fn of(model: &dyn Module) -> Places {
        let mut parameters = model.named_parameters();
        let mut seen = HashSet::new();
        parameters.retain(|(_, parameter)| seen.insert(parameter.id()));
        let mut buffers = model.named_buffers();
        let mut seen = HashSet::new();
        buffers.retain(|(_, buffer)| seen.insert(buffer.id()));
        Places { parameters, buffers }
    }
}

/// Checks that the values of a model fit what was averaged so far.
fn check(own: &BTreeMap<String, Averaged>, values: &[(String, NamedTensor)]) -> Result<()> {
    let mut known: HashSet<&String> = own.keys().collect();
    for (path, value) in values {
        if let Some(average) = own.get(path) {
            state::check_dims(path, &average.value, &value.shape())?;
            known.remove(path);
        }
    }
    let mut lost: Vec<&String> = known.into_iter().collect();
    lost.sort();
    missing(lost.into_iter())
}

/// An error if there are paths that a model lacks.
fn missing<'a>(paths: impl Iterator<Item = &'a String>) -> Result<()> {
    let paths: Vec<String> = paths.map(|path| format!("'{path}'")).collect();
    if paths.is_empty() {
        return Ok(());
    }
    let message = format!("the model has no {}, which was averaged before", paths.join(", "));
    Err(Error::new(ErrorKind::Value, OP, message)
        .with_repair("AveragedModel::new(&model)?, for another model"))
}

/// The average at a path, which is made if the model did not have it before.
fn entry<'a>(
    all: &'a mut BTreeMap<String, Averaged>,
    path: &str,
    value: &NamedTensor,
) -> Result<&'a mut Averaged> {
    if !all.contains_key(path) {
        all.insert(path.to_string(), Averaged::new(value)?);
    }
    Ok(all.get_mut(path).expect("it was inserted"))
}
