//! Convolutions by transforms.

use crate::common::*;
use crate::complex::mul;
use crate::several::options::{IrfftnOptions, RfftnOptions};
use crate::several::{irfftn_with, rfftn_with};

/// The part of a convolution that is returned, for signals of `n` and kernels of `m` elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub enum Overlap {
    /// All `n + m - 1` elements, with zeros around the signal.
    #[default]
    Full,
    /// The `n` elements in the middle.
    Same,
    /// The `n - m + 1` elements that no zeros around the signal are part of.
    Valid,
}

functional! { convolve of fft;
    /// The convolution of signals and kernels over dims: `y[k] = Σ x[k - j] kernel[j]`, computed as the
    /// product of their spectra.
    ///
    /// It takes a time that hardly depends on the size of the kernel, in place of one that is proportional to
    /// it. In deep learning, a convolution is a correlation, as in `F::conv1d`: flip the kernel for that. The
    /// kernel is aligned to the signal by name. Without names, its dims are those of `dim`, in their order, or
    /// it has as many dims as the signal.
    ///
    /// # Shapes
    /// - `x`: real, any dims that include `dim`
    /// - `kernel`: `dim`, and other dims of `x`
    /// - result: the dims of `x`; those of `dim` have the sizes that `mode` says
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for an empty signal or kernel, and for a kernel that is larger than the signal if
    /// the mode is [`Overlap::Valid`].
    ///
    /// # Source
    /// Stockham, *High-Speed Convolution and Correlation* (1966).
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let x = Tensor::new([[1.0, 2.0, 3.0, 4.0]])?.refine_names(["N", "time"])?;
    /// let kernel = Tensor::new([0.5, 0.5])?.refine_names(["time"])?;
    /// let options = fft::ConvolveOptions::new().mode(fft::Overlap::Valid);
    /// let y = fft::convolve_with(&x, &kernel, "time", options)?;
    /// assert_eq!(y.shape().to_string(), "[N=1, time=3]");
    /// assert!(y.rename(None)?.allclose(&Tensor::new([[1.5, 2.5, 3.5]])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    convolve (x, kernel; dim: RealAxes or RealAxes::ALL, mode: Overlap = Overlap::Full) names keeps, kernel: aligned => {
        let (x, kernel, dims) = (&floats(op, x)?, &floats(op, kernel)?, &dim.dims);
        let kernel = &aligned(op, x, kernel, dims)?;
        let mut sizes = Vec::with_capacity(dims.len());
        for dim in dims {
            let (n, m) = (x.sizes()[*dim], kernel.sizes()[*dim]);
            if n == 0 || m == 0 {
                let message = format!("signals of {n} elements and kernels of {m} have no convolution");
                return Err(Error::about(&[x.value(), kernel.value()], ErrorKind::Value, op, message));
            }
            let (first, size) = match mode {
                Overlap::Full => (0, n + m - 1),
                Overlap::Same => ((m - 1) / 2, n),
                Overlap::Valid if m > n => {
                    let message = format!("a kernel of {m} elements is larger than the signal of {n}");
                    return Err(Error::about(&[x.value(), kernel.value()], ErrorKind::Value, op, message));
                }
                Overlap::Valid => (m - 1, n - m + 1),
            };
            sizes.push((first, size, fast_size(n + m - 1)));
        }
        if dims.is_empty() {
            return x.mul(kernel);
        }
        let points: Vec<usize> = sizes.iter().map(|(.., points)| *points).collect();
        let spectrum = |x: &Tensor| rfftn_with(x, dims.as_slice(), RfftnOptions::new().s(&points[..]));
        let product = mul(&spectrum(x)?, &spectrum(kernel)?)?;
        let mut y = irfftn_with(&product, dims.as_slice(), IrfftnOptions::new().s(&points[..]))?;
        for (dim, (first, size, _)) in dims.iter().zip(sizes) {
            y = y.narrow(*dim, first, size)?;
        }
        Ok(y)
    }
}

/// The kernel with the dims of the signal, in their order.
fn aligned(op: &'static str, x: &Tensor, kernel: &Tensor, dims: &[usize]) -> Result<Tensor> {
    if kernel.has_names() && x.has_names() {
        return kernel.align_as(x);
    }
    if kernel.ndim() == x.ndim() {
        return Ok(kernel.clone());
    }
    if kernel.ndim() != dims.len() || kernel.has_names() {
        let message = format!("expected a kernel with {} dims or with those of the signal", dims.len());
        return Err(Error::about(&[x.value(), kernel.value()], ErrorKind::Shape, op, message));
    }
    let mut order: Vec<usize> = (0..dims.len()).collect();
    order.sort_unstable_by_key(|at| dims[*at]);
    let mut sizes = vec![1; x.ndim()];
    for (at, dim) in dims.iter().enumerate() {
        sizes[*dim] = kernel.sizes()[at];
    }
    kernel.permute(order).reshape(sizes)
}

/// The smallest even product of 2, 3 and 5 from `n` on: transforms of real signals of that size are fast.
fn fast_size(n: usize) -> usize {
    2 * smooth(n.div_ceil(2))
}

fn smooth(n: usize) -> usize {
    let mut best = n.next_power_of_two();
    let mut fives = 1;
    while fives < best {
        let mut threes = fives;
        while threes < best {
            let size = threes * n.div_ceil(threes).next_power_of_two();
            best = best.min(size);
            threes *= 3;
        }
        fives *= 5;
    }
    best
}
