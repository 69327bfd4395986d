//! Fourier transforms along one dim.

use crate::common::*;
use crate::engine::Kind;

/// A transform along one dim.
#[track_caller]
fn one(
    op: &'static str,
    x: &Tensor,
    found: Found,
    n: &Points,
    name: Option<Name>,
    how: Transformed,
) -> Result<Tensor> {
    if n.dims.is_some() || !n.all && n.numbers.len() > 1 {
        return Err(Error::new(
            ErrorKind::Value,
            op,
            "`n` must be one number: a transform along one dim has one length",
        ));
    }
    let names = name.map(|name| vec![Some(name)]).unwrap_or_default();
    transformed(op, x, found, n, &names, how)
}

functional! { transform of fft;
    /// The spectrum of a complex signal: `y[k] = Σ x[j] e^(-2πi jk / n)` for `k = 0, 1... n - 1`.
    ///
    /// `n` is the number of points, by default the size of `dim`: a longer signal is cut, and a shorter one is
    /// padded with zeros. The spectrum starts with the frequency 0; [`fftfreq`](crate::fftfreq) has the
    /// frequencies and [`fftshift`](crate::fftshift) moves 0 to the middle. `name` renames the transformed dim.
    ///
    /// # Shapes
    /// - `x`: [complex](crate::complex), any dims that include `dim`
    /// - result: the same dims, with the size `n` along `dim`
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for 0 points, [`ErrorKind::DType`] for half types, [`ErrorKind::Shape`] if `x` is
    /// not complex.
    ///
    /// # Source
    /// Cooley, Tukey, *An Algorithm for the Machine Calculation of Complex Fourier Series* (1965).
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::{complex, fft};
    /// let x = Tensor::new([1.0, 2.0, 3.0, 4.0])?.refine_names(["time"])?;
    /// let y = fft::fft(&complex::from_real(&x)?, "time")?;
    /// assert_eq!(y.shape().to_string(), "[time=4, complex=2]");
    /// assert_eq!(complex::real(&y)?.to_vec::<f32>()?, [10.0, -2.0, -2.0, -2.0]);
    /// let ortho = fft::fft_with(&y, "time", fft::FftOptions::new().norm(fft::Norm::Ortho).name("frequency"))?;
    /// assert_eq!(ortho.shape().to_string(), "[frequency=4, complex=2]");
    /// # Ok::<(), Error>(())
    /// ```
    fft (x; dim: Axis or Axis::LAST, n: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, name: NewName = None) names keeps, name: renames dim => {
        one(op, x, dim, &n, name, Transformed { kind: Kind::Complex, direction: Direction::Forward, norm })
    }
    /// The complex signal with a spectrum: `y[j] = 1/n Σ x[k] e^(2πi jk / n)`, the inverse of [`fft`].
    ///
    /// # Shapes
    /// - `x`: [complex](crate::complex), any dims that include `dim`
    /// - result: the same dims, with the size `n` along `dim`
    ///
    /// # Errors
    /// As [`fft`].
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let x = Tensor::randn([("N", 3), ("time", 5), ("complex", 2)])?;
    /// let back = fft::ifft(&fft::fft(&x, "time")?, "time")?;
    /// assert!(back.allclose_with(&x, IscloseOptions::new().atol(1e-6))?);
    /// # Ok::<(), Error>(())
    /// ```
    ifft (x; dim: Axis or Axis::LAST, n: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, name: NewName = None) names keeps, name: renames dim => {
        one(op, x, dim, &n, name, Transformed { kind: Kind::Complex, direction: Direction::Inverse, norm })
    }
    /// The first half of the spectrum of a real signal: [`fft`] for `k = 0, 1... n/2`. The second half mirrors
    /// it: `y[n - k]` is the conjugate of `y[k]`.
    ///
    /// # Shapes
    /// - `x`: real, any dims that include `dim`
    /// - result: the dims of `x`, with the size `n/2 + 1` along `dim`, and at the end the dim of (re, im),
    ///   which is called `complex` if `x` has names
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for 0 points, [`ErrorKind::DType`] for half types.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::{complex, fft};
    /// let x = Tensor::new([1.0, 0.0, -1.0, 0.0])?.refine_names(["time"])?; // a cosine
    /// let y = fft::rfft_with(&x, "time", fft::RfftOptions::new().name("frequency"))?;
    /// assert_eq!(y.shape().to_string(), "[frequency=3, complex=2]");
    /// assert_eq!(complex::abs(&y)?.to_vec::<f32>()?, [0.0, 2.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    rfft (x; dim: RealAxis or RealAxis::LAST, n: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, name: NewName = None) names keeps, name: renames dim => {
        one(op, x, dim, &n, name, Transformed { kind: Kind::ToHalf, direction: Direction::Forward, norm })
    }
    /// The real signal with this first half of its spectrum: the inverse of [`rfft`].
    ///
    /// `n` is the size of the signal, by default `2 (m - 1)` for a spectrum of `m` values: the size of a signal
    /// of odd length has to be given. The imaginary part of the first value is ignored, and for an even `n`
    /// that of the last.
    ///
    /// # Shapes
    /// - `x`: [complex](crate::complex), any dims that include `dim`
    /// - result: real, the same dims, with the size `n` along `dim`
    ///
    /// # Errors
    /// As [`fft`].
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let x = Tensor::randn([("N", 3), ("time", 5)])?;
    /// let back = fft::irfft_with(&fft::rfft(&x, "time")?, "time", fft::IrfftOptions::new().n(5))?;
    /// assert!(back.allclose_with(&x, IscloseOptions::new().atol(1e-6))?);
    /// # Ok::<(), Error>(())
    /// ```
    irfft (x; dim: Axis or Axis::LAST, n: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, name: NewName = None) names removes, name: renames dim => {
        one(op, x, dim, &n, name, Transformed { kind: Kind::FromHalf, direction: Direction::Inverse, norm })
    }
    /// The real spectrum of a signal whose second half mirrors the first: [`fft`] of the signal with `x` as its
    /// first half. `n` is the size of the spectrum, by default `2 (m - 1)` for `m` values.
    ///
    /// # Shapes
    /// - `x`: [complex](crate::complex), any dims that include `dim`
    /// - result: real, the same dims, with the size `n` along `dim`
    ///
    /// # Errors
    /// As [`fft`].
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let x = Tensor::randn([("frequency", 6)])?;
    /// let signal = fft::ihfft(&x, "frequency")?; // [frequency=4, complex=2]
    /// assert!(fft::hfft(&signal, "frequency")?.allclose_with(&x, IscloseOptions::new().atol(1e-6))?);
    /// # Ok::<(), Error>(())
    /// ```
    hfft (x; dim: Axis or Axis::LAST, n: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, name: NewName = None) names removes, name: renames dim => {
        one(op, x, dim, &n, name, Transformed { kind: Kind::FromHalf, direction: Direction::Forward, norm })
    }
    /// The first half of the signal with a real spectrum: the inverse of [`hfft`].
    ///
    /// # Shapes
    /// - `x`: real, any dims that include `dim`
    /// - result: the dims of `x`, with the size `n/2 + 1` along `dim`, and at the end the dim of (re, im)
    ///
    /// # Errors
    /// As [`rfft`].
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::{complex, fft};
    /// let x = Tensor::new([1.0, 0.0, 0.0, 0.0])?;
    /// assert_eq!(complex::real(&fft::ihfft(&x, -1)?)?.to_vec::<f32>()?, [0.25, 0.25, 0.25]);
    /// # Ok::<(), Error>(())
    /// ```
    ihfft (x; dim: RealAxis or RealAxis::LAST, n: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, name: NewName = None) names keeps, name: renames dim => {
        one(op, x, dim, &n, name, Transformed { kind: Kind::ToHalf, direction: Direction::Inverse, norm })
    }
}
