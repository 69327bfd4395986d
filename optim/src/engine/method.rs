//! [`Method`], the trait of every optimizer's hyperparameters and formula.

use super::*;
use namegrad_core::cpu::update::{Compiled, Loops, WithoutSums};
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// The hyperparameters of an optimizer, and its formula. [`AdamOptions`](crate::AdamOptions) and all others
/// implement it, and so does an optimizer of yours.
///
/// [`Descent`](crate::Descent) is the optimizer of a method: `Adam` is `Descent<AdamOptions>`. It has the
/// groups, the state, saving and loading. Implement [`update`](Self::update) if each parameter is updated
/// independently of the others. An elementwise formula is an [`Update`], which [`ParameterStep::run`] runs
/// with the widest vectors of the CPU and on all threads. The hyperparameters are saved in the state, so they
/// derive serde's traits, and your `Cargo.toml` has `serde = { version = "1", features = ["derive"] }`:
///
/// ```
/// use namegrad::optim::{Builder, Method, Optimizer, ParameterStep, Real, Update};
/// use namegrad::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// /// Sign descent with momentum: `m = β m + (1 - β) g`, `param -= lr sign(m)`.
/// #[derive(Clone, Debug, Serialize, Deserialize)]
/// struct Signum {
///     lr: f64,
///     beta: f64,
/// }
///
/// impl Method for Signum {
///     const NAME: &'static str = "Signum";
///     fn lr(&self) -> f64 {
///         self.lr
///     }
///     fn set_lr(&mut self, lr: f64) {
///         self.lr = lr;
///     }
///     fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
///         &["momentum_buffer"]
///     }
///     fn update(&self, step: ParameterStep<'_>) -> Result<()> {
///         step.run(self)
///     }
/// }
///
/// impl Update<1> for Signum {
///     #[inline(always)]
///     fn run<T: Real>(&self, param: &mut [T], grad: &[T], [m]: [&mut [T]; 1]) {
///         let [lr, beta] = [self.lr, self.beta].map(T::from_f64);
///         for ((p, g), m) in param.iter_mut().zip(grad).zip(m) {
///             *m = beta * *m + (T::ONE - beta) * *g;
///             *p -= if *m > T::ZERO { lr } else { -lr };
///         }
///     }
/// }
///
/// let weight = Parameter::new(Tensor::new([1.0, -1.0])?)?;
/// let mut optimizer = Builder::new([weight.clone()], Signum { lr: 0.5, beta: 0.9 }).build()?;
/// weight.tensor().mul(&weight.tensor())?.sum(..)?.backward()?;
/// optimizer.step()?;
/// assert_eq!(weight.tensor().to_vec::<f32>()?, [0.5, -0.5]);
/// # Ok::<(), Error>(())
/// ```
///
/// A [`ParameterStep`] also has the parameter, its gradient and the tensors of the method as
/// [`NamedTensor`]s, for formulas that treat a parameter as a matrix. [`Slots::take`] gives the tensors:
/// ```
/// # use namegrad::optim::{Builder, Method, Optimizer, ParameterStep};
/// # use namegrad::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Clone, Debug, Serialize, Deserialize)]
/// # struct Heavy { lr: f64 }
/// # impl Method for Heavy {
/// # const NAME: &'static str = "Heavy";
/// # fn lr(&self) -> f64 { self.lr }
/// # fn set_lr(&mut self, lr: f64) { self.lr = lr; }
/// fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
///     &["velocity"]
/// }
/// fn update(&self, step: ParameterStep<'_>) -> Result<()> {
///     let [velocity] = step.slots.take()?;
///     velocity.mul_(0.9)?.add_(step.grad)?;
///     step.param.sub_(&velocity.mul(self.lr)?).map(drop)
/// }
/// # }
/// # let weight = Parameter::new(Tensor::new([1.0])?.refine_names(["in"])?)?;
/// # let mut optimizer = Builder::new([weight.clone()], Heavy { lr: 0.25 }).build()?;
/// # weight.tensor().square()?.sum(..)?.backward()?;
/// # optimizer.step()?;
/// # optimizer.step()?;
/// # assert_eq!(weight.tensor().to_vec::<f32>()?, [1.0 - 0.25 * 2.0 - 0.25 * 3.8]);
/// # Ok::<(), Error>(())
/// ```
/// Implement [`step`](Self::step) if the
/// update of a parameter depends on other parameters, or if a step evaluates the loss several times.
pub trait Method: Clone + Debug + Send + Sync + Serialize + DeserializeOwned + 'static {
    /// The name of the optimizer in errors and saved states.
    const NAME: &'static str;

    /// The learning rate, per step.
    fn lr(&self) -> f64;

    /// Changes the learning rate.
    fn set_lr(&mut self, lr: f64);

    /// The momentum, if the method has one. Schedules that cycle the momentum read it.
    fn momentum(&self) -> Option<f64> {
        None
    }

    /// Changes the momentum, if the method has one.
    fn set_momentum(&mut self, _momentum: f64) {}

    /// Checks the ranges of the hyperparameters when a group is made.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a hyperparameter is out of range.
    #[track_caller]
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Checks a parameter that is added to a group with these hyperparameters.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the method has no step for a parameter with these dims.
    #[track_caller]
    fn check_parameter(&self, _shape: &Shape) -> Result<()> {
        Ok(())
    }

    /// Checks all groups together when a group is added.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the method cannot step these groups.
    #[track_caller]
    fn check_groups(_groups: &[Self]) -> Result<()> {
        Ok(())
    }

    /// The names of the tensors that the method keeps for a parameter with `sizes` and these hyperparameters.
    /// A tensor is made when it is first named, and is kept when it is no longer named.
    /// [`ParameterStep::slots`] has them in a step, in this order.
    fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
        &[]
    }

    /// The sizes of such a tensor for a parameter with `sizes`: `[]` for a number.
    fn slot_sizes(&self, _slot: &str, sizes: &[usize]) -> Vec<usize> {
        all_of(sizes)
    }

    /// The number that a new tensor is filled with.
    fn slot_start(&self, _slot: &str) -> f64 {
        0.0
    }

    /// Checks the tensors that a loaded state has for all parameters together, [`OptimizerStep::shared`]. The
    /// parameters have `numel` elements in total.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if they are not those of the method.
    fn check_shared(_shared: &BTreeMap<String, NamedTensor>, _numel: usize) -> Result<()> {
        Ok(())
    }

    /// Whether a step evaluates the loss itself, with [`OptimizerStep::evaluate`], so that it must be made
    /// with [`Optimizer::step_with`](crate::Optimizer::step_with).
    fn needs_loss() -> bool {
        false
    }

    /// Whether a step has to see the whole of a parameter, because the change of an element depends on others.
    /// A parameter of which each process has a part is then put together for its step, and the tensors that
    /// the method keeps for it are whole.
    fn needs_whole() -> bool {
        false
    }

    /// Updates one parameter. The [`Parameter`](namegrad_autograd::Parameter) itself is locked during the
    /// call; use [`ParameterStep::param`].
    ///
    /// # Errors
    /// The errors of the formula. By default, this is an error of kind [`ErrorKind::Unsupported`], for
    /// methods that implement [`step`](Self::step) instead.
    fn update(&self, _step: ParameterStep<'_>) -> Result<()> {
        let message = "this method has neither Method::update nor Method::step";
        Err(Error::new(ErrorKind::Unsupported, Self::NAME, message))
    }

    /// Makes one step for all parameters that have a gradient, with the hyperparameters of each group. By
    /// default, calls [`update`](Self::update) for each, for several at once.
    ///
    /// An [`OptimizerStep`] provides all gradients at once, can visit the parameters several times, and can
    /// evaluate the loss again:
    ///
    /// ```
    /// use namegrad::optim::{Builder, Method, Optimizer, OptimizerStep};
    /// use namegrad::prelude::*;
    /// use serde::{Deserialize, Serialize};
    ///
    /// /// Gradient descent that halves its step until the loss falls.
    /// #[derive(Clone, Debug, Serialize, Deserialize)]
    /// struct Backtracking {
    ///     lr: f64,
    /// }
    ///
    /// impl Method for Backtracking {
    ///     const NAME: &'static str = "Backtracking";
    ///     fn lr(&self) -> f64 {
    ///         self.lr
    ///     }
    ///     fn set_lr(&mut self, lr: f64) {
    ///         self.lr = lr;
    ///     }
    ///     fn step(groups: &[Self], step: &mut OptimizerStep<'_>) -> Result<()> {
    ///         let before = step.loss()?.value().to_vec::<f32>()?[0];
    ///         let directions = step.gradients();
    ///         let (mut at, mut next) = (0.0, 1.0);
    ///         loop {
    ///             let mut direction = directions.iter();
    ///             step.each(|group, own| {
    ///                 let Some((_, direction)) = direction.next() else { return Ok(()) };
    ///                 own.param.sub_(&direction.mul(groups[group].lr * (next - at))?).map(drop)
    ///             })?;
    ///             if next < 1e-3 || step.evaluate()?.value().to_vec::<f32>()?[0] < before {
    ///                 return Ok(());
    ///             }
    ///             (at, next) = (next, next / 2.0);
    ///         }
    ///     }
    /// }
    ///
    /// let weight = Parameter::new(Tensor::new([3.0])?)?;
    /// let mut optimizer = Builder::new([weight.clone()], Backtracking { lr: 2.0 }).build()?;
    /// for _ in 0..10 {
    ///     optimizer.step_with(&mut || weight.tensor().square()?.sum(..))?;
    /// }
    /// assert!(weight.tensor().to_vec::<f32>()?[0].abs() < 1e-3);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the formula.
    fn step(_groups: &[Self], step: &mut OptimizerStep<'_>) -> Result<()> {
        step.update_each()
    }

    /// The table of the hyperparameters, if they are one. Their ranges are checked before
    /// [`check`](Self::check).
    #[doc(hidden)]
    fn rows(&self) -> Option<&dyn Rows> {
        None
    }

    /// The hyperparameters as JSON, or what is wrong with them.
    #[doc(hidden)]
    fn to_json(&self) -> std::result::Result<Json, String> {
        let file = TensorFile::of_json(Self::NAME, self);
        file.and_then(|file| file.value(Self::NAME, "")).map_err(|error| error.message().into())
    }

    /// The hyperparameters in JSON, or what is wrong with it. Options of the library do not need serde.
    #[doc(hidden)]
    fn of_json(json: &Json) -> std::result::Result<Self, String> {
        Self::deserialize(json).map_err(|error| format!("{error}"))
    }
}

/// `to_vec`, which is compiled once.
#[inline(never)]
fn all_of(sizes: &[usize]) -> Vec<usize> {
    sizes.to_vec()
}

/// A step of one parameter, the argument of [`Method::update`]: the parameter, its gradient, and the tensors
/// that the method keeps for it.
///
/// For a parameter of a half type, all of them are `f32`: the parameter is a copy that is kept between steps,
/// and is rounded to the parameter after the update.
#[derive(Debug)]
pub struct ParameterStep<'a> {
    /// The number of this step of this parameter, from 1.
    pub number: u64,
    /// Whether all slots are new in this step.
    pub fresh: bool,
    /// The value of the parameter, to be changed in place. Its sizes, names and dtype must not change.
    pub param: &'a mut NamedTensor,
    /// Its gradient, with the same sizes and dtype; contiguous and unnamed.
    pub grad: &'a NamedTensor,
    /// The tensors that [`Method::slots`] names: `let [m, v] = step.slots.take()?;`.
    pub slots: Slots<'a>,
}

impl ParameterStep<'_> {
    /// Updates the parameter and all slots elementwise, with the widest vectors of the CPU and on all
    /// threads.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the [`Update`] takes more or fewer slots than [`Method::slots`] names,
    /// [`ErrorKind::Shape`] if a slot does not have the sizes of the parameter.
    pub fn run<const N: usize>(self, update: &impl Update<N>) -> Result<()> {
        self.run_loops(N, &Compiled::<_, N, 0>(&WithoutSums(update)))
    }

    pub(crate) fn run_loops(self, count: usize, loops: &dyn Loops) -> Result<()> {
        let ParameterStep { param, grad, slots, .. } = self;
        slots.check(count)?;
        let mut tensors = slots.slots.iter_mut().map(|(_, slot)| slot);
        update::run(loops, param, grad, &mut tensors, &mut []).map_err(|error| error.of(slots.method))
    }
}

/// The tensors that a [`Method`] keeps for a parameter, in the order of [`Method::slots`].
#[derive(Debug)]
pub struct Slots<'a> {
    pub(crate) method: &'static str,
    pub(crate) slots: &'a mut [(String, NamedTensor)],
}

impl<'a> Slots<'a> {
    /// All tensors, if there are `N` of them.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if there are more or fewer.
    #[track_caller]
    pub fn take<const N: usize>(self) -> Result<[&'a mut NamedTensor; N]> {
        self.check(N)?;
        let mut slots = self.slots.iter_mut().map(|(_, slot)| slot);
        Ok(std::array::from_fn(|_| slots.next().expect("as many as were counted")))
    }

    #[track_caller]
    fn check(&self, count: usize) -> Result<()> {
        let named = self.slots.len();
        Error::ensure(named == count, ErrorKind::Value, self.method, || {
            format!(
                "Method::slots names {named} tensors, the update takes {count}; each needs a name, in the same order"
            )
        })
    }
}
