//! Losses.

use namegrad_autograd::Tensor;
use namegrad_core::options::ClassCrossEntropyOptions;
use namegrad_core::{Argument, DType, Dim, Error, ErrorKind, NamedTensor, Result, Value, plain};
use namegrad_macros::functional;

/// How the losses of the elements are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// The mean, weighted if there are weights.
    #[default]
    Mean,
    /// The sum.
    Sum,
    /// No reduction: one loss for each element.
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

plain! { Reduction: ["mean" = Reduction::Mean, "sum" = Reduction::Sum, "none" = Reduction::None] }

/// The dim of the classes. In a call by name, its default is PyTorch's: the dim after the batch, or the only
/// one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassDim(Option<Dim>);

impl<T: Into<Dim>> From<T> for ClassDim {
    fn from(dim: T) -> ClassDim {
        ClassDim(Some(dim.into()))
    }
}

impl Argument for ClassDim {
    type Resolved = usize;
    type View<'a> = usize;
    #[track_caller]
    fn look_up(self, op: &'static str, of: &[&NamedTensor]) -> Result<usize> {
        let behind_the_batch = usize::from(of.first().is_some_and(|x| x.ndim() > 1));
        self.0.unwrap_or(behind_the_batch.into()).look_up(op, of)
    }
    fn view(resolved: &usize) -> usize {
        *resolved
    }
    fn from_value(value: &Value) -> Option<ClassDim> {
        Dim::from_value(value).map(ClassDim::from)
    }
    fn accepted() -> String {
        "a dim".into()
    }
}

functional! { loss;
    /// The mean of `(x - target)²`.
    mse_loss (x, target; reduction: Reduction = Reduction::Mean) on floats integers names "unifies names from inputs";
    /// The cross entropy of `softmax(logits)` along `class_dim` with the target, averaged. `weight` has a
    /// number for each class; targets of class `ignore_index` are ignored; `label_smoothing` is the share of
    /// the target that is spread evenly over all classes.
    ///
    /// # Shapes
    /// - `logits`: any dims that include `class_dim`
    /// - `target`: class indices (`i64`) with the dims of `logits` without `class_dim`, or probabilities of
    ///   the dims of `logits`
    /// - `weight`: `[classes]`
    /// - result: one number
    ///
    /// # Source
    /// Goodfellow, Bengio, Courville, *Deep Learning* (2016), section 6.2.2.3.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let logits = Tensor::new([[2.0, 0.0], [0.0, 2.0]])?.refine_names(["N", "class"])?;
    /// let target = Tensor::new([0, 1])?.refine_names(["N"])?;
    /// let loss = F::cross_entropy(&logits, &target, "class")?.item()?.to_f64();
    /// assert!((loss - (1.0 + (-2.0f64).exp()).ln()).abs() < 1e-6);
    /// let options = CrossEntropyOptions::new().reduction(F::Reduction::Sum);
    /// let sum = F::cross_entropy_with(&logits, &target, "class", options)?.item()?.to_f64();
    /// assert!((sum - 2.0 * loss).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`]; [`ErrorKind::Shape`] and the errors of the name
    /// rule if the target or the weight does not fit; [`ErrorKind::Index`] for a class that does not exist;
    /// [`ErrorKind::Value`] for a smoothing outside [0, 1].
    cross_entropy (
        logits, target, weight?;
        class_dim: ClassDim or ClassDim::default(),
        ignore_index: isize = -100,
        label_smoothing: f64 = 0.0,
        reduction: Reduction = Reduction::Mean
    ) on floats names "removes dimensions";
    /// `-weight[target] log p[target]`, averaged by weight. `log_probabilities` is a result of
    /// [`Tensor::log_softmax`]. The options are those of [`cross_entropy`].
    ///
    /// # Shapes
    /// As for [`cross_entropy`] with class indices.
    ///
    /// # Errors
    /// Those of [`cross_entropy`]; [`ErrorKind::DType`] unless the log probabilities are floating-point and
    /// the target holds integers.
    nll_loss (
        log_probabilities, target, weight?;
        class_dim: ClassDim or ClassDim::default(),
        ignore_index: isize = -100,
        reduction: Reduction = Reduction::Mean
    ) on floats names "removes dimensions";
}

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn mse_loss(x: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        reduction.apply(x.sub(target)?.square()?)
    }

    #[track_caller]
    pub(super) fn cross_entropy(
        logits: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        dim: usize,
        ignore_index: isize,
        label_smoothing: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        let options = CrossEntropyOptions { weight, ignore_index, label_smoothing, reduction };
        const OP: &str = "cross_entropy";
        let smoothing = options.label_smoothing;
        if !(0.0..=1.0).contains(&smoothing) {
            let message = format!("label_smoothing must be between 0.0 and 1.0. Got: {smoothing}");
            return Err(Error::new(ErrorKind::Value, OP, message));
        }
        if weight.is_none() && smoothing == 0.0 && !target.dtype().is_floating_point() {
            return unweighted(logits, target, dim, ignore_index, reduction);
        }
        let log_probabilities = logits.log_softmax(dim)?;
        if target.dtype().is_floating_point() {
            return with_probabilities(&log_probabilities, target, dim, &options);
        }
        let likelihood = Likelihood::new(OP, &log_probabilities, target, dim, &options)?;
        if smoothing == 0.0 {
            return likelihood.loss(options.reduction);
        }
        likelihood.smoothed(&log_probabilities, dim, &options)
    }

    #[track_caller]
    pub(super) fn nll_loss(
        log_probabilities: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        dim: usize,
        ignore_index: isize,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const OP: &str = "nll_loss";
        let dtype = log_probabilities.dtype();
        if !dtype.is_floating_point() {
            let message = format!("nll_loss takes log probabilities of a floating-point dtype, not {dtype}");
            return Err(Error::new(ErrorKind::DType, OP, message)
                .with_operands([log_probabilities.shape()])
                .with_repair("log_probabilities.to(DType::F32)?"));
        }
        let options = CrossEntropyOptions { weight, ignore_index, label_smoothing: 0.0, reduction };
        Likelihood::new(OP, log_probabilities, target, dim, &options)?.loss(reduction)
    }
}

/// The loss against class indices of equal weight, in one pass.
#[track_caller]
fn unweighted(
    logits: &Tensor,
    target: &Tensor,
    dim: usize,
    ignore_index: isize,
    reduction: Reduction,
) -> Result<Tensor> {
    let options = ClassCrossEntropyOptions::new().ignore_index(ignore_index);
    let losses =
        logits.class_cross_entropy_with(target, dim, options).map_err(|error| error.of("cross_entropy"))?;
    if reduction != Reduction::Mean {
        return reduction.apply(losses);
    }
    let counted = target.ne(ignore_index as i64)?.sum(..)?.item()?.to_f64();
    losses.sum(..)?.div(counted)
}

/// The loss `-Σ target log p` against probabilities.
#[track_caller]
fn with_probabilities(
    log_p: &Tensor,
    target: &Tensor,
    dim: usize,
    options: &CrossEntropyOptions<'_>,
) -> Result<Tensor> {
    const OP: &str = "cross_entropy";
    if target.sizes() != log_p.sizes() {
        let message = format!(
            "target probabilities {:?} must have the sizes of the logits {:?}",
            target.sizes(),
            log_p.sizes()
        );
        return Err(Error::new(ErrorKind::Shape, OP, message).with_operands([log_p.shape(), target.shape()]));
    }
    let classes = log_p.sizes().get(dim).copied().unwrap_or(1);
    let smoothing = options.label_smoothing;
    let target = if smoothing > 0.0 {
        target.mul(1.0 - smoothing)?.add(smoothing / classes as f64)?
    } else {
        target.clone()
    };
    let mut weighted = log_p.mul(&target)?;
    if let Some(weight) = options.weight {
        weighted = weighted.mul(&along(OP, weight, log_p, dim)?)?;
    }
    let losses = weighted.sum(if log_p.ndim() > 0 { vec![dim] } else { vec![] })?.neg()?;
    match options.reduction {
        Reduction::Mean => losses.sum(..)?.div((log_p.numel() / classes.max(1)).max(1)),
        other => other.apply(losses),
    }
}

/// A vector with a number for each class, in a shape that broadcasts along `dim` of `x`.
#[track_caller]
fn along(op: &'static str, weight: &Tensor, x: &Tensor, dim: usize) -> Result<Tensor> {
    let classes = x.sizes().get(dim).copied().unwrap_or(1);
    if weight.ndim() != 1 || weight.sizes()[0] != classes {
        let message = format!(
            "weight tensor should be defined for all {classes} classes, got sizes {:?}",
            weight.sizes()
        );
        return Err(Error::new(ErrorKind::Shape, op, message).with_operands([weight.shape(), x.shape()]));
    }
    let mut sizes = vec![1; x.ndim()];
    if x.ndim() > 0 {
        sizes[dim] = classes;
    }
    weight.rename(None)?.reshape(&sizes[..])
}

/// The log probabilities of the targets, and their weights.
struct Likelihood {
    /// The log probabilities, with the dims of the target.
    picked: Tensor,
    /// The weight of each target, 0 where it is ignored; `None` if all weights are equal.
    counted: Option<Tensor>,
    /// Where the target is ignored. Losses are filled there, not multiplied by 0, so the gradient is 0 even
    /// if all targets are ignored and the mean is NaN.
    ignored: Option<Tensor>,
}

impl Likelihood {
    #[track_caller]
    fn new(
        op: &'static str,
        log_p: &Tensor,
        target: &Tensor,
        dim: usize,
        options: &CrossEntropyOptions<'_>,
    ) -> Result<Likelihood> {
        let operands = || [log_p.shape(), target.shape()];
        if !matches!(target.dtype(), DType::I64 | DType::I32 | DType::U8) {
            let message = format!("expected class indices of an integer dtype, got {}", target.dtype());
            return Err(Error::new(ErrorKind::DType, op, message)
                .with_operands(operands())
                .with_repair("target.to(DType::I64)?"));
        }
        let classes = log_p.sizes().get(dim).copied().unwrap_or(1);
        // The logits without the class dim, whose names unify with those of the target.
        let rest = log_p.value().select(dim, 0).map_or_else(|_| log_p.detach(), Tensor::constant);
        if classes == 0 || rest.sizes() != target.sizes() {
            let message = format!("expected a target of sizes {:?}, got {:?}", rest.sizes(), target.sizes());
            return Err(Error::new(ErrorKind::Shape, op, message).with_operands(operands()));
        }
        let names = rest.value().unified_names(op, "broadcast", target.value())?;
        let target = target.rename(None)?.to(DType::I64)?;
        let ignored = target.eq(options.ignore_index as i64)?;
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
        let counted = match options.weight {
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
    fn smoothed(&self, log_p: &Tensor, dim: usize, options: &CrossEntropyOptions<'_>) -> Result<Tensor> {
        let classes = log_p.sizes().get(dim).copied().unwrap_or(1);
        let mut all = log_p.rename(None)?;
        if let Some(weight) = options.weight {
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
