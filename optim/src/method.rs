//! [`Method`]: what distinguishes an optimizer. [`Descent`](crate::Descent) does the rest.

use namegrad_core::cpu::math::Real;
use namegrad_core::{Error, ErrorKind, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use smallvec::SmallVec;
use std::fmt::Debug;

/// The hyperparameters of an optimizer, and its formula for one parameter.
///
/// Your own method is a struct of hyperparameters that implements this trait. [`update`](crate::update) runs
/// its loop with the widest vectors of the CPU and on all threads:
///
/// ```
/// use namegrad::optim::{Builder, Method, Optimizer, Real, Slots, Turn, Update, update};
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
///     fn slots(&self) -> &'static [&'static str] {
///         &["momentum_buffer"]
///     }
///     fn step<T: Real>(
///         &self,
///         _: Turn<'_>,
///         param: &mut [T],
///         grad: &[T],
///         slots: Slots<'_, T>,
///     ) -> Result<()> {
///         let [m] = slots.take()?;
///         update(self, param, grad, [m]);
///         Ok(())
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
pub trait Method: Clone + Debug + Send + Sync + Serialize + DeserializeOwned + 'static {
    /// The name of the optimizer in errors and saved states.
    const NAME: &'static str;

    /// The learning rate, per step.
    fn lr(&self) -> f64;

    /// Changes the learning rate.
    fn set_lr(&mut self, lr: f64);

    /// The momentum, if the method has one. Schedules that cycle it read it.
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

    /// The names of the tensors that the method keeps for each parameter with these hyperparameters. A tensor
    /// starts with zeros when it is first named, and is kept when it is no longer named.
    fn slots(&self) -> &'static [&'static str] {
        &[]
    }

    /// The sizes of such a tensor for a parameter of `sizes`.
    fn slot_sizes(&self, _slot: &str, sizes: &[usize]) -> Vec<usize> {
        sizes.to_vec()
    }

    /// Updates one parameter in place. All slices are in row-major order. `slots` has the tensors of
    /// [`slots`](Self::slots), in its order.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if [`Slots::take`] asks for more or fewer tensors than [`slots`](Self::slots)
    /// names.
    fn step<T: Real>(&self, turn: Turn<'_>, param: &mut [T], grad: &[T], slots: Slots<'_, T>) -> Result<()>;
}

/// The tensors that a [`Method`] keeps for a parameter, in the order of [`Method::slots`].
#[derive(Debug)]
pub struct Slots<'a, T> {
    pub(crate) method: &'static str,
    pub(crate) slices: SmallVec<[&'a mut [T]; 4]>,
}

impl<'a, T> Slots<'a, T> {
    /// All tensors, if there are `N` of them.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if there are more or fewer.
    #[track_caller]
    pub fn take<const N: usize>(self) -> Result<[&'a mut [T]; N]> {
        let named = self.slices.len();
        if named != N {
            let message = format!("Method::slots names {named} tensors, Method::step takes {N}");
            return Err(Error::new(ErrorKind::Value, self.method, message)
                .with_repair("Method::slots must name every tensor that Method::step takes, in its order"));
        }
        let mut slices = self.slices.into_iter();
        Ok(std::array::from_fn(|_| slices.next().expect("as many as were counted")))
    }
}

/// What [`Method::step`] knows of the parameter besides its elements.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The number of this step of this parameter, from 1.
    pub number: u64,
    /// Whether all slots were made for this step, so that they are zero.
    pub fresh: bool,
    /// The sizes of the parameter.
    pub sizes: &'a [usize],
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
        self.require(value >= 0.0 && value.is_finite(), || format!("Invalid {what}: {value:?}"))
    }

    /// Checks that factors of moving averages are at least 0 and less than 1.
    #[track_caller]
    pub(crate) fn betas(&self, betas: (f64, f64)) -> Result<()> {
        for (index, beta) in [betas.0, betas.1].into_iter().enumerate() {
            self.require((0.0..1.0).contains(&beta), || {
                format!("Invalid beta parameter at index {index}: {beta:?}")
            })?;
        }
        Ok(())
    }
}

/// The hyperparameters of a method. A row has the doc, the name, the type and the default of one.
///
/// The row `/// The learning rate, per step.` `lr: f64 = 1e-3,` of `Sgd` becomes the field `pub lr: f64`, its
/// value in `Sgd::default()`, and
///
/// ```text
/// impl Builder<Sgd> {
///     /// The learning rate, per step.
///     ///
///     /// Default: `1e-3`.
///     pub fn lr(mut self, lr: f64) -> Self {
///         self.method.lr = lr;
///         self
///     }
/// }
/// ```
macro_rules! hyperparameters {
    (
        $(#[$doc:meta])*
        $Method:ident { $($(#[$row_doc:meta])* $row:ident: $ty:ty = $default:expr,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $Method {
            $($(#[$row_doc])* #[doc = concat!("\n\nDefault: `", stringify!($default), "`.")] pub $row: $ty,)*
        }

        impl Default for $Method {
            fn default() -> $Method {
                $Method { $($row: $default,)* }
            }
        }

        impl $Method {
            /// A builder of an optimizer for these parameters.
            pub fn new(parameters: impl IntoIterator<Item = namegrad_autograd::Parameter>) -> $crate::Builder<$Method> {
                $crate::Builder::new(parameters, $Method::default())
            }
        }

        impl $crate::Builder<$Method> {
            $(
                $(#[$row_doc])*
                #[doc = concat!("\n\nDefault: `", stringify!($default), "`.")]
                pub fn $row(mut self, $row: $ty) -> Self {
                    self.method.$row = $row;
                    self
                }
            )*
        }
    };
}
pub(crate) use hyperparameters;

/// What the tests of formulas share.
#[cfg(test)]
pub(crate) mod testing {
    use super::{Method, Real, Slots, Turn};

    /// A length that one thread updates and one that several do.
    pub(crate) const LENGTHS: [usize; 2] = [37, (1 << 16) + 5];

    /// `n` parameters.
    fn parameters(n: usize) -> impl Iterator<Item = f64> {
        (0..n).map(|i| (i as f64 * 0.1).cos())
    }

    /// Their gradients in step `t`.
    fn gradient(n: usize, t: u64) -> impl Iterator<Item = f64> {
        (0..n).map(move |i| ((i as u64 * 7 + t * 13) as f64 * 0.37).sin())
    }

    /// Checks that `found` differs from `expected` by a few roundings.
    fn assert_close<T: Real>(found: &[T], expected: impl Iterator<Item = f64>, what: &str) {
        let tolerance = 16.0 * T::EPSILON.to_f64();
        for (i, (a, b)) in found.iter().zip(expected).enumerate() {
            assert!((a.to_f64() - b).abs() <= tolerance * (1.0 + b.abs()), "{what}: {a} is not {b} at {i}");
        }
    }

    /// Checks three steps of `method` on `n` parameters: the parameter and the slots follow `by_hand`, which
    /// gives what they are after step `t` from what they were, element by element.
    pub(crate) fn check_steps<T: Real, M: Method, const K: usize>(
        n: usize,
        method: &M,
        by_hand: impl Fn(u64, [f64; K], f64) -> [f64; K],
    ) {
        let start = |p| std::array::from_fn(|k| if k == 0 { p } else { 0.0 });
        let mut expected: Vec<[f64; K]> = parameters(n).map(start).collect();
        let mut param: Vec<T> = parameters(n).map(T::from_f64).collect();
        let mut slots = vec![vec![T::ZERO; n]; method.slots().len()];
        for t in 1..=3 {
            let grad: Vec<T> = gradient(n, t).map(T::from_f64).collect();
            let turn = Turn { number: t, fresh: t == 1, sizes: &[n] };
            let slices = slots.iter_mut().map(Vec::as_mut_slice).collect();
            method.step(turn, &mut param, &grad, Slots { method: M::NAME, slices }).unwrap();
            for (expected, g) in expected.iter_mut().zip(gradient(n, t)) {
                *expected = by_hand(t, *expected, g);
            }
            for (k, found) in [&param].into_iter().chain(&slots).enumerate() {
                let what = format!("slice {k} of {method:?}");
                assert_close(found, expected.iter().map(|state| state[k]), &what);
            }
        }
    }
}
