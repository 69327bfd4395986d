//! [`AverageState`], everything that the next averages depend on, as a value and as a file.

use super::*;
use crate::engine::{check_known, tensor};

/// The metadata key of a file under which the state is stored.
const KEY: &str = "average";

/// The average at one path.
#[derive(Clone, Debug)]
pub struct Averaged {
    /// The average; of a half type, it is in `f32`.
    pub value: NamedTensor,
    /// The number of values in it.
    pub count: u64,
}

/// Everything that the next averages of an [`AveragedModel`] depend on.
///
/// In a file, the averages are tensors called by their paths, so the file is also that of a
/// [`StateDict`](namegrad_nn::StateDict), which a model can load. Everything else is JSON under the metadata
/// key `average`.
///
/// # Examples
/// ```
/// use namegrad::optim::{AverageState, AveragedModel};
/// use namegrad::prelude::*;
/// let model = Linear::new(("in", 2), ("out", 1))?;
/// let mut average = AveragedModel::ema(&model, 0.99)?;
/// average.update_parameters(&model)?;
/// # let path = std::env::temp_dir().join(format!("namegrad-doc-ema-{}.safetensors", std::process::id()));
/// average.state_dict().save(&path)?;
///
/// let mut resumed = AveragedModel::ema(&model, 0.99)?;
/// resumed.load_state_dict(&AverageState::load(&path)?)?;
/// assert_eq!(resumed.n_averaged(), 1);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct AverageState {
    /// The kind of average: `equal`, `ema`, `weight` or `avg_fn`.
    pub rule: String,
    /// The decay of an exponential moving average.
    pub decay: Option<f64>,
    /// Whether buffers are averaged.
    pub use_buffers: bool,
    /// The number of updates so far.
    pub n_averaged: u64,
    /// The averages of parameters by path.
    pub parameters: BTreeMap<String, Averaged>,
    /// The buffers by path.
    pub buffers: BTreeMap<String, Averaged>,
}

impl AverageState {
    /// The fields, with how often each parameter and each buffer was averaged.
    fn fields<'s>(&'s mut self, counts: &'s mut [Json; 2]) -> StateFields<'s> {
        let [parameters, buffers] = counts;
        StateFields {
            key: KEY,
            what: "the state of an average",
            fields: vec![
                ("rule", &mut self.rule),
                ("decay", &mut self.decay),
                ("use_buffers", &mut self.use_buffers),
                ("n_averaged", &mut self.n_averaged),
                ("parameters", parameters),
                ("buffers", buffers),
            ],
        }
    }

    /// The content of the file that [`save`](Self::save) writes.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the decay is NaN or infinite.
    #[track_caller]
    pub fn to_file(&self) -> Result<TensorFile> {
        let (mut counts, mut tensors) = (<[Json; 2]>::default(), BTreeMap::new());
        for (all, counts) in [&self.parameters, &self.buffers].into_iter().zip(&mut counts) {
            let mut fields = Vec::new();
            for (path, Averaged { value, count }) in entries(all) {
                fields.push((path.as_str(), Json::from(*count)));
                insert(&mut tensors, path.clone(), value.clone());
            }
            *counts = object(fields);
        }
        Ok(TensorFile { tensors, ..self.clone().fields(&mut counts).to_file()? })
    }

    /// The state in a file's content.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if it is not the state of an average.
    #[track_caller]
    pub fn from_file(file: &TensorFile) -> Result<AverageState> {
        let (mut state, mut counts) = (AverageState::default(), <[Json; 2]>::default());
        state.fields(&mut counts).read(file)?;
        for (averages, counts) in [&mut state.parameters, &mut state.buffers].into_iter().zip(&counts) {
            for (path, _) in counts.as_object().map(entries).unwrap_or_default() {
                let (value, count) = (tensor(file, path)?, Fields::new(KEY, counts).get(path)?);
                averages.insert(path.clone(), Averaged { value, count });
            }
        }
        check_known(file, &state.to_file()?, "is neither a parameter nor a buffer")?;
        Ok(state)
    }

    /// The average at a place, which begins with the value there.
    pub(super) fn average(&mut self, place: &AveragedPlace) -> Result<&mut Averaged> {
        let averages = if place.is_buffer() { &mut self.buffers } else { &mut self.parameters };
        if value_of(averages, &place.path).is_none() {
            averages.insert(place.path.clone(), Averaged { value: place.wide()?, count: 0 });
        }
        Ok(averages.get_mut(&place.path).expect("it was inserted"))
    }

    /// The state in the dtypes of `own`, if it fits that.
    pub(super) fn fitted(&self, own: &AverageState) -> Result<AverageState> {
        let mut differences = Vec::new();
        if own.rule != self.rule {
            differences.push(format!("the average is '{}' here, '{}' in the state", own.rule, self.rule));
        }
        compare("use_buffers", &own.use_buffers.into(), &self.use_buffers.into(), &mut differences);
        if check_decay(self.decay).is_err() {
            differences.push(format!("the decay in the state is {:?}", self.decay.unwrap_or_default()));
        }
        let mut fitted = AverageState { decay: self.decay.or(own.decay), ..self.clone() };
        let all = [(&own.parameters, &mut fitted.parameters), (&own.buffers, &mut fitted.buffers)];
        for (own, fitted) in all {
            for (path, Averaged { value: own, .. }) in entries(own) {
                let Some(Averaged { value, .. }) = fitted.get_mut(path) else {
                    differences.push(format!("'{path}' is missing in the state"));
                    continue;
                };
                if let Err(error) = check_dims(path, value, &own.shape()) {
                    differences.push(error.message().to_string());
                } else if own.dtype().is_floating_point() != value.dtype().is_floating_point() {
                    differences.push(format!("'{path}' is {:?} in the state", value.dtype()));
                } else {
                    *value = value.to(own.dtype())?.with_names(own.names().clone());
                }
            }
            for (path, _) in entries(&*fitted).into_iter().filter(|(path, _)| value_of(own, path).is_none()) {
                differences.push(format!("'{path}' is only in the state"));
            }
        }
        Error::ensure(differences.is_empty(), ErrorKind::Value, "load_state_dict", || {
            format!("the state is of another average: {}", namegrad_core::joined(&differences, "; "))
        })?;
        Ok(fitted)
    }
}

/// Checks that an average fits a value at a path.
pub(super) fn check_dims(path: &str, average: &NamedTensor, value: &Shape) -> Result<()> {
    let (own, ndim) = (average.shape(), average.ndim());
    let has_sizes = own.sizes == value.sizes;
    if has_sizes && apart(own.names.iter(ndim), value.names.iter(ndim)).is_none() {
        return Ok(());
    }
    let message = format!("'{path}' is {own} in the average and {value} in the model");
    let kind = if has_sizes { ErrorKind::NameMismatch } else { ErrorKind::Shape };
    let repair = if has_sizes { "" } else { "AveragedModel::new(&model)?, after a change of its sizes" };
    Err(Error::new(kind, OP, message).with_operands([own, value.clone()]).with_repair(repair))
}
