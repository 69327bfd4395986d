//! Tests of distributions as a user sees them.
//!
//! `table` has one of each kind, for what holds for all: draws that follow the density and have the moments
//! that are said (`draws`), gradients, names. The other files are about checks, accuracy, divergences and
//! transforms.

mod accuracy;
mod checks;
mod draws;
mod gradients;
mod kl;
mod names;
mod table;
mod transforms;
