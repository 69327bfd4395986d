//! Elementary functions of complex numbers, on their principal branches.
//!
//! They are computed in `f64`, the inverse ones as in Kahan, *Branch Cuts for Complex Elementary Functions*
//! (1987). The derivative of each is a function of it and of its input.

use super::arithmetic::{conjugated, each, moved_back, over, times, with_names_of, with_pair_last};
use super::number;
use super::parts::from_real;
use crate::common::*;
use num_complex::Complex;

functional! { elementary of complex;
    /// `e^z`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[0.0, std::f64::consts::PI]])?;
    /// let minus_one = Tensor::new([[-1.0, 0.0]])?;
    /// assert!(complex::exp(&z)?.allclose_with(&minus_one, IscloseOptions::new().atol(1e-6))?);
    /// # Ok::<(), Error>(())
    /// ```
    exp (x) on floats integers names keeps => of_each(op, x, number::exp, |_z, y| Ok(y.clone()));
    /// The natural logarithms, `ln |z| + i angle`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[0.0, 1.0]])?;
    /// assert!(complex::exp(&complex::log(&z)?)?.allclose_with(&z, IscloseOptions::new().atol(1e-6))?);
    /// # Ok::<(), Error>(())
    /// ```
    log (x) on floats integers names keeps => of_each(op, x, number::log, |z, _y| over(&one(z)?, z));
    /// The square roots with a real part that is not negative.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[-4.0, 0.0]])?;
    /// assert_eq!(complex::sqrt(&z)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    sqrt (x) on floats integers names keeps => of_each(op, x, number::sqrt, |z, y| over(&one(z)?.mul(0.5)?, y));
    /// The sines, `sin re cosh im + i cos re sinh im`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[0.5, 0.0]])?;
    /// assert!(complex::real(&complex::sin(&z)?)?.allclose(&Tensor::new([0.5])?.sin()?)?);
    /// # Ok::<(), Error>(())
    /// ```
    sin (x) on floats integers names keeps => of_each(op, x, number::sin, |z, _y| cos(z));
    /// The cosines, `cos re cosh im - i sin re sinh im`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[0.5, 0.0]])?;
    /// assert!(complex::real(&complex::cos(&z)?)?.allclose(&Tensor::new([0.5])?.cos()?)?);
    /// # Ok::<(), Error>(())
    /// ```
    cos (x) on floats integers names keeps => of_each(op, x, number::cos, |z, _y| sin(z)?.neg());
    /// The tangents, `sin z / cos z`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[0.5, 100.0]])?;
    /// assert!(complex::tan(&z)?.allclose(&Tensor::new([[0.0, 1.0]])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    tan (x) on floats integers names keeps => of_each(op, x, number::tan, |z, y| times(y, y)?.add(one(z)?));
    /// The hyperbolic sines, `(e^z - e^(-z)) / 2`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[0.5, 0.0]])?;
    /// assert!(complex::real(&complex::sinh(&z)?)?.allclose(&Tensor::new([0.5])?.sinh()?)?);
    /// # Ok::<(), Error>(())
    /// ```
    sinh (x) on floats integers names keeps => of_each(op, x, number::sinh, |z, _y| cosh(z));
    /// The hyperbolic cosines, `(e^z + e^(-z)) / 2`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[0.5, 0.0]])?;
    /// assert!(complex::real(&complex::cosh(&z)?)?.allclose(&Tensor::new([0.5])?.cosh()?)?);
    /// # Ok::<(), Error>(())
    /// ```
    cosh (x) on floats integers names keeps => of_each(op, x, number::cosh, |z, _y| sinh(z));
    /// The hyperbolic tangents, `sinh z / cosh z`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[1000.0, 1.0]])?;
    /// assert!(complex::tanh(&z)?.allclose(&Tensor::new([[1.0, 0.0]])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    tanh (x) on floats integers names keeps => of_each(op, x, number::tanh, |z, y| times(y, y)?.neg().add(one(z)?));
    /// The arcsines, with real parts from -π/2 to π/2. The cuts are on the real axis, beyond -1 and 1.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[2.0, 0.5]])?;
    /// assert!(complex::sin(&complex::asin(&z)?)?.allclose(&z)?);
    /// # Ok::<(), Error>(())
    /// ```
    asin (x) on floats integers names keeps => of_each(op, x, number::asin, |z, _y| over(&one(z)?, &sqrt(&one(z)?.sub(times(z, z)?)?)?));
    /// The arccosines, with real parts from 0 to π. The cuts are those of [`asin`].
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[2.0, 0.5]])?;
    /// assert!(complex::cos(&complex::acos(&z)?)?.allclose(&z)?);
    /// # Ok::<(), Error>(())
    /// ```
    acos (x) on floats integers names keeps => of_each(op, x, number::acos, |z, _y| over(&one(z)?, &sqrt(&one(z)?.sub(times(z, z)?)?)?)?.neg());
    /// The arctangents, with real parts from -π/2 to π/2. The cuts are on the imaginary axis, beyond `-i` and
    /// `i`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[2.0, 0.5]])?;
    /// assert!(complex::tan(&complex::atan(&z)?)?.allclose(&z)?);
    /// # Ok::<(), Error>(())
    /// ```
    atan (x) on floats integers names keeps => of_each(op, x, number::atan, |z, _y| over(&one(z)?, &one(z)?.add(times(z, z)?)?));
    /// The inverses of [`sinh`], with imaginary parts from -π/2 to π/2. The cuts are those of [`atan`].
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[2.0, 0.5]])?;
    /// assert!(complex::sinh(&complex::asinh(&z)?)?.allclose(&z)?);
    /// # Ok::<(), Error>(())
    /// ```
    asinh (x) on floats integers names keeps => of_each(op, x, number::asinh, |z, _y| over(&one(z)?, &sqrt(&one(z)?.add(times(z, z)?)?)?));
    /// The inverses of [`cosh`] with a real part that is not negative. The cut is on the real axis, below 1.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[2.0, 0.5]])?;
    /// assert!(complex::cosh(&complex::acosh(&z)?)?.allclose(&z)?);
    /// # Ok::<(), Error>(())
    /// ```
    acosh (x) on floats integers names keeps => of_each(op, x, number::acosh, |z, _y| over(&one(z)?, &times(&sqrt(&z.sub(one(z)?)?)?, &sqrt(&z.add(one(z)?)?)?)?));
    /// The inverses of [`tanh`], with imaginary parts from -π/2 to π/2. The cuts are those of [`asin`].
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[2.0, 0.5]])?;
    /// assert!(complex::tanh(&complex::atanh(&z)?)?.allclose(&z)?);
    /// # Ok::<(), Error>(())
    /// ```
    atanh (x) on floats integers names keeps => of_each(op, x, number::atanh, |z, _y| over(&one(z)?, &one(z)?.sub(times(z, z)?)?));
}

/// The slope of a function at `z`, where it has the value `y`.
type Slope = fn(&Tensor, &Tensor) -> Result<Tensor>;

fn one(z: &Tensor) -> Result<Tensor> {
    from_real(&z.new_ones(())?)
}

/// A function of each number of a complex tensor.
#[track_caller]
fn of_each(
    op: &'static str,
    x: &Tensor,
    f: fn(Complex<f64>) -> Complex<f64>,
    slope: Slope,
) -> Result<Tensor> {
    let (named, pair) = with_pair_last(op, x)?;
    let z = named.rename(None)?;
    let value = each(op, z.value(), f)?;
    let kept = [Kept::input(&z), Kept::output(&value)];
    let y = Op::new(op, value).input(&z, move |g, cx| {
        let slope = slope(&kept[0].get(cx), &kept[1].get(cx))?;
        times(g, &conjugated(&slope)?)
    });
    moved_back(with_names_of(y.output(), &named)?, pair)
}
