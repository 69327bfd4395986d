//! Losses as layers.

use super::stateless::stateless;
use crate::functional as F;
use crate::functional::options::*;
use crate::functional::{ClassDim, KlReduction, Reduction};
use namegrad_autograd::Tensor;
use namegrad_core::{Dim, Result};
use std::fmt;
use std::sync::Arc;

/// The distance of a [`TripletMarginWithDistanceLoss`].
#[derive(Clone)]
pub struct Distance(Arc<OfPair>);

/// A function of two tensors.
type OfPair = dyn Fn(&Tensor, &Tensor) -> Result<Tensor> + Send + Sync;

impl<F: Fn(&Tensor, &Tensor) -> Result<Tensor> + Send + Sync + 'static> From<F> for Distance {
    fn from(distance: F) -> Distance {
        Distance(Arc::new(distance))
    }
}

impl fmt::Debug for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Distance")
    }
}

stateless! {
    /// The mean squared error: [`F::mse_loss`](crate::functional::mse_loss) as a layer. A weight has the
    /// sizes of `x`. The names of both unify.
    ///
    /// # Shapes
    /// - `x`, `target`: the same dims, or dims that broadcast
    /// - result: one number, or without reduction the dims of both
    ///
    /// # Parameters
    /// None. The weight, if there is one, is a buffer: `weight`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::MseLoss;
    /// let (x, target) = (Tensor::new([1.0, 3.0])?, Tensor::new([0.0, 0.0])?);
    /// assert_eq!(MseLoss::new()?.forward(&x, &target)?.item::<f64>()?, 5.0);
    /// let sum = MseLoss::builder().reduction(F::Reduction::Sum).build()?;
    /// assert_eq!(sum.forward(&x, &target)?.item::<f64>()?, 10.0);
    /// # Ok::<(), Error>(())
    /// ```
    MseLoss MseLossBuilder (x, target) {  } [weight] {
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::mse_loss_with(x, target, MseLossOptions { reduction, weight });

    /// The mean absolute error: [`F::l1_loss`](crate::functional::l1_loss) as a layer. The names of both
    /// unify.
    ///
    /// # Shapes
    /// - `x`, `target`: the same dims, or dims that broadcast
    /// - result: one number, or without reduction the dims of both
    ///
    /// # Parameters
    /// None. The weight, if there is one, is a buffer: `weight`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::L1Loss;
    /// let (x, target) = (Tensor::new([1.0, 3.0])?, Tensor::new([0.0, 0.0])?);
    /// assert_eq!(L1Loss::new()?.forward(&x, &target)?.item::<f64>()?, 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    L1Loss L1LossBuilder (x, target) {  } [weight] {
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::l1_loss_with(x, target, L1LossOptions { reduction, weight });

    /// [`F::smooth_l1_loss`](crate::functional::smooth_l1_loss) as a layer. The names of both unify.
    ///
    /// # Shapes
    /// - `x`, `target`: the same dims, or dims that broadcast
    /// - result: one number, or without reduction the dims of both
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::SmoothL1Loss;
    /// let (x, target) = (Tensor::new([1.0, 3.0])?, Tensor::new([0.0, 0.0])?);
    /// assert_eq!(SmoothL1Loss::new()?.forward(&x, &target)?.item::<f64>()?, 1.5);
    /// # Ok::<(), Error>(())
    /// ```
    SmoothL1Loss SmoothL1LossBuilder (x, target) {  } [] {
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
        /// The distance from which the loss is a straight line; the default is 1.
        beta: f64 = 1.0,
    } => |_training| F::smooth_l1_loss_with(x, target, SmoothL1LossOptions { reduction, beta });

    /// [`F::huber_loss`](crate::functional::huber_loss) as a layer. The names of both unify.
    ///
    /// # Shapes
    /// - `x`, `target`: the same dims, or dims that broadcast
    /// - result: one number, or without reduction the dims of both
    ///
    /// # Parameters
    /// None. The weight, if there is one, is a buffer: `weight`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::HuberLoss;
    /// let (x, target) = (Tensor::new([1.0, 3.0])?, Tensor::new([0.0, 0.0])?);
    /// assert_eq!(HuberLoss::new()?.forward(&x, &target)?.item::<f64>()?, 1.5);
    /// # Ok::<(), Error>(())
    /// ```
    HuberLoss HuberLossBuilder (x, target) {  } [weight] {
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
        /// The distance from which the loss is a straight line; the default is 1.
        delta: f64 = 1.0,
    } => |_training| F::huber_loss_with(x, target, HuberLossOptions { reduction, delta, weight });

    /// [`F::poisson_nll_loss`](crate::functional::poisson_nll_loss) as a layer. The names of both unify.
    ///
    /// # Shapes
    /// - `x`, `target`: the same dims, or dims that broadcast
    /// - result: one number, or without reduction the dims of both
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::PoissonNllLoss;
    /// let (x, target) = (Tensor::new([1.0, 3.0])?, Tensor::new([0.0, 0.0])?);
    /// let loss = PoissonNllLoss::builder().log_input(false).build()?;
    /// assert_eq!(loss.forward(&x, &target)?.item::<f64>()?, 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    PoissonNllLoss PoissonNllLossBuilder (x, target) {  } [] {
        /// Whether `x` is the logarithm of the mean; the default is `true`.
        log_input: bool = true,
        /// Whether to add Stirling's approximation; the default is `false`.
        full: bool = false,
        /// What is added to `x` before its logarithm; the default is 1e-8.
        eps: f64 = 1e-8,
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::poisson_nll_loss_with(x, target, PoissonNllLossOptions { log_input, full, eps, reduction });

    /// [`F::gaussian_nll_loss`](crate::functional::gaussian_nll_loss) as a layer. The names of all unify.
    ///
    /// # Shapes
    /// - `x`, `target`, `var`: the same dims, or dims that broadcast
    /// - result: one number, or without reduction the dims of all
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::GaussianNllLoss;
    /// let (x, target) = (Tensor::new([1.0, 3.0])?, Tensor::new([0.0, 0.0])?);
    /// let loss = GaussianNllLoss::new()?.forward(&x, &target, &Tensor::new([1.0, 1.0])?)?;
    /// assert_eq!(loss.item::<f64>()?, 2.5);
    /// # Ok::<(), Error>(())
    /// ```
    GaussianNllLoss GaussianNllLossBuilder (x, target, var) {  } [] {
        /// Whether to add the constant term; the default is `false`.
        full: bool = false,
        /// The smallest variance; the default is 1e-6.
        eps: f64 = 1e-6,
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::gaussian_nll_loss_with(x, target, var, GaussianNllLossOptions { full, eps, reduction });

    /// The binary cross entropy of probabilities:
    /// [`F::binary_cross_entropy`](crate::functional::binary_cross_entropy) as a layer. The names of both
    /// unify.
    ///
    /// # Shapes
    /// - `x`, `target`: the same dims, or dims that broadcast
    /// - result: one number, or without reduction the dims of both
    ///
    /// # Parameters
    /// None. The weight, if there is one, is a buffer: `weight`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::BceLoss;
    /// let x = Tensor::new([0.5, 0.5])?;
    /// let loss = BceLoss::new()?.forward(&x, &Tensor::new([0.0, 1.0])?)?;
    /// assert!((loss.item::<f64>()? - 2f64.ln()).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    BceLoss BceLossBuilder (x, target) {  } [weight] {
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::binary_cross_entropy_with(x, target, BinaryCrossEntropyOptions { reduction, weight });

    /// The binary cross entropy of `sigmoid(logits)`:
    /// [`F::binary_cross_entropy_with_logits`](crate::functional::binary_cross_entropy_with_logits) as a
    /// layer. The names of both unify.
    ///
    /// # Shapes
    /// - `logits`, `target`: the same dims, or dims that broadcast
    /// - result: one number, or without reduction the dims of both
    ///
    /// # Parameters
    /// None. The weight, if there is one, is a buffer: `weight`, and `pos_weight` another.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::BceWithLogitsLoss;
    /// let loss = BceWithLogitsLoss::builder().pos_weight(&Tensor::new(2.0)?).build()?;
    /// let loss = loss.forward(&Tensor::new([0.0])?, &Tensor::new([1.0])?)?;
    /// assert!((loss.item::<f64>()? - 2.0 * 2f64.ln()).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    BceWithLogitsLoss BceWithLogitsLossBuilder (logits, target) {  } [weight, pos_weight] {
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::binary_cross_entropy_with_logits_with(logits, target, BinaryCrossEntropyWithLogitsOptions { reduction, weight, pos_weight });

    /// The Kullback-Leibler divergence: [`F::kl_div`](crate::functional::kl_div) as a layer. The names of
    /// both unify.
    ///
    /// # Shapes
    /// - `x`, `target`: the same dims, or dims that broadcast
    /// - result: one number, or without reduction the dims of both
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::KlDivLoss;
    /// let target = Tensor::new([[0.5, 0.5]])?;
    /// let loss = KlDivLoss::builder().reduction(F::KlReduction::BatchMean).build()?;
    /// assert!(loss.forward(&target.log()?, &target)?.item::<f64>()?.abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    KlDivLoss KlDivLossBuilder (x, target) {  } [] {
        /// How the losses are combined; the default is the mean over all elements.
        reduction: KlReduction = KlReduction::Mean,
        /// Whether the target is given as logarithms; the default is `false`.
        log_target: bool = false,
    } => |_training| F::kl_div_with(x, target, KlDivOptions { reduction, log_target });

    /// The cross entropy of `softmax(logits)` along the class dim:
    /// [`F::cross_entropy`](crate::functional::cross_entropy) as a layer. The class dim is found by name
    /// wherever it is; the names of the other dims unify with those of the target.
    ///
    /// # Shapes
    /// - `logits`: any dims that include the dim of the classes, in any order
    /// - `target`: integers, the other dims; or probabilities, the dims of `logits`
    /// - result: one number, or without reduction the other dims
    ///
    /// # Parameters
    /// None. The weight, if there is one, is a buffer: `weight`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::CrossEntropyLoss;
    /// let logits = Tensor::new([[0.0, 0.0]])?.refine_names(["N", "class"])?;
    /// let loss = CrossEntropyLoss::new("class")?.forward(&logits, &Tensor::new([1])?)?;
    /// assert!((loss.item::<f64>()? - 2f64.ln()).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    CrossEntropyLoss CrossEntropyLossBuilder (logits, target) { class_dim: ClassDim } [weight] {
        /// The target that is ignored; the default is -100.
        ignore_index: isize = -100,
        /// The share of the target that is spread over all classes; the default is 0.
        label_smoothing: f64 = 0.0,
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::cross_entropy_with(logits, target, class_dim, CrossEntropyOptions { ignore_index, label_smoothing, reduction, weight });

    /// The negative log likelihood of classes: [`F::nll_loss`](crate::functional::nll_loss) as a layer, whose
    /// names work as in [`CrossEntropyLoss`].
    ///
    /// # Shapes
    /// - `log_probabilities`: any dims that include the dim of the classes, in any order
    /// - `target`: integers, the other dims
    /// - result: one number, or without reduction the other dims
    ///
    /// # Parameters
    /// None. The weight, if there is one, is a buffer: `weight`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::NllLoss;
    /// let logits = Tensor::new([[0.0, 0.0]])?.refine_names(["N", "class"])?;
    /// let loss = NllLoss::new("class")?.forward(&logits.log_softmax("class")?, &Tensor::new([1])?)?;
    /// assert!((loss.item::<f64>()? - 2f64.ln()).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    NllLoss NllLossBuilder (log_probabilities, target) { class_dim: ClassDim } [weight] {
        /// The target that is ignored; the default is -100.
        ignore_index: isize = -100,
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::nll_loss_with(log_probabilities, target, class_dim, NllLossOptions { ignore_index, reduction, weight });

    /// [`F::multi_margin_loss`](crate::functional::multi_margin_loss) as a layer, whose names work as in
    /// [`CrossEntropyLoss`].
    ///
    /// # Shapes
    /// - `x`: any dims that include the dim of the classes, in any order
    /// - `target`: integers, the other dims
    /// - result: one number, or without reduction the other dims
    ///
    /// # Parameters
    /// None. The weight, if there is one, is a buffer: `weight`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::MultiMarginLoss;
    /// let logits = Tensor::new([[0.0, 0.0]])?.refine_names(["N", "class"])?;
    /// let loss = MultiMarginLoss::new("class")?.forward(&logits, &Tensor::new([1])?)?;
    /// assert_eq!(loss.item::<f64>()?, 0.5);
    /// # Ok::<(), Error>(())
    /// ```
    MultiMarginLoss MultiMarginLossBuilder (x, target) { class_dim: ClassDim } [weight] {
        /// The exponent, 1 or 2; the default is 1.
        p: usize = 1,
        /// How far the target class should be ahead; the default is 1.
        margin: f64 = 1.0,
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::multi_margin_loss_with(x, target, class_dim, MultiMarginLossOptions { p, margin, reduction, weight });

    /// [`F::multilabel_margin_loss`](crate::functional::multilabel_margin_loss) as a layer. The class dim is
    /// found by name; the names of `x` and the target unify.
    ///
    /// # Shapes
    /// - `x`: any dims that include the dim of the classes, in any order
    /// - `target`: integers, the dims of `x`
    /// - result: one number, or without reduction the other dims
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::MultilabelMarginLoss;
    /// let logits = Tensor::new([[0.0, 0.0]])?.refine_names(["N", "class"])?;
    /// let loss = MultilabelMarginLoss::new("class")?.forward(&logits, &Tensor::new([[1, -1]])?)?;
    /// assert_eq!(loss.item::<f64>()?, 0.5);
    /// # Ok::<(), Error>(())
    /// ```
    MultilabelMarginLoss MultilabelMarginLossBuilder (x, target) { class_dim: ClassDim } [] {
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::multilabel_margin_loss_with(x, target, class_dim, MultilabelMarginLossOptions { reduction });

    /// [`F::multilabel_soft_margin_loss`](crate::functional::multilabel_soft_margin_loss) as a layer. The
    /// class dim is found by name; the names of `x` and the target unify.
    ///
    /// # Shapes
    /// - `x`, `target`: the same dims, which include the dim of the classes
    /// - result: one number, or without reduction the other dims
    ///
    /// # Parameters
    /// None. The weight, if there is one, is a buffer: `weight`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::MultilabelSoftMarginLoss;
    /// let logits = Tensor::new([[0.0, 0.0]])?.refine_names(["N", "class"])?;
    /// let loss = MultilabelSoftMarginLoss::new("class")?.forward(&logits, &Tensor::new([[1.0, 0.0]])?)?;
    /// assert!((loss.item::<f64>()? - 2f64.ln()).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    MultilabelSoftMarginLoss MultilabelSoftMarginLossBuilder (x, target) { class_dim: Dim } [weight] {
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::multilabel_soft_margin_loss_with(x, target, class_dim, MultilabelSoftMarginLossOptions { reduction, weight });

    /// [`F::soft_margin_loss`](crate::functional::soft_margin_loss) as a layer. The names of both unify.
    ///
    /// # Shapes
    /// - `x`, `target`: the same dims, or dims that broadcast
    /// - result: one number, or without reduction the dims of both
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::SoftMarginLoss;
    /// let loss = SoftMarginLoss::new()?.forward(&Tensor::new([0.0])?, &Tensor::new([1.0])?)?;
    /// assert!((loss.item::<f64>()? - 2f64.ln()).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    SoftMarginLoss SoftMarginLossBuilder (x, target) {  } [] {
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::soft_margin_loss_with(x, target, SoftMarginLossOptions { reduction });

    /// [`F::hinge_embedding_loss`](crate::functional::hinge_embedding_loss) as a layer. The names of both
    /// unify.
    ///
    /// # Shapes
    /// - `x`, `target`: the same dims, or dims that broadcast
    /// - result: one number, or without reduction the dims of both
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::HingeEmbeddingLoss;
    /// let (x, target) = (Tensor::new([0.5, 0.25])?, Tensor::new([1.0, -1.0])?);
    /// assert_eq!(HingeEmbeddingLoss::new()?.forward(&x, &target)?.item::<f64>()?, 0.625);
    /// # Ok::<(), Error>(())
    /// ```
    HingeEmbeddingLoss HingeEmbeddingLossBuilder (x, target) {  } [] {
        /// The margin; the default is 1.
        margin: f64 = 1.0,
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::hinge_embedding_loss_with(x, target, HingeEmbeddingLossOptions { margin, reduction });

    /// [`F::margin_ranking_loss`](crate::functional::margin_ranking_loss) as a layer. The names of all unify.
    ///
    /// # Shapes
    /// - `input1`, `input2`, `target`: the same dims, or dims that broadcast
    /// - result: one number, or without reduction the dims of all
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::MarginRankingLoss;
    /// let (a, b) = (Tensor::new([1.0])?, Tensor::new([3.0])?);
    /// assert_eq!(MarginRankingLoss::new()?.forward(&a, &b, &Tensor::new([1.0])?)?.item::<f64>()?, 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    MarginRankingLoss MarginRankingLossBuilder (input1, input2, target) {  } [] {
        /// The margin; the default is 0.
        margin: f64 = 0.0,
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::margin_ranking_loss_with(input1, input2, target, MarginRankingLossOptions { margin, reduction });

    /// [`F::cosine_embedding_loss`](crate::functional::cosine_embedding_loss) of vectors along a dim, which
    /// is found by name; the names of the other dims unify.
    ///
    /// # Shapes
    /// - `input1`, `input2`: the same dims, which include `dim`
    /// - `target`: the other dims
    /// - result: one number, or without reduction the other dims
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::CosineEmbeddingLoss;
    /// let x = Tensor::new([[3.0, 4.0]])?.refine_names(["N", "embed"])?;
    /// let loss = CosineEmbeddingLoss::new("embed")?.forward(&x, &x, &Tensor::new([-1.0])?)?;
    /// assert!((loss.item::<f64>()? - 1.0).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    CosineEmbeddingLoss CosineEmbeddingLossBuilder (input1, input2, target) { dim: ClassDim } [] {
        /// The margin; the default is 0.
        margin: f64 = 0.0,
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::cosine_embedding_loss_with(input1, input2, target, dim, CosineEmbeddingLossOptions { margin, reduction });

    /// [`F::triplet_margin_loss`](crate::functional::triplet_margin_loss) of vectors along a dim, which is
    /// found by name; the names of the other dims unify. For another distance, call
    /// [`F::triplet_margin_with_distance_loss`](crate::functional::triplet_margin_with_distance_loss).
    ///
    /// # Shapes
    /// - `anchor`, `positive`, `negative`: dims that broadcast and include `dim`
    /// - result: one number, or without reduction the broadcast dims, without `dim`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::TripletMarginLoss;
    /// let x = Tensor::new([[3.0, 4.0]])?.refine_names(["N", "embed"])?;
    /// let loss = TripletMarginLoss::new("embed")?.forward(&x, &x, &x)?;
    /// assert!((loss.item::<f64>()? - 1.0).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    TripletMarginLoss TripletMarginLossBuilder (anchor, positive, negative) { dim: Dim } [] {
        /// The margin; the default is 1.
        margin: f64 = 1.0,
        /// The order of the norm; the default is 2.
        p: f64 = 2.0,
        /// What is added to a difference; the default is 1e-6.
        eps: f64 = 1e-6,
        /// Whether the distance of the negative is the smaller of those to the anchor and to the positive;
        /// the default is `false`.
        swap: bool = false,
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| F::triplet_margin_loss_with(anchor, positive, negative, dim, TripletMarginLossOptions { margin, p, eps, swap, reduction });

    /// [`F::triplet_margin_with_distance_loss`](crate::functional::triplet_margin_with_distance_loss) as a
    /// layer, with a distance that you give: a function of two tensors that returns one number for each pair.
    ///
    /// # Shapes
    /// - `anchor`, `positive`, `negative`: dims that broadcast
    /// - result: one number, or without reduction the dims of the distance
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::TripletMarginWithDistanceLoss;
    /// let distance = |a: &Tensor, b: &Tensor| F::cosine_similarity(a, b, "embed").neg().add(1);
    /// let x = Tensor::randn([("N", 4), ("embed", 8)])?;
    /// let loss = TripletMarginWithDistanceLoss::builder(distance).margin(0.25).build()?;
    /// assert_eq!(loss.forward(&x, &x, &x.neg()?)?.item::<f64>()?, 0.0);
    /// # Ok::<(), Error>(())
    /// ```
    TripletMarginWithDistanceLoss TripletMarginWithDistanceLossBuilder (anchor, positive, negative) { distance: Distance } [] {
        /// How much farther the negative should be than the positive; the default is 1.
        margin: f64 = 1.0,
        /// Whether the distance of the negative is the smaller of those to the anchor and to the positive;
        /// the default is `false`.
        swap: bool = false,
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
    } => |_training| {
        let options = F::TripletMarginWithDistanceLossOptions { margin, swap, reduction };
        F::triplet_margin_with_distance_loss(anchor, positive, negative, &*distance.0, options)
    };

    /// [`F::ctc_loss`](crate::functional::ctc_loss) with a time dim and a class dim, which are found by name;
    /// the dim that is left is the batch.
    ///
    /// # Shapes
    /// - `log_probs`: the dims of time and classes, and any dims of a batch, in any order
    /// - `targets`: integers, the dims of the batch and one more; or a vector of all targets one after
    ///   another
    /// - `input_lengths`, `target_lengths`: integers, the dims of the batch
    /// - result: one number, or without reduction the dims of the batch
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::CtcLoss;
    /// let log_probs = Tensor::zeros([("time", 2), ("N", 1), ("class", 2)])?.log_softmax("class")?;
    /// let (targets, length) = (Tensor::new([[1]])?, Tensor::new([1])?);
    /// let loss = CtcLoss::new("time", "class")?.forward(&log_probs, &targets, &Tensor::new([2])?, &length)?;
    /// assert!((loss.item::<f64>()? + 0.75f64.ln()).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    CtcLoss CtcLossBuilder (log_probs, targets, input_lengths, target_lengths) { time_dim: Dim, class_dim: Dim } [] {
        /// The class of the blank; the default is 0.
        blank: usize = 0,
        /// How the losses are combined; the default is the mean.
        reduction: Reduction = Reduction::Mean,
        /// Whether infinite losses are 0; the default is `false`.
        zero_infinity: bool = false,
    } => |_training| F::ctc_loss_with(log_probs, targets, input_lengths, target_lengths, time_dim, class_dim, CtcLossOptions { blank, reduction, zero_infinity });
}
