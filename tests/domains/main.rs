//! Tests of the crates behind features, as a user sees them.

mod distributions;
mod fft;
mod linalg;
