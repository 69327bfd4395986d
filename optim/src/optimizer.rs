//! [`Optimizer`], the trait of all optimizers.

use super::*;
use namegrad_autograd::{backward_passes, began_last_backward, enable_grad};

/// The repair for a step without a closure, or with a wrong one.
pub(crate) const CLOSURE: &str = "optimizer.step_with(&mut || ..)?, with a closure that returns the loss";

/// A function that computes the loss with the current parameters.
pub type Loss<'a> = &'a mut dyn FnMut() -> Result<Tensor>;

/// Updates parameters with their gradients.
///
/// A training step is `zero_grad`, a forward pass, a backward pass, and `step`:
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::optim::{Optimizer, Sgd};
/// fn train(weight: &Parameter, optimizer: &mut dyn Optimizer) -> Result<()> {
///     let loss = weight.tensor().sum(..)?;
///     optimizer.zero_grad();
///     loss.backward()?;
///     optimizer.step()
/// }
///
/// let weight = Parameter::new(Tensor::ones([("in", 2)])?)?;
/// train(&weight, &mut Sgd::builder([weight.clone()]).lr(0.25).build()?)?;
/// assert_eq!(weight.tensor().to_vec::<f32>()?, [0.75, 0.75]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Several batches for one step
/// Backward passes add to the gradients until `zero_grad`. A step of several batches, if they do not fit into
/// memory at once, is several backward passes of the loss divided by their number:
///
/// ```
/// # use namegrad::prelude::*;
/// # let weight = Parameter::new(Tensor::ones([("in", 2)])?)?;
/// # let mut optimizer = Sgd::builder([weight.clone()]).lr(0.25).build()?;
/// # let batches = [Tensor::ones([("in", 2)])?, Tensor::zeros([("in", 2)])?];
/// optimizer.zero_grad();
/// for batch in &batches {
///     let loss = weight.tensor().mul(batch)?.sum(..)?;
///     loss.div(batches.len() as f64)?.backward()?;
/// }
/// optimizer.step()?;
/// # assert_eq!(weight.tensor().to_vec::<f32>()?, [0.875, 0.875]);
/// # Ok::<(), Error>(())
/// ```
pub trait Optimizer: Send {
    /// Updates every parameter that has a gradient. The others and their state do not change.
    ///
    /// A step without any gradient is an error, where PyTorch does nothing, if the model is frozen, if
    /// `zero_grad` has removed the gradients and no backward pass came after it, or if a loss was computed
    /// without a backward pass. Before the first step of the optimizer, so is a backward pass whose loss does
    /// not depend on its parameters, but perhaps on those of another model. Before anything was computed, a
    /// step does nothing.
    ///
    /// An error is also a gradient whose first elements are not finite. That does not find every NaN:
    /// [`check_finite`](Self::check_finite) looks at every element, and a loss can be NaN while all gradients
    /// are finite, such as the logarithm of a negative number, for which `loss.check_finite()?.backward()?` is
    /// an error.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`](namegrad_core::ErrorKind::Autograd) if no parameter has a gradient, in the
    /// cases above,
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if the first elements of one are NaN or infinite;
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if a hyperparameter was changed to one that is
    /// out of range, [`ErrorKind::Shape`](namegrad_core::ErrorKind::Shape) if the sizes of a parameter have
    /// changed since its last step, [`ErrorKind::NameMismatch`](namegrad_core::ErrorKind::NameMismatch) if a
    /// gradient has names and they are not those of its parameter,
    /// [`ErrorKind::OutOfMemory`](namegrad_core::ErrorKind::OutOfMemory) if there is no memory for the state,
    /// [`ErrorKind::Autograd`](namegrad_core::ErrorKind::Autograd) if the optimizer evaluates the loss
    /// itself, as [`Lbfgs`](crate::Lbfgs) does.
    #[track_caller]
    fn step(&mut self) -> Result<()>;

    /// Computes the loss and its gradients, and makes a step. Returns the loss before the step.
    ///
    /// Old gradients are removed first, so you call neither `zero_grad` nor `backward`:
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let weight = Parameter::new(Tensor::new([4.0, -3.0])?)?;
    /// let mut optimizer = Sgd::builder([weight.clone()]).lr(0.25).build()?;
    /// let loss = optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// assert_eq!(loss.to_vec::<f32>()?, [25.0]);
    /// assert_eq!(weight.tensor().to_vec::<f32>()?, [2.0, -1.5]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// An optimizer that evaluates the loss several times in a step calls the closure several times. In
    /// PyTorch, the closure itself calls `zero_grad` and `backward`; here, it is an error if `backward` was
    /// called for the loss that it returns.
    ///
    /// # Errors
    /// The errors of the closure, of [`Tensor::backward`] and of [`step`](Self::step);
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if the loss is NaN or infinite, except for
    /// [`Lbfgs`](crate::Lbfgs), whose step then ends where it was.
    #[track_caller]
    fn step_with(&mut self, loss: Loss<'_>) -> Result<Tensor> {
        let loss = evaluate(&self.parameters(), loss, Some("step_with"), Location::caller())?;
        self.step()?;
        Ok(loss)
    }

    /// Checks that all elements of all gradients are finite. It reads every gradient once more, so
    /// [`step`](Self::step) only looks at the first elements.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let weight = Parameter::new(Tensor::new([4.0, 0.0])?)?;
    /// let mut optimizer = Sgd::builder_named([("weight".into(), weight.clone())]).build()?;
    /// weight.tensor().sqrt().sum(..)?.backward()?; // the slope at 0 is infinite
    /// let error = optimizer.check_finite().unwrap_err();
    /// assert_eq!(
    ///     error.message(),
    ///     "the gradient of 'weight': of 2 values, 0 are NaN and 1 are infinite",
    /// );
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if an element is NaN or infinite.
    #[track_caller]
    fn check_finite(&self) -> Result<()> {
        let caller = Location::caller();
        for gradient in self.parameters().iter().filter_map(Parameter::grad) {
            let checked = gradient.value().check_finite("check_finite");
            checked.map_err(|error| error.context("a gradient: ").at(caller))?;
        }
        Ok(())
    }

    /// Whether a step evaluates the loss itself, so that it must be made with [`step_with`](Self::step_with).
    fn needs_loss(&self) -> bool {
        false
    }

    /// The parameters, in the order of the groups.
    fn parameters(&self) -> Vec<Parameter>;

    /// The learning rate of each group.
    fn lrs(&self) -> Vec<f64>;

    /// Sets the learning rate of each group. Schedules call it, and replace a rate that you set between their
    /// steps.
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if a rate is negative or not finite, or there is
    /// not one rate for each group. Nothing changes then.
    #[track_caller]
    fn set_lrs(&mut self, lrs: &[f64]) -> Result<()>;

    /// The momentum of each group, or `None` if the optimizer has no momentum. For Adam, it is the first of
    /// the `betas`.
    fn momentums(&self) -> Option<Vec<f64>>;

    /// Sets the momentum of each group. Schedules call it.
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if a momentum is out of range, there is not one
    /// momentum for each group, or the optimizer has no momentum. Nothing changes then.
    #[track_caller]
    fn set_momentums(&mut self, momentums: &[f64]) -> Result<()>;

    /// Everything that the next steps depend on besides the parameters and their gradients. Nothing is
    /// copied, and later steps do not change it.
    fn state_dict(&self) -> OptimizerState;

    /// Continues from a state, including its hyperparameters, as if this optimizer had made the earlier
    /// steps.
    ///
    /// Nothing changes if the state does not fit.
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if the state belongs to another optimizer, or to
    /// other groups, paths, sizes or names, if a hyperparameter is out of range, or if a tensor is missing.
    #[track_caller]
    fn load_state_dict(&mut self, state: &OptimizerState) -> Result<()>;

    /// Removes the gradients of all parameters.
    fn zero_grad(&self) {
        self.parameters().iter().for_each(Parameter::zero_grad);
    }

    /// The learning rate of the first group.
    fn lr(&self) -> f64 {
        self.lrs()[0]
    }

    /// Sets the learning rate of all groups. The next step of a [`Scheduler`](crate::schedule::Scheduler)
    /// replaces it: to go on from another rate, make a new scheduler after this call.
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if it is negative or not finite.
    #[track_caller]
    fn set_lr(&mut self, lr: f64) -> Result<()> {
        let groups = self.lrs().len();
        self.set_lrs(&vec![lr; groups])
    }
}

/// Computes the loss, and adds its gradients to the parameters. A loss that is not finite is an error of
/// `checked`, if that is given.
pub(crate) fn evaluate(
    parameters: &[Parameter],
    loss: Loss<'_>,
    checked: Option<&'static str>,
    caller: &'static Location<'static>,
) -> Result<Tensor> {
    parameters.iter().for_each(Parameter::zero_grad);
    let passes = backward_passes();
    let loss = enable_grad(loss)?;
    if backward_passes() != passes && (began_last_backward(&loss) || !loss.requires_grad()) {
        let message = "the closure has called `backward`, and step_with calls it for the loss that it gets";
        let error = Error::new(ErrorKind::Autograd, "step_with", message).with_repair(CLOSURE);
        return Err(error.at(caller));
    }
    if let Some(op) = checked {
        loss.value().check_finite(op).map_err(|error| error.context("the loss: ").at(caller))?;
    }
    loss.backward().map_err(|error| error.at(caller))?;
    Ok(loss.detach())
}
