//! Tests of distributions as a user sees them.
//!
//! `table` has one of each kind, for what holds for all: draws that follow the density and have the moments that
//! are said, and gradients.

mod draws;
mod gradients;
mod table;
