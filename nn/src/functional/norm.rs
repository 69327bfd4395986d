//! Normalizations.

use super::*;
use namegrad_core::options::StandardizeOptions;

functions! {
    norm: layer_norm, rms_norm;
}

functional! { norm;
    /// `(x - mean) / √(var + eps) weight + bias` for each channel along `dim`, with the mean and the variance
    /// over all other dims. With `training`, they are those of `x`; otherwise they are `running_mean` and
    /// `running_var`.
    ///
    /// Returns the result and the running mean and variance after the call: in training
    /// `(1 - momentum) running + momentum new`, where the new variance is divided by the number of elements
    /// minus one; otherwise they are unchanged. Without running statistics, they are those of `x`.
    /// PyTorch's function writes them to its arguments instead; the layer
    /// [`BatchNorm`](crate::BatchNorm) does so.
    ///
    /// # Shapes
    /// - `x`: any dims that include `dim`
    /// - `weight`, `bias`, `running_mean`, `running_var`: `dim`
    /// - result: the dims of `x`
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 5.0], [3.0, 9.0]])?.refine_names(["N", "C"])?;
    /// let options = BatchNormOptions::new().training(true).eps(1e-9);
    /// let (y, mean, var) = F::batch_norm_with(&x, "C", options)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, -1.0, 1.0, 1.0]);
    /// assert_eq!(mean.to_vec::<f32>()?, [2.0, 7.0]);
    /// let options = BatchNormOptions::new().running_mean(&mean).running_var(&var);
    /// let (y, ..) = F::batch_norm_with(&x, "C", options)?;
    /// assert!((y.amax(..)?.item::<f64>()? - 0.5f64.sqrt()).abs() < 1e-4);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Source
    /// Ioffe, Szegedy, *Batch Normalization* (2015), algorithms 1 and 2.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes do not fit, or for a single element per channel in training;
    /// [`ErrorKind::Value`] without running statistics unless `training`, and for an `eps` that is not
    /// positive in training or negative.
    batch_norm (
        x, running_mean?, running_var?, weight?, bias?;
        dim: Dim or 1, training: bool = false, momentum: f64 = 0.1, eps: f64 = 1e-5
    ) -> (y, mean, var) on floats names keeps, mean: removes, var: removes, running_mean: along dim, running_var: along dim,
        weight: along dim, bias: along dim => {
        let over = others(x, &[dim]).into();
        (eps > 0.0 || eps == 0.0 && !training)
            .or_value(format_args!("eps must be positive in training and never negative, got {eps}"))?;
        let norm = Norm { weight, bias, eps, dim, over };
        norm.with_running(x, [running_mean, running_var], training, momentum)
    }
    /// `(x - mean) / √(var + eps) weight + bias` for each channel along `dim` of each instance, with the mean
    /// and the variance over `dims`. If `dims` are all dims, `..`, they are all but `dim` and the dim of
    /// the batch, which is the first.
    ///
    /// Returns the running mean and variance, too, as [`batch_norm`] does; they are averages over the
    /// instances. `use_input_stats` false normalizes with them.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[[1.0, 3.0], [0.0, 8.0]]])?.refine_names(["N", "C", "time"])?;
    /// let (y, ..) = F::instance_norm_with(&x, "C", "time", InstanceNormOptions::new().eps(0.0))?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Source
    /// Ulyanov, Vedaldi, Lempitsky, *Instance Normalization* (2016).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes do not fit, or for a single element per channel and instance;
    /// [`ErrorKind::Value`] without running statistics if they are to be used.
    instance_norm (
        x, running_mean?, running_var?, weight?, bias?;
        dim: Dim or 1, dims: Dims or .., use_input_stats: bool = true, momentum: f64 = 0.1, eps: f64 = 1e-5
    ) -> (y, mean, var) on floats names keeps, mean: removes, var: removes, running_mean: along dim, running_var: along dim,
        weight: along dim, bias: along dim => {
        let norm = Norm { weight, bias, eps, dim, over: inside(x, dim, dims) };
        norm.with_running(x, [running_mean, running_var], use_input_stats, momentum)
    }
    /// `(x - mean) / √(var + eps) weight + bias`, where the channels along `dim` are split into `num_groups`
    /// groups, and the mean and the variance are over a group and `dims`. If `dims` are all dims,
    /// `..`, they are all but the dim of the batch, which is the first.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 3.0, 0.0, 8.0]])?.refine_names(["N", "C"])?;
    /// let y = F::group_norm_with(&x, 2, "C", .., GroupNormOptions::new().eps(0.0))?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Source
    /// Wu, He, *Group Normalization* (2018), equations 1 to 6.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes do not fit or the groups do not divide the channels.
    group_norm (x, weight?, bias?; num_groups: usize, dim: Dim or 1, dims: Dims or .., eps: f64 = 1e-5)
        on floats names keeps, weight: along dim, bias: along dim => {
        x.value().check_float(op)?;
        let channels = x.sizes().get(dim).copied().unwrap_or(0);
        check_groups(channels, num_groups)?;
        let norm = Norm { weight, bias, eps, dim, over: inside(x, dim, dims) };
        (x.numel() == 0 || x.numel() != num_groups)
            .or_shape("expected more than one value per group: the result would not depend on the input")?;
        (channels != 0 && norm.over.iter().all(|dim| x.sizes()[*dim] != 0))
            .or_shape("expected at least one channel with at least one value")?;
        Ok(norm.standardized(x, num_groups)?.0)
    }
    /// `x / (k + alpha/size Σ x²)^beta`, with the sum over the `size` channels around each channel along
    /// `dim`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0, 3.0]])?;
    /// let y = F::local_response_norm_with(&x, 3, 1, LocalResponseNormOptions::new().alpha(3.0).beta(1.0))?;
    /// assert!(y.allclose(&Tensor::new([[1.0 / 6.0, 2.0 / 15.0, 3.0 / 14.0]])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Source
    /// Krizhevsky, Sutskever, Hinton, *ImageNet Classification with Deep Convolutional Neural Networks*
    /// (2012), section 3.3.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a `size` of 0.
    local_response_norm (x; size: usize, dim: Dim or 1, alpha: f64 = 1e-4, beta: f64 = 0.75, k: f64 = 1.0)
        on floats integers => {
        if x.dtype() == DType::Bool {
            x.value().check_float(op)?; // for its error
        }
        (size != 0).or_value("size, the number of channels around each channel, must be at least 1")?;
        (x.ndim() > 0).or_shape(NO_CHANNELS)?;
        if x.numel() == 0 {
            return Ok(x.clone());
        }
        let plain = x.rename(None)?;
        let around = [size / 2, (size - 1) / 2].map(|count| count as isize);
        let windows = with_constant(&plain.square()?, &[(dim, around)], 0.into()).unfold(dim, size, 1)?;
        let around = match x.dtype().is_floating_point() {
            true => windows.mean(-1)?,
            false => windows.sum(-1).floor_divide(size)?, // as in PyTorch
        };
        let divisor = around.mul(alpha).add(k).pow(beta)?;
        with_names(plain.div(&divisor)?, x.names())
    }
    /// `x / max(‖x‖, eps)`, with the `p`-norm over `dim`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[3.0, 4.0], [0.0, 0.0]])?.refine_names(["N", "embed"])?;
    /// let y = F::normalize(&x, "embed")?;
    /// assert!(y.allclose(&Tensor::new([[0.6, 0.8], [0.0, 0.0]])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    normalize (x; dim: Dims or 1, p: f64 = 2.0, eps: f64 = 1e-12) on floats => {
        x.value().check_float(op)?;
        let norm = x.vector_norm_with(keep(&dim), VectorNormOptions::new().ord(p))?;
        x.div(&norm.clamp_min(eps)?)
    }
}

/// Checks that channels can be divided into groups of the same size.
pub(crate) fn check_groups(channels: usize, num_groups: usize) -> Result<()> {
    (num_groups != 0 && channels.is_multiple_of(num_groups)).or_shape(format_args!(
        "the number of channels must be divisible by num_groups, got {channels} channels and {num_groups} groups"
    ))
}

const NO_CHANNELS: &str = "expected a dim of channels, but the input is one number";

/// The dims that a group or an instance is normalized over. If all dims are given, the first is that of the
/// batch, as in PyTorch, or the second if the channels come first.
#[inline(never)]
fn inside(x: &Tensor, dim: usize, mut dims: Positions) -> Positions {
    let skipped = (dims.len() == x.ndim()).then_some(usize::from(dim == 0));
    dims.retain(|other| *other != dim && Some(*other) != skipped);
    dims
}

/// A normalization by channels.
struct Norm<'a> {
    weight: Option<&'a Tensor>,
    bias: Option<&'a Tensor>,
    eps: f64,
    dim: usize,
    over: Positions,
}

impl Norm<'_> {
    /// The result, the mean and the variance of groups of channels.
    fn standardized(&self, x: &Tensor, groups: usize) -> Result<(Tensor, Tensor, Tensor)> {
        let options = StandardizeOptions {
            weight: self.weight.map(Cow::Borrowed),
            bias: self.bias.map(Cow::Borrowed),
            eps: self.eps,
        };
        x.standardize_with(self.dim, Dims::from(&self.over), groups, options)
    }

    fn with_running(
        &self,
        x: &Tensor,
        given: [Option<&Tensor>; 2],
        training: bool,
        momentum: f64,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        x.value().check_float("")?;
        let Some(&channels) = x.sizes().get(self.dim) else { return Err(shape_error(NO_CHANNELS)) };
        let (running, wrong) = match given {
            [Some(mean), Some(var)] => (Some([mean, var]), ""),
            [None, None] if training => (None, ""),
            [None, None] => (None, "are needed unless the statistics are those of x"),
            _ => (None, "are given together or not at all"),
        };
        wrong.is_empty().or_value(format_args!("running_mean and running_var {wrong}"))?;
        self.check_of_channels(x, given)?;
        if !training && let Some([mean, var]) = running {
            return Ok((self.fixed(x, mean, var)?, mean.clone(), var.clone()));
        }
        let n: usize = self.over.iter().map(|dim| x.sizes()[*dim]).product();
        (n != 1 || x.numel() == 0)
            .or_shape(format_args!(
                "expected more than 1 value per channel when training, got input size {:?}",
                x.sizes()
            ))
            .map_err(|error| error.with_repair("model.eval(), to normalize with the running statistics"))?;
        let (y, mean, var) = self.standardized(x, channels)?;
        if let Some([mean, var]) = running.filter(|_| n == 0) {
            return Ok((y, mean.clone(), var.clone()));
        }
        let unbiased = n as f64 / n.saturating_sub(1) as f64;
        let next = |new: &Tensor, factor: f64, old: Option<&Tensor>| -> Result<Tensor> {
            let new = new.rename(None)?;
            // The average over the instances, of which there is one in batch normalization.
            let at = (0..self.dim).filter(|dim| !is_in(&self.over, *dim)).count();
            let others = others(&new, &[at]);
            let new = if others.is_empty() { new } else { new.mean(others)? }.mul(factor)?;
            let Some(old) = old else { return new.rename([x.name(self.dim)]) };
            let next = old.rename(None).mul(1.0 - momentum).add(&new.mul(momentum)?).to(old.dtype())?;
            next.rename([old.name(0)])
        };
        let old = |k: usize| running.map(|running| running[k]);
        Ok((y, next(&mean, 1.0, old(0))?, next(&var, unbiased, old(1))?))
    }

    /// The result with these statistics: `x scale + (bias - mean scale)`.
    fn fixed(&self, x: &Tensor, mean: &Tensor, var: &Tensor) -> Result<Tensor> {
        let dtype = x.dtype().compute();
        let mut sizes = vec![1; x.ndim()];
        sizes[self.dim] = x.sizes()[self.dim];
        let of_channels = |parameter: &Tensor| parameter.to(dtype).rename(None).reshape(&sizes);
        let mut scale = of_channels(var).add(self.eps).rsqrt()?;
        if let Some(weight) = self.weight {
            scale = scale.mul(&of_channels(weight)?)?;
        }
        let mut shift = of_channels(mean).mul(&scale).neg()?;
        if let Some(bias) = self.bias {
            shift = shift.add(&of_channels(bias)?)?;
        }
        let y = x.rename(None).to(dtype).mul(&scale).add(&shift).to(x.dtype())?;
        with_names(y, x.names())
    }

    /// Checks what has a number for each channel of `x`. If `x` does not tell the name of the channels, the
    /// first that has one does.
    fn check_of_channels(&self, x: &Tensor, [mean, var]: [Option<&Tensor>; 2]) -> Result<()> {
        let mut told = ("x", x.name(self.dim));
        let all =
            [("running_mean", mean), ("running_var", var), ("weight", self.weight), ("bias", self.bias)];
        for (which, numbers) in all {
            let Some(numbers) = numbers else { continue };
            ensure_floats((which, numbers), format_args!("expected a {which} of floats, got"))?;
            ensure_sizes(format_args!("a {which}"), numbers, &[x.sizes()[self.dim]])?;
            check_meeting((which, numbers, 0), told)?;
            if told.1.is_none() && numbers.has_names() {
                told = (which, numbers.name(0));
            }
        }
        Ok(())
    }
}
