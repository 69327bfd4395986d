//! Connectionist temporal classification.

use super::*;
use namegrad_core::Element;

functional! { ctc;
    /// The negative log probability of the label sequences `targets` in a model of longer sequences: the sum
    /// over all ways to repeat labels, and to put the class `blank` between them, until they fill the time
    /// steps. `log_probs` is a result of [`Tensor::log_softmax`] over `class_dim`. The mean first divides
    /// each loss by the length of its target. Targets that are too long for their inputs have the loss
    /// infinity, or 0 with `zero_infinity`.
    ///
    /// The gradient assumes that the probabilities of a step sum to 1, as in PyTorch: it is that of the
    /// logits. Unlike in PyTorch, an infinite loss has the gradient 0 instead of NaN.
    ///
    /// # Shapes
    /// - `log_probs`: `time_dim` and `class_dim`, and any dims of a batch, in any order
    /// - `targets`: integers `[batch, length]`, of which each row is used up to its target length; or a
    ///   vector of all targets one after another
    /// - `input_lengths`, `target_lengths`: integers `[batch]`, or one number without a batch
    /// - result: one number, or without reduction `[batch]`
    ///
    /// If the dims of the batch have names, they are found by name in all tensors that have these names, and
    /// other names are an error.
    ///
    /// # Source
    /// Graves et al., *Connectionist Temporal Classification* (2006), section 4.1.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// // Two steps, the blank and one label, all with a probability of 1/2.
    /// let log_probs = Tensor::zeros([("time", 2), ("N", 1), ("class", 2)])?.log_softmax("class")?;
    /// let (targets, lengths) = (Tensor::new([[1]])?, Tensor::new([1])?);
    /// let loss = F::ctc_loss(&log_probs, &targets, &Tensor::new([2])?, &lengths, "time", "class")?;
    /// // Of the four sequences of classes, "1 1", "blank 1" and "1 blank" have the label 1.
    /// assert!((loss.item::<f64>()? + 0.75f64.ln()).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for other sizes, [`ErrorKind::NameMismatch`] for other names,
    /// [`ErrorKind::Index`] for a class out of range, [`ErrorKind::Value`] for lengths that do not fit and for
    /// the mean of an empty batch, [`ErrorKind::DType`] unless `log_probs` is floating-point and the others
    /// have integers.
    ctc_loss (
        log_probs, targets, input_lengths, target_lengths;
        time_dim: Dim or 0, class_dim: Dim or -1,
        blank: usize = 0, reduction: Reduction = Reduction::Mean, zero_infinity: bool = false
    ) on floats names removes, targets: aligned, input_lengths: aligned, target_lengths: aligned layer CtcLoss => {
        check_floats(&[("log_probs", log_probs)])?;
        let (sizes, ndim) = (log_probs.sizes(), log_probs.ndim());
        (ndim >= 2 && time_dim != class_dim)
            .or_shape("log_probs must have a time dim and another class dim")?;
        let dims = others(log_probs, &[time_dim, class_dim]);
        let batch = sizes_of(log_probs, &dims);
        let names = names_at(log_probs, &dims);
        let order: Vec<usize> = [&[time_dim], &dims[..], &[class_dim]].concat();
        let x = log_probs.rename(None).to(log_probs.dtype().compute()).permute(order)?;
        let x = x.reshape([sizes[time_dim], numel(&batch), sizes[class_dim]])?;
        let mut told = names.clone();
        let mut in_batch = |name, x: &Tensor| in_batch((name, x), &names, &mut told);
        let has_rows = targets.ndim() > dims.len();
        let targets = if has_rows { in_batch("targets", targets)? } else { targets.clone() };
        let targets = match targets.sizes().strip_prefix(&batch[..]) {
            Some([width]) if dims.len() > 1 => targets.rename(None).reshape([numel(&batch), *width])?,
            _ => targets,
        };
        let lengths = [in_batch("input_lengths", input_lengths)?, in_batch("target_lengths", target_lengths)?];
        let sequences = Batch::new(&x, &targets, &lengths, blank, !batch.is_empty())?;
        let mut losses = sequences.losses(&x, zero_infinity)?;
        if reduction == Reduction::Mean {
            let lengths: Vec<f64> = crate::list(sequences.labels.iter().map(|labels| labels.len().max(1) as f64));
            losses = losses.div(tensor_of(&lengths, &[lengths.len()]).to(losses.dtype())?)?;
        }
        reduction.apply(losses.reshape(batch).rename(names)?).to(log_probs.dtype())
    }
}

/// The logarithm of 0 in sums of logarithms. Unlike infinity, it has no NaN among its differences.
const NEVER: f64 = -1e30;

/// The largest log probability whose exponential has a gradient: that of infinity would make the loss NaN, even
/// for a class that no target has.
const MOST: f64 = 80.0;

/// An input with the dims of the batch first, in order, if all of them have names that it has too. `told` has
/// the name that the inputs so far tell for each.
fn in_batch((what, x): Called<'_>, names: &[Option<Name>], told: &mut [Option<Name>]) -> Result<Tensor> {
    let found: Option<Vec<usize>> = crate::list(by_name(x, names).into_iter());
    let x = match found {
        Some(found) => x.permute([&found[..], &others(x, &found)].concat())?,
        None => x.clone(),
    };
    for (dim, told) in told.iter_mut().enumerate().take(x.ndim()) {
        check_meeting((what, &x, dim), ("log_probs", names[dim]))?;
        *told = told.or(x.name(dim));
        if x.name(dim).is_some() {
            check_meeting((what, &x, dim), ("the other inputs", *told))?;
        }
    }
    Ok(x)
}

/// The checked sequences.
struct Batch {
    steps: Vec<usize>,
    labels: Vec<Vec<i64>>,
    blank: i64,
}

impl Batch {
    fn new(
        x: &Tensor,
        targets: &Tensor,
        [steps, lengths]: &[Tensor; 2],
        blank: usize,
        is_batch: bool,
    ) -> Result<Batch> {
        let [time, batch, classes] = *x.sizes() else { unreachable!("permuted to three dims") };
        (blank < classes)
            .or_value(format_args!("blank must be one of the {classes} classes, got {blank}"))?;
        // On the meta device, sequences have all steps, and as many labels as there is place for.
        let (most, is_meta) = (targets.numel(), targets.device() == Device::Meta);
        let steps = lengths_of("input_lengths", steps, batch, [time; 2])?;
        let lengths = lengths_of("target_lengths", lengths, batch, [most, most / batch.max(1)])?;
        let label = (blank + 1) % classes;
        let (all, sum) = (integers("targets", targets, label)?, lengths.iter().sum::<usize>());
        // The distance between the first labels of two sequences, unless one follows the other.
        let width = match *targets.sizes() {
            [rows, width] if rows == batch => Some(width),
            [total] => {
                let said = if is_batch { "lengths sum to" } else { "length is" };
                (sum == total || sum < total && (!is_batch || is_meta))
                    .or_value(format_args!("the target {said} {sum}, and there are {total} targets"))?;
                None
            }
            ref sizes => {
                return Err(shape_error(format_args!(
                    "expected targets of sizes [{batch}, length] or [sum of the lengths], got {sizes:?}"
                )));
            }
        };
        let (mut labels, mut next, last) = (Vec::with_capacity(batch), 0, classes - 1);
        for (n, length) in lengths.into_iter().enumerate() {
            let (start, places) = width.map_or((next, length), |width| (n * width, width));
            (length <= places).or_value(format_args!(
                "a target length is {length}, and the targets have {places} places"
            ))?;
            next = start + length;
            let row = all[start..next].to_vec();
            if let Some(at) = row.iter().position(|class| !(0..=last as i64).contains(class)) {
                let bad = row[at];
                let message = format_args!(
                    "Target {bad}, label {at} of sequence {n}, is out of bounds for {classes} classes: they are 0 to {last}"
                );
                return Err(fault(ErrorKind::Index, message));
            }
            labels.push(row);
        }
        Ok(Batch { steps, labels, blank: blank as i64 })
    }

    /// The class of a state of sequence `n`.
    fn class(&self, n: usize, state: usize) -> i64 {
        match self.labels[n].get(state / 2) {
            Some(label) if state % 2 == 1 => *label,
            _ => self.blank,
        }
    }

    /// A tensor with `width` elements for each sequence.
    #[inline(never)]
    fn table<T: Element>(&self, width: usize, of: &dyn Fn(usize, usize) -> T) -> Result<Tensor> {
        let mut cells = Vec::with_capacity(self.steps.len() * width);
        for n in 0..self.steps.len() {
            for at in 0..width {
                cells.push(of(n, at));
            }
        }
        tensor_of(&cells, &[self.steps.len(), width])
    }

    /// The loss of each sequence of `x`, `[time, batch, class]`. State `2k + 1` of the recursion is label
    /// `k`, and the states around it are blanks; `alpha` is the log probability to be in a state after the
    /// first steps.
    fn losses(&self, x: &Tensor, zero_infinity: bool) -> Result<Tensor> {
        let (time, batch) = (x.sizes()[0], x.sizes()[1]);
        // Steps past the end do not count. They are filled, because a gradient of 0 times NaN is NaN.
        let past = self.table(time, &|n, step| step >= self.steps[n]).t().unsqueeze(2)?;
        let x =
            &if self.steps.iter().any(|steps| *steps < time) { x.masked_fill(&past, 0)? } else { x.clone() };
        let states = 2 * self.labels.iter().map(Vec::len).max().unwrap_or(0) + 1;
        let classes = self.table(states, &|n, state| self.class(n, state)).expand([time, batch, states])?;
        let emitted = x.gather(&classes, 2).clamp_min(NEVER)?; // [time, batch, state]
        // A blank between two labels can be skipped, unless they are equal.
        let skips = self.table(states, &|n, state| {
            let class = self.class(n, state);
            state > 1 && class != self.blank && class != self.class(n, state - 2)
        })?;
        let never = |width: usize| Tensor::full([batch, width], NEVER).to(x.dtype());
        // Before the first step, after which only the first label and the blank before it can be reached.
        let mut alpha =
            self.table(states, &|_, state| state == 0).choose(never(states).mul(0)?, never(states)?)?;
        for step in 0..time {
            let behind = |by: usize| {
                let by = by.min(states);
                Tensor::cat(&[&never(by)?, &alpha.narrow(1, 0, states - by)?], 1)
            };
            let arrived = alpha.logaddexp(behind(1)?).logaddexp(skips.choose(behind(2)?, NEVER)?)?;
            let moved = arrived.add(emitted.select(0, step)?)?;
            alpha = self.table(1, &|n, _| step < self.steps[n]).choose(moved, &alpha)?;
        }
        // The last state is the last label or the blank after it.
        let last = |n: usize, end: usize| (2 * self.labels[n].len()).saturating_sub(end) as i64;
        let ends = alpha.gather(self.table(2, &last)?, 1)?;
        let ends = self.table(2, &|n, end| end == 0 || !self.labels[n].is_empty()).choose(ends, NEVER)?;
        let mut losses = ends.select(1, 0).logaddexp(ends.select(1, 1)?).neg()?;
        let impossible = losses.detach().gt(-NEVER / 2.0)?;
        let followed = x.is_followed();
        if followed {
            losses = losses.add(self.normalization(x, &past)?)?;
        }
        if followed && !zero_infinity && !impossible.logical_not()?.numbers()?.is_true_everywhere()? {
            // Infinity with a gradient of NaN, as in PyTorch: -log of the square of 0, whose gradient is
            // 0 / 0.
            let infinite = impossible.choose(self.normalization(x, &past)?, 1.0).square().log().neg()?;
            return losses.masked_fill(&impossible, 0.0).add(infinite);
        }
        losses.masked_fill(&impossible, if zero_infinity { 0.0 } else { f64::INFINITY })
    }

    /// 0 for each sequence, with the gradient of the sum of all probabilities. A model whose probabilities
    /// sum to 1 by construction has no use for it, and gets the same gradient without.
    fn normalization(&self, x: &Tensor, past: &Tensor) -> Result<Tensor> {
        let p = x.clamp_max(MOST).exp()?;
        p.sub(p.detach()).masked_fill(past, 0).sum([0, 2])
    }
}

/// The integers of a tensor; on the meta device, as many of `usual`.
fn integers(name: &str, x: &Tensor, usual: usize) -> Result<Vec<i64>> {
    check_integers((name, name), x)?;
    match x.device() {
        Device::Meta => Ok(vec![usual as i64; x.numel()]),
        _ => x.to(DType::I64).to_vec(),
    }
}

/// Lengths from 0 to `most`, one for each sequence.
fn lengths_of(name: &str, lengths: &Tensor, batch: usize, [most, usual]: [usize; 2]) -> Result<Vec<usize>> {
    let numbers = integers(name, lengths, usual)?;
    let sizes = lengths.sizes();
    (numbers.len() == batch).or_shape(format_args!(
        "{name} must have one length for each of the {batch} sequences, got {sizes:?}"
    ))?;
    match numbers.iter().find(|length| !(0..=most as i64).contains(*length)) {
        Some(bad) => Err(value_error(format_args!("{name} has {bad}, and must be from 0 to {most}"))),
        None => Ok(whole(&numbers)),
    }
}
