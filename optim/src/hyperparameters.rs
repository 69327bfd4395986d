//! [`optimizer!`], which generates an optimizer from a table of hyperparameters and a [`Formula`].

use crate::descent::Pass;
use crate::method::{Method, Turn};
use namegrad_core::{NamedTensor, Result, Shape};
use std::collections::BTreeMap;

/// What [`optimizer!`] does not generate: the functions of the same meaning in [`Method`].
pub(crate) trait Formula: Method {
    /// [`Method::check`]. Errors have this name.
    #[track_caller]
    fn check_as(&self, name: &'static str) -> Result<()>;

    /// [`Method::check_parameter`]
    #[track_caller]
    fn check_shape(&self, _shape: &Shape) -> Result<()> {
        Ok(())
    }

    /// [`Method::check_groups`]
    #[track_caller]
    fn check_all(_groups: &[Self]) -> Result<()> {
        Ok(())
    }

    /// [`Method::slots`]
    fn tensors(&self, sizes: &[usize]) -> &'static [&'static str];

    /// [`Method::slot_sizes`]
    fn tensor_sizes(&self, _slot: &str, sizes: &[usize]) -> Vec<usize> {
        sizes.to_vec()
    }

    /// [`Method::slot_start`]
    fn tensor_start(&self, _slot: &str) -> f64 {
        0.0
    }

    /// [`Method::check_shared`]
    fn check_common(_shared: &BTreeMap<String, NamedTensor>, _numel: usize) -> Result<()> {
        Ok(())
    }

    /// [`Method::needs_loss`].
    fn evaluates_loss() -> bool {
        false
    }

    /// [`Method::update`]
    fn advance(&self, turn: Turn<'_>) -> Result<()>;

    /// [`Method::step`]
    fn advance_all(pass: &mut Pass<'_, Self>) -> Result<()> {
        pass.each_at_once(|method, turn| method.advance(turn))
    }
}

/// Generates an optimizer, its options and its builder from a table of hyperparameters. A row has the doc,
/// the name, the type and the default of a hyperparameter.
///
/// `Sgd(momentum) SgdOptions { lr: f64 = 1e-3, .. }` becomes the struct `Sgd` around a `Descent<SgdOptions>`,
/// with `new`, `builder` and access to its groups; the struct `SgdOptions`, which is the [`Method`], with
/// `Default` and a setter for each row; and the same setters for `Builder<SgdOptions>`. The expression in
/// parentheses is the momentum, if there is one. The options must implement [`Formula`].
///
/// [`Method`]: crate::Method
macro_rules! optimizer {
    (
        $(#[$doc:meta])*
        $Optimizer:ident $(($($momentum:tt)+))?
        $Options:ident { $($(#[$row_doc:meta])* $row:ident: $ty:ty = $default:expr,)* }
    ) => {
        $(#[$doc])*
        pub struct $Optimizer($crate::Descent<$Options>);

        impl $Optimizer {
            /// An optimizer for these parameters with the default hyperparameters.
            ///
            /// # Errors
            /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if a parameter is given twice, or there
            /// are no parameters.
            #[track_caller]
            pub fn new(
                parameters: impl IntoIterator<Item = namegrad_autograd::Parameter>,
            ) -> namegrad_core::Result<$Optimizer> {
                $Optimizer::builder(parameters).build()
            }

            /// A builder for an optimizer with these parameters.
            pub fn builder(
                parameters: impl IntoIterator<Item = namegrad_autograd::Parameter>,
            ) -> $crate::Builder<$Options> {
                $crate::Builder::new(parameters, $Options::default())
            }

            /// A builder for an optimizer with these parameters, `model.named_parameters()`. Saved states have
            /// their paths, and you can [choose groups by pattern](crate::Builder::group_matching), except for
            /// [`Lbfgs`](crate::Lbfgs), which has one group.
            pub fn builder_named(
                parameters: impl IntoIterator<Item = (String, namegrad_autograd::Parameter)>,
            ) -> $crate::Builder<$Options> {
                $crate::Builder::named(parameters, $Options::default())
            }

            /// The hyperparameters of each group.
            pub fn groups(&self) -> &[$Options] {
                self.0.groups()
            }

            /// The hyperparameters of each group, which you can change between steps.
            pub fn groups_mut(&mut self) -> &mut [$Options] {
                self.0.groups_mut()
            }

            /// The parameters of a group; empty if there is no such group.
            pub fn group_parameters(&self, group: usize) -> Vec<namegrad_autograd::Parameter> {
                self.0.group_parameters(group)
            }

            /// Adds a group during training, for example layers that were frozen at first. `change` sets what
            /// differs from the first group.
            ///
            /// # Errors
            /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if a hyperparameter is out of range, the
            /// optimizer already has a parameter, or it is [`Lbfgs`](crate::Lbfgs), which has one group.
            #[track_caller]
            pub fn add_group(
                &mut self,
                parameters: impl IntoIterator<Item = impl Into<$crate::Listed>>,
                change: impl FnOnce(&mut $Options),
            ) -> namegrad_core::Result<()> {
                self.0.add_group(parameters, change)
            }
        }

        impl From<$crate::Descent<$Options>> for $Optimizer {
            fn from(descent: $crate::Descent<$Options>) -> $Optimizer {
                $Optimizer(descent)
            }
        }

        impl std::fmt::Debug for $Optimizer {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.0, f)
            }
        }

        impl $crate::Optimizer for $Optimizer {
            #[track_caller]
            fn step(&mut self) -> namegrad_core::Result<()> {
                self.0.step()
            }
            #[track_caller]
            fn step_with(&mut self, loss: $crate::Loss<'_>) -> namegrad_core::Result<namegrad_autograd::Tensor> {
                self.0.step_with(loss)
            }
            fn needs_loss(&self) -> bool {
                self.0.needs_loss()
            }
            fn parameters(&self) -> Vec<namegrad_autograd::Parameter> {
                self.0.parameters()
            }
            fn lrs(&self) -> Vec<f64> {
                self.0.lrs()
            }
            #[track_caller]
            fn set_lrs(&mut self, lrs: &[f64]) -> namegrad_core::Result<()> {
                self.0.set_lrs(lrs)
            }
            fn momentums(&self) -> Option<Vec<f64>> {
                self.0.momentums()
            }
            #[track_caller]
            fn set_momentums(&mut self, momentums: &[f64]) -> namegrad_core::Result<()> {
                self.0.set_momentums(momentums)
            }
            fn zero_grad(&self) {
                self.0.zero_grad()
            }
            fn state_dict(&self) -> $crate::OptimizerState {
                self.0.state_dict()
            }
            #[track_caller]
            fn load_state_dict(&mut self, state: &$crate::OptimizerState) -> namegrad_core::Result<()> {
                self.0.load_state_dict(state)
            }
        }

        #[doc = concat!("The hyperparameters of [`", stringify!($Optimizer), "`], one value for each group of parameters.")]
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $Options {
            $($(#[$row_doc])* #[doc = concat!("\n\nDefault: `", stringify!($default), "`.")] pub $row: $ty,)*
        }

        impl Default for $Options {
            fn default() -> $Options {
                $Options { $($row: $default,)* }
            }
        }

        impl $Options {
            /// The defaults.
            pub fn new() -> $Options {
                $Options::default()
            }
            $(
                $(#[$row_doc])*
                #[doc = concat!("\n\nDefault: `", stringify!($default), "`.")]
                pub fn $row(mut self, $row: $ty) -> Self {
                    self.$row = $row;
                    self
                }
            )*
        }

        impl $crate::Builder<$Options> {
            $(
                $(#[$row_doc])*
                #[doc = concat!("\n\nDefault: `", stringify!($default), "`.")]
                pub fn $row(mut self, $row: $ty) -> Self {
                    self.method.$row = $row;
                    self
                }
            )*
        }

        impl $crate::Method for $Options {
            const NAME: &'static str = stringify!($Optimizer);
            type Optimizer = $Optimizer;

            fn lr(&self) -> f64 {
                self.lr
            }
            fn set_lr(&mut self, lr: f64) {
                self.lr = lr;
            }
            $(
                fn momentum(&self) -> Option<f64> {
                    Some(self.$($momentum)+)
                }
                fn set_momentum(&mut self, momentum: f64) {
                    self.$($momentum)+ = momentum;
                }
            )?
            #[track_caller]
            fn check(&self) -> namegrad_core::Result<()> {
                $crate::hyperparameters::Formula::check_as(self, Self::NAME)
            }
            #[track_caller]
            fn check_parameter(&self, shape: &namegrad_core::Shape) -> namegrad_core::Result<()> {
                $crate::hyperparameters::Formula::check_shape(self, shape)
            }
            #[track_caller]
            fn check_groups(groups: &[Self]) -> namegrad_core::Result<()> {
                <Self as $crate::hyperparameters::Formula>::check_all(groups)
            }
            fn slots(&self, sizes: &[usize]) -> &'static [&'static str] {
                $crate::hyperparameters::Formula::tensors(self, sizes)
            }
            fn slot_sizes(&self, slot: &str, sizes: &[usize]) -> Vec<usize> {
                $crate::hyperparameters::Formula::tensor_sizes(self, slot, sizes)
            }
            fn slot_start(&self, slot: &str) -> f64 {
                $crate::hyperparameters::Formula::tensor_start(self, slot)
            }
            fn check_shared(
                shared: &std::collections::BTreeMap<String, namegrad_core::NamedTensor>,
                numel: usize,
            ) -> namegrad_core::Result<()> {
                <Self as $crate::hyperparameters::Formula>::check_common(shared, numel)
            }
            fn needs_loss() -> bool {
                <Self as $crate::hyperparameters::Formula>::evaluates_loss()
            }
            fn update(&self, turn: $crate::Turn<'_>) -> namegrad_core::Result<()> {
                $crate::hyperparameters::Formula::advance(self, turn)
            }
            fn step(pass: &mut $crate::Pass<'_, Self>) -> namegrad_core::Result<()> {
                <Self as $crate::hyperparameters::Formula>::advance_all(pass)
            }
        }
    };
}
pub(crate) use optimizer;
