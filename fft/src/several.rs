//! Fourier transforms over several dims: one along each.

use crate::common::*;
use crate::engine::Kind;

functional! { several of fft;
    /// The spectrum of complex signals over two dims: [`fft`](crate::fft) over each.
    ///
    /// `s` has the numbers of points: a list of one for each dim, pairs of a dim and its number, or one number
    /// for all; -1 is the size as it is. Longer signals are cut, and shorter ones are padded with zeros.
    /// `names` renames the dims, in their order.
    ///
    /// # Shapes
    /// - `x`: [complex](crate::complex), any dims that include `dim`
    /// - result: the same dims, with the sizes `s` along `dim`
    ///
    /// # Errors
    /// As [`fft`](crate::fft), and [`ErrorKind::Shape`] for a wrong number of sizes.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let x = Tensor::zeros([("N", 2), ("H", 4), ("W", 4), ("complex", 2)])?;
    /// let options = fft::Fft2Options::new().s([("W", 8)]).names(["row", "column"]);
    /// let y = fft::fft2_with(&x, ["H", "W"], options)?;
    /// assert_eq!(y.shape().to_string(), "[N=2, row=4, column=8, complex=2]");
    /// # Ok::<(), Error>(())
    /// ```
    fft2 (x; dim: Axes or Axes::last_two(), s: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, names: NewNames = None) names keeps, names: renames dim => {
        transformed(op, x, dim, &s, &names, Transformed { kind: Kind::Complex, direction: Direction::Forward, norm })
    }
    /// The complex signals with spectra over two dims: the inverse of [`fft2`].
    ///
    /// # Shapes
    /// - `x`: [complex](crate::complex), any dims that include `dim`
    /// - result: the same dims, with the sizes `s` along `dim`
    ///
    /// # Errors
    /// As [`fft`](crate::fft), and [`ErrorKind::Shape`] for a wrong number of sizes.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let x = Tensor::randn([("H", 3), ("W", 4), ("complex", 2)])?;
    /// let back = fft::ifft2(&fft::fft2(&x, ["H", "W"])?, ["H", "W"])?;
    /// assert!(back.allclose_with(&x, IscloseOptions::new().atol(1e-6))?);
    /// # Ok::<(), Error>(())
    /// ```
    ifft2 (x; dim: Axes or Axes::last_two(), s: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, names: NewNames = None) names keeps, names: renames dim => {
        transformed(op, x, dim, &s, &names, Transformed { kind: Kind::Complex, direction: Direction::Inverse, norm })
    }
    /// Half of the spectrum of real signals over two dims: [`rfft`](crate::rfft) over the last, then
    /// [`fft`](crate::fft) over the others.
    ///
    /// # Shapes
    /// - `x`: real, any dims that include `dim`
    /// - result: the dims of `x`, with the sizes `s` along `dim`, of the last of them `s/2 + 1`, and at the end
    ///   the dim of (re, im), which is called `complex` if `x` has names
    ///
    /// # Errors
    /// As [`rfft`](crate::rfft), and [`ErrorKind::Shape`] for a wrong number of sizes.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let image = Tensor::ones([("N", 2), ("H", 4), ("W", 6)])?;
    /// let y = fft::rfft2(&image, ["H", "W"])?;
    /// assert_eq!(y.shape().to_string(), "[N=2, H=4, W=4, complex=2]");
    /// # Ok::<(), Error>(())
    /// ```
    rfft2 (x; dim: RealAxes or RealAxes::last_two(), s: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, names: NewNames = None) names keeps, names: renames dim => {
        transformed(op, x, dim, &s, &names, Transformed { kind: Kind::ToHalf, direction: Direction::Forward, norm })
    }
    /// The real signals with these halves of their spectra over two dims: the inverse of [`rfft2`].
    ///
    /// The inverse of [`fft`](crate::fft) over all dims but the last, then [`irfft`](crate::irfft) over that.
    ///
    /// # Shapes
    /// - `x`: [complex](crate::complex), any dims that include `dim`
    /// - result: real, the same dims, with the sizes `s` along `dim`; by default the last of them has the size
    ///   `2 (m - 1)` for `m` values
    ///
    /// # Errors
    /// As [`fft`](crate::fft), and [`ErrorKind::Shape`] for a wrong number of sizes.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let image = Tensor::randn([("H", 4), ("W", 5)])?;
    /// let y = fft::rfft2(&image, ["H", "W"])?;
    /// let back = fft::irfft2_with(&y, ["H", "W"], fft::Irfft2Options::new().s([("W", 5)]))?;
    /// assert!(back.allclose_with(&image, IscloseOptions::new().atol(1e-6))?);
    /// # Ok::<(), Error>(())
    /// ```
    irfft2 (x; dim: Axes or Axes::last_two(), s: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, names: NewNames = None) names removes, names: renames dim => {
        transformed(op, x, dim, &s, &names, Transformed { kind: Kind::FromHalf, direction: Direction::Inverse, norm })
    }
    /// The real spectra of signals whose halves mirror each other, over two dims: [`fft`](crate::fft) over all
    /// but the last, then [`hfft`](crate::hfft) over that.
    ///
    /// # Shapes
    /// - `x`: [complex](crate::complex), any dims that include `dim`
    /// - result: real, the same dims, with the sizes `s` along `dim`; by default the last of them has the size
    ///   `2 (m - 1)` for `m` values
    ///
    /// # Errors
    /// As [`fft`](crate::fft), and [`ErrorKind::Shape`] for a wrong number of sizes.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let x = Tensor::randn([("H", 4), ("W", 6)])?;
    /// let back = fft::hfft2(&fft::ihfft2(&x, ["H", "W"])?, ["H", "W"])?;
    /// assert!(back.allclose_with(&x, IscloseOptions::new().atol(1e-6))?);
    /// # Ok::<(), Error>(())
    /// ```
    hfft2 (x; dim: Axes or Axes::last_two(), s: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, names: NewNames = None) names removes, names: renames dim => {
        transformed(op, x, dim, &s, &names, Transformed { kind: Kind::FromHalf, direction: Direction::Forward, norm })
    }
    /// Half of the signals with real spectra over two dims: the inverse of [`hfft2`].
    ///
    /// # Shapes
    /// - `x`: real, any dims that include `dim`
    /// - result: the dims of `x`, with the sizes `s` along `dim`, of the last of them `s/2 + 1`, and at the end
    ///   the dim of (re, im), which is called `complex` if `x` has names
    ///
    /// # Errors
    /// As [`rfft`](crate::rfft), and [`ErrorKind::Shape`] for a wrong number of sizes.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let x = Tensor::randn([("H", 4), ("W", 6)])?;
    /// assert_eq!(fft::ihfft2(&x, ["H", "W"])?.shape().to_string(), "[H=4, W=4, complex=2]");
    /// # Ok::<(), Error>(())
    /// ```
    ihfft2 (x; dim: RealAxes or RealAxes::last_two(), s: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, names: NewNames = None) names keeps, names: renames dim => {
        transformed(op, x, dim, &s, &names, Transformed { kind: Kind::ToHalf, direction: Direction::Inverse, norm })
    }
    /// The spectrum of complex signals over several dims: [`fft`](crate::fft) over each.
    ///
    /// `..` means all dims; with a list `s` of fewer numbers, the last ones, as many as there are. `s` and
    /// `names` are as in [`fft2`].
    ///
    /// # Shapes
    /// - `x`: [complex](crate::complex), any dims that include `dim`
    /// - result: the same dims, with the sizes `s` along `dim`
    ///
    /// # Errors
    /// As [`fft`](crate::fft), and [`ErrorKind::Shape`] for a wrong number of sizes.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let x = Tensor::randn([("D", 2), ("H", 3), ("W", 4), ("complex", 2)])?;
    /// let y = fft::fftn(&x, ..)?; // over D, H and W
    /// let same = fft::fft(&fft::fft2(&x, ["H", "W"])?, "D")?;
    /// assert!(y.allclose_with(&same, IscloseOptions::new().atol(1e-5))?);
    /// # Ok::<(), Error>(())
    /// ```
    fftn (x; dim: Axes or Axes::ALL, s: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, names: NewNames = None) names keeps, names: renames dim => {
        transformed(op, x, dim, &s, &names, Transformed { kind: Kind::Complex, direction: Direction::Forward, norm })
    }
    /// The complex signals with spectra over several dims: the inverse of [`fftn`].
    ///
    /// # Shapes
    /// - `x`: [complex](crate::complex), any dims that include `dim`
    /// - result: the same dims, with the sizes `s` along `dim`
    ///
    /// # Errors
    /// As [`fft`](crate::fft), and [`ErrorKind::Shape`] for a wrong number of sizes.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let x = Tensor::randn([("D", 2), ("H", 3), ("complex", 2)])?;
    /// assert!(fft::ifftn(&fft::fftn(&x, ..)?, ..)?.allclose_with(&x, IscloseOptions::new().atol(1e-6))?);
    /// # Ok::<(), Error>(())
    /// ```
    ifftn (x; dim: Axes or Axes::ALL, s: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, names: NewNames = None) names keeps, names: renames dim => {
        transformed(op, x, dim, &s, &names, Transformed { kind: Kind::Complex, direction: Direction::Inverse, norm })
    }
    /// Half of the spectrum of real signals over several dims: [`rfft`](crate::rfft) over the last, then
    /// [`fft`](crate::fft) over the others.
    ///
    /// # Shapes
    /// - `x`: real, any dims that include `dim`
    /// - result: the dims of `x`, with the sizes `s` along `dim`, of the last of them `s/2 + 1`, and at the end
    ///   the dim of (re, im), which is called `complex` if `x` has names
    ///
    /// # Errors
    /// As [`rfft`](crate::rfft), and [`ErrorKind::Shape`] for a wrong number of sizes.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let x = Tensor::randn([("D", 2), ("H", 3), ("W", 4)])?;
    /// assert_eq!(fft::rfftn(&x, ..)?.shape().to_string(), "[D=2, H=3, W=3, complex=2]");
    /// # Ok::<(), Error>(())
    /// ```
    rfftn (x; dim: RealAxes or RealAxes::ALL, s: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, names: NewNames = None) names keeps, names: renames dim => {
        transformed(op, x, dim, &s, &names, Transformed { kind: Kind::ToHalf, direction: Direction::Forward, norm })
    }
    /// The real signals with these halves of their spectra over several dims: the inverse of [`rfftn`].
    ///
    /// The inverse of [`fft`](crate::fft) over all dims but the last, then [`irfft`](crate::irfft) over that.
    ///
    /// # Shapes
    /// - `x`: [complex](crate::complex), any dims that include `dim`
    /// - result: real, the same dims, with the sizes `s` along `dim`; by default the last of them has the size
    ///   `2 (m - 1)` for `m` values
    ///
    /// # Errors
    /// As [`fft`](crate::fft), and [`ErrorKind::Shape`] for a wrong number of sizes.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let x = Tensor::randn([("D", 2), ("H", 3), ("W", 5)])?;
    /// let back = fft::irfftn_with(&fft::rfftn(&x, ..)?, .., fft::IrfftnOptions::new().s([2, 3, 5]))?;
    /// assert!(back.allclose_with(&x, IscloseOptions::new().atol(1e-6))?);
    /// # Ok::<(), Error>(())
    /// ```
    irfftn (x; dim: Axes or Axes::ALL, s: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, names: NewNames = None) names removes, names: renames dim => {
        transformed(op, x, dim, &s, &names, Transformed { kind: Kind::FromHalf, direction: Direction::Inverse, norm })
    }
    /// The real spectra of signals whose halves mirror each other, over several dims: [`fft`](crate::fft) over
    /// all but the last, then [`hfft`](crate::hfft) over that.
    ///
    /// # Shapes
    /// - `x`: [complex](crate::complex), any dims that include `dim`
    /// - result: real, the same dims, with the sizes `s` along `dim`; by default the last of them has the size
    ///   `2 (m - 1)` for `m` values
    ///
    /// # Errors
    /// As [`fft`](crate::fft), and [`ErrorKind::Shape`] for a wrong number of sizes.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let x = Tensor::randn([("D", 2), ("H", 3), ("W", 6)])?;
    /// assert!(fft::hfftn(&fft::ihfftn(&x, ..)?, ..)?.allclose_with(&x, IscloseOptions::new().atol(1e-5))?);
    /// # Ok::<(), Error>(())
    /// ```
    hfftn (x; dim: Axes or Axes::ALL, s: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, names: NewNames = None) names removes, names: renames dim => {
        transformed(op, x, dim, &s, &names, Transformed { kind: Kind::FromHalf, direction: Direction::Forward, norm })
    }
    /// Half of the signals with real spectra over several dims: the inverse of [`hfftn`].
    ///
    /// # Shapes
    /// - `x`: real, any dims that include `dim`
    /// - result: the dims of `x`, with the sizes `s` along `dim`, of the last of them `s/2 + 1`, and at the end
    ///   the dim of (re, im), which is called `complex` if `x` has names
    ///
    /// # Errors
    /// As [`rfft`](crate::rfft), and [`ErrorKind::Shape`] for a wrong number of sizes.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let x = Tensor::randn([("D", 2), ("H", 3), ("W", 6)])?;
    /// assert_eq!(fft::ihfftn(&x, ..)?.shape().to_string(), "[D=2, H=3, W=4, complex=2]");
    /// # Ok::<(), Error>(())
    /// ```
    ihfftn (x; dim: RealAxes or RealAxes::ALL, s: SizesByDim = SizesByDim::NONE, norm: Norm = Norm::Backward, names: NewNames = None) names keeps, names: renames dim => {
        transformed(op, x, dim, &s, &names, Transformed { kind: Kind::ToHalf, direction: Direction::Inverse, norm })
    }
}
