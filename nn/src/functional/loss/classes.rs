//! Losses of classes.

use super::*;
use crate::functional::linear::{check_contracted, linear_with, options::LinearOptions};
use namegrad_core::options::ClassCrossEntropyOptions;

functional! { classes;
    /// The mean cross entropy of `softmax(logits)` along `class_dim` with the target. `weight` has a weight
    /// for each class, targets equal to `ignore_index` are ignored, and `label_smoothing` is the share of the
    /// target that is spread evenly over all classes.
    ///
    /// # Shapes
    /// - `logits`: any dims that include `class_dim`
    /// - `target`: class indices (integers) with the dims of `logits` except `class_dim`, or probabilities
    ///   with the dims of `logits`
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
    /// let loss = F::cross_entropy(&logits, &target, "class")?.item::<f64>()?;
    /// assert!((loss - (1.0 + (-2.0f64).exp()).ln()).abs() < 1e-6);
    /// let options = CrossEntropyOptions::new().reduction(F::Reduction::Sum);
    /// let sum = F::cross_entropy_with(&logits, &target, "class", options)?.item::<f64>()?;
    /// assert!((sum - 2.0 * loss).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`]; [`ErrorKind::Shape`] and the errors of the name
    /// rule if the target or the weight does not fit; [`ErrorKind::DType`] for classes that are not integers;
    /// [`ErrorKind::Index`] for a class that does not exist; [`ErrorKind::Value`] for a smoothing outside [0,
    /// 1] and for the mean of an empty batch.
    cross_entropy (
        logits, target, weight?;
        class_dim: ClassDim or ClassDim::default(),
        ignore_index: isize = -100,
        label_smoothing: f64 = 0.0,
        reduction: Reduction = Reduction::Mean
    ) on floats names removes, target: without class_dim, weight: along class_dim layer CrossEntropyLoss =>
        of_logits([logits, target], weight, class_dim, ignore_index, label_smoothing, reduction);
    /// The [`cross_entropy`] of logits that are a linear map of `x`: `x linear_weightᵀ + linear_bias`. The
    /// dim of the classes is the first dim of `linear_weight`.
    ///
    /// # Shapes
    /// - `x`: `[N, in]` or `[in]`; with names, any dims before `in`
    /// - `linear_weight`: `[class, in]`, or `[class, .., in]` for several losses of each `x`
    /// - `target`: class indices `[N, ..]`, or probabilities `[N, class, ..]`
    /// - `linear_bias`: the sizes of `linear_weight` without `in`
    /// - `weight`: `[class]`
    /// - result: one number
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::randn([("N", 4), ("embed", 2)])?;
    /// let weight = Tensor::randn([("class", 3), ("embed", 2)])?;
    /// let target = Tensor::new([0, 2, 1, 1])?;
    /// let loss = F::linear_cross_entropy(&x, &weight, &target)?;
    /// assert!(loss.allclose(&F::cross_entropy(&F::linear(&x, &weight)?, &target, "class")?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`cross_entropy`]; [`ErrorKind::Shape`] and [`ErrorKind::DType`] if the linear map does
    /// not fit; [`ErrorKind::DuplicateName`] if `x` and the weight share a name besides that of `in`;
    /// [`ErrorKind::Value`] for an `ignore_index` beside probabilities.
    linear_cross_entropy (
        x, linear_weight, target, linear_bias?, weight?;
        ignore_index: Option<isize> = None,
        label_smoothing: f64 = 0.0,
        reduction: Reduction = Reduction::Mean
    ) on floats names removes, linear_weight: contracted, target: without last, linear_bias: by linear_weight, weight: by linear_weight => {
        let logits = linear_logits(x, linear_weight, linear_bias)?;
        let probabilities = target.dtype().is_floating_point() && target.sizes() == logits.sizes();
        (ignore_index.is_none() || !probabilities)
            .or_value("ignore_index is for class indices, and the target has probabilities")?;
        let ignored = ignore_index.unwrap_or(-100);
        of_logits([&logits, target], weight, x.ndim() - 1, ignored, label_smoothing, reduction)
    }
    /// The negative log likelihood `-weight[target] log p[target]`, as a weighted mean. `log_probabilities`
    /// is a result of [`Tensor::log_softmax`]. The options work as in [`cross_entropy`].
    ///
    /// # Shapes
    /// As for [`cross_entropy`] with class indices.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let logits = Tensor::randn([("N", 4), ("class", 3)])?;
    /// let target = Tensor::new([0, 2, 1, 1])?;
    /// let loss = F::nll_loss(&logits.log_softmax("class")?, &target, "class")?;
    /// assert!(loss.allclose(&F::cross_entropy(&logits, &target, "class")?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`cross_entropy`]; [`ErrorKind::DType`] unless the log probabilities are floating-point
    /// and the target has integers.
    nll_loss (
        log_probabilities, target, weight?;
        class_dim: ClassDim or ClassDim::default(),
        ignore_index: isize = -100,
        reduction: Reduction = Reduction::Mean
    ) on floats names removes, target: without class_dim, weight: along class_dim layer NllLoss => {
        ensure_floats(("log_probabilities", log_probabilities), "log probabilities are floating-point, not")?;
        let log_p = &*with_classes(log_probabilities)?;
        let targets = Targets::new(log_p, target, Classes::new(log_p, weight, class_dim)?, ignore_index)?;
        targets.reduce(targets.weigh(targets.pick(&unnamed(log_p, targets.dtype)?).neg()?)?, reduction)
    }
}

/// The cross entropy of logits along a dim, for [`cross_entropy`] and [`linear_cross_entropy`].
fn of_logits(
    [logits, target]: [&Tensor; 2],
    weight: Option<&Tensor>,
    dim: usize,
    ignore_index: isize,
    label_smoothing: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    (0.0..=1.0)
        .contains(&label_smoothing)
        .or_value(format_args!("label_smoothing must be between 0 and 1, got {label_smoothing}"))?;
    ensure_floats(("logits", logits), "logits are floating-point, not")?;
    let (is_number, logits) = (logits.ndim() == 0, &*with_classes(logits)?);
    let classes = Classes::new(logits, weight, dim)?;
    if target.dtype().is_floating_point() {
        (ignore_index < 0).or_value(format_args!(
            "ignore_index is for class indices, and the target has probabilities; got {ignore_index}"
        ))?;
        let target = if is_number { &*with_classes(target)? } else { target };
        return with_probabilities(logits, target, &classes, label_smoothing, reduction);
    }
    let targets = Targets::new(logits, target, classes, ignore_index)?;
    let logits = unnamed(logits, targets.dtype)?;
    let losses = if label_smoothing == 0.0 {
        let options = ClassCrossEntropyOptions::new().ignore_index(ignore_index);
        targets.weigh(logits.class_cross_entropy_with(&targets.indices, dim, options)?)?
    } else {
        targets.smoothed(&logits, label_smoothing)?
    };
    targets.reduce(losses, reduction)
}

/// `x` without names, in the dtype to compute a result of this dtype in, because the sum over a batch may
/// overflow a half type.
pub(super) fn unnamed(x: &Tensor, dtype: DType) -> Result<Tensor> {
    x.rename(None).to(dtype.compute())
}

/// `x weightᵀ + bias`, of sizes `[N, class, ..]` for a weight `[class, .., in]`, with the names of both.
fn linear_logits(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    ensure_dims(x.ndim() > 0 && (x.ndim() <= 2 || x.has_names()), "x [N, in] or [in]", x)?;
    let (Some((wanted, classes)), Some((own, batch))) = (weight.sizes().split_last(), x.sizes().split_last())
    else {
        return Err(shape_error("expected a weight [class, in], got one number"));
    };
    (classes.len() == 1 || classes.len() > 1 && !batch.is_empty()).or_shape(format_args!(
        "expected a weight [class, in], or [class, .., in] for x [N, in], got {} dims for x of {} dims",
        weight.ndim(),
        x.ndim()
    ))?;
    check_contracted(("x", x), ("linear_weight", weight), classes.len())?;
    (own == wanted)
        .or_shape(format_args!("the last dim of the weight has {wanted} elements, and that of x {own}"))?;
    x.value().check_float("")?;
    for (name, other) in [("linear_weight", Some(weight)), ("linear_bias", bias)] {
        let (own, dtype) = (x.dtype(), other.map_or(x.dtype(), Tensor::dtype));
        ensure_dtype(own == dtype, format_args!("x is {own}, and {name} is {dtype}"), (name, own))?;
    }
    if let Some(bias) = bias {
        ensure_sizes("a bias", bias, classes)?;
        check_meeting_all(("linear_bias", bias), ("linear_weight", weight), classes.len())?;
    }
    let mut names = names_at(x, &range(0..batch.len()));
    names.extend(names_at(weight, &range(0..classes.len())));
    let (count, rows) = (numel(classes), numel(batch));
    let (x, weight) = (x.rename(None).reshape([rows, *own])?, weight.rename(None).reshape([count, *own])?);
    let bias = bias.map(|bias| bias.rename(None).reshape([count])).transpose()?;
    let options = LinearOptions { bias: bias.map(Cow::Owned) };
    let logits = linear_with(&x, &weight, options).reshape([batch, classes].concat())?;
    with_names(logits, &Names::new("", names)?)
}

/// The class dim, and the weights of the classes. The losses are computed without names, after the names of
/// the inputs were checked.
pub(super) struct Classes {
    pub(super) dim: usize,
    pub(super) count: usize,
    /// The name of the class dim: that of the logits, or of the weight.
    name: Option<Name>,
    /// The weight of each class, without names.
    weight: Option<Tensor>,
}

impl Classes {
    pub(super) fn new(logits: &Tensor, weight: Option<&Tensor>, dim: usize) -> Result<Classes> {
        let (count, name) = (logits.sizes()[dim], logits.name(dim));
        let Some(weight) = weight else { return Ok(Classes { dim, count, name, weight: None }) };
        (*weight.sizes() == [count]).or_shape(format_args!(
            "the weight must have one number for each of the {count} classes, got sizes {:?}",
            weight.sizes()
        ))?;
        check_meeting(("weight", weight, 0), ("the input", name))?;
        Ok(Classes { dim, count, name: name.or(weight.name(0)), weight: Some(weight.rename(None)?) })
    }

    /// Checks that the name of the class dim is not one of these, those of the other dims.
    fn check_others(&self, others: &Names) -> Result<()> {
        let Some(name) = self.name.filter(|name| others.position(*name).is_some()) else { return Ok(()) };
        let message = format_args!(
            "the class dim is '{name}', and so is a dim of the target that is not the class dim"
        );
        Err(fault(ErrorKind::Misaligned, message))
    }

    /// The dtype of the loss.
    fn dtype(&self, logits: &Tensor) -> DType {
        self.weight.as_ref().map_or(logits.dtype(), |weight| logits.dtype().promote(weight.dtype()))
    }

    /// One number for each class, with the other dims of size one.
    pub(super) fn along(&self, each: &Tensor, ndim: usize) -> Result<Tensor> {
        let mut sizes = vec![1; ndim];
        sizes[self.dim] = self.count;
        each.reshape(sizes)
    }

    /// `x` times the weight of its class.
    pub(super) fn weigh(&self, x: Tensor) -> Result<Tensor> {
        let Some(weight) = &self.weight else { return Ok(x) };
        x.mul(&self.along(&weight.to(x.dtype())?, x.ndim())?)
    }
}

/// The error for a floating-point target that does not have the sizes of the logits: either probabilities
/// with other sizes, or classes that are not integers.
#[cold]
fn float_target(logits: &Tensor, target: &Tensor, classes: &Classes) -> Error {
    let (sizes, dtype, want) = (target.sizes(), target.dtype(), without(logits.sizes(), classes.dim));
    let message = format!(
        "the target is {dtype} of sizes {sizes:?}: class indices must be integers, of sizes {want:?}; probabilities \
         must have the sizes of the logits, {:?}",
        logits.sizes()
    );
    let is_whole = || target.detach().eq(&target.detach().trunc()?)?.all(..)?.item::<bool>();
    match sizes == want {
        true if is_whole().unwrap_or(false) => wrong_dtype(message, ("target", DType::I64)),
        true => fault(ErrorKind::DType, message),
        false => shape_error(message),
    }
}

/// The loss `-Σ target log p` for target probabilities.
fn with_probabilities(
    logits: &Tensor,
    target: &Tensor,
    classes: &Classes,
    smoothing: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    check_order(("logits", logits), ("target", target))?;
    if target.sizes() != logits.sizes() {
        return Err(float_target(logits, target, classes));
    }
    let count = logits.numel() / classes.count.max(1);
    reduction.check_not_empty(count)?;
    let rest = names_without(("logits", logits), target, classes.dim)?;
    classes.check_others(&rest)?;
    if classes.name.is_some() && target.name(classes.dim).is_some() {
        check_meeting(("target", target, classes.dim), ("the weight", classes.name))?;
    }
    let dtype = classes.dtype(logits).promote(target.dtype());
    let mut target = unnamed(target, dtype)?;
    if smoothing > 0.0 {
        target = target.mul(1.0 - smoothing).add(smoothing / classes.count as f64)?;
    }
    let log_p = unnamed(logits, dtype).log_softmax(classes.dim)?;
    let losses = classes.weigh(log_p.mul(&target)?)?.sum(classes.dim).neg()?;
    reduction.apply_by(losses.rename(Some(rest))?, &|sum| sum.div(count)).to(dtype)
}

/// Checked class indices.
pub(super) struct Targets {
    pub(super) classes: Classes,
    /// The classes in `i64`, without names.
    pub(super) indices: Tensor,
    /// The mask of ignored targets. Losses are overwritten with 0 there, not multiplied by 0, so the gradient
    /// is 0 even if all targets are ignored and the mean is NaN.
    ignored: Option<Tensor>,
    /// The number of targets that are not ignored.
    counted: usize,
    /// The weight of each target, 0 where it is ignored; `None` if all weights are equal.
    pub(super) weights: Option<Tensor>,
    /// The names of the losses.
    pub(super) names: Names,
    /// The dtype of the loss.
    pub(super) dtype: DType,
}

impl Targets {
    pub(super) fn new(logits: &Tensor, target: &Tensor, classes: Classes, ignore: isize) -> Result<Targets> {
        check_integers(("class indices", "target"), target)?;
        (classes.count != 0).or_shape("expected at least one class, but the class dim has size 0")?;
        // The logits without the class dim, whose names unify with those of the target.
        let rest = logits.detach().select(classes.dim, 0)?;
        check_order(("logits", &rest), ("target", target))?;
        if rest.sizes() != target.sizes() {
            return Err(other_sizes(logits, target, rest.sizes(), logits.name(classes.dim)));
        }
        let names = check_names(("logits", &rest), ("target", target))?;
        classes.check_others(&names)?;
        let indices = target.rename(None).to(DType::I64)?;
        let ignore = ignore as i64;
        let all = indices.all_slices().numbers()?.elements_to_check::<i64>()?;
        // The number of classes that count is one for all slices of a map only if none is ignored.
        let all = if all.contains(&ignore) { indices.to_vec()? } else { all };
        let mut counted = indices.numel();
        for (at, class) in all.into_iter().enumerate() {
            if class == ignore {
                counted -= 1;
            } else if class < 0 || class as u64 >= classes.count as u64 {
                let repair = (class < 0).then(|| format!(
                    ".ignore_index({class}) in the options of the `_with` form, if it marks what is not to be counted"
                ));
                return Err(repaired(no_class(target, at, class, classes.count), repair));
            }
        }
        let ignored = if counted < indices.numel() { Some(indices.eq(ignore)?) } else { None };
        let dtype = classes.dtype(logits);
        let mut targets = Targets { classes, indices, ignored, counted, weights: None, names, dtype };
        if let Some(weight) = &targets.classes.weight {
            let each = weight.to(dtype.compute()).index_select(targets.existing().reshape([-1])?, 0)?;
            targets.weights = Some(targets.fill(each.reshape(targets.indices.sizes())?)?);
        }
        Ok(targets)
    }

    /// The classes, with 0 where the target is ignored.
    fn existing(&self) -> Result<Tensor> {
        self.fill(self.indices.clone())
    }

    /// The element of each target along the class dim.
    pub(super) fn pick(&self, x: &Tensor) -> Result<Tensor> {
        let dim = self.classes.dim;
        x.gather(self.existing().unsqueeze(dim)?, dim).select(dim, 0)
    }

    /// The losses multiplied by the weights of their targets; 0 where the target is ignored.
    pub(super) fn weigh(&self, losses: Tensor) -> Result<Tensor> {
        let Some(weights) = &self.weights else { return self.fill(losses) };
        self.fill(losses.mul(weights)?)
    }

    /// The losses, with 0 where the target is ignored.
    fn fill(&self, losses: Tensor) -> Result<Tensor> {
        let Some(ignored) = &self.ignored else { return Ok(losses) };
        losses.masked_fill(ignored, 0)
    }

    /// `(1 - s) loss + s / classes Σ loss of each class`.
    fn smoothed(&self, logits: &Tensor, smoothing: f64) -> Result<Tensor> {
        let dim = self.classes.dim;
        // The gradient of a NaN is NaN even if the gradient of its loss is 0, so ignored logits are
        // overwritten too.
        let logits = match &self.ignored {
            Some(ignored) => &logits.masked_fill(ignored.unsqueeze(dim)?, 0)?,
            None => logits,
        };
        let log_p = logits.log_softmax(dim)?;
        let own = self.weigh(self.pick(&log_p)?.neg()?)?;
        let all = self.classes.weigh(log_p)?.sum(dim).neg()?;
        self.fill(own.mul(1.0 - smoothing).add(&all.mul(smoothing / self.classes.count as f64)?)?)
    }

    fn reduce(&self, losses: Tensor, reduction: Reduction) -> Result<Tensor> {
        let mean = |sum: &Tensor| match &self.weights {
            Some(weights) => sum.div(&weights.sum(..)?),
            None => sum.div(self.counted as f64),
        };
        reduction.apply_by(losses.rename(Some(self.names.clone()))?, &mean).to(self.dtype)
    }
}

/// The error for class indices that do not have the sizes of the logits without the class dim, `rest`.
#[cold]
fn other_sizes(logits: &Tensor, target: &Tensor, rest: &[usize], class: Option<Name>) -> Error {
    let (sizes, class) = (target.sizes(), class.map_or(String::new(), |class| format!(" '{class}'")));
    let message = format_args!(
        "expected class indices of sizes {rest:?}, those of the logits without the class dim{class}, got {sizes:?}"
    );
    let of_classes = (0..logits.ndim()).find(|dim| without(logits.sizes(), *dim) == sizes);
    let repair = match (squeezed(target, rest, "target"), of_classes) {
        (Some(squeezed), _) => squeezed,
        (None, Some(dim)) => format!(
            "{} as the dim of the classes, which leaves the sizes of the target",
            in_rust(logits.value(), dim)
        ),
        (None, None) if sizes == logits.sizes() => {
            format!("target.to(DType::{:?})?, if these are probabilities", logits.dtype())
        }
        (None, None) => String::new(),
    };
    shape_error(message).with_repair(repair)
}
