//! Random classes from logits.

use super::*;
use namegrad_autograd::options::{MultinomialOptions, SortOptions};

functional! { sample;
    /// A random class along `dim` for each position of the other dims, drawn from `softmax(logits /
    /// temperature)`, in `i64`: the next token of a language model.
    ///
    /// - A `temperature` below 1 prefers likely classes, and one above 1 makes all more alike. At 0, the result
    ///   is the most likely class, without chance.
    /// - With `top_k`, only the `k` most likely classes are drawn.
    /// - With `top_p`, only the most likely classes are drawn whose probabilities add up to `top_p`, after
    ///   `top_k`: as few as reach it, and at least one.
    /// - A class whose logit is -∞ is never drawn.
    ///
    /// The result depends only on the seed, not on the number of threads. No gradient flows through it;
    /// [`gumbel_softmax`] has one.
    ///
    /// # Shapes
    /// - `logits`: any dims that include `dim`
    /// - result: the dims of `logits` without `dim`
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a logit is NaN or +∞, if all logits of a draw are -∞ or there are none, if
    /// the temperature is negative or not finite, if `top_k` is 0 or if `top_p` is not in [0, 1];
    /// [`ErrorKind::DType`] unless floating-point.
    ///
    /// # Source
    /// `top_k`: Fan, Lewis, Dauphin, *Hierarchical Neural Story Generation* (2018); `top_p`: Holtzman et al.,
    /// *The Curious Case of Neural Text Degeneration* (2020), section 3.1.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let logits = Tensor::new([[0.0, 3.0, 2.0], [9.0, -1.0, 0.0]])?.refine_names(["N", "token"])?;
    /// let next = F::sample_with(&logits, "token", SampleOptions::new().temperature(0.8).top_k(2).top_p(0.9))?;
    /// assert_eq!(next.shape().to_string(), "[N=2]");
    /// let likely = F::sample_with(&logits, "token", SampleOptions::new().temperature(0.0))?;
    /// assert_eq!(likely.to_vec::<i64>()?, [1, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    sample (logits; dim: Dim or -1, temperature: f64 = 1.0, top_k: Option<usize> = None, top_p: f64 = 1.0) on floats
        names removes constant => {
        logits.value().check_float(op)?;
        (logits.ndim() > 0).or_shape("a 0-d tensor has no classes")?;
        (temperature >= 0.0 && temperature.is_finite())
            .or_value(format_args!("temperature must be finite and not negative, got {temperature}"))?;
        (top_k != Some(0)).or_value("top_k must be at least 1, got 0")?;
        (0.0..=1.0).contains(&top_p).or_value(format_args!("top_p must be between 0 and 1, got {top_p}"))?;
        let names = Names::new(op, names_at(logits, &others(logits, &[dim])))?;
        let x = logits.detach().rename(None).to(DType::F64).movedim(dim, -1)?; // [.., classes]
        if x.numel() == 0 {
            let others = &x.sizes()[..x.ndim() - 1];
            is_in(others, 0).or_value("there are no classes to draw from")?;
            return with_names(Tensor::zeros(others).to(DType::I64)?, &names);
        }
        let largest = x.amax(keep(-1))?; // NaN if any is
        for largest in largest.numbers()?.elements_to_check::<f64>()? {
            (!largest.is_nan()).or_value("the logits have NaN")?;
            (largest < f64::INFINITY).or_value("the logits have +∞")?;
            (largest > f64::NEG_INFINITY).or_value("all logits of a draw are -∞, which leaves no class")?;
        }
        if temperature == 0.0 {
            return with_names(x.argmax(-1)?, &names);
        }
        let scaled = x.sub(&largest).div(temperature)?; // at most 0
        let is_whole = top_p == 1.0 && top_k.is_none_or(|k| k >= x.sizes()[x.ndim() - 1]);
        let class = if is_whole { one_of(&scaled.exp()?)? } else { likely(&scaled, top_k, top_p)? };
        with_names(class.squeeze(-1)?, &names)
    }
}

/// A random position along the last dim, which has size 1 in the result.
fn one_of(weights: &Tensor) -> Result<Tensor> {
    weights.multinomial_with(1, -1, MultinomialOptions::new())
}

/// A random class among the most likely ones.
fn likely(scaled: &Tensor, top_k: Option<usize>, top_p: f64) -> Result<Tensor> {
    let classes = scaled.sizes()[scaled.ndim() - 1];
    let sorted = scaled.sort_with(-1, SortOptions::new().descending(true))?;
    let weights = sorted.values.narrow(-1, 0, top_k.unwrap_or(classes).min(classes)).exp()?;
    let shares = weights.div(weights.sum(keep(-1))?)?;
    let before = shares.cumsum(-1).sub(&shares)?;
    // The first class has nothing before it.
    let kept = before.lt(top_p).logical_or(before.le(0)?)?;
    let at = one_of(&kept.choose(&weights, 0.0)?)?;
    sorted.indices.gather(&at, -1)
}
