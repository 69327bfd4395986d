//! Layers that find their dims by name.
//!
//! Read [`Module`] first, then a layer, [`Linear`], then [`functional`], the layers without state, [`init`],
//! and [`StateDict`], the values of a model by path.

pub mod functional;
pub mod init;
mod layers;
mod module;
mod state;
mod summary;

pub use layers::*;
pub use module::{Buffer, Entry, Field, Module, ModulePath, Training, Visitor};
pub use namegrad_nn_derive::Module;
pub use state::{LoadOptions, LoadReport, StateDict};
pub use summary::Summary;
