//! Losses of vectors that should be close together or far apart.

use super::*;
use crate::functional::options::PairwiseDistanceOptions;
use namegrad_autograd::plain::{Input, named};

functional! { similarity;
    /// With the cosine `c` of the angle between vectors along `dim`, the mean of `1 - c` where the target is
    /// 1, and `max(0, c - margin)` where it is -1. In a call by name, `dim` is dim 1, or the only dim.
    ///
    /// # Shapes
    /// - `input1`, `input2`: any dims that include `dim`
    /// - `target`: the same dims without `dim`
    /// - result: one number, or without reduction the dims of `target`
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let a = Tensor::new([[1.0, 0.0], [0.0, 1.0]])?.refine_names(["N", "embed"])?;
    /// let b = Tensor::new([[1.0, 0.0], [0.0, 3.0]])?.refine_names(["N", "embed"])?;
    /// let loss = F::cosine_embedding_loss(&a, &b, &Tensor::new([1.0, -1.0])?, "embed")?;
    /// assert!((loss.item::<f64>()? - 0.5).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for other sizes, [`ErrorKind::Value`] for the mean of an empty batch, and the
    /// errors of the name rule.
    cosine_embedding_loss (
        input1, input2, target;
        dim: ClassDim or ClassDim::default(), margin: f64 = 0.0, reduction: Reduction = Reduction::Mean
    ) names removes, input2: unified, target: without dim layer CosineEmbeddingLoss => {
        const EPSILON: f64 = 1e-12; // PyTorch's
        // Bits are numbers here, as in PyTorch.
        let number = |x: &Tensor| if x.dtype() == DType::Bool { x.to(DType::I64) } else { Ok(x.clone()) };
        let (input1, input2) = (&number(input1)?, &number(input2)?);
        let ndims = [input1.ndim(), input2.ndim()];
        (ndims[0] == ndims[1])
            .or_shape(format_args!("both inputs must have the same number of dims, got {ndims:?}"))?;
        check_both(("input1", input1), ("input2", input2))?;
        let (input1, input2) = (&*with_classes(input1)?, &*with_classes(input2)?);
        let [first, second] = [input1, input2].map(|x| x.square().sum(dim).add(EPSILON));
        let cosine = input1.mul(input2).sum(dim).div(first.mul(second?).sqrt()?)?;
        (cosine.sizes() == target.sizes())
            .or_shape(format_args!("expected a target of sizes {:?}, one for each pair, got {:?}", cosine.sizes(), target.sizes()))?;
        let close = target.eq(1).choose(cosine.neg().add(1)?, 0)?;
        let apart = target.eq(-1).choose(cosine.sub(margin).relu()?, 0)?;
        reduction.apply(close.add(apart)?)
    }
    /// The mean of `max(0, d(anchor, positive) - d(anchor, negative) + margin)`, where `d` is the
    /// [`pairwise_distance`](super::pairwise_distance) along `dim` with `p` and `eps`. With `swap`, the
    /// distance of the negative is the smaller of those to the anchor and to the positive.
    ///
    /// # Source
    /// Balntas et al., *Learning Local Feature Descriptors with Triplets and Shallow Convolutional Neural
    /// Networks* (2016), section 3.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let point = |x: f64| Tensor::new([[x, 0.0]])?.refine_names(["N", "embed"]);
    /// let loss = F::triplet_margin_loss(&point(0.0)?, &point(1.0)?, &point(1.5)?, "embed")?;
    /// assert!((loss.item::<f64>()? - 0.5).abs() < 1e-5);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for other sizes, [`ErrorKind::Value`] unless `margin` is positive and for the
    /// mean of an empty batch, and the errors of the name rule.
    triplet_margin_loss (
        anchor, positive, negative;
        dim: Dim or -1,
        margin: f64 = 1.0, p: f64 = 2.0, eps: f64 = 1e-6, swap: bool = false, reduction: Reduction = Reduction::Mean
    ) on floats integers names removes, positive: unified, negative: unified layer TripletMarginLoss => {
        let options = PairwiseDistanceOptions::new().p(p).eps(eps);
        let distance = |a: &Tensor, b: &Tensor| pairwise_distance_with(a, b, dim, options.clone());
        triplet([anchor, positive, negative], &distance, margin, swap, reduction)
    }
}

/// The options of [`triplet_margin_with_distance_loss`].
#[derive(Clone, Copy, Debug, namegrad_macros::Setters)]
#[setters(of(crate::TripletMarginWithDistanceLossBuilder), at = layer.options, own)]
pub struct TripletMarginWithDistanceLossOptions {
    /// The distance by which the negative should be farther than the positive; the default is 1.
    #[setters(default = 1.0)]
    pub margin: f64,
    /// Whether the distance of the negative is the smaller of those to the anchor and to the positive; the
    /// default is `false`.
    pub swap: bool,
    /// The reduction of the losses; the default is the mean.
    pub reduction: Reduction,
}

/// [`triplet_margin_loss`] with another distance, a function of two tensors that returns one number for each
/// pair.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let x = Tensor::randn([("N", 4), ("embed", 8)])?;
/// let distance = |a: &Tensor, b: &Tensor| F::cosine_similarity(a, b, "embed")?.neg()?.add(1);
/// let options = F::TripletMarginWithDistanceLossOptions::new().margin(0.25);
/// let loss = F::triplet_margin_with_distance_loss(&x, &x, &x.neg()?, distance, options)?;
/// assert_eq!(loss.item::<f64>()?, 0.0);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] if the numbers of dims differ, [`ErrorKind::Value`] unless `margin` is positive and
/// for the mean of an empty batch, and the errors of the distance.
#[track_caller]
pub fn triplet_margin_with_distance_loss(
    anchor: &Tensor,
    positive: &Tensor,
    negative: &Tensor,
    distance: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    options: TripletMarginWithDistanceLossOptions,
) -> Result<Tensor> {
    let TripletMarginWithDistanceLossOptions { margin, swap, reduction } = options;
    let inputs = [anchor, positive, negative];
    let loss = triplet(inputs, &distance, margin, swap, reduction);
    named(loss, "triplet_margin_with_distance_loss", &inputs.map(Input::One), &[])
}

fn triplet(
    [anchor, positive, negative]: [&Tensor; 3],
    distance: &dyn Fn(&Tensor, &Tensor) -> Result<Tensor>,
    margin: f64,
    swap: bool,
    reduction: Reduction,
) -> Result<Tensor> {
    check_positive("margin", margin)?;
    let ndims = [anchor, positive, negative].map(Tensor::ndim);
    (ndims == [ndims[0]; 3]).or_shape(format_args!(
        "the anchor, the positive and the negative must have the same number of dims, got {ndims:?}"
    ))?;
    for other in [("positive", positive), ("negative", negative)] {
        check_both(("anchor", anchor), other)?;
    }
    check_names(("positive", positive), ("negative", negative))?;
    let near = distance(anchor, positive)?;
    let mut far = distance(anchor, negative)?;
    if swap {
        far = far.minimum(distance(positive, negative)?)?;
    }
    reduction.apply(near.add(margin).sub(far).clamp_min(0)?)
}
