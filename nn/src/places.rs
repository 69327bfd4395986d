//! The parameters and buffers of a module, in the order of its fields.

use crate::{Buffer, Entry, ModuleFields, Visitor};
use namegrad_autograd::places::substitute;
use namegrad_autograd::{Parameter, PartOf};
use namegrad_core::{NamedTensor, Result};
use std::collections::HashMap;

/// A module as an object, also if its type has no size.
pub(crate) trait AnyModule {
    fn show(&self, visitor: &mut Visitor<'_>);
    fn text(&self) -> String;
}

impl<M: ModuleFields + ?Sized> AnyModule for &M {
    fn show(&self, visitor: &mut Visitor<'_>) {
        self.fields(visitor);
    }
    fn text(&self) -> String {
        self.describe()
    }
}

/// Calls `f` for everything in a module.
#[inline(never)]
pub(crate) fn walk(module: &dyn AnyModule, f: &mut dyn FnMut(&str, Entry<'_>)) {
    module.show(&mut Visitor::new(f));
}

/// A parameter or a buffer of a module.
pub enum EntryPlace {
    /// A parameter.
    Parameter(Parameter),
    /// A buffer.
    Buffer(Buffer),
}

impl EntryPlace {
    /// Its value.
    pub fn value(&self) -> NamedTensor {
        match self {
            EntryPlace::Parameter(parameter) => parameter.tensor().into_value(),
            EntryPlace::Buffer(buffer) => buffer.value(),
        }
    }

    /// What its value is a part of.
    pub(crate) fn part(&self) -> Option<&dyn PartOf> {
        match self {
            EntryPlace::Parameter(parameter) => {
                parameter.part().filter(|_| substitute(parameter.id()).is_none())
            }
            EntryPlace::Buffer(_) => None,
        }
    }

    /// The whole of its value, if other processes have parts of it.
    ///
    /// # Panics
    /// If the messages between processes fail.
    pub(crate) fn whole(&self) -> NamedTensor {
        let own = self.value();
        match self.part() {
            Some(part) => part.whole(&own).unwrap_or_else(|error| panic!("{error}")),
            None => own,
        }
    }

    /// A tensor with the dims of that.
    pub(crate) fn dims(&self) -> Result<NamedTensor> {
        let own = self.value();
        self.part().map_or(Ok(own.clone()), |part| part.dims(&own))
    }

    /// What its clones have in common.
    pub fn id(&self) -> usize {
        match self {
            EntryPlace::Parameter(parameter) => parameter.id(),
            EntryPlace::Buffer(buffer) => buffer.id(),
        }
    }

    /// Replaces its value.
    ///
    /// # Errors
    /// Those of [`Parameter::set`] and [`Buffer::set`].
    #[track_caller]
    pub fn set(&self, value: NamedTensor) -> Result<()> {
        match self {
            EntryPlace::Parameter(parameter) => parameter.set(&value),
            EntryPlace::Buffer(buffer) => buffer.set(&value),
        }
    }
}

/// The parameters and buffers of a module with their paths.
pub fn places_of(module: &(impl ModuleFields + ?Sized)) -> Vec<(String, EntryPlace)> {
    places(&module)
}

/// The parameters and buffers with their paths.
pub(crate) fn places(module: &dyn AnyModule) -> Vec<(String, EntryPlace)> {
    let mut found = Vec::new();
    walk(module, &mut |path, entry| {
        let place = match entry {
            Entry::Parameter(parameter) => EntryPlace::Parameter(parameter.clone()),
            Entry::Buffer(buffer) => EntryPlace::Buffer(buffer.clone()),
            _ => return,
        };
        found.push((path.to_string(), place));
    });
    found
}

/// Numbers by the ids of parameters and buffers: the first number that each was given.
#[derive(Clone, Debug, Default)]
pub struct Ids(HashMap<usize, usize>);

impl Ids {
    /// The number of an id: `number` if it has none yet.
    #[inline(never)]
    pub fn first(&mut self, id: usize, number: usize) -> usize {
        *self.0.entry(id).or_insert(number)
    }

    /// The number of an id, if it has one.
    #[inline(never)]
    pub fn get(&self, id: usize) -> Option<usize> {
        self.0.get(&id).copied()
    }
}

pub(crate) fn named_parameters(module: &dyn AnyModule) -> Vec<(String, Parameter)> {
    let parameter = |(path, place)| match place {
        EntryPlace::Parameter(parameter) => Some((path, parameter)),
        EntryPlace::Buffer(_) => None,
    };
    crate::list(places(module).into_iter().filter_map(parameter))
}

pub(crate) fn parameters(module: &dyn AnyModule) -> Vec<Parameter> {
    let mut seen = Ids::default();
    let all = named_parameters(module).into_iter().map(|(_, parameter)| parameter).enumerate();
    let first = all.filter(|(at, parameter)| seen.first(parameter.id(), *at) == *at);
    crate::list(first.map(|(_, parameter)| parameter))
}

pub(crate) fn named_buffers(module: &dyn AnyModule) -> Vec<(String, Buffer)> {
    let buffer = |(path, place)| match place {
        EntryPlace::Buffer(buffer) => Some((path, buffer)),
        EntryPlace::Parameter(_) => None,
    };
    crate::list(places(module).into_iter().filter_map(buffer))
}
