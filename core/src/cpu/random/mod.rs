//! Loops that fill slices with random numbers.
//!
//! `philox` makes words and [`Generator`] counts them. `fill` fills a slice, on all threads if it is long.
//! `distributions` has the continuous distributions, which use the functions in `real`, and `discrete` the
//! others.

mod discrete;
mod distributions;
mod fill;
mod generator;
mod philox;
mod real;

pub(crate) use discrete::{
    fill_bernoulli, fill_each, fill_randint, fill_randperm, fill_trials, outside_unit,
};
pub(crate) use distributions::{
    fill_cauchy, fill_exponential, fill_geometric, fill_log_normal, fill_normal, fill_uniform,
};
pub use generator::{Generator, GeneratorState};
pub(crate) use real::SampleReal;
