//! Activations: elementwise ops and ops along a dim.

use super::*;
use namegrad_core::options::{HardtanhOptions, LeakyReluOptions};

functions! {
    unary: relu layer Relu, sigmoid layer Sigmoid, tanh layer Tanh, silu layer Silu, elu layer Elu,
        leaky_relu layer LeakyRelu, softplus layer Softplus, hardtanh layer Hardtanh, threshold layer Threshold,
        celu layer Celu, selu layer Selu, hardshrink layer Hardshrink, mish layer Mish, hardswish layer Hardswish,
        hardsigmoid layer Hardsigmoid, logsigmoid layer LogSigmoid;
    along: softmax layer Softmax, log_softmax layer LogSoftmax;
}

/// The formula by which [`gelu`] computes the distribution function of the normal distribution. [`gelu`] has
/// an example.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub enum Approximate {
    /// With the error function, exactly.
    #[default]
    None,
    /// With an approximation by `tanh`.
    Tanh,
}

functional! { activation;
    /// `x Φ(x)`, with the distribution function `Φ` of the normal distribution, like [`Tensor::gelu`]; or the
    /// approximation `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([-1.0, 0.0, 2.0])?;
    /// let exact = F::gelu(&x)?;
    /// assert!(exact.allclose(&x.gelu()?)?);
    /// let tanh = F::gelu_with(&x, GeluOptions::new().approximate(F::Approximate::Tanh))?;
    /// assert!(tanh.sub(&exact)?.abs()?.amax(..)?.item::<f64>()? < 1e-3);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Source
    /// Hendrycks, Gimpel, *Gaussian Error Linear Units (GELUs)* (2016), section 2.
    gelu (x; approximate: Approximate = Approximate::None) on floats layer Gelu => {
        if approximate == Approximate::None {
            return x.gelu();
        }
        x.value().check_float(op)?;
        // In a half type, the cube and its derivative would overflow.
        let wide = x.to(x.dtype().compute())?;
        let inner = wide.pow(3).mul(0.044715).add(&wide).mul((2.0 / std::f64::consts::PI).sqrt())?;
        wide.mul(0.5).mul(inner.tanh().add(1.0)?).to(x.dtype())
    }
    /// `min(max(x, 0), 6)`: a [`relu`] that stays in the range of a few bits. At 0 and at 6 the derivative
    /// is 0.
    ///
    /// # Source
    /// Howard et al., *MobileNets: Efficient Convolutional Neural Networks for Mobile Vision Applications*
    /// (2017).
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// assert_eq!(F::relu6(&Tensor::new([-1.0, 2.0, 9.0])?)?.to_vec::<f32>()?, [0.0, 2.0, 6.0]);
    /// # Ok::<(), Error>(())
    /// ```
    relu6 (x) on floats integers layer Relu6 =>
        x.hardtanh_with(HardtanhOptions::new().min_val(0).max_val(6));
    /// `x` for `x > 0`, else `weight x`, with a slope for each channel or one for all.
    ///
    /// # Shapes
    /// - `x`: any dims
    /// - `weight`: one number, or `[channels]`. Its dim is the dim of `x` with the same name; without a name
    ///   it is dim 1
    /// - result: the dims of `x`
    ///
    /// # Source
    /// He et al., *Delving Deep into Rectifiers* (2015), equation 1.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[-1.0, -1.0], [2.0, 2.0]])?.refine_names(["N", "C"])?;
    /// let weight = Tensor::new([0.5, 0.25])?.refine_names(["C"])?;
    /// assert_eq!(F::prelu(&x, &weight)?.to_vec::<f32>()?, [-0.5, -0.25, 2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] unless the weight has one number for each channel, [`ErrorKind::NameNotFound`] if
    /// `x` lacks the dim of the weight, [`ErrorKind::DType`] unless both are floating-point and of one dtype.
    prelu (x, weight) on floats names keeps, weight: along channels =>
        x.prelu(weight);
    /// `x` for `x > 0`, else `a x`. In training, each element has its own random `a` between `lower` and
    /// `upper`; otherwise `a` is the mean of both.
    ///
    /// # Source
    /// Xu et al., *Empirical Evaluation of Rectified Activations in Convolutional Network* (2015), section
    /// 2.4.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([-1.0, 1.0])?;
    /// assert!(F::rrelu(&x)?.allclose(&Tensor::new([-11.0 / 48.0, 1.0])?)?);
    /// let y = F::rrelu_with(&x, RreluOptions::new().training(true))?.to_vec::<f32>()?;
    /// assert!(-1.0 / 3.0 <= y[0] && y[0] <= -1.0 / 8.0 && y[1] == 1.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if `lower` is greater than `upper` or one is not finite, [`ErrorKind::DType`]
    /// unless `x` is floating-point.
    rrelu (x; lower: f64 = 1.0 / 8.0, upper: f64 = 1.0 / 3.0, training: bool = false) on floats layer Rrelu => {
        x.value().check_float(op)?;
        (lower <= upper && (upper - lower).is_finite())
            .or_value(format_args!("lower must be less than or equal to upper, and both finite, got {lower} and {upper}"))?;
        if !training {
            let slope = LeakyReluOptions::new().negative_slope((lower + upper) / 2.0);
            return x.leaky_relu_with(slope);
        }
        let slope = TensorOptions::new().dtype(x.dtype()).uniform(x.sizes(), lower, upper)?;
        with_slope(x, &slope)
    }
    /// `x / (1 + |x|)`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// assert_eq!(F::softsign(&Tensor::new([-1.0, 3.0])?)?.to_vec::<f32>()?, [-0.5, 0.75]);
    /// # Ok::<(), Error>(())
    /// ```
    softsign (x) on floats integers layer Softsign =>
        x.div(x.abs().add(1)?);
    /// `x - tanh x`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let y = F::tanhshrink(&Tensor::new([0.0, 2.0])?)?;
    /// assert!(y.allclose(&Tensor::new([0.0, 2.0 - 2f64.tanh()])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    tanhshrink (x) on floats integers layer Tanhshrink =>
        x.sub(x.tanh()?);
    /// `x` moved toward 0 by `lambd`: `x - lambd` for `x > lambd`, `x + lambd` for `x < -lambd`, and 0
    /// between them, where the derivative is 0 too.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// assert_eq!(F::softshrink(&Tensor::new([-1.0, 0.25, 2.0])?)?.to_vec::<f32>()?, [-0.5, 0.0, 1.5]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a negative `lambd`, [`ErrorKind::DType`] unless `x` is floating-point.
    softshrink (x; lambd: f64 = 0.5) on floats layer Softshrink => {
        x.value().check_float(op)?;
        (lambd >= 0.0).or_value(format_args!("lambd cannot be negative, got {lambd}"))?;
        x.sub(x.clamp(-lambd, lambd)?)
    }
    /// `a sigmoid(b)`, where `a` is the first half of `x` along `dim` and `b` the second.
    ///
    /// # Source
    /// Dauphin et al., *Language Modeling with Gated Convolutional Networks* (2017), section 2.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0, 0.0, 0.0]])?.refine_names(["N", "C"])?;
    /// let y = F::glu(&x, "C")?;
    /// assert_eq!((y.shape().to_string(), y.to_vec::<f32>()?), ("[N=1, C=2]".into(), vec![0.5, 1.0]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] unless the size of `dim` is even, [`ErrorKind::DType`] unless `x` is
    /// floating-point.
    glu (x; dim: Dim or -1) on floats layer Glu => {
        x.value().check_float(op)?;
        let size = x.sizes().get(dim).copied().unwrap_or(1);
        (size % 2 == 0).or_shape(format_args!("the size of the dim that is halved must be even, got {size}"))?;
        let half = |start: usize| x.narrow(dim, start, size / 2);
        half(0).mul(half(size / 2).sigmoid()?)
    }
    /// `e^-x / Σ e^-x` along `dim`: the [`softmax`] of `-x`, which is first cast to `dtype` if that is given.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::randn([("N", 2), ("class", 3)])?;
    /// assert!(F::softmin(&x, "class")?.allclose(&x.neg()?.softmax("class")?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] unless `x` is floating-point.
    softmin (x; dim: Dim, dtype: Option<DType> = None) on floats layer Softmin => {
        let x = if let Some(dtype) = dtype { &x.to(dtype)? } else { x };
        x.value().check_float(op)?;
        x.neg().softmax(dim)
    }
    /// A random sample of [`softmax`] along `dim`, through which gradients flow: the softmax of
    /// `(logits + noise) / tau` with Gumbel noise. With `hard`, the result has a 1 at the largest element and
    /// 0 elsewhere, and the gradient is still that of the softmax.
    ///
    /// # Source
    /// Jang, Gu, Poole, *Categorical Reparameterization with Gumbel-Softmax* (2017), equation 2.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let logits = Tensor::randn([("N", 4), ("class", 3)])?;
    /// let sample = F::gumbel_softmax_with(&logits, "class", GumbelSoftmaxOptions::new().hard(true))?;
    /// assert!(sample.sum("class")?.allclose(&Tensor::ones([("N", 4)])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] unless the logits are floating-point.
    gumbel_softmax (logits; dim: Dim or -1, tau: f64 = 1.0, hard: bool = false) on floats => {
        logits.value().check_float(op)?;
        let mut noise = logits.detach().zeros_like()?;
        noise.exponential_(1.0)?;
        let soft = logits.sub(noise.log()?).div(tau).softmax(dim)?;
        if !hard {
            return Ok(soft);
        }
        let largest = soft.detach().argmax(keep(dim))?;
        let hard = soft.detach().zeros_like().scatter(&largest, 1.0, dim)?;
        // The value of the first, with the gradient of the second.
        hard.sub(soft.detach()).add(&soft)
    }
}

/// `x` where it is positive, else `slope x`, for a slope without names.
fn with_slope(x: &Tensor, slope: &Tensor) -> Result<Tensor> {
    let plain = x.rename(None)?;
    let positive = plain.gt(0)?;
    // Filled before the product: infinity times a gradient of 0 is NaN.
    with_names(positive.choose(&plain, plain.masked_fill(&positive, 0).mul(slope)?)?, x.names())
}
