//! Fourier transforms and complex numbers over tensors whose dims have names. Programs use this crate as
//! `namegrad::fft` and `namegrad::complex`, with the feature `fft`.
//!
//! ```
//! use namegrad::prelude::*;
//! use namegrad::{complex, fft};
//!
//! let x = Tensor::randn([("N", 3), ("time", 100)])?.requiring_grad()?;
//! let spectrum = fft::rfft_with(&x, "time", fft::RfftOptions::new().name("frequency"))?;
//! assert_eq!(spectrum.shape().to_string(), "[N=3, frequency=51, complex=2]");
//! let power = complex::abs(&spectrum)?.square()?; // [N, frequency]
//! power.mean(..)?.backward()?;
//! let back = fft::irfft(&spectrum, "frequency")?; // [N, frequency=100]
//! assert!(back.rename([("frequency", "time")])?.allclose_with(&x, IscloseOptions::new().atol(1e-5))?);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Which function
//!
//! | from | to | one dim | two, several |
//! | --- | --- | --- | --- |
//! | complex | complex | [`fft()`](fft()), [`ifft`] | [`fft2`], [`ifft2`], [`fftn`], [`ifftn`] |
//! | real | half of a spectrum | [`rfft`] | [`rfft2`], [`rfftn`] |
//! | half of a spectrum | real | [`irfft`] | [`irfft2`], [`irfftn`] |
//! | half of a signal | a real spectrum | [`hfft`] | [`hfft2`], [`hfftn`] |
//! | a real spectrum | half of a signal | [`ihfft`] | [`ihfft2`], [`ihfftn`] |
//! | two real signals | their convolution | [`convolve()`](convolve()) | the same |
//! | a signal | spectra of its pieces | [`stft()`](stft()), [`istft`] | |
//!
//! A [complex] tensor has its pairs (re, im) along a dim called `complex`, or along an unnamed last dim. Dims
//! are given by name in any order, or by indices, which do not count that dim. The spectrum of a real signal is
//! [`rfft`]; for all of it, transform [`complex::from_real`] of the signal.
//!
//! [`fftfreq`] and [`rfftfreq`] give the frequencies of a spectrum, [`fftshift`] and [`ifftshift`] reorder it,
//! and [`Window`] has the usual windows.
//!
//! # Precision and speed
//!
//! Transforms are computed in `f32` or `f64`, the dtype of the tensor; integers become the default float, and
//! half types are an error, as in PyTorch on the CPU. The error of a value is a few roundings times `log n`.
//! Sizes with small prime factors are fastest, and every other size, also a large prime, takes a few times as
//! long. What is known of a size, its plan, is kept for the next transform. Lanes are transformed on all
//! threads, with the same results for any number of them.

#![forbid(unsafe_code)]

mod common;
pub mod complex;
mod convolve;
mod engine;
mod pair;
mod several;
mod shift;
mod stage;
mod stft;
mod transform;
mod window;

pub use convolve::*;
pub use namegrad_nn::functional::PadMode;
pub use options::*;
pub use pair::{AnyAxes, AnyAxis, Axes, AxesOf, Axis, AxisOf, COMPLEX, Found, RealAxes, RealAxis};
pub use several::*;
pub use shift::*;
pub use stage::Norm;
pub use stft::*;
pub use transform::*;
pub use window::Window;

/// The options of functions.
pub mod options {
    pub use crate::{convolve::options::*, several::options::*, stft::options::*, transform::options::*};
}

/// The functions by table, for `namegrad::ops`.
pub static OPS: &[&[&namegrad_autograd::registry::Op]] = &[
    convolve::OPS,
    several::OPS,
    shift::OPS,
    stft::OPS,
    transform::OPS,
    complex::PARTS,
    complex::ARITHMETIC,
    complex::ELEMENTARY,
];
