//! [`LrFinder`], a test of learning rates before training.

use namegrad_autograd::{Parameter, Tensor};
use namegrad_core::random::{random_state, set_random_state};
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use namegrad_nn::{Module, StateDict};
use namegrad_optim::{Optimizer, OptimizerState};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

/// Makes some steps with a rising learning rate and records the loss: where it falls fastest is a good rate
/// to start with, and where it rises, rates are too high.
///
/// The rates rise from step to step by the same factor. The test ends early when the loss is four times its
/// minimum, or not finite. Afterwards, the model with its buffers and gradients, the optimizer and the
/// default random generator are as they were before, also after an error.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::lr_finder::LrFinder;
/// manual_seed(0);
/// let model = Linear::new(("in", 4), ("out", 1))?;
/// let mut optimizer = Sgd::builder(model.parameters()).lr(0.1).build()?;
/// let curve = LrFinder::new().range(1e-4, 10.0).run(&model, &mut optimizer, |_step| {
///     let x = Tensor::randn([("N", 64), ("in", 4)])?; // another batch in each step
///     let y = x.sum(keep("in"))?.rename(["N", "out"])?;
///     F::mse_loss(&model.forward(&x)?, &y)
/// })?;
/// optimizer.set_lr(curve.steepest().unwrap())?;
/// assert!((0.01..1.0).contains(&optimizer.lr()));
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Smith, *Cyclical learning rates for training neural networks* (2017), section 3.3. The smoothing, the end
/// and the suggested rates are those of fastai's `lr_find`.
#[derive(Clone, Debug, PartialEq)]
pub struct LrFinder {
    range: [f64; 2],
    steps: usize,
}

/// The weight of the past in the smoothed loss.
const BETA: f64 = 0.98;
/// The test ends when the smoothed loss exceeds its minimum by this factor.
const DIVERGED: f64 = 4.0;

impl LrFinder {
    /// 100 steps with rates from 1e-7 to 10.
    pub fn new() -> LrFinder {
        LrFinder { range: [1e-7, 10.0], steps: 100 }
    }

    /// The first and the last rate.
    pub fn range(mut self, first: f64, last: f64) -> LrFinder {
        self.range = [first, last];
        self
    }

    /// The number of steps.
    pub fn steps(mut self, steps: usize) -> LrFinder {
        self.steps = steps;
        self
    }

    /// Runs the test. All groups of the optimizer get the same rate. `loss` computes the loss of a batch; it
    /// gets the number of the step, from 0.
    ///
    /// What `loss` changes besides the model, the optimizer and the default random generator is not restored:
    /// the position of a [`Loader`](namegrad_data::Loader), your own generators, an average of the model. Put
    /// the loader back by its state:
    /// ```
    /// use namegrad::data::{Loader, TensorDataset};
    /// use namegrad::prelude::*;
    /// use namegrad::train::lr_finder::LrFinder;
    /// # manual_seed(0);
    /// # let model = Linear::new(("in", 4), ("out", 1))?;
    /// # let mut optimizer = Sgd::builder(model.parameters()).lr(0.1).build()?;
    /// # let x = Tensor::randn([("N", 256), ("in", 4)])?;
    /// # let data = TensorDataset::new((x.clone(), x.sum("in")?))?;
    /// let loader = Loader::builder(data).batch_size(64).shuffle(true).build()?;
    /// let start = loader.state_dict()?;
    /// let mut batches = loader.cycle(); // epoch after epoch
    /// let curve = LrFinder::new().range(1e-4, 10.0).run(&model, &mut optimizer, |_step| {
    ///     let (x, y) = batches.next().unwrap()?; // [N, in], [N]
    ///     F::mse_loss(&model.forward(&x)?.squeeze("out")?, &y)
    /// })?;
    /// loader.load_state_dict(&start)?;
    /// assert_eq!(loader.epochs_done(), 0);
    /// # assert!(curve.steepest().is_some());
    /// # drop(batches);
    /// # assert_eq!(loader.epochs_done(), 0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the rates are not positive, finite and rising, or for less than two steps;
    /// then nothing has run. The errors of `loss` and of [`Optimizer::step_with`].
    #[track_caller]
    pub fn run(
        &self,
        model: &(impl Module + ?Sized),
        optimizer: &mut dyn Optimizer,
        mut loss: impl FnMut(usize) -> Result<Tensor>,
    ) -> Result<LrCurve> {
        const OP: &str = "lr_finder";
        let [first, last] = self.range;
        Error::ensure(first > 0.0 && first < last && last.is_finite(), ErrorKind::Value, OP, || {
            format!("the rates must be positive and rise, got {first} and {last}")
        })
        .map_err(|error| error.with_repair(".range(1e-7, 10.0)"))?;
        Error::ensure(self.steps >= 2, ErrorKind::Value, OP, || {
            format!("a test has at least 2 steps, got {}", self.steps)
        })?;
        let caller = Location::caller();
        let before = Backup::of(model, optimizer);
        let curve = catch_unwind(AssertUnwindSafe(|| self.test(optimizer, &mut loss)));
        let restored = before.restore(model, optimizer);
        let curve = curve.unwrap_or_else(|panic| resume_unwind(panic));
        let curve = curve.map_err(|error| if error.op() == OP { error.at(caller) } else { error })?;
        restored.map_err(|error| error.at(caller))?;
        Ok(curve)
    }

    fn test(
        &self,
        optimizer: &mut dyn Optimizer,
        loss: &mut dyn FnMut(usize) -> Result<Tensor>,
    ) -> Result<LrCurve> {
        let [first, last] = self.range;
        let mut curve = LrCurve { points: vec![], smoothed: vec![], steps: self.steps };
        let (mut mean, mut best) = (0.0, f64::INFINITY);
        for step in 0..self.steps {
            let lr = first * (last / first).powf(step as f64 / (self.steps - 1) as f64);
            optimizer.set_lr(lr)?;
            // A step at a loss that is not finite is an error, and the end of the test.
            let mut seen = 0.0;
            let stepped = optimizer.step_with(&mut || {
                let loss = loss(step)?;
                seen = loss.item::<f64>().unwrap_or(0.0);
                Ok(loss)
            });
            let loss = match stepped {
                Err(_) if !seen.is_finite() => seen,
                stepped => stepped?.item::<f64>()?,
            };
            mean = BETA * mean + (1.0 - BETA) * loss;
            let smooth = mean / (1.0 - BETA.powi(step as i32 + 1));
            curve.points.push((lr, loss));
            curve.smoothed.push((lr, smooth));
            best = f64::min(best, smooth);
            let diverged = best > 0.0 && smooth > DIVERGED * best;
            if diverged || !smooth.is_finite() {
                break;
            }
        }
        Ok(curve)
    }
}

impl Default for LrFinder {
    fn default() -> LrFinder {
        LrFinder::new()
    }
}

/// The state before the test, to which it returns.
struct Backup {
    random: namegrad_core::random::GeneratorState,
    model: StateDict,
    /// The parameters of the optimizer, which need not all be in the model.
    parameters: Vec<(Parameter, NamedTensor)>,
    grads: Vec<(Parameter, Option<Tensor>)>,
    optimizer: OptimizerState,
}

impl Backup {
    fn of(model: &(impl Module + ?Sized), optimizer: &dyn Optimizer) -> Backup {
        let parameters = optimizer.parameters();
        let all = parameters.iter().cloned().chain(model.parameters());
        Backup {
            random: random_state(),
            model: model.state_dict(),
            grads: crate::list(all.map(|parameter| (parameter.clone(), parameter.grad()))),
            parameters: crate::list(
                parameters.into_iter().map(|parameter| (parameter.clone(), parameter.tensor().into_value())),
            ),
            optimizer: optimizer.state_dict(),
        }
    }

    fn restore(self, model: &(impl Module + ?Sized), optimizer: &mut dyn Optimizer) -> Result<()> {
        set_random_state(self.random);
        for (parameter, value) in &self.parameters {
            parameter.set(value)?;
        }
        model.load_state_dict(&self.model)?;
        for (parameter, grad) in self.grads {
            parameter.set_grad(grad)?;
        }
        optimizer.load_state_dict(&self.optimizer)
    }
}

/// Losses by learning rate: what an [`LrFinder`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct LrCurve {
    points: Vec<(f64, f64)>,
    smoothed: Vec<(f64, f64)>,
    /// The steps that the test would have without an early end.
    steps: usize,
}

impl LrCurve {
    /// Learning rates and losses. The last loss can be NaN or infinite.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// Learning rates and exponential means of the losses.
    pub fn smoothed(&self) -> &[(f64, f64)] {
        &self.smoothed
    }

    /// The learning rate at which the smoothed loss falls fastest, by the logarithm of the rate; `None` if it
    /// falls nowhere.
    ///
    /// The first tenth of the rates is left out: there the smoothed loss is the mean of a few batches, whose
    /// noise looks like a slope. So are the last 5 of 100 rates, where the loss rises. The slope at a rate is
    /// taken over a tenth of the steps, with the rate in the middle.
    pub fn steepest(&self) -> Option<f64> {
        let half = (self.steps / 20).max(1);
        let slope = |window: &[(f64, f64)]| {
            let [(first_lr, first_loss), .., (last_lr, last_loss)] = *window else { return (f64::NAN, 0.0) };
            (window[half].0, (last_loss - first_loss) / (last_lr / first_lr).ln())
        };
        let slopes = self.reliable().windows(2 * half + 1).map(slope).filter(|(_, slope)| *slope < 0.0);
        slopes.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(lr, _)| lr)
    }

    /// A tenth of the learning rate at which the smoothed loss is lowest: fastai's `minimum`. `None` if the
    /// test ended before the loss could be judged. The rates at both ends that [`steepest`](Self::steepest)
    /// leaves out do not count.
    ///
    /// If it differs much from [`steepest`](Self::steepest), the lower of the two is the safer start.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::train::lr_finder::LrFinder;
    /// let weight = Parameter::new(Tensor::new([2.0, -1.0])?)?;
    /// let mut optimizer = Sgd::new([weight.clone()])?;
    /// let square = |_step| weight.tensor().square()?.sum(..);
    /// let curve = LrFinder::new().range(1e-3, 10.0).run(&Sequential::new(), &mut optimizer, square)?;
    /// let lr = curve.tenth_of_minimum().unwrap();
    /// assert!((0.01..1.0).contains(&lr)); // steps diverge from 1 on
    /// # Ok::<(), Error>(())
    /// ```
    #[doc(alias = "minimum")]
    pub fn tenth_of_minimum(&self) -> Option<f64> {
        let finite = self.reliable().iter().filter(|(_, loss)| loss.is_finite());
        finite.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(lr, _)| lr / 10.0)
    }

    /// The smoothed losses without both ends: fastai's `lrs[num_it // 10:-5]`, which are for 100 steps.
    fn reliable(&self) -> &[(f64, f64)] {
        let (start, tail) = (self.steps / 10, self.steps / 20);
        let end = self.smoothed.len().saturating_sub(tail);
        self.smoothed.get(start..end).unwrap_or_default()
    }

    /// The curve as a chart. Its vertical axis shows the losses up to the lowest smoothed one without outliers,
    /// such as the first batch; a loss that rises far above them is outside.
    #[cfg(feature = "pictures")]
    pub fn chart(&self) -> crate::pictures::Chart {
        let chart = crate::pictures::Chart::new("").x_label("learning rate").y_label("loss").log_x(true);
        let [low, high] = self.visible();
        let chart = chart.y_range(low, high);
        let chart = chart.color([200, 200, 200]).line("loss", &self.points);
        chart.color([31, 119, 180]).line("smoothed", &self.smoothed)
    }

    /// The ends of the vertical axis: the 5th and 95th percentile of the losses up to the lowest smoothed one,
    /// or of half of them, with some room.
    #[cfg(feature = "pictures")]
    fn visible(&self) -> [f64; 2] {
        let (mut lowest, mut least) = (0, f64::INFINITY);
        for (at, (_, loss)) in self.smoothed.iter().enumerate() {
            if *loss < least {
                (lowest, least) = (at, *loss);
            }
        }
        let end = self.points.len().min((lowest + 1).max(self.points.len() / 2));
        let mut losses: Vec<f64> = crate::list(self.points[..end].iter().map(|(_, loss)| *loss));
        losses.retain(|loss| loss.is_finite());
        namegrad_io::sorted::sort(&mut losses, &|a, b| a < b);
        let last = losses.len().saturating_sub(1);
        let Some((low, high)) = losses.get(last / 20).zip(losses.get(last - last / 20)) else {
            return [0.0, 1.0];
        };
        // The early smoothed losses are those of a few batches.
        let low = self.reliable().iter().map(|(_, loss)| *loss).fold(*low, f64::min);
        let room = 0.15 * (high - low);
        [low - room, high + room]
    }
}

#[cfg(all(test, feature = "pictures"))]
mod tests {
    use super::*;

    /// The losses of a test of 100 steps, of which the first is an outlier.
    fn curve(first: f64, loss: impl Fn(f64) -> f64) -> LrCurve {
        let point = |step: u32| (f64::from(step), if step == 0 { first } else { loss(f64::from(step)) });
        let points: Vec<(f64, f64)> = crate::list((0..100).map(point));
        LrCurve { smoothed: points.clone(), points, steps: 100 }
    }

    #[test]
    fn the_axis_shows_the_plateau_and_the_valley() {
        // 2.3 for 40 steps, 0.5 at step 75, 12 at the end.
        let falls = |step: f64| match step {
            ..40.0 => 2.3,
            40.0..75.0 => 2.3 - 1.8 * (step - 40.0) / 35.0,
            _ => 0.5 + 0.5 * (step - 75.0),
        };
        for first in [0.1, 0.7, 2.3, 9.0, 1e9, f64::INFINITY] {
            let [low, high] = curve(first, falls).visible();
            assert!(-0.5 < low && low < 0.5 && 2.3 < high && high < 3.0, "{first}: {low} {high}");
        }
        for (name, loss) in [("rises", 1.0), ("is equal", 0.0)] {
            let [low, high] = curve(1.0, |step| 1.0 + loss * step).visible();
            assert!(
                low <= 1.0 + 4.0 * loss && high >= 1.0 + 40.0 * loss && high < 60.0,
                "{name}: {low} {high}"
            );
        }
        assert_eq!(LrCurve { points: vec![], smoothed: vec![], steps: 2 }.visible(), [0.0, 1.0]);
    }
}
