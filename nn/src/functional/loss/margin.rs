//! Losses with a margin: a score must be ahead of another, or of 0, by some distance.

use super::classes::{Classes, Targets};
use super::{
    ClassDim, Reduction, check_floats, check_names, check_order, check_pair, check_same, position, weighted,
};
use namegrad_autograd::Tensor;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Names, Result};
use namegrad_macros::functional;

functional! { margin;
    /// The mean of `max(0, margin - target (input1 - input2))`: `input1` should be larger where the target is
    /// 1, and `input2` where it is -1.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let (a, b) = (Tensor::new([1.0, 2.0])?, Tensor::new([3.0, 0.0])?);
    /// let loss = F::margin_ranking_loss(&a, &b, &Tensor::new([1.0, 1.0])?)?;
    /// assert_eq!(loss.item::<f64>()?, 1.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the numbers of dims differ, [`ErrorKind::Value`] for the mean of an empty
    /// batch, and the errors of the name rule.
    margin_ranking_loss (
        input1, input2, target; margin: f64 = 0.0, reduction: Reduction = Reduction::Mean
    ) on floats integers names "unifies names from inputs" layer MarginRankingLoss;
    /// The mean of `x` where the target is 1, and `max(0, margin - x)` where it is -1; `x` is a distance. For
    /// other targets it is the sum of both, as in PyTorch.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let (x, target) = (Tensor::new([0.5, 0.25])?, Tensor::new([1.0, -1.0])?);
    /// assert_eq!(F::hinge_embedding_loss(&x, &target)?.item::<f64>()?, 0.625);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes differ and neither tensor broadcasts to the other,
    /// [`ErrorKind::Value`] for the mean of an empty batch, and the errors of the name rule.
    hinge_embedding_loss (x, target; margin: f64 = 1.0, reduction: Reduction = Reduction::Mean) on floats integers
        names "unifies names from inputs" layer HingeEmbeddingLoss;
    /// The mean of `ln(1 + e^(-target x))`, with targets 1 and -1.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let loss = F::soft_margin_loss(&Tensor::new([0.0])?, &Tensor::new([1.0])?)?;
    /// assert!((loss.item::<f64>()? - 2f64.ln()).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`hinge_embedding_loss`].
    soft_margin_loss (x, target; reduction: Reduction = Reduction::Mean) on floats integers
        names "unifies names from inputs" layer SoftMarginLoss;
    /// For each class the binary cross entropy of `sigmoid(x)` with a target of 0 or 1; the mean over
    /// `class_dim`, then over the batch. `weight` has a weight for each class.
    ///
    /// # Shapes
    /// - `x`, `target`: any dims that include `class_dim`
    /// - `weight`: `[classes]`, or several dims that broadcast to those of `x`
    /// - result: one number, or without reduction the dims of `x` without `class_dim`
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[0.5, -1.0, 2.0]])?.refine_names(["N", "class"])?;
    /// let target = Tensor::new([[1.0, 0.0, 1.0]])?;
    /// let loss = F::multilabel_soft_margin_loss(&x, &target, "class")?;
    /// assert!(loss.allclose(&F::binary_cross_entropy_with_logits(&x, &target)?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for other sizes, [`ErrorKind::DType`] unless floating-point, [`ErrorKind::Value`]
    /// for the mean of an empty batch, and the errors of the name rule.
    multilabel_soft_margin_loss (
        x, target, weight?; class_dim: Dim or -1, reduction: Reduction = Reduction::Mean
    ) on floats names "removes dimensions" layer MultilabelSoftMarginLoss;
    /// For each target class `t` and each class `i` that is not a target, `max(0, 1 - (x[t] - x[i]))`; the
    /// sum of these, divided by the number of classes. The targets are the classes along `class_dim` before
    /// the first -1.
    ///
    /// # Shapes
    /// - `x`: any dims that include `class_dim`
    /// - `target`: integers, with the dims of `x`
    /// - result: one number, or without reduction the dims of `x` without `class_dim`
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([0.1, 0.2, 0.4, 0.8])?;
    /// let target = Tensor::new([3, 0, -1, 1])?; // the classes 3 and 0
    /// let loss = F::multilabel_margin_loss(&x, &target, 0)?.item::<f64>()?;
    /// let terms = [1.0 - 0.1 + 0.2, 1.0 - 0.1 + 0.4, 1.0 - 0.8 + 0.2, 1.0 - 0.8 + 0.4];
    /// assert!((loss - 0.25 * terms.iter().sum::<f64>()).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for a class that is neither -1 nor a class of `x`, [`ErrorKind::DType`] unless
    /// `x` is floating-point and the target has integers, [`ErrorKind::Shape`] for other sizes,
    /// [`ErrorKind::Value`] for the mean of an empty batch, and the errors of the name rule.
    multilabel_margin_loss (
        x, target; class_dim: ClassDim or ClassDim::default(), reduction: Reduction = Reduction::Mean
    ) on floats names "removes dimensions" layer MultilabelMarginLoss;
    /// The sum of `max(0, margin - x[t] + x[i])^p` over all classes `i` except the target class `t`, divided
    /// by the number of classes; the mean over the batch. `p` is 1 or 2, and `weight` has a weight for each
    /// target class.
    ///
    /// # Shapes
    /// - `x`: any dims that include `class_dim`
    /// - `target`: integers, with the dims of `x` except `class_dim`
    /// - `weight`: `[classes]`
    /// - result: one number, or without reduction the dims of `target`
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[0.1, 0.2, 0.4, 0.8]])?.refine_names(["N", "class"])?;
    /// let loss = F::multi_margin_loss(&x, &Tensor::new([3])?, "class")?.item::<f64>()?;
    /// assert!((loss - 0.25 * ((1.0 - 0.8 + 0.1) + (1.0 - 0.8 + 0.2) + (1.0 - 0.8 + 0.4))).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for a class out of range, [`ErrorKind::Value`] for another `p` and for the mean
    /// of an empty batch, [`ErrorKind::DType`] unless `x` is floating-point and the target has integers,
    /// [`ErrorKind::Shape`] for other sizes, and the errors of the name rule.
    multi_margin_loss (
        x, target, weight?;
        class_dim: ClassDim or ClassDim::default(),
        p: usize = 1, margin: f64 = 1.0, reduction: Reduction = Reduction::Mean
    ) on floats names "removes dimensions" layer MultiMarginLoss;
}

mod kernels {
    use super::*;

    #[track_caller]
    pub(super) fn margin_ranking_loss(
        input1: &Tensor,
        input2: &Tensor,
        target: &Tensor,
        margin: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const OP: &str = "margin_ranking_loss";
        let ndims = [input1, input2, target].map(Tensor::ndim);
        Error::ensure(ndims.iter().all(|ndim| *ndim == ndims[0]), ErrorKind::Shape, OP, || {
            format!("all tensors must have the same number of dims, got {ndims:?}")
        })?;
        check_pair(OP, input1, input2)?;
        let losses = target.neg()?.mul(input1.sub(input2)?)?.add(margin)?.relu()?;
        reduction.apply(OP, losses)
    }

    #[track_caller]
    pub(super) fn hinge_embedding_loss(
        x: &Tensor,
        target: &Tensor,
        margin: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const OP: &str = "hinge_embedding_loss";
        check_pair(OP, x, target)?;
        let apart = x.neg()?.add(margin)?.relu()?;
        let losses = target.ne(1)?.choose(apart, 0)?.add(target.ne(-1)?.choose(x, 0)?)?;
        reduction.apply(OP, losses)
    }

    #[track_caller]
    pub(super) fn soft_margin_loss(x: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        const OP: &str = "soft_margin_loss";
        check_pair(OP, x, target)?;
        reduction.apply(OP, target.neg()?.mul(x)?.exp()?.log1p()?)
    }

    #[track_caller]
    pub(super) fn multilabel_soft_margin_loss(
        x: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        dim: usize,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const OP: &str = "multilabel_soft_margin_loss";
        check_floats(OP, &[("x", x)])?;
        check_same(OP, ("x", x), ("target", target))?;
        // PyTorch takes any weight that broadcasts.
        let (of_class, any) =
            if weight.is_some_and(|weight| weight.ndim() != 1) { (None, weight) } else { (weight, None) };
        let classes = Classes::new(OP, x, of_class, dim)?;
        let rest = names_without(OP, x, target, classes.dim)?;
        let (x, target) = (x.rename(None)?, target.rename(None)?);
        let losses =
            target.mul(x.logsigmoid()?)?.add(target.neg()?.add(1)?.mul(x.neg()?.logsigmoid()?)?)?.neg()?;
        let any = any.map(|weight| weight.rename(None)).transpose()?;
        let losses = classes.weigh(weighted(OP, losses, any.as_ref())?)?;
        reduction.apply(OP, classes.sum(&losses)?.div(classes.count)?.rename(Some(rest))?)
    }

    #[track_caller]
    pub(super) fn multilabel_margin_loss(
        x: &Tensor,
        target: &Tensor,
        dim: usize,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const OP: &str = "multilabel_margin_loss";
        check_floats(OP, &[("x", x)])?;
        if !matches!(target.dtype(), DType::I64 | DType::I32 | DType::U8) {
            let message = format!("expected class indices of an integer dtype, got {}", target.dtype());
            return Err(Error::new(ErrorKind::DType, OP, message)
                .with_operands([x.shape(), target.shape()])
                .with_repair("target.to(DType::I64)?"));
        }
        check_same(OP, ("x", x), ("target", target))?;
        let classes = Classes::new(OP, x, None, dim)?;
        let rest = names_without(OP, x, target, classes.dim)?;
        let sizes = classes.rest(x.sizes());
        let rows = |x: &Tensor| x.rename(None)?.movedim(dim, -1)?.reshape([-1, classes.count as isize]);
        let (x, labels) = match classes.dim {
            Some(_) => (rows(x)?, Labels::new(OP, target, &rows(target)?, classes.count)?),
            None => (x.reshape([1, 1])?, Labels::new(OP, target, &target.reshape([1, 1])?, 1)?),
        };
        let of_label = x.gather(&labels.classes, 1)?;
        let behind = x.unsqueeze(1)?.sub(of_label.unsqueeze(2)?)?.add(1)?.relu()?; // [row, label, class]
        let counted = labels.exist.unsqueeze(2)?.logical_and(labels.others.unsqueeze(1)?)?;
        let losses = behind.masked_fill(&counted.logical_not()?, 0)?.sum([1, 2])?.div(classes.count)?;
        reduction.apply(OP, losses.reshape(&sizes[..])?.rename(Some(rest))?)
    }

    #[track_caller]
    pub(super) fn multi_margin_loss(
        x: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        dim: usize,
        p: usize,
        margin: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const OP: &str = "multi_margin_loss";
        Error::ensure(p == 1 || p == 2, ErrorKind::Value, OP, || {
            format!("only p == 1 and p == 2 supported, got {p}")
        })?;
        check_floats(OP, &[("x", x)])?;
        let classes = Classes::new(OP, x, weight, dim)?;
        // PyTorch takes a batch of one target for scores without a batch.
        let squeezed = (x.ndim() == 1 && target.sizes() == [1]).then(|| target.squeeze(0)).transpose()?;
        let target = squeezed.as_ref().unwrap_or(target);
        let targets = Targets::new(OP, x, target, &classes, isize::MIN)?;
        let x = x.rename(None)?.to(targets.compute())?;
        let (own, class) = match classes.dim {
            Some(dim) => (targets.pick(&x, &classes)?.unsqueeze(dim)?, targets.indices.unsqueeze(dim)?),
            None => (x.clone(), targets.indices.clone()),
        };
        let behind = x.sub(own)?.add(margin)?.relu()?;
        let behind = if p == 2 { behind.square()? } else { behind };
        let is_own = numbered(&classes, x.ndim())?.eq(&class)?;
        let losses = classes.sum(&behind.masked_fill(&is_own, 0)?)?.div(classes.count)?;
        let losses = targets.weigh(losses)?.rename(Some(targets.names.clone()))?;
        let loss = reduction.apply(OP, losses)?.to(targets.dtype)?;
        if squeezed.is_some() && reduction == Reduction::None { loss.unsqueeze(0) } else { Ok(loss) }
    }
}

/// The unified names of both tensors, without the class dim.
#[track_caller]
fn names_without(op: &'static str, x: &Tensor, target: &Tensor, dim: Option<usize>) -> Result<Names> {
    check_order(op, ("x", x.value()), target)?;
    let names = check_names(op, x.value(), target, &[x, target])?;
    let rest = names.iter(x.ndim()).enumerate().filter(|(own, _)| Some(*own) != dim);
    Names::new(op, rest.map(|(_, name)| name))
}

/// The numbers of the classes along the class dim.
#[track_caller]
fn numbered(classes: &Classes, ndim: usize) -> Result<Tensor> {
    let mut sizes = vec![1; ndim];
    if let Some(dim) = classes.dim {
        sizes[dim] = classes.count;
    }
    Ok(Tensor::constant(NamedTensor::arange(0, classes.count as i64, 1, DType::I64)?.reshape(sizes)?))
}

/// The labels of [`multilabel_margin_loss`], in rows with a place for each class.
struct Labels {
    /// The classes, 0 where there is no label.
    classes: Tensor,
    /// Whether a place has a label.
    exist: Tensor,
    /// Whether a class is not among the labels.
    others: Tensor,
}

impl Labels {
    #[track_caller]
    fn new(op: &'static str, target: &Tensor, rows: &Tensor, count: usize) -> Result<Labels> {
        let sizes = rows.sizes().to_vec();
        let mut classes = target_rows(rows)?;
        let (mut exist, mut others) = (vec![false; classes.len()], vec![true; classes.len()]);
        for (at, row) in classes.chunks_mut(count.max(1)).enumerate() {
            if let Some(bad) = row.iter().find(|class| **class < -1 || **class >= count as i64) {
                let all = target.to(DType::I64)?.to_vec::<i64>()?;
                let place = all.iter().position(|class| class == bad).unwrap_or(0);
                let message = format!(
                    "Target {bad}{} is out of bounds for {count} classes: they are 0 to {}, and -1 ends the labels",
                    position(target, place),
                    count.saturating_sub(1)
                );
                return Err(Error::new(ErrorKind::Index, op, message).with_operands([target.shape()]));
            }
            let labels = row.iter().position(|class| *class < 0).unwrap_or(row.len());
            for place in 0..labels {
                exist[at * count + place] = true;
                others[at * count + row[place] as usize] = false;
            }
            row[labels..].fill(0);
        }
        Ok(Labels {
            classes: Tensor::from_slice(&classes, &sizes[..])?,
            exist: Tensor::from_slice(&exist, &sizes[..])?,
            others: Tensor::from_slice(&others, &sizes[..])?,
        })
    }
}

#[track_caller]
fn target_rows(rows: &Tensor) -> Result<Vec<i64>> {
    rows.to(DType::I64)?.to_vec::<i64>()
}
