//! [`Descent`], the optimizer of a [`Method`]: an [`Engine`] that knows the type of its hyperparameters.

use super::*;
use listed::{merged, move_matching};
use namegrad_nn::misused::{Built, IsBuilt, Options, TakesOptions};
use std::marker::PhantomData;

/// The optimizer of a [`Method`]: parameter groups with their hyperparameters, and the state of each
/// parameter. [`Sgd`](crate::Sgd), [`Adam`](crate::Adam) and all others are names of it, and so can your own
/// optimizers be.
///
/// An elementwise step makes one pass over each parameter, its gradient and its state, and allocates nothing.
///
/// For a parameter of a half type, the optimizer keeps a copy in `f32`, the master. Steps change the master,
/// and the parameter is the master rounded, so steps that are too small for the half type add up. (PyTorch
/// steps the half type itself, in which they are lost.) The master is a part of the saved state. Where the
/// parameter was changed by something else, such as loading a model, the master follows it.
pub struct Descent<M> {
    /// Its groups are a `Vec<M>`.
    engine: Engine,
    method: PhantomData<fn() -> M>,
}

impl<M: Method + Default> Descent<M> {
    /// An optimizer for these parameters with the default hyperparameters.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a parameter is given twice, or there are no parameters.
    #[track_caller]
    pub fn new(parameters: impl ParameterList) -> Result<Descent<M>> {
        Descent::builder(parameters).build()
    }

    /// A builder for an optimizer with these parameters.
    pub fn builder(parameters: impl ParameterList) -> Builder<M> {
        Builder::new(parameters, M::default())
    }

    /// A builder for an optimizer with these parameters, `model.named_parameters()`. Saved states have their
    /// paths, and you can [choose groups by pattern](Builder::group_matching), except for
    /// [`Lbfgs`](crate::Lbfgs), which has one group.
    pub fn builder_named(parameters: impl IntoIterator<Item = (String, Parameter)>) -> Builder<M> {
        Builder::named(parameters, M::default())
    }
}

impl<M: Method> Descent<M> {
    /// The hyperparameters of each group.
    pub fn groups(&self) -> &[M] {
        let groups: &dyn Any = &*self.engine.groups;
        groups.downcast_ref::<Vec<M>>().expect("the type that `of` is given")
    }

    /// The hyperparameters of each group, which you can change between steps.
    pub fn groups_mut(&mut self) -> &mut [M] {
        self.methods()
    }

    fn methods(&mut self) -> &mut Vec<M> {
        let groups: &mut dyn Any = &mut *self.engine.groups;
        groups.downcast_mut().expect("the type that `of` is given")
    }

    /// The parameters of a group; empty if there is no such group.
    pub fn group_parameters(&self, group: usize) -> Vec<Parameter> {
        parameters(self.engine.members.iter().filter(|member| member.group == group))
    }

    /// Adds a group during training, for example layers that were frozen at first. `change` sets what differs
    /// from the first group.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a hyperparameter is out of range, the optimizer already has a parameter, or it
    /// is [`Lbfgs`](crate::Lbfgs), which has one group.
    #[track_caller]
    pub fn add_group(
        &mut self,
        parameters: impl IntoIterator<Item = impl Into<Listed>>,
        change: impl FnOnce(&mut M),
    ) -> Result<()> {
        let mut method = self.groups()[0].clone(); // `build` makes at least one
        change(&mut method);
        let (group, known) = (self.groups().len(), self.engine.members.len());
        self.methods().push(method);
        let pushed = self.engine.push_group(group, merged(parameters, group));
        if pushed.is_err() {
            self.methods().pop();
            self.engine.members.truncate(known);
        }
        pushed
    }
}

impl<M: Method> Optimizer for Descent<M> {
    fn step(&mut self) -> Result<()> {
        self.engine.step()
    }
    fn step_with(&mut self, loss: Loss<'_>) -> Result<Tensor> {
        self.engine.step_with(loss)
    }
    fn needs_loss(&self) -> bool {
        M::needs_loss()
    }
    fn check_finite(&self) -> Result<()> {
        self.engine.check_finite()
    }
    fn parameters(&self) -> Vec<Parameter> {
        parameters(&self.engine.members)
    }
    fn lrs(&self) -> Vec<f64> {
        self.engine.rates(Rate::Lr).unwrap_or_default()
    }
    fn set_lrs(&mut self, lrs: &[f64]) -> Result<()> {
        self.engine.set_rates(Rate::Lr, "learning rate", lrs)
    }
    fn momentums(&self) -> Option<Vec<f64>> {
        self.engine.rates(Rate::Momentum)
    }
    fn set_momentums(&mut self, momentums: &[f64]) -> Result<()> {
        self.engine.set_rates(Rate::Momentum, "momentum value", momentums)
    }
    fn state_dict(&self) -> OptimizerState {
        self.engine.state_dict()
    }
    fn load_state_dict(&mut self, state: &OptimizerState) -> Result<()> {
        self.engine.load_state_dict(state)
    }
    fn zero_grad(&self) {
        self.engine.zero_grad();
    }
}

impl<M: Method> fmt::Debug for Descent<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.groups().iter().zip(self.engine.counts());
        f.debug_struct(M::NAME).field("groups", &crate::list::<_, Vec<_>>(counts)).finish()
    }
}

/// A builder for an optimizer, with parameter groups and their hyperparameters.
pub struct Builder<M> {
    pub(crate) method: M,
    parameters: Vec<Listed>,
    /// Of each group but that of number 0, the pattern of its parameters, if it has one, and what changes the
    /// common hyperparameters to its own.
    groups: Vec<(Option<String>, GroupChange<M>)>,
}

// The compiler's words for a setter of what is built, or a step of a builder.
impl<M> Options for Descent<M> where Descent<M>: TakesOptions {}
impl<M> Built for Builder<M> where Builder<M>: IsBuilt {}

/// What the methods of `Module` with the same names would hide.
#[doc(hidden)]
#[allow(missing_docs, clippy::missing_panics_doc)]
impl<M> Builder<M> {
    pub fn zero_grad(&self)
    where
        Self: IsBuilt,
    {
    }

    pub fn state_dict(&self) -> OptimizerState
    where
        Self: IsBuilt,
    {
        unreachable!("no type is built and a builder")
    }

    pub fn load_state_dict<T>(&mut self, _: T) -> Result<()>
    where
        Self: IsBuilt,
    {
        Ok(())
    }
}

type GroupChange<M> = Box<dyn FnOnce(&mut M)>;

impl<M: Method> Builder<M> {
    /// A builder for an optimizer with these parameters and hyperparameters.
    pub fn new(parameters: impl ParameterList, method: M) -> Builder<M> {
        let parameters = crate::list(parameters.list().into_iter().map(Listed::from));
        Builder { method, parameters, groups: Vec::new() }
    }

    /// A builder for an optimizer with these parameters, which have paths. A parameter that several layers
    /// share is stepped once.
    ///
    /// The paths are in the saved state, so that the state of another model is an error that names them.
    pub fn named(parameters: impl IntoIterator<Item = (String, Parameter)>, method: M) -> Builder<M> {
        Builder { method, parameters: merged(parameters, 0), groups: Vec::new() }
    }

    /// Adds a group of parameters. `change` sets what differs from the hyperparameters of the optimizer,
    /// including those that are set after this call.
    pub fn group(
        mut self,
        parameters: impl IntoIterator<Item = impl Into<Listed>>,
        change: impl FnOnce(&mut M) + 'static,
    ) -> Builder<M> {
        self.parameters.extend(merged(parameters, self.groups.len() + 1));
        self.groups.push((None, Box::new(change)));
        self
    }

    /// Makes a group of those parameters whose paths match a pattern and that no earlier group has taken. The
    /// others stay in group 0.
    ///
    /// Patterns are those of `Module::matching`: `*` is any text without a dot, `**` any text, and a pattern
    /// that matches the path of a layer means all parameters in it. A parameter that several layers
    /// share matches if one of its paths does.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::AdamW;
    /// let model = Sequential::new()
    ///     .then_named("hidden", Linear::new(("in", 3), ("h", 4))?)
    ///     .then_named("head", Linear::new(("h", 4), ("out", 2))?);
    /// let optimizer = AdamW::builder_named(model.named_parameters())
    ///     .lr(1e-3)
    ///     .group_matching("head", |group| group.lr = 1e-2)
    ///     .group_matching("**.bias", |group| group.weight_decay = 0.0)
    ///     .build()?;
    /// assert_eq!(optimizer.lrs(), [1e-3, 1e-2, 1e-3]);
    /// // The bias of the head is in the first group that matches.
    /// assert_eq!(optimizer.group_parameters(1).len(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn group_matching(mut self, pattern: &str, change: impl FnOnce(&mut M) + 'static) -> Builder<M> {
        self.groups.push((Some(pattern.into()), Box::new(change)));
        self
    }

    /// Builds the optimizer. Parameters that were given no group are group 0, if there are any.
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if a hyperparameter is out of range, a parameter
    /// is given twice, a pattern matches no parameter, or there are no parameters.
    #[track_caller]
    pub fn build(self) -> Result<Descent<M>> {
        let Builder { method, mut parameters, groups } = self;
        let mut methods = vec![method.clone()];
        for (pattern, change) in groups {
            if let Some(pattern) = pattern {
                move_matching(M::NAME, &mut parameters, &pattern, methods.len())?;
            }
            let mut method = method.clone();
            change(&mut method);
            methods.push(method);
        }
        if methods.len() > 1 && parameters.iter().all(|listed| listed.group > 0) {
            methods.remove(0);
            parameters.iter_mut().for_each(|listed| listed.group -= 1);
        }
        Ok(Descent { engine: Engine::new(Box::new(methods), parameters)?, method: PhantomData })
    }
}

impl<M: Method> fmt::Debug for Builder<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("method", &self.method).finish_non_exhaustive()
    }
}
