//! [`Method`]: what an optimizer has to say of its own. [`Descent`](crate::Descent) does the rest.

use namegrad_core::cpu::math::Real;
use namegrad_core::{Error, ErrorKind, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// The hyperparameters of an optimizer, and its formula for one parameter.
///
/// A method of one's own is a struct of hyperparameters with this trait:
///
/// ```
/// use namegrad::optim::{Builder, Method, Optimizer, Real, Turn};
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
///     fn step<T: Real>(&self, _: Turn<'_>, param: &mut [T], grad: &[T], slots: &mut [&mut [T]]) {
///         let [m] = slots else { unreachable!() };
///         let [lr, beta] = [self.lr, self.beta].map(T::from_f64);
///         for ((p, g), m) in param.iter_mut().zip(grad).zip(m.iter_mut()) {
///             *m = beta * *m + (T::ONE - beta) * *g;
///             *p = *p - if *m > T::ZERO { lr } else { -lr };
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
    /// The name of the optimizer, as errors and saved states have it.
    const NAME: &'static str;

    /// The learning rate, per step.
    fn lr(&self) -> f64;

    /// Changes the learning rate.
    fn set_lr(&mut self, lr: f64);

    /// What schedules that cycle the momentum read, if the method has one.
    fn momentum(&self) -> Option<f64> {
        None
    }

    /// Changes the momentum, if the method has one.
    fn set_momentum(&mut self, _momentum: f64) {}

    /// Are the hyperparameters in their ranges? Asked when a group is made.
    ///
    /// # Errors
    /// [`ErrorKind::Value`].
    #[track_caller]
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The names of the tensors that these hyperparameters make it keep for each parameter. A tensor is made, of zeros, when it is first
    /// asked for, and stays when it is not asked for any more.
    fn slots(&self) -> &'static [&'static str] {
        &[]
    }

    /// The sizes of such a tensor, for a parameter of `sizes`.
    fn slot_sizes(&self, _slot: &str, sizes: &[usize]) -> Vec<usize> {
        sizes.to_vec()
    }

    /// One step for one parameter, in place. All slices are in row-major order; `slots` are those of [`slots`](Self::slots), in its order.
    fn step<T: Real>(&self, turn: Turn<'_>, param: &mut [T], grad: &[T], slots: &mut [&mut [T]]);
}

/// What [`Method::step`] is told of the parameter besides its elements.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The number of this step of this parameter, from 1.
    pub number: u64,
    /// Whether all slots were made for this step, and so are zero.
    pub fresh: bool,
    /// The sizes of the parameter.
    pub sizes: &'a [usize],
}

/// Checks of hyperparameters, with PyTorch's sentences.
pub(crate) struct Checks(pub &'static str);

impl Checks {
    /// `what` must hold; NaN never does.
    #[track_caller]
    pub(crate) fn require(&self, holds: bool, message: impl FnOnce() -> String) -> Result<()> {
        if holds { Ok(()) } else { Err(Error::new(ErrorKind::Value, self.0, message())) }
    }

    /// A number that must be finite and not negative.
    #[track_caller]
    pub(crate) fn not_negative(&self, what: &str, value: f64) -> Result<()> {
        self.require(value >= 0.0 && value.is_finite(), || format!("Invalid {what}: {value:?}"))
    }

    /// Factors of moving averages, each at least 0 and below 1.
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

/// The hyperparameters of a method, one row each: its doc, its name, its type, its default.
///
/// The row `/// The learning rate, per step.` `lr: f64 = 1e-3,` of `Sgd` gives the field `pub lr: f64`, its value in `Sgd::default()`, and
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
            /// An optimizer of these parameters; to be given hyperparameters and built.
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
