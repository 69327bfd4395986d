//! Dropout.

use namegrad_autograd::Tensor;
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use namegrad_macros::functional;

functional! { dropout;
    /// In training, sets each element to 0 with probability `p` and divides the others by `1 - p`. Otherwise
    /// returns `x`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::ones([("N", 100)])?;
    /// let y = F::dropout(&x, 0.5)?.to_vec::<f32>()?;
    /// assert!(y.iter().all(|y| *y == 0.0 || *y == 2.0));
    /// let same = F::dropout_with(&x, 0.5, DropoutOptions::new().training(false))?;
    /// assert!(same.equal(&x)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Source
    /// Srivastava et al., *Dropout: A Simple Way to Prevent Neural Networks from Overfitting*, JMLR 15
    /// (2014).
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `p` is in [0, 1], [`ErrorKind::DType`] unless `x` is floating-point.
    dropout (x; p: f64 or 0.5, training: bool = true) on floats names "keeps input names";
}

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn dropout(x: &Tensor, p: f64, training: bool) -> Result<Tensor> {
        if !(0.0..=1.0).contains(&p) {
            let message = format!("dropout probability has to be between 0 and 1, but got {p}");
            return Err(Error::new(ErrorKind::Value, "dropout", message).with_operands([x.shape()]));
        }
        if !x.dtype().is_floating_point() {
            let message = format!("only floating-point tensors can be scaled, and x is {}", x.dtype());
            return Err(Error::new(ErrorKind::DType, "dropout", message)
                .with_operands([x.shape()])
                .with_repair("x.to(DType::F32)?"));
        }
        if !training || p == 0.0 {
            return Ok(x.clone());
        }
        let kept = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
        let mask = NamedTensor::choice("dropout", x.shape(), 1.0 - p, [0.0, kept], x.dtype())?;
        x.mul(Tensor::constant(mask))
    }
}
