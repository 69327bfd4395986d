//! Losses.

use namegrad_autograd::Tensor;
use namegrad_core::{Argument, DType, Dim, Error, ErrorKind, Result};

/// What becomes of the losses of the single elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// They are averaged, by weight where there are weights.
    #[default]
    Mean,
    /// They are summed.
    Sum,
    /// They stay as they are.
    None,
}

impl Reduction {
    #[track_caller]
    fn apply(self, losses: Tensor) -> Result<Tensor> {
        match self {
            Reduction::Mean => losses.mean(..),
            Reduction::Sum => losses.sum(..),
            Reduction::None => Ok(losses),
        }
    }
}

/// The mean of `(x - target)²`.
///
/// # Errors
/// Those of the name rule of a subtraction, [`ErrorKind::Shape`].
#[track_caller]
pub fn mse_loss(x: &Tensor, target: &Tensor) -> Result<Tensor> {
    mse_loss_with(x, target, Reduction::Mean)
}

/// [`mse_loss`] with another reduction.
///
/// # Errors
/// Those of [`mse_loss`].
#[track_caller]
pub fn mse_loss_with(x: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
    reduction.apply(x.sub(target)?.square()?)
}

/// How [`cross_entropy_with`] and [`nll_loss_with`] weigh classes and reduce.
#[derive(Clone, Debug)]
pub struct CrossEntropy {
    /// A weight for each class, `[classes]`.
    pub weight: Option<Tensor>,
    /// A class index that counts for nothing.
    pub ignore_index: i64,
    /// The share of the target that is spread evenly over all classes, in [0, 1]; for [`cross_entropy_with`] only.
    pub label_smoothing: f64,
    /// What becomes of the losses of the single elements.
    pub reduction: Reduction,
}

impl Default for CrossEntropy {
    fn default() -> CrossEntropy {
        CrossEntropy { weight: None, ignore_index: -100, label_smoothing: 0.0, reduction: Reduction::Mean }
    }
}

/// The cross entropy of `softmax(logits)` along `class_dim` with the target, averaged.
///
/// # Shapes
/// - `logits`: any dims that include `class_dim`
/// - `target`: class indices (`i64`) with the dims of `logits` without `class_dim`, or probabilities of the dims of `logits`
/// - result: one number
///
/// # Source
/// Goodfellow, Bengio, Courville, *Deep Learning* (2016), section 6.2.2.3.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// use namegrad::nn::functional as F;
/// let logits = Tensor::new([[2.0, 0.0], [0.0, 2.0]])?.refine_names(["N", "class"])?;
/// let target = Tensor::new([0, 1])?.refine_names(["N"])?;
/// let loss = F::cross_entropy(&logits, &target, "class")?.item()?.to_f64();
/// assert!((loss - (1.0 + (-2.0f64).exp()).ln()).abs() < 1e-6);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`]; [`ErrorKind::Shape`] and the errors of the name rule if the target does not fit;
/// [`ErrorKind::Index`] for a class that there is not.
#[track_caller]
pub fn cross_entropy(logits: &Tensor, target: &Tensor, class_dim: impl Into<Dim>) -> Result<Tensor> {
    cross_entropy_with(logits, target, class_dim, &CrossEntropy::default())
}

/// [`cross_entropy`] with weights, smoothing, an ignored class or another reduction.
///
/// # Errors
/// Those of [`cross_entropy`]; [`ErrorKind::Value`] for a smoothing outside [0, 1].
#[track_caller]
pub fn cross_entropy_with(
    logits: &Tensor,
    target: &Tensor,
    class_dim: impl Into<Dim>,
    options: &CrossEntropy,
) -> Result<Tensor> {
    const OP: &str = "cross_entropy";
    let smoothing = options.label_smoothing;
    if !(0.0..=1.0).contains(&smoothing) {
        let message = format!("label_smoothing must be between 0.0 and 1.0. Got: {smoothing}");
        return Err(Error::new(ErrorKind::Value, OP, message));
    }
    let dim = class_dim.into().resolve(OP, logits.value())?;
    let log_probabilities = logits.log_softmax(dim)?;
    if target.dtype().is_floating_point() {
        return with_probabilities(&log_probabilities, target, dim, options);
    }
    let likelihood = Likelihood::new(OP, &log_probabilities, target, dim, options)?;
    if smoothing == 0.0 {
        return likelihood.loss(options.reduction);
    }
    likelihood.smoothed(&log_probabilities, dim, options)
}

/// The loss `-Σ target log p` against probabilities.
#[track_caller]
fn with_probabilities(log_p: &Tensor, target: &Tensor, dim: usize, options: &CrossEntropy) -> Result<Tensor> {
    const OP: &str = "cross_entropy";
    if target.sizes() != log_p.sizes() {
        let message = format!(
            "target probabilities {:?} must have the sizes of the logits {:?}",
            target.sizes(),
            log_p.sizes()
        );
        return Err(
            Error::new(ErrorKind::Shape, OP, message).with_operands([log_p.extents(), target.extents()])
        );
    }
    let classes = log_p.sizes().get(dim).copied().unwrap_or(1);
    let smoothing = options.label_smoothing;
    let target = if smoothing > 0.0 {
        target.mul(1.0 - smoothing)?.add(smoothing / classes as f64)?
    } else {
        target.clone()
    };
    let mut weighted = log_p.mul(&target)?;
    if let Some(weight) = &options.weight {
        weighted = weighted.mul(&along(OP, weight, log_p, dim)?)?;
    }
    let losses = weighted.sum(if log_p.ndim() > 0 { vec![dim] } else { vec![] })?.neg()?;
    match options.reduction {
        Reduction::Mean => losses.sum(..)?.div((log_p.numel() / classes.max(1)).max(1)),
        other => other.apply(losses),
    }
}

/// A vector of one number for each class, shaped so that it broadcasts along `dim` of `x`.
#[track_caller]
fn along(op: &'static str, weight: &Tensor, x: &Tensor, dim: usize) -> Result<Tensor> {
    let classes = x.sizes().get(dim).copied().unwrap_or(1);
    if weight.ndim() != 1 || weight.sizes()[0] != classes {
        let message = format!(
            "weight tensor should be defined for all {classes} classes, got sizes {:?}",
            weight.sizes()
        );
        return Err(Error::new(ErrorKind::Shape, op, message).with_operands([weight.extents(), x.extents()]));
    }
    let mut sizes = vec![1; x.ndim()];
    if x.ndim() > 0 {
        sizes[dim] = classes;
    }
    weight.rename(None)?.reshape(&sizes[..])
}

/// `-weight[target] log p[target]`, averaged by weight; `log_probabilities` as [`Tensor::log_softmax`] gives them.
///
/// # Shapes
/// As for [`cross_entropy`] with class indices.
///
/// # Errors
/// Those of [`cross_entropy`]; [`ErrorKind::DType`] unless the target holds integers.
#[track_caller]
pub fn nll_loss(log_probabilities: &Tensor, target: &Tensor, class_dim: impl Into<Dim>) -> Result<Tensor> {
    nll_loss_with(log_probabilities, target, class_dim, &CrossEntropy::default())
}

/// [`nll_loss`] with weights, an ignored class or another reduction.
///
/// # Errors
/// Those of [`nll_loss`].
#[track_caller]
pub fn nll_loss_with(
    log_probabilities: &Tensor,
    target: &Tensor,
    class_dim: impl Into<Dim>,
    options: &CrossEntropy,
) -> Result<Tensor> {
    let dim = class_dim.into().resolve("nll_loss", log_probabilities.value())?;
    Likelihood::new("nll_loss", log_probabilities, target, dim, options)?.loss(options.reduction)
}

/// The log probabilities of the targets, and how much each counts.
struct Likelihood {
    /// Of the dims of the target.
    picked: Tensor,
    /// The weight of each target, 0 where it is ignored; nothing where all count the same.
    counted: Option<Tensor>,
    /// Where the target is ignored. Losses are filled there, not multiplied by 0: the gradient is 0 also where the mean is that of no loss at all.
    ignored: Option<Tensor>,
}

impl Likelihood {
    #[track_caller]
    fn new(
        op: &'static str,
        log_p: &Tensor,
        target: &Tensor,
        dim: usize,
        options: &CrossEntropy,
    ) -> Result<Likelihood> {
        let operands = || [log_p.extents(), target.extents()];
        if !matches!(target.dtype(), DType::I64 | DType::I32 | DType::U8) {
            let message = format!("expected class indices of an integer dtype, got {}", target.dtype());
            return Err(Error::new(ErrorKind::DType, op, message)
                .with_operands(operands())
                .with_repair("target.to(DType::I64)?"));
        }
        let classes = log_p.sizes().get(dim).copied().unwrap_or(1);
        // The dims of the target, of which the names unify with its own.
        let rest = log_p.value().select(dim, 0).map_or_else(|_| log_p.detach(), Tensor::constant);
        if classes == 0 || rest.sizes() != target.sizes() {
            let message = format!("expected a target of sizes {:?}, got {:?}", rest.sizes(), target.sizes());
            return Err(Error::new(ErrorKind::Shape, op, message).with_operands(operands()));
        }
        let names = namegrad_core::names::rules::unify(
            op,
            "broadcast",
            rest.value().input(),
            target.value().input(),
        )?;
        let target = target.rename(None)?.to(DType::I64)?;
        let ignored = target.eq(options.ignore_index)?;
        let any_ignored = ignored.any(..)?.item()? == namegrad_core::Scalar::Bool(true);
        let index = if any_ignored { target.masked_fill(&ignored, 0)? } else { target };
        if let Some(bad) =
            index.to_vec::<i64>()?.into_iter().find(|class| *class < 0 || *class as u64 >= classes as u64)
        {
            let message = format!("Target {bad} is out of bounds for {classes} classes.");
            return Err(Error::new(ErrorKind::Index, op, message).with_operands(operands()));
        }
        let picked = match log_p.ndim() {
            0 => log_p.rename(None)?,
            _ => log_p.rename(None)?.gather(&index.unsqueeze(dim as isize)?, dim)?.select(dim, 0)?,
        };
        let ignored = any_ignored.then_some(ignored);
        let counted = match &options.weight {
            Some(weight) => {
                along(op, weight, log_p, dim)?; // for its checks
                let flat =
                    weight.rename(None)?.index_select(&index.reshape([-1])?, 0)?.reshape(index.sizes())?;
                Some(if let Some(ignored) = &ignored { flat.masked_fill(ignored, 0)? } else { flat })
            }
            None => match &ignored {
                Some(ignored) => Some(ignored.logical_not()?.to(log_p.dtype())?),
                None => None,
            },
        };
        Ok(Likelihood { picked: picked.rename(Some(names))?, counted, ignored })
    }

    #[track_caller]
    fn losses(&self) -> Result<Tensor> {
        let losses = match &self.counted {
            Some(counted) => self.picked.mul(counted)?.neg()?,
            None => self.picked.neg()?,
        };
        match &self.ignored {
            Some(ignored) => losses.masked_fill(ignored, 0),
            None => Ok(losses),
        }
    }

    #[track_caller]
    fn loss(&self, reduction: Reduction) -> Result<Tensor> {
        let losses = self.losses()?;
        match (reduction, &self.counted) {
            (Reduction::Mean, Some(counted)) => losses.sum(..)?.div(&counted.sum(..)?),
            (reduction, _) => reduction.apply(losses),
        }
    }

    /// `(1 - s) loss + s / classes Σ loss of each class`.
    #[track_caller]
    fn smoothed(&self, log_p: &Tensor, dim: usize, options: &CrossEntropy) -> Result<Tensor> {
        let classes = log_p.sizes().get(dim).copied().unwrap_or(1);
        let mut all = log_p.rename(None)?;
        if let Some(weight) = &options.weight {
            all = all.mul(&along("cross_entropy", weight, log_p, dim)?)?;
        }
        let mut smooth = all.sum(if log_p.ndim() > 0 { vec![dim] } else { vec![] })?.neg()?;
        if let Some(ignored) = &self.ignored {
            smooth = smooth.masked_fill(ignored, 0)?;
        }
        let share = options.label_smoothing / classes as f64;
        let losses = self.losses()?.mul(1.0 - options.label_smoothing)?.add(&smooth.mul(share)?)?;
        match (options.reduction, &self.counted) {
            (Reduction::Mean, Some(counted)) => losses.sum(..)?.div(&counted.sum(..)?),
            (reduction, _) => reduction.apply(losses),
        }
    }
}
