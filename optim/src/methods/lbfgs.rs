//! L-BFGS, which steps along an estimate of Newton's direction, and the line search that it uses.

use super::line_search::{LinePoint, Search};
use super::*;
use namegrad_core::cpu::vectors;
use namegrad_core::options::VectorNormOptions;

options! {
    /// L-BFGS: steps along an estimate of Newton's direction from the last `history_size` differences of
    /// gradients. It is for losses that are the same function in every step, such as those of a whole data
    /// set.
    ///
    /// A step makes up to `max_iter` iterations and evaluates the loss several times, so it takes a closure,
    /// [`step_with`](crate::Optimizer::step_with). With `g` the gradient of all parameters, negated if
    /// `maximize`, an iteration is
    ///
    /// ```text
    /// y, s   = the changes of g and of the parameters in the last iteration
    /// H      = (s·y / y·y) · 1, updated with all pairs (s, y):
    ///          H ← (1 - s yᵀ / s·y) H (1 - y sᵀ / s·y) + s sᵀ / s·y
    /// d      = -H g
    /// param += t · d
    /// ```
    ///
    /// where `t` is `lr`, in the first iteration `min(1, 1 / ‖g‖₁) · lr`, or what the line search finds
    /// from there. A pair with `s·y ≤ 1e-10` is left out.
    ///
    /// All parameters are in one group: [`Builder::group`](crate::Builder::group),
    /// [`group_matching`](crate::Builder::group_matching) and [`add_group`](Self::add_group) are errors. If
    /// the closure fails, parameters and state are as before the step.
    ///
    /// A step ends where the loss is NaN or the gradient is not finite, and returns the loss at its start.
    /// The parameters go back to the last point where both were good, and the pairs are dropped. In PyTorch
    /// the parameters become NaN.
    ///
    /// # Source
    /// Nocedal, Wright, *Numerical Optimization* (2nd edition, 2006), algorithms 7.4 and 7.5, in the form of
    /// `torch.optim.LBFGS`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::optim::{Lbfgs, LineSearch, Optimizer};
    /// let x = Parameter::new(Tensor::new([-1.2, 1.0])?)?;
    /// // Rosenbrock's function, whose least value is at (1, 1)
    /// let mut loss = || {
    ///     let x = x.tensor();
    ///     let (a, b) = (x.select(0, 0)?, x.select(0, 1)?);
    ///     b.sub(a.square()?)?.square()?.mul(100.0)?.add(a.sub(1.0)?.square()?)
    /// };
    /// let wolfe = Some(LineSearch::StrongWolfe);
    /// let mut optimizer = Lbfgs::builder([x.clone()]).line_search_fn(wolfe).build()?;
    /// for _ in 0..5 {
    ///     optimizer.step_with(&mut loss)?;
    /// }
    /// assert!(x.tensor().to_vec::<f32>()?.iter().all(|x| (x - 1.0).abs() < 1e-3));
    /// # Ok::<(), Error>(())
    /// ```
    Lbfgs
    LbfgsOptions {
        /// The length of a step, in units of the direction.
        lr: f64 = 1.0 in 0.0.. => "learning rate",
        /// The most iterations in a step.
        max_iter: usize = 20,
        /// The most evaluations of the loss in a step; `None` for `max_iter * 5 / 4`.
        max_eval: Option<usize> = None,
        /// A step ends when no element of the gradient is larger.
        tolerance_grad: f64 = 1e-7 in ..,
        /// A step ends when the loss or all parameters change by less.
        tolerance_change: f64 = 1e-9 in ..,
        /// The number of differences that are kept.
        history_size: usize = 100,
        /// The search for the length of a step; `None` for `lr`.
        line_search_fn: Option<LineSearch> = None,
        /// Whether to ascend.
        maximize: bool = false,
    }

    impl Method {
        fn check_groups(groups: &[LbfgsOptions]) -> Result<()> {
            ensure(groups.len() == 1, "Lbfgs", || {
                let message = "LBFGS doesn't support per-parameter options (parameter groups)";
                (message, "Lbfgs::builder(model.parameters()).build()?, without groups")
            })
        }

        fn check_shared(shared: &BTreeMap<String, NamedTensor>, numel: usize) -> Result<()> {
            check_history(shared, numel)
        }

        fn needs_loss() -> bool { true }

        fn needs_whole() -> bool { true }

        fn step(groups: &[LbfgsOptions], step: &mut OptimizerStep<'_>) -> Result<()> {
            let options = groups[0].clone(); // there is one group
            let first = step.loss()?;
            let before = values(step)?;
            let mut run = StepRun { step, options };
            let result = run.iterate(&first);
            if result.is_err() {
                run.set(&before, None)?;
            }
            result
        }
    }
}

/// The method by which [`Lbfgs`] finds the length of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Words)]
#[serde(rename_all = "snake_case")]
pub enum LineSearch {
    /// Cubic interpolation until the loss has fallen enough and the slope is small: the strong conditions of
    /// Wolfe.
    #[word = "strong_wolfe"]
    StrongWolfe,
}

impl Choice for LineSearch {}

/// The products of the pairs, a row for each. PyTorch does not save them.
const PRODUCTS: &str = "products";

/// The tensors of a history and their sizes: the direction and the gradient of the last iteration, the length
/// of its step, the scale of the estimate, the numbers `1 / s·y` of all pairs, the pairs, and their products.
fn kept(pairs: usize, numel: usize) -> Vec<(String, Vec<usize>)> {
    let mut kept = vec![
        ("d".into(), vec![numel]),
        ("prev_flat_grad".into(), vec![numel]),
        ("t".into(), vec![]),
        ("H_diag".into(), vec![]),
        ("ro".into(), vec![pairs]),
    ];
    for pair in 0..pairs {
        kept.extend(["old_dirs", "old_stps"].map(|name| (format!("{name}.{pair}"), vec![numel])));
    }
    kept.push((PRODUCTS.into(), vec![pairs, 2 * pairs]));
    kept
}

/// Checks that a saved history is one of parameters with `numel` elements.
fn check_history(shared: &BTreeMap<String, NamedTensor>, numel: usize) -> Result<()> {
    if shared.is_empty() {
        return Ok(());
    }
    let pairs = entries(shared).iter().filter(|(name, _)| name.starts_with("old_dirs")).count();
    let wrong = |message: String| Err(Error::new(ErrorKind::Value, "Lbfgs", message));
    let kept = kept(pairs, numel);
    let is_missing = |name: &str| name != PRODUCTS && value_of(shared, name).is_none();
    if let Some((name, _)) = kept.iter().find(|(name, _)| is_missing(name)) {
        return wrong(format!("{name} is missing in the state"));
    }
    for (name, value) in entries(shared) {
        let Some((_, sizes)) = kept.iter().find(|(known, _)| known == name) else {
            return wrong(format!("{name} in the state is not of Lbfgs"));
        };
        if value.sizes() != sizes || !value.dtype().is_floating_point() {
            return wrong(format!("{name} is {value:?} in the state, must be of sizes {sizes:?}"));
        }
    }
    Ok(())
}

/// Handles of the values of all parameters.
fn values(step: &mut OptimizerStep<'_>) -> Result<Vec<NamedTensor>> {
    let mut values = Vec::new();
    step.each_value(|value| {
        values.push(value.clone());
        Ok(())
    })?;
    Ok(values)
}

/// The results of earlier iterations.
///
/// A direction is a sum of the gradient and of the vectors of all pairs, whose factors depend on products of
/// these alone. So an iteration reads the pairs twice: for their products with the gradient and the new pair,
/// and for the sum. The loops of algorithm 7.4 also read and write a vector with each of them.
///
/// # Source
/// Chen, Wang, Zhou, *Large-scale L-BFGS using MapReduce* (2014).
struct LbfgsHistory {
    /// The last direction.
    d: NamedTensor,
    /// The length of the last step, in units of `d`.
    t: f64,
    /// The gradient before that step.
    before: NamedTensor,
    /// The changes `y` of the gradient and `s` of the parameters in each iteration, the earliest first.
    pairs: Vec<NamedTensor>,
    /// For each pair, the products of its `y` with the `y` and the `s` of each pair up to this one.
    products: Vec<Vec<f64>>,
    /// `s·y / y·y` of the last pair.
    scale: f64,
}

impl LbfgsHistory {
    /// The history in checked tensors, if there is one.
    fn load(shared: &BTreeMap<String, NamedTensor>, dtype: DType) -> Result<Option<LbfgsHistory>> {
        let Some(inverses) = value_of(shared, "ro") else { return Ok(None) };
        let (count, vector) = (inverses.numel(), |name: &str| shared[name].to(dtype)?.contiguous());
        let (mut pairs, mut products) = (Vec::with_capacity(2 * count), Vec::with_capacity(count));
        let known = value_of(shared, PRODUCTS).map_or(Ok(Vec::new()), NamedTensor::to_vec::<f64>)?;
        // Products that are missing or NaN are computed again.
        let is_known = !known.is_empty() && known.iter().all(|product| product.is_finite());
        for i in 0..count {
            pairs.extend([vector(&format!("old_dirs.{i}"))?, vector(&format!("old_stps.{i}"))?]);
            products.push(match is_known {
                true => known[2 * i * count..][..2 * (i + 1)].to_vec(),
                false => products_of(&pairs, &pairs[2 * i..][..1])?,
            });
        }
        let (t, scale) = (number(&shared["t"])?, number(&shared["H_diag"])?);
        let (d, before) = (vector("d")?, vector("prev_flat_grad")?);
        Ok(Some(LbfgsHistory { d, t, before, pairs, products, scale }))
    }

    fn save(self, shared: &mut BTreeMap<String, NamedTensor>) -> Result<()> {
        let numbers = |numbers: &[f64], sizes: &[usize]| NamedTensor::from_slice(numbers, sizes);
        let (count, mut inverses, mut products) = (self.products.len(), Vec::new(), Vec::new());
        for i in 0..count {
            inverses.push(1.0 / self.sy(i, i));
            products.extend_from_slice(&self.products[i]);
            products.resize(2 * count * (i + 1), 0.0);
        }
        let mut values = vec![self.d, self.before, numbers(&[self.t], &[])?, numbers(&[self.scale], &[])?];
        values.push(numbers(&inverses, &[count])?);
        values.extend(self.pairs);
        values.push(numbers(&products, &[count, 2 * count])?);
        shared.clear();
        for ((name, _), value) in kept(count, 0).into_iter().zip(values) {
            insert(shared, name, value);
        }
        Ok(())
    }

    /// The product of the `s` of a pair and the `y` of one that is not earlier.
    fn sy(&self, s: usize, y: usize) -> f64 {
        self.products[y][2 * s + 1]
    }

    /// Adds the pair of the last iteration, whose step ended at a point with the gradient `grad`. Returns the
    /// products of `grad` with the `y` and the `s` of each pair.
    fn learn(&mut self, grad: &NamedTensor, size: usize) -> Result<Vec<f64>> {
        let (y, s) = (grad.sub(&self.before)?, self.d.mul(self.t)?);
        let old = self.pairs.len();
        self.pairs.extend([y.clone(), s]);
        let (mut of_grad, mut with_y) = (Vec::new(), Vec::new());
        for pair in products_of(&self.pairs, &[grad.clone(), y])?.chunks_exact(2) {
            of_grad.push(pair[0]);
            with_y.push(pair[1]);
        }
        let (yy, sy) = (with_y[old], with_y[old + 1]);
        if sy <= 1e-10 || sy.is_nan() {
            self.pairs.truncate(old);
            of_grad.truncate(old);
            return Ok(of_grad);
        }
        self.scale = sy / yy;
        self.products.push(with_y);
        let excess = self.products.len().saturating_sub(size.max(1));
        self.products.drain(..excess);
        self.pairs.drain(..2 * excess);
        of_grad.drain(..2 * excess);
        for products in &mut self.products {
            products.drain(..2 * excess);
        }
        Ok(of_grad)
    }

    /// Makes `-H grad` the direction, by the recursion of two loops for the factors of all vectors. `of_grad`
    /// is what [`learn`](Self::learn) returned. Returns the product of the direction with the gradient, and
    /// its largest magnitude.
    fn turn(&mut self, grad: &NamedTensor, of_grad: &[f64]) -> Result<(f64, f64)> {
        let (count, scale) = (self.products.len(), self.scale);
        let yy = |i: usize, j: usize| self.products[i.max(j)][2 * i.min(j)];
        // d = -grad - Σ alpha y, from the last pair to the first
        let mut alphas = vec![0.0; count];
        for i in (0..count).rev() {
            let later: f64 = (i + 1..count).map(|j| alphas[j] * self.sy(i, j)).sum();
            alphas[i] = 1.0 / self.sy(i, i) * (-of_grad[2 * i + 1] - later);
        }
        // d = scale d + Σ (alpha - beta) s, from the first pair to the last
        let mut factors = Vec::with_capacity(2 * count);
        for i in 0..count {
            let all: f64 = (0..count).map(|j| alphas[j] * yy(i, j)).sum();
            let earlier: f64 = (0..i).map(|j| factors[2 * j + 1] * self.sy(j, i)).sum();
            let beta = 1.0 / self.sy(i, i) * (scale * (-of_grad[2 * i] - all) + earlier);
            factors.extend([-scale * alphas[i], alphas[i] - beta]);
        }
        (self.d, self.before) = (grad.mul(-scale)?, grad.clone());
        match grad.dtype() {
            DType::F64 => combine::<f64>(&mut self.d, &factors, &self.pairs, grad),
            _ => combine::<f32>(&mut self.d, &factors, &self.pairs, grad),
        }
    }
}

/// Adds vectors to `d`, each times its factor. Returns the product with the gradient and the largest magnitude.
fn combine<T: Real + Element>(
    d: &mut NamedTensor,
    factors: &[f64],
    vectors: &[NamedTensor],
    grad: &NamedTensor,
) -> Result<(f64, f64)> {
    let mut terms = Vec::with_capacity(factors.len());
    for (factor, vector) in factors.iter().zip(vectors) {
        terms.push((*factor, vector.as_slice::<T>()?));
    }
    Ok(vectors::combine(&terms, grad.as_slice()?, d.as_mut_slice()?))
}

/// The products of each of the vectors with each in `with`.
fn products_of(vectors: &[NamedTensor], with: &[NamedTensor]) -> Result<Vec<f64>> {
    Ok(match with[0].dtype() {
        DType::F64 => vectors::products(&slices::<f64>(vectors)?, &slices(with)?),
        _ => vectors::products(&slices::<f32>(vectors)?, &slices(with)?),
    })
}

fn slices<T: Element>(tensors: &[NamedTensor]) -> Result<Vec<&[T]>> {
    let mut slices = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        slices.push(tensor.as_slice()?);
    }
    Ok(slices)
}

/// A step.
struct StepRun<'r, 'a> {
    step: &'r mut OptimizerStep<'a>,
    options: LbfgsOptions,
}

impl StepRun<'_, '_> {
    fn iterate(&mut self, first: &Tensor) -> Result<()> {
        let LbfgsOptions { lr, max_iter, max_eval, tolerance_grad, tolerance_change, history_size, .. } =
            self.options;
        let max_eval = max_eval.unwrap_or(max_iter * 5 / 4);
        let (mut loss, mut grad) = self.point(first)?;
        if grad.numel() == 0 {
            return Ok(());
        }
        let mut steepest = largest(&grad)?;
        if steepest <= tolerance_grad || !is_good(loss, steepest) {
            return Ok(());
        }
        let mut history = LbfgsHistory::load(self.step.shared(), grad.dtype())?;
        let fits = history.as_ref().is_none_or(|history| history.d.sizes() == grad.sizes());
        let message =
            "the sizes of parameters have changed since the last step; other sizes need a new optimizer";
        Error::ensure(fits, ErrorKind::Shape, "Lbfgs", || message)?;
        let mut evaluations = 1;
        for iteration in 1..=max_iter {
            let (mut now, of_grad) = match history.take() {
                None => {
                    let t = f64::min(1.0, 1.0 / number(&grad.abs()?.sum(..)?)?) * lr;
                    let (d, before, pairs, products) = (grad.clone(), grad.clone(), Vec::new(), Vec::new());
                    (LbfgsHistory { d, t, before, pairs, products, scale: 1.0 }, Vec::new())
                }
                Some(mut earlier) => {
                    let of_grad = earlier.learn(&grad, history_size)?;
                    (LbfgsHistory { t: lr, ..earlier }, of_grad)
                }
            };
            let (slope, reach) = now.turn(&grad, &of_grad)?;
            let before = loss;
            if slope > -tolerance_change {
                history = Some(now);
                break;
            }
            let x = values(self.step)?;
            if self.options.line_search_fn.is_some() {
                let search = Search {
                    start: LinePoint { t: 0.0, loss, grad, slope },
                    largest: reach,
                    tolerance_change,
                    max_evaluations: max_eval.saturating_sub(evaluations),
                };
                let (found, count) = search.run(now.t, &mut |t| {
                    self.set(&x, Some((t, &now.d)))?;
                    let (loss, grad) = self.evaluate()?;
                    let slope = number(&grad.dot(&now.d)?)?;
                    Ok(LinePoint { t, loss, grad, slope })
                })?;
                evaluations += count;
                now.t = found.t;
                self.set(&x, Some((now.t, &now.d)))?;
                (loss, grad) = (found.loss, found.grad);
            } else {
                self.set(&x, Some((now.t, &now.d)))?;
                if iteration != max_iter {
                    (loss, grad) = self.evaluate()?;
                    evaluations += 1;
                }
            }
            steepest = largest(&grad)?;
            if !is_good(loss, steepest) {
                self.step.shared().clear();
                return self.set(&x, None);
            }
            let moved = reach * now.t.abs();
            history = Some(now);
            let small = moved <= tolerance_change || (loss - before).abs() < tolerance_change;
            if evaluations >= max_eval || steepest <= tolerance_grad || small {
                break;
            }
        }
        history.map_or(Ok(()), |history| history.save(self.step.shared()))
    }

    /// The loss, as a number to be made small, and the gradient of all parameters.
    fn point(&self, loss: &Tensor) -> Result<(f64, NamedTensor)> {
        let (loss, grad) = (number(&loss.value().to(DType::F64)?)?, self.step.flat_gradient()?);
        Ok(if self.options.maximize { (-loss, grad.neg()?) } else { (loss, grad) })
    }

    fn evaluate(&mut self) -> Result<(f64, NamedTensor)> {
        let loss = self.step.evaluate()?;
        self.point(&loss)
    }

    /// Sets all parameters to `x`, or to `x + t d`.
    fn set(&mut self, x: &[NamedTensor], along: Option<(f64, &NamedTensor)>) -> Result<()> {
        let (mut x, mut offset) = (x.iter(), 0);
        self.step.each_value(|value| {
            let Some(x) = x.next() else { return Ok(()) };
            *value = x.clone();
            if let Some((t, d)) = along {
                let part = d.narrow(0, offset as isize, x.numel())?.reshape(x.sizes())?.to(x.dtype())?;
                offset += x.numel();
                *value = x.addcmul(&part, &NamedTensor::full_as("lbfgs", (), t.into(), x.dtype())?)?;
            }
            Ok(())
        })
    }
}

/// The largest magnitude.
fn largest(x: &NamedTensor) -> Result<f64> {
    number(&x.vector_norm_with(.., VectorNormOptions::new().ord(f64::INFINITY))?)
}

/// Whether a step can go on from a point with this loss and this largest magnitude of its gradient.
fn is_good(loss: f64, steepest: f64) -> bool {
    !loss.is_nan() && steepest.is_finite()
}
