//! [`Log`], to which a training run writes what it measures, and [`History`], which reads it back.
//!
//! `value` has what is logged, `builder` how a log is opened, and `appender` how files stay whole. Each
//! format has a module: `json`, `csv` and `events`, which needs the feature `tensorboard`.

mod appender;
mod builder;
mod csv;
#[cfg(feature = "tensorboard")]
pub mod events;
mod histogram;
mod history;
mod json;
mod sink;
mod value;

pub use self::builder::LogBuilder;
pub use self::histogram::Histogram;
pub use self::history::History;
pub use self::value::{Content, Hparam, Image, Measurement, Record, Step};

use self::sink::Sink;
use self::value::whole;
use namegrad_autograd::Parameter;
#[cfg(feature = "tensorboard")]
use namegrad_core::NamedTensor;
use namegrad_core::{Error, ErrorKind, Result};
use namegrad_nn::Module;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::path::{Path, PathBuf};

/// The buckets of the histograms of parameters and gradients.
const BUCKETS: usize = 64;

/// Writes what a training run measures to files in a folder.
///
/// | | file | scalars | histograms | images | texts, hyperparameters |
/// | --- | --- | --- | --- | --- | --- |
/// | by default | `log.jsonl`, a JSON object in each line | yes | yes | no | yes |
/// | [`csv(true)`](LogBuilder::csv) | `log.csv`: columns `step`, `name`, `value` | yes | no | no | no |
/// | `tensorboard(true)` | an event file for TensorBoard | in `f32` | yes | yes | yes |
///
/// `tensorboard` needs the feature `tensorboard` of the crate.
///
/// [`History`] reads the numbers back, for plots. In Python, `pandas.read_json("log.jsonl", lines=True)` and
/// `pandas.read_csv("log.csv")` do. A number that is not finite is the string `"NaN"`, `"Infinity"` or
/// `"-Infinity"` in JSON, which has no other form for it, and `NaN`, `inf` or `-inf` in CSV.
///
/// # Files
/// Each call writes whole lines or records at once, without a buffer: after a kill of the process, the files
/// hold everything from calls that returned. [`sync`](Self::sync) makes it survive a loss of power. If a call
/// fails, as on a full disk, it leaves nothing in any of the files, and what was written before stays.
/// Training can go on, and so can the log when there is space again.
///
/// A new log in a folder with an earlier one moves the files of that to a folder `earlier-1`, `earlier-2` and
/// so on. [`resume_from`](LogBuilder::resume_from) continues the earlier log instead. Only one log at a time
/// can write to a folder.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::log::{History, Log};
/// # let folder = std::env::temp_dir().join(format!("namegrad-doc-log-{}", std::process::id()));
/// let mut log = Log::new(&folder)?; // such as "runs/mlp"
/// log.hparams([("lr", 0.5.into()), ("optimizer", "sgd".into())])?;
/// let weight = Parameter::new(Tensor::new(4.0)?)?;
/// let mut optimizer = Sgd::builder([weight.clone()]).lr(0.25).build()?;
/// for step in 0..3 {
///     let loss = optimizer.step_with(&mut || weight.tensor().square())?;
///     log.scalar("loss/train", step, &loss)?;
///     log.scalars(step, [("weight", weight.tensor()), ("loss/test", loss)])?;
/// }
///
/// let history = History::read(&folder)?;
/// assert_eq!(history.get("loss/train")?, [(0, 16.0), (1, 4.0), (2, 1.0)]);
/// # drop(log);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
pub struct Log {
    folder: PathBuf,
    sinks: Vec<Sink>,
    /// The hyperparameters that are in the files.
    hparams: String,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<_> = crate::list(self.sinks.iter().map(Sink::path));
        f.debug_struct("Log").field("files", &files).finish_non_exhaustive()
    }
}

impl Log {
    /// Starts a log with the file `log.jsonl` in a folder, which is created if need be.
    ///
    /// # Errors
    /// Same as [`LogBuilder::build`].
    #[track_caller]
    pub fn new(folder: impl AsRef<Path>) -> Result<Log> {
        Log::builder(folder).build()
    }

    /// A log with other files, or one that continues.
    pub fn builder(folder: impl AsRef<Path>) -> LogBuilder {
        LogBuilder::new(folder.as_ref())
    }

    /// The folder of the files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The files that are written.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.sinks.iter().map(Sink::path)
    }

    /// Logs a number: of any type, or a tensor with one element, such as a loss. A slash in the name makes
    /// groups: TensorBoard shows `loss/train` and `loss/test` side by side.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a tensor with more or fewer elements, [`ErrorKind::Value`] for a negative
    /// step, an empty name or one with control characters, [`ErrorKind::Io`] if a file cannot be written.
    #[doc(alias = "add_scalar")]
    #[track_caller]
    pub fn scalar(&mut self, name: &str, step: impl Step, value: impl Measurement) -> Result<()> {
        const OP: &str = "scalar";
        let value = value.number().map_err(|error| error.of(OP).context(format!("'{name}': ")))?;
        let step = whole(OP, step)?;
        self.write(OP, vec![record(name, step, Content::Scalar(value))])
    }

    /// Logs several numbers of a step, all or none.
    ///
    /// # Errors
    /// Same as [`scalar`](Self::scalar).
    #[doc(alias = "add_scalars")]
    #[track_caller]
    pub fn scalars<N: AsRef<str>>(
        &mut self,
        step: impl Step,
        values: impl IntoIterator<Item = (N, impl Measurement)>,
    ) -> Result<()> {
        const OP: &str = "scalars";
        let step = whole(OP, step)?;
        let mut records = Vec::new();
        let caller = Location::caller();
        for (name, value) in values {
            let name = name.as_ref();
            let value =
                value.number().map_err(|error| error.of(OP).context(format!("'{name}': ")).at(caller))?;
            records.push(record(name, step, Content::Scalar(value)));
        }
        self.write(OP, records)
    }

    /// Logs how often values occur.
    ///
    /// ```
    /// # use namegrad::prelude::*;
    /// # use namegrad::train::log::{Histogram, Log};
    /// # let folder = std::env::temp_dir().join(format!("namegrad-doc-histogram-{}", std::process::id()));
    /// # let mut log = Log::new(&folder)?;
    /// let activations = Tensor::randn([("N", 32), ("hidden", 8)])?;
    /// log.histogram("hidden", 0, Histogram::new(&activations, 30)?)?;
    /// # drop(log);
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if none of the files can hold a histogram; those of
    /// [`scalar`](Self::scalar).
    #[doc(alias = "add_histogram")]
    #[track_caller]
    pub fn histogram(&mut self, name: &str, step: impl Step, histogram: Histogram) -> Result<()> {
        const OP: &str = "histogram";
        let step = whole(OP, step)?;
        self.write(OP, vec![record(name, step, Content::Histogram(histogram))])
    }

    /// Logs histograms of all parameters of a model and of their gradients, under `parameters/<path>` and
    /// `gradients/<path>`. Call it after the backward pass. A parameter with several paths is logged under
    /// the first.
    ///
    /// # Errors
    /// Same as [`histogram`](Self::histogram); the errors of [`Parameter::try_tensor`].
    #[track_caller]
    pub fn parameters(&mut self, step: impl Step, model: &(impl Module + ?Sized)) -> Result<()> {
        const OP: &str = "parameters";
        let step = whole(OP, step)?;
        let records = of_parameters(OP, step, model.named_parameters());
        let caller = Location::caller();
        self.write(OP, records.map_err(|error| error.at(caller))?)
    }

    /// Logs a picture: a tensor with the dims `H`, `W` and, if it has colors, `C`, in any order. It has one
    /// channel (gray), two (gray and alpha), three (red, green, blue) or four (and alpha), with values from 0
    /// to 1, or from 0 to 255 if the dtype is `u8`. Values outside are clamped; NaN is 0.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] without `H` or `W`, [`ErrorKind::UnnamedNotAllowed`] for a dim without a
    /// name, [`ErrorKind::Shape`] for other dims, another number of channels or no pixels,
    /// [`ErrorKind::Unsupported`] if the log has no event file; those of [`scalar`](Self::scalar).
    #[cfg(feature = "tensorboard")]
    #[doc(alias = "add_image")]
    #[track_caller]
    pub fn image(&mut self, name: &str, step: impl Step, image: impl AsRef<NamedTensor>) -> Result<()> {
        const OP: &str = "image";
        let step = whole(OP, step)?;
        let image = crate::image::encode(OP, image.as_ref())?;
        self.write(OP, vec![record(name, step, Content::Image(image))])
    }

    /// Logs a text. TensorBoard renders it as Markdown.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if none of the files can hold a text; those of [`scalar`](Self::scalar).
    #[doc(alias = "add_text")]
    #[track_caller]
    pub fn text(&mut self, name: &str, step: impl Step, text: impl Into<String>) -> Result<()> {
        const OP: &str = "text";
        let step = whole(OP, step)?;
        self.write(OP, vec![record(name, step, Content::Text(text.into()))])
    }

    /// Logs the hyperparameters of the run, once at its start. TensorBoard compares runs by them. A resumed
    /// run can log the same ones again: they are written only if they differ from those in the log.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if none of the files can hold them; those of [`scalar`](Self::scalar).
    #[doc(alias = "add_hparams")]
    #[track_caller]
    pub fn hparams<N: Into<String>>(&mut self, values: impl IntoIterator<Item = (N, Hparam)>) -> Result<()> {
        let mut named = Vec::new();
        for (name, value) in values {
            named.push((name.into(), value));
        }
        self.write_hparams(value::by_name(named))
    }

    #[track_caller]
    fn write_hparams(&mut self, values: BTreeMap<String, Hparam>) -> Result<()> {
        let text = json::of_hparams(&values);
        if text == self.hparams {
            return Ok(());
        }
        for name in values.keys() {
            check_name("hparams", name)?;
        }
        self.write("hparams", vec![record(json::HPARAMS, 0, Content::Hparams(values))])?;
        self.hparams = text;
        Ok(())
    }

    /// The numbers in the log so far.
    ///
    /// # Errors
    /// Same as [`History::read`].
    #[track_caller]
    pub fn history(&self) -> Result<History> {
        let is_read = |path: &&Path| path.extension().is_some_and(|end| end == "jsonl" || end == "csv");
        let own = self.files().find(is_read).unwrap_or(&self.folder);
        History::read(own)
    }

    /// Waits until everything is on the disk.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    #[track_caller]
    pub fn sync(&self) -> Result<()> {
        let caller = Location::caller();
        self.sinks.iter().try_for_each(Sink::sync).map_err(|error| error.at(caller))
    }

    /// Appends the records to all files that can hold them, or to none.
    #[track_caller]
    fn write(&mut self, op: &'static str, records: Vec<Record>) -> Result<()> {
        for record in &records {
            check_name(op, &record.name)?;
        }
        let (mut encoded, mut before) = (Vec::new(), Vec::new());
        for sink in &mut self.sinks {
            encoded.push(sink.encode(&records));
            before.push(sink.len());
        }
        if !records.is_empty() && encoded.iter().all(Vec::is_empty) {
            let message = format!("none of the files of this log can hold '{}'", records[0].name);
            let repair = match op {
                "image" => ".tensorboard(true)",
                _ => ".json_lines(true)",
            };
            return Err(Error::new(ErrorKind::Unsupported, op, message)
                .with_repair(format!("Log::builder(folder){repair}.build()?")));
        }
        let caller = Location::caller();
        for (number, bytes) in encoded.iter().enumerate() {
            if let Err(error) = self.sinks[number].append(bytes) {
                for (sink, length) in self.sinks.iter_mut().zip(before) {
                    sink.truncate(length);
                }
                return Err(error
                    .of(op)
                    .at(caller)
                    .with_repair("if let Err(error) = log.scalar(..) { .. } to train on without it"));
            }
        }
        Ok(())
    }
}

fn record(name: &str, step: u64, content: Content) -> Record {
    Record { step, name: name.into(), content }
}

#[track_caller]
fn check_name(op: &'static str, name: &str) -> Result<()> {
    Error::ensure(!name.is_empty() && !name.chars().any(char::is_control), ErrorKind::Value, op, || {
        format!("a name has at least one character and no control characters, got {name:?}")
    })
}

/// Histograms of the values and the gradients of parameters.
fn of_parameters(op: &'static str, step: u64, parameters: Vec<(String, Parameter)>) -> Result<Vec<Record>> {
    let mut known = Vec::new();
    let mut records = Vec::new();
    for (path, parameter) in parameters {
        if known.contains(&parameter.id()) {
            continue;
        }
        known.push(parameter.id());
        let value = Histogram::of(op, parameter.try_tensor()?.value(), BUCKETS)?;
        records.push(record(&format!("parameters/{path}"), step, Content::Histogram(value)));
        if let Some(grad) = parameter.grad() {
            let grad = Histogram::of(op, grad.value(), BUCKETS)?;
            records.push(record(&format!("gradients/{path}"), step, Content::Histogram(grad)));
        }
    }
    Ok(records)
}
