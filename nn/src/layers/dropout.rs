//! Dropout.

use super::{Layer, within};
use crate::Module;
use crate::functional as F;
use crate::functional::options::DropoutOptions;
use crate::training::{ModulePath, Training};
use namegrad_autograd::Tensor;
use namegrad_core::{Error, ErrorKind, Result};

/// In training, sets each element to 0 with probability `p` and divides the others by `1 - p`; in evaluation,
/// does nothing.
///
/// # Source
/// Srivastava et al., *Dropout: A Simple Way to Prevent Neural Networks from Overfitting*, JMLR 15 (2014).
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let dropout = Dropout::new(0.5)?;
/// dropout.eval();
/// let x = Tensor::ones([("N", 4)])?;
/// assert_eq!(dropout.forward(&x)?.to_vec::<f32>()?, [1.0; 4]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Module)]
#[module(crate = crate, describe = Dropout::text)]
pub struct Dropout {
    p: f64,
    training: Training,
    path: ModulePath,
}

impl Dropout {
    /// A layer that drops elements with probability `p`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `p` is in [0, 1].
    #[track_caller]
    pub fn new(p: f64) -> Result<Dropout> {
        if !(0.0..=1.0).contains(&p) {
            let message = format!("dropout probability has to be between 0 and 1, but got {p}");
            return Err(Error::new(ErrorKind::Value, "Dropout", message));
        }
        Ok(Dropout { p, training: Training::new(), path: ModulePath::new() })
    }

    /// The probability to drop an element.
    pub fn p(&self) -> f64 {
        self.p
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] unless `x` is floating-point.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        F::dropout_with(x, self.p, DropoutOptions { training: self.training.get() })
            .map_err(|error| within(error, "Dropout", &self.path))
    }

    fn text(&self) -> String {
        format!("Dropout(p={})", self.p)
    }
}

impl Layer for Dropout {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Dropout::forward(self, x)
    }
}
