//! Frequencies, and their order in a spectrum.

use crate::common::*;
use namegrad_core::NewDim;

/// The frequencies of a spectrum of `n` values that are `d` apart in time: `k / (n d)` for
/// `k = 0, 1... -2, -1`. The new dim can have a name: `("frequency", 8)`.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::fft;
/// let f = fft::fftfreq(("frequency", 4), 0.5)?;
/// assert_eq!(f.to_vec::<f32>()?, [0.0, 0.5, -1.0, -0.5]);
/// assert_eq!(f.shape().to_string(), "[frequency=4]");
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Value`] for a negative size.
#[track_caller]
pub fn fftfreq(n: impl NewDim, d: f64) -> Result<Tensor> {
    fftfreq_as(n, d, default_dtype())
}

/// [`fftfreq`] in another dtype.
///
/// # Errors
/// As [`fftfreq`], and [`ErrorKind::DType`] unless the dtype is a float.
#[track_caller]
pub fn fftfreq_as(n: impl NewDim, d: f64, dtype: DType) -> Result<Tensor> {
    let (name, n) = n.into_new_dim().map_err(|error| error.of("fftfreq"))?;
    let negative = n.div_ceil(2);
    frequencies("fftfreq", name, n, d, dtype, n, &|k| {
        if k < negative { k as f64 } else { k as f64 - n as f64 }
    })
}

/// The frequencies of half of a spectrum, as [`rfft`](crate::rfft) gives it: `k / (n d)` for `k = 0, 1... n/2`.
/// `n` is the size of the signal.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::fft;
/// assert_eq!(fft::rfftfreq(("frequency", 4), 0.5)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// As [`fftfreq`].
#[track_caller]
pub fn rfftfreq(n: impl NewDim, d: f64) -> Result<Tensor> {
    rfftfreq_as(n, d, default_dtype())
}

/// [`rfftfreq`] in another dtype.
///
/// # Errors
/// As [`fftfreq_as`].
#[track_caller]
pub fn rfftfreq_as(n: impl NewDim, d: f64, dtype: DType) -> Result<Tensor> {
    let (name, n) = n.into_new_dim().map_err(|error| error.of("rfftfreq"))?;
    frequencies("rfftfreq", name, n, d, dtype, n / 2 + 1, &|k| k as f64)
}

#[track_caller]
fn frequencies(
    op: &'static str,
    name: Option<Name>,
    n: usize,
    d: f64,
    dtype: DType,
    count: usize,
    number: &dyn Fn(usize) -> f64,
) -> Result<Tensor> {
    vector(op, name, count, dtype, &|k| number(k) / (n as f64 * d))
}

/// A vector of computed numbers.
#[track_caller]
pub(crate) fn vector(
    op: &'static str,
    name: Option<Name>,
    count: usize,
    dtype: DType,
    number: &dyn Fn(usize) -> f64,
) -> Result<Tensor> {
    if !dtype.is_floating_point() {
        return Err(Error::new(ErrorKind::DType, op, format!("expected the dtype of a float, got {dtype}")));
    }
    NamedTensor::check_room(op, count, size_of::<f64>())?;
    let numbers: Vec<f64> = (0..count).map(number).collect();
    let vector = NamedTensor::from_slice(&numbers, [count])?.to(dtype)?;
    Ok(Tensor::constant(if name.is_some() { vector.rename([name])? } else { vector }))
}

functional! { shift of fft;
    /// Moves the frequency 0 from the start of dims to their middle: the second half comes first. `..` means
    /// all dims but that of (re, im), if it is called `complex`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let f = fft::fftshift(&fft::fftfreq(5, 0.2)?, ..)?;
    /// assert_eq!(f.to_vec::<f32>()?, [-2.0, -1.0, 0.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    fftshift (x; dim: AnyAxes or AnyAxes::ALL) names keeps => shifted(x, &dim, |n| n / 2);
    /// Moves the frequency 0 from the middle of dims to their start: the inverse of [`fftshift`].
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let f = Tensor::new([-2.0, -1.0, 0.0, 1.0, 2.0])?;
    /// assert_eq!(fft::ifftshift(&f, ..)?.to_vec::<f32>()?, [0.0, 1.0, 2.0, -2.0, -1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ifftshift (x; dim: AnyAxes or AnyAxes::ALL) names keeps => shifted(x, &dim, |n| n.div_ceil(2));
}

fn shifted(x: &Tensor, found: &Found, shift: fn(usize) -> usize) -> Result<Tensor> {
    let mut y = x.clone();
    for dim in found.places() {
        y = y.roll(shift(x.sizes()[dim]) as isize, dim)?;
    }
    Ok(y)
}
