//! Losses with a margin: a score must be ahead of another, or of 0, by some distance.

use super::classes::{Classes, Targets, unnamed};
use super::*;

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
    ) on floats integers names unifies layer MarginRankingLoss => {
        let ndims = [input1.ndim(), input2.ndim(), target.ndim()];
        (ndims == [ndims[0]; 3]).or_shape(format_args!("all tensors must have the same number of dims, got {ndims:?}"))?;
        check_both(("input1", input1), ("input2", input2))?;
        reduction.apply(target.neg().mul(input1.sub(input2)?).add(margin).relu()?)
    }
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
        names unifies layer HingeEmbeddingLoss => {
        check_pair(x, target)?;
        let apart = x.neg().add(margin).relu()?;
        reduction.apply(target.ne(1).choose(apart, 0).add(target.ne(-1).choose(x, 0)?)?)
    }
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
        names unifies layer SoftMarginLoss => {
        check_pair(x, target)?;
        // Where the loss is 0, so is its gradient, even by a factor of infinity.
        let far = target.detach().mul(x.detach()).gt(FAR)?;
        let product = far.choose(1, target).mul(far.choose(1, x)?)?;
        reduction.apply(product.neg().exp().log1p().masked_fill(&far, 0)?)
    }
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
    ) on floats names removes, target: unified, weight: unified layer MultilabelSoftMarginLoss => {
        check_floats(&[("x", x)])?;
        check_same(("x", x), ("target", target))?;
        let (x, target) = (&*with_classes(x)?, &*with_classes(target)?);
        // PyTorch takes any weight that broadcasts.
        let of_class = weight.filter(|weight| weight.ndim() == 1);
        let any = weight.filter(|weight| weight.ndim() != 1);
        let rest = names_without(("x", x), target, class_dim)?;
        // The weight meets the dims that either names.
        let named = x.rename(Some(check_names(("x", x), ("target", target))?))?;
        let classes = Classes::new(&named, of_class, class_dim)?;
        let (x, target) = (x.rename(None)?, target.rename(None)?);
        let others = target.neg().add(1).mul(x.neg().logsigmoid()?)?;
        let losses = target.mul(x.logsigmoid()?).add(others).neg()?;
        let any = any.map(|weight| unnamed_weight(&named, weight)).transpose()?;
        let losses = classes.weigh(weighted(losses, any.as_ref())?)?;
        reduction.apply(losses.sum(class_dim).div(classes.count).rename(Some(rest))?)
    }
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
    ) on floats names removes, target: matched layer MultilabelMarginLoss => {
        check_floats(&[("x", x)])?;
        check_integers(("class indices", "target"), target)?;
        check_same(("x", x), ("target", target))?;
        let (x, target) = (&*with_classes(x)?, &*with_classes(target)?);
        let rest = names_without(("x", x), target, class_dim)?;
        let (sizes, count) = (without(x.sizes(), class_dim), x.sizes()[class_dim]);
        let rows = |x: &Tensor| x.rename(None).movedim(class_dim, -1).reshape([-1, count as isize]);
        let x = rows(x)?;
        let [labels, exist, others] = labels(target, &rows(target)?, count)?;
        let of_label = x.gather(&labels, 1)?;
        let behind = x.unsqueeze(1).sub(of_label.unsqueeze(2)?).add(1).relu()?; // [row, label, class]
        let counted = exist.unsqueeze(2).logical_and(others.unsqueeze(1)?)?;
        let losses = behind.masked_fill(&counted.logical_not()?, 0).sum([1, 2]).div(count)?;
        reduction.apply(losses.reshape(sizes).rename(Some(rest))?)
    }
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
    ) on floats names removes, target: without class_dim, weight: along class_dim layer MultiMarginLoss => {
        (p == 1 || p == 2).or_value(format_args!("only p == 1 and p == 2 supported, got {p}"))?;
        check_floats(&[("x", x)])?;
        // PyTorch takes a batch of one target for scores without a batch.
        let squeezed = (x.ndim() == 1 && target.sizes() == [1]).then(|| target.squeeze(0)).transpose()?;
        let x = &*with_classes(x)?;
        let classes = Classes::new(x, weight, class_dim)?;
        let targets = Targets::new(x, squeezed.as_ref().unwrap_or(target), classes, isize::MIN)?;
        let (x, classes) = (unnamed(x, targets.dtype)?, &targets.classes);
        let behind = x.sub(targets.pick(&x).unsqueeze(class_dim)?).add(margin).relu()?;
        let behind = if p == 2 { behind.square()? } else { behind };
        let numbers = Tensor::constant(NamedTensor::arange(0, classes.count as i64, 1, DType::I64)?);
        let is_own = classes.along(&numbers, x.ndim()).eq(targets.indices.unsqueeze(class_dim)?)?;
        let losses = behind.masked_fill(&is_own, 0).sum(class_dim).div(classes.count)?;
        let losses = targets.weigh(losses).rename(Some(targets.names.clone()))?;
        let loss = reduction.apply(losses).to(targets.dtype)?;
        if squeezed.is_some() && reduction == Reduction::None { loss.unsqueeze(0) } else { Ok(loss) }
    }
}

/// A weight that broadcasts to `x`, without its names, which must be those of `x` in the same places.
fn unnamed_weight(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    check_order(("x", x), ("weight", weight))?;
    for (own, wanted) in (0..weight.ndim()).rev().zip((0..x.ndim()).rev()) {
        check_meeting(("weight", weight, own), ("x", x.name(wanted)))?;
    }
    weight.rename(None)
}

/// A product of scores and targets from which on `e^-product` is 0 in all dtypes.
const FAR: f64 = 800.0;

/// The labels of [`multilabel_margin_loss`], in rows with a place for each label of the longest list: the
/// classes, 0 where there is no label, and whether a place has one; and for each class, whether it is not a
/// label.
fn labels(target: &Tensor, rows: &Tensor, count: usize) -> Result<[Tensor; 3]> {
    let all = target.to(DType::I64)?.numbers()?.elements_to_check::<i64>()?;
    if let Some(at) = all.iter().position(|class| !(-1..count as i64).contains(class)) {
        let error = no_class(target, at, all[at], count);
        let message = format!("{}, and -1 ends the labels", error.message());
        return Err(error.with_message(message));
    }
    let rows = rows.to(DType::I64)?;
    let exist = rows.lt(0).cumsum(1).eq(0)?;
    let classes = rows.masked_fill(&exist.logical_not()?, 0)?;
    let others = rows.zeros_like().scatter_add(&classes, exist.to(DType::I64)?, 1).eq(0)?;
    let longest = match target.device() {
        Device::Meta => exist.sizes()[1],
        _ => exist.any(0).sum(..).item::<i64>()? as usize,
    };
    Ok([classes.narrow(1, 0, longest)?, exist.narrow(1, 0, longest)?, others])
}
