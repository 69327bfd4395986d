//! Tests that go through every entry of the registry of ops, and of what is generated from it. A new op needs
//! no line here, unless it takes a new kind of argument.

mod by_name;
mod chosen;
mod contributing;
mod derivatives;
mod gradients;
mod memory;
mod meta;
mod names;
mod operators;
mod properties;
mod recipe;
mod vmap;
