//! [`Builder`]: which parameters an optimizer has, in which groups.

use crate::descent::Descent;
use crate::listed::{Chosen, Listed, divided, merged};
use crate::method::Method;
use namegrad_autograd::Parameter;
use namegrad_core::Result;
use std::fmt;

/// A builder for an optimizer, with parameter groups and their hyperparameters.
pub struct Builder<M> {
    pub(crate) method: M,
    parameters: Vec<Listed>,
    groups: Vec<Chosen>,
    /// One for each group.
    changes: Vec<GroupChange<M>>,
}

/// Changes the common hyperparameters to those of a group.
type GroupChange<M> = Box<dyn FnOnce(&mut M)>;

impl<M: Method> Builder<M> {
    /// A builder for an optimizer with these parameters and hyperparameters.
    pub fn new(parameters: impl IntoIterator<Item = Parameter>, method: M) -> Builder<M> {
        let parameters = parameters.into_iter().map(Listed::from).collect();
        Builder { method, parameters, groups: Vec::new(), changes: Vec::new() }
    }

    /// A builder for an optimizer with these parameters, which have paths. A parameter that several layers
    /// share is stepped once.
    ///
    /// The paths are in the saved state, so that the state of another model is an error that names them.
    pub fn named(parameters: impl IntoIterator<Item = (String, Parameter)>, method: M) -> Builder<M> {
        Builder { method, parameters: merged(parameters), groups: Vec::new(), changes: Vec::new() }
    }

    /// Adds a group of parameters. `change` sets what differs from the hyperparameters of the optimizer,
    /// including those that are set after this call.
    pub fn group(
        mut self,
        parameters: impl IntoIterator<Item = impl Into<Listed>>,
        change: impl FnOnce(&mut M) + 'static,
    ) -> Builder<M> {
        self.groups.push(Chosen::Given(merged(parameters)));
        self.changes.push(Box::new(change));
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
        self.groups.push(Chosen::Matching(pattern.into()));
        self.changes.push(Box::new(change));
        self
    }

    /// Builds the optimizer. Parameters that were given no group are group 0, if there are any.
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if a hyperparameter is out of range, a parameter
    /// is given twice, a pattern matches no parameter, or there are no parameters.
    #[track_caller]
    pub fn build(self) -> Result<Descent<M>> {
        let Builder { method, parameters, groups, changes } = self;
        let members = divided(M::NAME, parameters, groups)?;
        let mut methods = Vec::with_capacity(members.len());
        if members.len() > changes.len() {
            methods.push(method.clone());
        }
        for change in changes {
            let mut method = method.clone();
            change(&mut method);
            methods.push(method);
        }
        Descent::of(methods, members)
    }
}

impl<M: Method> fmt::Debug for Builder<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("method", &self.method).finish_non_exhaustive()
    }
}
