//! Windows: weights that fall towards the ends of a piece of a signal.

use crate::common::*;
use crate::shift::vector;
use namegrad_core::NewDim;
use std::f64::consts::{PI, TAU};

/// A window, for [`stft`](crate::stft()) and for spectra of pieces of signals.
///
/// A *periodic* window of `n` numbers is the start of a symmetric one of `n + 1`, whose repetitions are
/// smooth: for spectra. A *symmetric* one is for filters. Formulas are in `z = 2π k / m` for `k = 0, 1...
/// n - 1`, where `m` is `n` in a periodic window and `n - 1` in a symmetric one. The only number of a
/// window of one is 1.
///
/// PyTorch's `torch.hann_window(n)` is `Window::Hann.periodic(n)`, and `torch.signal.windows.hann(n)` is
/// `Window::Hann.symmetric(n)`.
///
/// # Source
/// Harris, *On the Use of Windows for Harmonic Analysis with the Discrete Fourier Transform* (1978).
///
/// ```
/// use namegrad::fft::Window;
/// use namegrad::prelude::*;
/// let window = Window::Hann.periodic(("time", 4))?;
/// assert_eq!(window.shape().to_string(), "[time=4]");
/// assert!(window.allclose(&Tensor::new([0.0, 0.5, 1.0, 0.5])?)?);
/// let kaiser = Window::Kaiser { beta: 8.0 }.symmetric_as(5, DType::F64)?;
/// assert_eq!(kaiser.item_at::<f64>([2])?, 1.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Window {
    /// A triangle: `1 - |2 k / m - 1|`.
    Bartlett,
    /// `0.42 - 0.5 cos z + 0.08 cos 2z`.
    Blackman,
    /// `sin(π (k + ½) / (m + 1))`.
    Cosine,
    /// `e^(-|k - center| / tau)`.
    Exponential {
        /// The position of the largest number; `None` is the middle, the only one of a symmetric window.
        center: Option<f64>,
        /// The decay, in elements.
        tau: f64,
    },
    /// `e^(-½ ((k - m/2) / std)²)`.
    Gaussian {
        /// The standard deviation, in elements.
        std: f64,
    },
    /// `a[0] - a[1] cos z + a[2] cos 2z - ...`. PyTorch's `hamming_window(n, alpha=a, beta=b)` is `[a, b]`.
    GeneralCosine(Vec<f64>),
    /// `alpha - (1 - alpha) cos z`.
    GeneralHamming {
        /// The constant.
        alpha: f64,
    },
    /// `0.54 - 0.46 cos z`.
    Hamming,
    /// `½ - ½ cos z`.
    Hann,
    /// `I₀(beta √(1 - (2 k / m - 1)²)) / I₀(beta)`.
    Kaiser {
        /// The shape, 12 in PyTorch: 0 is a rectangle, and larger ones are narrower.
        beta: f64,
    },
    /// `0.3635819 - 0.4891775 cos z + 0.1365995 cos 2z - 0.0106411 cos 3z`.
    Nuttall,
}

impl Window {
    /// `n` numbers of a periodic window, in the default dtype. The new dim can have a name: `("time", 400)`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a negative size and for parameters out of their range.
    #[track_caller]
    pub fn periodic(&self, n: impl NewDim) -> Result<Tensor> {
        self.periodic_as(n, default_dtype())
    }

    /// [`periodic`](Self::periodic) in another dtype.
    ///
    /// # Errors
    /// As [`periodic`](Self::periodic), and [`ErrorKind::DType`] unless the dtype is a float.
    #[track_caller]
    pub fn periodic_as(&self, n: impl NewDim, dtype: DType) -> Result<Tensor> {
        self.of(n.into_new_dim(), 0, dtype)
    }

    /// `n` numbers of a symmetric window, in the default dtype.
    ///
    /// # Errors
    /// As [`periodic`](Self::periodic).
    #[track_caller]
    pub fn symmetric(&self, n: impl NewDim) -> Result<Tensor> {
        self.symmetric_as(n, default_dtype())
    }

    /// [`symmetric`](Self::symmetric) in another dtype.
    ///
    /// # Errors
    /// As [`periodic_as`](Self::periodic_as).
    #[track_caller]
    pub fn symmetric_as(&self, n: impl NewDim, dtype: DType) -> Result<Tensor> {
        self.of(n.into_new_dim(), 1, dtype)
    }

    /// The name in errors.
    fn name(&self) -> &'static str {
        match self {
            Window::Bartlett => "Window::Bartlett",
            Window::Blackman => "Window::Blackman",
            Window::Cosine => "Window::Cosine",
            Window::Exponential { .. } => "Window::Exponential",
            Window::Gaussian { .. } => "Window::Gaussian",
            Window::GeneralCosine(_) => "Window::GeneralCosine",
            Window::GeneralHamming { .. } => "Window::GeneralHamming",
            Window::Hamming => "Window::Hamming",
            Window::Hann => "Window::Hann",
            Window::Kaiser { .. } => "Window::Kaiser",
            Window::Nuttall => "Window::Nuttall",
        }
    }

    #[track_caller]
    fn check(&self, is_symmetric: bool) -> Result<()> {
        let wrong = match self {
            Window::Exponential { tau, .. } if tau.is_nan() || *tau <= 0.0 => {
                format!("`tau` must be positive, got {tau}")
            }
            Window::Exponential { center: Some(center), .. } if is_symmetric => {
                format!("a symmetric window has its center in the middle, got `center` {center}")
            }
            Window::Gaussian { std } if std.is_nan() || *std <= 0.0 => {
                format!("`std` must be positive, got {std}")
            }
            Window::Kaiser { beta } if beta.is_nan() || *beta < 0.0 => {
                format!("`beta` must not be negative, got {beta}")
            }
            Window::GeneralCosine(a) if a.is_empty() => "expected at least one coefficient".into(),
            _ => return Ok(()),
        };
        Err(Error::new(ErrorKind::Value, self.name(), wrong))
    }

    /// The numbers, where a window of `n` has `n - less` steps.
    #[track_caller]
    fn of(&self, n: Result<(Option<Name>, usize)>, less: usize, dtype: DType) -> Result<Tensor> {
        let (name, n) = n.map_err(|error| error.of(self.name()))?;
        self.check(less == 1)?;
        let m = n.saturating_sub(less) as f64;
        vector(self.name(), name, n, dtype, &|k| if n == 1 { self.single() } else { self.at(k as f64, m) })
    }

    /// The only number of a window of one.
    fn single(&self) -> f64 {
        match self {
            Window::Exponential { center: Some(center), tau } => (-(center / tau).abs()).exp(),
            _ => 1.0,
        }
    }

    fn at(&self, k: f64, m: f64) -> f64 {
        let cosines = |a: &[f64]| {
            let terms =
                a.iter().enumerate().map(|(i, a)| a * (TAU * k / m * i as f64).cos() * [1.0, -1.0][i % 2]);
            terms.sum()
        };
        match self {
            Window::Bartlett => 1.0 - (2.0 * k / m - 1.0).abs(),
            Window::Blackman => cosines(&[0.42, 0.5, 0.08]),
            Window::Cosine => (PI * (k + 0.5) / (m + 1.0)).sin(),
            Window::Exponential { center, tau } => (-(k - center.unwrap_or(m / 2.0)).abs() / tau).exp(),
            Window::Gaussian { std } => (-0.5 * ((k - m / 2.0) / std).powi(2)).exp(),
            Window::GeneralCosine(a) => cosines(a),
            Window::GeneralHamming { alpha } => cosines(&[*alpha, 1.0 - alpha]),
            Window::Hamming => cosines(&[0.54, 0.46]),
            Window::Hann => cosines(&[0.5, 0.5]),
            Window::Kaiser { beta } => {
                let x = 2.0 * k / m - 1.0;
                let root = (1.0 - x * x).max(0.0).sqrt();
                // The quotient of I₀ without its growth, which would overflow.
                bessel_i0e(beta * root) / bessel_i0e(*beta) * (beta * (root - 1.0)).exp()
            }
            Window::Nuttall => cosines(&[0.3635819, 0.4891775, 0.1365995, 0.0106411]),
        }
    }
}

/// `e^(-x) I₀(x)` for `x >= 0`.
fn bessel_i0e(x: f64) -> f64 {
    let value = NamedTensor::full_as("i0e", (), x.into(), DType::F64).and_then(|x| x.i0e()?.item::<f64>());
    value.unwrap_or(f64::NAN) // out of memory
}
