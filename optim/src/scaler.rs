//! [`GradScaler`], which keeps small gradients of `f16` from vanishing.

mod state;

pub use state::GradScalerState;

use super::*;
use schedule::table::check;

/// Scales a loss so that gradients do not vanish in `f16`, and skips steps in which they overflow:
/// `torch.amp.GradScaler`.
///
/// Gradients are divided by the scale before a step. If one is infinite or NaN then, the step is skipped and
/// [`update`](Self::update) lowers the scale; after `growth_interval` good steps in a row, it raises it.
/// Training in `bf16` needs no scaler.
///
/// # Source
/// Micikevicius et al., *Mixed Precision Training* (2018), section 3.2, in the form of PyTorch.
///
/// # Examples
/// ```
/// use namegrad::autograd::autocast;
/// use namegrad::optim::{GradScaler, clip_grad_norm_};
/// use namegrad::prelude::*;
/// let model = Linear::new(("in", 3), ("out", 2))?;
/// let mut optimizer = AdamW::new(model.parameters())?;
/// let mut scaler = GradScaler::new();
/// let x = Tensor::randn([("N", 4), ("in", 3)])?;
/// for _ in 0..3 {
///     let target = Tensor::zeros([("N", 4), ("out", 2)])?;
///     let loss = autocast(DType::F16, || F::mse_loss(&model.forward(&x)?, &target))?;
///     optimizer.zero_grad();
///     scaler.scale(&loss)?.backward()?;
///     scaler.unscale_(&optimizer)?; // only to clip
///     clip_grad_norm_(model.parameters(), 1.0)?;
///     scaler.step(&mut optimizer)?;
///     scaler.update()?;
/// }
/// assert_eq!(scaler.steps_taken() + scaler.steps_skipped(), 3);
/// # Ok::<(), Error>(())
/// ```
///
/// # Several batches, several optimizers
/// Scale the loss of every batch, and call `unscale_`, `step` and `update` after the last: the scale stays
/// the same between two updates. With several optimizers, call `step` for each and `update` once; a step is
/// skipped for an optimizer with bad gradients only.
#[derive(Clone, Debug)]
pub struct GradScaler {
    enabled: bool,
    /// Its scale is a number of `f32`, as in PyTorch.
    state: GradScalerState,
    /// Whether a loss was scaled since the last update.
    scaled: bool,
    /// The parameters whose gradients were unscaled since the last update, with their numbers in `seen`.
    ids: Ids,
    seen: Vec<Seen>,
}

/// The events of a parameter since the last update.
#[derive(Clone, Copy, Debug)]
struct Seen {
    is_finite: bool,
    has_stepped: bool,
}

options! {
    /// A builder for [`GradScaler`]; see [`GradScaler::builder`].
    #[derive(Clone, Debug)]
    GradScalerBuilder {
        /// The defaults.
        new()
        /// The first scale.
        init_scale: f64 = 65536.0,
        /// The factor of the scale after `growth_interval` good steps.
        growth_factor: f64 = 2.0 in (Bound::Excluded(1.0), Bound::Included(f64::MAX))
            => "The growth factor must be > 1.0 and finite, got {}.",
        /// The factor of the scale after a skipped step.
        backoff_factor: f64 = 0.5 in (Bound::Excluded(0.0), Bound::Excluded(1.0))
            => "The backoff factor must be between 0.0 and 1.0, got {}.",
        /// The number of good steps in a row after which the scale grows.
        growth_interval: u64 = 2000 in 1.. => "The growth interval must be above 0.",
        /// Whether anything is scaled. Otherwise, `scale` returns the loss, `step` is the step of the
        /// optimizer, and the rest does nothing, so that one program trains with and without mixed precision.
        enabled: bool = true,
    }
}

impl GradScalerBuilder {
    /// Builds the scaler.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless the scale is positive and finite, the growth factor above 1, the backoff
    /// factor between 0 and 1, and the interval above 0.
    #[track_caller]
    pub fn build(self) -> Result<GradScaler> {
        let repair =
            "GradScaler::builder().growth_factor(2.0).backoff_factor(0.5).growth_interval(2000).build()?";
        check(&self, OP, 1).map_err(|error| error.with_repair(repair))?;
        let scale = checked_scale(self.init_scale)?;
        let GradScalerBuilder { growth_factor, backoff_factor, growth_interval, enabled, .. } = self;
        let start = GradScalerState::default();
        let state = GradScalerState { scale, growth_factor, backoff_factor, growth_interval, ..start };
        Ok(GradScaler { enabled, state, scaled: false, ids: Ids::default(), seen: Vec::new() })
    }
}

const OP: &str = "GradScaler";
/// The repair for a call that belongs to the next step.
const UPDATE: &str = "scaler.update()?, at the end of each step";

/// The scale in `f32`.
#[track_caller]
fn checked_scale(scale: f64) -> Result<f64> {
    let rounded = scale as f32;
    if rounded > 0.0 && rounded.is_finite() {
        return Ok(rounded.into());
    }
    let message = format!("the scale must be positive and finite in f32, got {scale:?}");
    Err(refused(OP, message, ".init_scale(65536.0)"))
}

impl Default for GradScaler {
    fn default() -> GradScaler {
        GradScaler::new()
    }
}

impl GradScaler {
    /// A scaler with PyTorch's defaults: it starts at a scale of 65536, doubles it after 2000 steps with
    /// finite gradients in a row, and halves it after a step without. [`builder`](Self::builder) changes
    /// them.
    pub fn new() -> GradScaler {
        GradScaler::builder().build().expect("the defaults are in range")
    }

    /// A builder, to change the defaults.
    pub fn builder() -> GradScalerBuilder {
        GradScalerBuilder::new()
    }

    /// A loss, or any other tensor that `backward` starts from, times the scale. A loss of a half type
    /// becomes `f32`.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if it is not floating-point; [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn scale(&mut self, loss: &Tensor) -> Result<Tensor> {
        if !self.enabled {
            return Ok(loss.clone());
        }
        if !loss.dtype().is_floating_point() {
            let message = format!("a loss of {} has no gradient to scale", loss.dtype());
            let repair = "F::cross_entropy(&logits, &target, \"class\")?, or another loss of floats";
            let error = Error::new(ErrorKind::DType, "scale", message).with_operands([loss.shape()]);
            return Err(error.with_repair(repair));
        }
        let scaled = loss.to(loss.dtype().compute())?.mul(self.state.scale)?;
        self.scaled = true;
        Ok(scaled)
    }

    /// Divides the gradients of an optimizer by the scale, in place, and looks for infinities and NaN.
    /// [`step`](Self::step) does this itself; call it before only to clip gradients, or to look at them.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if no loss was scaled since the last update, or the gradients are already
    /// unscaled; [`ErrorKind::DType`] for gradients of `f16`, which lose the small numbers that the scale is
    /// for. Nothing changes then.
    #[track_caller]
    pub fn unscale_(&mut self, optimizer: &dyn Optimizer) -> Result<()> {
        if !self.enabled {
            return Ok(());
        }
        let parameters = optimizer.parameters();
        self.check_order("unscale_", "unscale_() is being called after step().", &parameters)?;
        if parameters.iter().any(|parameter| self.seen(parameter).is_some()) {
            let message = "unscale_() has already been called on this optimizer since the last update().";
            return Err(wrong_order("unscale_", message, UPDATE));
        }
        at_caller(|| self.unscale("unscale_", &parameters))
    }

    /// Unscales the gradients that are not yet.
    fn unscale(&mut self, op: &'static str, parameters: &[Parameter]) -> Result<()> {
        let is_half = |parameter: &&Parameter| {
            parameter.dtype() == DType::F16 && parameter.grad().is_some() && self.seen(parameter).is_none()
        };
        if let Some(parameter) = parameters.iter().find(is_half) {
            let message =
                format!("Attempting to unscale FP16 gradients: a parameter {} is of f16.", parameter.shape());
            let repair = "model.to(DType::F32)?, with autocast(DType::F16, || ..) around the forward pass";
            return Err(Error::new(ErrorKind::DType, op, message).with_repair(repair));
        }
        // The reciprocal is rounded to `f32`, as in PyTorch.
        let inverse = f64::from((1.0 / self.state.scale) as f32);
        for parameter in parameters {
            if self.seen(parameter).is_none()
                && let Some(is_finite) = parameter.update_grad(|gradient| scaled(gradient, inverse))?
            {
                // All processes with parts of a parameter skip the same steps.
                let is_finite = match parameter.part() {
                    Some(part) => part.sum(f64::from(u8::from(!is_finite)))? == 0.0,
                    None => is_finite,
                };
                self.ids.first(parameter.id(), self.seen.len());
                self.seen.push(Seen { is_finite, has_stepped: false });
            }
        }
        Ok(())
    }

    /// Makes a step of the optimizer, unless a gradient is infinite or NaN. Returns whether the step was
    /// made. Unscales the gradients first if [`unscale_`](Self::unscale_) has not.
    ///
    /// A skipped step changes neither parameters nor the state of the optimizer. Let a schedule make no step
    /// then:
    ///
    /// ```
    /// use namegrad::optim::GradScaler;
    /// use namegrad::optim::schedule::{Cosine, Scheduler};
    /// use namegrad::prelude::*;
    /// let weight = Parameter::new(Tensor::new([1.0])?)?;
    /// let mut optimizer = Sgd::new([weight.clone()])?;
    /// let mut scheduler = Scheduler::new(Cosine::new(10), &mut optimizer)?;
    /// let mut scaler = GradScaler::new();
    /// scaler.scale(&weight.tensor().mul(f64::INFINITY)?.sum(..)?)?.backward()?;
    /// if scaler.step(&mut optimizer)? {
    ///     scheduler.step(&mut optimizer)?;
    /// }
    /// scaler.update()?;
    /// assert_eq!((scaler.steps_skipped(), scheduler.steps(), scaler.scale_factor()), (1, 0.0, 32768.0));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`unscale_`](Self::unscale_) and of [`Optimizer::step`]; [`ErrorKind::Autograd`] if the
    /// optimizer has already stepped since the last update, or has no gradients.
    #[track_caller]
    pub fn step(&mut self, optimizer: &mut dyn Optimizer) -> Result<bool> {
        if !self.enabled {
            optimizer.step()?;
            self.state.steps_taken += 1;
            return Ok(true);
        }
        let parameters = optimizer.parameters();
        self.check_order("step", "step() has already been called since the last update().", &parameters)?;
        if optimizer.needs_loss() {
            let message = "Closure use is not currently supported if GradScaler is enabled.";
            return Err(wrong_order("step", message, "optimizer.step_with(&mut || ..)?, without a scaler"));
        }
        at_caller(|| self.unscale("step", &parameters))?;
        let numbers: Vec<usize> = crate::list(parameters.iter().filter_map(|own| self.ids.get(own.id())));
        if numbers.is_empty() {
            let message = "No inf checks were recorded for this optimizer: its parameters have no gradients.";
            return Err(wrong_order("step", message, "scaler.scale(&loss)?.backward()?"));
        }
        let is_good = numbers.iter().all(|number| self.seen[*number].is_finite);
        if is_good {
            at_caller(|| optimizer.step())?;
            self.state.steps_taken += 1;
        } else {
            self.state.steps_skipped += 1;
        }
        for number in numbers {
            self.seen[number] = Seen { is_finite: is_good, has_stepped: true };
        }
        Ok(is_good)
    }

    /// Adapts the scale, at the end of a step of all optimizers: lowers it if one was skipped, and otherwise
    /// raises it after `growth_interval` calls.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] if no gradients were unscaled since the last update.
    #[track_caller]
    pub fn update(&mut self) -> Result<()> {
        if !self.enabled {
            return Ok(());
        }
        self.check_scaled("update")?;
        if self.seen.is_empty() {
            let message = "No inf checks were recorded prior to update.";
            return Err(wrong_order("update", message, "scaler.step(&mut optimizer)?"));
        }
        let GradScalerState { growth_factor, backoff_factor, growth_interval, .. } = self.state;
        let is_good = self.seen.iter().all(|seen| seen.is_finite);
        self.state.growth_tracker = if is_good { self.state.growth_tracker + 1 } else { 0 };
        if !is_good {
            // A scale of 0 would be an end of training that nobody sees.
            let lowered = (self.state.scale * backoff_factor) as f32;
            self.state.scale = lowered.max(f32::MIN_POSITIVE).into();
        } else if self.state.growth_tracker >= growth_interval {
            let grown = (self.state.scale * growth_factor) as f32;
            self.state.growth_tracker = 0;
            if grown.is_finite() {
                self.state.scale = grown.into();
            }
        }
        self.start_again();
        Ok(())
    }

    /// Ends a step, as [`update`](Self::update) does, with a scale of your own: PyTorch's
    /// `update(new_scale)`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless it is positive and finite.
    #[track_caller]
    pub fn update_to(&mut self, scale: f64) -> Result<()> {
        if !self.enabled {
            return Ok(());
        }
        self.state.scale = checked_scale(scale).map_err(|error| error.of("update_to"))?;
        self.start_again();
        Ok(())
    }

    fn seen(&self, parameter: &Parameter) -> Option<Seen> {
        self.ids.get(parameter.id()).map(|number| self.seen[number])
    }

    fn start_again(&mut self) {
        self.scaled = false;
        (self.ids, self.seen) = (Ids::default(), Vec::new());
    }

    /// The current scale; 1 if the scaler is not enabled.
    #[doc(alias = "get_scale")]
    pub fn scale_factor(&self) -> f64 {
        if self.enabled { self.state.scale } else { 1.0 }
    }

    /// The number of steps that were made.
    pub fn steps_taken(&self) -> u64 {
        self.state.steps_taken
    }

    /// The number of steps that were skipped because of an infinite or NaN gradient.
    pub fn steps_skipped(&self) -> u64 {
        self.state.steps_skipped
    }

    /// Whether anything is scaled.
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    #[track_caller]
    fn check_scaled(&self, op: &'static str) -> Result<()> {
        if self.scaled {
            return Ok(());
        }
        let message = format!(
            "Attempted {op} but no loss was scaled since the last update(). This may indicate your script did not use \
             scaler.scale(loss or outputs) earlier in the iteration."
        );
        Err(wrong_order(op, &message, "scaler.scale(&loss)?.backward()?"))
    }

    /// Checks that a loss was scaled, and that there was no step of these parameters since.
    #[track_caller]
    fn check_order(&self, op: &'static str, message: &str, parameters: &[Parameter]) -> Result<()> {
        self.check_scaled(op)?;
        let mut stepped = Vec::new();
        for parameter in parameters.iter().filter(|parameter| parameter.grad().is_some()) {
            stepped.push(self.seen(parameter).is_some_and(|seen| seen.has_stepped));
        }
        if !stepped.contains(&true) {
            return Ok(());
        }
        let (message, repair) = match stepped.contains(&false) {
            false => (message, UPDATE),
            true => (
                "another optimizer with a parameter of this one has stepped since the last update(); a parameter belongs to one optimizer",
                "",
            ),
        };
        Err(wrong_order(op, message, repair))
    }
}

#[cold]
#[track_caller]
fn wrong_order(op: &'static str, message: &str, repair: &str) -> Error {
    Error::new(ErrorKind::Autograd, op, message).with_repair(repair)
}

/// Multiplies a gradient in its buffer. Returns whether the result is finite.
fn scaled(gradient: &mut NamedTensor, factor: f64) -> Result<bool> {
    let mut sum = [0.0];
    run_alone(gradient, &with::<_, 1, 1, 1>(&UnscaleFormula, &[factor]), &mut sum)?;
    Ok(!sum[0].is_nan())
}

/// `x *= factor`, and a sum that is NaN if an `x` is then NaN or infinite.
struct UnscaleFormula;

impl Formula<1, 1> for UnscaleFormula {
    #[inline(always)]
    fn apply<T: Real>([factor]: [T; 1], x: T, _: T, [sum]: [T; 1]) -> (T, [T; 1]) {
        let x = x * factor;
        (x, [sum + x * T::ZERO])
    }
}
