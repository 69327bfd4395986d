//! [`Method`], the hyperparameters and the formula of an optimizer. [`Descent`] does the rest.

use crate::descent::{Descent, Pass};
use crate::optimizer::Optimizer;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::{Sweep, Update, WithoutSums, sweep};
use namegrad_core::{DType, Element, Error, ErrorKind, NamedTensor, Result, Shape};
use serde::Serialize;
use serde::de::DeserializeOwned;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The hyperparameters of an optimizer, and its formula.
///
/// Your own method is a struct of hyperparameters that implements this trait; [`Builder`](crate::Builder)
/// builds its optimizer. Implement [`update`](Self::update) if each parameter is updated independently of the
/// others. An elementwise formula is an [`Update`], which [`Turn::run`] runs with the widest vectors of the
/// CPU and on all threads:
///
/// ```
/// use namegrad::optim::{Builder, Descent, Method, Optimizer, Real, Turn, Update};
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
///     type Optimizer = Descent<Signum>;
///     fn lr(&self) -> f64 {
///         self.lr
///     }
///     fn set_lr(&mut self, lr: f64) {
///         self.lr = lr;
///     }
///     fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
///         &["momentum_buffer"]
///     }
///     fn update(&self, turn: Turn<'_>) -> Result<()> {
///         turn.run(self)
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
/// A [`Turn`] also has the parameter, its gradient and the tensors of the method as [`NamedTensor`]s, for
/// formulas that treat a parameter as a matrix. Implement [`step`](Self::step) if the update of a parameter
/// depends on other parameters, or if a step evaluates the loss several times.
pub trait Method: Clone + Debug + Send + Sync + Serialize + DeserializeOwned + 'static {
    /// The name of the optimizer in errors and saved states.
    const NAME: &'static str;

    /// The optimizer of this method: `Descent<Self>`, or your own type around it.
    type Optimizer: Optimizer + From<Descent<Self>>;

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
    fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
        &[]
    }

    /// The sizes of such a tensor for a parameter with `sizes`: `[]` for a number.
    fn slot_sizes(&self, _slot: &str, sizes: &[usize]) -> Vec<usize> {
        sizes.to_vec()
    }

    /// The number that a new tensor is filled with.
    fn slot_start(&self, _slot: &str) -> f64 {
        0.0
    }

    /// Checks the tensors that a loaded state has for all parameters together, [`Pass::shared`]. The
    /// parameters have `numel` elements in total.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if they are not those of the method.
    fn check_shared(_shared: &BTreeMap<String, NamedTensor>, _numel: usize) -> Result<()> {
        Ok(())
    }

    /// Whether a step evaluates the loss itself, with [`Pass::evaluate`], so that it must be made with
    /// [`Optimizer::step_with`].
    fn needs_loss() -> bool {
        false
    }

    /// Updates one parameter. The [`Parameter`](namegrad_autograd::Parameter) itself is locked during the
    /// call; use [`Turn::param`].
    ///
    /// # Errors
    /// The errors of the formula. By default, this is an error of kind [`ErrorKind::Unsupported`], for
    /// methods that implement [`step`](Self::step) instead.
    fn update(&self, _turn: Turn<'_>) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, Self::NAME, "this method has no update of one parameter")
            .with_repair("implement Method::update or Method::step"))
    }

    /// Makes one step for all parameters that have a gradient. By default, calls [`update`](Self::update) for
    /// each, for several at once.
    ///
    /// A [`Pass`] provides all gradients at once, can visit the parameters several times, and can evaluate
    /// the loss again:
    ///
    /// ```
    /// use namegrad::optim::{Builder, Descent, Method, Optimizer, Pass};
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
    ///     type Optimizer = Descent<Backtracking>;
    ///     fn lr(&self) -> f64 {
    ///         self.lr
    ///     }
    ///     fn set_lr(&mut self, lr: f64) {
    ///         self.lr = lr;
    ///     }
    ///     fn step(pass: &mut Pass<'_, Self>) -> Result<()> {
    ///         let before = pass.loss()?.value().to_vec::<f32>()?[0];
    ///         let directions = pass.gradients();
    ///         let (mut at, mut next) = (0.0, 1.0);
    ///         loop {
    ///             let mut direction = directions.iter();
    ///             pass.each(|method, turn| {
    ///                 let Some((_, direction)) = direction.next() else { return Ok(()) };
    ///                 turn.param.sub_(&direction.mul(method.lr * (next - at))?).map(drop)
    ///             })?;
    ///             if next < 1e-3 || pass.evaluate()?.value().to_vec::<f32>()?[0] < before {
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
    fn step(pass: &mut Pass<'_, Self>) -> Result<()> {
        pass.each_at_once(|method, turn| method.update(turn))
    }
}

/// The argument of [`Method::update`]: a parameter, its gradient, and the tensors that the method keeps for
/// it.
///
/// For a parameter of a half type, all of them are `f32`: the parameter is a copy that is kept between steps,
/// and is rounded to the parameter after the update.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The number of this step of this parameter, from 1.
    pub number: u64,
    /// Whether all slots are new in this step.
    pub fresh: bool,
    /// The value of the parameter, to be changed in place. Its sizes, names and dtype must not change.
    pub param: &'a mut NamedTensor,
    /// Its gradient, with the same sizes and dtype; contiguous and unnamed.
    pub grad: &'a NamedTensor,
    /// The tensors that [`Method::slots`] names.
    pub slots: Slots<'a>,
}

impl Turn<'_> {
    /// Updates the parameter and all slots elementwise, with the widest vectors of the CPU and on all
    /// threads.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the [`Update`] takes more or fewer slots than [`Method::slots`] names,
    /// [`ErrorKind::Shape`] if a slot does not have the sizes of the parameter.
    pub fn run<const N: usize>(self, step: &impl Update<N>) -> Result<()> {
        let Turn { param, grad, slots, .. } = self;
        let method = slots.method;
        update_tensors(step, param, grad, slots.take::<N>()?).map_err(|error| error.of(method))
    }
}

/// Updates a parameter and tensors of the same sizes elementwise, with the widest vectors of the CPU and on
/// all threads. [`Turn::run`] does this with all slots.
///
/// # Errors
/// [`ErrorKind::Shape`] if the tensors differ in sizes, [`ErrorKind::DType`] if they differ in dtype.
#[track_caller]
pub fn update_tensors<const N: usize>(
    step: &impl Update<N>,
    param: &mut NamedTensor,
    grad: &NamedTensor,
    slots: [&mut NamedTensor; N],
) -> Result<()> {
    sweep_tensors(&WithoutSums(step), param, grad, slots).map(drop)
}

/// Like [`update_tensors`], with a loop that returns sums over all elements.
///
/// # Errors
/// Same as [`update_tensors`].
#[track_caller]
pub fn sweep_tensors<const N: usize, const SUMS: usize>(
    step: &impl Sweep<N, SUMS>,
    param: &mut NamedTensor,
    grad: &NamedTensor,
    slots: [&mut NamedTensor; N],
) -> Result<[f64; SUMS]> {
    for other in [grad].into_iter().chain(slots.iter().map(|slot| &**slot)) {
        if other.sizes() != param.sizes() {
            let message = format!("{:?} numbers for a parameter of {:?}", other.sizes(), param.sizes());
            return Err(Error::new(ErrorKind::Shape, "update_tensors", message)
                .with_repair("update slots of other sizes as tensors: turn.slots.take()"));
        }
    }
    match param.dtype() {
        DType::F64 => sweep_as::<f64, N, SUMS>(step, param, grad, slots),
        _ => sweep_as::<f32, N, SUMS>(step, param, grad, slots),
    }
}

#[track_caller]
fn sweep_as<T: Real + Element, const N: usize, const SUMS: usize>(
    step: &impl Sweep<N, SUMS>,
    param: &mut NamedTensor,
    grad: &NamedTensor,
    slots: [&mut NamedTensor; N],
) -> Result<[f64; SUMS]> {
    let mut slices: SmallVec<[&mut [T]; 4]> = SmallVec::new();
    for slot in slots {
        slices.push(slot.as_mut_slice()?);
    }
    let mut slices = slices.into_iter();
    let slices = std::array::from_fn(|_| slices.next().expect("a slice for each slot"));
    Ok(sweep(step, param.as_mut_slice()?, grad.as_slice()?, slices))
}

/// The number in a tensor with one element.
pub(crate) fn number(tensor: &NamedTensor) -> Result<f64> {
    Ok(tensor.to_vec::<f64>()?[0])
}

/// The number in a slot of sizes `[]`, in single precision: PyTorch keeps such numbers as `f32` for
/// parameters of any dtype.
pub(crate) fn single(slot: &NamedTensor) -> Result<f32> {
    Ok(number(slot)? as f32)
}

/// Sets the number in a slot of sizes `[]`.
pub(crate) fn set_single(slot: &mut NamedTensor, number: f32) -> Result<()> {
    match slot.dtype() {
        DType::F64 => slot.as_mut_slice::<f64>()?[0] = number.into(),
        _ => slot.as_mut_slice::<f32>()?[0] = number,
    }
    Ok(())
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
        let named = self.slots.len();
        if named != N {
            let message = format!("Method::slots names {named} tensors, the update takes {N}");
            return Err(Error::new(ErrorKind::Value, self.method, message)
                .with_repair("Method::slots must name every tensor that the update takes, in its order"));
        }
        let mut slots = self.slots.iter_mut().map(|(_, slot)| slot);
        Ok(std::array::from_fn(|_| slots.next().expect("as many as were counted")))
    }
}

/// Checks of hyperparameters, with PyTorch's messages.
pub(crate) struct Checks(pub &'static str);

impl Checks {
    /// Checks that `holds` is true.
    #[track_caller]
    pub(crate) fn require(&self, holds: bool, message: impl FnOnce() -> String) -> Result<()> {
        if holds { Ok(()) } else { Err(Error::new(ErrorKind::Value, self.0, message())) }
    }

    /// Checks that a number is finite and not negative.
    #[track_caller]
    pub(crate) fn not_negative(&self, what: &str, value: f64) -> Result<()> {
        self.require(value >= 0.0 && value.is_finite(), || {
            format!("Invalid {what}: {value:?}; it must be finite and not negative")
        })
    }

    /// Checks that a number is not NaN, of those that PyTorch does not check.
    #[track_caller]
    pub(crate) fn not_nan(&self, what: &str, value: f64) -> Result<()> {
        self.require(!value.is_nan(), || format!("Invalid {what}: {value:?}; it must be a number"))
    }

    /// Checks that numbers are finite and not negative.
    #[track_caller]
    pub(crate) fn none_negative(&self, numbers: &[(&str, f64)]) -> Result<()> {
        for (what, value) in numbers {
            self.not_negative(what, *value)?;
        }
        Ok(())
    }

    /// Checks that a number is finite and not less than `bound`, in the words of PyTorch's newer optimizers.
    #[track_caller]
    pub(crate) fn at_least(&self, what: &str, bound: f64, value: f64) -> Result<()> {
        self.require(value >= bound && value.is_finite(), || {
            format!("{what} should be >= {bound} but is: {value:?}")
        })
    }

    /// Checks the hyperparameters that Adam and similar methods have in common.
    #[track_caller]
    pub(crate) fn moments(&self, lr: f64, betas: (f64, f64), eps: f64, weight_decay: f64) -> Result<()> {
        self.none_negative(&[("learning rate", lr), ("epsilon value", eps)])?;
        self.betas(betas)?;
        self.not_negative("weight_decay value", weight_decay)
    }

    /// Checks that factors of moving averages are at least 0 and less than 1.
    #[track_caller]
    pub(crate) fn betas(&self, betas: (f64, f64)) -> Result<()> {
        for (index, beta) in [betas.0, betas.1].into_iter().enumerate() {
            self.require((0.0..1.0).contains(&beta), || {
                format!(
                    "Invalid beta parameter at index {index}: {beta:?}; it must be at least 0 and less than 1"
                )
            })?;
        }
        Ok(())
    }
}

/// Helpers for the tests of formulas.
#[cfg(test)]
pub(crate) mod testing {
    use super::{Element, Method, NamedTensor, Real, Slots, Turn};

    /// A length that one thread updates and one that several do.
    pub(crate) const LENGTHS: [usize; 2] = [37, (1 << 16) + 5];

    /// `n` parameters.
    pub(crate) fn parameters(n: usize) -> impl Iterator<Item = f64> {
        (0..n).map(|i| (i as f64 * 0.1).cos())
    }

    /// Their gradients in step `t`.
    pub(crate) fn gradient(n: usize, t: u64) -> impl Iterator<Item = f64> {
        (0..n).map(move |i| ((i as u64 * 7 + t * 13) as f64 * 0.37).sin())
    }

    /// Checks that `found` differs from `expected` by a few roundings.
    pub(crate) fn assert_close<T: Real>(found: &[T], expected: impl Iterator<Item = f64>, what: &str) {
        let tolerance = 16.0 * T::EPSILON.to_f64();
        for (i, (a, b)) in found.iter().zip(expected).enumerate() {
            assert!((a.to_f64() - b).abs() <= tolerance * (1.0 + b.abs()), "{what}: {a} is not {b} at {i}");
        }
    }

    /// Numbers as a tensor of `T`.
    pub(crate) fn tensor<T: Real + Element>(
        numbers: impl Iterator<Item = f64>,
        sizes: &[usize],
    ) -> NamedTensor {
        NamedTensor::from_slice(&numbers.map(T::from_f64).collect::<Vec<T>>(), sizes).unwrap()
    }

    /// A parameter and its state, to be stepped without an optimizer.
    pub(crate) struct Stepped<'m, M> {
        pub(crate) method: &'m M,
        pub(crate) param: NamedTensor,
        pub(crate) slots: Vec<(String, NamedTensor)>,
        steps: u64,
    }

    impl<'m, M: Method> Stepped<'m, M> {
        pub(crate) fn new<T: Real + Element>(method: &'m M, param: NamedTensor) -> Stepped<'m, M> {
            let slot = |slot: &&str| {
                let sizes = method.slot_sizes(slot, param.sizes());
                let start = vec![method.slot_start(slot); sizes.iter().product()];
                (slot.to_string(), tensor::<T>(start.into_iter(), &sizes))
            };
            let slots = method.slots(param.sizes()).iter().map(slot).collect();
            Stepped { method, param, slots, steps: 0 }
        }

        /// The next step.
        pub(crate) fn step(&mut self, grad: &NamedTensor) {
            self.steps += 1;
            let Stepped { method, param, slots, steps } = self;
            let slots = Slots { method: M::NAME, slots };
            method.update(Turn { number: *steps, fresh: *steps == 1, param, grad, slots }).unwrap();
        }
    }

    /// Checks three steps of `method` on `n` parameters: the parameter and the slots must follow `by_hand`,
    /// which computes their values after step `t` from the previous values, element by element. Slots that
    /// are single numbers are not among them.
    pub(crate) fn check_steps<T: Real + Element, M: Method, const K: usize>(
        n: usize,
        method: &M,
        by_hand: impl Fn(u64, [f64; K], f64) -> [f64; K],
    ) {
        let slots = method.slots(&[n]);
        let starts: Vec<f64> = slots.iter().map(|slot| method.slot_start(slot)).collect();
        let start =
            |p| std::array::from_fn(|k| if k == 0 { p } else { starts.get(k - 1).copied().unwrap_or(0.0) });
        let mut expected: Vec<[f64; K]> = parameters(n).map(start).collect();
        let mut stepped = Stepped::new::<T>(method, tensor::<T>(parameters(n), &[n]));
        for t in 1..=3 {
            stepped.step(&tensor::<T>(gradient(n, t), &[n]));
            for (expected, g) in expected.iter_mut().zip(gradient(n, t)) {
                *expected = by_hand(t, *expected, g);
            }
            let slots = stepped.slots.iter().map(|(_, slot)| slot).filter(|slot| slot.ndim() > 0);
            for (k, found) in [&stepped.param].into_iter().chain(slots).enumerate() {
                let what = format!("slice {k} of {method:?}");
                assert_close(found.as_slice::<T>().unwrap(), expected.iter().map(|state| state[k]), &what);
            }
        }
    }
}
